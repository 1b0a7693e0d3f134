//! Where a scene runs: the trait that both devices implement, and what passes through it.
//!
//! A device holds one scene, its parameters, their gradients and the optimiser's state, one image and one adjoint
//! image. Nothing of these leaves it but to be written out.

pub mod cpu;
pub mod gauge;
pub mod gpu;
pub mod ranks;
pub mod select;
mod units;

use self::gauge::Gauge;
use crate::cluster::Cluster;
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::kernels::regularizer::Penalty;
use crate::kernels::resample::Axis;
use crate::params::{Kind, ParamSet, Quantity, Shape, Tuning};
use crate::resident::environment::table_len;
use crate::resident::layout::{SensorRecord, background};
use crate::resident::{Resident, Transport};
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::Key;
use crate::transport::scene::tables::Tables;

/// What went wrong on a device, as one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// No device of the kind asked for, or it cannot be used.
    #[error("{0}")]
    Unavailable(String),
    /// The scene does not fit the device's limits.
    #[error("{0}")]
    TooLarge(String),
    /// The device stopped answering.
    #[error("the device was lost: {0}")]
    Lost(String),
    /// An entry of a gradient is infinite or NaN; that entry of the parameter was left as it was.
    #[error("the gradient of {path} is not finite at texel {texel:?}, channel {channel}")]
    NotFinite {
        path: String,
        texel: [usize; 3],
        channel: usize,
    },
    /// A gradient's sum overflowed the range of its 64-bit integers.
    #[error("{0}")]
    Overflow(String),
}

/// How a parameter's texels lie along x, y and z.
fn axes_of(kind: Kind) -> [Axis; 3] {
    match kind {
        Kind::Envmap => [Axis::Wrapped, Axis::Ended, Axis::Clamped],
        Kind::Grid | Kind::Texture | Kind::Attribute | Kind::Value | Kind::Points => [Axis::Clamped; 3],
    }
}

/// Refuses batches of drawn pixels where light is traced: its paths arrive anywhere on a film.
///
/// # Errors
/// The batch draws pixels.
fn check_whole_views(batch: &Batch) -> Result<()> {
    match batch.drawn {
        Some(_) => Err(DeviceError::Unavailable(
            "light arrives anywhere on a film: look at whole views, not at single pixels".into(),
        )),
        None => Ok(()),
    }
}

/// The error of light tracing among surfaces when derivatives are asked for.
fn only_rendered() -> DeviceError {
    DeviceError::Unavailable("among surfaces `ptracer` only renders: take the integrator `prb` for derivatives".into())
}

/// The error of the integrators `aov` and `depth` in a scene without surfaces.
fn no_surfaces() -> DeviceError {
    DeviceError::Unavailable(
        "`aov` and `depth` look at surfaces, of which a radiance field and a picture of splats have none: take them out".into(),
    )
}

/// The error of [`Device::value_and_gradient`] where [`Device::is_fused`] is false.
fn unfused() -> DeviceError {
    DeviceError::Unavailable(
        "primal, loss and adjoint cannot be one pass here: only pictures of splats under a loss of single pixels do that, with \
         `--device cpu`; take the passes one after the other"
            .into(),
    )
}

/// The result of an operation of a device.
pub type Result<T> = std::result::Result<T, DeviceError>;

/// Kind, name and details of a device.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeviceInfo {
    /// `cpu` or `gpu`.
    pub kind: &'static str,
    pub name: String,
    /// Threads and vector level, or backend and driver.
    pub detail: String,
}

/// The pixels of a pass, in order: those of whole views, or pixels drawn from all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Batch {
    pub table: PixelTable,
    /// This many pixels drawn with the objective's key; None: every pixel in order.
    pub drawn: Option<u32>,
}

impl Batch {
    /// Number of pixels in the batch.
    pub fn pixels(&self) -> u32 {
        self.drawn.unwrap_or_else(|| self.table.len())
    }
}

/// The random numbers of a pass: those that define the iteration's objective, and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Keys {
    pub objective: Key,
    pub pass: Key,
}

/// Loss of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct LossValue {
    /// Sum over the unmasked pixels' channels, divided by 3 times the number of pixels in the batch.
    pub loss: f64,
    /// Mean squared error over the unmasked pixels' channels, for PSNR.
    pub mse: f64,
    /// Pixels without a ray.
    pub masked: u64,
}

