//! The memory that `info` predicts for a run.

use std::path::Path;

use serde_json::Value;

use super::Place;

/// It is within a tenth of the largest that a run reports on its way through all stages: normal maps behind glass, a mesh, a
/// medium in one, a relief and splats.
#[test]
fn memory_is_told_before_a_run() {
    let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let one_sample = [
        "--set",
        "optimize.spp=1",
        "--set",
        "optimize.spp_grad=1",
        "--set",
        "optimize.references.spp=1",
    ];
    for (name, sets) in [
        ("lens", &one_sample[..]),
        ("torus", &one_sample),
        ("figurine", &one_sample),
        ("relief", &one_sample),
        ("splats", &[]),
    ] {
        let scene = scenes.join(format!("{name}.json")).display().to_string();
        let info = told_before(&Place::new(), &scene, sets);
        // A GPU follows paths in waves among the coin's surfaces alone: the others have media, moving chains or no paths.
        assert_eq!(info["waves_of_a_gpu_bytes"].is_u64(), name == "relief", "{name}");
    }
}

/// The same of an environment map that two stages refine to four times its sides, and its table with it.
#[test]
fn memory_of_a_refined_map_is_told() {
    let place = Place::new();
    let scene = r#"{"integrator": {"type": "prb", "max_depth": 2}, "ball": {"type": "sphere"},
            "sky": {"type": "envmap", "data": {"resolution": [128, 64], "value": 0.5}},
            "camera": {"type": "perspective", "to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
                "film": {"type": "hdrfilm", "width": 16, "height": 16}},
            "optimize": {"parameters": {"sky.data": {}}, "stages": [{"at": 0.3}, {"at": 0.6}], "spp": 1, "spp_grad": 1,
                "references": {"type": "constant", "value": 0.4}}}"#;
    place.write("sky.json", &serde_json::from_str(scene).expect("JSON"));
    told_before(&place, "sky.json", &[]);
}

