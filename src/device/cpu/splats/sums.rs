//! Derivatives by splats: a record for each tile and splat, summed splat by splat in the order of the tiles.
//!
//! A splat belongs to many tiles and a tile to one thread, so that tiles cannot add to the same splat. They write
//! records of their own; then each thread takes a range of splats through all tiles. A tile's list is in the order of
//! splats, so that a range of splats is a range of the list. Rounds of tiles bound the memory of the records.

use super::shape::Shape;
use crate::transport::splats::splat::{Splat, SplatAdjoint};

/// Sums over a tile's pixels for one splat: derivatives by the exponent times 1, x, y, xx, xy and yy from the splat's
/// centre, and derivatives by the colour.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Record {
    pub(super) power: [f32; 6],
    pub(super) color: [f32; 3],
}

impl Record {
    /// Adds another tile's sums.
    #[inline(always)]
    pub(super) fn add(&mut self, other: &Self) {
        for i in 0..6 {
            self.power[i] += other.power[i];
        }
        for c in 0..3 {
            self.color[c] += other.color[c];
        }
    }

    /// The derivatives by the splat that the sums are of.
    #[inline(always)]
    pub(super) fn adjoint(&self, shape: &Shape) -> SplatAdjoint<f32> {
        let [one, x, y, xx, xy, yy] = self.power;
        Splat {
            center: shape.slope([x, y]),
            conic: [-0.5 * xx, -xy, -0.5 * yy],
            // The weight is the opacity times a Gaussian; a splat without opacity is in no list.
            opacity: if one == 0.0 { 0.0 } else { one / shape.opacity },
            color: self.color,
        }
    }
}
