//! The state of a wave's paths between vertices, in structure-of-arrays layout: sixteen neighbours are loaded into a block, and
//! stored from it, as vectors.

use super::super::path_state::Gathered;
use super::super::starts::Starts;
use super::block::{Block, Lanes};
use crate::each::{EachEntry, each_index};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::pixel::{Pixel, SampledRays};
use crate::transport::rays::sampler::along;
use crate::transport::scene::batch::{LANES, Rays};

/// Whether none, one or more of the factors of a throughput are zero (0, 1 or 2), for each channel. Each is a byte of one word,
/// since the size of a path's state decides how much memory a wave reads and writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Zeros(u32);

impl Zeros {
    pub const NONE: Self = Self(0);

    #[inline(always)]
    pub(super) fn of(counts: [u32; 3]) -> Self {
        let [r, g, b] = counts.each(|count| count.min(2));
        Self(r | g << 8 | b << 16)
    }

    #[inline(always)]
    pub(super) fn counts(self) -> [u32; 3] {
        [0, 8, 16].each(|shift| self.0 >> shift & 0xff)
    }

    /// `x` in the channels whose throughput has no factor of zero; zero in the others.
    #[inline(always)]
    pub(super) fn alive(self, x: Rgb<f32>) -> Rgb<f32> {
        let counts = self.counts();
        Rgb([0, 1, 2].each(|c| if counts[c] == 0 { x[c] } else { 0.0 }))
    }
}

/// The state of a path on its way to the next surface, without its ray.
#[derive(Debug, Clone, Copy)]
pub(super) struct Onward {
    /// Its index in [`Paths`], and how many random numbers it has drawn.
    pub path: u32,
    pub drawn: u32,
    pub beta: [f32; 3],
    pub zeros: Zeros,
    pub eta: f32,
    /// Where and how it was scattered last.
    pub scattered_at: [f32; 3],
    pub pdf: f32,
    pub smooth: bool,
}

/// Paths on their way, with their rays. The arrays have room for a vector beyond the last path.
#[derive(Debug, Clone, Default)]
pub(super) struct Edges {
    pub count: usize,
    pub rays: Rays,
    pub path: Vec<u32>,
    pub drawn: Vec<u32>,
    pub beta: [Vec<f32>; 3],
    pub zeros: Vec<Zeros>,
    pub eta: Vec<f32>,
    pub scattered_at: [Vec<f32>; 3],
    pub pdf: Vec<f32>,
    pub smooth: Vec<bool>,
}

impl Edges {
    /// Makes room for this many paths.
    pub(super) fn make_room(&mut self, count: usize) {
        let count = room_for(count);
        if count <= self.path.len() {
            return;
        }
        self.rays.resize(count);
        for of in [&mut self.path, &mut self.drawn] {
            of.resize(count, 0);
        }
        for of in [&mut self.eta, &mut self.pdf] {
            of.resize(count, 0.0);
        }
        for of in self.beta.iter_mut().chain(&mut self.scattered_at) {
            of.resize(count, 0.0);
        }
        self.zeros.resize(count, Zeros::NONE);
        self.smooth.resize(count, false);
    }

