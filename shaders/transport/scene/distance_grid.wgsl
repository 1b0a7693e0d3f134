// The zero level of signed distances on a grid, trilinear between its points: where rays meet it, and its normals.

#import transport/rays/sampler
#import transport/scene/records

// The most steps of a root search.
const ROOT_STEPS: u32 = 32u;

// A trilinear function in a cell: its coefficients of 1, x, y, z, xy, xz, yz and xyz, with x, y and z from 0 to 1.
struct Trilinear {
    constant: f32,
    linear: vec3f,
    // Of xy, xz, yz.
    mixed: vec3f,
    all: f32,
}

// A point of the zero level.
struct LevelPoint {
    // In the shape's own space, moved onto the level.
    p: vec3f,
    // The gradient there, of any length: of the point's cell, and as the shading normal.
    normal: vec3f,
    shading: vec3f,
}

// Where a ray crosses the level in a cell, if `met`; else the side that it is on afterwards: 1 where distances are positive,
// -1 where they are negative.
struct Crossing {
    met: bool,
    s: f32,
    side: i32,
}

// The first intersection between 0 and `far` of a ray in the shape's own space, where the grid fills [-1, 1]^3: the
// distance, and the cell.
fn intersect_distances(grid: u32, o: vec3f, d: vec3f, far: f32) -> Found {
    let record = distance_grid_record(grid);
    // Into units of cells.
    let cells = record.size - 1u;
    let half = 0.5 * vec3f(cells);
    let q = o * half + half;
    let w = d * half;
    // The part of the ray within the grid.
    var inverse = vec3f(0.0);
    var t = 0.0;
    var end = far;
    for (var a = 0u; a < 3u; a++) {
        let last = 2.0 * half[a];
        if w[a] == 0.0 {
            if q[a] < 0.0 || q[a] > last {
                return MISSED;
            }
            continue;
        }
        inverse[a] = 1.0 / w[a];
        let low = -q[a] * inverse[a];
        let high = (last - q[a]) * inverse[a];
        t = max(t, min(low, high));
        end = min(end, max(low, high));
    }
    if t >= end {
        return MISSED;
    }
    // March from cell to cell, over a block of empty cells at once, and keep the side of the level that the ray is on:
    // neighbours round their shared face in different ways, and no crossing may be lost between them.
    var cell = min(vec3u(max(q + t * w, vec3f(0.0))), cells - 1u);
    var side = 0i;
    let count = cells.x + cells.y + cells.z;
    for (var i = 0u; i < count; i++) {
        let number = (cell.z * cells.y + cell.y) * cells.x + cell.x;
        let room = room_value(record.first_room + number);
        // The block of cells around that are empty, too.
        let reach = max(room, 1u) - 1u;
        let last = min(cell + reach, cells - 1u);
        let first = cell - min(cell, vec3u(reach));
        let ahead = vec3f(select(first, last + 1u, w > vec3f(0.0))) - q;
        let exits = select(ahead * inverse, vec3f(3.0e38), w == vec3f(0.0));
        let exit = min(min(exits.x, exits.y), min(exits.z, end));
        let crossing = cross_cell(record, cell, q, w, t, exit, room, side);
        if crossing.met {
            return Found(t + crossing.s, number, true);
        }
        if exit >= end {
            return MISSED;
        }
        side = crossing.side;
        let place = clamp(vec3u(max(q + exit * w, vec3f(0.0))), first, last);
        let leaves = exits <= vec3f(exit);
        if any(leaves & select(first == vec3u(0u), last + 1u == cells, w > vec3f(0.0))) {
            return MISSED;
        }
        cell = select(place, select(first - 1u, last + 1u, w > vec3f(0.0)), leaves);
        t = max(t, exit);
    }
    return MISSED;
}

