//! Gradients along chains of smooth glass and mirrors whose points move (`prb_attached`): path replay against differences of
//! images whose sampling is not frozen, and what the detached replay knows of them.

mod camera;
mod inverted;
#[path = "../small/mod.rs"]
mod small;
mod texels;
mod trace;

use std::path::Path;

use glam::Affine3A;
use prbopt::gradcheck::paths::fresh::rows;
use prbopt::gradcheck::paths::objective::{CastPath, PathObjective};
use prbopt::gradcheck::{Options, Setup};
use prbopt::params::{Kind, Quantity, Shape};
use prbopt::resident::Resident;
use prbopt::resident::layout::gradient;
use prbopt::scene::{self, Array, Background, Scene, Source};
use prbopt::transport::paths::radiative::Ahead;
use prbopt::transport::scene::records::SceneView;
use small::draw;
use trace::Values;

/// Passes of the means of images that are drawn anew.
const PASSES: u32 = 1000;

/// Surfaces that turn a path, at most, plus one.
const MOST_TURNS: u32 = 6;

/// A world of a name that looks at `objects`, before an environment map if `sky`; `wanted` are sought.
struct World {
    name: &'static str,
    objects: String,
    wanted: &'static [&'static str],
    sky: bool,
    max_depth: u32,
}

/// A normal map of 4 × 3 texels over a BSDF.
fn mapped(bsdf: &str) -> String {
    format!(
        r#"{{"type": "normalmap", "use_shadowing_function": false, "inner": {bsdf},
             "normalmap": {{"type": "bitmap", "wrap_mode": "clamp", "data": {{"resolution": [4, 3], "value": [0.5, 0.5, 1]}}}}}}"#
    )
}

/// A diffuse BSDF with a picture.
fn printed(place: &str) -> String {
    format!(
        r#"{{"type": "diffuse", "reflectance":
            {{"type": "bitmap", "raw": true, {place}, "data": {{"resolution": [24, 18], "leaves": 3}}}}}}"#
    )
}

fn worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let turned = r#""to_world": [{"scale": 1.8}, {"rotate": {"axis": [1, 0.4, 0.2], "angle": -25}}]"#;
    let back =
        r#""to_world": [{"scale": 2.5}, {"rotate": {"axis": [0, 1, 0], "angle": 168}}, {"translate": [0, 0, -0.6]}]"#;
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
            max_depth: 4,
        },
        World {
            name: "a ball of glass",
            objects: format!(
                r#""ball": {{"type": "sphere", "radius": 0.8, "bsdf": {}, {turned}}}"#,
                mapped(glass)
            ),
            wanted: &["ball.bsdf.normalmap"],
            sky: true,
            max_depth: 4,
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
            max_depth: 4,
        },
        World {
            name: "the index of a ball",
            objects: format!(r#""ball": {{"type": "sphere", "radius": 0.8, "bsdf": {glass}, {turned}}}"#),
            wanted: &["ball.bsdf.eta"],
            sky: true,
            max_depth: 4,
        },
        World {
            name: "a pane over a printed plane",
            objects: format!(
                r#""pane": {{"type": "rectangle", "bsdf": {}, {turned}}},
                   "sheet": {{"type": "rectangle", "bsdf": {},
                       "to_world": [{{"scale": 9}}, {{"translate": [0.1, 0, -1.2]}}]}}"#,
                mapped(glass),
                printed(r#""wrap_mode": "clamp""#)
            ),
            wanted: &["pane.bsdf.normalmap", "pane.bsdf.inner.eta"],
            sky: true,
            max_depth: 4,
        },
        // A wedge as of two planes without end, which have no silhouettes.
        World {
            name: "a printed plane seen in a mirror",
            objects: format!(
                r#""mirror": {{"type": "rectangle", "bsdf": {},
                    "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 35}}}}]}},
                   "sheet": {{"type": "rectangle", "bsdf": {},
                    "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": -90}}}}, {{"translate": [8, 0, 0]}}]}}"#,
                mapped(r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#),
                printed(r#""to_uv": [{"scale": [60, 45, 1]}]"#)
            ),
            wanted: &["mirror.bsdf.normalmap"],
            sky: true,
            max_depth: 3,
        },
    ]
}

