//! Shapes, lights and cameras that a run moves: their places for the values of their parameters, and which scenes are
//! refused.
//!
//! A point p of such a shape, in world coordinates as the file has it, moves to c + t + R (s ∘ (p − c)): scaled by s along
//! the axes of the world and turned by R about the shape's own origin c, then moved by t (equation (49) of docs/method.md).

use glam::{Affine3A, DAffine3, DMat3, DQuat, DVec3, Vec3A};

use super::apart;
use super::attached;
use super::bvh::{self, Corners};
use super::emissive_triangles::{cube, emissive_triangles, mesh};
use super::geometry::{cylinder_area, inverse, radius};
use super::glide::{Ground, Track};
use super::layout::{
    self, CornerRecord, EmissiveTriangleRecord, LightRecord, NONE, SensorRecord, SurfaceRecord, Triangle, leaf, light,
    surface, surfaces_only, texture,
};
use super::paths::{Estimator, PathScene};
use super::vertices::Vertices;
use super::{affine, rows, slot};
use crate::each::EachEntry;
use crate::params::{ParamSet, Quantity};
use crate::scene::{self, Array, Background, Displacement, LightKind, Scene, Sensor, Surface, World};

/// The parameters that move a surface, a light or a camera; [`NONE`] for each that it does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// Three numbers, along the axes of the world.
    pub translate: u32,
    /// The axis of a rotation, as long as its angle in degrees.
    pub rotate: u32,
    /// One factor, or three along the axes of the world.
    pub scale: u32,
    /// Whether `scale` is one factor for all axes.
    pub round: bool,
    /// The index in [`Rest::meshes`] of a mesh whose vertices follow a parameter, and the parameter of vertex normals; a
    /// mesh with either has no other motion.
    pub mesh: u32,
    pub normals: u32,
    /// The fixed point of rotation and scaling, in the world: the origin c.
    pub pivot: [f32; 3],
    /// Where path vertices on the surface slide along the rays that hit it; None where they follow the surface.
    pub track: Option<Track>,
}

/// What a run moves, and the places of surfaces, lights, cameras and triangles as the file has them.
#[derive(Debug, Clone, Default)]
pub struct Rest {
    /// For each surface, then for each light, then for each sensor, its motion; empty where all stand still.
    pub motions: Vec<Option<Motion>>,
    /// Meshes whose vertices follow parameters, whether a run changes these or not.
    pub meshes: Vec<Vertices>,
    /// For each surface whether it is a mesh that is closed and faces outwards.
    pub(super) closed: Vec<bool>,
    /// For each surface how its [`Track`] is found.
    grounds: Vec<Ground>,
    to_world: Vec<Affine3A>,
    lights: Vec<LightRecord>,
    /// The maps of sensors to the world.
    cameras: Vec<Affine3A>,
    triangles: Vec<Triangle>,
    corners: Vec<CornerRecord>,
}

impl Rest {
    /// Whether no shape, light or camera and no vertex follows a parameter.
    pub fn stands_still(&self) -> bool {
        self.motions.is_empty() && self.meshes.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let meshes: usize = self.meshes.iter().map(Vertices::bytes).sum();
        size_of_val(&self.motions[..])
            + self.grounds.iter().map(Ground::bytes).sum::<usize>()
            + size_of_val(&self.grounds[..])
            + size_of_val(&self.to_world[..])
            + size_of_val(&self.lights[..])
            + size_of_val(&self.cameras[..])
            + size_of_val(&self.triangles[..])
            + size_of_val(&self.corners[..])
            + meshes
    }

    /// The parameters on which the places of shapes, lights and cameras depend.
    pub fn slots(&self) -> Vec<u32> {
        let motions = self.motions.iter().flatten();
        let of_motions = motions.flat_map(|motion| [motion.translate, motion.rotate, motion.scale, motion.normals]);
        let of_meshes = self.meshes.iter().map(|mesh| mesh.slot);
        of_motions.chain(of_meshes).filter(|slot| *slot != NONE).collect()
    }

