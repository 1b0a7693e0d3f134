//! Points of meshes whose vertices, or the normals there, follow parameters, and the derivatives by these (docs/method.md,
//! section 21).

use super::bsdf::local::{inner, lift, outer};
use super::motion::{Anchor, ByMoved, Moved, direction, direction_adjoint, minus, plus, scaled};
use super::records::{Fields, SceneView, Sink};
use super::shape::Hit;
use crate::each::EachEntry;
use crate::resident::vertices::Vertices;
use crate::transport::number::Number;

/// A triangle whose vertices or normals follow parameters: vertex numbers, barycentric weights of a point (`shares`),
/// and the coefficients of ∂p/∂u in its two edges (`along`).
struct Corners {
    vertices: [u32; 3],
    shares: [f32; 3],
    along: [f32; 2],
    /// -1 if normals are flipped.
    side: f32,
}

#[inline]
fn corners_of(scene: &SceneView, hit: &Hit) -> Corners {
    let corner = &scene.corners[hit.point.triangle as usize];
    let [to_b, to_c] = hit.point.weights;
    let [u, v, x, y] = corner.uv_ab;
    let [[du1, dv1], [du2, dv2]] = [[x - u, y - v], [corner.uv_c[0] - u, corner.uv_c[1] - v]];
    let determinant = du1 * dv2 - dv1 * du2;
    Corners {
        vertices: corner.vertices(),
        shares: [1.0 - to_b - to_c, to_b, to_c],
        along: match determinant == 0.0 {
            true => [1.0, 0.0],
            false => [dv2 / determinant, -dv1 / determinant],
        },
        side: scene.surfaces[hit.surface as usize].side,
    }
}

impl Corners {
    /// The three vectors that `values` have for the corners.
    #[inline]
    fn of<N: Number>(&self, values: impl Fn(usize) -> N) -> [[N; 3]; 3] {
        self.vertices
            .each(|v| [0, 1, 2].each(|a: usize| values(3 * v as usize + a)))
    }

    /// The mean of three vectors with the point's barycentric weights, negated where normals are flipped.
    #[inline]
    fn mean<N: Number>(&self, vectors: [[N; 3]; 3]) -> [N; 3] {
        let mut mean = [N::lift(0.0); 3];
        for (vector, share) in vectors.into_iter().zip(self.shares) {
            mean = plus(mean, scaled(vector, N::lift(self.side * share)));
        }
        mean
    }
}

/// The motion of a point of a triangle whose vertices stay and whose vertex normals turn: of the shading normal alone.
#[inline]
pub fn turned_normal<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    slot: u32,
    still: Moved<N>,
) -> Moved<N> {
    let corners = corners_of(scene, &anchor.hit);
    let old = corners.mean(corners.of(|i| N::lift(fields.sampling(slot)[i])));
    let new = corners.mean(corners.of(|i| fields.integrand(slot)[i]));
    // Where the vertex normals cancel out, the shading normal is the face's own, which stays.
    if inner(old, old).value() == 0.0 {
        return still;
    }
    Moved {
        normal: minus(direction(new), direction(old)),
        ..still
    }
}

/// The adjoint of [`turned_normal`].
#[inline]
pub fn turned_normal_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    slot: u32,
    d: &ByMoved<N>,
    sink: &mut S,
) {
    let corners = corners_of(scene, &anchor.hit);
    let normal = corners.mean(corners.of(|i| N::lift(fields.sampling(slot)[i])));
    if inner(normal, normal).value() == 0.0 {
        return;
    }
    let by_mean = direction_adjoint(normal, d.normal);
    for (v, share) in corners.vertices.into_iter().zip(corners.shares) {
        sink.entries(slot, 3 * v, scaled(by_mean, N::lift(corners.side * share)), 3);
    }
}

/// The two edges of a triangle from its first vertex.
#[inline]
fn edges<N: Number>([a, b, c]: [[N; 3]; 3]) -> [[N; 3]; 2] {
    [minus(b, a), minus(c, a)]
}

/// A vertex's position; `look` returns an entry of the mesh's parameter: a coordinate, or a texel of the heights that
/// displace it.
#[inline]
fn position<N: Number>(mesh: &Vertices, vertex: u32, look: &impl Fn(usize) -> N) -> [N; 3] {
    let Some(relief) = &mesh.relief else {
        return [0, 1, 2].each(|a: usize| look(3 * vertex as usize + a));
    };
    let (rest, along, at) = relief.of(vertex);
    let mut height = N::lift(0.0);
    for (texel, weight) in at.texels.into_iter().zip(at.weights) {
        height += look(texel as usize) * N::lift(weight);
    }
    plus(lift(rest), scaled(lift(along), height))
}

