//! The records that a scene becomes, against numbers worked out by hand: both devices read them and would agree on wrong ones.

mod majorants;
mod paths;

use std::path::Path;

use glam::{Quat, Vec3, Vec3A};
use prbopt::io::{Image, image};
use prbopt::params::{Kind, ParamSet, Quantity};
use prbopt::resident::bvh::Bvh;
use prbopt::resident::filter::filter_table;
use prbopt::resident::layout::medium::ALIGNED;
use prbopt::resident::layout::{self, BLOCK, NONE, Rows, Triangle, VolumeRecord};
use prbopt::resident::paths::PathScene;
use prbopt::resident::{Resident, Transport, sensor_record};
use prbopt::scene::{self, Distortion, Filter};
use prbopt::transport::rays::camera::{transform_point, transform_vector};

fn resident(text: &str) -> (Resident, ParamSet) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("records.json");
    let scene = scene::parse(text, &path).unwrap_or_else(|mistakes| panic!("{mistakes}\nin {text}"));
    Resident::new(&scene).unwrap_or_else(|e| panic!("{e}\nin {text}"))
}

fn world(objects: &str) -> (PathScene, ParamSet) {
    let (resident, params) = resident(&format!("{{{objects}}}"));
    (resident.transport.paths().clone(), params)
}

fn assert_near<const N: usize>(found: [f32; N], expected: [f32; N], what: &str) {
    for i in 0..N {
        assert!(
            (found[i] - expected[i]).abs() < 2e-6,
            "{what}: {found:?}, not {expected:?}"
        );
    }
}

