// Resamples a parameter to a new resolution, an entry an invocation.

#import bind/elements
#import kernels/resample

@group(0) @binding(13) var<storage, read_write> parameter: array<f32>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = first_element(group, lane); i < elements.count; i += elements.threads) {
        let size = elements.size;
        let index = i / size.w;
        let texel = vec3u(index % size.x, index / size.x % size.y, index / (size.x * size.y));
        parameter[elements.first + i] = resample_texel(texel, i % size.w);
    }
}
