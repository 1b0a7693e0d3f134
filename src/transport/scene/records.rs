//! A scene of surfaces, media and lights as a walk reads it: records, and the parameters that they refer to.

use crate::resident::bvh::{Bvh, Corners, box_around_surfaces};
use crate::resident::interior::Interior;
use crate::resident::layout::{
    BsdfRecord, CornerRecord, DistanceGridRecord, EmissiveTriangleRecord, FactorRecord, LeafRecord, LightRecord,
    MediumRecord, NONE, PathSettings, PhaseRecord, SceneRecord, SurfaceRecord, TextureRecord, VolumeRecord, bsdf,
};
use crate::resident::motion::Motion;
use crate::resident::paths::PathScene;
use crate::resident::vertices::Vertices;
use crate::transport::lookup::grid::Stencil;
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::scene::coats::Coat;
use crate::transport::scene::tables::Tables;

/// The records of a scene.
#[derive(Debug, Clone, Copy)]
pub struct SceneView<'a> {
    pub common: &'a SceneRecord,
    pub settings: &'a PathSettings,
    pub surfaces: &'a [SurfaceRecord],
    /// The numbers of the surfaces that are not meshes.
    pub singles: &'a [u32],
    pub media: &'a [MediumRecord],
    pub volumes: &'a [VolumeRecord],
    pub phases: &'a [PhaseRecord],
    pub lights: &'a [LightRecord],
    /// BSDFs, their leaves, the factors of these, and the textures that both read.
    pub bsdfs: &'a [BsdfRecord],
    pub leaves: &'a [LeafRecord],
    pub factors: &'a [FactorRecord],
    pub textures: &'a [TextureRecord],
    /// BVH over all surfaces (empty if there are few), and the vertex data of meshes' triangles.
    pub bvh: &'a Bvh,
    pub corners: &'a [CornerRecord],
    /// Triangles of area lights on cubes and meshes.
    pub emissive_triangles: &'a [EmissiveTriangleRecord],
    /// Grids of shapes given by distances, and the values of all (`distance_grid.rs`).
    pub distance_grids: &'a [DistanceGridRecord],
    pub distances: &'a [f32],
    pub rooms: &'a [u8],
    /// Coats of plastics (`coats.rs`).
    pub coats: &'a [Coat],
    /// Majorants: upper bounds of every medium's scaled extinction, cell by cell.
    pub majorants: &'a [f32],
    /// The sampling tables of the environment map and of textured area lights (`light_table.rs`).
    pub tables: &'a [f32],
    /// Slot of the background's radiance; [`NONE`] without a background.
    pub background: u32,
    /// For each surface, then for each light, then for each sensor, how it is moved; empty where all stand still.
    pub motions: &'a [Option<Motion>],
    /// Meshes whose vertices follow parameters.
    pub meshes: &'a [Vertices],
    /// For each medium the shape that it fills alone, if it does; empty where shapes move.
    pub interiors: &'a [Option<Interior>],
    /// Whether the points of chains of smooth glass and mirrors move with the parameters.
    pub attached: bool,
    /// The λ that regularises the Jacobians of rays (docs/method.md, (69a)); None where chains are kept.
    pub inverted: Option<f32>,
    /// Whether no surface lets light pass straight through.
    pub is_opaque: bool,
    /// The box around all surfaces where there is no BVH, else the BVH's bounds.
    pub bounds: Corners,
}

impl<'a> SceneView<'a> {
    /// Combines the records with the tables that are computed from parameter values.
    pub fn new(scene: &'a SceneRecord, records: &'a PathScene, tables: &'a Tables) -> Self {
        Self {
            common: scene,
            settings: &records.settings,
            surfaces: &records.surfaces,
            singles: &records.singles,
            media: &records.media,
            volumes: &records.volumes,
            phases: &records.phases,
            lights: &records.lights,
            bsdfs: &records.bsdfs.bsdfs,
            leaves: &records.bsdfs.leaves,
            factors: &records.bsdfs.factors,
            textures: &records.bsdfs.textures,
            bvh: &records.bvh,
            corners: &records.corners,
            emissive_triangles: &records.emissive_triangles,
            distance_grids: &records.distances.grids,
            distances: &records.distances.values,
            rooms: &records.distances.rooms,
            coats: &tables.coats,
            majorants: &tables.majorants,
            tables: &tables.lights,
            background: records.background,
            motions: &records.rest.motions,
            meshes: &records.rest.meshes,
            interiors: &records.interiors,
            attached: records.attached,
            inverted: records.inverted,
            is_opaque: records.surfaces.iter().all(|surface| {
                let record = records.bsdfs.bsdfs.get(surface.bsdf as usize);
                record.is_some_and(|record| record.flags & bsdf::NULL == 0)
            }),
            bounds: match records.bvh.nodes.is_empty() {
                true => box_around_surfaces(&records.surfaces),
                false => records.bvh.bounds,
            },
        }
    }

