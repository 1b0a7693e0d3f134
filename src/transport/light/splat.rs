//! The reconstruction filter around a place on a film: shares of the pixels that it reaches, whose sum is one, and their slopes.

use crate::each::EachEntry;
use crate::resident::light::SplatFilter;
use crate::transport::number::Number;

/// Shares of at most `MOST` pixels from `first` on along an axis.
#[derive(Debug, Clone, Copy)]
pub struct Taps<N, const MOST: usize> {
    pub first: i32,
    pub count: usize,
    pub share: [N; MOST],
    /// Derivatives of the shares by the place.
    pub slope: [N; MOST],
}

/// Value and slope of a filter at `offset` from its centre: cubic Hermite interpolation between nodes.
#[inline(always)]
fn lookup<N: Number>(filter: &SplatFilter, offset: N) -> [N; 2] {
    let (x, mirrored) = if offset.below(0.0) {
        (-offset, true)
    } else {
        (offset, false)
    };
    let x = x * N::lift(filter.nodes);
    let node = (x.value() as usize).min(filter.table.len() - 2);
    let f = x - N::lift(node as f32);
    let [[a, da], [b, db]] = [filter.table[node], filter.table[node + 1]].each(|n| n.each(N::lift));
    // a + f (da + f (c2 + f c3))
    let rise = b - a;
    let c3 = da + db - (rise + rise);
    let c2 = rise - da - c3;
    let value = a + f * (da + f * (c2 + f * c3));
    let slope = (da + f * (c2 + c2 + f * (c3 + c3 + c3))) * N::lift(filter.nodes);
    [value, if mirrored { -slope } else { slope }]
}

/// The first of the pixels along an axis that the filter reaches from a place, and their number, `MOST` at most.
#[inline(always)]
pub fn support(filter: &SplatFilter, at: f64, most: usize) -> (i32, usize) {
    let radius = f64::from(filter.radius);
    let first = (at - radius - 0.5).ceil();
    let last = (at + radius - 0.5).floor();
    (first as i32, ((last - first) as i32 + 1).clamp(1, most as i32) as usize)
}

/// The pixels along an axis around `place`, in pixels from the film's edge; `MOST` is more than twice the radius.
#[inline(always)]
pub fn taps<N: Number, const MOST: usize>(filter: &SplatFilter, place: N) -> Taps<N, MOST> {
    taps_of(filter, place, support(filter, place.value(), MOST))
}

/// [`taps`] of given pixels.
#[inline(always)]
pub fn taps_of<N: Number, const MOST: usize>(
    filter: &SplatFilter,
    place: N,
    (first, count): (i32, usize),
) -> Taps<N, MOST> {
    let zero = N::lift(0.0);
    let mut taps = Taps {
        first,
        count,
        share: [zero; MOST],
        slope: [zero; MOST],
    };
    let (mut sum, mut slopes) = (zero, zero);
    let first = first as f32;
    for k in 0..count {
        let center = N::lift(first + k as f32 + 0.5);
        let [value, slope] = lookup(filter, place - center);
        (taps.share[k], taps.slope[k]) = (value, slope);
        sum += value;
        slopes += slope;
    }
    let scale = sum.recip();
    for k in 0..count {
        taps.share[k] *= scale;
        taps.slope[k] = (taps.slope[k] - taps.share[k] * slopes) * scale;
    }
    taps
}
