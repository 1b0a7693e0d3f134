//! A path of light: from a place of the lamp into the flat side of the slab, out of its other side, onto the screen and the
//! film that sees it; and the derivative of what arrives by the heights.

use super::heights::{Height, Heights, Stencil, height, stencil};
use crate::each::EachEntry;
use crate::resident::layout::Rows;
use crate::resident::light::{Film, ScreenRecord, SlabRecord};
use crate::transport::number::Number;

/// Newton's steps towards the side of heights.
const STEPS: usize = 12;

/// The share of a step's length by which the last one may still move.
const SETTLED: f64 = 1e-6;

/// Where a path of light leaves the slab.
#[derive(Debug, Clone, Copy)]
pub struct Exit<N> {
    pub p: [N; 3],
    pub stencil: Stencil<N>,
    pub height: Height<N>,
}

/// The path beyond the slab.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<N> {
    /// In pixels from the film's upper left corner.
    pub film: [N; 2],
    /// Share of light that arrives, times pixels in the area that it lights.
    pub weight: N,
    /// Direction behind the slab; not a unit vector in the screen's frame.
    onward: [N; 3],
    /// Homogeneous coordinates on the film.
    seen: [N; 3],
    /// The refraction's factor on the normal, and cosines on both sides.
    bend: Bend<N>,
    /// Factor on `onward` that reaches the screen.
    reach: N,
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

#[inline(always)]
fn dot<N: Number>(a: [N; 3], b: [N; 3]) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Where light that leaves the lamp at (u, v) meets the plane of the flat side.
#[inline(always)]
pub fn entry<N: Number>(slab: &SlabRecord, [u, v]: [f32; 2]) -> [N; 2] {
    let [origin, across, down] = slab.entry.each(|p| p.each(N::lift));
    [0, 1].each(|a: usize| origin[a] + across[a] * N::lift(u) + down[a] * N::lift(v))
}

/// Whether a place is within [-1, 1]².
#[inline(always)]
fn within<N: Number>(p: [N; 2]) -> bool {
    p.iter().all(|x| !x.above(1.0) && !x.below(-1.0))
}

/// Where light that enters at `entry` leaves through the side of heights; None where it meets the rim, which absorbs it.
#[inline(always)]
pub fn exit<N: Number>(slab: &SlabRecord, heights: Heights<'_, N>, entry: [N; 2]) -> Option<Exit<N>> {
    if !within(entry) {
        return None;
    }
    let [x, y, z] = slab.inside.each(N::lift);
    let thickness = N::lift(slab.thickness);
    // Straight down no step is needed, as no height changes the place.
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

/// Amplitudes of the light that a side reflects inside, of both polarisations.
#[inline(always)]
fn reflected<N: Number>(eta: N, inside: N, outside: N) -> [N; 2] {
    [
        (eta * inside - outside) / (eta * inside + outside),
        (inside - eta * outside) / (inside + eta * outside),
    ]
}

/// The linear part of an affine map.
#[inline(always)]
fn turned<N: Number>(map: &Rows, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|r: usize| dot([0, 1, 2].each(|c: usize| N::lift(map[r][c])), v))
}

/// The film's place that sees where a ray meets the screen, the ray's length and the homogeneous place.
#[inline(always)]
fn land<N: Number>(screen: &ScreenRecord, film: &Film<'_>, p: [N; 3], d: [N; 3]) -> Option<([N; 3], N)> {
    let linear = turned(&screen.to_screen, p);
    let p = [0, 1, 2].each(|r: usize| linear[r] + N::lift(screen.to_screen[r][3]));
    if !(d[2] * N::lift(screen.front)).below(0.0) {
        return None;
    }
    let reach = -p[2] / d[2];
    if !reach.above(0.0) {
        return None;
    }
    let place = [p[0] + reach * d[0], p[1] + reach * d[1]];
    if !within(place) {
        return None;
    }
    let seen = film.rows.each(|row| {
        let [a, b, c] = row.each(N::lift);
        a * place[0] + b * place[1] + c
    });
    (!seen[2].below(film.clip[0]) && !seen[2].above(film.clip[1])).then_some((seen, reach))
}

/// Homogeneous coordinates as a place, and the pixels in a unit of the screen's area there.
#[inline(always)]
fn project<N: Number>(film: &Film<'_>, seen: [N; 3]) -> ([N; 2], N) {
    let scale = seen[2].recip();
    (
        [seen[0] * scale, seen[1] * scale],
        N::lift(film.pixels) * scale * scale * scale,
    )
}

