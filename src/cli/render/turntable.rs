//! `prbopt render --turntable`: frames along a camera path, and an animated PNG of them.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{RenderArgs, orbit};
use crate::cli::Outcome;
use crate::cli::shared::default_folder;
use crate::device::Device;
use crate::io::{atomic, image};
use crate::optimize::{RenderSettings, render_view};
use crate::output::fingerprint::Fingerprint;
use crate::output::images::Picture;
use crate::output::progress::Progress;
use crate::output::record::write_json;
use crate::output::run_folder::create;
use crate::output::streams::print_line;
use crate::scene::{Scene, Sensor};

/// The largest number of frames that can be asked for.
pub(super) const MOST_FRAMES: u64 = 9999;

fn frame_name(index: usize) -> String {
    format!("frame_{index:04}")
}

/// The folder of the frames, the index of the first frame's sensor, and the sensor that all are copies of.
pub(super) struct Turntable {
    folder: PathBuf,
    first: usize,
    base: Sensor,
}

impl Turntable {
    /// Adds cameras like the sensor `base` along the camera path to the scene, after its own sensors.
    ///
    /// # Errors
    /// The camera path is invalid, or the folder cannot be created.
    pub(super) fn prepare(args: &RenderArgs, frames: u32, scene: &mut Scene, base: usize) -> Result<Self> {
        let base = scene.sensors[base].clone();
        let cameras = match &args.path {
            Some(file) => orbit::path(file, frames as usize)?,
            None => orbit::circle(scene, &base, frames as usize)?,
        };
        if args.to_standard_output() {
            bail!("--output -: standard output takes one picture; give a folder for the frames");
        }
        let folder = args
            .output
            .clone()
            .unwrap_or_else(|| default_folder("renders", &args.scene).join("turntable"));
        if folder.is_file() || folder.extension().is_some_and(|e| e == "png" || e == "exr") {
            bail!(
                "{}: is one file for many frames; give a folder with --output",
                folder.display()
            );
        }
        create(&folder)?;
        let first = scene.sensors.len();
        for (i, camera) in cameras.into_iter().enumerate() {
            scene.sensors.push(Sensor {
                name: frame_name(i),
                to_world: camera,
                reference: None,
                motion: Vec::new(),
                ..base.clone()
            });
        }
        Ok(Self { folder, first, base })
    }

    /// Renders the missing frames, then writes the animation.
    ///
    /// # Errors
    /// The device's, or a file that cannot be written.
    pub(super) fn render(
        self,
        args: &RenderArgs,
        scene: &Scene,
        device: &mut dyn Device,
        progress: &mut Progress,
    ) -> Result<Outcome> {
        let mark = self.mark(args, scene, device)?;
        let note = self.folder.join("turntable.json");
        let earlier = std::fs::read(&note)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
            .unwrap_or_default();
        let resumes = earlier["mark"] == mark.as_str();
        // Before the note tells of fewer: a process that is killed between the two leaves nothing behind for good.
        self.remove_beyond(scene.sensors.len() - self.first, &earlier)?;
        write_json(
            &note,
            &json!({ "mark": mark, "frames": scene.sensors.len() - self.first, "fps": args.fps }),
        )?;
        let sensors = &scene.sensors[self.first..];
        let files: Vec<PathBuf> = sensors
            .iter()
            .map(|s| self.folder.join(format!("{}.png", s.name)))
            .collect();
        let there = files.iter().filter(|file| resumes && file.is_file()).count();
        if there > 0 {
            progress.note(&format!("{there} of {} frames are there already", files.len()));
        }
        progress.begin(0, files.len() as u32);
        let look = RenderSettings {
            seed: args.seed,
            iteration: 0,
            spp: args.spp.unwrap_or(self.base.spp.max(1)),
        };
        for (i, file) in files.iter().enumerate() {
            if !(resumes && file.is_file()) {
                let pixels = render_view(device, (self.first + i) as u32, look)?;
                image::write_png(file, &Picture::of(&sensors[i], pixels).coded())?;
            }
            progress.advance(i as u32 + 1, &json!({ "frame": i, "file": file.display().to_string() }));
        }
        progress.end();
        let animation = self.folder.join("turntable.png");
        atomic::write(&animation, |out| animate(&files, args.fps, out))?;
        progress.event("turntable", json!({ "file": animation.display().to_string() }));
        if args.verbosity.speaks() {
            print_line(&animation.display().to_string());
        }
        Ok(Outcome::Done)
    }

