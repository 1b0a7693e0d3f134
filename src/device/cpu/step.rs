//! The optimiser's step on the CPU, a block of entries at a time.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::holding::Holding;
use super::shared::SharedSlice;
use super::update::Updates;
use super::vector::level::{Kernel, Level};
use super::vector::wide::Wide;
use crate::device::{DeviceError, Result, Step};
use crate::kernels::optimizer::{Optimizer, StepRule};
use crate::params::{ParamSet, Parameter, Shape};

/// Entries of a block, which a step visits or skips as a whole: most blocks of a field's gradient are all zero.
pub(super) const BLOCK: usize = 64;

/// Blocks of a span, which one thread steps.
const SPAN: usize = 256;

/// Entries of a span. The squares of a span's gradient are added in a fixed order, on one rank.
pub(super) const SPAN_ENTRIES: usize = BLOCK * SPAN;

/// Which blocks of an array have something to do in a step.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Blocks whose gradient may differ from zero.
    touched: Vec<AtomicBool>,
    /// Blocks whose moments may differ from zero, or whose values may be out of bounds.
    awake: Vec<bool>,
}

impl Activity {
    /// For an array of `len` entries whose gradient is zero; `awake` if its moments may differ from zero.
    pub(super) fn new(len: usize, awake: bool) -> Self {
        let blocks = len.div_ceil(BLOCK);
        Self {
            touched: (0..blocks).map(|_| AtomicBool::new(false)).collect(),
            awake: vec![awake; blocks],
        }
    }

    /// Marks the blocks of this range of entries as touched: their gradient may differ from zero.
    pub(super) fn touch(&self, range: Range<usize>) {
        for block in &self.touched[range.start / BLOCK..range.end.div_ceil(BLOCK)] {
            block.store(true, Ordering::Relaxed);
        }
    }

    /// For each block of a range whether it is marked as touched: 1, else 0.
    pub(super) fn touched(&self, blocks: Range<usize>) -> Vec<u8> {
        self.touched[blocks]
            .iter()
            .map(|block| u8::from(block.load(Ordering::Relaxed)))
            .collect()
    }

    /// Marks as touched those blocks from `first` on that `touched`, another rank's marks, names.
    pub(super) fn touch_blocks(&mut self, first: usize, touched: &[u8]) {
        for (block, touched) in self.touched[first..].iter_mut().zip(touched) {
            *block.get_mut() |= *touched != 0;
        }
    }

    /// For each block of a range whether the next step may change it; `masked` if entries without gradient keep their values.
    pub(super) fn to_step(&self, blocks: Range<usize>, masked: bool) -> Vec<u8> {
        let flags = self.touched[blocks.clone()].iter().zip(&self.awake[blocks]);
        flags
            .map(|(touched, awake)| u8::from(has_to_step(touched.load(Ordering::Relaxed), *awake, masked)))
            .collect()
    }

    /// Takes a block's mark away, and returns whether it was touched.
    pub(super) fn forget(&self, block: usize) -> bool {
        take(&self.touched[block])
    }

    /// Whether the block of an entry is marked as touched.
    #[cfg(test)]
    pub(super) fn is_touched(&self, entry: usize) -> bool {
        self.touched[entry / BLOCK].load(Ordering::Relaxed)
    }

    /// Marks the blocks of one texel as touched.
    #[inline(always)]
    pub(super) fn touch_texel<const CHANNELS: usize>(&self, texel: usize) {
        let first = texel * CHANNELS;
        self.touched[first / BLOCK].store(true, Ordering::Relaxed);
        if CHANNELS > 1 {
            self.touched[(first + CHANNELS - 1) / BLOCK].store(true, Ordering::Relaxed);
        }
    }

    /// Marks all blocks as touched.
    pub(super) fn touch_all(&mut self) {
        self.touched.iter_mut().for_each(|block| *block.get_mut() = true);
    }

    /// Wakes blocks with values out of bounds: a step would project them, whatever their gradient.
    pub(super) fn wake_outside(&mut self, values: &[f32], bounds: [f32; 2]) {
        let [low, high] = bounds;
        for (awake, values) in self.awake.iter_mut().zip(values.chunks(BLOCK)) {
            *awake |= values.iter().any(|x| !(low..=high).contains(x));
        }
    }

    /// Wakes the blocks of `moments`, which were written, that are not all zero.
    pub(super) fn wake(&mut self, moments: &[f32]) {
        self.wake_from(0, moments);
    }

