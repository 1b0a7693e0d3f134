//! Data sets: cameras that a test makes up are read back from each format, and imported.

mod boxes;
mod lens;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use glam::{DMat3, DQuat, DVec2, DVec3};
use serde_json::{Value, json};

use prbopt::io::dataset::{self, Dataset, Distortion};
use prbopt::io::{Image, image};
use prbopt::scene;

/// A camera in OpenCV's convention (+X right, +Y down, +Z forward): x_camera = rotation · x_world + translation.
struct Camera {
    rotation: DMat3,
    translation: DVec3,
}

const SIZE: [u32; 2] = [64, 48];
/// fx fy cx cy k1 k2 p1 p2 of COLMAP's OPENCV model.
const INTRINSICS: [f64; 8] = [70.0, 72.0, 31.0, 25.0, 0.05, -0.02, 0.003, -0.004];

/// Cameras around the origin, tilted and rolled.
fn cameras() -> Vec<Camera> {
    let camera = |i: usize| {
        let angle = i as f64 * 0.9;
        let position = DVec3::new(4.0 * angle.cos(), 1.0 + 0.3 * i as f64, 4.0 * angle.sin());
        let forward = (DVec3::new(0.1, 0.0, -0.1) - position).normalize();
        let right = forward.cross(DVec3::new(0.1 * i as f64, 1.0, 0.0)).normalize();
        let down = forward.cross(right);
        let rotation = DMat3::from_cols(right, down, forward).transpose();
        Camera {
            rotation,
            translation: -(rotation * position),
        }
    };
    (0..9).map(camera).collect()
}

/// OpenCV's projection, written independently of the importers.
fn project(camera: &Camera, point: DVec3) -> DVec2 {
    let [fx, fy, cx, cy, k1, k2, p1, p2] = INTRINSICS;
    let local = camera.rotation * point + camera.translation;
    let (x, y) = (local.x / local.z, local.y / local.z);
    let r2 = x * x + y * y;
    let radial = 1.0 + k1 * r2 + k2 * r2 * r2;
    let u = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x);
    let v = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y;
    DVec2::new(fx * u + cx, fy * v + cy)
}

fn points() -> Vec<DVec3> {
    (0..40)
        .map(|i| {
            DVec3::new(
                (i as f64).sin(),
                (2.7 * i as f64).cos() * 0.8,
                (1.3 * i as f64).sin() * 0.6,
            )
        })
        .collect()
}

/// Every view projects every point as its camera does: pixels to 1e-3, depths to 1e-5.
fn assert_cameras(dataset: &Dataset) {
    assert_eq!(dataset.views.len(), cameras().len());
    for (view, camera) in dataset.views.iter().zip(&cameras()) {
        for point in points() {
            let (pixel, depth) = view.project(point).expect("in front");
            let expected = project(camera, point);
            assert!(
                (pixel - expected).length() < 1e-3,
                "{}: {pixel} instead of {expected}",
                view.name
            );
            assert!((depth - (camera.rotation * point + camera.translation).z).abs() < 1e-5);
        }
    }
}

fn image_name(i: usize) -> String {
    format!("view_{i}.png")
}

/// Opaque images for all cameras.
fn write_images(folder: &Path, channels: usize) {
    std::fs::create_dir_all(folder).expect("writable");
    for i in 0..cameras().len() {
        let [width, height] = SIZE.map(|n| n as usize);
        let image = Image {
            width,
            height,
            channels,
            data: vec![0.5; width * height * channels],
        };
        image::write_png(&folder.join(image_name(i)), &image).expect("writable");
    }
}

