// How far a path's hit slides along its ray when the surface moves, in place of following the surface (docs/method.md,
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

// Squared distance from the middle, relative to that of the border, from which on points slide less.
const MIDDLE: f32 = 0.25;
// The cosine of the angle to the normal below which points slide less.
const LEAST_COSINE: f32 = 0.25;

// Points slide on surfaces at least this many times as large as the lobe's footprint: on smaller ones, derivatives along the
// ray have more variance than those of a point that follows the surface.
const LARGE: f32 = 2.0;

// The share λ of the slide along the ray, from 0 to 1, and its gradient by moving the point over its surface.
struct Glide {
    share: f32,
    slope: vec3f,
}

// λ = 0: the point follows its surface. λ = 1: it stays on the ray, as for a camera's ray.
const HELD = Glide(0.0, vec3f(0.0));
const WHOLE = Glide(1.0, vec3f(0.0));

// The smooth step 3t² - 2t³ from zero to one, and its derivative.
fn step_slope(t: f32) -> vec2f {
    let x = clamp(t, 0.0, 1.0);
    return vec2f(x * x * (3.0 - 2.0 * x), 6.0 * x * (1.0 - x));
}

// About the angular width of a BSDF's narrowest lobe: the least roughness of its leaves, one if they are diffuse.
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

// How far a hit slides along `ray`, on a surface of this motion, if the ray was scattered at `origin` by a lobe of this
// width.
fn glide(motion: Motion, origin: vec3f, width: f32, hit: Hit, ray: vec3f) -> Glide {
    // The footprint of the lobe at this distance.
    if motion.extent <= 0.0 || motion.extent < LARGE * width * length(motion.middle - origin) {
        return HELD;
    }
    // The square of the distance from the middle, and its derivative.
    let rows = motion.track;
    var at = transform_point(rows, hit.point.p);
    if any(rows[2] != vec4f(0.0)) {
        // Of a box, without the coordinate across the face.
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
    // A ray that has passed boundaries counts `hit.t` from the last of them.
    let by_cosine = turning - ray * (abs(cosine) / dot(hit.point.p - origin, ray));
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
