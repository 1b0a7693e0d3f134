//! Which device a run takes.

use std::ffi::OsStr;

use super::cpu::Cpu;
use super::gpu::{Adapters, Gpu, Options};
use super::{Device, DeviceError, Result};
use crate::cluster::Cluster;

pub use super::gpu::{AdapterKind, AdapterSummary};

/// The kind of device asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceKind {
    /// A hardware GPU if there is one, else the CPU.
    #[default]
    Auto,
    Cpu,
    /// A GPU, if need be a software driver.
    Gpu,
}

/// Environment variable: if it is 0, a GPU follows each path in one kernel instead of in waves, for measurements.
const WAVES_VARIABLE: &str = "PRBOPT_WAVES";

/// The device asked for, and its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceChoice {
    pub kind: DeviceKind,
    /// Part of the name of the adapter to take, in any case.
    pub adapter: Option<String>,
    /// The same bits every time, on the GPU too.
    pub deterministic: bool,
    /// A GPU's own ray queries search for intersections.
    pub ray_queries: bool,
}

/// The device that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    Cpu,
    /// The adapter at this index of [`list`].
    Gpu(usize),
}

/// The adapters of this machine; none without a graphics driver.
pub fn list() -> Vec<AdapterSummary> {
    Adapters::find().summaries().to_vec()
}

/// Opens the device asked for, for one of several ranks. No graphics driver is touched for the CPU. Ranks on one machine
/// take turns among adapters that are equally suitable.
///
/// # Errors
/// There is no such device, or its driver refuses; the sentence says how to go on.
pub fn open(choice: &DeviceChoice, cluster: Cluster) -> Result<Box<dyn Device + Send>> {
    if choice.kind == DeviceKind::Cpu && choice.adapter.is_none() && !choice.ray_queries {
        return Ok(Box::new(Cpu::open()?));
    }
    let adapters = Adapters::find();
    match select(choice, adapters.summaries(), cluster.local())? {
        Selection::Cpu => Ok(Box::new(Cpu::open()?)),
        Selection::Gpu(index) => {
            let options = Options {
                deterministic: choice.deterministic,
                precise: true,
                ray_queries: choice.ray_queries,
                waves: are_waves_wanted(std::env::var_os(WAVES_VARIABLE).as_deref())?,
                ..Options::default()
            };
            Ok(Box::new(Gpu::open(&adapters, index, options)?.shared_by(cluster)))
        }
    }
}

/// Whether a GPU may follow paths in waves, by the variable's value.
///
/// # Errors
/// It is neither 0 nor 1.
fn are_waves_wanted(value: Option<&OsStr>) -> Result<bool> {
    match value {
        None => Ok(true),
        Some(value) if value == "1" => Ok(true),
        Some(value) if value == "0" => Ok(false),
        Some(other) => Err(DeviceError::Unavailable(format!(
            "{WAVES_VARIABLE} is `{}`; set it to 0, for measurements of paths in one kernel, or leave it out",
            other.display()
        ))),
    }
}

/// Chooses among the adapters there are. A discrete GPU is preferred to an integrated one, and that to a virtual one; among
/// several of the best kind, process number `local` on this machine takes the one at `local` modulo their number.
///
/// # Errors
/// No adapter is suitable.
pub fn select(choice: &DeviceChoice, adapters: &[AdapterSummary], local: usize) -> Result<Selection> {
    if choice.ray_queries && choice.deterministic {
        return Err(DeviceError::Unavailable(
            "--deterministic gives the same bits on every GPU, and --ray-queries those of the GPU at hand; leave one of them \
             out"
                .into(),
        ));
    }
    match find(choice, adapters, local)? {
        Selection::Cpu if choice.ray_queries => Err(DeviceError::Unavailable(
            "--ray-queries are asked of a GPU, and the run is on the CPU; name a GPU by --device gpu or --adapter, or leave \
             them out"
                .into(),
        )),
        found => Ok(found),
    }
}

