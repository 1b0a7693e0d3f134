//! Scattering media on both devices: the same seed gives the same paths, but for the few that rounding sends another
//! way.

use std::f32::consts::PI;
use std::path::PathBuf;

use glam::{Affine2, Affine3A, Quat, Vec2, Vec3};
use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::records::UNIFORM_VECTORS;
use prbopt::device::gpu::{DispatchSize, Options};
use prbopt::device::{ArrayKind, Batch, Device, Step};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::params::{Kind, ParamSet, Shape, Tuning};
use prbopt::resident::{Resident, layout};
use prbopt::scene::{
    Area, AreaEmitter, AreaForm, Array, Background, Bsdf, Estimator, Filter, Geometry, Gradient, Integrator, Light,
    LightKind, Lookup, Medium, Phase, Rules, Scene, Sensor, SensorKind, Source, Surface, Target, Texture, World, Wrap,
};
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::Pass;

use super::scenes::noise;
use super::{gpu, keys};

pub(super) const SPP: u32 = 4;
const EDGE: u32 = 10;

/// One scene and how it is differentiated.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) world: World,
    background: Background,
    gradient: Gradient,
    max_depth: u32,
    hide_emitters: bool,
    rules: Rules,
    /// The medium around the sensors.
    medium: Option<usize>,
    /// Changes the second sensor.
    look: fn(&mut Sensor),
}

impl Case {
    pub(super) fn is_under_a_map(&self) -> bool {
        matches!(self.background, Background::Envmap { .. })
    }
}

fn array(path: &str, kind: Kind, size: [usize; 3], values: &[f32], bounds: [f32; 2]) -> Array {
    Array {
        path: path.into(),
        kind,
        shape: Shape {
            size,
            channels: values.len(),
        },
        source: Source::Fill(values.to_vec()),
        tuning: Some(Tuning {
            learning_rate: 1e-3,
            bounds,
            smoothing: 0.0,
        }),
    }
}

pub(super) fn value(path: &str, values: &[f32], bounds: [f32; 2]) -> Array {
    array(path, Kind::Value, [1; 3], values, bounds)
}

/// A volume in the cube [-1, 1]³, later filled with noise times `values`.
fn grid(path: &str, size: [usize; 3], values: &[f32], high: f32) -> Lookup {
    Lookup {
        array: array(path, Kind::Grid, size, values, [0.0, high]),
        constant: false,
        to_world: Affine3A::from_scale_rotation_translation(Vec3::splat(2.0), Quat::IDENTITY, Vec3::NEG_ONE),
        nearest: false,
        wrap: Wrap::Clamp,
    }
}

pub(super) fn constant(path: &str, values: &[f32], high: f32) -> Lookup {
    Lookup {
        array: value(path, values, [0.0, high]),
        constant: true,
        to_world: Affine3A::IDENTITY,
        nearest: false,
        wrap: Wrap::Clamp,
    }
}

fn hg(path: &str, g: f32) -> Phase {
    Phase::Hg {
        g: value(path, &[g], [-0.9, 0.9]),
    }
}

/// A smoky cube.
pub(super) fn smoke() -> Medium {
    Medium {
        path: "cube.interior".into(),
        homogeneous: false,
        sigma_t: grid("cube.interior.sigma_t", [17, 9, 10], &[1.0], 4.0),
        albedo: grid("cube.interior.albedo", [17, 9, 10], &[0.9, 0.8, 0.6], 0.99),
        emission: None,
        scale: 3.0,
        phase: hg("cube.interior.phase.g", 0.4),
    }
}

pub(super) fn surface(geometry: Geometry, to_world: Affine3A, bsdf: Bsdf, media: [Option<usize>; 2]) -> Surface {
    Surface {
        name: "surface".into(),
        geometry,
        to_world,
        flip_normals: false,
        // Two surfaces have the same path only where their BSDFs are the same.
        bsdf_path: format!("{bsdf:?}"),
        bsdf,
        interior: media[0],
        exterior: media[1],
        emitter: None,
        motion: Vec::new(),
        displacement: None,
    }
}

