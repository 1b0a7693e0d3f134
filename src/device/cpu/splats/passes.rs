//! The passes over a picture of splats: the document's `clearDerivatives`, `computeDerivatives` and `updateBlobs` are
//! `clear_derivatives`, `compute_derivatives` and `update_splats`, and its `imageMain` is `render`.

use std::ops::Range;

use rayon::prelude::*;

use super::gather::{End, Gather};
use super::lists::{Lists, PAGE, TileBox};
use super::project::{Project, Reader, Update};
use super::replay::{Found, Replay};
use super::shape::Shape;
use super::sums::Record;
use crate::cluster::{Cluster, Plain};
use crate::device::cpu::frame::Frame;
use crate::device::cpu::memory;
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::planes::TILE;
use crate::device::cpu::shared::SharedSlice;
use crate::device::cpu::tiles::{Adjoint, Image};
use crate::device::cpu::update::Updates;
use crate::device::cpu::vector::level::Level;
use crate::device::{DeviceError, ReplayStats, Result};
use crate::params::ParamSet;
use crate::resident::splats::{Placed, SplatScene, SplatSlots};

/// Records of a round of tiles, unless a single tile has more.
const ROUND: usize = 1 << 17;

/// The part of the machine's memory that lists may take.
const LIST_SHARE: u64 = 4;

/// Splats that a thread takes at a time.
const SPAN: usize = 1024;

/// Tiles that a thread takes at a time at most. A thread that waits for another's last tiles for longer than some 20 µs falls
/// asleep, and is woken late for the next pass.
const TILES: usize = 4;

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
    /// Where the film lies in the picture.
    film: Placed,
    shapes: Vec<Shape>,
    boxes: Vec<TileBox>,
    lists: Lists,
    /// How the pixels of each tile ended.
    ends: Vec<End>,
}

impl View {
    /// Tiles a row and a column.
    fn tiles(&self) -> [usize; 2] {
        [self.width.div_ceil(TILE), self.height.div_ceil(TILE)]
    }

    fn side(&self) -> f32 {
        self.film.side
    }

    /// A tile's first pixel, and its columns and rows in the picture.
    fn tile(&self, index: usize) -> ([f32; 2], [usize; 2]) {
        let [across, _] = self.tiles();
        let [x, y] = [index % across * TILE, index / across * TILE];
        let inside = [TILE.min(self.width - x), TILE.min(self.height - y)];
        ([x as f32, y as f32], inside)
    }

