//! Light through a slab: from a place of the lamp into the flat side, out of the side of heights, onto the screen; and the
//! derivative of what arrives by the heights.

use std::ops::Range;

use super::heights::{Height, Heights, Stencil, height, height_adjoint, stencil};
use super::landing::{Landing, dot, land, landing_adjoint, within};
use super::optic::{Arrival, Optic};
use crate::each::EachEntry;
use crate::resident::light::{Film, ScreenRecord};
use crate::resident::optics::SlabRecord;
use crate::transport::number::Number;

/// Most iterations of Newton's method for the intersection with the side of heights.
const STEPS: usize = 12;

/// Newton's method has converged when a step is at most this share of the distance.
const SETTLED: f64 = 1e-6;

/// Where a path of light leaves the slab.
#[derive(Debug, Clone, Copy)]
struct Exit<N> {
    p: [N; 3],
    stencil: Stencil<N>,
    height: Height<N>,
}

/// Refraction out of the slab: onward = eta · inside + factor · (-slope, 1).
#[derive(Debug, Clone, Copy)]
struct Bend<N> {
    factor: N,
    /// Length of (-slope, 1).
    length: N,
    cos_inside: N,
    cos_outside: N,
    passed: N,
}

/// Where light that leaves the lamp at (u, v) meets the plane of the flat side.
#[inline(always)]
fn entry<N: Number>(slab: &SlabRecord, [u, v]: [f32; 2]) -> [N; 2] {
    let [origin, across, down] = slab.entry.each(|p| p.each(N::lift));
    [0, 1].each(|a: usize| origin[a] + across[a] * N::lift(u) + down[a] * N::lift(v))
}

/// Where light that enters at `entry` leaves through the side of heights; None where it meets the rim, which absorbs it.
#[inline(always)]
fn exit<N: Number>(slab: &SlabRecord, heights: Heights<'_, N>, entry: [N; 2]) -> Option<Exit<N>> {
    if !within(entry) {
        return None;
    }
    let [x, y, z] = slab.inside.each(N::lift);
    let thickness = N::lift(slab.thickness);
    // Along the z axis no step is needed, since x and y do not depend on the height.
    let is_upright = slab.inside[0] == 0.0 && slab.inside[1] == 0.0;
    let (mut far, mut settled) = (thickness * z.recip(), is_upright);
    for _ in 0..STEPS {
        let place = [entry[0] + far * x, entry[1] + far * y];
        if !within(place) {
            return None;
        }
        let stencil = stencil(heights.size, place[0], place[1]);
        let height = height(heights, &stencil);
        if settled {
            let top = if is_upright { height.value } else { far * z - thickness };
            return Some(Exit {
                p: [place[0], place[1], top],
                stencil,
                height,
            });
        }
        let above = far * z - thickness - height.value;
        let slope = z - height.slope[0] * x - height.slope[1] * y;
        if !slope.above(0.0) {
            return None;
        }
        let step = above / slope;
        far -= step;
        settled = step.value().abs() <= SETTLED * far.value().abs();
    }
    None
}

#[inline(always)]
fn bend<N: Number>(slab: &SlabRecord, slope: [N; 2]) -> Option<Bend<N>> {
    let one = N::lift(1.0);
    let (eta, inside) = (N::lift(slab.eta), slab.inside.each(N::lift));
    let length = (one + slope[0] * slope[0] + slope[1] * slope[1]).sqrt();
    let cos_inside = (inside[2] - slope[0] * inside[0] - slope[1] * inside[1]) / length;
    let square = one - eta * eta * (one - cos_inside * cos_inside);
    if !cos_inside.above(0.0) || !square.above(0.0) {
        return None;
    }
    let cos_outside = square.sqrt();
    let [s, p] = reflected(eta, cos_inside, cos_outside);
    Some(Bend {
        factor: (cos_outside - eta * cos_inside) / length,
        length,
        cos_inside,
        cos_outside,
        passed: one - N::lift(0.5) * (s * s + p * p),
    })
}