/// An area light of this radiance.
pub(super) fn area_emitter(radiance: Array) -> Option<AreaEmitter> {
    Some(AreaEmitter {
        name: "emitter".into(),
        radiance: Texture::Constant(radiance),
        directional: false,
        sampling_weight: 1.0,
    })
}

pub(super) fn cube() -> Surface {
    surface(Geometry::Cube, Affine3A::IDENTITY, Bsdf::Null, [Some(0), None])
}

fn light(name: &str, kind: LightKind, intensity: f32) -> Light {
    Light {
        name: name.into(),
        kind,
        intensity: value(
            &format!("{name}.intensity"),
            &[intensity, 0.9 * intensity, 0.7 * intensity],
            [0.0, 100.0],
        ),
        texture: None,
        sampling_weight: 1.0,
        motion: Vec::new(),
    }
}

pub(super) fn sky() -> Background {
    Background::Constant {
        radiance: value("sky.radiance", &[0.8, 0.9, 1.0], [0.0, 10.0]),
    }
}

pub(super) fn envmap() -> Background {
    Background::Envmap {
        data: array("sky.data", Kind::Envmap, [12, 7, 1], &[1.0, 0.9, 0.7], [0.0, 10.0]),
        scale: value("sky.scale", &[1.3], [0.0, 10.0]),
        sampling_weight: 1.0,
        mis_compensation: false,
        to_world: Affine3A::from_quat(Quat::from_rotation_x(0.4)),
    }
}

/// A world of one cube with this medium.
fn world(medium: Medium) -> World {
    World {
        surfaces: vec![cube()],
        media: vec![medium],
        ..World::default()
    }
}

pub(super) fn case(name: &'static str, world: World, background: Background, gradient: Gradient) -> Case {
    Case {
        name,
        world,
        background,
        gradient,
        max_depth: 8,
        hide_emitters: false,
        rules: Rules::Volpath,
        medium: None,
        look: |_| {},
    }
}

/// A point, a spot and a directional light.
fn lamps() -> Vec<Light> {
    vec![
        light(
            "lamp",
            LightKind::Point {
                position: [1.5, 2.0, 1.0],
            },
            20.0,
        ),
        light(
            "spot",
            LightKind::Spot {
                to_world: looking_from(Vec3::new(-2.5, 1.0, 1.0)),
                cutoff: 0.5,
                beam: 0.3,
            },
            25.0,
        ),
        light(
            "sun",
            LightKind::Directional {
                direction: Vec3::new(0.2, -0.9, -0.4).normalize().to_array(),
            },
            2.0,
        ),
    ]
}

/// Smoke with a ball of other smoke in it, which the camera ray enters through two surfaces.
fn nested() -> World {
    let ball = Medium {
        path: "ball.interior".into(),
        homogeneous: true,
        sigma_t: constant("ball.interior.sigma_t", &[2.0], 5.0),
        albedo: constant("ball.interior.albedo", &[0.7, 0.9, 0.95], 0.99),
        emission: None,
        scale: 1.0,
        phase: Phase::Isotropic,
    };
    let place = Geometry::Sphere {
        center: [0.1, 0.0, 0.1],
        radius: 0.5,
    };
    World {
        surfaces: vec![
            cube(),
            surface(place, Affine3A::IDENTITY, Bsdf::Null, [Some(1), Some(0)]),
        ],
        media: vec![smoke(), ball],
        lights: lamps(),
        ..World::default()
    }
}

