// Ray intersection with a bounding volume hierarchy (BVH) over triangles and other surfaces: the nearest hit.
// Watertight at shared edges and vertices; the result does not depend on the tree.

#import bind/bvh
#import common/math
#import transport/scene/records

const EDGE_TOLERANCE: f32 = 2.0 * EPSILON;
const BOX_TOLERANCE: f32 = 8.0 * EPSILON;
const MIN_DIRECTION: f32 = 1e-20;

// Values of a ray that box and triangle tests share. What one or two operations compute from them is not stored: the number
// of registers limits walks.
struct PreparedRay {
    origin: vec3f,
    direction: vec3f,
    inverse: vec3f,
    // The error bound by which near planes count as nearer and far planes as farther.
    slack: f32,
    // The axis of the direction's largest component; shear along the two that follow it, scale along it.
    last: u32,
    by: vec3f,
}

// The components of `v` in cyclic order of the axes, the axis `last` being the last.
fn ending_with(last: u32, v: vec3f) -> vec3f {
    return select(select(v, v.zxy, last == 1u), v.yzx, last == 0u);
}

fn prepare_ray(origin: vec3f, direction: vec3f) -> PreparedRay {
    let least = select(vec3f(MIN_DIRECTION), vec3f(-MIN_DIRECTION), direction < vec3f(0.0));
    let inverse = 1.0 / select(direction, least, abs(direction) < vec3f(MIN_DIRECTION));
    let reach = max(max(abs(settings.low - origin), abs(settings.high - origin)), abs(origin));
    let slack = BOX_TOLERANCE * max(max(reach.x, reach.y), reach.z);
    let size = abs(direction);
    var last = select(0u, 1u, size.y > size.x);
    if size.z > max(size.x, size.y) {
        last = 2u;
    }
    let along = ending_with(last, direction);
    return PreparedRay(origin, direction, inverse, slack, last, vec3f(along.xy / along.z, 1.0 / along.z));
}

// Shift of a ray's origin by which near planes count as nearer by the error bound; for far planes it is reversed.
fn widening(ray: PreparedRay) -> vec3f {
    return select(vec3f(ray.slack), vec3f(-ray.slack), ray.inverse < vec3f(0.0));
}

// Whether the box of all triangles is entered before `t_max`.
fn bvh_is_entered(origin: vec3f, direction: vec3f, t_max: f32) -> bool {
    return enter_box(settings.low, settings.high, prepare_ray(origin, direction), min(t_max, FAR)) < FAR;
}

#ifdef SHARED_STACK
// For each invocation its traversal stack: nodes with children still to visit, and the lists of these. It is in workgroup
// memory since it is the kernel's only array: in private memory, a driver would reserve it for all invocations that can be
// resident on the GPU.
var<workgroup> waiting_of_all: array<array<vec2u, RAY_GROUP>, MAX_LEVELS>;
// The invocation's column of the stacks.
var<private> waiting_at: u32;
#endif

// In place of a child that has been visited: no kind of child has these bits.
const VISITED: u32 = 0xc0000000u;

// The nearest hit between 0 and `known.t`, or `known` if there is none; if `any`, any such hit. Visits children from near to
// far.
fn bvh_intersect(origin: vec3f, direction: vec3f, known: Nearest, any: bool) -> Nearest {
    let ray = prepare_ray(origin, direction);
    var best = known;
    best.t = min(best.t, FAR);
    // Most rays pass by meshes that do not fill the world.
    if !SHAPES_IN_TREE && enter_box(settings.low, settings.high, ray, best.t) >= FAR {
        return best;
    }
#ifndef SHARED_STACK
    // The traversal stack: nodes with children still to visit, and the lists of these.
    var waiting: array<vec2u, MAX_LEVELS>;
#endif
    var depth = 0u;
    var node = 0u;
    var list = 0u;
    // Whether there has been a nearer hit since the list was made, so that its children may lie behind that.
    var stale = false;
    // The current child: first the root, last NONE.
    var child = CHILD_NODE;
    loop {
        // Descend to the next child that is not a node: invocations that descend together then test triangles together.
        loop {
            if (child & CHILD_KIND) == CHILD_NODE {
                if list != 0u {
#ifdef SHARED_STACK
                    waiting_of_all[depth][waiting_at] = vec2u(node, list);
#else
                    waiting[depth] = vec2u(node, list);
#endif
                    depth++;
                }
                node = child & ~CHILD_KIND;
                list = order_children(node, ray, best.t);
                stale = false;
            }
            if list == 0u {
                if depth == 0u {
                    child = NONE;
                    break;
                }
                depth--;
#ifdef SHARED_STACK
                let last = waiting_of_all[depth][waiting_at];
#else
                let last = waiting[depth];
#endif
                node = last.x;
                list = last.y;
                stale = best.t < known.t;
            }
            let place = list & 7u;
            list >>= 4u;
            child = VISITED;
            if !stale || is_entered(node, place, ray, best.t) {
                child = node_child(node, place);
                if (child & CHILD_KIND) != CHILD_NODE {
                    break;
                }
            }
        }
        if child == NONE {
            break;
        }
        // Test it.
        let index = child & ~CHILD_KIND;
        let before = best.t;
        if (child & CHILD_KIND) == CHILD_BLOCK {
            best = intersect_block(index, ray, best);
        } else if SHAPES_IN_TREE && (child & CHILD_KIND) == CHILD_SURFACE {
            let found = intersect_shape(index, ray.origin, ray.direction, known.t);
            if found.met && (found.t < best.t || (found.t == best.t && index < best.number)) {
                best = Nearest(found.t, index, found.part, 0u, 0.0, 0.0, true);
            }
        }
        if any && best.found {
            break;
        }
        stale = stale || best.t < before;
        child = VISITED;
    }
    return best;
}

