//! The shaders' texts, the kernels made from them, and what each kernel binds.

use std::collections::HashMap;
use std::path::Path;

pub use super::bindings::{Access, Binding};
pub use super::contents::Leaves;
use super::preprocess::{Composed, PreprocessError, compose};

macro_rules! embed {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../shaders/", $path, ".wgsl")))),*]
    };
}

/// Every module with its text, by its path under `shaders/` without `.wgsl`.
pub const MODULES: &[(&str, &str)] = embed![
    "common/fixed",
    "common/layout",
    "common/math",
    "bind/bins",
    "bind/elements",
    "bind/film",
    "bind/film_place",
    "bind/gradients",
    "bind/light",
    "bind/light_path",
    "bind/bvh",
    "bind/hierarchy",
    "bind/contents",
    "bind/image",
    "bind/launch",
    "bind/parameters",
    "bind/update",
    "bind/scene",
    "bind/splats",
    "bind/splat_parameters",
    "bind/splat_tile",
    "bind/statistics",
    "bind/tracer",
    "bind/units",
    "bind/view_sums",
    "bind/queue",
    "bind/wave",
    "transport/paths/adjoint",
    "transport/paths/aov",
    "transport/paths/chain",
    "transport/paths/drift",
    "transport/lookup/background",
    "transport/rays/camera",
    "transport/paths/replay_cache",
    "transport/paths/reservoir",
    "transport/paths/next_event",
    "transport/rays/film",
    "transport/lookup/grid",
    "transport/scene/bvh",
    "transport/scene/beam",
    "transport/scene/bsdf",
    "transport/scene/bsdf/diffuse",
    "transport/scene/facing",
    "transport/scene/glide",
    "transport/scene/distance_grid",
    "transport/scene/interaction",
    "transport/scene/bsdf/beckmann",
    "transport/scene/bsdf/conductor",
    "transport/scene/bsdf/dielectric",
    "transport/scene/bsdf/disney",
    "transport/scene/bsdf/fresnel",
    "transport/scene/bsdf/leaf",
    "transport/scene/bsdf/local",
    "transport/scene/bsdf/microfacet",
    "transport/scene/bsdf/plastic",
    "transport/scene/bsdf/principled",
    "transport/scene/bsdf/principledthin",
    "transport/scene/bsdf/relief",
    "transport/scene/area_light",
    "transport/scene/light",
    "transport/scene/majorant",
    "transport/scene/motion",
    "transport/scene/vertices",
    "transport/field/march",
    "transport/scene/phase",
    "transport/rays/pixel",
    "transport/field/radiance_field",
    "transport/field/ray_adjoint",
    "transport/rays/random",
    "transport/rays/sampler",
    "transport/rays/sensor",
    "transport/rays/view_adjoint",
    "transport/lookup/sh",
    "transport/scene/shape",
    "transport/scene/sky",
    "transport/scene/tangent",
    "transport/scene/texture",
    "transport/scene/three_point",
    "transport/paths/path_state",
    "transport/paths/surface",
    "transport/paths/tracking",
    "transport/paths/trail",
    "transport/paths/vertex",
    "transport/paths/volpath",
    "transport/paths/wave_path",
    "transport/lookup/volume",
    "transport/light/cube",
    "transport/light/emission",
    "transport/light/heights",
    "transport/light/index",
    "transport/light/landing",
    "transport/light/leapfrog",
    "transport/light/lens",
    "transport/light/optic",
    "transport/light/particle",
    "transport/light/slab",
    "transport/light/splat",
    "transport/splats/blend",
    "transport/splats/splat",
    "transport/scene/records",
    "kernels/loss",
    "kernels/occupancy",
    "kernels/optimizer",
    "kernels/regularizer",
    "kernels/resample",
    "advance_paths",
    "begin_paths",
    "end_paths",
    "end_replay",
    "meet_paths",
    "replay_paths",
    "search_paths",
    "backpropagate_field",
    "backpropagate_light",
    "backpropagate_paths",
    "develop",
    "develop_light",
    "develop_particles",
    "collect",
    "count_splats",
    "derivatives_splats",
    "list_splats",
    "loss",
    "majorants",
    "occupancy",
    "project_splats",
    "regularize",
    "render_aov",
    "render_field",
    "render_light",
    "render_particles",
    "render_paths",
    "render_splats",
    "resample",
    "scan_splats",
    "step",
];

