// The hierarchy of all surfaces, and what is known at the corners of meshes' triangles.

#import bind/scene

// Whether surfaces are found by way of the hierarchy: a constant of the pipeline, so that scenes of few surfaces do not
// pay for the search.
override BVH: bool = false;

// Of four children of a node the planes of a kind: lower x, y, z, upper x, y, z; `half` is 0 or 1.
fn node_planes(node: u32, kind: u32, half: u32) -> vec4f {
    return float_record(launch.nodes_at + 14u * node + 2u * kind + half);
}

// One plane of one child.
fn node_plane(node: u32, kind: u32, place: u32) -> f32 {
    return node_planes(node, kind, place >> 2u)[place & 3u];
}

fn node_child(node: u32, place: u32) -> u32 {
    return records[launch.nodes_at + 14u * node + 12u + (place >> 2u)][place & 3u];
}

// Of the triangles of a block one coordinate of one corner.
fn block_corners(block: u32, corner: u32, axis: u32) -> vec4f {
    return float_record(launch.blocks_at + 10u * block + 3u * corner + axis);
}

fn block_triangles(block: u32) -> vec4u {
    return records[launch.blocks_at + 10u * block + 9u];
}

// A corner of one triangle.
fn block_corner(block: u32, lane: u32, corner: u32) -> vec3f {
    return vec3f(
        block_corners(block, corner, 0u)[lane],
        block_corners(block, corner, 1u)[lane],
        block_corners(block, corner, 2u)[lane],
    );
}

fn corner_record(index: u32) -> Corner {
    let at = launch.corners_at + 5u * index;
    let normals = array<vec4f, 3>(float_record(at), float_record(at + 1u), float_record(at + 2u));
    let rest = records[at + 4u];
    return Corner(normals, float_record(at + 3u), bitcast<vec2f>(rest.xy), rest.z, 0u);
}
