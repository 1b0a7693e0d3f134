//! Lookups in volumes that lie somewhere in the world: trilinear or nearest, with Mitsuba's wrap modes.

use super::camera::transform_point;
use super::grid::{Stencil, grid_eval, grid_stencil, grid_stencil_wrapped, nearest_stencil};
use super::number::Number;
use crate::resident::layout::{VolumeRecord, lookup, wrap};

/// The stencil of the world-space point `p`.
#[inline]
pub fn volume_stencil(volume: &VolumeRecord, p: [f32; 3]) -> Stencil {
    if volume.filter == lookup::CONSTANT {
        return Stencil::first();
    }
    let local = transform_point(&volume.world_to_unit, p);
    if volume.filter == lookup::NEAREST {
        nearest_stencil(volume.size, volume.wrap, local)
    } else if volume.wrap == wrap::CLAMP {
        grid_stencil(volume.size, local)
    } else {
        grid_stencil_wrapped(volume.size, volume.wrap, local)
    }
}

/// The value there: three channels, or one repeated.
#[inline]
pub fn volume_eval<N: Number>(volume: &VolumeRecord, data: &[N], at: &Stencil) -> [N; 3] {
    let channels = volume.size[3] as usize;
    if volume.filter == lookup::CONSTANT {
        let last = channels - 1;
        return [data[0], data[1.min(last)], data[2.min(last)]];
    }
    if channels == 1 && volume.wrap == wrap::CLAMP {
        return [grid_eval(data, at); 3];
    }
    let mut sum = [N::lift(0.0); 3];
    for k in 0..8 {
        let start = at.texels()[k] as usize * channels;
        let texel = &data[start..start + channels];
        let weight = N::lift(at.weights()[k]);
        for c in 0..3 {
            sum[c] += texel[if channels == 1 { 0 } else { c }] * weight;
        }
    }
    sum
}
