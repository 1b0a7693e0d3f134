//! Intersections of rays with surfaces.

use super::bvh::{self, Ray, Target};
use super::distance_grid::{LevelPoint, intersect_distances, level_point};
use super::records::SceneView;
use crate::each::EachEntry;
use crate::resident::emissive_triangles::CUBE_UV;
use crate::resident::layout::{BLOCK, NONE, Rows, SurfaceRecord, surface};
use crate::transport::rays::angle::{arc_cosine, arc_tangent};
use crate::transport::rays::camera::{normalize, transform_point, transform_vector};
use crate::transport::rays::sampler::{along, cross, dot};

/// A point of a surface: its position, and the coordinates by which textures are looked up.
#[derive(Debug, Clone, Copy)]
pub struct SurfacePoint {
    /// In the world. Of a ray's intersection: projected onto the surface, which origin + t · direction misses by rounding.
    pub p: [f32; 3],
    pub uv: [f32; 2],
    /// On a mesh the triangle's number among those of all meshes, else [`NONE`], and barycentric weights of its second
    /// and third corners.
    pub triangle: u32,
    pub weights: [f32; 2],
}

impl SurfacePoint {
    /// A point of a shape other than a mesh.
    #[inline(always)]
    pub fn new(p: [f32; 3], uv: [f32; 2]) -> Self {
        Self {
            p,
            uv,
            triangle: NONE,
            weights: [0.0; 2],
        }
    }
}

/// A ray's intersection with a surface.
#[derive(Debug, Clone, Copy)]
pub struct Hit {
    pub t: f32,
    pub surface: u32,
    /// On a mesh the triangle's place in the BVH: 4 · block + lane; on a cube the face: 2 · axis, plus 1 on the
    /// positive side; in a grid of distances the cell.
    pub primitive: u32,
    pub point: SurfacePoint,
    /// Offset along the normal that keeps a new ray from hitting the same surface by rounding.
    pub clearance: f32,
    /// Geometric unit normal in the world: outwards from a closed shape, unless flipped.
    pub normal: [f32; 3],
    /// Shading unit normal: on a mesh interpolated between vertex normals, in a grid of distances between cells.
    pub shading: [f32; 3],
}

/// Relative error bound of a point on a surface and of its transform to local space: about ten roundings of half an
/// epsilon each, with a safety factor of three.
pub(super) const ROUNDING: f32 = 16.0 * f32::EPSILON;

/// The hit point, offset to the side on which a ray in `direction` leaves.
#[inline]
pub fn leave(hit: &Hit, direction: [f32; 3]) -> [f32; 3] {
    let step = if dot(hit.normal, direction) < 0.0 {
        -hit.clearance
    } else {
        hit.clearance
    };
    along(hit.point.p, hit.normal, step)
}

/// Where a ray first meets a surface, before [`describe`] says what is there.
#[derive(Debug, Clone, Copy)]
pub struct Nearest {
    pub t: f32,
    pub target: Target,
}

/// The nearest intersection of the ray with any surface, between 0 and `far`.
#[inline]
pub fn nearest(scene: &SceneView, origin: [f32; 3], direction: [f32; 3], far: f32) -> Option<Nearest> {
    if !scene.bvh.nodes.is_empty() {
        let ray = Ray::until(origin, direction, far);
        let hit = bvh::intersect(scene.bvh, &ray, &|number| {
            intersect_shape(scene, number, origin, direction, far)
        })?;
        return Some(Nearest {
            t: hit.t,
            target: hit.target,
        });
    }
    if points_away(&scene.bounds, origin, direction) {
        return None;
    }
    let mut nearest = None;
    let mut far = far;
    for number in 0..scene.settings.surfaces {
        if let Some((t, part)) = intersect_shape(scene, number, origin, direction, far) {
            far = t;
            let target = Target::Surface { number, part };
            nearest = Some(Nearest { t, target });
        }
    }
    nearest
}

/// Whether the ray meets any surface between 0 and `far`.
#[inline]
pub fn is_blocked(scene: &SceneView, origin: [f32; 3], direction: [f32; 3], far: f32) -> bool {
    if !scene.bvh.nodes.is_empty() {
        let ray = Ray::until(origin, direction, far);
        return bvh::is_blocked(scene.bvh, &ray, &|number| {
            intersect_shape(scene, number, origin, direction, far)
        });
    }
    !points_away(&scene.bounds, origin, direction)
        && (0..scene.settings.surfaces).any(|number| intersect_shape(scene, number, origin, direction, far).is_some())
}

