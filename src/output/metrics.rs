//! `metrics.jsonl`: one line of figures an iteration.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::device::ReplayStats;
use crate::io::{IoError, atomic};

/// Milliseconds of the passes of one iteration; passes that are fused count as `adjoint` alone.
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
    /// Number of the resolution stage, from 1.
    pub stage: u32,
    /// Mean loss of the batch, without penalties.
    pub loss: f64,
    /// PSNR of the batch in dB, in the films' colour space; None for a perfect or an empty image.
    pub psnr: Option<f64>,
    /// Weighted sum of the penalties that were due.
    pub penalty: f64,
    /// Factor of the schedule, which `learning_rates` include.
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
    /// Number of splats, if the scene is made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub splats: Option<u64>,
    /// Seconds since the run began, pauses between resumptions left out.
    pub seconds: f64,
}

/// Peak signal-to-noise ratio in dB of a mean squared error of values in [0, 1].
pub fn psnr(mse: f64) -> Option<f64> {
    (mse > 0.0 && mse.is_finite()).then(|| -10.0 * mse.log10())
}

/// The figures in a file; incomplete lines and those of another version are left out.
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
    /// Bytes of whole lines in the file.
    length: u64,
    /// Lines for which there was no room yet.
    pending: Vec<u8>,
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
            length: kept.len() as u64,
            pending: Vec::new(),
        })
    }

    /// Appends a line in one write, so that it is in the file however the program ends.
    ///
    /// # Errors
    /// As [`Metrics::flush`].
    pub fn add(&mut self, figures: &Figures) -> Result<()> {
        let line = serde_json::to_vec(figures).context("figures that are no JSON")?;
        self.pending.extend(line);
        self.pending.push(b'\n');
        self.flush()
    }

    /// Writes the lines for which there was no room before.
    ///
    /// # Errors
    /// The disk is still full, in which case the lines are kept for the next call, or fails otherwise.
    pub fn flush(&mut self) -> Result<()> {
        if let Err(error) = self.file.write_all(&self.pending) {
            // Removes lines that were written in part; the next call writes all pending lines again.
            let _ = self.file.set_len(self.length);
            return Err(IoError::of_writing(&self.path, "cannot be written", &error).into());
        }
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
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

    /// Writing to `/dev/full` always fails with the error of a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn lines_that_find_no_room_are_written_when_there_is_some() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("metrics.jsonl");
        let mut metrics = Metrics::open(&path, 0).expect("writable");
        let disk = metrics.file.try_clone().expect("open");
        metrics.add(&figures(1)).expect("there is room");
        metrics.file = OpenOptions::new().append(true).open("/dev/full").expect("a Linux");
        for iteration in [2, 3] {
            let error = metrics.add(&figures(iteration)).expect_err("full");
            assert!(error.downcast_ref::<IoError>().is_some_and(|e| e.no_room), "{error:#}");
        }
        metrics.file = disk;
        metrics.add(&figures(4)).expect("there is room again");
        let found: Vec<u32> = read(&path).expect("readable").iter().map(|f| f.iteration).collect();
        assert_eq!(found, [1, 2, 3, 4]);
    }

    #[cfg(target_os = "linux")]
    fn figures(iteration: u32) -> Figures {
        Figures {
            iteration,
            stage: 1,
            loss: 0.5,
            psnr: None,
            penalty: 0.0,
            learning_rate_factor: 1.0,
            learning_rates: Map::new(),
            gradient_norms: Map::new(),
            masked: 0,
            replay: ReplayStats::default(),
            ms: Milliseconds::default(),
            memory_bytes: 0,
            splats: None,
            seconds: 0.0,
        }
    }

    #[test]
    fn psnr_of_no_error_is_absent() {
        assert_eq!(psnr(0.0), None);
        assert_eq!(psnr(f64::NAN), None);
        assert!((psnr(0.001).expect("finite") - 30.0).abs() < 1e-9);
    }

    /// `length` equals the file's length, after every line and after the file is opened again.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_length_is_that_of_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("metrics.jsonl");
        let mut metrics = Metrics::open(&path, 0).expect("writable");
        for iteration in 1..4 {
            metrics.add(&figures(iteration)).expect("there is room");
            let text = std::fs::read_to_string(&path).expect("readable");
            assert_eq!((metrics.length, metrics.pending.len()), (text.len() as u64, 0));
            assert_eq!(text.lines().count(), iteration as usize);
        }
        let reopened = Metrics::open(&path, 2).expect("readable");
        assert_eq!(reopened.length, std::fs::metadata(&path).expect("there").len());
        // A line that is half written when the disk is full is removed again.
        let line = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(line.lines().last(), serde_json::to_string(&figures(2)).ok().as_deref());
    }

    /// Every member of a line by its name, since the report and the reader of a resumed run look for them.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_reads_as_it_is_documented() {
        let text = serde_json::to_string(&figures(7)).expect("JSON");
        let expected = concat!(
            r#"{"iteration":7,"stage":1,"loss":0.5,"psnr":null,"penalty":0.0,"learning_rate_factor":1.0,"#,
            r#""learning_rates":{},"gradient_norms":{},"masked":0,"replay":"#
        );
        assert!(text.starts_with(expected), "{text}");
        let expected = concat!(
            r#""ms":{"primal":0.0,"loss":0.0,"adjoint":0.0,"regularise":0.0,"step":0.0,"rebuild":0.0,"total":0.0},"#,
            r#""memory_bytes":0,"seconds":0.0}"#
        );
        assert!(text.ends_with(expected), "{text}");
    }
}
