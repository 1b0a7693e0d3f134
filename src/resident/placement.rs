//! The initial values of splats: where they stand before a run, and in which order they are drawn.

use std::f32::consts::PI;

use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::each::EachEntry;
use crate::io::tensors::Reader;
use crate::io::{self, IoError};
use crate::scene::{Backdrop, Order, Placement, References, SPLAT_ARRAYS, Scene, Sensor, Splats, leaves};

use super::photographs::photograph;

/// Share of the splats that is spread evenly; the others stand where the picture changes.
const EVEN: f32 = 0.3;

/// Standard deviation of a placed splat, over the distance of its neighbours.
const WIDTH: f32 = 0.5;

/// The least standard deviation of a placed splat in pixels, before it is stretched.
const LEAST_WIDTH: f32 = 0.35;

/// Largest ratio of a splat's standard deviations, along an edge to across it.
const STRETCH: f32 = 2.0;

/// Opacity of a placed splat.
const OPACITY: f32 = 0.7;

/// The initial values of splats, array by array in the order of [`SPLAT_ARRAYS`].
pub(super) fn place(scene: &Scene, splats: &Splats) -> io::Result<[Vec<f32>; 5]> {
    let count = splats.count();
    let mut placed = match &splats.placement {
        Placement::File(path) => {
            let mut reader = Reader::open(path)?;
            let mut arrays = [const { Vec::new() }; 5];
            for (values, (name, channels)) in arrays.iter_mut().zip(SPLAT_ARRAYS) {
                *values = reader.f32(name)?;
                if values.len() != count * channels {
                    return Err(IoError::new(path, "changed while the program ran; start again"));
                }
            }
            arrays
        }
        Placement::Random { seed } => {
            let [width, height] = first_view(scene).map_or([1, 1], |sensor| [sensor.width, sensor.height]);
            at_random(*seed, count, [width as usize, height as usize])
        }
        Placement::Picture { seed } => in_picture(*seed, count, &picture(scene)?),
    };
    if splats.order == Order::Size {
        placed = sorted_by_size(placed);
    }
    Ok(placed)
}

/// The view that splats are placed for: the first that is not held out.
fn first_view(scene: &Scene) -> Option<&Sensor> {
    scene.sensors.iter().find(|sensor| !sensor.held_out)
}

/// A picture, row by row.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[f32; 3]>,
}

/// The reference picture of the first view.
fn picture(scene: &Scene) -> io::Result<Picture> {
    let refuse = || {
        let message = "the splats are placed by a picture, but the first view has none to be compared with: give its \
                       `canvas` an `image`, or take \"random\" as `placement`";
        IoError::new(&scene.path, message)
    };
    let sensor = first_view(scene).ok_or_else(refuse)?;
    let [width, height] = [sensor.width as usize, sensor.height as usize];
    let pixels = match scene.optimize.as_ref().map(|rule| &rule.references) {
        Some(References::Leaves { seed }) => leaves::leaves(*seed, [sensor.width, sensor.height]),
        Some(References::Figures(figures)) => {
            let index = scene.sensors.iter().position(|s| s.name == sensor.name).unwrap_or(0);
            figures[index.min(figures.len() - 1)].draw([sensor.width, sensor.height])
        }
        Some(References::Constant(color)) => vec![*color; width * height],
        Some(References::Scene { .. }) => return Err(refuse()),
        Some(References::Images) | None => {
            let reference = sensor.reference.as_ref().ok_or_else(refuse)?;
            let behind = match reference.backdrop {
                Backdrop::Color(color) => Some(color),
                Backdrop::Opaque | Backdrop::Random => None,
            };
            let over = |[r, g, b, a]: [f32; 4]| match behind {
                None => [r, g, b],
                Some(behind) => [0, 1, 2].each(|c| [r, g, b][c] * a + behind[c] * (1.0 - a)),
            };
            photograph(sensor, reference)?.pixels.into_iter().map(over).collect()
        }
    };
    Ok(Picture { width, height, pixels })
}

