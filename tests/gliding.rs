//! Vertices on moving shapes that slide along their rays in part: the slopes of the share that slides, that they slide only where
//! no value jumps, and that sliding changes the noise of derivatives and not their means.

mod small;

use prbopt::device::Keys;
use prbopt::gradcheck::paths::objective::{PathObjective, cast_paths};
use prbopt::gradcheck::{Options, Setup};
use prbopt::resident::layout::gradient;
use prbopt::scene;
use prbopt::transport::rays::camera::normalize;
use prbopt::transport::rays::random::{Pass, pass_key};
use prbopt::transport::rays::sampler::dot;
use prbopt::transport::scene::glide::{Glide, glide};
use prbopt::transport::scene::shape::{Hit, intersect};
use rayon::prelude::*;
use small::worlds::{mesh, normal_map};
use std::path::Path;

const DIFFUSE: &str = r#"{"type": "diffuse", "reflectance": 0.7}"#;

/// A world whose shape `moved` is translated by a run, seen from (0, 0, 4).
fn world(objects: &str) -> Setup {
    let text = format!(
        r#"{{"integrator": {{"type": "prb", "max_depth": 5}},
            "camera": {{"type": "perspective", "fov": 35, "film": {{"type": "hdrfilm", "width": 4, "height": 4}},
                "to_world": [{{"look_at": {{"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}]}},
            "optimize": {{"references": {{"type": "constant", "value": 0.5}},
                "parameters": {{"moved.to_world.translate": {{}}}}}},
            {objects}}}"#
    );
    let scene = scene::parse(&text, Path::new("gliding.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let options = Options {
        parameters: vec!["moved.to_world.translate".into()],
        ..Options::default()
    };
    Setup::new(&scene, &options).expect("a sound scene")
}

/// The kinds of shapes, each about the origin and as large as [-1, 1]³.
fn shapes() -> [String; 6] {
    [
        r#""type": "rectangle""#.into(),
        r#""type": "disk""#.into(),
        r#""type": "sphere""#.into(),
        r#""type": "cylinder", "p0": [0, 0, -1], "p1": [0, 0, 1], "radius": 0.7"#.into(),
        r#""type": "cube""#.into(),
        mesh("panel"),
    ]
}

/// The share by which points slide changes between neighbouring hits as its slopes say.
#[test]
fn shares_change_as_their_slopes_say() {
    const STEP: f32 = 1e-3;
    for shape in shapes() {
        let setup = world(&format!(
            r#""moved": {{{shape}, "bsdf": {DIFFUSE}, "to_world": [{{"scale": [1.5, 0.8, 1.2]}},
                {{"rotate": {{"axis": [1, 2, 0.5], "angle": 50}}}}, {{"translate": [0.1, -0.2, 0.3]}}]}}"#
        ));
        let objective = PathObjective::without_paths(&setup, gradient::FREE_FLIGHT);
        let view = objective.view();
        let (mut partial, mut whole) = (0, 0);
        for i in 0..4000u32 {
            let number = |k: u32| small::draw(3, i, k) * 2.0 - 1.0;
            let origin = normalize([number(0), number(1), number(2)]).map(|x| 4.0 * x);
            let target = [number(3), number(4), number(5)];
            let look = |beside: [f32; 3]| -> Option<(Hit, Option<Glide>)> {
                let direction = normalize([0, 1, 2].map(|a| target[a] + beside[a] - origin[a]));
                let hit = intersect(&view, origin, direction, f32::INFINITY)?;
                Some((hit, glide(&view, origin, 0.0, &hit, direction)))
            };
            let Some((hit, Some(here))) = look([0.0; 3]) else {
                continue;
            };
            partial += u32::from(here.share < 0.999);
            whole += u32::from(here.share >= 0.999);
            for axis in 0..3 {
                let beside = |step: f32| {
                    let mut beside = [0.0; 3];
                    beside[axis] = step;
                    look(beside)
                };
                let (Some((last, Some(a))), Some((next, Some(b)))) = (beside(-STEP), beside(STEP)) else {
                    continue;
                };
                if last.primitive != next.primitive && shape.contains("cube") {
                    continue;
                }
                let over = [0, 1, 2].map(|a| next.point.p[a] - last.point.p[a]);
                let (found, expected) = (b.share - a.share, dot(here.slope, over));
                let length = dot(over, over).sqrt();
                if length > 20.0 * STEP {
                    continue;
                }
                // What is allowed is the rounding of places, and the second order beside the border and where rays graze.
                assert!(
                    (found - expected).abs() < 0.1 * found.abs() + 0.02 * length + 2e-5,
                    "{shape}: {found} in place of {expected} over {length}, {here:?} at {:?}",
                    hit.point.p
                );
            }
        }
        assert!(partial > 100 && whole > 20, "{shape}: {partial} partly, {whole} wholly");
    }
}

/// Points do not slide where values jump from point to point, on lights, and on surfaces that are neither flat nor round.
#[test]
fn points_follow_what_jumps() {
    let slides = |shape: &str, bsdf: &str| {
        let lamp = r#""lamp": {"type": "point", "position": [0, 0, 5]}"#;
        let setup = world(&format!(r#""moved": {{{shape}, "bsdf": {bsdf}}}, {lamp}"#));
        let objective = PathObjective::without_paths(&setup, gradient::FREE_FLIGHT);
        let motions = &objective.records().rest.motions;
        motions[0].expect("it moves").track.is_some()
    };
    let rectangle = r#""type": "rectangle""#;
    let of = |texture: &str| format!(r#"{{"type": "diffuse", "reflectance": {texture}}}"#);
    let picture = |more: &str| {
        of(&format!(
            r#"{{"type": "bitmap", "data": {{"resolution": [4, 4], "value": 0.5}} {more}}}"#
        ))
    };
    for shape in shapes() {
        assert!(slides(&shape, DIFFUSE), "{shape}");
        assert!(!slides(&shape, &of(r#"{"type": "checkerboard"}"#)), "{shape}");
    }
    assert!(slides(rectangle, &picture("")));
    assert!(slides(&mesh("panel"), &picture("")));
    assert!(!slides(rectangle, &picture(r#", "filter_type": "nearest""#)));
    assert!(!slides(r#""type": "sphere""#, &picture("")));
    assert!(!slides(&mesh("octahedron"), DIFFUSE));
    assert!(!slides(rectangle, &normal_map("", DIFFUSE)));
    // Each triangle has a tangent of its own, and without texture coordinates in the file a picture of its own.
    let folder = tempfile::tempdir().expect("a folder can be made");
    let square = |name: &str, faces: &str| {
        let file = folder.path().join(name);
        let text = format!("v -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nf 1 2 3\nf 1 3 4\n{faces}");
        std::fs::write(&file, text).expect("writable");
        format!(r#""type": "obj", "filename": {:?}"#, file.to_string_lossy())
    };
    let plain = square("plain.obj", "");
    let brushed = r#"{"type": "roughconductor", "alpha_u": 0.1, "alpha_v": 0.3}"#;
    assert!(slides(&plain, DIFFUSE) && !slides(&plain, &picture("")));
    assert!(slides(rectangle, brushed) && !slides(&mesh("panel"), brushed));
    // Triangles that are lines, or there twice, do not move the border outwards.
    let track = |shape: &str| {
        let setup = world(&format!(
            r#""moved": {{{shape}, "bsdf": {DIFFUSE}}}, "lamp": {{"type": "point"}}"#
        ));
        let objective = PathObjective::without_paths(&setup, gradient::FREE_FLIGHT);
        objective.records().rest.motions[0].expect("it moves").track
    };
    let expected = track(&plain).expect("it is flat");
    assert!((expected.size - 1.0).abs() < 1e-6, "{expected:?}");
    for more in ["f 1 1 2\n", "f 1 2 3\n"] {
        let found = track(&square("more.obj", more)).map(|track| track.size);
        assert!(
            found.is_some_and(|size| size > 0.5 && size < 1.000_001),
            "{more}: {found:?}"
        );
    }
    assert!(!slides(
        r#""type": "rectangle", "emitter": {"type": "area", "radiance": 1}"#,
        DIFFUSE
    ));
    let blend = |weight: &str| {
        format!(r#"{{"type": "blendbsdf", "weight": {weight}, "a": {DIFFUSE}, "b": {{"type": "roughconductor"}}}}"#)
    };
    assert!(slides(rectangle, &blend("0.3")));
    assert!(!slides(rectangle, &blend(r#"{"type": "checkerboard"}"#)));
}

/// The colour of the moving shape, and a checkerboard of one colour, which looks the same but keeps points from sliding.
const COLORS: [&str; 2] = ["0.7", r#"{"type": "checkerboard", "color0": 0.7, "color1": 0.7}"#];

/// Derivatives of the image's mean by the three numbers, of passes of one sample a pixel.
fn derivatives(setup: &Setup, passes: u32) -> Vec<[f64; 3]> {
    let objective = PathObjective::without_paths(setup, gradient::FREE_FLIGHT);
    let slot = setup.checked[0];
    let pass = |k: u32| -> [f64; 3] {
        let keys = Keys {
            objective: pass_key(u64::from(k), 0, Pass::Objective),
            pass: pass_key(u64::from(k), 0, Pass::Adjoint),
        };
        let pixels = setup.batch.pixels();
        let mut gradient = objective.fields.zeros();
        let mut sums = objective.sums(&mut gradient);
        for cast in cast_paths(&setup.resident, &setup.batch, keys, 1, 0..pixels) {
            objective.replay([1.0 / (3.0 * f64::from(pixels)); 3], &cast, &mut sums);
        }
        [0, 1, 2].map(|axis| gradient[slot][axis])
    };
    (1..=passes).into_par_iter().map(pass).collect()
}

/// Mean and variance of one of the three.
fn moments(found: &[[f64; 3]], axis: usize) -> [f64; 2] {
    let n = found.len() as f64;
    let mean = found.iter().map(|pass| pass[axis]).sum::<f64>() / n;
    let square: f64 = found.iter().map(|pass| (pass[axis] - mean).powi(2)).sum();
    [mean, square / (n - 1.0)]
}

/// Compares derivatives of two scenes by the same random numbers: for each of the three directions the difference of their means,
/// its standard error, and both variances.
fn compare(name: &str, setups: &[Setup; 2], passes: u32) -> [[f64; 4]; 3] {
    let [sliding, held] = setups.each_ref().map(|setup| derivatives(setup, passes));
    let between: Vec<[f64; 3]> = sliding
        .iter()
        .zip(&held)
        .map(|(a, b)| [0, 1, 2].map(|axis| a[axis] - b[axis]))
        .collect();
    [0, 1, 2].map(|axis| {
        let [off, variance] = moments(&between, axis);
        let error = (variance / f64::from(passes)).sqrt();
        let [[mean, noise], [other, noise_held]] = [moments(&sliding, axis), moments(&held, axis)];
        println!("{name}, {axis}: {mean:.2e} and {other:.2e}, {off:.1e} ± {error:.1e}, variances {noise:.1e} and {noise_held:.1e}");
        assert!(off != 0.0, "{name}: nothing slides");
        assert!(off.abs() < 5.0 * error, "{name}, {axis}: {mean:.3e} and {other:.3e}, {off:.1e} ± {error:.1e}");
        [off, error, noise, noise_held]
    })
}

/// A checkerboard of one colour looks like that colour, but points on it do not slide: both derivatives have the same mean,
/// within five standard errors. A wall over gloss and a pane between panes have far less noise with points that slide.
#[test]
fn means_are_the_same_and_noise_is_less() {
    const PASSES: u32 = 6000;
    let lamp = r#""lamp": {"type": "rectangle", "emitter": {"type": "area", "radiance": 6},
        "to_world": [{"scale": 0.7}, {"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0.3, 4, 1]}]}"#;
    let gloss = r#""floor": {"type": "rectangle", "bsdf": {"type": "roughconductor", "alpha": 0.05},
        "to_world": [{"scale": 6}, {"rotate": {"axis": [1, 0, 0], "angle": -75}}, {"translate": [0, -0.6, 0]}]}"#;
    let over_gloss = |shape: &str, place: &str| {
        COLORS.map(|color| {
            world(&format!(
                r#"{lamp}, {gloss}, "moved": {{{shape}, "to_world": [{place}],
                    "bsdf": {{"type": "twosided", "inner": {{"type": "diffuse", "reflectance": {color}}}}}}}"#
            ))
        })
    };
    let small = r#"{"scale": 0.5}, {"rotate": {"axis": [1, 0.4, 0], "angle": 40}}, {"translate": [0, 1.2, -1]}"#;
    let wall = r#"{"scale": 8}, {"translate": [0, 0, -3]}"#;
    let pane = |name: &str, z: f64, tint: &str| {
        format!(
            r#""{name}": {{"type": "rectangle", "to_world": [{{"scale": 4}}, {{"translate": [0, 0, {z}]}}],
                "bsdf": {{"type": "roughdielectric", "distribution": "beckmann", "alpha": 0.3, "int_ior": 1.1,
                          "specular_transmittance": {tint}}}}}"#
        )
    };
    let behind = r#""light": {"type": "rectangle", "emitter": {"type": "area", "radiance": 5}, "to_world": [{"translate": [0.4, 0, -2]}]}"#;
    let panes = COLORS.map(|color| {
        let all = [
            pane("first", 1.0, "1"),
            pane("moved", 0.0, color),
            pane("last", -1.0, "1"),
        ]
        .join(", ");
        world(&format!("{all}, {behind}"))
    });
    let mut worlds = vec![
        ("wall", over_gloss(shapes()[0].as_str(), wall), [20.0, 20.0, 1.2]),
        ("panes", panes, [1.5, 1.5, 2.0]),
    ];
    for (name, shape) in ["panel", "disk", "ball", "tube", "box", "mesh"]
        .into_iter()
        .zip(shapes())
    {
        worlds.push((name, over_gloss(&shape, small), [0.7; 3]));
    }
    for (name, setups, gains) in worlds {
        for (axis, [_, _, noise, noise_held]) in compare(name, &setups, PASSES).into_iter().enumerate() {
            assert!(
                noise_held > gains[axis] * noise,
                "{name}, {axis}: variance {noise} in place of {noise_held}"
            );
        }
    }
}

/// A tile that is seen in gloss alone, under a sky. Without the slopes of shares, derivatives by both directions in its plane
/// would be a sixth too small, which is several times what this sees.
#[test]
fn borders_count() {
    let setups = COLORS.map(|color| {
        world(&format!(
            r#""sky": {{"type": "constant"}},
            "floor": {{"type": "rectangle", "bsdf": {{"type": "roughconductor", "alpha": 0.15}},
                "to_world": [{{"scale": 20}}, {{"translate": [0, 0, -1]}}]}},
            "moved": {{"type": "rectangle", "to_world": [{{"scale": 0.8}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 180}}}},
                    {{"translate": [0.3, 0.2, 0.6]}}],
                "bsdf": {{"type": "diffuse", "reflectance": {color}}}}}"#
        ))
    });
    for [_, error, ..] in &compare("tile", &setups, 20000)[..2] {
        assert!(*error < 1.2e-4, "{error}");
    }
}
