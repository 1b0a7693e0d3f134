//! Lights: sampling a direction towards one, and its radiance or intensity: [`light_value`] beside [`light_adjoint`].

use std::f32::consts::PI;

use super::area_light::sample_area;
use super::records::{Fields, SceneView, Sink};
use super::shape::SurfacePoint;
use super::texture::{stencil, texture_adjoint, texture_eval};
use crate::each::EachEntry;
use crate::resident::environment::{cells, first_of_row, first_weight};
use crate::resident::layout::{LightRecord, NONE, Rows, light};
use crate::transport::lookup::background::{EnvStencil, env_cell, env_position};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::{normalize, transform_point, transform_vector};
use crate::transport::rays::sampler::{Sampler, circle, dot};

/// The largest float below one.
pub const BELOW_ONE: f32 = 0.999_999_94;

/// A sampled direction towards a light.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    pub light: u32,
    pub direction: [f32; 3],
    pub distance: f32,
    /// Factor on the light's radiance or intensity: geometry term over pdf, the probability of choosing the light
    /// included.
    pub weight: f32,
    /// The pdf by solid angle; 0 for delta lights, which no path can hit.
    pub pdf: f32,
    /// Where the light's texture is looked up.
    pub point: SurfacePoint,
    /// The normal at `point` on an area light.
    pub normal: [f32; 3],
}

/// Samples a light and a direction towards it from `p`. None if its contribution there is zero.
#[inline]
pub fn light_sample(scene: &SceneView, p: [f32; 3], sampler: &mut Sampler) -> Option<Drawn> {
    let (index, choices) = choose_light(scene, sampler.draw());
    let (u, v) = (sampler.draw(), sampler.draw());
    let record = &scene.lights[index as usize];
    let drawn = match record.kind {
        light::POINT | light::SPOT => sample_point(record, p)?,
        light::PROJECTOR => sample_projector(record, p)?,
        light::DIRECTIONAL => Drawn {
            light: index,
            direction: [-record.direction[0], -record.direction[1], -record.direction[2]],
            distance: f32::INFINITY,
            weight: 1.0,
            pdf: 0.0,
            point: SurfacePoint::new([0.0; 3], [0.0; 2]),
            normal: [0.0; 3],
        },
        light::AREA => sample_area(scene, record, p, [u, v], sampler)?,
        _ => sample_envmap(scene, [u, v])?,
    };
    Some(Drawn {
        light: index,
        weight: drawn.weight * choices,
        pdf: drawn.pdf / choices,
        ..drawn
    })
}