/// Whether the ray starts outside the box along some axis and does not turn back along it: a cheap sufficient test for
/// a miss, which paths that leave the only shape of a world pass.
#[inline(always)]
fn points_away([low, high]: &[[f32; 3]; 2], origin: [f32; 3], direction: [f32; 3]) -> bool {
    let mut away = false;
    for a in 0..3 {
        away |= (origin[a] > high[a]) & (direction[a] >= 0.0) | (origin[a] < low[a]) & (direction[a] <= 0.0);
    }
    away
}

/// Surface data at a ray's nearest intersection.
#[inline]
pub fn describe(scene: &SceneView, nearest: &Nearest, origin: [f32; 3], direction: [f32; 3]) -> Hit {
    let t = nearest.t;
    match nearest.target {
        Target::Triangle { number, place, u, v } => describe_triangle(scene, t, number, place, [u, v]),
        Target::Surface { number, part } => describe_surface(scene, t, number, part, origin, direction),
    }
}

/// [`describe`] of the [`nearest`] intersection.
#[inline]
pub fn intersect(scene: &SceneView, origin: [f32; 3], direction: [f32; 3], far: f32) -> Option<Hit> {
    let nearest = nearest(scene, origin, direction, far)?;
    Some(describe(scene, &nearest, origin, direction))
}

/// The first intersection with one surface other than a mesh, between 0 and `far`: the distance, and for a cube the
/// face: 2 · axis, plus 1 on the positive side; for a grid of distances the cell.
#[inline]
pub(super) fn intersect_shape(
    scene: &SceneView,
    number: u32,
    origin: [f32; 3],
    direction: [f32; 3],
    far: f32,
) -> Option<(f32, u32)> {
    let record = &scene.surfaces[number as usize];
    let o = transform_point(&record.to_local, origin);
    let d = transform_vector(&record.to_local, direction);
    match record.kind {
        // Meshes are intersected by the BVH alone, which never calls this.
        surface::MESH => None,
        surface::CUBE => intersect_cube(o, d, far),
        surface::SPHERE => intersect_sphere(o, d, far),
        surface::DISK => intersect_disk(o, d, far),
        surface::CYLINDER => intersect_cylinder(o, d, far),
        surface::DISTANCES => intersect_distances(scene, record.distances, o, d, far),
        _ => intersect_rectangle(o, d, far),
    }
}

/// Surface data of a hit on a mesh's triangle.
#[inline]
fn describe_triangle(scene: &SceneView, t: f32, number: u32, (block, lane): (u32, u32), [u, v]: [f32; 2]) -> Hit {
    let planes = &scene.bvh.blocks[block as usize].corners;
    let [a, b, c] = [0, 3, 6].each(|first| [0, 1, 2].each(|axis| planes[first + axis][lane as usize]));
    let corners = &scene.corners[number as usize];
    let record = &scene.surfaces[corners.shape as usize];
    // Geometric normal.
    let (mut ab, mut ac) = ([0.0; 3], [0.0; 3]);
    for k in 0..3 {
        ab[k] = b[k] - a[k];
        ac[k] = c[k] - a[k];
    }
    let face = cross(ab, ac);
    let normal = normalize([face[0] * record.side, face[1] * record.side, face[2] * record.side]);
    // Interpolate position, shading normal and texture coordinates.
    let weights = [1.0 - u - v, u, v];
    let uvs = [
        [corners.uv_ab[0], corners.uv_ab[1]],
        [corners.uv_ab[2], corners.uv_ab[3]],
        corners.uv_c,
    ];
    let (mut shading, mut uv) = ([0.0; 3], [0.0; 2]);
    let (mut p, mut size) = ([0.0; 3], 0.0f32);
    let vertices = [a, b, c];
    for i in 0..3 {
        for k in 0..3 {
            p[k] += weights[i] * vertices[i][k];
            size = size.max(vertices[i][k].abs());
        }
    }
    for k in 0..3 {
        for a in 0..3 {
            shading[a] += record.side * weights[k] * corners.normals[k][a];
        }
        uv[0] += weights[k] * uvs[k][0];
        uv[1] += weights[k] * uvs[k][1];
    }
    Hit {
        t,
        surface: corners.shape,
        primitive: BLOCK as u32 * block + lane,
        point: SurfacePoint {
            p,
            uv,
            triangle: number,
            weights: [u, v],
        },
        clearance: ROUNDING * size,
        normal,
        shading: if dot(shading, shading) > 0.0 {
            normalize(shading)
        } else {
            normal
        },
    }
}

