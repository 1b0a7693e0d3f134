//! The refracting object that the integrator `ptracer` traces light through, and checks of that integrator's scenes.

use glam::Affine3A;

use super::context::Context;
use super::gradient_index::IndexCube;
use super::slab::Slab;
use super::world::Model;
use super::{Array, Bsdf, Filter, Geometry, Rules, Scene, Sensor, SensorKind, Source, Surface, Texture};

/// Largest radius of a reconstruction filter by which light is splatted onto a film, in pixels.
pub const SPLAT_REACH: f32 = 16.0;

/// The refracting object between light and screen.
#[derive(Debug, Clone)]
pub enum Optic {
    /// A slab of glass with a height field on one side.
    Slab(Slab),
    /// A cube whose index of refraction varies.
    Cube(IndexCube),
}

impl Optic {
    /// Its name in the scene file.
    pub fn name(&self) -> &str {
        match self {
            Self::Slab(slab) => &slab.name,
            Self::Cube(cube) => &cube.name,
        }
    }

    /// The transform from its local space to the world.
    pub fn to_world(&self) -> &Affine3A {
        match self {
            Self::Slab(slab) => &slab.to_world,
            Self::Cube(cube) => &cube.to_world,
        }
    }

    /// The array of its heights or of its index of refraction.
    pub fn array(&self) -> &Array {
        match self {
            Self::Slab(slab) => &slab.heights,
            Self::Cube(cube) => &cube.index,
        }
    }

    /// The noun for it in messages.
    fn word(&self) -> &'static str {
        match self {
            Self::Slab(_) => "slab",
            Self::Cube(_) => "cube",
        }
    }
}

/// Checks that depend on whether light is traced from the emitters (`ptracer`), after everything else has been read.
pub(super) fn check(context: &Context<'_>, scene: &Scene) {
    let traced = scene.integrator.rules == Rules::Light;
    for surface in &scene.world.surfaces {
        if !traced && surface.emitter.as_ref().is_some_and(|emitter| emitter.directional) {
            context.warn(format!(
                "the `directionalarea` emitter of `{}` shines along its normal alone, which no path from a camera meets: \
                 it stays dark",
                surface.name
            ));
        }
    }
    if context.has_errors() {
        return;
    }
    let refuse = |text: String| context.error(0, text);
    match (&scene.optic, traced) {
        (Some(optic), false) => refuse(format!(
            "the {} `{}` is lit by light tracing alone: add the integrator `ptracer`",
            optic.word(),
            optic.name()
        )),
        (None, true) => films(scene).into_iter().for_each(refuse),
        (Some(optic), true) => parts(scene, optic).into_iter().for_each(refuse),
        (None, false) => {}
    }
}

/// Whether a surface has a `directionalarea` emitter, the only kind of light that `ptracer` traces through an [`Optic`].
pub fn is_light(surface: &Surface) -> bool {
    surface.emitter.as_ref().is_some_and(|emitter| emitter.directional)
}

/// What is wrong with a scene whose light is traced among surfaces, without an [`Optic`]: its films, or a block `optimize`.
fn films(scene: &Scene) -> Vec<String> {
    let mut wrong = Vec::new();
    for sensor in &scene.sensors {
        let sees = matches!(
            sensor.kind,
            SensorKind::Perspective | SensorKind::ThinLens { .. } | SensorKind::Orthographic
        );
        if !sees || sensor.distortion != super::Distortion::None {
            wrong.push(format!(
                "light cannot be splatted onto `{}`: expected a `perspective` or a `thinlens` sensor without distortion, or \
                 an `orthographic` one",
                sensor.name
            ));
        }
        wrong.extend(too_wide(sensor));
    }
    if scene.optimize.is_some() {
        wrong.push(
            "among surfaces `ptracer` only renders: take the integrator `prb` for the block `optimize`, which finds the same \
             picture's derivatives from the camera"
                .into(),
        );
    }
    wrong
}

/// The mistake of a sensor whose filter is wider than [`SPLAT_REACH`].
fn too_wide(sensor: &Sensor) -> Option<String> {
    (sensor.filter.radius() > SPLAT_REACH).then(|| {
        format!(
            "the filter of `{}` is wider than 16 pixels, the most that is splatted",
            sensor.name
        )
    })
}

/// Edges of a light path: to the first and to the second side of the optic, to the screen, and to the sensor.
const LIGHT_DEPTH: u32 = 4;

