//! Refined cameras as a `transforms.json`, which other programs read.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::record::write_json;
use crate::resident::layout::{SensorRecord, distortion};
use crate::scene::Scene;

/// Writes `records`, the cameras of the scene's sensors as refined by a run, with the paths of their photographs: in the
/// scene's world, at the photographs' full size, in Blender's convention.
///
/// # Errors
/// The file cannot be written.
pub fn write_transforms(path: &Path, scene: &Scene, records: &[SensorRecord]) -> Result<()> {
    let frames = scene.sensors.iter().zip(records).filter_map(|(sensor, record)| {
        let reference = sensor.reference.as_ref()?;
        let scale = f64::from(reference.downscale.max(1));
        // Blender's cameras have +X right, +Y up and look along -Z; ours +X left, +Y up and +Z ahead.
        let row = |r: usize| {
            let [x, y, z, t] = record.to_world[r].map(f64::from);
            json!([-x, y, -z, t])
        };
        let mut frame = Map::new();
        frame.insert("file_path".into(), json!(reference.path));
        for (key, value) in [
            ("w", f64::from(record.width)),
            ("h", f64::from(record.height)),
            ("fl_x", record.focal[0].into()),
            ("fl_y", record.focal[1].into()),
            ("cx", record.center[0].into()),
            ("cy", record.center[1].into()),
        ] {
            frame.insert(key.into(), json!(value * scale));
        }
        let keys: &[(&str, usize)] = match record.distortion_model {
            distortion::NONE => &[],
            distortion::BROWN => &[("k1", 0), ("k2", 1), ("k3", 2), ("p1", 4), ("p2", 5)],
            _ => &[("k1", 0), ("k2", 1), ("k3", 2), ("k4", 3)],
        };
        if record.distortion_model == distortion::FISHEYE {
            frame.insert("camera_model".into(), json!("OPENCV_FISHEYE"));
        }
        for (key, index) in keys {
            frame.insert((*key).into(), json!(record.distortion[*index]));
        }
        frame.insert(
            "transform_matrix".into(),
            json!([row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]]),
        );
        Some(Value::Object(frame))
    });
    let frames: Vec<Value> = frames.collect();
    Ok(write_json(path, &json!({ "frames": frames }))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::dataset::{self, Distortion};
    use crate::resident::sensor_record;
    use crate::scene::{Reference, Sensor};

    /// Reading the file gives the same cameras, at the photographs' full size.
    #[test]
    fn other_programs_read_the_same_cameras() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let turn = glam::Quat::from_rotation_y(0.7) * glam::Quat::from_rotation_x(-0.3);
        let sensor = |name: &str, downscale| Sensor {
            name: name.into(),
            to_world: glam::Affine3A::from_rotation_translation(turn, glam::Vec3::new(1.0, -2.0, 3.0)),
            width: 40,
            height: 30,
            focal: [50.0, 51.0],
            center: [20.5, 14.0],
            distortion: Distortion::Brown {
                k: [0.1, -0.02, 0.0],
                p: [1e-3, -2e-3],
            },
            reference: Some(Reference {
                path: folder.path().join(format!("{name}.png")),
                downscale,
                backdrop: crate::scene::Backdrop::Opaque,
            }),
            ..Sensor::default()
        };
        let scene = Scene {
            sensors: vec![sensor("a", 1), sensor("b", 3), Sensor::default()],
            ..Scene::default()
        };
        let mut records: Vec<_> = scene.sensors.iter().map(sensor_record).collect();
        records[1].to_world[0][3] = 7.0;
        let path = folder.path().join("transforms.json");
        write_transforms(&path, &scene, &records).expect("writable");
        let read = dataset::load(&path).expect("a data set").views;
        assert_eq!(read.len(), 2, "the last has no photograph");
        for (view, (record, scale)) in read.iter().zip(records.iter().zip([1, 3])) {
            assert_eq!([view.width, view.height], [40 * scale, 30 * scale]);
            let rows = crate::resident::rows(&view.to_world);
            for (a, b) in rows.as_flattened().iter().zip(record.to_world.as_flattened()) {
                assert!((a - b).abs() < 1e-5, "{rows:?} {:?}", record.to_world);
            }
            assert!((view.focal[1] - 51.0 * scale as f32).abs() < 1e-3);
            assert!((view.center[0] - 20.5 * scale as f32).abs() < 1e-3);
            assert_eq!(view.distortion, scene.sensors[0].distortion);
        }
    }
}
