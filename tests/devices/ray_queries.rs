//! Hits that an adapter finds by ray queries: the same paths as on the CPU, but for the few that its rounding sends another way.
//!
//! Without an adapter that has ray queries these tests print that they were skipped; with `PRBOPT_REQUIRE_RAY_QUERIES=1` they
//! fail instead. `tests/ray_query_driver.sh` fetches a software driver that has them.

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{Adapters, Gpu, Options};

use super::meshes::{among_many, files};
use super::moving;
use super::worlds::{compare, look};

fn wanted() -> Options {
    Options {
        ray_queries: true,
        ..Options::default()
    }
}

/// Opens the first adapter that has ray queries, or says that there is none.
fn searching() -> Option<Gpu> {
    let adapters = Adapters::find();
    let Some(index) = adapters.summaries().iter().position(|adapter| adapter.ray_queries) else {
        assert!(
            std::env::var_os("PRBOPT_REQUIRE_RAY_QUERIES").is_none_or(|v| v != "1"),
            "PRBOPT_REQUIRE_RAY_QUERIES is set, but no adapter has them"
        );
        // The test runner would capture the output of `eprintln!`.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no adapter has ray queries\n");
        return None;
    };
    Some(Gpu::open(&adapters, index, wanted()).unwrap_or_else(|e| panic!("{e}")))
}

/// A mesh among so many shapes that they are boxes in the hierarchy, lit by an environment: first surfaces, nearest hits, shadow
/// rays, and derivatives.
#[test]
fn ray_queries_find_what_the_cpu_finds() {
    let Some(mut gpu) = searching() else { return };
    let folder = files();
    let case = among_many(folder.path());
    compare(&look(&mut Cpu::new(), &case), &look(&mut gpu, &case)).unwrap_or_else(|e| panic!("{e}"));
}

/// The hierarchy follows the vertices of a mesh: pictures before and after these have moved.
#[test]
fn ray_queries_follow_what_moves() {
    let Some(mut gpu) = searching() else { return };
    let small = moving::together(&["vertices of a smooth mesh"]);
    let (cpu, gpu) = (moving::shake(&mut Cpu::new(), &small), moving::shake(&mut gpu, &small));
    assert!(cpu[0].1 != cpu[1].1, "nothing moved");
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn an_adapter_without_ray_queries_refuses_them() {
    let adapters = Adapters::find();
    let without = adapters.summaries().iter().position(|adapter| !adapter.ray_queries);
    let Some(index) = without else { return };
    let error = Gpu::open(&adapters, index, wanted()).expect_err("it has none");
    assert!(error.to_string().contains("has no ray queries"), "{error}");
}
