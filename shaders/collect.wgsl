// Adds the integer sums of an adjoint pass to a parameter's gradient, and zeroes them.

#import bind/elements
#import bind/statistics
#import common/fixed

@group(0) @binding(14) var<storage, read_write> parameter_gradient: array<f32>;
// Low and high words; `elements.weight` is the unit.
@group(0) @binding(22) var<storage, read_write> sums: array<vec2u>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = first_element(group, lane); i < elements.count; i += elements.threads) {
        let index = elements.first + i;
        let sum = sums[index];
        // Most entries of a grid receive no contribution: skipping them saves memory traffic.
        if all(sum == vec2u(0u)) {
            continue;
        }
        if fixed_alarm(sum.y) {
            atomicOr(&statistics[STATISTICS_FAULTS], FAULT_OVERFLOW);
        }
        parameter_gradient[index] += fixed_to_f32(sum) * elements.weight;
        sums[index] = vec2u(0u);
    }
}
