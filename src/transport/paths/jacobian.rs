//! Attached path replay as Vicini2021 (section 4.2, listing 3) has it, by Jacobians of rays (docs/method.md, section 24): the
//! first walk finds the derivative by the first ray that can move, and the replay carries it from ray to ray by inverted
//! Jacobians. Paths may have any length; Jacobians that have no inverse are regularised by random terms whose mean is zero.

use super::chain::{Link, meeting_adjoint, steep};
use super::path_state::vanishes;
use super::radiative::Incident;
use super::replay_cache::ReplayCache;
use super::volpath::Walk;
use crate::each::{EachEntry, each_index};
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, dot, frame};
use crate::transport::scene::bsdf::BsdfSample;
use crate::transport::scene::bsdf::local::{Lobe, add_scaled, inner, lift, outer};
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::motion::{by_moving_over, minus, plus, scaled};
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};
use crate::transport::scene::shape::Hit;

/// A derivative by the four coordinates of a ray: the place of its origin on the surface, in units of the segment that
/// led there, and its direction.
type ByRay<N> = [N; 4];

/// A pivot below this share of a Jacobian's largest entry counts as zero.
const SINGULAR: f64 = 1e-12;

/// The state of one path's rays and their Jacobians, for both walks of an adjoint.
#[derive(Debug, Clone)]
pub(super) struct RayJacobian<N> {
    /// What is added to a Jacobian's diagonal, with either sign (Vicini2021, section 4.2: λ).
    regularization: f32,
    /// Draws the random signs, the same in both walks: `first_signs` is its state at the start.
    signs: Sampler,
    first_signs: Sampler,
    is_replay: bool,
    /// The present ray; none before the first vertex.
    ray: Option<LocalRay<N>>,
    /// In the first walk, the Jacobian of the present ray by the first one, a row for each coordinate.
    since_first: [ByRay<N>; 4],
    /// In the first walk, the derivatives of the logarithm of the throughput by the first ray, for each channel.
    by_throughput: [ByRay<N>; 3],
    /// In the first walk, the derivative by the first ray of the loss through all contributions so far; in the replay, that by
    /// the present ray through the contributions still to come.
    by_ray: ByRay<N>,
    /// Whether all Jacobians so far had an inverse: behind a singular one the derivatives are unknown.
    is_regular: bool,
}

/// A ray that leaves a vertex, and the axes of its coordinates.
#[derive(Debug, Clone, Copy)]
struct LocalRay<N> {
    p: [f32; 3],
    direction: [f32; 3],
    /// Two axes along the surface, and their unit of length.
    along: [[N; 3]; 2],
    unit: f32,
    /// Two axes perpendicular to the direction.
    across: [[N; 3]; 2],
}

/// Two unit axes perpendicular to a direction and to each other, to the number's precision: derivatives lose every component
/// outside of their span.
fn axes<N: Number>(direction: [f32; 3]) -> [[N; 3]; 2] {
    let unit = |v: [N; 3]| scaled(v, inner(v, v).sqrt().recip());
    let n = unit(lift(direction));
    let (s, _) = frame(direction);
    let s = lift::<N>(s);
    let s = unit(add_scaled(s, n, -inner(n, s)));
    [s, outer(n, s)]
}

impl<N: Number> LocalRay<N> {
    /// The ray that leaves a vertex, to which a segment of this length has led.
    fn new(at: &Interaction, direction: [f32; 3], unit: f32) -> Self {
        Self {
            p: at.hit.point.p,
            direction,
            along: axes(at.hit.normal),
            unit,
            across: axes(direction),
        }
    }

    /// The derivative by this ray, from those by the point at which it meets a surface of normal `n`, at `p`, and by its
    /// direction.
    fn meeting(&self, n: [f32; 3], p: [f32; 3], by_point: [N; 3], by_direction: [N; 3]) -> ByRay<N> {
        let by_origin = meeting_adjoint(n, steep(n, self.direction), by_point);
        let length = N::lift(dot(minus(p, self.p), self.direction));
        self.coordinates(by_origin, add_scaled(by_direction, by_origin, length))
    }

    /// The derivative by this ray, from those by its origin and its direction.
    fn coordinates(&self, by_origin: [N; 3], by_direction: [N; 3]) -> ByRay<N> {
        let [s, t] = self.along.each(|axis| inner(axis, by_origin) * N::lift(self.unit));
        let [u, v] = self.across.each(|axis| inner(axis, by_direction));
        [s, t, u, v]
    }

    /// The derivative by the direction, from that by the coordinates.
    fn by_direction(&self, by_ray: ByRay<N>) -> [N; 3] {
        let [u, v] = self.across;
        plus(scaled(u, by_ray[2]), scaled(v, by_ray[3]))
    }
}

