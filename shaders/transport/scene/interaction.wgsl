// Where a path meets a surface: the point, its frames, and the side that it comes from.

#import transport/rays/sampler
#import transport/scene/records
#import transport/scene/shape
#ifdef TANGENTS
#import transport/scene/tangent
#endif

// A path's meeting with a surface that has a BSDF. Directions in the local frame have the shading normal along z.
struct Interaction {
    hit: Hit,
    // The direction of propagation before, in the world.
    incoming: vec3f,
    // The local direction that the path comes from.
    wi: vec3f,
#ifdef TANGENTS
    // The other two axes of the local frame; else they follow from the normal.
    axes: Frame,
#endif
    // The first leaf and the number of leaves on the side that the path comes from, and the BSDF's flags.
    leaves: vec2u,
    flags: u32,
    // Whether the path comes from the side that the geometric normal points to, which decides its medium.
    outside: bool,
    // Whether normal maps and bump maps are left out.
    smooth_normal: bool,
}

// The medium behind a surface that is crossed in `direction` out of `medium`, which remains where the surface bounds
// none.
fn medium_beyond(hit: Hit, direction: vec3f, medium: u32) -> u32 {
    let record = surface_record(hit.surface);
    if record.interior == NONE && record.exterior == NONE {
        return medium;
    }
    return select(record.exterior, record.interior, dot(direction, hit.normal) < 0.0);
}

// The meeting of a path that goes along `incoming` with a surface that has a BSDF.
fn interaction_new(hit: Hit, incoming: vec3f) -> Interaction {
    let record = bsdf_record(surface_record(hit.surface).bsdf);
    var at: Interaction;
    at.hit = hit;
    at.incoming = incoming;
    at.leaves = record.back;
    at.flags = record.flags;
    at.outside = dot(incoming, hit.normal) < 0.0;
#ifdef TANGENTS
    at.axes = frame(hit.shading);
    if (record.flags & BSDF_ANISOTROPIC) != 0u {
        at.axes = tangents(hit);
    }
#endif
    at.wi = to_local(at, -incoming);
    // The shading normal tells which side the path comes from.
    if at.wi.z > 0.0 {
        at.leaves = record.front;
    }
    return at;
}

// The axes of the local frame beside the shading normal. Carried along, they would take registers from the BSDFs.
fn local_axes(at: Interaction) -> Frame {
#ifdef TANGENTS
    return at.axes;
#else
    return frame(at.hit.shading);
#endif
}

// A direction of the world in the local frame.
fn to_local(at: Interaction, d: vec3f) -> vec3f {
    let axes = local_axes(at);
    return vec3f(dot(d, axes.s), dot(d, axes.t), dot(d, at.hit.shading));
}

// A local direction in the world.
fn to_world(at: Interaction, d: vec3f) -> vec3f {
    let axes = local_axes(at);
    return axes.s * d.x + axes.t * d.y + at.hit.shading * d.z;
}

// The medium on the side of `direction`, of a path that came through `medium`.
fn medium_in(at: Interaction, direction: vec3f, medium: u32) -> u32 {
    if (dot(direction, at.hit.normal) > 0.0) == at.outside {
        return medium;
    }
    return medium_beyond(at.hit, direction, medium);
}
