// The trail of a replay where shapes move: the last points of the path, and the derivatives by these. A scattering's factor
// depends on three points, so that its derivatives are sent when the path has found the third. Points in media stand still.

#import transport/paths/adjoint
#ifdef DRIFTS
#import transport/paths/drift
#endif
#import transport/paths/path_state
#import transport/rays/sampler
#import transport/scene/beam
#import transport/scene/bsdf
#import transport/scene/glide
#import transport/scene/interaction
#import transport/scene/light
#import transport/scene/motion
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/tangent
#import transport/scene/texture
#import transport/scene/three_point

#ifdef REPLAY
#ifdef TRAILS

// The last points of a path.
struct Trail {
    sensor: u32,
    // Whether the path has been scattered, and the last point at which it was.
    begun: bool,
    last: Anchor,
    // Width of that point's scattering lobe, and how far the path's hit since then slides along its ray.
    width: f32,
    met: Glide,
    // Scatterings whose third point is not known yet: towards a sampled light (0), and along the path (1); and the
    // derivatives by the logarithm of their factors.
    open: array<bool, 2>,
    points: array<ThreePoints, 2>,
    d: array<vec3f, 2>,
#ifdef DRIFTS
    // What has been passed since.
    drifts: array<Drift, 2>,
#endif
}

var<private> trail: Trail;

// Begins the trail of a path that is about to leave the camera of this sensor.
fn trail_new(sensor: u32) {
    trail.sensor = sensor;
    trail.begun = false;
    trail.open = array<bool, 2>(false, false);
}

// The anchor of a hit. For a BSDF that is isotropic any tangent serves as `along`.
fn anchor(hit: Hit, along: vec3f) -> Anchor {
    return Anchor(hit, along, motion_of(hit.surface), false, vec3f(0.0), HELD);
}

// The anchor of a point that was sampled on an area light from `origin`.
fn drawn_anchor(record: Light, origin: vec3f, drawn: Drawn) -> Anchor {
    var point = drawn.point;
    point.p = along(origin, drawn.direction, drawn.distance);
    let hit = Hit(drawn.distance, record.surface, 0u, point, 0.0, drawn.normal, drawn.normal, true);
    return anchor(hit, drawn.normal);
}

// The anchor of a point light, a spot or a projector.
fn light_anchor(record: Light, number: u32) -> Anchor {
    let frame = axes(record);
    let point = surface_point_new(record.position.xyz, vec2f(0.0));
    let hit = Hit(0.0, 0u, 0u, point, 0.0, frame.n, frame.n, true);
    return Anchor(hit, frame.s, launch.light_motions_at + MOTION_UNITS * number, false, vec3f(0.0), HELD);
}

// Remembers a scattering at a vertex in the local direction `wo`: towards a sampled light (turn 0) or along the path (turn
// 1). `by_value` are the derivatives by the value of the BSDF, `d` those by the logarithm of its factor.
fn leave_trail(at: Interaction, wo: vec3f, outgoing: vec3f, turn: u32, by_value: vec3f, d: vec3f) {
    var tangent = local_axes(at).s;
    if (at.flags & BSDF_ANISOTROPIC) != 0u {
        // Any tangent stands in where the surface has none of its own.
        let dp_du = derivatives(at.hit).dp_du;
        tangent = select(dp_du, tangent, all(across_normal(dp_du, at.hit.shading) == vec3f(0.0)));
    }
    var here = anchor(at.hit, tangent);
    here.seen = !trail.begun;
    here.ray = at.incoming;
    here.glide = WHOLE;
    if trail.begun {
        here.glide = trail.met;
    }
    open_trail(value_slopes(at, wo, by_value), outgoing, here, turn, d);
    if turn == 1u {
        trail.width = width(at);
    }
}

// Remembers a scattering at `here`, whose third point is not known yet.
fn open_trail(slopes: ValueSlopes, outgoing: vec3f, here: Anchor, turn: u32, d: vec3f) {
    var points: ThreePoints;
    points.slopes = slopes;
    points.outgoing = outgoing;
    points.here = here;
    points.before = trail.last;
    points.follows = trail.begun;
    points.sensor = trail.sensor;
    points.after = here;
    points.onwards = ONWARDS_DIRECTION;
    trail.points[turn] = points;
    trail.d[turn] = d;
    trail.open[turn] = true;
    if turn == 1u {
        trail.last = here;
        trail.begun = true;
        trail.met = HELD;
#ifdef DRIFTS
        trail.drifts[1] = drift_new();
#endif
    }
}

#ifdef DRIFTS

// The anchor of a point of a medium, which stands still; its frame is that of the world.
fn still_anchor(p: vec3f) -> Anchor {
    let up = vec3f(0.0, 0.0, 1.0);
    let hit = Hit(0.0, 0u, 0u, surface_point_new(p, vec2f(0.0)), 0.0, up, up, true);
    return Anchor(hit, vec3f(1.0, 0.0, 0.0), NONE, false, vec3f(0.0), HELD);
}

