//! Emission and absorption along a ray through a radiance field: one walk for every mode.
//!
//! Samples lie at t = near + (i + u) h while t < far, u one jitter a ray. With τ = σ h, α = 1 - exp(-τ), and T the
//! transmittance before the sample, the primal adds L += T α c. The replay takes the same steps from L downwards, so
//! that what is left after sample i is R, the radiance still to come, and (docs/method.md, equations 5 and 6)
//!
//! ```text
//! dL/dc = T α          dL/dσ = h (T exp(-τ) c - R)
//! ```
//!
//! Nothing is stored a sample: memory does not grow with the length of a ray (Vicini2021, section 3).

use super::camera::{Ray, normalize, transform_point, transform_vector};
use super::grid::{Stencil, grid_stencil, index_below};
use super::number::Number;
use super::sh::{Basis, sh_basis};
use crate::resident::layout::{SceneRecord, color, density, occupancy};

/// The parameters as a walk reads them.
///
/// `sampled` is the side that decisions look at, `integrand` the side that is differentiated; they differ only where
/// finite differences are taken with the sampling frozen.
pub trait View<N: Number> {
    /// Whether the two sides differ.
    const TWO_SIDED: bool;
    /// Raw density on the sampling side.
    fn sigma_sampled(&self, at: &Stencil) -> N;
    /// Raw density on the integrand's side.
    fn sigma(&self, at: &Stencil) -> N;
    /// Raw colour, the sum of spherical harmonics.
    fn color(&self, at: &Stencil, basis: &Basis) -> [N; 3];
    /// Bits of an occupancy cell.
    fn occupancy(&self, cell: u32) -> u32;
    /// The emitter's texels as RGB: one for a constant, empty without an emitter.
    fn emitter(&self) -> &[N];
}

/// Where a replay sends gradients.
pub trait Sink<N: Number> {
    /// The gradient of a sample at `p` (unit cube): with respect to raw density and raw colour.
    fn sample(&mut self, p: [f32; 3], basis: &Basis, d_sigma: N, d_color: [N; 3]);
    /// The gradient of the emitter's radiance along the unit direction `d` (world).
    fn emitter(&mut self, d: [f32; 3], d_radiance: [N; 3]);
}

/// A sink for walks that only look.
#[derive(Debug, Default)]
pub struct NoSink;

impl<N: Number> Sink<N> for NoSink {
    #[inline(always)]
    fn sample(&mut self, _: [f32; 3], _: &Basis, _: N, _: [N; 3]) {}
    #[inline(always)]
    fn emitter(&mut self, _: [f32; 3], _: [N; 3]) {}
}

/// The part of a ray inside the field, in the unit cube's coordinates.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    /// Distance of the first sample and of the end.
    pub first: f32,
    pub far: f32,
    pub basis: Basis,
}

/// What a walk carries from sample to sample.
#[derive(Debug, Clone, Copy)]
pub struct State<N> {
    /// Primal: radiance so far. Replay: radiance still to come, the background's included.
    pub radiance: [N; 3],
    pub transmittance: N,
    /// Transmittance that decisions look at; the same number unless the view has two sides.
    pub sampled_transmittance: N,
    /// Index of the next sample.
    pub index: u32,
    /// Samples that contributed.
    pub count: u32,
}

impl<N: Number> State<N> {
    /// The state before the first sample, with `radiance` already there (none for a primal walk, all of it for a
    /// replay).
    pub fn new(radiance: [N; 3]) -> Self {
        Self {
            radiance,
            transmittance: N::lift(1.0),
            sampled_transmittance: N::lift(1.0),
            index: 0,
            count: 0,
        }
    }
}

