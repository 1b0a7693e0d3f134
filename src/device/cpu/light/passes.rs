//! The passes of light tracing. The light is cut into bands of rows whose number is fixed; each has a film of its own, and films
//! are summed in the order of the bands, so that the number of threads changes no bit.

use rayon::prelude::*;

use super::band::{Band, ROWS_BETWEEN, Sheet};
use crate::device::cpu::chunk::{CHUNK, Place, chunks};
use crate::device::cpu::frame::Frame;
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::update::Updates;
use crate::device::{Batch, DeviceError, ReplayStats, Result};
use crate::each::EachEntry;
use crate::resident::light::{Film, LightScene};
use crate::transport::light::heights::Heights;

/// The most bands of a light.
const BANDS: usize = 32;

/// The most bytes that the films of all bands may take, unless a single band's takes more.
const BAND_BYTES: usize = 1 << 28;

/// Bytes of a film with its border.
fn sheet_bytes(size: [u32; 2], radius: f32) -> usize {
    let border = 2 * Sheet::border(radius);
    16 * (size[0] as usize + border) * (size[1] as usize + border)
}

/// The number of bands that a film's light is cut into.
fn bands(size: [u32; 2], radius: f32) -> usize {
    (BAND_BYTES / sheet_bytes(size, radius))
        .clamp(1, BANDS)
        .min(size[1] as usize)
}

/// Bytes that light tracing needs beside the parameters, for the largest of the films of these sizes and radii of filters: films of
/// bands, the adjoint image with its border, and the bands' rows of derivatives by `heights` along x and y.
pub fn light_bytes(films: impl IntoIterator<Item = ([u32; 2], f32)>, [nx, ny]: [usize; 2]) -> u64 {
    let of = |(size, radius)| {
        let bands = bands(size, radius);
        // Rows of neighbouring bands overlap.
        let rows = ny + ROWS_BETWEEN * (bands - 1);
        ((bands + 1) * sheet_bytes(size, radius)).saturating_add(nx.saturating_mul(4 * rows)) as u64
    };
    films.into_iter().map(of).max().unwrap_or(0)
}

/// The passes of light tracing.
#[derive(Debug)]
pub(in crate::device::cpu) struct LightPasses {
    pub(in crate::device::cpu) scene: LightScene,
    /// A film for each band.
    sheets: Vec<Sheet>,
    /// Bytes that the last backward pass took beside them.
    sent: usize,
}

impl LightPasses {
    pub(in crate::device::cpu) fn new(scene: LightScene) -> Self {
        Self {
            scene,
            sheets: Vec::new(),
            sent: 0,
        }
    }

    /// Splats whole views.
    pub(in crate::device::cpu) fn render(&mut self, inputs: &Inputs, pass: Pass, frame: &mut Frame) -> Result<()> {
        check(inputs, pass.batch)?;
        let of_batch = chunks(&inputs.sensors, pass.batch);
        let image = frame.begin(of_batch.len());
        for (slot, &sensor) in pass.batch.table.sensors.iter().enumerate() {
            let film = self.scene.film(sensor as usize, &inputs.sensors[sensor as usize]);
            let bands = paths(&self.scene, inputs, pass, sensor);
            let side = Sheet::of(&film);
            if self.sheets.len() != bands.len()
                || self.sheets.iter().any(|sheet| sheet.pixels.len() != side.pixels.len())
            {
                self.sheets = bands.iter().map(|_| Sheet::of(&film)).collect();
            }
            self.sheets.par_iter_mut().zip(&bands).for_each(|(sheet, band)| {
                sheet.pixels.fill([0.0; 4]);
                band.render(sheet);
            });
            let exposure = exposure(&film, pass.spp);
            let sheets = &self.sheets;
            let chunked = image.par_chunks_mut(CHUNK).zip(&of_batch);
            chunked.for_each(|(image, chunk)| {
                for Place { place, pixel, .. } in chunk.pixels(&inputs.sensors, pass.batch, pass.keys) {
                    if !is_of(chunk, slot) {
                        break;
                    }
                    let at = side.index((pixel.index % film.width) as usize, (pixel.index / film.width) as usize);
                    let mut sum = [0f32; 3];
                    for sheet in sheets {
                        for c in 0..3 {
                            sum[c] += sheet.pixels[at][c];
                        }
                    }
                    let [r, g, b] = [0, 1, 2].each(|c| sum[c] * exposure[c]);
                    image[place] = [r, g, b, 0.0];
                }
            });
        }
        Ok(())
    }

