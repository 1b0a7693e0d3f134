//! The inner loops of a walk through a field at each vector level, bit for bit as in the plain code.

use super::lanes::{Lanes, PlainLanes};
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2::Avx2Lanes, avx512::Avx512Lanes};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::device::cpu::field::bricks::Bricks;
use crate::device::cpu::field::records::Record;
use crate::device::cpu::field::reduce::{Gradient, reduce_plain};
use crate::resident::layout::SceneRecord;
#[cfg(target_arch = "x86_64")]
use crate::resident::layout::density;
use crate::transport::field::radiance_field::{self, LANES, Lattice, Segment};
use crate::transport::lookup::grid::{Stencils, grid_eval, grid_eval_sh, grid_stencils};
#[cfg(target_arch = "x86_64")]
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::lookup::sh::Basis;

/// The types and operations of a vector level.
pub(in crate::device::cpu) trait Wide: Copy + Send + Sync {
    /// A SIMD vector of sixteen numbers.
    type Lanes: Lanes;

    /// The same, for kernels that shuffle lanes more than they compute with them: across a vector of sixteen that takes longer.
    type Shuffled: Lanes;

    /// The basis of a direction, as lookups take it.
    type Bases: Copy;

    fn bases(basis: &Basis) -> Self::Bases;

    /// [`grid_eval_sh`] on f32.
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencils<LANES>, lane: usize, bases: &Self::Bases)
    -> [f32; 3];

    /// [`reduce_plain`]
    #[inline(always)]
    fn reduce<const CHANNELS: usize>(
        size: [u32; 4],
        records: &[Record],
        bases: &[Basis],
        sigma: &mut Gradient,
        sh: &mut Gradient,
    ) {
        reduce_plain::<Self, CHANNELS>(size, records, bases, sigma, sh);
    }

    /// Prefetches the texels of the stencils, in the lanes of `live`.
    #[inline(always)]
    fn prefetch<const CHANNELS: usize>(_data: &[f32], _at: &Stencils<LANES>, _live: u32) {}

    /// [`radiance_field::lattice`]
    #[inline(always)]
    fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        radiance_field::lattice(scene, segment, index)
    }

    /// [`Bricks::keys`]
    #[inline(always)]
    fn keys(bricks: &Bricks, p: &[[f32; LANES]; 3]) -> [u32; LANES] {
        bricks.keys(p)
    }

    /// [`grid_stencils`]
    #[inline(always)]
    fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        grid_stencils(size, p)
    }

    /// [`grid_eval`] for the lanes of `live`; the results of the other lanes are undefined.
    #[inline(always)]
    fn sigmas(data: &[f32], at: &Stencils<LANES>, live: u32) -> [f32; LANES] {
        let mut sigmas = [0.0; LANES];
        for lane in 0..LANES {
            if live >> lane & 1 != 0 {
                sigmas[lane] = grid_eval(data, &at.lane(lane));
            }
        }
        sigmas
    }

    /// [`radiance_field::opacities`]
    #[inline(always)]
    fn opacities(scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        radiance_field::opacities(scene, raw_sigma)
    }
}

/// [`Wide::eval_sh`] for a number of channels that is known only at run time: 3, 12, 27 or 48.
#[inline(always)]
pub(in crate::device::cpu) fn eval_sh<W: Wide>(
    channels: u32,
    data: &[f32],
    at: &Stencils<LANES>,
    lane: usize,
    bases: &W::Bases,
) -> [f32; 3] {
    match channels {
        27 => W::eval_sh::<27>(data, at, lane, bases),
        12 => W::eval_sh::<12>(data, at, lane, bases),
        48 => W::eval_sh::<48>(data, at, lane, bases),
        _ => W::eval_sh::<3>(data, at, lane, bases),
    }
}

/// [`Wide::prefetch`], likewise.
#[inline(always)]
pub(in crate::device::cpu) fn prefetch_sh<W: Wide>(channels: u32, data: &[f32], at: &Stencils<LANES>, live: u32) {
    match channels {
        27 => W::prefetch::<27>(data, at, live),
        12 => W::prefetch::<12>(data, at, live),
        48 => W::prefetch::<48>(data, at, live),
        _ => W::prefetch::<3>(data, at, live),
    }
}

