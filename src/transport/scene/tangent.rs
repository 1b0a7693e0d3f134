//! How a surface's point moves in the world with its texture coordinates: the tangents that anisotropic BSDFs and normal
//! maps are aligned with.

use super::records::SceneView;
use super::shape::Hit;
use crate::each::EachEntry;
use crate::resident::emissive_triangles::CUBE_UV;
use crate::resident::layout::{BLOCK, Rows, surface};
use crate::transport::rays::camera::{normalize, transform_point, transform_vector};
use crate::transport::rays::sampler::{cross, dot, frame};

/// Radians of a whole turn.
const TURN: f32 = 2.0 * std::f32::consts::PI;

/// The two axes beside the shading normal: along ∂p/∂u as far as that is tangential, and perpendicular to both.
#[inline(never)]
pub fn tangents(scene: &SceneView, hit: &Hit) -> ([f32; 3], [f32; 3]) {
    let n = hit.shading;
    let s = across_normal(derivatives(scene, hit)[0], n);
    if s == [0.0; 3] {
        return frame(n);
    }
    let s = normalize(s);
    (s, cross(n, s))
}

/// The part of ∂p/∂u perpendicular to the shading normal; zero where it is too short to give a direction.
#[inline]
pub fn across_normal(dp_du: [f32; 3], n: [f32; 3]) -> [f32; 3] {
    let along = dot(n, dp_du);
    let across = [0, 1, 2].each(|a| dp_du[a] - n[a] * along);
    match dot(across, across) <= f32::EPSILON * dot(dp_du, dp_du) {
        true => [0.0; 3],
        false => across,
    }
}

/// ∂p/∂u and ∂p/∂v in the world; zero where they are not known, as at a sphere's poles.
#[inline]
pub fn derivatives(scene: &SceneView, hit: &Hit) -> [[f32; 3]; 2] {
    let record = &scene.surfaces[hit.surface as usize];
    if record.kind == surface::MESH {
        return triangle_derivatives(scene, hit.primitive);
    }
    local_derivatives(record.kind, hit.primitive, &record.to_local, hit).each(|d| transform_vector(&record.to_world, d))
}

/// ∂p/∂u and ∂p/∂v in the local space of a shape other than a mesh.
#[inline]
fn local_derivatives(kind: u32, part: u32, to_local: &Rows, hit: &Hit) -> [[f32; 3]; 2] {
    match kind {
        surface::CUBE => {
            CUBE_UV[part as usize].each(|(axis, sign)| [0, 1, 2].each(|a| if a == axis { 2.0 * sign } else { 0.0 }))
        }
        surface::DISK => {
            let [x, y, _] = transform_point(to_local, hit.point.p);
            let radius = (x * x + y * y).sqrt();
            let out = if radius > 0.0 {
                [x / radius, y / radius, 0.0]
            } else {
                [0.0; 3]
            };
            [out, [-TURN * y, TURN * x, 0.0]]
        }
        surface::CYLINDER => {
            let [x, y, _] = transform_point(to_local, hit.point.p);
            [[-TURN * y, TURN * x, 0.0], [0.0, 0.0, 2.0]]
        }
        surface::SPHERE => {
            let [x, y, z] = transform_point(to_local, hit.point.p);
            let radius = (x * x + y * y).sqrt();
            let meridian = match radius > 0.0 {
                true => [x * z / radius, y * z / radius, -radius],
                false => [0.0; 3],
            };
            [[-TURN * y, TURN * x, 0.0], meridian.each(|d| 0.5 * TURN * d)]
        }
        surface::DISTANCES => [[0.0; 3]; 2],
        _ => [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]],
    }
}

