//! Cameras that a run refines: their places and lenses for the values of `views.poses`, `views.focal` and
//! `views.distortion`, and the derivatives by these from the sums over a view's rays.
//!
//! With M the axes and o the place of a camera in the file, ω and t the six numbers of its pose, s the unit of length and p
//! the pivot, its axes are M exp(ω) and its place is o + M (p - exp(ω) p + s t) (docs/method.md, section 22).

use glam::{Affine3A, DMat3, DVec3, Mat3A, Vec3A};

use super::layout::{NONE, SensorRecord, distortion};
use super::{Resident, rows};
use crate::each::EachEntry;
use crate::io;
use crate::params::{ParamSet, Quantity};
use crate::scene::{Distortion, Scene};

/// Number of sums over a view's rays: a torque and a force along the camera's own axes, then the derivatives by the
/// logarithm of its focal lengths and by its first radial coefficient.
pub const SUMS: usize = 8;

/// The sensors of a scene as parameters.
#[derive(Debug, Clone)]
pub struct Views {
    /// Parameters of poses, of the logarithm of a factor on focal lengths, and of the offset to the first radial
    /// coefficient; [`NONE`] for what stays as in the file.
    pub poses: u32,
    pub focal: u32,
    pub distortion: u32,
    /// The scene's sensors as the file has them.
    rest: Vec<SensorRecord>,
    /// World units in a unit of a pose's translation: the mean distance of the cameras from the field's centre.
    pub unit: f64,
    /// Takes the field's cube to the world.
    field_to_world: Affine3A,
    /// Pairs (follower, sensor): a record behind those of the scene's sensors that has pose and lens of one of these.
    followers: Vec<(u32, u32)>,
}

impl Views {
    /// The views of a scene, if a run changes any part of them; `sensors` are their records.
    pub(super) fn new(scene: &Scene, sensors: &[SensorRecord], params: &ParamSet) -> Option<Self> {
        let field = scene.field.as_ref()?;
        let slot = |quantity| {
            let part = scene.views.iter().find(|part| part.quantity == quantity);
            part.map_or(NONE, |part| super::slot(params, &part.array) as u32)
        };
        let center = field.to_world.translation;
        let distance = |record: &SensorRecord| f64::from((place(record) - center).length());
        let unit = sensors.iter().map(distance).sum::<f64>() / sensors.len().max(1) as f64;
        (!scene.views.is_empty()).then(|| Self {
            poses: slot(Quantity::Pose),
            focal: slot(Quantity::Zoom),
            distortion: slot(Quantity::Radial),
            rest: sensors.to_vec(),
            unit: if unit > 0.0 { unit } else { 1.0 },
            field_to_world: field.to_world,
            followers: Vec::new(),
        })
    }

    /// Whether a run changes any part of the views.
    pub fn are_wanted(&self, params: &ParamSet) -> bool {
        let tuned = |slot: u32| slot != NONE && params.parameters[slot as usize].tuning.is_some();
        self.slots().into_iter().any(tuned)
    }

    /// The parameters of poses, focal lengths and lenses; [`NONE`] for what stays as in the file.
    pub fn slots(&self) -> [u32; 3] {
        [self.poses, self.focal, self.distortion]
    }

    /// A sensor of the scene as the file has it.
    pub fn rest(&self, sensor: usize) -> Option<&SensorRecord> {
        self.rest.get(sensor)
    }

