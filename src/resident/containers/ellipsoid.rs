//! Ellipsoids: the unit sphere under an affine map.

use glam::{DAffine3, DMat3, DVec3};

use super::gap_at;
use crate::each::EachEntry;

/// Iterations of bisection, and sweeps of Jacobi's method: both converge long before.
const ROUNDS: usize = 200;
const SWEEPS: usize = 16;

/// The unit sphere under an affine map.
#[derive(Debug)]
pub(super) struct Ellipsoid {
    to_world: DAffine3,
    to_local: DAffine3,
}

impl Ellipsoid {
    pub(super) fn new(to_world: DAffine3) -> Self {
        Self {
            to_world,
            to_local: to_world.inverse(),
        }
    }

    pub(super) fn center(&self) -> DVec3 {
        self.to_world.translation
    }

    pub(super) fn holds(&self, p: DVec3) -> bool {
        self.to_local.transform_point3(p).length_squared() < 1.0
    }

    pub(super) fn volume(&self) -> f64 {
        4.0 / 3.0 * std::f64::consts::PI * self.to_world.matrix3.determinant().abs()
    }

    /// A point on the surface.
    pub(super) fn point(&self) -> DVec3 {
        self.to_world.transform_point3(DVec3::X)
    }

    /// The point of the surface in the direction of `p` from its centre.
    pub(super) fn nearest(&self, p: DVec3) -> DVec3 {
        let local = self.to_local.transform_point3(p).normalize_or(DVec3::X);
        self.to_world.transform_point3(local)
    }

    /// The gap at the centre in the space where this is the unit sphere: over the smallest half axis, whose inverse is the
    /// largest singular value of the map to that space.
    fn local_gap(&self, gap: f64) -> f64 {
        let m = self.to_local.matrix3;
        let (squares, _) = eigen(m.transpose() * m);
        gap_at(self.to_world.translation, gap) * squares.into_iter().fold(0.0, f64::max).sqrt()
    }

    /// Whether the surface comes nearer to a triangle than `gap`: whether distances of the triangle's points from the
    /// centre reach from below 1 to above, in the space where this is the unit sphere.
    pub(super) fn meets_triangle(&self, triangle: &[DVec3; 3], gap: f64) -> bool {
        let slack = self.local_gap(gap);
        let local = triangle.each(|p| self.to_local.transform_point3(p));
        let far = local.iter().map(|p| p.length()).fold(0.0, f64::max);
        far >= 1.0 - slack && super::closed_mesh::nearest_on_triangle(DVec3::ZERO, &local).length() <= 1.0 + slack
    }

    /// Whether the surface comes nearer to another's than `gap`.
    pub(super) fn meets(&self, other: &Self, gap: f64) -> bool {
        let slack = self.local_gap(gap).max(other.local_gap(gap));
        let local = self.to_local * other.to_world;
        let [near, far] = distances(&local);
        near <= 1.0 + slack && far >= 1.0 - slack
    }
}

/// The least and the largest distance from the origin of the points M u + c with |u| = 1.
///
/// At both, MᵀM u + Mᵀc = λ u: in the axes of MᵀM, whose eigenvalues are μ, u = b / (λ − μ) with b = Mᵀc. |u| = 1
/// determines λ, which lies above all μ for the largest distance and below them for the least.
fn distances(map: &DAffine3) -> [f64; 2] {
    let (m, c) = (map.matrix3, map.translation);
    let (eigenvalues, axes) = eigen(m.transpose() * m);
    let b = axes.transpose() * (m.transpose() * c);
    let extreme = |sign: f64| {
        // Negating matrix and vector turns the smallest distance into the largest, so that one search finds both.
        let mu = eigenvalues.each(|x| sign * x);
        let b = sign * b;
        let top = mu.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let at = |lambda: f64| DVec3::from_array([0, 1, 2].each(|a| over(b[a], lambda - mu[a])));
        // `high` is at least a rounding above `top`, at which a small component of b would be divided by zero.
        let (mut low, mut high) = (top, top + b.length().max(top.abs() * f64::EPSILON));
        for _ in 0..ROUNDS {
            let middle = 0.5 * (low + high);
            *(if at(middle).length_squared() > 1.0 {
                &mut low
            } else {
                &mut high
            }) = middle;
        }
        let mut u = at(high);
        // Where b is zero along the axis of the largest μ, the rest of u lies along it.
        let rest = (1.0 - u.length_squared()).max(0.0).sqrt();
        let longest = (1..3).fold(0, |best, a| if mu[a] > mu[best] { a } else { best });
        u[longest] += if u[longest] < 0.0 { -rest } else { rest };
        (m * (axes * u.normalize_or(DVec3::X)) + c).length()
    };
    [extreme(-1.0), extreme(1.0)]
}

/// a / b, and 0 where a is 0, even over 0.
fn over(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / b }
}

/// Eigenvalues and eigenvectors (as columns) of a symmetric matrix, by Jacobi's rotations.
fn eigen(matrix: DMat3) -> ([f64; 3], DMat3) {
    let (mut a, mut axes) = (matrix, DMat3::IDENTITY);
    for _ in 0..SWEEPS {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            let off = a.col(q)[p];
            if off == 0.0 {
                continue;
            }
            let angle = 0.5 * (2.0 * off).atan2(a.col(q)[q] - a.col(p)[p]);
            let (sine, cosine) = angle.sin_cos();
            let mut turn = DMat3::IDENTITY;
            turn.col_mut(p)[p] = cosine;
            turn.col_mut(q)[q] = cosine;
            turn.col_mut(q)[p] = sine;
            turn.col_mut(p)[q] = -sine;
            a = turn.transpose() * a * turn;
            axes *= turn;
        }
    }
    ([0, 1, 2].each(|i| a.col(i)[i]), axes)
}

#[cfg(test)]
mod tests;