/// The model as text, images out of order.
fn write_colmap_text(folder: &Path) {
    std::fs::create_dir_all(folder).expect("writable");
    let parameters = INTRINSICS.map(|v| v.to_string()).join(" ");
    let cameras_txt = format!("# Camera list\n1 OPENCV {} {} {parameters}\n", SIZE[0], SIZE[1]);
    let mut images_txt = "# Image list\n".to_owned();
    for (i, camera) in cameras().iter().enumerate().rev() {
        let (q, t) = (DQuat::from_mat3(&camera.rotation), camera.translation);
        let _ = writeln!(
            images_txt,
            "{} {} {} {} {} {} {} {} 1 {}",
            i + 1,
            q.w,
            q.x,
            q.y,
            q.z,
            t.x,
            t.y,
            t.z,
            image_name(i)
        );
        images_txt.push_str(if i % 2 == 0 { "\n" } else { "1.0 2.0 -1 3.0 4.0 7\n" });
    }
    let mut points_txt = String::new();
    for (i, p) in points().iter().enumerate() {
        let _ = writeln!(points_txt, "{i} {} {} {} 255 0 0 0.5 1 0", p.x, p.y, p.z);
    }
    for (name, text) in [
        ("cameras.txt", cameras_txt),
        ("images.txt", images_txt),
        ("points3D.txt", points_txt),
    ] {
        std::fs::write(folder.join(name), text).expect("writable");
    }
}

/// The same model in binary.
fn write_colmap_binary(folder: &Path) {
    std::fs::create_dir_all(folder).expect("writable");
    let count = |n: usize| (n as u64).to_le_bytes();
    let f64s = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let mut bytes = [&count(1)[..], &1u32.to_le_bytes(), &4i32.to_le_bytes()].concat();
    bytes.extend(SIZE.iter().flat_map(|&n| u64::from(n).to_le_bytes()));
    bytes.extend(f64s(&INTRINSICS));
    std::fs::write(folder.join("cameras.bin"), bytes).expect("writable");
    let mut bytes = count(cameras().len()).to_vec();
    for (i, camera) in cameras().iter().enumerate().rev() {
        let (q, t) = (DQuat::from_mat3(&camera.rotation), camera.translation);
        bytes.extend((i as u32 + 1).to_le_bytes());
        bytes.extend(f64s(&[q.w, q.x, q.y, q.z, t.x, t.y, t.z]));
        bytes.extend(
            [
                &1u32.to_le_bytes()[..],
                image_name(i).as_bytes(),
                b"\0",
                &count(i % 3),
                &[9; 24].repeat(i % 3),
            ]
            .concat(),
        );
    }
    std::fs::write(folder.join("images.bin"), bytes).expect("writable");
    let mut bytes = count(points().len()).to_vec();
    for (i, p) in points().iter().enumerate() {
        bytes.extend(
            [
                &count(i)[..],
                &f64s(&p.to_array()),
                &[1, 2, 3],
                &f64s(&[0.5]),
                &count(i % 2),
                &[9; 8].repeat(i % 2),
            ]
            .concat(),
        );
    }
    std::fs::write(folder.join("points3D.bin"), bytes).expect("writable");
}

/// A frame of a transforms file: camera to world with the axes right, up and backwards.
fn frame(i: usize, camera: &Camera) -> Value {
    let to_world = camera.rotation.transpose();
    let (x, y, z, p) = (
        to_world.x_axis,
        -to_world.y_axis,
        -to_world.z_axis,
        -(to_world * camera.translation),
    );
    let row = |k: usize| [x[k], y[k], z[k], p[k]];
    json!({ "file_path": format!("./images/view_{i}"), "transform_matrix": [row(0), row(1), row(2), [0, 0, 0, 1]] })
}

fn transforms() -> Value {
    let [fl_x, fl_y, cx, cy, k1, k2, p1, p2] = INTRINSICS;
    let frames: Vec<Value> = cameras()
        .iter()
        .enumerate()
        .map(|(i, camera)| frame(i, camera))
        .collect();
    json!({
        "camera_model": "OPENCV", "w": 64.0, "h": 48, "fl_x": fl_x, "fl_y": fl_y, "cx": cx, "cy": cy,
        "k1": k1, "k2": k2, "p1": p1, "p2": p2, "frames": frames,
    })
}

fn write_json(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).expect("writable");
}

