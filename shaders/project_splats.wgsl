// Computes the shapes of splats in a view from their parameters, and the tiles that they reach.

#import bind/splat_parameters

// The range of tiles along an axis, among the `tiles` tiles from `before` on, that hold a pixel's centre within `far` of
// `center`: the first in the low half of the word, one past the last in the high half, both counted from `before`.
fn tiles_along(center: f32, far: f32, before: u32, tiles: u32) -> u32 {
    let last = before + tiles;
    let last_pixel = f32(last * TILE);
    let first = u32(clamp(ceil(center - far - 0.5), 0.0, last_pixel)) / TILE;
    let end = (u32(clamp(floor(center + far - 0.5) + 1.0, 0.0, last_pixel)) + TILE - 1u) / TILE;
    return (clamp(first, before, last) - before) | ((clamp(end, before, last) - before) << 16u);
}

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = splat_invocation(group, lane);
    if i >= settings.count {
        return;
    }
    let of_splat = splat_parameters(i);
    var splat = project(of_splat, settings.side);
    splat.center += settings.offset;
    let far = reach(of_splat, settings.side);
    if far.x >= 0.0 {
        splat.columns = tiles_along(splat.center.x, far.x, 0u, settings.tiles_x);
        splat.rows = tiles_along(splat.center.y, far.y, settings.first_row, settings.tiles_y);
    }
    splats[i] = splat;
}
