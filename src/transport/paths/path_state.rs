//! The state of a path: radiance gathered so far, and the throughput of its next contribution.
//!
//! The throughput leaves factors of zero out and counts them; contributions with exactly one factor of zero are summed apart,
//! without that factor. An adjoint sums radiance with twice the digits of a number, because a replay divides the remainder by
//! factors that may be small (docs/method.md, section 13).

use super::tracking::Extinction;
use crate::each::EachEntry;
use crate::resident::layout::{NONE, surfaces_only};
use crate::transport::mode::{GATHER, PRIMAL, REPLAY, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::{Sampler, along};
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::records::{Fields, SceneView};

/// In an unbounded medium, the channels that it extinguishes end when the pdf ratios of all of them have fallen to this; a
/// reservoir is offered no more points of a ray when their transmittances have.
pub(super) const NEGLIGIBLE: f64 = 1e-30;

/// Factors of a smaller absolute value count as zero, 2⁻³²: the radiance still to come over such a factor has no correct
/// digit in f32, and 1/factor overflows for subnormal factors.
const FAINT: f32 = 2.328_306_4e-10;

/// Upper limit of the survival probability in Russian roulette.
const MAX_SURVIVAL: f32 = 0.95;

/// [`vanishes`] of a plain number.
#[inline(always)]
pub(super) fn is_faint(factor: f32) -> bool {
    factor.abs() < FAINT
}

/// Whether a factor of the throughput counts as zero.
#[inline(always)]
pub(super) fn vanishes<N: Number>(factor: N) -> bool {
    factor.value().abs() < f64::from(FAINT)
}

/// Radiance that a path has gathered so far; in a replay, radiance that is still to come.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<N> {
    pub radiance: Rgb<N>,
    /// Rounding error of `radiance`, in the walks of an adjoint: together they have twice the digits.
    radiance_low: Rgb<N>,
    /// The same for contributions of which exactly one factor is zero, with that factor left out.
    pub radiance_but_zero: Rgb<N>,
    /// Contributions so far.
    pub count: u32,
}

impl<N: Number> Gathered<N> {
    #[inline(always)]
    pub(super) fn nothing() -> Self {
        Self {
            radiance: Rgb::zero(),
            radiance_low: Rgb::zero(),
            radiance_but_zero: Rgb::zero(),
            count: 0,
        }
    }

    /// Begins a replay: all gathered radiance is still to come. Copied number by number, since a structure that holds arrays is
    /// copied in pieces through the stack, which stalls the processor.
    #[inline(always)]
    pub(super) fn set_still_to_come(&mut self, gathered: &Self) {
        for c in 0..3 {
            self.radiance[c] = gathered.radiance[c];
            self.radiance_low[c] = gathered.radiance_low[c];
            self.radiance_but_zero[c] = gathered.radiance_but_zero[c];
        }
        self.count = 0;
    }

