// How a surface's point moves in the world with its texture coordinates: the tangents that anisotropic BSDFs are aligned
// with.

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
    let dp_du = derivatives(hit).dp_du;
    let s = dp_du - n * dot(n, dp_du);
    if dot(s, s) <= 1.1920929e-7 * dot(dp_du, dp_du) {
        return frame(n);
    }
    let axis = unit(s);
    return Frame(axis, cross(n, axis));
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

// Those of a triangle, from its corners' coordinates; its edges where these are on a line.
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
