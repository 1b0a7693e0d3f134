//! Finite differences with the sampling frozen (docs/method.md, section 10).
//!
//! A ray's radiance is smooth in a parameter except where a sample's raw density or colour passes a kink of its
//! activation. A sample that a step could carry over a kink is differenced one-sidedly, away from the kink; a sample
//! exactly on a kink towards the side whose slope docs/method.md specifies; all others by central differences. By the
//! chain rule the derivative is the sum over these three groups. Each difference is extrapolated to step zero
//! (Richardson), so that steps can be large enough to keep rounding near 1e-12 of a ray's radiance.

use std::cell::Cell;

use rayon::prelude::*;

use super::fields::{Plain, Role};
use super::objective::{CastRay, FieldObjective};
use crate::each::EachEntry;
use crate::resident::layout::{SceneRecord, color, density};
use crate::transport::field::radiance_field::FieldView;
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::sh::Basis;

/// One entry of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub role: Role,
    pub texel: u32,
    pub channel: u32,
}

/// The side towards which a sample exactly on a kink is differenced; left and right are those of the entry's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KinkSide {
    /// The side whose slope docs/method.md specifies.
    Fixed,
    Left,
    Right,
}

/// The difference stencil of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stencils {
    Central = 1,
    Forward = 2,
    Backward = 4,
}

/// Flags of a ray: a sample lies exactly on a kink, or too near one for f32 to resolve the side.
const ON_KINK: u8 = 8;
const NEAR_KINK: u8 = 16;

/// Raw values within this distance of a kink, relative to 1 + |kink|, may be on its other side in f32.
const F32_BLUR: f64 = 2e-6;

/// A derivative by finite differences, one for each weighting of the rays.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub fixed: Vec<f64>,
    /// Left and right derivatives, if a sample lies exactly on a kink.
    pub sides: Option<[Vec<f64>; 2]>,
    /// Whether a sample may be on the other side of a kink in f32.
    pub blurred: bool,
}

/// The derivative from central differences of three steps, each half the one before: error terms in the second and the
/// fourth power of the step cancel.
pub(in crate::gradcheck) fn extrapolate([coarse, middle, fine]: [f64; 3]) -> f64 {
    let (first, second) = ((4.0 * middle - coarse) / 3.0, (4.0 * fine - middle) / 3.0);
    (16.0 * second - first) / 15.0
}

/// The largest step of an entry: 0.02 on the scale 1 / step length of densities under a ReLU, on the lesser of that and 1
/// under other activations, and on 1 for colours; 0.1 for emitters, in which radiance is linear.
pub fn default_step(scene: &SceneRecord, role: Role) -> f64 {
    match role {
        Role::Density if scene.density_activation == density::RELU => 0.02 / f64::from(scene.step_length),
        Role::Density => 0.02_f64.min(0.02 / f64::from(scene.step_length)),
        Role::Color => 0.02,
        Role::Emitter => 0.1,
    }
}

/// Kinks of the density's activation, each with the sign of the side whose slope is used there.
pub fn density_kinks(scene: &SceneRecord) -> &'static [(f64, f64)] {
    match scene.density_activation {
        density::RELU => &[(0.0, 1.0)],
        _ => &[],
    }
}

/// Kinks of the colour's activation, each with the sign of the side whose slope is used there.
pub fn color_kinks(scene: &SceneRecord) -> &'static [(f64, f64)] {
    match scene.color_activation {
        color::CLIP => &[(0.0, 1.0), (1.0, -1.0)],
        color::SIGMOID => &[],
        _ => &[(-0.5, 1.0)],
    }
}

/// Chooses the stencil of a sample of raw value `raw`, whose derivative by the entry is `slope`, for steps up to
/// `step`.
fn classify(kinks: &[(f64, f64)], raw: f64, slope: f64, step: f64, side: KinkSide) -> (Stencils, u8) {
    for &(kink, inside) in kinks {
        let distance = raw - kink;
        if distance.abs() > (slope * step).abs() {
            continue;
        }
        let (raw_direction, mut marks) = if distance == 0.0 {
            (inside, ON_KINK)
        } else {
            (distance.signum(), 0)
        };
        if distance != 0.0 && distance.abs() < F32_BLUR * (1.0 + kink.abs()) {
            marks |= NEAR_KINK;
        }
        let direction = match side {
            KinkSide::Left if distance == 0.0 => -1.0,
            KinkSide::Right if distance == 0.0 => 1.0,
            _ => raw_direction * slope.signum(),
        };
        return (
            if direction > 0.0 {
                Stencils::Forward
            } else {
                Stencils::Backward
            },
            marks,
        );
    }
    (Stencils::Central, 0)
}