/// How the replays of a backpropagation went.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct ReplayStats {
    /// Rays replayed.
    pub rays: u64,
    /// Samples that contributed.
    pub samples: u64,
    /// Rays whose replay left more radiance than rounding explains: 8 (n + 1) eps times the primal's, after n contributions. For
    /// splats, pixels whose transmittance differs from 1 by more than 4 (n + 1) eps after n splats were undone.
    pub drifted: u64,
    /// Bytes of the tape that conventional differentiation recorded; other estimators record nothing.
    #[serde(default)]
    pub tape_bytes: u64,
}

impl std::ops::Add for ReplayStats {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            rays: self.rays + other.rays,
            samples: self.samples + other.samples,
            drifted: self.drifted + other.drifted,
            tape_bytes: self.tape_bytes + other.tape_bytes,
        }
    }
}

impl ReplayStats {
    /// The sums over the ranks that have shared a pass.
    fn over(self, cluster: Cluster) -> Self {
        if cluster.is_single() {
            return self;
        }
        let [rays, samples, drifted, tape_bytes] =
            cluster.sums([self.rays, self.samples, self.drifted, self.tape_bytes]);
        Self {
            rays,
            samples,
            drifted,
            tape_bytes,
        }
    }
}

/// A regulariser of one parameter, with its weight.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Term {
    /// Index of the parameter.
    pub parameter: usize,
    pub penalty: Penalty,
    pub weight: f32,
}

/// One optimiser step over all tuned parameters.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    pub optimizer: Optimizer,
    /// The schedule's factor on the learning rates.
    pub rate: f32,
    /// Number of this step, from 1 since the moments were last zero.
    pub count: u32,
}

impl Step {
    /// The learning rate of a parameter that is tuned. For cameras the schedule's factor is squared: an iteration has few rays
    /// of each camera, so that Adam's steps are mostly noise when cameras are nearly right, and only a lower rate reduces
    /// that noise.
    pub fn rate_of(&self, quantity: Quantity, tuning: Tuning) -> f32 {
        let of_cameras = if quantity.is_of_views() { self.rate } else { 1.0 };
        tuning.learning_rate * self.rate * of_cameras
    }
}

/// An array that belongs to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ArrayKind {
    Values,
    Gradient,
    /// First or second moment of the optimiser.
    Moment(usize),
}

/// GPU time of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTime {
    pub kernel: String,
    /// How often it was started.
    pub dispatches: u32,
    /// Milliseconds of all dispatches together.
    pub ms: f64,
}

/// A parameter's new shape, values and moments.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Replacement {
    /// Index of the parameter.
    pub parameter: usize,
    pub shape: Shape,
    pub values: Vec<f32>,
    /// An array for each moment that the optimiser keeps.
    pub moments: Vec<Vec<f32>>,
}

/// Passes for [`Device::in_a_row`].
pub type Work<'a> = dyn FnMut(&mut dyn Device) -> Result<()> + Send + 'a;

/// What runs both estimator and optimiser, for one scene at a time.
pub trait Device {
    /// What this device is.
    fn info(&self) -> &DeviceInfo;

    /// What decides the bits of its results beside scene and seed, in a word or two; a run is resumed only where it is the same.
    fn arithmetic(&self) -> String {
        self.info().kind.to_string()
    }

    /// Whether parameters of these shapes, each tuned or not, would fit under this kind of transport.
    ///
    /// # Errors
    /// They would not; the sentence says what would.
    fn check_fits(&self, _transport: &Transport, _shapes: &[(Shape, bool)], _optimizer: Optimizer) -> Result<()> {
        Ok(())
    }

    /// Bytes of the accumulators beside the gradients of parameters of these shapes, each tuned or not, under this kind of
    /// transport: sums in whole numbers, or the films of the light's bands.
    fn sum_bytes(&self, _transport: &Transport, _shapes: &[(Shape, bool)]) -> u64 {
        0
    }

    /// Bytes that a backward pass takes for as long as it lasts: the derivatives by the optic of the light's bands.
    fn pass_bytes(&self, _transport: &Transport, _shapes: &[(Shape, bool)]) -> u64 {
        0
    }

    /// Bytes of the image and of the adjoint image that a run of this scene with this loss keeps for a batch.
    fn image_bytes(&self, _resident: &Resident, batch: &Batch, _loss: Loss) -> u64 {
        2 * size_of::<[f32; 4]>() as u64 * u64::from(batch.pixels())
    }

    /// Bytes of the state of all paths in flight, or of the replays of a radiance field, beside images; `shapes` are those of the
    /// parameters, `spp` the samples a pixel of primal and adjoint pass.
    fn path_bytes(&self, _resident: &Resident, _shapes: &[(Shape, bool)], _batch: &Batch, _spp: [u32; 2]) -> u64 {
        0
    }

