//! The GPU that tests run on.

use prbopt::device::gpu::{Adapters, Gpu, Options};

/// Opens the first adapter, or says that there is none.
pub(super) fn gpu(options: Options) -> Option<Gpu> {
    let adapters = Adapters::find();
    if adapters.summaries().is_empty() {
        assert!(
            std::env::var_os("PRBOPT_REQUIRE_GPU").is_none_or(|v| v != "1"),
            "PRBOPT_REQUIRE_GPU is set, but there is no adapter"
        );
        // The test runner would capture the output of `eprintln!`.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: this machine has no GPU adapter\n");
        return None;
    }
    Some(Gpu::open(&adapters, 0, options).unwrap_or_else(|e| panic!("{e}")))
}
