//! Smoothing of gradients and steps over a grid, a texture or an environment map: Nicolet2021's large steps, axis by axis.

use rayon::prelude::*;

/// Least number of slabs along an axis that rayon gives a thread at once; to schedule fewer costs more than to solve them.
const ROWS: usize = 64;

/// λ that smooths a step over `share` of the longest side: the response to a single impulse falls by a factor e in √λ
/// texels.
pub fn lambda(size: [usize; 3], share: f32) -> f64 {
    let longest = size.iter().max().copied().unwrap_or(1);
    (f64::from(share) * longest as f64).powi(2)
}

/// Solves (I + λLₓ)(I + λL_y)(I + λL_z) x = `data` in place, L being the negative second difference along an axis with free
/// ends; if it `wraps`, along x without ends. A texel has `channels` values, and x varies fastest. The product is symmetric,
/// leaves constants as they are, and costs one pass an axis for any λ; I + λ(Lₓ + L_y + L_z) would take a sparse
/// factorisation (Nicolet2021, eq. 6 and section 3.3).
pub fn smooth(data: &mut [f32], size: [usize; 3], channels: usize, wraps: bool, lambda: f64) {
    let mut inner = channels;
    for (axis, count) in size.into_iter().enumerate() {
        if axis == 0 && wraps {
            let ring = Ring::new(count, lambda);
            data.par_chunks_mut(count * inner)
                .with_min_len(ROWS)
                .for_each(|entries| ring.solve(entries, inner));
        } else if count > 1 {
            let line = Line::new(count, lambda);
            data.par_chunks_mut(count * inner)
                .with_min_len(ROWS)
                .for_each(|entries| line.solve(entries, inner));
        }
        inner *= count;
    }
}

/// The tridiagonal matrix I + λL along one axis, factored into two bidiagonal ones.
struct Line {
    /// λ over the pivot of each row: the factor on the neighbouring entry, in elimination as in substitution.
    shares: Vec<f32>,
    /// One over the pivot of each row.
    scales: Vec<f32>,
}

impl Line {
    fn new(count: usize, lambda: f64) -> Self {
        let (mut shares, mut scales) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut before = 0.0;
        for i in 0..count {
            let neighbours = f64::from(u8::from(i > 0) + u8::from(i + 1 < count));
            let pivot = 1.0 + lambda * neighbours - lambda * before;
            before = lambda / pivot;
            shares.push(before as f32);
            scales.push((1.0 / pivot) as f32);
        }
        Self { shares, scales }
    }

    /// Elimination forwards and substitution backwards for `inner` interleaved lines. Nothing is subtracted, so that
    /// single precision suffices for any λ.
    fn solve(&self, entries: &mut [f32], inner: usize) {
        let count = self.shares.len();
        for i in 0..count {
            let (before, rest) = entries.split_at_mut(i * inner);
            let row = &mut rest[..inner];
            if i == 0 {
                row.iter_mut().for_each(|x| *x *= self.scales[0]);
                continue;
            }
            for (x, b) in row.iter_mut().zip(&before[(i - 1) * inner..]) {
                *x = *x * self.scales[i] + *b * self.shares[i];
            }
        }
        for i in (0..count - 1).rev() {
            let (row, after) = entries[i * inner..].split_at_mut(inner);
            for (x, a) in row.iter_mut().zip(&after[..inner]) {
                *x += *a * self.shares[i];
            }
        }
    }
}

/// The matrix I + λL around a circle, whose inverse is a convolution with c rᵏ to both sides, r + 1/r = 2 + 1/λ. It is applied
/// as two recursions y_i = (1 - r) x_i + r y_{i-1}, one each way, since (1 - r)² = r/λ.
struct Ring {
    count: usize,
    r: f64,
    /// One over 1 - rⁿ: all that goes round the circle of n texels again and again.
    rounds: f64,
}

impl Ring {
    fn new(count: usize, lambda: f64) -> Self {
        // The smaller root, without the cancellation of the quadratic formula.
        let half = 0.5 / lambda;
        let r = 1.0 / (1.0 + half + (half * (half + 2.0)).sqrt());
        Self {
            count,
            r,
            rounds: 1.0 / (1.0 - r.powi(count as i32)),
        }
    }