    /// The motions of a scene, whose surfaces are in `paths` and `triangles` as the file has them; `meshes` are those whose
    /// vertices follow parameters, each with the index of its surface.
    ///
    /// # Errors
    /// One sentence: what in the scene has no derivatives by the motions.
    pub(super) fn new(
        scene: &Scene,
        paths: &PathScene,
        triangles: Vec<Triangle>,
        meshes: Vec<(usize, Vertices)>,
        params: &ParamSet,
    ) -> Result<Self, String> {
        let World { surfaces, lights, .. } = &scene.world;
        let of_surfaces = surfaces
            .iter()
            .map(|surface| (&surface.motion, surface.to_world.translation));
        let first = first_moving(scene);
        if first.is_none() && meshes.is_empty() {
            return Ok(Self::default());
        }
        let (surface_of, meshes): (Vec<usize>, Vec<Vertices>) = meshes.into_iter().unzip();
        let rest = Self {
            motions: Vec::new(),
            closed: Vec::new(),
            grounds: Vec::new(),
            to_world: paths.surfaces.iter().map(|record| affine(&record.to_world)).collect(),
            lights: paths.lights.clone(),
            cameras: scene.sensors.iter().map(|sensor| sensor.to_world).collect(),
            triangles,
            corners: paths.corners.clone(),
            meshes,
        };
        if first.is_none() {
            return Ok(rest);
        }
        for surface in surfaces {
            let of_vertices =
                |part: &&scene::Motion| matches!(part.quantity, Quantity::Vertex | Quantity::VertexNormal);
            let part = surface.motion.iter().find(of_vertices).map(|part| &part.array);
            let heights = optimised_heights(surface);
            let Some(part) = heights.or(part) else { continue };
            if surface.motion.len() + usize::from(heights.is_some()) > 1 {
                return Err(format!(
                    "`{}` and another part of the place of the same mesh cannot both be optimised: name one",
                    part.path
                ));
            }
        }
        if let Some(what) = obstacle(scene, paths) {
            return Err(refusal(scene, &what));
        }
        let mut motions: Vec<_> = of_surfaces.map(|(parts, pivot)| motion(parts, pivot, params)).collect();
        for (surface, number) in surface_of.into_iter().zip(0..) {
            let is_moved = surfaces.get(surface).is_some_and(|surface| {
                let positions = surface.motion.iter().any(|part| part.quantity == Quantity::Vertex);
                positions || optimised_heights(surface).is_some()
            });
            if is_moved {
                motions[surface] = Some(Motion {
                    mesh: number,
                    ..Motion::still(surfaces[surface].to_world.translation)
                });
            }
        }
        motions.resize(paths.surfaces.len() + paths.lights.len(), None);
        // Lights without a surface come after those of surfaces.
        let first_light = paths.surfaces.len() + paths.lights.iter().filter(|record| record.surface != NONE).count();
        for (motion_of, light) in motions[first_light..].iter_mut().zip(lights) {
            *motion_of = motion(&light.motion, pivot(&light.kind), params);
        }
        let of_sensors = scene.sensors.iter();
        motions.extend(of_sensors.map(|sensor| motion(&sensor.motion, sensor.to_world.translation, params)));
        let grounds = grounds(paths, &motions);
        Ok(Self {
            motions,
            grounds,
            ..rest
        })
    }
}

/// The sentence that what moves in a scene cannot be optimised.
pub(super) fn refusal(scene: &Scene, what: &str) -> String {
    let path = first_moving(scene).map_or("", |first| &first.path);
    format!("`{path}` cannot be optimised: {what}")
}

/// For each surface how its [`Track`] is found; [`Ground::Held`] for one that is not moved.
fn grounds(paths: &PathScene, motions: &[Option<Motion>]) -> Vec<Ground> {
    let mut first = 0;
    let numbered = paths.surfaces.iter().zip(motions).zip(0..);
    numbered
        .map(|((record, motion), number)| {
            // The triangles of a mesh follow those of the one before.
            let count = paths.corners[first..]
                .iter()
                .take_while(|corner| corner.shape == number)
                .count();
            let triangles = first..first + count;
            first += count;
            match motion {
                None => Ground::Held,
                Some(_) => Ground::new(paths, record, triangles),
            }
        })
        .collect()
}

/// The first array of a scene that moves a shape, a light or a camera and that a run changes.
fn first_moving(scene: &Scene) -> Option<&Array> {
    let World { surfaces, lights, .. } = &scene.world;
    let mut heights = surfaces.iter().filter_map(optimised_heights);
    let of_surfaces = surfaces.iter().map(|surface| &surface.motion);
    let of_lights = lights.iter().map(|light| &light.motion);
    let of_sensors = scene.sensors.iter().map(|sensor| &sensor.motion);
    let mut parts = of_surfaces.chain(of_lights).chain(of_sensors).flatten();
    parts.next().map(|part| &part.array).or_else(|| heights.next())
}

