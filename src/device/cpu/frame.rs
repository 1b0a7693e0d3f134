//! The image and the adjoint image, and the loss between them.

use rayon::prelude::*;

use super::chunk::{CHUNK, Chunk, Pixels as Runs, Place, chunks};
use super::passes::{Inputs, Pass};
use super::planes::{BLOCKS, Plane};
use super::tiles::{Comparison, Tiles};
use super::vector::lanes::WIDTH;
use super::vector::level::Kernel;
use super::vector::wide::Wide;
use crate::cluster::Cluster;
use crate::device::{Batch, Keys, LossValue};
use crate::each::EachEntry;
use crate::kernels::loss::{Loss, loss_eval};
use crate::resident::layout::{NO_REFERENCE, SensorRecord, backdrop};
use crate::resident::references::Pixels;
use crate::transport::rays::pixel::{Pixel, linear_weight, random_backdrop};

/// Marks a masked pixel in place of its transmittance.
pub(super) const MASKED: f32 = -1.0;

/// The image that was rendered last and its adjoint image, in the order of the chunks of its batch.
#[derive(Debug, Default)]
pub(super) struct Frame {
    batch: Batch,
    keys: Option<Keys>,
    layout: Layout,
}

/// Image and adjoint image as passes write and read them.
#[derive(Debug)]
enum Layout {
    Chunks {
        image: Vec<[f32; 4]>,
        adjoint: Vec<[f32; 3]>,
    },
    Tiles(Tiles),
}

impl Default for Layout {
    fn default() -> Self {
        Self::Chunks {
            image: Vec::new(),
            adjoint: Vec::new(),
        }
    }
}

impl Frame {
    /// The batch of the last render.
    pub(super) fn rendered(&self) -> &Batch {
        &self.batch
    }

    /// Remembers batch and keys of a render.
    pub(super) fn note(&mut self, pass: Pass) {
        self.batch.clone_from(pass.batch);
        self.keys = Some(pass.keys);
    }

    /// Drops image and adjoint image before a pass that leaves none.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// An image of zeros for this many chunks.
    pub(super) fn begin(&mut self, chunks: usize) -> &mut [[f32; 4]] {
        self.begin_again(chunks).0
    }

    /// [`Self::begin`], and the adjoint image as it was.
    pub(super) fn begin_again(&mut self, chunks: usize) -> (&mut [[f32; 4]], &[[f32; 3]]) {
        if !matches!(self.layout, Layout::Chunks { .. }) {
            self.layout = Layout::default();
        }
        let Layout::Chunks { image, adjoint } = &mut self.layout else {
            unreachable!("the layout is that of chunks")
        };
        image.resize(chunks * CHUNK, [0.0; 4]);
        image.fill([0.0; 4]);
        (image, adjoint)
    }

    /// The image chunk by chunk, to be added to; empty where it is in tiles.
    pub(super) fn image_mut(&mut self) -> &mut [[f32; 4]] {
        match &mut self.layout {
            Layout::Chunks { image, .. } => image,
            Layout::Tiles(_) => &mut [],
        }
    }

    /// The adjoint image chunk by chunk; empty where it is in tiles.
    pub(super) fn adjoint(&self) -> &[[f32; 3]] {
        match &self.layout {
            Layout::Chunks { adjoint, .. } => adjoint,
            Layout::Tiles(_) => &[],
        }
    }

    /// The tiles of a picture that is rendered tile by tile.
    pub(super) fn tiles_mut(&mut self) -> &mut Tiles {
        if !matches!(self.layout, Layout::Tiles(_)) {
            self.layout = Layout::Tiles(Tiles::default());
        }
        let Layout::Tiles(tiles) = &mut self.layout else {
            unreachable!("the layout is that of tiles")
        };
        tiles
    }

    /// Completes the image by the chunks that other ranks have rendered.
    pub(super) fn assemble(&mut self, cluster: Cluster) {
        match &mut self.layout {
            Layout::Chunks { image, .. } => cluster.assemble(image, CHUNK),
            Layout::Tiles(tiles) => cluster.assemble(&mut tiles.image, 1),
        }
    }

    /// The image in the batch's order; empty before the first render and after a pass that leaves none.
    pub(super) fn in_order(&self, sensors: &[SensorRecord]) -> Vec<[f32; 4]> {
        let Some(keys) = self.keys else { return Vec::new() };
        let image = match &self.layout {
            Layout::Tiles(tiles) => return tiles.in_order(sensors, &self.batch, keys),
            Layout::Chunks { image, .. } => image,
        };
        let mut ordered = vec![[0.0; 4]; self.batch.pixels() as usize];
        for (i, chunk) in chunks(sensors, &self.batch).into_iter().enumerate() {
            for Place { place, index, .. } in chunk.pixels(sensors, &self.batch, keys) {
                ordered[index as usize] = image[i * CHUNK + place];
            }
        }
        ordered
    }

