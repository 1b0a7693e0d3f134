//! A render with the outlines of its splats.

use super::images::Picture;
use super::splats::SplatValues;

/// What is left of the render's brightness beneath the outlines.
const DIMMED: f32 = 0.4;

/// Points of an outline at most.
const MAX_POINTS: f32 = 4096.0;

/// Draws ellipses around the half height of all splats, in their colours, over the dimmed render.
pub fn with_ellipses(picture: &Picture, splats: &SplatValues) -> Picture {
    let mut drawn = picture.clone();
    for pixel in &mut drawn.pixels {
        for c in 0..3 {
            pixel[c] *= DIMMED;
        }
    }
    let side = picture.width.max(picture.height) as f32;
    let [width, height] = [picture.width as f32, picture.height as f32];
    let deviations = (2.0 * 2f32.ln()).sqrt();
    let [positions, scales, rotations, colors, _] = &splats.arrays;
    // The nearest are drawn last.
    for i in (0..splats.count()).rev() {
        let [x, y] = [positions[2 * i], positions[2 * i + 1]].map(|v| v * side);
        let [a, b] = [scales[2 * i], scales[2 * i + 1]].map(|v| v.exp() * side * deviations);
        let (sin, cos) = rotations[i].sin_cos();
        let points = (std::f32::consts::TAU * a.max(b)).clamp(4.0, MAX_POINTS) as usize;
        for k in 0..points {
            let (s, c) = (std::f32::consts::TAU * k as f32 / points as f32).sin_cos();
            let at = [x + a * c * cos - b * s * sin, y + a * c * sin + b * s * cos];
            if !(0.0..width).contains(&at[0]) || !(0.0..height).contains(&at[1]) {
                continue;
            }
            let pixel = &mut drawn.pixels[at[1] as usize * picture.width as usize + at[0] as usize];
            for c in 0..3 {
                pixel[c] = 0.5 * pixel[c] + 0.5 * (0.25 + 0.75 * colors[3 * i + c].clamp(0.0, 1.0));
            }
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::images::FileFormat;
    use crate::scene::ColorSpace;

    #[test]
    fn an_outline_lies_around_the_half_height() {
        let picture = Picture {
            width: 64,
            height: 32,
            pixels: vec![[0.0; 4]; 64 * 32],
            color_space: ColorSpace::Srgb,
            format: FileFormat::default(),
            beside: Vec::new(),
        };
        let ten = (10.0f32 / (2.0 * 2f32.ln()).sqrt() / 64.0).ln();
        let splats = SplatValues {
            arrays: [
                vec![0.5, 0.25],
                vec![ten, ten - 1.0],
                vec![0.0],
                vec![1.0, 0.0, 0.0],
                vec![1.0],
            ],
        };
        let drawn = with_ellipses(&picture, &splats);
        let lit = |x: usize, y: usize| drawn.pixels[y * 64 + x][0] > 0.3;
        assert!(
            (lit(41, 16) || lit(42, 16)) && (lit(21, 16) || lit(22, 16)),
            "the ends of the longer axis"
        );
        assert!(
            !lit(32, 16) && !lit(50, 16) && !lit(32, 28),
            "neither the inside nor what lies beyond"
        );
        let everywhere = SplatValues {
            arrays: [
                vec![f32::NAN, 9.0],
                vec![f32::NAN, 80.0],
                vec![0.0],
                vec![0.0; 3],
                vec![1.0],
            ],
        };
        with_ellipses(&picture, &everywhere);
    }
}
