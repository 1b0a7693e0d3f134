//! Gradients: path replay against finite differences, conventional reverse-mode AD with the same noise, and forward
//! mode; the f32 device against f64; and that the check sees a fault.

mod small;

use prbopt::device::cpu::Cpu;
use prbopt::device::select::{self, DeviceChoice, DeviceKind};
use prbopt::gradcheck::field::entries::Place;
use prbopt::gradcheck::field::fields::{Fields, Plain, Role, Scatter};
use prbopt::gradcheck::field::objective::{Adjoint, FieldObjective};
use prbopt::gradcheck::report::Verdict;
use prbopt::gradcheck::{Index, Options, Setup, Weighting, check, compare, differences};
use prbopt::transport::field::radiance_field::SampleSink;
use prbopt::transport::lookup::sh::Basis;
use prbopt::transport::number::Number;
use prbopt::transport::number::dual::Dual;
use prbopt::transport::number::tape::{Recorded, Tape};
use small::{Small, table};

fn options() -> Options {
    Options {
        entries: 40,
        seed: 5,
        ..Options::default()
    }
}

#[test]
fn replay_in_f64_agrees_with_finite_differences() {
    for small in table() {
        let setup = small.setup(&options());
        let report = check(&setup, None, &options()).expect("the check runs").report;
        assert!(report.passed, "{}\n{report}", small.name);
        // The differences are good to 1e-6; nearly all are far better, which a systematic error would spoil.
        let mut errors: Vec<f64> = report
            .parameters
            .iter()
            .flat_map(|p| &p.rows)
            .map(|r| r.error)
            .collect();
        errors.sort_by(f64::total_cmp);
        let ninth = errors[errors.len() * 9 / 10];
        assert!(ninth < 1e-8, "{}: a tenth of the errors exceed {ninth:.1e}", small.name);
    }
}

/// The scene that has one parameter of every kind, on the CPU; `devices` holds GPUs against it.
#[test]
fn every_kind_of_parameter_passes() {
    let options = Options {
        entries: 3,
        ..Options::default()
    };
    let scene = prbopt::scene::load(std::path::Path::new("scenes/kinds.json")).unwrap_or_else(|e| panic!("{e}"));
    let setup = Setup::new(&scene, &options).expect("it is sound");
    let known: std::collections::BTreeSet<_> = setup
        .checked
        .iter()
        .map(|i| format!("{:?}", setup.params.parameters[*i].quantity))
        .collect();
    let expected = [
        "Albedo",
        "Asymmetry",
        "ComplexIndex",
        "DenserIndex",
        "DiffuseTransmission",
        "Emission",
        "Environment",
        "Extinction",
        "Height",
        "Index",
        "Light",
        "Normal",
        "Reflectance",
        "Roughness",
        "Specular",
        "Weight",
    ];
    assert!(expected.iter().all(|quantity| known.contains(*quantity)), "{known:?}");
    let report = check(&setup, Some(&mut Cpu::new()), &options)
        .expect("the check runs")
        .report;
    assert!(report.passed, "{report}");
}

