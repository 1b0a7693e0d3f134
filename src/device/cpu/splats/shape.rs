//! Projected splats, and the blocks of sixteen pixels of a tile: which of them a splat reaches, and its weights there.

use super::lists::Entry;
use crate::device::cpu::planes::EDGE;
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::each::EachEntry;
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::splats::blend::MAX_WEIGHT;

/// The logarithm to base 2 of [`MIN_WEIGHT`](crate::transport::splats::blend::MIN_WEIGHT).
pub(super) const LEAST: f32 = -7.994_353_4;

/// A bound on the rounding error of an exponent.
const SLACK: f32 = 0.01;

/// A splat whose weight is 2^(log_opacity - u² - v²) with u = a x + b y and v = c y, x and y being pixels from its
/// centre: one line of the cache. Squares cannot cancel, however long and thin the splat is.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Shape {
    pub(super) center: [f32; 2],
    pub(super) a: f32,
    pub(super) b: f32,
    pub(super) c: f32,
    /// The logarithm to base 2 of the opacity.
    pub(super) log_opacity: f32,
    pub(super) color: [f32; 3],
    /// Along the column at x the Gaussian is largest at y = `ridge[0]` x, and along the row at y at x = `ridge[1]` y.
    pub(super) ridge: [f32; 2],
}

impl Shape {
    /// u and v of a point x, y pixels from the centre.
    #[inline(always)]
    fn measured<L: Lanes>(&self, [x, y]: [L; 2]) -> [L; 2] {
        let u = L::splat(self.a).mul_add(x, L::splat(self.b) * y);
        [u, L::splat(self.c) * y]
    }

    /// The logarithm to base 2 of the weight where a point is measured as u and v.
    #[inline(always)]
    fn exponent<L: Lanes>(&self, measured: [L; 2]) -> L {
        exponent(self.log_opacity, measured)
    }
}

/// The logarithm to base 2 of the weight where a point is measured as u and v.
#[inline(always)]
fn exponent<L: Lanes>(log_opacity: f32, [u, v]: [L; 2]) -> L {
    L::splat(log_opacity).sub_product(u, u).sub_product(v, v)
}

/// Columns and rows of a block's pixels.
const COLUMNS: [f32; WIDTH] = [0., 1., 2., 3., 0., 1., 2., 3., 0., 1., 2., 3., 0., 1., 2., 3.];
const ROWS: [f32; WIDTH] = [0., 0., 0., 0., 1., 1., 1., 1., 2., 2., 2., 2., 3., 3., 3., 3.];

/// The blocks of a tile, as vectors of a number a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<L> {
    /// The centre of the tile's first pixel.
    first: [f32; 2],
    /// Columns and rows of a block's pixels, which are those of the tile's blocks as well.
    columns: L,
    rows: L,
}

impl<L: Lanes> Blocks<L> {
    /// `origin` is the tile's corner.
    #[inline(always)]
    pub(super) fn new(origin: [f32; 2]) -> Self {
        Self {
            first: [origin[0] + 0.5, origin[1] + 0.5],
            columns: L::load(&COLUMNS),
            rows: L::load(&ROWS),
        }
    }

    /// Pixels from a splat's centre to the first pixel of each block.
    #[inline(always)]
    fn firsts(&self, shape: &Shape) -> [L; 2] {
        let side = L::splat(EDGE as f32);
        let left = self.columns.mul_add(side, L::splat(self.first[0] - shape.center[0]));
        let top = self.rows.mul_add(side, L::splat(self.first[1] - shape.center[1]));
        [left, top]
    }

    /// Blocks that hold a pixel at which the splat's weight is not left out, as bits; rather a block too many. The
    /// exponent is concave, so that its maximum over a rectangle of pixels is at the centre, if that is inside, else on
    /// one of the two sides towards the centre: there as near to the ridge as the side goes.
    #[inline(always)]
    pub(super) fn reached(&self, shape: &Shape) -> u16 {
        let (zero, last) = (L::splat(0.0), L::splat((EDGE - 1) as f32));
        let [left, top] = self.firsts(shape);
        let (right, bottom) = (left + last, top + last);
        let x = zero.min(right).max(left);
        let y = zero.min(bottom).max(top);
        let along_column = (x * L::splat(shape.ridge[0])).min(bottom).max(top);
        let along_row = (y * L::splat(shape.ridge[1])).min(right).max(left);
        let by_column = shape.exponent(shape.measured([x, along_column]));
        let highest = by_column.max(shape.exponent(shape.measured([along_row, y])));
        L::bits(highest.at_least(L::splat(LEAST - SLACK))) as u16
    }

