//! Mistakes in scenes of shapes, scattering media and lights.

use std::path::Path;

use prbopt::io::{self, Grid, Image};
use prbopt::resident::Resident;
use prbopt::scene;

use super::{edited_world, mistakes_in};

const GRID: &str = r#"{"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.5}"#;
const PHASE: &str = r#"{"type": "hg", "g": 0.3}"#;
const SUN: &str = r#"{"type": "directional"}"#;
const TUNED: &str = r#""box.interior.sigma_t": {}"#;
const SKY: &str = r#""sky": {"type": "constant"}"#;
const FLOOR: &str = r#""reflectance": 0.4"#;

/// A piece of the small world, what replaces it, and what must be said: `line:column: message` or its beginning.
const MISTAKES: &[(&str, &str, &str)] = &[
    // Media and their volumes.
    (
        r#""albedo": [0.9, 0.8, 0.7]"#,
        r#""albdeo": 0.9"#,
        "10:7: unknown parameter `albdeo` of `heterogeneous` at box.interior.albdeo: did you mean `albedo`?",
    ),
    (
        "[0.9, 0.8, 0.7]",
        "[0.9, 1.5, 0.7]",
        "10:23: the value 1.5 is not possible at box.interior.albedo[1]: it must lie between 0 and 1",
    ),
    (
        "[0.9, 0.8, 0.7]",
        "[0.9, 0.8]",
        "10:17: a list of 2 at box.interior.albedo: expected a number, or [r, g, b]",
    ),
    (
        "[0.9, 0.8, 0.7]",
        r#"{"type": "rgb", "value": [2, 0, 0]}"#,
        "10:43: the value 2 is not possible at box.interior.albedo.value[0]: it must lie between 0 and 1",
    ),
    (
        GRID,
        "-1",
        "9:18: the value -1 is not possible at box.interior.sigma_t: it must not be negative",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": -0.5}"#,
        "9:75: the value -0.5 is not possible at box.interior.sigma_t.value: it must not be negative",
    ),
    (
        r#""type": "heterogeneous""#,
        r#""type": "homogeneous""#,
        "9:18: `sigma_t` of a `homogeneous` medium varies at box.interior.sigma_t: give a number or a colour, or make the medium `heterogeneous`",
    ),
    (
        r#""type": "heterogeneous","#,
        r#""type": "heterogeneous", "scale": -1,"#,
        "8:41: the value -1 is not possible at box.interior.scale: it must not be negative",
    ),
    (
        r#""type": "heterogeneous","#,
        r#""type": "heterogeneous", "emission": -1,"#,
        "8:44: the value -1 is not possible at box.interior.emission: it must not be negative",
    ),
    (
        r#""type": "heterogeneous","#,
        r#""type": "heterogeneous", "sample_emitters": false,"#,
        "8:51: `sample_emitters` of `heterogeneous` is false at box.interior.sample_emitters: only true is supported so far",
    ),
    (
        r#""type": "heterogeneous""#,
        r#""type": "heterogenous""#,
        "7:17: unknown medium type `heterogenous` at box.interior: did you mean `heterogeneous`?",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "wrap_mode": "repeet"}"#,
        r#"9:93: unknown value "repeet" at box.interior.sigma_t.wrap_mode: did you mean `repeat`?"#,
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "filter_type": "bilinear"}"#,
        r#"9:95: unknown value "bilinear" at box.interior.sigma_t.filter_type: did you mean `trilinear`?"#,
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "use_grid_bbox": true}"#,
        "9:18: `use_grid_bbox` without `filename` at box.interior.sigma_t: only a file states a bounding box; place the grid with `to_world`",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "max_value": 1}"#,
        "9:80: Mitsuba's parameter `max_value` of `gridvolume` at box.interior.sigma_t.max_value is not supported yet: remove it",
    ),
    (
        GRID,
        r#"{"type": "gridvolume", "filename": "smoke.txt"}"#,
        "9:53: this grid cannot be used at box.interior.sigma_t.filename: smoke.txt: a grid's file name ends in",
    ),
    (
        GRID,
        r#"{"type": "plume", "resolution": 8, "sead": 1}"#,
        "9:53: unknown parameter `sead` of `plume` at box.interior.sigma_t.sead: did you mean `seed`?",
    ),
    (
        GRID,
        r#"{"type": "plume"}"#,
        "9:18: `plume` lacks `resolution` at box.interior.sigma_t: give the texels along x, y and z",
    ),
    (
        GRID,
        r#"{"type": "plume", "resolution": 8, "seed": -1}"#,
        "9:61: the value -1 is not possible at box.interior.sigma_t.seed: expected a whole number from 0 to",
    ),
    (
        GRID,
        r#"{"type": "bitmap", "filename": "x.png"}"#,
        "9:18: `bitmap` is a texture where a volume is expected at box.interior.sigma_t: allowed: `gridvolume`",
    ),
    // Phase functions.
    (
        r#""g": 0.3"#,
        r#""g": 1"#,
        "11:36: the value 1 is not possible at box.interior.phase.g: it must lie between -1 and 1, both excluded",
    ),
    (
        r#""g": 0.3"#,
        r#""g": 0.99999999999"#,
        "11:36: the value 0.99999999999 is not possible at box.interior.phase.g: it must lie between -1 and 1, both excluded",
    ),
    (
        PHASE,
        r#"{"type": "henyey"}"#,
        "11:16: unknown type `henyey` at box.interior.phase: ",
    ),
    (
        PHASE,
        r#"{"type": "sggx"}"#,
        "11:16: Mitsuba's phase function `sggx` is not supported yet at box.interior.phase: allowed: `isotropic`, `hg`, `rayleigh`, `blendphase`",
    ),
    (
        PHASE,
        r#"{"type": "hg"}, "other": {"type": "rayleigh"}"#,
        "11:41: a second phase function at box.interior.other: `heterogeneous` can have only one",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "a": {"type": "hg"}, "b": {"type": "hg"}}"#,
        "11:16: `blendphase` lacks `weight` at box.interior.phase: give the weight of the second phase function, a number or a volume",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "weight": 2, "a": {"type": "hg"}, "b": {"type": "hg"}}"#,
        "11:49: the value 2 is not possible at box.interior.phase.weight: it must lie between 0 and 1",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "weight": [0.1, 0.2, 0.3], "a": {"type": "hg"}, "b": {"type": "hg"}}"#,
        "11:49: a list of 3 at box.interior.phase.weight: expected a number",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "weight": 0.5, "a": {"type": "hg"}}"#,
        "11:16: a `blendphase` of 1 phase functions at box.interior.phase: nest two, under names whose order is theirs",
    ),
    // Shapes, their BSDFs and emitters.
    (
        r#""type": "sphere""#,
        r#""type": "sphere", "radius": 0"#,
        "15:40: the value 0 is not possible at lamp.radius: it must be positive",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "sphere", "center": [0, 0]"#,
        "15:40: found a list of 2 at lamp.center: expected a list of 3 numbers",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "rectangle", "radius": 1"#,
        "15:33: unknown parameter `radius` of `rectangle` at lamp.radius: allowed: `to_world`, `flip_normals`, `interior`, `exterior`, `emitter`, `bsdf`",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "cylinder""#,
        "15:11: Mitsuba's shape `cylinder` is not supported yet at lamp: allowed: `cube`, `sphere`, `rectangle`, `obj`, `ply`",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "sphere", "silhouette_sampling_weight": 1"#,
        "15:30: Mitsuba's parameter `silhouette_sampling_weight` of `sphere` at lamp.silhouette_sampling_weight is not supported yet: remove it",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "obj""#,
        "15:11: `obj` lacks `filename` at lamp: give the mesh file",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "ply", "filename": "nowhere.ply""#,
        "15:39: this mesh cannot be used at lamp.filename: there is no file nowhere.ply",
    ),
    (
        r#""type": "area""#,
        r#""type": "point""#,
        "15:41: a `point` emitter in a shape at lamp.emitter: it stands at the top level; a shape emits by `area`",
    ),
    (
        r#""radiance": 3"#,
        r#""radiance": -3"#,
        "15:70: the value -3 is not possible at lamp.emitter.radiance: it must not be negative",
    ),
    (
        r#""radiance": 3"#,
        r#""sampling_weight": 3"#,
        "15:58: Mitsuba's parameter `sampling_weight` of `area` at lamp.emitter.sampling_weight is not supported yet: remove it",
    ),
    (
        r#""type": "sphere","#,
        r#""type": "sphere", "interior": {"type": "radiance_field"},"#,
        "15:11: a radiance field beside `box` at lamp: a scene is either one radiance field, or shapes, scattering media and lights; make two scenes of it",
    ),
    (
        r#""type": "sphere","#,
        r#""type": "sphere", "exterior": {"type": "radiance_field"},"#,
        "15:42: a `radiance_field` does not scatter light at lamp.exterior: it stands only in a `cube`, as `interior`; allowed here: `heterogeneous`, `homogeneous`",
    ),
    (
        r#""type": "diffuse""#,
        r#""type": "conductor""#,
        "14:42: Mitsuba's BSDF `conductor` is not supported yet at floor.bsdf: allowed: `null`, `diffuse`",
    ),
    (
        FLOOR,
        r#""reflectance": 1.1"#,
        "14:77: the value 1.1 is not possible at floor.bsdf.reflectance: it must lie between 0 and 1",
    ),
    (
        FLOOR,
        r#""reflectence": 1"#,
        "14:62: unknown parameter `reflectence` of `diffuse` at floor.bsdf.reflectence: did you mean `reflectance`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerbord"}"#,
        "14:77: unknown texture type `checkerbord` at floor.bsdf.reflectance: did you mean `checkerboard`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "color2": 1}"#,
        "14:102: unknown parameter `color2` of `checkerboard` at floor.bsdf.reflectance.color2: did you mean `color1`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "bitmap", "filename": "nowhere.png"}"#,
        "14:108: this image cannot be used at floor.bsdf.reflectance.filename: nowhere.png: ",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "to_uv": [{"scal": 2}]}"#,
        "14:112: unknown operation `scal` at floor.bsdf.reflectance.to_uv[0]: did you mean `scale`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "to_uv": [{"rotate": {"axis": [1, 0, 0], "angle": 3}}]}"#,
        "14:132: this axis leaves the plane of the texture at floor.bsdf.reflectance.to_uv[0].rotate.axis: leave it out, or give [0, 0, 1]",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "to_uv": [[1, 0, 0], [0, 1, 0], [0, 1, 1]]}"#,
        "14:111: the matrix is not affine at floor.bsdf.reflectance.to_uv: its last row must be [0, 0, 1]",
    ),
    // Emitters.
    (
        SKY,
        r#""sky": {"type": "constant"}, "dome": {"type": "envmap"}"#,
        "17:40: a second emitter beside `sky` at dome: what lies behind the medium is one thing",
    ),
    (
        SKY,
        r#""sky": {"type": "area"}"#,
        "17:10: an `area` emitter without a shape at sky: put it into a shape, which then emits",
    ),
    (
        SUN,
        r#"{"type": "directional", "direction": [0, 0, 0]}"#,
        "16:10: `direction` has no direction at sun: at least one of its numbers must differ from zero",
    ),
    (
        SUN,
        r#"{"type": "directional", "direction": [0, 0, 1], "to_world": []}"#,
        "16:47: `direction` and `to_world` exclude each other at sun.direction: remove one of the two",
    ),
    (
        SUN,
        r#"{"type": "directional", "intensity": 1}"#,
        "16:34: unknown parameter `intensity` of `directional` at sun.intensity: allowed: `irradiance`, `direction`, `to_world`",
    ),
    (
        SUN,
        r#"{"type": "point", "intensity": -1}"#,
        "16:41: the value -1 is not possible at sun.intensity: it must not be negative",
    ),
    (
        SUN,
        r#"{"type": "spot", "beam_width": 30}"#,
        "16:41: the value 30 is not possible at sun.beam_width: it must lie between 0 and 20",
    ),
    (
        SUN,
        r#"{"type": "spot", "cutoff_angle": 0}"#,
        "16:43: the value 0 is not possible at sun.cutoff_angle: it must lie between 0 and 180, both excluded",
    ),
    (
        SUN,
        r#"{"type": "projector"}"#,
        "16:10: Mitsuba's emitter `projector` is not supported yet at sun: allowed: `constant`, `envmap`, `area`, `point`, `directional`, `spot`",
    ),
    // The integrator and the sensor.
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "max_depth": -2"#,
        "2:53: the value -2 is not possible at integrator.max_depth: expected a whole number of edges from 0, or -1 for no limit",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "rr_depth": 0"#,
        "2:52: the value 0 is not possible at integrator.rr_depth: expected a whole number from 1 to",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "gradient": "free""#,
        r#"2:52: unknown value "free" at integrator.gradient: allowed: `auto`, `paired`, `drt`, `free_flight`"#,
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "advolpath", "gradient": "drt""#,
        "2:17: `advolpath` has no differential tracking at integrator: remove `gradient`",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "rbvolpath", "variant": "baised""#,
        "2:50: unknown value \"baised\" at integrator.variant: did you mean `biased`?",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "variant": "biased""#,
        "2:40: unknown parameter `variant` of `prbvolpath` at integrator.variant",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "samples_per_pass": 4"#,
        "2:40: Mitsuba's parameter `samples_per_pass` of `prbvolpath` at integrator.samples_per_pass is not supported yet: remove it",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpth""#,
        "2:17: unknown type `prbvolpth` at integrator: did you mean `prbvolpath`?",
    ),
    (
        SKY,
        r#""sky": {"type": "constant"}, "other": {"type": "volpath"}"#,
        "17:41: a second integrator beside `integrator` at other: light is followed in one way",
    ),
    (
        r#""type": "perspective","#,
        r#""type": "perspective", "medium": {"type": "hg"},"#,
        "3:47: `hg` is a phase function where a medium is expected at camera.medium: allowed: `radiance_field`, `heterogeneous`, `homogeneous`",
    ),
    // What is optimised.
    (
        TUNED,
        r#""box.interior.sigma": {}"#,
        "19:42: there is no parameter `box.interior.sigma` at optimize.parameters.box.interior.sigma: did you mean `box.interior.sigma_t`? (allowed: `box.interior.sigma_t`, `box.interior.albedo`, `box.interior.phase.g`, `lamp.emitter.radiance`, `sun.irradiance`, `sky.radiance`)",
    ),
    (
        TUNED,
        r#""box.interior.albedo": {"bounds": [0, 2]}"#,
        "19:54: the bounds 0 and 2 let in what is not possible at optimize.parameters.box.interior.albedo.bounds: it must lie between 0 and 1",
    ),
    (
        TUNED,
        r#""box.interior.sigma_t": {"bounds": [null, 2]}"#,
        "19:55: the bounds null and 2 let in what is not possible at optimize.parameters.box.interior.sigma_t.bounds: it must not be negative",
    ),
    (
        TUNED,
        r#""box.interior.phase.g": {"initial": 1}"#,
        "19:56: the value 1 is not possible at optimize.parameters.box.interior.phase.g.initial: it must lie between -1 and 1, both excluded",
    ),
    (
        TUNED,
        r#""box.interior.albedo": {"start_resolution": 4}"#,
        "19:64: a value without a place has no resolution at optimize.parameters.box.interior.albedo.start_resolution: remove `start_resolution`, or make it a `gridvolume` if it is a volume",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "wrap_mode": "repeat"}"#,
        "19:44: the volume `box.interior.sigma_t` cannot be optimised at optimize.parameters.box.interior.sigma_t: only volumes with the `filter_type` `trilinear` and the `wrap_mode` `clamp` can",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "filter_type": "nearest"}"#,
        "19:44: the volume `box.interior.sigma_t` cannot be optimised at optimize.parameters.box.interior.sigma_t:",
    ),
    (
        r#"{"type": "constant", "value": 0.5}"#,
        r#""images""#,
        "18:15: 1 of 1 views have no `image`",
    ),
];

