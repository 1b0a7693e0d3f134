//! Derivatives of a ray's radiance by its origin, by its direction, and by the distance at which its samples begin.
//!
//! Samples lie at x_i = O + t_i D with t_i = near + (i + u) h. A replay has a sample's derivatives by raw density and raw
//! colour. Times the gradients of both lookups they give g_i, the derivative by x_i, and
//!
//! ```text
//! dL/dO = Σ g_i     dL/dD = Σ t_i g_i     dL/dnear = Σ g_i · D
//! ```
//!
//! The direction also enters the spherical harmonics and the background (docs/method.md, section 22).

use crate::each::EachEntry;
use crate::resident::layout::{Rows, SceneRecord, background};
use crate::transport::lookup::background::env_slope;
use crate::transport::lookup::grid::Cell;
use crate::transport::lookup::sh::{MAX_COEFFICIENTS, sh_adjoint};
use crate::transport::number::Number;
use crate::transport::rays::view_adjoint::ByRay;

/// A ray in the coordinates of the unit cube, and in those of the world.
#[derive(Debug, Clone, Copy)]
pub struct Line<N> {
    pub origin: [N; 3],
    pub direction: [N; 3],
    /// The unit direction in the world.
    pub world: [N; 3],
    /// Distance at which samples begin, before the jitter, and the axis normal to the face of the cube that sets it; None if
    /// the camera's clip distance does.
    pub near: N,
    pub entry: Face,
}

/// The axis normal to the face by which a ray enters the cube; None if its samples begin at the clip distance.
pub type Face = Option<usize>;

impl<N: Number> Line<N> {
    /// A ray of the world, with the clip distance of its camera.
    #[inline(always)]
    pub fn new(scene: &SceneRecord, origin: [N; 3], direction: [N; 3], clip: N) -> Self {
        let mut line = Self::entering(scene, origin, direction, clip, None);
        for axis in 0..3 {
            if line.direction[axis].value() != 0.0 {
                let enters = line.enters(axis);
                if enters.value() > line.near.value() {
                    (line.near, line.entry) = (enters, Some(axis));
                }
            }
        }
        line
    }

    /// [`Self::new`] for a ray whose entry face is known.
    #[inline(always)]
    pub fn entering(scene: &SceneRecord, origin: [N; 3], direction: [N; 3], clip: N, entry: Face) -> Self {
        let mut place = apply(&scene.world_to_unit, origin);
        for axis in 0..3 {
            place[axis] += N::lift(scene.world_to_unit[axis][3]);
        }
        let mut line = Self {
            origin: place,
            direction: apply(&scene.world_to_unit, direction),
            world: direction,
            near: clip,
            entry,
        };
        if let Some(axis) = entry {
            line.near = line.enters(axis);
        }
        line
    }

    /// Distance along the ray to the nearer of the two faces normal to an axis.
    #[inline(always)]
    fn enters(&self, axis: usize) -> N {
        let inverse = self.direction[axis].recip();
        (-self.origin[axis] * inverse).min((N::lift(1.0) - self.origin[axis]) * inverse)
    }

    /// How far along the ray the place `p` of the unit cube is.
    #[inline(always)]
    pub fn distance(&self, p: [N; 3]) -> N {
        let from = [0, 1, 2].each(|axis| p[axis] - self.origin[axis]);
        dot(from, self.direction) / dot(self.direction, self.direction)
    }
}

/// Derivatives of a ray's radiance, accumulated over its samples.
#[derive(Debug, Clone, Copy)]
pub struct RayAdjoint<N> {
    /// By origin and direction in the unit cube, with `near` held.
    origin: [N; 3],
    direction: [N; 3],
    /// By the spherical harmonics of the direction.
    basis: [N; MAX_COEFFICIENTS],
    /// By the direction in the world, through the background.
    world: [N; 3],
}

impl<N: Number> RayAdjoint<N> {
    /// All sums zero.
    #[inline(always)]
    pub fn zero() -> Self {
        let zero = N::lift(0.0);
        Self {
            origin: [zero; 3],
            direction: [zero; 3],
            basis: [zero; MAX_COEFFICIENTS],
            world: [zero; 3],
        }
    }

    /// Adds a sample at the distance `t`, whose raw density has the derivative `d_sigma`.
    #[inline(always)]
    pub fn add_density(&mut self, sigma: &[N], cell: &Cell<N>, t: N, d_sigma: N) {
        let mut values = [N::lift(0.0); 8];
        for k in 0..8 {
            values[k] = sigma[cell.texels[k] as usize] * d_sigma;
        }
        self.add(cell.gradient(&values), t);
    }

