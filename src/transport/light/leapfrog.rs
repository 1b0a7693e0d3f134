//! Light in a cube [-1, 1]³ of varying index, by the leapfrog: d²x/dt² = n∇n with |dx/dt| = n (NimierDavid2019, equation 3).
//! A step is half a kick, a drift and half a kick at the new place; the same operations in reverse order undo it, so
//! that the adjoint needs no step of a path but the last.

use super::index::{Bending, Medium};
use super::landing::dot;
use crate::each::EachEntry;
use crate::transport::number::Number;

/// A place in the cube and the velocity there, whose length is the index as far as steps are exact.
#[derive(Debug, Clone, Copy)]
pub struct State<N> {
    pub p: [N; 3],
    pub v: [N; 3],
}

/// Where a path leaves the cube.
#[derive(Debug, Clone, Copy)]
pub struct Exit<N> {
    pub state: State<N>,
    /// The index there, and its slope.
    pub at: Bending<N>,
    /// Axis of the face.
    pub axis: usize,
    /// Steps before the last.
    pub steps: u32,
    /// Length of the last step, which ends at the face.
    pub last: N,
}

#[inline(always)]
fn advance<N: Number>(p: [N; 3], v: [N; 3], by: N) -> [N; 3] {
    [0, 1, 2].each(|a: usize| p[a] + by * v[a])
}

/// The time at which one of the faces is met in a step, and its axis; None if the step ends before.
#[inline(always)]
fn meeting<N: Number>(from: &State<N>, force: [N; 3], end: [N; 3]) -> Option<(N, usize)> {
    let mut first: Option<(N, usize)> = None;
    for a in 0..3 {
        let face = match end[a].value() {
            x if x > 1.0 => 1.0,
            x if x < -1.0 => -1.0,
            _ => continue,
        };
        // p + t v + t²/2 force = face, by the root that stays finite where there is no force.
        let away = N::lift(face) - from.p[a];
        let square = from.v[a] * from.v[a] + N::lift(2.0) * force[a] * away;
        let root = if square.above(0.0) { square.sqrt() } else { N::lift(0.0) };
        let root = if face > 0.0 { root } else { -root };
        let t = N::lift(2.0) * away / (from.v[a] + root);
        if first.is_none_or(|(earliest, _)| t.value() < earliest.value()) {
            first = Some((t, a));
        }
    }
    first
}

/// Follows light from a place on a face to where it leaves the cube, in steps of this length; None if it does not within `most`
/// steps.
#[inline(always)]
pub fn march<N: Number>(medium: &impl Medium<N>, start: State<N>, step: f32, most: u32) -> Option<Exit<N>> {
    let whole = N::lift(step);
    let half = N::lift(0.5 * step);
    let mut state = start;
    let mut force = medium.bending(state.p).force;
    for steps in 0..most {
        let between = advance(state.v, force, half);
        let p = advance(state.p, between, whole);
        if let Some((last, axis)) = meeting(&state, force, p) {
            let half = N::lift(0.5) * last;
            let between = advance(state.v, force, half);
            let p = advance(state.p, between, last);
            let at = medium.bending(p);
            let v = advance(between, at.force, half);
            return Some(Exit {
                state: State { p, v },
                at,
                axis,
                steps,
                last,
            });
        }
        force = medium.bending(p).force;
        state = State {
            p,
            v: advance(between, force, half),
        };
    }
    None
}

