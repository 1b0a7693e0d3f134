//! Renders as files: PNG for looking, EXR for measuring.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};

use crate::io::image::Channel;
use crate::io::{self, Image, IoError, image, srgb};
use crate::scene::{ColorSpace, PixelFormat, Sensor};

/// A render as a device returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    /// RGB and transmittance; -1 there marks a pixel without a ray.
    pub pixels: Vec<[f32; 4]>,
    pub color_space: ColorSpace,
    pub format: FileFormat,
    /// Further channels of the EXR file.
    pub beside: Vec<Channel>,
}

/// What a picture's files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileFormat {
    pub pixels: PixelFormat,
    /// Whether an EXR file holds 16-bit floats.
    pub half: bool,
    /// Whether a PNG file has 16 bits a channel instead of 8.
    pub deep: bool,
    /// Whether what lies behind everything counts for alpha, which is then 1 in every pixel that has a ray.
    pub opaque: bool,
}

impl FileFormat {
    fn has_alpha(self) -> bool {
        matches!(self.pixels, PixelFormat::LuminanceAlpha | PixelFormat::Rgba)
    }

    fn is_grey(self) -> bool {
        matches!(self.pixels, PixelFormat::Luminance | PixelFormat::LuminanceAlpha)
    }
}

/// Luminance of linear radiance in the primaries of sRGB.
fn luminance([r, g, b]: [f32; 3]) -> f32 {
    0.212_671 * r + 0.715_16 * g + 0.072_169 * b
}

impl Picture {
    /// The render of a whole sensor.
    pub fn of(sensor: &Sensor, pixels: Vec<[f32; 4]>) -> Self {
        Self {
            width: sensor.width,
            height: sensor.height,
            pixels,
            color_space: sensor.color_space,
            format: FileFormat {
                pixels: sensor.pixel_format,
                half: sensor.half,
                deep: false,
                opaque: false,
            },
            beside: Vec::new(),
        }
    }

