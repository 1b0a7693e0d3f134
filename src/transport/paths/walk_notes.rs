//! What random walks inside a medium leave for their replay: a note of each collision, and how each walk ended.
//!
//! No light is added to a path between its points inside, so that the radiance still to come is the same at all collisions of a
//! walk. A replay that comes to a walk records that radiance once, and goes on where the walk ended; the derivatives that each
//! collision sends follow from its note, for all paths together. There is room for a fixed number of notes: walks without notes
//! are made again.

use super::flights::LANES;
use super::path_state::{PathState, is_faint};
use super::random_walks::{Lanes, Matter, Send, Walker};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;

/// Default number of notes that there is room for, each of the collisions in [`LANES`] lanes: as many as stay in a core's
/// second-level cache.
const ROOM: usize = 512;

/// The number of a walk that leaves no notes.
pub const UNNOTED: u32 = u32::MAX;

/// How a walk ended: its number, and the path as it has ended or is about to fly out.
#[derive(Debug, Clone, Copy)]
pub struct Walked {
    pub number: u32,
    pub path: PathState<f32>,
    pub sampler: Sampler,
    pub ended: bool,
}

impl Walked {
    pub(super) fn of(walker: &Walker) -> Self {
        Self {
            number: walker.number,
            path: walker.path,
            sampler: walker.sampler,
            ended: walker.ended,
        }
    }
}

/// Collisions: the walk of each lane, the place, and the albedo there, infinite for channels that are dark already.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    pub walk: Lanes<u32>,
    pub p: [Lanes<f32>; 3],
    pub albedo: [Lanes<f32>; 3],
}

/// The derivative by a path's radiance times the radiance still to come, and times that behind one factor of zero.
#[derive(Debug, Clone, Copy, Default)]
struct Come {
    over: [f32; 3],
    behind: [f32; 3],
}

/// The notes of paths that are followed together.
#[derive(Debug)]
pub struct WalkNotes {
    room: usize,
    notes: Vec<Note>,
    /// Runs of notes of one medium: the medium, and the number of notes up to the run's end.
    runs: Vec<(u32, usize)>,
    /// For each walk; zero until its replay.
    come: Vec<Come>,
}

impl Default for WalkNotes {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

impl WalkNotes {
    /// With room for the collisions of this many vectors of lanes.
    pub fn with_room(room: usize) -> Self {
        Self {
            room,
            notes: Vec::new(),
            runs: Vec::new(),
            come: Vec::new(),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.notes.clear();
        self.runs.clear();
        self.come.clear();
    }

    /// A number for a walk that begins.
    pub(super) fn begin(&mut self) -> u32 {
        self.come.push(Come::default());
        self.come.len() as u32 - 1
    }

    /// Assigns all notes since the last call to this medium.
    pub(super) fn end_run(&mut self, medium: u32) {
        // There are no more runs than notes, however long paths are.
        if self.notes.len() > self.runs.last().map_or(0, |(_, end)| *end) {
            self.runs.push((medium, self.notes.len()));
        }
    }

    /// Keeps a note. False if there is no room.
    #[inline(always)]
    pub(super) fn keep(&mut self, note: &Note) -> bool {
        if self.notes.len() == self.room {
            return false;
        }
        if self.notes.capacity() == 0 {
            self.notes.reserve_exact(self.room);
        }
        self.notes.push(*note);
        true
    }

    /// Records the radiance still to come behind a walk, times the derivative by the path's radiance.
    #[inline]
    pub(super) fn expect(&mut self, walk: u32, path: &PathState<f32>, d_radiance: Rgb<f32>) {
        self.come[walk as usize] = Come {
            over: (d_radiance * path.gathered.radiance).0,
            behind: (d_radiance * path.gathered.radiance_but_zero).0,
        };
    }

    /// The runs of notes, each with its medium.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u32, Run<'_>)> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|(_, end)| *end));
        starts.zip(&self.runs).map(|(start, &(medium, end))| {
            let notes = &self.notes[start..end];
            (
                medium,
                Run {
                    notes,
                    come: &self.come,
                },
            )
        })
    }
}

/// Notes of one medium.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    notes: &'a [Note],
    come: &'a [Come],
}

/// Sends the derivatives of these collisions by the albedo: the radiance still to come over the albedo.
#[inline(always)]
pub fn send_noted(matter: &Matter, run: Run, send: &mut Send) {
    for note in run.notes {
        let at = matter.reach(&note.p);
        let (mut over, mut behind) = ([[0.0; LANES]; 3], [[0.0; LANES]; 3]);
        for lane in 0..LANES {
            if let Some(come) = run.come.get(note.walk[lane] as usize) {
                for c in 0..3 {
                    over[c][lane] = come.over[c];
                    behind[c][lane] = come.behind[c];
                }
            }
        }
        let mut d = [[0.0; LANES]; 3];
        for c in 0..3 {
            for lane in 0..LANES {
                let albedo = note.albedo[c][lane];
                let by = over[c][lane] * (1.0 / albedo);
                let by = if is_faint(albedo) { behind[c][lane] } else { by };
                d[c][lane] = if albedo == f32::INFINITY { 0.0 } else { by };
            }
        }
        for lane in 0..LANES {
            let by = [d[0][lane], d[1][lane], d[2][lane]];
            if (by[0] != 0.0) | (by[1] != 0.0) | (by[2] != 0.0) {
                send(note.walk[lane] as usize, &at.lane(lane), by);
            }
        }
    }
}
