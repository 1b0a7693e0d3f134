//! The passes of light tracing. The light is cut into bands of rows whose number is fixed; each has a film of its own, and films
//! are summed in the order of the bands, so that neither the number of threads nor that of ranks, which are dealt the bands,
//! changes a bit.

use std::borrow::Cow;

use rayon::prelude::*;

use super::band::{Band, GradientPart, Leveled};
use super::sheet::{Sheet, sum_over_ranks};
use crate::cluster::Cluster;
use crate::device::cpu::chunk::{CHUNK, Place, chunks};
use crate::device::cpu::frame::Frame;
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::update::Updates;
use crate::device::{ReplayStats, Result, check_whole_views};
use crate::each::EachEntry;
use crate::resident::light::{Film, LightScene, SplatFilter};
use crate::resident::optics::{CubeRecord, OpticRecord};
use crate::transport::light::cube::CubeOptic;
use crate::transport::light::heights::Heights;
use crate::transport::light::index::{Index, border, pad, padded};
use crate::transport::light::slab::{ROWS_BETWEEN, SlabOptic};

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
pub(super) fn bands(size: [u32; 2], radius: f32) -> usize {
    (BAND_BYTES / sheet_bytes(size, radius))
        .clamp(1, BANDS)
        .min(size[1] as usize)
}

/// Bytes of the films of bands, the largest over the sensors.
pub(in crate::device::cpu) fn film_bytes(scene: &LightScene) -> u64 {
    let of =
        |(film, filter): (&[u32; 2], &SplatFilter)| bands(*film, filter.radius) * sheet_bytes(*film, filter.radius);
    let films = scene.film_sizes.iter().zip(&scene.filters);
    films.map(of).max().unwrap_or(0) as u64
}

/// Bytes that a backward pass takes for a while, the largest over the sensors: the adjoint image with its border, and derivatives by
/// the parameter, which has `size` texels. For a slab, a band has those by the heights of the rows that its light passes. For a cube,
/// a padded grid holds the index, one the sum of derivatives, and each thread that of a band; each of several ranks has those of all
/// bands, and sends them.
pub(in crate::device::cpu) fn pass_bytes(scene: &LightScene, size: [usize; 3], cluster: Cluster) -> u64 {
    let of = |sensor: usize| {
        let (film, radius) = (scene.film_sizes[sensor], scene.filters[sensor].radius);
        let bands = bands(film, radius);
        let derivatives = match &scene.beam(sensor).optic {
            OpticRecord::Cube(cube) => {
                let whole = padded(size).into_iter().fold(4, usize::saturating_mul);
                let of_bands = match cluster.is_single() {
                    true => {
                        let threads = rayon::current_num_threads().min(bands);
                        touched_bytes(size, bands, cube).min(whole).saturating_mul(threads)
                    }
                    false => whole.saturating_mul(2 * bands),
                };
                whole.saturating_mul(2).saturating_add(of_bands)
            }
            // Rows of neighbouring bands overlap.
            OpticRecord::Slab(_) => (4 * size[0]).saturating_mul(size[1] + ROWS_BETWEEN * (bands - 1)),
        };
        sheet_bytes(film, radius).saturating_add(derivatives)
    };
    (0..scene.film_sizes.len()).map(of).max().unwrap_or(0) as u64
}

/// Rows of a grid that light of a band reaches beside those that it passes straight: those of the spline, and where a weak index bends
/// it.
const ROWS_BESIDE: usize = 6;

/// Bytes of the memory pages that a band's derivatives are in, which the system provides where they are written.
fn touched_bytes(size: [usize; 3], bands: usize, cube: &CubeRecord) -> usize {
    const PAGE: usize = 1 << 12;
    let [_, across, along] = cube.lamp.each(|v: [f32; 3]| v.each(f32::abs));
    let onward = cube.direction.each(f32::abs);
    // The axis along which the light's rows follow each other, and the share of the cube's side that a band and the way of its
    // light through the cube extend along it; the side is two long.
    let axis = (0..3).max_by(|&a, &b| along[a].total_cmp(&along[b])).unwrap_or(2);
    let steepest = onward.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(*x));
    let share = 0.5 * (along[axis] / bands as f32 + across[axis]) + onward[axis] / steepest;
    let sides = padded(size);
    let rows = ((share * sides[axis] as f32).ceil() as usize)
        .saturating_add(ROWS_BESIDE)
        .min(sides[axis]);
    let run = sides[..axis]
        .iter()
        .fold(4 * rows, |bytes, side| bytes.saturating_mul(*side));
    let runs = sides[axis + 1..]
        .iter()
        .fold(1, |count: usize, side| count.saturating_mul(*side));
    // A run begins anywhere on a page.
    runs.saturating_mul(run.saturating_add(PAGE))
}

