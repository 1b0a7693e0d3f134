//! Summing a field's gradient on several ranks. Each rank owns the texels in a range along z, in the grids of densities and of
//! colours, and receives the records of all layers of bricks that reach its texels. It sums them in the order in which a single
//! process does. Its sums for texels that it does not own are incomplete, and are never read.

use std::ops::Range;

use super::bricks::Bricks;
use super::records::{Layers, Record, Replays};
use super::refine::OfView;
use crate::cluster::{Cluster, Plain};
use crate::device::cpu::step::BLOCK;
use crate::each::EachEntry;
use crate::transport::lookup::sh::Basis;

/// The ranges of texels that ranks own and sum.
#[derive(Debug)]
pub(super) struct Shares {
    cluster: Cluster,
    bricks: Bricks,
    /// For each rank the place along z where its texels begin, in bricks; the last element is the end.
    cuts: Vec<f64>,
    /// How far records reach along z, in bricks: a texel of the coarser grid.
    reach: f64,
}

impl Shares {
    /// Gives each rank texels of about the same weight; `weights` are those of the layers of bricks. Each cut keeps a texel or
    /// more from both ends of the layer that it falls in, so that because of it no other layer is summed by two ranks.
    pub(super) fn new(cluster: Cluster, bricks: Bricks, texels: u32, weights: &[u64]) -> Self {
        let reach = 1.01 * f64::from(bricks.count[2]) / f64::from(texels);
        let total: u64 = weights.iter().sum();
        let (mut cuts, mut passed) = (vec![0.0], 0);
        for (z, &weight) in weights.iter().enumerate() {
            let target = |rank: usize| total as f64 * rank as f64 / cluster.size() as f64;
            while cuts.len() < cluster.size() && (passed + weight) as f64 >= target(cuts.len()) {
                let within = (target(cuts.len()) - passed as f64) / weight.max(1) as f64;
                cuts.push(z as f64 + within.max(reach).min(1.0 - reach));
            }
            passed += weight;
        }
        cuts.resize(cluster.size(), f64::INFINITY);
        cuts.push(f64::INFINITY);
        Self {
            cluster,
            bricks,
            cuts,
            reach,
        }
    }

    /// Whether these shares divide `bricks`.
    pub(super) fn are_of(&self, bricks: Bricks) -> bool {
        self.bricks == bricks
    }

    /// The largest weight that a rank has.
    pub(super) fn heaviest(&self, weights: &[u64]) -> f64 {
        let of_layer = |cut: &[f64], z: usize| (cut[1].min(z as f64 + 1.0) - cut[0].max(z as f64)).max(0.0);
        let of_rank = |cut: &[f64]| {
            let layers = weights.iter().enumerate();
            layers.map(|(z, weight)| *weight as f64 * of_layer(cut, z)).sum()
        };
        self.cuts.windows(2).map(of_rank).fold(0.0, f64::max)
    }

    /// The bricks whose records a rank needs.
    fn needed(&self, rank: usize) -> Range<u32> {
        let [across, down, layers] = self.bricks.count;
        let (begin, end) = (self.cuts[rank], self.cuts[rank + 1]);
        if begin >= end {
            return 0..0;
        }
        let first = (begin - self.reach).max(0.0) as u32;
        let last = (end + self.reach).min(f64::from(layers) - 1.0) as u32;
        let layer = across * down;
        first * layer..(last + 1) * layer
    }

    /// The bricks whose records this rank sums.
    pub(super) fn bricks(&self) -> Range<u32> {
        self.needed(self.cluster.rank())
    }

    /// The layers of texels that this rank sums of a brick, if other ranks sum the rest; None if it sums all of it. Both grids
    /// have `texels` layers.
    pub(super) fn part_of(&self, brick: u32, texels: u32) -> Option<Layers> {
        let rank = self.cluster.rank();
        let mut others = (0..self.cluster.size()).filter(|&other| other != rank);
        let is_shared = others.any(|other| self.needed(other).contains(&brick));
        is_shared.then(|| {
            let begins = self.first_layers(texels as usize);
            let wanted = begins[rank] as u32..begins[rank + 1] as u32;
            Layers { texels, wanted }
        })
    }

    /// Sends the records of a round to the ranks that need them; `replays` of other ranks' chunks become what these have sent.
    pub(super) fn exchange(&self, replays: &mut [Replays], first: usize) {
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
    }

    /// Gives all ranks the bases of all rays of a round, `of_chunk` for each chunk.
    pub(super) fn exchange_bases(&self, bases: &mut [Basis], of_chunk: usize, first: usize) {
        self.cluster.assemble_from(bases, of_chunk, first);
    }

