//! Scattering in three-point form: light that goes from one point by a second to a third, as a function of where all three
//! are, and its derivatives by their motion (docs/method.md, section 21).

use super::beam::{Axes, Beam};
use super::bsdf::factors;
use super::bsdf::leaf::{Model, Values};
use super::bsdf::local::{Gradients, inner, lift, no_gradients, outer};
use super::facing::facing_from;
use super::interaction::Interaction;
use super::motion::{
    Anchor, ByMoved, Moved, direction, direction_adjoint, is_wanted, met, met_adjoint, minus, moved, moved_adjoint,
    moved_ray, moved_ray_adjoint, plus, scaled,
};
use super::phase::phase_cosine_slope;
use super::records::{Fields, SceneView, Sink};
use super::texture::{bitmap_slopes, picture_slopes, texture_eval, texture_value};
use crate::each::EachEntry;
use crate::resident::layout::{FactorRecord, LEAF_TEXTURES, LeafRecord, leaf};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::dot;

/// The third point: where a path goes to from the second.
#[derive(Debug, Clone, Copy)]
pub enum Onwards {
    /// A fixed direction, to the background or to a distant light.
    Direction([f32; 3]),
    /// A point of a surface, with density by area: sampled there, or hit by a ray.
    Surface(Anchor),
    /// The place of a light without extent, whose tangent and normal are the axes of its beam; or a point of a medium, with
    /// [`Beam::EVEN`].
    Point(Anchor, Beam),
}

/// What scatters light at the second point.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack of the walk")]
pub enum Scatterer {
    Surface(Interaction),
    /// A point of a medium, where light comes from the direction `incoming`; the index of its phase function.
    Medium {
        p: [f32; 3],
        incoming: [f32; 3],
        phase: u32,
    },
}

impl Scatterer {
    /// The direction in which light's path has come.
    #[inline]
    fn incoming(&self) -> [f32; 3] {
        match self {
            Self::Surface(at) => at.incoming,
            Self::Medium { incoming, .. } => *incoming,
        }
    }

    /// The local direction that it has come from. Local directions in a medium are those of the world.
    #[inline]
    fn wi(&self) -> [f32; 3] {
        match self {
            Self::Surface(at) => at.wi,
            Self::Medium { incoming, .. } => incoming.each(|x| -x),
        }
    }

    /// `direction` as a local direction.
    #[inline]
    pub fn to_local(&self, direction: [f32; 3]) -> [f32; 3] {
        match self {
            Self::Surface(at) => at.to_local(direction),
            Self::Medium { .. } => direction,
        }
    }
}

/// For each channel the derivatives of the logarithm of the transmittance to the third point, by the second and by the third.
#[derive(Debug, Clone, Copy)]
pub struct Shifts<N>(pub [[[N; 3]; 2]; 3]);

impl<N: Number> Shifts<N> {
    /// What the transmittance is multiplied by as both points are displaced, to first order.
    #[inline]
    fn factor(&self, displaced: [[N; 3]; 2]) -> Rgb<N> {
        let Self(by) = self;
        Rgb([0, 1, 2].each(|c: usize| N::lift(1.0) + inner(by[c][0], displaced[0]) + inner(by[c][1], displaced[1])))
    }

    /// The derivatives by both points, from `d` by the logarithm of the transmittance.
    #[inline]
    fn adjoint(&self, d: Rgb<N>) -> [[N; 3]; 2] {
        let Self(by) = self;
        let of = |c: usize| by[c].each(|by| scaled(by, d[c]));
        let [red, green, blue] = [of(0), of(1), of(2)];
        [0, 1].each(|k: usize| plus(plus(red[k], green[k]), blue[k]))
    }
}

/// A path's scattering: the points before, at and after it.
#[derive(Debug, Clone, Copy)]
pub struct ThreePoints<'a, N> {
    pub at: &'a Scatterer,
    /// The local direction that it goes on in.
    pub wo: [f32; 3],
    pub here: Anchor,
    /// Where it comes from; None for the camera.
    pub before: Option<Anchor>,
    pub after: Onwards,
    /// How the transmittance to the third point changes; None without media.
    pub through: Option<Shifts<N>>,
}

