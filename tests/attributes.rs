//! Values of a mesh's vertices and faces: what is read and refused, and what a run writes so that it is read again.

use std::path::Path;

use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::io::mesh::{read_ply, write_ply};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::output::parameters::{write_all, write_meshes};
use prbopt::output::stored::read_all;
use prbopt::params::Tuning;
use prbopt::resident::Resident;
use prbopt::scene::{self, Scene};

const SHEET: &str = "tests/data/meshes/sheet.ply";

/// A sheet at `file` with this BSDF, under a sky.
fn text(file: &Path, bsdf: &str) -> String {
    format!(
        r#"{{"sheet": {{"type": "ply", "filename": {:?}, "bsdf": {bsdf}}}, "sky": {{"type": "constant"}},
            "camera": {{"type": "perspective", "fov": 30, "to_world": [{{"look_at": {{"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {{"type": "box"}}}}}}}}"#,
        file.to_string_lossy()
    )
}

fn parse(text: &str) -> Result<Scene, String> {
    scene::parse(text, Path::new("sheet.json")).map_err(|mistakes| mistakes.to_string())
}

fn diffuse(name: &str) -> String {
    format!(r#"{{"type": "diffuse", "reflectance": {{"type": "mesh_attribute", "name": "{name}"}}}}"#)
}

/// An attribute that the mesh lacks, of another shape, or out of range, is refused with a message that says what the mesh has.
#[test]
fn attributes_that_do_not_fit_are_refused() {
    let refused = |bsdf: &str| parse(&text(Path::new(SHEET), bsdf)).expect_err(bsdf);
    let message = refused(&diffuse("vertex_colour"));
    assert!(
        message.contains("has none of that name: did you mean `vertex_color`"),
        "{message}"
    );
    let message = refused(r#"{"type": "roughconductor", "alpha": {"type": "mesh_attribute", "name": "vertex_color"}}"#);
    assert!(
        message.contains("it has three values") && message.contains("where one is needed"),
        "{message}"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let mut mesh = read_ply(Path::new(SHEET), false, false).expect("a mesh");
    let color = mesh
        .attributes
        .iter_mut()
        .find(|a| a.name == "vertex_color")
        .expect("it has colours");
    color.values[4] = 200.0;
    write_ply(&at("bright.ply"), &mesh).expect("writable");
    let scene = parse(&text(&at("bright.ply"), &diffuse("vertex_color"))).expect("its values are not read yet");
    let message = Resident::new(&scene).expect_err("too bright").to_string();
    let expected =
        "bright.ply: value 1, channel 1, of `sheet.vertex_color` is 200; a reflectance must lie between 0 and 1";
    assert!(message.contains(expected), "{message}");
    // A quadrangle is split into two triangles, to neither of which the value of its face belongs.
    let quad = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n\
                property list uchar int vertex_indices\nproperty float tint_0\nend_header\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3 0.5\n";
    std::fs::write(at("quad.ply"), quad).expect("writable");
    let scene = parse(&text(&at("quad.ply"), &diffuse("face_tint"))).expect("its faces are not read yet");
    let message = Resident::new(&scene).expect_err("cut up").to_string();
    assert!(
        message.contains("`face_tint` needs a mesh all of whose faces are triangles"),
        "{message}"
    );
}

/// A picture of the scene, by the parameters in the folder `from` if one is given, and the device that rendered it.
fn picture(scene: &Scene, from: Option<&Path>) -> (Cpu, Vec<[f32; 4]>) {
    let (resident, mut params) = Resident::new(scene).expect("it is sound");
    for parameter in &mut params.parameters {
        parameter.tuning = parameter.path.ends_with("_color").then_some(Tuning {
            learning_rate: 1.0,
            bounds: [0.0, 1.0],
            smoothing: 0.0,
        });
    }
    if let Some(folder) = from {
        read_all(folder, &mut params).expect("they are there");
    }
    let mut device = Cpu::new();
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    let look = RenderSettings {
        seed: 3,
        iteration: 0,
        spp: 4,
    };
    let picture = render_view(&mut device, 0, look).expect("it renders");
    (device, picture)
}

/// A run's folder gives the same picture bit for bit: its values beside the old mesh, and its mesh in place of the old one.
#[test]
fn values_are_written_so_that_they_are_read_again() {
    let scene = parse(&text(Path::new(SHEET), &diffuse("vertex_color"))).unwrap_or_else(|m| panic!("{m}"));
    let (mut device, before) = picture(&scene, None);
    let slot = device.params().find("sheet.vertex_color").expect("it is a parameter");
    let count = device.params().parameters[slot].values.len();
    let values: Vec<f32> = (0..count).map(|i| (i * 7 % 11) as f32 / 11.0).collect();
    device
        .write(slot, prbopt::device::ArrayKind::Values, &values)
        .expect("they fit");
    let look = RenderSettings {
        seed: 3,
        iteration: 0,
        spp: 4,
    };
    let after = render_view(&mut device, 0, look).expect("it renders");
    assert_ne!(before, after);
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_all(folder.path(), &mut device).expect("writable");
    write_meshes(folder.path(), &scene, &mut device).expect("writable");
    assert_eq!(picture(&scene, Some(folder.path())).1, after, "from values");
    let again =
        parse(&text(&folder.path().join("sheet.ply"), &diffuse("vertex_color"))).unwrap_or_else(|m| panic!("{m}"));
    assert_eq!(picture(&again, None).1, after, "from the mesh");
}

/// Shapes that share a BSDF show their own attributes; an instance shows those of the mesh in its group.
#[test]
fn each_shape_shows_its_own_values() {
    let shared = |second: &str| {
        let file = Path::new(SHEET).to_string_lossy().into_owned();
        format!(
            r#"{{"paint": {}, "a": {{"type": "ply", "filename": {file:?}, "bsdf": {{"type": "ref", "id": "paint"}}}},
                "group": {{"type": "shapegroup", "b": {{"type": "ply", "filename": {file:?}, "bsdf": {{"type": "ref", "id": "paint"}}}}}},
                "left": {{"type": "instance", "g": {{"type": "ref", "id": "group"}}}},
                "right": {{"type": "instance", "g": {{"type": "ref", "id": "group"}}}}, "sky": {{"type": "constant"}}{second}}}"#,
            diffuse("vertex_color")
        )
    };
    let scene = parse(&shared("")).unwrap_or_else(|m| panic!("{m}"));
    let (resident, params) = Resident::new(&scene).expect("it is sound");
    let of_meshes = params.parameters.iter().filter(|p| p.path.ends_with("vertex_color"));
    let paths: Vec<&str> = of_meshes.map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["a.vertex_color", "group.b.vertex_color"]);
    let paths = resident.transport.paths();
    let bsdfs: Vec<u32> = paths.surfaces.iter().map(|surface| surface.bsdf).collect();
    assert_eq!(bsdfs, [0, 1, 1]);
}
