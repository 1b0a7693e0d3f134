//! `prbopt import scene.glb`: a scene of glTF 2.0 as a scene file, with its meshes and images in a folder beside it.

mod buffers;
mod materials;
mod meshes;
mod nodes;
mod textures;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use glam::{DAffine3, DMat4, DVec3};
use serde_json::{Map, Value, json};

use super::numbers::Numbers;
use super::{ImportArgs, check_scene_file};
use crate::cli::Outcome;
use crate::cli::shared::{check_output, command_line, is_same_file};
use crate::io::atomic::{self, folder_of};
use crate::io::{json as pretty, read_at_most};
use crate::output::run_folder::create;
use crate::scene;
use crate::tell;
use buffers::Buffers;
use materials::Looks;
use meshes::Written;

/// Longest path, in edges, of the integrator in the scene file.
const MAX_DEPTH: u32 = 8;

/// Deepest nesting of nodes.
const MAX_NESTING: usize = 256;

/// Largest number of nodes; a node that a scene lists several times counts each time.
const MAX_NODES: usize = 1 << 20;

/// Largest glTF whose text is searched for the names of other files, in bytes.
const MAX_TEXT_BYTES: u64 = 1 << 28;

/// Writes the scene file, its meshes and its images.
///
/// # Errors
/// The file is no glTF 2.0, or is damaged; the scene file exists already, or cannot be written.
pub(super) fn run(args: &ImportArgs) -> Result<Outcome> {
    let output = args.output.clone().unwrap_or_else(|| default_output(&args.dataset));
    ensure!(
        output != Path::new("-"),
        "--output -: the meshes and images of a glTF scene are written beside the scene file; name one"
    );
    if let Some(parent) = output.parent().filter(|p| !p.as_os_str().is_empty()) {
        create(parent)?;
    }
    check_scene_file(args, &output)?;
    let folder = companions(&output);
    ensure!(
        args.force || !folder.exists(),
        "{}: exists already, and the scene's meshes and images would go there; overwrite them by --force, or choose \
         another name with --output",
        folder.display()
    );
    check_companions(&args.dataset, &output, &folder)?;
    let (text, notes) = convert(&args.dataset, &output)?;
    let scene = scene::parse(&text, &output)?;
    atomic::write_bytes(&output, text.as_bytes())?;
    if !args.quiet {
        notes.iter().for_each(|note| tell!("note: {note}"));
        let shown = output.display().to_string();
        let next = command_line(["prbopt", "render", &shown]);
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        tell!(
            "wrote {shown}: {}, {}; render it with: {next}",
            count(scene.sensors.len(), "view"),
            count(scene.world.placed().count(), "shape"),
        );
    }
    Ok(Outcome::Done)
}

/// Checks that neither the scene file at `output` nor the files of its `folder` are written over the buffers and images of a
/// glTF in several files.
///
/// # Errors
/// They could be.
fn check_companions(path: &Path, output: &Path, folder: &Path) -> Result<()> {
    // A glTF of one file, or a damaged one, names no others.
    let text = read_at_most(path, MAX_TEXT_BYTES).unwrap_or_default();
    let gltf: Value = serde_json::from_slice(&text).unwrap_or_default();
    let lists = ["buffers", "images"].into_iter().filter_map(|key| gltf[key].as_array());
    let names = lists.flatten().filter_map(|item| item["uri"].as_str());
    let names = names.filter(|name| !name.starts_with("data:"));
    for file in names.map(|name| folder_of(path).join(name.replace("%20", " "))) {
        check_output(output, &[&file])?;
        ensure!(
            !is_same_file(folder, folder_of(&file)),
            "{}: is read by this command, and lies where the scene's meshes and images would go; choose another name with \
             --output",
            file.display()
        );
    }
    Ok(())
}

/// The text of the scene file at `output`, whose meshes and images are written beside it, and a sentence for each thing
/// that is left out or added.
///
/// # Errors
/// The file is no glTF 2.0, or is damaged; a file cannot be written. A folder created for it is then removed.
pub fn convert(path: &Path, output: &Path) -> Result<(String, Vec<String>)> {
    let (gltf, buffers) = buffers::open(path)?;
    let folder = companions(output);
    let is_new = !folder.exists();
    create(&folder)?;
    let mut conversion = Conversion {
        path,
        output,
        folder: &folder,
        buffers: &buffers,
        root: Map::new(),
        notes: Vec::new(),
        nodes: 0,
        vertices: 0,
        written: HashMap::new(),
        numbers: Numbers::default(),
        bounds: None,
        shines: false,
        has_camera: false,
    };
    let converted = conversion.scene(&gltf);
    let Conversion { root, notes, .. } = conversion;
    let text = pretty::pretty(&Value::Object(root));
    // After an error nobody needs the files: a new folder is removed.
    let converted = converted.and_then(|()| Ok(scene::parse(&text, output)?));
    if converted.is_err() && is_new {
        let _ = std::fs::remove_dir_all(&folder);
    }
    // Removes the folder if it is empty.
    let _ = std::fs::remove_dir(&folder);
    converted?;
    Ok((text, notes))
}

