// One optimiser step over the entries of a parameter: an entry whose gradient is not finite keeps its value and is
// reported; gradients are zero afterwards.

#import bind/update
#import kernels/optimizer

@group(0) @binding(15) var<storage, read_write> first_moment: array<f32>;
@group(0) @binding(16) var<storage, read_write> second_moment: array<f32>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var squares = 0.0;
    var broken = NONE_FOUND;
    for (var i = first_element(group, lane); i < elements.count; i += elements.threads) {
        let index = elements.first + i;
        let gradient = parameter_gradient[index];
        parameter_gradient[index] = 0.0;
        if !is_finite(gradient) {
            broken = min(broken, i);
            continue;
        }
        squares += gradient * gradient;
        if elements.mask_updates != 0u && gradient == 0.0 {
            continue;
        }
        var moments = vec2f(first_moment[index], 0.0);
        if elements.kind == OPTIMIZER_ADAM {
            moments.y = second_moment[index];
        }
        let stepped = apply_step(parameter[index], gradient, moments);
        parameter[index] = stepped.value;
        first_moment[index] = stepped.moments.x;
        if elements.kind == OPTIMIZER_ADAM {
            second_moment[index] = stepped.moments.y;
        }
    }
    report(group, lane, squares, broken);
}
