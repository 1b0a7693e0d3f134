// The parameter that a pass over entries updates, its gradient, and the workgroups' reports: a sum, and the first
// entry that is not finite.

#import bind/elements
#import common/math

@group(0) @binding(12) var<storage, read_write> partials: array<vec4f>;
@group(0) @binding(13) var<storage, read_write> parameter: array<f32>;

const NONE_FOUND: u32 = 0xffffffffu;

var<workgroup> sums: array<f32, ELEMENT_GROUP>;
var<workgroup> firsts: array<u32, ELEMENT_GROUP>;

// Reduces the invocations' sums and first entries over a workgroup, in a tree of fixed shape, and writes them to
// `partials`. Must be called in uniform control flow.
fn report(group: vec3u, lane: u32, sum: f32, first: u32) {
    sums[lane] = sum;
    firsts[lane] = first;
    for (var half = ELEMENT_GROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            sums[lane] += sums[lane + half];
            firsts[lane] = min(firsts[lane], firsts[lane + half]);
        }
    }
    if lane == 0u {
        let halves = vec2f(f32(firsts[0] >> 16u), f32(firsts[0] & 0xffffu));
        partials[elements.report_at + group.y * elements.groups_x + group.x] = vec4f(sums[0], halves, 0.0);
    }
}

@group(0) @binding(14) var<storage, read_write> parameter_gradient: array<f32>;
