//! OpenVDB's `.vdb`: fog volumes of floats, whole or saved as half, as dense grids, read and written.
//!
//! The tree must be the standard one, with levels of 32³, 16³ and 8³ (`Tree_float_5_4_3`). The dense grid is the
//! bounding box of all active voxels; voxels outside of the tree have the background value. OpenVDB places values at
//! integer coordinates, so that the texel of voxel i extends from i - ½ to i + ½ before the transform.

mod archive;
mod stream;
mod tree;
mod values;
mod write;

use std::path::Path;

use super::{Grid, GridHeader, IoError, Result, check_finite};
pub use write::{Volume, usual_name, write};

use archive::Entry;
use stream::{Parsed, Stream};
use tree::{Part, Tree};

/// Largest number of voxels of a dense grid.
const MAX_VOXELS: u64 = 1 << 31;

/// Largest number of voxels per byte of the file, since a few bytes can claim any number.
const MAX_VOXELS_PER_BYTE: u64 = 256;

/// Number of voxels that is accepted for a file of any length.
const MIN_VOXELS: u64 = 1 << 24;

/// The header: bounding box of all active voxels and its placement in the world. Voxels are not read.
///
/// Among several float grids, the one named `density` is read.
///
/// # Errors
/// If the file is no OpenVDB file of version 222 to 224 or is damaged; if it has no such grid, or several of which none
/// is called `density`; if the grid is a level set, is rotated, is empty, or is too large to be dense.
pub fn header(path: &Path) -> Result<GridHeader> {
    let (mut stream, entry) = open(path)?;
    let claim = measure(&mut stream, &entry).map_err(|e| IoError::new(path, e))?;
    Ok(claim.header)
}

/// Reads the grid.
///
/// # Errors
/// As [`header`]; also if a value is NaN or infinite, or if a codec was used that OpenVDB itself does not write.
pub fn read(path: &Path) -> Result<Grid> {
    let (mut stream, entry) = open(path)?;
    let grid = fill(&mut stream, &entry).map_err(|e| IoError::new(path, e))?;
    check_finite(path, grid)
}

fn open(path: &Path) -> Result<(Stream, Entry)> {
    let (file, length) = super::open(path)?;
    let mut stream = Stream::new(file, length);
    let entry = archive::open(&mut stream).map_err(|e| IoError::new(path, e))?;
    Ok((stream, entry))
}

/// The box of the active voxels, in voxels and in the world.
struct Claim {
    low: [i64; 3],
    header: GridHeader,
}

fn measure(stream: &mut Stream, entry: &Entry) -> Parsed<Claim> {
    let (mut low, mut high) = ([i64::MAX; 3], [i64::MIN; 3]);
    Tree::open(stream, entry)?.topology(&mut |part| {
        if let Some([first, last]) = part.active_box() {
            for axis in 0..3 {
                low[axis] = low[axis].min(first[axis]);
                high[axis] = high[axis].max(last[axis]);
            }
        }
    })?;
    if low[0] > high[0] {
        return Err(format!("has the grid `{}` without an active voxel", entry.name));
    }
    let size = [0, 1, 2].map(|axis| (high[axis] - low[axis] + 1) as u64);
    let voxels = size.iter().try_fold(1u64, |n, &s| n.checked_mul(s)).unwrap_or(u64::MAX);
    let limit = MIN_VOXELS
        .max(stream.length().saturating_mul(MAX_VOXELS_PER_BYTE))
        .min(MAX_VOXELS);
    if voxels > limit {
        let [x, y, z] = size;
        return Err(format!(
            "has active voxels in a box of {x} × {y} × {z}, but a file of {} bytes may fill {limit} voxels at most: crop \
             or resample the grid",
            stream.length()
        ));
    }
    let corner = |voxel: [i64; 3], side: f64| {
        let place = |axis: usize| entry.scale[axis] * (voxel[axis] as f64 + side) + entry.translation[axis];
        [0, 1, 2].map(|axis| place(axis) as f32)
    };
    let bounds = [corner(low, -0.5), corner(high, 0.5)];
    if bounds.as_flattened().iter().any(|v| !v.is_finite()) {
        return Err(format!("has bounds {bounds:?}, expected finite numbers"));
    }
    let header = GridHeader {
        size: size.map(|n| n as usize),
        channels: 1,
        bounds,
    };
    Ok(Claim { low, header })
}

fn fill(stream: &mut Stream, entry: &Entry) -> Parsed<Grid> {
    let Claim { low, header } = measure(stream, entry)?;
    let mut tree = Tree::open(stream, entry)?;
    let background = tree.background();
    let mut grid = Grid {
        size: header.size,
        channels: 1,
        bounds: header.bounds,
        data: vec![background; header.size.iter().product()],
    };
    let mut leaves = Vec::new();
    tree.topology(&mut |part| match part {
        Part::Tile {
            origin, edge, value, ..
        } if value != background => fill_box(&mut grid, low, origin, edge, value),
        Part::Tile { .. } => {}
        Part::Leaf { origin, .. } => leaves.push(origin),
    })?;
    for origin in leaves {
        let voxels = tree.leaf()?;
        fill_leaf(&mut grid, low, origin, &voxels);
    }
    Ok(grid)
}

/// Fills the intersection of a tile with the grid, whose first voxel is `low`.
fn fill_box(grid: &mut Grid, low: [i64; 3], origin: [i64; 3], edge: i64, value: f32) {
    let [nx, ny, nz] = grid.size;
    let range = |axis: usize, n: usize| {
        let clip = |v: i64| (v - low[axis]).clamp(0, n as i64) as usize;
        clip(origin[axis])..clip(origin[axis] + edge)
    };
    let x = range(0, nx);
    for z in range(2, nz) {
        for y in range(1, ny) {
            let row = (z * ny + y) * nx;
            grid.data[row + x.start..row + x.end].fill(value);
        }
    }
}

/// Fills the intersection of a leaf with the grid; the leaf's own order is `[x][y][z]`.
fn fill_leaf(grid: &mut Grid, low: [i64; 3], origin: [i64; 3], voxels: &[f32]) {
    let [nx, ny, _] = grid.size;
    for (i, &value) in (0i64..).zip(voxels) {
        let voxel = [i >> 6, i >> 3 & 7, i & 7];
        let at: [i64; 3] = std::array::from_fn(|axis| origin[axis] + voxel[axis] - low[axis]);
        if (0..3).all(|axis| (0..grid.size[axis] as i64).contains(&at[axis])) {
            let [x, y, z] = at.map(|v| v as usize);
            grid.data[(z * ny + y) * nx + x] = value;
        }
    }
}

#[cfg(test)]
mod tests;