    /// Fills the adjoint image with the losses' slopes over 3 times the number of pixels.
    pub(super) fn compare(&mut self, inputs: &Inputs, batch: &Batch, keys: Keys, loss: Loss) -> LossValue {
        let loss = match loss {
            Loss::NormalizedL2 => self.normalized(inputs, batch, keys),
            other => other,
        };
        let (image, adjoint) = match &mut self.layout {
            Layout::Tiles(tiles) => {
                let comparison = Comparison::new(inputs, batch, keys, loss);
                return comparison.value(&tiles.compare(&comparison));
            }
            Layout::Chunks { image, adjoint } => (image, adjoint),
        };
        let scale = 1.0 / (3.0 * batch.pixels() as f32);
        let chunks = chunks(&inputs.sensors, batch);
        adjoint.resize(image.len(), [0.0; 3]);
        let compared = adjoint.par_chunks_mut(CHUNK).zip(image.par_chunks(CHUNK)).zip(&chunks);
        let mut partial: Vec<[f64; 3]> = compared
            .enumerate()
            .map(|(i, ((adjoint, image), &chunk))| {
                if !inputs.cluster.owns(i) {
                    return [0.0; 3];
                }
                inputs.level.run(CompareChunk {
                    inputs,
                    batch,
                    keys,
                    loss,
                    scale,
                    chunk,
                    image,
                    adjoint,
                })
            })
            .collect();
        inputs.cluster.assemble(&mut partial, 1);
        let total = partial
            .iter()
            .fold([0f64; 3], |t, p| [t[0] + p[0], t[1] + p[1], t[2] + p[2]]);
        let pixels = f64::from(batch.pixels());
        LossValue {
            loss: total[0] / (3.0 * pixels),
            mse: total[1] / (3.0 * (pixels - total[2]).max(1.0)),
            masked: total[2] as u64,
        }
    }

    /// The loss that divides image and reference by their means: sums over the pixels that are not masked, over the number of all
    /// pixels. An image whose mean is zero is not divided.
    fn normalized(&self, inputs: &Inputs, batch: &Batch, keys: Keys) -> Loss {
        let chunks = chunks(&inputs.sensors, batch);
        let image = match &self.layout {
            Layout::Chunks { image, .. } => Some(image),
            Layout::Tiles(_) => None,
        };
        let tiled = match &self.layout {
            Layout::Tiles(tiles) => tiles.in_order(&inputs.sensors, batch, keys),
            Layout::Chunks { .. } => Vec::new(),
        };
        let sums = |(i, chunk): (usize, &Chunk)| {
            let mut sums = [0f64; 2];
            if !inputs.cluster.owns(i) {
                return sums;
            }
            for Place { place, index, pixel } in chunk.pixels(&inputs.sensors, batch, keys) {
                let seen = image.map_or_else(|| tiled[index as usize], |image| image[i * CHUNK + place]);
                if is_masked(seen) {
                    continue;
                }
                let sensor = &inputs.sensors[pixel.sensor as usize];
                let wanted = reference(&inputs.references, sensor, keys, pixel);
                for c in 0..3 {
                    sums[0] += f64::from(seen[c]);
                    sums[1] += f64::from(wanted[c]);
                }
            }
            sums
        };
        let mut partial: Vec<[f64; 2]> = chunks.par_iter().enumerate().map(sums).collect();
        inputs.cluster.assemble(&mut partial, 1);
        let count = 3.0 * f64::from(batch.pixels());
        let [image, reference] = [0, 1].each(|k: usize| {
            let mean = partial.iter().map(|p| p[k]).sum::<f64>() / count;
            if mean == 0.0 { 1.0 } else { (1.0 / mean) as f32 }
        });
        Loss::ScaledL2 { image, reference }
    }

