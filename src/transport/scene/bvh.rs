//! Rays against a hierarchy of triangles: the first hit.
//!
//! No ray slips through an edge or a vertex that triangles share. Triangles are tested as by Woop, Benthin and Wald
//! (2013): sheared so that the ray runs along an axis, where an edge has the same sign for both its triangles. An edge
//! function that rounding leaves unsure counts as zero, which is inside, so that this also holds where a compiler fuses
//! a multiplication with an addition. Boxes are widened by what shearing may shift a vertex.

use crate::resident::bvh::MAX_LEVELS;
use crate::resident::layout::{NodeRecord, TriangleRecord};

/// Where a ray meets a triangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Distance along the ray in lengths of its direction.
    pub t: f32,
    /// Index of the triangle's record.
    pub triangle: u32,
    /// The point is (1 - u - v) a + u b + v c.
    pub u: f32,
    pub v: f32,
}

/// Beyond every distance.
pub const FAR: f32 = f32::MAX;

/// Edge functions below this multiple of their terms have no sure sign.
pub const EDGE_TOLERANCE: f32 = 2.0 * f32::EPSILON;

/// How far shearing and the tests of boxes may be off, as a multiple of the distance to the farthest corner.
pub const BOX_TOLERANCE: f32 = 8.0 * f32::EPSILON;

/// Components of a direction below this are replaced, so that each has an inverse.
pub const MIN_DIRECTION: f32 = 1e-20;

/// The first hit with `t_min` < t < `t_max`, from either side of a triangle. Visits nodes from near to far.
///
/// `direction` need not be of length one but must be finite and not zero.
pub fn intersect(
    nodes: &[NodeRecord],
    triangles: &[TriangleRecord],
    origin: [f32; 3],
    direction: [f32; 3],
    t_min: f32,
    t_max: f32,
) -> Option<Hit> {
    let root = nodes.first()?;
    let slabs = slabs(root, origin, direction);
    let shear = shear(direction);
    let mut best = None;
    let mut end = t_max.min(FAR);
    // Nodes in wait, and where the ray enters them: at most one a level.
    let mut waiting = [(0u32, 0.0f32); MAX_LEVELS];
    let mut depth = 0;
    let mut node = root;
    if enter(root, origin, &slabs, t_min, end) >= FAR {
        return None;
    }
    loop {
        if node.count == 0 {
            let (left, right) = (node.first, node.first + 1);
            let t_left = enter(&nodes[left as usize], origin, &slabs, t_min, end);
            let t_right = enter(&nodes[right as usize], origin, &slabs, t_min, end);
            let (near, far) = if t_right < t_left { (right, left) } else { (left, right) };
            let (t_near, t_far) = (t_left.min(t_right), t_left.max(t_right));
            // A box that is missed lies at FAR, which no hit does.
            if t_near < FAR {
                if t_far < FAR {
                    waiting[depth] = (far, t_far);
                    depth += 1;
                }
                node = &nodes[near as usize];
                continue;
            }
        } else {
            for index in node.first..node.first + node.count {
                if let Some(hit) = intersect_triangle(&triangles[index as usize], index, origin, &shear, t_min, end) {
                    end = hit.t;
                    best = Some(hit);
                }
            }
        }
        // A node that begins behind the hit found meanwhile is left out.
        loop {
            if depth == 0 {
                return best;
            }
            depth -= 1;
            let (index, t) = waiting[depth];
            if t <= end {
                node = &nodes[index as usize];
                break;
            }
        }
    }
}

/// What a ray has in common for all boxes.
struct Slabs {
    inverse: [f32; 3],
    /// How far each box is widened.
    slack: f32,
}

fn slabs(root: &NodeRecord, origin: [f32; 3], direction: [f32; 3]) -> Slabs {
    let mut inverse = [0.0; 3];
    let mut reach = 0.0f32;
    for axis in 0..3 {
        let least = if direction[axis] < 0.0 {
            -MIN_DIRECTION
        } else {
            MIN_DIRECTION
        };
        inverse[axis] = 1.0
            / if direction[axis].abs() < MIN_DIRECTION {
                least
            } else {
                direction[axis]
            };
        let farthest = (root.low[axis] - origin[axis])
            .abs()
            .max((root.high[axis] - origin[axis]).abs());
        reach = reach.max(farthest);
    }
    Slabs {
        inverse,
        slack: BOX_TOLERANCE * reach,
    }
}

