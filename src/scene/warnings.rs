//! Warnings about a scene as a whole.

use std::collections::{HashMap, HashSet};

use super::context::Context;
use super::motion;
use super::optic::screen_reflectance;
use super::quantity::Quantity;
use super::unseen;
use super::world::Input;
use super::{Backdrop, Background, Bsdf, Geometry, Model, Scene, Source, Surface, Texture, Visited, files};

/// Records all warnings; those about derivatives by some parameters for those in `asked`, or for all optimised ones if that is empty.
pub(super) fn note(context: &Context<'_>, scene: &Scene, asked: &[String]) {
    backdrops(context, scene);
    if scene
        .sensors
        .iter()
        .any(|sensor| sensor.color_space != scene.sensors[0].color_space)
    {
        context.warn("some films are `linear` and some `srgb`: one medium cannot look right in both");
    }
    unseen::note(context, scene);
    singular(context, scene);
    meshes(context, scene);
    images(context, scene);
    motion::warn(context, scene, asked);
    facets(context, scene, asked);
}

/// Incomplete derivatives of GGX's transmission: it jumps to zero where its half vector reaches the horizon, and derivatives by
/// an index or a normal leave out that this border moves (docs/method.md, section 12).
fn facets(context: &Context<'_>, scene: &Scene, asked: &[String]) {
    let all = scene.world.surfaces.iter();
    let mut surfaces = all.chain(scene.world.groups.iter().flat_map(|group| &group.surfaces));
    if let Some(path) = surfaces.find_map(|surface| turned(&surface.bsdf, None, asked)) {
        context.warn_of_derivatives(format!(
            "what facets of `ggx` transmit ends at a border that moves with `{path}`, which derivatives by that leave out: some percent \
             of those by an index, most of those by normals where little is reflected; a `roughdielectric` with the `distribution` \
             `beckmann` has no such border"
        ));
    }
}

/// The path of a parameter by which derivatives are wanted and that turns the half vectors of GGX's transmission: `relief`, that of
/// a normal or bump map around `bsdf`, else an index; None if there is none.
fn turned<'a>(bsdf: &'a Bsdf, relief: Option<&'a str>, asked: &[String]) -> Option<&'a str> {
    match bsdf {
        Bsdf::Null => None,
        Bsdf::Material(material) => {
            let transmits = |input: &Input| input.key == "spec_trans" && !input.texture.is_always(0.0);
            let ggx = match material.model {
                Model::RoughDielectric => !material.facets.beckmann,
                Model::Principled => material.inputs.iter().any(transmits),
                _ => false,
            };
            let mut indices = material.inputs.iter().filter(|input| {
                matches!(
                    input.quantity,
                    Quantity::Index | Quantity::DenserIndex | Quantity::Specular
                )
            });
            let index = || indices.find_map(|input| input.texture.tuned(asked));
            ggx.then(|| relief.or_else(index)).flatten()
        }
        Bsdf::TwoSided { sides } => sides.iter().find_map(|side| turned(&side.bsdf, relief, asked)),
        Bsdf::Mask { nested, .. } => turned(&nested.bsdf, relief, asked),
        Bsdf::Blend { nested, .. } => nested.iter().find_map(|part| turned(&part.bsdf, relief, asked)),
        Bsdf::Relief { relief: own, nested } => turned(&nested.bsdf, own.texture.tuned(asked).or(relief), asked),
    }
}

/// Jacobians of rays that are to be inverted with a `regularization` of 0, but are singular at diffuse surfaces.
fn singular(context: &Context<'_>, scene: &Scene) {
    let is_diffuse = |bsdf: &Bsdf| matches!(bsdf, Bsdf::Material(material) if material.model == Model::Diffuse);
    let scatters = |surface: &Surface| is_diffuse(&surface.bsdf) && screen_reflectance(&surface.bsdf) != Some([0.0; 3]);
    if scene.integrator.inverted == Some(0.0) && scene.world.surfaces.iter().any(scatters) {
        context.warn_of_derivatives(
            "the `regularization` is 0, and at a `diffuse` surface Jacobians of rays have no inverse: what is seen behind one moves \
             nothing; remove it, or say \"jacobians\": \"kept\"",
        );
    }
}

/// Images of reflectances above 1, by which a surface reflects more light than it receives, and of shares outside of [0, 1].
fn images(context: &Context<'_>, scene: &Scene) {
    let mut known = HashSet::new();
    for Visited { array, quantity, .. } in scene.visit() {
        if let Source::Share { path, .. } = &array.source
            && known.insert((path, true))
            && let Some((outside, all, _)) = files::unusual_values(path, |v| !(0.0..=1.0).contains(&v))
        {
            context.warn(format!(
                "{outside} of {all} values of {}, which `{}` shows, lie outside of 0 and 1, to which they are clamped, as in Mitsuba: \
                 correct the image if that is not meant",
                path.display(),
                array.path
            ));
        }
        let Source::Reflectance { path, .. } = &array.source else {
            continue;
        };
        if quantity != Quantity::Reflectance || !known.insert((path, false)) {
            continue;
        }
        if let Some((above, all, most)) = files::unusual_values(path, |v| v > 1.0) {
            context.warn(format!(
                "{above} of {all} values of {}, which `{}` shows, are above 1, the largest {most}: they are used as they are, and more \
                 light is reflected than falls on them; correct the image if that is not meant",
                path.display(),
                array.path
            ));
        }
    }
}