    /// Sets the adjoint image from one in the batch's order; it stays zero at masked pixels.
    pub(super) fn set_adjoint(&mut self, sensors: &[SensorRecord], batch: &Batch, keys: Keys, adjoint: &[[f32; 3]]) {
        let (image, of_chunks) = match &mut self.layout {
            Layout::Tiles(tiles) => return tiles.set_adjoint(sensors, batch, keys, adjoint),
            Layout::Chunks { image, adjoint } => (image, adjoint),
        };
        let chunks = chunks(sensors, batch);
        of_chunks.clear();
        of_chunks.resize(chunks.len() * CHUNK, [0.0; 3]);
        for (i, chunk) in chunks.into_iter().enumerate() {
            for Place { place, index, .. } in chunk.pixels(sensors, batch, keys) {
                if image[i * CHUNK + place][3] >= 0.0 {
                    of_chunks[i * CHUNK + place] = adjoint[index as usize];
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.layout {
            Layout::Chunks { image, adjoint } => size_of_val(&image[..]) + size_of_val(&adjoint[..]),
            Layout::Tiles(tiles) => tiles.bytes(),
        }
    }
}

/// A plane for each colour channel, in the order of the places of a chunk.
type Channels = [Plane<f32>; 3];

/// The loss of a chunk, sixteen pixels at a time.
struct CompareChunk<'a> {
    inputs: &'a Inputs,
    batch: &'a Batch,
    keys: Keys,
    loss: Loss,
    /// Factor on the slopes.
    scale: f32,
    chunk: Chunk,
    image: &'a [[f32; 4]],
    adjoint: &'a mut [[f32; 3]],
}

impl Kernel for CompareChunk<'_> {
    /// Sums of the loss and of the squared difference, and the number of masked pixels.
    type Output = [f64; 3];

    #[inline(always)]
    fn run<W: Wide>(self) -> [f64; 3] {
        // Values and references of masked pixels and of unused places stay zero, so that their loss is zero.
        let (mut x, mut r) = ([Plane::of(0.0); 3], [Plane::of(0.0); 3]);
        let mut slopes = [Plane::of(0.0); 3];
        let masked = match self.chunk.runs(&self.inputs.sensors, self.batch, self.keys) {
            // Compilers vectorise loops whose length is a constant.
            (runs, RUN) => self.stage(runs, RUN, &mut x, &mut r),
            (runs, length) => self.stage(runs, length, &mut x, &mut r),
        };
        let (scale, image, out) = (self.scale, x.each_ref(), &mut slopes);
        // One loop for each loss, so that no loop branches on the loss for every pixel.
        let [value, square] = match self.loss {
            Loss::L1 => compared(Loss::L1, scale, image, &r, None, out),
            Loss::L2 => compared(Loss::L2, scale, image, &r, None, out),
            Loss::Huber { delta } => compared(Loss::Huber { delta }, scale, image, &r, None, out),
            Loss::RelativeL2 => compared(Loss::RelativeL2, scale, image, &r, None, out),
            Loss::LogL1 => compared(Loss::LogL1, scale, image, &r, None, out),
            Loss::NormalizedL2 | Loss::ScaledL2 { .. } => compared(self.loss, scale, image, &r, None, out),
            Loss::Linear { seed } => {
                let weights = weights(
                    self.image,
                    self.chunk.pixels(&self.inputs.sensors, self.batch, self.keys),
                    seed,
                );
                compared(Loss::Linear { seed }, scale, image, &r, Some(&weights), out)
            }
        };
        for (i, adjoint) in self.adjoint.iter_mut().enumerate() {
            *adjoint = slopes.each_ref().each(|plane| plane.pixel(i));
        }
        [value, square, f64::from(masked)]
    }
}

/// Sums of the loss and of the squared difference over planes; writes the slopes, `scale` times.
#[inline(always)]
pub(super) fn compared(
    loss: Loss,
    scale: f32,
    x: [&Plane<f32>; 3],
    r: &Channels,
    weights: Option<&Channels>,
    slopes: &mut Channels,
) -> [f64; 2] {
    let (mut values, mut squares) = (Plane::of(0.0), Plane::of(0.0));
    for block in 0..BLOCKS {
        let (mut value, mut square) = ([0f32; WIDTH], [0f32; WIDTH]);
        for c in 0..3 {
            let mut slope = [0f32; WIDTH];
            for l in 0..WIDTH {
                let weight = weights.map_or(0.0, |w| w[c][block][l]);
                let [x, r] = [x[c][block][l], r[c][block][l]];
                let (of_channel, by_x) = loss_eval(loss, x, r, weight);
                value[l] += of_channel;
                square[l] += (x - r) * (x - r);
                slope[l] = by_x * scale;
            }
            slopes[c][block] = slope;
        }
        (values[block], squares[block]) = (value, square);
    }
    [sum(&values), sum(&squares)]
}

/// The sum of a plane, first within each lane, then over lanes. It is a loop of its own so that compilers vectorise it.
#[inline(always)]
fn sum(plane: &Plane<f32>) -> f64 {
    let mut lanes = [0f64; WIDTH];
    for block in 0..BLOCKS {
        for l in 0..WIDTH {
            lanes[l] += f64::from(plane[block][l]);
        }
    }
    let mut total = 0.0;
    for l in 0..WIDTH {
        total += lanes[l];
    }
    total
}

/// The weights of [`Loss::Linear`], none for masked pixels.
fn weights(image: &[[f32; 4]], pixels: Runs, seed: u32) -> Box<Channels> {
    let mut weights = Box::new([Plane::of(0.0); 3]);
    for Place { place, index, .. } in pixels {
        for c in 0..3 {
            if !is_masked(image[place]) {
                *weights[c].pixel_mut(place) = linear_weight(seed, index, c as u32);
            }
        }
    }
    weights
}

/// Whether a pixel of an image is masked.
#[inline(always)]
fn is_masked([_, _, _, transmittance]: [f32; 4]) -> bool {
    transmittance < 0.0
}

/// Pixels of a run of a whole tile.
const RUN: usize = 8;

impl CompareChunk<'_> {
    /// Copies the channels of render and reference into planes, and counts masked pixels.
    #[inline(always)]
    fn stage(&self, runs: Runs, length: usize, x: &mut Channels, r: &mut Channels) -> u32 {
        let mut masked = 0;
        for Place { place, pixel, .. } in runs {
            let seen = &self.image[place..place + length];
            self.reference(pixel, place..place + length, r);
            for i in 0..length {
                for c in 0..3 {
                    *x[c].pixel_mut(place + i) = seen[i][c];
                }
            }
            let mut has_masked = false;
            for i in 0..length {
                has_masked |= is_masked(seen[i]);
            }
            if !has_masked {
                continue;
            }
            for i in (0..length).filter(|&i| is_masked(seen[i])) {
                masked += 1;
                for c in 0..3 {
                    *x[c].pixel_mut(place + i) = 0.0;
                    *r[c].pixel_mut(place + i) = 0.0;
                }
            }
        }
        masked
    }

