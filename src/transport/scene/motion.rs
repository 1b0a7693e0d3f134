//! How points of surfaces move with the parameters of their places, and the derivatives by these (docs/method.md,
//! section 21).
//!
//! A drawn point follows its surface. A point that the camera sees stays on the camera's ray instead, which moves with the camera
//! alone, so that it moves over the surface; and a point that a path meets goes a share of that way (`glide.rs`). All motions are
//! changes from the records' points: exactly zero for the values that the records were made from.

use super::bsdf::local::{inner, lift, outer};
use super::glide::Glide;
use super::records::{Fields, SceneView, Sink};
use super::shape::Hit;
use super::tangent::{Slopes, slopes};
use super::vertices::{moved_triangle, moved_triangle_adjoint, triangle_area, turned_normal, turned_normal_adjoint};
use crate::each::EachEntry;
use crate::resident::layout::NONE;
use crate::resident::motion::Motion;
use crate::transport::number::Number;

/// How a point of a surface has moved.
#[derive(Debug, Clone, Copy)]
pub struct Moved<N> {
    /// The displacement, and the area vector: along the moved geometric normal, as long as a surface element's area has grown.
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
    /// All derivatives zero.
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

/// A point of a surface that follows the surface or stays on a ray.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    pub hit: Hit,
    /// ∂p/∂u.
    pub along: [f32; 3],
    /// The ray that it stays on; None for a point that follows its surface.
    pub seen: Option<Seen>,
}

impl Anchor {
    /// Whether anything moves the point.
    #[inline]
    pub fn moves(&self, scene: &SceneView) -> bool {
        motion_of(scene, &self.hit).is_some() || self.seen.is_some_and(|seen| seen.moves(scene))
    }
}

/// A ray that a point stays on: its direction, its camera's index among the scene's motions, and the share λ by which
/// the point stays on it.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub ray: [f32; 3],
    /// [`NONE`] for a ray that stands still.
    pub camera: u32,
    pub glide: Glide,
}

impl Seen {
    /// For a point that stays on a ray of this sensor (λ = 1).
    #[inline]
    pub fn new(scene: &SceneView, ray: [f32; 3], sensor: u32) -> Self {
        let first = (scene.surfaces.len() + scene.lights.len()) as u32;
        Self {
            ray,
            camera: first.saturating_add(sensor),
            glide: Glide::WHOLE,
        }
    }

    /// For a point that stays, by the share of `glide`, on a ray that does not move.
    #[inline]
    pub fn still(ray: [f32; 3], glide: Glide) -> Self {
        Self {
            ray,
            camera: NONE,
            glide,
        }
    }

    /// Whether the camera moves.
    #[inline]
    pub fn moves(&self, scene: &SceneView) -> bool {
        scene.motions.get(self.camera as usize).is_some_and(Option::is_some)
    }

    /// The seen point as a point of the camera, whose motion it follows, with the ray's direction as normal and tangent.
    #[inline]
    fn anchor(&self, hit: &Hit) -> Anchor {
        Anchor {
            hit: Hit {
                surface: self.camera,
                normal: self.ray,
                shading: self.ray,
                ..*hit
            },
            along: self.ray,
            seen: None,
        }
    }
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

/// [`apply`] for a matrix without derivatives.
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

/// A surface's placement by (49): scaled, rotated by `turn`, then moved by `shift`.
#[derive(Debug, Clone, Copy)]
struct Pose<N> {
    shift: [N; 3],
    /// The rotation as a vector, in radians, and as a matrix.
    radians: [N; 3],
    turn: [[N; 3]; 3],
    scale: [N; 3],
}

/// Radians per degree.
pub const RADIANS: f32 = std::f32::consts::PI / 180.0;

/// sin x / x, (1 − cos x) / x² and (x − sin x) / x³, from x².
#[inline]
pub fn sines<N: Number>(square: N) -> [N; 3] {
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
    /// The pose for a motion's parameters; `read` returns an entry of the parameter with a slot.
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

    /// The growth of areas perpendicular to each axis.
    #[inline]
    fn growth(&self) -> [N; 3] {
        let [x, y, z] = self.scale;
        [y * z, x * z, x * y]
    }

    /// A world vector with the rotation undone.
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

/// The vector to the point from the moved pivot, the centre of rotation and scaling.
#[inline]
fn arm<N: Number>(motion: &Motion, pose: &Pose<N>, hit: &Hit) -> [N; 3] {
    minus(minus(lift(hit.point.p), lift(motion.pivot)), pose.shift)
}

/// The motion of an anchor's point, and the same for the values that the records were made from: zero, with an area
/// vector that may differ from the records' normal by rounding.
#[inline(never)]
pub fn moved<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, anchor: &Anchor) -> [Moved<N>; 2] {
    let [follows, still] = followed(scene, fields, anchor);
    match anchor.seen {
        Some(seen) if seen.moves(scene) || motion_of(scene, &anchor.hit).is_some() => {
            [slide(scene, fields, anchor, &seen, &follows), still]
        }
        _ => [follows, still],
    }
}

/// How the camera ray on which a point is seen has moved: the changes of the point on it, and of its direction.
#[inline]
pub fn moved_ray<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, seen: &Seen, hit: &Hit) -> [[N; 3]; 2] {
    match seen.moves(scene) {
        false => [[N::lift(0.0); 3]; 2],
        true => {
            let [now, _] = followed(scene, fields, &seen.anchor(hit));
            [now.p, now.tangent]
        }
    }
}

