//! `dataset`: a data set of photographs with cameras, expanded into sensors.

use glam::{Affine3A, DAffine3, Mat3A, Vec3A};
use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::io::dataset::View;

use super::reader::Value;
use super::reference::is_name_char;
use super::sensor::{backdrop, clip_range};
use super::vocabulary::Class;
use super::{Backdrop, ColorSpace, Filter, Reference, Sensor, files, film, sampler, transform};

/// Settings common to all views of a data set.
#[derive(Debug)]
struct Rules {
    to_world: DAffine3,
    downscale: u32,
    /// Every n-th view is held out; 0: none.
    hold_out: u32,
    held_out: bool,
    backdrop: Backdrop,
    color_space: ColorSpace,
    filter: Filter,
    clip: [f32; 2],
    spp: u32,
    disturb: Option<Disturb>,
}

/// A perturbation of cameras, for experiments: each view that is not held out is turned about a random axis and moved in a
/// random direction.
#[derive(Debug, Clone, Copy)]
struct Disturb {
    /// In degrees.
    rotate: f64,
    /// In world units.
    translate: f64,
    seed: u64,
}

/// The views of the data set at `value`. `with_images`: whether their photographs must exist.
pub(super) fn read(value: &Value<'_>, with_images: bool) -> Option<Vec<Sensor>> {
    let mut object = value.plugin(Class::Dataset)?;
    let file = object.require("filename", "the data set's file, such as transforms_train.json");
    let skip_missing = object.boolean("skip_missing", false);
    let rules = Rules {
        to_world: transform::read_similarity(&mut object, "to_world"),
        downscale: object.integer("downscale", 1),
        hold_out: object.integer("hold_out", 0),
        held_out: object.boolean("held_out", false),
        backdrop: object.get("background").and_then(|v| backdrop(&v)).unwrap_or_default(),
        color_space: film::color_space(&mut object, ColorSpace::Srgb),
        filter: film::nested_filter(&mut object, Filter::Box),
        clip: clip_range(&mut object),
        spp: sampler::nested(&mut object),
        disturb: object.get("disturb").and_then(|value| disturb(&value)),
    };
    let sensors = file.and_then(|file| views(&file, &rules, skip_missing, with_images));
    object.finish();
    sensors
}

fn views(file: &Value<'_>, rules: &Rules, skip_missing: bool, with_images: bool) -> Option<Vec<Sensor>> {
    let path = file.file()?;
    let dataset = match files::dataset(&path) {
        Ok(dataset) => dataset,
        Err(error) => {
            file.error("this data set cannot be used", error);
            return None;
        }
    };
    let (mut missing, mut wrong, mut sensors) = (Vec::new(), Vec::new(), Vec::new());
    for (i, view) in dataset.views.iter().enumerate() {
        let there = view.image.is_file();
        if !there {
            missing.push(view.image.display().to_string());
            if skip_missing {
                continue;
            }
        }
        match sensor(view, i, rules, there) {
            Ok(sensor) => sensors.push(sensor),
            Err(message) => wrong.push(message),
        }
    }
    let count = dataset.views.len();
    if !missing.is_empty() && !skip_missing && with_images {
        let what = format!("{} of {count} photographs are missing", missing.len());
        let advice = format!("{} (or set `skip_missing` to leave them out)", missing.join(", "));
        file.error(what, advice);
    }
    if !wrong.is_empty() {
        file.error(
            format!("{} of {count} photographs cannot be used", wrong.len()),
            wrong.join("; "),
        );
    }
    if sensors.is_empty() && wrong.is_empty() {
        file.error(
            "the data set has no usable view",
            format!("{} of its {count} images are missing", missing.len()),
        );
    }
    Some(sensors)
}