/// Light that passes beside the slab; None where it meets the rim.
#[inline(always)]
pub fn pass_by<N: Number>(
    slab: &SlabRecord,
    screen: &ScreenRecord,
    film: &Film<'_>,
    entry: [N; 2],
) -> Option<([N; 2], N)> {
    let d = slab.outside.each(N::lift);
    let along = N::lift(slab.thickness) / d[2];
    let beside = |at: [N; 2]| !within(at);
    if !beside(entry) || !beside([entry[0] + along * d[0], entry[1] + along * d[1]]) {
        return None;
    }
    let p = [entry[0], entry[1], N::lift(-slab.thickness)];
    let (seen, _) = land(screen, film, p, turned(&screen.to_screen, d))?;
    Some(project(film, seen))
}

/// What arrives of light that leaves the slab at `exit`.
#[inline(always)]
pub fn arrive<N: Number>(
    slab: &SlabRecord,
    screen: &ScreenRecord,
    film: &Film<'_>,
    exit: &Exit<N>,
) -> Option<Arrival<N>> {
    let slope = exit.height.slope;
    let bend = bend(slab, slope)?;
    let eta = N::lift(slab.eta);
    let inside = slab.inside.each(N::lift);
    let direction = [
        eta * inside[0] - bend.factor * slope[0],
        eta * inside[1] - bend.factor * slope[1],
        eta * inside[2] + bend.factor,
    ];
    let onward = turned(&screen.to_screen, direction);
    let (seen, reach) = land(screen, film, exit.p, onward)?;
    let (place, pixels) = project(film, seen);
    Some(Arrival {
        film: place,
        weight: N::lift(slab.entering) * bend.passed * pixels,
        onward,
        seen,
        bend,
        reach,
    })
}

/// The transpose of the linear part of an affine map.
#[inline(always)]
fn turned_back<N: Number>(map: &Rows, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|c: usize| dot([0, 1, 2].each(|r: usize| N::lift(map[r][c])), v))
}

/// From derivatives by the place on the film and by the weight to those by the height where the path leaves the slab, and by
/// its slopes there.
#[inline(always)]
pub fn arrival_adjoint<N: Number>(
    slab: &SlabRecord,
    screen: &ScreenRecord,
    film: &Film<'_>,
    (exit, arrival): (&Exit<N>, &Arrival<N>),
    (by_film, by_weight): ([N; 2], N),
) -> [N; 3] {
    let eta = N::lift(slab.eta);
    let (inside, slope) = (slab.inside.each(N::lift), exit.height.slope);
    let Arrival {
        bend, reach, onward, ..
    } = *arrival;
    // Film and screen.
    let by_log = by_weight * arrival.weight;
    let scale = arrival.seen[2].recip();
    let [x, y] = [by_film[0] * scale, by_film[1] * scale];
    let three = N::lift(3.0);
    let by_seen = [
        x,
        y,
        -(x * arrival.film[0] + y * arrival.film[1]) - three * by_log * scale,
    ];
    let by_place = [0, 1].each(|a: usize| dot(film.rows.each(|row| N::lift(row[a])), by_seen));
    let by_reach = by_place[0] * onward[0] + by_place[1] * onward[1];
    let by_depth = -(by_reach / onward[2]);
    let by_p = turned_back(&screen.to_screen, [by_place[0], by_place[1], by_depth]);
    let by_onward = [reach * by_place[0], reach * by_place[1], reach * by_depth];
    let by_direction = turned_back(&screen.to_screen, by_onward);
    // Refraction.
    let Bend {
        factor,
        length,
        cos_inside,
        cos_outside,
        passed,
    } = bend;
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
    // The path's end in the slab moves along it where the side rises, and meets other slopes there.
    let [xx, xy, yy] = exit.height.curvature;
    let by_far = dot(by_p, inside)
        + by_slope[0] * (xx * inside[0] + xy * inside[1])
        + by_slope[1] * (xy * inside[0] + yy * inside[1]);
    let rising = inside[2] - slope[0] * inside[0] - slope[1] * inside[1];
    let by_height = by_far / rising;
    [by_height, by_slope[0], by_slope[1]]
}
