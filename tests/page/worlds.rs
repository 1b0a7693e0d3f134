//! Small scenes of every kind, each with a target beside it, that take some milliseconds an iteration.

use std::path::Path;

use serde_json::{Value, json};

fn cameras(scene: &mut Value, size: u32) {
    for (name, origin) in [("a", [0.0, 1.0, 4.0]), ("b", [4.0, 0.5, 0.0]), ("c", [-2.0, 1.0, -3.0])] {
        scene[name] = json!({
            "type": "perspective", "fov": 40,
            "to_world": [{"look_at": {"origin": origin, "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": size, "height": size, "rfilter": {"type": "box"}}
        });
    }
}

fn grid(value: f64) -> Value {
    json!({"type": "gridvolume", "resolution": [8, 8, 8], "value": value})
}

fn output() -> Value {
    json!({"images_every": 10, "checkpoint_seconds": 0.5, "spp": 1})
}

/// A radiance field that is refined once.
pub(crate) fn field(target: bool) -> Value {
    let value = if target { 1.5 } else { 0.1 };
    let mut scene = json!({
        "type": "scene",
        "object": {
            "type": "cube", "bsdf": {"type": "null"},
            "interior": {"type": "radiance_field", "sh_degree": 1, "sigma_t": grid(value), "sh_coeffs": grid(value)}
        },
        "sky": {"type": "constant", "radiance": 0.5},
        "optimize": {
            "parameters": {
                "object.interior.sigma_t": {"learning_rate": 0.2, "start_resolution": [4, 4, 4]},
                "object.interior.sh_coeffs": {"learning_rate": 0.05, "start_resolution": [4, 4, 4]},
                "sky.radiance": {"learning_rate": 0.01}
            },
            "references": {"type": "scene", "filename": "target.json", "spp": 4},
            "iterations": 60, "batch": {"rays": 1000}, "stages": [{"at": 0.5, "upsample": 2}], "output": output()
        }
    });
    cameras(&mut scene, 24);
    scene
}

/// Smoke over a floor, by this integrator.
pub(crate) fn paths(target: bool, integrator: Value) -> Value {
    let mut scene = json!({
        "type": "scene",
        "integrator": integrator,
        "smoke": {
            "type": "cube", "bsdf": {"type": "null"},
            "interior": {
                "type": "heterogeneous", "scale": 2, "albedo": [0.8, 0.7, 0.6],
                "sigma_t": {
                    "type": "gridvolume", "resolution": [8, 8, 8], "value": if target { 0.8 } else { 0.3 },
                    "to_world": [{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}]
                }
            }
        },
        "floor": {
            "type": "rectangle",
            "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": -90}}, {"scale": 2}, {"translate": [0, -1.2, 0]}],
            "bsdf": {"type": "diffuse", "reflectance": 0.5}
        },
        "sky": {"type": "constant", "radiance": 1},
        "optimize": {
            "parameters": {"smoke.interior.sigma_t": {"learning_rate": 0.05}},
            "references": {"type": "scene", "filename": "target.json", "spp": 8},
            "iterations": 100, "spp": 4, "spp_grad": 4, "batch": "all", "output": output()
        }
    });
    cameras(&mut scene, 16);
    scene
}

/// A textured floor under the sky.
pub(crate) fn surfaces(target: bool) -> Value {
    let mut scene = paths(target, json!({"type": "prb", "max_depth": 3}));
    let all = scene.as_object_mut().expect("an object");
    all.remove("smoke");
    all["floor"]["bsdf"] = json!({
        "type": "diffuse",
        "reflectance": {"type": "bitmap", "data": {"resolution": [8, 8], "value": if target { 0.8 } else { 0.3 }}}
    });
    all["optimize"]["parameters"] = json!({"floor.bsdf.reflectance": {"learning_rate": 0.05}});
    all["optimize"]["iterations"] = json!(300);
    scene
}

/// A picture whose splats grow in number.
pub(crate) fn splats() -> Value {
    json!({
        "type": "scene",
        "picture": {
            "type": "canvas",
            "film": {"type": "hdrfilm", "width": 64, "height": 40, "color_space": "srgb"}
        },
        "splats": {"type": "splats", "count": 60, "placement": "picture"},
        "optimize": {
            "iterations": 400, "references": {"type": "leaves"}, "growth": {"count": 120, "every": 5, "until": 0.5},
            "parameters": {
                "splats.position": {"learning_rate": 0.002}, "splats.scale": {"learning_rate": 0.02},
                "splats.rotation": {"learning_rate": 0.02}, "splats.color": {"learning_rate": 0.01},
                "splats.opacity": {"learning_rate": 0.01}
            },
            "output": output()
        }
    })
}

/// Writes a scene and its target into a folder.
pub(crate) fn write(folder: &Path, [scene, target]: [&Value; 2]) {
    for (name, value) in [("scene.json", scene), ("target.json", target)] {
        let mut value = value.clone();
        if name == "target.json" {
            value.as_object_mut().expect("an object").remove("optimize");
        }
        std::fs::write(folder.join(name), value.to_string()).expect("writable");
    }
}