    /// Whether the scene has a background.
    #[inline(always)]
    pub fn has_background(&self) -> bool {
        self.background != NONE
    }

    /// Whether walks of this mode carry derivatives along chains: replays and, with inverted Jacobians, the gathering
    /// walks before them, which find those by the first ray.
    #[inline(always)]
    pub fn is_attached<const MODE: u8>(&self) -> bool {
        self.attached && (MODE == REPLAY || MODE == GATHER && self.inverted.is_some())
    }

    /// Whether anything moves that a walk's trail differentiates; with attached chains, the chain does that.
    #[inline(always)]
    pub fn moves(&self) -> bool {
        !self.motions.is_empty() && !self.attached
    }
}

/// The parameters of a scene.
///
/// Decisions use the sampling side, which is f32 for every number type, so that all types follow the same paths;
/// derivatives are taken of the integrand's side.
pub trait Fields<N: Number> {
    /// Whether the two sides differ, by a perturbation or in precision. Factors integrand / sampling, which are one
    /// otherwise, must then be multiplied.
    const TWO_SIDED: bool;
    /// Whether numbers carry derivatives themselves (dual or recorded), so that factors of zero must be multiplied
    /// too.
    const TRACKED: bool;
    /// Values of a parameter on the integrand's side.
    fn integrand(&self, slot: u32) -> &[N];
    /// Values of a parameter on the sampling side.
    fn sampling(&self, slot: u32) -> &[f32];
}

/// Receives the derivatives of an adjoint.
pub trait Sink<N: Number> {
    /// Whether derivatives by this parameter are needed.
    #[inline(always)]
    fn wants(&self, _slot: u32) -> bool {
        true
    }
    /// Announces derivatives by a volume lookup, so that the sink can prefetch the sums that they are added to.
    #[inline(always)]
    fn expect(&self, _volume: &VolumeRecord, _at: &Stencil) {}
    /// Announces derivatives by values of a parameter that is not a grid, from the entry `first` on, for prefetching.
    #[inline(always)]
    fn expect_entries(&self, _slot: u32, _first: u32) {}
    /// Derivatives by a volume lookup: one per channel, of which the first `channels` count.
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [N; 3], channels: u32);
    /// Derivatives by `channels` values of a parameter that is not a grid, from the entry `first` on.
    fn entries(&mut self, slot: u32, first: u32, d: [N; 3], channels: u32);
    /// Derivatives by the unit normal of a vertex, which follows from the faces around it; `mesh` is the index of the mesh in
    /// [`SceneView::meshes`]. Returns false if the sink takes only derivatives by parameters.
    #[inline(always)]
    fn vertex_normal(&mut self, _mesh: u32, _vertex: u32, _d: [N; 3]) -> bool {
        false
    }
    /// Derivatives by the first `channels` values of a parameter that is not a grid.
    #[inline(always)]
    fn value(&mut self, slot: u32, d: [N; 3], channels: u32) {
        self.entries(slot, 0, d, channels);
    }
    /// Derivatives by the background's radiance along the unit direction `d` (world); for an environment map, before its scale.
    fn background(&mut self, d: [f32; 3], d_radiance: [N; 3]);
}

impl<N: Number, S: Sink<N>> Sink<N> for &mut S {
    #[inline(always)]
    fn wants(&self, slot: u32) -> bool {
        S::wants(self, slot)
    }
    #[inline(always)]
    fn expect(&self, volume: &VolumeRecord, at: &Stencil) {
        S::expect(self, volume, at);
    }
    #[inline(always)]
    fn expect_entries(&self, slot: u32, first: u32) {
        S::expect_entries(self, slot, first);
    }
    #[inline(always)]
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [N; 3], channels: u32) {
        S::volume(self, volume, at, d, channels);
    }
    #[inline(always)]
    fn entries(&mut self, slot: u32, first: u32, d: [N; 3], channels: u32) {
        S::entries(self, slot, first, d, channels);
    }
    #[inline(always)]
    fn vertex_normal(&mut self, mesh: u32, vertex: u32, d: [N; 3]) -> bool {
        S::vertex_normal(self, mesh, vertex, d)
    }
    #[inline(always)]
    fn background(&mut self, d: [f32; 3], d_radiance: [N; 3]) {
        S::background(self, d, d_radiance);
    }
}

/// A sink that discards everything, for walks without derivatives.
#[derive(Debug, Default)]
pub struct NoSink;

impl<N: Number> Sink<N> for NoSink {
    #[inline(always)]
    fn wants(&self, _: u32) -> bool {
        false
    }
    #[inline(always)]
    fn volume(&mut self, _: &VolumeRecord, _: &Stencil, _: [N; 3], _: u32) {}
    #[inline(always)]
    fn entries(&mut self, _: u32, _: u32, _: [N; 3], _: u32) {}
    #[inline(always)]
    fn background(&mut self, _: [f32; 3], _: [N; 3]) {}
}
