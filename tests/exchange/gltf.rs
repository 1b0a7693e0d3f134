//! glTF: what is exported is imported with the same shapes, textures, cameras and lights; damaged files are refused.

use prbopt::cli::import::gltf::convert;
use prbopt::exchange::{bake, gltf};
use prbopt::scene::LightKind;

use super::*;

/// A mirrored box, a ball with a picture, a spot, a sun, and a camera whose film is not square.
const ROOM: &str = r#"{
    "camera": {
        "type": "perspective", "fov": 50, "near_clip": 0.5, "far_clip": 60,
        "to_world": [{"look_at": {"origin": [1, 2, 5], "target": [0, 0.2, 0], "up": [0, 1, 0]}}],
        "film": {"type": "hdrfilm", "width": 1024, "height": 512}
    },
    "box": {
        "type": "cube", "to_world": [{"scale": [-0.5, 0.6, 0.7]}, {"rotate": {"axis": [1, 2, 3], "angle": 40}}],
        "bsdf": {"type": "principled", "base_color": [0.2, 0.4, 0.6], "roughness": 0.3, "metallic": 0.7, "specular": 0.4}
    },
    "ball": {
        "type": "sphere", "center": [1, 1, 0], "radius": 0.5, "bsdf": {"type": "twosided", "inner": {
            "type": "diffuse", "reflectance": {
                "type": "bitmap", "filename": "chart.png", "filter_type": "nearest", "wrap_mode": "mirror",
                "to_uv": [{"scale": [3, 2]}, {"translate": [0.1, 0.2]}]
            }
        }}
    },
    "panel": {
        "type": "rectangle", "to_world": [{"translate": [0, 3, 0]}], "bsdf": {"type": "mask", "opacity": 0.25, "inner": {"type": "diffuse"}},
        "emitter": {"type": "area", "radiance": [4, 2, 1]}
    },
    "spot": {
        "type": "spot", "intensity": [3, 2, 1], "cutoff_angle": 30, "beam_width": 10,
        "to_world": [{"look_at": {"origin": [3, 3, 3], "target": [0, 0, 0], "up": [0, 1, 0]}}]
    },
    "sun": {"type": "directional", "direction": [1, -2, 0.5], "irradiance": 0.5},
    "bulb": {"type": "point", "position": [1, 2, 3], "intensity": [0.25, 0.5, 0]}
}"#;

