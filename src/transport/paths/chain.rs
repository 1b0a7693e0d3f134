//! Chains of vertices on smooth glass and mirrors, whose points a replay moves (docs/method.md, section 24): derivatives by the
//! normals and indices that turn the directions along a chain are propagated back from the light at its end (Vicini2021,
//! section 4.2). Where a chain meets a diffuse plane, the point moves and the directions that are sampled there are held. A
//! camera that moves takes its rays along.

use super::path_state::PathState;
use super::radiative::Incident;
use super::volpath::Walk;
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, background, leaf};
use crate::transport::lookup::background::env_slope;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::transform_vector;
use crate::transport::rays::sampler::dot;
use crate::transport::scene::bsdf::BsdfSample;
use crate::transport::scene::bsdf::diffuse::diffuse_adjoint;
use crate::transport::scene::bsdf::fresnel::{fresnel_conductor_slope, fresnel_slopes, plate, plate_slope};
use crate::transport::scene::bsdf::local::{Lobe, add_scaled, inner, lift, outer};
use crate::transport::scene::glide::Glide;
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::light::light_color;
use crate::transport::scene::motion::{
    Anchor, ByMoved, Seen, by_moving_over, is_wanted, minus, moved_adjoint, moved_ray_adjoint, plus, scaled,
};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::{Hit, SurfacePoint};
use crate::transport::scene::tangent::derivatives;
use crate::transport::scene::texture::{picture_slopes, stencil, texture_adjoint, texture_value};

/// The vertices that a replay has passed since the camera, on smooth glass, mirrors and diffuse planes. A light that is met
/// adds its derivatives to the vertex before it; all are propagated back in one pass at the end.
#[derive(Debug, Clone)]
pub(super) struct Chain<N> {
    links: Vec<Link<N>>,
    /// The number of vertices when a light was last met.
    reached: usize,
    /// The ray that the path begins with, if its camera moves. Boxed, to keep the walk small in scenes whose cameras stand
    /// still.
    camera: Option<Box<CameraRay<N>>>,
}

/// A vertex of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link<N> {
    pub(super) at: Interaction,
    pub(super) lobe: Lobe,
    /// Index of the leaf, among the scene's, whose lobe turned the path.
    leaf: usize,
    /// The derivative by the cosine between the normal and the direction that the path came from, through the reflectance or
    /// transmittance.
    by_cosine: N,
    /// At a diffuse vertex, the derivative by its reflectance, through the radiance from the direction that was sampled.
    by_reflectance: Rgb<N>,
    /// The derivatives by the ray that leaves the vertex, summed over the lights that it met.
    onwards: RayAdjoint<N>,
}

/// The ray that a path begins with, which moves with its camera.
#[derive(Debug, Clone, Copy)]
struct CameraRay<N> {
    origin: [f32; 3],
    seen: Seen,
    /// The derivatives by this ray, summed over the lights that it met.
    onwards: RayAdjoint<N>,
}

/// The derivatives by a ray's origin and by its direction.
#[derive(Debug, Clone, Copy)]
struct RayAdjoint<N> {
    by_origin: [N; 3],
    by_direction: [N; 3],
}

impl<N> Default for Chain<N> {
    #[inline]
    fn default() -> Self {
        Self {
            links: Vec::new(),
            reached: 0,
            camera: None,
        }
    }
}

impl<N: Number> Chain<N> {
    /// The chain of a path that is about to leave its camera.
    #[inline]
    pub(super) fn new(scene: &SceneView, path: &PathState<N>) -> Self {
        let seen = Seen::new(scene, path.direction, path.sensor);
        let camera = (scene.attached && seen.moves(scene)).then(|| {
            Box::new(CameraRay {
                origin: path.origin,
                seen,
                onwards: RayAdjoint::zero(),
            })
        });
        Self {
            camera,
            ..Self::default()
        }
    }
}

/// The normal that a path is turned at.
#[derive(Debug, Clone, Copy)]
struct Normal<N> {
    /// The normal in the surface's local frame, not normalised, and one over its length.
    raw: [N; 3],
    scale: N,
    /// -1 where x and y of the map's vector are reversed; zero where there is no normal map, or its vector is zero.
    sign: f32,
    /// The unit normal in the world.
    m: [N; 3],
}