/// How the three points have moved, and the tangent and the area at the third.
#[derive(Debug, Clone, Copy)]
struct Places<N> {
    before: [N; 3],
    /// The change of the camera ray's direction.
    turned: [N; 3],
    here: Moved<N>,
    after: [N; 3],
    axes: Axes<N>,
}

/// Vectors from the scattering point to both neighbours, its local frame (s, t, n), and ∂p/∂u (`along`), from which s is made.
#[derive(Debug, Clone, Copy)]
struct Sight<N> {
    to: [[N; 3]; 2],
    along: [N; 3],
    s: [N; 3],
    t: [N; 3],
    n: [N; 3],
}

impl<N: Number> Sight<N> {
    /// The unit vectors to both neighbours.
    #[inline]
    fn directions(&self) -> [[N; 3]; 2] {
        self.to.each(direction)
    }

    /// The unit vectors to both neighbours in the local frame.
    #[inline]
    fn local(&self) -> [[N; 3]; 2] {
        let axes = [self.s, self.t, self.n];
        self.directions().each(|d| axes.each(|axis| inner(axis, d)))
    }

    /// The part of `along` perpendicular to n; s is its direction.
    #[inline]
    fn across(&self) -> [N; 3] {
        minus(self.along, scaled(self.n, inner(self.n, self.along)))
    }
}

