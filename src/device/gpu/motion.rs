//! Shapes and cameras that a run moves: after a step the host reads the few values that tell where they stand, moves records and
//! the BVH as it does for the CPU, and uploads them again.

use super::paths::PathPasses;
use super::plan::shapes;
use super::records::{DisplacedRecord, MotionRecord};
use super::{Gpu, Passes};
use crate::device::Result;
use crate::each::EachEntry;
use crate::params::{ParamSet, Parameter};
use crate::resident::Transport;
use crate::resident::layout::NONE;
use crate::resident::motion::Motion;
use crate::resident::paths::PathScene;
use crate::transport::scene::bsdf::local::inner;
use crate::transport::scene::motion::{RADIANS, sines};

/// Why what a run moves has no derivatives on this device; None where it has, or nothing moves.
pub(super) fn refusal(transport: &Transport, params: &ParamSet) -> Option<String> {
    let moves = |p: &Parameter| p.quantity.moves() && p.tuning.is_some();
    let Transport::Paths(scene) = transport else {
        return None;
    };
    if !params.parameters.iter().any(moves) {
        return None;
    }
    (!scene.attached).then(|| {
        "shapes, lights and cameras that move (`to_world`, vertices, a `displacement`) are differentiated on the CPU only; use \
         --device cpu, or the integrator `prb_attached`, by which a GPU moves cameras, smooth glass and mirrors"
            .into()
    })
}

impl Gpu {
    /// Moves shapes and cameras to where their parameters say, if a step may have moved them or `all` may have changed.
    pub(super) fn place_shapes(&mut self, all: bool) -> Result<()> {
        let Passes::Paths(passes) = &self.passes else {
            return Ok(());
        };
        let slots = passes.scene.rest.slots();
        let stale = |slot: &u32| all || self.params.parameters[*slot as usize].tuning.is_some();
        if !slots.iter().any(stale) {
            return Ok(());
        }
        let values = self.values_of(&slots)?;
        let Passes::Paths(PathPasses { scene, arrays }) = &mut self.passes else {
            return Ok(());
        };
        let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
        scene.place(&values);
        scene.place_cameras(&values, &mut self.sensors);
        let sensors = bytemuck::cast_slice(&self.sensors);
        self.context.upload(&self.arrays.sensors, 0, sensors);
        let motions = Motions::new(scene, self.sensors.len(), &values);
        arrays.replace(&self.context, scene, &self.arrays.plan, &shapes(&self.params), &motions)
    }
}

/// What the adjoint needs of what moves; nothing where all stands still.
#[derive(Default)]
pub(super) struct Motions {
    /// Of all surfaces, and behind them of all sensors.
    pub of_all: Vec<MotionRecord>,
    /// The vertices that heights displace, mesh by mesh.
    pub displaced: Vec<DisplacedRecord>,
}

impl Motions {
    /// Those of a scene with so many sensors, its own and those of nobody.
    fn new(scene: &PathScene, sensors: usize, values: &[&[f32]]) -> Self {
        let mut motions = Self::default();
        if scene.rest.motions.is_empty() {
            return motions;
        }
        let first_sensor = scene.surfaces.len() + scene.lights.len();
        for number in (0..scene.surfaces.len()).chain(first_sensor..first_sensor + sensors) {
            let motion = scene.rest.motions.get(number).and_then(Option::as_ref);
            let mut record = record(scene, motion, values);
            let mesh = motion.and_then(|motion| scene.rest.meshes.get(motion.mesh as usize));
            if let Some(relief) = mesh.and_then(|mesh| mesh.relief.as_ref()) {
                record.relief = motions.displaced.len() as u32;
                motions.displaced.extend((0..relief.count()).map(|vertex| {
                    let (_, along, at) = relief.of(vertex);
                    DisplacedRecord {
                        along,
                        padding: 0,
                        texels: at.texels,
                        weights: at.weights,
                    }
                }));
            }
            motions.of_all.push(record);
        }
        motions
    }
}

/// How something is moved that has the values of its parameters.
fn record(scene: &PathScene, motion: Option<&Motion>, values: &[&[f32]]) -> MotionRecord {
    let still = MotionRecord {
        translate: NONE,
        rotate: NONE,
        scale: NONE,
        vertices: NONE,
        normals: NONE,
        relief: NONE,
        ..bytemuck::Zeroable::zeroed()
    };
    let Some(motion) = motion else { return still };
    let three = |slot: u32, otherwise: f32| match slot {
        NONE => [otherwise; 3],
        slot => {
            let given = values[slot as usize];
            [0, 1, 2].each(|a: usize| given[a.min(given.len() - 1)])
        }
    };
    let shift = three(motion.translate, 0.0);
    let radians = three(motion.rotate, 0.0).each(|degrees| degrees * RADIANS);
    let wide = radians.each(f64::from);
    MotionRecord {
        translate: motion.translate,
        rotate: motion.rotate,
        scale: motion.scale,
        scale_channels: if motion.round { 1 } else { 3 },
        origin: [0, 1, 2].each(|a: usize| motion.pivot[a] + shift[a]),
        vertices: scene
            .rest
            .meshes
            .get(motion.mesh as usize)
            .map_or(NONE, |mesh| mesh.slot),
        radians,
        normals: motion.normals,
        factors: three(motion.scale, 1.0),
        sines: sines(inner(wide, wide)).each(|x| x as f32),
        ..still
    }
}
