// The last kernel of a wave of paths in the primal pass: sums the radiance of each pixel's samples, as render_paths.wgsl
// does.

#import bind/image
#import bind/launch
#import bind/wave

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = image_index(group, lane);
    if index >= launch.last_pixel {
        return;
    }
    var sum = image_begin(index);
    if sum.w < 0.0 {
        return;
    }
    let samples = launch.last_sample - launch.first_sample;
    for (var sample = 0u; sample < samples; sample++) {
        let path = (index - launch.first_pixel) * samples + sample;
        let flags = wave_word(path, WAVE_FLAGS);
        if (flags & IS_MASKED) != 0u {
            image_mask(index);
            return;
        }
        let radiance = wave_vector(path, WAVE_RADIANCE) * wave_number(path, WAVE_WEIGHT);
        sum += vec4f(radiance, select(0.0, 1.0, (flags & IS_STRAIGHT) != 0u));
    }
    image_end(index, sum);
}
