//! Scene files: what is read from them, what a mistake says, and that no text makes the reader panic.

mod documents;
mod files;
mod meaning;
mod mistakes;
mod random;
mod round_trip;

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

/// The small scene with one piece of its text replaced.
fn edited(from: &str, to: &str) -> String {
    assert_eq!(
        SCENE.matches(from).count(),
        1,
        "`{from}` must stand in the scene exactly once"
    );
    SCENE.replace(from, to)
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
}
