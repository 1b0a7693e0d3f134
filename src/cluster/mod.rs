//! The ranks of an MPI job, and the few collective operations by which they share the work of one run. Without the
//! feature `mpi`, or in a job of one rank, there is a single rank: every operation is the identity.
//!
//! MPI itself never sums: each rank sums the values that it receives, in the order of the ranks or of the pieces, so that
//! the bits of a sum depend neither on the MPI library nor on the network.

/// Compiled beside MPI in tests, so that one build tests what a program without MPI tells.
#[cfg(all(test, feature = "mpi"))]
#[allow(dead_code, reason = "MPI stands in its place")]
mod alone;
#[cfg(not(feature = "mpi"))]
#[path = "alone.rs"]
mod wire;
#[cfg(feature = "mpi")]
#[path = "mpi.rs"]
mod wire;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::tell;

/// Bytes of a message to all ranks together at most: MPI counts in 32 bits with a sign.
const MESSAGE: usize = 1 << 30;

/// Overrides [`MESSAGE`], so that tests see small arrays go in pieces.
const MESSAGE_VARIABLE: &str = "PRBOPT_MESSAGE_BYTES";

static WORLD: OnceLock<Cluster> = OnceLock::new();

/// Appended to the message of [`Cluster::fail`]: how to resume the run.
static ADVICE: Mutex<String> = Mutex::new(String::new());

/// Whether the ranks have ended their common work.
static PARTED: AtomicBool = AtomicBool::new(false);

/// An error that all ranks share is told by rank 0 alone: the others wait this long before they report theirs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Element types of messages: plain numbers, without padding.
pub trait Plain: NoUninit + AnyBitPattern {}
impl<T: NoUninit + AnyBitPattern> Plain for T {}

/// The ranks that share a run, seen from one of them. Pieces of work are dealt out in turn: piece `i` belongs to rank `i`
/// modulo the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    rank: usize,
    size: usize,
    /// This rank's number among those of its machine.
    local: usize,
    /// Bytes of a message to one rank at most.
    message: usize,
}

/// Keeps the connection to the other ranks; dropping it waits for them to end, too.
#[derive(Debug)]
#[must_use]
pub struct Membership(#[allow(dead_code, reason = "held for its end")] Option<wire::Connection>);

impl Membership {
    /// Joins the job that this process was started in, if there is one.
    ///
    /// # Errors
    /// The process is one of several tasks, but MPI knows of one alone.
    pub fn join() -> Result<Self, String> {
        let Some((connection, [rank, size, local])) = wire::join()? else {
            return Ok(Self(None));
        };
        let message = std::env::var(MESSAGE_VARIABLE).ok().and_then(|text| text.parse().ok());
        let cluster = Cluster {
            rank,
            size,
            local,
            message: (message.unwrap_or(MESSAGE) / size).max(64),
        };
        if size > 1 {
            end_job_on_panic(cluster);
        }
        // A process joins once.
        let _ = WORLD.set(cluster);
        Ok(Self(Some(connection)))
    }
}

/// Ends the whole job on a panic of any thread: the other ranks would wait for this one for ever.
fn end_job_on_panic(cluster: Cluster) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        cluster.fail("a defect of the program ended it (see above)", 101);
    }));
}

impl Cluster {
    /// The only rank of a job of one.
    pub const fn single() -> Self {
        Self {
            rank: 0,
            size: 1,
            local: 0,
            message: MESSAGE,
        }
    }

    /// Rank `rank` of `size` ranks, without a job, to test how work is dealt out.
    #[cfg(test)]
    pub(crate) const fn of(size: usize, rank: usize) -> Self {
        Self {
            rank,
            size,
            local: rank,
            message: MESSAGE,
        }
    }

    /// The ranks of this process's job.
    pub fn world() -> Self {
        WORLD.get().copied().unwrap_or(Self::single())
    }

    /// Number of ranks.
    pub fn size(self) -> usize {
        self.size
    }

    /// This process's number, from 0.
    pub fn rank(self) -> usize {
        self.rank
    }

    /// This process's number among those of its machine, from 0.
    pub fn local(self) -> usize {
        self.local
    }

    /// Whether this rank writes, reports and decides.
    pub fn leads(self) -> bool {
        self.rank == 0
    }