/// Takes a path back from where it left to where it began, and sends the derivatives by the coefficients on the way: `by` are
/// those by the place, the velocity and the index at the exit. Returns the first state with the derivatives by its velocity.
#[inline(always)]
pub fn reverse<N: Number>(
    medium: &impl Medium<N>,
    exit: &Exit<N>,
    step: f32,
    by: ([N; 3], [N; 3], N),
    send: &mut impl FnMut(usize, [N; 4]),
) -> (State<N>, [N; 3]) {
    let (mut by_p, mut by_v, by_index) = by;
    let State { mut p, v } = exit.state;
    let half_last = N::lift(0.5) * exit.last;
    // The last kick, at the face, where the result depends on the index itself as well.
    let (at, turned) = medium.bending_along(p, by_v);
    kick(medium, p, &at, (half_last, by_v), by_index, send);
    by_p = advance(advance(by_p, turned, half_last), at.slope, by_index);
    // The velocity between two kicks.
    let mut between = advance(v, at.force, -half_last);
    p = advance(p, between, -exit.last);
    // The last step is as long as the way to the face, which does not move: what would push its end off the face changes the
    // step's length instead.
    let force = medium.bending(p).force;
    let speed = advance(between, force, half_last);
    let by_length = dot(by_p, speed) + N::lift(0.5) * (dot(by_v, at.force) + dot(by_v, force));
    by_p[exit.axis] -= by_length / speed[exit.axis];
    by_v = advance(by_v, by_p, exit.last);
    // The half kicks of two neighbouring steps at one point are combined.
    let (whole, half) = (N::lift(step), N::lift(0.5 * step));
    let mut length = half_last;
    for _ in 0..exit.steps {
        let (at, turned) = medium.bending_along(p, by_v);
        let both = length + half;
        kick(medium, p, &at, (both, by_v), N::lift(0.0), send);
        by_p = advance(by_p, turned, both);
        between = advance(between, at.force, -both);
        p = advance(p, between, -whole);
        by_v = advance(by_v, by_p, whole);
        length = half;
    }
    let at = medium.bending(p);
    kick(medium, p, &at, (length, by_v), N::lift(0.0), send);
    let v = advance(between, at.force, -length);
    (State { p, v }, by_v)
}

