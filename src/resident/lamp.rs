//! The light of light tracing: what each place of a rectangle sends along its normal.

use glam::{Affine2, Vec2};

use super::paths::wrap_code;
use super::slot;
use crate::each::EachEntry;
use crate::params::ParamSet;
use crate::scene::{Surface, Texture, Wrap};

/// The radiance of a rectangular light, by texture coordinates.
#[derive(Debug, Clone)]
pub struct Lamp {
    /// Radiance of each texel, row after row.
    pub texels: Vec<[f32; 3]>,
    pub size: [usize; 2],
    pub nearest: bool,
    pub wrap: Wrap,
    pub to_uv: Affine2,
}

impl Lamp {
    /// The light of a rectangle with an emitter.
    pub(super) fn of(light: &Surface, params: &ParamSet) -> Self {
        let emitter = light.emitter.as_ref().expect("a light emits");
        let of = |array| {
            let parameter = &params.parameters[slot(params, array)];
            let channels = parameter.shape.channels;
            let texels = parameter.values.chunks_exact(channels);
            let [width, height, _] = parameter.shape.size;
            let colors = texels.map(|texel| [0, 1, 2].each(|c| texel[c % channels])).collect();
            (colors, [width, height])
        };
        match &emitter.radiance {
            Texture::Bitmap(map) => {
                let (texels, size) = of(&map.data);
                Self {
                    texels,
                    size,
                    nearest: map.nearest,
                    wrap: map.wrap,
                    to_uv: map.to_uv,
                }
            }
            Texture::Constant(array) => Self {
                texels: of(array).0,
                size: [1, 1],
                nearest: true,
                wrap: Wrap::Clamp,
                to_uv: Affine2::IDENTITY,
            },
            Texture::Checkerboard { colors, to_uv } => {
                let [[first], [second]] = [&colors[0], &colors[1]].each(|array| {
                    let (texels, _): (Vec<[f32; 3]>, _) = of(array);
                    [texels[0]]
                });
                Self {
                    texels: vec![first, second, second, first],
                    size: [2, 2],
                    nearest: true,
                    wrap: Wrap::Repeat,
                    to_uv: *to_uv,
                }
            }
            Texture::Squares { .. } | Texture::Attribute(_) | Texture::Volume { .. } => {
                unreachable!("a rectangle's emitter has none")
            }
        }
    }

    /// Whether no light leaves it.
    pub(super) fn is_dark(&self) -> bool {
        self.texels.iter().flatten().all(|x| *x == 0.0)
    }

    /// The code of its wrap mode: [`super::layout::wrap`].
    pub fn wrap_code(&self) -> u32 {
        wrap_code(self.wrap)
    }

    /// Radiance that leaves the light at (u, v).
    pub fn radiance(&self, u: f32, v: f32) -> [f32; 3] {
        if self.texels.len() == 1 {
            return self.texels[0];
        }
        let p = self.to_uv.transform_point2(Vec2::new(u, v));
        let [x, y] = [p.x * self.size[0] as f32, p.y * self.size[1] as f32];
        if self.nearest {
            return self.texel(x.floor(), y.floor());
        }
        let (x, y) = (x - 0.5, y - 0.5);
        let (left, top) = (x.floor(), y.floor());
        let (fx, fy) = (x - left, y - top);
        let [a, b, c, d] = [
            (left, top),
            (left + 1.0, top),
            (left, top + 1.0),
            (left + 1.0, top + 1.0),
        ]
        .each(|(x, y)| self.texel(x, y));
        [0, 1, 2].each(|i| (a[i] * (1.0 - fx) + b[i] * fx) * (1.0 - fy) + (c[i] * (1.0 - fx) + d[i] * fx) * fy)
    }

    fn texel(&self, x: f32, y: f32) -> [f32; 3] {
        let [x, y] = [0, 1].each(|axis| {
            let (at, n) = ([x, y][axis] as i64, self.size[axis] as i64);
            match self.wrap {
                Wrap::Clamp => at.clamp(0, n - 1),
                Wrap::Repeat => at.rem_euclid(n),
                Wrap::Mirror => {
                    let folded = at.rem_euclid(2 * n);
                    folded.min(2 * n - 1 - folded)
                }
            }
        });
        self.texels[(y * self.size[0] as i64 + x) as usize]
    }
}
