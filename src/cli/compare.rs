//! `prbopt compare`: differences between two images, and an exit code for scripts.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::json;

use super::Outcome;
use super::shared::check_output;
use crate::io::{Encoding, Image, image, srgb};
use crate::kernels::quality;
use crate::output::streams::print_line;

/// Arguments of `prbopt compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    prbopt compare render.exr photograph.png\n  \
    prbopt compare render.exr photograph.png --psnr-min 30 && echo close enough")]
pub struct CompareArgs {
    /// The image to judge: EXR (linear), PNG, JPEG, BMP or TGA (sRGB-coded)
    pub a: PathBuf,
    /// The image to compare it with
    pub b: PathBuf,
    /// Fail if the PSNR in dB is lower
    #[arg(long, value_name = "DB", value_parser = threshold, allow_negative_numbers = true)]
    pub psnr_min: Option<f64>,
    /// Fail if the SSIM is lower
    #[arg(long, value_name = "SSIM", value_parser = threshold, allow_negative_numbers = true)]
    pub ssim_min: Option<f64>,
    /// Fail if any value differs by more
    #[arg(long, value_name = "DIFFERENCE", value_parser = threshold, allow_negative_numbers = true)]
    pub max_abs_error: Option<f64>,
    /// Write the absolute difference of the coded images
    #[arg(long, value_name = "PNG")]
    pub difference: Option<PathBuf>,
    /// Print one line of JSON; an infinite or undefined figure is null
    #[arg(long)]
    pub json: bool,
}

/// Parses a number without NaN, which no figure can be compared with.
fn threshold(text: &str) -> std::result::Result<f64, String> {
    text.parse()
        .ok()
        .filter(|v: &f64| !v.is_nan())
        .ok_or_else(|| "expected a number".to_owned())
}

/// Differences between two images.
#[derive(Debug)]
struct Figures {
    /// Mean squared error of clamped, unquantised, sRGB-coded values.
    mse: f64,
    psnr: f64,
    /// SSIM of the same values; None for images smaller than its window.
    ssim: Option<f64>,
    /// Means of the values themselves: linear unless both images are coded.
    means: [f64; 2],
    max_abs: f64,
    /// Number of values that are NaN or infinite in either image.
    non_finite: usize,
    space: &'static str,
}

/// Prints the figures; the outcome says whether the checks passed. Images with NaN or infinite values fail every
/// check.
///
/// # Errors
/// If an image cannot be read or their sizes differ.
pub fn run(args: CompareArgs) -> Result<Outcome> {
    if let Some(path) = &args.difference {
        let is_png = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
        ensure!(
            is_png,
            "{}: a difference is a PNG; give a name that ends in .png",
            path.display()
        );
        check_output(path, &[&args.a, &args.b])?;
    }
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    ensure!(
        (a.0.width, a.0.height) == (b.0.width, b.0.height),
        "{}: has {}×{} pixels, but {} has {}×{}; give images of one size",
        args.a.display(),
        a.0.width,
        a.0.height,
        args.b.display(),
        b.0.width,
        b.0.height
    );
    let coded = [coded(&a), coded(&b)];
    let figures = Figures::new(a, b, &coded);
    if let Some(path) = &args.difference {
        write_difference(path, &coded)?;
    }
    let failed = figures.failed_checks(&args);
    if args.json {
        print_line(&figures.to_json(&failed).to_string());
    } else {
        print_line(&figures.in_words());
        failed.iter().for_each(|check| print_line(&format!("failed: {check}")));
    }
    Ok(if failed.is_empty() {
        Outcome::Done
    } else {
        Outcome::CheckFailed
    })
}

/// Reads an image as RGB: grey is repeated, transparent parts are composited on black.
fn read(path: &Path) -> Result<(Image, Encoding)> {
    let (image, encoding) = image::read(path)?;
    let rgb = |texel: &[f32]| match *texel {
        [r, g, b, a] => [r * a, g * a, b * a],
        [r, g, b] => [r, g, b],
        _ => [texel[0]; 3],
    };
    let data = image.data.chunks_exact(image.channels).flat_map(rgb).collect();
    Ok((
        Image {
            channels: 3,
            data,
            ..image
        },
        encoding,
    ))
}