/// Clips a ray to the field's cube. `jitter` is the ray's u in [0, 1).
#[inline(always)]
pub fn field_segment(scene: &SceneRecord, ray: &Ray, jitter: f32) -> Option<Segment> {
    if scene.has_field == 0 {
        return None;
    }
    let origin = transform_point(&scene.world_to_unit, ray.origin);
    let direction = transform_vector(&scene.world_to_unit, ray.direction);
    let (mut near, mut far) = (ray.near, ray.far);
    for axis in 0..3 {
        let inverse = 1.0 / direction[axis];
        let (a, b) = (-origin[axis] * inverse, (1.0 - origin[axis]) * inverse);
        if direction[axis] == 0.0 {
            if !(0.0..=1.0).contains(&origin[axis]) {
                return None;
            }
        } else {
            near = near.max(a.min(b));
            far = far.min(a.max(b));
        }
    }
    let first = near + jitter * scene.step_length;
    if first >= far {
        return None;
    }
    let basis = sh_basis(
        scene.sh_degree,
        normalize(transform_vector(&scene.world_to_field, ray.direction)),
    );
    Some(Segment {
        origin,
        direction,
        first,
        far,
        basis,
    })
}

/// Extinction from raw density.
#[inline(always)]
pub fn density_activate<N: Number>(kind: u32, raw: N) -> N {
    match kind {
        density::RELU => {
            if raw.below(0.0) {
                N::lift(0.0)
            } else {
                raw
            }
        }
        density::SOFTPLUS => {
            // ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)
            if raw.below(0.0) {
                raw.exp().ln_1p()
            } else {
                raw + (-raw).exp().ln_1p()
            }
        }
        _ => raw.exp(),
    }
}

/// Derivative of [`density_activate`]; the ReLU's is 1 at 0.
#[inline(always)]
pub fn density_slope<N: Number>(kind: u32, raw: N) -> N {
    match kind {
        density::RELU => N::lift(if raw.below(0.0) { 0.0 } else { 1.0 }),
        density::SOFTPLUS => sigmoid(raw),
        _ => raw.exp(),
    }
}

#[inline(always)]
fn sigmoid<N: Number>(x: N) -> N {
    if x.below(0.0) {
        let e = x.exp();
        e * (N::lift(1.0) + e).recip()
    } else {
        (N::lift(1.0) + (-x).exp()).recip()
    }
}

/// Colour from a raw sum of spherical harmonics.
#[inline(always)]
pub fn color_activate<N: Number>(kind: u32, raw: N) -> N {
    match kind {
        color::CLIP => {
            if raw.below(0.0) {
                N::lift(0.0)
            } else if N::lift(1.0).value() < raw.value() {
                N::lift(1.0)
            } else {
                raw
            }
        }
        color::SIGMOID => sigmoid(raw),
        _ => {
            if raw.below(-0.5) {
                N::lift(0.0)
            } else {
                raw + N::lift(0.5)
            }
        }
    }
}

/// Derivative of [`color_activate`]; the clip's is 1 on the closed interval, the ReLU's 1 at its kink.
#[inline(always)]
pub fn color_slope<N: Number>(kind: u32, raw: N) -> N {
    match kind {
        color::CLIP => N::lift(if raw.below(0.0) || N::lift(1.0).value() < raw.value() {
            0.0
        } else {
            1.0
        }),
        color::SIGMOID => {
            let s = sigmoid(raw);
            s * (N::lift(1.0) - s)
        }
        _ => N::lift(if raw.below(-0.5) { 0.0 } else { 1.0 }),
    }
}

