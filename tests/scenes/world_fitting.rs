//! Mistakes of scenes of shapes, media and lights that show once their files are read and all objects are put together.

use std::path::Path;

use prbopt::io::{self, Grid, Image};
use prbopt::resident::Resident;
use prbopt::scene::{self, Scene};

use super::mistakes_in;

/// The error of a scene without mistakes in its text when it is flattened, its files in `folder`; `None` if there is none.
pub(super) fn flattened(text: &str, folder: &Path) -> Option<String> {
    let scene =
        scene::parse(text, &folder.join("test.json")).unwrap_or_else(|mistakes| panic!("{mistakes}\nin {text}"));
    Resident::new(&scene).err().map(|error| error.to_string())
}

/// A box that lets light pass, with more of its text.
pub(super) fn bounds(name: &str, kind: &str, to_world: &str, more: &str) -> String {
    format!(
        r#""{name}": {{"type": "{kind}", "to_world": [{to_world}], "bsdf": {{"type": "null"}}, {more}
            "interior": {{"type": "homogeneous"}}}}"#
    )
}

pub(super) fn scene_of(objects: &[String]) -> String {
    format!(r#"{{{}, "sky": {{"type": "constant"}}}}"#, objects.join(", "))
}

/// A tetrahedron as an OBJ file, with these faces.
fn write_tetrahedron(path: &Path, faces: &str) {
    let text = format!("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n{faces}\n");
    std::fs::write(path, text).expect("the test's folder is writable");
}

const CLOSED: &str = "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3";

#[test]
fn boundaries_of_media_nest_or_lie_apart() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    write_tetrahedron(&folder.path().join("mesh.obj"), CLOSED);
    let file = r#""filename": "mesh.obj", "#;
    let inside = r#""exterior": {"type": "ref", "id": "a.interior"}, "#;
    let quarter = r#"{"rotate": {"axis": [0, 0, 1], "angle": 45}}"#;
    let at = |x: f32, y: f32, z: f32| format!(r#"{{"translate": [{x}, {y}, {z}]}}"#);
    let scaled = |s: f32| format!(r#"{{"scale": {s}}}"#);
    let turned = |x: f32, y: f32| format!("{quarter}, {}", at(x, y, 0.0));
    let flat = r#"{"scale": [1, 1, 0.1]}"#.to_string();
    let small_at = |x: f32, y: f32, z: f32| format!("{}, {}", scaled(0.3), at(x, y, z));
    // The first shape stands where it is, the second is moved; whether that is a mistake.
    let cases = [
        ("cube", "cube", at(1.0, 0.5, 0.2), "", true),
        ("cube", "cube", at(2.0, 0.0, 0.0), "", true),
        ("cube", "cube", at(2.001, 0.0, 0.0), "", false),
        ("cube", "cube", turned(1.75, 1.75), "", false),
        ("cube", "cube", turned(1.7, 1.7), "", true),
        ("cube", "cube", scaled(0.9), inside, false),
        ("cube", "sphere", scaled(1.2), "", true),
        ("cube", "sphere", scaled(0.99), inside, false),
        ("cube", "sphere", scaled(1.0), inside, true),
        ("cube", "sphere", at(1.7, 1.7, 1.0), "", true),
        ("cube", "sphere", at(1.71, 1.71, 0.5), "", false),
        ("sphere", "sphere", at(1.9, 0.0, 0.0), "", true),
        ("sphere", "sphere", at(2.1, 0.0, 0.0), "", false),
        ("sphere", "sphere", at(1.5, 1.5, 0.0), "", false),
        ("sphere", "sphere", format!("{flat}, {}", scaled(1.5)), "", true),
        ("sphere", "sphere", format!("{flat}, {}", scaled(0.9)), inside, false),
        ("cube", "obj", at(0.5, 0.0, 0.0), "", true),
        ("cube", "obj", scaled(0.5), inside, false),
        (
            "cube",
            "obj",
            format!("{}, {}", scaled(-1.0), at(1.9, 1.9, 1.9)),
            "",
            false,
        ),
        (
            "cube",
            "obj",
            format!("{}, {}", scaled(-1.0), at(1.3, 1.3, 1.3)),
            "",
            true,
        ),
        ("sphere", "obj", scaled(0.5), inside, false),
        ("sphere", "obj", scaled(1.1), "", true),
        ("sphere", "obj", at(0.6, 0.6, 0.6), "", false),
        ("obj", "obj", small_at(0.05, 0.05, 0.05), inside, false),
        ("obj", "obj", small_at(0.6, 0.6, 0.6), "", false),
        ("obj", "obj", small_at(0.3, 0.3, 0.3), "", true),
    ];
    let more = |kind: &str| if kind == "obj" { file } else { "" };
    let mut failures = Vec::new();
    for (first, second, to_world, exterior, mistaken) in cases {
        let text = scene_of(&[
            bounds("a", first, "", more(first)),
            bounds("b", second, &to_world, &format!("{}{exterior}", more(second))),
        ]);
        let found = flattened(&text, folder.path());
        let told = found
            .as_ref()
            .is_some_and(|found| found.contains("the boundaries of `a` and `b` touch or cut"));
        if told != mistaken || (!told && found.is_some()) {
            failures.push(format!("{second} at {to_world} and {first}: {found:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let opaque = r#""b": {"type": "sphere", "to_world": [{"translate": [1, 0, 0]}]}"#.to_string();
    let text = scene_of(&[bounds("a", "cube", "", ""), opaque]);
    assert_eq!(
        flattened(&text, folder.path()),
        None,
        "what is opaque may stand anywhere"
    );
}

/// Three shapes one in the other, in every order of the file: each is in the next larger one, not in any larger one.
#[test]
fn the_smallest_shape_around_another_holds_it() {
    let shape = |name: &str, kind: &str, scale: f32, outside: &str| {
        let exterior = match outside {
            "" => String::new(),
            outside => format!(r#""exterior": {{"type": "ref", "id": "{outside}.interior"}}, "#),
        };
        bounds(name, kind, &format!(r#"{{"scale": {scale}}}"#), &exterior)
    };
    for kinds in [["cube"; 3], ["sphere"; 3], ["sphere", "cube", "sphere"]] {
        let nested = [
            shape("small", kinds[0], 0.2, "middle"),
            shape("middle", kinds[1], 0.5, "large"),
            shape("large", kinds[2], 1.0, ""),
        ];
        let mistaken = shape("small", kinds[0], 0.2, "large");
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let text = scene_of(&order.map(|i| nested[i].clone()));
            assert_eq!(flattened(&text, Path::new("")), None, "{order:?}");
            let text = scene_of(&order.map(|i| if i == 0 { mistaken.clone() } else { nested[i].clone() }));
            let found = flattened(&text, Path::new("")).expect("it lies in another");
            // The medium that is shared has the path at which the file mentions it first.
            let (start, end) = found.split_once("the medium `").expect("it names the medium around");
            assert!(
                start.ends_with("the shape `small` lies in `middle` but is surrounded by "),
                "{order:?}: {found}"
            );
            assert!(end.contains("`, expected `middle.interior`; add"), "{order:?}: {found}");
        }
    }
}

#[test]
fn media_fit_together() {
    let here = Path::new("");
    let half = r#"{"scale": 0.5}"#;
    let outer = bounds("room", "cube", "", "");
    let told = |objects: &[String]| flattened(&scene_of(objects), here).unwrap_or_default();
    let found = told(&[outer.clone(), bounds("core", "sphere", half, "")]);
    let expected = "test.json: the shape `core` lies in `room` but has no medium around it, expected `room.interior`; \
                    add \"exterior\": {\"type\": \"ref\", \"id\": \"room.interior\"}";
    assert_eq!(found, expected);
    let exterior = r#""exterior": {"type": "ref", "id": "room.interior"}, "#;
    let far = r#"{"translate": [9, 0, 0]}"#;
    assert_eq!(told(&[outer.clone(), bounds("core", "sphere", half, exterior)]), "");
    let found = told(&[outer.clone(), bounds("core", "sphere", far, exterior)]);
    let expected = "test.json: the shape `core` lies in no other shape that bounds a medium but is surrounded by the \
                    medium `room.interior`, expected none; remove its `exterior`";
    assert_eq!(found, expected);
    let flipped = r#""flip_normals": true, "exterior": {"type": "homogeneous", "albedo": 0.5}, "#;
    let core = bounds("core", "sphere", half, flipped);
    assert!(
        told(&[outer.clone(), core]).contains("`core` lies in `room` but is surrounded by the medium `core.interior`")
    );
}

#[test]
fn sensors_name_the_medium_that_they_stand_in() {
    let here = Path::new("");
    let smoke = bounds("smoke", "cube", "", "");
    let sensor = |z: f32, more: &str| {
        format!(r#""camera": {{"type": "perspective", "to_world": [{{"translate": [0, 0, {z}]}}]{more}}}"#)
    };
    let told = |objects: &[String]| flattened(&scene_of(objects), here).unwrap_or_default();
    let medium = r#", "medium": {"type": "ref", "id": "smoke.interior"}"#;
    assert_eq!(told(&[smoke.clone(), sensor(3.0, "")]), "");
    assert_eq!(told(&[smoke.clone(), sensor(0.5, medium)]), "");
    let expected = "test.json: the sensor `camera` stands in `smoke` but has no `medium`; add \"medium\": {\"type\": \"ref\", \
                    \"id\": \"smoke.interior\"}, or move it";
    assert_eq!(told(&[smoke.clone(), sensor(0.5, "")]), expected);
    let expected = "test.json: the sensor `camera` stands in no shape that bounds a medium but has the medium \
                    `smoke.interior`; remove its `medium`, or move it";
    assert_eq!(told(&[smoke, sensor(3.0, medium)]), expected);
    let fog = r#", "medium": {"type": "homogeneous"}"#;
    assert_eq!(told(&[sensor(0.0, fog)]), "", "fog without end");
    let hole = bounds("hole", "cube", "", r#""flip_normals": true,"#);
    let expected = "test.json: the normals of `hole` look inwards, so that its `interior` is all that lies around it, also \
                    around the sensor `camera`, which has no `medium`; change its `flip_normals`, or refer to \
                    `hole.interior` as the sensor's `medium`";
    assert_eq!(told(&[hole.clone(), sensor(3.0, "")]), expected);
    let around = r#", "medium": {"type": "ref", "id": "hole.interior"}"#;
    assert_eq!(told(&[hole, sensor(3.0, around)]), "");
}

#[test]
fn meshes_that_bound_media_are_closed_and_look_outwards() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("mesh.obj");
    let file = r#""filename": "mesh.obj", "#;
    let told = |more: &str| {
        flattened(
            &scene_of(&[bounds("m", "obj", "", &format!("{file}{more}"))]),
            folder.path(),
        )
    };
    write_tetrahedron(&path, CLOSED);
    assert_eq!(told(""), None);
    write_tetrahedron(&path, "f 1 3 2\nf 1 2 4\nf 2 3 4");
    let found = told("").expect("a face is missing");
    assert!(
        found.starts_with(&format!(
            "{}: the mesh bounds a medium but is not closed: the edge from",
            path.display()
        )) && found.contains("belongs to one triangle only: the surface has a hole"),
        "{found}"
    );
    let open = r#"{"m": {"type": "obj", "filename": "mesh.obj", "exterior": {"type": "homogeneous"}}, "s": {"type": "constant"}}"#;
    assert_eq!(flattened(open, folder.path()), None, "what is opaque may be open");
    let passing = |media: &str| {
        let text = format!(
            r#"{{"m": {{"type": "obj", "filename": "mesh.obj", "bsdf": {{"type": "null"}} {media}}},
                "s": {{"type": "constant"}}}}"#
        );
        flattened(&text, folder.path())
    };
    assert_eq!(passing(""), None, "what bounds no medium may be open");
    for medium in [
        r#", "interior": {"type": "homogeneous"}"#,
        r#", "exterior": {"type": "homogeneous"}"#,
    ] {
        let found = passing(medium).expect("a face is missing");
        assert!(found.contains("the mesh bounds a medium but is not closed"), "{found}");
    }
    write_tetrahedron(&path, "f 1 2 3\nf 1 4 2\nf 2 4 3\nf 1 3 4");
    let found = told("").expect("the faces look inwards");
    assert!(
        found.contains("faces look inwards") && found.contains("\"flip_normals\": true"),
        "{found}"
    );
    assert_eq!(told(r#""flip_normals": true, "#), None);
    let rectangle = scene_of(&[bounds("r", "rectangle", "", "")]);
    let found = mistakes_in(&rectangle);
    assert!(
        found.contains(
            "a `rectangle` has no inside: it cannot bound a medium at r: use a `cube`, a `sphere` or a closed mesh"
        ),
        "{found}"
    );
}

/// Triangles without an area are warned of once, whatever their file's format, and positions that are not finite are refused.
#[test]
fn triangles_without_an_area_and_vertices_without_a_place_are_told() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
    let vertices = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 3 0 0\n";
    write("flat.obj", &format!("{vertices}f 1 2 3\nf 1 2 4\nf 2 2 3\n"));
    write("edge.obj", &format!("{vertices}f 1 2 3\nf 1 4\n"));
    write("bare.obj", &format!("{vertices}vn 0 0 1\nf 1//1 2//1 3//1\nf 1 3 4\n"));
    write(
        "nan.obj",
        &format!("{}f 1 2 3\n", vertices.replace("v 1 0 0", "v nan 0 0")),
    );
    let ply = |last: &str| {
        format!(
            "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\nelement face 2\n\
             property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n{last}\n3 0 1 2\n3 0 1 3\n"
        )
    };
    write("flat.ply", &ply("-7 0 0"));
    write("inf.ply", &ply("1e40 0 0"));
    write("sound.ply", &ply("0 0 1"));
    let text = |name: &str| {
        let (_, kind) = name.split_once('.').expect("an extension");
        format!(r#"{{"gem": {{"type": "{kind}", "filename": "{name}"}}, "sky": {{"type": "constant"}}}}"#)
    };
    for (name, expected) in [
        (
            "flat.obj",
            Some("2 of the 3 triangles of `gem` have no area, and nothing is seen of them: remove them from "),
        ),
        (
            "edge.obj",
            Some(
                "1 of the faces of `gem` has fewer than three corners and is left out, as in Mitsuba: remove them from ",
            ),
        ),
        (
            "flat.ply",
            Some("1 of the 2 triangles of `gem` has no area, and nothing is seen of them: remove them from "),
        ),
        (
            "bare.obj",
            Some("3 of the vertices of `gem` have no normal or no texture coordinates, unlike others: "),
        ),
        ("sound.ply", None),
    ] {
        let scene = scene::parse(&text(name), &folder.path().join("scene.json")).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            scene.warnings.len(),
            usize::from(expected.is_some()),
            "{:?}",
            scene.warnings
        );
        let told = scene.warnings.iter().zip(expected);
        assert!(
            told.clone().all(|(told, expected)| told.starts_with(expected)),
            "{told:?}"
        );
        Resident::new(&scene).expect("what has no area is passed over");
    }
    let faceted = text("bare.obj").replace(r#""filename""#, r#""face_normals": true, "filename""#);
    let faceted = scene::parse(&faceted, &folder.path().join("scene.json")).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        faceted.warnings.is_empty(),
        "no normal is looked at: {:?}",
        faceted.warnings
    );
    for (name, expected) in [
        ("nan.obj", "nan.obj: line 2: found `nan`, expected a finite number"),
        (
            "inf.ply",
            "inf.ply: the position of vertex 3 holds inf, expected finite numbers",
        ),
    ] {
        let found = flattened(&text(name), folder.path()).expect("it is no place");
        assert!(found.contains(expected), "{found}");
    }
}

/// An extinction and its `scale`, both finite, may have an infinite product, which no path gets through.
#[test]
fn extinctions_are_finite_when_they_are_scaled() {
    let told = |kind: &str, sigma_t: &str, scale: f32| {
        let text = format!(
            r#"{{"smoke": {{"type": "cube", "bsdf": {{"type": "null"}},
                "interior": {{"type": "{kind}", "sigma_t": {sigma_t}, "scale": {scale}}}}}, "sky": {{"type": "constant"}}}}"#
        );
        flattened(&text, Path::new("")).unwrap_or_default()
    };
    assert_eq!(told("homogeneous", "10", 1e37), "");
    let found = told("homogeneous", "10", 1e38);
    assert!(
        found.contains("`smoke.interior.sigma_t` is up to 10, times `scale`"),
        "{found}"
    );
    let blob = r#"{"center": [0.5, 0.5, 0.5], "radius": 0.4, "value": 3e38}"#;
    let found = told(
        "heterogeneous",
        &format!(r#"{{"type": "blobs", "resolution": [4, 4, 4], "blobs": [{blob}, {blob}]}}"#),
        1.0,
    );
    assert!(found.contains("extinction must be finite"), "{found}");
    // Where extinction varies, tentative collisions are as many as the optical thickness.
    for (scale, expected) in [(1e5, false), (1e7, true)] {
        let blob = r#"{"center": [0.5, 0.5, 0.5], "radius": 0.4, "value": 1}"#;
        let volume = format!(r#"{{"type": "blobs", "resolution": [4, 4, 4], "blobs": [{blob}]}}"#);
        let found = told("heterogeneous", &volume, scale);
        assert_eq!(
            found.contains("across its grid, expected at most 1e6 where it varies"),
            expected,
            "{found}"
        );
    }
}

#[test]
fn values_of_grid_files_are_possible() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("grid.vol");
    let write = |value: f32| {
        let mut data = vec![0.5; 12];
        data[7] = value;
        let grid = Grid {
            size: [2, 3, 2],
            channels: 1,
            bounds: io::UNIT_CUBE,
            data,
        };
        let written = io::vol::write(&path, &grid);
        written.expect("the test's folder is writable");
    };
    let told = |medium: &str| {
        let text = format!(
            r#"{{"smoke": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "heterogeneous", {medium}}}}},
                "sky": {{"type": "constant"}}}}"#
        );
        flattened(&text, folder.path()).unwrap_or_default()
    };
    let grid = r#"{"type": "gridvolume", "filename": "grid.vol"}"#;
    let blend = format!(
        r#""phase": {{"type": "blendphase", "weight": {grid}, "a": {{"type": "hg"}}, "b": {{"type": "rayleigh"}}}}"#
    );
    let [sigma_t, albedo] = ["sigma_t", "albedo"].map(|key| format!(r#""{key}": {grid}"#));
    let place = format!("{}: texel x=1 y=0 z=1, channel 0, of ", path.display());
    let cases = [
        (
            &sigma_t,
            -0.25,
            "`smoke.interior.sigma_t` is -0.25; extinction must be finite and not negative: correct the values",
        ),
        (
            &albedo,
            1.5,
            "`smoke.interior.albedo` is 1.5; an albedo must lie between 0 and 1: correct the values",
        ),
        (
            &albedo,
            -0.5,
            "`smoke.interior.albedo` is -0.5; an albedo must lie between 0 and 1: correct the values",
        ),
        (
            &blend,
            2.0,
            "`smoke.interior.phase.weight` is 2; a weight must lie between 0 and 1: correct the values",
        ),
    ];
    for (medium, value, expected) in cases {
        write(value);
        assert_eq!(told(medium), format!("{place}{expected}"));
        write(0.75);
        assert_eq!(told(medium), "");
    }
    write(f32::NAN);
    let expected = "texel x=1 y=0 z=1, channel 0, is NaN, expected finite numbers";
    assert_eq!(told(&sigma_t), format!("{}: {expected}", path.display()));
    let blobs = r#""albedo": {"type": "blobs", "resolution": 4, "base": 0.6, "blobs": [{"center": [0.5, 0.5, 0.5], "radius": 1, "value": 0.6}]}"#;
    let found = told(blobs);
    assert!(
        found.contains("`smoke.interior.albedo` is 1.") && found.contains("between 0 and 1"),
        "{found}"
    );
}

#[test]
fn textures_are_reflectances() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("texture.exr");
    let text = r#"{"f": {"type": "rectangle", "bsdf": {"type": "diffuse",
        "reflectance": {"type": "bitmap", "filename": "texture.exr"}}}, "s": {"type": "constant"}}"#;
    for (value, expected) in [(-0.5, "-0.5"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut data = vec![0.5; 12];
        data[10] = value;
        let image = Image {
            width: 2,
            height: 2,
            channels: 3,
            data,
        };
        io::image::write_exr(&path, &image).expect("the test's folder is writable");
        let expected = format!(
            "{}: pixel (1, 1) is {expected}; reflectances and other factors must be finite and not negative: correct the values",
            path.display()
        );
        assert_eq!(flattened(text, folder.path()), Some(expected));
    }
}

/// Opacities and weights of BSDFs in images are clamped to [0, 1], as in Mitsuba, with a warning; numbers must lie there.
#[test]
fn opacities_and_weights_in_images_are_clamped() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let image = Image {
        width: 2,
        height: 2,
        channels: 1,
        data: vec![1.25, 0.5, -0.5, 1.0],
    };
    io::image::write_exr(&folder.path().join("texture.exr"), &image).expect("the test's folder is writable");
    for (bsdf, path) in [
        (
            r#"{"type": "mask", "opacity": @, "a": {"type": "diffuse"}}"#,
            "f.bsdf.opacity",
        ),
        (
            r#"{"type": "blendbsdf", "weight": @, "a": {"type": "diffuse"}, "b": {"type": "diffuse"}}"#,
            "f.bsdf.weight",
        ),
    ] {
        let read = |share: &str| {
            let bsdf = bsdf.replace('@', share);
            let text = format!(r#"{{"f": {{"type": "rectangle", "bsdf": {bsdf}}}, "s": {{"type": "constant"}}}}"#);
            scene::parse(&text, &folder.path().join("scene.json"))
        };
        let scene = read(r#"{"type": "bitmap", "filename": "texture.exr"}"#).unwrap_or_else(|e| panic!("{e}"));
        let told = format!("texture.exr, which `{path}` shows, lie outside of 0 and 1, to which they are clamped");
        assert!(
            scene.warnings[0].starts_with("2 of 4 values of ") && scene.warnings[0].contains(&told),
            "{:?}",
            scene.warnings
        );
        let (_, params) = Resident::new(&scene).unwrap_or_else(|e| panic!("{e}"));
        let found = &params.parameters[params.find(path).expect("it is a parameter")];
        assert_eq!(found.values, [1.0, 0.5, 0.0, 1.0]);
        let number = read("1.25").expect_err("too large").to_string();
        assert!(number.contains("it must lie between 0 and 1"), "{number}");
    }
}

/// Weights in images must lie between 0 and 1; other quantities keep their own limits.
#[test]
fn images_of_other_quantities_keep_their_limits() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let image = Image {
        width: 1,
        height: 1,
        channels: 1,
        data: vec![1.25],
    };
    io::image::write_exr(&folder.path().join("texture.exr"), &image).expect("the test's folder is writable");
    let told = |bsdf: &str| {
        let bsdf = bsdf.replace('@', r#"{"type": "bitmap", "filename": "texture.exr"}"#);
        let text = format!(r#"{{"f": {{"type": "rectangle", "bsdf": {bsdf}}}, "s": {{"type": "constant"}}}}"#);
        flattened(&text, folder.path()).unwrap_or_default()
    };
    let roughness = told(r#"{"type": "principled", "roughness": @}"#);
    assert!(
        roughness.contains("`f.bsdf.roughness` is 1.25; a weight must lie between 0 and 1"),
        "{roughness}"
    );
    // An index of refraction may well be above one, and images of reflectances are taken as they are.
    for bsdf in [
        r#"{"type": "roughconductor", "eta": @, "k": 1}"#,
        r#"{"type": "diffuse", "reflectance": @}"#,
    ] {
        assert_eq!(told(bsdf), "");
    }
}

/// Mitsuba's names stand for the paths of prbopt's parameters in the block `optimize`, and in its penalties, too.
#[test]
fn mitsubas_names_stand_for_paths() {
    let mesh = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/meshes/panel.obj");
    let parsed = |name: &str| {
        let text = format!(
            r#"{{"m": {{"type": "obj", "filename": {mesh:?}, "paint": {{"type": "diffuse", "reflectance": {{"type": "bitmap",
                "data": {{"resolution": [2, 2], "value": 0.5}}}}}}}}, "s": {{"type": "constant"}}, "c": {{"type": "perspective"}},
            "optimize": {{"parameters": {{"{name}": {{}}}}, "references": {{"type": "constant", "value": 0}},
                "regularizers": [{{"type": "total_variation", "parameter": "m.bsdf.reflectance.data", "weight": 1}}]}}}}"#
        );
        scene::parse(&text, Path::new("test.json")).map_err(|mistakes| mistakes.to_string())
    };
    let scene = parsed("m.bsdf.reflectance.data").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let tuned = |scene: &Scene| -> Vec<String> {
        let tuned = scene.arrays().into_iter().filter(|array| array.tuning.is_some());
        tuned.map(|array| array.path.clone()).collect()
    };
    assert_eq!(tuned(&scene), ["m.paint.reflectance"]);
    let rule = scene.optimize.as_ref().expect("a block");
    assert_eq!(rule.regularizers[0].parameter, "m.paint.reflectance");
    for (name, path) in [("m.positions", "m.vertex_positions"), ("m.normals", "m.vertex_normals")] {
        let told = parsed(name).expect_err("the penalty is on what is not optimised");
        assert!(told.contains(&format!("allowed: `{path}`")), "{told}");
        assert!(!told.contains("there is no parameter"), "{told}");
    }
}

