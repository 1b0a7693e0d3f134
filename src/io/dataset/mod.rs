//! Data sets of photographs with cameras: NeRF `transforms.json` in its dialects, and COLMAP models.

pub mod bounds;
mod colmap;
mod hull;
mod project;
mod transforms;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use glam::{Affine3A, DMat3, DVec3};

use super::{IoError, Result, image};

/// Lens distortion, OpenCV's models.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Distortion {
    #[default]
    None,
    /// Radial k1 k2 k3 and tangential p1 p2.
    Brown { k: [f32; 3], p: [f32; 2] },
    /// Equidistant fisheye k1 … k4.
    Fisheye { k: [f32; 4] },
}

/// One photograph and its camera.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The image's file stem, made unique within the data set.
    pub name: String,
    /// The image file; it may be missing.
    pub image: PathBuf,
    /// Camera space to the data set's world: +X left, +Y up, +Z forward.
    pub to_world: Affine3A,
    /// Size in pixels: as the data set states it, else as the image's header does.
    pub width: u32,
    pub height: u32,
    /// Focal lengths in pixels of that size.
    pub focal: [f32; 2],
    /// Principal point in pixels from the top left corner.
    pub center: [f32; 2],
    pub distortion: Distortion,
}

/// A data set as read from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The transforms file, or the folder of the COLMAP model.
    pub file: PathBuf,
    /// In the order of the file; those of a COLMAP model by their image's path, since its files have no order.
    pub views: Vec<View>,
    /// Sparse points of a COLMAP model; empty elsewhere.
    pub points: Vec<[f32; 3]>,
    /// `aabb_scale` of an instant-ngp file.
    pub aabb_scale: Option<f32>,
    /// Remarks for the user on how the file was interpreted, one sentence each.
    pub notes: Vec<String>,
}

impl Dataset {
    /// The views whose image file is missing.
    pub fn missing(&self) -> Vec<&View> {
        self.views.iter().filter(|view| !view.image.is_file()).collect()
    }
}

impl View {
    /// Checks that the image exists and has the camera's size.
    ///
    /// # Errors
    /// If it is missing, is no image, or its size differs.
    pub fn check_image(&self) -> Result<()> {
        let header = image::header(&self.image)?;
        let (width, height) = (self.width as usize, self.height as usize);
        if (header.width, header.height) != (width, height) {
            let message = format!(
                "has {}×{} pixels, but its camera has {width}×{height}",
                header.width, header.height
            );
            return Err(IoError::new(&self.image, message));
        }
        Ok(())
    }
}

/// Reads a `transforms*.json`, or a COLMAP model: its folder, a file in it, or a folder with `sparse/0`.
///
/// # Errors
/// If there is no data set at `path`, if its files are malformed, truncated or of a camera model that is not
/// supported, or if it has no views. Images are only opened where the data set does not state their size.
pub fn load(path: &Path) -> Result<Dataset> {
    let mut dataset = match locate(path)? {
        Location::Transforms(file) => transforms::load(&file)?,
        Location::Colmap(model) => colmap::load(&model)?,
    };
    if dataset.views.is_empty() {
        return Err(IoError::new(path, "has no views, expected at least one"));
    }
    make_names_unique(&mut dataset.views);
    Ok(dataset)
}

/// The location and kind of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A transforms file.
    Transforms(PathBuf),
    /// The folder of a COLMAP model.
    Colmap(PathBuf),
}

/// Finds the data set that `path` names: a transforms file, a file of a COLMAP model, or a folder that contains either.
///
/// # Errors
/// If there is none.
pub fn locate(path: &Path) -> Result<Location> {
    const EXPECTED: &str =
        "expected a transforms.json, the folder of a COLMAP model, or a scene in a file .xml, .gltf or .glb";
    if !path.exists() {
        return Err(IoError::new(
            path,
            format!("there is no such file or folder; {EXPECTED}"),
        ));
    }
    if path.is_file() && path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) {
        return Ok(Location::Transforms(path.to_owned()));
    }
    let folder = if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new(""))
    };
    if let Some(model) = colmap::find(folder) {
        return Ok(Location::Colmap(model));
    }
    let files = ["transforms.json", "transforms_train.json"].map(|name| folder.join(name));
    let file = files.into_iter().find(|file| path.is_dir() && file.is_file());
    file.map(Location::Transforms)
        .ok_or_else(|| IoError::new(path, format!("there is no data set here; {EXPECTED}")))
}