/// A view of the parameters that adds `delta` to one entry for the samples of the group `moved`.
struct Perturbed<'a> {
    base: Plain<'a, f64>,
    entry: Entry,
    emitter: &'a [f64],
    delta: f64,
    step: f64,
    side: KinkSide,
    moved: Option<Stencils>,
    /// Groups and flags of samples since the last reset.
    met: Cell<u8>,
}

impl Perturbed<'_> {
    /// The raw value `raw`, changed if the lookup reaches the entry and the sample belongs to the moved group.
    fn shift(&self, kinks: &[(f64, f64)], raw: f64, at: &Stencil, basis: f64) -> f64 {
        // Clamped lookups at the border have the same texel at several corners.
        let corners = (0..8).filter(|&k| at.texels()[k] == self.entry.texel);
        let slope = corners.map(|k| f64::from(at.weights()[k])).sum::<f64>() * basis;
        if slope == 0.0 {
            return raw;
        }
        let (group, marks) = classify(kinks, raw, slope, self.step, self.side);
        self.met.set(self.met.get() | group as u8 | marks);
        if self.moved == Some(group) {
            raw + slope * self.delta
        } else {
            raw
        }
    }
}

impl FieldView<f64> for Perturbed<'_> {
    const TWO_SIDED: bool = true;
    type Bases = Basis;
    fn sigma_sampled(&self, at: &Stencil) -> f64 {
        self.base.sigma(at)
    }
    fn sigma(&self, at: &Stencil) -> f64 {
        let raw = self.base.sigma(at);
        match self.entry.role {
            Role::Density => self.shift(density_kinks(self.base.scene), raw, at, 1.0),
            _ => raw,
        }
    }
    fn bases(&self, basis: &Basis) -> Basis {
        *basis
    }
    fn color(&self, at: &Stencil, basis: &Basis) -> [f64; 3] {
        let mut raw = self.base.color(at, basis);
        if self.entry.role == Role::Color {
            let (coefficient, c) = (self.entry.channel as usize / 3, self.entry.channel as usize % 3);
            raw[c] = self.shift(color_kinks(self.base.scene), raw[c], at, f64::from(basis[coefficient]));
        }
        raw
    }
    fn occupancy(&self, _: u32) -> u32 {
        u32::MAX
    }
    fn emitter(&self) -> &[f64] {
        self.emitter
    }
}

/// Differences one entry over the rays that reach it.
struct Differencer<'a> {
    objective: &'a FieldObjective,
    entry: Entry,
    step: f64,
    side: KinkSide,
    /// Pairs of a step and the emitter with the entry changed by it; empty if the entry is not the emitter's.
    emitters: &'a [(f64, Vec<f64>)],
}

/// Number of steps of central and of one-sided differences, each half the one before.
const CENTRAL_LEVELS: usize = 3;
const ONE_SIDED_LEVELS: usize = 4;

/// The emitter with one entry changed by each step of the central differences.
fn moved_emitters(objective: &FieldObjective, entry: Entry, step: f64) -> Vec<(f64, Vec<f64>)> {
    if entry.role != Role::Emitter {
        return Vec::new();
    }
    (0..CENTRAL_LEVELS)
        .flat_map(|level| [1.0, -1.0].each(|sign| sign * step / f64::from(1 << level)))
        .map(|delta| {
            let mut emitter = objective.fields.emitter.clone();
            emitter[entry.texel as usize * 3 + entry.channel as usize] += delta;
            (delta, emitter)
        })
        .collect()
}

