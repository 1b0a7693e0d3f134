// Light in a cube [-1, 1]³ of varying index, by the leapfrog: d²x/dt² = n∇n with |dx/dt| = n (NimierDavid2019, equation 3).
// A step is half a kick, a drift and half a kick at the new place; the same operations in reverse order undo it, so
// that the adjoint needs no step of a path but the last.

#import bind/light
#import transport/light/index

// A point in the cube and the velocity there, whose length is the index up to the error of the steps.
struct State {
    p: vec3f,
    v: vec3f,
}

// Where a path leaves the cube, if it does.
struct CubeExit {
    state: State,
    // The index there, and its slope.
    at: Bending,
    // Axis of the face.
    axis: u32,
    // Steps before the last.
    steps: u32,
    // Length of the last step, which ends at the face.
    last: f32,
    leaves: bool,
}

// The time within a step at which the path crosses a face, and the face's axis; not `meets` if the step ends inside the cube.
struct Meeting {
    time: f32,
    axis: u32,
    meets: bool,
}

// The first state of a path, and the derivatives by its velocity.
struct Reversed {
    start: State,
    by_v: vec3f,
}

fn meeting(start: State, force: vec3f, end: vec3f) -> Meeting {
    var first = Meeting(0.0, 0u, false);
    for (var a = 0u; a < 3u; a++) {
        if !(end[a] > 1.0) && !(end[a] < -1.0) {
            continue;
        }
        let face = select(-1.0, 1.0, end[a] > 1.0);
        // p + t v + t²/2 force = face, by the root that stays finite where there is no force.
        let away = face - start.p[a];
        let root = sqrt(max(start.v[a] * start.v[a] + 2.0 * force[a] * away, 0.0));
        let time = 2.0 * away / (start.v[a] + face * root);
        if !first.meets || time < first.time {
            first = Meeting(time, a, true);
        }
    }
    return first;
}

// Follows light from a point on a face to where it leaves the cube, if it does so within `most_steps`.
fn march(start: State) -> CubeExit {
    var exit: CubeExit;
    let whole = settings.cube.step;
    let half = 0.5 * whole;
    var state = start;
    var force = bending(state.p).force;
    for (var steps = 0u; steps < settings.cube.most_steps; steps++) {
        let between = state.v + half * force;
        let p = state.p + whole * between;
        let met = meeting(state, force, p);
        if met.meets {
            let half_last = 0.5 * met.time;
            let kicked = state.v + half_last * force;
            let place = state.p + met.time * kicked;
            let at = bending(place);
            return CubeExit(State(place, kicked + half_last * at.force), at, met.axis, steps, met.time, true);
        }
        force = bending(p).force;
        state = State(p, between + half * force);
    }
    return exit;
}

#ifdef REPLAY

// Integrates a path backwards from its exit to its entry, and sends the derivatives by the coefficients on the way, given
// those by position, velocity and index at the exit.
fn reverse(exit: CubeExit, d_p: vec3f, d_v: vec3f, by_index: f32) -> Reversed {
    var by_p = d_p;
    var by_v = d_v;
    var p = exit.state.p;
    let half_last = 0.5 * exit.last;
    // The last kick, at the face, where the index itself counts as well.
    let face = bending_along(p, by_v);
    kick(p, face.at, half_last, by_v, by_index);
    by_p += half_last * face.turned + by_index * face.at.slope;
    // The velocity between two kicks.
    var between = exit.state.v - half_last * face.at.force;
    p -= exit.last * between;
    // The last step is as long as the way to the face, which does not move: what would push its end off the face changes the
    // step's length instead.
    let force = bending(p).force;
    let speed = between + half_last * force;
    let by_length = dot(by_p, speed) + 0.5 * (dot(by_v, face.at.force) + dot(by_v, force));
    by_p -= select(vec3f(0.0), vec3f(by_length / speed[exit.axis]), vec3u(0u, 1u, 2u) == vec3u(exit.axis));
    by_v += exit.last * by_p;
    // The half kicks of two neighbouring steps act at the same point and are merged.
    let whole = settings.cube.step;
    let half = 0.5 * whole;
    var length = half_last;
    for (var i = 0u; i < exit.steps; i++) {
        let found = bending_along(p, by_v);
        let both = length + half;
        kick(p, found.at, both, by_v, 0.0);
        by_p += both * found.turned;
        between -= both * found.at.force;
        p -= whole * between;
        by_v += whole * by_p;
        length = half;
    }
    let first = bending(p);
    kick(p, first, length, by_v, 0.0);
    return Reversed(State(p, between - length * first.force), by_v);
}

// Sends the derivatives of a kick by n∇n of this length, `by_v` being those by the velocity behind it, and `by_index` by the
// index itself.
fn kick(p: vec3f, at: Bending, length: f32, by_v: vec3f, by_index: f32) {
    index_send(p, length * dot(by_v, at.slope) + by_index, (length * at.index) * by_v);
}

#endif
