//! The parameters of a field as slices of f32, as the device's walks read them.

use std::marker::PhantomData;

use crate::device::Batch;
use crate::device::cpu::passes::Inputs;
use crate::device::cpu::vector::wide::{Wide, eval_sh, prefetch_sh};
use crate::resident::field::FieldSlots;
use crate::resident::layout::{SceneRecord, color};
use crate::transport::field::radiance_field::{FieldView, LANES, Lattice, Segment, color_activate};
use crate::transport::lookup::grid::{Stencil, Stencils, grid_eval};
use crate::transport::lookup::sh::Basis;

/// The parameters of a scene.
#[derive(Clone, Copy)]
pub(in crate::device::cpu) struct Arrays<'a, W> {
    pub sigma: &'a [f32],
    pub sh: &'a [f32],
    pub emitter: &'a [f32],
    pub occupancy: &'a [u8],
    /// Channels of the coefficients: 3, 12, 27 or 48.
    pub channels: u32,
    /// Whether pixels were drawn at random: rays of a packet then share few texels, and those of later places are prefetched.
    scattered: bool,
    level: PhantomData<W>,
}

impl<'a, W> Arrays<'a, W> {
    pub(in crate::device::cpu) fn new(
        inputs: &'a Inputs,
        slots: Option<FieldSlots>,
        occupancy: &'a [u8],
        batch: &Batch,
    ) -> Self {
        let values = |slot: Option<usize>| slot.map_or(&[][..], |i| &inputs.params.parameters[i].values[..]);
        Self {
            sigma: values(slots.map(|slots| slots.sigma_t)),
            sh: values(slots.map(|slots| slots.sh_coeffs)),
            emitter: values(inputs.emitter),
            occupancy,
            channels: inputs.scene.sh_size[3],
            scattered: batch.drawn.is_some(),
            level: PhantomData,
        }
    }
}

impl<W: Wide> FieldView<f32> for Arrays<'_, W> {
    const TWO_SIDED: bool = false;
    type Bases = W::Bases;

    #[inline(always)]
    fn sigma_sampled(&self, at: &Stencil) -> f32 {
        self.sigma(at)
    }

    #[inline(always)]
    fn sigma(&self, at: &Stencil) -> f32 {
        grid_eval(self.sigma, at)
    }

    #[inline(always)]
    fn bases(&self, basis: &Basis) -> W::Bases {
        W::bases(basis)
    }

    #[inline(always)]
    fn color(&self, at: &Stencil, bases: &W::Bases) -> [f32; 3] {
        self.color_of_lane(&at.spread(), 0, bases)
    }

    #[inline(always)]
    fn color_of_lane(&self, at: &Stencils<LANES>, lane: usize, bases: &W::Bases) -> [f32; 3] {
        eval_sh::<W>(self.channels, self.sh, at, lane, bases)
    }

    #[inline(always)]
    fn activate_color(&self, kind: u32, raw: [f32; 3]) -> [f32; 3] {
        match kind {
            color::CLIP => activate_three::<{ color::CLIP }>(raw),
            color::SIGMOID => activate_three::<{ color::SIGMOID }>(raw),
            _ => activate_three::<{ color::RELU_HALF }>(raw),
        }
    }

    #[inline(always)]
    fn occupancy(&self, cell: u32) -> u32 {
        u32::from(self.occupancy[cell as usize])
    }

    #[inline(always)]
    fn lattice(&self, scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        W::lattice(scene, segment, index)
    }

    #[inline(always)]
    fn stencils(&self, size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        W::stencils(size, p)
    }

    #[inline(always)]
    fn opacities(&self, scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        W::opacities(scene, raw_sigma)
    }

    #[inline(always)]
    fn sigmas(&self, at: &Stencils<LANES>, live: u32) -> [f32; LANES] {
        W::sigmas(self.sigma, at, live)
    }

    #[inline(always)]
    fn expect_colors(&self, at: &Stencils<LANES>, live: u32) {
        prefetch_sh::<W>(self.channels, self.sh, at, live);
    }

    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        self.scattered
    }

    #[inline(always)]
    fn expect_later(&self, at_sigma: &Stencils<LANES>, at_color: &Stencils<LANES>, live: u32) {
        W::prefetch::<1>(self.sigma, at_sigma, live);
        prefetch_sh::<W>(self.channels, self.sh, at_color, live);
    }

    #[inline(always)]
    fn emitter(&self) -> &[f32] {
        self.emitter
    }
}

/// Activates a colour as a vector of four lanes, of which the last is unused.
#[inline(always)]
fn activate_three<const KIND: u32>([r, g, b]: [f32; 3]) -> [f32; 3] {
    let mut lanes = [r, g, b, b];
    for k in 0..4 {
        lanes[k] = color_activate(KIND, lanes[k]);
    }
    [lanes[0], lanes[1], lanes[2]]
}
