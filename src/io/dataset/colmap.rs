//! COLMAP models: `cameras`, `images` and `points3D` as `.bin` or `.txt`.
//!
//! Poses are world to camera in OpenCV's convention (+X right, +Y down, +Z forward) as a quaternion w x y z and a
//! translation. Rigs and frames of newer models are ignored: they repeat the images' poses.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use glam::{DMat3, DQuat, DVec3};

use super::{Dataset, Distortion, IoError, Result, View, checked_view, pose};

mod binary;
mod text;

/// Names of the camera models by COLMAP's id, with their numbers of parameters.
const MODELS: [(&str, usize); 12] = [
    ("SIMPLE_PINHOLE", 3),
    ("PINHOLE", 4),
    ("SIMPLE_RADIAL", 4),
    ("RADIAL", 5),
    ("OPENCV", 8),
    ("OPENCV_FISHEYE", 8),
    ("FULL_OPENCV", 12),
    ("FOV", 5),
    ("SIMPLE_RADIAL_FISHEYE", 4),
    ("RADIAL_FISHEYE", 5),
    ("THIN_PRISM_FISHEYE", 12),
    ("RAD_TAN_THIN_PRISM_FISHEYE", 16),
];

/// A camera as stored in the file.
#[derive(Debug)]
struct Camera {
    model: String,
    width: u64,
    height: u64,
    parameters: Vec<f64>,
}

/// An image as stored in the file.
#[derive(Debug)]
struct ImageRecord {
    /// Quaternion w x y z, world to camera.
    rotation: [f64; 4],
    translation: [f64; 3],
    camera: u32,
    name: String,
}

/// The result of parsing the bytes of one file.
type Parsed<T> = std::result::Result<T, String>;

/// The folder of the model at or below `folder`.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    let candidates = ["", "sparse/0", "sparse", "0", "colmap/sparse/0"].map(|inner| folder.join(inner));
    candidates
        .into_iter()
        .find(|f| f.join("images.bin").is_file() || f.join("images.txt").is_file())
}

/// Reads the model in `folder`.
pub(super) fn load(folder: &Path) -> Result<Dataset> {
    let binary = folder.join("images.bin").is_file();
    let file = |stem: &str| folder.join(format!("{stem}.{}", if binary { "bin" } else { "txt" }));
    let (cameras, images) = (file("cameras"), file("images"));
    let camera_map = parse(&cameras, if binary { binary::cameras } else { text::cameras })?;
    let mut records = parse(&images, if binary { binary::images } else { text::images })?;
    records.sort_by(|a, b| a.name.cmp(&b.name));
    let points = match file("points3D") {
        path if path.is_file() => parse(&path, if binary { binary::points } else { text::points })?,
        _ => Vec::new(),
    };
    let image_folder = find_images(folder, &records);
    let view = |record: &ImageRecord| {
        let Some(camera) = camera_map.get(&record.camera) else {
            let message = format!(
                "image `{}` has camera {}, which {} lacks",
                record.name,
                record.camera,
                cameras.display()
            );
            return Err(IoError::new(&images, message));
        };
        view(record, camera, &image_folder).map_err(|message| IoError::new(&images, message))
    };
    let views = records.iter().map(view).collect::<Result<Vec<View>>>()?;
    Ok(Dataset {
        file: folder.to_owned(),
        views,
        points,
        aabb_scale: None,
        notes: Vec::new(),
    })
}

fn parse<T>(path: &Path, parser: fn(&[u8]) -> Parsed<T>) -> Result<T> {
    let (mut file, _) = super::super::open(path)?;
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes);
    read.map_err(|e| IoError::new(path, format!("cannot be read: {e}")))?;
    parser(&bytes).map_err(|message| IoError::new(path, message))
}

/// The folder that image names are relative to: one near the model that contains any of the images.
fn find_images(model: &Path, records: &[ImageRecord]) -> PathBuf {
    let inner = [
        "images",
        "../images",
        "../../images",
        "../../../images",
        ".",
        "..",
        "../..",
    ];
    let candidates: Vec<PathBuf> = inner.into_iter().map(|inner| normalize(&model.join(inner))).collect();
    let holds_one = |folder: &&PathBuf| records.iter().take(64).any(|r| folder.join(&r.name).is_file());
    let named_images = |folder: &&PathBuf| folder.ends_with("images") && folder.is_dir();
    let found = candidates
        .iter()
        .find(holds_one)
        .or_else(|| candidates.iter().find(named_images));
    found.cloned().unwrap_or_else(|| candidates[1].clone())
}