fn glb(folder: &Path) -> (Scene, PathBuf) {
    std::fs::copy("tests/data/peer/scenes/chart.png", folder.join("chart.png")).expect("writable");
    let mut scene = scene::parse(ROOM, &folder.join("room.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let params = values(&scene);
    bake(&mut scene, &params, &params, folder).expect("writable");
    let path = folder.join("room.glb");
    let export = gltf::export(&scene, &params).expect("it can be exported");
    gltf::write(&export, &path).expect("writable");
    (scene, path)
}

#[test]
fn a_room_comes_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (before, path) = glb(folder.path());
    let output = folder.path().join("again.json");
    let (text, notes) = convert(&path, &output).unwrap_or_else(|e| panic!("{e:#}"));
    assert!(notes.is_empty(), "{notes:?}");
    let after = scene::parse(&text, &output).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    let (a, b) = (&before.sensors[0], &after.sensors[0]);
    assert_eq!((a.width, a.height), (b.width, b.height));
    assert!(
        a.to_world.abs_diff_eq(b.to_world, 1e-5),
        "{:?} {:?}",
        a.to_world,
        b.to_world
    );
    let near = |a: f32, b: f32| (a - b).abs() <= 1e-5 * a.abs().max(1.0);
    assert!(
        near(a.focal[0], b.focal[0]) && near(a.focal[1], b.focal[1]),
        "{:?} {:?}",
        a.focal,
        b.focal
    );
    assert_eq!([a.near_clip, a.far_clip], [b.near_clip, b.far_clip]);
    for light in &before.world.lights {
        let other = after
            .world
            .lights
            .iter()
            .find(|other| other.name == light.name)
            .expect("it is there");
        let color = |scene: &Scene, path: &str| {
            let params = values(scene);
            let index = params.find(path).expect("a parameter");
            [0, 1, 2].map(|c: usize| params.parameters[index].values[c.min(params.parameters[index].values.len() - 1)])
        };
        let path = &light.intensity.path;
        let (a, b) = (color(&before, path), color(&after, path));
        assert!((0..3).all(|c| near(a[c], b[c])), "{path}: {a:?} {b:?}");
        match (&light.kind, &other.kind) {
            (LightKind::Point { position: a }, LightKind::Point { position: b }) => assert_eq!(a, b),
            (LightKind::Directional { direction: a }, LightKind::Directional { direction: b }) => {
                assert!((0..3).all(|k| near(a[k], b[k])), "{a:?} {b:?}");
            }
            (
                LightKind::Spot {
                    to_world: a,
                    cutoff: c,
                    beam: d,
                },
                LightKind::Spot {
                    to_world: b,
                    cutoff: e,
                    beam: f,
                },
            ) => {
                assert!(near(*c, *e) && near(*d, *f));
                assert!(a.matrix3.z_axis.abs_diff_eq(b.matrix3.z_axis, 1e-5));
                assert!(a.translation.abs_diff_eq(b.translation, 1e-5));
            }
            (a, b) => panic!("{a:?} became {b:?}"),
        }
    }
    shapes_agree(&before, &after);
    let params = values(&after);
    let of = |path: &str| {
        let found = params.find(path);
        &params.parameters[found.unwrap_or_else(|| panic!("{path}: {text}"))]
    };
    for (path, expected) in [
        ("mat-box.base_color", &[0.2f32, 0.4, 0.6][..]),
        ("mat-box.roughness", &[0.3]),
        ("mat-box.metallic", &[0.7]),
        ("mat-box.specular", &[0.4]),
        ("mat-panel.opacity", &[0.25]),
        ("panel.emitter.radiance", &[4.0, 2.0, 1.0]),
    ] {
        let found = &of(path).values;
        assert!(
            found.iter().zip(expected).all(|(a, b)| near(*a, *b)),
            "{path}: {found:?}"
        );
    }
    // A picture of 8 bits, with its transform in the shape's texture coordinates.
    let chart = of("mat-ball.bsdf.reflectance");
    let given = values(&before);
    let given = &given.parameters[given.find("ball.bsdf.inner.reflectance").expect("a parameter")];
    assert_eq!(chart.shape, given.shape);
    assert!(
        chart
            .values
            .iter()
            .zip(&given.values)
            .all(|(a, b)| (a - b).abs() < 0.005)
    );
}

/// The same triangles, facing the same way, with texture coordinates of their own.
fn shapes_agree(before: &Scene, after: &Scene) {
    for surface in &before.world.surfaces {
        let other = after
            .world
            .surfaces
            .iter()
            .find(|other| other.name == surface.name)
            .expect("it is there");
        let (a, b) = [surface, other]
            .map(|s| prbopt::exchange::triangles::of_surface(s).expect("triangles"))
            .into();
        assert_eq!(a.triangles, b.triangles, "{}", surface.name);
        assert_eq!(b.is_closed().is_ok(), a.is_closed().is_ok(), "{}", surface.name);
        for (p, q) in a.positions.as_flattened().iter().zip(b.positions.as_flattened()) {
            assert!((p - q).abs() < 1e-5, "{}", surface.name);
        }
        for (p, q) in a.normals.as_flattened().iter().zip(b.normals.as_flattened()) {
            assert!((p - q).abs() < 1e-5, "{}", surface.name);
        }
        if surface.name == "ball" {
            let map = |uv: &[f32; 2]| [3.0 * uv[0] + 0.1, 2.0 * uv[1] + 0.2];
            for (p, q) in a.uvs.iter().map(map).zip(&b.uvs) {
                assert!((p[0] - q[0]).abs() < 1e-5 && (p[1] - q[1]).abs() < 1e-5, "{p:?} {q:?}");
            }
        }
    }
}

/// A glTF file with its buffer inside: three vertices, four indices, and a mesh of this primitive.
fn text(more: &str, primitive: &str) -> String {
    // Three vectors, and three indices of 16 bits.
    let bytes: Vec<u8> = [0.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .chain([0u16, 1, 2, 0].iter().flat_map(|i| i.to_le_bytes()))
        .collect();
    let coded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    format!(
        r#"{{"asset": {{"version": "2.0"}}, "scenes": [{{"nodes": [0]}}], "nodes": [{{"name": "a", "mesh": 0}}],
            "meshes": [{{"primitives": [{primitive}]}}],
            "buffers": [{{"byteLength": 44, "uri": "data:application/octet-stream;base64,{coded}"}}],
            "bufferViews": [{{"buffer": 0, "byteLength": 36}}, {{"buffer": 0, "byteOffset": 36, "byteLength": 8}}],
            "accessors": [
                {{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]}},
                {{"bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR"}}
            ]{more}}}"#
    )
}