/// [`select`] without its checks of ray queries.
fn find(choice: &DeviceChoice, adapters: &[AdapterSummary], local: usize) -> Result<Selection> {
    if choice.kind == DeviceKind::Cpu && choice.adapter.is_some() {
        return Err(DeviceError::Unavailable(
            "--adapter names a GPU, but --device cpu asks for none; leave one of them out".into(),
        ));
    }
    let mut alike: Vec<usize> = match &choice.adapter {
        Some(name) => named(name, adapters)?,
        None => (0..adapters.len()).collect(),
    };
    let best = alike.iter().map(|&i| rank(adapters[i].kind)).min();
    alike.retain(|&i| Some(rank(adapters[i].kind)) == best);
    let turn = alike.get(local % alike.len().max(1)).copied();
    match (choice.kind, turn) {
        (DeviceKind::Cpu, _) => Ok(Selection::Cpu),
        (DeviceKind::Gpu, Some(index)) => Ok(Selection::Gpu(index)),
        (DeviceKind::Gpu, None) => Err(DeviceError::Unavailable(
            "no GPU was found; install its Vulkan driver (on Linux; Metal and DirectX 12 come with their systems), or \
             use --device cpu"
                .into(),
        )),
        // An adapter that is named by the user is taken even if it is a software driver.
        (DeviceKind::Auto, Some(index)) if choice.adapter.is_some() || adapters[index].kind.is_hardware() => {
            Ok(Selection::Gpu(index))
        }
        (DeviceKind::Auto, _) => Ok(Selection::Cpu),
    }
}

/// The adapters whose names contain `name`, or, as `name#2`, the second of them.
fn named(name: &str, adapters: &[AdapterSummary]) -> Result<Vec<usize>> {
    let containing = |part: &str| -> Vec<usize> {
        let wanted = part.to_lowercase();
        let has = |&i: &usize| adapters[i].name.to_lowercase().contains(&wanted);
        (0..adapters.len()).filter(has).collect()
    };
    let found = containing(name);
    if !found.is_empty() {
        return Ok(found);
    }
    if let Some((part, number)) = name.rsplit_once('#')
        && let Ok(number) = number.parse::<usize>()
        && !adapters.is_empty()
    {
        let alike = containing(part);
        return match number.checked_sub(1).and_then(|i| alike.get(i)) {
            Some(&index) => Ok(vec![index]),
            None => Err(DeviceError::Unavailable(format!(
                "no adapter is `{name}`: {} of {} match `{part}`, and are counted from 1 as `prbopt info` lists them",
                alike.len(),
                adapters.len()
            ))),
        };
    }
    let names: Vec<&str> = adapters.iter().map(|a| a.name.as_str()).collect();
    Err(DeviceError::Unavailable(if names.is_empty() {
        format!("no adapter matches `{name}`: this machine has none; use --device cpu")
    } else {
        format!("no adapter matches `{name}`; there are: {}", names.join(", "))
    }))
}

