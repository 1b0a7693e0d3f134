//! How points of surfaces move with the parameters of their places, and the derivatives by these (docs/method.md,
//! section 21).
//!
//! A drawn point follows its surface. A point that the camera sees moves along the camera's ray instead, which stands
//! still, so that it moves over the surface. All of it is given as a change from where the records have the point, which
//! is exactly zero for the values that the records were made from.

use super::bsdf::local::{inner, lift, outer};
use super::records::{Fields, SceneView, Sink};
use super::shape::Hit;
use super::tangent::{Slopes, slopes};
use crate::each::EachEntry;
use crate::resident::layout::NONE;
use crate::resident::motion::Motion;
use crate::transport::number::Number;

/// How a point of a surface has moved.
#[derive(Debug, Clone, Copy)]
pub struct Moved<N> {
    /// By how much, and what the geometric normal has become, as long as an area there has grown.
    pub p: [N; 3],
    pub area: [N; 3],
    /// The changes of the shading normal, of ∂p/∂u, and of the texture coordinates.
    pub normal: [N; 3],
    pub tangent: [N; 3],
    pub uv: [N; 2],
}

/// Derivatives by a [`Moved`].
#[derive(Debug, Clone, Copy)]
pub struct ByMoved<N> {
    pub p: [N; 3],
    pub area: [N; 3],
    pub normal: [N; 3],
    pub tangent: [N; 3],
    pub uv: [N; 2],
}

impl<N: Number> ByMoved<N> {
    /// None.
    #[inline]
    pub fn zero() -> Self {
        let none = [N::lift(0.0); 3];
        Self {
            p: none,
            area: none,
            normal: none,
            tangent: none,
            uv: [N::lift(0.0); 2],
        }
    }
}

/// A point of a surface and how it hangs there.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    pub hit: Hit,
    /// ∂p/∂u.
    pub along: [f32; 3],
    /// The direction of the camera's ray that sees it; none of a drawn point.
    pub seen: Option<[f32; 3]>,
}

/// `v` times a number.
#[inline(always)]
pub fn scaled<N: Number>(v: [N; 3], by: N) -> [N; 3] {
    v.each(|x| x * by)
}

/// The sum of two vectors.
#[inline(always)]
pub fn plus<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// The difference of two vectors.
#[inline(always)]
pub fn minus<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The direction of a vector.
#[inline(always)]
pub fn direction<N: Number>(v: [N; 3]) -> [N; 3] {
    scaled(v, inner(v, v).sqrt().recip())
}

/// The derivatives by a vector, from `d` by its [`direction`].
#[inline(always)]
pub fn direction_adjoint<N: Number>(v: [N; 3], d: [N; 3]) -> [N; 3] {
    let scale = inner(v, v).sqrt().recip();
    let along = scaled(v, scale);
    scaled(minus(d, scaled(along, inner(along, d))), scale)
}

/// A matrix by rows times a vector.
#[inline(always)]
fn apply<N: Number>(m: &[[N; 3]; 3], v: [N; 3]) -> [N; 3] {
    [inner(m[0], v), inner(m[1], v), inner(m[2], v)]
}

/// The transposed matrix times a vector.
#[inline(always)]
fn apply_transposed<N: Number>(m: &[[N; 3]; 3], v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|a| m[0][a] * v[0] + m[1][a] * v[1] + m[2][a] * v[2])
}

/// The same of a matrix without derivatives.
#[inline(always)]
fn apply_fixed<N: Number>(m: &[[f32; 3]; 3], v: [N; 3]) -> [N; 3] {
    m.each(|row| inner(lift(row), v))
}

#[inline(always)]
fn apply_fixed_transposed<N: Number>(m: &[[f32; 3]; 3], v: [N; 3]) -> [N; 3] {
    apply_transposed(&m.each(lift), v)
}

/// Entry by entry.
#[inline(always)]
fn times<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [a[0] * b[0], a[1] * b[1], a[2] * b[2]]
}

/// Where a surface stands: moved by `shift`, after it was turned and scaled.
#[derive(Debug, Clone, Copy)]
struct Pose<N> {
    shift: [N; 3],
    /// The rotation as a vector, in radians, and as a matrix.
    radians: [N; 3],
    turn: [[N; 3]; 3],
    scale: [N; 3],
}

/// Degrees in radians.
const RADIANS: f32 = std::f32::consts::PI / 180.0;

