//! How much of a run's time renders for the page (looks) may take.

use std::time::{Duration, Instant};

/// The share of a run's time that looks may take at most.
pub const SHARE: f64 = 0.1;

/// Seconds that are saved up at most: a page that is opened late does not hold the run up for long.
const SAVINGS: f64 = 1.0;

/// Seconds that may be spent: a share of those that the run has worked between looks, less those that looks took.
///
/// A look that takes longer than expected is paid off before the next one, so that looks take at most [`SHARE`] of all
/// time, plus the time by which a single look was underestimated.
#[derive(Debug)]
pub(super) struct Budget {
    seconds: f64,
    /// When the last look ended.
    since: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            seconds: 0.0,
            since: now,
        }
    }

    /// Adds the share of the time since the last look: the run has worked until now.
    pub(super) fn earn(&mut self, now: Instant) {
        let worked = now.saturating_duration_since(self.since).as_secs_f64();
        self.seconds = (self.seconds + worked * SHARE / (1.0 - SHARE)).min(SAVINGS);
        self.since = now;
    }

    /// Whether a look that takes this long may begin.
    pub(super) fn affords(&self, seconds: f64) -> bool {
        self.seconds > 0.0 && seconds <= self.seconds
    }

    /// Adds nothing for the time up to now: the run stood still.
    pub(super) fn skip(&mut self, now: Instant) {
        self.since = now;
    }

    /// A look has taken this long, and ends now.
    pub(super) fn spend(&mut self, took: Duration, now: Instant) {
        self.seconds -= took.as_secs_f64();
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks take their share for any length of looks and iterations, also if underestimated.
    #[test]
    fn looking_takes_its_share_and_no_more() {
        for (iteration, look, guess) in [(2, 1, 1.0), (2, 30, 1.0), (300, 500, 1.0), (5, 50, 0.1)] {
            let mut now = Instant::now();
            let mut budget = Budget::new(now);
            let [iteration, look] = [iteration, look].map(Duration::from_millis);
            let (mut worked, mut looked) = (Duration::ZERO, Duration::ZERO);
            while worked < Duration::from_secs(100) {
                now += iteration;
                worked += iteration;
                budget.earn(now);
                if budget.affords(guess * look.as_secs_f64()) {
                    now += look;
                    looked += look;
                    budget.spend(look, now);
                }
            }
            let share = looked.as_secs_f64() / (worked + looked).as_secs_f64();
            let once = look.as_secs_f64() / (worked + looked).as_secs_f64();
            assert!(share <= SHARE + once, "{iteration:?} {look:?}: {share}");
            assert!(share > 0.6 * SHARE, "{iteration:?} {look:?}: {share}");
        }
    }

    #[test]
    fn savings_are_bounded_and_pauses_earn_nothing() {
        let begun = Instant::now();
        let mut budget = Budget::new(begun);
        budget.earn(begun + Duration::from_secs(3600));
        assert!(budget.affords(0.99 * SAVINGS) && !budget.affords(1.01 * SAVINGS));
        let mut budget = Budget::new(begun);
        budget.skip(begun + Duration::from_secs(3600));
        budget.earn(begun + Duration::from_secs(3600));
        assert!(!budget.affords(0.0));
    }
}
