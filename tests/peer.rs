//! Small worlds whose mean radiance another renderer has measured: Mitsuba 3.9.1, `volpath`, with ten million paths and
//! more for each (docs/testing.md).

use std::collections::BTreeMap;
use std::path::Path;

use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{Look, render_view};
use prbopt::resident::Resident;
use prbopt::scene;
use serde::Deserialize;

const FOLDER: &str = "tests/data/peer";
const BATCHES: u64 = 8;
const SPP: u32 = 64;

/// Mean radiance of an image and its standard error, a channel each.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Measured {
    mean: [f64; 3],
    error: [f64; 3],
}

fn measure(path: &Path) -> Measured {
    let scene = scene::load(path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let (resident, params) = Resident::new(&scene).expect("the scene is without mistakes");
    let mut device = Cpu::new();
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    device.load(resident, params, sgd).expect("it fits");
    let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
    for seed in 0..BATCHES {
        let look = Look {
            seed,
            iteration: 0,
            spp: SPP,
        };
        let pixels = render_view(&mut device, 0, look).expect("it renders");
        for c in 0..3 {
            let mean = pixels.iter().map(|pixel| f64::from(pixel[c])).sum::<f64>() / pixels.len() as f64;
            sum[c] += mean;
            squares[c] += mean * mean;
        }
    }
    let n = BATCHES as f64;
    let mean = sum.map(|s| s / n);
    let error = [0, 1, 2].map(|c| ((squares[c] / n - mean[c] * mean[c]).max(0.0) / (n - 1.0)).sqrt());
    Measured { mean, error }
}

/// Differences in standard errors, for the channel in which it is largest.
fn disagreement(a: &Measured, b: &Measured) -> f64 {
    let z = |c: usize| (a.mean[c] - b.mean[c]).abs() / a.error[c].hypot(b.error[c]);
    (0..3).map(z).fold(0.0, f64::max)
}

#[test]
fn means_are_those_of_another_renderer() {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("means.json")).expect("it is there");
    let expected: BTreeMap<String, Measured> = serde_json::from_str(&text).expect("it is a table of means");
    assert_eq!(expected.len(), 11);
    for (name, expected) in expected {
        let found = measure(&Path::new(FOLDER).join(format!("scenes/{name}.json")));
        // Eight batches tell their own error badly: Student's t with 7 degrees of freedom is below 6.5 in all but 3 of
        // 10,000 cases.
        let z = disagreement(&found, &expected);
        assert!(z < 6.5, "{name}: {found:?} is not {expected:?}");
        let bright = Measured {
            mean: found.mean.map(|x| 1.03 * x),
            ..found
        };
        let seen = disagreement(&bright, &expected);
        assert!(seen > 6.5, "{name}: three percent more light would not be seen: {seen}");
    }
}
