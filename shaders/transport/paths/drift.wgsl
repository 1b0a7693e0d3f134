// How the transmittance of a straight way through media changes as the ends of the way move (docs/method.md, section 21,
// (52b)). The media and their boundaries stand still.

#import transport/lookup/volume
#import transport/paths/tracking
#import transport/rays/sampler
#import transport/scene/majorant
#import transport/scene/records

#ifdef REPLAY
#ifdef DRIFTS

// The derivatives by moving the points of a way across it, summed over what has been passed.
struct Drift {
    // The sum of all derivatives, and the sum of each times its distance from the start.
    all: vec3f,
    far: vec3f,
    // The derivative by moving the way's end ahead.
    ahead: f32,
    // The distance from the start to the last boundary.
    passed: f32,
    // Whether there was one, and its normal.
    within: bool,
    entered: vec3f,
}

// Nothing passed yet.
fn drift_new() -> Drift {
    return Drift(vec3f(0.0), vec3f(0.0), 0.0, 0.0, false, vec3f(0.0));
}

// Passes through `medium` from `origin`, the last boundary or the start, over the distance `far`: up to a boundary of the
// normal `exit` if it `leaves`, else to the way's end in the medium. `d` is the derivative by the logarithm of the
// transmittance. Draws one number.
fn drift_cross(
    before: Drift,
    medium: Medium,
    origin: vec3f,
    direction: vec3f,
    far: f32,
    leaves: bool,
    exit: vec3f,
    d: vec3f,
    sampler: ptr<function, Sampler>,
) -> Drift {
    var drift = before;
    let u = sampler_draw(sampler);
    let part = clip(medium, origin, direction, 0.0, far);
    if !part.met || part.end >= ENDLESS {
        return drift;
    }
    // Inside: the slope of the extinction at one point, times the length. Both ends: where the way is moved across, it meets
    // a boundary earlier or later.
    let length = part.end - part.start;
    let distances = vec3f(part.start + length * u, part.start, part.end);
    for (var turn = 0u; turn < 3u; turn++) {
        let t = select(select(distances.z, distances.y, turn == 1u), distances.x, turn == 0u);
        let p = along(origin, direction, t);
        if turn == 0u {
            drift = drift_add(drift, t, direction, volume_slopes(volume_record(medium.sigma_t), p, d * (-length * medium.scale)));
            continue;
        }
        // The way meets a face of the medium's box, or the boundary that it comes from or leads to.
        var normal = face(medium, p);
        var meets = true;
        if turn == 1u && part.start <= 0.0 {
            normal = drift.entered;
            meets = drift.within;
        } else if turn == 2u && part.end >= far {
            normal = exit;
            meets = leaves;
        }
        let sigma = dot(d, extinction(medium, p).sigma);
        let cosine = dot(normal, direction);
        if meets && cosine != 0.0 {
            drift = drift_add(drift, t, direction, normal * (select(-sigma, sigma, turn == 2u) / cosine));
        } else if !meets && turn == 2u {
            drift.ahead = -sigma;
        }
    }
    return drift;
}

// Adds the derivative by moving the point at a distance from the last boundary, of which the part across the way counts.
fn drift_add(before: Drift, distance: f32, direction: vec3f, by_point: vec3f) -> Drift {
    var drift = before;
    let across = by_point - direction * dot(by_point, direction);
    drift.all += across;
    drift.far += across * (before.passed + distance);
    return drift;
}

// Passes a boundary of this normal, after so much of the way from the last.
fn drift_pass(before: Drift, distance: f32, normal: vec3f) -> Drift {
    var drift = before;
    drift.passed += distance;
    drift.within = true;
    drift.entered = normal;
    return drift;
}

// The derivatives by both ends of a way of this direction and of length 1 / `nearer`; if the direction is held, `nearer` is
// zero.
fn drift_shifts(drift: Drift, direction: vec3f, nearer: f32) -> array<vec3f, 2> {
    let far = drift.far * nearer;
    return array<vec3f, 2>(drift.all - far, far + direction * drift.ahead);
}

// The normal of the face of a medium's box that `p` lies on.
fn face(medium: Medium, p: vec3f) -> vec3f {
    let depth = min(abs(p - medium.low), abs(p - medium.high));
    if depth.x <= depth.y && depth.x <= depth.z {
        return vec3f(1.0, 0.0, 0.0);
    }
    if depth.y <= depth.z {
        return vec3f(0.0, 1.0, 0.0);
    }
    return vec3f(0.0, 0.0, 1.0);
}

#endif
#endif
