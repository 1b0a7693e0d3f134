//! Forward mode with the sampling frozen against finite differences, and the directions that it is asked for.

use std::path::Path;

use prbopt::gradcheck::forward::{Motion, PATHS_AT_ONCE, direction, forward};
use prbopt::gradcheck::{Index, Options, Setup};
use prbopt::scene;

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
        let found = forward(&setup, parameter, &direction, 1e-3).expect("a walk");
        assert!(found.largest > 0.0, "{path} {motion:?} changes the image");
        assert!(
            found.difference <= 1e-6 * found.largest,
            "{path} {motion:?}: {} of {}",
            found.difference,
            found.largest
        );
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
        forward(&setup, parameter, &direction, 1e-3).expect("a walk").slopes
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