impl<N: Number> Normal<N> {
    /// The surface's shading normal.
    #[inline]
    fn own(at: &Interaction) -> Self {
        let (zero, one) = (N::lift(0.0), N::lift(1.0));
        Self {
            raw: [zero, zero, one],
            scale: one,
            sign: 0.0,
            m: lift(at.hit.shading),
        }
    }
}

/// Derivatives by the incoming direction, by the unit normal in the world, and by the relative index.
#[derive(Debug, Clone, Copy)]
struct Turning<N> {
    by_incoming: [N; 3],
    by_normal: [N; 3],
    by_eta: N,
}

/// The derivative by a vector of length 1 / `scale`, from `by`, that by its unit vector `n`.
#[inline]
fn direction_adjoint<N: Number>(n: [N; 3], scale: N, by: [N; 3]) -> [N; 3] {
    scaled(add_scaled(by, n, -inner(n, by)), scale)
}

/// The smallest cosine between a ray and a normal in derivatives: towards zero the point that the ray meets moves without
/// bounds, and a few grazing paths would decide a texel's derivative, or overflow its sum.
const GRAZING: f32 = 0.03;

/// The `direction` in which a ray meets a surface of normal `n`, tilted where the cosine is below [`GRAZING`].
#[inline]
pub(super) fn steep(n: [f32; 3], direction: [f32; 3]) -> [f32; 3] {
    let cosine = dot(n, direction);
    if cosine.abs() >= GRAZING {
        return direction;
    }
    let tilt = GRAZING.copysign(cosine) - cosine;
    [0, 1, 2].each(|a| direction[a] + n[a] * tilt)
}

/// The derivative by the origin of a ray along `direction`, from that by the point at which it meets a surface of normal `n`:
/// Pᵀ `by_point` (docs/method.md, equation 67). The ray must not graze ([`steep`]).
#[inline]
pub(super) fn meeting_adjoint<N: Number>(n: [f32; 3], direction: [f32; 3], by_point: [N; 3]) -> [N; 3] {
    let (n, direction) = (lift(n), lift(direction));
    let along = inner(by_point, direction) / inner(n, direction);
    add_scaled(by_point, n, -along)
}

impl<N: Number> RayAdjoint<N> {
    #[inline]
    fn zero() -> Self {
        Self {
            by_origin: [N::lift(0.0); 3],
            by_direction: [N::lift(0.0); 3],
        }
    }

    #[inline]
    fn plus(&self, other: &Self) -> Self {
        Self {
            by_origin: plus(self.by_origin, other.by_origin),
            by_direction: plus(self.by_direction, other.by_direction),
        }
    }

    /// The derivatives by a ray from `origin`, from those by the point at which it meets a surface and by its direction.
    #[inline]
    fn meeting(origin: [f32; 3], direction: [f32; 3], hit: &Hit, by_point: [N; 3], by_direction: [N; 3]) -> Self {
        let by_origin = meeting_adjoint(hit.normal, steep(hit.normal, direction), by_point);
        let length = dot(minus(hit.point.p, origin), direction);
        Self {
            by_origin,
            by_direction: add_scaled(by_direction, by_origin, N::lift(length)),
        }
    }
}

impl<N: Number> CameraRay<N> {
    /// Sends the derivatives by what moves the camera: origin and direction of the ray are parts of it.
    #[inline(never)]
    fn send<F: Fields<N>, S: Sink<N>>(&self, scene: &SceneView, fields: &F, onwards: &RayAdjoint<N>, sink: &mut S) {
        let RayAdjoint {
            by_origin,
            by_direction,
        } = self.onwards.plus(onwards);
        let begins = Hit {
            t: 0.0,
            surface: NONE,
            primitive: 0,
            point: SurfacePoint::new(self.origin, [0.0; 2]),
            clearance: 0.0,
            normal: self.seen.ray,
            shading: self.seen.ray,
        };
        moved_ray_adjoint(scene, fields, &self.seen, &begins, [by_origin, by_direction], sink);
    }
}

/// Sends the derivatives by the motion of a surface, with the ray that meets it held.
#[inline(never)]
fn send_motion<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    hit: &Hit,
    ray: [f32; 3],
    by: &ByMoved<N>,
    sink: &mut S,
) {
    let anchor = Anchor {
        hit: *hit,
        along: derivatives(scene, hit)[0],
        seen: Some(Seen::still(ray, Glide::WHOLE)),
    };
    if is_wanted(scene, &anchor, sink) {
        moved_adjoint(scene, fields, &anchor, by, sink);
    }
}

