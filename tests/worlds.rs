//! Gradients of worlds: path replay through media against finite differences with the sampling frozen, conventional
//! reverse-mode AD and forward mode; the f32 device against f64.

mod small;

use prbopt::device::cpu::Cpu;
use prbopt::gradcheck::paths::difference::{default_step, difference};
use prbopt::gradcheck::paths::fields::Sums;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::report::relative_error;
use prbopt::gradcheck::{Options, Setup, check};
use prbopt::resident::layout::{VolumeRecord, gradient};
use prbopt::transport::lookup::grid::Stencil;
use prbopt::transport::rays::random::Pass;
use prbopt::transport::scene::records::Sink;
use small::agreement::{agrees_with_forward_mode, agrees_with_tape};
use small::worlds::{find, worlds};

fn options() -> Options {
    Options {
        entries: 24,
        seed: 5,
        ..Options::default()
    }
}

#[test]
fn replay_agrees_with_finite_differences_and_the_device_with_replay() {
    let mut coarse = Vec::new();
    for small in worlds() {
        let mut setup = small.setup("free_flight", &options());
        // In these worlds the usual draws miss a ball, leave a derivative of parts that cancel in f32, or lie where Beckmann's
        // shadowing, which is a fit, jumps by some 10⁻⁴ within a step of the differences.
        match small.name {
            "a ball of rgb fog in smoke over a red floor, area lights" => setup.spp = 8,
            "bump maps and normal maps in and over mixtures" => setup.spp = 8,
            "normal maps over what is rough" => setup.spp = 5,
            "values of vertices and faces, on surfaces and on a lamp" => setup.keys = small::keys(6, Pass::Adjoint),
            _ => {}
        }
        let report = check(&setup, Some(&mut Cpu::new()), &options())
            .expect("the check runs")
            .report;
        assert!(report.passed, "{}\n{report}", small.name);
        for loss in &report.losses {
            let device = loss.device.expect("there is a device");
            assert!((device - loss.value).abs() < 1e-5, "{}: {loss:?}", small.name);
        }
        let mut errors: Vec<f64> = report
            .parameters
            .iter()
            .flat_map(|p| &p.rows)
            .map(|r| r.error)
            .collect();
        errors.sort_by(f64::total_cmp);
        let ninth = errors[errors.len() * 9 / 10];
        // Rounding of differences by the shortest steps, 1e-4 of normals and roughnesses, is 1.3e-10.
        if ninth >= 5e-10 {
            coarse.push(format!("{}: a tenth of the errors exceed {ninth:.1e}", small.name));
        }
        let dark = [
            ("black medium", "sun.irradiance"),
            ("fog without end", "sky.data"),
            ("fog without end", "sky.scale"),
            ("fog without end", "sun.irradiance"),
            // Its share is zero.
            (
                "masks with holes before smoke, blends of two sides",
                "leaf.bsdf.b.a.reflectance",
            ),
            // There is no coat, and no sheen.
            ("principled BSDFs", "ball_0.bsdf.clearcoat_gloss"),
            ("principled BSDFs", "ball_2.bsdf.sheen_tint"),
        ];
        for parameter in &report.parameters {
            // What shines is seldom lit by something else.
            let shines = [
                "bulb.bsdf",
                "panel.bsdf",
                "brick.bsdf",
                "coin.bsdf",
                "tube.bsdf",
                "lamp.bsdf",
                "globe.bsdf",
            ]
            .iter()
            .any(|lamp| parameter.path.starts_with(lamp));
            let reached = parameter.largest > 0.0 || shines || dark.contains(&(small.name, &parameter.path));
            assert!(reached, "{}: nothing reaches {}", small.name, parameter.path);
        }
    }
    assert!(coarse.is_empty(), "{}", coarse.join("\n"));
}

#[test]
fn replay_agrees_with_conventional_ad_path_by_path() {
    for small in worlds() {
        agrees_with_tape(small.name, &small.setup("free_flight", &options()));
    }
}

#[test]
fn replay_agrees_with_forward_mode() {
    for small in worlds() {
        let setup = small.setup("free_flight", &options());
        agrees_with_forward_mode(small.name, &setup, 0..setup.params.parameters.len());
    }
}

/// Faults that a sink puts between the replay and the sums.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Derivatives by volumes are one percent too large.
    Large,
    /// One in fifty is lost.
    Lost,
    /// Derivatives by lights and phase functions are one percent too small.
    Small,
}

struct Faulty<'a> {
    inner: Sums<'a>,
    fault: Fault,
    count: u32,
}

impl Sink<f64> for Faulty<'_> {
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f64; 3], channels: u32) {
        self.count += 1;
        if self.fault == Fault::Lost && self.count.is_multiple_of(50) {
            return;
        }
        let scale = if self.fault == Fault::Large { 1.01 } else { 1.0 };
        self.inner.volume(volume, at, d.map(|d| d * scale), channels);
    }
    fn entries(&mut self, slot: u32, first: u32, d: [f64; 3], channels: u32) {
        let scale = if self.fault == Fault::Small { 0.99 } else { 1.0 };
        self.inner.entries(slot, first, d.map(|d| d * scale), channels);
    }
    fn background(&mut self, d: [f32; 3], d_radiance: [f64; 3]) {
        self.inner.background(d, d_radiance);
    }
}

/// Whether the whole gradient of every parameter is within the tolerance of differences, when the replay has a fault.
fn verdicts(setup: &Setup, fault: Fault) -> Vec<bool> {
    let mut objective = PathObjective::new(setup, gradient::FREE_FLIGHT);
    let mut gradient = objective.fields.zeros();
    objective.adjoint_through(1, &mut gradient, |inner| Faulty { inner, fault, count: 0 });
    let rays: Vec<u32> = (0..objective.casts.len() as u32).collect();
    gradient
        .iter()
        .enumerate()
        .map(|(slot, gradient)| {
            let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            let step = default_step(&objective, slot, setup.params.parameters[slot].quantity);
            (0..gradient.len().min(9)).all(|i| {
                let (difference, _) = difference(&mut objective, (slot, i), &rays, step, &[1]);
                let expected = difference.fixed[0];
                relative_error(gradient[i], expected, largest) <= 1e-6
            })
        })
        .collect()
}

/// The parameters in order: extinction, albedo, g, the lamp.
#[test]
fn planted_faults_are_rejected() {
    let setup = find("point light").setup("free_flight", &options());
    assert_eq!(verdicts(&setup, Fault::None), [true, true, true, true]);
    assert_eq!(verdicts(&setup, Fault::Large), [false, false, true, true]);
    assert_eq!(verdicts(&setup, Fault::Lost), [false, false, true, true]);
    assert_eq!(verdicts(&setup, Fault::Small), [true, true, false, false]);
}
