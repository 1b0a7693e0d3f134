//! Examines a data set: its views, whether their images exist and fit the cameras, and whether they are transparent.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use super::{BackgroundChoice, ImportArgs};
use crate::io::dataset::bounds::Content;
use crate::io::dataset::{self, Dataset, View};
use crate::io::image;

/// By default every 8th view is held out.
const DEFAULT_HOLD_OUT: u32 = 8;
/// Number of images that are searched for transparent pixels.
const IMAGES_LOOKED_AT: usize = 3;
/// Number of names that a message lists at most.
const NAMES_LISTED: usize = 200;

/// The selection of held-out views.
#[derive(Debug, PartialEq)]
pub(super) enum HeldOut {
    /// Every n-th; 0 for none.
    Every(u32),
    /// A second data set, with its number of views.
    Split(PathBuf, usize),
}

/// The data set without missing views, and the findings about it.
#[derive(Debug)]
pub(super) struct Coverage {
    pub(super) dataset: Dataset,
    pub(super) held_out: HeldOut,
    pub(super) background: BackgroundChoice,
    /// Views that were left out because their image is missing.
    pub(super) missing: usize,
    /// Whether images have transparent parts.
    transparent: bool,
    /// Indices of the views in the data set's file.
    places: Vec<usize>,
}

impl Coverage {
    /// Reads the data set and the headers of all its images.
    ///
    /// # Errors
    /// If images are missing (all are named) without `--skip-missing`, or do not fit their cameras, or if no training
    /// view remains.
    pub(super) fn new(args: &ImportArgs) -> Result<Self> {
        let mut dataset = dataset::load(&args.dataset)?;
        let count = dataset.views.len();
        let places = retain_present(&args.dataset, &mut dataset, args.skip_missing)?;
        let missing = count - dataset.views.len();
        check_images(&dataset.views, args.downscale)?;
        let held_out = held_out(args, dataset.views.len())?;
        if let HeldOut::Every(n @ 1..) = held_out {
            let left = places.iter().filter(|&&place| place % n as usize != 0).count();
            ensure!(
                left > 0,
                "--hold-out {n}: leaves none of the {} views to learn from; give a larger number, or 0 to hold out \
                 none",
                places.len()
            );
        }
        let transparent = has_transparent_parts(&dataset.views)?;
        let background = match args.background {
            Some(BackgroundChoice::Random) if !transparent => {
                bail!("--background random: the images have no transparent parts that it could fill; leave it out")
            }
            Some(choice) => choice,
            None if transparent => BackgroundChoice::Color([1.0; 3]),
            None => BackgroundChoice::None,
        };
        Ok(Self {
            dataset,
            held_out,
            background,
            missing,
            transparent,
            places,
        })
    }

    /// What the images show.
    pub(super) fn content(&self) -> Content {
        match self.background {
            BackgroundChoice::None => Content::Place,
            _ if self.transparent => Content::CutOut,
            _ => Content::Object,
        }
    }

    /// Every n-th view is held out; 0 for none.
    pub(super) fn hold_out(&self) -> u32 {
        match self.held_out {
            HeldOut::Every(n) => n,
            HeldOut::Split(..) => 0,
        }
    }

    pub(super) fn views_in_words(&self) -> String {
        let views = &self.dataset.views;
        let (width, height) = (views[0].width, views[0].height);
        let same = views.iter().all(|view| (view.width, view.height) == (width, height));
        let size = if same {
            format!("{width}×{height} pixels")
        } else {
            "various sizes".into()
        };
        let points = match self.dataset.points.len() {
            0 => String::new(),
            n => format!(", {n} points"),
        };
        let missing = match self.missing {
            0 => String::new(),
            n => format!(", {n} more left out whose images are missing"),
        };
        format!("{} views of {size}{points}{missing}", views.len())
    }

    pub(super) fn held_out_in_words(&self) -> String {
        match &self.held_out {
            HeldOut::Split(file, n) => format!("the {n} views of {} (--hold-out)", file.display()),
            HeldOut::Every(0) => "nothing (--hold-out)".into(),
            HeldOut::Every(n) => {
                let count = self.places.iter().filter(|&&place| place % *n as usize == 0).count();
                format!("{count} of the views: 1 in every {n}, counted from 0 (--hold-out)")
            }
        }
    }

