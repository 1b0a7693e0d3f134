//! The last points of a path, which a walk remembers where shapes move, and the derivatives by their motion. A factor of the
//! throughput that depends on three points is complete when the path has found the third. Points in media stand still.

use super::drift::Drift;
use super::next_event::{Part, shadow};
use super::radiative::Incident;
use super::volpath::Walk;
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, bsdf, light};
use crate::transport::mode::REPLAY;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, along, dot};
use crate::transport::scene::beam::{Beam, axes};
use crate::transport::scene::glide::{glide, width};
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::light::{Drawn, light_color};
use crate::transport::scene::motion::{Anchor, ByMoved, Seen, is_wanted, moved, moved_adjoint};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::{Hit, SurfacePoint};
use crate::transport::scene::tangent::{across_normal, derivatives};
use crate::transport::scene::texture::{bitmap_slopes, texture_eval};
use crate::transport::scene::three_point::{Onwards, Scatterer, Shifts, ThreePoints};

/// The last points of a path. Boxed, to keep the walk small in scenes where nothing moves.
#[derive(Debug, Clone)]
pub(super) struct Trail<N>(Option<Box<Points<N>>>);

/// The last points of a path that has been scattered.
#[derive(Debug, Clone, Copy)]
struct Points<N> {
    /// The last point at which it was.
    last: Anchor,
    /// A scattering whose third point is not known yet.
    open: Option<Open<N>>,
    /// The ray along which the next point, which the path has met since, slides; None if it follows its surface.
    met: Option<Seen>,
}

/// A scattering whose third point is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open<N> {
    at: Scatterer,
    wo: [f32; 3],
    here: Anchor,
    before: Option<Anchor>,
    /// What the path has passed since.
    drift: Drift<N>,
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
    /// The last point at which the path was scattered; None before the first.
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

/// The way of a shadow ray.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// Where its light was drawn from, and where it begins: offset from the surface, if any, on the side of each.
    pub drawn_from: [f32; 3],
    pub origin: [f32; 3],
    /// The medium in which it begins.
    pub medium: u32,
    /// The path's random numbers before it.
    pub draws: Sampler,
}

