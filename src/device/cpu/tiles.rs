//! The image, the adjoint image and the loss of a picture that is rendered tile by tile. Each channel of a tile is a plane
//! (structure of arrays), which passes over tiles load and store as vectors.

use rayon::prelude::*;

use super::chunk::{Chunk, Place, chunks};
use super::frame::{compared, reference};
use super::passes::Inputs;
use super::planes::{BLOCKS, EDGE, Plane, TILE, ones, place};
use super::vector::lanes::Lanes;
use super::vector::level::Kernel;
use super::vector::wide::Wide;
use crate::device::{Batch, Keys, LossValue};
use crate::each::EachEntry;
use crate::kernels::loss::Loss;
use crate::resident::layout::{NO_REFERENCE, SensorRecord, backdrop};
use crate::resident::references::Pixels;
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::rays::pixel::{Pixel, linear_weight};

/// Colour and transmittance of a tile.
pub(super) type Image = [Plane<f32>; 4];

/// The loss's derivatives by the colours of a tile.
pub(super) type Adjoint = [Plane<f32>; 3];

/// Tiles in the order of the chunks of a batch of whole views.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    /// Zero beside the picture.
    pub(super) image: Vec<Image>,
    /// Zero beside the picture.
    pub(super) adjoint: Vec<Adjoint>,
}

impl Tiles {
    /// The image, resized to so many tiles; it still holds the last picture, to be overwritten.
    pub(super) fn room(&mut self, tiles: usize) -> &mut [Image] {
        self.image.resize(tiles, [Plane::of(0.0); 4]);
        &mut self.image
    }

    /// The image in the batch's order.
    pub(super) fn in_order(&self, sensors: &[SensorRecord], batch: &Batch, keys: Keys) -> Vec<[f32; 4]> {
        let mut ordered = vec![[0.0; 4]; batch.pixels() as usize];
        for (planes, chunk) in self.image.iter().zip(chunks(sensors, batch)) {
            for Place { index, pixel, .. } in chunk.pixels(sensors, batch, keys) {
                let (block, lane) = place_of(sensors, pixel);
                ordered[index as usize] = [0, 1, 2, 3].each(|c| planes[c][block][lane]);
            }
        }
        ordered
    }

    /// Sets the adjoint image from one in the batch's order.
    pub(super) fn set_adjoint(&mut self, sensors: &[SensorRecord], batch: &Batch, keys: Keys, adjoint: &[[f32; 3]]) {
        self.adjoint.clear();
        self.adjoint.resize(self.image.len(), [Plane::of(0.0); 3]);
        for (planes, chunk) in self.adjoint.iter_mut().zip(chunks(sensors, batch)) {
            for Place { index, pixel, .. } in chunk.pixels(sensors, batch, keys) {
                let (block, lane) = place_of(sensors, pixel);
                for c in 0..3 {
                    planes[c][block][lane] = adjoint[index as usize][c];
                }
            }
        }
    }

    /// Fills the adjoint image with the loss's slopes; returns each tile's sums of the loss and of the squared difference.
    pub(super) fn compare(&mut self, comparison: &Comparison) -> Vec<[f64; 2]> {
        self.adjoint.resize(self.image.len(), [Plane::of(0.0); 3]);
        let cluster = comparison.inputs.cluster;
        let tiles = self.adjoint.par_iter_mut().zip(&self.image).enumerate();
        let mut partial: Vec<[f64; 2]> = tiles
            .with_min_len(TILES)
            .map(|(i, (adjoint, image))| match cluster.owns(i) {
                true => comparison.tile(i, image, adjoint),
                false => [0.0; 2],
            })
            .collect();
        cluster.assemble(&mut partial, 1);
        partial
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.image[..]) + size_of_val(&self.adjoint[..])
    }
}

/// Least number of tiles that a thread compares at a time.
const TILES: usize = 16;

/// Block and lane of a pixel of a view.
fn place_of(sensors: &[SensorRecord], pixel: Pixel) -> (usize, usize) {
    let width = sensors[pixel.sensor as usize].width;
    let [x, y] = [pixel.index % width, pixel.index / width].each(|at| at as usize % TILE);
    place(x, y)
}

