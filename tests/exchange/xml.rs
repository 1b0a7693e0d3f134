//! Mitsuba's XML: what is exported is imported as the same scene, with the values of parameters, and to the byte the same
//! the next time.

use prbopt::cli::import::mitsuba::convert;
use prbopt::exchange::{bake, mitsuba};

use super::*;

/// Writes a scene as XML with these values of its parameters.
fn export(scene: &mut Scene, params: &ParamSet, output: &Path) -> mitsuba::Export {
    let given = values(scene);
    bake(scene, &given, params, output.parent().expect("a folder")).expect("writable");
    let export = mitsuba::export(scene, output).unwrap_or_else(|refusal| panic!("{refusal}"));
    mitsuba::write(&export, output).expect("writable");
    export
}

/// The scene of an exported file, imported again.
fn back(output: &Path) -> Scene {
    let json = output.with_extension("json");
    let (_, scene) = convert(output, &json, &[]).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    scene
}

#[test]
fn measured_scenes_come_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in measured() {
        let mut scene = load(&path);
        let name = path.file_stem().expect("a name").to_string_lossy();
        let output = folder.path().join(format!("{name}.xml"));
        let params = values(&scene);
        export(&mut scene, &params, &output);
        let mut again = back(&output);
        if !matches!(&name[..], "orthographic") {
            assert_alike(&scene.resolved, &again.resolved, &name);
        }
        let second = export(&mut again, &params, &output);
        let third = export(&mut back(&output), &params, &output);
        assert_eq!(second.text, third.text, "{name}");
    }
}

/// The film of an orthographic sensor is as wide as its transform says.
#[test]
fn orthographic_films_keep_their_size() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut scene = load(Path::new("tests/data/peer/scenes/orthographic.json"));
    let output = folder.path().join("a.xml");
    let params = values(&scene);
    export(&mut scene, &params, &output);
    let again = back(&output);
    let size = |scene: &Scene| {
        let sensor = &scene.sensors[0];
        let width = sensor.to_world.matrix3.x_axis.length() / sensor.focal[0];
        (width, sensor.center, [sensor.width, sensor.height])
    };
    let ((a, ..), (b, ..)) = (size(&scene), size(&again));
    assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    assert_eq!((size(&scene).1, size(&scene).2), (size(&again).1, size(&again).2));
}

#[test]
fn values_of_parameters_of_all_kinds_come_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut scene = kinds();
    let params = changed(&values(&scene));
    let output = folder.path().join("kinds.xml");
    export(&mut scene, &params, &output);
    let found = values(&back(&output));
    let mut kinds = Vec::new();
    for expected in &params.parameters {
        let index = found.find(&expected.path);
        let index = index.unwrap_or_else(|| panic!("{} is gone", expected.path));
        let parameter = &found.parameters[index];
        assert_eq!(parameter.shape, expected.shape, "{}", expected.path);
        assert_eq!(parameter.kind, expected.kind, "{}", expected.path);
        for (a, b) in parameter.values.iter().zip(&expected.values) {
            assert!((a - b).abs() <= 1e-6 * b.abs(), "{}: {a} {b}", expected.path);
        }
        if !kinds.contains(&expected.kind) {
            kinds.push(expected.kind);
        }
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    // A fault would be seen: another value of one entry.
    let file = folder.path().join("cloud.interior.sigma_t.vol");
    let mut bytes = std::fs::read(&file).expect("written");
    let last = bytes.len() - 2;
    bytes[last] ^= 0x40;
    std::fs::write(&file, bytes).expect("writable");
    let found = values(&back(&output));
    let at = found.find("cloud.interior.sigma_t").expect("it is there");
    let same = params.find("cloud.interior.sigma_t").expect("it is there");
    assert_ne!(found.parameters[at].values, params.parameters[same].values);
}

