//! Surfaces, media and lights flattened into records.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use bytemuck::Zeroable;

use glam::{Affine3A, Vec3, Vec3A};

use super::attached;
use super::bsdfs::Bsdfs;
use super::bvh::{self, Bvh};
use super::containers::{self, Container};
use super::distances::Distances;
use super::emissive_triangles;
use super::geometry::{cylinder, inverse};
use super::interior::{Interior, interiors};
use super::layout::{
    self, CornerRecord, EmissiveTriangleRecord, LightRecord, MediumRecord, NONE, PathSettings, PhaseRecord,
    SurfaceRecord, Triangle, VolumeRecord, surfaces_only,
};
use super::magnitudes::magnitudes;
use super::majorants::{MARGIN, MajorantRule};
use super::motion::{Rest, illuminate, moves_shapes, refusal};
use super::sealed::{Shell, is_sealed};
use super::surface_free::{mark_alone, mark_surface_free};
use super::tracer::LightTracer;
use super::vertices::Vertices;
use crate::each::EachEntry;
use crate::io::mesh::{Mesh, Placed};
use crate::io::{self, IoError};
use crate::params::ParamSet;
use crate::resident::{rows, slot};
use crate::scene::{
    Background, Bsdf, Geometry, Gradient, Light, LightKind, Lookup, Medium, MeshFormat, Phase, Rules, Scene, Surface,
    Texture, Wrap,
};
pub use crate::scene::{Estimator, Variant};

/// The records of a scene that is not a radiance field.
#[derive(Debug, Clone)]
pub struct PathScene {
    /// How derivatives are propagated.
    pub estimator: Estimator,
    pub settings: PathSettings,
    pub surfaces: Vec<SurfaceRecord>,
    /// The indices of the surfaces that are not meshes.
    pub singles: Vec<u32>,
    pub media: Vec<MediumRecord>,
    pub volumes: Vec<VolumeRecord>,
    pub phases: Vec<PhaseRecord>,
    pub lights: Vec<LightRecord>,
    pub bsdfs: Bsdfs,
    /// The hierarchy over all triangles and surfaces; empty if there are too few to need it ([`bvh::of_world`]).
    pub bvh: Bvh,
    /// Normals and texture coordinates of all meshes' triangles, in the order of the triangles.
    pub corners: Vec<CornerRecord>,
    /// Triangles of area lights on cubes and meshes.
    pub emissive_triangles: Vec<EmissiveTriangleRecord>,
    /// Shapes given by signed distances on grids.
    pub distances: Distances,
    /// Parameter of the background's radiance; [`NONE`] without one.
    pub background: u32,
    /// Whether directions to the environment map are drawn by its luminance above the mean (MIS compensation, Karlik2019).
    pub compensated: bool,
    /// Shapes, lights and cameras that a run moves, and the places of all in the file.
    pub rest: Rest,
    /// For each medium the convex shape that it fills alone, if there is one; empty where something moves or media are ignored.
    pub interiors: Vec<Option<Interior>>,
    /// Whether points along chains of smooth glass and mirrors move with the parameters.
    pub attached: bool,
    /// The λ that makes the rays' Jacobians regular, where the derivatives of such chains go through their inverses.
    pub inverted: Option<f32>,
    /// Settings of light tracing, if paths begin at the lights; [`PathSettings::max_depth`] is then that of the cameras'
    /// own paths, one edge at most.
    pub light_tracer: Option<LightTracer>,
    /// For each parameter the binary order of the radiance's derivative by it, roughly.
    pub magnitudes: Vec<i32>,
    /// For each medium the rule by which its majorants follow from its extinction.
    pub(super) rules: Vec<MajorantRule>,
}

