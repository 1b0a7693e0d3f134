//! Parameters that move shapes, lights and sensors: `to_world.translate`, `.rotate` and `.scale`, and the vertices and normals of
//! meshes. They exist only where the block `optimize` or `--parameter` names them, since most scenes do not move.

use super::context::Context;
use super::integrator::Rules;
use super::quantity::Quantity;
use super::reader::Value;
use super::{Array, Geometry, LightKind, Scene, SensorKind, Source, Surface, Visited, lookup};
use crate::io;
use crate::io::mesh::Mesh;
use crate::params::{Kind, Shape};

/// A parameter that moves a shape, a light or a sensor by a transform applied after the file's `to_world`, or the vertices or
/// normals of a mesh.
#[derive(Debug, Clone)]
pub struct Motion {
    /// Three numbers (one factor for the scale of a sphere or a cylinder, which stay round), or three for each vertex.
    pub array: Array,
    /// What the array measures; [`Quantity::moves`] holds for it.
    pub quantity: Quantity,
}

/// The parts of a transform: key, quantity, and the neutral value, which leaves the object where the file has it.
const PARTS: [(&str, Quantity, f32); 3] = [
    ("to_world.translate", Quantity::Translation, 0.0),
    ("to_world.rotate", Quantity::Orientation, 0.0),
    ("to_world.scale", Quantity::Extent, 1.0),
];

/// The keys of a mesh's vertices and of their normals.
const VERTICES: &str = "vertex_positions";
const NORMALS: &str = "vertex_normals";

