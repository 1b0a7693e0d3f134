//! The passes over a picture of splats: the document's `clearDerivatives`, `computeDerivatives` and `updateBlobs` are
//! `clear_derivatives`, `compute_derivatives` and `update_splats`, and its `imageMain` is `render`.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::gather::{End, Gather, KEPT, Kept, Weighed};
use super::lists::{Entry, Lists, PAGE, TileBox};
use super::project::{Project, Reader, Update};
use super::replay::{Found, Replay};
use super::shape::Shape;
use super::sums::Record;
use crate::cluster::{Cluster, Plain};
use crate::device::cpu::frame::Frame;
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::planes::{Plane, TILE};
use crate::device::cpu::shared::SharedSlice;
use crate::device::cpu::tiles::{Adjoint, Comparison, Image, Tiles};
use crate::device::cpu::update::Updates;
use crate::device::{Batch, DeviceError, LossValue, ReplayStats, Result};
use crate::kernels::loss::Loss;
use crate::resident::pages::physical_bytes;
use crate::resident::splats::{Placed, SplatScene, SplatSlots};

/// Records of a round of tiles, unless a single tile has more.
const ROUND: usize = 1 << 17;

/// Lists may take the machine's memory divided by this.
const LIST_SHARE: u64 = 4;

/// Splats that a thread takes at a time.
const SPAN: usize = 1024;

/// Tiles that a thread takes at a time at most. A thread that waits for another's last tiles for longer than some 20 µs falls
/// asleep, and is woken late for the next pass.
const TILES: usize = 4;

thread_local! {
    /// A thread's buffers.
    static AT_HAND: RefCell<AtHand> = RefCell::new(AtHand {
        kept: vec![Weighed::UNSEEN; KEPT].try_into().expect("of this length"),
        end: End::default(),
        image: [Plane::of(0.0); 4],
    });
}

/// Buffers for the results of the tile that a thread visits.
struct AtHand {
    kept: Box<Kept>,
    /// For a tile that is undone in the same visit: neither end nor image is needed afterwards.
    end: End,
    image: Image,
}

/// The passes over a picture of splats.
#[derive(Debug)]
pub(in crate::device::cpu) struct SplatPasses {
    pub(in crate::device::cpu) scene: SplatScene,
    /// The views that were rendered last.
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
    /// Where the pixels of each tile were finished.
    ends: Vec<End>,
    /// The number of its first tile in the batch.
    first: usize,
}

/// A tile that a thread visits.
struct Visited<'a> {
    /// Its number in the view.
    index: usize,
    list: &'a mut [Entry],
}

impl View {
    /// Tiles a row and a column.
    fn tiles(&self) -> [usize; 2] {
        [self.width.div_ceil(TILE), self.height.div_ceil(TILE)]
    }

