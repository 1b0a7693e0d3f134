//! Spectra as linear red, green and blue, by the rule of Mitsuba's RGB variants.

use super::cie::{COLOR_MATCHING, D65, FIRST, LAST, STEP};
use crate::io::srgb::from_xyz;

/// A wavelength in nanometres, and the value there.
pub(super) type Sample = [f64; 2];

/// The number of wavelengths that are summed over. As in Mitsuba the sum is divided by it, not by the number of
/// intervals between them.
const POINTS: usize = 1000;

/// Mitsuba's factor by which a spectrum of ones has the luminance one: one over the integral of ȳ.
const OBSERVER_SCALE: f64 = 1.0 / 106.750_259_399_414_06;

/// Mitsuba's factor by which D65 has the luminance one.
const D65_SCALE: f64 = 0.010_101_273_599_490_354;

/// The light under which a spectrum becomes a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// None: the spectrum is light itself.
    Directly,
    /// D65, of which the spectrum is the reflected share.
    UnderD65,
}

/// The colour of light of one unit at every wavelength.
pub(super) fn equal_energy() -> [f64; 3] {
    from_xyz([1.0; 3])
}

/// The colour of a spectrum that is linear between samples, two at least, whose wavelengths increase, and zero beyond
/// them. Saturated spectra have negative parts.
pub(super) fn to_rgb(samples: &[Sample], seen: Seen) -> [f64; 3] {
    let (Some([low, _]), Some([high, _])) = (samples.first(), samples.last()) else {
        return [0.0; 3];
    };
    let mut xyz = [0.0; 3];
    for i in 0..POINTS {
        let wavelength = FIRST + (LAST - FIRST) * i as f64 / (POINTS - 1) as f64;
        if !(*low..=*high).contains(&wavelength) {
            continue;
        }
        let (entry, share) = place(wavelength);
        let light = match seen {
            Seen::Directly => 1.0,
            Seen::UnderD65 => D65_SCALE * mix(D65[entry], D65[entry + 1], share),
        };
        let power = light * value_at(samples, wavelength) * (LAST - FIRST) / POINTS as f64;
        for axis in 0..3 {
            let matching = mix(COLOR_MATCHING[entry][axis], COLOR_MATCHING[entry + 1][axis], share);
            xyz[axis] += OBSERVER_SCALE * matching * power;
        }
    }
    from_xyz(xyz)
}

/// The table's entry at or before a wavelength, and the fraction of the step to the next entry.
fn place(wavelength: f64) -> (usize, f64) {
    let steps = (wavelength - FIRST) / STEP;
    let entry = (steps as usize).min(D65.len() - 2);
    (entry, steps - entry as f64)
}

fn value_at(samples: &[Sample], wavelength: f64) -> f64 {
    let after = samples.partition_point(|[place, _]| *place <= wavelength);
    let after = after.clamp(1, samples.len() - 1);
    let ([x0, y0], [x1, y1]) = (samples[after - 1], samples[after]);
    mix(y0, y1, (wavelength - x0) / (x1 - x0))
}

fn mix(a: f64, b: f64, share: f64) -> f64 {
    a + (b - a) * share
}
