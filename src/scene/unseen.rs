//! Warnings of what a picture will not show: scenes without light, lights that no path meets, media outside of their shapes.

use glam::{Affine3A, Vec3A};

use super::context::Context;
use super::integrator::Rules;
use super::world::{Light, LightKind};
use super::{Background, Bsdf, Geometry, Model, Scene, Surface};

/// Records all of them.
pub(super) fn note(context: &Context<'_>, scene: &Scene) {
    darkness(context, scene);
    unlit(context, scene);
    emptiness(context, scene);
}

/// Whether anything but lights without extent emits.
fn shines(scene: &Scene) -> bool {
    let world = &scene.world;
    !matches!(scene.background, Background::None)
        || world.surfaces.iter().any(|surface| surface.emitter.is_some())
        || world.media.iter().any(|medium| medium.emission.is_some())
}

/// A path-traced scene without light.
fn darkness(context: &Context<'_>, scene: &Scene) {
    let world = &scene.world;
    if world.lights.is_empty() && !shines(scene) && !world.is_empty() && !context.has_errors() {
        context.warn("nothing in the scene emits light, so that it is black: add an emitter");
    }
}

/// Lights without extent that nothing can meet: without next-event estimation, or behind smooth glass, which shadow rays do not pass.
fn unlit(context: &Context<'_>, scene: &Scene) {
    let world = &scene.world;
    let Some(light) = world.lights.first().filter(|_| !shines(scene)) else {
        return;
    };
    let light = &light.name;
    if scene.integrator.rules == Rules::Basic {
        context.warn(format!(
            "`prb_basic` only finds lights that its paths meet, and none meets the light `{light}`, which has no extent: take `prb`, \
             or a shape with an `area` emitter"
        ));
    } else if scene.integrator.rules == Rules::Volpath
        && let Some(pane) = (0..world.media.len()).find_map(|medium| pane_around(scene, medium))
    {
        context.warn(format!(
            "the medium in `{}` is dark: no path through smooth glass meets the light `{light}`, which has no extent; take a \
             `roughdielectric`, or a shape with an `area` emitter",
            pane.name
        ));
    }
}

/// A surface of smooth glass around a medium that has no other boundaries and no light within.
fn pane_around(scene: &Scene, medium: usize) -> Option<&Surface> {
    let world = &scene.world;
    let is_smooth = |bsdf: &Bsdf| matches!(bsdf, Bsdf::Material(material) if material.model == Model::Dielectric);
    let is_lit = |surface: &Surface| {
        let mut places = world.lights.iter().filter_map(place);
        places.any(|p| bounds(surface).is_none_or(|[low, high]| p.cmpge(low).all() && p.cmple(high).all()))
    };
    let has = |surface: &&Surface| [surface.interior, surface.exterior].contains(&Some(medium));
    let mut around = world.surfaces.iter().filter(has);
    let closed = around
        .clone()
        .all(|s| s.interior == Some(medium) && is_smooth(&s.bsdf) && !is_lit(s));
    around.next().filter(|_| closed && !is_elsewhere(scene, medium))
}

/// Whether a medium is also around a camera, or in or around shapes of groups.
fn is_elsewhere(scene: &Scene, medium: usize) -> bool {
    let mut grouped = scene.world.groups.iter().flat_map(|group| &group.surfaces);
    scene.sensors.iter().any(|sensor| sensor.medium == Some(medium))
        || grouped.any(|surface| [surface.interior, surface.exterior].contains(&Some(medium)))
}

/// Where a light without extent stands; None for a distant one.
fn place(light: &Light) -> Option<Vec3A> {
    match &light.kind {
        LightKind::Point { position } => Some((*position).into()),
        LightKind::Spot { to_world, .. } | LightKind::Projector { to_world, .. } => Some(to_world.translation),
        LightKind::Directional { .. } => None,
    }
}

/// A medium that fills less than this part of the box around its shape is told: the unit cube of a volume without `to_world` fills an
/// eighth of a `cube` without one.
const SMALL_PART: f32 = 0.13;

/// Heterogeneous media whose box, that of `sigma_t`, holds nothing or little of the shapes that they are in.
fn emptiness(context: &Context<'_>, scene: &Scene) {
    let world = &scene.world;
    if scene.integrator.rules != Rules::Volpath {
        return;
    }
    // What is around a shape or a camera may reach further than any shape.
    let is_outside = |index| world.surfaces.iter().any(|s| s.exterior == Some(index)) || is_elsewhere(scene, index);
    for (index, medium) in world.media.iter().enumerate() {
        if medium.homogeneous || is_outside(index) {
            continue;
        }
        let own = box_around(&medium.sigma_t.to_world, [[0.0; 3], [1.0; 3]]);
        let shapes = world.surfaces.iter().filter(|surface| surface.interior == Some(index));
        let parts = shapes.filter_map(|surface| Some((surface, shared(own, surface)?)));
        let Some((surface, part)) = parts.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            continue;
        };
        let (path, name) = (&medium.path, &surface.name);
        if part <= 0.0 {
            context.warn(format!(
                "the medium `{path}` is nowhere: the box of its `sigma_t` lies outside of its shape `{name}`; give the volume the \
                 `to_world` that takes the unit cube to the shape"
            ));
        } else if part < SMALL_PART {
            context.warn(format!(
                "the medium `{path}` fills {:.3} % of the box around its shape `{name}`, and the rest is empty: if that is not meant, give \
                 its `sigma_t` the `to_world` that takes the unit cube to the shape",
                100.0 * part
            ));
        }
    }
}

/// The part of the box around a surface that another box holds; None if that of the surface is unknown or has no volume.
fn shared(other: [Vec3A; 2], surface: &Surface) -> Option<f32> {
    let [low, high] = bounds(surface)?;
    let whole = (high - low).max(Vec3A::ZERO);
    let held = (high.min(other[1]) - low.max(other[0])).max(Vec3A::ZERO);
    let volume = |sides: Vec3A| sides.x * sides.y * sides.z;
    (volume(whole) > 0.0).then(|| volume(held) / volume(whole))
}

/// The box around a cube, a sphere or a mesh at rest; None for other shapes, and if the mesh is displaced or cannot be read.
fn bounds(surface: &Surface) -> Option<[Vec3A; 2]> {
    if surface.displacement.is_some() {
        return None;
    }
    let local = match &surface.geometry {
        Geometry::Cube => [[-1.0; 3], [1.0; 3]],
        Geometry::Sphere { center, radius } => [-radius, *radius].map(|r| center.map(|x| x + r)),
        Geometry::Mesh { path, format, .. } => {
            let mesh = format.read(path, true, false).ok()?;
            let points = mesh.positions.iter().copied().map(Vec3A::from);
            let [low, high] = points.fold(NOTHING, |[low, high], p| [low.min(p), high.max(p)]);
            [low.into(), high.into()]
        }
        _ => return None,
    };
    Some(box_around(&surface.to_world, local))
}

const NOTHING: [Vec3A; 2] = [Vec3A::INFINITY, Vec3A::NEG_INFINITY];

/// The box around a transformed box.
fn box_around(to_world: &Affine3A, [low, high]: [[f32; 3]; 2]) -> [Vec3A; 2] {
    let corner = |k: usize| Vec3A::from([0, 1, 2].map(|a| if k >> a & 1 == 0 { low[a] } else { high[a] }));
    let corners = (0..8).map(|k| to_world.transform_point3a(corner(k)));
    corners.fold(NOTHING, |[low, high], p| [low.min(p), high.max(p)])
}
