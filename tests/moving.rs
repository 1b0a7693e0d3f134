//! Gradients by the places of shapes: path replay against finite differences with the sampling frozen, conventional
//! reverse-mode AD and forward mode; the f32 device against f64; and against differences of converged images.

mod small;

use prbopt::device::cpu::Cpu;
use prbopt::gradcheck::paths::fresh::{FreshRow, rows};
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::report::{Row, Verdict};
use prbopt::gradcheck::{Options, Setup, check};
use prbopt::io::image;
use prbopt::resident::Resident;
use prbopt::resident::layout::gradient;
use prbopt::scene;
use prbopt::transport::rays::camera::normalize;
use prbopt::transport::rays::sampler::dot;
use prbopt::transport::scene::shape::intersect;
use prbopt::transport::scene::tangent::{derivatives, slopes};
use small::agreement::{agrees_with_forward_mode, agrees_with_tape};
use small::moving::{continuous_worlds, moving_worlds};
use small::worlds::{attribute, distances, mesh, normal_map, sheet, solid};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Rounding error of a difference: the last bit of f64 of a radiance of 0.01, over the shortest step, 2.5e-6.
const ROUNDING: f64 = 1e-12;

/// Passes, each with random numbers of its own, whose mean is an image of the finite differences.
const PASSES: u32 = 2000;

fn options() -> Options {
    Options {
        entries: 24,
        seed: 5,
        ..Options::default()
    }
}

#[test]
fn replay_agrees_with_finite_differences_and_the_device_with_replay() {
    for small in moving_worlds() {
        let mut setup = small.setup("free_flight", &options());
        // Few paths meet the ball there.
        if small.name == "vertices" {
            setup.spp = 16;
        }
        let report = check(&setup, Some(&mut Cpu::new()), &options())
            .expect("the check runs")
            .report;
        let rounded = |row: &Row| (row.prb - row.difference).abs() < ROUNDING;
        let failed =
            |row: &Row| !(row.passed() || rounded(row) && row.device.is_none_or(|d| d.verdict == Verdict::Pass));
        let fails = report.parameters.iter().flat_map(|p| &p.rows).any(failed);
        assert!(!fails, "{}\n{report}", small.name);
        for loss in &report.losses {
            let device = loss.device.expect("there is a device");
            assert!((device - loss.value).abs() < 1e-5, "{}: {loss:?}", small.name);
        }
        let mut errors: Vec<f64> = report
            .parameters
            .iter()
            .flat_map(|p| &p.rows)
            .map(|r| if rounded(r) { 0.0 } else { r.error })
            .collect();
        errors.sort_by(f64::total_cmp);
        let ninth = errors[errors.len() * 9 / 10];
        assert!(ninth < 1e-7, "{}: a tenth of the errors exceed {ninth:.1e}", small.name);
        for parameter in &report.parameters {
            assert!(
                parameter.largest > 0.0,
                "{}: nothing reaches {}",
                small.name,
                parameter.path
            );
        }
    }
}

#[test]
fn replay_agrees_with_conventional_ad_path_by_path() {
    for small in moving_worlds() {
        agrees_with_tape(small.name, &small.setup("free_flight", &options()));
    }
}

#[test]
fn replay_agrees_with_forward_mode() {
    for small in moving_worlds() {
        let setup = small.setup("free_flight", &options());
        agrees_with_forward_mode(small.name, &setup, setup.checked.iter().copied());
    }
}

