//! Scene files: what is read from them, the messages about mistakes, and that no text makes the reader panic.

mod changes;
mod colors;
mod documents;
mod files;
mod meaning;
mod mistakes;
mod random;
mod round_trip;
mod shells;
mod unseen;
mod world_fitting;
mod world_mistakes;
mod worlds;

use std::path::Path;

use prbopt::scene::{self, Scene};

/// A small scene without a mistake, which tests edit.
const SCENE: &str = r#"{
  "type": "scene",
  "camera": {
    "type": "perspective", "fov": 40,
    "to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
    "film": {"type": "hdrfilm", "width": 64, "height": 32, "rfilter": {"type": "tent"}}
  },
  "object": {
    "type": "cube",
    "bsdf": {"type": "null"},
    "interior": {
      "type": "radiance_field", "sh_degree": 1,
      "sigma_t": {"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.75},
      "sh_coeffs": {"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.1}
    }
  },
  "background": {"type": "constant", "radiance": 1},
  "optimize": {
    "parameters": {
      "object.interior.sigma_t": {"learning_rate": 0.5, "bounds": [0, null]},
      "object.interior.sh_coeffs": {}
    },
    "stages": [{"at": 0.25}, {"at": 0.5}],
    "references": {"type": "constant", "value": 0.5}
  }
}
"#;

/// A small scene of shapes, a scattering medium and lights without a mistake, which tests edit.
const WORLD: &str = r#"{
  "integrator": {"type": "prbvolpath"},
  "camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 8, "height": 8}},
  "box": {
    "type": "cube", "to_world": [{"translate": [1, 1, 1]}, {"scale": 0.5}],
    "bsdf": {"type": "null"},
    "interior": {
      "type": "heterogeneous",
      "sigma_t": {"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.5},
      "albedo": [0.9, 0.8, 0.7],
      "phase": {"type": "hg", "g": 0.3}
    }
  },
  "floor": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance": 0.4}},
  "lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}},
  "sun": {"type": "directional"},
  "sky": {"type": "constant"},
  "optimize": {
    "parameters": {"box.interior.sigma_t": {}},
    "references": {"type": "constant", "value": 0.5}
  }
}
"#;

/// The small scene with one piece of its text replaced.
fn edited(from: &str, to: &str) -> String {
    replaced(SCENE, from, to)
}

/// The small world with one piece of its text replaced.
fn edited_world(from: &str, to: &str) -> String {
    replaced(WORLD, from, to)
}

fn replaced(scene: &str, from: &str, to: &str) -> String {
    assert_eq!(
        scene.matches(from).count(),
        1,
        "`{from}` must stand in the scene exactly once"
    );
    scene.replace(from, to)
}

/// The scene that `text` describes.
fn read(text: &str) -> Scene {
    scene::parse(text, Path::new("test.json")).unwrap_or_else(|mistakes| panic!("{mistakes}\nin {text}"))
}

/// The mistakes in `text`, one a line.
fn mistakes_in(text: &str) -> String {
    scene::parse(text, Path::new("test.json"))
        .expect_err("the scene must be refused")
        .to_string()
}

#[test]
fn the_bundled_scenes_are_without_mistakes() {
    let scene = scene::load(Path::new("scenes/two_blobs.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(scene.sensors.iter().filter(|sensor| !sensor.held_out).count(), 12);
    assert_eq!(scene.warnings, Vec::<String>::new());
    read(SCENE);
    assert_eq!(read(WORLD).warnings, Vec::<String>::new());
}
