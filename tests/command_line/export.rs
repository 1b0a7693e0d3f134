//! `prbopt export`: the files of each format, what is refused, and that a refusal leaves no files behind.

use super::*;

/// A lit sphere on a floor, and a small cloud beside it whose density is optimised.
fn scene() -> Value {
    json!({
        "integrator": {"type": "volpath", "max_depth": 3},
        "camera": {
            "type": "perspective", "fov": 40,
            "to_world": [{"look_at": {"origin": [0, 1, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {"type": "box"}}
        },
        "ball": {"type": "sphere", "radius": 0.5, "bsdf": {"type": "diffuse", "reflectance": [0.7, 0.2, 0.1]}},
        "floor": {
            "type": "rectangle", "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": -90}}, {"translate": [0, -1, 0]}],
            "bsdf": {"type": "twosided", "paint": {"type": "diffuse", "reflectance": {"type": "checkerboard"}}}
        },
        "cloud": {
            "type": "cube", "to_world": [{"scale": 0.3}, {"translate": [1, 0, 0]}], "bsdf": {"type": "null"},
            "interior": {
                "type": "heterogeneous",
                "sigma_t": {
                    "type": "gridvolume", "resolution": [4, 3, 2], "value": 1.5,
                    "to_world": [{"scale": 0.6}, {"translate": [0.7, -0.3, -0.3]}]
                }
            }
        },
        "bulb": {"type": "point", "position": [0, 3, 1], "intensity": [5, 5, 4]},
        "optimize": {
            "references": {"type": "constant", "value": 0.3}, "iterations": 2,
            "parameters": {"cloud.interior.sigma_t": {"learning_rate": 0.1}, "ball.bsdf.reflectance": {"learning_rate": 0.1}}
        }
    })
}

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("a.json"), scene().to_string()).expect("writable");
    place
}

/// The results of a run are exported in every format; the XML is imported as a scene that renders the same, to 1e-4.
#[test]
fn results_are_exported_and_imported_again() {
    let place = place();
    place.expect(0, &["optimize", "a.json", "--output", "run", "-q"]);
    place.expect(
        0,
        &["export", "a.json", "--parameters", "run/final", "-o", "out/a.xml", "-q"],
    );
    assert!(place.path("out/a_files/cloud.interior.sigma_t.vol").exists());
    place.expect(0, &["import", "out/a.xml", "-o", "b.json", "-q"]);
    let found = place.json("run/final/ball.bsdf.reflectance.json")["value"].clone();
    let written = place.json("b.json")["ball"]["bsdf"]["reflectance"]["value"].clone();
    for c in 0..3 {
        let [a, b] = [&written, &found].map(|list| list[c].as_f64().expect("a number") as f32);
        assert_eq!(a, b, "{written} {found}");
    }
    let grid = |name: &str| prbopt::io::vol::read(&place.path(name)).expect("a grid");
    let (written, kept) = (
        grid("out/a_files/cloud.interior.sigma_t.vol"),
        grid("run/final/cloud.interior.sigma_t.vol"),
    );
    assert_eq!(written.data, kept.data);
    assert!(written.data.iter().any(|v| *v != 1.5), "the run has changed it");
    let density = prbopt::io::vdb::read(&place.path("run/final/cloud.interior.sigma_t.vdb")).expect("a fog volume");
    assert_eq!((density.size, &density.data), ([4, 3, 2], &kept.data));
    let render = |scene: &str, more: &[&str]| {
        let output = format!("{scene}.exr");
        let words = [&["render", scene, "--spp", "64", "-o", &output, "-q"], more].concat();
        place.expect(0, &words);
        prbopt::io::image::read(&place.path(&output)).expect("an image").0.data
    };
    let (ours, theirs) = (render("a.json", &["--parameters", "run/final"]), render("b.json", &[]));
    let differ = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(differ < 1e-4, "{differ}: the same random numbers give the same picture");
}