    /// Takes over a scene and its parameters, with zero gradients and moments, and builds what depends on them.
    ///
    /// # Errors
    /// The scene does not fit; the sentence says what would.
    fn load(&mut self, resident: Resident, params: ParamSet, optimizer: Optimizer) -> Result<()>;

    /// The cameras of the scene.
    fn sensors(&self) -> &[SensorRecord];

    /// Replaces a sensor's record. The new film may have another number of pixels; only renders through this sensor change.
    ///
    /// # Panics
    /// There is no sensor of this index.
    fn replace_sensor(&mut self, sensor: u32, record: SensorRecord);

    /// Whether an iteration's primal and adjoint share their paths, which then carry the adjoint image of the iteration before.
    fn is_pipelined(&self) -> bool;

    /// The parameters' paths, shapes and tuning; `values` may be empty, they live on the device.
    fn params(&self) -> &ParamSet;

    /// Progress of the current picture, which any thread can read.
    fn gauge(&self) -> Gauge;

    /// Renders a batch into the device's image: RGB means of `spp` samples and the transmittance, -1 if masked.
    fn render(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()>;

    /// As [`Self::render`], for pictures that are only looked at: a sample may count in all pixels that the film's filter
    /// reaches, so that pixels are correlated and have less variance. By default [`Self::render`].
    fn develop(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        self.render(batch, keys, spp)
    }

    /// Renders one of the channels of [`crate::resident::layout::aov`] in the place of radiance; the fourth number of a pixel is
    /// -1 if it is masked, else 0.
    ///
    /// # Errors
    /// The scene has no surfaces.
    fn render_aov(&mut self, batch: &Batch, keys: Keys, spp: u32, aov: u32) -> Result<()>;

    /// The image of the last render, a pixel an entry in the batch's order.
    fn image(&mut self) -> Result<Vec<[f32; 4]>>;

    /// Compares the image with the batch's references and leaves dLoss/dImage in the adjoint image.
    fn loss(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<LossValue>;

    /// Sets the adjoint image to `adjoint`, in place of [`Self::loss`]: the derivatives of any function by the pixels of the
    /// batch that was rendered last, in its order.
    fn set_adjoint(&mut self, batch: &Batch, keys: Keys, adjoint: &[[f32; 3]]) -> Result<()>;

    /// Adds the derivatives of the loss by all tuned parameters to their gradients, with `spp` rays a pixel.
    fn backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats>;

    /// Renders a batch and along the same paths backpropagates the adjoint image that [`Self::loss`] left of the same
    /// batch's last render: what radiative backpropagation calls pipelining.
    ///
    /// # Errors
    /// The scene's estimator, or this device, knows no such pass.
    fn render_and_backpropagate(&mut self, _batch: &Batch, _keys: Keys, _spp: u32) -> Result<ReplayStats> {
        Err(DeviceError::Unavailable(
            "primal and adjoint cannot share a pass here: only `rbvolpath` does that, with `--device cpu`".into(),
        ))
    }

    /// Whether render, this loss and adjoint of a batch can be one pass: all samples of a pixel would be the same, and a
    /// pixel's loss depends on that pixel alone.
    fn is_fused(&self, _loss: Loss) -> bool {
        false
    }

    /// [`Self::render`], [`Self::loss`] and [`Self::backpropagate`] as one pass, with the same bits; [`Self::image`] is
    /// empty after it.
    ///
    /// # Errors
    /// Those of the three passes, or [`Self::is_fused`] is false.
    fn value_and_gradient(&mut self, _batch: &Batch, _keys: Keys, _loss: Loss) -> Result<(LossValue, ReplayStats)> {
        Err(unfused())
    }

    /// Adds the regularisers' gradients and returns the weighted sum of the penalties.
    fn regularise(&mut self, terms: &[Term]) -> Result<f64>;

    /// Steps all tuned parameters, projects them onto their bounds, zeroes the gradients, and returns the norm of each
    /// parameter's gradient (zero for those not tuned).
    ///
    /// # Errors
    /// An entry that is not finite: it is named, keeps its value, and all others have been stepped.
    fn step(&mut self, step: &Step) -> Result<Vec<f64>>;

    /// Rebuilds what depends on the parameters' values (the occupancy grid).
    fn rebuild(&mut self) -> Result<()>;

    /// Changes the resolution of grids, textures and environment maps, linearly along each axis; moments are resampled or zeroed.
    /// Gradients are zero when it is called, as after a step.
    fn resample(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> Result<()>;

    /// Gives parameters another number of entries: their values and moments are replaced, their gradients become zero.
    ///
    /// # Errors
    /// They do not fit.
    fn replace(&mut self, replaced: Vec<Replacement>) -> Result<()>;

    /// Zeroes all gradients.
    fn clear_gradients(&mut self) -> Result<()>;

    /// Copies an array out.
    fn read(&mut self, parameter: usize, what: ArrayKind) -> Result<Vec<f32>>;

    /// Copies an array in; its length must be the parameter's.
    fn write(&mut self, parameter: usize, what: ArrayKind, values: &[f32]) -> Result<()>;

    /// Runs several passes in a row, on a CPU from one of its worker threads: started from another thread, each pass would
    /// first wake the workers, which takes as long as a short pass.
    ///
    /// # Errors
    /// The error that `work` returns.
    fn in_a_row(&mut self, work: &mut Work) -> Result<()>;

    /// Waits until all work that was submitted is done, for timing: a GPU works in the background until results are read.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Resets and starts the measurement of each kernel's time by the GPU's own clock.
    ///
    /// # Errors
    /// The device has no such clock, or no kernels.
    fn time_kernels(&mut self) -> Result<()> {
        Err(DeviceError::Unavailable(format!(
            "{} has no kernels that a clock of its own times; ask for their times with a GPU, by --device gpu",
            self.info().name
        )))
    }

    /// Each kernel's total time since [`Self::time_kernels`].
    ///
    /// # Errors
    /// The device was lost.
    fn kernel_times(&mut self) -> Result<Vec<KernelTime>> {
        Ok(Vec::new())
    }

    /// Bytes of all arrays held for the scene.
    fn memory(&self) -> u64;
}

/// Bytes that a run needs for these parameters: values, gradient and moments of the tuned ones, values of the others.
pub fn parameter_bytes(shapes: impl IntoIterator<Item = (Shape, bool)>, optimizer: Optimizer) -> u64 {
    shapes
        .into_iter()
        .map(|(shape, tuned)| 4 * shape.len() as u64 * if tuned { 2 + optimizer.moments() as u64 } else { 1 })
        .sum()
}

/// Bytes of the records of paths and of the tables that follow from these parameters' values, that of an environment map for a map
/// of its shape in `shapes`; other kinds of transport have records of a few bytes.
pub fn scene_bytes(resident: &Resident, params: &ParamSet, shapes: &[(Shape, bool)]) -> u64 {
    let Transport::Paths(paths) = &resident.transport else {
        return 0;
    };
    let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
    let mut bytes = paths.bytes() + Tables::new(&resident.scene, paths, &values).bytes();
    if resident.scene.background == background::ENVMAP {
        let [width, height, _] = shapes[paths.background as usize].0.size;
        let [now, then] = [resident.scene.env_size, [width as u32, height as u32]].map(table_len);
        bytes += size_of::<f32>() * then.saturating_sub(now);
    }
    bytes as u64
}

/// Bytes of the optimiser's moments, a part of [`parameter_bytes`].
fn moment_bytes(shapes: impl IntoIterator<Item = (Shape, bool)>, optimizer: Optimizer) -> u64 {
    let tuned = shapes.into_iter().filter(|(_, tuned)| *tuned);
    tuned
        .map(|(shape, _)| 4 * shape.len() as u64 * optimizer.moments() as u64)
        .sum()
}

/// Bytes that the CPU keeps for splats beside parameters and images: shapes, boxes and sums a splat, lists of about
/// four entries a splat, and records of a round of tiles.
pub fn splat_bytes(count: u64) -> u64 {
    const SHAPE: u64 = 64 + 8 + 36;
    const ENTRIES: u64 = 4;
    const RECORD: u64 = 36;
    (SHAPE + 6 * ENTRIES) * count + RECORD * (ENTRIES * count).min(1 << 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tuned parameter of 30 floats has values, gradient and moments, an untuned one of 8 floats has values.
    #[test]
    fn parameters_take_their_arrays() {
        let shapes = [([2, 3, 5], 1, true), ([2, 2, 1], 2, false)].map(|(size, channels, tuned)| {
            let shape = Shape { size, channels };
            (shape, tuned)
        });
        let sgd = Optimizer::Sgd { momentum: 0.9 };
        let adam = Optimizer::Adam {
            beta_1: 0.9,
            beta_2: 0.99,
            epsilon: 1e-8,
            mask_updates: false,
        };
        assert_eq!(parameter_bytes(shapes, sgd), 4 * (30 * 3 + 8));
        assert_eq!(parameter_bytes(shapes, adam), 4 * (30 * 4 + 8));
        assert_eq!(parameter_bytes([], adam), 0);
    }
}