/// Surface data of a hit on another shape.
#[inline]
pub(super) fn describe_surface(
    scene: &SceneView,
    t: f32,
    number: u32,
    part: u32,
    origin: [f32; 3],
    direction: [f32; 3],
) -> Hit {
    let record = &scene.surfaces[number as usize];
    let o = transform_point(&record.to_local, origin);
    let d = transform_vector(&record.to_local, direction);
    let mut p = [0, 1, 2].each(|a| o[a] + t * d[a]);
    let mut shading = None;
    let (normal, uv) = match record.kind {
        surface::CUBE => {
            let axis = (part >> 1) as usize;
            let mut normal = [0.0; 3];
            normal[axis] = if part & 1 == 1 { 1.0 } else { -1.0 };
            p[axis] = normal[axis];
            (
                normal,
                CUBE_UV[part as usize].each(|(axis, sign)| 0.5 * sign * p[axis] + 0.5),
            )
        }
        surface::SPHERE => {
            let n = normalize(p);
            p = n;
            let v = arc_cosine(n[2].clamp(-1.0, 1.0)) * std::f32::consts::FRAC_1_PI;
            (n, [turns(n), v])
        }
        surface::DISK => {
            p[2] = 0.0;
            ([0.0, 0.0, 1.0], [dot(p, p).sqrt(), turns(p)])
        }
        surface::CYLINDER => {
            let n = normalize([p[0], p[1], 0.0]);
            (p[0], p[1]) = (n[0], n[1]);
            (n, [turns(n), 0.5 * p[2] + 0.5])
        }
        surface::DISTANCES => {
            let LevelPoint {
                p: on_level,
                normal,
                shading: smooth,
            } = level_point(scene, record.distances, part, p, d);
            p = on_level;
            shading = Some(world_normal(record, smooth));
            (normal, [0.0; 2])
        }
        _ => {
            p[2] = 0.0;
            ([0.0, 0.0, 1.0], [0.5 * p[0] + 0.5, 0.5 * p[1] + 0.5])
        }
    };
    let normal = world_normal(record, normal);
    let world = transform_point(&record.to_world, p);
    Hit {
        t,
        surface: number,
        primitive: part,
        point: SurfacePoint::new(world, uv),
        clearance: clearance(record, p, world, normal),
        normal,
        shading: shading.unwrap_or(normal),
    }
}

/// The angle about the z axis from the x axis, in whole turns between 0 and 1.
#[inline(always)]
pub(super) fn turns(p: [f32; 3]) -> f32 {
    let u = arc_tangent(p[1], p[0]) * (0.5 * std::f32::consts::FRAC_1_PI);
    std::hint::select_unpredictable(u < 0.0, u + 1.0, u)
}

/// The offset along `normal` that a new ray needs from a point of a shape, `p` in local space and `world` in the world: the
/// rounding of the point's transform to the world, or of its transform back by which the ray would meet the shape.
#[inline(always)]
pub(super) fn clearance(record: &SurfaceRecord, p: [f32; 3], world: [f32; 3], normal: [f32; 3]) -> f32 {
    let (to_world, to_local) = (&record.to_world, &record.to_local);
    let (there, back) = (terms(to_world, p), terms(to_local, world));
    let (mut along, mut across) = (0.0, 0.0);
    for a in 0..3 {
        along += normal[a].abs() * there[a];
        // How far a step of one along a local axis goes along the normal.
        let step = normal[0] * to_world[0][a] + normal[1] * to_world[1][a] + normal[2] * to_world[2][a];
        across += step.abs() * back[a];
    }
    ROUNDING * along.max(across)
}

/// Sums of the magnitudes of the terms of each coordinate of a transformed point; times epsilon they bound its rounding errors.
#[inline(always)]
fn terms(rows: &Rows, p: [f32; 3]) -> [f32; 3] {
    rows.each(|[x, y, z, w]| (x * p[0]).abs() + (y * p[1]).abs() + (z * p[2]).abs() + w.abs())
}

/// Transforms a normal from local space to the world.
#[inline]
pub fn world_normal(record: &SurfaceRecord, n: [f32; 3]) -> [f32; 3] {
    let m: &Rows = &record.to_local;
    let mut out = [0.0; 3];
    for a in 0..3 {
        out[a] = record.side * (m[0][a] * n[0] + m[1][a] * n[1] + m[2][a] * n[2]);
    }
    normalize(out)
}

