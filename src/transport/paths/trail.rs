//! The last points of a path, which a walk remembers where shapes move, and the derivatives by their motion. A factor of the
//! throughput that depends on three points is complete when the path has found the third.

use super::radiative::Incident;
use super::volpath::Walk;
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, bsdf, light};
use crate::transport::mode::REPLAY;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::along;
use crate::transport::scene::beam::{Beam, axes};
use crate::transport::scene::bsdf::BsdfSample;
use crate::transport::scene::glide::{glide, width};
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::light::{Drawn, light_color};
use crate::transport::scene::motion::{Anchor, ByMoved, Seen, is_wanted, moved, moved_adjoint};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::{Hit, SurfacePoint};
use crate::transport::scene::tangent::{across_normal, derivatives};
use crate::transport::scene::texture::{bitmap_slopes, texture_eval};
use crate::transport::scene::three_point::{Onwards, ThreePoints};

/// The last points of a path. Boxed, to keep the walk small in scenes where nothing moves.
#[derive(Debug, Clone)]
pub(super) struct Trail<N>(Option<Box<Points<N>>>);

/// The last points of a path that has met a surface.
#[derive(Debug, Clone, Copy)]
struct Points<N> {
    /// The last point on a surface.
    last: Anchor,
    /// A scattering whose third point is not known yet.
    open: Option<Open<N>>,
    /// The ray along which the next point, which the path has met since, slides; None if it follows its surface.
    met: Option<Seen>,
}

/// A scattering whose third point is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open<N> {
    at: Interaction,
    wo: [f32; 3],
    here: Anchor,
    before: Option<Anchor>,
    /// In a replay, the derivatives by the logarithm of the scattering's factor.
    d: Rgb<N>,
}

impl<N> Default for Trail<N> {
    #[inline]
    fn default() -> Self {
        Self(None)
    }
}

impl<N> Trail<N> {
    /// The last point on a surface; None before the first.
    #[inline]
    fn last(&self) -> Option<Anchor> {
        self.0.as_ref().map(|points| points.last)
    }
}

