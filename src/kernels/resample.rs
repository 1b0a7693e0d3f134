//! Resampling of a grid to another resolution, trilinearly.

/// Where `n` texels lie on an axis [0, 1], and what is beyond the outermost ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Their centres are (i + 1/2)/n; beyond is the outermost value.
    Clamped,
    /// The same centres, on a circle.
    Wrapped,
    /// The first texel is at 0, the last at 1; there are at least two.
    Ended,
}

/// Along one axis: for each of `to` texels, the two source texels among `from`, and the weight of the second.
pub fn resample_axis(axis: Axis, from: usize, to: usize) -> Vec<(usize, usize, f32)> {
    let place = |i: usize| match axis {
        Axis::Clamped | Axis::Wrapped => (i as f64 + 0.5) * from as f64 / to as f64 - 0.5,
        Axis::Ended => i as f64 * (from - 1) as f64 / (to - 1) as f64,
    };
    let texel = |x: f64| match axis {
        Axis::Clamped | Axis::Ended => (x.max(0.0) as usize).min(from - 1),
        Axis::Wrapped => x.rem_euclid(from as f64) as usize,
    };
    (0..to)
        .map(|i| {
            let x = place(i);
            let base = x.floor();
            (texel(base), texel(base + 1.0), (x - base) as f32)
        })
        .collect()
}

/// One texel of a resampled grid: writes the weighted sum of eight source texels to `out`, `channels` values.
#[inline]
pub fn resample_texel(
    data: &[f32],
    size: [usize; 3],
    channels: usize,
    axes: [(usize, usize, f32); 3],
    out: &mut [f32],
) {
    out.fill(0.0);
    for k in 0..8usize {
        let mut index = 0;
        let mut weight = 1.0;
        for axis in [2, 1, 0] {
            let (low, high, f) = axes[axis];
            let upper = (k >> axis) & 1 == 1;
            index = index * size[axis] + if upper { high } else { low };
            weight *= if upper { f } else { 1.0 - f };
        }
        for (o, v) in out.iter_mut().zip(&data[index * channels..(index + 1) * channels]) {
            *o += weight * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texel with centre p on an axis [0, 1] is the old grid's linear interpolation at p, and beyond the outer
    /// centres the outer value: for any ratio, finer or coarser.
    #[test]
    fn any_ratio_interpolates_between_the_centres() {
        for (from, to) in [
            (4usize, 12usize),
            (3, 7),
            (7, 3),
            (5, 5),
            (6, 4),
            (2, 9),
            (1, 5),
            (5, 1),
        ] {
            let value = |i: usize| ((3 * i * i) % 7) as f64;
            let centre = |i: usize| (i as f64 + 0.5) / from as f64;
            for (i, (low, high, weight)) in resample_axis(Axis::Clamped, from, to).into_iter().enumerate() {
                let p = (i as f64 + 0.5) / to as f64;
                let expected = match (0..from - 1).find(|&a| centre(a) <= p && p <= centre(a + 1)) {
                    Some(a) => {
                        let f = (p - centre(a)) / (centre(a + 1) - centre(a));
                        value(a) * (1.0 - f) + value(a + 1) * f
                    }
                    None if p < 0.5 => value(0),
                    None => value(from - 1),
                };
                let weight = f64::from(weight);
                let found = value(low) * (1.0 - weight) + value(high) * weight;
                assert!(
                    (found - expected).abs() < 1e-5,
                    "{from} to {to}, texel {i}: {found} != {expected}"
                );
            }
        }
    }

    /// Three axes with different weights, two channels: the eight corners of a cell of a larger grid, by hand.
    #[test]
    fn a_texel_is_the_trilinear_sum_of_its_corners() {
        let size = [3, 4, 5];
        let value = |x: usize, y: usize, z: usize| (1 + x + 10 * y + 100 * z) as f32;
        let mut data = Vec::new();
        for i in 0..60 {
            let v = value(i % 3, i / 3 % 4, i / 12);
            data.extend([v, -2.0 * v * v]);
        }
        let axes = [(0, 2, 0.25f32), (1, 3, 0.5), (4, 2, 0.125)];
        let mut expected = [0f32; 2];
        for (x, wx) in [(0, 0.75), (2, 0.25)] {
            for (y, wy) in [(1, 0.5), (3, 0.5)] {
                for (z, wz) in [(4, 0.875), (2, 0.125)] {
                    let v = value(x, y, z);
                    expected[0] += wx * wy * wz * v;
                    expected[1] += wx * wy * wz * -2.0 * v * v;
                }
            }
        }
        let mut out = [7f32; 2];
        resample_texel(&data, size, 2, axes, &mut out);
        for c in 0..2 {
            assert!((out[c] / expected[c] - 1.0).abs() < 1e-6, "{out:?} != {expected:?}");
        }
    }

    #[test]
    fn doubling_reproduces_a_ramp_between_the_outer_centres() {
        let (from, to) = (8usize, 16usize);
        let data: Vec<f32> = (0..from).map(|i| (i as f32 + 0.5) / from as f32).collect();
        let (x, one) = (
            resample_axis(Axis::Clamped, from, to),
            resample_axis(Axis::Clamped, 1, 1),
        );
        for i in 0..to {
            let mut out = [0f32];
            resample_texel(&data, [from, 1, 1], 1, [x[i], one[0], one[0]], &mut out);
            let place = (i as f32 + 0.5) / to as f32;
            let expected = place.clamp(0.5 / from as f32, 1.0 - 0.5 / from as f32);
            assert!((out[0] - expected).abs() < 1e-6, "texel {i}: {} != {expected}", out[0]);
        }
    }

    /// A map of longitude and latitude: a function of period one and one that is linear between the poles stay what they are, to
    /// the error of linear interpolation, and poles keep their values.
    #[test]
    fn columns_go_round_and_rows_end_at_the_poles() {
        let (from, to) = (40usize, 100usize);
        let wave = |x: f32| (std::f32::consts::TAU * x).sin();
        let centre = |i: usize, n: usize| (i as f32 + 0.5) / n as f32;
        for (i, (low, high, weight)) in resample_axis(Axis::Wrapped, from, to).into_iter().enumerate() {
            let found = wave(centre(low, from)) * (1.0 - weight) + wave(centre(high, from)) * weight;
            let expected = wave(centre(i, to));
            assert!((found - expected).abs() < 0.004, "column {i}: {found}, not {expected}");
        }
        let rows = resample_axis(Axis::Ended, from, to);
        for (i, (low, high, weight)) in rows.iter().enumerate() {
            let found = (*low as f32 * (1.0 - weight) + *high as f32 * weight) / (from - 1) as f32;
            assert!((found - i as f32 / (to - 1) as f32).abs() < 1e-5, "row {i}: {found}");
        }
        assert_eq!(
            [rows[0], rows[to - 1]].map(|row| (row.0, row.2)),
            [(0, 0.0), (from - 1, 0.0)]
        );
    }
}