    /// [`Self::wake`] for moments that begin at the block `first`.
    pub(super) fn wake_from(&mut self, first: usize, moments: &[f32]) {
        for (awake, moments) in self.awake[first..].iter_mut().zip(moments.chunks(BLOCK)) {
            *awake |= moments.iter().any(|m| *m != 0.0);
        }
    }
}

impl Updates {
    /// Steps every tuned parameter, zeroes the gradients and returns their norms.
    pub(super) fn step(&mut self, level: Level, params: &mut ParamSet, step: &Step) -> Result<Vec<f64>> {
        self.complete_gradients();
        let mut squares = self.step_undealt(level, params, step);
        for (i, parameter) in params.parameters.iter_mut().enumerate() {
            if self.holdings[i].is_some() {
                squares[i] = self.step_dealt(level, i, parameter, step);
            }
        }
        let sums: Vec<f64> = squares.iter().map(|of| of.iter().sum()).collect();
        match sums.iter().position(|sum: &f64| sum.is_nan()) {
            None => Ok(sums.into_iter().map(f64::sqrt).collect()),
            Some(i) => Err(self.name_broken_entry(i, &params.parameters[i])),
        }
    }

    /// Steps the parameters that are not dealt out to ranks. Returns for each the gradient's sum of squares of each span.
    fn step_undealt(&mut self, level: Level, params: &mut ParamSet, step: &Step) -> Vec<Vec<f64>> {
        let arrays = self.gradients.iter_mut().zip(&mut self.moments).zip(&mut self.activity);
        let tasks: Vec<Option<StepTask>> = arrays
            .zip(&self.holdings)
            .zip(&mut params.parameters)
            .map(|((arrays, holding), parameter)| match holding {
                None => StepTask::new(parameter, step, None, arrays),
                Some(_) => None,
            })
            .collect();
        // The spans of all parameters in one parallel loop: no barrier between parameters.
        let spans: Vec<StepSpan> = tasks
            .iter()
            .flatten()
            .flat_map(|task| {
                let begins = task.own.clone().step_by(SPAN_ENTRIES);
                begins.map(move |begin| StepSpan {
                    task,
                    begin,
                    told: None,
                })
            })
            .collect();
        let squares: Vec<f64> = spans.into_par_iter().map(|span| level.run(span)).collect();
        let mut squares = squares.into_iter();
        let spans_of = |task: &StepTask| task.own.len().div_ceil(SPAN_ENTRIES);
        tasks
            .iter()
            .map(|task| squares.by_ref().take(task.as_ref().map_or(0, spans_of)).collect())
            .collect()
    }

    /// Names the first entry whose gradient was left in place because it is not finite.
    fn name_broken_entry(&mut self, index: usize, parameter: &Parameter) -> DeviceError {
        let Shape { size, channels } = parameter.shape;
        let gradient = &self.gradients[index];
        let own = self.holdings[index].as_ref().map_or(0..gradient.len(), Holding::own);
        let found = own.clone().find(|&entry| !gradient[entry].is_finite());
        let entry = match &self.holdings[index] {
            Some(holding) => holding.first(found),
            None => found,
        };
        let entry = entry.unwrap_or(0);
        let texel = entry / channels;
        self.clear();
        DeviceError::NotFinite {
            path: parameter.path.clone(),
            texel: [texel % size[0], texel / size[0] % size[1], texel / (size[0] * size[1])],
            channel: entry % channels,
        }
    }
}

/// A parameter's gradient, moments and activity.
pub(super) type Arrays<'a> = ((&'a mut Vec<f32>, &'a mut Vec<Vec<f32>>), &'a mut Activity);

/// The arrays of one parameter.
pub(super) struct StepTask<'a> {
    /// The entries that this rank steps.
    own: Range<usize>,
    rule: StepRule,
    values: SharedSlice<'a, f32>,
    gradient: SharedSlice<'a, f32>,
    first: SharedSlice<'a, f32>,
    /// Empty for optimisers with one moment.
    second: SharedSlice<'a, f32>,
    touched: &'a [AtomicBool],
    awake: SharedSlice<'a, bool>,
}