/// Smoke over a checkered floor, under a square light and beside a shining ball.
fn furnished() -> World {
    let floor = Bsdf::diffuse(Texture::Checkerboard {
        colors: Box::new([
            value("floor.bsdf.color0", &[0.8, 0.7, 0.6], [0.0, 1.0]),
            value("floor.bsdf.color1", &[0.2, 0.3, 0.1], [0.0, 1.0]),
        ]),
        to_uv: Affine2::from_scale(Vec2::splat(3.0)),
    });
    let down = Affine3A::from_rotation_x(0.5 * PI);
    let up = Affine3A::from_rotation_x(-0.5 * PI);
    let grey = |x: f32| Bsdf::diffuse(Texture::Constant(value(&format!("grey.{x}"), &[x; 3], [0.0, 1.0])));
    let lying = Affine3A::from_translation(Vec3::new(0.0, -1.2, 0.0)) * Affine3A::from_scale(Vec3::splat(3.0)) * up;
    let above = Affine3A::from_translation(Vec3::new(0.0, 2.5, 0.0)) * down;
    let mut panel = surface(Geometry::Rectangle, above, grey(0.2), [None; 2]);
    panel.emitter = area_emitter(value("panel.radiance", &[4.0, 3.0, 2.0], [0.0, 100.0]));
    let place = Geometry::Sphere {
        center: [-1.9, 0.2, 0.4],
        radius: 0.4,
    };
    let mut ball = surface(place, Affine3A::IDENTITY, grey(0.0), [None; 2]);
    ball.emitter = area_emitter(value("ball.radiance", &[1.0, 3.0, 5.0], [0.0, 100.0]));
    World {
        surfaces: vec![
            cube(),
            surface(Geometry::Rectangle, lying, floor, [None; 2]),
            panel,
            ball,
        ],
        media: vec![smoke()],
        ..World::default()
    }
}

/// Every kind of lookup: nearest, wrapped, of another resolution.
fn lookups() -> Medium {
    let mut medium = smoke();
    medium.sigma_t.to_world =
        Affine3A::from_scale_rotation_translation(Vec3::splat(2.0), Quat::from_rotation_y(0.3), Vec3::NEG_ONE);
    medium.sigma_t.wrap = Wrap::Repeat;
    medium.albedo = grid("cube.interior.albedo", [5, 6, 7], &[0.9, 0.8, 0.6], 0.99);
    medium.albedo.nearest = true;
    medium.albedo.wrap = Wrap::Repeat;
    medium.emission = Some(grid("cube.interior.emission", [4, 3, 5], &[0.5, 0.4, 0.1], 9.0));
    for lookup in medium.emission.iter_mut() {
        lookup.wrap = Wrap::Mirror;
        lookup.to_world = Affine3A::from_scale(Vec3::splat(0.7));
    }
    medium
}

fn coloured() -> Medium {
    Medium {
        sigma_t: grid("cube.interior.sigma_t", [8, 9, 10], &[1.0, 0.6, 0.3], 4.0),
        albedo: constant("cube.interior.albedo", &[0.9, 0.8, 0.6], 0.99),
        ..smoke()
    }
}

fn blended() -> Medium {
    let inner = Phase::Blend {
        weight: Box::new(constant("cube.interior.phase.weight_2", &[0.4], 1.0)),
        phases: Box::new([Phase::Rayleigh, hg("cube.interior.phase.g_2", -0.3)]),
    };
    Medium {
        phase: Phase::Blend {
            weight: Box::new(grid("cube.interior.phase.weight", [4, 4, 4], &[0.8], 1.0)),
            phases: Box::new([hg("cube.interior.phase.g", 0.6), inner]),
        },
        ..smoke()
    }
}

/// Fog without end around a grey ball.
fn fog() -> World {
    let grey = Bsdf::diffuse(Texture::Constant(value("ball.bsdf.reflectance", &[0.5; 3], [0.0, 1.0])));
    let place = Geometry::Sphere {
        center: [0.0; 3],
        radius: 0.5,
    };
    World {
        surfaces: vec![surface(place, Affine3A::IDENTITY, grey, [None; 2])],
        media: vec![Medium {
            homogeneous: true,
            sigma_t: constant("fog.sigma_t", &[0.5, 0.3, 0.2], 5.0),
            albedo: constant("fog.albedo", &[0.9, 0.8, 0.6], 0.99),
            ..smoke()
        }],
        lights: lamps(),
        ..World::default()
    }
}

