//! Closed derivatives against dual numbers and central differences in f64, and in f32 against f64.

use prbopt::transport::number::Number;
use prbopt::transport::number::dual::Dual;
use prbopt::transport::number::rgb::Rgb;
use prbopt::transport::scene::bsdf::local::{Lobe, lift, outer};
use prbopt::transport::scene::bsdf::microfacet::{Distribution, MIN_ALPHA};
use prbopt::transport::scene::bsdf::principled::{eta_of_specular, eta_of_specular_slope};
use prbopt::transport::scene::bsdf::transmittance::{ENTRIES, TransmittanceTable};

use super::models::{Kind, Model, directions, models};

/// Weights of the channels in the number that is differentiated.
const WEIGHTS: [f32; 3] = [0.7, -0.4, 1.1];

/// A value, or the factor of a lobe, as a function of the parameters: weighted, in any number.
#[derive(Debug, Clone, Copy)]
enum Place {
    Smooth([f32; 3], [f32; 3]),
    Discrete([f32; 3], Lobe),
}

fn channels<N: Number>(model: &Model, place: Place, p: &[N]) -> Rgb<N> {
    match place {
        Place::Smooth(wi, wo) => model.eval(p, wi, wo),
        Place::Discrete(wi, lobe) => model.discrete(p, wi, lobe),
    }
}

fn weighted<N: Number>(model: &Model, place: Place, p: &[N]) -> N {
    (channels(model, place, p) * Rgb::lift(WEIGHTS)).sum()
}

fn adjoint<N: Number>(model: &Model, place: Place, p: &[N]) -> Vec<N> {
    let d = Rgb::lift(WEIGHTS);
    match place {
        Place::Smooth(wi, wo) => model.eval_adjoint(p, wi, wo, d),
        Place::Discrete(wi, lobe) => model.discrete_adjoint(p, wi, lobe, d),
    }
}

/// The derivative by parameter `i` by a dual number.
fn dual(model: &Model, place: Place, i: usize) -> f64 {
    let mut p = model.lifted::<Dual>();
    p[i].slope = 1.0;
    weighted(model, place, &p).slope
}

/// Pairs of directions: on both sides, grazing, and such that nearly mirror or refract each other.
fn places(model: &Model) -> Vec<Place> {
    let all = directions(&[0.95, 0.5, 0.08, -0.9, -0.3, 0.999, 1e-3]);
    let mut places = Vec::new();
    for &wi in &all {
        let near = |bend: f32, side: f32| {
            let [x, y, z] = [0.03 - bend * wi[0], -0.02 - bend * wi[1], 0.0];
            let rest = (1.0 - x * x - y * y).max(0.01).sqrt();
            let length = (x * x + y * y + rest * rest).sqrt();
            [x / length, y / length, z + side * wi[2].signum() * rest / length]
        };
        let more = [near(1.0, 1.0), near(0.7, -1.0), near(1.4, -1.0)];
        places.extend(all.iter().chain(&more).map(|wo| Place::Smooth(wi, *wo)));
        places.extend(model.lobes().iter().map(|lobe| Place::Discrete(wi, *lobe)));
    }
    places
}

/// The scale of an allowed error: the derivative itself, plus a thousandth of the value, as parts of a derivative may cancel.
fn size(model: &Model, place: Place, exact: f64) -> f64 {
    let value: f64 = channels(model, place, &model.lifted::<f64>()).0.iter().sum();
    exact.abs() + 1e-3 * value.abs() + 1e-12
}

#[test]
fn closed_derivatives_are_those_of_dual_numbers() {
    let mut compared = 0;
    for model in models() {
        for place in places(&model) {
            let closed = adjoint(&model, place, &model.lifted::<f64>());
            for (i, closed) in closed.iter().enumerate() {
                let exact = dual(&model, place, i);
                // A root of the base colour has an infinite slope at zero, which is not compared.
                let rooted = model.kind == Kind::Principled && i < 3 && model.parameters[i] == 0.0;
                if rooted && !exact.is_finite() {
                    continue;
                }
                let off = (closed - exact).abs();
                assert!(
                    off <= 1e-9 * size(&model, place, exact),
                    "{}, {place:?}, parameter {i}: {closed}, not {exact}",
                    model.label()
                );
                compared += usize::from(exact != 0.0);
            }
        }
    }
    assert!(compared > 4000, "only {compared} derivatives are not zero");
}