/// sin x / x, (1 − cos x) / x² and (x − sin x) / x³, from x².
#[inline]
fn sines<N: Number>(square: N) -> [N; 3] {
    let n = N::lift;
    if square.below(0.01) {
        let series = |c: [f32; 4]| {
            let [c0, c1, c2, c3] = c.each(|c| n(1.0) / n(c));
            c0 - square * (c1 - square * (c2 - square * c3))
        };
        return [
            series([1.0, 6.0, 120.0, 5040.0]),
            series([2.0, 24.0, 720.0, 40320.0]),
            series([6.0, 120.0, 5040.0, 362_880.0]),
        ];
    }
    let x = square.sqrt();
    let half = (x * n(0.5)).sin() / (x * n(0.5));
    let sine = x.sin() / x;
    [sine, n(0.5) * half * half, (n(1.0) - sine) / square]
}

/// The matrix of a rotation about `v`, by as many radians as it is long.
#[inline]
fn rotation<N: Number>(v: [N; 3]) -> [[N; 3]; 3] {
    let [a, b, _] = sines(inner(v, v));
    let one = N::lift(1.0);
    let column = |axis: usize| {
        let mut e = [N::lift(0.0); 3];
        e[axis] = one;
        let across = outer(v, e);
        plus(e, plus(scaled(across, a), scaled(outer(v, across), b)))
    };
    let columns = [column(0), column(1), column(2)];
    [0, 1, 2].each(|row| [columns[0][row], columns[1][row], columns[2][row]])
}

impl<N: Number> Pose<N> {
    /// The pose by parameters, of which `read` returns an entry.
    #[inline]
    fn new(motion: &Motion, read: impl Fn(u32, usize) -> N) -> Self {
        let three = |slot: u32, otherwise: f32, one: bool| match slot {
            NONE => [N::lift(otherwise); 3],
            slot => [0, 1, 2].each(|a| read(slot, if one { 0 } else { a })),
        };
        let radians = scaled(three(motion.rotate, 0.0, false), N::lift(RADIANS));
        Self {
            shift: three(motion.translate, 0.0, false),
            radians,
            turn: rotation(radians),
            scale: three(motion.scale, 1.0, motion.round),
        }
    }

    /// By how much areas across each axis grow.
    #[inline]
    fn growth(&self) -> [N; 3] {
        let [x, y, z] = self.scale;
        [y * z, x * z, x * y]
    }

    /// A vector of the world, before it is turned.
    #[inline]
    fn unturned(&self, v: [N; 3]) -> [N; 3] {
        apply_transposed(&self.turn, v)
    }
}

#[inline]
fn now<N: Number, F: Fields<N>>(fields: &F, motion: &Motion) -> Pose<N> {
    Pose::new(motion, |slot, k| fields.integrand(slot)[k])
}

/// The pose that the records were made from.
#[inline]
fn recorded<N: Number, F: Fields<N>>(fields: &F, motion: &Motion) -> Pose<N> {
    Pose::new(motion, |slot, k| N::lift(fields.sampling(slot)[k]))
}

/// The motion of a surface; None if it stands still.
#[inline]
fn motion_of<'a>(scene: &SceneView<'a>, hit: &Hit) -> Option<&'a Motion> {
    scene.motions.get(hit.surface as usize)?.as_ref()
}

/// From what turns and scales are taken, to the point.
#[inline]
fn arm<N: Number>(motion: &Motion, pose: &Pose<N>, hit: &Hit) -> [N; 3] {
    minus(minus(lift(hit.point.p), lift(motion.pivot)), pose.shift)
}

/// How an anchor's point has moved, and the same for the values that the records were made from, in which only the area
/// may differ from what the records have, by rounding.
#[inline(never)]
pub fn moved<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, anchor: &Anchor) -> [Moved<N>; 2] {
    let hit = &anchor.hit;
    let mut still = Moved {
        p: [N::lift(0.0); 3],
        area: lift(hit.normal),
        normal: [N::lift(0.0); 3],
        tangent: [N::lift(0.0); 3],
        uv: [N::lift(0.0); 2],
    };
    let Some(motion) = motion_of(scene, hit) else {
        return [still; 2];
    };
    if motion.normals != NONE {
        return [turned_normal(scene, fields, anchor, motion.normals, still), still];
    }
    if motion.vertices != NONE {
        let [follows, rest] = moved_triangle(scene, fields, anchor, motion.vertices, still);
        return match anchor.seen {
            None => [follows, rest],
            Some(ray) => [slide(scene, anchor, ray, &follows), rest],
        };
    }
    let (before, after) = (recorded(fields, motion), now(fields, motion));
    // Take each vector back to before it was turned and scaled, then forth.
    let arm = arm(motion, &before, hit);
    let there = |v: [N; 3], by: fn(&Pose<N>) -> [N; 3]| {
        let (old, new) = (by(&before), by(&after));
        let rest = times(before.unturned(v), old.each(N::recip));
        [
            apply(&before.turn, times(rest, old)),
            apply(&after.turn, times(rest, new)),
        ]
    };
    let change = |[old, new]: [[N; 3]; 2]| minus(new, old);
    let [area, grown] = there(lift(hit.normal), Pose::growth);
    let [normal, turned] = there(lift(hit.shading), |pose| pose.scale.each(N::recip));
    still.area = area;
    let follows = Moved {
        p: plus(minus(after.shift, before.shift), change(there(arm, |pose| pose.scale))),
        area: grown,
        normal: minus(direction(turned), direction(normal)),
        tangent: change(there(lift(anchor.along), |pose| pose.scale)),
        uv: still.uv,
    };
    match anchor.seen {
        None => [follows, still],
        Some(ray) => [slide(scene, anchor, ray, &follows), still],
    }
}

