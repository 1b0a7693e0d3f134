//! The inner parts of a walk in wide vectors, bit for bit what the plain code gives.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use crate::resident::layout::{SceneRecord, density};
use crate::transport::grid::{Stencil, Stencils, grid_eval_sh, grid_scatter_sh, grid_stencils};
use crate::transport::radiance_field::{self, LANES, Lattice, Segment};
use crate::transport::sh::{Basis, MAX_COEFFICIENTS};

/// How a vector level looks colours up.
pub(super) trait Wide: Copy + Send + Sync {
    /// [`grid_eval_sh`] on f32.
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencil, basis: &Basis) -> [f32; 3];

    /// Asks for the texels of a stencil to be brought near.
    #[inline(always)]
    fn prefetch(_data: &[f32], _at: &Stencil, _channels: u32) {}

    /// [`radiance_field::lattice`]
    #[inline(always)]
    fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        radiance_field::lattice(scene, segment, index)
    }

    /// [`grid_stencils`]
    #[inline(always)]
    fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        grid_stencils(size, p)
    }

    /// [`radiance_field::opacities`]
    #[inline(always)]
    fn opacities(scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        radiance_field::opacities(scene, raw_sigma)
    }
}

/// The lookup for a number of channels that is known only at run time: 3, 12, 27 or 48.
#[inline(always)]
pub(super) fn eval_sh<W: Wide>(channels: u32, data: &[f32], at: &Stencil, basis: &Basis) -> [f32; 3] {
    match channels {
        27 => W::eval_sh::<27>(data, at, basis),
        12 => W::eval_sh::<12>(data, at, basis),
        48 => W::eval_sh::<48>(data, at, basis),
        _ => W::eval_sh::<3>(data, at, basis),
    }
}

/// The adjoint of [`eval_sh`].
#[inline(always)]
pub(super) fn scatter_sh(channels: u32, gradient: &mut [f32], at: &Stencil, basis: &Basis, g: [f32; 3]) {
    match channels {
        27 => grid_scatter_sh::<f32, 27>(gradient, at, basis, g),
        12 => grid_scatter_sh::<f32, 12>(gradient, at, basis, g),
        48 => grid_scatter_sh::<f32, 48>(gradient, at, basis, g),
        _ => grid_scatter_sh::<f32, 3>(gradient, at, basis, g),
    }
}

/// Plain loops, as wide as the compiler makes them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Wide for Plain {
    #[inline(always)]
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencil, basis: &Basis) -> [f32; 3] {
        grid_eval_sh::<f32, CHANNELS>(data, at, basis)
    }
}

/// Vectors of 16 lanes, of which 15 hold the colours of five coefficients.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx512 {
    #[inline(always)]
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencil, basis: &Basis) -> [f32; 3] {
        // SAFETY: this type is used by `Level::Avx512` alone, which exists only where the features do.
        unsafe { eval_sh_avx512::<CHANNELS>(data, at, basis) }
    }

    #[inline(always)]
    fn prefetch(data: &[f32], at: &Stencil, channels: u32) {
        Avx2::prefetch(data, at, channels);
    }

    #[inline(always)]
    fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        Avx2::lattice(scene, segment, index)
    }

    #[inline(always)]
    fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        Avx2::stencils(size, p)
    }

    #[inline(always)]
    fn opacities(scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        Avx2::opacities(scene, raw_sigma)
    }
}

/// Eight lanes for geometry and opacities, plain loops over channels.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2;

