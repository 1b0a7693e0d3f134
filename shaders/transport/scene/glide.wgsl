// How far a point that a path meets slides along the path's ray when its surface moves, in place of following it (docs/method.md,
// section 21).

#import bind/scene
#import transport/rays/camera
#import transport/scene/interaction
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/tangent
#import transport/scene/texture

#ifdef REPLAY
#ifdef TRAILS

// The square of the distance from the middle, in that of the border, from which on points slide less.
const MIDDLE: f32 = 0.25;
// The cosine of the angle to the normal below which points slide less.
const LEAST_COSINE: f32 = 0.25;

// Points slide on surfaces that are at least this many times as large as what a lobe covers: what is smaller changes more along a
// ray than the lobe does.
const LARGE: f32 = 2.0;

// The share of the way along the ray that a point goes, and the derivative of that by moving the point over its surface.
struct Glide {
    share: f32,
    slope: vec3f,
}

// None of the way, of what follows its surface; all of it, as where a camera looks.
const HELD = Glide(0.0, vec3f(0.0));
const WHOLE = Glide(1.0, vec3f(0.0));

// A step from zero to one between zero and one, and its derivative.
fn step_slope(t: f32) -> vec2f {
    let x = clamp(t, 0.0, 1.0);
    return vec2f(x * x * (3.0 - 2.0 * x), 6.0 * x * (1.0 - x));
}

// By what angle, about, directions change that a BSDF scatters to: the least roughness of its leaves.
fn width(at: Interaction) -> f32 {
    var least = 1.0;
    for (var i = 0u; i < at.leaves.y; i++) {
        let leaf = leaf_record(at.leaves.x + i);
        let first = leaf.first_texture;
        switch leaf.kind {
            case LEAF_ROUGH_CONDUCTOR, LEAF_ROUGH_DIELECTRIC: {
                least = min(least, texture_value(first + 3u, at.hit.point).x);
                least = min(least, texture_value(first + 4u, at.hit.point).x);
            }
            case LEAF_ROUGH_PLASTIC: {
                least = min(least, texture_value(first + 3u, at.hit.point).x);
            }
            case LEAF_PRINCIPLED, LEAF_PRINCIPLED_THIN: {
                let roughness = texture_value(first + 1u, at.hit.point).x;
                least = min(least, roughness * roughness);
            }
            default: {}
        }
    }
    return least;
}

// How far the point slides that a ray along `ray` meets which was scattered at `origin`, by a lobe of this width, on a surface that is
// moved so.
fn glide(motion: Motion, origin: vec3f, width: f32, hit: Hit, ray: vec3f) -> Glide {
    // What a lobe covers at this distance.
    if motion.extent <= 0.0 || motion.extent < LARGE * width * length(motion.middle - origin) {
        return HELD;
    }
    // The square of the distance from the middle, and its derivative.
    let rows = motion.track;
    var at = transform_point(rows, hit.point.p);
    if any(rows[2] != vec4f(0.0)) {
        // Of a box the coordinate across the face.
        let size = abs(at);
        if size.x >= size.y && size.x >= size.z {
            at.x = 0.0;
        } else if size.y >= size.z {
            at.y = 0.0;
        } else {
            at.z = 0.0;
        }
    }
    let outwards = 2.0 * (at.x * rows[0].xyz + at.y * rows[1].xyz + at.z * rows[2].xyz);
    let border = step_slope((1.0 - dot(at, at)) / (1.0 - MIDDLE));
    // The cosine, and its derivative: the ray turns about where it comes from, and the normal of what is curved turns.
    let cosine = dot(hit.normal, ray);
    let kind = surface_record(hit.surface).kind;
    var turning = vec3f(0.0);
    if is_shape(kind, SURFACE_SPHERE) || is_shape(kind, SURFACE_CYLINDER) {
        turning = slopes(hit).normal * ray * sign(cosine);
    }
    let by_cosine = turning - ray * (abs(cosine) / hit.t);
    let lean = step_slope(abs(cosine) / LEAST_COSINE);
    let slope = by_cosine * (border.x * lean.y / LEAST_COSINE) - outwards * (lean.x * border.y / (1.0 - MIDDLE));
    let share = border.x * lean.x;
    if !(share > 0.0) {
        return HELD;
    }
    return Glide(share, slope);
}

#endif
#endif
