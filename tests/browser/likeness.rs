//! Whether two pictures of a page show the same things in about the same places, whatever the fonts.
//!
//! A page is kept as thumbnails of its parts, so that a part that grows shifts no other one; small pictures, which would count
//! for little in a mean over a whole page, are kept apart. They are compared block by block: by the mean colour, and by the ink,
//! which is how much a block varies inside. Fonts move single letters and lines, and few blocks lose or gain all of their ink; a
//! plot that is not drawn leaves blank blocks.

use std::path::{Path, PathBuf};

use image::imageops::{self, FilterType};
use image::{Rgb, RgbImage};

/// Blocks along the width of a page.
const ACROSS: u32 = 12;

/// Where pages are kept.
const FOLDER: &str = "tests/data/report";

/// The colour of the line between the parts of a committed page.
const LINE: Rgb<u8> = Rgb([255, 0, 255]);

/// The environment variable with which references are written anew.
const UPDATE: &str = "PRBOPT_UPDATE_SCREENSHOTS";

/// Ink above which a block counts as inked, and the share of the other page's ink below which it counts as blank.
const INKED: f64 = 3.0;
const BLANK: f64 = 0.35;

/// How far two pages are apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distance {
    /// Mean absolute difference of the blocks' colours, from 0 to 255.
    color: f64,
    /// Share of the inked blocks that are blank on the other page.
    lost: f64,
    gained: f64,
    /// The largest ratio of the heights of a part, the larger over the smaller.
    height: f64,
}

impl Distance {
    /// Bounds that a change of fonts stays within; the faults that the tests plant must exceed them.
    pub(super) fn is_near(self) -> bool {
        self.color < 2.5 && self.lost < 0.1 && self.gained < 0.1 && self.height < 1.5
    }
}

/// The parts of a page between the heights `cuts`, made `width` pixels wide.
pub(super) fn thumbnails(page: &RgbImage, cuts: &[u32], width: u32) -> Vec<RgbImage> {
    let ends = cuts.iter().copied().chain([page.height()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let part = |(start, end): (u32, u32)| {
        let part = imageops::crop_imm(page, 0, start, page.width(), end - start).to_image();
        imageops::resize(
            &part,
            width,
            ((end - start) * width).div_ceil(page.width()),
            FilterType::Triangle,
        )
    };
    starts.zip(ends).map(part).collect()
}

/// Pictures of a page, given by left, top, width and height, made `width` pixels wide.
pub(super) fn pictures(page: &RgbImage, boxes: &[[u32; 4]], width: u32) -> Vec<RgbImage> {
    let picture = |&[x, y, w, h]: &[u32; 4]| {
        let picture = imageops::crop_imm(page, x, y, w, h).to_image();
        imageops::resize(&picture, width, (h * width).div_ceil(w), FilterType::Triangle)
    };
    boxes.iter().map(picture).collect()
}

/// How far the parts of a page are from the committed ones of this name, which are written anew if that is asked for.
pub(super) fn distance(name: &str, page: &[RgbImage]) -> Distance {
    let file = file_of(name);
    if std::env::var_os(UPDATE).is_some() && !file.exists() {
        stacked(page).save(&file).expect("the reference can be written");
    }
    let reference = image::open(&file)
        .unwrap_or_else(|e| panic!("{}: {e}; write it with {UPDATE}=1", file.display()))
        .into_rgb8();
    let reference = taken_apart(&reference);
    assert_eq!(reference.len(), page.len(), "{name} has as many parts as it had");
    between(&reference, page)
}

/// Forgets a committed page, if it is to be written anew.
pub(super) fn begin(name: &str) {
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(FOLDER).expect("the folder can be created");
        let _ = std::fs::remove_file(file_of(name));
    }
}

fn file_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.png"))
}

/// The parts below each other, each with a line in a colour that no page has below it.
fn stacked(parts: &[RgbImage]) -> RgbImage {
    let mut all = RgbImage::from_pixel(parts[0].width(), parts.iter().map(|p| p.height() + 1).sum(), LINE);
    let mut y = 0;
    for part in parts {
        imageops::replace(&mut all, part, 0, y.into());
        y += part.height() + 1;
    }
    all
}

fn taken_apart(all: &RgbImage) -> Vec<RgbImage> {
    let mut start = 0;
    let ends = (0..all.height()).filter(|y| (0..all.width()).all(|x| *all.get_pixel(x, *y) == LINE));
    let part = |end| {
        let part = imageops::crop_imm(all, 0, start, all.width(), end - start).to_image();
        start = end + 1;
        part
    };
    ends.map(part).collect()
}

fn between(reference: &[RgbImage], page: &[RgbImage]) -> Distance {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut height: f64 = 1.0;
    for (reference, page) in reference.iter().zip(page) {
        let down = (ACROSS * reference.height() / reference.width()).max(1);
        a.extend(blocks(reference, down));
        b.extend(blocks(page, down));
        let ratio = f64::from(page.height()) / f64::from(reference.height());
        height = height.max(ratio).max(1.0 / ratio);
    }
    let apart = |(a, b): (&Block, &Block)| (0..3).map(|c| (a.color[c] - b.color[c]).abs()).sum::<f64>() / 3.0;
    Distance {
        color: a.iter().zip(&b).map(apart).sum::<f64>() / a.len() as f64,
        lost: blank(&a, &b),
        gained: blank(&b, &a),
        height,
    }
}

/// The share of the inked blocks that are blank in `other`.
fn blank(blocks: &[Block], other: &[Block]) -> f64 {
    let inked = blocks.iter().zip(other).filter(|(block, _)| block.ink > INKED);
    let blank = inked.clone().filter(|(block, other)| other.ink < BLANK * block.ink);
    blank.count() as f64 / inked.count().max(1) as f64
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