impl<'a> StepTask<'a> {
    /// The task for a parameter, or only for its `own` entries; None if it is not tuned.
    pub(super) fn new(
        parameter: &'a mut Parameter,
        step: &Step,
        own: Option<Range<usize>>,
        ((gradient, moments), activity): Arrays<'a>,
    ) -> Option<Self> {
        let tuning = parameter.tuning?;
        let (first, second) = moments
            .split_first_mut()
            .expect("every optimiser keeps at least one moment");
        let second = second.first_mut().map_or(&mut [][..], |m| &mut m[..]);
        let rate = step.rate_of(parameter.quantity, tuning);
        Some(Self {
            own: own.unwrap_or(0..parameter.values.len()),
            rule: StepRule::new(step.optimizer, rate, step.count, tuning.bounds),
            values: SharedSlice::new(&mut parameter.values),
            gradient: SharedSlice::new(gradient),
            first: SharedSlice::new(first),
            second: SharedSlice::new(second),
            touched: &activity.touched,
            awake: SharedSlice::new(&mut activity.awake),
        })
    }
}

/// Entries that are stepped by one thread.
pub(super) struct StepSpan<'a> {
    pub(super) task: &'a StepTask<'a>,
    /// The first entry.
    pub(super) begin: usize,
    /// The buffer that other ranks will be sent, and the place in it from which on the values of stepped blocks are copied. All
    /// blocks are whole, except the last of an array.
    pub(super) told: Option<(&'a SharedSlice<'a, f32>, usize)>,
}

impl Kernel for StepSpan<'_> {
    /// Sum of the squares of the gradient; NaN if an entry is not finite.
    type Output = f64;

    #[inline(always)]
    fn run<W: Wide>(mut self) -> f64 {
        let mut total = Squares::default();
        let mut broken = false;
        let end = self.task.own.end.min(self.begin + SPAN_ENTRIES);
        let masked = self.task.rule.masks_updates();
        for block in self.begin / BLOCK..end.div_ceil(BLOCK) {
            let touched = take(&self.task.touched[block]);
            // SAFETY: each block is stepped once, by one thread, and touches its own range and flag alone.
            let awake = unsafe { &mut self.task.awake.get()[block] };
            *awake |= touched;
            if has_to_step(touched, *awake, masked) {
                let range = block * BLOCK..((block + 1) * BLOCK).min(end);
                broken |= !step_block(self.task, range.clone(), touched, &mut total);
                if let Some((told, place)) = &mut self.told {
                    // SAFETY: as above; each block has a place of its own in the buffer.
                    let (told, values) = unsafe { (told.get(), self.task.values.get()) };
                    told[*place..][..range.len()].copy_from_slice(&values[range]);
                    *place += BLOCK;
                }
            }
        }
        if broken { f64::NAN } else { total.sum() }
    }
}

/// Whether a step may change a block's values or moments.
#[inline(always)]
fn has_to_step(touched: bool, awake: bool, masked: bool) -> bool {
    touched || (awake && !masked)
}

/// Clears a flag that no other thread touches meanwhile, and returns its old value. An atomic exchange would cost more than
/// skipping a block.
#[inline(always)]
fn take(flag: &AtomicBool) -> bool {
    let raised = flag.load(Ordering::Relaxed);
    if raised {
        flag.store(false, Ordering::Relaxed);
    }
    raised
}

/// Sixteen running sums of squares, added in a fixed order at the end.
#[derive(Debug, Default)]
struct Squares([f64; LANES]);