// Entry distances of four of a node's children; FAR for those not entered before `t_max`.
fn enter_children(node: u32, half: u32, ray: PreparedRay, t_max: f32) -> vec4f {
    let wider = widening(ray);
    let near_plane = select(vec3u(0u, 1u, 2u), vec3u(3u, 4u, 5u), ray.inverse < vec3f(0.0));
    let far_plane = select(vec3u(3u, 4u, 5u), vec3u(0u, 1u, 2u), ray.inverse < vec3f(0.0));
    let from_near = ray.origin + wider;
    let from_far = ray.origin - wider;
    let near_x = (node_planes(node, near_plane.x, half) - from_near.x) * ray.inverse.x;
    let near_y = (node_planes(node, near_plane.y, half) - from_near.y) * ray.inverse.y;
    let near_z = (node_planes(node, near_plane.z, half) - from_near.z) * ray.inverse.z;
    let far_x = (node_planes(node, far_plane.x, half) - from_far.x) * ray.inverse.x;
    let far_y = (node_planes(node, far_plane.y, half) - from_far.y) * ray.inverse.y;
    let far_z = (node_planes(node, far_plane.z, half) - from_far.z) * ray.inverse.z;
    let near = max(max(max(vec4f(0.0), near_x), near_y), near_z);
    let far = min(min(min(vec4f(t_max), far_x), far_y), far_z);
    var is_entered = near <= far;
    if !SHAPES_IN_TREE {
        is_entered = is_entered & ((node_children(node, half) & vec4u(CHILD_KIND)) != vec4u(CHILD_SURFACE));
    }
    return select(vec4f(FAR), near, is_entered);
}

// Whether one child is entered before `t_max`.
fn is_entered(node: u32, place: u32, ray: PreparedRay, t_max: f32) -> bool {
    let low = vec3f(node_plane(node, 0u, place), node_plane(node, 1u, place), node_plane(node, 2u, place));
    let high = vec3f(node_plane(node, 3u, place), node_plane(node, 4u, place), node_plane(node, 5u, place));
    return enter_box(low, high, ray, t_max) < FAR;
}

// Keys to sort children by: the bits of distances, which are in the same order, with the child's place in the last three
// bits.
fn keys(t: vec4f, places: vec4u) -> vec4u {
    return select((bitcast<vec4u>(t) & vec4u(~7u)) | places, vec4u(NONE), t >= vec4f(FAR));
}