/// Meshes with faces that are left out, with vertices that lack what others have, with triangles of zero area, and meshes without
/// texture coordinates that have image textures. Mistakes in mesh files are reported where the meshes are used.
fn meshes(context: &Context<'_>, scene: &Scene) {
    let world = &scene.world;
    let all = world
        .surfaces
        .iter()
        .chain(world.groups.iter().flat_map(|group| &group.surfaces));
    let mut known: HashMap<_, Option<([usize; 3], usize, bool)>> = HashMap::new();
    for surface in all {
        let Geometry::Mesh {
            path,
            format,
            face_normals,
            ..
        } = &surface.geometry
        else {
            continue;
        };
        let found = known.entry((path, *format, *face_normals)).or_insert_with(|| {
            let mesh = format.read(path, *face_normals, false).ok()?;
            let counts = [mesh.dropped_faces, mesh.bare_vertices, mesh.flat_triangles()];
            Some((counts, mesh.triangles.len(), mesh.uvs.is_empty()))
        });
        let Some(([dropped, bare, flat], all, has_no_uvs)) = *found else {
            continue;
        };
        let (name, path) = (&surface.name, path.display());
        if dropped > 0 {
            context.warn(format!(
                "{dropped} of the faces of `{name}` {} fewer than three corners and {} left out, as in Mitsuba: remove them from {path}",
                if dropped == 1 { "has" } else { "have" },
                if dropped == 1 { "is" } else { "are" }
            ));
        }
        if bare > 0 {
            context.warn(format!(
                "{bare} of the vertices of `{name}` {} no normal or no texture coordinates, unlike others: a missing normal is that of \
                 the faces around, missing texture coordinates are (0, 0); write them into {path}",
                if bare == 1 { "has" } else { "have" }
            ));
        }
        if flat > 0 {
            context.warn(format!(
                "{flat} of the {all} triangles of `{name}` {} no area, and nothing is seen of them: remove them from {path}",
                if flat == 1 { "has" } else { "have" }
            ));
        }
        if has_no_uvs && shows_images(surface) {
            context.warn(format!(
                "the mesh of `{name}` has no texture coordinates, so that each of its triangles shows the same half of the image: \
                 write them into {path}"
            ));
        }
    }
}

/// Whether textures of a surface are looked up by its texture coordinates.
fn shows_images(surface: &Surface) -> bool {
    of_bsdf(&surface.bsdf)
        || surface
            .emitter
            .as_ref()
            .is_some_and(|emitter| is_image(&emitter.radiance))
}

fn of_bsdf(bsdf: &Bsdf) -> bool {
    match bsdf {
        Bsdf::Null => false,
        Bsdf::Material(material) => material.inputs.iter().any(|input| is_image(&input.texture)),
        Bsdf::TwoSided { sides } => sides.iter().any(|side| of_bsdf(&side.bsdf)),
        Bsdf::Mask { opacity, nested } => is_image(opacity) || of_bsdf(&nested.bsdf),
        Bsdf::Blend { weight, nested } => is_image(weight) || nested.iter().any(|part| of_bsdf(&part.bsdf)),
        Bsdf::Relief { relief, nested } => is_image(&relief.texture) || of_bsdf(&nested.bsdf),
    }
}

fn is_image(texture: &Texture) -> bool {
    matches!(
        texture,
        Texture::Bitmap(_) | Texture::Checkerboard { .. } | Texture::Squares { .. }
    )
}

/// Photographs that are composited on another colour than the scene's background: the medium would learn the difference.
fn backdrops(context: &Context<'_>, scene: &Scene) {
    let behind = match &scene.background {
        Background::None => Some([0.0; 3]),
        Background::Constant { radiance } if radiance.tuning.is_none() => match &radiance.source {
            Source::Fill(values) => <[f32; 3]>::try_from(values.as_slice()).ok(),
            _ => None,
        },
        Background::Constant { .. } | Background::Envmap { .. } => None,
    };
    let backdrops = scene
        .sensors
        .iter()
        .filter_map(|sensor| sensor.reference.as_ref())
        .map(|image| image.backdrop);
    for backdrop in backdrops {
        let message = match (backdrop, behind) {
            (Backdrop::Color(color), Some(behind)) if color != behind => format!(
                "the photographs are composited on {color:?} but the scene's background is {behind:?}: \
                 a `constant` emitter of the same radiance makes them agree"
            ),
            (Backdrop::Random, behind) if behind != Some([0.0; 3]) => {
                "the photographs are composited on random colours, which replace the scene's emitter: remove it"
                    .to_string()
            }
            _ => continue,
        };
        context.warn(message);
        return;
    }
}
