//! The report beneath the view.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Where the report comes from.
#[derive(Debug)]
pub enum Reports {
    /// A file that is replaced, by rename, when there is a new report.
    File(PathBuf),
    /// A fixed page.
    Page(Arc<[u8]>),
}

impl Reports {
    /// The newest report, if there is one.
    pub(super) fn page(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::File(path) => std::fs::read(path).ok().map(Into::into),
            Self::Page(page) => Some(Arc::clone(page)),
        }
    }

    /// When the report's file was last written; None before the first report, and for a fixed page.
    pub(super) fn made(&self) -> Option<SystemTime> {
        match self {
            Self::File(path) => std::fs::metadata(path).and_then(|m| m.modified()).ok(),
            Self::Page(_) => None,
        }
    }
}