/// The folder that replaces the embedded texts, for work on shaders without rebuilding the program.
pub const FOLDER_VARIABLE: &str = "PRBOPT_SHADER_DIR";

/// A kernel: a shader's entry point, compiled with its defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    Render,
    Loss,
    Backpropagate,
    Occupancy,
    Step,
    Regularize,
    Resample,
    RenderPaths,
    RenderAov,
    BackpropagatePaths,
    /// The kernels that take turns at a wave of paths ([`super::waves`]): in a primal pass, in the first walk of an adjoint, in
    /// its replay, or in all.
    BeginPaths,
    BeginAdjoint,
    BeginReplay,
    MeetPaths,
    SearchPaths,
    AdvancePaths,
    AdvanceAdjoint,
    ReplayPaths,
    EndPaths,
    EndReplay,
    Majorants,
    Collect,
    ProjectSplats,
    CountSplats,
    ScanSplats,
    ListSplats,
    RenderSplats,
    DerivativesSplats,
    Develop,
    RenderLight,
    DevelopLight,
    BackpropagateLight,
    RenderParticles,
    DevelopParticles,
}

/// How concurrent invocations add to the same entry of a gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// The adapter adds floats atomically.
    FloatAtomic,
    /// Compare and exchange of floats, repeated until no other invocation has changed the entry in between.
    CompareExchange,
    /// Whole numbers of 64 bits, whose sums do not depend on their order, in two words of 32.
    FixedPoint,
    /// The same by the adapter's atomic additions of 64 bits.
    FixedPoint64,
}

impl Accumulation {
    /// Whether sums are whole numbers, beside the gradients.
    pub fn is_fixed(self) -> bool {
        matches!(self, Self::FixedPoint | Self::FixedPoint64)
    }
}

/// Where kernels that follow paths read a scene's records from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RecordSource {
    /// All from a storage buffer.
    #[default]
    Storage,
    /// Those that the scene has few of from a uniform buffer.
    FewUniform,
    /// All from a uniform buffer.
    Uniform,
}

/// What kernels that follow paths read from uniform buffers, which hold [`super::records::UNIFORM_VECTORS`] each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UniformReads {
    pub records: RecordSource,
    /// The values of parameters, if they are in one buffer.
    pub uniform_values: bool,
}

/// What kernels are composed for, beside a scene's kinds of BSDFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    pub accumulation: Accumulation,
    /// Whether sums are first taken over subgroups.
    pub subgroups: bool,
    /// Number of buffers that parameters lie in.
    pub banks: usize,
    /// Whether rays through a field send derivatives to their cameras.
    pub views: bool,
    /// Whether ray queries find intersections, by the adapter's own hierarchy.
    pub ray_queries: bool,
    /// What comes from uniform buffers.
    pub reads: UniformReads,
}

