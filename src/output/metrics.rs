//! `metrics.jsonl`: one line of figures an iteration.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::device::ReplayStats;
use crate::io::atomic;

/// Milliseconds of the passes of one iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Milliseconds {
    pub primal: f64,
    pub loss: f64,
    pub adjoint: f64,
    pub regularise: f64,
    pub step: f64,
    pub rebuild: f64,
    pub total: f64,
}

/// The figures of one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Iterations done, this one included.
    pub iteration: u32,
    /// Resolution, from 1.
    pub stage: u32,
    /// Mean loss of the batch, without penalties.
    pub loss: f64,
    /// Of the batch, in the films' colour space; none for a perfect or an empty image.
    pub psnr: Option<f64>,
    /// Weighted sum of the penalties that were due.
    pub penalty: f64,
    /// Factor of the schedule, and the learning rates with it.
    pub learning_rate_factor: f32,
    pub learning_rates: Map<String, Value>,
    /// Euclidean norm of the gradient of each optimised parameter.
    pub gradient_norms: Map<String, Value>,
    /// Pixels of the batch for which there is no ray.
    pub masked: u64,
    pub replay: ReplayStats,
    pub ms: Milliseconds,
    /// Bytes that the device holds for the scene.
    pub memory_bytes: u64,
    /// Seconds since the run began, pauses between resumptions left out.
    pub seconds: f64,
}

/// Peak signal-to-noise ratio in dB of a mean squared error of values in [0, 1].
pub fn psnr(mse: f64) -> Option<f64> {
    (mse > 0.0 && mse.is_finite()).then(|| -10.0 * mse.log10())
}

/// The figures in a file; lines that are not whole, or of another version, are left out.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<Vec<Figures>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("{shown}: cannot be read"))?;
    let mut all = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.with_context(|| format!("{shown}: cannot be read"))?;
        all.extend(serde_json::from_slice::<Figures>(&line).ok());
    }
    Ok(all)
}

/// The open file.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: File,
}

impl Metrics {
    /// Opens the file for more lines. Those after `iteration`, and a last one that is not whole, are dropped: a run
    /// that goes on from a checkpoint writes them again.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path, iteration: u32) -> Result<Self> {
        let shown = path.display();
        let mut kept = Vec::new();
        if iteration > 0 && path.exists() {
            let file = File::open(path).with_context(|| format!("{shown}: cannot be read"))?;
            for line in BufReader::new(file).split(b'\n') {
                let line = line.with_context(|| format!("{shown}: cannot be read"))?;
                let number = serde_json::from_slice::<Value>(&line)
                    .ok()
                    .and_then(|v| v.get("iteration")?.as_u64());
                if number.is_some_and(|n| n <= u64::from(iteration)) {
                    kept.extend(line);
                    kept.push(b'\n');
                }
            }
        }
        atomic::write_bytes(path, &kept)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .with_context(|| format!("{shown}: cannot be written"))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Adds a line in one write, so that it is there after whatever ends the program.
    ///
    /// # Errors
    /// The disk is full, or the file is gone.
    pub fn add(&mut self, figures: &Figures) -> Result<()> {
        let mut line = serde_json::to_vec(figures).context("figures that are no JSON")?;
        line.push(b'\n');
        self.file.write_all(&line).with_context(|| {
            let shown = self.path.display();
            format!("{shown}: cannot be written; what was saved before is untouched")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_the_checkpoint_and_torn_ones_are_dropped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("metrics.jsonl");
        let text = "{\"iteration\":1}\n{\"iteration\":2}\n{\"iteration\":3}\n{\"iterat";
        std::fs::write(&path, text).expect("writable");
        Metrics::open(&path, 2).expect("readable");
        let kept = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(kept, "{\"iteration\":1}\n{\"iteration\":2}\n");
        Metrics::open(&path, 0).expect("readable");
        assert_eq!(std::fs::read(&path).expect("readable"), b"");
    }

    #[test]
    fn psnr_of_no_error_is_absent() {
        assert_eq!(psnr(0.0), None);
        assert_eq!(psnr(f64::NAN), None);
        assert!((psnr(0.001).expect("finite") - 30.0).abs() < 1e-9);
    }
}
