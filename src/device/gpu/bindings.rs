//! The buffers that each kernel binds.

use super::shaders::{Dialect, Kernel, RecordSource, UniformReads};

/// A buffer that shaders name; the number is its binding in group 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Binding {
    /// The piece of work: a [`super::records::Launch`] or a [`super::records::Elements`].
    Work = 0,
    Scene = 1,
    Tables = 2,
    Sensors = 3,
    Values = 4,
    Values1 = 5,
    Gradient = 6,
    Gradient1 = 7,
    Image = 8,
    Adjoint = 9,
    References = 10,
    Statistics = 11,
    Partials = 12,
    Parameter = 13,
    ParameterGradient = 14,
    FirstMoment = 15,
    SecondMoment = 16,
    Source = 17,
    Axes = 18,
    Settings = 19,
    Records = 20,
    Bounds = 21,
    Sums = 22,
    Splats = 23,
    Lists = 24,
    LookedAt = 25,
    Film = 26,
    /// The adapter's own hierarchy over triangles and shapes.
    Hierarchy = 27,
    /// The states of a wave's paths, and the queue of those whose rays the hierarchy is searched for.
    Wave = 28,
    Queue = 29,
    /// A copy of the records that a scene has few of, as a uniform buffer.
    FewRecords = 30,
    /// A [`super::records::TracerRecord`]: light tracing among surfaces, and a view's film.
    Tracer = 31,
}

/// How a kernel uses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Uniform,
    Read,
    Write,
    /// Searched by ray queries: no buffer.
    Search,
}

impl Kernel {
    /// Its bindings in a dialect, by number.
    pub fn bindings(self, dialect: Dialect) -> Vec<(Binding, Access)> {
        let reads = self.reads(dialect);
        let with_second = |&(binding, access): &(Binding, Access)| {
            let access = match binding {
                Binding::Values if reads.uniform_values => Access::Uniform,
                Binding::Records if reads.records == RecordSource::Uniform => Access::Uniform,
                _ => access,
            };
            let second = match binding {
                Binding::Values => Some(Binding::Values1),
                Binding::Gradient => Some(Binding::Gradient1),
                _ => None,
            };
            let second = second.filter(|_| dialect.banks > 1).map(|second| (second, access));
            [Some((binding, access)), second].into_iter().flatten()
        };
        let searches = self.searches(dialect);
        // `RenderAov` reads the settings only for our own search; `ReplayPaths` writes statistics only to report faults of sums
        // in whole numbers.
        let is_bound = |&&(binding, _): &&_| match self {
            Self::RenderAov => !(searches && binding == Binding::Settings),
            Self::ReplayPaths => dialect.accumulation.is_fixed() || binding != Binding::Statistics,
            _ => true,
        };
        let buffers = self.bindings_of_one().iter().filter(is_bound).flat_map(with_second);
        let searched = searches.then_some((Binding::Hierarchy, Access::Search));
        let few = (reads.records == RecordSource::FewUniform).then_some((Binding::FewRecords, Access::Uniform));
        let mut all: Vec<_> = buffers.chain(searched).chain(few).collect();
        all.sort_by_key(|(binding, _)| *binding as u32);
        all
    }

    /// What it reads from uniform buffers.
    pub(super) fn reads(self, dialect: Dialect) -> UniformReads {
        let binds = |wanted| self.bindings_of_one().iter().any(|(binding, _)| *binding == wanted);
        if !self.follows_paths() {
            return UniformReads::default();
        }
        UniformReads {
            records: match binds(Binding::Records) {
                true => dialect.reads.records,
                false => RecordSource::Storage,
            },
            uniform_values: dialect.reads.uniform_values && dialect.banks == 1 && binds(Binding::Values),
        }
    }

    /// Whether it searches the adapter's hierarchy.
    pub(super) fn searches(self, dialect: Dialect) -> bool {
        dialect.ray_queries && self.follows_paths() && !self.takes_turns()
    }

    /// Whether it binds the buffers of all parameters' values or of all gradients.
    pub(super) fn sees_banks(self) -> bool {
        let bindings = self.bindings_of_one();
        bindings
            .iter()
            .any(|(binding, _)| matches!(binding, Binding::Values | Binding::Gradient))
    }

    /// Storage buffers that it binds beside parameters and their gradients.
    pub(super) fn other_buffers(self) -> u32 {
        let is_other = |&&(binding, access): &&(Binding, Access)| {
            access != Access::Uniform && !matches!(binding, Binding::Values | Binding::Gradient)
        };
        self.bindings_of_one().iter().filter(is_other).count() as u32
    }