/// The anchor of a point that a path meets; `seen` is the ray that it slides along, that of the camera for the first point.
#[inline]
fn anchor(hit: &Hit, along: [f32; 3], seen: Option<Seen>) -> Anchor {
    Anchor { hit: *hit, along, seen }
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// The anchor of a vertex, with the tangent that its frame is made from: the surface's ∂p/∂u for an anisotropic BSDF; for
    /// an isotropic one, or where ∂p/∂u has no tangential part, the first axis of `at`.
    #[inline]
    fn here(&self, at: &Interaction) -> Anchor {
        let turnable = at.record(self.scene).flags & bsdf::ANISOTROPIC == 0;
        let seen = match &self.trail.0 {
            None => Some(Seen::new(self.scene, at.incoming, self.path.sensor)),
            Some(points) => points.met,
        };
        let own =
            || Some(derivatives(self.scene, &at.hit)[0]).filter(|d| across_normal(*d, at.hit.shading) != [0.0; 3]);
        let along = if turnable { None } else { own() };
        anchor(&at.hit, along.unwrap_or(at.s), seen)
    }

    /// Remembers a scattering; in a replay `d` are the derivatives by the logarithm of its factor.
    #[inline(never)]
    pub(super) fn leave_trail(&mut self, at: &Interaction, drawn: &BsdfSample, d: Rgb<N>) {
        let here = self.here(at);
        let open = Open {
            at: *at,
            wo: drawn.wo,
            here,
            before: self.trail.last(),
            d,
        };
        let points = Points {
            last: here,
            open: Some(open),
            met: None,
        };
        match &mut self.trail.0 {
            Some(known) => **known = points,
            none => *none = Some(Box::new(points)),
        }
    }

    /// Completes the factor of the last scattering with its third point: `hit`, or a point at infinity if there is none.
    #[inline(never)]
    pub(super) fn follow_trail<const MODE: u8>(&mut self, hit: Option<&Hit>) {
        let (scene, fields, ray) = (self.scene, self.fields, self.path.direction);
        let Some(trail) = &mut self.trail.0 else { return };
        let Some(open) = trail.open.take() else { return };
        // The logarithm of the cosine has no derivative at zero: the surfaces lie in one plane, and one ray joins them.
        let from = open.here.hit.point.p;
        let height = |hit: &Hit| {
            (0..3)
                .map(|axis| hit.normal[axis] * (hit.point.p[axis] - from[axis]))
                .sum::<f32>()
        };
        if hit.is_some_and(|hit| height(hit) == 0.0) {
            return;
        }
        let slides = |hit| {
            let width = width(scene, fields, &open.at);
            glide(scene, open.here.hit.point.p, width, hit, ray)
        };
        trail.met = hit.and_then(slides).map(|glide| Seen::still(ray, glide));
        let met = trail.met;
        let points = ThreePoints {
            at: &open.at,
            wo: open.wo,
            here: open.here,
            before: open.before,
            after: match hit {
                Some(hit) => Onwards::Surface(anchor(hit, hit.normal, met)),
                None => Onwards::Direction(ray),
            },
        };
        if MODE == REPLAY {
            points.adjoint(scene, fields, open.d, &mut self.adjoint.sink);
        } else if F::TWO_SIDED {
            self.path.beta *= points.ratio(scene, fields);
        }
    }

    /// The three points of next-event estimation.
    #[inline]
    fn lit_points<'b>(&self, at: &'b Interaction, origin: [f32; 3], drawn: &Drawn) -> ThreePoints<'b> {
        let scene = self.scene;
        let record = &scene.lights[drawn.light as usize];
        let after = match record.kind {
            light::AREA => Onwards::Surface(drawn_anchor(record, origin, drawn)),
            light::POINT | light::SPOT | light::PROJECTOR => {
                let beam = Beam::new(record, drawn.direction.each(|x| -x));
                Onwards::Point(light_anchor(scene, drawn.light), beam)
            }
            _ => Onwards::Direction(drawn.direction),
        };
        ThreePoints {
            at,
            wo: at.to_local(drawn.direction),
            here: self.here(at),
            before: self.trail.last(),
            after,
        }
    }

    /// The factor by which motion changes the value of a BSDF for a drawn light.
    #[inline(never)]
    pub(super) fn lit_ratio(&self, at: &Interaction, origin: [f32; 3], drawn: &Drawn) -> Rgb<N> {
        self.lit_points(at, origin, drawn).ratio(self.scene, self.fields)
    }

    /// Sends the derivatives of next-event estimation by motion; `d` are those by the logarithm of its contribution.
    #[inline(never)]
    pub(super) fn send_lit(&mut self, at: &Interaction, origin: [f32; 3], drawn: &Drawn, d: Rgb<N>) {
        let points = self.lit_points(at, origin, drawn);
        points.adjoint(self.scene, self.fields, d, &mut self.adjoint.sink);
    }

    /// By how much the radiance of a light that the camera sees differs, because its texture has moved.
    #[inline(never)]
    pub(super) fn seen_light<const MODE: u8>(&mut self, record: &LightRecord, hit: &Hit, factor: Rgb<N>) -> Rgb<N> {
        let (scene, fields) = (self.scene, self.fields);
        let none = Rgb::zero();
        if self.trail.0.is_some() || record.texture == NONE {
            return none;
        }
        let seen = Seen::new(scene, self.path.direction, self.path.sensor);
        let anchor = anchor(hit, hit.normal, Some(seen));
        let color = light_color(fields, record);
        let Some(slopes) = bitmap_slopes(scene, record.texture, hit.point.uv) else {
            return none;
        };
        let slopes = slopes.each(|at| texture_eval(fields.integrand(at.slot), &at) * color);
        if MODE == REPLAY {
            if is_wanted(scene, &anchor, &self.adjoint.sink) {
                let d = self.path.alive(self.adjoint.d_radiance * self.path.beta * factor);
                let mut by_hit = ByMoved::zero();
                by_hit.uv = slopes.each(|slope| (d * slope).sum());
                moved_adjoint(scene, fields, &anchor, &by_hit, &mut self.adjoint.sink);
            }
            return none;
        }
        if !F::TWO_SIDED {
            return none;
        }
        let [now, _] = moved(scene, fields, &anchor);
        slopes[0] * Rgb::splat(now.uv[0]) + slopes[1] * Rgb::splat(now.uv[1])
    }
}

/// The point of an area light that was drawn from `origin`.
#[inline]
fn drawn_anchor(record: &LightRecord, origin: [f32; 3], drawn: &Drawn) -> Anchor {
    let p = along(origin, drawn.direction, drawn.distance);
    let point = SurfacePoint { p, ..drawn.point };
    Anchor {
        hit: Hit {
            t: drawn.distance,
            surface: record.surface,
            primitive: 0,
            point,
            clearance: 0.0,
            normal: drawn.normal,
            shading: drawn.normal,
        },
        along: drawn.normal,
        seen: None,
    }
}

/// The anchor of a light without a surface. Motions are numbered by surface, then by light.
#[inline]
fn light_anchor(scene: &SceneView, number: u32) -> Anchor {
    let record = &scene.lights[number as usize];
    let p = [0, 1, 2].each(|a| record.position[a]);
    let [along, axis] = axes(record);
    Anchor {
        hit: Hit {
            t: 0.0,
            surface: scene.surfaces.len() as u32 + number,
            primitive: 0,
            point: SurfacePoint::new(p, [0.0; 2]),
            clearance: 0.0,
            normal: axis,
            shading: axis,
        },
        along,
        seen: None,
    }
}
