//! A band of the light's rows: the paths that begin there, splatted onto a film of their own, or sending derivatives to the
//! entries of what bends them.

use crate::each::EachEntry;
use crate::resident::light::{Beam, Film, MAX_TAPS};
use crate::transport::light::optic::Optic;
use crate::transport::light::splat::{Taps, taps};
use crate::transport::rays::random::{Counter, Key, random_uniform};
use crate::transport::rays::sampler::WALK;

/// Pixels along an axis that a Gaussian of half a pixel reaches, and one more.
const NARROW: usize = 5;

/// A film with a border that filters reach into, its colours as four numbers a pixel.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) border: usize,
    pub(super) width: usize,
    pub(super) pixels: Vec<[f32; 4]>,
}

impl Sheet {
    /// Pixels around a film that a filter of this radius may reach from a place from which it reaches the film.
    pub(super) fn border(radius: f32) -> usize {
        (radius.ceil() as usize + 1).max((2.0 * radius).ceil() as usize - 1)
    }

    pub(super) fn of(film: &Film<'_>) -> Self {
        let border = Self::border(film.filter.radius);
        let [width, height] = [film.width, film.height].each(|side| side as usize + 2 * border);
        Self {
            border,
            width,
            pixels: vec![[0.0; 4]; width * height],
        }
    }

    /// Index of a pixel of the film.
    #[inline(always)]
    pub(super) fn index(&self, x: usize, y: usize) -> usize {
        (y + self.border) * self.width + x + self.border
    }

    /// Index of the first of `count` pixels along both axes; None if one is beside the sheet.
    #[inline(always)]
    fn first(&self, [x, y]: [i32; 2], [across, down]: [usize; 2]) -> Option<usize> {
        let border = self.border as i32;
        let (x, y) = (x + border, y + border);
        let height = self.pixels.len() / self.width;
        let fits = |at: i32, count: usize, side: usize| at >= 0 && at as usize + count <= side;
        (fits(x, across, self.width) && fits(y, down, height)).then(|| y as usize * self.width + x as usize)
    }
}

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
        match self.is_narrow() {
            true => self.splat::<NARROW>(sheet),
            false => self.splat::<MAX_TAPS>(sheet),
        }
    }

    /// Sends the adjoint image on a sheet, exposure and all, to the entries of the optic.
    pub(super) fn backpropagate(&self, sheet: &Sheet) -> GradientPart {
        match self.is_narrow() {
            true => self.gather::<NARROW>(sheet),
            false => self.gather::<MAX_TAPS>(sheet),
        }
    }

    /// Whether the filter reaches few pixels, as those of usual films do.
    fn is_narrow(&self) -> bool {
        2.0 * self.film.filter.radius < NARROW as f32
    }

    fn splat<const MOST: usize>(&self, sheet: &mut Sheet) {
        self.paths(|place| {
            let Some(arrival) = self.optic.follow(&self.beam.screen, &self.film, place) else {
                return;
            };
            let [x, y] = arrival.film;
            if !self.is_near(x, y) {
                return;
            }
            let color = self.beam.lamp.radiance(place[0], place[1]).each(|c| c * arrival.weight);
            let across: Taps<f32, MOST> = taps(self.film.filter, x);
            let down: Taps<f32, MOST> = taps(self.film.filter, y);
            let Some(first) = sheet.first([across.first, down.first], [across.count, down.count]) else {
                return;
            };
            for r in 0..down.count {
                let row = &mut sheet.pixels[first + r * sheet.width..][..across.count];
                for k in 0..across.count {
                    let share = across.share[k] * down.share[r];
                    for c in 0..3 {
                        row[k][c] += color[c] * share;
                    }
                }
            }
        });
    }

    /// Whether a place is so near the film that the filter may reach it.
    #[inline(always)]
    fn is_near(&self, x: f32, y: f32) -> bool {
        let reach = self.film.filter.radius + 0.5;
        let near = |at: f32, side: u32| at > -reach && at < side as f32 + reach;
        near(x, self.film.width) && near(y, self.film.height)
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
            if !self.is_near(x, y) {
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
