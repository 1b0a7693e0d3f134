// How a leaf of a BSDF faces a path: the directions in the frame that its model is evaluated in. That is the local frame
// of the surface, turned over on the back of a two-sided BSDF, or the frame of a normal map or a bump map in it.

#import transport/scene/bsdf/local
#import transport/scene/interaction
#import transport/scene/records
#import transport/scene/texture
#ifdef RELIEFS
#import transport/scene/bsdf/relief
#import transport/scene/tangent
#endif

// The direction that a path comes from, in the frame of a leaf's model; not `lit` where the leaf is for the relief's other
// side alone.
struct Facing {
    wi: vec3f,
    lit: bool,
#ifdef RELIEFS
    // The same in the surface's frame, turned over if the relief is.
    before: vec3f,
    relief: Relief,
    relieved: bool,
#endif
}

// A direction that light comes from, as a leaf sees it, and the share of it that the relief does not shadow; not `lit`
// where it lies on different sides of the surface and of the relief.
struct Seen {
    wo: vec3f,
    factor: f32,
    lit: bool,
}

// `d`, turned over (z negated) if the leaf has this flag.
fn turned(leaf: Leaf, bit: u32, d: vec3f) -> vec3f {
    return select(d, flipped(d), (leaf.flags & bit) != 0u);
}

// How a leaf faces a path.
fn facing(leaf: Leaf, at: Interaction) -> Facing {
    var faced: Facing;
    faced.lit = true;
    faced.wi = turned(leaf, LEAF_TURNED, at.wi);
#ifdef RELIEFS
    faced.relieved = leaf.relief != NONE && !at.smooth_normal;
    if faced.relieved {
        relieved(leaf, at, &faced);
    }
#endif
    return faced;
}

// The direction `wo` of the surface's local frame as the leaf's model sees it.
fn facing_see(faced: Facing, leaf: Leaf, wo: vec3f) -> Seen {
#ifdef RELIEFS
    if faced.relieved {
        let outer = turned(leaf, LEAF_RELIEF_TURNED, wo);
        let seen = relief_to_local(faced.relief, outer);
        let lit = faced.lit && agree(seen.z, outer.z);
        var factor = 1.0;
        if (leaf.flags & LEAF_SHADOWS) != 0u && lit {
            factor = relief_shadowing(faced.relief, outer);
        }
        return Seen(turned(leaf, LEAF_TURNED, seen), factor, lit);
    }
#endif
    return Seen(turned(leaf, LEAF_TURNED, wo), 1.0, faced.lit);
}

// A direction as the model sees it in the surface's local frame; zero where it lies on different sides of the surface and
// of the relief.
fn facing_leave(faced: Facing, leaf: Leaf, direction: vec3f) -> vec3f {
    let seen = turned(leaf, LEAF_TURNED, direction);
#ifdef RELIEFS
    if faced.relieved {
        let outer = relief_to_surface(faced.relief, seen);
        return select(vec3f(0.0), turned(leaf, LEAF_RELIEF_TURNED, outer), faced.lit && agree(seen.z, outer.z));
    }
#endif
    return select(vec3f(0.0), seen, faced.lit);
}

// Whether a path may go straight on.
fn facing_passes(faced: Facing) -> bool {
#ifdef RELIEFS
    if faced.relieved {
        return faced.lit && agree(relief_to_local(faced.relief, faced.before).z, faced.before.z);
    }
#endif
    return faced.lit;
}

#ifdef RELIEFS

// The same as `facing`, of a leaf with a relief.
fn relieved(leaf: Leaf, at: Interaction, faced: ptr<function, Facing>) {
    let before = turned(leaf, LEAF_RELIEF_TURNED, at.wi);
    var m = vec3f(0.0);
    if (leaf.flags & LEAF_BUMP) != 0u {
        let slopes = texture_slopes(texture_record(leaf.relief), at.hit.point.uv);
        m = bump_normal(bump_new(leaf, at), vec2f(texture_eval(slopes.by_u).x, texture_eval(slopes.by_v).x));
    } else {
        m = 2.0 * texture_value(leaf.relief, at.hit.point) - 1.0;
    }
    let relief = relief_new(m, before, (leaf.flags & LEAF_FLIPS) != 0u);
    let wi = relief_to_local(relief, before);
    (*faced).before = before;
    (*faced).relief = relief;
    (*faced).wi = turned(leaf, LEAF_TURNED, wi);
    let in_front = (leaf.flags & LEAF_FRONT) == 0u || wi.z > 0.0;
    let behind = (leaf.flags & LEAF_BACK) == 0u || wi.z < 0.0;
    (*faced).lit = in_front && behind;
}