/// Uniform numbers in [0, 1).
fn stream(seed: u64) -> impl FnMut() -> f32 {
    let mut stream = Pcg64::new(u128::from(seed), 0x5b1a);
    move || (stream.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// Splats at uniformly random places, of random colours, with standard deviations up to their mean spacing, so that few
/// gaps are left.
fn at_random(seed: u64, count: usize, [width, height]: [usize; 2]) -> [Vec<f32>; 5] {
    let side = width.max(height).max(1) as f32;
    let [w, h] = [width as f32 / side, height as f32 / side];
    let spacing = (w * h / count as f32).sqrt();
    let mut uniform = stream(seed);
    let mut arrays = [const { Vec::new() }; 5];
    for _ in 0..count {
        arrays[0].extend([w * uniform(), h * uniform()]);
        arrays[1].extend([0; 2].each(|_| (spacing * (0.3 + 0.7 * uniform())).ln()));
        arrays[2].push(PI * uniform());
        arrays[3].extend([0; 3].each(|_| uniform()));
        arrays[4].push(0.2 + 0.6 * uniform());
    }
    arrays
}

/// Splats that stand where the picture changes, stretched along its edges, in its colours.
///
/// The density of splats is constant for a share [`EVEN`] of them, and for the rest in proportion to the magnitude of the
/// picture's gradient. Pixels are visited along a Z-shaped curve, and a splat is set whenever the density summed so far has
/// grown by one, so that neighbours keep their distance.
fn in_picture(seed: u64, count: usize, picture: &Picture) -> [Vec<f32>; 5] {
    let Picture { width, height, pixels } = picture;
    let (width, height) = (*width, *height);
    let side = width.max(height).max(1) as f32;
    let gradients = gradients(picture);
    let magnitudes: Vec<f32> = gradients.iter().map(|g| g[2].sqrt()).collect();
    let total: f64 = magnitudes.iter().map(|m| f64::from(*m)).sum();
    let mean = (total / magnitudes.len().max(1) as f64) as f32;
    let share = |pixel: usize| match mean > 0.0 {
        true => EVEN + (1.0 - EVEN) * magnitudes[pixel] / mean,
        false => 1.0,
    };
    // Summed in the order of the loop below, so that `walked` ends at exactly this total.
    let all: f64 = z_curve(width, height).map(|p| f64::from(share(p))).sum();
    let step = all / count as f64;
    let mut uniform = stream(seed);
    let first = f64::from(uniform());
    let mut walked = 0.0;
    let mut arrays = [const { Vec::new() }; 5];
    for pixel in z_curve(width, height) {
        let here = share(pixel);
        walked += f64::from(here);
        while arrays[4].len() < count && walked > (arrays[4].len() as f64 + first) * step {
            let [x, y] = [pixel % width, pixel / width].each(|i| i as f32);
            arrays[0].extend([(x + uniform()) / side, (y + uniform()) / side]);
            // A splat has an area of step/share pixels to itself.
            let spacing = ((step as f32) / here).sqrt();
            let [gx, gy, squares] = gradients[pixel];
            let along = gx.hypot(gy) / squares.max(1e-12);
            let stretch = 1.0 + (STRETCH - 1.0) * along.min(1.0);
            let width = (WIDTH * spacing).max(LEAST_WIDTH) / side;
            arrays[1].extend([(width * stretch.sqrt()).ln(), (width / stretch.sqrt()).ln()]);
            // Along the edge: at a right angle to the gradient, whose angle is half that of the structure vector (gx, gy).
            arrays[2].push(0.5 * gy.atan2(gx) + 0.5 * PI);
            arrays[3].extend(pixels[pixel]);
            arrays[4].push(OPACITY);
        }
    }
    arrays
}

/// The picture's structure tensor at each pixel, summed over colours: (gx² - gy², 2 gx gy), a vector of twice the
/// gradient's angle, and gx² + gy².
fn gradients(picture: &Picture) -> Vec<[f32; 3]> {
    let Picture { width, height, pixels } = picture;
    let at = |x: usize, y: usize, c: usize| pixels[y * width + x][c];
    let mut found = vec![[0.0f32; 3]; width * height];
    for y in 0..*height {
        for x in 0..*width {
            let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
            let (above, below) = (y.saturating_sub(1), (y + 1).min(height - 1));
            let out = &mut found[y * width + x];
            for c in 0..3 {
                let gx = 0.5 * (at(right, y, c) - at(left, y, c));
                let gy = 0.5 * (at(x, below, c) - at(x, above, c));
                out[0] += gx * gx - gy * gy;
                out[1] += 2.0 * gx * gy;
                out[2] += gx * gx + gy * gy;
            }
        }
    }
    found
}

/// The indices of all pixels in Morton order, which keeps neighbours near each other: digits of column and row are
/// interleaved.
pub fn z_curve(width: usize, height: usize) -> impl Iterator<Item = usize> {
    let digits = usize::BITS - width.max(height).max(1).saturating_sub(1).leading_zeros();
    let gather = |code: u64| {
        let mut out = 0usize;
        for digit in 0..32 {
            out |= ((code >> (2 * digit) & 1) as usize) << digit;
        }
        out
    };
    (0..1u64 << (2 * digits)).filter_map(move |code| {
        let (x, y) = (gather(code), gather(code >> 1));
        (x < width && y < height).then_some(y * width + x)
    })
}

/// The same splats, the smallest first.
fn sorted_by_size(arrays: [Vec<f32>; 5]) -> [Vec<f32>; 5] {
    let scales = &arrays[1];
    let mut order: Vec<usize> = (0..arrays[2].len()).collect();
    let area = |i: usize| scales[2 * i] + scales[2 * i + 1];
    order.sort_by(|&a, &b| area(a).total_cmp(&area(b)));
    let mut sorted = [const { Vec::new() }; 5];
    for ((to, from), (_, channels)) in sorted.iter_mut().zip(&arrays).zip(SPLAT_ARRAYS) {
        to.extend(order.iter().flat_map(|&i| &from[channels * i..channels * (i + 1)]));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_meets_every_pixel_once() {
        for (width, height) in [(1, 1), (5, 3), (16, 16), (3, 40)] {
            let mut met: Vec<usize> = z_curve(width, height).collect();
            met.sort_unstable();
            assert_eq!(met, (0..width * height).collect::<Vec<_>>(), "{width} x {height}");
        }
    }

    #[test]
    fn splats_stand_where_the_picture_changes_in_its_colours() {
        let pixels = (0..64 * 64).map(|i| if i % 64 < 32 { [0.1; 3] } else { [0.8; 3] });
        let picture = Picture {
            width: 64,
            height: 64,
            pixels: pixels.collect(),
        };
        for count in [1, 7, 500, 9000] {
            let placed = in_picture(3, count, &picture);
            for (values, (name, channels)) in placed.iter().zip(SPLAT_ARRAYS) {
                assert_eq!(values.len(), count * channels, "{name} of {count}");
                assert!(values.iter().all(|v| v.is_finite()));
            }
        }
        let [position, scale, _, color, _] = in_picture(3, 1000, &picture);
        let on_edge = |i: &usize| (position[2 * i] - 0.5).abs() < 2.0 / 64.0;
        let count = (0..1000).filter(on_edge).count();
        // Two of 64 columns have the whole gradient, which is given 0.7 of all splats.
        assert!((600..800).contains(&count), "{count} splats stand on the edge");
        let wide = |edge: bool| {
            let chosen: Vec<usize> = (0..1000).filter(|i| on_edge(i) == edge).collect();
            chosen.iter().map(|i| scale[2 * i + 1]).sum::<f32>() / chosen.len() as f32
        };
        assert!(wide(true) + 0.7 < wide(false), "splats on the edge are smaller");
        for i in 0..1000 {
            let expected = if position[2 * i] < 0.5 { 0.1 } else { 0.8 };
            assert_eq!(color[3 * i], expected, "splat {i}");
        }
    }

    #[test]
    fn the_smallest_comes_first_with_all_that_belongs_to_it() {
        let [position, scale, ..] = sorted_by_size(at_random(1, 50, [10, 20]));
        let areas: Vec<f32> = scale.chunks(2).map(|s| s[0] + s[1]).collect();
        assert!(areas.is_sorted());
        let before = at_random(1, 50, [10, 20]);
        for i in 0..50 {
            let from = before[1]
                .chunks(2)
                .position(|s| *s == scale[2 * i..2 * i + 2])
                .expect("there");
            assert_eq!(before[0][2 * from..2 * from + 2], position[2 * i..2 * i + 2]);
        }
    }

    fn near(found: f32, expected: f32) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }

    #[test]
    fn the_curve_interleaves_columns_and_rows() {
        let four = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
        assert_eq!(z_curve(4, 4).collect::<Vec<_>>(), four);
        assert_eq!(z_curve(3, 2).collect::<Vec<_>>(), [0, 1, 3, 4, 2, 5]);
        assert_eq!(z_curve(1, 3).collect::<Vec<_>>(), [0, 1, 2]);
    }

    /// The ends of the ranges that 20000 uniform numbers come near, and their means, to five standard errors.
    #[test]
    fn random_splats_fill_their_ranges() {
        let count = 20_000;
        let placed = at_random(5, count, [200, 50]);
        let column = |array: usize, c: usize, channels: usize| -> Vec<f32> {
            placed[array].iter().skip(c).step_by(channels).copied().collect()
        };
        let spacing = (0.25 / count as f32).sqrt();
        let size = |c| column(1, c, 2).iter().map(|v| v.exp() / spacing).collect();
        for (values, low, high) in [
            (column(0, 0, 2), 0.0, 1.0),
            (column(0, 1, 2), 0.0, 0.25),
            (size(0), 0.3, 1.0),
            (size(1), 0.3, 1.0),
            (column(2, 0, 1), 0.0, PI),
            (column(3, 0, 3), 0.0, 1.0),
            (column(3, 1, 3), 0.0, 1.0),
            (column(3, 2, 3), 0.0, 1.0),
            (column(4, 0, 1), 0.2, 0.8),
        ] {
            assert_eq!(values.len(), count);
            let (width, slack) = (high - low, 1e-3 * (high - low));
            let least = values.iter().copied().fold(f32::INFINITY, f32::min);
            let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert!(low - 1e-5 <= least && least < low + slack, "{least} is far from {low}");
            assert!(high - slack < most && most < high + 1e-5, "{most} is far from {high}");
            let mean = values.iter().sum::<f32>() / count as f32;
            let error = width / (12.0 * count as f32).sqrt();
            assert!((mean - 0.5 * (low + high)).abs() < 5.0 * error, "{mean}");
        }
        let mut uniform = stream(5);
        let steps = (0..1000).map(|_| uniform() * (1 << 24) as f32);
        assert!(steps.into_iter().all(|v| v.fract() == 0.0), "24 bits each");
        let (one, other) = (at_random(1, 3, [1, 1]), at_random(2, 3, [1, 1]));
        assert!(one != other && one == at_random(1, 3, [1, 1]));
    }

    /// A picture of 16 × 8 pixels whose colours change evenly: the gradient is (a, b) in each, the half of a
    /// component at a border that lies across it.
    #[test]
    fn gradients_are_central_differences() {
        let slopes = [[0.5, 0.25], [-1.0, 0.5], [0.0, 2.0]];
        let pixel = |i: usize| slopes.map(|[a, b]| a * (i % 16) as f32 + b * (i / 16) as f32);
        let picture = Picture {
            width: 16,
            height: 8,
            pixels: (0..128).map(pixel).collect(),
        };
        let found = gradients(&picture);
        let expected = |across: f32, down: f32| {
            let mut sum = [0.0; 3];
            for [a, b] in slopes {
                let (a, b) = (a * across, b * down);
                sum = [sum[0] + a * a - b * b, sum[1] + 2.0 * a * b, sum[2] + a * a + b * b];
            }
            sum
        };
        for (i, gradient) in found.iter().enumerate() {
            let half = |at: usize, last: usize| if at == 0 || at == last { 0.5 } else { 1.0 };
            assert_eq!(*gradient, expected(half(i % 16, 15), half(i / 16, 7)), "pixel {i}");
        }
    }

    /// In a picture of one colour, as many splats as pixels stand one in each pixel, and four times as many at half the
    /// distance, where they have the least width that is allowed.
    #[test]
    fn an_even_picture_is_covered_evenly() {
        let picture = Picture {
            width: 8,
            height: 4,
            pixels: vec![[0.2, 0.4, 0.6]; 32],
        };
        for (count, width) in [(8, 1.0), (32, 0.5), (128, LEAST_WIDTH)] {
            let [position, scale, rotation, color, opacity] = in_picture(9, count, &picture);
            let pixels = z_curve(8, 4).collect::<Vec<_>>();
            for i in 0..count {
                // The i-th of evenly spaced splats stands at i + u steps along the curve.
                let [x, y] = [position[2 * i] * 8.0, position[2 * i + 1] * 8.0];
                let pixel = y as usize * 8 + x as usize;
                let place = pixels.iter().position(|p| *p == pixel).expect("in the picture");
                assert_eq!(place * count / 32, i * 32 / count * count / 32, "splat {i} of {count}");
                near(scale[2 * i], (width / 8.0f32).ln());
                near(scale[2 * i + 1], (width / 8.0f32).ln());
                near(rotation[i], 0.5 * PI);
                assert_eq!((&color[3 * i..3 * i + 3], opacity[i]), (&[0.2, 0.4, 0.6][..], OPACITY));
            }
            let mean = |c: usize| position.iter().skip(c).step_by(2).sum::<f32>() / count as f32;
            assert!((mean(0) - 0.5).abs() < 0.1 && (mean(1) - 0.25).abs() < 0.1, "{count}");
        }
    }

    /// Half of a picture is flat and the other half rises evenly from the line between them: all splats but the even share
    /// stand in the rising half, along its edges.
    #[test]
    fn splats_share_out_by_the_gradient() {
        let (across, down, rising, falling) = ([0.1, 0.0], [0.0, 0.1], [0.1, 0.1], [0.1, -0.1]);
        for (slope, angle) in [
            (across, 0.5 * PI),
            (down, PI),
            (rising, 0.75 * PI),
            (falling, 0.25 * PI),
        ] {
            let [width, height] = [128, 64];
            let rise = |x: f32, y: f32| slope[0] * (x - 63.5) + slope[1] * (y - 31.5);
            let pixel = |i: usize| [0.0, rise((i % width) as f32, (i / width) as f32).max(0.0), 0.0];
            let picture = Picture {
                width,
                height,
                pixels: (0..width * height).map(pixel).collect(),
            };
            let count = 4000;
            let [position, scale, rotation, ..] = in_picture(1, count, &picture);
            let at = |i: usize| [position[2 * i] * 128.0, position[2 * i + 1] * 128.0];
            let rises = |i: &usize| rise(at(*i)[0] - 0.5, at(*i)[1] - 0.5) > 0.0;
            // The flat half has 0.3/2 of the splats.
            let share = (0..count).filter(rises).count() as f32 / count as f32;
            assert!((share - 0.85).abs() < 0.02, "{slope:?}: {share}");
            let inside = |i: &usize| {
                let [x, y] = at(*i);
                rise(x, y) > 0.3 && (2.0..126.0).contains(&x) && (2.0..62.0).contains(&y)
            };
            let inside: Vec<usize> = (0..count).filter(inside).collect();
            assert!(inside.len() > 2500);
            for i in inside {
                let turned = (rotation[i] - angle).rem_euclid(PI);
                assert!(
                    turned.min(PI - turned) < 1e-3,
                    "{slope:?}: {} is not {angle}",
                    rotation[i]
                );
                near(scale[2 * i] - scale[2 * i + 1], STRETCH.ln());
                // A splat's own area is that of a pixel over the number of splats in it: 1.7 times 4000/8192.
                let width = 0.5 * (scale[2 * i] + scale[2 * i + 1]) + 128f32.ln();
                let expected = (WIDTH * (8192.0 / 4000.0 / 1.7f32).sqrt()).ln();
                assert!((width - expected).abs() < 0.02, "{slope:?}: {width} is not {expected}");
            }
        }
        // Where the squared changes across and down are equal and uncorrelated, the gradient has no direction.
        let across = |i: usize| 0.1 * (i % 8) as f32;
        let down = |i: usize| 0.1 * (i / 8) as f32;
        let picture = Picture {
            width: 8,
            height: 8,
            pixels: (0..64).map(|i| [across(i), down(i), 0.5]).collect(),
        };
        let [position, scale, ..] = in_picture(1, 64, &picture);
        let inside = |v: f32| (1.0..7.0).contains(&(8.0 * v));
        let inner = (0..64).filter(|i| inside(position[2 * i]) && inside(position[2 * i + 1]));
        inner.for_each(|i| near(scale[2 * i], scale[2 * i + 1]));
    }

    /// A scene of splats with `more` in its optimize block.
    fn scene(splats: &str, more: &str) -> Scene {
        let text = format!(
            r#"{{"type": "scene",
            "picture": {{"type": "canvas", "film": {{"type": "hdrfilm", "width": 6, "height": 4, "color_space": "srgb"}}}},
            "splats": {{"type": "splats", {splats}}},
            "optimize": {{"parameters": {{"splats.color": {{}}}}{more}}}}}"#
        );
        crate::scene::parse(&text, std::path::Path::new("splats.json")).unwrap_or_else(|e| panic!("{e}"))
    }

    const LEAVES: &str = r#", "references": {"type": "leaves", "seed": 7}"#;

    fn placed(scene: &Scene) -> [Vec<f32>; 5] {
        let splats = scene.splats.as_ref().expect("given");
        place(scene, splats).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn splats_are_placed_as_the_scene_says() {
        let random = scene(r#""count": 5, "seed": 3"#, LEAVES);
        assert_eq!(placed(&random), at_random(3, 5, [6, 4]));
        let pictured = scene(r#""count": 5, "seed": 3, "placement": "picture""#, LEAVES);
        let leaves = Picture {
            width: 6,
            height: 4,
            pixels: leaves::leaves(7, [6, 4]),
        };
        assert_eq!(placed(&pictured), in_picture(3, 5, &leaves));
        let sorted = scene(r#""count": 5, "seed": 3, "order": "size""#, LEAVES);
        assert_eq!(placed(&sorted), sorted_by_size(at_random(3, 5, [6, 4])));
        assert_ne!(placed(&sorted), placed(&random));

        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.safetensors");
        let write = |arrays: &[Vec<f32>; 5]| {
            let arrays = arrays.clone();
            let values = crate::output::splats::SplatValues { arrays };
            values.write_tensors(&path).expect("writable");
        };
        let arrays = at_random(8, 4, [1, 1]);
        write(&arrays);
        let read = scene(&format!(r#""filename": {path:?}"#), LEAVES);
        assert_eq!(placed(&read), arrays);
        write(&at_random(8, 3, [1, 1]));
        let error = place(&read, read.splats.as_ref().expect("given")).expect_err("one is missing");
        assert!(error.to_string().contains("changed while the program ran"), "{error}");
    }

    #[test]
    fn the_picture_is_what_the_first_view_is_compared_with() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        let transparent = ::image::RgbaImage::from_raw(2, 1, vec![255, 0, 51, 255, 0, 255, 0, 0]).expect("two pixels");
        transparent.save(&path).expect("writable");
        let view = |width, backdrop| Sensor {
            width,
            height: 1,
            color_space: crate::scene::ColorSpace::Srgb,
            reference: Some(crate::scene::Reference {
                path: path.clone(),
                downscale: 1,
                backdrop,
            }),
            ..Sensor::default()
        };
        let kept_out = Sensor {
            held_out: true,
            ..Sensor::default()
        };
        let mut scene = scene(r#""count": 5"#, LEAVES);
        scene.optimize.as_mut().expect("given").references = References::Images;
        let blue = [0.0, 0.0, 1.0];
        for (backdrop, second) in [
            (Backdrop::Color(blue), blue),
            (Backdrop::Opaque, [0.0, 1.0, 0.0]),
            (Backdrop::Random, [0.0, 1.0, 0.0]),
        ] {
            scene.sensors = vec![kept_out.clone(), view(2, backdrop)];
            let Picture { width, height, pixels } = picture(&scene).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((width, height, pixels), (2, 1, vec![[1.0, 0.0, 0.2], second]));
        }
        let mut with = |references| {
            scene.optimize.as_mut().expect("given").references = references;
            picture(&scene).map(|picture| picture.pixels)
        };
        let grey = [0.1, 0.2, 0.3];
        assert_eq!(with(References::Constant(grey)).expect("a colour"), [grey; 2]);
        assert_eq!(
            with(References::Leaves { seed: 1 }).expect("leaves"),
            leaves::leaves(1, [2, 1])
        );
        let target = References::Scene {
            path: "a.json".into(),
            spp: 1,
        };
        let refused = |outcome: io::Result<Vec<[f32; 3]>>| {
            let error = outcome.expect_err("no picture").to_string();
            assert!(error.contains("the first view has none to be compared with"), "{error}");
        };
        refused(with(target));
        scene.optimize.as_mut().expect("given").references = References::Images;
        scene.sensors[1].reference = None;
        refused(picture(&scene).map(|p| p.pixels));
        scene.sensors.truncate(1);
        refused(picture(&scene).map(|p| p.pixels));
    }
}
