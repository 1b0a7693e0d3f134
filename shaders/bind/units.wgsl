// Contributions to fixed-point (64-bit integer) sums, and their units: src/device/units.rs.

#import bind/launch
#import bind/statistics
#import common/fixed
#import common/math

// Units per 1.0 in a parameter's gradient sums, a power of two: `Units::in_one`.
fn gradient_units(spread: i32, magnitude: i32) -> f32 {
    let resolution = clamp(launch.digits + spread, FIXED_FEWEST_DIGITS, FIXED_MOST_DIGITS) - magnitude;
    return bitcast<f32>(u32(clamp(resolution - launch.exponent, -126, 126) + 127) << 23u);
}

// A contribution in integer units. If it is not a number or too large, it counts as zero and the fault is noted.
fn gradient_scaled(value: f32, units: f32) -> f32 {
    let scaled = value * units;
    // Both conditions are evaluated, which costs less than a branch.
    let sound = is_finite(scaled) & (abs(scaled) < FIXED_LARGEST);
    faults |= select(select(FAULT_NOT_FINITE, FAULT_OVERFLOW, is_finite(value)), 0u, sound);
    return select(0.0, scaled, sound);
}
