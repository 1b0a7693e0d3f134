//! Records of replayed samples: 32 bytes a sample, sorted by brick and cell.

use std::cell::Cell;
use std::mem::size_of;
use std::ops::Range;

use super::bricks::{Bricks, CELL_BITS};
use super::packet::Lane;
use super::refine::OfView;
use crate::device::ReplayStats;
use crate::resident::layout::{SceneRecord, color};
use crate::transport::field::radiance_field::{Sample, State, color_activate, color_slope, density_slope};

const CELLS: usize = 1 << CELL_BITS;

/// Layers of cells along z that keys tell apart.
const LAYERS: usize = 8;

/// A sample: at first the values that were looked up there; after the replay the derivatives by them, until its brick is summed.
#[derive(Debug, Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(in crate::device::cpu) struct Record {
    pub(in crate::device::cpu) p: [f32; 3],
    /// Index of the ray in its round, and in the low [`CELL_BITS`] the cell.
    tag: u32,
    /// Raw density and colour; then the derivatives by them.
    pub(in crate::device::cpu) values: [f32; 4],
}

impl Record {
    pub(in crate::device::cpu) fn new(p: [f32; 3], ray: u32, cell: u32, values: [f32; 4]) -> Self {
        Self {
            p,
            tag: ray << CELL_BITS | cell,
            values,
        }
    }

    #[inline(always)]
    pub(in crate::device::cpu) fn ray(&self) -> u32 {
        self.tag >> CELL_BITS
    }

    #[inline(always)]
    pub(in crate::device::cpu) fn cell(&self) -> usize {
        self.tag as usize % CELLS
    }
}

/// The results of a chunk's replays. Kept between rounds, so that nothing is allocated in a running optimisation.
#[derive(Debug, Default)]
pub(in crate::device::cpu) struct Replays {
    /// By brick, ray order kept; brick b holds `starts[b]..starts[b + 1]`. Elements behind the last brick's are left over
    /// from rounds before.
    sorted: Vec<Record>,
    starts: Vec<u32>,
    /// Directions of rays and the derivatives by the emitter's radiance seen there.
    pub(in crate::device::cpu) emitters: Vec<([f32; 3], [f32; 3])>,
    /// Derivatives by views, in the order of the rays.
    pub(in crate::device::cpu) views: Vec<OfView>,
    pub(in crate::device::cpu) stats: ReplayStats,
}

/// A chunk's records in the order in which they were made. One a thread, which stays in its caches.
#[derive(Debug, Default)]
pub(in crate::device::cpu) struct Unsorted {
    notes: Vec<Note>,
}

/// A record before it is sorted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    record: Record,
    brick: u32,
    /// The sample's opacity, for the replay.
    alpha: f32,
}

thread_local! {
    static SPARE: Cell<Option<Box<Unsorted>>> = const { Cell::new(None) };
}

impl Unsorted {
    /// This thread's, empty, to be put back.
    pub(in crate::device::cpu) fn take() -> Box<Self> {
        let mut unsorted: Box<Self> = SPARE.take().unwrap_or_default();
        unsorted.notes.clear();
        unsorted
    }

    /// Keeps it for the next chunk.
    pub(in crate::device::cpu) fn put_back(self: Box<Self>) {
        SPARE.set(Some(self));
    }

    #[inline(always)]
    pub(in crate::device::cpu) fn push(&mut self, key: u32, ray: u32, sample: &Sample<f32>) {
        let [r, g, b] = sample.raw_color;
        self.notes.push(Note {
            record: Record::new(sample.p, ray, key % CELLS as u32, [sample.raw_sigma, r, g, b]),
            brick: key >> CELL_BITS,
            alpha: sample.alpha,
        });
    }

    /// Number of records so far.
    pub(in crate::device::cpu) fn len(&self) -> usize {
        self.notes.len()
    }

    /// The records from `begin` on.
    #[inline(always)]
    pub(in crate::device::cpu) fn records_from(&self, begin: usize) -> impl Iterator<Item = &Record> {
        self.notes[begin..].iter().map(|note| &note.record)
    }

    /// Replays the samples from the record `begin` on, in the order in which they were found. The first of `lanes` is
    /// the ray `first`.
    #[inline(always)]
    pub(in crate::device::cpu) fn replay(&mut self, scene: &SceneRecord, begin: usize, lanes: &mut [Lane], first: u32) {
        let notes = &mut self.notes[begin..];
        match scene.color_activation {
            color::CLIP => replay::<{ color::CLIP }>(scene, notes, lanes, first),
            color::SIGMOID => replay::<{ color::SIGMOID }>(scene, notes, lanes, first),
            _ => replay::<{ color::RELU_HALF }>(scene, notes, lanes, first),
        }
    }
}

