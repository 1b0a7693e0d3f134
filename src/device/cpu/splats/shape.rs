//! Splats as tiles take them, and the blocks of sixteen pixels of a tile: which a splat reaches, and its weights there.

use super::lists::TILE;
use super::pixels::Plane;
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::transport::splats::blend::MIN_WEIGHT;
use crate::transport::splats::splat::Splat;

/// Edge of a block in pixels.
pub(super) const EDGE: usize = 4;

/// Blocks along an edge of a tile.
pub(super) const ACROSS: usize = TILE / EDGE;

/// Blocks of a tile, as many as lanes, so that all are looked at in one vector.
pub(super) const BLOCKS: usize = ACROSS * ACROSS;
const _: () = assert!(BLOCKS == WIDTH && EDGE * EDGE == WIDTH && ACROSS == EDGE);

/// A splat whose Gaussian is 2^(xx x² + xy x y + yy y²), x and y being pixels from its centre: one line of the cache.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Shape {
    center: [f32; 2],
    xx: f32,
    xy: f32,
    yy: f32,
    pub(super) opacity: f32,
    pub(super) color: [f32; 3],
    /// The exponent below which the weight is left out, less what rounding may do to it.
    least: f32,
    /// Where along a column the Gaussian is largest, over the column's x; and along a row, over its y.
    ridge: [f32; 2],
}

impl Shape {
    #[inline(always)]
    pub(super) fn new(splat: &Splat<f32>) -> Self {
        const SLACK: f32 = 0.01;
        let [xx, xy, yy] = splat.conic.map(|entry| -0.5 * std::f32::consts::LOG2_E * entry);
        Self {
            center: splat.center,
            xx,
            xy: 2.0 * xy,
            yy,
            opacity: splat.opacity,
            color: splat.color,
            least: (MIN_WEIGHT / splat.opacity).log2() - SLACK,
            ridge: [-xy / yy, -xy / xx],
        }
    }

    /// Derivatives by the centre of the Gaussian's natural logarithm at a point from there; it is linear in the point.
    #[inline(always)]
    pub(super) fn slope(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        use std::f32::consts::LN_2;
        [
            -LN_2 * (2.0 * self.xx * x + self.xy * y),
            -LN_2 * (self.xy * x + 2.0 * self.yy * y),
        ]
    }
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
        let highest = exponent(shape, [x, along_column]).max(exponent(shape, [along_row, y]));
        L::bits(highest.at_least(L::splat(shape.least))) as u16
    }

    /// Pixels from the splat's centre to those of a block.
    #[inline(always)]
    pub(super) fn offsets(&self, shape: &Shape, block: usize) -> [L; 2] {
        [
            self.x[block % ACROSS] - L::splat(shape.center[0]),
            self.y[block / ACROSS] - L::splat(shape.center[1]),
        ]
    }

    /// Writes the weights, not clamped yet, of the blocks in `reached`. All before any is blended: a processor looks
    /// ahead by a few blocks of work, and finds more to do at once where the steps that wait for each other are few.
    #[inline(always)]
    pub(super) fn weigh(&self, shape: &Shape, reached: u16, weights: &mut Plane<f32>) {
        for block in bits(reached) {
            let gauss = exponent(shape, self.offsets(shape, block)).exp2();
            (L::splat(shape.opacity) * gauss).store(&mut weights[block]);
        }
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

/// The logarithm to base 2 of the Gaussian.
#[inline(always)]
fn exponent<L: Lanes>(shape: &Shape, [x, y]: [L; 2]) -> L {
    x * (L::splat(shape.xx) * x + L::splat(shape.xy) * y) + L::splat(shape.yy) * y * y
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
