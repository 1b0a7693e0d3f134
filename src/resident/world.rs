//! Surfaces, media and lights flattened into records.

use bytemuck::Zeroable;
use glam::{Affine2, Affine3A, Mat3A, Vec3, Vec3A};

use super::containers::{self, Container};
use super::hierarchy::Hierarchy;
use super::layout::{
    self, CornerRecord, LightRecord, MediumRecord, NONE, PhaseRecord, SurfaceRecord, TextureRecord, TriangleRecord,
    VolumeRecord, WorldRecord,
};
use super::values::check_reflectance;
use super::{add, rows};
use crate::io::mesh::{Mesh, read_obj, read_ply};
use crate::io::{self, Encoding, IoError, srgb};
use crate::kernels::occupancy::reachable_between;
use crate::params::{ParamSet, Shape};
use crate::scene::{
    Bsdf, Estimator, Geometry, Gradient, Integrator, Light, LightKind, Lookup, Medium, MeshFormat, Phase, Scene,
    Surface, Texture, TextureMap, Wrap,
};

/// Texels along the edge of a cell of the majorant grid.
const CELL: usize = 8;
/// Majorants below this are zero, so that their inverses are finite.
const LEAST: f32 = 1e-30;
/// Majorants exceed what they bound by this factor, so that null collisions stay possible everywhere.
const MARGIN: f32 = 1.05;

/// The records of a scene that is not a radiance field.
#[derive(Debug, Clone)]
pub struct World {
    pub record: WorldRecord,
    pub surfaces: Vec<SurfaceRecord>,
    pub media: Vec<MediumRecord>,
    pub volumes: Vec<VolumeRecord>,
    pub phases: Vec<PhaseRecord>,
    pub lights: Vec<LightRecord>,
    pub textures: Vec<TextureRecord>,
    /// Colours of all images.
    pub texels: Vec<[f32; 4]>,
    /// Triangles of all meshes, in the world, and what is known at their corners.
    pub hierarchy: Hierarchy,
    pub corners: Vec<CornerRecord>,
    /// Parameter of the background's radiance; [`NONE`] without one.
    pub background: u32,
    /// For each medium how its majorants follow from its extinction.
    rules: Vec<MajorantRule>,
}

/// How a medium's majorants follow from its extinction.
#[derive(Debug, Clone, Copy)]
pub struct MajorantRule {
    /// The part of the unit cube's lattice that the grid covers.
    low: [f32; 3],
    high: [f32; 3],
    /// The least majorant: positive where the extinction may grow.
    pub floor: f32,
    /// Factor by which majorants exceed what they bound.
    pub margin: f32,
}

/// Flattens a scene's world; its arrays go into `params`. `background` is the parameter of the radiance behind it.
///
/// # Errors
/// A file cannot be read, or something is not supported yet.
pub(super) fn flatten(scene: &Scene, params: &mut ParamSet, background: Option<usize>) -> io::Result<World> {
    if scene.integrator.estimator == Estimator::Tape {
        let message = "conventional differentiation (`advolpath`) cannot be run yet: use `prbvolpath`";
        return Err(IoError::new(&scene.path, message));
    }
    let mut build = Build {
        scene,
        params,
        triangles: Vec::new(),
        containers: Vec::new(),
        world: World {
            record: describe(&scene.integrator),
            surfaces: Vec::new(),
            media: Vec::new(),
            volumes: Vec::new(),
            phases: Vec::new(),
            lights: Vec::new(),
            textures: Vec::new(),
            texels: Vec::new(),
            hierarchy: Hierarchy::default(),
            corners: Vec::new(),
            background: background.map_or(NONE, |slot| slot as u32),
            rules: Vec::new(),
        },
    };
    for medium in &scene.world.media {
        build.medium(medium)?;
    }
    for surface in &scene.world.surfaces {
        build.surface(surface)?;
    }
    for light in &scene.world.lights {
        build.light(light)?;
    }
    let Build {
        mut world,
        triangles,
        containers,
        ..
    } = build;
    containers::check(scene, &containers)?;
    world.hierarchy = Hierarchy::new(triangles);
    if matches!(scene.background, crate::scene::Background::Envmap { .. }) {
        world.record.environment = world.lights.len() as u32;
        let mut record = LightRecord::zeroed();
        record.kind = layout::light::ENVMAP;
        record.slot = world.background;
        record.surface = NONE;
        world.lights.push(record);
    }
    world.record.surfaces = world.surfaces.len() as u32;
    world.record.lights = world.lights.len() as u32;
    Ok(world)
}