/// Flattens surfaces, media and lights of a scene; their arrays are among `params`. `background` is the parameter of the
/// radiance behind it.
///
/// # Errors
/// A file cannot be read, or the scene has something that is not supported.
pub(super) fn flatten(scene: &Scene, params: &ParamSet, background: Option<usize>) -> io::Result<PathScene> {
    let mut build = Build {
        scene,
        params,
        triangles: Vec::new(),
        meshes: HashMap::new(),
        following: Vec::new(),
        weights: Vec::new(),
        containers: Vec::new(),
        meshed: Vec::new(),
        paths: PathScene {
            estimator: scene.integrator.estimator,
            settings: describe(scene),
            surfaces: Vec::new(),
            singles: Vec::new(),
            media: Vec::new(),
            volumes: Vec::new(),
            phases: Vec::new(),
            lights: Vec::new(),
            bsdfs: Bsdfs::default(),
            bvh: Bvh::default(),
            corners: Vec::new(),
            emissive_triangles: Vec::new(),
            distances: Distances::default(),
            background: background.map_or(NONE, |slot| slot as u32),
            compensated: false,
            rest: Rest::default(),
            interiors: Vec::new(),
            attached: scene.integrator.attached,
            inverted: scene.integrator.inverted,
            light_tracer: None,
            magnitudes: Vec::new(),
            rules: Vec::new(),
        },
    };
    for medium in &scene.world.media {
        build.medium(medium)?;
    }
    for surface in scene.world.placed() {
        build.surface(&surface)?;
    }
    for light in &scene.world.lights {
        build.light(light);
    }
    let Build {
        mut paths,
        mut weights,
        triangles,
        following,
        containers,
        meshed,
        ..
    } = build;
    paths.bsdfs.place_volumes(&mut paths.volumes);
    if paths.settings.surfaces_only == surfaces_only::NO {
        containers::check(scene, &containers)?;
    }
    set_floors(scene, &mut paths, &containers);
    // A shape that moves may come into a medium's box.
    if following.is_empty() && !moves_shapes(scene) {
        mark_surface_free(&mut paths.media, &paths.surfaces, &triangles);
    }
    let interiors = interiors(&paths.media, &paths.surfaces, &triangles);
    let sealed = sealed(scene, &paths, &triangles, &meshed);
    paths.bvh = bvh::of_world(&triangles, &paths.surfaces);
    let numbered = paths.surfaces.iter().zip(0..);
    paths.singles = numbered
        .filter(|(record, _)| record.kind != layout::surface::MESH)
        .map(|(_, number)| number)
        .collect();
    [paths.settings.low, paths.settings.high] = paths.bvh.bounds;
    if let Background::Envmap {
        sampling_weight,
        mis_compensation,
        ..
    } = scene.background
    {
        paths.compensated = mis_compensation;
        weights.push(sampling_weight);
        paths.settings.environment = paths.lights.len() as u32;
        let mut record = dark();
        record.kind = layout::light::ENVMAP;
        record.slot = paths.background;
        paths.lights.push(record);
    }
    paths.settings.surfaces = paths.surfaces.len() as u32;
    paths.settings.lights = match scene.integrator.rules {
        Rules::Basic => 0,
        Rules::Volpath | Rules::Path | Rules::Prb | Rules::Light => paths.lights.len() as u32,
    };
    if scene.integrator.rules == Rules::Light {
        paths.light_tracer = Some(LightTracer::new(scene, &paths));
        paths.settings.max_depth = paths.settings.max_depth.min(1);
    }
    weigh(&mut paths, &weights);
    if let Some(what) = attached::obstacle(&paths, params) {
        return Err(IoError::new(&scene.path, what));
    }
    paths.rest =
        Rest::new(scene, &paths, triangles, following, params).map_err(|what| IoError::new(&scene.path, what))?;
    if paths.rest.motions.is_empty()
        && paths.rest.meshes.is_empty()
        && paths.settings.surfaces_only == surfaces_only::NO
    {
        mark_alone(&mut paths.media, &paths.surfaces);
        paths.interiors = interiors;
        for (medium, sealed) in paths.media.iter_mut().zip(sealed) {
            medium.set(layout::medium::SEALED, sealed);
        }
    }
    paths.rest.closed = meshed.iter().map(|(_, is_closed)| *is_closed).collect();
    let refused = |what: String| IoError::new(&scene.path, refusal(scene, &what));
    paths.settle(scene, params).map_err(refused)?;
    paths.magnitudes = magnitudes(scene, &paths, params);
    Ok(paths)
}

