//! The passes over a picture of splats: the document's `clearDerivatives`, `computeDerivatives` and `updateBlobs` are
//! `clear_derivatives`, `compute_derivatives` and `update_splats`, and its `imageMain` is `render`.

use rayon::prelude::*;

use super::lists::{Lists, TILE, TileBox};
use super::sums::Record;
use super::tile::{Gather, Replay, TileAdjoint};
use crate::device::cpu::chunk::{CHUNK, place_in_tile};
use crate::device::cpu::frame::Frame;
use crate::device::cpu::memory;
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::shared::SharedSlice;
use crate::device::cpu::update::Updates;
use crate::device::{DeviceError, ReplayStats, Result};
use crate::params::ParamSet;
use crate::resident::splats::{SplatScene, SplatSlots};
use crate::transport::splats::splat::{Parameters, Splat, reach};

/// Records of a round of tiles, unless a single tile has more.
const ROUND: usize = 1 << 17;

/// The part of the machine's memory that lists may take.
const LIST_SHARE: u64 = 4;

/// Splats that a thread takes at a time.
const SPAN: usize = 1024;

/// The passes over a picture of splats.
#[derive(Debug)]
pub(in crate::device::cpu) struct SplatPasses {
    pub(in crate::device::cpu) scene: SplatScene,
    /// What was rendered last, a view an entry.
    views: Vec<View>,
    records: Vec<Record>,
    /// For each splat the sums over all its tiles.
    derivatives: Vec<Record>,
}

/// A picture in pixels, its splats, and which of them reach its tiles.
#[derive(Debug, Default)]
struct View {
    width: usize,
    height: usize,
    splats: Vec<Splat<f32>>,
    /// Half the width and height of each splat's box.
    reach: Vec<[f32; 2]>,
    boxes: Vec<TileBox>,
    lists: Lists,
    /// Entries of its tile's list that each pixel has looked at.
    counts: Vec<[[u32; TILE]; TILE]>,
}

impl View {
    /// Tiles a row and a column.
    fn tiles(&self) -> [usize; 2] {
        [self.width.div_ceil(TILE), self.height.div_ceil(TILE)]
    }

    fn side(&self) -> f32 {
        self.width.max(self.height) as f32
    }

    /// A tile's first pixel, and its columns and rows in the picture.
    fn tile(&self, index: usize) -> ([f32; 2], [usize; 2]) {
        let [across, _] = self.tiles();
        let [x, y] = [index % across * TILE, index / across * TILE];
        let inside = [TILE.min(self.width - x), TILE.min(self.height - y)];
        ([x as f32, y as f32], inside)
    }

    /// Projects all splats and lists them tile by tile.
    fn project(&mut self, slots: &SplatSlots, params: &ParamSet, count: usize) -> Result<()> {
        let [across, down] = self.tiles();
        let side = self.side();
        let read = Reader::new(slots, params);
        self.splats.resize(count, Splat::zero());
        self.reach.resize(count, [0.0; 2]);
        self.boxes.resize(count, TileBox::default());
        let spans = self.splats.par_chunks_mut(SPAN).zip(self.reach.par_chunks_mut(SPAN));
        let spans = spans.zip(self.boxes.par_chunks_mut(SPAN)).enumerate();
        spans.for_each(|(span, ((splats, reaches), boxes))| {
            for i in 0..splats.len() {
                let of = read.splat(span * SPAN + i);
                splats[i] = Splat::project(&of, side);
                let [x, y] = splats[i].center;
                (boxes[i], reaches[i]) = match reach(&of, side) {
                    None => (TileBox::default(), [0.0; 2]),
                    Some([width, height]) => (
                        TileBox {
                            columns: tiles(x, width, across),
                            rows: tiles(y, height, down),
                        },
                        [width, height],
                    ),
                };
            }
        });
        let entries: u64 = self.boxes.iter().map(|b| b.count()).sum();
        let there = memory::physical_bytes().map_or(u64::MAX, |bytes| bytes / LIST_SHARE);
        if entries > u64::from(u32::MAX) || 4 * entries > there {
            return Err(DeviceError::TooLarge(format!(
                "{entries} pairs of a tile and a splat that reaches it are more than there is room for; bound `scale` to \
                 make splats smaller, or take fewer"
            )));
        }
        self.lists.build(&self.boxes, across * down, across);
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.splats[..])
            + size_of_val(&self.reach[..])
            + size_of_val(&self.boxes[..])
            + size_of_val(&self.counts[..])
            + self.lists.bytes()
    }
}

