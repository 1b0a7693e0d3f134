//! Images of glTF as textures.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use glam::{Affine2, Vec2};
use gltf::texture::{Info, MagFilter, WrappingMode};
use serde_json::{Value, json};

use super::Conversion;
use super::materials::Looks;
use crate::io::{Encoding, Image, image, srgb};

/// How the texels of an image are used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Use {
    /// Linear colours, times a factor.
    Color([f32; 3]),
    /// A channel, times a factor.
    Channel(usize, f32),
    /// Opacities, times a factor; with a bound, one from the bound on and zero below.
    Opacity { factor: f32, bound: Option<f32> },
    /// Normals, whose first two components are scaled, and the second negated if `turned`.
    Normal { scale: f32, turned: bool },
}

impl Conversion<'_> {
    /// Converts a texture of a material; the number of its set of texture coordinates is added to `sets`.
    pub(super) fn textured(
        &mut self,
        info: &Info<'_>,
        made: Use,
        sets: &mut Vec<u32>,
        looks: &mut Looks,
    ) -> Result<Value> {
        let place = info.texture_transform();
        let set = place.as_ref().and_then(|place| place.tex_coord());
        sets.push(set.unwrap_or(info.tex_coord()));
        let to_uv = place.map_or(Affine2::IDENTITY, |place| {
            to_uv(place.offset(), place.rotation(), place.scale())
        });
        self.bitmap(&info.texture(), made, to_uv, looks)
    }

    /// Converts a texture to a `bitmap`.
    pub(super) fn bitmap(
        &mut self,
        texture: &gltf::Texture<'_>,
        made: Use,
        to_uv: Affine2,
        looks: &mut Looks,
    ) -> Result<Value> {
        let file = self.image_file(&texture.source(), made, looks)?;
        let sampler = texture.sampler();
        if sampler.wrap_s() != sampler.wrap_t() {
            self.note("textures that end otherwise along u than along v end as along u".into());
        }
        let mut bitmap = json!({
            "type": "bitmap",
            "filename": self.relative(&file)?,
            "raw": true,
            "filter_type": if sampler.mag_filter() == Some(MagFilter::Nearest) { "nearest" } else { "bilinear" },
            "wrap_mode": match sampler.wrap_s() {
                WrappingMode::ClampToEdge => "clamp",
                WrappingMode::MirroredRepeat => "mirror",
                WrappingMode::Repeat => "repeat",
            },
        });
        if to_uv != Affine2::IDENTITY {
            let row = |i: usize| [to_uv.matrix2.x_axis[i], to_uv.matrix2.y_axis[i], to_uv.translation[i]];
            bitmap["to_uv"] = json!([row(0), row(1), [0.0, 0.0, 1.0]]);
        }
        Ok(bitmap)
    }

    /// Writes an image's texels, converted for their use, to a file: as floats, so that factors lose no precision.
    fn image_file(&mut self, source: &gltf::Image<'_>, made: Use, looks: &mut Looks) -> Result<PathBuf> {
        let key = (source.index(), format!("{made:?}"));
        if let Some(known) = looks.files.get(&key) {
            return Ok(known.clone());
        }
        let number = source.index();
        let bytes = self.buffers.image(source)?;
        // The format is recognised by the content, and the limits on size are those of all images.
        let coded = tempfile::NamedTempFile::new()?;
        std::fs::write(coded.path(), bytes)?;
        let read = image::read(coded.path());
        let (picture, encoding) = read.map_err(|e| anyhow::anyhow!("image {number} {}", e.message))?;
        ensure!(
            picture.first_non_finite().is_none(),
            "image {number} has values that are not finite"
        );
        let (channels, data) = texels(&picture, made, encoding == Encoding::Srgb);
        let kind = match made {
            Use::Color(_) => "color",
            Use::Channel(..) => "values",
            Use::Opacity { .. } => "opacity",
            Use::Normal { .. } => "normals",
        };
        let name = format!("image_{number}_{kind}_{}.exr", looks.files.len());
        let file = self.folder.join(name);
        image::write_exr(
            &file,
            &Image {
                channels,
                data,
                ..picture
            },
        )?;
        looks.files.insert(key, file.clone());
        Ok(file)
    }
}

