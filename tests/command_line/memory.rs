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
