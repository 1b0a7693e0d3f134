//! Conventional reverse-mode differentiation: every operation is recorded on the thread's tape, which is then read
//! backwards. Memory grows with the number of operations; path replay needs none of it.

use std::cell::RefCell;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Number;

/// Marks a number without derivatives.
const CONSTANT: u32 = u32::MAX;
/// Indices from here on are variables, lower ones operations of the tape.
const VARIABLES: u32 = 1 << 31;
/// The largest number of variables.
pub const MAX_VARIABLES: usize = (CONSTANT - VARIABLES) as usize;
/// Operations per block: tapes grow by blocks, so that recorded operations are never moved.
const BLOCK: usize = 1 << 12;

/// An operation: the numbers that its result depends on, and its partial derivatives.
#[derive(Debug, Clone, Copy)]
struct Entry {
    inputs: [u32; 2],
    partials: [f64; 2],
}

/// Bytes that the tapes of all threads may still allocate.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Budget {
    /// A budget in bytes.
    #[inline]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(bytes)))
    }

    #[inline]
    fn take(&self, bytes: usize) -> bool {
        let take = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// Recorded operations, in order.
#[derive(Debug, Default)]
pub struct Tape {
    blocks: Vec<Vec<Entry>>,
    len: usize,
    budget: Option<Arc<Budget>>,
    full: bool,
}

thread_local! {
    static TAPE: RefCell<Tape> = RefCell::default();
}

impl Tape {
    /// Starts recording on an empty tape on this thread; it may grow within `budget`.
    #[inline]
    pub fn begin(budget: Option<&Arc<Budget>>) {
        let budget = budget.cloned();
        TAPE.set(Self {
            budget,
            ..Self::default()
        });
    }

    /// Stops recording and returns this thread's tape.
    #[inline]
    pub fn end() -> Self {
        TAPE.take()
    }

    /// Whether the budget was exceeded on this thread, so that operations are missing.
    #[inline]
    pub fn has_overflown() -> bool {
        TAPE.with_borrow(|tape| tape.full)
    }

    /// Memory that the recorded operations take, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK * size_of::<Entry>()
    }

    /// Number of operations.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was recorded.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an operation and returns its index; None if the budget is exceeded.
    #[inline]
    fn push(&mut self, entry: Entry) -> Option<u32> {
        if self.len == self.blocks.len() * BLOCK {
            let bytes = BLOCK * size_of::<Entry>();
            let fits = self.len + BLOCK <= VARIABLES as usize && self.budget.as_ref().is_none_or(|b| b.take(bytes));
            if self.full || !fits {
                self.full = true;
                return None;
            }
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let number = self.len;
        self.blocks[number / BLOCK].push(entry);
        self.len += 1;
        Some(number as u32)
    }

    /// Reads the tape backwards: calls `send` with the index of a variable and a partial sum of the derivative of
    /// `output` by it.
    pub fn backpropagate(&self, output: Recorded, mut send: impl FnMut(usize, f64)) {
        let mut adjoints = vec![0.0; self.len];
        let mut add = |adjoints: &mut [f64], number: u32, d: f64| match number {
            CONSTANT => {}
            VARIABLES.. => send((number - VARIABLES) as usize, d),
            _ => adjoints[number as usize] += d,
        };
        add(&mut adjoints, output.number, 1.0);
        for index in (0..self.len).rev() {
            let (entry, d) = (&self.blocks[index / BLOCK][index % BLOCK], adjoints[index]);
            if d != 0.0 {
                for (input, partial) in entry.inputs.into_iter().zip(entry.partials) {
                    add(&mut adjoints, input, d * partial);
                }
            }
        }
    }
}

/// A number that is recorded on the tape of the thread that computes it.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    value: f64,
    number: u32,
}

impl Recorded {
    /// The independent variable of this index, below [`MAX_VARIABLES`].
    #[inline]
    pub fn variable(index: usize, value: f64) -> Self {
        debug_assert!(index < MAX_VARIABLES, "numbers have 32 bits");
        let number = VARIABLES + index as u32;
        Self { value, number }
    }

    #[inline]
    fn record(value: f64, inputs: [u32; 2], partials: [f64; 2]) -> Self {
        let number = TAPE.with_borrow_mut(|tape| tape.push(Entry { inputs, partials }));
        let number = number.unwrap_or(CONSTANT);
        Self { value, number }
    }

    #[inline]
    fn constant(value: f64) -> Self {
        let number = CONSTANT;
        Self { value, number }
    }

    #[inline]
    fn unary(self, value: f64, partial: f64) -> Self {
        if self.number == CONSTANT {
            return Self::constant(value);
        }
        Self::record(value, [self.number, CONSTANT], [partial, 0.0])
    }

    #[inline]
    fn binary(self, other: Self, value: f64, partials: [f64; 2]) -> Self {
        if self.number == CONSTANT && other.number == CONSTANT {
            return Self::constant(value);
        }
        Self::record(value, [self.number, other.number], partials)
    }

