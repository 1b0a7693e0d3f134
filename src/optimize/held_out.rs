//! Image quality on held-out views.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use serde::Serialize;

use super::references::Targets;
use super::views::{RenderSettings, render_view};
use crate::device::Device;
use crate::io::{Image, image};
use crate::kernels::quality;
use crate::output::images::{Picture, file_stems};
use crate::output::progress::Progress;
use crate::output::record::write_json;
use crate::output::room;
use crate::output::run_folder::{RunFolder, create};
use crate::scene::Scene;

/// Quality of one view, on clamped, unquantised, sRGB-coded images.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewFigures {
    pub name: String,
    /// In dB; None for identical images.
    pub psnr: Option<f64>,
    /// None for images smaller than the SSIM window.
    pub ssim: Option<f64>,
    /// Pixels without a ray, black in both images.
    pub masked: usize,
}

/// Quality over all views: means of the per-view values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldOut {
    pub mean_psnr: Option<f64>,
    pub mean_ssim: Option<f64>,
    pub views: Vec<ViewFigures>,
}

/// Renders every held-out view, writes images into the folder and figures into the file, and returns the figures; None if
/// no view is held out, none has a reference, or `stop` was set before all were rendered.
///
/// # Errors
/// The device's, or a file that cannot be read or written.
pub fn judge(
    scene: &Scene,
    targets: &Targets,
    device: &mut dyn Device,
    (folder, written): (&RunFolder, &Path),
    look: RenderSettings,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Option<HeldOut>> {
    let names: Vec<&str> = scene.sensors.iter().map(|s| s.name.as_str()).collect();
    let stems = file_stems(&names);
    let count = scene.sensors.iter().filter(|s| s.held_out).count();
    if count > 0 {
        let views = if count == 1 { "view" } else { "views" };
        progress.note(&format!("rendering {count} held-out {views} at {} spp", look.spp));
    }
    let mut views = Vec::new();
    for (index, sensor) in scene.sensors.iter().enumerate().filter(|(_, s)| s.held_out) {
        if stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        device.gauge().begin_picture(1);
        let busy = progress.busy(sensor.name.clone(), device.gauge());
        let picture = Picture::of(sensor, render_view(device, index as u32, look)?);
        drop(busy);
        room::wait(progress, stop, || {
            create(&folder.held_out())?;
            Ok(picture.write(&folder.held_out().join(&stems[index]))?)
        })?;
        if let Some(reference) = targets.coded_image(scene, index as u32)? {
            room::wait(progress, stop, || write_reference(folder, &stems[index], &reference))?;
            let figures = compare(&sensor.name, &picture, reference);
            progress.event("held_out", serde_json::to_value(&figures)?);
            views.push(figures);
        }
    }
    if views.is_empty() {
        return Ok(None);
    }
    let figures = HeldOut {
        mean_psnr: mean(views.iter().map(|v| v.psnr)),
        mean_ssim: mean(views.iter().map(|v| v.ssim)),
        views,
    };
    let text = serde_json::to_value(&figures)?;
    room::wait(progress, stop, || Ok(write_json(written, &text)?))?;
    Ok(Some(figures))
}

/// Writes a view's reference, sRGB-coded, as an image file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_reference(folder: &RunFolder, stem: &str, coded: &Image) -> Result<()> {
    let parent = folder.reference_images();
    create(&parent)?;
    Ok(image::write_png(&parent.join(format!("{stem}.png")), coded)?)
}

/// Compares a picture with the view's reference, sRGB-coded.
pub(super) fn compare(name: &str, picture: &Picture, mut reference: Image) -> ViewFigures {
    let mut image = picture.coded();
    image.data.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
    for (pixel, texel) in picture.pixels.iter().zip(reference.data.chunks_exact_mut(3)) {
        if pixel[3] < 0.0 {
            texel.fill(0.0);
        }
    }
    let size = [image.width, image.height];
    ViewFigures {
        name: name.to_owned(),
        psnr: Some(quality::psnr(quality::mse(&image.data, &reference.data))).filter(|v| v.is_finite()),
        ssim: quality::ssim(&image.data, &reference.data, size, 3),
        masked: picture.masked(),
    }
}

/// The mean of the values that are present.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.flatten().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::images::FileFormat;
    use crate::scene::ColorSpace;

    /// Of four pixels one has no ray and is black in both images; values out of range are clamped. The other three are
    /// off by 0.1 in one channel each: the mean square over twelve values is 0.03/12, 26.02 dB.
    #[test]
    fn images_are_compared_as_they_are_shown() {
        let picture = Picture {
            width: 2,
            height: 2,
            pixels: vec![
                [0.3, 0.5, 7.0, 0.0],
                [0.2, 0.3, 0.4, 0.5],
                [9.0, 9.0, 9.0, -1.0],
                [0.6, 0.7, -3.0, 1.0],
            ],
            color_space: ColorSpace::Srgb,
            format: FileFormat::default(),
            beside: Vec::new(),
        };
        let reference = Image {
            width: 2,
            height: 2,
            channels: 3,
            data: vec![0.4, 0.5, 1.0, 0.2, 0.2, 0.4, 0.5, 0.6, 0.7, 0.6, 0.6, 0.0],
        };
        let figures = compare("a", &picture, reference.clone());
        assert_eq!((&figures.name[..], figures.ssim, figures.masked), ("a", None, 1));
        let psnr = -10.0 * (0.03f64 / 12.0).log10();
        assert!((figures.psnr.expect("they differ") - psnr).abs() < 1e-4, "{figures:?}");
        let same = Picture {
            pixels: reference
                .data
                .as_chunks::<3>()
                .0
                .iter()
                .map(|[r, g, b]| [*r, *g, *b, 0.0])
                .collect(),
            ..picture
        };
        assert_eq!(compare("a", &same, reference).psnr, None);
        let large = Picture {
            width: 11,
            height: 12,
            pixels: vec![[0.5, 0.25, 0.75, 0.0]; 132],
            color_space: ColorSpace::Srgb,
            format: FileFormat::default(),
            beside: Vec::new(),
        };
        let (image, half) = (
            large.coded(),
            Image {
                data: vec![0.5; 396],
                ..large.coded()
            },
        );
        assert!((compare("b", &large, image).ssim.expect("large enough") - 1.0).abs() < 1e-9);
        // SSIM of constant images depends on their means a and b alone: (2 a b + c) / (a² + b² + c), c = 10⁻⁴.
        let alike = |a: f64, b: f64| (2.0 * a * b + 1e-4) / (a * a + b * b + 1e-4);
        let expected = (1.0 + alike(0.25, 0.5) + alike(0.75, 0.5)) / 3.0;
        assert!((compare("b", &large, half).ssim.expect("large enough") - expected).abs() < 1e-6);
    }

    #[test]
    fn means_are_of_the_values_that_there_are() {
        assert_eq!(mean([Some(1.0), None, Some(4.0)].into_iter()), Some(2.5));
        assert_eq!(mean([None, None].into_iter()), None);
        assert_eq!(mean(std::iter::empty()), None);
    }
}
