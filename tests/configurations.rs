//! The configurations of Mitsuba's own tests of derivatives that have no silhouettes, with other pictures, and of one with
//! silhouettes a part of the image without them: derivatives by path replay against differences of images whose sampling is not
//! frozen, both in f64.

use std::path::Path;

use prbopt::gradcheck::paths::fresh::{Way, along};
use prbopt::gradcheck::{Options, Setup};
use prbopt::io::{Image, image};
use prbopt::scene;

/// Pixels of a pass, drawn at random from the film, and number of passes.
const PIXELS: u32 = 1 << 10;
const PASSES: u32 = 256;

/// The step of the differences. Where directions are sampled anew, the variance falls as the step grows, and the error of second
/// order stays below a hundredth.
const STEP: f32 = 0.03;

/// One configuration.
struct Configuration {
    name: &'static str,
    max_depth: u32,
    /// The sensor but for its film, and the film, as JSON.
    sensor: &'static str,
    film: String,
    objects: String,
    parameter: &'static str,
    /// The change of the three entries of a texel or a vertex along which the derivative is taken, the same for each of them.
    way: [f32; 3],
    passes: u32,
    step: f32,
}

/// The camera of most configurations.
const FRONT: &str = r#""to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#;
const ALL: [f32; 3] = [1.0, 1.0, 1.0];
const ALONG_X: [f32; 3] = [1.0, 0.0, 0.0];
const ALONG_Z: [f32; 3] = [0.0, 0.0, 1.0];

fn film(size: u32) -> String {
    format!(r#""width": {size}, "height": {size}, "sample_border": true, "rfilter": {{"type": "box"}}"#)
}

/// A file of the tests' data, as JSON.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    format!("{:?}", path.to_string_lossy())
}

