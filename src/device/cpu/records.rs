//! What replays leave behind: a compact record a sample, sorted by brick and cell.

use std::cell::Cell;
use std::mem::size_of;

use super::bricks::CELL_BITS;
use crate::device::ReplayStats;
use crate::transport::sh::Basis;

/// A sample's gradients, waiting for its brick.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Record {
    pub(super) p: [f32; 3],
    /// Index of the ray in its chunk, for the basis of its direction.
    pub(super) ray: u32,
    pub(super) d_sigma: f32,
    pub(super) d_color: [f32; 3],
}

/// What a chunk's replays leave. Kept between rounds, so that nothing is allocated in a running optimisation.
#[derive(Debug, Default)]
pub(super) struct Replays {
    /// By brick, then by cell, ray order kept; brick b holds `starts[b]..starts[b + 1]`.
    sorted: Vec<Record>,
    starts: Vec<u32>,
    /// The basis of each ray's direction.
    pub(super) bases: Vec<Basis>,
    /// Direction and gradient of each ray's emitter.
    pub(super) emitters: Vec<([f32; 3], [f32; 3])>,
    pub(super) stats: ReplayStats,
}

/// A chunk's records in the order in which they were made, with their keys. One a thread, which stays in its caches.
#[derive(Debug, Default)]
pub(super) struct Unsorted {
    records: Vec<Record>,
    keys: Vec<u32>,
    order: Vec<u32>,
}

thread_local! {
    static SPARE: Cell<Option<Box<Unsorted>>> = const { Cell::new(None) };
}

impl Unsorted {
    /// This thread's, empty, to be put back.
    pub(super) fn take() -> Box<Self> {
        let mut unsorted: Box<Self> = SPARE.take().unwrap_or_default();
        unsorted.records.clear();
        unsorted.keys.clear();
        unsorted
    }

    /// Keeps it for the next chunk.
    pub(super) fn put_back(self: Box<Self>) {
        SPARE.set(Some(self));
    }

    #[inline(always)]
    pub(super) fn push(&mut self, key: u32, record: Record) {
        self.records.push(record);
        self.keys.push(key);
    }
}

impl Replays {
    pub(super) fn clear(&mut self) {
        self.sorted.clear();
        self.bases.clear();
        self.emitters.clear();
        self.stats = ReplayStats::default();
    }

    /// The records of a brick.
    #[inline(always)]
    pub(super) fn of_brick(&self, brick: u32) -> &[Record] {
        &self.sorted[self.starts[brick as usize] as usize..self.starts[brick as usize + 1] as usize]
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.sorted.capacity() * size_of::<Record>()
            + 4 * self.starts.capacity()
            + self.bases.capacity() * size_of::<Basis>()
            + 24 * self.emitters.capacity()
    }

    /// Sorts by key: a counting sort by cell, then one by brick, both stable.
    #[inline(always)]
    pub(super) fn sort(&mut self, unsorted: &mut Unsorted, bricks: usize) {
        const CELLS: usize = 1 << CELL_BITS;
        let Unsorted { records, keys, order } = unsorted;
        let mut places = [0u32; CELLS + 1];
        for i in 0..keys.len() {
            places[(keys[i] as usize & (CELLS - 1)) + 1] += 1;
        }
        for cell in 0..CELLS {
            places[cell + 1] += places[cell];
        }
        order.resize(keys.len(), 0);
        for i in 0..keys.len() {
            let place = &mut places[keys[i] as usize & (CELLS - 1)];
            order[*place as usize] = i as u32;
            *place += 1;
        }
        self.starts.clear();
        self.starts.resize(bricks + 1, 0);
        for i in 0..keys.len() {
            self.starts[(keys[i] >> CELL_BITS) as usize + 1] += 1;
        }
        for b in 0..bricks {
            self.starts[b + 1] += self.starts[b];
        }
        self.sorted.resize(records.len(), Record::default());
        for n in 0..order.len() {
            let i = order[n] as usize;
            let place = &mut self.starts[(keys[i] >> CELL_BITS) as usize];
            self.sorted[*place as usize] = records[i];
            *place += 1;
        }
        // Each start has moved to its brick's end, which is the next one's start.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}
