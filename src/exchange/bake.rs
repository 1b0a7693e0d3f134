//! Puts the values of parameters into the scene itself, so that it is complete without them.

use std::path::{Path, PathBuf};

use glam::{Affine3A, Vec3};

use crate::io::mesh::{self, Mesh};
use crate::io::{Grid, Image, Result, UNIT_CUBE, image, vol};
use crate::params::{Kind, ParamSet, Parameter, Quantity};
use crate::resident::{motion, vertices, views};
use crate::scene::{Array, Displacement, Geometry, MeshFormat, Scene, Source, Surface, World};

/// Puts the values of `params` into the scene: numbers as they are, grids as `.vol`, images as `.exr` and meshes as `.ply`
/// into `folder`, each named after its path. `given` are the values of the scene's own files; a file stays in use if its
/// values have not changed and other programs can read it. Returns the files written. The block `optimize` is removed.
///
/// # Errors
/// A mesh can no longer be read, or a file cannot be written.
pub fn bake(scene: &mut Scene, given: &ParamSet, params: &ParamSet, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut baker = Baker {
        given,
        params,
        folder,
        written: Vec::new(),
    };
    let World { surfaces, groups, .. } = &mut scene.world;
    let grouped = groups.iter_mut().flat_map(|group| &mut group.surfaces);
    for surface in surfaces.iter_mut().chain(grouped) {
        baker.mesh(surface)?;
    }
    motion::bake(scene, params);
    views::bake(scene, params)?;
    for visited in scene.visit_mut() {
        baker.array(visited.array)?;
    }
    scene.optimize = None;
    scene.rewrite();
    Ok(baker.written)
}

struct Baker<'a> {
    given: &'a ParamSet,
    params: &'a ParamSet,
    folder: &'a Path,
    written: Vec<PathBuf>,
}

impl<'a> Baker<'a> {
    /// The parameter of this path, and whether its values differ from the scene's own.
    fn find(&self, path: &str) -> Option<(&'a Parameter, bool)> {
        let index = self.params.find(path)?;
        let (new, old) = (&self.params.parameters[index], self.given.parameters.get(index));
        Some((
            new,
            old.is_none_or(|old| (old.shape, &old.values) != (new.shape, &new.values)),
        ))
    }

    /// The file for the parameter or shape at the path `name`, noted as written.
    fn file(&mut self, name: &str, extension: &str) -> PathBuf {
        let path = self.folder.join(format!("{name}.{extension}"));
        self.written.push(path.clone());
        path
    }

    /// Writes a mesh whose vertices or values have changed.
    fn mesh(&mut self, surface: &mut Surface) -> Result<()> {
        let Geometry::Mesh {
            face_normals, format, ..
        } = surface.geometry
        else {
            return Ok(());
        };
        let changed = |quantity| {
            let part = surface.motion.iter().find(|part| part.quantity == quantity)?;
            let (parameter, changed) = self.find(&part.array.path)?;
            changed.then_some(parameter)
        };
        let [vertices, normals] = [Quantity::Vertex, Quantity::VertexNormal].map(changed);
        let values = self.values_on(&surface.name);
        surface
            .motion
            .retain(|part| !matches!(part.quantity, Quantity::Vertex | Quantity::VertexNormal));
        // Other programs have neither `grid` shapes nor displacements.
        let is_known = surface.displacement.is_none() && !matches!(format, MeshFormat::Grid(_));
        if is_known && vertices.is_none() && normals.is_none() && values.is_empty() {
            return Ok(());
        }
        let mut mesh = self.displaced(surface)?;
        for (name, parameter) in values {
            for attribute in mesh.attributes.iter_mut().filter(|a| a.name == name) {
                attribute.values.clone_from(&parameter.values);
            }
        }
        if vertices.or(normals).is_some() {
            let placed = mesh.placed(&surface.to_world);
            surface.to_world = Affine3A::IDENTITY;
            let of = |parameter: &Parameter| parameter.values.chunks_exact(3).map(|v| [v[0], v[1], v[2]]).collect();
            mesh.positions = vertices.map_or_else(|| placed.positions.iter().map(Vec3::to_array).collect(), of);
            mesh.normals = normals.map_or_else(Vec::new, of);
            mesh.triangles = placed.triangles;
        }
        let path = self.file(&surface.name, "ply");
        mesh::write_ply(&path, &mesh)?;
        surface.geometry = Geometry::Mesh {
            path,
            format: MeshFormat::Ply,
            face_normals,
            flip_tex_coords: false,
        };
        Ok(())
    }

