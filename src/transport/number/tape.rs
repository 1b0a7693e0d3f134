//! Conventional reverse-mode derivatives: every operation is recorded on the thread's tape, which is then read
//! backwards. Memory grows with the number of operations: what path replay does without.

use std::cell::RefCell;
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::Number;

/// Marks a number that depends on no variable.
const CONSTANT: u32 = u32::MAX;

/// An operation: on which entries its result depends, and its partial derivatives.
#[derive(Debug, Clone, Copy)]
struct Entry {
    inputs: [u32; 2],
    partials: [f64; 2],
}

thread_local! {
    static TAPE: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// A number whose history is on the tape of the thread that made it.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    value: f64,
    entry: u32,
}

impl Recorded {
    /// A new independent variable.
    pub fn variable(value: f64) -> Self {
        Self::record(value, [CONSTANT; 2], [0.0; 2])
    }

    fn record(value: f64, inputs: [u32; 2], partials: [f64; 2]) -> Self {
        TAPE.with_borrow_mut(|tape| {
            let entry = tape.len() as u32;
            tape.push(Entry { inputs, partials });
            Self { value, entry }
        })
    }

    fn constant(value: f64) -> Self {
        Self { value, entry: CONSTANT }
    }

    fn unary(self, value: f64, partial: f64) -> Self {
        if self.entry == CONSTANT {
            return Self::constant(value);
        }
        Self::record(value, [self.entry, CONSTANT], [partial, 0.0])
    }

    fn binary(self, other: Self, value: f64, partials: [f64; 2]) -> Self {
        if self.entry == CONSTANT && other.entry == CONSTANT {
            return Self::constant(value);
        }
        Self::record(value, [self.entry, other.entry], partials)
    }

    /// Derivatives of this number by the tape's first `variables` entries.
    pub fn gradient(self, variables: usize) -> Vec<f64> {
        TAPE.with_borrow(|tape| {
            let mut adjoints = vec![0.0; tape.len()];
            if self.entry != CONSTANT {
                adjoints[self.entry as usize] = 1.0;
            }
            for (index, entry) in tape.iter().enumerate().rev() {
                for (input, partial) in entry.inputs.into_iter().zip(entry.partials) {
                    if input != CONSTANT {
                        adjoints[input as usize] += adjoints[index] * partial;
                    }
                }
            }
            adjoints.truncate(variables);
            adjoints
        })
    }
}

/// Number of entries on this thread's tape.
pub fn tape_len() -> usize {
    TAPE.with_borrow(Vec::len)
}

/// Forgets all entries of this thread's tape from `len` on; numbers made since must not be used again.
pub fn rewind_tape(len: usize) {
    TAPE.with_borrow_mut(|tape| tape.truncate(len));
}

impl Add for Recorded {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.binary(other, self.value + other.value, [1.0, 1.0])
    }
}

impl Sub for Recorded {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.binary(other, self.value - other.value, [1.0, -1.0])
    }
}

impl Mul for Recorded {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.binary(other, self.value * other.value, [other.value, self.value])
    }
}

impl Neg for Recorded {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary(-self.value, -1.0)
    }
}

impl AddAssign for Recorded {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Recorded {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl MulAssign for Recorded {
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl Number for Recorded {
    fn lift(x: f32) -> Self {
        Self::constant(f64::from(x))
    }
    fn value(self) -> f64 {
        self.value
    }
    fn detach(self) -> Self {
        Self::constant(self.value)
    }
    fn below(self, bound: f32) -> bool {
        self.value < f64::from(bound)
    }
    fn exp(self) -> Self {
        let e = self.value.exp();
        self.unary(e, e)
    }
    fn exp_m1(self) -> Self {
        self.unary(self.value.exp_m1(), self.value.exp())
    }
    fn ln_1p(self) -> Self {
        self.unary(self.value.ln_1p(), 1.0 / (1.0 + self.value))
    }
    fn recip(self) -> Self {
        let r = 1.0 / self.value;
        self.unary(r, -r * r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::number::dual::Dual;

    fn formula<N: Number>(x: N, y: N) -> N {
        let mut sum = (x * y).exp() - (-y).exp_m1() * x;
        sum += (x * x).ln_1p();
        sum *= (y + N::lift(2.0)).recip();
        sum -= x.detach() * y;
        sum
    }

    #[test]
    fn reverse_mode_agrees_with_forward_mode() {
        rewind_tape(0);
        let z = formula(Recorded::variable(0.3), Recorded::variable(-0.8));
        let gradient = z.gradient(2);
        let dx = formula(Dual::new(0.3, 1.0), Dual::constant(-0.8));
        let dy = formula(Dual::constant(0.3), Dual::new(-0.8, 1.0));
        assert_eq!(z.value(), dx.value);
        assert!((gradient[0] - dx.slope).abs() < 1e-15, "{gradient:?} {dx:?}");
        assert!((gradient[1] - dy.slope).abs() < 1e-15, "{gradient:?} {dy:?}");
    }

    #[test]
    fn constants_leave_no_entries_and_rewinding_forgets() {
        rewind_tape(0);
        let x = Recorded::variable(1.0);
        let _ = Recorded::lift(2.0) * Recorded::lift(3.0) + x.detach();
        assert_eq!(tape_len(), 1);
        let _ = x * x;
        rewind_tape(1);
        assert_eq!((x + x).gradient(1), [2.0]);
    }
}
