//! Summing the records of a brick into the gradients. Records come cell by cell, so that the sums of a cell's eight
//! texels stay in registers until its last record; the next cell along x takes over the sums of the four texels that both
//! share.

use std::cell::Cell;

use super::records::{Layers, Record, Replays, by_cell};
use crate::device::cpu::shared::SharedSlice;
use crate::device::cpu::step::Activity;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::{Wide, reduce_sh};
use crate::resident::layout::SceneRecord;
use crate::transport::field::radiance_field::{LANES, same_size};
use crate::transport::lookup::grid::{Stencil, Stencils, grid_adjoint};
use crate::transport::lookup::sh::Basis;

/// The gradient of a grid, empty if it is not wanted, and the marks of its touched blocks.
pub(in crate::device::cpu) struct Gradient<'a> {
    pub(in crate::device::cpu) values: &'a mut [f32],
    pub(in crate::device::cpu) activity: &'a Activity,
}

thread_local! {
    /// Room for the records of a brick.
    static SPARE: Cell<Vec<Record>> = const { Cell::new(Vec::new()) };
}

/// The summation of all records of a brick.
pub(in crate::device::cpu) struct ReduceBrick<'a> {
    pub(in crate::device::cpu) scene: &'a SceneRecord,
    pub(in crate::device::cpu) brick: u32,
    pub(in crate::device::cpu) replays: &'a [Replays],
    /// Spherical harmonics of the directions of the round's rays.
    pub(in crate::device::cpu) bases: &'a [Basis],
    pub(in crate::device::cpu) sigma: &'a SharedSlice<'a, f32>,
    pub(in crate::device::cpu) sh: &'a SharedSlice<'a, f32>,
    /// Of both gradients.
    pub(in crate::device::cpu) activities: [&'a Activity; 2],
    /// The layers of texels to be summed, if not all of the brick is.
    pub(in crate::device::cpu) wanted: Option<Layers>,
}

impl Kernel for ReduceBrick<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        // SAFETY: bricks reduced at the same time stand in different rows of the same colour, and such rows share no
        // texel (see `Bricks`), so that no element is touched by two threads.
        let (sigma, sh) = unsafe { (self.sigma.get(), self.sh.get()) };
        let gradient = |values, activity| Gradient { values, activity };
        let (mut sigma, mut sh) = (gradient(sigma, self.activities[0]), gradient(sh, self.activities[1]));
        let scene = self.scene;
        let mut spare = SPARE.take();
        let records = by_cell(self.replays, self.brick, self.wanted.as_ref(), &mut spare);
        if same_size(scene) {
            reduce_sh::<W>(scene.sh_size, records, self.bases, &mut sigma, &mut sh);
        } else {
            let mut unwanted = gradient(&mut [], self.activities[0]);
            reduce_sh::<W>(scene.sh_size, records, self.bases, &mut unwanted, &mut sh);
            reduce_sigma::<W>(scene.sigma_size, records, &mut sigma);
        }
        SPARE.set(spare);
    }
}

/// Adds the derivatives by the densities to the gradient, record by record.
#[inline(always)]
fn reduce_sigma<W: Wide>(size: [u32; 4], records: &[Record], sigma: &mut Gradient) {
    if sigma.values.is_empty() {
        return;
    }
    for start in (0..records.len()).step_by(LANES) {
        let at = stencils_of::<W>(size, records, start);
        for lane in 0..LANES.min(records.len() - start) {
            let at = at.lane(lane);
            grid_adjoint(sigma.values, &at, records[start + lane].values[0]);
            for texel in at.texels() {
                sigma.activity.touch_texel::<1>(*texel as usize);
            }
        }
    }
}

/// The stencils of the next records from `start` on; lanes beyond the last record hold some point.
#[inline(always)]
pub(in crate::device::cpu) fn stencils_of<W: Wide>(
    size: [u32; 4],
    records: &[Record],
    start: usize,
) -> Stencils<LANES> {
    let mut p = [[0.0; LANES]; 3];
    for lane in 0..LANES.min(records.len() - start) {
        for axis in 0..3 {
            p[axis][lane] = records[start + lane].p[axis];
        }
    }
    W::stencils(size, &p)
}