/// The largest resident size of a run's process is within a tenth of what `info` says: large textures of colours and of normals,
/// which are read, written and shown in the report, with smoothed steps and without; an environment map, with its table; a
/// texture that stays as it is; a mesh, of which a hierarchy is built.
#[cfg(target_os = "linux")]
#[test]
fn the_peak_of_a_run_is_told() {
    let texels = |value: &str| {
        format!(r#"{{"type": "bitmap", "raw": true, "data": {{"resolution": [1024, 1024], "value": {value}}}}}"#)
    };
    let colors = texels("[0.4, 0.5, 0.6]");
    let painted =
        format!(r#""floor": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {colors}}}}}"#);
    let bumpy = format!(
        r#""floor": {{"type": "rectangle", "bsdf": {{"type": "normalmap", "normalmap": {}, "bsdf": {{"type": "diffuse"}}}}}}"#,
        texels("[0.5, 0.5, 1]")
    );
    let plain = r#""floor": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance": 0.3}}"#;
    let hill = format!(r#"{plain}, "hill": {{"type": "grid", "resolution": [400, 400]}}"#);
    let sky = r#""sky": {"type": "constant"}"#;
    let map = r#""sky": {"type": "envmap", "data": {"resolution": [1024, 512], "value": 0.5}}"#;
    for (name, objects, optimized) in [
        ("colours", [&painted, sky], r#""floor.bsdf.reflectance": {}"#),
        (
            "smoothed",
            [&painted, sky],
            r#""floor.bsdf.reflectance": {"smoothing": 0.02}"#,
        ),
        ("normals", [&bumpy, sky], r#""floor.bsdf.normalmap": {}"#),
        ("a map", [plain, map], r#""sky.data": {}"#),
        ("beside a texture", [&painted, sky], r#""sky.radiance": {}"#),
        ("a mesh", [&hill, sky], r#""sky.radiance": {}"#),
    ] {
        let place = Place::new();
        let scene = format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": 3}}, {},
            "camera": {{"type": "perspective", "to_world": [{{"look_at": {{"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 16, "height": 16}}}},
            "optimize": {{"parameters": {{{optimized}}}, "spp": 1, "spp_grad": 1, "iterations": 4,
                "references": {{"type": "constant", "value": 0.4}}}}}}"#,
            objects.join(", ")
        );
        place.write("scene.json", &serde_json::from_str(&scene).expect("JSON"));
        check_peak(&place, name, "scene.json", &[], 2);
    }
}

/// The same of each other kind of scene: a slab, of which a solid is written; a cube of varying index, with the derivatives of two
/// bands of light; a picture of splats; a radiance field, with the records of a batch's rays; a large film, with the pictures that
/// are written; references of views that are not looked at; and a medium, whose paths four threads follow.
#[cfg(target_os = "linux")]
#[test]
fn the_peak_of_each_kind_of_scene_is_told() {
    let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let few = ["--set", "optimize.iterations=6", "--set", "optimize.output.spp=1"];
    let one_sample = ["--set", "optimize.spp=1", "--set", "optimize.spp_grad=1"];
    let one_of_references = ["--set", "optimize.references.spp=1"];
    let all_coefficients = [
        "--set",
        "optimize.stages=[]",
        "--set",
        r#"optimize.parameters={"cube.index":{"bounds":[1,1.6]}}"#,
        "--set",
        "cube.index.resolution=[112,112,112]",
    ];
    for (name, sets, threads) in [
        ("caustic", [&few[..], &one_sample].concat(), 2),
        ("bent_light", [&few[..], &one_sample, &all_coefficients].concat(), 2),
        ("splats", few.to_vec(), 2),
        ("two_blobs", [&few[..], &one_of_references].concat(), 2),
        // So many iterations that each of the threads takes part, also on a busy machine.
        (
            "figurine",
            [
                &few[..],
                &one_sample,
                &one_of_references,
                &["--set", "optimize.iterations=40"],
            ]
            .concat(),
            4,
        ),
    ] {
        let scene = scenes.join(format!("{name}.json")).display().to_string();
        check_peak(&Place::new(), name, &scene, &sets, threads);
    }
    let camera = |side: u32| {
        format!(
            r#"{{"type": "perspective", "to_world": [{{"look_at": {{"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": {side}, "height": {side}}}}}"#
        )
    };
    let views = (0..30).map(|i| format!(r#""view_{i}": {}"#, camera(256)));
    for (name, cameras, batch) in [
        ("a film", format!(r#""camera": {}"#, camera(640)), r#""all""#),
        ("views", views.collect::<Vec<_>>().join(", "), r#"{"rays": 4096}"#),
    ] {
        let place = Place::new();
        let scene = format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": 2}}, "ball": {{"type": "sphere"}}, "sky": {{"type": "constant"}}, {cameras},
            "optimize": {{"parameters": {{"sky.radiance": {{}}}}, "spp": 1, "spp_grad": 1, "iterations": 3, "batch": {batch},
                "references": {{"type": "figure", "name": "letter"}}, "output": {{"spp": 1}}}}}}"#
        );
        place.write("scene.json", &serde_json::from_str(&scene).expect("JSON"));
        check_peak(&place, name, "scene.json", &[], 2);
    }
}

/// The largest resident size that a run of so many threads reports is within a tenth of what `info` says.
#[cfg(target_os = "linux")]
fn check_peak(place: &Place, name: &str, scene: &str, sets: &[&str], threads: u32) {
    let last_line = |arguments: &[&str]| -> Value {
        let mut command = place.command(&[arguments, sets].concat());
        let output = command.env("RAYON_NUM_THREADS", threads.to_string()).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
    };
    let info = last_line(&["info", scene, "--json"]);
    let told = info["peak_memory_bytes"].as_f64().expect("a number") / f64::from(1 << 20);
    let last = last_line(&["optimize", scene, "--device", "cpu", "-o", "run", "--json"]);
    let peak = last["peak_rss_mib"].as_f64().expect("Linux tells it");
    println!("{name}: {told:.0} MiB told, {peak} MiB at the peak");
    assert!((told / peak - 1.0).abs() < 0.1, "{name}: {told} {peak}");
}

/// What `info` says of a scene; the memory is within a tenth of the largest that six iterations report.
fn told_before(place: &Place, scene: &str, sets: &[&str]) -> Value {
    let (info, _) = place.expect(0, &["info", scene, "--json"]);
    let info: Value = serde_json::from_str(&info).expect("JSON");
    let told = info["memory_bytes"].as_f64().expect("a number");
    let line = ["optimize", scene, "--device", "cpu", "--iterations", "6", "-o", "run"];
    place.expect(0, &[&line, sets].concat());
    let lines = place.lines("run/metrics.jsonl");
    let held = lines.iter().filter_map(|line| line["memory_bytes"].as_f64());
    let most = held.fold(0.0, f64::max);
    println!("{scene}: {told} told, {most} held");
    assert!((told / most - 1.0).abs() < 0.1, "{scene}: {told} {most}");
    info
}
