// Lights: sampling a direction towards one, and its radiance or intensity.

#import common/math
#import transport/lookup/background
#import transport/rays/sampler
#import transport/scene/area_light
#import transport/scene/records
#import transport/scene/texture

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
    // Where the light's texture is looked up.
    point: SurfacePoint,
    // The unit normal of an area light there.
    normal: vec3f,
    lit: bool,
}

// The largest float below one.
const BELOW_ONE: f32 = 0.99999994;

const DARK: Drawn = Drawn(0u, vec3f(0.0), 0.0, 0.0, 0.0, SurfacePoint(vec3f(0.0), vec2f(0.0), 0u, vec2f(0.0)), vec3f(0.0), false);

// Samples a light and a direction towards it from `p`.
fn light_sample(p: vec3f, sampler: ptr<function, Sampler>) -> Drawn {
    let choice = choose_light(sampler_draw(sampler));
    let u = sampler_draw(sampler);
    let v = sampler_draw(sampler);
    let record = light_record(choice.light);
    var drawn: Drawn;
    if is_light(record.kind, LIGHT_POINT) || is_light(record.kind, LIGHT_SPOT) {
        drawn = sample_point(record, p);
    } else if is_light(record.kind, LIGHT_PROJECTOR) {
        drawn = sample_projector(record, p);
    } else if is_light(record.kind, LIGHT_DIRECTIONAL) {
        drawn = Drawn(0u, -record.direction.xyz, FAR, 1.0, 0.0, DARK.point, vec3f(0.0), true);
    } else if is_light(record.kind, LIGHT_AREA) {
        drawn = sample_area(record, p, vec2f(u, v), sampler);
    } else if is_light(record.kind, LIGHT_ENVMAP) {
        drawn = sample_envmap(vec2f(u, v));
    }
    drawn.light = choice.light;
    drawn.weight *= choice.choices;
    drawn.pdf /= choice.choices;
    return drawn;
}

// A light, and one over the probability with which it is chosen.
struct ChosenLight {
    light: u32,
    choices: f32,
}

// The light that a number in [0, 1) chooses.
fn choose_light(u: f32) -> ChosenLight {
    let count = settings.lights;
    if settings.weighted == 0u {
        return ChosenLight(min(u32(u * f32(count)), count - 1u), f32(count));
    }
    var low = 0u;
    var high = count - 1u;
    while low < high {
        let middle = (low + high) / 2u;
        if light_record(middle).cumulative <= u {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return ChosenLight(low, 1.0 / light_record(low).probability);
}

// A pdf times the probability with which light_sample chooses the light.
fn with_choice(record: Light, pdf: f32) -> f32 {
    if settings.weighted == 0u {
        return pdf / f32(settings.lights);
    }
    return pdf * record.probability;
}

fn sample_point(record: Light, p: vec3f) -> Drawn {
    let to = record.position.xyz - p;
    let square = dot(to, to);
    let distance = sqrt(square);
    let direction = to / distance;
    var weight = 1.0 / square;
    var uv = vec2f(0.0);
    if is_light(record.kind, LIGHT_SPOT) {
        weight *= spot_falloff(record, direction).x;
        if record.light_texture != NONE {
            uv = picture_uv(record, transform_point(record.to_local, p), 0.5);
        }
    }
    let lit = weight > 0.0 && is_finite(weight);
    return Drawn(0u, direction, distance, weight, 0.0, surface_point_new(vec3f(0.0), uv), vec3f(0.0), lit);
}

// Where a point in the frame of a spot or a projector lies in its picture. `half` is 1/2, or -1/2 for a picture that is
// seen like that of a camera, whose +x points to the left and +y upwards.
fn picture_uv(record: Light, local: vec3f, half: f32) -> vec2f {
    return 0.5 + half * local.xy / (local.z * record.extent);
}

// The direction towards a projector. The weight follows Mitsuba, where the irradiance on a plane at the distance one is
// pi times the picture.
fn sample_projector(record: Light, p: vec3f) -> Drawn {
    let local = transform_point(record.to_local, p);
    if local.z <= 0.0 {
        return DARK;
    }
    let uv = picture_uv(record, local, -0.5);
    let to = record.position.xyz - p;
    let distance = sqrt(dot(to, to));
    // Over the cosine, which is local z / distance.
    let weight = PI * distance / (local.z * local.z * local.z);
    let lit = all(uv >= vec2f(0.0)) && all(uv <= vec2f(1.0)) && is_finite(weight);
    return Drawn(0u, to / distance, distance, weight, 0.0, surface_point_new(vec3f(0.0), uv), vec3f(0.0), lit);
}

// Share of a spot light's intensity opposite to `direction`: one within the beam, then falling linearly with the
// angle, as in Mitsuba, to zero at the cutoff; and its derivative by the cosine of that angle.
fn spot_falloff(record: Light, direction: vec3f) -> vec2f {
    let cosine = -dot(record.direction.xyz, direction);
    if cosine >= record.cos_beam {
        return vec2f(1.0, 0.0);
    }
    if cosine <= record.direction.w {
        return vec2f(0.0);
    }
    let cutoff = arc_cosine(record.direction.w);
    let width = cutoff - arc_cosine(record.cos_beam);
    return vec2f((cutoff - arc_cosine(cosine)) / width, 1.0 / (width * sqrt(1.0 - cosine * cosine)));
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
    return Drawn(0u, unit(from_environment(local)), FAR, 1.0 / pdf, pdf, DARK.point, vec3f(0.0), pdf > 0.0);
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
    if !ENVIRONMENT_MAP || settings.environment == NONE {
        return 0.0;
    }
    let local = unit(transform_vector(scene.world_to_env, d));
    let at = env_stencil(scene.env_size, local);
    return with_choice(light_record(settings.environment), envmap_stencil_pdf(at, length(local.xz)));
}

// Radiance, intensity or irradiance of a light other than the environment map, whose texture is looked up at `point`.
fn light_value(record: Light, point: SurfacePoint) -> vec3f {
    if record.light_texture == NONE {
        return light_color(record);
    }
    return light_color(record) * texture_eval(stencil(record.light_texture, point));
}

// What a light's texture is multiplied by: its colour, the scale of a projector, or one.
fn light_color(record: Light) -> vec3f {
    if record.slot == NONE {
        return vec3f(1.0);
    }
    let first = parameter_first(record.slot);
    if is_light(record.kind, LIGHT_PROJECTOR) {
        return vec3f(value(first));
    }
    return value_color(first);
}

#ifdef REPLAY

// The adjoint of light_value: `d` are the derivatives by it.
fn light_adjoint(record: Light, point: SurfacePoint, d: vec3f) {
    if record.light_texture == NONE {
        sink_color(record.slot, d);
        return;
    }
    let at = stencil(record.light_texture, point);
    texture_adjoint(at, d * light_color(record));
    if record.slot == NONE {
        return;
    }
    let by_color = d * texture_eval(at);
    if is_light(record.kind, LIGHT_PROJECTOR) {
        sink_number(record.slot, by_color.x + by_color.y + by_color.z);
    } else {
        sink_color(record.slot, by_color);
    }
}

#endif