impl<N: Number> ThreePoints<'_, N> {
    /// The places for the integrand's values of the parameters, and for the values that the records were made from.
    #[inline]
    fn places<F: Fields<N>>(&self, scene: &SceneView, fields: &F) -> [Places<N>; 2] {
        let none = [N::lift(0.0); 3];
        let here = moved(scene, fields, &self.here);
        let before = self.before.as_ref().map(|anchor| moved(scene, fields, anchor));
        let turned = match (&self.before, &self.here.seen) {
            (None, Some(seen)) => moved_ray(scene, fields, seen, &self.here.hit)[1],
            _ => none,
        };
        let after = match &self.after {
            Onwards::Surface(anchor) => Some((anchor, met(scene, fields, anchor))),
            Onwards::Point(anchor, _) => Some((anchor, moved(scene, fields, anchor))),
            Onwards::Direction(_) => None,
        };
        [0, 1].each(|k| Places {
            before: before.map_or(none, |moved| moved[k].p),
            turned: if k == 0 { turned } else { none },
            here: here[k],
            after: after.map_or(none, |(_, moved)| moved[k].p),
            axes: after.map_or([none; 2], |(anchor, moved)| {
                [plus(lift(anchor.along), moved[k].tangent), moved[k].area]
            }),
        })
    }

    /// The vectors to both neighbours and the local frame, for these places.
    #[inline]
    fn sight(&self, places: &Places<N>) -> Sight<N> {
        let x = plus(lift(self.here.hit.point.p), places.here.p);
        let to_before = match &self.before {
            None => minus(lift(self.at.incoming().each(|d| -d)), places.turned),
            Some(anchor) => minus(plus(lift(anchor.hit.point.p), places.before), x),
        };
        let to_after = match &self.after {
            Onwards::Direction(d) => lift(*d),
            Onwards::Surface(anchor) | Onwards::Point(anchor, _) => {
                minus(plus(lift(anchor.hit.point.p), places.after), x)
            }
        };
        let n = plus(lift(self.here.hit.shading), places.here.normal);
        let along = plus(lift(self.here.along), places.here.tangent);
        let mut sight = Sight {
            to: [to_before, to_after],
            along,
            s: along,
            t: along,
            n,
        };
        sight.s = direction(sight.across());
        sight.t = outer(n, sight.s);
        sight
    }

    /// The factor |a · v| / |v|³ of (50), which turns density by solid angle into density by the third point's area and
    /// includes the growth of areas; 1 / |v|² for a light without extent or a point of a medium, 1 for a fixed direction.
    #[inline]
    fn density(&self, places: &Places<N>, sight: &Sight<N>) -> N {
        let to = sight.to[1];
        let square = inner(to, to);
        match self.after {
            Onwards::Direction(_) => N::lift(1.0),
            Onwards::Point(..) => square.recip(),
            Onwards::Surface(_) => inner(places.axes[1], to).abs() / (square * square.sqrt()),
        }
    }

    /// The ratio of the factor of (50) for the moved points to that for the points of the records; exactly one where
    /// nothing has moved.
    #[inline(never)]
    pub fn ratio<F: Fields<N>>(&self, scene: &SceneView, fields: &F) -> Rgb<N> {
        let look = |slot| fields.integrand(slot);
        let places: [Places<N>; 2] = self.places(scene, fields);
        let sights = places.each(|places| self.sight(&places));
        let [now, then] = sights.each(|sight| sight.local());
        // Local directions are those of the walk plus their changes by the motion.
        let fixed = [lift(self.at.wi()), lift(self.wo)];
        let seen = [0, 1].each(|k| plus(fixed[k], minus(now[k], then[k])));
        let [new, old] = match self.at {
            Scatterer::Surface(at) => [(places[0].here.uv, seen), (places[1].here.uv, fixed)].each(|(uv, [wi, wo])| {
                let texture = |texture: u32| {
                    let mut value = texture_value(scene, look, texture, &at.hit.point);
                    for (at, d) in bitmap_slopes(scene, texture, at.hit.point.uv).iter().flatten().zip(uv) {
                        value += texture_eval(look(at.slot), at) * Rgb::splat(d);
                    }
                    value
                };
                seen_value(scene, at, &look, &texture, wi, wo)
            }),
            Scatterer::Medium { p, phase, .. } => {
                let slope = phase_cosine_slope(scene, fields, *phase, *p, self.cosine());
                let change = inner(fixed[0], fixed[1]) - inner(seen[0], seen[1]);
                [N::lift(1.0) + slope * change, N::lift(1.0)].each(Rgb::splat)
            }
        };
        let [grown, was] = [0, 1].each(|k| self.density(&places[k], &sights[k]));
        let mut onwards = Rgb::splat(grown / was);
        if let Onwards::Point(_, beam) = &self.after {
            let [now, then] = [0, 1].each(|k| (places[k].axes, sights[k].to[1]));
            onwards *= beam.factor(scene, fields, now, then);
        }
        if let Some(through) = &self.through {
            let [now, then] = places.each(|places| [places.here.p, places.after]);
            onwards *= through.factor([0, 1].each(|k: usize| minus(now[k], then[k])));
        }
        Rgb([0, 1, 2].each(|c| match old[c].value() == 0.0 {
            true => onwards[c],
            false => new[c] / old[c] * onwards[c],
        }))
    }

    /// Whether `sink` needs derivatives by how any of the three points moves.
    #[inline]
    pub fn is_wanted<S: Sink<N>>(&self, scene: &SceneView, sink: &S) -> bool {
        let wanted = |anchor: &Anchor| is_wanted(scene, anchor, sink);
        let after = matches!(&self.after, Onwards::Surface(anchor) | Onwards::Point(anchor, _) if wanted(anchor));
        after || wanted(&self.here) || self.before.as_ref().is_some_and(wanted)
    }

    /// The adjoint of [`Self::ratio`] at the values that the records were made from: `d` is the derivative by the ratio.
    #[inline(never)]
    pub fn adjoint<F: Fields<N>, S: Sink<N>>(&self, scene: &SceneView, fields: &F, d: Rgb<N>, sink: &mut S) {
        if !self.is_wanted(scene, sink) {
            return;
        }
        let [_, places] = self.places(scene, fields);
        let sight = self.sight(&places);
        let (local, by_uv) = match self.at {
            Scatterer::Surface(at) => value_slopes(scene, fields, at, self.wo, d),
            Scatterer::Medium { p, phase, .. } => {
                let slope = d.sum() * phase_cosine_slope(scene, fields, *phase, *p, self.cosine());
                let by = |other: [f32; 3]| scaled(lift(other), -slope);
                ([by(self.wo), by(self.at.wi())], [N::lift(0.0); 2])
            }
        };
        let directions = sight.directions();
        // From local directions to the vectors to both neighbours and to the axes.
        let mut by_to = [0, 1].each(|k| {
            let [x, y, z] = local[k];
            let by_direction = plus(plus(scaled(sight.s, x), scaled(sight.t, y)), scaled(sight.n, z));
            direction_adjoint(sight.to[k], by_direction)
        });
        let by_axis = [0, 1, 2].each(|axis| {
            let [i, o] = [0, 1].each(|k| scaled(directions[k], local[k][axis]));
            plus(i, o)
        });
        let (by_normal, by_along) = frame_adjoint(&sight, by_axis);
        // The density by area, and the beam.
        let mut by_axes = [[N::lift(0.0); 3]; 2];
        let (all, to) = (d.sum(), sight.to[1]);
        let falloff = match self.after {
            Onwards::Direction(_) => 0.0,
            Onwards::Point(_, beam) => {
                let (by_way, by_beam) = beam.adjoint(scene, fields, places.axes, to, d);
                by_axes = by_beam;
                by_to[1] = plus(by_to[1], by_way);
                2.0
            }
            Onwards::Surface(_) => {
                let area = places.axes[1];
                let scale = all / inner(area, to);
                by_axes[1] = scaled(to, scale);
                by_to[1] = plus(by_to[1], scaled(area, scale));
                3.0
            }
        };
        by_to[1] = minus(by_to[1], scaled(to, all * N::lift(falloff) / inner(to, to)));
        let [through_here, through_after] = match &self.through {
            Some(through) => through.adjoint(d),
            None => [[N::lift(0.0); 3]; 2],
        };
        // Send them to the parameters that move the points.
        let mut by_here = ByMoved::zero();
        by_here.p = through_here;
        by_here.uv = by_uv;
        (by_here.normal, by_here.tangent) = (by_normal, by_along);
        if let Onwards::Surface(_) | Onwards::Point(..) = self.after {
            by_here.p = minus(by_here.p, by_to[1]);
        }
        let point = |p, [tangent, area]: Axes<N>| ByMoved {
            p,
            area,
            tangent,
            ..ByMoved::zero()
        };
        match (&self.before, &self.here.seen) {
            (Some(before), _) => {
                by_here.p = minus(by_here.p, by_to[0]);
                moved_adjoint(scene, fields, before, &point(by_to[0], [[N::lift(0.0); 3]; 2]), sink);
            }
            (None, Some(seen)) => {
                let by_ray = [[N::lift(0.0); 3], scaled(by_to[0], N::lift(-1.0))];
                moved_ray_adjoint(scene, fields, seen, &self.here.hit, by_ray, sink);
            }
            (None, None) => {}
        }
        moved_adjoint(scene, fields, &self.here, &by_here, sink);
        let by_after = point(plus(by_to[1], through_after), by_axes);
        match &self.after {
            Onwards::Surface(after) => met_adjoint(scene, fields, after, &by_after, all, sink),
            Onwards::Point(after, _) => moved_adjoint(scene, fields, after, &by_after, sink),
            Onwards::Direction(_) => {}
        }
    }

    /// The cosine between the directions in which light comes and goes on.
    #[inline]
    fn cosine(&self) -> f32 {
        dot(self.at.incoming(), self.wo)
    }
}