/// ∂p/∂u and ∂p/∂v of a triangle, from its corners' texture coordinates; its edges where these are collinear.
#[inline]
fn triangle_derivatives(scene: &SceneView, place: u32) -> [[f32; 3]; 2] {
    let (block, lane) = (place as usize / BLOCK, place as usize % BLOCK);
    let record = &scene.bvh.blocks[block];
    let [a, b, c] = [0, 3, 6].each(|first| [0, 1, 2].each(|axis| record.corners[first + axis][lane]));
    let corners = &scene.corners[record.triangles[lane] as usize];
    let edges = [b, c].each(|corner| [0, 1, 2].each(|axis| corner[axis] - a[axis]));
    let [u, v, x, y] = corners.uv_ab;
    let [[du1, dv1], [du2, dv2]] = [[x - u, y - v], [corners.uv_c[0] - u, corners.uv_c[1] - v]];
    let determinant = du1 * dv2 - dv1 * du2;
    if determinant == 0.0 {
        return edges;
    }
    let scale = 1.0 / determinant;
    let [ab, ac] = edges;
    [
        [0, 1, 2].each(|a| scale * (dv2 * ab[a] - dv1 * ac[a])),
        [0, 1, 2].each(|a| scale * (du1 * ac[a] - du2 * ab[a])),
    ]
}

/// How a surface changes from point to point: Jacobians by the position on it, a row for each component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slopes {
    /// Of the shading normal.
    pub normal: [[f32; 3]; 3],
    /// Of ∂p/∂u, of which only the direction is used.
    pub tangent: [[f32; 3]; 3],
    /// Of the texture coordinates.
    pub uv: [[f32; 3]; 2],
}

/// The derivatives at a hit; they hold for motions over the surface, not away from it.
#[inline(never)]
pub fn slopes(scene: &SceneView, hit: &Hit) -> Slopes {
    let record = &scene.surfaces[hit.surface as usize];
    if record.kind == surface::MESH {
        return triangle_slopes(scene, hit);
    }
    let p = transform_point(&record.to_local, hit.point.p);
    let [x, y, z] = p;
    let radius = (x * x + y * y).sqrt();
    // In local space: the normal and its derivatives, those of ∂p/∂u, and those of the texture coordinates.
    let about = match radius > 0.0 {
        true => [-y / (TURN * radius * radius), x / (TURN * radius * radius), 0.0],
        false => [0.0; 3],
    };
    let whirl = [[0.0, -TURN, 0.0], [TURN, 0.0, 0.0], [0.0; 3]];
    let (round, tangent, uv) = match record.kind {
        surface::SPHERE => {
            let down = if radius > 0.0 { -2.0 / (TURN * radius) } else { 0.0 };
            ([1.0, 1.0, 1.0], whirl, [about, [0.0, 0.0, down]])
        }
        surface::CYLINDER => ([1.0, 1.0, 0.0], whirl, [about, [0.0, 0.0, 0.5]]),
        surface::DISK => {
            let (a, b) = if radius > 0.0 {
                (x / radius, y / radius)
            } else {
                (0.0, 0.0)
            };
            let scale = if radius > 0.0 { 1.0 / radius } else { 0.0 };
            let across = [
                [b * b * scale, -a * b * scale, 0.0],
                [-a * b * scale, a * a * scale, 0.0],
                [0.0; 3],
            ];
            ([0.0; 3], across, [[a, b, 0.0], about])
        }
        surface::CUBE => {
            let rows = CUBE_UV[hit.primitive as usize]
                .each(|(axis, sign)| [0, 1, 2].each(|a| if a == axis { 0.5 * sign } else { 0.0 }));
            ([0.0; 3], [[0.0; 3]; 3], rows)
        }
        _ => ([0.0; 3], [[0.0; 3]; 3], [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]),
    };
    let [inwards, outwards] = [&record.to_local, &record.to_world].each(|m| m.each(|row| [row[0], row[1], row[2]]));
    let local_normal = [round[0] * x, round[1] * y, round[2] * z];
    let raw = [0, 1, 2].each(|a| sum(|b| inwards[b][a] * local_normal[b]));
    let length = dot(raw, raw).sqrt();
    let mut normal = [[0.0; 3]; 3];
    if length > 0.0 {
        let bend = [0, 1, 2].each(|a| [0, 1, 2].each(|b| sum(|k| inwards[k][a] * round[k] * inwards[k][b])));
        normal = across(&bend, hit.shading, record.side / length);
    }
    Slopes {
        normal,
        tangent: product(&outwards, &product(&tangent, &inwards)),
        uv: uv.each(|row| [0, 1, 2].each(|b| sum(|k| row[k] * inwards[k][b]))),
    }
}

