//! Rounds, in which the replays of a batch are made and summed, and the memory that a round takes.

use super::bricks::Bricks;
use super::records::{Note, Record};
use crate::device::Batch;
use crate::device::cpu::chunk::{CHUNK, chunks};
use crate::params::Shape;
use crate::resident::Resident;
use crate::resident::field::FieldScene;
use crate::resident::layout::SceneRecord;
use crate::transport::field::radiance_field::field_segment;
use crate::transport::lookup::sh::Basis;
use crate::transport::rays::pixel::{Pixel, sample_ray};
use crate::transport::rays::random::{Pass, pass_key};

/// Most records of a round of chunks, which bounds the adjoint's memory, unless [`LEAST_CHUNKS`] chunks have more.
const ROUND_RECORDS: usize = 1 << 20;
/// Least number of chunks of a round, even if they have more records.
const LEAST_CHUNKS: usize = 4;

/// Rays along each side of a view whose lengths in the field stand for all of its rays.
const ACROSS: u32 = 16;

/// A round: several chunks, for all threads to have something to do, and as many samples a pixel as then fit.
pub(super) struct Round {
    pub(super) chunks: usize,
    pub(super) samples: usize,
}

impl Round {
    /// The rounds of a pass with `spp` samples a pixel, in a field along whose rays are at most `longest_ray` samples.
    pub(super) fn new(longest_ray: u64, spp: u32) -> Self {
        let records = CHUNK * longest_ray as usize;
        let samples = (ROUND_RECORDS / (LEAST_CHUNKS * records)).clamp(1, spp.max(1) as usize);
        let chunks = (ROUND_RECORDS / (records * samples)).max(LEAST_CHUNKS);
        Self { chunks, samples }
    }
}

/// Bytes that backpropagation keeps for a round's replays of a batch with `spp` samples a pixel, at the resolutions `shapes` and if
/// all samples of its rays contribute.
pub(in crate::device::cpu) fn replay_bytes(
    field: &FieldScene,
    resident: &Resident,
    shapes: &[Shape],
    batch: &Batch,
    spp: u32,
) -> u64 {
    let mut scene = resident.scene;
    field.fit(&mut scene, shapes);
    let round = Round::new(field.longest_ray(&scene), spp);
    let chunks = round.chunks.min(chunks(&resident.sensors, batch).len());
    let rays_a_chunk = round.samples * CHUNK;
    let records_a_chunk = (rays_a_chunk as f64 * samples_a_ray(&scene, resident, batch)) as usize;
    let emitted = match resident.emitter {
        Some(_) => size_of::<([f32; 3], [f32; 3])>(),
        None => 0,
    };
    let starts = size_of::<u32>() * (Bricks::new(&scene).len() + 1);
    let of_chunk = records_a_chunk * size_of::<Record>() + rays_a_chunk * (size_of::<Basis>() + emitted) + starts;
    // Each thread has notes of the chunk that it replays.
    let noting = rayon::current_num_threads().min(chunks) * records_a_chunk * size_of::<Note>();
    (chunks * of_chunk + noting) as u64
}

/// The number of samples along a batch's rays: the mean if pixels are drawn, for then each chunk has rays of all lengths; else the
/// most, for a round's chunks keep room for the longest rays that come their way.
fn samples_a_ray(scene: &SceneRecord, resident: &Resident, batch: &Batch) -> f64 {
    let key = pass_key(0, 0, Pass::Objective);
    let of_place = |sensor: u32, place: u32| {
        let record = &resident.sensors[sensor as usize];
        let middle = |at: u32, side: u32| (u64::from(2 * at + 1) * u64::from(side) / u64::from(2 * ACROSS)) as u32;
        let [x, y] = [
            middle(place % ACROSS, record.width),
            middle(place / ACROSS, record.height),
        ];
        let index = y * record.width + x;
        let sampled = sample_ray(scene, record, Pixel { sensor, index }, key, 0)?;
        let segment = field_segment(scene, &sampled.ray, 0.5)?;
        Some(f64::from((segment.far - segment.first) / scene.step_length) + 1.0)
    };
    let places = |&sensor: &u32| (0..ACROSS * ACROSS).map(move |place| (sensor, place));
    let all = batch.table.sensors.iter().flat_map(places);
    let lengths = all.map(|(sensor, place)| of_place(sensor, place).unwrap_or(0.0));
    match batch.drawn {
        Some(_) => {
            let count = batch.table.sensors.len().max(1) * (ACROSS * ACROSS) as usize;
            lengths.sum::<f64>() / count as f64
        }
        None => lengths.fold(0.0, f64::max),
    }
}
