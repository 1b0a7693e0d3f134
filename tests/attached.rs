//! Gradients along chains of smooth glass and mirrors whose points move (`prb_attached`): path replay against differences of
//! images whose sampling is not frozen, and what the detached replay knows of them.

mod small;

use std::path::Path;

use glam::Affine3A;
use prbopt::gradcheck::paths::fresh::rows;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Options, Setup};
use prbopt::params::{Kind, Quantity, Shape};
use prbopt::resident::Resident;
use prbopt::resident::layout::gradient;
use prbopt::scene::{self, Array, Background, Scene, Source};
use small::draw;

/// Passes of the means of images that are drawn anew.
const PASSES: u32 = 600;

/// A world of a name that looks at `objects`, before an environment map if `sky`; `wanted` are sought.
struct World {
    name: &'static str,
    objects: String,
    wanted: &'static [&'static str],
    sky: bool,
}

/// A normal map of 4 × 3 texels over a BSDF.
fn mapped(bsdf: &str) -> String {
    format!(
        r#"{{"type": "normalmap", "use_shadowing_function": false, "inner": {bsdf},
             "normalmap": {{"type": "bitmap", "wrap_mode": "clamp", "data": {{"resolution": [4, 3], "value": [0.5, 0.5, 1]}}}}}}"#
    )
}

