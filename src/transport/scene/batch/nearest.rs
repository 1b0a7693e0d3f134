//! The nearest surfaces of many rays, and what is there.

use super::describe::{describe_shapes, describe_triangles};
use super::meet::{Met, ahead};
use super::rays::{Group, Hits, LANES, Lanes, Rays, each_lane, first_lanes, lanes_mut, lanes_where};
use crate::resident::layout::{BLOCK, NONE};
use crate::transport::scene::bvh::{self, Ray, Target, TrianglesAlone};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::intersect_shape;

/// Most shapes beside meshes that all rays are tested against in lanes; among more, each ray is led by the BVH.
const FEW: usize = 64;

/// Whether rays are tested in lanes against all shapes beside meshes.
#[inline(always)]
pub(super) fn are_few(scene: &SceneView) -> bool {
    scene.bvh.nodes.is_empty() || scene.singles.len() <= FEW
}

/// Whether rays go down the BVH: to triangles, or to shapes that are not few.
#[inline(always)]
pub(super) fn are_led(scene: &SceneView) -> bool {
    !scene.bvh.blocks.is_empty() || !are_few(scene)
}

/// What [`intersect`](crate::transport::scene::shape::intersect) finds for each of the first `count` rays.
#[inline(always)]
pub fn nearest_together(scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits) {
    hits.resize(count);
    let mut on_triangles = Vec::with_capacity(hits.t.len());
    for first in (0..count).step_by(LANES) {
        let (group, all) = (rays.group(first), first_lanes(count - first));
        let mut met = Met::nothing(&group.far);
        if are_few(scene) {
            met.meet_all(scene, &group, all & ahead(scene, &group));
        }
        let mut weights = [[0.0; LANES]; 2];
        let mut triangles = [NONE; LANES];
        if are_led(scene) {
            search(scene, &group, all, &mut met, &mut triangles, &mut weights);
        }
        let bits = lanes_where(|lane| triangles[lane] != NONE);
        each_lane(bits, |lane| on_triangles.push((first + lane) as u32));
        *lanes_mut(&mut hits.t, first) = met.t;
        *lanes_mut(&mut hits.surface, first) = met.number;
        *lanes_mut(&mut hits.primitive, first) = met.part;
        *lanes_mut(&mut hits.triangle, first) = triangles;
        for k in 0..2 {
            *lanes_mut(&mut hits.weights[k], first) = weights[k];
        }
        describe_shapes(scene, &group, first, hits);
    }
    // Together, since few rays of a vector may meet them.
    for which in on_triangles.chunks(LANES) {
        describe_triangles(scene, which, hits);
    }
}

/// Searches the BVH for nearer hits of the rays of `all`: with triangles, and with other shapes if these are many.
#[inline(always)]
fn search(
    scene: &SceneView,
    rays: &Group,
    all: u32,
    met: &mut Met,
    triangles: &mut Lanes<u32>,
    weights: &mut [Lanes<f32>; 2],
) {
    let few = are_few(scene);
    let enters = if few { met.enters(&scene.bvh.bounds, rays) } else { all };
    each_lane(enters & all, |lane| {
        let (o, d) = (rays.origin(lane), rays.direction(lane));
        let ray = Ray::until(o, d, met.t[lane]);
        let hit = match few {
            true => bvh::intersect(scene.bvh, &ray, &TrianglesAlone),
            false => bvh::intersect(scene.bvh, &ray, &|number| {
                intersect_shape(scene, number, o, d, rays.far[lane])
            }),
        };
        let Some(hit) = hit else {
            return;
        };
        met.t[lane] = hit.t;
        match hit.target {
            Target::Surface { number, part } => (met.number[lane], met.part[lane]) = (number, part),
            Target::Triangle { number, place, u, v } => {
                triangles[lane] = number;
                met.part[lane] = BLOCK as u32 * place.0 + place.1;
                (weights[0][lane], weights[1][lane]) = (u, v);
            }
        }
    });
}
