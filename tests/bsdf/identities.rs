//! What holds for every BSDF: weights, pdfs that integrate to one, reciprocity, energy, sides, and numbers at the edges.

use prbopt::transport::number::rgb::Rgb;
use prbopt::transport::scene::bsdf::local::Lobe;
use prbopt::transport::scene::bsdf::microfacet::Distribution;

use super::chi_square::{Draws, sphere_integral};
use super::models::{Kind, Model, directions, models};

#[test]
fn samples_have_the_pdf_and_the_weight_that_evaluation_gives() {
    for model in models() {
        for wi in directions(&[0.9, 0.3, -0.7, 0.02]) {
            let mut draws = Draws::new(3);
            for _ in 0..256 {
                let (u1, u2) = (draws.next(), [draws.next(), draws.next()]);
                let Some(sample) = model.sample(wi, u1, u2) else {
                    continue;
                };
                let wo = sample.direction;
                let length = wo.iter().map(|x| x * x).sum::<f32>();
                assert!(
                    (length - 1.0).abs() < 1e-5 && sample.pdf > 0.0,
                    "{}: {sample:?}",
                    model.label()
                );
                let smooth = sample.lobe == Lobe::Smooth;
                let value = if smooth {
                    assert_eq!(sample.pdf, model.pdf(wi, wo), "{}: {wi:?} {wo:?}", model.label());
                    model.eval(&model.parameters, wi, wo)
                } else {
                    model.discrete(&model.parameters, wi, sample.lobe)
                };
                let crosses = wo[2] * wi[2] < 0.0;
                let refracts =
                    crosses && matches!(model.kind, Kind::Dielectric | Kind::RoughDielectric | Kind::Principled);
                if refracts {
                    let eta = model.parameters[if model.kind == Kind::Principled { 7 } else { 0 }];
                    let it = if wi[2] > 0.0 { eta } else { 1.0 / eta };
                    assert!((sample.eta - it).abs() < 1e-6, "{}: {sample:?}", model.label());
                } else {
                    assert_eq!(sample.eta, 1.0, "{}: {sample:?}", model.label());
                }
                let weight = value.0.map(|x| x / sample.pdf);
                // Sampling all normals, not the visible ones alone, gives weights that grow at grazing angles; the base of a coat
                // that is rarely chosen, and a metal behind a lobe of small share, have weights above one.
                let bound = if model.visible { 8.0 } else { 200.0 };
                assert!(
                    weight.iter().all(|w| w.is_finite() && *w >= 0.0 && *w < bound),
                    "{}: {wi:?} {sample:?} {weight:?}",
                    model.label()
                );
            }
        }
    }
}

/// The integral of a pdf is the share of draws that give a smooth sample; the others are rejected or discrete.
#[test]
fn pdfs_integrate_to_the_share_of_samples_that_are_kept() {
    for model in models()
        .into_iter()
        .filter(|model| model.has_smooth_lobe() && !model.is_peaked())
    {
        for wi in directions(&[0.95, 0.4, -0.6, 0.1]) {
            let total = sphere_integral(128, |wo| f64::from(model.pdf(wi, wo)));
            let count = 1 << 14;
            let mut draws = Draws::new(5);
            let mut kept = 0;
            for _ in 0..count {
                let sample = model.sample(wi, draws.next(), [draws.next(), draws.next()]);
                kept += u32::from(sample.is_some_and(|sample| sample.lobe == Lobe::Smooth));
            }
            let share = f64::from(kept) / f64::from(count);
            let deviation = (share * (1.0 - share) / f64::from(count)).sqrt();
            // Beckmann's shadowing is a fit, right to half a percent.
            let fit = if model.distribution == Distribution::Beckmann {
                8e-3
            } else {
                2e-3
            };
            assert!(
                (total - share).abs() < 5.0 * deviation + fit,
                "{}, {wi:?}: {total}, not {share}",
                model.label()
            );
        }
    }
}