impl<'a> Differencer<'a> {
    fn view(&self, moved: Option<Stencils>, delta: f64) -> Perturbed<'a> {
        let emitter = match self.emitters.iter().find(|(d, _)| *d == delta) {
            Some((_, emitter)) => emitter,
            None => &self.objective.fields.emitter,
        };
        Perturbed {
            base: self.objective.view(),
            entry: self.entry,
            emitter,
            delta,
            step: self.step,
            side: self.side,
            moved,
            met: Cell::new(0),
        }
    }

    /// Differences of one group of samples at successively halved steps, extrapolated to step zero.
    fn extrapolated(&self, group: Stencils, cast: &CastRay, base: [f64; 3]) -> [f64; 3] {
        let radiance = |delta: f64| self.objective.gather(&self.view(Some(group), delta), cast).radiance;
        let (levels, ratio) = match group {
            Stencils::Central => (CENTRAL_LEVELS, 4.0),
            _ => (ONE_SIDED_LEVELS, 2.0),
        };
        let mut ladder: Vec<[f64; 3]> = (0..levels)
            .map(|level| {
                let h = self.step / f64::from(1 << level);
                let (above, below, width) = match group {
                    Stencils::Central => (radiance(h), radiance(-h), 2.0 * h),
                    Stencils::Forward => (radiance(h), base, h),
                    Stencils::Backward => (base, radiance(-h), h),
                };
                [0, 1, 2].each(|c| (above[c] - below[c]) / width)
            })
            .collect();
        let mut factor = ratio;
        for order in 1..levels {
            for i in (order..levels).rev() {
                ladder[i] = [0, 1, 2].each(|c| (factor * ladder[i][c] - ladder[i - 1][c]) / (factor - 1.0));
            }
            factor *= ratio;
        }
        ladder[levels - 1]
    }

    /// The derivative of one ray's radiance, and the flags of its samples.
    fn ray(&self, cast: &CastRay) -> ([f64; 3], u8) {
        let resting = self.view(None, 0.0);
        let base = self.objective.gather(&resting, cast).radiance;
        let mut met = resting.met.get();
        if self.entry.role == Role::Emitter {
            met |= Stencils::Central as u8;
        }
        let mut sum = [0.0; 3];
        for group in [Stencils::Central, Stencils::Forward, Stencils::Backward] {
            if met & group as u8 != 0 {
                let part = self.extrapolated(group, cast, base);
                sum = [0, 1, 2].each(|c| sum[c] + part[c]);
            }
        }
        (sum, met)
    }

    /// The derivatives of the objectives, and the union of the flags.
    fn sum(&self, rays: &[u32], seeds: &[u32]) -> (Vec<f64>, u8) {
        let objective = self.objective;
        let parts: Vec<([f64; 3], u8)> = rays
            .par_iter()
            .with_min_len(64)
            .map(|&ray| self.ray(&objective.casts[ray as usize]))
            .collect();
        let mut sums = vec![0.0; seeds.len()];
        let mut marks = 0;
        for (&ray, (derivative, met)) in rays.iter().zip(&parts) {
            let cast = &objective.casts[ray as usize];
            for (sum, &seed) in sums.iter_mut().zip(seeds) {
                *sum += super::objective::dot(objective.weight(seed, cast), *derivative);
            }
            marks |= met;
        }
        (sums, marks)
    }
}

/// The derivatives of the objectives with weights `seeds` by `entry`; `rays` are those whose samples it reaches.
pub fn difference(objective: &FieldObjective, entry: Entry, rays: &[u32], step: f64, seeds: &[u32]) -> Difference {
    let emitters = moved_emitters(objective, entry, step);
    let differencer = |side| Differencer {
        objective,
        entry,
        step,
        side,
        emitters: &emitters,
    };
    let (fixed, marks) = differencer(KinkSide::Fixed).sum(rays, seeds);
    let sides = (marks & ON_KINK != 0)
        .then(|| [KinkSide::Left, KinkSide::Right].map(|side| differencer(side).sum(rays, seeds).0));
    Difference {
        fixed,
        sides,
        blurred: marks & NEAR_KINK != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_near_a_kink_are_differenced_away_from_it() {
        let relu: &[(f64, f64)] = &[(0.0, 1.0)];
        let clip: &[(f64, f64)] = &[(0.0, 1.0), (1.0, -1.0)];
        let group = |kinks, raw, slope| classify(kinks, raw, slope, 0.1, KinkSide::Fixed).0;
        for (kinks, raw, slope, expected) in [
            (relu, 0.5, 1.0, Stencils::Central),
            (relu, -0.5, 1.0, Stencils::Central),
            (relu, 0.05, 1.0, Stencils::Forward),
            (relu, -0.05, 1.0, Stencils::Backward),
            (relu, 0.05, 0.1, Stencils::Central),
            (clip, 0.05, -1.0, Stencils::Backward),
            (clip, 0.95, 1.0, Stencils::Backward),
            (clip, 0.95, -1.0, Stencils::Forward),
            (clip, 1.05, 1.0, Stencils::Forward),
            (clip, 1.0, 1.0, Stencils::Backward),
            (clip, 0.0, 1.0, Stencils::Forward),
            (clip, 0.0, -1.0, Stencils::Backward),
        ] {
            assert_eq!(group(kinks, raw, slope), expected, "raw {raw}, slope {slope}");
        }
    }

    #[test]
    fn only_samples_exactly_on_a_kink_have_two_sides() {
        let relu: &[(f64, f64)] = &[(0.0, 1.0)];
        let marks = |raw| classify(relu, raw, 1.0, 0.1, KinkSide::Fixed).1;
        assert_eq!([marks(0.0), marks(1e-9), marks(0.01)], [ON_KINK, NEAR_KINK, 0]);
        let side = |side, raw| classify(relu, raw, -1.0, 0.1, side).0;
        assert_eq!(side(KinkSide::Left, 0.0), Stencils::Backward);
        assert_eq!(side(KinkSide::Right, 0.0), Stencils::Forward);
        assert_eq!(
            side(KinkSide::Right, 0.01),
            Stencils::Backward,
            "this one has but one side"
        );
    }
}