/// Where the next record's cell lies relative to the open cell, whose sums are in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::device::cpu) enum Move {
    Stay,
    /// The next cell along x: its lower texels are the upper ones of the open cell.
    Right,
    Away,
}

impl Move {
    /// From the texels of the open cell to the cell whose texels 0, 6 and 7 are `first`, `row_end` and `last`. The first and
    /// the last texel of a cell or of a side determine it.
    #[inline(always)]
    pub(in crate::device::cpu) fn between(open: &[u32; 8], first: u32, row_end: u32, last: u32) -> Self {
        if open[0] == first && open[7] == last {
            Self::Stay
        } else if open[1] == first && open[7] == row_end {
            Self::Right
        } else {
            Self::Away
        }
    }
}

/// Accumulators for the eight texels of the open cell.
struct Sums<const CHANNELS: usize> {
    texels: [u32; 8],
    sigma: [f32; 8],
    sh: [[f32; CHANNELS]; 8],
}

impl<const CHANNELS: usize> Sums<CHANNELS> {
    /// Adds the sums of texel `k` to the gradients and starts them anew.
    #[inline(always)]
    fn close(&mut self, k: usize, sigma: &mut Gradient, sh: &mut Gradient) {
        let texel = self.texels[k] as usize;
        if !sigma.values.is_empty() {
            sigma.values[texel] += self.sigma[k];
            sigma.activity.touch_texel::<1>(texel);
        }
        if !sh.values.is_empty() {
            sh.activity.touch_texel::<CHANNELS>(texel);
            let texel = &mut sh.values[texel * CHANNELS..(texel + 1) * CHANNELS];
            for c in 0..CHANNELS {
                texel[c] += self.sh[k][c];
            }
        }
        self.sigma[k] = 0.0;
        self.sh[k] = [0.0; CHANNELS];
    }

    /// Goes on to another cell.
    #[inline(always)]
    fn open(&mut self, texels: &[u32; 8], sigma: &mut Gradient, sh: &mut Gradient) {
        match Move::between(&self.texels, texels[0], texels[6], texels[7]) {
            Move::Stay => return,
            Move::Right => {
                for k in [0, 2, 4, 6] {
                    self.close(k, sigma, sh);
                    self.sigma.swap(k, k + 1);
                    self.sh.swap(k, k + 1);
                }
            }
            Move::Away => {
                for k in 0..8 {
                    self.close(k, sigma, sh);
                }
            }
        }
        self.texels = *texels;
    }

    #[inline(always)]
    fn add(&mut self, at: &Stencil, basis: &Basis, record: &Record) {
        let mut spread = [0.0; CHANNELS];
        for i in 0..CHANNELS / 3 {
            for c in 0..3 {
                spread[3 * i + c] = record.values[1 + c] * basis[i];
            }
        }
        for k in 0..8 {
            let weight = at.weights()[k];
            self.sigma[k] += record.values[0] * weight;
            for c in 0..CHANNELS {
                self.sh[k][c] += spread[c] * weight;
            }
        }
    }
}

