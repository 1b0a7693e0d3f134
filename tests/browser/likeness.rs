//! Whether two pictures of a page show the same things in about the same places, whatever the fonts.
//!
//! A page is kept as a thumbnail. Two of them are compared block by block: by the mean colour, and by the ink, which is
//! how much a block varies inside. Fonts move single letters and lines, and blocks change little; a plot that is not
//! drawn leaves blocks without ink.

use std::path::{Path, PathBuf};

use image::RgbImage;
use image::imageops::{self, FilterType};

/// Blocks along the width of a page.
const ACROSS: u32 = 12;

/// Where pages are kept.
const FOLDER: &str = "tests/data/report";

/// The environment variable with which references are written anew.
const UPDATE: &str = "PRBOPT_UPDATE_SCREENSHOTS";

/// How far two pages are apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distance {
    /// Mean absolute difference of the blocks' colours, from 0 to 255.
    color: f64,
    /// Sum of absolute differences of the blocks' ink, over the sum of the reference's.
    ink: f64,
    /// Height over the reference's.
    height: f64,
}

impl Distance {
    /// What other fonts may do; the tests plant faults that must be farther away.
    pub(super) fn is_near(self) -> bool {
        self.color < 6.0 && self.ink < 0.25 && (0.85..1.18).contains(&self.height)
    }
}

/// A page of `picture`'s kind, made `width` pixels wide.
pub(super) fn thumbnail(picture: &RgbImage, width: u32) -> RgbImage {
    let height = (picture.height() * width).div_ceil(picture.width());
    imageops::resize(picture, width, height, FilterType::Triangle)
}

/// How far the page is from the committed one of this name, which is written anew if that is asked for.
pub(super) fn distance(name: &str, page: &RgbImage) -> Distance {
    let file = file_of(name);
    if std::env::var_os(UPDATE).is_some() && !file.exists() {
        page.save(&file).expect("the reference can be written");
    }
    let reference = image::open(&file)
        .unwrap_or_else(|e| panic!("{}: {e}; write it with {UPDATE}=1", file.display()))
        .into_rgb8();
    between(&reference, page)
}

/// Forgets the committed pages, if they are to be written anew.
pub(super) fn begin(names: &[&str]) {
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(FOLDER).expect("the folder can be created");
        names.iter().for_each(|name| {
            let _ = std::fs::remove_file(file_of(name));
        });
    }
}

/// Where the page of a name is kept.
fn file_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.png"))
}

fn between(reference: &RgbImage, page: &RgbImage) -> Distance {
    let down = ACROSS * reference.height() / reference.width();
    let (a, b) = (blocks(reference, down), blocks(page, down));
    let pairs = || a.iter().zip(&b);
    let apart = |(a, b): (&Block, &Block)| (0..3).map(|c| (a.color[c] - b.color[c]).abs()).sum::<f64>() / 3.0;
    Distance {
        color: pairs().map(apart).sum::<f64>() / a.len() as f64,
        ink: pairs().map(|(a, b)| (a.ink - b.ink).abs()).sum::<f64>() / a.iter().map(|block| block.ink).sum::<f64>(),
        height: f64::from(page.height()) / f64::from(reference.height()),
    }
}

/// Figures of a part of a page.
struct Block {
    color: [f64; 3],
    /// Standard deviation of its brightness.
    ink: f64,
}

/// `down` rows of blocks, whatever the height of the page.
fn blocks(page: &RgbImage, down: u32) -> Vec<Block> {
    let edges = |size: u32, count: u32, i: u32| [size * i / count, size * (i + 1) / count];
    let block = |row: u32, column: u32| {
        let ([x0, x1], [y0, y1]) = (edges(page.width(), ACROSS, column), edges(page.height(), down, row));
        let pixels = || (y0..y1).flat_map(move |y| (x0..x1).map(move |x| page.get_pixel(x, y).0.map(f64::from)));
        let count = f64::from((x1 - x0) * (y1 - y0));
        let color: [f64; 3] = std::array::from_fn(|c| pixels().map(|p| p[c]).sum::<f64>() / count);
        let brightness = |p: [f64; 3]| p.iter().sum::<f64>() / 3.0;
        let mean = brightness(color);
        let variance = pixels().map(|p| (brightness(p) - mean).powi(2)).sum::<f64>() / count;
        Block {
            color,
            ink: variance.sqrt(),
        }
    };
    (0..down)
        .flat_map(|row| (0..ACROSS).map(move |column| (row, column)))
        .map(|(row, column)| block(row, column))
        .collect()
}
