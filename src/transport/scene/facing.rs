//! How a leaf of a BSDF faces a path: the directions in the frame that its model is evaluated in. That is the local frame
//! of the surface, turned over on the back of a two-sided BSDF, or the frame of a normal map or a bump map in it.

use super::bsdf::local::{Gradients, flipped, lift, torque};
use super::bsdf::relief::Relief;
use super::interaction::Interaction;
use super::motion::{plus, scaled};
use super::records::{SceneView, Sink};
use super::tangent::derivatives;
use super::texture::{stencil, texture_adjoint, texture_eval, texture_slopes, texture_value};
use crate::each::EachEntry;
use crate::resident::layout::{LeafRecord, NONE, leaf};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::dot;

/// A leaf and the direction that a path comes from, in the surface's frame and in that of the leaf's model.
#[derive(Debug, Clone, Copy)]
pub struct Facing<'a, N> {
    leaf: &'a LeafRecord,
    /// In the surface's frame, with z negated if the relief is on the back (`RELIEF_TURNED`).
    from: [N; 3],
    /// As the leaf's model sees it.
    pub wi: [N; 3],
    relief: Option<Relief<N>>,
}

/// A direction that light comes from, in the frame of a leaf's model.
#[derive(Debug, Clone, Copy)]
pub struct Seen<N> {
    pub wo: [N; 3],
    /// The share of that light that the relief does not shadow.
    pub factor: N,
}

/// `d`, with z negated if the leaf has this flag.
#[inline(always)]
pub(super) fn turned<N: Number>(leaf: &LeafRecord, flag: u32, d: [N; 3]) -> [N; 3] {
    if leaf.flags & flag != 0 { flipped(d) } else { d }
}

/// How a leaf faces a path; None where its model is that of the other side. `look` returns a parameter's values.
#[inline]
pub fn facing<'a, 'b, N: Number + 'b>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'b [N],
    leaf: &'a LeafRecord,
    at: &Interaction,
) -> Option<Facing<'a, N>> {
    if leaf.relief == NONE || at.smooth {
        return Some(plain(leaf, lift(at.wi)));
    }
    relieved(scene, &look, leaf, at)
}

/// [`facing`] for a leaf with a relief (a normal map or a bump map). Compiled once per number type, as models are.
#[inline(never)]
fn relieved<'a, 'b, N: Number + 'b>(
    scene: &SceneView,
    look: &dyn Fn(u32) -> &'b [N],
    leaf: &'a LeafRecord,
    at: &Interaction,
) -> Option<Facing<'a, N>> {
    let texture = |texture: u32| texture_value(scene, look, texture, &at.hit.point);
    facing_from(scene, look, &texture, leaf, at, lift(at.wi))
}

/// How a leaf faces a path that comes from the local direction `wi`, where this and the textures are numbers that may
/// carry derivatives; `texture` returns the value of one. The slopes of a bump map are those at the hit point.
#[inline]
pub fn facing_from<'a, 'b, N: Number + 'b>(
    scene: &SceneView,
    look: &dyn Fn(u32) -> &'b [N],
    texture: &dyn Fn(u32) -> Rgb<N>,
    leaf: &'a LeafRecord,
    at: &Interaction,
    wi: [N; 3],
) -> Option<Facing<'a, N>> {
    if leaf.relief == NONE || at.smooth {
        return Some(plain(leaf, wi));
    }
    let m = match leaf.flags & leaf::BUMP {
        0 => mapped_normal(texture(leaf.relief)),
        _ => bumped_normal(scene, look, leaf, at),
    };
    turned_to(leaf, m, wi)
}

/// How a leaf without a relief faces a path from `wi`.
#[inline(always)]
fn plain<N: Number>(leaf: &LeafRecord, wi: [N; 3]) -> Facing<'_, N> {
    Facing {
        leaf,
        from: wi,
        wi: turned(leaf, leaf::TURNED, wi),
        relief: None,
    }
}

/// How a leaf with a relief whose normal lies along `m` faces a path from `wi`; None where its model is that of the other side.
#[inline]
fn turned_to<N: Number>(leaf: &LeafRecord, m: [N; 3], wi: [N; 3]) -> Option<Facing<'_, N>> {
    let from = turned(leaf, leaf::RELIEF_TURNED, wi);
    let relief = Relief::new(m, from, leaf.flags & leaf::FLIPS != 0);
    let wi = relief.to_local(from);
    let other_side = match leaf.flags & (leaf::FRONT | leaf::BACK) {
        leaf::FRONT => !wi[2].above(0.0),
        leaf::BACK => !wi[2].below(0.0),
        _ => false,
    };
    (!other_side).then(|| Facing {
        leaf,
        from,
        wi: turned(leaf, leaf::TURNED, wi),
        relief: Some(relief),
    })
}

