//! Phase functions: pdfs of the directions into which a medium scatters.
//!
//! All depend on the cosine between the propagation directions before and after scattering. A blend's weight is looked
//! up at the point of scattering.

use super::records::{Fields, SceneView, Sink};
use crate::resident::layout::{PhaseRecord, phase};
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::number::Number;
use crate::transport::rays::sampler::{Sampler, around, dot};

const INV_FOUR_PI: f32 = 0.25 * std::f32::consts::FRAC_1_PI;

/// Blends can be nested to this depth.
pub const MAX_NESTING: usize = 4;

/// Henyey–Greenstein (Henyey1941); forward scattering for g > 0.
#[inline]
pub fn hg_eval<N: Number>(g: N, cosine: f32) -> N {
    let d = N::lift(1.0) + g * g - N::lift(2.0 * cosine) * g;
    // d^(-3/2) through exp and ln: [`Number`] has no power.
    let power = ((d - N::lift(1.0)).ln_1p() * N::lift(-1.5)).exp();
    (N::lift(1.0) - g * g) * power * N::lift(INV_FOUR_PI)
}

/// The derivative of ln [`hg_eval`] by g.
#[inline]
pub fn hg_log_slope<N: Number>(g: N, cosine: f32) -> N {
    let d = N::lift(1.0) + g * g - N::lift(2.0 * cosine) * g;
    N::lift(-2.0) * g * (N::lift(1.0) - g * g).recip() + N::lift(3.0) * (N::lift(cosine) - g) * d.recip()
}

/// Samples a cosine with the pdf of [`hg_eval`].
#[inline]
pub fn hg_sample(g: f32, u: f32) -> f32 {
    // The textbook formula (1 + g² - s²) / 2g with s = (1 - g²) / (1 + g x), with g divided out: that one cancels near
    // g = 0.
    let x = 2.0 * u - 1.0;
    let denominator = 1.0 - g + 2.0 * g * u;
    let bent = g * (1.0 - u) * u * (3.0 + 2.0 * g * x - g * g) / (denominator * denominator);
    (x + 2.0 * bent).clamp(-1.0, 1.0)
}

/// Samples a cosine with pdf 3/8 (1 + c²): the real root of c³ + 3 c = 4 (2u - 1), by Cardano's formula.
#[inline]
pub fn rayleigh_sample(u: f32) -> f32 {
    let z = 2.0 * (2.0 * u - 1.0);
    let root = (z * z + 1.0).sqrt();
    // z - root cancels for large z; (z - root)(z + root) = -1 gives it from z + root.
    let a = (z.abs() + root).cbrt();
    (z.signum() * (a - 1.0 / a)).clamp(-1.0, 1.0)
}

/// A blend's weight at `p`; `look` returns a parameter's values.
#[inline]
fn blend_weight<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N],
    record: &PhaseRecord,
    p: [f32; 3],
) -> N {
    let volume = &scene.volumes[record.weight as usize];
    volume_eval(volume, look(volume.slot), &volume_stencil(volume, p))[0]
}

/// The pdf of scattering from `incoming` into `outgoing` at `p`, both unit vectors of propagation.
#[inline]
pub fn phase_eval<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    index: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    outgoing: [f32; 3],
) -> N {
    evaluate(scene, |slot| fields.integrand(slot), index, p, incoming, outgoing)
}

/// The same on the sampling side: the pdf with which [`phase_sample`] draws.
#[inline]
pub fn phase_pdf<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    index: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    outgoing: [f32; 3],
) -> f32 {
    evaluate(scene, |slot| fields.sampling(slot), index, p, incoming, outgoing)
}

#[inline]
fn evaluate<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    index: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    outgoing: [f32; 3],
) -> N {
    let cosine = dot(incoming, outgoing);
    let mut total = N::lift(0.0);
    let mut factor = N::lift(1.0);
    let mut index = index;
    // Iterate down the second parts of nested blends; the first part is never a blend and is evaluated at once.
    for _ in 0..=MAX_NESTING {
        let record = &scene.phases[index as usize];
        if record.kind != phase::BLEND {
            return total + factor * simple_eval(look, record, cosine);
        }
        let weight = blend_weight(scene, look, record, p);
        let first = &scene.phases[record.first as usize];
        total += factor * (N::lift(1.0) - weight) * simple_eval(look, first, cosine);
        factor *= weight;
        index = record.first + 1;
    }
    total
}

