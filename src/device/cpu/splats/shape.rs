//! Splats as tiles take them, and the blocks of sixteen pixels of a tile: which a splat reaches, and its weights there.

use super::lists::TILE;
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};

/// The logarithm to base 2 of [`MIN_WEIGHT`].
pub(super) const LEAST: f32 = -7.994_353_4;

/// What rounding may do to an exponent.
const SLACK: f32 = 0.01;

/// Edge of a block in pixels.
pub(super) const EDGE: usize = 4;

/// Blocks along an edge of a tile.
pub(super) const ACROSS: usize = TILE / EDGE;

/// Blocks of a tile, as many as lanes, so that all are looked at in one vector.
pub(super) const BLOCKS: usize = ACROSS * ACROSS;
const _: () = assert!(BLOCKS == WIDTH && EDGE * EDGE == WIDTH && ACROSS == EDGE);

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
    /// Where along a column the Gaussian is largest, over the column's x; and along a row, over its y.
    pub(super) ridge: [f32; 2],
}

/// Columns and rows of a block's pixels.
const COLUMNS: [f32; WIDTH] = [0., 1., 2., 3., 0., 1., 2., 3., 0., 1., 2., 3., 0., 1., 2., 3.];
const ROWS: [f32; WIDTH] = [0., 0., 0., 0., 1., 1., 1., 1., 2., 2., 2., 2., 3., 3., 3., 3.];

/// The blocks of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<L> {
    /// The centre of the tile's first pixel.
    first: [f32; 2],
    /// Centres of a block's pixels along x, for each column of blocks, and along y, for each row.
    x: [L; ACROSS],
    y: [L; ACROSS],
    columns: L,
    rows: L,
}

impl<L: Lanes> Blocks<L> {
    /// `origin` is the tile's corner.
    #[inline(always)]
    pub(super) fn new(origin: [f32; 2]) -> Self {
        let (columns, rows) = (L::load(&COLUMNS), L::load(&ROWS));
        let first = [origin[0] + 0.5, origin[1] + 0.5];
        let (mut x, mut y) = ([columns; ACROSS], [rows; ACROSS]);
        for i in 0..ACROSS {
            x[i] = columns + L::splat(first[0] + (EDGE * i) as f32);
            y[i] = rows + L::splat(first[1] + (EDGE * i) as f32);
        }
        Self {
            first,
            x,
            y,
            columns,
            rows,
        }
    }

    /// Blocks that hold a pixel at which the splat's weight is not left out, as bits; rather a block too many. The
    /// exponent is concave, so that its maximum over a rectangle of pixels is at the centre, if that is inside, else on
    /// one of the two sides towards the centre: there as near to the ridge as the side goes.
    #[inline(always)]
    pub(super) fn reached(&self, shape: &Shape) -> u16 {
        let (zero, side, last) = (L::splat(0.0), L::splat(EDGE as f32), L::splat((EDGE - 1) as f32));
        let left = L::splat(self.first[0] - shape.center[0]) + self.columns * side;
        let top = L::splat(self.first[1] - shape.center[1]) + self.rows * side;
        let (right, bottom) = (left + last, top + last);
        let x = zero.min(right).max(left);
        let y = zero.min(bottom).max(top);
        let along_column = (x * L::splat(shape.ridge[0])).min(bottom).max(top);
        let along_row = (y * L::splat(shape.ridge[1])).min(right).max(left);
        let by_column = exponent(shape, measured(shape, [x, along_column]));
        let highest = by_column.max(exponent(shape, measured(shape, [along_row, y])));
        L::bits(highest.at_least(L::splat(LEAST - SLACK))) as u16
    }

    /// The pixels of a block, measured as [`Shape`] says, and the logarithm to base 2 of the splat's weights there.
    #[inline(always)]
    pub(super) fn exponent(&self, shape: &Shape, block: usize) -> ([L; 2], L) {
        let at = self.measured(shape, block);
        (at, exponent(shape, at))
    }

    #[inline(always)]
    pub(super) fn measured(&self, shape: &Shape, block: usize) -> [L; 2] {
        let x = self.x[block % ACROSS] - L::splat(shape.center[0]);
        let y = self.y[block / ACROSS] - L::splat(shape.center[1]);
        measured(shape, [x, y])
    }
}

/// The numbers of the bits that are set, from the lowest on.
#[inline(always)]
pub(super) fn bits(mut word: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(
        #[inline(always)]
        move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize % BLOCKS)?;
            word &= word - 1;
            Some(bit)
        },
    )
}

/// Where a point lies from a splat's centre, measured such that the Gaussian is 2^(-u² - v²).
#[inline(always)]
fn measured<L: Lanes>(shape: &Shape, [x, y]: [L; 2]) -> [L; 2] {
    let u = L::splat(shape.a).mul_add(x, L::splat(shape.b) * y);
    [u, L::splat(shape.c) * y]
}

/// The logarithm to base 2 of the weight.
#[inline(always)]
fn exponent<L: Lanes>(shape: &Shape, [u, v]: [L; 2]) -> L {
    L::splat(shape.log_opacity).sub_product(u, u).sub_product(v, v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::vector::lanes::PlainLanes;
    use crate::transport::rays::random::test_uniform;
    use crate::transport::splats::splat::Parameters;

    /// Blocks in which a splat's weight is not left out are reached, and few others: the bits are compared with all
    /// weights, round splats and needles, in the tile and beside it.
    #[test]
    fn blocks_are_reached_where_weights_are_not_left_out() {
        let (mut reached, mut needless) = (0, 0);
        let blocks = Blocks::<PlainLanes>::new([32.0, 48.0]);
        for i in 0..4000 {
            let (a, b) = (test_uniform(20, i, 0), test_uniform(20, i, 1));
            let of = Parameters {
                position: [(28.0 + 24.0 * a[0]) / 64.0, (44.0 + 24.0 * a[1]) / 64.0],
                scale: [-5.0 + 3.5 * a[2], -5.0 + 3.5 * a[3]],
                rotation: 7.0 * b[0],
                color: [0.0; 3],
                opacity: 0.005 + b[1],
            };
            let splat = Splat::project(&of, 64.0);
            let shape = Shape::new(&splat);
            let bits = blocks.reached(&shape);
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
        assert_eq!(bits(0b1000_0000_0010_0101).collect::<Vec<_>>(), [0, 2, 5, 15]);
        assert_eq!(bits(0).count(), 0);
    }
}