/// The map of texture coordinates that `KHR_texture_transform` states.
pub(super) fn to_uv(offset: [f32; 2], rotation: f32, scale: [f32; 2]) -> Affine2 {
    // glTF's angles are counter-clockwise in the image as shown, whose v grows downwards.
    Affine2::from_scale_angle_translation(Vec2::ONE, -rotation, Vec2::from_array(offset))
        * Affine2::from_scale(Vec2::from_array(scale))
}

/// Number of channels and values of an image converted for its use.
fn texels(picture: &Image, made: Use, is_coded: bool) -> (usize, Vec<f32>) {
    let n = picture.channels;
    let at = |texel: &[f32], c: usize| texel[if n < 3 { 0 } else { c.min(n - 1) }];
    let alpha = |texel: &[f32]| if n == 2 || n == 4 { texel[n - 1] } else { 1.0 };
    let all = picture.data.chunks_exact(n);
    match made {
        Use::Color(factor) => {
            let linear = |x: f32| if is_coded { srgb::decode(x) } else { x };
            let color = |t: &[f32]| [0, 1, 2].map(|c| factor[c] * linear(at(t, c)));
            (3, all.flat_map(color).collect())
        }
        Use::Channel(c, factor) => (1, all.map(|t| (factor * at(t, c)).clamp(0.0, 1.0)).collect()),
        Use::Opacity { factor, bound } => {
            let opacity = |t: &[f32]| {
                let alpha = (factor * alpha(t)).clamp(0.0, 1.0);
                bound.map_or(alpha, |bound| if alpha >= bound { 1.0 } else { 0.0 })
            };
            (1, all.map(opacity).collect())
        }
        Use::Normal { scale, turned } => {
            // A texel holds (n + 1) / 2 of a normal n.
            let slope = |x: f32, sign: f32| 0.5 + 0.5 * sign * scale * (2.0 * x - 1.0);
            let second = if turned { -1.0 } else { 1.0 };
            let normal = |t: &[f32]| [slope(at(t, 0), 1.0), slope(at(t, 1), second), at(t, 2)];
            (3, all.flat_map(normal).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scales, then makes a quarter turn, by which u is read upwards in the image, against v, then shifts.
    #[test]
    fn transforms_scale_then_turn_then_shift() {
        let map = to_uv([0.25, 1.0], std::f32::consts::FRAC_PI_2, [2.0, 3.0]);
        for (uv, expected) in [
            ([0.0, 0.0], [0.25, 1.0]),
            ([1.0, 0.0], [0.25, -1.0]),
            ([0.0, 1.0], [3.25, 1.0]),
        ] {
            let found = map.transform_point2(uv.into());
            assert!(
                found.abs_diff_eq(expected.into(), 1e-6),
                "{uv:?}: {found}, not {expected:?}"
            );
        }
    }

    #[test]
    fn texels_become_what_is_asked_for() {
        let picture = Image {
            width: 1,
            height: 1,
            channels: 4,
            data: vec![0.5, 0.25, 0.75, 0.4],
        };
        let (n, color) = texels(&picture, Use::Color([1.0, 2.0, 0.5]), true);
        assert_eq!(n, 3);
        assert_eq!(
            color,
            [srgb::decode(0.5), 2.0 * srgb::decode(0.25), 0.5 * srgb::decode(0.75)]
        );
        assert_eq!(texels(&picture, Use::Channel(1, 0.5), true), (1, vec![0.125]));
        let opacity = |bound| texels(&picture, Use::Opacity { factor: 0.5, bound }, true).1[0];
        assert_eq!([None, Some(0.2), Some(0.25)].map(opacity), [0.2, 1.0, 0.0]);
        let normal = |scale, turned| texels(&picture, Use::Normal { scale, turned }, true).1;
        assert_eq!(normal(1.0, false), [0.5, 0.25, 0.75]);
        assert_eq!(normal(1.0, true), [0.5, 0.75, 0.75]);
        assert_eq!(normal(0.5, false), [0.5, 0.375, 0.75]);
        let grey = |data: &[f32]| Image {
            channels: data.len(),
            data: data.to_vec(),
            ..picture
        };
        assert_eq!(texels(&grey(&[0.5]), Use::Channel(2, 1.0), true), (1, vec![0.5]));
        let whole = Use::Opacity {
            factor: 1.0,
            bound: None,
        };
        assert_eq!(texels(&grey(&[0.5]), whole, true), (1, vec![1.0]));
        assert_eq!(texels(&grey(&[0.5, 0.3]), whole, true), (1, vec![0.3]));
    }
}
