//! What a scene contains: shaders of paths are compiled for that alone, since anything else would cost registers and compile
//! time.

use crate::resident::bsdfs::Bsdfs;
use crate::resident::bvh::FEW_SHAPES;
use crate::resident::layout::{BsdfRecord, LeafRecord, NONE, background, bsdf, leaf, surface, surfaces_only, texture};
use crate::resident::paths::PathScene;
use crate::resident::{Resident, Transport};

/// Most levels of a hierarchy that is not deep, and most textures of a leaf that is not principled: the twins of `MAX_LEVELS`
/// and `LEAF_TEXTURES` in `shaders/common/layout.wgsl`. Shaders have arrays of these lengths, in memory that a driver reserves
/// for every invocation that may be in flight.
const FEW_LEVELS: usize = 12;
const FEW_TEXTURES: u32 = 5;

/// The kinds of BSDFs and of their textures that shaders of paths are compiled for, whether they move the points of chains, and
/// whether the hierarchy is deep: what a scene does not have is left out, since it would cost registers and compile time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaves(u32);

impl Leaves {
    const CONDUCTORS: u32 = 1;
    const DIELECTRICS: u32 = 2;
    const PLASTICS: u32 = 4;
    const PRINCIPLED: u32 = 8;
    const PRINCIPLED_THIN: u32 = 16;
    /// Shading frames that are aligned with the texture coordinates.
    const TANGENTS: u32 = 32;
    /// Normal maps and bump maps.
    const RELIEFS: u32 = 64;
    /// Lobes that send light in one direction only.
    const DISCRETE: u32 = 128;
    /// Lobes that let light pass straight through.
    const STRAIGHT: u32 = 256;
    /// Textures that are values of meshes.
    const ATTRIBUTES: u32 = 512;
    /// Textures that are volumes.
    const SOLIDS: u32 = 1024;
    /// Chains of smooth glass and mirrors, of which a replay moves the points.
    const CHAINS: u32 = 2048;
    /// Shapes, lights and cameras that a run moves.
    const MOTIONS: u32 = 4096;
    /// The trail of a path's last points, through which a replay differentiates by these motions.
    const TRAILS: u32 = 8192;

    /// A hierarchy of more levels than [`FEW_LEVELS`].
    const DEEP: u32 = 16384;
    /// Checkerboards of textures.
    const SQUARES: u32 = 32768;
    /// How the transmittance of media changes by these motions.
    const DRIFTS: u32 = 65536;
    /// Leaves of mixtures, with weights.
    const MIXTURES: u32 = 131_072;

    /// Their names as symbols of the preprocessor, in the order of their bits.
    const NAMES: [&'static str; 18] = [
        "CONDUCTORS",
        "DIELECTRICS",
        "PLASTICS",
        "PRINCIPLED",
        "PRINCIPLED_THIN",
        "TANGENTS",
        "RELIEFS",
        "DISCRETE",
        "STRAIGHT",
        "ATTRIBUTES",
        "SOLIDS",
        "CHAINS",
        "MOTIONS",
        "TRAILS",
        "DEEP",
        "SQUARES",
        "DRIFTS",
        "MIXTURES",
    ];
    /// All of them.
    pub const ALL: Self = Self((1 << Self::NAMES.len()) - 1);

    /// Each of them alone, with those that it needs.
    pub fn each() -> impl Iterator<Item = Self> {
        (0..Self::NAMES.len()).map(|i| match 1 << i {
            Self::RELIEFS => Self(Self::RELIEFS | Self::TANGENTS),
            Self::CHAINS => Self(0).with_chains(),
            Self::MOTIONS => Self(0).with_motions(),
            Self::TRAILS => Self(0).with_trails(),
            Self::DRIFTS => Self(0).with_drifts(),
            Self::STRAIGHT => Self(Self::STRAIGHT | Self::DISCRETE),
            one => Self(one),
        })
    }

