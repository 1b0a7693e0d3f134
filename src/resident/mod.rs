//! A scene flattened once into the records and arrays that both devices read.

mod apart;
mod attached;
pub mod bsdfs;
pub mod bvh;
mod containers;
pub mod distances;
pub mod emissive_triangles;
pub mod environment;
pub mod field;
pub mod filter;
mod footprint;
pub mod geometry;
pub mod glide;
pub mod interior;
pub mod lamp;
pub mod layout;
pub mod light;
mod light_tables;
pub mod magnitudes;
pub mod majorants;
pub mod motion;
pub mod optics;
pub mod pages;
pub mod paths;
pub mod photographs;
pub mod placement;
pub mod references;
mod sealed;
pub mod sensors;
pub mod solid;
pub mod splats;
mod surface_free;
pub mod tracer;
pub mod values;
pub mod vertices;
pub mod views;

use glam::{Affine3A, Mat3A, Vec3A};

use crate::each::EachEntry;
use crate::io;
use crate::params::{ParamSet, Parameter, Shape};
use crate::scene::{Array, Background, Rules, Scene, Sensor, Source, Splats, Visited};
use bytemuck::Zeroable;
use field::FieldScene;
use layout::{Rows, SceneRecord, SensorRecord};
use light::LightScene;
use paths::PathScene;
use references::Pixels;
pub use sensors::sensor_record;
use splats::{SplatScene, SplatSlots};
use views::Views;

/// A scene as flat records. Within a stage of a run only the places of what moves change in it; the values of parameters
/// lie in the [`ParamSet`] and on the device.
#[derive(Debug, Clone)]
pub struct Resident {
    pub scene: SceneRecord,
    pub sensors: Vec<SensorRecord>,
    /// Index into the [`ParamSet`] of the background's radiance; None without a background.
    pub emitter: Option<usize>,
    /// The kind of light transport, with the records that it alone reads.
    pub transport: Transport,
    /// The pixels of all references; those of a sensor begin at its [`SensorRecord::first_pixel`].
    pub references: Pixels,
}

/// The kinds of light transport, each with the records that it alone reads. A device chooses its passes by the kind when it
/// loads a scene.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a device holds one, for as long as it holds a scene"
)]
pub enum Transport {
    /// Rays through an emitting and absorbing field, or, without a field, straight to the background.
    Field(FieldScene),
    /// Paths among surfaces, scattering media and lights.
    Paths(PathScene),
    /// An ordered blend of splats in a plane.
    Splats(SplatScene),
    /// Paths from a light through a slab or a cube onto a screen.
    Light(LightScene),
}

impl Transport {
    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, record: &mut SceneRecord, shapes: &[Shape]) {
        match self {
            Self::Field(field) => field.fit(record, shapes),
            Self::Paths(paths) => paths.fit(record, shapes),
            Self::Splats(splats) => splats.fit(shapes),
            Self::Light(light) => light.fit(shapes),
        }
    }

    /// The surfaces, media and lights, for callers that handle no other kind of transport.
    ///
    /// # Panics
    /// The transport is of another kind.
    pub fn paths(&self) -> &PathScene {
        match self {
            Self::Paths(paths) => paths,
            Self::Field(_) | Self::Splats(_) | Self::Light(_) => panic!("paths were asked of a scene without any"),
        }
    }

    /// Like [`Self::paths`], mutable.
    ///
    /// # Panics
    /// The transport is of another kind.
    pub fn paths_mut(&mut self) -> &mut PathScene {
        match self {
            Self::Paths(paths) => paths,
            Self::Field(_) | Self::Splats(_) | Self::Light(_) => panic!("paths were asked of a scene without any"),
        }
    }

    /// Whether an iteration renders along the paths of its adjoint pass, which uses the previous iteration's adjoint image.
    pub fn is_pipelined(&self) -> bool {
        match self {
            Self::Field(_) | Self::Splats(_) | Self::Light(_) => false,
            Self::Paths(paths) => paths.estimator.is_pipelined(),
        }
    }
}

impl Resident {
    /// An empty scene: no sensors, no references, no field and no background.
    pub fn empty() -> Self {
        Self {
            scene: SceneRecord::zeroed(),
            sensors: Vec::new(),
            emitter: None,
            transport: Transport::Field(FieldScene::default()),
            references: Pixels::None,
        }
    }

