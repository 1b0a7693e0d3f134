//! The memory that a run needs, estimated before it starts.

use anyhow::Result;

use super::batch::Batches;
use super::references;
use super::stage::shape_after;
use super::views::{chosen_views, training_views};
use crate::device::gpu::wave_bytes;
use crate::device::{Batch, Device, parameter_bytes, scene_bytes};
use crate::output::memory::{available_bytes, resident_mib};
use crate::output::parameters::{is_fog, is_map, shown_bytes, texel_bytes};
use crate::output::progress::bytes;
use crate::params::{Kind, ParamSet, Parameter, Shape};
use crate::resident::layout::filter;
use crate::resident::{Resident, Transport};
use crate::scene::{Growth, Optimize, References, Scene, Sensor, Stage};

/// Bytes of the device's arrays at the finest resolution, and of what a process needs beside them. A tape is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Values, gradients and moments.
    pub parameters: u64,
    /// Accumulators beside them: [`Device::sum_bytes`].
    pub sums: u64,
    /// Surfaces, media, lights, and the tables that follow from the values that the run begins with; that of an environment map at
    /// its finest resolution.
    pub scene: u64,
    pub references: u64,
    /// Image and adjoint image of the largest batch.
    pub images: u64,
    /// States of the paths that are followed at once, or replays of a field: [`Device::path_bytes`].
    pub paths: u64,
    /// The largest amount held while a scene is uploaded, before there are gradients and images: values, references (with those
    /// that are only looked at) and tables (of the finest map), with a copy of an array or what a hierarchy is built from.
    pub loading: u64,
    /// Beside all but `loading`: references that are only looked at, stacks and buffers of threads, and temporary copies of arrays
    /// that are smoothed, written or shown, and of pictures; or what a backward pass takes for a while ([`Device::pass_bytes`]).
    pub passing: u64,
}

/// Resident size of a process on a CPU before it has uploaded its scene, and once it runs: its code, and what the allocator keeps.
/// Measured with a scene of a few bytes.
const PROGRAM_AT_FIRST: u64 = 12 << 20;
const PROGRAM: u64 = 37 << 19;

/// What a thread that is at work adds to it, measured likewise: its stack and its part of the allocator; and in passes of each kind
/// its buffers: for a chunk of paths, for one of random walks in homogeneous media, which are noted for their replay, and for the
/// weights of a tile's splats.
const THREAD: u64 = 1 << 17;
const PATHS: u64 = 3 << 18;
const WALKS: u64 = 9 << 18;
const WEIGHTS: u64 = 3 << 17;

/// Pixels that a thread takes at a time.
const TAKEN: u64 = 256;

/// What writing pictures adds to the size of the program, measured likewise.
const PICTURES: u64 = 1 << 19;

/// Bytes of a picture for each pixel: radiance and alpha, and beside them while it is written coded values, the channels of a file,
/// and its bytes and compressed blocks, of which the size was measured.
const PICTURE: u64 = 16;
const WRITTEN: u64 = PICTURE + 12 + 12 + 8;

/// Bytes for each pixel while a view is rendered: the picture, or before that, if samples are spread by a filter, their sums with
/// weights, and the samples.
const SPREAD: u64 = 20 + 16;

/// Bytes of a slab as a solid for each of its heights: those, a vertex, and two triangles.
const SOLID: u64 = 4 + 12 + 2 * 12;

/// Bytes for each triangle while a hierarchy is built: its corners, its box twice, and its share of the mesh that was read and of
/// that in the world.
const BUILDING: u64 = 36 + 2 * 32 + 48;

