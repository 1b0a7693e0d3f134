//! Commands that make pictures and pages, in a fresh folder: the files that they write and keep, and what they refuse.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

const SCENE: &str = r#"{
    "object": {
        "type": "cube", "bsdf": {"type": "null"},
        "interior": {
            "type": "radiance_field", "sh_degree": 0,
            "sigma_t": {"type": "blobs", "resolution": 8, "blobs": [{"center": [0.4, 0.5, 0.6], "radius": 0.2, "value": 8}]},
            "sh_coeffs": [2, 1, 0.5]
        }
    },
    "sky": {"type": "constant", "radiance": 0.2},
    "camera": {
        "type": "perspective", "fov": 40,
        "to_world": [{"look_at": {"origin": [0, 1, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
        "film": {"type": "hdrfilm", "width": 24, "height": 16, "rfilter": {"type": "box"}}
    },
    "optimize": {
        "parameters": {"object.interior.sigma_t": {}},
        "references": {"type": "constant", "value": 0.5},
        "iterations": 12,
        "output": {"images_every": 4, "checkpoint_seconds": 0}
    }
}"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("scene.json"), SCENE).expect("writable");
    folder
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"));
    command.args(arguments.split(' ')).current_dir(folder);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().expect("starts")
}

/// Runs the program with this on its standard input.
fn run_on(folder: &Path, arguments: &str, input: &str) -> Output {
    let mut child = command(folder, arguments).spawn().expect("starts");
    let mut pipe = child.stdin.take().expect("piped");
    pipe.write_all(input.as_bytes()).expect("read");
    drop(pipe);
    child.wait_with_output().expect("ends")
}

#[track_caller]
fn done(folder: &Path, arguments: &str) -> String {
    let output = run(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn written(file: &Path) -> SystemTime {
    fs::metadata(file)
        .and_then(|m| m.modified())
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

#[test]
fn a_turntable_goes_on_where_it_stopped() {
    let folder = folder();
    let at = |name: &str| folder.path().join("t").join(name);
    let command = "render scene.json --turntable 5 --spp 1 --device cpu -o t";
    assert_eq!(done(folder.path(), command), "t/turntable.png\n");
    let first = image::open(at("frame_0000.png")).expect("a frame");
    assert_eq!((first.width(), first.height()), (24, 16));
    assert_ne!(
        first,
        image::open(at("frame_0002.png")).expect("a frame"),
        "the camera moves"
    );
    let decoder = png::Decoder::new(std::io::BufReader::new(
        fs::File::open(at("turntable.png")).expect("there"),
    ));
    let reader = decoder.read_info().expect("a PNG");
    assert_eq!(reader.info().animation_control().map(|a| a.num_frames), Some(5));

    let (kept, lost) = (
        written(&at("frame_0001.png")),
        fs::read(at("frame_0003.png")).expect("there"),
    );
    fs::remove_file(at("frame_0003.png")).expect("removable");
    done(folder.path(), command);
    assert_eq!(written(&at("frame_0001.png")), kept, "what is there is kept");
    assert_eq!(
        fs::read(at("frame_0003.png")).expect("there"),
        lost,
        "and what is not is made again"
    );
    done(folder.path(), &format!("{command} --set sky.radiance=0.4"));
    assert_ne!(written(&at("frame_0001.png")), kept, "another scene has other frames");
    done(folder.path(), &format!("{command} --scale 2"));
    let larger = image::open(at("frame_0000.png")).expect("a frame");
    assert_eq!((larger.width(), larger.height()), (48, 32), "and so has another film");
    let way = r#"[{"origin": [0, 0, 4], "target": [0, 0, 0]}, {"origin": [4, 0, 1], "target": [0, 0, 0]}]"#;
    fs::write(folder.path().join("way.json"), way).expect("writable");
    done(
        folder.path(),
        "render scene.json --turntable 3 --path way.json --spp 1 --device cpu -o w",
    );
}

/// A shorter turntable leaves no frame of the longer one before it, and no other file is lost.
#[test]
fn a_turntable_leaves_no_frames_beyond_its_last() {
    let folder = folder();
    let at = |name: &str| folder.path().join("t").join(name);
    fs::create_dir(at("")).expect("writable");
    fs::write(at("frame_0002.png"), "another's").expect("writable");
    let turn = |frames: u32| {
        done(
            folder.path(),
            &format!("render scene.json --turntable {frames} --spp 1 --device cpu -o t"),
        )
    };
    turn(2);
    assert!(at("frame_0002.png").is_file(), "it was there without a note");
    turn(4);
    fs::write(at("frame_0007.png"), "another's").expect("writable");
    turn(3);
    let there = ["frame_0002.png", "frame_0003.png", "frame_0007.png"].map(|name| at(name).is_file());
    assert_eq!(there, [true, false, true]);
}

#[test]
fn a_turntable_goes_around_meshes() {
    let folder = folder();
    let corners = "v 9 0 0\nv 11 0 0\nv 10 2 0\nv 10 1 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
    fs::write(folder.path().join("mesh.obj"), corners).expect("writable");
    let scene = r#"{
        "mesh": {"type": "obj", "filename": "mesh.obj", "bsdf": {"type": "diffuse", "reflectance": 0}},
        "sky": {"type": "constant", "radiance": 1},
        "camera": {
            "type": "perspective", "fov": 40,
            "to_world": [{"look_at": {"origin": [0, 1, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 17, "height": 17, "rfilter": {"type": "box"}}
        }
    }"#;
    fs::write(folder.path().join("mesh.json"), scene).expect("writable");
    done(
        folder.path(),
        "render mesh.json --turntable 3 --spp 4 --device cpu -o m",
    );
    for frame in 0..3 {
        let file = folder.path().join(format!("m/frame_{frame:04}.png"));
        let image = image::open(&file).expect("a frame").into_luma8();
        assert!(image.get_pixel(8, 8).0[0] < 50, "frame {frame} looks at the black mesh");
        let border = (0..17).flat_map(|i| [(i, 0), (i, 16), (0, i), (16, i)]);
        for (x, y) in border {
            assert!(image.get_pixel(x, y).0[0] > 200, "frame {frame} sees all of it");
        }
    }
    let told = done(folder.path(), "info mesh.json --json");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["bounds"]["low"], serde_json::json!([9.0, 0.0, 0.0]));
    fs::write(folder.path().join("mesh.obj"), "v 0 0\n").expect("writable");
    let refused = run(folder.path(), "render mesh.json --turntable 3");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("mesh.obj: line 1"));
}

#[test]
fn derivatives_are_pictures_and_agree_with_differences() {
    let folder = folder();
    for by in ["--scale", "--shift 0,1,0", "--index 3,4,4,0", "--channel 0"] {
        let command = format!("gradient scene.json --parameter object.interior.sigma_t {by} --spp 2 --json -o g");
        let told: serde_json::Value = serde_json::from_str(&done(folder.path(), &command)).expect("JSON");
        assert!(told["largest"].as_f64().is_some_and(|v| v > 0.0), "{told}");
        assert!(told["relative_difference"].as_f64().is_some_and(|v| v < 1e-6), "{told}");
    }
    assert!(folder.path().join("g/object.interior.sigma_t_channel_0.png").is_file());
    let picture = image::open(folder.path().join("g/object.interior.sigma_t_scale.png"))
        .expect("a picture")
        .into_rgb8();
    let corner = picture.get_pixel(0, 0).0;
    assert!(
        corner[0] == corner[1] && corner[1] == corner[2],
        "nothing changes beside the cube: grey"
    );
    done(
        folder.path(),
        "gradient scene.json --parameter object.interior.sigma_t --loss --device cpu -o g",
    );
    assert!(folder.path().join("g/object.interior.sigma_t_loss_x.png").is_file());
    let refused = run(folder.path(), "gradient scene.json --parameter object.interior.sigma_t");
    assert_eq!(refused.status.code(), Some(2), "by what is not said");
}

#[test]
fn a_report_is_made_by_the_run_and_again_afterwards() {
    let folder = folder();
    done(folder.path(), "optimize scene.json --device cpu --quiet -o run");
    let file = folder.path().join("run/report.html");
    let first = fs::read_to_string(&file).expect("the run leaves a report");
    assert!(first.contains(">finished<") && first.contains("data:image/png;base64,"));
    for elsewhere in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!first.contains(elsewhere), "{elsewhere}");
    }
    fs::remove_file(&file).expect("removable");
    done(folder.path(), "report run");
    assert_eq!(
        fs::read_to_string(&file).expect("made again"),
        first,
        "the page is a function of the folder"
    );
    assert_eq!(done(folder.path(), "report run -o -"), first);
    let refused = run(folder.path(), "report .");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && told.contains("holds no run") && told.contains("./run?"),
        "{told}"
    );
}

#[test]
fn standard_input_and_output_stand_for_files() {
    let folder = folder();
    let output = run_on(folder.path(), "render - --device cpu --spp 1 -o -", SCENE);
    let picture = image::load_from_memory(&output.stdout).expect("a picture and nothing else");
    assert_eq!((picture.width(), picture.height()), (24, 16));
}

#[test]
fn a_run_of_standard_input_goes_on_by_its_folder() {
    let folder = folder();
    let references = r#""references": {"type": "scene", "filename": "scene.json", "spp": 1}"#;
    let scene = SCENE.replace(r#""references": {"type": "constant", "value": 0.5}"#, references);
    let words = "optimize - --device cpu -o run --set sky.radiance=0.3";
    let output = run_on(folder.path(), words, &scene);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("next: prbopt render run/scene.json --parameters run/final"),
        "{told}"
    );
    done(
        folder.path(),
        "optimize run/scene.json --resume -o run --iterations 14 --device cpu --quiet",
    );
    let metrics = fs::read_to_string(folder.path().join("run/metrics.jsonl")).expect("there");
    assert!(metrics.contains("\"iteration\":14,"), "{metrics}");
}

#[test]
fn readers_may_go_away() {
    let folder = folder();
    done(folder.path(), "render scene.json --spp 1 --device cpu -o a.exr");
    for words in [
        "compare a.exr a.exr",
        "gradcheck scene.json --entries 1 --device cpu",
        "bench --resolution 4 --image 4 --iterations 1 --device cpu",
    ] {
        let mut child = command(folder.path(), words).spawn().expect("starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {told}");
    }
}

#[test]
fn a_scene_is_summed_up_as_a_tree() {
    let folder = folder();
    let tree = done(
        folder.path(),
        "info scene.json --set object.interior.sigma_t.resolution=16",
    );
    assert!(tree.contains("├─ ") && tree.contains("size: 16 × 16 × 16"), "{tree}");
    done(folder.path(), "info scene.json --preview --device cpu");
    let preview = image::open(folder.path().join("scene.preview.png")).expect("a preview");
    assert_eq!((preview.width(), preview.height()), (256, 171));
}

/// A rectangle of albedo (0.1, 0.2, 0.3) behind a smaller one, both seen along parallel rays from z = 4.
const SCREENS: &str = r#"{
    "integrator": {"type": "aov",
        "aovs": "d:depth,a:albedo,p:position,u:uv,g:geo_normal,s:sh_normal,i:shape_index,x:dp_du,y:dp_dv,n:prim_index,k:duv_dx,l:duv_dy"},
    "film": {"type": "hdrfilm", "width": 8, "height": 4, "pixel_format": "rgba", "rfilter": {"type": "box"}},
    "pair": {
        "type": "batch", "film": {"type": "ref", "id": "film"},
        "left": {"type": "orthographic", "to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 180}}, {"translate": [0, 0, 4]}]},
        "right": {"type": "orthographic", "to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 180}}, {"translate": [9, 0, 4]}]}
    },
    "wall": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance": [0.1, 0.2, 0.3]}},
    "tile": {"type": "rectangle", "to_world": [{"scale": 0.5}, {"translate": [0, 0, 1]}], "bsdf": {"type": "diffuse"}},
    "lamp": {"type": "directional", "direction": [0, 0, -1]}
}"#;

/// The values of a channel of an EXR file, row by row.
fn channel(file: &Path, name: &str) -> Vec<f32> {
    let image = exr::prelude::read_all_flat_layers_from_file(file).expect("an EXR file");
    let list = &image.layer_data[0].channel_data.list;
    let found = list.iter().find(|channel| channel.name.eq(name));
    found
        .unwrap_or_else(|| panic!("no {name}"))
        .sample_data
        .values_as_f32()
        .collect()
}

/// The left half of the film shows the screens, the right half nothing.
#[test]
fn first_surfaces_stand_beside_the_picture() {
    let folder = folder();
    fs::write(folder.path().join("screens.json"), SCREENS).expect("writable");
    done(
        folder.path(),
        "render screens.json --device cpu --spp 4 --sensor pair -o out.exr -q",
    );
    let file = folder.path().join("out.exr");
    // The middle of the tile, a place on the wall beside it, and nothing.
    let [tile, wall, nothing] = [8 + 1, 8, 8 + 5];
    let expect = |name: &str, expected: [f32; 3]| {
        let found = channel(&file, name);
        assert_eq!(found.len(), 32);
        for (at, expected) in [tile, wall, nothing].into_iter().zip(expected) {
            assert!(
                (found[at] - expected).abs() < 1e-4,
                "{name}: {} is not {expected}",
                found[at]
            );
        }
    };
    expect("d.T", [2.99, 3.99, 0.0]);
    expect("a.R", [0.5, 0.1, 0.0]);
    expect("a.B", [0.5, 0.3, 0.0]);
    expect("p.Z", [1.0, 0.0, 0.0]);
    expect("g.Z", [1.0, 1.0, 0.0]);
    expect("s.X", [0.0, 0.0, 0.0]);
    expect("i.I", [2.0, 1.0, 0.0]);
    expect("x.X", [1.0, 2.0, 0.0]);
    expect("x.Y", [0.0, 0.0, 0.0]);
    expect("y.Y", [1.0, 2.0, 0.0]);
    expect("n.I", [0.0, 0.0, 0.0]);
    // Pixels are half a unit wide; derivatives are for the square root of four samples. Columns go along x, rows against y.
    expect("k.U", [0.25, 0.125, 0.0]);
    expect("k.V", [0.0, 0.0, 0.0]);
    expect("l.U", [0.0, 0.0, 0.0]);
    expect("l.V", [-0.25, -0.125, 0.0]);
    expect("A", [1.0, 1.0, 0.0]);
    // Light of irradiance one falls straight down.
    expect("G", [0.5, 0.2, 0.0].map(|x| x / std::f32::consts::PI));
    // The mean over the pixel from -1/2 to 0 of the tile, and from -1 to -1/2 of the wall, which x runs along.
    let u = channel(&file, "u.U");
    assert!(
        (u[tile] - 0.25).abs() < 0.25 && (u[wall] - 0.125).abs() < 0.125,
        "{} {}",
        u[tile],
        u[wall]
    );
}

/// Whether a sky that the camera sees counts for alpha is a matter of the integrator, as in Mitsuba.
#[test]
fn alpha_of_what_lies_behind_follows_the_integrator() {
    let folder = folder();
    let scene = |integrator: &str| {
        let ball = r#""ball": {"type": "sphere"}, "sky": {"type": "constant"}"#;
        let sensor = r#""camera": {"type": "perspective", "to_world": [{"translate": [0, 0, -6]}],
            "film": {"type": "hdrfilm", "width": 5, "height": 5, "pixel_format": "rgba", "rfilter": {"type": "box"}}}"#;
        format!(r#"{{"integrator": {{"type": "{integrator}"}}, {sensor}, {ball}}}"#)
    };
    let rules = [
        ("path", 1.0),
        ("volpath", 1.0),
        ("prbvolpath", 1.0),
        ("ptracer", 1.0),
        ("prb", 0.0),
        ("prb_basic", 0.0),
        ("direct", 0.0),
    ];
    for (integrator, corner) in rules {
        fs::write(folder.path().join("sky.json"), scene(integrator)).expect("writable");
        done(folder.path(), "render sky.json --device cpu --spp 4 -o sky.exr -q");
        let alpha = channel(&folder.path().join("sky.exr"), "A");
        assert_eq!([alpha[0], alpha[12]], [corner, 1.0], "{integrator}");
    }
}

/// Triangles are counted in their file, and channels of an irradiance meter are not weighed like its irradiance.
#[test]
fn triangles_are_counted_and_meters_see_surfaces_as_they_are() {
    let folder = folder();
    let mesh = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/meshes/octahedron.obj");
    for (side, face) in [([2, 2, 2], 0.0), ([-2, -2, -2], 6.0)] {
        let scene = format!(
            r#"{{"integrator": {{"type": "aov", "aovs": "n:prim_index"}}, "gem": {{"type": "obj", "filename": {mesh:?}}},
                "camera": {{"type": "perspective", "fov": 3, "to_world": [{{"look_at": {{"origin": {side:?}, "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 3, "height": 3, "rfilter": {{"type": "box"}}}}}}}}"#
        );
        fs::write(folder.path().join("gem.json"), scene).expect("writable");
        done(folder.path(), "render gem.json --device cpu --spp 1 -o gem.exr -q");
        assert_eq!(channel(&folder.path().join("gem.exr"), "n.I")[4], face, "{side:?}");
    }
    let meter = r#"{"integrator": {"type": "aov", "aovs": "d:depth"}, "dome": {"type": "sphere", "radius": 3,
        "emitter": {"type": "area"}, "flip_normals": true},
        "pad": {"type": "disk", "to_world": [{"scale": 0.001}],
            "sensor": {"type": "irradiancemeter", "film": {"type": "hdrfilm", "width": 1, "height": 1, "rfilter": {"type": "box"}}}}}"#;
    fs::write(folder.path().join("meter.json"), meter).expect("writable");
    done(folder.path(), "render meter.json --device cpu --spp 64 -o meter.exr -q");
    let depth = channel(&folder.path().join("meter.exr"), "d.T")[0];
    assert!((depth - 3.0).abs() < 0.02, "{depth}");
}

/// Under a sky of radiance one: π outside, and inside a cylinder of radius 1/2 and length 2 what its ends let in,
/// π (1 − F)/4 with F = 9 − √80 from end to end; nothing inside a cube.
#[test]
fn irradiance_is_measured_on_cylinders_and_cubes() {
    use std::f64::consts::PI;
    let folder = folder();
    let tube = r#""type": "cylinder", "p0": [0, 0, -1], "p1": [0, 0, 1], "radius": 0.5"#;
    let cube = r#""type": "cube""#;
    let inside = 0.25 * PI * (80f64.sqrt() - 8.0);
    for (shape, flip, expected) in [
        (tube, false, PI),
        (tube, true, inside),
        (cube, false, PI),
        (cube, true, 0.0),
    ] {
        let scene = format!(
            r#"{{"integrator": {{"type": "path"}}, "sky": {{"type": "constant"}}, "body": {{{shape}, "flip_normals": {flip},
                "to_world": [{{"rotate": {{"axis": [1, 1, 0], "angle": 40}}}}, {{"translate": [3, 0, 1]}}],
                "bsdf": {{"type": "diffuse", "reflectance": 0}},
                "sensor": {{"type": "irradiancemeter", "film": {{"type": "hdrfilm", "width": 1, "height": 1, "rfilter": {{"type": "box"}}}}}}}}}}"#
        );
        fs::write(folder.path().join("meter.json"), scene).expect("writable");
        done(
            folder.path(),
            "render meter.json --device cpu --spp 65536 -o meter.exr -q",
        );
        let found = f64::from(channel(&folder.path().join("meter.exr"), "G")[0]);
        // Seven standard errors of so many independent samples, each π or zero.
        let error = 7.0 * (expected * (PI - expected).max(0.0) / 65536.0).sqrt() + 1e-3;
        assert!(
            (found - expected).abs() < error,
            "{shape}, {flip}: {found}, not {expected}"
        );
    }
}

/// A sample sees the lamp or nothing, so that the mean square is the lamp's radiance times the mean.
#[test]
fn moments_stand_beside_the_picture() {
    let folder = folder();
    let scene = r#"{
        "integrator": {"type": "moment", "block_size": 8, "seen": {"type": "path", "samples_per_pass": 1}},
        "camera": {
            "type": "orthographic", "to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 180}}, {"translate": [0, 0, 4]}],
            "shutter_open": 0, "film": {"type": "hdrfilm", "width": 3, "height": 3, "rfilter": {"type": "box"}}
        },
        "lamp": {
            "type": "rectangle", "to_world": {"scale": 0.8}, "silhouette_sampling_weight": 1,
            "emitter": {"type": "area", "radiance": [3, 1, 2]}
        }
    }"#;
    fs::write(folder.path().join("scene.json"), scene).expect("writable");
    done(folder.path(), "render scene.json --device cpu --spp 64 -o out.exr -q");
    let [mean, square, green] = ["seen.Y", "m2_seen.Y", "G"].map(|name| channel(&folder.path().join("out.exr"), name));
    let luminance = 3.0 * 0.212_671 + 0.715_160 + 2.0 * 0.072_169;
    for pixel in 0..9 {
        assert!((square[pixel] - luminance * mean[pixel]).abs() < 1e-5, "{pixel}");
        assert!((mean[pixel] - luminance * green[pixel]).abs() < 1e-5, "{pixel}");
    }
    assert!((green[4] - 1.0).abs() < 1e-6, "the middle is full");
    let half = green.iter().filter(|mean| (0.2..0.95).contains(*mean)).count();
    assert_eq!(half, 8, "{green:?}");
}

/// A pixel shows the background's radiance, so that its gradient is the sum of the adjoint image.
#[test]
fn an_adjoint_image_becomes_gradients() {
    use prbopt::io::{Image, image};
    let folder = folder();
    let scene = r#"{"sky": {"type": "constant", "radiance": 0.2},
        "camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 20, "height": 18, "rfilter": {"type": "box"}}}}"#;
    fs::write(folder.path().join("sky.json"), scene).expect("writable");
    let mut adjoint = Image {
        width: 20,
        height: 18,
        channels: 3,
        data: [1.0, -2.0, 0.5].repeat(360),
    };
    adjoint.data[3 * 57] = 11.0;
    image::write_exr(&folder.path().join("delta.exr"), &adjoint).expect("writable");
    done(
        folder.path(),
        "backpropagate sky.json --adjoint delta.exr --device cpu --spp 4 -o slopes",
    );
    let text = fs::read_to_string(folder.path().join("slopes/sky.radiance.json")).expect("written");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (c, expected) in [370.0, -720.0, 180.0].into_iter().enumerate() {
        let value = found["value"][c].as_f64().expect("a number");
        assert!((value - expected).abs() < 1e-2, "{found}");
    }
    adjoint.data[5] = f32::NAN;
    image::write_exr(&folder.path().join("delta.exr"), &adjoint).expect("writable");
    image::write_png(&folder.path().join("coded.exr"), &adjoint).expect("writable");
    std::fs::write(
        folder.path().join("bright.exr"),
        "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\0\0\0\0",
    )
    .expect("writable");
    for (file, wrong) in [
        (
            "delta.exr",
            "delta.exr: is NaN in column 1 of row 0; give finite numbers",
        ),
        ("none.exr", "none.exr: cannot be opened"),
        ("coded.exr", "coded.exr: is no .exr file"),
        ("bright.exr", "bright.exr: is no .exr file"),
        ("sky.json", "sky.json: is no .exr file"),
    ] {
        let output = run(folder.path(), &format!("backpropagate sky.json --adjoint {file}"));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(wrong), "{told}");
    }
}
