//! Textures: reflectance over a surface.

use super::records::Fields;
use crate::resident::layout::{TextureRecord, lookup, texture};
use crate::transport::lookup::grid::wrap_index;
use crate::transport::number::Number;

/// The reflectance at `uv`: constant, a checkerboard with squares of edge 1/2, or an image whose first row lies at v =
/// 0.
#[inline]
pub fn texture_eval<N: Number, F: Fields<N>>(fields: &F, record: &TextureRecord, uv: [f32; 2]) -> [f32; 3] {
    let m = &record.to_uv;
    let u = m[0][0] * uv[0] + m[0][1] * uv[1] + m[0][2];
    let v = m[1][0] * uv[0] + m[1][1] * uv[1] + m[1][2];
    if record.kind == texture::BITMAP {
        return image_eval(fields.sampling(record.slot), record, [u, v]);
    }
    let first = record.kind == texture::CONSTANT || ((u - u.floor() > 0.5) == (v - v.floor() > 0.5));
    let color = if first { &record.color0 } else { &record.color1 };
    [color[0], color[1], color[2]]
}

/// An RGB image at `uv`: bilinear between texel centres, or nearest.
#[inline]
fn image_eval(texels: &[f32], record: &TextureRecord, uv: [f32; 2]) -> [f32; 3] {
    let [width, height] = record.size;
    let (x, y) = (uv[0] * width as f32, uv[1] * height as f32);
    let texel = |x: f32, y: f32| {
        let (column, row) = (wrap_index(record.wrap, x, width), wrap_index(record.wrap, y, height));
        let first = 3 * (row * width + column) as usize;
        [texels[first], texels[first + 1], texels[first + 2]]
    };
    if record.filter == lookup::NEAREST {
        return texel(x.floor(), y.floor());
    }
    let (x, y) = (x - 0.5, y - 0.5);
    let (left, top) = (x.floor(), y.floor());
    let (fx, fy) = (x - left, y - top);
    let corners = [
        (texel(left, top), (1.0 - fx) * (1.0 - fy)),
        (texel(left + 1.0, top), fx * (1.0 - fy)),
        (texel(left, top + 1.0), (1.0 - fx) * fy),
        (texel(left + 1.0, top + 1.0), fx * fy),
    ];
    let mut color = [0.0; 3];
    for (texel, weight) in corners {
        for c in 0..3 {
            color[c] += texel[c] * weight;
        }
    }
    color
}
