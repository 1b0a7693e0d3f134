//! Textures: values over a surface, and their adjoint: [`texture_eval`] beside [`texture_adjoint`].

use std::hint::select_unpredictable;

use super::records::{SceneView, Sink};
use super::shape::SurfacePoint;
use crate::each::EachEntry;
use crate::resident::layout::{TextureRecord, lookup, texture};
use crate::transport::lookup::grid::wrap_index;
use crate::transport::lookup::volume::volume_stencil;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;

/// The texels around a point of a texture, with the weights of a linear interpolation.
#[derive(Debug, Clone, Copy)]
pub struct TextureStencil {
    /// The parameter that holds the texels.
    pub slot: u32,
    /// Numbers of a texel: one or three.
    pub channels: u32,
    /// Texels with a weight: one, four or eight.
    count: usize,
    texels: [u32; 8],
    weights: [f32; 8],
}

impl TextureStencil {
    /// The stencil of a texture's first texel alone.
    #[inline(always)]
    fn first(record: &TextureRecord) -> Self {
        Self {
            slot: record.slot,
            channels: record.channels,
            count: 1,
            texels: [0; 8],
            weights: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        }
    }
}

impl TextureStencil {
    /// Four texels of an image.
    #[inline(always)]
    pub(super) fn bilinear(record: &TextureRecord, texels: [u32; 4], weights: [f32; 4]) -> Self {
        let mut at = Self::first(record);
        at.count = 4;
        for k in 0..4 {
            (at.texels[k], at.weights[k]) = (texels[k], weights[k]);
        }
        at
    }
}

/// Texture coordinates under a texture's own map.
#[inline]
fn mapped(record: &TextureRecord, [u, v]: [f32; 2]) -> [f32; 2] {
    record.to_uv.each(|row| row[0] * u + row[1] * v + row[2])
}

/// The texels at `uv` of a texture that is looked up by texture coordinates alone: a constant, a checkerboard with
/// squares of edge 1/2, or an image whose first row lies at v = 0.
#[inline]
pub fn texture_stencil(record: &TextureRecord, uv: [f32; 2]) -> TextureStencil {
    let mut at = TextureStencil::first(record);
    if record.kind == texture::CONSTANT {
        return at;
    }
    let [u, v] = mapped(record, uv);
    if record.kind == texture::BITMAP {
        image_stencil(record, [u, v], &mut at);
    } else if is_other_square([u, v]) {
        at.slot = record.other_slot;
    }
    at
}

/// Whether mapped coordinates lie in a square of a checkerboard where just one of them is in the second half of its period.
#[inline]
fn is_other_square([u, v]: [f32; 2]) -> bool {
    (u - floor(u) > 0.5) != (v - floor(v) > 0.5)
}

/// The texture that one of the scene's shows at `uv`: itself, or what the square of a checkerboard of textures holds.
#[inline]
fn shown<'a>(scene: &SceneView<'a>, texture: u32, uv: [f32; 2]) -> &'a TextureRecord {
    let record = &scene.textures[texture as usize];
    if record.kind != texture::SQUARES {
        return record;
    }
    let square = match is_other_square(mapped(record, uv)) {
        true => record.other_slot,
        false => record.slot,
    };
    &scene.textures[square as usize]
}

/// The texels of one of the scene's textures at a point of a surface.
#[inline]
pub fn stencil(scene: &SceneView, texture: u32, point: &SurfacePoint) -> TextureStencil {
    let record = shown(scene, texture, point.uv);
    match record.kind {
        texture::VERTICES | texture::FACES => attribute_stencil(scene, record, point),
        texture::VOLUME => solid_stencil(scene, record, point),
        _ => texture_stencil(record, point.uv),
    }
}

/// The stencil of a mesh attribute: the triangle's three vertices or its face, with weights times the texture's factor.
#[inline(never)]
fn attribute_stencil(scene: &SceneView, record: &TextureRecord, point: &SurfacePoint) -> TextureStencil {
    let mut at = TextureStencil::first(record);
    let corners = &scene.corners[point.triangle as usize];
    let scale = record.to_uv[0][0];
    at.count = 4;
    if record.kind == texture::FACES {
        at.texels[0] = corners.face;
        at.weights[0] = scale;
        return at;
    }
    let [a, b, c] = corners.vertices();
    let [v, w] = point.weights;
    let (texels, weights) = ([a, b, c], [(1.0 - v - w) * scale, v * scale, w * scale]);
    for k in 0..3 {
        (at.texels[k], at.weights[k]) = (texels[k], weights[k]);
    }
    at
}