/// Everything that cannot be imported is reported, and the rest is imported, with a camera and a light if the file has none.
#[test]
fn what_has_no_counterpart_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, output) = (folder.path().join("a.gltf"), folder.path().join("a.json"));
    let more = r#", "materials": [{"name": "paint", "doubleSided": true, "emissiveFactor": [0, 0, 0],
            "pbrMetallicRoughness": {"baseColorFactor": [0.2, 0.4, 0.6, 0.3], "metallicFactor": 0},
            "alphaMode": "MASK", "alphaCutoff": 0.25,
            "extensions": {"KHR_materials_sheen": {"sheenColorFactor": [1, 1, 1]},
                "KHR_materials_clearcoat": {"clearcoatFactor": 0.1, "clearcoatRoughnessFactor": 0.2}}}],
        "extensionsUsed": ["KHR_materials_sheen", "KHR_materials_clearcoat"],
        "skins": [{"joints": [0]}],
        "animations": [{"channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}],
            "samplers": [{"input": 1, "output": 0}]}]"#;
    let primitive = r#"{"attributes": {"POSITION": 0, "COLOR_0": 0}, "indices": 1, "material": 0, "targets": [{"POSITION": 0}]},
        {"attributes": {"POSITION": 0}, "mode": 1}"#;
    std::fs::write(&path, text(more, primitive)).expect("writable");
    let (text, notes) = convert(&path, &output).unwrap_or_else(|e| panic!("{e:#}"));
    let all = notes.join("\n");
    for part in [
        "its animations are left out (1)",
        "its skins of bones are left out (1)",
        "the extension `KHR_materials_sheen` is left out",
        "the targets that `a` could become are left out",
        "the points or lines of `a` are left out",
        "it has no camera: one that sees everything is added, `camera`",
        "it has no light: a white sky is added, `sky`",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    assert_eq!(notes.len(), 7, "{all}");
    let scene = scene::parse(&text, &output).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    assert_eq!((scene.sensors.len(), scene.world.surfaces.len()), (1, 1));
    let dictionary: Value = serde_json::from_str(&text).expect("JSON");
    let mask = &dictionary["a"]["bsdf"];
    // An alpha of 0.3 is beyond the cutoff of 0.25.
    assert_eq!(
        (&mask["type"], &mask["opacity"]),
        (&"mask".into(), &1.0.into()),
        "{mask}"
    );
    let paint = &mask["bsdf"]["bsdf"];
    assert_eq!(paint["base_color"]["type"], "mesh_attribute", "{mask}");
    let number = |key: &str| paint[key].as_f64().expect("a number");
    assert!((number("clearcoat") - 0.4).abs() < 1e-6 && (number("clearcoat_gloss") - 0.06 / 0.099).abs() < 1e-6);
    assert!((number("specular") - 0.5).abs() < 1e-6);
    let mesh = prbopt::io::mesh::read_ply(&folder.path().join("a_files/a.ply"), false, false).expect("a mesh");
    let colors = &mesh.attributes[0].values;
    assert_eq!(
        colors[3..6],
        [0.2, 0.0, 0.0],
        "the second vertex is red, times the factor"
    );
    // The camera looks at the triangle from outside of it.
    let sensor = &scene.sensors[0];
    let center = glam::Vec3A::new(0.5, 0.5, 0.0);
    let way = center - sensor.to_world.translation;
    assert!(way.length() > 1.0 && way.normalize().dot(sensor.to_world.matrix3.z_axis) > 0.999);
}