#[test]
fn dual_numbers_are_central_differences() {
    let mut compared = 0;
    for model in models() {
        for place in places(&model) {
            for i in 0..model.parameters.len() {
                let exact = dual(&model, place, i);
                let p = model.lifted::<f64>();
                // Not at the bounds of a parameter's range, where the value has a corner, nor by parameters of a rough plastic's
                // table, whose derivatives are tested below.
                let table = model.kind == Kind::RoughPlastic && i < 2;
                let bound = p[i] == 0.0 || (p[i] - 1.0).abs() < 1e-6 || !exact.is_finite();
                if table || bound {
                    continue;
                }
                let at = |x: f64| {
                    let mut p = p.clone();
                    p[i] = x;
                    weighted(&model, place, &p)
                };
                let h = 1e-3 * p[i].abs();
                let difference = |h: f64| (at(p[i] + h) - at(p[i] - h)) / (2.0 * h);
                // Richardson's extrapolation, whose own error is judged by one of half the step.
                let estimate = |h: f64| (4.0 * difference(0.5 * h) - difference(h)) / 3.0;
                let (coarse, fine) = (estimate(h), estimate(0.25 * h));
                let off = (fine - exact).abs();
                let rounding = 4.0 * f64::EPSILON * at(p[i]).abs() / (0.25 * h);
                let allowed = 1e-7 * size(&model, place, exact) + rounding + (fine - coarse).abs();
                assert!(
                    off <= allowed,
                    "{}, {place:?}, parameter {i}: {exact}, not {fine}",
                    model.label()
                );
                compared += usize::from(exact != 0.0 && (fine - coarse).abs() < 1e-6 * exact.abs());
            }
        }
    }
    assert!(
        compared > 2500,
        "only {compared} derivatives are not zero and well known"
    );
}

/// A direction turned about an axis, as dual numbers: the slope is by the angle.
fn turned(v: [f32; 3], axis: usize) -> [Dual; 3] {
    let mut slopes = [0.0; 3];
    let [a, b] = [(axis + 1) % 3, (axis + 2) % 3];
    slopes[a] = -f64::from(v[b]);
    slopes[b] = f64::from(v[a]);
    [0, 1, 2].map(|k| Dual::new(f64::from(v[k]), slopes[k]))
}

#[test]
fn gradients_are_the_derivatives_of_dual_numbers_that_turn() {
    let mut compared = [[0; 3]; 2];
    for model in models() {
        for place in places(&model) {
            let Place::Smooth(wi, wo) = place else { continue };
            let directions = [wi, wo];
            let about = |by: [[f64; 3]; 2]| [0, 1].map(|k| outer(directions[k].map(f64::from), by[k]));
            let wide = about(model.gradients(&model.lifted::<f64>(), wi, wo, Rgb::lift(WEIGHTS)));
            let narrow = model.gradients(&model.parameters, wi, wo, Rgb::lift(WEIGHTS));
            let narrow = about(narrow.map(|by| by.map(f64::from)));
            let value: f64 = channels(&model, place, &model.lifted::<f64>())
                .0
                .iter()
                .map(|x| x.abs())
                .sum();
            // The parts of the gradients cancel about the axis of symmetry.
            let size = wide.as_flattened().iter().map(|x| x.abs()).sum::<f64>() + value + 1e-9;
            // One direction turns about an axis, the other stays.
            for (k, axis) in (0..6).map(|i| (i / 3, i % 3)) {
                let p = model.lifted::<Dual>();
                let mut moved = directions.map(lift);
                moved[k] = turned(directions[k], axis);
                let along = model.eval_along(&p, moved[0], moved[1]);
                let exact = (along * Rgb::lift(WEIGHTS)).sum().slope;
                let found = format!("{}, {place:?}, direction {k}, axis {axis}", model.label());
                let (wide, narrow) = (wide[k][axis], narrow[k][axis]);
                assert!((wide - exact).abs() <= 1e-5 * size, "{found}: {wide}, not {exact}");
                assert!(
                    (narrow - wide).abs() <= 1e-3 * size,
                    "{found}: {narrow}, not {wide} in f32"
                );
                compared[k][axis] += usize::from(exact.abs() > 1e-3 * value);
            }
        }
    }
    println!("turns of either direction about x, y, z: {compared:?}");
    assert!(compared.as_flattened().iter().all(|count| *count > 40), "{compared:?}");
}

