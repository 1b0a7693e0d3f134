// Intersections of rays with surfaces.

#import common/math
#import transport/rays/sampler
#ifdef RAY_QUERIES
#import bind/hierarchy
#else
#import transport/scene/bvh
#endif
#import transport/scene/distance_grid
#import transport/scene/records

// A point of a surface: its position, and the coordinates that textures are looked up by.
struct SurfacePoint {
    // In the world. Of a ray's intersection: projected onto the surface, which origin + t * direction misses by rounding.
    p: vec3f,
    uv: vec2f,
    // Of a mesh its triangle, among all meshes', and the barycentric weights of the second and the third corner.
    triangle: u32,
    weights: vec2f,
}

// A point of a surface that is not a mesh.
fn surface_point_new(p: vec3f, uv: vec2f) -> SurfacePoint {
    return SurfacePoint(p, uv, NONE, vec2f(0.0));
}

// A ray's intersection with a surface, if `found`.
struct Hit {
    t: f32,
    surface: u32,
    // Of a mesh the triangle's place: 4 * block + lane; of a cube the face: 2 * axis, plus 1 on the positive side; of
    // a grid of distances the cell.
    primitive: u32,
    point: SurfacePoint,
    // Offset along the normal that keeps a new ray from hitting the same surface by rounding.
    clearance: f32,
    // Geometric unit normal in the world: outwards from a closed shape, unless flipped.
    normal: vec3f,
    // Shading unit normal: on a mesh interpolated between vertex normals.
    shading: vec3f,
    found: bool,
}

// No intersection before `far`.
fn no_hit(far: f32) -> Hit {
    return Hit(far, 0u, 0u, surface_point_new(vec3f(0.0), vec2f(0.0)), 0.0, vec3f(0.0), vec3f(0.0), false);
}

// Relative error bound of a point on a surface and of its transform to local space: about ten roundings of half an
// epsilon each, with a safety factor of three.
const ROUNDING: f32 = 16.0 * 1.1920929e-7;

// The hit point, offset to the side on which a ray in `direction` leaves.
fn leave(hit: Hit, direction: vec3f) -> vec3f {
    let step = select(hit.clearance, -hit.clearance, dot(hit.normal, direction) < 0.0);
    return along(hit.point.p, hit.normal, step);
}

// An intersection in local space.
struct Found {
    t: f32,
    // Face of a cube: 2 * axis, plus 1 on the positive side; cell of a distance grid.
    part: u32,
    met: bool,
}

const MISSED: Found = Found(0.0, 0u, false);

// The nearest intersection of the ray with any surface, between 0 and `far`; if `any`, any intersection there.
fn nearest(origin: vec3f, direction: vec3f, far: f32, any: bool) -> Nearest {
    let first = nearest_in_turn(origin, direction, far, any);
    if BVH && !(any && first.found) {
        return bvh_intersect(origin, direction, first, any);
    }
    return first;
}

// The same among the shapes that rays test one by one, which neighbouring invocations do in step. There are none where the
// scene has so many shapes that they are in the BVH.
fn nearest_in_turn(origin: vec3f, direction: vec3f, far: f32, any: bool) -> Nearest {
    var first = Nearest(far, 0u, 0u, 0u, 0.0, 0.0, false);
    let count = single_count();
    for (var i = 0u; i < count; i++) {
        let number = single_record(i);
        let found = intersect_shape(number, origin, direction, first.t);
        if found.met {
            first = Nearest(found.t, number, found.part, 0u, 0.0, 0.0, true);
            if any {
                return first;
            }
        }
    }
    return first;
}

// `nearest`, with the surface data there.
fn intersect(origin: vec3f, direction: vec3f, far: f32) -> Hit {
    return describe(nearest(origin, direction, far, false), origin, direction, far);
}

// Surface data at a ray's nearest intersection between 0 and `far`.
fn describe(met: Nearest, origin: vec3f, direction: vec3f, far: f32) -> Hit {
    if !met.found {
        return no_hit(far);
    }
    if (SHAPES & (1u << SURFACE_MESH)) != 0u && met.number >= TRIANGLE {
        return describe_triangle(met);
    }
    return describe_surface(met.number, Found(met.t, met.place, true), origin, direction);
}

