//! Forward mode with the sampling frozen against finite differences, and the tangents that its options describe.

use std::path::Path;

use prbopt::gradcheck::forward::{Motion, PATHS_AT_ONCE, direction, forward};
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Index, Options, Setup};
use prbopt::resident::layout::gradient;
use prbopt::scene;
use prbopt::transport::rays::pixel::linear_weight;

fn setup(file: &str) -> Setup {
    let scene = scene::load(Path::new(file)).expect("a scene");
    let mut setup = Setup::new(&scene, &Options::default()).expect("can be made ready");
    setup.batch.drawn = Some(300);
    setup
}

#[test]
fn forward_mode_agrees_with_frozen_differences() {
    for (file, path, motion) in [
        ("scenes/smoke_small.json", "smoke.interior.sigma_t", Motion::Scale(None)),
        (
            "scenes/smoke_small.json",
            "smoke.interior.sigma_t",
            Motion::Shift([0.0, 1.0, 0.0]),
        ),
        (
            "scenes/smoke_small.json",
            "smoke.interior.albedo",
            Motion::Scale(Some(1)),
        ),
        ("scenes/two_blobs.json", "object.interior.sigma_t", Motion::Scale(None)),
        (
            "scenes/two_blobs.json",
            "object.interior.sigma_t",
            Motion::Entry(Index::Coordinates([6, 6, 6, 0])),
        ),
    ] {
        let setup = setup(file);
        let parameter = setup.params.find(path).expect("there");
        let direction = direction(&setup.params.parameters[parameter], motion.clone()).expect("possible");
        let found = forward(&setup, parameter, &direction, None).expect("a walk");
        assert!(found.largest > 0.0, "{path} {motion:?} changes the image");
        assert!(
            found.difference <= 1e-6 * found.largest,
            "{path} {motion:?}: {} of {}",
            found.difference,
            found.largest
        );
    }
}

fn setup_of(text: &str, parameter: &str) -> Setup {
    let scene = scene::parse(text, Path::new("forward.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let options = Options {
        parameters: vec![parameter.into()],
        ..Options::default()
    };
    Setup::new(&scene, &options).expect("can be made ready")
}

/// Filters with negative lobes and meters give samples weights: forward mode has those of the replay, and its gradient, to 1e-9.
#[test]
fn samples_count_as_much_as_in_a_replay() {
    let film = |filter: &str| {
        format!(r#""film": {{"type": "hdrfilm", "width": 6, "height": 5, "rfilter": {{"type": "{filter}"}}}}"#)
    };
    let camera = |filter: &str| {
        let place = r#""to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#;
        format!(r#""camera": {{"type": "perspective", {place}, {}}}"#, film(filter))
    };
    let meter = r#""plate": {"type": "rectangle", "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 180}},
            {"translate": [0, 0, 0.4]}],
        "sensor": {"type": "irradiancemeter", "film": {"type": "hdrfilm", "width": 1, "height": 1, "rfilter": {"type": "box"}}}}"#;
    for sensor in [camera("box"), camera("lanczos"), camera("mitchell"), meter.to_string()] {
        let text = format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": 3}}, {sensor},
                "wall": {{"type": "rectangle", "to_world": [{{"scale": 1.2}}], "bsdf": {{"type": "diffuse", "reflectance": 0.5}}}},
                "lamp": {{"type": "point", "position": [1, 1, 3], "intensity": 9}}}}"#
        );
        let mut setup = setup_of(&text, "wall.bsdf.reflectance");
        setup.spp = 64;
        let parameter = setup.checked[0];
        let channels = setup.params.parameters[parameter].values.len();
        let found = forward(&setup, parameter, &vec![1.0; channels], Some(1e-3)).expect("a walk");
        let adjoint = PathObjective::new(&setup, gradient::FREE_FLIGHT).adjoint(7);
        let expected: f64 = adjoint.gradient[parameter].iter().sum();
        let weigh = |(place, slope): (u32, &Option<[f64; 3]>)| {
            let of = |c: usize| f64::from(linear_weight(7, place, c as u32)) * slope.expect("has samples")[c];
            (0..3).map(of).sum::<f64>()
        };
        let sum: f64 = (0..).zip(&found.slopes).map(weigh).sum();
        let sum = sum / (3.0 * found.slopes.len() as f64);
        assert!(expected.abs() > 1e-3, "{sensor}: {expected}");
        assert!((sum / expected - 1.0).abs() < 1e-9, "{sensor}: {sum}, not {expected}");
        assert!(
            found.difference < 1e-6 * found.largest,
            "{sensor}: {}",
            found.difference
        );
    }
}