// SAFETY of the calls below: this type is used by levels that exist only where AVX2 does.
#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    #[inline(always)]
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencil, basis: &Basis) -> [f32; 3] {
        Plain::eval_sh::<CHANNELS>(data, at, basis)
    }

    /// The lower and the upper neighbour along x lie side by side: four pairs, a line of 64 bytes at a time.
    #[inline(always)]
    fn prefetch(data: &[f32], at: &Stencil, channels: u32) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 16;
        let lines = (2 * channels as usize).div_ceil(LINE);
        for k in [0, 2, 4, 6] {
            let start = at.texels()[k] as usize * channels as usize;
            for line in 0..lines {
                let address = data.as_ptr().wrapping_add(start + line * LINE);
                // SAFETY: a prefetch reads nothing and may be given any address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
            }
        }
    }

    #[inline(always)]
    fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        // SAFETY: as above.
        unsafe { avx2::lattice(scene, segment, index) }
    }

    #[inline(always)]
    fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        // SAFETY: as above.
        unsafe { avx2::stencils(size, p) }
    }

    #[inline(always)]
    fn opacities(scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        if scene.density_activation == density::RELU {
            // SAFETY: as above.
            unsafe { avx2::opacities_relu(scene.step_length, raw_sigma) }
        } else {
            radiance_field::opacities(scene, raw_sigma)
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
fn eval_sh_avx512<const CHANNELS: usize>(data: &[f32], at: &Stencil, basis: &Basis) -> [f32; 3] {
    use std::arch::x86_64::*;
    const LANES: usize = 15;
    const { assert!(CHANNELS <= 3 * MAX_COEFFICIENTS) };
    let vectors = CHANNELS.div_ceil(LANES);
    at.check(data.len(), CHANNELS);
    let mut sums = [_mm512_setzero_ps(); 4];
    for k in 0..8 {
        let start = at.texels()[k] as usize * CHANNELS;
        // SAFETY: `check` has accepted the largest index.
        let texel = unsafe { data.get_unchecked(start..start + CHANNELS) };
        let weight = _mm512_set1_ps(at.weights()[k]);
        for (v, sum) in sums.iter_mut().enumerate().take(vectors) {
            let lanes = (CHANNELS - v * LANES).min(LANES);
            let mask = ((1u32 << lanes) - 1) as __mmask16;
            // SAFETY: the mask covers `lanes` floats from `v * LANES` on, all of them within `texel`.
            let values = unsafe { _mm512_maskz_loadu_ps(mask, texel.as_ptr().add(v * LANES)) };
            *sum = _mm512_add_ps(*sum, _mm512_mul_ps(values, weight));
        }
    }
    // Coefficient i of the three colours is moved to the lowest lanes, times the basis, and added in order.
    let mut color = _mm_setzero_ps();
    for (v, sum) in sums.iter().enumerate().take(vectors) {
        let moved = [
            *sum,
            _mm512_castsi512_ps(_mm512_alignr_epi32::<3>(
                _mm512_castps_si512(*sum),
                _mm512_castps_si512(*sum),
            )),
            _mm512_castsi512_ps(_mm512_alignr_epi32::<6>(
                _mm512_castps_si512(*sum),
                _mm512_castps_si512(*sum),
            )),
            _mm512_castsi512_ps(_mm512_alignr_epi32::<9>(
                _mm512_castps_si512(*sum),
                _mm512_castps_si512(*sum),
            )),
            _mm512_castsi512_ps(_mm512_alignr_epi32::<12>(
                _mm512_castps_si512(*sum),
                _mm512_castps_si512(*sum),
            )),
        ];
        for (i, moved) in moved.iter().enumerate().take((CHANNELS / 3 - v * 5).min(5)) {
            let scale = _mm_set1_ps(basis[v * 5 + i]);
            color = _mm_add_ps(color, _mm_mul_ps(_mm512_castps512_ps128(*moved), scale));
        }
    }
    let mut out = [0f32; 4];
    // SAFETY: `out` holds four floats.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), color) };
    [out[0], out[1], out[2]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::level::Level;
    use crate::transport::grid::grid_stencil;
    use crate::transport::random::{Counter, Pass, pass_key, random_uniform};
    use crate::transport::sh::sh_basis;

    fn compare<const CHANNELS: usize>(degree: u32) {
        let size = [5u32, 3, 4, 0];
        let key = pass_key(5, degree, Pass::Host);
        let draw = |pixel| {
            random_uniform(
                key,
                Counter {
                    sensor: 0,
                    pixel,
                    sample: 0,
                    block: 0,
                },
            )
        };
        let data: Vec<f32> = (0..60 * CHANNELS as u32).map(|i| 2.0 * draw(i)[0] - 1.0).collect();
        let basis = sh_basis(degree, [0.48, 0.6, -0.64]);
        for i in 0..500 {
            let u = draw(1_000_000 + i);
            let at = grid_stencil(size, [u[0], u[1], u[2]]);
            let plain = Plain::eval_sh::<CHANNELS>(&data, &at, &basis);
            #[cfg(target_arch = "x86_64")]
            if Level::detect() == Level::Avx512 {
                assert_eq!(
                    plain,
                    Avx512::eval_sh::<CHANNELS>(&data, &at, &basis),
                    "degree {degree}, point {i}"
                );
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn eight_lanes_give_the_bits_of_plain_loops() {
        if Level::detect() == Level::Baseline {
            return;
        }
        let mut scene: SceneRecord = bytemuck::Zeroable::zeroed();
        scene.occupancy_size = [5, 7, 3, 0];
        scene.step_length = 0.037;
        let key = pass_key(6, 0, Pass::Host);
        for i in 0..2000u32 {
            let u = random_uniform(
                key,
                Counter {
                    sensor: 0,
                    pixel: i,
                    sample: 0,
                    block: 0,
                },
            );
            let v = random_uniform(
                key,
                Counter {
                    sensor: 0,
                    pixel: i,
                    sample: 0,
                    block: 1,
                },
            );
            let segment = Segment {
                origin: [u[0] - 0.5, u[1] - 0.5, u[2] - 0.5],
                direction: [v[0] * 2.0 - 1.0, v[1] * 2.0 - 1.0, v[2] * 2.0 - 1.0],
                first: u[3],
                far: u[3] + v[3],
                basis: [0.0; 16],
            };
            let (plain, wide) = (
                Plain::lattice(&scene, &segment, i % 40),
                Avx2::lattice(&scene, &segment, i % 40),
            );
            assert_eq!(
                (plain.p, plain.cells, plain.inside),
                (wide.p, wide.cells, wide.inside),
                "lattice {i}"
            );
            let size = [1 + i % 9, 4, 33, 0];
            let (a, b) = (Plain::stencils(size, &plain.p), Avx2::stencils(size, &plain.p));
            assert_eq!(a.parts(), b.parts(), "stencils {i}");
            let raw: [f32; LANES] = std::array::from_fn(|k| (u[k % 4] - 0.3) * 10f32.powi(k as i32 - 3));
            assert_eq!(
                Plain::opacities(&scene, &raw),
                Avx2::opacities(&scene, &raw),
                "opacities {i}"
            );
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        compare::<3>(0);
        compare::<12>(1);
        compare::<27>(2);
        compare::<48>(3);
    }
}
