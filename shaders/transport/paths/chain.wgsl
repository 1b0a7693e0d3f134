// Chains of specular vertices (smooth glass and mirrors), whose points a replay moves (docs/method.md, section 24): the
// derivatives go back from the radiance at the chain's end to the normals and indices that turn the path (Vicini2021, section
// 4.2). Where a chain meets a diffuse plane, the point moves and the directions that are sampled there are held.

#import transport/lookup/background
#import transport/paths/adjoint
#import transport/paths/path_state
#import transport/rays/sampler
#import transport/scene/bsdf
#import transport/scene/bsdf/diffuse
#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local
#import transport/scene/interaction
#import transport/scene/light
#import transport/scene/motion
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/sky
#import transport/scene/tangent
#import transport/scene/texture

#ifdef REPLAY
#ifdef CHAINS

// A vertex of a chain: its hit, how the path is turned there, and the derivatives that the walk leaves there. What follows
// from these is computed on the way back alone, so that compilers write that code out once.
struct Link {
    p: vec3f,
    surface: u32,
    normal: vec3f,
    primitive: u32,
    shading: vec3f,
    lobe: u32,
    s: vec3f,
    // Index of the BSDF's leaf that turned the path; NONE where it went straight on without a BSDF.
    leaf: u32,
    incoming: vec3f,
    // Texture of the emission or of the diffuse reflectance here, and the derivatives by its value; NONE without one.
    picture: u32,
    by_picture: vec3f,
    uv: vec2f,
    // Of a mesh, barycentric weights of the triangle's second and third corner.
    weights: vec2f,
    // The derivatives by the logarithm of the weight of glass or a mirror.
    by_weight: vec3f,
    // The derivative by the direction in which the path left the scene.
    by_direction: vec3f,
}

// The vertices that a replay has passed since the camera, on smooth glass, mirrors and diffuse planes, and behind them the
// last hit.
struct Chain {
    count: u32,
    // How many links derivatives go back through: up to the last light or diffuse plane, its own link included, or the last
    // vertex before the sky.
    reached: u32,
    links: array<Link, CHAIN_VERTICES + 1u>,
#ifdef MOTIONS
    // The camera ray: its sensor, origin and direction, and the derivative by the direction where the ray meets the sky at
    // once.
    sensor: u32,
    origin: vec3f,
    ray: vec3f,
    by_direction: vec3f,
#endif
}

var<private> chain: Chain;

// The normal at which a path is turned.
struct Normal {
    // The normal before normalisation, in the surface's local frame, and one over its length.
    raw: vec3f,
    scale: f32,
    // -1 where x and y of the normal map's vector are reversed, else 1; zero where the surface's own normal is used.
    sign: f32,
    // In the world.
    m: vec3f,
}

// Derivatives by a direction, by the normal in the world, and by the relative index.
struct Turning {
    by_incoming: vec3f,
    by_normal: vec3f,
    by_eta: f32,
}

// The least cosine at which a ray counts as meeting a surface: at grazing angles the point moves without bounds, and a few
// such paths would dominate a texel's derivative, or overflow its sums.
const GRAZING: f32 = 0.03;

// The surface's own normal.
fn normal_own(link: Link) -> Normal {
    return Normal(vec3f(0.0, 0.0, 1.0), 1.0, 0.0, link.shading);
}

// A direction in which a ray meets a surface of normal `n`, tilted where it only grazes it.
fn steep(n: vec3f, direction: vec3f) -> vec3f {
    let cosine = dot(n, direction);
    if abs(cosine) >= GRAZING {
        return direction;
    }
    return direction + n * (select(GRAZING, -GRAZING, cosine < 0.0) - cosine);
}

// The derivative by the origin of a ray along `direction`, which is not grazing, from that by its hit on a surface of normal
// `n`.
fn meeting_adjoint(n: vec3f, direction: vec3f, by_point: vec3f) -> vec3f {
    return by_point - n * (dot(by_point, direction) / dot(n, direction));
}

// The hit of a vertex.
fn link_hit(link: Link) -> Hit {
    let point = SurfacePoint(link.p, link.uv, NONE, link.weights);
    return Hit(0.0, link.surface, link.primitive, point, 0.0, link.normal, link.shading, true);
}

