// Points of meshes whose vertices, or the normals there, follow parameters: the derivatives by these (docs/method.md, section 21).

#import bind/bvh
#import transport/scene/records
#import transport/scene/shape

#ifdef REPLAY
#ifdef MOTIONS

// Derivatives by up to three parts of parameters, of one or three entries each from the first one on; NONE for none.
struct Sent {
    slots: vec3u,
    first: vec3u,
    channels: vec3u,
    d: array<vec3f, 3>,
}

// The derivatives by what three corners have in this parameter, three entries each.
fn corners_sent(triangle: u32, slot: u32, d: array<vec3f, 3>) -> Sent {
    return Sent(vec3u(slot), 3u * corner_vertices(triangle), vec3u(3u), d);
}

// The derivatives by the normals of a triangle's corners, from that by the shading normal.
fn turned_normal_adjoint(hit: Hit, slot: u32, by_normal: vec3f) -> Sent {
    let triangle = block_triangles(hit.primitive / 4u)[hit.primitive % 4u];
    let corners = corner_record(triangle);
    let shares = corners_shares(hit);
    let mean = corners.normals[0].xyz * shares.x + corners.normals[1].xyz * shares.y + corners.normals[2].xyz * shares.z;
    let square = dot(mean, mean);
    // Where they cancel out, the face's own normal is taken.
    var by_mean = vec3f(0.0);
    if square > 0.0 {
        let n = mean / sqrt(square);
        by_mean = (by_normal - n * dot(n, by_normal)) * (surface_record(hit.surface).side / sqrt(square));
    }
    return corners_sent(triangle, slot, array<vec3f, 3>(by_mean * shares.x, by_mean * shares.y, by_mean * shares.z));
}

// The derivatives by the vertices of a flat triangle, from those by a point that follows them, by the triangle's normal and by
// the derivative of the point by u.
fn moved_triangle_adjoint(hit: Hit, slot: u32, by_p: vec3f, by_normal: vec3f, by_tangent: vec3f) -> Sent {
    let block = hit.primitive / 4u;
    let lane = hit.primitive % 4u;
    let triangle = block_triangles(block)[lane];
    let a = block_corner(block, lane, 0u);
    let ab = block_corner(block, lane, 1u) - a;
    let ac = block_corner(block, lane, 2u) - a;
    // The normal, as long as twice the triangle's area.
    let face = cross(ab, ac);
    let longer = 1.0 / sqrt(dot(face, face));
    let n = face * longer;
    let by_face = (by_normal - n * dot(n, by_normal)) * (longer * surface_record(hit.surface).side);
    // The derivative by u is a mean of the edges.
    let corners = corner_record(triangle);
    let first = corners.uv_ab.zw - corners.uv_ab.xy;
    let second = corners.uv_c - corners.uv_ab.xy;
    let determinant = first.x * second.y - first.y * second.x;
    var along = vec2f(1.0, 0.0);
    if determinant != 0.0 {
        along = vec2f(second.y, -first.y) / determinant;
    }
    let by_ab = cross(ac, by_face) + by_tangent * along.x;
    let by_ac = cross(by_face, ab) + by_tangent * along.y;
    let shares = corners_shares(hit);
    return corners_sent(
        triangle,
        slot,
        array<vec3f, 3>(by_p * shares.x - (by_ab + by_ac), by_p * shares.y + by_ab, by_p * shares.z + by_ac),
    );
}

// The shares of a point in the corners of its triangle.
fn corners_shares(hit: Hit) -> vec3f {
    return vec3f(1.0 - hit.point.weights.x - hit.point.weights.y, hit.point.weights);
}

#endif
#endif
