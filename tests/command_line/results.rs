//! Commands on the results of a run: renders, and checks of its gradients.

use prbopt::io::{mesh, npy};

use super::*;

#[test]
fn results_are_rendered_at_their_own_resolution() {
    let place = Place::new();
    place.expect(0, &["optimize", "scene.json", "--quiet", "-o", "run"]);
    let mut finer = scene();
    for grid in ["sigma_t", "sh_coeffs"] {
        finer["object"]["interior"][grid]["resolution"] = json!([16, 16, 16]);
    }
    place.write("finer.json", &finer);
    let render = |name: &str, output: &str| {
        let words = [
            "render",
            name,
            "--parameters",
            "run/final",
            "--sensor",
            "d",
            "--spp",
            "2",
            "-o",
            output,
        ];
        place.expect(0, &words);
    };
    render("scene.json", "x/a.exr");
    render("finer.json", "x/b.png");
    for extension in ["exr", "png"] {
        let read = |stem: &str| fs::read(place.path(&format!("x/{stem}.{extension}"))).expect("there");
        assert_eq!(
            read("a"),
            read("b"),
            "the grids' own resolution counts, not the scene's"
        );
    }
    let (out, _) = place.expect(0, &["render", "scene.json", "--sensor", "all", "--spp", "1"]);
    assert_eq!(out.lines().count(), 8, "two files a sensor: {out}");
    assert!(out.lines().all(|file| place.path(file).exists()));
    let initial = fs::read(place.path("renders/scene/d.exr")).expect("there");
    assert_ne!(initial, fs::read(place.path("x/a.exr")).expect("there"));
    let (out, _) = place.expect(0, &["render", "scene.json", "--json", "--sensor", "1"]);
    let event: Value = serde_json::from_str(out.trim()).expect("one line of JSON");
    assert_eq!(event["sensor"], "b");
}

#[test]
fn wrong_requests_to_render_are_told() {
    let place = Place::new();
    place.expect(
        0,
        &["optimize", "scene.json", "--quiet", "--iterations", "2", "-o", "run"],
    );
    fs::remove_file(place.path("run/final/sky.radiance.json")).expect("there");
    fs::remove_file(place.path("run/final/object.interior.sigma_t.vol")).expect("there");
    fs::remove_file(place.path("run/final/object.interior.sigma_t.npy")).expect("there");
    let cases: [(&[&str], &str); 10] = [
        (
            &["--parameters", "run/final"],
            "object.interior.sigma_t.vol, sky.radiance.json",
        ),
        (&["--parameters", "run"], "did you mean run/final"),
        (&["--parameters", "none"], "none: is not a folder"),
        (&["--sensor", "9"], "an index from 0 to 3"),
        (&["--sensor", "all", "-o", "a.exr"], "for 4 sensors"),
        (
            &["--spp", "0"],
            "'--spp <N>': expected a whole number from 1 to 1048576",
        ),
        (&["--spp", "NaN"], "'NaN' for '--spp <N>': expected a whole number"),
        (
            &["--set", "object=null"],
            "`object` is an object; null cannot replace it",
        ),
        (&["--turntable", "2", "-o", "-"], "standard output takes one picture"),
        (&["-o", "a.jpg"], "a.jpg: cannot be written as .jpg"),
    ];
    for (more, expected) in cases {
        let words: Vec<&str> = ["render", "scene.json"].iter().chain(more).copied().collect();
        let (_, err) = place.expect(2, &words);
        assert!(err.contains(expected), "{more:?}: {err}");
    }
    let (_, err) = place.expect(2, &["render", "target.json"]);
    assert!(err.contains("no sensor"), "{err}");
}

/// The gradients of a sound scene pass; a tolerance of zero cannot be met, and a wrong path is an error of usage.
#[test]
fn gradcheck_says_by_its_exit_code_whether_gradients_are_right() {
    let place = Place::new();
    let (out, _) = place.expect(0, &["gradcheck", "scene.json", "--device", "cpu", "--entries", "6"]);
    for expected in [
        "object.interior.sigma_t, mean weights",
        "sky.radiance, random weights",
        "gradcheck passed",
    ] {
        assert!(out.contains(expected), "no `{expected}` in\n{out}");
    }
    let arguments = ["gradcheck", "scene.json", "--entries", "6", "--tolerance", "0"];
    let (out, _) = place.expect(1, &arguments);
    assert!(out.contains("FAIL") && out.contains("gradcheck FAILED"), "{out}");
    let (out, _) = place.expect(1, &[&arguments[..], &["--quiet"]].concat());
    assert_eq!(out, "");
    let (_, err) = place.expect(2, &["gradcheck", "scene.json", "--parameter", "object.interior.sigma"]);
    assert!(
        err.contains("object.interior.sigma_t"),
        "the known paths are named: {err}"
    );
    let (out, _) = place.expect(
        0,
        &[
            "gradcheck",
            "scene.json",
            "--json",
            "--loss",
            "random",
            "--entries",
            "3",
        ],
    );
    let report: Value = serde_json::from_str(&out).expect("one JSON value");
    assert_eq!(report["passed"], true);
    assert_eq!(report["parameters"].as_array().expect("a list").len(), 3);
}

