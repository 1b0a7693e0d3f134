//! A tile of a picture, forwards and backwards: `transport/splats/blend.rs`, a row of sixteen pixels at a time.

use super::lists::TILE;
use super::sums::Record;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::transport::splats::blend::{MAX_WEIGHT, MIN_TRANSMITTANCE, MIN_WEIGHT};
use crate::transport::splats::splat::Splat;

/// A number for each pixel of a row.
type Row = [f32; TILE];

/// Exponents are clamped to this: their exponentials are far below any weight that is not left out.
const MIN_POWER: f32 = -80.0;

/// The largest change of the exponent from one row to the next for which Gaussians are carried on by multiplication.
const MAX_CHANGE: f32 = 8.0;

/// Splats after which a tile looks which of its rows are finished.
const LOOK_AROUND: usize = 16;

/// What the pixels of a tile have seen.
#[derive(Debug, Clone)]
pub(super) struct TileState {
    pub(super) transmittance: [Row; TILE],
    pub(super) color: [[Row; TILE]; 3],
    /// One more than the last entry of the list that each pixel has looked at before it was finished.
    pub(super) count: [[u32; TILE]; TILE],
}

/// The loss's derivatives by the pixels of a tile, where the gather has left them, and what is behind all splats.
#[derive(Debug, Clone)]
pub(super) struct TileAdjoint {
    /// Transmittances, the last ones first.
    pub(super) transmittance: [Row; TILE],
    /// Derivatives by the transmittance.
    pub(super) behind: [Row; TILE],
    pub(super) color: [[Row; TILE]; 3],
    pub(super) count: [[u32; TILE]; TILE],
}

/// A splat as rows of a tile take it.
struct Rows {
    /// Rows that it may reach, the end excluded.
    first: usize,
    end: usize,
    /// Pixels from its centre, along x for each column and along y for row 0.
    dx: Row,
    dy: f32,
    /// The exponent is `constant + dy (linear + square dy)`.
    constant: Row,
    linear: Row,
    square: f32,
    /// The Gaussian in the next row, its ratio to that in the row after, and the factor on that ratio; without them
    /// each row takes its exponentials.
    next: Row,
    ratio: Row,
    factor: f32,
    is_carried: bool,
}

impl Rows {
    /// `reach` is half the width and height of the splat's box, `origin` the tile's first pixel; `rows` are those of
    /// the tile that are in the picture.
    #[inline(always)]
    fn new(splat: &Splat<f32>, reach: [f32; 2], origin: [f32; 2], rows: usize) -> Self {
        let [xx, xy, yy] = splat.conic;
        let dy = origin[1] + 0.5 - splat.center[1];
        let (first, end) = ((-reach[1] - dy).ceil(), (reach[1] - dy).floor() + 1.0);
        let (mut dx, mut constant, mut linear) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
        let left = origin[0] + 0.5 - splat.center[0];
        for l in 0..TILE {
            dx[l] = left + l as f32;
            constant[l] = -0.5 * xx * dx[l] * dx[l];
            linear[l] = -xy * dx[l];
        }
        let last = rows as f32;
        let mut rows = Self {
            first: first.max(0.0).min(last) as usize,
            end: end.max(0.0).min(last) as usize,
            dx,
            dy,
            constant,
            linear,
            square: -0.5 * yy,
            next: [0.0; TILE],
            ratio: [0.0; TILE],
            factor: 1.0,
            is_carried: false,
        };
        if rows.first + 1 < rows.end {
            rows.carry(reach[0]);
        }
        rows
    }

    /// Exponents of a row.
    #[inline(always)]
    fn powers(&self, dy: f32) -> Row {
        let mut out = [0.0; TILE];
        for l in 0..TILE {
            out[l] = self.constant[l] + dy * (self.linear[l] + dy * self.square);
        }
        out
    }