/// Derivatives that are zero, or small beside what is subtracted, differ by rounding alone: by the `k` of a metal that
/// reflects everything, and by the sheen of a surface that is seen along its normal. Indices pass where total reflection
/// begins within a step.
#[test]
fn rounding_and_total_reflection_are_no_mistakes() {
    let options = Options::default();
    for (kind, bsdf) in [
        ("sphere", r#"{"type": "roughconductor", "alpha": 0.3}"#),
        ("sphere", r#"{"type": "principled", "sheen": 0.1, "sheen_tint": 0.5}"#),
        ("cube", r#"{"type": "roughdielectric", "int_ior": 0.8, "alpha": 0.5}"#),
    ] {
        let text = format!(
            r#"{{"integrator": {{"type": "path", "max_depth": 6}},
                "camera": {{"type": "perspective", "fov": 20, "to_world": [{{"translate": [0, 0, -4]}}],
                    "film": {{"type": "hdrfilm", "width": 6, "height": 5}}}},
                "ball": {{"type": "{kind}", "bsdf": {bsdf},
                    "to_world": [{{"rotate": {{"axis": [1, 2, 3], "angle": 50}}}}, {{"scale": 0.6}}]}},
                "sky": {{"type": "constant"}},
                "sun": {{"type": "directional", "direction": [0.3, 0.2, 1]}}}}"#
        );
        let scene = prbopt::scene::parse(&text, std::path::Path::new("test.json")).unwrap_or_else(|e| panic!("{e}"));
        let setup = Setup::new(&scene, &options).expect("it is sound");
        let report = check(&setup, Some(&mut Cpu::new()), &options)
            .expect("the check runs")
            .report;
        assert!(report.passed, "{bsdf}\n{report}");
    }
}

/// A path whose shadowing jumps within the step is differenced by shorter ones: with the first step alone each of these seeds
/// fails.
#[test]
fn corners_within_a_step_are_no_mistakes() {
    let text = r#"{"integrator": {"type": "prb", "max_depth": 3},
        "camera": {"type": "perspective", "fov": 30,
            "to_world": [{"look_at": {"origin": [0, -4, 1], "target": [0, 0, 0], "up": [0, 0, 1]}}],
            "film": {"type": "hdrfilm", "width": 32, "height": 32, "rfilter": {"type": "box"}}},
        "lamp": {"type": "point", "position": [2, -3, 3], "intensity": 9},
        "sky": {"type": "constant", "radiance": [0.5, 0.6, 0.7]},
        "ball": {"type": "sphere", "bsdf": {"type": "roughconductor", "material": "Cu", "alpha": 0.6}}}"#;
    let scene = prbopt::scene::parse(text, std::path::Path::new("test.json")).unwrap_or_else(|e| panic!("{e}"));
    for seed in [19, 32, 47, 49] {
        let options = Options {
            seed,
            ..Options::default()
        };
        let setup = Setup::new(&scene, &options).expect("it is sound");
        let report = check(&setup, Some(&mut Cpu::new()), &options)
            .expect("the check runs")
            .report;
        assert!(report.passed, "seed {seed}\n{report}");
    }
}

/// More samples a pixel than the device takes in one round.
#[test]
fn samples_of_many_rounds_are_all_summed() {
    let options = Options {
        entries: 4,
        ..options()
    };
    let mut setup = table()[0].setup(&options);
    setup.spp = 2000;
    let report = check(&setup, Some(&mut Cpu::new()), &options)
        .expect("the check runs")
        .report;
    assert!(report.passed, "{report}");
}

#[test]
fn the_cpu_device_agrees_with_f64() {
    for small in table() {
        let setup = small.setup(&options());
        let report = check(&setup, Some(&mut Cpu::new()), &options())
            .expect("the check runs")
            .report;
        assert!(report.passed, "{}\n{report}", small.name);
        for loss in &report.losses {
            let device = loss.device.expect("there is a device");
            assert!((device - loss.value).abs() < 1e-5, "{}: {loss:?}", small.name);
        }
    }
}

/// Every scene of the table on the GPU, or on what stands in for one; without an adapter it is skipped, unless
/// `PRBOPT_REQUIRE_GPU=1` forbids that.
#[test]
fn the_gpu_device_agrees_with_f64() {
    if select::list().is_empty() {
        let required = std::env::var_os("PRBOPT_REQUIRE_GPU").is_some_and(|v| v == "1");
        assert!(!required, "PRBOPT_REQUIRE_GPU is set, but there is no adapter");
        // The test runner would capture the output of `eprintln!`.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: this machine has no GPU adapter\n");
        return;
    }
    let choice = DeviceChoice {
        kind: DeviceKind::Gpu,
        ..DeviceChoice::default()
    };
    let mut device = select::open(&choice, prbopt::cluster::Cluster::single()).expect("the adapter opens");
    for small in table() {
        let setup = small.setup(&options());
        let report = check(&setup, Some(device.as_mut()), &options())
            .expect("the check runs")
            .report;
        assert!(report.passed, "{}\n{report}", small.name);
        for loss in &report.losses {
            let device = loss.device.expect("there is a device");
            assert!((device - loss.value).abs() < 1e-5, "{}: {loss:?}", small.name);
        }
    }
}

