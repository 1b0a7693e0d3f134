//! A light, a slab of glass and a screen as light tracing reads them: in the slab's own frame, in which its flat side is the
//! plane z = -thickness and light travels upwards.

use glam::{Affine2, Affine3A, Mat3A, Vec2, Vec3A};

use super::filter::profile;
use super::layout::{self, Rows, SensorRecord};
use super::{rows, slot};
use crate::each::EachEntry;
use crate::io::{self, IoError};
use crate::params::{ParamSet, Parameter, Shape};
use crate::scene::{Bsdf, SPLAT_REACH, Scene, Sensor, Slab, Surface, Texture, Wrap, screen_reflectance};

/// The most pixels along an axis that a filter reaches from a place on the film.
pub const MAX_TAPS: usize = 2 * SPLAT_REACH as usize + 1;

/// Nodes of a filter's table in a pixel.
const NODES: f64 = 64.0;

/// Light, slab, screen and films.
#[derive(Debug, Clone)]
pub struct LightScene {
    /// Index of the heights in the [`ParamSet`].
    pub heights: usize,
    /// Texels of the heights along x and y.
    pub size: [usize; 2],
    pub slab: SlabRecord,
    pub lamp: Lamp,
    pub screen: ScreenRecord,
    /// Those of the sensors' films.
    pub filters: Vec<SplatFilter>,
    /// Pixels along x and y of the sensors' films.
    pub film_sizes: Vec<[u32; 2]>,
    /// The screen's rectangle [-1, 1]² in z = 0 into the world.
    screen_to_world: Affine3A,
    /// Factor from radiance of the light and share of light that arrives to the sum of all pixels, for each colour, where
    /// one path is traced.
    exposure: [f32; 3],
}

/// The slab in its own frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlabRecord {
    pub thickness: f32,
    /// Index inside over that outside.
    pub eta: f32,
    /// Where a ray from the light's place (0, 0) meets the plane of the flat side, and by how much that place moves along
    /// both axes of the light: x and y.
    pub entry: [[f32; 2]; 3],
    /// Unit direction of light before the slab, and in it.
    pub outside: [f32; 3],
    pub inside: [f32; 3],
    /// Share of light that gets through the flat side.
    pub entering: f32,
}

/// The light: what each place of it sends out.
#[derive(Debug, Clone)]
pub struct Lamp {
    /// Colours, row after row.
    texels: Vec<[f32; 3]>,
    size: [usize; 2],
    nearest: bool,
    wrap: Wrap,
    to_uv: Affine2,
}

/// The screen in the slab's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScreenRecord {
    /// The slab's frame into that of the rectangle [-1, 1]² in z = 0.
    pub to_screen: Rows,
    /// 1 or -1: the side of z = 0 that light falls on.
    pub front: f32,
}

/// The film of a sensor as the screen's image: homogeneous coordinates of the pixel that a place (a, b) of the screen is
/// seen in are rows · (a, b, 1).
#[derive(Debug, Clone, Copy)]
pub struct Film<'a> {
    pub width: u32,
    pub height: u32,
    /// The third row is the distance along the view; (0, 0, 1) of an orthographic sensor.
    pub rows: [[f32; 3]; 3],
    /// Pixels in a unit of the screen's area, times the third coordinate's cube; 0 of a sensor that does not see the side that light
    /// falls on.
    pub pixels: f32,
    /// Nearest and farthest third coordinate that is seen.
    pub clip: [f32; 2],
    /// As of the scene.
    pub exposure: [f32; 3],
    pub filter: &'a SplatFilter,
}

/// A reconstruction filter with its slope, in nodes from its centre outwards, joined by cubics.
#[derive(Debug, Clone)]
pub struct SplatFilter {
    pub radius: f32,
    /// Nodes in a pixel.
    pub nodes: f32,
    /// Value, and slope times the distance of two nodes.
    pub table: Vec<[f32; 2]>,
}