/// The heights by which a surface is displaced, if a run changes them.
pub(super) fn optimised_heights(surface: &Surface) -> Option<&Array> {
    let array = surface.displacement.as_ref().map(Displacement::array)?;
    array.tuning.is_some().then_some(array)
}

/// Writes the motions for the values of `params` into the transforms of shapes, lights and cameras, and removes them from
/// the scene. Vertices stay.
pub fn bake(scene: &mut Scene, params: &ParamSet) {
    let Scene { world, sensors, .. } = scene;
    let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
    let moved = |to_world: &Affine3A, motion: &Motion| {
        let place = DAffine3::from_cols_array(&to_world.to_cols_array().each(f64::from));
        let place = motion.map(&values) * place;
        Affine3A::from_cols_array(&place.to_cols_array().each(|x| x as f32))
    };
    for surface in &mut world.surfaces {
        let parts = std::mem::take(&mut surface.motion);
        if let Some(motion) = motion(&parts, surface.to_world.translation, params) {
            surface.to_world = moved(&surface.to_world, &motion);
        }
    }
    for sensor in sensors {
        let parts = std::mem::take(&mut sensor.motion);
        if let Some(motion) = motion(&parts, sensor.to_world.translation, params) {
            sensor.to_world = moved(&sensor.to_world, &motion);
        }
    }
    for light in &mut world.lights {
        let parts = std::mem::take(&mut light.motion);
        let Some(motion) = motion(&parts, pivot(&light.kind), params) else {
            continue;
        };
        match &mut light.kind {
            LightKind::Point { position } => {
                let at = moved(&Affine3A::from_translation((*position).into()), &motion).translation;
                *position = at.to_array();
            }
            LightKind::Spot { to_world, .. } | LightKind::Projector { to_world, .. } => {
                *to_world = moved(to_world, &motion);
            }
            LightKind::Directional { .. } => {}
        }
    }
}

/// The fixed point of a light's rotation, in the world.
fn pivot(kind: &LightKind) -> Vec3A {
    match kind {
        LightKind::Point { position } => Vec3A::from_array(*position),
        LightKind::Spot { to_world, .. } | LightKind::Projector { to_world, .. } => to_world.translation,
        LightKind::Directional { .. } => Vec3A::ZERO,
    }
}

/// Whether a run moves shapes, or turns their normals.
pub(super) fn moves_shapes(scene: &Scene) -> bool {
    let moves = |surface: &Surface| !surface.motion.is_empty() || optimised_heights(surface).is_some();
    scene.world.surfaces.iter().any(moves)
}

/// Whether a run moves neither surfaces nor cameras, so that only lights without a surface may move.
fn lights_alone(scene: &Scene) -> bool {
    !moves_shapes(scene) && scene.sensors.iter().all(|sensor| sensor.motion.is_empty())
}