fn rank(kind: AdapterKind) -> u32 {
    match kind {
        AdapterKind::DiscreteGpu => 0,
        AdapterKind::IntegratedGpu => 1,
        AdapterKind::VirtualGpu => 2,
        AdapterKind::Other => 3,
        AdapterKind::Software => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(name: &str, kind: AdapterKind) -> AdapterSummary {
        AdapterSummary {
            name: name.into(),
            backend: "vulkan".into(),
            kind,
            driver: String::new(),
            max_binding_bytes: 1 << 27,
            max_buffer_bytes: 1 << 30,
            max_storage_buffers: 8,
            float_atomics: false,
            wide_atomics: false,
            subgroups: false,
            ray_queries: false,
        }
    }

    fn choose(
        kind: DeviceKind,
        name: Option<&str>,
        adapters: &[AdapterSummary],
    ) -> std::result::Result<Selection, String> {
        let choice = DeviceChoice {
            kind,
            adapter: name.map(str::to_owned),
            ..DeviceChoice::default()
        };
        select(&choice, adapters, 0).map_err(|e| e.to_string())
    }

    #[test]
    fn waves_are_wanted_unless_they_are_not() {
        let wanted = |value: Option<&str>| are_waves_wanted(value.map(OsStr::new)).map_err(|e| e.to_string());
        assert_eq!(
            [wanted(None), wanted(Some("1")), wanted(Some("0"))],
            [Ok(true), Ok(true), Ok(false)]
        );
        let error = wanted(Some("no")).expect_err("no number");
        assert!(error.contains("PRBOPT_WAVES is `no`; set it to 0"), "{error}");
    }

    #[test]
    fn auto_takes_hardware_and_never_a_program() {
        let software = adapter("llvmpipe", AdapterKind::Software);
        let integrated = adapter("Small", AdapterKind::IntegratedGpu);
        let discrete = adapter("Large", AdapterKind::DiscreteGpu);
        let all = [software.clone(), integrated, discrete];
        assert_eq!(choose(DeviceKind::Auto, None, &[]), Ok(Selection::Cpu));
        assert_eq!(choose(DeviceKind::Auto, None, &all[..1]), Ok(Selection::Cpu));
        assert_eq!(choose(DeviceKind::Auto, None, &all[..2]), Ok(Selection::Gpu(1)));
        assert_eq!(choose(DeviceKind::Auto, None, &all), Ok(Selection::Gpu(2)));
        assert_eq!(choose(DeviceKind::Cpu, None, &all), Ok(Selection::Cpu));
        assert_eq!(choose(DeviceKind::Gpu, None, &[software]), Ok(Selection::Gpu(0)));
        assert!(
            choose(DeviceKind::Gpu, None, &[])
                .expect_err("none")
                .contains("--device cpu")
        );
    }

    #[test]
    fn names_match_in_part_and_in_any_case() {
        let all = [
            adapter("llvmpipe (LLVM 15)", AdapterKind::Software),
            adapter("Large Card 9000", AdapterKind::DiscreteGpu),
        ];
        assert_eq!(choose(DeviceKind::Auto, Some("card 9"), &all), Ok(Selection::Gpu(1)));
        assert_eq!(choose(DeviceKind::Auto, Some("LLVM"), &all), Ok(Selection::Gpu(0)));
        let message = choose(DeviceKind::Gpu, Some("tiny"), &all).expect_err("no such adapter");
        assert!(
            message.contains("llvmpipe (LLVM 15)") && message.contains("Large Card 9000"),
            "{message}"
        );
        assert!(choose(DeviceKind::Cpu, Some("card"), &all).is_err());
    }

    #[test]
    fn adapters_of_one_name_are_told_apart_by_number() {
        let card = |name: &str| adapter(name, AdapterKind::DiscreteGpu);
        let all = [card("Card"), card("Other"), card("Card")];
        let chosen = |name: &str| choose(DeviceKind::Gpu, Some(name), &all);
        assert_eq!(chosen("card"), Ok(Selection::Gpu(0)));
        assert_eq!(chosen("card#1"), Ok(Selection::Gpu(0)));
        assert_eq!(chosen("card#2"), Ok(Selection::Gpu(2)));
        assert_eq!(chosen("#2"), Ok(Selection::Gpu(1)));
        for wrong in ["card#3", "card#0"] {
            let message = chosen(wrong).expect_err("there are two");
            assert!(message.contains("2 of 3 match `card`"), "{message}");
        }
        assert!(chosen("card#x").expect_err("no number").contains("no adapter matches"));
    }

    #[test]
    fn ray_queries_are_had_or_refused() {
        let all = [adapter("Card", AdapterKind::DiscreteGpu)];
        let asked = DeviceChoice {
            ray_queries: true,
            ..DeviceChoice::default()
        };
        assert_eq!(select(&asked, &all, 0).expect("a GPU"), Selection::Gpu(0));
        let refused = |choice: DeviceChoice, adapters: &[AdapterSummary]| {
            let error = select(&choice, adapters, 0).expect_err("is refused");
            error.to_string()
        };
        assert!(refused(asked.clone(), &[]).contains("the run is on the CPU"));
        let cpu = DeviceChoice {
            kind: DeviceKind::Cpu,
            ..asked.clone()
        };
        assert!(refused(cpu, &all).contains("the run is on the CPU"));
        let same_bits = DeviceChoice {
            deterministic: true,
            ..asked
        };
        assert!(refused(same_bits, &all).contains("leave one of them out"));
    }

    #[test]
    fn ranks_of_a_machine_take_turns_among_adapters_that_are_alike() {
        let [software, integrated] = [
            adapter("llvmpipe", AdapterKind::Software),
            adapter("Small", AdapterKind::IntegratedGpu),
        ];
        let card = |name: &str| adapter(name, AdapterKind::DiscreteGpu);
        let all = [software.clone(), card("Card 0"), integrated, card("Card 1")];
        let choice = DeviceChoice::default();
        let taken = |local| select(&choice, &all, local).expect("there are adapters");
        assert_eq!([0, 1, 2, 3].map(taken), [1, 3, 1, 3].map(Selection::Gpu));
        let gpu = DeviceChoice {
            kind: DeviceKind::Gpu,
            ..choice
        };
        assert_eq!(select(&gpu, &[software], 5).expect("one"), Selection::Gpu(0));
    }
}