#[test]
fn every_mistake_gives_its_message() {
    let mut failures = Vec::new();
    for (from, to, expected) in MISTAKES {
        let found = mistakes_in(&edited_world(from, to));
        if !found.starts_with(&format!("test.json:{expected}")) || found.lines().count() != 1 {
            failures.push(format!("for {to}\nexpected {expected}\nfound    {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn radiance_fields_stand_alone() {
    let field = r#"{"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "radiance_field", "sigma_t": 1, "sh_coeffs": 1}}"#;
    let sphere = field.replace("cube", "sphere");
    let cases = [
        (
            format!(r#"{{"f": {field}, "p": {{"type": "point"}}}}"#),
            "a `point` light beside the radiance field of `f` at p",
        ),
        (
            format!(r#"{{"p": {{"type": "point"}}, "f": {field}}}"#),
            "a `point` light beside the radiance field of `f` at p",
        ),
        (
            format!(r#"{{"s": {{"type": "sphere"}}, "f": {field}}}"#),
            "a radiance field beside `s` at f",
        ),
        (
            format!(r#"{{"c": {{"type": "perspective", "medium": {{"type": "homogeneous"}}}}, "f": {field}}}"#),
            "a sensor in a medium beside the radiance field of `f` at c",
        ),
        (
            format!(r#"{{"f": {field}, "g": {field}}}"#),
            "a second radiance field beside `f` at g",
        ),
        (
            format!(r#"{{"f": {sphere}}}"#),
            "a `sphere` around a `radiance_field` at f: a radiance field fills a `cube`",
        ),
    ];
    for (text, expected) in cases {
        let found = mistakes_in(&text);
        assert!(found.contains(expected) && found.lines().count() == 1, "{found}");
    }
}

#[test]
fn blends_are_not_nested_without_end() {
    // Forty blends of two references each would be a trillion phase functions.
    let blend = |i: usize| {
        let next = format!(r#"{{"type": "ref", "id": "p{}"}}"#, i + 1);
        format!(r#""p{i}": {{"type": "blendphase", "weight": 0.5, "a": {next}, "b": {next}}}"#)
    };
    let chain: Vec<_> = (0..40).map(blend).collect();
    let medium = r#"{"type": "homogeneous", "p": {"type": "ref", "id": "p0"}}"#;
    let text = format!(
        r#"{{{}, "p40": {{"type": "hg"}}, "box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {medium}}}}}"#,
        chain.join(", ")
    );
    let found = mistakes_in(&text);
    assert!(found.contains("more than 4 blends inside one another"), "{found}");
}

/// What is said of a scene without mistakes in its text when it is flattened, its files in `folder`; none if nothing.
fn flattened(text: &str, folder: &Path) -> Option<String> {
    let scene =
        scene::parse(text, &folder.join("test.json")).unwrap_or_else(|mistakes| panic!("{mistakes}\nin {text}"));
    Resident::new(&scene).err().map(|error| error.to_string())
}

/// A box that lets light pass, with more of its text.
fn bounds(name: &str, kind: &str, to_world: &str, more: &str) -> String {
    format!(
        r#""{name}": {{"type": "{kind}", "to_world": [{to_world}], "bsdf": {{"type": "null"}}, {more}
            "interior": {{"type": "homogeneous"}}}}"#
    )
}

fn scene_of(objects: &[String]) -> String {
    format!(r#"{{{}, "sky": {{"type": "constant"}}}}"#, objects.join(", "))
}

/// A tetrahedron as an OBJ file, its faces outwards, but for those left out.
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
            "`smoke.interior.sigma_t` is -0.25; extinction must not be negative: correct the values",
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
    for (value, expected) in [(1.25, "1.25"), (-0.5, "-0.5"), (f32::NAN, "NaN")] {
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
            "{}: pixel (1, 1) is {expected}; a reflectance must lie between 0 and 1: correct the values",
            path.display()
        );
        assert_eq!(flattened(text, folder.path()), Some(expected));
    }
}