    /// Flattens a scene without its references and materialises its arrays.
    ///
    /// # Errors
    /// A file cannot be read or holds values that are not possible, or boundaries of media cut each other, or a shape or a
    /// sensor in a medium does not name it.
    pub fn new(scene: &Scene) -> io::Result<(Self, ParamSet)> {
        let mut params = materialise(scene)?;
        let mut record = SceneRecord::zeroed();
        let field = match &scene.field {
            Some(field) => FieldScene::new(field, &mut record, &params),
            None => FieldScene::default(),
        };
        let emitter = describe_background(&scene.background, &mut record, &params);
        let transport = match (&scene.splats, &scene.optic) {
            (_, Some(optic)) => Transport::Light(light::flatten(scene, optic, &params)?),
            (Some(splats), _) => Transport::Splats(describe_splats(scene, splats, &mut params)?),
            // Without objects rays see the background alone; `hide_emitters` is known to paths only.
            (None, None) if scene.world.is_empty() && !scene.integrator.hide_emitters => Transport::Field(field),
            (None, None) => Transport::Paths(paths::flatten(scene, &params, emitter)?),
        };
        if let Some(fault) = values::fault(scene, &params) {
            return Err(io::IoError::new(fault.origin(scene), &fault.message));
        }
        let mut resident = Self {
            scene: record,
            sensors: Vec::new(),
            emitter,
            transport,
            references: Pixels::None,
        };
        resident.fit(&params.parameters.iter().map(|p| p.shape).collect::<Vec<_>>());
        resident.sensors = sensors::records(scene, &mut resident.scene)?;
        if scene.integrator.rules != Rules::Volpath {
            resident
                .sensors
                .iter_mut()
                .for_each(|sensor| sensor.medium = layout::NONE);
        }
        sensors::look_from_afar(&scene.sensors, &mut resident);
        if let Transport::Field(field) = &mut resident.transport {
            field.views = Views::new(scene, &resident.sensors, &params);
        }
        resident.place_views(&params);
        Ok((resident, params))
    }

    /// Moves the cameras whose poses, lenses or places are parameters to where the values of `params` put them.
    pub fn place_views(&mut self, params: &ParamSet) {
        match &self.transport {
            Transport::Field(FieldScene { views: Some(views), .. }) => views.place(params, &mut self.sensors),
            Transport::Paths(paths) => {
                let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
                paths.place_cameras(&values, &mut self.sensors);
            }
            Transport::Field(_) | Transport::Splats(_) | Transport::Light(_) => {}
        }
    }

    /// The cameras that are parameters; None without any, and in scenes other than those of radiance fields.
    pub fn views_mut(&mut self) -> Option<&mut Views> {
        match &mut self.transport {
            Transport::Field(field) => field.views.as_mut(),
            Transport::Paths(_) | Transport::Splats(_) | Transport::Light(_) => None,
        }
    }

    /// Replaces the sensors' records by those of `sensors`, which are the scene's own in other resolutions.
    pub fn look_through(&mut self, sensors: &[Sensor]) {
        for (record, sensor) in self.sensors.iter_mut().zip(sensors) {
            *record = SensorRecord {
                medium: record.medium,
                first_pixel: record.first_pixel,
                filter_table: record.filter_table,
                focus_distance: record.focus_distance,
                area_to_world: record.area_to_world,
                ..sensor_record(sensor)
            };
        }
    }

    /// Places what moves for the values of `params`.
    ///
    /// # Errors
    /// One sentence: what moves stands where it has no derivatives.
    pub fn settle(&mut self, scene: &Scene, params: &ParamSet) -> Result<(), String> {
        match &mut self.transport {
            Transport::Paths(paths) => paths.settle(scene, params),
            _ => Ok(()),
        }
    }

    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, shapes: &[Shape]) {
        fit_background(&mut self.scene, self.emitter, shapes);
        self.transport.fit(&mut self.scene, shapes);
    }
}

/// Updates the size of the environment map, the parameter `emitter`, after a change of resolution.
pub fn fit_background(record: &mut SceneRecord, emitter: Option<usize>, shapes: &[Shape]) {
    if let (layout::background::ENVMAP, Some(emitter)) = (record.background, emitter) {
        let [width, height, _] = shapes[emitter].size;
        record.env_size = [width as u32, height as u32];
    }
}

/// Fills in the background's fields of `record` and returns the parameter of its radiance.
fn describe_background(background: &Background, record: &mut SceneRecord, params: &ParamSet) -> Option<usize> {
    (record.env_scale, record.env_scale_slot) = (1.0, layout::NONE);
    match background {
        Background::None => None,
        Background::Constant { radiance } => {
            record.background = layout::background::CONSTANT;
            Some(slot(params, radiance))
        }
        Background::Envmap {
            data, scale, to_world, ..
        } => {
            record.background = layout::background::ENVMAP;
            // A scene of a radiance field has no such parameter.
            record.env_scale_slot = params.find(&scale.path).map_or(layout::NONE, |slot| slot as u32);
            if let Source::Fill(values) = &scale.source {
                record.env_scale = values[0];
            }
            record.world_to_env = rows(&to_world.inverse());
            Some(slot(params, data))
        }
    }
}

