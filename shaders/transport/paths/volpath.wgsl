// Paths through participating media and between surfaces: one walk for every mode.
//
// A primal walk adds radiance contributions. An adjoint walks twice from the same random numbers: first like the
// primal, but continuing through factors that are zero; then again (the replay), subtracting each contribution, so
// that the remainder is the radiance still to come. Divided by a throughput factor it is the derivative by that factor
// (Vicini2021, sections 3.2 and 4.1).
//
// The mode is a variable, not a shader variant: compilers inline the walk at each call, and one call serves all modes.

#import transport/paths/adjoint
#ifdef CHAINS
#import transport/paths/chain
#endif
#import transport/scene/sky
#import transport/rays/camera
#import transport/paths/reservoir
#import transport/paths/next_event
#import transport/scene/area_light
#import transport/scene/bsdf
#import transport/scene/interaction
#import transport/scene/light
#import transport/scene/phase
#import transport/scene/shape
#import transport/paths/path_state
#import transport/paths/replay_cache
#import transport/paths/surface
#import transport/paths/tracking
#ifdef TRAILS
#import transport/paths/trail
#endif
#import transport/paths/vertex
#import transport/scene/records

#ifndef WAVE

// Follows a path until it ends. If `begin` is turning, the path starts by being scattered at that vertex.
fn run(path: ptr<function, Path>, begin: Vertex, sampler: ptr<function, Sampler>) {
    if (*path).depth >= settings.max_depth {
        (*path).straight = (*path).depth == 0u;
        return;
    }
    var vertex = begin;
    // Whether the flight passed through a surface-free box, so that only the surface behind it remains to be found.
    var flown = false;
    loop {
        // Scatter at the vertex that the last segment ended at.
        var ended = false;
        if vertex.turning {
            ended = !scatter_at(path, &vertex, sampler);
            vertex.turning = false;
        }
#ifndef TRAILS
        if ended {
            return;
        }
#endif
        // Find the nearest surface; in a surface-free box only after the flight.
        let free = !flown && path_is_surface_free(path);
        var hit = no_hit((*path).far);
        // Behind the box of a medium that is alone in the world (`alone`) there is only the background.
        if !ended && !free && !(flown && path_is_in_alone(path)) {
            let met = segment_nearest((*path).origin, (*path).direction, (*path).far);
            hit = describe(met, (*path).origin, (*path).direction, (*path).far);
        }
        // Sample a free flight through the medium.
#ifdef DRIFTS
        var met: Flight;
#endif
        if MEDIA && (*path).medium != NONE && !flown && !ended {
#ifdef REPLAY
            if mode == REPLAY && settings.gradient_kind == GRADIENT_DRT {
                offer_tentative_collisions(path, hit.t);
            }
#endif
            let flight = fly(path, hit.t, sampler);
#ifdef DRIFTS
            // The trail is followed at one place, since compilers write it out wherever it is called.
            met = flight;
#else
            if flight.collided {
                if !collide(path, flight) {
                    return;
                }
                vertex = vertex_in_medium(flight.p);
                continue;
            }
#endif
            if free && !flight.collided {
                flown = true;
                continue;
            }
        }
        flown = false;
        // Leave the scene, or handle the surface.
#ifdef TRAILS
#ifdef REPLAY
        if mode == REPLAY {
            var inside = false;
            var reached = hit;
#ifdef DRIFTS
            inside = met.collided;
            if inside {
                reached = still_anchor(met.p).hit;
                reached.t = distance((*path).origin, met.p);
            }
            if !ended {
                drift_along(path, reached.t, hit.found && !inside, hit.normal, sampler);
            }
#endif
            follow_trail(reached, inside, ended);
        }
#endif
        if ended {
            return;
        }
#ifdef DRIFTS
        if met.collided {
            if !collide(path, met) {
                return;
            }
            vertex = vertex_in_medium(met.p);
            continue;
        }
#endif
#endif
        if !hit.found {
            escape(path);
            return;
        }
        if !hit_surface(path, hit, &vertex) {
            return;
        }
    }
}

#else

// Shades the hit at the end of an edge of a wave's path and begins the next edge. False if the path ends.
fn go_on(path: ptr<function, Path>, hit: Hit, sampler: ptr<function, Sampler>) -> bool {
    if !hit.found {
        escape(path);
        return false;
    }
    var vertex: Vertex;
    if !hit_surface(path, hit, &vertex) {
        return false;
    }
    return !vertex.turning || scatter_at(path, &vertex, sampler);
}

#endif