/// Differences of images whose sampling is not frozen: directions and points of lights are drawn anew for what has moved.
/// Only the means agree, which are compared by the standard error over independent passes.
#[test]
fn where_nothing_is_covered_derivatives_are_those_of_the_image() {
    let mut failures = Vec::new();
    for small in continuous_worlds() {
        let setup = small.setup("free_flight", &options());
        for &slot in &setup.checked {
            let parameter = &setup.params.parameters[slot];
            let wanted: Vec<usize> = (0..parameter.values.len()).collect();
            for row in rows(&setup, slot, &wanted, PASSES) {
                let FreshRow {
                    replayed,
                    fresh,
                    error,
                    index,
                } = row;
                let found = format!(
                    "{}, {} {index:?}: {replayed:.3e}, {fresh:.3e} ± {error:.1e}",
                    small.name, parameter.path
                );
                println!("{found}");
                // Paths that hit a lamp on one side of a step alone are few and weigh much, so that the standard error over
                // 2000 passes is itself uncertain: hence six of them. That sees errors of 3 to 10 % where lamps have extent,
                // of parts in a thousand where they have none; the finite differences above see all others. The rest
                // is the difference's second order, and the rounding of geometry.
                if (fresh - replayed).abs() >= 6.0 * error + 2e-3 * fresh.abs() + 1e-5 {
                    failures.push(found);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// How normals, tangents and texture coordinates change along a surface, against hits of neighbouring rays.
#[test]
fn slopes_are_those_of_neighbouring_hits() {
    const STEP: f32 = 2e-3;
    let mut kinds = [0; 6];
    for small in moving_worlds() {
        let setup = small.setup("free_flight", &options());
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let view = objective.view();
        for cast in &objective.casts {
            let (origin, direction) = (cast.ray.origin, cast.ray.direction);
            let Some(hit) = intersect(&view, origin, direction, f32::INFINITY) else {
                continue;
            };
            let grazing = dot(direction, hit.normal).abs() < 0.3;
            for axis in 0..3 {
                // On both sides, so that curvature cancels.
                let beside = [-STEP, STEP].map(|step| {
                    let mut beside = origin;
                    beside[axis] += step;
                    intersect(&view, beside, direction, f32::INFINITY)
                });
                let [Some(last), Some(next)] = beside else { continue };
                let over = [0, 1, 2].map(|a| next.point.p[a] - last.point.p[a]);
                let far = dot(over, over).sqrt() > 8.0 * STEP;
                let turns = (0..2).any(|k| (next.point.uv[k] - last.point.uv[k]).abs() > 0.02);
                let alike = [&last, &next]
                    .iter()
                    .all(|other| (other.surface, other.primitive) == (hit.surface, hit.primitive));
                if grazing || far || turns || !alike {
                    continue;
                }
                kinds[view.surfaces[hit.surface as usize].kind as usize] += 1;
                let slopes = slopes(&view, &hit);
                let along = |rows: &[[f32; 3]]| rows.iter().map(|row| dot(*row, over)).collect::<Vec<_>>();
                let change = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
                let [before, after] = [&last, &next].map(|hit| normalize(derivatives(&view, hit)[0]));
                let raw = derivatives(&view, &hit)[0];
                let turned = along(&slopes.tangent);
                let guess = [-0.5, 0.5].map(|side| normalize([0, 1, 2].map(|a| raw[a] + side * turned[a])));
                for (what, found, expected) in [
                    ("normal", along(&slopes.normal), change(&next.shading, &last.shading)),
                    ("uv", along(&slopes.uv), change(&next.point.uv, &last.point.uv)),
                    ("tangent", change(&guess[1], &guess[0]), change(&after, &before)),
                ] {
                    let largest = expected.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                    for (a, b) in found.iter().zip(&expected) {
                        let kind = view.surfaces[hit.surface as usize].kind;
                        assert!(
                            (a - b).abs() < 0.03 * largest + 2e-5,
                            "{}, kind {kind}, {what}: {found:?}, {expected:?}",
                            small.name
                        );
                    }
                }
            }
        }
    }
    assert!(kinds.iter().all(|hits| *hits > 10), "hits of the kinds: {kinds:?}");
}

/// The error of a scene with this ball and these parameters, of its reader or of `Resident::new`. `None` if there is none.
fn said(integrator: &str, ball: &str, objects: &str, parameters: &[&str]) -> Option<String> {
    let parameters: Vec<String> = parameters.iter().map(|path| format!(r#""{path}": {{}}"#)).collect();
    let text = format!(
        r#"{{"integrator": {{"type": "{integrator}"}},
            "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
            "ball": {{{ball}}}, "lamp": {{"type": "point", "intensity": 2}} {objects},
            "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}}}"#,
        parameters.join(", ")
    );
    match scene::parse(&text, Path::new("moving.json")) {
        Err(mistakes) => Some(mistakes.to_string()),
        Ok(scene) => Resident::new(&scene).err().map(|error| error.to_string()),
    }
}

/// A lamp that moves among surfaces that let light pass straight through but cast shadows in `prb`: replay against differences
/// with the sampling frozen, and the device against replay.
#[test]
fn a_lamp_moves_among_masks_and_panes() {
    let text = r#"{"integrator": {"type": "prb", "max_depth": 5},
        "camera": {"type": "perspective", "fov": 40, "film": {"type": "hdrfilm", "width": 6, "height": 6},
            "to_world": [{"look_at": {"origin": [0, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}]},
        "floor": {"type": "rectangle", "bsdf": {"type": "plastic"},
            "to_world": [{"scale": 4}, {"rotate": {"axis": [1, 0, 0], "angle": -80}}, {"translate": [0, -1, 0]}]},
        "screen": {"type": "rectangle", "to_world": [{"scale": 0.8}, {"translate": [-0.6, 0, 1]}],
            "bsdf": {"type": "mask", "opacity": {"type": "checkerboard", "color0": 0.3, "color1": 0.8}, "inner": {"type": "diffuse"}}},
        "pane": {"type": "rectangle", "to_world": [{"scale": 0.8}, {"translate": [0.6, 0, 1.3]}], "bsdf": {"type": "thindielectric"}},
        "ball": {"type": "sphere", "radius": 0.6, "bsdf": {"type": "dielectric"}},
        "mirror": {"type": "sphere", "radius": 0.4, "center": [1.2, -0.2, -0.5], "bsdf": {"type": "conductor"}},
        "lamp": {"type": "spot", "intensity": 20, "to_world": [{"look_at": {"origin": [1, 2, 3], "target": [0, 0, 0], "up": [0, 1, 0]}}]},
        "optimize": {"references": {"type": "constant", "value": 0.5},
            "parameters": {"lamp.to_world.translate": {}, "lamp.to_world.rotate": {}}}}"#;
    let scene = scene::parse(text, Path::new("masks.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let options = Options {
        parameters: ["translate", "rotate"]
            .map(|part| format!("lamp.to_world.{part}"))
            .to_vec(),
        ..options()
    };
    let setup = Setup::new(&scene, &options).expect("a sound scene");
    let report = check(&setup, Some(&mut Cpu::new()), &options)
        .expect("the check runs")
        .report;
    let rows: Vec<&Row> = report.parameters.iter().flat_map(|p| &p.rows).collect();
    assert!(
        rows.iter().all(|row| row.passed()) && report.parameters.iter().all(|p| p.largest > 1e-5),
        "{report}"
    );
    assert!(
        rows.iter()
            .all(|row| row.device.is_some_and(|d| d.verdict == Verdict::Pass)),
        "{report}"
    );
}

/// Shapes move apart from media, lights without a surface also in those that scatter nothing, and cameras not at all.
#[test]
fn what_moves_beside_media_stands_apart_from_them() {
    let smoke = |more: &str, at: f64| {
        format!(
            r#", "box": {{"type": "cube", "to_world": [{{"translate": [{at}, 0, 0]}}], "bsdf": {{"type": "null"}}, "interior": {{{more}}}}}"#
        )
    };
    let fog = r#""type": "homogeneous""#;
    let grid = |more: &str| {
        format!(
            r#""type": "heterogeneous", "sigma_t": {{"type": "gridvolume", "resolution": [2, 2, 2], "value": 1, {more}
                "to_world": [{{"translate": [1.5, -0.5, -0.5]}}, {{"scale": 2}}]}}"#
        )
    };
    let plain = r#""type": "sphere""#;
    let far = r#""to_world": [{"translate": [0, 0, 9]}]"#;
    let normals = format!(
        r#"{}, {far}, "bsdf": {{"type": "null"}}, "interior": {{{fog}}}"#,
        mesh("octahedron")
    );
    let (ball, lamp) = ("ball.to_world.translate", "lamp.to_world.translate");
    let lit = r#""type": "sphere", "bsdf": {"type": "null"}, "emitter": {"type": "area"}"#;
    let around =
        format!(r#", "fog": {{"type": "sphere", "radius": 9, "bsdf": {{"type": "null"}}, "exterior": {{{fog}}}}}"#);
    let emissive = format!(r#"{fog}, "emission": 1"#);
    let cases = [
        (plain, smoke(fog, 4.0), ball, None),
        (
            plain,
            smoke(fog, 1.9),
            ball,
            Some("`ball` touches or stands in a medium"),
        ),
        (plain, smoke(fog, 1.9), lamp, None),
        (plain, smoke(&grid(""), 4.0), ball, None),
        (
            plain,
            smoke(&grid(r#""filter_type": "nearest","#), 4.0),
            ball,
            Some("jumps from texel to texel"),
        ),
        (
            plain,
            smoke(&grid(r#""filter_type": "nearest","#), 4.0),
            lamp,
            Some("jumps from texel to texel"),
        ),
        (
            plain,
            smoke(fog, 4.0),
            "camera.to_world.translate",
            Some("the camera `camera` moves, and there are media"),
        ),
        (plain, smoke(&emissive, 4.0), ball, Some("a medium that emits light")),
        (plain, smoke(&emissive, 4.0), lamp, None),
        (
            plain,
            smoke(fog, 4.0),
            "box.to_world.translate",
            Some("`box` is the boundary of a medium"),
        ),
        (plain, around, ball, Some("`ball` touches or stands in a medium")),
        (
            lit,
            smoke(fog, 4.0),
            ball,
            Some("a light on a surface that lets everything pass"),
        ),
        (&normals, String::new(), "ball.vertex_normals", None),
        (
            &normals,
            String::new(),
            "ball.vertex_positions",
            Some("`ball` is the boundary of a medium"),
        ),
    ];
    // The values that a run begins with decide, not the place in the file.
    let from = |medium: &str, at: f64, part: &str, x: f64| {
        let text = format!(
            r#"{{"integrator": {{"type": "volpath"}},
                "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
                "ball": {{"type": "sphere"}}, "lamp": {{"type": "point", "position": [0, 0, 0.5]}} {},
                "optimize": {{"references": {{"type": "constant", "value": 0.5}},
                    "parameters": {{"{part}": {{"initial": [{x}, 0, 0]}}}}}}}}"#,
            smoke(medium, at)
        );
        let scene = scene::parse(&text, Path::new("moving.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        Resident::new(&scene).err().map(|error| error.to_string())
    };
    assert!(from(fog, 4.0, ball, 3.0).is_some_and(|told| told.contains("`ball` touches")));
    assert_eq!(from(fog, 1.5, ball, -3.0), None);
    assert!(from(fog, 4.0, lamp, 4.0).is_some_and(|told| told.contains("`lamp` stands in a medium that scatters")));
    assert_eq!(from(fog, 4.0, lamp, 2.9), None);
    assert_eq!(from(&format!(r#"{fog}, "albedo": 0"#), 4.0, lamp, 4.0), None);
    // Other values are placed and tested alike, as those that a run ends with and those of `--parameters`.
    let text = format!(
        r#"{{"integrator": {{"type": "volpath"}},
            "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
            "ball": {{"type": "sphere", "center": [0, 0, 9]}} {},
            "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{"{ball}": {{}}}}}}}}"#,
        smoke(fog, 4.0)
    );
    let scene = scene::parse(&text, Path::new("moving.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let (mut resident, mut params) = Resident::new(&scene).expect("the ball stands apart");
    assert_eq!(resident.settle(&scene, &params), Ok(()));
    let moved = params.find(ball).expect("it is a parameter");
    params.parameters[moved].values = vec![4.0, 0.0, -9.0];
    let told = resident.settle(&scene, &params).expect_err("it stands in the fog");
    assert!(told.starts_with("`ball` touches or stands in a medium"), "{told}");
    // A ball of fog turned inside out has the fog outside; a hollow in fog has none, a ball of the same fog in the hollow has.
    let around = |more: &str, lamp_at: f64| {
        let text = format!(
            r#"{{"integrator": {{"type": "volpath"}},
                "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}},
                    "to_world": [{{"translate": [0, 0, 20]}}], "medium": {{{fog}, "id": "haze"}}}},
                "hollow": {{"type": "sphere", "radius": 3, "bsdf": {{"type": "null"}}, "exterior": {{"type": "ref", "id": "haze"}}}},
                "lamp": {{"type": "point", "position": [{lamp_at}, 0, 0]}} {more},
                "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{"{lamp}": {{}}}}}}}}"#
        );
        let scene = scene::parse(&text, Path::new("moving.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        Resident::new(&scene).err().map(|error| error.to_string())
    };
    let inner = r#", "ball": {"type": "sphere", "bsdf": {"type": "null"}, "interior": {"type": "ref", "id": "haze"}}"#;
    assert_eq!(around("", 0.0), None);
    assert!(around("", 4.0).is_some_and(|told| told.contains("`lamp` stands in a medium that scatters")));
    assert!(around(inner, 0.0).is_some_and(|told| told.contains("`lamp` stands in a medium that scatters")));
    assert_eq!(around(inner, 2.0), None);
    // Where media play no part, nothing is in the way but what is without them.
    let shining = format!(
        "{}, {lit_other}",
        smoke(fog, 4.0),
        lit_other =
            r#""glow": {"type": "sphere", "center": [0, 0, 9], "bsdf": {"type": "null"}, "emitter": {"type": "area"}}"#
    );
    assert!(said("prb", plain, &shining, &[ball]).is_some_and(|told| told.contains("lets everything pass")));
    assert_eq!(
        said("prb", plain, &smoke(fog, 1.9), &[ball, "camera.to_world.translate"]),
        None
    );
    for (of, objects, part, expected) in cases {
        let message = said("volpath", of, &objects, &[part]);
        match (&message, expected) {
            (None, None) => {}
            (Some(message), Some(expected)) => assert!(message.contains(expected), "{message}"),
            _ => panic!("{of} {objects} {part}: {message:?}"),
        }
    }
}

/// Scenes that have no derivatives by the place of a shape are refused if a shape moves, in one sentence with the reason.
#[test]
fn what_has_no_derivatives_by_what_moves_is_refused() {
    let mesh = mesh("octahedron");
    let of = |bsdf: &str| format!(r#""type": "sphere", "bsdf": {bsdf}"#);
    let picture = r#"{"type": "bitmap", "data": {"resolution": [4, 4], "value": 0.5}}"#;
    let under = r#""b": {"type": "diffuse"}"#;
    let stone = format!(r#", "stone": {{{}}}"#, distances("torus"));
    let sheet = sheet();
    let cases = [
        (
            "prb",
            of(r#"{"type": "conductor"}"#),
            "",
            "`conductor`, through which light",
        ),
        (
            "prb",
            of(r#"{"type": "dielectric"}"#),
            "",
            "`dielectric`, through which light",
        ),
        (
            "prb",
            of(r#"{"type": "thindielectric"}"#),
            "",
            "`thindielectric`, through which light",
        ),
        (
            "prb",
            of(r#"{"type": "plastic"}"#),
            "",
            "`plastic`, through which light",
        ),
        (
            "prb",
            of(r#"{"type": "null"}"#),
            "",
            "`null` or `mask`, through which light",
        ),
        (
            "prb",
            of(&format!(r#"{{"type": "mask", "opacity": 0.5, {under}}}"#)),
            "",
            "`null` or `mask`, through which light",
        ),
        (
            "prb",
            r#""type": "sphere""#.into(),
            &stone,
            "there is an `sdfgrid`, whose normals",
        ),
        (
            "prb",
            of(&format!(r#"{{"type": "bumpmap", "heights": {picture}, {under}}}"#)),
            "",
            "there is a `bumpmap`, whose slopes",
        ),
        (
            "volpath",
            of(r#"{"type": "null"}, "interior": {"type": "homogeneous"}, "center": [0, 0, 9]"#),
            "",
            "`ball` is the boundary of a medium, whose points would have to follow it",
        ),
        (
            "rb",
            r#""type": "sphere""#.into(),
            "",
            "radiative backpropagation does not follow what moves",
        ),
        (
            "prb",
            of(&format!(r#"{{"type": "diffuse", "reflectance": {}}}"#, solid("0.4"))),
            "",
            "a texture of the type `volume`",
        ),
        (
            "prb",
            format!(
                r#"{sheet}, "bsdf": {{"type": "diffuse", "reflectance": {}}}"#,
                attribute("vertex_color", 1.0)
            ),
            "",
            "a texture of the type `mesh_attribute`",
        ),
        (
            "prb_attached",
            of(r#"{"type": "diffuse", "reflectance": 0}"#),
            "",
            "`prb_attached` moves cameras, and of all shapes and lights those of smooth glass",
        ),
        (
            "prb_attached",
            of(r#"{"type": "conductor"}, "emitter": {"type": "area", "radiance": 1}"#),
            "",
            "`prb_attached` moves cameras, and of all shapes and lights those of smooth glass",
        ),
    ];
    for (integrator, ball, objects, expected) in cases {
        let place = ["ball.to_world.translate"];
        let message =
            said(integrator, &ball, objects, &place).unwrap_or_else(|| panic!("{ball} {objects}: it is whole"));
        let refused = "`ball.to_world.translate` cannot be optimised: ";
        assert!(message.contains(refused) && message.contains(expected), "{message}");
        assert!(message.lines().count() == 1, "{message}");
    }
    let plain = r#""type": "sphere""#;
    let all = [
        "ball.to_world.translate",
        "ball.to_world.rotate",
        "ball.to_world.scale",
        "lamp.to_world.translate",
    ];
    assert_eq!(said("prb", plain, "", &all), None);
    // Lights without a surface are met by shadow rays alone.
    let lamp = ["lamp.to_world.translate"];
    for bsdf in ["conductor", "dielectric", "plastic", "thindielectric", "null"] {
        let ball = of(&format!(r#"{{"type": "{bsdf}"}}"#));
        assert_eq!(said("prb", &ball, "", &lamp), None, "{bsdf}");
        let through = said("volpath", &ball, "", &lamp);
        let passes = matches!(bsdf, "thindielectric" | "null");
        assert_eq!(through.is_some(), passes, "{bsdf}: {through:?}");
        let both = said("prb", &ball, "", &[lamp[0], "ball.to_world.translate"]);
        assert!(both.is_some(), "{bsdf}");
    }
    let masked = of(&format!(r#"{{"type": "mask", "opacity": 0.5, {under}}}"#));
    assert_eq!(said("prb", &masked, "", &lamp), None);
    for inner in [under, r#""b": {"type": "plastic"}"#] {
        let bumpy = of(&format!(r#"{{"type": "bumpmap", "heights": {picture}, {inner}}}"#));
        assert_eq!(said("prb", &bumpy, "", &lamp), None, "{inner}");
    }
    let mapped = of(&normal_map("", r#"{"type": "diffuse"}"#));
    assert_eq!(said("prb", &mapped, "", &all), None);
    let painted = of(&format!(r#"{{"type": "diffuse", "reflectance": {}}}"#, solid("0.4")));
    assert_eq!(said("prb", &painted, "", &lamp), None);
    let glass = of(r#"{"type": "dielectric"}"#);
    assert_eq!(said("prb_attached", &glass, "", &all[..3]), None);
    let smooth = format!(r#"{mesh}, "bsdf": {{"type": "dielectric"}}"#);
    let vertices = said("prb_attached", &smooth, "", &["ball.vertex_positions"]).expect("normals do not follow");
    assert!(vertices.contains("meshes with `face_normals` alone"), "{vertices}");
    let lamp = said("prb_attached", &glass, "", &all).expect("the lamp is no mirror");
    assert!(
        lamp.contains("`prb_attached` moves cameras, and of all shapes and lights those of smooth glass"),
        "{lamp}"
    );
    let flat = format!(r#"{mesh}, "face_normals": true"#);
    assert_eq!(said("prb", &flat, "", &["ball.vertex_positions"]), None);
    assert_eq!(said("prb", &mesh, "", &["ball.vertex_normals"]), None);
    assert_eq!(said("prb", &mesh, "", &["ball.vertex_positions"]), None);
    let grid = |more: &str| format!(r#""type": "grid", "resolution": [3, 3], "displacement": {more}"#);
    assert_eq!(said("prb", &grid(picture), "", &["ball.displacement.data"]), None);
    assert_eq!(said("prb", &grid("0.1"), "", &["ball.displacement"]), None);
    for (ball, parameters, expected) in [
        (
            flat.clone(),
            &["ball.vertex_positions", "ball.to_world.scale"][..],
            "`ball.vertex_positions` and another part of the place of the same mesh cannot both be optimised: name one",
        ),
        (
            flat.clone(),
            &["ball.vertex_normals"],
            "`ball.vertex_normals` cannot be optimised: the mesh has `face_normals`",
        ),
        (
            mesh.clone(),
            &["ball.vertex_normals", "ball.to_world.translate"],
            "`ball.vertex_normals` and another part of the place of the same mesh cannot both be optimised: name one",
        ),
        (
            grid(picture),
            &["ball.displacement", "ball.to_world.translate"],
            "`ball.displacement` and another part of the place of the same mesh cannot both be optimised: name one",
        ),
        (
            grid(picture),
            &["ball.vertex_positions"],
            "`ball.vertex_positions` cannot be optimised: the mesh has a `displacement`",
        ),
        (
            grid(r#"{"type": "checkerboard"}"#),
            &["ball.displacement"],
            "a `checkerboard` as a displacement",
        ),
        (
            format!(r#"{mesh}, "displacement": {picture}"#),
            &["ball.displacement"],
            "the mesh of `ball` has no texture coordinates, by which its displacement is looked up",
        ),
        (plain.into(), &["lamp.to_world.scale"], "lamp.to_world.scale"),
        (plain.into(), &["ball.vertex_positions"], "ball.vertex_positions"),
    ] {
        let message = said("prb", &ball, "", parameters).unwrap_or_else(|| panic!("{parameters:?}: it is whole"));
        assert!(message.contains(expected), "{message}");
    }
}

/// A run moves a camera from beside to where the picture was taken, to 0.03; its results, also exported, render the target's
/// picture.
#[test]
fn a_run_finds_where_a_camera_stands() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = |name: &str| folder.path().join(name);
    let scene = |more: &str| {
        format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": 2}},
                "camera": {{"type": "perspective", "fov": 40,
                    "to_world": [{{"look_at": {{"origin": [0.4, 0.2, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 32, "height": 32, "rfilter": {{"type": "box"}}}}}},
                "wall": {{"type": "rectangle", "to_world": [{{"scale": 3}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 25}}}}], "bsdf": {{
                    "type": "diffuse", "reflectance": {{"type": "bitmap", "data": {{"resolution": [12, 12], "planet": 3}}}}}}}},
                "lamp": {{"type": "point", "position": [0.5, 1, 3], "intensity": 20}}{more}}}"#
        )
    };
    let block = r#", "optimize": {
        "parameters": {"camera.to_world.translate": {"learning_rate": 0.01, "initial": [0.12, -0.1, 0.15]}},
        "references": {"type": "scene", "filename": "target.json", "spp": 64},
        "loss": "l2", "iterations": 80, "spp": 8, "spp_grad": 4, "batch": "all", "seed": 3,
        "schedule": {"type": "exponential", "final_factor": 0.05}}"#;
    fs::write(path("scene.json"), scene(block)).expect("writable");
    fs::write(path("target.json"), scene("")).expect("writable");
    let prbopt = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prbopt"));
        let done = command.args(words).current_dir(&folder).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    prbopt(&["optimize", "scene.json", "--device", "cpu", "-q", "-o", "run"]);
    let text = fs::read_to_string(path("run/final/camera.to_world.translate.json")).expect("it is written");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let found: Vec<f64> = serde_json::from_value(found["value"].clone()).expect("three numbers");
    println!("left of [0.12, -0.1, 0.15]: {found:?}");
    assert!(found.iter().all(|x| x.abs() < 0.03), "{found:?}");
    // The picture from there is the target's, rendered from the results and from their export.
    let parameters = ["--parameters", "run/final"];
    prbopt(&[&["export", "scene.json", "-o", "out.xml"][..], &parameters].concat());
    prbopt(&["import", "out.xml", "-o", "back.json", "-q"]);
    let render = ["--spp", "256", "--device", "cpu", "-q", "-o"];
    prbopt(&[&["render", "scene.json"][..], &parameters, &render, &["run.exr"]].concat());
    prbopt(&[&["render", "back.json"][..], &render, &["back.exr"]].concat());
    prbopt(&[&["render", "target.json"][..], &render, &["target.exr"]].concat());
    prbopt(&[&["render", "scene.json"][..], &render, &["start.exr"]].concat());
    let [run, back, target, start] = ["run.exr", "back.exr", "target.exr", "start.exr"].map(|name| {
        let (picture, _) = image::read(&path(name)).expect("a picture");
        picture.data
    });
    let far =
        |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f32>() / a.len() as f32 };
    let [found, exported, begun] = [far(&run, &target), far(&run, &back), far(&start, &target)];
    println!("mean differences: found {found}, exported {exported}, at first {begun}");
    assert!(
        found < 0.3 * begun && exported < 0.1 * begun,
        "{found} {exported} {begun}"
    );
}
