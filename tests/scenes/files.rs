//! Files that scenes name: their headers are checked before anything is rendered, and their values are read afterwards.

use std::path::Path;

use prbopt::io::{self, Grid, Image};
use prbopt::scene::{self, Backdrop, ColorSpace, Filter, Scene, Source};
use tempfile::TempDir;

use super::{SCENE, edited};

fn load(folder: &TempDir, text: &str) -> Result<Scene, String> {
    let path = folder.path().join("scene.json");
    std::fs::write(&path, text).expect("the test's folder is writable");
    scene::load(&path).map_err(|mistakes| mistakes.to_string())
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

fn write_grid(folder: &TempDir, name: &str, size: [usize; 3], channels: usize) {
    let data = (0..size.iter().product::<usize>() * channels)
        .map(|i| i as f32)
        .collect();
    let grid = Grid {
        size,
        channels,
        bounds: io::UNIT_CUBE,
        data,
    };
    let path = folder.path().join(name);
    if name.ends_with(".vol") {
        io::vol::write(&path, &grid)
    } else {
        io::npy::write(&path, &grid)
    }
    .expect("is written");
}

fn write_png(folder: &TempDir, name: &str, width: usize, height: usize) {
    let image = Image {
        width,
        height,
        channels: 3,
        data: vec![0.5; width * height * 3],
    };
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the test's folder is writable");
    io::image::write_png(&path, &image).expect("is written");
}

const SIGMA_T: &str = "\"resolution\": [4, 4, 4], \"value\": 0.75";
const REFERENCES: &str = "\"references\": {\"type\": \"constant\", \"value\": 0.5}";

#[test]
fn grids_come_from_vol_and_npy_files() {
    let folder = folder();
    for name in ["density.vol", "density.npy"] {
        write_grid(&folder, name, [2, 3, 4], 1);
        let scene =
            load(&folder, &edited(SIGMA_T, &format!("\"filename\": \"{name}\""))).unwrap_or_else(|e| panic!("{e}"));
        let sigma_t = scene.arrays()[0];
        assert_eq!(sigma_t.shape.size, [2, 3, 4]);
        assert_eq!(sigma_t.source, Source::GridFile(folder.path().join(name)));
        let values = sigma_t.source.materialise(sigma_t.shape).expect("the file is there");
        assert_eq!(values, (0..24).map(|i| i as f32).collect::<Vec<_>>());
    }
}

#[test]
fn a_grid_that_changes_after_the_check_is_refused() {
    let folder = folder();
    write_grid(&folder, "density.vol", [2, 2, 2], 1);
    let scene = load(&folder, &edited(SIGMA_T, "\"filename\": \"density.vol\"")).expect("is without mistakes");
    write_grid(&folder, "density.vol", [3, 2, 2], 1);
    let sigma_t = scene.arrays()[0];
    let error = sigma_t
        .source
        .materialise(sigma_t.shape)
        .expect_err("the size changed")
        .to_string();
    assert!(error.contains("changed while the program ran"), "{error}");
}

#[test]
fn channels_must_fit_the_degree() {
    let folder = folder();
    write_grid(&folder, "three.vol", [2, 2, 2], 3);
    let coefficients = "{\"type\": \"gridvolume\", \"resolution\": [4, 4, 4], \"value\": 0.1}";
    let found = load(
        &folder,
        &edited(coefficients, "{\"type\": \"gridvolume\", \"filename\": \"three.vol\"}"),
    );
    let found = found.expect_err("degree 1 has 12 channels");
    assert!(
        found.contains("has 3 channels") && found.contains("need 12; 3 would be degree 0"),
        "{found}"
    );
    let found = load(&folder, &edited(SIGMA_T, "\"filename\": \"three.vol\"")).expect_err("density has one channel");
    assert!(found.contains("density has one channel"), "{found}");
}

#[test]
fn initial_values_come_from_files_of_earlier_runs() {
    let folder = folder();
    write_grid(&folder, "density.vol", [5, 6, 7], 1);
    let initial = "\"bounds\": [0, null], \"initial\": \"density.vol\"";
    let scene = load(&folder, &edited("\"bounds\": [0, null]", initial)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scene.arrays()[0].shape.size, [5, 6, 7]);
    let both = format!("{initial}, \"start_resolution\": [2, 2, 2]");
    let found = load(&folder, &edited("\"bounds\": [0, null]", &both)).expect_err("the file has another resolution");
    assert!(
        found.contains("the initial values come from a file of 5×6×7 texels"),
        "{found}"
    );
}

#[test]
fn a_background_starts_from_a_file_of_an_earlier_run() {
    let folder = folder();
    let tuned = edited(
        "\"object.interior.sh_coeffs\": {}",
        "\"background.radiance\": {\"initial\": \"radiance.json\"}",
    );
    std::fs::write(folder.path().join("radiance.json"), r#"{"value": [0.1, 0.2, 0.3]}"#).expect("is written");
    let scene = load(&folder, &tuned).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scene.arrays()[2].source, Source::Fill(vec![0.1, 0.2, 0.3]));
    std::fs::write(folder.path().join("radiance.json"), r#"{"value": [0.1, 0.2]}"#).expect("is written");
    assert!(
        load(&folder, &tuned)
            .expect_err("a colour has three numbers")
            .contains("found 2 numbers")
    );
}

#[test]
fn photographs_have_the_size_of_the_film() {
    let folder = folder();
    write_png(&folder, "photo.png", 129, 64);
    let scene = |image: &str| {
        load(
            &folder,
            &edited("\"fov\": 40", &format!("\"fov\": 40, \"image\": {image}")),
        )
    };
    let found = scene("\"photo.png\"").expect_err("the sizes differ");
    assert!(
        found.contains("the photograph has 129×64 pixels, the film 64×32"),
        "{found}"
    );
    let halved = scene(r#"{"filename": "photo.png", "downscale": 2, "background": "white"}"#).expect("the sizes agree");
    let reference = halved.sensors[0].reference.clone().expect("the sensor has one");
    assert_eq!(
        (reference.downscale, reference.backdrop),
        (2, Backdrop::Color([1.0; 3]))
    );
    assert!(scene(r#"{"filename": "photo.png", "downscale": 65}"#).is_err());
}

#[test]
fn a_film_without_a_size_takes_that_of_its_photograph() {
    let folder = folder();
    write_png(&folder, "photo.png", 20, 10);
    let text = r#"{"camera": {"type": "perspective", "image": "photo.png", "fov": 90}}"#;
    let camera = load(&folder, text).expect("is without mistakes").sensors.remove(0);
    assert_eq!((camera.width, camera.height, camera.focal), (20, 10, [10.0; 2]));
}

#[test]
fn missing_photographs_matter_only_where_they_are_compared_with() {
    let folder = folder();
    let text = edited("\"fov\": 40", "\"fov\": 40, \"image\": \"nowhere.png\"");
    let scene = load(&folder, &text).unwrap_or_else(|e| panic!("{e}"));
    assert!(scene.warnings[0].contains("nowhere.png"), "{:?}", scene.warnings);
    assert!(scene.sensors[0].reference.is_none());
    let found = load(&folder, &text.replace(REFERENCES, "\"references\": \"images\"")).expect_err("it is needed");
    assert!(
        found.contains("this photograph cannot be used at camera.image: "),
        "{found}"
    );
}

/// A data set of eight views, of which `there` have images.
fn write_dataset(folder: &TempDir, name: &str, there: &[usize]) {
    let frame = |i: usize| {
        format!(
            r#"{{"file_path": "./{name}/r_{i}", "transform_matrix":
            [[1, 0, 0, {i}], [0, 1, 0, 0], [0, 0, 1, 4], [0, 0, 0, 1]]}}"#
        )
    };
    let frames: Vec<_> = (0..8).map(frame).collect();
    let text = format!(
        r#"{{"camera_angle_x": 1.5707963267948966, "w": 8, "h": 6, "frames": [{}]}}"#,
        frames.join(", ")
    );
    std::fs::write(folder.path().join(format!("transforms_{name}.json")), text).expect("is written");
    for i in there {
        write_png(folder, &format!("{name}/r_{i}.png"), 8, 6);
    }
}

const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7];

fn with_datasets(options: &str) -> String {
    let text = SCENE.replace(REFERENCES, "\"references\": \"images\"");
    let camera = &text[text.find("  \"camera\"").expect("is there")..text.find("  \"object\"").expect("is there")];
    let sets = format!("\"views\": {{\"type\": \"dataset\", \"filename\": \"transforms_train.json\"{options}}},\n");
    text.replace(camera, &sets)
}

#[test]
fn a_data_set_becomes_sensors() {
    let folder = folder();
    write_dataset(&folder, "train", ALL);
    let options = r#", "downscale": 2, "hold_out": 3, "background": "white",
        "to_world": [{"scale": 2}, {"translate": [0, 1, 0]}], "far_clip": 9"#;
    let scene = load(&folder, &with_datasets(options)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scene.sensors.len(), 8);
    let held_out: Vec<_> = scene.sensors.iter().map(|sensor| sensor.held_out).collect();
    assert_eq!(held_out, [true, false, false, true, false, false, true, false]);
    let second = &scene.sensors[1];
    assert_eq!((second.width, second.height, second.name.as_str()), (4, 3, "r_1"));
    assert!(
        (second.focal[0] - 2.0).abs() < 1e-6 && second.center == [2.0, 1.5],
        "{second:?}"
    );
    assert_eq!(
        (second.color_space, second.filter, second.far_clip),
        (ColorSpace::Srgb, Filter::Box, 9.0)
    );
    // Blender's camera looks along -Z with X to the right, that of prbopt along +Z with X to the left.
    assert!((second.to_world.translation - glam::Vec3A::new(2.0, 1.0, 8.0)).length() < 1e-5);
    assert!(
        (second.to_world.matrix3.z_axis - glam::Vec3A::NEG_Z).length() < 1e-5,
        "axes keep their length"
    );
    let reference = second.reference.clone().expect("it has an image");
    assert_eq!(
        (reference.downscale, reference.backdrop),
        (2, Backdrop::Color([1.0; 3]))
    );
}

#[test]
fn a_second_data_set_can_be_held_out_as_a_whole() {
    let folder = folder();
    write_dataset(&folder, "train", ALL);
    write_dataset(&folder, "test", ALL);
    let options = "}, \"test\": {\"type\": \"dataset\", \"filename\": \"transforms_test.json\", \"held_out\": true";
    let scene = load(&folder, &with_datasets(options)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scene.sensors.iter().filter(|sensor| sensor.held_out).count(), 8);
    let mut names: Vec<_> = scene.sensors.iter().map(|sensor| sensor.name.clone()).collect();
    assert_eq!((names[0].as_str(), names[8].as_str()), ("r_0", "test_r_0"));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 16, "names differ");
    let text = scene.resolved.to_string();
    assert_eq!(
        load(&folder, &text).expect("the resolved form can be read").resolved,
        scene.resolved
    );
}

#[test]
fn missing_images_are_listed_all_at_once_or_left_out() {
    let folder = folder();
    write_dataset(&folder, "train", &[0, 1, 3, 4, 6, 7]);
    let found = load(&folder, &with_datasets("")).expect_err("two images are missing");
    assert!(
        found.contains("2 of 8 photographs are missing") && found.contains("r_2") && found.contains("r_5"),
        "{found}"
    );
    let scene = load(&folder, &with_datasets(", \"skip_missing\": true, \"hold_out\": 3")).expect("two are left out");
    assert_eq!(scene.sensors.len(), 6);
    // Every third view of the file, whether there or not.
    let held_out: Vec<_> = scene
        .sensors
        .iter()
        .filter(|s| s.held_out)
        .map(|s| s.name.clone())
        .collect();
    assert_eq!(held_out, ["r_0", "r_3", "r_6"]);
}

#[test]
fn a_data_set_without_a_usable_view_is_refused() {
    let folder = folder();
    write_dataset(&folder, "train", &[]);
    let found = load(&folder, &with_datasets(", \"skip_missing\": true")).expect_err("nothing is left");
    assert!(found.contains("the data set has no usable view"), "{found}");
}

#[test]
fn photographs_have_the_size_that_their_data_set_states() {
    let folder = folder();
    write_dataset(&folder, "train", ALL);
    write_png(&folder, "train/r_3.png", 4, 3);
    let found = load(&folder, &with_datasets("")).expect_err("one image is smaller");
    assert!(
        found.contains("1 of 8 photographs cannot be used") && found.contains("4×3 pixels"),
        "{found}"
    );
}

#[test]
fn a_backdrop_that_is_not_the_background_is_warned_of() {
    let folder = folder();
    write_dataset(&folder, "train", ALL);
    let scene = load(&folder, &with_datasets(", \"background\": \"black\"")).expect("is without mistakes");
    assert_eq!(scene.warnings.len(), 1);
    assert!(
        load(&folder, &with_datasets(", \"background\": \"white\""))
            .expect("is fine")
            .warnings
            .is_empty()
    );
}

#[test]
fn mistakes_in_the_target_are_reported_under_its_name() {
    let folder = folder();
    std::fs::write(
        folder.path().join("target.json"),
        "{\"light\": {\"type\": \"constnat\"}}",
    )
    .expect("is written");
    let target = "\"references\": {\"type\": \"scene\", \"filename\": \"target.json\"}";
    let found = load(&folder, &edited(REFERENCES, target)).expect_err("the target has a mistake");
    assert!(
        found.contains("target.json:1:") && found.contains("did you mean `constant`?"),
        "{found}"
    );
}

#[test]
fn environment_maps_are_read_as_linear_light() {
    let folder = folder();
    write_png(&folder, "sky.png", 8, 4);
    let text = edited(
        "\"type\": \"constant\", \"radiance\": 1",
        "\"type\": \"envmap\", \"filename\": \"sky.png\"",
    );
    let scene = load(&folder, &text).unwrap_or_else(|e| panic!("{e}"));
    let sky = scene.background.array().expect("the map has pixels");
    assert_eq!(sky.shape.size, [8, 4, 1]);
    let values = sky.source.materialise(sky.shape).expect("the file is there");
    assert_eq!(values.len(), 8 * 4 * 3);
    assert!(
        (values[0] - 0.2140).abs() < 0.01,
        "0.5 in sRGB is {} in light",
        values[0]
    );
}

#[test]
fn files_that_are_no_scenes() {
    let folder = folder();
    let path = folder.path().join("scene.json");
    std::fs::write(&path, [0x7b, 0xff, 0xfe]).expect("is written");
    assert!(
        scene::load(&path)
            .expect_err("is no text")
            .to_string()
            .contains("not UTF-8")
    );
    assert!(
        scene::load(Path::new("nowhere.json"))
            .expect_err("is not there")
            .to_string()
            .contains("cannot be read")
    );
    assert!(scene::load(folder.path()).is_err());
}
