//! The factor on all learning rates over a run.

use crate::scene::{Decay, Schedule};

/// The factor at `iteration` (from 0) of `iterations`: linear up to 1 over the warm-up, then the decay from 1 to the
/// final factor at the last iteration.
pub fn rate_factor(schedule: &Schedule, iteration: u32, iterations: u32) -> f32 {
    if iteration < schedule.warm_up {
        return ((f64::from(iteration) + 1.0) / f64::from(schedule.warm_up)) as f32;
    }
    let span = iterations.saturating_sub(schedule.warm_up).saturating_sub(1).max(1);
    let progress = (f64::from(iteration - schedule.warm_up) / f64::from(span)).min(1.0);
    let factor = match schedule.decay {
        Decay::Constant => 1.0,
        Decay::Exponential { final_factor } => f64::from(final_factor).powf(progress),
        Decay::Cosine { final_factor } => {
            let low = f64::from(final_factor);
            low + (1.0 - low) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
        }
    };
    factor as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(decay: Decay, warm_up: u32) -> Schedule {
        Schedule { decay, warm_up }
    }

    #[test]
    fn warm_up_rises_to_one_and_never_starts_at_zero() {
        let s = schedule(Decay::Constant, 4);
        let factors: Vec<f32> = (0..6).map(|i| rate_factor(&s, i, 100)).collect();
        assert_eq!(factors, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn decays_go_from_one_to_the_final_factor() {
        for decay in [
            Decay::Exponential { final_factor: 0.1 },
            Decay::Cosine { final_factor: 0.1 },
        ] {
            for warm_up in [0, 10] {
                let s = schedule(decay, warm_up);
                assert!((rate_factor(&s, warm_up, 100) - 1.0).abs() < 1e-6);
                assert!((rate_factor(&s, 99, 100) - 0.1).abs() < 1e-6);
                let falls = (warm_up..99).all(|i| rate_factor(&s, i + 1, 100) < rate_factor(&s, i, 100));
                assert!(falls, "{decay:?}");
            }
        }
        let half = rate_factor(&schedule(Decay::Exponential { final_factor: 0.01 }, 0), 50, 101);
        assert!((half - 0.1).abs() < 1e-6, "geometric: {half}");
    }

    /// By hand, a warm-up of 4 in 9 iterations: factors 1/4, 2/4, 3/4, 1, then the decay at progress 0, 1/4, 2/4, 3/4, 1:
    /// powers of 1/16 halve from step to step, and the cosine's are (1 ± √½)/2.
    #[test]
    fn a_decay_begins_where_the_warm_up_ends() {
        let half = f64::sqrt(0.5);
        let cosine = [1.0 + half, 1.0, 1.0 - half].map(|x| (0.5 + 0.5 * 0.5 * x) as f32);
        let [a, b, c] = cosine;
        let cases = [
            (
                Decay::Exponential { final_factor: 0.0625 },
                [0.25, 0.5, 0.75, 1.0, 1.0, 0.5, 0.25, 0.125, 0.0625],
            ),
            (
                Decay::Cosine { final_factor: 0.5 },
                [0.25, 0.5, 0.75, 1.0, 1.0, a, b, c, 0.5],
            ),
            (Decay::Constant, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ];
        for (decay, expected) in cases {
            for (i, expected) in expected.into_iter().enumerate() {
                let found = rate_factor(&schedule(decay, 4), i as u32, 9);
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{decay:?} at {i}: {found} != {expected}"
                );
            }
        }
    }

    #[test]
    fn a_run_shorter_than_its_warm_up_is_no_special_case() {
        let s = schedule(Decay::Cosine { final_factor: 0.5 }, 10);
        assert_eq!(rate_factor(&s, 0, 1), 0.1);
        let one = schedule(Decay::Exponential { final_factor: 0.5 }, 0);
        assert_eq!(rate_factor(&one, 0, 1), 1.0);
        for decay in [
            Decay::Exponential { final_factor: 0.5 },
            Decay::Cosine { final_factor: 0.5 },
        ] {
            assert_eq!(rate_factor(&schedule(decay, 1), 12, 6), 0.5, "beyond the end");
        }
    }
}