/// Finite differences of a step whose rounding hides the derivatives judge nothing: they are not taken for agreement.
#[test]
fn gradcheck_does_not_pass_by_rounding() {
    let place = Place::new();
    let smoke = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/smoke_small.json");
    let check = |code: i32, parameter: &str, step: &str| {
        let words = "--device cpu --entries 2 --loss mean".split(' ');
        let asked = ["gradcheck", smoke, "--parameter", parameter, "--epsilon", step];
        place
            .expect(code, &asked.into_iter().chain(words).collect::<Vec<_>>())
            .0
    };
    for (step, fault) in [("1e-30", "too small"), ("1e-15", "too small"), ("1e30", "too large")] {
        let out = check(1, "smoke.interior.sigma_t", step);
        assert!(out.contains("2 not judged") && out.contains(fault), "{step}: {out}");
        let (_, advice) = out.split_once("choose --epsilon between ").expect("advice");
        for number in advice
            .split(|c: char| c.is_whitespace())
            .filter(|word| word.contains("e-"))
            .take(2)
        {
            let out = check(0, "smoke.interior.sigma_t", number);
            assert!(out.contains("gradcheck passed: 1 verdict\n"), "{number}: {out}");
        }
    }
}

/// The files of `--write` are enough to check a gradient from outside: images are linear in the sky's radiance, so that the
/// losses of two skies differ by the gradient times the step, to 1e-6.
#[test]
fn gradcheck_leaves_files_that_others_can_check() {
    let place = Place::new();
    let mut brighter = scene();
    brighter["sky"]["radiance"] = json!(0.75);
    place.write("brighter.json", &brighter);
    place.expect(
        0,
        &[
            "gradcheck",
            "scene.json",
            "--entries",
            "2",
            "--write",
            "a",
            "--seed",
            "4",
        ],
    );
    place.expect(
        0,
        &[
            "gradcheck",
            "brighter.json",
            "--entries",
            "2",
            "--write",
            "b",
            "--seed",
            "4",
        ],
    );
    for (weights, folder) in [("mean", "a"), ("random", "a/random")] {
        let loss = |run: &str| place.json(run)["losses"][weights].as_f64().expect("a number");
        let difference = (loss("b/loss.json") - loss("a/loss.json")) / 0.25;
        let file = place.path(folder).join("sky.radiance.npy");
        let gradient = prbopt::io::npy::read(&file).expect("an array").data;
        assert_eq!(gradient.len(), 3);
        let slope: f64 = gradient.iter().map(|g| f64::from(*g)).sum();
        assert!(
            (slope - difference).abs() < 1e-6 * slope.abs(),
            "{weights}: {slope} != {difference}"
        );
        let density = prbopt::io::npy::read(&place.path(folder).join("object.interior.sigma_t.npy")).expect("an array");
        assert_eq!((density.size, density.channels), ([4, 4, 4], 1));
    }
}

/// A run that moves vertices writes the mesh with them; a picture of its scene says which values are not those of the file.
#[test]
fn moved_vertices_are_a_mesh_and_initial_values_are_told() {
    let place = Place::new();
    let panel = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/meshes/panel.obj");
    place.write(
        "panel.json",
        &json!({
            "integrator": {"type": "direct"},
            "camera": {"type": "perspective", "fov": 30, "to_world": [{"look_at": {"origin": [0, 0, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}],
                "film": {"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {"type": "box"}}},
            "lamp": {"type": "point", "position": [1, 2, 4], "intensity": 20},
            "panel": {"type": "obj", "filename": panel, "bsdf": {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": 0.2}}},
            "optimize": {"iterations": 2, "references": {"type": "constant", "value": 0.3}, "parameters": {
                "panel.vertex_positions": {"learning_rate": 0.01}, "panel.bsdf.bsdf.reflectance": {"initial": 0.6}}},
        }),
    );
    place.expect(0, &["optimize", "panel.json", "--device", "cpu", "-o", "run"]);
    let numbers = npy::read(&place.path("run/final/panel.vertex_positions.npy")).expect("readable");
    let mesh = mesh::read_ply(&place.path("run/final/panel.ply"), false, false).expect("readable");
    assert_eq!(mesh.positions.as_flattened(), numbers.data);
    let begun = mesh::read_obj(Path::new(panel), false, false).expect("readable");
    assert_ne!(mesh.positions, begun.positions);
    assert!(place.path("run/final/panel.obj").exists());
    let render = |more: &[&str]| {
        let words = [&["render", "panel.json", "--device", "cpu", "--spp", "1"], more].concat();
        place.expect(0, &words).1
    };
    let told = "`panel.bsdf.bsdf.reflectance`: the values shown are those that a run begins with";
    assert!(render(&[]).contains(told));
    assert!(!render(&["--parameters", "run/final"]).contains(told));
}