// The first intersection with one surface other than a mesh, between 0 and `far`.
fn intersect_shape(surface: u32, origin: vec3f, direction: vec3f, far: f32) -> Found {
    let record = surface_record(surface);
    let o = transform_point(record.to_local, origin);
    let d = transform_vector(record.to_local, direction);
    if is_shape(record.kind, SURFACE_CUBE) {
        return intersect_cube(o, d, far);
    }
    if is_shape(record.kind, SURFACE_SPHERE) {
        return intersect_sphere(o, d, far);
    }
    if is_shape(record.kind, SURFACE_RECTANGLE) {
        return intersect_rectangle(o, d, far);
    }
    if is_shape(record.kind, SURFACE_DISK) {
        return intersect_disk(o, d, far);
    }
    if is_shape(record.kind, SURFACE_CYLINDER) {
        return intersect_cylinder(o, d, far);
    }
    if is_shape(record.kind, SURFACE_DISTANCES) {
        return intersect_distances(record.distances, o, d, far);
    }
    // Meshes are in the BVH alone.
    return MISSED;
}

// Surface data of a hit on a mesh's triangle.
fn describe_triangle(hit: Nearest) -> Hit {
    let corners = corner_record(hit.number & ~TRIANGLE);
    let record = surface_record(corners.shape);
    let a = block_corner(hit.place, hit.lane, 0u);
    let b = block_corner(hit.place, hit.lane, 1u);
    let c = block_corner(hit.place, hit.lane, 2u);
    // Geometric normal.
    let normal = unit(record.side * cross(b - a, c - a));
    // Interpolate position, shading normal and texture coordinates.
    let first = 1.0 - hit.u - hit.v;
    let p = first * a + hit.u * b + hit.v * c;
    let corner = max(max(abs(a), abs(b)), abs(c));
    let clearance = ROUNDING * max(max(corner.x, corner.y), corner.z);
    let mean = first * corners.normals[0].xyz + hit.u * corners.normals[1].xyz + hit.v * corners.normals[2].xyz;
    var shading = normal;
    if dot(mean, mean) > 0.0 {
        shading = unit(record.side * mean);
    }
    let uv = first * corners.uv_ab.xy + hit.u * corners.uv_ab.zw + hit.v * corners.uv_c;
    let point = SurfacePoint(p, uv, hit.number & ~TRIANGLE, vec2f(hit.u, hit.v));
    return Hit(hit.t, corners.shape, 4u * hit.place + hit.lane, point, clearance, normal, shading, true);
}

// Surface data of a hit on another surface.
fn describe_surface(surface: u32, found: Found, origin: vec3f, direction: vec3f) -> Hit {
    let record = surface_record(surface);
    let o = transform_point(record.to_local, origin);
    let d = transform_vector(record.to_local, direction);
    var p = o + found.t * d;
    var normal = vec3f(0.0, 0.0, 1.0);
    var shading = normal;
    var uv = 0.5 * p.xy + 0.5;
    if is_shape(record.kind, SURFACE_CUBE) {
        let axis = found.part >> 1u;
        let side = select(-1.0, 1.0, (found.part & 1u) == 1u);
        normal = select(vec3f(0.0), vec3f(side), vec3u(0u, 1u, 2u) == vec3u(axis));
        uv = cube_uv(found.part, p);
        p = select(p, normal, abs(normal) == vec3f(1.0));
    } else if is_shape(record.kind, SURFACE_SPHERE) {
        normal = unit(p);
        p = normal;
        uv = vec2f(turns(normal), arc_cosine(clamp(normal.z, -1.0, 1.0)) / PI);
    } else if is_shape(record.kind, SURFACE_DISK) {
        p.z = 0.0;
        uv = vec2f(sqrt(dot(p, p)), turns(p));
    } else if is_shape(record.kind, SURFACE_CYLINDER) {
        normal = unit(vec3f(p.xy, 0.0));
        p = vec3f(normal.xy, p.z);
        uv = vec2f(turns(normal), 0.5 * p.z + 0.5);
    } else if is_shape(record.kind, SURFACE_DISTANCES) {
        let level = level_point(record.distances, found.part, p, d);
        p = level.p;
        normal = level.normal;
        shading = world_normal(record, level.shading);
        uv = vec2f(0.0);
    } else {
        p.z = 0.0;
    }
    normal = world_normal(record, normal);
    if !is_shape(record.kind, SURFACE_DISTANCES) {
        shading = normal;
    }
    let world = transform_point(record.to_world, p);
    let offset = clearance(record, p, world, normal);
    return Hit(found.t, surface, found.part, surface_point_new(world, uv), offset, normal, shading, true);
}

// The coordinates of a point of the cube's surface, given its face.
fn cube_uv(part: u32, p: vec3f) -> vec2f {
    var across = p.yx;
    switch part {
        case 0u: {
            across = p.yz;
        }
        case 1u: {
            across = vec2f(p.y, -p.z);
        }
        case 2u: {
            across = p.zx;
        }
        case 3u: {
            across = -p.xz;
        }
        case 4u: {
            across = vec2f(-p.y, p.x);
        }
        default: {
        }
    }
    return 0.5 * across + 0.5;
}