    /// Appends paths that begin.
    pub(super) fn begin(&mut self, starts: &Starts) {
        let first = self.count;
        let SampledRays {
            origins,
            directions,
            nears,
            fars,
            ..
        } = &starts.rays;
        let (mut origin, mut far, mut path) = ([[0.0; LANES]; 3], [0.0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let [o, d] = [origins, directions].each(|of| Block::lane(of, lane));
            Block::put(&mut origin, lane, along(o, d, nears[lane]));
            far[lane] = fars[lane] - nears[lane];
            path[lane] = (first + lane) as u32;
        }
        for a in 0..3 {
            put(&mut self.rays.origin[a], first, &origin[a]);
            put(&mut self.rays.direction[a], first, &directions[a]);
            put(&mut self.scattered_at[a], first, &origin[a]);
            put(&mut self.beta[a], first, &[1.0; LANES]);
        }
        put(&mut self.rays.far, first, &far);
        put(&mut self.path, first, &path);
        put(&mut self.drawn, first, &[0; LANES]);
        put(&mut self.zeros, first, &[Zeros::NONE; LANES]);
        put(&mut self.eta, first, &[1.0; LANES]);
        put(&mut self.pdf, first, &[0.0; LANES]);
        put(&mut self.smooth, first, &[false; LANES]);
        self.count += starts.count;
    }

    /// The path at a place.
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Onward {
        Onward {
            path: self.path[i],
            drawn: self.drawn[i],
            beta: [0, 1, 2].each(|c| self.beta[c][i]),
            zeros: self.zeros[i],
            eta: self.eta[i],
            scattered_at: [0, 1, 2].each(|a| self.scattered_at[a][i]),
            pdf: self.pdf[i],
            smooth: self.smooth[i],
        }
    }

    /// Appends a path.
    #[inline(always)]
    pub(super) fn push(&mut self, onward: Onward, origin: [f32; 3], direction: [f32; 3]) {
        let i = self.count;
        self.rays.put(i, origin, direction, f32::INFINITY);
        (self.path[i], self.drawn[i], self.zeros[i]) = (onward.path, onward.drawn, onward.zeros);
        (self.eta[i], self.pdf[i], self.smooth[i]) = (onward.eta, onward.pdf, onward.smooth);
        for a in 0..3 {
            self.beta[a][i] = onward.beta[a];
            self.scattered_at[a][i] = onward.scattered_at[a];
        }
        self.count += 1;
    }
}

/// Shadow rays, each with the contribution that is added if nothing blocks it.
#[derive(Debug, Default)]
pub(super) struct Shadows {
    pub count: usize,
    pub rays: Rays,
    pub path: Vec<u32>,
    /// What the path gains if the light arrives.
    pub value: [Vec<f32>; 3],
    pub zeros: Vec<Zeros>,
    pub vertex: Vec<Vertex>,
}

impl Shadows {
    /// Makes room for this many shadow rays.
    pub(super) fn make_room(&mut self, count: usize) {
        let count = room_for(count);
        if count <= self.path.len() {
            return;
        }
        self.rays.resize(count);
        self.path.resize(count, 0);
        self.value.iter_mut().for_each(|of| of.resize(count, 0.0));
        self.zeros.resize(count, Zeros::NONE);
        self.vertex.resize(count, Vertex::UNWANTED);
    }

    /// Appends a shadow ray.
    pub(super) fn push(
        &mut self,
        path: u32,
        value: Rgb<f32>,
        zeros: Zeros,
        vertex: Vertex,
        [origin, direction]: [[f32; 3]; 2],
        far: f32,
    ) {
        let i = self.count;
        self.rays.put(i, origin, direction, far);
        (self.path[i], self.zeros[i], self.vertex[i]) = (path, zeros, vertex);
        for c in 0..3 {
            self.value[c][i] = value[c];
        }
        self.count += 1;
    }
}

/// The place of the vertex that a shadow ray starts from, if derivatives by its textures are sought; a [`Place`] in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vertex(u32);

/// A [`Vertex`], decoded: a lane of a block, or an index in [`super::Room::alone`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Unwanted,
    /// A lane of a block.
    Lane(usize, usize),
    Alone(usize),
}

impl Vertex {
    pub(super) const UNWANTED: Self = Self(u32::MAX);
    const ALONE: u32 = 1 << 31;

    #[inline(always)]
    pub(super) fn lane(block: usize, lane: usize) -> Self {
        Self((LANES * block + lane) as u32)
    }

    pub(super) fn alone(place: usize) -> Self {
        Self(Self::ALONE | place as u32)
    }

    #[inline(always)]
    pub(super) fn get(self) -> Place {
        match self {
            Self::UNWANTED => Place::Unwanted,
            Self(number) if number < Self::ALONE => Place::Lane(number as usize / LANES, number as usize % LANES),
            Self(number) => Place::Alone((number & !Self::ALONE) as usize),
        }
    }
}

/// All paths that are followed together: where they come from, and what they gather. There is room for a vector beyond the last.
#[derive(Debug, Default)]
pub(in super::super) struct Paths {
    pub count: usize,
    /// The pixel of each, and its sample.
    pub sensor: Vec<u32>,
    pub pixel: Vec<u32>,
    pub sample: Vec<u32>,
    /// What each has gathered, and whether it has reached the background without being scattered.
    pub gathered: Vec<Gathered<f32>>,
    pub straight: Vec<bool>,
    /// What its replay has left of that.
    pub left: Vec<Gathered<f32>>,
}

impl Paths {
    /// Makes room for this many paths.
    fn make_room(&mut self, count: usize) {
        let count = room_for(count);
        if count <= self.sample.len() {
            return;
        }
        for of in [&mut self.sensor, &mut self.pixel, &mut self.sample] {
            of.resize(count, 0);
        }
        for of in [&mut self.gathered, &mut self.left] {
            of.resize(count, Gathered::nothing());
        }
        self.straight.resize(count, false);
    }

