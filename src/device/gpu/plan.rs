//! Where parameters lie on the device, and whether they fit. Pure: no device is needed to ask.

use super::adapters::AdapterSummary;
use super::shaders::Accumulation;
use crate::device::{DeviceError, Result};
use crate::params::{ParamSet, Shape};

/// Shaders see two buffers of parameters, so that eight storage buffers suffice for the adjoint: one for the colours'
/// coefficients, which are by far the largest, and one for all others.
pub(super) const BANKS: usize = 2;

/// Entries to which parameters in a bank are aligned.
const ALIGNMENT: usize = 64;

/// Bytes of a sum in whole numbers.
const SUM_BYTES: u64 = 8;

/// A parameter's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub bank: usize,
    pub first: usize,
    pub len: usize,
}

/// The places of all parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    pub places: Vec<Place>,
    /// Entries of each bank.
    pub lens: [usize; BANKS],
    /// Whether a parameter in each bank is tuned.
    pub tuned: [bool; BANKS],
}

impl Plan {
    /// Lays parameters out, `largest` in a bank of its own; those that are not tuned need neither gradients nor moments.
    pub(super) fn new(shapes: &[(Shape, bool)], largest: Option<usize>) -> Self {
        let mut plan = Self::default();
        for (i, (shape, tuned)) in shapes.iter().enumerate() {
            let bank = usize::from(largest == Some(i));
            let first = plan.lens[bank];
            plan.places.push(Place {
                bank,
                first,
                len: shape.len(),
            });
            plan.lens[bank] = (first + shape.len()).next_multiple_of(ALIGNMENT);
            plan.tuned[bank] |= tuned;
        }
        plan
    }

    /// Bytes of a bank's gradient.
    pub(super) fn gradient_bytes(&self, bank: usize) -> u64 {
        if self.tuned[bank] { self.value_bytes(bank) } else { 0 }
    }

    /// Bytes of the sums in whole numbers beside a bank's gradient.
    pub(super) fn sum_bytes(&self, bank: usize, accumulation: Accumulation) -> u64 {
        match self.tuned[bank] && accumulation.is_fixed() {
            true => SUM_BYTES * self.lens[bank] as u64,
            false => 0,
        }
    }

    /// Bytes of a bank's values, or of one of its moments.
    pub(super) fn value_bytes(&self, bank: usize) -> u64 {
        4 * self.lens[bank] as u64
    }

    /// Refuses what an adapter cannot hold.
    ///
    /// # Errors
    /// A buffer exceeds a limit: which parameter it is, its size, the limit, and what would fit.
    pub(super) fn admit(
        &self,
        names: &[String],
        shapes: &[(Shape, bool)],
        adapter: &AdapterSummary,
        accumulation: Accumulation,
    ) -> Result<()> {
        let limit = adapter.max_binding_bytes.min(adapter.max_buffer_bytes);
        for bank in 0..BANKS {
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

/// A size for people.
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

    #[test]
    fn parameters_do_not_overlap() {
        let plan = Plan::new(&field(5, 12), Some(1));
        let [sigma, sh, emitter] = plan.places[..] else {
            panic!("three places");
        };
        assert_eq!((sigma.bank, sh.bank, emitter.bank), (0, 1, 0));
        assert!(emitter.first >= sigma.first + sigma.len);
        assert!(plan.lens[0] >= emitter.first + emitter.len && plan.lens[1] >= sh.len);
    }

    #[test]
    fn a_refusal_names_what_would_fit_and_that_fits() {
        let names = ["s", "the coefficients", "e"].map(String::from);
        let limit = 128 << 20;
        let admit = |edge, accumulation| {
            let shapes = field(edge, 27);
            Plan::new(&shapes, Some(1)).admit(&names, &shapes, &adapter(limit), accumulation)
        };
        let message = admit(128, Accumulation::FloatAtomic)
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
        assert!(admit(107, Accumulation::FloatAtomic).is_ok());
        assert!(admit(108, Accumulation::FloatAtomic).is_err());
        let message = admit(107, Accumulation::FixedPoint)
            .expect_err("twice the bytes")
            .to_string();
        assert!(
            message.contains("fixed-point gradient") && message.contains("85×85×85"),
            "{message}"
        );
        assert!(admit(85, Accumulation::FixedPoint).is_ok() && admit(86, Accumulation::FixedPoint).is_err());
    }
}
