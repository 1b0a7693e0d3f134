//! `prbopt export`: a scene, with the result of a run if wanted, in the format of another tool.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::Outcome;
use super::shared::{SetArgs, begins_otherwise, check_output, files_of, is_same_file, read_parameters};
use crate::exchange::volumes::{self, Fog};
use crate::exchange::{bake, gltf, mitsuba, triangles};
use crate::io::atomic::folder_of;
use crate::io::mesh;
use crate::io::vdb::{self, Volume};
use crate::output::run_folder::create;
use crate::output::streams::print_line;
use crate::params::ParamSet;
use crate::resident::Resident;
use crate::resident::solid::solid;
use crate::scene::Scene;
use crate::tell;

/// Arguments of `prbopt export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt export room.json -o room.xml\n  \
    prbopt export room.json --shape table --shape lamp -o furniture.stl\n  \
    prbopt export scenes/smoke_nine_views.json --parameters runs/smoke_nine_views/final -o plume.xml\n  \
    prbopt export room.json -o room.glb\n  \
    prbopt export scenes/smoke.json --half -o smoke.vdb")]
pub struct ExportArgs {
    /// The scene file, or - for standard input
    pub scene: PathBuf,
    /// The file to write; its extension says what: .xml a scene of Mitsuba, .ply, .obj or .stl the shapes as
    /// triangles, .glb a scene of glTF, .vdb the grids of media
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Folder with values of parameters, such as `final` of a run
    #[arg(long, value_name = "FOLDER")]
    pub parameters: Option<PathBuf>,
    /// Of triangles, only those of this shape, or of the shapes that an instance of this name shows; may be repeated
    #[arg(long, value_name = "NAME")]
    pub shape: Vec<String>,
    /// Of a .vdb, write half floats
    #[arg(long)]
    pub half: bool,
    #[command(flatten)]
    pub set: SetArgs,
    /// Overwrite the file
    #[arg(long)]
    pub force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// What is written, by the extension of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Mitsuba,
    Ply,
    Obj,
    Stl,
    Vdb,
    Gltf,
}

/// All formats by their extensions.
const FORMATS: &[(&str, Format)] = &[
    ("xml", Format::Mitsuba),
    ("ply", Format::Ply),
    ("obj", Format::Obj),
    ("stl", Format::Stl),
    ("vdb", Format::Vdb),
    ("glb", Format::Gltf),
];

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, or parts that the format cannot express; the file exists already, or cannot be written.
pub fn run(args: ExportArgs) -> Result<Outcome> {
    let format = format(&args.output)?;
    let shown = args.output.display();
    ensure!(
        args.force || !args.output.exists(),
        "{shown}: exists already; overwrite it by --force, or choose another name with --output"
    );
    if let Some(parent) = args.output.parent().filter(|p| !p.as_os_str().is_empty()) {
        create(parent)?;
    }
    ensure!(
        args.shape.is_empty() || matches!(format, Format::Ply | Format::Obj | Format::Stl),
        "--shape chooses what becomes triangles; leave it out, or choose a .ply, .obj or .stl with --output"
    );
    ensure!(
        !args.half || format == Format::Vdb,
        "--half is for a .vdb; leave it out, or choose such a name with --output"
    );
    let scene = args.set.load(&args.scene)?;
    check_output(&args.output, &inputs(&args, &scene))?;
    let values = values(&scene, args.parameters.as_deref())?;
    let begins = begins_otherwise(&scene).filter(|_| args.parameters.is_none());
    let notes = match format {
        Format::Mitsuba => write_mitsuba(&args, scene, &values)?,
        Format::Ply | Format::Obj | Format::Stl => write_triangles(&args, format, scene, &values)?,
        Format::Gltf => write_gltf(&args, scene, &values)?,
        Format::Vdb => write_volumes(&args, &scene, &values[1])?,
    };
    if !args.quiet {
        begins.iter().chain(&notes).for_each(|note| tell!("note: {note}"));
        print_line(&shown.to_string());
    }
    Ok(Outcome::Done)
}

/// Writes the XML, and in a folder beside it the files that it needs and that do not exist yet.
fn write_mitsuba(args: &ExportArgs, mut scene: Scene, [given, params]: &[ParamSet; 2]) -> Result<Vec<String>> {
    // Refuses the scene, if need be, before anything is written.
    mitsuba::check(&scene).map_err(|refusal| refused(args, &refusal))?;
    let folder = companions(&args.output);
    check_companions(args, &scene, [given, params], &folder)?;
    create(&folder)?;
    bake(&mut scene, given, params, &folder)?;
    // Removes the folder if it is empty: then all files existed before.
    let _ = std::fs::remove_dir(&folder);
    let export = mitsuba::export(&scene, &args.output).map_err(|refusal| refused(args, &refusal))?;
    mitsuba::write(&export, &args.output)?;
    Ok(export.notes)
}

/// The files that the command reads.
fn inputs(args: &ExportArgs, scene: &Scene) -> Vec<PathBuf> {
    let mut files = files_of(scene);
    let values = args.parameters.iter().filter_map(|folder| folder.read_dir().ok());
    files.extend(values.flatten().flatten().map(|entry| entry.path()));
    files
}

