//! A band of the light's rows: the paths that begin there are splatted onto a film of the band's own, or send derivatives to
//! the heights of the slab or the index of the cube that bends them.

use super::sheet::{NARROW, Sheet, is_narrow};
use super::wide_index::WideIndex;
use crate::device::cpu::vector::level::{Kernel, Level};
use crate::device::cpu::vector::wide::Wide;
use crate::each::EachEntry;
use crate::resident::light::{Beam, Film, MAX_TAPS};
use crate::transport::light::cube::CubeOptic;
use crate::transport::light::index::Index;
use crate::transport::light::optic::Optic;
use crate::transport::light::slab::SlabOptic;
use crate::transport::light::splat::{Taps, taps};
use crate::transport::rays::random::{Counter, Key, random_uniform};
use crate::transport::rays::sampler::WALK;

/// An optic (slab or cube) whose lookups are compiled for a vector level.
pub(super) trait Leveled: Sync {
    type AtLevel<W: Wide>: Optic<f32>;

    fn at_level<W: Wide>(&self) -> Self::AtLevel<W>;
}

impl<'a> Leveled for SlabOptic<'a, f32> {
    type AtLevel<W: Wide> = SlabOptic<'a, f32>;

    #[inline(always)]
    fn at_level<W: Wide>(&self) -> Self {
        *self
    }
}

impl<'a> Leveled for CubeOptic<'a, Index<'a, f32>> {
    type AtLevel<W: Wide> = CubeOptic<'a, WideIndex<'a, W>>;

    #[inline(always)]
    fn at_level<W: Wide>(&self) -> Self::AtLevel<W> {
        CubeOptic {
            cube: self.cube,
            index: WideIndex::new(self.index),
        }
    }
}

/// The paths of a band of rows of the light, which has as many cells as the film has pixels; `spp` paths begin in each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band<'a, O> {
    pub(super) beam: &'a Beam,
    pub(super) optic: &'a O,
    pub(super) film: Film<'a>,
    pub(super) sensor: u32,
    pub(super) key: Key,
    pub(super) spp: u32,
    pub(super) rows: [u32; 2],
    pub(super) level: Level,
}

/// Neighbouring entries of the gradient.
#[derive(Debug)]
pub(super) struct GradientPart {
    pub(super) first: usize,
    pub(super) values: Vec<f32>,
}

/// [`Band::render`], to be compiled for each level.
struct Rendering<'a, 'b, O> {
    band: &'a Band<'b, O>,
    sheet: &'a mut Sheet,
}

impl<O: Leveled> Kernel for Rendering<'_, '_, O> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        match is_narrow(self.band.film.filter) {
            true => self.band.splat::<W, NARROW>(self.sheet),
            false => self.band.splat::<W, MAX_TAPS>(self.sheet),
        }
    }
}

/// [`Band::backpropagate`], likewise.
struct Gathering<'a, 'b, O> {
    band: &'a Band<'b, O>,
    sheet: &'a Sheet,
}

impl<O: Leveled> Kernel for Gathering<'_, '_, O> {
    type Output = GradientPart;

    #[inline(always)]
    fn run<W: Wide>(self) -> GradientPart {
        match is_narrow(self.band.film.filter) {
            true => self.band.gather::<W, NARROW>(self.sheet),
            false => self.band.gather::<W, MAX_TAPS>(self.sheet),
        }
    }
}

