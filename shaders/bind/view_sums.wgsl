// Derivatives by the pose and lens of each view, summed over its rays, behind the counters of an adjoint pass. Being few
// numbers with many contributions each, they are always 64-bit integer sums, in two words, however gradients are summed.

#import bind/launch
#import bind/statistics
#import bind/units
#import common/fixed

// Where the first view's sums begin, and how many a view has.
const VIEW_SUMS: u32 = 8u;
const VIEW_NUMBERS: u32 = 8u;

// Adds to one of a view's sums.
fn view_add(view: u32, number: u32, value: f32) {
    let words = fixed_from_f32(gradient_scaled(value, gradient_units(0, 0)));
    let at = VIEW_SUMS + 2u * (VIEW_NUMBERS * view + number);
    let low = atomicAdd(&statistics[at], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    // The sum before the contribution, as for gradients.
    let high = atomicAdd(&statistics[at + 1u], words.y + carry);
    faults |= select(0u, FAULT_OVERFLOW, fixed_alarm(high));
}
