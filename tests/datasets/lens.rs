//! Lenses and poses against COLMAP and OpenCV, whose projections were computed once, and the renderer's rays against the
//! importers' projections.
//!
//! `tests/data/colmap/` is a model of six cameras, one of each kind that is read, and six images at 2.6 to 3 from the
//! origin that look at it, rolled by different angles. It was made and written, as text and as binary, by pycolmap 4.2.1
//! (`Reconstruction.write_text`, `write_binary`; comments shortened), which also told where each image shows each point
//! (`Image.project_point`).

use std::path::{Path, PathBuf};

use glam::{DVec2, DVec3, Vec3};
use prbopt::io::dataset::{self, Dataset, Distortion, View};
use prbopt::io::{Image, image};
use prbopt::resident::sensor_record;
use prbopt::scene::{self, Sensor};
use prbopt::transport::rays::camera::camera_ray;
use serde_json::{Value, json};

use super::{load_transforms, write_json};

/// The points of the model.
const POINTS: [[f64; 3]; 5] = [
    [0.5, 0.25, 0.1],
    [-0.7, 0.4, -0.3],
    [0.3, -0.6, 0.4],
    [-0.2, -0.5, -0.6],
    [0.05, 0.03, 0.7],
];

/// Where pycolmap shows them in each image: through `SIMPLE_PINHOLE`, `PINHOLE`, `SIMPLE_RADIAL`, `RADIAL`, `OPENCV` and
/// `OPENCV_FISHEYE`.
#[rustfmt::skip]
const PIXELS: [[[f64; 2]; 5]; 6] = [
    [[27.6641078, 19.2934783], [37.4385052, 14.2307692], [19.455094, 43.4326019], [45.4613547, 36.1780105], [11.9827567, 24.4010032]],
    [[40.8975017, 19.1197296], [22.2356517, 13.6533436], [32.3013737, 46.6296763], [36.0903343, 32.1746679], [18.1004909, 29.5633215]],
    [[42.9070524, 16.0531958], [9.8947781, 18.152715], [44.7814306, 40.7455277], [25.578688, 32.8396635], [39.0145485, 29.2036237]],
    [[36.8040495, 15.5502729], [11.9010434, 21.103958], [43.4975875, 35.4271926], [17.8342978, 36.888601], [49.1923181, 24.4995167]],
    [[29.721608, 14.9135364], [32.6579687, 23.6662144], [34.2569598, 32.9932542], [16.4757514, 40.1620097], [44.8094714, 23.3398004]],
    [[24.8609956, 13.2261086], [48.8068895, 29.8148841], [24.6589242, 28.5494744], [23.6687313, 43.3208862], [35.969571, 19.5593042]],
];

/// Points in an OpenCV camera's space (+X right, +Y down, +Z forward), the second and third far off the axis.
const BEFORE_CAMERA: [[f64; 3]; 5] = [
    [0.5, 0.25, 2.0],
    [-0.7, 0.4, 1.5],
    [0.9, -0.8, 1.2],
    [-0.2, -0.6, 0.8],
    [0.05, 0.03, 3.0],
];

/// OpenCV 5.0.0, `cv2.projectPoints` with f = (70, 72), c = (31, 25), k1 k2 p1 p2 k3 = .05 -.02 .003 -.004 .008.
#[rustfmt::skip]
const OPENCV: [[f64; 2]; 5] = [
    [48.5225399, 34.03971695], [-2.34540521, 44.61378918], [84.70046166, -24.13784272], [12.92441406, -30.10109375],
    [32.16649737, 25.7200424],
];

/// OpenCV 5.0.0, `cv2.fisheye.projectPoints` with the same f and c, k1 … k4 = .05 -.02 .003 -.004.
#[rustfmt::skip]
const OPENCV_FISHEYE: [[f64; 2]; 5] = [
    [48.12602663, 33.80767084], [0.69586017, 42.8114128], [73.14617764, -13.53364813], [15.91821316, -21.5380851],
    [32.16654181, 25.71992295],
];

fn model(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/colmap")
        .join(kind)
}

/// `view` shows `point` at `pixel`, to a thousandth of a pixel.
fn assert_shows(view: &View, point: DVec3, pixel: [f64; 2]) {
    let (found, _) = view.project(point).expect("in front");
    let error = found.distance(DVec2::from_array(pixel));
    assert!(error < 1e-3, "{} shows {point} at {found}, not {pixel:?}", view.name);
}

