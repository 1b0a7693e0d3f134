//! Shadow rays in vectors: whether any surface blocks them, or whether they meet one of a list of shapes.

use super::meet::{Met, ahead};
use super::nearest::{are_few, are_led};
use super::packets::Packet;
use super::rays::{LANES, Rays, each_lane, first_lanes, lanes_mut};
use crate::transport::scene::bvh::{self, Ray};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::intersect_shape;

/// [`is_blocked`](crate::transport::scene::shape::is_blocked) for each of the first `count` rays: 1 if blocked, else 0.
#[inline(always)]
pub fn blocked_together(scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>) {
    blocked.resize(count.next_multiple_of(LANES), 0);
    let (few, are_led) = (are_few(scene), are_led(scene));
    let mut led = Vec::with_capacity(blocked.len());
    for first in (0..count).step_by(LANES) {
        let (group, all) = (rays.group(first), first_lanes(count - first));
        let mut met = Met::nothing(&group.far);
        let mut bits = 0;
        if few {
            bits = met.meet_all(scene, scene.singles, &group, all & ahead(scene, &group));
        }
        let mut open = if are_led { all & !bits } else { 0 };
        if few && open != 0 {
            open &= met.enters(&scene.bvh.bounds, &group);
        }
        each_lane(open, |lane| led.push((first + lane) as u32));
        let out = lanes_mut(blocked, first);
        for lane in 0..LANES {
            out[lane] = bits >> lane & 1;
        }
    }
    if few {
        for which in led.chunks(LANES) {
            let mut packet = Packet::new(&scene.bvh.bounds, rays, which, &rays.far);
            let bits = packet.walk::<true>(scene.bvh, first_lanes(which.len()));
            for (lane, &i) in which.iter().enumerate() {
                blocked[i as usize] = bits >> lane & 1;
            }
        }
        return;
    }
    for i in led {
        let i = i as usize;
        let (o, d, far) = (rays.origin(i), rays.direction(i), rays.far[i]);
        let surfaces = |number| intersect_shape(scene, number, o, d, far);
        blocked[i] = u32::from(bvh::is_blocked(scene.bvh, &Ray::until(o, d, far), &surfaces));
    }
}

/// Whether each of the first `count` rays meets one of `shapes` (none of them a mesh), all other surfaces ignored: 1
/// where it does.
#[inline(always)]
pub fn meeting_together(scene: &SceneView, shapes: &[u32], rays: &Rays, count: usize, meeting: &mut Vec<u32>) {
    meeting.resize(count.next_multiple_of(LANES), 0);
    for first in (0..count).step_by(LANES) {
        let (group, all) = (rays.group(first), first_lanes(count - first));
        let bits = Met::nothing(&group.far).meet_all(scene, shapes, &group, all & ahead(scene, &group));
        let out = lanes_mut(meeting, first);
        for lane in 0..LANES {
            out[lane] = bits >> lane & 1;
        }
    }
}