    /// Appends paths that begin.
    pub(in super::super) fn begin(&mut self, starts: &Starts) {
        let first = self.count;
        self.count += starts.count;
        self.make_room(self.count);
        put(&mut self.sensor, first, &[starts.of.sensor; LANES]);
        put(&mut self.pixel, first, &starts.of.pixels);
        put(&mut self.sample, first, &starts.of.samples);
        put(&mut self.straight, first, &[false; LANES]);
        self.gathered[first..first + LANES].iter_mut().for_each(Gathered::clear);
    }

    /// A path's pixel and sample.
    #[inline(always)]
    pub(super) fn source(&self, path: usize) -> (Pixel, u32) {
        let (sensor, index) = (self.sensor[path], self.pixel[path]);
        (Pixel { sensor, index }, self.sample[path])
    }

    /// Begins a replay: all that paths have gathered is still to come.
    pub(super) fn begin_replay(&mut self) {
        for (left, gathered) in self.left.iter_mut().zip(&self.gathered).take(self.count) {
            left.set_still_to_come(gathered);
        }
    }

    /// What each path has gathered, and what its replay has left.
    pub(in super::super) fn replayed(&self) -> impl Iterator<Item = (&Gathered<f32>, &Gathered<f32>)> {
        self.gathered.iter().zip(&self.left).take(self.count)
    }
}

/// Sixteen indices into arrays, from which a vector is loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picked {
    at: Lanes<u32>,
    /// Whether they are consecutive, so that a plain load takes the place of a gather.
    in_step: bool,
}

impl Picked {
    #[inline(always)]
    pub(super) fn new(at: Lanes<u32>) -> Self {
        let mut in_step = true;
        for lane in 0..LANES {
            in_step &= at[lane] == at[0] + lane as u32;
        }
        Self { at, in_step }
    }

    /// Up to sixteen indices; the other lanes repeat the first.
    #[inline(always)]
    pub(super) fn of_some(places: &[u32]) -> Self {
        match places.first_chunk() {
            Some(all) => Self::new(*all),
            None => Self::new(each_index(|lane| *places.get(lane).unwrap_or(&places[0]))),
        }
    }

    /// The array's entries at the indices.
    #[inline(always)]
    pub(super) fn of<T: Copy>(&self, values: &[T]) -> Lanes<T> {
        match self.in_step {
            true => *values[self.at[0] as usize..]
                .first_chunk()
                .expect("places of the array"),
            false => each_index(|lane| values[self.at[lane] as usize]),
        }
    }

    /// The entries of several arrays at the indices.
    #[inline(always)]
    pub(super) fn of_all<T: Copy, const N: usize>(&self, values: &[Vec<T>; N]) -> [Lanes<T>; N] {
        each_index(|k| self.of(&values[k]))
    }
}

/// The chosen lanes of a vector, which are appended to arrays without gaps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub count: usize,
    lanes: Lanes<u8>,
}

impl Chosen {
    /// Chooses those of the first `count` lanes whose number is not zero.
    #[inline(always)]
    pub(super) fn where_not_zero(numbers: &Lanes<u32>, count: usize) -> Self {
        let mut chosen = Self {
            count: 0,
            lanes: [0; LANES],
        };
        for lane in 0..count {
            chosen.lanes[chosen.count % LANES] = lane as u8;
            chosen.count += usize::from(numbers[lane] != 0);
        }
        chosen
    }

    /// The lanes, in order.
    #[inline(always)]
    pub(super) fn lanes(&self) -> impl Iterator<Item = usize> + '_ {
        self.lanes[..self.count].iter().map(|lane| *lane as usize)
    }

    /// Writes the chosen lanes of `from` one after another, from `first` on. A whole vector is written: the entries behind them
    /// are unspecified.
    #[inline(always)]
    pub(super) fn put<T: Copy>(&self, from: &Lanes<T>, to: &mut [T], first: usize) {
        if self.count == LANES {
            return put(to, first, from);
        }
        let to: &mut Lanes<T> = to[first..].first_chunk_mut().expect(ROOM);
        for lane in 0..LANES {
            to[lane] = from[self.lanes[lane] as usize % LANES];
        }
    }
}

/// Writes a vector from a place on.
#[inline(always)]
fn put<T: Copy>(to: &mut [T], first: usize, from: &Lanes<T>) {
    *to[first..].first_chunk_mut().expect(ROOM) = *from;
}

/// The message if an array lacked it: all have room for a vector beyond their last entry.
const ROOM: &str = "room for a vector";

/// The length of arrays for this many paths: rounded up to a power of two, and a vector beyond.
fn room_for(count: usize) -> usize {
    count.next_power_of_two() + LANES
}
