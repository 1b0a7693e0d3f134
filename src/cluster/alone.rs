//! No other ranks: what would reach them is never called.

use crate::tell;

/// Variables in which starters of MPI jobs (Open MPI, MPICH and Intel, Slurm) state the number of tasks.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Never made.
#[derive(Debug)]
pub(super) enum Connection {}

pub(super) fn join() -> Result<Option<(Connection, [usize; 3])>, String> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let tasks = SIZES.iter().find_map(|name| number(name)).unwrap_or(1);
    // Each may well be about a scene of its own.
    if tasks > 1 {
        tell!(
            "warning: this is one of {tasks} tasks, which share no work: this program was built without MPI \
             (`cargo install --path . --features mpi`)"
        );
    }
    Ok(None)
}

pub(super) fn all_gather(_: &[u8], _: &mut [u8], _: &[usize]) {
    unreachable!("a single rank sends nothing")
}

pub(super) fn all_to_all(_: &[u8], _: &[usize], _: &mut [u8], _: &[usize]) {
    unreachable!("a single rank sends nothing")
}

pub(super) fn tell_others(_: &[u8], _: usize, _: &mut [u8], _: &[usize]) {
    unreachable!("a single rank sends nothing")
}

pub(super) fn exchange_shares(_: &[u8], _: &[std::ops::Range<usize>], _: usize, _: &mut [u8]) {
    unreachable!("a single rank sends nothing")
}

pub(super) fn broadcast(_: &mut [u8]) {
    unreachable!("a single rank sends nothing")
}

pub(super) fn abort(code: i32) -> ! {
    std::process::exit(code)
}
