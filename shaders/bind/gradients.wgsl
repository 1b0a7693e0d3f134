// Gradients, at the same offsets as their parameters, accumulated by many rays concurrently.
//
// FLOAT_ATOMIC: the adapter has atomic addition of floats. FIXED_POINT: 64-bit integer sums, which do not depend on
// the order of additions; with WIDE_ATOMIC the adapter adds them atomically, else word by word. Neither: a
// compare-and-exchange loop.

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

// A contribution in integer units. If it is not a number or too large, it counts as zero and the fault is recorded.
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

// Checks the sum before a contribution for overflow.
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

// Checks the high word before a contribution for overflow.
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
