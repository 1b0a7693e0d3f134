//! Mean and variance of gradients over seeds, entry by entry.

/// Sums over the estimates, per entry.
#[derive(Debug, Default)]
pub(super) struct Moments {
    entries: Vec<[f64; 2]>,
    count: u32,
}

/// Statistics of the gradient.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// Sum over the entries of the variance of one estimate.
    pub variance: f64,
    /// Squared norm of the mean, and sum of its entries.
    pub squares: f64,
    pub sum: f64,
}

impl Moments {
    /// Adds one estimate.
    pub(super) fn add(&mut self, gradient: &[f32]) {
        self.entries.resize(gradient.len(), [0.0; 2]);
        self.count += 1;
        for ([sum, squares], g) in self.entries.iter_mut().zip(gradient) {
            let g = f64::from(*g);
            *sum += g;
            *squares += g * g;
        }
    }

    /// The statistics; requires at least two estimates.
    pub(super) fn spread(&self) -> Spread {
        let n = f64::from(self.count);
        let none = Spread {
            variance: 0.0,
            squares: 0.0,
            sum: 0.0,
        };
        self.entries.iter().fold(none, |total, [sum, squares]| {
            let mean = sum / n;
            Spread {
                variance: total.variance + (squares / n - mean * mean).max(0.0) * n / (n - 1.0),
                squares: total.squares + mean * mean,
                sum: total.sum + mean,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_three_estimates_by_hand() {
        let mut moments = Moments::default();
        for gradient in [[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]] {
            moments.add(&gradient);
        }
        let Spread { variance, squares, sum } = moments.spread();
        assert!((variance - 7.0).abs() < 1e-12 && (squares - 34.0).abs() < 1e-12 && (sum - 8.0).abs() < 1e-12);
    }
}
