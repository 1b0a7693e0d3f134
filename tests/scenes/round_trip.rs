//! The resolved form of a scene gives the same scene again.

use std::path::Path;

use prbopt::scene::{self, Scene};

use super::{SCENE, WORLD, edited, edited_world, read};

/// A scene read from the resolved form is the same, but for paths, which the resolved form makes absolute.
fn assert_same(scene: &Scene) {
    let text = serde_json::to_string_pretty(&scene.resolved).expect("JSON can be written");
    let again = scene::parse(&text, Path::new("/elsewhere/run/scene.json")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.resolved, scene.resolved);
    assert_eq!(format!("{:?}", again.sensors), format!("{:?}", scene.sensors));
    assert_eq!(format!("{:?}", again.field), format!("{:?}", scene.field));
    assert_eq!(format!("{:?}", again.world), format!("{:?}", scene.world));
    assert_eq!(again.integrator, scene.integrator);
    assert_eq!(format!("{:?}", again.background), format!("{:?}", scene.background));
    match (&again.optimize, &scene.optimize) {
        (Some(again), Some(before)) => {
            let mut again = again.clone();
            // The resolved form has the absolute path of the target.
            again.references = before.references.clone();
            assert_eq!(&again, before);
        }
        (again, before) => assert_eq!(again, before),
    }
}