impl Estimate {
    /// The estimate of a run of `scene` on this device: `references` in bytes, `largest` the batch of the most pixels.
    pub fn new(
        device: &dyn Device,
        (resident, params): (&Resident, &ParamSet),
        (scene, settings): (&Scene, &Optimize),
        references: u64,
        largest: &Batch,
    ) -> Self {
        let finest = finest(params, &settings.stages, settings.growth);
        let kept = Self {
            sums: device.sum_bytes(&resident.transport, &finest),
            scene: scene_bytes(resident, params, &finest),
            parameters: parameter_bytes(finest.iter().copied(), settings.optimizer),
            references,
            images: device.image_bytes(resident, largest, settings.loss),
            paths: device.path_bytes(resident, &finest, largest, most_samples(settings)),
            loading: 0,
            passing: 0,
        };
        let values = params.parameters.iter().map(|p| 4 * p.shape.len() as u64);
        let looked_at = looked_at(scene, settings);
        let loaded = values.clone().sum::<u64>() + kept.scene + references + looked_at;
        let [once, always] = building(resident);
        let written = writing(resident, params, settings, &finest);
        let beside_pictures = smoothing(params, &finest).max(always).max(splats(params, &finest));
        let pictures = pictures(resident, scene, settings, (largest, kept.images));
        let threads = threads(resident, scene, largest);
        let in_pass = device.pass_bytes(&resident.transport, &finest);
        Self {
            loading: loaded + values.max().unwrap_or(0).max(once),
            passing: looked_at + threads + written.max(beside_pictures + pictures).max(in_pass),
            ..kept
        }
    }

    /// The estimate of a scene whose references are neither read nor rendered: photographs for sRGB-coded films count 8
    /// bits a channel. Beside it the bytes of the waves in which a GPU would follow the run's paths, if it did.
    ///
    /// # Errors
    /// The scene cannot be flattened.
    pub fn of_scene(scene: &Scene, settings: &Optimize, device: &dyn Device) -> Result<(Self, Option<u64>)> {
        let (resident, params) = Resident::new(scene)?;
        let training = training_views(scene, &settings.references);
        let references = references::bytes(scene, &settings.references, &training);
        // A run without a view to learn from is refused elsewhere.
        let batches = Batches::new(settings.batch, &resident.sensors, training, settings.seed);
        let largest = batches.map_or_else(|_| Batch::default(), |batches| batches.largest());
        let waves = match &resident.transport {
            Transport::Paths(paths) => wave_bytes(paths, largest.pixels(), most_samples(settings)),
            _ => None,
        };
        let estimate = Self::new(device, (&resident, &params), (scene, settings), references, &largest);
        Ok((estimate, waves))
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.parameters
            .saturating_add(self.sums)
            .saturating_add(self.scene)
            .saturating_add(self.references)
            .saturating_add(self.images)
            .saturating_add(self.paths)
    }

    /// The largest resident size of a process that runs this on a CPU.
    pub fn peak(&self) -> u64 {
        let running = self.total().saturating_add(self.passing).saturating_add(PROGRAM);
        running.max(self.loading.saturating_add(PROGRAM_AT_FIRST))
    }

    /// A warning if the system has less memory left than the run will still take beside what the process holds already.
    pub fn shortage(&self) -> Option<String> {
        let held = resident_mib()? << 20;
        lacking(self.peak(), held, available_bytes()?)
    }

    /// The estimate as a sentence.
    pub fn text(&self) -> String {
        let others = [(self.sums, "sums"), (self.scene, "scene"), (self.paths, "in flight")];
        let [sums, scene, paths] = others.map(|(count, what)| match count {
            0 => String::new(),
            count => format!(", {} {what}", bytes(count)),
        });
        format!(
            "memory: about {} at the finest resolution ({} parameters with gradients and moments{sums}{scene}{paths}, {} references, \
             {} images)",
            bytes(self.total()),
            bytes(self.parameters),
            bytes(self.references),
            bytes(self.images)
        )
    }
}

/// The warning of a process that holds `held` bytes and will take `peak`, where `available` bytes are left.
fn lacking(peak: u64, held: u64, available: u64) -> Option<String> {
    let there = held.saturating_add(available);
    (peak > there).then(|| {
        format!(
            "warning: the run takes up to {} of memory, and {} are there: a lower resolution, fewer views or a larger `downscale` take \
             less",
            bytes(peak),
            bytes(there)
        )
    })
}

