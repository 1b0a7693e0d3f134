//! Whether any surface stands in the way of many rays.

use super::meet::{Met, ahead};
use super::nearest::{are_few, are_led};
use super::rays::{LANES, Rays, each_lane, first_lanes, lanes_mut};
use crate::transport::scene::bvh::{self, Ray, TrianglesAlone};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::intersect_shape;

/// What [`is_blocked`](crate::transport::scene::shape::is_blocked) says of each of the first `count` rays: 1 where it is.
#[inline(always)]
pub fn blocked_together(scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>) {
    blocked.resize(count.next_multiple_of(LANES), 0);
    let few = are_few(scene);
    for first in (0..count).step_by(LANES) {
        let (group, all) = (rays.group(first), first_lanes(count - first));
        let mut met = Met::nothing(&group.far);
        let mut bits = 0;
        if few {
            bits = met.meet_all(scene, &group, all & ahead(scene, &group));
        }
        if are_led(scene) {
            let mut open = all & !bits;
            if few && open != 0 {
                open &= met.enters(&scene.bvh.bounds, &group);
            }
            each_lane(open, |lane| {
                let (o, d, far) = (group.origin(lane), group.direction(lane), group.far[lane]);
                let ray = Ray::until(o, d, far);
                let is = match few {
                    true => bvh::is_blocked(scene.bvh, &ray, &TrianglesAlone),
                    false => bvh::is_blocked(scene.bvh, &ray, &|number| intersect_shape(scene, number, o, d, far)),
                };
                bits |= u32::from(is) << lane;
            });
        }
        let out = lanes_mut(blocked, first);
        for lane in 0..LANES {
            out[lane] = bits >> lane & 1;
        }
    }
}