/// A point that moves along a ray instead of following its surface.
#[inline]
fn slide<N: Number>(scene: &SceneView, anchor: &Anchor, ray: [f32; 3], follows: &Moved<N>) -> Moved<N> {
    let ray = lift(ray);
    let along = inner(follows.area, follows.p) / inner(follows.area, ray);
    let p = scaled(ray, along);
    let over = minus(p, follows.p);
    let Slopes { normal, tangent, uv } = slopes(scene, &anchor.hit);
    Moved {
        p,
        area: follows.area,
        normal: plus(follows.normal, apply_fixed(&normal, over)),
        tangent: plus(follows.tangent, apply_fixed(&tangent, over)),
        uv: uv.each(|row| inner(lift(row), over)),
    }
}

/// The adjoint of [`slide`] at rest: the derivatives by a point that follows its surface.
#[inline]
fn slide_adjoint<N: Number>(
    scene: &SceneView,
    anchor: &Anchor,
    ray: [f32; 3],
    area: [N; 3],
    d: &ByMoved<N>,
) -> ByMoved<N> {
    let ray = lift(ray);
    let by_over = by_moving_over(scene, &anchor.hit, d);
    let by_p = plus(d.p, by_over);
    let along = inner(ray, by_p) / inner(area, ray);
    ByMoved {
        p: minus(scaled(area, along), by_over),
        uv: [N::lift(0.0); 2],
        ..*d
    }
}

/// The derivative by moving a point over its surface, from those by what changes there.
#[inline]
pub fn by_moving_over<N: Number>(scene: &SceneView, hit: &Hit, d: &ByMoved<N>) -> [N; 3] {
    let Slopes { normal, tangent, uv } = slopes(scene, hit);
    let mut by_over = plus(
        apply_fixed_transposed(&normal, d.normal),
        apply_fixed_transposed(&tangent, d.tangent),
    );
    for (row, d) in uv.into_iter().zip(d.uv) {
        by_over = plus(by_over, scaled(lift(row), d));
    }
    by_over
}

/// Whether `sink` needs derivatives by how an anchor's surface moves.
#[inline]
pub fn is_wanted<N: Number, S: Sink<N>>(scene: &SceneView, anchor: &Anchor, sink: &S) -> bool {
    motion_of(scene, &anchor.hit).is_some_and(|motion| {
        [
            motion.translate,
            motion.rotate,
            motion.scale,
            motion.vertices,
            motion.normals,
        ]
        .into_iter()
        .any(|slot| slot != NONE && sink.wants(slot))
    })
}

/// The adjoint of [`moved`] at the values that the records were made from.
#[inline(never)]
pub fn moved_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    d: &ByMoved<N>,
    sink: &mut S,
) {
    let Some(motion) = motion_of(scene, &anchor.hit) else {
        return;
    };
    if motion.normals != NONE {
        return turned_normal_adjoint(scene, fields, anchor, motion.normals, d, sink);
    }
    if motion.vertices != NONE {
        return moved_triangle_adjoint(scene, fields, anchor, motion.vertices, d, sink);
    }
    let pose = recorded(fields, motion);
    let hit = &anchor.hit;
    let area = {
        let growth = pose.growth();
        let rest = times(pose.unturned(lift(hit.normal)), growth.each(N::recip));
        apply(&pose.turn, times(rest, growth))
    };
    let d = match anchor.seen {
        None => *d,
        Some(ray) => slide_adjoint(scene, anchor, ray, area, d),
    };
    let normal = lift(hit.shading);
    let turned = [
        (arm(motion, &pose, hit), d.p),
        (area, d.area),
        (normal, direction_adjoint(normal, d.normal)),
        (lift(anchor.along), d.tangent),
    ];
    if motion.translate != NONE {
        sink.entries(motion.translate, 0, d.p, 3);
    }
    if motion.rotate != NONE {
        let mut torque = [N::lift(0.0); 3];
        for (vector, d) in turned {
            torque = plus(torque, outer(vector, d));
        }
        // How a change of the rotation's vector turns what it has turned, transposed.
        let [_, b, c] = sines(inner(pose.radians, pose.radians));
        let across = outer(pose.radians, torque);
        let twice = outer(pose.radians, across);
        let by_radians = plus(torque, minus(scaled(twice, c), scaled(across, b)));
        sink.entries(motion.rotate, 0, scaled(by_radians, N::lift(RADIANS)), 3);
    }
    if motion.scale != NONE {
        let [p, area, normal, tangent] = turned.each(|(vector, d)| times(pose.unturned(vector), pose.unturned(d)));
        // An area across an axis grows with the two others, a normal shrinks along its own.
        let all = area[0] + area[1] + area[2];
        let by_scale = [0, 1, 2].each(|a| (p[a] + all - area[a] - normal[a] + tangent[a]) / pose.scale[a]);
        match motion.round {
            true => {
                let none = N::lift(0.0);
                sink.entries(
                    motion.scale,
                    0,
                    [by_scale[0] + by_scale[1] + by_scale[2], none, none],
                    1,
                );
            }
            false => sink.entries(motion.scale, 0, by_scale, 3),
        }
    }
}

