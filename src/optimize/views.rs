//! Training views and previewed views of a run.

use anyhow::{Result, anyhow, bail};

use crate::device::{Batch, Device, Keys};
use crate::output::images::file_stems;
use crate::resident::Resident;
use crate::resident::layout::{NO_REFERENCE, backdrop};
use crate::resident::pages::physical_bytes;
use crate::scene::{Optimize, References, Scene};
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key};

/// A view that is rendered during the run.
#[derive(Debug)]
pub(super) struct Preview {
    /// Index of the scene's sensor, and of the sensor record used for it.
    pub sensor: usize,
    pub record: u32,
    pub stem: String,
}

/// Settings of a render for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderSettings {
    pub seed: u64,
    /// Iterations done; the noise differs between iterations.
    pub iteration: u32,
    pub spp: u32,
}

/// Renders all pixels of one sensor for display.
///
/// # Errors
/// The device fails, or the view has more than 2³² pixels or more than the machine can hold.
pub fn render_view(device: &mut dyn Device, sensor: u32, look: RenderSettings) -> Result<Vec<[f32; 4]>> {
    let (batch, keys) = whole_view(device, sensor, look)?;
    device.develop(&batch, keys, look.spp)?;
    Ok(device.image()?)
}

/// All pixels of one sensor, and the random numbers of a render for display.
fn whole_view(device: &dyn Device, sensor: u32, look: RenderSettings) -> Result<(Batch, Keys)> {
    let record = &device.sensors()[sensor as usize];
    check_picture([record.width, record.height], physical_bytes())?;
    let table = PixelTable::new(device.sensors(), &[sensor]);
    let table = table.ok_or_else(|| anyhow!("a view has more than 2³² pixels"))?;
    let keys = Keys {
        objective: pass_key(look.seed, look.iteration, Pass::Objective),
        pass: pass_key(look.seed, look.iteration, Pass::Preview),
    };
    Ok((Batch { table, drawn: None }, keys))
}

/// Bytes of host memory that a pixel takes at least: sixteen in each of three pictures, that of the CPU device (or the
/// one read back from a GPU), that in the order of pixels, and the one that is written.
const PIXEL_BYTES: u64 = 48;

/// Refuses, before it is rendered, a picture that takes more bytes than the memory of the `machine`.
fn check_picture([width, height]: [u32; 2], machine: Option<u64>) -> Result<()> {
    let needed = (PIXEL_BYTES * u64::from(width)).saturating_mul(u64::from(height));
    let Some(there) = machine.filter(|there| needed > *there) else {
        return Ok(());
    };
    let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
    bail!(
        "a picture of {width}×{height} pixels takes {:.1} GiB, the machine has {:.1} GiB; take fewer pixels, or a crop window",
        gib(needed),
        gib(there)
    )
}

/// Renders an auxiliary channel (AOV) of the first hits, with the random numbers of [`render_view`]; `aov` is a code of
/// [`crate::resident::layout::aov`].
///
/// # Errors
/// As [`render_view`]; also if the scene has no surfaces.
pub fn render_view_aov(device: &mut dyn Device, sensor: u32, look: RenderSettings, aov: u32) -> Result<Vec<[f32; 4]>> {
    let (batch, keys) = whole_view(device, sensor, look)?;
    device.render_aov(&batch, keys, look.spp, aov)?;
    Ok(device.image()?)
}

/// Indices of the training sensors.
pub(super) fn training_views(scene: &Scene, references: &References) -> Vec<u32> {
    let images = *references == References::Images;
    let sensors = scene.sensors.iter().enumerate();
    sensors
        .filter(|(_, s)| !s.held_out && (!images || s.reference.is_some()))
        .map(|(i, _)| i as u32)
        .collect()
}

/// Indices of the previewed sensors.
pub(super) fn chosen_views(scene: &Scene, settings: &Optimize, training: &[u32]) -> Result<Vec<u32>> {
    if settings.output.sensors.is_empty() {
        return Ok(training.first().copied().into_iter().collect());
    }
    let find = |name: &String| {
        let index = scene.sensors.iter().position(|s| s.name == *name);
        index.ok_or_else(|| anyhow!("optimize.output.sensors: there is no sensor named `{name}`"))
    };
    let sensors = settings.output.sensors.iter();
    sensors.map(|name| find(name).map(|i| i as u32)).collect()
}