#[test]
fn small_scenes() {
    assert_same(&read(SCENE));
    let edits = [
        (
            "\"fov\": 40",
            r#""focal_x": 70.1, "center_y": 3.3, "distortion": {"model": "opencv", "k1": 0.1, "p2": 1e-7}"#,
        ),
        (
            "\"fov\": 40",
            r#""fov": 0.1, "distortion": {"model": "fisheye", "k4": 0.1}, "near_clip": 0.3"#,
        ),
        ("\"type\": \"tent\"", r#""type": "gaussian", "stddev": 0.333"#),
        (
            "\"type\": \"cube\",",
            r#""type": "cube", "to_world": [{"rotate": {"axis": [1, 2, 3], "angle": 45}}, {"scale": 0.1}],"#,
        ),
        (
            "\"type\": \"constant\", \"radiance\": 1",
            r#""type": "constant", "radiance": [0.1, 0.2, 0.3]"#,
        ),
        (
            "\"type\": \"constant\", \"radiance\": 1",
            r#""type": "envmap", "data": {"resolution": [4, 2]}, "scale": 0.7"#,
        ),
        (
            "\"sh_degree\": 1",
            r#""sh_degree": 1, "color_activation": "relu", "density_activation": "exp", "stop": 0"#,
        ),
        (
            "\"type\": \"gridvolume\", \"resolution\": [4, 4, 4], \"value\": 0.75",
            r#""type": "blobs", "resolution": [3, 4, 5], "blobs": [{"center": [0.1, 0.2, 0.3], "radius": 0.1, "value": 2}]"#,
        ),
        (
            "\"bounds\": [0, null]",
            r#""initial": 0.3, "start_resolution": [2, 2, 2]"#,
        ),
        (
            "\"stages\": [",
            r#""seed": 123456789012345678, "optimizer": {"type": "rmsprop", "decay": 0.95}, "loss": "log_l1",
               "schedule": {"type": "exponential", "final_factor": 0.01, "warm_up": 3}, "batch": {"rays": 77},
               "regularizers": [{"type": "total_variation", "parameter": "object.interior.sh_coeffs", "weight": 1e-3}],
               "output": {"images_every": 1, "sensors": ["camera"], "checkpoint_seconds": 0.5, "spp": 2}, "stages": ["#,
        ),
    ];
    for (from, to) in edits {
        assert_same(&read(&edited(from, to)));
    }
}

#[test]
fn worlds() {
    assert_same(&read(WORLD));
    let phase = r#"{"type": "hg", "g": 0.3}"#;
    let grid = r#"{"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.5}"#;
    let parameters = r#""box.interior.sigma_t": {}"#;
    let edits = [
        (phase, r#"{"type": "rayleigh"}"#),
        (
            phase,
            r#"{"type": "blendphase", "weight": 0.3, "b": {"type": "hg"}, "a": {"type": "isotropic"}}"#,
        ),
        (
            phase,
            r#"{"type": "blendphase", "weight": 0.3, "b": {"type": "rayleigh"}, "a": {"type": "hg", "g": -0.1}}"#,
        ),
        (
            phase,
            r#"{"type": "blendphase", "weight": 1, "b": {"type": "rayleigh"}, "a": {"type": "isotropic"}}"#,
        ),
        (
            phase,
            r#"{"type": "blendphase", "weight": {"type": "gridvolume", "resolution": 2, "value": 0.2, "wrap_mode": "repeat"},
                "v": {"type": "hg"}, "w": {"type": "blendphase", "weight": 0.1, "p": {"type": "hg", "g": 0.1}, "q": {"type": "rayleigh"}}}"#,
        ),
        (
            grid,
            r#"{"type": "plume", "resolution": [8, 16, 8], "seed": 18446744073709551615, "value": 30}"#,
        ),
        (
            grid,
            r#"{"type": "plume", "resolution": 8, "value": [1, 2, 3], "to_world": [{"rotate": {"axis": [1, 2, 3], "angle": 40}}]}"#,
        ),
        (
            grid,
            r#"{"type": "constvolume", "value": [1, 2, 3], "to_world": [{"scale": 0.7}, {"rotate": {"axis": [1, 2, 3], "angle": 40}}]}"#,
        ),
        (grid, "0.7"),
        (
            grid,
            r#"{"type": "blobs", "resolution": 4, "blobs": [{"center": [0.1, 0.2, 0.3], "radius": 0.1, "value": [1, 2, 3]}]}"#,
        ),
        (
            "\"albedo\": [0.9, 0.8, 0.7],",
            r#""albedo": {"type": "gridvolume", "resolution": 2, "value": [0.1, 0.2, 0.3], "filter_type": "nearest", "wrap_mode": "mirror"},
               "emission": [1, 2, 3], "scale": 0.7,"#,
        ),
        (
            "\"type\": \"prbvolpath\"",
            r#""type": "advolpath", "max_depth": -1, "rr_depth": 9, "hide_emitters": true, "gradient": "free_flight""#,
        ),
        (
            "\"type\": \"prbvolpath\"",
            r#""type": "rbvolpath", "variant": "biased_pipelined", "max_depth": 9"#,
        ),
        ("\"integrator\": {\"type\": \"prbvolpath\"},", ""),
        ("\"type\": \"prbvolpath\"", r#""type": "path", "rr_depth": 1"#),
        ("\"type\": \"prbvolpath\"", r#""type": "depth""#),
        (
            "\"type\": \"prbvolpath\"",
            r#""type": "aov", "aovs": "a:uv, b:shape_index", "i": {"type": "prb"}"#,
        ),
        ("\"type\": \"prbvolpath\"", r#""type": "direct", "hide_emitters": true"#),
        ("\"type\": \"prbvolpath\"", r#""type": "prb_basic", "max_depth": 3"#),
        ("\"type\": \"prbvolpath\"", r#""type": "rb", "variant": "biased""#),
        (
            "\"type\": \"perspective\",",
            r#""type": "thinlens", "aperture_radius": 0.1, "focus_distance": 3,"#,
        ),
        ("\"type\": \"perspective\",", r#""type": "orthographic","#),
        (
            "{\"type\": \"rectangle\",",
            r#"{"type": "rectangle", "meter": {"type": "irradiancemeter", "sampler": {"type": "independent", "sample_count": 9}},"#,
        ),
        (
            "\"integrator\":",
            r#""pair": {"type": "batch", "film": {"type": "hdrfilm", "width": 8, "height": 4, "pixel_format": "rgba",
                "component_format": "float16", "sample_border": true, "rfilter": {"type": "lanczos", "lobes": 2}},
                "left": {"type": "perspective", "fov": 30}, "right": {"type": "orthographic"}},
               "far": {"type": "distant", "direction": [1, 2, 3], "target": {"type": "sphere", "radius": 0.3, "center": [1, 2, 3]}},
               "near": {"type": "distant", "target": [1, 2, 3], "ray_offset": 5},
               "disk": {"type": "distant", "target": {"type": "disk", "flip_normals": true}},
               "ray": {"type": "radiancemeter", "origin": [1, 2, 3], "direction": [0, 1, 1]}, "integrator":"#,
        ),
        (
            "\"width\": 8,",
            r#""width": 8, "crop_offset_x": 1, "crop_width": 2, "pixel_format": "luminance_alpha","#,
        ),
        (
            "{\"type\": \"rectangle\",",
            r#"{"type": "rectangle", "flip_normals": true, "exterior": {"type": "homogeneous", "sigma_t": 2}, "to_world": [{"scale": 0.3}],"#,
        ),
        (
            "\"reflectance\": 0.4",
            r#""reflectance": {"type": "checkerboard", "color0": [0.1, 0.2, 0.3], "to_uv": [{"scale": [3, 7]}, {"rotate": {"angle": 33}}]}"#,
        ),
        (
            "\"reflectance\": 0.4",
            r#""reflectance": {"type": "checkerboard", "color0": {"type": "checkerboard", "color1": 0.9}, "color1": {"type": "rgb", "value": [0.1, 0.2, 0.3]}}"#,
        ),
        (
            "\"type\": \"sphere\",",
            r#""type": "sphere", "center": [0.1, 0.2, 0.3], "radius": 0.7,"#,
        ),
        (
            "{\"type\": \"directional\"}",
            r#"{"type": "directional", "direction": [0.3, -0.77, 0.1], "irradiance": [1, 2, 3]}"#,
        ),
        (
            "{\"type\": \"directional\"}",
            r#"{"type": "point", "position": [0.1, 0.2, 0.3], "intensity": 7}"#,
        ),
        (
            "{\"type\": \"directional\"}",
            r#"{"type": "spot", "texture": {"type": "checkerboard", "color0": 3}, "sampling_weight": 0.3}"#,
        ),
        (
            "{\"type\": \"directional\"}",
            r#"{"type": "projector", "fov": 33.3, "fov_axis": "y", "scale": 2.5, "irradiance": {"type": "bitmap", "data": {"resolution": [3, 2], "value": 2}}}"#,
        ),
        (
            "{\"type\": \"directional\"}",
            r#"{"type": "projector", "focal_length": "35mm", "irradiance": {"type": "bitmap", "data": {"resolution": [3, 2], "value": 2}}}"#,
        ),
        (
            "\"type\": \"sphere\",",
            r#""type": "cylinder", "p0": [0.1, 0.2, 0.3], "p1": [1, 2, 3.1], "radius": 0.3,"#,
        ),
        ("\"type\": \"sphere\",", r#""type": "disk","#),
        (
            "{\"type\": \"rectangle\",",
            r#"{"type": "instance", "mine": {"type": "shapegroup", "a": {"type": "disk"}, "b": {"type": "cube", "bsdf": {"type": "ref", "id": "paint"}}}},
               "second": {"type": "instance", "g": {"type": "ref", "id": "later"}, "to_world": [{"rotate": {"axis": [1, 2, 3], "angle": 40}}]},
               "third": {"type": "instance", "g": {"type": "ref", "id": "floor.mine"}},
               "paint": {"type": "diffuse", "reflectance": 0.3},
               "unseen": {"type": "shapegroup", "a": {"type": "sphere", "bsdf": {"type": "ref", "id": "paint"}}},
               "later": {"type": "shapegroup", "a": {"type": "rectangle", "to_world": [{"scale": 0.3}], "flip_normals": true}},
               "plane": {"type": "rectangle","#,
        ),
        (
            "{\"type\": \"area\"",
            r#"{"sampling_weight": 2.5, "type": "directionalarea""#,
        ),
        (
            "{\"type\": \"directional\"}",
            r#"{"type": "spot", "cutoff_angle": 33.3, "beam_width": 33.3, "to_world": [{"rotate": {"axis": [1, 2, 3], "angle": 40}}]}"#,
        ),
        (
            "\"type\": \"perspective\",",
            r#""type": "perspective", "medium": {"type": "ref", "id": "box.interior"},"#,
        ),
        (
            "\"type\": \"perspective\",",
            r#""type": "perspective", "medium": {"type": "homogeneous", "albedo": 0.1},"#,
        ),
        (
            parameters,
            r#""box.interior.sigma_t": {"initial": 0.25, "start_resolution": 2}, "box.interior.albedo": {"initial": [0.5, 0.6, 0.7]},
               "box.interior.phase.g": {"learning_rate": 0.01}, "lamp.emitter.radiance": {"bounds": [0, 9]}, "sun.irradiance": {}, "sky.radiance": {}"#,
        ),
    ];
    for (from, to) in edits {
        assert_same(&read(&edited_world(from, to)));
    }
}

#[test]
fn a_name_that_is_taken_does_not_lose_the_integrator() {
    let text = WORLD
        .replace("\"integrator\"", "\"method\"")
        .replace("\"floor\"", "\"integrator\"");
    let scene = read(&text);
    assert_eq!(scene.integrator.max_depth, Some(6));
    assert_same(&scene);
}

#[test]
fn the_bundled_scenes() {
    for name in ["two_blobs.json", "two_blobs_target.json"] {
        let scene = scene::load(&Path::new("scenes").join(name)).unwrap_or_else(|e| panic!("{e}"));
        assert_same(&scene);
    }
}