fn cases() -> Vec<Case> {
    use Gradient::{Drt, FreeFlight, Paired};
    let mut glowing = smoke();
    glowing.emission = Some(grid("cube.interior.emission", [17, 9, 10], &[2.0, 1.0, 0.5], 9.0));
    vec![
        case("constant light, drt", world(smoke()), sky(), Drt),
        case("constant light, paired", world(smoke()), sky(), Paired),
        case("envmap, free flight", world(smoke()), envmap(), FreeFlight),
        case("lamps, nested media, drt", nested(), Background::None, Drt),
        case("rgb extinction, envmap, drt", world(coloured()), envmap(), Drt),
        case("rgb extinction, envmap, paired", world(coloured()), envmap(), Paired),
        case("rgb extinction, free flight", world(coloured()), sky(), FreeFlight),
        case("blended phases, envmap, drt", world(blended()), envmap(), Drt),
        case("emission, drt", world(glowing.clone()), Background::None, Drt),
        case("emission, paired", world(glowing), Background::None, Paired),
        case("lookups, emission, free flight", world(lookups()), sky(), FreeFlight),
        case("floor, panel and ball, drt", furnished(), sky(), Drt),
        case("floor, panel and ball, paired", furnished(), sky(), Paired),
        Case {
            medium: Some(0),
            ..case("fog without end, paired", fog(), Background::None, Paired)
        },
        Case {
            hide_emitters: true,
            max_depth: 3,
            ..case("hidden lights, free flight", furnished(), envmap(), FreeFlight)
        },
        Case {
            rules: Rules::Path,
            hide_emitters: true,
            look: |sensor| {
                sensor.filter = Filter::Mitchell { b: 0.2, c: 0.4 };
                sensor.kind = SensorKind::ThinLens {
                    aperture_radius: 0.1,
                    focus_distance: 3.0,
                };
            },
            ..case("path, thin lens, mitchell", furnished(), envmap(), FreeFlight)
        },
        Case {
            rules: Rules::Basic,
            look: |sensor| {
                sensor.filter = Filter::Lanczos { lobes: 3 };
                sensor.sample_border = true;
                sensor.kind = SensorKind::Orthographic;
                sensor.focal = [0.4 * EDGE as f32; 2];
            },
            ..case("prb_basic, orthographic, lanczos", furnished(), sky(), FreeFlight)
        },
        Case {
            look: |sensor| sensor.kind = SensorKind::Irradiancemeter(area(AreaForm::Rectangle)),
            ..case("irradiance of a rectangle, drt", world(smoke()), sky(), Drt)
        },
        Case {
            rules: Rules::Prb,
            look: |sensor| sensor.kind = SensorKind::Irradiancemeter(area(AreaForm::Sphere)),
            ..case("irradiance of a cavity", furnished(), envmap(), FreeFlight)
        },
        Case {
            rules: Rules::Prb,
            look: |sensor| sensor.kind = SensorKind::Irradiancemeter(area(AreaForm::Cube)),
            ..case("irradiance of a room", furnished(), envmap(), FreeFlight)
        },
        Case {
            rules: Rules::Prb,
            look: |sensor| sensor.kind = SensorKind::Irradiancemeter(area(AreaForm::Cylinder)),
            ..case("irradiance of a pipe", furnished(), envmap(), FreeFlight)
        },
        Case {
            look: |sensor| {
                sensor.kind = SensorKind::Distant {
                    target: Target::Scene,
                    ray_offset: None,
                }
            },
            ..case("from afar, paired", furnished(), sky(), Paired)
        },
        Case {
            look: |sensor| sensor.kind = SensorKind::Irradiancemeter(area(AreaForm::Disk)),
            ..case("irradiance of a disk", furnished(), sky(), Paired)
        },
        Case {
            look: |sensor| {
                sensor.kind = SensorKind::Distant {
                    target: Target::Area(area(AreaForm::Sphere)),
                    ray_offset: Some(3.0),
                }
            },
            ..case("a ball from afar, drt", world(smoke()), sky(), Drt)
        },
    ]
}

/// A rectangle or a disk outside of the world, or a cavity, a room or a pipe around it, that looks at it.
fn area(form: AreaForm) -> Area {
    let turned = looking_from(Vec3::new(0.0, 2.0, 3.0));
    Area {
        form,
        to_world: match form {
            AreaForm::Rectangle | AreaForm::Disk => turned,
            AreaForm::Sphere => Affine3A::from_scale(Vec3::splat(6.0)),
            AreaForm::Cube => Affine3A::from_scale(Vec3::new(-7.0, 6.0, 8.0)),
            AreaForm::Cylinder => {
                Affine3A::from_translation(Vec3::NEG_Z * 4.0) * Affine3A::from_scale(Vec3::new(6.0, 6.0, 8.0))
            }
        },
        flipped: !matches!(form, AreaForm::Rectangle | AreaForm::Disk),
    }
}