fn describe(integrator: &Integrator) -> WorldRecord {
    let mut record = WorldRecord::zeroed();
    record.environment = NONE;
    record.max_depth = integrator.max_depth.unwrap_or(NONE);
    record.rr_depth = integrator.rr_depth;
    record.hide_emitters = u32::from(integrator.hide_emitters);
    record.gradient = match integrator.gradient {
        Gradient::FreeFlight => layout::gradient::FREE_FLIGHT,
        Gradient::Drt => layout::gradient::DRT,
    };
    record
}

struct Build<'a> {
    scene: &'a Scene,
    params: &'a mut ParamSet,
    triangles: Vec<TriangleRecord>,
    containers: Vec<Container>,
    world: World,
}

impl Build<'_> {
    fn refuse<T>(&self, message: String) -> io::Result<T> {
        Err(IoError::new(&self.scene.path, message))
    }

    fn medium(&mut self, medium: &Medium) -> io::Result<()> {
        let sigma_t = self.volume(&medium.sigma_t)?;
        let albedo = self.volume(&medium.albedo)?;
        let emission = match &medium.emission {
            Some(emission) => self.volume(emission)?,
            None => NONE,
        };
        let phase = self.phase(&medium.phase)?;
        let (low, high) = bounds(&medium.sigma_t);
        let diagonal = (high - low).length();
        let mut record = MediumRecord::zeroed();
        record.low = low.extend(0.0).to_array();
        record.high = high.extend(0.0).to_array();
        (record.sigma_t, record.albedo, record.emission, record.phase) = (sigma_t, albedo, emission, phase);
        record.scale = medium.scale;
        let spectral = medium.sigma_t.array.shape.channels == 3;
        record.spectral = u32::from(spectral);
        self.world.record.spectral |= record.spectral;
        record.kappa = if diagonal.is_finite() { 1.0 / diagonal } else { 1.0 };
        let tuned = medium.sigma_t.array.tuning.is_some();
        let constant = medium.sigma_t.constant;
        self.world.rules.push(MajorantRule {
            low: [0.0; 3],
            high: [1.0; 3],
            floor: if tuned { least_majorant(&record) } else { 0.0 },
            margin: if constant && !tuned { 1.0 } else { MARGIN },
        });
        self.world.media.push(record);
        Ok(())
    }

    fn volume(&mut self, lookup: &Lookup) -> io::Result<u32> {
        let slot = add(self.params, &lookup.array)?;
        let mut record = VolumeRecord::zeroed();
        record.world_to_unit = rows(&lookup.to_world.inverse());
        record.slot = slot as u32;
        record.filter = match (lookup.constant, lookup.nearest) {
            (true, _) => layout::lookup::CONSTANT,
            (false, true) => layout::lookup::NEAREST,
            (false, false) => layout::lookup::TRILINEAR,
        };
        record.wrap = wrap_code(lookup.wrap);
        self.world.volumes.push(record);
        Ok(self.world.volumes.len() as u32 - 1)
    }

    /// Adds a phase function and returns its index.
    fn phase(&mut self, phase: &Phase) -> io::Result<u32> {
        let index = self.world.phases.len();
        self.world.phases.push(PhaseRecord::zeroed());
        self.phase_at(index, phase, 0)?;
        Ok(index as u32)
    }

    fn phase_at(&mut self, index: usize, phase: &Phase, nesting: usize) -> io::Result<()> {
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
                record.slot = add(self.params, g)? as u32;
            }
            Phase::Blend { weight, phases } => {
                if nesting == 4 || matches!(phases[0], Phase::Blend { .. }) {
                    return self.refuse(
                        "a `blendphase` stands first in another: only the second part of a blend may be a blend, \
                         up to four times"
                            .to_string(),
                    );
                }
                record.kind = layout::phase::BLEND;
                record.weight = self.volume(weight)?;
                let first = self.world.phases.len();
                record.first = first as u32;
                self.world.phases.extend([PhaseRecord::zeroed(); 2]);
                self.phase_at(first, &phases[0], nesting + 1)?;
                self.phase_at(first + 1, &phases[1], nesting + 1)?;
            }
        }
        self.world.phases[index] = record;
        Ok(())
    }

    fn surface(&mut self, surface: &Surface) -> io::Result<()> {
        let (kind, inner) = match &surface.geometry {
            Geometry::Cube => (layout::surface::CUBE, Affine3A::IDENTITY),
            Geometry::Rectangle => (layout::surface::RECTANGLE, Affine3A::IDENTITY),
            Geometry::Sphere { center, radius } => (
                layout::surface::SPHERE,
                Affine3A::from_translation(Vec3::from_array(*center)) * Affine3A::from_scale(Vec3::splat(*radius)),
            ),
            Geometry::Mesh { .. } => (layout::surface::MESH, Affine3A::IDENTITY),
        };
        let to_world = surface.to_world * inner;
        let mut record = SurfaceRecord::zeroed();
        record.to_world = rows(&to_world);
        record.to_local = rows(&to_world.inverse());
        record.kind = kind;
        let index = |medium: Option<usize>| medium.map_or(NONE, |m| m as u32);
        (record.interior, record.exterior) = (index(surface.interior), index(surface.exterior));
        record.side = if surface.flip_normals { -1.0 } else { 1.0 };
        (record.light, record.texture, record.first_corner) = (NONE, NONE, NONE);
        let first_triangle = self.triangles.len();
        if let Geometry::Mesh {
            path,
            format,
            face_normals,
            flip_tex_coords,
        } = &surface.geometry
        {
            let read = match format {
                MeshFormat::Obj => read_obj,
                MeshFormat::Ply => read_ply,
            };
            let mesh = read(path, *face_normals, *flip_tex_coords)?;
            let holds_medium = surface.interior.is_some() || surface.exterior.is_some();
            if holds_medium
                && matches!(surface.bsdf, Bsdf::Null)
                && let Err(why) = mesh.is_closed()
            {
                return Err(IoError::new(path, format!("the mesh bounds a medium but {why}")));
            }
            record.first_corner = self.world.corners.len() as u32;
            self.mesh(&mesh, &to_world, *face_normals);
        }
        let container = Container::of(surface, &to_world, &self.triangles[first_triangle..])?;
        self.containers.extend(container);
        if let Bsdf::Diffuse { reflectance } = &surface.bsdf {
            record.bsdf = layout::bsdf::DIFFUSE;
            record.texture = self.texture(reflectance)?;
        }
        if let Some(radiance) = &surface.radiance {
            record.light = self.world.lights.len() as u32;
            let slot = add(self.params, radiance)? as u32;
            let light = self.area_light(surface, kind, &to_world, slot)?;
            self.world.lights.push(light);
        }
        self.world.surfaces.push(record);
        Ok(())
    }

    /// Adds a mesh's triangles, moved into the world.
    fn mesh(&mut self, mesh: &Mesh, to_world: &Affine3A, face_normals: bool) {
        let shape = self.world.surfaces.len() as u32;
        let place = |p: [f32; 3]| to_world.transform_point3(Vec3::from_array(p));
        let positions: Vec<Vec3> = mesh.positions.iter().map(|p| place(*p)).collect();
        let turned = to_world.matrix3.inverse().transpose();
        let normals: Vec<Vec3> = match (face_normals, mesh.normals.is_empty()) {
            (true, _) => vec![Vec3::ZERO; positions.len()],
            (false, true) => smooth_normals(&positions, &mesh.triangles),
            (false, false) => {
                let turn = |n: &[f32; 3]| (turned * Vec3A::from_array(*n)).normalize_or_zero().into();
                mesh.normals.iter().map(turn).collect()
            }
        };
        // A mirroring map would turn faces inside out.
        let mirrored = to_world.matrix3.determinant() < 0.0;
        for (index, corners) in mesh.triangles.iter().enumerate() {
            let [a, b, c] = if mirrored {
                [corners[0], corners[2], corners[1]]
            } else {
                *corners
            };
            let at = |v: u32| positions[v as usize].to_array();
            self.triangles.push(TriangleRecord {
                a: at(a),
                shape,
                b: at(b),
                triangle: index as u32,
                c: at(c),
                padding: 0,
            });
            let mut record = CornerRecord::zeroed();
            for (k, v) in [a, b, c].into_iter().enumerate() {
                record.normals[k] = normals[v as usize].extend(0.0).to_array();
                if let Some(uv) = mesh.uvs.get(v as usize) {
                    record.uvs[2 * k..2 * k + 2].copy_from_slice(uv);
                }
            }
            self.world.corners.push(record);
        }
    }

    fn area_light(&self, surface: &Surface, kind: u32, to_world: &Affine3A, slot: u32) -> io::Result<LightRecord> {
        let mut light = LightRecord::zeroed();
        light.kind = layout::light::AREA;
        light.slot = slot;
        light.surface = self.world.surfaces.len() as u32;
        let [x, y, z] = [
            to_world.matrix3.x_axis,
            to_world.matrix3.y_axis,
            to_world.matrix3.z_axis,
        ];
        if kind == layout::surface::RECTANGLE {
            light.position[3] = 4.0 * x.cross(y).length();
            return Ok(light);
        }
        let radius = x.length();
        let similar = [y, z].iter().all(|a| (a.length() - radius).abs() <= 1e-4 * radius)
            && [x.dot(y), y.dot(z), x.dot(z)]
                .iter()
                .all(|d| d.abs() <= 1e-4 * radius * radius);
        if kind != layout::surface::SPHERE || !similar {
            return self.refuse(format!(
                "the area light `{}` is neither a rectangle nor a sphere scaled alike along all axes: only these can \
                 shine so far",
                surface.name
            ));
        }
        light.position = to_world.translation.extend(0.0).to_array();
        light.direction[3] = radius;
        Ok(light)
    }

    fn texture(&mut self, texture: &Texture) -> io::Result<u32> {
        let mut record = TextureRecord::zeroed();
        let color = |c: [f32; 3]| [c[0], c[1], c[2], 0.0];
        match texture {
            Texture::Constant(c) => record.color0 = color(*c),
            Texture::Checkerboard { colors, to_uv } => {
                record.kind = 1;
                (record.color0, record.color1) = (color(colors[0]), color(colors[1]));
                record.to_uv = uv_rows(to_uv);
            }
            Texture::Bitmap(map) => self.bitmap(map, &mut record)?,
        }
        self.world.textures.push(record);
        Ok(self.world.textures.len() as u32 - 1)
    }

    fn bitmap(&mut self, map: &TextureMap, record: &mut TextureRecord) -> io::Result<()> {
        let (image, encoding) = io::image::read(&map.path)?;
        check_reflectance(&map.path, &image)?;
        let decode = |x: f32| match (encoding, map.raw) {
            (Encoding::Srgb, false) => srgb::decode(x),
            _ => x,
        };
        record.kind = layout::texture::BITMAP;
        record.first = self.world.texels.len() as u32;
        record.filter = if map.nearest {
            layout::lookup::NEAREST
        } else {
            layout::lookup::TRILINEAR
        };
        record.wrap = wrap_code(map.wrap);
        record.size = [image.width as u32, image.height as u32];
        record.to_uv = uv_rows(&map.to_uv);
        let colors = image.data.chunks_exact(image.channels).map(|texel| {
            let channel = |c: usize| decode(texel[if image.channels < 3 { 0 } else { c }]);
            [channel(0), channel(1), channel(2), 0.0]
        });
        self.world.texels.extend(colors);
        Ok(())
    }

    fn light(&mut self, light: &Light) -> io::Result<()> {
        let mut record = LightRecord::zeroed();
        record.surface = NONE;
        record.slot = add(self.params, &light.intensity)? as u32;
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
            }
        }
        self.world.lights.push(record);
        Ok(())
    }
}

