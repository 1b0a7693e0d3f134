//! Whether any surface stands in the way of many rays.

use super::rays::{LANES, Rays};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::is_blocked;

/// [`is_blocked`] of the first `count` rays, 1 where it is.
#[inline(always)]
pub fn blocked_together(scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>) {
    blocked.resize(count.next_multiple_of(LANES), 0);
    for i in 0..count {
        let is = is_blocked(scene, rays.origin(i), rays.direction(i), rays.far[i]);
        blocked[i] = u32::from(is);
    }
}
