// Ray intersection with a bounding volume hierarchy (BVH) over triangles and other surfaces: the nearest hit.
// Watertight at shared edges and vertices; the result does not depend on the tree.

#import bind/bvh
#import common/math
#import transport/scene/records

// Where a ray first meets a surface at distance t: a triangle at the point (1 - u - v) a + u b + v c, or another surface.
struct Nearest {
    t: f32,
    // Of a triangle: its number with the bit TRIANGLE; of a surface: its number.
    number: u32,
    // Of a triangle: block and lane; of another surface: its part, of a cube the face.
    place: u32,
    lane: u32,
    u: f32,
    v: f32,
    found: bool,
}

const TRIANGLE: u32 = 0x80000000u;

const EDGE_TOLERANCE: f32 = 2.0 * EPSILON;
const BOX_TOLERANCE: f32 = 8.0 * EPSILON;
const MIN_DIRECTION: f32 = 1e-20;

// Values of a ray that box and triangle tests share.
struct PreparedRay {
    origin: vec3f,
    direction: vec3f,
    inverse: vec3f,
    // The origin, moved so that near planes are nearer and far planes farther by the error bound.
    near: vec3f,
    far: vec3f,
    // Index of the near and the far plane of a node along each axis.
    near_plane: vec3u,
    far_plane: vec3u,
    // Permutation of the axes that puts the largest component of the direction last; shear along the first two, scale
    // along the last.
    axes: vec3u,
    by: vec3f,
}

fn prepare_ray(origin: vec3f, direction: vec3f) -> PreparedRay {
    // Widen boxes by the error bound.
    let backwards = direction < vec3f(0.0);
    let least = select(vec3f(MIN_DIRECTION), vec3f(-MIN_DIRECTION), backwards);
    let inverse = 1.0 / select(direction, least, abs(direction) < vec3f(MIN_DIRECTION));
    let reach = max(max(abs(settings.low - origin), abs(settings.high - origin)), abs(origin));
    let slack = BOX_TOLERANCE * max(max(reach.x, reach.y), reach.z);
    let side = select(vec3f(slack), vec3f(-slack), backwards);
    // Shear along the direction's largest component.
    let axis = vec3u(0u, 1u, 2u);
    let size = abs(direction);
    var last = 0u;
    if size.y > size[last] {
        last = 1u;
    }
    if size.z > size[last] {
        last = 2u;
    }
    let axes = vec3u((last + 1u) % 3u, (last + 2u) % 3u, last);
    let along = direction[last];
    return PreparedRay(
        origin,
        direction,
        inverse,
        origin + side,
        origin - side,
        select(axis, axis + 3u, backwards),
        select(axis + 3u, axis, backwards),
        axes,
        vec3f(direction[axes.x] / along, direction[axes.y] / along, 1.0 / along),
    );
}

// The nearest hit between 0 and `far`. Visits children from near to far.
fn bvh_intersect(origin: vec3f, direction: vec3f, far: f32) -> Nearest {
    let ray = prepare_ray(origin, direction);
    var best = Nearest(min(far, FAR), 0u, 0u, 0u, 0.0, 0.0, false);
    // Stack: nodes on the way down, and for each the list of children still to visit, nearest first, four bits each: 8
    // + lane.
    var nodes: array<u32, MAX_LEVELS>;
    var places: array<u32, MAX_LEVELS>;
    var depth = 1u;
    nodes[0] = 0u;
    places[0] = order_children(0u, ray, best.t);
    loop {
        if depth == 0u {
            break;
        }
        let node = nodes[depth - 1u];
        let list = places[depth - 1u];
        let place = list & 7u;
        // Skip the rest of the list if its nearest child starts behind the nearest hit.
        if list == 0u || enter_child(node, place, ray, best.t) >= FAR {
            depth--;
            continue;
        }
        places[depth - 1u] = list >> 4u;
        let child = node_child(node, place);
        let index = child & ~CHILD_KIND;
        switch child & CHILD_KIND {
            case CHILD_NODE: {
                nodes[depth] = index;
                places[depth] = order_children(index, ray, best.t);
                depth++;
            }
            case CHILD_BLOCK: {
                best = intersect_block(index, ray, best);
            }
            case CHILD_SURFACE: {
                let found = intersect_shape(index, ray.origin, ray.direction, far);
                if found.met && (found.t < best.t || (found.t == best.t && index < best.number)) {
                    best = Nearest(found.t, index, found.part, 0u, 0.0, 0.0, true);
                }
            }
            default: {
            }
        }
    }
    return best;
}

// Entry distances of four of a node's children; FAR for those not entered before `t_max`.
fn enter_children(node: u32, half: u32, ray: PreparedRay, t_max: f32) -> vec4f {
    var near = vec4f(0.0);
    var far = vec4f(t_max);
    for (var a = 0u; a < 3u; a++) {
        near = max(near, (node_planes(node, ray.near_plane[a], half) - ray.near[a]) * ray.inverse[a]);
        far = min(far, (node_planes(node, ray.far_plane[a], half) - ray.far[a]) * ray.inverse[a]);
    }
    return select(vec4f(FAR), near, near <= far);
}

