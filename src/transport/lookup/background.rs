//! Emitters at infinity: a constant, or a latitude–longitude map looked up bilinearly as Mitsuba's `envmap` does.

use std::hint::select_unpredictable;

use crate::each::EachEntry;
use crate::resident::layout::{SceneRecord, background};
use crate::transport::lookup::grid::index_below;
use crate::transport::number::Number;
use crate::transport::rays::angle::{arc_cosine, arc_tangent};
use crate::transport::rays::camera::{normalize, transform_vector};

/// The four texels around a direction, with bilinear weights.
#[derive(Debug, Clone, Copy)]
pub struct EnvStencil {
    /// Texel indices, to be multiplied by three.
    pub texels: [u32; 4],
    pub weights: [f32; 4],
}

/// The cell of the unit direction `d`, given in the map's frame, in a map of `size` = width, height, and the place within it.
///
/// u = atan2(x, -z) / 2π wraps around, with texel centres at (i + 0.5) / width; v = acos(y) / π places the first and
/// last rows on the poles.
#[inline(always)]
pub fn env_position(size: [u32; 2], d: [f32; 3]) -> ([u32; 2], [f32; 2]) {
    let u = arc_tangent(d[0], -d[2]) * (0.5 / std::f32::consts::PI);
    let v = arc_cosine(d[1].clamp(-1.0, 1.0)) / std::f32::consts::PI;
    let (width, height) = (size[0] as f32, size[1] as f32);
    let x = u - 0.5 / width;
    let x = select_unpredictable(x < 0.0, x + 1.0, x) * width;
    let y = v * (height - 1.0);
    let column = index_below(x, size[0] - 1);
    let row = index_below(y, size[1].max(2) - 2);
    ([column, row], [x - column as i32 as f32, y - row as i32 as f32])
}

/// The stencil of the unit direction `d`, given in the map's frame.
#[inline(always)]
pub fn env_stencil(size: [u32; 2], d: [f32; 3]) -> EnvStencil {
    let (cell, place) = env_position(size, d);
    env_cell(size, cell, place)
}

