//! Closed surfaces of triangles.

use glam::{DAffine3, DVec3};

use super::gap_at;
use crate::each::EachEntry;

/// Triangles of a closed surface in the world, and boxes around them.
#[derive(Debug)]
pub(super) struct ClosedMesh {
    /// In the order of the leaves of `boxes`.
    triangles: Vec<[DVec3; 3]>,
    boxes: Vec<Node>,
}

/// A box around a run of triangles; the halves of the run are the next node and the one at `second`; a leaf has none.
#[derive(Debug, Clone, Copy)]
struct Node {
    low: DVec3,
    high: DVec3,
    first: usize,
    count: usize,
    second: Option<usize>,
}

/// Triangles of a leaf.
const LEAF: usize = 4;

impl ClosedMesh {
    /// A surface of at least one triangle.
    pub(super) fn new(mut triangles: Vec<[DVec3; 3]>) -> Self {
        let mut boxes = Vec::new();
        let count = triangles.len();
        halve(&mut triangles, 0, &mut boxes);
        debug_assert_eq!(count, triangles.len());
        Self { triangles, boxes }
    }

    /// The cube [-1, 1]³ under a map.
    pub(super) fn cube(to_world: &DAffine3) -> Self {
        let mut triangles = Vec::with_capacity(12);
        let mirrored = to_world.matrix3.determinant() < 0.0;
        for axis in 0..3 {
            for side in [-1.0, 1.0] {
                let corner = |u: f64, v: f64| {
                    let mut p = DVec3::ZERO;
                    (p[axis], p[(axis + 1) % 3], p[(axis + 2) % 3]) = (side, u, v);
                    to_world.transform_point3(p)
                };
                let [a, b, c, d] = [
                    corner(-1.0, -1.0),
                    corner(1.0, -1.0),
                    corner(1.0, 1.0),
                    corner(-1.0, 1.0),
                ];
                if (side < 0.0) != mirrored {
                    triangles.extend([[a, c, b], [a, d, c]]);
                } else {
                    triangles.extend([[a, b, c], [a, c, d]]);
                }
            }
        }
        Self::new(triangles)
    }

    pub(super) fn triangles(&self) -> &[[DVec3; 3]] {
        &self.triangles
    }

    /// The [`signed_volume`] inside.
    pub(super) fn volume(&self) -> f64 {
        signed_volume(&self.triangles)
    }

    /// Whether a point lies inside: whether the triangles' signed solid angles sum to ±4π, not 0 (VanOosterom1983).
    pub(super) fn holds(&self, p: DVec3) -> bool {
        let all = self.boxes[0];
        if p.cmplt(all.low).any() || p.cmpgt(all.high).any() {
            return false;
        }
        let angle: f64 = self.triangles.iter().map(|t| half_solid_angle(t, p)).sum();
        angle.abs() > std::f64::consts::PI
    }

    /// A place where two surfaces come nearer to each other than `gap`; None if there is none.
    pub(super) fn meets(&self, other: &Self, gap: f64) -> Option<DVec3> {
        let mut pairs = vec![(0, 0)];
        while let Some((i, j)) = pairs.pop() {
            let (a, b) = (self.boxes[i], other.boxes[j]);
            let reach = gap_at(a.low.abs().max(a.high.abs()), gap);
            if (a.low - reach).cmpgt(b.high).any() || (a.high + reach).cmplt(b.low).any() {
                continue;
            }
            match (a.second, b.second) {
                (Some(second), _) if a.count >= b.count || b.second.is_none() => {
                    pairs.extend([(i + 1, j), (second, j)]);
                }
                (_, Some(second)) => pairs.extend([(i, j + 1), (i, second)]),
                _ => {
                    let of = |mesh: &Self, node: Node| mesh.triangles[node.first..][..node.count].to_vec();
                    for s in of(self, a) {
                        for t in of(other, b) {
                            if near(&s, &t, gap_at(s[0], gap)) {
                                return Some(super::centroid(&s));
                            }
                        }
                    }
                }
            }
        }
        None
    }
}

/// The volume inside closed triangles, negative if they face inwards; zero without any.
pub(super) fn signed_volume(triangles: &[[DVec3; 3]]) -> f64 {
    let origin = triangles.first().map_or(DVec3::ZERO, |t| t[0]);
    let cone = |[a, b, c]: &[DVec3; 3]| (a - origin).dot((b - origin).cross(c - origin)) / 6.0;
    triangles.iter().map(cone).sum()
}