// The normal at which the path is turned at a vertex.
fn link_normal(link: Link, leaf: Leaf) -> Normal {
    if leaf.relief == NONE {
        return normal_own(link);
    }
    var raw = 2.0 * texture_value(leaf.relief, surface_point_new(link.p, link.uv)) - 1.0;
    if !(dot(raw, raw) > 0.0) {
        return normal_own(link);
    }
    let t = cross(link.shading, link.s);
    let wi = -vec3f(dot(link.incoming, link.s), dot(link.incoming, t), dot(link.incoming, link.shading));
    let sign = select(1.0, -1.0, (leaf.flags & LEAF_FLIPS) != 0u && !(dot(raw, wi) * wi.z > 0.0));
    raw = vec3f(raw.xy * sign, raw.z);
    let scale = 1.0 / sqrt(dot(raw, raw));
    return Normal(raw, scale, sign, (link.s * raw.x + t * raw.y + link.shading * raw.z) * scale);
}

// The derivatives by the incoming direction, the normal and the index, from the derivative `d` by the outgoing direction.
// `by_cosine` is the derivative by the cosine of incidence, through the reflectance.
fn link_turning(link: Link, m: vec3f, eta: f32, by_cosine: f32, d: vec3f) -> Turning {
    let incoming = link.incoming;
    let cosine = -dot(incoming, m);
    var turning = Turning(vec3f(0.0), vec3f(0.0), 0.0);
    switch link.lobe {
        case LOBE_REFLECTION: {
            let along = -2.0 * dot(m, d);
            turning.by_incoming = d + m * along;
            turning.by_normal = d * (2.0 * cosine) + incoming * along;
        }
        case LOBE_TRANSMISSION: {
            // The index of the side that the path comes from over that of the other, and the normal turned to that side.
            let outside = cosine > 0.0;
            let e = select(eta, 1.0 / eta, outside);
            let side = select(-1.0, 1.0, outside);
            let c = cosine * side;
            let n = m * side;
            let sine_square = 1.0 - c * c;
            let ct = sqrt(1.0 - e * e * sine_square);
            let by_mu = dot(n, d);
            let by_c = by_mu * (e - e * e * c / ct);
            let by_e = dot(incoming, d) + by_mu * (c + e * sine_square / ct);
            turning.by_incoming = d * e - n * by_c;
            turning.by_normal = (d * (e * c - ct) - incoming * by_c) * side;
            turning.by_eta = select(by_e, -by_e * e * e, outside);
        }
        case LOBE_STRAIGHT: {
            turning.by_incoming = d;
        }
        // The direction that was sampled is held.
        default: {
        }
    }
    turning.by_incoming -= m * by_cosine;
    turning.by_normal -= incoming * by_cosine;
    return turning;
}

// The derivatives by the normal map's texel, and by the frame that its vector is in: the shading normal and the tangent.
fn link_normal_adjoint(link: Link, leaf: Leaf, normal: Normal, by_normal: vec3f) -> Changes {
    let by_raw = direction_adjoint(normal.m, normal.scale, by_normal);
    let n = link.shading;
    let s = link.s;
    let raw = normal.raw;
    var by = no_changes();
    by.by_normal = by_raw * raw.z;
    if normal.sign == 0.0 {
        return by;
    }
    // The second axis is the cross product of the normal and the first one, which is the tangential part of the derivative by
    // u.
    by.by_normal += cross(s, by_raw) * raw.y;
    let by_s = by_raw * raw.x + cross(by_raw, n) * raw.y;
    let along = derivatives(link_hit(link)).dp_du;
    let height = dot(n, along);
    let tangential = along - n * height;
    let square = dot(tangential, tangential);
    if square > 0.0 {
        let by_tangential = direction_adjoint(s, 1.0 / sqrt(square), by_s);
        let across = dot(n, by_tangential);
        by.by_normal -= by_tangential * height + along * across;
        by.by_tangent = by_tangential - n * across;
    }
    // The map's vector, whose x and y may be reversed.
    let sign = 2.0 * normal.sign;
    by.by_texel = vec3f(dot(s, by_raw) * sign, dot(cross(n, s), by_raw) * sign, 2.0 * dot(n, by_raw));
    return by;
}

