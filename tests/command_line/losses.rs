//! What the user has is not lost: files that a command reads, files in a folder that no run has written, and runs of other
//! scenes.

use super::*;

const RENDER: [&str; 8] = ["render", "scene.json", "--sensor", "all", "--spp", "1", "-q", "-o"];

/// A scene whose photographs lie in `images`, and one whose spectrum lies in `start`: folders of a run.
#[test]
fn a_run_is_not_made_where_its_inputs_lie() {
    let place = Place::new();
    place.expect(0, &[&RENDER[..], &["images"]].concat());
    let mut photographed = scene();
    for name in ["a", "b", "c", "d"] {
        photographed[name]["image"] = json!(format!("images/{name}.png"));
    }
    photographed["optimize"]["references"] = json!({"type": "images"});
    place.write("photographed.json", &photographed);
    fs::create_dir(place.path("start")).expect("a folder can be made");
    fs::write(place.path("start/sky.spd"), "400 1\n700 1\n").expect("writable");
    let mut lit = scene();
    lit["sky"]["radiance"] = json!({"type": "spectrum", "filename": "start/sky.spd"});
    place.write("lit.json", &lit);
    let before = contents(&place.path("images"));
    for (scene, input) in [("photographed.json", "images/a.png"), ("lit.json", "start/sky.spd")] {
        for more in [&[][..], &["--force"], &["--resume"]] {
            let words = [&["optimize", scene, "--iterations", "1", "-o", "."], more].concat();
            let (_, err) = place.expect(2, &words);
            assert!(
                err.starts_with(&format!(
                    "error: {input}: is read by the scene, and lies among the files that a run"
                )) && err.contains("--output"),
                "{more:?}: {err}"
            );
        }
        place.expect(
            0,
            &["optimize", scene, "--iterations", "1", "-q", "-o", "run", "--force"],
        );
    }
    assert_eq!(contents(&place.path("images")), before);
}

#[test]
fn a_folder_that_is_no_run_is_neither_replaced_nor_filled() {
    let place = Place::new();
    fs::create_dir_all(place.path("mine/images")).expect("a folder can be made");
    let optimize = ["optimize", "scene.json", "--iterations", "1", "-q", "-o", "mine"];
    place.expect(0, &optimize);
    place.expect(0, &[&optimize[..], &["--force"]].concat());
    fs::remove_file(place.path("mine/run.json")).expect("there");
    fs::write(place.path("mine/images/holiday.png"), "mine").expect("writable");
    for more in [&[][..], &["--force"]] {
        fs::remove_file(place.path("mine/checkpoint.safetensors")).ok();
        let (_, err) = place.expect(2, &[&optimize[..], more].concat());
        assert!(
            err.contains("mine: holds `scene.json`, which a run would write over"),
            "{err}"
        );
    }
    assert!(place.path("mine/images/holiday.png").exists() && place.path("mine/final").exists());
}

/// Leaves of a run what is there when it is killed before its first checkpoint.
fn forget_all_but_the_beginning(run: &Path) {
    for entry in fs::read_dir(run).expect("there").flatten() {
        let name = entry.file_name();
        match entry.path() {
            _ if name == "run.json" || name == "scene.json" => {}
            folder if folder.is_dir() => fs::remove_dir_all(folder).expect("removable"),
            file => fs::remove_file(file).expect("removable"),
        }
    }
}

