//! What the program refuses or warns of before anything is lost: finished runs, inputs, options in vain, values that mean
//! nothing.

use super::*;

/// A finished run is not begun anew, shortened or given another target by `--resume`.
#[test]
fn a_finished_run_is_not_lost_by_resuming_it() {
    let place = Place::new();
    let (_, err) = place.expect(0, &["optimize", "scene.json", "--iterations", "4", "-o", "run"]);
    let found = place.json("run/final/sky.radiance.json")["value"][0]
        .as_f64()
        .expect("a number");
    assert!(err.contains(&format!("  sky.radiance: {found:.4}, ")), "{found}: {err}");
    let before = contents(&place.path("run/final"));
    let resume = ["optimize", "scene.json", "--resume", "-o", "run"];
    let (_, err) = place.expect(2, &[&resume[..], &["--iterations", "3"]].concat());
    assert!(err.contains("has made 4 iterations, more than --iterations 3"), "{err}");
    let mut brighter = target();
    brighter["sky"]["radiance"] = json!(0.75);
    place.write("target.json", &brighter);
    let (_, err) = place.expect(2, &resume);
    assert!(err.contains("its target has been changed"), "{err}");
    place.write("target.json", &target());
    fs::remove_file(place.path("run/checkpoint.safetensors")).expect("there");
    let (_, err) = place.expect(2, &resume);
    assert!(err.contains("is not there, but the results of the run are"), "{err}");
    assert_eq!(contents(&place.path("run/final")), before);
    let (_, err) = place.expect(2, &["optimize", "scene.json", "-o", "."]);
    assert!(err.contains("in the place of the one that it is made from"), "{err}");
}

