//! The views of a report: which renders are displayed, at which size, and their error against the references.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::colormap;
use super::data::{RunData, View};
use crate::io::{Image, image};
use crate::kernels::quality;

/// The largest number of views, taken in the order of the first run.
pub(super) const MAX_VIEWS: usize = 12;

/// The largest number of renders per view and run.
pub(super) const MAX_FRAMES: usize = 24;

/// The longest side of a picture in pixels.
pub(super) const MAX_SIDE: usize = 400;

/// The largest number of pixels of all pictures together.
pub(super) const MAX_PIXELS: usize = 1 << 22;

/// A PNG as a data URI.
pub(super) fn data_uri(png: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(png))
}

/// A picture in the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Shown {
    pub(super) iteration: u32,
    pub(super) uri: String,
    /// In dB, of clamped sRGB-coded values at full resolution; None for equal images or without reference.
    pub(super) psnr: Option<f64>,
}

/// A view of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RunView {
    /// Index of the run.
    pub(super) run: usize,
    pub(super) reference: Option<String>,
    pub(super) frames: Vec<Shown>,
}

/// A view in all runs that contain it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ViewShown {
    pub(super) name: String,
    pub(super) held_out: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) runs: Vec<RunView>,
}

/// Cache of downscaled pictures, kept between versions of a report.
#[derive(Debug, Default)]
pub(super) struct Album {
    known: HashMap<(PathBuf, usize), Shown>,
}

impl Album {
    /// The views of some runs, at most [`MAX_VIEWS`] of them and together at most [`MAX_PIXELS`].
    ///
    /// # Errors
    /// A picture cannot be read.
    pub(super) fn views(&mut self, runs: &[RunData]) -> Result<Vec<ViewShown>> {
        let mut names: Vec<&str> = Vec::new();
        for view in runs.iter().flat_map(|run| &run.views) {
            if !names.contains(&view.name.as_str()) {
                names.push(&view.name);
            }
        }
        names.truncate(MAX_VIEWS);
        let chosen = |name: &str| -> Vec<(usize, &View)> {
            let find = |(i, run): (usize, &'_ RunData)| Some((i, run.views.iter().position(|v| v.name == name)?));
            let found = runs.iter().enumerate().filter_map(find);
            found.map(|(i, at)| (i, &runs[i].views[at])).collect()
        };
        let rows: Vec<(&str, Vec<(usize, &View)>)> = names.iter().map(|name| (*name, chosen(name))).collect();
        let mut sizes = BTreeMap::new();
        for (name, views) in &rows {
            if let Some((_, path)) = views.first().and_then(|(_, view)| view.frames.first()) {
                let header = image::header(path)?;
                sizes.insert(*name, [header.width, header.height]);
            }
        }
        let tiles: Vec<[usize; 2]> = rows
            .iter()
            .flat_map(|(name, views)| views.iter().filter_map(|_| sizes.get(name).copied()))
            .collect();
        let plan = Plan::new(&tiles);
        let mut shown = Vec::new();
        for (name, views) in &rows {
            let Some(&[width, height]) = sizes.get(name) else {
                continue;
            };
            let factor = plan.factor(width, height);
            let mut of_runs = Vec::new();
            for &(run, view) in views {
                of_runs.push(self.view(run, view, factor, plan.frames)?);
            }
            shown.push(ViewShown {
                name: (*name).to_owned(),
                held_out: views.iter().all(|(_, view)| view.held_out),
                width: width / factor,
                height: height / factor,
                runs: of_runs,
            });
        }
        Ok(shown)
    }

    fn view(&mut self, run: usize, view: &View, factor: usize, frames: usize) -> Result<RunView> {
        let mut target = None;
        let mut shown = Vec::new();
        for index in thinned(view.frames.len(), frames) {
            let (iteration, path) = &view.frames[index];
            shown.push(self.frame(path, *iteration, factor, view.reference.as_deref(), &mut target)?);
        }
        let reference = match &view.reference {
            Some(path) => Some(self.frame(path, 0, factor, None, &mut None)?.uri),
            None => None,
        };
        Ok(RunView {
            run,
            reference,
            frames: shown,
        })
    }

    /// One picture; `target` is the reference once it was read.
    fn frame(
        &mut self,
        path: &Path,
        iteration: u32,
        factor: usize,
        reference: Option<&Path>,
        target: &mut Option<Image>,
    ) -> Result<Shown> {
        let key = (path.to_owned(), factor);
        if let Some(known) = self.known.get(&key).filter(|known| known.iteration == iteration) {
            return Ok(known.clone());
        }
        let (picture, _) = image::read(path)?;
        if let (Some(reference), None) = (reference, &target) {
            *target = Some(image::read(reference)?.0);
        }
        let same = |other: &&Image| other.data.len() == picture.data.len();
        let psnr = target
            .as_ref()
            .filter(same)
            .map(|t| quality::psnr(quality::mse(&picture.data, &t.data)));
        let small = picture.downscale(factor);
        let bytes: Vec<u8> = small.data.iter().map(|v| colormap::coded_byte(*v)).collect();
        let shown = Shown {
            iteration,
            uri: data_uri(&colormap::png(small.width, small.height, small.channels, &bytes)),
            psnr: psnr.filter(|v| v.is_finite()),
        };
        self.known.insert(key, shown.clone());
        Ok(shown)
    }
}

/// The number of renders per view, and their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    frames: usize,
    side: usize,
}

