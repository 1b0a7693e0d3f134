//! Shapes that are given by signed distances on a grid.

use std::path::{Path, PathBuf};

use super::layout::DistanceGridRecord;
use crate::each::EachEntry;
use crate::io::{IoError, Result, vol};

/// All grids of a scene.
#[derive(Debug, Clone, Default)]
pub struct Distances {
    pub grids: Vec<DistanceGridRecord>,
    /// The signed distances of all grids, one grid after the other.
    pub values: Vec<f32>,
    /// For each cell its distance from the nearest cell that the surface passes, in steps to any of 26 neighbours, at most
    /// 255; zero for a cell that the surface passes.
    pub rooms: Vec<u8>,
    /// The file of each grid and its `smooth`: it is read once however many shapes show it.
    files: Vec<(PathBuf, bool)>,
}

impl Distances {
    /// Bytes of the records.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.grids[..]) + size_of_val(&self.values[..]) + size_of_val(&self.rooms[..])
    }

    /// The index of a file's grid, which is read and added unless it is known.
    ///
    /// # Errors
    /// The file cannot be read, or has no surface.
    pub(super) fn add(&mut self, path: &Path, smooth: bool) -> Result<u32> {
        let file = (path.to_path_buf(), smooth);
        if let Some(known) = self.files.iter().position(|known| *known == file) {
            return Ok(known as u32);
        }
        let grid = vol::read(path)?;
        if self.values.len() + grid.data.len() > u32::MAX as usize {
            return Err(IoError::new(
                path,
                "all distances of a scene must be fewer than 2³²: take fewer points",
            ));
        }
        let occupied = occupied_cells(grid.size, &grid.data);
        if !occupied.contains(&true) {
            return Err(IoError::new(
                path,
                "there is no surface: expected distances above zero, outside, and others below",
            ));
        }
        self.grids.push(DistanceGridRecord {
            size: grid.size.each(|points| points as u32),
            first: self.values.len() as u32,
            smooth: u32::from(smooth),
            first_room: self.rooms.len() as u32,
            padding: [0; 2],
        });
        self.rooms.extend(rooms(grid.size.each(|points| points - 1), &occupied));
        self.values.extend(grid.data);
        self.files.push(file);
        Ok(self.grids.len() as u32 - 1)
    }
}

/// For each cell whether the surface passes it: whether the values at its corners have different signs, or one is zero.
fn occupied_cells([nx, ny, nz]: [usize; 3], values: &[f32]) -> Vec<bool> {
    let mut occupied = Vec::with_capacity((nx - 1) * (ny - 1) * (nz - 1));
    for z in 0..nz - 1 {
        for y in 0..ny - 1 {
            for x in 0..nx - 1 {
                let corner = |k: usize| values[((z + (k >> 2)) * ny + y + (k >> 1 & 1)) * nx + x + (k & 1)];
                let all = |is: fn(f32) -> bool| (0..8).all(|k| is(corner(k)));
                occupied.push(!all(|x| x > 0.0) && !all(|x| x < 0.0));
            }
        }
    }
    occupied
}

/// The distances of cells from the nearest occupied cell, in steps to any of 26 neighbours: one sweep forwards and one
/// backwards give them exactly.
fn rooms(size: [usize; 3], occupied: &[bool]) -> Vec<u8> {
    let mut rooms: Vec<u8> = occupied.iter().map(|is| if *is { 0 } else { u8::MAX }).collect();
    for at in 0..rooms.len() {
        rooms[at] = nearer(size, &rooms, at, -1);
    }
    for at in (0..rooms.len()).rev() {
        rooms[at] = nearer(size, &rooms, at, 1);
    }
    rooms
}

/// The distance of a cell by way of its neighbours that come before it in memory (`side` -1) or after it (1).
fn nearer([nx, ny, nz]: [usize; 3], rooms: &[u8], at: usize, side: isize) -> u8 {
    let (x, y, z) = (at % nx, at / nx % ny, at / nx / ny);
    let mut least = rooms[at];
    for (dz, dy, dx) in NEIGHBOURS {
        let along = |from: usize, step: isize, count: usize| {
            from.checked_add_signed(side * step).filter(|place| *place < count)
        };
        if let (Some(x), Some(y), Some(z)) = (along(x, dx, nx), along(y, dy, ny), along(z, dz, nz)) {
            least = least.min(rooms[(z * ny + y) * nx + x].saturating_add(1));
        }
    }
    least
}

/// Half of a cell's neighbours, as steps along z, y and x: those after it in memory.
const NEIGHBOURS: [(isize, isize, isize); 13] = [
    (0, 0, 1),
    (0, 1, -1),
    (0, 1, 0),
    (0, 1, 1),
    (1, -1, -1),
    (1, -1, 0),
    (1, -1, 1),
    (1, 0, -1),
    (1, 0, 0),
    (1, 0, 1),
    (1, 1, -1),
    (1, 1, 0),
    (1, 1, 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a search among all cells.
    #[test]
    fn rooms_are_distances_to_the_nearest_cell_with_a_surface() {
        let size = [7, 6, 9];
        let occupied: Vec<bool> = (0..7 * 6 * 9).map(|i| i * 131 % 97 == 5).collect();
        assert!(occupied.iter().filter(|is| **is).count() > 2);
        let place = |at: usize| [at % 7, at / 7 % 6, at / 42];
        for (at, room) in rooms(size, &occupied).into_iter().enumerate() {
            let far = |other: usize| {
                let (a, b) = (place(at), place(other));
                (0..3).map(|k| a[k].abs_diff(b[k])).max().expect("three")
            };
            let nearest = (0..occupied.len()).filter(|i| occupied[*i]).map(far).min();
            assert_eq!(Some(usize::from(room)), nearest, "{at}");
        }
    }

    /// A cell whose corners are all on one side is empty, and one with a corner on the level is not.
    #[test]
    fn cells_between_signs_are_occupied() {
        let values = [1.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 0.0];
        // Two points along x and y, three along z.
        assert_eq!(occupied_cells([2, 2, 3], &values), [false, true]);
        assert_eq!(occupied_cells([2, 2, 2], &values.map(|x| -x - 0.5)[..8]), [false]);
    }
}