    /// Number of the scene's sensors.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether the scene has no sensors.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.rest[..])
    }

    /// Gives the record `follower`, behind those of the scene's sensors, the pose and lens of `sensor`.
    pub fn follow(&mut self, follower: u32, sensor: u32) {
        self.followers.push((follower, sensor));
    }

    /// Replaces the place in the file from which a camera's pose moves it.
    pub fn rest_at(&mut self, sensor: usize, record: &SensorRecord) {
        self.rest[sensor].to_world = record.to_world;
    }

    /// Sets the cameras' places and lenses for the values of `params`.
    pub fn place(&self, params: &ParamSet, sensors: &mut [SensorRecord]) {
        let followed = self
            .followers
            .iter()
            .map(|&(record, of)| (record as usize, of as usize));
        for (record, of) in (0..self.rest.len()).map(|i| (i, i)).chain(followed) {
            let (rest, record) = (&self.rest[of], &mut sensors[record]);
            if let Some(pose) = self.pose(params, of) {
                let (axes, origin) = self.axes_and_place(rest, &pose);
                let to_world = Affine3A {
                    matrix3: Mat3A::from_cols(axes.x_axis.as_vec3a(), axes.y_axis.as_vec3a(), axes.z_axis.as_vec3a()),
                    translation: origin.as_vec3a(),
                };
                record.to_world = rows(&to_world);
            }
            if let Some(zoom) = number(params, self.focal) {
                record.focal = rest.focal.each(|focal| (f64::from(focal) * zoom.exp()) as f32);
            }
            if let Some(added) = number(params, self.distortion) {
                record.distortion_model = distortion::BROWN;
                record.distortion[0] = (f64::from(rest.distortion[0]) + added) as f32;
            }
        }
    }

    /// The six numbers of a view's pose; None if poses are no parameter.
    fn pose(&self, params: &ParamSet, view: usize) -> Option<[f64; 6]> {
        let values = &params.parameters.get(self.poses as usize)?.values;
        values.as_chunks::<6>().0.get(view).map(|pose| pose.each(f64::from))
    }

    fn axes_and_place(&self, rest: &SensorRecord, pose: &[f64; 6]) -> (DMat3, DVec3) {
        let [a, b, c, x, y, z] = *pose;
        let (axes, pivot) = (axes(rest), DVec3::new(0.0, 0.0, self.pivot(rest)));
        let turn = rotation(DVec3::new(a, b, c));
        let shift = pivot - turn * pivot + self.unit * DVec3::new(x, y, z);
        (axes * turn, place(rest).as_dvec3() + axes * shift)
    }

    /// How far ahead of a camera the point is about which its pose turns it: where its axis passes the field's centre
    /// nearest; 0 for a camera that looks away, or that stands in the field's cube and sees it at all distances.
    pub fn pivot(&self, rest: &SensorRecord) -> f64 {
        let (ahead, place) = (axes(rest).z_axis, place(rest));
        if is_within(&self.field_to_world, place) {
            return 0.0;
        }
        let center = self.field_to_world.translation;
        ahead.dot((center - place).as_dvec3()).max(0.0)
    }

    /// The derivatives by the parameters, from the sums of each view: those of [`Self::poses`], then by the two numbers that
    /// all views share.
    pub fn derivatives(&self, params: &ParamSet, sums: &[[f64; SUMS]]) -> (Vec<[f64; 6]>, [f64; 2]) {
        let mut shared = [0.0; 2];
        let mut poses = vec![[0.0; 6]; self.rest.len()];
        for (view, (sum, of)) in sums.iter().zip(&mut poses).enumerate() {
            let [a, b, c, x, y, z, zoom, radial] = *sum;
            shared = [shared[0] + zoom, shared[1] + radial];
            let turn = self
                .pose(params, view)
                .map_or(DVec3::ZERO, |p| DVec3::new(p[0], p[1], p[2]));
            let force = DVec3::new(x, y, z);
            let pivot = DVec3::new(0.0, 0.0, self.pivot(&self.rest[view]));
            let torque = turn_derivative(turn, DVec3::new(a, b, c) + force.cross(pivot));
            let force = self.unit * (rotation(turn) * force);
            *of = [torque.x, torque.y, torque.z, force.x, force.y, force.z];
        }
        (poses, shared)
    }
}

