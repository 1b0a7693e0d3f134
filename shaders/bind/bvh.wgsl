// The hierarchy of all meshes' triangles, and what is known at their corners.

#import bind/scene

// Whether there is a mesh: a constant of the pipeline, so that scenes without one do not pay for the search.
override MESHES: bool = false;

fn node_record(index: u32) -> Node {
    let at = launch.nodes_at + 2u * index;
    let low = records[at];
    let high = records[at + 1u];
    return Node(bitcast<vec3f>(low.xyz), low.w, bitcast<vec3f>(high.xyz), high.w);
}

fn triangle_record(index: u32) -> Triangle {
    let at = launch.triangles_at + 3u * index;
    let a = records[at];
    let b = records[at + 1u];
    let c = records[at + 2u];
    return Triangle(bitcast<vec3f>(a.xyz), a.w, bitcast<vec3f>(b.xyz), b.w, bitcast<vec3f>(c.xyz), c.w);
}

fn corner_record(index: u32) -> Corner {
    let at = launch.corners_at + 5u * index;
    let normals = array<vec4f, 3>(float_record(at), float_record(at + 1u), float_record(at + 2u));
    return Corner(normals, array<vec4f, 2>(float_record(at + 3u), float_record(at + 4u)));
}
