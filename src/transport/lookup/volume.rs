//! Lookups in volumes with a placement in the world: trilinear or nearest, with Mitsuba's wrap modes.

use super::grid::{Stencil, grid_eval_balanced, grid_slopes, grid_stencil, grid_stencil_wrapped, nearest_stencil};
use crate::each::EachEntry;
use crate::resident::layout::{VolumeRecord, lookup, wrap};
use crate::transport::number::Number;
use crate::transport::rays::camera::transform_point;

/// The stencil of the world-space point `p`.
#[inline(always)]
pub fn volume_stencil(volume: &VolumeRecord, p: [f32; 3]) -> Stencil {
    if is_plain(volume) {
        grid_stencil(volume.size, transform_point(&volume.world_to_unit, p))
    } else {
        other_stencil(volume, p)
    }
}

/// The derivatives of a trilinear lookup at the world-space point `p` by its coordinates: a stencil for each; None for other
/// lookups, which are constant or jump.
#[inline]
pub fn volume_slopes(volume: &VolumeRecord, p: [f32; 3]) -> Option<[Stencil; 3]> {
    if volume.filter != lookup::TRILINEAR {
        return None;
    }
    let to_unit = &volume.world_to_unit;
    let slopes = grid_slopes(volume.size, volume.wrap, transform_point(to_unit, p));
    Some([0, 1, 2].each(|axis: usize| Stencil::sum(&slopes, [0, 1, 2].each(|a: usize| to_unit[a][axis]))))
}

/// Whether lookups are trilinear and clamped, the common case.
#[inline(always)]
pub fn is_plain(volume: &VolumeRecord) -> bool {
    volume.filter == lookup::TRILINEAR && volume.wrap == wrap::CLAMP
}

#[inline(never)]
fn other_stencil(volume: &VolumeRecord, p: [f32; 3]) -> Stencil {
    let local = transform_point(&volume.world_to_unit, p);
    match volume.filter {
        lookup::CONSTANT => Stencil::first(),
        lookup::NEAREST => nearest_stencil(volume.size, volume.wrap, local),
        _ => grid_stencil_wrapped(volume.size, volume.wrap, local),
    }
}

/// The looked-up value: three channels, or one repeated.
#[inline(always)]
pub fn volume_eval<N: Number>(volume: &VolumeRecord, data: &[N], at: &Stencil) -> [N; 3] {
    if is_plain(volume) {
        match volume.size[3] {
            1 => return [grid_eval_balanced::<N, 1>(data, at)[0]; 3],
            3 => return grid_eval_balanced::<N, 3>(data, at),
            _ => {}
        }
    }
    other_eval(volume, data, at)
}

#[inline(never)]
fn other_eval<N: Number>(volume: &VolumeRecord, data: &[N], at: &Stencil) -> [N; 3] {
    let channels = volume.size[3] as usize;
    if volume.filter == lookup::CONSTANT {
        let last = channels - 1;
        return [data[0], data[1.min(last)], data[2.min(last)]];
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

/// The adjoint of [`volume_eval`]: calls `add` with the index and the derivative of each array entry that the lookup
/// read. A single channel receives the sum of the three derivatives.
#[inline(always)]
pub fn volume_adjoint<N: Number>(volume: &VolumeRecord, at: &Stencil, d: [N; 3], mut add: impl FnMut(usize, N)) {
    let channels = volume.size[3] as usize;
    for k in 0..8 {
        let weight = at.weights()[k];
        if weight == 0.0 {
            continue;
        }
        let start = at.texels()[k] as usize * channels;
        if channels == 1 {
            add(start, (d[0] + d[1] + d[2]) * N::lift(weight));
        } else {
            for c in 0..3 {
                add(start + c, d[c] * N::lift(weight));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::layout::wrap::{CLAMP, MIRROR, REPEAT};
    use bytemuck::Zeroable;

    /// Slopes are differences of lookups, which are linear along each axis within a cell.
    #[test]
    fn slopes_are_those_of_neighbouring_lookups() {
        let mut record = VolumeRecord::zeroed();
        record.world_to_unit = [[0.5, 0.1, 0.0, 0.4], [0.0, 0.4, 0.0, 0.5], [0.0, 0.2, 0.6, 0.5]];
        record.filter = lookup::TRILINEAR;
        record.size = [3, 4, 2, 3];
        let data: Vec<f64> = (0..72).map(|i| f64::from(i * 7 % 11) - 3.0).collect();
        let mut compared = 0;
        for wrap in [CLAMP, REPEAT, MIRROR] {
            record.wrap = wrap;
            for i in 0..50u32 {
                let p = [7, 11, 13].map(|n| (i * n % 50) as f32 * 0.05 - 1.2);
                let slopes = volume_slopes(&record, p).expect("a trilinear lookup");
                for axis in 0..3 {
                    let beside = |step: f32| {
                        let mut p = p;
                        p[axis] += step;
                        let at = volume_stencil(&record, p);
                        (*at.texels(), volume_eval(&record, &data, &at))
                    };
                    let [(before, low), (after, high)] = [-1e-3, 1e-3].map(beside);
                    if before != after {
                        continue;
                    }
                    compared += 1;
                    let slope = volume_eval(&record, &data, &slopes[axis]);
                    // Rounding of lookups of up to 7 over the step, 2e-3, is below 0.01.
                    for c in 0..3 {
                        let difference = (high[c] - low[c]) / 2e-3;
                        assert!(
                            (slope[c] - difference).abs() < 0.02,
                            "{wrap} {axis}: {} != {difference}",
                            slope[c]
                        );
                    }
                }
            }
        }
        assert!(compared > 300, "{compared} slopes compared");
        record.filter = lookup::NEAREST;
        assert!(volume_slopes(&record, [0.0; 3]).is_none());
    }

    /// <eval(a), d> = <a, adjoint(d)>, for every filter, wrap mode and number of channels.
    #[test]
    fn scatter_is_the_adjoint_of_eval() {
        let mut record = VolumeRecord::zeroed();
        record.world_to_unit = [[0.5, 0.1, 0.0, 0.4], [0.0, 0.4, 0.0, 0.5], [0.0, 0.2, 0.6, 0.5]];
        for (filter, wrap, channels) in [
            (lookup::TRILINEAR, CLAMP, 1),
            (lookup::TRILINEAR, CLAMP, 3),
            (lookup::TRILINEAR, REPEAT, 3),
            (lookup::TRILINEAR, MIRROR, 1),
            (lookup::NEAREST, CLAMP, 3),
            (lookup::CONSTANT, CLAMP, 3),
            (lookup::CONSTANT, CLAMP, 1),
        ] {
            (record.filter, record.wrap) = (filter, wrap);
            record.size = match filter {
                lookup::CONSTANT => [1, 1, 1, channels],
                _ => [3, 4, 2, channels],
            };
            let entries = record.size.iter().product::<u32>();
            let data: Vec<f64> = (0..entries).map(|i| f64::from(i * 7 % 11) - 3.0).collect();
            for i in 0..50u32 {
                let p = [7, 11, 13].map(|n| (i * n % 50) as f32 * 0.05 - 1.2);
                let at = volume_stencil(&record, p);
                let d = [1.0, -0.5, 0.25];
                let value = volume_eval(&record, &data, &at);
                let left: f64 = (0..3).map(|c| value[c] * d[c]).sum();
                let mut right = 0.0;
                volume_adjoint(&record, &at, d, |entry, share| right += data[entry] * share);
                assert!(
                    (left - right).abs() < 1e-12,
                    "{filter} {wrap} {channels}: {left} != {right}"
                );
            }
        }
    }
}
