//! Shapes: `cube`, `sphere`, `rectangle`, `obj`, `ply`, with their BSDF, media and `area` emitter.

use super::medium::Media;
use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Array, Bsdf, Geometry, Material, MeshFormat, Model, NestedBsdf, Surface, bsdf, color, lookup, transform};

/// The shape called `name`; its media are added to `media`.
pub(super) fn read(value: &Value<'_>, name: &str, media: &mut Media) -> Option<Surface> {
    let mut object = value.plugin(Class::Shape)?;
    let geometry = geometry(&mut object);
    let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
    let flip_normals = object.boolean("flip_normals", false);
    let [interior, exterior] = ["interior", "exterior"].map(|key| {
        let value = object.get(key)?;
        media.read(&value, &format!("{name}.{key}"))
    });
    let radiance = area(&mut object, name);
    // Read by `sensor::on_shape`.
    object.nested_all(Class::Sensor);
    let unsaid = !object.mentions(Class::Bsdf);
    let NestedBsdf { path: bsdf_path, bsdf } = self::bsdf(&mut object, name, radiance.is_some());
    object.finish();
    let surface = Surface {
        name: name.to_string(),
        geometry: geometry?,
        to_world,
        flip_normals,
        bsdf,
        bsdf_path,
        interior,
        exterior,
        radiance,
    };
    let bounds = surface.interior != surface.exterior && matches!(surface.bsdf, Bsdf::Null);
    if bounds && surface.geometry == Geometry::Rectangle {
        let what = "a `rectangle` has no inside: it cannot bound a medium";
        value.error(what, "use a `cube`, a `sphere` or a closed mesh");
    }
    warn(value, &surface, unsaid);
    Some(surface)
}

fn geometry(object: &mut Object<'_>) -> Option<Geometry> {
    match object.name {
        "cube" => Some(Geometry::Cube),
        "rectangle" => Some(Geometry::Rectangle),
        "sphere" => {
            let center = object.get("center").map_or(Some([0.0; 3]), |v| v.vector::<3>());
            let radius = object.number("radius", 1.0);
            Some(Geometry::Sphere {
                center: center?.map(|x| x as f32),
                radius,
            })
        }
        "obj" => mesh(object, MeshFormat::Obj, true),
        _ => mesh(object, MeshFormat::Ply, false),
    }
}

/// A mesh; `flipped` accounts for the formats' different origins of texture coordinates.
fn mesh(object: &mut Object<'_>, format: MeshFormat, flipped: bool) -> Option<Geometry> {
    let file = object.require("filename", "the mesh file");
    let face_normals = object.boolean("face_normals", false);
    let flip_tex_coords = object.boolean("flip_tex_coords", flipped);
    let file = file?;
    let path = file.file()?;
    if !path.is_file() {
        file.error(
            "this mesh cannot be used",
            format!("there is no file {}", path.display()),
        );
        return None;
    }
    Some(Geometry::Mesh {
        path,
        format,
        face_normals,
        flip_tex_coords,
    })
}

/// The radiance of the `area` emitter nested in the shape called `name`.
fn area(object: &mut Object<'_>, name: &str) -> Option<Array> {
    let (key, value) = object.nested_named(Class::Emitter)?;
    let mut emitter = value.plugin(Class::Emitter)?;
    if emitter.name != "area" {
        let what = format!("a `{}` emitter in a shape", emitter.name);
        value.error(what, "it stands at the top level; a shape emits by `area`");
        return None;
    }
    let radiance = emitter
        .get("radiance")
        .map_or(Some([1.0; 3]), |v| color::read_within(&v, Quantity::Light.limit()));
    emitter.finish();
    Some(lookup::value(
        format!("{name}.{key}.radiance"),
        radiance.unwrap_or([1.0; 3]).to_vec(),
    ))
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
        Bsdf::Null if !media && surface.radiance.is_none() => {
            format!("the shape `{name}` is invisible: its BSDF is `null`, and it has neither medium nor emitter")
        }
        _ => return,
    };
    value.context.warn(message);
}