impl LightScene {
    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, shapes: &[Shape]) {
        let [width, height, _] = shapes[self.heights].size;
        self.size = [width, height];
    }

    /// The film of a sensor, the `index`-th of the scene.
    pub fn film(&self, index: usize, sensor: &SensorRecord) -> Film<'_> {
        let to_world = affine(&sensor.to_world);
        let screen = &self.screen_to_world;
        let to_camera = to_world.inverse();
        let at = to_camera.transform_point3a(screen.translation);
        let [a, b] = [screen.matrix3.x_axis, screen.matrix3.y_axis].each(|axis| to_camera.transform_vector3a(axis));
        let is_pinhole = sensor.kind == layout::sensor::PERSPECTIVE;
        let depth = if is_pinhole { [a.z, b.z, at.z] } else { [0.0, 0.0, 1.0] };
        // +X is left and +Y up.
        let row = |focal: f32, center: f32, of: [f32; 3]| [0, 1, 2].each(|i| center * depth[i] - focal * of[i]);
        let rows = [
            row(sensor.focal[0], sensor.center[0], [a.x, b.x, at.x]),
            row(sensor.focal[1], sensor.center[1], [a.y, b.y, at.y]),
            depth,
        ];
        let matrix = Mat3A::from_cols(rows[0].into(), rows[1].into(), rows[2].into());
        let eye = screen.inverse().transform_point3a(to_world.translation).z;
        let sees = if eye * self.screen.front > 0.0 { 1.0 } else { 0.0 };
        Film {
            width: sensor.width,
            height: sensor.height,
            rows,
            pixels: sees * matrix.determinant().abs() / (0.25 * area(screen)),
            clip: if is_pinhole {
                [sensor.near_clip, sensor.far_clip]
            } else {
                [0.0, f32::INFINITY]
            },
            exposure: self.exposure,
            filter: &self.filters[index],
        }
    }
}

/// The map of these rows.
fn affine(rows: &Rows) -> Affine3A {
    let column = |i: usize| Vec3A::new(rows[0][i], rows[1][i], rows[2][i]);
    Affine3A {
        matrix3: Mat3A::from_cols(column(0), column(1), column(2)),
        translation: column(3),
    }
}

/// The scene of an integrator `ptracer`.
///
/// # Errors
/// Light and slab, or slab, screen and sensor do not face each other, or the light is dark.
pub(super) fn flatten(scene: &Scene, slab: &Slab, params: &ParamSet) -> io::Result<LightScene> {
    let refuse = |message: String| IoError::new(&scene.path, message);
    let heights = slot(params, &slab.heights);
    let is_light = |surface: &&Surface| surface.emitter.as_ref().is_some_and(|emitter| emitter.directional);
    let all = &scene.world.surfaces;
    let light = all.iter().find(is_light).expect("`ptracer` has one light");
    let screen = all.iter().find(|s| !is_light(s)).expect("`ptracer` has one screen");
    let lamp = lamp(light, params);
    if lamp.texels.iter().flatten().all(|x| *x == 0.0) {
        return Err(refuse(format!(
            "no light leaves `{}`: give its `radiance` a colour",
            light.name
        )));
    }
    let record = describe(slab, light).map_err(refuse)?;
    let (screen_record, exposed) = place_screen(slab, screen, &record).map_err(refuse)?;
    let reflectance = screen_reflectance(&screen.bsdf).expect("`ptracer` has a diffuse screen");
    let area = area(&light.to_world);
    let exposure = [0, 1, 2]
        .each(|c| area * reflectance[c] * slab.transmittance[c] * slab.transmittance[c] / std::f32::consts::PI);
    for sensor in &scene.sensors {
        check_view(sensor, (slab, screen), exposed).map_err(refuse)?;
    }
    let [width, height, _] = params.parameters[heights].shape.size;
    Ok(LightScene {
        heights,
        size: [width, height],
        slab: record,
        lamp,
        screen: screen_record,
        filters: scene.sensors.iter().map(splat_filter).collect(),
        film_sizes: scene.sensors.iter().map(|s| [s.width, s.height]).collect(),
        screen_to_world: screen.to_world,
        exposure,
    })
}