/// The adjoint of [`moved_ray`].
#[inline]
pub fn moved_ray_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    seen: &Seen,
    hit: &Hit,
    [p, tangent]: [[N; 3]; 2],
    sink: &mut S,
) {
    if seen.moves(scene) {
        let d = ByMoved {
            p,
            tangent,
            ..ByMoved::zero()
        };
        followed_adjoint(scene, fields, &seen.anchor(hit), &d, sink);
    }
}

/// [`moved`] of a point that follows its surface.
#[inline]
fn followed<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, anchor: &Anchor) -> [Moved<N>; 2] {
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
    if motion.mesh != NONE {
        let mesh = &scene.meshes[motion.mesh as usize];
        return moved_triangle(scene, fields, anchor, mesh, still);
    }
    if !F::TWO_SIDED {
        return [still; 2];
    }
    let (before, after) = (recorded(fields, motion), now(fields, motion));
    // Undo the recorded rotation and scaling of each vector, then apply the recorded and the new ones: equal poses give
    // equal bits.
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
    [follows, still]
}

/// [`moved`] of a point that goes the share λ of the way, (51), along a ray instead of following its surface.
#[inline]
fn slide<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    seen: &Seen,
    follows: &Moved<N>,
) -> Moved<N> {
    let [beside, turned] = moved_ray(scene, fields, seen, &anchor.hit);
    let ray = plus(lift(seen.ray), turned);
    let along = inner(follows.area, minus(follows.p, beside)) / inner(follows.area, ray);
    let over = minus(plus(beside, scaled(ray, along)), follows.p);
    let over = scaled(over, N::lift(seen.glide.share));
    let p = plus(follows.p, over);
    let Slopes { normal, tangent, uv } = slopes(scene, &anchor.hit);
    Moved {
        p,
        area: follows.area,
        normal: plus(follows.normal, apply_fixed(&normal, over)),
        tangent: plus(follows.tangent, apply_fixed(&tangent, over)),
        uv: uv.each(|row| inner(lift(row), over)),
    }
}

/// The motion that changes the density of paths at a hit point that moves by [`slide`]: following the surface by 1 - λ,
/// with the area times 1 + w · ∇λ, (51a). Sliding along the ray changes no density.
#[inline(never)]
pub fn met<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, anchor: &Anchor) -> [Moved<N>; 2] {
    let [follows, still] = followed(scene, fields, anchor);
    let Some(seen) = anchor.seen.filter(|_| motion_of(scene, &anchor.hit).is_some()) else {
        return [follows, still];
    };
    let ray = lift(seen.ray);
    let along = inner(follows.area, follows.p) / inner(follows.area, ray);
    let over = minus(scaled(ray, along), follows.p);
    let growth = N::lift(1.0) + inner(lift(seen.glide.slope), over);
    let rest = N::lift(1.0 - seen.glide.share);
    let area = plus(still.area, scaled(minus(follows.area, still.area), rest));
    let met = Moved {
        p: scaled(follows.p, rest),
        area: scaled(area, growth),
        ..follows
    };
    [met, still]
}