/// A sky whose radiance is neither a step of 8 bits nor an f16 tells which bits a picture has.
#[test]
fn pictures_have_the_bits_that_are_asked_for() {
    let place = Place::new();
    let sky = json!({"sky": {"type": "constant", "radiance": 0.3333}, "ball": {"type": "sphere", "radius": 1e-3}, "camera": {
        "type": "perspective", "to_world": [{"translate": [0, 0, 5]}],
        "film": {"type": "hdrfilm", "width": 2, "height": 2, "rfilter": {"type": "box"}}
    }});
    fs::write(place.path("sky.json"), sky.to_string()).expect("writable");
    let render = |name: &str, more: &[&str]| {
        place.expect(
            0,
            &[&["render", "sky.json", "--spp", "1", "-o", name, "-q"], more].concat(),
        );
        let read = |extension| {
            let path = place.path(name).with_extension(extension);
            prbopt::io::image::read(&path).expect("an image").0.data[0]
        };
        (read("exr"), read("png"))
    };
    let coded = prbopt::io::srgb::encode(0.3333);
    let (light, shown) = render("a.png", &[]);
    assert_eq!(light, 0.3333);
    assert!((shown - coded).abs() > 1e-4, "{shown}");
    let (light, shown) = render("b.png", &["--half", "--deep"]);
    assert_eq!(light, half::f16::from_f32(0.3333).to_f32());
    assert!((shown - coded).abs() < 1e-5, "{shown} {coded}");
    let (_, err) = place.expect(2, &["render", "sky.json", "--deep", "-o", "-"]);
    assert!(err.contains("standard output has 8 bits"), "{err}");
}

#[test]
fn shapes_become_triangles() {
    let place = place();
    for name in ["a.ply", "a.obj", "a.stl"] {
        let (out, err) = place.expect(0, &["export", "a.json", "-o", name]);
        assert_eq!(out, format!("{name}\n"));
        assert_eq!(err.contains("`floor` is not closed"), name == "a.stl", "{err}");
    }
    // 80 bytes of a header, a count, and 50 bytes a triangle: a cube, a rectangle and a sphere without triangles of no area.
    let length = fs::metadata(place.path("a.stl")).expect("written").len();
    assert_eq!((length - 84) / 50, 12 + 2 + 2 * 128 * 63);
    place.expect(0, &["export", "a.json", "--shape", "ball", "-o", "ball.ply", "-q"]);
    let ball = prbopt::io::mesh::read_ply(&place.path("ball.ply"), false, false).expect("a mesh");
    assert_eq!(ball.is_closed(), Ok(()));
    let radius = ball.positions.iter().map(|[x, y, z]| x.hypot(*y).hypot(*z));
    assert!(radius.clone().all(|r| (r - 0.5).abs() < 1e-6));
    // The meshes are shapes of scenes.
    let mut scene = scene();
    scene["ball"] = json!({"type": "ply", "filename": "ball.ply"});
    fs::write(place.path("b.json"), scene.to_string()).expect("writable");
    place.expect(0, &["render", "b.json", "--spp", "1", "-o", "b.exr", "-q"]);
    let (_, err) = place.expect(2, &["export", "a.json", "--shape", "bal", "-o", "c.ply"]);
    assert!(
        err.contains("no shape to write; the scene has `ball`, `floor`, `cloud`"),
        "{err}"
    );
}

#[test]
fn grids_become_fog() {
    let place = place();
    place.expect(0, &["export", "a.json", "-o", "a.vdb", "-q"]);
    place.expect(0, &["export", "a.json", "--half", "-o", "half.vdb", "-q"]);
    for name in ["a.vdb", "half.vdb"] {
        let grid = prbopt::io::vdb::read(&place.path(name)).expect("a fog volume");
        assert_eq!((grid.size, &grid.data[..]), ([4, 3, 2], &[1.5; 24][..]));
        for (a, b) in grid.bounds.as_flattened().iter().zip([0.7, -0.3, -0.3, 1.3, 0.3, 0.3]) {
            assert!((a - b).abs() < 1e-6, "{:?}", grid.bounds);
        }
    }
    // Of a radiance field the density is exported, its colours are left out.
    fs::write(place.path("field.json"), super::scene().to_string()).expect("writable");
    let (_, err) = place.expect(0, &["export", "field.json", "-o", "field.vdb"]);
    assert!(err.contains("`object.interior.sh_coeffs` is left out"), "{err}");
}

