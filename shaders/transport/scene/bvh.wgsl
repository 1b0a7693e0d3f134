// Rays against a hierarchy of triangles: the first hit. Watertight at shared edges and vertices.

#import bind/bvh
#import common/math
#import transport/scene/records

// Where a ray meets a triangle: at distance t, in the point (1 - u - v) a + u b + v c.
struct TriangleHit {
    t: f32,
    triangle: u32,
    u: f32,
    v: f32,
}

// Marks a ray that hits nothing.
const NO_HIT: u32 = 0xffffffffu;

const EDGE_TOLERANCE: f32 = 2.0 * EPSILON;
const BOX_TOLERANCE: f32 = 8.0 * EPSILON;
const MIN_DIRECTION: f32 = 1e-20;

// The first hit with t_min < t < t_max. Visits nodes from near to far.
fn hierarchy_intersect(origin: vec3f, direction: vec3f, t_min: f32, t_max: f32) -> TriangleHit {
    let root = node_record(0u);
    let slabs = slabs(root, origin, direction);
    let shear = shear(direction);
    var best = TriangleHit(min(t_max, FAR), NO_HIT, 0.0, 0.0);
    // Nodes in wait, and where the ray enters them: at most one a level.
    var waiting: array<u32, MAX_LEVELS>;
    var waiting_t: array<f32, MAX_LEVELS>;
    var depth = 0u;
    var node = root;
    if enter(root, origin, slabs, t_min, best.t) >= FAR {
        return best;
    }
    loop {
        if node.count == 0u {
            let left = node_record(node.first);
            let right = node_record(node.first + 1u);
            let t_left = enter(left, origin, slabs, t_min, best.t);
            let t_right = enter(right, origin, slabs, t_min, best.t);
            let right_is_near = t_right < t_left;
            let t_near = min(t_left, t_right);
            let t_far = max(t_left, t_right);
            // A box that is missed lies at FAR, which no hit does.
            if t_near < FAR {
                if t_far < FAR {
                    waiting[depth] = select(node.first + 1u, node.first, right_is_near);
                    waiting_t[depth] = t_far;
                    depth++;
                }
                if right_is_near {
                    node = right;
                } else {
                    node = left;
                }
                continue;
            }
        } else {
            for (var index = node.first; index < node.first + node.count; index++) {
                best = intersect_triangle(index, origin, shear, t_min, best);
            }
        }
        // A node that begins behind the hit found meanwhile is left out.
        loop {
            if depth == 0u {
                return best;
            }
            depth--;
            if waiting_t[depth] <= best.t {
                break;
            }
        }
        node = node_record(waiting[depth]);
    }
    return best;
}

// What a ray has in common for all boxes: the inverse of its direction, and how far each box is widened.
fn slabs(root: Node, origin: vec3f, direction: vec3f) -> vec4f {
    let least = select(vec3f(MIN_DIRECTION), vec3f(-MIN_DIRECTION), direction < vec3f(0.0));
    let inverse = 1.0 / select(direction, least, abs(direction) < vec3f(MIN_DIRECTION));
    let farthest = max(abs(root.low - origin), abs(root.high - origin));
    return vec4f(inverse, BOX_TOLERANCE * max(max(farthest.x, farthest.y), farthest.z));
}

// Where the ray enters a box, not before `t_min`; FAR if it misses it between `t_min` and `t_max`.
fn enter(node: Node, origin: vec3f, slabs: vec4f, t_min: f32, t_max: f32) -> f32 {
    let low = ((node.low - origin) - slabs.w) * slabs.xyz;
    let high = ((node.high - origin) + slabs.w) * slabs.xyz;
    let ends = max(low, high);
    let starts = min(low, high);
    let near = max(max(max(t_min, starts.x), starts.y), starts.z);
    let far = min(min(min(t_max, ends.x), ends.y), ends.z);
    return select(FAR, near, near <= far);
}

// The map that turns a ray's direction into the third axis: axes in their new order, and by how much each is sheared or
// scaled.
struct Shear {
    axes: vec3u,
    by: vec3f,
}

fn shear(direction: vec3f) -> Shear {
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
    return Shear(axes, vec3f(direction[axes.x] / along, direction[axes.y] / along, 1.0 / along));
}

// A vertex as the ray sees it: at distance zero it passes through (0, 0).
fn shear_vertex(p: vec3f, origin: vec3f, shear: Shear) -> vec3f {
    let d = p - origin;
    let z = d[shear.axes.z];
    return vec3f(d[shear.axes.x] - shear.by.x * z, d[shear.axes.y] - shear.by.y * z, shear.by.z * z);
}

// Twice the area of the triangle from the ray to an edge; its sign tells the side.
fn edge(p: vec3f, q: vec3f) -> f32 {
    let left = p.x * q.y;
    let right = p.y * q.x;
    let area = left - right;
    let unsure = abs(area) <= EDGE_TOLERANCE * max(abs(left), abs(right));
    return select(area, 0.0, unsure);
}

// The hit of one triangle with t_min < t < best.t, else `best`.
fn intersect_triangle(index: u32, origin: vec3f, shear: Shear, t_min: f32, best: TriangleHit) -> TriangleHit {
    let triangle = triangle_record(index);
    let a = shear_vertex(triangle.a, origin, shear);
    let b = shear_vertex(triangle.b, origin, shear);
    let c = shear_vertex(triangle.c, origin, shear);
    let u = edge(b, c);
    let v = edge(c, a);
    let w = edge(a, b);
    if min(min(u, v), w) < 0.0 && max(max(u, v), w) > 0.0 {
        return best;
    }
    let sum = u + v + w;
    if sum == 0.0 {
        return best;
    }
    let t = (u * a.z + v * b.z + w * c.z) / sum;
    if !(t > t_min && t < best.t) {
        return best;
    }
    return TriangleHit(t, index, v / sum, w / sum);
}