// A value of the leaf's textures, which are constant.
fn link_value(leaf: Leaf, which: u32) -> vec3f {
    let at = texture_stencil_first(texture_record(leaf.first_texture + which));
    return stencil_texel(at, 0u);
}

// The derivative by the cosine of incidence, from those by the logarithm of the weight; `first` is the leaf's first value,
// the index.
fn link_by_cosine(link: Link, leaf: Leaf, m: vec3f, first: vec3f) -> f32 {
    let cosine = -dot(link.incoming, m);
    let d = link.by_weight;
    let sum = d.x + d.y + d.z;
    if leaf.kind == LEAF_CONDUCTOR {
        let k = link_value(leaf, 1u);
        var by_cosine = 0.0;
        for (var c = 0u; c < 3u; c++) {
            let f = fresnel_conductor_slope(cosine, first[c], k[c]);
            if f.x > 0.0 {
                by_cosine += d[c] * (f.y / f.x);
            }
        }
        return by_cosine;
    }
    let thin = leaf.kind == LEAF_THIN_DIELECTRIC;
    let single = fresnel_slopes(select(cosine, abs(cosine), thin), first.x);
    var f = single.x;
    var slope = single.y;
    if thin {
        f = plate(single.x);
        slope = plate_slope(single.x) * single.y * select(1.0, -1.0, cosine < 0.0);
    }
    if link.lobe == LOBE_REFLECTION {
        return sum * slope / f;
    }
    return -sum * slope / (1.0 - f);
}

// Begins the chain of a path that is about to leave its camera.
fn chain_new(path: ptr<function, Path>, sensor: u32) {
    chain.count = 0u;
    chain.reached = 0u;
#ifdef MOTIONS
    chain.sensor = sensor;
    chain.origin = (*path).origin;
    chain.ray = (*path).direction;
    chain.by_direction = vec3f(0.0);
#endif
}

// Stores the hit of the path as the link behind the vertices.
fn chain_meet(hit: Hit, incoming: vec3f) {
    let link = &chain.links[chain.count];
    (*link).p = hit.point.p;
    (*link).surface = hit.surface;
    (*link).normal = hit.normal;
    (*link).primitive = hit.primitive;
    (*link).shading = hit.shading;
    (*link).lobe = LOBE_SMOOTH;
    (*link).leaf = NONE;
    (*link).incoming = incoming;
    (*link).picture = NONE;
    (*link).by_picture = vec3f(0.0);
    (*link).uv = hit.point.uv;
    (*link).weights = hit.point.weights;
    (*link).by_direction = vec3f(0.0);
}

// Leaves `d`, the derivatives by the texture `reflectance`, at the last hit. Emissive surfaces whose reflectance is textured
// are no part of chains.
fn chain_scatter(reflectance: u32, d: vec3f) {
    if BITMAPS && texture_record(reflectance).kind == TEXTURE_BITMAP {
        chain.links[chain.count].picture = reflectance;
        chain.links[chain.count].by_picture += d;
    }
}

// Makes the last hit a vertex of this weight; `d` are the derivatives by the weight.
fn lengthen_chain(at: Interaction, sampled: BsdfSample, weight: vec3f, d: vec3f) {
    let link = &chain.links[chain.count];
    let leaf = at.leaves.x + sampled.leaf;
    (*link).lobe = sampled.lobe;
    (*link).s = local_axes(at).s;
    (*link).leaf = leaf;
    if sampled.lobe == LOBE_SMOOTH {
        // The weight is the reflectance.
        chain_scatter(leaf_record(leaf).first_texture, d);
    } else {
        (*link).by_weight = d * weight;
    }
    chain.count += 1u;
}

// Makes the last hit a vertex where the path goes straight on through an emitter.
fn chain_pass() {
    chain.links[chain.count].lobe = LOBE_STRAIGHT;
    chain.count += 1u;
}

