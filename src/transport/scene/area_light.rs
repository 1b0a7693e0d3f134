//! Area lights: sampling a point of a shape that shines, by area, by solid angle or by its texture.

use std::f32::consts::{FRAC_PI_2, PI};

use super::light::{BELOW_ONE, Drawn, draw, with_choice};
use super::records::SceneView;
use super::shape::{Hit, ROUNDING, SurfacePoint, world_normal};
use crate::each::EachEntry;
use crate::resident::environment::row_start;
use crate::resident::layout::{LightRecord, SurfaceRecord, surface};
use crate::transport::rays::camera::{normalize, transform_point};
use crate::transport::rays::sampler::{Sampler, along, around, circle, cross, dot};

/// Samples a direction to an area light: by its texture's table, in the cone of a sphere, or uniform by area.
#[inline]
pub(super) fn sample_area(
    scene: &SceneView,
    record: &LightRecord,
    p: [f32; 3],
    u: [f32; 2],
    sampler: &mut Sampler,
) -> Option<Drawn> {
    let shape = &scene.surfaces[record.surface as usize];
    if record.cells[0] == 0 && shape.kind == surface::SPHERE && shape.side > 0.0 {
        let (lights, drawn) = sample_sphere(record, p, u);
        return lights.then_some(drawn);
    }
    let place = sample_place(scene, record, u, sampler);
    let (lights, drawn) = towards(p, &place);
    lights.then_some(drawn)
}

/// The direction from `p` to a point on a light, and whether that point shines there.
#[inline(always)]
pub(in crate::transport) fn towards(p: [f32; 3], place: &Place) -> (bool, Drawn) {
    let to = [0, 1, 2].each(|a| place.point.p[a] - p[a]);
    let square = dot(to, to);
    let distance = square.sqrt();
    let direction = to.each(|x| x / distance);
    let cosine = -dot(direction, place.normal);
    let drawn = Drawn {
        light: 0,
        direction,
        distance,
        weight: cosine * place.area / square,
        pdf: square / (cosine * place.by_area),
        point: place.point,
        normal: place.normal,
    };
    ((square > 0.0) & (cosine > 0.0), drawn)
}

/// A point on a light.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub point: SurfacePoint,
    /// On the side that shines.
    pub normal: [f32; 3],
    /// One over the pdf by area, and (`by_area`) the same as [`area_pdf`] rounds it, so that the pdfs of both agree.
    pub area: f32,
    by_area: f32,
}

/// Samples a point of an area light: by its texture's table, or uniform by area.
#[inline]
pub fn sample_place(scene: &SceneView, record: &LightRecord, u: [f32; 2], sampler: &mut Sampler) -> Place {
    let shape = &scene.surfaces[record.surface as usize];
    match shape.kind {
        _ if record.cells[0] > 0 => sample_texture(scene, record, shape, u),
        surface::CUBE | surface::MESH => sample_emissive_triangle(scene, record, sampler.draw(), u),
        _ => sample_uniform(record, shape, u),
    }
}

/// A uniform point of a rectangle, disk, cylinder or sphere.
#[inline]
fn sample_uniform(record: &LightRecord, shape: &SurfaceRecord, u: [f32; 2]) -> Place {
    let uv = match shape.kind {
        // Inverts the cumulated area as a function of the radius or of the polar angle.
        surface::DISK => [u[0].sqrt(), u[1]],
        surface::SPHERE => [u[0], (1.0 - 2.0 * u[1]).acos() / PI],
        _ => u,
    };
    place_at(record, shape, uv, at_uv(shape.kind, uv))
}

/// A uniform point of a rectangle.
#[inline(always)]
pub(in crate::transport) fn sample_rectangle(record: &LightRecord, shape: &SurfaceRecord, uv: [f32; 2]) -> Place {
    place_at(record, shape, uv, on_rectangle(uv))
}

/// A point of a light that is sampled by area, with the normal there, both in local space.
#[inline(always)]
fn place_at(record: &LightRecord, shape: &SurfaceRecord, uv: [f32; 2], (p, normal): ([f32; 3], [f32; 3])) -> Place {
    Place {
        point: SurfacePoint::new(transform_point(&shape.to_world, p), uv),
        normal: world_normal(shape, normal),
        area: record.position[3],
        by_area: record.position[3],
    }
}