#[test]
fn every_camera_model_projects_like_colmap() {
    for kind in ["text", "binary"] {
        let dataset = dataset::load(&model(kind)).expect("a model");
        assert_eq!(dataset.views.len(), PIXELS.len());
        for (i, (view, pixels)) in dataset.views.iter().zip(PIXELS).enumerate() {
            assert_eq!(
                (view.name.as_str(), view.width, view.height),
                (&*format!("view_{i}"), 64, 48)
            );
            for (point, pixel) in POINTS.into_iter().zip(pixels) {
                assert_shows(view, DVec3::from_array(point), pixel);
            }
        }
        let points: Vec<[f32; 3]> = POINTS.map(|p| p.map(|x| x as f32)).into();
        assert_eq!(dataset.points, points, "{kind}");
    }
}

/// One camera at the origin of Blender's space (+X right, +Y up, -Z forward).
fn one_frame(lens: Value) -> Value {
    let mut file = json!({
        "w": 64, "h": 48, "fl_x": 70, "fl_y": 72, "cx": 31, "cy": 25,
        "frames": [{
            "file_path": "a.png",
            "transform_matrix": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        }],
    });
    let entries = lens.as_object().expect("an object").clone();
    file.as_object_mut().expect("an object").extend(entries);
    file
}

#[test]
fn transforms_project_like_opencv() {
    let brown = json!({ "k1": 0.05, "k2": -0.02, "k3": 0.008, "p1": 0.003, "p2": -0.004 });
    let coefficients = json!({ "k1": 0.05, "k2": -0.02, "k3": 0.003, "k4": -0.004 });
    let with = |key: &str, value: Value| {
        let mut lens = coefficients.clone();
        lens[key] = value;
        lens
    };
    let fisheye = with("camera_model", json!("OPENCV_FISHEYE"));
    let flagged = with("is_fisheye", json!(true));
    for (lens, pixels) in [(brown, OPENCV), (fisheye, OPENCV_FISHEYE), (flagged, OPENCV_FISHEYE)] {
        let views = load_transforms(&one_frame(lens)).expect("a data set").views;
        for ([x, y, z], pixel) in BEFORE_CAMERA.into_iter().zip(pixels) {
            assert_shows(&views[0], DVec3::new(x, -y, -z), pixel);
        }
    }
}

/// f = (w/2) / tan(angle/2), along the side that the angle is of; one that is not given is the other.
#[test]
fn each_field_of_view_is_of_its_own_side() {
    let [x, y] = [2.0 * (32.0f64 / 70.0).atan(), 2.0 * (24.0f64 / 90.0).atan()];
    for (angles, expected) in [
        (json!({ "camera_angle_x": x, "camera_angle_y": y }), [70.0, 90.0]),
        (json!({ "camera_angle_x": x }), [70.0, 70.0]),
        (json!({ "camera_angle_y": y }), [90.0, 90.0]),
        (json!({ "camera_angle_y": y, "fl_x": 80 }), [80.0, 90.0]),
        (
            json!({ "camera_angle_y": y, "fl_y": 75, "camera_angle_x": x }),
            [70.0, 75.0],
        ),
    ] {
        let mut file = one_frame(angles.clone());
        let entries = file.as_object_mut().expect("an object");
        entries.retain(|key, _| !key.starts_with("fl_") || angles.get(key).is_some());
        let focal = load_transforms(&file).expect("a data set").views[0].focal;
        let near = |a: f32, b: f64| (f64::from(a) - b).abs() < 1e-4;
        assert!(
            near(focal[0], expected[0]) && near(focal[1], expected[1]),
            "{angles}: {focal:?}"
        );
    }
}

/// The scene whose views are those of a data set, whose images are written beside it.
fn sensors(folder: &Path, data: &Path, dataset: &Dataset) -> Vec<Sensor> {
    for view in &dataset.views {
        let (width, height) = (view.width as usize, view.height as usize);
        let data = vec![0.5; 3 * width * height];
        let image = Image {
            width,
            height,
            channels: 3,
            data,
        };
        std::fs::create_dir_all(view.image.parent().expect("in a folder")).expect("writable");
        image::write_png(&view.image, &image).expect("writable");
    }
    let path = folder.join("scene.json");
    let scene = json!({
        "views": { "type": "dataset", "filename": data },
        "sky": { "type": "constant", "radiance": 1.0 },
    });
    write_json(&path, &scene);
    scene::load(&path).unwrap_or_else(|e| panic!("{e}")).sensors
}

