//! Reads values of parameters from a folder, at any resolution, and finds files there that belong to no parameter.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::parameters::{extensions, file};
use crate::io::tensors::Reader;
use crate::io::{Image, image, npy, read_at_most, srgb, vol};
use crate::params::{Kind, ParamSet, Parameter};

/// Largest `.json` file of a value, in bytes; usually it holds a few numbers.
const MAX_VALUE_BYTES: u64 = 1 << 24;

/// Reads the values of parameters from the files of `folder`, at any resolution. Those of all optimised parameters must be
/// there (in a scene without any, those of at least one parameter); others may be. Returns the sorted names of files that
/// look like a parameter's values but belong to none.
///
/// # Errors
/// Files are missing, which are then all listed, or do not fit their parameter; or a file places an object or its vertices,
/// and that placement is no parameter of this scene.
pub fn read_all(folder: &Path, params: &mut ParamSet) -> Result<Vec<String>> {
    if !folder.is_dir() {
        bail!(
            "{}: is not a folder; give the folder `final` of a run",
            folder.display()
        );
    }
    let any_tuned = params.parameters.iter().any(|p| p.tuning.is_some());
    let mut missing = Vec::new();
    let mut found = 0;
    for parameter in &mut params.parameters {
        let candidates: Vec<PathBuf> = extensions(parameter.kind)
            .iter()
            .map(|extension| file(folder, parameter, extension))
            .collect();
        if let Some(path) = candidates.iter().find(|path| path.exists()) {
            read(path, parameter)?;
            found += 1;
        } else if parameter.tuning.is_some() || !any_tuned {
            missing.push(format!("{}.{}", parameter.path, extensions(parameter.kind)[0]));
        }
    }
    if (any_tuned && !missing.is_empty()) || found == 0 {
        let nested = folder.join("final");
        let hint = if nested.is_dir() {
            format!("did you mean {}?", nested.display())
        } else {
            "give the folder `final` of a run of this scene".to_owned()
        };
        bail!("{}: lacks {}; {hint}", folder.display(), missing.join(", "));
    }
    let strangers = strangers(folder, params)?;
    // A placement is a parameter only if the scene says so; without reading it the object would stand elsewhere.
    let is_place = |name: &&String| PLACES.iter().any(|part| name.contains(part));
    if let Some(place) = strangers.iter().find(is_place) {
        let path = place.rsplit_once('.').map_or(place.as_str(), |(path, _)| path);
        bail!(
            "{}: holds {place}, but the scene has no parameter `{path}`; name it in the block `optimize`, or remove the file",
            folder.display()
        );
    }
    Ok(strangers)
}

/// Parts of parameter paths that mark placements of objects and of their vertices.
const PLACES: [&str; 3] = [".to_world.", ".vertex_positions.", ".vertex_normals."];

/// The sorted names of files in a folder that are named like a parameter's values but belong to none of `params`.
fn strangers(folder: &Path, params: &ParamSet) -> Result<Vec<String>> {
    let known: HashSet<PathBuf> = params
        .parameters
        .iter()
        .flat_map(|p| extensions(p.kind).iter().map(|extension| file(folder, p, extension)))
        .collect();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        // Pictures beside the values of textures are .png, which no parameter is read from.
        let is_value = extension.is_some_and(|e| ["vol", "npy", "exr", "json"].contains(&e));
        let names_path = path
            .file_stem()
            .is_some_and(|stem| stem.to_string_lossy().contains('.'));
        if is_value && names_path && !known.contains(&path) {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Reads the values of a parameter from a file of its kind, at the file's resolution.
///
/// # Errors
/// The file cannot be read, holds numbers that are not finite, or has other channels than the parameter (or, for values
/// on a mesh, another number of values).
pub fn read(path: &Path, parameter: &mut Parameter) -> Result<()> {
    let (size, channels, values) = match parameter.kind {
        Kind::Grid | Kind::Attribute => {
            let grid = if path.extension().is_some_and(|e| e == "npy") {
                npy::read(path)?
            } else {
                vol::read(path)?
            };
            (grid.size, grid.channels, grid.data)
        }
        Kind::Envmap | Kind::Texture => {
            let image = read_radiance(path)?;
            let size = [image.width, image.height, 1];
            let is_grey = image.data.chunks_exact(3).all(|t| t[0] == t[1] && t[1] == t[2]);
            // `read_radiance` returns three channels even for grey images.
            match parameter.shape.channels == 1 && is_grey {
                true => (size, 1, image.data.into_iter().step_by(3).collect()),
                false => (size, image.channels, image.data),
            }
        }
        Kind::Points => {
            let part = parameter.path.rsplit('.').next().unwrap_or_default();
            let mut reader = Reader::open(path)?;
            let &[count, channels] = reader.shape(part).unwrap_or_default() else {
                bail!("{}: holds no list named `{part}`", path.display());
            };
            ([count, 1, 1], channels, reader.f32(part)?)
        }
        Kind::Value => {
            let values = read_value(path)?;
            (
                parameter.shape.size,
                values.len() / parameter.shape.texels().max(1),
                values,
            )
        }
    };
    if channels != parameter.shape.channels {
        let (shown, expected) = (path.display(), parameter.shape.channels);
        bail!(
            "{shown}: has {channels} channels, but {} has {expected} in this scene",
            parameter.path
        );
    }
    if parameter.kind == Kind::Attribute && size != parameter.shape.size {
        let (shown, expected) = (path.display(), parameter.shape.size[0]);
        bail!(
            "{shown}: has {} values, but {} has {expected} in this scene",
            size.iter().product::<usize>(),
            parameter.path
        );
    }
    parameter.shape.size = size;
    parameter.values = values;
    Ok(())
}

/// An image as three channels of linear radiance.
fn read_radiance(path: &Path) -> Result<Image> {
    let (mut image, encoding) = image::read(path)?;
    if encoding == crate::io::Encoding::Srgb {
        srgb::decode_image(&mut image);
    }
    if let Some(at) = image.first_non_finite() {
        bail!(
            "{}: value {at} is {}, expected finite numbers",
            path.display(),
            image.data[at]
        );
    }
    let texels = image.data.chunks_exact(image.channels);
    let data = match image.channels {
        1 => texels.flat_map(|t| [t[0]; 3]).collect(),
        _ => texels.flat_map(|t| [t[0], t[1], t[2]]).collect(),
    };
    Ok(Image {
        channels: 3,
        data,
        ..image
    })
}

/// The numbers of a parameter in its `.json` file of a folder; None if the file is missing or damaged.
pub fn read_numbers(folder: &Path, parameter: &str) -> Option<Vec<f32>> {
    read_value(&folder.join(format!("{parameter}.json"))).ok()
}

fn read_value(path: &Path) -> Result<Vec<f32>> {
    let shown = path.display();
    let bytes = read_at_most(path, MAX_VALUE_BYTES).with_context(|| format!("{shown}: cannot be read"))?;
    let value: Value = serde_json::from_slice(&bytes).with_context(|| format!("{shown}: is not JSON"))?;
    let numbers = value["value"].as_array().map(|list| {
        let number = |v: &Value| v.as_f64().map(|v| v as f32).filter(|v| v.is_finite());
        list.iter().map(number).collect::<Option<Vec<f32>>>()
    });
    match numbers {
        Some(Some(values)) => Ok(values),
        _ => bail!("{shown}: expected {{\"value\": [numbers]}}"),
    }
}
