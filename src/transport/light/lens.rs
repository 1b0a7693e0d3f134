//! Connections from points of surfaces to sensors: where a point is seen on the film, and in which direction the sensor lies.

use crate::each::EachEntry;
use crate::resident::layout::{Rows, SensorRecord, sensor};
use crate::resident::{affine, rows};
use crate::transport::rays::camera::{normalize, transform_point, transform_vector};
use crate::transport::rays::sampler::{circle, dot};

/// A sensor that points of surfaces are connected to.
#[derive(Debug, Clone, Copy)]
pub struct Lens<'a> {
    record: &'a SensorRecord,
    pub to_local: Rows,
    /// Length in the world of one unit along the viewing axis, and area in the sensor's frame of a unit of area in the world,
    /// normal to that axis; both 1 unless `to_world` scales.
    pub step: f32,
    pub share: f32,
}

/// How a sensor sees a point.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// In pixels from the film's top left corner.
    pub film: [f32; 2],
    /// From the point to the sensor.
    pub direction: [f32; 3],
    /// Length of the ray towards the sensor that must be unoccluded: up to the near clip plane.
    pub distance: f32,
    /// Film pixels per unit of area normal to `direction`.
    pub pixels: f32,
}

impl<'a> Lens<'a> {
    pub fn new(record: &'a SensorRecord) -> Self {
        let to_local = affine(&record.to_world).inverse();
        let forward = transform_vector(&record.to_world, [0.0, 0.0, 1.0]);
        let step = dot(forward, forward).sqrt();
        Self {
            record,
            to_local: rows(&to_local),
            step,
            share: to_local.matrix3.determinant().abs() * step,
        }
    }

    /// How the point `p` is seen through the point of the aperture that the uniform numbers `u` choose. None where it is not.
    pub fn look_at(&self, p: [f32; 3], u: [f32; 2]) -> Option<Sight> {
        let local = transform_point(&self.to_local, p);
        let (near, far) = (self.record.near_clip, self.record.far_clip);
        if !(near..=far).contains(&local[2]) {
            return None;
        }
        match self.record.kind {
            sensor::ORTHOGRAPHIC => Some(self.look_along(local)),
            _ => self.look_through(p, local, u),
        }
    }

    /// By parallel rays.
    fn look_along(&self, local: [f32; 3]) -> Sight {
        let forward = normalize(transform_vector(&self.record.to_world, [0.0, 0.0, 1.0]));
        let [fx, fy] = self.record.focal;
        Sight {
            film: self.film([local[0], local[1]]),
            direction: forward.each(|x| -x),
            distance: (local[2] - self.record.near_clip) * self.step,
            pixels: fx * fy * self.share,
        }
    }

    /// Through a pinhole or a lens.
    fn look_through(&self, p: [f32; 3], local: [f32; 3], u: [f32; 2]) -> Option<Sight> {
        let record = self.record;
        let (mut hole, mut focus) = ([0.0; 3], 1.0);
        if record.kind == sensor::THINLENS {
            let (radius, [x, y]) = (record.aperture_radius * u[0].sqrt(), circle(u[1]));
            (hole, focus) = ([radius * x, radius * y, 0.0], record.focus_distance);
        }
        // The ray's crossing with the plane in focus, projected onto the image plane at the distance one.
        let sharp = [0, 1].each(|a| hole[a] / focus + (local[a] - hole[a]) / local[2]);
        let from = transform_point(&record.to_world, hole);
        let to = [0, 1, 2].each(|a| from[a] - p[a]);
        let square = dot(to, to);
        if square == 0.0 {
            return None;
        }
        let distance = square.sqrt();
        let cosine = local[2] / distance;
        let [fx, fy] = record.focal;
        Some(Sight {
            film: self.film(sharp),
            direction: to.each(|x| x / distance),
            distance: distance * (1.0 - record.near_clip / local[2]),
            pixels: fx * fy / (cosine * cosine * cosine * square),
        })
    }

    /// The place on the film of a point of the image plane at the distance one.
    fn film(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        let SensorRecord { center, focal, .. } = self.record;
        [center[0] - focal[0] * x, center[1] - focal[1] * y]
    }
}
