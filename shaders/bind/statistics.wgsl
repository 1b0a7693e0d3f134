// Counters of an adjoint pass: rays, samples and drifted rays as pairs of words (low, high), then the faults of
// integer sums; behind them the sums of views, where cameras are refined (bind/view_sums).

#import common/math

@group(0) @binding(11) var<storage, read_write> statistics: array<atomic<u32>>;

const STATISTICS_FAULTS: u32 = 6u;
const FAULT_OVERFLOW: u32 = 1u;
const FAULT_NOT_FINITE: u32 = 2u;

// Faults that this invocation has noted. Adding up notes them here and `report_faults` records them, since compilers write out
// an atomic operation wherever there is a sum.
var<private> faults: u32;

// Records the faults at the end of a kernel. (Sums of views are whole numbers also where those of gradients are not.)
fn report_faults() {
    if faults != 0u {
        atomicOr(&statistics[STATISTICS_FAULTS], faults);
    }
}

// Adds to a counter.
fn statistics_add(counter: u32, count: u32) {
    if count == 0u {
        return;
    }
    let low = atomicAdd(&statistics[2u * counter], count);
    if low + count < low {
        atomicAdd(&statistics[2u * counter + 1u], 1u);
    }
}

// Whether the radiance left over after a replay of `count` contributions exceeds their rounding error bound (docs/method.md,
// equation 9).
fn has_drifted(gathered: vec3f, left: vec3f, count: u32) -> bool {
    let bound = 8.0 * f32(count + 1u) * EPSILON;
    return any(abs(left) > bound * abs(gathered));
}
