//! From the parameters of splats to their shapes and tiles, and from derivatives back to gradients of the parameters.

use super::lists::{TILE, TileBox};
use super::shape::Shape;
use super::sums::Record;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::params::ParamSet;
use crate::resident::splats::SplatSlots;
use crate::transport::splats::splat::{Parameters, Splat, reach};

/// The parameters of splats, one by one.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    position: &'a [f32],
    scale: &'a [f32],
    rotation: &'a [f32],
    color: &'a [f32],
    opacity: &'a [f32],
}

impl<'a> Reader<'a> {
    pub(super) fn new(slots: &SplatSlots, params: &'a ParamSet) -> Self {
        let [position, scale, rotation, color, opacity] = slots.all().map(|slot| &params.parameters[slot].values[..]);
        Self {
            position,
            scale,
            rotation,
            color,
            opacity,
        }
    }

    #[inline(always)]
    fn splat(&self, i: usize) -> Parameters<f32> {
        Parameters {
            position: [self.position[2 * i], self.position[2 * i + 1]],
            scale: [self.scale[2 * i], self.scale[2 * i + 1]],
            rotation: self.rotation[i],
            color: [self.color[3 * i], self.color[3 * i + 1], self.color[3 * i + 2]],
            opacity: self.opacity[i],
        }
    }
}

/// Projects some splats, and finds the tiles that they may reach.
pub(super) struct Project<'a> {
    pub(super) read: Reader<'a>,
    /// The first one's index.
    pub(super) first: usize,
    pub(super) side: f32,
    /// Tiles a row and a column.
    pub(super) tiles: [usize; 2],
    pub(super) shapes: &'a mut [Shape],
    pub(super) boxes: &'a mut [TileBox],
}

impl Kernel for Project<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let [across, down] = self.tiles;
        for i in 0..self.shapes.len() {
            let of = self.read.splat(self.first + i);
            let splat = Splat::project(&of, self.side);
            let [x, y] = splat.center;
            self.boxes[i] = match reach(&of, self.side) {
                None => TileBox::default(),
                Some([width, height]) => TileBox {
                    columns: tiles(x, width, across),
                    rows: tiles(y, height, down),
                },
            };
            self.shapes[i] = Shape::new(&splat);
        }
    }
}

/// The tiles along an axis that hold a pixel's centre no farther than `reach` from `center`, the end excluded.
#[inline(always)]
fn tiles(center: f32, reach: f32, tiles: usize) -> [u16; 2] {
    let last = (tiles * TILE) as f32;
    let first = (center - reach - 0.5).ceil().clamp(0.0, last) as usize / TILE;
    let end = ((center + reach - 0.5).floor() + 1.0).clamp(0.0, last) as usize;
    [first.min(tiles) as u16, end.div_ceil(TILE) as u16]
}

/// From the sums of some splats to the gradients of their parameters.
pub(super) struct Update<'a> {
    pub(super) read: Reader<'a>,
    /// The first one's index.
    pub(super) first: usize,
    pub(super) side: f32,
    pub(super) sums: &'a [Record],
    pub(super) shapes: &'a [Shape],
    /// Whole, in the order of the slots; empty of parameters that are not tuned.
    pub(super) gradients: [&'a mut [f32]; 5],
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let [position, scale, rotation, color, opacity] = self.gradients;
        for i in 0..self.sums.len() {
            let at = self.first + i;
            let by = self.sums[i].adjoint(&self.shapes[i]);
            let by = Splat::project_adjoint(&self.read.splat(at), self.side, &by);
            add(position, 2 * at, &by.position);
            add(scale, 2 * at, &by.scale);
            add(rotation, at, &[by.rotation]);
            add(color, 3 * at, &by.color);
            add(opacity, at, &[by.opacity]);
        }
    }
}

/// Adds to a few entries of a gradient, unless it is that of a parameter that is not tuned.
#[inline(always)]
fn add<const N: usize>(gradient: &mut [f32], at: usize, terms: &[f32; N]) {
    if gradient.is_empty() {
        return;
    }
    let entries = &mut gradient[at..at + N];
    for i in 0..N {
        entries[i] += terms[i];
    }
}
