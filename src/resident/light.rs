//! Lights, an optic and screens as light tracing reads them, and the films that look at screens.

use glam::{Affine3A, Mat3A, Vec3A};

use super::filter::profile;
use super::lamp::Lamp;
use super::layout::{self, Rows, SensorRecord};
use super::optics::{self, OpticRecord};
use super::{affine, slot};
use crate::each::EachEntry;
use crate::io::{self, IoError};
use crate::params::{ParamSet, Shape};
use crate::scene::{Optic, SPLAT_REACH, Scene, Sensor, Surface, is_light, screen_reflectance};

/// The most pixels along an axis that a splat's filter covers.
pub const MAX_TAPS: usize = 2 * SPLAT_REACH as usize + 1;

/// Nodes of a filter's table per pixel.
const NODES: f64 = 64.0;

/// An optic (a slab or a cube), the lights before it and the screens behind it, and the sensors' films.
#[derive(Debug, Clone)]
pub struct LightScene {
    /// Index in the [`ParamSet`] of the slab's heights or the cube's index of refraction.
    pub parameter: usize,
    /// Texels of this parameter along x, y and z.
    pub size: [usize; 3],
    /// The reconstruction filters of the sensors' films.
    pub filters: Vec<SplatFilter>,
    /// Pixels along x and y of the sensors' films.
    pub film_sizes: Vec<[u32; 2]>,
    /// Each light with its screen.
    pub beams: Vec<Beam>,
    /// For each sensor, the index of the beam whose screen it sees.
    pub beam_of: Vec<usize>,
}

/// A light, and the screen that it falls on behind the optic.
#[derive(Debug, Clone)]
pub struct Beam {
    pub optic: OpticRecord,
    pub lamp: Lamp,
    pub screen: ScreenRecord,
    /// Maps the screen's rectangle [-1, 1]² in z = 0 into the world.
    screen_to_world: Affine3A,
    /// The constant factors of equation (62) (docs/method.md) for one path, for each colour: the light's area, the glass's
    /// transmittance and the screen's reflectance over π.
    exposure: [f32; 3],
}

/// The screen in the optic's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScreenRecord {
    /// Maps the optic's frame into that of the screen's rectangle [-1, 1]² in z = 0.
    pub to_screen: Rows,
    /// 1 or -1: the side of z = 0 that light falls on.
    pub front: f32,
}

/// How a sensor's film sees the screen: a place (a, b) on the screen is at rows · (a, b, 1) on the film, in homogeneous
/// coordinates and pixels.
#[derive(Debug, Clone, Copy)]
pub struct Film<'a> {
    pub width: u32,
    pub height: u32,
    /// The third row is the distance along the view; (0, 0, 1) of an orthographic sensor.
    pub rows: [[f32; 3]; 3],
    /// Pixels per unit of the screen's area, times the cube of the third coordinate: |det H| / A of equation (62). 0 if the
    /// sensor does not see the lit side.
    pub pixels: f32,
    /// Nearest and farthest third coordinate that is seen.
    pub clip: [f32; 2],
    /// Constant factors of the sensor's [`Beam`], for each colour.
    pub exposure: [f32; 3],
    pub filter: &'a SplatFilter,
}

/// A reconstruction filter and its slope, tabulated at nodes from its centre outwards and interpolated by cubics.
#[derive(Debug, Clone)]
pub struct SplatFilter {
    pub radius: f32,
    /// Nodes in a pixel.
    pub nodes: f32,
    /// Value, and slope times the distance between nodes.
    pub table: Vec<[f32; 2]>,
}

impl LightScene {
    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, shapes: &[Shape]) {
        self.size = shapes[self.parameter].size;
    }

    /// The beam whose screen a sensor sees.
    pub fn beam(&self, sensor: usize) -> &Beam {
        &self.beams[self.beam_of[sensor]]
    }

    /// Whether light is bent inside of a cube, rather than by a slab.
    pub fn has_cube(&self) -> bool {
        self.beams.iter().any(|beam| matches!(beam.optic, OpticRecord::Cube(_)))
    }

    /// The film of a sensor, the `index`-th of the scene.
    pub fn film(&self, index: usize, sensor: &SensorRecord) -> Film<'_> {
        let beam = self.beam(index);
        let to_world = affine(&sensor.to_world);
        let screen = &beam.screen_to_world;
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
        let sees = if eye * beam.screen.front > 0.0 { 1.0 } else { 0.0 };
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
            exposure: beam.exposure,
            filter: &self.filters[index],
        }
    }
}

/// The scene of an integrator `ptracer`.
///
/// # Errors
/// Light and optic, or optic, screen and sensor do not face each other, or a light has no radiance.
pub(super) fn flatten(scene: &Scene, optic: &Optic, params: &ParamSet) -> io::Result<LightScene> {
    let refuse = |message: String| IoError::new(&scene.path, message);
    let parameter = slot(params, optic.array());
    let (lights, screens): (Vec<_>, Vec<_>) = scene.world.surfaces.iter().partition(|surface| is_light(surface));
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    let mut beams = Vec::new();
    let mut beam_of = Vec::new();
    for sensor in &scene.sensors {
        let screen = seen_screen(sensor, &screens).map_err(refuse)?;
        let light = light_on(screen, &screens, &lights, optic).map_err(refuse)?;
        let pair = [light, screen];
        let known = pairs.iter().position(|other| *other == pair);
        let index = match known {
            Some(index) => index,
            None => {
                beams.push(beam(optic, lights[light], screens[screen], params).map_err(refuse)?);
                pairs.push(pair);
                pairs.len() - 1
            }
        };
        beam_of.push(index);
        check_view(sensor, (optic, screens[screen]), beams[index].screen.front).map_err(refuse)?;
    }
    Ok(LightScene {
        parameter,
        size: params.parameters[parameter].shape.size,
        filters: scene.sensors.iter().map(splat_filter).collect(),
        film_sizes: scene.sensors.iter().map(|s| [s.width, s.height]).collect(),
        beams,
        beam_of,
    })
}

