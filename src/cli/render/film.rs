//! Pictures to be written: the radiance at sensors, with further channels (AOVs, moments).

use anyhow::Result;

use crate::device::Device;
use crate::io::image::Channel;
use crate::optimize::{RenderSettings, render_view, render_view_aov};
use crate::output::images::Picture;
use crate::resident::layout;
use crate::scene::{AovKind, Channels, ColorSpace, Scene, Sensor};

/// A picture to be written: the sensors that share it, side by side, and its name.
pub(super) struct Film<'a> {
    pub(super) name: &'a str,
    pub(super) sensors: Vec<usize>,
}

impl Film<'_> {
    /// Renders the sensors, with the further channels that the scene asks for; None without a sensor.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn picture(
        &self,
        scene: &Scene,
        device: &mut dyn Device,
        look: RenderSettings,
    ) -> Result<Option<Picture>> {
        let Channels { aovs, depth, moments } = &scene.channels;
        let sensors = self.sensors.len() as u32;
        device.gauge().begin_picture(match moments {
            Some(_) => sensors.saturating_mul(look.spp),
            None => sensors.saturating_mul(1 + aovs.len() as u32),
        });
        if let Some(name) = moments {
            return self.with_moments(name, scene, device, look);
        }
        let Some(mut picture) = self.channel(depth.then_some(AovKind::Depth), scene, device, look)? else {
            return Ok(None);
        };
        if *depth {
            // Depth is shown as grey, and is no light that would be sRGB-coded.
            picture.pixels.iter_mut().for_each(|p| *p = [p[0], p[0], p[0], p[3]]);
            picture.color_space = ColorSpace::Linear;
        }
        for aov in aovs {
            let shown = self.channel(Some(aov.kind), scene, device, look)?;
            for (c, end) in aov.kind.channels().iter().enumerate() {
                picture.beside.push(Channel {
                    name: format!("{}.{end}", aov.name),
                    values: shown.iter().flat_map(|shown| &shown.pixels).map(|p| p[c]).collect(),
                });
            }
        }
        Ok(Some(picture))
    }

    /// Renders radiance, or an AOV: a property of the first surface that a ray hits.
    fn channel(
        &self,
        aov: Option<AovKind>,
        scene: &Scene,
        device: &mut dyn Device,
        look: RenderSettings,
    ) -> Result<Option<Picture>> {
        let mut parts = Vec::new();
        for &index in &self.sensors {
            let pixels = match aov {
                Some(kind) => render_view_aov(device, index as u32, look, aov_code(kind))?,
                None => render_view(device, index as u32, look)?,
            };
            parts.push(Picture::of(&scene.sensors[index], pixels));
        }
        Ok(Picture::joined(&parts))
    }

    /// The mean of pictures of one sample a pixel, and the means of their tristimulus values and of the squares of these
    /// values.
    fn with_moments(
        &self,
        name: &str,
        scene: &Scene,
        device: &mut dyn Device,
        look: RenderSettings,
    ) -> Result<Option<Picture>> {
        let mut sums: Vec<Sums> = Vec::new();
        let mut newest = None;
        for sample in 0..look.spp {
            let alone = RenderSettings {
                iteration: look.iteration + sample,
                spp: 1,
                ..look
            };
            newest = self.channel(None, scene, device, alone)?;
            let pixels = newest.iter().flat_map(|picture| &picture.pixels);
            sums.resize(pixels.clone().count(), Sums::default());
            sums.iter_mut().zip(pixels).for_each(|(sums, pixel)| sums.add(pixel));
        }
        let Some(mut picture) = newest else {
            return Ok(None);
        };
        let share = 1.0 / f64::from(look.spp);
        for (pixel, sums) in picture.pixels.iter_mut().zip(&sums) {
            *pixel = sums.pixel.map(|x| (x * share) as f32);
        }
        for (prefix, of) in [("", 0), ("m2_", 1)] {
            for (axis, end) in ["X", "Y", "Z"].into_iter().enumerate() {
                picture.beside.push(Channel {
                    name: format!("{prefix}{name}.{end}"),
                    values: sums
                        .iter()
                        .map(|sums| (sums.moments[of][axis] * share) as f32)
                        .collect(),
                });
            }
        }
        Ok(Some(picture))
    }
}

/// Sums over the samples of a pixel.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    pixel: [f64; 4],
    /// Sums of the tristimulus values, and of their squares.
    moments: [[f64; 3]; 2],
}

impl Sums {
    fn add(&mut self, pixel: &[f32; 4]) {
        for (sum, x) in self.pixel.iter_mut().zip(pixel) {
            *sum += f64::from(*x);
        }
        for (axis, row) in RGB_TO_XYZ.iter().enumerate() {
            let value: f64 = row.iter().zip(pixel).map(|(share, x)| share * f64::from(*x)).sum();
            self.moments[0][axis] += value;
            self.moments[1][axis] += value * value;
        }
    }
}

/// X, Y and Z of linear colours with the primaries of sRGB, as Mitsuba has them.
const RGB_TO_XYZ: [[f64; 3]; 3] = [
    [0.412453, 0.357580, 0.180423],
    [0.212671, 0.715160, 0.072169],
    [0.019334, 0.119193, 0.950227],
];

/// The films of the chosen sensors: one for each, or one for a whole batch if all of its sensors are chosen.
pub(super) fn films<'a>(scene: &'a Scene, chosen: &[usize]) -> Vec<Film<'a>> {
    let mut films: Vec<Film> = Vec::new();
    for &index in chosen {
        let sensor = &scene.sensors[index];
        let whole = |batch: &&String| {
            let of_batch = |s: &Sensor| s.batch.as_ref() == Some(*batch);
            let all = scene.sensors.iter().filter(|s| of_batch(s)).count();
            chosen.iter().filter(|&&i| of_batch(&scene.sensors[i])).count() == all
        };
        let name = sensor.batch.as_ref().filter(whole).unwrap_or(&sensor.name);
        match films.iter_mut().find(|film| film.name == name) {
            Some(film) => film.sensors.push(index),
            None => films.push(Film {
                name,
                sensors: vec![index],
            }),
        }
    }
    films
}

/// The code of an AOV on the devices.
fn aov_code(kind: AovKind) -> u32 {
    match kind {
        AovKind::Albedo => layout::aov::ALBEDO,
        AovKind::Depth => layout::aov::DEPTH,
        AovKind::Position => layout::aov::POSITION,
        AovKind::Uv => layout::aov::UV,
        AovKind::GeoNormal => layout::aov::GEO_NORMAL,
        AovKind::ShNormal => layout::aov::SH_NORMAL,
        AovKind::DpDu => layout::aov::DP_DU,
        AovKind::DpDv => layout::aov::DP_DV,
        AovKind::DuvDx => layout::aov::DUV_DX,
        AovKind::DuvDy => layout::aov::DUV_DY,
        AovKind::PrimIndex => layout::aov::PRIM_INDEX,
        AovKind::ShapeIndex => layout::aov::SHAPE_INDEX,
    }
}