/// Every number of a camera in its place.
#[test]
fn a_sensor_is_recorded_number_by_number() {
    let camera = |more: &str| {
        let text = format!(
            r#"{{"camera": {{"type": "perspective", "focal_x": 70, "focal_y": 72, "center_x": 31, "center_y": 25,
                "near_clip": 0.5, "far_clip": 60,
                "to_world": [{{"rotate": {{"axis": [0, 1, 0], "angle": 90}}}}, {{"translate": [1, 2, 3]}}]
                {more}}}, "sky": {{"type": "constant"}}}}"#
        );
        let scene = scene::parse(&text, Path::new("a.json")).unwrap_or_else(|mistakes| panic!("{mistakes}\nin {text}"));
        sensor_record(&scene.sensors[0])
    };
    let film = |filter: &str| {
        let film = r#""type": "hdrfilm", "width": 64, "height": 48"#;
        format!(r#", "film": {{{film}, "rfilter": {{{filter}}}}}"#)
    };
    let lens = |numbers: &str| format!(r#"{}, "distortion": {{{numbers}}}"#, film(r#""type": "box""#));
    let record = camera(&film(r#""type": "box""#));
    assert_eq!((record.width, record.height), (64, 48));
    assert_eq!((record.focal, record.center), ([70.0, 72.0], [31.0, 25.0]));
    assert_eq!((record.near_clip, record.far_clip), (0.5, 60.0));
    assert_eq!((record.filter, record.filter_size), (layout::filter::BOX, 0.5));
    assert_eq!(
        (record.distortion_model, record.distortion),
        (layout::distortion::NONE, [0.0; 8])
    );
    assert_eq!((record.first_pixel, record.medium), (layout::NO_REFERENCE, NONE));
    // A quarter turn about y takes z to x and x to -z.
    assert_near(
        transform_point(&record.to_world, [0.0; 3]),
        [1.0, 2.0, 3.0],
        "where it stands",
    );
    assert_near(
        transform_vector(&record.to_world, [0.0, 0.0, 1.0]),
        [1.0, 0.0, 0.0],
        "where it looks",
    );
    assert_near(
        transform_vector(&record.to_world, [1.0, 0.0, 0.0]),
        [0.0, 0.0, -1.0],
        "its left",
    );
    let brown = camera(&lens(
        r#""model": "opencv", "k1": 0.1, "k2": 0.2, "k3": 0.3, "p1": 0.4, "p2": 0.5"#,
    ));
    assert_eq!(brown.distortion_model, layout::distortion::BROWN);
    assert_eq!(brown.distortion, [0.1, 0.2, 0.3, 0.0, 0.4, 0.5, 0.0, 0.0]);
    let fisheye = camera(&lens(
        r#""model": "fisheye", "k1": 0.1, "k2": 0.2, "k3": 0.3, "k4": 0.4"#,
    ));
    assert_eq!(fisheye.distortion_model, layout::distortion::FISHEYE);
    assert_eq!(fisheye.distortion, [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0, 0.0]);
    let tent = camera(&film(r#""type": "tent", "radius": 1.5"#));
    assert_eq!((tent.filter, tent.filter_size), (layout::filter::TENT, 1.5));
    let gaussian = camera(&film(r#""type": "gaussian", "stddev": 0.7"#));
    assert_eq!((gaussian.filter, gaussian.filter_size), (layout::filter::TABLE, 2.8));
    let lanczos = camera(&film(r#""type": "lanczos""#));
    assert_eq!((lanczos.filter, lanczos.filter_size), (layout::filter::TABLE, 3.0));
    let scene = scene::parse(
        r#"{"camera": {"type": "perspective"}, "s": {"type": "constant"}}"#,
        Path::new("a.json"),
    );
    assert_eq!(scene.expect("sound").sensors[0].distortion, Distortion::None);
}

/// The distribution function of exp(-z²/2) - exp(-8) on [-4, 4], in 120 cells, from Python's `math.erf`.
#[test]
fn the_gaussian_filter_has_its_distribution() {
    let table = filter_table(Filter::Gaussian { stddev: 0.7 });
    assert_eq!(table.drawn, table.signed);
    for (i, expected) in [
        (0, 0.000000000),
        (1, 0.000001296),
        (15, 0.001185741),
        (30, 0.022476288),
        (45, 0.158401717),
        (52, 0.296742314),
        (59, 0.473402296),
        (60, 0.500000000),
        (75, 0.841598283),
        (90, 0.977523712),
        (119, 0.999998704),
        (120, 1.0),
        (123, 1.0),
    ] {
        let found = table.drawn[i];
        assert!((f64::from(found) - expected).abs() < 1e-7, "entry {i}: {found}");
    }
}

/// Catmull's and Rom's filter f is negative from one pixel on, where its integral is -1/24: 1/28 of ∫|f| lies there on each side,
/// and ∫f is 12/14 of ∫|f|. Lanczos' changes its sign at every pixel.
#[test]
fn filters_have_negative_lobes() {
    let table = filter_table(Filter::Mitchell { b: 0.0, c: 0.5 });
    let near = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-6, "{a} is not {b}");
    near(table.drawn[30], 1.0 / 28.0);
    near(table.signed[30], -1.0 / 28.0);
    near(table.drawn[60], 0.5);
    near(table.drawn[120], 1.0);
    near(table.signed[120], 12.0 / 14.0);
    let table = filter_table(Filter::Lanczos { lobes: 3 });
    let sign = |cell: usize| table.signed[cell + 1] > table.signed[cell];
    for (cell, positive) in [
        (0, true),
        (19, true),
        (20, false),
        (39, false),
        (40, true),
        (79, true),
        (80, false),
    ] {
        assert_eq!(sign(cell), positive, "cell {cell}");
    }
}

/// A field in a cube twice as long along x, a third as thick along y, moved by (1, 0, 0) and turned about z; its finer
/// grid decides the step.
#[test]
fn a_field_is_recorded_number_by_number() {
    let field = |activation: &str| {
        format!(
            r#"{{"object": {{"type": "cube", "bsdf": {{"type": "null"}},
                "to_world": [{{"scale": [2, 0.5, 1]}}, {{"rotate": {{"axis": [0, 0, 1], "angle": 90}}}},
                             {{"translate": [1, 0, 0]}}],
                "interior": {{"type": "radiance_field", "sh_degree": 1, "step": 0.5, "stop": 0.125 {activation},
                    "sigma_t": {{"type": "gridvolume", "resolution": [10, 6, 5], "value": 1}},
                    "sh_coeffs": {{"type": "gridvolume", "resolution": [4, 8, 2], "value": 0}}}}}},
               "sky": {{"type": "constant", "radiance": [1, 2, 3]}},
               "camera": {{"type": "perspective"}}}}"#
        )
    };
    let (resident, params) = resident(&field(""));
    let record = &resident.scene;
    assert_eq!((record.sigma_size, record.sh_size), ([10, 6, 5, 1], [4, 8, 2, 12]));
    assert_eq!(record.occupancy_size, [3, 2, 2, 0], "cells of four texels");
    // Edges 4, 1 and 2 over 10, 8 and 5 texels: the smallest voxel is an eighth, the step half of it.
    assert!((record.step_length - 0.0625).abs() < 1e-6, "{}", record.step_length);
    let Transport::Field(flat) = &resident.transport else {
        panic!("it is a field");
    };
    // A diagonal of √21, 73.3 steps long.
    assert_eq!(flat.longest_ray(record), 75);
    assert_eq!((record.stop, record.has_field, record.sh_degree), (0.125, 1, 1));
    assert_eq!(record.background, layout::background::CONSTANT);
    // x of the cube points along y of the world, y along -x.
    assert_near(
        transform_point(&record.world_to_unit, [1.0, 0.0, 0.0]),
        [0.5; 3],
        "the middle",
    );
    assert_near(
        transform_point(&record.world_to_unit, [1.0, 2.0, 0.0]),
        [1.0, 0.5, 0.5],
        "the end of x",
    );
    assert_near(
        transform_point(&record.world_to_unit, [0.5, 0.0, -1.0]),
        [0.5, 1.0, 0.0],
        "the end of y",
    );
    assert_near(
        transform_vector(&record.world_to_field, [0.0, 1.0, 0.0]),
        [0.5, 0.0, 0.0],
        "directions",
    );
    let path = |slot: usize| params.parameters[slot].path.as_str();
    let slots = flat.slots.expect("there is a field");
    assert_eq!(path(slots.sigma_t), "object.interior.sigma_t");
    assert_eq!(path(slots.sh_coeffs), "object.interior.sh_coeffs");
    let placed = params.parameters[slots.sigma_t].to_world;
    assert_near(
        transform_point(
            &record.world_to_unit,
            placed.transform_point3a(Vec3A::splat(0.25)).to_array(),
        ),
        [0.25; 3],
        "where the grid lies",
    );
    assert_eq!(
        params.parameters[resident.emitter.expect("a sky")].values,
        [1.0, 2.0, 3.0]
    );
    use layout::{color, density};
    assert_eq!(
        (record.density_activation, record.color_activation),
        (density::RELU, color::CLIP)
    );
    for (names, codes) in [
        (["softplus", "sigmoid"], [density::SOFTPLUS, color::SIGMOID]),
        (["exp", "relu"], [density::EXP, color::RELU_HALF]),
    ] {
        let [d, c] = names;
        let (resident, _) = self::resident(&field(&format!(
            r#", "density_activation": "{d}", "color_activation": "{c}""#
        )));
        assert_eq!(
            [resident.scene.density_activation, resident.scene.color_activation],
            codes,
            "{names:?}"
        );
    }
}

/// Where a point of the world lies in a volume's unit cube.
fn unit(volume: &VolumeRecord, p: [f32; 3]) -> [f32; 3] {
    transform_point(&volume.world_to_unit, p)
}

#[test]
fn media_volumes_and_phases_are_recorded_number_by_number() {
    let (world, params) = world(
        r#""integrator": {"type": "volpath", "max_depth": 7, "rr_depth": 9, "hide_emitters": true, "gradient": "drt"},
        "box": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "heterogeneous", "scale": 2.5,
            "sigma_t": {"type": "gridvolume", "resolution": [3, 4, 5], "value": [1, 2, 3], "wrap_mode": "repeat",
                "to_world": [{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}]},
            "albedo": {"type": "gridvolume", "resolution": 2, "value": 0.5, "filter_type": "nearest",
                "wrap_mode": "mirror", "to_world": [{"scale": 4}, {"translate": [-2, -2, -2]}]},
            "emission": 0.25,
            "phase": {"type": "blendphase", "weight": 0.75, "a": {"type": "rayleigh"},
                "b": {"type": "blendphase", "weight": 0.5, "a": {"type": "hg", "g": 0.6}, "b": {"type": "isotropic"}}}}},
        "fog": {"type": "sphere", "center": [9, 0, 0], "bsdf": {"type": "null"},
            "interior": {"type": "homogeneous", "sigma_t": 0.5}},
        "camera": {"type": "perspective", "to_world": [{"translate": [0, 0, -5]}]}"#,
    );
    let record = &world.settings;
    assert_eq!((record.max_depth, record.rr_depth, record.hide_emitters), (7, 9, 1));
    assert_eq!((record.gradient, record.spectral), (layout::gradient::DRT, 1));
    assert_eq!(
        (record.surfaces, record.lights, record.environment, world.background),
        (2, 0, NONE, NONE)
    );
    let at = |path: &str| {
        let path = format!("box.interior.{path}");
        params.find(&path).unwrap_or_else(|| panic!("{path}")) as u32
    };
    let inside = world.surfaces[0].interior as usize;
    let medium = &world.media[inside];
    assert_eq!((medium.scale, medium.spectral, medium.has(ALIGNED)), (2.5, 1, false));
    assert_near(medium.low, [-1.0; 3], "low");
    assert_near(medium.high, [1.0; 3], "high");
    assert!((medium.kappa - 1.0 / 12f32.sqrt()).abs() < 1e-6, "{}", medium.kappa);
    let [sigma, albedo, emission] =
        [medium.sigma_t, medium.albedo, medium.emission].map(|v| &world.volumes[v as usize]);
    assert_eq!(
        (sigma.slot, albedo.slot, emission.slot),
        (at("sigma_t"), at("albedo"), at("emission"))
    );
    assert_eq!((sigma.size, albedo.size), ([3, 4, 5, 3], [2, 2, 2, 1]));
    use layout::{lookup, wrap};
    assert_eq!((sigma.filter, sigma.wrap), (lookup::TRILINEAR, wrap::REPEAT));
    assert_eq!((albedo.filter, albedo.wrap), (lookup::NEAREST, wrap::MIRROR));
    assert_eq!((emission.filter, emission.wrap), (lookup::CONSTANT, wrap::CLAMP));
    assert_near(unit(sigma, [0.5, -1.0, 0.0]), [0.75, 0.0, 0.5], "extinction");
    assert_near(unit(albedo, [2.0, -1.0, 0.0]), [1.0, 0.25, 0.5], "albedo");
    let blend = &world.phases[medium.phase as usize];
    let part = |blend: &layout::PhaseRecord, k: u32| world.phases[(blend.first + k) as usize];
    assert_eq!(
        (blend.kind, world.volumes[blend.weight as usize].slot),
        (layout::phase::BLEND, at("phase.weight"))
    );
    assert_eq!(part(blend, 0).kind, layout::phase::RAYLEIGH);
    let inner = part(blend, 1);
    assert_eq!(
        (inner.kind, part(&inner, 1).kind),
        (layout::phase::BLEND, layout::phase::ISOTROPIC)
    );
    assert_eq!(part(&inner, 0).kind, layout::phase::HG);
    assert_eq!(params.parameters[part(&inner, 0).slot as usize].values, [0.6]);
    let fog = &world.media[world.surfaces[1].interior as usize];
    assert_eq!((fog.emission, fog.spectral, fog.clear, fog.kappa), (NONE, 0, 0, 1.0));
    assert!(fog.low.iter().all(|x| *x == f32::NEG_INFINITY) && fog.high.iter().all(|x| *x == f32::INFINITY));
}

#[test]
fn lights_and_shapes_are_recorded_number_by_number() {
    let mesh = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/meshes/octahedron.obj");
    let (world, params) = world(&format!(
        r#""integrator": {{"type": "volpath"}},
        "point": {{"type": "point", "position": [1, 2, 3], "intensity": [4, 5, 6]}},
        "spot": {{"type": "spot", "cutoff_angle": 60, "beam_width": 30,
            "to_world": [{{"look_at": {{"origin": [3, 0, 0], "target": [0, 0, 0], "up": [0, 1, 0]}}}}]}},
        "sun": {{"type": "directional", "direction": [0, -2, 0]}},
        "ball": {{"type": "sphere", "center": [1, 0, 0], "radius": 0.5, "to_world": [{{"scale": 2}}],
            "emitter": {{"type": "area"}}}},
        "panel": {{"type": "rectangle", "to_world": [{{"scale": [2, 3, 1]}}], "emitter": {{"type": "area"}},
            "flip_normals": true}},
        "brick": {{"type": "cube", "to_world": [{{"scale": [1, 2, 3]}}, {{"translate": [9, 0, 0]}}],
            "emitter": {{"type": "area"}}}},
        "gem": {{"type": "obj", "filename": {mesh:?}, "to_world": [{{"scale": [2, 2, -2]}}, {{"translate": [0, 9, 0]}}],
            "emitter": {{"type": "area"}}, "bsdf": {{"type": "diffuse", "reflectance": [0.1, 0.2, 0.3]}}}},
        "floor": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {{"type": "checkerboard",
            "color0": [0.1, 0.2, 0.3], "color1": [0.4, 0.5, 0.6], "to_uv": [{{"scale": [3, 7]}}]}}}}}},
        "camera": {{"type": "perspective"}}"#
    ));
    use layout::{light, surface};
    let of = |name: &str, what: &str| {
        let slot = params
            .find(&format!("{name}.{what}"))
            .unwrap_or_else(|| panic!("{name}.{what}"));
        let found = world.lights.iter().find(|l| l.slot == slot as u32);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(world.settings.lights, 7);
    let point = of("point", "intensity");
    assert_eq!(
        (point.kind, point.surface, point.position[..3].to_vec()),
        (light::POINT, NONE, vec![1.0, 2.0, 3.0])
    );
    assert_eq!(params.parameters[point.slot as usize].values, [4.0, 5.0, 6.0]);
    let spot = of("spot", "intensity");
    assert_eq!((spot.kind, spot.surface), (light::SPOT, NONE));
    assert_near(
        [spot.position[0], spot.position[1], spot.position[2]],
        [3.0, 0.0, 0.0],
        "spot",
    );
    // The cosines of 60 and 30 degrees.
    assert_near(spot.direction, [-1.0, 0.0, 0.0, 0.5], "spot");
    assert_near([spot.cos_beam], [0.75f32.sqrt()], "spot");
    let sun = of("sun", "irradiance");
    assert_eq!(sun.kind, light::DIRECTIONAL);
    assert_near(
        [sun.direction[0], sun.direction[1], sun.direction[2]],
        [0.0, -1.0, 0.0],
        "sun",
    );
    let shape = |name: &str| {
        let light = of(name, "emitter.radiance");
        assert_eq!(light.kind, light::AREA, "{name}");
        let record = &world.surfaces[light.surface as usize];
        assert!(std::ptr::eq(&world.lights[record.light as usize], light), "{name}");
        (light, record)
    };
    let (ball, ball_shape) = shape("ball");
    assert_near(ball.position, [2.0, 0.0, 0.0, 12.566_371], "the ball's middle and area");
    assert_near(
        [ball.direction[3], ball_shape.side],
        [1.0, 1.0],
        "the ball's radius and side",
    );
    assert_eq!(ball_shape.kind, surface::SPHERE);
    assert_near(
        transform_point(&ball_shape.to_local, [3.0, 0.0, 0.0]),
        [1.0, 0.0, 0.0],
        "the ball's own space",
    );
    let (panel, panel_shape) = shape("panel");
    assert_near(
        [panel.position[3], panel_shape.side],
        [24.0, -1.0],
        "the panel's area and side",
    );
    assert_eq!((panel_shape.kind, panel.emissive_triangles), (surface::RECTANGLE, 0));
    // 2 (2 · 4 + 4 · 6 + 6 · 2); eight triangles of sides √8, half the sine of 60 degrees of their square.
    let (brick, _) = shape("brick");
    assert_near([brick.position[3]], [88.0], "the brick's area");
    let (gem, gem_shape) = shape("gem");
    assert!(
        (gem.position[3] - 8.0 * 4.0 * 0.75f32.sqrt()).abs() < 1e-4,
        "{}",
        gem.position[3]
    );
    assert_eq!(
        (brick.emissive_triangles, gem.emissive_triangles, gem_shape.kind),
        (12, 8, surface::MESH)
    );
    assert_eq!(world.emissive_triangles.len(), 20);
    let leaf = |record: &layout::SurfaceRecord| {
        let [first, count] = world.bsdfs.bsdfs[record.bsdf as usize].front;
        assert_eq!(count, 1);
        world.bsdfs.leaves[first as usize]
    };
    let texture = |record: &layout::SurfaceRecord| world.bsdfs.textures[leaf(record).first_texture as usize];
    let color = |slot: u32| params.parameters[slot as usize].values.clone();
    assert_eq!(color(texture(gem_shape).slot), [0.1, 0.2, 0.3]);
    let floor = world.surfaces.iter().find(|s| s.light == NONE).expect("the floor");
    assert_eq!(
        (leaf(floor).kind, floor.interior, floor.exterior),
        (layout::leaf::DIFFUSE, NONE, NONE)
    );
    let checkers = texture(floor);
    assert_eq!(checkers.kind, layout::texture::CHECKERBOARD);
    assert_eq!(
        (color(checkers.slot), color(checkers.other_slot)),
        (vec![0.1, 0.2, 0.3], vec![0.4, 0.5, 0.6])
    );
    assert_eq!(checkers.to_uv[0][0] * checkers.to_uv[1][1], 21.0);
    // Every corner of the gem lies two from its middle, its normal, smoothed over four equal faces, points away from
    // it, and faces are wound so even though the map mirrors.
    let middle = Vec3::new(0.0, 9.0, 0.0);
    assert_eq!(triangles(&world.bvh).len(), 8);
    for (number, triangle) in triangles(&world.bvh) {
        let corners = triangle.map(Vec3::from_array);
        let face = (corners[1] - corners[0]).cross(corners[2] - corners[0]);
        assert!(face.dot(corners[0] - middle) > 0.0, "{triangle:?}");
        let record = &world.corners[number];
        assert_eq!(world.surfaces[record.shape as usize].kind, gem_shape.kind);
        for (corner, normal) in corners.into_iter().zip(record.normals) {
            let away = (corner - middle) / 2.0;
            assert!((away.length() - 1.0).abs() < 1e-6);
            assert_near([normal[0], normal[1], normal[2]], away.to_array(), "normal");
        }
    }
}

