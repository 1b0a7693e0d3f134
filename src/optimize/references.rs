//! Reference images: photographs, renders of a target scene, or a constant colour.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::views::{RenderSettings, render_view};
use crate::cluster::Cluster;
use crate::device::Device;
use crate::io::tensors::{self, Reader, Tensor, Values};
use crate::io::{Image, srgb};
use crate::kernels::optimizer::Optimizer;
use crate::output::fingerprint::Fingerprint;
use crate::output::images::Picture;
use crate::output::parameters::is_map;
use crate::output::progress::Progress;
use crate::params::{ParamSet, Parameter};
use crate::resident::Resident;
use crate::resident::photographs::photograph;
use crate::resident::references::Pixels;
use crate::scene::{self, Backdrop, Background, ColorSpace, References, Scene, Sensor, Source, leaves};

/// Pixels by the index of their sensor.
type Renders = HashMap<u32, Vec<[f32; 4]>>;

/// The references that are not on the device.
#[derive(Debug)]
pub enum Targets {
    /// Read from their files again when a held-out view is evaluated.
    Photographs,
    /// Renders of held-out and previewed views, by sensor index.
    Rendered(Renders),
    Constant([f32; 3]),
}

/// Bytes that the references of these views will take; photographs for sRGB-coded films count 8 bits a channel.
pub fn bytes(scene: &Scene, references: &References, training: &[u32]) -> u64 {
    let of_view = |&view: &u32| {
        let sensor = &scene.sensors[view as usize];
        let pixel = match (references, sensor.color_space) {
            (References::Constant(_), _) => 0,
            (References::Images, ColorSpace::Srgb) => 4,
            _ => size_of::<[f32; 4]>() as u64,
        };
        pixel * u64::from(sensor.width) * u64::from(sensor.height)
    };
    training.iter().map(of_view).sum()
}

/// Gives `resident` the references of the training views, and stores those of the held-out and `shown` views. If a
/// target scene is rendered, that scene stays on the device; its textures, maps and numbers are returned, too.
///
/// # Errors
/// A photograph or the target scene cannot be read, or the target cannot be rendered.
#[allow(clippy::too_many_arguments, reason = "what references are made of and where they go")]
pub fn prepare(
    scene: &Scene,
    references: &References,
    training: &[u32],
    shown: &[u32],
    resident: &mut Resident,
    device: &mut dyn Device,
    cache: &Path,
    progress: &Progress,
) -> Result<(Targets, Vec<Parameter>)> {
    match references {
        References::Images => {
            resident.read_photographs(&scene.sensors, training)?;
            Ok((Targets::Photographs, Vec::new()))
        }
        References::Constant(color) => {
            resident.set_constant_reference(*color);
            Ok((Targets::Constant(*color), Vec::new()))
        }
        References::Leaves { .. } | References::Figures(_) => {
            checked_pixels(&scene.sensors, training)?;
            progress.note("drawing the pictures to compare with");
            let draw = |index: u32| -> Vec<[f32; 4]> {
                let sensor = &scene.sensors[index as usize];
                let size = [sensor.width, sensor.height];
                let pixels = match references {
                    References::Figures(figures) => figures[(index as usize).min(figures.len() - 1)].draw(size),
                    References::Leaves { seed } => leaves::leaves(*seed, size),
                    _ => unreachable!("pictures are drawn of leaves and figures"),
                };
                pixels.into_iter().map(|[r, g, b]| [r, g, b, 0.0]).collect()
            };
            let looked_at = (0..scene.sensors.len() as u32).filter(|i| !training.contains(i) || shown.contains(i));
            let drawn: Renders = looked_at.map(|index| (index, draw(index))).collect();
            let taken = |&i: &u32| (i as usize, drawn.get(&i).cloned().unwrap_or_else(|| draw(i)));
            resident.set_references(training.iter().map(taken));
            Ok((Targets::Rendered(drawn), Vec::new()))
        }
        References::Scene { path, spp } => {
            checked_pixels(&scene.sensors, training)?;
            let (mut rendered, truth) = target_renders(scene, path, *spp, device, cache, progress)?;
            let taken = training.iter().filter_map(|index| {
                let pixels = match shown.contains(index) {
                    true => rendered.get(index).cloned(),
                    false => rendered.remove(index),
                };
                Some((*index as usize, pixels?))
            });
            resident.set_references(taken);
            Ok((Targets::Rendered(rendered), truth))
        }
    }
}

