//! `--log`: prints log messages of the program and its libraries to standard error.

use crate::tell;
use clap::ValueEnum;
use log::{LevelFilter, Log, Metadata, Record};

/// The log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Level {
    Off,
    #[default]
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug)]
struct ToStandardError;

impl Log for ToStandardError {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let level = record.level().as_str().to_lowercase();
        tell!("{level}: {}: {}", record.target(), record.args());
    }

    fn flush(&self) {}
}

/// Starts logging.
pub(super) fn begin(level: Level) {
    log::set_max_level(match level {
        Level::Off => LevelFilter::Off,
        Level::Error => LevelFilter::Error,
        Level::Warn => LevelFilter::Warn,
        Level::Info => LevelFilter::Info,
        Level::Debug => LevelFilter::Debug,
        Level::Trace => LevelFilter::Trace,
    });
    // A second call, as in tests, keeps the first logger, which is identical.
    let _ = log::set_logger(&ToStandardError);
}
