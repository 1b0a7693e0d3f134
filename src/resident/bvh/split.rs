//! How a set of primitives is split in two: by the surface-area heuristic over bins (Wald 2007).

use rayon::prelude::*;

use super::bounds::Bounds;
use super::four::Four;
use crate::resident::layout::BLOCK;

/// Most intervals that centres are sorted into along an axis.
const BINS: usize = 16;

/// Sets of at least so many primitives are binned and partitioned by all threads.
const SHARED: usize = 1 << 16;

/// Primitives that a thread takes at once of a shared set.
const CHUNK: usize = 1 << 14;

/// What is known of a set of primitives: the box around them and the box around their centres.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) bounds: Bounds,
    pub(super) centers: Bounds,
}

impl Extent {
    fn empty() -> Self {
        Self {
            bounds: Bounds::empty(),
            centers: Bounds::empty(),
        }
    }

    pub(super) fn of(primitives: &[Bounds]) -> Self {
        let mut extent = Self::empty();
        primitives.iter().for_each(|p| extent.add(p));
        extent
    }

    #[inline(always)]
    fn add(&mut self, primitive: &Bounds) {
        self.bounds.join(primitive);
        self.centers.add(primitive.center());
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        self.bounds.join(&other.bounds);
        self.centers.join(&other.centers);
        self
    }

    /// The extent of a set that may be large.
    pub(super) fn of_many(primitives: &[Bounds]) -> Self {
        let chunks = primitives.par_chunks(CHUNK).map(Self::of);
        chunks.reduce(Self::empty, Self::join)
    }
}

/// Reorders primitives and cuts them where that is cheapest, or in two halves: because `halve` says so, or because
/// no cut divides them. Returns the number of the first part and the extents of both.
pub(super) fn split(
    primitives: &mut [Bounds],
    spare: &mut [Bounds],
    extent: &Extent,
    per_unit: Four,
    room: usize,
    bins: &mut Bins,
) -> (usize, [Extent; 2]) {
    let binning = Binning::new(extent, primitives.len());
    let shared = primitives.len() >= SHARED;
    if shared {
        let chunks = primitives.par_chunks(CHUNK).map(|chunk| {
            let mut bins = Bins::new();
            bins.fill(chunk, &binning);
            bins
        });
        *bins = chunks.reduce(Bins::new, Bins::merge);
    } else {
        bins.fill(primitives, &binning);
    }
    match bins.best_cut(&binning, per_unit) {
        Some(cut) if cut.left.max(primitives.len() - cut.left) <= room => {
            if shared {
                partition_shared(primitives, spare, &binning, &cut)
            } else {
                partition(primitives, &binning, &cut)
            }
        }
        _ => halve(primitives, extent),
    }
}

/// Equal intervals that centres fall into.
#[derive(Debug, Clone, Copy)]
struct Binning {
    low: Four,
    scale: Four,
    bins: usize,
}

impl Binning {
    /// Small sets have few bins: looking for a cut takes a time by their number.
    fn new(extent: &Extent, count: usize) -> Self {
        let bins = BINS.min(4 + count / 16);
        let [x, y, z] = extent.centers.extent().map(|e| {
            // Slightly less than the number of bins, so that the last centre is in the last.
            let scale = 0.9999 * bins as f32 / e;
            if e > 0.0 && scale.is_finite() { scale } else { 0.0 }
        });
        Self {
            low: extent.centers.low,
            scale: Four::new([x, y, z, 0.0]),
            bins,
        }
    }

    /// The bin along each axis.
    #[inline(always)]
    fn places(&self, primitive: &Bounds) -> Four {
        primitive.center().sub(self.low).mul(self.scale)
    }

    /// The bin along an axis of what lies at one of [`Self::places`].
    #[inline(always)]
    fn bin(place: i32) -> usize {
        // What is not a number becomes a negative integer.
        (place as u32 as usize).min(BINS - 1)
    }

    /// Whether a primitive lies to the left of a cut.
    #[inline(always)]
    fn is_left(&self, cut: &Cut, primitive: &Bounds) -> bool {
        self.places(primitive).lt(Four::splat(cut.bin as f32)) >> cut.axis & 1 == 1
    }
}

/// What lies in the bins along each axis.
pub(super) struct Bins {
    bounds: [[Bounds; BINS]; 3],
    counts: [[u32; BINS]; 3],
}

/// A plane between two bins of an axis: what lies in bins below `bin` goes left.
struct Cut {
    axis: usize,
    bin: usize,
    /// Primitives to the left.
    left: usize,
}

impl Bins {
    pub(super) fn new() -> Self {
        Self {
            bounds: [[Bounds::empty(); BINS]; 3],
            counts: [[0; BINS]; 3],
        }
    }

