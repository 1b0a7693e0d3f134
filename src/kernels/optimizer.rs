//! Optimiser steps, per entry.

/// The optimiser and its constants.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Optimizer {
    /// Kingma2015, algorithm 1. `mask_updates`: entries with zero gradient keep their value and moments.
    Adam {
        beta_1: f32,
        beta_2: f32,
        epsilon: f32,
        mask_updates: bool,
    },
    /// v ← momentum · v + g, x ← x - rate · v
    Sgd { momentum: f32 },
    /// v ← decay · v + (1 - decay) g², x ← x - rate · g / (sqrt v + epsilon)
    RmsProp { decay: f32, epsilon: f32 },
}

impl Optimizer {
    /// Number of moment arrays per parameter.
    pub fn moments(&self) -> usize {
        match self {
            Self::Adam { .. } => 2,
            Self::Sgd { .. } | Self::RmsProp { .. } => 1,
        }
    }

    /// Whether entries with zero gradient keep their value and moments.
    #[inline(always)]
    pub fn masks_updates(&self) -> bool {
        matches!(self, Self::Adam { mask_updates: true, .. })
    }
}

/// The constants of one step, computed once for all entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRule {
    pub optimizer: Optimizer,
    /// Learning rate times the schedule's factor; of Adam also times 1 / (1 - beta_1^t).
    pub rate: f32,
    /// Adam: 1 / (1 - beta_2^t), else 1.
    pub second_correction: f32,
    pub bounds: [f32; 2],
}

impl StepRule {
    /// The rule of step t = `count`, counted from 1 since the moments were zero.
    pub fn new(optimizer: Optimizer, learning_rate: f32, count: u32, bounds: [f32; 2]) -> Self {
        let (rate, second_correction) = match optimizer {
            Optimizer::Adam { beta_1, beta_2, .. } => {
                let correction = |beta: f32| 1.0 - f64::from(beta).powi(count.min(1 << 24) as i32);
                (
                    (f64::from(learning_rate) / correction(beta_1)) as f32,
                    (1.0 / correction(beta_2)) as f32,
                )
            }
            _ => (learning_rate, 1.0),
        };
        Self {
            optimizer,
            rate,
            second_correction,
            bounds,
        }
    }

    /// Whether entries with zero gradient keep their value and moments.
    #[inline(always)]
    pub fn masks_updates(&self) -> bool {
        self.optimizer.masks_updates()
    }

