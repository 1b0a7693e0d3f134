//! Neighbouring rays that are marched in turns, a few steps each, so that a ray finds in the first-level cache the texels
//! that its neighbours have just read. Each ray takes the very steps that it would take alone.

use std::cell::Cell;

use crate::device::Keys;
use crate::device::cpu::chunk::{Pixels, Place};
use crate::device::cpu::passes::Inputs;
use crate::resident::layout::SceneRecord;
use crate::transport::field::march::March;
use crate::transport::field::radiance_field::{FieldView, NoSamples, SampleSink};
use crate::transport::mode::{GATHER, PRIMAL};
use crate::transport::rays::camera::Ray;
use crate::transport::rays::pixel::{Sampled, pixel_backdrop, sample_ray};

/// Rays of a packet: an 8×4 block of a tile. The texels that they read in a turn fit the first-level cache.
pub(in crate::device::cpu) const RAYS: usize = 32;

/// A ray of a packet.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Lane {
    /// Its pixel's place in the chunk.
    pub(in crate::device::cpu) place: usize,
    /// Weight of its radiance in the pixel.
    pub(in crate::device::cpu) weight: f32,
    /// Derivative of the loss by its radiance; zero in a primal pass.
    pub(in crate::device::cpu) d_radiance: [f32; 3],
    pub(in crate::device::cpu) path: March<f32>,
}

/// The camera ray of a lane.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Cast {
    pub(in crate::device::cpu) sensor: u32,
    pub(in crate::device::cpu) ray: Ray,
}

/// A sink that is told which lane's samples come next (`turn`), keeps the samples of a packet, and replays them.
pub(in crate::device::cpu) trait PacketSink: SampleSink<f32> {
    fn turn(&mut self, lane: u32);
    /// Replays all samples of the packet; the path of each lane is in the state in which a replay begins.
    fn replay(&mut self, scene: &SceneRecord, lanes: &mut [Lane]);
}

impl PacketSink for NoSamples {
    #[inline(always)]
    fn turn(&mut self, _: u32) {}
    #[inline(always)]
    fn replay(&mut self, _: &SceneRecord, _: &mut [Lane]) {}
}

/// Rays that are marched in turns.
#[derive(Debug, Default)]
pub(in crate::device::cpu) struct Packet {
    pub(in crate::device::cpu) lanes: Vec<Lane>,
    /// The camera ray of each lane, if [`Sample::with_casts`] says so.
    pub(in crate::device::cpu) casts: Vec<Cast>,
    /// Places of pixels without a ray.
    pub(in crate::device::cpu) masked: Vec<usize>,
    /// In an adjoint pass, the radiance that each lane's first walk gathered.
    pub(in crate::device::cpu) radiances: Vec<[f32; 3]>,
    /// Lanes whose walk has not ended.
    active: Vec<u32>,
}

thread_local! {
    /// A packet kept for the next chunk of this thread, so that nothing is allocated in a running optimisation.
    static SPARE: Cell<Option<Box<Packet>>> = const { Cell::new(None) };
}

/// One sample of a pass.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Sample<'a> {
    pub(in crate::device::cpu) keys: Keys,
    pub(in crate::device::cpu) index: u32,
    /// The adjoint image of the chunk, over the number of samples; empty in a primal pass. Pixels where it is zero have
    /// nothing to propagate and are left out.
    pub(in crate::device::cpu) adjoint: &'a [[f32; 3]],
    /// Whether the packet keeps its camera rays.
    pub(in crate::device::cpu) with_casts: bool,
}

impl Packet {
    /// This thread's packet, to be put back.
    pub(in crate::device::cpu) fn take() -> Box<Self> {
        SPARE.take().unwrap_or_default()
    }

    /// Keeps the packet for the next chunk.
    pub(in crate::device::cpu) fn put_back(self: Box<Self>) {
        SPARE.set(Some(self));
    }

    /// Starts the paths of the next pixels; false if none is left.
    #[inline(always)]
    pub(in crate::device::cpu) fn fill(&mut self, inputs: &Inputs, pixels: &mut Pixels, sample: Sample) -> bool {
        self.lanes.clear();
        self.casts.clear();
        self.masked.clear();
        let mut any = false;
        while self.lanes.len() < RAYS {
            let Some(Place { place, pixel, .. }) = pixels.next() else {
                break;
            };
            any = true;
            let d_radiance = if sample.adjoint.is_empty() {
                [0.0; 3]
            } else {
                sample.adjoint[place]
            };
            if !sample.adjoint.is_empty() && d_radiance == [0.0; 3] {
                continue;
            }
            let sensor = &inputs.sensors[pixel.sensor as usize];
            match sample_ray(&inputs.scene, sensor, pixel, sample.keys.pass, sample.index) {
                Some(Sampled { ray, jitter, weight }) => {
                    let backdrop = pixel_backdrop(sensor, sample.keys.objective, pixel);
                    let path = March::new(&inputs.scene, &ray, jitter, backdrop);
                    if sample.with_casts {
                        let sensor = pixel.sensor;
                        self.casts.push(Cast { sensor, ray });
                    }
                    let [r, g, b] = d_radiance;
                    self.lanes.push(Lane {
                        place,
                        weight,
                        d_radiance: [r * weight, g * weight, b * weight],
                        path,
                    });
                }
                None => self.masked.push(place),
            }
        }
        any
    }

    /// Walks all paths to their ends.
    #[inline(always)]
    pub(in crate::device::cpu) fn gather<V: FieldView<f32>>(&mut self, scene: &SceneRecord, view: &V) {
        self.turns::<V, _, PRIMAL>(scene, view, &mut NoSamples);
        for lane in &mut self.lanes {
            lane.path.end_primal(scene, view);
        }
    }

    /// Walks all paths to their ends, then replays them, sending the gradients of lane i to `sink` after
    /// `sink.turn(i)`. Leaves the radiances that the paths gathered in `self.radiances`.
    #[inline(always)]
    pub(in crate::device::cpu) fn backpropagate<V: FieldView<f32>, S: PacketSink>(
        &mut self,
        scene: &SceneRecord,
        view: &V,
        sink: &mut S,
    ) {
        self.turns::<V, S, GATHER>(scene, view, sink);
        self.radiances.clear();
        for lane in &mut self.lanes {
            lane.path.end_primal(scene, view);
            self.radiances.push(lane.path.state.radiance);
            lane.path = lane.path.replay();
        }
        sink.replay(scene, &mut self.lanes);
        for lane in &mut self.lanes {
            lane.path.end_replay(scene, view, lane.d_radiance, sink);
        }
    }

    /// Walks all paths to their ends, turn by turn.
    #[inline(always)]
    fn turns<V: FieldView<f32>, S: PacketSink, const MODE: u8>(&mut self, scene: &SceneRecord, view: &V, sink: &mut S) {
        self.active.clear();
        self.active.extend(0..self.lanes.len() as u32);
        while !self.active.is_empty() {
            let mut kept = 0;
            for i in 0..self.active.len() {
                let index = self.active[i];
                let lane = &mut self.lanes[index as usize];
                sink.turn(index);
                if lane.path.walk::<V, S, MODE>(scene, view, lane.d_radiance, sink) {
                    self.active[kept] = index;
                    kept += 1;
                }
            }
            self.active.truncate(kept);
        }
    }
}