    /// Adds a sample at the distance `t`, whose raw colour has the derivative `d_color`, in a grid of `CHANNELS` channels.
    #[inline(always)]
    pub fn add_color<const CHANNELS: usize>(
        &mut self,
        (sh, basis): (&[N], &[N; MAX_COEFFICIENTS]),
        cell: &Cell<N>,
        t: N,
        d_color: [N; 3],
    ) {
        let mut spread = [N::lift(0.0); CHANNELS];
        for i in 0..CHANNELS / 3 {
            for c in 0..3 {
                spread[3 * i + c] = d_color[c] * basis[i];
            }
        }
        let weights = cell.weights();
        let mut sums = [N::lift(0.0); CHANNELS];
        let mut values = [N::lift(0.0); 8];
        for k in 0..8 {
            let start = cell.texels[k] as usize * CHANNELS;
            let texel = &sh[start..start + CHANNELS];
            let mut terms = [N::lift(0.0); CHANNELS];
            for c in 0..CHANNELS {
                sums[c] += texel[c] * weights[k];
                terms[c] = texel[c] * spread[c];
            }
            for term in terms {
                values[k] += term;
            }
        }
        for i in 0..CHANNELS / 3 {
            for c in 0..3 {
                self.basis[i] += d_color[c] * sums[3 * i + c];
            }
        }
        self.add(cell.gradient(&values), t);
    }

    #[inline(always)]
    fn add(&mut self, g: [N; 3], t: N) {
        for axis in 0..3 {
            self.origin[axis] += g[axis];
            self.direction[axis] += g[axis] * t;
        }
    }

    /// Adds the derivative by the direction through the background; `d_radiance` is that by its radiance, `emitter` its texels.
    #[inline(always)]
    pub fn add_background(&mut self, scene: &SceneRecord, emitter: &[N], line: &Line<N>, d_radiance: [N; 3]) {
        if scene.background != background::ENVMAP {
            return;
        }
        let (local, length) = unit(apply(&scene.world_to_env, line.world));
        let scaled = d_radiance.each(|d| d * N::lift(scene.env_scale));
        let slope = env_slope(scene.env_size, emitter, local, scaled);
        let back = apply_transposed(&scene.world_to_env, across(slope, local, length));
        for axis in 0..3 {
            self.world[axis] += back[axis];
        }
    }

    /// The derivatives by the ray in the world.
    #[inline(always)]
    pub fn end(&self, scene: &SceneRecord, line: &Line<N>) -> ByRay<N> {
        let (mut origin, mut direction, mut near) = (self.origin, self.direction, N::lift(0.0));
        let slide = dot(origin, line.direction);
        match line.entry {
            // O + near D stays on the face along this axis, so that dnear = -(dO + near dD) / D.
            Some(axis) => {
                let share = slide / line.direction[axis];
                origin[axis] -= share;
                direction[axis] -= share * line.near;
            }
            None => near = slide,
        }
        let (local, length) = unit(apply(&scene.world_to_field, line.world));
        let by_local = across(sh_adjoint(scene.sh_degree, local, &self.basis), local, length);
        let of_basis = apply_transposed(&scene.world_to_field, by_local);
        let mut world = apply_transposed(&scene.world_to_unit, direction);
        for axis in 0..3 {
            world[axis] += of_basis[axis] + self.world[axis];
        }
        ByRay {
            origin: apply_transposed(&scene.world_to_unit, origin),
            direction: world,
            near,
        }
    }
}

/// The inner product.
#[inline(always)]
pub fn dot<N: Number>(a: [N; 3], b: [N; 3]) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The linear part of an affine map.
#[inline(always)]
pub fn apply<N: Number>(m: &Rows, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|r| N::lift(m[r][0]) * v[0] + N::lift(m[r][1]) * v[1] + N::lift(m[r][2]) * v[2])
}

/// The transpose of [`apply`].
#[inline(always)]
pub fn apply_transposed<N: Number>(m: &Rows, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|c| N::lift(m[0][c]) * v[0] + N::lift(m[1][c]) * v[1] + N::lift(m[2][c]) * v[2])
}

/// A vector normalised to length one, and its length before.
#[inline(always)]
fn unit<N: Number>(v: [N; 3]) -> ([N; 3], N) {
    let length = dot(v, v).sqrt();
    (v.each(|x| x / length), length)
}

/// The derivative by a vector of length `length`, from `by_unit`, that by its unit vector `unit`.
#[inline(always)]
pub fn across<N: Number>(by_unit: [N; 3], unit: [N; 3], length: N) -> [N; 3] {
    let along = dot(by_unit, unit);
    [0, 1, 2].each(|i| (by_unit[i] - along * unit[i]) / length)
}
