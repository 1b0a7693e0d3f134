//! How the intensity of a light without extent depends on the direction, and its derivatives where a scene moves: the
//! falloff of a spot, and the picture that a spot or a projector throws.

use super::bsdf::local::{inner, lift, outer};
use super::light::{picture_uv, spot_falloff};
use super::motion::{direction, direction_adjoint, minus, plus, scaled};
use super::records::{Fields, SceneView};
use super::texture::{texture_eval, texture_slopes, texture_stencil};
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, light};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::{normalize, transform_vector};
use crate::transport::rays::sampler::{cross, dot};

/// The first and the third axis of a light's frame in the world: the light shines along the third.
pub type Axes<N> = [[N; 3]; 2];

/// A light's intensity in one direction, to first order in the coordinates of that direction in the light's frame.
#[derive(Debug, Clone, Copy)]
pub struct Beam {
    /// The intensity in that direction up to a constant factor, without the picture, and its derivatives by the coordinates.
    share: f32,
    slopes: [f32; 3],
    /// The picture that the light projects.
    picture: Option<Picture>,
}

/// The point of a light's projected picture in one direction.
#[derive(Debug, Clone, Copy)]
struct Picture {
    texture: u32,
    uv: [f32; 2],
    /// The derivatives of `uv` by the direction's coordinates.
    slopes: [[f32; 3]; 2],
}

/// The axes of a light at its recorded place: any two for a point light, else the picture's x axis and the beam's axis.
pub fn axes(record: &LightRecord) -> Axes<f32> {
    let axis = match record.kind {
        light::POINT => return [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        light::PROJECTOR => normalize([0, 1, 2].each(|a| record.to_local[2][a])),
        _ => [0, 1, 2].each(|a| record.direction[a]),
    };
    let across = [0, 1, 2].each(|a| record.to_local[0][a]);
    let along = dot(across, axis);
    [normalize([0, 1, 2].each(|a| across[a] - along * axis[a])), axis]
}

impl Beam {
    /// The same in all directions.
    pub const EVEN: Self = Self {
        share: 1.0,
        slopes: [0.0; 3],
        picture: None,
    };

    /// The beam of a point, a spot or a projector that goes in the direction `from`.
    pub fn new(record: &LightRecord, from: [f32; 3]) -> Self {
        let mut beam = Self::EVEN;
        if record.kind == light::POINT {
            return beam;
        }
        // The rows of the map from the coordinates along the axes to the picture's frame, which may be mirrored.
        let [s, n] = axes(record);
        let columns = [s, cross(n, s), n].each(|axis| transform_vector(&record.to_local, axis));
        let local = transform_vector(&record.to_local, from);
        let row = |a: usize| columns.each(|column| column[a]);
        if record.kind == light::SPOT {
            (beam.share, beam.slopes[2]) = spot_falloff(record, from.each(|x| -x));
        } else {
            let cube = local[2] * local[2] * local[2];
            beam.share = 1.0 / cube;
            beam.slopes = row(2).each(|x| -3.0 * x / (cube * local[2]));
        }
        if record.texture != NONE {
            let half = if record.kind == light::SPOT { 0.5 } else { -0.5 };
            let slopes = [0, 1].each(|a| {
                let scale = half / (record.extent[a] * local[2]);
                [0, 1, 2].each(|k| scale * (row(a)[k] - local[a] / local[2] * row(2)[k]))
            });
            beam.picture = Some(Picture {
                texture: record.texture,
                uv: picture_uv(record, local, half),
                slopes,
            });
        }
        beam
    }

    /// The intensity along `-to` for the axes and `to` of `now`, over that for those of `then`: share times picture,
    /// each to first order in the direction's coordinates.
    pub fn factor<N: Number, F: Fields<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        now: (Axes<N>, [N; 3]),
        then: (Axes<N>, [N; 3]),
    ) -> Rgb<N> {
        let [new, old] = [now, then].each(|(axes, to)| coordinates(axes, to));
        let change = minus(new, old);
        let share = (N::lift(self.share) + inner(lift(self.slopes), change)) / N::lift(self.share);
        let mut factor = Rgb::splat(share);
        if let Some(picture) = &self.picture {
            let (value, slopes) = picture.look(scene, fields);
            for c in (0..3).filter(|&c| value[c].value() != 0.0) {
                let mut seen = value[c];
                for (slope, row) in slopes.iter().zip(picture.slopes) {
                    seen += slope[c] * inner(lift(row), change);
                }
                factor[c] *= seen / value[c];
            }
        }
        factor
    }

    /// The derivatives by `to` and by the axes, from `d` by the logarithm of the intensity.
    pub fn adjoint<N: Number, F: Fields<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        [s, n]: Axes<N>,
        to: [N; 3],
        d: Rgb<N>,
    ) -> ([N; 3], Axes<N>) {
        let mut by_coordinates = scaled(lift(self.slopes), d.sum() / N::lift(self.share));
        if let Some(picture) = &self.picture {
            let (value, slopes) = picture.look(scene, fields);
            for c in (0..3).filter(|&c| value[c].value() != 0.0) {
                for (slope, row) in slopes.iter().zip(picture.slopes) {
                    by_coordinates = plus(by_coordinates, scaled(lift(row), d[c] * slope[c] / value[c]));
                }
            }
        }
        let t = outer(n, s);
        let from = direction(to).each(|x| -x);
        let [x, y, z] = by_coordinates;
        let by_from = plus(plus(scaled(s, x), scaled(t, y)), scaled(n, z));
        let [by_s, by_t, by_n] = by_coordinates.each(|by| scaled(from, by));
        // t = n × s.
        let by_axes = [plus(by_s, outer(by_t, n)), plus(by_n, outer(s, by_t))];
        (direction_adjoint(to, by_from.each(|x| -x)), by_axes)
    }
}

impl Picture {
    /// The picture's value, and its derivatives by both texture coordinates.
    fn look<N: Number, F: Fields<N>>(&self, scene: &SceneView, fields: &F) -> (Rgb<N>, [Rgb<N>; 2]) {
        let record = &scene.textures[self.texture as usize];
        let at = texture_stencil(record, self.uv);
        (
            texture_eval(fields.integrand(at.slot), &at),
            texture_slopes(record, self.uv).each(|at| texture_eval(fields.integrand(at.slot), &at)),
        )
    }
}

/// The coordinates of the unit vector along `-to` in a light's frame.
fn coordinates<N: Number>([s, n]: Axes<N>, to: [N; 3]) -> [N; 3] {
    let from = direction(to).each(|x| -x);
    [inner(s, from), inner(outer(n, s), from), inner(n, from)]
}