/// [`Wide::reduce`], likewise.
#[inline(always)]
pub(in crate::device::cpu) fn reduce_sh<W: Wide>(
    size: [u32; 4],
    records: &[Record],
    bases: &[Basis],
    sigma: &mut Gradient,
    sh: &mut Gradient,
) {
    match size[3] {
        27 => W::reduce::<27>(size, records, bases, sigma, sh),
        12 => W::reduce::<12>(size, records, bases, sigma, sh),
        48 => W::reduce::<48>(size, records, bases, sigma, sh),
        _ => W::reduce::<3>(size, records, bases, sigma, sh),
    }
}

/// Plain loops, as wide as the compiler makes them.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Plain;

impl Wide for Plain {
    type Lanes = PlainLanes;
    type Shuffled = PlainLanes;
    type Bases = Basis;

    #[inline(always)]
    fn bases(basis: &Basis) -> Basis {
        *basis
    }

    #[inline(always)]
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencils<LANES>, lane: usize, basis: &Basis) -> [f32; 3] {
        grid_eval_sh::<f32, CHANNELS>(data, &at.lane(lane), basis)
    }
}

/// Vectors of 16 lanes for colours.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Wide for Avx512 {
    type Lanes = Avx512Lanes;
    type Shuffled = Avx2Lanes;
    type Bases = avx512::Bases;

    // SAFETY of the calls below: this type is used by `Level::Avx512` alone, which exists only where the features do.
    #[inline(always)]
    fn bases(basis: &Basis) -> avx512::Bases {
        // SAFETY: as above.
        unsafe { avx512::bases(basis) }
    }

    #[inline(always)]
    fn eval_sh<const CHANNELS: usize>(
        data: &[f32],
        at: &Stencils<LANES>,
        lane: usize,
        bases: &avx512::Bases,
    ) -> [f32; 3] {
        // SAFETY: as above.
        unsafe { avx512::eval_sh::<CHANNELS>(data, at, lane, bases) }
    }

    #[inline(always)]
    fn reduce<const CHANNELS: usize>(
        size: [u32; 4],
        records: &[Record],
        bases: &[Basis],
        sigma: &mut Gradient,
        sh: &mut Gradient,
    ) {
        if CHANNELS == 27 {
            // SAFETY: as above.
            unsafe { avx512::reduce_27(size, records, bases, sigma, sh) }
        } else {
            reduce_plain::<Self, CHANNELS>(size, records, bases, sigma, sh);
        }
    }

    #[inline(always)]
    fn prefetch<const CHANNELS: usize>(data: &[f32], at: &Stencils<LANES>, live: u32) {
        Avx2::prefetch::<CHANNELS>(data, at, live);
    }

    #[inline(always)]
    fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        Avx2::lattice(scene, segment, index)
    }

    #[inline(always)]
    fn keys(bricks: &Bricks, p: &[[f32; LANES]; 3]) -> [u32; LANES] {
        Avx2::keys(bricks, p)
    }

    #[inline(always)]
    fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        Avx2::stencils(size, p)
    }

    #[inline(always)]
    fn sigmas(data: &[f32], at: &Stencils<LANES>, live: u32) -> [f32; LANES] {
        Avx2::sigmas(data, at, live)
    }

    #[inline(always)]
    fn opacities(scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        Avx2::opacities(scene, raw_sigma)
    }
}

/// Eight lanes for geometry and opacities, plain loops over channels.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Avx2;

// SAFETY of the calls below: this type is used by levels that exist only where AVX2 does.
#[cfg(target_arch = "x86_64")]
impl Wide for Avx2 {
    type Lanes = Avx2Lanes;
    type Shuffled = Avx2Lanes;
    type Bases = Basis;

    #[inline(always)]
    fn bases(basis: &Basis) -> Basis {
        *basis
    }

    #[inline(always)]
    fn eval_sh<const CHANNELS: usize>(data: &[f32], at: &Stencils<LANES>, lane: usize, basis: &Basis) -> [f32; 3] {
        grid_eval_sh::<f32, CHANNELS>(data, &at.lane(lane), basis)
    }

