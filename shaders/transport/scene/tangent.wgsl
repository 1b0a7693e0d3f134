// Derivatives of a surface's point by its texture coordinates: the tangents that anisotropic BSDFs and normal maps are
// aligned with.

#import bind/bvh
#import transport/rays/camera
#import transport/rays/sampler
#import transport/scene/records
#import transport/scene/shape

// Radians of a whole turn.
const TURN: f32 = 6.2831855;

// The derivatives of a point by its texture coordinates.
struct Derivatives {
    dp_du: vec3f,
    dp_dv: vec3f,
}

// The two axes beside the shading normal: along the derivative by u as far as that is tangential, and perpendicular to
// both.
fn tangents(hit: Hit) -> Frame {
    let n = hit.shading;
    let s = across_normal(derivatives(hit).dp_du, n);
    if all(s == vec3f(0.0)) {
        return frame(n);
    }
    let axis = unit(s);
    return Frame(axis, cross(n, axis));
}

// The part of the derivative by u perpendicular to the shading normal; zero where rounding leaves it no direction.
fn across_normal(dp_du: vec3f, n: vec3f) -> vec3f {
    let across = dp_du - n * dot(n, dp_du);
    return select(across, vec3f(0.0), dot(across, across) <= 1.1920929e-7 * dot(dp_du, dp_du));
}

// The derivatives by u and v in the world; zero where they are not known, as at a sphere's poles.
fn derivatives(hit: Hit) -> Derivatives {
    let record = surface_record(hit.surface);
    if is_shape(record.kind, SURFACE_MESH) {
        return triangle_derivatives(hit.primitive);
    }
    let local = local_derivatives(record.kind, hit.primitive, transform_point(record.to_local, hit.point.p));
    return Derivatives(transform_vector(record.to_world, local.dp_du), transform_vector(record.to_world, local.dp_dv));
}

// The same in the space of a shape that is no mesh.
fn local_derivatives(kind: u32, part: u32, p: vec3f) -> Derivatives {
    if is_shape(kind, SURFACE_CUBE) {
        // Texture coordinates are linear in the point.
        let origin = cube_uv(part, vec3f(0.0));
        let x = cube_uv(part, vec3f(1.0, 0.0, 0.0)) - origin;
        let y = cube_uv(part, vec3f(0.0, 1.0, 0.0)) - origin;
        let z = cube_uv(part, vec3f(0.0, 0.0, 1.0)) - origin;
        return Derivatives(4.0 * vec3f(x.x, y.x, z.x), 4.0 * vec3f(x.y, y.y, z.y));
    }
    let radius = sqrt(p.x * p.x + p.y * p.y);
    let around = vec3f(-TURN * p.y, TURN * p.x, 0.0);
    if is_shape(kind, SURFACE_DISK) {
        var out = vec3f(0.0);
        if radius > 0.0 {
            out = vec3f(p.xy / radius, 0.0);
        }
        return Derivatives(out, around);
    }
    if is_shape(kind, SURFACE_CYLINDER) {
        return Derivatives(around, vec3f(0.0, 0.0, 2.0));
    }
    if is_shape(kind, SURFACE_SPHERE) {
        var meridian = vec3f(0.0);
        if radius > 0.0 {
            meridian = vec3f(p.x * p.z / radius, p.y * p.z / radius, -radius);
        }
        return Derivatives(around, 0.5 * TURN * meridian);
    }
    if is_shape(kind, SURFACE_DISTANCES) {
        return Derivatives(vec3f(0.0), vec3f(0.0));
    }
    return Derivatives(vec3f(2.0, 0.0, 0.0), vec3f(0.0, 2.0, 0.0));
}

// The derivatives on a triangle, from the texture coordinates of its corners; its edges where these are collinear.
fn triangle_derivatives(place: u32) -> Derivatives {
    let block = place / 4u;
    let lane = place % 4u;
    let a = block_corner(block, lane, 0u);
    let ab = block_corner(block, lane, 1u) - a;
    let ac = block_corner(block, lane, 2u) - a;
    let corners = corner_record(block_triangles(block)[lane]);
    let first = corners.uv_ab.zw - corners.uv_ab.xy;
    let second = corners.uv_c - corners.uv_ab.xy;
    let determinant = first.x * second.y - first.y * second.x;
    if determinant == 0.0 {
        return Derivatives(ab, ac);
    }
    let scale = 1.0 / determinant;
    return Derivatives(scale * (second.y * ab - first.y * ac), scale * (first.x * ac - second.x * ab));
}

#ifdef MOVES

// Derivatives of quantities of a surface by moving over it. The columns of matrices are the rows of Rust: a matrix times the
// derivative by the quantity gives that by the point.
struct SurfaceSlopes {
    // Of the shading normal.
    normal: mat3x3f,
    // Of the derivative of the point by u, whose direction alone counts.
    tangent: mat3x3f,
    // Of the texture coordinates.
    u: vec3f,
    v: vec3f,
}

