//! The recovered parameters in a report: volumes as slices, maps, numbers, and histograms.

use serde::Serialize;
use serde_json::Value;

use super::colormap;
use super::data::{Recovered, RunData};
use super::pictures::data_uri;
use crate::output::parameters::SHOWN_TEXELS;
use crate::params::Shape;

/// Bars of a histogram.
pub(super) const BINS: usize = 64;

/// The first spherical harmonic, 1 / (2 √π).
const SH_0: f32 = 0.282_094_8;

/// A volume in the page: one picture with its slices along z below each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct GridShown {
    pub(super) path: String,
    /// Index of the run.
    pub(super) run: usize,
    /// Which of the parameter's values are shown: `recovered`, `start` or `truth`.
    pub(super) moment: &'static str,
    /// Texels along x, y, z of the parameter, and of the displayed volume.
    pub(super) size: [usize; 3],
    pub(super) shown: [usize; 3],
    /// Whether the picture holds colours; else indices into the table of amounts from `low` to `high`.
    pub(super) color: bool,
    pub(super) low: f32,
    pub(super) high: f32,
    pub(super) uri: String,
}

/// The distribution of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Histogram {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Relative frequencies in [`BINS`] bins.
    pub(super) shares: Vec<f64>,
}

/// How a texel is displayed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Display {
    /// As an amount, after this activation.
    Amount(String),
    /// As linear light or reflectance.
    Light,
    /// As the mean colour of spherical harmonics over all directions.
    Harmonics { activation: String, coded: bool },
}

impl Display {
    /// How a scene's parameter with this path is displayed.
    pub(super) fn of(scene: &Value, path: &str, channels: usize) -> Self {
        let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
        let owner = owner.split('.').fold(scene, |at, key| &at[key]);
        if name == "sh_coeffs" {
            return Self::Harmonics {
                activation: owner["color_activation"].as_str().unwrap_or("clip").to_owned(),
                coded: mentions(scene, "color_space", "srgb"),
            };
        }
        if channels < 3 {
            let activation = owner["density_activation"].as_str().filter(|_| name == "sigma_t");
            return Self::Amount(activation.unwrap_or_default().to_owned());
        }
        Self::Light
    }

    /// Channels of the parameter that are displayed.
    pub(super) fn channels(&self) -> usize {
        match self {
            Self::Amount(_) => 1,
            Self::Light | Self::Harmonics { .. } => 3,
        }
    }
}

/// The displayed volumes or maps of a parameter: start, recovered values and truth, as far as they are known, on one
/// colour scale; empty for single numbers.
pub(super) fn shown(run: usize, data: &RunData, parameter: &Recovered) -> Vec<GridShown> {
    let channels = parameter.shape.channels;
    let alike = |known: &&Recovered| known.path == parameter.path && known.shape.channels == channels;
    let all = [
        ("start", data.start.iter().find(alike)),
        ("recovered", Some(parameter)),
        ("truth", data.truth.iter().find(alike)),
    ];
    let all = all
        .into_iter()
        .filter_map(|(moment, of)| Some((moment, of?, of?.texels.as_ref()?)));
    let all: Vec<_> = all.collect();
    let low = all.iter().map(|(_, _, texels)| texels.low).fold(f32::MAX, f32::min);
    let high = all.iter().map(|(_, _, texels)| texels.high).fold(f32::MIN, f32::max);
    let brightest = all.iter().map(|(_, of, _)| spread(&of.sample).1).fold(1.0, f32::max);
    all.iter()
        .map(|(moment, of, texels)| GridShown {
            path: of.path.clone(),
            run,
            moment,
            size: of.shape.size,
            shown: texels.size,
            color: texels.display.channels() == 3,
            low,
            high,
            uri: data_uri(&texels.png([low, high], brightest)),
        })
        .collect()
}

/// The texels that are displayed, before they become bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Texels {
    display: Display,
    size: [usize; 3],
    values: Vec<f32>,
    low: f32,
    high: f32,
}