/// The `i`-th view as a sensor, or the mistake in its photograph.
fn sensor(view: &View, i: usize, rules: &Rules, there: bool) -> Result<Sensor, String> {
    if there {
        view.check_image().map_err(|error| error.to_string())?;
    }
    let scale = rules.downscale;
    let size = [view.width / scale, view.height / scale];
    if size.contains(&0) {
        let (name, w, h) = (view.image.display(), view.width, view.height);
        return Err(format!("{name} has {w}×{h} pixels and cannot be reduced {scale} times"));
    }
    let reference = there.then(|| Reference {
        path: view.image.clone(),
        downscale: scale,
        backdrop: rules.backdrop,
    });
    let held_out = rules.held_out || (rules.hold_out > 0 && i.is_multiple_of(rules.hold_out as usize));
    let undisturbed = camera_to_world(rules.to_world, view);
    let disturb = rules.disturb.filter(|_| !held_out);
    Ok(Sensor {
        name: view.name.clone(),
        to_world: disturb.map_or(undisturbed, |disturb| disturb.apply(undisturbed, i as u64)),
        undisturbed: disturb.map(|_| undisturbed),
        width: size[0],
        height: size[1],
        focal: view.focal.map(|x| x / scale as f32),
        center: view.center.map(|x| x / scale as f32),
        distortion: view.distortion,
        near_clip: rules.clip[0],
        far_clip: rules.clip[1],
        filter: rules.filter,
        color_space: rules.color_space,
        spp: rules.spp,
        reference,
        held_out,
        medium: None,
        ..Sensor::default()
    })
}

fn disturb(value: &Value<'_>) -> Option<Disturb> {
    let mut object = value.block("disturb")?;
    let disturb = Disturb {
        rotate: object.number("rotate", 0.0).into(),
        translate: object.number("translate", 0.0).into(),
        seed: object.get("seed").and_then(|v| v.integer(0, u64::MAX)).unwrap_or(0),
    };
    object.finish();
    Some(disturb)
}

impl Disturb {
    /// The perturbed pose of the `view`-th view, whose own is `pose`.
    fn apply(&self, pose: Affine3A, view: u64) -> Affine3A {
        let mut stream = Pcg64::new(u128::from(self.seed), u128::from(view));
        let mut uniform = || (stream.next_u64() >> 11) as f32 / (1u64 << 53) as f32;
        let mut direction = || {
            let z = 2.0 * uniform() - 1.0;
            let (sine, cosine) = (std::f32::consts::TAU * uniform()).sin_cos();
            let radius = (1.0 - z * z).max(0.0).sqrt();
            Vec3A::new(radius * cosine, radius * sine, z)
        };
        let axis = direction().normalize();
        let turn = Mat3A::from_axis_angle(axis.into(), self.rotate.to_radians() as f32);
        Affine3A {
            matrix3: turn * pose.matrix3,
            translation: pose.translation + self.translate as f32 * direction().normalize(),
        }
    }
}

/// A view's pose in the scene: transformed by a similarity, with axes normalised to unit length.
fn camera_to_world(to_world: DAffine3, view: &View) -> glam::Affine3A {
    let camera = view.to_world;
    let columns = camera.to_cols_array().map(f64::from);
    let mut pose = to_world * DAffine3::from_cols_array(&columns);
    for axis in [
        &mut pose.matrix3.x_axis,
        &mut pose.matrix3.y_axis,
        &mut pose.matrix3.z_axis,
    ] {
        *axis = axis.normalize();
    }
    transform::to_f32(pose)
}

/// Gives every sensor a unique name that is valid as a key of a scene file and in a file name.
pub(super) fn unique_names(sensors: &mut [Sensor], key: &str, taken: &mut std::collections::HashSet<String>) {
    for sensor in sensors {
        let plain = |c: char| if is_name_char(c) { c } else { '_' };
        let plain: String = sensor.name.chars().take(80).map(plain).collect();
        let mut name = plain.clone();
        let mut n = 1;
        while !taken.insert(name.clone()) {
            name = if n == 1 {
                format!("{key}_{plain}")
            } else {
                format!("{key}_{plain}_{n}")
            };
            n += 1;
        }
        sensor.name = name;
    }
}