impl<N: Number> RayJacobian<N> {
    /// For the first walk of a path; `signs` is a stream of random numbers of the adjoint's own.
    fn new(regularization: f32, signs: Sampler) -> Self {
        let zero = N::lift(0.0);
        let one = |i: usize| each_index(|j: usize| N::lift(if i == j { 1.0 } else { 0.0 }));
        Self {
            regularization,
            signs,
            first_signs: signs,
            is_replay: false,
            ray: None,
            since_first: each_index(one),
            by_throughput: [[zero; 4]; 3],
            by_ray: [zero; 4],
            is_regular: true,
        }
    }

    /// Begins the replay of the path that the first walk has followed.
    fn replay(&mut self) {
        self.is_replay = true;
        self.ray = None;
        self.signs = self.first_signs;
    }

    /// Whether there is a ray that can move.
    pub(super) fn has_ray(&self) -> bool {
        self.ray.is_some()
    }

    /// Adds a contribution's derivatives: in `end` that by the point at which the present ray meets a surface, if it does, and
    /// that by the ray's direction.
    pub(super) fn arrive(&mut self, end: Option<(&Hit, [N; 3])>, by_direction: [N; 3]) {
        let Some(ray) = &self.ray else { return };
        let by_ray = match end {
            Some((hit, by_point)) => ray.meeting(hit.normal, hit.point.p, by_point, by_direction),
            None => ray.coordinates([N::lift(0.0); 3], by_direction),
        };
        self.take(by_ray);
    }

    /// In the first walk, adds a derivative by the present ray to that by the first one; in a replay, subtracts it from what is
    /// still to come.
    fn take(&mut self, by_ray: ByRay<N>) {
        if self.is_replay {
            self.by_ray = each_index(|j| self.by_ray[j] - by_ray[j]);
        } else {
            let by_first = transposed_times(&self.since_first, by_ray);
            self.by_ray = each_index(|j| self.by_ray[j] + by_first[j]);
        }
    }

    /// In the first walk, adds the derivative of a contribution through the throughput; `d` is that by the contribution's
    /// logarithm.
    fn carry(&mut self, d: Rgb<N>) {
        for (c, by_throughput) in self.by_throughput.iter().enumerate() {
            self.by_ray = each_index(|j| self.by_ray[j] + d[c] * by_throughput[j]);
        }
    }

    /// The Jacobian of the ray `next` by the present one, which are joined by this vertex, regularised.
    fn jacobian<F: Fields<N>>(
        &mut self,
        scene: &SceneView,
        fields: &F,
        link: &Link<N>,
        before: &LocalRay<N>,
        next: &LocalRay<N>,
    ) -> [ByRay<N>; 4] {
        let (zero, one) = (N::lift(0.0), N::lift(1.0));
        let unit = N::lift(1.0 / next.unit);
        let sign = if self.signs.draw() < 0.5 { -1.0 } else { 1.0 };
        each_index(|i: usize| {
            // The i-th coordinate of the next ray, as a derivative by its origin and its direction.
            let by_next = each_index(|j: usize| if i == j { one } else { zero });
            let [s, t] = next.along;
            let by_place = scaled(plus(scaled(s, by_next[0]), scaled(t, by_next[1])), unit);
            let (by, by_incoming) = link.turn_back(scene, fields, next.by_direction(by_next), &mut NoSink);
            let hit = &link.at.hit;
            let by_point = plus(by_place, by_moving_over(scene, hit, &by));
            let mut row = before.meeting(hit.normal, hit.point.p, by_point, by_incoming);
            row[i] += N::lift(sign * self.regularization);
            row
        })
    }
}

/// The transpose of a matrix of rows, times a vector.
fn transposed_times<N: Number>(rows: &[ByRay<N>; 4], v: ByRay<N>) -> ByRay<N> {
    each_index(|j| rows[0][j] * v[0] + rows[1][j] * v[1] + rows[2][j] * v[2] + rows[3][j] * v[3])
}

/// Solves Aᵀ x = `y`, A being the matrix of these rows, by Gaussian elimination with partial pivoting. None where A is
/// singular.
fn solve_transposed<N: Number>(rows: &[ByRay<N>; 4], y: ByRay<N>) -> Option<ByRay<N>> {
    let mut a: [[N; 5]; 4] = each_index(|i: usize| each_index(|j: usize| if j < 4 { rows[j][i] } else { y[i] }));
    let mut largest = 0.0f64;
    for row in rows {
        for x in row {
            largest = largest.max(x.value().abs());
        }
    }
    for k in 0..4 {
        let size = |row: &[N; 5]| row[k].value().abs();
        let pivot = (k..4).max_by(|&i, &j| size(&a[i]).total_cmp(&size(&a[j])))?;
        a.swap(k, pivot);
        let least = SINGULAR * largest;
        if size(&a[k]) <= least || size(&a[k]).is_nan() {
            return None;
        }
        let first = a[k];
        for row in a.iter_mut().skip(k + 1) {
            let share = row[k] / first[k];
            for j in k..5 {
                row[j] -= share * first[j];
            }
        }
    }
    let mut x = [N::lift(0.0); 4];
    for k in (0..4).rev() {
        let mut rest = a[k][4];
        for j in k + 1..4 {
            rest -= a[k][j] * x[j];
        }
        x[k] = rest / a[k][k];
    }
    Some(x)
}