    /// Forgets what was in the bins and sorts these primitives into them.
    fn fill(&mut self, primitives: &[Bounds], binning: &Binning) {
        for axis in 0..3 {
            self.bounds[axis][..binning.bins].fill(Bounds::empty());
            self.counts[axis][..binning.bins].fill(0);
        }
        for primitive in primitives {
            let at = binning.places(primitive).truncate();
            for axis in 0..3 {
                let bin = Binning::bin(at[axis]).min(binning.bins - 1);
                self.bounds[axis][bin].join(primitive);
                self.counts[axis][bin] += 1;
            }
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for axis in 0..3 {
            for bin in 0..BINS {
                self.bounds[axis][bin].join(&other.bounds[axis][bin]);
                self.counts[axis][bin] += other.counts[axis][bin];
            }
        }
        self
    }

    /// The cut with the least expected number of tested blocks; none if all centres are in one bin of every axis.
    fn best_cut(&self, binning: &Binning, per_unit: Four) -> Option<Cut> {
        let tests = |bounds: &Bounds, count: u32| bounds.area(per_unit) * count.div_ceil(BLOCK as u32) as f32;
        let scale = binning.scale.array();
        let (mut best, mut least) = (None, f32::INFINITY);
        for axis in (0..3).filter(|&axis| scale[axis] > 0.0) {
            let (bounds, counts) = (&self.bounds[axis], &self.counts[axis]);
            let mut right = [f32::INFINITY; BINS];
            let (mut sum, mut count) = (Bounds::empty(), 0);
            for bin in (1..binning.bins).rev() {
                sum.join(&bounds[bin]);
                count += counts[bin];
                if count > 0 {
                    right[bin] = tests(&sum, count);
                }
            }
            let (mut sum, mut count) = (Bounds::empty(), 0);
            for bin in 1..binning.bins {
                sum.join(&bounds[bin - 1]);
                count += counts[bin - 1];
                // Without primitives on the left there is no sum but a product of infinity and zero.
                if count == 0 {
                    continue;
                }
                let cost = tests(&sum, count) + right[bin];
                if cost < least {
                    least = cost;
                    best = Some(Cut {
                        axis,
                        bin,
                        left: count as usize,
                    });
                }
            }
        }
        best
    }
}

/// Partitions in place.
fn partition(primitives: &mut [Bounds], binning: &Binning, cut: &Cut) -> (usize, [Extent; 2]) {
    let goes_left = |p: &Bounds| binning.is_left(cut, p);
    let [mut left, mut right] = [Extent::empty(); 2];
    let (mut first, mut end) = (0, primitives.len());
    loop {
        while first < end && goes_left(&primitives[first]) {
            left.add(&primitives[first]);
            first += 1;
        }
        while first < end && !goes_left(&primitives[end - 1]) {
            right.add(&primitives[end - 1]);
            end -= 1;
        }
        if first == end {
            return (first, [left, right]);
        }
        primitives.swap(first, end - 1);
    }
}

/// Partitions by way of the spare array: every chunk knows where its parts go from the numbers of all chunks.
fn partition_shared(
    primitives: &mut [Bounds],
    spare: &mut [Bounds],
    binning: &Binning,
    cut: &Cut,
) -> (usize, [Extent; 2]) {
    let goes_left = |p: &Bounds| binning.is_left(cut, p);
    let counts: Vec<usize> = primitives
        .par_chunks(CHUNK)
        .map(|chunk| chunk.iter().filter(|p| goes_left(p)).count())
        .collect();
    let spare = &mut spare[..primitives.len()];
    let (mut lefts, mut rights) = spare.split_at_mut(cut.left);
    let mut places = Vec::with_capacity(counts.len());
    for (chunk, &count) in primitives.chunks(CHUNK).zip(&counts) {
        let (left, rest) = lefts.split_at_mut(count);
        let (right, others) = rights.split_at_mut(chunk.len() - count);
        (lefts, rights) = (rest, others);
        places.push((left, right));
    }
    let chunks = primitives.par_chunks(CHUNK).zip(places);
    let extents = chunks.map(|(chunk, (left, right))| {
        let [mut lefts, mut rights] = [Extent::empty(); 2];
        let (mut l, mut r) = (0, 0);
        for p in chunk {
            if goes_left(p) {
                lefts.add(p);
                left[l] = *p;
                l += 1;
            } else {
                rights.add(p);
                right[r] = *p;
                r += 1;
            }
        }
        [lefts, rights]
    });
    let extents = extents.reduce(|| [Extent::empty(); 2], |[a, b], [c, d]| [a.join(c), b.join(d)]);
    primitives
        .par_chunks_mut(CHUNK)
        .zip(spare.par_chunks(CHUNK))
        .for_each(|(to, from)| to.copy_from_slice(from));
    (cut.left, extents)
}

/// Cuts primitives into halves by their centres along the axis on which these lie farthest apart.
fn halve(primitives: &mut [Bounds], extent: &Extent) -> (usize, [Extent; 2]) {
    let extents = extent.centers.extent();
    let axis = (0..3).fold(0, |best, axis| if extents[axis] > extents[best] { axis } else { best });
    let middle = primitives.len() / 2;
    primitives.select_nth_unstable_by(middle, |a, b| {
        let [x, y] = [a, b].map(|p| p.center().array()[axis]);
        x.total_cmp(&y).then(a.number().cmp(&b.number()))
    });
    let (left, right) = primitives.split_at(middle);
    (middle, [Extent::of(left), Extent::of(right)])
}
