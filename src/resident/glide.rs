//! Where path vertices on a surface that moves may slide along the rays that hit it: away from borders, and only where the
//! reflectance is continuous along the surface (docs/method.md, section 21).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use glam::DVec3;

use super::affine;
use super::layout::{CornerRecord, LeafRecord, NONE, Rows, SurfaceRecord, Triangle, bsdf, lookup, surface, texture};
use super::paths::PathScene;
use crate::each::EachEntry;

/// Largest distance of a flat mesh's corners from its plane, as a part of the mesh's size and of its distance from the
/// origin, with which the rounding of f32 grows.
const FLATNESS: f64 = 1e-5;

/// Where points slide on a surface that moves, for its current place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Track {
    /// Three affine functions of a point in the world, whose squares sum to one at the border and to zero in the middle; of
    /// a box the largest of the three is left out.
    pub rows: Rows,
    pub middle: [f32; 3],
    /// Half the surface's least extent, in the world: points slide only on surfaces that are large beside a lobe's
    /// footprint.
    pub size: f32,
}

/// What the [`Track`] of a surface follows from, wherever the surface stands.
#[derive(Debug, Clone)]
pub enum Ground {
    /// Points do not slide: they follow the surface.
    Held,
    /// A shape that is no mesh: its kind and its place.
    Solid,
    /// A mesh: its border, as long as the mesh is flat.
    Sheet(Border),
}

/// The triangles of a mesh and its border edges, which belong to one triangle alone: (index of the triangle, corner at
/// which the edge begins).
#[derive(Debug, Clone)]
pub struct Border {
    triangles: Range<usize>,
    edges: Vec<(usize, usize)>,
}

impl Ground {
    /// The ground of the surface `record`, whose triangles are `triangles` among those of all meshes.
    pub fn new(paths: &PathScene, record: &SurfaceRecord, triangles: Range<usize>) -> Self {
        // A sampled point of a light follows it, and so must a point of it that a path hits; grids of distances have no
        // derivatives.
        if record.light != NONE || record.kind == surface::DISTANCES || !is_continuous(paths, record, &triangles) {
            return Self::Held;
        }
        match record.kind {
            surface::MESH => Self::Sheet(Border::new(&paths.corners, triangles)),
            _ => Self::Solid,
        }
    }

    /// Where points slide; None if they are held. `triangles` are those of all meshes.
    pub fn track(&self, record: &SurfaceRecord, triangles: &[Triangle]) -> Option<Track> {
        match self {
            Self::Held => None,
            Self::Solid => Some(track_of_solid(record)),
            Self::Sheet(border) => border.track(triangles),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Sheet(border) => size_of_val(&border.edges[..]),
            _ => 0,
        }
    }
}

/// Where points slide on a shape that is no mesh.
fn track_of_solid(record: &SurfaceRecord) -> Track {
    let none = [0.0; 4];
    let [x, y, z] = record.to_local;
    let (rows, middle) = match record.kind {
        surface::SPHERE => ([none; 3], [0.0; 3]),
        // Its ends are at z = 0 and z = 1.
        surface::CYLINDER => (
            [[2.0 * z[0], 2.0 * z[1], 2.0 * z[2], 2.0 * z[3] - 1.0], none, none],
            [0.0, 0.0, 0.5],
        ),
        surface::CUBE => ([x, y, z], [0.0; 3]),
        _ => ([x, y, none], [0.0; 3]),
    };
    // A flat shape has no extent along z, so that its third row does not count.
    let shrunk = match record.kind {
        surface::SPHERE | surface::CUBE => [x, y, z],
        surface::CYLINDER => [x, y, rows[0]],
        _ => [x, y, none],
    };
    let steepest = shrunk.each(|[a, b, c, _]| a * a + b * b + c * c);
    Track {
        rows,
        middle: affine(&record.to_world).transform_point3a(middle.into()).to_array(),
        size: 1.0 / steepest.into_iter().fold(0.0f32, f32::max).sqrt(),
    }
}