fn worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let turned = r#""to_world": [{"rotate": {"axis": [1, 0.4, 0.2], "angle": -25}}]"#;
    let back = r#""to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 168}}, {"translate": [0, 0, -0.6]}]"#;
    vec![
        World {
            name: "two faces of a slab",
            objects: format!(
                r#""front": {{"type": "rectangle", "bsdf": {}, {turned}}},
                   "back": {{"type": "rectangle", "bsdf": {}, {back}}}"#,
                mapped(glass),
                mapped(glass)
            ),
            wanted: &["front.bsdf.normalmap", "back.bsdf.normalmap"],
            sky: true,
        },
        World {
            name: "a ball of glass",
            objects: format!(
                r#""ball": {{"type": "sphere", "radius": 1.3, "bsdf": {}, {turned}}}"#,
                mapped(glass)
            ),
            wanted: &["ball.bsdf.normalmap"],
            sky: true,
        },
        World {
            name: "a mirror and a picture that shines",
            objects: format!(
                r#""mirror": {{"type": "rectangle", "bsdf": {}, {turned}}},
                   "lamp": {{"type": "sphere", "radius": 30, "flip_normals": true,
                       "bsdf": {{"type": "diffuse", "reflectance": 0}},
                       "emitter": {{"type": "area", "radiance":
                           {{"type": "bitmap", "data": {{"resolution": [5, 4], "value": [0.5, 0.5, 0.5]}}}}}}}}"#,
                mapped(r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#)
            ),
            wanted: &["mirror.bsdf.normalmap"],
            sky: false,
        },
        World {
            name: "the index of a ball",
            objects: format!(r#""ball": {{"type": "sphere", "radius": 1.3, "bsdf": {glass}, {turned}}}"#),
            wanted: &["ball.bsdf.eta"],
            sky: true,
        },
    ]
}

impl World {
    fn scene(&self, integrator: &str) -> Scene {
        let wanted: Vec<String> = self.wanted.iter().map(|path| format!(r#""{path}": {{}}"#)).collect();
        let text = format!(
            r#"{{"integrator": {{"type": "{integrator}", "max_depth": 4, "rr_depth": 100}},
                "camera": {{"type": "perspective", "fov": 16,
                    "to_world": [{{"look_at": {{"origin": [0.5, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
                {}, "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}}}"#,
            self.objects,
            wanted.join(", ")
        );
        let mut scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        if self.sky {
            scene.background = Background::Envmap {
                data: Array {
                    path: "sky.data".into(),
                    kind: Kind::Envmap,
                    shape: Shape {
                        size: [9, 6, 1],
                        channels: 3,
                    },
                    source: Source::Fill(vec![0.0]),
                    tuning: None,
                },
                scale: Array::value("sky.scale", &[0.8]),
                sampling_weight: 1.0,
                to_world: Affine3A::from_rotation_y(0.4),
            };
        }
        scene
    }

    /// The scene with random normals and radiance.
    fn setup(&self, integrator: &str) -> Setup {
        let options = Options {
            seed: 5,
            ..Options::default()
        };
        let mut setup = Setup::new(&self.scene(integrator), &options).expect("small worlds are sound");
        setup.spp = 4;
        for (i, parameter) in setup.params.parameters.iter_mut().enumerate() {
            for (j, value) in parameter.values.iter_mut().enumerate() {
                let u = draw(5, i as u32, j as u32);
                *value = match parameter.quantity {
                    Quantity::Normal if j % 3 == 2 => 0.9 + 0.1 * u,
                    Quantity::Normal => 0.45 + 0.1 * u,
                    Quantity::Light | Quantity::Environment if parameter.shape.texels() > 1 => 0.2 + u,
                    _ => continue,
                };
            }
        }
        setup
    }
}

#[test]
fn replay_agrees_with_differences_of_images_that_are_drawn_anew() {
    let mut failures = Vec::new();
    for world in worlds() {
        let setup = world.setup("prb_attached");
        for &slot in &setup.checked {
            let parameter = &setup.params.parameters[slot];
            let wanted: Vec<usize> = (0..parameter.values.len()).collect();
            let rows = rows(&setup, slot, &wanted, PASSES);
            let largest = rows.iter().fold(0.0, |m: f64, row| m.max(row.fresh.abs()));
            assert!(largest > 1e-4, "{}: nothing reaches {}", world.name, parameter.path);
            for row in rows {
                let found = format!(
                    "{}, {} {:?}: {:.4e}, {:.4e} ± {:.1e}",
                    world.name, parameter.path, row.index, row.replayed, row.fresh, row.error
                );
                println!("{found}");
                if (row.fresh - row.replayed).abs() >= 6.0 * row.error + 1e-2 * row.fresh.abs() + 1e-3 * largest {
                    failures.push(found);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The detached replay holds sampled directions, and with them all that a normal map of smooth glass does.
#[test]
fn a_detached_replay_knows_nothing_of_it() {
    for world in worlds()
        .into_iter()
        .filter(|world| world.wanted[0].ends_with("normalmap"))
    {
        let setup = world.setup("prb");
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let mut found = objective.fields.zeros();
        for cast in &objective.casts {
            objective.replay([1.0, 0.5, 2.0], cast, &mut objective.sums(&mut found));
        }
        for &slot in &setup.checked {
            assert!(found[slot].iter().all(|d| *d == 0.0), "{}", world.name);
        }
    }
}

/// What the chain's derivatives would leave out is refused.
#[test]
fn scenes_out_of_reach_are_refused() {
    let world = |integrator: &str, bsdf: &str| {
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached" {integrator}}}, "sky": {{"type": "constant"}},
                "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
                "ball": {{"type": "sphere", "bsdf": {bsdf}}}}}"#
        );
        let scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{e}"));
        Resident::new(&scene).map(|_| ()).map_err(|e| e.to_string())
    };
    let glass = r#"{"type": "dielectric"}"#;
    assert_eq!(world("", glass), Ok(()));
    assert_eq!(world("", r#"{"type": "diffuse", "reflectance": 0}"#), Ok(()));
    let relief = |kind: &str| {
        format!(
            r#"{{"type": "{kind}", "inner": {glass}, "map": {{"type": "bitmap", "data": {{"resolution": [2, 2], "value": 0.5}}}}}}"#
        )
    };
    for (integrator, bsdf, expected) in [
        (r#", "max_depth": -1"#, glass, "set its `max_depth` to 17 or less"),
        (r#", "max_depth": 18"#, glass, "set its `max_depth` to 17 or less"),
        (
            "",
            r#"{"type": "diffuse"}"#,
            "any other `bsdf` that is not a black `diffuse`",
        ),
        (
            "",
            r#"{"type": "roughdielectric"}"#,
            "any other `bsdf` that is not a black `diffuse`",
        ),
        ("", &relief("bumpmap"), "write the `bumpmap` as one"),
    ] {
        let why = world(integrator, bsdf).expect_err(bsdf);
        assert!(why.contains(expected), "{why}");
    }
}