/// Sets the least majorants of all media ([`MajorantRule`]).
fn set_floors(scene: &Scene, paths: &mut PathScene, containers: &[Container]) {
    for (i, (medium, record)) in scene.world.media.iter().zip(&paths.media).enumerate() {
        let diagonal = (Vec3::from_array(record.high) - Vec3::from_array(record.low)).length();
        let lies_around = paths.surfaces.iter().any(|surface| surface.exterior == i as u32)
            || scene.sensors.iter().any(|sensor| sensor.medium == Some(i));
        let length = match diagonal.is_finite() {
            true => Some(diagonal),
            false if lies_around => None,
            false => containers::length(containers, i),
        };
        let rule = &mut paths.rules[i];
        rule.least = length.map_or(0.0, |length| 1.0 / length);
        rule.floor = if medium.sigma_t.array.tuning.is_some() {
            rule.least
        } else {
            0.0
        };
    }
}

/// For each medium whether it is sealed ([`is_sealed`]); one that a sensor names is not. `meshed` is [`Build::meshed`].
fn sealed(scene: &Scene, paths: &PathScene, triangles: &[Triangle], meshed: &[(usize, bool)]) -> Vec<bool> {
    let ends = meshed.iter().skip(1).map(|(first, _)| *first);
    let ends = ends.chain([triangles.len()]);
    let shells: Vec<Shell> = paths
        .surfaces
        .iter()
        .zip(meshed)
        .zip(ends)
        .map(|((record, &(first, is_closed)), end)| Shell {
            record,
            triangles: &triangles[first..end],
            is_opaque: paths
                .bsdfs
                .bsdfs
                .get(record.bsdf as usize)
                .is_some_and(|bsdf| bsdf.flags & layout::bsdf::NULL == 0),
            is_closed,
        })
        .collect();
    let named = |medium: usize| scene.sensors.iter().any(|sensor| sensor.medium == Some(medium));
    (0..paths.media.len())
        .map(|medium| !named(medium) && is_sealed(medium as u32, &shells, &paths.lights))
        .collect()
}

/// Sets the probabilities by which next-event estimation chooses lights, unless `weights` are all alike and positive.
fn weigh(paths: &mut PathScene, weights: &[f32]) {
    if weights.windows(2).all(|pair| pair[0] == pair[1]) && weights.first().is_none_or(|weight| *weight > 0.0) {
        return;
    }
    paths.settings.weighted = 1;
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    if total == 0.0 {
        // All weights are zero: no light is sampled, and paths find lights by hitting them.
        paths.settings.lights = 0;
        return;
    }
    let mut sum = 0.0;
    for (light, weight) in paths.lights.iter_mut().zip(weights) {
        sum += f64::from(*weight);
        light.probability = (f64::from(*weight) / total) as f32;
        light.cumulative = (sum / total) as f32;
    }
}

/// A light record without parameter, surface and texture.
fn dark() -> LightRecord {
    LightRecord {
        slot: NONE,
        surface: NONE,
        texture: NONE,
        ..LightRecord::zeroed()
    }
}

fn describe(scene: &Scene) -> PathSettings {
    let integrator = &scene.integrator;
    let mut record = PathSettings::zeroed();
    record.environment = NONE;
    record.max_depth = integrator.max_depth.unwrap_or(NONE);
    record.surfaces_only = match integrator.rules {
        Rules::Volpath => surfaces_only::NO,
        Rules::Path => surfaces_only::CLEAR,
        Rules::Prb | Rules::Basic | Rules::Light => surfaces_only::OPAQUE,
    };
    record.rr_depth = match integrator.rules {
        Rules::Volpath | Rules::Prb => integrator.rr_depth,
        // `path` plays roulette after it has counted the edge.
        Rules::Path => integrator.rr_depth.saturating_sub(1),
        Rules::Basic | Rules::Light => NONE,
    };
    record.hide_emitters = u32::from(integrator.hide_emitters);
    record.gradient = match integrator.gradient {
        Gradient::Auto if integrator.estimator == Estimator::Tape => layout::gradient::FREE_FLIGHT,
        // Under a background, transmitted and in-scattered radiance nearly cancel, so that `paired` has less variance; with
        // lamps alone they do not.
        Gradient::Auto if matches!(scene.background, Background::None) => layout::gradient::DRT,
        Gradient::Auto => layout::gradient::PAIRED,
        Gradient::FreeFlight => layout::gradient::FREE_FLIGHT,
        Gradient::Drt => layout::gradient::DRT,
        Gradient::Paired => layout::gradient::PAIRED,
    };
    record
}