/// The derivatives of `d` · ln(value of a surface's smooth lobes) by both local directions and by the texture coordinates.
#[inline]
fn value_slopes<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    wo: [f32; 3],
    d: Rgb<N>,
) -> (Gradients<N>, [N; 2]) {
    let look = |slot| fields.integrand(slot);
    let point = &at.hit.point;
    let texture = |texture: u32| texture_value(scene, look, texture, point);
    let [wi, wo] = [at.wi, wo].each(lift);
    let value = seen_value(scene, at, &look, &texture, wi, wo);
    let mut by_value = Rgb::zero();
    for c in (0..3).filter(|&c| value[c].value() != 0.0) {
        by_value[c] = d[c] / value[c];
    }
    let mut by_directions = no_gradients();
    let mut by_uv = [N::lift(0.0); 2];
    // Adds the derivatives by the texture coordinates, from `d` by a texture's value.
    let mut look_up = |texture: u32, d: Rgb<N>| {
        for (by, slope) in by_uv.iter_mut().zip(picture_slopes(scene, look, texture, point.uv, d)) {
            *by += slope;
        }
    };
    for leaf in at.leaves(scene).iter().filter(|leaf| leaf.kind != leaf::NULL) {
        let (values, shares) = (leaf_values(leaf, &texture), factors(scene, leaf).iter());
        let share = |factor: &FactorRecord| factor_share(factor, &texture);
        let weight = shares
            .clone()
            .fold(N::lift(1.0), |weight, factor| weight * share(factor));
        let by_leaf = by_value * Rgb::splat(weight);
        let Some(facing) = facing_from(scene, &look, &texture, leaf, at, wi) else {
            continue;
        };
        let Some(seen) = facing.see(wo) else { continue };
        let model = Model::new(leaf, scene.coats, &values);
        let by_model = by_leaf * Rgb::splat(seen.factor);
        let by_seen = model.gradients(facing.wi, seen.wo, by_model);
        let value = model.eval(facing.wi, seen.wo);
        let by_factor = (by_leaf * value).sum();
        let by = facing.directions_adjoint(wo, by_seen, by_factor);
        by_directions = [0, 1].each(|k| plus(by_directions[k], by[k]));
        let slopes = model.eval_adjoint(facing.wi, seen.wo, by_model);
        for (i, slope) in slopes.iter().take(leaf.textures as usize).enumerate() {
            look_up(leaf.first_texture + i as u32, *slope);
        }
        if let Some(by_texel) = facing.texel_adjoint(wo, &seen, by_seen, by_factor) {
            look_up(leaf.relief, by_texel);
        }
        let value = (by_value * value * Rgb::splat(seen.factor)).sum();
        for (i, factor) in shares.clone().enumerate() {
            let others = shares.clone().enumerate().filter(|(j, _)| *j != i);
            let others = others.fold(N::lift(1.0), |product, (_, other)| product * share(other));
            let slope = if factor.complement == 1 { -value } else { value };
            look_up(factor.texture, Rgb([slope * others, N::lift(0.0), N::lift(0.0)]));
        }
    }
    (by_directions, by_uv)
}