#[inline]
fn simple_eval<'a, N: Number + 'a>(look: impl Fn(u32) -> &'a [N], record: &PhaseRecord, cosine: f32) -> N {
    match record.kind {
        phase::HG => hg_eval(look(record.slot)[0], cosine),
        phase::RAYLEIGH => N::lift(0.75 * INV_FOUR_PI * (1.0 + cosine * cosine)),
        _ => N::lift(INV_FOUR_PI),
    }
}

/// The derivative of the logarithm of [`phase_eval`] by the cosine between the directions.
#[inline(never)]
pub fn phase_cosine_slope<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    index: u32,
    p: [f32; 3],
    cosine: f32,
) -> N {
    let look = |slot| fields.integrand(slot);
    let (mut value, mut by_cosine) = (N::lift(0.0), N::lift(0.0));
    let (mut factor, mut index) = (N::lift(1.0), index);
    for _ in 0..=MAX_NESTING {
        let record = &scene.phases[index as usize];
        let (part, share, rest) = match record.kind {
            phase::BLEND => {
                let weight = blend_weight(scene, look, record, p);
                (
                    &scene.phases[record.first as usize],
                    factor * (N::lift(1.0) - weight),
                    Some(weight),
                )
            }
            _ => (record, factor, None),
        };
        let of_part = share * simple_eval(look, part, cosine);
        value += of_part;
        by_cosine += of_part * simple_cosine_slope(look, part, cosine);
        let Some(weight) = rest else { break };
        factor *= weight;
        index = record.first + 1;
    }
    by_cosine / value
}

/// The derivative of the logarithm of a simple phase function by the cosine.
#[inline]
fn simple_cosine_slope<'a, N: Number + 'a>(look: impl Fn(u32) -> &'a [N], record: &PhaseRecord, cosine: f32) -> N {
    match record.kind {
        phase::HG => {
            let g = look(record.slot)[0];
            N::lift(3.0) * g / (N::lift(1.0) + g * g - N::lift(2.0 * cosine) * g)
        }
        phase::RAYLEIGH => N::lift(2.0 * cosine / (1.0 + cosine * cosine)),
        _ => N::lift(0.0),
    }
}

/// Samples a direction with the pdf [`phase_pdf`].
#[inline]
pub fn phase_sample<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    index: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    sampler: &mut Sampler,
) -> [f32; 3] {
    let mut index = index;
    loop {
        let record = &scene.phases[index as usize];
        let cosine = match record.kind {
            phase::BLEND => {
                let weight = blend_weight(scene, |slot| fields.sampling(slot), record, p);
                index = record.first + u32::from(sampler.draw() < weight);
                continue;
            }
            phase::HG => hg_sample(fields.sampling(record.slot)[0], sampler.draw()),
            phase::RAYLEIGH => rayleigh_sample(sampler.draw()),
            _ => 1.0 - 2.0 * sampler.draw(),
        };
        return around(incoming, cosine, sampler.draw());
    }
}

/// Sends `d`, the derivative by the logarithm of the pdf, to the phase function's parameters.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what a scattering consists of")]
pub fn phase_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    index: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    outgoing: [f32; 3],
    d: N,
    sink: &mut S,
) {
    let record = &scene.phases[index as usize];
    let cosine = dot(incoming, outgoing);
    let zero = N::lift(0.0);
    if record.kind == phase::HG {
        let g = fields.integrand(record.slot)[0];
        sink.value(record.slot, [d * hg_log_slope(g, cosine), zero, zero], 1);
        return;
    }
    if record.kind != phase::BLEND {
        return;
    }
    let d = d * phase_eval(scene, fields, index, p, incoming, outgoing).recip();
    let mut factor = N::lift(1.0);
    let mut index = index;
    for _ in 0..=MAX_NESTING {
        let record = &scene.phases[index as usize];
        if record.kind != phase::BLEND {
            slope(fields, record, cosine, d * factor, sink);
            return;
        }
        let volume = &scene.volumes[record.weight as usize];
        let at = volume_stencil(volume, p);
        let weight = volume_eval(volume, fields.integrand(volume.slot), &at)[0];
        let first = &scene.phases[record.first as usize];
        slope(fields, first, cosine, d * factor * (N::lift(1.0) - weight), sink);
        let a = simple_eval(|slot| fields.integrand(slot), first, cosine);
        let b = phase_eval(scene, fields, record.first + 1, p, incoming, outgoing);
        sink.volume(volume, &at, [d * factor * (b - a), zero, zero], 1);
        factor *= weight;
        index = record.first + 1;
    }
}