// The same for one child.
fn enter_child(node: u32, place: u32, ray: PreparedRay, t_max: f32) -> f32 {
    var near = 0.0;
    var far = t_max;
    for (var a = 0u; a < 3u; a++) {
        near = max(near, (node_plane(node, ray.near_plane[a], place) - ray.near[a]) * ray.inverse[a]);
        far = min(far, (node_plane(node, ray.far_plane[a], place) - ray.far[a]) * ray.inverse[a]);
    }
    return select(FAR, near, near <= far);
}

// The list of children that the ray enters, nearest first, as bvh_intersect stores it.
fn order_children(node: u32, ray: PreparedRay, t_max: f32) -> u32 {
    let first = enter_children(node, 0u, ray, t_max);
    let second = enter_children(node, 1u, ray, t_max);
    var list = 0u;
    for (var place = 0u; place < 8u; place++) {
        let t = select(first[place & 3u], second[place & 3u], place > 3u);
        if t >= FAR {
            continue;
        }
        // Ties are broken by the child's position.
        let lanes = vec4u(0u, 1u, 2u, 3u);
        let before = (first < vec4f(t)) | ((first == vec4f(t)) & (lanes < vec4u(place)));
        let before_too = (second < vec4f(t)) | ((second == vec4f(t)) & (lanes + 4u < vec4u(place)));
        let counts = select(vec4u(0u), vec4u(1u), before) + select(vec4u(0u), vec4u(1u), before_too);
        list |= (place | 8u) << (4u * (counts.x + counts.y + counts.z + counts.w));
    }
    return list;
}

// Edge functions: twice the signed areas of the triangles formed by the ray and the edges from p to q.
fn edges(px: vec4f, py: vec4f, qx: vec4f, qy: vec4f) -> vec4f {
    let left = px * qy;
    let right = py * qx;
    let area = left - right;
    let unsure = abs(area) <= EDGE_TOLERANCE * max(abs(left), abs(right));
    return select(area, vec4f(0.0), unsure);
}

// Sheared vertices of a block's triangles, relative to the ray: the ray is the line x = y = 0, scaled depth is z.
fn shear_corner(block: u32, corner: u32, ray: PreparedRay) -> array<vec4f, 3> {
    let x = block_corners(block, corner, ray.axes.x) - ray.origin[ray.axes.x];
    let y = block_corners(block, corner, ray.axes.y) - ray.origin[ray.axes.y];
    let z = block_corners(block, corner, ray.axes.z) - ray.origin[ray.axes.z];
    return array<vec4f, 3>(x - ray.by.x * z, y - ray.by.y * z, ray.by.z * z);
}

// The nearest hit among the triangles of a block and `nearest`.
fn intersect_block(block: u32, ray: PreparedRay, nearest: Nearest) -> Nearest {
    let a = shear_corner(block, 0u, ray);
    let b = shear_corner(block, 1u, ray);
    let c = shear_corner(block, 2u, ray);
    let u = edges(b[0], b[1], c[0], c[1]);
    let v = edges(c[0], c[1], a[0], a[1]);
    let w = edges(a[0], a[1], b[0], b[1]);
    let outside = (min(min(u, v), w) < vec4f(0.0)) & (max(max(u, v), w) > vec4f(0.0));
    let sum = u + v + w;
    if all(outside | (sum == vec4f(0.0))) {
        return nearest;
    }
    let t = (u * a[2] + v * b[2] + w * c[2]) / select(sum, vec4f(1.0), sum == vec4f(0.0));
    let triangles = block_triangles(block);
    var best = nearest;
    for (var lane = 0u; lane < 4u; lane++) {
        if outside[lane] || sum[lane] == 0.0 || !(t[lane] > 0.0 && t[lane] <= best.t) {
            continue;
        }
        let start = enter_triangle(block, lane, ray, best.t);
        let distance = max(t[lane], start);
        let number = triangles[lane] | TRIANGLE;
        if start < FAR && (distance < best.t || (distance == best.t && number < best.number)) {
            best = Nearest(distance, number, block, lane, v[lane] / sum[lane], w[lane] / sum[lane], true);
        }
    }
    return best;
}

// Entry distance of the box of one triangle of a block; FAR if it is not entered before `t_max`.
fn enter_triangle(block: u32, lane: u32, ray: PreparedRay, t_max: f32) -> f32 {
    let a = block_corner(block, lane, 0u);
    let b = block_corner(block, lane, 1u);
    let c = block_corner(block, lane, 2u);
    let low = min(min(a, b), c);
    let high = max(max(a, b), c);
    let backwards = ray.near_plane > vec3u(2u);
    let near = (select(low, high, backwards) - ray.near) * ray.inverse;
    let far = (select(high, low, backwards) - ray.far) * ray.inverse;
    let start = max(max(max(near.x, near.y), near.z), 0.0);
    let end = min(min(min(far.x, far.y), far.z), t_max);
    return select(FAR, start, start <= end);
}
