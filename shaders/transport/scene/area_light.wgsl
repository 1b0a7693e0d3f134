// Area lights: sampling a point of an emissive shape, by area, by solid angle or by its texture.

#import common/math
#import transport/rays/sampler
#import transport/scene/shape
#import transport/scene/records

// Samples a direction to an area light: by its texture's table, in the cone of a sphere, or uniform by area.
fn sample_area(record: Light, p: vec3f, u: vec2f, sampler: ptr<function, Sampler>) -> Drawn {
    let shape = surface_record(record.surface);
    if record.cells.x == 0u && is_shape(shape.kind, SURFACE_SPHERE) && shape.side > 0.0 {
        return sample_sphere(record, p, u);
    }
    let place = sample_place(record, shape, u, sampler);
    let to = place.point.p - p;
    let square = dot(to, to);
    let distance = sqrt(square);
    let direction = to / distance;
    let cosine = -dot(direction, place.normal);
    if square == 0.0 || !(cosine > 0.0) {
        return DARK;
    }
    let weight = cosine * place.area / square;
    return Drawn(0u, direction, distance, weight, square / (cosine * place.by_area), place.point, place.normal, true);
}

// A point on a light; `area` is one over its area pdf, `by_area` the same with the rounding of area_pdf.
struct Place {
    point: SurfacePoint,
    normal: vec3f,
    area: f32,
    by_area: f32,
}

// Samples a point of an area light: by its texture's table, or uniform by area.
fn sample_place(record: Light, shape: Surface, u: vec2f, sampler: ptr<function, Sampler>) -> Place {
    if record.cells.x > 0u {
        return sample_texture(record, shape, u);
    }
    if is_shape(shape.kind, SURFACE_CUBE) || is_shape(shape.kind, SURFACE_MESH) {
        return sample_emissive_triangle(record, sampler_draw(sampler), u);
    }
    return sample_uniform(record, shape, u);
}

// A uniform point of a rectangle, disk, cylinder or sphere.
fn sample_uniform(record: Light, shape: Surface, u: vec2f) -> Place {
    // Maps uniform u and v to coordinates that are uniform by area.
    var uv = u;
    if is_shape(shape.kind, SURFACE_DISK) {
        uv.x = sqrt(u.x);
    } else if is_shape(shape.kind, SURFACE_SPHERE) {
        uv.y = arc_cosine(1.0 - 2.0 * u.y) / PI;
    }
    let local = at_uv(shape.kind, uv);
    let q = transform_point(shape.to_world, local.p);
    return Place(surface_point_new(q, uv), world_normal(shape, local.normal), record.position.w, record.position.w);
}

// A point in local space and the normal there.
struct LocalPlace {
    p: vec3f,
    normal: vec3f,
}

// The point of a rectangle, disk, cylinder or sphere with the coordinates `uv`.
fn at_uv(kind: u32, uv: vec2f) -> LocalPlace {
    if is_shape(kind, SURFACE_DISK) {
        return LocalPlace(vec3f(uv.x * circle(uv.y), 0.0), vec3f(0.0, 0.0, 1.0));
    }
    if is_shape(kind, SURFACE_CYLINDER) {
        let around_axis = circle(uv.x);
        return LocalPlace(vec3f(around_axis, 2.0 * uv.y - 1.0), vec3f(around_axis, 0.0));
    }
    if is_shape(kind, SURFACE_SPHERE) {
        let polar = circle(0.5 * uv.y);
        let n = vec3f(circle(uv.x) * polar.y, polar.x);
        return LocalPlace(n, n);
    }
    return LocalPlace(vec3f(2.0 * uv - 1.0, 0.0), vec3f(0.0, 0.0, 1.0));
}

// Area per unit of u times v, over its mean: how a rectangle, disk, cylinder or sphere is stretched at `uv`.
fn stretch(kind: u32, uv: vec2f) -> f32 {
    if is_shape(kind, SURFACE_DISK) {
        return 2.0 * uv.x;
    }
    if is_shape(kind, SURFACE_SPHERE) {
        return 0.5 * PI * circle(0.5 * uv.y).y;
    }
    return 1.0;
}

// Index at which the cumulative probabilities of a row of a light's table begin.
fn row_start(record: Light, row: u32) -> u32 {
    return launch.environment_at + record.table + record.cells.y + 1u + row * (record.cells.x + 1u);
}

// Samples a cell of a textured light's table, then a uniform u and v in it.
fn sample_texture(record: Light, shape: Surface, u: vec2f) -> Place {
    let row = draw(launch.environment_at + record.table, record.cells.y, u.y);
    let column = draw(row_start(record, row.bin), record.cells.x, u.x);
    let cell = vec2f(vec2u(column.bin, row.bin));
    let uv = min((cell + vec2f(column.place, row.place)) / vec2f(record.cells), vec2f(BELOW_ONE));
    let local = at_uv(shape.kind, uv);
    let area = 1.0 / texture_pdf(record, shape.kind, uv);
    let point = surface_point_new(transform_point(shape.to_world, local.p), uv);
    return Place(point, world_normal(shape, local.normal), area, area);
}

