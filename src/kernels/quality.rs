//! Image quality: mean squared error, PSNR and SSIM, in f64.

use crate::each::EachEntry;
use rayon::prelude::*;

/// Side of the SSIM window, and the standard deviation of its Gaussian in pixels.
const WINDOW: usize = 11;
const SIGMA: f64 = 1.5;
/// Rows of windows that are compared at a time: nine planes of doubles hold these rows alone, not the images.
const BAND: usize = 64;
/// SSIM's constants for values in [0, 1].
const C1: f64 = 0.01 * 0.01;
const C2: f64 = 0.03 * 0.03;

/// Mean of (a − b)².
pub fn mse(a: &[f32], b: &[f32]) -> f64 {
    let sum: f64 = a
        .iter()
        .zip(b)
        .map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2))
        .sum();
    sum / a.len() as f64
}

/// Peak signal-to-noise ratio in dB of values in [0, 1]; infinite where the error is 0.
pub fn psnr(mse: f64) -> f64 {
    -10.0 * mse.log10()
}

/// Structural similarity (Wang et al. 2004) of two images `[y][x][channel]` of values in [0, 1].
///
/// The window is an 11×11 Gaussian of 1.5 pixels; the mean is over the positions at which it lies inside the image, and
/// over channels. `None` if the image is smaller than the window.
pub fn ssim(a: &[f32], b: &[f32], [width, height]: [usize; 2], channels: usize) -> Option<f64> {
    if width < WINDOW || height < WINDOW {
        return None;
    }
    let weights = gaussian();
    let [across, down] = [width, height].each(|side| side - WINDOW + 1);
    let channel = |c: usize| {
        let of_band = |first: usize| {
            let [begin, end] = [first, down.min(first + BAND) + WINDOW - 1].each(|row| row * width * channels);
            let plane = |image: &[f32]| {
                let values = image[begin..end].iter().skip(c).step_by(channels);
                values.map(|&v| f64::from(v)).collect::<Vec<_>>()
            };
            similarities(&plane(a), &plane(b), width, &weights)
        };
        let all = (0..down).step_by(BAND).flat_map(of_band);
        all.sum::<f64>() / (across * down) as f64
    };
    let means: Vec<f64> = (0..channels).into_par_iter().map(channel).collect();
    Some(means.iter().sum::<f64>() / channels as f64)
}

/// The SSIM of all windows in a plane.
fn similarities(a: &[f64], b: &[f64], width: usize, weights: &[f64; WINDOW]) -> Vec<f64> {
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).collect::<Vec<_>>();
    let blurred = |plane: &[f64]| blur(plane, width, weights);
    let (mean_a, mean_b) = (blurred(a), blurred(b));
    let (aa, bb, ab) = (
        blurred(&product(a, a)),
        blurred(&product(b, b)),
        blurred(&product(a, b)),
    );
    let similarity = |i: usize| {
        let (ma, mb) = (mean_a[i], mean_b[i]);
        let (va, vb, cov) = (aa[i] - ma * ma, bb[i] - mb * mb, ab[i] - ma * mb);
        (2.0 * ma * mb + C1) * (2.0 * cov + C2) / ((ma * ma + mb * mb + C1) * (va + vb + C2))
    };
    (0..mean_a.len()).map(similarity).collect()
}

/// Weighted means over windows that lie inside the plane: the result is smaller by `WINDOW` − 1 on both axes.
fn blur(plane: &[f64], width: usize, weights: &[f64; WINDOW]) -> Vec<f64> {
    let inner = width - WINDOW + 1;
    let rows: Vec<f64> = plane
        .chunks_exact(width)
        .flat_map(|row| {
            row.windows(WINDOW)
                .map(|window| window.iter().zip(weights).map(|(v, w)| v * w).sum())
        })
        .collect();
    let height = plane.len() / width - WINDOW + 1;
    let mut result = vec![0.0; inner * height];
    for (y, line) in result.chunks_exact_mut(inner).enumerate() {
        for (dy, weight) in weights.iter().enumerate() {
            for (sum, v) in line.iter_mut().zip(&rows[(y + dy) * inner..]) {
                *sum += weight * v;
            }
        }
    }
    result
}

/// A normalised Gaussian.
fn gaussian() -> [f64; WINDOW] {
    let weights: [f64; WINDOW] = std::array::from_fn(|i| {
        let x = i as f64 - (WINDOW / 2) as f64;
        (-0.5 * x * x / (SIGMA * SIGMA)).exp()
    });
    let sum: f64 = weights.iter().sum();
    weights.each(|w| w / sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test image with structure at several scales.
    fn picture(width: usize, height: usize, shift: f32) -> Vec<f32> {
        let texel = |i: usize| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            let v = |f: f32| 0.5 + 0.3 * (f * x + shift).sin() + 0.2 * (f * 1.7 * y).cos();
            [v(0.3), v(0.7), v(1.1)]
        };
        (0..width * height).flat_map(texel).collect()
    }

    #[test]
    fn psnr_of_known_errors() {
        assert!((psnr(mse(&[0.0, 0.5], &[0.1, 0.6])) - 20.0).abs() < 1e-5);
        assert_eq!(psnr(mse(&[0.25; 4], &[0.25; 4])), f64::INFINITY);
    }

    /// For an image of one window the SSIM is the bare formula.
    #[test]
    fn one_window_is_the_formula() {
        let (a, b) = (picture(11, 11, 0.0), picture(11, 11, 0.8));
        let mut expected = 0.0;
        for c in 0..3 {
            let at = |image: &[f32], x: usize, y: usize| f64::from(image[3 * (y * 11 + x) + c]);
            let mean = |f: &dyn Fn(usize, usize) -> f64| {
                let weight = |x: usize, y: usize| (-((x as f64 - 5.0).powi(2) + (y as f64 - 5.0).powi(2)) / 4.5).exp();
                let all = (0..121).map(|i| (i % 11, i / 11));
                let (sum, total) = all.fold((0.0, 0.0), |(s, t), (x, y)| {
                    (s + weight(x, y) * f(x, y), t + weight(x, y))
                });
                sum / total
            };
            let (ma, mb) = (mean(&|x, y| at(&a, x, y)), mean(&|x, y| at(&b, x, y)));
            let va = mean(&|x, y| (at(&a, x, y) - ma).powi(2));
            let vb = mean(&|x, y| (at(&b, x, y) - mb).powi(2));
            let cov = mean(&|x, y| (at(&a, x, y) - ma) * (at(&b, x, y) - mb));
            expected +=
                (2.0 * ma * mb + 1e-4) * (2.0 * cov + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4)) / 3.0;
        }
        let found = ssim(&a, &b, [11, 11], 3).expect("as large as the window");
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn ssim_is_one_only_for_equal_images() {
        let a = picture(40, 23, 0.0);
        let same = ssim(&a, &a, [40, 23], 3).expect("large enough");
        assert!((same - 1.0).abs() < 1e-12);
        let mut b = a.clone();
        b[3 * (12 * 40 + 20)] += 0.2;
        assert!(ssim(&a, &b, [40, 23], 3).expect("large enough") < 0.9999);
        assert_eq!(ssim(&a, &a, [40, 10], 3), None);
    }
}