fn load_transforms(value: &Value) -> Result<Dataset, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("transforms.json");
    write_json(&path, value);
    dataset::load(&path).map_err(|e| e.to_string())
}

#[test]
fn colmap_cameras_are_the_same_from_text_and_binary() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (text, binary) = (folder.path().join("text"), folder.path().join("set/sparse/0"));
    write_colmap_text(&text);
    write_colmap_binary(&binary);
    write_images(&folder.path().join("set/images"), 3);
    let from_text = dataset::load(&text).expect("a model");
    for path in [folder.path().join("set"), binary.clone(), binary.join("images.bin")] {
        let dataset = dataset::load(&path).expect("a model");
        assert_cameras(&dataset);
        assert!(dataset.missing().is_empty(), "{:?}", dataset.missing());
        assert_eq!(dataset.points, from_text.points);
        let poses = |d: &Dataset| d.views.iter().map(|v| (v.name.clone(), v.to_world)).collect::<Vec<_>>();
        assert_eq!(poses(&dataset), poses(&from_text));
    }
    assert_cameras(&from_text);
}

#[test]
fn transforms_cameras_project_like_opencv() {
    assert_cameras(&load_transforms(&transforms()).expect("a data set"));
}

#[test]
fn intrinsics_of_a_frame_go_before_those_of_the_file() {
    let mut value = transforms();
    value["frames"][1]["fl_x"] = json!(99.0);
    value["frames"][1]["cx"] = json!(11.0);
    value["frames"][1]["k1"] = json!(0.25);
    let views = load_transforms(&value).expect("a data set").views;
    assert_eq!((views[0].focal, views[0].center), ([70.0, 72.0], [31.0, 25.0]));
    assert_eq!((views[1].focal, views[1].center), ([99.0, 99.0], [11.0, 25.0]));
    assert!(
        matches!(views[1].distortion, Distortion::Brown { k: [0.25, _, _], .. }),
        "{:?}",
        views[1].distortion
    );
}

#[test]
fn fields_of_view_and_sizes_of_images_are_enough() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_images(&folder.path().join("images"), 3);
    let frames: Vec<Value> = cameras()
        .iter()
        .enumerate()
        .map(|(i, camera)| frame(i, camera))
        .collect();
    let path = folder.path().join("transforms_train.json");
    write_json(
        &path,
        &json!({ "camera_angle_x": 2.0 * 0.5f64.atan(), "frames": frames }),
    );
    let view = &dataset::load(&path).expect("a data set").views[2];
    assert_eq!((view.name.as_str(), view.width, view.height), ("view_2", 64, 48));
    assert!((view.focal[0] - 64.0).abs() < 1e-4 && view.focal[0] == view.focal[1]);
    assert_eq!((view.center, view.distortion), ([32.0, 24.0], Distortion::None));
    assert_eq!(view.image, folder.path().join("./images/view_2.png"));
}

#[test]
fn fisheye_is_told_from_radial_distortion() {
    let mut value = transforms();
    value["k4"] = json!(0.01);
    assert!(
        load_transforms(&value)
            .expect_err("k4 of no fisheye")
            .contains("OPENCV_FISHEYE")
    );
    value["camera_model"] = json!("OPENCV_FISHEYE");
    let views = load_transforms(&value).expect("a data set").views;
    assert_eq!(
        views[0].distortion,
        Distortion::Fisheye {
            k: [0.05, -0.02, 0.0, 0.01]
        }
    );
}

