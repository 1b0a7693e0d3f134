//! How much of a pass a device has done, for who looks on from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Parts of the pass at hand, all and done. Copies share both numbers.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: AtomicU64,
    done: AtomicU64,
}

impl Gauge {
    /// A pass of this many parts begins.
    pub fn begin(&self, parts: usize) {
        self.0.done.store(0, Relaxed);
        self.0.all.store(parts as u64, Relaxed);
    }

    /// One more part is done.
    pub fn add(&self) {
        self.0.done.fetch_add(1, Relaxed);
    }

    /// The share that is done, in [0, 1]; None before the first pass.
    pub fn share(&self) -> Option<f64> {
        let [done, all] = [&self.0.done, &self.0.all].map(|count| count.load(Relaxed));
        (all > 0).then(|| (done as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_tell_the_share_of_the_pass_at_hand() {
        let gauge = Gauge::default();
        let seen = gauge.clone();
        assert_eq!(seen.share(), None);
        gauge.begin(4);
        assert_eq!(seen.share(), Some(0.0));
        gauge.add();
        assert_eq!(seen.share(), Some(0.25));
        gauge.begin(2);
        assert_eq!(seen.share(), Some(0.0));
    }
}