/// The most samples a pixel of primal and of adjoint passes, over all stages.
fn most_samples(settings: &Optimize) -> [u32; 2] {
    let stages = settings.stages.iter().map(|stage| [stage.spp, stage.spp_grad]);
    stages.fold([settings.spp, settings.spp_grad], |most, spp| {
        [0, 1].map(|pass: usize| most[pass].max(spp[pass]))
    })
}

/// Bytes that pass while the hierarchy of a scene of surfaces is built: at the beginning, and at each iteration of a run that moves
/// shapes.
fn building(resident: &Resident) -> [u64; 2] {
    match &resident.transport {
        Transport::Paths(paths) => {
            let bytes = BUILDING * paths.corners.len() as u64;
            [bytes, if paths.rest.stands_still() { 0 } else { bytes }]
        }
        _ => [0; 2],
    }
}

/// Bytes beside the device's arrays while results are written or shown: a copy of the values of one parameter, with the bytes of
/// a `.vdb` or a `.png`, or with what the report shows of all.
fn writing(resident: &Resident, params: &ParamSet, settings: &Optimize, finest: &[(Shape, bool)]) -> u64 {
    let tuned = params.parameters.iter().zip(finest).filter(|(_, (_, tuned))| *tuned);
    let has_target = matches!(settings.references, References::Scene { .. });
    let is_slab = matches!(&resident.transport, Transport::Light(light) if !light.has_cube());
    let mut written = splats(params, finest);
    let [mut copied, mut shown] = [0; 2];
    for (parameter, (shape, _)) in tuned {
        let copy = 4 * shape.len() as u64;
        let bytes = if is_map(parameter) {
            // The PNG's pixels, and the PNG.
            copy / 2
        } else if is_fog(parameter) {
            copy
        } else {
            0
        };
        written = written.max(copy + bytes);
        if is_slab {
            written = written.max(SOLID * shape.texels() as u64);
        }
        copied = copied.max(copy + texel_bytes(*shape));
        // Grids have no start and no truth in a report.
        let moments = if is_map(parameter) {
            2 + u64::from(has_target)
        } else {
            1
        };
        shown += moments * shown_bytes(*shape);
    }
    written.max(copied + shown)
}

/// The views that a run renders on its way.
fn previewed<'a>(scene: &'a Scene, settings: &Optimize) -> impl Iterator<Item = &'a Sensor> {
    let training = training_views(scene, &settings.references);
    // Names of sensors that do not exist are refused when a run begins.
    let chosen = chosen_views(scene, settings, &training).unwrap_or_default();
    let shown = if settings.output.images_every > 0 {
        chosen
    } else {
        Vec::new()
    };
    shown.into_iter().map(|index| &scene.sensors[index as usize])
}

fn pixels(sensor: &Sensor) -> u64 {
    u64::from(sensor.width) * u64::from(sensor.height)
}

/// Bytes of references that are only looked at: of held-out and previewed views.
fn looked_at(scene: &Scene, settings: &Optimize) -> u64 {
    if matches!(settings.references, References::Images | References::Constant(_)) {
        return 0;
    }
    let held_out = scene.sensors.iter().filter(|sensor| sensor.held_out);
    let all = held_out.chain(previewed(scene, settings).filter(|sensor| !sensor.held_out));
    PICTURE * all.map(pixels).sum::<u64>()
}

/// Bytes of stacks and buffers of the threads that are at work on a CPU; a chunk that is not full takes less.
fn threads(resident: &Resident, scene: &Scene, largest: &Batch) -> u64 {
    let buffers = match &resident.transport {
        Transport::Paths(_) if scene.world.media.iter().any(|medium| medium.sigma_t.constant) => WALKS,
        Transport::Paths(_) => PATHS,
        Transport::Splats(_) => WEIGHTS,
        Transport::Field(_) | Transport::Light(_) => 0,
    };
    let threads = rayon::current_num_threads() as u64;
    THREAD * threads + buffers * u64::from(largest.pixels()).min(threads * TAKEN) / TAKEN
}

