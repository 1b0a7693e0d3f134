//! A path on its way through a world: what it has gathered, and the throughput that its next contribution is worth.
//!
//! The throughput leaves factors of zero out and counts them; the radiance that exactly one of them keeps from a path
//! is gathered beside. What an adjoint gathers has twice the digits of a number, because what is left of it is divided by
//! factors that may be small (docs/method.md, section 13).

use super::tracking::Extinction;
use super::vertex::{DirectionSample, Vertex};
use crate::resident::layout::NONE;
use crate::transport::mode::{GATHER, PRIMAL, REPLAY, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::{Sampler, along};
use crate::transport::scene::records::{Fields, SceneView};

/// Less than this of the light of a flight without end is none.
pub(super) const NEGLIGIBLE: f64 = 1e-30;

/// A factor of less size counts as zero: in f32 its own derivative could not be found by dividing by it, and what comes
/// through it is below the rounding of anything else. 2⁻³².
const FAINT: f32 = 2.328_306_4e-10;

/// Russian roulette never lets a path go on with a higher probability than this.
const MAX_SURVIVAL: f32 = 0.95;

/// How the direction was drawn in which a path goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lobe {
    /// From a density by solid angle: light that it meets could also have been drawn by next-event estimation.
    Continuous,
    /// One of finitely many directions (a camera ray, a mirror): nothing else could have drawn it.
    Discrete,
}

/// Whether a factor of the throughput is zero or as good as zero.
#[inline(always)]
pub(super) fn vanishes<N: Number>(factor: N) -> bool {
    factor.value().abs() < f64::from(FAINT)
}

/// A path on its way.
#[derive(Debug, Clone, Copy)]
pub struct PathState<N> {
    /// Gathered so far; in a replay still to come.
    pub radiance: Rgb<N>,
    /// In an adjoint's walks what the rounding of `radiance` has left out.
    radiance_low: Rgb<N>,
    /// The same for contributions of which exactly one factor is zero, with that factor left out.
    pub radiance_but_zero: Rgb<N>,
    /// Product of the factors so far, zeros left out, and how many of those there were.
    pub beta: Rgb<N>,
    pub zeros: [u32; 3],
    /// Throughput on the sampling side, where the fields have two.
    sampled_beta: [f32; 3],
    /// For each channel the density of the path, had that channel decided, over the density of the path as decided.
    ratio: [f32; 3],
    /// The channel that decides collisions.
    pub hero: u32,
    /// Edges so far.
    pub depth: u32,
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    pub medium: u32,
    /// How far the camera sees.
    pub(super) far: f32,
    /// Where the last scattering was, and how the direction was drawn that it took, with which density.
    pub(super) scattered_at: [f32; 3],
    pub(super) lobe: Lobe,
    pub(super) pdf: f32,
    /// Product of the relative indices of refraction of the boundaries on the way: radiance is scaled by its square,
    /// which roulette must not mistake for a loss.
    pub(super) eta: f32,
    /// Contributions so far.
    pub count: u32,
    /// Whether the path reached the background without a turn.
    pub straight: bool,
}

impl<N: Number> PathState<N> {
    /// A path that begins with a camera ray in `medium`.
    #[inline]
    pub fn new(scene: &SceneView, ray: &Ray, medium: u32, sampler: &mut Sampler) -> Self {
        let hero = Self::draw_hero(scene, sampler);
        Self::start(
            along(ray.origin, ray.direction, ray.near),
            ray.direction,
            ray.far - ray.near,
            medium,
            hero,
        )
    }

    /// Draws the channel that decides collisions.
    #[inline]
    pub(super) fn draw_hero(scene: &SceneView, sampler: &mut Sampler) -> u32 {
        if scene.settings.spectral == 1 {
            ((sampler.draw() * 3.0) as u32).min(2)
        } else {
            0
        }
    }

