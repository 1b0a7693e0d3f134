//! The zero level of signed distances on a grid, trilinear between its points: where rays meet it, and its normals
//! (Hansson2022).

use super::records::SceneView;
use crate::each::{EachEntry, each_index};
use crate::resident::layout::DistanceGridRecord;
use crate::transport::rays::sampler::dot;

/// Most steps of the search for a root: bisections alone would narrow the bracket to 2⁻³² of its length.
const ROOT_STEPS: u32 = 32;

/// A trilinear function in a cell: its coefficients of 1, x, y, z, xy, xz, yz and xyz, with x, y and z from 0 to 1.
type Trilinear = [f32; 8];

/// A point of the level.
pub(super) struct LevelPoint {
    /// In the shape's own space, moved onto the level.
    pub p: [f32; 3],
    /// The geometric normal, that of the cell, and the shading normal; both of any length.
    pub normal: [f32; 3],
    pub shading: [f32; 3],
}

/// The first intersection between 0 and `far` of a ray in the shape's own space, where the grid fills [-1, 1]³: the
/// distance, and the cell.
#[inline(never)]
pub(super) fn intersect_distances(
    scene: &SceneView,
    grid: u32,
    o: [f32; 3],
    d: [f32; 3],
    far: f32,
) -> Option<(f32, u32)> {
    let record = &scene.distance_grids[grid as usize];
    // Into units of cells.
    let cells = record.size.each(|points| points - 1);
    let half = cells.each(|count| 0.5 * count as f32);
    let q = each_index(|a| o[a] * half[a] + half[a]);
    let w = each_index(|a| d[a] * half[a]);
    // Clips the ray to the grid.
    let inverse = w.each(|x| if x == 0.0 { 0.0 } else { 1.0 / x });
    let (mut t, mut end) = (0.0f32, far);
    for a in 0..3 {
        let last = 2.0 * half[a];
        if w[a] == 0.0 {
            if q[a] < 0.0 || q[a] > last {
                return None;
            }
            continue;
        }
        let (low, high) = (-q[a] * inverse[a], (last - q[a]) * inverse[a]);
        t = t.max(low.min(high));
        end = end.min(low.max(high));
    }
    if t >= end {
        return None;
    }
    // Marches from cell to cell, over all cells known to be empty at once, and carries the side of the level that the ray is on:
    // neighbouring cells round the values on their common face differently, and no crossing may be lost there.
    let mut cell: [u32; 3] = each_index(|a| ((q[a] + t * w[a]).max(0.0) as u32).min(cells[a] - 1));
    let mut side = None;
    for _ in 0..cells[0] + cells[1] + cells[2] {
        let number = (cell[2] * cells[1] + cell[1]) * cells[0] + cell[0];
        let room = u32::from(scene.rooms[(record.first_room + number) as usize]);
        // The level passes no other cell up to this many cells away.
        let reach = room.saturating_sub(1);
        let last: [u32; 3] = each_index(|a| (cell[a] + reach).min(cells[a] - 1));
        let first: [u32; 3] = each_index(|a| cell[a].saturating_sub(reach));
        let exits: [f32; 3] = each_index(|a: usize| match w[a] == 0.0 {
            true => f32::INFINITY,
            false => (if w[a] > 0.0 { last[a] + 1 } else { first[a] } as f32 - q[a]) * inverse[a],
        });
        let exit = exits[0].min(exits[1]).min(exits[2]).min(end);
        if let Some(s) = cross_cell(scene, record, cell, [q, w], [t, exit], room, &mut side) {
            return Some((t + s, number));
        }
        if exit >= end {
            return None;
        }
        for a in 0..3 {
            let place = ((q[a] + exit * w[a]).max(0.0) as u32).clamp(first[a], last[a]);
            cell[a] = match exits[a] <= exit {
                false => place,
                true if w[a] > 0.0 && last[a] + 1 < cells[a] => last[a] + 1,
                true if w[a] < 0.0 && first[a] > 0 => first[a] - 1,
                true => return None,
            };
        }
        t = t.max(exit);
    }
    None
}

