//! Small scenes, made in code, that between them use every choice that a device has to make.

use glam::{Affine3A, EulerRot, Quat, Vec3};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::params::{Kind, ParamSet, Shape, Tuning};
use prbopt::resident::Resident;
use prbopt::resident::layout::{NO_REFERENCE, backdrop};
use prbopt::resident::references::Pixels;
use prbopt::scene::{
    Array, Background, ColorActivation, DensityActivation, Distortion, Filter, RadianceField, Scene, Sensor, Source,
};
use prbopt::transport::rays::random::{Counter, Pass, pass_key, random_uniform};

/// The kind of background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emitter {
    None,
    Constant,
    Envmap,
}

/// The kind of references, and what is behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matched {
    Constant,
    /// Eight-bit photographs with alpha over a colour, random colours, and opaque, a view each.
    Photographs,
    /// Floats, with one view that has none.
    Renders,
}

/// One scene and what is done with it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub name: &'static str,
    pub density: DensityActivation,
    pub color: ColorActivation,
    pub degree: u32,
    pub emitter: Emitter,
    pub field: bool,
    /// Density and colour on grids of different sizes.
    pub apart: bool,
    pub stop: f32,
    pub filter: Filter,
    pub distortion: Distortion,
    pub matched: Matched,
    /// Pixels drawn from all views; None: every pixel.
    pub drawn: Option<u32>,
    pub loss: Loss,
    pub optimizer: Optimizer,
    pub keep_moments: bool,
}

const ADAM: Optimizer = Optimizer::Adam {
    beta_1: 0.9,
    beta_2: 0.99,
    epsilon: 1e-8,
    mask_updates: false,
};

/// The plain case, which the others change.
pub(crate) fn plain() -> Case {
    Case {
        name: "plain",
        density: DensityActivation::Relu,
        color: ColorActivation::Clip,
        degree: 1,
        emitter: Emitter::Constant,
        field: true,
        apart: false,
        stop: 0.0,
        filter: Filter::Box,
        distortion: Distortion::None,
        matched: Matched::Constant,
        drawn: None,
        loss: Loss::L2,
        optimizer: ADAM,
        keep_moments: true,
    }
}

/// All cases.
#[rustfmt::skip]
pub(crate) fn cases() -> Vec<Case> {
    // Which pixels Newton's method solves does not depend on rounding: they are the same for all k₁ within 1e-4 of this one.
    let brown = Distortion::Brown { k: [-0.928, 0.2, 0.0], p: [0.01, -0.02] };
    let fisheye = Distortion::Fisheye { k: [0.05, -0.01, 0.002, -0.0005] };
    vec![
        plain(),
        Case { name: "softplus, sigmoid, degree 0", density: DensityActivation::Softplus, color: ColorActivation::Sigmoid, degree: 0, matched: Matched::Renders, loss: Loss::L1, optimizer: Optimizer::Sgd { momentum: 0.9 }, ..plain() },
        Case { name: "exp, relu of x + 1/2, degree 3, envmap", density: DensityActivation::Exp, color: ColorActivation::ReluHalf, degree: 3, emitter: Emitter::Envmap, filter: Filter::Tent { radius: 1.3 }, loss: Loss::Huber { delta: 0.2 }, optimizer: Optimizer::RmsProp { decay: 0.95, epsilon: 1e-6 }, keep_moments: false, ..plain() },
        Case { name: "degree 2, two grids, photographs", degree: 2, apart: true, matched: Matched::Photographs, filter: Filter::Gaussian { stddev: 0.5 }, loss: Loss::RelativeL2, ..plain() },
        Case { name: "drawn rays, photographs, early stop", stop: 1e-2, matched: Matched::Photographs, drawn: Some(700), loss: Loss::LogL1, optimizer: Optimizer::Adam { beta_1: 0.9, beta_2: 0.99, epsilon: 1e-8, mask_updates: true }, ..plain() },
        Case { name: "brown distortion with masked pixels, envmap", distortion: brown, emitter: Emitter::Envmap, loss: Loss::Linear { seed: 0 }, ..plain() },
        Case { name: "fisheye, no emitter, random weights", distortion: fisheye, emitter: Emitter::None, loss: Loss::Linear { seed: 7 }, ..plain() },
        Case { name: "envmap alone", field: false, emitter: Emitter::Envmap, matched: Matched::Renders, ..plain() },
    ]
}

/// A uniform number that depends on an array and an index.
pub(crate) fn noise(array: u32, index: usize) -> f32 {
    let counter = Counter {
        sensor: array,
        pixel: index as u32,
        sample: 0,
        block: 0,
    };
    random_uniform(pass_key(99, 0, Pass::Host), counter)[0]
}

fn array(path: &str, kind: Kind, size: [usize; 3], channels: usize, rate: f32, bounds: [f32; 2]) -> Array {
    Array {
        path: path.into(),
        kind,
        shape: Shape { size, channels },
        source: Source::Fill(vec![0.0]),
        tuning: Some(Tuning {
            learning_rate: rate,
            bounds,
            smoothing: 0.0,
        }),
    }
}