/// What a command reads is not written over, and what cannot be written is told before the work.
#[test]
fn inputs_are_not_overwritten() {
    let place = Place::new();
    const RENDER: [&str; 8] = ["render", "scene.json", "--sensor", "a", "--spp", "1", "-q", "-o"];
    place.expect(0, &[&RENDER[..], &["a.exr"]].concat());
    let scene = fs::read(place.path("scene.json")).expect("there");
    let picture = fs::read(place.path("a.png")).expect("there");
    let mut mapped = self::scene();
    mapped["sky"] = json!({"type": "envmap", "filename": "a.exr"});
    mapped.as_object_mut().expect("an object").remove("optimize");
    place.write("mapped.json", &mapped);
    for (arguments, expected) in [
        (
            &["render", "mapped.json", "--sensor", "b", "--spp", "1", "-o", "a.png"][..],
            "a.exr: is read by this command, and would be lost",
        ),
        (
            &["compare", "a.png", "a.png", "--difference", "a.png"],
            "a.png: is read by this command, and would be lost",
        ),
        (
            &["compare", "a.png", "a.png", "--difference", "d.jpg"],
            "d.jpg: a difference is a PNG",
        ),
        (&["report", ".", "-o", "scene.json"], "scene.json: a report is a page"),
    ] {
        let (_, err) = place.expect(2, arguments);
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
    assert_eq!(fs::read(place.path("scene.json")).expect("there"), scene);
    assert_eq!(fs::read(place.path("a.png")).expect("there"), picture);
    fs::create_dir(place.path("b.png")).expect("a folder can be made");
    let (_, err) = place.expect(2, &[&RENDER[..], &["b.exr"]].concat());
    assert!(err.contains("b.png: cannot be written: it is a folder"), "{err}");
    assert!(!place.path("b.exr").exists());
}

/// Options of `import` that mean nothing for its input are refused, and so are inputs that need another option.
#[test]
fn imports_take_no_option_in_vain() {
    let place = Place::new();
    place.write("a.json", &json!({"ball": {"type": "sphere"}}));
    place.expect(0, &["export", "a.json", "-o", "a.glb", "-q"]);
    place.expect(0, &["export", "a.json", "-o", "a.xml", "-q"]);
    place.expect(
        0,
        &[
            "render",
            "scene.json",
            "--sensor",
            "a",
            "--spp",
            "1",
            "-q",
            "-o",
            "a.exr",
        ],
    );
    for (arguments, expected) in [
        (
            &["a.glb", "--hold-out", "3"][..],
            "--hold-out: is not for a scene of glTF, as a.glb is",
        ),
        (
            &["a.xml", "--linear"],
            "--linear: is not for a Mitsuba scene, as a.xml is",
        ),
        (
            &["a.png", "--splats", "9", "-D", "x=1"],
            "--define: is not for a picture, as a.png is",
        ),
        (&["a.png"], "a.png: is a picture, which is imported as splats"),
        (&["scene.json"], "scene.json: is a scene already"),
        (&["nowhere"], "nowhere: there is no such file or folder"),
    ] {
        let (_, err) = place.expect(2, &[&["import"], arguments, &["-o", "b.json"]].concat());
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

/// Neither a log on a full disk nor a reader that has gone away ends a command; output that is lost makes the exit code 2.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_the_streams_ends_no_command() {
    let place = Place::new();
    let full = || {
        Stdio::from(
            fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .expect("a device of Linux"),
        )
    };
    let run = ["optimize", "scene.json", "--iterations", "3", "-o", "run"];
    let status = place.command(&run).stderr(full()).status().expect("the program starts");
    assert_eq!(status.code(), Some(0));
    assert!(place.path("run/final").is_dir());
    let status = place.command(&["render", "none.json"]).stderr(full()).status();
    assert_eq!(status.expect("the program starts").code(), Some(2));
    for arguments in [&["schema"][..], &["--help"], &["render", "--help"], &["--version"]] {
        let output = place.command(arguments).stdout(full()).stderr(Stdio::piped()).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output could not be written"));
    }
}

/// An endless stream is read up to the largest size of a file of its kind, and refused.
#[cfg(unix)]
#[test]
fn endless_streams_are_refused() {
    let place = Place::new();
    let path = ["render", "scene.json", "--turntable", "2", "--path", "/dev/zero"];
    for arguments in [&["render", "/dev/zero"][..], &path] {
        let (_, err) = place.expect(2, arguments);
        assert!(
            err.contains("/dev/zero: cannot be read") && err.contains("it has more than"),
            "{err}"
        );
    }
}

/// An image of glTF without the `uri` or the `mimeType` that the reader needs is refused.
#[test]
fn images_of_gltf_say_where_they_are() {
    let place = Place::new();
    let bytes = json!([{"byteLength": 4, "uri": "data:application/octet-stream;base64,AAAAAA=="}]);
    let views = json!([{"buffer": 0, "byteLength": 4}]);
    for (image, lacking) in [(json!({}), "uri"), (json!({"bufferView": 0}), "mimeType")] {
        let asset = json!({"version": "2.0"});
        place.write(
            "a.gltf",
            &json!({"asset": asset, "buffers": bytes, "bufferViews": views, "images": [image]}),
        );
        let (_, err) = place.expect(2, &["import", "a.gltf", "-o", "b.json"]);
        assert!(err.contains(&format!("image 0 has no `{lacking}`")), "{err}");
    }
}

/// A ball of this BSDF under a white sky.
fn ball(bsdf: Value) -> Value {
    json!({
        "type": "scene",
        "integrator": {"type": "path", "max_depth": 3},
        "camera": {
            "type": "perspective",
            "to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 4, "height": 4}
        },
        "ball": {"type": "sphere", "bsdf": bsdf},
        "sky": {"type": "constant", "radiance": 1}
    })
}

#[test]
fn a_parameter_is_named_once() {
    let place = Place::new();
    let mut twice = scene();
    twice["optimize"]["parameters"]["sky.radiance.value"] = json!({"learning_rate": 0.5});
    place.write("scene.json", &twice);
    let (_, err) = place.expect(2, &["optimize", "scene.json", "-o", "run"]);
    assert!(
        err.contains("`sky.radiance.value` is `sky.radiance`, which stands there already"),
        "{err}"
    );
}

#[test]
fn values_from_a_folder_are_possible() {
    let place = Place::new();
    let grey = json!({"type": "rgb", "value": [0.5, 0.5, 0.5]});
    place.write("ball.json", &ball(json!({"type": "diffuse", "reflectance": grey})));
    fs::create_dir(place.path("found")).expect("a folder can be made");
    let render = [
        "render",
        "ball.json",
        "--device",
        "cpu",
        "--spp",
        "1",
        "--parameters",
        "found",
        "-o",
        "a.exr",
    ];
    for (red, code) in [(0.75, 0), (1.5, 2), (-0.5, 2)] {
        place.write("found/ball.bsdf.reflectance.json", &json!({"value": [red, 0.5, 0.5]}));
        let (_, err) = place.expect(code, &render);
        assert_eq!(
            err.contains("of `ball.bsdf.reflectance` is ") && err.contains(": it must lie between 0 and 1"),
            code == 2,
            "{err}"
        );
    }
    place.write("ball.json", &ball(json!({"type": "roughconductor", "alpha": 0.1})));
    fs::create_dir(place.path("rough")).expect("a folder can be made");
    let render = render.map(|word| if word == "found" { "rough" } else { word });
    for (alpha, told) in [
        (0.2, ""),
        (0.0, "channel 0 of `ball.bsdf.alpha` is 0: it must be positive"),
    ] {
        place.write("rough/ball.bsdf.alpha.json", &json!({"value": [alpha]}));
        let (_, err) = place.expect(if told.is_empty() { 0 } else { 2 }, &render);
        assert!(err.contains(told), "{err}");
    }
}

/// Files of `--parameters` that belong to no parameter are warned of; one of a shape's place is refused, as places are parameters
/// only where the scene says so.
#[test]
fn files_of_no_parameter_are_not_left_aside_in_silence() {
    let place = Place::new();
    place.write("ball.json", &ball(json!({"type": "diffuse"})));
    fs::create_dir(place.path("found")).expect("a folder can be made");
    place.write("found/ball.bsdf.reflectance.json", &json!({"value": [0.7, 0.5, 0.5]}));
    place.write("found/scene.json", &json!({}));
    let render = |code| {
        let words = ["render", "ball.json", "--device", "cpu", "--spp", "1", "-o", "a.exr"];
        place.expect(code, &[&words[..], &["--parameters", "found"]].concat()).1
    };
    assert!(!render(0).contains("warning"));
    place.write("found/bal.bsdf.reflectance.json", &json!({"value": [0.7, 0.5, 0.5]}));
    let err = render(0);
    let told = "found: left aside, since the scene has no parameter of this name and kind: bal.bsdf.reflectance.json";
    assert!(err.contains(told), "{err}");
    place.write("found/ball.to_world.translate.json", &json!({"value": [0.0, 0.0, 1.0]}));
    let err = render(2);
    let told = "found: holds ball.to_world.translate.json, but the scene has no parameter `ball.to_world.translate`; name it in \
                the block `optimize`, or remove the file";
    assert!(err.contains(told), "{err}");
}

/// Rough transmission by facets of GGX ends at a border that moves with the index, that by facets of Beckmann at none: there is a
/// warning for the former.
#[test]
fn derivatives_that_leave_out_a_border_are_told() {
    let place = Place::new();
    for (bsdf, parameter, expected) in [
        (
            json!({"type": "roughdielectric", "distribution": "ggx", "alpha": 0.3}),
            "ball.bsdf.eta",
            true,
        ),
        (
            json!({"type": "roughdielectric", "distribution": "ggx", "alpha": 0.3}),
            "ball.bsdf.alpha",
            false,
        ),
        (
            json!({"type": "roughdielectric", "distribution": "beckmann", "alpha": 0.3}),
            "ball.bsdf.eta",
            false,
        ),
        (
            json!({"type": "principled", "eta": 1.5, "spec_trans": 0.5}),
            "ball.bsdf.eta",
            true,
        ),
        (json!({"type": "principled", "eta": 1.5}), "ball.bsdf.eta", false),
        (
            json!({"type": "normalmap", "normalmap": {"type": "bitmap", "data": {"resolution": [2, 2], "coin": 3}},
                "b": {"type": "roughdielectric", "distribution": "ggx", "alpha": 0.3}}),
            "ball.bsdf.normalmap",
            true,
        ),
    ] {
        place.write("ball.json", &ball(bsdf.clone()));
        let check = [
            "gradcheck",
            "ball.json",
            "--device",
            "cpu",
            "--entries",
            "1",
            "--parameter",
            parameter,
        ];
        let border = "what facets of `ggx` transmit ends at a border that moves with";
        let err = String::from_utf8(place.run(&check).stderr).expect("text");
        assert_eq!(err.contains(border), expected, "{bsdf}, {parameter}: {err}");
        // Neither derivatives by something else nor a picture needs this, though the parameter is optimised.
        if bsdf["type"] == "roughdielectric" && expected {
            let mut scene = ball(bsdf.clone());
            let references = json!({"type": "constant", "value": 0});
            scene["optimize"] = json!({"parameters": {parameter: {}}, "references": references});
            place.write("ball.json", &scene);
            let alone = check.map(|word| if word == parameter { "ball.bsdf.alpha" } else { word });
            let view = ["render", "ball.json", "--device", "cpu", "--spp", "1", "-o", "a.exr"];
            for (words, expected) in [(&check[..], true), (&check[..6], true), (&alone, false), (&view, false)] {
                let err = String::from_utf8(place.run(words).stderr).expect("text");
                assert_eq!(err.contains(border), expected, "{words:?}: {err}");
            }
        }
    }
}

#[test]
fn pictures_that_are_not_finite_are_told() {
    let place = Place::new();
    for (index, expected) in [(1.5, false), (1e20, true)] {
        place.write("ball.json", &ball(json!({"type": "thindielectric", "int_ior": index})));
        let (_, err) = place.expect(
            0,
            &["render", "ball.json", "--device", "cpu", "--spp", "1", "-o", "a.exr"],
        );
        assert_eq!(err.contains("pixels are not finite"), expected, "{index}: {err}");
    }
}

/// A program without MPI warns if it is one of several tasks of a job: they share no work.
#[cfg(not(feature = "mpi"))]
#[test]
fn tasks_that_share_nothing_are_told() {
    let place = Place::new();
    for (tasks, expected) in [("1", false), ("2", true)] {
        let output = place.command(&["info"]).env("OMPI_COMM_WORLD_SIZE", tasks).output();
        let err = String::from_utf8(output.expect("the program starts").stderr).expect("text");
        assert_eq!(err.contains("which share no work"), expected, "{err}");
    }
}
