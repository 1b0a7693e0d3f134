//! Parameters as files: one each, named by its path, in the format of its kind.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use glam::{DAffine3, Vec3};
use serde_json::json;

use super::record::write_json;
use super::run_folder::create;
use super::splats::SplatValues;
use crate::device::{ArrayKind, Device};
use crate::io::mesh::Mesh;
use crate::io::{Grid, Image, UNIT_CUBE, image, mesh, npy, srgb, vdb, vol};
use crate::params::{Kind, Parameter, Quantity, Shape};
use crate::resident::solid::solid;
use crate::resident::vertices;
use crate::scene::{Displacement, Geometry, SPLAT_ARRAYS, Scene, Slab, Surface};

/// Writes every optimised parameter of a device into `folder`: grids as `.vol` and `.npy` (media also as `.vdb`), environment
/// maps and textures as `.exr`, these also as `.png` for viewing, values as `.json`, those of a mesh's vertices and faces as
/// `.npy`. A `.vol` states the grid's box in the world, or the unit cube if the grid is rotated.
///
/// # Errors
/// A file cannot be written, or the device is lost.
pub fn write_all(folder: &Path, device: &mut dyn Device) -> Result<()> {
    create(folder)?;
    if let Some((name, splats)) = splat_values(device)? {
        let size = device
            .sensors()
            .first()
            .map_or([1, 1], |sensor| [sensor.width, sensor.height]);
        splats.write_tensors(&folder.join(format!("{name}.safetensors")))?;
        splats.write_ply(&folder.join(format!("{name}.ply")))?;
        splats.write_svg(&folder.join(format!("{name}.svg")), size, false)?;
    }
    for index in 0..device.params().parameters.len() {
        let parameter = &device.params().parameters[index];
        if parameter.tuning.is_none() || parameter.kind == Kind::Points {
            continue;
        }
        let description = parameter.without_values();
        let values = device.read(index, ArrayKind::Values)?;
        write_picture(folder, &description, &values)?;
        write_fog(folder, &description, &values)?;
        write(folder, &description, values)?;
    }
    Ok(())
}

/// Writes a slab whose heights are optimised as a closed solid.
///
/// # Errors
/// A file cannot be written, or the device is lost.
fn write_slab(folder: &Path, scene: &Scene, device: &mut dyn Device) -> Result<()> {
    let Some(slab) = scene.slab() else { return Ok(()) };
    let Some(index) = device.params().find(&slab.heights.path) else {
        return Ok(());
    };
    let parameter = &device.params().parameters[index];
    if parameter.tuning.is_none() {
        return Ok(());
    }
    let [width, height, _] = parameter.shape.size;
    let values = device.read(index, ArrayKind::Values)?;
    write_solid(folder, slab, &values, [width, height])
}

/// Writes a slab with these coefficients of its heights, `size` along x and y, as a closed solid: `.ply`, `.obj` and `.stl`,
/// named after the slab.
///
/// # Errors
/// A file cannot be written.
pub fn write_solid(folder: &Path, slab: &Slab, heights: &[f32], size: [usize; 2]) -> Result<()> {
    let solid = solid(slab, heights, size);
    let file = |ending: &str| folder.join(format!("{}.{ending}", slab.name));
    mesh::write_ply(&file("ply"), &solid)?;
    mesh::write_stl(&file("stl"), &solid)?;
    mesh::write_obj(&file("obj"), &[(slab.name.clone(), solid)])?;
    Ok(())
}

/// The displaced mesh, in world space, of a shape whose displacement is optimised; None for other shapes.
fn displaced(surface: &Surface, device: &mut dyn Device) -> Result<Option<Mesh>> {
    let heights = surface.displacement.as_ref().map(Displacement::array);
    let Some(index) = heights.and_then(|array| device.params().find(&array.path)) else {
        return Ok(None);
    };
    let Parameter { tuning, shape, .. } = device.params().parameters[index];
    if tuning.is_none() {
        return Ok(None);
    }
    let values = device.read(index, ArrayKind::Values)?;
    Ok(Some(vertices::displaced(surface, shape, &values)?))
}

