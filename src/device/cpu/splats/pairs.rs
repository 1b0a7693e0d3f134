//! The arithmetic that every pair of a pixel and a splat takes, and nothing else: a measure for benchmarks.

use super::gather::Blend;
use super::replay::{Sums, Undo};
use super::shape::{Blocks, Seen, Shape};
use crate::device::cpu::planes::{BLOCKS, Plane};
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;

/// Blends splats that reach every pixel of a tile, and undoes them. No reached blocks are searched for, no lane is idle, no
/// sum of a splat is taken across lanes, no pixel is finished, and all numbers stay in the first-level cache.
#[derive(Debug, Clone)]
pub(in crate::device::cpu) struct Pairs {
    shapes: [Shape; SPLATS],
}

/// Number of splats of [`Pairs`], each of which reaches every pixel.
const SPLATS: usize = 64;

impl Pairs {
    /// Pairs of a pixel and a splat that are blended and undone.
    pub(in crate::device::cpu) const COUNT: usize = SPLATS * BLOCKS * WIDTH;

    /// Splats that cover a tile.
    pub(in crate::device::cpu) fn new() -> Self {
        let shape = |i: usize| Shape {
            center: [8.0 + 0.01 * i as f32, 8.0],
            a: 0.02,
            b: 0.001,
            c: 0.02,
            log_opacity: -6.0,
            color: [0.5; 3],
            ridge: [0.0; 2],
        };
        Self {
            shapes: std::array::from_fn(shape),
        }
    }
}

impl Kernel for &Pairs {
    /// The largest |T − 1| of a transmittance T after the undoing, and a sum that depends on all results.
    type Output = [f32; 2];

    #[inline(always)]
    fn run<W: Wide>(self) -> [f32; 2] {
        let blocks = Blocks::<W::Lanes>::new([0.0; 2]);
        let mut undo = Undo {
            transmittance: Plane::of(1.0),
            by_color: &[Plane::of(1.0); 3],
            behind: Plane::of(0.0),
        };
        let mut splats = [Seen::UNSEEN; SPLATS];
        for i in 0..SPLATS {
            blocks.see(&self.shapes[i], &mut splats[i]);
        }
        let mut total = W::Lanes::splat(0.0);
        for block in 0..BLOCKS {
            let mut state = Blend {
                transmittance: W::Lanes::splat(1.0),
                color: [W::Lanes::splat(0.0); 3],
            };
            for splat in &splats {
                state.blend(splat, splat.weight(splat.measured(block)));
            }
            state.transmittance.store(&mut undo.transmittance[block]);
            total = total + state.color[0] + state.color[1] + state.color[2];
        }
        let mut weights = Plane::of(0.0);
        for splat in splats.iter().rev() {
            for block in 0..BLOCKS {
                splat
                    .weight::<W::Lanes>(splat.measured(block))
                    .store(&mut weights[block]);
            }
            let sums: Sums<W::Lanes> = undo.blend_all(splat, &weights, u16::MAX);
            for k in 0..8 {
                total = total + sums.first[k];
            }
            total = total + sums.last;
        }
        let mut off = 0f32;
        for x in undo.transmittance.0.as_flattened() {
            off = off.max((x - 1.0).abs());
        }
        [off, total.sum()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::vector::lanes::PlainLanes;
    use crate::device::cpu::vector::level::Level;

    /// What is measured is a blend and its undoing: the transmittance comes back, and the sum is not zero.
    #[test]
    fn what_is_measured_is_undone() {
        let pairs = Pairs::new();
        let [off, sum] = Level::Baseline.run(&pairs);
        assert!(off < 4.0 * f32::EPSILON * (SPLATS + 1) as f32, "{off}");
        assert!(sum > 1.0, "{sum}");
        for level in Level::up_to(Level::detect()) {
            assert_eq!(level.run(&pairs), [off, sum], "{level:?}");
        }
        // Every pixel of the tile is blended with every splat.
        let blocks = Blocks::<PlainLanes>::new([0.0; 2]);
        for shape in &pairs.shapes {
            for block in 0..BLOCKS {
                let (mut splat, mut weights) = (Seen::UNSEEN, [0.0; WIDTH]);
                blocks.see(shape, &mut splat);
                splat.weight::<PlainLanes>(splat.measured(block)).store(&mut weights);
                assert!(weights.iter().all(|weight| *weight > 0.0));
            }
        }
    }
}
