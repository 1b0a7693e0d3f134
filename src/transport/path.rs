//! From a place on the film to radiance, and back: the estimator's primal and its adjoint, for one ray.

use super::background::background_eval;
use super::camera::{Ray, camera_ray};
use super::film::filter_sample;
use super::number::Number;
use super::radiance_field::{NoSink, Sink, State, View, field_segment, walk};
use super::random::{Counter, Key, random_index, random_uniform, random_words};
use crate::resident::layout::{SceneRecord, SensorRecord, backdrop};

/// Which pixel a ray belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pixel {
    pub sensor: u32,
    /// y · width + x
    pub index: u32,
}

/// A table that turns an index over the pixels of several sensors into a [`Pixel`]: `starts[i]` is the first index of
/// `sensors[i]`, and one more entry holds the total.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PixelTable {
    pub sensors: Vec<u32>,
    pub starts: Vec<u32>,
}

impl PixelTable {
    /// The table over whole sensors, in the order given. None if the pixels do not fit 32 bits.
    pub fn new(records: &[SensorRecord], sensors: &[u32]) -> Option<Self> {
        let mut starts = vec![0u32];
        for &s in sensors {
            let sensor = &records[s as usize];
            let last = *starts.last().expect("starts is never empty");
            starts.push(last.checked_add(sensor.width.checked_mul(sensor.height)?)?);
        }
        Some(Self {
            sensors: sensors.to_vec(),
            starts,
        })
    }

    /// Number of pixels.
    pub fn len(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether there is no pixel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pixel at `index` < `len`.
    #[inline(always)]
    pub fn pixel(&self, index: u32) -> Pixel {
        let slot = self.starts.partition_point(|&start| start <= index) - 1;
        Pixel {
            sensor: self.sensors[slot],
            index: index - self.starts[slot],
        }
    }
}

/// Block numbers of the draws that are not a sample's.
const DRAWN_PIXEL: u32 = 1 << 16;
const RANDOM_BACKDROP: u32 = 1 << 17;
const LINEAR_WEIGHT: u32 = 1 << 18;

/// The pixel of ray `index` in a batch of rays drawn from all pixels of `table`; the same for every pass that shares
/// the `objective` key.
#[inline(always)]
pub fn drawn_pixel(table: &PixelTable, objective: Key, index: u32) -> Pixel {
    let words = random_words(
        objective,
        Counter {
            sensor: 0,
            pixel: index,
            sample: 0,
            block: DRAWN_PIXEL,
        },
    );
    table.pixel(random_index(words[0], table.len()))
}

/// The random colour behind a pixel's reference and behind the medium; the same for every pass of an iteration.
#[inline(always)]
pub fn random_backdrop(objective: Key, pixel: Pixel) -> [f32; 3] {
    let counter = Counter {
        sensor: pixel.sensor,
        pixel: pixel.index,
        sample: 0,
        block: RANDOM_BACKDROP,
    };
    let u = random_uniform(objective, counter);
    [u[0], u[1], u[2]]
}

/// The weight of [`crate::kernels::loss::Loss::Linear`] for a channel of a batch's pixel: 1 for `seed` 0, else uniform
/// in [-1, 1).
#[inline(always)]
pub fn linear_weight(seed: u32, index: u32, channel: u32) -> f32 {
    if seed == 0 {
        return 1.0;
    }
    let key = [seed, LINEAR_WEIGHT, 0, 0];
    2.0 * random_uniform(
        key,
        Counter {
            sensor: 0,
            pixel: index,
            sample: channel,
            block: 0,
        },
    )[0] - 1.0
}

/// One sample of a pixel: its ray and its jitter.
#[inline(always)]
pub fn sample_ray(
    scene: &SceneRecord,
    sensor: &SensorRecord,
    pixel: Pixel,
    key: Key,
    sample: u32,
) -> Option<(Ray, f32)> {
    let u = random_uniform(
        key,
        Counter {
            sensor: pixel.sensor,
            pixel: pixel.index,
            sample,
            block: 0,
        },
    );
    let (column, row) = (pixel.index % sensor.width, pixel.index / sensor.width);
    let (kind, size, table) = (sensor.filter, sensor.filter_size, &scene.gaussian_cdf);
    let x = filter_sample(kind, size, table, column, sensor.width, u[0]);
    let y = filter_sample(kind, size, table, row, sensor.height, u[1]);
    match camera_ray(sensor, x, y) {
        Some(ray) => Some((ray, u[2])),
        None => None,
    }
}

/// The colour that replaces the emitter behind this pixel, if its backdrop is random.
#[inline(always)]
pub fn pixel_backdrop(sensor: &SensorRecord, objective: Key, pixel: Pixel) -> Option<[f32; 3]> {
    if sensor.backdrop == backdrop::RANDOM {
        Some(random_backdrop(objective, pixel))
    } else {
        None
    }
}

#[inline(always)]
fn lift3<N: Number>(v: [f32; 3]) -> [N; 3] {
    [N::lift(v[0]), N::lift(v[1]), N::lift(v[2])]
}

/// What one ray gathers: radiance and the transmittance it ends with.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<N> {
    pub radiance: [N; 3],
    pub transmittance: N,
    /// Samples that contributed.
    pub count: u32,
}

/// The primal estimate of a ray's radiance.
#[inline(always)]
pub fn gather<N: Number, V: View<N>>(
    scene: &SceneRecord,
    view: &V,
    ray: &Ray,
    jitter: f32,
    backdrop: Option<[f32; 3]>,
) -> Gathered<N> {
    let zero = [N::lift(0.0); 3];
    let mut state = State::new(zero);
    if let Some(segment) = field_segment(scene, ray, jitter) {
        walk::<N, V, NoSink, false>(scene, view, &segment, &mut state, zero, &mut NoSink);
    }
    let behind = match backdrop {
        Some(color) => lift3(color),
        None => background_eval(scene, view.emitter(), ray.direction),
    };
    for c in 0..3 {
        state.radiance[c] += state.transmittance * behind[c];
    }
    Gathered {
        radiance: state.radiance,
        transmittance: state.transmittance,
        count: state.count,
    }
}

/// How a replay ended.
#[derive(Debug, Clone, Copy)]
pub struct Replayed<N> {
    /// Radiance left over: zero but for rounding.
    pub left: [N; 3],
    /// Samples that contributed.
    pub count: u32,
}

/// The adjoint: walks the ray once for its radiance, then again from the same random state, and sends the derivatives
/// of `d_radiance` · radiance to `sink`.
#[inline(always)]
pub fn propagate<N: Number, V: View<N>, S: Sink<N>>(
    scene: &SceneRecord,
    view: &V,
    ray: &Ray,
    jitter: f32,
    backdrop: Option<[f32; 3]>,
    d_radiance: [N; 3],
    sink: &mut S,
) -> (Gathered<N>, Replayed<N>) {
    let gathered = gather(scene, view, ray, jitter, backdrop);
    let mut state = State::new(gathered.radiance);
    if let Some(segment) = field_segment(scene, ray, jitter) {
        walk::<N, V, S, true>(scene, view, &segment, &mut state, d_radiance, sink);
    }
    let behind = match backdrop {
        Some(color) => lift3(color),
        None => {
            let t = state.transmittance;
            sink.emitter(ray.direction, [d_radiance[0] * t, d_radiance[1] * t, d_radiance[2] * t]);
            background_eval(scene, view.emitter(), ray.direction)
        }
    };
    for c in 0..3 {
        state.radiance[c] -= state.transmittance * behind[c];
    }
    (
        gathered,
        Replayed {
            left: state.radiance,
            count: state.count,
        },
    )
}
