//! Writes losses and whole gradients to files, for checks with external tools.

use std::path::Path;

use super::{Options, Outcome, Setup, Weighting};
use crate::each::EachEntry;
use crate::io::{self, IoError, atomic, npy};
use crate::transport::rays::pixel::linear_weight;

/// Writes `loss.json`, and a gradient for each checked parameter: `<path>.npy` for the mean, `random/<path>.npy` for
/// random weights, which are themselves in `random/weights.npy` as `[pixel][channel]`. Gradients are f64,
/// `[z][y][x][channel]`, weights f32.
///
/// # Errors
/// A file or folder cannot be written.
pub fn write(folder: &Path, setup: &Setup, options: &Options, outcome: &Outcome) -> io::Result<()> {
    let report = &outcome.report;
    create(folder)?;
    for (&weighting, gradients) in options.weightings.iter().zip(&outcome.gradients) {
        let place = match weighting {
            Weighting::Mean => folder.to_path_buf(),
            Weighting::Random => folder.join("random"),
        };
        create(&place)?;
        for (&i, gradient) in setup.checked.iter().zip(gradients) {
            if gradient.is_empty() {
                continue;
            }
            let parameter = &setup.params.parameters[i];
            let [x, y, z] = parameter.shape.size.each(|n| n as u64);
            let shape = [z, y, x, parameter.shape.channels as u64];
            npy::write_array(&place.join(format!("{}.npy", parameter.path)), &shape, gradient)?;
        }
        if weighting == Weighting::Random {
            let seed = weighting.seed(options.seed);
            let weights: Vec<f32> = (0..report.pixels)
                .flat_map(|i| [0, 1, 2].each(|c| linear_weight(seed, i, c)))
                .collect();
            npy::write_array(&place.join("weights.npy"), &[u64::from(report.pixels), 3], &weights)?;
        }
    }
    let losses: serde_json::Map<String, serde_json::Value> = report
        .losses
        .iter()
        .map(|l| (l.weighting.name().to_string(), l.value.into()))
        .collect();
    let text = serde_json::json!({
        "loss": report.losses.first().map(|l| l.value),
        "losses": losses,
        "pixels": report.pixels,
        "rays": report.rays,
        "spp": report.spp,
        "seed": report.seed,
    });
    atomic::write_bytes(&folder.join("loss.json"), format!("{text:#}\n").as_bytes())
}

fn create(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| IoError::new(folder, format!("the folder cannot be created: {e}")))
}
