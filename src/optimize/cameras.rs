//! Refined cameras: the similarity from the original to the refined ones, the distances that it leaves between both, and
//! the refinement of held-out cameras.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use glam::{Affine3A, DMat3, DQuat, DVec3};
use serde::Serialize;

use super::schedule::rate_factor;
use crate::device::{ArrayKind, Batch, Device, Keys, Step};
use crate::kernels::optimizer::Optimizer;
use crate::output::progress::Progress;
use crate::params::{ParamSet, Quantity, Tuning};
use crate::resident::layout::SensorRecord;
use crate::resident::views::is_within;
use crate::resident::{Resident, rows, sensor_record};
use crate::scene::{Decay, Loss, Optimize, Scene, Schedule};
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key};

/// Rays of an iteration that refines held-out cameras.
const RAYS: u32 = 8192;

/// Gauss-Newton steps of [`Similarity::by_sight`], which begins near its solution.
const SIGHT_STEPS: usize = 8;

/// A camera's axes, one a column, and its place, both in the world.
type Pose = (DMat3, DVec3);

/// The map x → scale · rotation · x + shift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    rotation: DMat3,
    scale: f64,
    shift: DVec3,
}

impl Similarity {
    /// The similarity that takes cameras `from` as near as possible to cameras `to`, in least squares over their axes and
    /// over their places about the mean in units of their spread (Horn1987, with the axes besides).
    pub fn between(from: &[Pose], to: &[Pose]) -> Self {
        let count = from.len().max(1) as f64;
        let mean = |poses: &[Pose]| poses.iter().map(|(_, place)| *place).sum::<DVec3>() / count;
        let means = [mean(from), mean(to)];
        let spread = |poses: &[Pose], mean: DVec3| {
            let sum: f64 = poses.iter().map(|(_, place)| (*place - mean).length_squared()).sum();
            (sum / count).sqrt()
        };
        let spreads = [spread(from, means[0]), spread(to, means[1])];
        let has_extent = spreads.iter().all(|s| *s > 1e-9);
        let mut product = DMat3::ZERO;
        for ((axes, place), (other_axes, other_place)) in from.iter().zip(to) {
            for k in 0..3 {
                product += outer(other_axes.col(k), axes.col(k));
            }
            if has_extent {
                let [a, b] = [(*place - means[0]) / spreads[0], (*other_place - means[1]) / spreads[1]];
                product += 3.0 * outer(b, a);
            }
        }
        let rotation = nearest_rotation(product);
        let scale = if has_extent { spreads[1] / spreads[0] } else { 1.0 };
        Self {
            rotation,
            scale,
            shift: means[1] - scale * (rotation * means[0]),
        }
    }

    /// This similarity, changed so that cameras `to` see the transformed `points`, as nearly as possible, where cameras
    /// `from` see `points`: in least squares on image planes at a distance of one, by Gauss-Newton steps. Distances
    /// between cameras do not determine it, since a camera that is both turned and moved may see nearly the same.
    fn by_sight(mut self, from: &[Pose], to: &[Pose], points: &[DVec3]) -> Self {
        for _ in 0..SIGHT_STEPS {
            let (mut matrix, mut right) = ([[0.0; 7]; 7], [0.0; 7]);
            for (seen, camera) in from.iter().zip(to) {
                for point in points {
                    let turned = self.scale * (self.rotation * *point);
                    let (Some(expected), Some(found)) = (sight(seen, *point), sight(camera, turned + self.shift))
                    else {
                        continue;
                    };
                    let depth = camera.0.z_axis.dot(turned + self.shift - camera.1);
                    for (axis, place, expected) in [
                        (camera.0.x_axis, found.0, expected.0),
                        (camera.0.y_axis, found.1, expected.1),
                    ] {
                        let by_point = (axis - place * camera.0.z_axis) / depth;
                        let by_turn = turned.cross(by_point);
                        let [x, y, z] = by_point.to_array();
                        let row = [by_turn.x, by_turn.y, by_turn.z, by_point.dot(turned), x, y, z];
                        for i in 0..7 {
                            right[i] += row[i] * (expected - place);
                            (0..7).for_each(|j| matrix[i][j] += row[i] * row[j]);
                        }
                    }
                }
            }
            let Some([a, b, c, scale, x, y, z]) = solve(matrix, right) else {
                break;
            };
            self.rotation = DMat3::from_quat(DQuat::from_scaled_axis(DVec3::new(a, b, c))) * self.rotation;
            self.scale *= scale.exp();
            self.shift += DVec3::new(x, y, z);
        }
        self
    }

