//! Traversal of a majorant grid along a ray by a digital differential analyser (DDA; Amanatides1987).

use crate::resident::layout::MediumRecord;
use crate::transport::rays::camera::{transform_point, transform_vector};

/// The cells of a medium's majorant grid along a ray, in order.
#[derive(Debug, Clone, Copy)]
pub struct Cells {
    /// Distances at which the ray enters the present cell and leaves the medium.
    pub t: f32,
    pub end: f32,
    /// Index of the present cell among all majorants.
    pub index: u32,
    /// Distance at which the ray crosses the next plane of each axis, and distance between planes.
    next: [f32; 3],
    delta: [f32; 3],
    /// Cells left along each axis before the grid ends, and the index's step per cell.
    left: [u32; 3],
    stride: [i32; 3],
}

/// Clips a ray between `near` and `far` to a medium's box.
#[inline]
pub fn clip(medium: &MediumRecord, origin: [f32; 3], direction: [f32; 3], near: f32, far: f32) -> Option<(f32, f32)> {
    let (mut t, mut end) = (near, far);
    for a in 0..3 {
        if direction[a] == 0.0 {
            if origin[a] < medium.low[a] || origin[a] > medium.high[a] {
                return None;
            }
        } else {
            let inverse = 1.0 / direction[a];
            let p = (medium.low[a] - origin[a]) * inverse;
            let q = (medium.high[a] - origin[a]) * inverse;
            t = t.max(p.min(q));
            end = end.min(p.max(q));
        }
    }
    (t < end).then_some((t, end))
}

impl Cells {
    /// The cells between `near` and `far` on the ray; None if it misses the medium's box there.
    #[inline]
    pub fn new(medium: &MediumRecord, origin: [f32; 3], direction: [f32; 3], near: f32, far: f32) -> Option<Self> {
        let (t, end) = clip(medium, origin, direction, near, far)?;
        let mut cells = Self {
            t,
            end,
            index: medium.majorants[3],
            next: [f32::INFINITY; 3],
            delta: [f32::INFINITY; 3],
            left: [0; 3],
            stride: [0; 3],
        };
        if medium.majorants[..3] == [1; 3] {
            return Some(cells);
        }
        let o = transform_point(&medium.world_to_grid, origin);
        let d = transform_vector(&medium.world_to_grid, direction);
        let mut stride = 1;
        for a in 0..3 {
            let count = medium.majorants[a];
            let (start, speed) = (o[a] * count as f32, d[a] * count as f32);
            let place = start + t * speed;
            let cell = if place > 0.0 { (place as u32).min(count - 1) } else { 0 };
            cells.index += cell * stride as u32;
            if count == 1 {
                // A single cell ends at the medium's box, which may be infinite.
                continue;
            }
            if speed > 0.0 {
                cells.left[a] = count - 1 - cell;
                cells.stride[a] = stride;
                cells.delta[a] = 1.0 / speed;
                cells.next[a] = ((cell + 1) as f32 - start) / speed;
            } else if speed < 0.0 {
                cells.left[a] = cell;
                cells.stride[a] = -stride;
                cells.delta[a] = -1.0 / speed;
                cells.next[a] = (cell as f32 - start) / speed;
            }
            stride *= count as i32;
        }
        Some(cells)
    }

    /// Where the ray leaves the present cell.
    #[inline]
    pub fn exit(&self) -> f32 {
        self.end.min(self.next[0].min(self.next[1]).min(self.next[2]))
    }

    /// Advances to the next cell; false at the end.
    #[inline]
    pub fn advance(&mut self) -> bool {
        let exit = self.next[0].min(self.next[1]).min(self.next[2]);
        if exit >= self.end {
            return false;
        }
        let axis = if self.next[0] == exit {
            0
        } else if self.next[1] == exit {
            1
        } else {
            2
        };
        // Beyond the grid's last cell only a rounding error of the path is left; it stays in that cell.
        if self.left[axis] == 0 {
            self.next[axis] = f32::INFINITY;
        } else {
            self.left[axis] -= 1;
            self.index = self.index.wrapping_add_signed(self.stride[axis]);
            self.next[axis] += self.delta[axis];
        }
        self.t = self.t.max(exit);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::rays::random::test_uniform;
    use bytemuck::Zeroable;

    /// For points on random rays, the traversal's cell is the one that contains the point.
    #[test]
    fn every_point_lies_in_the_cell_that_is_visited() {
        let mut medium = MediumRecord::zeroed();
        medium.world_to_grid = [[0.5, 0.0, 0.0, 0.5], [0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.5, 0.5]];
        medium.low = [-1.0; 3];
        medium.high = [1.0; 3];
        medium.majorants = [3, 5, 2, 7];
        let mut met = 0;
        for i in 0..2000 {
            let (u, v) = (test_uniform(1, i, 0), test_uniform(1, i, 1));
            let (mut origin, mut direction) = ([0.0; 3], [0.0; 3]);
            for a in 0..3 {
                origin[a] = 4.0 * u[a] - 2.0;
                direction[a] = 2.0 * v[a] - 1.0 - origin[a];
            }
            if u[3] < 0.2 {
                direction[0] = 0.0;
            }
            let Some(mut cells) = Cells::new(&medium, origin, direction, 0.0, 10.0) else {
                continue;
            };
            met += 1;
            let mut last = cells.t;
            loop {
                let exit = cells.exit();
                assert!(exit >= last - 1e-5, "cells go backwards");
                let middle = 0.5 * (cells.t + exit);
                if exit - cells.t > 1e-4 {
                    let place = [0, 1, 2].map(|a| {
                        let count = medium.majorants[a];
                        let x = (origin[a] + middle * direction[a]) * 0.5 + 0.5;
                        ((x * count as f32).max(0.0) as u32).min(count - 1)
                    });
                    assert_eq!(cells.index - 7, (place[2] * 5 + place[1]) * 3 + place[0]);
                }
                last = exit;
                if !cells.advance() {
                    break;
                }
            }
            assert!((last - cells.end).abs() < 1e-4, "the walk ends early");
        }
        assert!(met > 1000);
    }
}
