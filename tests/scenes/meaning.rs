//! What a scene means: transforms, lenses, references between objects, defaults.

use glam::{Affine3A, Vec3, Vec3A};
use prbopt::params::Kind;
use prbopt::scene::{
    Background, BatchRule, ColorSpace, Decay, Distortion, Filter, Loss, MomentRule, Optimizer, References, Sensor,
    Source,
};

use super::{SCENE, edited, edited_world, mistakes_in, read};

/// The small scene's camera with `lens` in place of its field of view.
fn camera(lens: &str) -> Sensor {
    read(&edited("\"fov\": 40", lens)).sensors.remove(0)
}

/// Where the cube's `to_world` takes a point.
fn place(transform: &str, point: [f32; 3]) -> Vec3A {
    let text = edited(
        "\"type\": \"cube\",",
        &format!("\"type\": \"cube\", \"to_world\": {transform},"),
    );
    let field = read(&text).field.expect("the scene has a medium");
    field.to_world.transform_point3a(Vec3A::from(point))
}

fn assert_close(found: impl Into<Vec3A>, expected: [f32; 3]) {
    let found: Vec3A = found.into();
    assert!(
        (found - Vec3A::from(expected)).length() < 1e-5,
        "found {found}, expected {expected:?}"
    );
}

#[test]
fn the_first_operation_is_applied_first() {
    let moved_then_scaled = "[{\"translate\": [1, 0, 0]}, {\"scale\": 2}]";
    assert_close(place(moved_then_scaled, [1.0, 1.0, 0.0]), [4.0, 2.0, 0.0]);
    let scaled_then_moved = "[{\"scale\": [2, 3, 1]}, {\"translate\": [1, 0, 0]}]";
    assert_close(place(scaled_then_moved, [1.0, 1.0, 0.0]), [3.0, 3.0, 0.0]);
}