    pub(super) fn background_in_words(&self, args: &ImportArgs) -> String {
        let why = match (args.background, self.transparent) {
            (Some(_), _) => "as asked",
            (None, true) => "the images have transparent parts (--background)",
            (None, false) => "the images are opaque (--background)",
        };
        match self.background {
            BackgroundChoice::Color([r, g, b]) => format!("({r}, {g}, {b}): {why}"),
            BackgroundChoice::Random => format!("a random colour a ray: {why}"),
            BackgroundChoice::None => format!("a map that is learned with the rest: {why}"),
        }
    }
}

/// Removes views whose image is missing, or reports them all; returns the indices of those that remain.
fn retain_present(path: &Path, dataset: &mut Dataset, skip: bool) -> Result<Vec<usize>> {
    let missing: Vec<String> = dataset
        .missing()
        .iter()
        .map(|view| view.image.display().to_string())
        .collect();
    let count = dataset.views.len();
    if !missing.is_empty() && !skip {
        let mut names = missing[..missing.len().min(NAMES_LISTED)].join("\n  ");
        if missing.len() > NAMES_LISTED {
            names.push_str(&format!("\n  and {} more", missing.len() - NAMES_LISTED));
        }
        let advice = match missing.len() < count {
            true => "put them there, or give --skip-missing to leave their views out",
            false => "put them there",
        };
        bail!(
            "{}: {} of {count} images are missing; {advice}:\n  {names}",
            path.display(),
            missing.len()
        );
    }
    let places: Vec<usize> = (0..count).filter(|&i| dataset.views[i].image.is_file()).collect();
    dataset.views.retain(|view| view.image.is_file());
    ensure!(
        !dataset.views.is_empty(),
        "{}: all of its {count} images are missing; put them where it says",
        path.display()
    );
    Ok(places)
}

/// Checks that all images can be read and have their cameras' sizes, naming all that do not.
fn check_images(views: &[View], downscale: u32) -> Result<()> {
    let check = |view: &View| match view.check_image() {
        Err(error) => Some(error.to_string()),
        Ok(()) if view.width.min(view.height) < downscale => Some(format!(
            "{}: is too small to be reduced {downscale} times; give a smaller --downscale",
            view.image.display()
        )),
        Ok(()) => None,
    };
    let wrong: Vec<String> = views.iter().filter_map(check).collect();
    ensure!(
        wrong.is_empty(),
        "{} of {} images cannot be used:\n  {}",
        wrong.len(),
        views.len(),
        wrong[..wrong.len().min(NAMES_LISTED)].join("\n  ")
    );
    Ok(())
}

/// As requested, else the test split next to a training split, else every 8th if there is more than one view.
fn held_out(args: &ImportArgs, views: usize) -> Result<HeldOut> {
    if let Some(n) = args.hold_out {
        return Ok(HeldOut::Every(n));
    }
    let is_training_split = args
        .dataset
        .file_name()
        .is_some_and(|name| name == "transforms_train.json");
    let test = args.dataset.with_file_name("transforms_test.json");
    if is_training_split && test.is_file() {
        let mut split = dataset::load(&test)?;
        retain_present(&test, &mut split, args.skip_missing)?;
        check_images(&split.views, args.downscale)?;
        return Ok(HeldOut::Split(test, split.views.len()));
    }
    Ok(HeldOut::Every(if views > 1 { DEFAULT_HOLD_OUT } else { 0 }))
}

/// Whether any of a few images, spread over the data set, has pixels that are not opaque.
fn has_transparent_parts(views: &[View]) -> Result<bool> {
    let step = views.len().div_ceil(IMAGES_LOOKED_AT);
    for view in views.iter().step_by(step.max(1)) {
        if image::header(&view.image)?.channels != 4 {
            continue;
        }
        let (image, _) = image::read(&view.image)?;
        if image.data.chunks_exact(4).any(|texel| texel[3] < 1.0) {
            return Ok(true);
        }
    }
    Ok(false)
}