/// The texels of a volume at a point of a surface.
#[inline(never)]
fn solid_stencil(scene: &SceneView, record: &TextureRecord, point: &SurfacePoint) -> TextureStencil {
    let mut at = TextureStencil::first(record);
    let volume = &scene.volumes[record.other_slot as usize];
    let around = volume_stencil(volume, point.p);
    (at.texels, at.weights) = (*around.texels(), *around.weights());
    if volume.filter == lookup::TRILINEAR {
        at.count = 8;
    }
    at
}

/// Whether `sink` needs derivatives by a texture's texels at a point.
#[inline(always)]
pub fn texture_is_wanted<N: Number, S: Sink<N>>(
    scene: &SceneView,
    texture: u32,
    point: &SurfacePoint,
    sink: &S,
) -> bool {
    let record = shown(scene, texture, point.uv);
    // All other kinds have one slot, which is known without looking for texels.
    let slot = match record.kind {
        texture::CHECKERBOARD => texture_stencil(record, point.uv).slot,
        _ => record.slot,
    };
    sink.wants(slot)
}

/// Looks up a texture; `look` returns a parameter's values.
#[inline]
pub fn texture_value<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N],
    texture: u32,
    point: &SurfacePoint,
) -> Rgb<N> {
    let at = stencil(scene, texture, point);
    texture_eval(look(at.slot), &at)
}

/// The stencils of a texture's derivatives by u and by v: its texels with the derivatives of their weights. Lookups
/// that are not bilinear count as constant.
#[inline]
pub fn texture_slopes(record: &TextureRecord, uv: [f32; 2]) -> [TextureStencil; 2] {
    let mut at = texture_stencil(record, uv);
    if at.count == 1 {
        at.weights[0] = 0.0;
        at.count = 4;
        return [at; 2];
    }
    let [width, height] = record.size.each(|side| side as f32);
    let [w00, w10, w01, w11, ..] = at.weights;
    // Bilinear weights are products of one along x and one along y: a sum over one axis leaves the weight of the other.
    let (left, right, top, bottom) = (w00 + w01, w10 + w11, w00 + w10, w01 + w11);
    let by_x = [-top, top, -bottom, bottom].each(|weight| weight * width);
    let by_y = [-left, -right, left, right].each(|weight| weight * height);
    [0, 1].each(|axis| {
        let (x, y) = (record.to_uv[0][axis], record.to_uv[1][axis]);
        let mut slopes = at;
        for k in 0..4 {
            slopes.weights[k] = by_x[k] * x + by_y[k] * y;
        }
        slopes
    })
}

/// The derivatives by the texture coordinates, from `d` by a texture's value there; zero for textures other than bitmaps.
#[inline]
pub fn picture_slopes<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N],
    texture: u32,
    uv: [f32; 2],
    d: Rgb<N>,
) -> [N; 2] {
    match bitmap_slopes(scene, texture, uv) {
        None => [N::lift(0.0); 2],
        Some(slopes) => slopes.each(|slope| (texture_eval(look(slope.slot), &slope) * d).sum()),
    }
}

/// [`texture_slopes`] of a bitmap; None for another texture.
#[inline]
pub fn bitmap_slopes(scene: &SceneView, texture: u32, uv: [f32; 2]) -> Option<[TextureStencil; 2]> {
    let record = shown(scene, texture, uv);
    (record.kind == texture::BITMAP).then(|| texture_slopes(record, uv))
}

