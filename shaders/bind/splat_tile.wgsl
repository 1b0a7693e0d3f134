// A workgroup is a tile, an invocation a pixel.

#import bind/splats

// For each pixel the number of list entries that its blend has visited.
#ifdef WRITE_LOOKED_AT
@group(0) @binding(25) var<storage, read_write> looked_at: array<u32>;
#else
@group(0) @binding(25) var<storage, read> looked_at: array<u32>;
#endif

// The index of the first entry of a tile's list, and one past its last.
fn tile_range(tile: u32) -> vec2u {
    let end = lists[(tile + 1u) * settings.groups - 1u];
    let before = max(tile * settings.groups, 1u) - 1u;
    return vec2u(select(lists[before], 0u, tile == 0u), end);
}

// Column and row of an invocation's pixel.
fn tile_pixel(tile: u32, lane: u32) -> vec2u {
    let corner = vec2u(tile % settings.tiles_x, settings.first_row + tile / settings.tiles_x) * TILE;
    return corner + vec2u(lane % TILE, lane / TILE);
}
