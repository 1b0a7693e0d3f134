// The primal pass: colour and transmittance of every pixel of a view, and how many entries of its list it has looked
// at.

#import bind/splat_parameters
#import bind/splat_tile
#import transport/splats/blend

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let tile = group.y * settings.groups_x + group.x;
    let pixel = tile_pixel(min(tile, settings.tiles_x * settings.tiles_y - 1u), lane);
    if tile >= settings.tiles_x * settings.tiles_y || pixel.x >= settings.width || pixel.y >= settings.height {
        return;
    }
    let range = tile_range(tile);
    let gathered = gather(range.x, range.y, vec2f(pixel) + 0.5);
    let index = settings.first_pixel + pixel.y * settings.width + pixel.x;
    image[index] = vec4f(over(gathered.state, splat_background()), gathered.state.transmittance);
    looked_at[index] = gathered.count;
}
