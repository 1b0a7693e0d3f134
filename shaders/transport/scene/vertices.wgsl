// Derivatives by vertices of meshes, and by the normals there, that are parameters (docs/method.md, section 21).

#import bind/bvh
#import bind/parameters
#import common/math
#import transport/scene/motion
#import transport/scene/records
#import transport/scene/shape

#ifdef REPLAY
#ifdef MOTIONS

// Derivatives by up to three ranges of parameters' entries: the parameter (NONE for none), the first entry, the number of
// entries (one or three), and the derivatives.
struct Sent {
    slots: vec3u,
    first: vec3u,
    channels: vec3u,
    d: array<vec3f, 3>,
}

// Derivatives by a parameter's values at three vertices, three entries each.
fn vertices_sent(vertices: vec3u, slot: u32, d: array<vec3f, 3>) -> Sent {
    return Sent(vec3u(slot), 3u * vertices, vec3u(3u), d);
}

// The triangle of a point of a mesh, among those of all meshes.
fn triangle_of(hit: Hit) -> u32 {
    if hit.point.triangle != NONE {
        return hit.point.triangle;
    }
    return block_triangles(hit.primitive / 4u)[hit.primitive % 4u];
}

// The barycentric weights of a point in its triangle.
fn shares_of(hit: Hit) -> vec3f {
    return vec3f(1.0 - hit.point.weights.x - hit.point.weights.y, hit.point.weights);
}

// The normal interpolated between a triangle's corners at a point, before normalisation, on the side of the surface's normal.
fn mean_normal(hit: Hit) -> vec3f {
    let normals = corner_record(triangle_of(hit)).normals;
    let shares = shares_of(hit);
    let mean = normals[0].xyz * shares.x + normals[1].xyz * shares.y + normals[2].xyz * shares.z;
    return mean * surface_record(hit.surface).side;
}

// The derivative by the interpolated corner normals' sum, from that by the shading normal; zero where they cancel out, and
// the face's own normal is taken.
fn mean_normal_adjoint(hit: Hit, by_normal: vec3f) -> vec3f {
    let mean = mean_normal(hit);
    let square = dot(mean, mean);
    if square == 0.0 {
        return vec3f(0.0);
    }
    let shorter = 1.0 / sqrt(square);
    return direction_adjoint(mean * shorter, shorter * surface_record(hit.surface).side, by_normal);
}

// The derivatives by the normals of a triangle's corners, from that by the shading normal.
fn turned_normal_adjoint(hit: Hit, slot: u32, by_normal: vec3f) -> Sent {
    let by_mean = mean_normal_adjoint(hit, by_normal);
    let shares = shares_of(hit);
    let d = array<vec3f, 3>(by_mean * shares.x, by_mean * shares.y, by_mean * shares.z);
    return vertices_sent(corner_vertices(triangle_of(hit)), slot, d);
}

// The position of a vertex.
fn vertices_position(motion: Motion, vertex: u32) -> vec3f {
    let first = parameter_first(motion.vertices);
    if motion.relief == NONE {
        return value_color(first + 3u * vertex);
    }
    let displaced = displaced_record(motion.relief + vertex);
    var height = 0.0;
    for (var k = 0u; k < 4u; k++) {
        height += value(first + displaced.texels[k]) * displaced.weights[k];
    }
    return displaced.rest + displaced.along * height;
}