#[test]
fn rotations_are_counter_clockwise_in_degrees() {
    let quarter = "[{\"rotate\": {\"axis\": [0, 0, 5], \"angle\": 90}}]";
    assert_close(place(quarter, [1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]);
}

#[test]
fn matrices_are_row_major() {
    let rows = "[[1, 0, 0, 5], [0, 0, -1, 6], [0, 1, 0, 7], [0, 0, 0, 1]]";
    assert_close(place(rows, [0.0, 1.0, 0.0]), [5.0, 6.0, 8.0]);
    let listed = format!("[{{\"matrix\": {rows}}}, {{\"translate\": [1, 0, 0]}}]");
    assert_close(place(&listed, [0.0, 1.0, 0.0]), [6.0, 6.0, 8.0]);
}

#[test]
fn a_camera_has_x_to_the_left_y_up_and_z_forward() {
    let camera = read(SCENE).sensors.remove(0);
    // From (0, 0, 4) towards the origin with Y up, left is the world's -X.
    assert_close(camera.to_world.transform_vector3(Vec3::X), [-1.0, 0.0, 0.0]);
    assert_close(camera.to_world.transform_vector3(Vec3::Y), [0.0, 1.0, 0.0]);
    assert_close(camera.to_world.transform_vector3(Vec3::Z), [0.0, 0.0, -1.0]);
    assert_close(camera.to_world.translation, [0.0, 0.0, 4.0]);
}

#[test]
fn fields_of_view_are_along_their_axis() {
    // The film has 64×32 pixels; tan 45° = 1, so half the extent is the focal length.
    let cases = [
        ("x", 32.0),
        ("y", 16.0),
        ("smaller", 16.0),
        ("larger", 32.0),
        ("diagonal", 0.5 * 64.0f32.hypot(32.0)),
    ];
    for (axis, focal) in cases {
        let camera = camera(&format!("\"fov\": 90, \"fov_axis\": \"{axis}\""));
        assert!((camera.focal[0] - focal).abs() < 1e-4, "{axis}: {:?}", camera.focal);
        assert_eq!(camera.focal[0], camera.focal[1], "pixels are square");
    }
    assert_eq!(
        camera("\"fov\": 90").focal,
        camera("\"fov\": 90, \"fov_axis\": \"x\"").focal
    );
}

#[test]
fn focal_lengths_in_millimetres_refer_to_the_diagonal_of_a_35_mm_film() {
    // f / diagonal = 50 / sqrt(36² + 24²), in millimetres and in pixels alike.
    let expected = 50.0 / 36.0f32.hypot(24.0) * 64.0f32.hypot(32.0);
    for lens in [
        "\"near_clip\": 0.01",
        "\"focal_length\": \"50mm\"",
        "\"focal_length\": \"50\"",
        "\"focal_length\": 50",
    ] {
        assert!((camera(lens).focal[0] - expected).abs() < 1e-3, "{lens}");
    }
}

#[test]
fn an_offset_of_the_principal_point_moves_it_the_other_way() {
    let shifted = camera("\"fov\": 40, \"principal_point_offset_x\": 0.25, \"principal_point_offset_y\": -0.25");
    assert_eq!(shifted.center, [16.0, 24.0]);
    assert_eq!(camera("\"fov\": 40").center, [32.0, 16.0]);
}

#[test]
fn lenses_in_pixels() {
    let lens = camera("\"focal_x\": 70, \"focal_y\": 71, \"center_x\": 30, \"center_y\": 17.5");
    assert_eq!((lens.focal, lens.center), ([70.0, 71.0], [30.0, 17.5]));
    let square = camera("\"focal_x\": 70");
    assert_eq!((square.focal, square.center), ([70.0, 70.0], [32.0, 16.0]));
}

#[test]
fn distortion_models() {
    let brown = camera("\"fov\": 40, \"distortion\": {\"model\": \"opencv\", \"k1\": 0.1, \"k3\": 0.3, \"p2\": 0.5}");
    let (k, p) = ([0.1, 0.0, 0.3], [0.0, 0.5]);
    assert_eq!(brown.distortion, Distortion::Brown { k, p });
    let fisheye = camera("\"fov\": 40, \"distortion\": {\"model\": \"fisheye\", \"k2\": 0.2, \"k4\": 0.4}");
    let k = [0.0, 0.2, 0.0, 0.4];
    assert_eq!(fisheye.distortion, Distortion::Fisheye { k });
}

#[test]
fn defaults_are_mitsubas() {
    let scene = read(r#"{"camera": {"type": "perspective"}, "light": {"type": "constant"}}"#);
    let camera = &scene.sensors[0];
    assert_eq!((camera.width, camera.height), (768, 576));
    assert_eq!((camera.near_clip, camera.far_clip), (1e-2, 1e4));
    assert_eq!(camera.filter, Filter::Gaussian { stddev: 0.5 });
    assert_eq!(camera.color_space, ColorSpace::Linear);
    assert_eq!(camera.spp, 4);
    assert_eq!(camera.to_world, Affine3A::IDENTITY);
    assert_eq!(camera.name, "camera");
    let radiance = scene.background.array().expect("a constant emitter has a radiance");
    assert_eq!(radiance.source, Source::Fill(vec![1.0; 3]));
    assert!(scene.field.is_none() && scene.optimize.is_none());
}

#[test]
fn filters_and_samplers_stand_under_any_name() {
    let text = edited(
        "\"rfilter\": {\"type\": \"tent\"}",
        "\"filter\": {\"type\": \"gaussian\", \"stddev\": 0.7}",
    )
    .replace(
        "\"fov\": 40",
        "\"fov\": 40, \"any\": {\"type\": \"independent\", \"sample_count\": 9}",
    );
    let camera = read(&text).sensors.remove(0);
    assert_eq!((camera.filter, camera.spp), (Filter::Gaussian { stddev: 0.7 }, 9));
}

#[test]
fn objects_are_found_by_id_and_by_path_before_and_after() {
    let by_path = edited(
        "\"rfilter\": {\"type\": \"tent\"}",
        "\"rfilter\": {\"type\": \"ref\", \"id\": \"later.rfilter\"}",
    )
    .replace(
        "\"background\": {",
        r#""later": {"type": "hdrfilm", "rfilter": {"type": "box"}}, "background": {"#,
    );
    assert_eq!(read(&by_path).sensors[0].filter, Filter::Box);
    let by_id = edited("{\"type\": \"tent\"}", "{\"type\": \"tent\", \"id\": \"soft\", \"radius\": 2}")
        .replace("\"background\": {", r#""b": {"type": "perspective", "film": {"type": "hdrfilm", "f": {"type": "ref", "id": "soft"}}}, "background": {"#);
    assert_eq!(read(&by_id).sensors[1].filter, Filter::Tent { radius: 2.0 });
}

#[test]
fn parameters_keep_the_path_at_which_they_are_used() {
    let medium = "\"type\": \"radiance_field\", \"sh_degree\": 0, \"sigma_t\": 1, \"sh_coeffs\": 2";
    let scene = read(&format!(
        r#"{{"fog": {{{medium}}},
            "box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "ref", "id": "fog"}}}}}}"#
    ));
    let paths: Vec<_> = scene.arrays().iter().map(|array| array.path.clone()).collect();
    assert_eq!(paths, ["box.interior.sigma_t", "box.interior.sh_coeffs"]);
}

#[test]
fn circles_of_references_are_refused() {
    let chain =
        r#"{"a": {"type": "ref", "id": "b"}, "b": {"type": "ref", "id": "c"}, "c": {"type": "ref", "id": "a"}}"#;
    assert!(
        mistakes_in(chain).contains("leads back to itself"),
        "{}",
        mistakes_in(chain)
    );
    let nested = r#"{"a": {"type": "cube", "interior": {"type": "ref", "id": "b"}},
        "b": {"type": "radiance_field", "sigma_t": {"type": "ref", "id": "a"}}}"#;
    assert!(mistakes_in(nested).contains("leads back to itself"));
    let long: String = (0..5000)
        .map(|i| format!(r#""a{i}": {{"type": "ref", "id": "a{}"}}, "#, i + 1))
        .collect();
    read(&format!(r#"{{{long} "a5000": {{"type": "box"}}}}"#));
}

#[test]
fn numbers_and_colours_stand_for_volumes() {
    let volume = r#"{"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.1}"#;
    let coefficients = |value: &str| {
        let text = edited(volume, value).replace("\"sh_degree\": 1", "\"sh_degree\": 0");
        let field = read(&text).field.expect("the scene has a medium");
        (field.sh_coeffs.shape.size, field.sh_coeffs.source)
    };
    let one = [1, 1, 1];
    assert_eq!(coefficients("2"), (one, Source::Fill(vec![2.0])));
    assert_eq!(coefficients("[1, 2, 3]"), (one, Source::Fill(vec![1.0, 2.0, 3.0])));
    assert_eq!(
        coefficients(r#"{"type": "rgb", "value": [1, 2, 3]}"#),
        (one, Source::Fill(vec![1.0, 2.0, 3.0]))
    );
    assert_eq!(
        coefficients(r#"{"type": "constvolume"}"#),
        (one, Source::Fill(vec![1.0]))
    );
    let grid = r#"{"type": "gridvolume", "resolution": [2, 3, 4], "value": [1, 2, 3]}"#;
    assert_eq!(coefficients(grid), ([2, 3, 4], Source::Fill(vec![1.0, 2.0, 3.0])));
}

#[test]
fn environment_maps_without_a_file() {
    let map = r#""type": "envmap", "data": {"resolution": [8, 4], "value": [1, 2, 3]}, "scale": 2"#;
    let scene = read(&edited("\"type\": \"constant\", \"radiance\": 1", map));
    let Background::Envmap { data, scale, .. } = &scene.background else {
        panic!("{:?}", scene.background)
    };
    assert_eq!(
        (data.shape.size, data.shape.channels, data.kind),
        ([8, 4, 1], 3, Kind::Envmap)
    );
    assert_eq!(
        (data.path.as_str(), &scale.source),
        ("background.data", &Source::Fill(vec![2.0]))
    );
}

#[test]
fn a_scene_has_at_most_one_medium_and_may_have_none() {
    let scene = read(r#"{"light": {"type": "constant", "radiance": [1, 2, 3]}}"#);
    assert!(scene.field.is_none() && scene.sensors.is_empty());
}

#[test]
fn what_a_run_does_unless_told_otherwise() {
    let optimize = read(SCENE).optimize.expect("the scene has the block");
    assert_eq!(
        (optimize.iterations, optimize.spp, optimize.spp_grad, optimize.seed),
        (1000, 1, 1, 0)
    );
    assert_eq!((optimize.batch, optimize.loss), (BatchRule::AllViews, Loss::L2));
    let adam = Optimizer::Adam {
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-8,
        mask_updates: false,
    };
    assert_eq!(optimize.optimizer, adam);
    assert_eq!(
        (optimize.schedule.decay, optimize.schedule.warm_up),
        (Decay::Constant, 0)
    );
    assert!(
        optimize
            .stages
            .iter()
            .all(|stage| stage.upsample == 2 && stage.moments == MomentRule::Reset)
    );
    assert_eq!(optimize.references, References::Constant([0.5; 3]));
    assert_eq!(optimize.output.checkpoint_seconds, 60.0);
}

#[test]
fn stages_take_as_many_samples_as_before_unless_told_otherwise() {
    let stages = r#""spp": 3, "spp_grad": 5, "stages": [
        {"at": 0.1}, {"at": 0.2, "spp": 8}, {"at": 0.3, "spp_grad": 2}, {"at": 0.4}, {"at": 0.5, "spp": 4, "spp_grad": 6}]"#;
    let scene = read(&edited(r#""stages": [{"at": 0.25}, {"at": 0.5}]"#, stages));
    let stages = scene.optimize.expect("the scene has the block").stages;
    let samples: Vec<_> = stages.iter().map(|stage| (stage.spp, stage.spp_grad)).collect();
    assert_eq!(samples, [(3, 5), (8, 8), (8, 2), (8, 2), (4, 6)]);
}

/// A stage that leaves resolution, moments and samples as they are is warned of, also one that says again what holds before.
#[test]
fn stages_change_something() {
    for (list, idle) in [
        (r#"{"at": 0.5, "upsample": 1}"#, Some(0)),
        (r#"{"at": 0.5, "upsample": 1, "spp": 2}"#, Some(0)),
        (r#"{"at": 0.5, "upsample": 1, "moments": "resample"}"#, Some(0)),
        (
            r#"{"at": 0.2, "spp": 4}, {"at": 0.5, "upsample": 1, "spp": 4}"#,
            Some(1),
        ),
        (r#"{"at": 0.5, "upsample": 1, "moments": "reset"}"#, None),
        (r#"{"at": 0.5, "upsample": 1, "spp_grad": 3}"#, None),
    ] {
        let stages = format!(r#""spp": 2, "stages": [{list}]"#);
        let told = read(&edited(r#""stages": [{"at": 0.25}, {"at": 0.5}]"#, &stages)).warnings;
        assert_eq!(told.len(), idle.iter().count(), "{list}: {told:?}");
        if let Some(index) = idle {
            assert!(
                told[0].starts_with(&format!("stage {index} of `stages` changes nothing")),
                "{told:?}"
            );
        }
    }
}

/// The small world in which a colour is optimised, with these stages.
fn without_grid(stages: &str) -> String {
    let tuned = format!(r#""stages": {stages}, "parameters": {{"box.interior.albedo": {{}}}}"#);
    edited_world(r#""parameters": {"box.interior.sigma_t": {}}"#, &tuned)
}

#[test]
fn stages_without_a_grid_upsample_nothing() {
    for (stage, message) in [
        (
            r#"{"at": 0.5, "upsample": 2}"#,
            "19:40: there is nothing to upsample at optimize.stages[0].upsample: leave `upsample` out, or \
             optimise a `gridvolume`, a `bitmap` or an `envmap`",
        ),
        (
            r#"{"at": 0.5}"#,
            "19:16: there is no grid that this stage could refine at optimize.stages[0]: remove it, say `spp`, or make \
             a `gridvolume` of an optimised volume",
        ),
    ] {
        let text = without_grid(&format!("[{stage}]"));
        assert_eq!(mistakes_in(&text), format!("test.json:{message}"), "{stage}");
    }
    let scene = read(&without_grid(
        r#"[{"at": 0.2, "spp": 4}, {"at": 0.4, "upsample": 1}, {"at": 0.6, "moments": "reset"}]"#,
    ));
    let stages = &scene.optimize.as_ref().expect("the scene has the block").stages;
    assert_eq!(stages.iter().map(|stage| stage.upsample).collect::<Vec<_>>(), [1, 1, 1]);
    let moments = stages.iter().map(|stage| stage.moments);
    assert!(moments.eq([MomentRule::Resample, MomentRule::Resample, MomentRule::Reset]));
    let text = scene.resolved.to_string();
    assert_eq!(read(&text).optimize, scene.optimize, "the resolved form is no mistake");
    let kept = read(&edited(r#"{"at": 0.25}"#, r#"{"at": 0.25, "upsample": 1}"#));
    let stages = kept.optimize.expect("the scene has the block").stages;
    assert_eq!((stages[0].upsample, stages[0].moments), (1, MomentRule::Resample));
    assert_eq!((stages[1].upsample, stages[1].moments), (2, MomentRule::Reset));
}

#[test]
fn the_block_optimize_reaches_the_arrays() {
    let text = edited(
        "\"bounds\": [0, null]",
        "\"bounds\": [0, null], \"initial\": 0.25, \"start_resolution\": [2, 3, 4]",
    );
    let scene = read(&text);
    let sigma_t = &scene.arrays()[0];
    let tuning = sigma_t.tuning.expect("the block names it");
    assert_eq!((tuning.learning_rate, tuning.bounds), (0.5, [0.0, f32::INFINITY]));
    assert_eq!(
        (sigma_t.shape.size, &sigma_t.source),
        ([2, 3, 4], &Source::Fill(vec![0.25]))
    );
    assert!(scene.arrays()[1].tuning.is_some() && scene.arrays()[2].tuning.is_none());
}

#[test]
fn losses_optimizers_schedules_and_batches() {
    let block = |text: &str| {
        read(&edited("\"stages\": [", &format!("{text}, \"stages\": [")))
            .optimize
            .expect("is there")
    };
    assert_eq!(block(r#""loss": "l1""#).loss, Loss::L1);
    assert_eq!(
        block(r#""loss": {"type": "huber", "delta": 0.5}"#).loss,
        Loss::Huber { delta: 0.5 }
    );
    let sgd = block(r#""optimizer": {"type": "sgd", "momentum": 0.5}"#);
    assert_eq!(sgd.optimizer, Optimizer::Sgd { momentum: 0.5 });
    let cosine = block(r#""schedule": {"type": "cosine", "final_factor": 0.5, "warm_up": 7}"#).schedule;
    assert_eq!((cosine.decay, cosine.warm_up), (Decay::Cosine { final_factor: 0.5 }, 7));
    assert_eq!(block(r#""batch": {"rays": 100}"#).batch, BatchRule::Rays(100));
    assert_eq!(block(r#""batch": {"views": 1}"#).batch, BatchRule::Views(1));
    assert_eq!(block("\"seed\": 18446744073709551615").seed, u64::MAX);
    let spp = block("\"spp\": 8");
    assert_eq!((spp.spp, spp.spp_grad), (8, 8));
}

#[test]
fn objects_that_nothing_uses_are_warned_of() {
    let scene = read(&edited(
        "\"background\": {",
        r#""spare": {"type": "box"}, "background": {"#,
    ));
    assert_eq!(
        scene.warnings,
        ["the reconstruction filter `spare` is not used: nothing refers to it"]
    );
}

/// A crop window of 16 × 8 pixels of a film of 64 × 32 keeps the lens and moves the principal point.
#[test]
fn a_crop_window_is_a_part_of_the_film() {
    let whole = &read(&edited(r#""width": 64"#, r#""width": 64, "sample_border": true"#)).sensors[0];
    let window = r#""width": 64, "crop_offset_x": 40, "crop_offset_y": 3, "crop_width": 16, "crop_height": 8"#;
    let part = &read(&edited(r#""width": 64"#, window)).sensors[0];
    assert_eq!((whole.width, whole.height, whole.sample_border), (64, 32, true));
    assert_eq!((part.width, part.height, part.sample_border), (16, 8, false));
    assert_eq!(part.focal, whole.focal);
    assert_eq!(part.center, [whole.center[0] - 40.0, whole.center[1] - 3.0]);
}

/// Samples are independent whatever the sampler, of which one warning tells.
#[test]
fn samplers_are_read() {
    for (name, warned) in [
        ("independent", 0),
        ("stratified", 1),
        ("multijitter", 1),
        ("orthogonal", 1),
        ("ldsampler", 1),
    ] {
        let text = edited(
            r#""film": {"type": "hdrfilm", "width": 64, "height": 32,"#,
            &format!(
                r#""sampler": {{"type": "{name}", "sample_count": 9}}, "film": {{"type": "hdrfilm", "width": 64, "height": 32,"#
            ),
        );
        let text = text.replace(
            "\"background\": {",
            r#""second": {"type": "ref", "id": "camera"}, "background": {"#,
        );
        let scene = read(&text);
        assert_eq!(
            (scene.sensors[0].spp, scene.warnings.len()),
            (9, warned),
            "{name}: {:?}",
            scene.warnings
        );
    }
}