/// Writes the places and lenses of cameras for the values of `params` into the scene, and removes its `views`.
///
/// # Errors
/// The scene cannot be flattened.
pub fn bake(scene: &mut Scene, params: &ParamSet) -> io::Result<()> {
    if scene.views.is_empty() {
        return Ok(());
    }
    let (mut resident, _) = Resident::new(scene)?;
    resident.place_views(params);
    for (sensor, record) in scene.sensors.iter_mut().zip(&resident.sensors) {
        let axes = axes(record);
        sensor.to_world = Affine3A {
            matrix3: Mat3A::from_cols(axes.x_axis.as_vec3a(), axes.y_axis.as_vec3a(), axes.z_axis.as_vec3a()),
            translation: place(record),
        };
        sensor.focal = record.focal;
        if record.distortion_model == distortion::BROWN {
            let [k1, k2, k3, _, p1, p2, ..] = record.distortion;
            sensor.distortion = Distortion::Brown {
                k: [k1, k2, k3],
                p: [p1, p2],
            };
        }
    }
    scene.views.clear();
    Ok(())
}

/// The one number of a parameter, if there is such a parameter.
fn number(params: &ParamSet, slot: u32) -> Option<f64> {
    params.parameters.get(slot as usize).map(|p| f64::from(p.values[0]))
}

/// Whether a place is in the cube [-1, 1]³ under the map `to_world`.
pub fn is_within(to_world: &Affine3A, place: Vec3A) -> bool {
    to_world.inverse().transform_point3a(place).abs().max_element() <= 1.0
}

/// Where a camera stands.
pub fn place(record: &SensorRecord) -> Vec3A {
    let m = &record.to_world;
    Vec3A::new(m[0][3], m[1][3], m[2][3])
}

/// The axes of a camera, column by column.
pub fn axes(record: &SensorRecord) -> DMat3 {
    let m = record.to_world.each(|row| row.each(f64::from));
    let column = |i: usize| DVec3::new(m[0][i], m[1][i], m[2][i]);
    DMat3::from_cols(column(0), column(1), column(2))
}

/// The rotation of a rotation vector: about its direction, by its length in radians.
pub fn rotation(vector: DVec3) -> DMat3 {
    match vector.length() {
        0.0 => DMat3::IDENTITY,
        angle => DMat3::from_axis_angle(vector / angle, angle),
    }
}

/// The derivative by a rotation vector, from a torque in the turned frame: the transpose of the right Jacobian of the
/// exponential map.
fn turn_derivative(turn: DVec3, torque: DVec3) -> DVec3 {
    let square = turn.length_squared();
    let angle = square.sqrt();
    // Both quotients by their series where the closed forms lose digits.
    let (a, b) = match square {
        s if s < 1e-4 => (0.5 - s / 24.0, 1.0 / 6.0 - s / 120.0),
        s => ((1.0 - angle.cos()) / s, (angle - angle.sin()) / (s * angle)),
    };
    let first = turn.cross(torque);
    torque + a * first + b * turn.cross(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// exp(ω + s e) = exp(ω) exp(s J e) to first order, so that τ · J e is the derivative of any function whose torque in
    /// the turned frame is τ; of f = v · exp(ω) w it is w × exp(ω)ᵀ v.
    #[test]
    fn torques_become_derivatives_by_the_rotation_vector() {
        let (v, w) = (DVec3::new(0.3, -1.2, 0.7), DVec3::new(-0.4, 0.9, 1.1));
        for turn in [DVec3::ZERO, DVec3::new(3e-3, -2e-3, 8e-3), DVec3::new(0.6, -0.9, 1.3)] {
            let torque = w.cross(rotation(turn).transpose() * v);
            let found = turn_derivative(turn, torque);
            for axis in 0..3 {
                let along = |s: f64| v.dot(rotation(turn + s * DVec3::AXES[axis]) * w);
                let (h, k) = (1e-3, 5e-4);
                let coarse = (along(h) - along(-h)) / (2.0 * h);
                let fine = (along(k) - along(-k)) / (2.0 * k);
                let expected = (4.0 * fine - coarse) / 3.0;
                assert!(
                    (found[axis] - expected).abs() < 1e-10,
                    "{turn} {axis}: {found} {expected}"
                );
            }
        }
    }
}