// Where the ray crosses the level between the distances `begin` and `end`, counted from `begin`. `side` is the side that it
// comes from, 0 where it begins. Where `room` is above 0 the level does not cross the cell.
fn cross_cell(
    record: DistanceGrid,
    cell: vec3u,
    q: vec3f,
    w: vec3f,
    begin: f32,
    end: f32,
    room: u32,
    side: i32,
) -> Crossing {
    if room > 0u {
        let now = select(-1i, 1i, distance_value(first_corner(record, cell)) > 0.0);
        return Crossing(side != 0i && side != now, 0.0, now);
    }
    let cubic = along_ray(trilinear(cell_corners(record, cell)), q + begin * w - vec3f(cell), w);
    var before_side = side;
    if before_side == 0i {
        before_side = select(-1i, 1i, cubic.x >= 0.0);
    }
    // Between its extrema a cubic crosses zero once at most.
    let length = end - begin;
    let turns = cubic_extrema(cubic);
    let places = vec4f(0.0, turns, length);
    var before = 0.0;
    for (var k = 0u; k < 4u; k++) {
        let place = places[k];
        if place < 0.0 || place > length {
            continue;
        }
        if (cubic_eval(cubic, place) >= 0.0) != (before_side > 0i) {
            return Crossing(true, cubic_root(cubic, before, place, before_side > 0i), before_side);
        }
        before = place;
    }
    return Crossing(false, 0.0, before_side);
}

// The values at the corners of a cell, those along x first.
fn cell_corners(record: DistanceGrid, cell: vec3u) -> array<f32, 8> {
    let first = first_corner(record, cell);
    var values: array<f32, 8>;
    for (var k = 0u; k < 8u; k++) {
        let along_y = ((k >> 1u) & 1u) * record.size.x;
        let along_z = (k >> 2u) * record.size.x * record.size.y;
        values[k] = distance_value(first + (k & 1u) + along_y + along_z);
    }
    return values;
}

// The index of a cell's value at its lowest corner.
fn first_corner(record: DistanceGrid, cell: vec3u) -> u32 {
    return record.first + (cell.z * record.size.y + cell.y) * record.size.x + cell.x;
}

fn trilinear(v: array<f32, 8>) -> Trilinear {
    let x = v[1] - v[0];
    let y = v[2] - v[0];
    let z = v[4] - v[0];
    let xy = v[3] - v[2] - x;
    let xz = v[5] - v[4] - x;
    let yz = v[6] - v[4] - y;
    return Trilinear(v[0], vec3f(x, y, z), vec3f(xy, xz, yz), (v[7] - v[6]) - (v[5] - v[4]) - xy);
}

fn trilinear_value(k: Trilinear, p: vec3f) -> f32 {
    return k.constant + dot(k.linear, p) + dot(k.mixed, p.xxy * p.yzz) + k.all * p.x * p.y * p.z;
}

fn trilinear_gradient(k: Trilinear, p: vec3f) -> vec3f {
    return vec3f(
        k.linear.x + k.mixed.x * p.y + k.mixed.y * p.z + k.all * p.y * p.z,
        k.linear.y + k.mixed.x * p.x + k.mixed.z * p.z + k.all * p.x * p.z,
        k.linear.z + k.mixed.y * p.x + k.mixed.z * p.y + k.all * p.x * p.y,
    );
}

// The signed distance at q + s w in a cell, as a cubic in s: its coefficients in ascending order.
fn along_ray(k: Trilinear, q: vec3f, w: vec3f) -> vec4f {
    let pairs = w.xxy * w.yzz;
    return vec4f(
        trilinear_value(k, q),
        dot(trilinear_gradient(k, q), w),
        dot(k.mixed, pairs) + k.all * dot(q.zyx, pairs),
        k.all * pairs.x * w.z,
    );
}

fn cubic_eval(c: vec4f, s: f32) -> f32 {
    return c.x + s * (c.y + s * (c.z + s * c.w));
}