/// Fresnel's reflection coefficients (amplitudes) of a side, from inside, for s and p polarisation.
#[inline(always)]
fn reflected<N: Number>(eta: N, inside: N, outside: N) -> [N; 2] {
    [
        (eta * inside - outside) / (eta * inside + outside),
        (inside - eta * outside) / (inside + eta * outside),
    ]
}

/// Light that passes beside the slab; None where it meets the rim.
#[inline(always)]
fn pass_by<N: Number>(slab: &SlabRecord, screen: &ScreenRecord, film: &Film<'_>, entry: [N; 2]) -> Option<Landing<N>> {
    let d = slab.outside.each(N::lift);
    let along = N::lift(slab.thickness) / d[2];
    let beside = |at: [N; 2]| !within(at);
    if !beside(entry) || !beside([entry[0] + along * d[0], entry[1] + along * d[1]]) {
        return None;
    }
    land(screen, film, [entry[0], entry[1], N::lift(-slab.thickness)], d)
}

/// The path beyond the slab.
#[derive(Debug, Clone, Copy)]
struct Beyond<N> {
    /// Share of light that is transmitted, times film pixels per unit of the screen's area.
    weight: N,
    bend: Bend<N>,
    landing: Landing<N>,
}

/// The path beyond `exit`, where light leaves the slab; None if it does not arrive on the film.
#[inline(always)]
fn arrive<N: Number>(slab: &SlabRecord, screen: &ScreenRecord, film: &Film<'_>, exit: &Exit<N>) -> Option<Beyond<N>> {
    let slope = exit.height.slope;
    let bend = bend(slab, slope)?;
    let eta = N::lift(slab.eta);
    let inside = slab.inside.each(N::lift);
    let direction = [
        eta * inside[0] - bend.factor * slope[0],
        eta * inside[1] - bend.factor * slope[1],
        eta * inside[2] + bend.factor,
    ];
    let landing = land(screen, film, exit.p, direction)?;
    Some(Beyond {
        weight: N::lift(slab.entering) * bend.passed * landing.pixels,
        bend,
        landing,
    })
}

/// From derivatives by the place on the film and by the weight to those by the height where the path leaves the slab, and by
/// its slopes there.
#[inline(always)]
fn arrival_adjoint<N: Number>(
    slab: &SlabRecord,
    screen: &ScreenRecord,
    film: &Film<'_>,
    (exit, beyond): (&Exit<N>, &Beyond<N>),
    (by_film, by_weight): ([N; 2], N),
) -> [N; 3] {
    let eta = N::lift(slab.eta);
    let (inside, slope) = (slab.inside.each(N::lift), exit.height.slope);
    let by_log = by_weight * beyond.weight;
    let [by_p, by_direction] = landing_adjoint(screen, film, &beyond.landing, (by_film, by_log));
    // Refraction.
    let Bend {
        factor,
        length,
        cos_inside,
        cos_outside,
        passed,
    } = beyond.bend;
    let mut by_slope = [-(factor * by_direction[0]), -(factor * by_direction[1])];
    let by_factor = by_direction[2] - by_direction[0] * slope[0] - by_direction[1] * slope[1];
    let [s, p] = reflected(eta, cos_inside, cos_outside);
    let [below_s, below_p] = [eta * cos_inside + cos_outside, cos_inside + eta * cos_outside];
    let two_eta = eta + eta;
    // The derivative of `passed` by the cosines is (-cos_outside, cos_inside) times this.
    let turn = two_eta * (s / (below_s * below_s) + p / (below_p * below_p)) * by_log / passed;
    let by_outside = by_factor / length + turn * cos_inside;
    let by_inside =
        -(eta * by_factor) / length - turn * cos_outside + eta * eta * cos_inside / cos_outside * by_outside;
    let by_length = -(factor * by_factor + cos_inside * by_inside) / length;
    for a in 0..2 {
        by_slope[a] += (slope[a] * by_length - inside[a] * by_inside) / length;
    }
    // Where the side rises, the exit point moves along the path, to where slopes differ by the curvatures.
    let [xx, xy, yy] = exit.height.curvature;
    let by_far = dot(by_p, inside)
        + by_slope[0] * (xx * inside[0] + xy * inside[1])
        + by_slope[1] * (xy * inside[0] + yy * inside[1]);
    let rising = inside[2] - slope[0] * inside[0] - slope[1] * inside[1];
    let by_height = by_far / rising;
    [by_height, by_slope[0], by_slope[1]]
}