    /// Writes the references of the run of pixels that begins with `first` into the planes `r`.
    #[inline(always)]
    fn reference(&self, first: Pixel, places: std::ops::Range<usize>, r: &mut Channels) {
        let sensor = &self.inputs.sensors[first.sensor as usize];
        let count = places.len();
        let begin = (sensor.first_pixel.wrapping_add(first.index)) as usize;
        let is_plain = sensor.first_pixel != NO_REFERENCE && sensor.backdrop == backdrop::OPAQUE;
        // One loop for each kind of references, so that compilers vectorise it.
        match &self.inputs.references {
            Pixels::Float(data) if is_plain => {
                let data = &data[begin..begin + count];
                for i in 0..count {
                    for c in 0..3 {
                        *r[c].pixel_mut(places.start + i) = data[i][c];
                    }
                }
                return;
            }
            Pixels::Unorm8(data) if is_plain => {
                let data = &data[begin..begin + count];
                for i in 0..count {
                    for c in 0..3 {
                        *r[c].pixel_mut(places.start + i) = (data[i] >> (8 * c) & 255) as f32 * (1.0 / 255.0);
                    }
                }
                return;
            }
            Pixels::Constant(of) if is_plain => {
                for i in 0..count {
                    for c in 0..3 {
                        *r[c].pixel_mut(places.start + i) = of[c];
                    }
                }
                return;
            }
            _ => {}
        }
        for (i, place) in places.enumerate() {
            let index = first.index + i as u32;
            let of = reference(&self.inputs.references, sensor, self.keys, Pixel { index, ..first });
            for c in 0..3 {
                *r[c].pixel_mut(place) = of[c];
            }
        }
    }
}

/// A pixel's reference over its backdrop; black if the sensor has no reference.
#[inline(always)]
pub(super) fn reference(pixels: &Pixels, sensor: &SensorRecord, keys: Keys, pixel: Pixel) -> [f32; 3] {
    if sensor.first_pixel == NO_REFERENCE {
        return [0.0; 3];
    }
    let [r, g, b, alpha] = pixels.get(sensor.first_pixel + pixel.index);
    let behind = match sensor.backdrop {
        backdrop::OPAQUE => return [r, g, b],
        backdrop::COLOR => [
            sensor.backdrop_color[0],
            sensor.backdrop_color[1],
            sensor.backdrop_color[2],
        ],
        _ => random_backdrop(keys.objective, pixel),
    };
    let over = |color: f32, behind: f32| color * alpha + behind * (1.0 - alpha);
    [over(r, behind[0]), over(g, behind[1]), over(b, behind[2])]
}
