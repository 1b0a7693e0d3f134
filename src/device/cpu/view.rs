//! The f32 side of a walk: parameters as slices.

use std::marker::PhantomData;

use super::wide::Wide;
use crate::params::ParamSet;
use crate::resident::Slots;
use crate::resident::layout::SceneRecord;
use crate::transport::grid::{Stencil, grid_eval};
use crate::transport::radiance_field::View;
use crate::transport::sh::Basis;

/// The parameters of a scene whose colours have `CHANNELS` coefficients.
#[derive(Clone, Copy)]
pub(super) struct Arrays<'a, W, const CHANNELS: usize> {
    pub sigma: &'a [f32],
    pub sh: &'a [f32],
    pub emitter: &'a [f32],
    pub occupancy: &'a [u8],
    level: PhantomData<W>,
}

impl<'a, W, const CHANNELS: usize> Arrays<'a, W, CHANNELS> {
    pub(super) fn new(params: &'a ParamSet, slots: Slots, occupancy: &'a [u8]) -> Self {
        let values = |slot: Option<usize>| slot.map_or(&[][..], |i| &params.parameters[i].values[..]);
        Self {
            sigma: values(slots.sigma_t),
            sh: values(slots.sh_coeffs),
            emitter: values(slots.emitter),
            occupancy,
            level: PhantomData,
        }
    }
}

impl<W: Wide, const CHANNELS: usize> View<f32> for Arrays<'_, W, CHANNELS> {
    const TWO_SIDED: bool = false;

    #[inline(always)]
    fn sigma_sampled(&self, at: &Stencil) -> f32 {
        self.sigma(at)
    }

    #[inline(always)]
    fn sigma(&self, at: &Stencil) -> f32 {
        grid_eval(self.sigma, at)
    }

    #[inline(always)]
    fn color(&self, at: &Stencil, basis: &Basis) -> [f32; 3] {
        W::eval_sh::<CHANNELS>(self.sh, at, basis)
    }

    #[inline(always)]
    fn occupancy(&self, cell: u32) -> u32 {
        u32::from(self.occupancy[cell as usize])
    }

    #[inline(always)]
    fn emitter(&self) -> &[f32] {
        self.emitter
    }
}

/// Runs `$body` with the constant `$channels` set to the number of channels of the scene's colours.
macro_rules! with_channels {
    ($scene:expr, $channels:ident => $body:expr) => {
        match channels($scene) {
            12 => {
                const $channels: usize = 12;
                $body
            }
            27 => {
                const $channels: usize = 27;
                $body
            }
            48 => {
                const $channels: usize = 48;
                $body
            }
            _ => {
                const $channels: usize = 3;
                $body
            }
        }
    };
}
pub(super) use with_channels;

/// Channels of the coefficients: 3 (degree + 1)².
pub(super) fn channels(scene: &SceneRecord) -> u32 {
    3 * (scene.sh_degree + 1) * (scene.sh_degree + 1)
}
