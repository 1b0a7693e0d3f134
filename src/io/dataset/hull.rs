//! The visual hull of an object masked by alpha (Laurentini 1994): the intersection of its silhouettes' cones.

use glam::{DVec3, UVec3, Vec3};
use rayon::prelude::*;

use super::bounds::Bounds;
use super::{Result, View, image};

/// Cells per axis of the carved box.
const CELLS: u32 = 64;
/// Largest number of silhouettes.
const MAX_VIEWS: usize = 40;
/// A cell is kept only if at least one in this many silhouettes contains it.
const SHOWN_FRACTION: usize = 3;
/// Alpha above which a pixel counts as object.
const OPAQUE: f32 = 0.02;

/// A summed-area table: for each pixel corner, the number of object pixels above and left of it.
struct Silhouette<'a> {
    view: &'a View,
    sums: Vec<u32>,
}

/// The box around the cells of `bounds` inside the visual hull, with a margin of one cell; `None` if no image has
/// alpha or no cell remains.
///
/// # Errors
/// If an image cannot be read.
pub(super) fn carve(views: &[View], bounds: &Bounds) -> Result<Option<Bounds>> {
    let every = views.len().div_ceil(MAX_VIEWS).max(1);
    let chosen: Vec<&View> = views
        .iter()
        .step_by(every)
        .filter(|view| view.image.is_file())
        .collect();
    let silhouettes = chosen
        .par_iter()
        .map(|view| Silhouette::read(view))
        .collect::<Result<Vec<_>>>()?;
    let silhouettes: Vec<Silhouette<'_>> = silhouettes.into_iter().flatten().collect();
    if silhouettes.is_empty() {
        return Ok(None);
    }
    let cell = (bounds.upper - bounds.lower) / CELLS as f32;
    let radius = f64::from(cell.length()) / 2.0;
    let may_hold = |at: UVec3| {
        let center = bounds.lower + (at.as_vec3() + 0.5) * cell;
        survives(&silhouettes, center.as_dvec3(), radius)
    };
    let slices = (0..CELLS).into_par_iter().map(|z| {
        let cells = (0..CELLS * CELLS)
            .map(|i| UVec3::new(i % CELLS, i / CELLS, z))
            .filter(|&at| may_hold(at));
        cells.fold((UVec3::MAX, UVec3::ZERO), |(low, high), at| {
            (low.min(at), high.max(at + 1))
        })
    });
    let (low, high) = slices.reduce(|| (UVec3::MAX, UVec3::ZERO), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    if low.x == u32::MAX {
        return Ok(None);
    }
    let lower = bounds.lower + (low.as_vec3() - 1.0).max(Vec3::ZERO) * cell;
    let upper = bounds.lower + (high.as_vec3() + 1.0).min(Vec3::splat(CELLS as f32)) * cell;
    let reason = format!(
        "{}, carved to the silhouettes in {} of the images",
        bounds.reason,
        silhouettes.len()
    );
    Ok(Some(Bounds { lower, upper, reason }))
}

/// Whether a ball is inside all silhouettes whose image contains it, and inside enough of them: space that few images
/// contain is not part of the photographed object.
fn survives(silhouettes: &[Silhouette<'_>], center: DVec3, radius: f64) -> bool {
    let mut shown = 0;
    for silhouette in silhouettes {
        match silhouette.shows(center, radius) {
            Some(true) => shown += 1,
            Some(false) => return false,
            None => {}
        }
    }
    shown * SHOWN_FRACTION >= silhouettes.len()
}

impl<'a> Silhouette<'a> {
    /// Builds the table from the alpha of the view's image; `None` if the image has no alpha.
    fn read(view: &'a View) -> Result<Option<Self>> {
        view.check_image()?;
        let (image, _) = image::read(&view.image)?;
        if !image.has_alpha() {
            return Ok(None);
        }
        let stride = image.width + 1;
        let mut sums = vec![0; stride * (image.height + 1)];
        for y in 0..image.height {
            let mut row = 0;
            for x in 0..image.width {
                row += u32::from(image.data[4 * (y * image.width + x) + 3] > OPAQUE);
                sums[(y + 1) * stride + x + 1] = sums[y * stride + x + 1] + row;
            }
        }
        Ok(Some(Self { view, sums }))
    }

    /// Whether the ball's projection covers an object pixel; `None` if it extends beyond the image.
    fn shows(&self, center: DVec3, radius: f64) -> Option<bool> {
        let (pixel, depth) = self.view.project(center).filter(|(_, depth)| *depth > 2.0 * radius)?;
        let focal = f64::from(self.view.focal[0].max(self.view.focal[1]));
        let reach = focal * radius / (depth - radius) * 1.2 + 1.0;
        let (low, high) = (pixel - reach, pixel + reach);
        let (width, height) = (self.view.width as usize, self.view.height as usize);
        if low.min_element() < 0.0 || high.x > width as f64 || high.y > height as f64 {
            return None;
        }
        let (x0, y0) = (low.x as usize, low.y as usize);
        let (x1, y1) = (high.x.ceil() as usize, high.y.ceil() as usize);
        let at = |x: usize, y: usize| self.sums[y.min(height) * (width + 1) + x.min(width)];
        Some(at(x1, y1) + at(x0, y0) > at(x0, y1) + at(x1, y0))
    }
}

#[cfg(test)]
mod tests;
