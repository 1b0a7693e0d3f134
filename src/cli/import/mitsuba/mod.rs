//! `prbopt import scene.xml`: a scene of Mitsuba's XML, as its add-on for Blender and its own writer make it, as a scene file.

mod convert;
mod node;
mod parameters;
mod values;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::{ImportArgs, check_scene_file};
use crate::cli::Outcome;
use crate::cli::shared::{check_output, command_line, parts_of};
use crate::exchange::mitsuba::turn;
use crate::io::{atomic, json};
use crate::output::streams::print_line;
use crate::scene::{self, Diagnostics, Place, Scene};
use crate::tell;
use convert::Conversion;

/// Writes the scene file.
///
/// # Errors
/// All that cannot be converted, each with its place in the XML; nothing is written then. The scene file exists
/// already, or cannot be written.
pub(super) fn run(args: &ImportArgs) -> Result<Outcome> {
    let to_standard_output = args.output.as_deref() == Some(Path::new("-"));
    let output = args.output.clone().unwrap_or_else(|| default_output(&args.dataset));
    if !to_standard_output {
        check_scene_file(args, &output)?;
    }
    let (text, scene) = convert(&args.dataset, &output, &args.define)?;
    if to_standard_output {
        print_line(text.trim_end());
        return Ok(Outcome::Done);
    }
    check_output(&output, &parts_of(&scene))?;
    atomic::write_bytes(&output, text.as_bytes())?;
    if !args.quiet {
        let shown = output.display().to_string();
        let next = command_line(["prbopt", "render", &shown]);
        let lack = match scene.sensors.is_empty() {
            true => "it has no sensor, without which nothing is rendered: add one and ",
            false => "",
        };
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        tell!(
            "wrote {shown}: {}, {}; {lack}render it with: {next}",
            count(scene.sensors.len(), "view"),
            count(scene.world.placed().count(), "shape"),
        );
    }
    Ok(Outcome::Done)
}

/// The text of the scene file at `output`, and the scene that it describes; `defines` are names and values of
/// parameters.
///
/// # Errors
/// All that cannot be converted, each with its place in the XML.
pub fn convert(path: &Path, output: &Path, defines: &[(String, String)]) -> Result<(String, Scene)> {
    let mut conversion = Conversion::new(output, defines);
    let node = conversion.scene(path);
    if conversion.is_stopped() {
        return Err(Diagnostics::of(conversion.into_mistakes()).into());
    }
    // Parses a text with one member a line, so that the line of a mistake gives its place in the XML.
    let (lines, origins) = node.lines();
    match scene::parse(&lines, output) {
        Ok(scene) if conversion.is_sound() => return turned(node.value(), scene, output),
        Ok(_) => {}
        Err(mistakes) => {
            // A mistake about an object as a whole is reported in the line where the object begins. So is one about its type,
            // which does not follow from missing members.
            let begins: Vec<bool> = lines.lines().map(|line| line.ends_with('{')).collect();
            let is_of_type = |message: &str| {
                message.starts_with("Mitsuba's ") || message.starts_with("unknown ") && message.contains(" type `")
            };
            conversion.adopt(mistakes.iter().map(|mistake| {
                let line = match mistake.place {
                    Place::Text(line, _) if mistake.path == output => line - 1,
                    _ => return (mistake.clone(), None),
                };
                let is_whole = begins.get(line) == Some(&true) && !is_of_type(&mistake.message);
                (mistake.clone(), origins.get(line).map(|origin| (*origin, is_whole)))
            }));
        }
    }
    Err(Diagnostics::of(conversion.into_mistakes()).into())
}

/// The text and the scene of a dictionary, after `flip_normals` is adapted for shapes that Mitsuba turns when mirrored.
fn turned(mut value: Value, scene: Scene, output: &Path) -> Result<(String, Scene)> {
    if let Some(root) = value.as_object_mut()
        && turn(&scene, root)?
    {
        let text = json::pretty(&value);
        let scene = scene::parse(&text, output)?;
        return Ok((text, scene));
    }
    Ok((json::pretty(&value), scene))
}

/// The XML's name with the extension `.json`, in the current folder.
fn default_output(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default();
    Path::new(stem).with_extension("json")
}