/// The transpose of a matrix of rows, times a vector.
#[inline]
fn transposed<N: Number, const ROWS: usize>(rows: &[[f32; 3]; ROWS], v: [N; ROWS]) -> [N; 3] {
    let mut sum = [N::lift(0.0); 3];
    for i in 0..ROWS {
        sum = add_scaled(sum, lift(rows[i]), v[i]);
    }
    sum
}

impl<N: Number> Link<N> {
    /// The vertex of a path that has drawn a direction there; [`Self::weigh`] adds the derivatives by its weight.
    pub(super) fn new(scene: &SceneView, at: &Interaction, drawn: &BsdfSample) -> Self {
        let [first, _] = at.side(scene);
        Self {
            at: *at,
            lobe: drawn.lobe,
            leaf: first as usize + drawn.leaf,
            by_cosine: N::lift(0.0),
            by_reflectance: Rgb::zero(),
            onwards: RayAdjoint::zero(),
        }
    }

    /// Notes how the weight changes with the vertex; `d` are the derivatives by the weight.
    pub(super) fn weigh<F: Fields<N>>(&mut self, scene: &SceneView, fields: &F, weight: Rgb<N>, d: Rgb<N>) {
        match self.lobe {
            // The weight is the reflectance.
            Lobe::Smooth => self.by_reflectance = d,
            _ => self.by_cosine = self.by_cosine(scene, fields, d * weight),
        }
    }

    /// Drops the derivatives by the weight, once they are sent.
    pub(super) fn forget_weight(&mut self) {
        self.by_cosine = N::lift(0.0);
        self.by_reflectance = Rgb::zero();
    }

