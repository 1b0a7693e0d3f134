//! Worlds with media whose mean radiance has a closed form, within four standard errors, which are below 2 %.

mod small;

use prbopt::gradcheck::Options;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::resident::layout::gradient;
use small::worlds::{SmallWorld, cube, grid};

/// A camera that looks along -z at the middle of the box, with rays so nearly parallel that each has a length of two inside.
const AHEAD: &str = r#", "to_world": [{"look_at": {"origin": [0, 0, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#;

/// A cube filled with a medium whose extinction is the same everywhere.
fn fog(medium: &str) -> String {
    format!(r#""box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "homogeneous", {medium}}}}}"#)
}

fn assert_mean(small: &SmallWorld, channel: usize, expected: f64) {
    let (mean, error) = small.mean(4096, channel);
    assert!(
        (mean - expected).abs() < 4.0 * error + 1e-6,
        "{}: {mean} ± {error}, not {expected}",
        small.name
    );
    assert!(error < 0.02 * expected, "{}: {error} says little", small.name);
}

/// Where nothing is absorbed and the same radiance comes from all directions, every path has that radiance, whatever the density.
#[test]
fn a_furnace_shows_its_sky() {
    let smoke = |channels: usize| {
        format!(
            r#"{}, "sky": {{"type": "constant"}}"#,
            cube(&format!(
                r#""sigma_t": {}, "albedo": 1, "scale": 3, "phase": {{"type": "hg", "g": 0.4}}"#,
                grid([3, 3, 3], channels, "")
            ))
        )
    };
    let furnace = SmallWorld {
        name: "furnace",
        integrator: r#", "rr_depth": 1000000"#,
        sensor: AHEAD,
        objects: smoke(1),
        set: vec![("albedo", vec![1.0]), ("radiance", vec![0.7])],
        ..SmallWorld::default()
    };
    let setup = furnace.setup("drt", &Options::default());
    let objective = PathObjective::new(&setup, gradient::DRT);
    for cast in &objective.casts {
        for x in objective.gather(&objective.fields, cast) {
            assert!((x - 0.7).abs() < 1e-5, "{x}");
        }
    }
    for (name, integrator, channels) in [("roulette", "", 1), ("rgb", "", 3)] {
        let small = SmallWorld {
            name,
            integrator,
            objects: smoke(channels),
            ..furnace.clone()
        };
        for channel in 0..3 {
            assert_mean(&small, channel, 0.7);
        }
    }
}

/// Transmittance exp(-sigma l), channel by channel, through boxes and balls.
#[test]
fn absorbing_media_let_the_exponential_pass() {
    for shape in [r#""type": "cube""#, r#""type": "sphere""#] {
        for sigma in [vec![0.8], vec![0.4, 0.8, 1.2]] {
            let small = SmallWorld {
                name: "absorption",
                sensor: AHEAD,
                objects: format!(
                    r#""box": {{{shape}, "bsdf": {{"type": "null"}},
                        "interior": {{"type": "homogeneous", "sigma_t": {sigma:?}, "albedo": 0}}}},
                       "sky": {{"type": "constant"}}"#
                ),
                set: vec![
                    ("sigma_t", sigma.clone()),
                    ("albedo", vec![0.0]),
                    ("radiance", vec![1.0]),
                ],
                ..SmallWorld::default()
            };
            for channel in 0..3 {
                let sigma: f32 = sigma[channel % sigma.len()];
                assert_mean(&small, channel, (-2.0 * f64::from(sigma)).exp());
            }
        }
    }
}

/// Emission e and no scattering: e (1 - exp(-sigma l)).
#[test]
fn emitting_media_shine() {
    let small = SmallWorld {
        name: "emission",
        sensor: AHEAD,
        objects: fog(r#""sigma_t": 0.6, "albedo": 0, "emission": [1, 2, 3]"#),
        set: vec![
            ("sigma_t", vec![0.6]),
            ("albedo", vec![0.0]),
            ("emission", vec![1.0, 2.0, 3.0]),
        ],
        ..SmallWorld::default()
    };
    for channel in 0..3 {
        let expected = (channel as f64 + 1.0) * (1.0 - (-1.2f64).exp());
        assert_mean(&small, channel, expected);
    }
}

/// Light that comes down, scattered once: ∫ E albedo / 4 pi · sigma exp(-sigma t) exp(-sigma · 1) dt over a length of
/// two.
#[test]
fn single_scattering_has_the_closed_form() {
    let sigma: f64 = 0.7;
    let small = SmallWorld {
        name: "single scattering",
        integrator: r#", "max_depth": 2"#,
        sensor: AHEAD,
        objects: format!(
            r#"{}, "sun": {{"type": "directional", "direction": [0, -1, 0]}}"#,
            fog(r#""sigma_t": 0.7, "albedo": 0.6"#)
        ),
        set: vec![
            ("sigma_t", vec![sigma as f32]),
            ("albedo", vec![0.6]),
            ("irradiance", vec![10.0]),
        ],
        ..SmallWorld::default()
    };
    let expected = 10.0 * 0.6 / (4.0 * std::f64::consts::PI) * (-sigma).exp() * (1.0 - (-2.0 * sigma).exp());
    assert_mean(&small, 1, expected);
}

/// A `heterogeneous` medium ends at the box around the volume of its `sigma_t`: a number fills the unit cube, a
/// `constvolume` what its `to_world` makes of it, turned or not.
#[test]
fn a_constant_extinction_fills_the_box_of_its_volume() {
    let volume = |to_world: &str| format!(r#"{{"type": "constvolume", "value": 0.8, "to_world": [{to_world}]}}"#);
    let middle = r#"{"translate": [-0.5, -0.5, -0.5]}"#;
    let cases = [
        ("homogeneous", "0.8".to_string(), 2.0),
        ("heterogeneous", "0.8".to_string(), 1.0),
        ("heterogeneous", volume(""), 1.0),
        ("heterogeneous", volume(r#"{"scale": [1, 1, 0.4]}"#), 0.4),
        ("heterogeneous", volume(&format!(r#"{middle}, {{"scale": 1.5}}"#)), 1.5),
        // The box around a cube that stands on an edge.
        (
            "heterogeneous",
            volume(&format!(
                r#"{middle}, {{"rotate": {{"axis": [1, 0, 0], "angle": 45}}}}"#
            )),
            std::f64::consts::SQRT_2,
        ),
        ("heterogeneous", volume(&format!(r#"{middle}, {{"scale": 9}}"#)), 2.0),
    ];
    for (kind, sigma_t, length) in cases {
        let small = SmallWorld {
            name: "box",
            // Looks along -z past the origin, where the unit cube begins.
            sensor: r#", "to_world": [{"look_at": {"origin": [0.2, 0.2, 5], "target": [0.2, 0.2, 0], "up": [0, 1, 0]}}]"#,
            objects: format!(
                r#""box": {{"type": "cube", "bsdf": {{"type": "null"}},
                    "interior": {{"type": "{kind}", "sigma_t": {sigma_t}, "albedo": 0}}}},
                   "sky": {{"type": "constant"}}"#
            ),
            set: vec![("sigma_t", vec![0.8]), ("albedo", vec![0.0]), ("radiance", vec![1.0])],
            ..SmallWorld::default()
        };
        assert_mean(&small, 0, (-0.8 * length).exp());
    }
}