/// Reciprocity of the physical models, to 1e-6: f(wi, wo) / η² is symmetric, with f the value over the cosine and η the index on
/// the side of wo.
#[test]
fn light_takes_the_same_way_back() {
    use Kind::*;
    for model in models() {
        if !matches!(model.kind, RoughConductor | RoughDielectric | Plastic | RoughPlastic) {
            continue;
        }
        let all = directions(&[0.9, 0.4, 0.1, -0.8, -0.2]);
        let p = model.lifted::<f64>();
        for &wi in &all {
            for &wo in &all {
                // Radiance on a side is proportional to the square of its index.
                let scale = |to: [f32; 3]| if to[2] < 0.0 { p[0] * p[0] } else { 1.0 };
                let [there, back] = [(wi, wo), (wo, wi)].map(|(i, o)| {
                    let f = model.eval(&p, i, o)[0] / f64::from(o[2].abs());
                    if model.kind == RoughDielectric { f / scale(i) } else { f }
                });
                assert!(
                    (there - back).abs() <= 1e-6 * (there + back) + 1e-12,
                    "{}: {wi:?} {wo:?}: {there} and {back}",
                    model.label()
                );
            }
        }
    }
}

/// Energy: rough models reflect and transmit at most what arrives, to 0.5 %; smooth and thin glass exactly that, to 1e-12.
#[test]
fn energy_is_kept() {
    for distribution in [Distribution::Beckmann, Distribution::Ggx] {
        for alpha in [0.1, 0.5] {
            let mirror = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, alpha, alpha];
            let glass = [1.5, alpha, alpha, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
            let plastic = [1.5, alpha, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
            for (kind, p, least) in [
                (Kind::RoughConductor, &mirror[..], 0.6),
                (Kind::RoughDielectric, &glass, 0.6),
                (Kind::RoughPlastic, &plastic, 0.3),
            ] {
                let model = Model::new(kind, p).with(distribution, true);
                for wi in directions(&[0.9, 0.5, 0.2]) {
                    let sum = sphere_integral(160, |wo| {
                        let value = f64::from(model.eval(&model.parameters, wi, wo)[1]);
                        // The value is that of radiance, 1/η² of the flux where light is refracted.
                        if wo[2] < 0.0 { value * 2.25 } else { value }
                    });
                    assert!(sum < 1.005 && sum > least, "{}, {wi:?}: {sum}", model.label());
                }
            }
        }
    }
    let glass = Model::new(Kind::Dielectric, &[1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let thin = Model::new(Kind::ThinDielectric, &[1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    for wi in directions(&[0.9, 0.5, 0.2, -0.9, -0.2]) {
        let factor = |model: &Model, lobe| model.discrete(&model.lifted::<f64>(), wi, lobe)[0];
        let gathered = if wi[2] > 0.0 { 2.25 } else { 1.0 / 2.25 };
        let sum = factor(&glass, Lobe::Reflection) + factor(&glass, Lobe::Transmission) * gathered;
        assert!((sum - 1.0).abs() < 1e-12, "{wi:?}: {sum}");
        let sum = factor(&thin, Lobe::Reflection) + factor(&thin, Lobe::Null);
        assert!((sum - 1.0).abs() < 1e-12, "{wi:?}: {sum}");
    }
}

#[test]
fn backs_are_black() {
    for model in models().into_iter().filter(|model| !model.is_two_sided()) {
        let (up, down) = ([0.6, 0.0, 0.8], [0.0, 0.6, -0.8]);
        for (wi, wo) in [
            (up, down),
            (down, up),
            (down, down),
            ([1.0, 0.0, 0.0], up),
            (up, [1.0, 0.0, 0.0]),
        ] {
            assert_eq!(model.eval(&model.parameters, wi, wo), Rgb::zero(), "{}", model.label());
            assert_eq!(model.pdf(wi, wo), 0.0, "{}", model.label());
            let gradient = model.eval_adjoint(&model.parameters, wi, wo, Rgb([1.0; 3]));
            assert!(gradient.iter().all(|g| *g == 0.0), "{}", model.label());
        }
        assert!(model.sample(down, 0.3, [0.2, 0.7]).is_none(), "{}", model.label());
        for lobe in [Lobe::Reflection, Lobe::Transmission, Lobe::Null] {
            assert_eq!(model.discrete(&model.parameters, down, lobe), Rgb::zero());
        }
    }
}

/// At the bounds of parameters, draws and directions all numbers are finite, and samples unit vectors.
#[test]
fn edges_are_numbers() {
    let edge = |kind: Kind| -> Vec<Vec<f32>> {
        let rgb = |x: f32| [x; 3];
        let mut all = Vec::new();
        for (x, eta) in [
            (0.0f32, 1.0f32),
            (1.0, 1.0),
            (0.0, 1.5),
            (1.0, 2.4),
            (1.0, 0.5),
            (0.5, 1.0001),
        ] {
            for alpha in [0.0, 1e-4, 1.0] {
                all.push(match kind {
                    Kind::Conductor => [rgb(eta - 1.0), rgb(x), rgb(x)].concat(),
                    Kind::RoughConductor => [&rgb(eta)[..], &rgb(x), &rgb(x), &[alpha, alpha]].concat(),
                    Kind::Dielectric | Kind::ThinDielectric => [&[eta][..], &rgb(x), &rgb(x)].concat(),
                    Kind::RoughDielectric => [&[eta, alpha, alpha][..], &rgb(x), &rgb(x)].concat(),
                    Kind::Plastic => [&[eta][..], &rgb(x), &rgb(x)].concat(),
                    Kind::RoughPlastic => [&[eta, alpha][..], &rgb(x), &rgb(x)].concat(),
                    Kind::Principled => {
                        let eta = eta.max(1.0);
                        [&rgb(x)[..], &[alpha, x, 1.0 - x, x, eta, x, x, x, x, x, x]].concat()
                    }
                    Kind::PrincipledThin => [&rgb(x)[..], &[alpha, x, x, eta.max(1.0), x, x, x, x, 2.0 * x]].concat(),
                });
            }
        }
        all
    };
    let mut all = directions(&[1.0, 0.5, 1e-4, 1e-20, -1.0, -1e-3]);
    all.extend([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]);
    for kind in Kind::ALL {
        for p in edge(kind) {
            for distribution in [Distribution::Beckmann, Distribution::Ggx] {
                let model = Model::new(kind, &p).with(distribution, p[0] > 0.2);
                for &wi in &all {
                    for &wo in all.iter().chain(&[wi.map(|x| -x), [-wi[0], -wi[1], wi[2]]]) {
                        check(&model, wi, wo);
                    }
                    for u in [
                        [0.0; 3],
                        [0.999_999_94; 3],
                        [0.5; 3],
                        [0.2, 0.0, 0.999_999_94],
                        [0.9, 0.5, 0.0],
                    ] {
                        if let Some(sample) = model.sample(wi, u[0], [u[1], u[2]]) {
                            let length: f32 = sample.direction.iter().map(|x| x * x).sum();
                            let sound = (length - 1.0).abs() < 1e-4 && sample.pdf > 0.0 && sample.pdf.is_finite();
                            assert!(sound, "{}, {wi:?}, {u:?}: {sample:?}", model.label());
                            check(&model, wi, sample.direction);
                        }
                    }
                }
            }
        }
    }
}

fn check(model: &Model, wi: [f32; 3], wo: [f32; 3]) {
    let (p, d) = (&model.parameters[..], Rgb([1.0; 3]));
    let mut numbers = model.eval(p, wi, wo).0.to_vec();
    numbers.push(model.pdf(wi, wo));
    let positive = numbers.iter().all(|x| *x >= 0.0);
    numbers.extend(model.eval_adjoint(p, wi, wo, d));
    for lobe in [Lobe::Reflection, Lobe::Transmission, Lobe::Null] {
        numbers.extend(model.discrete(p, wi, lobe).0);
        numbers.extend(model.discrete_adjoint(p, wi, lobe, d));
    }
    assert!(
        positive && numbers.iter().all(|x| x.is_finite()),
        "{}: {wi:?} {wo:?}: {numbers:?}",
        model.label()
    );
}
