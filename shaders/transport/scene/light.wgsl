// Lights: sampling a direction towards one, and its radiance or intensity.

#import common/math
#import transport/lookup/background
#import transport/rays/sampler
#import transport/scene/shape
#import transport/scene/records

// A sampled direction towards a light; the contribution is zero unless `lit`.
struct Drawn {
    light: u32,
    direction: vec3f,
    distance: f32,
    // Factor on the light's radiance or intensity: geometry term over pdf, the probability of choosing the light
    // included.
    weight: f32,
    // The pdf by solid angle; 0 for delta lights, which no path can hit.
    pdf: f32,
    lit: bool,
}

// The largest float below one.
const BELOW_ONE: f32 = 0.99999994;

const DARK: Drawn = Drawn(0u, vec3f(0.0), 0.0, 0.0, 0.0, false);

// Samples a light and a direction towards it from `p`.
fn light_sample(p: vec3f, sampler: ptr<function, Sampler>) -> Drawn {
    let count = f32(settings.lights);
    let index = min(u32(sampler_draw(sampler) * count), settings.lights - 1u);
    let u = sampler_draw(sampler);
    let v = sampler_draw(sampler);
    let record = light_record(index);
    var drawn: Drawn;
    switch record.kind {
        case LIGHT_POINT, LIGHT_SPOT: {
            drawn = sample_point(record, p);
        }
        case LIGHT_DIRECTIONAL: {
            drawn = Drawn(index, -record.direction.xyz, FAR, 1.0, 0.0, true);
        }
        case LIGHT_AREA: {
            drawn = sample_area(record, p, vec2f(u, v), sampler);
        }
        default: {
            drawn = sample_envmap(vec2f(u, v));
        }
    }
    drawn.light = index;
    drawn.weight *= count;
    drawn.pdf /= count;
    return drawn;
}

fn sample_point(record: Light, p: vec3f) -> Drawn {
    let to = record.position.xyz - p;
    let square = dot(to, to);
    let distance = sqrt(square);
    let direction = to / distance;
    var weight = 1.0 / square;
    if record.kind == LIGHT_SPOT {
        weight *= spot_falloff(record, direction);
    }
    return Drawn(0u, direction, distance, weight, 0.0, weight > 0.0 && is_finite(weight));
}

// Share of a spot light's intensity opposite to `direction`: one within the beam, then falling linearly with the
// angle, as in Mitsuba, to zero at the cutoff.
fn spot_falloff(record: Light, direction: vec3f) -> f32 {
    let cosine = -dot(record.direction.xyz, direction);
    if cosine >= record.cos_beam {
        return 1.0;
    }
    if cosine <= record.direction.w {
        return 0.0;
    }
    let cutoff = arc_cosine(record.direction.w);
    return (cutoff - arc_cosine(cosine)) / (cutoff - arc_cosine(record.cos_beam));
}

// Samples a direction to an area light: uniform by area, or in the cone of a sphere.
fn sample_area(record: Light, p: vec3f, u: vec2f, sampler: ptr<function, Sampler>) -> Drawn {
    let shape = surface_record(record.surface);
    var place: Place;
    switch shape.kind {
        case SURFACE_SPHERE: {
            return sample_sphere(record, p, u);
        }
        case SURFACE_RECTANGLE: {
            let q = transform_point(shape.to_world, vec3f(2.0 * u.x - 1.0, 2.0 * u.y - 1.0, 0.0));
            place = Place(q, world_normal(shape, vec3f(0.0, 0.0, 1.0)), record.position.w);
        }
        default: {
            place = sample_emissive_triangle(record, sampler_draw(sampler), u);
        }
    }
    let to = place.q - p;
    let square = dot(to, to);
    let distance = sqrt(square);
    let direction = to / distance;
    let cosine = -dot(direction, place.normal);
    if square == 0.0 || !(cosine > 0.0) {
        return DARK;
    }
    let weight = cosine * place.area / square;
    return Drawn(0u, direction, distance, weight, square / (cosine * record.position.w), true);
}

// A point on a light, and one over its area pdf.
struct Place {
    q: vec3f,
    normal: vec3f,
    area: f32,
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
    let facet = emissive_triangle_record(record.first_emissive + low);
    let ab = facet.b - facet.a;
    let ac = facet.c - facet.a;
    let face = cross(ab, ac);
    let root = sqrt(1.0 - u.x);
    let q = facet.a + ab * (1.0 - root) + ac * (root * u.y);
    let size = sqrt(dot(face, face));
    return Place(q, face / size, 0.5 * size / (facet.ends - facet.begins));
}

// The sphere of an area light: centre and radius in the world. `to_world` of a sphere is a similarity.
fn sphere_of(record: Light) -> vec4f {
    return vec4f(record.position.xyz, record.direction.w);
}

fn sample_sphere(record: Light, p: vec3f, u: vec2f) -> Drawn {
    let sphere = sphere_of(record);
    let radius = sphere.w;
    let to = sphere.xyz - p;
    let square = dot(to, to);
    if square <= radius * radius {
        return DARK;
    }
    let cap = cone(square, radius);
    let direction = around(unit(to), 1.0 - u.x * cap.y, u.y);
    // The nearer intersection of the ray with the sphere.
    let middle = dot(to, direction);
    let half = sqrt(max(radius * radius - (square - middle * middle), 0.0));
    return Drawn(0u, direction, middle - half, 1.0 / cap.x, cap.x, true);
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
    var pdf = 0.0;
    if shape.kind == SURFACE_SPHERE {
        let sphere = sphere_of(record);
        let to = sphere.xyz - p;
        let square = dot(to, to);
        if square <= sphere.w * sphere.w {
            return 0.0;
        }
        pdf = cone(square, sphere.w).x;
    } else {
        let to = hit.p - p;
        pdf = dot(to, to) / (-dot(direction, hit.normal) * record.position.w);
    }
    return pdf / f32(settings.lights);
}