    /// Projects all splats and lists them tile by tile.
    fn project(&mut self, level: Level, slots: &SplatSlots, params: &ParamSet, count: usize) -> Result<()> {
        let [across, down] = self.tiles();
        let side = self.side();
        let read = Reader::new(slots, params);
        self.shapes.resize(count, Shape::default());
        self.boxes.resize(count, TileBox::default());
        let spans = self.shapes.par_chunks_mut(SPAN).zip(self.boxes.par_chunks_mut(SPAN));
        spans.enumerate().for_each(|(span, (shapes, boxes))| {
            level.run(Project {
                read,
                first: span * SPAN,
                side,
                offset: self.film.offset,
                tiles: [across, down],
                shapes,
                boxes,
            });
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
        size_of_val(&self.shapes[..]) + size_of_val(&self.boxes[..]) + size_of_val(&self.ends[..]) + self.lists.bytes()
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
            view.film = Placed::of(record);
            let projected = view.project(inputs.level, &self.scene.slots, &inputs.params, self.scene.count);
            if inputs.cluster.any(projected.is_err()) {
                projected?;
                return Err(DeviceError::TooLarge(
                    "another rank has no room for the lists of splats".into(),
                ));
            }
        }
        let background = background(inputs);
        let tiles: usize = self
            .views
            .iter()
            .map(|view| view.tiles().iter().product::<usize>())
            .sum();
        let mut image = frame.begin_tiles().room(tiles);
        let mut first = 0;
        for view in &mut self.views {
            let count = view.tiles().iter().product::<usize>();
            let (here, rest) = image.split_at_mut(count);
            image = rest;
            let (mut ends, mut entries) = (std::mem::take(&mut view.ends), std::mem::take(&mut view.lists.entries));
            ends.resize(count, End::default());
            let all_entries = SharedSlice::new(&mut entries);
            let outputs = here.par_iter_mut().zip(&mut ends).enumerate();
            let own = outputs
                .with_max_len(TILES)
                .filter(|(index, _)| inputs.cluster.owns(first + index));
            own.for_each(|(index, (image, end))| {
                let (origin, inside) = view.tile(index);
                // SAFETY: every tile's list has entries of its own.
                let list = unsafe { &mut all_entries.get()[view.lists.range(index)] };
                inputs.level.run(Gather {
                    list,
                    pages: view.lists.pages(index),
                    shapes: &view.shapes,
                    origin,
                    inside,
                    background,
                    image,
                    end,
                });
            });
            (view.ends, view.lists.entries) = (ends, entries);
            first += count;
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
        let tuned = inputs.emitter.filter(|&slot| !updates.gradients[slot].is_empty());
        let mut stats = ReplayStats::default();
        let mut first = 0;
        let mut by_background = [0f64; 3];
        let rendered = frame.tiles().expect("what is undone was rendered tile by tile");
        let views = std::mem::take(&mut self.views);
        for view in &views {
            let chunks = view.tiles().iter().product::<usize>();
            let tiles = first..first + chunks;
            let (image, adjoint) = (&rendered.image[tiles.clone()], &rendered.adjoint[tiles]);
            let (numbered, background) = ((view, first), (background, tuned.is_some()));
            let found = self.compute_derivatives(inputs, numbered, (image, adjoint), background, updates);
            stats = stats + found.stats;
            for c in 0..3 {
                by_background[c] += found.by_background[c];
            }
            first += chunks;
        }
        self.views = views;
        if let Some(slot) = tuned {
            for c in 0..3 {
                updates.gradients[slot][c] += by_background[c] as f32;
            }
            updates.activity[slot].touch(0..3);
        }
        Ok(stats)
    }

    /// Undoes all tiles of a view, the first of which has this number in its batch, sums what they send to each splat and adds
    /// it to the gradients.
    fn compute_derivatives(
        &mut self,
        inputs: &Inputs,
        (view, first): (&View, usize),
        (image, adjoint): (&[Image], &[Adjoint]),
        (background, tunes_background): ([f32; 3], bool),
        updates: &mut Updates,
    ) -> Found {
        let tiles = view.tiles().iter().product::<usize>();
        let mut found = Found::default();
        let gradients = Gradients::new(inputs, &self.scene.slots, view.side(), updates);
        self.derivatives.resize(self.scene.count, Record::default());
        let mut begin = 0;
        while begin < tiles {
            let lists = &view.lists;
            let base = lists.range(begin).start;
            let fits = |end: usize| lists.range(end - 1).end - base <= ROUND;
            let mut end = begin + 1;
            while end < tiles && fits(end + 1) {
                end += 1;
            }
            let count = lists.range(end - 1).end - base;
            let of_tile = |index: usize| lists.range(index).start - base..lists.range(index).end - base;
            if self.records.len() < count {
                self.records.resize(count, Record::default());
            }
            let records = SharedSlice::new(&mut self.records);
            let mut of_tiles: Vec<[u64; 7]> = (begin..end)
                .into_par_iter()
                .with_max_len(TILES)
                .map(|index| {
                    if !inputs.cluster.owns(first + index) {
                        return Found::default().words();
                    }
                    // SAFETY: every tile's list has records of its own.
                    let records = unsafe { &mut records.get()[of_tile(index)] };
                    let (origin, inside) = view.tile(index);
                    let replay = Replay {
                        list: view.lists.of(index),
                        pages: view.lists.pages(index),
                        shapes: &view.shapes,
                        origin,
                        inside,
                        background,
                        tunes_background,
                        end: &view.ends[index],
                        image: &image[index],
                        adjoint: &adjoint[index],
                        records,
                    };
                    inputs.level.run(replay).words()
                })
                .collect();
            if !inputs.cluster.is_single() {
                let owner = |index: usize| (first + index) % inputs.cluster.size();
                exchange(inputs.cluster, begin..end, owner, &mut of_tiles, |index| {
                    index - begin..index - begin + 1
                });
                exchange(inputs.cluster, begin..end, owner, &mut self.records, of_tile);
            }
            found = of_tiles.into_iter().map(Found::from_words).fold(found, Found::with);
            self.sum_records(view, begin..end, (end == tiles).then_some(&gradients));
            begin = end;
        }
        found
    }

    /// Zeroes the sums of some splats.
    fn clear_derivatives(sums: &mut [Record]) {
        sums.fill(Record::default());
    }

    /// Adds a round's records to their splats, tile after tile; the first round begins with zeros. After the last one splats
    /// are updated by the thread that has their sums at hand.
    fn sum_records(&mut self, view: &View, tiles: Range<usize>, gradients: Option<&Gradients>) {
        let span = self.scene.count.div_ceil(4 * rayon::current_num_threads()).max(SPAN);
        let (records, base) = (&self.records, view.lists.range(tiles.start).start);
        self.derivatives.par_chunks_mut(span).enumerate().for_each(|(i, sums)| {
            let splats = i * span..i * span + sums.len();
            if tiles.start == 0 {
                Self::clear_derivatives(sums);
            }
            for tile in tiles.clone() {
                let (list, records) = (view.lists.of(tile), &records[view.lists.range(tile).start - base..]);
                for page in splats.start / PAGE..splats.end.div_ceil(PAGE) {
                    let range = view.lists.pages(tile).range(page);
                    let (list, records) = (&list[range.clone()], &records[range]);
                    let before = splats.start.saturating_sub(page * PAGE);
                    let begin = list.partition_point(|entry| usize::from(entry.splat) < before);
                    for (entry, record) in list.iter().zip(records).skip(begin) {
                        match sums.get_mut(page * PAGE + usize::from(entry.splat) - splats.start) {
                            Some(sum) => sum.add(record),
                            None => break,
                        }
                    }
                }
            }
            if let Some(gradients) = gradients {
                gradients.update_splats(i * span, sums);
            }
        });
    }

    pub(in crate::device::cpu) fn bytes(&self) -> u64 {
        let views: usize = self.views.iter().map(View::bytes).sum();
        (views + size_of_val(&self.records[..]) + size_of_val(&self.derivatives[..])) as u64
    }
}

/// The gradients of splats, and what is needed to find them from sums.
struct Gradients<'a> {
    inputs: &'a Inputs,
    read: Reader<'a>,
    side: f32,
    /// In the order of the slots; empty of parameters that are not tuned.
    arrays: [SharedSlice<'a, f32>; 5],
}

impl<'a> Gradients<'a> {
    fn new(inputs: &'a Inputs, slots: &SplatSlots, side: f32, updates: &'a mut Updates) -> Self {
        for slot in slots.all() {
            let len = updates.gradients[slot].len();
            updates.activity[slot].touch(0..len);
        }
        let arrays = updates.gradients.get_disjoint_mut(slots.all());
        let arrays = arrays
            .expect("the slots of a splat's parameters differ")
            .map(|g| SharedSlice::new(g));
        Self {
            inputs,
            read: Reader::new(slots, &inputs.params),
            side,
            arrays,
        }
    }

    /// From the sums of the splats from `first` on, which no other thread updates, to their gradients, which the optimiser's
    /// step takes up.
    fn update_splats(&self, first: usize, sums: &[Record]) {
        self.inputs.level.run(Update {
            read: self.read,
            first,
            side: self.side,
            sums,
            // SAFETY: each splat is written once, by one thread, in each array.
            gradients: unsafe {
                let [position, scale, rotation, color, opacity] = &self.arrays;
                [position.get(), scale.get(), rotation.get(), color.get(), opacity.get()]
            },
        });
    }
}

/// Completes an array of which each tile's range was made by its owner.
fn exchange<T: Plain>(
    cluster: Cluster,
    tiles: Range<usize>,
    owner: impl Fn(usize) -> usize,
    array: &mut [T],
    range: impl Fn(usize) -> Range<usize>,
) {
    let (mut own, mut lengths) = (Vec::new(), vec![0; cluster.size()]);
    for tile in tiles.clone() {
        lengths[owner(tile)] += range(tile).len();
        if owner(tile) == cluster.rank() {
            own.extend_from_slice(&array[range(tile)]);
        }
    }
    let parts = cluster.concat_lengths(&own, &lengths);
    let mut taken = vec![0; cluster.size()];
    for tile in tiles {
        let (of, to) = (owner(tile), range(tile));
        let begin = taken[of];
        taken[of] += to.len();
        array[to].copy_from_slice(&parts[of][begin..taken[of]]);
    }
}

/// The radiance behind all splats.
fn background(inputs: &Inputs) -> [f32; 3] {
    let values = inputs.emitter.map(|slot| &inputs.params.parameters[slot].values);
    values.map_or([0.0; 3], |values| [values[0], values[1], values[2]])
}