/// A `to_world` at `eye` whose +Z points to the origin.
fn looking_from(eye: Vec3) -> Affine3A {
    let forward = (-eye).normalize();
    let left = Vec3::Y.cross(forward).normalize();
    Affine3A::from_cols(left.into(), forward.cross(left).into(), forward.into(), eye.into())
}

fn sensor(index: usize, medium: Option<usize>) -> Sensor {
    Sensor {
        name: format!("view {index}"),
        to_world: looking_from([Vec3::new(0.4, 0.5, 4.0), Vec3::new(3.4, 1.2, 1.5)][index]),
        width: EDGE,
        height: EDGE,
        focal: [1.3 * EDGE as f32; 2],
        center: [0.5 * EDGE as f32; 2],
        near_clip: 0.1,
        far_clip: 100.0,
        medium,
        ..Sensor::default()
    }
}

fn build(case: &Case) -> (Resident, ParamSet) {
    let mut scene = Scene {
        path: PathBuf::from("test"),
        world: case.world.clone(),
        integrator: Integrator {
            rules: case.rules,
            estimator: Estimator::PathReplay,
            max_depth: Some(case.max_depth),
            rr_depth: 4,
            hide_emitters: case.hide_emitters,
            gradient: case.gradient,
            attached: false,
            inverted: None,
        },
        background: case.background.clone(),
        sensors: (0..2).map(|i| sensor(i, case.medium)).collect(),
        ..Scene::default()
    };
    (case.look)(&mut scene.sensors[1]);
    let (mut resident, mut params) = Resident::new(&scene).expect("nothing is read from files");
    resident.set_constant_reference([0.3, 0.5, 0.4]);
    for (a, parameter) in params.parameters.iter_mut().enumerate() {
        if parameter.shape.texels() > 1 {
            for (i, v) in parameter.values.iter_mut().enumerate() {
                *v *= noise(a as u32, i);
            }
        }
    }
    (resident, params)
}

/// What a device computed: images and gradients by name.
pub(super) type Outcome = Vec<(String, Vec<f32>)>;

pub(super) const SGD: Optimizer = Optimizer::Sgd { momentum: 0.0 };

fn load(device: &mut dyn Device, case: &Case) -> Batch {
    let (resident, params) = build(case);
    let table = PixelTable::new(&resident.sensors, &[1, 0]).expect("few pixels");
    device.load(resident, params, SGD).expect("a small scene");
    Batch { table, drawn: None }
}

pub(super) fn image(device: &mut dyn Device, batch: &Batch, name: &str, outcome: &mut Outcome) {
    device.render(batch, keys(Pass::Primal), SPP).expect("renders");
    outcome.push((name.into(), device.image().expect("an image").concat()));
}

pub(super) fn gradients(device: &mut dyn Device, batch: &Batch, outcome: &mut Outcome) {
    device.loss(batch, keys(Pass::Primal), Loss::L2).expect("a loss");
    let stats = device
        .backpropagate(batch, keys(Pass::Adjoint), SPP)
        .expect("gradients");
    assert_eq!(stats.rays, u64::from(batch.pixels() * SPP));
    assert!(stats.drifted * 50 <= stats.rays, "{stats:?}");
    for i in 0..device.params().parameters.len() {
        let path = device.params().parameters[i].path.clone();
        let values = device.read(i, ArrayKind::Gradient).expect("a gradient");
        outcome.push((format!("gradient of {path}"), values));
    }
}

/// The channels of the first surfaces (AOVs), an image, and gradients.
pub(super) fn look(device: &mut dyn Device, case: &Case) -> Outcome {
    let batch = load(device, case);
    let mut outcome = Outcome::new();
    channels(device, &batch, &mut outcome);
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    outcome
}

fn channels(device: &mut dyn Device, batch: &Batch, outcome: &mut Outcome) {
    for aov in 0..=layout::aov::DUV_DY {
        device
            .render_aov(batch, keys(Pass::Primal), SPP, aov)
            .expect("there are surfaces");
        outcome.push((format!("channel {aov}"), device.image().expect("an image").concat()));
    }
}

