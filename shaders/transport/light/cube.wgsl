// Light through a cube of varying index: from a point of the lamp into one of its faces, along a bent ray, out of another
// face onto the screen; and the derivatives of the arriving light by the coefficients of the index.

#import bind/light
#import transport/light/landing
#import transport/light/leapfrog

// In place of infinity: shader compilers may assume that floats are finite.
const FAR: f32 = 1e30;

// A passage through a face.
struct Passage {
    // Components along the face's normal of the velocity inside and of the direction outside.
    inside: f32,
    outside: f32,
    // The index inside.
    index: f32,
    // Share of light that gets through.
    passed: f32,
}

// The point where light enters the cube and the axis of that face; not `enters` if light passes beside the cube.
struct CubeEntry {
    p: vec3f,
    axis: u32,
    enters: bool,
}

// Position and velocity just inside the face where light enters.
struct Entered {
    state: State,
    passage: Passage,
}

// The direction outside the face where light leaves; not `passes` at total reflection.
struct Left {
    direction: vec3f,
    passage: Passage,
    passes: bool,
}

// A path through the cube.
struct CubeTrace {
    // Axis of the face where light enters; `entered` is the passage there.
    axis: u32,
    entered: Passage,
    exit: CubeExit,
    left: Passage,
    weight: f32,
    landing: Landing,
}

// Film position and weight of a path, if it `arrives`; `bent` if it went through the cube, not beside it.
struct CubePath {
    film: vec2f,
    weight: f32,
    arrives: bool,
    bent: bool,
    trace: CubeTrace,
}

// Derivatives by the velocity inside and by the index, at a face.
struct LeaveAdjoint {
    v: vec3f,
    index: f32,
}

// Fresnel amplitudes of reflection at a face, for both polarisations.
fn cube_reflected(inside: f32, outside: f32, square: f32) -> vec2f {
    let dense = square * outside;
    return vec2f((inside - outside) / (inside + outside), (inside - dense) / (inside + dense));
}

// Passage through a face that refracts.
fn passage_refracted(inside: f32, outside: f32, index: f32) -> Passage {
    let amplitudes = cube_reflected(inside, outside, index * index);
    return Passage(inside, outside, index, 1.0 - 0.5 * dot(amplitudes, amplitudes));
}

// Passage through a face that does not refract.
fn passage_open(inside: f32, index: f32) -> Passage {
    return Passage(inside, inside, index, 1.0);
}

// Derivatives of the logarithm of `passed` by `inside`, `outside` and `index`.
fn passage_slopes(passage: Passage) -> vec3f {
    let inside = passage.inside;
    let outside = passage.outside;
    let index = passage.index;
    let square = index * index;
    let amplitudes = cube_reflected(inside, outside, square);
    let below = vec2f(inside + outside, inside + square * outside);
    // Both amplitudes are (x - 1) / (x + 1), with x = inside / outside for s, and that over index² for p.
    let by = -(2.0 / passage.passed) * amplitudes / (below * below);
    return vec3f(
        by.x * outside + by.y * square * outside,
        -(by.x * inside) - by.y * square * inside,
        -(by.y * inside * outside * (index + index)),
    );
}

// The magnitude of a vector's component along this axis.
fn cube_along(v: vec3f, axis: u32) -> f32 {
    return abs(v[axis]);
}

// `v` with the component along an axis set to this magnitude, its sign kept.
fn cube_with(v: vec3f, axis: u32, size: f32) -> vec3f {
    let component = select(size, -size, v[axis] < 0.0);
    return select(v, vec3f(component), vec3u(0u, 1u, 2u) == vec3u(axis));
}

// Where light that leaves the lamp at (u, v) enters the cube.
fn cube_entry(place: vec2f) -> CubeEntry {
    var none: CubeEntry;
    let p = cube_origin(place);
    let direction = settings.cube.direction;
    var first = -FAR;
    var axis = 0u;
    var last = FAR;
    for (var a = 0u; a < 3u; a++) {
        let d = direction[a];
        if d == 0.0 {
            if abs(p[a]) >= 1.0 {
                return none;
            }
            continue;
        }
        let side = sign(d);
        let near = (-side - p[a]) / d;
        if near > first {
            first = near;
            axis = a;
        }
        last = min(last, (side - p[a]) / d);
    }
    if !(first < last) {
        return none;
    }
    let met = clamp(p + first * direction, vec3f(-1.0), vec3f(1.0));
    let face = -sign(direction[axis]);
    return CubeEntry(select(met, vec3f(face), vec3u(0u, 1u, 2u) == vec3u(axis)), axis, true);
}

