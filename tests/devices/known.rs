//! Results that each device must compute and that can be written down: two devices with the same mistake would agree.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::{ArrayKind, Batch, Device, Step, Term};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::kernels::regularizer::Penalty;
use prbopt::params::Kind;
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::Pass;

use super::{gpu, keys};

/// The CPU, and the first adapter if there is one.
fn devices() -> Vec<Box<dyn Device>> {
    let mut all: Vec<Box<dyn Device>> = vec![Box::new(Cpu::new())];
    if let Some(gpu) = gpu(Options::default()) {
        all.push(Box::new(gpu));
    }
    all
}

fn resident(text: &str) -> (Resident, prbopt::params::ParamSet) {
    let scene = scene::parse(text, Path::new("known.json")).unwrap_or_else(|mistakes| panic!("{mistakes}\nin {text}"));
    Resident::new(&scene).expect("sound")
}

const LEARNING_RATE: f64 = 0.25;
/// Texels of the density and of the coefficients, of which a texel has three.
const SIZES: [[usize; 3]; 2] = [[5, 4, 6], [3, 5, 2]];

/// A field whose grids are both optimised, their values a function of the entry's index; between passes over rays the
/// coefficients may be of another kind.
fn load(device: &mut dyn Device, optimizer: Optimizer, coefficients: Kind) {
    let [sigma, sh] = SIZES;
    let text = format!(
        r#"{{"object": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{
                "type": "radiance_field", "sh_degree": 0,
                "sigma_t": {{"type": "gridvolume", "resolution": {sigma:?}, "value": 1}},
                "sh_coeffs": {{"type": "gridvolume", "resolution": {sh:?}, "value": [1, 1, 1]}}}}}},
            "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
            "optimize": {{
                "parameters": {{
                    "object.interior.sigma_t": {{"learning_rate": {LEARNING_RATE}, "bounds": [-100, 100]}},
                    "object.interior.sh_coeffs": {{"learning_rate": {LEARNING_RATE}, "bounds": [-100, 100]}}}},
                "references": {{"type": "constant", "value": 0.5}}, "iterations": 1}}}}"#
    );
    let (resident, mut params) = resident(&text);
    for (i, parameter) in params.parameters.iter_mut().enumerate() {
        assert_eq!(parameter.shape.size, SIZES[i], "{}", parameter.path);
        let len = parameter.shape.len();
        parameter.values = made_up(len, i);
    }
    params.parameters[1].kind = coefficients;
    device.load(resident, params, optimizer).expect("it fits");
}

/// Numbers between -1 and 1 in no order.
fn made_up(len: usize, which: usize) -> Vec<f32> {
    (0..len)
        .map(|i| ((i as f32 + 0.37) * (which as f32 + 1.3)).sin())
        .collect()
}

fn assert_near(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(*a) - b).abs() <= tolerance,
            "{what}, entry {i}: {a}, not {b}"
        );
    }
}

/// The value at the texel `at` of `to` as two texels of `from` and a weight: linear between centres, constant beyond them. Of an
/// environment map columns go round, and the first and the last row are the ends.
fn between(kind: Kind, axis: usize, from: usize, at: usize, to: usize) -> (usize, usize, f64) {
    let x = (at as f64 + 0.5) / to as f64 * from as f64 - 0.5;
    let last = from as f64 - 1.0;
    match (kind, axis) {
        (Kind::Envmap, 0) => {
            let column = |x: f64| (x + from as f64) as usize % from;
            (column(x.floor()), column(x.floor() + 1.0), x - x.floor())
        }
        (Kind::Envmap, 1) => linear(at as f64 * last / (to as f64 - 1.0), from),
        _ => linear(x.clamp(0.0, last), from),
    }
}

fn linear(x: f64, texels: usize) -> (usize, usize, f64) {
    let low = (x as usize).min(texels.saturating_sub(2));
    (low, (low + 1).min(texels - 1), x - low as f64)
}