/// Bytes that pictures take, if a run writes any: a thread writes one while the next is rendered.
fn pictures(resident: &Resident, scene: &Scene, settings: &Optimize, (largest, images): (&Batch, u64)) -> u64 {
    let held_out = scene.sensors.iter().filter(|sensor| sensor.held_out);
    let all = || previewed(scene, settings).chain(held_out.clone());
    let Some(most) = all().map(pixels).max() else { return 0 };
    let is_splats = matches!(resident.transport, Transport::Splats(_));
    let is_spread =
        matches!(resident.transport, Transport::Paths(_)) && resident.sensors.iter().any(|s| s.filter != filter::BOX);
    let rendering = if is_spread { SPREAD } else { PICTURE };
    let pixel = match (is_splats, all().count()) {
        // With outlines and without: one is written while the other waits.
        (true, _) => WRITTEN + PICTURE,
        (false, 1) => WRITTEN.max(rendering),
        (false, _) => WRITTEN + rendering,
    };
    // The device's image of a view that is larger than a batch; of splats image and adjoint image, by which they are compared at half
    // precision.
    let of_device = match is_splats {
        true => ((16 + 12) * most).saturating_sub(images),
        false => 16 * most.saturating_sub(u64::from(largest.pixels())),
    };
    PICTURES + pixel * most + of_device
}

/// Bytes of a copy of all splats, which are written, and outlined in a picture, together.
fn splats(params: &ParamSet, finest: &[(Shape, bool)]) -> u64 {
    let all = params.parameters.iter().zip(finest);
    let points = all.filter(|(p, _)| p.kind == Kind::Points);
    points.map(|(_, (shape, _))| 4 * shape.len() as u64).sum()
}

/// Bytes of the copies that smoothed steps make: of all smoothed parameters as they were, and of one that is smoothed.
fn smoothing(params: &ParamSet, finest: &[(Shape, bool)]) -> u64 {
    let is_smoothed = |p: &Parameter| p.tuning.is_some_and(|tuning| tuning.smoothing > 0.0);
    let smoothed = params.parameters.iter().zip(finest).filter(|(p, _)| is_smoothed(p));
    let copies = smoothed.map(|(_, (shape, _))| 4 * shape.len() as u64);
    copies.clone().sum::<u64>() + copies.max().unwrap_or(0)
}

