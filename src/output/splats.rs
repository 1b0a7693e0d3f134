//! Splats as files: `.safetensors`, which scenes read again, `.ply` for viewers of splats, and `.svg` to look at.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use crate::io::tensors::{self, Tensor, Values};
use crate::io::{Result, atomic};
use crate::scene::SPLAT_ARRAYS;

/// Values of splats, array by array.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SplatValues {
    /// In the order of [`SPLAT_ARRAYS`].
    pub arrays: [Vec<f32>; 5],
}

/// Bits a splat takes at half precision: nine numbers.
pub const HALF_BITS: usize = 16 * 9;

impl SplatValues {
    /// The number of splats.
    pub fn count(&self) -> usize {
        self.arrays[4].len()
    }

    fn position(&self, i: usize) -> [f32; 2] {
        [self.arrays[0][2 * i], self.arrays[0][2 * i + 1]]
    }

    fn scale(&self, i: usize) -> [f32; 2] {
        [self.arrays[1][2 * i], self.arrays[1][2 * i + 1]]
    }

    fn color(&self, i: usize) -> [f32; 3] {
        [0, 1, 2].map(|c| self.arrays[3][3 * i + c])
    }

    /// Writes the arrays under their names.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_tensors(&self, path: &Path) -> Result<()> {
        let count = self.count();
        let tensors: Vec<Tensor<'_>> = SPLAT_ARRAYS
            .iter()
            .zip(&self.arrays)
            .map(|(&(name, channels), values)| Tensor {
                name: name.to_owned(),
                shape: vec![count, channels],
                values: Values::F32(values),
            })
            .collect();
        tensors::write(path, &tensors, &BTreeMap::new())
    }

    /// Writes a point cloud as viewers of three-dimensional splats read it (Kerbl2023): the picture lies in the plane
    /// z = 0, seen along +z with y downwards; splats are stacked along z in drawing order, the nearest first.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_ply(&self, path: &Path) -> Result<()> {
        /// The constant spherical harmonic Y₀: viewers store colours as its coefficients.
        const HARMONIC: f32 = 0.282_094_8;
        /// Logarithm of the thickness.
        const THIN: f32 = -14.0;
        let names = [
            "x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
            "rot_0", "rot_1", "rot_2", "rot_3",
        ];
        let mut header = format!(
            "ply\nformat binary_little_endian 1.0\nelement vertex {}\n",
            self.count()
        );
        for name in names {
            let _ = writeln!(header, "property float {name}");
        }
        header.push_str("end_header\n");
        let step = 1e-2 / self.count().max(1) as f32;
        atomic::write(path, |out| {
            out.write_all(header.as_bytes())?;
            for i in 0..self.count() {
                let ([x, y], [a, b]) = (self.position(i), self.scale(i));
                let [red, green, blue] = self.color(i).map(|c| (c - 0.5) / HARMONIC);
                // The logits of opacities 0 and 1 are infinite.
                let opacity = self.arrays[4][i].clamp(1e-6, 1.0 - 1e-6);
                let (sin, cos) = (0.5 * self.arrays[2][i]).sin_cos();
                let values = [
                    x,
                    y,
                    i as f32 * step,
                    0.0,
                    0.0,
                    0.0,
                    red,
                    green,
                    blue,
                    (opacity / (1.0 - opacity)).ln(),
                    a,
                    b,
                    THIN,
                    cos,
                    0.0,
                    0.0,
                    sin,
                ];
                values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
            }
            Ok(())
        })
    }

    /// Writes the splats as ellipses for a picture of this size, back to front. An ellipse has the splat's opacity and
    /// semi-axes of √2 standard deviations, so that its area times opacity is the Gaussian's integral. With `outlines`
    /// they are lines where the splats have half their peak.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_svg(&self, path: &Path, size: [u32; 2], outlines: bool) -> Result<()> {
        atomic::write(path, |out| self.draw_svg(out, size, outlines))
    }

    fn draw_svg(&self, out: &mut impl Write, [width, height]: [u32; 2], outlines: bool) -> io::Result<()> {
        let side = width.max(height) as f32;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\">"
        )?;
        let deviations = if outlines {
            (2.0 * 2f32.ln()).sqrt()
        } else {
            2f32.sqrt()
        };
        if outlines {
            writeln!(out, "<g fill=\"none\" stroke-width=\"0.5\">")?;
        }
        for i in (0..self.count()).rev() {
            let [x, y] = self.position(i).map(|v| v * side);
            let [a, b] = self.scale(i).map(|v| v.exp() * side * deviations);
            let [red, green, blue] = self.color(i).map(|c| (c.clamp(0.0, 1.0) * 255.0).round() as u8);
            let (angle, opacity) = (self.arrays[2][i].to_degrees() % 180.0, self.arrays[4][i]);
            let paint = match outlines {
                true => format!("stroke=\"#{red:02x}{green:02x}{blue:02x}\""),
                false => format!("fill=\"#{red:02x}{green:02x}{blue:02x}\" opacity=\"{opacity:.3}\""),
            };
            writeln!(
                out,
                "<ellipse rx=\"{a:.2}\" ry=\"{b:.2}\" transform=\"translate({x:.2} {y:.2}) rotate({angle:.1})\" {paint}/>"
            )?;
        }
        if outlines {
            writeln!(out, "</g>")?;
        }
        writeln!(out, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> SplatValues {
        SplatValues {
            arrays: [
                vec![0.25, 0.5, 0.75, 0.5],
                vec![-2.0, -3.0, -4.0, -4.0],
                vec![0.5, 0.0],
                vec![1.0, 0.5, 0.0, 0.0, 0.0, 1.0],
                vec![0.5, 1.0],
            ],
        }
    }

    /// Bytes are compared, since this program has no reader for the viewers' format.
    #[test]
    fn point_clouds_have_the_layout_that_viewers_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("splats.ply");
        two().write_ply(&path).expect("writable");
        let bytes = std::fs::read(&path).expect("readable");
        let end = b"end_header\n";
        let at = bytes.windows(end.len()).position(|w| w == end).expect("a header") + end.len();
        let header = std::str::from_utf8(&bytes[..at]).expect("text");
        assert!(header.contains("element vertex 2\n") && header.matches("property float").count() == 17);
        let values: Vec<f32> = bytes[at..]
            .chunks(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        assert_eq!(values.len(), 34);
        let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-4, "{a} is not {b}");
        for (found, expected) in values
            .iter()
            .zip([0.25, 0.5, 0.0, 0.0, 0.0, 0.0, 1.772_454, 0.0, -1.772_454, 0.0])
        {
            near(*found, expected);
        }
        for (found, expected) in values[10..17]
            .iter()
            .zip([-2.0, -3.0, -14.0, 0.968_912, 0.0, 0.0, 0.247_404])
        {
            near(*found, expected);
        }
        assert!(values[17 + 2] > values[2], "the second lies behind the first");
        assert!(values[17 + 9].is_finite(), "opacity 1 has no logit");
    }

    /// Opacities 0 and 1 have the logits of 10⁻⁶ and 1 - 10⁻⁶; the quaternion of a rotation around z has cosine and
    /// sine of half the angle.
    #[test]
    fn opacities_have_finite_logits_and_angles_are_halved() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("splats.ply");
        let mut splats = two();
        splats.arrays[2][1] = 2.0;
        splats.arrays[4] = vec![0.0, 1.0];
        splats.write_ply(&path).expect("writable");
        let bytes = std::fs::read(&path).expect("readable");
        let values: Vec<f32> = bytes[bytes.len() - 2 * 17 * 4..]
            .chunks(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        assert!(
            (values[9] + 13.8155).abs() < 1e-3 && (values[26] - 13.8155).abs() < 0.02,
            "{values:?}"
        );
        let expected = [
            0.75, 0.5, 0.005, 0.0, 0.0, 0.0, -1.772_454, -1.772_454, 1.772_454, values[26], -4.0, -4.0, -14.0,
            0.540_302, 0.0, 0.0, 0.841_471,
        ];
        for (found, expected) in values[17..].iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        }
    }

    #[test]
    fn drawings_hold_every_splat_the_last_first() {
        let head = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50" width="100" height="50">"#;
        let lines = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let filled = lines(&[
            head,
            r##"<ellipse rx="2.59" ry="2.59" transform="translate(75.00 50.00) rotate(0.0)" fill="#0000ff" opacity="1.000"/>"##,
            r##"<ellipse rx="19.14" ry="7.04" transform="translate(25.00 50.00) rotate(28.6)" fill="#ff8000" opacity="0.500"/>"##,
            "</svg>",
        ]);
        let drawn = |splats: &SplatValues, outlines| {
            let mut out = Vec::new();
            splats
                .draw_svg(&mut out, [100, 50], outlines)
                .expect("memory takes all");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(drawn(&two(), false), filled);
        let mut turned = two();
        turned.arrays[2][0] = 4.0;
        turned.arrays[3][..3].copy_from_slice(&[2.0, 0.25, -1.0]);
        let outlined = lines(&[
            head,
            r#"<g fill="none" stroke-width="0.5">"#,
            r##"<ellipse rx="2.16" ry="2.16" transform="translate(75.00 50.00) rotate(0.0)" stroke="#0000ff"/>"##,
            r##"<ellipse rx="15.93" ry="5.86" transform="translate(25.00 50.00) rotate(49.2)" stroke="#ff4000"/>"##,
            "</g>",
            "</svg>",
        ]);
        assert_eq!(drawn(&turned, true), outlined);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.svg");
        turned.write_svg(&path, [100, 50], true).expect("writable");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), outlined);
    }

    #[test]
    fn arrays_have_their_names_and_shapes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.safetensors");
        two().write_tensors(&path).expect("writable");
        let mut reader = tensors::Reader::open(&path).expect("readable");
        for ((name, channels), values) in SPLAT_ARRAYS.iter().zip(&two().arrays) {
            assert_eq!(reader.shape(name), Some(&[2, *channels][..]));
            assert_eq!(reader.f32(name).expect("there"), *values);
        }
    }
}