    /// Joins pictures of equal height side by side, without their further channels; None without a picture.
    pub fn joined(parts: &[Self]) -> Option<Self> {
        let first = parts.first()?;
        let rows = (0..first.height as usize).flat_map(|y| {
            let row = move |part: &'_ Self| {
                let width = part.width as usize;
                part.pixels[y * width..(y + 1) * width].to_vec()
            };
            parts.iter().flat_map(row)
        });
        Some(Self {
            width: parts.iter().map(|part| part.width).sum(),
            pixels: rows.collect(),
            beside: Vec::new(),
            ..*first
        })
    }

    /// Linear radiance; pixels without a ray are black.
    pub fn linear(&self) -> Image {
        let mut image = self.as_carried();
        if self.color_space == ColorSpace::Srgb {
            srgb::decode_image(&mut image);
        }
        image
    }

    /// sRGB-coded values, neither clamped nor quantised; pixels without a ray are black.
    pub fn coded(&self) -> Image {
        let mut image = self.as_carried();
        if self.color_space == ColorSpace::Linear {
            srgb::encode_image(&mut image);
        }
        image
    }

    /// Number of pixels without a ray.
    pub fn masked(&self) -> usize {
        self.pixels.iter().filter(|p| p[3] < 0.0).count()
    }

    /// Number of pixels with a colour channel that is NaN or infinite.
    pub fn not_finite(&self) -> usize {
        self.pixels
            .iter()
            .filter(|p| !p[..3].iter().all(|v| v.is_finite()))
            .count()
    }

    /// Writes `stem.exr` and `stem.png` and returns their paths.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, stem: &Path) -> io::Result<[PathBuf; 2]> {
        let paths = ["exr", "png"].map(|extension| with_extension(stem, extension));
        let size = [self.width as usize, self.height as usize];
        image::write_exr_channels(&paths[0], size, self.channels(), self.format.half)?;
        match self.format.deep {
            true => image::write_deep_png(&paths[1], &self.shown())?,
            false => image::write_png(&paths[1], &self.shown())?,
        }
        Ok(paths)
    }

    /// The channels of an EXR file: radiance, premultiplied by alpha, and alpha if the pixel format has it.
    fn channels(&self) -> Vec<Channel> {
        let linear = self.linear();
        let channel = |name: &str, value: &dyn Fn([f32; 3]) -> f32| Channel {
            name: name.to_string(),
            values: linear.data.chunks_exact(3).map(|t| value([t[0], t[1], t[2]])).collect(),
        };
        let mut channels = match self.format.is_grey() {
            true => vec![channel("Y", &luminance)],
            false => vec![
                channel("R", &|t| t[0]),
                channel("G", &|t| t[1]),
                channel("B", &|t| t[2]),
            ],
        };
        if self.format.has_alpha() {
            channels.push(Channel {
                name: "A".into(),
                values: self.pixels.iter().map(|p| self.alpha(p)).collect(),
            });
        }
        channels.extend(self.beside.iter().cloned());
        channels
    }

    /// The values of a PNG: sRGB-coded, with straight (not premultiplied) alpha.
    pub fn shown(&self) -> Image {
        if self.format.pixels == PixelFormat::Rgb {
            return self.coded();
        }
        let mut linear = self.linear();
        if self.format.is_grey() {
            for texel in linear.data.chunks_exact_mut(3) {
                texel.fill(luminance([texel[0], texel[1], texel[2]]));
            }
        }
        let alphas = self.pixels.iter().map(|p| self.alpha(p));
        let straight = linear.data.chunks_exact(3).zip(alphas).flat_map(|(texel, alpha)| {
            let scale = match self.format.has_alpha() && alpha > 0.0 {
                true => 1.0 / alpha,
                false => 1.0,
            };
            let color = [0, 1, 2].map(|c| srgb::encode(texel[c] * scale));
            match (self.format.is_grey(), self.format.has_alpha()) {
                (true, false) => vec![color[0]],
                (false, false) => color.to_vec(),
                (_, true) => vec![color[0], color[1], color[2], alpha],
            }
        });
        let data: Vec<f32> = straight.collect();
        Image {
            channels: data.len() / self.pixels.len().max(1),
            data,
            ..linear
        }
    }

    /// A pixel's alpha: one minus its transmittance, or 1 if the format is `opaque`; 0 without a ray.
    fn alpha(&self, pixel: &[f32; 4]) -> f32 {
        match pixel[3] < 0.0 {
            true => 0.0,
            false if self.format.opaque => 1.0,
            false => (1.0 - pixel[3]).clamp(0.0, 1.0),
        }
    }

    fn as_carried(&self) -> Image {
        let color = |p: &[f32; 4]| if p[3] < 0.0 { [0.0; 3] } else { [p[0], p[1], p[2]] };
        Image {
            width: self.width as usize,
            height: self.height as usize,
            channels: 3,
            data: self.pixels.iter().flat_map(color).collect(),
        }
    }
}