/// The point of a rectangle, disk, cylinder or sphere with the coordinates `uv`, and the normal there, in local space.
#[inline]
fn at_uv(kind: u32, uv: [f32; 2]) -> ([f32; 3], [f32; 3]) {
    match kind {
        surface::DISK => {
            let [x, y] = circle(uv[1]);
            ([uv[0] * x, uv[0] * y, 0.0], [0.0, 0.0, 1.0])
        }
        surface::CYLINDER => {
            let [x, y] = circle(uv[0]);
            ([x, y, 2.0 * uv[1] - 1.0], [x, y, 0.0])
        }
        surface::SPHERE => {
            let ([x, y], [cosine, sine]) = (circle(uv[0]), circle(0.5 * uv[1]));
            let n = [x * sine, y * sine, cosine];
            (n, n)
        }
        _ => on_rectangle(uv),
    }
}

/// [`at_uv`] of a rectangle.
#[inline(always)]
fn on_rectangle(uv: [f32; 2]) -> ([f32; 3], [f32; 3]) {
    ([2.0 * uv[0] - 1.0, 2.0 * uv[1] - 1.0, 0.0], [0.0, 0.0, 1.0])
}

/// Area per unit of u times v, over its mean: how a rectangle, disk, cylinder or sphere is stretched at `uv`.
#[inline]
pub(super) fn stretch(kind: u32, uv: [f32; 2]) -> f32 {
    match kind {
        surface::DISK => 2.0 * uv[0],
        surface::SPHERE => FRAC_PI_2 * (PI * uv[1]).sin(),
        _ => 1.0,
    }
}

/// Samples a cell of a textured light's table, then a uniform u and v in it.
#[inline]
fn sample_texture(scene: &SceneView, record: &LightRecord, shape: &SurfaceRecord, u: [f32; 2]) -> Place {
    let [columns, rows] = record.cells;
    let table = &scene.tables[record.table as usize..];
    let (row, y) = draw(&table[..=rows as usize], u[1]);
    let first = row_start([columns, rows].each(|n| n as usize), row);
    let (column, x) = draw(&table[first..][..=columns as usize], u[0]);
    let uv = [
        ((column as f32 + x) / columns as f32).min(BELOW_ONE),
        ((row as f32 + y) / rows as f32).min(BELOW_ONE),
    ];
    let (p, normal) = at_uv(shape.kind, uv);
    let area = 1.0 / texture_pdf(scene, record, shape.kind, uv);
    Place {
        point: SurfacePoint::new(transform_point(&shape.to_world, p), uv),
        normal: world_normal(shape, normal),
        area,
        by_area: area,
    }
}