fn wrap_code(wrap: Wrap) -> u32 {
    match wrap {
        Wrap::Clamp => layout::wrap::CLAMP,
        Wrap::Repeat => layout::wrap::REPEAT,
        Wrap::Mirror => layout::wrap::MIRROR,
    }
}

fn uv_rows(to_uv: &Affine2) -> [[f32; 4]; 2] {
    let (m, t) = (to_uv.matrix2, to_uv.translation);
    [[m.x_axis.x, m.y_axis.x, t.x, 0.0], [m.x_axis.y, m.y_axis.y, t.y, 0.0]]
}

/// Normals of vertices: those of the faces around, weighed by their angles there (Thuermer1998).
fn smooth_normals(positions: &[Vec3], triangles: &[[u32; 3]]) -> Vec<Vec3> {
    let mut normals = vec![Vec3::ZERO; positions.len()];
    for triangle in triangles {
        let p = triangle.map(|v| positions[v as usize]);
        let face = (p[1] - p[0]).cross(p[2] - p[0]).normalize_or_zero();
        for k in 0..3 {
            let (to, fro) = (p[(k + 1) % 3] - p[k], p[(k + 2) % 3] - p[k]);
            if to.length_squared() > 0.0 && fro.length_squared() > 0.0 {
                normals[triangle[k] as usize] += face * to.angle_between(fro);
            }
        }
    }
    normals.into_iter().map(Vec3::normalize_or_zero).collect()
}