/// What is wrong with a scene whose light is traced through an optic.
fn parts(scene: &Scene, optic: &Optic) -> Vec<String> {
    let mut wrong = surfaces(scene, optic);
    let world = &scene.world;
    let others = world.media.len() + world.groups.len() + world.instances.len() + world.lights.len();
    if others > 0 || !matches!(scene.background, super::Background::None) {
        wrong.push("`ptracer` follows `directionalarea` lights alone: remove media, groups and other emitters".into());
    }
    if scene.integrator.max_depth.is_some_and(|depth| depth < LIGHT_DEPTH) {
        wrong.push(format!(
            "no light would arrive: its paths through the {} to the sensor have {LIGHT_DEPTH} edges; give a `max_depth` of \
             {LIGHT_DEPTH} or more, or -1 for no limit",
            optic.word()
        ));
    }
    if !is_similarity(optic.to_world()) {
        wrong.push(format!(
            "`to_world` of the {} `{}` changes its angles: scale it alike along all axes",
            optic.word(),
            optic.name()
        ));
    }
    wrong.extend(sensors(scene));
    wrong.extend(tuned(scene, optic));
    wrong
}

/// What is wrong with lights and screens.
fn surfaces(scene: &Scene, optic: &Optic) -> Vec<String> {
    let mut wrong = Vec::new();
    let all = &scene.world.surfaces;
    let (lights, screens): (Vec<_>, Vec<_>) = all.iter().partition(|surface| is_light(surface));
    for (found, what, advice) in [
        (
            lights.len(),
            "`directionalarea` lights",
            "give one `rectangle` such an emitter",
        ),
        (
            screens.len(),
            "screens",
            "let one `rectangle` with a `diffuse` BSDF catch the light",
        ),
    ] {
        match optic {
            Optic::Slab(_) if found != 1 => {
                wrong.push(format!("`ptracer` sees {found} {what}, expected 1: {advice}"));
            }
            Optic::Cube(_) if found == 0 => {
                wrong.push(format!("`ptracer` sees no {what}, expected at least one: {advice}"));
            }
            _ => {}
        }
    }
    for surface in all {
        if surface.geometry != Geometry::Rectangle {
            wrong.push(format!(
                "`{}` is no `rectangle`, of which light and screen are for `ptracer`",
                surface.name
            ));
        }
    }
    for screen in screens {
        if screen.emitter.is_some() || screen_reflectance(&screen.bsdf).is_none() {
            wrong.push(format!(
                "the screen `{}` is not plainly `diffuse`: give it one `reflectance`, and no emitter",
                screen.name
            ));
        }
    }
    wrong
}

/// What is wrong with films.
fn sensors(scene: &Scene) -> Vec<String> {
    let mut wrong = Vec::new();
    for sensor in &scene.sensors {
        let sees = matches!(sensor.kind, SensorKind::Perspective | SensorKind::Orthographic);
        if !sees || sensor.distortion != super::Distortion::None {
            wrong.push(format!(
                "light cannot be splatted onto `{}`: expected a `perspective` sensor without distortion or an `orthographic` one",
                sensor.name
            ));
        }
        if scene.optimize.is_some() && sensor.filter == Filter::Box {
            wrong.push(format!(
                "the `box` filter of `{}` has no slope for light that moves to follow: take a `gaussian`",
                sensor.name
            ));
        }
        wrong.extend(too_wide(sensor));
    }
    wrong
}

/// What is wrong with the parameters of a run.
fn tuned(scene: &Scene, optic: &Optic) -> Vec<String> {
    let mut wrong = Vec::new();
    for visited in scene.visit() {
        let Some(tuning) = visited.array.tuning else { continue };
        let path = &visited.array.path;
        if *path != optic.array().path {
            wrong.push(format!(
                "`{path}` cannot be optimised by `ptracer`, only `{}`",
                optic.array().path
            ));
            continue;
        }
        if let Optic::Slab(slab) = optic
            && (tuning.bounds[0].is_nan() || tuning.bounds[0] <= -slab.thickness)
        {
            wrong.push(format!(
                "the lower bound {} of `{path}` lets it cross the slab's other side at {}: give `bounds` above that",
                tuning.bounds[0], -slab.thickness
            ));
        }
    }
    wrong
}

/// The reflectance of a screen whose BSDF (of a `twosided` one, that of the front) is `diffuse` with one colour; else None.
pub fn screen_reflectance(bsdf: &Bsdf) -> Option<[f32; 3]> {
    match bsdf {
        Bsdf::TwoSided { sides } => screen_reflectance(&sides[0].bsdf),
        Bsdf::Material(material) if material.model == Model::Diffuse => match &material.inputs[0].texture {
            Texture::Constant(array) => match &array.source {
                Source::Fill(values) => Some([0, 1, 2].map(|c| values[c % values.len()])),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Largest relative difference of the lengths of an optic's axes, and largest cosine of the angles between them.
const ALIKE: f32 = 1e-4;

fn is_similarity(map: &Affine3A) -> bool {
    let m = map.matrix3;
    let square = m.x_axis.length_squared();
    let axes = [m.x_axis, m.y_axis, m.z_axis];
    let lengths = axes
        .iter()
        .all(|axis| (axis.length_squared() - square).abs() <= 2.0 * ALIKE * square);
    let angles = (0..3).all(|i| axes[i].dot(axes[(i + 1) % 3]).abs() <= ALIKE * square);
    square > 0.0 && lengths && angles
}
