//! From a place on the film to radiance, and back: the estimator's primal and its adjoint, for one ray.

use super::background::background_eval;
use super::camera::{Ray, camera_ray};
use super::film::filter_sample;
use super::number::Number;
use super::radiance_field::{NoSink, Segment, Sink, State, View, field_segment, walk};
use super::random::{Counter, Key, random_index, random_uniform, random_words};
use super::sh::{Basis, MAX_COEFFICIENTS};
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

/// One ray on its way through the scene, primal or replayed.
#[derive(Debug, Clone, Copy)]
pub struct Path<N> {
    direction: [f32; 3],
    backdrop: Option<[f32; 3]>,
    /// The part inside the field.
    pub segment: Option<Segment>,
    pub state: State<N>,
}

impl<N: Number> Path<N> {
    /// The primal path of a ray with its jitter.
    #[inline(always)]
    pub fn new(scene: &SceneRecord, ray: &Ray, jitter: f32, backdrop: Option<[f32; 3]>) -> Self {
        let segment = field_segment(scene, ray, jitter);
        Self {
            direction: ray.direction,
            backdrop,
            segment,
            state: State::new([N::lift(0.0); 3]),
        }
    }

    /// The replay of a finished primal path: it starts with the radiance that the primal ended with.
    #[inline(always)]
    pub fn replay(&self) -> Self {
        Self {
            state: State::new(self.state.radiance),
            ..*self
        }
    }

    /// The basis of the ray's direction; zero outside the field.
    #[inline(always)]
    pub fn basis(&self) -> Basis {
        match &self.segment {
            Some(segment) => segment.basis,
            None => [0.0; MAX_COEFFICIENTS],
        }
    }

    /// Goes on for a few places and says whether more is to come.
    #[inline(always)]
    pub fn walk<V: View<N>, S: Sink<N>, const REPLAY: bool>(
        &mut self,
        scene: &SceneRecord,
        view: &V,
        d_radiance: [N; 3],
        sink: &mut S,
    ) -> bool {
        match &self.segment {
            Some(segment) => walk::<N, V, S, REPLAY>(scene, view, segment, &mut self.state, d_radiance, sink),
            None => false,
        }
    }

    /// Ends a primal path: adds what lies behind the medium.
    #[inline(always)]
    pub fn end_primal<V: View<N>>(&mut self, scene: &SceneRecord, view: &V) {
        let behind = self.behind(scene, view);
        for c in 0..3 {
            self.state.radiance[c] += self.state.transmittance * behind[c];
        }
    }

    /// Ends a replay: sends the emitter's gradient and leaves the radiance left over, zero but for rounding, in the
    /// state.
    #[inline(always)]
    pub fn end_replay<V: View<N>, S: Sink<N>>(
        &mut self,
        scene: &SceneRecord,
        view: &V,
        d_radiance: [N; 3],
        sink: &mut S,
    ) {
        let t = self.state.transmittance;
        if self.backdrop.is_none() {
            sink.emitter(
                self.direction,
                [d_radiance[0] * t, d_radiance[1] * t, d_radiance[2] * t],
            );
        }
        let behind = self.behind(scene, view);
        for c in 0..3 {
            self.state.radiance[c] -= t * behind[c];
        }
    }

    #[inline(always)]
    fn behind<V: View<N>>(&self, scene: &SceneRecord, view: &V) -> [N; 3] {
        match self.backdrop {
            Some(color) => [N::lift(color[0]), N::lift(color[1]), N::lift(color[2])],
            None => background_eval(scene, view.emitter(), self.direction),
        }
    }
}

/// What one ray gathers: radiance and the transmittance it ends with.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<N> {
    pub radiance: [N; 3],
    pub transmittance: N,
    /// Samples that contributed.
    pub count: u32,
}

/// How a replay ended.
#[derive(Debug, Clone, Copy)]
pub struct Replayed<N> {
    /// Radiance left over: zero but for rounding.
    pub left: [N; 3],
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
    let State {
        radiance,
        transmittance,
        count,
        ..
    } = primal(scene, view, ray, jitter, backdrop).state;
    Gathered {
        radiance,
        transmittance,
        count,
    }
}

#[inline(always)]
fn primal<N: Number, V: View<N>>(
    scene: &SceneRecord,
    view: &V,
    ray: &Ray,
    jitter: f32,
    backdrop: Option<[f32; 3]>,
) -> Path<N> {
    let mut path = Path::new(scene, ray, jitter, backdrop);
    while path.walk::<V, NoSink, false>(scene, view, [N::lift(0.0); 3], &mut NoSink) {}
    path.end_primal(scene, view);
    path
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
    let path = primal(scene, view, ray, jitter, backdrop);
    let mut replay = path.replay();
    while replay.walk::<V, S, true>(scene, view, d_radiance, sink) {}
    replay.end_replay(scene, view, d_radiance, sink);
    let State {
        radiance,
        transmittance,
        count,
        ..
    } = path.state;
    (
        Gathered {
            radiance,
            transmittance,
            count,
        },
        Replayed {
            left: replay.state.radiance,
            count: replay.state.count,
        },
    )
}
