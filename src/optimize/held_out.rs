//! Image quality on held-out views.

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

/// Renders every held-out view, writes images and figures, and returns the figures; None if no view is held out, none
/// has a reference, or `stop` was set before all were rendered.
///
/// # Errors
/// The device's, or a file that cannot be read or written.
pub fn judge(
    scene: &Scene,
    targets: &Targets,
    device: &mut dyn Device,
    folder: &RunFolder,
    look: RenderSettings,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Option<HeldOut>> {
    let names: Vec<&str> = scene.sensors.iter().map(|s| s.name.as_str()).collect();
    let stems = file_stems(&names);
    let count = scene.sensors.iter().filter(|s| s.held_out).count();
    if count > 0 {
        progress.note(&format!("rendering {count} held-out views at {} spp", look.spp));
    }
    let mut views = Vec::new();
    for (index, sensor) in scene.sensors.iter().enumerate().filter(|(_, s)| s.held_out) {
        if stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let picture = Picture::of(sensor, render_view(device, index as u32, look)?);
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
    room::wait(progress, stop, || Ok(write_json(&folder.held_out_figures(), &text)?))?;
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

fn compare(name: &str, picture: &Picture, mut reference: Image) -> ViewFigures {
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