/// The first height that is no number, or beyond the other side of the slab, in words.
pub(super) fn crossing(slab: &Slab, parameter: &Parameter) -> Option<String> {
    let crosses = |v: &f32| !v.is_finite() || *v <= -slab.thickness;
    let at = parameter.values.iter().position(crosses)?;
    let width = parameter.shape.size[0];
    Some(format!(
        "texel x={} y={} of `{}` is {}, beyond the slab's other side at {}: raise it, or give a larger `thickness`",
        at % width,
        at / width,
        parameter.path,
        parameter.values[at],
        -slab.thickness
    ))
}

/// The area of a rectangle [-1, 1]² under a map.
fn area(to_world: &Affine3A) -> f32 {
    4.0 * to_world.matrix3.x_axis.cross(to_world.matrix3.y_axis).length()
}

/// The unit normal of a rectangle in the world.
fn normal(surface: &Surface) -> Vec3A {
    let normal = (surface.to_world.matrix3.inverse().transpose() * Vec3A::Z).normalize();
    if surface.flip_normals { -normal } else { normal }
}

/// The share of light that gets through a smooth side; cosines on both sides, index over index.
fn passed(eta: f32, cos_i: f32, cos_t: f32) -> f32 {
    let s = (cos_i - eta * cos_t) / (cos_i + eta * cos_t);
    let p = (eta * cos_i - cos_t) / (eta * cos_i + cos_t);
    1.0 - 0.5 * (s * s + p * p)
}

fn describe(slab: &Slab, light: &Surface) -> Result<SlabRecord, String> {
    let to_slab = slab.to_world.inverse();
    let direction = to_slab.transform_vector3a(normal(light)).normalize();
    let [u, v] = [light.to_world.matrix3.x_axis, light.to_world.matrix3.y_axis].each(|axis| 2.0 * axis);
    let corner = to_slab.transform_point3a(light.to_world.translation - 0.5 * (u + v));
    let [u, v] = [u, v].each(|axis| to_slab.transform_vector3a(axis));
    let highest = [Vec3A::ZERO, u, v, u + v].each(|edge| (corner + edge).z);
    if direction.z <= 0.0 || highest.iter().any(|z| *z > -slab.thickness) {
        return Err(format!(
            "light of `{}` does not reach the flat side of `{}`, z = -thickness in its own frame, from outside: turn one of them",
            light.name, slab.name
        ));
    }
    // Along the direction onto the plane of the flat side.
    let project = |p: Vec3A, z: f32| {
        Vec2::new(
            p.x - direction.x / direction.z * (p.z - z),
            p.y - direction.y / direction.z * (p.z - z),
        )
    };
    let entry = [project(corner, -slab.thickness), project(u, 0.0), project(v, 0.0)];
    let across = Vec2::new(direction.x, direction.y) / slab.eta;
    let inside = across.extend((1.0 - across.length_squared()).sqrt());
    Ok(SlabRecord {
        thickness: slab.thickness,
        eta: slab.eta,
        entry: entry.each(|p| p.to_array()),
        outside: direction.to_array(),
        inside: inside.to_array(),
        entering: passed(slab.eta, direction.z, inside.z),
    })
}

