// Light tracing among surfaces: follows paths from the lights, and at each scattering connects to the sensor and splats the
// power that reaches it.
//
// Light that arrives along `-a` is scattered along `b` by the adjoint BSDF, which is f(b, a) as a camera path that arrives
// along `-b` evaluates it, so that images have the same mean as those of camera paths: with the geometric normal n, f(b, a)
// cos a of such a path is weighted by |n . b| / |n . a| here (Veach1997, section 5.3.2).

#import bind/film
#import bind/tracer
#import transport/light/emission
#import transport/light/lens
#import transport/rays/sampler
#import transport/scene/bsdf
#import transport/scene/interaction
#import transport/scene/records
#import transport/scene/shape

// Upper limit of the survival probability in Russian roulette.
const MAX_SURVIVAL: f32 = 0.95;

// Where a path goes on from a vertex, and what its power is multiplied by; it ends unless `goes_on`.
struct Bounce {
    direction: vec3f,
    weight: vec3f,
    goes_on: bool,
}

// Follows one path of light and splats the power that arrives at the sensor, times pixels.
fn trace(sampler: ptr<function, Sampler>) {
    let emission = emit(sampler);
    if !emission.lit {
        return;
    }
    var origin = emission.origin;
    var direction = emission.direction;
    var beta = vec3f(1.0);
    var depth = 1u;
    while depth < tracer.max_depth {
        let hit = intersect(origin, direction, FAR);
        if !hit.found {
            return;
        }
        depth += 1u;
        if !SCATTERING_SURFACES || surface_record(hit.surface).bsdf == NONE {
            // It only separates media.
            origin = leave(hit, direction);
            continue;
        }
        let bounce = scatter(interaction_new(hit, direction), emission.power * beta, sampler);
        beta *= bounce.weight;
        let brightness = max(max(beta.x, beta.y), beta.z);
        if !bounce.goes_on || brightness <= 0.0 {
            return;
        }
        origin = leave(hit, bounce.direction);
        direction = bounce.direction;
        if depth > tracer.rr_depth {
            let survival = min(brightness, MAX_SURVIVAL);
            if sampler_draw(sampler) >= survival {
                return;
            }
            beta = beta * (1.0 / survival);
        }
    }
}

// Connects the sensor with a vertex that `power` arrives at, and draws a new direction. The BSDF is evaluated as seen from
// the sensor, from the light, and from the new direction, in iterations of one loop, so that its code is inlined once.
fn scatter(at: Interaction, power: vec3f, sampler: ptr<function, Sampler>) -> Bounce {
    let first = sampler_draw(sampler);
    let sight = particle_connect(at, vec2f(first, sampler_draw(sampler)));
    let a = -at.incoming;
    let across = abs(dot(at.hit.normal, a));
    var bounce = Bounce(sight.direction, vec3f(0.0), false);
    var sampled: BsdfSample;
    var pdf = 0.0;
    for (var turn = select(1u, 0u, sight.seen); turn < 3u; turn++) {
        var side = at;
        if turn != 1u {
            side = interaction_new(at.hit, -bounce.direction);
        }
        let chances = choice(side);
        var wo = to_local(side, a);
        if turn == 1u {
            sampled = bsdf_sample(at, chances, sampler);
            if !sampled.lit {
                return bounce;
            }
            bounce.direction = sampled.direction;
            wo = sampled.wo;
        }
        let lobe = select(LOBE_SMOOTH, sampled.lobe, turn == 1u);
        let found = bsdf_eval(side, chances, lobe, sampled.leaf, wo);
        if turn == 1u && lobe != LOBE_SMOOTH {
            bounce.weight = particle_weight(at, sampled, found.value);
            break;
        }
        if turn == 1u {
            pdf = found.pdf;
            continue;
        }
        // The share of the arriving power that is scattered, per solid angle.
        let sent = found.value * (abs(dot(at.hit.normal, bounce.direction)) / across);
        let is_sent = found.pdf > 0.0 && across > 0.0;
        if turn == 0u {
            if is_sent && is_seen(leave(at.hit, sight.direction), sight.direction, sight.distance) {
                film_splat(sight.film, power * (sent * sight.pixels) * tracer.scale);
            }
        } else if is_sent && pdf > 0.0 {
            bounce.weight = sent * (1.0 / pdf);
        } else {
            return bounce;
        }
    }
    let weight = bounce.weight;
    bounce.goes_on = is_finite(weight.x) && is_finite(weight.y) && is_finite(weight.z);
    return bounce;
}

// Connects a vertex with the point of the aperture that `u` draws; unseen if it is a hidden emitter or scatters by no smooth
// lobe.
fn particle_connect(at: Interaction, u: vec2f) -> Sight {
    let hidden = settings.hide_emitters == 1u && surface_record(at.hit.surface).light != NONE;
    if hidden || (at.flags & BSDF_SMOOTH) == 0u {
        return UNSEEN;
    }
    return look_at(at.hit.point.p, u);
}

// Whether nothing blocks the connection of a point with the sensor; hidden emitters do not.
fn is_seen(origin: vec3f, direction: vec3f, far: f32) -> bool {
    var p = origin;
    var distance = far;
    loop {
        let met = nearest(p, direction, distance, settings.hide_emitters == 0u);
        if !met.found || settings.hide_emitters == 0u {
            return !met.found;
        }
        let hit = describe(met, p, direction, distance);
        if surface_record(hit.surface).light == NONE {
            return false;
        }
        p = leave(hit, direction);
        distance -= hit.t;
    }
    return true;
}

// The factor on the power when the sampled lobe is not smooth; `value` is that lobe's factor for camera paths.
fn particle_weight(at: Interaction, sampled: BsdfSample, value: vec3f) -> vec3f {
    let a = -at.incoming;
    let b = sampled.direction;
    let n = at.hit.normal;
    let turned = abs(dot(n, b)) / abs(dot(n, a));
    let weight = value * (1.0 / sampled.probability);
    switch sampled.lobe {
        case LOBE_STRAIGHT: {
            return weight;
        }
        case LOBE_REFLECTION: {
            return weight * turned;
        }
        default: {
            // The normal of the refraction. eta² takes back the scaling of radiance by the squared index, which power does
            // not have.
            let h = a + sampled.eta * b;
            let before = abs(dot(h, a));
            let behind = abs(dot(h, b));
            let bent = select(1.0, before / behind, behind > 0.0);
            return weight * (sampled.eta * sampled.eta * turned * bent);
        }
    }
}