/// A slab with its heights.
#[derive(Debug, Clone, Copy)]
pub struct SlabOptic<'a, N> {
    pub slab: &'a SlabRecord,
    pub heights: Heights<'a, N>,
}

/// A path through the slab.
#[derive(Debug, Clone, Copy)]
pub struct SlabTrace<N> {
    exit: Exit<N>,
    beyond: Beyond<N>,
}

/// Rows of heights added before and behind those that a band's paths pass: one for the stencil, and two for rounding.
const MARGIN: f32 = 3.0;

/// Rows of heights that two neighbouring bands share.
pub const ROWS_BETWEEN: usize = 2 * MARGIN as usize + 1;

impl<N: Number + Sync> Optic<N> for SlabOptic<'_, N> {
    type Trace = SlabTrace<N>;

    #[inline(always)]
    fn follow(&self, screen: &ScreenRecord, film: &Film<'_>, place: [f32; 2]) -> Option<Arrival<N, SlabTrace<N>>> {
        let entry = entry(self.slab, place);
        let Some(exit) = exit(self.slab, self.heights, entry) else {
            let landing = pass_by(self.slab, screen, film, entry)?;
            return Some(Arrival {
                film: landing.film,
                weight: landing.pixels,
                trace: None,
            });
        };
        let beyond = arrive(self.slab, screen, film, &exit)?;
        Some(Arrival {
            film: beyond.landing.film,
            weight: beyond.weight,
            trace: Some(SlabTrace { exit, beyond }),
        })
    }

    #[inline(always)]
    fn send(
        &self,
        screen: &ScreenRecord,
        film: &Film<'_>,
        trace: &SlabTrace<N>,
        by: ([N; 2], N),
        mut send: impl FnMut(usize, &[N]),
    ) {
        let SlabTrace { exit, beyond } = trace;
        let by = arrival_adjoint(self.slab, screen, film, (exit, beyond), by);
        let width = self.heights.size[0];
        height_adjoint(&exit.stencil, by, |column, row, g| send(row * width + column, &[g]));
    }

    fn reach(&self, rows: [f32; 2]) -> Range<usize> {
        let slab = self.slab;
        let [width, count] = self.heights.size;
        // The spline lies between its smallest and its largest coefficient.
        let all = self.heights.values.iter().map(|v| v.value() as f32);
        let (low, high) = all.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let shift = slab.inside[1] / slab.inside[2];
        let edges = [0.0, 1.0].each(|u| rows.each(|row| entry::<f32>(slab, [u, row])[1]));
        let ends = edges
            .as_flattened()
            .iter()
            .flat_map(|y| [low, high].each(|h| y + (slab.thickness + h) * shift));
        let (from, to) = ends.fold((f32::INFINITY, f32::NEG_INFINITY), |(from, to), y| {
            (from.min(y), to.max(y))
        });
        let texel = |y: f32| (y + 1.0) * 0.5 * count as f32;
        let first = (texel(from) - MARGIN).max(0.0) as usize;
        let last = (texel(to) + MARGIN + 1.0).max(0.0) as usize;
        let first = first.min(count - 1);
        first * width..last.clamp(first + 1, count) * width
    }
}