/// The area pdf of [`sample_texture`] at `uv`.
#[inline]
fn texture_pdf(scene: &SceneView, record: &LightRecord, kind: u32, uv: [f32; 2]) -> f32 {
    let [columns, rows] = record.cells;
    let cell = |x: f32, count: u32| ((x * count as f32) as u32).min(count - 1);
    let (column, row) = (cell(uv[0], columns), cell(uv[1], rows));
    let table = &scene.tables[record.table as usize..];
    let of_row = table[row as usize + 1] - table[row as usize];
    let first = row_start([columns, rows].each(|n| n as usize), row as usize) + column as usize;
    let of_cell = table[first + 1] - table[first];
    // At the centre of a disk and the poles of a sphere the stretch is zero, and a pdf must stay finite.
    let area = record.position[3] * stretch(kind, uv).max(1e-6);
    of_row * of_cell * (columns as f32 * rows as f32) / area
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
    let shining = &emissive_triangles[low];
    let (mut ab, mut ac) = ([0.0; 3], [0.0; 3]);
    for a in 0..3 {
        ab[a] = shining.b[a] - shining.a[a];
        ac[a] = shining.c[a] - shining.a[a];
    }
    let face = cross(ab, ac);
    let root = (1.0 - u[0]).sqrt();
    let size = dot(face, face).sqrt();
    let (to_b, to_c) = (1.0 - root, root * u[1]);
    let [au, av, bu, bv] = shining.uv_ab;
    let [cu, cv] = shining.uv_c;
    // The records of a light with flipped normals list b and c in reverse order.
    let side = scene.surfaces[record.surface as usize].side;
    Place {
        point: SurfacePoint {
            p: [0, 1, 2].each(|a| shining.a[a] + ab[a] * to_b + ac[a] * to_c),
            uv: [
                au + (bu - au) * to_b + (cu - au) * to_c,
                av + (bv - av) * to_b + (cv - av) * to_c,
            ],
            triangle: shining.triangle,
            weights: if side < 0.0 { [to_c, to_b] } else { [to_b, to_c] },
        },
        normal: face.each(|x| x / size),
        area: 0.5 * size / (shining.ends - shining.begins),
        by_area: record.position[3],
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

/// The squared distance from the centre up to which a point counts as on the sphere itself, from where the sphere is
/// not sampled: its cone there is half of all directions, which point into the sphere, whose inside does not shine. The
/// margin allows for the rounding of points on the sphere.
#[inline(always)]
fn own_square(center: [f32; 3], radius: f32) -> f32 {
    let extent = radius + center[0].abs() + center[1].abs() + center[2].abs();
    let reach = radius + 4.0 * ROUNDING * extent;
    reach * reach
}

/// The direction from `p` to a sphere in the cone that it fills, and whether `p` is outside.
#[inline(always)]
pub(in crate::transport) fn sample_sphere(record: &LightRecord, p: [f32; 3], u: [f32; 2]) -> (bool, Drawn) {
    let (center, radius) = sphere_of(record);
    let to = [0, 1, 2].each(|a| center[a] - p[a]);
    let square = dot(to, to);
    let (pdf, height) = cone(square, radius);
    let cosine = 1.0 - u[0] * height;
    let axis = normalize(to);
    let direction = around(axis, cosine, u[1]);
    // The nearer intersection of the ray with the sphere. Half of the chord is a product: as the root of a difference of
    // squares it would be rounding alone at a small or distant sphere, and its cosine, which derivatives are divided by, too.
    let chord2 = height * (1.0 - u[0]) * (2.0 - height * (1.0 + u[0]));
    let distance = square.sqrt() * (cosine - chord2.max(0.0).sqrt());
    let normal = normalize([0, 1, 2].each(|a| direction[a] * distance - to[a]));
    let drawn = Drawn {
        light: 0,
        direction,
        distance,
        weight: 1.0 / pdf,
        pdf,
        point: SurfacePoint::new(along(p, direction, distance), [0.0; 2]),
        normal,
    };
    (square > own_square(center, radius), drawn)
}

/// Pdf of uniform directions in the cone of a sphere at squared distance `square`, and one minus the cone's cosine.
#[inline]
fn cone(square: f32, radius: f32) -> (f32, f32) {
    let sine2 = radius * radius / square;
    // 1 - sqrt(1 - x) without cancellation.
    let height = sine2 / (1.0 + (1.0 - sine2).max(0.0).sqrt());
    (1.0 / (2.0 * PI * height), height)
}

/// The pdf with which [`super::light::light_sample`] draws, from `p`, the direction that hit an emissive surface.
#[inline]
pub fn area_pdf(scene: &SceneView, p: [f32; 3], direction: [f32; 3], hit: &Hit) -> f32 {
    let shape = &scene.surfaces[hit.surface as usize];
    let record = &scene.lights[shape.light as usize];
    let to = [0, 1, 2].each(|a| hit.point.p[a] - p[a]);
    let cosine = -dot(direction, hit.normal);
    let pdf = if record.cells[0] > 0 {
        dot(to, to) / cosine * texture_pdf(scene, record, shape.kind, hit.point.uv)
    } else if shape.kind == surface::SPHERE && shape.side > 0.0 {
        let (center, radius) = sphere_of(record);
        let to = [0, 1, 2].each(|a| center[a] - p[a]);
        let square = dot(to, to);
        if square <= own_square(center, radius) {
            return 0.0;
        }
        cone(square, radius).0
    } else {
        dot(to, to) / (cosine * record.position[3])
    };
    with_choice(scene, record, pdf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    /// The cosine at the light, which derivatives by positions are divided by, and the drawn point, against f64: as a difference
    /// of squares, half of the chord would be off by a quarter near the rim of the small ball.
    #[test]
    fn points_of_small_and_distant_spheres_are_exact() {
        for (radius, far) in [(1.0, 3.0), (0.3, 4.5), (0.05, 4.5), (0.05, 20.0)] {
            let mut record = LightRecord::zeroed();
            let center = [0.6f32, 0.64, 0.48].each(|x| x * far);
            record.position = [center[0], center[1], center[2], 0.0];
            record.direction = [0.0, 0.0, 0.0, radius];
            for u in [0.0, 0.3, 0.9, 0.99, 0.999f32] {
                let (_, drawn) = sample_sphere(&record, [0.0; 3], [u, 0.37]);
                let square = center.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
                let height = 1.0 - (1.0 - f64::from(radius).powi(2) / square).sqrt();
                let chord2 = height * (1.0 - f64::from(u)) * (2.0 - height * (1.0 + f64::from(u)));
                let expected = (square * chord2).sqrt() / f64::from(radius);
                let cosine = f64::from(-dot(drawn.direction, drawn.normal));
                // The cone's cosines are rounded in f32.
                let tolerance = 2e-6 + 6e-8 / height;
                assert!(
                    (cosine - expected).abs() < tolerance,
                    "{radius} at {far}, {u}: {cosine}, expected {expected}"
                );
            }
        }
    }
}