/// The screen, and the side of it, as a sign along its z axis, that light falls on.
fn place_screen(slab: &Slab, screen: &Surface, record: &SlabRecord) -> Result<(ScreenRecord, f32), String> {
    let to_screen = screen.to_world.inverse() * slab.to_world;
    let arriving = to_screen.transform_vector3a(Vec3A::from_array(record.inside)).z;
    let above = to_screen.transform_point3a(Vec3A::ZERO).z;
    if arriving * above >= 0.0 {
        return Err(format!(
            "light from `{}` does not reach the screen `{}`: put that behind the slab's side of heights",
            slab.name, screen.name
        ));
    }
    let exposed = above.signum();
    let front = match screen.bsdf {
        Bsdf::TwoSided { .. } => 0.0,
        _ if screen.flip_normals => -1.0,
        _ => 1.0,
    };
    if front * exposed < 0.0 {
        return Err(format!(
            "the screen `{}` turns its back to the slab `{}`: turn it, or make its BSDF `twosided`",
            screen.name, slab.name
        ));
    }
    let record = ScreenRecord {
        to_screen: rows(&to_screen),
        front: exposed,
    };
    Ok((record, exposed))
}

/// Whether a sensor sees the side of the screen that light falls on, past the slab.
fn check_view(sensor: &Sensor, (slab, screen): (&Slab, &Surface), exposed: f32) -> Result<(), String> {
    let to_screen = screen.to_world.inverse();
    let away = |p: Vec3A| to_screen.transform_point3a(p).z * exposed;
    let eye = away(sensor.to_world.translation);
    if eye <= 0.0 {
        return Err(format!(
            "`{}` looks at the dark side of the screen `{}`: put it on the side of the slab",
            sensor.name, screen.name
        ));
    }
    let corners = (0..8).map(|i| {
        Vec3A::new(
            ((i & 1) * 2 - 1) as f32,
            ((i & 2) - 1) as f32,
            if i < 4 { 0.0 } else { -slab.thickness },
        )
    });
    let nearest = corners
        .map(|c| away(slab.to_world.transform_point3a(c)))
        .fold(f32::INFINITY, f32::min);
    if eye >= nearest {
        return Err(format!(
            "the slab `{}` may stand between `{}` and the screen `{}`: put the sensor nearer the screen",
            slab.name, sensor.name, screen.name
        ));
    }
    Ok(())
}

fn splat_filter(sensor: &Sensor) -> SplatFilter {
    let filter = sensor.filter;
    let radius = f64::from(filter.radius());
    let step = 1.0 / NODES;
    let value = |x: f64| profile(filter, x.clamp(0.0, radius));
    // Within the filter's half, so that the slopes of both halves may differ at its centre.
    let h = 1e-4f64.min(0.01 * radius);
    let slope = |x: f64| {
        if x < h {
            (-3.0 * value(x) + 4.0 * value(x + h) - value(x + 2.0 * h)) / (2.0 * h)
        } else if x > radius - h {
            (3.0 * value(x) - 4.0 * value(x - h) + value(x - 2.0 * h)) / (2.0 * h)
        } else {
            (value(x + h) - value(x - h)) / (2.0 * h)
        }
    };
    let count = (radius * NODES).ceil() as usize + 2;
    let table = (0..count).map(|i| {
        let x = i as f64 * step;
        // Beyond the rim the last cubic goes on.
        let past = (x - radius).max(0.0);
        let at = x.min(radius);
        [(value(at) + slope(at) * past) as f32, (slope(at) * step) as f32]
    });
    SplatFilter {
        radius: filter.radius(),
        nodes: NODES as f32,
        table: table.collect(),
    }
}

fn lamp(light: &Surface, params: &ParamSet) -> Lamp {
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
            Lamp {
                texels,
                size,
                nearest: map.nearest,
                wrap: map.wrap,
                to_uv: map.to_uv,
            }
        }
        Texture::Constant(array) => Lamp {
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
            Lamp {
                texels: vec![first, second, second, first],
                size: [2, 2],
                nearest: true,
                wrap: Wrap::Repeat,
                to_uv: *to_uv,
            }
        }
        Texture::Attribute(_) | Texture::Volume { .. } => unreachable!("a rectangle's emitter has none"),
    }
}

impl Lamp {
    /// What leaves the place (u, v) of the light.
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