    #[inline]
    pub(super) fn start(origin: [f32; 3], direction: [f32; 3], far: f32, medium: u32, hero: u32) -> Self {
        Self {
            radiance: Rgb::zero(),
            radiance_low: Rgb::zero(),
            radiance_but_zero: Rgb::zero(),
            beta: Rgb::splat(N::lift(1.0)),
            zeros: [0; 3],
            sampled_beta: [1.0; 3],
            ratio: [1.0; 3],
            hero,
            depth: 0,
            origin,
            direction,
            medium,
            far,
            scattered_at: origin,
            lobe: Lobe::Discrete,
            pdf: 0.0,
            eta: 1.0,
            count: 0,
            straight: false,
        }
    }

    /// The same path, with nothing gathered yet.
    #[inline]
    pub(super) fn fresh(&self) -> Self {
        Self {
            radiance: Rgb::zero(),
            radiance_low: Rgb::zero(),
            radiance_but_zero: Rgb::zero(),
            ..*self
        }
    }

    /// Takes over what another path has gathered.
    #[inline]
    pub(super) fn expect(&mut self, gathered: &Self) {
        self.radiance = gathered.radiance;
        self.radiance_low = gathered.radiance_low;
        self.radiance_but_zero = gathered.radiance_but_zero;
    }

    /// Whether the path is in a medium, and in its box, where no surface is met.
    #[inline]
    pub(super) fn is_surface_free(&self, scene: &SceneView) -> bool {
        self.medium != NONE && {
            let medium = &scene.media[self.medium as usize];
            medium.clear == 1 && (0..3).all(|a| medium.low[a] <= self.origin[a] && self.origin[a] <= medium.high[a])
        }
    }

    /// One over the mean of the channels' densities.
    #[inline]
    pub fn norm(&self, scene: &SceneView) -> f32 {
        if scene.settings.spectral == 1 {
            3.0 / (self.ratio[0] + self.ratio[1] + self.ratio[2])
        } else {
            1.0
        }
    }

    /// Adds (a replay subtracts) throughput times `radiance`.
    #[inline]
    pub fn add<const MODE: u8>(&mut self, radiance: Rgb<N>) {
        self.count += 1;
        for c in 0..3 {
            let mut value = self.beta[c] * radiance[c];
            if MODE == REPLAY {
                value = -value;
            }
            match self.zeros[c] {
                0 if MODE == GATHER || MODE == REPLAY => {
                    let doubled = [self.radiance[c], self.radiance_low[c]];
                    [self.radiance[c], self.radiance_low[c]] = N::add_doubled(doubled, value);
                }
                0 => self.radiance[c] += value,
                1 if MODE != PRIMAL => self.radiance_but_zero[c] += value,
                _ => {}
            }
        }
    }

    /// Adds light that is scattered with a radiance of one, which ends the path.
    #[inline]
    pub(super) fn add_unit_radiance(&mut self, scene: &SceneView) -> bool {
        self.add::<UNIT_RADIANCE>(Rgb::splat(N::lift(self.norm(scene))));
        false
    }

    /// The channels of `x` that no factor of zero has reached; zero in the others.
    #[inline(always)]
    pub(super) fn alive(&self, x: Rgb<N>) -> Rgb<N> {
        Rgb([0, 1, 2].map(|c| if self.zeros[c] == 0 { x[c] } else { N::lift(0.0) }))
    }

    /// Multiplies the throughput; zeros are counted, not multiplied, unless they carry derivatives of their own.
    #[inline]
    pub(super) fn multiply<F: Fields<N>>(&mut self, factor: Rgb<N>) {
        for c in 0..3 {
            if vanishes(factor[c]) && !F::TRACKED {
                self.zeros[c] += 1;
            } else {
                self.beta[c] *= factor[c];
            }
        }
    }

    /// Multiplies what decisions look at; zeros are left out.
    #[inline]
    pub(super) fn multiply_sampled(&mut self, factor: [f32; 3]) {
        for c in 0..3 {
            self.sampled_beta[c] *= if vanishes(factor[c]) { 1.0 } else { factor[c] };
        }
    }