/// What a path finds after a scattering.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    Surface(&'a Hit),
    /// A point of a medium.
    Medium([f32; 3]),
    /// Nothing but the background.
    Nothing,
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// The anchor of what scatters.
    #[inline]
    fn here(&self, at: &Scatterer) -> Anchor {
        match at {
            Scatterer::Surface(at) => self.here_on(at),
            Scatterer::Medium { p, .. } => still_anchor(*p),
        }
    }

    /// The anchor of a vertex on a surface, with the tangent that its frame is made from: the surface's ∂p/∂u for an anisotropic
    /// BSDF; for an isotropic one, or where ∂p/∂u has no tangential part, the first axis of `at`.
    #[inline]
    fn here_on(&self, at: &Interaction) -> Anchor {
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

    /// Remembers a scattering into the direction `outgoing`; in a replay `d` are the derivatives by the logarithm of its factor.
    #[inline(never)]
    pub(super) fn leave_trail(&mut self, at: &Scatterer, outgoing: [f32; 3], d: Rgb<N>) {
        let here = self.here(at);
        let open = Open {
            at: *at,
            wo: at.to_local(outgoing),
            here,
            before: self.trail.last(),
            drift: Drift::new(),
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

    /// Passes through the present medium up to a surface of the normal `exit` at the distance `far`, or to a point in the medium.
    #[inline(never)]
    pub(super) fn drift_along(&mut self, far: f32, exit: Option<[f32; 3]>) {
        let (scene, fields, path) = (self.scene, self.fields, &self.path);
        let open = self.trail.0.as_mut().and_then(|points| points.open.as_mut());
        let (Some(open), Some(medium)) = (open, scene.media.get(path.medium as usize)) else {
            return;
        };
        // Where the way ends in the medium, its end stands still.
        if exit.is_none() && far.is_finite() && !open.here.moves(scene) {
            return;
        }
        let mut draws = self.sampler.aside();
        let (origin, direction) = (path.origin, path.direction);
        open.drift
            .cross(scene, fields, medium, origin, direction, far, exit, &mut draws);
    }

    /// Passes straight through a boundary.
    #[inline]
    pub(super) fn pass_boundary(&mut self, hit: &Hit) {
        if let Some(open) = self.trail.0.as_mut().and_then(|points| points.open.as_mut()) {
            open.drift.pass(hit.t, hit.normal);
        }
    }

    /// Completes the factor of the last scattering with its third point; a path that finds nothing goes to infinity.
    #[inline(never)]
    pub(super) fn follow_trail<const MODE: u8>(&mut self, found: Found) {
        let (scene, fields, ray) = (self.scene, self.fields, self.path.direction);
        let Some(trail) = &mut self.trail.0 else { return };
        let Some(open) = trail.open.take() else { return };
        let from = open.here.hit.point.p;
        if let Found::Surface(hit) = found {
            // The logarithm of the cosine has no derivative at zero: the surfaces lie in one plane, and one ray joins them.
            if dot(hit.normal, [0, 1, 2].each(|a: usize| hit.point.p[a] - from[a])) == 0.0 {
                return;
            }
            if let Scatterer::Surface(at) = &open.at {
                let glide = glide(scene, from, width(scene, fields, at), hit, ray);
                trail.met = glide.map(|glide| Seen::still(ray, glide));
            }
        }
        let (after, end) = match found {
            Found::Surface(hit) => (Onwards::Surface(anchor(hit, hit.normal, trail.met)), Some(hit.point.p)),
            Found::Medium(p) => (Onwards::Point(still_anchor(p), Beam::EVEN), Some(p)),
            Found::Nothing => (Onwards::Direction(ray), None),
        };
        let points = ThreePoints {
            at: &open.at,
            wo: open.wo,
            here: open.here,
            before: open.before,
            after,
            through: (!scene.media.is_empty()).then(|| {
                let length = end.map_or(f32::INFINITY, |end| distance(from, end));
                open.drift.shifts(ray, length)
            }),
        };
        if MODE == REPLAY {
            points.adjoint(scene, fields, open.d, &mut self.adjoint.sink);
        } else if F::TWO_SIDED {
            self.path.beta *= points.ratio(scene, fields);
        }
    }

    /// The three points of next-event estimation.
    #[inline]
    fn lit_points<'b>(&self, at: &'b Scatterer, drawn: &Drawn, way: &Way) -> ThreePoints<'b, N> {
        let scene = self.scene;
        let record = &scene.lights[drawn.light as usize];
        let after = match record.kind {
            light::AREA => Onwards::Surface(drawn_anchor(record, way.drawn_from, drawn)),
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
            through: None,
        }
    }

    /// How the transmittance of the shadow ray to a drawn light changes.
    #[inline(never)]
    fn lit_drift(&self, drawn: &Drawn, way: &Way, is_far: bool) -> Shifts<N> {
        let (scene, fields, direction) = (self.scene, self.fields, drawn.direction);
        let (mut drift, mut draws) = (Drift::new(), way.draws.aside());
        let pass = |part: Part| {
            let exit = part.exit.map(|hit| hit.normal);
            if let Some(medium) = part.medium {
                drift.cross(
                    scene,
                    fields,
                    medium,
                    part.origin,
                    direction,
                    part.far,
                    exit,
                    &mut draws,
                );
            }
            if let Some(hit) = part.exit {
                drift.pass(hit.t, hit.normal);
            }
        };
        // An occluded ray contributes nothing, whatever its derivatives are.
        shadow(scene, way.medium, way.origin, drawn, pass, |_| true);
        drift.shifts(direction, if is_far { f32::INFINITY } else { drawn.distance })
    }

    /// The factor by which motion changes the light that arrives from a drawn light and is scattered.
    #[inline(never)]
    pub(super) fn lit_ratio(&self, at: &Scatterer, drawn: &Drawn, way: &Way) -> Rgb<N> {
        let mut points = self.lit_points(at, drawn, way);
        points.through = self.lit_through(&points, drawn, way);
        points.ratio(self.scene, self.fields)
    }

    /// Sends the derivatives of next-event estimation by motion; `d` are those by the logarithm of its contribution.
    #[inline(never)]
    pub(super) fn send_lit(&mut self, at: &Scatterer, drawn: &Drawn, way: &Way, d: Rgb<N>) {
        let mut points = self.lit_points(at, drawn, way);
        if points.is_wanted(self.scene, &self.adjoint.sink) {
            points.through = self.lit_through(&points, drawn, way);
            points.adjoint(self.scene, self.fields, d, &mut self.adjoint.sink);
        }
    }

    /// [`Self::lit_drift`], where there are media.
    #[inline]
    fn lit_through(&self, points: &ThreePoints<N>, drawn: &Drawn, way: &Way) -> Option<Shifts<N>> {
        let is_far = matches!(points.after, Onwards::Direction(_));
        (!self.scene.media.is_empty()).then(|| self.lit_drift(drawn, way, is_far))
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

/// The distance between two points.
#[inline]
pub(super) fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    let way = [0, 1, 2].each(|axis: usize| b[axis] - a[axis]);
    dot(way, way).sqrt()
}

/// The anchor of a point of a medium, which stands still; its frame is that of the world.
#[inline]
fn still_anchor(p: [f32; 3]) -> Anchor {
    let up = [0.0, 0.0, 1.0];
    Anchor {
        hit: Hit {
            t: 0.0,
            surface: NONE,
            primitive: 0,
            point: SurfacePoint::new(p, [0.0; 2]),
            clearance: 0.0,
            normal: up,
            shading: up,
        },
        along: [1.0, 0.0, 0.0],
        seen: None,
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