/// A run without a checkpoint begins anew as it began, and only with its own scene.
#[test]
fn a_run_that_was_stopped_early_goes_on_as_what_it_was() {
    let place = Place::new();
    let mut other = scene();
    other["sky"]["radiance"] = json!(0.25);
    place.write("other.json", &other);
    place.expect(
        0,
        &[
            "optimize",
            "scene.json",
            "--iterations",
            "7",
            "--seed",
            "3",
            "-q",
            "-o",
            "run",
        ],
    );
    forget_all_but_the_beginning(&place.path("run"));
    let before = contents(&place.path("run"));
    for scene in [&["other.json"][..], &["scene.json", "--set", "sky.radiance=0.25"]] {
        let (_, err) = place.expect(2, &[&["optimize"], scene, &["--resume", "-o", "run"]].concat());
        assert!(
            err.contains("run.json: the run in this folder is of scene.json, or of another state of it")
                && err.contains("--force")
                && !err.contains("results in"),
            "{err}"
        );
    }
    let kept = contents(&place.path("run"));
    let kept: Vec<_> = kept.into_iter().filter(|(name, _)| name != ".lock").collect();
    assert_eq!(kept, before);
    place.expect(0, &["optimize", "scene.json", "--resume", "-q", "-o", "run"]);
    let record = place.json("run/run.json");
    assert_eq!((&record["iterations"], &record["seed"]), (&json!(7), &json!(3)));
    assert_eq!(place.lines("run/metrics.jsonl").len(), 7);
    forget_all_but_the_beginning(&place.path("run"));
    let resume = ["optimize", "scene.json", "--resume", "-q", "-o", "run"];
    place.expect(0, &[&resume[..], &["--iterations", "2"]].concat());
    assert_eq!(place.lines("run/metrics.jsonl").len(), 2);
    // Without its scene, the record's name tells whose it is.
    forget_all_but_the_beginning(&place.path("run"));
    fs::remove_file(place.path("run/scene.json")).expect("there");
    place.expect(2, &["optimize", "other.json", "--resume", "-o", "run"]);
    place.expect(0, &resume);
}

/// The scene of a run from standard input is what the run has written into its folder.
#[test]
fn a_run_from_standard_input_goes_on_from_its_own_scene() {
    let place = Place::new();
    let words = ["optimize", "-", "--iterations", "3", "-q", "-o", "run"];
    let input = fs::File::open(place.path("scene.json")).expect("there");
    let status = place.command(&words).stdin(input).status();
    assert!(status.expect("the program starts").success());
    let resume = ["optimize", "run/scene.json", "--resume", "-q", "-o", "run"];
    place.expect(0, &resume);
    forget_all_but_the_beginning(&place.path("run"));
    place.expect(0, &resume);
    assert_eq!(place.lines("run/metrics.jsonl").len(), 3);
}

#[test]
fn nothing_is_announced_that_is_refused() {
    let place = Place::new();
    place.expect(0, &["optimize", "scene.json", "--iterations", "2", "-q", "-o", "run"]);
    let mut other = scene();
    other["sky"]["radiance"] = json!(0.25);
    place.write("scene.json", &other);
    let (_, err) = place.expect(2, &["optimize", "scene.json", "--resume", "-o", "run"]);
    assert!(err.contains("another scene"), "{err}");
    assert!(!err.contains("going on from") && !err.contains("results in"), "{err}");
}

/// An image import would lose its picture, and so would one whose `--force` meets any other file of the data set.
#[test]
fn an_import_does_not_write_over_what_it_reads() {
    let place = Place::new();
    place.expect(0, &[&RENDER[..], &["images"]].concat());
    let pose = |x: f64| json!([[1, 0, 0, x], [0, 1, 0, 0], [0, 0, 1, 4], [0, 0, 0, 1]]);
    let frame = |name: &str, x: f64| json!({"file_path": format!("images/{name}"), "transform_matrix": pose(x)});
    place.write(
        "transforms.json",
        &json!({"camera_angle_x": 0.7, "frames": [frame("a.png", 0.0), frame("b.png", 0.5)]}),
    );
    place.write("ball.json", &json!({"ball": {"type": "sphere"}}));
    place.expect(0, &["export", "ball.json", "-o", "ball.xml", "-q"]);
    place.expect(0, &["export", "ball.json", "-o", "ball.glb", "-q"]);
    let xml = fs::read_to_string(place.path("ball.xml")).expect("there");
    let meshed = xml.replace(
        "</scene>",
        "<shape type=\"ply\"><string name=\"filename\" value=\"m.json\"/></shape></scene>",
    );
    place.expect(0, &["export", "ball.json", "-o", "m.ply", "-q"]);
    fs::rename(place.path("m.ply"), place.path("m.json")).expect("movable");
    fs::write(place.path("meshed.xml"), meshed).expect("writable");
    let read = "is read by this command, and would be lost";
    let (no_scene, splats) = (
        "is no .json, and --force overwrites only scene files",
        ["--splats", "5"],
    );
    for (input, output, more, expected) in [
        ("images/a.png", "images/a.png", &splats[..], no_scene),
        ("transforms.json", "transforms.json", &[], read),
        ("transforms.json", "images/b.png", &[], no_scene),
        ("ball.xml", "ball.xml", &[], no_scene),
        ("meshed.xml", "m.json", &[], read),
        ("ball.glb", "ball.glb", &[], no_scene),
    ] {
        let before = fs::read(place.path(output)).expect("there");
        let words = [&["import", input, "-o", output, "--force"], more].concat();
        let (_, err) = place.expect(2, &words);
        assert!(
            err.contains(&format!("{output}: ")) && err.contains(expected),
            "{input}: {err}"
        );
        assert_eq!(fs::read(place.path(output)).expect("there"), before, "{input}");
    }
    for _ in 0..2 {
        place.expect(
            0,
            &["import", "transforms.json", "-o", "photographs.json", "--force", "-q"],
        );
        place.expect(0, &["import", "ball.glb", "-o", "new.json", "--force", "-q"]);
    }
}