/// The passes of light tracing.
#[derive(Debug)]
pub(in crate::device::cpu) struct LightPasses {
    pub(in crate::device::cpu) scene: LightScene,
    /// A film for each band.
    sheets: Vec<Sheet>,
    /// The most bytes that they have taken: views may have films of different sizes.
    most: usize,
}

impl LightPasses {
    pub(in crate::device::cpu) fn new(scene: LightScene) -> Self {
        Self {
            scene,
            sheets: Vec::new(),
            most: 0,
        }
    }

    /// Splats whole views.
    pub(in crate::device::cpu) fn render(&mut self, inputs: &Inputs, pass: Pass, frame: &mut Frame) -> Result<()> {
        check_whole_views(pass.batch)?;
        let of_batch = chunks(&inputs.sensors, pass.batch);
        let image = frame.begin(of_batch.len());
        let index = padded_index(&self.scene, inputs);
        for (slot, &sensor) in pass.batch.table.sensors.iter().enumerate() {
            let film = self.scene.film(sensor as usize, &inputs.sensors[sensor as usize]);
            match &self.scene.beam(sensor as usize).optic {
                OpticRecord::Slab(slab) => {
                    let heights = heights(&self.scene, inputs);
                    let optic = SlabOptic { slab, heights };
                    let bands = own_paths(&self.scene, &optic, film, (inputs, pass), sensor);
                    splat(&mut self.sheets, &bands, &film);
                }
                OpticRecord::Cube(cube) => {
                    let index = self::index(&self.scene, &index);
                    let optic = CubeOptic { cube, index };
                    let bands = own_paths(&self.scene, &optic, film, (inputs, pass), sensor);
                    splat(&mut self.sheets, &bands, &film);
                }
            }
            let films = self.sheets.iter().map(|sheet| size_of_val(&sheet.pixels[..]));
            self.most = self.most.max(films.sum());
            let exposure = exposure(&film, pass.spp);
            let side = Sheet::of(&film);
            let joined;
            let sheets = match inputs.cluster.is_single() {
                true => &self.sheets[..],
                false => {
                    joined = [sum_over_ranks(inputs.cluster, &self.sheets, Sheet::of(&film))];
                    &joined
                }
            };
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

    /// Adds the derivatives by the slab's heights or the cube's index to their gradient.
    pub(in crate::device::cpu) fn backpropagate(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        adjoint: &[[f32; 3]],
        updates: &mut Updates,
    ) -> Result<ReplayStats> {
        check_whole_views(pass.batch)?;
        let slot = self.scene.parameter;
        let mut stats = ReplayStats::default();
        if updates.gradients[slot].is_empty() {
            return Ok(stats);
        }
        let of_batch = chunks(&inputs.sensors, pass.batch);
        let adjoint = &of_all_chunks(inputs.cluster, adjoint)[..];
        let index = padded_index(&self.scene, inputs);
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
            let gradient = &mut updates.gradients[slot];
            match &self.scene.beam(sensor as usize).optic {
                OpticRecord::Slab(slab) => {
                    let heights = heights(&self.scene, inputs);
                    let optic = SlabOptic { slab, heights };
                    let bands = own_paths(&self.scene, &optic, film, (inputs, pass), sensor);
                    let found = of_all_ranks(inputs.cluster, gather(&bands, &sheet));
                    found.iter().for_each(|part| add(&mut gradient[part.first..], part));
                }
                OpticRecord::Cube(cube) => {
                    let index = self::index(&self.scene, &index);
                    let optic = CubeOptic { cube, index };
                    let bands = own_paths(&self.scene, &optic, film, (inputs, pass), sensor);
                    let sum = sum_of_bands(inputs.cluster, &bands, &sheet);
                    border(self.scene.size)
                        .zip(&sum)
                        .for_each(|(entry, g)| gradient[entry] += g);
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
        let len = updates.gradients[slot].len();
        updates.activity[slot].touch(0..len);
        Ok(stats)
    }

    pub(in crate::device::cpu) fn bytes(&self) -> u64 {
        self.most as u64
    }
}

/// Whether a chunk is of the view in this slot of its batch.
pub(super) fn is_of(chunk: &crate::device::cpu::chunk::Chunk, view: usize) -> bool {
    matches!(chunk, crate::device::cpu::chunk::Chunk::Tile { slot, .. } if *slot as usize == view)
}

/// The factor on a path's splat for each colour: the film's exposure over the number of paths.
fn exposure(film: &Film<'_>, spp: u32) -> [f32; 3] {
    let paths = f64::from(film.width) * f64::from(film.height) * f64::from(spp);
    film.exposure.each(|c| (f64::from(c) / paths) as f32)
}

/// Splats the bands, each onto a sheet of its own, which are made anew if the film has changed.
fn splat<O: Leveled>(sheets: &mut Vec<Sheet>, bands: &[Band<'_, O>], film: &Film<'_>) {
    let side = Sheet::of(film);
    if sheets.len() != bands.len() || sheets.iter().any(|sheet| sheet.pixels.len() != side.pixels.len()) {
        *sheets = bands.iter().map(|_| Sheet::of(film)).collect();
    }
    sheets.par_iter_mut().zip(bands).for_each(|(sheet, band)| {
        sheet.pixels.fill([0.0; 4]);
        band.render(sheet);
    });
}

/// The derivatives of each band.
fn gather<O: Leveled>(bands: &[Band<'_, O>], sheet: &Sheet) -> Vec<GradientPart> {
    bands.par_iter().map(|band| band.backpropagate(sheet)).collect()
}

/// The sum of all bands' derivatives by a padded grid, in their order. A band has such a grid of its own: without ranks as many bands
/// are followed at a time as there are threads, while ranks send each other all of theirs.
fn sum_of_bands<O: Leveled>(cluster: Cluster, bands: &[Band<'_, O>], sheet: &Sheet) -> Vec<f32> {
    let rounds: Vec<&[Band<'_, O>]> = match cluster.is_single() {
        true => bands.chunks(rayon::current_num_threads()).collect(),
        false => vec![bands],
    };
    let mut sum = Vec::new();
    for round in rounds {
        for part in of_all_ranks(cluster, gather(round, sheet)) {
            match sum.is_empty() {
                true => sum = part.values,
                false => add(&mut sum, &part),
            }
        }
    }
    sum
}

/// Adds a part's values to `sums`, which begin at the part's first entry.
fn add(sums: &mut [f32], part: &GradientPart) {
    for (sum, g) in sums.iter_mut().zip(&part.values) {
        *sum += g;
    }
}

fn heights<'a>(scene: &LightScene, inputs: &'a Inputs) -> Heights<'a, f32> {
    Heights {
        values: &inputs.params.parameters[scene.parameter].values,
        size: [scene.size[0], scene.size[1]],
    }
}

/// The index of refraction in a cube, padded by its border; empty for a slab.
fn padded_index(scene: &LightScene, inputs: &Inputs) -> Vec<f32> {
    match scene.has_cube() {
        true => pad(&inputs.params.parameters[scene.parameter].values, scene.size),
        false => Vec::new(),
    }
}

fn index<'a>(scene: &LightScene, values: &'a [f32]) -> Index<'a, f32> {
    Index {
        values,
        size: scene.size,
    }
}

/// The bands of a view that this rank follows, in order.
fn own_paths<'a, O>(
    scene: &'a LightScene,
    optic: &'a O,
    film: Film<'a>,
    (inputs, pass): (&Inputs, Pass),
    sensor: u32,
) -> Vec<Band<'a, O>> {
    let count = bands([film.width, film.height], film.filter.radius) as u32;
    let edge = |band: u32| (u64::from(band) * u64::from(film.height) / u64::from(count)) as u32;
    let of = |band| Band {
        beam: scene.beam(sensor as usize),
        optic,
        film,
        sensor,
        key: pass.keys.pass,
        spp: pass.spp,
        rows: [edge(band), edge(band + 1)],
        level: inputs.level,
    };
    let own = inputs.cluster.share(count as usize, 1);
    own.map(|band| of(band as u32)).collect()
}

/// The adjoint image of all ranks' chunks; each rank has that of its own alone.
fn of_all_chunks(cluster: Cluster, adjoint: &[[f32; 3]]) -> Cow<'_, [[f32; 3]]> {
    if cluster.is_single() {
        return adjoint.into();
    }
    let mut all = adjoint.to_vec();
    cluster.assemble(&mut all, CHUNK);
    all.into()
}

/// The derivatives of the bands of all ranks, in the order of the bands.
fn of_all_ranks(cluster: Cluster, own: Vec<GradientPart>) -> Vec<GradientPart> {
    if cluster.is_single() {
        return own;
    }
    let places: Vec<[u64; 2]> = own
        .iter()
        .map(|part| [part.first as u64, part.values.len() as u64])
        .collect();
    let values: Vec<f32> = own.into_iter().flat_map(|part| part.values).collect();
    let (places, values) = (cluster.concat(&places).concat(), cluster.concat(&values).concat());
    let mut values = values.into_iter();
    let part = |[first, length]: [u64; 2]| GradientPart {
        first: first as usize,
        values: values.by_ref().take(length as usize).collect(),
    };
    places.into_iter().map(part).collect()
}