/// The views to preview. A view with random training background gets a second record without reference, which shows
/// the scene's own emitter.
pub(super) fn previews(scene: &Scene, chosen: &[u32], resident: &mut Resident) -> Vec<Preview> {
    let names: Vec<&str> = scene.sensors.iter().map(|s| s.name.as_str()).collect();
    let stems = file_stems(&names);
    let mut previews = Vec::new();
    for sensor in chosen.iter().map(|&i| i as usize) {
        let mut record = sensor as u32;
        if resident.sensors[sensor].backdrop == backdrop::RANDOM {
            let mut plain = resident.sensors[sensor];
            plain.backdrop = backdrop::OPAQUE;
            plain.first_pixel = NO_REFERENCE;
            record = resident.sensors.len() as u32;
            resident.sensors.push(plain);
            if let Some(views) = resident.views_mut() {
                views.follow(record, sensor as u32);
            }
        }
        let stem = stems[sensor].clone();
        previews.push(Preview { sensor, record, stem });
    }
    previews
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Sensor;

    #[test]
    fn a_picture_that_no_memory_holds_is_refused() {
        assert!(check_picture([20_000, 10_000], None).is_ok());
        assert!(check_picture([20_000, 10_000], Some(16 << 30)).is_ok());
        let told = check_picture([20_000, 10_000], Some(8 << 30))
            .expect_err("too large")
            .to_string();
        assert!(
            told.contains("20000×10000 pixels takes 8.9 GiB, the machine has 8.0 GiB"),
            "{told}"
        );
    }

    /// A view with a random backdrop is previewed by an additional record at the end, without backdrop and reference.
    #[test]
    fn views_of_random_backdrops_are_shown_over_the_emitter() {
        let sensor = |name: &str| Sensor {
            name: name.into(),
            ..Sensor::default()
        };
        let scene = Scene {
            sensors: ["a/b", "b", "c"].map(sensor).into(),
            ..Scene::default()
        };
        let mut resident = Resident::empty();
        resident.sensors = scene.sensors.iter().map(crate::resident::sensor_record).collect();
        for (record, backdrop) in
            resident
                .sensors
                .iter_mut()
                .zip([backdrop::RANDOM, backdrop::OPAQUE, backdrop::RANDOM])
        {
            (record.backdrop, record.first_pixel) = (backdrop, 7);
        }
        let found = previews(&scene, &[2, 1, 0], &mut resident);
        let told: Vec<_> = found.iter().map(|p| (p.sensor, p.record, &p.stem[..])).collect();
        assert_eq!(told, [(2, 3, "c"), (1, 1, "b"), (0, 4, "a_b")]);
        let records: Vec<_> = resident.sensors.iter().map(|s| (s.backdrop, s.first_pixel)).collect();
        let (random, opaque) = (backdrop::RANDOM, backdrop::OPAQUE);
        let plain = (opaque, NO_REFERENCE);
        assert_eq!(records, [(random, 7), (opaque, 7), (random, 7), plain, plain]);
    }

    #[test]
    fn training_views_are_those_that_are_not_held_out_and_have_a_reference() {
        let sensor = |held_out, reference: bool| Sensor {
            held_out,
            reference: reference.then(|| crate::scene::Reference {
                path: "a.png".into(),
                downscale: 1,
                backdrop: crate::scene::Backdrop::Opaque,
            }),
            ..Sensor::default()
        };
        let scene = Scene {
            sensors: vec![
                sensor(false, true),
                sensor(true, true),
                sensor(false, false),
                sensor(true, false),
            ],
            ..Scene::default()
        };
        assert_eq!(training_views(&scene, &References::Images), [0]);
        assert_eq!(training_views(&scene, &References::Constant([0.0; 3])), [0, 2]);
    }
}
