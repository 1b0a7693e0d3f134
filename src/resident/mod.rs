//! A scene flattened once into the records and arrays that both devices read.

pub mod bvh;
mod containers;
pub mod emissive_triangles;
pub mod environment;
pub mod filter;
pub mod layout;
pub mod majorants;
pub mod pages;
pub mod paths;
pub mod photographs;
pub mod references;
mod surface_free;
pub mod values;

use glam::{Affine3A, Vec3A};

use crate::io;
use crate::params::{ParamSet, Parameter, Shape};
use crate::scene::{self, Array, Background, ColorActivation, DensityActivation, Distortion, Filter, Scene, Sensor};
use bytemuck::Zeroable;
use filter::gaussian_table;
use layout::{NO_REFERENCE, Rows, SceneRecord, SensorRecord};
use references::Pixels;

/// Everything that does not change during a stage of a run, as flat records, beside the names that people know it by.
#[derive(Debug, Clone)]
pub struct Resident {
    pub scene: SceneRecord,
    pub sensors: Vec<SensorRecord>,
    /// Which parameters the walk reads.
    pub slots: Slots,
    /// Surfaces, media and lights, unless the scene is a radiance field.
    pub world: Option<paths::PathScene>,
    /// All references, at the places that [`SensorRecord::first_pixel`] names.
    pub references: Pixels,
    /// Edges of the field's cube in world units, from which the step follows at every resolution.
    extent: [f32; 3],
    diagonal: f32,
    step: f32,
}

/// Indices into the [`ParamSet`] of what the walk reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slots {
    pub sigma_t: Option<usize>,
    pub sh_coeffs: Option<usize>,
    pub emitter: Option<usize>,
}

impl Resident {
    /// No scene at all.
    pub fn empty() -> Self {
        Self {
            scene: SceneRecord::zeroed(),
            sensors: Vec::new(),
            slots: Slots::default(),
            world: None,
            references: Pixels::None,
            extent: [0.0; 3],
            diagonal: 0.0,
            step: 1.0,
        }
    }

    /// Length of the longest segment inside the field's cube, in world units.
    pub fn diagonal(&self) -> f32 {
        self.diagonal
    }

    /// Whether an iteration renders along the paths of its adjoint, which carry the adjoint image of the one before.
    pub fn is_pipelined(&self) -> bool {
        self.world.as_ref().is_some_and(|world| world.estimator.is_pipelined())
    }

    /// Flattens a scene without its references and materialises its arrays.
    ///
    /// # Errors
    /// A file cannot be read or holds what is not possible, or media and what stands in them do not fit.
    pub fn new(scene: &Scene) -> io::Result<(Self, ParamSet)> {
        let mut params = ParamSet::default();
        let mut slots = Slots::default();
        let mut record = SceneRecord::zeroed();
        record.gaussian_cdf = gaussian_table();
        let (mut extent, mut diagonal) = ([0.0; 3], 0.0);
        let mut step = 1.0;
        if let Some(field) = &scene.field {
            slots.sigma_t = Some(add(&mut params, &field.sigma_t)?);
            slots.sh_coeffs = Some(add(&mut params, &field.sh_coeffs)?);
            step = field.step;
            describe_field(&mut record, field);
            (extent, diagonal) = measure(&field.to_world);
        }
        match &scene.background {
            Background::None => {}
            Background::Constant { radiance } => {
                record.background = layout::background::CONSTANT;
                slots.emitter = Some(add(&mut params, radiance)?);
            }
            Background::Envmap { data, scale, to_world } => {
                record.background = layout::background::ENVMAP;
                record.env_scale = *scale;
                record.env_size = [data.shape.size[0] as u32, data.shape.size[1] as u32];
                record.world_to_env = rows(&to_world.inverse());
                slots.emitter = Some(add(&mut params, data)?);
            }
        }
        let world = match scene.world.is_empty() {
            true => None,
            false => Some(paths::flatten(scene, &mut params, slots.emitter)?),
        };
        if let Some(fault) = values::fault(scene, &params) {
            return Err(io::IoError::new(fault.origin(scene), &fault.message));
        }
        let sensors = scene.sensors.iter().map(sensor_record).collect();
        let mut resident = Self {
            scene: record,
            sensors,
            slots,
            world,
            references: Pixels::None,
            extent,
            diagonal,
            step,
        };
        resident.fit(&params.parameters.iter().map(|p| p.shape).collect::<Vec<_>>());
        Ok((resident, params))
    }

    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, shapes: &[Shape]) {
        if let (layout::background::ENVMAP, Some(emitter)) = (self.scene.background, self.slots.emitter) {
            let [width, height, _] = shapes[emitter].size;
            self.scene.env_size = [width as u32, height as u32];
        }
        if let Some(world) = &mut self.world {
            world.fit(shapes);
        }
        let (Some(sigma), Some(sh)) = (self.slots.sigma_t, self.slots.sh_coeffs) else {
            return;
        };
        let (sigma, sh) = (shapes[sigma], shapes[sh]);
        let size = |s: Shape| s.size.map(|n| n as u32);
        let [x, y, z] = size(sigma);
        self.scene.sigma_size = [x, y, z, 1];
        let [x, y, z] = size(sh);
        self.scene.sh_size = [x, y, z, sh.channels as u32];
        let cells = |n: usize| n.div_ceil(layout::occupancy::CELL) as u32;
        let [x, y, z] = sigma.size.map(cells);
        self.scene.occupancy_size = [x, y, z, 0];
        let voxel = (0..3)
            .map(|a| self.extent[a] / sigma.size[a].max(sh.size[a]) as f32)
            .fold(f32::INFINITY, f32::min);
        self.scene.step_length = voxel * self.step;
    }
}