/// Where the ray enters a box, not before `t_min`; [`FAR`] if it misses it between `t_min` and `t_max`.
#[inline(always)]
fn enter(node: &NodeRecord, origin: [f32; 3], slabs: &Slabs, t_min: f32, t_max: f32) -> f32 {
    let (mut near, mut far) = (t_min, t_max);
    for axis in 0..3 {
        let low = ((node.low[axis] - origin[axis]) - slabs.slack) * slabs.inverse[axis];
        let high = ((node.high[axis] - origin[axis]) + slabs.slack) * slabs.inverse[axis];
        near = near.max(low.min(high));
        far = far.min(low.max(high));
    }
    if near <= far { near } else { FAR }
}

/// The map that turns a ray's direction into the third axis: axes in their new order, and by how much each is sheared
/// or scaled.
struct Shear {
    axes: [usize; 3],
    by: [f32; 3],
}

fn shear(direction: [f32; 3]) -> Shear {
    let size = direction.map(f32::abs);
    let mut last = 0;
    if size[1] > size[last] {
        last = 1;
    }
    if size[2] > size[last] {
        last = 2;
    }
    let axes = [(last + 1) % 3, (last + 2) % 3, last];
    let along = direction[last];
    Shear {
        axes,
        by: [direction[axes[0]] / along, direction[axes[1]] / along, 1.0 / along],
    }
}

/// A vertex as the ray sees it: at distance zero it passes through (0, 0).
#[inline(always)]
fn shear_vertex(p: [f32; 3], origin: [f32; 3], shear: &Shear) -> [f32; 3] {
    let [x, y, z] = shear.axes.map(|axis| p[axis] - origin[axis]);
    [x - shear.by[0] * z, y - shear.by[1] * z, shear.by[2] * z]
}

/// Twice the area of the triangle from the ray to an edge; its sign tells the side.
#[inline(always)]
fn edge(p: [f32; 3], q: [f32; 3]) -> f32 {
    let (left, right) = (p[0] * q[1], p[1] * q[0]);
    let area = left - right;
    let unsure = area.abs() <= EDGE_TOLERANCE * left.abs().max(right.abs());
    if unsure { 0.0 } else { area }
}

