//! What may move in a scene with media: lights without a surface anywhere, and shapes that stand apart from the media, so that
//! points of media and the boundaries of media stand still (docs/method.md, section 21).

use super::bvh::{Corners, box_of_surface};
use super::layout::{MediumRecord, NONE, SurfaceRecord, Triangle, lookup, surface};
use super::motion::optimised_heights;
use super::paths::PathScene;
use crate::each::EachEntry;
use crate::params::Quantity;
use crate::scene::{Motion, Scene, Sensor, Surface};

/// What in a scene with media has no derivatives by the motions, in one sentence; None where nothing is in the way.
pub(super) fn obstacle(scene: &Scene, paths: &PathScene, triangles: &[Triangle]) -> Option<String> {
    if paths.media.is_empty() {
        return None;
    }
    if let Some(sensor) = scene.sensors.iter().find(|sensor| !sensor.motion.is_empty()) {
        return Some(format!(
            "the camera `{}` moves, and there are media, whose points would have to stay on its rays; remove the media, or move what \
             it sees in its place",
            sensor.name
        ));
    }
    let jumps = |medium: &MediumRecord| paths.volumes[medium.sigma_t as usize].filter == lookup::NEAREST;
    if paths.media.iter().any(jumps) {
        return Some(
            "there is a medium whose extinction jumps from texel to texel; look it up with \"filter_type\": \"trilinear\"".into(),
        );
    }
    let moving = || {
        scene
            .world
            .surfaces
            .iter()
            .zip(0..)
            .filter(|(surface, _)| moves(surface))
    };
    moving().next()?;
    if paths.media.iter().any(|medium| medium.emission != NONE) {
        return Some(
            "there is a medium that emits light, which has no derivatives by what moves in it; remove its `emission`, or move lights \
             without a surface alone"
                .into(),
        );
    }
    if paths
        .surfaces
        .iter()
        .any(|record| record.bsdf == NONE && record.light != NONE)
    {
        return Some("there is a light on a surface that lets everything pass; give it a BSDF".into());
    }
    moving().find_map(|(surface, number)| {
        let record = &paths.surfaces[number as usize];
        let holds = [record.interior, record.exterior] != [NONE; 2];
        if holds {
            return Some(format!(
                "`{}` is the boundary of a medium, whose points would have to follow it; move what stands apart from media",
                surface.name
            ));
        }
        let place = place(paths, record, number, triangles);
        let touched = (0..paths.media.len()).any(|medium| overlap(&region(scene, paths, medium, triangles), &place));
        touched.then(|| {
            format!(
                "`{}` stands in a medium, or in the box around one, and points of the medium would have to make room for it; move \
                 what stands apart from media, or make the medium's box smaller",
                surface.name
            )
        })
    })
}

/// Whether a run moves the points of a surface, not its normals alone.
fn moves(surface: &Surface) -> bool {
    let of_points = |part: &Motion| part.quantity != Quantity::VertexNormal;
    surface.motion.iter().any(of_points) || optimised_heights(surface).is_some()
}

/// The box around a surface.
fn place(paths: &PathScene, record: &SurfaceRecord, number: u32, triangles: &[Triangle]) -> Corners {
    if record.kind != surface::MESH {
        return box_of_surface(record);
    }
    let own = paths
        .corners
        .iter()
        .zip(triangles)
        .filter(|(corner, _)| corner.shape == number);
    let points = own.flat_map(|(_, triangle)| triangle);
    points.fold([[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]], |[low, high], p| {
        [
            [0, 1, 2].each(|a: usize| low[a].min(p[a])),
            [0, 1, 2].each(|a: usize| high[a].max(p[a])),
        ]
    })
}

/// A box around all points of the medium of this index: its own box, within those of the closed shapes that it fills.
fn region(scene: &Scene, paths: &PathScene, medium: usize, triangles: &[Triangle]) -> Corners {
    let MediumRecord { low, high, .. } = paths.media[medium];
    let number = medium as u32;
    let is_closed = |record: &SurfaceRecord| matches!(record.kind, surface::CUBE | surface::SPHERE | surface::MESH);
    let fills = |record: &SurfaceRecord| record.interior == number && record.side > 0.0 && is_closed(record);
    let escapes = |record: &SurfaceRecord| record.exterior == number || record.interior == number && !fills(record);
    let holds_camera = |sensor: &Sensor| sensor.medium == Some(medium);
    if paths.surfaces.iter().any(escapes) || scene.sensors.iter().any(holds_camera) {
        return [low, high];
    }
    let filled = paths.surfaces.iter().zip(0..).filter(|(record, _)| fills(record));
    let boxes = filled.map(|(record, number)| place(paths, record, number, triangles));
    let none = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    let [least, most] = boxes.fold(none, |[low, high], [least, most]| {
        [
            [0, 1, 2].each(|a: usize| low[a].min(least[a])),
            [0, 1, 2].each(|a: usize| high[a].max(most[a])),
        ]
    });
    [
        [0, 1, 2].each(|a: usize| low[a].max(least[a])),
        [0, 1, 2].each(|a: usize| high[a].min(most[a])),
    ]
}

/// Whether two boxes have points in common.
fn overlap(a: &Corners, b: &Corners) -> bool {
    (0..3).all(|axis| a[0][axis] <= b[1][axis] && b[0][axis] <= a[1][axis])
}
