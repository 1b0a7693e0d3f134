//! Summing a field's gradient on several ranks. Each owns the texels of some layers of bricks along z, of the grids'
//! densities and colours alike, and is sent the records of the bricks that reach them: those layers and the next on either
//! side. It sums them in the order in which one process does. What it finds for texels that it does not own is not whole,
//! and is replaced by what their owner has found.

use std::ops::Range;

use super::bricks::Bricks;
use super::records::{Record, Replays};
use crate::cluster::Cluster;
use crate::device::cpu::step::{Activity, BLOCK};
use crate::each::EachEntry;
use crate::transport::lookup::sh::Basis;

/// Who sums what.
#[derive(Debug)]
pub(super) struct Shares {
    cluster: Cluster,
    bricks: Bricks,
    /// For each rank the first of its layers of bricks; one more is the end.
    cuts: Vec<u32>,
}

impl Shares {
    /// Gives each rank layers with about as many records, by those of a round. `first` is the round's first chunk.
    pub(super) fn new(cluster: Cluster, bricks: Bricks, replays: &[Replays], first: usize) -> Self {
        let [across, down, layers] = bricks.count;
        let of_layer = |z: u32| {
            let own = replays.iter().enumerate().filter(|(i, _)| cluster.owns(first + i));
            own.map(|(_, r)| r.count(z * across * down..(z + 1) * across * down) as u64)
                .sum()
        };
        let own: Vec<u64> = (0..layers).map(of_layer).collect();
        let all = cluster.gather(&own);
        let count = |z: usize| all.iter().skip(z).step_by(layers as usize).sum::<u64>();
        let counts: Vec<u64> = (0..layers as usize).map(count).collect();
        let total: u64 = counts.iter().sum();
        let size = cluster.size() as u64;
        let (mut cuts, mut passed) = (vec![0], 0);
        for (z, count) in (0..).zip(&counts) {
            // A layer belongs to the rank whose part its middle lies in.
            while (cuts.len() as u64) < size && (2 * passed + count) * size >= 2 * total * cuts.len() as u64 {
                cuts.push(z);
            }
            passed += count;
        }
        cuts.resize(cluster.size(), layers);
        cuts.push(layers);
        Self { cluster, bricks, cuts }
    }

    /// The bricks whose records a rank needs.
    fn needed(&self, rank: usize) -> Range<u32> {
        let [across, down, layers] = self.bricks.count;
        let (begin, end) = (self.cuts[rank], self.cuts[rank + 1]);
        if begin == end {
            return 0..0;
        }
        let layer = across * down;
        begin.saturating_sub(1) * layer..(end + 1).min(layers) * layer
    }

    /// The bricks whose records this rank sums.
    pub(super) fn bricks(&self) -> Range<u32> {
        self.needed(self.cluster.rank())
    }