/// The light that a number in [0, 1) chooses, and one over the probability of that choice.
#[inline]
pub fn choose_light(scene: &SceneView, u: f32) -> (u32, f32) {
    let count = scene.settings.lights;
    if scene.settings.weighted == 0 {
        return (((u * count as f32) as u32).min(count - 1), count as f32);
    }
    let (mut low, mut high) = (0, count - 1);
    while low < high {
        let middle = (low + high) / 2;
        if scene.lights[middle as usize].cumulative <= u {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low, 1.0 / scene.lights[low as usize].probability)
}

/// A pdf times the probability with which [`light_sample`] chooses the light.
#[inline(always)]
pub(super) fn with_choice(scene: &SceneView, record: &LightRecord, pdf: f32) -> f32 {
    match scene.settings.weighted {
        0 => pdf / scene.settings.lights as f32,
        _ => pdf * record.probability,
    }
}

#[inline]
fn sample_point(record: &LightRecord, p: [f32; 3]) -> Option<Drawn> {
    let to = [0, 1, 2].each(|a| record.position[a] - p[a]);
    let square = dot(to, to);
    let distance = square.sqrt();
    let direction = to.each(|x| x / distance);
    let mut weight = 1.0 / square;
    let mut uv = [0.0; 2];
    if record.kind == light::SPOT {
        weight *= spot_falloff(record, direction).0;
        if record.texture != NONE {
            uv = picture_uv(record, transform_point(&record.to_local, p), 0.5);
        }
    }
    (weight > 0.0 && weight.is_finite()).then_some(Drawn {
        light: 0,
        direction,
        distance,
        weight,
        pdf: 0.0,
        point: SurfacePoint::new([0.0; 3], uv),
        normal: [0.0; 3],
    })
}

/// Where a point in the frame of a spot or a projector lies in its picture. `half` is 1/2, or -1/2 for a picture that is
/// seen like that of a camera, whose +x points to the left and +y upwards.
#[inline]
pub fn picture_uv(record: &LightRecord, local: [f32; 3], half: f32) -> [f32; 2] {
    [0, 1].each(|a| 0.5 + half * local[a] / (local[2] * record.extent[a]))
}

/// The direction towards a projector. The weight follows Mitsuba, where the irradiance on a plane at the distance one is
/// pi times the picture.
#[inline]
fn sample_projector(record: &LightRecord, p: [f32; 3]) -> Option<Drawn> {
    let local = transform_point(&record.to_local, p);
    if local[2] <= 0.0 {
        return None;
    }
    let uv = picture_uv(record, local, -0.5);
    if !uv.iter().all(|x| (0.0..=1.0).contains(x)) {
        return None;
    }
    let to = [0, 1, 2].each(|a| record.position[a] - p[a]);
    let distance = dot(to, to).sqrt();
    // Over the cosine, which is local z / distance.
    let weight = PI * distance / (local[2] * local[2] * local[2]);
    weight.is_finite().then_some(Drawn {
        light: 0,
        direction: to.each(|x| x / distance),
        distance,
        weight,
        pdf: 0.0,
        point: SurfacePoint::new([0.0; 3], uv),
        normal: [0.0; 3],
    })
}

/// Share of a spot light's intensity opposite to `direction`: one within the beam, then falling linearly with the
/// angle, as in Mitsuba, to zero at the cutoff; and its derivative by the cosine of that angle.
#[inline]
pub fn spot_falloff(record: &LightRecord, direction: [f32; 3]) -> (f32, f32) {
    let axis = [record.direction[0], record.direction[1], record.direction[2]];
    let cosine = -dot(axis, direction);
    if cosine >= record.cos_beam {
        return (1.0, 0.0);
    }
    if cosine <= record.direction[3] {
        return (0.0, 0.0);
    }
    let (cutoff, beam) = (record.direction[3].acos(), record.cos_beam.acos());
    let width = cutoff - beam;
    (
        (cutoff - cosine.acos()) / width,
        1.0 / (width * (1.0 - cosine * cosine).sqrt()),
    )
}

/// Samples a direction from an environment map's table: a row by the marginal, a cell by the row's conditional, then a
/// point in it with a bilinear pdf through the weights of its four texels (linear marginal, linear conditional).
#[inline]
pub fn sample_envmap(scene: &SceneView, u: [f32; 2]) -> Option<Drawn> {
    let size = scene.common.env_size;
    let [columns, rows] = cells(size);
    let (row, v) = draw(&scene.tables[..rows + 1], u[1]);
    let (column, u) = draw(&scene.tables[first_of_row(size, row)..][..columns + 1], u[0]);
    let cell = [column as u32, row as u32];
    let place = place_in_cell([u, v], texel_weights(scene, &env_cell(size, cell, [0.0; 2])));
    let (direction, sine) = MapFrame::of(scene).direction(cell, place);
    let pdf = envmap_stencil_pdf(scene, &EnvPlace::new(size, cell, place, sine));
    (pdf > 0.0).then_some(Drawn {
        light: 0,
        direction,
        distance: f32::INFINITY,
        weight: 1.0 / pdf,
        pdf,
        point: SurfacePoint::new([0.0; 3], [0.0; 2]),
        normal: [0.0; 3],
    })
}

/// A point of a cell between texels of these weights.
#[inline(always)]
pub(super) fn place_in_cell([u, v]: [f32; 2], [w00, w10, w01, w11]: [f32; 4]) -> [f32; 2] {
    let fy = sample_linear(v, w00 + w10, w01 + w11);
    let fx = sample_linear(u, w00 + (w01 - w00) * fy, w10 + (w11 - w10) * fy);
    [fx, fy]
}

/// How an environment map lies in the world, and its size in texels.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapFrame {
    pub size: [u32; 2],
    world_to_env: Rows,
}

impl MapFrame {
    #[inline(always)]
    pub(super) fn of(scene: &SceneView) -> Self {
        Self {
            size: scene.common.env_size,
            world_to_env: scene.common.world_to_env,
        }
    }

    /// The direction in the world of a point of a cell, and the sine of its polar angle on the map.
    #[inline(always)]
    pub(super) fn direction(&self, cell: [u32; 2], [fx, fy]: [f32; 2]) -> ([f32; 3], f32) {
        let [columns, rows] = cells(self.size).each(|n| n as u32 as f32);
        let [column, row] = cell.each(|n| n as i32 as f32);
        let [cosine, sine] = circle(0.5 * ((row + fy) / rows));
        // u = atan2(x, -z) / 2 pi
        let [z, x] = circle((column + fx + 0.5) / columns);
        let direction = normalize(from_environment(&self.world_to_env, [x * sine, cosine, -z * sine]));
        (direction, sine)
    }

    /// The place of the direction `d` of the world.
    #[inline(always)]
    pub(super) fn place(&self, d: [f32; 3]) -> EnvPlace {
        let local = normalize(transform_vector(&self.world_to_env, d));
        let (cell, place) = env_position(self.size, local);
        let sine = (local[0] * local[0] + local[2] * local[2]).sqrt();
        EnvPlace::new(self.size, cell, place, sine)
    }
}

/// Samples a number in [0, 1) whose pdf is linear from `a` to `b`, both positive.
#[inline(always)]
fn sample_linear(u: f32, a: f32, b: f32) -> f32 {
    let root = (a * a + (b * b - a * a) * u).sqrt();
    (u * (a + b) / (a + root)).min(BELOW_ONE)
}