/// Whether a surface's BSDF is continuous along the surface.
fn is_continuous(paths: &PathScene, record: &SurfaceRecord, triangles: &Range<usize>) -> bool {
    let Some(bsdf) = paths.bsdfs.bsdfs.get(record.bsdf as usize) else {
        return false;
    };
    // Each triangle has its own tangent, so that anisotropic BSDFs jump from triangle to triangle.
    let is_mesh = record.kind == surface::MESH;
    if is_mesh && bsdf.flags & bsdf::ANISOTROPIC != 0 {
        return false;
    }
    let is_seamless = !is_mesh || has_one_uv_a_vertex(&paths.corners[triangles.clone()]);
    // Texture coordinates of other shapes jump along a seam.
    let unrolled = matches!(record.kind, surface::RECTANGLE | surface::CUBE | surface::MESH);
    let is_smooth = |number: u32| {
        let texture = &paths.bsdfs.textures[number as usize];
        match texture.kind {
            texture::CONSTANT => true,
            texture::BITMAP => unrolled && is_seamless && texture.filter == lookup::TRILINEAR,
            _ => false,
        }
    };
    let of_leaf = |leaf: &LeafRecord| {
        let factors = &paths.bsdfs.factors[leaf.first_factor as usize..][..leaf.factors as usize];
        // A relief, by normals or heights, has borders anywhere on the surface: where a turned normal faces away from the
        // viewer.
        leaf.relief == NONE
            && (leaf.first_texture..leaf.first_texture + leaf.textures).all(is_smooth)
            && factors.iter().all(|factor| is_smooth(factor.texture))
    };
    let mut sides = [bsdf.front, bsdf.back].into_iter();
    sides.all(|[first, count]| {
        paths.bsdfs.leaves[first as usize..][..count as usize]
            .iter()
            .all(of_leaf)
    })
}

/// Whether the triangles around each vertex agree on its texture coordinates.
fn has_one_uv_a_vertex(corners: &[CornerRecord]) -> bool {
    let mut known: HashMap<u32, [f32; 2]> = HashMap::new();
    corners.iter().all(|corner| {
        let [u, v, x, y] = corner.uv_ab;
        let coordinates = [[u, v], [x, y], corner.uv_c];
        let mut all = corner.vertices().into_iter().zip(coordinates);
        all.all(|(vertex, uv)| *known.entry(vertex).or_insert(uv) == uv)
    })
}

impl Border {
    fn new(corners: &[CornerRecord], triangles: Range<usize>) -> Self {
        // Duplicate triangles, and those with a vertex twice, are left out: an edge of the border would count more than
        // once.
        let mut known = HashSet::new();
        let is_new = |triangle: &usize| {
            let mut vertices = corners[*triangle].vertices();
            vertices.sort_unstable();
            let [a, b, c] = vertices;
            a != b && b != c && known.insert(vertices)
        };
        let whole: Vec<usize> = triangles.clone().filter(is_new).collect();
        let mut uses: HashMap<[u32; 2], u32> = HashMap::new();
        let edges = || {
            whole.iter().flat_map(|&triangle| {
                let vertices = corners[triangle].vertices();
                [0, 1, 2].map(|k: usize| {
                    let (a, b) = (vertices[k], vertices[(k + 1) % 3]);
                    ((triangle, k), [a.min(b), a.max(b)])
                })
            })
        };
        for (_, edge) in edges() {
            *uses.entry(edge).or_default() += 1;
        }
        let alone = edges().filter(|(_, edge)| uses[edge] == 1).map(|(place, _)| place);
        Self {
            edges: alone.collect(),
            triangles,
        }
    }

