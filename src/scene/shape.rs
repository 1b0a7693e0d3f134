//! Shapes: `cube`, `sphere`, `rectangle`, `disk`, `cylinder`, `obj`, `ply`, `serialized`, `grid`, `sdfgrid`, with their BSDF,
//! media, emitter and displacement.

use std::path::PathBuf;

use super::medium::{self, Media};
use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::{
    AreaEmitter, Bsdf, Displacement, Geometry, Material, MeshFormat, Model, NestedBsdf, Surface, Texture, attributes,
    bsdf, emitter, files, texture, transform,
};
use crate::io::vol;

/// Most squares of a `grid` along an axis.
const MAX_SQUARES: u64 = 2048;

/// The shape called `name`; its media are added to `media`.
pub(super) fn read(value: &Value<'_>, name: &str, media: &mut Media) -> Option<Surface> {
    let mut object = value.plugin(Class::Shape)?;
    let geometry = geometry(&mut object);
    let displacement = displacement(&mut object);
    let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
    let flip_normals = object.boolean("flip_normals", false);
    let [interior, exterior] = ["interior", "exterior"].map(|key| {
        let value = object.get(key)?;
        media.read(&value, &format!("{name}.{key}"))
    });
    let emitter = area(&mut object, name);
    // Read by `sensor::on_shape`.
    object.nested_all(Class::Sensor);
    let unsaid = !object.mentions(Class::Bsdf);
    let NestedBsdf { path: bsdf_path, bsdf } = self::bsdf(&mut object, name, emitter.is_some());
    object.finish();
    let mut surface = Surface {
        name: name.to_string(),
        geometry: geometry?,
        to_world,
        flip_normals,
        bsdf,
        bsdf_path,
        interior,
        exterior,
        emitter,
        motion: Vec::new(),
        displacement,
    };
    attributes::bind(value, &mut surface);
    let of_distances = matches!(surface.geometry, Geometry::Distances { .. });
    let holds = surface.interior != surface.exterior;
    let bounds = holds && (of_distances || matches!(surface.bsdf, Bsdf::Null));
    if of_distances && surface.emitter.is_some() {
        value.error(
            "an `sdfgrid` that shines",
            "it has no points to draw light from; use a mesh",
        );
    }
    let open = match &surface.geometry {
        Geometry::Rectangle => Some("a `rectangle` has no inside"),
        Geometry::Disk => Some("a `disk` has no inside"),
        Geometry::Mesh {
            format: MeshFormat::Grid(_),
            ..
        } => Some("a `grid` has no inside"),
        Geometry::Cylinder { .. } => Some("a `cylinder` has no caps"),
        Geometry::Distances { .. } => Some("an `sdfgrid` may end at the sides of its grid"),
        _ => None,
    };
    if let Some(open) = open.filter(|_| bounds) {
        let what = format!("{open}: it cannot bound a medium");
        value.error(what, "use a `cube`, a `sphere` or a closed mesh");
    }
    warn(value, &surface, unsaid);
    Some(surface)
}

fn geometry(object: &mut Object<'_>) -> Option<Geometry> {
    match object.name {
        "cube" => Some(Geometry::Cube),
        "rectangle" => Some(Geometry::Rectangle),
        "disk" => Some(Geometry::Disk),
        "cylinder" => cylinder(object),
        "sphere" => {
            let center = object.get("center").map_or(Some([0.0; 3]), |v| v.vector::<3>());
            let radius = object.number("radius", 1.0);
            Some(Geometry::Sphere {
                center: center?.map(|x| x as f32),
                radius,
            })
        }
        "obj" => mesh(object, MeshFormat::Obj, Some(true)),
        "ply" => mesh(object, MeshFormat::Ply, Some(false)),
        "grid" => grid(object),
        "sdfgrid" => distances(object),
        _ => {
            let index = object.integer("shape_index", 0);
            mesh(object, MeshFormat::Serialized(index), None)
        }
    }
}

fn cylinder(object: &mut Object<'_>) -> Option<Geometry> {
    let mut end = |key, default: [f64; 3]| object.get(key).map_or(Some(default), |value| value.vector::<3>());
    let (p0, p1) = (end("p0", [0.0; 3]), end("p1", [0.0, 0.0, 1.0]));
    let radius = object.number("radius", 1.0);
    let ends = [p0?, p1?].map(|p| p.map(|x| x as f32));
    if ends[0] == ends[1] {
        object.error("the `cylinder` has no length", "`p0` and `p1` must differ");
        return None;
    }
    Some(Geometry::Cylinder { ends, radius })
}

/// A `grid`: a square cut into smaller ones.
fn grid(object: &mut Object<'_>) -> Option<Geometry> {
    let value = object.require("resolution", "the numbers of squares along x and y");
    let face_normals = object.boolean("face_normals", false);
    let [x, y] = value?.list_of::<2>()?.map(|side| side.integer(1, MAX_SQUARES));
    Some(Geometry::Mesh {
        path: PathBuf::new(),
        format: MeshFormat::Grid([x? as u32, y? as u32]),
        face_normals,
        flip_tex_coords: false,
    })
}