// Sends the derivatives along the chain, from the last light back to the first vertex, and to the camera.
fn send_chain() {
    var by_origin = vec3f(0.0);
    var by_direction = vec3f(0.0);
    for (var k = chain.reached; k > 0u; k--) {
        let link = chain.links[k - 1u];
        by_direction += link.by_direction;
        var by = no_changes();
        var by_incoming = vec3f(0.0);
        var relief = NONE;
        var index = NONE;
        var by_index = vec3f(0.0);
        if link.lobe != LOBE_SMOOTH && link.leaf != NONE {
            let leaf = leaf_record(link.leaf);
            let normal = link_normal(link, leaf);
            let first = link_value(leaf, 0u);
            let by_cosine = link_by_cosine(link, leaf, normal.m, first);
            let turning = link_turning(link, normal.m, first.x, by_cosine, by_direction);
            by = link_normal_adjoint(link, leaf, normal, turning.by_normal);
            by_incoming = turning.by_incoming;
            relief = leaf.relief;
            if leaf.kind == LEAF_DIELECTRIC {
                index = leaf.first_texture;
                by_index.x = turning.by_eta;
            }
        } else if link.lobe == LOBE_STRAIGHT {
            by_incoming = by_direction;
        }
        // Three textures: emission or reflectance (whose texels have their derivatives already), normal map, index. Sends the
        // derivatives by texels, and sums those by the texture coordinates.
        for (var turn = 0u; turn < 3u; turn++) {
            var wanted = link.picture;
            var d = link.by_picture;
            if turn == 1u {
                wanted = relief;
                d = by.by_texel;
            } else if turn == 2u {
                wanted = index;
                d = by_index;
            }
            if wanted == NONE {
                continue;
            }
            if turn > 0u {
                texture_adjoint(stencil(wanted, surface_point_new(link.p, link.uv)), d);
            }
            by.by_uv += picture_slopes(wanted, link.uv, d);
        }
        let by_over = by_moving_over(link_hit(link), by);
        let ray = steep(link.normal, link.incoming);
#ifdef MOTIONS
        moved_adjoint(link_hit(link), ray, by_origin, by_over, by);
        var origin = chain.origin;
        if k > 1u {
            origin = chain.links[k - 2u].p;
        }
#else
        if k == 1u {
            break;
        }
        let origin = chain.links[k - 2u].p;
#endif
        by_origin = meeting_adjoint(link.normal, ray, by_origin + by_over);
        by_direction = by_incoming + by_origin * dot(link.p - origin, link.incoming);
    }
#ifdef MOTIONS
    moved_ray_adjoint(chain.sensor, chain.origin, chain.ray, by_origin, by_direction + chain.by_direction);
#endif
}

// Leaves the derivatives by the point where a chain meets a diffuse plane; `d` are those by the BSDF's value for the local
// direction `wo` towards the sky.
fn chain_to_plane(at: Interaction, wo: vec3f, d: vec3f) {
    chain_scatter(leaf_record(at.leaves.x).first_texture, diffuse_adjoint(wo, d));
    chain.reached = chain.count + 1u;
}

// Leaves the derivatives by the point where a chain meets a light, which contributed throughput times `factor` times
// radiance.
fn chain_to_light(path: ptr<function, Path>, record: Light, factor: f32) {
    let link = &chain.links[chain.count];
    (*link).picture = record.light_texture;
    (*link).by_picture = path_alive(path, adjoint.d_radiance * (*path).beta * factor) * light_color(record);
    chain.reached = chain.count + 1u;
}

// Leaves the derivatives by the direction in which a path leaves the scene, whose contribution was throughput times
// `weight` times radiance.
fn chain_to_sky(path: ptr<function, Path>, weight: f32) {
    chain.reached = chain.count;
    if !ENVIRONMENT_MAP || scene.background != BACKGROUND_ENVMAP {
        return;
    }
#ifndef MOTIONS
    if chain.count == 0u {
        return;
    }
#endif
    let d = path_alive(path, adjoint.d_radiance * (*path).beta * weight) * sky_scale();
    let local = transform_vector(scene.world_to_env, (*path).direction);
    let shorter = 1.0 / sqrt(dot(local, local));
    let by_local = env_slope(scene.env_size, local * shorter, d) * shorter;
    let by_direction = from_environment(by_local);
    if chain.count > 0u {
        chain.links[chain.count - 1u].by_direction = by_direction;
        return;
    }
#ifdef MOTIONS
    chain.by_direction = by_direction;
#endif
}

#endif
#endif