    /// Sets everything to zero, number by number for the same reason.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        for c in 0..3 {
            self.radiance[c] = N::lift(0.0);
            self.radiance_low[c] = N::lift(0.0);
            self.radiance_but_zero[c] = N::lift(0.0);
        }
        self.count = 0;
    }

    /// Adds (a replay subtracts) `value`, a contribution without its factors of zero, of which there are `zeros` in each
    /// channel.
    #[inline(always)]
    pub(super) fn add<const MODE: u8>(&mut self, value: Rgb<N>, zeros: [u32; 3]) {
        self.count += 1;
        for c in 0..3 {
            let mut value = value[c];
            if MODE == REPLAY {
                value = -value;
            }
            match zeros[c] {
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
}

/// A path on its way.
#[derive(Debug, Clone, Copy)]
pub struct PathState<N> {
    pub gathered: Gathered<N>,
    /// Product of the throughput's nonzero factors, and the number of zero factors per channel.
    pub beta: Rgb<N>,
    pub zeros: [u32; 3],
    /// Throughput on the sampling side, if the fields have two.
    sampled_beta: [f32; 3],
    /// For each channel, the path's pdf if that channel decided collisions, over the pdf of the hero channel.
    ratio: [f32; 3],
    /// The hero: the channel that decides collisions.
    pub hero: u32,
    /// Segments so far.
    pub depth: u32,
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    pub medium: u32,
    /// The number of the sensor that it begins at.
    pub(super) sensor: u32,
    /// The end of the present segment's ray, at first the camera's far distance.
    pub(super) far: f32,
    /// Position of the last scattering, and the lobe and pdf with which the direction was sampled there.
    pub(super) scattered_at: [f32; 3],
    pub(super) lobe: Lobe,
    pub(super) pdf: f32,
    /// Product of the relative indices of refraction of the boundaries crossed. Radiance scales by its square, which
    /// is no loss of light and must not lower the survival probability of Russian roulette.
    pub(super) eta: f32,
    /// Whether the path reached the background without being scattered, or has no edges at all (`max_depth` 0).
    pub straight: bool,
}

impl<N: Number> PathState<N> {
    /// A path that starts with a camera ray in `medium`.
    #[inline]
    pub fn new(scene: &SceneView, ray: &Ray, medium: u32, sampler: &mut Sampler) -> Self {
        let hero = Self::draw_hero(scene, sampler);
        let begins = along(ray.origin, ray.direction, ray.near);
        Self {
            sensor: ray.sensor,
            straight: scene.settings.max_depth == 0,
            ..Self::start(begins, ray.direction, ray.far - ray.near, medium, hero)
        }
    }

    /// Draws the hero channel.
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
            gathered: Gathered::nothing(),
            beta: Rgb::splat(N::lift(1.0)),
            zeros: [0; 3],
            sampled_beta: [1.0; 3],
            ratio: [1.0; 3],
            hero,
            depth: 0,
            origin,
            direction,
            medium,
            sensor: NONE,
            far,
            scattered_at: origin,
            lobe: Lobe::Reflection,
            pdf: 0.0,
            eta: 1.0,
            straight: false,
        }
    }

    /// A copy that has gathered nothing.
    #[inline]
    pub(super) fn fresh(&self) -> Self {
        let count = self.gathered.count;
        Self {
            gathered: Gathered {
                count,
                ..Gathered::nothing()
            },
            ..*self
        }
    }

    /// Takes over the radiance that another path has gathered; the count of contributions stays.
    #[inline]
    pub(super) fn expect(&mut self, gathered: &Self) {
        let count = self.gathered.count;
        self.gathered = Gathered {
            count,
            ..gathered.gathered
        };
    }

    /// Whether the path is in the box of a medium, and no surface passes through that box.
    #[inline]
    pub(super) fn is_surface_free(&self, scene: &SceneView) -> bool {
        self.medium != NONE && {
            let medium = &scene.media[self.medium as usize];
            medium.clear == 1 && (0..3).all(|a| medium.low[a] <= self.origin[a] && self.origin[a] <= medium.high[a])
        }
    }

    /// Whether the path, which has flown out of its medium's box, meets no surface behind it but the medium's boundary.
    #[inline]
    pub(super) fn is_in_alone(&self, scene: &SceneView) -> bool {
        scene.media[self.medium as usize].alone == 1
    }

    /// The weight of one-sample MIS: one over the mean of the channels' pdf ratios.
    #[inline]
    pub fn norm(&self, scene: &SceneView) -> f32 {
        if scene.settings.spectral == 1 {
            3.0 / (self.ratio[0] + self.ratio[1] + self.ratio[2])
        } else {
            1.0
        }
    }

    /// Adds (a replay subtracts) throughput · `radiance`.
    #[inline]
    pub fn add<const MODE: u8>(&mut self, radiance: Rgb<N>) {
        self.gathered.add::<MODE>(self.beta * radiance, self.zeros);
    }

    /// Adds in-scattered radiance of one; the path ends there.
    #[inline]
    pub(super) fn add_unit_radiance(&mut self, scene: &SceneView) -> bool {
        self.add::<UNIT_RADIANCE>(Rgb::splat(N::lift(self.norm(scene))));
        false
    }

    /// `x` in the channels whose throughput has no factor of zero; zero in the others.
    #[inline(always)]
    pub(super) fn alive(&self, x: Rgb<N>) -> Rgb<N> {
        Rgb([0, 1, 2].each(|c| if self.zeros[c] == 0 { x[c] } else { N::lift(0.0) }))
    }

    /// Multiplies the throughput; factors of zero are counted instead, unless the number type tracks derivatives
    /// itself.
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

    /// Multiplies the throughput on the sampling side; zeros are left out.
    #[inline]
    pub(super) fn multiply_sampled(&mut self, factor: [f32; 3]) {
        for c in 0..3 {
            self.sampled_beta[c] *= if vanishes(factor[c]) { 1.0 } else { factor[c] };
        }
    }

    /// The weight of a real collision that the hero channel decided, without the albedo. `hero` is its extinction.
    ///
    /// Without spectral extinction and with one set of fields, all channels of the integrand are the hero's: the weight
    /// σ / hero is exactly one and is left out.
    #[inline]
    pub fn multiply_real<F: Fields<N>>(&mut self, scene: &SceneView, sigma: &Extinction<N>, hero: f32) {
        let scale = 1.0 / hero;
        if scene.settings.spectral == 1 {
            let weight = sigma.sampled.each(|s| s * scale);
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

    /// The weight of a null collision; `hero` is the hero channel's extinction, `mu` the majorant. It is exactly one, and
    /// left out, where that of [`Self::multiply_real`] is.
    #[inline]
    pub fn multiply_null<F: Fields<N>>(&mut self, scene: &SceneView, sigma: &Extinction<N>, hero: f32, mu: f32) {
        if scene.settings.spectral != 1 && !F::TWO_SIDED {
            return;
        }
        let scale = 1.0 / (mu - hero);
        if scene.settings.spectral == 1 {
            let weight = sigma.sampled.each(|s| (mu - s) * scale);
            for c in 0..3 {
                self.ratio[c] *= weight[c];
            }
            if F::TWO_SIDED {
                self.multiply_sampled(weight);
            }
        }
        self.multiply::<F>(sigma.integrand.map(|s| (N::lift(mu) - s) * N::lift(scale)));
    }

    /// Whether the channels that the medium extinguishes are negligible; if so, ends them.
    #[inline]
    pub fn fades(&mut self, sigma: &Extinction<N>) -> bool {
        let extinguished = sigma.sampled.each(|s| s > 0.0);
        if (0..3).any(|c| extinguished[c] && f64::from(self.ratio[c]) > NEGLIGIBLE) {
            return false;
        }
        for c in (0..3).filter(|&c| extinguished[c]) {
            self.ratio[c] = 0.0;
            self.zeros[c] += 2;
        }
        true
    }

    /// Whether all further contributions are zero in every channel.
    #[inline]
    pub(super) fn is_dark<const MODE: u8>(&self) -> bool {
        let dead = if MODE == PRIMAL { 1 } else { 2 };
        self.zeros[0] >= dead && self.zeros[1] >= dead && self.zeros[2] >= dead
    }

    /// The largest channel of the throughput on the sampling side, without the scale of refraction.
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

    /// The probability with which roulette lets a path of this brightness go on.
    #[inline(always)]
    pub(super) fn survival(brightness: f32) -> f32 {
        brightness.min(MAX_SURVIVAL)
    }

    /// Russian roulette from `rr_depth` on: false if the path ends.
    #[inline]
    pub(super) fn roulette<F: Fields<N>>(&mut self, scene: &SceneView, sampler: &mut Sampler) -> bool {
        if self.depth <= scene.settings.rr_depth {
            return true;
        }
        let survival = Self::survival(self.brightness::<F>(scene));
        if sampler.draw() >= survival {
            return false;
        }
        let scale = 1.0 / survival;
        self.beta = self.beta * scale;
        self.sampled_beta = self.sampled_beta.each(|x| x * scale);
        true
    }

    /// Whether next-event estimation could also have found what the path meets next, so that the two share it by MIS.
    #[inline(always)]
    pub(super) fn competes(&self, scene: &SceneView) -> bool {
        self.lobe == Lobe::Smooth && scene.settings.lights > 0
    }

    /// Whether a path that reaches the background has come straight from the camera, as alpha sees it: nothing that stood in its
    /// way counts. Only a path that was turned has a pdf above zero.
    #[inline]
    pub(super) fn is_straight(&self, scene: &SceneView) -> bool {
        self.depth == 0 || (scene.settings.surfaces_only == surfaces_only::CLEAR && self.pdf == 0.0)
    }

    /// Counts a surface that light passes straight through as an edge, behind which no shadow ray reaches. False if the
    /// path ends there.
    #[inline]
    pub(super) fn counts_null(&mut self, scene: &SceneView) -> bool {
        self.depth += 1;
        self.lobe = Lobe::Reflection;
        self.depth < scene.settings.max_depth
    }

    /// Turns the path at `q` into a direction that was sampled with this pdf; `p` is the origin of rays that leave `q`.
    #[inline]
    pub(super) fn turn(&mut self, q: [f32; 3], p: [f32; 3], direction: [f32; 3], lobe: Lobe, pdf: f32) {
        self.origin = p;
        self.scattered_at = q;
        self.direction = direction;
        self.lobe = lobe;
        self.pdf = pdf;
        self.far = f32::INFINITY;
    }

    /// Lets the path go straight on through the surface at distance `t`, from `p` on its other side.
    #[inline]
    pub(super) fn pass(&mut self, t: f32, p: [f32; 3]) {
        self.origin = p;
        self.far -= t;
    }
}