/// The mesh, in world space, of a shape whose vertices or their normals are optimised; None for other shapes.
fn moved(surface: &Surface, device: &mut dyn Device) -> Result<Option<Mesh>> {
    let mut values = |quantity| {
        let part = surface.motion.iter().find(|part| part.quantity == quantity);
        let index = part.and_then(|part| device.params().find(&part.array.path));
        let Some(index) = index.filter(|&index| device.params().parameters[index].tuning.is_some()) else {
            return Ok(None);
        };
        let values = device.read(index, ArrayKind::Values)?;
        let triples: Vec<[f32; 3]> = values.chunks_exact(3).map(|v| [v[0], v[1], v[2]]).collect();
        anyhow::Ok(Some(triples))
    };
    let (positions, normals) = (values(Quantity::Vertex)?, values(Quantity::VertexNormal)?);
    if positions.is_none() && normals.is_none() {
        return Ok(None);
    }
    let mesh = surface.geometry.mesh()?;
    let placed = mesh.placed(&surface.to_world);
    let rest = || placed.positions.iter().map(Vec3::to_array).collect();
    Ok(Some(Mesh {
        positions: positions.unwrap_or_else(rest),
        normals: normals.unwrap_or_default(),
        triangles: placed.triangles,
        ..mesh
    }))
}

/// Writes the meshes of a scene that have optimised values at vertices or faces, with the device's values, as `.ply` named after
/// their shapes; meshes whose vertices, normals or displacement are optimised in world space, also as `.obj`; and a slab as a
/// closed solid.
///
/// # Errors
/// A file cannot be written or a mesh no longer read, or the device is lost.
pub fn write_meshes(folder: &Path, scene: &Scene, device: &mut dyn Device) -> Result<()> {
    write_slab(folder, scene, device)?;
    let grouped = scene.world.groups.iter().flat_map(|group| &group.surfaces);
    for surface in scene.world.surfaces.iter().chain(grouped) {
        let Geometry::Mesh { path, .. } = &surface.geometry else {
            continue;
        };
        let mut found = Vec::new();
        for (index, parameter) in device.params().parameters.iter().enumerate() {
            let name = parameter
                .path
                .strip_prefix(&surface.name)
                .and_then(|rest| rest.strip_prefix('.'));
            if let (Kind::Attribute, Some(_), Some(name)) = (parameter.kind, parameter.tuning, name) {
                found.push((index, name.to_owned()));
            }
        }
        let shaped = match displaced(surface, device)? {
            Some(mesh) => Some(mesh),
            None => moved(surface, device)?,
        };
        if found.is_empty() && shaped.is_none() {
            continue;
        }
        let is_shaped = shaped.is_some();
        let mut mesh = match shaped {
            Some(mesh) => mesh,
            None => mesh::read_ply(path, false, false)?,
        };
        for (index, name) in found {
            let values = device.read(index, ArrayKind::Values)?;
            if let Some(attribute) = mesh
                .attributes
                .iter_mut()
                .find(|a| a.name == name && a.values.len() == values.len())
            {
                attribute.values = values;
            }
        }
        mesh::write_ply(&folder.join(format!("{}.ply", surface.name)), &mesh)?;
        if is_shaped {
            let file = folder.join(format!("{}.obj", surface.name));
            mesh::write_obj(&file, &[(surface.name.clone(), mesh)])?;
        }
    }
    Ok(())
}

/// Writes a texture, an environment map or a value into `folder`, which is created; nothing for parameters of other kinds.
///
/// # Errors
/// A file cannot be written.
pub fn write_map(folder: &Path, mut parameter: Parameter) -> Result<()> {
    if !is_map(&parameter) {
        return Ok(());
    }
    create(folder)?;
    let values = std::mem::take(&mut parameter.values);
    write_picture(folder, &parameter, &values)?;
    write(folder, &parameter, values)
}

/// Whether a parameter is a texture, an environment map or a value: a report shows its start and truth beside the
/// result.
pub fn is_map(parameter: &Parameter) -> bool {
    matches!(parameter.kind, Kind::Texture | Kind::Envmap | Kind::Value)
}

/// Whether a parameter is also written as a fog volume: the grid of a medium, not one of a radiance field.
pub fn is_fog(parameter: &Parameter) -> bool {
    let is_raw = matches!(parameter.quantity, Quantity::Density | Quantity::Coefficients);
    parameter.kind == Kind::Grid && !is_raw && matches!(parameter.shape.channels, 1 | 3)
}

/// Most texels of a parameter that a report shows; of larger ones means over blocks.
pub const SHOWN_TEXELS: usize = 1 << 19;

