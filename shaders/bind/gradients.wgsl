// Gradients, at the same offsets as their parameters, accumulated by many rays concurrently.
//
// FLOAT_ATOMIC: the adapter adds floats. FIXED_POINT: sums in whole numbers of 64 bits, which do not depend on their
// order; with WIDE_ATOMIC the adapter adds these, else their two words one after the other. Neither: compare and
// exchange until no other ray has come between.

#import bind/statistics

#ifdef FLOAT_ATOMIC

@group(0) @binding(6) var<storage, read_write> gradient: array<atomic<f32>>;
@group(0) @binding(7) var<storage, read_write> gradient_sh: array<atomic<f32>>;

fn gradient_add(index: u32, value: f32) {
    atomicAdd(&gradient[index], value);
}

fn gradient_sh_add(index: u32, value: f32) {
    atomicAdd(&gradient_sh[index], value);
}

#else
#ifdef FIXED_POINT
#import bind/launch
#import common/fixed
#import common/math

// A contribution in units; none, and a note of the fault, if it is no number or has too many.
fn gradient_scaled(value: f32, units: f32) -> f32 {
    let scaled = value * units;
    if is_finite(scaled) && abs(scaled) < FIXED_LARGEST {
        return scaled;
    }
    atomicOr(&statistics[STATISTICS_FAULTS], select(FAULT_NOT_FINITE, FAULT_OVERFLOW, is_finite(value)));
    return 0.0;
}

#ifdef WIDE_ATOMIC

@group(0) @binding(6) var<storage, read_write> gradient: array<atomic<i64>>;
@group(0) @binding(7) var<storage, read_write> gradient_sh: array<atomic<i64>>;

// Watches a sum as it was before a contribution.
fn gradient_watch(sum: i64) {
    if sum >= 0x4000000000000000li || sum < -0x4000000000000000li {
        atomicOr(&statistics[STATISTICS_FAULTS], FAULT_OVERFLOW);
    }
}

fn gradient_add(index: u32, value: f32) {
    let whole = i64(round(gradient_scaled(value, launch.units)));
    gradient_watch(atomicAdd(&gradient[index], whole));
}

fn gradient_sh_add(index: u32, value: f32) {
    let whole = i64(round(gradient_scaled(value, launch.units_sh)));
    gradient_watch(atomicAdd(&gradient_sh[index], whole));
}

#else

@group(0) @binding(6) var<storage, read_write> gradient: array<atomic<u32>>;
@group(0) @binding(7) var<storage, read_write> gradient_sh: array<atomic<u32>>;

// Watches the high word as it was before a contribution.
fn gradient_watch(high: u32) {
    if fixed_alarm(high) {
        atomicOr(&statistics[STATISTICS_FAULTS], FAULT_OVERFLOW);
    }
}

fn gradient_add(index: u32, value: f32) {
    let words = fixed_from_f32(gradient_scaled(value, launch.units));
    let low = atomicAdd(&gradient[2u * index], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    gradient_watch(atomicAdd(&gradient[2u * index + 1u], words.y + carry));
}

fn gradient_sh_add(index: u32, value: f32) {
    let words = fixed_from_f32(gradient_scaled(value, launch.units_sh));
    let low = atomicAdd(&gradient_sh[2u * index], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    gradient_watch(atomicAdd(&gradient_sh[2u * index + 1u], words.y + carry));
}

#endif
#else

@group(0) @binding(6) var<storage, read_write> gradient: array<atomic<u32>>;
@group(0) @binding(7) var<storage, read_write> gradient_sh: array<atomic<u32>>;

fn gradient_add(index: u32, value: f32) {
    var old = atomicLoad(&gradient[index]);
    loop {
        let sum = bitcast<u32>(bitcast<f32>(old) + value);
        let result = atomicCompareExchangeWeak(&gradient[index], old, sum);
        if result.exchanged {
            break;
        }
        old = result.old_value;
    }
}

fn gradient_sh_add(index: u32, value: f32) {
    var old = atomicLoad(&gradient_sh[index]);
    loop {
        let sum = bitcast<u32>(bitcast<f32>(old) + value);
        let result = atomicCompareExchangeWeak(&gradient_sh[index], old, sum);
        if result.exchanged {
            break;
        }
        old = result.old_value;
    }
}

#endif
#endif