/// The folder of the meshes and images of a scene: `room_files` beside `room.json`.
fn companions(output: &Path) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}_files"))
}

/// A scene under conversion.
struct Conversion<'a> {
    path: &'a Path,
    output: &'a Path,
    /// Where meshes and images go.
    folder: &'a Path,
    buffers: &'a Buffers,
    root: Map<String, Value>,
    notes: Vec<String>,
    nodes: usize,
    /// Vertices and triangles written.
    vertices: usize,
    /// Primitives written, by their mesh's number and their own.
    written: HashMap<(usize, usize), Written>,
    numbers: Numbers,
    /// Corners of the box around all shapes.
    bounds: Option<[DVec3; 2]>,
    /// Whether there is a light.
    shines: bool,
    has_camera: bool,
}

impl Conversion<'_> {
    /// Converts a file's default scene, and adds a camera or a light if it has none.
    fn scene(&mut self, gltf: &gltf::Gltf) -> Result<()> {
        let shown = self.path.display().to_string();
        self.left_out(gltf);
        let integrator = json!({"type": "path", "max_depth": MAX_DEPTH});
        self.root.insert("integrator".into(), integrator);
        let chosen = gltf.default_scene().or_else(|| gltf.scenes().next());
        let chosen = chosen.with_context(|| format!("{shown}: has no scene to import"))?;
        let others = gltf.scenes().count() - 1;
        if others > 0 {
            self.note(format!("{others} other scenes of the file are left out"));
        }
        let mut looks = Looks::default();
        for node in chosen.nodes() {
            self.node(&node, &DAffine3::IDENTITY, 0, &mut looks)
                .with_context(|| shown.clone())?;
        }
        if !self.has_camera {
            self.overview();
        }
        if !self.shines {
            let name = self.free("sky");
            self.note(format!("it has no light: a white sky is added, `{name}`"));
            let sky = json!({"type": "constant", "radiance": 1.0});
            self.root.insert(name, sky);
        }
        Ok(())
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Notes animations, skins and extensions, which scenes cannot hold.
    fn left_out(&mut self, gltf: &gltf::Gltf) {
        const TAKEN: &[&str] = &[
            "KHR_lights_punctual",
            "KHR_materials_clearcoat",
            "KHR_materials_emissive_strength",
            "KHR_materials_ior",
            "KHR_materials_specular",
            "KHR_materials_transmission",
            "KHR_materials_volume",
            "KHR_texture_transform",
        ];
        for (count, what) in [
            (gltf.animations().count(), "animations"),
            (gltf.skins().count(), "skins of bones"),
        ] {
            if count > 0 {
                self.notes
                    .push(format!("its {what} are left out ({count}): scenes stand still"));
            }
        }
        for name in gltf.extensions_used().filter(|name| !TAKEN.contains(name)) {
            self.notes.push(format!("the extension `{name}` is left out"));
        }
    }

    /// Converts a node and its children.
    fn node(&mut self, node: &gltf::Node<'_>, around: &DAffine3, nesting: usize, looks: &mut Looks) -> Result<()> {
        self.nodes += 1;
        ensure!(
            nesting < MAX_NESTING && self.nodes <= MAX_NODES,
            "its nodes are nested more than {MAX_NESTING} deep, or are more than {MAX_NODES}; flatten them"
        );
        let matrix = DMat4::from_cols_array_2d(&node.transform().matrix().map(|column| column.map(f64::from)));
        let to_world = *around * DAffine3::from_mat4(matrix);
        ensure!(
            to_world.is_finite(),
            "node {} has a transform that is not finite; correct it",
            node.index()
        );
        let name = node.name().unwrap_or("node");
        if let Some(mesh) = node.mesh() {
            self.mesh(&mesh, name, &to_world, looks)?;
        }
        if let Some(camera) = node.camera() {
            self.camera(&camera, name, &to_world);
        }
        if let Some(light) = node.light() {
            self.light(&light, name, &to_world);
        }
        for child in node.children() {
            self.node(&child, &to_world, nesting + 1, looks)?;
        }
        Ok(())
    }

    /// A name that is not taken, of letters, digits, `_` and `-`.
    fn free(&mut self, wanted: &str) -> String {
        let keep = |c: char| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        };
        let plain: String = wanted.chars().take(100).map(keep).collect();
        let plain = if plain.is_empty() { "object".into() } else { plain };
        let is_taken = |name: &str| self.root.contains_key(name) || matches!(name, "type" | "optimize");
        self.numbers.free(&plain, is_taken)
    }

    /// The path of an existing file as the scene file states it.
    fn relative(&self, file: &Path) -> Result<String> {
        Ok(crate::io::relative(file, self.output)?)
    }
}

/// A map as the rows of a 4 × 4 matrix.
fn matrix(map: &DAffine3) -> Value {
    let m = DMat4::from(*map).transpose().to_cols_array_2d();
    json!(m)
}

/// The file's name with the extension `.json`, in the current folder.
fn default_output(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default();
    Path::new(stem).with_extension("json")
}
