// One optimiser step over the entries of a parameter, after which gradients are zero. An entry whose gradient is not
// finite (or, in fixed point, out of range) keeps its value and is reported.

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
        let sound = gradient_sound(index);
        let gradient = gradient_load(index);
        gradient_clear(index);
        if !sound {
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