/// How far the vertices of a mesh are moved.
fn displacement(object: &mut Object<'_>) -> Option<Displacement> {
    if !matches!(object.name, "obj" | "ply" | "serialized" | "grid") {
        return None;
    }
    let given = object.get("displacement");
    let scale = object.number("displacement_scale", 1.0);
    let value = given?;
    let height = texture::read_scalar(&value, Quantity::Displacement)?;
    let kind = match height {
        Texture::Constant(_) | Texture::Bitmap(_) => return Some(Displacement { height, scale }),
        Texture::Checkerboard { .. } | Texture::Squares { .. } => "checkerboard",
        Texture::Attribute(_) => "mesh_attribute",
        Texture::Volume { .. } => "volume",
    };
    value.error(
        format!("a `{kind}` as a displacement"),
        "expected a number or a `bitmap`",
    );
    None
}

/// Signed distances on a grid.
fn distances(object: &mut Object<'_>) -> Option<Geometry> {
    let file = object.require("filename", "a `.vol` file of signed distances");
    let smooth = object.choice("normals", &[("smooth", true), ("analytic", false)], true);
    let file = file?;
    let path = file.file()?;
    let header = match vol::header(&path) {
        Ok(header) => header,
        Err(error) => {
            file.error("these distances cannot be used", error.to_string());
            return None;
        }
    };
    let [x, y, z] = header.size;
    if header.channels != 1 || header.size.contains(&1) {
        file.error(
            format!("these distances are {x}×{y}×{z} points of {} channels", header.channels),
            "an `sdfgrid` needs one channel, and two points or more along each axis",
        );
        return None;
    }
    Some(Geometry::Distances { path, smooth })
}

/// A mesh. `flipped` is the default of `flip_tex_coords`, since formats differ in the origin of texture coordinates; None for a
/// format without that parameter.
fn mesh(object: &mut Object<'_>, format: MeshFormat, flipped: Option<bool>) -> Option<Geometry> {
    let file = object.require("filename", "the mesh file");
    let face_normals = object.boolean("face_normals", false);
    let flip_tex_coords = flipped.is_some_and(|flipped| object.boolean("flip_tex_coords", flipped));
    let file = file?;
    let path = file.file()?;
    if !path.is_file() {
        file.error("this mesh cannot be used", files::absence(&path));
        return None;
    }
    Some(Geometry::Mesh {
        path,
        format,
        face_normals,
        flip_tex_coords,
    })
}

/// The emitter nested in the shape called `name`.
fn area(object: &mut Object<'_>, name: &str) -> Option<AreaEmitter> {
    let (key, value) = object.nested_named(Class::Emitter)?;
    let mut emitter = value.plugin(Class::Emitter)?;
    if !emitter::stands_in_shapes(emitter.name) {
        let what = format!("a `{}` emitter in a shape", emitter.name);
        value.error(what, "it stands at the top level; a shape emits by `area`");
        return None;
    }
    let path = emitter.value.path.clone();
    let given = emitter.get("radiance");
    let radiance = given.and_then(|value| texture::read(&value, Quantity::Light));
    let mut radiance = radiance.unwrap_or_else(|| Texture::constant(&format!("{path}.radiance"), &[1.0; 3]));
    // Each shape that refers to an emitter has a copy of it, with parameters of its own.
    texture::rename(&mut radiance, &path, &format!("{name}.{key}"));
    let directional = emitter.name == "directionalarea";
    let sampling_weight = emitter.number("sampling_weight", 1.0);
    medium::check_stated(&mut emitter);
    emitter.finish();
    Some(AreaEmitter {
        name: key.to_string(),
        radiance,
        directional,
        sampling_weight,
    })
}

/// The BSDF and its path; by default `diffuse` and grey, or black for an emitter.
fn bsdf(object: &mut Object<'_>, name: &str, emits: bool) -> NestedBsdf {
    let named = object.nested_named(Class::Bsdf);
    named.and_then(|(_, value)| bsdf::read(&value)).unwrap_or_else(|| {
        let path = format!("{name}.{}", Class::Bsdf.usual_key());
        NestedBsdf {
            bsdf: bsdf::default(&path, emits),
            path,
        }
    })
}

/// Warns of invisible media and invisible shapes.
fn warn(value: &Value<'_>, surface: &Surface, unsaid: bool) {
    let Surface { name, interior, .. } = surface;
    let media = interior.or(surface.exterior).is_some();
    let message = match surface.bsdf {
        Bsdf::Material(Material {
            model: Model::Diffuse, ..
        }) if interior.is_some() && unsaid => format!(
            "the shape `{name}` without BSDF is opaque (`diffuse`) as in Mitsuba, so that the medium in it is never seen: \
             add \"bsdf\": {{\"type\": \"null\"}}"
        ),
        Bsdf::Material(Material {
            model: Model::Diffuse, ..
        }) if interior.is_some() => format!(
            "the shape `{name}` is opaque (`diffuse`), so that the medium in it is never seen: \
             \"bsdf\": {{\"type\": \"null\"}} would show it"
        ),
        Bsdf::Null if !media && surface.emitter.is_none() => {
            format!("the shape `{name}` is invisible: its BSDF is `null`, and it has neither medium nor emitter")
        }
        _ => return,
    };
    value.context.warn(message);
}