/// Image, gradients, a step, and images after the step and at another resolution.
pub(super) fn run(device: &mut dyn Device, case: &Case) -> Outcome {
    let batch = load(device, case);
    let mut outcome = Outcome::new();
    channels(device, &batch, &mut outcome);
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    let step = Step {
        optimizer: SGD,
        rate: 1.0,
        count: 1,
    };
    device.step(&step).expect("finite gradients");
    device.rebuild().expect("rebuilds");
    image(device, &batch, "image after a step", &mut outcome);
    // Values still fit into a uniform buffer, so that no kernel is compiled again.
    device.resample(&[(0, [16, 15, 14])], true).expect("resamples");
    image(device, &batch, "image after resampling", &mut outcome);
    outcome
}

/// Larger differences, as a fraction of the largest entry, are more than rounding, which each vertex of a path magnifies.
const TOLERANCE: f32 = 1e-3;
/// Share of an image's or a gradient's entries that may differ: rounding sends some paths another way.
const ASTRAY: f32 = 0.02;
/// Largest difference of the sums of entries, by the sum of their sizes.
const BIAS: f32 = 0.01;

/// Compares two outcomes.
///
/// # Errors
/// The first array that differs, and how.
pub(super) fn compare(a: &Outcome, b: &Outcome) -> Result<(), String> {
    for ((name, a), (other, b)) in a.iter().zip(b) {
        assert_eq!((name, a.len()), (other, b.len()));
        if a.iter().chain(b).any(|x| !x.is_finite()) {
            return Err(format!("{name} is not finite"));
        }
        let scale = a.iter().fold(0f32, |m, v| m.max(v.abs())).max(1e-30);
        let astray = a
            .iter()
            .zip(b)
            .filter(|(a, b)| (*a - *b).abs() > TOLERANCE * scale)
            .count();
        let sum = |x: &[f32]| x.iter().sum::<f32>();
        let sizes = a.iter().map(|x| x.abs()).sum::<f32>().max(1e-30);
        let bias = (sum(a) - sum(b)).abs() / sizes;
        if astray as f32 > (ASTRAY * a.len() as f32).max(if a.len() < 4 { 0.0 } else { 3.0 }) || bias > BIAS {
            return Err(format!(
                "{name}: {astray} of {} entries differ, and the sum by {bias}",
                a.len()
            ));
        }
    }
    Ok(())
}