/// Adds to shapes, lights and sensors the parameters that `entries` name and that move them.
pub(super) fn name(entries: &[(&str, Value<'_>)], scene: &mut Scene) {
    for (path, entry) in entries {
        for surface in &mut scene.world.surfaces {
            let key = path.strip_prefix(&surface.name).and_then(|rest| rest.strip_prefix('.'));
            let part_of_vertices = match key {
                Some(VERTICES | "positions") => Some((VERTICES, Quantity::Vertex)),
                Some(NORMALS | "normals") => Some((NORMALS, Quantity::VertexNormal)),
                _ => None,
            };
            if let Some((key, quantity)) = part_of_vertices {
                let path = format!("{}.{key}", surface.name);
                let part = is_new(&surface.motion, &path).then(|| of_vertices(&path, entry, surface, quantity));
                surface.motion.extend(part.flatten());
            }
            let round = matches!(surface.geometry, Geometry::Sphere { .. } | Geometry::Cylinder { .. });
            let part = part(path, &surface.name, of_shape(&surface.geometry), round);
            add(&mut surface.motion, part);
        }
        for light in &mut scene.world.lights {
            let part = part(path, &light.name, of_light(&light.kind), false);
            add(&mut light.motion, part);
        }
        // Cameras of a radiance field have the parameters of `views.rs` instead, canvases of splats have none.
        for sensor in scene.sensors.iter_mut().filter(|_| !scene.world.is_empty()) {
            let part = part(path, &sensor.name, of_sensor(&sensor.kind), false);
            add(&mut sensor.motion, part);
        }
    }
}

/// How many of [`PARTS`], from the first on, a shape has.
fn of_shape(geometry: &Geometry) -> usize {
    match geometry {
        Geometry::Distances { .. } => 0,
        _ => 3,
    }
}

/// How many of [`PARTS`] a light has.
fn of_light(kind: &LightKind) -> usize {
    match kind {
        LightKind::Point { .. } => 1,
        LightKind::Spot { .. } | LightKind::Projector { .. } => 2,
        LightKind::Directional { .. } => 0,
    }
}

/// How many of [`PARTS`] a sensor has.
fn of_sensor(kind: &SensorKind) -> usize {
    match kind {
        SensorKind::Perspective | SensorKind::ThinLens { .. } | SensorKind::Orthographic => 2,
        SensorKind::Radiancemeter | SensorKind::Irradiancemeter(_) | SensorKind::Distant { .. } => 0,
    }
}

/// What to name in place of `name`, if that is Mitsuba's name of a transform, or means vertices of a shape that is no mesh.
pub(super) fn advice(name: &str, scene: &Scene) -> Option<String> {
    let (owner, key) = name.rsplit_once('.')?;
    let surface = scene.world.surfaces.iter().find(|surface| surface.name == owner);
    let light = scene.world.lights.iter().find(|light| light.name == owner);
    let sensor = scene
        .sensors
        .iter()
        .find(|sensor| sensor.name == owner && !scene.world.is_empty());
    let of_vertices = matches!(key, VERTICES | NORMALS | "positions" | "normals");
    let count = surface
        .map(|surface| of_shape(&surface.geometry))
        .or_else(|| light.map(|light| of_light(&light.kind)))
        .or_else(|| sensor.map(|sensor| of_sensor(&sensor.kind)))
        .filter(|_| matches!(key, "to_world" | "position") || of_vertices && surface.is_some())?;
    if count == 0 {
        return Some(format!("`{owner}` cannot be moved; name another parameter"));
    }
    let parts: Vec<String> = PARTS[..count]
        .iter()
        .map(|(part, ..)| format!("`{owner}.{part}`"))
        .collect();
    let parts = parts.join(", ");
    Some(match of_vertices {
        true => format!("it is no mesh; make it one, or name a part of its place: {parts}"),
        false => format!("name a part of its place: {parts}"),
    })
}

/// Whether `parts` lack the one at `path`.
fn is_new(parts: &[Motion], path: &str) -> bool {
    parts.iter().all(|part| part.array.path != path)
}

/// Adds `part` unless `parts` has its path already.
fn add(parts: &mut Vec<Motion>, part: Option<Motion>) {
    let new = part.filter(|part| is_new(parts, &part.array.path));
    parts.extend(new);
}

/// The part of the transform of the object `name` that `path` means, if it is one of the first `count` of [`PARTS`]. `round`
/// shapes have a single factor as scale.
fn part(path: &str, name: &str, count: usize, round: bool) -> Option<Motion> {
    let key = path.strip_prefix(name)?.strip_prefix('.')?;
    let (_, quantity, rest) = PARTS.into_iter().take(count).find(|(part, ..)| key == *part)?;
    let numbers = if round && quantity == Quantity::Extent { 1 } else { 3 };
    Some(Motion {
        array: lookup::value(path.to_string(), vec![rest; numbers]),
        quantity,
    })
}

/// The positions or the normals of a mesh's vertices as a parameter.
fn of_vertices(path: &str, entry: &Value<'_>, surface: &Surface, quantity: Quantity) -> Option<Motion> {
    let Geometry::Mesh { face_normals, .. } = &surface.geometry else {
        return None;
    };
    let refused = match (quantity, face_normals, &surface.displacement) {
        (Quantity::VertexNormal, true, _) => Some(("the mesh has `face_normals`", "remove them")),
        (_, _, Some(_)) => Some((
            "the mesh has a `displacement`",
            "optimise that, or write the displaced mesh into a file",
        )),
        _ => None,
    };
    if let Some((why, advice)) = refused {
        entry.error(format!("`{path}` cannot be optimised: {why}"), advice);
        return None;
    }
    let mesh = match surface.geometry.mesh() {
        Err(why) => {
            entry.error("these vertices cannot be used", why);
            return None;
        }
        Ok(mesh) => mesh,
    };
    if quantity == Quantity::Vertex && !mesh.normals.is_empty() {
        entry.context.warn(format!(
            "the normals of vertices in the file of `{}` are not used: where vertices move, normals follow from the faces around \
             them",
            surface.name
        ));
    }
    let (geometry, to_world) = (surface.geometry.clone(), surface.to_world);
    Some(Motion {
        array: Array {
            path: path.to_string(),
            kind: Kind::Attribute,
            shape: Shape {
                size: [mesh.positions.len(), 1, 1],
                channels: 3,
            },
            source: match quantity {
                Quantity::VertexNormal => Source::VertexNormals { geometry, to_world },
                _ => Source::Vertices { geometry, to_world },
            },
            tuning: None,
        },
        quantity,
    })
}

impl Geometry {
    /// The mesh, read from its file.
    ///
    /// # Errors
    /// The file cannot be read, or is no valid mesh.
    ///
    /// # Panics
    /// It is no mesh.
    pub fn mesh(&self) -> io::Result<Mesh> {
        match self {
            Self::Mesh {
                path,
                format,
                face_normals,
                flip_tex_coords,
            } => format.read(path, *face_normals, *flip_tex_coords),
            other => panic!("{other:?} is no mesh"),
        }
    }
}

/// Warns once that derivatives by what moves leave out moving silhouettes and borders of shadows; see [`Array::is_wanted`].
pub(super) fn warn(context: &Context<'_>, scene: &Scene, asked: &[String]) {
    let visited = scene.visit();
    // Vertex normals change the shading alone and move no silhouette.
    let moves = |visited: &&Visited<&Array>| {
        visited.quantity.moves() && visited.quantity != Quantity::VertexNormal && visited.array.is_wanted(asked)
    };
    if let Some(first) = visited.iter().find(moves) {
        context.warn_of_derivatives(format!(
            "derivatives by what moves (`{}`) leave out that silhouettes and the borders of shadows and of thrown pictures \
             move with it: they are whole only where what moves covers, uncovers and shadows nothing; `prbopt gradcheck` tells how much is missing",
            first.array.path
        ));
        if !scene.world.media.is_empty() && scene.integrator.rules == Rules::Volpath {
            context.warn_of_derivatives(
                "what moves is to stay apart from the media: where it comes to stand in one, derivatives leave out that points of the \
                 medium would have to make room for it or move with it",
            );
        }
    }
}