fn sensor(case: &Case, index: usize) -> Sensor {
    let (width, height) = ([23, 16, 19][index], [17, 21, 13][index]);
    let eye = [
        Vec3::new(0.4, 0.5, -3.6),
        Vec3::new(3.4, -0.8, 0.3),
        Vec3::new(-2.0, 1.9, 2.2),
    ][index];
    let forward = (-eye).normalize();
    let left = Vec3::Y.cross(forward).normalize();
    let up = forward.cross(left);
    Sensor {
        name: format!("view {index}"),
        to_world: Affine3A::from_cols(left.into(), up.into(), forward.into(), eye.into()),
        width,
        height,
        focal: [1.1 * width as f32, 1.2 * width as f32],
        center: [0.52 * width as f32, 0.47 * height as f32],
        distortion: case.distortion,
        near_clip: 0.1,
        far_clip: 100.0,
        filter: case.filter,
        color_space: Default::default(),
        spp: 1,
        reference: None,
        held_out: false,
        medium: None,
        ..Sensor::default()
    }
}

/// The scene of a case.
fn scene(case: &Case) -> Scene {
    let size = [11, 9, 10];
    let infinite = [f32::NEG_INFINITY, f32::INFINITY];
    let tilt = Quat::from_euler(EulerRot::XYZ, 0.2, -0.4, 0.1);
    let field = RadianceField {
        to_world: Affine3A::from_scale_rotation_translation(Vec3::new(1.0, 0.8, 0.9), tilt, Vec3::new(0.1, 0.0, -0.1)),
        sigma_t: array("object.interior.sigma_t", Kind::Grid, size, 1, 0.05, infinite),
        sh_coeffs: array(
            "object.interior.sh_coeffs",
            Kind::Grid,
            if case.apart { [6, 8, 7] } else { size },
            3 * (case.degree as usize + 1).pow(2),
            0.02,
            [-0.8, 0.9],
        ),
        sh_degree: case.degree,
        density_activation: case.density,
        color_activation: case.color,
        step: 0.7,
        stop: case.stop,
    };
    Scene {
        field: case.field.then_some(field),
        background: match case.emitter {
            Emitter::None => Background::None,
            Emitter::Constant => Background::Constant {
                radiance: array("sky.radiance", Kind::Value, [1, 1, 1], 3, 0.1, [0.0, 1.0]),
            },
            Emitter::Envmap => Background::Envmap {
                data: array("sky.data", Kind::Envmap, [12, 7, 1], 3, 0.1, [0.0, f32::INFINITY]),
                scale: Array::value("sky.scale", &[1.3]),
                sampling_weight: 1.0,
                mis_compensation: false,
                to_world: Affine3A::from_quat(tilt.inverse()),
            },
        },
        sensors: (0..3).map(|i| sensor(case, i)).collect(),
        ..Scene::default()
    }
}

/// The records of a case, with parameters that reach every branch and references.
pub(crate) fn build(case: &Case) -> (Resident, ParamSet) {
    let (mut resident, mut params) = Resident::new(&scene(case)).expect("nothing is read from files");
    for (a, parameter) in params.parameters.iter_mut().enumerate() {
        let channels = parameter.shape.channels;
        for (i, v) in parameter.values.iter_mut().enumerate() {
            let u = noise(a as u32, i);
            *v = match (parameter.kind, channels) {
                // Empty where x is large; elsewhere texels of both signs.
                (Kind::Grid, 1) if i % 11 > 7 => -1.0 - u,
                (Kind::Grid, 1) => 4.0 * u - 2.5,
                (Kind::Grid, _) if i % channels < 3 => 5.0 * u - 1.0,
                (Kind::Grid, _) => 1.0 * (u - 0.5),
                _ => u,
            };
        }
    }
    set_references(case.matched, &mut resident);
    (resident, params)
}

fn set_references(matched: Matched, resident: &mut Resident) {
    let pixels: Vec<usize> = resident.sensors.iter().map(|s| (s.width * s.height) as usize).collect();
    match matched {
        Matched::Constant => resident.set_constant_reference([0.3, 0.5, 0.7]),
        Matched::Renders => {
            let image = |s: usize| (0..pixels[s]).map(|i| [0, 1, 2, 3].map(|c| noise(20 + c, i))).collect();
            resident.set_references([(0, image(0)), (2, image(2))]);
            assert_eq!(resident.sensors[1].first_pixel, NO_REFERENCE);
        }
        Matched::Photographs => {
            let total: usize = pixels.iter().sum();
            let byte = |c: u32, i: usize| (noise(30 + c, i) * 256.0) as u8;
            let data = (0..total).map(|i| u32::from_le_bytes([0, 1, 2, 3].map(|c| byte(c, i))));
            resident.references = Pixels::Unorm8(data.collect());
            let mut first = 0;
            for (s, sensor) in resident.sensors.iter_mut().enumerate() {
                sensor.first_pixel = first;
                sensor.backdrop = [backdrop::COLOR, backdrop::RANDOM, backdrop::OPAQUE][s];
                sensor.backdrop_color = [0.9, 0.8, 0.2, 0.0];
                first += pixels[s] as u32;
            }
        }
    }
}
