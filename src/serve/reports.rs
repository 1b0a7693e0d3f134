//! The report beneath the view.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Where the report comes from.
#[derive(Debug)]
pub enum Reports {
    /// A file that somebody else keeps fresh, by rename.
    File(PathBuf),
    /// A page as it is.
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

    /// When the report was last made; none before the first, and of one that never changes.
    pub(super) fn made(&self) -> Option<SystemTime> {
        match self {
            Self::File(path) => std::fs::metadata(path).and_then(|m| m.modified()).ok(),
            Self::Page(_) => None,
        }
    }
}
