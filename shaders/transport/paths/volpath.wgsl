// Paths through participating media and between surfaces: one walk for every mode.
//
// A primal walk adds radiance contributions. An adjoint walks twice from the same random numbers: first like the
// primal, but continuing through factors that are zero; then again (the replay), subtracting each contribution, so
// that the remainder is the radiance still to come. Divided by a throughput factor it is the derivative by that factor
// (Vicini2021, sections 3.2 and 4.1).
//
// The mode is a variable, not a shader variant: compilers inline the walk at each call, and one call serves all modes.

#import transport/paths/adjoint
#import transport/lookup/background
#import transport/rays/camera
#import transport/paths/reservoir
#import transport/paths/next_event
#import transport/scene/bsdf
#import transport/scene/light
#import transport/scene/phase
#import transport/scene/shape
#import transport/scene/texture
#import transport/paths/path_state
#import transport/paths/tracking
#import transport/paths/vertex
#import transport/scene/records

// Follows a path until it ends. If `begin` is turning, the path starts by being scattered at that vertex.
fn run(path: ptr<function, Path>, begin: Vertex, sampler: ptr<function, Sampler>) {
    if (*path).depth >= settings.max_depth {
        return;
    }
    var vertex = begin;
    // Whether the flight passed through a surface-free box, so that only the surface behind it remains to be found.
    var flown = false;
    loop {
        // Scatter at the vertex that the last segment ended at.
        if vertex.turning {
            if !scatter_at(path, vertex, sampler) {
                return;
            }
            vertex.turning = false;
        }
        // Find the nearest surface; in a surface-free box only after the flight.
        let free = !flown && path_is_surface_free(path);
        var hit = no_hit((*path).far);
        if !free {
            hit = intersect((*path).origin, (*path).direction, (*path).far);
        }
        // Sample a free flight through the medium.
        if (*path).medium != NONE && !flown {
#ifdef REPLAY
            if mode == REPLAY && settings.gradient_kind == GRADIENT_DRT {
                offer_tentative_collisions(path, hit.t);
            }
#endif
            let flight = fly(path, hit.t, sampler);
            if flight.collided {
                if !collide(path, flight) {
                    return;
                }
                vertex = vertex_in_medium(flight.p);
                continue;
            }
            if free {
                flown = true;
                continue;
            }
        }
        flown = false;
        // Leave the scene, or handle the surface.
        if !hit.found {
            escape(path);
            return;
        }
        if !hit_surface(path, hit, &vertex) {
            return;
        }
    }
}

// Adds the background's radiance, weighted by MIS against next-event estimation.
fn escape(path: ptr<function, Path>) {
    (*path).straight = (*path).depth == 0u;
    if scene.background == BACKGROUND_NONE || ((*path).depth == 0u && settings.hide_emitters == 1u) {
        return;
    }
    var weight = path_norm(path);
    if (*path).continuous && scene.background == BACKGROUND_ENVMAP {
        weight *= mis((*path).pdf, envmap_pdf((*path).direction));
    }
    path_add(path, background_eval((*path).direction) * weight);
#ifdef REPLAY
    if mode == REPLAY {
        sink_background((*path).direction, path_alive(path, adjoint.d_radiance * (*path).beta * weight));
    }
#endif
}

// Handles a real collision: multiplies the throughput by the albedo; scatter_at follows. False if the path ends.
fn collide(path: ptr<function, Path>, flight: Flight) -> bool {
    let medium = medium_record((*path).medium);
    let volume = volume_record(medium.albedo);
    var at = flight.extinction.at;
    if medium.aligned != 1u {
        at = volume_stencil(volume, flight.p);
    }
    let albedo = volume_eval(volume, at);
#ifdef REPLAY
    if mode == REPLAY {
        sink_volume(volume, at, by_factor(path, albedo));
    }
#endif
    path_multiply(path, albedo);
    (*path).depth += 1u;
    return !((*path).depth >= settings.max_depth || path_is_dark(path));
}