    /// The weight of a real collision that the channel `hero` decided, without the albedo.
    #[inline]
    pub fn multiply_real<F: Fields<N>>(&mut self, scene: &SceneView, sigma: &Extinction<N>, hero: f32) {
        let scale = 1.0 / hero;
        if scene.settings.spectral == 1 {
            let weight = sigma.sampled.map(|s| s * scale);
            for c in 0..3 {
                self.ratio[c] *= weight[c];
            }
            if F::TWO_SIDED {
                self.multiply_sampled(weight);
            }
        }
        if scene.settings.spectral == 1 || F::TWO_SIDED {
            self.multiply::<F>(sigma.integrand * scale);
        }
    }

    /// The weight of a null collision.
    #[inline]
    pub fn multiply_null<F: Fields<N>>(&mut self, scene: &SceneView, sigma: &Extinction<N>, hero: f32, mu: f32) {
        if scene.settings.spectral != 1 && !F::TWO_SIDED {
            return;
        }
        let scale = 1.0 / (mu - hero);
        if scene.settings.spectral == 1 {
            let weight = sigma.sampled.map(|s| (mu - s) * scale);
            for c in 0..3 {
                self.ratio[c] *= weight[c];
            }
            if F::TWO_SIDED {
                self.multiply_sampled(weight);
            }
        }
        self.multiply::<F>(sigma.integrand.map(|s| (N::lift(mu) - s) * N::lift(scale)));
    }

    /// Whether next to nothing is left of the channels that the medium extinguishes; these end.
    #[inline]
    pub fn fades(&mut self, sigma: &Extinction<N>) -> bool {
        let extinguished = sigma.sampled.map(|s| s > 0.0);
        if (0..3).any(|c| extinguished[c] && f64::from(self.ratio[c]) > NEGLIGIBLE) {
            return false;
        }
        for c in (0..3).filter(|&c| extinguished[c]) {
            self.ratio[c] = 0.0;
            self.zeros[c] += 2;
        }
        true
    }

    /// Whether no channel can carry anything any more.
    #[inline]
    pub(super) fn is_dark<const MODE: u8>(&self) -> bool {
        let dead = if MODE == PRIMAL { 1 } else { 2 };
        self.zeros[0] >= dead && self.zeros[1] >= dead && self.zeros[2] >= dead
    }

    /// Throughput that decisions look at, as it was before refraction concentrated or spread it.
    #[inline]
    pub(super) fn brightness<F: Fields<N>>(&self, scene: &SceneView) -> f32 {
        let norm = self.norm(scene);
        let mut most = 0.0f32;
        for c in 0..3 {
            let value = if F::TWO_SIDED {
                self.sampled_beta[c]
            } else {
                self.beta[c].value() as f32
            };
            most = most.max(value * norm);
        }
        most * (self.eta * self.eta)
    }

    /// Russian roulette from `rr_depth` on: false if the path ends.
    #[inline]
    pub(super) fn roulette<F: Fields<N>>(&mut self, scene: &SceneView, sampler: &mut Sampler) -> bool {
        if self.depth <= scene.settings.rr_depth {
            return true;
        }
        let survival = self.brightness::<F>(scene).min(MAX_SURVIVAL);
        if sampler.draw() >= survival {
            return false;
        }
        let scale = 1.0 / survival;
        self.beta = self.beta * scale;
        self.sampled_beta = self.sampled_beta.map(|x| x * scale);
        true
    }

    /// Turns the path at `vertex` into the direction that was drawn there.
    #[inline]
    pub(super) fn turn(&mut self, vertex: &Vertex, drawn: &DirectionSample<N>) {
        self.origin = vertex.p;
        self.scattered_at = vertex.q;
        self.direction = drawn.direction;
        self.lobe = drawn.lobe;
        self.pdf = drawn.pdf;
        self.eta *= drawn.eta;
        self.far = f32::INFINITY;
    }
}