    /// Begins to carry the Gaussian from row to row, if no exponent is so low or changes so fast that too many digits
    /// would be lost: the exponent is a parabola in y, so that the ratio of rows changes by one factor, and 15 rows
    /// multiply its rounding.
    #[inline(always)]
    fn carry(&mut self, reach: f32) {
        let dy = self.dy + self.first as f32;
        let (top, bottom) = (self.powers(dy), self.powers(self.dy + (self.end - 1) as f32));
        let mut change = [0.0; TILE];
        let mut lowest = [0.0; TILE];
        for l in 0..TILE {
            change[l] = self.linear[l] + self.square * (2.0 * dy + 1.0);
            lowest[l] = if top[l] < bottom[l] { top[l] } else { bottom[l] };
        }
        let mut is_safe = true;
        for l in 0..TILE {
            // Columns beside the splat are left out in all rows.
            let is_beside = self.dx[l].abs() > reach;
            is_safe &= is_beside | ((lowest[l] > MIN_POWER) & (change[l].abs() < MAX_CHANGE));
        }
        if is_safe {
            for l in 0..TILE {
                let gauss = exp(top[l]);
                self.next[l] = if self.dx[l].abs() > reach { 0.0 } else { gauss };
                self.ratio[l] = exp(change[l]);
            }
            self.factor = exp(2.0 * self.square);
            self.is_carried = true;
        }
    }

    /// The Gaussian in the next row; rows are asked for in turn.
    #[inline(always)]
    fn gauss(&mut self, dy: f32) -> Row {
        let mut out = [0.0; TILE];
        if self.is_carried {
            out = self.next;
            for l in 0..TILE {
                self.next[l] *= self.ratio[l];
                self.ratio[l] *= self.factor;
            }
            return out;
        }
        let powers = self.powers(dy);
        for l in 0..TILE {
            out[l] = exp(powers[l]);
        }
        out
    }
}

/// exp x for x between [`MIN_POWER`] and [`MAX_CHANGE`], to which it is clamped. To 2 ulp, by the steps of
/// `transport/number`, but with the integer part by a large number, so that it is done in vectors at all levels.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LARGE: f32 = 12_582_912.0;
    let x = if x < MIN_POWER { MIN_POWER } else { x };
    let x = if x > MAX_CHANGE { MAX_CHANGE } else { x };
    let shifted = x * std::f32::consts::LOG2_E + LARGE;
    let k = shifted - LARGE;
    let r = (x - k * 0.693_359_4) + k * 2.121_944_4e-4;
    let p = 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(LARGE.to_bits()).wrapping_add(127) << 23);
    p * scale
}

/// Blends a tile's list.
pub(super) struct Gather<'a> {
    pub(super) list: &'a [u32],
    pub(super) splats: &'a [Splat<f32>],
    /// Half the width and height of each splat's box.
    pub(super) reach: &'a [[f32; 2]],
    /// The tile's first pixel, and its rows in the picture.
    pub(super) origin: [f32; 2],
    pub(super) rows: usize,
}

impl Kernel for Gather<'_> {
    type Output = TileState;

    #[inline(always)]
    fn run<W: Wide>(self) -> TileState {
        let mut tile = TileState {
            transmittance: [[1.0; TILE]; TILE],
            color: [[[0.0; TILE]; TILE]; 3],
            count: [[0; TILE]; TILE],
        };
        let mut finished = [false; TILE];
        for (i, &index) in self.list.iter().enumerate() {
            let splat = &self.splats[index as usize];
            let mut rows = Rows::new(splat, self.reach[index as usize], self.origin, self.rows);
            for row in rows.first..rows.end {
                let gauss = rows.gauss(rows.dy + row as f32);
                if finished[row] {
                    continue;
                }
                let (before, mut after) = (tile.transmittance[row], [0.0; TILE]);
                let mut shares = [0.0; TILE];
                for l in 0..TILE {
                    let weight = splat.opacity * gauss[l];
                    let clamped = if weight > MAX_WEIGHT { MAX_WEIGHT } else { weight };
                    let is_blended = (weight >= MIN_WEIGHT) & (before[l] >= MIN_TRANSMITTANCE);
                    let clamped = if is_blended { clamped } else { 0.0 };
                    shares[l] = before[l] * clamped;
                    after[l] = before[l] * (1.0 - clamped);
                }
                for c in 0..3 {
                    let seen = &mut tile.color[c][row];
                    for l in 0..TILE {
                        seen[l] += shares[l] * splat.color[c];
                    }
                }
                tile.transmittance[row] = after;
                let count = &mut tile.count[row];
                for l in 0..TILE {
                    count[l] = if before[l] >= MIN_TRANSMITTANCE {
                        i as u32 + 1
                    } else {
                        count[l]
                    };
                }
            }
            if i % LOOK_AROUND == LOOK_AROUND - 1 {
                for row in 0..self.rows {
                    finished[row] = tile.transmittance[row].iter().all(|t| *t < MIN_TRANSMITTANCE);
                }
                if finished[..self.rows].iter().all(|row| *row) {
                    break;
                }
            }
        }
        tile
    }
}

