//! Integrators, phase functions, meshes' corners, clear boxes and what is refused, worked out by hand.

use std::path::Path;

use glam::Vec3;
use prbopt::resident::Transport;
use prbopt::resident::emissive_triangles;
use prbopt::resident::layout::{self, gradient};
use prbopt::resident::{Resident, layout::NONE};
use prbopt::scene::{self, Estimator};

use super::{assert_near, resident, world};

const CAMERA: &str = r#""camera": {"type": "perspective", "to_world": [{"translate": [0, 0, -500]}]}"#;

/// Why a scene is refused once its files are read.
fn refused(objects: &str) -> String {
    let text = format!("{{{objects}, {CAMERA}}}");
    let scene = scene::parse(&text, Path::new("records.json")).unwrap_or_else(|m| panic!("{m}\nin {text}"));
    match Resident::new(&scene) {
        Ok(_) => panic!("{text} is not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn integrators_tell_how_derivatives_are_taken() {
    let sky = r#""sky": {"type": "constant"}"#;
    let point = r#""lamp": {"type": "point", "position": [0, 9, 0]}"#;
    for (integrator, light, code, estimator) in [
        (r#""type": "volpath""#, sky, gradient::PAIRED, "replay"),
        (r#""type": "volpath""#, point, gradient::DRT, "replay"),
        (r#""type": "advolpath""#, sky, gradient::FREE_FLIGHT, "tape"),
        (r#""type": "advolpath""#, point, gradient::FREE_FLIGHT, "tape"),
        (r#""type": "rbvolpath""#, sky, gradient::PAIRED, "radiative"),
        (
            r#""type": "rbvolpath", "variant": "biased""#,
            sky,
            gradient::PAIRED,
            "radiative",
        ),
        (
            r#""type": "rbvolpath", "variant": "pipelined""#,
            sky,
            gradient::PAIRED,
            "pipelined",
        ),
        (
            r#""type": "rbvolpath", "variant": "biased_pipelined""#,
            point,
            gradient::DRT,
            "pipelined",
        ),
        (
            r#""type": "prbvolpath", "gradient": "free_flight""#,
            sky,
            gradient::FREE_FLIGHT,
            "replay",
        ),
        (
            r#""type": "prbvolpath", "gradient": "drt""#,
            sky,
            gradient::DRT,
            "replay",
        ),
        (
            r#""type": "prbvolpath", "gradient": "paired""#,
            point,
            gradient::PAIRED,
            "replay",
        ),
    ] {
        let (resident, _) = resident(&format!(
            r#"{{"integrator": {{{integrator}}}, {light}, {CAMERA}, "fog": {{"type": "cube", "bsdf": {{"type": "null"}},
                "interior": {{"type": "homogeneous"}}}}}}"#
        ));
        assert_eq!(
            resident.transport.is_pipelined(),
            estimator == "pipelined",
            "{integrator}"
        );
        let world = resident.transport.paths();
        assert_eq!(world.settings.gradient, code, "{integrator} {light}");
        assert_eq!(world.estimator == Estimator::Tape, estimator == "tape");
        assert_eq!(world.estimator == Estimator::PathReplay, estimator == "replay");
    }
    let (world, _) = world(&format!(
        r#""integrator": {{"type": "volpath", "max_depth": -1}}, {sky}, {CAMERA},
        "floor": {{"type": "rectangle"}}"#
    ));
    assert_eq!(
        (
            world.settings.max_depth,
            world.settings.rr_depth,
            world.settings.hide_emitters
        ),
        (NONE, 5, 0)
    );
    // Nothing but a background, which only paths hide from the camera.
    let (hidden, _) = super::world(&format!(
        r#""integrator": {{"type": "path", "hide_emitters": true}}, {sky}, {CAMERA}"#
    ));
    assert_eq!((hidden.settings.hide_emitters, hidden.settings.surfaces), (1, 0));
    let map = r#""sky": {"type": "envmap", "data": {"resolution": [4, 2], "value": 1e9}}"#;
    let (hidden, params) = super::world(&format!(
        r#""integrator": {{"type": "path", "hide_emitters": true}}, {map}, {CAMERA}"#
    ));
    assert_eq!((hidden.magnitudes, params.parameters.len()), (vec![0], 1));
}

/// The expected order e of ∂L/∂θ, as e − clamp(e, −6, 6): by intensities the square of the inverse distance (2⁻³⁰ at 2¹⁵) whatever
/// their values, by radiances one, as lights may be seen, by factors of a texture or a map the other factor, by anything else the
/// radiance.
#[test]
fn the_size_of_derivatives_is_expected_from_the_lights() {
    let floor = r#""floor": {"type": "rectangle", "bsdf": {"type": "diffuse"}}"#;
    let point = |distance: f32, intensity: f32| {
        format!(r#""lamp": {{"type": "point", "position": [0, 0, {distance}], "intensity": {intensity}}}"#)
    };
    let sun = |irradiance: f32| {
        format!(r#""sun": {{"type": "directional", "direction": [0, 0, -1], "irradiance": {irradiance}}}"#)
    };
    let slide = r#""lamp": {"type": "projector", "fov": 20, "irradiance": {"type": "bitmap", "data": {"resolution": [2, 2], "value": 1024}},
        "scale": 65536, "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 180}}, {"translate": [0, 0, 1]}]}"#;
    let star = r#""lamp": {"type": "sphere", "center": [0, 0, 4], "radius": 1e-4, "emitter": {"type": "area", "radiance": 1e9}}"#;
    let map = r#""sky": {"type": "envmap", "data": {"resolution": [4, 2], "value": 1024}, "scale": 65536}"#;
    let fog = r#""fog": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "heterogeneous", "sigma_t": {"type": "constvolume",
        "value": 3}, "emission": {"type": "constvolume", "value": 1048576}}}"#;
    let reflectance = "floor.bsdf.reflectance";
    for (light, expected) in [
        (point(1.0, 3.0), vec![("lamp.intensity", 0), (reflectance, 0)]),
        (point(32768.0, 0.0), vec![("lamp.intensity", -24), (reflectance, 0)]),
        (point(32768.0, 1e9), vec![("lamp.intensity", -24), (reflectance, 0)]),
        (
            format!("{}, {}", point(1.0, 1e-9), sun(65536.0)),
            vec![("lamp.intensity", 0), ("sun.irradiance", 0), (reflectance, 10)],
        ),
        (
            slide.into(),
            vec![("lamp.scale", 4), ("lamp.irradiance", 10), (reflectance, 20)],
        ),
        (star.into(), vec![("lamp.emitter.radiance", 0), (reflectance, 0)]),
        (map.into(), vec![("sky.scale", 4), ("sky.data", 10), (reflectance, 20)]),
        (fog.into(), vec![("fog.interior.emission", 0), (reflectance, 14)]),
    ] {
        let (world, params) = world(&format!("{floor}, {light}, {CAMERA}"));
        for (path, order) in expected {
            let index = params.find(path).unwrap_or_else(|| panic!("{path} in {light}"));
            assert_eq!(world.magnitudes[index], order, "{path} in {light}");
        }
    }
}

/// The majorant of a constant extinction has a margin and a floor only where a run changes that extinction.
#[test]
fn what_a_run_changes_has_a_margin_and_a_floor() {
    let read = |tuned: &str| {
        let (world, params) = world(&format!(
            r#""box": {{"type": "cube", "to_world": [{{"scale": 9}}], "bsdf": {{"type": "null"}},
                "interior": {{"type": "heterogeneous", "sigma_t": {{"type": "constvolume", "value": 2}}}}}},
               "sky": {{"type": "constant"}},
               "optimize": {{"parameters": {{{tuned}: {{"learning_rate": 0.1, "bounds": [0, 3]}}}}, "iterations": 1,
                "references": {{"type": "constant", "value": 0}}}}, {CAMERA}"#
        ));
        let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
        let rule = world.majorant_rule(0);
        [world.rebuild_majorants(&values)[0], rule.margin, rule.floor]
    };
    assert_near(read("\"sky.radiance\""), [2.0, 1.0, 0.0], "extinction stays");
    assert_near(
        read("\"box.interior.sigma_t\""),
        [2.1, 1.05, 1.0 / 3f32.sqrt()],
        "extinction changes",
    );
}