/// Most values of a parameter, sampled evenly, from which a report makes histograms and the brightness of its pictures.
pub const SHOWN_SAMPLES: usize = 1 << 20;

/// Bytes that a report holds of a parameter of this shape: texels of one channel or of three colours, and samples.
pub fn shown_bytes(shape: Shape) -> u64 {
    texel_bytes(shape) + 4 * shape.len().min(SHOWN_SAMPLES) as u64
}

/// Bytes of the texels among them, which are copied once to find their range.
pub fn texel_bytes(shape: Shape) -> u64 {
    let colors = if shape.channels < 3 { 1 } else { 3 };
    4 * (colors * shape.texels().min(SHOWN_TEXELS)) as u64
}

/// Writes the grid of a medium as a fog volume for other programs; not the raw grids of a radiance field.
fn write_fog(folder: &Path, parameter: &Parameter, values: &[f32]) -> Result<()> {
    if !is_fog(parameter) {
        return Ok(());
    }
    let volume = vdb::Volume {
        name: vdb::usual_name(&parameter.path),
        size: parameter.shape.size,
        channels: parameter.shape.channels,
        data: values,
        to_world: DAffine3::from_cols_array(&parameter.to_world.to_cols_array().map(f64::from)),
    };
    vdb::write(&file(folder, parameter, "vdb"), &[volume], false)?;
    Ok(())
}

/// Writes a texture or an environment map as an 8-bit image: colours sRGB-coded, heights scaled from lowest and highest to 0 and 1, other values as
/// they are, from 0 to 1.
fn write_picture(folder: &Path, parameter: &Parameter, values: &[f32]) -> Result<()> {
    let ([width, height, _], channels) = (parameter.shape.size, parameter.shape.channels);
    if !matches!((parameter.kind, channels), (Kind::Texture | Kind::Envmap, 1 | 3)) {
        return Ok(());
    }
    let is_color = matches!(
        parameter.quantity,
        Quantity::Reflectance | Quantity::Albedo | Quantity::Emission | Quantity::Light | Quantity::Environment
    );
    let [low, high] = match parameter.quantity {
        Quantity::Elevation | Quantity::Displacement => {
            [f32::min, f32::max].map(|most| values.iter().copied().reduce(most).unwrap_or(0.0))
        }
        _ => [0.0, 1.0],
    };
    let scaled = |v: f32| if high > low { (v - low) / (high - low) } else { v };
    let coded = |v: f32| if is_color { srgb::encode(v) } else { scaled(v) };
    image::write_png_of(
        &file(folder, parameter, "png"),
        [width, height],
        channels,
        values,
        coded,
    )?;
    Ok(())
}

/// Writes the gradients of every optimised parameter of a device into `folder`, in the formats of [`write_all`] (those of
/// splats as `.npy`), and returns the parameters' paths and largest absolute derivatives.
///
/// # Errors
/// A file cannot be written, the device is lost, or a derivative is not finite.
pub fn write_gradients(folder: &Path, device: &mut dyn Device) -> Result<Vec<(String, f32)>> {
    create(folder)?;
    let mut written = Vec::new();
    for index in 0..device.params().parameters.len() {
        let parameter = &device.params().parameters[index];
        if parameter.tuning.is_none() {
            continue;
        }
        let description = parameter.without_values();
        let gradient = device.read(index, ArrayKind::Gradient)?;
        if let Some(entry) = gradient.iter().position(|d| !d.is_finite()) {
            bail!(
                "the derivative by entry {entry} of {} is {}, no finite number: scale the adjoint, or look for surfaces in one place",
                description.path,
                gradient[entry]
            );
        }
        let largest = gradient.iter().fold(0.0, |most: f32, d| most.max(d.abs()));
        written.push((description.path.clone(), largest));
        if description.kind == Kind::Points {
            let [x, y, z] = description.shape.size.map(|n| n as u64);
            let sides = [z, y, x, description.shape.channels as u64];
            npy::write_array(&file(folder, &description, "npy"), &sides, &gradient)?;
        } else {
            write(folder, &description, gradient)?;
        }
    }
    Ok(written)
}