impl Squares {
    fn sum(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// Steps one block and adds the squares of its gradient to `total`; `touched` if the gradient may differ from zero.
/// False if an entry is not finite.
#[inline(always)]
fn step_block(task: &StepTask, range: Range<usize>, touched: bool, total: &mut Squares) -> bool {
    let rule = task.rule;
    let masked = rule.masks_updates();
    // The gradient of an untouched block is zero, and need not be loaded nor stored.
    let mut zeros = [0.0; BLOCK];
    // SAFETY: the caller steps each block once, on one thread.
    let (values, gradient, first, second) = unsafe {
        let second = task.second.get();
        (
            &mut task.values.get()[range.clone()],
            match touched {
                true => &mut task.gradient.get()[range.clone()],
                false => &mut zeros[..range.len()],
            },
            &mut task.first.get()[range.clone()],
            if second.is_empty() { second } else { &mut second[range] },
        )
    };
    if touched {
        let squares = sums_of_squares(gradient);
        let mut finite = true;
        for l in 0..LANES {
            finite &= squares[l].is_finite();
        }
        if !finite {
            step_carefully(&rule, values, gradient, first, second);
            return false;
        }
        for l in 0..LANES {
            total.0[l] += f64::from(squares[l]);
        }
    }
    if second.is_empty() {
        for ((x, g), m) in values.iter_mut().zip(gradient).zip(first) {
            let (value, [moment, _]) = rule.apply(*x, *g, [*m, 0.0]);
            (*x, *m, *g) = (value, moment, 0.0);
        }
        return true;
    }
    let (x, x_rest) = values.as_chunks_mut::<LANES>();
    let (g, g_rest) = gradient.as_chunks_mut::<LANES>();
    let (m, m_rest) = first.as_chunks_mut::<LANES>();
    let (v, v_rest) = second.as_chunks_mut::<LANES>();
    for i in 0..x.len() {
        if masked && is_zero(&g[i]) {
            continue;
        }
        (x[i], m[i], v[i]) = step_lanes(&rule, masked, x[i], g[i], m[i], v[i]);
        g[i] = [0.0; LANES];
    }
    for i in 0..x_rest.len() {
        let (value, moments) = rule.apply(x_rest[i], g_rest[i], [m_rest[i], v_rest[i]]);
        if !masked || g_rest[i] != 0.0 {
            (x_rest[i], m_rest[i], v_rest[i]) = (value, moments[0], moments[1]);
        }
        g_rest[i] = 0.0;
    }
    true
}

/// Entries that are stepped in one vector (SIMD lanes).
const LANES: usize = 16;

type Lanes = [f32; LANES];

#[inline(always)]
fn is_zero(lanes: &Lanes) -> bool {
    let mut zero = true;
    for l in 0..LANES {
        zero &= lanes[l] == 0.0;
    }
    zero
}

/// Values and both moments after a step. Arrays are passed by value, so that the compiler knows that they do not alias.
#[inline(always)]
fn step_lanes(rule: &StepRule, masked: bool, x: Lanes, g: Lanes, m: Lanes, v: Lanes) -> (Lanes, Lanes, Lanes) {
    let (mut next, mut first, mut second) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    // The optimiser is chosen before the loop: a branch on it within the loop would keep the compiler from vectorising.
    let rule = StepRule {
        optimizer: match rule.optimizer {
            Optimizer::Adam {
                beta_1,
                beta_2,
                epsilon,
                ..
            } => Optimizer::Adam {
                beta_1,
                beta_2,
                epsilon,
                mask_updates: masked,
            },
            Optimizer::Sgd { .. } | Optimizer::RmsProp { .. } => unreachable!("they keep one moment"),
        },
        ..*rule
    };
    for l in 0..LANES {
        let (value, moments) = rule.apply(x[l], g[l], [m[l], v[l]]);
        (next[l], first[l], second[l]) = (value, moments[0], moments[1]);
    }
    if masked {
        for l in 0..LANES {
            let keep = g[l] == 0.0;
            next[l] = if keep { x[l] } else { next[l] };
            first[l] = if keep { m[l] } else { first[l] };
            second[l] = if keep { v[l] } else { second[l] };
        }
    }
    (next, first, second)
}

/// Sums of squares by lane: lane l sums entries l, l + 16, l + 32, …
#[inline(always)]
fn sums_of_squares(gradient: &[f32]) -> Lanes {
    let mut lanes = [0f32; LANES];
    let (whole, rest) = gradient.as_chunks::<LANES>();
    for i in 0..whole.len() {
        for l in 0..LANES {
            lanes[l] += whole[i][l] * whole[i][l];
        }
    }
    for l in 0..rest.len() {
        lanes[l] += rest[l] * rest[l];
    }
    lanes
}

/// Steps the finite entries of a block and leaves the others, gradient included, as they are.
#[cold]
fn step_carefully(rule: &StepRule, values: &mut [f32], gradient: &mut [f32], first: &mut [f32], second: &mut [f32]) {
    for i in 0..values.len() {
        let g = gradient[i];
        if !g.is_finite() {
            continue;
        }
        if g == 0.0 && rule.masks_updates() {
            continue;
        }
        let v = second.get(i).copied().unwrap_or(0.0);
        let (value, moments) = rule.apply(values[i], g, [first[i], v]);
        (values[i], first[i], gradient[i]) = (value, moments[0], 0.0);
        if let Some(v) = second.get_mut(i) {
            *v = moments[1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_are_written_wake_their_blocks() {
        let mut moments = vec![0.0; 3 * BLOCK + 1];
        let mut activity = Activity::new(moments.len(), false);
        (moments[BLOCK], moments[3 * BLOCK]) = (1e-30, -1.0);
        activity.wake(&moments);
        assert_eq!(activity.awake, [false, true, false, true]);
        activity.wake(&vec![0.0; moments.len()]);
        assert_eq!(
            activity.awake,
            [false, true, false, true],
            "the other moment does not put them to sleep"
        );
    }
}