impl Dialect {
    /// Sums of this kind, without subgroups, one buffer of parameters, fixed cameras, our own hierarchy, and storage
    /// buffers.
    pub fn plain(accumulation: Accumulation) -> Self {
        Self {
            accumulation,
            subgroups: false,
            banks: 1,
            views: false,
            ray_queries: false,
            reads: UniformReads::default(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let accumulations = [
            Accumulation::FloatAtomic,
            Accumulation::CompareExchange,
            Accumulation::FixedPoint,
            Accumulation::FixedPoint64,
        ];
        let others = (0..32).map(|bits| [0, 1, 2, 3, 4].map(|bit| bits >> bit & 1 == 1));
        let sources = [RecordSource::Storage, RecordSource::FewUniform, RecordSource::Uniform];
        accumulations.into_iter().flat_map(move |accumulation| {
            others
                .clone()
                .flat_map(move |[subgroups, two_banks, views, ray_queries, uniform_values]| {
                    sources.into_iter().map(move |records| Self {
                        accumulation,
                        subgroups,
                        banks: if two_banks { 2 } else { 1 },
                        views,
                        ray_queries,
                        reads: UniformReads {
                            records,
                            uniform_values,
                        },
                    })
                })
        })
    }
}

impl Kernel {
    /// Every kernel.
    pub const ALL: [Self; 34] = [
        Self::Render,
        Self::Loss,
        Self::Backpropagate,
        Self::Occupancy,
        Self::Step,
        Self::Regularize,
        Self::Resample,
        Self::RenderPaths,
        Self::RenderAov,
        Self::BackpropagatePaths,
        Self::BeginPaths,
        Self::BeginAdjoint,
        Self::BeginReplay,
        Self::MeetPaths,
        Self::SearchPaths,
        Self::AdvancePaths,
        Self::AdvanceAdjoint,
        Self::ReplayPaths,
        Self::EndPaths,
        Self::EndReplay,
        Self::Majorants,
        Self::Collect,
        Self::ProjectSplats,
        Self::CountSplats,
        Self::ScanSplats,
        Self::ListSplats,
        Self::RenderSplats,
        Self::DerivativesSplats,
        Self::Develop,
        Self::RenderLight,
        Self::DevelopLight,
        Self::BackpropagateLight,
        Self::RenderParticles,
        Self::DevelopParticles,
    ];

    /// The module that holds its entry point `main`.
    pub fn entry(self) -> &'static str {
        match self {
            Self::Render => "render_field",
            Self::Loss => "loss",
            Self::Backpropagate => "backpropagate_field",
            Self::Occupancy => "occupancy",
            Self::Step => "step",
            Self::Regularize => "regularize",
            Self::Resample => "resample",
            Self::RenderPaths => "render_paths",
            Self::RenderAov => "render_aov",
            Self::BackpropagatePaths => "backpropagate_paths",
            Self::BeginPaths | Self::BeginAdjoint | Self::BeginReplay => "begin_paths",
            Self::MeetPaths => "meet_paths",
            Self::SearchPaths => "search_paths",
            Self::AdvancePaths | Self::AdvanceAdjoint => "advance_paths",
            Self::ReplayPaths => "replay_paths",
            Self::EndPaths => "end_paths",
            Self::EndReplay => "end_replay",
            Self::Majorants => "majorants",
            Self::Collect => "collect",
            Self::ProjectSplats => "project_splats",
            Self::CountSplats => "count_splats",
            Self::ScanSplats => "scan_splats",
            Self::ListSplats => "list_splats",
            Self::RenderSplats => "render_splats",
            Self::DerivativesSplats => "derivatives_splats",
            Self::Develop => "develop",
            Self::RenderLight => "render_light",
            Self::DevelopLight => "develop_light",
            Self::BackpropagateLight => "backpropagate_light",
            Self::RenderParticles => "render_particles",
            Self::DevelopParticles => "develop_particles",
        }
    }

    /// The preprocessor's defines.
    pub fn defines(self, dialect: Dialect) -> Vec<&'static str> {
        let mut defines = match self {
            Self::Backpropagate | Self::BackpropagatePaths | Self::BackpropagateLight => vec!["REPLAY"],
            Self::BeginAdjoint => vec!["GATHERS"],
            Self::BeginReplay => vec!["GATHERS", "REPLAYS"],
            Self::MeetPaths => vec!["WRITE_QUEUE"],
            Self::AdvancePaths => vec!["WAVE", "DEFERS", "WRITE_QUEUE"],
            Self::AdvanceAdjoint => vec!["WAVE", "DEFERS", "WRITE_QUEUE", "GATHERS"],
            Self::ReplayPaths => vec!["REPLAY", "WAVE"],
            Self::Occupancy => vec!["WRITE_TABLES"],
            Self::ProjectSplats => vec!["WRITE_SPLATS"],
            Self::CountSplats | Self::ScanSplats | Self::ListSplats => vec!["WRITE_LISTS"],
            Self::RenderSplats => vec!["WRITE_LOOKED_AT"],
            Self::RenderParticles => vec!["PARTICLES"],
            _ => Vec::new(),
        };
        if self.sums() {
            defines.extend(match dialect.accumulation {
                Accumulation::FloatAtomic => &["FLOAT_ATOMIC"][..],
                Accumulation::CompareExchange => &[],
                Accumulation::FixedPoint => &["FIXED_POINT"],
                Accumulation::FixedPoint64 => &["FIXED_POINT", "WIDE_ATOMIC"],
            });
        }
        if dialect.subgroups && self == Self::DerivativesSplats {
            defines.push("SUBGROUPS");
        }
        if dialect.views && self == Self::Backpropagate {
            defines.extend(["VIEWS", "ENVIRONMENT_SLOPES"]);
        }
        if dialect.banks > 1 && self.sees_banks() {
            defines.push("TWO_BANKS");
        }
        if self.searches(dialect) {
            defines.push("RAY_QUERIES");
        }
        let reads = self.reads(dialect);
        match reads.records {
            RecordSource::Storage => {}
            RecordSource::FewUniform => defines.push("UNIFORM_FEW_RECORDS"),
            RecordSource::Uniform => defines.push("UNIFORM_RECORDS"),
        }
        if reads.uniform_values {
            defines.push("UNIFORM_VALUES");
        }
        defines
    }

