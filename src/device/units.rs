//! The units of gradients that are summed in whole numbers.
//!
//! Sums of whole numbers do not depend on their order. Both devices take them of 64 bits, in two's complement, and
//! keep to one rule by which no overflow passes unseen: a contribution is of fewer than 2⁶² units, and whoever adds
//! one looks whether the sum was of 2⁶² units or more before. While it was not, it cannot leave 64 bits by one
//! contribution, whatever the order; once it is, the next addition, or whoever reads the sum in the end, sees it.

/// Contributions and sums of this many units or more are an overflow: 2⁶².
pub(super) const LIMIT: i64 = 1 << 62;

/// Binary digits of a sum, after the largest number of contributions of the size of the adjoint's largest, that are
/// left for how strongly a path's radiance depends on the parameter.
const DEPENDENCE: i32 = 12;

/// Most and fewest binary digits of the largest adjoint that a unit resolves.
const RESOLUTION: [i32; 2] = [16, 40];

/// The units of an adjoint pass, parameter by parameter.
///
/// A sum's 62 digits are shared out between the resolution, the number of paths and [`DEPENDENCE`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Units {
    /// Binary digits of what a path carries that a sum of all paths leaves to a parameter that is one number.
    pub digits: i32,
    /// The e of 2^e ≤ x < 2^(e + 1), x being the most that a path carries.
    pub exponent: i32,
}

impl Units {
    /// Units of a pass whose adjoint image, of the largest magnitude `largest`, is carried by `spp` paths of each of
    /// `pixels` pixels.
    pub(super) fn new(largest: f32, pixels: u32, spp: u32) -> Self {
        let paths = (u64::from(pixels) * u64::from(spp)).max(1);
        let carried = f64::from(largest) / f64::from(spp.max(1));
        Self {
            digits: 62 - DEPENDENCE - paths.next_power_of_two().ilog2() as i32,
            exponent: if carried == 0.0 { 0 } else { exponent(carried) },
        }
    }

    /// Units in one for a parameter with this [`spread`]: a power of two, so that scaling by it rounds nothing.
    pub(super) fn in_one(self, spread: i32) -> f32 {
        let [fewest, most] = RESOLUTION;
        let resolution = (self.digits + spread).clamp(fewest, most);
        // The factor's inverse must be a normal number of 32 bits; the factor is one, no adjoint being 2^128 or more.
        power_of_two((resolution - self.exponent).min(126))
    }
}

/// Binary digits by which a sum of one of `texels` texels is smaller than that of a parameter that is one number: a path is
/// in one texel of n for 1/n^(1/3) of its length at most and for 1/n on average; it is taken to be 1/n^(1/2).
pub(super) fn spread(texels: usize) -> i32 {
    texels.max(1).ilog2() as i32 / 2
}

/// Units in one of what a pixel of a film receives of paths, each of which brings `largest` at most to all pixels together: were
/// all of them to end on one pixel, three digits would be left for filters with negative lobes.
pub(super) fn units_of_film(largest: f32, paths: u64) -> f32 {
    let digits = 62 - 3 - paths.max(1).next_power_of_two().ilog2() as i32;
    power_of_two((digits - 1 - exponent(f64::from(largest))).clamp(-126, 126))
}

// Of light among surfaces nobody knows what a path brings at most. Each colour of a pixel therefore has three sums, for
// magnitudes of 28 binary orders each, from 2⁻⁴⁴ up to 2⁴⁰ of what a pixel's mean would be at one path a pixel. The least
// magnitude in a range has twelve digits in the unit of its sum, so that the largest is of fewer than 2⁴⁰ units, and 2²²
// additions leave 2⁶². Before more are made, sums are settled: what a lower one holds of the unit of the next, 2²⁸ units, moves
// there, and it is left with less than that. The digits that are left are those of one number, whenever and however often that
// was done. The highest sum is never emptied: when it is 2⁶² units or more, of one each, the pixel is spoiled. What is below
// the least magnitude is rounded to 2⁻⁵⁶.

/// Sums of a pixel of such a film, with that which counts what was no number.
pub(super) const FILM_SUMS: u64 = 10;

/// Additions for which such a sum has room before it is settled.
pub(super) const BIN_ADDITIONS: u64 = 1 << 22;

/// The e of 2^e ≤ x < 2^(e + 1).
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units_in_one(largest: f32, pixels: u32, spp: u32, texels: usize) -> f32 {
        Units::new(largest, pixels, spp).in_one(spread(texels))
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
            // Under L1 all pixels carry the same, each by `spp` paths.
            let sum = f64::from(largest) * f64::from(pixels) * units;
            assert!(sum * 2048.0 <= LIMIT as f64, "{pixels} pixels, {spp} samples");
            assert!(
                units_in_one(largest, pixels, spp, 1 << 18) >= units_in_one(largest, pixels, spp, 1),
                "a texel of many receives less"
            );
        }
    }

    /// The 62 digits less 12 and those of the number of paths, more by half of those of the texels, from 16 to 40: units
    /// for what a path carries.
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
        assert_eq!([1.0, 1.99, 2.0, 0.75, 1e-300].map(exponent), [0, 0, 1, -1, -997]);
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

    /// Ranges follow each other without a gap, and the largest contributions to one, or to what is left of one, have room.
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

    /// The twins of shaders, which this crate alone sees.
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