impl Targets {
    /// The reference of a sensor in the colour space of its film, over its backdrop. None if it has none.
    ///
    /// # Errors
    /// Its photograph cannot be read.
    pub fn film_pixels(&self, scene: &Scene, index: u32) -> Result<Option<Vec<[f32; 3]>>> {
        let Some(image) = self.coded_image(scene, index)? else {
            return Ok(None);
        };
        let decode = |v: f32| match scene.sensors[index as usize].color_space {
            ColorSpace::Srgb => v,
            ColorSpace::Linear => srgb::decode(v),
        };
        let pixels = image.data.chunks_exact(image.channels);
        Ok(Some(
            pixels.map(|p| [decode(p[0]), decode(p[1]), decode(p[2])]).collect(),
        ))
    }

    /// The reference of a sensor: sRGB-coded, clamped, without alpha. None if it has none.
    ///
    /// # Errors
    /// Its photograph cannot be read.
    pub fn coded_image(&self, scene: &Scene, index: u32) -> Result<Option<Image>> {
        let sensor = &scene.sensors[index as usize];
        let pixels = match self {
            Self::Constant([r, g, b]) => vec![[*r, *g, *b, 0.0]; checked_pixels(&scene.sensors, &[index])?],
            Self::Rendered(renders) => match renders.get(&index) {
                Some(pixels) => pixels.clone(),
                None => return Ok(None),
            },
            Self::Photographs => match &sensor.reference {
                Some(reference) => {
                    let behind = backdrop_color(reference.backdrop, &scene.background);
                    let pixels = photograph(sensor, reference)?.pixels;
                    pixels.into_iter().map(|pixel| over(pixel, behind)).collect()
                }
                None => return Ok(None),
            },
        };
        let mut image = Picture::of(sensor, pixels).coded();
        image.data.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
        Ok(Some(image))
    }
}

