//! Worlds of scattering media, surfaces and lamps that both devices look at.

use std::f32::consts::PI;
use std::path::PathBuf;

use glam::{Affine2, Affine3A, Quat, Vec2, Vec3};
use prbopt::params::{Kind, ParamSet, Shape, Tuning};
use prbopt::resident::Resident;
use prbopt::scene::{
    Area, AreaEmitter, AreaForm, Array, Background, Bsdf, Estimator, Filter, Geometry, Gradient, Integrator, Light,
    LightKind, Lookup, Medium, Phase, Rules, Scene, Sensor, SensorKind, Source, Surface, Target, Texture, World, Wrap,
};

use super::scenes::noise;

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
    pub(super) rules: Rules,
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
pub(super) fn world(medium: Medium) -> World {
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
pub(super) fn lamps() -> Vec<Light> {
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
pub(super) fn nested() -> World {
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
pub(super) fn furnished() -> World {
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

pub(super) fn coloured() -> Medium {
    Medium {
        sigma_t: grid("cube.interior.sigma_t", [8, 9, 10], &[1.0, 0.6, 0.3], 4.0),
        albedo: constant("cube.interior.albedo", &[0.9, 0.8, 0.6], 0.99),
        ..smoke()
    }
}

pub(super) fn blended() -> Medium {
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

pub(super) fn cases() -> Vec<Case> {
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

pub(super) fn build(case: &Case) -> (Resident, ParamSet) {
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