    /// Adds the derivatives by the heights to their gradient.
    pub(in crate::device::cpu) fn backpropagate(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        adjoint: &[[f32; 3]],
        updates: &mut Updates,
    ) -> Result<ReplayStats> {
        check(inputs, pass.batch)?;
        let slot = self.scene.heights;
        let mut stats = ReplayStats::default();
        if updates.gradients[slot].is_empty() {
            return Ok(stats);
        }
        let of_batch = chunks(&inputs.sensors, pass.batch);
        let mut sent = 0;
        for (view, &sensor) in pass.batch.table.sensors.iter().enumerate() {
            let film = self.scene.film(sensor as usize, &inputs.sensors[sensor as usize]);
            let exposure = exposure(&film, pass.spp);
            let mut sheet = Sheet::of(&film);
            for (adjoint, chunk) in adjoint
                .chunks(CHUNK)
                .zip(&of_batch)
                .filter(|(_, chunk)| is_of(chunk, view))
            {
                for Place { place, pixel, .. } in chunk.pixels(&inputs.sensors, pass.batch, pass.keys) {
                    let at = sheet.index((pixel.index % film.width) as usize, (pixel.index / film.width) as usize);
                    let [r, g, b] = [0, 1, 2].each(|c| adjoint[place][c] * exposure[c]);
                    sheet.pixels[at] = [r, g, b, 0.0];
                }
            }
            let bands = paths(&self.scene, inputs, pass, sensor);
            let found: Vec<_> = bands.par_iter().map(|band| band.backpropagate(&sheet)).collect();
            let rows: usize = found.iter().map(|rows| size_of_val(&rows.values[..])).sum();
            sent = sent.max(size_of_val(&sheet.pixels[..]) + rows);
            let width = self.scene.size[0];
            let gradient = &mut updates.gradients[slot];
            for rows in found {
                let begin = rows.first * width;
                for (sum, g) in gradient[begin..begin + rows.values.len()].iter_mut().zip(rows.values) {
                    *sum += g;
                }
            }
            let count = u64::from(film.width) * u64::from(film.height) * u64::from(pass.spp);
            stats = stats
                + ReplayStats {
                    rays: count,
                    samples: count,
                    ..ReplayStats::default()
                };
        }
        self.sent = sent;
        let len = updates.gradients[slot].len();
        updates.activity[slot].touch(0..len);
        Ok(stats)
    }

    pub(in crate::device::cpu) fn bytes(&self) -> u64 {
        let films = self.sheets.iter().map(|sheet| size_of_val(&sheet.pixels[..]));
        (films.sum::<usize>() + self.sent) as u64
    }
}

/// Whether a chunk is of the view in this slot of its batch.
fn is_of(chunk: &crate::device::cpu::chunk::Chunk, view: usize) -> bool {
    matches!(chunk, crate::device::cpu::chunk::Chunk::Tile { slot, .. } if *slot as usize == view)
}

/// The share of a path in the pixels of a film, for each colour.
fn exposure(film: &Film<'_>, spp: u32) -> [f32; 3] {
    let paths = f64::from(film.width) * f64::from(film.height) * f64::from(spp);
    film.exposure.each(|c| (f64::from(c) / paths) as f32)
}

/// The bands of a view, in order.
fn paths<'a>(scene: &'a LightScene, inputs: &'a Inputs, pass: Pass, sensor: u32) -> Vec<Band<'a>> {
    let film = scene.film(sensor as usize, &inputs.sensors[sensor as usize]);
    let count = bands([film.width, film.height], film.filter.radius) as u32;
    let edge = |band: u32| (u64::from(band) * u64::from(film.height) / u64::from(count)) as u32;
    let of = |band| Band {
        scene,
        film,
        sensor,
        heights: Heights {
            values: &inputs.params.parameters[scene.heights].values,
            size: scene.size,
        },
        key: pass.keys.pass,
        spp: pass.spp,
        rows: [edge(band), edge(band + 1)],
    };
    (0..count).map(of).collect()
}

fn check(inputs: &Inputs, batch: &Batch) -> Result<()> {
    if batch.drawn.is_some() {
        return Err(DeviceError::Unavailable(
            "light arrives anywhere on a film: look at whole views, not at single pixels".into(),
        ));
    }
    if !inputs.cluster.is_single() {
        return Err(DeviceError::Unavailable(
            "`ptracer` runs in one process: start one rank alone".into(),
        ));
    }
    Ok(())
}