/// A camera as the renderer and as the importers have it, and points with the pixels at which others show them.
type Lens = (Sensor, View, Vec<(DVec3, [f64; 2])>);

/// The six lenses of COLMAP, then OpenCV's two.
fn lenses() -> Vec<Lens> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let colmap = folder.path().join("set");
    std::fs::create_dir_all(&colmap).expect("writable");
    for file in std::fs::read_dir(model("binary")).expect("there") {
        let file = file.expect("readable");
        std::fs::copy(file.path(), colmap.join(file.file_name())).expect("writable");
    }
    let dataset = dataset::load(&colmap).expect("a model");
    let shown = |pixels: [[f64; 2]; 5]| POINTS.into_iter().map(DVec3::from_array).zip(pixels).collect();
    let found = sensors(folder.path(), &colmap, &dataset)
        .into_iter()
        .zip(dataset.views)
        .zip(PIXELS);
    let mut all: Vec<_> = found
        .map(|((sensor, view), pixels)| (sensor, view, shown(pixels)))
        .collect();
    for (i, (lens, pixels)) in [
        (
            json!({ "k1": 0.05, "k2": -0.02, "k3": 0.008, "p1": 0.003, "p2": -0.004 }),
            OPENCV,
        ),
        (
            json!({ "is_fisheye": true, "k1": 0.05, "k2": -0.02, "k3": 0.003, "k4": -0.004 }),
            OPENCV_FISHEYE,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("transforms_{i}.json"));
        write_json(&path, &one_frame(lens));
        let dataset = dataset::load(&path).expect("a data set");
        let sensor = sensors(folder.path(), &path, &dataset).swap_remove(0);
        let shown = BEFORE_CAMERA
            .map(|[x, y, z]| DVec3::new(x, -y, -z))
            .into_iter()
            .zip(pixels);
        all.push((sensor, dataset.views[0].clone(), shown.collect()));
    }
    all
}

/// A ray of the renderer through the pixel at which COLMAP or OpenCV shows a point passes through the point.
#[test]
fn rays_meet_what_their_pixels_show() {
    let lenses = lenses();
    assert_eq!(lenses.len(), 8);
    for (sensor, _, shown) in lenses {
        let record = sensor_record(&sensor);
        for (point, [x, y]) in shown {
            let ray = camera_ray(&record, x as f32, y as f32).expect("within the lens");
            let [origin, direction] = [ray.origin, ray.direction].map(|v| Vec3::from_array(v).as_dvec3());
            let to_point = point - origin;
            let miss = to_point.cross(direction).length() / to_point.length();
            assert!(
                miss < 5e-5 && to_point.dot(direction) > 0.0,
                "{}: {point} missed by {miss}",
                sensor.name
            );
        }
    }
}

/// Over the whole film and beyond its edge a ray leads to points that the importers' projection shows where it began.
#[test]
fn projections_undo_rays() {
    for (sensor, view, _) in lenses() {
        let record = sensor_record(&sensor);
        for (x, y) in (-1..=13).flat_map(|i| (-1..=9).map(move |j| (5.0 * i as f32, 5.5 * j as f32))) {
            let ray = camera_ray(&record, x, y).expect("within the lens");
            let point = Vec3::from_array(ray.origin) + 3.0 * Vec3::from_array(ray.direction);
            assert_shows(&view, point.as_dvec3(), [f64::from(x), f64::from(y)]);
        }
    }
}

/// A lens whose coefficients are zero is read as a pinhole, but a fisheye without coefficients stays a fisheye.
#[test]
fn lenses_that_distort_nothing_are_pinholes() {
    let dataset = dataset::load(&model("text")).expect("a model");
    let kinds: Vec<bool> = dataset.views.iter().map(|v| v.distortion == Distortion::None).collect();
    assert_eq!(kinds, [true, true, false, false, false, false]);
    let zeros = json!({ "k1": 0.0, "k2": 0.0, "p1": 0.0, "p2": 0.0 });
    let views = load_transforms(&one_frame(zeros)).expect("a data set").views;
    assert_eq!(views[0].distortion, Distortion::None);
    let equidistant = json!({ "is_fisheye": true });
    let views = load_transforms(&one_frame(equidistant)).expect("a data set").views;
    assert_eq!(views[0].distortion, Distortion::Fisheye { k: [0.0; 4] });
}