// The area pdf of sample_texture at `uv`.
fn texture_pdf(record: Light, kind: u32, uv: vec2f) -> f32 {
    let cell = min(vec2u(uv * vec2f(record.cells)), record.cells - 1u);
    let marginal = launch.environment_at + record.table + cell.y;
    let of_row = bounds[marginal + 1u] - bounds[marginal];
    let first = row_start(record, cell.y) + cell.x;
    let of_cell = bounds[first + 1u] - bounds[first];
    // At the centre of a disk and the poles of a sphere the stretch is zero, and a pdf must stay finite.
    let area = record.position.w * max(stretch(kind, uv), 1e-6);
    return of_row * of_cell * (f32(record.cells.x) * f32(record.cells.y)) / area;
}

// Samples a point on a light's emissive triangles: a triangle by its share of the area, then a uniform point.
fn sample_emissive_triangle(record: Light, share: f32, u: vec2f) -> Place {
    var low = 0u;
    var high = record.emissive_triangles;
    while high - low > 1u {
        let middle = (low + high) / 2u;
        if emissive_triangle_record(record.first_emissive + middle).begins <= share {
            low = middle;
        } else {
            high = middle;
        }
    }
    let shining = emissive_triangle_record(record.first_emissive + low);
    let ab = shining.b - shining.a;
    let ac = shining.c - shining.a;
    let face = cross(ab, ac);
    let root = sqrt(1.0 - u.x);
    let to_b = 1.0 - root;
    let to_c = root * u.y;
    let q = shining.a + ab * to_b + ac * to_c;
    let size = sqrt(dot(face, face));
    let area = 0.5 * size / (shining.ends - shining.begins);
    let uv_a = shining.uv_ab.xy;
    let uv = uv_a + (shining.uv_ab.zw - uv_a) * to_b + (shining.uv_c - uv_a) * to_c;
    // The records of a light with flipped normals list the corners in reverse order.
    let backwards = surface_record(record.surface).side < 0.0;
    let weights = select(vec2f(to_b, to_c), vec2f(to_c, to_b), backwards);
    return Place(SurfacePoint(q, uv, shining.triangle, weights), face / size, area, record.position.w);
}

// The sphere of an area light: centre and radius in the world. `to_world` of a sphere is a similarity.
fn sphere_of(record: Light) -> vec4f {
    return vec4f(record.position.xyz, record.direction.w);
}

// The squared distance from the centre up to which a point counts as being on the sphere, which then is not sampled from it:
// its cone of directions would be a hemisphere that sees only the sphere's inside, which does not emit. The margin is for
// rays that leave a surface from a point that is off it by rounding.
fn own_square(sphere: vec4f) -> f32 {
    let extent = sphere.w + abs(sphere.x) + abs(sphere.y) + abs(sphere.z);
    let reach = sphere.w + 4.0 * ROUNDING * extent;
    return reach * reach;
}

fn sample_sphere(record: Light, p: vec3f, u: vec2f) -> Drawn {
    let sphere = sphere_of(record);
    let radius = sphere.w;
    let to = sphere.xyz - p;
    let square = dot(to, to);
    if square <= own_square(sphere) {
        return DARK;
    }
    let cap = cone(square, radius);
    let direction = around(unit(to), 1.0 - u.x * cap.y, u.y);
    // The nearer intersection of the ray with the sphere, by a product: as the root of a difference of squares, half of the
    // chord would be rounding alone at a small or distant sphere.
    let chord2 = cap.y * (1.0 - u.x) * (2.0 - cap.y * (1.0 + u.x));
    let distance = sqrt(square) * (1.0 - u.x * cap.y - sqrt(max(chord2, 0.0)));
    let point = surface_point_new(along(p, direction, distance), vec2f(0.0));
    return Drawn(0u, direction, distance, 1.0 / cap.x, cap.x, point, (point.p - sphere.xyz) / radius, true);
}

// Pdf of uniform directions in the cone of a sphere at squared distance `square`, and one minus the cone's cosine.
fn cone(square: f32, radius: f32) -> vec2f {
    let sine2 = radius * radius / square;
    // 1 - sqrt(1 - x) without cancellation.
    let height = sine2 / (1.0 + sqrt(max(1.0 - sine2, 0.0)));
    return vec2f(1.0 / (2.0 * PI * height), height);
}

// The pdf with which light_sample draws, from `p`, the direction that hit an emissive surface.
fn area_pdf(p: vec3f, direction: vec3f, hit: Hit) -> f32 {
    let shape = surface_record(hit.surface);
    let record = light_record(shape.light);
    let to = hit.point.p - p;
    let cosine = -dot(direction, hit.normal);
    var pdf = 0.0;
    if record.cells.x > 0u {
        pdf = dot(to, to) / cosine * texture_pdf(record, shape.kind, hit.point.uv);
    } else if is_shape(shape.kind, SURFACE_SPHERE) && shape.side > 0.0 {
        let sphere = sphere_of(record);
        let to_center = sphere.xyz - p;
        let square = dot(to_center, to_center);
        if square <= own_square(sphere) {
            return 0.0;
        }
        pdf = cone(square, sphere.w).x;
    } else {
        pdf = dot(to, to) / (cosine * record.position.w);
    }
    return with_choice(record, pdf);
}