/// What in the scene has no derivatives by the motions, in one sentence; None where nothing is in the way.
fn obstacle(scene: &Scene, paths: &PathScene) -> Option<String> {
    // Only shadow rays meet lights without a surface, from points that stand still. But a shadow ray that passes straight
    // through a surface would cross it elsewhere as the light moves.
    let (still, shadowed) = (lights_alone(scene), paths.settings.surfaces_only != surfaces_only::NO);
    if !still && !paths.distances.grids.is_empty() {
        return Some("there is an `sdfgrid`, whose normals have no derivatives by the point; use a mesh".into());
    }
    if matches!(paths.estimator, Estimator::Radiative(_)) {
        return Some("radiative backpropagation does not follow what moves; use the integrator `prb`, or `prbvolpath` among media".into());
    }
    if paths.inverted.is_some() {
        return Some(
            "inverted Jacobians of rays follow normals and indices alone; say \"jacobians\": \"kept\" in the integrator"
                .into(),
        );
    }
    if paths.attached {
        return attached::unmoved(scene, paths);
    }
    let moves = |sensor: &Sensor| !sensor.motion.is_empty();
    let sees_map = matches!(scene.background, Background::Envmap { .. }) && !scene.integrator.hide_emitters;
    if let Some(sensor) = scene.sensors.iter().find(|sensor| sees_map && moves(sensor)) {
        return Some(format!(
            "the camera `{}` moves and may see the `envmap`, whose derivatives by the direction that it is looked at in only \
             `prb_attached` knows; use that, leave the camera where it is, say \"hide_emitters\": true in the integrator, or light \
             the scene otherwise",
            sensor.name
        ));
    }
    if !still && paths.bsdfs.leaves.iter().any(|record| record.flags & leaf::BUMP != 0) {
        return Some("there is a `bumpmap`, whose slopes have no derivatives by the point; use a `normalmap`".into());
    }
    let bends = paths.bsdfs.leaves.iter().find_map(|record| match record.kind {
        leaf::CONDUCTOR | leaf::DIELECTRIC | leaf::PLASTIC if still => None,
        leaf::NULL | leaf::THIN_DIELECTRIC if still && shadowed => None,
        leaf::NULL => Some("`null` or `mask`"),
        leaf::CONDUCTOR => Some("`conductor`"),
        leaf::DIELECTRIC => Some("`dielectric`"),
        leaf::THIN_DIELECTRIC => Some("`thindielectric`"),
        leaf::PLASTIC => Some("`plastic`"),
        _ => None,
    });
    // What is sent on by a light that lets everything pass has two third points: the light, and what lies behind it.
    let shining = |record: &SurfaceRecord| record.bsdf == NONE && record.light != NONE;
    if !still && paths.surfaces.iter().any(shining) {
        return Some("there is a light on a surface that lets everything pass; give it a BSDF".into());
    }
    // Boundaries of media, which let everything pass as it comes, are none of these.
    let passes = paths.surfaces.iter().any(|record| record.bsdf == NONE) && paths.media.is_empty();
    let open = (passes && !(still && shadowed)).then_some("`null` or `mask`");
    if let Some(name) = bends.or(open) {
        return Some(format!(
            "there is a `bsdf` of the type {name}, through which light that goes on in one direction alone would have to be \
             followed by attached samples; use rough BSDFs, or `prb_attached`, which moves smooth glass and mirrors"
        ));
    }
    let textures = paths.bsdfs.textures.iter();
    let off_surface = textures.map(|record| record.kind).find_map(|kind| match kind {
        _ if still => None,
        texture::VERTICES | texture::FACES => Some("`mesh_attribute`"),
        texture::VOLUME => Some("`volume`"),
        _ => None,
    });
    off_surface.map(|name| {
        format!(
            "there is a texture of the type {name}, which has no derivatives by the point that it is looked up at; use a \
             `bitmap`"
        )
    })
}

/// The motion of these parts; None without any.
fn motion(parts: &[scene::Motion], pivot: Vec3A, params: &ParamSet) -> Option<Motion> {
    if parts.is_empty() {
        return None;
    }
    let part = |quantity: Quantity| parts.iter().find(|part| part.quantity == quantity);
    let slot_of = |quantity| part(quantity).map_or(NONE, |part| slot(params, &part.array) as u32);
    Some(Motion {
        translate: slot_of(Quantity::Translation),
        rotate: slot_of(Quantity::Orientation),
        scale: slot_of(Quantity::Extent),
        round: part(Quantity::Extent).is_some_and(|part| part.array.shape.channels == 1),
        normals: slot_of(Quantity::VertexNormal),
        ..Motion::still(pivot)
    })
}

impl Motion {
    /// A motion without any parameter: everything stays.
    fn still(pivot: Vec3A) -> Self {
        Self {
            translate: NONE,
            rotate: NONE,
            scale: NONE,
            round: false,
            mesh: NONE,
            normals: NONE,
            pivot: pivot.to_array(),
            track: None,
        }
    }

    /// The map from the place in the file to the moved one, in the world.
    pub fn map(&self, values: &[&[f32]]) -> DAffine3 {
        let three = |slot: u32, otherwise: f64| match slot {
            NONE => DVec3::splat(otherwise),
            slot => {
                let given = values[slot as usize];
                DVec3::from_array([0, 1, 2].each(|a: usize| f64::from(given[a.min(given.len() - 1)])))
            }
        };
        let (shift, turn) = (three(self.translate, 0.0), three(self.rotate, 0.0));
        let radians = turn * (std::f64::consts::PI / 180.0);
        let pivot = DVec3::from_array(self.pivot.each(f64::from));
        let matrix = DMat3::from_quat(DQuat::from_scaled_axis(radians)) * DMat3::from_diagonal(three(self.scale, 1.0));
        DAffine3 {
            matrix3: matrix,
            translation: pivot + shift - matrix * pivot,
        }
    }
}