/// Path replay and the tape are derivatives of the same sum by the same random numbers, ray by ray: they differ by rounding,
/// 1e-13.
#[test]
fn replay_agrees_with_conventional_ad_path_by_path() {
    for small in table() {
        let setup = small.setup(&options());
        let objective = setup.objective();
        let mut variables = 0;
        let fields = Fields::new(&setup.resident, &setup.params, |v| {
            variables += 1;
            Recorded::variable(variables - 1, v.into())
        });
        let view = Plain {
            scene: &objective.scene,
            fields: &fields,
        };
        for cast in objective.casts.iter().step_by(5) {
            Tape::begin(None);
            let radiance = objective.gather(&view, cast).radiance;
            let weight = objective.weight(1, cast);
            let mut sum = Recorded::lift(0.0);
            for c in 0..3 {
                // Weights of up to 2^-20 keep their bits in f32.
                sum += radiance[c] * Recorded::lift(weight[c] as f32);
            }
            let by_tape = sum.gradient(variables);
            let mut by_replay = objective.fields.zeros();
            replay_with(&objective, cast, weight.map(|w| f64::from(w as f32)), &mut by_replay);
            let by_replay = [by_replay.sigma, by_replay.sh, by_replay.emitter].concat();
            let largest = by_tape.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for (i, (a, b)) in by_replay.iter().zip(&by_tape).enumerate() {
                assert!(
                    (a - b).abs() <= 1e-13 * largest,
                    "{}, entry {i}: {a} by replay, {b} by tape",
                    small.name
                );
            }
        }
    }
}

fn replay_with(
    objective: &FieldObjective,
    cast: &prbopt::gradcheck::field::objective::CastRay,
    weight: [f64; 3],
    gradient: &mut Fields<f64>,
) {
    let mut sink = Scatter {
        scene: &objective.scene,
        gradient,
    };
    let view = objective.view();
    let (ray, jitter, backdrop) = (&cast.ray, cast.jitter, cast.backdrop);
    prbopt::transport::field::march::backpropagate(&objective.scene, &view, ray, jitter, backdrop, weight, &mut sink);
}

#[test]
fn replay_agrees_with_forward_mode() {
    for small in table() {
        let setup = small.setup(&options());
        let objective = setup.objective();
        let adjoint = objective.adjoint(1);
        let mut fields = Fields::new(&setup.resident, &setup.params, |v| Dual::constant(v.into()));
        for role in [Role::Density, Role::Color, Role::Emitter] {
            let gradient = adjoint.gradient.of(role);
            let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for entry in (0..gradient.len()).step_by(gradient.len() / 12 + 1) {
                fields.of_mut(role)[entry].slope = 1.0;
                let view = Plain {
                    scene: &objective.scene,
                    fields: &fields,
                };
                let mut slope = 0.0;
                for cast in &objective.casts {
                    let radiance = objective.gather(&view, cast).radiance;
                    let weight = objective.weight(1, cast);
                    slope += (0..3).map(|c| weight[c] * radiance[c].slope).sum::<f64>();
                }
                fields.of_mut(role)[entry].slope = 0.0;
                let error = (slope - gradient[entry]).abs();
                assert!(
                    error <= 1e-12 * largest,
                    "{}, {role:?} {entry}: {slope} forward",
                    small.name
                );
            }
        }
    }
}

#[test]
fn every_kind_of_place_is_looked_at() {
    let mut seen = Vec::new();
    let mut kinks = 0;
    for small in table() {
        let report = check(&small.setup(&options()), None, &options())
            .expect("the check runs")
            .report;
        for row in report.parameters.iter().flat_map(|p| &p.rows) {
            seen.push(row.place);
            kinks += usize::from(row.verdict == Verdict::Kink);
            if row.place == Place::Unmet {
                assert_eq!((row.prb, row.difference), (0.0, 0.0), "{}", small.name);
            }
        }
    }
    for place in [Place::Drawn, Place::Border, Place::Empty, Place::Kink, Place::Unmet] {
        assert!(seen.contains(&place), "no scene has a {} entry", place.name());
    }
    assert!(kinks > 20, "only {kinks} rows are kinks");
}

/// Texels that no ray meets have a gradient of exactly zero on the device too.
#[test]
fn texels_without_rays_have_no_gradient() {
    let small = Small {
        cameras: vec![small::table()[0].cameras[0]],
        image: [3, 3],
        ..Small::default()
    };
    let options = Options {
        entries: 100_000,
        ..options()
    };
    let setup = small.setup(&options);
    let report = check(&setup, Some(&mut Cpu::new()), &options)
        .expect("the check runs")
        .report;
    let unmet: Vec<_> = report
        .parameters
        .iter()
        .flat_map(|p| &p.rows)
        .filter(|r| r.place == Place::Unmet)
        .collect();
    assert!(unmet.len() > 100, "only {} entries are out of sight", unmet.len());
    for row in unmet {
        assert_eq!((row.prb, row.device.map(|d| d.prb)), (0.0, Some(0.0)), "{row:?}");
    }
}