/// The least majorant of a medium whose extinction may grow: one over the diagonal of its box, if it has one.
fn least_majorant(medium: &MediumRecord) -> f32 {
    let diagonal = (Vec3::from_slice(&medium.high) - Vec3::from_slice(&medium.low)).length();
    if diagonal.is_finite() { 1.0 / diagonal } else { 0.0 }
}

/// The world-space box in which a volume's values count; infinite for a constant.
fn bounds(lookup: &Lookup) -> (Vec3A, Vec3A) {
    if lookup.constant {
        return (Vec3A::NEG_INFINITY, Vec3A::INFINITY);
    }
    let corners = (0..8u32).map(|i| {
        let corner = Vec3A::new((i & 1) as f32, (i >> 1 & 1) as f32, (i >> 2) as f32);
        lookup.to_world.transform_point3a(corner)
    });
    corners.fold((Vec3A::INFINITY, Vec3A::NEG_INFINITY), |(low, high), c| {
        (low.min(c), high.max(c))
    })
}

impl World {
    /// Treats every extinction as one that a run may change: its majorants get a margin.
    pub fn vary_all(&mut self) {
        for (rule, medium) in self.rules.iter_mut().zip(&self.media) {
            rule.margin = MARGIN;
            rule.floor = least_majorant(medium);
        }
    }