/// Fingerprints of the references on a device and of the parameters' values, by which ranks see that they have read the
/// same.
pub fn data_marks(resident: &Resident, params: &ParamSet) -> [(&'static str, String); 2] {
    if Cluster::world().is_single() {
        return [("", String::new()), ("", String::new())];
    }
    let of = |mark: Fingerprint, parameter: &Parameter| mark.with(bytemuck::cast_slice(&parameter.values));
    let values = params.parameters.iter().fold(Fingerprint::default(), of);
    let pixels = match &resident.references {
        Pixels::None => Fingerprint::default(),
        Pixels::Float(data) => Fingerprint::default().with(bytemuck::cast_slice(data)),
        Pixels::Unorm8(data) => Fingerprint::default().with(bytemuck::cast_slice(data)),
        Pixels::Constant(color) => Fingerprint::default().with(bytemuck::cast_slice(color)),
    };
    [
        ("a reference image", pixels.text()),
        ("a value of a parameter", values.text()),
    ]
}

/// The total number of pixels of these views.
///
/// # Errors
/// They exceed 2³² - 1, the largest pixel number.
fn checked_pixels(sensors: &[Sensor], views: &[u32]) -> Result<usize> {
    let pixels = |view: &u32| {
        let sensor = &sensors[*view as usize];
        u64::from(sensor.width) * u64::from(sensor.height)
    };
    match views.iter().map(pixels).fold(0, u64::saturating_add) {
        count if count <= u64::from(u32::MAX) => Ok(count as usize),
        count => bail!("references of {count} pixels are more than are supported (2³²): make films smaller"),
    }
}

/// The colour behind transparent parts of a displayed photograph; None: alpha is ignored. With random training
/// backgrounds, renders are displayed over the scene's own emitter, and so are the photographs.
fn backdrop_color(backdrop: Backdrop, background: &Background) -> Option<[f32; 3]> {
    match (backdrop, background) {
        (Backdrop::Opaque, _) => None,
        (Backdrop::Color(color), _) => Some(color),
        (Backdrop::Random, Background::Constant { radiance }) => match &radiance.source {
            Source::Fill(values) => Some([0, 1, 2].map(|c| values[c % values.len()])),
            _ => Some([0.0; 3]),
        },
        (Backdrop::Random, _) => Some([0.0; 3]),
    }
}

/// Composites a colour with straight alpha over `behind`.
fn over([r, g, b, a]: [f32; 4], behind: Option<[f32; 3]>) -> [f32; 4] {
    let Some(behind) = behind else { return [r, g, b, 0.0] };
    let mix = |front: f32, back: f32| front * a + back * (1.0 - a);
    [mix(r, behind[0]), mix(g, behind[1]), mix(b, behind[2]), 0.0]
}

/// Renders of the target scene's contents by the present scene's sensors, from the cache if it has them.
fn target_renders(
    scene: &Scene,
    path: &Path,
    spp: u32,
    device: &mut dyn Device,
    cache: &Path,
    progress: &Progress,
) -> Result<(Renders, Vec<Parameter>)> {
    let mut target = scene::load_target(path)?;
    target.sensors = scene.sensors.clone();
    for sensor in &mut target.sensors {
        // Where a scene disturbs its cameras on purpose, references are rendered from the undisturbed poses.
        if let Some(pose) = sensor.undisturbed.take() {
            sensor.to_world = pose;
        }
        // Sensors that a run moves stay in the target where the scene file has them.
        sensor.motion.clear();
        let media = &target.world.media;
        let same = |index: usize| media.iter().position(|m| m.path == scene.world.media[index].path);
        sensor.medium = sensor.medium.and_then(same);
    }
    target.optimize = None;
    let (resident, params) = Resident::new(&target).context("the target scene")?;
    let truth = params.parameters.iter().filter(|p| is_map(p)).cloned().collect();
    let mark = target_mark(&target, &resident, spp, &device.arithmetic());
    let cluster = Cluster::world();
    let cached = read_cache(cache, &mark, &target.sensors);
    // Ranks render together, or none of them does.
    let is_missing = cluster.any(cached.is_none());
    if let Some(renders) = cached
        && !is_missing
    {
        return Ok((renders, truth));
    }
    let count = target.sensors.len();
    progress.note(&format!(
        "rendering {count} references from {} at {spp} spp",
        path.display()
    ));
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    let look = RenderSettings {
        seed: REFERENCE_SEED,
        iteration: 0,
        spp,
    };
    let mut renders = HashMap::new();
    for index in 0..count as u32 {
        device.gauge().begin_picture(1);
        let _busy = progress.busy(format!("reference {} of {count}", index + 1), device.gauge());
        renders.insert(index, render_view(device, index, look)?);
    }
    if cluster.leads() {
        write_cache(cache, &mark, &target.sensors, &renders)?;
    }
    Ok((renders, truth))
}

/// References do not depend on a run's seed. This seed is unlikely to be a run's: equal seeds would give a render the
/// same noise as its reference.
const REFERENCE_SEED: u64 = 0x7265_6665_7265_6e63;

/// A hash key of all that renders of a target depend on.
fn target_mark(target: &Scene, resident: &Resident, spp: u32, arithmetic: &str) -> String {
    let mark = Fingerprint::default()
        .with(env!("CARGO_PKG_VERSION").as_bytes())
        .with(arithmetic.as_bytes())
        .with(target.resolved.to_string().as_bytes())
        .with(bytemuck::cast_slice(&resident.sensors))
        .with(&spp.to_le_bytes());
    target
        .files()
        .iter()
        .fold(mark, |mark, file| mark.with_file(file))
        .text()
}

const MARK: &str = "prbopt_references";

/// The cached renders; None if the cache is missing, damaged, or has another key.
fn read_cache(path: &Path, mark: &str, sensors: &[Sensor]) -> Option<HashMap<u32, Vec<[f32; 4]>>> {
    let mut reader = Reader::open(path).ok()?;
    if reader.text(MARK) != Some(mark) {
        return None;
    }
    let mut renders = HashMap::new();
    for (index, sensor) in sensors.iter().enumerate() {
        let values = reader.f32(&index.to_string()).ok()?;
        let pixels = values.as_chunks::<4>().0;
        if values.len() != 4 * sensor.width as usize * sensor.height as usize {
            return None;
        }
        renders.insert(index as u32, pixels.to_vec());
    }
    Some(renders)
}

fn write_cache(path: &Path, mark: &str, sensors: &[Sensor], renders: &HashMap<u32, Vec<[f32; 4]>>) -> Result<()> {
    let tensors: Vec<Tensor<'_>> = sensors
        .iter()
        .enumerate()
        .map(|(index, sensor)| Tensor {
            name: index.to_string(),
            shape: vec![sensor.height as usize, sensor.width as usize, 4],
            values: Values::F32(renders[&(index as u32)].as_flattened()),
        })
        .collect();
    let text = BTreeMap::from([(MARK.to_owned(), mark.to_owned())]);
    Ok(tensors::write(path, &tensors, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparent_parts_show_what_is_behind() {
        assert_eq!(over([0.2, 0.4, 0.6, 0.5], Some([1.0; 3]))[..3], [0.6, 0.7, 0.8]);
        assert_eq!(over([0.2, 0.4, 0.6, 0.5], None)[..3], [0.2, 0.4, 0.6]);
        let random = backdrop_color(Backdrop::Random, &Background::None);
        assert_eq!(random, Some([0.0; 3]));
        assert_eq!(backdrop_color(Backdrop::Opaque, &Background::None), None);
    }

    #[test]
    fn views_of_more_pixels_than_are_numbered_are_refused_and_not_wrapped() {
        let sensor = |width, height| Sensor {
            width,
            height,
            ..Sensor::default()
        };
        // The products are 2³², which wraps to 0, and 2³² + 2, which wraps to 2.
        let scene = Scene {
            sensors: vec![sensor(65536, 65536), sensor(6, 715_827_883), sensor(3, 2)],
            ..Scene::default()
        };
        let targets = Targets::Constant([0.5; 3]);
        for index in [0, 1] {
            let error = targets.coded_image(&scene, index).expect_err("too many").to_string();
            assert!(error.contains("pixels are more than are supported"), "{error}");
        }
        let image = targets.coded_image(&scene, 2).expect("six").expect("a constant");
        assert_eq!((image.width, image.height, image.data.len()), (3, 2, 18));
        let half = [sensor(65536, 32768), sensor(65536, 32768)];
        assert!(checked_pixels(&half, &[0]).is_ok() && checked_pixels(&half, &[0, 1]).is_err());
    }

    #[test]
    fn a_target_whose_files_change_is_another() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let write_mesh = |height: f32| {
            let text = format!("v 0 0 {height}\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
            std::fs::write(at("mesh.obj"), text).expect("writable");
        };
        let write_texture = |grey: f32| {
            let (width, height, channels) = (1, 1, 3);
            let data = vec![grey; 3];
            let image = Image {
                width,
                height,
                channels,
                data,
            };
            crate::io::image::write_exr(&at("texture.exr"), &image).expect("writable");
        };
        let write_grid = |density: f32| {
            let grid = crate::io::Grid {
                size: [2, 1, 1],
                channels: 1,
                bounds: crate::io::UNIT_CUBE,
                data: vec![density; 2],
            };
            crate::io::vol::write(&at("smoke.vol"), &grid).expect("writable");
        };
        let text = r#"{
            "m": {"type": "obj", "filename": "mesh.obj",
                  "b": {"type": "diffuse", "reflectance": {"type": "bitmap", "filename": "texture.exr"}}},
            "s": {"type": "sphere", "b": {"type": "null"}, "interior": {"type": "heterogeneous",
                  "sigma_t": {"type": "gridvolume", "filename": "smoke.vol"}}},
            "p": {"type": "point"}}"#;
        std::fs::write(at("target.json"), text).expect("writable");
        let mark = || {
            let target = scene::load_target(&at("target.json")).expect("no mistakes");
            let (resident, _) = Resident::new(&target).expect("it can be flattened");
            target_mark(&target, &resident, 4, "")
        };
        write_mesh(0.0);
        write_texture(0.25);
        write_grid(0.5);
        let before = mark();
        assert_eq!(before, mark());
        write_mesh(0.5);
        let meshed = mark();
        write_texture(0.75);
        let textured = mark();
        write_grid(0.75);
        let marks = [before, meshed, textured, mark()];
        for (i, one) in marks.iter().enumerate() {
            assert!(!marks[..i].contains(one), "{marks:?}");
        }
    }

    #[test]
    fn the_cache_is_of_one_target_only() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("references.safetensors");
        let sensor = Sensor {
            width: 2,
            height: 1,
            ..Sensor::default()
        };
        let renders = HashMap::from([(0, vec![[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, -1.0]])]);
        let sensors = [sensor];
        write_cache(&path, "mark", &sensors, &renders).expect("writable");
        assert_eq!(read_cache(&path, "mark", &sensors), Some(renders));
        assert_eq!(read_cache(&path, "other", &sensors), None);
        std::fs::write(&path, "damaged").expect("writable");
        assert_eq!(read_cache(&path, "mark", &sensors), None);
    }

    #[test]
    fn random_backdrops_are_shown_by_the_emitters_colour() {
        let of = |values: &[f32]| {
            let radiance = scene::Array {
                path: "sky".into(),
                kind: crate::params::Kind::Value,
                shape: crate::params::Shape {
                    size: [1; 3],
                    channels: 3,
                },
                source: Source::Fill(values.to_vec()),
                tuning: None,
            };
            backdrop_color(Backdrop::Random, &Background::Constant { radiance })
        };
        assert_eq!(of(&[0.1, 0.2, 0.3]), Some([0.1, 0.2, 0.3]));
        assert_eq!(of(&[0.4]), Some([0.4; 3]));
        assert_eq!(
            backdrop_color(Backdrop::Color([0.5, 0.6, 0.7]), &Background::None),
            Some([0.5, 0.6, 0.7])
        );
        // A quarter of the first over three quarters of the second.
        assert_eq!(
            over([1.0, 0.0, 0.5, 0.25], Some([0.0, 1.0, 0.5]))[..3],
            [0.25, 0.75, 0.5]
        );
    }
}
