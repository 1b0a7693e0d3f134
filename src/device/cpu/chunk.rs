//! How a batch is cut: into chunks of a fixed number of pixels, whole views by tiles, so that neighbouring rays run
//! together and nothing depends on the number of threads.

use crate::device::{Batch, Keys};
use crate::resident::Resident;
use crate::transport::path::{Pixel, drawn_pixel};

/// Edge of a tile of a view.
const TILE: u32 = 16;

/// Pixels of a chunk, and the stride of chunks in image arrays (a tile at a view's border leaves places unused).
pub(super) const CHUNK: usize = (TILE * TILE) as usize;

/// A run of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chunk {
    /// A tile of the view in this slot of the batch's table.
    Tile { slot: u32, x: u32, y: u32 },
    /// Drawn pixels from this index on.
    Drawn { first: u32 },
}

/// All chunks of a batch, in order.
pub(super) fn chunks(resident: &Resident, batch: &Batch) -> Vec<Chunk> {
    if let Some(count) = batch.drawn {
        return (0..count).step_by(CHUNK).map(|first| Chunk::Drawn { first }).collect();
    }
    let mut all = Vec::new();
    for (slot, &sensor) in batch.table.sensors.iter().enumerate() {
        let record = &resident.sensors[sensor as usize];
        for y in (0..record.height).step_by(TILE as usize) {
            for x in (0..record.width).step_by(TILE as usize) {
                all.push(Chunk::Tile {
                    slot: slot as u32,
                    x,
                    y,
                });
            }
        }
    }
    all
}

impl Chunk {
    /// Calls `f(place in the chunk, index in the batch, pixel)` for each pixel in order.
    #[inline(always)]
    pub(super) fn pixels(self, resident: &Resident, batch: &Batch, keys: Keys, mut f: impl FnMut(usize, u32, Pixel)) {
        match self {
            Self::Tile { slot, x, y } => {
                let sensor = batch.table.sensors[slot as usize];
                let record = &resident.sensors[sensor as usize];
                let start = batch.table.starts[slot as usize];
                let mut place = 0;
                for row in y..(y + TILE).min(record.height) {
                    for column in x..(x + TILE).min(record.width) {
                        let index = row * record.width + column;
                        f(place, start + index, Pixel { sensor, index });
                        place += 1;
                    }
                }
            }
            Self::Drawn { first } => {
                let last = (first + CHUNK as u32).min(batch.pixels());
                for (place, index) in (first..last).enumerate() {
                    f(place, index, drawn_pixel(&batch.table, keys.objective, index));
                }
            }
        }
    }
}
