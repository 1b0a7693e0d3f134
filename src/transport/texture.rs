//! Colours over a surface.

use crate::resident::layout::TextureRecord;

/// The reflectance at `uv`: one colour, or a checkerboard whose squares have edges of one half.
#[inline(always)]
pub fn texture_eval(record: &TextureRecord, uv: [f32; 2]) -> [f32; 3] {
    let m = &record.to_uv;
    let u = m[0][0] * uv[0] + m[0][1] * uv[1] + m[0][2];
    let v = m[1][0] * uv[0] + m[1][1] * uv[1] + m[1][2];
    let first = record.kind == 0 || ((u - u.floor() > 0.5) == (v - v.floor() > 0.5));
    let color = if first { &record.color0 } else { &record.color1 };
    [color[0], color[1], color[2]]
}
