//! The inputs of every pass, and the passes of each kind of transport.

use super::field::passes::FieldPasses;
use super::light::passes::LightPasses;
use super::paths::passes::PathPasses;
use super::splats::passes::SplatPasses;
use super::vector::level::Level;
use crate::cluster::Cluster;
use crate::device::gauge::Gauge;
use crate::device::{Batch, DeviceError, Keys};
use crate::params::ParamSet;
use crate::resident::layout::{SceneRecord, SensorRecord};
use crate::resident::references::Pixels;
use crate::resident::{Resident, Transport};

/// The inputs that passes of every kind of transport read.
#[derive(Debug)]
pub(super) struct Inputs {
    pub level: Level,
    /// The ranks that share the chunks of a pass.
    pub cluster: Cluster,
    /// Most bytes that a tape may take.
    pub tape_limit: u64,
    pub scene: SceneRecord,
    pub sensors: Vec<SensorRecord>,
    pub references: Pixels,
    /// Index of the parameter of the background's radiance.
    pub emitter: Option<usize>,
    pub params: ParamSet,
    /// Counts the chunks of a pass that renders.
    pub gauge: Gauge,
}

impl Inputs {
    /// Splits a scene into the inputs of all passes and the records of its kind of transport.
    pub(super) fn new(
        level: Level,
        tape_limit: u64,
        gauge: Gauge,
        resident: Resident,
        params: ParamSet,
    ) -> (Self, Transport) {
        let inputs = Self {
            level,
            cluster: Cluster::world(),
            tape_limit,
            scene: resident.scene,
            sensors: resident.sensors,
            references: resident.references,
            emitter: resident.emitter,
            params,
            gauge,
        };
        (inputs, resident.transport)
    }

    /// Tells the gauge that a pass of `count` chunks begins, which are shared evenly by the ranks.
    pub(super) fn begin_chunks(&self, count: usize) {
        self.gauge.begin_parts(count.div_ceil(self.cluster.size()));
    }
}

/// The rays of a pass, their random numbers, and the samples of each pixel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass<'a> {
    pub batch: &'a Batch,
    pub keys: Keys,
    pub spp: u32,
}

/// The passes of a scene, with what they alone keep: chosen once, when the scene is loaded.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a device holds one, for as long as it holds a scene"
)]
pub(super) enum Passes {
    Field(FieldPasses),
    Paths(PathPasses),
    Splats(SplatPasses),
    Light(LightPasses),
}

impl Passes {
    pub(super) fn new(transport: Transport) -> Self {
        match transport {
            Transport::Field(scene) => Self::Field(FieldPasses::new(scene)),
            Transport::Paths(scene) => Self::Paths(PathPasses::new(scene)),
            Transport::Splats(scene) => Self::Splats(SplatPasses::new(scene)),
            Transport::Light(scene) => Self::Light(LightPasses::new(scene)),
        }
    }
}

/// The error where primal and adjoint are to share their paths, which only radiative backpropagation does.
pub(super) fn unshared() -> DeviceError {
    DeviceError::Unavailable("primal and adjoint cannot share a pass here: only `rbvolpath` does that".into())
}