#[test]
fn blends_nest_four_deep() {
    let nested = |depth: usize| {
        (0..depth).fold(r#"{"type": "isotropic"}"#.to_owned(), |inner, i| {
            format!(
                r#"{{"type": "blendphase", "weight": 0.{}, "a": {{"type": "hg", "g": 0.1}}, "b": {inner}}}"#,
                i + 1
            )
        })
    };
    let scene = |phase: &str| {
        format!(
            r#""box": {{"type": "cube", "bsdf": {{"type": "null"}},
                "interior": {{"type": "homogeneous", "phase": {phase}}}}}"#
        )
    };
    for depth in 0..5 {
        let (world, params) = world(&format!("{}, {CAMERA}", scene(&nested(depth))));
        assert_eq!(world.phases.len(), 1 + 2 * depth);
        let mut phase = world.phases[world.media[0].phase as usize];
        for level in (0..depth).rev() {
            assert_eq!(phase.kind, layout::phase::BLEND);
            let slot = world.volumes[phase.weight as usize].slot as usize;
            assert_near(
                [params.parameters[slot].values[0]],
                [0.1 * (level + 1) as f32],
                "weight",
            );
            let first = world.phases[phase.first as usize];
            assert_eq!((first.kind, first.weight, first.first), (layout::phase::HG, NONE, NONE));
            phase = world.phases[phase.first as usize + 1];
        }
        assert_eq!((phase.kind, phase.slot), (layout::phase::ISOTROPIC, NONE));
    }
}