/// The hit of one triangle with `t_min` < t < `t_max`.
#[inline(always)]
fn intersect_triangle(
    triangle: &TriangleRecord,
    index: u32,
    origin: [f32; 3],
    shear: &Shear,
    t_min: f32,
    t_max: f32,
) -> Option<Hit> {
    let a = shear_vertex(triangle.a, origin, shear);
    let b = shear_vertex(triangle.b, origin, shear);
    let c = shear_vertex(triangle.c, origin, shear);
    let (u, v, w) = (edge(b, c), edge(c, a), edge(a, b));
    if u.min(v).min(w) < 0.0 && u.max(v).max(w) > 0.0 {
        return None;
    }
    let sum = u + v + w;
    if sum == 0.0 {
        return None;
    }
    let t = (u * a[2] + v * b[2] + w * c[2]) / sum;
    if !(t > t_min && t < t_max) {
        return None;
    }
    Some(Hit {
        t,
        triangle: index,
        u: v / sum,
        v: w / sum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::bvh::Hierarchy;
    use bytemuck::Zeroable;
    use rand_core::Rng;
    use rand_pcg::Pcg32;

    fn uniform(random: &mut Pcg32) -> f32 {
        (random.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    fn point(random: &mut Pcg32) -> [f32; 3] {
        [(); 3].map(|()| 2.0 * uniform(random) - 1.0)
    }

    fn add(a: [f32; 3], s: f32, b: [f32; 3]) -> [f32; 3] {
        std::array::from_fn(|i| a[i] + s * b[i])
    }

    fn record(a: [f32; 3], b: [f32; 3], c: [f32; 3]) -> TriangleRecord {
        TriangleRecord {
            a,
            b,
            c,
            ..TriangleRecord::zeroed()
        }
    }

    /// Möller and Trumbore's test in f64: t, u, v, if the hit is at least `margin` inside the triangle.
    fn oracle(t: &TriangleRecord, origin: [f32; 3], direction: [f32; 3], margin: f64) -> Option<[f64; 3]> {
        let wide = |v: [f32; 3]| glam::DVec3::from_array(v.map(f64::from));
        let (a, d) = (wide(t.a), wide(direction));
        let (e1, e2) = (wide(t.b) - a, wide(t.c) - a);
        let det = e1.dot(d.cross(e2));
        let s = wide(origin) - a;
        let (u, v) = (s.dot(d.cross(e2)) / det, d.dot(s.cross(e1)) / det);
        let inside = u >= margin && v >= margin && u + v <= 1.0 - margin;
        inside.then(|| [e2.dot(s.cross(e1)) / det, u, v])
    }

    /// Rays that hit or miss everything clearly agree with brute force; what they hit is where they say.
    #[test]
    fn hits_are_those_of_brute_force() {
        let mut random = Pcg32::new(1, 2);
        let mut hits = 0;
        for scale in [1.0, 1e-3, 1e4] {
            let soup: Vec<TriangleRecord> = (0..500)
                .map(|_| {
                    let a = point(&mut random);
                    let [b, c] = [(); 2].map(|()| add(a, 0.2, point(&mut random)));
                    let [a, b, c] = [a, b, c].map(|p| p.map(|v| v * scale));
                    record(a, b, c)
                })
                .collect();
            let hierarchy = Hierarchy::new(soup);
            let (nodes, triangles) = (&hierarchy.nodes[..], &hierarchy.triangles[..]);
            for i in 0..3000 {
                let origin = point(&mut random).map(|v| v * 2.0 * scale);
                let mut direction = point(&mut random);
                // Some rays run along axes and planes.
                direction.iter_mut().take(i % 3).for_each(|d| *d = 0.0);
                let all = |margin| {
                    let found = triangles
                        .iter()
                        .filter_map(move |t| oracle(t, origin, direction, margin));
                    found.map(|h| h[0]).filter(|&t| t > 0.0)
                };
                if all(-1e-3).count() != all(1e-3).count() {
                    continue;
                }
                let first = all(0.0).fold(f64::INFINITY, f64::min);
                let hit = intersect(nodes, triangles, origin, direction, 0.0, f32::INFINITY);
                let within = |end| intersect(nodes, triangles, origin, direction, 0.0, end).is_some();
                assert_eq!(hit.is_some(), first.is_finite());
                let Some(hit) = hit else { continue };
                hits += 1;
                let tolerance = 2e-5 * f64::from(scale);
                assert!(
                    (f64::from(hit.t) - first).abs() < tolerance.max(2e-5 * first),
                    "{} {first}",
                    hit.t
                );
                let t = &triangles[hit.triangle as usize];
                let [_, u, v] = oracle(t, origin, direction, 0.0).expect("it was hit");
                assert!((f64::from(hit.u) - u).abs() < 1e-2 && (f64::from(hit.v) - v).abs() < 1e-2);
                assert!(!within(hit.t * 0.999) && within(hit.t * 1.001));
                let beyond = intersect(nodes, triangles, origin, direction, hit.t, f32::INFINITY);
                assert!(beyond.is_none_or(|next| next.t > hit.t));
            }
        }
        assert!(hits > 500, "{hits} hits");
    }

    /// A sphere of triangles around a centre; its poles have many neighbours.
    fn sphere(center: [f32; 3], radius: f32, rings: usize) -> Vec<TriangleRecord> {
        let vertex = |i: usize, j: usize| {
            let theta = std::f32::consts::PI * i as f32 / rings as f32;
            let phi = std::f32::consts::PI * (j % (2 * rings)) as f32 / rings as f32;
            // The poles are points, not rings.
            let sine = if i.is_multiple_of(rings) { 0.0 } else { theta.sin() };
            add(center, radius, [sine * phi.cos(), sine * phi.sin(), theta.cos()])
        };
        let quads = (0..rings).flat_map(|i| (0..2 * rings).map(move |j| (i, j)));
        quads
            .flat_map(|(i, j)| {
                let [a, b, c, d] = [vertex(i, j), vertex(i + 1, j), vertex(i + 1, j + 1), vertex(i, j + 1)];
                [record(a, b, c), record(a, c, d)]
            })
            .filter(|t| t.a != t.b && t.b != t.c && t.c != t.a)
            .collect()
    }

    /// From inside a closed surface nothing gets out: not at vertices, nor along edges, nor far from the world's
    /// origin.
    #[test]
    fn closed_surfaces_do_not_leak() {
        let mut random = Pcg32::new(5, 6);
        for (center, radius) in [
            ([0.0; 3], 1.0),
            ([100.0, -300.0, 1000.0], 1.0),
            ([0.3, 0.1, -0.2], 1e-3),
            ([1e3, 0.0, 0.0], 2e3),
        ] {
            let hierarchy = Hierarchy::new(sphere(center, radius, 24));
            let (nodes, triangles) = (&hierarchy.nodes[..], &hierarchy.triangles[..]);
            for i in 0..60_000 {
                let origin = match i % 3 {
                    0 => center,
                    _ => add(center, 0.5 * radius, point(&mut random)),
                };
                let t = &triangles[random.next_u32() as usize % triangles.len()];
                let along = [0.0, 0.5, uniform(&mut random)][i % 3];
                let target = add(t.a, along, add(t.b, -1.0, t.a));
                let direction = add(target, -1.0, origin);
                let hit = intersect(nodes, triangles, origin, direction, 0.0, f32::INFINITY);
                assert!(hit.is_some(), "from {origin:?} along {direction:?}");
            }
        }
    }

    /// A cube's faces are as thin as boxes get; rays run in their planes' directions and at its corners and edges.
    #[test]
    fn cubes_do_not_leak() {
        let corner = |i: usize| [0, 1, 2].map(|axis| if i >> axis & 1 == 1 { 1.0 } else { -1.0 });
        let quads = [
            [0, 2, 3, 1],
            [4, 5, 7, 6],
            [0, 1, 5, 4],
            [2, 6, 7, 3],
            [0, 4, 6, 2],
            [1, 3, 7, 5],
        ];
        let faces = quads.iter().flat_map(|&[a, b, c, d]| {
            let [a, b, c, d] = [a, b, c, d].map(corner);
            [record(a, b, c), record(a, c, d)]
        });
        let hierarchy = Hierarchy::new(faces.collect());
        let mut random = Pcg32::new(9, 3);
        for i in 0..100_000 {
            let origin = if i % 2 == 0 {
                [0.0; 3]
            } else {
                point(&mut random).map(|v| 0.999 * v)
            };
            let mut target = point(&mut random);
            for axis in 0..3 {
                if random.next_u32().is_multiple_of(2) || axis == i % 3 {
                    target[axis] = if target[axis] < 0.0 { -1.0 } else { 1.0 };
                }
            }
            let direction = add(target, -1.0, origin);
            let hit = intersect(
                &hierarchy.nodes,
                &hierarchy.triangles,
                origin,
                direction,
                0.0,
                f32::INFINITY,
            );
            let hit = hit.unwrap_or_else(|| panic!("from {origin:?} along {direction:?}"));
            assert!(
                (hit.t - 1.0).abs() < 1e-4,
                "{hit:?} from {origin:?} along {direction:?}"
            );
        }
    }

    #[test]
    fn nothing_is_hit_where_there_is_nothing() {
        assert_eq!(intersect(&[], &[], [0.0; 3], [0.0, 0.0, 1.0], 0.0, f32::INFINITY), None);
        let point = record([0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]);
        let line = record([0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 3.0]);
        let hierarchy = Hierarchy::new(vec![point, line]);
        let hit = intersect(
            &hierarchy.nodes,
            &hierarchy.triangles,
            [0.0; 3],
            [0.0, 0.0, 1.0],
            0.0,
            9.0,
        );
        assert_eq!(hit, None);
    }
}
