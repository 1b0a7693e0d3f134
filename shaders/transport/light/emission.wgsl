// Emission for light tracing: rays that leave the lights, with their power.

#import bind/tracer
#import common/math
#import transport/rays/sampler
#import transport/scene/area_light
#import transport/scene/light
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/sky

// A ray of light, if `lit`.
struct Emission {
    origin: vec3f,
    direction: vec3f,
    // Power over the pdf of the ray.
    power: vec3f,
    lit: bool,
}

// Distance from an area light to the origins of its rays, as a share of the largest magnitude among the coordinates of the
// point and the row sums of the magnitudes of its shape's to_world.
const CLEARANCE: f32 = 32.0 * EPSILON;

const NO_EMISSION: Emission = Emission(vec3f(0.0), vec3f(0.0), vec3f(0.0), false);

// Draws a ray of light from any of the scene's emitters.
fn emit(sampler: ptr<function, Sampler>) -> Emission {
    let lights = settings.lights;
    var u = sampler_draw(sampler);
    var choices = 1.0;
    // A constant background is not among the records of lights: it is chosen as one of them.
    if scene.background == BACKGROUND_CONSTANT {
        let share = 1.0 / f32(lights + 1u);
        if u < share {
            let z = sampler_draw(sampler);
            let direction = emission_sphere(vec2f(z, sampler_draw(sampler)));
            return from_afar(direction, sky_value(-direction) * (4.0 * PI / share), sampler);
        }
        u = min((u - share) / (1.0 - share), BELOW_ONE);
        choices = 1.0 / (1.0 - share);
    }
    if lights == 0u {
        return NO_EMISSION;
    }
    let chosen = choose_light(u);
    var emission = emit_light(light_record(chosen.light), sampler);
    emission.power *= choices * chosen.choices;
    return emission;
}

// Draws a ray of a light.
fn emit_light(record: Light, sampler: ptr<function, Sampler>) -> Emission {
    let first = sampler_draw(sampler);
    let u = vec2f(first, sampler_draw(sampler));
    if is_light(record.kind, LIGHT_ENVMAP) {
        let drawn = sample_envmap(u);
        if !drawn.lit {
            return NO_EMISSION;
        }
        return from_afar(-drawn.direction, sky_value(drawn.direction) * drawn.weight, sampler);
    }
    if is_light(record.kind, LIGHT_AREA) || is_light(record.kind, LIGHT_COLLIMATED) {
        return emit_area(record, u, sampler);
    }
    var uv = vec2f(0.0);
    var direction = record.direction.xyz;
    var solid_angle = 1.0;
    if is_light(record.kind, LIGHT_POINT) {
        direction = emission_sphere(u);
        solid_angle = 4.0 * PI;
    } else if is_light(record.kind, LIGHT_SPOT) {
        let height = 1.0 - record.direction.w;
        direction = around(record.direction.xyz, 1.0 - u.x * height, u.y);
        if record.light_texture != NONE {
            let place = along(record.position.xyz, direction, 1.0);
            uv = picture_uv(record, transform_point(record.to_local, place), 0.5);
        }
        solid_angle = spot_falloff(record, -direction).x * 2.0 * PI * height;
    } else if is_light(record.kind, LIGHT_PROJECTOR) {
        // A point of the picture at the distance one; the frame is orthonormal.
        let local = (1.0 - 2.0 * u) * record.extent;
        let m = record.to_local;
        direction = unit(m[0].xyz * local.x + m[1].xyz * local.y + m[2].xyz);
        uv = u;
        solid_angle = 4.0 * PI * record.extent.x * record.extent.y;
    }
    let value = light_value(record, surface_point_new(vec3f(0.0), uv));
    if is_light(record.kind, LIGHT_DIRECTIONAL) {
        return from_afar(direction, value, sampler);
    }
    return Emission(record.position.xyz, direction, value * solid_angle, true);
}

// Draws a ray of an area light or of a collimated light.
fn emit_area(record: Light, u: vec2f, sampler: ptr<function, Sampler>) -> Emission {
    let shape = surface_record(record.surface);
    let place = sample_place(record, shape, u, sampler);
    let radiance = light_value(record, place.point);
    var direction = place.normal;
    var solid_angle = 1.0;
    if !is_light(record.kind, LIGHT_COLLIMATED) {
        let cosine = sqrt(1.0 - sampler_draw(sampler));
        direction = around(place.normal, cosine, sampler_draw(sampler));
        solid_angle = PI;
    }
    let m = shape.to_world;
    let of_frame = vec3f(dot(abs(m[0]), vec4f(1.0)), dot(abs(m[1]), vec4f(1.0)), dot(abs(m[2]), vec4f(1.0)));
    let sizes = max(of_frame, abs(place.point.p));
    let size = max(max(sizes.x, sizes.y), sizes.z);
    let origin = along(place.point.p, place.normal, CLEARANCE * size);
    return Emission(origin, direction, radiance * (solid_angle * place.area), true);
}

// A ray along `direction` from outside the scene, uniform over a disc as wide as the sphere around all surfaces. `irradiance`
// is that of a plane perpendicular to the ray.
fn from_afar(direction: vec3f, irradiance: vec3f, sampler: ptr<function, Sampler>) -> Emission {
    let radius = tracer.radius;
    let across = radius * sqrt(sampler_draw(sampler));
    let turned = circle(sampler_draw(sampler));
    let axes = frame(direction);
    let place = along(along(tracer.center, axes.s, across * turned.x), axes.t, across * turned.y);
    return Emission(along(place, direction, -radius), direction, irradiance * (PI * radius * radius), true);
}

// A uniform direction.
fn emission_sphere(u: vec2f) -> vec3f {
    let z = 1.0 - 2.0 * u.x;
    let r = sqrt(max(1.0 - z * z, 0.0));
    return vec3f(r * circle(u.y), z);
}