/// On a kink the gradient is that of the side that docs/method.md fixes: every sample at zero density counts fully.
#[test]
fn zero_density_takes_the_right_derivative_of_the_relu() {
    let small = table()
        .into_iter()
        .find(|s| s.name == "all zero")
        .expect("it is in the table");
    let options = Options {
        entries: 125,
        parameters: vec!["object.interior.sigma_t".into()],
        ..options()
    };
    let report = check(&small.setup(&options), None, &options)
        .expect("the check runs")
        .report;
    let mut kinks = 0;
    for row in report.parameters.iter().flat_map(|p| &p.rows) {
        if let Some([left, right]) = row.sides {
            kinks += 1;
            assert_eq!(left, 0.0, "negative density does nothing: {row:?}");
            assert!((right - row.prb).abs() < 1e-6 * right.abs(), "{row:?}");
        }
    }
    assert!(kinks > 50, "only {kinks} rows are kinks");
}

/// A step of a coefficient moves a colour of zero up or down by the sign of its harmonic: the inside differs from ray to ray.
#[test]
fn zero_colours_take_the_derivative_inside_the_clip() {
    let small = table()
        .into_iter()
        .find(|s| s.name.starts_with("zero colours"))
        .expect("it is in the table");
    let options = Options {
        entries: 60,
        parameters: vec!["object.interior.sh_coeffs".into()],
        ..options()
    };
    let report = check(&small.setup(&options), None, &options)
        .expect("the check runs")
        .report;
    let rows: Vec<_> = report
        .parameters
        .iter()
        .flat_map(|p| &p.rows)
        .filter(|r| r.sides.is_some())
        .collect();
    assert!(rows.len() > 50, "only {} rows are kinks", rows.len());
    for row in &rows {
        let [left, right] = row.sides.expect("filtered by it");
        // Each sample counts on one side only, so that both together are the whole.
        assert!(
            (left + right - row.prb).abs() <= 1e-6 * left.abs().max(right.abs()),
            "{row:?}"
        );
    }
    let mixed = rows
        .iter()
        .filter(|r| r.sides.is_some_and(|[l, r]| l != 0.0 && r != 0.0))
        .count();
    assert!(mixed > 0, "no entry is seen under both signs");
}

/// Faults of one percent, or of one missing piece, that a sink puts between the replay and the sums.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    Density,
    Blue,
    Emitter,
    /// One sample in fifty is lost.
    Lost,
    /// Samples arrive a thousandth of the cube from their place.
    Misplaced,
}

struct Faulty<'a> {
    inner: Scatter<'a, f64>,
    fault: Fault,
    count: u32,
}

impl SampleSink<f64> for Faulty<'_> {
    fn sample(&mut self, p: [f32; 3], basis: &Basis, d_sigma: f64, d_color: [f64; 3]) {
        self.count += 1;
        let [r, g, b] = d_color;
        match self.fault {
            Fault::Density => self.inner.sample(p, basis, d_sigma * 1.01, d_color),
            Fault::Blue => self.inner.sample(p, basis, d_sigma, [r, g, b * 1.01]),
            Fault::Lost if self.count.is_multiple_of(50) => {}
            Fault::Misplaced => self.inner.sample([p[0] + 1e-3, p[1], p[2]], basis, d_sigma, d_color),
            _ => self.inner.sample(p, basis, d_sigma, d_color),
        }
    }
    fn emitter(&mut self, d: [f32; 3], d_radiance: [f64; 3]) {
        let scale = if self.fault == Fault::Emitter { 1.01 } else { 1.0 };
        self.inner.emitter(d, d_radiance.map(|g| g * scale));
    }
}

/// Which parameters the check passes when the replay has a fault.
fn verdicts(setup: &Setup, options: &Options, fault: Fault) -> Vec<bool> {
    let objective = setup.objective();
    let differences = differences(setup, &objective, options).expect("the check runs");
    let mut gradient = objective.fields.zeros();
    let seed = Weighting::Random.seed(options.seed);
    let loss = objective.adjoint_through(seed, &mut gradient, |inner| Faulty { inner, fault, count: 0 });
    let adjoint = Adjoint { loss, gradient };
    let random = (1, Weighting::Random);
    differences
        .iter()
        .map(|d| compare(setup, d, random, &adjoint, None, options).passed)
        .collect()
}

