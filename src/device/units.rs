//! The units of gradients that are summed in whole numbers.
//!
//! Sums of whole numbers do not depend on the order of additions. Both devices use 64-bit integers in two's complement,
//! and detect every overflow by one rule: a contribution's magnitude is below 2⁶² units, and each addition checks whether
//! the sum's magnitude was 2⁶² units or more before it. A sum below 2⁶² cannot leave 64 bits by one contribution,
//! whatever the order; a sum of 2⁶² or more is found by the next addition, or when the sum is read in the end.

use crate::resident::magnitudes::binary_order;

/// Contributions and sums of this many units or more are an overflow: 2⁶².
pub(super) const LIMIT: i64 = 1 << 62;

/// Bits of a sum that are reserved for ∂L/∂θ, the derivative of a path's radiance by the parameter: it may average 2¹² times
/// what is expected (`PathScene::magnitudes`) over all paths, if each path carries the largest adjoint.
const DEPENDENCE: i32 = 12;

/// Fewest and most bits of the largest adjoint that a unit resolves.
const RESOLUTION: [i32; 2] = [16, 40];

/// The units of an adjoint pass, parameter by parameter.
///
/// A sum's 62 bits are shared out between the resolution, the number of paths and [`DEPENDENCE`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Units {
    /// Resolution in bits of a path's adjoint for a parameter that is one number: 62 − [`DEPENDENCE`] − ⌈log₂ paths⌉.
    pub digits: i32,
    /// The e of 2^e ≤ x < 2^(e + 1), x being the largest adjoint of a path, that of its pixel over `spp`.
    pub exponent: i32,
}

impl Units {
    /// Units of a pass with `spp` paths for each of `pixels` pixels; `largest` is the largest magnitude in the adjoint image.
    pub(super) fn new(largest: f32, pixels: u32, spp: u32) -> Self {
        let paths = (u64::from(pixels) * u64::from(spp)).max(1);
        let carried = f64::from(largest) / f64::from(spp.max(1));
        Self {
            digits: 62 - DEPENDENCE - paths.next_power_of_two().ilog2() as i32,
            exponent: binary_order(carried),
        }
    }

    /// The number of units in 1.0 for a parameter with this [`spread`] and this binary order of ∂L/∂θ: a power of two, so
    /// that scaling by it is exact.
    pub(super) fn in_one(self, spread: i32, magnitude: i32) -> f32 {
        let [fewest, most] = RESOLUTION;
        let resolution = (self.digits + spread).clamp(fewest, most) - magnitude;
        // Beyond these the factor or its inverse would be subnormal.
        power_of_two((resolution - self.exponent).clamp(-126, 126))
    }
}

/// Bits by which the sum of one of n = `texels` texels is smaller than that of a parameter that is one number: the share of
/// a path's length within one texel is at most 1/n^(1/3) and on average 1/n; 1/n^(1/2) is assumed.
pub(super) fn spread(texels: usize) -> i32 {
    texels.max(1).ilog2() as i32 / 2
}

/// The number of units in 1.0 for a film's pixels where each of `paths` paths adds at most `largest`, over all pixels: if
/// all paths end on one pixel, three bits are left for filters with negative lobes.
pub(super) fn units_of_film(largest: f32, paths: u64) -> f32 {
    let digits = 62 - 3 - paths.max(1).next_power_of_two().ilog2() as i32;
    power_of_two((digits - 1 - binary_order(f64::from(largest))).clamp(-126, 126))
}

// Among surfaces, the splat of a light path has no known upper bound. Each colour of a pixel therefore has three sums, each for
// magnitudes of 28 binary orders, from 2⁻⁴⁴ up to 2⁴⁰ of what a pixel's mean would be at one path a pixel. The least
// magnitude in a range has 12 bits in the unit of its sum, so that the largest has fewer than 2⁴⁰ units, and 2²² additions
// stay within 2⁶². Before more are made, sums are settled: a lower sum is divided by 2²⁸, the next sum's unit; the quotient
// moves to the next sum and the remainder stays. Two remainders and the highest sum are the digits of one number, the same
// whenever and however often sums are settled. The highest sum, whose unit is 1, is never emptied: at 2⁶² units or more the
// pixel is marked as spoiled. Contributions below the least magnitude are rounded to 2⁻⁵⁶.

/// Sums of a pixel of such a film: three for each of three colours, and a count of contributions out of range or not finite.
pub(super) const FILM_SUMS: u64 = 10;

/// Additions that such a sum has room for before it must be settled.
pub(super) const BIN_ADDITIONS: u64 = 1 << 22;

fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units_in_one(largest: f32, pixels: u32, spp: u32, texels: usize) -> f32 {
        Units::new(largest, pixels, spp).in_one(spread(texels), 0)
    }

    #[test]
    fn units_are_powers_of_two_that_follow_the_adjoint() {
        for largest in [1.0f32, 3.7e-9, 1e-30, 5e8, f32::MIN_POSITIVE / 8.0, f32::MAX] {
            let units = units_in_one(largest, 1 << 10, 1, 1);
            assert_eq!(units.to_bits() & 0x7f_ffff, 0, "{largest}: {units}");
            assert!(units.is_normal() && (1.0 / units).is_normal());
            let resolved = f64::from(largest) * f64::from(units);
            let expected = 2f64.powi(40)..2f64.powi(41);
            assert!(
                expected.contains(&resolved) || units == power_of_two(126),
                "{largest}: {resolved}"
            );
        }
        assert_eq!(units_in_one(2.0, 100, 1, 1), 0.5 * units_in_one(1.0, 100, 1, 1));
    }

    #[test]
    fn what_all_paths_send_to_one_number_has_room() {
        for (pixels, spp) in [(640_000, 4), (8 * 640_000, 16), (1 << 20, 1024)] {
            let largest = 0.7f32;
            let units = f64::from(units_in_one(largest, pixels, spp, 1));
            // Under an L1 loss all pixels have adjoints of one magnitude, each shared by `spp` paths.
            let sum = f64::from(largest) * f64::from(pixels) * units;
            assert!(sum * 2048.0 <= LIMIT as f64, "{pixels} pixels, {spp} samples");
            assert!(
                units_in_one(largest, pixels, spp, 1 << 18) >= units_in_one(largest, pixels, spp, 1),
                "a texel of many receives less"
            );
        }
    }

    /// The resolution is 62 − 12 − ⌈log₂ paths⌉ + ⌊½ log₂ texels⌋ bits, from 16 to 40, in units for the largest adjoint of a
    /// path.
    #[test]
    fn digits_are_shared_out_by_hand() {
        for (largest, pixels, spp, texels, exponent) in [
            (1.0f32, 1 << 10, 1, 1, 40),
            (3.0, 1 << 20, 16, 1, 26 + 3),
            (3.0, 1 << 20, 16, 4096, 32 + 3),
            (3.0, 1 << 20, 16, 8191, 32 + 3),
            (1.0, 1 << 31, 16, 1, 16 + 4),
            (1.0, 3, 1, 1, 40),
            (1.0, (1 << 12) + 1, 1, 1, 37),
            (0.5, 1 << 12, 1, 0, 38 + 1),
            (1.0, 0, 0, 1, 40),
        ] {
            let found = units_in_one(largest, pixels, spp, texels);
            assert_eq!(found, 2f32.powi(exponent), "{largest} {pixels} {spp} {texels}");
        }
        assert!(units_in_one(0.0, 9, 9, 9).is_normal());
        let of_magnitude = |magnitude| Units::new(1.0, 1 << 10, 1).in_one(0, magnitude);
        assert_eq!([-30, 20, 300].map(of_magnitude), [70, 20, -126].map(power_of_two));
        assert_eq!([1.0, 1.99, 2.0, 0.75, 1e-300].map(binary_order), [0, 0, 1, -1, -997]);
    }

    #[test]
    fn a_pixel_of_a_film_has_room_for_all_paths() {
        for (largest, paths) in [(1.0f32, 1u64), (0.7, 1 << 21), (3e5, (1 << 21) + 1), (1e-20, 12)] {
            let units = f64::from(units_of_film(largest, paths));
            let sum = f64::from(largest) * paths as f64 * units;
            assert!(
                sum * 8.0 <= LIMIT as f64 && sum * 64.0 > LIMIT as f64,
                "{largest} {paths} {units}"
            );
        }
        assert!(units_of_film(0.0, 0).is_normal());
    }

    /// Ranges of magnitudes have no gap between them, a sum has room for 2²² of its largest contributions, and a remainder
    /// fits a word.
    #[test]
    fn ranges_of_magnitudes_have_room_for_their_additions() {
        let text = include_str!("../../shaders/bind/bins.wgsl");
        let number = |name: &str| -> i64 {
            let declared = text.lines().find(|line| line.starts_with(&format!("const {name}:")));
            let (_, value) = declared.and_then(|line| line.split_once(" = ")).expect("a constant");
            value
                .trim_end_matches(';')
                .trim_end_matches('u')
                .parse()
                .expect("a number")
        };
        let [bins, orders, begin, end, digits] =
            ["BINS", "BIN_ORDERS", "BINS_BEGIN", "BINS_END", "BIN_DIGITS"].map(number);
        assert_eq!(begin + bins * orders, end);
        assert_eq!(number("FILM_SUMS") as u64, FILM_SUMS);
        assert_eq!([number("SPOILED"), number("FILM_SUMS")], [3 * bins, 3 * bins + 1]);
        let largest = 1i64 << (orders + digits);
        assert!(
            largest
                .checked_mul(BIN_ADDITIONS as i64)
                .is_some_and(|sum| sum <= LIMIT)
        );
        assert!(orders < 32, "what is left of a sum is one word");
    }

    /// Constants that are private to this crate have the same values in the shaders.
    #[test]
    fn shaders_know_the_same_range_and_digits() {
        let text = include_str!("../../shaders/common/fixed.wgsl");
        for declared in [
            format!("const FIXED_LARGEST: f32 = {}.0;", LIMIT),
            format!("const FIXED_FEWEST_DIGITS: i32 = {};", RESOLUTION[0]),
            format!("const FIXED_MOST_DIGITS: i32 = {};", RESOLUTION[1]),
        ] {
            assert!(text.contains(&declared), "{declared}");
        }
    }
}