    /// From the derivative by the outgoing direction: those by normal, tangent and texture coordinates of the vertex, and by
    /// the incoming direction. Sends those by the normal map's texels and by the index.
    pub(super) fn turn_back<F: Fields<N>, S: Sink<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        by_direction: [N; 3],
        sink: &mut S,
    ) -> (ByMoved<N>, [N; 3]) {
        let normal = self.normal(scene, fields);
        let eta = self.value(scene, fields, 0)[0];
        let turning = self.turning(normal.m, eta, by_direction);
        let leaf = &scene.leaves[self.leaf];
        if leaf.kind == leaf::DIELECTRIC {
            let by_eta = Rgb([turning.by_eta, N::lift(0.0), N::lift(0.0)]);
            texture_adjoint(&stencil(scene, leaf.first_texture, &self.at.hit.point), by_eta, sink);
        }
        let by = match self.lobe {
            Lobe::Smooth => self.by_picture(scene, fields),
            _ => self.normal_adjoint(scene, fields, &normal, turning.by_normal, sink),
        };
        (by, turning.by_incoming)
    }

    /// The derivatives of a diffuse vertex by its texture coordinates, through its reflectance.
    pub(super) fn by_picture<F: Fields<N>>(&self, scene: &SceneView, fields: &F) -> ByMoved<N> {
        let reflectance = scene.leaves[self.leaf].first_texture;
        let uv = picture_slopes(
            scene,
            |slot| fields.integrand(slot),
            reflectance,
            self.at.hit.point.uv,
            self.by_reflectance,
        );
        ByMoved { uv, ..ByMoved::zero() }
    }

    /// The normal of this vertex at which the path is turned.
    fn normal<F: Fields<N>>(&self, scene: &SceneView, fields: &F) -> Normal<N> {
        let (at, record) = (&self.at, &scene.leaves[self.leaf]);
        if record.relief == NONE || at.smooth {
            return Normal::own(at);
        }
        let texel = texture_value(scene, |slot| fields.integrand(slot), record.relief, &at.hit.point);
        let raw = texel.0.each(|x| N::lift(2.0) * x - N::lift(1.0));
        if !inner(raw, raw).above(0.0) {
            return Normal::own(at);
        }
        let seen = inner(raw, lift(at.wi)) * N::lift(at.wi[2]);
        let sign = if record.flags & leaf::FLIPS != 0 && !seen.above(0.0) {
            -1.0
        } else {
            1.0
        };
        let raw = [raw[0] * N::lift(sign), raw[1] * N::lift(sign), raw[2]];
        let scale = inner(raw, raw).sqrt().recip();
        let axes = [at.s, at.t, at.hit.shading].each(lift::<N>);
        let m = [0, 1, 2].each(|a| (axes[0][a] * raw[0] + axes[1][a] * raw[1] + axes[2][a] * raw[2]) * scale);
        Normal { raw, scale, sign, m }
    }

    /// From `d`, the derivative by the outgoing direction: those by the incoming direction, by the normal `m` and by the index
    /// (docs/method.md, equations 68 and 69).
    fn turning(&self, m: [N; 3], eta: N, d: [N; 3]) -> Turning<N> {
        let (zero, one) = (N::lift(0.0), N::lift(1.0));
        let incoming = lift::<N>(self.at.incoming);
        let cosine = -inner(incoming, m);
        let mut turning = match self.lobe {
            Lobe::Reflection => Turning {
                by_incoming: add_scaled(d, m, N::lift(-2.0) * inner(m, d)),
                by_normal: add_scaled(scaled(d, N::lift(2.0) * cosine), incoming, N::lift(-2.0) * inner(m, d)),
                by_eta: zero,
            },
            Lobe::Transmission => {
                // The index of the side that the path comes from over that of the other, and the normal turned to that side.
                let outside = cosine.above(0.0);
                let e = if outside { eta.recip() } else { eta };
                let side = N::lift(if outside { 1.0 } else { -1.0 });
                let (c, n) = (cosine * side, scaled(m, side));
                let sine_square = one - c * c;
                let ct = (one - e * e * sine_square).sqrt();
                let by_mu = inner(n, d);
                let by_c = by_mu * (e - e * e * c / ct);
                let by_e = inner(incoming, d) + by_mu * (c + e * sine_square / ct);
                Turning {
                    by_incoming: add_scaled(scaled(d, e), n, -by_c),
                    by_normal: scaled(add_scaled(scaled(d, e * c - ct), incoming, -by_c), side),
                    by_eta: if outside { -by_e * e * e } else { by_e },
                }
            }
            // The direction that was sampled is held.
            Lobe::Smooth => Turning {
                by_incoming: [zero; 3],
                by_normal: [zero; 3],
                by_eta: zero,
            },
            Lobe::Null => Turning {
                by_incoming: d,
                by_normal: [zero; 3],
                by_eta: zero,
            },
        };
        turning.by_incoming = add_scaled(turning.by_incoming, m, -self.by_cosine);
        turning.by_normal = add_scaled(turning.by_normal, incoming, -self.by_cosine);
        turning
    }

    /// Sends the derivatives by the normal map's texels, and returns those by the frame of the map (the shading normal and
    /// ∂p/∂u) and by the texture coordinates.
    fn normal_adjoint<F: Fields<N>, S: Sink<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        normal: &Normal<N>,
        by_normal: [N; 3],
        sink: &mut S,
    ) -> ByMoved<N> {
        let (at, relief) = (&self.at, scene.leaves[self.leaf].relief);
        let mut by = ByMoved::zero();
        let by_raw = direction_adjoint(normal.m, normal.scale, by_normal);
        let axes = [at.s, at.t, at.hit.shading].each(lift::<N>);
        let [s, _, n] = axes;
        let raw = normal.raw;
        by.normal = scaled(by_raw, raw[2]);
        if normal.sign == 0.0 {
            return by;
        }
        // The second axis is the cross product of normal and first axis, and the first axis the normalised tangential part of
        // ∂p/∂u.
        by.normal = plus(by.normal, scaled(outer(s, by_raw), raw[1]));
        let by_s = plus(scaled(by_raw, raw[0]), scaled(outer(by_raw, n), raw[1]));
        let along = lift::<N>(derivatives(scene, &at.hit)[0]);
        let height = inner(n, along);
        let tangential = add_scaled(along, n, -height);
        let square = inner(tangential, tangential);
        if square.above(0.0) {
            let by_tangential = direction_adjoint(s, square.sqrt().recip(), by_s);
            let across = inner(n, by_tangential);
            by.normal = minus(by.normal, plus(scaled(by_tangential, height), scaled(along, across)));
            by.tangent = add_scaled(by_tangential, n, -across);
        }
        // The map's vector, whose x and y may be reversed.
        let local = axes.each(|axis| inner(axis, by_raw));
        let sign = N::lift(2.0 * normal.sign);
        let by_texel = Rgb([local[0] * sign, local[1] * sign, local[2] * N::lift(2.0)]);
        texture_adjoint(&stencil(scene, relief, &at.hit.point), by_texel, sink);
        by.uv = picture_slopes(scene, |slot| fields.integrand(slot), relief, at.hit.point.uv, by_texel);
        by
    }

    /// A value of the leaf's textures.
    #[inline]
    fn value<F: Fields<N>>(&self, scene: &SceneView, fields: &F, which: u32) -> Rgb<N> {
        let texture = scene.leaves[self.leaf].first_texture + which;
        texture_value(scene, |slot| fields.integrand(slot), texture, &self.at.hit.point)
    }

    /// The derivative by the cosine between the normal and the reversed incoming direction, from those by the logarithm of the
    /// weight.
    fn by_cosine<F: Fields<N>>(&self, scene: &SceneView, fields: &F, d: Rgb<N>) -> N {
        let (zero, one) = (N::lift(0.0), N::lift(1.0));
        let m = self.normal(scene, fields).m;
        let cosine = -inner(lift::<N>(self.at.incoming), m);
        let first = self.value(scene, fields, 0);
        match (scene.leaves[self.leaf].kind, self.lobe) {
            (leaf::DIELECTRIC, lobe) => {
                let [f, slope, _] = fresnel_slopes(cosine, first[0]);
                match lobe {
                    Lobe::Reflection => d.sum() * slope / f,
                    _ => -d.sum() * slope / (one - f),
                }
            }
            (leaf::THIN_DIELECTRIC, lobe) => {
                let sign = N::lift(if cosine.below(0.0) { -1.0 } else { 1.0 });
                let [single, slope, _] = fresnel_slopes(cosine.abs(), first[0]);
                let (f, slope) = (plate(single), plate_slope(single) * slope * sign);
                match lobe {
                    Lobe::Reflection => d.sum() * slope / f,
                    _ => -d.sum() * slope / (one - f),
                }
            }
            _ => {
                let k = self.value(scene, fields, 1);
                let logarithmic = |c: usize| {
                    let [f, slope] = fresnel_conductor_slope(cosine, first[c], k[c]);
                    if f.above(0.0) { slope / f } else { zero }
                };
                d[0] * logarithmic(0) + d[1] * logarithmic(1) + d[2] * logarithmic(2)
            }
        }
    }
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// Lengthens the chain by a vertex of this weight; `d` are the derivatives by it.
    #[inline(never)]
    pub(super) fn lengthen_chain(&mut self, at: &Interaction, drawn: &BsdfSample, weight: Rgb<N>, d: Rgb<N>) {
        let mut link = Link::new(self.scene, at, drawn);
        link.weigh(self.scene, self.fields, weight, d);
        self.chain.links.push(link);
    }

    /// Whether the present ray can move: the camera does, or the path has passed a vertex of a chain.
    fn is_chained(&mut self) -> bool {
        let has_ray = self.rays().is_some_and(|rays| rays.has_ray());
        has_ray || !self.chain.links.is_empty() || self.chain.camera.is_some()
    }

    /// Adds derivatives to the last vertex, or to the camera if there is none: `by_direction` by the direction of the ray, and
    /// in `end` those by the texture coordinates of the point at which the ray meets a surface, if it does.
    fn meet_light(&mut self, end: Option<(&Hit, [N; 2])>, by_direction: [N; 3]) {
        let scene = self.scene;
        let end = end.map(|(hit, uv)| (hit, by_moving_over(scene, hit, &ByMoved { uv, ..ByMoved::zero() })));
        if let Some(rays) = self.rays() {
            return rays.arrive(end, by_direction);
        }
        let Chain { links, reached, camera } = &mut self.chain;
        *reached = links.len();
        let (origin, onwards) = match (links.last_mut(), camera) {
            (Some(last), _) => (last.at.hit.point.p, &mut last.onwards),
            (None, Some(camera)) => (camera.origin, &mut camera.onwards),
            (None, None) => return,
        };
        let met = match end {
            Some((hit, by_point)) => RayAdjoint::meeting(origin, self.path.direction, hit, by_point, by_direction),
            None => RayAdjoint {
                by_direction,
                ..RayAdjoint::zero()
            },
        };
        *onwards = onwards.plus(&met);
    }

    /// Sends the derivatives along the chain, from the last vertex before a light back to the first, and to the camera.
    #[inline(never)]
    pub(super) fn send_chain(&mut self) {
        let (scene, fields) = (self.scene, self.fields);
        let Chain { links, reached, camera } = &self.chain;
        let sink = &mut self.adjoint.sink;
        let mut onwards = RayAdjoint::zero();
        for (k, link) in links[..*reached].iter().enumerate().rev() {
            onwards = onwards.plus(&link.onwards);
            let (mut by, by_incoming) = link.turn_back(scene, fields, onwards.by_direction, sink);
            let (hit, incoming) = (&link.at.hit, link.at.incoming);
            by.p = onwards.by_origin;
            if !scene.motions.is_empty() {
                send_motion(scene, fields, hit, steep(hit.normal, incoming), &by, sink);
            }
            let origin = match (k, camera) {
                (0, None) => break,
                (0, Some(camera)) => camera.origin,
                _ => links[k - 1].at.hit.point.p,
            };
            let by_point = plus(by.p, by_moving_over(scene, hit, &by));
            onwards = RayAdjoint::meeting(origin, incoming, hit, by_point, by_incoming);
        }
        if let Some(camera) = camera {
            camera.send(scene, fields, &onwards, sink);
        }
    }

    /// Adds the derivatives by the point at which a chain meets a diffuse plane; `d` are those by the BSDF's value for the
    /// local direction `wo` towards the sky.
    #[inline(never)]
    pub(super) fn chain_to_plane(&mut self, at: &Interaction, wo: [f32; 3], d: Rgb<N>) {
        if !self.is_chained() {
            return;
        }
        let (scene, fields) = (self.scene, self.fields);
        let [first, _] = at.side(scene);
        let by_reflectance = diffuse_adjoint(lift(wo), d);
        let reflectance = scene.leaves[first as usize].first_texture;
        let by_uv = picture_slopes(
            scene,
            |slot| fields.integrand(slot),
            reflectance,
            at.hit.point.uv,
            by_reflectance,
        );
        self.meet_light(Some((&at.hit, by_uv)), [N::lift(0.0); 3]);
    }

    /// Adds the derivatives by the point at which a chain meets a light, whose contribution was throughput · `factor` ·
    /// radiance.
    #[inline(never)]
    pub(super) fn chain_to_light(&mut self, record: &LightRecord, hit: &Hit, factor: Rgb<N>) {
        if !self.is_chained() {
            return;
        }
        let (scene, fields) = (self.scene, self.fields);
        let mut by_uv = [N::lift(0.0); 2];
        if record.texture != NONE {
            let d = self.path.alive(self.adjoint.d_radiance * self.path.beta * factor) * light_color(fields, record);
            by_uv = picture_slopes(scene, |slot| fields.integrand(slot), record.texture, hit.point.uv, d);
        }
        self.meet_light(Some((hit, by_uv)), [N::lift(0.0); 3]);
    }

    /// Adds the derivatives by the direction in which a chain leaves the scene, whose contribution was throughput · `weight` ·
    /// radiance.
    #[inline(never)]
    pub(super) fn chain_to_sky(&mut self, weight: f32) {
        if !self.is_chained() {
            return;
        }
        let (scene, fields) = (self.scene, self.fields);
        let mut by_direction = [N::lift(0.0); 3];
        if scene.common.background == background::ENVMAP {
            let d = self.path.alive(self.adjoint.d_radiance * self.path.beta * weight);
            let scale = match scene.common.env_scale_slot {
                NONE => N::lift(1.0),
                slot => fields.integrand(slot)[0],
            };
            let to_map = &scene.common.world_to_env;
            let local = transform_vector(to_map, self.path.direction);
            let shorter = 1.0 / dot(local, local).sqrt();
            let data = fields.integrand(scene.background);
            let unit = lift(local.each(|x| x * shorter));
            let by_local = env_slope(scene.common.env_size, data, unit, (d * Rgb::splat(scale)).0);
            let rows = to_map.each(|[x, y, z, _]| [x, y, z].each(|a| a * shorter));
            by_direction = transposed(&rows, by_local);
        }
        self.meet_light(None, by_direction);
    }
}
