//! How a set of primitives is split in two: by the surface-area heuristic over bins (Wald 2007).

use rayon::prelude::*;

use super::bounds::Bounds;
use super::four::Four;
use crate::each::EachEntry;
use crate::resident::layout::BLOCK;

/// Most intervals that centres are sorted into along an axis.
const BINS: usize = 16;

/// Sets of at least this many primitives are binned and partitioned by all threads.
const SHARED: usize = 1 << 16;

/// Primitives of a shared set that a thread takes at once.
const CHUNK: usize = 1 << 14;

/// The box around a set of primitives, and the box around their centres.
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

    /// The extent of a large set, by all threads.
    pub(super) fn of_many(primitives: &[Bounds]) -> Self {
        let chunks = primitives.par_chunks(CHUNK).map(Self::of);
        chunks.reduce(Self::empty, Self::join)
    }
}

/// Reorders primitives and cuts them where that is cheapest; in two halves if that leaves more than `room` of them on a
/// side, or if no cut divides them. Returns the number of primitives in the first part and the extents of both.
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

/// Equal intervals along each axis, into which primitives are sorted by their centres.
#[derive(Debug, Clone, Copy)]
struct Binning {
    low: Four,
    scale: Four,
    bins: usize,
}

impl Binning {
    /// Small sets have few bins, since the search for a cut takes time in proportion to the bins.
    fn new(extent: &Extent, count: usize) -> Self {
        let bins = BINS.min(4 + count / 16);
        let [x, y, z] = extent.centers.extent().each(|e| {
            // Slightly less than the number of bins, so that the last centre is in the last.
            let scale = 0.9999 * bins as f32 / e;
            if scale.is_finite() { scale } else { 0.0 }
        });
        Self {
            low: extent.centers.low,
            scale: Four::new([x, y, z, 0.0]),
            bins,
        }
    }

    /// The centre's place along each axis, in units of bins.
    #[inline(always)]
    fn places(&self, primitive: &Bounds) -> Four {
        primitive.center().sub(self.low).mul(self.scale)
    }

    /// The bin along an axis of a truncated entry of [`Self::places`].
    #[inline(always)]
    fn bin(place: i32) -> usize {
        // NaN was truncated to a negative integer; it occurs only along axes whose bins are not looked at.
        (place as u32 as usize).min(BINS - 1)
    }

    /// Whether a primitive lies to the left of a cut.
    #[inline(always)]
    fn is_left(&self, cut: &Cut, primitive: &Bounds) -> bool {
        self.places(primitive).lt(Four::splat(cut.bin as f32)) >> cut.axis & 1 == 1
    }
}

/// For each bin along each axis the box around its primitives, and their number.
pub(super) struct Bins {
    bounds: [[Bounds; BINS]; 3],
    counts: [[u32; BINS]; 3],
}

