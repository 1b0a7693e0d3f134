//! A band of the light's rows: the paths that begin there, splatted onto a film of their own, or sending derivatives to the
//! entries of what bends them.

use super::sheet::{NARROW, Sheet, is_narrow};
use crate::each::EachEntry;
use crate::resident::light::{Beam, Film, MAX_TAPS};
use crate::transport::light::optic::Optic;
use crate::transport::light::splat::{Taps, taps};
use crate::transport::rays::random::{Counter, Key, random_uniform};
use crate::transport::rays::sampler::WALK;

/// The paths of a band of rows of the light. It is cut as the film is, and as many paths begin in each of its cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band<'a, O> {
    pub(super) beam: &'a Beam,
    pub(super) optic: &'a O,
    pub(super) film: Film<'a>,
    pub(super) sensor: u32,
    pub(super) key: Key,
    pub(super) spp: u32,
    pub(super) rows: [u32; 2],
}

/// Neighbouring entries of the gradient.
#[derive(Debug)]
pub(super) struct GradientPart {
    pub(super) first: usize,
    pub(super) values: Vec<f32>,
}

impl<O: Optic<f32>> Band<'_, O> {
    /// Calls `path` with the place on the light of each path.
    #[inline(always)]
    fn paths(&self, mut path: impl FnMut([f32; 2])) {
        let Film { width, height, .. } = self.film;
        let cell = [1.0 / width as f32, 1.0 / height as f32];
        for y in self.rows[0]..self.rows[1] {
            for x in 0..width {
                for pair in 0..self.spp.div_ceil(2) {
                    // Two paths share four numbers.
                    let counter = Counter {
                        sensor: self.sensor,
                        pixel: y * width + x,
                        sample: pair,
                        block: WALK,
                    };
                    let [a, b, c, d] = random_uniform(self.key, counter);
                    path([(x as f32 + a) * cell[0], (y as f32 + b) * cell[1]]);
                    if 2 * pair + 1 < self.spp {
                        path([(x as f32 + c) * cell[0], (y as f32 + d) * cell[1]]);
                    }
                }
            }
        }
    }

    /// Splats the band's paths, of radiance and weight alone, on a sheet.
    pub(super) fn render(&self, sheet: &mut Sheet) {
        match is_narrow(self.film.filter) {
            true => self.splat::<NARROW>(sheet),
            false => self.splat::<MAX_TAPS>(sheet),
        }
    }

    /// Sends the adjoint image on a sheet, exposure and all, to the entries of the optic.
    pub(super) fn backpropagate(&self, sheet: &Sheet) -> GradientPart {
        match is_narrow(self.film.filter) {
            true => self.gather::<NARROW>(sheet),
            false => self.gather::<MAX_TAPS>(sheet),
        }
    }

    fn splat<const MOST: usize>(&self, sheet: &mut Sheet) {
        self.paths(|place| {
            let Some(arrival) = self.optic.follow(&self.beam.screen, &self.film, place) else {
                return;
            };
            let color = self.beam.lamp.radiance(place[0], place[1]).each(|c| c * arrival.weight);
            sheet.splat::<MOST>(self.film.filter, arrival.film, color);
        });
    }

    fn gather<const MOST: usize>(&self, sheet: &Sheet) -> GradientPart {
        let Beam { screen, lamp, .. } = self.beam;
        let reached = self
            .optic
            .reach(self.rows.each(|row| row as f32 / self.film.height as f32));
        let first = reached.start;
        let mut values = vec![0f32; reached.len()];
        self.paths(|place| {
            let Some(arrival) = self.optic.follow(screen, &self.film, place) else {
                return;
            };
            let Some(trace) = &arrival.trace else { return };
            let [x, y] = arrival.film;
            if !sheet.is_near(self.film.filter.radius, [x, y]) {
                return;
            }
            let across: Taps<f32, MOST> = taps(self.film.filter, x);
            let down: Taps<f32, MOST> = taps(self.film.filter, y);
            let Some(at) = sheet.first([across.first, down.first], [across.count, down.count]) else {
                return;
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
            self.optic.send(screen, &self.film, trace, by, |entry, parts: &[f32]| {
                let sums = &mut values[entry - first..];
                for i in 0..parts.len() {
                    sums[i] += parts[i];
                }
            });
        });
        GradientPart { first, values }
    }
}
