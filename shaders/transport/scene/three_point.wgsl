// Scattering in three-point form: the derivatives of the light that goes from one point via a second to a third, by the
// motion of all three (docs/method.md, section 21).

#import common/math
#import transport/scene/beam
#import transport/scene/bsdf
#import transport/scene/facing
#import transport/scene/interaction
#import transport/scene/motion
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/texture

#ifdef REPLAY
#ifdef TRAILS

// Kinds of the third point: none but a fixed direction, of what is far away; a point of a surface, sampled there or met by a
// ray, by area; or a point-like light, whose tangent and normal are the axes of its beam.
const ONWARDS_DIRECTION: u32 = 0u;
const ONWARDS_SURFACE: u32 = 1u;
const ONWARDS_POINT: u32 = 2u;
// A point of a medium, by volume.
const ONWARDS_MEDIUM: u32 = 3u;

// A scattering, with the points before and after it.
struct ThreePoints {
    // The derivatives by way of the BSDF's value here.
    slopes: ValueSlopes,
    // The direction in which the path goes on.
    outgoing: vec3f,
    here: Anchor,
    // The point before, if the path `follows` one; else it comes from the camera of this sensor.
    before: Anchor,
    follows: bool,
    sensor: u32,
    after: Anchor,
    onwards: u32,
    // The index of the point-like light.
    light: u32,
#ifdef DRIFTS
    // The derivatives by the second and the third point, by way of the transmittance between them.
    shifts: array<vec3f, 2>,
#endif
}

// Derivatives of a BSDF's value by both local directions, and by the texture coordinates.
struct ValueSlopes {
    by: Gradients,
    by_uv: vec2f,
}

// The derivatives of `d` times the value for the local direction `wo`.
fn value_slopes(at: Interaction, wo: vec3f, d: vec3f) -> ValueSlopes {
    var sum = ValueSlopes(no_gradients(), vec2f(0.0));
    for (var i = 0u; i < at.leaves.y; i++) {
        let leaf = leaf_record(at.leaves.x + i);
        if leaf.kind == LEAF_NULL {
            continue;
        }
        let faced = facing(leaf, at);
        let seen = facing_see(faced, leaf, wo);
        if !seen.lit {
            continue;
        }
        let by_leaf = d * leaf_weight(leaf, at.hit.point);
        var by_seen: Gradients;
        var by_factor = 0.0;
        if is_lambertian(leaf) {
            by_seen = diffuse_gradients(texture_value(leaf.first_texture, at.hit.point), seen.wo, by_leaf);
            sum.by_uv += picture_slopes(leaf.first_texture, at.hit.point.uv, diffuse_adjoint(seen.wo, by_leaf));
        } else {
#ifdef MODELS
            let v = leaf_values(leaf, at.hit.point);
            let by_model = by_leaf * seen.factor;
            by_seen = model_gradients(leaf, v, faced.wi, seen.wo, by_model);
            let by_values = model_eval_adjoint(leaf, v, faced.wi, seen.wo, by_model);
            for (var k = 0u; k < leaf.textures; k++) {
                sum.by_uv += picture_slopes(leaf.first_texture + k, at.hit.point.uv, placed(by_values, k));
            }
#ifdef RELIEFS
            if faced.relieved {
                by_factor = dot(by_leaf, model_eval(leaf, v, faced.wi, seen.wo));
                if (leaf.flags & LEAF_BUMP) == 0u {
                    let by_normal = normal_adjoint(faced, leaf, wo, torque(faced.wi, seen.wo, by_seen), by_factor);
                    sum.by_uv += picture_slopes(leaf.relief, at.hit.point.uv, 2.0 * by_normal);
                }
            }
#endif
#endif
        }
        let by = directions_adjoint(faced, leaf, wo, by_seen, by_factor);
        sum.by.wi += by.wi;
        sum.by.wo += by.wo;
#ifdef MIXTURES
        if leaf.factors > 0u {
            sum.by_uv += weight_slopes(leaf, at.hit.point, dot(d, leaf_eval(leaf, at, LOBE_SMOOTH, wo).value));
        }
#endif
    }
    return sum;
}

#ifdef MIXTURES

// The derivatives by the texture coordinates through the factors of a leaf's weight, from `d` by the weight.
fn weight_slopes(leaf: Leaf, point: SurfacePoint, d: f32) -> vec2f {
    var sum = vec2f(0.0);
    for (var i = 0u; i < leaf.factors; i++) {
        let factor = factor_record(leaf.first_factor + i);
        sum += picture_slopes(factor.factor_texture, point.uv, vec3f(weight_slope(leaf, point, i, d), 0.0, 0.0));
    }
    return sum;
}

