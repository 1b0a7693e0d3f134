//! How a batch is cut: into chunks of a fixed number of pixels, whole views by tiles, so that neighbouring rays run
//! together and nothing depends on the number of threads.

use crate::device::{Batch, Keys};
use crate::each::EachEntry;
use crate::resident::layout::SensorRecord;
use crate::transport::rays::pixel::{Pixel, drawn_pixel};

/// Edge of a tile of a view.
const TILE: u32 = 16;

/// Pixels of a chunk, and the stride of chunks in image arrays (a tile at a view's border leaves places unused).
pub(super) const CHUNK: usize = (TILE * TILE) as usize;

/// The place in its chunk of a tile's pixel at `column` and `row`; `columns` × `rows` pixels of the tile lie in the picture.
#[inline(always)]
pub(super) fn place_in_tile(column: usize, row: usize, [columns, rows]: [usize; 2]) -> usize {
    let (edge, block) = (TILE as usize, BLOCK as usize);
    if columns * rows != CHUNK {
        return row * columns + column;
    }
    let blocks = row / block * (edge / block) + column / block;
    blocks * block * block + row % block * block + column % block
}

/// The index of a view's pixel in image arrays, counted from the view's first chunk.
#[inline(always)]
pub(super) fn place_in_view([x, y]: [u32; 2], [width, height]: [u32; 2]) -> usize {
    let [across, down] = [x / TILE, y / TILE];
    let rest = [(width, across), (height, down)].each(|(side, tile)| (side - tile * TILE).min(TILE) as usize);
    let chunk = down * width.div_ceil(TILE) + across;
    chunk as usize * CHUNK + place_in_tile((x % TILE) as usize, (y % TILE) as usize, rest)
}

/// A run of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chunk {
    /// A tile of the view in this slot of the batch's table.
    Tile { slot: u32, x: u32, y: u32 },
    /// Drawn pixels from this index on.
    Drawn { first: u32 },
}

/// All chunks of a batch, in order.
pub(super) fn chunks(sensors: &[SensorRecord], batch: &Batch) -> Vec<Chunk> {
    if let Some(count) = batch.drawn {
        return (0..count).step_by(CHUNK).map(|first| Chunk::Drawn { first }).collect();
    }
    let mut all = Vec::new();
    for (slot, &sensor) in batch.table.sensors.iter().enumerate() {
        let record = &sensors[sensor as usize];
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
    /// The chunk's pixels in order.
    #[inline(always)]
    pub(super) fn pixels<'a>(self, sensors: &[SensorRecord], batch: &'a Batch, keys: Keys) -> Pixels<'a> {
        let (width, count) = match self {
            Self::Tile { slot, x, y } => {
                let record = &sensors[batch.table.sensors[slot as usize] as usize];
                let width = TILE.min(record.width - x);
                (record.width, width * TILE.min(record.height - y))
            }
            Self::Drawn { first } => (0, (CHUNK as u32).min(batch.pixels() - first)),
        };
        Pixels {
            chunk: self,
            batch,
            keys,
            width,
            count,
            place: 0,
            step: 1,
        }
    }

    /// The chunk in runs of consecutive pixels: an iterator over the first pixel of each run, and the length of all runs. Along a
    /// run, place, index in the batch and index in the view each grow by one.
    #[inline(always)]
    pub(super) fn runs<'a>(self, sensors: &[SensorRecord], batch: &'a Batch, keys: Keys) -> (Pixels<'a>, usize) {
        let mut pixels = self.pixels(sensors, batch, keys);
        pixels.step = match self {
            Self::Tile { .. } if pixels.count as usize == CHUNK => BLOCK,
            Self::Tile { x, .. } => TILE.min(pixels.width - x),
            Self::Drawn { .. } => 1,
        };
        let length = pixels.step as usize;
        (pixels, length)
    }
}

/// A pixel of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its place in the chunk.
    pub(super) place: usize,
    /// Its index in the batch.
    pub(super) index: u32,
    pub(super) pixel: Pixel,
}

/// Iterates over a chunk. A plain iterator, because a closure handed to a function is not compiled for the vector level
/// of the kernel that it stands in.
#[derive(Debug)]
pub(super) struct Pixels<'a> {
    chunk: Chunk,
    batch: &'a Batch,
    keys: Keys,
    /// Width of the view of a tile.
    width: u32,
    count: u32,
    place: u32,
    /// Places from one pixel that is iterated over to the next.
    step: u32,
}

/// Edge in pixels of the blocks in which a whole tile is traversed: two packets of a radiance field each.
const BLOCK: u32 = 8;

impl Pixels<'_> {
    /// Column and row of a place: block by block in whole tiles, row by row in those that a view's border cuts.
    #[inline(always)]
    fn in_tile(&self, place: u32, columns: u32) -> (u32, u32) {
        if self.count as usize != CHUNK {
            return (place % columns, place / columns);
        }
        let (block, within) = (place / (BLOCK * BLOCK), place % (BLOCK * BLOCK));
        let across = TILE / BLOCK;
        (
            block % across * BLOCK + within % BLOCK,
            block / across * BLOCK + within / BLOCK,
        )
    }
}

impl Iterator for Pixels<'_> {
    type Item = Place;

    #[inline(always)]
    fn next(&mut self) -> Option<Place> {
        if self.place >= self.count {
            return None;
        }
        let place = self.place;
        self.place += self.step;
        let (index, pixel) = match self.chunk {
            Chunk::Tile { slot, x, y } => {
                let (column, row) = self.in_tile(place, TILE.min(self.width - x));
                let index = (y + row) * self.width + x + column;
                let sensor = self.batch.table.sensors[slot as usize];
                (self.batch.table.starts[slot as usize] + index, Pixel { sensor, index })
            }
            Chunk::Drawn { first } => {
                let index = first + place;
                (index, drawn_pixel(&self.batch.table, self.keys.objective, index))
            }
        };
        Some(Place {
            place: place as usize,
            index,
            pixel,
        })
    }
}