/// A distant sensor without a target looks at a disc as large as a sphere around the scene, whatever it is made of.
#[test]
fn distant_sensors_see_shapes_of_all_kinds() {
    for (shape, center, half) in [
        (
            r#""type": "disk", "to_world": [{"scale": 2}, {"translate": [1, 2, 3]}]"#,
            [1.0, 2.0, 3.0],
            [2.0, 2.0, 0.0],
        ),
        (
            r#""type": "cylinder", "p0": [0, 1, 0], "p1": [0, 1, 4], "radius": 1.5"#,
            [0.0, 1.0, 2.0],
            [1.5, 1.5, 2.0],
        ),
        (
            r#""type": "sphere", "center": [0, 5, 0], "radius": 2"#,
            [0.0, 5.0, 0.0],
            [2.0; 3],
        ),
    ] {
        let (resident, _) = resident(&format!(
            r#"{{"shape": {{{shape}}}, "sky": {{"type": "constant"}}, "meter": {{"type": "distant", "direction": [0, 0, 1]}}}}"#
        ));
        let m = &resident.sensors[0].area_to_world;
        let radius = [0, 1, 2].map(|a| m[a][0]).map(|x| x * x).iter().sum::<f32>().sqrt();
        let expected = half.map(|x: f32| x * x).iter().sum::<f32>().sqrt();
        assert!(
            (radius / expected - 1.0).abs() < 1e-3,
            "{shape}: {radius} for {expected}"
        );
        assert_near([0, 1, 2].map(|a| m[a][3]), center, shape);
    }
}