/// Adds an array to the parameters and returns its index.
fn add(params: &mut ParamSet, array: &Array) -> io::Result<usize> {
    params.parameters.push(Parameter {
        path: array.path.clone(),
        kind: array.kind,
        shape: array.shape,
        values: array.source.materialise(array.shape)?,
        tuning: array.tuning,
    });
    Ok(params.parameters.len() - 1)
}

/// The edges and the longest diagonal of a cube in world units.
fn measure(to_world: &Affine3A) -> ([f32; 3], f32) {
    let [x, y, z] = [
        to_world.matrix3.x_axis,
        to_world.matrix3.y_axis,
        to_world.matrix3.z_axis,
    ]
    .map(|axis| 2.0 * axis);
    let diagonal = [x + y + z, x + y - z, x - y + z, x - y - z]
        .map(Vec3A::length)
        .into_iter()
        .fold(0.0, f32::max);
    ([x.length(), y.length(), z.length()], diagonal)
}

/// Fills in a field's records.
fn describe_field(record: &mut SceneRecord, field: &scene::RadianceField) {
    // The unit cube [0,1]³ onto the cube [-1,1]³, then into the world.
    let unit_to_cube = Affine3A::from_scale_rotation_translation(
        glam::Vec3::splat(2.0),
        glam::Quat::IDENTITY,
        glam::Vec3::splat(-1.0),
    );
    record.world_to_unit = rows(&(field.to_world * unit_to_cube).inverse());
    record.world_to_field = rows(&field.to_world.inverse());
    record.stop = field.stop;
    record.has_field = 1;
    record.sh_degree = field.sh_degree;
    record.density_activation = match field.density_activation {
        DensityActivation::Relu => layout::density::RELU,
        DensityActivation::Softplus => layout::density::SOFTPLUS,
        DensityActivation::Exp => layout::density::EXP,
    };
    record.color_activation = match field.color_activation {
        ColorActivation::Clip => layout::color::CLIP,
        ColorActivation::Sigmoid => layout::color::SIGMOID,
        ColorActivation::ReluHalf => layout::color::RELU_HALF,
    };
}

/// The rows of an affine map.
pub fn rows(map: &Affine3A) -> Rows {
    let m = map.matrix3;
    let t = map.translation;
    [
        [m.x_axis.x, m.y_axis.x, m.z_axis.x, t.x],
        [m.x_axis.y, m.y_axis.y, m.z_axis.y, t.y],
        [m.x_axis.z, m.y_axis.z, m.z_axis.z, t.z],
    ]
}

/// One camera's record, without a reference.
pub fn sensor_record(sensor: &Sensor) -> SensorRecord {
    let mut record = SensorRecord::zeroed();
    record.to_world = rows(&sensor.to_world);
    (record.distortion_model, record.distortion) = match sensor.distortion {
        Distortion::None => (layout::distortion::NONE, [0.0; 8]),
        Distortion::Brown { k, p } => (layout::distortion::BROWN, [k[0], k[1], k[2], 0.0, p[0], p[1], 0.0, 0.0]),
        Distortion::Fisheye { k } => (
            layout::distortion::FISHEYE,
            [k[0], k[1], k[2], k[3], 0.0, 0.0, 0.0, 0.0],
        ),
    };
    record.focal = sensor.focal;
    record.center = sensor.center;
    record.width = sensor.width;
    record.height = sensor.height;
    record.near_clip = sensor.near_clip;
    record.far_clip = sensor.far_clip;
    (record.filter, record.filter_size) = match sensor.filter {
        Filter::Box => (layout::filter::BOX, 0.5),
        Filter::Tent { radius } => (layout::filter::TENT, radius),
        Filter::Gaussian { stddev } => (layout::filter::GAUSSIAN, stddev),
    };
    record.first_pixel = NO_REFERENCE;
    record.medium = sensor.medium.map_or(layout::NONE, |medium| medium as u32);
    record
}