/// Undoes a tile's list and notes a record an entry.
pub(super) struct Replay<'a> {
    pub(super) list: &'a [u32],
    pub(super) splats: &'a [Splat<f32>],
    pub(super) reach: &'a [[f32; 2]],
    pub(super) origin: [f32; 2],
    pub(super) rows: usize,
    pub(super) tile: &'a mut TileAdjoint,
    /// One an entry of the list, in its order.
    pub(super) records: &'a mut [Record],
}

impl Kernel for Replay<'_> {
    /// Weights that were blended.
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let Self { tile, records, .. } = self;
        let mut last = [0u32; TILE];
        for row in 0..self.rows {
            last[row] = tile.count[row].iter().fold(0, |a, b| a.max(*b));
        }
        let longest = last.iter().fold(0, |a, b| a.max(*b)) as usize;
        records[longest..].fill(Record::default());
        for i in (0..longest).rev() {
            let index = self.list[i] as usize;
            let splat = &self.splats[index];
            let mut rows = Rows::new(splat, self.reach[index], self.origin, self.rows);
            // Sums over the rows: of derivatives by the exponent, times 1, y and y²; and of shares times adjoint
            // colours.
            let mut power = [[0.0f32; TILE]; 3];
            let mut color = [[0.0f32; TILE]; 3];
            for row in rows.first..rows.end {
                let dy = rows.dy + row as f32;
                let gauss = rows.gauss(dy);
                if last[row] <= i as u32 {
                    continue;
                }
                let (after, count) = (tile.transmittance[row], tile.count[row]);
                let [r, g, b] = [tile.color[0][row], tile.color[1][row], tile.color[2][row]];
                let mut behind = tile.behind[row];
                let mut before = [0.0; TILE];
                for l in 0..TILE {
                    let weight = splat.opacity * gauss[l];
                    let is_blended = (weight >= MIN_WEIGHT) & (count[l] > i as u32);
                    let is_free = weight <= MAX_WEIGHT;
                    let clamped = if is_free { weight } else { MAX_WEIGHT };
                    let clamped = if is_blended { clamped } else { 0.0 };
                    before[l] = after[l] / (1.0 - clamped);
                    let seen = r[l] * splat.color[0] + g[l] * splat.color[1] + b[l] * splat.color[2];
                    let gain = seen - behind[l];
                    let share = before[l] * clamped;
                    behind[l] += clamped * gain;
                    let by_power = if is_free { share * gain } else { 0.0 };
                    power[0][l] += by_power;
                    power[1][l] += by_power * dy;
                    power[2][l] += by_power * dy * dy;
                    color[0][l] += share * r[l];
                    color[1][l] += share * g[l];
                    color[2][l] += share * b[l];
                }
                tile.transmittance[row] = before;
                tile.behind[row] = behind;
            }
            records[i] = Record::new(&rows.dx, &power, &color);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_of_weights_are_right_to_two_ulp() {
        for i in 0..=60_000 {
            let x = -1e-4 * i as f32;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) - exact).abs() < 2.5e-7 * exact, "{x}");
        }
        assert_eq!((exp(0.0), exp(-1e30)), (1.0, exp(MIN_POWER)));
        assert!(exp(MIN_POWER) < MIN_WEIGHT);
    }
}
