//! Lights: sampling a direction towards one, and its radiance or intensity.

use super::records::SceneView;
use super::shape::{Hit, cross, world_normal};
use crate::resident::environment::{cells, first_of_row, first_weight};
use crate::resident::layout::{LightRecord, NONE, light, surface};
use crate::transport::lookup::background::{EnvStencil, env_cell, env_stencil};
use crate::transport::number::Number;
use crate::transport::rays::camera::{normalize, transform_point, transform_vector};
use crate::transport::rays::sampler::{Sampler, around, dot};

/// The largest float below one.
const BELOW_ONE: f32 = 0.999_999_94;

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
}

/// Samples a light and a direction towards it from `p`. None if its contribution there is zero.
#[inline]
pub fn light_sample(scene: &SceneView, p: [f32; 3], sampler: &mut Sampler) -> Option<Drawn> {
    let count = scene.settings.lights;
    let index = ((sampler.draw() * count as f32) as u32).min(count - 1);
    let (u, v) = (sampler.draw(), sampler.draw());
    let record = &scene.lights[index as usize];
    let drawn = match record.kind {
        light::POINT | light::SPOT => sample_point(record, p)?,
        light::DIRECTIONAL => Drawn {
            light: index,
            direction: [-record.direction[0], -record.direction[1], -record.direction[2]],
            distance: f32::INFINITY,
            weight: 1.0,
            pdf: 0.0,
        },
        light::AREA => sample_area(scene, record, p, [u, v], sampler)?,
        _ => sample_envmap(scene, [u, v])?,
    };
    Some(Drawn {
        light: index,
        weight: drawn.weight * count as f32,
        pdf: drawn.pdf / count as f32,
        ..drawn
    })
}

#[inline]
fn sample_point(record: &LightRecord, p: [f32; 3]) -> Option<Drawn> {
    let to = [0, 1, 2].map(|a| record.position[a] - p[a]);
    let square = dot(to, to);
    let distance = square.sqrt();
    let direction = to.map(|x| x / distance);
    let mut weight = 1.0 / square;
    if record.kind == light::SPOT {
        weight *= spot_falloff(record, direction);
    }
    (weight > 0.0 && weight.is_finite()).then_some(Drawn {
        light: 0,
        direction,
        distance,
        weight,
        pdf: 0.0,
    })
}

/// Share of a spot light's intensity opposite to `direction`: one within the beam, then falling linearly with the
/// angle, as in Mitsuba, to zero at the cutoff.
#[inline]
fn spot_falloff(record: &LightRecord, direction: [f32; 3]) -> f32 {
    let axis = [record.direction[0], record.direction[1], record.direction[2]];
    let cosine = -dot(axis, direction);
    if cosine >= record.cos_beam {
        return 1.0;
    }
    if cosine <= record.direction[3] {
        return 0.0;
    }
    let (cutoff, beam) = (record.direction[3].acos(), record.cos_beam.acos());
    (cutoff - cosine.acos()) / (cutoff - beam)
}

/// Samples a direction to an area light: uniform by area, or in the cone of a sphere.
#[inline]
fn sample_area(
    scene: &SceneView,
    record: &LightRecord,
    p: [f32; 3],
    u: [f32; 2],
    sampler: &mut Sampler,
) -> Option<Drawn> {
    let shape = &scene.surfaces[record.surface as usize];
    let place = match shape.kind {
        surface::SPHERE => return sample_sphere(record, p, u),
        surface::RECTANGLE => Place {
            q: transform_point(&shape.to_world, [2.0 * u[0] - 1.0, 2.0 * u[1] - 1.0, 0.0]),
            normal: world_normal(shape, [0.0, 0.0, 1.0]),
            area: record.position[3],
        },
        _ => sample_emissive_triangle(scene, record, sampler.draw(), u),
    };
    let to = [0, 1, 2].map(|a| place.q[a] - p[a]);
    let square = dot(to, to);
    let distance = square.sqrt();
    let direction = to.map(|x| x / distance);
    let cosine = -dot(direction, place.normal);
    (square > 0.0 && cosine > 0.0).then(|| Drawn {
        light: 0,
        direction,
        distance,
        weight: cosine * place.area / square,
        pdf: square / (cosine * record.position[3]),
    })
}

