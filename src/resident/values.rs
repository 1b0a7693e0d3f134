//! Whether values that come from files are possible: those that a scene states were checked while it was read.

use std::path::Path;

use crate::io::{Image, IoError, Result};
use crate::params::{ParamSet, Parameter};
use crate::scene::{Array, Background, Phase, Scene, Source};

/// A value that is not possible.
#[derive(Debug)]
pub struct Fault<'a> {
    array: &'a Array,
    /// One sentence.
    pub message: String,
}

impl Fault<'_> {
    /// The file that the scene takes the array from; the scene's own where it takes it from none.
    pub(super) fn origin<'a>(&'a self, scene: &'a Scene) -> &'a Path {
        match &self.array.source {
            Source::GridFile(path) | Source::ImageFile(path) => path,
            _ => &scene.path,
        }
    }
}

/// The first value of media or of the environment that a walk cannot use: a negative extinction, an albedo or a weight
/// of a phase function outside [0, 1], a `g` outside (-1, 1), a negative radiance, which is drawn in proportion.
pub fn fault<'a>(scene: &'a Scene, params: &ParamSet) -> Option<Fault<'a>> {
    let mut found = None;
    let mut look = |array: &'a Array, what: &str, possible: fn(f32) -> bool, advice: &str| {
        if found.is_none()
            && let Some(parameter) = params.find(&array.path).map(|index| &params.parameters[index])
            && let Some(at) = parameter.values.iter().position(|v| !possible(*v))
        {
            let (place, value) = (place(parameter, at), parameter.values[at]);
            let message = format!(
                "{place} of `{}` is {value}; {what} {advice}: correct the values",
                array.path
            );
            found = Some(Fault { array, message });
        }
    };
    for medium in &scene.world.media {
        look(
            &medium.sigma_t.array,
            "extinction",
            |v| v >= 0.0,
            "must not be negative",
        );
        look(&medium.albedo.array, "an albedo", is_share, "must lie between 0 and 1");
        let mut phases = vec![&medium.phase];
        while let Some(phase) = phases.pop() {
            match phase {
                Phase::Isotropic | Phase::Rayleigh => {}
                Phase::Hg { g } => look(g, "`g`", |v| v.abs() < 1.0, "must lie between -1 and 1, both excluded"),
                Phase::Blend { weight, phases: parts } => {
                    look(&weight.array, "a weight", is_share, "must lie between 0 and 1");
                    phases.extend(parts.iter());
                }
            }
        }
    }
    if let Background::Envmap { data, .. } = &scene.background
        && !scene.world.is_empty()
    {
        look(data, "radiance", |v| v >= 0.0, "must not be negative");
    }
    found
}

/// Refuses a texture whose values, as they are in its file, cannot be reflectances.
pub(super) fn check_reflectance(path: &Path, image: &Image) -> Result<()> {
    let texels = image.data.chunks_exact(image.channels);
    let colors = texels.map(|texel| &texel[..image.channels.min(3)]);
    for (index, color) in colors.enumerate() {
        if let Some(value) = color.iter().find(|v| !is_share(**v)) {
            let (x, y) = (index % image.width, index / image.width);
            let message =
                format!("pixel ({x}, {y}) is {value}; a reflectance must lie between 0 and 1: correct the values");
            return Err(IoError::new(path, message));
        }
    }
    Ok(())
}

fn is_share(v: f32) -> bool {
    (0.0..=1.0).contains(&v)
}

fn place(parameter: &Parameter, index: usize) -> String {
    let shape = parameter.shape;
    let (texel, channel) = (index / shape.channels, index % shape.channels);
    if shape.texels() == 1 {
        return format!("channel {channel}");
    }
    let [nx, ny, _] = shape.size;
    let (x, y, z) = (texel % nx, texel / nx % ny, texel / (nx * ny));
    format!("texel x={x} y={y} z={z}, channel {channel},")
}