/// The square [-1, 1]² as a mesh of a few triangles, placed by `to_world`, `more` its other parameters.
fn square(name: &str, to_world: &str, more: &str) -> String {
    let mesh = file("meshes/panel.obj");
    format!(r#""{name}": {{"type": "obj", "filename": {mesh}, {more}, "to_world": [{to_world}]}}"#)
}

/// The same mesh with the normals of its faces.
fn flat(name: &str, to_world: &str, more: &str) -> String {
    square(name, to_world, &format!(r#""face_normals": true, {more}"#))
}

/// A bitmap of the tests' data, `more` its other parameters.
fn picture(more: &str) -> String {
    format!(
        r#"{{"type": "bitmap", "filename": {} {more}}}"#,
        file("peer/scenes/chart.png")
    )
}

/// Writes a picture whose border is black: a light that has it as radiance has no visible edge.
fn fading(folder: &Path) -> String {
    const SIZE: usize = 8;
    let texel = |i: usize| {
        let (x, y) = (i % SIZE, i / SIZE);
        let inside = x.min(SIZE - 1 - x).min(y).min(SIZE - 1 - y);
        let value = if inside == 0 {
            0.0
        } else {
            0.2 + 0.1 * x as f32 + 0.05 * y as f32
        };
        [value, 0.7 * value, 0.5 * value]
    };
    let path = folder.join("fading.exr");
    let image = Image {
        width: SIZE,
        height: SIZE,
        channels: 3,
        data: (0..SIZE * SIZE).flat_map(texel).collect(),
    };
    image::write_exr(&path, &image).expect("writable");
    let path = path.to_string_lossy();
    format!(r#"{{"type": "bitmap", "wrap_mode": "clamp", "filename": {path:?}}}"#)
}

fn configurations(folder: &Path) -> Vec<Configuration> {
    let ball = r#""ball": {"type": "sphere", "to_world": [{"scale": 0.25}]}"#;
    let plane = |reflectance: &str| {
        format!(r#""plane": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {reflectance}}}}}"#)
    };
    let aside = r#""to_world": [{"rotate": {"axis": [0, 1, 0], "angle": -90}}, {"translate": [1.25, 0, 1]}]"#;
    let lamp = format!(r#""light": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": 3}}, {aside}}}"#);
    let sky = r#""light": {"type": "constant"}"#;
    let diffuse = r#""bsdf": {"type": "diffuse"}"#;
    let painted = format!(r#""bsdf": {{"type": "diffuse", "reflectance": {}}}"#, picture(""));
    let shining = format!(r#""emitter": {{"type": "area", "radiance": {}}}"#, fading(folder));
    let glass = r#""bsdf": {"type": "roughdielectric", "distribution": "beckmann", "alpha": 0.8, "int_ior": 1.001, "ext_ior": 1.1}"#;
    let basin = r#"{"rotate": {"axis": [0, 0, 1], "angle": 90}}, {"rotate": {"axis": [1, 0, 0], "angle": 45}}"#;
    let below = r#"{"scale": 4}, {"rotate": {"axis": [1, 0, 0], "angle": -90}}, {"rotate": {"axis": [0, 1, 0], "angle": -90}},
        {"translate": [0, -1.5, 0]}"#;
    let narrow =
        r#""fov": 18, "to_world": [{"look_at": {"origin": [0, 0.1, 4], "target": [0, 0.1, 0], "up": [0, 1, 0]}}]"#;
    // Windows in which the derivative has one sign; over the whole film it nearly cancels out.
    let lower_half = format!(r#"{}, "crop_height": 32, "crop_offset_y": 32"#, film(64));
    let lit_plane = format!("{}, {}", flat("plane", basin, diffuse), flat("light", below, &shining));
    // A small square that looks down on a light with bright borders, which the square sees and the camera does not.
    let inner = format!(
        r#"{}, "crop_width": 64, "crop_height": 40, "crop_offset_x": 32, "crop_offset_y": 32"#,
        film(128)
    );
    let facing = |scale: f64, origin: [f64; 3], target: [f64; 3], up: [f64; 3]| {
        format!(r#"{{"scale": {scale}}}, {{"look_at": {{"origin": {origin:?}, "target": {target:?}, "up": {up:?}}}}}"#)
    };
    let over_a_lamp = format!(
        "{}, {}",
        flat(
            "plane",
            &facing(0.25, [0.0, 0.0, -1.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]),
            diffuse
        ),
        flat(
            "light",
            &facing(0.75, [0.0, -2.0, -1.0], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0]),
            r#""emitter": {"type": "area", "radiance": 1}"#
        )
    );
    let from_origin = r#""to_world": [{"look_at": {"origin": [0, 0, 0], "target": [0, 0, -1], "up": [0, 1, 0]}}]"#;
    let of = |name, parameter, way, objects| Configuration {
        name,
        max_depth: 2,
        sensor: FRONT,
        film: film(64),
        objects,
        parameter,
        way,
        passes: PASSES,
        step: STEP,
    };
    let large = |c: Configuration| Configuration { film: film(128), ..c };
    vec![
        large(of(
            "a plane's albedo",
            "plane.bsdf.reflectance",
            ALL,
            format!("{}, {ball}, {sky}", plane("0.5")),
        )),
        large(Configuration {
            max_depth: 3,
            ..of(
                "the albedo of what lights a plane",
                "green.bsdf.reflectance",
                ALL,
                format!(
                    r#"{}, {ball}, "green": {{"type": "rectangle", {aside}, "bsdf": {{"type": "diffuse",
                        "reflectance": {{"type": "rgb", "value": [0.1, 1, 0.1]}}}}}}, "light": {{"type": "constant", "radiance": 3}}"#,
                    plane("0.5")
                ),
            )
        }),
        large(of(
            "an area light's radiance",
            "light.emitter.radiance",
            ALL,
            format!("{}, {ball}, {lamp}", plane("1")),
        )),
        large(of(
            "a visible area light's radiance",
            "light.emitter.radiance",
            ALL,
            r#""light": {"type": "rectangle", "emitter": {"type": "area", "radiance": 1}}"#.into(),
        )),
        large(of(
            "a point light's intensity",
            "light.intensity",
            ALL,
            format!(
                r#"{}, {ball}, "light": {{"type": "point", "position": [1.25, 0, 1], "intensity": 5}}"#,
                plane("1")
            ),
        )),
        large(of(
            "the sky's radiance",
            "light.radiance",
            ALL,
            format!("{}, {ball}, {sky}", plane("0.5")),
        )),
        Configuration {
            film: r#""width": 64, "height": 64, "sample_border": true, "rfilter": {"type": "gaussian", "stddev": 0.5},
                "crop_width": 32, "crop_height": 32, "crop_offset_x": 32, "crop_offset_y": 20"#
                .into(),
            ..of(
                "a window of the film",
                "plane.bsdf.reflectance",
                ALL,
                format!("{}, {sky}", plane("0.5")),
            )
        },
        large(of(
            "normals that turn",
            "plane.vertex_normals",
            ALONG_X,
            format!("{}, {lamp}", square("plane", "", diffuse)),
        )),
        of(
            "a painted plane that moves",
            "plane.vertex_positions",
            ALONG_X,
            format!("{}, {sky}", flat("plane", r#"{"scale": 2}"#, &painted)),
        ),
        of(
            "a plane that moves under a map",
            "plane.vertex_positions",
            ALONG_Z,
            format!(
                r#"{}, "light": {{"type": "envmap", "filename": {}}}"#,
                flat("plane", r#"{"scale": 3}"#, diffuse),
                file("peer/scenes/sky.exr")
            ),
        ),
        of(
            "a plane that moves before a projector",
            "plane.vertex_positions",
            ALONG_Z,
            format!(
                r#"{}, "light": {{"type": "projector", "irradiance": {}, "fov": 45,
                    "to_world": [{{"look_at": {{"origin": [0, 0, 3], "target": [0, 0, 0], "up": [0, 1, 0]}}}}]}}"#,
                flat("plane", r#"{"scale": 3}"#, diffuse),
                fading(folder)
            ),
        ),
        Configuration {
            max_depth: 4,
            sensor: r#""to_world": [{"look_at": {"origin": [0, 0, 2], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#,
            film: format!(
                r#"{}, "crop_width": 12, "crop_height": 12, "crop_offset_x": 10, "crop_offset_y": 10"#,
                film(32)
            ),
            passes: 8 * PASSES,
            step: 0.1,
            ..of(
                "a pane among others that moves",
                "shape.vertex_positions",
                ALONG_Z,
                [
                    flat("glass1", r#"{"scale": 4}, {"translate": [0, 0, 1]}"#, glass),
                    flat("shape", r#"{"scale": 4}"#, glass),
                    flat("glass3", r#"{"scale": 4}, {"translate": [0, 0, -1]}"#, glass),
                    flat("light", r#"{"scale": 0.7}, {"translate": [0, 0, -2]}"#, &shining),
                ]
                .join(", "),
            )
        },
        Configuration {
            sensor: r#""fov": 40, "to_world": [{"look_at": {"origin": [0, 0.2, 4], "target": [0, 0.2, 0], "up": [0, 1, 0]}}]"#,
            ..of(
                "a light with a picture that moves in view",
                "plane.vertex_positions",
                ALONG_Z,
                flat(
                    "plane",
                    r#"{"rotate": {"axis": [0, 0, 1], "angle": -90}}, {"rotate": {"axis": [1, 0, 0], "angle": 45}}"#,
                    &shining,
                ),
            )
        },
        Configuration {
            sensor: narrow,
            film: lower_half.clone(),
            passes: 4 * PASSES,
            ..of(
                "a plane that moves over a light with a picture",
                "plane.vertex_positions",
                ALONG_Z,
                lit_plane.clone(),
            )
        },
        Configuration {
            sensor: narrow,
            film: lower_half.clone(),
            passes: 4 * PASSES,
            ..of(
                "a light with a picture that moves under a plane",
                "light.vertex_positions",
                ALONG_Z,
                lit_plane,
            )
        },
        Configuration {
            sensor: from_origin,
            film: inner.clone(),
            passes: PASSES / 4,
            ..of(
                "a plane that moves over a light with bright borders",
                "plane.vertex_positions",
                ALONG_Z,
                over_a_lamp.clone(),
            )
        },
        Configuration {
            sensor: from_origin,
            film: inner,
            passes: PASSES / 4,
            ..of(
                "a light with bright borders that moves under a plane",
                "light.vertex_positions",
                ALONG_Z,
                over_a_lamp,
            )
        },
    ]
}

impl Configuration {
    fn setup(&self) -> Setup {
        let text = format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": {}}},
                "camera": {{"type": "perspective", {}, "film": {{"type": "hdrfilm", {}}}}}, {},
                "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{"{}": {{}}}}}}}}"#,
            self.max_depth, self.sensor, self.film, self.objects, self.parameter
        );
        let scene = scene::parse(&text, Path::new("configuration.json"));
        let scene = scene.unwrap_or_else(|mistakes| panic!("{}: {mistakes}\nin {text}", self.name));
        let mut setup = Setup::new(&scene, &Options::default()).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        setup.batch.drawn = Some(PIXELS);
        setup
    }
}

/// Derivatives of the image's mean, within five standard errors and 2e-3. Of the seventeen, that of the plane under a map is
/// zero; the standard errors of the others are an eighth where a pane moves, 3 % where a plane or the light with a picture under
/// it moves, and less elsewhere.
#[test]
fn derivatives_are_those_of_images_drawn_anew() {
    let mut failures = Vec::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configurations = configurations(folder.path());
    assert_eq!(configurations.len(), 17);
    for configuration in configurations {
        let setup = configuration.setup();
        let slot = setup.checked[0];
        let count = setup.params.parameters[slot].values.len();
        let way: Way = (0..count)
            .map(|i| (i, configuration.way[i % 3]))
            .filter(|(_, by)| *by != 0.0)
            .collect();
        let row = &along(&setup, slot, &[way], configuration.step, configuration.passes)[0];
        let found = format!(
            "{}: {:.4e} by replay, {:.4e} ± {:.1e} by differences",
            configuration.name, row.replayed, row.fresh, row.error
        );
        println!("{found}");
        if (row.fresh - row.replayed).abs() >= 5.0 * row.error + 2e-3 * row.fresh.abs() {
            failures.push(found);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