impl Texels {
    /// What is displayed of `values`, `[z][y][x][channel]`.
    pub(super) fn new(display: Display, shape: Shape, values: &[f32]) -> Self {
        let channels = display.channels();
        let (size, values) = match &display {
            Display::Amount(activation) => reduced(shape, values, channels, |v| density(activation, v)),
            _ => reduced(shape, values, channels, |v| v),
        };
        let (low, high) = spread(&values);
        Self {
            display,
            size,
            values,
            low,
            high,
        }
    }

    /// The bytes of the picture; amounts are scaled from `low` to `high`, and light is divided by `brightest`.
    fn png(&self, [low, high]: [f32; 2], brightest: f32) -> Vec<u8> {
        let texels = self.values.iter();
        let bytes: Vec<u8> = match &self.display {
            Display::Amount(_) => texels.map(|v| colormap::step(*v, low, high)).collect(),
            Display::Light => texels.map(|v| colormap::light_byte(v / brightest)).collect(),
            Display::Harmonics { activation, coded } => {
                let show = |v: &f32| {
                    let value = activated(activation, SH_0 * v);
                    if *coded {
                        colormap::coded_byte(value)
                    } else {
                        colormap::light_byte(value)
                    }
                };
                texels.map(show).collect()
            }
        };
        let channels = self.display.channels();
        colormap::png(self.size[0], self.size[1] * self.size[2], channels, &bytes)
    }
}

/// Whether some object of the scene has `word` as its `key`.
fn mentions(value: &Value, key: &str, word: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get(key).and_then(Value::as_str) == Some(word) || members.values().any(|v| mentions(v, key, word))
        }
        Value::Array(items) => items.iter().any(|v| mentions(v, key, word)),
        _ => false,
    }
}

fn activated(activation: &str, value: f32) -> f32 {
    match activation {
        "sigmoid" => 1.0 / (1.0 + (-value).exp()),
        "relu" => value + 0.5,
        _ => value,
    }
}

/// Density from a grid's value.
fn density(activation: &str, value: f32) -> f32 {
    match activation {
        "relu" => value.max(0.0),
        "softplus" => value.max(0.0) + (-value.abs()).exp().ln_1p(),
        "exp" => value.exp(),
        _ => value,
    }
}

/// The first `picked` channels of `values` after an activation, averaged over blocks of the smallest integer edge that leaves at
/// most [`SHOWN_TEXELS`] texels.
fn reduced(shape: Shape, values: &[f32], picked: usize, activation: impl Fn(f32) -> f32) -> ([usize; 3], Vec<f32>) {
    let ([nx, ny, nz], channels) = (shape.size, shape.channels);
    let mut edge = 1;
    let small = loop {
        let small = [nx, ny, nz].map(|n| n.div_ceil(edge));
        if small.iter().product::<usize>() <= SHOWN_TEXELS {
            break small;
        }
        edge += 1;
    };
    let mut texels = Vec::with_capacity(small.iter().product::<usize>() * picked);
    for z in 0..small[2] {
        for y in 0..small[1] {
            for x in 0..small[0] {
                let mut sum = [0.0f32; 3];
                let mut count = 0.0;
                for k in z * edge..((z + 1) * edge).min(nz) {
                    for j in y * edge..((y + 1) * edge).min(ny) {
                        for i in x * edge..((x + 1) * edge).min(nx) {
                            let at = ((k * ny + j) * nx + i) * channels;
                            for c in 0..picked {
                                sum[c] += activation(values[at + c]);
                            }
                            count += 1.0;
                        }
                    }
                }
                texels.extend(sum[..picked].iter().map(|v| v / count));
            }
        }
    }
    (small, texels)
}