// Scatters light at a vertex: next-event estimation, then a new direction. False if the path ends. Both are iterations
// of one loop, so that the code that they share is inlined once.
fn scatter_at(path: ptr<function, Path>, vertex: Vertex, sampler: ptr<function, Sampler>) -> bool {
    let incoming = (*path).direction;
    var index = 0u;
    var blend = vec4f(0.0);
    if !vertex.on_surface {
        index = medium_record((*path).medium).phase;
        blend = blend_weights(index, vertex.p);
    }
    for (var turn = select(0u, 1u, settings.lights == 0u); turn < 2u; turn++) {
        // First iteration: sample a light; second: sample the new direction.
        var drawn = DARK;
        var outgoing = vec3f(0.0);
        var value = vec3f(0.0);
        var pdf = 0.0;
        if turn == 0u {
            drawn = light_sample(vertex.p, sampler);
            outgoing = drawn.direction;
            if !drawn.lit {
                continue;
            }
            if vertex.on_surface {
                let scattered = bsdf_eval(vertex.color, vertex.normal, vertex.shading, outgoing);
                if !scattered.lit {
                    continue;
                }
                value = scattered.value;
                pdf = scattered.pdf;
            }
        } else if vertex.on_surface {
            let sampled = bsdf_sample(vertex.color, vertex.normal, vertex.shading, sampler);
            if !sampled.lit {
                return false;
            }
            outgoing = sampled.direction;
            value = sampled.weight;
            pdf = sampled.pdf;
        } else {
            outgoing = phase_sample(index, blend, incoming, sampler);
        }
        let cosine = dot(incoming, outgoing);
        if !vertex.on_surface {
            // A phase function is its own pdf, so the weight is one.
            pdf = phase_eval(index, blend, cosine);
            value = vec3f(pdf);
        }
        var d = 0.0;
        if turn == 0u {
            d = sample_light(path, vertex.p, drawn, value, pdf, sampler);
        } else {
#ifdef REPLAY
            let come = path_alive(path, adjoint.d_radiance * (*path).radiance);
            d = come.x + come.y + come.z;
#endif
            if vertex.on_surface {
                path_multiply(path, value);
            }
            path_turn(path, vertex.q, vertex.p, outgoing, pdf);
        }
#ifdef REPLAY
        if mode == REPLAY && !vertex.on_surface {
            phase_adjoint(index, blend, vertex.p, cosine, d);
        }
#endif
    }
    return path_roulette(path, sampler);
}

// Handles a surface: adds its emission, then passes through it or makes it the next vertex. False if the path ends.
fn hit_surface(path: ptr<function, Path>, hit: Hit, vertex: ptr<function, Vertex>) -> bool {
    let record = surface_record(hit.surface);
    let against = dot((*path).direction, hit.normal) < 0.0;
    if record.light != NONE && against && !((*path).depth == 0u && settings.hide_emitters == 1u) {
        var weight = path_norm(path);
        if (*path).continuous {
            weight *= mis((*path).pdf, area_pdf((*path).scattered_at, (*path).direction, hit));
        }
        let slot = light_record(record.light).slot;
        path_add(path, light_value(slot) * weight);
#ifdef REPLAY
        if mode == REPLAY {
            sink_color(slot, path_alive(path, adjoint.d_radiance * (*path).beta * weight));
        }
#endif
    }
    // A surface without BSDF only separates media.
    if record.bsdf == BSDF_NULL {
        if record.interior != NONE || record.exterior != NONE {
            (*path).medium = select(record.exterior, record.interior, against);
        }
        (*path).origin = leave(hit, (*path).direction);
        (*path).far -= hit.t;
        return true;
    }
    // All BSDFs are one-sided.
    if !against {
        return false;
    }
    (*path).depth += 1u;
    if (*path).depth >= settings.max_depth {
        return false;
    }
    let color = texture_eval(texture_record(record.surface_texture), hit.uv);
    if all(color == vec3f(0.0)) {
        return false;
    }
    *vertex = Vertex(true, hit.p, leave(hit, hit.normal), true, hit.normal, hit.shading, color);
    return true;
}

#ifdef REPLAY

// The result of an adjoint: radiance gathered, radiance left (zero up to rounding), contributions.
struct Replayed {
    gathered: vec3f,
    left: vec3f,
    count: u32,
}

// The adjoint of gather: walks twice with the random numbers of `sampler` and sends the derivatives of `d_radiance`
// times the radiance to the gradients; `extra` is for draws that the primal does not make. If the reservoir holds a
// point, a third walk estimates the in-scattered radiance there.
fn backpropagate(ray: Ray, medium: u32, sampler: Sampler, extra: Sampler, d_radiance: vec3f) -> Replayed {
    adjoint.d_radiance = d_radiance;
    adjoint.extra = extra;
    adjoint.reservoir.total = 0.0;
    var replayed: Replayed;
    var first: Path;
    for (var turn = 0u; turn < 3u; turn++) {
        var draws = sampler;
        var path: Path;
        if turn < 2u {
            path = path_new(ray, medium, &draws);
            mode = select(GATHER, REPLAY, turn == 1u);
            if turn == 1u {
                path_expect(&path, &first);
            }
        } else {
            if adjoint.reservoir.total == 0.0 {
                break;
            }
            draws = adjoint.extra;
            mode = PRIMAL;
            let kept = adjoint.reservoir;
            path = path_start(kept.p, kept.direction, FAR, kept.medium, path_draw_hero(&draws));
            path.depth = kept.depth + 1u;
        }
        var begin = vertex_in_medium(path.origin);
        begin.turning = turn == 2u;
        run(&path, begin, &draws);
        switch turn {
            case 0u: {
                first = path;
            }
            case 1u: {
                replayed = Replayed(first.radiance, path.radiance, path.count);
            }
            default: {
                send_reservoir(path.radiance);
            }
        }
    }
    return replayed;
}

#else

// The path of a camera ray, with its radiance.
fn gather(ray: Ray, medium: u32, sampler: Sampler) -> Path {
    var draws = sampler;
    var path = path_new(ray, medium, &draws);
    var begin: Vertex;
    run(&path, begin, &draws);
    return path;
}

#endif
