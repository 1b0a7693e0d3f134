//! Emission and absorption along a ray through a radiance field: one walk for every mode.
//!
//! Samples lie at t = near + (i + u) h while t < far, with one jitter u per ray. With τ = σ h, α = 1 - exp(-τ), and T
//! the transmittance before the sample, the primal adds L += T α c. The replay takes the same steps and subtracts from
//! L, so that after sample i the remainder is R, the radiance still to come, and (docs/method.md, equations 5 and 6)
//!
//! ```text
//! dL/dc = T α          dL/dσ = h (T exp(-τ) c - R)
//! ```
//!
//! The walk stores nothing per sample (Vicini2021, section 3); a device may keep records of the samples of a bounded round
//! of rays.

use crate::resident::layout::{SceneRecord, color, density, occupancy};
use crate::transport::lookup::grid::{Stencil, Stencils, grid_stencils, index_below};
use crate::transport::lookup::sh::{Basis, sh_basis};
use crate::transport::mode::{GATHER, PRIMAL, REPLAY};
use crate::transport::number::Number;
use crate::transport::rays::camera::{Ray, normalize, transform_point, transform_vector};

/// The parameters as a walk reads them.
///
/// `sampled` is the side that decisions use, `integrand` the side that is differentiated; they differ only in finite
/// differences with frozen sampling.
pub trait FieldView<N: Number> {
    /// Whether the two sides differ.
    const TWO_SIDED: bool;
    /// The spherical harmonics of a ray's direction, in the layout that lookups need.
    type Bases: Copy;
    /// Raw density on the sampling side.
    fn sigma_sampled(&self, at: &Stencil) -> N;
    /// Raw density on the integrand's side.
    fn sigma(&self, at: &Stencil) -> N;
    /// Prepares the basis for all lookups along a ray.
    fn bases(&self, basis: &Basis) -> Self::Bases;
    /// Raw colour, the sum of spherical harmonics.
    fn color(&self, at: &Stencil, bases: &Self::Bases) -> [N; 3];
    /// Bits of an occupancy cell.
    fn occupancy(&self, cell: u32) -> u32;
    /// [`lattice`]; a view may compute the same bits faster.
    #[inline(always)]
    fn lattice(&self, scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        lattice(scene, segment, index)
    }
    /// [`grid_stencils`]; a view may compute the same bits faster.
    #[inline(always)]
    fn stencils(&self, size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        grid_stencils(size, p)
    }
    /// [`opacities`]; a view may compute the same bits faster.
    #[inline(always)]
    fn opacities(&self, scene: &SceneRecord, raw_sigma: &[N; LANES]) -> [N; LANES] {
        opacities(scene, raw_sigma)
    }
    /// Raw colour at one lane.
    #[inline(always)]
    fn color_of_lane(&self, at: &Stencils<LANES>, lane: usize, bases: &Self::Bases) -> [N; 3] {
        self.color(&at.lane(lane), bases)
    }
    /// [`color_activate`] of three channels; a view may compute the same bits faster.
    #[inline(always)]
    fn activate_color(&self, kind: u32, raw: [N; 3]) -> [N; 3] {
        [
            color_activate(kind, raw[0]),
            color_activate(kind, raw[1]),
            color_activate(kind, raw[2]),
        ]
    }
    /// Raw density at the lanes of `live`; the other lanes are unspecified.
    #[inline(always)]
    fn sigmas(&self, at: &Stencils<LANES>, live: u32) -> [N; LANES] {
        let mut raw = [N::lift(0.0); LANES];
        for lane in Lanes(live) {
            raw[lane] = self.sigma(&at.lane(lane));
        }
        raw
    }
    /// Prefetch hint: the colours at the lanes of `live` will be looked up soon.
    #[inline(always)]
    fn expect_colors(&self, _at: &Stencils<LANES>, _live: u32) {}
    /// Whether a ray should prefetch its next samples: rays that take turns without sharing texels miss the first-level cache.
    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        false
    }
    /// Prefetch hint: densities and colours at the lanes of `live` will be looked up after the other rays have had
    /// their turns.
    #[inline(always)]
    fn expect_later(&self, _at_sigma: &Stencils<LANES>, _at_color: &Stencils<LANES>, _live: u32) {}
    /// The emitter's texels as RGB: one for a constant emitter, empty without emitter.
    fn emitter(&self) -> &[N];
}

/// The looked-up values at a sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample<N> {
    /// In the unit cube.
    pub p: [f32; 3],
    pub raw_sigma: N,
    /// 1 - exp(-σ h).
    pub alpha: N,
    pub raw_color: [N; 3],
}

/// Receives the gradients of a replay.
pub trait SampleSink<N: Number> {
    /// Positions at which a gathering walk is about to take samples.
    #[inline(always)]
    fn approach(&mut self, _p: &[[f32; LANES]; 3]) {}
    /// A sample that a gathering walk took at the position `lane` of these.
    #[inline(always)]
    fn note(&mut self, _lane: usize, _sample: &Sample<N>) {}
    /// The gradient of a sample at `p` (unit cube): with respect to raw density and raw colour.
    fn sample(&mut self, p: [f32; 3], basis: &Basis, d_sigma: N, d_color: [N; 3]);
    /// The gradient of the emitter's radiance along the unit direction `d` (world).
    fn emitter(&mut self, d: [f32; 3], d_radiance: [N; 3]);
}