/// `stem` with an extension added; dots in the stem are part of the name.
pub fn with_extension(stem: &Path, extension: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// A file name for each sensor by its name: everything unusual is replaced, and an index added where names collide.
pub fn file_stems(names: &[&str]) -> Vec<String> {
    let plain = |name: &str| -> String {
        let usual = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let text: String = name.chars().map(|c| if usual(c) { c } else { '_' }).collect();
        if text.trim_matches('.').is_empty() {
            "view".into()
        } else {
            text
        }
    };
    let stems: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let mut counts = HashMap::new();
    for stem in &stems {
        *counts.entry(stem.to_lowercase()).or_insert(0) += 1;
    }
    let mut taken = HashSet::new();
    let mut unique = |(i, stem): (usize, &String)| {
        let mut name = stem.clone();
        if counts[&stem.to_lowercase()] > 1 {
            name += &format!("_{i}");
        }
        while !taken.insert(name.to_lowercase()) {
            name.push('_');
        }
        name
    };
    stems.iter().enumerate().map(&mut unique).collect()
}

/// Largest number of pictures that wait to be written; each is held in memory.
const WAITING: usize = 4;

/// Encodes and writes pictures in a thread of its own, in order. Pictures for which the disk has no room are left out.
#[derive(Debug)]
pub struct Writer {
    jobs: Option<SyncSender<(Picture, PathBuf)>>,
    worker: Option<JoinHandle<io::Result<()>>>,
    /// The error of the last picture that was left out.
    left_out: Arc<Mutex<Option<IoError>>>,
}

impl Default for Writer {
    fn default() -> Self {
        Self::beside(Arc::default())
    }
}

impl Writer {
    /// Starts the thread.
    fn beside(left_out: Arc<Mutex<Option<IoError>>>) -> Self {
        let (jobs, queue) = sync_channel(WAITING);
        let noted = Arc::clone(&left_out);
        Self {
            jobs: Some(jobs),
            worker: Some(std::thread::spawn(move || {
                write_queue(&queue, |p, stem| p.write(stem).map(drop), &noted)
            })),
            left_out,
        }
    }
}

fn write_queue(
    queue: &Receiver<(Picture, PathBuf)>,
    write: impl Fn(&Picture, &Path) -> io::Result<()>,
    left_out: &Mutex<Option<IoError>>,
) -> io::Result<()> {
    for (picture, stem) in queue {
        match write(&picture, &stem) {
            Err(error) if error.no_room => *left_out.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
            written => written?,
        }
    }
    Ok(())
}

impl Writer {
    /// Hands over a picture to be written as `stem.exr` and `stem.png`.
    ///
    /// # Errors
    /// An earlier picture could not be written.
    pub fn submit(&mut self, picture: Picture, stem: PathBuf) -> Result<()> {
        let sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send((picture, stem)).is_ok());
        if sent { Ok(()) } else { self.finish() }
    }

    /// The error of the last picture that was left out for lack of room since the last call, if any was.
    pub fn left_out(&self) -> Option<IoError> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until everything so far is written.
    ///
    /// # Errors
    /// A picture could not be written.
    pub fn catch_up(&mut self) -> Result<()> {
        self.finish()?;
        *self = Self::beside(Arc::clone(&self.left_out));
        Ok(())
    }

    /// Waits until everything is written; the writer takes no more.
    ///
    /// # Errors
    /// A picture could not be written.
    pub fn finish(&mut self) -> Result<()> {
        self.jobs = None;
        match self.worker.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(written)) => Ok(written?),
            Some(Err(_)) => Err(anyhow!("the thread that writes images ended unexpectedly")),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // `finish` is skipped only after another error, which is the one that is reported.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(color_space: ColorSpace) -> Picture {
        Picture {
            width: 2,
            height: 1,
            pixels: vec![[0.5, 0.25, 1.5, 0.2], [9.0, 9.0, 9.0, -1.0]],
            color_space,
            format: FileFormat::default(),
            beside: Vec::new(),
        }
    }

    /// EXR colours are premultiplied by alpha, PNG colours are straight; masked pixels are transparent.
    #[test]
    fn a_writer_that_has_caught_up_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::default();
        for name in ["a", "b"] {
            let stem = folder.path().join(name);
            writer
                .submit(picture(ColorSpace::Srgb), stem.clone())
                .expect("it takes pictures");
            writer.catch_up().expect("written");
            assert!(
                with_extension(&stem, "exr").exists() && with_extension(&stem, "png").exists(),
                "{name}"
            );
        }
    }

    #[test]
    fn files_have_the_channels_of_their_film() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let grey = 0.212_671 * 0.5 + 0.715_16 * 0.25 + 0.072_169 * 1.5;
        for (pixels, half, opaque, light, coded) in [
            (PixelFormat::Luminance, false, false, vec![grey], vec![grey]),
            (
                PixelFormat::Rgba,
                true,
                false,
                vec![0.625, 0.3125, 1.875, 0.8],
                vec![0.625, 0.3125, 1.0, 0.8],
            ),
            (
                PixelFormat::Rgba,
                false,
                true,
                vec![0.5, 0.25, 1.5, 1.0],
                vec![0.5, 0.25, 1.0, 1.0],
            ),
            (
                PixelFormat::LuminanceAlpha,
                false,
                false,
                vec![grey / 0.8, grey / 0.8, grey / 0.8, 0.8],
                vec![grey / 0.8, grey / 0.8, grey / 0.8, 0.8],
            ),
        ] {
            let mut picture = picture(ColorSpace::Linear);
            picture.format = FileFormat {
                pixels,
                half,
                deep: half,
                opaque,
            };
            let [exr, png] = picture.write(&folder.path().join("view")).expect("writable");
            let (found, _) = image::read(&exr).expect("readable");
            let error = if half { 1e-3 } else { 1e-6 };
            let near = |a: &[f32], b: &[f32], error: f32| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= error);
            assert_eq!(found.channels, light.len(), "{pixels:?}");
            assert!(near(&found.data[..light.len()], &light, error), "{pixels:?}: {found:?}");
            assert!(
                found.data[light.len()..].iter().all(|x| *x == 0.0),
                "{pixels:?}: {found:?}"
            );
            let (shown, _) = image::read(&png).expect("readable");
            let alpha = if coded.len() == 4 { coded[3] } else { 1.0 };
            let expected: Vec<f32> = coded[..coded.len().min(3)].iter().map(|x| srgb::encode(*x)).collect();
            assert!(
                near(&shown.data, &expected, 0.5 / 255.0 + 1e-6),
                "{pixels:?}: {shown:?}"
            );
            assert!(shown.channels < 4 || (shown.data[3] - alpha).abs() < 3e-3, "{shown:?}");
        }
    }

    #[test]
    fn pictures_stand_side_by_side() {
        let part = |width: u32, first: f32| Picture {
            width,
            height: 2,
            pixels: (0..2 * width).map(|i| [first + i as f32; 4]).collect(),
            color_space: ColorSpace::Linear,
            format: FileFormat::default(),
            beside: Vec::new(),
        };
        let joined = Picture::joined(&[part(1, 0.0), part(2, 10.0)]).expect("there are two");
        let first: Vec<f32> = joined.pixels.iter().map(|p| p[0]).collect();
        assert_eq!((joined.width, first), (3, vec![0.0, 10.0, 11.0, 1.0, 12.0, 13.0]));
    }

    #[test]
    fn exr_is_linear_and_png_coded_in_either_colour_space() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for space in [ColorSpace::Linear, ColorSpace::Srgb] {
            let [exr, png] = picture(space)
                .write(&folder.path().join("00120_view.0"))
                .expect("writable");
            assert!(png.ends_with("00120_view.0.png"));
            let (linear, _) = image::read(&exr).expect("readable");
            let (coded, _) = image::read(&png).expect("readable");
            let light = if space == ColorSpace::Linear {
                0.5
            } else {
                srgb::decode(0.5)
            };
            assert!((linear.data[0] - light).abs() < 1e-6, "{space:?}");
            assert!(
                (coded.data[0] - srgb::encode(light)).abs() <= 0.5 / 255.0 + 1e-6,
                "{space:?}"
            );
            assert_eq!(linear.data[3..], [0.0; 3], "masked pixels are black");
        }
    }

    #[test]
    fn pixels_without_a_ray_are_counted() {
        let mut picture = picture(ColorSpace::Linear);
        assert_eq!(picture.masked(), 1);
        picture.pixels[1][3] = 0.0;
        assert_eq!(picture.masked(), 0);
        assert_eq!(
            picture.linear().data,
            [0.5, 0.25, 1.5, 9.0, 9.0, 9.0],
            "no transmittance is one, too"
        );
    }

    #[test]
    fn file_names_are_tame_and_unique() {
        assert_eq!(
            file_stems(&["r_0", "a/b", "..", "R_0", "r_0_0"]),
            ["r_0_0", "a_b", "view", "R_0_3", "r_0_0_"]
        );
    }

    #[test]
    fn pictures_that_find_no_room_are_left_out_and_the_others_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (jobs, queue) = sync_channel(3);
        for name in ["a", "full", "b"] {
            let job = (picture(ColorSpace::Linear), folder.path().join(name));
            jobs.send(job).expect("there is a receiver");
        }
        drop(jobs);
        let left_out = Mutex::new(None);
        let write = |picture: &Picture, stem: &Path| match stem.ends_with("full") {
            true => Err(IoError::of_writing(
                stem,
                "cannot be written",
                &std::io::ErrorKind::StorageFull.into(),
            )),
            false => picture.write(stem).map(drop),
        };
        write_queue(&queue, write, &left_out).expect("a full disk is no failure");
        let error = left_out.into_inner().expect("not poisoned").expect("told");
        assert!(
            error.to_string().contains("full: cannot be written: the disk is full"),
            "{error}"
        );
        assert!(folder.path().join("a.exr").exists() && folder.path().join("b.exr").exists());
    }

    #[test]
    fn the_writer_writes_in_the_background_and_reports_failure() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut writer = Writer::default();
        for i in 0..9 {
            let stem = folder.path().join(format!("{i}"));
            writer.submit(picture(ColorSpace::Linear), stem).expect("writable");
        }
        writer.finish().expect("written");
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 18);
        let mut writer = Writer::default();
        let nowhere = folder.path().join("none/a");
        let failed = (0..50).find_map(|_| writer.submit(picture(ColorSpace::Linear), nowhere.clone()).err());
        assert!(failed.or(writer.finish().err()).is_some());
    }
}