/// Makes names unique: each name, given as the image's path in the data set, becomes its stem; if several views share
/// the stem, the whole path joined by `_`; if that is taken, a numbered one.
fn make_names_unique(views: &mut [View]) {
    let stem = |path: &str| {
        let path = Path::new(path);
        path.file_stem()
            .map_or_else(|| "view".to_owned(), |s| s.to_string_lossy().into_owned())
    };
    let mut stems: HashMap<String, usize> = HashMap::new();
    for view in views.iter() {
        *stems.entry(stem(&view.name)).or_default() += 1;
    }
    let (mut taken, mut numbers) = (HashSet::new(), HashMap::<String, usize>::new());
    for view in views {
        let short = stem(&view.name);
        let base = if stems[&short] == 1 { short } else { joined(&view.name) };
        let mut name = base.clone();
        while !taken.insert(name.clone()) {
            let number = numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            name = format!("{base}_{number}");
        }
        view.name = name;
    }
}

/// The parts of a path without its extension, joined by `_`.
fn joined(path: &str) -> String {
    let path = Path::new(path).with_extension("");
    let parts = path.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("_")
}

/// A camera's pose from its axes (columns left, up, forward) and position; `None` if the axes are not orthogonal.
///
/// A uniform scale is divided out.
fn pose(axes: DMat3, position: DVec3) -> Option<Affine3A> {
    let scale = axes.determinant().cbrt();
    let axes = axes * (1.0 / scale);
    let error = axes.transpose() * axes - DMat3::IDENTITY;
    let finite = axes.is_finite() && position.as_vec3().is_finite();
    let orthonormal = error.to_cols_array().iter().all(|e| e.abs() < 1e-2);
    let valid = finite && scale > 0.0 && orthonormal;
    valid.then(|| Affine3A::from_mat3_translation(axes.as_mat3(), position.as_vec3()))
}