/// The triangles of a hierarchy with their numbers.
fn triangles(bvh: &Bvh) -> Vec<(usize, Triangle)> {
    let mut all = Vec::new();
    for block in &bvh.blocks {
        for lane in (0..BLOCK).filter(|&lane| block.triangles[lane] != NONE) {
            let corner = |first: usize| [0, 1, 2].map(|axis| block.corners[first + axis][lane]);
            all.push((block.triangles[lane] as usize, [0, 3, 6].map(corner)));
        }
    }
    all
}

/// Vertex normals of a mesh without any: weighed by angles, so that a box's are its diagonals however faces are cut.
#[test]
fn smooth_normals_do_not_see_how_faces_are_cut() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("box.obj");
    let mut text = String::new();
    for i in 0..8 {
        let side = |a: u32| if i >> a & 1 == 0 { -1 } else { 1 };
        text += &format!("v {} {} {}\n", side(0), side(1), side(2));
    }
    for [a, b, c, d] in [
        [1, 3, 4, 2],
        [5, 6, 8, 7],
        [1, 2, 6, 5],
        [3, 7, 8, 4],
        [1, 5, 7, 3],
        [2, 4, 8, 6],
    ] {
        text += &format!("f {a} {b} {c}\nf {a} {c} {d}\n");
    }
    std::fs::write(&path, text).expect("writable");
    for (more, sign) in [("", 1.0), (r#", "face_normals": true"#, 0.0)] {
        let (world, _) = world(&format!(
            r#""box": {{"type": "obj", "filename": {:?} {more}}}, "camera": {{"type": "perspective"}},
               "sky": {{"type": "constant"}}"#,
            path.to_string_lossy()
        ));
        assert_eq!(world.corners.len(), 12);
        for (number, triangle) in triangles(&world.bvh) {
            let record = &world.corners[number];
            for (corner, n) in triangle.into_iter().zip(record.normals) {
                let expected = corner.map(|x| sign * x / 3f32.sqrt());
                assert_near([n[0], n[1], n[2]], expected, "normal");
            }
        }
    }
}