/// The tiles along an axis that hold a pixel's centre no farther than `reach` from `center`, the end excluded.
fn tiles(center: f32, reach: f32, tiles: usize) -> [u16; 2] {
    let last = (tiles * TILE) as f32;
    let first = (center - reach - 0.5).ceil().clamp(0.0, last) as usize / TILE;
    let end = ((center + reach - 0.5).floor() + 1.0).clamp(0.0, last) as usize;
    [first.min(tiles) as u16, end.div_ceil(TILE) as u16]
}

/// The parameters of splats, one by one.
#[derive(Clone, Copy)]
struct Reader<'a> {
    position: &'a [f32],
    scale: &'a [f32],
    rotation: &'a [f32],
    color: &'a [f32],
    opacity: &'a [f32],
}

impl<'a> Reader<'a> {
    fn new(slots: &SplatSlots, params: &'a ParamSet) -> Self {
        let [position, scale, rotation, color, opacity] = slots.all().map(|slot| &params.parameters[slot].values[..]);
        Self {
            position,
            scale,
            rotation,
            color,
            opacity,
        }
    }

    fn splat(&self, i: usize) -> Parameters<f32> {
        Parameters {
            position: [self.position[2 * i], self.position[2 * i + 1]],
            scale: [self.scale[2 * i], self.scale[2 * i + 1]],
            rotation: self.rotation[i],
            color: [self.color[3 * i], self.color[3 * i + 1], self.color[3 * i + 2]],
            opacity: self.opacity[i],
        }
    }
}

impl SplatPasses {
    pub(in crate::device::cpu) fn new(scene: SplatScene) -> Self {
        Self {
            scene,
            views: Vec::new(),
            records: Vec::new(),
            derivatives: Vec::new(),
        }
    }

    /// Renders whole views, tile by tile. The samples of a pixel would all be alike: its centre is looked at.
    pub(in crate::device::cpu) fn render(&mut self, inputs: &Inputs, pass: Pass, frame: &mut Frame) -> Result<()> {
        let sensors = &pass.batch.table.sensors;
        if pass.batch.drawn.is_some() {
            return Err(DeviceError::Unavailable(
                "splats are drawn a tile at a time: look at whole views, not at single pixels".into(),
            ));
        }
        self.views.resize_with(sensors.len(), View::default);
        for (view, &sensor) in self.views.iter_mut().zip(sensors) {
            let record = &inputs.sensors[sensor as usize];
            (view.width, view.height) = (record.width as usize, record.height as usize);
            view.project(&self.scene.slots, &inputs.params, self.scene.count)?;
        }
        let background = background(inputs);
        let tiles: usize = self
            .views
            .iter()
            .map(|view| view.tiles().iter().product::<usize>())
            .sum();
        let mut image = frame.begin(tiles);
        for view in &mut self.views {
            let count = view.tiles().iter().product::<usize>();
            let (here, rest) = image.split_at_mut(count * CHUNK);
            image = rest;
            let mut counts = std::mem::take(&mut view.counts);
            counts.resize(count, [[0; TILE]; TILE]);
            let outputs = here.par_chunks_mut(CHUNK).zip(&mut counts).enumerate();
            outputs.for_each(|(index, (out, counts))| {
                let (origin, [columns, rows]) = view.tile(index);
                let tile = inputs.level.run(Gather {
                    list: view.lists.of(index),
                    splats: &view.splats,
                    reach: &view.reach,
                    origin,
                    rows,
                });
                for row in 0..rows {
                    for column in 0..columns {
                        let t = tile.transmittance[row][column];
                        let color = |c: usize| tile.color[c][row][column] + t * background[c];
                        out[place_in_tile(column, row, [columns, rows])] = [color(0), color(1), color(2), t];
                    }
                }
                *counts = tile.count;
            });
            view.counts = counts;
        }
        Ok(())
    }

