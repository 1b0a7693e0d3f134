//! The nearest surfaces of many rays, and what is there.

use super::rays::{Hits, Rays};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::intersect;

/// [`intersect`] of the first `count` rays.
#[inline(always)]
pub fn nearest_together(scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits) {
    hits.resize(count);
    for i in 0..count {
        let hit = intersect(scene, rays.origin(i), rays.direction(i), rays.far[i]);
        hits.put(i, hit.as_ref());
    }
}