// The derivatives at a hit; motions away from the surface count for nothing.
fn slopes(hit: Hit) -> SurfaceSlopes {
    let record = surface_record(hit.surface);
    if is_shape(record.kind, SURFACE_MESH) {
        return triangle_slopes(hit);
    }
    let p = transform_point(record.to_local, hit.point.p);
    let radius = sqrt(p.x * p.x + p.y * p.y);
    // In local space: the normal and its derivatives, those of the derivative by u, and those of the texture coordinates.
    var about = vec3f(0.0);
    if radius > 0.0 {
        about = vec3f(-p.y, p.x, 0.0) / (TURN * radius * radius);
    }
    var round = vec3f(0.0);
    var tangent = mat3x3f();
    var u = vec3f(0.5, 0.0, 0.0);
    var v = vec3f(0.0, 0.5, 0.0);
    if is_shape(record.kind, SURFACE_SPHERE) || is_shape(record.kind, SURFACE_CYLINDER) {
        let is_sphere = is_shape(record.kind, SURFACE_SPHERE);
        round = vec3f(1.0, 1.0, select(0.0, 1.0, is_sphere));
        tangent = mat3x3f(vec3f(0.0, -TURN, 0.0), vec3f(TURN, 0.0, 0.0), vec3f(0.0));
        u = about;
        v = vec3f(0.0, 0.0, 0.5);
        if is_sphere {
            v.z = select(0.0, -2.0 / (TURN * radius), radius > 0.0);
        }
    } else if is_shape(record.kind, SURFACE_DISK) {
        var out = vec3f(0.0);
        var scale = 0.0;
        if radius > 0.0 {
            out = vec3f(p.xy / radius, 0.0);
            scale = 1.0 / radius;
        }
        tangent = mat3x3f(
            vec3f(out.y, -out.x, 0.0) * (out.y * scale),
            vec3f(-out.y, out.x, 0.0) * (out.x * scale),
            vec3f(0.0),
        );
        u = out;
        v = about;
    } else if is_shape(record.kind, SURFACE_CUBE) {
        let origin = cube_uv(hit.primitive, vec3f(0.0));
        let x = cube_uv(hit.primitive, vec3f(1.0, 0.0, 0.0)) - origin;
        let y = cube_uv(hit.primitive, vec3f(0.0, 1.0, 0.0)) - origin;
        let z = cube_uv(hit.primitive, vec3f(0.0, 0.0, 1.0)) - origin;
        u = vec3f(x.x, y.x, z.x);
        v = vec3f(x.y, y.y, z.y);
    }
    let inwards = mat3x3f(record.to_local[0].xyz, record.to_local[1].xyz, record.to_local[2].xyz);
    let outwards = mat3x3f(record.to_world[0].xyz, record.to_world[1].xyz, record.to_world[2].xyz);
    let distance = length(inwards * (round * p));
    var normal = mat3x3f();
    if distance > 0.0 {
        let columns = transpose(inwards);
        let bend = inwards * mat3x3f(round * columns[0], round * columns[1], round * columns[2]);
        normal = across(bend, hit.shading, record.side / distance);
    }
    return SurfaceSlopes(normal, inwards * tangent * outwards, inwards * u, inwards * v);
}

// The slopes on a triangle, where texture coordinates and the sum of the corners' normals are linear.
fn triangle_slopes(hit: Hit) -> SurfaceSlopes {
    let block = hit.primitive / 4u;
    let lane = hit.primitive % 4u;
    let a = block_corner(block, lane, 0u);
    let ab = block_corner(block, lane, 1u) - a;
    let ac = block_corner(block, lane, 2u) - a;
    let corners = corner_record(block_triangles(block)[lane]);
    let face = cross(ab, ac);
    let square = dot(face, face);
    if square == 0.0 {
        return SurfaceSlopes(mat3x3f(), mat3x3f(), vec3f(0.0), vec3f(0.0));
    }
    // Gradients of the barycentric weights of b and of c.
    let to_b = cross(ac, face) / square;
    let to_c = cross(face, ab) / square;
    let first = corners.uv_ab.zw - corners.uv_ab.xy;
    let second = corners.uv_c - corners.uv_ab.xy;
    let n = corners.normals[0].xyz;
    let nb = corners.normals[1].xyz - n;
    let nc = corners.normals[2].xyz - n;
    let from_a = hit.point.p - a;
    let distance = length(n + nb * dot(to_b, from_a) + nc * dot(to_c, from_a));
    var normal = mat3x3f();
    if distance > 0.0 {
        let bend = mat3x3f(to_b * nb.x + to_c * nc.x, to_b * nb.y + to_c * nc.y, to_b * nb.z + to_c * nc.z);
        normal = across(bend, hit.shading, surface_record(hit.surface).side / distance);
    }
    return SurfaceSlopes(normal, mat3x3f(), to_b * first.x + to_c * second.x, to_b * first.y + to_c * second.y);
}

// The part of a matrix's image across the unit vector `n`, times a number.
fn across(m: mat3x3f, n: vec3f, scale: f32) -> mat3x3f {
    let along = m * n;
    return mat3x3f((m[0] - along * n.x) * scale, (m[1] - along * n.y) * scale, (m[2] - along * n.z) * scale);
}

#endif