/// Along what moves, steps are those of lengths and degrees, and paths that graze a surface or pass behind another have shorter ones.
#[test]
fn what_moves_agrees_with_frozen_differences() {
    for (parameter, tangent) in [
        ("ball.to_world.translate", [0.0, 0.0, 1.0]),
        ("ball.to_world.rotate", [1.0, 2.0, 0.0]),
        ("lamp.to_world.translate", [1.0, 0.0, 0.5]),
    ] {
        let text = format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": 4}},
            "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 16, "height": 16}},
                "to_world": [{{"look_at": {{"origin": [0, 1, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}]}},
            "floor": {{"type": "rectangle", "to_world": [{{"scale": 3}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}},
                {{"translate": [0, -1, 0]}}]}},
            "ball": {{"type": "sphere", "radius": 0.7, "bsdf": {{"type": "roughplastic", "alpha": 0.2}}}},
            "lamp": {{"type": "rectangle", "to_world": [{{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 1]}}],
                "emitter": {{"type": "area", "radiance": 5}}}},
            "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{"{parameter}": {{}}}}}}}}"#
        );
        let mut setup = setup_of(&text, parameter);
        setup.spp = 16;
        let found = forward(&setup, setup.checked[0], &tangent, None).expect("a walk");
        assert!(found.largest > 0.0, "{parameter} changes the image");
        assert!(
            found.difference <= 1e-6 * found.largest,
            "{parameter}: {} of {}",
            found.difference,
            found.largest
        );
    }
}

/// Points behind smooth glass move with its index and its place, which forward mode does not follow.
#[test]
fn what_bends_paths_is_refused() {
    let text = r#"{"integrator": {"type": "prb_attached", "max_depth": 6},
        "camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 4, "height": 4}},
        "pane": {"type": "rectangle", "to_world": [{"translate": [0, 0, 3]}], "bsdf": {"type": "dielectric"}},
        "sheet": {"type": "rectangle", "to_world": [{"scale": 5}, {"translate": [0, 0, 6]}],
            "bsdf": {"type": "diffuse", "reflectance": 0}, "emitter": {"type": "area", "radiance": 1}}"#;
    for (parameter, refused) in [
        ("pane.bsdf.eta", true),
        ("pane.to_world.translate", true),
        ("camera.to_world.rotate", true),
        ("pane.bsdf.specular_transmittance", false),
    ] {
        let optimize = format!(
            r#", "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{"{parameter}": {{}}}}}}}}"#
        );
        let setup = setup_of(&(text.to_string() + &optimize), parameter);
        let slot = setup.checked[0];
        let direction = vec![1.0; setup.params.parameters[slot].values.len()];
        let found = forward(&setup, slot, &direction, Some(1e-3));
        assert_eq!(found.is_err(), refused, "{parameter}");
        if let Err(error) = found {
            assert!(error.to_string().contains("use `prbopt backpropagate`"), "{error}");
        }
    }
}

/// Pixels are drawn one after another, so that a smaller batch, processed in one piece, is a prefix of a larger
/// one.
#[test]
fn pieces_do_not_show() {
    let found = |pixels: u32| {
        let mut setup = setup("scenes/smoke_small.json");
        setup.spp = PATHS_AT_ONCE / 128;
        setup.batch.drawn = Some(pixels);
        let parameter = setup.params.find("smoke.interior.sigma_t").expect("there");
        let direction = direction(&setup.params.parameters[parameter], Motion::Scale(None)).expect("possible");
        forward(&setup, parameter, &direction, Some(1e-3))
            .expect("a walk")
            .slopes
    };
    let (several, one) = (found(150), found(128));
    assert_eq!((several.len(), &several[..128]), (150, &one[..]));
    assert!(several.iter().all(Option::is_some));
}

#[test]
fn a_shift_of_a_ramp_is_its_slope() {
    let setup = setup("scenes/smoke_small.json");
    let mut grid = setup.params.parameters[setup.params.find("smoke.interior.sigma_t").expect("there")].clone();
    let [nx, ny, _] = grid.shape.size;
    grid.values = (0..grid.shape.len()).map(|i| (i / nx % ny) as f32).collect();
    let moved = direction(&grid, Motion::Shift([0.0, 1.0, 0.0])).expect("a grid");
    assert!(moved.iter().all(|v| (v + ny as f64).abs() < 1e-9), "{moved:?}");
    let still = direction(&grid, Motion::Shift([1.0, 0.0, 0.0])).expect("a grid");
    assert!(still.iter().all(|v| *v == 0.0));
    assert!(direction(&grid, Motion::Scale(Some(7))).is_err());
}

#[test]
fn a_tangent_has_numbers_for_entries_for_channels_or_for_all() {
    let setup = setup("scenes/smoke_small.json");
    let albedo = setup.params.find("smoke.interior.albedo").expect("there");
    let albedo = &setup.params.parameters[albedo];
    let along = |numbers: Vec<f64>| direction(albedo, Motion::Along(numbers));
    let (count, channels) = (albedo.values.len(), albedo.shape.channels);
    assert!(channels == 3 && count > 3);
    assert_eq!(along(vec![2.0]).expect("one number"), vec![2.0; count]);
    let by_channel = along(vec![1.0, 2.0, 3.0]).expect("one a channel");
    assert_eq!((by_channel.len(), &by_channel[2..5]), (count, &[3.0, 1.0, 2.0][..]));
    let each: Vec<f64> = (0..count).map(|i| i as f64).collect();
    assert_eq!(along(each.clone()).expect("one an entry"), each);
    let refused = along(vec![1.0, 2.0]).expect_err("two for three").to_string();
    assert!(refused.contains("one for each channel"), "{refused}");
}
