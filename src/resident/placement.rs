//! Where splats stand before a run, and in which order they are drawn.

use std::f32::consts::PI;

use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::io::tensors::Reader;
use crate::io::{self, IoError};
use crate::scene::{Backdrop, Order, Placement, References, SPLAT_ARRAYS, Scene, Sensor, Splats, leaves};

use super::photographs::photograph;

/// Part of the splats that is spread evenly; the others stand where the picture changes.
const EVEN: f32 = 0.3;

/// Standard deviation of a placed splat, over the distance of its neighbours.
const WIDTH: f32 = 0.5;

/// How much longer than wide a splat is at most on an edge.
const STRETCH: f32 = 2.0;

/// The values of splats, array by array in the order of [`SPLAT_ARRAYS`].
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

/// The view that splats are placed for.
fn first_view(scene: &Scene) -> Option<&Sensor> {
    scene.sensors.iter().find(|sensor| !sensor.held_out)
}

/// A picture, row by row.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[f32; 3]>,
}

/// What the first view is compared with.
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
                Some(behind) => [0, 1, 2].map(|c| [r, g, b][c] * a + behind[c] * (1.0 - a)),
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

/// Everywhere, of all colours, as large as leaves no gaps.
fn at_random(seed: u64, count: usize, [width, height]: [usize; 2]) -> [Vec<f32>; 5] {
    let side = width.max(height).max(1) as f32;
    let [w, h] = [width as f32 / side, height as f32 / side];
    let spacing = (w * h / count as f32).sqrt();
    let mut uniform = stream(seed);
    let mut arrays = [const { Vec::new() }; 5];
    for _ in 0..count {
        arrays[0].extend([w * uniform(), h * uniform()]);
        arrays[1].extend([0; 2].map(|_| (spacing * (0.3 + 0.7 * uniform())).ln()));
        arrays[2].push(PI * uniform());
        arrays[3].extend([0; 3].map(|_| uniform()));
        arrays[4].push(0.2 + 0.6 * uniform());
    }
    arrays
}

/// Where the picture changes, along its edges, in its colours.
///
/// The density of splats is a part [`EVEN`] of the same everywhere and for the rest in proportion to the root of the
/// gradient's magnitude. Pixels are walked through along a Z-shaped curve, and a splat is set whenever the density
/// walked over has grown by one, so that neighbours keep their distance.
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
    let all: f64 = (0..pixels.len()).map(|p| f64::from(share(p))).sum();
    let step = all / count as f64;
    let mut uniform = stream(seed);
    let mut walked = 0.0;
    let mut next = step * f64::from(uniform());
    let mut arrays = [const { Vec::new() }; 5];
    let mut placed = 0;
    for pixel in z_curve(width, height) {
        let here = share(pixel);
        walked += f64::from(here);
        while placed < count && (walked > next || placed + 1 == count && walked >= all) {
            next += step;
            placed += 1;
            let [x, y] = [pixel % width, pixel / width].map(|i| i as f32);
            arrays[0].extend([(x + uniform()) / side, (y + uniform()) / side]);
            // A splat has an area of step/share pixels to itself.
            let spacing = ((step as f32) / here).sqrt();
            let [gx, gy, squares] = gradients[pixel];
            let along = gx.hypot(gy) / squares.max(1e-12);
            let stretch = 1.0 + (STRETCH - 1.0) * along.min(1.0);
            let width = (WIDTH * spacing).max(0.35) / side;
            arrays[1].extend([(width * stretch.sqrt()).ln(), (width / stretch.sqrt()).ln()]);
            // Along the edge: half the angle of the doubled gradient, turned by a quarter.
            arrays[2].push(0.5 * gy.atan2(gx) + 0.5 * PI);
            arrays[3].extend(pixels[pixel]);
            arrays[4].push(0.7);
        }
    }
    // Rounding of the sums may leave a few out.
    while placed < count {
        placed += 1;
        let pixel = (uniform() * pixels.len() as f32) as usize % pixels.len().max(1);
        let [x, y] = [pixel % width, pixel / width].map(|i| i as f32 + 0.5);
        arrays[0].extend([x / side, y / side]);
        arrays[1].extend([(WIDTH * (step as f32).sqrt() / side).ln(); 2]);
        arrays[2].push(0.0);
        arrays[3].extend(pixels[pixel]);
        arrays[4].push(0.7);
    }
    arrays
}

/// The structure of the picture at each pixel: the gradient's squares as a vector of twice its angle, and their sum
/// over x, y and colours.
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

/// All pixels, neighbours near each other: the curve that interleaves the digits of column and row.
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
}
