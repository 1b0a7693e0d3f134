// The sums in whole numbers that a pixel of a film has where nobody knows what a path brings at most: of each colour one for
// each range of magnitudes, in a unit of its own. src/device/units.rs states why none overflows.

// Sums of a colour, and the binary orders of magnitude that each is for: from 2 to the power of BINS_BEGIN on, and below
// the power of BINS_END.
const BINS: u32 = 3u;
const BIN_ORDERS: u32 = 28u;
const BINS_BEGIN: i32 = -44;
const BINS_END: i32 = 40;
// Binary digits of the least magnitude in a range.
const BIN_DIGITS: u32 = 12u;
// Sums of a pixel; the last counts what was no number.
const FILM_SUMS: u32 = 10u;
const SPOILED: u32 = 9u;

// Units in one of a range's sum, a power of two.
fn bin_units(bin: u32) -> f32 {
    let digits = i32(BIN_DIGITS) - BINS_BEGIN - i32(BIN_ORDERS * bin);
    return bitcast<f32>(u32(127 + digits) << 23u);
}
