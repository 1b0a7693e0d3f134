// Gradients, at the same addresses as their parameters, accumulated by many rays concurrently.
//
// FLOAT_ATOMIC: the adapter has atomic addition of floats. FIXED_POINT: 64-bit integer sums, which do not depend on
// the order of additions; with WIDE_ATOMIC the adapter adds them atomically, else word by word. Neither: a
// compare-and-exchange loop. TWO_BANKS: parameters are in two buffers.

#import bind/statistics
#import common/layout

#ifdef FLOAT_ATOMIC

@group(0) @binding(6) var<storage, read_write> gradient_0: array<atomic<f32>>;
#ifdef TWO_BANKS
@group(0) @binding(7) var<storage, read_write> gradient_1: array<atomic<f32>>;
#endif

fn gradient_add_0(index: u32, value: f32) {
    atomicAdd(&gradient_0[index], value);
}

#ifdef TWO_BANKS

fn gradient_add_1(index: u32, value: f32) {
    atomicAdd(&gradient_1[index], value);
}

#endif

#else
#ifdef FIXED_POINT
#import bind/units
#import common/fixed

#ifdef WIDE_ATOMIC

@group(0) @binding(6) var<storage, read_write> gradient_0: array<atomic<i64>>;
#ifdef TWO_BANKS
@group(0) @binding(7) var<storage, read_write> gradient_1: array<atomic<i64>>;
#endif

// Notes an overflow if `sum`, the value before the contribution was added, had a magnitude of 2^62 units or more: since sums wrap
// around, 2^62 more then are negative.
fn gradient_watch(sum: i64) {
    faults |= select(0u, FAULT_OVERFLOW, sum + 0x4000000000000000li < 0li);
}

fn gradient_add_0(index: u32, scaled: f32) {
    gradient_watch(atomicAdd(&gradient_0[index], i64(round(scaled))));
}

#ifdef TWO_BANKS

fn gradient_add_1(index: u32, scaled: f32) {
    gradient_watch(atomicAdd(&gradient_1[index], i64(round(scaled))));
}

#endif

#else

@group(0) @binding(6) var<storage, read_write> gradient_0: array<atomic<u32>>;
#ifdef TWO_BANKS
@group(0) @binding(7) var<storage, read_write> gradient_1: array<atomic<u32>>;
#endif

// The same, from the high word of the sum before the contribution.
fn gradient_watch(high: u32) {
    faults |= select(0u, FAULT_OVERFLOW, fixed_alarm(high));
}

fn gradient_add_0(index: u32, scaled: f32) {
    let words = fixed_from_f32(scaled);
    let low = atomicAdd(&gradient_0[2u * index], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    gradient_watch(atomicAdd(&gradient_0[2u * index + 1u], words.y + carry));
}

#ifdef TWO_BANKS

fn gradient_add_1(index: u32, scaled: f32) {
    let words = fixed_from_f32(scaled);
    let low = atomicAdd(&gradient_1[2u * index], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    gradient_watch(atomicAdd(&gradient_1[2u * index + 1u], words.y + carry));
}

#endif

#endif
#else

@group(0) @binding(6) var<storage, read_write> gradient_0: array<atomic<u32>>;
#ifdef TWO_BANKS
@group(0) @binding(7) var<storage, read_write> gradient_1: array<atomic<u32>>;
#endif

fn gradient_add_0(index: u32, value: f32) {
    var old = atomicLoad(&gradient_0[index]);
    loop {
        let sum = bitcast<u32>(bitcast<f32>(old) + value);
        let result = atomicCompareExchangeWeak(&gradient_0[index], old, sum);
        if result.exchanged {
            break;
        }
        old = result.old_value;
    }
}

#ifdef TWO_BANKS

fn gradient_add_1(index: u32, value: f32) {
    var old = atomicLoad(&gradient_1[index]);
    loop {
        let sum = bitcast<u32>(bitcast<f32>(old) + value);
        let result = atomicCompareExchangeWeak(&gradient_1[index], old, sum);
        if result.exchanged {
            break;
        }
        old = result.old_value;
    }
}

#endif

#endif
#endif

// Adds to the gradient of an entry of a parameter.
fn gradient_add(slot: Slot, entry: u32, value: f32) {
    let at = slot.first + entry;
#ifdef FIXED_POINT
    let share = gradient_scaled(value, gradient_units(slot.spread, slot.magnitude));
#else
    let share = value;
#endif
#ifdef TWO_BANKS
    if at >= SECOND_BANK {
        gradient_add_1(at - SECOND_BANK, share);
        return;
    }
#endif
    gradient_add_0(at, share);
}

// Adds to the gradients of an entry and of the two behind it.
fn gradient_add_color(slot: Slot, entry: u32, value: vec3f) {
    gradient_add(slot, entry, value.x);
    gradient_add(slot, entry + 1u, value.y);
    gradient_add(slot, entry + 2u, value.z);
}