/// The texels of an image at `uv`: bilinear between texel centres, or nearest.
#[inline]
fn image_stencil(record: &TextureRecord, uv: [f32; 2], at: &mut TextureStencil) {
    let [width, height] = record.size;
    let (x, y) = (uv[0] * width as f32, uv[1] * height as f32);
    let column = |x: f32| wrapped(record.wrap, x, width);
    let row = |y: f32| width * wrapped(record.wrap, y, height);
    if record.filter == lookup::NEAREST {
        at.texels[0] = row(floor(y)) + column(floor(x));
        return;
    }
    let (x, y) = (x - 0.5, y - 0.5);
    let (left, top) = (floor(x), floor(y));
    let (fx, fy) = (x - left, y - top);
    let ([left, right], [top, bottom]) = ([left, left + 1.0].each(column), [top, top + 1.0].each(row));
    at.count = 4;
    let texels = [top + left, top + right, bottom + left, bottom + right];
    let weights = [(1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy];
    for k in 0..4 {
        (at.texels[k], at.weights[k]) = (texels[k], weights[k]);
    }
}

/// The largest whole number that is not above x. Where the target has no such instruction, `f32::floor` is a function call.
#[inline(always)]
pub(super) fn floor(x: f32) -> f32 {
    const WHOLE: f32 = 8_388_608.0;
    let truncated = x as i32 as f32;
    let floor = select_unpredictable(truncated > x, truncated - 1.0, truncated);
    select_unpredictable(x.abs() < WHOLE, floor, x)
}

/// [`wrap_index`], with a shortcut for coordinates within the image, which most are.
#[inline(always)]
fn wrapped(mode: u32, x: f32, size: u32) -> u32 {
    if x >= 0.0 && x < size as f32 {
        return x as u32;
    }
    wrap_index(mode, x, size)
}

/// The value at a stencil; `data` are the values of its parameter. One channel is repeated.
#[inline]
pub fn texture_eval<N: Number>(data: &[N], at: &TextureStencil) -> Rgb<N> {
    let texel = |k: usize| {
        let texel = at.texels[k] as usize;
        if at.channels == 1 {
            return Rgb::splat(data[texel]);
        }
        let texel = &data[3 * texel..][..3];
        Rgb([texel[0], texel[1], texel[2]])
    };
    if at.count == 1 {
        return texel(0);
    }
    let mut sum = Rgb::zero();
    for k in 0..4 {
        sum += texel(k) * at.weights[k];
    }
    if at.count > 4 {
        for k in 4..8 {
            sum += texel(k) * at.weights[k];
        }
    }
    sum
}

/// The adjoint of [`texture_eval`]. A single channel receives the sum of the three derivatives.
#[inline]
pub fn texture_adjoint<N: Number, S: Sink<N>>(at: &TextureStencil, d: Rgb<N>, sink: &mut S) {
    let d = if at.channels == 1 {
        Rgb([d.sum(), N::lift(0.0), N::lift(0.0)])
    } else {
        d
    };
    for k in (0..at.count).filter(|k| at.weights[*k] != 0.0) {
        let share = d * at.weights[k];
        sink.entries(at.slot, at.channels * at.texels[k], share.0, at.channels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::layout::{VolumeRecord, wrap};
    use crate::transport::lookup::grid::Stencil;
    use bytemuck::Zeroable;

    /// A sink that adds up the scalar product of the derivatives that it receives with `data`.
    struct Product<'a> {
        data: &'a [f64],
        sum: f64,
    }

    impl Sink<f64> for Product<'_> {
        fn volume(&mut self, _: &VolumeRecord, _: &Stencil, _: [f64; 3], _: u32) {}
        fn background(&mut self, _: [f32; 3], _: [f64; 3]) {}
        fn entries(&mut self, _: u32, first: u32, d: [f64; 3], channels: u32) {
            for c in 0..channels as usize {
                self.sum += self.data[first as usize + c] * d[c];
            }
        }
    }

    /// <eval(a), d> = <a, adjoint(d)>, for every filter, wrap mode and number of channels.
    #[test]
    fn scatter_is_the_adjoint_of_eval() {
        let data: Vec<f64> = (0..36).map(|i| f64::from(i * 7 % 11) - 3.0).collect();
        let mut record = TextureRecord::zeroed();
        record.kind = texture::BITMAP;
        record.to_uv = [[1.3, 0.2, -0.4, 0.0], [-0.5, 1.7, 0.3, 0.0]];
        record.size = [4, 3];
        for (filter, wrap, channels) in [
            (lookup::TRILINEAR, wrap::CLAMP, 3),
            (lookup::TRILINEAR, wrap::REPEAT, 1),
            (lookup::TRILINEAR, wrap::MIRROR, 3),
            (lookup::NEAREST, wrap::REPEAT, 3),
            (lookup::NEAREST, wrap::MIRROR, 1),
        ] {
            (record.filter, record.wrap, record.channels) = (filter, wrap, channels);
            for i in 0..50u32 {
                let uv = [7, 11].map(|n| (i * n % 50) as f32 * 0.05 - 0.8);
                let at = texture_stencil(&record, uv);
                let d = Rgb([1.0, -0.5, 0.25]);
                let left = (texture_eval(&data, &at) * d).sum();
                let mut right = Product { data: &data, sum: 0.0 };
                texture_adjoint(&at, d, &mut right);
                assert!(
                    (left - right.sum).abs() < 1e-6,
                    "{filter} {wrap} {channels}: {left} != {}",
                    right.sum
                );
            }
        }
    }

    /// Two texels: a ramp between their centres, and across the border what the wrap mode says.
    #[test]
    fn images_repeat_mirror_and_clamp() {
        let data = [1.0f32, 3.0];
        let mut record = TextureRecord::zeroed();
        (record.kind, record.filter, record.channels) = (texture::BITMAP, lookup::TRILINEAR, 1);
        record.to_uv = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]];
        record.size = [2, 1];
        for (wrap, at_zero) in [(wrap::CLAMP, 1.0), (wrap::REPEAT, 2.0), (wrap::MIRROR, 1.0)] {
            record.wrap = wrap;
            let at = |u: f32| texture_eval(&data, &texture_stencil(&record, [u, 0.3]))[1];
            assert_eq!(
                (at(0.0), at(0.25), at(0.5), at(0.75)),
                (at_zero, 1.0, 2.0, 3.0),
                "{wrap}"
            );
        }
    }
}
