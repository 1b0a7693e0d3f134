//! Shapes, scattering media and lights: how they are read, and their defaults.

use std::path::PathBuf;

use glam::{Affine2, Vec2, Vec3A};
use prbopt::io::{self, Grid, Image};
use prbopt::params::Kind;
use prbopt::scene::{
    self, Bsdf, Estimator, Geometry, Gradient, Integrator, Light, LightKind, Lookup, Medium, MeshFormat, Model, Phase,
    Rules, Scene, Source, Surface, Texture, Variant, Wrap,
};

use super::{WORLD, edited_world, mistakes_in, read};

/// A scene of these objects.
pub(super) fn objects(text: &str) -> Scene {
    read(&format!("{{{text}}}"))
}

/// The medium inside a cube.
fn medium(text: &str) -> Medium {
    let cube = r#""type": "cube", "bsdf": {"type": "null"}"#;
    let mut scene = objects(&format!(r#""box": {{{cube}, "interior": {{{text}}}}}"#));
    scene.world.media.remove(0)
}

fn surface(text: &str) -> Surface {
    objects(&format!(r#""shape": {{{text}}}"#)).world.surfaces.remove(0)
}

/// Words are read in small and in capital letters, as Mitsuba reads them.
#[test]
fn words_have_no_case() {
    let of = |distribution: &str, index: &str| {
        let bsdf = format!(r#"{{"type": "roughdielectric", "distribution": "{distribution}", "int_ior": "{index}"}}"#);
        format!("{:?}", surface(&format!(r#""type": "sphere", "bsdf": {bsdf}"#)).bsdf)
    };
    assert_eq!(of("GGX", "Water"), of("ggx", "water"));
    assert_ne!(of("GGX", "Water"), of("Beckmann", "BK7"));
    for format in ["openexr", "exr", "OpenEXR"] {
        let film = format!(r#"{{"type": "hdrfilm", "file_format": "{format}", "pixel_format": "RGBA"}}"#);
        let scene = objects(&format!(r#""camera": {{"type": "perspective", "film": {film}}}"#));
        assert_eq!(scene.sensors[0].pixel_format, scene::PixelFormat::Rgba);
    }
}

fn light(text: &str) -> Light {
    objects(&format!(r#""light": {{{text}}}"#)).world.lights.remove(0)
}

fn sigma_t(text: &str) -> Lookup {
    medium(&format!(r#""type": "heterogeneous", "sigma_t": {text}"#)).sigma_t
}

fn values(lookup: &Lookup) -> Vec<f32> {
    lookup
        .array
        .source
        .materialise(lookup.array.shape)
        .expect("needs no file")
}

#[test]
fn defaults_of_media() {
    for name in ["heterogeneous", "homogeneous"] {
        let medium = medium(&format!(r#""type": "{name}""#));
        assert_eq!((medium.path.as_str(), medium.scale), ("box.interior", 1.0));
        assert_eq!(
            (values(&medium.sigma_t), values(&medium.albedo)),
            (vec![1.0], vec![0.75])
        );
        assert!(medium.sigma_t.constant && medium.albedo.constant && medium.emission.is_none());
        assert!(matches!(medium.phase, Phase::Isotropic));
        assert_eq!(medium.sigma_t.array.path, "box.interior.sigma_t");
        assert_eq!(medium.sigma_t.array.kind, Kind::Value);
    }
    medium(r#""type": "homogeneous", "sample_emitters": true, "has_spectral_extinction": true"#);
}

#[test]
fn a_volume_has_one_channel_or_three() {
    let cases = [
        ("2", 1, true),
        ("[1, 2, 3]", 3, true),
        (r#"{"type": "rgb", "value": 2}"#, 3, true),
        (r#"{"type": "constvolume"}"#, 1, true),
        (r#"{"type": "constvolume", "value": [1, 2, 3]}"#, 3, true),
        (r#"{"type": "gridvolume", "resolution": 2}"#, 1, false),
        (
            r#"{"type": "gridvolume", "resolution": 2, "value": [1, 2, 3]}"#,
            3,
            false,
        ),
        (r#"{"type": "plume", "resolution": 8}"#, 1, false),
        (r#"{"type": "plume", "resolution": 8, "value": [1, 2, 3]}"#, 3, false),
        (
            r#"{"type": "blobs", "resolution": 2, "blobs": [{"center": [0, 0, 0], "radius": 1, "value": [1, 2, 3]}]}"#,
            3,
            false,
        ),
    ];
    for (text, channels, constant) in cases {
        let lookup = sigma_t(text);
        assert_eq!(
            (lookup.array.shape.channels, lookup.constant),
            (channels, constant),
            "{text}"
        );
        assert_eq!(lookup.array.kind == Kind::Grid, !constant, "{text}");
        assert_eq!(values(&lookup).len(), lookup.array.shape.len(), "{text}");
    }
}

#[test]
fn a_plume_is_the_programs_own_smoke() {
    let plume = sigma_t(r#"{"type": "plume", "resolution": [16, 32, 16], "seed": 3, "value": 20}"#);
    assert_eq!(plume.array.shape.size, [16, 32, 16]);
    assert_eq!(
        plume.array.source,
        Source::Plume {
            seed: 3,
            value: vec![20.0]
        }
    );
    let peak = values(&plume).into_iter().fold(0.0, f32::max);
    assert!((12.0..=20.0).contains(&peak), "{peak}");
}

#[test]
fn a_volume_is_placed_in_the_world() {
    let place = |lookup: &Lookup, p: [f32; 3]| lookup.to_world.transform_point3a(Vec3A::from(p));
    let grid = sigma_t(
        r#"{"type": "gridvolume", "resolution": 2, "to_world": [{"scale": 2}, {"translate": [-1, -1, -1]}],
            "filter_type": "nearest", "wrap_mode": "mirror", "raw": true, "accel": false}"#,
    );
    assert_eq!(place(&grid, [0.0, 0.5, 1.0]), Vec3A::new(-1.0, 0.0, 1.0));
    assert_eq!((grid.nearest, grid.wrap), (true, Wrap::Mirror));
    let plain = sigma_t(r#"{"type": "gridvolume", "resolution": 2}"#);
    assert_eq!(place(&plain, [0.0, 0.5, 1.0]), Vec3A::new(0.0, 0.5, 1.0));
    assert_eq!((plain.nearest, plain.wrap), (false, Wrap::Clamp));
}

/// A folder with the grids `density.vol` (one channel) and `two.vol` (two), and a scene whose density is `volume`.
fn with_grids(volume: &str) -> Result<Scene, String> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let grid = |channels, bounds| Grid {
        size: [2, 1, 1],
        channels,
        bounds,
        data: vec![0.5; 2 * channels],
    };
    let boxed = [[1.0, 2.0, 3.0], [2.0, 4.0, 7.0]];
    let at = |name: &str| folder.path().join(name);
    io::vol::write(&at("density.vol"), &grid(1, boxed)).expect("is written");
    io::vol::write(&at("two.vol"), &grid(2, io::UNIT_CUBE)).expect("is written");
    io::vol::write(&at("flat.vol"), &grid(3, [[1.0; 3], [1.0, 2.0, 2.0]])).expect("is written");
    let before = r#"{"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.5}"#;
    scene::parse(&edited_world(before, volume), &at("scene.json")).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn a_grid_file_may_state_where_it_lies() {
    let volume =
        r#"{"type": "gridvolume", "filename": "density.vol", "use_grid_bbox": true, "to_world": [{"scale": 2}]}"#;
    let scene = with_grids(volume).unwrap_or_else(|e| panic!("{e}"));
    let to_world = scene.world.media[0].sigma_t.to_world;
    assert_eq!(to_world.transform_point3a(Vec3A::ZERO), Vec3A::new(2.0, 4.0, 6.0));
    assert_eq!(to_world.transform_point3a(Vec3A::ONE), Vec3A::new(4.0, 8.0, 14.0));
    let again = scene::parse(&scene.resolved.to_string(), &PathBuf::from("elsewhere.json"));
    // The folder is gone: the missing file is the only mistake.
    assert!(again.is_err_and(|mistakes| mistakes.iter().count() == 1));
    let unplaced = with_grids(r#"{"type": "gridvolume", "filename": "density.vol"}"#).expect("is fine");
    assert_eq!(unplaced.world.media[0].sigma_t.to_world, glam::Affine3A::IDENTITY);
}

#[test]
fn grid_files_that_do_not_fit_are_refused() {
    let found = with_grids(r#"{"type": "gridvolume", "filename": "two.vol"}"#).expect_err("has two channels");
    assert!(
        found.contains("has 2 channels") && found.contains("expected 1, or 3"),
        "{found}"
    );
    let flat = r#"{"type": "gridvolume", "filename": "flat.vol", "use_grid_bbox": true}"#;
    let found = with_grids(flat).expect_err("its box is flat");
    assert!(found.contains("bounding box") && found.contains("is empty"), "{found}");
}

#[test]
fn phase_functions() {
    let phase = |text: &str| medium(&format!(r#""type": "homogeneous", "p": {text}"#)).phase;
    assert!(matches!(phase(r#"{"type": "isotropic"}"#), Phase::Isotropic));
    assert!(matches!(phase(r#"{"type": "rayleigh"}"#), Phase::Rayleigh));
    let Phase::Hg { g } = phase(r#"{"type": "hg"}"#) else {
        panic!("is Henyey–Greenstein")
    };
    assert_eq!(
        (g.path.as_str(), g.source),
        ("box.interior.p.g", Source::Fill(vec![0.8]))
    );
    let blend = r#"{"type": "blendphase", "weight": 0.25, "z": {"type": "hg", "g": -0.5}, "a": {"type": "rayleigh"}}"#;
    let Phase::Blend { weight, phases } = phase(blend) else {
        panic!("is a blend")
    };
    assert_eq!(
        (weight.array.path.as_str(), values(&weight)),
        ("box.interior.p.weight", vec![0.25])
    );
    let [Phase::Hg { g }, Phase::Rayleigh] = *phases else {
        panic!("the file gives the order: {phases:?}")
    };
    assert_eq!(g.path, "box.interior.p.z.g");
}

#[test]
fn a_medium_that_is_used_twice_is_one_medium() {
    let scene = objects(
        r#""camera": {"type": "perspective", "medium": {"type": "ref", "id": "fog"}},
           "fog": {"type": "homogeneous"},
           "a": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "ref", "id": "fog"}},
           "b": {"type": "sphere", "bsdf": {"type": "null"}, "exterior": {"type": "ref", "id": "a.interior"},
                 "interior": {"type": "homogeneous"}},
           "sky": {"type": "constant"}"#,
    );
    let [a, b] = scene.world.surfaces.as_slice() else {
        panic!("two shapes")
    };
    assert_eq!((a.interior, a.exterior), (Some(0), None));
    assert_eq!((b.interior, b.exterior), (Some(1), Some(0)));
    assert_eq!(scene.sensors[0].medium, Some(0));
    let paths: Vec<_> = scene.world.media.iter().map(|medium| medium.path.as_str()).collect();
    assert_eq!(paths, ["a.interior", "b.interior"]);
    assert_eq!(scene.warnings, Vec::<String>::new());
}

#[test]
fn paths_of_arrays_are_unique() {
    // Everything that can be shared is: a volume, a phase function, an emitter, a whole shape.
    let scene = objects(
        r#""density": {"type": "gridvolume", "resolution": 2, "value": 1},
           "forward": {"type": "hg"},
           "glow": {"type": "area"},
           "a": {"type": "cube", "bsdf": {"type": "null"}, "e": {"type": "ref", "id": "glow"},
                 "interior": {"type": "heterogeneous", "sigma_t": {"type": "ref", "id": "density"},
                              "emission": {"type": "ref", "id": "density"}, "p": {"type": "ref", "id": "forward"}}},
           "b": {"type": "cube", "bsdf": {"type": "null"}, "e": {"type": "ref", "id": "glow"},
                 "interior": {"type": "heterogeneous", "sigma_t": {"type": "ref", "id": "density"},
                              "p": {"type": "blendphase", "weight": 0.5, "x": {"type": "ref", "id": "forward"},
                                    "y": {"type": "ref", "id": "forward"}}}},
           "c": {"type": "ref", "id": "a"},
           "d": {"type": "point"},
           "sky": {"type": "constant"}"#,
    );
    assert_eq!(scene.world.media.len(), 2);
    let mut paths: Vec<_> = scene.arrays().iter().map(|array| array.path.clone()).collect();
    let count = paths.len();
    assert_eq!(count, 4 + 5 + 3 + 1 + 1);
    for path in [
        "b.interior.p.y.g",
        "b.interior.p.weight",
        "c.e.radiance",
        "d.intensity",
        "sky.radiance",
    ] {
        assert!(paths.iter().any(|found| found == path), "{path} in {paths:?}");
    }
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), count);
}

#[test]
fn defaults_of_shapes() {
    let cube = surface(r#""type": "cube""#);
    assert_eq!((cube.geometry, cube.flip_normals), (Geometry::Cube, false));
    assert_eq!(
        (cube.interior, cube.exterior, cube.emitter.is_some()),
        (None, None, false)
    );
    assert_eq!(cube.to_world, glam::Affine3A::IDENTITY);
    let sphere = surface(r#""type": "sphere""#).geometry;
    let (center, radius) = ([0.0; 3], 1.0);
    assert_eq!(sphere, Geometry::Sphere { center, radius });
    assert_eq!(surface(r#""type": "rectangle""#).geometry, Geometry::Rectangle);
    assert_eq!(surface(r#""type": "disk""#).geometry, Geometry::Disk);
    let ends = [[0.0; 3], [0.0, 0.0, 1.0]];
    let cylinder = surface(r#""type": "cylinder""#).geometry;
    assert_eq!(cylinder, Geometry::Cylinder { ends, radius });
}

#[test]
fn shapes_without_bsdf_are_grey_and_emitters_black() {
    let reflectance = |text: &str| match diffuse(surface(text).bsdf) {
        Texture::Constant(color) => color.source,
        other => panic!("{other:?}"),
    };
    let grey = |x: f32| Source::Fill(vec![x; 3]);
    assert_eq!(reflectance(r#""type": "cube""#), grey(0.5));
    assert_eq!(reflectance(r#""type": "cube", "bsdf": {"type": "diffuse"}"#), grey(0.5));
    assert_eq!(reflectance(r#""type": "cube", "light": {"type": "area"}"#), grey(0.0));
    let both =
        r#""type": "cube", "light": {"type": "area"}, "bsdf": {"type": "diffuse", "reflectance": [0.1, 0.2, 0.3]}"#;
    assert_eq!(reflectance(both), Source::Fill(vec![0.1, 0.2, 0.3]));
    let emitter = surface(both).emitter.expect("the shape emits");
    assert_eq!((emitter.directional, emitter.sampling_weight), (false, 1.0));
    let Texture::Constant(radiance) = emitter.radiance else {
        panic!("one colour")
    };
    assert_eq!(
        (radiance.path.as_str(), radiance.source),
        ("shape.light.radiance", Source::Fill(vec![1.0; 3]))
    );
}

#[test]
fn meshes_are_files_that_are_there() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (name, expected, flipped) in [("obj", MeshFormat::Obj, true), ("ply", MeshFormat::Ply, false)] {
        let mesh = folder.path().join(format!("mesh.{name}"));
        std::fs::write(&mesh, "").expect("is written");
        let text = format!(r#"{{"m": {{"type": "{name}", "filename": "mesh.{name}"}}}}"#);
        let scene = scene::parse(&text, &folder.path().join("s.json")).unwrap_or_else(|e| panic!("{e}"));
        let expected = Geometry::Mesh {
            path: mesh,
            format: expected,
            face_normals: false,
            flip_tex_coords: flipped,
        };
        assert_eq!(scene.world.surfaces[0].geometry, expected);
        assert!(scene.resolved["m"]["flip_tex_coords"] == flipped);
    }
    std::fs::write(folder.path().join("mesh"), "").expect("is written");
    let text = r#"{"m": {"type": "serialized", "filename": "mesh", "shape_index": 3, "face_normals": true}}"#;
    let scene = scene::parse(text, &folder.path().join("s.json")).unwrap_or_else(|e| panic!("{e}"));
    let Geometry::Mesh {
        format, face_normals, ..
    } = scene.world.surfaces[0].geometry
    else {
        panic!("a mesh")
    };
    assert_eq!((format, face_normals), (MeshFormat::Serialized(3), true));
    assert_eq!(scene.resolved["m"]["shape_index"], 3);
}

#[test]
fn instances_show_groups_where_they_stand() {
    let scene = objects(
        r#""instance": {"type": "instance", "group": {"type": "ref", "id": "two"}, "to_world": [{"translate": [0, 0, 5]}]},
           "two": {"type": "shapegroup",
               "a": {"type": "cube", "to_world": [{"scale": 2}], "bsdf": {"type": "ref", "id": "paint"}}, "b": {"type": "disk"}},
           "own": {"type": "instance", "to_world": [{"scale": 3}],
               "one": {"type": "shapegroup", "c": {"type": "sphere", "to_world": [{"translate": [1, 0, 0]}]}}},
           "again": {"type": "instance", "group": {"type": "ref", "id": "own.one"}},
           "alone": {"type": "rectangle"},
           "paint": {"type": "diffuse"}"#,
    );
    let placed: Vec<_> = scene.world.placed().collect();
    let names: Vec<&str> = placed.iter().map(|surface| surface.name.as_str()).collect();
    assert_eq!(names, ["alone", "two.a", "two.b", "own.one.c", "own.one.c"]);
    let corners = placed
        .iter()
        .map(|s| s.to_world.transform_point3a(Vec3A::ONE).to_array());
    let expected = [
        [1.0; 3],
        [2.0, 2.0, 7.0],
        [1.0, 1.0, 6.0],
        [6.0, 3.0, 3.0],
        [2.0, 1.0, 1.0],
    ];
    assert!(corners.eq(expected), "the group's own transform comes first");
    let paths: Vec<&str> = scene.arrays().iter().map(|array| array.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "alone.bsdf.reflectance",
            "paint.reflectance",
            "two.b.bsdf.reflectance",
            "own.one.c.bsdf.reflectance"
        ],
        "one for all instances"
    );
}

/// The reflectance of a diffuse BSDF.
fn diffuse(bsdf: Bsdf) -> Texture {
    match bsdf {
        Bsdf::Material(mut material) if material.model == Model::Diffuse => material.inputs.remove(0).texture,
        other => panic!("{other:?} is not diffuse"),
    }
}

fn texture(text: &str) -> Texture {
    diffuse(
        surface(&format!(
            r#""type": "cube", "b": {{"type": "diffuse", "reflectance": {text}}}"#
        ))
        .bsdf,
    )
}

#[test]
fn checkerboards() {
    let Texture::Checkerboard { colors, to_uv } = texture(r#"{"type": "checkerboard"}"#) else {
        panic!("is a checkerboard")
    };
    let colors = colors.map(|color| (color.path, color.source));
    let named = |key: &str, grey: f32| (format!("shape.b.reflectance.{key}"), Source::Fill(vec![grey; 3]));
    assert_eq!(
        (colors, to_uv),
        ([named("color0", 0.4), named("color1", 0.2)], Affine2::IDENTITY)
    );
    let uv = |text: &str| match texture(&format!(r#"{{"type": "checkerboard", "to_uv": {text}}}"#)) {
        Texture::Checkerboard { to_uv, .. } => to_uv.transform_point2(Vec2::new(1.0, 0.5)),
        other => panic!("{other:?}"),
    };
    assert_eq!(uv(r#"[{"scale": 2}, {"translate": [1, 0]}]"#), Vec2::new(3.0, 1.0));
    assert_eq!(
        uv(r#"[{"translate": [1, 0]}, {"scale": [2, 4, 1]}]"#),
        Vec2::new(4.0, 2.0)
    );
    assert_eq!(uv("[[2, 0, 1], [0, 3, 0], [0, 0, 1]]"), Vec2::new(3.0, 1.5));
    assert_eq!(
        uv("[[2, 0, 9, 1], [0, 3, 9, 0], [9, 9, 9, 9], [0, 0, 9, 1]]"),
        Vec2::new(3.0, 1.5)
    );
    let turned = uv(r#"[{"rotate": {"axis": [0, 0, 1], "angle": 90}}]"#);
    assert!(turned.distance(Vec2::new(-0.5, 1.0)) < 1e-6, "{turned}");
}

#[test]
fn bitmaps() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let image = Image {
        width: 2,
        height: 2,
        channels: 3,
        data: vec![0.5; 12],
    };
    io::image::write_png(&folder.path().join("wood.png"), &image).expect("is written");
    let map = |more: &str| {
        let text = format!(
            r#"{{"m": {{"type": "cube", "b": {{"type": "diffuse", "reflectance": {{"type": "bitmap", "filename": "wood.png"{more}}}}}}}}}"#
        );
        let mut scene = scene::parse(&text, &folder.path().join("s.json")).unwrap_or_else(|e| panic!("{e}"));
        match diffuse(scene.world.surfaces.remove(0).bsdf) {
            Texture::Bitmap(map) => map,
            other => panic!("{other:?}"),
        }
    };
    let source = |raw| Source::Reflectance {
        path: folder.path().join("wood.png"),
        raw,
    };
    let plain = map("");
    assert_eq!(plain.data.path, "m.b.reflectance");
    assert_eq!((plain.data.kind, plain.data.shape.size), (Kind::Texture, [2, 2, 1]));
    assert_eq!(plain.data.source, source(false));
    assert_eq!((plain.nearest, plain.wrap), (false, Wrap::Repeat));
    let other = map(r#", "raw": true, "filter_type": "nearest", "wrap_mode": "clamp", "accel": true"#);
    assert_eq!(other.data.source, source(true));
    assert_eq!((other.nearest, other.wrap), (true, Wrap::Clamp));
}

#[test]
fn lights() {
    let point = light(r#""type": "point""#);
    let position = [0.0; 3];
    assert_eq!(point.kind, LightKind::Point { position });
    assert_eq!(
        (point.intensity.path.as_str(), point.intensity.source),
        ("light.intensity", Source::Fill(vec![1.0; 3]))
    );
    let moved = light(r#""type": "point", "to_world": [{"translate": [1, 2, 3]}, {"scale": 2}]"#);
    let position = [2.0, 4.0, 6.0];
    assert_eq!(moved.kind, LightKind::Point { position });
    let sun = light(r#""type": "directional", "irradiance": [1, 2, 3]"#);
    let direction = [0.0, 0.0, 1.0];
    assert_eq!(sun.kind, LightKind::Directional { direction });
    assert_eq!(
        (sun.intensity.path.as_str(), sun.intensity.source),
        ("light.irradiance", Source::Fill(vec![1.0, 2.0, 3.0]))
    );
    let direction = [0.0, -1.0, 0.0];
    for text in [
        r#""direction": [0, -5, 0]"#,
        r#""to_world": [{"look_at": {"origin": [0, 9, 0], "target": [0, 0, 0], "up": [1, 0, 0]}}]"#,
    ] {
        let sun = light(&format!(r#""type": "directional", {text}"#));
        assert_eq!(sun.kind, LightKind::Directional { direction }, "{text}");
    }
    let LightKind::Spot { cutoff, beam, .. } = light(r#""type": "spot""#).kind else {
        panic!("is a spot")
    };
    assert!((cutoff - 20f32.to_radians()).abs() < 1e-6 && (beam - 15f32.to_radians()).abs() < 1e-6);
    let several = objects(
        r#""a": {"type": "point"}, "b": {"type": "point"}, "c": {"type": "spot"}, "e": {"type": "envmap", "data": {"resolution": [4, 2]}}"#,
    );
    assert_eq!(several.world.lights.len(), 3);
    assert!(several.background.array().is_some());
}

#[test]
fn integrators() {
    let integrator = |text: &str| objects(&format!(r#""i": {{{text}}}"#)).integrator;
    let default = Integrator {
        rules: Rules::Volpath,
        estimator: Estimator::PathReplay,
        max_depth: None,
        rr_depth: 5,
        hide_emitters: false,
        gradient: Gradient::Auto,
        attached: false,
        inverted: None,
    };
    assert_eq!(integrator(r#""type": "volpath""#), default);
    assert_eq!(objects("").integrator, default);
    let six = Integrator {
        max_depth: Some(6),
        ..default
    };
    assert_eq!(integrator(r#""type": "prbvolpath""#), six);
    let estimator = Estimator::Tape;
    let tape = Integrator { estimator, ..six };
    assert_eq!(integrator(r#""type": "advolpath""#), tape);
    for (text, variant) in [
        ("", Variant::Unbiased),
        (r#", "variant": "biased""#, Variant::Biased),
        (r#", "variant": "pipelined""#, Variant::Pipelined),
        (r#", "variant": "biased_pipelined""#, Variant::BiasedPipelined),
    ] {
        let estimator = Estimator::Radiative(variant);
        assert_eq!(estimator.is_pipelined(), text.contains("pipelined"));
        let found = integrator(&format!(r#""type": "rbvolpath"{text}"#));
        assert_eq!(found, Integrator { estimator, ..six });
    }
    assert_eq!(integrator(r#""type": "prbvolpath", "max_depth": -1"#), default);
    assert_eq!(
        integrator(r#""type": "volpathmis", "use_spectral_mis": false"#),
        default
    );
    for (name, rules, max_depth, estimator) in [
        ("path", Rules::Path, None, Estimator::PathReplay),
        ("direct", Rules::Prb, Some(2), Estimator::PathReplay),
        ("prb", Rules::Prb, Some(6), Estimator::PathReplay),
        ("prb_basic", Rules::Basic, Some(6), Estimator::PathReplay),
        ("ad", Rules::Prb, Some(6), Estimator::Tape),
        ("rb", Rules::Prb, Some(6), Estimator::Radiative(Variant::Unbiased)),
    ] {
        let expected = Integrator {
            rules,
            max_depth,
            estimator,
            ..default
        };
        assert_eq!(integrator(&format!(r#""type": "{name}""#)), expected, "{name}");
    }
    for (counts, rules, warnings) in [
        (r#""shading_samples": 1"#, Rules::Prb, 0),
        (r#""shading_samples": 2"#, Rules::Prb, 1),
        (r#""emitter_samples": 0"#, Rules::Basic, 0),
        (r#""shading_samples": 0, "bsdf_samples": 1"#, Rules::Basic, 0),
        (r#""bsdf_samples": 0"#, Rules::Prb, 1),
    ] {
        let text = format!(r#""type": "direct", {counts}"#);
        let scene = read(&edited_world(r#""type": "prbvolpath""#, &text));
        let integrator = &scene.integrator;
        let told = scene
            .warnings
            .iter()
            .filter(|text| text.starts_with("`direct`"))
            .count();
        assert_eq!(
            (integrator.rules, integrator.max_depth, told),
            (rules, Some(2), warnings),
            "{counts}: {:?}",
            scene.warnings
        );
    }
    let attached = integrator(r#""type": "prb_attached""#);
    let detached = integrator(r#""type": "prb""#);
    assert_eq!(
        attached,
        Integrator {
            attached: true,
            ..detached
        }
    );
    let other = integrator(
        r#""type": "volpath", "max_depth": 0, "rr_depth": 1, "hide_emitters": true, "gradient": "free_flight""#,
    );
    let expected = Integrator {
        rules: Rules::Volpath,
        estimator: Estimator::PathReplay,
        max_depth: Some(0),
        rr_depth: 1,
        hide_emitters: true,
        gradient: Gradient::FreeFlight,
        attached: false,
        inverted: None,
    };
    assert_eq!(other, expected);
}

#[test]
fn bounds_keep_values_possible_unless_told_otherwise() {
    let parameters = r#""box.interior.sigma_t": {}, "box.interior.albedo": {}, "box.interior.emission": {},
        "box.interior.phase.g": {}, "floor.bsdf.reflectance": {}, "lamp.emitter.radiance": {}, "sun.irradiance": {},
        "sky.radiance": {}"#;
    let text = edited_world(r#""box.interior.sigma_t": {}"#, parameters)
        .replace("\"albedo\":", "\"emission\": 1, \"albedo\":");
    let scene = read(&text);
    let bounds: Vec<_> = scene
        .arrays()
        .iter()
        .filter_map(|array| array.tuning)
        .map(|tuning| tuning.bounds)
        .collect();
    let (light, share) = ([0.0, f32::INFINITY], [0.0, 1.0]);
    assert_eq!(bounds, [light, light, share, light, [-0.99, 0.99], share, light, light]);
}

#[test]
fn sparsity_is_of_any_extinction() {
    let optimize = r#""references": {"type": "constant", "value": 0.5},
        "regularizers": [{"type": "sparsity", "parameter": "box.interior.sigma_t", "weight": 1},
                         {"type": "total_variation", "parameter": "box.interior.sigma_t", "weight": 1}]"#;
    let scene = read(&edited_world(
        r#""references": {"type": "constant", "value": 0.5}"#,
        optimize,
    ));
    assert_eq!(scene.optimize.expect("is there").regularizers.len(), 2);
}

#[test]
fn only_grids_are_refined() {
    let text = edited_world(
        r#""box.interior.sigma_t": {}"#,
        r#""box.interior.sigma_t": {"start_resolution": 2}, "box.interior.albedo": {"initial": 0.5}"#,
    );
    let scene = read(&text);
    let medium = &scene.world.media[0];
    assert_eq!(
        (medium.sigma_t.array.kind, medium.sigma_t.array.shape.size),
        (Kind::Grid, [2; 3])
    );
    assert_eq!(
        (medium.albedo.array.kind, medium.albedo.array.shape.channels),
        (Kind::Value, 3)
    );
    assert_eq!(values(&medium.albedo), [0.5; 3]);
}

#[test]
fn what_is_probably_not_meant_is_warned_of() {
    let cases = [
        ("\"bsdf\": {\"type\": \"null\"},", "", "without BSDF is opaque"),
        (
            "\"bsdf\": {\"type\": \"null\"}",
            "\"bsdf\": {\"type\": \"diffuse\"}",
            "the medium in it is never seen",
        ),
        (
            r#""bsdf": {"type": "diffuse", "reflectance": 0.4}"#,
            r#""bsdf": {"type": "null"}"#,
            "the shape `floor` is invisible",
        ),
        (
            r#""sun": {"type": "directional"}"#,
            r#""sun": {"type": "directional", "to_world": [{"scale": 2}]}"#,
            "`sun.to_world` scales the direction",
        ),
    ];
    for (from, to, expected) in cases {
        let warnings = read(&edited_world(from, to)).warnings;
        assert!(warnings.len() == 1 && warnings[0].contains(expected), "{warnings:?}");
    }
    let dark = objects(r#""shape": {"type": "cube"}"#).warnings;
    assert!(dark.len() == 1 && dark[0].contains("it is black"), "{dark:?}");
    let field = super::edited(
        "\"background\": {",
        r#""i": {"type": "volpath", "max_depth": 3}, "background": {"#,
    );
    let field = read(&field);
    assert!(
        field.warnings.len() == 1 && field.warnings[0].contains("plays no part"),
        "{:?}",
        field.warnings
    );
    assert_eq!(field.integrator, Integrator::default());
}

#[test]
fn a_radiance_field_scene_has_no_world() {
    let scene = read(super::SCENE);
    assert!(scene.world.is_empty() && scene.field.is_some());
    let scene = read(WORLD);
    assert!(!scene.world.is_empty() && scene.field.is_none());
}

/// Emitters of all kinds say which medium they stand in, as in Mitsuba; nothing follows from it, but it must be a medium.
#[test]
fn emitters_state_a_medium() {
    for emitter in [
        r#"{"type": "point""#,
        r#"{"type": "spot""#,
        r#"{"type": "directional""#,
        r#"{"type": "projector""#,
        r#"{"type": "sphere", "emitter": {"type": "area""#,
        r#"{"type": "disk", "emitter": {"type": "directionalarea""#,
    ] {
        let ends = "}".repeat(emitter.matches('{').count());
        let world = |medium: &str| edited_world(r#"{"type": "directional"}"#, &format!("{emitter}{medium}{ends}"));
        let stated = r#", "medium": {"type": "ref", "id": "box.interior"}"#;
        assert_eq!(read(&world(stated)).resolved, read(&world("")).resolved, "{emitter}");
        let found = mistakes_in(&world(r#", "medium": {"type": "cube"}"#));
        assert!(
            found.contains("`cube` is a shape where a medium is expected"),
            "{found}"
        );
    }
    for sky in [
        r#"{"type": "constant""#,
        r#"{"type": "envmap", "data": {"resolution": [4, 2]}"#,
    ] {
        let stated = format!(r#"{sky}, "medium": {{"type": "homogeneous"}}}}"#);
        assert!(
            read(&edited_world(r#"{"type": "constant"}"#, &stated))
                .world
                .media
                .len()
                == 1
        );
    }
}