impl PathScene {
    /// Places everything for the values of `params`.
    ///
    /// # Errors
    /// One sentence: what moves stands where it has no derivatives.
    pub(super) fn settle(&mut self, scene: &Scene, params: &ParamSet) -> Result<(), String> {
        let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
        let triangles = self.place(&values);
        let obstacle = first_moving(scene).and_then(|_| apart::obstacle(scene, self, &triangles, params));
        obstacle.map_or(Ok(()), Err)
    }

    /// Moves surfaces, lights and the hierarchy to where `values`, those of all parameters, put them. Returns the triangles of
    /// all meshes there; none if nothing ever moves.
    pub fn place(&mut self, values: &[&[f32]]) -> Vec<Triangle> {
        if self.rest.stands_still() {
            return Vec::new();
        }
        let moved: Vec<Option<DAffine3>> = self.rest.motions.iter().map(|m| m.map(|m| m.map(values))).collect();
        let first_sensor = self.surfaces.len() + self.lights.len();
        for (number, map) in moved.iter().enumerate().take(first_sensor) {
            let Some(map) = map else { continue };
            if number >= self.surfaces.len() {
                self.aim(number - self.surfaces.len(), map);
                continue;
            }
            let to_world = *map * wide(&self.rest.to_world[number]);
            let to_world = Affine3A::from_cols_array(&to_world.to_cols_array().each(|x| x as f32));
            let record = &mut self.surfaces[number];
            record.to_world = rows(&to_world);
            record.to_local = rows(&inverse(&to_world));
        }
        let mut triangles = self.rest.triangles.clone();
        self.corners.copy_from_slice(&self.rest.corners);
        for mesh in &self.rest.meshes {
            let whole = mesh.triangles.clone();
            mesh.place(
                values[mesh.slot as usize],
                &mut triangles[whole.clone()],
                &mut self.corners[whole],
            );
        }
        for (triangle, corner) in triangles.iter_mut().zip(&mut self.corners) {
            let shape = corner.shape as usize;
            let Some(Some(motion)) = self.rest.motions.get(shape) else {
                continue;
            };
            let vertices = corner.vertices();
            if motion.normals != NONE {
                for (normal, v) in corner.normals.iter_mut().zip(vertices) {
                    normal[..3].copy_from_slice(&values[motion.normals as usize][3 * v as usize..][..3]);
                }
                continue;
            }
            let Some(map) = moved[shape].filter(|_| motion.mesh == NONE) else {
                continue;
            };
            let place = |p: [f32; 3]| map.transform_point3(DVec3::from_array(p.each(f64::from)));
            *triangle = triangle.each(|p| place(p).to_array().each(|x| x as f32));
            let turned = map.matrix3.inverse().transpose();
            for normal in &mut corner.normals {
                let n = turned * DVec3::from_array([0, 1, 2].each(|a: usize| f64::from(normal[a])));
                *normal = n.normalize_or_zero().as_vec3().extend(normal[3]).to_array();
            }
        }
        for ((ground, record), motion) in self.rest.grounds.iter().zip(&self.surfaces).zip(&mut self.rest.motions) {
            if let Some(motion) = motion {
                motion.track = ground.track(record, &triangles);
            }
        }
        self.shine(&triangles);
        if !self.bvh.nodes.is_empty() {
            let boxes: Vec<Corners> = self.surfaces.iter().map(bvh::box_of_surface).collect();
            self.bvh.refit(&triangles, &boxes);
            [self.settings.low, self.settings.high] = self.bvh.bounds;
        }
        triangles
    }

    /// Moves the cameras of the scene, the first of `sensors`, to where `values` put them.
    pub fn place_cameras(&self, values: &[&[f32]], sensors: &mut [SensorRecord]) {
        let of_sensors = self.rest.motions.iter().skip(self.surfaces.len() + self.lights.len());
        for ((motion, rest), record) in of_sensors.zip(&self.rest.cameras).zip(sensors) {
            let Some(motion) = motion else { continue };
            let to_world = motion.map(values) * wide(rest);
            record.to_world = rows(&Affine3A::from_cols_array(&to_world.to_cols_array().each(|x| x as f32)));
        }
    }