// The angle about the z axis from the x axis, in whole turns between 0 and 1.
fn turns(p: vec3f) -> f32 {
    let u = arc_tangent(p.y, p.x) * (0.5 / PI);
    return u - floor(u);
}

// The offset along `normal` that a new ray needs from a point of a shape, `p` in local space and `world` in the world: the
// rounding of the point's transform to the world, or of its transform back by which the ray would meet the shape.
fn clearance(record: Surface, p: vec3f, world: vec3f, normal: vec3f) -> f32 {
    let m = record.to_world;
    // How far steps of one along the local axes go along the normal.
    let steps = normal.x * m[0].xyz + normal.y * m[1].xyz + normal.z * m[2].xyz;
    return ROUNDING * max(dot(abs(normal), terms(m, p)), dot(abs(steps), terms(record.to_local, world)));
}

// Sums of the magnitudes of the terms of each coordinate of a transformed point; times epsilon they bound its rounding errors.
fn terms(rows: Rows, p: vec3f) -> vec3f {
    let point = vec4f(abs(p), 1.0);
    return vec3f(dot(abs(rows[0]), point), dot(abs(rows[1]), point), dot(abs(rows[2]), point));
}

// Transforms a normal from local space to the world.
fn world_normal(record: Surface, n: vec3f) -> vec3f {
    let m = record.to_local;
    return unit(record.side * (m[0].xyz * n.x + m[1].xyz * n.y + m[2].xyz * n.z));
}

fn intersect_cube(o: vec3f, d: vec3f, far: f32) -> Found {
    var enter = -FAR;
    var exit = FAR;
    var first = 0u;
    var last = 0u;
    for (var a = 0u; a < 3u; a++) {
        if d[a] == 0.0 {
            if !(o[a] >= -1.0 && o[a] <= 1.0) {
                return MISSED;
            }
            continue;
        }
        let inverse = 1.0 / d[a];
        let low = (-1.0 - o[a]) * inverse;
        let high = (1.0 - o[a]) * inverse;
        let backwards = select(0u, 1u, d[a] < 0.0);
        let near = min(low, high);
        if near > enter {
            enter = near;
            first = 2u * a + backwards;
        }
        let end = max(low, high);
        if end < exit {
            exit = end;
            last = 2u * a + 1u - backwards;
        }
    }
    if enter > exit {
        return MISSED;
    }
    if enter > 0.0 {
        return Found(enter, first, enter < far);
    }
    return Found(exit, last, exit > 0.0 && exit < far);
}

fn intersect_sphere(o: vec3f, d: vec3f, far: f32) -> Found {
    // Solve from the foot of the perpendicular: o^2 - r^2 cancels for distant spheres (Haines2019).
    let dd = dot(d, d);
    let middle = -dot(o, d) / dd;
    let foot = o + middle * d;
    let height = 1.0 - dot(foot, foot);
    if height < 0.0 {
        return MISSED;
    }
    let half = sqrt(height / dd);
    let enter = middle - half;
    let exit = middle + half;
    if enter > 0.0 {
        return Found(enter, 0u, enter < far);
    }
    return Found(exit, 0u, exit > 0.0 && exit < far);
}

fn intersect_rectangle(o: vec3f, d: vec3f, far: f32) -> Found {
    if d.z == 0.0 {
        return MISSED;
    }
    let t = -o.z / d.z;
    let x = o.x + t * d.x;
    let y = o.y + t * d.y;
    return Found(t, 0u, t > 0.0 && t < far && abs(x) <= 1.0 && abs(y) <= 1.0);
}

fn intersect_disk(o: vec3f, d: vec3f, far: f32) -> Found {
    if d.z == 0.0 {
        return MISSED;
    }
    let t = -o.z / d.z;
    let x = o.x + t * d.x;
    let y = o.y + t * d.y;
    return Found(t, 0u, t > 0.0 && t < far && x * x + y * y <= 1.0);
}

// The cylinder of radius one around the z axis, from z = -1 to 1, without caps.
fn intersect_cylinder(o: vec3f, d: vec3f, far: f32) -> Found {
    // As in intersect_sphere, in the plane of x and y.
    let dd = d.x * d.x + d.y * d.y;
    if dd == 0.0 {
        return MISSED;
    }
    let middle = -(o.x * d.x + o.y * d.y) / dd;
    let x = o.x + middle * d.x;
    let y = o.y + middle * d.y;
    let height = 1.0 - (x * x + y * y);
    if height < 0.0 {
        return MISSED;
    }
    let half = sqrt(height / dd);
    let enter = middle - half;
    if enter > 0.0 && enter < far && abs(o.z + enter * d.z) <= 1.0 {
        return Found(enter, 0u, true);
    }
    let exit = middle + half;
    return Found(exit, 0u, exit > 0.0 && exit < far && abs(o.z + exit * d.z) <= 1.0);
}
