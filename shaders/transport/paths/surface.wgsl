// What a path does at surfaces with a BSDF.

#import transport/paths/path_state
#import transport/paths/vertex
#import transport/scene/bsdf
#import transport/scene/interaction

// Meets a surface that has a BSDF, which becomes the next vertex. False if the path ends there.
fn hit_bsdf(path: ptr<function, Path>, hit: Hit, vertex: ptr<function, Vertex>) -> bool {
    let at = interaction_new(hit, (*path).direction);
    (*path).depth += 1u;
    let straight = (at.flags & BSDF_NULL) != 0u && !SURFACES_ONLY;
    let ends = (*path).depth >= settings.max_depth && !straight;
    if ends || bsdf_is_black(at) {
        return false;
    }
    (*vertex).turning = true;
    (*vertex).on_surface = true;
    (*vertex).at = at;
    return true;
}

// Turns the path into the direction that was sampled with this pdf, and into the medium on that side.
fn turn_at(path: ptr<function, Path>, at: Interaction, sampled: BsdfSample, pdf: f32) {
    let p = leave(at.hit, sampled.direction);
    (*path).medium = medium_in(at, sampled.direction, (*path).medium);
    if sampled.lobe == LOBE_STRAIGHT {
        if SURFACES_ONLY {
            (*path).continuous = false;
        } else {
            (*path).depth -= 1u;
        }
        path_pass(path, at.hit.t, p);
        return;
    }
    (*path).eta *= sampled.eta;
    path_turn(path, at.hit.point.p, p, sampled.direction, sampled.lobe == LOBE_SMOOTH, pdf);
}

// The radiance still to come over a factor that the throughput has been multiplied by; where the factor is zero, the radiance
// without it. `before` are the numbers of zeros before that factor.
fn by_weight(path: ptr<function, Path>, weight: vec3f, before: vec3u) -> vec3f {
#ifdef WAVE
    recall_radiance(path);
#endif
    let zero = (*path).zeros > before;
    let come = (*path).radiance * (1.0 / select(weight, vec3f(1.0), zero));
    return select(come, (*path).radiance_but_zero, zero);
}