/// The buffers and images of a glTF may lie in the folder that the import would write into.
#[test]
fn the_files_of_a_gltf_are_not_written_over() {
    let place = Place::new();
    fs::create_dir(place.path("a_files")).expect("a folder can be made");
    let triangle = [0.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let bytes: Vec<u8> = triangle.iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(place.path("a_files/a.bin"), &bytes).expect("writable");
    place.write(
        "a.gltf",
        &json!({
            "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
            "buffers": [{"byteLength": 36, "uri": "a_files/a.bin"}],
            "bufferViews": [{"buffer": 0, "byteLength": 36}],
            "accessors": [{
                "bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]
            }]
        }),
    );
    let (_, err) = place.expect(2, &["import", "a.gltf", "-o", "a.json", "--force"]);
    assert!(
        err.contains("a_files/a.bin: is read by this command, and lies where the scene's meshes and images would go"),
        "{err}"
    );
    assert_eq!(fs::read(place.path("a_files/a.bin")).expect("there"), bytes);
    place.expect(0, &["import", "a.gltf", "-o", "b.json", "--force", "-q"]);
}

#[test]
fn an_export_does_not_write_over_what_it_reads() {
    let place = Place::new();
    place.expect(0, &["optimize", "scene.json", "--iterations", "2", "-q", "-o", "run"]);
    place.write("ball.json", &json!({"ball": {"type": "sphere"}}));
    place.expect(0, &["export", "ball.json", "-o", "ball.ply", "-q"]);
    let mesh = json!({"ball": {"type": "ply", "filename": "ball.ply"}});
    place.write("mesh.json", &mesh);
    fs::copy(place.path("ball.ply"), place.path("run/final/ball.ply")).expect("copied");
    let read = "ball.ply: is read by this command, and would be lost";
    let before = fs::read(place.path("ball.ply")).expect("there");
    let (_, err) = place.expect(2, &["export", "mesh.json", "-o", "ball.ply", "--force"]);
    assert!(err.contains(read), "{err}");
    assert_eq!(fs::read(place.path("ball.ply")).expect("there"), before);
    let words = [
        "export",
        "scene.json",
        "--parameters",
        "run/final",
        "-o",
        "run/final/ball.ply",
        "--force",
    ];
    assert!(place.expect(2, &words).1.contains(read));
    // The grid of a cloud lies where the values of the run would go, by the same name.
    let grid = |values: &Value| {
        json!({
            "cloud": {"type": "cube", "bsdf": {"type": "null"}, "interior": {
                "type": "heterogeneous", "sigma_t": values
            }},
            "integrator": {"type": "volpath", "max_depth": 3},
            "camera": {"type": "perspective", "to_world": [{"translate": [0, 0, -5]}],
                "film": {"type": "hdrfilm", "width": 4, "height": 4}},
            "sky": {"type": "constant", "radiance": 1},
            "optimize": {
                "references": {"type": "constant", "value": 0.3}, "iterations": 2,
                "parameters": {"cloud.interior.sigma_t": {"learning_rate": 0.1}}
            }
        })
    };
    place.write(
        "cloud.json",
        &grid(&json!({"type": "gridvolume", "resolution": [2, 2, 2], "value": 1.5})),
    );
    place.expect(0, &["optimize", "cloud.json", "-q", "-o", "cloudy"]);
    fs::create_dir(place.path("c_files")).expect("a folder can be made");
    let file = "c_files/cloud.interior.sigma_t.vol";
    fs::copy(place.path("cloudy/final/cloud.interior.sigma_t.vol"), place.path(file)).expect("copied");
    place.write("c.json", &grid(&json!({"type": "gridvolume", "filename": file})));
    place.expect(0, &["optimize", "c.json", "-q", "-o", "again"]);
    let before = fs::read(place.path(file)).expect("there");
    let export = ["export", "c.json", "--parameters", "again/final", "-q", "-o"];
    let (_, err) = place.expect(2, &[&export[..], &["c.xml"]].concat());
    assert!(err.contains(&format!("{file}: is read by this command")), "{err}");
    assert_eq!(fs::read(place.path(file)).expect("there"), before);
    place.expect(0, &[&export[..], &["d.xml"]].concat());
    place.expect(0, &["export", "c.json", "-q", "-o", "c.xml"]);
}

#[test]
fn derivatives_are_not_written_over_the_values_that_they_are_of() {
    let place = Place::new();
    place.expect(0, &["optimize", "scene.json", "--iterations", "2", "-q", "-o", "run"]);
    place.expect(0, &[&RENDER[..6], &["-q", "-o", "adjoint"]].concat());
    let before = contents(&place.path("run/final"));
    let from = ["--parameters", "run/final", "--device", "cpu", "-q"];
    let adjoint = [
        "backpropagate",
        "scene.json",
        "--spp",
        "1",
        "--adjoint",
        "adjoint/a.exr",
    ];
    let check = ["gradcheck", "scene.json", "--entries", "1", "--loss", "mean"];
    let lost = "holds the values of --parameters, which would be lost under the derivatives";
    for (command, flag) in [(&adjoint[..], "-o"), (&check[..], "--write")] {
        let (_, err) = place.expect(2, &[command, &from, &[flag, "run/final"]].concat());
        assert!(err.contains(lost), "{err}");
        place.expect(0, &[command, &from, &[flag, "derivatives"]].concat());
    }
    assert_eq!(contents(&place.path("run/final")), before);
    // A scene that itself reads a file named after a parameter.
    let mut started = scene();
    started["object"]["interior"]["sigma_t"] =
        json!({"type": "gridvolume", "filename": "run/final/object.interior.sigma_t.vol"});
    started["optimize"]["parameters"]["object.interior.sigma_t"] = json!({"learning_rate": 0.2});
    started["optimize"]["stages"] = json!([]);
    place.write("scene.json", &started);
    let (_, err) = place.expect(
        2,
        &[&adjoint[..], &["--device", "cpu", "-q", "-o", "run/final"]].concat(),
    );
    assert!(
        err.contains("run/final/object.interior.sigma_t.vol: is read by this command"),
        "{err}"
    );
    assert_eq!(contents(&place.path("run/final")), before);
}

#[test]
fn a_plot_is_written_over_no_other_file() {
    let place = Place::new();
    let before = fs::read(place.path("scene.json")).expect("there");
    let (_, err) = place.expect(2, &["bench", "estimators", "--plot", "scene.json"]);
    assert!(err.contains("scene.json: a plot is an SVG"), "{err}");
    assert_eq!(fs::read(place.path("scene.json")).expect("there"), before);
}

/// Links and pipes stay what they are.
#[cfg(unix)]
#[test]
fn a_file_is_written_where_its_link_leads() {
    use std::os::unix::fs::FileTypeExt;
    let place = Place::new();
    place.write("ball.json", &json!({"ball": {"type": "sphere"}}));
    fs::create_dir(place.path("inner")).expect("a folder can be made");
    std::os::unix::fs::symlink("inner/ball.ply", place.path("link.ply")).expect("a link");
    place.expect(0, &["export", "ball.json", "-o", "link.ply", "-q", "--force"]);
    assert!(place.path("link.ply").is_symlink() && place.path("inner/ball.ply").is_file());
    let pipe = place.path("pipe.ply");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("a tool of all systems").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).expect("readable")
    });
    place.expect(0, &["export", "ball.json", "-o", "pipe.ply", "-q", "--force"]);
    assert_eq!(
        reader.join().expect("a reader"),
        fs::read(place.path("inner/ball.ply")).expect("there")
    );
    assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());
}

/// Names on Linux are bytes; those that are no text are shown with marks in their place.
#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"r_\xff");
    let mut command = place.command(&["optimize", "scene.json", "--iterations", "1", "-q", "-o"]);
    let output = command.arg(name).output().expect("the program starts");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(place.folder.path().join(name).join("final").is_dir());
}