impl<N: Number> ReplayCache<N> {
    /// Prepares the first walk of a path whose replay propagates derivatives by inverted Jacobians, if the scene asks for it.
    #[inline]
    pub(super) fn begin_rays(&mut self, scene: &SceneView, signs: Sampler) {
        self.rays = scene
            .inverted
            .map(|regularization| Box::new(RayJacobian::new(regularization, signs)));
    }

    /// Prepares the replay.
    #[inline]
    pub(super) fn replay_rays(&mut self) {
        if let Some(rays) = &mut self.rays {
            rays.replay();
        }
    }
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// The path's [`RayJacobian`], if derivatives are propagated by inverted Jacobians.
    #[inline]
    pub(super) fn rays(&mut self) -> Option<&mut RayJacobian<N>> {
        self.adjoint.cache.as_mut()?.rays.as_deref_mut()
    }

    /// [`RayJacobian::carry`], in a first walk.
    #[inline]
    pub(super) fn carry_to_rays<const MODE: u8>(&mut self, d: Rgb<N>) {
        let d = self.path.alive(d);
        if MODE == GATHER
            && let Some(rays) = self.rays()
        {
            rays.carry(d);
        }
    }

    /// Goes on to the ray that leaves a vertex of this weight. In a replay, `d` are the derivatives by the weight, and those by
    /// what turns the path at the vertex are sent.
    #[inline(never)]
    pub(super) fn turn_ray<const MODE: u8>(&mut self, at: &Interaction, drawn: &BsdfSample, weight: Rgb<N>, d: Rgb<N>) {
        let (scene, fields) = (self.scene, self.fields);
        let Some(mut rays) = self.adjoint.cache.as_mut().and_then(|cache| cache.rays.take()) else {
            return;
        };
        let mut link = Link::new(scene, at, drawn);
        let before = rays.ray;
        let length = before.map_or(1.0, |ray| dot(minus(at.hit.point.p, ray.p), ray.direction));
        let next = LocalRay::new(at, drawn.direction, length);
        let jacobian = |rays: &mut RayJacobian<N>, link: &Link<N>| {
            before.map(|before| rays.jacobian(scene, fields, link, &before, &next))
        };
        if MODE == REPLAY {
            // First the derivative through the weight, then that through the ray.
            link.weigh(scene, fields, weight, d);
            let by_weight = link.by_weight(scene, fields, before.as_ref(), &mut self.adjoint.sink);
            link.forget_weight();
            rays.take(by_weight);
            if let Some(jacobian) = jacobian(&mut rays, &link) {
                match solve_transposed(&jacobian, rays.by_ray) {
                    Some(by_next) => rays.by_ray = by_next,
                    None => rays.is_regular = false,
                }
            }
            if !rays.is_regular {
                rays.by_ray = [N::lift(0.0); 4];
            }
            link.turn_back(scene, fields, next.by_direction(rays.by_ray), &mut self.adjoint.sink);
        } else {
            for c in 0..3 {
                if before.is_none() || vanishes(weight[c]) {
                    continue;
                }
                let mut of_channel = Rgb::zero();
                of_channel[c] = weight[c].recip();
                link.weigh(scene, fields, weight, of_channel);
                let by_weight = link.by_weight(scene, fields, before.as_ref(), &mut NoSink);
                let by_first = transposed_times(&rays.since_first, by_weight);
                rays.by_throughput[c] = each_index(|j| rays.by_throughput[c][j] + by_first[j]);
            }
            link.forget_weight();
            if let Some(jacobian) = jacobian(&mut rays, &link) {
                let since = rays.since_first;
                rays.since_first = jacobian.each(|row| transposed_times(&since, row));
            }
        }
        rays.ray = Some(next);
        if let Some(cache) = &mut self.adjoint.cache {
            cache.rays = Some(rays);
        }
    }
}

impl<N: Number> Link<N> {
    /// The derivative by the ray that leads here, through the weight alone; those by the texels of a normal map are sent. Zero
    /// without a ray.
    fn by_weight<F: Fields<N>, S: Sink<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        before: Option<&LocalRay<N>>,
        sink: &mut S,
    ) -> ByRay<N> {
        let zero = [N::lift(0.0); 3];
        let (by, by_incoming) = match self.lobe {
            Lobe::Smooth => (self.by_picture(scene, fields), zero),
            _ => self.turn_back(scene, fields, zero, sink),
        };
        let hit = &self.at.hit;
        let by_place = by_moving_over(scene, hit, &by);
        before.map_or([N::lift(0.0); 4], |ray| {
            ray.meeting(hit.normal, hit.point.p, by_place, by_incoming)
        })
    }
}
