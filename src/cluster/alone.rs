//! The counterpart of `mpi.rs` without the feature `mpi`: there is one rank, and the exchanges are never called.

use crate::tell;

/// Environment variables in which launchers of MPI jobs (Open MPI, MPICH and Intel, Slurm) state the number of tasks.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Has no values: there is nothing to connect to.
#[derive(Debug)]
pub(super) enum Connection {}

pub(super) fn join() -> Result<Option<(Connection, [usize; 3])>, String> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    if let Some(warning) = warning(number) {
        tell!("{warning}");
    }
    Ok(None)
}

/// What to tell one of several tasks; `number` looks up an environment variable. A warning, no error: each task may well run
/// a scene of its own.
fn warning(number: impl Fn(&str) -> Option<u32>) -> Option<String> {
    let tasks = SIZES.iter().find_map(|name| number(name)).unwrap_or(1);
    (tasks > 1).then(|| {
        format!(
            "warning: this is one of {tasks} tasks, which share no work: this program was built without MPI \
             (`cargo install --path . --features mpi`)"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks that share no work are told so, whoever has started them.
    #[test]
    fn one_of_several_tasks_is_told() {
        assert_eq!(warning(|_| None), None);
        for name in SIZES {
            let of = |tasks| warning(|asked| (asked == name).then_some(tasks));
            assert_eq!(of(1), None);
            let told = of(3).expect("three tasks are told");
            assert!(told.contains("one of 3 tasks"), "{told}");
        }
    }
}
