//! The files of a run, written as it goes: each appears complete, by rename; `metrics.jsonl` grows line by line.

pub mod cameras;
pub mod checkpoint;
pub mod ellipses;
pub mod fingerprint;
pub mod images;
mod lock;
pub mod memory;
pub mod metrics;
pub mod parameters;
pub mod printable;
pub mod processor;
pub mod progress;
pub mod record;
pub mod room;
pub mod run_folder;
pub mod splats;
pub mod stored;
pub mod streams;