#[test]
fn what_moves_is_exported_where_it_has_moved_to() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy("tests/data/peer/scenes/sheet.ply", folder.path().join("sheet.ply")).expect("writable");
    let text = r#"{
        "integrator": {"type": "prb"},
        "ball": {"type": "sphere", "to_world": [{"scale": 0.5}, {"translate": [1, 0, 0]}]},
        "sheet": {
            "type": "ply", "filename": "sheet.ply", "face_normals": true, "to_world": [{"scale": [-1, 1, 1]}]
        },
        "bulb": {"type": "point", "position": [0, 2, 0]},
        "camera": {"type": "perspective", "fov": 40, "film": {"type": "hdrfilm", "width": 4, "height": 4}},
        "optimize": {"references": {"type": "constant", "value": 0.5}, "parameters": {
            "ball.to_world.translate": {"learning_rate": 0.1},
            "ball.to_world.rotate": {"learning_rate": 0.1},
            "ball.to_world.scale": {"learning_rate": 0.1},
            "bulb.to_world.translate": {"learning_rate": 0.1},
            "sheet.vertex_positions": {"learning_rate": 0.1}
        }}
    }"#;
    let mut scene = scene::parse(text, &folder.path().join("a.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut params = values(&scene);
    let mut set = |path: &str, values: &[f32]| {
        let index = params.find(path).expect("a parameter");
        params.parameters[index].values[..values.len()].copy_from_slice(values);
    };
    set("ball.to_world.translate", &[0.0, 3.0, 0.0]);
    set("ball.to_world.rotate", &[0.0, 0.0, 90.0]);
    set("ball.to_world.scale", &[2.0]);
    set("bulb.to_world.translate", &[1.0, 0.0, -1.0]);
    set("sheet.vertex_positions", &[7.0, 8.0, 9.0]);
    let before = scene.world.surfaces[1].geometry.mesh().expect("a mesh");
    let output = folder.path().join("a.xml");
    export(&mut scene, &params, &output);
    // `prb` becomes `path`, since Mitsuba's variants without derivatives have no `prb`; its default of six edges is written out.
    let text = std::fs::read_to_string(&output).expect("written");
    assert!(text.contains(r#"<integrator type="path""#), "{text}");
    let again = back(&output);
    assert_eq!(again.integrator.max_depth, Some(6));
    let [ball, sheet] = &again.world.surfaces[..] else {
        panic!("two shapes")
    };
    let m = ball.to_world;
    assert!(
        (m.translation - glam::Vec3A::new(1.0, 3.0, 0.0)).length() < 1e-6,
        "{m:?}"
    );
    assert!((m.matrix3.x_axis - glam::Vec3A::Y).length() < 1e-6, "{m:?}");
    let prbopt::scene::LightKind::Point { position } = again.world.lights[0].kind else {
        panic!("a point light")
    };
    assert_eq!(position, [1.0, 2.0, -1.0]);
    let mesh = sheet.geometry.mesh().expect("a mesh");
    assert_eq!(mesh.positions[0], [7.0, 8.0, 9.0]);
    // `to_world` mirrors: the other vertices are mirrored, and the order of each triangle's vertices is reversed, so that faces
    // keep their sides.
    assert_eq!(mesh.positions[1], {
        let [x, y, z] = before.positions[1];
        [-x, y, z]
    });
    assert_eq!(sheet.to_world, glam::Affine3A::IDENTITY);
    let [a, b, c] = before.triangles[0];
    assert_eq!(mesh.triangles[0], [a, c, b]);
    assert_eq!(mesh.attributes, before.attributes);
}

#[test]
fn what_mitsuba_cannot_say_is_told_at_once() {
    let refusal = |scene: &Scene| mitsuba::check(scene).expect_err("it cannot be said").to_string();
    let kinds = load(Path::new("scenes/kinds.json"));
    assert!(refusal(&kinds).contains("`cloud.interior.emission`: Mitsuba 3.9's media do not emit"));
    assert!(refusal(&load(Path::new("scenes/two_blobs.json"))).contains("no radiance fields"));
    assert!(refusal(&load(Path::new("scenes/splats.json"))).contains("no splats"));
    let text = r#"{
        "ball": {"type": "sphere"},
        "a": {"type": "perspective", "focal_x": 30, "focal_y": 31, "film": {"type": "hdrfilm", "width": 4, "height": 4}},
        "b": {"type": "perspective", "fov": 30, "distortion": {"model": "opencv", "k1": 0.1}},
        "c": {"type": "thinlens", "aperture_radius": 0.1, "focal_x": 30, "center_x": 2.3, "film": {"type": "hdrfilm", "width": 4, "height": 4}},
        "d": {"type": "perspective", "film": {"type": "hdrfilm", "color_space": "srgb"}}
    }"#;
    let scene = scene::parse(text, Path::new("a.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let told = refusal(&scene);
    for part in [
        "`a`: its pixels are not square",
        "`b`: Mitsuba's lenses",
        "`c`: its principal point",
        "`d`: its rays",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

/// Mitsuba flips normals of mirrored spheres, and of mirrored meshes without normals of their own, in groups as well: the export
/// makes up for that by `flip_normals`, and so does the import.
#[test]
fn mirrors_turn_nothing_inside_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy("tests/data/peer/scenes/sheet.ply", folder.path().join("sheet.ply")).expect("writable");
    let mesh = |more: &str| {
        format!(r#"{{"type": "ply", "filename": "sheet.ply", "to_world": [{{"scale": [1, -1, 1]}}]{more}}}"#)
    };
    let text = format!(
        r#"{{
        "ball": {{"type": "sphere", "to_world": [{{"scale": [-1, 1, 1]}}]}},
        "hollow": {{"type": "sphere", "flip_normals": true, "to_world": [{{"scale": -2}}]}},
        "plain": {{"type": "sphere"}},
        "chest": {{"type": "cube", "to_world": [{{"scale": [-1, 1, 2]}}]}},
        "flat": {},
        "smooth": {},
        "group": {{"type": "shapegroup", "inner": {{"type": "sphere", "to_world": [{{"scale": [1, 1, -1]}}]}}}},
        "shown": {{"type": "instance", "shapegroup": {{"type": "ref", "id": "group"}}, "to_world": [{{"translate": [3, 0, 0]}}]}},
        "lamp": {{"type": "point"}},
        "camera": {{"type": "perspective", "to_world": [{{"translate": [0, 0, -50]}}], "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}}
    }}"#,
        mesh(r#", "face_normals": true"#),
        mesh("")
    );
    let mut scene = scene::parse(&text, &folder.path().join("a.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let output = folder.path().join("a.xml");
    let params = values(&scene);
    let xml = export(&mut scene, &params, &output).text;
    let flipped = |id: &str| {
        let (_, shape) = xml
            .split_once(&format!("=\"{id}\""))
            .unwrap_or_else(|| panic!("{id}: {xml}"));
        let (_, value) = shape.split_once("name=\"flip_normals\" value=\"").expect("it is said");
        value.starts_with("true")
    };
    let told: Vec<bool> = ["ball", "hollow", "plain", "chest", "flat", "inner"]
        .map(flipped)
        .to_vec();
    assert_eq!(told, [true, false, false, false, true, true]);
    let has_normals = !scene.world.surfaces[5]
        .geometry
        .mesh()
        .expect("a mesh")
        .normals
        .is_empty();
    assert_eq!(flipped("smooth"), !has_normals);
    assert_alike(&scene.resolved, &back(&output).resolved, "mirrors");
    let fog = r#", "interior": {"type": "homogeneous", "sigma_t": 1}, "bsdf": {"type": "null"}}"#;
    let text = text.replace(
        r#"[{"scale": [-1, 1, 2]}]}"#,
        &format!(r#"[{{"scale": [-1, 1, 2]}}]{fog}"#),
    );
    let scene = scene::parse(&text, &folder.path().join("a.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let told = mitsuba::check(&scene).expect_err("a cube is turned").to_string();
    assert!(
        told.contains("`chest`: its `to_world` mirrors") && told.lines().count() == 1,
        "{told}"
    );
}

/// A window of a thin lens's film, whose principal point is that of the whole film.
#[test]
fn crop_windows_come_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = Path::new("tests/data/peer/xml/smoke.xml");
    let (_, mut scene) = convert(path, &folder.path().join("a.json"), &[]).expect("it can be taken");
    let before = scene.sensors[0].clone();
    assert_ne!(before.center, [16.0, 16.0]);
    let params = values(&scene);
    let output = folder.path().join("a.xml");
    export(&mut scene, &params, &output);
    let after = back(&output).sensors[0].clone();
    assert_eq!((after.center, after.width, after.height), (before.center, 32, 32));
    assert!((after.focal[0] / before.focal[0] - 1.0).abs() < 1e-6);
}