/// Where the ray crosses the level between the distances `begin` and `end`, counted from `begin`. `side` is whether the ray comes
/// from positive distances; it is None in the ray's first cell, which sets it. With `room` > 0 the level does not pass the cell.
#[inline(always)]
fn cross_cell(
    scene: &SceneView,
    record: &DistanceGridRecord,
    cell: [u32; 3],
    [q, w]: [[f32; 3]; 2],
    [begin, end]: [f32; 2],
    room: u32,
    side: &mut Option<bool>,
) -> Option<f32> {
    if room > 0 {
        let positive = scene.distances[first_corner(record, cell) as usize] > 0.0;
        let crossed = side.is_some_and(|side| side != positive);
        *side = Some(positive);
        return crossed.then_some(0.0);
    }
    let cubic = along_ray(
        &trilinear(cell_corners(scene, record, cell)),
        each_index(|a| q[a] + begin * w[a] - cell[a] as f32),
        w,
    );
    let positive = side.unwrap_or(cubic[0] >= 0.0);
    *side = Some(positive);
    // Between two extrema a cubic crosses zero once at most.
    let length = end - begin;
    let [first, second] = cubic_extrema(cubic);
    let mut before = 0.0;
    for place in [0.0, first, second, length] {
        if place < 0.0 || place > length {
            continue;
        }
        if (cubic_eval(cubic, place) >= 0.0) != positive {
            return Some(cubic_root(cubic, [before, place], positive));
        }
        before = place;
    }
    None
}

/// The values at the eight corners of a cell; x is fastest.
#[inline(always)]
fn cell_corners(scene: &SceneView, record: &DistanceGridRecord, cell: [u32; 3]) -> [f32; 8] {
    let [nx, ny, _] = record.size;
    let first = first_corner(record, cell);
    each_index(|k: usize| {
        let k = k as u32;
        scene.distances[(first + (k & 1) + (k >> 1 & 1) * nx + (k >> 2) * nx * ny) as usize]
    })
}

/// The index of a cell's value at its lowest corner.
#[inline(always)]
fn first_corner(record: &DistanceGridRecord, cell: [u32; 3]) -> u32 {
    record.first + (cell[2] * record.size[1] + cell[1]) * record.size[0] + cell[0]
}

#[inline(always)]
fn trilinear(v: [f32; 8]) -> Trilinear {
    let (x, y, z) = (v[1] - v[0], v[2] - v[0], v[4] - v[0]);
    let xy = v[3] - v[2] - x;
    let xz = v[5] - v[4] - x;
    let yz = v[6] - v[4] - y;
    [v[0], x, y, z, xy, xz, yz, (v[7] - v[6]) - (v[5] - v[4]) - xy]
}

#[inline(always)]
fn trilinear_value(k: &Trilinear, [x, y, z]: [f32; 3]) -> f32 {
    k[0] + k[1] * x + k[2] * y + k[3] * z + k[4] * x * y + k[5] * x * z + k[6] * y * z + k[7] * x * y * z
}

#[inline(always)]
fn trilinear_gradient(k: &Trilinear, [x, y, z]: [f32; 3]) -> [f32; 3] {
    [
        k[1] + k[4] * y + k[5] * z + k[7] * y * z,
        k[2] + k[4] * x + k[6] * z + k[7] * x * z,
        k[3] + k[5] * x + k[6] * y + k[7] * x * y,
    ]
}

/// A cell's distance along q + s w as a cubic in s: its coefficients in ascending order.
#[inline(always)]
fn along_ray(k: &Trilinear, q: [f32; 3], w: [f32; 3]) -> [f32; 4] {
    let [xy, xz, yz] = [w[0] * w[1], w[0] * w[2], w[1] * w[2]];
    [
        trilinear_value(k, q),
        dot(trilinear_gradient(k, q), w),
        k[4] * xy + k[5] * xz + k[6] * yz + k[7] * (q[0] * yz + q[1] * xz + q[2] * xy),
        k[7] * xy * w[2],
    ]
}

#[inline(always)]
fn cubic_eval(c: [f32; 4], s: f32) -> f32 {
    c[0] + s * (c[1] + s * (c[2] + s * c[3]))
}

