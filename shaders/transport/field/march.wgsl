// From a place on the film to radiance, and back: the estimator's primal and its adjoint, for one ray.

#import bind/launch
#import transport/lookup/background
#import transport/rays/camera
#import transport/field/radiance_field
#import transport/rays/random
#import transport/rays/pixel

// What one ray gathers: radiance and the transmittance it ends with, and the number of samples that contributed.
struct Gathered {
    radiance: vec3f,
    transmittance: f32,
    count: u32,
}

// The primal estimate of a ray's radiance along its segment.
fn gather_segment(segment: ptr<function, Segment>, ray: Ray, backdrop: Backdrop) -> Gathered {
    var state = State(vec3f(0.0), 1.0, 0u);
    if (*segment).valid {
        walk(segment, &state, vec3f(0.0), false);
    }
    var behind = backdrop.color;
    if !backdrop.present {
        behind = background_eval(ray.direction);
    }
    state.radiance += state.transmittance * behind;
    return Gathered(state.radiance, state.transmittance, state.count);
}

// The primal estimate of a ray's radiance.
fn gather(ray: Ray, jitter: f32, backdrop: Backdrop) -> Gathered {
    var segment = field_segment(ray, jitter);
    return gather_segment(&segment, ray, backdrop);
}

#ifdef REPLAY

// How a replay ended: radiance gathered, radiance left over (zero but for rounding), samples that contributed.
struct Replayed {
    gathered: vec3f,
    left: vec3f,
    count: u32,
}

// The adjoint: walks the ray once for its radiance, then again from the same random state, and sends the derivatives
// of `d_radiance` times the radiance to the gradients.
fn backpropagate(ray: Ray, jitter: f32, backdrop: Backdrop, d_radiance: vec3f) -> Replayed {
    var segment = field_segment(ray, jitter);
    let gathered = gather_segment(&segment, ray, backdrop);
    var state = State(gathered.radiance, 1.0, 0u);
    if segment.valid {
        walk(&segment, &state, d_radiance, true);
    }
    var behind = backdrop.color;
    if !backdrop.present {
        if (launch.tuned & TUNED_EMITTER) != 0u {
            background_adjoint(ray.direction, d_radiance * state.transmittance);
        }
        behind = background_eval(ray.direction);
    }
    state.radiance -= state.transmittance * behind;
    return Replayed(gathered.radiance, state.radiance, state.count);
}

#endif