// Columns and rows of the environment map's sampling table: each of its cells lies between four texels.
fn environment_size() -> vec2u {
    return vec2u(scene.env_size.x, max(scene.env_size.y, 2u) - 1u);
}

// Index at which a row's cumulative probabilities begin.
fn first_of_row(row: u32) -> u32 {
    let size = environment_size();
    return launch.environment_at + size.y + 1u + row * (size.x + 1u);
}

// Samples a direction from an environment map's table: a row by the marginal, a cell by the row's conditional, then a
// point in it with a bilinear pdf through the weights of its four texels (linear marginal, linear conditional).
fn sample_envmap(u: vec2f) -> Drawn {
    let size = environment_size();
    let row = draw(launch.environment_at, size.y, u.y);
    let column = draw(first_of_row(row.bin), size.x, u.x);
    let cell = vec2u(column.bin, row.bin);
    let weights = texel_weights(env_cell(scene.env_size, cell, vec2f(0.0)));
    let fy = sample_linear(row.place, weights.x + weights.y, weights.z + weights.w);
    let ends = weights.xy + (weights.zw - weights.xy) * fy;
    let fx = sample_linear(column.place, ends.x, ends.y);
    let x = (f32(column.bin) + fx + 0.5) / f32(size.x);
    let polar = circle(0.5 * ((f32(row.bin) + fy) / f32(size.y)));
    let azimuth = circle(x);
    // u = atan2(x, -z) / 2 pi
    let local = vec3f(azimuth.y * polar.y, polar.x, -azimuth.x * polar.y);
    let pdf = envmap_stencil_pdf(env_cell(scene.env_size, cell, vec2f(fx, fy)), polar.y);
    return Drawn(0u, unit(from_environment(local)), FAR, 1.0 / pdf, pdf, pdf > 0.0);
}

// Samples a number in [0, 1) whose pdf is linear from `a` to `b`, both positive.
fn sample_linear(u: f32, a: f32, b: f32) -> f32 {
    let root = sqrt(a * a + (b * b - a * a) * u);
    return min(u * (a + b) / (a + root), BELOW_ONE);
}

// The weights of a stencil's texels in the sampling table.
fn texel_weights(at: EnvStencil) -> vec4f {
    let first = vec4u(first_of_row(environment_size().y)) + at.texels;
    return vec4f(bounds[first.x], bounds[first.y], bounds[first.z], bounds[first.w]);
}

// Rotates a direction from the map's frame to the world: the inverse of a rotation is its transpose.
fn from_environment(d: vec3f) -> vec3f {
    let m = scene.world_to_env;
    return m[0].xyz * d.x + m[1].xyz * d.y + m[2].xyz * d.z;
}

// A bin of a cumulative table, and a position within it.
struct Bin {
    bin: u32,
    place: f32,
}

// The bin that contains `u`, among the `count` bins that begin at `first`.
fn draw(first: u32, count: u32, u: f32) -> Bin {
    var low = 0u;
    var high = count;
    while high - low > 1u {
        let middle = (low + high) / 2u;
        if bounds[first + middle] <= u {
            low = middle;
        } else {
            high = middle;
        }
    }
    let below = bounds[first + low];
    let width = bounds[first + low + 1u] - below;
    var place = 0.5;
    if width > 0.0 {
        place = (u - below) / width;
    }
    return Bin(low, clamp(place, 0.0, BELOW_ONE));
}

// The pdf by solid angle at a position of the map, without the probability of choosing it among the lights; `sine` is
// that of the polar angle.
fn envmap_stencil_pdf(at: EnvStencil, sine: f32) -> f32 {
    let size = environment_size();
    let row = at.texels.x / scene.env_size.x;
    let marginal = launch.environment_at + row;
    let of_row = bounds[marginal + 1u] - bounds[marginal];
    let start = first_of_row(row) + at.texels.x % scene.env_size.x;
    let of_cell = bounds[start + 1u] - bounds[start];
    let weights = texel_weights(at);
    let relative = 4.0 * dot(weights, at.weights) / dot(weights, vec4f(1.0));
    let area = 2.0 * PI * PI * max(sine, 1e-9);
    return of_row * of_cell * f32(size.x * size.y) * relative / area;
}

// The pdf with which light_sample draws the direction `d` towards the environment map; 0 without one.
fn envmap_pdf(d: vec3f) -> f32 {
    if settings.environment == NONE {
        return 0.0;
    }
    let local = unit(transform_vector(scene.world_to_env, d));
    let at = env_stencil(scene.env_size, local);
    return envmap_stencil_pdf(at, length(local.xz)) / f32(settings.lights);
}

// Radiance or intensity from a light's parameter.
fn light_value(slot: u32) -> vec3f {
    let first = parameter_first(slot);
    return vec3f(values[first], values[first + 1u], values[first + 2u]);
}