/// Walks on along a segment for at most `steps` steps and says whether more is to come: rays that run side by side for
/// a few steps each find the texels that their neighbours have just read. The primal mode adds to `state.radiance`; the replay subtracts from it and sends `d_radiance` (the
/// derivative of the loss by the ray's radiance) times the sample's derivatives to `sink`.
#[inline(always)]
pub fn walk<N: Number, V: View<N>, S: Sink<N>, const REPLAY: bool>(
    scene: &SceneRecord,
    view: &V,
    segment: &Segment,
    state: &mut State<N>,
    d_radiance: [N; 3],
    sink: &mut S,
    steps: u32,
) -> bool {
    let h = scene.step_length;
    let needed = if REPLAY { occupancy::LEARNS } else { occupancy::RENDERS };
    let same_grid = same_size(scene);
    for _ in 0..steps {
        let t = segment.first + state.index as f32 * h;
        if t >= segment.far {
            return false;
        }
        let (o, d) = (segment.origin, segment.direction);
        let p = [o[0] + t * d[0], o[1] + t * d[1], o[2] + t * d[2]];
        let cell = occupancy_cell(scene.occupancy_size, p);
        if view.occupancy(cell_index(scene.occupancy_size, cell)) & needed == 0 {
            let exit = cell_exit(scene.occupancy_size, cell, segment);
            state.index = (state.index + 1).max(((exit - segment.first) / h).floor() as u32);
            continue;
        }
        state.index += 1;
        let at = grid_stencil(scene.sigma_size, p);
        let raw_sigma = view.sigma(&at);
        if V::TWO_SIDED {
            let sampled = density_activate(scene.density_activation, view.sigma_sampled(&at));
            state.sampled_transmittance *= (-(sampled * N::lift(h))).exp();
        } else if scene.density_activation == density::RELU && (raw_sigma.below(0.0)) {
            // Neither radiance nor a derivative.
            continue;
        }
        let sigma = density_activate(scene.density_activation, raw_sigma);
        let at_color = if same_grid { at } else { grid_stencil(scene.sh_size, p) };
        let raw_color = view.color(&at_color, &segment.basis);
        let mut color = [N::lift(0.0); 3];
        for c in 0..3 {
            color[c] = color_activate(scene.color_activation, raw_color[c]);
        }

        let alpha = -((-(sigma * N::lift(h))).exp_m1());
        let weight = state.transmittance * alpha;
        state.transmittance = state.transmittance - weight;
        state.count += 1;
        if REPLAY {
            let mut d_sigma = N::lift(0.0);
            let mut d_color = [N::lift(0.0); 3];
            for c in 0..3 {
                state.radiance[c] -= weight * color[c];
                d_sigma += d_radiance[c] * (state.transmittance * color[c] - state.radiance[c]);
                d_color[c] = d_radiance[c] * weight * color_slope(scene.color_activation, raw_color[c]);
            }
            let d_sigma = d_sigma * N::lift(h) * density_slope(scene.density_activation, raw_sigma);
            sink.sample(p, &segment.basis, d_sigma, d_color);
        } else {
            for c in 0..3 {
                state.radiance[c] += weight * color[c];
            }
        }
        let decided = if V::TWO_SIDED {
            state.sampled_transmittance
        } else {
            state.transmittance
        };
        if decided.below(scene.stop) {
            return false;
        }
    }
    true
}

/// Whether both grids have the same texels, so that one stencil serves both.
#[inline(always)]
pub fn same_size(scene: &SceneRecord) -> bool {
    let (a, b) = (scene.sigma_size, scene.sh_size);
    a[0] == b[0] && a[1] == b[1] && a[2] == b[2]
}

#[inline(always)]
fn occupancy_cell(size: [u32; 4], p: [f32; 3]) -> [u32; 3] {
    let mut cell = [0; 3];
    for a in 0..3 {
        cell[a] = index_below(p[a] * size[a] as f32, size[a] - 1);
    }
    cell
}

#[inline(always)]
fn cell_index(size: [u32; 4], cell: [u32; 3]) -> u32 {
    (cell[2] * size[1] + cell[1]) * size[0] + cell[0]
}

/// The distance at which a segment leaves a cell.
#[inline(always)]
fn cell_exit(size: [u32; 4], cell: [u32; 3], segment: &Segment) -> f32 {
    let mut exit = segment.far;
    for axis in 0..3 {
        let d = segment.direction[axis];
        if d != 0.0 {
            let edge = cell[axis] as f32 + if d > 0.0 { 1.0 } else { 0.0 };
            exit = exit.min((edge / size[axis] as f32 - segment.origin[axis]) / d);
        }
    }
    exit
}