    /// Adds the derivatives by all splats and by the background to the gradients.
    pub(in crate::device::cpu) fn backpropagate(
        &mut self,
        inputs: &Inputs,
        frame: &Frame,
        updates: &mut Updates,
    ) -> Result<ReplayStats> {
        let background = background(inputs);
        let mut stats = ReplayStats::default();
        let mut first = 0;
        let mut by_background = [0f64; 3];
        let views = std::mem::take(&mut self.views);
        for view in &views {
            let chunks = view.tiles().iter().product::<usize>();
            let places = first * CHUNK..(first + chunks) * CHUNK;
            let (image, adjoint) = (&frame.image[places.clone()], &frame.adjoint[places]);
            self.clear_derivatives();
            let found = self.compute_derivatives(inputs, view, (image, adjoint), background);
            stats = stats + found.stats;
            for c in 0..3 {
                by_background[c] += found.by_background[c];
            }
            self.update_splats(inputs, view, updates);
            first += chunks;
        }
        self.views = views;
        if let Some(slot) = inputs.emitter.filter(|&slot| !updates.gradients[slot].is_empty()) {
            for c in 0..3 {
                updates.gradients[slot][c] += by_background[c] as f32;
            }
            updates.activity[slot].touch(0..3);
        }
        Ok(stats)
    }

    /// Zeroes the sums of all splats.
    fn clear_derivatives(&mut self) {
        self.derivatives.clear();
        self.derivatives.resize(self.scene.count, Record::default());
    }

    /// Undoes all tiles of a view and sums what they send to each splat.
    fn compute_derivatives(
        &mut self,
        inputs: &Inputs,
        view: &View,
        (image, adjoint): (&[[f32; 4]], &[[f32; 3]]),
        background: [f32; 3],
    ) -> Found {
        let tiles = view.tiles().iter().product::<usize>();
        let mut found = Found::default();
        let mut begin = 0;
        while begin < tiles {
            let starts = &view.lists.starts;
            let base = starts[begin];
            let fits = |end: usize| (starts[end] - base) as usize <= ROUND;
            let mut end = begin + 1;
            while end < tiles && fits(end + 1) {
                end += 1;
            }
            let count = (starts[end] - base) as usize;
            if self.records.len() < count {
                self.records.resize(count, Record::default());
            }
            let records = SharedSlice::new(&mut self.records);
            let of_tiles: Vec<Found> = (begin..end)
                .into_par_iter()
                .map(|index| {
                    let range = (starts[index] - base) as usize..(starts[index + 1] - base) as usize;
                    // SAFETY: every tile's list has records of its own.
                    let records = unsafe { &mut records.get()[range] };
                    let pixels = index * CHUNK..(index + 1) * CHUNK;
                    let (image, adjoint) = (&image[pixels.clone()], &adjoint[pixels]);
                    undo_tile(inputs, view, index, (image, adjoint), background, records)
                })
                .collect();
            found = of_tiles.into_iter().fold(found, Found::with);
            self.sum_records(view, begin..end);
            begin = end;
        }
        found
    }

    /// Adds a round's records to their splats, tile after tile.
    fn sum_records(&mut self, view: &View, tiles: std::ops::Range<usize>) {
        let span = self.scene.count.div_ceil(4 * rayon::current_num_threads()).max(SPAN);
        let (records, base) = (&self.records, view.lists.starts[tiles.start]);
        self.derivatives.par_chunks_mut(span).enumerate().for_each(|(i, sums)| {
            let first = (i * span) as u32;
            for tile in tiles.clone() {
                let list = view.lists.of(tile);
                let at = (view.lists.starts[tile] - base) as usize;
                let begin = list.partition_point(|splat| *splat < first);
                for (entry, splat) in list.iter().enumerate().skip(begin) {
                    match sums.get_mut((splat - first) as usize) {
                        Some(sum) => sum.add(&records[at + entry]),
                        None => break,
                    }
                }
            }
        });
    }

