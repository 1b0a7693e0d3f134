// Traversal of a majorant grid along a ray by a digital differential analyser (DDA; Amanatides1987).

#import common/math
#import transport/scene/records

// A part of a ray; empty unless `met`.
struct Part {
    start: f32,
    end: f32,
    met: bool,
}

// Clips a ray between `near` and `far` to a medium's box.
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

// The cells of a medium's majorant grid along a ray, in order.
struct Cells {
    // Distances at which the ray enters the present cell and leaves the medium.
    t: f32,
    end: f32,
    // Whether the ray meets the medium's box.
    met: bool,
    // Index of the present cell among all majorants.
    index: u32,
    // Distance at which the ray crosses the next plane of each axis, and distance between planes.
    next: vec3f,
    delta: vec3f,
    // Cells left along each axis before the grid ends, and the index's step per cell.
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
            // A single cell ends at the medium's box, which may be infinite.
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

// Advances to the next cell; false at the end.
fn cells_advance(cells: ptr<function, Cells>) -> bool {
    let next = (*cells).next;
    let exit = min(min(next.x, next.y), next.z);
    if exit >= (*cells).end {
        return false;
    }
    // Masks instead of an axis index avoid dynamic indexing, which spills vectors to memory.
    let x = next.x == exit;
    let y = !x && next.y == exit;
    let axis = vec3<bool>(x, y, !x && !y);
    let stuck = any(axis & ((*cells).left == vec3u(0u)));
    if stuck {
        // Beyond the grid's last cell only a rounding error of the path is left; it stays in that cell.
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
