//! The machine's peak rates, measured in the same process as the bench that they are compared with.

use std::time::Instant;

use rayon::prelude::*;

/// Copy bandwidth: bytes read plus bytes written per second between arrays much larger than the caches.
pub(super) fn memory_bandwidth() -> f64 {
    const LEN: usize = 1 << 26;
    let from = vec![1.0f32; LEN];
    let mut to = vec![0.0f32; LEN];
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            to.par_chunks_mut(1 << 16)
                .zip(from.par_chunks(1 << 16))
                .for_each(|(t, f)| t.copy_from_slice(f));
            std::hint::black_box(&mut to);
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    2.0 * 4.0 * LEN as f64 / best
}