    /// Whether its invocations add to the same numbers or read such sums, so that it is compiled for an [`Accumulation`].
    pub(super) fn sums(self) -> bool {
        matches!(
            self,
            Self::Backpropagate
                | Self::BackpropagatePaths
                | Self::ReplayPaths
                | Self::DerivativesSplats
                | Self::RenderLight
                | Self::DevelopLight
                | Self::BackpropagateLight
                | Self::RenderParticles
                | Self::DevelopParticles
        )
    }

    /// Whether it traces light, so that it is compiled for the optic that a scene has.
    pub(super) fn traces_light(self) -> bool {
        matches!(self, Self::RenderLight | Self::BackpropagateLight)
    }

    /// Whether it follows paths, so that it is compiled for what a scene has.
    pub fn follows_paths(self) -> bool {
        let alone = [
            Self::RenderPaths,
            Self::BackpropagatePaths,
            Self::RenderAov,
            Self::RenderParticles,
        ];
        self.takes_turns() || alone.contains(&self)
    }

    /// Whether it takes turns with others at a wave of paths.
    pub(super) fn takes_turns(self) -> bool {
        matches!(
            self,
            Self::BeginPaths
                | Self::BeginAdjoint
                | Self::BeginReplay
                | Self::MeetPaths
                | Self::SearchPaths
                | Self::AdvancePaths
                | Self::AdvanceAdjoint
                | Self::ReplayPaths
                | Self::EndPaths
                | Self::EndReplay
        )
    }
}

/// The modules' texts: embedded, or read from the folder that [`FOLDER_VARIABLE`] names.
#[derive(Debug)]
pub struct Library(HashMap<String, String>);

impl Library {
    /// The texts that the program was built with.
    pub fn embedded() -> Self {
        Self(
            MODULES
                .iter()
                .map(|(p, t)| ((*p).to_owned(), (*t).to_owned()))
                .collect(),
        )
    }

    /// The texts under a folder, in place of the embedded ones.
    ///
    /// # Errors
    /// A file that cannot be read, as a sentence.
    pub fn from_folder(folder: &Path) -> Result<Self, String> {
        MODULES
            .iter()
            .map(|(path, _)| {
                let file = folder.join(format!("{path}.wgsl"));
                std::fs::read_to_string(&file)
                    .map(|text| ((*path).to_owned(), text))
                    .map_err(|e| format!("{}: the shader cannot be read ({e})", file.display()))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Composes a kernel's text.
    ///
    /// # Errors
    /// A mistake in the directives.
    pub fn compose(&self, kernel: Kernel, dialect: Dialect, leaves: Leaves) -> Result<Composed, PreprocessError> {
        let mut defines = kernel.defines(dialect);
        if kernel.follows_paths() {
            defines.extend(leaves.defines());
        }
        // A workgroup may have 16 KiB of memory; the stacks for deeper hierarchies take more.
        if kernel == Kernel::SearchPaths && !leaves.is_deep() {
            defines.push("SHARED_STACK");
        }
        compose(&self.0, kernel.entry(), &defines)
    }
}

/// Every combination of kernel and dialect whose text differs from the others.
pub fn variants() -> Vec<(Kernel, Dialect)> {
    let mut variants: Vec<(Kernel, Dialect)> = Vec::new();
    for kernel in Kernel::ALL {
        for dialect in Dialect::all() {
            let defines = kernel.defines(dialect);
            let same = |&(k, d): &(Kernel, Dialect)| k == kernel && k.defines(d) == defines;
            if !variants.iter().any(same) {
                variants.push((kernel, dialect));
            }
        }
    }
    variants
}