#[test]
fn a_planted_fault_of_one_percent_is_rejected() {
    let small = table()
        .into_iter()
        .find(|s| s.name.starts_with("relu_half"))
        .expect("it is in the table");
    let options = Options {
        entries: 16,
        ..options()
    };
    let setup = small.setup(&options);
    assert_eq!(verdicts(&setup, &options, Fault::None), [true, true, true]);
    assert_eq!(verdicts(&setup, &options, Fault::Density), [false, true, true]);
    assert_eq!(verdicts(&setup, &options, Fault::Blue), [true, false, true]);
    assert_eq!(verdicts(&setup, &options, Fault::Emitter), [true, true, false]);
    assert_eq!(verdicts(&setup, &options, Fault::Lost), [false, false, true]);
    assert_eq!(verdicts(&setup, &options, Fault::Misplaced), [false, false, true]);
}

/// A device whose gradient is one percent off in one parameter fails, and that parameter alone.
#[test]
fn a_device_that_is_one_percent_off_is_rejected() {
    let options = options();
    let setup = Small::default().setup(&options);
    let objective = setup.objective();
    let differences = differences(&setup, &objective, &options).expect("the check runs");
    let adjoint = objective.adjoint(0);
    for scale in [1.0f64, 1.01] {
        for d in &differences {
            let device: Vec<f32> = adjoint.gradient.of(d.role).iter().map(|g| (g * scale) as f32).collect();
            let report = compare(&setup, d, (0, Weighting::Mean), &adjoint, Some(&device), &options);
            assert_eq!(report.passed, scale == 1.0, "{:?} times {scale}", d.role);
        }
    }
}

#[test]
fn asked_entries_are_the_ones_that_are_checked() {
    let options = Options {
        parameters: vec!["object.interior.sh_coeffs".into()],
        indices: vec![Index::Coordinates([1, 2, 3, 2]), Index::Flat(7)],
        ..options()
    };
    let setup = Small::default().setup(&options);
    let report = check(&setup, None, &options).expect("the check runs").report;
    let found: Vec<_> = report.parameters[0].rows.iter().map(|r| r.index).collect();
    assert_eq!(found, [[1, 2, 3, 2], [2, 0, 0, 1]]);
    let options = Options {
        indices: vec![Index::Coordinates([5, 0, 0, 0])],
        ..options
    };
    let error = check(&setup, None, &options).expect_err("it is outside").to_string();
    assert!(
        error.contains("object.interior.sh_coeffs") && error.contains("expected less than 5,5,5,3"),
        "{error}"
    );
}

/// Pixels drawn from all views, as a batch of rays, rather than whole views.
#[test]
fn drawn_pixels_have_the_same_gradients_on_the_device() {
    let mut setup = table()[1].setup(&options());
    setup.batch.drawn = Some(300);
    let report = check(&setup, Some(&mut Cpu::new()), &options())
        .expect("the check runs")
        .report;
    assert_eq!(report.pixels, 300);
    assert!(report.passed, "{report}");
}

/// ReLU'(0) = 1, the clip's slope is 1 on the closed interval, and the shifted ReLU's is 1 at -1/2.
#[test]
fn slopes_on_kinks_are_those_of_the_method() {
    use prbopt::resident::layout::{color, density};
    use prbopt::transport::field::radiance_field::{color_activate, color_slope, density_activate, density_slope};
    let above = |x: f64| x + 1e-12;
    let below = |x: f64| x - 1e-12;
    for (slope, kink, inside, outside) in [
        (
            density_slope as fn(u32, f64) -> f64,
            (density::RELU, 0.0),
            above as fn(f64) -> f64,
            below as fn(f64) -> f64,
        ),
        (color_slope, (color::CLIP, 0.0), above, below),
        (color_slope, (color::CLIP, 1.0), below, above),
        (color_slope, (color::RELU_HALF, -0.5), above, below),
    ] {
        let (kind, at) = kink;
        assert_eq!(
            [slope(kind, at), slope(kind, inside(at)), slope(kind, outside(at))],
            [1.0, 1.0, 0.0],
            "{kink:?}"
        );
    }
    // The dual number follows the values' branches and so takes the same sides.
    for (activate, kind, at) in [
        (density_activate as fn(u32, Dual) -> Dual, density::RELU, 0.0),
        (color_activate_one, color::CLIP, 0.0),
        (color_activate_one, color::CLIP, 1.0),
        (color_activate_one, color::RELU_HALF, -0.5),
    ] {
        assert_eq!(activate(kind, Dual::new(at, 1.0)).slope, 1.0, "{kind} at {at}");
    }

    fn color_activate_one(kind: u32, raw: Dual) -> Dual {
        color_activate(kind, raw)
    }
}
