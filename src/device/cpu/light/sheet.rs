//! A film that light is splatted onto.

use crate::cluster::Cluster;
use crate::each::EachEntry;
use crate::resident::light::{Film, MAX_TAPS, SplatFilter};
use crate::transport::light::splat::{Taps, taps};

/// Pixels along an axis that a Gaussian with a standard deviation of half a pixel reaches, plus one.
pub(super) const NARROW: usize = 5;

/// Whether a filter reaches [`NARROW`] pixels at most along an axis, as most filters do.
pub(super) fn is_narrow(filter: &SplatFilter) -> bool {
    2.0 * filter.radius < NARROW as f32
}

/// A film with a border that filters reach into, its colours as four numbers a pixel.
#[derive(Debug)]
pub(in crate::device::cpu) struct Sheet {
    pub(super) border: usize,
    pub(super) width: usize,
    pub(in crate::device::cpu) pixels: Vec<[f32; 4]>,
}

impl Sheet {
    /// Width of the border in pixels: a filter of this radius at a place from which it reaches the film stays within the sheet.
    pub(super) fn border(radius: f32) -> usize {
        (radius.ceil() as usize + 1).max((2.0 * radius).ceil() as usize - 1)
    }

    pub(super) fn of(film: &Film<'_>) -> Self {
        Self::new([film.width, film.height], film.filter.radius)
    }

    /// A black sheet for a film of `size` pixels whose filter has this radius.
    pub(in crate::device::cpu) fn new(size: [u32; 2], radius: f32) -> Self {
        let border = Self::border(radius);
        let [width, height] = size.each(|side| side as usize + 2 * border);
        Self {
            border,
            width,
            pixels: vec![[0.0; 4]; width * height],
        }
    }

    /// Index of a pixel of the film.
    #[inline(always)]
    pub(in crate::device::cpu) fn index(&self, x: usize, y: usize) -> usize {
        (y + self.border) * self.width + x + self.border
    }

    /// Index of the film's pixel x, y, the first of `across` × `down` pixels; None if one of these lies outside the sheet.
    #[inline(always)]
    pub(super) fn first(&self, [x, y]: [i32; 2], [across, down]: [usize; 2]) -> Option<usize> {
        let border = self.border as i32;
        let (x, y) = (x + border, y + border);
        let height = self.pixels.len() / self.width;
        let fits = |at: i32, count: usize, side: usize| at >= 0 && at as usize + count <= side;
        (fits(x, across, self.width) && fits(y, down, height)).then(|| y as usize * self.width + x as usize)
    }

    /// Whether a place is so near the film that a filter of this radius may reach it.
    #[inline(always)]
    pub(super) fn is_near(&self, radius: f32, [x, y]: [f32; 2]) -> bool {
        let (reach, height) = (radius + 0.5, self.pixels.len() / self.width);
        let near = |at: f32, side: usize| at > -reach && at < (side - 2 * self.border) as f32 + reach;
        near(x, self.width) && near(y, height)
    }

    /// Adds `color` around a place, by the filter's shares.
    #[inline(always)]
    pub(super) fn splat<const MOST: usize>(&mut self, filter: &SplatFilter, [x, y]: [f32; 2], color: [f32; 3]) {
        if !self.is_near(filter.radius, [x, y]) {
            return;
        }
        let across: Taps<f32, MOST> = taps(filter, x);
        let down: Taps<f32, MOST> = taps(filter, y);
        let Some(first) = self.first([across.first, down.first], [across.count, down.count]) else {
            return;
        };
        for r in 0..down.count {
            let row = &mut self.pixels[first + r * self.width..][..across.count];
            for k in 0..across.count {
                let share = across.share[k] * down.share[r];
                for c in 0..3 {
                    row[k][c] += color[c] * share;
                }
            }
        }
    }

    /// [`Self::splat`] of a filter of any width.
    #[inline]
    pub(in crate::device::cpu) fn add(&mut self, filter: &SplatFilter, place: [f32; 2], color: [f32; 3]) {
        match is_narrow(filter) {
            true => self.splat::<NARROW>(filter, place, color),
            false => self.splat::<MAX_TAPS>(filter, place, color),
        }
    }
}

/// The sum of the films of all ranks' bands, in the order of the bands; `total` is a sheet of their size.
pub(super) fn sum_over_ranks(cluster: Cluster, own: &[Sheet], mut total: Sheet) -> Sheet {
    let count = total.pixels.len();
    // Each rank sums a run of pixels over all bands.
    let to = |rank: usize| {
        let run = cluster.share_of(rank, count, 1);
        own.iter()
            .flat_map(|sheet| sheet.pixels[run.clone()].iter().copied())
            .collect()
    };
    let arrived = cluster.all_to_all(&(0..cluster.size()).map(to).collect::<Vec<_>>());
    let mut sums = vec![[0f32; 4]; cluster.share(count, 1).len()];
    let length = sums.len().max(1);
    for band in arrived.iter().flat_map(|of_rank| of_rank.chunks(length)) {
        for (sum, pixel) in sums.iter_mut().zip(band) {
            (0..3).for_each(|c| sum[c] += pixel[c]);
        }
    }
    total.pixels = cluster.join_shares(&sums, count, 1);
    total
}