    /// From the sums to the gradients of the parameters, which the optimiser's step takes up.
    fn update_splats(&self, inputs: &Inputs, view: &View, updates: &mut Updates) {
        let slots = &self.scene.slots;
        let side = view.side();
        let read = Reader::new(slots, &inputs.params);
        for slot in slots.all() {
            let len = updates.gradients[slot].len();
            updates.activity[slot].touch(0..len);
        }
        let gradients = updates.gradients.get_disjoint_mut(slots.all());
        let gradients = gradients
            .expect("the slots of a splat's parameters differ")
            .map(|g| SharedSlice::new(g));
        let spans = self.derivatives.par_chunks(SPAN).enumerate();
        spans.for_each(|(span, derivatives)| {
            // SAFETY: each splat is written once, by one thread, in each array.
            let [position, scale, rotation, color, opacity] = [0, 1, 2, 3, 4].map(|i| unsafe { gradients[i].get() });
            for (i, sums) in derivatives.iter().enumerate() {
                let at = span * SPAN + i;
                let by = Splat::project_adjoint(&read.splat(at), side, &sums.adjoint(&view.splats[at]));
                add(position, 2 * at, &by.position);
                add(scale, 2 * at, &by.scale);
                add(rotation, at, &[by.rotation]);
                add(color, 3 * at, &by.color);
                add(opacity, at, &[by.opacity]);
            }
        });
    }

    pub(in crate::device::cpu) fn bytes(&self) -> u64 {
        let views: usize = self.views.iter().map(View::bytes).sum();
        (views + size_of_val(&self.records[..]) + size_of_val(&self.derivatives[..])) as u64
    }
}

/// Adds to a few entries of a gradient, unless it is that of a parameter that is not tuned.
#[inline(always)]
fn add(gradient: &mut [f32], at: usize, terms: &[f32]) {
    for (entry, term) in gradient.iter_mut().skip(at).zip(terms) {
        *entry += term;
    }
}

/// The radiance behind all splats.
fn background(inputs: &Inputs) -> [f32; 3] {
    let values = inputs.emitter.map(|slot| &inputs.params.parameters[slot].values);
    values.map_or([0.0; 3], |values| [values[0], values[1], values[2]])
}

/// What tiles have found beside their records.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    stats: ReplayStats,
    by_background: [f64; 3],
}

impl Found {
    fn with(self, other: Self) -> Self {
        Self {
            stats: self.stats + other.stats,
            by_background: [0, 1, 2].map(|c| self.by_background[c] + other.by_background[c]),
        }
    }
}

/// Undoes one tile.
fn undo_tile(
    inputs: &Inputs,
    view: &View,
    index: usize,
    (image, adjoint): (&[[f32; 4]], &[[f32; 3]]),
    background: [f32; 3],
    records: &mut [Record],
) -> Found {
    let (origin, [columns, rows]) = view.tile(index);
    let mut tile = TileAdjoint {
        transmittance: [[1.0; TILE]; TILE],
        behind: [[0.0; TILE]; TILE],
        color: [[[0.0; TILE]; TILE]; 3],
        count: view.counts[index],
    };
    let mut found = Found::default();
    for row in 0..rows {
        for column in 0..columns {
            let place = place_in_tile(column, row, [columns, rows]);
            let (t, by_color) = (image[place][3], adjoint[place]);
            tile.transmittance[row][column] = t;
            for c in 0..3 {
                tile.color[c][row][column] = by_color[c];
                tile.behind[row][column] += by_color[c] * background[c];
                found.by_background[c] += f64::from(t * by_color[c]);
            }
        }
    }
    inputs.level.run(Replay {
        list: view.lists.of(index),
        splats: &view.splats,
        reach: &view.reach,
        origin,
        rows,
        tile: &mut tile,
        records,
    });
    for row in 0..rows {
        for column in 0..columns {
            // Each blend and its undoing round three times at most.
            let bound = 4.0 * f32::EPSILON * (1 + tile.count[row][column]) as f32;
            let drifted = (tile.transmittance[row][column] - 1.0).abs() > bound;
            found.stats.drifted += u64::from(drifted);
            found.stats.samples += u64::from(tile.count[row][column]);
        }
    }
    found.stats.rays = (columns * rows) as u64;
    found
}