/// A loss between the tiles of a batch and their references.
pub(super) struct Comparison<'a> {
    inputs: &'a Inputs,
    batch: &'a Batch,
    keys: Keys,
    loss: Loss,
    /// Factor on the slopes.
    scale: f32,
    chunks: Vec<Chunk>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(inputs: &'a Inputs, batch: &'a Batch, keys: Keys, loss: Loss) -> Self {
        Self {
            inputs,
            batch,
            keys,
            loss,
            scale: 1.0 / (3.0 * batch.pixels() as f32),
            chunks: chunks(&inputs.sensors, batch),
        }
    }

    /// Prefetches a tile's reference pixels, whose rows lie far apart in memory.
    pub(super) fn bring_references(&self, tile: usize) {
        let Chunk::Tile { slot, x, y } = self.chunks[tile] else {
            return;
        };
        let of = Tile::new(&self.inputs.sensors, self.batch.table.sensors[slot as usize], [x, y]);
        match &self.inputs.references {
            Pixels::Float(data) => of.bring(data),
            Pixels::Unorm8(data) => of.bring(data),
            _ => {}
        }
    }

    /// Fills a tile's adjoint image with the loss's slopes; returns its sums of the loss and of the squared difference.
    pub(super) fn tile(&self, tile: usize, image: &Image, adjoint: &mut Adjoint) -> [f64; 2] {
        let Self {
            inputs,
            batch,
            keys,
            loss,
            scale,
            ..
        } = *self;
        inputs.level.run(CompareTile {
            inputs,
            batch,
            keys,
            loss,
            scale,
            chunk: self.chunks[tile],
            image,
            adjoint,
        })
    }

    /// The loss of the batch, from the sums of its tiles in their order.
    pub(super) fn value(&self, of_tiles: &[[f64; 2]]) -> LossValue {
        let count = 3.0 * f64::from(self.batch.pixels());
        let [loss, mse] = [0, 1].each(|i: usize| of_tiles.iter().map(|sums| sums[i]).sum::<f64>() / count);
        LossValue { loss, mse, masked: 0 }
    }
}

/// The loss of a tile.
struct CompareTile<'a> {
    inputs: &'a Inputs,
    batch: &'a Batch,
    keys: Keys,
    loss: Loss,
    /// Factor on the slopes.
    scale: f32,
    chunk: Chunk,
    image: &'a [Plane<f32>; 4],
    adjoint: &'a mut [Plane<f32>; 3],
}

impl Kernel for CompareTile<'_> {
    /// Sums of the loss and of the squared difference.
    type Output = [f64; 2];

    #[inline(always)]
    fn run<W: Wide>(self) -> [f64; 2] {
        let Chunk::Tile { slot, x, y } = self.chunk else {
            return [0.0; 2];
        };
        let of = Tile::new(&self.inputs.sensors, self.batch.table.sensors[slot as usize], [x, y]);
        // Outside the picture both image and reference are zero, and so is the loss.
        let mut r = [Plane::of(0.0); 3];
        let is_plain = of.record.first_pixel != NO_REFERENCE && of.record.backdrop == backdrop::OPAQUE;
        match &self.inputs.references {
            Pixels::Constant(color) if is_plain => {
                let is_inside = ones(of.inside);
                for c in 0..3 {
                    for block in 0..BLOCKS {
                        let of_block = W::Lanes::load(&is_inside[block]) * W::Lanes::splat(color[c]);
                        of_block.store(&mut r[c][block]);
                    }
                }
            }
            references => {
                let references = if is_plain { Some(references) } else { None };
                // Compilers vectorise loops whose length is a constant.
                match of.inside {
                    [TILE, TILE] => self.stage(&of, [TILE; 2], references, &mut r),
                    inside => self.stage(&of, inside, references, &mut r),
                }
            }
        }
        let [red, green, blue, _] = self.image;
        let (scale, image, out) = (self.scale, [red, green, blue], self.adjoint);
        // One loop for each loss, so that no loop branches on the loss for every pixel.
        match self.loss {
            Loss::L1 => compared(Loss::L1, scale, image, &r, None, out),
            Loss::L2 => compared(Loss::L2, scale, image, &r, None, out),
            Loss::Huber { delta } => compared(Loss::Huber { delta }, scale, image, &r, None, out),
            Loss::RelativeL2 => compared(Loss::RelativeL2, scale, image, &r, None, out),
            Loss::LogL1 => compared(Loss::LogL1, scale, image, &r, None, out),
            Loss::NormalizedL2 | Loss::ScaledL2 { .. } => compared(self.loss, scale, image, &r, None, out),
            Loss::Linear { seed } => {
                let mut weights = Box::new([Plane::of(0.0); 3]);
                for Place { index, pixel, .. } in self.chunk.pixels(&self.inputs.sensors, self.batch, self.keys) {
                    let (block, lane) = place_of(&self.inputs.sensors, pixel);
                    for c in 0..3 {
                        weights[c][block][lane] = linear_weight(seed, index, c as u32);
                    }
                }
                compared(Loss::Linear { seed }, scale, image, &r, Some(&weights), out)
            }
        }
    }
}

