//! What this machine can do at most, measured in the run that the bench compares with it.

use std::time::Instant;

use rayon::prelude::*;

/// Bytes read plus bytes written a second by a copy between arrays far larger than the caches.
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