fn interpolated(kind: Kind, data: &[f32], from: [usize; 3], channels: usize, to: [usize; 3]) -> Vec<f64> {
    let mut out = Vec::new();
    for z in 0..to[2] {
        for y in 0..to[1] {
            for x in 0..to[0] {
                let at = [x, y, z];
                let axes = [0, 1, 2].map(|a| between(kind, a, from[a], at[a], to[a]));
                for c in 0..channels {
                    let mut sum = 0.0;
                    for corner in 0..8 {
                        let pick = |a: usize| match corner >> a & 1 {
                            0 => (axes[a].0, 1.0 - axes[a].2),
                            _ => (axes[a].1, axes[a].2),
                        };
                        let [(x, wx), (y, wy), (z, wz)] = [pick(0), pick(1), pick(2)];
                        let texel = (z * from[1] + y) * from[0] + x;
                        sum += wx * wy * wz * f64::from(data[texel * channels + c]);
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}

/// Resampling between stages against linear interpolation in f64, to 2e-6: values and both moments, finer by odd ratios, coarser
/// along one axis; or with moments that are reset.
#[test]
fn values_and_moments_are_interpolated_between_stages() {
    let adam = Optimizer::Adam {
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-8,
        mask_updates: false,
    };
    let sizes = [[15, 3, 7], [8, 9, 6]];
    for mut device in devices() {
        for (keep, kind) in [(true, Kind::Grid), (false, Kind::Grid), (true, Kind::Envmap)] {
            load(&mut *device, adam, kind);
            let mut before = Vec::new();
            for i in 0..2 {
                let values = device.read(i, ArrayKind::Values).expect("values");
                let moments = [0, 1].map(|m| made_up(values.len(), 2 + 2 * i + m));
                for (m, moment) in moments.iter().enumerate() {
                    device.write(i, ArrayKind::Moment(m), moment).expect("moments");
                }
                let [first, second] = moments;
                before.push([values, first, second]);
            }
            device.resample(&[(0, sizes[0]), (1, sizes[1])], keep).expect("it fits");
            for (i, before) in before.iter().enumerate() {
                let channels = [1, 3][i];
                for (array, what) in [ArrayKind::Values, ArrayKind::Moment(0), ArrayKind::Moment(1)]
                    .into_iter()
                    .enumerate()
                {
                    let mut expected =
                        interpolated([Kind::Grid, kind][i], &before[array], SIZES[i], channels, sizes[i]);
                    if array > 0 && !keep {
                        expected.fill(0.0);
                    }
                    let found = device.read(i, what).expect("an array");
                    let label = format!(
                        "{:?}, {what:?} of parameter {i}, kept: {keep}, {kind:?}",
                        device.info().kind
                    );
                    assert_near(&found, &expected, 2e-6, &label);
                }
            }
        }
    }
}

/// Values and moments after four steps by given gradients, against the optimisers' recurrences in f64, to 1e-5. The schedule's
/// factor is a half.
#[test]
fn steps_follow_the_recurrences() {
    let adam = Optimizer::Adam {
        beta_1: 0.8,
        beta_2: 0.95,
        epsilon: 1e-2,
        mask_updates: false,
    };
    let sgd = Optimizer::Sgd { momentum: 0.7 };
    let rmsprop = Optimizer::RmsProp {
        decay: 0.9,
        epsilon: 1e-2,
    };
    let rate = 0.5 * LEARNING_RATE;
    for mut device in devices() {
        for optimizer in [adam, sgd, rmsprop] {
            load(&mut *device, optimizer, Kind::Grid);
            let len = SIZES[0].iter().product();
            let start = made_up(len, 0);
            let mut state: Vec<[f64; 3]> = start.iter().map(|x| [f64::from(*x), 0.0, 0.0]).collect();
            for count in 1..=4u32 {
                let gradient = made_up(len, 5 + count as usize);
                device.write(0, ArrayKind::Gradient, &gradient).expect("a gradient");
                let step = Step {
                    optimizer,
                    rate: 0.5,
                    count,
                };
                let norms = device.step(&step).expect("finite");
                let squares: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum();
                assert!(
                    (norms[0] / squares.sqrt() - 1.0).abs() < 1e-5 && norms[1] == 0.0,
                    "{norms:?}"
                );
                let t = count as i32;
                for ([x, m, v], g) in state.iter_mut().zip(gradient.iter().map(|g| f64::from(*g))) {
                    match optimizer {
                        Optimizer::Adam { .. } => {
                            *m = 0.8 * *m + 0.2 * g;
                            *v = 0.95 * *v + 0.05 * g * g;
                            let (m, v) = (*m / (1.0 - 0.8f64.powi(t)), *v / (1.0 - 0.95f64.powi(t)));
                            *x -= rate * m / (v.sqrt() + 1e-2);
                        }
                        Optimizer::Sgd { .. } => {
                            *m = 0.7 * *m + g;
                            *x -= rate * *m;
                        }
                        Optimizer::RmsProp { .. } => {
                            *m = 0.9 * *m + 0.1 * g * g;
                            *x -= rate * g / (m.sqrt() + 1e-2);
                        }
                    }
                }
                let left = device.read(0, ArrayKind::Gradient).expect("a gradient");
                assert!(left.iter().all(|g| *g == 0.0), "gradients are zero after a step");
            }
            let label = format!("{}, {optimizer:?}", device.info().kind);
            let expected = |k: usize| state.iter().map(|s| s[k]).collect::<Vec<_>>();
            assert_near(
                &device.read(0, ArrayKind::Values).expect("values"),
                &expected(0),
                1e-5,
                &label,
            );
            for moment in 0..optimizer.moments() {
                let found = device.read(0, ArrayKind::Moment(moment)).expect("a moment");
                assert_near(&found, &expected(1 + moment), 1e-5, &label);
            }
        }
    }
}

/// The gradient of a penalty reaches texels that no ray has seen: a step moves them by rate · dP/dx, P in f64.
#[test]
fn penalties_move_what_no_ray_has_touched() {
    let optimizer = Optimizer::Sgd { momentum: 0.0 };
    for mut device in devices() {
        for (parameter, penalty, kind) in [
            (0, Penalty::Sparsity, Kind::Grid),
            (0, Penalty::TotalVariation, Kind::Grid),
            (1, Penalty::TotalVariation, Kind::Grid),
            (1, Penalty::TotalVariation, Kind::Envmap),
        ] {
            load(&mut *device, optimizer, kind);
            let before = device.read(parameter, ArrayKind::Values).expect("values");
            let weight = 3.0f32;
            let term = Term {
                parameter,
                penalty,
                weight,
            };
            let value = device.regularise(&[term]).expect("a penalty");
            let (expected, slope) = match penalty {
                Penalty::Sparsity => sparsity(&before),
                Penalty::TotalVariation => total_variation(&before, SIZES[parameter], [1, 3][parameter], kind),
            };
            let label = format!("{}, {penalty:?} of parameter {parameter}, {kind:?}", device.info().kind);
            assert!(
                (value / (3.0 * expected) - 1.0).abs() < 1e-5,
                "{label}: {value}, not {}",
                3.0 * expected
            );
            let step = Step {
                optimizer,
                rate: 1.0,
                count: 1,
            };
            let norms = device.step(&step).expect("finite");
            let norm = 3.0 * slope.iter().map(|g| g * g).sum::<f64>().sqrt();
            assert!(
                (norms[parameter] / norm - 1.0).abs() < 1e-4,
                "{label}: {norms:?}, not {norm}"
            );
            let after = device.read(parameter, ArrayKind::Values).expect("values");
            let moved: Vec<f64> = before
                .iter()
                .zip(&slope)
                .map(|(x, g)| f64::from(*x) - LEARNING_RATE * 3.0 * g)
                .collect();
            assert_near(&after, &moved, 1e-6, &label);
        }
    }
}

/// Mean of ln(1 + 2 max(x, 0)²) and its gradient.
fn sparsity(values: &[f32]) -> (f64, Vec<f64>) {
    let n = values.len() as f64;
    let positive = || values.iter().map(|x| f64::from(x.max(0.0)));
    let mean = positive().map(|x| (1.0 + 2.0 * x * x).ln()).sum::<f64>() / n;
    (mean, positive().map(|x| 4.0 * x / (1.0 + 2.0 * x * x) / n).collect())
}

/// Mean of sqrt(|forward differences|² + 10⁻⁶) - 10⁻³ and its gradient. Behind the last column of an environment map is the first.
fn total_variation(values: &[f32], size: [usize; 3], channels: usize, kind: Kind) -> (f64, Vec<f64>) {
    let n = values.len() as f64;
    let strides = [channels, size[0] * channels, size[0] * size[1] * channels];
    let (mut sum, mut gradient) = (0.0, vec![0.0; values.len()]);
    for i in 0..values.len() {
        let next = [0, 1, 2].map(|a| match i / strides[a] % size[a] + 1 {
            next if next < size[a] => i + strides[a],
            _ if a == 0 && kind == Kind::Envmap => i - (size[a] - 1) * strides[a],
            _ => i,
        });
        let d = next.map(|next| f64::from(values[next]) - f64::from(values[i]));
        let norm = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-6).sqrt();
        sum += norm - 1e-3;
        for a in 0..3 {
            gradient[next[a]] += d[a] / norm / n;
            gradient[i] -= d[a] / norm / n;
        }
    }
    (sum / n, gradient)
}

/// A camera that looks from the side at the origin of a floor of reflectance 0.5, all pixels at almost one point.
const FLOOR: &str = r#"
    "integrator": {"type": "volpath", "max_depth": 2},
    "camera": {"type": "perspective", "fov": 0.1,
        "to_world": [{"look_at": {"origin": [0, -5, 2], "target": [0, 0, 0], "up": [0, 0, 1]}}],
        "film": {"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {"type": "box"}}},
    "floor": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance": [0.5, 0.5, 0.5]}}"#;

fn rendered(device: &mut dyn Device, objects: &str) -> Vec<[f32; 4]> {
    let (resident, params) = resident(&format!("{{{FLOOR}, {objects}}}"));
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    let batch = Batch { table, drawn: None };
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    device.render(&batch, keys(Pass::Primal), 16).expect("renders");
    device.image().expect("an image")
}

/// A black screen of edge one, parallel to the floor at the height `z`.
fn screen(z: f64) -> String {
    format!(
        r#""screen": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": [0, 0, 0]}},
            "to_world": [{{"scale": 0.5}}, {{"translate": [0, 0, {z}]}}]}}"#
    )
}

/// A lamp of intensity 8 at the height 2 lights the floor with 8/4 · 0.5/π = 1/π, whatever stands a 400th of the way behind it,
/// and not at all where something stands a 400th before it.
#[test]
fn what_stands_close_to_a_lamp_hides_it_from_one_side_alone() {
    let lamp = r#""lamp": {"type": "point", "position": [0, 0, 2], "intensity": 8}"#;
    for mut device in devices() {
        for (objects, expected) in [
            (lamp.to_owned(), std::f32::consts::FRAC_1_PI),
            (format!("{lamp}, {}", screen(2.005)), std::f32::consts::FRAC_1_PI),
            (format!("{lamp}, {}", screen(1.995)), 0.0),
        ] {
            for [r, g, b, _] in rendered(&mut *device, &objects) {
                for x in [r, g, b] {
                    assert!(
                        (x - expected).abs() < 1e-4,
                        "{}: {x}, not {expected}: {objects}",
                        device.info().kind
                    );
                }
            }
        }
    }
}

/// The same of a small square light of known form factor: to 5e-3 where it is open, and exactly nothing where it is hidden.
#[test]
fn what_stands_close_before_a_panel_hides_it() {
    let panel = r#""panel": {"type": "rectangle", "emitter": {"type": "area", "radiance": [100, 100, 100]},
        "to_world": [{"scale": 0.1}, {"rotate": {"axis": [1, 0, 0], "angle": 180}}, {"translate": [0, 0, 2]}]}"#;
    // The form factor of a square of half edge 0.05 seen from a distance of one, by the integral over its four quarters.
    let part = |a: f64| a / (1.0 + a * a).sqrt() * (a / (1.0 + a * a).sqrt()).atan();
    let expected = 0.5 * 100.0 * 4.0 * 2.0 * part(0.05) / (2.0 * std::f64::consts::PI);
    for mut device in devices() {
        let mean = |image: Vec<[f32; 4]>| image.iter().map(|p| f64::from(p[1])).sum::<f64>() / 16.0;
        let open = mean(rendered(&mut *device, panel));
        assert!(
            (open / expected - 1.0).abs() < 5e-3,
            "{}: {open}, not {expected}",
            device.info().kind
        );
        let hidden = mean(rendered(&mut *device, &format!("{panel}, {}", screen(1.995))));
        assert_eq!(hidden, 0.0, "{}", device.info().kind);
    }
}
