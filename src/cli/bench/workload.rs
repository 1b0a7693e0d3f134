//! The bench's radiance field: a uniform field and eight cameras on a circle, as in Mitsuba's radiance-field tutorial.

use std::path::PathBuf;

use glam::{Affine3A, Mat3, Quat, Vec3};

use super::BenchArgs;
use crate::device::{Batch, DeviceError};
use crate::params::{Kind, ParamSet, Shape, Tuning};
use crate::resident::Resident;
use crate::scene::{
    Array, Background, ColorActivation, ColorSpace, DensityActivation, Distortion, Filter, RadianceField, Scene,
    Sensor, Source,
};
use crate::transport::rays::pixel::PixelTable;

/// Number of views on the circle.
const VIEWS: u32 = 8;

const LEARNING_RATE: f32 = 0.02;

/// A field of `resolution`³ texels in [0, 1]³ and its cameras of `image`² pixels, with a constant reference.
fn scene(resolution: usize, image: u32, sh_degree: u32) -> Scene {
    let channels = 3 * (sh_degree as usize + 1).pow(2);
    let array = |name: &str, channels, value| Array {
        path: format!("object.interior.{name}"),
        kind: Kind::Grid,
        shape: Shape {
            size: [resolution; 3],
            channels,
        },
        source: Source::Fill(vec![value]),
        tuning: Some(Tuning {
            learning_rate: LEARNING_RATE,
            bounds: [f32::NEG_INFINITY, f32::INFINITY],
            smoothing: 0.0,
        }),
    };
    let field = RadianceField {
        to_world: Affine3A::from_scale_rotation_translation(Vec3::splat(0.5), Quat::IDENTITY, Vec3::splat(0.5)),
        sigma_t: array("sigma_t", 1, 0.01),
        sh_coeffs: array("sh_coeffs", channels, 0.1),
        sh_degree,
        density_activation: DensityActivation::Relu,
        color_activation: ColorActivation::Clip,
        step: 1.0,
        stop: 0.0,
    };
    Scene {
        path: PathBuf::from("bench"),
        field: Some(field),
        background: Background::None,
        sensors: (0..VIEWS).map(|i| sensor(i, image)).collect(),
        ..Scene::default()
    }
}

fn sensor(index: u32, image: u32) -> Sensor {
    // At distance 1.3 along +Z, looking at the centre: the camera's +X is the world's -X.
    let camera = Affine3A::from_mat3_translation(
        Mat3::from_cols(Vec3::NEG_X, Vec3::Y, Vec3::NEG_Z),
        Vec3::new(0.0, 0.0, 1.3),
    );
    let turn = Affine3A::from_rotation_y((45.0 * index as f32).to_radians());
    let focal = 0.5 * image as f32 / 22.5f32.to_radians().tan();
    Sensor {
        name: format!("view{index}"),
        to_world: Affine3A::from_translation(Vec3::splat(0.5)) * turn * camera,
        width: image,
        height: image,
        focal: [focal; 2],
        center: [0.5 * image as f32; 2],
        distortion: Distortion::None,
        near_clip: 1e-2,
        far_clip: 1e4,
        filter: Filter::Box,
        color_space: ColorSpace::Linear,
        reference: None,
        held_out: false,
        ..Sensor::default()
    }
}

/// A flattened scene, its parameters, and its batches, used in turn.
pub(super) type Prepared = (Resident, ParamSet, Vec<Batch>);

/// The flattened scene, and a batch for each view.
pub(super) fn prepare(args: &BenchArgs) -> anyhow::Result<Prepared> {
    let (mut resident, params) = Resident::new(&scene(args.resolution as usize, args.image(), args.sh_degree))?;
    resident.set_constant_reference([0.3; 3]);
    let batches = (0..VIEWS)
        .map(|view| {
            let table = PixelTable::new(&resident.sensors, &[view])
                .ok_or_else(|| DeviceError::TooLarge("--image: a view has more than 2³² pixels; take fewer".into()))?;
            Ok(Batch { table, drawn: None })
        })
        .collect::<Result<_, DeviceError>>()?;
    Ok((resident, params, batches))
}