/// Name and values of a scene's splats; None if none of their arrays is optimised.
///
/// # Errors
/// The device is lost.
pub fn splat_values(device: &mut dyn Device) -> crate::device::Result<Option<(String, SplatValues)>> {
    let mut splats = SplatValues::default();
    let mut called = None;
    let points = |p: &Parameter| p.kind == Kind::Points;
    if !device
        .params()
        .parameters
        .iter()
        .any(|p| points(p) && p.tuning.is_some())
    {
        return Ok(None);
    }
    for index in 0..device.params().parameters.len() {
        let parameter = &device.params().parameters[index];
        let Some((name, part)) = parameter.path.rsplit_once('.').filter(|_| points(parameter)) else {
            continue;
        };
        let place = SPLAT_ARRAYS.iter().position(|(known, _)| *known == part);
        called = Some(name.to_owned());
        if let Some(place) = place {
            splats.arrays[place] = device.read(index, ArrayKind::Values)?;
        }
    }
    Ok(called.map(|name| (name, splats)))
}

/// Writes one parameter with the values `data` in place of its own.
fn write(folder: &Path, parameter: &Parameter, data: Vec<f32>) -> Result<()> {
    let (shape, path) = (parameter.shape, |extension| file(folder, parameter, extension));
    match parameter.kind {
        Kind::Grid => {
            let grid = Grid {
                size: shape.size,
                channels: shape.channels,
                bounds: parameter.bounds().unwrap_or(UNIT_CUBE),
                data,
            };
            vol::write(&path("vol"), &grid)?;
            npy::write(&path("npy"), &grid)?;
        }
        Kind::Envmap | Kind::Texture => {
            let [width, height, _] = shape.size;
            let channels = shape.channels;
            image::write_exr(
                &path("exr"),
                &Image {
                    width,
                    height,
                    channels,
                    data,
                },
            )?;
        }
        Kind::Attribute => {
            let values = Grid {
                size: shape.size,
                channels: shape.channels,
                bounds: UNIT_CUBE,
                data,
            };
            npy::write(&path("npy"), &values)?;
        }
        Kind::Value => write_json(&path("json"), &json!({ "value": data }))?,
        // [`write_all`] writes all arrays of an object of splats to one file.
        Kind::Points => {}
    }
    Ok(())
}

/// The extensions of the files that hold values of this kind, in the order in which they are tried.
pub(super) fn extensions(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Grid => &["vol", "npy"],
        Kind::Envmap | Kind::Texture => &["exr"],
        Kind::Attribute => &["npy"],
        Kind::Value => &["json"],
        Kind::Points => &["safetensors"],
    }
}

/// The file in `folder` that holds a parameter's values, with this extension.
pub(super) fn file(folder: &Path, parameter: &Parameter, extension: &str) -> PathBuf {
    if let (Kind::Points, Some((name, _))) = (parameter.kind, parameter.path.rsplit_once('.')) {
        return folder.join(format!("{name}.{extension}"));
    }
    folder.join(format!("{}.{extension}", parameter.path))
}

#[cfg(test)]
mod tests {
    use super::super::stored::read_all;
    use super::*;
    use crate::params::{ParamSet, Tuning};
    use glam::{Affine3A, Quat, Vec3};

    fn parameter(path: &str, kind: Kind, size: [usize; 3], channels: usize) -> Parameter {
        let shape = Shape { size, channels };
        Parameter {
            path: path.into(),
            kind,
            quantity: Quantity::Light,
            shape,
            to_world: Affine3A::from_scale_rotation_translation(
                Vec3::new(2.0, 4.0, 6.0),
                Quat::IDENTITY,
                Vec3::new(-1.0, -2.0, 0.5),
            ),
            values: (0..shape.len()).map(|i| i as f32 * 0.1 - 1.0).collect(),
            tuning: Some(Tuning {
                learning_rate: 0.1,
                bounds: [-10.0, 10.0],
                smoothing: 0.0,
            }),
        }
    }

