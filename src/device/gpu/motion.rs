//! Shapes, lights and cameras that a run moves: after a step the host reads the few parameters of their motions, moves records
//! and the BVH as it does for the CPU, and uploads them again.

use std::ops::Range;

use super::paths::PathPasses;
use super::plan::shapes;
use super::records::{DisplacedRecord, MotionRecord};
use super::{Gpu, Passes};
use crate::device::Result;
use crate::each::EachEntry;
use crate::resident::glide::Track;
use crate::resident::layout::NONE;
use crate::resident::motion::Motion;
use crate::resident::paths::PathScene;
use crate::resident::vertices::Vertices;
use crate::transport::scene::bsdf::local::inner;
use crate::transport::scene::motion::{RADIANS, sines};

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
        let Passes::Paths(PathPasses { scene, arrays, .. }) = &mut self.passes else {
            return Ok(());
        };
        let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
        scene.place(&values);
        scene.place_cameras(&values, &mut self.sensors);
        let sensors = bytemuck::cast_slice(&self.sensors);
        self.context.upload(&self.arrays.sensors, 0, sensors);
        let motions = Motions::new(scene, self.sensors.len(), &values);
        arrays.replace(&self.context, scene, &self.arrays.plan, &shapes(&self.params), &motions)?;
        self.follow_buffers();
        Ok(())
    }
}

/// Records of motions that the adjoint needs; empty if nothing moves.
#[derive(Default)]
pub(super) struct Motions {
    pub of_surfaces: Vec<MotionRecord>,
    pub of_lights: Vec<MotionRecord>,
    pub of_sensors: Vec<MotionRecord>,
    /// The vertices that heights displace, mesh by mesh.
    pub displaced: Vec<DisplacedRecord>,
    /// The triangles around the vertices of smooth meshes, mesh by mesh: see [`MotionRecord::around`].
    pub around: Vec<u32>,
}

impl Motions {
    /// The records of a scene with this many sensors: its own, and others, which stand still.
    fn new(scene: &PathScene, sensors: usize, values: &[&[f32]]) -> Self {
        let mut motions = Self::default();
        if scene.rest.motions.is_empty() {
            return motions;
        }
        let motion = |number: usize| scene.rest.motions.get(number).and_then(Option::as_ref);
        let [surfaces, lights] = [scene.surfaces.len(), scene.lights.len()];
        for motion in (0..surfaces).map(motion) {
            let record = record(motion, values);
            let mesh = motion.and_then(|motion| scene.rest.meshes.get(motion.mesh as usize));
            let record = mesh.map_or(record, |mesh| motions.follow(mesh, record));
            motions.of_surfaces.push(record);
        }
        let first_sensor = surfaces + lights;
        let others = |numbers: Range<usize>| numbers.map(|number| record(motion(number), values)).collect();
        motions.of_lights = others(surfaces..first_sensor);
        motions.of_sensors = others(first_sensor..first_sensor + sensors);
        motions
    }

    /// Adds the tables by which the vertices of a mesh move, and names them in `record`, that of its surface.
    fn follow(&mut self, mesh: &Vertices, record: MotionRecord) -> MotionRecord {
        let mut record = MotionRecord {
            vertices: mesh.slot,
            ..record
        };
        if let Some(relief) = &mesh.relief {
            record.relief = self.displaced.len() as u32;
            self.displaced.extend((0..relief.count()).map(|vertex| {
                let (rest, along, at) = relief.of(vertex);
                DisplacedRecord {
                    along,
                    padding_0: 0,
                    rest,
                    padding_1: 0,
                    texels: at.texels,
                    weights: at.weights,
                }
            }));
        }
        if let Some(around) = &mesh.around {
            let first = self.around.len();
            record.around = first as u32;
            let lists = first + around.vertices() + 1;
            let mut others = Vec::new();
            for vertex in 0..around.vertices() {
                self.around.push((lists + others.len()) as u32);
                others.extend_from_slice(around.of(vertex as u32).as_flattened());
            }
            self.around.push((lists + others.len()) as u32);
            self.around.extend(others);
        }
        record
    }
}

/// The record of a motion at these values of the parameters; of no motion one that stands still.
fn record(motion: Option<&Motion>, values: &[&[f32]]) -> MotionRecord {
    let still = MotionRecord {
        translate: NONE,
        rotate: NONE,
        scale: NONE,
        vertices: NONE,
        normals: NONE,
        relief: NONE,
        around: NONE,
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
    let track = motion.track.unwrap_or(Track {
        rows: [[0.0; 4]; 3],
        middle: [0.0; 3],
        size: 0.0,
    });
    MotionRecord {
        translate: motion.translate,
        rotate: motion.rotate,
        scale: motion.scale,
        scale_channels: if motion.round { 1 } else { 3 },
        origin: [0, 1, 2].each(|a: usize| motion.pivot[a] + shift[a]),
        radians,
        normals: motion.normals,
        factors: three(motion.scale, 1.0),
        sines: sines(inner(wide, wide)).each(|x| x as f32),
        track: track.rows,
        middle: track.middle,
        extent: track.size,
        ..still
    }
}
