//! Shapes under transforms that mirror: Mitsuba turns the normals of some inwards, this program of none.

use serde_json::{Map, Value, json};

use crate::io::Result;
use crate::scene::{Geometry, Scene, Surface};

/// Negates `flip_normals` of the shapes of `scene`, in the dictionary `root`, whose normals Mitsuba turns and this program
/// does not. Import and export need the same change; true if there is such a shape.
///
/// # Errors
/// A mesh that the scene names is gone.
pub fn turn(scene: &Scene, root: &mut Map<String, Value>) -> Result<bool> {
    let mut changed = false;
    let grouped = scene.world.groups.iter().flat_map(|group| &group.surfaces);
    for surface in scene.world.surfaces.iter().chain(grouped) {
        if !turns(surface)? {
            continue;
        }
        let mut steps = surface.name.split('.');
        let first = steps.next().and_then(|step| root.get_mut(step));
        let Some(object) = steps.fold(first, |at, step| at?.get_mut(step)) else {
            continue;
        };
        object["flip_normals"] = json!(!surface.flip_normals);
        changed = true;
    }
    Ok(changed)
}

/// Whether Mitsuba turns the normals of a shape: it does so with mirrored spheres, and with mirrored meshes whose normals
/// follow from their triangles.
fn turns(surface: &Surface) -> Result<bool> {
    if !is_mirrored(surface) {
        return Ok(false);
    }
    Ok(match &surface.geometry {
        Geometry::Sphere { .. } => true,
        Geometry::Mesh {
            path,
            format,
            face_normals,
            flip_tex_coords,
        } => format.read(path, *face_normals, *flip_tex_coords)?.normals.is_empty(),
        _ => false,
    })
}

/// A sentence for each shape whose medium Mitsuba would look for on the wrong side: of mirrored cubes and of mirrored meshes
/// with vertex normals it turns the triangles, but not what scatters.
pub(super) fn inside_out(scene: &Scene) -> impl Iterator<Item = String> {
    let bounds = |surface: &&Surface| surface.interior.is_some() || surface.exterior.is_some();
    let odd = |surface: &&Surface| match surface.geometry {
        Geometry::Cube => true,
        Geometry::Mesh { .. } => turns(surface).is_ok_and(|turned| !turned),
        _ => false,
    };
    let surfaces = scene.world.surfaces.iter();
    let surfaces = surfaces
        .filter(bounds)
        .filter(move |surface| is_mirrored(surface) && odd(surface));
    surfaces.map(|surface| {
        format!(
            "`{}`: its `to_world` mirrors, which for Mitsuba puts its medium outside; give it one that does not",
            surface.name
        )
    })
}

fn is_mirrored(surface: &Surface) -> bool {
    surface.to_world.matrix3.determinant() < 0.0
}