/// Images of normals have three channels and no alpha, and every normal a length.
#[test]
fn normals_come_from_images_of_three_channels() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, channels: usize, values: &[f32]| {
        let data = values.iter().copied().cycle().take(4 * channels).collect();
        let image = Image {
            width: 2,
            height: 2,
            channels,
            data,
        };
        io::image::write_exr(&folder.path().join(name), &image).expect("the test's folder is writable");
        io::image::write_png(&folder.path().join(name).with_extension("png"), &image).expect("the same");
    };
    let text = |name: &str, more: &str| {
        format!(
            r#"{{"coin": {{"type": "rectangle", "bsdf": {{"type": "normalmap", "metal": {{"type": "roughconductor"}},
                "normalmap": {{"type": "bitmap", "filename": "{name}" {more}}}}}}}, "s": {{"type": "constant"}}}}"#
        )
    };
    let read = |text: &str| scene::parse(text, &folder.path().join("test.json"));
    for (name, channels) in [("grey.exr", 1), ("alpha.exr", 4)] {
        write(name, channels, &[0.5, 0.25, 1.0, 1.0]);
        let said = read(&text(name, "")).expect_err("it has other channels").to_string();
        let expected = format!(
            "this image of normals has {channels} channels at coin.bsdf.normalmap.filename: \
             expected an image of three channels without alpha"
        );
        assert!(said.contains(&expected), "{said}");
    }
    write("normals.exr", 3, &[0.5, 0.25, 1.0]);
    assert_eq!(flattened(&text("normals.exr", ""), folder.path()), None);
    for (more, warnings) in [("", 1), (r#", "raw": true"#, 0)] {
        let scene = read(&text("normals.png", more)).expect("it is sound");
        let decoded = scene
            .warnings
            .iter()
            .filter(|warning| warning.contains("decoded as colours"));
        assert_eq!(decoded.count(), warnings, "{:?}", scene.warnings);
    }
    write("flat.exr", 3, &[0.5, 0.25, 1.0, 0.5, 0.5, 0.5]);
    let said = flattened(&text("flat.exr", ""), folder.path());
    let expected = "texel x=1 y=0 of `coin.bsdf.normalmap` is a normal of length zero: 0.5, 0.5, 1 is the surface's own; \
                    correct the values";
    assert_eq!(
        said,
        Some(format!("{}: {expected}", folder.path().join("flat.exr").display()))
    );
}