/// The vector that a texel of a normal map stands for.
#[inline]
fn mapped_normal<N: Number>(texel: Rgb<N>) -> [N; 3] {
    texel.0.each(|x| N::lift(2.0) * x - N::lift(1.0))
}

/// The vector along the normal of a bump map's surface.
#[inline]
fn bumped_normal<'b, N: Number + 'b>(
    scene: &SceneView,
    look: &dyn Fn(u32) -> &'b [N],
    leaf: &LeafRecord,
    at: &Interaction,
) -> [N; 3] {
    let slopes = texture_slopes(&scene.textures[leaf.relief as usize], at.hit.point.uv);
    Bump::new(scene, leaf, at).normal(slopes.each(|at| texture_eval(look(at.slot), &at)[0]))
}

impl<N: Number> Facing<'_, N> {
    /// The local direction `wo` in the model's frame; None where it lies on different sides of the surface and of the relief.
    #[inline]
    pub fn see(&self, wo: [N; 3]) -> Option<Seen<N>> {
        let leaf = self.leaf;
        let Some(relief) = &self.relief else {
            return Some(Seen {
                wo: turned(leaf, leaf::TURNED, wo),
                factor: N::lift(1.0),
            });
        };
        let to = turned(leaf, leaf::RELIEF_TURNED, wo);
        let seen = relief.to_local(to);
        let factor = match leaf.flags & leaf::SHADOWS {
            0 => N::lift(1.0),
            _ => relief.shadowing(to),
        };
        agree(seen[2], to[2]).then(|| Seen {
            wo: turned(leaf, leaf::TURNED, seen),
            factor,
        })
    }

    /// The derivatives by the relief's normal before normalisation, (31d): `torque`, (31c), is the derivative by rotating both
    /// directions in the model's frame, `by_factor` that by the unshadowed share of the light from `wo`. None without a relief.
    #[inline]
    fn normal_adjoint(&self, wo: [N; 3], torque: [N; 3], by_factor: N) -> Option<[N; 3]> {
        let leaf = self.leaf;
        let relief = self.relief.as_ref()?;
        // Negating z of both directions reverses a torque's components along x and y.
        let torque = match leaf.flags & leaf::TURNED {
            0 => torque,
            _ => [-torque[0], -torque[1], torque[2]],
        };
        Some(relief.adjoint(torque, turned(leaf, leaf::RELIEF_TURNED, wo), self.shadowed(by_factor)))
    }

    /// `by_factor` if the relief shadows, else zero.
    #[inline]
    fn shadowed(&self, by_factor: N) -> N {
        match self.leaf.flags & leaf::SHADOWS {
            0 => N::lift(0.0),
            _ => by_factor,
        }
    }

    /// The derivatives by the texel of a normal map; None for a leaf without one. `by_seen` are those by both
    /// directions in the model's frame, `by_factor` that by the unshadowed share of the light from `wo`.
    #[inline]
    pub fn texel_adjoint(&self, wo: [N; 3], seen: &Seen<N>, by_seen: Gradients<N>, by_factor: N) -> Option<Rgb<N>> {
        if self.leaf.flags & leaf::BUMP != 0 || self.relief.is_none() {
            return None;
        }
        let by_normal = self.normal_adjoint(wo, torque(self.wi, seen.wo, by_seen), by_factor);
        by_normal.map(|by_normal| Rgb(by_normal) * 2.0)
    }

    /// The derivatives by the local direction that the path comes from and by `wo`, from those by both in the model's
    /// frame (`by_seen`) and by the unshadowed share (`by_factor`).
    #[inline]
    pub fn directions_adjoint(&self, wo: [N; 3], by_seen: Gradients<N>, by_factor: N) -> Gradients<N> {
        let leaf = self.leaf;
        let by_seen = by_seen.each(|d| turned(leaf, leaf::TURNED, d));
        let Some(relief) = &self.relief else { return by_seen };
        let steep = relief.shadowing_by_direction(turned(leaf, leaf::RELIEF_TURNED, wo));
        let by_shadow = [[N::lift(0.0); 3], scaled(steep, self.shadowed(by_factor))];
        [0, 1].each(|k| {
            turned(
                leaf,
                leaf::RELIEF_TURNED,
                plus(relief.to_surface(by_seen[k]), by_shadow[k]),
            )
        })
    }

    /// Sends the derivatives by the relief's texels. `torque`, (31c), is the derivative by rotating both directions in
    /// the model's frame, `by_factor` that by the unshadowed share of the light from `wo`.
    #[inline(never)]
    pub fn adjoint<S: Sink<N>>(
        &self,
        scene: &SceneView,
        at: &Interaction,
        wo: [f32; 3],
        (torque, by_factor): ([N; 3], N),
        sink: &mut S,
    ) {
        let (leaf, point) = (self.leaf, &at.hit.point);
        let Some(by_normal) = self.normal_adjoint(lift(wo), torque, by_factor) else {
            return;
        };
        if leaf.flags & leaf::BUMP == 0 {
            let by_texel = Rgb(by_normal) * 2.0;
            return texture_adjoint(&stencil(scene, leaf.relief, point), by_texel, sink);
        }
        let by_slopes = Bump::new(scene, leaf, at).adjoint(by_normal);
        let slopes = texture_slopes(&scene.textures[leaf.relief as usize], point.uv);
        for (at, slope) in slopes.iter().zip(by_slopes) {
            texture_adjoint(at, Rgb([slope, N::lift(0.0), N::lift(0.0)]), sink);
        }
    }
}