/// The adjoint of [`position`].
#[inline]
fn position_adjoint<N: Number, S: Sink<N>>(mesh: &Vertices, vertex: u32, d: [N; 3], sink: &mut S) {
    let Some(relief) = &mesh.relief else {
        return sink.entries(mesh.slot, 3 * vertex, d, 3);
    };
    let (_, along, at) = relief.of(vertex);
    let by_height = inner(lift(along), d);
    for (texel, weight) in at.texels.into_iter().zip(at.weights) {
        if weight != 0.0 {
            let none = N::lift(0.0);
            sink.entries(mesh.slot, texel, [by_height * N::lift(weight), none, none], 1);
        }
    }
}

/// The angle between two vectors of any length but zero.
#[inline]
fn angle<N: Number>([a, b]: [[N; 3]; 2]) -> N {
    let scale = (inner(a, a) * inner(b, b)).sqrt().recip();
    let across = outer(a, b);
    N::angle(inner(across, across).sqrt() * scale, inner(a, b) * scale)
}

/// Most triangles around a vertex whose angles [`vertex_normal_adjoint`] keeps; those of others it computes twice.
const KEPT: usize = 16;

/// The normals of the triangles around a vertex, weighed by their angles there (Thuermer1998), and the angles of the first;
/// triangles without area have none.
#[inline]
fn sum_of_normals<N: Number>(
    mesh: &Vertices,
    around: &[[u32; 2]],
    vertex: u32,
    look: &impl Fn(usize) -> N,
) -> ([N; 3], [N; KEPT]) {
    let here = position(mesh, vertex, look);
    let mut sum = [N::lift(0.0); 3];
    let mut angles = [N::lift(0.0); KEPT];
    for (k, others) in around.iter().enumerate() {
        let edges = others.each(|other| minus(position(mesh, other, look), here));
        let face = outer(edges[0], edges[1]);
        if inner(face, face).value() > 0.0 {
            let angle = angle(edges);
            sum = plus(sum, scaled(direction(face), angle));
            if k < KEPT {
                angles[k] = angle;
            }
        }
    }
    (sum, angles)
}

/// The unit normal of a vertex; zero where those around cancel out.
#[inline]
fn vertex_normal<N: Number>(mesh: &Vertices, around: &[[u32; 2]], vertex: u32, look: &impl Fn(usize) -> N) -> [N; 3] {
    let (sum, _) = sum_of_normals(mesh, around, vertex, look);
    match inner(sum, sum).value() > 0.0 {
        true => direction(sum),
        false => sum,
    }
}

/// The adjoint of [`vertex_normal`].
#[inline(never)]
fn vertex_normal_adjoint<N: Number, S: Sink<N>>(
    mesh: &Vertices,
    around: &[[u32; 2]],
    vertex: u32,
    look: &impl Fn(usize) -> N,
    d: [N; 3],
    sink: &mut S,
) {
    let (sum, angles) = sum_of_normals(mesh, around, vertex, look);
    if inner(sum, sum).value() <= 0.0 {
        return;
    }
    let by_sum = direction_adjoint(sum, d);
    let here = position(mesh, vertex, look);
    let mut by_here = [N::lift(0.0); 3];
    for (k, others) in around.iter().enumerate() {
        let [a, b] = others.each(|other| minus(position(mesh, other, look), here));
        let face = outer(a, b);
        if inner(face, face).value() <= 0.0 {
            continue;
        }
        let normal = direction(face);
        let angle = angles.get(k).copied().unwrap_or_else(|| angle([a, b]));
        let by_face = direction_adjoint(face, scaled(by_sum, angle));
        // The angle's derivatives by the edges: −(n × a) / |a|² and (n × b) / |b|².
        let by_angle = inner(normal, by_sum);
        let turned = |edge: [N; 3]| scaled(outer(normal, edge), by_angle / inner(edge, edge));
        let by_a = minus(outer(b, by_face), turned(a));
        let by_b = plus(outer(by_face, a), turned(b));
        position_adjoint(mesh, others[0], by_a, sink);
        position_adjoint(mesh, others[1], by_b, sink);
        by_here = minus(by_here, plus(by_a, by_b));
    }
    position_adjoint(mesh, vertex, by_here, sink);
}

/// Sends derivatives by the unit normals of all vertices of a mesh, three each, on to its parameter.
pub fn vertex_normals_adjoint<F: Fields<f32>, S: Sink<f32>>(
    mesh: &Vertices,
    fields: &F,
    by_normals: &[f32],
    sink: &mut S,
) {
    let Some(around) = &mesh.around else { return };
    let look = |i: usize| fields.sampling(mesh.slot)[i];
    for (v, d) in (0u32..).zip(by_normals.as_chunks().0) {
        if *d != [0.0; 3] {
            vertex_normal_adjoint(mesh, around.of(v), v, &look, *d, sink);
        }
    }
}

impl Corners {
    /// The face's normal, with twice its area as length.
    #[inline]
    fn face<N: Number>(&self, [ab, ac]: [[N; 3]; 2]) -> [N; 3] {
        scaled(outer(ab, ac), N::lift(self.side))
    }

