//! Where a path meets a surface: the point, its frames, and the side that it comes from.

use super::records::SceneView;
use super::shape::{Hit, leave};
use super::tangent::tangents;
use crate::each::EachEntry;
use crate::resident::layout::{BsdfRecord, LeafRecord, NONE, bsdf};
use crate::transport::rays::sampler::{dot, frame};

/// A path's meeting with a surface that has a BSDF. Directions in the local frame have the shading normal along z.
#[derive(Debug, Clone, Copy)]
pub struct Interaction {
    pub hit: Hit,
    /// The direction of propagation before, in the world.
    pub incoming: [f32; 3],
    /// The local direction that the path comes from.
    pub wi: [f32; 3],
    /// The other two axes of the local frame.
    pub s: [f32; 3],
    pub t: [f32; 3],
    /// Whether the path comes from the side that the geometric normal points to, which decides the medium.
    pub outside: bool,
    /// The surface's BSDF.
    pub bsdf: u32,
    /// Whether normal maps and bump maps are left out.
    pub smooth: bool,
}

/// The medium behind a surface that is crossed in `direction` out of `medium`; `medium` itself if the surface bounds none.
#[inline]
pub fn medium_beyond(scene: &SceneView, hit: &Hit, direction: [f32; 3], medium: u32) -> u32 {
    let record = &scene.surfaces[hit.surface as usize];
    match (record.interior, record.exterior) {
        (NONE, NONE) => medium,
        (interior, _) if dot(direction, hit.normal) < 0.0 => interior,
        (_, exterior) => exterior,
    }
}

impl Interaction {
    /// The meeting of a path that goes along `incoming` with a surface that has a BSDF.
    #[inline]
    pub fn new(scene: &SceneView, hit: &Hit, incoming: [f32; 3]) -> Self {
        let bsdf = scene.surfaces[hit.surface as usize].bsdf;
        let turnable = scene.bsdfs[bsdf as usize].flags & bsdf::ANISOTROPIC == 0;
        let (s, t) = if turnable {
            frame(hit.shading)
        } else {
            tangents(scene, hit)
        };
        let mut at = Self {
            hit: *hit,
            incoming,
            wi: [0.0; 3],
            s,
            t,
            outside: dot(incoming, hit.normal) < 0.0,
            bsdf,
            smooth: false,
        };
        at.wi = at.to_local(incoming.each(|x| -x));
        at
    }

    /// The record of the BSDF.
    #[inline(always)]
    pub fn record<'a>(&self, scene: &SceneView<'a>) -> &'a BsdfRecord {
        &scene.bsdfs[self.bsdf as usize]
    }

    /// The number of the first leaf on the side that the path comes from, and how many they are.
    #[inline(always)]
    pub fn side(&self, scene: &SceneView) -> [u32; 2] {
        let record = self.record(scene);
        if self.wi[2] > 0.0 { record.front } else { record.back }
    }

    /// The leaves on the side of the shading normal that the path comes from.
    #[inline(always)]
    pub fn leaves<'a>(&self, scene: &SceneView<'a>) -> &'a [LeafRecord] {
        let [first, count] = self.side(scene);
        &scene.leaves[first as usize..][..count as usize]
    }

    /// A direction of the world in the local frame.
    #[inline(always)]
    pub fn to_local(&self, d: [f32; 3]) -> [f32; 3] {
        [dot(d, self.s), dot(d, self.t), dot(d, self.hit.shading)]
    }

    /// A local direction in the world.
    #[inline(always)]
    pub fn to_world(&self, d: [f32; 3]) -> [f32; 3] {
        let (s, t, n) = (&self.s, &self.t, &self.hit.shading);
        [0, 1, 2].each(|a| s[a] * d[0] + t[a] * d[1] + n[a] * d[2])
    }

    /// The origin of a ray that leaves in `direction`.
    #[inline(always)]
    pub fn leave(&self, direction: [f32; 3]) -> [f32; 3] {
        leave(&self.hit, direction)
    }

    /// The medium on the side of `direction`, of a path that came through `medium`.
    #[inline]
    pub fn medium_in(&self, scene: &SceneView, direction: [f32; 3], medium: u32) -> u32 {
        match (dot(direction, self.hit.normal) > 0.0) == self.outside {
            true => medium,
            false => medium_beyond(scene, &self.hit, direction, medium),
        }
    }
}