/// Sends the derivatives of `by_v` · n∇n times the kick's length, and of the index times `by_index`, to the coefficients.
#[inline(always)]
fn kick<N: Number>(
    medium: &impl Medium<N>,
    p: [N; 3],
    at: &Bending<N>,
    (length, by_v): (N, [N; 3]),
    by_index: N,
    send: &mut impl FnMut(usize, [N; 4]),
) {
    let along = length * dot(by_v, at.slope) + by_index;
    let scale = length * at.index;
    medium.send(p, along, by_v.each(|b| scale * b), send);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::light::index::{Index, pad};
    use crate::transport::rays::random::test_uniform;

    /// An index that depends on the distance r from the centre alone: a function of r² that returns its value and its slope
    /// over r.
    struct Radial(fn(f64) -> [f64; 2]);

    impl Medium<f64> for Radial {
        fn entries(&self) -> usize {
            0
        }

        fn bending(&self, p: [f64; 3]) -> Bending<f64> {
            let [index, slope] = (self.0)(dot(p, p));
            let slope = p.map(|x| slope * x);
            Bending {
                index,
                slope,
                force: slope.map(|s| index * s),
            }
        }

        fn bending_along(&self, _: [f64; 3], _: [f64; 3]) -> (Bending<f64>, [f64; 3]) {
            unreachable!("only followed forwards")
        }

        fn send(&self, _: [f64; 3], _: f64, _: [f64; 3], _: &mut impl FnMut(usize, [f64; 4])) {
            unreachable!("only followed forwards")
        }
    }

    const LUNEBURG: Radial = Radial(|square| {
        let n = (2.0 - square).sqrt();
        [n, -1.0 / n]
    });

    const FISH_EYE: Radial = Radial(|square| {
        let n = 2.0 / (1.0 + square);
        [n, -n * n]
    });

    /// How far from the middle of the face z = 1 light leaves that begins with velocity `v` at `p`.
    fn miss(medium: &Radial, p: [f64; 3], v: [f64; 3], step: f32) -> f64 {
        let exit = march(medium, State { p, v }, step, 10_000).expect("it leaves the cube");
        assert_eq!(exit.axis, 2);
        assert!((exit.state.p[2] - 1.0).abs() < 1e-12);
        exit.state.p[0].hypot(exit.state.p[1])
    }

    fn luneburg(height: f64, step: f32) -> f64 {
        let [x, y] = [0.8 * height, 0.6 * height];
        miss(
            &LUNEBURG,
            [x, y, -(1.0 - height * height).sqrt()],
            [0.0, 0.0, 1.0],
            step,
        )
    }

    /// Parallel rays meet behind Luneburg's lens, and errors fall with the square of the step.
    #[test]
    fn a_luneburg_lens_collects_parallel_rays() {
        for height in [0.1, 0.3, 0.6, 0.9] {
            assert!(luneburg(height, 1.0 / 64.0) < 1e-3);
            let errors = [32.0, 64.0, 128.0].map(|n: f32| luneburg(height, n.recip()));
            for pair in errors.windows(2) {
                let ratio = pair[0] / pair[1];
                assert!((ratio - 4.0).abs() < 0.3, "{height}: {errors:?}");
            }
        }
    }

    /// Within Luneburg's lens x(t) = x₀ cos t + v₀ sin t.
    #[test]
    fn light_in_a_luneburg_lens_runs_along_ellipses() {
        let (p, v) = ([0.3, -0.2, -0.5], [0.2f64, 0.5, 1.1]);
        let step = 1.0 / 512.0;
        // |v| = n at the start.
        let scale = ((2.0 - dot(p, p)) / dot(v, v)).sqrt();
        let v = v.map(|x| scale * x);
        let exit = march(&LUNEBURG, State { p, v }, step, 10_000).expect("it leaves the cube");
        let t = f64::from(exit.steps) * f64::from(step) + exit.last;
        for a in 0..3 {
            let exact = p[a] * t.cos() + v[a] * t.sin();
            assert!((exit.state.p[a] - exact).abs() < 1e-5, "{:?} {exact}", exit.state.p);
        }
    }

    /// Maxwell's fish-eye images each place of its sphere onto the opposite one.
    #[test]
    fn a_fish_eye_images_a_place_onto_its_antipode() {
        for angle in [0.2f64, 0.5, 0.9] {
            let v = [angle.sin(), 0.0, angle.cos()];
            let errors = [64.0, 128.0].map(|n: f32| miss(&FISH_EYE, [0.0, 0.0, -1.0], v, n.recip()));
            assert!(errors[0] < 1e-3, "{errors:?}");
            assert!((errors[0] / errors[1] - 4.0).abs() < 0.3, "{errors:?}");
        }
    }

    /// The steps taken back end where they began.
    #[test]
    fn steps_are_undone() {
        let size = [8; 3];
        let random = |i| 1.3 + 0.3 * f64::from(test_uniform(9, i, 0)[0]);
        let values = pad(&(0..512).map(random).collect::<Vec<_>>(), size);
        let index = Index { values: &values, size };
        for i in 0..100 {
            let [a, b, c, d] = test_uniform(10, i, 0).map(|u| 1.6 * f64::from(u) - 0.8);
            let p = [a, b, -1.0];
            let n = index.bending(p).index;
            let v = [0.4 * c, 0.4 * d, (n * n - 0.16 * (c * c + d * d)).sqrt()];
            let exit = march(&index, State { p, v }, 1.0 / 64.0, 1000).expect("it leaves the cube");
            let by = ([0.3, -0.2, 0.7], [0.1, 0.5, -0.4], 0.2);
            let (found, _) = reverse(&index, &exit, 1.0 / 64.0, by, &mut |_, _| {});
            for a in 0..3 {
                assert!((found.p[a] - p[a]).abs() < 1e-12, "{:?} {p:?}", found.p);
                assert!((found.v[a] - v[a]).abs() < 1e-12, "{:?} {v:?}", found.v);
            }
        }
    }
}
