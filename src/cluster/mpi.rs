//! The system's MPI: bytes to and from other ranks.

use std::ops::Range;

use mpi::Threading;
use mpi::datatype::{Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

/// Ends MPI when it is dropped.
pub(super) struct Connection(#[allow(dead_code, reason = "held for its end")] Universe);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// Environment variables by which launchers of MPI jobs (Open MPI, MPICH and Intel, those of PMIx) are recognised.
const STARTERS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"];

/// The connection, this rank, the number of ranks, and this rank among those of its machine; None outside of an MPI job.
pub(super) fn join() -> Result<Option<(Connection, [usize; 3])>, String> {
    let known = |name: &str| std::env::var_os(name).is_some();
    let tasks = tasks();
    if !STARTERS.iter().any(|name| known(name)) && tasks == 1 {
        return Ok(None);
    }
    let world = mpi::initialize_with_threading(Threading::Multiple);
    let (universe, threading) = world.ok_or("MPI was begun already")?;
    if threading < Threading::Serialized {
        return Err("this MPI lets only one thread send; build it with support of threads".into());
    }
    let communicator = SimpleCommunicator::world();
    let (rank, size) = (communicator.rank() as usize, communicator.size() as usize);
    if size == 1 && tasks > 1 {
        return Err(format!(
            "this is one of {tasks} tasks, but MPI knows of it alone, so that each would do all the work: start them by \
             `srun --mpi=pmix` (`srun --mpi=list` shows what there is) or by `mpirun`"
        ));
    }
    let local = communicator.split_shared(rank as i32).rank() as usize;
    Ok(Some((Connection(universe), [rank, size, local])))
}

/// Number of tasks of the Slurm step that this process belongs to; 1 outside of any step.
fn tasks() -> u32 {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    // The script of a batch job knows the number of tasks, too, but it is in no step.
    let of_job = || number("SLURM_STEP_ID").and_then(|_: u32| number("SLURM_NTASKS"));
    number("SLURM_STEP_NUM_TASKS").or_else(of_job).unwrap_or(1)
}

fn counts_and_places(counts: &[usize]) -> [Vec<i32>; 2] {
    let counts: Vec<i32> = counts.iter().map(|&count| count as i32).collect();
    let places = counts.iter().scan(0, |place, count| {
        let begin = *place;
        *place += count;
        Some(begin)
    });
    let places = places.collect();
    [counts, places]
}

/// `bytes`; an empty slice gets an address in memory, because that of an empty `Vec<u8>` is 1, which Open MPI takes for
/// `MPI_IN_PLACE`.
fn placed(bytes: &[u8]) -> &[u8] {
    match bytes {
        [] => &[0][..0],
        _ => bytes,
    }
}

/// [`placed`], to be written to.
fn placed_mut<'a>(bytes: &'a mut [u8], spare: &'a mut [u8; 1]) -> &'a mut [u8] {
    match bytes.is_empty() {
        true => &mut spare[..0],
        false => bytes,
    }
}

/// Receives the bytes that all ranks send, rank by rank; `counts` are their numbers.
pub(super) fn all_gather(send: &[u8], received: &mut [u8], counts: &[usize]) {
    let [counts, places] = counts_and_places(counts);
    let mut spare = [0];
    let mut received = PartitionMut::new(placed_mut(received, &mut spare), counts, places);
    SimpleCommunicator::world().all_gather_varcount_into(placed(send), &mut received);
}

/// Sends to each rank its bytes, which follow each other, and receives theirs.
pub(super) fn all_to_all(send: &[u8], sent: &[usize], received: &mut [u8], expected: &[usize]) {
    let [counts, places] = counts_and_places(sent);
    let send = Partition::new(placed(send), counts, places);
    let [counts, places] = counts_and_places(expected);
    let mut spare = [0];
    let mut received = PartitionMut::new(placed_mut(received, &mut spare), counts, places);
    SimpleCommunicator::world().all_to_all_varcount_into(&send, &mut received);
}

/// Sends the same bytes to all ranks but this one, and receives theirs, rank by rank; `expected` are their bytes.
pub(super) fn tell_others(send: &[u8], rank: usize, received: &mut [u8], expected: &[usize]) {
    let mut sent = vec![send.len() as i32; expected.len()];
    sent[rank] = 0;
    let send = Partition::new(placed(send), sent, vec![0; expected.len()]);
    let [counts, places] = counts_and_places(expected);
    let mut spare = [0];
    let mut received = PartitionMut::new(placed_mut(received, &mut spare), counts, places);
    SimpleCommunicator::world().all_to_all_varcount_into(&send, &mut received);
}

/// Sends each other rank its range of `all`, and receives this rank's range of the others' arrays, rank by rank.
pub(super) fn exchange_shares(all: &[u8], shares: &[Range<usize>], rank: usize, received: &mut [u8]) {
    let mut sent: Vec<i32> = shares.iter().map(|share| share.len() as i32).collect();
    sent[rank] = 0;
    let places: Vec<i32> = shares.iter().map(|share| share.start as i32).collect();
    let send = Partition::new(placed(all), sent, places);
    let mut expected = vec![shares[rank].len(); shares.len()];
    expected[rank] = 0;
    let [expected, places] = counts_and_places(&expected);
    let mut spare = [0];
    let mut received = PartitionMut::new(placed_mut(received, &mut spare), expected, places);
    SimpleCommunicator::world().all_to_all_varcount_into(&send, &mut received);
}

/// Overwrites `bytes` with rank 0's, which are as many.
pub(super) fn broadcast(bytes: &mut [u8]) {
    SimpleCommunicator::world().process_at_rank(0).broadcast_into(bytes);
}

/// Ends all ranks.
pub(super) fn abort(code: i32) -> ! {
    SimpleCommunicator::world().abort(code)
}