    #[test]
    fn every_kind_comes_back_at_its_own_resolution() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let written = [
            parameter("a.sigma_t", Kind::Grid, [2, 3, 4], 1),
            parameter("a.sh", Kind::Grid, [2, 3, 4], 27),
            parameter("env", Kind::Envmap, [4, 3, 1], 3),
            parameter("wall.bsdf.reflectance", Kind::Texture, [4, 3, 1], 3),
            parameter("sky.radiance", Kind::Value, [1, 1, 1], 3),
        ];
        for parameter in &written {
            write(folder.path(), parameter, parameter.values.clone()).expect("writable");
        }
        let mut params = ParamSet::default();
        for parameter in &written {
            let mut other = parameter.clone();
            if other.kind != Kind::Value {
                other.shape.size = [1, 1, 1];
            }
            other.values = vec![0.0; other.shape.len()];
            params.parameters.push(other);
        }
        read_all(folder.path(), &mut params).expect("all there");
        assert_eq!(params.parameters, written);
        std::fs::remove_file(folder.path().join("a.sh.vol")).expect("there");
        read_all(folder.path(), &mut params).expect("the .npy serves as well");
        assert_eq!(params.parameters, written);
    }

    /// A `.vol` states the box of its texels, onto which `to_world` maps the unit cube. Bytes are compared, since
    /// reader and writer could share a mistake about the box.
    #[test]
    fn a_written_grid_fills_its_box() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let grid = parameter("a", Kind::Grid, [2, 3, 4], 1);
        write(folder.path(), &grid, grid.values.clone()).expect("writable");
        let bytes = std::fs::read(folder.path().join("a.vol")).expect("readable");
        let word = |i: usize| bytes[4 * i..4 * i + 4].try_into().expect("four bytes");
        let header = [0, 1, 2, 3, 4, 5].map(|i| i32::from_le_bytes(word(i)));
        assert_eq!(header, [i32::from_le_bytes(*b"VOL\x03"), 1, 2, 3, 4, 1]);
        let corners = [6, 7, 8, 9, 10, 11].map(|i| f32::from_le_bytes(word(i)));
        assert_eq!(corners, [-1.0, -2.0, 0.5, 1.0, 2.0, 6.5]);
        assert_eq!(f32::from_le_bytes(word(12 + 23)), grid.values[23]);
    }

    /// Colours are sRGB-coded (0.5 is 188 of 255), roughnesses are not (0.5 is 128), and grids have no picture.
    #[test]
    fn textures_have_a_picture() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (quantity, kind, channels, byte) in [
            (Quantity::Reflectance, Kind::Texture, 3, 188u8),
            (Quantity::Roughness, Kind::Texture, 1, 128),
            (Quantity::Environment, Kind::Envmap, 3, 188),
        ] {
            let texture = Parameter {
                quantity,
                ..parameter("a", kind, [2, 1, 1], channels)
            };
            let values = vec![0.5; 2 * channels];
            write_picture(folder.path(), &texture, &values).expect("writable");
            let (found, _) = image::read(&folder.path().join("a.png")).expect("readable");
            assert_eq!((found.width, found.height, found.channels), (2, 1, channels));
            assert!(found.data.iter().all(|v| *v == f32::from(byte) / 255.0), "{found:?}");
        }
        let grid = parameter("b", Kind::Grid, [2, 1, 1], 3);
        write_picture(folder.path(), &grid, &grid.values).expect("nothing to write");
        assert!(!folder.path().join("b.png").exists());
    }

    #[test]
    fn grids_state_the_box_where_they_stand() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut grid = parameter("a", Kind::Grid, [2, 3, 4], 1);
        let mut stated = |to_world| {
            grid.to_world = to_world;
            write(folder.path(), &grid, grid.values.clone()).expect("writable");
            vol::header(&folder.path().join("a.vol")).expect("readable").bounds
        };
        let placed = Affine3A::from_scale(Vec3::new(2.0, 4.0, 6.0));
        let moved = Affine3A::from_translation(Vec3::new(-1.0, -2.0, 0.5)) * placed;
        assert_eq!(stated(moved), [[-1.0, -2.0, 0.5], [1.0, 2.0, 6.5]]);
        for no_box in [
            Affine3A::from_rotation_y(0.1) * moved,
            Affine3A::from_scale(Vec3::new(-1.0, 1.0, 1.0)),
        ] {
            assert_eq!(stated(no_box), UNIT_CUBE);
        }
    }

    #[test]
    fn all_missing_files_are_listed_and_channels_checked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut params = ParamSet::default();
        params.parameters.push(parameter("a", Kind::Grid, [1, 1, 1], 1));
        params.parameters.push(parameter("b", Kind::Value, [1, 1, 1], 3));
        let error = read_all(folder.path(), &mut params).expect_err("empty").to_string();
        assert!(error.contains("a.vol") && error.contains("b.json"), "{error}");
        let wrong = parameter("a", Kind::Grid, [1, 1, 1], 2);
        write(folder.path(), &wrong, wrong.values.clone()).expect("writable");
        let error = read_all(folder.path(), &mut params).expect_err("channels").to_string();
        assert!(error.contains("2 channels"), "{error}");
    }
}
