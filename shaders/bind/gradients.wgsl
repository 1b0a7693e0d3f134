// Gradients, at the same offsets as their parameters, accumulated by many rays concurrently.
//
// FLOAT_ATOMIC: the adapter has atomic addition of floats. FIXED_POINT: two words per entry, sums independent of the
// order. Neither: a compare-and-exchange loop.

#ifdef FLOAT_ATOMIC
@group(0) @binding(6) var<storage, read_write> gradient: array<atomic<f32>>;
@group(0) @binding(7) var<storage, read_write> gradient_sh: array<atomic<f32>>;
#else
@group(0) @binding(6) var<storage, read_write> gradient: array<atomic<u32>>;
@group(0) @binding(7) var<storage, read_write> gradient_sh: array<atomic<u32>>;
#endif

// Rays, samples and drifted rays as pairs of words (low, high), then a flag for fixed-point overflow.
@group(0) @binding(11) var<storage, read_write> statistics: array<atomic<u32>>;
const STATISTICS_OVERFLOW: u32 = 6u;

#ifdef FLOAT_ATOMIC

fn gradient_add(index: u32, value: f32) {
    atomicAdd(&gradient[index], value);
}

fn gradient_sh_add(index: u32, value: f32) {
    atomicAdd(&gradient_sh[index], value);
}

#else
#ifdef FIXED_POINT
#import common/fixed
#import common/math

// Whether a contribution is in range; sets the overflow flag if not.
fn gradient_in_range(value: f32) -> bool {
    let sound = is_finite(value) && abs(value) < FIXED_LARGEST;
    if !sound {
        atomicOr(&statistics[STATISTICS_OVERFLOW], 1u);
    }
    return sound;
}

// Checks the high word before an addition, and sets the overflow flag if it is close to its limit.
fn gradient_watch(high: u32) {
    if fixed_alarm(high) {
        atomicOr(&statistics[STATISTICS_OVERFLOW], 1u);
    }
}

fn gradient_add(index: u32, value: f32) {
    if !gradient_in_range(value) {
        return;
    }
    let words = fixed_from_f32(value);
    let low = atomicAdd(&gradient[2u * index], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    gradient_watch(atomicAdd(&gradient[2u * index + 1u], words.y + carry));
}

fn gradient_sh_add(index: u32, value: f32) {
    if !gradient_in_range(value) {
        return;
    }
    let words = fixed_from_f32(value);
    let low = atomicAdd(&gradient_sh[2u * index], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    gradient_watch(atomicAdd(&gradient_sh[2u * index + 1u], words.y + carry));
}

#else

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