    /// The mesh of a surface. A displaced one is in world space, and `surface` then loses its displacement and
    /// transform.
    fn displaced(&self, surface: &mut Surface) -> Result<Mesh> {
        let heights = surface.displacement.as_ref().map(Displacement::array);
        let Some((parameter, _)) = heights.and_then(|array| self.find(&array.path)) else {
            return surface.geometry.mesh();
        };
        let mesh = vertices::displaced(surface, parameter.shape, &parameter.values)?;
        surface.to_world = Affine3A::IDENTITY;
        surface.displacement = None;
        Ok(mesh)
    }

    /// The values at vertices and faces of a shape's mesh that have changed, with their names.
    fn values_on(&self, shape: &str) -> Vec<(&'a str, &'a Parameter)> {
        let of_shape = |parameter: &'a Parameter| {
            let name = parameter.path.strip_prefix(shape)?.strip_prefix('.')?;
            let (_, changed) = self.find(&parameter.path)?;
            (changed && parameter.kind == Kind::Attribute).then_some((name, parameter))
        };
        self.params.parameters.iter().filter_map(of_shape).collect()
    }

    fn array(&mut self, array: &mut Array) -> Result<()> {
        array.tuning = None;
        let Some((parameter, changed)) = self.find(&array.path) else {
            return Ok(());
        };
        if !changed && is_readable(array) {
            return Ok(());
        }
        array.shape = parameter.shape;
        match array.kind {
            Kind::Value => array.source = Source::Fill(parameter.values.clone()),
            Kind::Grid => {
                let path = self.file(&array.path, "vol");
                vol::write(&path, &grid_of(parameter))?;
                array.source = Source::GridFile(path);
            }
            Kind::Texture | Kind::Envmap => {
                let path = self.file(&array.path, "exr");
                image::write_exr(&path, &image_of(parameter))?;
                array.source = match (array.kind, parameter.quantity) {
                    (Kind::Envmap, _) => Source::ImageFile(path),
                    (_, Quantity::Normal | Quantity::Height | Quantity::Elevation | Quantity::Displacement) => {
                        Source::Relief { path, raw: true }
                    }
                    (_, Quantity::Light) => Source::Radiance { path, raw: true },
                    _ => Source::Reflectance { path, raw: true },
                };
            }
            // Values on a mesh are in the file of the mesh.
            Kind::Attribute | Kind::Points => {}
        }
        Ok(())
    }
}

/// Whether other programs can read an array as the scene states it.
fn is_readable(array: &Array) -> bool {
    match (array.kind, &array.source) {
        (Kind::Grid, Source::GridFile(path)) => path.extension().is_some_and(|e| e.eq_ignore_ascii_case("vol")),
        (Kind::Grid, _) => false,
        (Kind::Texture | Kind::Envmap, source) => matches!(
            source,
            Source::ImageFile(_)
                | Source::Reflectance { .. }
                | Source::Share { .. }
                | Source::Radiance { .. }
                | Source::Relief { .. }
        ),
        (Kind::Value | Kind::Attribute | Kind::Points, _) => true,
    }
}

/// A parameter's grid with its box in the world, or the unit cube if it is rotated.
pub(super) fn grid_of(parameter: &Parameter) -> Grid {
    Grid {
        size: parameter.shape.size,
        channels: parameter.shape.channels,
        bounds: parameter.bounds().unwrap_or(UNIT_CUBE),
        data: parameter.values.clone(),
    }
}

/// The image of a texture or an environment map.
pub(super) fn image_of(parameter: &Parameter) -> Image {
    let [width, height, _] = parameter.shape.size;
    Image {
        width,
        height,
        channels: parameter.shape.channels,
        data: parameter.values.clone(),
    }
}
