//! Flags that several commands share.

use clap::{Args, ValueEnum};

use crate::device::Device;
use crate::device::cpu::Cpu;

/// Which device to run on.
#[derive(Debug, Clone, Args)]
pub struct DeviceArgs {
    /// Where to run
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto)]
    pub device: DeviceChoice,
}

/// The devices to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// A hardware GPU if there is one, else the CPU
    Auto,
    Cpu,
    Gpu,
}

impl DeviceArgs {
    /// Opens the device.
    pub fn open(&self) -> anyhow::Result<Box<dyn Device>> {
        Ok(Box::new(Cpu::new()))
    }
}