/// Glass is a solid where the file says that it has a thickness, else a sheet.
#[test]
fn glass_is_solid_or_thin() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, output) = (folder.path().join("a.gltf"), folder.path().join("a.json"));
    for (roughness, thickness, factor, kind) in [
        (0.0, 1.0, 1.0, "dielectric"),
        (0.5, 1.0, 1.0, "roughdielectric"),
        (0.0, 0.0, 1.0, "thindielectric"),
        (0.5, 0.0, 1.0, "principledthin"),
        (0.5, 1.0, 0.5, "principled"),
    ] {
        let more = format!(
            r#", "extensionsUsed": ["KHR_materials_transmission", "KHR_materials_volume", "KHR_materials_ior"],
            "materials": [{{"name": "glass", "pbrMetallicRoughness": {{"metallicFactor": 0, "roughnessFactor": {roughness}}},
            "extensions": {{"KHR_materials_transmission": {{"transmissionFactor": {factor}}}, "KHR_materials_ior": {{"ior": 1.4}},
            "KHR_materials_volume": {{"thicknessFactor": {thickness}}}}}}}]"#
        );
        std::fs::write(&path, text(&more, r#"{"attributes": {"POSITION": 0}, "material": 0}"#)).expect("writable");
        let (text, notes) = convert(&path, &output).unwrap_or_else(|e| panic!("{e:#}"));
        let dictionary: Value = serde_json::from_str(&text).expect("JSON");
        let glass = &dictionary["mat-glass"];
        assert_eq!(glass["type"], kind, "{glass}");
        if kind == "roughdielectric" {
            assert_eq!(glass["alpha"], 0.25, "{glass}");
        }
        assert_eq!(notes.iter().any(|note| note.contains("thin sheet")), thickness == 0.0);
    }
}

/// Truncated files are refused and leave nothing behind, and no changed byte makes the import panic.
#[test]
fn damaged_files_are_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, path) = glb(folder.path());
    let whole = std::fs::read(&path).expect("written");
    let (damaged, output) = (folder.path().join("b.glb"), folder.path().join("b.json"));
    let attempt = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).expect("writable");
        convert(&damaged, &output).map(|_| ()).map_err(|e| format!("{e:#}"))
    };
    for end in (0..whole.len()).step_by(whole.len() / 40) {
        let told = attempt(&whole[..end]).expect_err("a part of it");
        assert!(told.contains("b.glb"), "{told}");
        assert!(!folder.path().join("b_files").exists(), "nothing is left behind");
    }
    let json = u32::from_le_bytes(whole[12..16].try_into().expect("four bytes")) as usize;
    let mut state = 1u64;
    let mut refused = 0;
    for _ in 0..200 {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let at = 20 + (state >> 33) as usize % json;
        let mut bytes = whole.clone();
        // Another digit where a digit is: other indices, offsets and counts.
        bytes[at] = match bytes[at] {
            digit @ b'0'..=b'9' => b'0' + (digit - b'0' + 1 + (state >> 60) as u8 % 9) % 10,
            _ => b'x',
        };
        refused += usize::from(attempt(&bytes).is_err());
    }
    assert!(refused > 50, "{refused}");
}

