//! Gradients as pictures: of grids the largest along rays, of textures at the first hit, of splats at their centres.

use glam::{Affine2, Affine3A, Vec2, Vec3, Vec3A};
use rayon::prelude::*;

use super::camera;
use super::wanted::Moves;
use crate::params::{Kind, Parameter};
use crate::resident::layout::SensorRecord;
use crate::resident::splats::Placed;
use crate::scene::{Scene, Wrap};

/// Largest number of texels along an axis of a [`GridMagnitudes`].
const EDGE: usize = 64;

/// Whether gradients of parameters of this kind have a place in a picture.
pub(super) fn has_place(kind: Kind) -> bool {
    matches!(kind, Kind::Grid | Kind::Texture | Kind::Points)
}

/// How a texture lies on a surface.
#[derive(Debug, Clone)]
pub(super) struct Painted {
    /// Index of the surface.
    pub surface: usize,
    to_uv: Affine2,
    wrap: Wrap,
}

/// The surfaces that a parameter is a texture of.
pub(super) fn painted(scene: &Scene, path: &str) -> Vec<Painted> {
    let mut all = Vec::new();
    for (surface, of) in scene.world.placed().enumerate() {
        let images = of.images().into_iter().filter(|map| map.data.path == path);
        all.extend(images.map(|map| Painted {
            surface,
            to_uv: map.to_uv,
            wrap: map.wrap,
        }));
    }
    all
}

/// The magnitude of a gradient at each texel or splat: the Euclidean norm over its channels.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Magnitudes {
    Grid(GridMagnitudes),
    /// Width and height, and rows from v = 0 on.
    Texture([usize; 2], Vec<f32>),
    /// Centres of splats in the picture, each with its magnitude.
    Points(Vec<([f32; 2], f32)>),
}

/// The magnitude of each texel.
fn norms(gradient: &[f32], channels: usize) -> Vec<f32> {
    let norm = |texel: &[f32]| texel.iter().map(|g| g * g).sum::<f32>().sqrt();
    gradient.chunks_exact(channels).map(norm).collect()
}

impl Magnitudes {
    /// From the gradient of a parameter, `[z][y][x][channel]`; `positions` are those of splats, else unused.
    pub(super) fn of(parameter: &Parameter, gradient: &[f32], positions: &[f32]) -> Self {
        let ([width, height, _], channels) = (parameter.shape.size, parameter.shape.channels);
        match parameter.kind {
            Kind::Points => {
                let places = positions.chunks_exact(2).map(|p| [p[0], p[1]]);
                Self::Points(places.zip(norms(gradient, channels)).collect())
            }
            Kind::Texture => Self::Texture([width, height], norms(gradient, channels)),
            _ => Self::Grid(GridMagnitudes::of(parameter, gradient)),
        }
    }

    /// The magnitude of the texel at texture coordinates.
    pub(super) fn at(&self, uv: [f32; 2], painted: &Painted) -> f32 {
        let Self::Texture(size, values) = self else { return 0.0 };
        let place = painted.to_uv.transform_point2(Vec2::from(uv));
        let index = [0, 1].map(|a| {
            let n = size[a] as i64;
            let i = (place[a].clamp(-1e9, 1e9) * n as f32).floor() as i64;
            let i = match painted.wrap {
                Wrap::Clamp => i.clamp(0, n - 1),
                Wrap::Repeat => i.rem_euclid(n),
                Wrap::Mirror => {
                    let i = i.rem_euclid(2 * n);
                    i.min(2 * n - 1 - i)
                }
            };
            i as usize
        });
        values[index[1] * size[0] + index[0]]
    }
}