/// Builds the tree of boxes over the triangles, halving them at the median along the box's longest side.
fn halve(triangles: &mut [[DVec3; 3]], first: usize, boxes: &mut Vec<Node>) {
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    for p in triangles.as_flattened() {
        (low, high) = (low.min(*p), high.max(*p));
    }
    let index = boxes.len();
    let count = triangles.len();
    boxes.push(Node {
        low,
        high,
        first,
        count,
        second: None,
    });
    if count <= LEAF {
        return;
    }
    let extent = high - low;
    let axis = (1..3).fold(0, |best, a| if extent[a] > extent[best] { a } else { best });
    let key = |t: &[DVec3; 3]| t[0][axis] + t[1][axis] + t[2][axis];
    let (left, right) = {
        triangles.select_nth_unstable_by(count / 2, |s, t| key(s).total_cmp(&key(t)));
        triangles.split_at_mut(count / 2)
    };
    halve(left, first, boxes);
    boxes[index].second = Some(boxes.len());
    halve(right, first + count / 2, boxes);
}

/// Half the solid angle of a triangle seen from `p`, with the sign of the side that is seen.
fn half_solid_angle(triangle: &[DVec3; 3], p: DVec3) -> f64 {
    let [a, b, c] = triangle.each(|v| v - p);
    let (x, y, z) = (a.length(), b.length(), c.length());
    let sine = a.dot(b.cross(c));
    let cosine = x * y * z + a.dot(b) * z + a.dot(c) * y + b.dot(c) * x;
    sine.atan2(cosine)
}

/// Whether two triangles come nearer to each other than `gap`.
fn near(s: &[DVec3; 3], t: &[DVec3; 3], gap: f64) -> bool {
    let edges = |t: &[DVec3; 3]| [[t[0], t[1]], [t[1], t[2]], [t[2], t[0]]];
    edges(s).iter().any(|edge| pierces(edge, t))
        || edges(t).iter().any(|edge| pierces(edge, s))
        || s.iter().any(|p| (nearest_on_triangle(*p, t) - p).length() <= gap)
        || t.iter().any(|p| (nearest_on_triangle(*p, s) - p).length() <= gap)
        || edges(s)
            .iter()
            .any(|e| edges(t).iter().any(|f| segment_distance(e, f) <= gap))
}

/// Whether a segment passes through the inside of a triangle.
fn pierces([p, q]: &[DVec3; 2], [a, b, c]: &[DVec3; 3]) -> bool {
    let (d, e, f) = (*q - *p, *b - *a, *c - *a);
    let h = d.cross(f);
    // Zero where the segment is parallel to the plane: the quotients are then infinite or NaN, and the test below fails.
    let determinant = e.dot(h);
    let s = *p - *a;
    let u = s.dot(h) / determinant;
    let k = s.cross(e);
    let v = d.dot(k) / determinant;
    let t = f.dot(k) / determinant;
    u >= 0.0 && v >= 0.0 && u + v <= 1.0 && (0.0..=1.0).contains(&t)
}

/// The point of a triangle that is nearest to `p`.
pub(super) fn nearest_on_triangle(p: DVec3, triangle: &[DVec3; 3]) -> DVec3 {
    let [a, b, c] = *triangle;
    let normal = (b - a).cross(c - a);
    let square = normal.length_squared();
    let inside = |u: DVec3, v: DVec3| (v - u).cross(p - u).dot(normal) >= 0.0;
    if square > 0.0 && inside(a, b) && inside(b, c) && inside(c, a) {
        return p - normal * ((p - a).dot(normal) / square);
    }
    let along = [[a, b], [b, c], [c, a]].each(|edge| nearest_on_segment(p, &edge));
    let distance = |q: &DVec3| (*q - p).length_squared();
    let nearest = along.into_iter().min_by(|x, y| distance(x).total_cmp(&distance(y)));
    nearest.unwrap_or(a)
}

fn nearest_on_segment(p: DVec3, [a, b]: &[DVec3; 2]) -> DVec3 {
    let d = *b - *a;
    let square = d.length_squared();
    let t = if square > 0.0 { (p - *a).dot(d) / square } else { 0.0 };
    *a + d * t.clamp(0.0, 1.0)
}

/// The distance between two segments: between two inner points, or from one of the four ends.
fn segment_distance(first: &[DVec3; 2], second: &[DVec3; 2]) -> f64 {
    let (d, e, r) = (first[1] - first[0], second[1] - second[0], first[0] - second[0]);
    let (dd, ee, de) = (d.length_squared(), e.length_squared(), d.dot(e));
    let determinant = dd * ee - de * de;
    let s = (de * e.dot(r) - ee * d.dot(r)) / determinant;
    let t = (dd * e.dot(r) - de * d.dot(r)) / determinant;
    // The determinant of parallel segments is zero but for rounding; one of their ends is then among the nearest points.
    let inside = match (0.0..=1.0).contains(&s) && (0.0..=1.0).contains(&t) {
        true => (r + d * s - e * t).length(),
        false => f64::INFINITY,
    };
    let from = |p: DVec3, segment: &[DVec3; 2]| (nearest_on_segment(p, segment) - p).length();
    let ends = [
        from(first[0], second),
        from(first[1], second),
        from(second[0], first),
        from(second[1], first),
    ];
    ends.into_iter().fold(inside, f64::min)
}

#[cfg(test)]
mod tests;
