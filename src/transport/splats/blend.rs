//! The blend of a pixel and its undoing: the smallest program of this crate in which a replay takes the place of a
//! tape.
//!
//! A pixel looks at its splats in order, the nearest first. It begins with the transmittance T = 1 and the colour C =
//! 0, and each splat of weight α and colour c changes both:
//!
//! ```text
//! blend   C ← C + T α c        T ← T (1 - α)
//! undo    T ← T / (1 - α)      C ← C - T α c
//! ```
//!
//! The second line takes back the first. The derivative of a loop is taken from its end to its beginning and needs the state
//! before each turn: conventional differentiation stores all of them, the replay begins with the last state, which the pixel
//! has, and undoes one blend after the other (SlangSplats2D). What is stored does not depend on the number of splats. At the
//! end T must be 1 again and C 0; what they differ by is the rounding error.
//!
//! [`gather`] is the loop forwards, [`replay`] the loop backwards. `shaders/transport/splats/blend.wgsl` is the same
//! file in WGSL; the CPU's passes take blocks of sixteen pixels at a time (`device/cpu/splats/gather.rs` and
//! `replay.rs`).

use super::splat::{Splat, SplatAdjoint};
use crate::each::EachEntry;
use crate::transport::number::Number;

/// The largest weight: with 1 the transmittance could not be undone.
pub const MAX_WEIGHT: f32 = 0.99;

/// Weights below this are left out, so that a splat reaches finitely far.
pub const MIN_WEIGHT: f32 = 1.0 / 255.0;

/// A pixel whose transmittance falls below this is finished.
pub const MIN_TRANSMITTANCE: f32 = 1.0 / 255.0;

/// The state of a pixel: what has been blended so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelState<N> {
    /// The share of light that comes through all splats so far.
    pub transmittance: N,
    pub color: [N; 3],
}

impl<N: Number> PixelState<N> {
    /// Before the first splat.
    #[inline(always)]
    pub fn begin() -> Self {
        Self {
            transmittance: N::lift(1.0),
            color: [N::lift(0.0); 3],
        }
    }

    /// Blends a splat behind those blended so far.
    #[inline(always)]
    pub fn blend(&mut self, weight: N, color: [N; 3]) {
        for c in 0..3 {
            self.color[c] += self.transmittance * weight * color[c];
        }
        self.transmittance *= N::lift(1.0) - weight;
    }

    /// Takes the last [`Self::blend`] back.
    #[inline(always)]
    pub fn undo(&mut self, weight: N, color: [N; 3]) {
        self.transmittance = self.transmittance / (N::lift(1.0) - weight);
        for c in 0..3 {
            self.color[c] -= self.transmittance * weight * color[c];
        }
    }

    /// The colour of the pixel: what has been blended over the background.
    #[inline(always)]
    pub fn over(&self, background: [N; 3]) -> [N; 3] {
        [0, 1, 2].each(|c| self.color[c] + self.transmittance * background[c])
    }
}

/// Derivatives of the loss by the state between two turns of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateAdjoint<N> {
    pub transmittance: N,
    /// The same before every turn, since blending adds to the colour.
    pub color: [N; 3],
}

impl<N: Number> StateAdjoint<N> {
    /// [`PixelState::over`] backwards: after the last splat, for the loss's derivative by the pixel's colour.
    #[inline(always)]
    pub fn over_adjoint(adjoint: [N; 3], background: [N; 3]) -> Self {
        Self {
            transmittance: dot(adjoint, background),
            color: adjoint,
        }
    }

    /// [`PixelState::blend`] backwards: from the state's derivatives after the blend to those before it. Returns the
    /// derivatives by weight and colour; `before` is the transmittance before the blend.
    #[inline(always)]
    pub fn blend_adjoint(&mut self, before: N, weight: N, color: [N; 3]) -> (N, [N; 3]) {
        let gain = dot(self.color, color) - self.transmittance;
        let by_color = self.color.each(|adjoint| before * weight * adjoint);
        self.transmittance += weight * gain;
        (before * gain, by_color)
    }
}

#[inline(always)]
fn dot<N: Number>(a: [N; 3], b: [N; 3]) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The splats that a pixel looks at.
#[derive(Debug, Clone, Copy)]
pub struct List<'a, N> {
    /// Indices of the splats, the nearest first.
    pub order: &'a [u32],
    /// All splats as decisions see them: which are left out, whose weight is clamped, and where the pixel is finished.
    pub decide: &'a [Splat<f32>],
    /// All splats as they are blended.
    pub splats: &'a [Splat<N>],
    /// The pixel's centre, in pixels from the picture's top left corner.
    pub pixel: [f32; 2],
}

/// A splat's weight at a pixel, if it is blended there, and whether the weight is clamped.
#[inline(always)]
fn weigh<N: Number>(list: &List<'_, N>, splat: u32) -> Option<(N, bool)> {
    let decided = list.decide[splat as usize].eval(list.pixel);
    if decided < MIN_WEIGHT {
        return None;
    }
    if decided > MAX_WEIGHT {
        return Some((N::lift(MAX_WEIGHT), true));
    }
    Some((list.splats[splat as usize].eval(list.pixel), false))
}

/// Blends a list: the last state, and how many entries of the list have been looked at.
#[inline(always)]
pub fn gather<N: Number>(list: &List<'_, N>) -> (PixelState<N>, u32) {
    let mut state = PixelState::begin();
    let mut decide = 1.0f32;
    for (i, &splat) in list.order.iter().enumerate() {
        let Some((weight, _)) = weigh(list, splat) else {
            continue;
        };
        state.blend(weight, list.splats[splat as usize].color);
        decide *= 1.0 - list.decide[splat as usize].eval(list.pixel).min(MAX_WEIGHT);
        if decide < MIN_TRANSMITTANCE {
            return (state, i as u32 + 1);
        }
    }
    (state, list.order.len() as u32)
}

/// Undoes what [`gather`] has blended from its last state on, and sends to `sink` each splat's index with the
/// derivatives by it. Returns the state that is left: T = 1 and C = 0 but for rounding.
#[inline(always)]
pub fn replay<N: Number>(
    list: &List<'_, N>,
    (last, count): (PixelState<N>, u32),
    adjoint: [N; 3],
    background: [N; 3],
    mut sink: impl FnMut(u32, SplatAdjoint<N>),
) -> PixelState<N> {
    let mut state = last;
    let mut after = StateAdjoint::over_adjoint(adjoint, background);
    for &splat in list.order[..count as usize].iter().rev() {
        if let Some(by) = replay_one(list, splat, &mut state, &mut after) {
            sink(splat, by);
        }
    }
    state
}

/// One turn of [`replay`]: undoes a splat and returns the derivatives by it; None if it was not blended.
#[inline(always)]
fn replay_one<N: Number>(
    list: &List<'_, N>,
    splat: u32,
    state: &mut PixelState<N>,
    after: &mut StateAdjoint<N>,
) -> Option<SplatAdjoint<N>> {
    let (weight, clamped) = weigh(list, splat)?;
    let of = &list.splats[splat as usize];
    state.undo(weight, of.color);
    let (by_weight, by_color) = after.blend_adjoint(state.transmittance, weight, of.color);
    let mut by = match clamped {
        true => SplatAdjoint::zero(),
        false => of.eval_adjoint(list.pixel, by_weight),
    };
    by.color = by_color;
    Some(by)
}