// Whether cosines with the relief's and with the surface's normal are of one sign.
fn agree(seen: f32, cosine: f32) -> bool {
    return seen * cosine > 0.0;
}

// How a bump map turns the normal: the derivatives of the point by u and v, in the surface's local frame, the first of which
// lies along x.
struct Bump {
    // The derivative by u along x; that by v along x and along y.
    along: vec3f,
    // Factor on the heights.
    scale: f32,
}

fn bump_new(leaf: Leaf, at: Interaction) -> Bump {
    let d = derivatives(at.hit);
    let axes = local_axes(at);
    let along = vec3f(dot(axes.s, d.dp_du), dot(axes.s, d.dp_dv), dot(axes.t, d.dp_dv));
    // Where the tangents do not span the surface its heights have no slopes.
    let spans = along.x * along.z != 0.0;
    return Bump(select(vec3f(1.0, 0.0, 1.0), along, spans), select(0.0, leaf.bump_scale, spans));
}

// The vector along the normal of a surface whose height has these derivatives by u and v.
fn bump_normal(bump: Bump, slopes: vec2f) -> vec3f {
    let slope = slopes * bump.scale;
    let d = bump.along;
    return vec3f(-slope.x * d.z, slope.x * d.y - slope.y * d.x, d.x * d.z) * bump_side(bump);
}

// The sign that turns the vector to the surface's own normal.
fn bump_side(bump: Bump) -> f32 {
    return select(1.0, -1.0, bump.along.x * bump.along.z < 0.0);
}

#ifdef REPLAY

// The derivatives by the slopes, from those by bump_normal.
fn bump_adjoint(bump: Bump, d: vec3f) -> vec2f {
    let scale = bump.scale * bump_side(bump);
    return vec2f(d.y * bump.along.y - d.x * bump.along.z, -d.y * bump.along.x) * scale;
}

// The derivatives by the relief's normal before normalisation. `by_turning` is the derivative by rotating the directions that
// the model sees, `by_factor` that by the share of the light from `wo` that is not shadowed.
fn normal_adjoint(faced: Facing, leaf: Leaf, wo: vec3f, by_turning: vec3f, by_factor: f32) -> vec3f {
    // To turn both directions over reverses rotations about x and y, but not about z.
    let turning = select(by_turning, -flipped(by_turning), (leaf.flags & LEAF_TURNED) != 0u);
    return relief_adjoint(faced.relief, turning, turned(leaf, LEAF_RELIEF_TURNED, wo), shadowed(leaf, by_factor));
}

// `by_factor` where the relief shadows.
fn shadowed(leaf: Leaf, by_factor: f32) -> f32 {
    return select(0.0, by_factor, (leaf.flags & LEAF_SHADOWS) != 0u);
}

// Sends the derivatives by the relief's texels, likewise.
fn facing_adjoint(faced: Facing, leaf: Leaf, at: Interaction, wo: vec3f, by_turning: vec3f, by_factor: f32) {
    if !faced.relieved {
        return;
    }
    let by_normal = normal_adjoint(faced, leaf, wo, by_turning, by_factor);
    if (leaf.flags & LEAF_BUMP) == 0u {
        texture_adjoint(stencil(leaf.relief, at.hit.point), 2.0 * by_normal);
        return;
    }
    let by_slopes = bump_adjoint(bump_new(leaf, at), by_normal);
    let slopes = texture_slopes(texture_record(leaf.relief), at.hit.point.uv);
    texture_adjoint(slopes.by_u, vec3f(by_slopes.x, 0.0, 0.0));
    texture_adjoint(slopes.by_v, vec3f(by_slopes.y, 0.0, 0.0));
}

#endif
#endif

#ifdef TRAILS
#ifdef REPLAY

// The derivatives by the local direction that the path comes from and by `wo`, from those by both directions in the model's
// frame and by the share that is not shadowed.
fn directions_adjoint(faced: Facing, leaf: Leaf, wo: vec3f, by_seen: Gradients, by_factor: f32) -> Gradients {
    var by = Gradients(turned(leaf, LEAF_TURNED, by_seen.wi), turned(leaf, LEAF_TURNED, by_seen.wo));
#ifdef RELIEFS
    if faced.relieved {
        let steep = relief_shadowing_by_direction(faced.relief, turned(leaf, LEAF_RELIEF_TURNED, wo));
        by.wi = turned(leaf, LEAF_RELIEF_TURNED, relief_to_surface(faced.relief, by.wi));
        by.wo = relief_to_surface(faced.relief, by.wo) + steep * shadowed(leaf, by_factor);
        by.wo = turned(leaf, LEAF_RELIEF_TURNED, by.wo);
    }
#endif
    return by;
}

#endif
#endif
