//! Where rays meet and leave surfaces, at any scale.

use std::path::Path;
use std::process::Command;

use glam::Vec3;
use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Batch, Device, Keys};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Pass, pass_key};
use prbopt::transport::scene::records::SceneView;
use prbopt::transport::scene::shape::{intersect, leave};
use prbopt::transport::scene::tables::Tables;
use prbopt::transport::scene::tangent::derivatives;

mod small;

use small::draw;
use small::worlds::mesh;

fn resident(text: &str) -> (Resident, prbopt::params::ParamSet) {
    let scene = scene::parse(text, std::path::Path::new("surfaces.json")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Resident::new(&scene).expect("it is sound")
}

/// A unit vector.
fn direction(seed: u32, index: u32) -> Vec3 {
    let z = 2.0 * draw(seed.into(), index, 0) - 1.0;
    let (sine, cosine) = (2.0 * std::f32::consts::PI * draw(seed.into(), index, 1)).sin_cos();
    Vec3::new(cosine, sine, 0.0) * (1.0 - z * z).sqrt() + Vec3::new(0.0, 0.0, z)
}

/// A ray that leaves a flat or convex shape outwards does not meet it again; one that enters a closed one meets its
/// other side. Shapes are of any size, stretched up to a hundredfold, turned, and away from the origin.
#[test]
fn rays_leave_surfaces_for_good() {
    let closed = [true, true, false, true];
    let shapes = [
        r#""type": "cube""#.to_string(),
        r#""type": "sphere""#.to_string(),
        r#""type": "rectangle""#.to_string(),
        mesh("octahedron"),
    ];
    let mut left = [0; 4];
    for trial in 0..240u32 {
        let kind = trial as usize % 4;
        let number = |i: u32| draw(7, trial, i);
        let size = 10f32.powf(8.0 * number(0) - 4.0);
        let stretch = [1, 2, 3].map(|i| size * 10f32.powf(2.0 * number(i) - 2.0));
        let axis = direction(8, trial);
        let place = direction(9, trial) * size * 20.0 * number(4) * number(5);
        // Every third lies along the axes.
        let angle = if trial % 3 == 0 { 90.0 } else { 360.0 * number(6) };
        let axis = if trial % 3 == 0 { Vec3::X } else { axis };
        let (resident, _) = resident(&format!(
            r#"{{"shape": {{{}, "to_world": [{{"scale": {stretch:?}}},
                {{"rotate": {{"axis": {:?}, "angle": {angle}}}}}, {{"translate": {:?}}}]}},
                "sky": {{"type": "constant"}}}}"#,
            shapes[kind],
            axis.to_array(),
            place.to_array()
        ));
        let tables = Tables::default();
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        for ray in 0..200u32 {
            let index = trial * 1000 + ray;
            let distance = size * 10f32.powf(3.0 * draw(10, index, 0));
            let origin = place + direction(11, index) * distance;
            let aim = place + direction(12, index) * size * 0.3 * draw(10, index, 1);
            let towards = (aim - origin).normalize();
            let Some(hit) = intersect(&world, origin.to_array(), towards.to_array(), f32::INFINITY) else {
                continue;
            };
            left[kind] += 1;
            let mut away = direction(13, index);
            // Half of them leave nearly along the surface.
            if ray % 2 == 0 {
                let normal = Vec3::from(hit.normal);
                away = (away - normal * away.dot(normal) * (1.0 - 10f32.powf(-4.0 * draw(10, index, 2)))).normalize();
            }
            let outwards = away.dot(hit.normal.into()) > 0.0;
            let again = intersect(&world, leave(&hit, away.to_array()), away.to_array(), f32::INFINITY);
            if outwards || !closed[kind] {
                assert!(
                    again.is_none(),
                    "{}: trial {trial}, ray {ray}: {again:?} after {hit:?}",
                    shapes[kind]
                );
            } else if ray % 2 == 1 {
                assert!(
                    again.is_some(),
                    "{}: trial {trial}, ray {ray}: nothing after {hit:?}",
                    shapes[kind]
                );
            }
        }
    }
    assert!(left.iter().all(|n| *n > 500), "{left:?}");
}

