//! Draws against their densities: chi-square tests at fixed seeds. The filters' own are beside their code.
//!
//! Bounds are the 1 - 10⁻⁴ quantile of chi-square by the approximation of Wilson and Hilferty, so that a sound sampler
//! fails a test at one in ten thousand seeds.

mod small;

use prbopt::gradcheck::Options;
use prbopt::kernels::loss::Loss;
use prbopt::transport::rays::pixel::{Pixel, PixelTable, drawn_pixel, linear_weight, random_backdrop};
use prbopt::transport::rays::pixel::{Sampled, sample_ray};
use prbopt::transport::rays::random::{Pass, pass_key};
use prbopt::transport::scene::phase::hg_sample;
use small::{Small, keys};

/// Chi-square of counts whose expectations are all alike.
fn chi_square(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    assert!(expected > 20.0, "too few draws for so many bins");
    counts
        .iter()
        .map(|n| (f64::from(*n) - expected).powi(2) / expected)
        .sum()
}

/// The 1 - 10⁻⁴ quantile with `freedom` degrees of freedom.
fn bound(freedom: usize) -> f64 {
    let (k, z) = (freedom as f64, 3.719);
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

fn assert_uniform(what: &str, counts: &[u32]) {
    let (found, allowed) = (chi_square(counts), bound(counts.len() - 1));
    assert!(
        found < allowed,
        "{what}: chi-square {found} of {} bins exceeds {allowed}",
        counts.len()
    );
}

/// Power: with 2²⁰ draws in 64 bins, one bin that is 10 % too full is seen; with 2¹⁸ it is within chance.
#[test]
fn the_chi_square_test_sees_a_skewed_bin() {
    let mut counts = [1 << 12; 64];
    counts[10] += 410;
    assert!(
        chi_square(&counts) < bound(63),
        "at 64 bins of 4096 a tenth is still within chance"
    );
    let mut counts = [1 << 14; 64];
    counts[10] += 1638;
    assert!(chi_square(&counts) > bound(63));
}

/// Pixels are drawn uniformly over all pixels of views of unequal sizes, not uniformly over views.
#[test]
fn drawn_pixels_are_uniform_over_unequal_views() {
    let records: Vec<_> = [[5, 4], [16, 3], [1, 1], [9, 9]]
        .iter()
        .map(|&image| {
            Small {
                image,
                ..Small::default()
            }
            .setup(&Options::default())
            .resident
            .sensors[0]
        })
        .collect();
    let table = PixelTable::new(&records, &[0, 1, 2, 3]).expect("it fits");
    let key = pass_key(2, 7, Pass::Objective);
    let mut counts = vec![0; table.len() as usize];
    for ray in 0..1 << 16 {
        let Pixel { sensor, index } = drawn_pixel(&table, key, ray);
        let record = &records[sensor as usize];
        assert!(index < record.width * record.height, "pixel {index} of view {sensor}");
        counts[(table.starts[sensor as usize] + index) as usize] += 1;
    }
    assert_uniform("pixels", &counts);
}

/// Random backdrops fill the colour cube, differ from pixel to pixel and iteration to iteration, and are the same for
/// all passes of an iteration, which share the objective's key.
#[test]
fn random_backdrops_are_uniform() {
    let mut counts = [0; 512];
    for index in 0..1u32 << 16 {
        let color = random_backdrop(
            pass_key(4, index >> 10, Pass::Objective),
            Pixel {
                sensor: 3,
                index: index & 1023,
            },
        );
        let [r, g, b] = color.map(|x| (x * 8.0) as usize);
        counts[(r * 8 + g) * 8 + b] += 1;
    }
    assert_uniform("backdrops", &counts);
}

/// A sample's place in its pixel and its jitter along the ray are uniform and independent (box filter). The place is
/// read back from the ray's direction.
#[test]
fn places_and_jitters_are_uniform_and_independent() {
    let setup = Small {
        image: [3, 3],
        ..Small::default()
    }
    .setup(&Options::default());
    let (scene, sensor) = (&setup.resident.scene, &setup.resident.sensors[0]);
    let key = keys(6, Pass::Adjoint).pass;
    let mut counts = [0; 512];
    for sample in 0..1 << 16 {
        let pixel = Pixel { sensor: 0, index: 4 };
        let Sampled { ray, jitter, .. } =
            sample_ray(scene, sensor, pixel, key, sample).expect("an undistorted camera sees all");
        let along = |row: usize| (0..3).map(|c| sensor.to_world[c][row] * ray.direction[c]).sum::<f32>();
        let x = sensor.center[0] - along(0) / along(2) * sensor.focal[0] - 1.0;
        let y = sensor.center[1] - along(1) / along(2) * sensor.focal[1] - 1.0;
        let bin = |u: f32| ((u * 8.0).floor() as usize).min(7);
        assert!(
            (-1e-4..1.0001).contains(&x) && (-1e-4..1.0001).contains(&y),
            "{x}, {y} is outside the pixel"
        );
        counts[(bin(x) * 8 + bin(y)) * 8 + bin(jitter)] += 1;
    }
    assert_uniform("places and jitters", &counts);
}

/// Passes of one iteration draw different rays; the same pass draws the same ones.
#[test]
fn passes_are_decorrelated() {
    let setup = Small::default().setup(&Options::default());
    let (scene, sensor) = (&setup.resident.scene, &setup.resident.sensors[0]);
    let jitters = |pass: Pass| -> Vec<f64> {
        let key = keys(8, pass).pass;
        let jitter = |sample| sample_ray(scene, sensor, Pixel { sensor: 0, index: 0 }, key, sample).map(|s| s.jitter);
        (0..1 << 14)
            .map(|sample| f64::from(jitter(sample).expect("the camera sees all")) - 0.5)
            .collect()
    };
    let (primal, adjoint) = (jitters(Pass::Primal), jitters(Pass::Adjoint));
    assert_eq!(primal, jitters(Pass::Primal));
    // Correlation of n independent uniform numbers has a standard deviation of n^-1/2; 5 of them are allowed.
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let correlation = inner(&primal, &adjoint) / (inner(&primal, &primal) * inner(&adjoint, &adjoint)).sqrt();
    assert!(correlation.abs() < 5.0 / 128.0, "correlation {correlation}");
}

/// Weights of the linear loss: one for seed 0, uniform in [-1, 1) and independent between channels otherwise.
#[test]
fn random_weights_are_uniform() {
    assert!(matches!(Loss::Linear { seed: 0 }, Loss::Linear { seed } if linear_weight(seed, 17, 2) == 1.0));
    let mut counts = [0; 512];
    for index in 0..1 << 16 {
        let [r, g, b] = [0, 1, 2].map(|c| {
            let weight = linear_weight(5, index, c);
            assert!((-1.0..1.0).contains(&weight), "{weight}");
            ((weight + 1.0) * 4.0) as usize
        });
        counts[(r * 8 + g) * 8 + b] += 1;
    }
    assert_uniform("weights", &counts);
}

/// Cosines of Henyey–Greenstein's function are those at which its distribution function is the number drawn, to
/// rounding: the distribution of an isotropic one is off by up to 3 g / 4.
#[test]
fn cosines_of_henyey_greenstein_invert_its_distribution() {
    for g in [5e-4f32, 1e-3, 1e-2, 0.3, 0.9, 0.99].into_iter().flat_map(|g| [g, -g]) {
        let wide = f64::from(g);
        for i in 0..4096 {
            let u = (i as f32 + 0.5) / 4096.0;
            let cosine = f64::from(hg_sample(g, u));
            let root = (1.0 + wide * wide - 2.0 * wide * cosine).sqrt();
            let distribution = (1.0 - wide * wide) / (2.0 * wide) * (1.0 / root - 1.0 / (1.0 + wide));
            // The cosine is rounded, and what is left of it multiplied by the pdf.
            let pdf = 0.5 * (1.0 - wide * wide) / root.powi(3);
            let allowed = 2e-6 * (1.0 + pdf);
            let off = (distribution - f64::from(u)).abs();
            assert!(off < allowed, "g = {g}, u = {u}: {off} exceeds {allowed}");
        }
    }
    let cosines: Vec<f32> = (0..5).map(|i| hg_sample(0.0, i as f32 / 4.0)).collect();
    assert_eq!(cosines, [-1.0, -0.5, 0.0, 0.5, 1.0]);
}

/// Draws of such cosines: chi-square of 2²⁰ in 64 bins, which at g = 0.01 sees isotropic ones (an excess of 3 g² in each).
#[test]
fn cosines_of_henyey_greenstein_follow_its_pdf() {
    for g in [5e-4f32, 1e-3, 1e-2].into_iter().flat_map(|g| [g, -g]) {
        let wide = f64::from(g);
        let distribution = |cosine: f64| {
            let root = (1.0 + wide * wide - 2.0 * wide * cosine).sqrt();
            (1.0 - wide * wide) / (2.0 * wide) * (1.0 / root - 1.0 / (1.0 + wide))
        };
        let chi_square = |sample: &dyn Fn(f32) -> f32| {
            let mut counts = [0u32; 64];
            for i in 0..1 << 20 {
                let cosine = sample(small::draw(12, 0, i));
                counts[(((cosine + 1.0) * 32.0) as usize).min(63)] += 1;
            }
            let bins = counts.iter().enumerate();
            bins.map(|(i, n)| {
                let edge = |i: usize| i as f64 / 32.0 - 1.0;
                let expected = (distribution(edge(i + 1)) - distribution(edge(i))) * f64::from(1 << 20);
                (f64::from(*n) - expected).powi(2) / expected
            })
            .sum::<f64>()
        };
        let found = chi_square(&|u| hg_sample(g, u));
        assert!(found < bound(63), "g = {g}: chi-square {found}");
        if g.abs() >= 1e-2 {
            assert!(
                chi_square(&|u| 1.0 - 2.0 * u) > bound(63),
                "isotropic draws are not seen at g = {g}"
            );
        }
    }
}