    /// The step of one entry: new value and moments.
    #[inline(always)]
    pub fn apply(&self, value: f32, gradient: f32, moments: [f32; 2]) -> (f32, [f32; 2]) {
        let [m, v] = moments;
        let (value, m, v) = match self.optimizer {
            Optimizer::Adam {
                beta_1,
                beta_2,
                epsilon,
                ..
            } => {
                let m = beta_1 * m + (1.0 - beta_1) * gradient;
                let v = beta_2 * v + (1.0 - beta_2) * (gradient * gradient);
                (
                    value - self.rate * m / ((v * self.second_correction).sqrt() + epsilon),
                    m,
                    v,
                )
            }
            Optimizer::Sgd { momentum } => {
                let m = momentum * m + gradient;
                (value - self.rate * m, m, v)
            }
            Optimizer::RmsProp { decay, epsilon } => {
                let m = decay * m + (1.0 - decay) * (gradient * gradient);
                (value - self.rate * gradient / (m.sqrt() + epsilon), m, v)
            }
        };
        (value.max(self.bounds[0]).min(self.bounds[1]), [m, v])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adams_first_step_has_the_length_of_the_learning_rate() {
        let adam = Optimizer::Adam {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            mask_updates: false,
        };
        for gradient in [1e-3f32, 5.0, -0.2] {
            let rule = StepRule::new(adam, 0.1, 1, [f32::NEG_INFINITY, f32::INFINITY]);
            let (value, _) = rule.apply(1.0, gradient, [0.0; 2]);
            assert!((value - (1.0 - 0.1 * gradient.signum())).abs() < 1e-4, "{value}");
        }
    }

    #[test]
    fn adam_follows_the_papers_recurrence() {
        let adam = Optimizer::Adam {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 1e-8,
            mask_updates: false,
        };
        let (mut x, mut state) = (0.5f32, [0f32; 2]);
        let (mut rx, mut rm, mut rv) = (0.5f64, 0f64, 0f64);
        for t in 1..50 {
            let g = (f64::from(t)).sin();
            (x, state) = StepRule::new(adam, 0.01, t as u32, [-10.0, 10.0]).apply(x, g as f32, state);
            rm = 0.9 * rm + 0.1 * g;
            rv = 0.99 * rv + 0.01 * g * g;
            rx -= 0.01 * (rm / (1.0 - 0.9f64.powi(t))) / ((rv / (1.0 - 0.99f64.powi(t))).sqrt() + 1e-8);
        }
        assert!((f64::from(x) - rx).abs() < 1e-5, "{x} != {rx}");
    }

    /// Against the published recurrences in f64: Sutskever's momentum without dampening, Tieleman and Hinton's running
    /// mean of squares.
    #[test]
    fn sgd_and_rmsprop_follow_their_recurrences() {
        let free = [f32::NEG_INFINITY, f32::INFINITY];
        let (momentum, decay, epsilon, rate) = (0.8, 0.9, 1e-3, 0.05);
        let sgd = Optimizer::Sgd { momentum: 0.8 };
        let rms = Optimizer::RmsProp {
            decay: 0.9,
            epsilon: 1e-3,
        };
        let (mut x, mut state, mut y, mut square) = (0.5f32, [0f32; 2], 0.5f32, [0f32; 2]);
        let (mut rx, mut velocity, mut ry, mut mean) = (0.5f64, 0f64, 0.5f64, 0f64);
        for t in 1..40u32 {
            let g = (0.7 * f64::from(t)).cos();
            (x, state) = StepRule::new(sgd, 0.05, t, free).apply(x, g as f32, state);
            (y, square) = StepRule::new(rms, 0.05, t, free).apply(y, g as f32, square);
            velocity = momentum * velocity + g;
            rx -= rate * velocity;
            mean = decay * mean + (1.0 - decay) * g * g;
            ry -= rate * g / (mean.sqrt() + epsilon);
            let near = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 2e-5, "step {t}: {a} != {b}");
            near(x, rx);
            near(state[0], velocity);
            near(y, ry);
            near(square[0], mean);
        }
    }

    /// Adam's epsilon is added outside of the root: with g = 1/2, v̂ = 1/4 and the step is 0.1 · 0.5 / (0.5 + 0.5).
    #[test]
    fn adams_epsilon_is_added_to_the_root() {
        let adam = |mask_updates| Optimizer::Adam {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 0.5,
            mask_updates,
        };
        let rule = StepRule::new(adam(true), 0.1, 1, [-1.0, 1.0]);
        let (value, [m, v]) = rule.apply(0.0, 0.5, [0.0; 2]);
        assert!((value + 0.05).abs() < 1e-6 && (m - 0.05).abs() < 1e-7 && (v - 0.0025).abs() < 1e-8);
        assert!(rule.masks_updates() && !StepRule::new(adam(false), 0.1, 1, [-1.0, 1.0]).masks_updates());
        assert!(!StepRule::new(Optimizer::Sgd { momentum: 0.0 }, 0.1, 1, [-1.0, 1.0]).masks_updates());
        let one = [
            Optimizer::Sgd { momentum: 0.5 },
            Optimizer::RmsProp {
                decay: 0.9,
                epsilon: 1e-8,
            },
        ];
        assert_eq!((adam(true).moments(), one.map(|o| o.moments())), (2, [1, 1]));
    }

    #[test]
    fn bounds_hold_after_a_step() {
        let rule = StepRule::new(Optimizer::Sgd { momentum: 0.0 }, 1.0, 1, [0.0, 1.0]);
        assert_eq!(rule.apply(0.5, 3.0, [0.0; 2]).0, 0.0);
        assert_eq!(rule.apply(0.5, -3.0, [0.0; 2]).0, 1.0);
    }
}
