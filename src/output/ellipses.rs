//! A render with the outlines of its splats.

use super::images::Picture;
use super::splats::SplatValues;

/// Factor on the render's pixels beneath the outlines.
const DIMMED: f32 = 0.4;

/// Largest number of points of an outline.
const MAX_POINTS: f32 = 4096.0;

/// Draws for each splat the ellipse on which it has half its peak, in its colour, over the dimmed render.
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
    // Splats are sorted from front to back: in reverse, the nearest are drawn last.
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

    /// A pixel's value after `times` points of this colour were blended over it.
    fn blended(mut value: f32, color: f32, times: usize) -> f32 {
        for _ in 0..times {
            value = 0.5 * value + 0.5 * (0.25 + 0.75 * color);
        }
        value
    }

    /// A splat smaller than a pixel has four points there: over a white pixel, dimmed to 0.4. The first of two splats
    /// is drawn last.
    #[test]
    fn outlines_are_blended_over_the_dimmed_render() {
        let picture = Picture {
            width: 4,
            height: 8,
            pixels: vec![[1.0, 0.5, 0.25, 0.125]; 32],
            color_space: ColorSpace::Srgb,
            format: FileFormat::default(),
            beside: Vec::new(),
        };
        let splats = SplatValues {
            arrays: [
                vec![2.5 / 8.0, 6.5 / 8.0, 2.5 / 8.0, 6.5 / 8.0],
                vec![-9.0; 4],
                vec![0.3, 0.0],
                vec![1.0, 0.5, 0.0, 0.0, 2.0, -1.0],
                vec![1.0; 2],
            ],
        };
        let drawn = with_ellipses(&picture, &splats);
        for (i, pixel) in drawn.pixels.iter().enumerate() {
            let times = if i == 6 * 4 + 2 { 4 } else { 0 };
            let of = |before: f32, [behind, front]: [f32; 2]| blended(blended(before, behind, times), front, times);
            let expected = [of(0.4, [0.0, 1.0]), of(0.2, [1.0, 0.5]), of(0.1, [0.0, 0.0]), 0.125];
            for c in 0..4 {
                assert!(
                    (pixel[c] - expected[c]).abs() < 1e-6,
                    "pixel {i}: {pixel:?} is not {expected:?}"
                );
            }
        }
    }

    /// An outline has a point for each pixel of circumference of the circle whose radius is its longer semi-axis, at
    /// even steps of the angle, each in its pixel; those outside the picture are left out.
    #[test]
    fn outlines_have_a_point_a_pixel() {
        let (width, height) = (24, 16);
        let picture = Picture {
            width,
            height,
            pixels: vec![[0.0; 4]; 24 * 16],
            color_space: ColorSpace::Srgb,
            format: FileFormat::default(),
            beside: Vec::new(),
        };
        let deviations = 2.0 * 2f64.ln();
        for (center, axes, angle, points) in [
            ([11.3, 7.6], [5.2, 2.9], 0.5, 32),
            ([11.3, 7.6], [2.1, 6.4], 2.4, 40),
            ([22.1, 1.2], [7.0, 5.0], 0.0, 43),
            ([1.4, 14.8], [6.0, 4.0], -0.8, 37),
        ] {
            let scale = axes.map(|a: f64| ((a / deviations.sqrt() / 24.0).ln()) as f32);
            let splats = SplatValues {
                arrays: [
                    center.map(|v: f64| (v / 24.0) as f32).to_vec(),
                    scale.to_vec(),
                    vec![angle as f32],
                    vec![1.0, 1.0, 1.0],
                    vec![1.0],
                ],
            };
            let mut times = vec![0; 24 * 16];
            for k in 0..points {
                let (s, c) = (std::f64::consts::TAU * f64::from(k) / f64::from(points)).sin_cos();
                let turn = glam::DMat2::from_angle(angle) * glam::dvec2(axes[0] * c, axes[1] * s);
                let [x, y] = [center[0] + turn.x, center[1] + turn.y];
                if (0.0..24.0).contains(&x) && (0.0..16.0).contains(&y) {
                    times[y as usize * 24 + x as usize] += 1;
                }
            }
            let drawn = with_ellipses(&picture, &splats);
            for (i, pixel) in drawn.pixels.iter().enumerate() {
                let expected = blended(0.0, 1.0, times[i]);
                assert!(
                    (pixel[0] - expected).abs() < 1e-6,
                    "{center:?}: pixel {i} is {pixel:?}, not {expected}"
                );
            }
        }
        // An outline far larger than the picture has 4096 points: 15.3 pixels apart here, of which one is seen.
        let far = SplatValues {
            arrays: [
                vec![-9988.0 / 24.0, 8.0 / 24.0],
                vec![((10_000.0 / deviations.sqrt() / 24.0).ln()) as f32; 2],
                vec![0.0],
                vec![1.0; 3],
                vec![1.0],
            ],
        };
        let drawn = with_ellipses(&picture, &far);
        assert_eq!(drawn.pixels.iter().filter(|p| p[0] > 0.0).count(), 1);
    }
}