    /// Removes the frames from `count` on of an earlier, longer turntable in the folder, as far as its note `earlier`
    /// tells that they are its own.
    fn remove_beyond(&self, count: usize, earlier: &Value) -> Result<()> {
        let frames = match (&earlier["mark"], earlier["frames"].as_u64()) {
            (Value::String(_), Some(frames)) => frames.min(MOST_FRAMES) as usize,
            _ => return Ok(()),
        };
        for i in count..frames {
            let file = self.folder.join(format!("{}.png", frame_name(i)));
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| {
                        format!("{}: is a frame beyond the last and cannot be removed", file.display())
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A hash of program version, arithmetic, scene, seed, samples, film sizes, camera poses and parameter files.
    fn mark(&self, args: &RenderArgs, scene: &Scene, device: &dyn Device) -> Result<String> {
        let mut mark = Fingerprint::default()
            .with(env!("CARGO_PKG_VERSION").as_bytes())
            .with(device.arithmetic().as_bytes())
            .with(scene.resolved.to_string().as_bytes())
            .with(&args.seed.to_le_bytes())
            .with(format!("{:?}", args.spp).as_bytes());
        for sensor in &scene.sensors[self.first..] {
            mark = mark
                .with(bytemuck::cast_slice(&[sensor.width, sensor.height]))
                .with(bytemuck::cast_slice(&sensor.to_world.to_cols_array()));
        }
        if let Some(folder) = &args.parameters {
            let entries = std::fs::read_dir(folder).with_context(|| format!("{}: cannot be read", folder.display()))?;
            let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            files.sort();
            for file in files {
                let metadata = std::fs::metadata(&file).ok();
                let changed = metadata.as_ref().and_then(|m| m.modified().ok());
                mark = mark.with(format!("{file:?} {:?} {changed:?}", metadata.map(|m| m.len())).as_bytes());
            }
        }
        Ok(mark.text())
    }
}

/// An animated PNG of equally large 8-bit colour PNGs; viewers without animation show the first.
fn animate(files: &[PathBuf], fps: u16, out: &mut BufWriter<File>) -> io::Result<()> {
    let Some((first, others)) = files.split_first() else {
        return Err(io::Error::other("there are no frames"));
    };
    let (width, height, pixels) = decode(first)?;
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_animated(files.len() as u32, 0).map_err(io::Error::other)?;
    encoder.set_frame_delay(1, fps).map_err(io::Error::other)?;
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer.write_image_data(&pixels).map_err(io::Error::other)?;
    for file in others {
        writer.write_image_data(&decode(file)?.2).map_err(io::Error::other)?;
    }
    writer.finish().map_err(io::Error::other)
}

fn decode(file: &Path) -> io::Result<(u32, u32, Vec<u8>)> {
    let decoder = png::Decoder::new(BufReader::new(File::open(file)?));
    let mut reader = decoder.read_info().map_err(io::Error::other)?;
    let size = reader
        .output_buffer_size()
        .ok_or_else(|| io::Error::other("a frame is too large"))?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(io::Error::other)?;
    if frame.color_type != png::ColorType::Rgb || frame.bit_depth != png::BitDepth::Eight {
        return Err(io::Error::other(format!(
            "{}: is no frame of this program; remove it, or choose another folder with --output",
            file.display()
        )));
    }
    pixels.truncate(frame.buffer_size());
    Ok((frame.width, frame.height, pixels))
}