/// Checks that no file that the XML needs is written over one that the scene reads: a scene of glTF has its meshes in a
/// folder of the same name.
///
/// # Errors
/// One would be.
fn check_companions(args: &ExportArgs, scene: &Scene, [given, params]: [&ParamSet; 2], folder: &Path) -> Result<()> {
    let mut inputs = inputs(args, scene);
    inputs.retain(|file| is_same_file(folder, folder_of(file)));
    if inputs.is_empty() {
        return Ok(());
    }
    // Which files are written shows only when they are.
    let trial = tempfile::tempdir().context("a temporary folder cannot be made")?;
    let written = bake(&mut scene.clone(), given, params, trial.path())?;
    let names = written.iter().filter_map(|file| file.file_name());
    names
        .map(|name| folder.join(name))
        .try_for_each(|file| check_output(&file, &inputs))
}

/// Writes the shapes as triangles; of an STL, the notes name the meshes that are not closed.
fn write_triangles(
    args: &ExportArgs,
    format: Format,
    mut scene: Scene,
    [given, params]: &[ParamSet; 2],
) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().context("a temporary folder cannot be made")?;
    bake(&mut scene, given, params, folder.path())?;
    let is_wanted = |name: &str| {
        let named = |wanted: &String| {
            name.strip_prefix(&wanted[..])
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        args.shape.is_empty() || args.shape.iter().any(named)
    };
    let mut meshes = Vec::new();
    for surface in scene.world.placed_by_name().filter(|(name, _)| is_wanted(name)) {
        let (name, surface) = surface;
        meshes.push((name, triangles::of_surface(&surface)?));
    }
    if let Some(slab) = scene.slab().filter(|slab| is_wanted(&slab.name)) {
        let shape = slab.heights.shape;
        let heights = slab.heights.source.materialise(shape)?;
        meshes.push((slab.name.clone(), solid(slab, &heights, [shape.size[0], shape.size[1]])));
    }
    if meshes.is_empty() {
        let names: Vec<String> = scene
            .world
            .placed_by_name()
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        bail!(
            "{}: there is no shape to write; the scene has {}",
            args.scene.display(),
            if names.is_empty() {
                "none".into()
            } else {
                names.join(", ")
            }
        );
    }
    let all = || triangles::joined(meshes.iter().map(|(_, mesh)| mesh.clone()));
    match format {
        Format::Obj => mesh::write_obj(&args.output, &meshes)?,
        Format::Stl => mesh::write_stl(&args.output, &all())?,
        _ => mesh::write_ply(&args.output, &all())?,
    }
    let open = meshes
        .iter()
        .filter_map(|(name, mesh)| Some((name, mesh.is_closed().err()?)));
    Ok(open
        .map(|(name, why)| format!("`{name}` {why}"))
        .filter(|_| format == Format::Stl)
        .collect())
}

/// Writes the scene as glTF.
fn write_gltf(args: &ExportArgs, mut scene: Scene, [given, params]: &[ParamSet; 2]) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().context("a temporary folder cannot be made")?;
    bake(&mut scene, given, params, folder.path())?;
    let export = gltf::export(&scene, params)?;
    gltf::write(&export, &args.output)?;
    Ok(export.notes)
}

/// Writes the grids of media as OpenVDB.
fn write_volumes(args: &ExportArgs, scene: &Scene, params: &ParamSet) -> Result<Vec<String>> {
    let (fogs, notes) = volumes::of_scene(scene, params);
    ensure!(
        !fogs.is_empty(),
        "{}: has no grid to write{}",
        args.scene.display(),
        notes.iter().map(|note| format!("; {note}")).collect::<String>()
    );
    let all: Vec<Volume> = fogs.iter().map(Fog::volume).collect();
    vdb::write(&args.output, &all, args.half)?;
    Ok(notes)
}

/// The format that a file's extension states.
fn format(output: &Path) -> Result<Format> {
    let extension = output.extension().map(|e| e.to_string_lossy().to_lowercase());
    let known = FORMATS.iter().find(|(known, _)| Some(*known) == extension.as_deref());
    known.map(|(_, format)| *format).with_context(|| {
        let all: Vec<String> = FORMATS.iter().map(|(known, _)| format!(".{known}")).collect();
        format!(
            "{}: the extension says what is written; give one of {}",
            output.display(),
            all.join(", ")
        )
    })
}

/// The scene's own values, and the same with values of a folder in their place.
fn values(scene: &Scene, folder: Option<&Path>) -> Result<[ParamSet; 2]> {
    let (_, given) = Resident::new(scene)?;
    let mut params = given.clone();
    if let Some(folder) = folder {
        read_parameters(folder, scene, &mut params)?;
    }
    Ok([given, params])
}

/// The folder of the files that an exported file refers to: `room_files` beside `room.xml`.
fn companions(output: &Path) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}_files"))
}

/// A refusal as an error that names the scene.
fn refused(args: &ExportArgs, refusal: &mitsuba::Refusal) -> anyhow::Error {
    match refusal {
        mitsuba::Refusal::Unsayable(all) => {
            let lines: Vec<String> = all
                .iter()
                .map(|one| format!("{}: {one}", args.scene.display()))
                .collect();
            anyhow::anyhow!(lines.join("\n"))
        }
        mitsuba::Refusal::Io(error) => anyhow::anyhow!(error.to_string()),
    }
}