    /// The splat as the tile's pixels see it.
    #[inline(always)]
    pub(super) fn see(&self, shape: &Shape, seen: &mut Seen) {
        let within = shape.measured([self.columns, self.rows]);
        let firsts = shape.measured(self.firsts(shape));
        for axis in 0..2 {
            within[axis].store(&mut seen.within[axis]);
            firsts[axis].store(&mut seen.first[axis]);
        }
        (seen.log_opacity, seen.color) = (shape.log_opacity, shape.color);
    }
}

/// A splat evaluated for the pixels of a tile. A pixel's u and v are those of its block's first pixel plus differences that
/// depend on the pixel's place in the block alone.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Seen {
    /// The differences of u and of v for each pixel of a block.
    within: [[f32; WIDTH]; 2],
    /// u and v of each block's first pixel.
    first: [[f32; WIDTH]; 2],
    log_opacity: f32,
    pub(super) color: [f32; 3],
}

impl Seen {
    /// A placeholder, until [`Blocks::see`] writes it.
    pub(super) const UNSEEN: Self = Self {
        within: [[0.0; WIDTH]; 2],
        first: [[0.0; WIDTH]; 2],
        log_opacity: 0.0,
        color: [0.0; 3],
    };

    /// u and v of a block's pixels.
    #[inline(always)]
    pub(super) fn measured<L: Lanes>(&self, block: usize) -> [L; 2] {
        [0, 1].each(|axis| L::load(&self.within[axis]) + L::splat(self.first[axis][block]))
    }

    /// A part of [`Self::measured`].
    #[inline(always)]
    pub(super) fn measured_part<L: Lanes>(&self, block: usize, part: usize) -> [L; 2] {
        [0, 1].each(|axis| L::load(&self.within[axis]).part(part) + L::splat(self.first[axis][block]))
    }

    /// The weight where a point is measured as u and v, at most [`MAX_WEIGHT`], and zero where it is left out.
    #[inline(always)]
    pub(super) fn weight<L: Lanes>(&self, measured: [L; 2]) -> L {
        let exponent = exponent(self.log_opacity, measured);
        let is_blended = exponent.at_least(L::splat(LEAST));
        exponent.exp2().min(L::splat(MAX_WEIGHT)).keep(is_blended)
    }
}

/// The numbers of the bits that are set, from the lowest on; all are below `N`.
#[inline(always)]
pub(super) fn bits<const N: usize>(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(
        #[inline(always)]
        move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize % N)?;
            word &= word - 1;
            Some(bit)
        },
    )
}

/// Prefetches the shape of an entry of a list, if the list has that entry.
#[inline(always)]
pub(super) fn bring_shape(shapes: &[Shape], list: &[Entry], entry: usize) {
    if let Some(entry) = list.get(entry) {
        prefetch_line(shapes.as_ptr().wrapping_add(usize::from(entry.splat)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::project::tests::{project_one, some_splats};
    use super::*;
    use crate::device::cpu::planes::{ACROSS, BLOCKS};
    use crate::device::cpu::vector::lanes::PlainLanes;
    use crate::transport::splats::blend::MIN_WEIGHT;
    use crate::transport::splats::splat::Splat;

    #[test]
    fn least_is_the_logarithm_of_the_least_weight() {
        assert_eq!(LEAST, f64::from(MIN_WEIGHT).log2() as f32);
    }

    /// Blocks in which a splat's weight is not left out are reached, and few others: the bits are compared with all
    /// weights, round splats and needles, in the tile and beside it.
    #[test]
    fn blocks_are_reached_where_weights_are_not_left_out() {
        let (mut reached, mut needless) = (0, 0);
        let blocks = Blocks::<PlainLanes>::new([32.0, 48.0]);
        for (i, of) in some_splats(4000).iter().enumerate() {
            let splat = Splat::project(of, 64.0);
            let bits = blocks.reached(&project_one(of, 64.0).0);
            for block in 0..BLOCKS {
                let is_seen = (0..WIDTH).any(|lane| {
                    let x = 32.5 + (block % ACROSS * EDGE) as f32 + COLUMNS[lane];
                    let y = 48.5 + (block / ACROSS * EDGE) as f32 + ROWS[lane];
                    splat.eval([x, y]) >= MIN_WEIGHT
                });
                let is_reached = bits >> block & 1 == 1;
                assert!(is_reached || !is_seen, "splat {i}, block {block}: {of:?}");
                reached += u32::from(is_reached);
                needless += u32::from(is_reached && !is_seen);
            }
        }
        // A block between whose pixels an edge or a needle passes is reached needlessly.
        assert!(reached > 10_000 && needless * 20 < reached, "{needless} of {reached}");
    }

    #[test]
    fn bits_are_numbered_from_the_lowest_on() {
        assert_eq!(bits::<16>(0b1000_0000_0010_0101).collect::<Vec<_>>(), [0, 2, 5, 15]);
        assert_eq!(bits::<64>(1 << 63 | 2).collect::<Vec<_>>(), [1, 63]);
        assert_eq!(bits::<16>(0).count(), 0);
    }
}