#[test]
fn mistakes_leave_nothing_behind() {
    let place = place();
    for (words, part) in [
        (&["a.json", "-o", "a.fbx"][..], "the extension says what is written"),
        (&["a.json", "-o", "a"], "the extension says what is written"),
        (&["a.json", "-o", "a.json.xml", "--shape", "ball"], "--shape chooses"),
        (&["a.json", "-o", "x.xml", "--half"], "--half is for a .vdb"),
        (&["none.json", "-o", "x.xml"], "none.json: cannot be read"),
        (
            &["field.json", "-o", "x.xml"],
            "field.json: Mitsuba has no radiance fields",
        ),
        (
            &["a.json", "--parameters", "none", "-o", "x.xml"],
            "none: is not a folder",
        ),
        (&["plain.json", "-o", "x.vdb"], "plain.json: has no grid to write"),
    ] {
        fs::write(place.path("field.json"), super::scene().to_string()).expect("writable");
        fs::write(place.path("plain.json"), r#"{"ball": {"type": "sphere"}}"#).expect("writable");
        let (_, err) = place.expect(2, &[&["export"], words].concat());
        assert!(err.contains(part), "{words:?}: {err}");
        assert!(
            !place.path("x.xml").exists() && !place.path("x_files").exists(),
            "{words:?}"
        );
    }
    place.expect(0, &["export", "a.json", "-o", "a.xml", "-q"]);
    let (_, err) = place.expect(2, &["export", "a.json", "-o", "a.xml"]);
    assert!(err.contains("exists already; overwrite it by --force"), "{err}");
    place.expect(0, &["export", "a.json", "-o", "a.xml", "-q", "--force"]);
}

/// The parts of a binary glTF file: its JSON and its buffer.
fn parts(path: &Path) -> (Value, Vec<u8>) {
    let bytes = fs::read(path).expect("written");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    assert_eq!((&bytes[..4], word(4), word(8)), (&b"glTF"[..], 2, bytes.len()));
    let length = word(12);
    assert_eq!(&bytes[16..20], b"JSON");
    let root = serde_json::from_slice(&bytes[20..20 + length]).expect("JSON");
    let second = 20 + length;
    assert_eq!(&bytes[second + 4..second + 8], b"BIN\0");
    assert_eq!(second + 8 + word(second), bytes.len());
    (root, bytes[second + 8..].to_vec())
}

#[test]
fn a_scene_becomes_gltf() {
    let place = place();
    let (_, err) = place.expect(0, &["export", "a.json", "-o", "a.glb"]);
    for part in [
        "`cloud` is left out: it only bounds a medium",
        "the medium `cloud.interior` is left out",
    ] {
        assert!(err.contains(part), "{part}\n{err}");
    }
    let (root, buffer) = parts(&place.path("a.glb"));
    let names: Vec<_> = root["nodes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|n| n["name"].clone())
        .collect();
    assert_eq!(names, ["ball", "floor", "camera", "bulb"]);
    let color = &root["materials"][0]["pbrMetallicRoughness"]["baseColorFactor"];
    let expected = [0.7, 0.2, 0.1, 1.0];
    for (a, b) in color.as_array().expect("four numbers").iter().zip(expected) {
        assert!((a.as_f64().expect("a number") - b).abs() < 1e-6, "{color}");
    }
    assert_eq!(root["materials"][1]["doubleSided"], true);
    let light = &root["extensions"]["KHR_lights_punctual"]["lights"][0];
    assert_eq!(
        (&light["type"], &light["intensity"]),
        (&json!("point"), &json!(683.0 * 5.0))
    );
    // The camera looks along -z: its third column points back from the middle of the scene.
    let place_of = &root["nodes"][2]["matrix"];
    let number = |i: usize| place_of[i].as_f64().expect("a number");
    let back = [number(8), number(9), number(10)];
    let expected = [0.0, 1.0 / 17f64.sqrt(), 4.0 / 17f64.sqrt()];
    assert!(back.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{back:?}");
    assert_eq!([number(12), number(13), number(14)], [0.0, 1.0, 4.0]);
    // All parts of the buffer lie in it, and places are within their bounds.
    for view in root["bufferViews"].as_array().expect("a list") {
        let end = view["byteOffset"].as_u64().expect("a number") + view["byteLength"].as_u64().expect("a number");
        assert!(end as usize <= buffer.len());
    }
    let positions = &root["accessors"][root["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
        .as_u64()
        .expect("an index") as usize];
    assert_eq!(positions["max"][1], 0.5);
    // The checkerboard is an image of four texels.
    let image = &root["bufferViews"][root["images"][0]["bufferView"].as_u64().expect("an index") as usize];
    let begin = image["byteOffset"].as_u64().expect("a number") as usize;
    let png = &buffer[begin..begin + image["byteLength"].as_u64().expect("a number") as usize];
    fs::write(place.path("checks.png"), png).expect("writable");
    let (checks, _) = prbopt::io::image::read(&place.path("checks.png")).expect("an image");
    assert_eq!((checks.width, checks.height), (2, 2));
    let texel = |i: usize| prbopt::io::srgb::decode(checks.data[3 * i]);
    assert!((texel(0) - 0.4).abs() < 0.01 && (texel(1) - 0.2).abs() < 0.01 && texel(0) == texel(3));
}