/// The magnitude at each pixel of a picture of splats: the largest of the splats whose centres lie within some pixels.
pub(super) fn dots(points: &[([f32; 2], f32)], record: &SensorRecord) -> Vec<f32> {
    let (film, [width, height]) = (Placed::of(record), [record.width as usize, record.height as usize]);
    let mut largest = vec![0f32; width * height];
    let radius = (width.max(height) as f32 / 200.0).max(0.5);
    for (place, value) in points {
        let range = |axis: usize, n: usize| {
            let center = place[axis] * film.side + film.offset[axis];
            let end = |x: f32| x.clamp(0.0, n as f32) as usize;
            end((center - radius).floor())..end((center + radius).ceil())
        };
        for y in range(1, height) {
            for x in range(0, width) {
                largest[y * width + x] = largest[y * width + x].max(*value);
            }
        }
    }
    largest
}

/// Magnitudes of a grid, reduced to [`EDGE`] texels along an axis at most: of the texels in a cell the largest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GridMagnitudes {
    size: [usize; 3],
    world_to_unit: Affine3A,
    values: Vec<f32>,
}

impl GridMagnitudes {
    fn of(parameter: &Parameter, gradient: &[f32]) -> Self {
        let [nx, ny, nz] = parameter.shape.size;
        let channels = parameter.shape.channels;
        let size = [nx, ny, nz].map(|n| n.min(EDGE));
        let range = |i: usize, axis: usize, n: usize| i * n / size[axis]..((i + 1) * n).div_ceil(size[axis]);
        let mut values = vec![0f32; size.iter().product()];
        values.par_chunks_mut(size[0]).enumerate().for_each(|(row, out)| {
            let (y, z) = (row % size[1], row / size[1]);
            for (x, out) in out.iter_mut().enumerate() {
                for k in range(z, 2, nz) {
                    for j in range(y, 1, ny) {
                        let at = (k * ny + j) * nx;
                        let columns = range(x, 0, nx);
                        let texels = &gradient[(at + columns.start) * channels..(at + columns.end) * channels];
                        for texel in texels.chunks_exact(channels) {
                            *out = out.max(texel.iter().map(|g| g * g).sum::<f32>().sqrt());
                        }
                    }
                }
            }
        });
        Self {
            size,
            world_to_unit: parameter.to_world.inverse(),
            values,
        }
    }

    /// The largest magnitude along the ray of each pixel.
    pub(super) fn project(&self, record: &SensorRecord, moves: Moves) -> Vec<f32> {
        let ray = camera::rays(record, moves);
        let mut largest = vec![0f32; record.width as usize * record.height as usize];
        let rows = largest.par_chunks_mut(record.width as usize).enumerate();
        rows.for_each(|(y, row)| {
            for (x, out) in row.iter_mut().enumerate() {
                let [origin, direction] = ray(x as u32, y as u32);
                *out = self.along(origin, direction);
            }
        });
        largest
    }