/// A triangle without texture coordinates has the barycentric weights of its second and third corner instead; a scene that shows
/// an image there warns.
#[test]
fn meshes_without_coordinates_have_those_of_their_corners() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bare.obj");
    std::fs::write(&path, "v 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 2 3\n").expect("writable");
    let shown = |reflectance: &str| {
        format!(
            r#""gem": {{"type": "obj", "filename": {path:?}, "bsdf": {{"type": "diffuse", "reflectance": {reflectance}}}}},
               {CAMERA}, "sky": {{"type": "constant"}}"#
        )
    };
    let (world, _) = world(&shown(r#"{"type": "checkerboard"}"#));
    assert_eq!(
        (world.corners[0].uv_ab, world.corners[0].uv_c),
        ([0.0, 0.0, 1.0, 0.0], [0.0, 1.0])
    );
    for (reflectance, count) in [(r#"{"type": "checkerboard"}"#, 1), ("0.5", 0)] {
        let text = format!("{{{}}}", shown(reflectance));
        let scene = scene::parse(&text, Path::new("bare.json")).unwrap_or_else(|e| panic!("{e}"));
        let about = |w: &&String| w.contains("the mesh of `gem` has no texture coordinates");
        assert_eq!(
            scene.warnings.iter().filter(about).count(),
            count,
            "{:?}",
            scene.warnings
        );
    }
}

/// Places in a texture, normals and triangles of a file's three corners, in their order; mirrored maps turn faces round.
#[test]
fn corners_of_meshes_are_recorded_in_their_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("one.obj");
    let text = "v 1 0 0\nv 0 2 0\nv 0 0 3\nvt 0.1 0.2\nvt 0.3 0.4\nvt 0.5 0.6\nvn 1 0 0\nvn 0 1 0\nvn 0 0 1\n\
        f 1/1/1 2/2/2 3/3/3\n";
    std::fs::write(&path, text).expect("writable");
    for (map, order, z) in [("[1, 1, 1]", [0, 1, 2], 1.0), ("[1, 1, -1]", [0, 2, 1], -1.0)] {
        let (world, _) = world(&format!(
            r#""gem": {{"type": "obj", "filename": {path:?}, "to_world": [{{"scale": {map}}}], "flip_tex_coords": false}},
               {CAMERA}, "sky": {{"type": "constant"}}"#
        ));
        let record = &world.corners[0];
        let uvs = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]];
        let found = [
            record.uv_ab[0],
            record.uv_ab[1],
            record.uv_ab[2],
            record.uv_ab[3],
            record.uv_c[0],
            record.uv_c[1],
        ];
        let expected = order.map(|k| uvs[k]);
        assert_eq!(found.as_slice(), expected.as_flattened(), "{map}");
        // The fourth number is that of the vertex among the mesh's values.
        let vertex = f32::from_bits;
        let normals = [
            [1.0, 0.0, 0.0, vertex(0)],
            [0.0, 1.0, 0.0, vertex(1)],
            [0.0, 0.0, z, vertex(2)],
        ];
        assert_eq!(record.normals, order.map(|k| normals[k]), "{map}");
        let corners = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0 * z]];
        assert_eq!(super::triangles(&world.bvh), [(0, order.map(|k| corners[k]))]);
        // Without texture coordinates they are the weights of the file's second and third corner.
        let bare = folder.path().join("bare.obj");
        std::fs::write(&bare, text.replace("1/1/1 2/2/2 3/3/3", "1//1 2//2 3//3")).expect("writable");
        let (world, _) = super::world(&format!(
            r#""gem": {{"type": "obj", "filename": {bare:?}, "to_world": [{{"scale": {map}}}]}}, {CAMERA}, "sky": {{"type": "constant"}}"#
        ));
        let record = &world.corners[0];
        let weights = order.map(|k| [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]][k]);
        assert_eq!(record.uv_ab, *weights[..2].as_flattened());
        assert_eq!(record.uv_c, weights[2]);
    }
    let (world, _) = world(&format!(
        r#""gem": {{"type": "obj", "filename": {path:?}, "face_normals": true,
            "bsdf": {{"type": "diffuse", "reflectance": {{"type": "checkerboard",
                "to_uv": [{{"scale": [3, 7]}}, {{"translate": [0.25, 0.5]}}]}}}}}},
           {CAMERA}, "sky": {{"type": "constant"}}"#
    ));
    let numbered = [0, 1, 2].map(|k| [0.0, 0.0, 0.0, f32::from_bits(k)]);
    assert_eq!(world.corners[0].normals, numbered);
    assert_eq!(
        world.bsdfs.textures[0].to_uv,
        [[3.0, 0.0, 0.25, 0.0], [0.0, 7.0, 0.5, 0.0]]
    );
}

/// Boxes that no surface passes through: that of a grid in its cube, unless a ball stands in it.
#[test]
fn boxes_without_surfaces_are_marked() {
    let place = r#"[{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}]"#;
    let fog = format!(
        r#""fog": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "heterogeneous",
            "sigma_t": {{"type": "gridvolume", "resolution": 2, "value": 1, "to_world": {place}}}}}}}"#
    );
    for (ball, clear) in [
        ("[0, 0, 0]", 0),
        ("[3, 0, 0]", 1),
        ("[1, 1, 1.04]", 0),
        ("[0, 0, 1.06]", 1),
    ] {
        let (world, _) = world(&format!(
            r#"{fog}, "ball": {{"type": "sphere", "center": {ball}, "radius": 0.05}}, {CAMERA}"#
        ));
        assert_eq!(world.media[0].clear, clear, "{ball}");
    }
}