    /// For each rank the first of a grid's entries that it owns; the last element is the number of entries.
    pub(super) fn entries(&self, size: [u32; 4]) -> Vec<usize> {
        let [nx, ny, nz, channels] = size.each(|n| n as usize);
        let layers = self.first_layers(nz).into_iter();
        layers.map(|below| below * nx * ny * channels).collect()
    }

    /// For each rank the first of a grid's `texels` layers that it owns; the last element is `texels`.
    fn first_layers(&self, texels: usize) -> Vec<usize> {
        let is_below = |z: usize, rank: usize| place_in_bricks(self.bricks, z, texels) < self.cuts[rank];
        let below = |rank: usize| (0..texels).filter(|&z| is_below(z, rank)).count();
        (0..=self.cluster.size()).map(below).collect()
    }
}

/// Where the centres of a layer of texels lie along z, in bricks.
fn place_in_bricks(bricks: Bricks, z: usize, texels: usize) -> f64 {
    (z as f64 + 0.5) / texels as f64 * f64::from(bricks.count[2]) + f64::from(bricks.shift[2])
}

/// Counts the changed blocks of a grid's entries: `counts` has a number for each layer of bricks, and a block counts for the
/// layer in which it begins.
pub(super) fn count_changed(bricks: Bricks, size: [u32; 4], changed: &[u8], counts: &mut [u64]) {
    let [nx, ny, nz, channels] = size.each(|n| n as usize);
    let last = counts.len() - 1;
    let layer = |z: usize| (place_in_bricks(bricks, z, nz) as usize).min(last);
    let layers: Vec<usize> = (0..nz).map(layer).collect();
    for (block, _) in changed.iter().enumerate().filter(|(_, changed)| **changed != 0) {
        counts[layers[block * BLOCK / (nx * ny * channels)]] += 1;
    }
}

/// Weight of all records (which are summed), and of all changed blocks (which are stepped), where all texels weigh 1.
const OF_WORK: u64 = 4;

/// A rank keeps at most about this many times its even share of all moments.
pub(in crate::device::cpu) const MOST_SHARES: u64 = 2 * OF_WORK + 1;

/// The weight of each layer of bricks.
pub(super) fn weights(records: &[u64], changed: &[u64]) -> Vec<u64> {
    const WHOLE: u64 = 1 << 24;
    let part = |counts: &[u64], z: usize| counts[z] * WHOLE / counts.iter().sum::<u64>().max(1);
    let layers = records.len();
    (0..layers)
        .map(|z| OF_WORK * (part(records, z) + part(changed, z)) + WHOLE / layers as u64)
        .collect()
}

/// Gives all ranks the derivatives by the emitter and by the views from the rays of all chunks, each if it is asked for.
/// `first` is the round's first chunk.
pub(super) fn exchange_lists(cluster: Cluster, replays: &mut [Replays], first: usize, [emitters, views]: [bool; 2]) {
    if emitters {
        let pack = |([x, y, z], [r, g, b]): &([f32; 3], [f32; 3])| [*x, *y, *z, *r, *g, *b];
        let unpack = |[x, y, z, r, g, b]: [f32; 6]| ([x, y, z], [r, g, b]);
        exchange_list(cluster, replays, first, |replay| &mut replay.emitters, pack, unpack);
    }
    if views {
        let pack =
            |(sensor, [a, b, c, d, e, f, g, h]): &OfView| [f32::from_bits(*sensor), *a, *b, *c, *d, *e, *f, *g, *h];
        let unpack = |[sensor, a, b, c, d, e, f, g, h]: [f32; 9]| (sensor.to_bits(), [a, b, c, d, e, f, g, h]);
        exchange_list(cluster, replays, first, |replay| &mut replay.views, pack, unpack);
    }
}

/// Gives all ranks one of the lists of every chunk.
fn exchange_list<E, P: Plain>(
    cluster: Cluster,
    replays: &mut [Replays],
    first: usize,
    list: impl Fn(&mut Replays) -> &mut Vec<E>,
    pack: impl Fn(&E) -> P,
    unpack: impl Fn(P) -> E,
) {
    let mut counts: Vec<u32> = replays.iter_mut().map(|replay| list(replay).len() as u32).collect();
    cluster.assemble_from(&mut counts, 1, first);
    let mut own = Vec::new();
    for (_, replay) in replays.iter_mut().enumerate().filter(|(i, _)| cluster.owns(first + i)) {
        own.extend(list(replay).iter().map(&pack));
    }
    let parts = cluster.concat(&own);
    let mut places = vec![0; parts.len()];
    for (i, replay) in replays.iter_mut().enumerate() {
        let from = (first + i) % parts.len();
        let begin = places[from];
        places[from] += counts[i] as usize;
        *list(replay) = parts[from][begin..places[from]].iter().map(|e| unpack(*e)).collect();
    }
}