/// The steps of [`State::replay`] for samples of several rays, a vector of density and colour at a time.
#[inline(always)]
fn replay<const COLOR: u32>(scene: &SceneRecord, notes: &mut [Note], lanes: &mut [Lane], first: u32) {
    let mut i = 0;
    while i < notes.len() {
        let ray = notes[i].record.ray();
        let lane = &mut lanes[(ray - first) as usize];
        let State {
            radiance: [r, g, b],
            mut transmittance,
            mut count,
            ..
        } = lane.path.state;
        let mut radiance = [0.0, r, g, b];
        let [r, g, b] = lane.d_radiance;
        let d_radiance = [0.0, r, g, b];
        while i < notes.len() && notes[i].record.ray() == ray {
            let raw = notes[i].record.values;
            let weight = transmittance * notes[i].alpha;
            transmittance -= weight;
            let (mut seen, mut d_values) = ([0.0; 4], [0.0; 4]);
            for k in 0..4 {
                let color = color_activate(COLOR, raw[k]);
                radiance[k] -= weight * color;
                seen[k] = d_radiance[k] * (transmittance * color - radiance[k]);
                d_values[k] = d_radiance[k] * weight * color_slope(COLOR, raw[k]);
            }
            let slope = density_slope(scene.density_activation, raw[0]);
            d_values[0] = ((seen[1] + seen[2]) + seen[3]) * scene.step_length * slope;
            notes[i].record.values = d_values;
            count += 1;
            i += 1;
        }
        let state = &mut lane.path.state;
        state.radiance = [radiance[1], radiance[2], radiance[3]];
        (state.transmittance, state.count) = (transmittance, count);
    }
}

impl Replays {
    pub(in crate::device::cpu) fn clear(&mut self) {
        self.emitters.clear();
        self.views.clear();
        self.stats = ReplayStats::default();
    }

    /// The records of a brick.
    #[inline(always)]
    pub(in crate::device::cpu) fn of_brick(&self, brick: u32) -> &[Record] {
        &self.sorted[self.starts[brick as usize] as usize..self.starts[brick as usize + 1] as usize]
    }

    /// Adds the number of records to each layer of bricks.
    pub(super) fn count_layers(&self, bricks: Bricks, layers: &mut [u64]) {
        let layer = bricks.len() / layers.len();
        for (z, count) in layers.iter_mut().enumerate() {
            *count += u64::from(self.starts[(z + 1) * layer] - self.starts[z * layer]);
        }
    }

    /// Appends the records of some bricks, and where each brick's begin among them.
    pub(super) fn pack(&self, bricks: Range<u32>, records: &mut Vec<Record>, starts: &mut Vec<u32>) {
        let of_bricks = &self.starts[bricks.start as usize..=bricks.end as usize];
        let [first, end] = [of_bricks[0], of_bricks[of_bricks.len() - 1]];
        records.extend_from_slice(&self.sorted[first as usize..end as usize]);
        starts.extend(of_bricks.iter().map(|start| start - first));
    }

    /// Reads what another rank has packed, from the places `record` and `start` on, which are advanced; bricks that were not
    /// packed are empty.
    pub(super) fn unpack(
        &mut self,
        bricks: Range<u32>,
        all: usize,
        records: &[Record],
        record: &mut usize,
        starts: &[u32],
        start: &mut usize,
    ) {
        let of_bricks = &starts[*start..=*start + bricks.len()];
        *start += of_bricks.len();
        let count = of_bricks[bricks.len()];
        self.sorted.clear();
        self.sorted
            .extend_from_slice(&records[*record..*record + count as usize]);
        *record += count as usize;
        self.starts.clear();
        self.starts.resize(bricks.start as usize, 0);
        self.starts.extend_from_slice(of_bricks);
        self.starts.resize(all + 1, count);
    }

    /// Bytes held.
    pub(in crate::device::cpu) fn bytes(&self) -> usize {
        self.sorted.capacity() * size_of::<Record>()
            + 4 * self.starts.capacity()
            + 24 * self.emitters.capacity()
            + size_of::<OfView>() * self.views.capacity()
    }

