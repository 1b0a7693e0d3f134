//! Light through a cube of varying index: from a place of the lamp into one of its faces, along a bent ray, out of another face
//! onto the screen; and the derivative of what arrives by the coefficients of the index.

use std::ops::Range;

use super::index::Medium;
use super::landing::{Landing, dot, land, landing_adjoint};
use super::leapfrog::{Exit, State, march, reverse};
use super::optic::{Arrival, Optic};
use crate::each::EachEntry;
use crate::resident::light::{Film, ScreenRecord};
use crate::resident::optics::CubeRecord;
use crate::transport::number::Number;

/// A cube and its index of refraction, a [`Medium`].
#[derive(Debug, Clone, Copy)]
pub struct CubeOptic<'a, M> {
    pub cube: &'a CubeRecord,
    pub index: M,
}

/// A path through the cube.
#[derive(Debug, Clone, Copy)]
pub struct CubeTrace<N> {
    /// Axis normal to the face that light enters by; `entered` is the passage there, `left` that at the exit.
    axis: usize,
    entered: Passage<N>,
    exit: Exit<N>,
    left: Passage<N>,
    weight: N,
    landing: Landing<N>,
}

/// A passage through a face.
#[derive(Debug, Clone, Copy)]
struct Passage<N> {
    /// Components along the face's normal of the velocity inside and of the direction outside.
    inside: N,
    outside: N,
    /// The index inside.
    index: N,
    /// Share of light that gets through.
    passed: N,
}

/// Fresnel's reflection coefficients (amplitudes) of a face for s and p polarisation; `square` is the squared index inside.
#[inline(always)]
fn reflected<N: Number>(inside: N, outside: N, square: N) -> [N; 2] {
    let dense = square * outside;
    [
        (inside - outside) / (inside + outside),
        (inside - dense) / (inside + dense),
    ]
}

impl<N: Number> Passage<N> {
    /// Through a smooth face.
    #[inline(always)]
    fn refracted(inside: N, outside: N, index: N) -> Self {
        let [s, p] = reflected(inside, outside, index * index);
        Self {
            inside,
            outside,
            index,
            passed: N::lift(1.0) - N::lift(0.5) * (s * s + p * p),
        }
    }

    /// Through a face that does not refract.
    #[inline(always)]
    fn open(inside: N, index: N) -> Self {
        Self {
            inside,
            outside: inside,
            index,
            passed: N::lift(1.0),
        }
    }

    /// Derivatives of the logarithm of `passed` by `inside`, `outside` and `index`.
    #[inline(always)]
    fn slopes(&self) -> [N; 3] {
        let Self {
            inside, outside, index, ..
        } = *self;
        let square = index * index;
        let [s, p] = reflected(inside, outside, square);
        let [below_s, below_p] = [inside + outside, inside + square * outside];
        // Through x = inside / outside: s = (x - 1) / (x + 1), and p is the same function of x / index².
        let turn = -(N::lift(2.0) / self.passed);
        let s = turn * s / (below_s * below_s);
        let p = turn * p / (below_p * below_p);
        [
            s * outside + p * square * outside,
            -(s * inside) - p * square * inside,
            -(p * inside * outside * (index + index)),
        ]
    }
}

/// The size of a vector's component along an axis.
#[inline(always)]
fn along<N: Number>(v: [N; 3], axis: usize) -> N {
    v[axis].abs()
}

/// `v` with its component along `axis` set to `size`, its sign kept.
#[inline(always)]
fn with<N: Number>(mut v: [N; 3], axis: usize, size: N) -> [N; 3] {
    v[axis] = if v[axis].below(0.0) { -size } else { size };
    v
}

/// Where light that leaves the lamp at (u, v) enters the cube, and the axis normal to that face; None if it misses the cube.
#[inline(always)]
fn entry(cube: &CubeRecord, place: [f32; 2]) -> Option<([f32; 3], usize)> {
    let p = origin(cube, place);
    let mut first: Option<(f32, usize)> = None;
    let mut last = f32::INFINITY;
    for a in 0..3 {
        let d = cube.direction[a];
        if d == 0.0 {
            if p[a].abs() >= 1.0 {
                return None;
            }
            continue;
        }
        let side = d.signum();
        let near = (-side - p[a]) / d;
        if first.is_none_or(|(latest, _)| near > latest) {
            first = Some((near, a));
        }
        last = last.min((side - p[a]) / d);
    }
    let (near, axis) = first.filter(|(near, _)| *near < last)?;
    let mut entry = [0, 1, 2].each(|a: usize| (p[a] + near * cube.direction[a]).clamp(-1.0, 1.0));
    entry[axis] = -cube.direction[axis].signum();
    Some((entry, axis))
}

/// A place of the lamp, in the cube's frame.
#[inline(always)]
fn origin(cube: &CubeRecord, [u, v]: [f32; 2]) -> [f32; 3] {
    let [corner, across, down] = cube.lamp;
    [0, 1, 2].each(|a: usize| corner[a] + across[a] * u + down[a] * v)
}