/// The values of a leaf's textures, of which `texture` returns one.
#[inline]
fn leaf_values<M: Number>(leaf: &LeafRecord, texture: &dyn Fn(u32) -> Rgb<M>) -> Values<M> {
    let mut values = [Rgb::zero(); LEAF_TEXTURES];
    for i in 0..leaf.textures as usize {
        values[i] = texture(leaf.first_texture + i as u32);
    }
    values
}

/// A factor of a leaf's weight, of which `texture` returns the texture's value.
#[inline]
fn factor_share<M: Number>(factor: &FactorRecord, texture: &dyn Fn(u32) -> Rgb<M>) -> M {
    let x = texture(factor.texture)[0];
    if factor.complement == 1 { M::lift(1.0) - x } else { x }
}

/// The value of the smooth lobes where textures and local directions are numbers that may carry derivatives; `look` returns a
/// parameter's values, `texture` the value of a texture.
#[inline(never)]
fn seen_value<'b, M: Number + 'b>(
    scene: &SceneView,
    at: &Interaction,
    look: &dyn Fn(u32) -> &'b [M],
    texture: &dyn Fn(u32) -> Rgb<M>,
    wi: [M; 3],
    wo: [M; 3],
) -> Rgb<M> {
    let mut sum = Rgb::zero();
    for record in at.leaves(scene).iter().filter(|leaf| leaf.kind != leaf::NULL) {
        let facing = facing_from(scene, look, texture, record, at, wi);
        let Some((wi, seen)) = facing.and_then(|facing| Some((facing.wi, facing.see(wo)?))) else {
            continue;
        };
        let values = leaf_values(record, texture);
        let mut value = Model::new(record, scene.coats, &values).eval(wi, seen.wo) * Rgb::splat(seen.factor);
        for factor in factors(scene, record) {
            value *= Rgb::splat(factor_share(factor, texture));
        }
        sum += value;
    }
    sum
}

/// The derivatives by n and by `along`, from those by the three axes s, t and n.
#[inline]
fn frame_adjoint<N: Number>(sight: &Sight<N>, [by_s, by_t, by_n]: [[N; 3]; 3]) -> ([N; 3], [N; 3]) {
    // t = n × s.
    let by_n = plus(by_n, outer(sight.s, by_t));
    let by_s = plus(by_s, outer(by_t, sight.n));
    // s is the direction of a vector across n.
    let by_across = direction_adjoint(sight.across(), by_s);
    let along = inner(sight.n, by_across);
    let by_along = minus(by_across, scaled(sight.n, along));
    let by_n = minus(
        by_n,
        plus(
            scaled(by_across, inner(sight.n, sight.along)),
            scaled(sight.along, along),
        ),
    );
    (by_n, by_along)
}