/// The parts of the place of [`World::scene`]'s camera.
const CAMERA: &[&str] = &["camera.to_world.translate", "camera.to_world.rotate"];

/// The same, in which the camera is moved or shapes that cover all that is seen: nothing has silhouettes.
fn moving_worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let metal = r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#;
    let sky = |name, objects, wanted| World {
        name,
        objects,
        wanted,
        sky: true,
        max_depth: 3,
    };
    let wedge = format!(
        r#""mirror": {{"type": "rectangle", "bsdf": {metal},
            "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 35}}}}]}},
           "sheet": {{"type": "rectangle", "bsdf": {},
            "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": -90}}}}, {{"translate": [8, 0, 0]}}]}}"#,
        printed(r#""to_uv": [{"scale": [60, 45, 1]}]"#)
    );
    let behind =
        format!(r#""mirror": {{"type": "rectangle", "bsdf": {metal}, "to_world": [{{"translate": [0, 0, 9]}}]}}"#);
    let sheet = format!(
        r#""sheet": {{"type": "rectangle", "bsdf": {}, "to_world": [{{"scale": 9}}]}}"#,
        printed(r#""wrap_mode": "clamp""#)
    );
    vec![
        sky(
            "a camera that turns before the sky",
            behind,
            &["camera.to_world.rotate"],
        ),
        sky("a camera that moves over a printed plane", sheet, CAMERA),
        sky(
            "a camera that moves before a mirror and a printed plane",
            wedge.clone(),
            CAMERA,
        ),
        sky(
            "a camera that moves before a ball of glass",
            format!(
                r#""ball": {{"type": "sphere", "radius": 1.2, "bsdf": {}}}"#,
                mapped(glass)
            ),
            CAMERA,
        ),
        sky(
            "a ball of glass that moves",
            format!(
                r#""ball": {{"type": "sphere", "radius": 0.9, "bsdf": {}, "to_world": [{{"rotate": {{"axis": [1, 0.4, 0.2], "angle": -25}}}}]}}"#,
                mapped(glass)
            ),
            &["ball.to_world.translate", "ball.to_world.rotate", "ball.to_world.scale"],
        ),
        sky(
            "a mirror that moves, over a printed plane",
            wedge,
            &["mirror.to_world.translate"],
        ),
        // Turned over the plane, the mirror would uncover other parts of the sky that lights it.
        sky(
            "a mirror that turns",
            format!(
                r#""mirror": {{"type": "rectangle", "bsdf": {metal},
                    "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 35}}}}]}}"#
            ),
            &["mirror.to_world.rotate"],
        ),
    ]
}

impl World {
    /// Whether shapes or the camera are moved.
    fn moves(&self) -> bool {
        let of_place = |path: &&str| path.contains("to_world") || path.ends_with("vertex_positions");
        self.wanted.iter().any(of_place)
    }

    /// With the points of chains held if not `attached`.
    fn scene(&self, attached: bool) -> Scene {
        let wanted: Vec<String> = self.wanted.iter().map(|path| format!(r#""{path}": {{}}"#)).collect();
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached", "max_depth": {}, "rr_depth": 100}},
                "camera": {{"type": "perspective", "fov": 12,
                    "to_world": [{{"look_at": {{"origin": [0.5, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
                {}, "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}}}"#,
            self.max_depth,
            self.objects,
            wanted.join(", ")
        );
        let mut scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        scene.integrator.attached = attached;
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
                mis_compensation: false,
                to_world: Affine3A::from_rotation_y(0.4),
            };
        }
        scene
    }

    fn setup(&self, attached: bool) -> Setup {
        self.setup_of(&self.scene(attached))
    }

    /// A scene of this world with random normals and radiance.
    fn setup_of(&self, scene: &Scene) -> Setup {
        let options = Options {
            seed: 5,
            ..Options::default()
        };
        let mut setup = Setup::new(scene, &options).expect("small worlds are sound");
        setup.spp = 4;
        for (i, parameter) in setup.params.parameters.iter_mut().enumerate() {
            for (j, value) in parameter.values.iter_mut().enumerate() {
                let u = draw(5, i as u32, j as u32);
                *value = match parameter.quantity {
                    Quantity::Normal if j % 3 == 2 => 0.9 + 0.1 * u,
                    Quantity::Normal => 0.45 + 0.1 * u,
                    Quantity::Translation => 0.1 * (u - 0.5),
                    // A camera is to see the same as before.
                    Quantity::Orientation if parameter.path.starts_with("camera") => 2.0 * (u - 0.5),
                    Quantity::Orientation => 8.0 * (u - 0.5),
                    Quantity::Extent => 0.95 + 0.1 * u,
                    Quantity::Light | Quantity::Environment if parameter.shape.texels() > 1 => 0.2 + u,
                    _ => continue,
                };
            }
        }
        setup.resident.place_views(&setup.params);
        setup
    }
}

#[test]
fn replay_agrees_with_differences_of_images_that_are_drawn_anew() {
    let mut failures = Vec::new();
    for world in worlds().into_iter().chain(moving_worlds()) {
        let setup = world.setup(true);
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
                // A step changes few of Fresnel's choices, so that the standard error is itself uncertain.
                if (row.fresh - row.replayed).abs() >= 6.0 * row.error + 1e-2 * (row.fresh.abs() + largest) {
                    failures.push(found);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A sheet with a picture that shines, as large as all that is seen, `z` behind or before what stands about the origin.
fn sheet(name: &str, z: f64) -> String {
    let place = match z < 0.0 {
        true => format!(r#"{{"translate": [0.1, 0, {z}]}}"#),
        false => format!(r#"{{"rotate": {{"axis": [1, 0.1, 0], "angle": 180}}}}, {{"translate": [0, 0.1, {z}]}}"#),
    };
    format!(
        r#"{name}: {{"type": "rectangle", "to_world": [{{"scale": 9}}, {place}],
            "bsdf": {{"type": "diffuse", "reflectance": 0}},
            "emitter": {{"type": "area", "radiance":
                {{"type": "bitmap", "wrap_mode": "clamp", "data": {{"resolution": [9, 7], "value": [0.5, 0.5, 0.5]}}}}}}}}"#
    )
}

/// Worlds that the second opinion knows: rectangles and spheres between two sheets that shine.
fn traced_worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let metal = r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#;
    let sheets = format!("{}, {}", sheet(r#""far""#, -4.0), sheet(r#""near""#, 7.0));
    let tilted = |name: &str, bsdf: &str, [x, y, z]: [f64; 3], angle: f64, scale: [f64; 2]| {
        format!(
            r#"{name}: {{"type": "rectangle", "bsdf": {bsdf}, "to_world": [{{"scale": [{}, {}, 1]}},
                {{"rotate": {{"axis": [0.3, 1, 0.2], "angle": {angle}}}}}, {{"translate": [{x}, {y}, {z}]}}]}}"#,
            scale[0], scale[1]
        )
    };
    let ball = |bsdf: &str| {
        format!(
            r#""ball": {{"type": "sphere", "bsdf": {bsdf},
                "to_world": [{{"scale": [0.8, 1, 0.7]}}, {{"rotate": {{"axis": [1, 0.4, 0.2], "angle": -35}}}}]}}"#
        )
    };
    let slab = [
        tilted(r#""front""#, &mapped(glass), [0.0; 3], -15.0, [1.8, 1.5]),
        tilted(r#""back""#, &mapped(glass), [0.0, 0.0, -0.6], 170.0, [2.0, 2.2]),
    ];
    let mirror = tilted(r#""mirror""#, &mapped(metal), [0.0, 0.0, -2.0], 15.0, [4.0, 4.0]);
    let printed_sheet = format!(
        r#""sheet": {{"type": "rectangle", "to_world": [{{"scale": 9}}], "bsdf": {}}}"#,
        printed(r#""wrap_mode": "clamp""#)
    );
    let world = |name, objects: &[&str], wanted| World {
        name,
        objects: objects.join(", "),
        wanted,
        sky: false,
        max_depth: MOST_TURNS,
    };
    vec![
        world(
            "two faces of a slab over a sheet",
            &[&slab[0], &slab[1], &sheets],
            &[
                "front.bsdf.normalmap",
                "back.bsdf.normalmap",
                "front.bsdf.inner.eta",
                "back.bsdf.inner.eta",
                "far.emitter.radiance",
                "near.emitter.radiance",
            ],
        ),
        world(
            "a stretched ball over a sheet",
            &[&ball(&mapped(glass)), &sheets],
            &["ball.bsdf.normalmap", "ball.bsdf.inner.eta", "far.emitter.radiance"],
        ),
        world(
            "a ball before a mirror",
            &[&ball(&mapped(glass)), &mirror, &sheets],
            &["ball.bsdf.normalmap", "ball.bsdf.inner.eta", "mirror.bsdf.normalmap"],
        ),
        world(
            "a stretched mirror",
            &[&ball(&mapped(metal)), &sheets],
            &["ball.bsdf.normalmap", "near.emitter.radiance"],
        ),
        world(
            "a slab whose faces move over a sheet",
            &[&slab[0], &slab[1], &sheets],
            &[
                "front.to_world.translate",
                "front.to_world.rotate",
                "front.to_world.scale",
                "back.to_world.translate",
                "back.to_world.rotate",
                "back.bsdf.normalmap",
            ],
        ),
        world(
            "a stretched ball that moves before a mirror that does",
            &[&ball(&mapped(glass)), &mirror, &sheets],
            &[
                "ball.to_world.translate",
                "ball.to_world.rotate",
                "ball.to_world.scale",
                "mirror.to_world.translate",
                "mirror.to_world.rotate",
            ],
        ),
        world(
            "a cut stone whose corners move",
            &[&stone(glass), &sheets],
            &["stone.vertex_positions"],
        ),
        world(
            "a slab before a camera, all of which move",
            &[&slab[0], &slab[1], &sheets],
            &[
                "camera.to_world.translate",
                "camera.to_world.rotate",
                "front.to_world.translate",
                "back.to_world.rotate",
            ],
        ),
        world(
            "a stretched ball and a mirror before a camera that moves",
            &[&ball(&mapped(glass)), &mirror, &sheets],
            CAMERA,
        ),
        World {
            sky: true,
            ..world(
                "a ball under the sky before a camera that moves",
                &[&format!(
                    r#""ball": {{"type": "sphere", "radius": 0.4, "bsdf": {glass}}}"#
                )],
                CAMERA,
            )
        },
        World {
            max_depth: 3,
            ..world(
                "a printed plane and a mirror before a camera that moves",
                &[
                    &tilted(r#""mirror""#, metal, [0.0, 0.4, 2.0], 70.0, [0.5, 0.8]),
                    &printed_sheet,
                    r#""light": {"type": "constant"}"#,
                ],
                CAMERA,
            )
        },
    ]
}

/// Two pyramids of glass on one square, with flat faces.
fn stone(glass: &str) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stone.obj");
    let text = "v 1 0.1 0\nv 0 1 0.1\nv -1 0 -0.1\nv 0 -1 0\nv 0.1 0 0.8\nv 0 0.1 -0.7\n\
        f 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\nf 2 1 6\nf 3 2 6\nf 4 3 6\nf 1 4 6\n";
    std::fs::write(&file, text).expect("the folder is writable");
    format!(
        r#""stone": {{"type": "obj", "filename": "{}", "face_normals": true, "bsdf": {glass}}}"#,
        file.display()
    )
}

/// The derivatives by a path's radiance.
const WEIGHT: [f64; 3] = [1.0, 0.5, 2.0];

/// All choices of paths between turns: whether each reflects.
fn choices() -> impl Iterator<Item = Vec<bool>> {
    (0..MOST_TURNS)
        .flat_map(|turns| (0..1u32 << turns).map(move |bits| (0..turns).map(|k| bits >> k & 1 == 1).collect()))
}

/// These choices and their probability, if the second opinion finds along them the radiance that a path has `seen`; behind a diffuse
/// plane, their share of it, of grey light.
fn told(
    view: &SceneView,
    values: &[Vec<f64>],
    ray: ([f64; 3], [f64; 3]),
    reflects: Vec<bool>,
    seen: [f64; 3],
) -> Option<(Vec<bool>, f64)> {
    let here = Values {
        now: values,
        recorded: values,
    };
    let found = trace::radiance(view, &here, ray, &reflects)?;
    let share = match found.scattered {
        true => found.radiance[0] / seen[0],
        false => found.probability,
    };
    let alike = (0..3).all(|c| (found.radiance[c] / share - seen[c]).abs() < 2e-4 * seen[c]);
    alike.then_some((reflects, share))
}

/// Derivatives of the radiance of a path by all that is checked: path replay, and differences of the second opinion with
/// the path's choices held. None where the two do not tell the same path.
fn both(setup: &Setup, objective: &PathObjective, values: &[Vec<f64>], cast: &CastPath) -> Option<[Vec<f64>; 2]> {
    let view = objective.view();
    let seen = objective.gather(&objective.fields, cast);
    let ray = (cast.ray.origin.map(f64::from), cast.ray.direction.map(f64::from));
    let (reflects, probability) = choices().find_map(|reflects| told(&view, values, ray, reflects, seen))?;
    let mut replayed = objective.fields.zeros();
    objective.replay(WEIGHT, cast, &mut objective.sums(&mut replayed));
    let mut moved = values.to_vec();
    let mut at = |slot: usize, flat: usize, step: f64| {
        moved[slot][flat] = values[slot][flat] + step;
        let there = Values {
            now: &moved,
            recorded: values,
        };
        let found = trace::radiance(&view, &there, ray, &reflects);
        moved[slot][flat] = values[slot][flat];
        found.map(|found| (0..3).map(|c| WEIGHT[c] * found.radiance[c]).sum::<f64>() / probability)
    };
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for &slot in &setup.checked {
        for flat in 0..values[slot].len() {
            let mut difference = |step: f64| Some((at(slot, flat, step)? - at(slot, flat, -step)?) / (2.0 * step));
            let [wide, narrow] = [difference(1e-5)?, difference(1e-6)?];
            // A texel's border between both points: there is no derivative.
            if (wide - narrow).abs() > 1e-5 * narrow.abs() + 1e-7 {
                return None;
            }
            found.push(replayed[slot][flat]);
            expected.push(narrow);
        }
    }
    Some([found, expected])
}

/// Path by path, every derivative beside that of the whole path in f64. Points and directions of paths are f32: what a
/// curved surface or a texel's border makes of their rounding is all that is between both.
#[test]
fn replay_agrees_with_differences_of_the_whole_path() {
    for world in traced_worlds() {
        let setup = world.setup(true);
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let without = match world.moves() {
            true => None,
            false => Some(PathObjective::without_paths(&world.setup(false), gradient::FREE_FLIGHT)),
        };
        let lift = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let values: Vec<Vec<f64>> = setup.params.parameters.iter().map(|p| lift(&p.values)).collect();
        let [mut errors, mut held] = [Vec::new(), Vec::new()];
        let mut largest = vec![0.0f64; setup.checked.len()];
        for cast in &objective.casts {
            let Some([found, expected]) = both(&setup, &objective, &values, cast) else {
                continue;
            };
            errors.push(apart(&found, &expected));
            if let Some(without) = &without {
                let mut detached = objective.fields.zeros();
                without.replay(WEIGHT, cast, &mut without.sums(&mut detached));
                let detached: Vec<f64> = setup.checked.iter().flat_map(|&slot| detached[slot].clone()).collect();
                held.push(apart(&detached, &expected));
            }
            let mut from = 0;
            for (of, &slot) in largest.iter_mut().zip(&setup.checked) {
                let entries = &expected[from..from + values[slot].len()];
                *of = entries.iter().fold(*of, |m, x| m.max(x.abs()));
                from += entries.len();
            }
        }
        for errors in [&mut errors, &mut held] {
            errors.sort_by(f64::total_cmp);
        }
        let [median, ninth, all] = [0.5, 0.9, 1.0].map(|share| errors[((errors.len() - 1) as f64 * share) as usize]);
        println!(
            "{}: {} of {} paths, median {median:.1e}, nine tenths {ninth:.1e}, all {all:.1e}; largest {largest:.2?}; held \
             {:.1e} and more",
            world.name,
            errors.len(),
            objective.casts.len(),
            held.first().unwrap_or(&f64::NAN)
        );
        assert!(
            errors.len() * 10 > objective.casts.len() * 6,
            "{}: few paths are told",
            world.name
        );
        assert!(
            largest.iter().all(|x| *x > 1e-3),
            "{}: something is not reached",
            world.name
        );
        assert!(
            median < 1e-5 && ninth < 1e-4 && all < 1e-3,
            "{}: they differ",
            world.name
        );
        // What a detached replay leaves out is seen.
        assert!(
            held.is_empty() || held[held.len() / 2] > 0.1,
            "{}: nothing moves",
            world.name
        );
    }
}

/// How far derivatives are from those expected, relative.
fn apart(found: &[f64], expected: &[f64]) -> f64 {
    let square = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>();
    let between = square(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    (between / square(&mut expected.iter().copied())).sqrt()
}

/// A detached replay holds sampled directions, and with them all that a normal map of smooth glass does; so does radiative
/// backpropagation.
#[test]
fn a_detached_replay_knows_nothing_of_it() {
    for world in worlds()
        .into_iter()
        .filter(|world| world.wanted[0].ends_with("normalmap"))
    {
        let setup = world.setup(false);
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let [mut found, mut radiative] = [objective.fields.zeros(), objective.fields.zeros()];
        for cast in &objective.casts {
            objective.replay(WEIGHT, cast, &mut objective.sums(&mut found));
            let mut sink = objective.sums(&mut radiative);
            objective.backpropagate_radiative(Ahead::Traced, WEIGHT, cast, &mut sink);
        }
        let normals = |slot: &&usize| setup.params.parameters[**slot].quantity == Quantity::Normal;
        for &slot in setup.checked.iter().filter(normals) {
            let nothing = |of: &[Vec<f64>]| of[slot].iter().all(|d| *d == 0.0);
            assert!(nothing(&found) && nothing(&radiative), "{}", world.name);
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
        ("", r#"{"type": "diffuse"}"#, "knows `diffuse` surfaces that are flat"),
        ("", r#"{"type": "roughdielectric"}"#, "where it meets any other `bsdf`"),
        ("", &relief("bumpmap"), "write the `bumpmap` as one"),
    ] {
        let why = world(integrator, bsdf).expect_err(bsdf);
        assert!(why.contains(expected), "{why}");
    }
    let plane = |reflectance: &str, light: &str| {
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached"}}, "light": {light},
                "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
                "plane": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {reflectance}}}}}}}"#
        );
        let scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{e}"));
        Resident::new(&scene).map(|_| ()).map_err(|e| e.to_string())
    };
    let (sky, lamp) = (r#"{"type": "constant"}"#, r#"{"type": "point", "position": [0, 0, 3]}"#);
    assert_eq!(plane("0.5", sky), Ok(()));
    assert_eq!(plane("0", lamp), Ok(()));
    for (reflectance, light, expected) in [
        ("0.5", lamp, "from which lights at a finite distance would move away"),
        (
            r#"{"type": "checkerboard"}"#,
            sky,
            "reflectances that are constant or a `bitmap`",
        ),
    ] {
        let why = plane(reflectance, light).expect_err(light);
        assert!(why.contains(expected), "{why}");
    }
}

/// A camera moves before an environment map along kept chains alone.
#[test]
fn cameras_that_move_are_refused_without_kept_chains() {
    let worlds = moving_worlds();
    let world = worlds.iter().find(|world| world.name.contains("before the sky"));
    let world = world.expect("a camera before the sky");
    let why = |scene: &Scene| Resident::new(scene).map(|_| ()).map_err(|e| e.to_string());
    let mut scene = world.scene(true);
    assert_eq!(why(&scene), Ok(()));
    scene.integrator.inverted = Some(0.01);
    let inverted = why(&scene).expect_err("inverted Jacobians follow no camera");
    assert!(inverted.contains(r#"say "jacobians": "kept""#), "{inverted}");
    let detached = why(&world.scene(false)).expect_err("the sky is seen");
    assert!(detached.contains("only `prb_attached` knows"), "{detached}");
}