// The derivatives by the vertices of a triangle, from those by a point that follows them and by the quantities of the surface
// there. Where the mesh is smooth, the normals of its vertices follow from the faces around them, to whose vertices
// derivatives are sent.
fn moved_triangle_adjoint(motion: Motion, hit: Hit, by_p: vec3f, by: Changes) -> Sent {
    let triangle = triangle_of(hit);
    let vertices = corner_vertices(triangle);
    let a = vertices_position(motion, vertices.x);
    let ab = vertices_position(motion, vertices.y) - a;
    let ac = vertices_position(motion, vertices.z) - a;
    let shares = shares_of(hit);
    let side = surface_record(hit.surface).side;
    // The normal, as long as twice the triangle's area.
    let face = cross(ab, ac);
    let longer = 1.0 / sqrt(dot(face, face));
    var by_face = by.by_area * (longer * side);
    var flat_face = true;
#ifdef TRAILS
    if motion.around != NONE {
        let by_mean = mean_normal_adjoint(hit, by.by_normal);
        let mean = mean_normal(hit);
        flat_face = dot(mean, mean) == 0.0;
        for (var k = 0u; k < 3u; k++) {
            vertex_normal_adjoint(motion, vertices[k], by_mean * shares[k]);
        }
    }
#endif
    if flat_face {
        by_face += direction_adjoint(face * longer, longer * side, by.by_normal);
    }
    // The derivative by u is a linear combination of the edges.
    let corners = corner_record(triangle);
    let first = corners.uv_ab.zw - corners.uv_ab.xy;
    let second = corners.uv_c - corners.uv_ab.xy;
    let determinant = first.x * second.y - first.y * second.x;
    var along = vec2f(1.0, 0.0);
    if determinant != 0.0 {
        along = vec2f(second.y, -first.y) / determinant;
    }
    let by_ab = cross(ac, by_face) + by.by_tangent * along.x;
    let by_ac = cross(by_face, ab) + by.by_tangent * along.y;
    let d = array<vec3f, 3>(by_p * shares.x - (by_ab + by_ac), by_p * shares.y + by_ab, by_p * shares.z + by_ac);
    return vertices_sent(vertices, motion.vertices, d);
}

#ifdef TRAILS

// The angle between two vectors of any length but zero.
fn angle(a: vec3f, b: vec3f) -> f32 {
    let across = cross(a, b);
    return arc_tangent(sqrt(dot(across, across)), dot(a, b));
}

// The two other vertices of a triangle around a vertex, in the order in which they are wound.
fn others_around(place: u32) -> vec2u {
    return vec2u(around_value(place), around_value(place + 1u));
}

// The normals of the triangles around a vertex, which the places from `first` to `end` list, weighed by their angles there
// (Thuermer1998); triangles without area have none.
fn sum_of_normals(motion: Motion, first: u32, end: u32, here: vec3f) -> vec3f {
    var sum = vec3f(0.0);
    for (var place = first; place < end; place += 2u) {
        let others = others_around(place);
        let a = vertices_position(motion, others.x) - here;
        let b = vertices_position(motion, others.y) - here;
        let face = cross(a, b);
        let square = dot(face, face);
        if square > 0.0 {
            sum += face * (angle(a, b) / sqrt(square));
        }
    }
    return sum;
}

// Sends the derivatives by the vertices around one, from `d` by the unit normal there.
fn vertex_normal_adjoint(motion: Motion, vertex: u32, d: vec3f) {
    let first = around_value(motion.around + vertex);
    let end = around_value(motion.around + vertex + 1u);
    let here = vertices_position(motion, vertex);
    let sum = sum_of_normals(motion, first, end, here);
    let square = dot(sum, sum);
    if square <= 0.0 {
        return;
    }
    let shorter = 1.0 / sqrt(square);
    let by_sum = direction_adjoint(sum * shorter, shorter, d);
    var by_here = vec3f(0.0);
    // Each triangle, and at last the vertex itself.
    for (var place = first; place <= end; place += 2u) {
        var vertices = vec3u(vertex, vertex, vertex);
        var by = array<vec3f, 3>(by_here, vec3f(0.0), vec3f(0.0));
        if place < end {
            let others = others_around(place);
            let a = vertices_position(motion, others.x) - here;
            let b = vertices_position(motion, others.y) - here;
            let face = cross(a, b);
            let face_square = dot(face, face);
            if face_square <= 0.0 {
                continue;
            }
            let smaller = 1.0 / sqrt(face_square);
            let normal = face * smaller;
            let by_face = direction_adjoint(normal, smaller, by_sum * angle(a, b));
            // An edge that turns away from the other makes the angle grow.
            let by_angle = dot(normal, by_sum);
            let by_a = cross(b, by_face) - cross(normal, a) * (by_angle / dot(a, a));
            let by_b = cross(by_face, a) + cross(normal, b) * (by_angle / dot(b, b));
            vertices = vec3u(others, vertex);
            by = array<vec3f, 3>(by_a, by_b, vec3f(0.0));
            by_here -= by_a + by_b;
        }
        send(vertices_sent(vertices, motion.vertices, by), motion.relief);
    }
}

#endif
#endif
#endif
