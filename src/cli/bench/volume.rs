//! The bench's scattering medium: a noisy ball of smoke in a cube under constant light, and one camera.

use std::path::PathBuf;

use glam::{Affine3A, Mat3, Quat, Vec3};

use super::BenchArgs;
use super::workload::Prepared;
use crate::device::{Batch, DeviceError};
use crate::params::{Kind, Shape, Tuning};
use crate::resident::Resident;
use crate::scene::{
    Array, Background, Bsdf, Estimator, Geometry, Gradient, Integrator, Lookup, Medium, Phase, Rules, Scene, Sensor,
    Source, Surface, World, Wrap,
};
use crate::transport::rays::pixel::PixelTable;

const LEARNING_RATE: f32 = 1e-3;
const ANISOTROPY: f32 = 0.3;

fn array(name: &str, kind: Kind, size: [usize; 3], channels: usize, value: f32, high: Option<f32>) -> Array {
    Array {
        path: name.to_string(),
        kind,
        shape: Shape { size, channels },
        source: Source::Fill(vec![value]),
        tuning: high.map(|high| Tuning {
            learning_rate: LEARNING_RATE,
            bounds: [0.0, high],
            smoothing: 0.0,
        }),
    }
}

/// Estimator, longest path, camera and emission of the smoke.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub estimator: Estimator,
    pub gradient: Gradient,
    pub max_depth: u32,
    /// Whether the camera is at the smoke's centre and the smoke emits light: all paths are then long and bright.
    pub within: bool,
}

impl Setting {
    /// The setting by the command's arguments.
    pub(super) fn of(args: &BenchArgs) -> Self {
        Self {
            estimator: Estimator::PathReplay,
            gradient: args.gradient.into(),
            max_depth: args.max_depth,
            within: false,
        }
    }
}

/// The flattened scene, with its density.
pub(super) fn prepare(args: &BenchArgs, setting: Setting) -> anyhow::Result<Prepared> {
    let size = [args.resolution as usize; 3];
    let lookup = |array| Lookup {
        array,
        constant: false,
        to_world: Affine3A::from_scale_rotation_translation(Vec3::splat(2.0), Quat::IDENTITY, Vec3::NEG_ONE),
        nearest: false,
        wrap: Wrap::Clamp,
    };
    // Smoke in a cube with a null BSDF.
    let medium = Medium {
        path: "cube.interior".into(),
        homogeneous: false,
        sigma_t: lookup(array("cube.interior.sigma_t", Kind::Grid, size, 1, 0.0, Some(1.0))),
        albedo: lookup(array(
            "cube.interior.albedo",
            Kind::Grid,
            size,
            3,
            args.albedo(),
            Some(0.999),
        )),
        emission: setting.within.then(|| Lookup {
            constant: true,
            ..lookup(array("cube.interior.emission", Kind::Value, [1; 3], 3, 1.0, None))
        }),
        scale: args.scale(),
        phase: Phase::Hg {
            g: array("cube.interior.phase.g", Kind::Value, [1; 3], 1, ANISOTROPY, None),
        },
    };
    let cube = Surface {
        name: "cube".into(),
        geometry: Geometry::Cube,
        to_world: Affine3A::IDENTITY,
        flip_normals: false,
        bsdf: Bsdf::Null,
        bsdf_path: "cube.bsdf".into(),
        interior: Some(0),
        exterior: None,
        emitter: None,
        motion: Vec::new(),
        displacement: None,
    };
    let scene = Scene {
        path: PathBuf::from("bench"),
        world: World {
            surfaces: vec![cube],
            media: vec![medium],
            ..World::default()
        },
        integrator: Integrator {
            rules: Rules::Volpath,
            estimator: setting.estimator,
            max_depth: Some(setting.max_depth),
            rr_depth: u32::MAX,
            hide_emitters: false,
            gradient: setting.gradient,
            attached: false,
            inverted: None,
        },
        background: Background::Constant {
            radiance: array("emitter.radiance", Kind::Value, [1; 3], 3, 1.0, None),
        },
        sensors: vec![sensor(args.image(), setting.within)],
        ..Scene::default()
    };
    let (mut resident, mut params) = Resident::new(&scene)?;
    resident.set_constant_reference([0.5; 3]);
    let slot = params.find("cube.interior.sigma_t").expect("the scene has this medium");
    params.parameters[slot].values = density(size[0]);
    let table = PixelTable::new(&resident.sensors, &[0])
        .ok_or_else(|| DeviceError::TooLarge("--image: a view has more than 2³² pixels; take fewer".into()))?;
    Ok((resident, params, vec![Batch { table, drawn: None }]))
}

/// clip((1.2 - 1.3 r) (0.6 + 0.4 sin(9x + 3z) cos(8y)), 0, 1) at the centres of the texels of [-1, 1]³.
fn density(resolution: usize) -> Vec<f32> {
    let place = |i: usize| (i as f64 + 0.5) / resolution as f64 * 2.0 - 1.0;
    let mut values = Vec::with_capacity(resolution.pow(3));
    for z in (0..resolution).map(place) {
        for y in (0..resolution).map(place) {
            for x in (0..resolution).map(place) {
                let r = (x * x + y * y + z * z).sqrt();
                let ball = (1.2 - 1.3 * r).clamp(0.0, 1.0);
                let noise = 0.6 + 0.4 * (9.0 * x + 3.0 * z).sin() * (8.0 * y).cos();
                values.push((ball * noise).clamp(0.0, 1.0) as f32);
            }
        }
    }
    values
}

/// A camera of 40 degrees at distance 4 along +Z towards the centre; `within`: at the centre.
fn sensor(image: u32, within: bool) -> Sensor {
    let focal = 0.5 * image as f32 / 20f32.to_radians().tan();
    Sensor {
        name: "view".into(),
        to_world: Affine3A::from_mat3_translation(
            Mat3::from_cols(Vec3::NEG_X, Vec3::Y, Vec3::NEG_Z),
            Vec3::new(0.0, 0.0, if within { 0.0 } else { 4.0 }),
        ),
        width: image,
        height: image,
        focal: [focal; 2],
        center: [0.5 * image as f32; 2],
        near_clip: 1e-2,
        far_clip: 1e4,
        medium: within.then_some(0),
        ..Sensor::default()
    }
}
