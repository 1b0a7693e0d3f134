//! Derivatives by small factors: the radiance that is still to come is divided by an albedo, or by an extinction over
//! that of the channel that decided the collision, after brighter light was subtracted from it.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options as GpuOptions;
use prbopt::device::{ArrayKind, Device};
use prbopt::gradcheck::paths::fields::Sums;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::layout::{VolumeRecord, gradient};
use prbopt::scene;
use prbopt::transport::lookup::grid::Stencil;
use prbopt::transport::scene::records::Sink;

use super::gpu;

const EPS: f64 = f32::EPSILON as f64;

/// Errors of the products on a path and of the sums of what paths send, as a multiple of eps: on the CPU, whose paths
/// are the oracle's, and on a GPU, which computes places and directions with other roundings.
const ROUNDINGS: [f64; 2] = [32.0, 1024.0];

/// The factor that is small.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Factor {
    Albedo,
    Extinction,
}

/// A lit box whose far half has a small albedo, or an extinction that is small in the green channel; the near half, too,
/// unless it is `bright`: then every path that reaches the far half has found light before.
fn world(factor: Factor, small: f32, bright: bool) -> Setup {
    let halves = |value: &str| {
        format!(
            r#"{{"type": "gridvolume", "resolution": [1, 1, 2], "value": {value}, "filter_type": "nearest",
                 "to_world": [{{"translate": [-0.5, -0.5, -0.5]}}, {{"scale": 2}}]}}"#
        )
    };
    let text = format!(
        r#"{{"integrator": {{"type": "volpath", "gradient": "free_flight", "max_depth": 8, "rr_depth": 100}},
            "camera": {{"type": "perspective", "fov": 28,
                "to_world": [{{"look_at": {{"origin": [0.5, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
            "box": {{"type": "cube", "bsdf": {{"type": "null"}},
                "interior": {{"type": "heterogeneous", "sigma_t": {}, "albedo": {}}}}},
            "lamp": {{"type": "point", "position": [0.5, 2, 1.5], "intensity": 3}}}}"#,
        halves(if factor == Factor::Extinction { "[1, 1, 1]" } else { "1" }),
        halves("[0.9, 0.9, 0.9]")
    );
    let scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut setup = Setup::new(&scene, &Options::default()).expect("it is sound");
    setup.spp = 64;
    let of = parameter(&setup, factor);
    let values = &mut setup.params.parameters[of].values;
    for half in values.chunks_mut(3).take(if bright { 1 } else { 2 }) {
        match factor {
            Factor::Albedo => half.fill(small),
            Factor::Extinction => half[1] = small,
        }
    }
    setup
}

/// The place among the parameters of the array that has the small values.
fn parameter(setup: &Setup, factor: Factor) -> usize {
    let path = match factor {
        Factor::Albedo => "box.interior.albedo",
        Factor::Extinction => "box.interior.sigma_t",
    };
    setup.params.find(path).expect("the box has it")
}

/// The entries that are small: of the far half, and all channels of an albedo.
fn entries(factor: Factor) -> std::ops::Range<usize> {
    match factor {
        Factor::Albedo => 0..3,
        Factor::Extinction => 1..2,
    }
}

/// A sink that sums the sizes of derivatives, and counts them.
struct Sizes<'a> {
    sizes: Sums<'a>,
    events: Sums<'a>,
}

impl Sink<f64> for Sizes<'_> {
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f64; 3], channels: u32) {
        self.sizes.volume(volume, at, d.map(f64::abs), channels);
        self.events.volume(volume, at, [1.0; 3], channels);
    }
    fn entries(&mut self, _slot: u32, _first: u32, _d: [f64; 3], _channels: u32) {}
    fn background(&mut self, _d: [f32; 3], _d_radiance: [f64; 3]) {}
}

/// The derivative by a small entry in f64, the sum of the sizes of its terms, and the part of its bound in f32 that
/// comes from subtracting: n eps² L / `small` for each term.
#[derive(Debug, Clone, Copy)]
struct Expected {
    derivative: f64,
    size: f64,
    subtracted: f64,
}

fn expected(setup: &Setup, factor: Factor, small: f32) -> Vec<Expected> {
    let objective = PathObjective::new(setup, gradient::FREE_FLIGHT);
    let (of, zeros) = (parameter(setup, factor), || objective.fields.zeros());
    let derivative = objective.adjoint(0).gradient.swap_remove(of);
    let (mut size, mut subtracted) = (zeros(), vec![0.0; derivative.len()]);
    for cast in &objective.casts {
        let weight = objective.weight(0, cast);
        let mut events = zeros();
        let mut sink = Sizes {
            sizes: objective.sums(&mut size),
            events: objective.sums(&mut events),
        };
        let (first, _) = objective.replay(weight, cast, &mut sink);
        for i in 0..subtracted.len() {
            let lost = weight[i % 3].abs() * first.gathered.radiance[i % 3] / f64::from(small);
            subtracted[i] += events[of][i] * f64::from(first.gathered.count) * EPS * EPS * lost;
        }
    }
    entries(factor)
        .map(|i| Expected {
            derivative: derivative[i],
            size: size[of][i],
            subtracted: subtracted[i],
        })
        .collect()
}

/// The derivatives by the small entries that a device finds.
fn found(device: &mut dyn Device, setup: &Setup, factor: Factor) -> Vec<f64> {
    let (resident, params) = (setup.resident.clone(), setup.params.clone());
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    device.render(&setup.batch, setup.keys, setup.spp).expect("it renders");
    device
        .loss(&setup.batch, setup.keys, Loss::Linear { seed: 0 })
        .expect("it compares");
    let stats = device
        .backpropagate(&setup.batch, setup.keys, setup.spp)
        .expect("it replays");
    assert_eq!(stats.drifted, 0);
    let gradient = device
        .read(parameter(setup, factor), ArrayKind::Gradient)
        .expect("it reads");
    entries(factor).map(|i| f64::from(gradient[i])).collect()
}

/// In f32 both devices are as exact as the bound says, however small a factor is and whatever light was found before it. The
/// table is that of docs/method.md, section 13.
#[test]
fn derivatives_by_small_factors_are_as_exact_as_their_bound() {
    let mut graphics = gpu(GpuOptions::default());
    let mut failures = Vec::new();
    let mut table = String::from("| factor | light before | size | CPU | GPU | bound |\n");
    for (factor, bright) in [Factor::Albedo, Factor::Extinction]
        .into_iter()
        .flat_map(|f| [(f, false), (f, true)])
    {
        for small in [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-12, 1e-20, 1e-40] {
            let setup = world(factor, small, bright);
            let expected = expected(&setup, factor, small.max(2f32.powi(-32)));
            let mut devices: Vec<&mut dyn Device> = Vec::new();
            let mut cpu = Cpu::new();
            devices.push(&mut cpu);
            if let Some(graphics) = &mut graphics {
                devices.push(graphics);
            }
            // The largest errors and bound of the entries, over the sizes of their terms.
            let (mut errors, mut largest) = ([f64::NAN; 2], 0.0f64);
            for ((device, error), roundings) in devices.into_iter().zip(&mut errors).zip(ROUNDINGS) {
                *error = 0.0;
                for (expected, found) in expected.iter().zip(found(device, &setup, factor)) {
                    assert!(expected.size > 0.0, "nothing is differentiated");
                    let bound = expected.subtracted + roundings * EPS * expected.size;
                    let off = (found - expected.derivative).abs();
                    *error = error.max(off / expected.size);
                    largest = largest.max(expected.subtracted / expected.size);
                    if off.is_nan() || off > bound {
                        failures.push(format!("{factor:?} {small:e}: {found} is not {expected:?}"));
                    }
                }
            }
            let [cpu, gpu] = errors;
            let before = if bright { "yes" } else { "no" };
            table += &format!("| {factor:?} | {before} | {small:e} | {cpu:.1e} | {gpu:.1e} | {largest:.1e} |\n");
        }
    }
    let _ = std::io::Write::write_all(&mut std::io::stderr(), table.as_bytes());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A factor of zero and a subnormal one have the same derivative, to which those of small factors tend, to 1e-4.
#[test]
fn derivatives_by_small_factors_tend_to_those_by_zero() {
    for factor in [Factor::Albedo, Factor::Extinction] {
        let at = |small: f32| found(&mut Cpu::new(), &world(factor, small, true), factor);
        let zero = at(0.0);
        assert_eq!(zero, at(1e-40));
        for small in [1e-20, 1e-9, 1e-7] {
            for (found, zero) in at(small).iter().zip(&zero) {
                assert!(
                    (found / zero - 1.0).abs() < 1e-4,
                    "{factor:?} {small:e}: {found} and {zero}"
                );
            }
        }
    }
}