    /// Transforms a camera: its axes are rotated, its place is mapped.
    pub fn apply(&self, (axes, place): &Pose) -> Pose {
        (
            self.rotation * *axes,
            self.scale * (self.rotation * *place) + self.shift,
        )
    }
}

/// The image of a point on a plane at a distance of one from a camera; None for points that are not clearly ahead.
fn sight((axes, place): &Pose, point: DVec3) -> Option<(f64, f64)> {
    let seen = axes.transpose() * (point - *place);
    (seen.z > 0.1 * seen.length()).then(|| (seen.x / seen.z, seen.y / seen.z))
}

/// The solution of a system with a symmetric matrix, by elimination; None if the matrix is singular.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    let largest = (0..N).fold(0.0, |most: f64, i| most.max(matrix[i][i]));
    for i in 0..N {
        if matrix[i][i] <= 1e-9 * largest {
            return None;
        }
        for j in i + 1..N {
            let factor = matrix[j][i] / matrix[i][i];
            for k in i..N {
                matrix[j][k] -= factor * matrix[i][k];
            }
            right[j] -= factor * right[i];
        }
    }
    for i in (0..N).rev() {
        for j in i + 1..N {
            right[i] -= matrix[i][j] * right[j];
        }
        right[i] /= matrix[i][i];
    }
    Some(right)
}

/// a bᵀ
fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// The rotation R for which the trace of Rᵀ M is largest: its quaternion is the eigenvector of the largest eigenvalue of
/// a symmetric 4 × 4 matrix (Horn1987).
fn nearest_rotation(m: DMat3) -> DMat3 {
    let at = |row: usize, column: usize| m.col(column)[row];
    let (xx, yy, zz) = (at(0, 0), at(1, 1), at(2, 2));
    let [x, y, z] = [at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1)];
    let (xy, xz, yz) = (at(0, 1) + at(1, 0), at(0, 2) + at(2, 0), at(1, 2) + at(2, 1));
    let mut matrix = [
        [xx + yy + zz, x, y, z],
        [x, xx - yy - zz, xy, xz],
        [y, xy, yy - xx - zz, yz],
        [z, xz, yz, zz - xx - yy],
    ];
    // Shifted, the matrix has no negative eigenvalues; squared repeatedly, it converges to v vᵀ, v being its dominant
    // eigenvector.
    let shift: f64 = matrix.as_flattened().iter().map(|x| x.abs()).sum();
    (0..4).for_each(|i| matrix[i][i] += shift);
    for _ in 0..60 {
        let largest = matrix.as_flattened().iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        if largest == 0.0 {
            return DMat3::IDENTITY;
        }
        matrix.as_flattened_mut().iter_mut().for_each(|x| *x /= largest);
        let old = matrix;
        for (i, row) in matrix.iter_mut().enumerate() {
            for (j, x) in row.iter_mut().enumerate() {
                *x = (0..4).map(|k| old[i][k] * old[k][j]).sum();
            }
        }
    }
    let longest = (0..4)
        .max_by(|a, b| matrix[*a][*a].total_cmp(&matrix[*b][*b]))
        .unwrap_or(0);
    let [w, x, y, z] = matrix[longest];
    DMat3::from_quat(DQuat::from_xyzw(x, y, z, w).normalize())
}

/// Distances of cameras from where they were, or from the true poses if the scene states them, after the similarity
/// between both has been taken out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distances {
    /// Mean and largest angle in degrees.
    pub mean_degrees: f64,
    pub largest_degrees: f64,
    /// Mean and largest distance, in percent of the cameras' mean distance from the field's centre.
    pub mean_percent: f64,
    pub largest_percent: f64,
}