/// The range of finite values without the most extreme thousandth at each end; a limit close to 0 is set to 0.
fn spread(values: &[f32]) -> (f32, f32) {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if sorted.is_empty() {
        return (0.0, 1.0);
    }
    let tail = sorted.len() / 1000;
    let last = sorted.len() - 1 - tail;
    let low = *sorted.select_nth_unstable_by(tail, f32::total_cmp).1;
    let high = *sorted.select_nth_unstable_by(last, f32::total_cmp).1;
    let low = if low > 0.0 && low < 0.1 * high { 0.0 } else { low };
    (low, high)
}

/// The histogram of a sample of values between `low` and `high`.
pub(super) fn histogram(sample: &[f32], low: f32, high: f32) -> Histogram {
    let mut counts = vec![0u64; BINS];
    let width = if high > low { (high - low) / BINS as f32 } else { 1.0 };
    let mut all = 0u64;
    for value in sample.iter().filter(|v| v.is_finite()) {
        let bin = ((value - low) / width).floor().clamp(0.0, (BINS - 1) as f32);
        counts[bin as usize] += 1;
        all += 1;
    }
    Histogram {
        low: low.into(),
        high: f64::from(low) + f64::from(width) * BINS as f64,
        shares: counts.iter().map(|n| *n as f64 / all.max(1) as f64).collect(),
    }
}

/// The range of the finite values; None if there are none.
pub(super) fn range(values: impl Iterator<Item = f32>) -> Option<(f32, f32)> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f32::MAX, f32::MIN), |(low, high), v| (low.min(v), high.max(v)));
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_averaged_over_blocks() {
        let numbers = |size: [usize; 3], channels| {
            let shape = Shape { size, channels };
            (shape, (0..shape.len()).map(|i| i as f32).collect::<Vec<_>>())
        };
        let (shape, values) = numbers([128, 128, 128], 1);
        let (small, texels) = reduced(shape, &values, 1, |v| v);
        assert_eq!(small, [64, 64, 64]);
        assert_eq!(
            texels[0],
            (128.0 * 128.0 + 128.0 + 1.0) / 2.0,
            "the middle of the first eight texels"
        );
        let (shape, values) = numbers([2, 3, 1], 4);
        let (small, texels) = reduced(shape, &values, 3, |v| v);
        assert_eq!(
            (small, texels[3]),
            ([2, 3, 1], 4.0),
            "small ones stay, the fourth channel is left out"
        );
    }

    #[test]
    fn densities_are_shown_as_rays_meet_them() {
        let size = [2, 2, 1];
        let values = [-3.0, 1.0, 2.0, -8.0];
        let of = |activation: &'static str| {
            reduced(Shape { size, channels: 1 }, &values, 1, move |v| density(activation, v)).1
        };
        assert_eq!(of("relu"), [0.0, 1.0, 2.0, 0.0]);
        assert_eq!(of("exp")[1], 1f32.exp());
        assert!((of("softplus")[1] - 1f32.exp().ln_1p()).abs() < 1e-6);
        assert_eq!(of(""), values);
    }

    #[test]
    fn histograms_count_everything_once() {
        let values = [0.0, 1.0, 0.5, 0.5, f32::NAN, 1.0];
        let (low, high) = range(values.into_iter()).expect("some are finite");
        let histogram = histogram(&values, low, high);
        assert_eq!((low, high), (0.0, 1.0));
        assert!((histogram.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(
            (
                histogram.shares[0],
                histogram.shares[BINS / 2],
                histogram.shares[BINS - 1]
            ),
            (0.2, 0.4, 0.4)
        );
        assert_eq!(range(std::iter::once(f32::NAN)), None);
    }

    #[test]
    fn the_spread_leaves_extremes_out() {
        let mut values: Vec<f32> = (0..10_000).map(|i| i as f32 / 10_000.0).collect();
        values.push(1e9);
        let (low, high) = spread(&values);
        assert!(low == 0.0 && high < 1.0 && high > 0.99, "{low} {high}");
        assert_eq!(spread(&[f32::NAN]), (0.0, 1.0));
    }
}