    /// Number of majorants of all media.
    pub fn majorants(&self) -> usize {
        self.media
            .iter()
            .map(|m| m.majorants[..3].iter().map(|n| *n as usize).product::<usize>())
            .sum()
    }

    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub(super) fn fit(&mut self, shapes: &[Shape]) {
        for volume in &mut self.volumes {
            let Shape {
                size: [x, y, z],
                channels,
            } = shapes[volume.slot as usize];
            volume.size = [x as u32, y as u32, z as u32, channels as u32];
        }
        let mut first = 0;
        for (medium, rule) in self.media.iter_mut().zip(&mut self.rules) {
            let sigma = &self.volumes[medium.sigma_t as usize];
            let albedo = &self.volumes[medium.albedo as usize];
            medium.aligned = u32::from(
                sigma.filter == albedo.filter
                    && sigma.wrap == albedo.wrap
                    && sigma.size[..3] == albedo.size[..3]
                    && sigma.world_to_unit == albedo.world_to_unit,
            );
            (rule.low, rule.high) = covered(medium, sigma);
            let extent = [0, 1, 2].map(|a| rule.high[a] - rule.low[a]);
            let to_grid = Affine3A::from_scale(Vec3::from_array(extent.map(|e| 1.0 / e)))
                * Affine3A::from_translation(-Vec3::from_array(rule.low))
                * affine(&sigma.world_to_unit);
            medium.world_to_grid = rows(&to_grid);
            let local = sigma.filter != layout::lookup::CONSTANT && sigma.wrap == layout::wrap::CLAMP;
            for a in 0..3 {
                let texels = (sigma.size[a] as f32 * extent[a]).ceil() as usize;
                medium.majorants[a] = if local { texels.div_ceil(CELL).max(1) as u32 } else { 1 };
            }
            medium.majorants[3] = first;
            first += medium.majorants[..3].iter().product::<u32>();
        }
    }