/// The same of a sphere that is turned and lies a hundred of its sizes away along y, where its normal is perpendicular to y: the
/// rounding of y in the way back to local space moves points along the normal, too.
#[test]
fn rays_leave_a_turned_sphere_that_is_far_away() {
    let (resident, _) = resident(
        r#"{"ball": {"type": "sphere", "to_world": [{"scale": 0.77}, {"rotate": {"axis": [0.2, -0.95, -0.2], "angle": 149}},
            {"translate": [0, 83.9, 0]}]}, "sky": {"type": "constant"}}"#,
    );
    let tables = Tables::default();
    let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
    for ray in 0..2000u32 {
        let (z, x) = (2.0 * std::f32::consts::PI * draw(14, ray, 0)).sin_cos();
        let towards = Vec3::new(x, 0.0, z);
        let origin = Vec3::new(0.0, 83.9, 0.0) - 3.0 * towards;
        let hit = intersect(&world, origin.to_array(), towards.to_array(), f32::INFINITY).expect("it is aimed at");
        let again = intersect(&world, leave(&hit, hit.normal), hit.normal, f32::INFINITY);
        assert!(again.is_none(), "ray {ray}: {again:?} after {hit:?}");
    }
}

/// Between two neighbouring points of a shape, p(u + du, v + dv) − p(u, v) is ∂p/∂u du + ∂p/∂v dv with the mean of the
/// derivatives at both: to a hundredth of the distance, where that is a hundredth of the shape and poles are away.
#[test]
fn points_move_with_their_texture_coordinates() {
    let shapes = [
        r#""type": "cube""#.to_string(),
        r#""type": "sphere""#.to_string(),
        r#""type": "rectangle""#.to_string(),
        r#""type": "disk""#.to_string(),
        r#""type": "cylinder", "p0": [0, 0, -0.6], "p1": [0, 0.2, 0.5], "radius": 0.7"#.to_string(),
        mesh("panel"),
    ];
    for (kind, shape) in shapes.into_iter().enumerate() {
        let (resident, _) = resident(&format!(
            r#"{{"shape": {{{shape}, "to_world": [{{"scale": [0.8, 1.3, 0.6]}},
                {{"rotate": {{"axis": [1, 2, 3], "angle": 50}}}}, {{"translate": [0.3, -0.2, 0.1]}}]}},
                "sky": {{"type": "constant"}}}}"#
        ));
        let tables = Tables::default();
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        let mut compared = 0;
        for ray in 0..400u32 {
            let index = 1000 * kind as u32 + ray;
            let center = Vec3::new(0.3, -0.2, 0.1);
            let origin = center + 4.0 * direction(31, index);
            let aim = center + 0.9 * direction(32, index) * draw(33, index, 0);
            let towards = (aim - origin).normalize();
            let aside = (towards + 2e-3 * direction(34, index)).normalize();
            let meet = |d: Vec3| intersect(&world, origin.to_array(), d.to_array(), f32::INFINITY);
            let (Some(here), Some(there)) = (meet(towards), meet(aside)) else {
                continue;
            };
            let moved = Vec3::from(there.point.p) - Vec3::from(here.point.p);
            let [du, dv] = [0, 1].map(|i| there.point.uv[i] - here.point.uv[i]);
            // Across an edge, a seam or a pole there is no derivative, and grazing rays go far.
            if here.primitive != there.primitive || du.abs() > 0.5 || moved.length() > 0.02 {
                continue;
            }
            // With the mean of both ends the error is of third order in the distance.
            let ends = [&here, &there].map(|end| derivatives(&world, end).map(Vec3::from));
            let [along_u, along_v] = [0, 1].map(|i| 0.5 * (ends[0][i] + ends[1][i]));
            if along_u.length().min(along_v.length()) < 0.5 {
                continue;
            }
            compared += 1;
            let predicted = along_u * du + along_v * dv;
            assert!(
                (predicted - moved).length() < 0.01 * moved.length() + 3e-6,
                "shape {kind}, ray {ray}: {predicted} but {moved}"
            );
        }
        assert!(compared > 60, "shape {kind}: {compared}");
    }
}