    /// The largest magnitude of the texels that a ray passes, looked up at steps of half a texel at most.
    fn along(&self, origin: Vec3, direction: Vec3) -> f32 {
        let origin = self.world_to_unit.transform_point3a(origin.into());
        let direction = self.world_to_unit.transform_vector3a(direction.into());
        let (mut near, mut far) = (0f32, f32::INFINITY);
        for a in 0..3 {
            let [t, u] = [0.0, 1.0].map(|side: f32| (side - origin[a]) / direction[a]);
            // For a ray that lies in the plane of a face 0 / 0 is NaN, which min and max pass over: the ray counts as
            // outside.
            near = near.max(t.min(u));
            far = far.min(t.max(u));
        }
        let size = Vec3A::from_array(self.size.map(|n| n as f32));
        let steps = ((far - near) * (direction * size).abs().max_element() * 2.0).ceil();
        if !(steps >= 1.0 && steps.is_finite()) {
            return 0.0;
        }
        let step = (far - near) / steps;
        let mut largest = 0f32;
        for i in 0..steps as usize {
            let place = (origin + direction * (near + (i as f32 + 0.5) * step)) * size;
            let texel = |a: usize| (place[a].max(0.0) as usize).min(self.size[a] - 1);
            let at = (texel(2) * self.size[1] + texel(1)) * self.size[0] + texel(0);
            largest = largest.max(self.values[at]);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Kind, Quantity, Shape};

    fn parameter(size: [usize; 3]) -> Parameter {
        Parameter {
            path: "a".into(),
            kind: Kind::Grid,
            quantity: Quantity::Extinction,
            shape: Shape { size, channels: 2 },
            to_world: Affine3A::from_translation(Vec3::new(-1.0, -1.0, 3.0)) * Affine3A::from_scale(Vec3::splat(2.0)),
            values: Vec::new(),
            tuning: None,
        }
    }

    /// One texel of a large grid, of magnitude 5, is found along the rays through it and along no other.
    #[test]
    fn the_largest_texel_of_a_ray_is_seen() {
        let size = [100, 3, 130];
        let mut gradient = vec![0.0; 2 * size.iter().product::<usize>()];
        let [x, y, z] = [73, 2, 40];
        let at = 2 * ((z * size[1] + y) * size[0] + x);
        (gradient[at], gradient[at + 1]) = (3.0, -4.0);
        let seen = GridMagnitudes::of(&parameter(size), &gradient);
        assert_eq!(seen.size, [64, 3, 64]);
        let place = |i: usize, n: usize| (i as f32 + 0.5) / n as f32;
        let world = Vec3::new(
            2.0 * place(x, size[0]) - 1.0,
            2.0 * place(y, size[1]) - 1.0,
            2.0 * place(z, size[2]) + 3.0,
        );
        for origin in [Vec3::ZERO, Vec3::new(0.3, 9.0, 4.0), world] {
            let direction = if origin == world { Vec3::Z } else { world - origin };
            assert_eq!(seen.along(origin, direction), 5.0, "{origin}");
        }
        assert_eq!(seen.along(Vec3::ZERO, world - Vec3::new(0.2, 0.0, 0.0)), 0.0);
        assert_eq!(seen.along(Vec3::ZERO, -world), 0.0, "behind");
        assert_eq!(seen.along(Vec3::new(5.0, 0.0, 0.0), Vec3::Z), 0.0, "beside");
    }

    /// Texels are found by transformed and wrapped coordinates; rows begin at v = 0.
    #[test]
    fn texels_are_found_where_they_are_seen() {
        let mut texture = parameter([3, 2, 1]);
        texture.kind = Kind::Texture;
        let mut gradient = vec![0.0; 12];
        (gradient[8], gradient[9]) = (3.0, 4.0);
        let seen = Magnitudes::of(&texture, &gradient, &[]);
        let mut on = Painted {
            surface: 0,
            to_uv: Affine2::IDENTITY,
            wrap: Wrap::Clamp,
        };
        assert_eq!(
            (
                seen.at([0.5, 0.75], &on),
                seen.at([0.5, 9.0], &on),
                seen.at([0.5, 0.25], &on)
            ),
            (5.0, 5.0, 0.0)
        );
        on.wrap = Wrap::Repeat;
        assert_eq!((seen.at([-0.5, 1.75], &on), seen.at([0.5, 1.25], &on)), (5.0, 0.0));
        on.wrap = Wrap::Mirror;
        assert_eq!(
            (
                seen.at([1.5, 1.25], &on),
                seen.at([0.5, -0.75], &on),
                seen.at([0.5, 1.75], &on)
            ),
            (5.0, 5.0, 0.0)
        );
        on.to_uv = Affine2::from_translation(Vec2::new(0.0, 0.5));
        assert_eq!(seen.at([0.5, 0.25], &on), 5.0);
    }

    #[test]
    fn splats_are_dots_where_they_stand() {
        let record = crate::resident::sensor_record(&crate::scene::Sensor {
            width: 40,
            height: 20,
            ..crate::scene::Sensor::default()
        });
        let mut points = parameter([2, 1, 1]);
        points.kind = Kind::Points;
        let Magnitudes::Points(points) = Magnitudes::of(&points, &[3.0, 4.0, 0.0, 2.0], &[0.51, 0.26, 7.0, -7.0])
        else {
            panic!("points are points");
        };
        let seen = dots(&points, &record);
        assert_eq!(seen[10 * 40 + 20], 5.0);
        assert!(seen.iter().filter(|v| **v > 0.0).count() <= 4);
    }
}