/// Whether `sink` needs derivatives by any of a phase function's parameters.
#[inline]
pub fn phase_is_wanted<N: Number, S: Sink<N>>(scene: &SceneView, index: u32, sink: &S) -> bool {
    let wanted = |record: &PhaseRecord| record.kind == phase::HG && sink.wants(record.slot);
    let mut index = index;
    for _ in 0..=MAX_NESTING {
        let record = &scene.phases[index as usize];
        if record.kind != phase::BLEND {
            return wanted(record);
        }
        let weight = scene.volumes[record.weight as usize].slot;
        if sink.wants(weight) || wanted(&scene.phases[record.first as usize]) {
            return true;
        }
        index = record.first + 1;
    }
    false
}

/// Sends `d` times the derivative of a simple phase function to its parameter.
#[inline]
fn slope<N: Number, F: Fields<N>, S: Sink<N>>(fields: &F, record: &PhaseRecord, cosine: f32, d: N, sink: &mut S) {
    if record.kind == phase::HG {
        let g = fields.integrand(record.slot)[0];
        let zero = N::lift(0.0);
        sink.value(
            record.slot,
            [d * hg_eval(g, cosine) * hg_log_slope(g, cosine), zero, zero],
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::resident::Resident;
    use crate::transport::scene::tables::Tables;

    /// The values of the parameters on both sides.
    struct Both(Vec<Vec<f32>>, Vec<Vec<f64>>);

    impl Fields<f64> for Both {
        const TWO_SIDED: bool = true;
        const TRACKED: bool = false;
        fn integrand(&self, slot: u32) -> &[f64] {
            &self.1[slot as usize]
        }
        fn sampling(&self, slot: u32) -> &[f32] {
            &self.0[slot as usize]
        }
    }

    /// Slopes by the cosine are differences of the logarithm, of each phase function and of nested blends.
    #[test]
    fn slopes_by_the_cosine_are_differences() {
        const STEP: f32 = 1.0 / 1024.0;
        let inner =
            r#"{"type": "blendphase", "weight": 0.6, "a": {"type": "hg", "g": -0.3}, "b": {"type": "hg", "g": 0.7}}"#;
        let blend = format!(r#"{{"type": "blendphase", "weight": 0.7, "a": {{"type": "rayleigh"}}, "b": {inner}}}"#);
        for phase in [
            r#"{"type": "isotropic"}"#,
            r#"{"type": "rayleigh"}"#,
            r#"{"type": "hg", "g": 0.5}"#,
            &blend,
        ] {
            let text = format!(
                r#"{{"integrator": {{"type": "volpath"}}, "lamp": {{"type": "point"}},
                    "box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "homogeneous", "phase": {phase}}}}}}}"#
            );
            let scene =
                crate::scene::parse(&text, Path::new("phase.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            let (resident, params) = Resident::new(&scene).expect("it is sound");
            let tables = Tables::default();
            let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
            let values: Vec<Vec<f32>> = params.parameters.iter().map(|p| p.values.clone()).collect();
            let wide = values
                .iter()
                .map(|of| of.iter().map(|x| f64::from(*x)).collect())
                .collect();
            let fields = Both(values, wide);
            let index = world.media[0].phase;
            for i in -15..=15i16 {
                let cosine = f32::from(i) / 16.0;
                let ln = |cosine: f32| {
                    let sine = (1.0 - f64::from(cosine) * f64::from(cosine)).sqrt() as f32;
                    phase_eval(&world, &fields, index, [0.0; 3], [1.0, 0.0, 0.0], [cosine, sine, 0.0]).ln()
                };
                let difference = (ln(cosine + STEP) - ln(cosine - STEP)) / f64::from(2.0 * STEP);
                let slope = phase_cosine_slope(&world, &fields, index, [0.0; 3], cosine);
                // The sines are rounded to f32: 6e-8 over the step, 1e-3, times the slope by them; the second order is less.
                assert!(
                    (slope - difference).abs() < 1e-4 * (1.0 + slope.abs()),
                    "{phase} {cosine}: {slope} != {difference}"
                );
            }
        }
    }
}
