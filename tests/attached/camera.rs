//! Cameras as parameters of `prb_attached`: thin lenses and parallel rays beside pinholes, and a run that finds a camera behind
//! glass from a picture.

use std::fs;
use std::process::Command;

use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::resident::layout::gradient;
use prbopt::scene::SensorKind;

use super::worlds::{CAMERA, World, traced_worlds};
use super::{apart, both};

/// Rays of a thin lens start beside the camera's centre, which rotations keep fixed, parallel ones far from it. Path by path,
/// replayed derivatives are within 1e-4, relative, of differences of the whole path, on at least 60 % of all paths.
#[test]
fn rays_of_all_cameras_move_with_them() {
    let slab = traced_worlds()
        .into_iter()
        .find(|world| world.name.starts_with("a slab before"));
    let world = World {
        wanted: CAMERA,
        ..slab.expect("a slab before a camera")
    };
    let lens = SensorKind::ThinLens {
        aperture_radius: 0.3,
        focus_distance: 6.0,
    };
    for kind in [lens, SensorKind::Orthographic] {
        let mut scene = world.scene(true);
        if matches!(kind, SensorKind::Orthographic) {
            scene.sensors[0].focal = [4.0; 2];
        }
        scene.sensors[0].kind = kind;
        let setup = world.setup_of(&scene);
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let values = setup
            .params
            .parameters
            .iter()
            .map(|p| p.values.iter().map(|x| f64::from(*x)).collect());
        let values: Vec<Vec<f64>> = values.collect();
        let pairs = objective
            .casts
            .iter()
            .filter_map(|cast| both(&setup, &objective, &values, cast));
        let errors: Vec<f64> = pairs.map(|[found, expected]| apart(&found, &expected)).collect();
        let worst = errors.iter().fold(0.0, |m: f64, x| m.max(*x));
        println!("{kind:?}: {} paths, {worst:.1e} at most", errors.len());
        assert!(
            errors.len() * 10 > objective.casts.len() * 6 && worst < 1e-4,
            "{kind:?}: {worst:.1e}"
        );
    }
}

/// Initial error of the camera's pose: lengths along each axis of the world, and degrees about each.
const BESIDE: [[f64; 3]; 2] = [[0.05, -0.05, 0.05], [1.0, -1.0, 1.0]];

/// The scene in JSON; `more` is appended behind its last object.
fn scene(more: &str) -> String {
    format!(
        r#"{{"integrator": {{"type": "prb_attached", "max_depth": 6}},
            "camera": {{"type": "perspective", "fov": 70,
                "to_world": [{{"look_at": {{"origin": [0.4, 0.2, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 32, "height": 32, "rfilter": {{"type": "box"}}}}}},
            "pane": {{"type": "cube", "bsdf": {{"type": "dielectric", "int_ior": 1.5, "ext_ior": 1}},
                "to_world": [{{"scale": [3, 3, 0.3]}}, {{"rotate": {{"axis": [0.5, 1, 0], "angle": 25}}}}, {{"translate": [0, 0, 1]}}]}},
            "sheet": {{"type": "rectangle",
                "to_world": [{{"scale": 9}}, {{"rotate": {{"axis": [1, 0.3, 0], "angle": -25}}}}, {{"translate": [0, 0, -2]}}],
                "bsdf": {{"type": "diffuse", "reflectance": {{"type": "bitmap", "wrap_mode": "clamp", "raw": true,
                    "data": {{"resolution": [48, 48], "planet": 3}}}}}}}},
            "sky": {{"type": "constant"}}{more}}}"#
    )
}

/// A camera looks at a printed sheet through a thick pane, oblique to both: a run brings each of its six pose errors below a
/// tenth of what it was.
#[test]
fn a_run_finds_a_camera_behind_a_pane() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let [moved, turned] = BESIDE;
    let block = format!(
        r#", "optimize": {{
            "parameters": {{
                "camera.to_world.translate": {{"learning_rate": 0.02, "initial": {moved:?}}},
                "camera.to_world.rotate": {{"learning_rate": 0.4, "initial": {turned:?}}}}},
            "references": {{"type": "scene", "filename": "target.json", "spp": 4096}},
            "loss": "l2", "iterations": 200, "spp": 8, "spp_grad": 8, "batch": "all", "seed": 3,
            "schedule": {{"type": "exponential", "final_factor": 0.01}}}}"#
    );
    fs::write(folder.path().join("scene.json"), scene(&block)).expect("writable");
    fs::write(folder.path().join("target.json"), scene("")).expect("writable");
    let words = ["optimize", "scene.json", "--device", "cpu", "-q", "-o", "run"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_prbopt"));
    let done = command.args(words).current_dir(&folder).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for (part, beside) in ["translate", "rotate"].into_iter().zip(BESIDE) {
        let file = folder.path().join(format!("run/final/camera.to_world.{part}.json"));
        let text = fs::read_to_string(file).expect("it is written");
        let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let found: Vec<f64> = serde_json::from_value(found["value"].clone()).expect("three numbers");
        println!("{part}: left of {beside:?}: {found:.4?}");
        for (left, begun) in found.iter().zip(beside) {
            assert!(left.abs() < 0.1 * begun.abs(), "{part}: {found:?}");
        }
    }
}