/// A point on a light.
struct Place {
    q: [f32; 3],
    normal: [f32; 3],
    /// One over its area pdf: the light's area, up to rounding.
    area: f32,
}

/// Samples a point on a light's emissive triangles: a triangle by its share of the area, then a uniform point.
#[inline]
fn sample_emissive_triangle(scene: &SceneView, record: &LightRecord, share: f32, u: [f32; 2]) -> Place {
    let emissive_triangles =
        &scene.emissive_triangles[record.first_emissive as usize..][..record.emissive_triangles as usize];
    let (mut low, mut high) = (0, emissive_triangles.len());
    while high - low > 1 {
        let middle = (low + high) / 2;
        if emissive_triangles[middle].begins <= share {
            low = middle;
        } else {
            high = middle;
        }
    }
    let facet = &emissive_triangles[low];
    let (mut ab, mut ac) = ([0.0; 3], [0.0; 3]);
    for a in 0..3 {
        ab[a] = facet.b[a] - facet.a[a];
        ac[a] = facet.c[a] - facet.a[a];
    }
    let face = cross(ab, ac);
    let root = (1.0 - u[0]).sqrt();
    let size = dot(face, face).sqrt();
    Place {
        q: [0, 1, 2].map(|a| facet.a[a] + ab[a] * (1.0 - root) + ac[a] * (root * u[1])),
        normal: face.map(|x| x / size),
        area: 0.5 * size / (facet.ends - facet.begins),
    }
}

/// The sphere of an area light: centre and radius in the world. `to_world` of a sphere is a similarity.
#[inline]
fn sphere_of(record: &LightRecord) -> ([f32; 3], f32) {
    (
        [record.position[0], record.position[1], record.position[2]],
        record.direction[3],
    )
}

#[inline]
fn sample_sphere(record: &LightRecord, p: [f32; 3], u: [f32; 2]) -> Option<Drawn> {
    let (center, radius) = sphere_of(record);
    let to = [0, 1, 2].map(|a| center[a] - p[a]);
    let square = dot(to, to);
    if square <= radius * radius {
        return None;
    }
    let (pdf, height) = cone(square, radius);
    let cosine = 1.0 - u[0] * height;
    let axis = normalize(to);
    let direction = around(axis, cosine, u[1]);
    // The nearer intersection of the ray with the sphere.
    let middle = dot(to, direction);
    let half = (radius * radius - (square - middle * middle)).max(0.0).sqrt();
    Some(Drawn {
        light: 0,
        direction,
        distance: middle - half,
        weight: 1.0 / pdf,
        pdf,
    })
}

/// Pdf of uniform directions in the cone of a sphere at squared distance `square`, and one minus the cone's cosine.
#[inline]
fn cone(square: f32, radius: f32) -> (f32, f32) {
    let sine2 = radius * radius / square;
    // 1 - sqrt(1 - x) without cancellation.
    let height = sine2 / (1.0 + (1.0 - sine2).max(0.0).sqrt());
    (1.0 / (2.0 * std::f32::consts::PI * height), height)
}

/// The pdf with which [`light_sample`] draws, from `p`, the direction that hit an emissive surface.
#[inline]
pub fn area_pdf(scene: &SceneView, p: [f32; 3], direction: [f32; 3], hit: &Hit) -> f32 {
    let shape = &scene.surfaces[hit.surface as usize];
    let record = &scene.lights[shape.light as usize];
    let pdf = if shape.kind == surface::SPHERE {
        let (center, radius) = sphere_of(record);
        let to = [0, 1, 2].map(|a| center[a] - p[a]);
        let square = dot(to, to);
        if square <= radius * radius {
            return 0.0;
        }
        cone(square, radius).0
    } else {
        let to = [0, 1, 2].map(|a| hit.p[a] - p[a]);
        dot(to, to) / (-dot(direction, hit.normal) * record.position[3])
    };
    pdf / scene.settings.lights as f32
}