    /// Sends the records of a round to those who need them; in the place of chunks of others come what they have sent.
    pub(super) fn exchange(&self, replays: &mut [Replays], first: usize, needs_emitters: bool) {
        let ranks = self.cluster.size();
        let (mut records, mut starts) = (vec![Vec::<Record>::new(); ranks], vec![Vec::<u32>::new(); ranks]);
        for rank in (0..ranks).filter(|&rank| rank != self.cluster.rank()) {
            let needed = self.needed(rank);
            for (_, replay) in replays.iter().enumerate().filter(|(i, _)| self.cluster.owns(first + i)) {
                replay.pack(needed.clone(), &mut records[rank], &mut starts[rank]);
            }
        }
        let (records, starts) = (self.cluster.all_to_all(&records), self.cluster.all_to_all(&starts));
        let mut places = vec![(0, 0); ranks];
        for (i, replay) in replays
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| !self.cluster.owns(first + i))
        {
            let from = (first + i) % ranks;
            let (record, start) = &mut places[from];
            replay.unpack(
                self.bricks(),
                self.bricks.len(),
                &records[from],
                record,
                &starts[from],
                start,
            );
        }
        if needs_emitters {
            self.exchange_emitters(replays, first);
        }
    }

    /// Has all ranks know the emitters of all chunks.
    fn exchange_emitters(&self, replays: &mut [Replays], first: usize) {
        let own = |i: &usize| self.cluster.owns(first + i);
        let mut counts: Vec<u32> = replays.iter().map(|r| r.emitters.len() as u32).collect();
        self.cluster.assemble_from(&mut counts, 1, first);
        let indices = (0..replays.len()).filter(own);
        let all = indices.flat_map(|i| {
            replays[i]
                .emitters
                .iter()
                .map(|([x, y, z], [r, g, b])| [*x, *y, *z, *r, *g, *b])
        });
        let parts = self.cluster.concat(&all.collect::<Vec<[f32; 6]>>());
        let mut places = vec![0; parts.len()];
        for (i, replay) in replays.iter_mut().enumerate() {
            let from = (first + i) % parts.len();
            let begin = places[from];
            places[from] += counts[i] as usize;
            let these = &parts[from][begin..places[from]];
            replay.emitters = these.iter().map(|&[x, y, z, r, g, b]| ([x, y, z], [r, g, b])).collect();
        }
    }

    /// Has all ranks know the bases of all rays of a round, so many a chunk.
    pub(super) fn exchange_bases(&self, bases: &mut [Basis], of_chunk: usize, first: usize) {
        self.cluster.assemble_from(bases, of_chunk, first);
    }

    /// Replaces the gradients of a grid of this size that this rank does not own by those of their owners.
    pub(super) fn join(&self, size: [u32; 4], gradient: &mut [f32], activity: &mut Activity) {
        if gradient.is_empty() {
            return;
        }
        let blocks = activity.touched();
        let all = self.cluster.gather(&blocks);
        let touched: Vec<bool> = (0..blocks.len())
            .map(|block| {
                all.iter()
                    .skip(block)
                    .step_by(blocks.len())
                    .any(|touched| *touched != 0)
            })
            .collect();
        let [nx, ny, nz, channels] = size.each(|n| n as usize);
        let layer = nx * ny * channels;
        let owner = |z: usize| self.owner_of_layer(z, nz);
        let ranges = |rank: usize| {
            let begin = (0..nz).filter(|&z| owner(z) < rank).count() * layer;
            let end = (0..nz).filter(|&z| owner(z) <= rank).count() * layer;
            let blocks = begin / BLOCK..end.div_ceil(BLOCK);
            let touched = &touched;
            let all = blocks.filter(move |&block| begin < end && touched[block]);
            all.map(move |block| (block * BLOCK).max(begin)..((block + 1) * BLOCK).min(end))
        };
        let mut own = Vec::new();
        for range in ranges(self.cluster.rank()) {
            own.extend_from_slice(&gradient[range]);
        }
        let lengths: Vec<usize> = (0..self.cluster.size())
            .map(|rank| ranges(rank).map(|range| range.len()).sum())
            .collect();
        let parts = self.cluster.concat_lengths(&own, &lengths);
        for (rank, part) in parts
            .iter()
            .enumerate()
            .filter(|(rank, _)| *rank != self.cluster.rank())
        {
            let mut begin = 0;
            for range in ranges(rank) {
                let end = begin + range.len();
                gradient[range].copy_from_slice(&part[begin..end]);
                begin = end;
            }
        }
        activity.touch_blocks(&touched);
    }

    /// The rank that owns a layer of texels of a grid with so many: that of the layer of bricks that holds its centres.
    /// Records that reach a texel are at most one texel from its centre, and bricks are three texels long at least.
    fn owner_of_layer(&self, z: usize, texels: usize) -> usize {
        let p = (z as f32 + 0.5) / texels as f32;
        let [key] = self.bricks.keys(&[[0.0], [0.0], [p]]);
        let [across, down, _] = self.bricks.count;
        let layer = (key >> super::bricks::CELL_BITS) / (across * down);
        self.cuts.partition_point(|cut| *cut <= layer) - 1
    }
}
