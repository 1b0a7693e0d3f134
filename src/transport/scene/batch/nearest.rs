//! The nearest hits of many rays, with points, normals and texture coordinates.

// Selects between two values without a branch: the vectoriser would turn branches into masked stores.
use std::hint::select_unpredictable as select;

use super::describe::{describe_shapes, describe_triangles};
use super::meet::{Met, ahead};
use super::packets::Packet;
use super::rays::{Group, Hits, LANES, Rays, each_lane, facing, first_lanes, lanes, lanes_mut};
use crate::each::EachEntry;
use crate::resident::bvh::FEW_SHAPES;
use crate::resident::layout::{BLOCK, NONE};
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::rays::sampler::dot;
use crate::transport::scene::bvh::{self, Ray, Target};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::intersect_shape;

/// Whether all rays are tested against every shape other than meshes, in lanes and without the BVH: if these shapes are few, or
/// there is no BVH.
#[inline(always)]
pub(super) fn are_few(scene: &SceneView) -> bool {
    scene.bvh.nodes.is_empty() || scene.singles.len() <= FEW_SHAPES
}

/// Whether rays traverse the BVH: for triangles, or for shapes that are not few.
#[inline(always)]
pub(super) fn are_led(scene: &SceneView) -> bool {
    !scene.bvh.blocks.is_empty() || !are_few(scene)
}

/// The hit that [`intersect`](crate::transport::scene::shape::intersect) finds, for each of the first `count` rays.
#[inline(always)]
pub fn nearest_together(scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits) {
    hits.make_room(count);
    let (few, are_led) = (are_few(scene), are_led(scene));
    let mut led = Vec::with_capacity(hits.t.len());
    for first in (0..count).step_by(LANES) {
        let (group, all) = (rays.group(first), first_lanes(count - first));
        let mut met = Met::nothing(&group.far);
        let mut enters = if are_led { all } else { 0 };
        if few {
            met.meet_all(scene, scene.singles, &group, all & ahead(scene, &group));
        }
        if few && are_led {
            enters &= met.enters(&scene.bvh.bounds, &group);
        }
        each_lane(enters, |lane| led.push((first + lane) as u32));
        *lanes_mut(&mut hits.t, first) = met.t;
        *lanes_mut(&mut hits.surface, first) = met.number;
        *lanes_mut(&mut hits.primitive, first) = met.part;
        *lanes_mut(&mut hits.triangle, first) = [NONE; LANES];
        for k in 0..2 {
            *lanes_mut(&mut hits.weights[k], first) = [0.0; LANES];
        }
    }
    match few {
        true => search_together(scene, rays, &led, hits),
        false => led.iter().for_each(|&i| search_alone(scene, rays, i as usize, hits)),
    }
    for first in (0..count).step_by(LANES) {
        describe_shapes(scene, &rays.group(first), first, hits);
    }
    // Gathered from all vectors, in each of which only a few rays may hit a triangle.
    led.retain(|i| hits.triangle[*i as usize] != NONE);
    for which in led.chunks(LANES) {
        describe_triangles(scene, which, hits);
    }
    for first in (0..count).step_by(LANES) {
        face(&rays.group(first), first, hits);
    }
}

/// Sets the bits of [`facing`] for the rays of a vector.
#[inline(always)]
fn face(group: &Group, first: usize, hits: &mut Hits) {
    let [normal, shading] = [&hits.normal, &hits.shading].each(|of| [0, 1, 2].each(|a| *lanes(&of[a], first)));
    let mut bits = [0; LANES];
    for lane in 0..LANES {
        let direction = group.direction(lane);
        let [normal, shading] = [&normal, &shading].each(|of| [0, 1, 2].each(|a| of[a][lane]));
        let outside = select(dot(direction, normal) < 0.0, facing::OUTSIDE, 0);
        let behind = select(dot(direction.each(|x| -x), shading) <= 0.0, facing::BEHIND, 0);
        bits[lane] = outside | behind;
    }
    *lanes_mut(&mut hits.facing, first) = bits;
}

/// Searches the BVH for triangles that the rays with the indices `led` hit nearer than their hits so far.
#[inline(always)]
fn search_together(scene: &SceneView, rays: &Rays, led: &[u32], hits: &mut Hits) {
    for which in led.chunks(LANES) {
        let mut packet = Packet::new(&scene.bvh.bounds, rays, which, &hits.t);
        packet.walk::<false>(scene.bvh, first_lanes(which.len()));
        for (lane, &i) in which.iter().enumerate() {
            let i = i as usize;
            let Some(number) = packet.triangle(lane) else { continue };
            // The hit is described after all searches. The record of its corners spans two cache lines, prefetched here.
            let corners = scene.corners.as_ptr().wrapping_add(number as usize);
            prefetch_line(corners);
            prefetch_line(corners.wrapping_add(1).cast::<u32>().wrapping_sub(1));
            hits.t[i] = packet.t[lane];
            hits.primitive[i] = packet.place[lane];
            hits.triangle[i] = number;
            for k in 0..2 {
                hits.weights[k][i] = packet.weights[k][lane];
            }
        }
    }
}

/// Searches the BVH for the nearest hit of one ray, with shapes too.
#[inline(always)]
fn search_alone(scene: &SceneView, rays: &Rays, i: usize, hits: &mut Hits) {
    let (o, d, far) = (rays.origin(i), rays.direction(i), rays.far[i]);
    let surfaces = |number| intersect_shape(scene, number, o, d, far);
    let Some(hit) = bvh::intersect(scene.bvh, &Ray::until(o, d, hits.t[i]), &surfaces) else {
        return;
    };
    hits.t[i] = hit.t;
    match hit.target {
        Target::Surface { number, part } => (hits.surface[i], hits.primitive[i]) = (number, part),
        Target::Triangle { number, place, u, v } => {
            hits.triangle[i] = number;
            hits.primitive[i] = BLOCK as u32 * place.0 + place.1;
            (hits.weights[0][i], hits.weights[1][i]) = (u, v);
        }
    }
}