#[inline]
fn intersect_cube(o: [f32; 3], d: [f32; 3], far: f32) -> Option<(f32, u32)> {
    let (mut enter, mut leave) = (f32::NEG_INFINITY, f32::INFINITY);
    let (mut first, mut last) = (0, 0);
    for a in 0..3 {
        if d[a] == 0.0 {
            if !(-1.0..=1.0).contains(&o[a]) {
                return None;
            }
            continue;
        }
        let inverse = 1.0 / d[a];
        let (low, high) = ((-1.0 - o[a]) * inverse, (1.0 - o[a]) * inverse);
        let backwards = u32::from(d[a] < 0.0);
        let axis = 2 * a as u32;
        let near = low.min(high);
        if near > enter {
            (enter, first) = (near, axis + backwards);
        }
        let end = low.max(high);
        if end < leave {
            (leave, last) = (end, axis + 1 - backwards);
        }
    }
    if enter > leave {
        return None;
    }
    if enter > 0.0 {
        return (enter < far).then_some((enter, first));
    }
    (leave > 0.0 && leave < far).then_some((leave, last))
}

#[inline]
fn intersect_sphere(o: [f32; 3], d: [f32; 3], far: f32) -> Option<(f32, u32)> {
    // Solve from the foot of the perpendicular: o² - r² cancels for distant spheres (Haines2019).
    let dd = dot(d, d);
    let middle = -dot(o, d) / dd;
    let foot = [0, 1, 2].each(|a| o[a] + middle * d[a]);
    let height = 1.0 - dot(foot, foot);
    if height < 0.0 {
        return None;
    }
    let half = (height / dd).sqrt();
    let (enter, leave) = (middle - half, middle + half);
    if enter > 0.0 {
        return (enter < far).then_some((enter, 0));
    }
    (leave > 0.0 && leave < far).then_some((leave, 0))
}

#[inline]
fn intersect_rectangle(o: [f32; 3], d: [f32; 3], far: f32) -> Option<(f32, u32)> {
    let t = -o[2] / d[2];
    if !(t > 0.0 && t < far) {
        return None;
    }
    let (x, y) = (o[0] + t * d[0], o[1] + t * d[1]);
    (x.abs() <= 1.0 && y.abs() <= 1.0).then_some((t, 0))
}

#[inline]
fn intersect_disk(o: [f32; 3], d: [f32; 3], far: f32) -> Option<(f32, u32)> {
    let t = -o[2] / d[2];
    if !(t > 0.0 && t < far) {
        return None;
    }
    let (x, y) = (o[0] + t * d[0], o[1] + t * d[1]);
    (x * x + y * y <= 1.0).then_some((t, 0))
}

/// The cylinder of radius one around the z axis, from z = -1 to 1, without caps.
#[inline]
fn intersect_cylinder(o: [f32; 3], d: [f32; 3], far: f32) -> Option<(f32, u32)> {
    // As in intersect_sphere, in the plane of x and y.
    let dd = d[0] * d[0] + d[1] * d[1];
    if dd == 0.0 {
        return None;
    }
    let middle = -(o[0] * d[0] + o[1] * d[1]) / dd;
    let (x, y) = (o[0] + middle * d[0], o[1] + middle * d[1]);
    let height = 1.0 - (x * x + y * y);
    if height < 0.0 {
        return None;
    }
    let half = (height / dd).sqrt();
    let within = |t: f32| t > 0.0 && t < far && (o[2] + t * d[2]).abs() <= 1.0;
    let (enter, leave) = (middle - half, middle + half);
    if within(enter) {
        return Some((enter, 0));
    }
    within(leave).then_some((leave, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;
    use rand_pcg::Pcg32;

    /// No ray that points away hits the box, and of the rays that miss it more than half are found to point away.
    #[test]
    fn rays_that_point_away_meet_nothing() {
        let mut random = Pcg32::new(5, 1);
        let mut uniform = |reach: f32| reach * (random.next_u32() as f32 / 2f32.powi(31) - 1.0);
        let (mut away, mut missed) = (0, 0);
        for _ in 0..10_000 {
            let [origin, direction] = [2.0, 1.0].map(|reach| [(); 3].map(|()| uniform(reach)));
            let misses = intersect_cube(origin, direction, f32::INFINITY).is_none();
            let points = points_away(&[[-1.0; 3], [1.0; 3]], origin, direction);
            assert!(!points || misses, "{origin:?} {direction:?}");
            away += u32::from(points);
            missed += u32::from(misses);
        }
        assert!(2 * away > missed && away < missed, "{away} of {missed}");
    }
}
