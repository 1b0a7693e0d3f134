// Buffers of every pass over splats.

#import common/layout

// Edge of a tile in pixels.
const TILE: u32 = 16u;

// A splat in pixels. `columns` and `rows` are the ranges of tiles that it may reach: the first in the low half of the word,
// one past the last in the high half.
struct Splat {
    center: vec2f,
    columns: u32,
    rows: u32,
    // The inverse of the covariance: xx, xy, yy.
    conic: vec3f,
    opacity: f32,
    color: vec3f,
    padding: f32,
}

@group(0) @binding(19) var<uniform> settings: SplatSettings;
#ifdef WRITE_SPLATS
@group(0) @binding(23) var<storage, read_write> splats: array<Splat>;
#else
@group(0) @binding(23) var<storage, read> splats: array<Splat>;
#endif
// One word for each tile and group of splats: first a count, after scan_splats.wgsl the index of its next entry. Then the
// number of all entries, then the entries, which are indices of splats.
#ifdef WRITE_LISTS
@group(0) @binding(24) var<storage, read_write> lists: array<u32>;
#else
@group(0) @binding(24) var<storage, read> lists: array<u32>;
#endif

fn list_cells() -> u32 {
    return settings.tiles_x * settings.tiles_y * settings.groups;
}

// The position of an entry in `lists`.
fn list_entry(index: u32) -> u32 {
    return list_cells() + 1u + index;
}

// The number of the invocation among those of a dispatch.
fn splat_invocation(group: vec3u, lane: u32) -> u32 {
    return (group.y * settings.groups_x + group.x) * ELEMENT_GROUP + lane;
}