/// A sink that discards everything, for walks without derivatives.
#[derive(Debug, Default)]
pub struct NoSamples;

impl<N: Number> SampleSink<N> for NoSamples {
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

/// State carried from sample to sample.
#[derive(Debug, Clone, Copy)]
pub struct State<N> {
    /// Primal: radiance so far. Replay: radiance still to come, the background's included.
    pub radiance: [N; 3],
    pub transmittance: N,
    /// Transmittance on the side that decisions use; equal to `transmittance` unless the view has two sides.
    pub sampled_transmittance: N,
    /// Index of the next sample position.
    pub index: u32,
    /// Samples that contributed.
    pub count: u32,
}

impl<N: Number> State<N> {
    /// The state before the first sample: `radiance` is zero for a primal walk, the primal's result for a replay.
    #[inline]
    pub fn new(radiance: [N; 3]) -> Self {
        Self {
            radiance,
            transmittance: N::lift(1.0),
            sampled_transmittance: N::lift(1.0),
            index: 0,
            count: 0,
        }
    }

    /// Passes a sample of opacity `alpha` and returns its weight T α.
    #[inline(always)]
    fn pass(&mut self, alpha: N) -> N {
        let weight = self.transmittance * alpha;
        self.transmittance -= weight;
        self.count += 1;
        weight
    }