/// Only round spheres shine, and only shapes with an area.
#[test]
fn lights_that_cannot_shine_are_refused() {
    let ball =
        |map: &str| format!(r#""ball": {{"type": "sphere", "emitter": {{"type": "area"}}, "to_world": [{map}]}}"#);
    // Half axes of unequal lengths, and ones that are not at right angles: a turn and a stretch.
    let slanted = r#"{"rotate": {"axis": [0, 0, 1], "angle": 45}}, {"scale": [1, 2, 1]}, {"scale": [1, 1, 1.5811388]}"#;
    for map in [
        r#"{"scale": [1, 1, 1.001]}"#,
        r#"{"scale": [1, 1.001, 1]}"#,
        r#"{"scale": [1.001, 1, 1]}"#,
        slanted,
    ] {
        let message = refused(&ball(map));
        assert!(
            message.contains("`ball` is a sphere that is not scaled alike"),
            "{message}"
        );
    }
    for map in [
        r#"{"scale": [2, 2, 2.0001]}"#,
        r#"{"rotate": {"axis": [1, 2, 3], "angle": 40}}, {"scale": -2}"#,
    ] {
        let (world, _) = world(&format!("{}, {CAMERA}", ball(map)));
        assert!((world.lights[0].direction[3] - 2.0).abs() < 1e-3);
    }
}

/// Cubes that shine, smaller and larger than 1: two triangles a face, outwards, on the face, with half of its area each.
#[test]
fn a_shining_cube_has_its_six_faces() {
    for (scale, mirror) in [(0.25, 1.0), (0.25, -1.0), (3.0, 1.0), (3.0, -1.0)] {
        let half = scale * Vec3::new(1.0, 2.0, 3.0);
        let map = glam::Affine3A::from_scale(half * Vec3::new(1.0, 1.0, mirror));
        let triangles = emissive_triangles::cube(&map);
        assert_eq!(triangles.len(), 12);
        let mut faces = [0; 6];
        for [a, b, c] in triangles.into_iter().map(|(t, _)| t.map(|p| Vec3::from(p) / half)) {
            let across = (b - a).cross(c - a);
            let axis = (0..3)
                .find(|i| across[*i].abs() > 3.9)
                .expect("half of an area of 4, doubled");
            let side = across[axis].signum();
            assert!(
                [a, b, c].iter().all(|p| p[axis] == side && p.abs() == Vec3::ONE),
                "{a} {b} {c}"
            );
            assert_eq!(across.abs().element_sum(), 4.0);
            faces[2 * axis + usize::from(side > 0.0)] += 1;
        }
        assert_eq!(faces, [2; 6]);
    }
}

/// The longest diagonal of a field's cube, sheared so that each of the four is the longest once, between any two corners.
#[test]
fn the_longest_diagonal_is_found() {
    for (angles, scale) in [
        ([0, 0, 0], "[1, 2, 3]"),
        ([45, 0, 0], "[1, 1, 3]"),
        ([-45, 0, 0], "[1, 1, 3]"),
        ([0, 45, 0], "[3, 1, 1]"),
        ([0, -45, 0], "[3, 1, 1]"),
        ([30, 0, 45], "[1, 4, 2]"),
        ([30, 0, -45], "[1, 4, 2]"),
        ([-40, 35, 45], "[1, 4, 9]"),
        ([40, -35, 45], "[1, 9, 1]"),
        ([40, 35, -45], "[7, 1, 1]"),
        ([-40, -35, -45], "[7, 1, 2]"),
    ] {
        let turn = |axis: &str, angle: i32| format!(r#"{{"rotate": {{"axis": {axis}, "angle": {angle}}}}}"#);
        let turns = [
            turn("[1, 0, 0]", angles[0]),
            turn("[0, 1, 0]", angles[1]),
            turn("[0, 0, 1]", angles[2]),
        ];
        let (resident, _) = resident(&format!(
            r#"{{"object": {{"type": "cube", "bsdf": {{"type": "null"}},
                "to_world": [{{"scale": [1, 2, 1.5]}}, {}, {{"scale": {scale}}}],
                "interior": {{"type": "radiance_field", "sh_degree": 0,
                    "sigma_t": {{"type": "gridvolume", "resolution": 2, "value": 1}},
                    "sh_coeffs": {{"type": "gridvolume", "resolution": 2, "value": 0}}}}}},
               "sky": {{"type": "constant"}}, "camera": {{"type": "perspective"}}}}"#,
            turns.join(", ")
        ));
        let rows = &resident.scene.world_to_unit;
        let columns = [0, 1, 2, 3].map(|c| [rows[0][c], rows[1][c], rows[2][c]]);
        let to_world = glam::Affine3A::from_cols_array_2d(&columns).inverse();
        let corners: Vec<Vec3> = (0..8u32)
            .map(|i| to_world.transform_point3(Vec3::new((i & 1) as f32, (i >> 1 & 1) as f32, (i >> 2) as f32)))
            .collect();
        let pairs = corners.iter().flat_map(|a| corners.iter().map(|b| a.distance(*b)));
        let expected = pairs.fold(0.0, f32::max);
        // A thousand steps and a half are 1001 samples and one more; half a thousandth of the diagonal would be seen.
        let mut record = resident.scene;
        record.step_length = expected / 1000.5;
        let Transport::Field(field) = &resident.transport else {
            panic!("it is a field")
        };
        assert_eq!(field.longest_ray(&record), 1002, "{expected}");
    }
}