/// Adds records to the gradients of both grids, which have the same size; an empty gradient is not wanted.
#[inline(always)]
pub(in crate::device::cpu) fn reduce_plain<W: Wide, const CHANNELS: usize>(
    size: [u32; 4],
    records: &[Record],
    bases: &[Basis],
    sigma: &mut Gradient,
    sh: &mut Gradient,
) {
    if records.is_empty() {
        return;
    }
    let mut sums = Sums {
        texels: *stencils_of::<W>(size, records, 0).lane(0).texels(),
        sigma: [0.0; 8],
        sh: [[0.0; CHANNELS]; 8],
    };
    for start in (0..records.len()).step_by(LANES) {
        let at = stencils_of::<W>(size, records, start);
        for lane in 0..LANES.min(records.len() - start) {
            let record = &records[start + lane];
            let at = at.lane(lane);
            sums.open(at.texels(), sigma, sh);
            sums.add(&at, &bases[record.ray() as usize], record);
        }
    }
    for k in 0..8 {
        sums.close(k, sigma, sh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::field::bricks::Bricks;
    use crate::device::cpu::field::records::Unsorted;
    #[cfg(target_arch = "x86_64")]
    use crate::device::cpu::vector::level::Level;
    use crate::device::cpu::vector::wide::Plain;
    use crate::transport::field::radiance_field::Sample;
    use crate::transport::lookup::grid::{grid_adjoint_sh, grid_stencil};
    use crate::transport::lookup::sh::sh_basis;
    use crate::transport::rays::random::test_uniform;

    /// Records all over a grid, its borders included, most cells holding several, in the order of their keys.
    fn records(scene: &SceneRecord) -> Vec<Record> {
        let bricks = Bricks::new(scene);
        let mut records: Vec<Record> = (0..3000)
            .map(|i| {
                let (u, v) = (test_uniform(8, i, 0), test_uniform(8, i, 1));
                let values = [u[3] - 0.5, v[0] - 0.5, v[1] - 0.5, v[2] - 0.5];
                Record::new([u[0], u[1], u[2]], i % 5, 0, values)
            })
            .collect();
        records.sort_by_key(|record| bricks.keys(&record.p.map(|x| [x])));
        records
    }

    fn reduced<W: Wide>(size: [u32; 4], records: &[Record], bases: &[Basis], lens: [usize; 2]) -> [Vec<f32>; 2] {
        let [mut sigma, mut sh] = lens.map(|len| vec![0.0; len]);
        let activities = lens.map(|len| Activity::new(len, false));
        let [of_sigma, of_sh] = &activities;
        reduce_sh::<W>(
            size,
            records,
            bases,
            &mut Gradient {
                values: &mut sigma,
                activity: of_sigma,
            },
            &mut Gradient {
                values: &mut sh,
                activity: of_sh,
            },
        );
        for (gradient, activity) in [(&sigma, of_sigma), (&sh, of_sh)] {
            let untouched = gradient
                .iter()
                .enumerate()
                .find(|(i, g)| **g != 0.0 && !activity.is_touched(*i));
            assert_eq!(untouched, None, "a gradient that no one takes note of");
        }
        [sigma, sh]
    }

    #[test]
    fn cells_sum_what_records_scatter_and_every_level_gives_the_same_bits() {
        for (degree, channels) in [(0, 3), (1, 12), (2, 27), (3, 48)] {
            let size = [9, 8, 7, channels];
            let mut scene: SceneRecord = bytemuck::Zeroable::zeroed();
            (scene.sigma_size, scene.sh_size) = ([9, 8, 7, 1], size);
            let bases: Vec<Basis> = (0..5)
                .map(|i| sh_basis(degree, [0.6, 0.16 * i as f32, -0.64]))
                .collect();
            let records = records(&scene);
            let all = [504, 504 * channels as usize];
            let [sigma, sh] = reduced::<Plain>(size, &records, &bases, all);
            let (mut sigma_each, mut sh_each) = (vec![0.0f64; all[0]], vec![0.0f64; all[1]]);
            for record in &records {
                let at = grid_stencil(size, record.p);
                let basis = &bases[record.ray() as usize];
                let [d_sigma, r, g, b] = record.values.map(f64::from);
                let d_color = [r, g, b];
                grid_adjoint(&mut sigma_each, &at, d_sigma);
                match channels {
                    3 => grid_adjoint_sh::<f64, 3>(&mut sh_each, &at, basis, d_color),
                    12 => grid_adjoint_sh::<f64, 12>(&mut sh_each, &at, basis, d_color),
                    27 => grid_adjoint_sh::<f64, 27>(&mut sh_each, &at, basis, d_color),
                    _ => grid_adjoint_sh::<f64, 48>(&mut sh_each, &at, basis, d_color),
                }
            }
            for (found, expected) in sigma.iter().zip(&sigma_each).chain(sh.iter().zip(&sh_each)) {
                assert!(
                    (f64::from(*found) - expected).abs() < 1e-5,
                    "{channels}: {found} for {expected}"
                );
            }
            #[cfg(target_arch = "x86_64")]
            for lens in [all, [all[0], 0], [0, all[1]]] {
                use crate::device::cpu::vector::wide::{Avx2, Avx512};
                let plain = reduced::<Plain>(size, &records, &bases, lens);
                if Level::detect() != Level::Baseline {
                    assert_eq!(plain, reduced::<Avx2>(size, &records, &bases, lens), "{channels}");
                }
                if Level::detect() == Level::Avx512 {
                    assert_eq!(plain, reduced::<Avx512>(size, &records, &bases, lens), "{channels}");
                }
            }
        }
    }

    /// The gradient of the colours from the records of chunks, all bricks summed, or the `wanted` layers of texels alone.
    fn reduced_bricks(scene: &SceneRecord, replays: &[Replays], wanted: Option<&Layers>) -> Vec<f32> {
        let [nx, ny, nz, channels] = scene.sh_size.map(|n| n as usize);
        let (mut sigma, mut sh) = (vec![], vec![0.0; nx * ny * nz * channels]);
        let activities = [0, sh.len()].map(|len| Activity::new(len, false));
        let bases = vec![sh_basis(1, [0.6, 0.0, 0.8]); 5];
        for brick in 0..Bricks::new(scene).len() as u32 {
            ReduceBrick {
                scene,
                brick,
                replays,
                bases: &bases,
                sigma: &SharedSlice::new(&mut sigma),
                sh: &SharedSlice::new(&mut sh),
                activities: [&activities[0], &activities[1]],
                wanted: wanted.cloned(),
            }
            .run::<Plain>();
        }
        sh
    }

    #[test]
    fn some_layers_of_texels_get_the_bits_that_all_get_and_others_are_left_out() {
        // 67 texels a side: bricks of more than eight cells, some of which share a key.
        let mut scene: SceneRecord = bytemuck::Zeroable::zeroed();
        (scene.sigma_size, scene.sh_size) = ([5, 6, 67, 1], [5, 6, 67, 12]);
        let bricks = Bricks::new(&scene);
        let mut unsorted = Unsorted::take();
        for i in 0..20_000 {
            let (u, v) = (test_uniform(8, i, 0), test_uniform(8, i, 1));
            let p = [u[0], u[1], u[2]];
            let [key] = bricks.keys(&p.map(|x| [x]));
            unsorted.push(
                key,
                i % 5,
                &Sample {
                    p,
                    raw_sigma: u[3],
                    alpha: 0.5,
                    raw_color: [v[0], v[1], v[2]],
                },
            );
        }
        let mut replays = [Replays::default()];
        replays[0].sort(&unsorted, bricks.len());
        let all = reduced_bricks(&scene, &replays, None);
        let layer = 5 * 6 * 12;
        for wanted in [0..1, 7..8, 8..9, 20..47, 66..67] {
            let some = reduced_bricks(
                &scene,
                &replays,
                Some(&Layers {
                    texels: 67,
                    wanted: wanted.clone(),
                }),
            );
            let entries = wanted.start as usize * layer..wanted.end as usize * layer;
            assert_eq!(some[entries.clone()], all[entries.clone()], "{wanted:?}");
            let beyond = some[..entries.start.saturating_sub(10 * layer)]
                .iter()
                .chain(some.iter().skip(entries.end + 10 * layer));
            assert_eq!(
                beyond.filter(|g| **g != 0.0).count(),
                0,
                "{wanted:?}: others are summed, too"
            );
        }
    }
}