// The point (u, v) of the lamp, in the cube's frame.
fn cube_origin(place: vec2f) -> vec3f {
    return settings.cube.corner + settings.cube.across * place.x + settings.cube.down * place.y;
}

// Position and velocity just inside the face where light enters.
fn cube_enter(p: vec3f, axis: u32) -> Entered {
    let d = settings.cube.direction;
    let n = bending(p).index;
    if settings.cube.refracts == 0u {
        let v = n * d;
        return Entered(State(p, v), passage_open(cube_along(v, axis), n));
    }
    let outside = cube_along(d, axis);
    // The tangential component does not change.
    let inside = sqrt(n * n - (1.0 - outside * outside));
    return Entered(State(p, cube_with(d, axis, inside)), passage_refracted(inside, outside, n));
}

// The direction outside the face where light leaves, and the passage through that face.
fn cube_leave(exit: CubeExit) -> Left {
    var none: Left;
    let v = exit.state.v;
    let n = exit.at.index;
    let inside = cube_along(v, exit.axis);
    if settings.cube.refracts == 0u {
        return Left(v, passage_open(inside, n), true);
    }
    let square = 1.0 - (dot(v, v) - inside * inside);
    if !(square > 0.0) || !(inside > 0.0) {
        return none;
    }
    let outside = sqrt(square);
    return Left(cube_with(v, exit.axis, outside), passage_refracted(inside, outside, n), true);
}

fn cube_trace(entry: CubeEntry) -> CubePath {
    var path: CubePath;
    let entered = cube_enter(entry.p, entry.axis);
    let exit = march(entered.state);
    if !exit.leaves {
        return path;
    }
    let left = cube_leave(exit);
    if !left.passes {
        return path;
    }
    let landing = land(exit.state.p, left.direction);
    let weight = entered.passage.passed * left.passage.passed * landing.pixels;
    let trace = CubeTrace(entry.axis, entered.passage, exit, left.passage, weight, landing);
    return CubePath(landing.film, weight, landing.meets, true, trace);
}

// Follows light from a place of the lamp, in [0, 1]².
fn cube_follow(place: vec2f) -> CubePath {
    let entry = cube_entry(place);
    if entry.enters {
        return cube_trace(entry);
    }
    var path: CubePath;
    let landing = land(cube_origin(place), settings.cube.direction);
    path.film = landing.film;
    path.weight = landing.pixels;
    path.arrives = landing.meets;
    return path;
}

#ifdef REPLAY

// Sends derivatives by the place on the film and by the weight of a path to the coefficients.
fn cube_send(trace: CubeTrace, by_film: vec2f, by_weight: f32) {
    let by_log = by_weight * trace.weight;
    let by = landing_adjoint(trace.landing, by_film, by_log);
    let inside = cube_leave_adjoint(trace, by.direction, by_log);
    let reversed = reverse(trace.exit, by.p, inside.v, inside.index);
    index_send(reversed.start.p, cube_enter_adjoint(trace, reversed.start, reversed.by_v, by_log), vec3f(0.0));
}

// From derivatives by the direction outside the cube and by the logarithm of the transmitted share to those by the velocity
// inside and by the index at the exit.
fn cube_leave_adjoint(trace: CubeTrace, by_direction: vec3f, by_log: f32) -> LeaveAdjoint {
    if settings.cube.refracts == 0u {
        return LeaveAdjoint(by_direction, 0.0);
    }
    let v = trace.exit.state.v;
    let axis = trace.exit.axis;
    let by = passage_slopes(trace.left) * by_log;
    let forward = select(1.0, -1.0, v[axis] < 0.0);
    // outside² = 1 - (tangential component)².
    let by_outside = (by.y + forward * by_direction[axis]) / trace.left.outside;
    let beside = by_direction - by_outside * v;
    return LeaveAdjoint(select(beside, vec3f(forward * by.x), vec3u(0u, 1u, 2u) == vec3u(axis)), by.z);
}

// The derivative by the index where light enters.
fn cube_enter_adjoint(trace: CubeTrace, start: State, by_v: vec3f, by_log: f32) -> f32 {
    if settings.cube.refracts == 0u {
        return dot(by_v, settings.cube.direction);
    }
    let by = passage_slopes(trace.entered) * by_log;
    let by_axis = select(by_v[trace.axis], -by_v[trace.axis], start.v[trace.axis] < 0.0);
    // inside² = index² - (tangential component)².
    return by.z + (by.x + by_axis) * trace.entered.index / trace.entered.inside;
}

#endif