    /// The kinds that a scene has.
    ///
    /// # Panics
    /// A leaf has more textures than shaders hold, or leaves of a side have neither weights nor reliefs.
    pub fn of(bsdfs: &Bsdfs) -> Self {
        let is_principled = |kind| matches!(kind, leaf::PRINCIPLED | leaf::PRINCIPLED_THIN);
        let fits = |record: &LeafRecord| record.textures <= FEW_TEXTURES || is_principled(record.kind);
        assert!(
            bsdfs.leaves.iter().all(fits),
            "shaders hold {FEW_TEXTURES} textures of a leaf"
        );
        let is_single = |record: &BsdfRecord| record.front[1] <= 1 && record.back[1] <= 1;
        let has_several = |record: &LeafRecord| record.factors > 0 || record.relief != NONE;
        assert!(
            bsdfs.bsdfs.iter().all(is_single) || bsdfs.leaves.iter().any(has_several),
            "shaders choose among leaves with weights or reliefs alone"
        );
        let kinds = bsdfs.leaves.iter().map(|record| match record.kind {
            leaf::NULL => Self::DISCRETE | Self::STRAIGHT,
            leaf::CONDUCTOR => Self::CONDUCTORS | Self::DISCRETE,
            leaf::ROUGH_CONDUCTOR => Self::CONDUCTORS,
            leaf::DIELECTRIC => Self::DIELECTRICS | Self::DISCRETE,
            leaf::THIN_DIELECTRIC => Self::DIELECTRICS | Self::DISCRETE | Self::STRAIGHT,
            leaf::ROUGH_DIELECTRIC => Self::DIELECTRICS,
            leaf::PLASTIC => Self::PLASTICS | Self::DISCRETE,
            leaf::ROUGH_PLASTIC => Self::PLASTICS,
            leaf::PRINCIPLED => Self::PRINCIPLED,
            leaf::PRINCIPLED_THIN => Self::PRINCIPLED_THIN,
            _ => 0,
        });
        let tangents = bsdfs.bsdfs.iter().map(|record| match record.flags & bsdf::ANISOTROPIC {
            0 => 0,
            _ => Self::TANGENTS,
        });
        let reliefs = bsdfs.leaves.iter().map(|record| match record.relief {
            NONE => 0,
            _ => Self::RELIEFS,
        });
        let textures = bsdfs.textures.iter().map(|record| match record.kind {
            texture::VERTICES | texture::FACES => Self::ATTRIBUTES,
            texture::VOLUME => Self::SOLIDS,
            texture::SQUARES => Self::SQUARES,
            _ => 0,
        });
        let mixtures = bsdfs.leaves.iter().map(|record| match record.factors {
            0 => 0,
            _ => Self::MIXTURES,
        });
        let all = kinds.chain(tangents).chain(reliefs).chain(textures).chain(mixtures);
        Self(all.fold(0, |all, one| all | one))
    }

    /// With what moving the points of chains needs.
    fn with_chains(self) -> Self {
        Self(self.0 | Self::CHAINS)
    }

    /// With what moving shapes along chains needs.
    fn with_motions(self) -> Self {
        Self(self.0 | Self::MOTIONS).with_chains()
    }

    /// With what moving shapes beside rough BSDFs needs.
    fn with_trails(self) -> Self {
        Self(self.0 | Self::MOTIONS | Self::TRAILS)
    }

    /// With what moving shapes and lights beside media needs.
    fn with_drifts(self) -> Self {
        Self(self.0 | Self::DRIFTS).with_trails()
    }

    /// With a hierarchy of so many levels.
    fn with_levels(self, levels: usize) -> Self {
        Self(self.0 | if levels > FEW_LEVELS { Self::DEEP } else { 0 })
    }

    /// Whether the hierarchy has more levels than [`FEW_LEVELS`].
    pub(super) fn is_deep(self) -> bool {
        self.0 & Self::DEEP != 0
    }

    /// The symbols that are defined for the preprocessor.
    pub(super) fn defines(self) -> impl Iterator<Item = &'static str> {
        let names = Self::NAMES.into_iter().enumerate();
        let named = names.filter(move |(i, _)| self.0 >> i & 1 == 1).map(|(_, name)| name);
        // A scene whose surfaces are diffuse or let light pass needs no models.
        let others = Self::DISCRETE
            | Self::STRAIGHT
            | Self::ATTRIBUTES
            | Self::SOLIDS
            | Self::TANGENTS
            | Self::MOTIONS
            | Self::TRAILS
            | Self::DRIFTS
            | Self::DEEP
            | Self::SQUARES
            | Self::MIXTURES;
        let models = self.0 & !others != 0;
        let has = |any: u32| self.0 & any != 0;
        named
            .chain(models.then_some("MODELS"))
            .chain(has(Self::PRINCIPLED | Self::PRINCIPLED_THIN).then_some("MANY_TEXTURES"))
            .chain(has(Self::CHAINS).then_some("ENVIRONMENT_SLOPES"))
            // SEVERAL: a side may have several leaves, those of a mixture or, under a relief, of both sides, or one that is masked;
            // derivatives by weights of leaves and by reliefs need the leaves' values.
            .chain(has(Self::MIXTURES | Self::RELIEFS).then_some("SEVERAL"))
            // MOVES: derivatives by the point on a surface. SLOPES: those of BSDFs by directions, of textures by u and v.
            .chain(has(Self::CHAINS | Self::TRAILS).then_some("MOVES"))
            .chain(has(Self::RELIEFS | Self::CHAINS | Self::TRAILS).then_some("SLOPES"))
    }
}

/// What the shaders of paths are compiled for: text that is left out, and constants of pipelines, the twins of
/// `shaders/bind/contents.wgsl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Contents {
    pub leaves: Leaves,
    bvh: bool,
    shapes_in_tree: bool,
    lights_in_tree: bool,
    media: bool,
    scattering_surfaces: bool,
    surfaces_only: bool,
    environment_map: bool,
    bitmaps: bool,
    /// A bit for each kind of shape and of light.
    shapes: u32,
    lights: u32,
}