/// With another normal a mirror shows another place, which derivatives at fixed paths do not follow: such normals are refused.
#[test]
fn normals_of_mirrors_are_not_optimised() {
    let told = |bsdf: &str| {
        let text = format!(
            r#"{{"camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
                "coin": {{"type": "rectangle", "bsdf": {{"type": "twosided", "b": {{"type": "bumpmap", "c": {bsdf},
                    "heights": {{"type": "bitmap", "data": {{"resolution": [4, 4], "value": 0}}}}}}}}}},
                "s": {{"type": "constant"}},
                "optimize": {{"parameters": {{"coin.bsdf.b.heights": {{}}}}, "references": {{"type": "constant", "value": 0}}}}}}"#
        );
        scene::parse(&text, Path::new("test.json"))
            .err()
            .map(|mistakes| mistakes.to_string())
    };
    assert_eq!(told(r#"{"type": "roughconductor"}"#), None);
    assert_eq!(told(r#"{"type": "roughplastic"}"#), None);
    for smooth in ["conductor", "plastic"] {
        let said = told(&format!(r#"{{"type": "{smooth}"}}"#)).expect("it mirrors");
        let expected = "`coin.bsdf.b.heights` cannot be optimised: another normal mirrors or bends light elsewhere at \
                        optimize.parameters.coin.bsdf.b.heights: only derivatives at fixed paths are known; those of rough BSDFs \
                        under it are, and the integrator `prb_attached` moves paths";
        assert!(said.contains(expected), "{said}");
    }
}

/// Textures, uniform ones too, are parameters under the path of their quantity, also with Mitsuba's endings.
#[test]
fn textures_are_parameters() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let image = Image {
        width: 2,
        height: 2,
        channels: 3,
        data: vec![0.5; 12],
    };
    io::image::write_exr(&folder.path().join("texture.exr"), &image).expect("the test's folder is writable");
    let tuned = |path: &str, rule: &str| {
        let text = format!(
            r#"{{"f": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {{"type": "bitmap", "filename": "texture.exr"}}}}}},
            "g": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": 0.2}}}}, "s": {{"type": "constant"}}, "c": {{"type": "perspective"}},
            "optimize": {{"parameters": {{"{path}": {{{rule}}}}}, "references": {{"type": "constant", "value": 0}}}}}}"#
        );
        let scene = scene::parse(&text, &folder.path().join("test.json")).map_err(|mistakes| mistakes.to_string())?;
        let (_, params) = Resident::new(&scene).map_err(|error| error.to_string())?;
        let tuned = params.parameters.into_iter().find(|p| p.tuning.is_some());
        Ok::<_, String>(tuned.expect("one is optimised"))
    };
    for (name, path, values) in [
        ("f.bsdf.reflectance", "f.bsdf.reflectance", 12),
        ("f.bsdf.reflectance.data", "f.bsdf.reflectance", 12),
        ("g.bsdf.reflectance.value", "g.bsdf.reflectance", 3),
    ] {
        let parameter = tuned(name, "").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((parameter.path.as_str(), parameter.values.len()), (path, values));
        assert_eq!(parameter.tuning.expect("it is tuned").bounds, [0.0, 1.0]);
    }
    let coarse = tuned("f.bsdf.reflectance", r#""initial": 0.25, "start_resolution": [3, 1]"#).expect("it is sound");
    assert_eq!((coarse.shape.size, coarse.values), ([3, 1, 1], vec![0.25; 9]));
    let found = tuned("f.bsdf.colour", "").expect_err("there is none");
    assert!(found.contains("there is no parameter `f.bsdf.colour`"), "{found}");
    let found = tuned("g.bsdf.reflectance", r#""bounds": [0, 2]"#).expect_err("no reflectance is above one");
    assert!(
        found.contains("the bounds 0 and 2 let in what is not possible"),
        "{found}"
    );
}

#[test]
fn only_some_files_say_where_their_grid_lies() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let grid = Grid {
        size: [2, 2, 2],
        channels: 1,
        bounds: [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]],
        data: vec![0.5; 8],
    };
    let told = |name: &str| {
        let medium = format!(r#""sigma_t": {{"type": "gridvolume", "filename": "{name}", "use_grid_bbox": true}}"#);
        let text = scene_of(&[format!(
            r#""b": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "heterogeneous", {medium}}}}}"#
        )]);
        scene::parse(&text, &folder.path().join("test.json"))
            .expect_err("it has no place")
            .to_string()
    };
    io::npy::write(&folder.path().join("grid.npy"), &grid).expect("the test's folder is writable");
    let found = told("grid.npy");
    assert!(
        found.contains("`use_grid_bbox` of a .npy file at b.interior.sigma_t: only a .vol or .vdb file"),
        "{found}"
    );
    io::vol::write(&folder.path().join("grid.vol"), &grid).expect("the test's folder is writable");
    let found = told("grid.vol");
    assert!(
        found.contains("is empty at b.interior.sigma_t: place the grid with `to_world`"),
        "{found}"
    );
}

#[test]
fn environments_shine_everywhere_and_nowhere_less_than_nothing() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("sky.exr");
    let write = |side: usize, value: f32| {
        let mut data = vec![0.5; 3 * side * side];
        data[2] = value;
        let image = Image {
            width: side,
            height: side,
            channels: 3,
            data,
        };
        io::image::write_exr(&path, &image).expect("the test's folder is writable");
    };
    let text = r#"{"s": {"type": "envmap", "filename": "sky.exr"}, "f": {"type": "rectangle"}}"#;
    write(2, -0.5);
    let expected = format!(
        "{}: texel x=0 y=0 z=0, channel 2, of `s.data` is -0.5; radiance must lie between 0 and 1e30: correct the values",
        path.display()
    );
    assert_eq!(flattened(text, folder.path()), Some(expected));
    write(2, f32::NAN);
    let expected = format!("{}: pixel (0, 0) is not finite; replace it", path.display());
    assert_eq!(flattened(text, folder.path()), Some(expected));
    let tuned = r#"{"s": {"type": "envmap", "data": {"resolution": [4, 2]}}, "f": {"type": "rectangle"},
        "c": {"type": "perspective"}, "optimize": {"parameters": {"s.data": {"bounds": [null, 1]}},
        "references": {"type": "constant", "value": 0}}}"#;
    let found = mistakes_in(tuned);
    assert!(
        found.contains("the bounds null and 1 let in what is not possible at optimize.parameters.s.data.bounds"),
        "{found}"
    );
    write(1, 0.5);
    let found = scene::parse(text, &folder.path().join("test.json"))
        .expect_err("it is too small")
        .to_string();
    let expected =
        "an environment of 1 × 1 pixels at s.filename: expected 2 × 2 or more; for one colour use a `constant`";
    assert!(found.contains(expected), "{found}");
}