/// [`slopes`] of a triangle, on which texture coordinates and the sum of the corners' normals are linear.
#[inline]
fn triangle_slopes(scene: &SceneView, hit: &Hit) -> Slopes {
    let (block, lane) = (hit.primitive as usize / BLOCK, hit.primitive as usize % BLOCK);
    let record = &scene.bvh.blocks[block];
    let [a, b, c] = [0, 3, 6].each(|first| [0, 1, 2].each(|axis| record.corners[first + axis][lane]));
    let corners = &scene.corners[record.triangles[lane] as usize];
    let [ab, ac] = [b, c].each(|corner| [0, 1, 2].each(|axis| corner[axis] - a[axis]));
    let face = cross(ab, ac);
    let square = dot(face, face);
    if square == 0.0 {
        return Slopes {
            normal: [[0.0; 3]; 3],
            tangent: [[0.0; 3]; 3],
            uv: [[0.0; 3]; 2],
        };
    }
    // The gradients of the barycentric weights of b and of c.
    let to_b = cross(ac, face).each(|x| x / square);
    let to_c = cross(face, ab).each(|x| x / square);
    let [u, v, x, y] = corners.uv_ab;
    let uv = [[x - u, corners.uv_c[0] - u], [y - v, corners.uv_c[1] - v]];
    let side = scene.surfaces[hit.surface as usize].side;
    let [na, nb, nc] = corners.normals;
    let bend = [0, 1, 2].each(|k| [0, 1, 2].each(|axis| (nb[k] - na[k]) * to_b[axis] + (nc[k] - na[k]) * to_c[axis]));
    let shares = {
        let from_a = [0, 1, 2].each(|axis| hit.point.p[axis] - a[axis]);
        [dot(to_b, from_a), dot(to_c, from_a)]
    };
    let raw = [0, 1, 2].each(|k| na[k] + (nb[k] - na[k]) * shares[0] + (nc[k] - na[k]) * shares[1]);
    let length = dot(raw, raw).sqrt();
    Slopes {
        normal: if length > 0.0 {
            across(&bend, hit.shading, side / length)
        } else {
            [[0.0; 3]; 3]
        },
        tangent: [[0.0; 3]; 3],
        uv: uv.each(|[b, c]| [0, 1, 2].each(|axis| b * to_b[axis] + c * to_c[axis])),
    }
}

/// `scale` (1 − n nᵀ) m: the part of a matrix's image perpendicular to the unit vector `n`, times a number.
#[inline]
fn across(m: &[[f32; 3]; 3], n: [f32; 3], scale: f32) -> [[f32; 3]; 3] {
    let along = [0, 1, 2].each(|b| sum(|k| n[k] * m[k][b]));
    [0, 1, 2].each(|a| [0, 1, 2].each(|b| scale * (m[a][b] - n[a] * along[b])))
}

/// The product of two matrices.
#[inline]
fn product(a: &[[f32; 3]; 3], b: &[[f32; 3]; 3]) -> [[f32; 3]; 3] {
    [0, 1, 2].each(|row| [0, 1, 2].each(|column| sum(|k| a[row][k] * b[k][column])))
}

/// The sum of a term for each of the three axes, in order.
#[inline(always)]
fn sum(term: impl Fn(usize) -> f32) -> f32 {
    term(0) + term(1) + term(2)
}