/// f32 against f64. Where parts cancel, as 1 - F at grazing angles or the slope of a density at its mean, the error is
/// that of the parts.
#[test]
fn f32_derivatives_are_those_of_f64() {
    let (mut worst, mut compared) = (0.0f64, 0);
    for model in models() {
        for place in places(&model) {
            let (narrow, wide) = (
                adjoint(&model, place, &model.parameters),
                adjoint(&model, place, &model.lifted::<f64>()),
            );
            let value: f64 = channels(&model, place, &model.lifted::<f64>()).0.iter().sum();
            for (i, (narrow, wide)) in narrow.iter().zip(&wide).enumerate() {
                // The parts of a logarithmic derivative by a roughness are as large as the value over the roughness.
                let scale = wide.abs() + value.abs() / f64::from(model.parameters[i].abs()).max(0.1) + 1e-6;
                let off = (f64::from(*narrow) - wide).abs() / scale;
                assert!(
                    off < 1e-4,
                    "{}, {place:?}, parameter {i}: {narrow}, not {wide}",
                    model.label()
                );
                worst = worst.max(off);
                compared += 1;
            }
        }
    }
    println!("f32 derivatives: {compared}, worst {worst:.1e}");
}

/// Derivatives of tables by roughness against differences of tables, to 1.2 % of their norm plus 0.03. The steps are so long that
/// the jumps of quadrature nodes past the critical angle or the horizon average out.
#[test]
fn tables_have_derivatives_too() {
    for distribution in [Distribution::Beckmann, Distribution::Ggx] {
        for alpha in [0.2, 0.5] {
            let table = |alpha: f64| TransmittanceTable::new(distribution, alpha, 1.49).rows;
            let h = 0.05 * alpha;
            let (exact, above, below) = (table(alpha), table(alpha + h), table(alpha - h));
            let differences: Vec<f64> = (0..=ENTRIES).map(|i| (above[i][0] - below[i][0]) / (2.0 * h)).collect();
            let norm = |values: &dyn Fn(usize) -> f64| (0..ENTRIES).map(|i| values(i).powi(2)).sum::<f64>().sqrt();
            let (off, size) = (norm(&|i| exact[i][1] - differences[i]), norm(&|i| differences[i]));
            let inside = exact[ENTRIES][1] / differences[ENTRIES];
            println!("{distribution:?} {alpha}: {off:.1e} of {size:.1e}, inside {inside:.3}");
            assert!(off < 0.012 * size + 0.03, "{distribution:?} {alpha}: {off} of {size}");
            assert!((inside - 1.0).abs() < 0.1, "{distribution:?} {alpha}: {inside}");
        }
    }
}

/// Derivatives of the reflectance of diffuse light from inside by the index, against least squares through tables of indices so
/// far apart that the ripples of the quadrature average out, to 1.5 %.
#[test]
fn tables_have_derivatives_by_the_index() {
    for distribution in [Distribution::Beckmann, Distribution::Ggx] {
        for alpha in [0.1, 0.2, 0.4] {
            let inside = |eta: f64| TransmittanceTable::new(distribution, alpha, eta).rows[ENTRIES];
            // The slope of the parabola of least squares in the middle of fifteen tables.
            let slope = |eta: f64| {
                let steps = (-7..=7).map(|k| (f64::from(k), inside(eta + 0.02 * f64::from(k))[0]));
                let (sum, square) = steps.fold((0.0, 0.0), |(sum, square), (k, y)| (sum + k * y, square + k * k));
                sum / (square * 0.02)
            };
            for eta in [1.49, 1.5, 1.51, 1.55, 1.57] {
                let ratio = inside(eta)[2] / slope(eta);
                assert!((ratio - 1.0).abs() < 0.015, "{distribution:?} {alpha} {eta}: {ratio}");
            }
        }
    }
}