    /// The largest ellipse about the centre, with axes in proportion to the spread of the border, that crosses no border
    /// edge; None if the mesh is not flat, or its centre lies outside of it.
    fn track(&self, triangles: &[Triangle]) -> Option<Track> {
        let corners = |triangle: &Triangle| triangle.each(|p| DVec3::from_array(p.each(f64::from)));
        let all = || triangles[self.triangles.clone()].iter().map(corners);
        let area = |[a, b, c]: [DVec3; 3]| (b - a).cross(c - a);
        // The plane.
        let total: DVec3 = all().map(area).sum();
        let whole: f64 = all().map(|corners| area(corners).length()).sum();
        let n = total.try_normalize()?;
        let center = all()
            .map(|c| (c[0] + c[1] + c[2]) / 3.0 * area(c).length())
            .sum::<DVec3>()
            / whole;
        let distant = all()
            .flatten()
            .map(|p| (p - center).length())
            .fold(center.length(), f64::max);
        let is_off = |p: DVec3| (p - center).dot(n).abs() > FLATNESS * distant;
        let turns = |corners: [DVec3; 3]| area(corners).dot(n) < 0.0;
        if all().any(|corners| turns(corners) || corners.into_iter().any(is_off)) {
            return None;
        }
        // An orthonormal basis of the plane; `turn` below rotates it to the principal axes of the border's second moments.
        let s = n.any_orthonormal_vector();
        let t = n.cross(s);
        let edge = |&(triangle, k): &(usize, usize)| {
            let c = corners(&triangles[triangle]);
            [c[k], c[(k + 1) % 3]].map(|p| [(p - center).dot(s), (p - center).dot(t)])
        };
        let [mut xx, mut xy, mut yy] = [0.0; 3];
        for [[x, y], [z, w]] in self.edges.iter().map(edge) {
            let length = (z - x).hypot(w - y);
            // The integrals of products along the edge.
            let both = |a: f64, b: f64, c: f64, d: f64| length * (2.0 * (a * c + b * d) + a * d + b * c) / 6.0;
            xx += both(x, z, x, z);
            xy += both(x, z, y, w);
            yy += both(y, w, y, w);
        }
        let turn = 0.5 * (2.0 * xy).atan2(xx - yy);
        let (sin, cos) = turn.sin_cos();
        let spread = |a: f64, b: f64| (a * a * xx + 2.0 * a * b * xy + b * b * yy).sqrt();
        let wide = [spread(cos, sin), spread(-sin, cos)];
        let seen = |[x, y]: [f64; 2]| [(cos * x + sin * y) / wide[0], (cos * y - sin * x) / wide[1]];
        // The nearest edge, in units of the spread.
        let nearest = self.edges.iter().map(edge).map(|[a, b]| distance(seen(a), seen(b)));
        let radius = nearest.fold(f64::INFINITY, f64::min);
        let in_plane = |p: DVec3| seen([(p - center).dot(s), (p - center).dot(t)]);
        let holds_center = all().any(|corners| is_around(corners.map(in_plane)));
        if !(radius > 0.0 && radius.is_finite() && holds_center) {
            return None;
        }
        let row = |axis: DVec3, wide: f64| {
            let [x, y, z] = (axis / (wide * radius)).to_array();
            [x, y, z, -center.dot(axis) / (wide * radius)].each(|x| x as f32)
        };
        Some(Track {
            rows: [
                row(s * cos + t * sin, wide[0]),
                row(t * cos - s * sin, wide[1]),
                [0.0; 4],
            ],
            middle: center.to_array().each(|x| x as f32),
            size: (radius * wide[0].min(wide[1])) as f32,
        })
    }
}

/// The distance of the origin from the segment between two points.
fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let share = if square > 0.0 {
        (-(a[0] * along[0] + a[1] * along[1]) / square).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (a[0] + share * along[0]).hypot(a[1] + share * along[1])
}

/// Whether the origin lies within a triangle.
fn is_around(corners: [[f64; 2]; 3]) -> bool {
    let side = |k: usize| {
        let (a, b) = (corners[k], corners[(k + 1) % 3]);
        a[0] * b[1] - a[1] * b[0]
    };
    let sides = [side(0), side(1), side(2)];
    let is_line = sides.iter().sum::<f64>() == 0.0;
    !is_line && (sides.iter().all(|s| *s >= 0.0) || sides.iter().all(|s| *s <= 0.0))
}
