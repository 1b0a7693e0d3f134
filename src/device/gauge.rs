//! Progress of a picture on a device, to be read from other threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Progress in passes of the current picture and in parts of the current pass. Clones share these numbers.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// Passes that a picture takes, and those that have begun.
    passes: u32,
    begun: u32,
    /// Parts of the current pass, zero where they are not counted, and those that are done.
    parts: u64,
    done: u64,
}

impl Gauge {
    /// A picture of this many passes begins.
    pub fn begin_picture(&self, passes: u32) {
        *self.counts() = Counts {
            passes,
            ..Counts::default()
        };
    }

    /// The next pass begins, of which no parts are known yet.
    pub fn begin_pass(&self) {
        let mut counts = self.counts();
        counts.begun += 1;
        (counts.parts, counts.done) = (0, 0);
    }

    /// The current pass has this many parts, of which none is done.
    pub fn begin_parts(&self, parts: usize) {
        let mut counts = self.counts();
        (counts.parts, counts.done) = (parts as u64, 0);
    }

    /// One more part is done.
    pub fn add(&self) {
        self.counts().done += 1;
    }

    /// The share of the picture that is done, 1 when all is; None while no parts are known.
    pub fn share(&self) -> Option<f64> {
        let counts = self.counts();
        if counts.parts == 0 {
            return None;
        }
        let before = f64::from(counts.begun.saturating_sub(1));
        let passes = f64::from(counts.passes.max(counts.begun).max(1));
        Some((before + counts.done as f64 / counts.parts as f64) / passes)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Counts stay valid if another thread panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_tell_the_share_of_the_picture_at_hand() {
        let gauge = Gauge::default();
        let seen = gauge.clone();
        assert_eq!(seen.share(), None);
        gauge.begin_picture(2);
        gauge.begin_pass();
        assert_eq!(seen.share(), None);
        gauge.begin_parts(4);
        assert_eq!(seen.share(), Some(0.0));
        gauge.add();
        assert_eq!(seen.share(), Some(0.125));
        gauge.begin_pass();
        gauge.begin_parts(2);
        assert_eq!(seen.share(), Some(0.5));
        gauge.add();
        assert_eq!(seen.share(), Some(0.75));
        gauge.begin_picture(1);
        assert_eq!(seen.share(), None);
    }
}
