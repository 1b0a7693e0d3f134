// Derivatives by what moves surfaces, lights and cameras: poses and vertices (docs/method.md, section 21). Points follow
// their surfaces, or slide along the rays that meet them; a camera moves the first ray.

#import bind/scene
#import common/math
#import transport/scene/glide
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/tangent
#import transport/scene/vertices

#ifdef REPLAY
#ifdef MOVES

// Derivatives by quantities at a point that change over a surface, or as it moves: the shading normal; the area vector, which
// is the geometric normal times the growth of areas there; the derivative of the point by u; the texture coordinates; and the
// texel of the normal map.
struct Changes {
    by_normal: vec3f,
    by_area: vec3f,
    by_tangent: vec3f,
    by_uv: vec2f,
    by_texel: vec3f,
}

fn no_changes() -> Changes {
    return Changes(vec3f(0.0), vec3f(0.0), vec3f(0.0), vec2f(0.0), vec3f(0.0));
}

// The derivative by a vector of direction `n` and length 1 / `scale`, from `by`, that by its direction.
fn direction_adjoint(n: vec3f, scale: f32, by: vec3f) -> vec3f {
    return (by - n * dot(n, by)) * scale;
}

// The derivative by moving a point over its surface, from those by what changes there.
fn by_moving_over(hit: Hit, d: Changes) -> vec3f {
    let around = slopes(hit);
    return around.normal * d.by_normal + around.tangent * d.by_tangent + around.u * d.by_uv.x + around.v * d.by_uv.y;
}

#ifdef MOTIONS

// Degrees in radians.
const RADIANS: f32 = PI / 180.0;

// The position of a surface's motion among the records.
fn motion_of(surface: u32) -> u32 {
    return launch.motions_at + MOTION_UNITS * surface;
}

// Sends the derivatives by what moves the surface that a ray along `ray`, which is held, meets: `by_p` is that by the point
// and `by_over` that by moving it over the surface, which follows from `d`. The point slides along the ray: only motion along
// the surface's normal moves it, and the surface moves under it.
fn moved_adjoint(hit: Hit, ray: vec3f, by_p: vec3f, by_over: vec3f, d: Changes) {
    let across = hit.normal * (dot(ray, by_p + by_over) / dot(hit.normal, ray));
    followed_adjoint(motion_record(motion_of(hit.surface)), hit, derivatives(hit).dp_du, across - by_over, d);
}

// Sends the derivatives by the pose of this sensor's camera, from those by a point of its ray and by the ray's direction.
fn moved_ray_adjoint(sensor: u32, p: vec3f, ray: vec3f, by_p: vec3f, by_direction: vec3f) {
    let motion = motion_record(launch.sensor_motions_at + MOTION_UNITS * sensor);
    var d = no_changes();
    d.by_tangent = by_direction;
    send(place_adjoint(motion, p, ray, ray, ray, by_p, d), NONE);
}

// Sends the derivatives by what moves a point that follows its surface, or a light; `along` is the derivative of the point by
// u, and `by_p` that of the loss by the point.
fn followed_adjoint(motion: Motion, hit: Hit, along: vec3f, by_p: vec3f, d: Changes) {
    var sent: Sent;
    if motion.vertices != NONE {
        sent = moved_triangle_adjoint(motion, hit, by_p, d);
    } else if motion.normals != NONE {
        sent = turned_normal_adjoint(hit, motion.normals, d.by_normal);
    } else {
        sent = place_adjoint(motion, hit.point.p, hit.shading, hit.normal, along, by_p, d);
    }
    send(sent, motion.relief);
}

// Whether any parameter of a motion is optimised.
fn motion_is_wanted(motion: Motion) -> bool {
    let of_place = is_wanted(motion.translate) || is_wanted(motion.rotate) || is_wanted(motion.scale);
    return of_place || is_wanted(motion.vertices) || is_wanted(motion.normals);
}

fn is_wanted(slot: u32) -> bool {
    return slot != NONE && parameter_tuned(slot);
}

// Sends derivatives to parameters. Those by displaced vertices, numbered from `relief` on, go to the four heights that move
// each.
fn send(sent: Sent, relief: u32) {
    let parts = select(4u, 1u, relief == NONE);
    for (var i = 0u; i < 3u * parts; i++) {
        let k = i / parts;
        let slot = sent.slots[k];
        if !is_wanted(slot) {
            continue;
        }
        var first = sent.first[k];
        var d = sent.d[k];
        var channels = sent.channels[k];
        if relief != NONE {
            let vertex = displaced_record(relief + first / 3u);
            d = vertex.along * d * vertex.weights[i % 4u];
            first = vertex.texels[i % 4u];
            channels = 1u;
        }
        sink_entries(parameter_slot(slot), first, d, channels);
    }
}

