// Resampling of a grid to another resolution: trilinear, cell-centred, clamped. The host's resample_axis fills the
// tables.

#import bind/elements

@group(0) @binding(17) var<storage, read> source: array<f32>;
// For each texel of the new grid along x, then y, then z: the two source texels and the bits of the second's weight.
@group(0) @binding(18) var<storage, read> axes: array<vec4u>;

// One entry of the resampled grid: the weighted sum of eight source texels.
fn resample_texel(texel: vec3u, channel: u32) -> f32 {
    let size = elements.source_size;
    let x = axes[texel.x];
    let y = axes[elements.size.x + texel.y];
    let z = axes[elements.size.x + elements.size.y + texel.z];
    var sum = 0.0;
    for (var k = 0u; k < 8u; k++) {
        let upper = vec3<bool>((k & 1u) != 0u, (k & 2u) != 0u, (k & 4u) != 0u);
        let place = vec3u(select(x.x, x.y, upper.x), select(y.x, y.y, upper.y), select(z.x, z.y, upper.z));
        let fraction = vec3f(bitcast<f32>(x.z), bitcast<f32>(y.z), bitcast<f32>(z.z));
        let weights = select(1.0 - fraction, fraction, upper);
        let index = ((place.z * size.y + place.y) * size.x + place.x) * size.w + channel;
        sum += ((weights.z * weights.y) * weights.x) * source[elements.source_first + index];
    }
    return sum;
}