    /// Whether this is the only rank.
    pub fn is_single(self) -> bool {
        self.size == 1
    }

    /// Whether the piece of work of this number is this rank's.
    pub fn owns(self, piece: usize) -> bool {
        piece % self.size == self.rank
    }

    /// Sets what [`Self::fail`] appends to its message: how to resume the run.
    pub fn advise(self, advice: &str) {
        if let Ok(mut known) = ADVICE.lock() {
            advice.clone_into(&mut known);
        }
    }

    /// Takes note that no rank waits for another any more.
    pub fn part(self) {
        PARTED.store(true, Ordering::SeqCst);
    }

    /// Ends all ranks because of an error of this one, if they may wait for it.
    pub fn end_by(self, sentence: &str) {
        if self.is_single() || PARTED.load(Ordering::SeqCst) {
            return;
        }
        if !self.leads() {
            std::thread::sleep(PATIENCE);
        }
        self.fail(sentence, 2);
    }

    /// Says why and ends all ranks.
    pub fn fail(self, sentence: &str, code: i32) -> ! {
        // The thread that fails may hold the lock.
        let advice = ADVICE.try_lock().map(|advice| advice.clone()).unwrap_or_default();
        let semicolon = if advice.is_empty() { "" } else { "; " };
        tell!(
            "error: rank {} of {}: {sentence}; the whole job ends{semicolon}{advice}",
            self.rank,
            self.size
        );
        wire::abort(code)
    }

    /// This rank's contiguous range of `count` things, in whole groups of `group` (the last group may be shorter). The
    /// numbers of groups of two ranks differ by one at most.
    pub fn share(self, count: usize, group: usize) -> Range<usize> {
        self.share_of(self.rank, count, group)
    }

    /// [`Self::share`] of another rank.
    pub fn share_of(self, rank: usize, count: usize, group: usize) -> Range<usize> {
        let groups = count.div_ceil(group);
        let begin = |rank: usize| (groups * rank / self.size * group).min(count);
        begin(rank)..begin(rank + 1)
    }

    /// The whole array of `count` elements on all ranks, from the [`Self::share`] that each rank has made.
    pub fn join_shares<T: Plain>(self, own: &[T], count: usize, group: usize) -> Vec<T> {
        let lengths: Vec<usize> = (0..self.size).map(|r| self.share_of(r, count, group).len()).collect();
        self.concat_lengths(own, &lengths).concat()
    }

    /// Combines arrays of one length, entry by entry: `join` gets an entry's values in the order of the ranks. All ranks
    /// get the result.
    pub fn reduce<T: Plain>(self, own: &[T], join: impl Fn(&mut dyn Iterator<Item = T>) -> T) -> Vec<T> {
        let share = |r: usize| own[self.share_of(r, own.len(), 1)].to_vec();
        let parts = self.all_to_all(&(0..self.size).map(share).collect::<Vec<_>>());
        let joined: Vec<T> = (0..parts[0].len())
            .map(|i| join(&mut parts.iter().map(|part| part[i])))
            .collect();
        self.join_shares(&joined, own.len(), 1)
    }

    /// The arrays of all ranks, which have one length, one after the other in the order of the ranks.
    pub fn gather<T: Plain>(self, of_rank: &[T]) -> Vec<T> {
        let mut all = Vec::new();
        for part in self.concat_lengths(of_rank, &vec![of_rank.len(); self.size]) {
            all.extend_from_slice(&part);
        }
        all
    }

    /// Whether `here` is true on any rank.
    pub fn any(self, here: bool) -> bool {
        self.gather(&[u8::from(here)]).contains(&1)
    }

    /// The largest of all ranks' numbers, none of which is NaN.
    pub fn max(self, x: f32) -> f32 {
        self.gather(&[x]).into_iter().fold(x, f32::max)
    }

    /// The sums over all ranks, number by number.
    pub fn sums<const N: usize>(self, numbers: [u64; N]) -> [u64; N] {
        let all = self.gather(&numbers);
        let mut sums = [0; N];
        for of_rank in all.chunks(N) {
            for i in 0..N {
                sums[i] += of_rank[i];
            }
        }
        sums
    }