/// A plane between two bins of an axis: primitives in bins below `bin` go left.
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

    /// Empties the bins and sorts these primitives into them.
    fn fill(&mut self, primitives: &[Bounds], binning: &Binning) {
        for axis in 0..3 {
            self.bounds[axis][..binning.bins].fill(Bounds::empty());
            self.counts[axis][..binning.bins].fill(0);
        }
        for primitive in primitives {
            let at = binning.places(primitive).truncate();
            for axis in 0..3 {
                let bin = Binning::bin(at[axis]);
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

    /// The cut with the least expected number of tested blocks; None if all centres are in one bin of every axis.
    fn best_cut(&self, binning: &Binning, per_unit: Four) -> Option<Cut> {
        let tests = |bounds: &Bounds, count: u32| bounds.area(per_unit) * count.div_ceil(BLOCK as u32) as f32;
        let scale = binning.scale.array();
        let (mut best, mut least) = (None, f32::INFINITY);
        // The scale of the fourth lane is zero, as is that of an axis along which all centres coincide.
        for axis in (0..scale.len()).filter(|&axis| scale[axis] > 0.0) {
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
                // The area of an empty left side is infinite, and infinity times zero blocks is NaN.
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

/// Partitions by way of the spare array: where a chunk's parts go follows from the counts of all chunks.
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

/// Cuts primitives into halves at the median of their centres, along the axis on which these lie farthest apart.
fn halve(primitives: &mut [Bounds], extent: &Extent) -> (usize, [Extent; 2]) {
    let extents = extent.centers.extent();
    let axis = (1..3).fold(0, |best, axis| if extents[axis] > extents[best] { axis } else { best });
    let middle = primitives.len() / 2;
    primitives.select_nth_unstable_by(middle, |a, b| {
        let [x, y] = [a, b].each(|p| p.center().array()[axis]);
        x.total_cmp(&y).then(a.number().cmp(&b.number()))
    });
    let (left, right) = primitives.split_at(middle);
    (middle, [Extent::of(left), Extent::of(right)])
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;
    use rand_pcg::Pcg32;

    use super::*;

    fn points(centers: &[[f32; 3]]) -> Vec<Bounds> {
        let numbered = |(center, number): (&[f32; 3], u32)| Bounds::around(&[*center]).numbered(number);
        centers.iter().zip(0..).map(numbered).collect()
    }

    /// Boxes of edges up to `edge` in a space that is longest along y.
    fn boxes(count: usize, edge: f32) -> Vec<Bounds> {
        let mut random = Pcg32::new(9, 4);
        let mut uniform = || (random.next_u32() >> 8) as f32 / (1 << 24) as f32;
        let numbers = 0..count as u32;
        numbers
            .map(|number| {
                let low = [1.0, 3.0, 2.0].map(|length| length * uniform());
                let high = low.map(|x| x + edge * uniform());
                Bounds::around(&[low, high]).numbered(number)
            })
            .collect()
    }

    fn number_of_bins(count: usize) -> usize {
        Binning::new(&Extent::of(&points(&[[0.0; 3], [1.0; 3]])), count).bins
    }

    /// Four bins for nine centres from 0 to 8: the border between the first two is at 2 and a little, so that what
    /// stands on it is in the lower one, and so is the last centre. All are in the first bin of an axis without extent.
    #[test]
    fn centres_fall_into_equal_bins() {
        let centers: Vec<[f32; 3]> = (0..9).map(|i| [i as f32, 7.0, (i % 3) as f32]).collect();
        let primitives = points(&centers);
        let binning = Binning::new(&Extent::of(&primitives), 9);
        let mut bins = Bins::new();
        // What was in the bins before is forgotten.
        bins.fill(&primitives[..4], &binning);
        bins.fill(&primitives, &binning);
        assert_eq!(bins.counts[0][..4], [3, 2, 2, 2]);
        assert_eq!(bins.counts[1][..4], [9, 0, 0, 0]);
        assert_eq!(bins.counts[2][..4], [3, 3, 0, 3]);
        let of_x = bins.bounds[0].map(|b| b.corners().map(|corner| corner[0]));
        assert_eq!(of_x[..4], [[0.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]);
        let cut = |axis, bin| Cut { axis, bin, left: 0 };
        let left = |axis, bin| {
            primitives
                .iter()
                .filter(|p| binning.is_left(&cut(axis, bin), p))
                .count()
        };
        assert_eq!([1, 2, 3].map(|bin| left(0, bin)), [3, 5, 7]);
        assert_eq!([1, 2, 3].map(|bin| left(2, bin)), [3, 6, 6]);
        assert_eq!(left(1, 1), 9);
        assert_eq!([0, 15, 16, 191, 192, 9999].map(number_of_bins), [4, 4, 5, 15, 16, 16]);
        assert_eq!([i32::MIN, -1, 0, 3, 16].map(Binning::bin), [15, 15, 0, 3, 15]);
    }

    /// Expected tests of blocks by the definition: the areas of both sides' boxes times their blocks of four.
    fn cost(sides: [&[&Bounds]; 2]) -> f32 {
        let side = |side: &[&Bounds]| {
            let corners: Vec<[f32; 3]> = side.iter().flat_map(|b| b.corners()).collect();
            let edge = |a: usize| {
                let along = corners.iter().map(|c| c[a]);
                along.clone().fold(f32::MIN, f32::max) - along.fold(f32::MAX, f32::min)
            };
            (edge(0) * edge(1) + edge(1) * edge(2) + edge(2) * edge(0)) * side.len().div_ceil(4) as f32
        };
        side(sides[0]) + side(sides[1])
    }

    /// Of all cuts between bins the cheapest is taken, in any unit of length, and its `left` is the number of primitives to
    /// its left; for small sets, and one that threads share.
    #[test]
    fn the_cheapest_cut_is_taken() {
        for (count, edge) in [(3, 0.5), (5, 0.1), (40, 0.5), (300, 0.1), (SHARED + 5 * CHUNK / 2, 0.3)] {
            let mut primitives = boxes(count, edge);
            let extent = Extent::of_many(&primitives);
            let binning = Binning::new(&extent, count);
            let mut bins = Bins::new();
            bins.fill(&primitives, &binning);
            let per_unit = 0.125;
            let cut = bins.best_cut(&binning, Four::splat(per_unit)).expect("there is a cut");
            let cost_of = |cut: &Cut| {
                let (left, right): (Vec<_>, Vec<_>) = primitives.iter().partition(|p| binning.is_left(cut, p));
                (!left.is_empty() && !right.is_empty()).then(|| cost([&left, &right]))
            };
            let all = (0..3).flat_map(|axis| (1..binning.bins).map(move |bin| Cut { axis, bin, left: 0 }));
            let least = all.filter_map(|cut| cost_of(&cut)).fold(f32::INFINITY, f32::min);
            let found = cost_of(&cut).expect("both sides hold something");
            assert!(found <= 1.0001 * least, "{found}, not {least} of {count}");
            let number = |p: &&Bounds| p.number();
            let mut expected: Vec<u32> = primitives
                .iter()
                .filter(|p| binning.is_left(&cut, p))
                .map(|p| p.number())
                .collect();
            assert_eq!(cut.left, expected.len());
            let mut spare = primitives.clone();
            let (middle, extents) = split(
                &mut primitives,
                &mut spare,
                &extent,
                Four::splat(per_unit),
                count,
                &mut bins,
            );
            let mut left: Vec<u32> = primitives[..middle].iter().map(|p| number(&p)).collect();
            left.sort_unstable();
            expected.sort_unstable();
            assert_eq!(left, expected);
            let mut everything: Vec<u32> = primitives.iter().map(|p| number(&p)).collect();
            everything.sort_unstable();
            assert!(everything.into_iter().eq(0..count as u32));
            for (extent, part) in extents.iter().zip([&primitives[..middle], &primitives[middle..]]) {
                let expected = Extent::of(part);
                assert_eq!(extent.bounds.corners(), expected.bounds.corners());
                assert_eq!(extent.centers.corners(), expected.centers.corners());
            }
        }
    }

    /// Nothing divides centres that coincide; a cut that would leave more than there is room for is not taken either.
    #[test]
    fn what_no_cut_divides_is_halved() {
        let same = points(&[[2.0, 3.0, 4.0]; 7]);
        let extent = Extent::of(&same);
        let binning = Binning::new(&extent, 7);
        let mut bins = Bins::new();
        bins.fill(&same, &binning);
        assert!(bins.best_cut(&binning, Four::splat(1.0)).is_none());
        let halves = |mut primitives: Vec<Bounds>, room| {
            let extent = Extent::of(&primitives);
            let (middle, _) = split(
                &mut primitives,
                &mut [],
                &extent,
                Four::splat(0.1),
                room,
                &mut Bins::new(),
            );
            let mut numbers: Vec<u32> = primitives.iter().map(Bounds::number).collect();
            numbers[..middle].sort_unstable();
            (middle, numbers[..middle].to_vec())
        };
        assert_eq!(halves(same, 7), (3, vec![0, 1, 2]));
        // A primitive far away along x is cut off if `room` allows the other six; else the halves are by the longest axis.
        let mut row: Vec<[f32; 3]> = (0..6).map(|i| [0.1 * i as f32, 0.5, 0.0]).collect();
        row.push([50.0, 0.0, 0.0]);
        assert_eq!(halves(points(&row), 6), (6, vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(halves(points(&row), 5), (3, vec![0, 1, 2]));
        for (axis, order) in [(0, [4, 1]), (1, [2, 3]), (2, [0, 4])] {
            let mut centers = [
                [1.0, 0.4, 0.0],
                [0.2, 0.6, 0.5],
                [0.9, 0.0, 0.6],
                [0.5, 0.1, 0.7],
                [0.0, 0.9, 0.1],
            ];
            centers.iter_mut().for_each(|center| center[axis] *= 3.0);
            assert_eq!(halves(points(&centers), 0).1, {
                let mut order = order.to_vec();
                order.sort_unstable();
                order
            });
        }
    }

    /// Bins that are filled in two parts and merged are those of the whole.
    #[test]
    fn bins_are_merged_bin_by_bin() {
        let all = boxes(300, 0.1);
        let binning = Binning::new(&Extent::of(&all), all.len());
        let filled = |primitives: &[Bounds]| {
            let mut bins = Bins::new();
            bins.fill(primitives, &binning);
            bins
        };
        let (merged, whole) = (filled(&all[..120]).merge(filled(&all[120..])), filled(&all));
        assert_eq!(merged.counts, whole.counts);
        for axis in 0..3 {
            for bin in 0..BINS {
                let [a, b] = [&merged, &whole].map(|bins| bins.bounds[axis][bin].corners());
                assert_eq!(a, b, "axis {axis}, bin {bin}");
            }
        }
    }
}