// Remembers a scattering at `p` in a medium, as leave_trail does; `slope` is the derivative of the logarithm of the phase
// function by the cosine.
fn leave_trail_in_medium(p: vec3f, incoming: vec3f, outgoing: vec3f, turn: u32, slope: f32, d: vec3f) {
    var slopes = ValueSlopes(no_gradients(), vec2f(0.0));
    let by_cosine = slope * (d.x + d.y + d.z);
    slopes.by.wi = outgoing * -by_cosine;
    slopes.by.wo = incoming * by_cosine;
    var here = still_anchor(p);
    here.ray = incoming;
    open_trail(slopes, outgoing, here, turn, d);
    if turn == 1u {
        // No surface is large beside it, so that none slides.
        trail.width = FAR;
    }
}

// Passes through the path's present medium up to a surface of the normal `exit`, if it `leaves`, or to a point in the medium.
fn drift_along(path: ptr<function, Path>, far: f32, leaves: bool, exit: vec3f, sampler: ptr<function, Sampler>) {
    // Where the way ends in the medium, its end stands still.
    let stands = trail.points[1].here.motion == NONE && !leaves && far < ENDLESS;
    if !trail.open[1] || (*path).medium == NONE || stands {
        return;
    }
    var draws = sampler_aside(*sampler);
    let medium = medium_record((*path).medium);
    trail.drifts[1] = drift_cross(
        trail.drifts[1], medium, (*path).origin, (*path).direction, far, leaves, exit, trail.d[1], &draws
    );
}

#endif

// Sets the third point of the scattering towards a light that was sampled from `origin`, after leave_trail.
fn aim_trail(origin: vec3f, drawn: Drawn) {
    let record = light_record(drawn.light);
    let points = &trail.points[0];
    if is_light(record.kind, LIGHT_AREA) {
        (*points).after = drawn_anchor(record, origin, drawn);
        (*points).onwards = ONWARDS_SURFACE;
    } else if !is_light(record.kind, LIGHT_ENVMAP) && !is_light(record.kind, LIGHT_DIRECTIONAL) {
        (*points).after = light_anchor(record, drawn.light);
        (*points).onwards = ONWARDS_POINT;
        (*points).light = drawn.light;
    }
}

// Completes the open scatterings and sends their derivatives: the path has met `hit`, or a point of a medium (`inside`, at
// hit.point), or left the scene, or `ended`.
fn follow_trail(hit: Hit, inside: bool, ended: bool) {
#ifdef DRIFTS
    // A boundary without BSDF is passed straight on.
    let passes = hit.found && !inside && surface_record(hit.surface).bsdf == NONE;
#else
    let passes = false;
#endif
    if trail.open[1] && hit.found && !inside && !passes && !ended {
        let motion = motion_record(motion_of(hit.surface));
        trail.met = glide(motion, trail.last.hit.point.p, trail.width, hit, trail.points[1].outgoing);
    }
    for (var turn = 0u; turn < 2u; turn++) {
        let open = trail.open[turn] && !(turn == 1u && ended);
#ifdef DRIFTS
        if turn == 1u && passes {
            trail.drifts[1] = drift_pass(trail.drifts[1], hit.t, hit.normal);
            continue;
        }
#endif
        trail.open[turn] = false;
        if !open || all(trail.d[turn] == vec3f(0.0)) {
            continue;
        }
        var points = trail.points[turn];
        if turn == 1u && hit.found {
#ifdef DRIFTS
            points.after = still_anchor(hit.point.p);
            points.onwards = ONWARDS_MEDIUM;
#endif
            if !inside {
                // The logarithm of the cosine has no derivative at zero: the surfaces lie in one plane, and one ray joins them.
                if dot(hit.normal, hit.point.p - trail.last.hit.point.p) == 0.0 {
                    continue;
                }
                points.after = anchor(hit, hit.normal);
                points.after.ray = points.outgoing;
                points.after.glide = trail.met;
                points.onwards = ONWARDS_SURFACE;
            }
        }
#ifdef DRIFTS
        let way = points.after.hit.point.p - points.here.hit.point.p;
        let nearer = select(1.0 / sqrt(dot(way, way)), 0.0, points.onwards == ONWARDS_DIRECTION);
        points.shifts = drift_shifts(trail.drifts[turn], points.outgoing, nearer);
#endif
        three_points_adjoint(points, trail.d[turn]);
    }
}

// Sends the derivatives of a light that the camera sees directly, whose texture moves; `d` are those by its radiance.
fn seen_light(record: Light, hit: Hit, ray: vec3f, d: vec3f) {
    if trail.begun || record.light_texture == NONE {
        return;
    }
    var by = no_changes();
    by.by_uv = picture_slopes(record.light_texture, hit.point.uv, d * light_color(record));
    var point = anchor(hit, hit.normal);
    point.seen = true;
    point.ray = ray;
    point.glide = WHOLE;
    if anchor_is_wanted(point, trail.sensor) {
        anchor_adjoint(point, trail.sensor, vec3f(0.0), vec3f(0.0), by);
    }
}

#endif
#endif
