//! Turns renders of a device into the bytes of pictures.

use crate::report::colormap;
use crate::resident::layout::SensorRecord;
use crate::scene::ColorSpace;

use super::wanted::Moves;

/// A mean of renders: RGB and the transmittance of each pixel, or a depth or magnitude and zeros. The last number is -1
/// where a pixel has no ray.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mean {
    pub pixels: Vec<[f32; 4]>,
    /// Number of renders in the mean.
    pub count: u32,
}

impl Mean {
    pub(super) fn new(pixels: usize) -> Self {
        Self {
            pixels: vec![[0.0; 4]; pixels],
            count: 0,
        }
    }

    /// Adds a render with the weight of one among at most `window`, so that a mean follows a run that goes on.
    pub(super) fn add(&mut self, render: &[[f32; 4]], window: u32) {
        self.count += 1;
        let weight = 1.0 / self.count.min(window.max(1)) as f32;
        for (mean, new) in self.pixels.iter_mut().zip(render) {
            for (mean, new) in mean.iter_mut().zip(new) {
                *mean += (new - *mean) * weight;
            }
        }
    }
}

/// RGB bytes of a picture; pixels without a ray are black.
pub(super) fn picture(pixels: &[[f32; 4]], space: ColorSpace) -> Vec<u8> {
    let code = match space {
        ColorSpace::Linear => colormap::light_byte,
        ColorSpace::Srgb => colormap::coded_byte,
    };
    let color = |p: &[f32; 4]| {
        if p[3] < 0.0 {
            [0; 3]
        } else {
            [p[0], p[1], p[2]].map(code)
        }
    };
    pixels.iter().flat_map(color).collect()
}

/// RGB bytes of the opacity, 1 minus the transmittance: black to white.
pub(super) fn opacity(pixels: &[[f32; 4]]) -> Vec<u8> {
    let grey = |p: &[f32; 4]| [colormap::coded_byte(if p[3] < 0.0 { 0.0 } else { 1.0 - p[3] }); 3];
    pixels.iter().flat_map(grey).collect()
}

/// RGB bytes of amounts by the colour map between `low` and `high`; None is black.
pub(super) fn amounts(values: impl Iterator<Item = Option<f32>>, [low, high]: [f32; 2]) -> Vec<u8> {
    let table = colormap::amounts();
    let color = |value: Option<f32>| value.map_or([0; 3], |v| table[usize::from(colormap::step(v, low, high))]);
    values.flat_map(color).collect()
}

/// Turns distances along rays into depths along a pinhole's view. Zero, where there is no surface, stays zero.
pub(super) fn along_view(distances: &mut [[f32; 4]], record: &SensorRecord, moves: Moves) {
    if moves == Moves::Parallel {
        return;
    }
    for (i, pixel) in distances.iter_mut().enumerate() {
        let [x, y] = [i as u32 % record.width, i as u32 / record.width].map(|n| n as f32 + 0.5);
        let [u, v] = [
            (x - record.center[0]) / record.focal[0],
            (y - record.center[1]) / record.focal[1],
        ];
        pixel[0] /= (1.0 + u * u + v * v).sqrt();
    }
}

/// A PNG that is written quickly rather than small.
pub(super) fn png([width, height]: [u32; 2], bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(bytes))
        .expect("memory takes all bytes, and their number is that of the pixels");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_all_renders_or_of_the_last() {
        let mut mean = Mean::new(1);
        for x in [1.0, 2.0, 6.0] {
            mean.add(&[[x, 0.0, 0.0, 1.0]], u32::MAX);
        }
        assert_eq!((mean.pixels[0], mean.count), ([3.0, 0.0, 0.0, 1.0], 3));
        mean.add(&[[9.0, 0.0, 0.0, 1.0]], 1);
        assert_eq!(mean.pixels[0][0], 9.0);
    }

    #[test]
    fn pictures_are_coded_and_pixels_without_a_ray_black() {
        let pixels = [[0.5, 1.0, 2.0, 0.25], [1.0, 1.0, 1.0, -1.0]];
        assert_eq!(picture(&pixels, ColorSpace::Linear), [188, 255, 255, 0, 0, 0]);
        assert_eq!(picture(&pixels, ColorSpace::Srgb), [128, 255, 255, 0, 0, 0]);
        assert_eq!(opacity(&pixels), [191, 191, 191, 0, 0, 0]);
        let table = colormap::amounts();
        let shown = amounts([Some(1.0), None, Some(3.0)].into_iter(), [1.0, 3.0]);
        assert_eq!(shown, [table[0], [0; 3], table[255]].concat());
    }

    #[test]
    fn pngs_hold_their_bytes() {
        let bytes = png([2, 1], &[1, 2, 3, 4, 5, 6]);
        let decoded = image::load_from_memory(&bytes).expect("a PNG").into_rgb8();
        assert_eq!(decoded.into_raw(), [1, 2, 3, 4, 5, 6]);
    }
}
