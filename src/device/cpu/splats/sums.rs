//! Derivatives by splats: a record for each tile and splat, summed splat by splat in the order of the tiles.
//!
//! A splat belongs to many tiles and a tile to one thread, so that tiles cannot add to the same splat. They write records
//! of their own; then each thread takes a range of splats through all tiles. A tile's list is in the order of splats, so
//! that a range of splats is a range of the list. Rounds of tiles bound the memory of the records.

use super::lists::TILE;
use crate::transport::splats::splat::{Splat, SplatAdjoint};

/// Sums over a tile's pixels for one splat: derivatives by the exponent times 1, x, y, xx, xy and yy from the splat's
/// centre, and derivatives by the colour.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Record {
    power: [f32; 6],
    color: [f32; 3],
}

impl Record {
    /// Sums the columns of sums over rows: of derivatives by the exponent times 1, y and y², and by the colour. `dx` is
    /// the distance of each column from the splat's centre.
    #[inline(always)]
    pub(super) fn new(dx: &[f32; TILE], power: &[[f32; TILE]; 3], color: &[[f32; TILE]; 3]) -> Self {
        let mut products = [[0.0f32; TILE]; 9];
        for l in 0..TILE {
            products[0][l] = power[0][l];
            products[1][l] = power[0][l] * dx[l];
            products[2][l] = power[1][l];
            products[3][l] = power[0][l] * dx[l] * dx[l];
            products[4][l] = power[1][l] * dx[l];
            products[5][l] = power[2][l];
            products[6][l] = color[0][l];
            products[7][l] = color[1][l];
            products[8][l] = color[2][l];
        }
        let mut half = 8;
        while half > 0 {
            for product in &mut products {
                for l in 0..half {
                    product[l] += product[l + half];
                }
            }
            half /= 2;
        }
        let sum = |i: usize| products[i][0];
        Self {
            power: [sum(0), sum(1), sum(2), sum(3), sum(4), sum(5)],
            color: [sum(6), sum(7), sum(8)],
        }
    }

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
    pub(super) fn adjoint(&self, splat: &Splat<f32>) -> SplatAdjoint<f32> {
        let [one, x, y, xx, xy, yy] = self.power;
        let [a, b, c] = splat.conic;
        Splat {
            center: [a * x + b * y, b * x + c * y],
            conic: [-0.5 * xx, -xy, -0.5 * yy],
            // The weight is the opacity times a Gaussian; a splat without opacity is in no list.
            opacity: if one == 0.0 { 0.0 } else { one / splat.opacity },
            color: self.color,
        }
    }
}