/// The places of a cubic's extrema in ascending order; -1 for each that does not exist.
#[inline(always)]
fn cubic_extrema(c: [f32; 4]) -> [f32; 2] {
    // 3 c₃ s² + 2 c₂ s + c₁ = 0, without cancellation.
    let discriminant = c[2] * c[2] - 3.0 * c[3] * c[1];
    if discriminant < 0.0 {
        return [-1.0; 2];
    }
    let root = discriminant.sqrt();
    let sum = -(c[2] + if c[2] < 0.0 { -root } else { root });
    let a = if c[3] != 0.0 { sum / (3.0 * c[3]) } else { -1.0 };
    let b = if sum != 0.0 { c[1] / sum } else { -1.0 };
    [a.min(b), a.max(b)]
}

/// The root of a cubic that crosses once within the bracket, whose first end has the sign given: Newton's method, and
/// bisection where that would leave the bracket.
#[inline(always)]
fn cubic_root(c: [f32; 4], [mut low, mut high]: [f32; 2], positive: bool) -> f32 {
    let mut s = 0.5 * (low + high);
    for _ in 0..ROOT_STEPS {
        let value = cubic_eval(c, s);
        if (value >= 0.0) == positive {
            low = s;
        } else {
            high = s;
        }
        let slope = c[1] + s * (2.0 * c[2] + s * 3.0 * c[3]);
        let newton = s - value / slope;
        let next = match newton > low && newton < high {
            true => newton,
            false => 0.5 * (low + high),
        };
        if next == s {
            break;
        }
        s = next;
    }
    s
}

/// The point of the level and its normals near the point `p` of the cell `number`, where a ray along `direction` meets
/// it; all in the shape's own space.
#[inline(never)]
pub(super) fn level_point(scene: &SceneView, grid: u32, number: u32, p: [f32; 3], direction: [f32; 3]) -> LevelPoint {
    let record = &scene.distance_grids[grid as usize];
    let cells = record.size.each(|points| points - 1);
    let half = cells.each(|count| 0.5 * count as f32);
    let cell = [
        number % cells[0],
        number / cells[0] % cells[1],
        number / cells[0] / cells[1],
    ];
    // Moves the point onto the level: the ray's distance is rounded more coarsely than a place in a cell.
    let mut at = each_index(|a| p[a] * half[a] + half[a]);
    let k = trilinear(cell_corners(scene, record, cell));
    let within = each_index(|a| at[a] - cell[a] as f32);
    let up = trilinear_gradient(&k, within);
    let steepness = dot(up, up);
    if steepness > 0.0 {
        let step = (-trilinear_value(&k, within) / steepness).clamp(-1.0, 1.0);
        at = each_index(|a| at[a] + (step * up[a]).clamp(-0.01, 0.01));
    }
    // Where the gradient is zero, the normal faces the ray.
    let towards = each_index(|a| -direction[a]);
    let normal = match steepness > 0.0 {
        true => each_index(|a| up[a] * half[a]),
        false => towards,
    };
    let mut shading = normal;
    if record.smooth == 1 {
        let blended = smooth_normal(scene, record, at, cells, half);
        if dot(blended, blended) > 0.0 {
            shading = blended;
        }
    }
    LevelPoint {
        p: each_index(|a| at[a] / half[a] - 1.0),
        normal,
        shading,
    }
}

/// The unit normals of the eight cells whose centres surround a point, each extrapolated to it, blended with trilinear
/// weights: continuous across cells, where a cell's own normal jumps.
#[inline(always)]
fn smooth_normal(
    scene: &SceneView,
    record: &DistanceGridRecord,
    at: [f32; 3],
    cells: [u32; 3],
    half: [f32; 3],
) -> [f32; 3] {
    let nearest = at.each(|x| (x + 0.5).floor());
    let mut sum = [0.0; 3];
    for k in 0..8u32 {
        let mut weight = 1.0;
        let cell = each_index(|a: usize| {
            let upper = k >> a & 1 == 1;
            let along = at[a] - nearest[a] + 0.5;
            weight *= if upper { along } else { 1.0 - along };
            let index = nearest[a] - if upper { 0.0 } else { 1.0 };
            (index.max(0.0) as u32).min(cells[a] - 1)
        });
        let up = trilinear_gradient(
            &trilinear(cell_corners(scene, record, cell)),
            each_index(|a| at[a] - cell[a] as f32),
        );
        let normal: [f32; 3] = each_index(|a| up[a] * half[a]);
        let length = dot(normal, normal).sqrt();
        if length > 0.0 {
            sum = each_index(|a| sum[a] + weight / length * normal[a]);
        }
    }
    sum
}
