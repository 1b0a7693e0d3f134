// How points of surfaces move with the parameters of their places: the derivatives by these (docs/method.md, section 21), of
// points that slide along the rays that meet them; and those by the place of the camera, which moves the first ray.

#import common/math
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/tangent
#import transport/scene/vertices

#ifdef REPLAY
#ifdef CHAINS

// Derivatives by what changes from point to point of a surface: the shading normal, the derivative of the point by u, and the
// texture coordinates; and by the texel of the normal map.
struct Changes {
    by_normal: vec3f,
    by_tangent: vec3f,
    by_uv: vec2f,
    by_texel: vec3f,
}

// The derivative by moving a point over its surface, from those by what changes there.
fn by_moving_over(hit: Hit, d: Changes) -> vec3f {
    let around = slopes(hit);
    return around.normal * d.by_normal + around.tangent * d.by_tangent + around.u * d.by_uv.x + around.v * d.by_uv.y;
}

#ifdef MOTIONS

// Degrees in radians.
const RADIANS: f32 = PI / 180.0;

// Sends the derivatives by where a surface stands that a ray along `ray` meets: `by_p` is that by the point and `by_over` that by
// moving it over the surface, which follows from `d`, those by what changes there. The point slides along the ray, which is held:
// what the surface does across its normal alone moves it, and the surface moves under it.
fn moved_adjoint(hit: Hit, ray: vec3f, by_p: vec3f, by_over: vec3f, d: Changes) {
    let across = hit.normal * (dot(ray, by_p + by_over) / dot(hit.normal, ray));
    followed_adjoint(hit, across - by_over, d);
}

// Sends the derivatives by what moves the camera of this sensor, from those by the origin and by the direction of its ray.
fn moved_ray_adjoint(sensor: u32, origin: vec3f, ray: vec3f, by_origin: vec3f, by_direction: vec3f) {
    let motion = motion_record(settings.surfaces + sensor);
    let d = Changes(vec3f(0.0), by_direction, vec2f(0.0), vec3f(0.0));
    send(place_adjoint(motion, origin, ray, ray, by_origin, d), NONE);
}

// Sends the derivatives of a point that follows its surface; `by_p` is that by the point.
fn followed_adjoint(hit: Hit, by_p: vec3f, d: Changes) {
    let motion = motion_record(hit.surface);
    var sent: Sent;
    if motion.vertices != NONE {
        sent = moved_triangle_adjoint(hit, motion.vertices, by_p, d.by_normal, d.by_tangent);
    } else if motion.normals != NONE {
        sent = turned_normal_adjoint(hit, motion.normals, d.by_normal);
    } else {
        sent = place_adjoint(motion, hit.point.p, hit.shading, derivatives(hit).dp_du, by_p, d);
    }
    send(sent, motion.relief);
}

// Sends derivatives; those by vertices that heights displace, from the one of the number `relief` on, to four heights each.
fn send(sent: Sent, relief: u32) {
    let parts = select(4u, 1u, relief == NONE);
    for (var i = 0u; i < 3u * parts; i++) {
        let k = i / parts;
        let slot = sent.slots[k];
        if slot == NONE || !parameter_tuned(slot) {
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
        sink_entries(slot, first, d, channels);
    }
}

// The derivatives by the parts of the place of a surface or a camera, from those by a point of it, by the unit normal there and
// by the vector `along` it.
fn place_adjoint(motion: Motion, p: vec3f, normal: vec3f, along: vec3f, by_p: vec3f, d: Changes) -> Sent {
    let arm = p - motion.origin;
    let by_normal = d.by_normal - normal * dot(normal, d.by_normal);
    // How a change of the rotation's vector turns what it has turned, transposed.
    let torque = cross(arm, by_p) + cross(normal, by_normal) + cross(along, d.by_tangent);
    let once = cross(motion.radians, torque);
    let twice = cross(motion.radians, once);
    let by_radians = torque + (twice * motion.sines.z - once * motion.sines.y);
    // A normal shrinks along its own axis.
    var by_scale = unturned(motion, arm) * unturned(motion, by_p);
    by_scale -= unturned(motion, normal) * unturned(motion, by_normal);
    by_scale += unturned(motion, along) * unturned(motion, d.by_tangent);
    return Sent(
        vec3u(motion.translate, motion.rotate, motion.scale),
        vec3u(0u),
        vec3u(3u, 3u, motion.scale_channels),
        array<vec3f, 3>(by_p, by_radians * RADIANS, by_scale / motion.factors),
    );
}

// A vector of the world, before a surface was turned.
fn unturned(motion: Motion, v: vec3f) -> vec3f {
    let once = cross(motion.radians, v);
    return v - once * motion.sines.x + cross(motion.radians, once) * motion.sines.y;
}

#endif
#endif
#endif