/// The base under a rough coat gets darker as the coat gets rougher; a derivative that took the table for a constant would miss
/// that.
#[test]
fn the_derivative_by_a_plastics_roughness_has_the_tables_part() {
    let model = Model::new(Kind::RoughPlastic, &[1.5, 0.3, 0.8, 0.8, 0.8, 0.0, 0.0, 0.0]);
    let [wi, wo] = [[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]];
    let slope = model.eval_adjoint(&model.lifted::<f64>(), wi, wo, Rgb([1.0; 3]))[1];
    let value = |alpha: f32| {
        let mut model = model.clone();
        model.parameters[1] = alpha;
        let model = model.with_table();
        model.eval(&model.lifted::<f64>(), wi, wo).sum()
    };
    let step = 1.0 / 128.0;
    let difference = (value(0.3 + step) - value(0.3 - step)) / f64::from((0.3 + step) - (0.3 - step));
    assert!(slope < -0.05, "{slope}");
    assert!((slope / difference - 1.0).abs() < 1e-2, "{slope}, not {difference}");
}

#[test]
fn a_clamped_roughness_has_no_derivative() {
    let gold = [0.143, 0.3753, 1.4421, 3.983, 2.3856, 1.6034, 1.0, 1.0, 1.0];
    let wi = [0.6, 0.0, 0.8];
    for (alpha, moves) in [(0.5 * MIN_ALPHA, false), (MIN_ALPHA, true), (2.0 * MIN_ALPHA, true)] {
        for distribution in [Distribution::Beckmann, Distribution::Ggx] {
            let p = [&gold[..], &[alpha, alpha]].concat();
            let model = Model::new(Kind::RoughConductor, &p).with(distribution, true);
            let wo = [-0.6 + 0.3 * alpha, 0.0, 0.8];
            for g in [9, 10] {
                let slope = model.eval_adjoint(&model.parameters, wi, wo, Rgb([1.0; 3]))[g];
                assert!(slope.is_finite());
                assert_eq!(slope != 0.0, moves, "alpha {alpha}, {distribution:?}: {slope}");
            }
        }
    }
}

/// At a factor of zero the value is zero, but not its derivative by that factor.
#[test]
fn zero_factors_have_derivatives() {
    let (wi, wo) = ([0.6, 0.0, 0.8], [-0.5, 0.1, 0.86]);
    let d = Rgb([1.0f32; 3]);
    let black = Model::new(Kind::Plastic, &[1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let p = &black.parameters[..];
    assert_eq!(black.eval(p, wi, wo), Rgb::zero());
    assert!(black.eval_adjoint(p, wi, wo, d)[1..4].iter().all(|g| *g > 0.1));
    assert!(
        black.discrete_adjoint(p, wi, Lobe::Reflection, d)[4..]
            .iter()
            .all(|g| *g > 0.01)
    );
    let metal = Model::new(
        Kind::Principled,
        &[0.5, 0.5, 0.5, 0.4, 0.0, 1.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5],
    );
    let gradient = metal.eval_adjoint(&metal.parameters, wi, wo, d);
    assert!(gradient[12] > 0.0 && gradient[5] != 0.0, "{gradient:?}");
    // Without a difference of the indices nothing is reflected, and the reflectance has its least value.
    let air = Model::new(Kind::Dielectric, &[1.0; 7]);
    assert_eq!(air.discrete(&air.parameters, wi, Lobe::Reflection), Rgb::zero());
    assert_eq!(air.discrete_adjoint(&air.parameters, wi, Lobe::Reflection, d)[0], 0.0);
}

#[test]
fn indices_follow_from_reflectances() {
    for specular in [0.0f64, 0.1, 0.5, 1.0] {
        let eta = eta_of_specular(specular);
        let reflectance = ((eta - 1.0) / (eta + 1.0)).powi(2);
        assert!(
            (reflectance - f64::from(0.08f32) * specular).abs() < 1e-12,
            "{specular}: {eta}"
        );
        if specular > 0.0 {
            let exact = eta_of_specular(Dual::new(specular, 1.0)).slope;
            assert!((eta_of_specular_slope(specular) - exact).abs() < 1e-12);
        }
    }
}