// The places of a cubic's extrema, in ascending order; -1 for each that does not exist.
fn cubic_extrema(c: vec4f) -> vec2f {
    // 3 c3 s^2 + 2 c2 s + c1 = 0, without cancellation.
    let discriminant = c.z * c.z - 3.0 * c.w * c.y;
    if discriminant < 0.0 {
        return vec2f(-1.0);
    }
    let root = sqrt(discriminant);
    let sum = -(c.z + select(root, -root, c.z < 0.0));
    var found = vec2f(-1.0);
    if c.w != 0.0 {
        found.x = sum / (3.0 * c.w);
    }
    if sum != 0.0 {
        found.y = c.y / sum;
    }
    return vec2f(min(found.x, found.y), max(found.x, found.y));
}

// The root of a cubic that crosses once within the bracket, whose first end has the sign given: Newton's method, and
// bisection where that would leave the bracket.
fn cubic_root(c: vec4f, first: f32, last: f32, positive: bool) -> f32 {
    var low = first;
    var high = last;
    var s = 0.5 * (low + high);
    for (var i = 0u; i < ROOT_STEPS; i++) {
        let at = cubic_eval(c, s);
        if (at >= 0.0) == positive {
            low = s;
        } else {
            high = s;
        }
        let slope = c.y + s * (2.0 * c.z + s * 3.0 * c.w);
        var next = 0.5 * (low + high);
        if slope != 0.0 {
            let newton = s - at / slope;
            if newton > low && newton < high {
                next = newton;
            }
        }
        if next == s {
            break;
        }
        s = next;
    }
    return s;
}

// The point of the level near `p` in a cell, and its normals, for a ray in `direction`; all in the shape's own space.
fn level_point(grid: u32, number: u32, p: vec3f, direction: vec3f) -> LevelPoint {
    let record = distance_grid_record(grid);
    let cells = record.size - 1u;
    let half = 0.5 * vec3f(cells);
    let cell = vec3u(number % cells.x, number / cells.x % cells.y, number / cells.x / cells.y);
    // Move the point onto the level: a ray's distance is rounded more coarsely than a place in a cell.
    var at = p * half + half;
    let k = trilinear(cell_corners(record, cell));
    let within = at - vec3f(cell);
    let up = trilinear_gradient(k, within);
    let steepness = dot(up, up);
    // Where the distance has no slope any normal will do that faces the ray.
    var normal = -direction;
    if steepness > 0.0 {
        let step = clamp(-trilinear_value(k, within) / steepness, -1.0, 1.0);
        at += clamp(step * up, vec3f(-0.01), vec3f(0.01));
        normal = up * half;
    }
    var shading = normal;
    if record.smooth_normals == 1u {
        let blended = smooth_normal(record, at, cells, half);
        if dot(blended, blended) > 0.0 {
            shading = blended;
        }
    }
    return LevelPoint(at / half - 1.0, normal, shading);
}

// The mean of the unit gradients of the eight cells whose centres are around a point, each extrapolated to the point, with
// trilinear weights. It is continuous where the gradients of single cells jump.
fn smooth_normal(record: DistanceGrid, at: vec3f, cells: vec3u, half: vec3f) -> vec3f {
    let nearest = floor(at + 0.5);
    let along = at - nearest + 0.5;
    var sum = vec3f(0.0);
    for (var k = 0u; k < 8u; k++) {
        let upper = ((vec3u(k) >> vec3u(0u, 1u, 2u)) & vec3u(1u)) == vec3u(1u);
        let weights = select(1.0 - along, along, upper);
        let index = nearest - select(vec3f(1.0), vec3f(0.0), upper);
        let cell = min(vec3u(max(index, vec3f(0.0))), cells - 1u);
        let normal = trilinear_gradient(trilinear(cell_corners(record, cell)), at - vec3f(cell)) * half;
        let length = sqrt(dot(normal, normal));
        if length > 0.0 {
            sum += weights.x * weights.y * weights.z / length * normal;
        }
    }
    return sum;
}
