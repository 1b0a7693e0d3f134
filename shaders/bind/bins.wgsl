// Fixed-point sums of a film's pixel where the contribution of a path has no known bound: each colour has an integer sum for
// each range of magnitudes, in a unit of its own. src/device/units.rs states why none overflows.

// Sums per colour, and the binary orders of magnitude that each one covers. Together they cover magnitudes from 2^BINS_BEGIN
// to below 2^BINS_END.
const BINS: u32 = 3u;
const BIN_ORDERS: u32 = 28u;
const BINS_BEGIN: i32 = -44;
const BINS_END: i32 = 40;
// Binary digits that resolve the least magnitude of a range in the unit of its sum.
const BIN_DIGITS: u32 = 12u;
// Sums per pixel; the last one, SPOILED, counts contributions that are not finite or too large.
const FILM_SUMS: u32 = 10u;
const SPOILED: u32 = 9u;

// Units per 1.0 in the sum of a range, a power of two.
fn bin_units(bin: u32) -> f32 {
    let digits = i32(BIN_DIGITS) - BINS_BEGIN - i32(BIN_ORDERS * bin);
    return bitcast<f32>(u32(127 + digits) << 23u);
}