/// `applied_transform` is not applied once more, which a note says, and `aabb_scale` is kept.
#[test]
fn transforms_files_bring_notes_and_a_scale() {
    let mut value = transforms();
    let plain = load_transforms(&value).expect("a data set");
    assert_eq!((plain.notes.len(), plain.aabb_scale, plain.points.len()), (0, None, 0));
    value["aabb_scale"] = json!(16);
    value["applied_transform"] = json!([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0]]);
    let told = load_transforms(&value).expect("a data set");
    assert_eq!(told.aabb_scale, Some(16.0));
    assert_eq!(told.file.file_name(), Some("transforms.json".as_ref()));
    assert_eq!(
        told.notes,
        ["`applied_transform` is already part of the cameras' poses and is left alone"]
    );
    let poses = |set: &Dataset| set.views.iter().map(|view| view.to_world).collect::<Vec<_>>();
    assert_eq!(poses(&told), poses(&plain));
    value["frames"][0]["mask_path"] = json!("masks/0.png");
    let told = load_transforms(&value).expect("a data set");
    assert!(told.notes[1].contains("1 of the frames has a mask"), "{:?}", told.notes);
}

/// Each mistake in a transforms file names its place and what was expected.
#[test]
fn mistakes_in_transforms_are_named() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 12] = [
        (
            |v| v["aabb_scale"] = json!(1e39),
            "aabb_scale is 1e+39, expected a size of the scene such as 16",
        ),
        (|v| v["frames"] = json!([]), "no views"),
        (|v| v["frames"] = json!({}), "`frames` is not a list"),
        (|v| v["frames"][3]["file_path"] = json!(7), "frames[3].file_path"),
        (
            |v| v["frames"][3]["transform_matrix"][1] = json!([1, 2, 3]),
            "frames[3].transform_matrix has a row",
        ),
        (|v| v["frames"][3]["transform_matrix"][1][1] = json!("x"), "holds \"x\""),
        (
            |v| v["frames"][3]["transform_matrix"] = json!(vec![[0.0; 4]; 4]),
            "frames[3].transform_matrix is no rotation",
        ),
        (|v| v["fl_x"] = json!(-1.0), "focal lengths [-1.0"),
        (|v| v["k1"] = json!([1]), "k1 is [1], expected a number"),
        (|v| v["w"] = json!(1e12), "has size"),
        (
            |v| v["camera_model"] = json!("EQUIRECTANGULAR"),
            "camera_model EQUIRECTANGULAR, which is not supported",
        ),
        (
            |v| {
                let object = v.as_object_mut().expect("an object");
                object.retain(|key, _| !key.starts_with("fl_"));
            },
            "no focal length",
        ),
    ];
    for (change, expected) in cases {
        let mut value = transforms();
        change(&mut value);
        let message = load_transforms(&value).expect_err(expected);
        assert!(
            message.contains(expected) && message.contains("transforms.json"),
            "{message}\nexpected: {expected}"
        );
    }
}

#[test]
fn mistakes_in_colmap_models_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let replace = |file: &str, from: &str, to: &str| {
        write_colmap_text(folder.path());
        let path = folder.path().join(file);
        let text = std::fs::read_to_string(&path).expect("readable");
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).expect("writable");
        dataset::load(folder.path()).expect_err(to).to_string()
    };
    assert!(replace("cameras.txt", "OPENCV", "FOV").contains("camera 1 is of model FOV, which is not supported"));
    assert!(replace("cameras.txt", " 70 ", " seventy ").contains("line 2 has `seventy`"));
    assert!(replace("images.txt", " 1 view_8.png", " 5 view_8.png").contains("image `view_8.png` has camera 5"));
    assert!(replace("images.txt", " 1 view_8.png", "").contains("line 2 ends early"));
}

fn import(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"));
    let output = command
        .current_dir(folder)
        .arg("import")
        .args(arguments)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A folder with `set/transforms.json` and its images.
fn folder_with_set(channels: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = folder.path().join("set");
    write_images(&set.join("images"), channels);
    write_json(&set.join("transforms.json"), &transforms());
    (folder, set)
}

#[test]
fn import_writes_a_scene_that_loads() {
    let (folder, _) = folder_with_set(3);
    let (code, stdout, stderr) = import(
        folder.path(),
        &["set/transforms.json", "-o", "a.json", "--resolution", "32"],
    );
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.is_empty(), "what was chosen is told to people: {stdout}");
    assert!(
        stderr.contains("9 views of 64×48 pixels") && stderr.contains("1 in every 8"),
        "{stderr}"
    );
    let scene = scene::load(&folder.path().join("a.json")).expect("a scene");
    assert_eq!(scene.sensors.len(), 9);
    let held_out: Vec<bool> = scene.sensors.iter().map(|sensor| sensor.held_out).collect();
    assert_eq!(held_out, [true, false, false, false, false, false, false, false, true]);
    let text = std::fs::read_to_string(folder.path().join("a.json")).expect("readable");
    assert!(text.contains("\"filename\": \"set/transforms.json\""), "{text}");
    assert!(text.lines().count() < 50, "{text}");
}