/// A triangle whose vertices or normals are parameters: their entries, the shares of a point in them, and how ∂p/∂u
/// follows from the edges.
struct Corners {
    entries: [u32; 3],
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
        entries: corner.vertices().each(|v| 3 * v),
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
        self.entries
            .each(|first| [0, 1, 2].each(|a| values(first as usize + a)))
    }

    /// The mean of three vectors at the point, on the side of the normals.
    #[inline]
    fn mean<N: Number>(&self, vectors: [[N; 3]; 3]) -> [N; 3] {
        let mut mean = [N::lift(0.0); 3];
        for (vector, share) in vectors.into_iter().zip(self.shares) {
            mean = plus(mean, scaled(vector, N::lift(self.side * share)));
        }
        mean
    }
}

/// A point that stays, where the normals of its triangle's corners turn.
#[inline]
fn turned_normal<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    slot: u32,
    still: Moved<N>,
) -> Moved<N> {
    let corners = corners_of(scene, &anchor.hit);
    let old = corners.mean(corners.of(|i| N::lift(fields.sampling(slot)[i])));
    let new = corners.mean(corners.of(|i| fields.integrand(slot)[i]));
    // Where they cancel out, the face's own normal is taken.
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
fn turned_normal_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
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
    for (first, share) in corners.entries.into_iter().zip(corners.shares) {
        sink.entries(slot, first, scaled(by_mean, N::lift(corners.side * share)), 3);
    }
}

/// The two edges of a triangle from its first vertex.
#[inline]
fn edges<N: Number>([a, b, c]: [[N; 3]; 3]) -> [[N; 3]; 2] {
    [minus(b, a), minus(c, a)]
}

/// [`moved`] of a point that follows the vertices of its triangle.
#[inline]
fn moved_triangle<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    slot: u32,
    mut still: Moved<N>,
) -> [Moved<N>; 2] {
    let corners = corners_of(scene, &anchor.hit);
    let old = corners.of(|i| N::lift(fields.sampling(slot)[i]));
    let new = corners.of(|i| fields.integrand(slot)[i]);
    let [old_edges, new_edges] = [old, new].each(edges);
    let face = |[ab, ac]: [[N; 3]; 2]| scaled(outer(ab, ac), N::lift(corners.side));
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
    still.area = face(old_edges);
    let follows = Moved {
        p,
        area: face(new_edges),
        normal: minus(direction(face(new_edges)), direction(still.area)),
        tangent: minus(along(new_edges), along(old_edges)),
        uv: still.uv,
    };
    [follows, still]
}

/// The adjoint of [`moved_triangle`].
#[inline]
fn moved_triangle_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    slot: u32,
    d: &ByMoved<N>,
    sink: &mut S,
) {
    let corners = corners_of(scene, &anchor.hit);
    let [ab, ac] = edges(corners.of(|i| N::lift(fields.sampling(slot)[i])));
    let area = scaled(outer(ab, ac), N::lift(corners.side));
    let d = match anchor.seen {
        None => *d,
        Some(ray) => slide_adjoint(scene, anchor, ray, area, d),
    };
    let by_face = scaled(plus(d.area, direction_adjoint(area, d.normal)), N::lift(corners.side));
    let [b, c] = corners.along.each(|share| scaled(d.tangent, N::lift(share)));
    let by_ab = plus(outer(ac, by_face), b);
    let by_ac = plus(outer(by_face, ab), c);
    let others = scaled(plus(by_ab, by_ac), N::lift(-1.0));
    for ((first, share), more) in corners
        .entries
        .into_iter()
        .zip(corners.shares)
        .zip([others, by_ab, by_ac])
    {
        sink.entries(slot, first, plus(scaled(d.p, N::lift(share)), more), 3);
    }
}
