//! `heightfield`: a slab of glass with one flat side and one whose heights are a texture, which light is sent through by
//! the integrator `ptracer`.

use glam::{Affine2, Affine3A};

use super::context::Context;
use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::world::{Material, Model};
use super::{
    Array, Bsdf, Filter, Rules, Scene, SensorKind, Source, Texture, TextureMap, Wrap, bsdf, texture, transform,
};

/// The widest radius of a filter that is splatted, in pixels.
pub const SPLAT_REACH: f32 = 16.0;

/// The type.
pub(super) const TYPE: &str = "heightfield";

/// A slab [-1, 1]² × [-`thickness`, height].
#[derive(Debug, Clone)]
pub struct Slab {
    pub name: String,
    pub to_world: Affine3A,
    /// From the flat side, which light enters by, to height zero; in local units, as heights are.
    pub thickness: f32,
    /// One channel: coefficients of a biquadratic spline over the side z = height, texel (0, 0) at x = y = -1.
    pub heights: Array,
    /// Index of refraction inside over that outside; above one.
    pub eta: f32,
    /// Factor on the light that passes a side.
    pub transmittance: [f32; 3],
}

impl Slab {
    /// The heights as a texture, as which they stand in a file.
    pub(super) fn texture(&self) -> Texture {
        Texture::Bitmap(TextureMap {
            data: self.heights.clone(),
            nearest: false,
            wrap: Wrap::Clamp,
            to_uv: Affine2::IDENTITY,
        })
    }
}

/// The slab called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<Slab> {
    let mut object = value.plugin(Class::Shape)?;
    let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
    let thickness = object.require_number("thickness", "the distance of its flat side from height zero");
    let heights = object.require("heights", "a `bitmap` of heights");
    let heights = heights.and_then(|value| self::heights(&value, name));
    let glass = glass(&mut object);
    object.finish();
    let (eta, transmittance) = glass?;
    Some(Slab {
        name: name.to_string(),
        to_world,
        thickness: thickness? as f32,
        heights: heights?,
        eta,
        transmittance,
    })
}

fn heights(value: &Value<'_>, name: &str) -> Option<Array> {
    let found = texture::read_scalar(value, Quantity::Elevation)?;
    let Texture::Bitmap(map) = found else {
        value.error(
            "the heights of a slab are no `bitmap`",
            "give one, with `data` or a `filename`",
        );
        return None;
    };
    if map.wrap != Wrap::Clamp || map.nearest || map.to_uv != Affine2::IDENTITY {
        let advice = "give the `wrap_mode` `clamp`, and neither `to_uv` nor the `filter_type` `nearest`";
        value.error(
            "the heights of a slab are one smooth surface that ends at its rim",
            advice,
        );
        return None;
    }
    Some(Array {
        path: format!("{name}.heights"),
        ..map.data
    })
}

/// Index and transmittance of the smooth glass that a slab must be of.
fn glass(object: &mut Object<'_>) -> Option<(f32, [f32; 3])> {
    let found = object.nested_named(Class::Bsdf);
    let Some((_, value)) = found else {
        object.error("the slab has no material", "give it a `dielectric`");
        return None;
    };
    let nested = bsdf::read(&value)?;
    let Bsdf::Material(
        material @ Material {
            model: Model::Dielectric,
            ..
        },
    ) = &nested.bsdf
    else {
        let what = format!("a slab of `{}`", nested.bsdf.name());
        value.error(what, "light is traced through smooth glass: give it a `dielectric`");
        return None;
    };
    let [eta, reflected, passed] = ["eta", "specular_reflectance", "specular_transmittance"].map(|key| {
        let input = material.inputs.iter().find(|input| input.key == key)?;
        match &input.texture {
            Texture::Constant(array) => match &array.source {
                Source::Fill(values) => Some([0, 1, 2].map(|c| values[c % values.len()])),
                _ => None,
            },
            _ => None,
        }
    });
    let (Some([eta, ..]), Some(reflected), Some(passed)) = (eta, reflected, passed) else {
        value.error(
            "the glass of a slab varies over it",
            "give numbers or colours in place of textures",
        );
        return None;
    };
    if eta <= 1.0 {
        value.error(
            format!("the slab's index is {eta} times that around it"),
            "expected more than 1: exchange `int_ior` and `ext_ior`, or take a denser glass",
        );
        return None;
    }
    if reflected != [0.0; 3] {
        value.error(
            "the slab reflects light",
            "only what passes it is traced: give the `specular_reflectance` 0",
        );
        return None;
    }
    Some((eta, passed))
}

/// Checks of what is traced from lights, after all else has been read.
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
    match (&scene.slab, traced) {
        (Some(slab), false) => refuse(format!(
            "the slab `{}` is lit by light tracing alone: add the integrator `ptracer`",
            slab.name
        )),
        (None, true) => refuse(
            "the integrator `ptracer` sends light through a slab, but the scene has none: add a `heightfield`"
                .to_string(),
        ),
        (Some(slab), true) => parts(scene, slab).into_iter().for_each(refuse),
        (None, false) => {}
    }
}

/// What is wrong with a scene that is traced from its light.
fn parts(scene: &Scene, slab: &Slab) -> Vec<String> {
    let mut wrong = Vec::new();
    let world = &scene.world;
    let is_light = |surface: &&super::Surface| surface.emitter.as_ref().is_some_and(|emitter| emitter.directional);
    let (lights, screens): (Vec<_>, Vec<_>) = world.surfaces.iter().partition(is_light);
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
        if found != 1 {
            wrong.push(format!("`ptracer` sees {found} {what}, expected 1: {advice}"));
        }
    }
    for surface in &world.surfaces {
        if surface.geometry != super::Geometry::Rectangle {
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
    let others = world.media.len() + world.groups.len() + world.instances.len() + world.lights.len();
    if others > 0 || !matches!(scene.background, super::Background::None) {
        wrong.push(
            "`ptracer` follows one `directionalarea` light alone: remove media, groups and other emitters".into(),
        );
    }
    if !is_similarity(&slab.to_world) {
        wrong.push(format!(
            "`to_world` of the slab `{}` changes its angles: scale it alike along all axes",
            slab.name
        ));
    }
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
        if sensor.filter.radius() > SPLAT_REACH {
            wrong.push(format!(
                "the filter of `{}` is wider than 16 pixels, the most that is splatted",
                sensor.name
            ));
        }
    }
    for visited in scene.visit() {
        let Some(tuning) = visited.array.tuning else { continue };
        let path = &visited.array.path;
        if visited.quantity != Quantity::Elevation {
            wrong.push(format!(
                "`{path}` cannot be optimised by `ptracer`, only `{}`",
                slab.heights.path
            ));
        } else if tuning.bounds[0].is_nan() || tuning.bounds[0] <= -slab.thickness {
            wrong.push(format!(
                "the lower bound {} of `{path}` lets it cross the slab's other side at {}: give `bounds` above that",
                tuning.bounds[0], -slab.thickness
            ));
        }
    }
    wrong
}

/// The reflectance of a screen, where it is one colour.
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

/// By how much the axes of a slab may differ, as a share of their length.
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