    /// The mean of a smooth mesh's vertex normals; None where the shading normal is the face's own.
    #[inline]
    fn smooth<N: Number>(&self, mesh: &Vertices, look: &impl Fn(usize) -> N) -> Option<[N; 3]> {
        let around = mesh.around.as_ref()?;
        let mean = self.mean(self.vertices.each(|v| vertex_normal(mesh, around.of(v), v, look)));
        (inner(mean, mean).value() > 0.0).then_some(mean)
    }
}

/// The normal of a point's face at the values that the records were made from, with twice its area as length.
#[inline]
pub fn triangle_area<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    mesh: &Vertices,
) -> [N; 3] {
    let corners = corners_of(scene, &anchor.hit);
    let look = |i: usize| N::lift(fields.sampling(mesh.slot)[i]);
    corners.face(edges(corners.vertices.each(|v| position(mesh, v, &look))))
}

/// The motion of a point that follows the vertices of its triangle, and the same for the values that the records were
/// made from: zero, with the recorded area vector.
#[inline]
pub fn moved_triangle<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    mesh: &Vertices,
    mut still: Moved<N>,
) -> [Moved<N>; 2] {
    let corners = corners_of(scene, &anchor.hit);
    let before = |i: usize| N::lift(fields.sampling(mesh.slot)[i]);
    let after = |i: usize| fields.integrand(mesh.slot)[i];
    let old = corners.vertices.each(|v| position(mesh, v, &before));
    let new = corners.vertices.each(|v| position(mesh, v, &after));
    let [old_edges, new_edges] = [old, new].each(edges);
    still.area = corners.face(old_edges);
    if !F::TWO_SIDED {
        return [still; 2];
    }
    let along = |[ab, ac]: [[N; 3]; 2]| {
        plus(
            scaled(ab, N::lift(corners.along[0])),
            scaled(ac, N::lift(corners.along[1])),
        )
    };
    let mut p = [N::lift(0.0); 3];
    for k in 0..3 {
        p = plus(p, scaled(minus(new[k], old[k]), N::lift(corners.shares[k])));
    }
    let area = corners.face(new_edges);
    let normals = match (corners.smooth(mesh, &before), corners.smooth(mesh, &after)) {
        (Some(old), Some(new)) => [old, new],
        _ => [still.area, area],
    };
    let [old_normal, new_normal] = normals.each(direction);
    let follows = Moved {
        p,
        area,
        normal: minus(new_normal, old_normal),
        tangent: minus(along(new_edges), along(old_edges)),
        uv: still.uv,
    };
    [follows, still]
}

/// The adjoint of [`moved_triangle`]; `number` is the index of the mesh.
#[inline]
pub fn moved_triangle_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    number: u32,
    d: &ByMoved<N>,
    sink: &mut S,
) {
    let mesh = &scene.meshes[number as usize];
    let corners = corners_of(scene, &anchor.hit);
    let look = |i: usize| N::lift(fields.sampling(mesh.slot)[i]);
    let [ab, ac] = edges(corners.vertices.each(|v| position(mesh, v, &look)));
    let area = corners.face([ab, ac]);
    let mut by_area = d.area;
    // In one precision the normals of the records will do, which are made from the same values.
    let recorded = || {
        let normals = &scene.corners[anchor.hit.point.triangle as usize].normals;
        let mean: [N; 3] = corners.mean(normals.each(|[x, y, z, _]| lift([x, y, z])));
        (inner(mean, mean).value() > 0.0).then_some(mean)
    };
    let mean = match F::TWO_SIDED {
        true => corners.smooth(mesh, &look),
        false => recorded(),
    };
    match (&mesh.around, mean) {
        (Some(around), Some(mean)) => {
            let by_mean = direction_adjoint(mean, d.normal);
            for (v, share) in corners.vertices.into_iter().zip(corners.shares) {
                let by_normal = scaled(by_mean, N::lift(corners.side * share));
                if !sink.vertex_normal(number, v, by_normal) {
                    vertex_normal_adjoint(mesh, around.of(v), v, &look, by_normal, sink);
                }
            }
        }
        _ => by_area = plus(by_area, direction_adjoint(area, d.normal)),
    }
    let by_face = scaled(by_area, N::lift(corners.side));
    let [b, c] = corners.along.each(|share| scaled(d.tangent, N::lift(share)));
    let by_ab = plus(outer(ac, by_face), b);
    let by_ac = plus(outer(by_face, ab), c);
    let others = scaled(plus(by_ab, by_ac), N::lift(-1.0));
    for ((v, share), more) in corners
        .vertices
        .into_iter()
        .zip(corners.shares)
        .zip([others, by_ab, by_ac])
    {
        position_adjoint(mesh, v, plus(scaled(d.p, N::lift(share)), more), sink);
    }
}