/// A mesh file, its format, `face_normals` and `flip_tex_coords`.
type MeshFile = (PathBuf, MeshFormat, bool, bool);

struct Build<'a> {
    scene: &'a Scene,
    params: &'a ParamSet,
    triangles: Vec<Triangle>,
    meshes: HashMap<MeshFile, Rc<Mesh>>,
    /// Meshes whose vertices follow parameters, with the indices of their surfaces.
    following: Vec<(usize, Vertices)>,
    /// For each light the weight in proportion to which it is chosen.
    weights: Vec<f32>,
    containers: Vec<Container>,
    /// For each surface its first triangle, and whether it is a closed mesh that faces outwards around a medium.
    meshed: Vec<(usize, bool)>,
    paths: PathScene,
}

impl Build<'_> {
    fn refuse<T>(&self, message: String) -> io::Result<T> {
        Err(IoError::new(&self.scene.path, message))
    }

    fn medium(&mut self, medium: &Medium) -> io::Result<()> {
        let sigma_t = self.volume(&medium.sigma_t);
        let albedo = self.volume(&medium.albedo);
        let emission = match &medium.emission {
            Some(emission) => self.volume(emission),
            None => NONE,
        };
        let phase = self.phase(&medium.phase);
        let (low, high) = bounds(medium);
        let diagonal = (high - low).length();
        let mut record = MediumRecord::zeroed();
        (record.low, record.high) = (low.to_array(), high.to_array());
        (record.sigma_t, record.albedo, record.emission, record.phase) = (sigma_t, albedo, emission, phase);
        record.scale = medium.scale;
        let spectral = medium.sigma_t.array.shape.channels == 3;
        record.spectral = u32::from(spectral);
        self.paths.settings.spectral |= record.spectral;
        record.kappa = if diagonal.is_finite() { 1.0 / diagonal } else { 1.0 };
        let tuned = medium.sigma_t.array.tuning.is_some();
        let constant = medium.sigma_t.constant;
        self.paths.rules.push(MajorantRule {
            margin: if constant && !tuned { 1.0 } else { MARGIN },
            ..MajorantRule::default()
        });
        self.paths.media.push(record);
        Ok(())
    }

    fn volume(&mut self, lookup: &Lookup) -> u32 {
        self.paths.volumes.push(volume_record(lookup, self.params));
        self.paths.volumes.len() as u32 - 1
    }

    /// Adds a phase function and returns its index.
    fn phase(&mut self, phase: &Phase) -> u32 {
        let index = self.paths.phases.len();
        self.paths.phases.push(PhaseRecord::zeroed());
        self.phase_at(index, phase);
        index as u32
    }

    fn phase_at(&mut self, index: usize, phase: &Phase) {
        let mut record = PhaseRecord {
            kind: layout::phase::ISOTROPIC,
            slot: NONE,
            weight: NONE,
            first: NONE,
        };
        match phase {
            Phase::Isotropic => {}
            Phase::Rayleigh => record.kind = layout::phase::RAYLEIGH,
            Phase::Hg { g } => {
                record.kind = layout::phase::HG;
                record.slot = slot(self.params, g) as u32;
            }
            Phase::Blend { weight, phases } => {
                record.kind = layout::phase::BLEND;
                record.weight = self.volume(weight);
                let first = self.paths.phases.len();
                record.first = first as u32;
                self.paths.phases.extend([PhaseRecord::zeroed(); 2]);
                self.phase_at(first, &phases[0]);
                self.phase_at(first + 1, &phases[1]);
            }
        }
        self.paths.phases[index] = record;
    }

    fn surface(&mut self, surface: &Surface) -> io::Result<()> {
        let (kind, inner) = match &surface.geometry {
            Geometry::Cube => (layout::surface::CUBE, Affine3A::IDENTITY),
            Geometry::Rectangle => (layout::surface::RECTANGLE, Affine3A::IDENTITY),
            Geometry::Disk => (layout::surface::DISK, Affine3A::IDENTITY),
            Geometry::Cylinder { ends, radius } => (layout::surface::CYLINDER, cylinder(*ends, *radius)),
            Geometry::Sphere { center, radius } => (
                layout::surface::SPHERE,
                Affine3A::from_translation(Vec3::from_array(*center)) * Affine3A::from_scale(Vec3::splat(*radius)),
            ),
            Geometry::Mesh { .. } => (layout::surface::MESH, Affine3A::IDENTITY),
            // The grid fills [0, 1]³.
            Geometry::Distances { .. } => (
                layout::surface::DISTANCES,
                Affine3A::from_translation(Vec3::splat(0.5)) * Affine3A::from_scale(Vec3::splat(0.5)),
            ),
        };
        let to_world = surface.to_world * inner;
        let mut record = SurfaceRecord::zeroed();
        record.to_world = rows(&to_world);
        record.to_local = rows(&inverse(&to_world));
        record.kind = kind;
        let alone = self.paths.settings.surfaces_only != surfaces_only::NO;
        let index = |medium: Option<usize>| medium.filter(|_| !alone).map_or(NONE, |m| m as u32);
        (record.interior, record.exterior) = (index(surface.interior), index(surface.exterior));
        record.side = if surface.flip_normals { -1.0 } else { 1.0 };
        record.light = NONE;
        if let Geometry::Distances { path, smooth } = &surface.geometry {
            record.distances = self.paths.distances.add(path, *smooth)?;
        }
        let first_triangle = self.triangles.len();
        let mut is_closed = false;
        if let Geometry::Mesh {
            path,
            format,
            face_normals,
            flip_tex_coords,
        } = &surface.geometry
        {
            let mesh = self.read_mesh((path.clone(), *format, *face_normals, *flip_tex_coords))?;
            let holds_medium = surface.interior.is_some() || surface.exterior.is_some();
            if holds_medium
                && matches!(surface.bsdf, Bsdf::Null)
                && let Err(why) = mesh.is_closed()
            {
                return Err(IoError::new(path, format!("the mesh bounds a medium but {why}")));
            }
            if mesh.uvs.is_empty()
                && let Some(displacement) = &surface.displacement
                && matches!(displacement.height, Texture::Bitmap(_))
            {
                let message = format!(
                    "the mesh of `{}` has no texture coordinates, by which its displacement is looked up: write them into the file, or \
                     take a number",
                    surface.name
                );
                return Err(IoError::new(path, message));
            }
            self.mesh(&mesh, surface, &to_world, *face_normals);
            is_closed = holds_medium
                && mesh.is_closed().is_ok()
                && containers::face_outwards(&self.triangles[first_triangle..]);
        }
        self.meshed.push((first_triangle, is_closed));
        let container = Container::of(surface, &to_world, &self.triangles[first_triangle..], is_closed)?;
        self.containers.extend(container);
        record.bsdf = self
            .paths
            .bsdfs
            .add(&surface.bsdf, &surface.bsdf_path, &surface.name, self.params);
        let traced = self.scene.integrator.rules == Rules::Light;
        if let Some(emitter) = surface
            .emitter
            .as_ref()
            .filter(|emitter| traced || !emitter.directional)
        {
            let mut light = self.area_light(surface, kind, &to_world, first_triangle)?;
            if emitter.directional {
                light.kind = layout::light::COLLIMATED;
            } else {
                record.light = self.paths.lights.len() as u32;
            }
            match &emitter.radiance {
                Texture::Constant(radiance) => light.slot = slot(self.params, radiance) as u32,
                texture => light.texture = self.paths.bsdfs.texture(texture, self.params),
            }
            self.paths.lights.push(light);
            self.weights.push(emitter.sampling_weight);
        }
        self.paths.surfaces.push(record);
        Ok(())
    }

    /// A mesh, which is read once however many instances show it.
    fn read_mesh(&mut self, file: MeshFile) -> io::Result<Rc<Mesh>> {
        if let Some(known) = self.meshes.get(&file) {
            return Ok(Rc::clone(known));
        }
        let (path, format, face_normals, flip_tex_coords) = &file;
        let mesh = Rc::new(format.read(path, *face_normals, *flip_tex_coords)?);
        self.meshes.insert(file, Rc::clone(&mesh));
        Ok(mesh)
    }

    /// Adds a mesh's triangles, moved into the world.
    fn mesh(&mut self, mesh: &Mesh, surface: &Surface, to_world: &Affine3A, face_normals: bool) {
        let shape = self.paths.surfaces.len() as u32;
        let placed = mesh.placed(to_world);
        let following = Vertices::new(surface, mesh, &placed, self.triangles.len(), face_normals, self.params);
        let Placed {
            mut positions,
            mut normals,
            triangles,
        } = placed;
        if let Some(vertices) = following {
            positions = vertices.positions(&self.params.parameters[vertices.slot as usize].values);
            normals = vertices.normals(&positions, &triangles);
            self.following.push((shape as usize, vertices));
        }
        if face_normals {
            normals.fill(Vec3::ZERO);
        }
        // Without texture coordinates u and v are the barycentric weights of the file's second and third corner, as in Mitsuba; these
        // two are exchanged where the map mirrors.
        let bare = match to_world.matrix3.determinant() < 0.0 {
            true => [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
            false => [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        };
        self.triangles.reserve(triangles.len());
        self.paths.corners.reserve(triangles.len());
        for ([a, b, c], face) in triangles.into_iter().zip(0..) {
            let at = |v: u32| positions[v as usize].to_array();
            self.triangles.push([a, b, c].each(at));
            let mut record = CornerRecord::zeroed();
            (record.shape, record.face) = (shape, face);
            let uvs = match mesh.uvs.is_empty() {
                true => bare,
                false => [a, b, c].each(|v| mesh.uvs[v as usize]),
            };
            record.uv_ab = uvs[..2].as_flattened().try_into().expect("two pairs");
            record.uv_c = uvs[2];
            for (k, v) in [a, b, c].into_iter().enumerate() {
                record.normals[k] = normals[v as usize].extend(f32::from_bits(v)).to_array();
            }
            self.paths.corners.push(record);
        }
    }

    /// The light record of an emissive shape; a mesh's triangles are those from `first_triangle` on.
    fn area_light(
        &mut self,
        surface: &Surface,
        kind: u32,
        to_world: &Affine3A,
        first_triangle: usize,
    ) -> io::Result<LightRecord> {
        let mut light = dark();
        light.kind = layout::light::AREA;
        light.surface = self.paths.surfaces.len() as u32;
        match kind {
            layout::surface::SPHERE | layout::surface::CYLINDER if !illuminate(&mut light, kind, to_world) => {
                let (what, need) = match kind {
                    layout::surface::SPHERE => (
                        "a sphere that is not scaled alike along all axes: only round ones",
                        "scale it alike",
                    ),
                    _ => (
                        "a cylinder that is not round or not upright: only right circular ones",
                        "scale it alike across its axis",
                    ),
                };
                self.refuse(format!(
                    "the area light `{}` is {what} can shine; {need}, or use a mesh",
                    surface.name
                ))
            }
            layout::surface::SPHERE | layout::surface::CYLINDER => Ok(light),
            layout::surface::RECTANGLE | layout::surface::DISK => {
                illuminate(&mut light, kind, to_world);
                Ok(light)
            }
            _ => {
                let (triangles, first) = match kind {
                    layout::surface::CUBE => (emissive_triangles::cube(to_world), NONE),
                    _ => (
                        emissive_triangles::mesh(
                            &self.triangles[first_triangle..],
                            &self.paths.corners[first_triangle..],
                        ),
                        first_triangle as u32,
                    ),
                };
                let Some((emissive_triangles, area)) =
                    emissive_triangles::emissive_triangles(&triangles, surface.flip_normals, first)
                else {
                    return self.refuse(format!(
                        "the area light `{}` has an area of zero or without bound: expected a shape that can shine",
                        surface.name
                    ));
                };
                light.position[3] = area;
                light.first_emissive = self.paths.emissive_triangles.len() as u32;
                light.emissive_triangles = emissive_triangles.len() as u32;
                self.paths.emissive_triangles.extend(emissive_triangles);
                Ok(light)
            }
        }
    }

    fn light(&mut self, light: &Light) {
        let mut record = dark();
        record.slot = slot(self.params, &light.intensity) as u32;
        if let Some(texture) = &light.texture {
            record.texture = self.paths.bsdfs.texture(texture, self.params);
        }
        match light.kind {
            LightKind::Point { position } => {
                record.kind = layout::light::POINT;
                record.position[..3].copy_from_slice(&position);
            }
            LightKind::Directional { direction } => {
                record.kind = layout::light::DIRECTIONAL;
                record.direction[..3].copy_from_slice(&direction);
            }
            LightKind::Spot { to_world, cutoff, beam } => {
                record.kind = layout::light::SPOT;
                record.position = to_world.translation.extend(0.0).to_array();
                record.direction = to_world.matrix3.z_axis.normalize().extend(cutoff.cos()).to_array();
                record.cos_beam = beam.cos();
                record.to_local = rows(&inverse(&to_world));
                record.extent = [cutoff.tan(); 2];
            }
            LightKind::Projector { to_world, fov } => {
                record.kind = layout::light::PROJECTOR;
                record.position = to_world.translation.extend(0.0).to_array();
                record.to_local = rows(&inverse(&to_world));
                let [width, height] = light.picture_size().each(|n| n as f32);
                let half = (0.5 * fov.to_radians()).tan();
                record.extent = [half, half * height / width];
            }
        }
        self.paths.lights.push(record);
        self.weights.push(light.sampling_weight);
    }
}

/// The record of a volume; its size follows from its parameter's.
pub(super) fn volume_record(lookup: &Lookup, params: &ParamSet) -> VolumeRecord {
    let mut record = VolumeRecord::zeroed();
    record.world_to_unit = rows(&lookup.to_world.inverse());
    record.slot = slot(params, &lookup.array) as u32;
    record.filter = match (lookup.constant, lookup.nearest) {
        (true, _) => layout::lookup::CONSTANT,
        (false, true) => layout::lookup::NEAREST,
        (false, false) => layout::lookup::TRILINEAR,
    };
    record.wrap = wrap_code(lookup.wrap);
    record
}

pub(super) fn wrap_code(wrap: Wrap) -> u32 {
    match wrap {
        Wrap::Clamp => layout::wrap::CLAMP,
        Wrap::Repeat => layout::wrap::REPEAT,
        Wrap::Mirror => layout::wrap::MIRROR,
    }
}

/// The world-space box outside of which a medium is empty, as Mitsuba has it: that of the volume of `sigma_t`, also of a
/// constant one; infinite for a `homogeneous` medium.
fn bounds(medium: &Medium) -> (Vec3A, Vec3A) {
    if medium.homogeneous {
        return (Vec3A::NEG_INFINITY, Vec3A::INFINITY);
    }
    let corners = (0..8u32).map(|i| {
        let corner = Vec3A::new((i & 1) as f32, (i >> 1 & 1) as f32, (i >> 2) as f32);
        medium.sigma_t.to_world.transform_point3a(corner)
    });
    corners.fold((Vec3A::INFINITY, Vec3A::NEG_INFINITY), |(low, high), c| {
        (low.min(c), high.max(c))
    })
}