    /// Derivatives of this number by the first `variables` variables; ends this thread's tape.
    #[inline]
    pub fn gradient(self, variables: usize) -> Vec<f64> {
        let mut gradient = vec![0.0; variables];
        Tape::end().backpropagate(self, |variable, d| gradient[variable] += d);
        gradient
    }
}

impl Add for Recorded {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.binary(other, self.value + other.value, [1.0, 1.0])
    }
}

impl Sub for Recorded {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.binary(other, self.value - other.value, [1.0, -1.0])
    }
}

impl Mul for Recorded {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        self.binary(other, self.value * other.value, [other.value, self.value])
    }
}

impl Div for Recorded {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        self.binary(other, value, [1.0 / other.value, -value / other.value])
    }
}

impl Neg for Recorded {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        self.unary(-self.value, -1.0)
    }
}

impl AddAssign for Recorded {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Recorded {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl MulAssign for Recorded {
    #[inline]
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl Number for Recorded {
    /// A plain sum: nothing is subtracted from it again, and the tape would record every operation of the compensation.
    #[inline]
    fn add_doubled([sum, low]: [Self; 2], term: Self) -> [Self; 2] {
        [sum + term, low]
    }
    #[inline]
    fn lift(x: f32) -> Self {
        Self::constant(f64::from(x))
    }
    #[inline]
    fn value(self) -> f64 {
        self.value
    }
    #[inline]
    fn detach(self) -> Self {
        Self::constant(self.value)
    }
    #[inline]
    fn below(self, bound: f32) -> bool {
        self.value < f64::from(bound)
    }
    #[inline]
    fn above(self, bound: f32) -> bool {
        self.value > f64::from(bound)
    }
    #[inline]
    fn exp(self) -> Self {
        let e = self.value.exp();
        self.unary(e, e)
    }
    #[inline]
    fn exp_m1(self) -> Self {
        self.unary(self.value.exp_m1(), self.value.exp())
    }
    #[inline]
    fn ln(self) -> Self {
        self.unary(self.value.ln(), 1.0 / self.value)
    }
    #[inline]
    fn ln_1p(self) -> Self {
        self.unary(self.value.ln_1p(), 1.0 / (1.0 + self.value))
    }
    #[inline]
    fn recip(self) -> Self {
        let r = 1.0 / self.value;
        self.unary(r, -r * r)
    }
    #[inline]
    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        self.unary(root, 0.5 / root)
    }
    #[inline]
    fn sin(self) -> Self {
        let (sine, cosine) = self.value.sin_cos();
        self.unary(sine, cosine)
    }
    #[inline]
    fn cos(self) -> Self {
        let (sine, cosine) = self.value.sin_cos();
        self.unary(cosine, -sine)
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
        sum += (x.sqrt() / y.abs()).sin() * (x / y).cos();
        sum += x.min(y) * y.max(x);
        sum += x.ln() * y;
        sum
    }

    #[test]
    fn reverse_mode_agrees_with_forward_mode() {
        Tape::begin(None);
        let z = formula(Recorded::variable(0, 0.3), Recorded::variable(1, -0.8));
        let gradient = z.gradient(2);
        let dx = formula(Dual::new(0.3, 1.0), Dual::constant(-0.8));
        let dy = formula(Dual::constant(0.3), Dual::new(-0.8, 1.0));
        assert_eq!(z.value(), dx.value);
        assert!((gradient[0] - dx.slope).abs() < 1e-15, "{gradient:?} {dx:?}");
        assert!((gradient[1] - dy.slope).abs() < 1e-15, "{gradient:?} {dy:?}");
    }

    #[test]
    fn constants_leave_no_entries() {
        Tape::begin(None);
        let x = Recorded::variable(0, 1.0);
        let _ = Recorded::lift(2.0) * Recorded::lift(3.0) + x.detach();
        let y = x + x;
        assert_eq!(y.gradient(1), [2.0]);
        Tape::begin(None);
        let _ = x * x;
        assert_eq!(Tape::end().len(), 1);
    }

    #[test]
    fn a_tape_is_whole_across_blocks_and_ends_with_its_budget() {
        let chain = |budget: Option<&Arc<Budget>>, steps: usize| {
            Tape::begin(budget);
            let mut x = Recorded::variable(0, 1.0);
            for _ in 0..steps {
                x *= Recorded::lift(1.001);
            }
            let overflown = Tape::has_overflown();
            (x, Tape::end(), overflown)
        };
        let (x, tape, overflown) = chain(None, 3 * BLOCK);
        let mut slope = 0.0;
        tape.backpropagate(x, |_, d| slope += d);
        assert!((slope / x.value() - 1.0).abs() < 1e-12 && !overflown, "{slope}");
        assert_eq!(tape.bytes(), 3 * BLOCK * 24);
        let budget = Budget::new(tape.bytes());
        let (_, tape, overflown) = chain(Some(&budget), 3 * BLOCK);
        assert!(!overflown && tape.len() == 3 * BLOCK);
        let (_, tape, overflown) = chain(Some(&budget), 1);
        assert!(overflown && tape.is_empty());
    }
}
