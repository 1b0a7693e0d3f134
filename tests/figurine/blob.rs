//! The figurine: a sitting animal of metaballs as a closed mesh of triangles with smooth normals.
//!
//! The field is φ(p) = −ln Σ exp(k (rᵢ − |p − cᵢ|)) / k over balls of centres cᵢ and radii rᵢ, which is close to a distance
//! and negative inside. Its surface φ = 0 becomes a mesh by surface nets: a vertex for each cell of a grid that the surface
//! passes through, and a quadrilateral for each edge of the grid whose ends lie on different sides.

use std::collections::HashMap;

use glam::{DVec3, IVec3, dvec3};
use prbopt::io::mesh::Mesh;

/// Centres and radii: body, chest, head, muzzle, two ears of two balls, fore and hind paws, tail.
const BALLS: [([f64; 3], f64); 13] = [
    ([0.0, 0.26, -0.02], 0.215),
    ([0.0, 0.43, 0.05], 0.145),
    ([0.0, 0.66, 0.09], 0.145),
    ([0.0, 0.61, 0.215], 0.07),
    ([0.085, 0.85, 0.05], 0.05),
    ([-0.085, 0.85, 0.05], 0.05),
    ([0.115, 0.97, 0.015], 0.042),
    ([-0.115, 0.97, 0.015], 0.042),
    ([0.08, 0.085, 0.21], 0.06),
    ([-0.08, 0.085, 0.21], 0.06),
    ([0.19, 0.105, -0.02], 0.09),
    ([-0.19, 0.105, -0.02], 0.09),
    ([0.0, 0.15, -0.27], 0.075),
];

/// How sharply balls are told from each other: they melt over a distance of about 1/k.
const SHARPNESS: f64 = 24.0;

/// Edge of the grid's cells, and a place of the grid such that no corner lies on the surface by symmetry.
const CELL: f64 = 0.0225;
const CORNER: DVec3 = dvec3(-0.507, -0.112, -0.513);
const CELLS: i32 = 56;

/// The field and its gradient.
fn field(p: DVec3) -> (f64, DVec3) {
    let (mut sum, mut gradient) = (0.0, DVec3::ZERO);
    for (center, radius) in BALLS {
        let away = p - DVec3::from(center);
        let distance = away.length();
        let share = (SHARPNESS * (radius - distance)).exp();
        sum += share;
        gradient += share / distance * away;
    }
    (-sum.ln() / SHARPNESS, gradient / sum)
}

/// The point of the surface near another, by Newton's method along the gradient.
fn project(mut p: DVec3) -> DVec3 {
    for _ in 0..20 {
        let (value, gradient) = field(p);
        p -= value / gradient.length_squared() * gradient;
    }
    p
}

/// The mesh and its place among the balls.
pub(super) struct Figurine {
    pub mesh: Mesh,
    low: f64,
    scale: f64,
}

impl Figurine {
    /// How far below the surface a point lies, about.
    pub(super) fn depth(&self, p: DVec3) -> f64 {
        -self.scale * field(p / self.scale + dvec3(0.0, self.low, 0.0)).0
    }
}

/// The mesh, whose largest extent is one and whose lowest vertex lies at y = 0.
pub(super) fn figurine() -> Figurine {
    let place = |corner: IVec3| CORNER + CELL * corner.as_dvec3();
    let mut inside = HashMap::new();
    for z in 0..=CELLS {
        for y in 0..=CELLS {
            for x in 0..=CELLS {
                let corner = IVec3::new(x, y, z);
                inside.insert(corner, field(place(corner)).0 < 0.0);
            }
        }
    }
    let mut vertices: Vec<DVec3> = Vec::new();
    let mut of_cell: HashMap<IVec3, u32> = HashMap::new();
    let mut triangles = Vec::new();
    for z in 1..CELLS {
        for y in 1..CELLS {
            for x in 1..CELLS {
                let corner = IVec3::new(x, y, z);
                for axis in 0..3 {
                    let to = corner + IVec3::AXES[axis];
                    let (from_inside, to_inside) = (inside[&corner], inside[&to]);
                    if from_inside == to_inside {
                        continue;
                    }
                    // The four cells around the edge, counter-clockwise seen from its end.
                    let [u, v] = [IVec3::AXES[(axis + 1) % 3], IVec3::AXES[(axis + 2) % 3]];
                    let mut quad = [corner - u - v, corner - v, corner, corner - u].map(|cell| {
                        *of_cell.entry(cell).or_insert_with(|| {
                            vertices.push(project(crossing(&inside, cell, &place)));
                            (vertices.len() - 1) as u32
                        })
                    });
                    // It faces what is outside.
                    if to_inside {
                        quad.reverse();
                    }
                    let [a, b, c, d] = quad;
                    let length = |a: u32, b: u32| vertices[a as usize].distance(vertices[b as usize]);
                    // Cut along the shorter diagonal; of two that are as long by symmetry always along the same.
                    triangles.extend(match length(a, c) < 0.999 * length(b, d) {
                        true => [[a, b, c], [a, c, d]],
                        false => [[a, b, d], [b, c, d]],
                    });
                }
            }
        }
    }
    let normals = vertices.iter().map(|p| field(*p).1.normalize().as_vec3().to_array());
    let normals = normals.collect();
    let low = vertices.iter().fold(DVec3::INFINITY, |low, p| low.min(*p));
    let high = vertices.iter().fold(DVec3::NEG_INFINITY, |high, p| high.max(*p));
    let scale = (high - low).max_element().recip();
    let positions = vertices.iter().map(|p| {
        let moved = (*p - dvec3(0.0, low.y, 0.0)) * scale;
        moved.as_vec3().to_array()
    });
    let mesh = Mesh {
        positions: positions.collect(),
        normals,
        triangles,
        ..Mesh::default()
    };
    let low = low.y;
    Figurine { mesh, low, scale }
}

/// The mean of where the surface crosses the edges of a cell.
fn crossing(inside: &HashMap<IVec3, bool>, cell: IVec3, place: &impl Fn(IVec3) -> DVec3) -> DVec3 {
    let (mut sum, mut count) = (DVec3::ZERO, 0.0);
    for axis in 0..3 {
        let [u, v] = [IVec3::AXES[(axis + 1) % 3], IVec3::AXES[(axis + 2) % 3]];
        for start in [cell, cell + u, cell + v, cell + u + v] {
            let end = start + IVec3::AXES[axis];
            if inside[&start] != inside[&end] {
                let [a, b] = [place(start), place(end)];
                let [at, to] = [field(a).0, field(b).0];
                sum += a.lerp(b, at / (at - to));
                count += 1.0;
            }
        }
    }
    sum / count
}
