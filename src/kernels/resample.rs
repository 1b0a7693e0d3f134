//! Changing the resolution of a grid: trilinear, cell-centred, clamped.

/// Along one axis: for each of `to` texels, the two source texels among `from` and the weight of the second.
pub fn resample_axis(from: usize, to: usize) -> Vec<(usize, usize, f32)> {
    (0..to)
        .map(|i| {
            let x = (i as f32 + 0.5) * from as f32 / to as f32 - 0.5;
            let base = x.floor();
            let clamp = |v: f32| (v.max(0.0) as usize).min(from - 1);
            (clamp(base), clamp(base + 1.0), x - base)
        })
        .collect()
}

/// One texel of a resampled grid: sums the eight source texels into `out`, `channels` values.
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

    #[test]
    fn doubling_reproduces_a_ramp_between_the_outer_centres() {
        let (from, to) = (8usize, 16usize);
        let data: Vec<f32> = (0..from).map(|i| (i as f32 + 0.5) / from as f32).collect();
        let (x, one) = (resample_axis(from, to), resample_axis(1, 1));
        for i in 0..to {
            let mut out = [0f32];
            resample_texel(&data, [from, 1, 1], 1, [x[i], one[0], one[0]], &mut out);
            let place = (i as f32 + 0.5) / to as f32;
            let expected = place.clamp(0.5 / from as f32, 1.0 - 0.5 / from as f32);
            assert!((out[0] - expected).abs() < 1e-6, "texel {i}: {} != {expected}", out[0]);
        }
    }
}