/// The weights of a stencil's texels in the sampling table.
#[inline]
fn texel_weights(scene: &SceneView, at: &EnvStencil) -> [f32; 4] {
    let first = first_weight(scene.common.env_size);
    at.texels.each(|texel| scene.tables[first + texel as usize])
}

/// Rotates a direction from the map's frame to the world: the inverse of a rotation is its transpose.
#[inline(always)]
fn from_environment(m: &Rows, d: [f32; 3]) -> [f32; 3] {
    [0, 1, 2].each(|a| m[0][a] * d[0] + m[1][a] * d[1] + m[2][a] * d[2])
}

/// The bin of a cumulative table that contains `u`, and the position within it.
#[inline]
pub(super) fn draw(table: &[f32], u: f32) -> (usize, f32) {
    let (mut low, mut high) = (0, table.len() - 1);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if table[middle] <= u {
            low = middle;
        } else {
            high = middle;
        }
    }
    let width = table[low + 1] - table[low];
    let place = if width > 0.0 { (u - table[low]) / width } else { 0.5 };
    (low, place.clamp(0.0, BELOW_ONE))
}

/// The pdf by solid angle at a place of the map, without the probability of choosing it among the lights.
#[inline]
fn envmap_stencil_pdf(scene: &SceneView, place: &EnvPlace) -> f32 {
    let size = scene.common.env_size;
    let [columns, rows] = cells(size);
    let [column, row] = place.cell.each(|n| n as usize);
    let of_row = scene.tables[row + 1] - scene.tables[row];
    let start = first_of_row(size, row) + column;
    let of_cell = scene.tables[start + 1] - scene.tables[start];
    let relative = relative_weight(texel_weights(scene, &place.at), place.at.weights);
    of_row * of_cell * (columns * rows) as f32 * relative / area_of_map(place.sine)
}

/// The mean of texels' weights, weighted by a stencil, over their plain mean.
#[inline(always)]
pub(super) fn relative_weight(texels: [f32; 4], stencil: [f32; 4]) -> f32 {
    let (mut here, mut sum) = (0.0, 0.0);
    for k in 0..4 {
        here += texels[k] * stencil[k];
        sum += texels[k];
    }
    4.0 * here / sum
}

/// Solid angle per unit of a map's u times v where the polar angle has this sine.
#[inline(always)]
pub(super) fn area_of_map(sine: f32) -> f32 {
    2.0 * PI * PI * sine.max(1e-9)
}

/// The pdf with which [`light_sample`] draws the direction `d` towards the environment map; 0 without one.
#[inline]
pub fn envmap_pdf(scene: &SceneView, d: [f32; 3]) -> f32 {
    if scene.settings.environment == NONE {
        return 0.0;
    }
    let record = &scene.lights[scene.settings.environment as usize];
    with_choice(scene, record, envmap_stencil_pdf(scene, &MapFrame::of(scene).place(d)))
}

/// Where a direction lies on the environment map: its cell, the texels around it, and the sine of its polar angle there.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnvPlace {
    pub cell: [u32; 2],
    pub at: EnvStencil,
    pub sine: f32,
}

impl EnvPlace {
    /// A place in a cell of a map of `size` texels.
    #[inline(always)]
    pub(super) fn new(size: [u32; 2], cell: [u32; 2], place: [f32; 2], sine: f32) -> Self {
        let at = env_cell(size, cell, place);
        Self { cell, at, sine }
    }
}

/// Radiance, intensity or irradiance of a light other than the environment map, whose texture is looked up at `point`.
#[inline]
pub fn light_value<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    record: &LightRecord,
    point: &SurfacePoint,
) -> Rgb<N> {
    if record.texture == NONE {
        return light_color(fields, record);
    }
    let at = stencil(scene, record.texture, point);
    light_color(fields, record) * texture_eval(fields.integrand(at.slot), &at)
}

/// The adjoint of [`light_value`]: `d` is the derivative by that value.
#[inline]
pub fn light_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    record: &LightRecord,
    point: &SurfacePoint,
    d: Rgb<N>,
    sink: &mut S,
) {
    if record.texture == NONE {
        return sink.value(record.slot, d.0, 3);
    }
    let at = stencil(scene, record.texture, point);
    texture_adjoint(&at, d * light_color(fields, record), sink);
    if record.slot == NONE {
        return;
    }
    let d = d * texture_eval(fields.integrand(at.slot), &at);
    match record.kind {
        light::PROJECTOR => sink.value(record.slot, [d.sum(), N::lift(0.0), N::lift(0.0)], 1),
        _ => sink.value(record.slot, d.0, 3),
    }
}

/// The factor on a light's texture: its colour, the scale of a projector, or one.
#[inline(always)]
pub fn light_color<N: Number, F: Fields<N>>(fields: &F, record: &LightRecord) -> Rgb<N> {
    if record.slot == NONE {
        return Rgb::splat(N::lift(1.0));
    }
    let data = fields.integrand(record.slot);
    match record.kind {
        light::PROJECTOR => Rgb::splat(data[0]),
        _ => Rgb([data[0], data[1], data[2]]),
    }
}