/// Shapes of all parameters at the finest resolution and with the final number of splats, and whether each parameter is
/// optimised.
pub fn finest(params: &ParamSet, stages: &[Stage], growth: Option<Growth>) -> Vec<(Shape, bool)> {
    let refined = |p: &Parameter| {
        let mut shape = shape_after(p, stages);
        if let (Kind::Points, Some(growth)) = (p.kind, growth) {
            shape.size[0] = growth.count as usize;
        }
        (shape, p.tuning.is_some())
    };
    params.parameters.iter().map(refined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process holds already is not asked of the system again.
    #[test]
    fn a_lack_of_memory_is_told() {
        assert_eq!(lacking(45 << 30, 40 << 30, 24 << 30), None);
        let told = lacking(45 << 30, 4 << 30, 24 << 30).expect("28 GiB are there");
        assert!(
            told.contains("up to 45.00 GiB of memory, and 28.00 GiB are there"),
            "{told}"
        );
    }
    use crate::kernels::optimizer::Optimizer;

    #[test]
    fn the_estimate_is_a_sentence() {
        let estimate = |sums| Estimate {
            parameters: 22 << 20,
            sums,
            scene: sums / 2,
            references: 3 << 10,
            images: 5 << 19,
            paths: 2 * sums,
            loading: 0,
            passing: 0,
        };
        assert_eq!(estimate(1 << 20).total(), (25 << 20) + (3 << 10) + (6 << 19));
        assert_eq!(
            estimate(1 << 20).text(),
            "memory: about 28 MiB at the finest resolution (22 MiB parameters with gradients and moments, 1.00 MiB sums, \
             512 KiB scene, 2.00 MiB in flight, 3.00 KiB references, 2.50 MiB images)"
        );
        assert_eq!(
            estimate(0).text(),
            "memory: about 25 MiB at the finest resolution (22 MiB parameters with gradients and moments, 3.00 KiB \
             references, 2.50 MiB images)"
        );
    }

    /// A texture is written with its PNG, a grid of a medium with its `.vdb`; a report shows start and end of the texture, and truth
    /// if there is a target. Smoothed steps copy what they smooth.
    #[test]
    fn copies_count() {
        let set = r#"{"floor": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance":
                {"type": "bitmap", "data": {"resolution": [64, 32], "value": 0.5}}}},
            "smoke": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "heterogeneous",
                "sigma_t": {"type": "gridvolume", "resolution": [16, 16, 16], "value": 0.5}}},
            "camera": {"type": "perspective", "to_world": [{"translate": [0, 0, -5]}], "film": {"type": "hdrfilm", "width": 20, "height": 10}},
            "optimize": {"parameters": {"floor.bsdf.reflectance": {"smoothing": 0.1}, "smoke.interior.sigma_t": {}},
                "references": {"type": "constant", "value": 0.5}}}"#;
        let scene = crate::scene::parse(set, std::path::Path::new("copies.json")).expect("a sound scene");
        let settings = scene.optimize.clone().expect("it optimises");
        let (resident, params) = Resident::new(&scene).expect("it is flattened");
        let finest = finest(&params, &[], None);
        let (texture, grid) = (4 * 64 * 32 * 3, 4 * 16 * 16 * 16);
        // Texels and samples of the texture at two moments, and of the grid at one.
        let shown = 2 * (texture + texture) + (grid + grid);
        assert_eq!(writing(&resident, &params, &settings, &finest), 2 * texture + shown);
        assert_eq!(smoothing(&params, &finest), 2 * texture);
        // The film's filter spreads samples, which takes less than writing.
        let batch = Batch::default();
        let told = PICTURES + 200 * (WRITTEN + 16);
        assert_eq!(pictures(&resident, &scene, &settings, (&batch, 0)), told);
        let target = Optimize {
            references: References::Scene {
                path: "target.json".into(),
                spp: 1,
            },
            ..settings
        };
        assert_eq!(writing(&resident, &params, &target, &finest), 4 * texture + shown);
    }

    /// Two doublings of a tuned grid of 2 · 3 · 4 texels: 64 times as many values; a constant stays as it is.
    #[test]
    fn the_finest_resolution_counts() {
        use crate::params::{Kind, Parameter, Quantity, Tuning};
        use crate::scene::MomentRule;
        let parameter = |kind, size, tuned: bool| Parameter {
            path: "a".into(),
            kind,
            quantity: Quantity::Extinction,
            shape: Shape { size, channels: 1 },
            to_world: glam::Affine3A::IDENTITY,
            values: Vec::new(),
            tuning: tuned.then_some(Tuning {
                learning_rate: 0.1,
                bounds: [0.0, 1.0],
                smoothing: 0.0,
            }),
        };
        let params = ParamSet {
            parameters: vec![
                parameter(Kind::Grid, [2, 3, 4], true),
                parameter(Kind::Grid, [5, 1, 1], false),
            ],
        };
        let stage = Stage {
            at: 0.5,
            upsample: 2,
            moments: MomentRule::Reset,
            spp: 1,
            spp_grad: 1,
        };
        let optimizer = Optimizer::Sgd { momentum: 0.0 };
        let shapes = finest(&params, &[stage, stage], None);
        let moments = optimizer.moments() as u64;
        assert_eq!(parameter_bytes(shapes, optimizer), 4 * (24 * 64 * (2 + moments) + 5));
    }
}