/// The adjoint of [`met`]: `d` are the derivatives by the point and by the area, `all` is that by the logarithm of the density.
#[inline(never)]
pub fn met_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    d: &ByMoved<N>,
    all: N,
    sink: &mut S,
) {
    let Some(seen) = anchor.seen.filter(|_| motion_of(scene, &anchor.hit).is_some()) else {
        return followed_adjoint(scene, fields, anchor, d, sink);
    };
    let rest = N::lift(1.0 - seen.glide.share);
    let by_over = scaled(lift(seen.glide.slope), all);
    let across = across_adjoint(scene, fields, anchor, &seen, by_over);
    let by = ByMoved {
        p: plus(scaled(d.p, rest), minus(across, by_over)),
        area: scaled(d.area, rest),
        ..*d
    };
    followed_adjoint(scene, fields, anchor, &by, sink);
}

/// The derivative by a surface's displacement, a (ω · by_p) / (a · ω), from `by_p`, that by the point where a fixed ray
/// ω meets it.
#[inline]
fn across_adjoint<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    seen: &Seen,
    by_p: [N; 3],
) -> [N; 3] {
    let ray = lift(seen.ray);
    let mesh = motion_of(scene, &anchor.hit).and_then(|motion| scene.meshes.get(motion.mesh as usize));
    let area = match mesh {
        Some(mesh) => triangle_area(scene, fields, anchor, mesh),
        None => lift(anchor.hit.normal),
    };
    scaled(area, inner(ray, by_p) / inner(area, ray))
}

/// The adjoint of [`slide`] at the records' values. Returns the derivatives by [`followed`]; those by the camera are
/// sent to `sink`.
#[inline]
fn slide_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    anchor: &Anchor,
    seen: &Seen,
    d: &ByMoved<N>,
    sink: &mut S,
) -> ByMoved<N> {
    let by_over = plus(d.p, by_moving_over(scene, &anchor.hit, d));
    let by_over = scaled(by_over, N::lift(seen.glide.share));
    let across = across_adjoint(scene, fields, anchor, seen, by_over);
    let by_ray = [minus(by_over, across), [N::lift(0.0); 3]];
    moved_ray_adjoint(scene, fields, seen, &anchor.hit, by_ray, sink);
    ByMoved {
        p: plus(d.p, minus(across, by_over)),
        uv: [N::lift(0.0); 2],
        ..*d
    }
}

/// The derivative by moving a point over its surface, from those by the normal, the tangent and the texture coordinates.
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
    let camera = anchor.seen.and_then(|seen| *scene.motions.get(seen.camera as usize)?);
    let wanted = |motion: &Motion| {
        let mesh = scene.meshes.get(motion.mesh as usize).map_or(NONE, |mesh| mesh.slot);
        [motion.translate, motion.rotate, motion.scale, motion.normals, mesh]
            .into_iter()
            .any(|slot| slot != NONE && sink.wants(slot))
    };
    camera.as_ref().is_some_and(wanted) || motion_of(scene, &anchor.hit).is_some_and(wanted)
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
    match anchor.seen {
        Some(seen) if seen.moves(scene) || motion_of(scene, &anchor.hit).is_some() => {
            let d = slide_adjoint(scene, fields, anchor, &seen, d, sink);
            followed_adjoint(scene, fields, anchor, &d, sink);
        }
        _ => followed_adjoint(scene, fields, anchor, d, sink),
    }
}

/// The adjoint of [`followed`].
#[inline]
fn followed_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
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
    if motion.mesh != NONE {
        return moved_triangle_adjoint(scene, fields, anchor, motion.mesh, d, sink);
    }
    let pose = recorded(fields, motion);
    let hit = &anchor.hit;
    let area = {
        let growth = pose.growth();
        let rest = times(pose.unturned(lift(hit.normal)), growth.each(N::recip));
        apply(&pose.turn, times(rest, growth))
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
        // J(r)ᵀ of (52a): J turns changes of the rotation vector r into rotations.
        let [_, b, c] = sines(inner(pose.radians, pose.radians));
        let across = outer(pose.radians, torque);
        let twice = outer(pose.radians, across);
        let by_radians = plus(torque, minus(scaled(twice, c), scaled(across, b)));
        sink.entries(motion.rotate, 0, scaled(by_radians, N::lift(RADIANS)), 3);
    }
    if motion.scale != NONE {
        let [p, area, normal, tangent] = turned.each(|(vector, d)| times(pose.unturned(vector), pose.unturned(d)));
        // An area perpendicular to an axis grows with the other two scales; a normal's component along an axis shrinks
        // with its own.
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