// The list of children that the ray enters, four bits each, 8 + place: nearest first, up to the last bits of distances.
fn order_children(node: u32, ray: PreparedRay, t_max: f32) -> u32 {
    let first = keys(enter_children(node, 0u, ray, t_max), vec4u(0u, 1u, 2u, 3u));
    let second = keys(enter_children(node, 1u, ray, t_max), vec4u(4u, 5u, 6u, 7u));
    // Batcher's odd-even merge sort, whose comparisons of one step are independent; digits of a name are places in its
    // sequence.
    let n0246 = min(first, second);
    let n1357 = max(first, second);
    let n0145 = vec4u(n0246.x, n1357.x, n0246.z, n1357.z);
    let n2367 = vec4u(n0246.y, n1357.y, n0246.w, n1357.w);
    let a = min(n0145, n2367);
    let b = max(n0145, n2367);
    let n15 = min(a.yw, b.xz);
    let n26 = max(a.yw, b.xz);
    let n0123 = vec4u(a.x, n15.x, n26.x, b.y);
    let n4567 = vec4u(a.z, n15.y, n26.y, b.w);
    let low = min(n0123, n4567);
    let high = max(n0123, n4567);
    let n23 = min(low.zw, high.xy);
    let n45 = max(low.zw, high.xy);
    let n135 = min(vec3u(low.y, n23.y, n45.y), vec3u(n23.x, n45.x, high.z));
    let n246 = max(vec3u(low.y, n23.y, n45.y), vec3u(n23.x, n45.x, high.z));
    let lower = vec4u(low.x, n135.x, n246.x, n135.y);
    let upper = vec4u(n246.y, n135.z, n246.z, high.w);
    return listed(lower) | (listed(upper) << 16u);
}

// Four entries of a list, from their keys.
fn listed(keys: vec4u) -> u32 {
    let entries = ((keys & vec4u(7u)) | vec4u(8u)) << vec4u(0u, 4u, 8u, 12u);
    let there = select(entries, vec4u(0u), keys == vec4u(NONE));
    return there.x | there.y | there.z | there.w;
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
fn shear_corner(block: u32, corner: u32, ray: PreparedRay) -> Rows {
    let origin = ending_with(ray.last, ray.origin);
    let x = block_corners(block, corner, (ray.last + 1u) % 3u) - origin.x;
    let y = block_corners(block, corner, (ray.last + 2u) % 3u) - origin.y;
    let z = block_corners(block, corner, ray.last) - origin.z;
    return Rows(x - ray.by.x * z, y - ray.by.y * z, ray.by.z * z);
}

// The nearest hit among the triangles of a block and `nearest`.
fn intersect_block(block: u32, ray: PreparedRay, nearest: Nearest) -> Nearest {
    let a = shear_corner(block, 0u, ray);
    let b = shear_corner(block, 1u, ray);
    let c = shear_corner(block, 2u, ray);
    let u = edges(b[0], b[1], c[0], c[1]);
    var v = edges(c[0], c[1], a[0], a[1]);
    var w = edges(a[0], a[1], b[0], b[1]);
    let outside = (min(min(u, v), w) < vec4f(0.0)) & (max(max(u, v), w) > vec4f(0.0));
    let sum = u + v + w;
    let missed = outside | (sum == vec4f(0.0));
    if all(missed) {
        return nearest;
    }
    let total = select(sum, vec4f(1.0), missed);
    var t = select((u * a[2] + v * b[2] + w * c[2]) / total, vec4f(-1.0), missed);
    v /= total;
    w /= total;
    var triangles = block_triangles(block);
    var best = nearest;
    for (var lane = 0u; lane < 4u; lane++) {
        if t.x > 0.0 && t.x <= best.t {
            let start = enter_triangle(block, lane, ray, best.t);
            let distance = max(t.x, start);
            let number = triangles.x | TRIANGLE;
            if start < FAR && (distance < best.t || (distance == best.t && number < best.number)) {
                best = Nearest(distance, number, block, lane, v.x, w.x, true);
            }
        }
        // Rotated in place of an index: a vector that is indexed by a number of the run would lie in memory.
        t = t.yzwx;
        v = v.yzwx;
        w = w.yzwx;
        triangles = triangles.yzwx;
    }
    return best;
}

// Entry distance of the box of one triangle of a block; FAR if it is not entered before `t_max`.
fn enter_triangle(block: u32, lane: u32, ray: PreparedRay, t_max: f32) -> f32 {
    let a = block_corner(block, lane, 0u);
    let b = block_corner(block, lane, 1u);
    let c = block_corner(block, lane, 2u);
    return enter_box(min(min(a, b), c), max(max(a, b), c), ray, t_max);
}

// Entry distance of a box; FAR if it is not entered before `t_max`.
fn enter_box(low: vec3f, high: vec3f, ray: PreparedRay, t_max: f32) -> f32 {
    let wider = widening(ray);
    let backwards = ray.inverse < vec3f(0.0);
    let near = (select(low, high, backwards) - (ray.origin + wider)) * ray.inverse;
    let far = (select(high, low, backwards) - (ray.origin - wider)) * ray.inverse;
    let start = max(max(max(near.x, near.y), near.z), 0.0);
    let end = min(min(min(far.x, far.y), far.z), t_max);
    return select(FAR, start, start <= end);
}