    /// The arrays of all ranks, which may differ in length, rank by rank.
    pub fn concat<T: Plain>(self, part: &[T]) -> Vec<Vec<T>> {
        let lengths = self.gather(&[part.len() as u64]);
        let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        self.concat_lengths(part, &lengths)
    }

    /// [`Self::concat`] where all ranks know all `lengths`, which are then not exchanged first.
    pub fn concat_lengths<T: Plain>(self, part: &[T], lengths: &[usize]) -> Vec<Vec<T>> {
        if self.is_single() {
            return vec![part.to_vec()];
        }
        let bytes: Vec<usize> = lengths.iter().map(|length| length * size_of::<T>()).collect();
        let mut parts: Vec<Vec<T>> = lengths.iter().map(|&length| vec![T::zeroed(); length]).collect();
        let own: &[u8] = bytemuck::cast_slice(part);
        for begin in self.rounds(bytes.iter().copied()) {
            let counts: Vec<usize> = bytes.iter().map(|&b| self.piece(b, begin).len()).collect();
            let mut received = vec![0; counts.iter().sum()];
            wire::all_gather(&own[self.piece(own.len(), begin)], &mut received, &counts);
            take_apart(&received, &mut parts, |part: &mut Vec<T>| {
                let length = size_of_val(&part[..]);
                &mut bytemuck_mut(part)[self.piece(length, begin)]
            });
        }
        parts
    }

    /// [`Self::concat_lengths`] without this rank's own part: the others', one after the other, in `others`, whose memory
    /// is reused.
    pub fn tell_others<T: Plain>(self, part: &[T], lengths: &[usize], others: &mut Vec<T>) {
        if self.is_single() {
            return others.clear();
        }
        let mut counts: Vec<usize> = lengths.iter().map(|length| length * size_of::<T>()).collect();
        if counts.iter().any(|count| *count > self.message) {
            let mut parts = self.concat_lengths(part, lengths);
            parts[self.rank].clear();
            *others = parts.concat();
            return;
        }
        counts[self.rank] = 0;
        others.resize(counts.iter().sum::<usize>() / size_of::<T>(), T::zeroed());
        wire::tell_others(bytemuck::cast_slice(part), self.rank, bytemuck_mut(others), &counts);
    }

    /// Sends part `r` to rank `r`, and returns what all ranks have sent to this one, rank by rank.
    pub fn all_to_all<T: Plain>(self, parts: &[Vec<T>]) -> Vec<Vec<T>> {
        if self.is_single() {
            return parts.to_vec();
        }
        let lengths: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
        let all = self.gather(&lengths);
        let from = |r: usize| all[r * self.size + self.rank] as usize;
        let mut received: Vec<Vec<T>> = (0..self.size).map(|r| vec![T::zeroed(); from(r)]).collect();
        for begin in self.rounds(all.iter().map(|&length| length as usize * size_of::<T>())) {
            let (mut send, mut counts) = (Vec::new(), Vec::new());
            for part in parts {
                let bytes: &[u8] = bytemuck::cast_slice(part);
                let piece = &bytes[self.piece(bytes.len(), begin)];
                send.extend_from_slice(piece);
                counts.push(piece.len());
            }
            let expected: Vec<usize> = received
                .iter()
                .map(|part| self.piece(size_of_val(&part[..]), begin).len())
                .collect();
            let mut arrived = vec![0; expected.iter().sum()];
            wire::all_to_all(&send, &counts, &mut arrived, &expected);
            take_apart(&arrived, &mut received, |part: &mut Vec<T>| {
                let length = size_of_val(&part[..]);
                &mut bytemuck_mut(part)[self.piece(length, begin)]
            });
        }
        received
    }