/// Nodes with equal names are numbered in the order of the file past names that are taken, in time in proportion to their
/// number.
#[test]
fn equal_names_are_numbered() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, output) = (folder.path().join("a.gltf"), folder.path().join("a.json"));
    let mut whole: Value =
        serde_json::from_str(&text("", r#"{"attributes": {"POSITION": 0}, "indices": 1}"#)).expect("JSON");
    let count = 30_000;
    let mut names = vec!["a"; count];
    (names[0], names[2], names[5]) = ("a_3", "a_3", "a_3");
    whole["nodes"] = names
        .iter()
        .map(|name| serde_json::json!({"name": name, "mesh": 0}))
        .collect();
    whole["scenes"][0]["nodes"] = (0..count).collect();
    std::fs::write(&path, whole.to_string()).expect("writable");
    let begun = std::time::Instant::now();
    let (text, _) = convert(&path, &output).expect("a scene");
    // A search from the start for each name takes minutes.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let scene: Value = serde_json::from_str(&text).expect("JSON");
    let shapes = scene.as_object().expect("a scene").iter();
    let found: Vec<&str> = shapes
        .filter(|(_, of)| of["type"] == "ply")
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(found[..8], ["a_3", "a", "a_3_2", "a_2", "a_4", "a_3_3", "a_5", "a_6"]);
    assert_eq!(found.last(), Some(&"a_29998"));
}

/// Each false claim of a file is refused in one sentence that names the file.
#[test]
fn false_claims_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, output) = (folder.path().join("a.gltf"), folder.path().join("a.json"));
    let whole = text("", r#"{"attributes": {"POSITION": 0}, "indices": 1}"#);
    let attempt = |text: &str| {
        std::fs::write(&path, text).expect("writable");
        convert(&path, &output).map_err(|e| format!("{e:#}"))
    };
    assert!(attempt(&whole).is_ok());
    let sparse =
        r#""sparse": {"count": 1, "indices": {"bufferView": 1, "componentType": 5123}, "values": {"bufferView": 0}}"#;
    for (from, to, part) in [
        (r#""nodes": [0]"#, r#""nodes": []"#, ""),
        (
            r#""mesh": 0"#,
            r#""mesh": 0, "children": [0]"#,
            "nested more than 256 deep",
        ),
        (
            r#""mesh": 0}"#,
            r#""mesh": 0, "children": [1, 1]}, {}"#,
            "node 1 is a child of node 0 and again of node 0; give each a copy of it",
        ),
        (
            r#""mesh": 0}"#,
            r#""mesh": 0, "children": [1, 2]}, {"children": [2]}, {}"#,
            "node 2 is a child of node 0 and again of node 1; give each a copy of it",
        ),
        (r#""mesh": 0}"#, r#""mesh": 0, "children": [1]}, {}"#, ""),
        (
            r#""version": "2.0""#,
            r#""version": "3.0", "minVersion": "2.0""#,
            "is glTF 3.0, expected 2.0; export it as that version",
        ),
        (
            r#""version": "2.0""#,
            r#""version": "1.0""#,
            "is glTF 1.0, expected 2.0",
        ),
        (r#""version": "2.0""#, r#""version": "20""#, "is glTF 20, expected 2.0"),
        (
            r#""version": "2.0""#,
            r#""version": "2.1", "minVersion": "2.1""#,
            "is glTF 2.1, expected 2.0",
        ),
        (r#""version": "2.0""#, r#""version": "2.1", "minVersion": "2.0""#, ""),
        (
            r#"{"POSITION": 0}"#,
            r#"{"POSITION": 2}"#,
            "names accessor 2, but has 2",
        ),
        (
            r#""byteLength": 44"#,
            r#""byteLength": 45"#,
            "buffer 0 has 44 bytes, but 45 are claimed",
        ),
        (
            r#""byteLength": 36}"#,
            r#""byteLength": 46}"#,
            "buffer view 0 lies outside",
        ),
        (
            r#""byteLength": 36}"#,
            r#""byteLength": 35}"#,
            "buffer view 0 has fewer bytes",
        ),
        (
            r#""byteOffset": 36"#,
            r#""byteOffset": 18446744073709551615"#,
            "buffer view 1 lies outside",
        ),
        (
            r#""count": 3, "type": "VEC3""#,
            r#""count": 0, "type": "VEC3""#,
            "accessor 0 is empty",
        ),
        (
            r#""count": 3, "type": "VEC3""#,
            r#""count": 1000000000000, "type": "VEC3""#,
            "buffer view 0 has fewer bytes",
        ),
        (
            r#""count": 3, "type": "VEC3""#,
            r#""count": 3, "type": "VEC4""#,
            "accessor 0 holds Vec4 of F32",
        ),
        (
            r#""componentType": 5123"#,
            r#""componentType": 5126"#,
            "accessor 1 holds Scalar of F32",
        ),
        (
            r#""byteLength": 36}"#,
            r#""byteLength": 36, "byteStride": 4}"#,
            "accessor 0 has entries that overlap",
        ),
        (
            r#"{"bufferView": 0, "componentType": 5126"#,
            r#"{"componentType": 5126"#,
            "accessors[0].bufferView: Missing data",
        ),
        (
            r#"{"bufferView": 0, "componentType": 5126, "count": 3"#,
            &format!(r#"{{{sparse}, "componentType": 5126, "count": 1000000000"#),
            "claims 1000000000 entries without data",
        ),
        (
            r#"{"bufferView": 0, "componentType": 5126, "count": 3"#,
            &format!(
                r#"{{{}, "componentType": 5126, "count": 3"#,
                sparse.replace(r#""count": 1"#, r#""count": 9"#)
            ),
            "accessor 0 has 3 entries, of which 9 are stated",
        ),
        (
            r#""asset""#,
            r#""extensionsRequired": ["KHR_draco_mesh_compression"], "asset""#,
            "without the extension `KHR_draco",
        ),
        (
            "data:application",
            "../b.bin?data:application",
            "leads out of the file's folder",
        ),
        (r#""uri": "data:"#, r#""uri": "none:"#, "cannot be read"),
        (
            r#""version": "2.0""#,
            r#""version": "2.0", "version": 1"#,
            "is no glTF 2.0",
        ),
        (r#"{"asset""#, r#"["asset""#, "is no glTF 2.0"),
    ] {
        assert!(whole.contains(from), "{from}");
        let found = attempt(&whole.replacen(from, to, 1));
        match part {
            "" => assert!(found.is_ok(), "{to}: {found:?}"),
            part => {
                let told = found.expect_err(to);
                assert!(
                    told.contains("a.gltf") && told.contains(part) && told.lines().count() == 1,
                    "{to}: {told}"
                );
            }
        }
    }
    // An index beyond the vertices.
    let told = attempt(&whole.replacen("AAABAAIAAAA=", "AAABAAMAAAA=", 1)).expect_err("three vertices");
    assert!(told.contains("a triangle with vertex 3, but 3 vertices"), "{told}");
}