    /// The majorants of all media, given the parameters' values.
    pub fn rebuild_majorants(&self, values: &[&[f32]]) -> Vec<f32> {
        let data = |medium: &MediumRecord| values[self.volumes[medium.sigma_t as usize].slot as usize];
        let media = self.media.iter().enumerate();
        media
            .flat_map(|(i, medium)| self.majorants_of(i, data(medium)))
            .collect()
    }

    /// How a medium's majorants follow from its extinction.
    pub fn majorant_rule(&self, medium: usize) -> MajorantRule {
        self.rules[medium]
    }

    /// For each axis and each cell of a medium's majorant grid the first and the last texel that lookups can reach.
    pub fn reach(&self, medium: usize) -> [Vec<(usize, usize)>; 3] {
        let (rule, medium) = (&self.rules[medium], &self.media[medium]);
        let size = self.volumes[medium.sigma_t as usize].size;
        [0, 1, 2].map(|a| {
            let (cells, texels) = (medium.majorants[a] as usize, size[a] as usize);
            let at = |i: usize| rule.low[a] + (rule.high[a] - rule.low[a]) * i as f32 / cells as f32;
            (0..cells)
                .map(|i| match cells {
                    1 => (0, texels - 1),
                    _ => reachable_between(at(i), at(i + 1), texels),
                })
                .collect()
        })
    }

    /// The majorants of a medium whose `sigma_t` is `data`: in each cell the largest extinction that a lookup in it can
    /// give, with a margin.
    pub fn majorants_of(&self, medium: usize, data: &[f32]) -> Vec<f32> {
        let [along_x, along_y, along_z] = self.reach(medium);
        let (rule, medium) = (&self.rules[medium], &self.media[medium]);
        let size = self.volumes[medium.sigma_t as usize].size.map(|n| n as usize);
        let mut majorants = Vec::with_capacity(along_x.len() * along_y.len() * along_z.len());
        for &(z0, z1) in &along_z {
            for &(y0, y1) in &along_y {
                for &(x0, x1) in &along_x {
                    let mut most = 0f32;
                    for z in z0..=z1 {
                        for y in y0..=y1 {
                            let row = (z * size[1] + y) * size[0];
                            let texels = &data[(row + x0) * size[3]..(row + x1 + 1) * size[3]];
                            most = texels.iter().fold(most, |m, v| m.max(*v));
                        }
                    }
                    let majorant = (most * medium.scale * rule.margin).max(rule.floor);
                    majorants.push(if majorant < LEAST { 0.0 } else { majorant });
                }
            }
        }
        majorants
    }
}