    /// Each way is walked twice: first to find what comes round the circle to where it begins.
    fn solve(&self, entries: &mut [f32], inner: usize) {
        let mut carried = vec![0f64; inner];
        for backwards in [false, true] {
            carried.fill(0.0);
            for writes in [false, true] {
                for i in 0..self.count {
                    let place = if backwards { self.count - 1 - i } else { i };
                    let row = &mut entries[place * inner..][..inner];
                    for (x, y) in row.iter_mut().zip(&mut carried) {
                        *y = (1.0 - self.r) * f64::from(*x) + self.r * *y;
                        if writes {
                            *x = *y as f32;
                        }
                    }
                }
                carried.iter_mut().for_each(|y| *y *= self.rounds);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [usize; 3] = [7, 5, 4];
    const CHANNELS: usize = 3;
    const ENTRIES: usize = 7 * 5 * 4 * 3;

    /// (I + λL) along an axis, term by term; around a circle, if it `wraps`.
    fn roughen(data: &[f32], axis: usize, wraps: bool, lambda: f64) -> Vec<f32> {
        let stride = CHANNELS * SIZE[..axis].iter().product::<usize>();
        let count = SIZE[axis];
        let at = |i: usize| f64::from(data[i]);
        let round = (count - 1) * stride;
        (0..data.len())
            .map(|i| {
                let before = match i / stride % count {
                    0 if wraps => at(i) - at(i + round),
                    0 => 0.0,
                    _ => at(i) - at(i - stride),
                };
                let after = match i / stride % count + 1 {
                    next if next < count => at(i) - at(i + stride),
                    _ if wraps => at(i) - at(i - round),
                    _ => 0.0,
                };
                (at(i) + lambda * (before + after)) as f32
            })
            .collect()
    }

    #[test]
    fn smoothing_is_the_inverse_of_the_product_of_differences() {
        let truth: Vec<f32> = (0..ENTRIES).map(|i| ((i * 37 % 101) as f32).sin()).collect();
        for (lambda, wraps) in [0.0, 0.3, 4.0, 50.0].into_iter().flat_map(|x| [(x, false), (x, true)]) {
            let roughen = |data: Vec<f32>, axis| roughen(&data, axis, wraps && axis == 0, lambda);
            let mut data = (0..3).fold(truth.clone(), roughen);
            let largest = data.iter().fold(0f32, |m, x| m.max(x.abs()));
            smooth(&mut data, SIZE, CHANNELS, wraps, lambda);
            for (found, expected) in data.iter().zip(&truth) {
                assert!(
                    (found - expected).abs() <= 1e-6 * largest,
                    "{lambda}, {wraps}: {found} {expected}"
                );
            }
        }
    }

    /// Constants stay as they are, and the sum of an impulse's entries stays 1: the columns of the inverse add up to 1.
    #[test]
    fn constants_and_sums_are_kept() {
        for wraps in [false, true] {
            let mut constant = vec![2.5; ENTRIES];
            smooth(&mut constant, SIZE, CHANNELS, wraps, 1e4);
            assert!(constant.iter().all(|x| (x - 2.5).abs() < 1e-4), "{constant:?}");
            let mut impulse = vec![0.0; ENTRIES];
            impulse[3 * 40 + 1] = 1.0;
            smooth(&mut impulse, SIZE, CHANNELS, wraps, 2.0);
            let sum = |channel: usize| impulse.iter().skip(channel).step_by(3).sum::<f32>();
            assert!((sum(1) - 1.0).abs() < 1e-5, "{}", sum(1));
            assert_eq!([sum(0), sum(2)], [0.0; 2]);
        }
    }

    /// An impulse falls by a factor e over the given share of the longest side.
    #[test]
    fn the_share_of_the_side_is_how_far_an_impulse_reaches() {
        let size = [401, 1, 1];
        let mut impulse = vec![0.0; 401];
        impulse[200] = 1.0;
        smooth(&mut impulse, size, 1, false, lambda(size, 10.0 / 401.0));
        let fall = impulse[210] / impulse[200];
        assert!((fall - (-1f32).exp()).abs() < 2e-3, "{fall}");
    }
}
