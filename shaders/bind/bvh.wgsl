// Access to the BVH over all surfaces and to the vertex data of meshes' triangles; the hit that a search returns.

#import bind/scene

// The nearest hit of a ray, at distance t: the point (1 - u - v) a + u b + v c of a triangle, or a point of another surface.
struct Nearest {
    t: f32,
    // Of a triangle: its number with the bit TRIANGLE; of a surface: its number.
    number: u32,
    // Of a triangle: its block and its lane in that. Of another surface: the part that is hit, such as the face of a cube.
    place: u32,
    lane: u32,
    u: f32,
    v: f32,
    found: bool,
}

const TRIANGLE: u32 = 0x80000000u;

// One kind of plane (minimum x, y, z, maximum x, y, z) of four children of a node; `half` is 0 or 1.
fn node_planes(node: u32, kind: u32, half: u32) -> vec4f {
    return float_record(launch.nodes_at + 14u * node + 2u * kind + half);
}

// One plane of one child of a node.
fn node_plane(node: u32, kind: u32, place: u32) -> f32 {
    return bitcast<f32>(records[launch.nodes_at + 14u * node + 2u * kind + (place >> 2u)][place & 3u]);
}

// Four of a node's children.
fn node_children(node: u32, half: u32) -> vec4u {
    return records[launch.nodes_at + 14u * node + 12u + half];
}

fn node_child(node: u32, place: u32) -> u32 {
    return records[launch.nodes_at + 14u * node + 12u + (place >> 2u)][place & 3u];
}

// One coordinate of one corner, for all triangles of a block.
fn block_corners(block: u32, corner: u32, axis: u32) -> vec4f {
    return float_record(launch.blocks_at + 10u * block + 3u * corner + axis);
}

fn block_triangles(block: u32) -> vec4u {
    return records[launch.blocks_at + 10u * block + 9u];
}

// One corner of one triangle.
fn block_corner(block: u32, lane: u32, corner: u32) -> vec3f {
    let at = launch.blocks_at + 10u * block + 3u * corner;
    return bitcast<vec3f>(vec3u(records[at][lane], records[at + 1u][lane], records[at + 2u][lane]));
}

fn corner_record(index: u32) -> Corner {
    let at = launch.corners_at + 5u * index;
    let normals = Rows(float_record(at), float_record(at + 1u), float_record(at + 2u));
    let rest = records[at + 4u];
    return Corner(normals, float_record(at + 3u), bitcast<vec2f>(rest.xy), rest.z, rest.w);
}

// The vertices of a triangle's corners in their mesh.
fn corner_vertices(index: u32) -> vec3u {
    let at = launch.corners_at + 5u * index;
    return vec3u(records[at].w, records[at + 1u].w, records[at + 2u].w);
}