fn beam(optic: &Optic, light: &Surface, screen: &Surface, params: &ParamSet) -> Result<Beam, String> {
    let lamp = Lamp::of(light, params);
    if lamp.is_dark() {
        return Err(format!(
            "no light leaves `{}`: give its `radiance` a colour",
            light.name
        ));
    }
    let (record, passed) = optics::describe(optic, light)?;
    let reflectance = screen_reflectance(&screen.bsdf).expect("`ptracer` has diffuse screens");
    let area = area(&light.to_world);
    Ok(Beam {
        screen: optics::place_screen(optic, screen, &record)?,
        optic: record,
        lamp,
        screen_to_world: screen.to_world,
        exposure: [0, 1, 2].each(|c| area * reflectance[c] * passed[c] / std::f32::consts::PI),
    })
}

/// The index of the screen that a sensor's axis hits first, or of the only screen.
fn seen_screen(sensor: &Sensor, screens: &[&Surface]) -> Result<usize, String> {
    if screens.len() == 1 {
        return Ok(0);
    }
    let to_world = &sensor.to_world;
    first_met(screens, to_world.translation, to_world.matrix3.z_axis).ok_or_else(|| {
        format!(
            "`{}` looks past all screens in its middle: turn it to the one that it is to see",
            sensor.name
        )
    })
}

/// The index of the light whose normal, from its centre, would hit this screen first if the optic were not there, or of the
/// only light.
fn light_on(screen: usize, screens: &[&Surface], lights: &[&Surface], optic: &Optic) -> Result<usize, String> {
    if lights.len() == 1 {
        return Ok(0);
    }
    let shines = |light: &&Surface| first_met(screens, light.to_world.translation, normal(light)) == Some(screen);
    let found: Vec<usize> = (0..lights.len()).filter(|i| shines(&lights[*i])).collect();
    match found[..] {
        [light] => Ok(light),
        _ => Err(format!(
            "{} lights shine through `{}` straight at the screen `{}`, expected one: turn or move them",
            found.len(),
            optic.name(),
            screens[screen].name
        )),
    }
}

/// The index of the first rectangle that a ray hits.
fn first_met(rectangles: &[&Surface], origin: Vec3A, direction: Vec3A) -> Option<usize> {
    let meets = |rectangle: &&Surface| {
        let to_local = rectangle.to_world.inverse();
        let (p, d) = (
            to_local.transform_point3a(origin),
            to_local.transform_vector3a(direction),
        );
        let far = -p.z / d.z;
        let place = p + far * d;
        (far > 0.0 && place.x.abs() <= 1.0 && place.y.abs() <= 1.0).then_some(far)
    };
    let met = rectangles.iter().enumerate().filter_map(|(i, r)| Some((i, meets(r)?)));
    met.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
}

/// The area of a rectangle [-1, 1]² under a map.
pub(super) fn area(to_world: &Affine3A) -> f32 {
    4.0 * to_world.matrix3.x_axis.cross(to_world.matrix3.y_axis).length()
}

/// The unit normal of a rectangle in the world.
pub(super) fn normal(surface: &Surface) -> Vec3A {
    let normal = (surface.to_world.matrix3.inverse().transpose() * Vec3A::Z).normalize();
    if surface.flip_normals { -normal } else { normal }
}

/// Checks that a sensor sees the lit side of the screen, with the optic not in between.
fn check_view(sensor: &Sensor, (optic, screen): (&Optic, &Surface), exposed: f32) -> Result<(), String> {
    let to_screen = screen.to_world.inverse();
    let away = |p: Vec3A| to_screen.transform_point3a(p).z * exposed;
    let eye = away(sensor.to_world.translation);
    if eye <= 0.0 {
        return Err(format!(
            "`{}` looks at the dark side of the screen `{}`: put it on the side of `{}`",
            sensor.name,
            screen.name,
            optic.name()
        ));
    }
    let nearest = optics::corners(optic)
        .map(|c| away(optic.to_world().transform_point3a(c)))
        .fold(f32::INFINITY, f32::min);
    if eye >= nearest {
        return Err(format!(
            "`{}` may stand between `{}` and the screen `{}`: put the sensor nearer the screen",
            optic.name(),
            sensor.name,
            screen.name
        ));
    }
    Ok(())
}

/// The reconstruction filter of a sensor's film.
pub(super) fn splat_filter(sensor: &Sensor) -> SplatFilter {
    let filter = sensor.filter;
    let radius = f64::from(filter.radius());
    let step = 1.0 / NODES;
    let value = |x: f64| profile(filter, x.clamp(0.0, radius));
    // Differences are taken within one half of the filter, since the slope may jump at its centre.
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
        // A node beyond the radius continues linearly, for the cubic that the radius cuts.
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
