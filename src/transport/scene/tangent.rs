//! How a surface's point moves in the world with its texture coordinates: the tangents that anisotropic BSDFs and normal
//! maps are aligned with.

use super::records::SceneView;
use super::shape::{Hit, cross};
use crate::resident::emissive_triangles::CUBE_UV;
use crate::resident::layout::{BLOCK, Rows, surface};
use crate::transport::rays::camera::{normalize, transform_point, transform_vector};
use crate::transport::rays::sampler::{dot, frame};

/// Radians of a whole turn.
const TURN: f32 = 2.0 * std::f32::consts::PI;

/// The two axes beside the shading normal: along ∂p/∂u as far as that is tangential, and perpendicular to both.
#[inline(never)]
pub fn tangents(scene: &SceneView, hit: &Hit) -> ([f32; 3], [f32; 3]) {
    let n = hit.shading;
    let dp_du = derivatives(scene, hit)[0];
    let along = dot(n, dp_du);
    let s = [0, 1, 2].map(|a| dp_du[a] - n[a] * along);
    if dot(s, s) <= f32::EPSILON * dot(dp_du, dp_du) {
        return frame(n);
    }
    let s = normalize(s);
    (s, cross(n, s))
}

/// ∂p/∂u and ∂p/∂v in the world; zero where they are not known, as at a sphere's poles.
#[inline]
pub fn derivatives(scene: &SceneView, hit: &Hit) -> [[f32; 3]; 2] {
    let record = &scene.surfaces[hit.surface as usize];
    if record.kind == surface::MESH {
        return triangle_derivatives(scene, hit.primitive);
    }
    local_derivatives(record.kind, hit.primitive, &record.to_local, hit).map(|d| transform_vector(&record.to_world, d))
}

/// The same in the space of a shape that is no mesh.
#[inline]
fn local_derivatives(kind: u32, part: u32, to_local: &Rows, hit: &Hit) -> [[f32; 3]; 2] {
    match kind {
        surface::CUBE => {
            CUBE_UV[part as usize].map(|(axis, sign)| [0, 1, 2].map(|a| if a == axis { 2.0 * sign } else { 0.0 }))
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
            [[-TURN * y, TURN * x, 0.0], meridian.map(|d| 0.5 * TURN * d)]
        }
        _ => [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]],
    }
}

/// Those of a triangle, from its corners' coordinates; its edges where these are on a line.
#[inline]
fn triangle_derivatives(scene: &SceneView, place: u32) -> [[f32; 3]; 2] {
    let (block, lane) = (place as usize / BLOCK, place as usize % BLOCK);
    let record = &scene.bvh.blocks[block];
    let [a, b, c] = [0, 3, 6].map(|first| [0, 1, 2].map(|axis| record.corners[first + axis][lane]));
    let corners = &scene.corners[record.triangles[lane] as usize];
    let edges = [b, c].map(|corner| [0, 1, 2].map(|axis| corner[axis] - a[axis]));
    let [u, v, x, y] = corners.uv_ab;
    let [[du1, dv1], [du2, dv2]] = [[x - u, y - v], [corners.uv_c[0] - u, corners.uv_c[1] - v]];
    let determinant = du1 * dv2 - dv1 * du2;
    if determinant == 0.0 {
        return edges;
    }
    let scale = 1.0 / determinant;
    let [ab, ac] = edges;
    [
        [0, 1, 2].map(|a| scale * (dv2 * ab[a] - dv1 * ac[a])),
        [0, 1, 2].map(|a| scale * (du1 * ac[a] - du2 * ab[a])),
    ]
}
