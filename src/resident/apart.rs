//! What may move in a scene with media: what stands apart from them, so that points of media and the boundaries of media stand
//! still (docs/method.md, section 21).

use super::bvh::Corners;
use super::layout::{MediumRecord, NONE, SurfaceRecord, Triangle, lookup, surface, surfaces_only};
use super::motion::optimised_heights;
use super::paths::PathScene;
use super::surface_free::{apply, around, corners_of};
use crate::each::EachEntry;
use crate::params::{ParamSet, Quantity};
use crate::scene::{Motion, Scene, Sensor, Surface};

/// What in a scene with media has no derivatives by the motions, in one sentence; None where nothing is in the way. Shapes and
/// lights stand where they are placed, and so do `triangles`, those of all meshes.
pub(super) fn obstacle(scene: &Scene, paths: &PathScene, triangles: &[Triangle], params: &ParamSet) -> Option<String> {
    if paths.media.is_empty() || paths.settings.surfaces_only != surfaces_only::NO {
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
    let space = Space {
        scene,
        paths,
        triangles,
    };
    lamp_obstacle(&space, params).or_else(|| shape_obstacle(&space))
}

/// As [`obstacle`], of a light without extent in a medium that scatters: the light that the medium scatters beside it changes as the
/// inverse cube of the distance.
fn lamp_obstacle(space: &Space, params: &ParamSet) -> Option<String> {
    let Space { scene, paths, .. } = space;
    let scatters = |medium: &MediumRecord| {
        let albedo = &params.parameters[paths.volumes[medium.albedo as usize].slot as usize];
        albedo.tuning.is_some() || albedo.values.iter().any(|x| *x != 0.0)
    };
    let without_surface = paths.lights.iter().filter(|record| record.surface == NONE);
    let mut moving = scene.world.lights.iter().zip(without_surface);
    moving.find_map(|(light, record)| {
        let [x, y, z, _] = record.position;
        let stands_in = |number: usize| scatters(&paths.media[number]) && space.holds(number, [x, y, z]);
        let shifts = light.motion.iter().any(|part| part.quantity == Quantity::Translation);
        let stands = shifts && (0..paths.media.len()).any(stands_in);
        stands.then(|| {
            format!(
                "`{}` stands in a medium that scatters light, whose points beside it would have to move with it; move lights that \
                 stand apart from such media",
                light.name
            )
        })
    })
}

/// As [`obstacle`], of shapes that move.
fn shape_obstacle(space: &Space) -> Option<String> {
    let Space { scene, paths, .. } = space;
    let numbered = scene.world.surfaces.iter().zip(0..);
    let moving: Vec<(&Surface, u32)> = numbered.filter(|(surface, _)| moves_points(surface)).collect();
    if moving.is_empty() {
        return None;
    }
    if paths.media.iter().any(|medium| medium.emission != NONE) {
        return Some(
            "there is a medium that emits light, which has no derivatives by what moves in it; remove its `emission`, or move lights \
             without a surface alone"
                .into(),
        );
    }
    let regions: Vec<Corners> = (0..paths.media.len()).map(|medium| space.region(medium)).collect();
    moving.into_iter().find_map(|(surface, number)| {
        let record = &paths.surfaces[number as usize];
        if [record.interior, record.exterior] != [NONE; 2] {
            return Some(format!(
                "`{}` is the boundary of a medium, whose points would have to follow it; move what stands apart from media",
                surface.name
            ));
        }
        let place = space.place(number);
        regions.iter().any(|region| overlap(region, &place)).then(|| {
            format!(
                "`{}` touches or stands in a medium, by the boxes around both, and points of the medium would have to make room for \
                 it; move what stands apart from media, or make the medium's box smaller",
                surface.name
            )
        })
    })
}

/// Whether a run moves the points of a surface, not its normals alone.
fn moves_points(surface: &Surface) -> bool {
    let of_points = |part: &Motion| part.quantity != Quantity::VertexNormal;
    surface.motion.iter().any(of_points) || optimised_heights(surface).is_some()
}

/// A scene whose shapes and lights are placed.
struct Space<'a> {
    scene: &'a Scene,
    paths: &'a PathScene,
    triangles: &'a [Triangle],
}