/// The stencil of a position in the cell between a texel and its right, lower and diagonal neighbours.
#[inline(always)]
pub fn env_cell(size: [u32; 2], [column, row]: [u32; 2], [fx, fy]: [f32; 2]) -> EnvStencil {
    let next_column = select_unpredictable(column + 1 < size[0], column + 1, 0);
    let next_row = (row + 1).min(size[1] - 1);
    EnvStencil {
        texels: [
            row * size[0] + column,
            row * size[0] + next_column,
            next_row * size[0] + column,
            next_row * size[0] + next_column,
        ],
        weights: [(1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy],
    }
}

/// Radiance of a map with RGB texels, before its scale.
#[inline(always)]
pub fn env_eval<N: Number>(data: &[N], at: &EnvStencil) -> [N; 3] {
    let mut radiance = [N::lift(0.0); 3];
    for c in 0..3 {
        for k in 0..4 {
            radiance[c] += data[at.texels[k] as usize * 3 + c] * N::lift(at.weights[k]);
        }
    }
    radiance
}

/// The adjoint of [`env_eval`].
#[inline(always)]
pub fn env_adjoint<N: Number>(gradient: &mut [N], at: &EnvStencil, g: [N; 3]) {
    for k in 0..4 {
        for c in 0..3 {
            gradient[at.texels[k] as usize * 3 + c] += g[c] * N::lift(at.weights[k]);
        }
    }
}

/// The texels of [`env_stencil`], and in f64 the position between them.
#[inline(always)]
pub fn env_place(size: [u32; 2], d: [f64; 3]) -> ([u32; 4], [f64; 2]) {
    let u = d[0].atan2(-d[2]) * (0.5 / std::f64::consts::PI);
    let v = d[1].clamp(-1.0, 1.0).acos() / std::f64::consts::PI;
    let (width, height) = (f64::from(size[0]), f64::from(size[1]));
    let x = u - 0.5 / width;
    let x = (x - x.floor()) * width;
    let y = v * (height - 1.0);
    let column = (x as u32).min(size[0] - 1);
    let row = (y as u32).min(size[1].max(2) - 2);
    let cell = env_cell(size, [column, row], [0.0; 2]);
    (cell.texels, [x - f64::from(column), y - f64::from(row)])
}

/// The derivative by the direction `d` (of length one, in the map's frame) of the radiance of [`env_eval`] times `g`. It is
/// zero at the poles, where it does not exist.
#[inline(always)]
pub fn env_slope<N: Number>(size: [u32; 2], data: &[N], d: [N; 3], g: [N; 3]) -> [N; 3] {
    let zero = N::lift(0.0);
    let (texels, [fx, fy]) = env_place(size, d.each(N::value));
    // Lifts an f64 as the sum of two f32; an f32 number rounds the second away.
    let lift = |x: f64| N::lift(x as f32) + N::lift((x - f64::from(x as f32)) as f32);
    let texel = |k: usize| {
        let start = texels[k] as usize * 3;
        data[start] * g[0] + data[start + 1] * g[1] + data[start + 2] * g[2]
    };
    let [a, b, c, e] = [texel(0), texel(1), texel(2), texel(3)];
    let by_u = ((b - a) * lift(1.0 - fy) + (e - c) * lift(fy)) * N::lift(size[0] as f32);
    let by_v = ((c - a) * lift(1.0 - fx) + (e - b) * lift(fx)) * N::lift(size[1] as f32 - 1.0);
    let square = d[0] * d[0] + d[2] * d[2];
    if !square.above(1e-12) {
        return [zero; 3];
    }
    let by_u = by_u * lift(0.5 / std::f64::consts::PI) / square;
    let by_v = by_v * lift(1.0 / std::f64::consts::PI) / square.sqrt();
    [-(d[2] * by_u), -by_v, d[0] * by_u]
}

/// The emitter's radiance for the unit direction `d` (world), of a map before its scale; `data` as
/// [`crate::transport::field::radiance_field::FieldView::emitter`].
#[inline(always)]
pub fn background_color<N: Number>(scene: &SceneRecord, data: &[N], d: [f32; 3]) -> [N; 3] {
    match scene.background {
        background::NONE => [N::lift(0.0); 3],
        background::CONSTANT => [data[0], data[1], data[2]],
        _ => {
            let local = normalize(transform_vector(&scene.world_to_env, d));
            env_eval(data, &env_stencil(scene.env_size, local))
        }
    }
}

/// The adjoint of [`background_color`].
#[inline(always)]
pub fn background_color_adjoint<N: Number>(scene: &SceneRecord, gradient: &mut [N], d: [f32; 3], g: [N; 3]) {
    match scene.background {
        background::NONE => {}
        background::CONSTANT => {
            for c in 0..3 {
                gradient[c] += g[c];
            }
        }
        _ => {
            let local = normalize(transform_vector(&scene.world_to_env, d));
            env_adjoint(gradient, &env_stencil(scene.env_size, local), g);
        }
    }
}

/// The emitter's radiance for the unit direction `d` (world) along rays through a radiance field.
#[inline(always)]
pub fn background_eval<N: Number>(scene: &SceneRecord, data: &[N], d: [f32; 3]) -> [N; 3] {
    background_color(scene, data, d).each(|color| color * N::lift(scene.env_scale))
}

/// The adjoint of [`background_eval`].
#[inline(always)]
pub fn background_adjoint<N: Number>(scene: &SceneRecord, gradient: &mut [N], d: [f32; 3], g: [N; 3]) {
    background_color_adjoint(scene, gradient, d, g.each(|g| g * N::lift(scene.env_scale)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_meet_the_texels_that_mitsuba_gives_them() {
        // Four columns, three rows; texel value = index. -Z is u = 0, the seam between the last and the first column.
        let data: Vec<f64> = (0..12).flat_map(|i| [f64::from(i); 3]).collect();
        let at = |d: [f32; 3]| env_eval(&data, &env_stencil([4, 3], d))[0];
        assert!(
            (at([0.0, 1.0, 0.0]) - (at([1e-4, 1.0, 0.0]))).abs() < 4.0,
            "the first row is the upper pole"
        );
        assert!(at([0.0, 1.0, 0.0]) < 4.0);
        assert!(at([0.0, -1.0, 0.0]) >= 8.0);
        assert!(
            (at([0.0, 0.0, -1.0]) - 5.5).abs() < 1e-5,
            "between columns 3 and 0 of the middle row"
        );
        assert!(
            (at([0.707_106_77, 0.0, -0.707_106_77]) - 4.0).abs() < 1e-4,
            "u = 1/8 is the centre of column 0"
        );
        assert!((at([1.0, 0.0, 0.0]) - 4.5).abs() < 1e-4);
    }
}