impl Contents {
    /// The contents of a scene; the default where its transport is not [`Transport::Paths`].
    pub(super) fn of(resident: &Resident) -> Self {
        let Transport::Paths(paths) = &resident.transport else {
            return Self::default();
        };
        let PathScene { bsdfs, surfaces, .. } = paths;
        let bits = |kinds: &mut dyn Iterator<Item = u32>| kinds.fold(0, |all, kind| all | 1 << kind);
        let shapes_in_tree = has_shapes_in_tree(paths);
        let leaves = Leaves::of(bsdfs).with_levels(paths.bvh.levels());
        Self {
            leaves: match (paths.attached, paths.rest.motions.is_empty()) {
                (true, true) => leaves.with_chains(),
                (true, false) => leaves.with_motions(),
                (false, true) => leaves,
                (false, false) if paths.media.is_empty() => leaves.with_trails(),
                (false, false) => leaves.with_drifts(),
            },
            bvh: has_hierarchy(paths),
            shapes_in_tree,
            lights_in_tree: shapes_in_tree || surfaces.iter().any(|s| s.kind == surface::MESH && s.light != NONE),
            media: !paths.media.is_empty(),
            scattering_surfaces: !bsdfs.bsdfs.is_empty(),
            surfaces_only: paths.settings.surfaces_only != surfaces_only::NO,
            environment_map: resident.scene.background == background::ENVMAP,
            bitmaps: bsdfs.textures.iter().any(|record| record.kind == texture::BITMAP),
            shapes: bits(&mut surfaces.iter().map(|record| record.kind)),
            lights: bits(&mut paths.lights.iter().map(|record| record.kind)),
        }
    }

    /// The values of pipelines' constants.
    pub(super) fn constants(&self) -> Vec<(&'static str, f64)> {
        let flag = |name, is_there: bool| (name, f64::from(u8::from(is_there)));
        vec![
            flag("BVH", self.bvh),
            flag("SHAPES_IN_TREE", self.shapes_in_tree),
            flag("LIGHTS_IN_TREE", self.lights_in_tree),
            flag("MEDIA", self.media),
            flag("SCATTERING_SURFACES", self.scattering_surfaces),
            flag("SURFACES_ONLY", self.surfaces_only),
            flag("ENVIRONMENT_MAP", self.environment_map),
            flag("BITMAPS", self.bitmaps),
            ("SHAPES", f64::from(self.shapes)),
            ("LIGHTS", f64::from(self.lights)),
        ]
    }
}

/// Whether rays find shapes other than meshes through the hierarchy, rather than being tested against them one by one.
pub(super) fn has_shapes_in_tree(paths: &PathScene) -> bool {
    paths.singles.len() > FEW_SHAPES
}

/// Whether rays go through a hierarchy at all: one with triangles, or with many other shapes.
pub(super) fn has_hierarchy(paths: &PathScene) -> bool {
    !paths.bvh.blocks.is_empty() || has_shapes_in_tree(paths)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bytemuck::Zeroable;

    use super::*;
    use crate::resident::layout::{NodeRecord, WIDTH, child};

    /// Constants that are private to this module have the same values in the shaders.
    #[test]
    fn shaders_hold_as_many() {
        let shader = include_str!("../../../shaders/common/layout.wgsl");
        for (name, few) in [("MAX_LEVELS", FEW_LEVELS as u32), ("LEAF_TEXTURES", FEW_TEXTURES)] {
            let declared = format!("const {name}: u32 = {few}u;");
            assert!(shader.contains(&declared), "{declared}");
        }
    }

    /// A chain of nodes, each the first child of the one before.
    #[test]
    fn the_levels_of_a_hierarchy_are_followed() {
        let of_levels = |levels: usize| {
            let text = r#"{"integrator": {"type": "path"}, "ball": {"type": "sphere"}}"#;
            let scene = crate::scene::parse(text, Path::new("ball.json")).expect("a sound scene");
            let (mut resident, _) = Resident::new(&scene).expect("it is flattened");
            let Transport::Paths(paths) = &mut resident.transport else {
                panic!("paths among surfaces")
            };
            let nodes = &mut paths.bvh.nodes;
            *nodes = vec![NodeRecord::zeroed(); levels];
            for (at, node) in nodes.iter_mut().enumerate() {
                node.children = [NONE; WIDTH];
                if at + 1 < levels {
                    node.children[0] = child::NODE | (at as u32 + 1);
                }
            }
            let defines: Vec<_> = Contents::of(&resident).leaves.defines().collect();
            defines.contains(&"DEEP")
        };
        assert_eq!(
            [0, 1, FEW_LEVELS, FEW_LEVELS + 1].map(of_levels),
            [false, false, false, true]
        );
    }
}