    /// Its bindings where all parameters are in one buffer.
    fn bindings_of_one(self) -> &'static [(Binding, Access)] {
        use Access::{Read, Uniform, Write};
        use Binding::*;
        match self {
            Self::Render => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Values, Read),
                (Image, Write),
            ],
            Self::Loss => &[
                (Work, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Image, Read),
                (Adjoint, Write),
                (References, Read),
                (Partials, Write),
            ],
            Self::Backpropagate => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Values, Read),
                (Gradient, Write),
                (Adjoint, Read),
                (Statistics, Write),
            ],
            Self::Occupancy => &[(Work, Uniform), (Scene, Uniform), (Tables, Write), (Values, Read)],
            Self::Step => &[
                (Work, Uniform),
                (Partials, Write),
                (Parameter, Write),
                (ParameterGradient, Write),
                (FirstMoment, Write),
                (SecondMoment, Write),
            ],
            Self::Regularize => &[
                (Work, Uniform),
                (Partials, Write),
                (Parameter, Write),
                (ParameterGradient, Write),
            ],
            Self::Resample | Self::Majorants => &[(Work, Uniform), (Parameter, Write), (Source, Read), (Axes, Read)],
            Self::RenderPaths | Self::RenderAov => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Values, Read),
                (Image, Write),
                (Settings, Uniform),
                (Records, Read),
                (Bounds, Read),
            ],
            Self::BackpropagatePaths => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Values, Read),
                (Gradient, Write),
                (Adjoint, Read),
                (Statistics, Write),
                (Settings, Uniform),
                (Records, Read),
                (Bounds, Read),
            ],
            Self::BeginPaths => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Settings, Uniform),
                (Wave, Write),
            ],
            Self::BeginAdjoint | Self::BeginReplay => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Adjoint, Read),
                (Settings, Uniform),
                (Wave, Write),
            ],
            Self::MeetPaths => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Settings, Uniform),
                (Records, Read),
                (Wave, Write),
                (Queue, Write),
            ],
            Self::SearchPaths => &[
                (Work, Uniform),
                (Settings, Uniform),
                (Records, Read),
                (Wave, Write),
                (Queue, Read),
            ],
            Self::AdvancePaths | Self::AdvanceAdjoint => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Values, Read),
                (Settings, Uniform),
                (Records, Read),
                (Bounds, Read),
                (Wave, Write),
                (Queue, Write),
            ],
            Self::EndPaths => &[(Work, Uniform), (Image, Write), (Wave, Write)],
            Self::EndReplay => &[(Work, Uniform), (Statistics, Write), (Wave, Write)],
            Self::ReplayPaths => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Values, Read),
                (Gradient, Write),
                (Adjoint, Read),
                (Statistics, Write),
                (Settings, Uniform),
                (Records, Read),
                (Bounds, Read),
                (Wave, Write),
            ],
            Self::Develop => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Tables, Read),
                (Sensors, Read),
                (Image, Write),
                (Film, Write),
            ],
            Self::RenderLight => &[
                (Work, Uniform),
                (Values, Read),
                (Settings, Uniform),
                (Records, Read),
                (Film, Write),
            ],
            Self::DevelopLight => &[(Work, Uniform), (Image, Write), (Settings, Uniform), (Film, Read)],
            Self::RenderParticles => &[
                (Work, Uniform),
                (Scene, Uniform),
                (Sensors, Read),
                (Values, Read),
                (Settings, Uniform),
                (Records, Read),
                (Bounds, Read),
                (Film, Write),
                (Tracer, Uniform),
            ],
            Self::DevelopParticles => &[(Work, Uniform), (Image, Write), (Film, Write), (Tracer, Uniform)],
            Self::BackpropagateLight => &[
                (Work, Uniform),
                (Values, Read),
                (Gradient, Write),
                (Adjoint, Read),
                (Statistics, Write),
                (Settings, Uniform),
                (Records, Read),
            ],
            Self::Collect => &[
                (Work, Uniform),
                (Statistics, Write),
                (ParameterGradient, Write),
                (Sums, Write),
            ],
            Self::ProjectSplats => &[(Values, Read), (Settings, Uniform), (Splats, Write)],
            Self::CountSplats | Self::ListSplats => &[(Settings, Uniform), (Splats, Read), (Lists, Write)],
            Self::ScanSplats => &[(Settings, Uniform), (Lists, Write)],
            Self::RenderSplats => &[
                (Values, Read),
                (Image, Write),
                (Settings, Uniform),
                (Splats, Read),
                (Lists, Read),
                (LookedAt, Write),
            ],
            Self::DerivativesSplats => &[
                (Work, Uniform),
                (Values, Read),
                (Gradient, Write),
                (Image, Read),
                (Adjoint, Read),
                (Statistics, Write),
                (Settings, Uniform),
                (Splats, Read),
                (Lists, Read),
                (LookedAt, Read),
            ],
        }
    }
}
