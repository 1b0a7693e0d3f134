//! Bitmap textures looked up at sixteen points in lanes, as `texture.rs` does at one point.

use super::rays::{LANES, Lanes, Vectors};
use crate::each::EachEntry;
use crate::resident::layout::{TextureRecord, lookup, texture, wrap};
use crate::transport::lookup::grid::wrap_index;
use crate::transport::scene::texture::{TextureStencil, floor};

/// The four texels around points of an image, with bilinear weights.
#[derive(Debug, Clone, Copy)]
pub struct Texels {
    pub texels: [Lanes<u32>; 4],
    pub weights: [Lanes<f32>; 4],
}

impl Texels {
    /// The stencil of one lane.
    #[inline(always)]
    pub fn stencil(&self, record: &TextureRecord, lane: usize) -> TextureStencil {
        let texels = [0, 1, 2, 3].each(|k: usize| self.texels[k][lane]);
        TextureStencil::bilinear(record, texels, [0, 1, 2, 3].each(|k: usize| self.weights[k][lane]))
    }
}

/// Whether a texture is looked up in lanes: a bitmap with bilinear filter whose indices fit into 31 bits.
#[inline]
pub fn is_image(record: &TextureRecord) -> bool {
    let numbers = record.size.iter().map(|n| u64::from(*n)).product::<u64>() * u64::from(record.channels);
    record.kind == texture::BITMAP && record.filter != lookup::NEAREST && numbers <= i32::MAX as u64
}

/// The texels of an image around `uv`.
#[inline(always)]
pub fn texels_together(record: &TextureRecord, uv: &[Lanes<f32>; 2]) -> Texels {
    match record.wrap {
        wrap::REPEAT => wrapped_texels::<{ wrap::REPEAT }>(record, uv),
        wrap::MIRROR => wrapped_texels::<{ wrap::MIRROR }>(record, uv),
        _ => wrapped_texels::<{ wrap::CLAMP }>(record, uv),
    }
}

#[inline(always)]
fn wrapped_texels<const WRAP: u32>(record: &TextureRecord, uv: &[Lanes<f32>; 2]) -> Texels {
    let m = record.to_uv;
    let [width, height] = record.size;
    let mut at = Texels {
        texels: [[0; LANES]; 4],
        weights: [[0.0; LANES]; 4],
    };
    for lane in 0..LANES {
        let [u, v] = [0, 1].each(|k| m[k][0] * uv[0][lane] + m[k][1] * uv[1][lane] + m[k][2]);
        let (x, y) = (u * width as f32 - 0.5, v * height as f32 - 0.5);
        let (left, top) = (floor(x), floor(y));
        let (fx, fy) = (x - left, y - top);
        let columns = [left, left + 1.0].each(|x| wrap_index(WRAP, x, width));
        let rows = [top, top + 1.0].each(|y| width * wrap_index(WRAP, y, height));
        let weights = [(1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy];
        for k in 0..4 {
            at.texels[k][lane] = rows[k / 2] + columns[k % 2];
            at.weights[k][lane] = weights[k];
        }
    }
    at
}

/// The values of an image at `uv` in three channels, a single one repeated; `data` are the values of its parameter.
#[inline(always)]
pub fn image_together(record: &TextureRecord, data: &[f32], uv: &[Lanes<f32>; 2]) -> Vectors {
    let at = texels_together(record, uv);
    let channels = record.channels;
    // Each texel is within the image, by whatever `wrap` and size it was found.
    let data = &data[..record.size[0] as usize * record.size[1] as usize * channels as usize];
    let mut values = [[0.0; LANES]; 3];
    for c in 0..channels.min(3) {
        for k in 0..4 {
            for lane in 0..LANES {
                let index = (channels * at.texels[k][lane] + c) as i32;
                // SAFETY: the image has so many values. Vector gather instructions take signed 32-bit offsets.
                let texel = unsafe { *data.as_ptr().offset(index as isize) };
                values[c as usize][lane] += texel * at.weights[k][lane];
            }
        }
    }
    if channels == 1 {
        values = [values[0]; 3];
    }
    values
}