impl<O: Leveled> Band<'_, O> {
    /// The place on the light of each path.
    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = [f32; 2]> {
        let (sensor, key, spp, rows) = (self.sensor, self.key, self.spp, self.rows);
        let Film { width, height, .. } = self.film;
        let cell = [1.0 / width as f32, 1.0 / height as f32];
        let pixels = rows[0] * width..rows[1] * width;
        let pairs = pixels.flat_map(move |pixel| (0..spp.div_ceil(2)).map(move |pair| (pixel, pair)));
        pairs.flat_map(move |(pixel, pair)| {
            // Two paths share four numbers.
            let counter = Counter {
                sensor,
                pixel,
                sample: pair,
                block: WALK,
            };
            let [a, b, c, d] = random_uniform(key, counter);
            let corner = [pixel % width, pixel / width].each(|x| x as f32);
            let place = |u: f32, v: f32| [(corner[0] + u) * cell[0], (corner[1] + v) * cell[1]];
            let count = if 2 * pair + 1 < spp { 2 } else { 1 };
            [place(a, b), place(c, d)].into_iter().take(count)
        })
    }

    /// Splats the band's paths on a sheet: the light's radiance times the path's weight, without the film's exposure.
    pub(super) fn render(&self, sheet: &mut Sheet) {
        self.level.run(Rendering { band: self, sheet });
    }

    /// Propagates the adjoint image on `sheet`, which is multiplied by the exposure, to the entries of the optic.
    pub(super) fn backpropagate(&self, sheet: &Sheet) -> GradientPart {
        self.level.run(Gathering { band: self, sheet })
    }

    #[inline(always)]
    fn splat<W: Wide, const MOST: usize>(&self, sheet: &mut Sheet) {
        let optic = self.optic.at_level::<W>();
        for place in self.places() {
            let Some(arrival) = optic.follow(&self.beam.screen, &self.film, place) else {
                continue;
            };
            let color = self.beam.lamp.radiance(place[0], place[1]).each(|c| c * arrival.weight);
            sheet.splat::<MOST>(self.film.filter, arrival.film, color);
        }
    }

    #[inline(always)]
    fn gather<W: Wide, const MOST: usize>(&self, sheet: &Sheet) -> GradientPart {
        let Beam { screen, lamp, .. } = self.beam;
        let optic = self.optic.at_level::<W>();
        let reached = optic.reach(self.rows.each(|row| row as f32 / self.film.height as f32));
        let first = reached.start;
        let mut values = vec![0f32; reached.len()];
        for place in self.places() {
            let Some(arrival) = optic.follow(screen, &self.film, place) else {
                continue;
            };
            let Some(trace) = &arrival.trace else { continue };
            let [x, y] = arrival.film;
            if !sheet.is_near(self.film.filter.radius, [x, y]) {
                continue;
            }
            let across: Taps<f32, MOST> = taps(self.film.filter, x);
            let down: Taps<f32, MOST> = taps(self.film.filter, y);
            let Some(at) = sheet.first([across.first, down.first], [across.count, down.count]) else {
                continue;
            };
            let color = lamp.radiance(place[0], place[1]);
            // Sums of the adjoint times the filter, its slope along x, and that along y.
            let mut sums = [[0f32; 4]; 3];
            for r in 0..down.count {
                let row = &sheet.pixels[at + r * sheet.width..][..across.count];
                let (mut plain, mut sloped) = ([0f32; 4], [0f32; 4]);
                for (k, pixel) in row.iter().enumerate() {
                    for c in 0..4 {
                        plain[c] += pixel[c] * across.share[k];
                        sloped[c] += pixel[c] * across.slope[k];
                    }
                }
                for c in 0..4 {
                    sums[0][c] += plain[c] * down.share[r];
                    sums[1][c] += sloped[c] * down.share[r];
                    sums[2][c] += plain[c] * down.slope[r];
                }
            }
            let [by_weight, by_x, by_y] = sums.each(|s| s[0] * color[0] + s[1] * color[1] + s[2] * color[2]);
            let by_film = [by_x * arrival.weight, by_y * arrival.weight];
            let by = (by_film, by_weight);
            optic.send(screen, &self.film, trace, by, |entry, parts: &[f32]| {
                let sums = &mut values[entry - first..];
                for i in 0..parts.len() {
                    sums[i] += parts[i];
                }
            });
        }
        GradientPart { first, values }
    }
}