/// Samples a direction from an environment map's table: a row by the marginal, a cell by the row's conditional, then a
/// point in it with a bilinear pdf through the weights of its four texels (linear marginal, linear conditional).
#[inline]
fn sample_envmap(scene: &SceneView, u: [f32; 2]) -> Option<Drawn> {
    let size = scene.common.env_size;
    let [columns, rows] = cells(size);
    let (row, v) = draw(&scene.environment[..rows + 1], u[1]);
    let (column, u) = draw(&scene.environment[first_of_row(size, row)..][..columns + 1], u[0]);
    let cell = [column as u32, row as u32];
    let [w00, w10, w01, w11] = texel_weights(scene, &env_cell(size, cell, [0.0; 2]));
    let fy = sample_linear(v, w00 + w10, w01 + w11);
    let fx = sample_linear(u, w00 + (w01 - w00) * fy, w10 + (w11 - w10) * fy);
    let x = (column as f32 + fx + 0.5) / columns as f32;
    let theta = (row as f32 + fy) / rows as f32 * std::f32::consts::PI;
    let (sine, cosine) = theta.sin_cos();
    let phi = 2.0 * std::f32::consts::PI * x;
    // u = atan2(x, -z) / 2 pi
    let local = [phi.sin() * sine, cosine, -phi.cos() * sine];
    let direction = normalize(from_environment(scene, local));
    let pdf = envmap_stencil_pdf(scene, &env_cell(size, cell, [fx, fy]), sine);
    (pdf > 0.0).then_some(Drawn {
        light: 0,
        direction,
        distance: f32::INFINITY,
        weight: 1.0 / pdf,
        pdf,
    })
}

/// Samples a number in [0, 1) whose pdf is linear from `a` to `b`, both positive.
#[inline]
fn sample_linear(u: f32, a: f32, b: f32) -> f32 {
    let root = (a * a + (b * b - a * a) * u).sqrt();
    (u * (a + b) / (a + root)).min(BELOW_ONE)
}

/// The weights of a stencil's texels in the sampling table.
#[inline]
fn texel_weights(scene: &SceneView, at: &EnvStencil) -> [f32; 4] {
    let first = first_weight(scene.common.env_size);
    at.texels.map(|texel| scene.environment[first + texel as usize])
}

/// Rotates a direction from the map's frame to the world: the inverse of a rotation is its transpose.
#[inline]
fn from_environment(scene: &SceneView, d: [f32; 3]) -> [f32; 3] {
    let m = &scene.common.world_to_env;
    [0, 1, 2].map(|a| m[0][a] * d[0] + m[1][a] * d[1] + m[2][a] * d[2])
}

/// The bin of a cumulative table that contains `u`, and the position within it.
#[inline]
fn draw(table: &[f32], u: f32) -> (usize, f32) {
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

/// The pdf by solid angle at a position of the map, without the probability of choosing it among the lights; `sine` is
/// that of the polar angle.
#[inline]
fn envmap_stencil_pdf(scene: &SceneView, at: &EnvStencil, sine: f32) -> f32 {
    let size = scene.common.env_size;
    let [columns, rows] = cells(size);
    let (row, column) = ((at.texels[0] / size[0]) as usize, (at.texels[0] % size[0]) as usize);
    let of_row = scene.environment[row + 1] - scene.environment[row];
    let start = first_of_row(size, row) + column;
    let of_cell = scene.environment[start + 1] - scene.environment[start];
    let (mut here, mut sum) = (0.0, 0.0);
    for (weight, share) in texel_weights(scene, at).into_iter().zip(at.weights) {
        here += weight * share;
        sum += weight;
    }
    let area = 2.0 * std::f32::consts::PI * std::f32::consts::PI * sine.max(1e-9);
    of_row * of_cell * (columns * rows) as f32 * (4.0 * here / sum) / area
}

/// The pdf with which [`light_sample`] draws the direction `d` towards the environment map; 0 without one.
#[inline]
pub fn envmap_pdf(scene: &SceneView, d: [f32; 3]) -> f32 {
    if scene.settings.environment == NONE {
        return 0.0;
    }
    let local = normalize(transform_vector(&scene.common.world_to_env, d));
    let at = env_stencil(scene.common.env_size, local);
    let sine = (local[0] * local[0] + local[2] * local[2]).sqrt();
    envmap_stencil_pdf(scene, &at, sine) / scene.settings.lights as f32
}

/// Radiance or intensity from a light's parameter.
#[inline]
pub fn light_value<N: Number>(data: &[N]) -> [N; 3] {
    [data[0], data[1], data[2]]
}
