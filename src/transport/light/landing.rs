//! Where light behind an optic meets the screen, and the film that sees it there.

use crate::each::EachEntry;
use crate::resident::layout::Rows;
use crate::resident::light::{Film, ScreenRecord};
use crate::transport::number::Number;

/// Where light lands, all frames being those of the optic.
#[derive(Debug, Clone, Copy)]
pub struct Landing<N> {
    /// In pixels from the film's upper left corner.
    pub film: [N; 2],
    /// Film pixels per unit of the screen's area at this point.
    pub pixels: N,
    /// The direction in the screen's frame; not a unit vector.
    onward: [N; 3],
    /// Homogeneous coordinates on the film.
    seen: [N; 3],
    /// Distance to the screen in units of `onward`.
    reach: N,
}

#[inline(always)]
pub(super) fn dot<N: Number>(a: [N; 3], b: [N; 3]) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Whether a place is within [-1, 1]².
#[inline(always)]
pub(super) fn within<N: Number>(p: [N; 2]) -> bool {
    p.iter().all(|x| !x.above(1.0) && !x.below(-1.0))
}

/// The linear part of an affine map.
#[inline(always)]
fn turned<N: Number>(map: &Rows, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|r: usize| dot([0, 1, 2].each(|c: usize| N::lift(map[r][c])), v))
}

/// The transpose of the linear part of an affine map.
#[inline(always)]
fn turned_back<N: Number>(map: &Rows, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|c: usize| dot([0, 1, 2].each(|r: usize| N::lift(map[r][c])), v))
}

/// The point at which light from `p` along `direction` meets the screen, as the film sees it; None if light misses the screen,
/// or the film does not see the point.
#[inline(always)]
pub fn land<N: Number>(screen: &ScreenRecord, film: &Film<'_>, p: [N; 3], direction: [N; 3]) -> Option<Landing<N>> {
    let onward = turned(&screen.to_screen, direction);
    let linear = turned(&screen.to_screen, p);
    let p = [0, 1, 2].each(|r: usize| linear[r] + N::lift(screen.to_screen[r][3]));
    if !(onward[2] * N::lift(screen.front)).below(0.0) {
        return None;
    }
    let reach = -p[2] / onward[2];
    if !reach.above(0.0) {
        return None;
    }
    let place = [p[0] + reach * onward[0], p[1] + reach * onward[1]];
    if !within(place) {
        return None;
    }
    let seen = film.rows.each(|row| {
        let [a, b, c] = row.each(N::lift);
        a * place[0] + b * place[1] + c
    });
    if seen[2].below(film.clip[0]) || seen[2].above(film.clip[1]) {
        return None;
    }
    let scale = seen[2].recip();
    Some(Landing {
        film: [seen[0] * scale, seen[1] * scale],
        pixels: N::lift(film.pixels) * scale * scale * scale,
        onward,
        seen,
        reach,
    })
}

/// From derivatives by the place on the film and by the logarithm of `pixels` to those by `p` and `direction` of [`land`].
#[inline(always)]
pub fn landing_adjoint<N: Number>(
    screen: &ScreenRecord,
    film: &Film<'_>,
    landing: &Landing<N>,
    (by_film, by_log): ([N; 2], N),
) -> [[N; 3]; 2] {
    let Landing { onward, reach, .. } = *landing;
    let scale = landing.seen[2].recip();
    let [x, y] = [by_film[0] * scale, by_film[1] * scale];
    let three = N::lift(3.0);
    let by_seen = [
        x,
        y,
        -(x * landing.film[0] + y * landing.film[1]) - three * by_log * scale,
    ];
    let by_place = [0, 1].each(|a: usize| dot(film.rows.each(|row| N::lift(row[a])), by_seen));
    let by_reach = by_place[0] * onward[0] + by_place[1] * onward[1];
    let by_depth = -(by_reach / onward[2]);
    let by_onward = [reach * by_place[0], reach * by_place[1], reach * by_depth];
    [
        turned_back(&screen.to_screen, [by_place[0], by_place[1], by_depth]),
        turned_back(&screen.to_screen, by_onward),
    ]
}