// The derivatives by translation, rotation and scale (docs/method.md, section 21, equation 52a), from those by a point `p`, by
// the unit normals there, `normal` (shading) and `area` (geometric), and by the tangent `along`.
fn place_adjoint(motion: Motion, p: vec3f, normal: vec3f, area: vec3f, along: vec3f, by_p: vec3f, d: Changes) -> Sent {
    let arm = p - motion.origin;
    let by_normal = direction_adjoint(normal, 1.0, d.by_normal);
    // The transpose of how a change of the rotation vector turns vectors that it has rotated.
    let turning = cross(arm, by_p) + cross(normal, by_normal) + cross(area, d.by_area) + cross(along, d.by_tangent);
    let once = cross(motion.radians, turning);
    let twice = cross(motion.radians, once);
    let by_radians = turning + (twice * motion.sines.z - once * motion.sines.y);
    // A scale factor divides a normal's component along its axis, and multiplies an area's components along the two others.
    var by_scale = unturned(motion, arm) * unturned(motion, by_p);
    by_scale -= unturned(motion, normal) * unturned(motion, by_normal);
    by_scale += unturned(motion, along) * unturned(motion, d.by_tangent);
    let by_growth = unturned(motion, area) * unturned(motion, d.by_area);
    by_scale += (by_growth.x + by_growth.y + by_growth.z) - by_growth;
    return Sent(
        vec3u(motion.translate, motion.rotate, motion.scale),
        vec3u(0u),
        vec3u(3u, 3u, motion.scale_channels),
        array<vec3f, 3>(by_p, by_radians * RADIANS, by_scale / motion.factors),
    );
}

// A world vector, rotated back by the motion's rotation.
fn unturned(motion: Motion, v: vec3f) -> vec3f {
    let once = cross(motion.radians, v);
    return v - once * motion.sines.x + cross(motion.radians, once) * motion.sines.y;
}

#ifdef TRAILS

// A point of a path, and what moves it.
struct Anchor {
    hit: Hit,
    // The derivative of the point by u.
    along: vec3f,
    // The position of its motion among the records; NONE for a point that stands still.
    motion: u32,
    // Whether the camera sees it; the direction of the ray that it slides along, and how far.
    seen: bool,
    ray: vec3f,
    glide: Glide,
}

// Whether derivatives by the motion of a point are needed, or by the camera of this sensor if that sees the point.
fn anchor_is_wanted(anchor: Anchor, sensor: u32) -> bool {
    if anchor.motion == NONE {
        return false;
    }
    let camera = motion_record(launch.sensor_motions_at + MOTION_UNITS * sensor);
    return motion_is_wanted(motion_record(anchor.motion)) || anchor.seen && motion_is_wanted(camera);
}

// The derivatives by moving a surface, from those by the point where the anchor's ray, which is held, meets it.
fn across_adjoint(anchor: Anchor, by_p: vec3f) -> vec3f {
    return anchor.hit.normal * (dot(anchor.ray, by_p) / dot(anchor.hit.normal, anchor.ray));
}

// The derivatives by moving the surface of a hit that slides a share λ along its ray, through the density of paths that meet
// it: those by a point that follows its surface, `by_p`, times 1 - λ, and those by the growth of areas as it slides, from
// `all`, that by the logarithm of the density.
fn met_adjoint(anchor: Anchor, by_p: vec3f, all: f32) -> vec3f {
    if !(anchor.glide.share > 0.0) {
        return by_p;
    }
    let over = anchor.glide.slope * all;
    return by_p * (1.0 - anchor.glide.share) + (across_adjoint(anchor, over) - over);
}

// Sends the derivatives by the motion of a point, and by the camera of this sensor if that sees the point: from those by the
// point, by the direction of the camera's ray, and by the quantities of the surface there.
fn anchor_adjoint(anchor: Anchor, sensor: u32, by_p: vec3f, by_ray: vec3f, by: Changes) {
    if anchor.motion == NONE {
        return;
    }
    var by_point = by_p;
    if anchor.glide.share > 0.0 {
        // The point slides along the ray: only motion along the surface's normal moves it, and the surface moves under it.
        let over = (by_p + by_moving_over(anchor.hit, by)) * anchor.glide.share;
        let across = across_adjoint(anchor, over);
        if anchor.seen {
            moved_ray_adjoint(sensor, anchor.hit.point.p, anchor.ray, over - across, by_ray);
        }
        by_point = by_p + (across - over);
    }
    let motion = motion_record(anchor.motion);
    if motion_is_wanted(motion) {
        followed_adjoint(motion, anchor.hit, anchor.along, by_point, by);
    }
}

#endif
#endif
#endif
#endif