    /// Takes over a chunk's records, sorted by brick: a stable counting sort.
    #[inline(always)]
    pub(in crate::device::cpu) fn sort(&mut self, unsorted: &Unsorted, bricks: usize) {
        let notes = &unsorted.notes;
        self.starts.clear();
        self.starts.resize(bricks + 1, 0);
        for note in notes {
            self.starts[note.brick as usize + 1] += 1;
        }
        for b in 0..bricks {
            self.starts[b + 1] += self.starts[b];
        }
        at_least(&mut self.sorted, notes.len());
        for note in notes {
            let place = &mut self.starts[note.brick as usize];
            self.sorted[*place as usize] = note.record;
            *place += 1;
        }
        // Each start has moved to its brick's end, which is the next one's start.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

/// Lengthens an array to `count` records if it is shorter; elements that are there keep their values.
#[inline(always)]
fn at_least(records: &mut Vec<Record>, count: usize) {
    if records.len() < count {
        // Room for twice as many, which a vector takes as it grows, would never be used.
        records.reserve_exact(count - records.len());
        records.resize(count, Record::default());
    }
}

/// The layers of texels along z that a rank sums: `wanted` of all `texels`.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::device::cpu) struct Layers {
    pub(in crate::device::cpu) texels: u32,
    pub(in crate::device::cpu) wanted: Range<u32>,
}

impl Layers {
    /// Whether a record may reach the wanted layers. Cell c lies between the centres of the layers c − 1 and c; the margin allows
    /// for places that are rounded to another cell elsewhere.
    #[inline(always)]
    fn may_be_reached(&self, record: &Record) -> bool {
        const ROUNDING: f32 = 0.01;
        let cell = record.p[2] * self.texels as f32 + 0.5;
        let Range { start, end } = self.wanted;
        cell > start as f32 - ROUNDING && cell < end as f32 + 1.0 + ROUNDING
    }
}

/// The records of a brick that all chunks of a round have, sorted by cell: a stable counting sort into `spare`. Layers of cells
/// none of whose records is `wanted` are left out.
#[inline(always)]
pub(in crate::device::cpu) fn by_cell<'a>(
    replays: &[Replays],
    brick: u32,
    wanted: Option<&Layers>,
    spare: &'a mut Vec<Record>,
) -> &'a [Record] {
    let layer = |cell: usize| cell * LAYERS / CELLS;
    let mut is_wanted = [wanted.is_none(); LAYERS];
    let mut places = [0u32; CELLS + 1];
    for replays in replays {
        for record in replays.of_brick(brick) {
            places[record.cell() + 1] += 1;
            if let Some(wanted) = wanted {
                is_wanted[layer(record.cell())] |= wanted.may_be_reached(record);
            }
        }
    }
    for cell in 0..CELLS {
        let count = if is_wanted[layer(cell)] { places[cell + 1] } else { 0 };
        places[cell + 1] = places[cell] + count;
    }
    let count = places[CELLS] as usize;
    at_least(spare, count);
    for replays in replays {
        let records = replays.of_brick(brick).iter();
        for record in records.filter(|record| is_wanted[layer(record.cell())]) {
            let place = &mut places[record.cell()];
            spare[*place as usize] = *record;
            *place += 1;
        }
    }
    &spare[..count]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::field::packet::Lane;
    use crate::resident::layout::density;
    use crate::transport::field::march::March;
    use crate::transport::rays::camera::Ray;
    use crate::transport::rays::random::test_uniform;

    /// Samples of two rays in turns, with raw values inside and outside of every activation's range.
    fn samples() -> Vec<(u32, Sample<f32>)> {
        let sample = |i| {
            let (u, v) = (test_uniform(4, i, 0), test_uniform(4, i, 1));
            Sample {
                p: [u[0], u[1], u[2]],
                raw_sigma: 4.0 * u[3] - 1.0,
                alpha: 0.2 * v[3],
                raw_color: [v[0], v[1], v[2]].map(|x| 3.0 * x - 1.0),
            }
        };
        (0..64).map(|i| (i / 5 % 2, sample(i))).collect()
    }

    #[test]
    fn a_vector_a_sample_replays_what_the_walk_replays() {
        let d_radiance = [[0.5, -0.25, 1.0], [-0.125, 2.0, 0.75]];
        let radiance = [[0.9, 0.8, 0.7], [0.3, 0.6, 0.5]];
        for color in [color::CLIP, color::SIGMOID, color::RELU_HALF] {
            for density in [density::RELU, density::SOFTPLUS, density::EXP] {
                let mut scene: SceneRecord = bytemuck::Zeroable::zeroed();
                (scene.color_activation, scene.density_activation, scene.step_length) = (color, density, 0.03);
                let ray = Ray {
                    origin: [0.0; 3],
                    direction: [0.0, 0.0, 1.0],
                    near: 0.0,
                    far: 1.0,
                    sensor: 0,
                };
                let mut lanes = [0, 1].map(|i| {
                    let mut path = March::new(&scene, &ray, 0.5, None);
                    path.state = State::new(radiance[i]);
                    Lane {
                        place: i,
                        weight: 1.0,
                        d_radiance: d_radiance[i],
                        path,
                    }
                });
                let mut states = radiance.map(State::new);
                let mut unsorted = Unsorted::default();
                let mut expected = Vec::new();
                for (ray, sample) in samples() {
                    unsorted.push(0, 7 + ray, &sample);
                    let (d_sigma, [r, g, b]) = states[ray as usize].replay(&scene, &sample, d_radiance[ray as usize]);
                    expected.push([d_sigma, r, g, b]);
                }
                unsorted.replay(&scene, 0, &mut lanes, 7);
                let found: Vec<[f32; 4]> = unsorted.notes.iter().map(|n| n.record.values).collect();
                assert_eq!(found, expected, "colour {color}, density {density}");
                for (lane, state) in lanes.iter().zip(&states) {
                    let left = &lane.path.state;
                    assert_eq!(
                        (left.radiance, left.transmittance, left.count),
                        (state.radiance, state.transmittance, state.count)
                    );
                }
            }
        }
    }
}