/// sRGB-coded and clamped to [0, 1]; NaN stays.
fn coded((image, encoding): &(Image, Encoding)) -> Image {
    let mut image = image.clone();
    if *encoding == Encoding::Linear {
        srgb::encode_image(&mut image);
    }
    image.data.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
    image
}

impl Figures {
    fn new(mut a: (Image, Encoding), mut b: (Image, Encoding), coded: &[Image; 2]) -> Self {
        let both_coded = a.1 == Encoding::Srgb && b.1 == Encoding::Srgb;
        for (image, encoding) in [&mut a, &mut b] {
            if *encoding == Encoding::Srgb && !both_coded {
                srgb::decode_image(image);
            }
        }
        let (a, b) = (a.0, b.0);
        let pairs = || a.data.iter().zip(&b.data).map(|(&a, &b)| (f64::from(a), f64::from(b)));
        let mean = |image: &Image| image.data.iter().map(|&v| f64::from(v)).sum::<f64>() / image.data.len() as f64;
        let mse = quality::mse(&coded[0].data, &coded[1].data);
        Self {
            mse,
            psnr: quality::psnr(mse),
            ssim: quality::ssim(&coded[0].data, &coded[1].data, [a.width, a.height], 3),
            means: [mean(&a), mean(&b)],
            max_abs: pairs()
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, |max, d| if d.is_nan() { d } else { max.max(d) }),
            non_finite: pairs().filter(|(a, b)| !a.is_finite() || !b.is_finite()).count(),
            space: if both_coded { "sRGB-coded" } else { "linear" },
        }
    }

    /// One sentence for each requested check that failed.
    fn failed_checks(&self, args: &CompareArgs) -> Vec<String> {
        let mut failed = Vec::new();
        if self.non_finite > 0 {
            failed.push(format!("{} values are NaN or infinite", self.non_finite));
        }
        if let Some(min) = args.psnr_min.filter(|min| self.psnr.is_nan() || self.psnr < *min) {
            failed.push(format!("the PSNR of {:.4} dB is below {min} dB", self.psnr));
        }
        match (args.ssim_min, self.ssim) {
            (Some(min), None) => failed.push(format!("images under 11×11 pixels have no SSIM to reach {min}")),
            (Some(min), Some(ssim)) if ssim.is_nan() || ssim < min => {
                failed.push(format!("the SSIM of {ssim:.6} is below {min}"));
            }
            _ => {}
        }
        if let Some(max) = args
            .max_abs_error
            .filter(|max| self.max_abs.is_nan() || self.max_abs > *max)
        {
            failed.push(format!("the largest difference of {:e} is above {max}", self.max_abs));
        }
        failed
    }

    fn in_words(&self) -> String {
        let ssim = self
            .ssim
            .map_or("none: smaller than its window".to_owned(), |ssim| format!("{ssim:.6}"));
        let [a, b] = self.means;
        format!(
            "psnr            {:.4} dB\n\
             ssim            {ssim}\n\
             mse             {:.6e}\n                (of clamped sRGB-coded values)\n\
             mean            {a:.6} and {b:.6}\n\
             max difference  {:.6e}\n                (of {} values)",
            self.psnr, self.mse, self.max_abs, self.space
        )
    }

    fn to_json(&self, failed: &[String]) -> serde_json::Value {
        json!({
            "psnr": self.psnr,
            "ssim": self.ssim,
            "mse": self.mse,
            "mean_a": self.means[0],
            "mean_b": self.means[1],
            "max_abs_error": self.max_abs,
            "values": self.space,
            "non_finite": self.non_finite,
            "passed": failed.is_empty(),
            "failed": failed,
        })
    }
}

fn write_difference(path: &Path, coded: &[Image; 2]) -> Result<()> {
    let [a, b] = coded;
    let data = a.data.iter().zip(&b.data).map(|(a, b)| (a - b).abs()).collect();
    image::write_png(path, &Image { data, ..a.clone() })?;
    Ok(())
}