/// A tile of a view.
struct Tile<'a> {
    sensor: u32,
    record: &'a SensorRecord,
    /// Index of its first pixel in the view.
    first: usize,
    /// Number of its columns and rows that lie in the picture.
    inside: [usize; 2],
}

impl<'a> Tile<'a> {
    #[inline(always)]
    fn new(sensors: &'a [SensorRecord], sensor: u32, [x, y]: [u32; 2]) -> Self {
        let record = &sensors[sensor as usize];
        Self {
            sensor,
            record,
            first: (y * record.width + x) as usize,
            inside: [
                TILE.min((record.width - x) as usize),
                TILE.min((record.height - y) as usize),
            ],
        }
    }
}

impl Tile<'_> {
    /// Prefetches the tile's pixels in `data`, the references of all views.
    fn bring<T>(&self, data: &[T]) {
        if self.record.first_pixel == NO_REFERENCE {
            return;
        }
        let (line, width) = (64 / size_of::<T>(), self.record.width as usize);
        let first = self.record.first_pixel as usize + self.first;
        for row in 0..self.inside[1] {
            for column in (0..self.inside[0]).step_by(line) {
                prefetch_line(data.as_ptr().wrapping_add(first + row * width + column));
            }
        }
    }
}

impl CompareTile<'_> {
    /// Writes the references of a tile's pixels into the planes `r`; `plain` are references without a backdrop.
    #[inline(always)]
    fn stage(&self, of: &Tile, [columns, rows]: [usize; 2], plain: Option<&Pixels>, r: &mut [Plane<f32>; 3]) {
        for row in 0..rows {
            let begin = of.first + row * of.record.width as usize;
            for column in (0..columns).step_by(EDGE) {
                let (block, lane) = place(column, row);
                let (begin, count) = (begin + column, EDGE.min(columns - column));
                let stored = of.record.first_pixel.wrapping_add(begin as u32) as usize;
                match plain {
                    Some(Pixels::Float(data)) => {
                        let data = &data[stored..stored + count];
                        for i in 0..count {
                            for c in 0..3 {
                                r[c][block][lane + i] = data[i][c];
                            }
                        }
                    }
                    Some(Pixels::Unorm8(data)) => {
                        let data = &data[stored..stored + count];
                        for i in 0..count {
                            for c in 0..3 {
                                r[c][block][lane + i] = (data[i] >> (8 * c) & 255) as f32 * (1.0 / 255.0);
                            }
                        }
                    }
                    _ => {
                        for i in 0..count {
                            let pixel = Pixel {
                                sensor: of.sensor,
                                index: (begin + i) as u32,
                            };
                            let color = reference(&self.inputs.references, of.record, self.keys, pixel);
                            for c in 0..3 {
                                r[c][block][lane + i] = color[c];
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::vector::level::Level;
    use crate::kernels::loss::loss_eval;
    use crate::params::ParamSet;
    use crate::resident::layout::SceneRecord;
    use crate::transport::rays::pixel::PixelTable;
    use crate::transport::rays::random::test_uniform;
    use bytemuck::Zeroable;

    const KEYS: Keys = Keys {
        objective: [1, 2, 3, 4],
        pass: [5, 6, 7, 8],
    };

    /// Two views, one after the other in memory, of sizes that tiles do not divide.
    fn inputs(level: Level, references: Pixels, backdrop: u32) -> (Inputs, Batch) {
        let mut first = 0;
        let sensors = [[37, 21], [16, 33]].map(|[width, height]| {
            let mut sensor = SensorRecord::zeroed();
            (sensor.width, sensor.height, sensor.first_pixel) = (width, height, first);
            (sensor.backdrop, sensor.backdrop_color) = (backdrop, [0.3, 0.6, 0.9, 0.0]);
            first += width * height;
            sensor
        });
        let table = PixelTable::new(&sensors, &[0, 1]).unwrap();
        let inputs = Inputs {
            level,
            cluster: crate::cluster::Cluster::single(),
            tape_limit: 0,
            scene: SceneRecord::zeroed(),
            sensors: sensors.to_vec(),
            references,
            emitter: None,
            params: ParamSet::default(),
            gauge: crate::device::gauge::Gauge::default(),
        };
        (inputs, Batch { table, drawn: None })
    }

    /// An image of these views, and its pixels in the batch's order.
    fn image(inputs: &Inputs, batch: &Batch) -> (Tiles, Vec<[f32; 4]>) {
        let mut tiles = Tiles::default();
        let chunks = chunks(&inputs.sensors, batch);
        let image = tiles.room(chunks.len());
        for (planes, chunk) in image.iter_mut().zip(chunks) {
            for Place { index, pixel, .. } in chunk.pixels(&inputs.sensors, batch, KEYS) {
                let (block, lane) = place_of(&inputs.sensors, pixel);
                let color = test_uniform(3, index, 0);
                for c in 0..4 {
                    planes[c][block][lane] = color[c];
                }
            }
        }
        let ordered = tiles.in_order(&inputs.sensors, batch, KEYS);
        (tiles, ordered)
    }

    /// Values and slopes are those of the loss pixel by pixel, for all kinds of references, at the borders of a view, and
    /// with the same bits at every level.
    #[test]
    fn losses_are_those_of_single_pixels() {
        let count = 37 * 21 + 16 * 33;
        let floats = Pixels::Float((0..count).map(|i| test_uniform(4, i, 0)).collect());
        let words = Pixels::Unorm8((0..count).map(|i| i.wrapping_mul(0x9e37_79b9)).collect());
        let constant = Pixels::Constant([0.2, 0.4, 0.6, 1.0]);
        for references in [floats, words, constant] {
            for backdrop in [backdrop::OPAQUE, backdrop::COLOR, backdrop::RANDOM] {
                for loss in [Loss::L1, Loss::L2, Loss::RelativeL2, Loss::Linear { seed: 3 }] {
                    let mut all = Vec::new();
                    for level in Level::up_to(Level::detect()) {
                        let (inputs, batch) = inputs(level, references.clone(), backdrop);
                        let (mut tiles, ordered) = image(&inputs, &batch);
                        let comparison = Comparison::new(&inputs, &batch, KEYS, loss);
                        let value = comparison.value(&tiles.compare(&comparison));
                        let slopes = hold(&inputs, &batch, &tiles, &ordered, loss, value);
                        all.push(([value.loss, value.mse].map(f64::to_bits), slopes));
                    }
                    all.dedup();
                    assert_eq!(all.len(), 1, "{loss:?}");
                }
            }
        }
    }

    /// Compares loss and adjoint image with the loss of single pixels; returns the bits of the slopes.
    fn hold(
        inputs: &Inputs,
        batch: &Batch,
        tiles: &Tiles,
        ordered: &[[f32; 4]],
        loss: Loss,
        found: LossValue,
    ) -> Vec<u32> {
        let count = 3 * ordered.len();
        let scale = 1.0 / count as f32;
        let (mut value, mut square, mut slopes) = (0.0, 0.0, Vec::new());
        let size = |x: f32| f64::from(x.abs());
        let planes = tiles.adjoint.iter().flatten();
        let mut rest: f64 = planes.flat_map(|p| p.0.as_flattened()).map(|x| size(*x)).sum();
        for (planes, chunk) in tiles.adjoint.iter().zip(chunks(&inputs.sensors, batch)) {
            for Place { index, pixel, .. } in chunk.pixels(&inputs.sensors, batch, KEYS) {
                let sensor = &inputs.sensors[pixel.sensor as usize];
                let of = reference(&inputs.references, sensor, KEYS, pixel);
                let (block, lane) = place_of(&inputs.sensors, pixel);
                for c in 0..3 {
                    let weight = match loss {
                        Loss::Linear { seed } => linear_weight(seed, index, c as u32),
                        _ => 0.0,
                    };
                    let x = ordered[index as usize][c];
                    let (one, slope) = loss_eval(loss, x, of[c], weight);
                    value += f64::from(one);
                    square += f64::from(x - of[c]).powi(2);
                    assert_eq!(planes[c][block][lane], scale * slope, "{loss:?}, pixel {index}");
                    slopes.push(planes[c][block][lane].to_bits());
                    rest -= size(planes[c][block][lane]);
                }
            }
        }
        let [value, square] = [value, square].each(|sum| sum / count as f64);
        assert!(
            (found.loss - value).abs() < 3e-7,
            "{loss:?}: {found:?}, expected {value}"
        );
        assert!((found.mse - square).abs() < 3e-7, "{loss:?}");
        assert!(rest.abs() < 1e-9, "{loss:?}: slopes of {rest} beside the picture");
        slopes
    }

    /// Pixels of an adjoint image have the same places in planes as those of the image.
    #[test]
    fn adjoints_stand_where_their_pixels_do() {
        let (inputs, batch) = inputs(Level::Baseline, Pixels::None, 0);
        let (mut tiles, ordered) = image(&inputs, &batch);
        let adjoint: Vec<[f32; 3]> = ordered.iter().map(|&[r, g, b, _]| [r, g, b]).collect();
        tiles.set_adjoint(&inputs.sensors, &batch, KEYS, &adjoint);
        for (adjoint, image) in tiles.adjoint.iter().zip(&tiles.image) {
            assert_eq!(adjoint[..], image[..3]);
        }
    }
}