impl Facing<'_, f32> {
    /// Transforms a direction from the model's frame to the surface's; None where it lies on different sides of the
    /// surface and of the relief.
    #[inline]
    pub fn leave(&self, direction: [f32; 3]) -> Option<[f32; 3]> {
        let leaf = self.leaf;
        let seen = turned(leaf, leaf::TURNED, direction);
        let Some(relief) = &self.relief else {
            return Some(seen);
        };
        let to = relief.to_surface(seen);
        agree(seen[2], to[2]).then(|| turned(leaf, leaf::RELIEF_TURNED, to))
    }

    /// Whether a path may pass straight through: `wi` is on the same side of the relief and of the surface.
    #[inline]
    pub fn passes(&self) -> bool {
        self.relief
            .is_none_or(|relief| agree(relief.to_local(self.from)[2], self.from[2]))
    }
}

/// Whether a direction's cosines with the relief's and the surface's normals have the same sign.
#[inline(always)]
fn agree<N: Number>(seen: N, cosine: N) -> bool {
    (seen * cosine).above(0.0)
}

/// How a height as a function of texture coordinates turns the normal: the tangents ∂p/∂u and ∂p/∂v in the surface's
/// local frame, whose x axis is along the first.
#[derive(Debug, Clone, Copy)]
struct Bump {
    /// ∂p/∂u along x; ∂p/∂v along x and along y.
    along: [f32; 3],
    /// The factor on the heights.
    scale: f32,
}

impl Bump {
    #[inline]
    fn new(scene: &SceneView, leaf: &LeafRecord, at: &Interaction) -> Self {
        let [du, dv] = derivatives(scene, &at.hit);
        let along = [dot(at.s, du), dot(at.s, dv), dot(at.t, dv)];
        // Where ∂p/∂u and ∂p/∂v are parallel, heights have no slopes.
        if along[0] * along[2] == 0.0 {
            return Self {
                along: [1.0, 0.0, 1.0],
                scale: 0.0,
            };
        }
        Self {
            along,
            scale: leaf.bump_scale,
        }
    }

    /// The vector along the normal of a surface whose height has these derivatives by u and v.
    #[inline]
    fn normal<N: Number>(&self, slopes: [N; 2]) -> [N; 3] {
        let [u, v] = slopes.each(|slope| slope * N::lift(self.scale));
        let [a, b, c] = self.along.each(N::lift);
        let side = N::lift(self.side());
        [-u * c * side, (u * b - v * a) * side, a * c * side]
    }

    /// The sign that puts the vector on the side of the surface's own normal.
    #[inline]
    fn side(&self) -> f32 {
        if self.along[0] * self.along[2] < 0.0 { -1.0 } else { 1.0 }
    }

    /// The derivatives by the slopes, from those by [`Self::normal`].
    #[inline]
    fn adjoint<N: Number>(&self, d: [N; 3]) -> [N; 2] {
        let [a, b, c] = self.along.each(N::lift);
        let scale = N::lift(self.scale * self.side());
        [(d[1] * b - d[0] * c) * scale, -d[1] * a * scale]
    }
}