impl Distances {
    fn between(from: &[Pose], to: &[Pose], unit: f64) -> Self {
        let similarity = Similarity::between(from, to);
        let count = from.len().max(1) as f64;
        let (mut angles, mut shifts) = (Vec::new(), Vec::new());
        for (from, to) in from.iter().zip(to) {
            let (axes, place) = similarity.apply(from);
            let turn = axes.transpose() * to.0;
            let trace = turn.x_axis.x + turn.y_axis.y + turn.z_axis.z;
            angles.push(((trace - 1.0) / 2.0).clamp(-1.0, 1.0).acos().to_degrees());
            shifts.push(100.0 * (place - to.1).length() / (unit * similarity.scale));
        }
        let largest = |values: &[f64]| values.iter().fold(0.0, |a: f64, b| a.max(*b));
        Self {
            mean_degrees: angles.iter().sum::<f64>() / count,
            largest_degrees: largest(&angles),
            mean_percent: shifts.iter().sum::<f64>() / count,
            largest_percent: largest(&shifts),
        }
    }
}

/// How far the training cameras are from their true poses; without those, how far they have moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Refined {
    /// Whether the scene states the true poses; else cameras are compared with the poses of its file.
    pub against_truth: bool,
    /// Distances of the file's poses, if there are true ones to compare them with, and of the refined poses.
    pub before: Option<Distances>,
    pub after: Distances,
    /// The scale of the similarity that held-out cameras are moved by, and its angle in degrees.
    pub scale: f64,
    pub degrees: f64,
    #[serde(skip)]
    similarity: Similarity,
}

impl Refined {
    /// Compares the training cameras of a device with those of the scene; None if no poses are optimised.
    pub fn of(scene: &Scene, training: &[u32], device: &dyn Device) -> Option<Self> {
        let tuned = |p: &crate::params::Parameter| p.quantity == Quantity::Pose && p.tuning.is_some();
        if !device.params().parameters.iter().any(tuned) {
            return None;
        }
        let sensors = || training.iter().map(|&index| &scene.sensors[index as usize]);
        let true_pose = |sensor: &crate::scene::Sensor| pose(&sensor.undisturbed.unwrap_or(sensor.to_world));
        let truth: Vec<Pose> = sensors().map(true_pose).collect();
        let file: Vec<Pose> = sensors().map(|sensor| pose(&sensor.to_world)).collect();
        let found: Vec<Pose> = training
            .iter()
            .map(|&index| pose_of(&device.sensors()[index as usize]))
            .collect();
        let to_world = &scene.field.as_ref()?.to_world;
        let center = to_world.translation.as_dvec3();
        let corner =
            |i: u32| glam::Vec3A::from_array([0, 1, 2].map(|axis| if i >> axis & 1 == 0 { -1.0 } else { 1.0 }));
        let corners = (0..8).map(|i| to_world.transform_point3a(corner(i)).as_dvec3());
        let corners: Vec<DVec3> = corners.collect();
        let unit = truth.iter().map(|(_, place)| (*place - center).length()).sum::<f64>() / truth.len().max(1) as f64;
        let mut similarity = Similarity::between(&truth, &found);
        // Cameras inside of the field's cube do not photograph its corners.
        if !truth.iter().any(|(_, place)| is_within(to_world, place.as_vec3a())) {
            similarity = similarity.by_sight(&truth, &found, &corners);
        }
        let against_truth = sensors().any(|sensor| sensor.undisturbed.is_some());
        let (_, angle) = DQuat::from_mat3(&similarity.rotation).to_axis_angle();
        Some(Self {
            against_truth,
            before: against_truth.then(|| Distances::between(&truth, &file, unit)),
            after: Distances::between(&truth, &found, unit),
            scale: similarity.scale,
            degrees: angle.min(std::f64::consts::TAU - angle).to_degrees(),
            similarity,
        })
    }

    /// The record of a camera that was not refined, moved by the similarity; clip distances are scaled.
    pub fn take_along(&self, record: &SensorRecord) -> SensorRecord {
        let (axes, place) = self.similarity.apply(&pose_of(record));
        let to_world = Affine3A {
            matrix3: glam::Mat3A::from_cols(axes.x_axis.as_vec3a(), axes.y_axis.as_vec3a(), axes.z_axis.as_vec3a()),
            translation: place.as_vec3a(),
        };
        SensorRecord {
            to_world: rows(&to_world),
            near_clip: record.near_clip * self.similarity.scale as f32,
            far_clip: record.far_clip * self.similarity.scale as f32,
            ..*record
        }
    }