    /// Passes a sample and subtracts its radiance. Returns the derivatives of `d_radiance` · radiance by its raw
    /// density and raw colour.
    #[inline(always)]
    pub fn replay(&mut self, scene: &SceneRecord, sample: &Sample<N>, d_radiance: [N; 3]) -> (N, [N; 3]) {
        let weight = self.pass(sample.alpha);
        let mut d_sigma = N::lift(0.0);
        let mut d_color = [N::lift(0.0); 3];
        for c in 0..3 {
            let color = color_activate(scene.color_activation, sample.raw_color[c]);
            self.radiance[c] -= weight * color;
            d_sigma += d_radiance[c] * (self.transmittance * color - self.radiance[c]);
            d_color[c] = d_radiance[c] * weight * color_slope(scene.color_activation, sample.raw_color[c]);
        }
        let slope = density_slope(scene.density_activation, sample.raw_sigma);
        (d_sigma * N::lift(scene.step_length) * slope, d_color)
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
    let negative = x.below(0.0);
    let e = if negative { x } else { -x }.exp();
    let share = (N::lift(1.0) + e).recip();
    if negative { e * share } else { share }
}

/// Colour from a raw sum of spherical harmonics.
#[inline(always)]
pub fn color_activate<N: Number>(kind: u32, raw: N) -> N {
    match kind {
        color::CLIP => {
            let floored = if raw.below(0.0) { N::lift(0.0) } else { raw };
            if raw.above(1.0) { N::lift(1.0) } else { floored }
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
        color::CLIP => N::lift(if raw.below(0.0) | raw.above(1.0) { 0.0 } else { 1.0 }),
        color::SIGMOID => {
            let s = sigmoid(raw);
            s * (N::lift(1.0) - s)
        }
        _ => N::lift(if raw.below(-0.5) { 0.0 } else { 1.0 }),
    }
}

/// Sample positions that a walk processes at once, for vectorisation.
pub const LANES: usize = 8;

/// Consecutive sample positions.
#[derive(Debug, Clone, Copy)]
pub struct Lattice {
    /// Coordinates in the unit cube, axis by axis.
    pub p: [[f32; LANES]; 3],
    /// Occupancy cells.
    pub cells: [u32; LANES],
    /// Bit i: position i lies inside the segment.
    pub inside: u32,
}

/// The positions from `index` on.
#[inline(always)]
pub fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
    let size = scene.occupancy_size;
    let mut places = Lattice {
        p: [[0.0; LANES]; 3],
        cells: [0; LANES],
        inside: 0,
    };
    for lane in 0..LANES {
        let t = segment.first + (index + lane as u32) as f32 * scene.step_length;
        places.inside |= u32::from(t < segment.far) << lane;
        let mut cell = [0; 3];
        for axis in 0..3 {
            let x = segment.origin[axis] + t * segment.direction[axis];
            places.p[axis][lane] = x;
            cell[axis] = index_below(x * size[axis] as f32, size[axis] - 1);
        }
        places.cells[lane] = (cell[2] * size[1] + cell[1]) * size[0] + cell[0];
    }
    places
}

/// 1 - exp(-σ h) of raw densities.
#[inline(always)]
pub fn opacities<N: Number>(scene: &SceneRecord, raw_sigma: &[N; LANES]) -> [N; LANES] {
    let mut alpha = [N::lift(0.0); LANES];
    for lane in 0..LANES {
        let sigma = density_activate(scene.density_activation, raw_sigma[lane]);
        alpha[lane] = -((-(sigma * N::lift(scene.step_length))).exp_m1());
    }
    alpha
}

/// Advances along a segment over the next [`LANES`] positions that contain an occupied one; true if the ray is not finished.
/// Neighbouring rays that take turns, a call each, share cached texels.
///
/// [`PRIMAL`] and [`GATHER`] add to `state.radiance`; [`REPLAY`] subtracts from it and sends `d_radiance` (the
/// derivative of the loss by the ray's radiance) times the sample's derivatives to `sink`. The WGSL twin processes one
/// position at a time and takes the same samples in the same order.
#[inline(always)]
pub fn walk<N: Number, V: FieldView<N>, S: SampleSink<N>, const MODE: u8>(
    scene: &SceneRecord,
    view: &V,
    segment: &Segment,
    state: &mut State<N>,
    d_radiance: [N; 3],
    sink: &mut S,
) -> bool {
    let needed = if MODE == PRIMAL {
        occupancy::RENDERS
    } else {
        occupancy::LEARNS
    };
    // Find the next occupied positions and their stencils.
    let Some((p, mut live)) = next_places(scene, view, segment, state, needed) else {
        return false;
    };
    state.index += LANES as u32;
    let at_sigma = view.stencils(scene.sigma_size, &p);
    let of_color;
    let at_color = if same_size(scene) {
        &at_sigma
    } else {
        of_color = view.stencils(scene.sh_size, &p);
        &of_color
    };
    view.expect_colors(at_color, live);
    let raw_sigma = view.sigmas(&at_sigma, live);
    let alpha = view.opacities(scene, &raw_sigma);
    if scene.density_activation == density::RELU && !V::TWO_SIDED {
        // Under a ReLU a negative raw density adds neither radiance nor derivatives.
        for lane in 0..LANES {
            live &= !(u32::from(raw_sigma[lane].below(0.0)) << lane);
        }
    }
    if MODE == GATHER {
        sink.approach(&p);
    }
    // A local copy stays in registers.
    let mut now = *state;
    let bases = view.bases(&segment.basis);
    // Composite the samples in order.
    let mut more = true;
    for lane in Lanes(live) {
        if V::TWO_SIDED {
            let sampled = density_activate(scene.density_activation, view.sigma_sampled(&at_sigma.lane(lane)));
            now.sampled_transmittance *= (-(sampled * N::lift(scene.step_length))).exp();
        }
        let sample = Sample {
            p: [p[0][lane], p[1][lane], p[2][lane]],
            raw_sigma: raw_sigma[lane],
            alpha: alpha[lane],
            raw_color: view.color_of_lane(at_color, lane, &bases),
        };
        if MODE == REPLAY {
            let (d_sigma, d_color) = now.replay(scene, &sample, d_radiance);
            sink.sample(sample.p, &segment.basis, d_sigma, d_color);
        } else {
            let weight = now.pass(sample.alpha);
            let color = view.activate_color(scene.color_activation, sample.raw_color);
            for c in 0..3 {
                now.radiance[c] += weight * color[c];
            }
            if MODE == GATHER {
                sink.note(lane, &sample);
            }
        }
        let decided = if V::TWO_SIDED {
            now.sampled_transmittance
        } else {
            now.transmittance
        };
        if decided.below(scene.stop) {
            more = false;
            break;
        }
    }
    *state = now;
    if more && view.looks_ahead() {
        let Some((p, live)) = next_places(scene, view, segment, state, needed) else {
            return false;
        };
        let at_sigma = view.stencils(scene.sigma_size, &p);
        if same_size(scene) {
            view.expect_later(&at_sigma, &at_sigma, live);
        } else {
            view.expect_later(&at_sigma, &view.stencils(scene.sh_size, &p), live);
        }
    }
    more
}

/// Advances to the next [`LANES`] positions of which at least one lies in a cell that is `needed`; None at the
/// segment's end. Returns the positions and the mask of needed ones.
#[inline(always)]
fn next_places<N: Number, V: FieldView<N>>(
    scene: &SceneRecord,
    view: &V,
    segment: &Segment,
    state: &mut State<N>,
    needed: u32,
) -> Option<([[f32; LANES]; 3], u32)> {
    loop {
        if segment.first + state.index as f32 * scene.step_length >= segment.far {
            return None;
        }
        let places = view.lattice(scene, segment, state.index);
        let mut live = 0;
        for lane in Lanes(places.inside) {
            live |= u32::from(view.occupancy(places.cells[lane]) & needed != 0) << lane;
        }
        if live != 0 {
            return Some((places.p, live));
        }
        state.index += LANES as u32;
    }
}

/// Iterates over the set bits.
struct Lanes(u32);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        // The modulus lets the compiler drop the bounds check.
        Some(lane % LANES)
    }
}

/// Whether both grids have the same resolution, so that they share a stencil.
#[inline(always)]
pub fn same_size(scene: &SceneRecord) -> bool {
    let (a, b) = (scene.sigma_size, scene.sh_size);
    a[0] == b[0] && a[1] == b[1] && a[2] == b[2]
}