/// The scene file may lie in the model's own folder, which it then names as `.`.
#[test]
fn a_model_is_imported_into_its_own_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_colmap_text(folder.path());
    write_images(&folder.path().join("images"), 3);
    let (code, _, stderr) = import(folder.path(), &[".", "-o", "scene.json", "--resolution", "32"]);
    assert_eq!(code, Some(0), "{stderr}");
    let text = std::fs::read_to_string(folder.path().join("scene.json")).expect("readable");
    assert!(text.contains("\"filename\": \".\""), "{text}");
    let scene = scene::load(&folder.path().join("scene.json")).expect("a scene");
    assert_eq!(scene.sensors.len(), 9);
}

/// Cameras that no scene can hold are refused with the data set's name, and nothing is written.
#[test]
fn cameras_too_far_apart_are_refused() {
    let (folder, set) = folder_with_set(3);
    let moved = |factor: f64| {
        let mut value = transforms();
        for frame in value["frames"].as_array_mut().expect("frames") {
            for row in frame["transform_matrix"]
                .as_array_mut()
                .expect("rows")
                .iter_mut()
                .take(3)
            {
                row[3] = json!(row[3].as_f64().expect("a number") * factor);
            }
        }
        write_json(&set.join("transforms.json"), &value);
        import(folder.path(), &["set/transforms.json", "-o", "a.json", "--force", "-q"])
    };
    for factor in [1e6, 1e20, 7e37] {
        let (code, _, stderr) = moved(factor);
        assert_eq!(code, Some(2), "{factor}: {stderr}");
        assert!(
            stderr.starts_with("error: set/transforms.json: the box that its cameras or points give would be ")
                && stderr.contains(" wide, expected 3e5 at most; give their positions in a larger unit")
                && stderr.lines().count() == 1,
            "{factor}: {stderr}"
        );
        assert!(!folder.path().join("a.json").exists());
    }
    assert_eq!(moved(1e3).0, Some(0));
}

#[test]
fn import_does_not_overwrite_without_force() {
    let (folder, _) = folder_with_set(3);
    std::fs::write(folder.path().join("a.json"), "mine").expect("writable");
    let (code, _, stderr) = import(folder.path(), &["set/transforms.json", "-o", "a.json"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--force"), "{stderr}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("a.json")).expect("readable"),
        "mine"
    );
    assert_eq!(
        import(folder.path(), &["set/transforms.json", "-o", "a.json", "--force", "-q"]).0,
        Some(0)
    );
}

#[test]
fn missing_images_are_listed_at_once_or_left_out() {
    let (folder, set) = folder_with_set(3);
    for i in [2, 5] {
        std::fs::remove_file(set.join("images").join(image_name(i))).expect("removable");
    }
    let (code, _, stderr) = import(folder.path(), &["set/transforms.json", "-o", "a.json"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("view_2.png") && stderr.contains("view_5.png") && stderr.contains("--skip-missing"),
        "{stderr}"
    );
    assert!(
        !stderr.contains("view_1.png") && !folder.path().join("a.json").exists(),
        "{stderr}"
    );
    let (code, _, stderr) = import(
        folder.path(),
        &["set/transforms.json", "-o", "a.json", "--skip-missing"],
    );
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("7 views"), "{stderr}");
    assert_eq!(
        scene::load(&folder.path().join("a.json"))
            .expect("a scene")
            .sensors
            .len(),
        7
    );
}