/// Places the splats of a scene, which sets the values of their parameters.
fn describe_splats(scene: &Scene, splats: &Splats, params: &mut ParamSet) -> io::Result<SplatScene> {
    let slots = splats.arrays().each(|array| slot(params, array));
    for (slot, values) in slots.into_iter().zip(placement::place(scene, splats)?) {
        params.parameters[slot].values = values;
    }
    let [position, scale, rotation, color, opacity] = slots;
    let slots = SplatSlots {
        position,
        scale,
        rotation,
        color,
        opacity,
    };
    Ok(SplatScene::new(slots, params))
}

/// The parameters of a scene, in the order of its visitor. An array that several objects share is one parameter.
fn materialise(scene: &Scene) -> io::Result<ParamSet> {
    check_fits(scene, pages::physical_bytes())?;
    let mut params = ParamSet::default();
    for Visited {
        array,
        quantity,
        to_world,
        ..
    } in scene.visit()
    {
        if params.find(&array.path).is_some() {
            continue;
        }
        params.parameters.push(Parameter {
            path: array.path.clone(),
            kind: array.kind,
            quantity,
            shape: array.shape,
            to_world,
            values: array.source.materialise(array.shape)?,
            tuning: array.tuning,
        });
    }
    Ok(params)
}

/// Refuses a scene whose arrays together need more than the `machine`'s bytes of memory, before any of them is allocated.
fn check_fits(scene: &Scene, machine: Option<u64>) -> io::Result<()> {
    let mut arrays: Vec<&Array> = scene.visit().into_iter().map(|visited| visited.array).collect();
    arrays.sort_by(|a, b| a.path.cmp(&b.path));
    arrays.dedup_by(|a, b| a.path == b.path);
    let needed: u64 = arrays.iter().map(|array| 4 * array.shape.len() as u64).sum();
    let Some(there) = machine.filter(|there| needed > *there) else {
        return Ok(());
    };
    let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
    let largest = arrays.iter().max_by_key(|array| array.shape.len());
    let largest = largest.map_or("", |array| &array.path);
    let message = format!(
        "the values of all arrays need {:.1} GiB, the machine has {:.1} GiB; take a lower resolution for `{largest}`, the largest",
        gib(needed),
        gib(there)
    );
    Err(io::IoError::new(&scene.path, message))
}

/// Index of an array of the scene among its parameters.
fn slot(params: &ParamSet, array: &Array) -> usize {
    let found = params.find(&array.path);
    found.expect("the scene's visitor names every array that records refer to")
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

/// The map of these rows.
pub fn affine(rows: &Rows) -> Affine3A {
    let column = |i: usize| Vec3A::new(rows[0][i], rows[1][i], rows[2][i]);
    Affine3A {
        matrix3: Mat3A::from_cols(column(0), column(1), column(2)),
        translation: column(3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::layout::NO_REFERENCE;

    /// 64³ and 2 · 3 numbers, each of them counted once.
    #[test]
    fn arrays_that_the_machine_could_not_hold_are_refused() {
        let text = r#"{"fog": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "heterogeneous",
            "albedo": 0.5, "sigma_t": {"type": "gridvolume", "resolution": [64, 64, 64], "value": 0.5}}},
            "sky": {"type": "constant"}, "camera": {"type": "perspective"}}"#;
        let scene = crate::scene::parse(text, std::path::Path::new("fog.json")).expect("no mistakes");
        let least = 4 * 64 * 64 * 64;
        assert!(check_fits(&scene, None).is_ok() && check_fits(&scene, Some(least + 64)).is_ok());
        let message = check_fits(&scene, Some(least)).expect_err("too large").to_string();
        assert!(message.contains("`fog.interior.sigma_t`"), "{message}");
    }

    #[test]
    fn sensors_that_are_looked_through_keep_their_medium_and_reference() {
        let sensor = |width, focal| Sensor {
            width,
            height: 2,
            focal: [focal; 2],
            ..Sensor::default()
        };
        let mut resident = Resident::empty();
        resident.sensors = [sensor(3, 4.0), sensor(5, 6.0)].iter().map(sensor_record).collect();
        (resident.sensors[1].medium, resident.sensors[1].first_pixel) = (7, 6);
        resident.look_through(&[sensor(30, 40.0), sensor(50, 60.0)]);
        let found: Vec<_> = resident
            .sensors
            .iter()
            .map(|s| (s.width, s.focal, s.medium, s.first_pixel))
            .collect();
        assert_eq!(
            found,
            [(30, [40.0; 2], layout::NONE, NO_REFERENCE), (50, [60.0; 2], 7, 6)]
        );
    }
}
