// The background of a path-traced scene: sky_value beside sky_adjoint.

#import bind/parameters
#import bind/scene
#import transport/lookup/background
#import transport/scene/records

// The background's radiance for the unit direction `d` (world).
fn sky_value(d: vec3f) -> vec3f {
    return background_color(d) * sky_scale();
}

// The factor on an environment map.
fn sky_scale() -> f32 {
    if scene.env_scale_slot == NONE {
        return 1.0;
    }
    return value(parameter_first(scene.env_scale_slot));
}

// Whether derivatives by the background are sought.
fn sky_is_wanted() -> bool {
    return launch.emitter.tuned == 1u || (scene.env_scale_slot != NONE && parameter_tuned(scene.env_scale_slot));
}

#ifdef REPLAY

// Sends `d_radiance`, the derivative by sky_value.
fn sky_adjoint(d: vec3f, d_radiance: vec3f) {
    sink_background(d, d_radiance * sky_scale());
    if scene.env_scale_slot != NONE && parameter_tuned(scene.env_scale_slot) {
        sink_number(scene.env_scale_slot, dot(d_radiance, background_color(d)));
    }
}

#endif
