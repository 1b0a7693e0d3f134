//! The index of refraction in a cube, looked up with SIMD vectors and with the bits of [`Index`]: one vector holds the weights
//! of all three axes, another four rows of four coefficients.

use std::marker::PhantomData;

use crate::device::cpu::vector::lanes::Lanes;
use crate::device::cpu::vector::wide::Wide;
use crate::each::EachEntry;
use crate::transport::light::index::{BORDER, Bending, CURVES, Index, Medium, SIX_VALUES, SLOPES, padded};

/// The coefficients of the spline's weights (70): [`SIX_VALUES`] over six.
const VALUES: [[f32; 4]; 4] = {
    let mut values = SIX_VALUES;
    let mut at = 0;
    while at < 16 {
        values[at / 4][at % 4] /= 6.0;
        at += 1;
    }
    values
};

/// An index whose lookups are compiled for a vector level.
#[derive(Debug, Clone, Copy)]
pub(super) struct WideIndex<'a, W> {
    index: Index<'a, f32>,
    /// Texels along each axis, and half of that: the derivative of the place in the grid by the place in the cube.
    size: [f32; 3],
    scale: [f32; 3],
    /// Entries from a row to the next, and from a layer to the next.
    stride: [usize; 2],
    level: PhantomData<W>,
}

/// The coefficients around a place, and their weights.
struct Axes<L> {
    /// The first of its 64 coefficients.
    first: usize,
    /// Weights of the value, the slope and the curvature; each axis has a quarter of the lanes.
    weight: [L; 3],
}

impl<L: Lanes> Axes<L> {
    /// The product of the weights along x and y for each of sixteen coefficients, for these orders of derivatives.
    #[inline(always)]
    fn plane(&self, along_x: usize, along_y: usize) -> L {
        self.weight[along_x].quarter::<0>() * self.weight[along_y].stretch::<1>()
    }

    /// The weights along z, each in all lanes.
    #[inline(always)]
    fn along_z(&self, order: usize) -> [L; 4] {
        let weight = self.weight[order];
        [
            weight.lane::<8>(),
            weight.lane::<9>(),
            weight.lane::<10>(),
            weight.lane::<11>(),
        ]
    }
}

/// The weighted sum of four layers.
#[inline(always)]
fn weighted<L: Lanes>(layers: &[L; 4], weight: [L; 4]) -> L {
    (layers[0] * weight[0] + layers[1] * weight[1]) + (layers[2] * weight[2] + layers[3] * weight[3])
}

/// Polynomials of f, whose coefficients are the same for each axis.
#[inline(always)]
fn polynomial<L: Lanes, const TERMS: usize>(coefficients: &[[f32; 4]; TERMS], f: L) -> L {
    let mut sum = L::rows(&coefficients[TERMS - 1], 0, 0);
    for k in 1..TERMS {
        sum = sum * f + L::rows(&coefficients[TERMS - 1 - k], 0, 0);
    }
    sum
}

impl<'a, W: Wide> WideIndex<'a, W> {
    pub(super) fn new(index: Index<'a, f32>) -> Self {
        let [px, py, _] = padded(index.size);
        let size = index.size.each(|n| n as f32);
        Self {
            index,
            size,
            scale: size.each(|n| 0.5 * n),
            stride: [px, px * py],
            level: PhantomData,
        }
    }

    #[inline(always)]
    fn axes(&self, p: [f32; 3]) -> Axes<W::Shuffled> {
        const { assert!(BORDER == 2, "the first coefficient is the one below the place's cell") };
        let mut cell = [0usize; 3];
        let mut f = [0f32; 4];
        for a in 0..3 {
            let g = (p[a] + 1.0) * self.scale[a] - 0.5;
            // One more than the texel below; rounding may leave the cube by less than a texel. `max` makes zero of NaN.
            let above = (g + 1.0).max(0.0).min(self.size[a]);
            // SAFETY: it is between zero and a number of texels, which memory holds.
            let texel: i32 = unsafe { above.to_int_unchecked() };
            cell[a] = texel as usize;
            f[a] = g - (texel - 1) as f32;
        }
        let f = W::Shuffled::quarters(f);
        let scale = W::Shuffled::quarters([self.scale[0], self.scale[1], self.scale[2], 0.0]);
        Axes {
            first: cell[2] * self.stride[1] + cell[1] * self.stride[0] + cell[0],
            weight: [
                polynomial(&VALUES, f),
                polynomial(&SLOPES, f) * scale,
                polynomial(&CURVES, f) * (scale * scale),
            ],
        }
    }

    #[inline(always)]
    fn layers(&self, first: usize) -> [W::Shuffled; 4] {
        let [row, layer] = self.stride;
        [
            W::Shuffled::rows(self.index.values, first, row),
            W::Shuffled::rows(self.index.values, first + layer, row),
            W::Shuffled::rows(self.index.values, first + 2 * layer, row),
            W::Shuffled::rows(self.index.values, first + 3 * layer, row),
        ]
    }
}