    /// Moves a light without a surface.
    fn aim(&mut self, number: usize, map: &DAffine3) {
        let rest = &self.rest.lights[number];
        let three = |v: [f32; 4]| DVec3::new(v[0].into(), v[1].into(), v[2].into());
        let record = &mut self.lights[number];
        let position = map.transform_point3(three(rest.position)).as_vec3();
        let axis = (map.matrix3 * three(rest.direction)).as_vec3();
        record.position = position.extend(rest.position[3]).to_array();
        record.direction = axis.extend(rest.direction[3]).to_array();
        let to_local = affine(&rest.to_local).to_cols_array().each(f64::from);
        let to_local = DAffine3::from_cols_array(&to_local) * map.inverse();
        record.to_local = rows(&Affine3A::from_cols_array(&to_local.to_cols_array().each(|x| x as f32)));
    }

    /// Updates area lights and their emissive triangles to the places of their surfaces.
    fn shine(&mut self, triangles: &[Triangle]) {
        let before = std::mem::take(&mut self.emissive_triangles);
        for record in self.lights.iter_mut().filter(|record| record.kind == light::AREA) {
            let shape = &self.surfaces[record.surface as usize];
            let to_world = affine(&shape.to_world);
            let number = record.surface as usize;
            let stands = self.rest.meshes.is_empty() && self.rest.motions[number].is_none();
            let parts = if matches!(shape.kind, surface::CUBE | surface::MESH) {
                let (first, count) = (record.first_emissive as usize, record.emissive_triangles as usize);
                let parts = match stands {
                    true => None,
                    false => cut(shape, record.surface, &to_world, triangles, &self.corners),
                };
                let (parts, area) =
                    parts.unwrap_or_else(|| (before[first..first + count].to_vec(), record.position[3]));
                record.position[3] = area;
                parts
            } else {
                illuminate(record, shape.kind, &to_world);
                Vec::new()
            };
            record.first_emissive = self.emissive_triangles.len() as u32;
            record.emissive_triangles = parts.len() as u32;
            self.emissive_triangles.extend(parts);
        }
    }
}

/// The same map in f64.
fn wide(m: &Affine3A) -> DAffine3 {
    DAffine3::from_cols_array(&m.to_cols_array().each(f64::from))
}

/// The emissive triangles of a cube or a mesh, and their area; None if that is zero.
fn cut(
    shape: &SurfaceRecord,
    number: u32,
    to_world: &Affine3A,
    triangles: &[Triangle],
    corners: &[CornerRecord],
) -> Option<(Vec<EmissiveTriangleRecord>, f32)> {
    let flipped = shape.side < 0.0;
    if shape.kind == surface::CUBE {
        return emissive_triangles(&cube(to_world), flipped, NONE);
    }
    let of_shape = |corner: &CornerRecord| corner.shape == number;
    let first = corners.iter().position(of_shape)?;
    let count = corners[first..].iter().take_while(|corner| of_shape(corner)).count();
    let whole = first..first + count;
    emissive_triangles(&mesh(&triangles[whole.clone()], &corners[whole]), flipped, first as u32)
}

/// Sets the area, and of a sphere also centre and radius, of an area light that is no cube or mesh. False if a sphere or a
/// cylinder is not round under `to_world`, so that it cannot shine.
pub(super) fn illuminate(record: &mut LightRecord, kind: u32, to_world: &Affine3A) -> bool {
    let across = || to_world.matrix3.x_axis.cross(to_world.matrix3.y_axis).length();
    match kind {
        layout::surface::SPHERE => {
            let Some(radius) = radius(to_world) else { return false };
            record.position = to_world
                .translation
                .extend(4.0 * std::f32::consts::PI * radius * radius)
                .to_array();
            record.direction[3] = radius;
        }
        layout::surface::CYLINDER => match cylinder_area(to_world) {
            Some(area) => record.position[3] = area,
            None => return false,
        },
        layout::surface::DISK => record.position[3] = std::f32::consts::PI * across(),
        _ => record.position[3] = 4.0 * across(),
    }
    true
}