/// Checks intrinsics and puts them into a view. `what` names the camera in messages.
fn checked_view(what: &str, mut view: View) -> std::result::Result<View, String> {
    let size = [view.width, view.height];
    if size.iter().any(|n| !(1..=1 << 16).contains(n)) {
        return Err(format!(
            "{what} has {}×{} pixels, expected 1 to 65536 a side",
            size[0], size[1]
        ));
    }
    if view.focal.iter().any(|f| !(f.is_finite() && *f > 0.0)) {
        return Err(format!(
            "{what} has focal lengths {:?}, expected positive numbers",
            view.focal
        ));
    }
    let coefficients = match view.distortion {
        Distortion::None => vec![],
        Distortion::Brown { k, p } => [&k[..], &p].concat(),
        Distortion::Fisheye { k } => k.to_vec(),
    };
    if view.center.iter().chain(&coefficients).any(|v| !v.is_finite()) {
        return Err(format!(
            "{what} has a principal point or distortion that is not a finite number"
        ));
    }
    if matches!(view.distortion, Distortion::Brown { .. }) && coefficients.iter().all(|&c| c == 0.0) {
        view.distortion = Distortion::None;
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let view = |path: &&str| View {
            name: path.to_string(),
            image: PathBuf::new(),
            to_world: Affine3A::IDENTITY,
            width: 1,
            height: 1,
            focal: [1.0; 2],
            center: [0.5; 2],
            distortion: Distortion::None,
        };
        let mut views: Vec<View> = paths.iter().map(view).collect();
        make_names_unique(&mut views);
        views.into_iter().map(|v| v.name).collect()
    }

    #[test]
    fn names_are_stems_unless_taken() {
        assert_eq!(names(&["./train/r_0", "images/b.jpg"]), ["r_0", "b"]);
        assert_eq!(
            names(&["left/1.png", "right/1.png", "2.png"]),
            ["left_1", "right_1", "2"]
        );
        assert_eq!(
            names(&["1.png", "1.png", "1.jpg", "1_2.png"]),
            ["1", "1_2", "1_3", "1_2_2"]
        );
    }

    #[test]
    fn poses_that_are_no_rotation_are_refused() {
        let mirrored = DMat3::from_diagonal(DVec3::new(-1.0, 1.0, 1.0));
        let sheared = DMat3::from_cols(DVec3::X, DVec3::new(0.5, 1.0, 0.0), DVec3::Z);
        for axes in [
            mirrored,
            sheared,
            DMat3::ZERO,
            DMat3::from_diagonal(DVec3::splat(f64::NAN)),
        ] {
            assert_eq!(pose(axes, DVec3::ZERO), None);
        }
        let scaled = pose(DMat3::from_diagonal(DVec3::splat(3.0)), DVec3::X).expect("a scaled rotation");
        assert_eq!(scaled, Affine3A::from_translation(glam::Vec3::X));
    }

    /// An axis that leans by s against another one leaves an error of s; a hundredth is accepted.
    #[test]
    fn poses_are_rotations_to_a_hundredth_and_finite() {
        let leaning = |s: f64| DMat3::from_cols(DVec3::X, DVec3::new(s, 1.0, 0.0), DVec3::Z);
        assert!(pose(leaning(0.009), DVec3::ZERO).is_some() && pose(leaning(-0.009), DVec3::ZERO).is_some());
        assert!(pose(leaning(0.015), DVec3::ZERO).is_none() && pose(leaning(-0.015), DVec3::ZERO).is_none());
        for bad in [f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(pose(DMat3::IDENTITY, DVec3::new(0.0, bad, 0.0)), None, "{bad}");
        }
    }

    #[test]
    fn intrinsics_are_checked_number_by_number() {
        let good = View {
            name: String::new(),
            image: PathBuf::new(),
            to_world: Affine3A::IDENTITY,
            width: 3,
            height: 2,
            focal: [2.0; 2],
            center: [1.5, 1.0],
            distortion: Distortion::None,
        };
        let check = |view: View| checked_view("camera 7", view);
        for (width, height, possible) in [
            (1, 1, true),
            (65536, 1, true),
            (1, 65536, true),
            (0, 5, false),
            (5, 0, false),
            (65537, 5, false),
            (5, 65537, false),
        ] {
            let found = check(View {
                width,
                height,
                ..good.clone()
            });
            let expected = format!("camera 7 has {width}×{height} pixels, expected 1 to 65536 a side");
            assert_eq!(found.map(|_| ()), if possible { Ok(()) } else { Err(expected) });
        }
        for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            for focal in [[bad, 1.0], [1.0, bad]] {
                let found = check(View { focal, ..good.clone() });
                assert!(
                    found.is_err_and(|e| e.contains("expected positive numbers")),
                    "{focal:?}"
                );
            }
        }
        let with = |center, distortion| {
            check(View {
                center,
                distortion,
                ..good.clone()
            })
            .map(|view| view.distortion)
        };
        for bad in [f32::NAN, f32::INFINITY] {
            for i in 0..5 {
                let mut all = [1.0; 5];
                all[i] = bad;
                let [a, b, c, d, e] = all;
                let brown = Distortion::Brown {
                    k: [a, b, c],
                    p: [d, e],
                };
                assert!(with([0.0; 2], brown).is_err_and(|e| e.contains("not a finite number")));
                if i < 4 {
                    let k = [a, b, c, d];
                    assert!(with([0.0; 2], Distortion::Fisheye { k }).is_err());
                }
                if i < 2 {
                    assert!(with([a, b], Distortion::None).is_err());
                }
            }
        }
        for i in 0..5 {
            let mut all = [0.0; 5];
            all[i] = -0.25;
            let [a, b, c, d, e] = all;
            let brown = Distortion::Brown {
                k: [a, b, c],
                p: [d, e],
            };
            assert_eq!(with([0.0; 2], brown), Ok(brown));
        }
        let none = Distortion::Brown {
            k: [0.0; 3],
            p: [0.0; 2],
        };
        assert_eq!(with([0.0; 2], none), Ok(Distortion::None));
        let fisheye = Distortion::Fisheye { k: [0.0; 4] };
        assert_eq!(
            with([0.0; 2], fisheye),
            Ok(fisheye),
            "without distortion it is still no pinhole"
        );
    }
}