    /// Sends each other rank its range of `all`, an array that every rank has, and receives this rank's range of their
    /// arrays, rank by rank, in `received`, whose memory is reused.
    pub fn exchange_shares<T: Plain>(self, all: &[T], shares: &[Range<usize>], received: &mut Vec<T>) {
        received.clear();
        if self.is_single() {
            return;
        }
        let own = shares[self.rank].len();
        if size_of_val(all) > self.message {
            let part = |rank: usize| {
                if rank == self.rank {
                    &[]
                } else {
                    &all[shares[rank].clone()]
                }
            };
            let parts: Vec<Vec<T>> = (0..self.size).map(|rank| part(rank).to_vec()).collect();
            return self.all_to_all(&parts).iter().for_each(|part| received.extend(part));
        }
        received.resize(own * (self.size - 1), T::zeroed());
        let bytes = |range: &Range<usize>| range.start * size_of::<T>()..range.end * size_of::<T>();
        let sent: Vec<Range<usize>> = shares.iter().map(bytes).collect();
        wire::exchange_shares(bytemuck::cast_slice(all), &sent, self.rank, bytemuck_mut(received));
    }

    /// Completes an array on all ranks: each piece of `length` elements was made by the rank that [`Self::owns`] it.
    pub fn assemble<T: Plain>(self, array: &mut [T], length: usize) {
        self.assemble_from(array, length, 0);
    }

    /// [`Self::assemble`] of an array whose first piece has the number `first`.
    pub fn assemble_from<T: Plain>(self, array: &mut [T], length: usize, first: usize) {
        if self.is_single() {
            return;
        }
        let mut own = Vec::new();
        let mut lengths = vec![0; self.size];
        for (i, piece) in array.chunks(length).enumerate() {
            lengths[(first + i) % self.size] += piece.len();
            if self.owns(first + i) {
                own.extend_from_slice(piece);
            }
        }
        let parts = self.concat_lengths(&own, &lengths);
        let mut taken = vec![0; self.size];
        for (i, piece) in array.chunks_mut(length).enumerate() {
            let of = (first + i) % self.size;
            piece.copy_from_slice(&parts[of][taken[of]..taken[of] + piece.len()]);
            taken[of] += piece.len();
        }
    }

    /// Rank 0's bytes, on all ranks.
    pub fn broadcast(self, bytes: Vec<u8>) -> Vec<u8> {
        if self.is_single() {
            return bytes;
        }
        let mut length = (bytes.len() as u64).to_le_bytes();
        wire::broadcast(&mut length);
        let mut bytes = bytes;
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        bytes.chunks_mut(self.message).for_each(wire::broadcast);
        bytes
    }

    /// Checks that all ranks have the same marks (fingerprints); each pair holds the name of a thing and its mark.
    ///
    /// # Errors
    /// A sentence that names the first thing whose mark on some rank differs from that of rank 0.
    pub fn agree(self, marks: &[(&str, String)]) -> Result<(), String> {
        let text = |mark: &str| mark.bytes().chain(*b"\n").collect::<Vec<u8>>();
        let own: Vec<u8> = marks.iter().flat_map(|(_, mark)| text(mark)).collect();
        let all = self.concat(&own);
        let of = |r: usize| String::from_utf8_lossy(&all[r]).into_owned();
        let first = of(0);
        for r in 1..self.size {
            let other = of(r);
            let (mut here, mut there) = (first.lines(), other.lines());
            let differs = marks.iter().find(|_| here.next() != there.next());
            if let Some((what, _)) = differs {
                return Err(format!(
                    "{what} of rank {r} is not that of rank 0; start all ranks with the same program, scene, data and \
                     options"
                ));
            }
        }
        Ok(())
    }

    /// Byte offsets at which the rounds of a message begin whose parts have so many bytes; the same on all ranks that
    /// know the same lengths.
    fn rounds(self, bytes: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
        (0..bytes.max().unwrap_or(0)).step_by(self.message)
    }

    /// The range of a part of `bytes` bytes that is sent in the round that begins at offset `begin`.
    fn piece(self, bytes: usize, begin: usize) -> std::ops::Range<usize> {
        begin.min(bytes)..(begin + self.message).min(bytes)
    }
}

fn bytemuck_mut<T: Plain>(part: &mut [T]) -> &mut [u8] {
    bytemuck::cast_slice_mut(part)
}

/// Copies the received bytes, rank by rank, to the place of each rank's part.
fn take_apart<T>(arrived: &[u8], parts: &mut [Vec<T>], place: impl Fn(&mut Vec<T>) -> &mut [u8]) {
    let mut begin = 0;
    for part in parts {
        let to = place(part);
        to.copy_from_slice(&arrived[begin..begin + to.len()]);
        begin += to.len();
    }
}