/// Rows of a map and a quaternion's turn of a vector agree.
#[test]
fn rows_are_those_of_the_map() {
    let turn = Quat::from_rotation_x(0.4) * Quat::from_rotation_z(1.1);
    let map = glam::Affine3A::from_scale_rotation_translation(Vec3::new(1.0, 2.0, 3.0), turn, Vec3::new(4.0, 5.0, 6.0));
    let rows: Rows = prbopt::resident::rows(&map);
    let p = Vec3::new(0.3, -0.7, 0.9);
    let expected = turn * (p * Vec3::new(1.0, 2.0, 3.0)) + Vec3::new(4.0, 5.0, 6.0);
    assert_near(transform_point(&rows, p.to_array()), expected.to_array(), "a point");
}

/// Images behind a scene and on a shape: where they lie, how they are looked up, and which colours they hold.
#[test]
fn images_are_recorded_number_by_number() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data: Vec<f32> = (0..4 * 3 * 3).map(|i| i as f32 / 64.0).collect();
    let picture = Image {
        width: 4,
        height: 3,
        channels: 3,
        data: data.clone(),
    };
    let (sky, paint) = (folder.path().join("sky.exr"), folder.path().join("paint.png"));
    image::write_exr(&sky, &picture).expect("writable");
    image::write_png(&paint, &picture).expect("writable");
    let (resident, params) = resident(&format!(
        r#"{{"sky": {{"type": "envmap", "filename": {sky:?}, "scale": 2.5,
                "to_world": [{{"rotate": {{"axis": [0, 1, 0], "angle": 90}}}}]}},
            "a": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {{"type": "bitmap",
                "filename": {sky:?}, "raw": true}}}}}},
            "b": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {{"type": "bitmap",
                "filename": {paint:?}, "filter_type": "nearest", "wrap_mode": "mirror",
                "to_uv": [{{"scale": [3, 7]}}]}}}}}},
            "camera": {{"type": "perspective"}}}}"#
    ));
    let record = &resident.scene;
    assert_eq!(
        (record.background, record.env_size),
        (layout::background::ENVMAP, [4, 3])
    );
    assert_eq!((record.env_scale, record.has_field), (2.5, 0));
    // The map's z points along x of the world.
    assert_near(
        transform_vector(&record.world_to_env, [1.0, 0.0, 0.0]),
        [0.0, 0.0, 1.0],
        "the map's frame",
    );
    let world = resident.transport.paths().clone();
    assert_eq!((world.settings.environment, world.settings.lights), (0, 1));
    let light = &world.lights[0];
    assert_eq!(
        (light.kind, light.slot, light.surface),
        (layout::light::ENVMAP, world.background, NONE)
    );
    assert_eq!(params.parameters[world.background as usize].values, data);
    let [a, b] = [0, 1].map(|i| &world.bsdfs.textures[i]);
    use layout::{lookup, texture, wrap};
    assert_eq!((a.kind, a.size), (texture::BITMAP, [4, 3]));
    assert_eq!((a.filter, a.wrap), (lookup::TRILINEAR, wrap::REPEAT));
    assert_eq!((b.kind, b.size), (texture::BITMAP, [4, 3]));
    assert_eq!((b.filter, b.wrap), (lookup::NEAREST, wrap::MIRROR));
    assert_eq!(
        (a.to_uv[0][0], b.to_uv[0][0].abs(), b.to_uv[1][1].abs()),
        (1.0, 3.0, 7.0)
    );
    let [a, b] = [a, b].map(|record| &params.parameters[record.slot as usize]);
    assert_eq!((a.kind, a.quantity), (Kind::Texture, Quantity::Reflectance));
    assert_ne!(a.path, b.path);
    assert_eq!((a.values.len(), b.values.len()), (36, 36));
    assert_eq!(a.values[..36], data[..36]);
    // 32/64, rounded to eight bits, decoded by the sRGB curve.
    let half = ((128.0 / 255.0 + 0.055) / 1.055f32).powf(2.4);
    assert!((b.values[3 * 10 + 2] - half).abs() < 1e-6, "{:?}", &b.values[30..33]);
}