#[test]
fn images_of_another_size_than_their_cameras_are_refused() {
    let (folder, set) = folder_with_set(3);
    let small = Image {
        width: 8,
        height: 8,
        channels: 3,
        data: vec![0.0; 192],
    };
    image::write_png(&set.join("images").join(image_name(4)), &small).expect("writable");
    let (code, _, stderr) = import(folder.path(), &["set/transforms.json", "-o", "a.json"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("view_4.png") && stderr.contains("8×8"), "{stderr}");
}

#[test]
fn cut_out_objects_get_a_tight_box_and_a_background() {
    let (folder, set) = folder_with_set(3);
    // A ball of radius 0.4 at the point that the cameras look at.
    let center = DVec3::new(0.1, 0.0, -0.1);
    for (i, camera) in cameras().iter().enumerate() {
        let middle = project(camera, center);
        let depth = (camera.rotation * center + camera.translation).z;
        let mut data = Vec::new();
        for y in 0..SIZE[1] {
            for x in 0..SIZE[0] {
                let at = DVec2::new(f64::from(x) + 0.5, f64::from(y) + 0.5);
                let inside = at.distance(middle) < 0.4 * 71.0 / depth;
                data.extend([0.8, 0.4, 0.2, if inside { 1.0 } else { 0.0 }]);
            }
        }
        let image = Image {
            width: 64,
            height: 48,
            channels: 4,
            data,
        };
        image::write_png(&set.join("images").join(image_name(i)), &image).expect("writable");
    }
    let (code, _, stderr) = import(folder.path(), &["set/transforms.json", "-o", "a.json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("carved"), "{stderr}");
    let text = std::fs::read_to_string(folder.path().join("a.json")).expect("readable");
    let scene: Value = serde_json::from_str(&text).expect("JSON");
    let scale = &scene["object"]["to_world"][0]["scale"];
    let edges: Vec<f64> = match scale.as_f64() {
        Some(scale) => vec![scale; 3],
        None => serde_json::from_value(scale.clone()).expect("three half edges"),
    };
    assert!(
        edges.len() == 3 && edges.iter().all(|half| (0.3..0.75).contains(half)),
        "{edges:?}"
    );
    assert_eq!(
        (&scene["views"]["background"], &scene["background"]["radiance"]),
        (&json!("white"), &json!(1.0))
    );
}

#[test]
fn a_test_split_is_held_out() {
    let (folder, set) = folder_with_set(3);
    let mut value = transforms();
    let frames = value["frames"].as_array_mut().expect("a list");
    let test = json!({ "camera_angle_x": 0.8, "frames": frames.split_off(6) });
    write_json(&set.join("transforms_train.json"), &value);
    write_json(&set.join("transforms_test.json"), &test);
    std::fs::remove_file(set.join("transforms.json")).expect("removable");
    let (code, _, stderr) = import(folder.path(), &["set", "-o", "a.json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("the 3 views of"), "{stderr}");
    let scene = scene::load(&folder.path().join("a.json")).expect("a scene");
    assert_eq!(scene.sensors.iter().filter(|sensor| sensor.held_out).count(), 3);
    assert_eq!(scene.sensors.len(), 9);
}

#[test]
fn wrong_options_are_refused() {
    let (folder, _) = folder_with_set(3);
    for (arguments, expected) in [
        (&["set/transforms.json", "--background", "blue-ish"][..], "--background"),
        (
            &["set/transforms.json", "--background", "random"],
            "no transparent parts",
        ),
        (&["set/transforms.json", "--hold-out", "1"], "--hold-out 1: leaves none"),
        (&["set/transforms.json", "--resolution", "0"], "--resolution"),
        (&["set/transforms.json", "--downscale", "60"], "too small"),
        (&["nowhere"], "nowhere: there is no such file"),
        (&["set/images"], "there is no data set here"),
    ] {
        let (code, _, stderr) = import(folder.path(), arguments);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}\nexpected: {expected}");
    }
}