impl Plan {
    /// For views of these widths and heights: reduces the number of renders first, and their size only if two do not
    /// fit.
    fn new(tiles: &[[usize; 2]]) -> Self {
        let mut side = MAX_SIDE;
        loop {
            let plan = Self { frames: 0, side };
            let area = |&[width, height]: &[usize; 2]| {
                let factor = plan.factor(width, height);
                (width / factor) * (height / factor)
            };
            let all: usize = tiles.iter().map(area).sum();
            // One picture per view is the reference.
            let frames = (MAX_PIXELS / all.max(1)).saturating_sub(1).min(MAX_FRAMES);
            if frames >= 2 || side < 16 {
                return Self {
                    frames: frames.max(2),
                    side,
                };
            }
            side /= 2;
        }
    }

    /// The integer factor by which a picture is downscaled.
    fn factor(self, width: usize, height: usize) -> usize {
        width.max(height).div_ceil(self.side).clamp(1, width.min(height).max(1))
    }
}

/// Indices of at most `most` of `count` items: the first, the last, and others with increasing gaps, as a run changes
/// most at its beginning.
fn thinned(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let share = |i: usize| (i as f64 / (most - 1) as f64).powf(1.5);
    let mut chosen: Vec<usize> = (0..most)
        .map(|i| (share(i) * (count - 1) as f64).round() as usize)
        .collect();
    chosen.dedup();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_are_shown() {
        assert_eq!(thinned(3, 24), [0, 1, 2]);
        let some = thinned(1000, 24);
        assert!(some.len() <= 24 && some[0] == 0 && some[some.len() - 1] == 999);
        assert!(
            some[1] - some[0] < 999 - some[some.len() - 2],
            "the beginning is shown more closely"
        );
    }

    #[test]
    fn pictures_together_have_a_bound() {
        for tiles in [
            vec![[800, 800]; 12],
            vec![[64, 64]; 2],
            vec![[4000, 3000]; 48],
            vec![[1, 5000]],
            vec![],
        ] {
            let plan = Plan::new(&tiles);
            let area = |[w, h]: [usize; 2]| (w / plan.factor(w, h)) * (h / plan.factor(w, h));
            let all: usize = tiles.iter().map(|t| area(*t)).sum();
            assert!((plan.frames + 1) * all <= MAX_PIXELS, "{tiles:?}: {plan:?}");
            assert!(plan.frames >= 2);
        }
        assert_eq!(Plan::new(&[[64, 64]]).frames, MAX_FRAMES);
    }
}