/// Removes `name/..` from a path, for messages.
fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        let can_pop = matches!(out.components().next_back(), Some(std::path::Component::Normal(_)));
        match part {
            std::path::Component::ParentDir if can_pop => drop(out.pop()),
            std::path::Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

fn view(record: &ImageRecord, camera: &Camera, image_folder: &Path) -> Parsed<View> {
    let what = format!("image `{}`", record.name);
    let [w, x, y, z] = record.rotation;
    let rotation = DQuat::from_xyzw(x, y, z, w);
    let length = rotation.length();
    if !(length.is_finite() && length > 1e-6) {
        return Err(format!(
            "{what} has rotation {:?}, expected a quaternion",
            record.rotation
        ));
    }
    let to_world = DMat3::from_quat(rotation * (1.0 / length)).transpose();
    let position = -(to_world * DVec3::from(record.translation));
    let axes = DMat3::from_cols(-to_world.x_axis, -to_world.y_axis, to_world.z_axis);
    let to_world = pose(axes, position).ok_or(format!("{what} has a pose that is not finite"))?;
    let (focal, center, distortion) = intrinsics(camera).map_err(|e| format!("camera {} {e}", record.camera))?;
    let side = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let view = View {
        name: record.name.clone(),
        image: image_folder.join(&record.name),
        to_world,
        width: side(camera.width),
        height: side(camera.height),
        focal: focal.map(|v| v as f32),
        center: center.map(|v| v as f32),
        distortion,
    };
    checked_view(&what, view)
}

/// Focal lengths, principal point and distortion of the models that are supported.
fn intrinsics(camera: &Camera) -> Parsed<([f64; 2], [f64; 2], Distortion)> {
    let brown = |k1: f64, k2: f64, p1: f64, p2: f64| {
        let [k1, k2, p1, p2] = [k1, k2, p1, p2].map(|v| v as f32);
        Distortion::Brown {
            k: [k1, k2, 0.0],
            p: [p1, p2],
        }
    };
    match (camera.model.as_str(), camera.parameters.as_slice()) {
        ("SIMPLE_PINHOLE", &[f, cx, cy]) => Ok(([f, f], [cx, cy], Distortion::None)),
        ("PINHOLE", &[fx, fy, cx, cy]) => Ok(([fx, fy], [cx, cy], Distortion::None)),
        ("SIMPLE_RADIAL", &[f, cx, cy, k]) => Ok(([f, f], [cx, cy], brown(k, 0.0, 0.0, 0.0))),
        ("RADIAL", &[f, cx, cy, k1, k2]) => Ok(([f, f], [cx, cy], brown(k1, k2, 0.0, 0.0))),
        ("OPENCV", &[fx, fy, cx, cy, k1, k2, p1, p2]) => Ok(([fx, fy], [cx, cy], brown(k1, k2, p1, p2))),
        ("OPENCV_FISHEYE", &[fx, fy, cx, cy, k1, k2, k3, k4]) => Ok((
            [fx, fy],
            [cx, cy],
            Distortion::Fisheye {
                k: [k1, k2, k3, k4].map(|v| v as f32),
            },
        )),
        (model, parameters) => match MODELS[..6].iter().find(|(name, _)| *name == model) {
            Some((_, count)) => Err(format!(
                "is of model {model} with {} parameters, expected {count}",
                parameters.len()
            )),
            None => Err(format!(
                "is of model {model}, which is not supported, expected {}; undistort the images with COLMAP",
                MODELS[..6].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
            )),
        },
    }
}

/// Cameras by id.
type Cameras = HashMap<u32, Camera>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_models_are_refused_by_name() {
        let camera = Camera {
            model: "FOV".into(),
            width: 1,
            height: 1,
            parameters: vec![1.0; 5],
        };
        assert_eq!(
            intrinsics(&camera).expect_err("not supported"),
            "is of model FOV, which is not supported, expected SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, \
             OPENCV_FISHEYE; undistort the images with COLMAP"
        );
        for (model, count) in [("FULL_OPENCV", 12), ("FULL_OPENCV", 3)] {
            let camera = Camera {
                model: model.into(),
                width: 1,
                height: 1,
                parameters: vec![1.0; count],
            };
            let error = intrinsics(&camera).expect_err("not supported");
            assert!(
                error.contains("of model FULL_OPENCV, which is not supported"),
                "{error}"
            );
        }
        let camera = Camera {
            model: "RADIAL".into(),
            width: 1,
            height: 1,
            parameters: vec![1.0; 4],
        };
        assert!(
            intrinsics(&camera)
                .expect_err("too few")
                .contains("4 parameters, expected 5")
        );
    }

    #[test]
    fn paths_are_normalized_for_messages() {
        assert_eq!(normalize(Path::new("a/sparse/0/../../images")), Path::new("a/images"));
        assert_eq!(normalize(Path::new("../x/./y")), Path::new("../x/y"));
    }

    fn record(rotation: [f64; 4]) -> ImageRecord {
        ImageRecord {
            rotation,
            translation: [1.0, 2.0, 3.0],
            camera: 1,
            name: "a/b.png".into(),
        }
    }

    /// Order of preference: a folder that contains an image, a folder called `images`, the default.
    #[test]
    fn images_are_looked_for_where_they_may_be() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let set = &folder.path().join("all/set");
        let model = set.join("sparse/0");
        let create = |inner: &str| std::fs::create_dir_all(set.join(inner)).expect("writable");
        create("sparse/0");
        let records = [record([1.0, 0.0, 0.0, 0.0])];
        assert_eq!(
            find_images(&model, &records),
            set.join("sparse/images"),
            "there is none"
        );
        create("images");
        assert_eq!(find_images(&model, &records), set.join("images"));
        create("a");
        std::fs::write(set.join("a/b.png"), "").expect("writable");
        assert_eq!(&find_images(&model, &records), set);
        create("sparse/images/a");
        std::fs::write(set.join("sparse/images/a/b.png"), "").expect("writable");
        assert_eq!(find_images(&model, &records), set.join("sparse/images"));
        // The only image that exists may be the 64th; beyond it only folders are looked at.
        std::fs::remove_dir_all(set.join("sparse/images/a")).expect("it is there");
        let mut many: Vec<ImageRecord> = (0..63).map(|_| record([1.0, 0.0, 0.0, 0.0])).collect();
        many.iter_mut().for_each(|r| r.name = "missing.png".into());
        many.extend(records);
        assert_eq!(&find_images(&model, &many), set);
        many.insert(0, record([1.0, 0.0, 0.0, 0.0]));
        many[0].name = "missing.png".into();
        assert_eq!(
            find_images(&model, &many),
            set.join("sparse/images"),
            "the 65th is not looked for"
        );
    }

    #[test]
    fn quaternions_of_any_length_but_none_are_turns() {
        let camera = Camera {
            model: "SIMPLE_PINHOLE".into(),
            width: 9,
            height: 8,
            parameters: vec![7.0, 4.0, 3.0],
        };
        let read = |length: f64| {
            view(
                &record([0.6 * length, 0.0, 0.8 * length, 0.0]),
                &camera,
                Path::new("set"),
            )
        };
        let expected = read(1.0).expect("a turn");
        assert_eq!((expected.width, expected.height), (9, 8));
        assert_eq!((expected.focal, expected.center), ([7.0; 2], [4.0, 3.0]));
        assert_eq!(
            (expected.name.as_str(), &*expected.image),
            ("a/b.png", Path::new("set/a/b.png"))
        );
        // A rotation by pi - 2 acos(0.6) about y: the camera's z axis is (-0.96, 0, -0.28) or its mirror image in the
        // world.
        let forward = expected.forward();
        assert!((forward - DVec3::new(-0.96, 0.0, -0.28)).length() < 1e-6, "{forward}");
        for length in [1e3, 1.5e-6] {
            assert!(
                (read(length).expect("a turn").forward() - forward).length() < 1e-6,
                "{length}"
            );
        }
        for length in [0.9e-6, 0.0, f64::NAN, f64::INFINITY] {
            assert!(
                read(length).expect_err("no turn").contains("expected a quaternion"),
                "{length}"
            );
        }
    }
}