    /// The distances as one line for the terminal.
    pub fn text(&self) -> String {
        let one = |of: &Distances| {
            format!(
                "{:.3}° and {:.3} % on average, {:.3}° and {:.3} % at most",
                of.mean_degrees, of.mean_percent, of.largest_degrees, of.largest_percent
            )
        };
        match &self.before {
            Some(before) => format!(
                "cameras are off by {}, at the beginning by {}, the similarity between all and the true ones taken out",
                one(&self.after),
                one(before)
            ),
            None => format!(
                "cameras have moved by {}, the similarity between all before and after taken out",
                one(&self.after)
            ),
        }
    }
}

fn pose(to_world: &Affine3A) -> Pose {
    pose_of(&SensorRecord {
        to_world: rows(to_world),
        ..sensor_record(&crate::scene::Sensor::default())
    })
}

fn pose_of(record: &SensorRecord) -> Pose {
    use crate::resident::views::{axes, place};
    (axes(record), place(record).as_dvec3())
}

/// Refines the poses of the held-out cameras, beginning with those of `records`, with everything else fixed as the device
/// has it. The device then holds the scene anew, with these cameras.
///
/// # Errors
/// The device's, or a photograph that cannot be read.
pub fn refine_held_out(
    scene: &Scene,
    settings: &Optimize,
    records: &[(u32, SensorRecord)],
    device: &mut dyn Device,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<()> {
    let (mut resident, _) = Resident::new(scene)?;
    let mut params = values_of(device)?;
    let shapes: Vec<_> = params.parameters.iter().map(|p| p.shape).collect();
    resident.fit(&shapes);
    resident.sensors.truncate(scene.sensors.len());
    let held_out: Vec<u32> = records.iter().map(|(index, _)| *index).collect();
    resident.read_photographs(&scene.sensors, &held_out)?;
    if let Some(views) = resident.views_mut() {
        records
            .iter()
            .for_each(|(index, record)| views.rest_at(*index as usize, record));
    }
    for parameter in &mut params.parameters {
        parameter.tuning = (parameter.quantity == Quantity::Pose).then_some(Tuning {
            learning_rate: settings.views.held_out_rate,
            bounds: [f32::NEG_INFINITY, f32::INFINITY],
            smoothing: 0.0,
        });
    }
    let optimizer = Optimizer::Adam {
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-10,
        mask_updates: true,
    };
    device.load(resident, params, optimizer)?;
    let Some(table) = PixelTable::new(device.sensors(), &held_out) else {
        anyhow::bail!("the held-out views together have more than 2³² pixels; use `downscale`");
    };
    let count = settings.views.held_out_iterations;
    progress.note(&format!(
        "refining {} held-out cameras in {count} iterations",
        held_out.len()
    ));
    let batch = Batch {
        drawn: Some(RAYS.min(table.len())),
        table,
    };
    let schedule = Schedule {
        decay: Decay::Exponential { final_factor: 0.1 },
        warm_up: 0,
    };
    for index in 0..count {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        // Iteration numbers after those of the run, so that random numbers are new.
        let key = |pass| pass_key(settings.seed, settings.iterations.wrapping_add(index), pass);
        let keys = |pass| Keys {
            objective: key(Pass::Objective),
            pass: key(pass),
        };
        device.render(&batch, keys(Pass::Primal), settings.spp)?;
        device.loss(&batch, keys(Pass::Primal), Loss::L2)?;
        device.backpropagate(&batch, keys(Pass::Adjoint), settings.spp_grad)?;
        device.step(&Step {
            optimizer,
            rate: rate_factor(&schedule, index, count),
            count: index + 1,
        })?;
        device.rebuild()?;
    }
    Ok(())
}

/// The parameters of a device with their values.
fn values_of(device: &mut dyn Device) -> Result<ParamSet> {
    let mut params = device.params().clone();
    for index in 0..params.parameters.len() {
        params.parameters[index].values = device.read(index, ArrayKind::Values)?;
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poses() -> Vec<Pose> {
        (0..5)
            .map(|i| {
                let t = f64::from(i);
                let axes = DMat3::from_quat(DQuat::from_scaled_axis(DVec3::new(0.3 * t, 1.0 - t, 0.2)));
                (axes, DVec3::new(t.sin(), 2.0 * t.cos(), 0.3 * t))
            })
            .collect()
    }

    /// A known similarity is found again from a single camera, from two and from five.
    #[test]
    fn a_similarity_is_found_again() {
        let known = Similarity {
            rotation: DMat3::from_quat(DQuat::from_scaled_axis(DVec3::new(2.0, -1.0, 1.4))),
            scale: 1.7,
            shift: DVec3::new(3.0, -2.0, 0.5),
        };
        for count in [1, 2, 5] {
            let from = &poses()[..count];
            let to: Vec<Pose> = from.iter().map(|pose| known.apply(pose)).collect();
            let found = Similarity::between(from, &to);
            for (a, b) in from.iter().map(|pose| found.apply(pose)).zip(&to) {
                assert!((a.1 - b.1).length() < 1e-9, "{count}: {found:?}");
                assert!(a.0.abs_diff_eq(b.0, 1e-9), "{count}: {found:?}");
            }
            let distances = Distances::between(from, &to, 1.0);
            assert!(
                distances.largest_degrees < 1e-5 && distances.largest_percent < 1e-6,
                "{distances:?}"
            );
        }
    }

    /// One of five cameras is turned by 10°, of which the similarity can take out no more than a fifth.
    #[test]
    fn a_turned_camera_is_told_from_the_others() {
        let from = poses();
        let mut to = from.clone();
        to[2].0 *= DMat3::from_rotation_y(10f64.to_radians());
        let found = Distances::between(&from, &to, 1.0);
        assert!((8.0..=10.0).contains(&found.largest_degrees), "{found:?}");
        assert!(found.mean_degrees < 4.0, "{found:?}");
    }

    /// If each camera is moved around the points that it looks at, a similarity by poses is inaccurate; one by what the
    /// cameras see of the points is not.
    #[test]
    fn a_similarity_is_told_by_what_cameras_see() {
        let known = Similarity {
            rotation: DMat3::from_quat(DQuat::from_scaled_axis(DVec3::new(0.02, -0.01, 0.03))),
            scale: 1.02,
            shift: DVec3::new(0.03, -0.02, 0.05),
        };
        let camera = |i: usize, lift: f64| {
            let (angle, height) = (i as f64 * 0.7, 0.3 + 0.1 * i as f64 + lift);
            let place = 4.0 * DVec3::new(angle.cos() * height.cos(), angle.sin() * height.cos(), height.sin());
            let ahead = -place.normalize();
            let left = DVec3::Z.cross(ahead).normalize();
            (DMat3::from_cols(left, ahead.cross(left), ahead), place)
        };
        let truth: Vec<Pose> = (0..9).map(|i| camera(i, 0.0)).collect();
        let lifted = (0..9).map(|i| known.apply(&camera(i, 0.02)));
        let found: Vec<Pose> = lifted.collect();
        let points: Vec<DVec3> = [-0.1, 0.1].map(|x| DVec3::new(x, 0.05, 2.0 * x * x)).to_vec();
        let points = [points, vec![DVec3::new(0.0, 0.1, -0.1), DVec3::new(0.05, -0.1, 0.1)]].concat();
        let begun = Similarity::between(&truth, &found);
        let off = |similarity: &Similarity| {
            let apart = |point: &DVec3| {
                let [a, b] = [known, *similarity].map(|s| s.scale * (s.rotation * *point) + s.shift);
                (a - b).length()
            };
            points.iter().map(apart).sum::<f64>()
        };
        let seen = begun.by_sight(&truth, &found, &points);
        assert!(off(&seen) < 0.2 * off(&begun), "{} {}", off(&seen), off(&begun));
        let exact: Vec<Pose> = truth.iter().map(|pose| known.apply(pose)).collect();
        let same = Similarity::between(&truth, &exact).by_sight(&truth, &exact, &points);
        assert!(off(&same) < 1e-9, "{same:?}");
    }
}