// Adds the background's radiance, weighted by MIS against next-event estimation.
fn escape(path: ptr<function, Path>) {
    (*path).straight = path_is_straight(path);
    if scene.background == BACKGROUND_NONE || ((*path).straight && settings.hide_emitters == 1u) {
        return;
    }
#ifndef MOVES
    // A camera ray that reaches the background at once has derivatives by that alone; where they are not wanted it is left
    // out.
    let at_once = !MEDIA && SURFACES_ONLY && (*path).depth == 0u;
    if mode != PRIMAL && at_once && !sky_is_wanted() {
        (*path).count += 1u;
        return;
    }
#endif
    var weight = path_norm(path);
    if path_competes(path) && ENVIRONMENT_MAP && scene.background == BACKGROUND_ENVMAP {
        weight *= mis((*path).pdf, envmap_pdf((*path).direction));
    }
    path_add(path, sky_value((*path).direction) * weight);
#ifdef REPLAY
    if mode == REPLAY {
        sky_adjoint((*path).direction, path_alive(path, adjoint.d_radiance * (*path).beta * weight));
#ifdef CHAINS
        chain_to_sky(path, weight);
#endif
    }
#endif
}

// Handles a real collision: multiplies the throughput by the albedo; scatter_at follows. False if the path ends.
fn collide(path: ptr<function, Path>, flight: Flight) -> bool {
    let medium = medium_record((*path).medium);
    let volume = volume_record(medium.albedo);
    var at = flight.extinction.at;
    if (medium.flags & MEDIUM_ALIGNED) == 0u {
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
fn scatter_at(path: ptr<function, Path>, vertex: ptr<function, Vertex>, sampler: ptr<function, Sampler>) -> bool {
    let incoming = (*path).direction;
    let on_surface = vertex_is_on_surface(vertex);
    var index = 0u;
    var blend = vec4f(0.0);
    var chances: Choice;
    var lights = settings.lights > 0u;
    // At the end of a path, light may still pass straight through a surface.
    var ends = false;
    if on_surface {
        ends = (*path).depth >= settings.max_depth;
        lights = lights && ((*vertex).at.flags & BSDF_SMOOTH) != 0u && !ends;
        chances = choice((*vertex).at);
    } else {
        let medium = medium_record((*path).medium);
        index = medium.phase;
        blend = blend_weights(index, (*vertex).p);
        lights = lights && (medium.flags & MEDIUM_SEALED) == 0u;
    }
    for (var turn = select(1u, 0u, lights); turn < 2u; turn++) {
        // First iteration: sample a light; second: sample the new direction.
        var drawn = DARK;
        var sampled: BsdfSample;
        var outgoing = vec3f(0.0);
        var value = vec3f(0.0);
        var pdf = 0.0;
        if turn == 0u {
            drawn = light_sample(vertex_origin(vertex, -incoming), sampler);
            outgoing = drawn.direction;
            if !drawn.lit {
                continue;
            }
        } else if on_surface {
            sampled = bsdf_sample((*vertex).at, chances, sampler);
            if !sampled.lit || (ends && sampled.lobe != LOBE_STRAIGHT) {
                return false;
            }
            outgoing = sampled.direction;
        } else {
            outgoing = phase_sample(index, blend, incoming, sampler);
        }
        var medium = (*path).medium;
        var wo = vec3f(0.0);
        var lobe = LOBE_SMOOTH;
        if on_surface {
            medium = medium_in((*vertex).at, outgoing, medium);
            if turn == 0u {
                wo = to_local((*vertex).at, outgoing);
            } else {
                wo = sampled.wo;
                lobe = sampled.lobe;
            }
            let found = bsdf_eval((*vertex).at, chances, lobe, sampled.leaf, wo);
            value = found.value;
            pdf = found.pdf;
            if turn == 1u {
                pdf = select(sampled.probability, pdf, sampled.lobe == LOBE_SMOOTH);
                value = bsdf_weight((*vertex).at, sampled, found, pdf);
            } else if pdf <= 0.0 || (mode == PRIMAL && all(vanishes(value))) {
                continue;
            }
        } else {
            // A phase function is its own pdf, so the weight is one.
            pdf = phase_eval(index, blend, dot(incoming, outgoing));
            value = vec3f(pdf);
        }
        var lit = Lit(0.0, vec3f(0.0));
        if turn == 0u {
            lit = sample_light(path, vertex_origin(vertex, outgoing), medium, drawn, value, pdf, sampler);
        } else if on_surface {
            let before = (*path).zeros;
#ifdef REPLAY
            let alive = path_alive(path, adjoint.d_radiance);
#endif
            path_multiply(path, value);
            turn_at(path, (*vertex).at, sampled, pdf);
#ifdef REPLAY
            lit.by_value = by_weight(path, value, before) * alive * (1.0 / pdf);
#endif
        } else {
#ifdef REPLAY
            let come = path_alive(path, adjoint.d_radiance * (*path).radiance);
            lit.by_logarithm = come.x + come.y + come.z;
#endif
            path_turn(path, (*vertex).p, (*vertex).p, outgoing, true, pdf);
        }
#ifdef REPLAY
        if mode == REPLAY {
            if on_surface {
                bsdf_adjoint((*vertex).at, wo, lobe, sampled.leaf, lit.by_value);
#ifdef CHAINS
                if turn == 0u {
                    chain_to_plane((*vertex).at, wo, lit.by_value);
                } else {
                    lengthen_chain((*vertex).at, sampled, value, lit.by_value * pdf);
                }
#endif
#ifdef TRAILS
                let by_value = select(lit.by_value, vec3f(0.0), value == vec3f(0.0));
                leave_trail((*vertex).at, wo, outgoing, turn, by_value, by_value * value * select(pdf, 1.0, turn == 0u));
                if turn == 0u {
                    aim_trail(vertex_origin(vertex, -incoming), drawn);
                }
#endif
            } else {
                phase_adjoint(index, blend, (*vertex).p, dot(incoming, outgoing), lit.by_logarithm);
#ifdef DRIFTS
                let d_log = select(path_alive(path, adjoint.d_radiance * (*path).radiance), lit.by_value * value, turn == 0u);
                let slope = phase_cosine_slope(index, blend, dot(incoming, outgoing));
                leave_trail_in_medium((*vertex).p, incoming, outgoing, turn, slope, d_log);
                if turn == 0u {
                    aim_trail((*vertex).p, drawn);
                }
#endif
            }
        }
#endif
        if turn == 1u && on_surface {
            if path_is_dark(path) {
                return false;
            }
            if sampled.lobe == LOBE_STRAIGHT {
                return true;
            }
        }
    }
    return path_roulette(path, sampler);
}

// Handles a surface: adds its emission, then passes through it or makes it the next vertex. False if the path ends.
fn hit_surface(path: ptr<function, Path>, hit: Hit, vertex: ptr<function, Vertex>) -> bool {
    let record = surface_record(hit.surface);
#ifdef REPLAY
#ifdef CHAINS
    if mode == REPLAY {
        chain_meet(hit, (*path).direction);
    }
#endif
#endif
    let hidden = record.light != NONE && (*path).depth == 0u && settings.hide_emitters == 1u;
    let against = dot((*path).direction, hit.normal) < 0.0;
    if record.light != NONE && against && !hidden {
        var weight = path_norm(path);
        if path_competes(path) {
            weight *= mis((*path).pdf, area_pdf((*path).scattered_at, (*path).direction, hit));
        }
        let light = light_record(record.light);
        path_add(path, light_value(light, hit.point) * weight);
#ifdef REPLAY
        if mode == REPLAY {
            let d_light = path_alive(path, adjoint.d_radiance * (*path).beta * weight);
            light_adjoint(light, hit.point, d_light);
#ifdef TRAILS
            seen_light(light, hit, (*path).direction, d_light);
#endif
#ifdef CHAINS
            chain_to_light(path, light, weight);
#endif
        }
#endif
    }
    // A surface without BSDF only separates media, and the camera looks through hidden emitters.
    if !SCATTERING_SURFACES || record.bsdf == NONE || hidden {
        if SURFACES_ONLY && !hidden && !path_counts_null(path) {
            return false;
        }
#ifdef REPLAY
#ifdef CHAINS
        if mode == REPLAY && record.light != NONE && !hidden {
            chain_pass();
        }
#endif
#endif
        (*path).medium = medium_beyond(hit, (*path).direction, (*path).medium);
        path_pass(path, hit.t, leave(hit, (*path).direction));
        return true;
    }
    return hit_bsdf(path, hit, vertex);
}

#ifndef WAVE
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
    for (var turn = 0u; turn < select(2u, 3u, MEDIA); turn++) {
        var draws = sampler;
        var path: Path;
        if turn < 2u {
            path = path_new(ray, medium, &draws);
            mode = select(GATHER, REPLAY, turn == 1u);
            replay_cache_clear();
            if turn == 1u {
                path_expect(&path, &first);
#ifdef CHAINS
                chain_new(&path, sampler.counter.sensor);
#endif
#ifdef TRAILS
                trail_new(sampler.counter.sensor);
#endif
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
#ifdef CHAINS
                send_chain();
#endif
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
#endif
