//! The machine's peak rates, measured in the same process as the bench that they are compared with.

use std::time::Instant;

use rayon::prelude::*;

/// Two arrays much larger than the caches, between which numbers are copied.
pub(super) struct Memory {
    from: Vec<f32>,
    to: Vec<f32>,
}

impl Memory {
    const LEN: usize = 1 << 26;

    pub(super) fn new() -> Self {
        Self {
            from: vec![1.0; Self::LEN],
            to: vec![0.0; Self::LEN],
        }
    }

    /// Copy bandwidth: bytes read plus bytes written per second, in the fastest of `copies` copies.
    pub(super) fn bandwidth(&mut self, copies: usize) -> f64 {
        let copy = |_| {
            let start = Instant::now();
            self.to
                .par_chunks_mut(1 << 16)
                .zip(self.from.par_chunks(1 << 16))
                .for_each(|(t, f)| t.copy_from_slice(f));
            std::hint::black_box(&mut self.to);
            start.elapsed().as_secs_f64()
        };
        let best = (0..copies).map(copy).fold(f64::INFINITY, f64::min);
        2.0 * 4.0 * Self::LEN as f64 / best
    }
}
