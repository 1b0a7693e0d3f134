//! Where parameters lie on the device, and whether they fit. Pure: no device is needed to ask.

use super::adapters::AdapterSummary;
use super::shaders::Accumulation;
use crate::device::{DeviceError, Result};
use crate::params::{ParamSet, Shape};

/// Most buffers that parameters are cut into: their number is in the highest bit of an address.
pub(super) const MAX_BANKS: usize = 2;

/// Addresses of the second bank begin here.
const SECOND_BANK: u32 = 1 << 31;

/// Entries to which parameters in a bank are aligned.
const ALIGNMENT: usize = 64;

/// Bytes of a sum in whole numbers.
const SUM_BYTES: u64 = 8;

/// A parameter's place: it lies in one bank as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub bank: usize,
    pub first: usize,
    pub len: usize,
}

impl Place {
    /// The address of its first entry in shaders.
    pub(super) fn address(self) -> u32 {
        match self.bank {
            0 => self.first as u32,
            _ => SECOND_BANK + self.first as u32,
        }
    }
}

/// The number of banks that shaders can bind, and the most entries of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    banks: usize,
    entries: usize,
}

impl Room {
    /// The room on an adapter for kernels that bind `others` storage buffers beside those of parameters and their
    /// gradients.
    pub(super) fn new(adapter: &AdapterSummary, others: u32, accumulation: Accumulation) -> Self {
        let entry = if accumulation.is_fixed() { SUM_BYTES } else { 4 };
        let free = adapter.max_storage_buffers.saturating_sub(others) as usize / 2;
        Self {
            banks: free.clamp(1, MAX_BANKS),
            entries: (limit(adapter) / entry).min(u64::from(SECOND_BANK)) as usize,
        }
    }
}

impl Room {
    /// This room with at most `entries` entries in a bank.
    pub(super) fn at_most(self, entries: Option<usize>) -> Self {
        Self {
            entries: self.entries.min(entries.unwrap_or(usize::MAX)),
            ..self
        }
    }
}

/// The places of all parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub places: Vec<Place>,
    pub banks: Vec<BankPlan>,
}

/// A buffer of parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BankPlan {
    pub len: usize,
    /// Whether one of its parameters is tuned.
    pub tuned: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            banks: vec![BankPlan::default()],
        }
    }
}

impl Plan {
    /// Lays parameters out, each tuned or not: from the largest to the smallest into the first bank with room, or, if
    /// there is none, into the one with the least in it, which [`Self::check_fits`] refuses.
    pub(super) fn new(shapes: &[(Shape, bool)], room: Room) -> Self {
        let mut plan = Self {
            places: vec![Place::default(); shapes.len()],
            ..Self::default()
        };
        let mut by_size: Vec<usize> = (0..shapes.len()).collect();
        by_size.sort_by_key(|&i| std::cmp::Reverse(shapes[i].0.len()));
        for i in by_size {
            let (len, tuned) = (shapes[i].0.len(), shapes[i].1);
            let fits = |bank: &BankPlan| bank.len + len <= room.entries;
            let bank = match plan.banks.iter().position(fits) {
                Some(bank) => bank,
                None if plan.banks.len() < room.banks => {
                    plan.banks.push(BankPlan::default());
                    plan.banks.len() - 1
                }
                None => (0..plan.banks.len()).min_by_key(|&b| plan.banks[b].len).unwrap_or(0),
            };
            let target = &mut plan.banks[bank];
            let first = target.len;
            plan.places[i] = Place { bank, first, len };
            target.len = (first + len).next_multiple_of(ALIGNMENT);
            target.tuned |= tuned;
        }
        plan
    }

    /// Bytes of a bank's gradient.
    pub(super) fn gradient_bytes(&self, bank: usize) -> u64 {
        if self.banks[bank].tuned {
            self.value_bytes(bank)
        } else {
            0
        }
    }

    /// Bytes of the sums in whole numbers beside a bank's gradient.
    pub(super) fn sum_bytes(&self, bank: usize, accumulation: Accumulation) -> u64 {
        match self.banks[bank].tuned && accumulation.is_fixed() {
            true => SUM_BYTES * self.banks[bank].len as u64,
            false => 0,
        }
    }

    /// Bytes of a bank's values, or of one of its moments.
    pub(super) fn value_bytes(&self, bank: usize) -> u64 {
        4 * self.banks[bank].len as u64
    }

    /// Refuses what an adapter cannot hold.
    ///
    /// # Errors
    /// A buffer exceeds a limit: which parameter it is, its size, the limit, and what would fit.
    pub(super) fn check_fits(
        &self,
        names: &[String],
        shapes: &[(Shape, bool)],
        adapter: &AdapterSummary,
        accumulation: Accumulation,
    ) -> Result<()> {
        let limit = limit(adapter);
        for bank in 0..self.banks.len() {
            let sums = self.sum_bytes(bank, accumulation);
            let bytes = self.value_bytes(bank).max(sums);
            if bytes <= limit {
                continue;
            }
            let in_bank = (0..shapes.len()).filter(|&i| self.places[i].bank == bank);
            let Some(largest) = in_bank.max_by_key(|&i| shapes[i].0.len()) else {
                continue;
            };
            let shape = shapes[largest].0;
            let entry = if sums > 0 { SUM_BYTES } else { 4 };
            let others = bytes - entry * shape.len() as u64;
            let what = if entry > 4 { "the fixed-point gradient of " } else { "" };
            return Err(DeviceError::TooLarge(format!(
                "{what}{} at {} takes {}, but {} gives a shader at most {} of one array; {}, or use --device cpu",
                names.get(largest).map_or("a parameter", String::as_str),
                describe(shape.size, shape.channels),
                mebibytes(entry * shape.len() as u64),
                adapter.name,
                mebibytes(limit),
                match fitting(shape, entry, limit.saturating_sub(others)) {
                    Some(size) => format!("a resolution of {} would fit", describe(size, 0)),
                    None => "no resolution would fit".to_owned(),
                },
            )));
        }
        Ok(())
    }
}