/// The part of the unit cube's space that a medium's box covers: the unit cube itself unless it is turned.
fn covered(medium: &MediumRecord, sigma: &VolumeRecord) -> ([f32; 3], [f32; 3]) {
    if sigma.filter == layout::lookup::CONSTANT {
        return ([0.0; 3], [1.0; 3]);
    }
    let to_unit = affine(&sigma.world_to_unit);
    let pick = |i: u32, a: usize| if i >> a & 1 == 0 { medium.low[a] } else { medium.high[a] };
    let corners = (0..8u32).map(|i| to_unit.transform_point3a(Vec3A::new(pick(i, 0), pick(i, 1), pick(i, 2))));
    let (low, high) = corners.fold((Vec3A::INFINITY, Vec3A::NEG_INFINITY), |(low, high), c| {
        (low.min(c), high.max(c))
    });
    // An upright box covers the cube exactly, but for rounding.
    let snap = |x: f32, to: f32| if (x - to).abs() < 1e-4 { to } else { x };
    (
        low.to_array().map(|x| snap(x, 0.0)),
        high.to_array().map(|x| snap(x, 1.0)),
    )
}

fn affine(rows: &layout::Rows) -> Affine3A {
    let column = |a: usize| Vec3A::new(rows[0][a], rows[1][a], rows[2][a]);
    Affine3A {
        matrix3: Mat3A::from_cols(column(0), column(1), column(2)),
        translation: column(3),
    }
}

/// Cumulated probabilities of an environment map of `size` texels: of its rows, then of each row's columns, in
/// proportion to the largest channel of the texels around a cell, and a tenth uniformly, so that what a run makes bright
/// can be found.
pub fn environment_table(size: [u32; 2], data: &[f32]) -> Vec<f32> {
    let [columns, rows] = [size[0] as usize, size[1].max(2) as usize - 1];
    let texel = |x: usize, y: usize| {
        let start = (y.min(size[1] as usize - 1) * columns + x % columns) * 3;
        data[start].max(data[start + 1]).max(data[start + 2]).max(0.0)
    };
    let mut weights = vec![0f64; columns * rows];
    for y in 0..rows {
        let theta = (y as f64 + 0.5) / rows as f64 * std::f64::consts::PI;
        for x in 0..columns {
            let most = texel(x, y)
                .max(texel(x + 1, y))
                .max(texel(x, y + 1))
                .max(texel(x + 1, y + 1));
            weights[y * columns + x] = f64::from(most) * theta.sin();
        }
    }
    let total: f64 = weights.iter().sum();
    for y in 0..rows {
        let sine = ((y as f64 + 0.5) / rows as f64 * std::f64::consts::PI).sin();
        for x in 0..columns {
            let weight = &mut weights[y * columns + x];
            let share = if total > 0.0 { 0.9 * *weight / total } else { 0.0 };
            *weight = share + 0.1 * sine / columns as f64;
        }
    }
    let mut table = cumulate(weights.chunks(columns).map(|row| row.iter().sum()));
    for row in weights.chunks(columns) {
        table.extend(cumulate(row.iter().copied()));
    }
    table
}

fn cumulate(weights: impl Iterator<Item = f64> + Clone) -> Vec<f32> {
    let total: f64 = weights.clone().sum();
    let mut sum = 0.0;
    let mut table = vec![0.0];
    table.extend(weights.map(|weight| {
        sum += weight / total;
        sum as f32
    }));
    *table.last_mut().expect("it begins with a zero") = 1.0;
    table
}