impl Space<'_> {
    /// The box around the surface of this number.
    fn place(&self, number: u32) -> Corners {
        let record = &self.paths.surfaces[number as usize];
        if record.kind != surface::MESH {
            return around(corners_of(record));
        }
        let all = self.paths.corners.iter().zip(self.triangles);
        let own = all.filter(|(corner, _)| corner.shape == number);
        around(own.flat_map(|(_, triangle)| *triangle))
    }

    /// A box around all points of the medium of this index: its own box, within those of the closed shapes that it fills.
    fn region(&self, medium: usize) -> Corners {
        let MediumRecord { low, high, .. } = self.paths.media[medium];
        if !self.is_held(medium) {
            return [low, high];
        }
        let numbered = self.paths.surfaces.iter().zip(0..);
        let filled = numbered.filter(|(record, number)| self.fills(record, *number, medium));
        let [least, most] = around(filled.flat_map(|(_, number)| self.place(number)));
        [
            [0, 1, 2].each(|a: usize| low[a].max(least[a])),
            [0, 1, 2].each(|a: usize| high[a].min(most[a])),
        ]
    }

    /// Whether closed shapes hold all of the medium of this index.
    fn is_held(&self, medium: usize) -> bool {
        let mut numbered = self.paths.surfaces.iter().zip(0..);
        let escapes = |(record, number): (&SurfaceRecord, u32)| {
            let bounds = [record.interior, record.exterior].contains(&(medium as u32));
            let lies_inside = self.fills(record, number, medium) && record.exterior != medium as u32;
            bounds && !lies_inside
        };
        let holds_camera = |sensor: &Sensor| sensor.medium == Some(medium);
        !numbered.any(escapes) && !self.scene.sensors.iter().any(holds_camera)
    }

    /// Whether a point may lie in the medium of this index.
    fn holds(&self, medium: usize, p: [f32; 3]) -> bool {
        let MediumRecord { low, high, .. } = self.paths.media[medium];
        let within = |[low, high]: Corners| (0..3).all(|a| low[a] <= p[a] && p[a] <= high[a]);
        if !within([low, high]) {
            return false;
        }
        let mut numbered = self.paths.surfaces.iter().zip(0..);
        let lies_inside = |(record, number): (&SurfaceRecord, u32)| {
            self.fills(record, number, medium) && contains(record, p).unwrap_or_else(|| within(self.place(number)))
        };
        // In a shape that the medium lies around there is none of it, unless it fills another in there.
        let is_hollow = |record: &SurfaceRecord| {
            let around = record.exterior == medium as u32 && record.interior != medium as u32 && record.side > 0.0;
            around && contains(record, p) == Some(true)
        };
        numbered.any(lies_inside) || !self.is_held(medium) && !self.paths.surfaces.iter().any(is_hollow)
    }

    /// Whether a medium lies on the inner side of the surface of this number, which is closed and faces outwards.
    fn fills(&self, record: &SurfaceRecord, number: u32, medium: usize) -> bool {
        let is_closed = match record.kind {
            surface::CUBE | surface::SPHERE => true,
            surface::MESH => self.paths.rest.closed.get(number as usize) == Some(&true),
            _ => false,
        };
        is_closed && record.interior == medium as u32 && record.side > 0.0
    }
}

/// Whether a point lies in a cube or a sphere; None for other shapes.
fn contains(record: &SurfaceRecord, p: [f32; 3]) -> Option<bool> {
    let local = apply(&record.to_local, p);
    match record.kind {
        surface::CUBE => Some(local.iter().all(|x| x.abs() <= 1.0)),
        surface::SPHERE => Some(local.iter().map(|x| x * x).sum::<f32>() <= 1.0),
        _ => None,
    }
}

/// Whether two boxes have points in common.
fn overlap(a: &Corners, b: &Corners) -> bool {
    (0..3).all(|axis| a[0][axis] <= b[1][axis] && b[0][axis] <= a[1][axis])
}
