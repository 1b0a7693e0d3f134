//! A scene's parameters as arrays of any number type, and a view of them that skips no samples.

use crate::params::ParamSet;
use crate::resident::layout::SceneRecord;
use crate::resident::{Resident, Transport};
use crate::transport::field::radiance_field::{FieldView, SampleSink};
use crate::transport::lookup::background::background_adjoint;
use crate::transport::lookup::grid::{Stencil, grid_adjoint, grid_adjoint_sh, grid_eval, grid_eval_sh, grid_stencil};
use crate::transport::lookup::sh::Basis;
use crate::transport::number::Number;

/// What a walk uses a parameter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Density,
    Color,
    Emitter,
}

impl Role {
    /// The role of a parameter; None if the march does not read it.
    pub fn of(resident: &Resident, parameter: usize) -> Option<Self> {
        let [sigma_t, sh_coeffs, emitter] = slots(resident);
        let parameter = Some(parameter);
        if sigma_t == parameter {
            Some(Self::Density)
        } else if sh_coeffs == parameter {
            Some(Self::Color)
        } else if emitter == parameter {
            Some(Self::Emitter)
        } else {
            None
        }
    }
}

/// The parameters of a radiance field: density, colour, emitter.
fn slots(resident: &Resident) -> [Option<usize>; 3] {
    let field = match &resident.transport {
        Transport::Field(field) => field.slots,
        Transport::Paths(_) | Transport::Splats(_) | Transport::Light(_) => None,
    };
    [
        field.map(|slots| slots.sigma_t),
        field.map(|slots| slots.sh_coeffs),
        resident.emitter,
    ]
}

/// Values or gradients of all parameters that a march reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Fields<N> {
    pub sigma: Vec<N>,
    pub sh: Vec<N>,
    pub emitter: Vec<N>,
}

impl<N: Number> Fields<N> {
    /// The parameters' values converted by `lift`, in the order density, colour, emitter.
    pub fn new(resident: &Resident, params: &ParamSet, mut lift: impl FnMut(f32) -> N) -> Self {
        let values = |slot: Option<usize>| -> Vec<N> {
            slot.map_or_else(Vec::new, |i| {
                params.parameters[i].values.iter().map(|v| lift(*v)).collect()
            })
        };
        let [sigma, sh, emitter] = slots(resident).map(values);
        Self { sigma, sh, emitter }
    }

    /// Zeros of the same lengths.
    pub fn zeros(&self) -> Self {
        let zeros = |v: &Vec<N>| vec![N::lift(0.0); v.len()];
        Self {
            sigma: zeros(&self.sigma),
            sh: zeros(&self.sh),
            emitter: zeros(&self.emitter),
        }
    }

    /// The array of one role.
    pub fn of(&self, role: Role) -> &[N] {
        match role {
            Role::Density => &self.sigma,
            Role::Color => &self.sh,
            Role::Emitter => &self.emitter,
        }
    }

    /// The array of one role, mutable.
    pub fn of_mut(&mut self, role: Role) -> &mut [N] {
        match role {
            Role::Density => &mut self.sigma,
            Role::Color => &mut self.sh,
            Role::Emitter => &mut self.emitter,
        }
    }
}

/// Looks up raw colours in a grid with one channel per coefficient and colour.
#[inline(always)]
fn color<N: Number>(scene: &SceneRecord, sh: &[N], at: &Stencil, basis: &Basis) -> [N; 3] {
    match scene.sh_degree {
        0 => grid_eval_sh::<N, 3>(sh, at, basis),
        1 => grid_eval_sh::<N, 12>(sh, at, basis),
        2 => grid_eval_sh::<N, 27>(sh, at, basis),
        _ => grid_eval_sh::<N, 48>(sh, at, basis),
    }
}

/// A one-sided view of the parameters in which every occupancy cell counts as occupied.
#[derive(Debug, Clone, Copy)]
pub struct Plain<'a, N> {
    pub scene: &'a SceneRecord,
    pub fields: &'a Fields<N>,
}

impl<N: Number> FieldView<N> for Plain<'_, N> {
    const TWO_SIDED: bool = false;
    type Bases = Basis;
    fn sigma_sampled(&self, at: &Stencil) -> N {
        self.sigma(at)
    }
    #[inline(always)]
    fn sigma(&self, at: &Stencil) -> N {
        grid_eval(&self.fields.sigma, at)
    }
    #[inline(always)]
    fn bases(&self, basis: &Basis) -> Basis {
        *basis
    }
    #[inline(always)]
    fn color(&self, at: &Stencil, basis: &Basis) -> [N; 3] {
        color(self.scene, &self.fields.sh, at, basis)
    }
    #[inline(always)]
    fn occupancy(&self, _: u32) -> u32 {
        u32::MAX
    }
    #[inline(always)]
    fn emitter(&self) -> &[N] {
        &self.fields.emitter
    }
}

/// A sink that accumulates gradients in arrays of the parameters' shapes.
#[derive(Debug)]
pub struct Scatter<'a, N> {
    pub scene: &'a SceneRecord,
    pub gradient: &'a mut Fields<N>,
}

impl<N: Number> SampleSink<N> for Scatter<'_, N> {
    #[inline(always)]
    fn sample(&mut self, p: [f32; 3], basis: &Basis, d_sigma: N, d_color: [N; 3]) {
        let Self { scene, gradient } = self;
        grid_adjoint(&mut gradient.sigma, &grid_stencil(scene.sigma_size, p), d_sigma);
        let at = grid_stencil(scene.sh_size, p);
        match scene.sh_degree {
            0 => grid_adjoint_sh::<N, 3>(&mut gradient.sh, &at, basis, d_color),
            1 => grid_adjoint_sh::<N, 12>(&mut gradient.sh, &at, basis, d_color),
            2 => grid_adjoint_sh::<N, 27>(&mut gradient.sh, &at, basis, d_color),
            _ => grid_adjoint_sh::<N, 48>(&mut gradient.sh, &at, basis, d_color),
        }
    }
    #[inline(always)]
    fn emitter(&mut self, d: [f32; 3], d_radiance: [N; 3]) {
        background_adjoint(self.scene, &mut self.gradient.emitter, d, d_radiance);
    }
}