#endif

// Whether derivatives by how any of the three points moves are needed.
fn three_points_is_wanted(points: ThreePoints) -> bool {
    if anchor_is_wanted(points.here, points.sensor) {
        return true;
    }
    if points.follows && anchor_is_wanted(points.before, points.sensor) {
        return true;
    }
    return points.onwards != ONWARDS_DIRECTION && anchor_is_wanted(points.after, points.sensor);
}

// Sends the derivatives by the three points, from `d` by the logarithm of the light that is scattered.
fn three_points_adjoint(points: ThreePoints, d: vec3f) {
    if !three_points_is_wanted(points) {
        return;
    }
    let here = points.here;
    let x = here.hit.point.p;
    var to_before = -here.ray;
    if points.follows {
        to_before = points.before.hit.point.p - x;
    }
    var to_after = points.outgoing;
    if points.onwards != ONWARDS_DIRECTION {
        to_after = points.after.hit.point.p - x;
    }
    let nearer = vec2f(1.0 / sqrt(dot(to_before, to_before)), 1.0 / sqrt(dot(to_after, to_after)));
    let i = to_before * nearer.x;
    let o = to_after * nearer.y;
    // The frame, whose first axis is the direction of `across`.
    let n = here.hit.shading;
    let height = dot(n, here.along);
    let across = here.along - n * height;
    let shorter = 1.0 / sqrt(dot(across, across));
    let s = across * shorter;
    let t = cross(n, s);
    // From local directions to the vectors to both neighbours and to the axes.
    let by_wi = points.slopes.by.wi;
    let by_wo = points.slopes.by.wo;
    var by_before = direction_adjoint(i, nearer.x, s * by_wi.x + t * by_wi.y + n * by_wi.z);
    var by_after = direction_adjoint(o, nearer.y, s * by_wo.x + t * by_wo.y + n * by_wo.z);
    let by_t = i * by_wi.y + o * by_wo.y;
    let by_s = i * by_wi.x + o * by_wo.x + cross(by_t, n);
    let by_n = i * by_wi.z + o * by_wo.z + cross(s, by_t);
    let by_across = direction_adjoint(s, shorter, by_s);
    let upwards = dot(n, by_across);
    var by_here = no_changes();
    by_here.by_uv = points.slopes.by_uv;
    by_here.by_tangent = by_across - n * upwards;
    by_here.by_normal = by_n - (by_across * height + here.along * upwards);
    // The factor of the third point: the density by area, or the light's beam.
    let all = d.x + d.y + d.z;
    var by_third = no_changes();
    if points.onwards == ONWARDS_POINT {
        let beam = beam_adjoint(light_record(points.light), to_after, d);
        by_third.by_area = beam.by_axes.n;
        by_third.by_tangent = beam.by_axes.s;
        by_after += beam.by_to - to_after * (2.0 * all * nearer.y * nearer.y);
    } else if points.onwards == ONWARDS_SURFACE {
        let area = points.after.hit.normal;
        let scale = all / dot(area, to_after);
        by_third.by_area = to_after * scale;
        by_after += area * scale - to_after * (3.0 * all * nearer.y * nearer.y);
    }
#ifdef DRIFTS
    if points.onwards == ONWARDS_MEDIUM {
        by_after -= to_after * (2.0 * all * nearer.y * nearer.y);
    }
#endif
    // Send them to what moves the points.
    var by_p = vec3f(0.0);
    if points.onwards != ONWARDS_DIRECTION {
        by_p -= by_after;
    }
    var by_ray = vec3f(0.0);
    if points.follows {
        by_p -= by_before;
    } else {
        by_ray = -by_before;
    }
#ifdef DRIFTS
    by_p += points.shifts[0];
    by_after += points.shifts[1];
#endif
    // A loop, so that compilers write its code out once.
    for (var part = 0u; part < 3u; part++) {
        var anchor = here;
        var by_point = by_p;
        var by = by_here;
        if part == 1u {
            if !points.follows {
                continue;
            }
            anchor = points.before;
            by_point = by_before;
            by_ray = vec3f(0.0);
            by = no_changes();
        } else if part == 2u {
            if points.onwards == ONWARDS_DIRECTION {
                continue;
            }
            anchor = points.after;
            by_point = met_adjoint(anchor, by_after, all);
            by_ray = vec3f(0.0);
            by = by_third;
            by.by_area *= 1.0 - anchor.glide.share;
            anchor.glide = HELD;
        }
        anchor_adjoint(anchor, points.sensor, by_point, by_ray, by);
    }
}

#endif
#endif