impl<W: Wide> Medium<f32> for WideIndex<'_, W> {
    #[inline(always)]
    fn entries(&self) -> usize {
        self.index.entries()
    }

    #[inline(always)]
    fn bending(&self, p: [f32; 3]) -> Bending<f32> {
        if !W::Shuffled::IS_VECTOR {
            return self.index.bending(p);
        }
        let axes = self.axes(p);
        let layers = self.layers(axes.first);
        let plain = weighted(&layers, axes.along_z(0));
        let by_z = weighted(&layers, axes.along_z(1));
        let here = axes.plane(0, 0);
        let (a, b) = (plain * here, plain * axes.plane(1, 0));
        let (c, d) = (plain * axes.plane(0, 1), by_z * here);
        let [index, x, y, z, ..] = W::Shuffled::sums(&[a, b, c, d, a, b, c, d]);
        Bending::new(index, [x, y, z])
    }

    #[inline(always)]
    fn bending_along(&self, p: [f32; 3], d: [f32; 3]) -> (Bending<f32>, [f32; 3]) {
        if !W::Shuffled::IS_VECTOR {
            return self.index.bending_along(p, d);
        }
        let axes = self.axes(p);
        let layers = self.layers(axes.first);
        let plain = weighted(&layers, axes.along_z(0));
        let by_z = weighted(&layers, axes.along_z(1));
        let by_zz = weighted(&layers, axes.along_z(2));
        let [here, by_x, by_y] = [axes.plane(0, 0), axes.plane(1, 0), axes.plane(0, 1)];
        let [index, x, y, z, xx, xy, xz, yy] = W::Shuffled::sums(&[
            plain * here,
            plain * by_x,
            plain * by_y,
            by_z * here,
            plain * axes.plane(2, 0),
            plain * axes.plane(1, 1),
            by_z * by_x,
            plain * axes.plane(0, 2),
        ]);
        let (a, b) = (by_z * by_y, by_zz * here);
        let [yz, zz, ..] = W::Shuffled::sums(&[a, b, a, b, a, b, a, b]);
        let bending = Bending::new(index, [x, y, z]);
        (bending, bending.turned([xx, xy, xz, yy, yz, zz], d))
    }

    #[inline(always)]
    fn send(&self, p: [f32; 3], by_index: f32, by_slope: [f32; 3], send: &mut impl FnMut(usize, [f32; 4])) {
        if !W::Shuffled::IS_VECTOR {
            return self.index.send(p, by_index, by_slope, send);
        }
        let axes = self.axes(p);
        let [here, by_x, by_y] = [axes.plane(0, 0), axes.plane(1, 0), axes.plane(0, 1)];
        let across = by_x * W::Shuffled::splat(by_slope[0]) + by_y * W::Shuffled::splat(by_slope[1]);
        let (plain, along) = (W::Shuffled::splat(by_index), W::Shuffled::splat(by_slope[2]));
        let (z, z_slope) = (axes.along_z(0), axes.along_z(1));
        for k in 0..4 {
            let layer = here * (plain * z[k] + along * z_slope[k]) + across * z[k];
            let mut rows = [0.0; 16];
            layer.store(&mut rows);
            for j in 0..4 {
                let first = axes.first + k * self.stride[1] + j * self.stride[0];
                send(first, [rows[4 * j], rows[4 * j + 1], rows[4 * j + 2], rows[4 * j + 3]]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::vector::level::{Kernel, Level};
    use crate::transport::light::index::pad;
    use crate::transport::rays::random::test_uniform;

    /// All that lookups at a place give.
    fn found(medium: &impl Medium<f32>, p: [f32; 3], d: [f32; 3]) -> Vec<u32> {
        let plain = medium.bending(p);
        let (bending, turned) = medium.bending_along(p, d);
        let mut all = vec![plain.index, bending.index];
        all.extend([plain.slope, plain.force, bending.slope, bending.force, turned].concat());
        medium.send(p, 0.7, d, &mut |first, four| {
            all.push(first as f32);
            all.extend(four);
        });
        all.iter().map(|x| x.to_bits()).collect()
    }

    /// [`found`] at each of a number of places.
    struct Places<'a>(Index<'a, f32>, &'a [([f32; 3], [f32; 3])]);

    impl Kernel for Places<'_> {
        type Output = Vec<Vec<u32>>;

        #[inline(always)]
        fn run<W: Wide>(self) -> Self::Output {
            let index = WideIndex::<W>::new(self.0);
            self.1.iter().map(|(p, d)| found(&index, *p, *d)).collect()
        }
    }

    /// Of a grid of different sides, on its faces and edges and a little outside as well.
    #[test]
    fn lookups_in_vectors_give_the_bits_of_plain_ones() {
        let size = [5, 4, 6];
        let random = |i| 1.3 + 0.2 * test_uniform(7, i, 0)[0];
        let values = pad(&(0..120).map(random).collect::<Vec<_>>(), size);
        let index = Index { values: &values, size };
        let place = |i| {
            let [a, b, c, d] = test_uniform(8, i, 0).each(|u| (2.2 * u - 1.1).clamp(-1.0001, 1.0001));
            ([a, b, c], [d, a * b, c - d])
        };
        let places: Vec<_> = (0..200).map(place).collect();
        let plain: Vec<_> = places.iter().map(|(p, d)| found(&index, *p, *d)).collect();
        assert!(Level::detect().run(Places(index, &places)) == plain);
    }
}