    /// Tiles of the view.
    fn count(&self) -> usize {
        self.tiles().iter().product()
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
    fn project(&mut self, inputs: &Inputs, scene: &SplatScene) -> Result<()> {
        let [across, down] = self.tiles();
        let side = self.side();
        let read = Reader::new(&scene.slots, &inputs.params);
        self.shapes.resize(scene.count, Shape::default());
        self.boxes.resize(scene.count, TileBox::default());
        let spans = self.shapes.par_chunks_mut(SPAN).zip(self.boxes.par_chunks_mut(SPAN));
        spans.enumerate().for_each(|(span, (shapes, boxes))| {
            inputs.level.run(Project {
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
        let there = physical_bytes().map_or(u64::MAX, |bytes| bytes / LIST_SHARE);
        if entries > u64::from(u32::MAX) || 4 * entries > there {
            return Err(DeviceError::TooLarge(format!(
                "{entries} pairs of a tile and a splat that reaches it are more than there is room for; bound `scale` to \
                 make splats smaller, or take fewer"
            )));
        }
        self.lists.build(&self.boxes, across * down, across);
        self.ends.resize(across * down, End::default());
        Ok(())
    }

    /// Visits some tiles; those of other ranks are left out.
    fn visit<T: Default + Send>(
        &mut self,
        cluster: Cluster,
        tiles: Range<usize>,
        each: impl Fn(&Self, Visited) -> T + Sync,
    ) -> Vec<T> {
        let mut entries = std::mem::take(&mut self.lists.entries);
        let all = SharedSlice::new(&mut entries);
        let view = &*self;
        let visited = tiles.into_par_iter().with_max_len(TILES);
        let found = visited.map(|index| {
            if !cluster.owns(view.first + index) {
                return T::default();
            }
            // SAFETY: every tile's list has entries of its own.
            let list = unsafe { &mut all.get()[view.lists.range(index)] };
            each(view, Visited { index, list })
        });
        let found = found.collect();
        self.lists.entries = entries;
        found
    }

    /// Blends a tile.
    fn gather(&self, inputs: &Inputs, tile: &mut Visited, (end, image): (&mut End, &mut Image), kept: &mut Kept) {
        let (origin, inside) = self.tile(tile.index);
        inputs.level.run(Gather {
            list: tile.list,
            pages: self.lists.pages(tile.index),
            shapes: &self.shapes,
            origin,
            inside,
            background: background(inputs),
            image,
            end,
            kept,
        });
    }

    /// Undoes a tile that was blended.
    fn replay(
        &self,
        inputs: &Inputs,
        tile: &Visited,
        (end, image): (&End, &Image),
        kept: Option<&Kept>,
        adjoint: &Adjoint,
        (records, tunes_background): (&mut [Record], bool),
    ) -> Found {
        let (origin, inside) = self.tile(tile.index);
        inputs.level.run(Replay {
            list: tile.list,
            pages: self.lists.pages(tile.index),
            shapes: &self.shapes,
            origin,
            inside,
            background: background(inputs),
            tunes_background,
            end,
            image,
            adjoint,
            kept,
            records,
        })
    }

    /// The tiles from `begin` on whose records make a round.
    fn round(&self, begin: usize) -> Range<usize> {
        let base = self.lists.range(begin).start;
        let fits = |end: usize| self.lists.range(end - 1).end - base <= ROUND;
        let mut end = begin + 1;
        while end < self.count() && fits(end + 1) {
            end += 1;
        }
        begin..end
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

    /// Renders whole views, tile by tile. Each pixel is evaluated once, at its centre, whatever the number of samples.
    pub(in crate::device::cpu) fn render(&mut self, inputs: &Inputs, pass: Pass, frame: &mut Frame) -> Result<()> {
        let tiles = self.project(inputs, pass.batch)?;
        let mut image = frame.tiles_mut().room(tiles);
        for view in &mut self.views {
            let (here, rest) = image.split_at_mut(view.count());
            image = rest;
            let mut ends = std::mem::take(&mut view.ends);
            let (images, all_ends) = (SharedSlice::new(here), SharedSlice::new(&mut ends));
            view.visit(inputs.cluster, 0..view.count(), |view, mut tile| {
                // SAFETY: every tile has one image and one end.
                let blended = unsafe { (&mut all_ends.get()[tile.index], &mut images.get()[tile.index]) };
                AT_HAND.with_borrow_mut(|hand| view.gather(inputs, &mut tile, blended, &mut hand.kept));
            });
            view.ends = ends;
        }
        Ok(())
    }

    /// Adds the derivatives by all splats and by the background to the gradients.
    pub(in crate::device::cpu) fn backpropagate(
        &mut self,
        inputs: &Inputs,
        frame: &mut Frame,
        updates: &mut Updates,
    ) -> Result<ReplayStats> {
        let tunes_background = tuned_background(inputs, updates).is_some();
        let Tiles { image, adjoint } = frame.tiles_mut();
        let found = self.compute_derivatives(inputs, updates, |view, tile, records| {
            let at = view.first + tile.index;
            let blended = (&view.ends[tile.index], &image[at]);
            view.replay(inputs, &tile, blended, None, &adjoint[at], (records, tunes_background))
        });
        Ok(self.add_background(inputs, &found, updates))
    }

    /// [`Self::render`], the loss and [`Self::backpropagate`] in one visit of each tile: its splats and their weights stay in the
    /// cache, and its image and adjoint image are not kept. A pixel's loss must depend on that pixel alone.
    pub(in crate::device::cpu) fn value_and_gradient(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        loss: Loss,
        updates: &mut Updates,
    ) -> Result<(LossValue, ReplayStats)> {
        self.project(inputs, pass.batch)?;
        let tunes_background = tuned_background(inputs, updates).is_some();
        let comparison = Comparison::new(inputs, pass.batch, pass.keys, loss);
        let found = self.compute_derivatives(inputs, updates, |view, mut tile, records| {
            AT_HAND.with_borrow_mut(|AtHand { kept, end, image }| {
                comparison.bring_references(view.first + tile.index);
                view.gather(inputs, &mut tile, (end, image), kept);
                let mut adjoint = [Plane::of(0.0); 3];
                let loss = comparison.tile(view.first + tile.index, image, &mut adjoint);
                let found = view.replay(
                    inputs,
                    &tile,
                    (end, image),
                    Some(kept),
                    &adjoint,
                    (records, tunes_background),
                );
                Found { loss, ..found }
            })
        });
        let losses: Vec<[f64; 2]> = found.iter().map(|tile| tile.loss).collect();
        let stats = self.add_background(inputs, &found, updates);
        Ok((comparison.value(&losses), stats))
    }

    /// Projects all splats onto the views of a batch; returns the number of their tiles.
    fn project(&mut self, inputs: &Inputs, batch: &Batch) -> Result<usize> {
        if batch.drawn.is_some() {
            return Err(DeviceError::Unavailable(
                "splats are drawn a tile at a time: look at whole views, not at single pixels".into(),
            ));
        }
        let sensors = &batch.table.sensors;
        self.views.resize_with(sensors.len(), View::default);
        let mut tiles = 0;
        for (view, &sensor) in self.views.iter_mut().zip(sensors) {
            let record = &inputs.sensors[sensor as usize];
            (view.width, view.height) = (record.width as usize, record.height as usize);
            (view.film, view.first) = (Placed::of(record), tiles);
            let projected = view.project(inputs, &self.scene);
            if inputs.cluster.any(projected.is_err()) {
                projected?;
                return Err(DeviceError::TooLarge(
                    "another rank has no room for the lists of splats".into(),
                ));
            }
            tiles += view.count();
        }
        Ok(tiles)
    }

    /// Sums the derivatives by the background over the tiles of all views into its gradient; returns the statistics of the
    /// replays.
    fn add_background(&self, inputs: &Inputs, found: &[Found], updates: &mut Updates) -> ReplayStats {
        let of_view = |view: &View| {
            let tiles = &found[view.first..view.first + view.count()];
            tiles.iter().copied().fold(Found::default(), Found::with)
        };
        let sum = self.views.iter().map(of_view).fold(Found::default(), Found::with);
        if let Some(slot) = tuned_background(inputs, updates) {
            for c in 0..3 {
                updates.gradients[slot][c] += sum.by_background[c] as f32;
            }
            updates.activity[slot].touch(0..3);
        }
        sum.stats
    }

    /// Visits the tiles of all views, each of which undoes its list, sums their derivatives by each splat and adds them to the
    /// gradients; returns the other results of each tile.
    fn compute_derivatives(
        &mut self,
        inputs: &Inputs,
        updates: &mut Updates,
        visit: impl Fn(&View, Visited, &mut [Record]) -> Found + Sync,
    ) -> Vec<Found> {
        let mut views = std::mem::take(&mut self.views);
        let mut found = Vec::with_capacity(views.iter().map(View::count).sum());
        for view in &mut views {
            let gradients = Gradients::new(inputs, &self.scene.slots, view.side(), updates);
            self.derivatives.resize(self.scene.count, Record::default());
            let mut begin = 0;
            while begin < view.count() {
                let tiles = view.round(begin);
                begin = tiles.end;
                found.extend(self.visit_round(inputs.cluster, view, tiles.clone(), &visit));
                self.sum_records(view, tiles, (begin == view.count()).then_some(&gradients));
            }
        }
        self.views = views;
        found
    }

    /// Visits a round of a view's tiles, each of which writes records; records of other ranks' tiles are received from them.
    fn visit_round(
        &mut self,
        cluster: Cluster,
        view: &mut View,
        tiles: Range<usize>,
        visit: impl Fn(&View, Visited, &mut [Record]) -> Found + Sync,
    ) -> Vec<Found> {
        let (first, base) = (view.first, view.lists.range(tiles.start).start);
        let count = view.lists.range(tiles.end - 1).end - base;
        if self.records.len() < count {
            self.records.resize(count, Record::default());
        }
        let of_tile = |lists: &Lists, index: usize| lists.range(index).start - base..lists.range(index).end - base;
        let records = SharedSlice::new(&mut self.records);
        let mut found = view.visit(cluster, tiles.clone(), |view, tile| {
            // SAFETY: every tile's list has records of its own.
            let records = unsafe { &mut records.get()[of_tile(&view.lists, tile.index)] };
            visit(view, tile, records).words()
        });
        if !cluster.is_single() {
            let owner = |index: usize| (first + index) % cluster.size();
            exchange(cluster, tiles.clone(), owner, &mut found, |index| {
                index - tiles.start..index - tiles.start + 1
            });
            exchange(cluster, tiles.clone(), owner, &mut self.records, |index| {
                of_tile(&view.lists, index)
            });
        }
        found.into_iter().map(Found::from_words).collect()
    }

    /// Zeroes the sums of some splats.
    fn clear_derivatives(sums: &mut [Record]) {
        sums.fill(Record::default());
    }

    /// Adds a round's records to their splats, tile after tile; the first round begins with zeros. After the last round the
    /// thread that has summed a group of splats adds the sums to the gradients, while they are in its cache.
    fn sum_records(&mut self, view: &View, tiles: Range<usize>, gradients: Option<&Gradients>) {
        let View { lists, .. } = view;
        let (records, base) = (&self.records, lists.range(tiles.start).start);
        let groups = self.derivatives.par_chunks_mut(lists.group()).enumerate();
        groups.for_each(|(group, sums)| {
            let first = group * lists.group();
            if tiles.start == 0 {
                Self::clear_derivatives(sums);
            }
            for tile in tiles.clone() {
                let range = lists.of_group(tile, group);
                let records = &records[range.start - base..range.end - base];
                for (entry, record) in lists.entries[range].iter().zip(records) {
                    sums[usize::from(entry.splat) - first % PAGE].add(record);
                }
            }
            if let Some(gradients) = gradients {
                gradients.update_splats(first, sums);
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
    /// In the order of the slots; empty for parameters that are not tuned.
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

    /// Turns the sums of the splats from `first` on into derivatives by their parameters, and adds these to the gradients. No
    /// other thread updates these splats.
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

/// Gives all ranks all of an array, of which each tile's range was computed by the tile's owner.
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

/// The parameter of the radiance behind all splats, if it is tuned.
fn tuned_background(inputs: &Inputs, updates: &Updates) -> Option<usize> {
    inputs.emitter.filter(|&slot| !updates.gradients[slot].is_empty())
}

/// The radiance behind all splats.
fn background(inputs: &Inputs) -> [f32; 3] {
    let values = inputs.emitter.map(|slot| &inputs.params.parameters[slot].values);
    values.map_or([0.0; 3], |values| [values[0], values[1], values[2]])
}