    /// The lower and the upper neighbour along x lie side by side: four pairs, a line of 64 bytes at a time.
    #[inline(always)]
    fn prefetch<const CHANNELS: usize>(data: &[f32], at: &Stencils<LANES>, live: u32) {
        const LINE: usize = 16;
        let (texels, _) = at.parts();
        for k in [0, 2, 4, 6] {
            for lane in 0..LANES {
                if live >> lane & 1 == 0 {
                    continue;
                }
                let start = texels[k][lane] as usize * CHANNELS;
                for line in 0..(2 * CHANNELS).div_ceil(LINE) {
                    prefetch_line(data.as_ptr().wrapping_add(start + line * LINE));
                }
            }
        }
    }

    #[inline(always)]
    fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        // SAFETY: as above.
        unsafe { avx2::lattice(scene, segment, index) }
    }

    #[inline(always)]
    fn keys(bricks: &Bricks, p: &[[f32; LANES]; 3]) -> [u32; LANES] {
        // SAFETY: as above.
        unsafe { avx2::keys(bricks, p) }
    }

    #[inline(always)]
    fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        // SAFETY: as above.
        unsafe { avx2::stencils(size, p) }
    }

    #[inline(always)]
    fn sigmas(data: &[f32], at: &Stencils<LANES>, live: u32) -> [f32; LANES] {
        if data.len() > 1 {
            // SAFETY: as above.
            unsafe { avx2::sigmas(data, at) }
        } else {
            Plain::sigmas(data, at, live)
        }
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

// Only this architecture has levels to be compared.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::device::cpu::vector::level::Level;
    use crate::transport::lookup::sh::sh_basis;
    use crate::transport::rays::random::test_uniform;

    fn compare<const CHANNELS: usize>(degree: u32) {
        let size = [5u32, 3, 4, 0];
        let data: Vec<f32> = (0..60 * CHANNELS as u32)
            .map(|i| 2.0 * test_uniform(5, i, degree)[0] - 1.0)
            .collect();
        let basis = sh_basis(degree, [0.48, 0.6, -0.64]);
        for i in 0..500 {
            let u = test_uniform(5, 1_000_000 + i, degree);
            let at = grid_stencils(size, &[[u[0]; LANES], [u[1]; LANES], [u[2]; LANES]]);
            let lane = i as usize % LANES;
            let plain = Plain::eval_sh::<CHANNELS>(&data, &at, lane, &basis);
            if Level::detect() == Level::Avx512 {
                assert_eq!(
                    plain,
                    Avx512::eval_sh::<CHANNELS>(&data, &at, lane, &Avx512::bases(&basis)),
                    "degree {degree}, point {i}"
                );
            }
        }
    }

    #[test]
    fn eight_lanes_give_the_bits_of_plain_loops() {
        if Level::detect() == Level::Baseline {
            return;
        }
        let mut scene: SceneRecord = bytemuck::Zeroable::zeroed();
        scene.occupancy_size = [5, 7, 3, 0];
        scene.step_length = 0.037;
        for i in 0..2000u32 {
            let (u, v) = (test_uniform(6, i, 0), test_uniform(6, i, 1));
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
            let size = [1 + i % 9, 1 + i % 4, if i % 2 == 0 { 1 } else { 33 }, 0];
            let (a, b) = (Plain::stencils(size, &plain.p), Avx2::stencils(size, &plain.p));
            assert_eq!(a.parts(), b.parts(), "stencils {i}");
            scene.sh_size = size;
            scene.sigma_size = [size[0] + 64, size[1], size[2] + i % 5, 0];
            let bricks = Bricks::new(&scene);
            assert_eq!(
                Plain::keys(&bricks, &plain.p),
                Avx2::keys(&bricks, &plain.p),
                "keys {i}"
            );
            let cells = size[0] * size[1] * size[2];
            let data: Vec<f32> = (0..cells).map(|c| u[0] + (c as f32 * v[1]).fract()).collect();
            assert_eq!(
                Plain::sigmas(&data, &a, 0xff),
                Avx2::sigmas(&data, &a, 0xff),
                "densities {i}"
            );
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
