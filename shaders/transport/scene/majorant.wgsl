// Cells of a majorant grid along a ray (Amanatides1987).

#import common/math
#import transport/scene/records

// A part of a ray; empty unless `met`.
struct Part {
    start: f32,
    end: f32,
    met: bool,
}

// The part of a ray between `near` and `far` that lies in a medium's box.
fn clip(medium: Medium, origin: vec3f, direction: vec3f, near: f32, far: f32) -> Part {
    var part = Part(near, far, false);
    for (var a = 0u; a < 3u; a++) {
        if direction[a] == 0.0 {
            if origin[a] < medium.low[a] || origin[a] > medium.high[a] {
                return part;
            }
        } else {
            let inverse = 1.0 / direction[a];
            let p = (medium.low[a] - origin[a]) * inverse;
            let q = (medium.high[a] - origin[a]) * inverse;
            part.start = max(part.start, min(p, q));
            part.end = min(part.end, max(p, q));
        }
    }
    part.met = part.start < part.end;
    return part;
}

// The cells of a medium's majorant grid that a ray passes through, in order.
struct Cells {
    // Where the ray enters the present cell, and where it leaves the medium.
    t: f32,
    end: f32,
    // Whether the medium's box is met at all.
    met: bool,
    // Index of the present cell among all majorants.
    index: u32,
    // Where the ray crosses the next plane of each axis, and from plane to plane.
    next: vec3f,
    delta: vec3f,
    // Cells left along each axis before the grid ends, and the steps of the index.
    left: vec3u,
    stride: vec3i,
}

// The cells between `near` and `far` on the ray.
fn cells_new(medium: Medium, origin: vec3f, direction: vec3f, near: f32, far: f32) -> Cells {
    let part = clip(medium, origin, direction, near, far);
    var cells = Cells(part.start, part.end, part.met, medium.majorants.w, vec3f(FAR), vec3f(FAR), vec3u(0u), vec3i(0));
    if !part.met {
        return cells;
    }
    let o = transform_point(medium.world_to_grid, origin);
    let d = transform_vector(medium.world_to_grid, direction);
    let counts = medium.majorants.xyz;
    let strides = vec3u(1u, counts.x, counts.x * counts.y);
    let start = o * vec3f(counts);
    let speed = d * vec3f(counts);
    let place = start + cells.t * speed;
    let cell = min(vec3u(clamp(place, vec3f(0.0), vec3f(16777216.0))), counts - 1u);
    cells.index += cell.x + cell.y * strides.y + cell.z * strides.z;
    for (var a = 0u; a < 3u; a++) {
        if counts[a] == 1u {
            // One cell ends where the medium does, which may be nowhere.
            continue;
        }
        if speed[a] > 0.0 {
            cells.left[a] = counts[a] - 1u - cell[a];
            cells.stride[a] = i32(strides[a]);
            cells.delta[a] = 1.0 / speed[a];
            cells.next[a] = (f32(cell[a] + 1u) - start[a]) / speed[a];
        } else if speed[a] < 0.0 {
            cells.left[a] = cell[a];
            cells.stride[a] = -i32(strides[a]);
            cells.delta[a] = -1.0 / speed[a];
            cells.next[a] = (f32(cell[a]) - start[a]) / speed[a];
        }
    }
    return cells;
}

// Where the ray leaves the present cell.
fn cells_exit(cells: ptr<function, Cells>) -> f32 {
    let next = (*cells).next;
    return min((*cells).end, min(min(next.x, next.y), next.z));
}

// Goes on to the next cell; false at the end.
fn cells_advance(cells: ptr<function, Cells>) -> bool {
    let next = (*cells).next;
    let exit = min(min(next.x, next.y), next.z);
    if exit >= (*cells).end {
        return false;
    }
    // Masks instead of an axis, so that no index is dynamic.
    let x = next.x == exit;
    let y = !x && next.y == exit;
    let axis = vec3<bool>(x, y, !x && !y);
    let stuck = any(axis & ((*cells).left == vec3u(0u)));
    if stuck {
        // At the grid's border only rounding leaves a remainder, which belongs to the last cell.
        (*cells).next = select(next, vec3f(FAR), axis);
    } else {
        let one = select(vec3u(0u), vec3u(1u), axis);
        let step = select(vec3i(0), (*cells).stride, axis);
        (*cells).left -= one;
        (*cells).index += bitcast<u32>(step.x + step.y + step.z);
        (*cells).next += select(vec3f(0.0), (*cells).delta, axis);
    }
    (*cells).t = max((*cells).t, exit);
    return true;
}