/// A picture of the same world, `scale` times as large.
fn scaled(scale: f64) -> Vec<[f32; 4]> {
    let place = |operations: &str| {
        let comma = if operations.is_empty() { "" } else { "," };
        format!(r#""to_world": [{operations}{comma} {{"scale": {scale}}}]"#)
    };
    let at = |p: [f64; 3]| p.map(|x| x * scale);
    let (resident, params) = resident(&format!(
        r#"{{"integrator": {{"type": "volpath", "max_depth": 12}},
            "camera": {{"type": "perspective", "fov": 40, "near_clip": {}, "far_clip": {},
                "to_world": [{{"look_at": {{"origin": {:?}, "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 32, "height": 32, "rfilter": {{"type": "box"}}}}}},
            "fog": {{"type": "cube", {}, "bsdf": {{"type": "null"}},
                "interior": {{"type": "homogeneous", "sigma_t": {}, "albedo": 0.9, "phase": {{"type": "hg", "g": 0.4}}}}}},
            "ball": {{"type": "sphere", {}, "bsdf": {{"type": "diffuse", "reflectance": [0.8, 0.3, 0.2]}}}},
            "gem": {{{}, {}, "bsdf": {{"type": "diffuse"}}}},
            "floor": {{"type": "rectangle", {}, "bsdf": {{"type": "diffuse", "reflectance": 0.7}}}},
            "panel": {{"type": "rectangle", {}, "emitter": {{"type": "area", "radiance": [3, 4, 5]}}}},
            "lamp": {{"type": "point", "position": {:?}, "intensity": {}}},
            "sky": {{"type": "constant", "radiance": 0.2}}}}"#,
        0.01 * scale,
        100.0 * scale,
        at([0.5, 1.5, 4.5]),
        place(""),
        0.7 / scale,
        place(r#"{"scale": 0.4}, {"translate": [0.3, -0.3, 0.2]}"#),
        mesh("octahedron"),
        place(r#"{"scale": 0.4}, {"translate": [-0.5, 0.2, 0.1]}"#),
        place(r#"{"scale": 4}, {"rotate": {"axis": [1, 0, 0], "angle": -90}}, {"translate": [0, -1.01, 0]}"#),
        place(r#"{"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0, 2.5, 0]}"#),
        at([-2.0, 2.0, 2.0]),
        5.0 * scale * scale,
    ));
    let mut device = Cpu::new();
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    let look = RenderSettings {
        seed: 3,
        iteration: 0,
        spp: 16,
    };
    render_view(&mut device, 0, look).expect("it renders")
}

/// The picture of a world does not depend on the unit of length: rounding sends a few paths another way, which a mean
/// over pixels hardly shows.
#[test]
fn a_world_of_any_size_looks_the_same() {
    let expected = scaled(1.0);
    for scale in [1e-4, 1e-2, 1e4] {
        let found = scaled(scale);
        let apart = |i: usize| (0..3).any(|c| (found[i][c] - expected[i][c]).abs() > 1e-3 * expected[i][c]);
        let count = (0..expected.len()).filter(|i| apart(*i)).count();
        assert!(count < expected.len() / 20, "scale {scale}: {count} pixels differ");
        let mean =
            |pixels: &[[f32; 4]]| pixels.iter().map(|p| p[0] + p[1] + p[2]).sum::<f32>() / (3 * pixels.len()) as f32;
        let ratio = mean(&found) / mean(&expected);
        assert!((ratio - 1.0).abs() < 2e-3, "scale {scale}: {ratio} times as bright");
    }
}

/// The mean over a small picture of a wall that fills it, whose BSDF is `bsdf`, between a point light and a constant sky.
/// The camera looks along `toward`, ±1 along z, at the wall's front from +z.
fn wall(bsdf: &str, toward: f32, more: &str, spp: u32) -> [f64; 3] {
    let [r, g, b, _] = film(r#"{"type": "volpath", "max_depth": 2}"#, bsdf, toward, more, spp);
    [r, g, b]
}

/// The same with alpha, by any integrator.
fn film(integrator: &str, bsdf: &str, toward: f32, more: &str, spp: u32) -> [f64; 4] {
    let (resident, params) = resident(&format!(
        r#"{{"integrator": {integrator},
            "camera": {{"type": "perspective", "fov": 20,
                "to_world": [{{"look_at": {{"origin": [0, 0, {}], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 16, "height": 16, "rfilter": {{"type": "box"}}}}}},
            "wall": {{"type": "rectangle", "to_world": [{{"scale": 3}}], "bsdf": {bsdf}}} {more}}}"#,
        -3.0 * toward
    ));
    let mut device = Cpu::new();
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    device.load(resident, params, sgd).expect("it fits");
    let look = RenderSettings {
        seed: 5,
        iteration: 0,
        spp,
    };
    let pixels = render_view(&mut device, 0, look).expect("it renders");
    let mean = [0, 1, 2, 3].map(|c| pixels.iter().map(|p| f64::from(p[c])).sum::<f64>() / pixels.len() as f64);
    [mean[0], mean[1], mean[2], 1.0 - mean[3]]
}

/// Blends and two-sided BSDFs are sums of their parts, to 1e-3. A single point light is sampled at every vertex, so that pictures
/// of depth two have no noise.
#[test]
fn blends_and_two_sides_add_up() {
    // From the front of the wall, or from its back, with the light on the same side.
    let seen = |bsdf: &str, toward: f32| {
        let lamp = format!(
            r#", "lamp": {{"type": "point", "position": [0, 0, {}]}}"#,
            -2.0 * toward
        );
        wall(bsdf, toward, &lamp, 1)
    };
    let (front, back) = (-1.0, 1.0);
    let diffuse = |color: &str| format!(r#"{{"type": "diffuse", "reflectance": {color}}}"#);
    let (red, blue) = (diffuse("[0.8, 0.2, 0]"), diffuse("[0, 0.4, 0.6]"));
    let [of_red, of_blue] = [&red, &blue].map(|bsdf| seen(bsdf, front));
    // The order is that of the file, not of the names.
    let blend = |weight: f64| format!(r#"{{"type": "blendbsdf", "weight": {weight}, "b": {red}, "a": {blue}}}"#);
    let near = |found: [f64; 3], expected: [f64; 3], what: &str| {
        for c in 0..3 {
            let off = (found[c] - expected[c]).abs();
            assert!(off < 1e-3 * of_red[0], "{what}: {found:?}, not {expected:?}");
        }
    };
    assert!(of_red[0] > 0.01);
    for weight in [0.0, 0.3, 1.0] {
        let expected = [0, 1, 2].map(|c| (1.0 - weight) * of_red[c] + weight * of_blue[c]);
        near(seen(&blend(weight), front), expected, &format!("weight {weight}"));
        near(seen(&blend(weight), back), [0.0; 3], "the back of one-sided BSDFs");
    }
    let both = format!(r#"{{"type": "twosided", "front": {red}, "back": {blue}}}"#);
    near(seen(&both, front), of_red, "the front of two");
    near(seen(&both, back), of_blue, "the back of two");
    let one = format!(r#"{{"type": "twosided", "a": {red}}}"#);
    near(seen(&one, back), of_red, "the back of one");
}

/// A mask lets the share 1 - opacity through: of a shadow ray's light exactly, and of what lies behind in the mean, over 65536
/// paths with a standard deviation of 0.5 each.
#[test]
fn masks_let_their_share_through() {
    let mask = |opacity: f64| {
        format!(r#"{{"type": "mask", "opacity": {opacity}, "nested": {{"type": "diffuse", "reflectance": 0}}}}"#)
    };
    let sky = r#", "sky": {"type": "constant", "radiance": [1, 2, 0]}"#;
    for opacity in [0.0, 0.35, 1.0] {
        let found = wall(&mask(opacity), -1.0, sky, 256);
        for (c, radiance) in [1.0, 2.0, 0.0].into_iter().enumerate() {
            let expected = (1.0 - opacity) * radiance;
            let allowed = 5.0 * 0.5 * radiance / 256.0 * f64::from(u8::from(opacity == 0.35)) + 1e-6;
            assert!((found[c] - expected).abs() < allowed, "opacity {opacity}: {found:?}");
        }
    }
    // Alpha is what the mask leaves, also from behind, where what is masked has no side; by `prb` and `direct` it is opaque.
    for (integrator, expected) in [("volpath", 0.35), ("path", 0.35), ("prb", 1.0), ("direct", 1.0)] {
        for toward in [-1.0, 1.0] {
            let integrator = format!(r#"{{"type": "{integrator}"}}"#);
            let [.., alpha] = film(&integrator, &mask(0.35), toward, "", 256);
            let allowed = 5.0 * 0.5 / 256.0 * f64::from(u8::from(expected < 1.0));
            assert!((alpha - expected).abs() <= allowed, "alpha {alpha} by {integrator}");
        }
    }
    let white = r#"{"type": "diffuse", "reflectance": 1}"#;
    let lamp = r#", "lamp": {"type": "point", "position": [0, 0, 6]}"#;
    let veil = |opacity: f64| {
        format!(
            r#"{lamp}, "veil": {{"type": "rectangle", "to_world": [{{"scale": 0.8}}, {{"translate": [0, 0, 5]}}],
                "bsdf": {}}}"#,
            mask(opacity)
        )
    };
    let open = wall(white, -1.0, lamp, 1)[0];
    for opacity in [0.0, 0.35, 1.0] {
        let found = wall(white, -1.0, &veil(opacity), 1)[0];
        assert!(
            (found - (1.0 - opacity) * open).abs() < 1e-6 * open,
            "opacity {opacity}: {found} of {open}"
        );
    }
}

/// The gradient of a parameter, for a target of constant light.
fn gradient(text: &str, parameter: &str) -> Vec<f32> {
    let (mut resident, params) = resident(text);
    resident.set_constant_reference([0.5; 3]);
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    let batch = Batch { table, drawn: None };
    let keys = |pass| Keys {
        objective: pass_key(1, 0, Pass::Objective),
        pass: pass_key(1, 0, pass),
    };
    let mut device = Cpu::new();
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    device.load(resident, params, sgd).expect("it fits");
    device.render(&batch, keys(Pass::Primal), 2).expect("it renders");
    device.loss(&batch, keys(Pass::Primal), Loss::L2).expect("a loss");
    device.backpropagate(&batch, keys(Pass::Adjoint), 16).expect("it ends");
    let slot = device.params().find(parameter).expect("it is there");
    device.read(slot, ArrayKind::Gradient).expect("a gradient")
}

/// Paths that may have no edge have no derivatives, and an adjoint of them ends.
#[test]
fn paths_without_edges_have_no_derivatives() {
    let text = |depth: u32| {
        format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": {depth}}}, "wall": {{"type": "rectangle"}},
                "lamp": {{"type": "point", "position": [0, 0, 2]}},
                "camera": {{"type": "perspective", "to_world": [{{"look_at": {{"origin": [0, 0, 3], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 8, "height": 8}}}},
                "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{"wall.bsdf.reflectance": {{}}}}}}}}"#
        )
    };
    assert_eq!(gradient(&text(0), "wall.bsdf.reflectance"), [0.0; 3]);
    assert!(gradient(&text(2), "wall.bsdf.reflectance")[0] != 0.0);
}

/// A mat that lies in the plane of a floor: rays that leave the one may meet the other where they begin, edge on.
#[test]
fn a_mat_in_the_plane_of_a_floor_has_finite_derivatives() {
    let text = r#"{"integrator": {"type": "prb", "max_depth": 4}, "floor": {"type": "rectangle", "to_world": [{"scale": 3}]},
        "mat": {"type": "grid", "resolution": [4, 4]}, "sky": {"type": "constant"},
        "camera": {"type": "perspective", "to_world": [{"look_at": {"origin": [0, -2, 3], "target": [0, 0, 0], "up": [0, 0, 1]}}],
            "film": {"type": "hdrfilm", "width": 16, "height": 16}},
        "optimize": {"references": {"type": "constant", "value": 0.5}, "parameters": {"mat.to_world.translate": {}}}}"#;
    let found = gradient(text, "mat.to_world.translate");
    assert!(found.iter().all(|d| d.is_finite()), "{found:?}");
}

/// The memory that a wave keeps for its replay is bounded: in a closed box whose walls reflect nearly all, adjoints of paths of
/// 256 edges take as much memory as those of four, to 5 %.
#[test]
fn memory_does_not_grow_with_the_edges_of_paths() {
    let scene = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/cornell.json");
    let peak = |depth: u32| {
        let depth = format!("integrator.max_depth={depth}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_prbopt"));
        command
            .arg("bench")
            .arg(&scene)
            .args(["--device", "cpu", "--json", "--iterations", "1"]);
        command.args(["--spp", "2", "--spp-grad", "2", "--parameter", "red.bsdf.reflectance"]);
        for change in [
            depth.as_str(),
            "integrator.rr_depth=100000",
            "white.reflectance=1",
            "green.bsdf.reflectance=0.99",
            "red.bsdf.reflectance=0.99",
            // The fourth wall, in front of which the camera stands.
            r#"near={"type": "rectangle", "bsdf": {"type": "ref", "id": "white"},
                "to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 180}}, {"translate": [0, 0, 1]}]}"#,
            r#"camera.to_world=[{"look_at": {"origin": [0, 0, 0.95], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#,
            "camera.fov=90",
            "camera.film.width=64",
            "camera.film.height=64",
        ] {
            command.args(["--set", change]);
        }
        let done = command.output().expect("the program starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let figures: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        figures["peak_rss_mib"].as_f64().expect("a number")
    };
    let [short, long] = [4, 256].map(peak);
    // A MiB for the figures' rounding.
    assert!(long <= 1.05 * short + 1.0, "{short} and {long} MiB");
}
