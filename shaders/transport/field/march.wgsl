// From a film position to radiance and back: the primal estimator and its adjoint, for one ray.

#import bind/launch
#import transport/lookup/background
#import transport/rays/camera
#import transport/field/radiance_field
#ifdef VIEWS
#import transport/field/ray_adjoint
#endif
#import transport/rays/random
#import transport/rays/pixel

// Result of a primal ray: radiance, final transmittance, and the number of contributing samples.
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

// Result of a replay: radiance gathered, remaining radiance (zero up to rounding), number of contributing samples.
struct Replayed {
    gathered: vec3f,
    left: vec3f,
    count: u32,
}

// The adjoint: walks the ray for its radiance, then replays it with the same random state and sends the derivatives of
// `d_radiance` times the radiance to the gradients. With VIEWS, `by_ray` then has those by the ray.
fn backpropagate(ray: Ray, jitter: f32, backdrop: Backdrop, d_radiance: vec3f) -> Replayed {
    var segment = field_segment(ray, jitter);
    let gathered = gather_segment(&segment, ray, backdrop);
    var state = State(gathered.radiance, 1.0, 0u);
#ifdef VIEWS
    ray_adjoint_zero();
#endif
    if segment.valid {
        walk(&segment, &state, d_radiance, true);
    }
    var behind = backdrop.color;
    if !backdrop.present {
        if launch.emitter.tuned == 1u {
            background_adjoint(ray.direction, d_radiance * state.transmittance);
        }
#ifdef VIEWS
        ray_add_background(ray.direction, d_radiance * state.transmittance);
#endif
        behind = background_eval(ray.direction);
    }
    state.radiance -= state.transmittance * behind;
    return Replayed(gathered.radiance, state.radiance, state.count);
}

#endif