impl<M> CubeOptic<'_, M> {
    /// The velocity behind the face that light enters by.
    #[inline(always)]
    fn enter<N: Number>(&self, p: [N; 3], axis: usize) -> (State<N>, Passage<N>)
    where
        M: Medium<N>,
    {
        let d = self.cube.direction.each(N::lift);
        let n = self.index.bending(p).index;
        if !self.cube.refracts {
            let v = d.each(|d| n * d);
            return (State { p, v }, Passage::open(along(v, axis), n));
        }
        let outside = along(d, axis);
        // The tangential component is the same on both sides of the face.
        let inside = (n * n - (N::lift(1.0) - outside * outside)).sqrt();
        let v = with(d, axis, inside);
        (State { p, v }, Passage::refracted(inside, outside, n))
    }

    /// The direction behind the face that light leaves by; None where all of it is reflected.
    #[inline(always)]
    fn leave<N: Number>(&self, exit: &Exit<N>) -> Option<([N; 3], Passage<N>)> {
        let (v, axis, n) = (exit.state.v, exit.axis, exit.at.index);
        let inside = along(v, axis);
        if !self.cube.refracts {
            return Some((v, Passage::open(inside, n)));
        }
        let square = N::lift(1.0) - (dot(v, v) - inside * inside);
        if !square.above(0.0) || !inside.above(0.0) {
            return None;
        }
        let outside = square.sqrt();
        Some((with(v, axis, outside), Passage::refracted(inside, outside, n)))
    }

    #[inline(always)]
    fn trace<N: Number>(&self, screen: &ScreenRecord, film: &Film<'_>, p: [f32; 3], axis: usize) -> Option<CubeTrace<N>>
    where
        M: Medium<N>,
    {
        let (start, entered) = self.enter(p.each(N::lift), axis);
        let exit = march(&self.index, start, self.cube.step, self.cube.most_steps)?;
        let (direction, left) = self.leave(&exit)?;
        let landing = land(screen, film, exit.state.p, direction)?;
        Some(CubeTrace {
            axis,
            entered,
            exit,
            left,
            weight: entered.passed * left.passed * landing.pixels,
            landing,
        })
    }
}

impl<N: Number, M: Medium<N> + Sync> Optic<N> for CubeOptic<'_, M> {
    type Trace = CubeTrace<N>;

    #[inline(always)]
    fn follow(&self, screen: &ScreenRecord, film: &Film<'_>, place: [f32; 2]) -> Option<Arrival<N, CubeTrace<N>>> {
        let Some((p, axis)) = entry(self.cube, place) else {
            let [p, d] = [origin(self.cube, place), self.cube.direction].each(|v| v.each(N::lift));
            let landing = land(screen, film, p, d)?;
            return Some(Arrival {
                film: landing.film,
                weight: landing.pixels,
                trace: None,
            });
        };
        let trace = self.trace(screen, film, p, axis)?;
        Some(Arrival {
            film: trace.landing.film,
            weight: trace.weight,
            trace: Some(trace),
        })
    }

    #[inline(always)]
    fn send(
        &self,
        screen: &ScreenRecord,
        film: &Film<'_>,
        trace: &CubeTrace<N>,
        (by_film, by_weight): ([N; 2], N),
        mut send: impl FnMut(usize, &[N]),
    ) {
        let mut send = |first: usize, values: [N; 4]| send(first, &values);
        let by_log = by_weight * trace.weight;
        let [by_p, by_direction] = landing_adjoint(screen, film, &trace.landing, (by_film, by_log));
        let (by_v, by_index) = self.leave_adjoint(trace, by_direction, by_log);
        let (start, by_v) = reverse(
            &self.index,
            &trace.exit,
            self.cube.step,
            (by_p, by_v, by_index),
            &mut send,
        );
        let by_index = self.enter_adjoint(trace, &start, by_v, by_log);
        self.index.send(start.p, by_index, [N::lift(0.0); 3], &mut send);
    }

    fn reach(&self, _: [f32; 2]) -> Range<usize> {
        0..self.index.entries()
    }
}

impl<M> CubeOptic<'_, M> {
    /// From derivatives by the direction behind the cube and by the logarithm of the transmitted share to those by the velocity
    /// in it and by the index at the exit.
    #[inline(always)]
    fn leave_adjoint<N: Number>(&self, trace: &CubeTrace<N>, by_direction: [N; 3], by_log: N) -> ([N; 3], N) {
        if !self.cube.refracts {
            return (by_direction, N::lift(0.0));
        }
        let (exit, left) = (&trace.exit, &trace.left);
        let (v, axis) = (exit.state.v, exit.axis);
        let [by_inside, by_outside, by_index] = left.slopes().each(|s| s * by_log);
        let forward = |of: N| if v[axis].below(0.0) { -of } else { of };
        // outside² = 1 - (tangential component)².
        let by_outside = (by_outside + forward(by_direction[axis])) / left.outside;
        let mut by_v = [0, 1, 2].each(|a: usize| by_direction[a] - by_outside * v[a]);
        by_v[axis] = forward(by_inside);
        (by_v, by_index)
    }

    /// The derivative by the index where light enters.
    #[inline(always)]
    fn enter_adjoint<N: Number>(&self, trace: &CubeTrace<N>, start: &State<N>, by_v: [N; 3], by_log: N) -> N {
        if !self.cube.refracts {
            return dot(by_v, self.cube.direction.each(N::lift));
        }
        let (entered, axis) = (&trace.entered, trace.axis);
        let [by_inside, _, by_index] = entered.slopes().each(|s| s * by_log);
        let by_axis = if start.v[axis].below(0.0) {
            -by_v[axis]
        } else {
            by_v[axis]
        };
        // inside² = index² - (tangential component)².
        by_index + (by_inside + by_axis) * entered.index / entered.inside
    }
}
