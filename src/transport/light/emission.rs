//! Emission: rays drawn from the scene's lights, with the power that they carry.

use std::f32::consts::PI;

use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, light};
use crate::resident::tracer::LightTracer;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::{normalize, transform_point};
use crate::transport::rays::sampler::{Sampler, along, around, circle, frame};
use crate::transport::scene::area_light::sample_place;
use crate::transport::scene::light::{BELOW_ONE, choose_light, light_value, picture_uv, sample_envmap, spot_falloff};
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::shape::SurfacePoint;
use crate::transport::scene::sky::sky_value;

/// A ray of light.
#[derive(Debug, Clone, Copy)]
pub struct Emission {
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    /// Power of the ray, divided by its pdf.
    pub power: Rgb<f32>,
}

/// Distance from an area light to the origins of its rays, as a share of the largest magnitude among the coordinates of the
/// point and the row sums of the magnitudes of its shape's `to_world`.
const CLEARANCE: f32 = 32.0 * f32::EPSILON;

/// Draws a ray of light from any of the scene's emitters. None where there is no light.
pub fn emit<F: Fields<f32>>(
    scene: &SceneView,
    fields: &F,
    tracer: &LightTracer,
    sampler: &mut Sampler,
) -> Option<Emission> {
    let lights = scene.settings.lights;
    let mut u = sampler.draw();
    let mut choices = 1.0;
    // A constant background has no record among the lights: it is chosen as if it were one light more.
    if scene.has_background() && scene.settings.environment == NONE {
        let share = 1.0 / (lights + 1) as f32;
        if u < share {
            let direction = sphere([sampler.draw(), sampler.draw()]);
            let radiance = sky_value(scene, fields, direction.each(|x| -x));
            return Some(from_afar(tracer, direction, radiance * (4.0 * PI / share), sampler));
        }
        u = ((u - share) / (1.0 - share)).min(BELOW_ONE);
        choices = 1.0 / (1.0 - share);
    }
    if lights == 0 {
        return None;
    }
    let (index, of_lights) = choose_light(scene, u);
    let emission = emit_light(scene, fields, tracer, &scene.lights[index as usize], sampler)?;
    Some(Emission {
        power: emission.power * (choices * of_lights),
        ..emission
    })
}

/// Draws a ray of a light.
fn emit_light<F: Fields<f32>>(
    scene: &SceneView,
    fields: &F,
    tracer: &LightTracer,
    record: &LightRecord,
    sampler: &mut Sampler,
) -> Option<Emission> {
    let u = [sampler.draw(), sampler.draw()];
    let value = |uv| light_value(scene, fields, record, &SurfacePoint::new([0.0; 3], uv));
    let origin = [record.position[0], record.position[1], record.position[2]];
    let axis = [record.direction[0], record.direction[1], record.direction[2]];
    match record.kind {
        light::POINT => Some(Emission {
            origin,
            direction: sphere(u),
            power: value([0.0; 2]) * (4.0 * PI),
        }),
        light::SPOT => {
            let height = 1.0 - record.direction[3];
            let direction = around(axis, 1.0 - u[0] * height, u[1]);
            let uv = match record.texture {
                NONE => [0.0; 2],
                _ => picture_uv(
                    record,
                    transform_point(&record.to_local, along(origin, direction, 1.0)),
                    0.5,
                ),
            };
            let falloff = spot_falloff(record, direction.each(|x| -x)).0;
            Some(Emission {
                origin,
                direction,
                power: value(uv) * (falloff * 2.0 * PI * height),
            })
        }
        light::PROJECTOR => {
            // A point of the picture at the distance one; the frame is orthonormal.
            let local = [0, 1].each(|a| (1.0 - 2.0 * u[a]) * record.extent[a]);
            let m = &record.to_local;
            let direction = [0, 1, 2].each(|a| m[0][a] * local[0] + m[1][a] * local[1] + m[2][a]);
            Some(Emission {
                origin,
                direction: normalize(direction),
                power: value(u) * (4.0 * PI * record.extent[0] * record.extent[1]),
            })
        }
        light::DIRECTIONAL => Some(from_afar(tracer, axis, value([0.0; 2]), sampler)),
        light::ENVMAP => {
            let drawn = sample_envmap(scene, u)?;
            let radiance = sky_value(scene, fields, drawn.direction);
            let direction = drawn.direction.each(|x| -x);
            Some(from_afar(tracer, direction, radiance * drawn.weight, sampler))
        }
        kind => {
            let place = sample_place(scene, record, u, sampler);
            let radiance = light_value(scene, fields, record, &place.point);
            let (direction, solid_angle) = match kind {
                light::COLLIMATED => (place.normal, 1.0),
                _ => (around(place.normal, (1.0 - sampler.draw()).sqrt(), sampler.draw()), PI),
            };
            let m = &scene.surfaces[record.surface as usize].to_world;
            let mut size = 0.0f32;
            for a in 0..3 {
                let of_frame = m[a].iter().fold(0.0, |sum, x| sum + x.abs());
                size = size.max(of_frame).max(place.point.p[a].abs());
            }
            Some(Emission {
                origin: along(place.point.p, place.normal, CLEARANCE * size),
                direction,
                power: radiance * (solid_angle * place.area),
            })
        }
    }
}

/// A ray from outside of the scene along `direction`, through a uniform point of the disc across the sphere around all
/// surfaces. `irradiance` is that of a plane normal to `direction`.
fn from_afar(tracer: &LightTracer, direction: [f32; 3], irradiance: Rgb<f32>, sampler: &mut Sampler) -> Emission {
    let (center, radius) = (tracer.center, tracer.radius);
    let (across, [x, y]) = (radius * sampler.draw().sqrt(), circle(sampler.draw()));
    let (s, t) = frame(direction);
    let place = along(along(center, s, across * x), t, across * y);
    Emission {
        origin: along(place, direction, -radius),
        direction,
        power: irradiance * (PI * radius * radius),
    }
}

/// A uniform direction.
fn sphere(u: [f32; 2]) -> [f32; 3] {
    let z = 1.0 - 2.0 * u[0];
    let r = (1.0 - z * z).max(0.0).sqrt();
    let [x, y] = circle(u[1]);
    [r * x, r * y, z]
}
