//! Reconstruction filters, and the tables by which samples of them are drawn.

use super::layout::{FILTER_CELLS, FILTER_ENTRIES, FilterTable};
use crate::scene::Filter;

/// Intervals of Simpson's rule in a cell, of three points each.
const PARTS: usize = 64;

/// Standard deviations at which a Gaussian is cut off.
const GAUSSIAN_EXTENT: f64 = 4.0;

/// The value of a filter at `x` pixels from its centre, not normalised; zero outside of its radius.
pub fn profile(filter: Filter, x: f64) -> f64 {
    let x = x.abs();
    if x > f64::from(filter.radius()) {
        return 0.0;
    }
    match filter {
        Filter::Box => 1.0,
        Filter::Tent { radius } => 1.0 - x / f64::from(radius),
        Filter::Gaussian { stddev } => {
            let z = x / f64::from(stddev);
            (-0.5 * z * z).exp() - (-0.5 * GAUSSIAN_EXTENT * GAUSSIAN_EXTENT).exp()
        }
        Filter::Mitchell { b, c } => mitchell(f64::from(b), f64::from(c), x),
        Filter::Lanczos { lobes } => sinc(x) * sinc(x / f64::from(lobes)),
    }
}

/// The cubic of Mitchell1988 for 0 ≤ x ≤ 2; that with b = 0 and c = 1/2 is Catmull's and Rom's.
fn mitchell(b: f64, c: f64, x: f64) -> f64 {
    let (x2, x3) = (x * x, x * x * x);
    if x < 1.0 {
        (12.0 - 9.0 * b - 6.0 * c) * x3 + (-18.0 + 12.0 * b + 6.0 * c) * x2 + (6.0 - 2.0 * b)
    } else {
        (-b - 6.0 * c) * x3 + (6.0 * b + 30.0 * c) * x2 + (-12.0 * b - 48.0 * c) * x + (8.0 * b + 24.0 * c)
    }
}

/// sin(π x) / (π x)
fn sinc(x: f64) -> f64 {
    let angle = std::f64::consts::PI * x;
    if angle.abs() < 1e-8 { 1.0 } else { angle.sin() / angle }
}

/// The table of a filter. In a cell its pdf is the exact filter's mean over the cell.
pub fn filter_table(filter: Filter) -> FilterTable {
    let radius = f64::from(filter.radius());
    let width = 2.0 * radius / FILTER_CELLS as f64;
    // Simpson's rule.
    let cell = |from: f64| {
        let h = width / PARTS as f64;
        let f = |i: f64| profile(filter, from + i * h);
        (0..PARTS)
            .map(|i| i as f64)
            .map(|i| (f(i) + 4.0 * f(i + 0.5) + f(i + 1.0)) * h / 6.0)
            .sum::<f64>()
    };
    let mut sums = vec![[0f64; 2]];
    for i in 0..FILTER_CELLS {
        let mass = cell(-radius + width * i as f64);
        let [drawn, signed] = sums[i];
        sums.push([drawn + mass.abs(), signed + mass]);
    }
    let total = sums[FILTER_CELLS][0];
    let row = |which: usize| {
        let mut row = [0.0; FILTER_ENTRIES];
        for (i, entry) in row.iter_mut().enumerate() {
            *entry = (sums[i.min(FILTER_CELLS)][which] / total) as f32;
        }
        row
    };
    FilterTable {
        drawn: row(0),
        signed: row(1),
    }
}