#[test]
fn devices_follow_the_same_paths() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let mut wrong = Vec::new();
    let mut cases = cases();
    // Drivers compile kernels for longer than they run. Worlds with as many shapes and lamps mostly have the same kinds of them, so
    // that the kernels of one serve the next.
    cases.sort_by_key(|case| {
        let lamps = case.world.lights.len();
        (
            case.world.surfaces.len(),
            lamps,
            case.is_under_a_map(),
            format!("{:?}", case.rules),
        )
    });
    for case in cases {
        let (cpu, gpu) = (run(&mut Cpu::new(), &case), run(&mut gpu, &case));
        if let Err(e) = compare(&cpu, &gpu) {
            wrong.push(format!("{}: {e}", case.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Values that outgrow a uniform buffer, and fit into one again.
#[test]
fn values_that_grow_and_shrink_are_those_of_the_cpu() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let case = case("rgb extinction", world(coloured()), sky(), Gradient::FreeFlight);
    let look_at_all = |device: &mut dyn Device| {
        let batch = load(device, &case);
        let mut outcome = Outcome::new();
        for (name, size, fits) in [
            ("few", [8, 9, 10], true),
            ("many", [20, 18, 16], false),
            ("few again", [8, 9, 10], true),
        ] {
            device.resample(&[(0, size)], true).expect("resamples");
            let values: usize = device.params().parameters.iter().map(|p| p.shape.len()).sum();
            assert_eq!(values <= 4 * UNIFORM_VECTORS as usize, fits, "{name}: {values}");
            image(device, &batch, name, &mut outcome);
            gradients(device, &batch, &mut outcome);
            device.clear_gradients().expect("clears");
        }
        outcome
    };
    let (cpu, gpu) = (look_at_all(&mut Cpu::new()), look_at_all(&mut gpu));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

/// Has a software adapter read records and values from storage buffers, as all others do.
pub(super) fn storage_buffers() -> Options {
    Options {
        uniform_buffers: false,
        ..Options::default()
    }
}

/// Surfaces, their BSDFs and textures, lights and media in storage buffers; tests of waves and of what moves
/// have some, too.
#[test]
fn storage_buffers_give_what_the_cpu_gives() {
    let Some(mut gpu) = gpu(storage_buffers()) else { return };
    let mut world = furnished();
    world.lights = lamps();
    world.media = vec![blended()];
    let case = case(
        "floor, panel, ball and lamps in storage, drt",
        world,
        sky(),
        Gradient::Drt,
    );
    let (cpu, gpu) = (look(&mut Cpu::new(), &case), look(&mut gpu, &case));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_kind_of_sum_adds_the_same_paths() {
    for float_atomics in [true, false] {
        let options = Options {
            deterministic: float_atomics,
            float_atomics,
            ..Options::default()
        };
        let Some(mut gpu) = gpu(options) else { return };
        for case in [&cases()[0], &cases()[3]] {
            let (cpu, gpu) = (run(&mut Cpu::new(), case), run(&mut gpu, case));
            compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{}, {options:?}: {e}", case.name));
        }
    }
}

#[test]
fn worlds_in_two_buffers_have_the_same_bits() {
    let case = case("lamps, nested media, drt", nested(), envmap(), Gradient::Drt);
    let largest = build(&case).1.parameters.iter().map(|p| p.shape.len()).max();
    let [whole, parts] = [None, largest].map(|bank| {
        let options = Options {
            deterministic: true,
            bank,
            ..Options::default()
        };
        gpu(options).map(|mut gpu| run(&mut gpu, &case))
    });
    assert!(whole == parts, "other bits");
}

#[test]
fn deterministic_sums_do_not_depend_on_how_paths_are_cut() {
    let case = &cases()[5];
    let mut first = None;
    for (rays, samples) in [(1 << 18, 64), (64, 1), (77, 3)] {
        let options = Options {
            deterministic: true,
            dispatch_size: Some(DispatchSize { rays, samples }),
            ..Options::default()
        };
        let Some(mut gpu) = gpu(options) else { return };
        let outcome = run(&mut gpu, case);
        let first = first.get_or_insert_with(|| outcome.clone());
        assert!(
            *first == outcome,
            "other bits with {rays} rays and {samples} samples a dispatch"
        );
    }
}

/// The comparison sees a parameter that is 3 % off, an array that is 2 % off, and a NaN.
#[test]
fn planted_faults_in_worlds_are_seen() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let case = &cases()[5];
    let forward = |device: &mut dyn Device, fault: Option<(usize, f32)>| {
        let batch = load(device, case);
        if let Some((parameter, factor)) = fault {
            let mut values = device.read(parameter, ArrayKind::Values).expect("values");
            values.iter_mut().for_each(|v| *v *= factor);
            device.write(parameter, ArrayKind::Values, &values).expect("written");
        }
        let mut outcome = Outcome::new();
        image(device, &batch, "image", &mut outcome);
        gradients(device, &batch, &mut outcome);
        outcome
    };
    let sound = forward(&mut Cpu::new(), None);
    compare(&sound, &forward(&mut gpu, Some((0, 1.0)))).expect("nothing is wrong yet");
    for parameter in 0..gpu.params().parameters.len() {
        let path = gpu.params().parameters[parameter].path.clone();
        let faulty = forward(&mut gpu, Some((parameter, 1.03)));
        compare(&sound, &faulty).expect_err(&format!("{path} is 3 % off"));
    }
    for at in 0..sound.len() {
        let mut faulty = sound.clone();
        faulty[at].1.iter_mut().for_each(|x| *x *= 1.02);
        compare(&sound, &faulty).expect_err("an array that is 2 % off");
        faulty[at].1[0] = f32::NAN;
        compare(&sound, &faulty).expect_err("not a number");
    }
}