/// Bytes of the largest buffer that a shader can be given.
fn limit(adapter: &AdapterSummary) -> u64 {
    adapter.max_binding_bytes.min(adapter.max_buffer_bytes)
}

/// Shapes and whether they are tuned.
pub(super) fn shapes(params: &ParamSet) -> Vec<(Shape, bool)> {
    params
        .parameters
        .iter()
        .map(|p| (p.shape, p.tuning.is_some()))
        .collect()
}

/// The largest size of the same proportions whose array keeps to a limit.
fn fitting(shape: Shape, entry: u64, limit: u64) -> Option<[usize; 3]> {
    let bytes = |size: [usize; 3]| size.iter().map(|n| *n as u64).product::<u64>() * shape.channels as u64 * entry;
    let longest = *shape.size.iter().max()?;
    (1..longest).rev().find_map(|edge| {
        let size = shape.size.map(|n| (n * edge / longest).max(1));
        (bytes(size) <= limit).then_some(size)
    })
}

fn describe(size: [usize; 3], channels: usize) -> String {
    let [x, y, z] = size;
    match channels {
        0 => format!("{x}×{y}×{z}"),
        _ => format!("{x}×{y}×{z}×{channels}"),
    }
}

/// A size in MiB, for messages.
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::adapters::AdapterKind;

    fn adapter(limit: u64) -> AdapterSummary {
        AdapterSummary {
            name: "a small GPU".into(),
            backend: "vulkan".into(),
            kind: AdapterKind::DiscreteGpu,
            driver: String::new(),
            max_binding_bytes: limit,
            max_buffer_bytes: u64::MAX,
            max_storage_buffers: 8,
            float_atomics: true,
            wide_atomics: true,
            subgroups: true,
            ray_queries: false,
        }
    }

    fn field(edge: usize, channels: usize) -> Vec<(Shape, bool)> {
        let shape = |channels| Shape {
            size: [edge; 3],
            channels,
        };
        let emitter = Shape {
            size: [1; 3],
            channels: 3,
        };
        vec![(shape(1), true), (shape(channels), true), (emitter, false)]
    }

    /// One bank where all fits into it, two where it does not, and the second only where the adapter binds buffers enough.
    #[test]
    fn parameters_are_cut_by_size() {
        let shapes = field(64, 12);
        let [one, both] = [64u64.pow(3), 64u64.pow(3) * 13].map(|entries| 4 * (entries + 256));
        let places = |limit, others| {
            let room = Room::new(&adapter(limit), others, Accumulation::FloatAtomic);
            Plan::new(&shapes, room)
        };
        let whole = places(both, 4);
        assert_eq!(whole.banks.len(), 1);
        let mut ends: Vec<_> = whole.places.iter().map(|p| (p.first, p.first + p.len)).collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:?}");
        assert!(ends[2].1 <= whole.banks[0].len);
        let cut = places(both - one / 2, 4);
        let [sigma, sh, emitter] = cut.places[..] else {
            panic!("three places");
        };
        assert_eq!((sh.bank, sh.first, sigma.bank, sigma.first), (0, 0, 1, 0));
        assert_eq!((emitter.bank, emitter.first), (0, sh.len));
        assert_eq!([sh.address(), sigma.address()], [0, 1 << 31]);
        assert_eq!(cut.banks.iter().map(|b| b.tuned).collect::<Vec<_>>(), [true, true]);
        assert_eq!(
            places(both - one / 2, 6).banks.len(),
            1,
            "eight storage buffers: six others leave one bank"
        );
    }

    #[test]
    fn a_refusal_names_what_would_fit_and_that_fits() {
        let names = ["s", "the coefficients", "e"].map(String::from);
        let limit = 128 << 20;
        let check_fits = |edge, accumulation| {
            let shapes = field(edge, 27);
            let adapter = adapter(limit);
            Plan::new(&shapes, Room::new(&adapter, 4, accumulation)).check_fits(&names, &shapes, &adapter, accumulation)
        };
        let message = check_fits(128, Accumulation::FloatAtomic)
            .expect_err("216 MiB do not fit")
            .to_string();
        for part in [
            "the coefficients",
            "128×128×128×27",
            "216 MiB",
            "a small GPU",
            "128 MiB",
            "107×107×107",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!(check_fits(107, Accumulation::FloatAtomic).is_ok());
        assert!(check_fits(108, Accumulation::FloatAtomic).is_err());
        let message = check_fits(107, Accumulation::FixedPoint)
            .expect_err("twice the bytes")
            .to_string();
        assert!(
            message.contains("fixed-point gradient") && message.contains("85×85×85"),
            "{message}"
        );
        assert!(check_fits(85, Accumulation::FixedPoint).is_ok() && check_fits(86, Accumulation::FixedPoint).is_err());
    }

    /// A constant that is private to this module has the same value in the shaders.
    #[test]
    fn shaders_know_where_the_second_buffer_begins() {
        let declared = format!("const SECOND_BANK: u32 = {SECOND_BANK:#x}u;");
        assert!(
            include_str!("../../../shaders/common/layout.wgsl").contains(&declared),
            "{declared}"
        );
    }
}
