//! Paths through participating media and between surfaces: one walk for every mode.
//!
//! A primal walk adds what it finds. An adjoint walks twice from the same random numbers: first as the primal does, but on
//! through factors that are zero; then again, subtracting what it added, so that what is left is the radiance still to
//! come, whose logarithmic derivatives belong to the factors met on the way (Vicini2021, section 3.2 and 4.1).

use super::background::background_eval;
use super::camera::Ray;
use super::light::{Drawn, area_density, envmap_density, light_sample, light_value};
use super::majorant::clip;
use super::number::Number;
use super::phase::{phase_density, phase_eval, phase_sample, phase_scatter};
use super::sampler::{Sampler, along, around, dot};
use super::shape::{Hit, intersect, leave};
use super::texture::texture_eval;
use super::tracking::{Extinction, Flight, extinction, fly, is_unbounded, ratio_track, walk_candidates};
use super::volume::{volume_eval, volume_stencil};
use super::world::{Fields, NoSink, Sink, World};
use crate::resident::layout::{LightRecord, MediumRecord, NONE, background, bsdf, gradient, light};

/// Adds radiance and ends where nothing can come any more.
pub const PRIMAL: u8 = 0;
/// Adds radiance and goes on through factors of zero: the first walk of an adjoint.
pub const GATHER: u8 = 1;
/// Subtracts radiance and sends derivatives: the second.
pub const REPLAY: u8 = 2;

/// Share of the segments after the first on which candidates for in-scattering are looked for: a path keeps only one of
/// all, so that looking everywhere would cost more than it helps.
const VISITED: f32 = 0.25;
/// Shadow rays end this fraction short of what they are drawn to.
const SHADOW: f32 = 1.0 - 5e-4;
/// Less than this of the light of a flight without end is none.
const FAINT: f64 = 1e-30;
/// Russian roulette never lets a path go on with a higher probability than this.
const MOST: f32 = 0.95;

/// A path on its way.
#[derive(Debug, Clone, Copy)]
pub struct Path<N> {
    /// Gathered so far; in a replay still to come.
    pub radiance: [N; 3],
    /// The same for contributions of which exactly one factor is zero, with that factor left out.
    pub spare: [N; 3],
    /// Product of the factors so far, zeros left out, and how many of those there were.
    pub beta: [N; 3],
    pub zeros: [u32; 3],
    /// Throughput on the sampling side, where the view has two.
    decided: [f32; 3],
    /// For each channel the density of the path, had that channel decided, over the density of the path as decided.
    ratio: [f32; 3],
    /// The channel that decides collisions.
    pub hero: u32,
    /// Edges so far.
    pub depth: u32,
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    pub medium: u32,
    /// How far the camera sees.
    far: f32,
    /// Where the last scattering was, and the density of the direction that it took.
    from: [f32; 3],
    density: f32,
    /// Contributions so far.
    pub count: u32,
    /// Whether the path reached the background without a turn.
    pub straight: bool,
}

impl<N: Number> Path<N> {
    /// A path that begins with a camera ray in `medium`.
    #[inline]
    pub fn new(world: &World, ray: &Ray, medium: u32, sampler: &mut Sampler) -> Self {
        let hero = if world.record.spectral == 1 {
            ((sampler.draw() * 3.0) as u32).min(2)
        } else {
            0
        };
        Self::start(
            along(ray.origin, ray.direction, ray.near),
            ray.direction,
            ray.far - ray.near,
            medium,
            hero,
        )
    }

    #[inline]
    fn start(origin: [f32; 3], direction: [f32; 3], far: f32, medium: u32, hero: u32) -> Self {
        let (zero, one) = (N::lift(0.0), N::lift(1.0));
        Self {
            radiance: [zero; 3],
            spare: [zero; 3],
            beta: [one; 3],
            zeros: [0; 3],
            decided: [1.0; 3],
            ratio: [1.0; 3],
            hero,
            depth: 0,
            origin,
            direction,
            medium,
            far,
            from: origin,
            density: 0.0,
            count: 0,
            straight: false,
        }
    }

    /// One over the mean of the channels' densities.
    #[inline]
    pub fn norm(&self, world: &World) -> f32 {
        if world.record.spectral == 1 {
            3.0 / (self.ratio[0] + self.ratio[1] + self.ratio[2])
        } else {
            1.0
        }
    }

    /// Adds (a replay subtracts) throughput times `radiance`.
    #[inline]
    pub fn add<const MODE: u8>(&mut self, radiance: [N; 3]) {
        self.count += 1;
        for c in 0..3 {
            let value = self.beta[c] * radiance[c];
            let target = match self.zeros[c] {
                0 => &mut self.radiance[c],
                1 if MODE != PRIMAL => &mut self.spare[c],
                _ => continue,
            };
            if MODE == REPLAY {
                *target -= value;
            } else {
                *target += value;
            }
        }
    }

    /// Multiplies the throughput; zeros are counted, not multiplied, unless they carry derivatives of their own.
    #[inline]
    fn multiply<F: Fields<N>>(&mut self, factor: [N; 3]) {
        for c in 0..3 {
            if factor[c].value() == 0.0 && !F::TRACKED {
                self.zeros[c] += 1;
            } else {
                self.beta[c] *= factor[c];
            }
        }
    }

    /// Multiplies what decisions look at; zeros are left out.
    #[inline]
    fn decide(&mut self, factor: [f32; 3]) {
        for c in 0..3 {
            self.decided[c] *= if factor[c] == 0.0 { 1.0 } else { factor[c] };
        }
    }

    /// The weight of a real collision that `hero` decided, without the albedo.
    #[inline]
    pub fn weigh_real<F: Fields<N>>(&mut self, world: &World, sigma: &Extinction<N>, hero: f32) {
        let scale = 1.0 / hero;
        if world.record.spectral == 1 {
            let weight = sigma.sampled.map(|s| s * scale);
            for c in 0..3 {
                self.ratio[c] *= weight[c];
            }
            if F::TWO_SIDED {
                self.decide(weight);
            }
        }
        if world.record.spectral == 1 || F::TWO_SIDED {
            self.multiply::<F>(sigma.integrand.map(|s| s * N::lift(scale)));
        }
    }

    /// The weight of a null collision.
    #[inline]
    pub fn weigh_null<F: Fields<N>>(&mut self, world: &World, sigma: &Extinction<N>, hero: f32, mu: f32) {
        if world.record.spectral != 1 && !F::TWO_SIDED {
            return;
        }
        let scale = 1.0 / (mu - hero);
        if world.record.spectral == 1 {
            let weight = sigma.sampled.map(|s| (mu - s) * scale);
            for c in 0..3 {
                self.ratio[c] *= weight[c];
            }
            if F::TWO_SIDED {
                self.decide(weight);
            }
        }
        self.multiply::<F>(sigma.integrand.map(|s| (N::lift(mu) - s) * N::lift(scale)));
    }

    /// Whether next to nothing is left of the channels that the medium extinguishes; these end.
    #[inline]
    pub fn fades(&mut self, sigma: &Extinction<N>) -> bool {
        let extinguished = sigma.sampled.map(|s| s > 0.0);
        if (0..3).any(|c| extinguished[c] && f64::from(self.ratio[c]) > FAINT) {
            return false;
        }
        for c in (0..3).filter(|&c| extinguished[c]) {
            self.ratio[c] = 0.0;
            self.zeros[c] += 2;
        }
        true
    }

    /// Whether no channel can carry anything any more.
    #[inline]
    fn is_dark<const MODE: u8>(&self) -> bool {
        let dead = if MODE == PRIMAL { 1 } else { 2 };
        self.zeros[0] >= dead && self.zeros[1] >= dead && self.zeros[2] >= dead
    }

    /// Throughput that decisions look at.
    #[inline]
    fn brightness<F: Fields<N>>(&self, world: &World) -> f32 {
        let norm = self.norm(world);
        let mut most = 0.0f32;
        for c in 0..3 {
            let value = if F::TWO_SIDED {
                self.decided[c]
            } else {
                self.beta[c].value() as f32
            };
            most = most.max(value * norm);
        }
        most
    }

    /// Turns the path at `p` into `direction`, drawn with `density`.
    #[inline]
    fn turn(&mut self, p: [f32; 3], origin: [f32; 3], direction: [f32; 3], density: f32) {
        self.origin = origin;
        self.from = p;
        self.direction = direction;
        self.density = density;
        self.far = f32::INFINITY;
    }
}

/// What an adjoint carries beside the path.
#[derive(Debug)]
pub struct Adjoint<'s, N, S> {
    /// Derivative of the loss by the path's radiance.
    pub d_radiance: [N; 3],
    pub sink: &'s mut S,
    /// Draws that only the adjoint makes.
    pub extra: Sampler,
    pub candidate: Candidate<N>,
}

/// A point drawn, among all that a path could have scattered at, for a derivative by in-scattering.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<N> {
    /// Sum of all weights so far; the candidate's own is a part of it.
    total: f32,
    p: [f32; 3],
    direction: [f32; 3],
    medium: u32,
    depth: u32,
    /// Derivative by the light scattered there, over the candidate's weight.
    d: [N; 3],
}

impl<N: Number> Candidate<N> {
    fn none() -> Self {
        Self {
            total: 0.0,
            p: [0.0; 3],
            direction: [0.0; 3],
            medium: NONE,
            depth: 0,
            d: [N::lift(0.0); 3],
        }
    }
}

impl<'s, N: Number, S: Sink<N>> Adjoint<'s, N, S> {
    /// For walks that send derivatives to `sink`, with the stream of the draws that only they make.
    pub fn new(d_radiance: [N; 3], sink: &'s mut S, extra: Sampler) -> Self {
        Self {
            d_radiance,
            sink,
            extra,
            candidate: Candidate::none(),
        }
    }

    /// Differential ratio tracking of the transmittance of a flight from `start` to `end`: minus its length times the
    /// radiance still to come, at a uniform place on it.
    #[inline]
    pub fn attenuate(&mut self, world: &World, path: &Path<N>, medium: &MediumRecord, start: f32, end: f32) {
        let mut d = [N::lift(0.0); 3];
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d[c] = self.d_radiance[c] * path.radiance[c];
            }
        }
        let origin = along(path.origin, path.direction, start);
        self.darken(world, medium, origin, path.direction, end - start, d);
    }

    /// The derivatives of a real collision, which `hero` decided, by the extinction there, the density of the collision
    /// detached.
    #[inline]
    pub fn collide(&mut self, world: &World, path: &Path<N>, medium: &MediumRecord, sigma: &Extinction<N>, hero: f32) {
        let mut weight = medium.scale;
        if world.record.gradient == gradient::DRT {
            weight *= free_flight_share(medium, &sigma.sampled);
        }
        let mut d = [N::lift(0.0); 3];
        for c in 0..3 {
            if path.zeros[c] == 0 {
                let logarithmic = if sigma.integrand[c].value() == 0.0 {
                    path.spare[c] * N::lift(1.0 / hero)
                } else {
                    path.radiance[c] * sigma.integrand[c].recip()
                };
                d[c] = self.d_radiance[c] * logarithmic * N::lift(weight);
            }
        }
        let volume = &world.volumes[medium.sigma_t as usize];
        self.sink.volume(volume, &sigma.at, d, 3);
    }

    /// Sends -`length` · `d` to the extinction at a uniform place of the segment.
    #[inline]
    pub fn darken(
        &mut self,
        world: &World,
        medium: &MediumRecord,
        origin: [f32; 3],
        direction: [f32; 3],
        length: f32,
        d: [N; 3],
    ) {
        let p = along(origin, direction, length * self.extra.draw());
        // Nothing comes through an unbounded medium, so that there is no derivative either.
        if !length.is_finite() {
            return;
        }
        let volume = &world.volumes[medium.sigma_t as usize];
        let weight = N::lift(-length * medium.scale);
        self.sink
            .volume(volume, &volume_stencil(volume, p), d.map(|d| d * weight), 3);
    }
}

/// Follows a path to its end.
#[inline]
pub fn walk<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if path.depth >= world.record.max_depth {
        return;
    }
    loop {
        let hit = intersect(world, path.origin, path.direction, path.far);
        let far = match &hit {
            Some(hit) => hit.t,
            None => path.far,
        };
        if path.medium != NONE {
            if MODE == REPLAY && world.record.gradient == gradient::DRT {
                gather_candidates(world, fields, path, far, adjoint);
            }
            if let Flight::Collided { p, sigma } = fly::<N, F, S, MODE>(world, fields, path, far, sampler, adjoint) {
                if !scatter::<N, F, S, MODE>(world, fields, path, p, &sigma, sampler, adjoint) {
                    return;
                }
                continue;
            }
        }
        let Some(hit) = hit else {
            escape::<N, F, S, MODE>(world, fields, path, adjoint);
            return;
        };
        if !meet::<N, F, S, MODE>(world, fields, path, &hit, sampler, adjoint) {
            return;
        }
    }
}

/// The power heuristic.
#[inline]
fn mis(a: f32, b: f32) -> f32 {
    let (a, b) = (a * a, b * b);
    if a + b > 0.0 { a / (a + b) } else { 0.0 }
}

/// What lies behind the scene.
#[inline]
fn escape<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    path.straight = path.depth == 0;
    if !world.has_background() || (path.depth == 0 && world.record.hide_emitters == 1) {
        return;
    }
    let mut weight = path.norm(world);
    if path.depth > 0 && world.scene.background == background::ENVMAP {
        weight *= mis(path.density, envmap_density(world, path.direction));
    }
    let radiance = background_eval(world.scene, fields.integrand(world.background), path.direction);
    path.add::<MODE>(radiance.map(|x| x * N::lift(weight)));
    if MODE == REPLAY {
        let mut d = [N::lift(0.0); 3];
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d[c] = adjoint.d_radiance[c] * path.beta[c] * N::lift(weight);
            }
        }
        adjoint.sink.background(path.direction, d);
    }
}

/// A real collision: false if the path ends.
#[inline]
fn scatter<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    p: [f32; 3],
    sigma: &Extinction<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let medium = &world.media[path.medium as usize];
    let volume = &world.volumes[medium.albedo as usize];
    let at = if medium.aligned == 1 {
        sigma.at
    } else {
        volume_stencil(volume, p)
    };
    let albedo = volume_eval(volume, fields.integrand(volume.slot), &at);
    if F::TWO_SIDED {
        path.decide(volume_eval(volume, fields.sampling(volume.slot), &at));
    }
    if MODE == REPLAY {
        let d = derivatives_of_factor(path, &adjoint.d_radiance, albedo);
        adjoint.sink.volume(volume, &at, d, 3);
    }
    path.multiply::<F>(albedo);
    path.depth += 1;
    if path.depth >= world.record.max_depth || path.is_dark::<MODE>() {
        return false;
    }
    redirect::<N, F, S, MODE>(world, fields, path, p, sampler, adjoint)
}

/// Scatters the light at `p`: next-event estimation, then a new direction. False if the path ends.
#[inline]
fn redirect<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    p: [f32; 3],
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let (incoming, index) = (path.direction, world.media[path.medium as usize].phase);
    if world.record.lights > 0
        && let Some(drawn) = light_sample(world, p, sampler)
    {
        let density = phase_density(world, fields, index, p, incoming, drawn.direction);
        let value = match F::TWO_SIDED {
            true => phase_eval(world, fields, index, p, incoming, drawn.direction),
            false => N::lift(density),
        };
        let lit = connect::<N, F, S, MODE>(world, fields, path, p, &drawn, [value; 3], density, sampler, adjoint);
        if MODE == REPLAY {
            phase_scatter(world, fields, index, p, incoming, drawn.direction, lit, adjoint.sink);
        }
    }
    let outgoing = phase_sample(world, fields, index, p, incoming, sampler);
    let density = phase_density(world, fields, index, p, incoming, outgoing);
    if F::TWO_SIDED {
        let value = phase_eval(world, fields, index, p, incoming, outgoing);
        path.multiply::<F>([value * N::lift(1.0 / density); 3]);
    }
    if MODE == REPLAY {
        let mut d = N::lift(0.0);
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d += adjoint.d_radiance[c] * path.radiance[c];
            }
        }
        phase_scatter(world, fields, index, p, incoming, outgoing, d, adjoint.sink);
    }
    path.turn(p, p, outgoing, density);
    roulette::<N, F>(world, path, sampler)
}

/// The derivatives by a factor that is about to be multiplied: the radiance still to come over the factor; where the
/// factor is zero, what would come without it.
#[inline]
fn derivatives_of_factor<N: Number>(path: &Path<N>, d_radiance: &[N; 3], factor: [N; 3]) -> [N; 3] {
    let mut d = [N::lift(0.0); 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            d[c] = if factor[c].value() == 0.0 {
                d_radiance[c] * path.spare[c]
            } else {
                d_radiance[c] * path.radiance[c] * factor[c].recip()
            };
        }
    }
    d
}

/// The share of free-flight sampling in the derivative by in-scattering.
#[inline]
fn free_flight_share(medium: &MediumRecord, sigma: &[f32; 3]) -> f32 {
    let mean = (sigma[0] + sigma[1] + sigma[2]) * (1.0 / 3.0);
    let square = mean * mean;
    square / (square + medium.kappa * medium.kappa)
}

/// Russian roulette from `rr_depth` on: false if the path ends.
#[inline]
fn roulette<N: Number, F: Fields<N>>(world: &World, path: &mut Path<N>, sampler: &mut Sampler) -> bool {
    if path.depth <= world.record.rr_depth {
        return true;
    }
    let survival = path.brightness::<F>(world).min(MOST);
    if sampler.draw() >= survival {
        return false;
    }
    let scale = 1.0 / survival;
    for c in 0..3 {
        path.beta[c] *= N::lift(scale);
        path.decided[c] *= scale;
    }
    true
}

/// A surface: false if the path ends.
#[inline]
fn meet<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    hit: &Hit,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let record = &world.surfaces[hit.surface as usize];
    let q = along(path.origin, path.direction, hit.t);
    let against = dot(path.direction, hit.normal) < 0.0;
    if record.light != NONE && against && !(path.depth == 0 && world.record.hide_emitters == 1) {
        let mut weight = path.norm(world);
        if path.depth > 0 {
            weight *= mis(path.density, area_density(world, path.from, path.direction, hit, q));
        }
        let slot = world.lights[record.light as usize].slot;
        let radiance: [N; 3] = light_value(fields.integrand(slot));
        path.add::<MODE>(radiance.map(|x| x * N::lift(weight)));
        if MODE == REPLAY {
            send_light(path, slot, [N::lift(weight); 3], adjoint);
        }
    }
    if record.bsdf == bsdf::NULL {
        if record.interior != NONE || record.exterior != NONE {
            path.medium = if against { record.interior } else { record.exterior };
        }
        path.origin = leave(q, hit.normal, path.direction);
        path.far -= hit.t;
        return true;
    }
    if !against {
        return false;
    }
    path.depth += 1;
    if path.depth >= world.record.max_depth {
        return false;
    }
    let color = texture_eval(world, &world.textures[record.texture as usize], hit.uv);
    if color == [0.0; 3] {
        return false;
    }
    let p = leave(q, hit.normal, hit.normal);
    const INV_PI: f32 = std::f32::consts::FRAC_1_PI;
    if world.record.lights > 0
        && let Some(drawn) = light_sample(world, p, sampler)
    {
        let cosine = dot(drawn.direction, hit.shading);
        if cosine > 0.0 && dot(drawn.direction, hit.normal) > 0.0 {
            let density = cosine * INV_PI;
            let value = color.map(|x| N::lift(x * density));
            connect::<N, F, S, MODE>(world, fields, path, p, &drawn, value, density, sampler, adjoint);
        }
    }
    let cosine = (1.0 - sampler.draw()).sqrt();
    let outgoing = around(hit.shading, cosine, sampler.draw());
    if dot(outgoing, hit.normal) <= 0.0 {
        return false;
    }
    path.multiply::<F>(color.map(N::lift));
    if F::TWO_SIDED {
        path.decide(color);
    }
    path.turn(q, p, outgoing, cosine * INV_PI);
    roulette::<N, F>(world, path, sampler)
}

/// Sends the derivative by a light's value, of which `factor` times the throughput reaches the path.
#[inline]
fn send_light<N: Number, S: Sink<N>>(path: &Path<N>, slot: u32, factor: [N; 3], adjoint: &mut Adjoint<'_, N, S>) {
    let mut d = [N::lift(0.0); 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            d[c] = adjoint.d_radiance[c] * path.beta[c] * factor[c];
        }
    }
    adjoint.sink.value(slot, d, 3);
}

/// Next-event estimation: light that comes from a drawn direction and is scattered with `value`, which would have been
/// drawn with `density`. Returns the derivative by the logarithm of the value.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what a connection consists of")]
fn connect<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    p: [f32; 3],
    drawn: &Drawn,
    value: [N; 3],
    density: f32,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> N {
    let start = *sampler;
    let zero = N::lift(0.0);
    let mut transmittance = [N::lift(1.0); 3];
    let open = shadow(world, path.medium, p, drawn, |medium, origin, far| {
        ratio_track(
            world,
            fields,
            medium,
            origin,
            drawn.direction,
            far,
            sampler,
            &mut transmittance,
        );
    });
    if !open {
        return zero;
    }
    let record = &world.lights[drawn.light as usize];
    let mut weight = drawn.weight * path.norm(world);
    if drawn.density > 0.0 {
        weight *= mis(drawn.density, density);
    }
    let radiance = drawn_radiance(world, fields, record, drawn);
    let mut factor = [zero; 3];
    for c in 0..3 {
        factor[c] = value[c] * transmittance[c] * N::lift(weight);
    }
    path.add::<MODE>([0, 1, 2].map(|c| factor[c] * radiance[c]));
    if MODE != REPLAY {
        return zero;
    }
    let mut lit = [zero; 3];
    let mut sum = zero;
    let mut d_radiance = [zero; 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            d_radiance[c] = adjoint.d_radiance[c] * path.beta[c] * factor[c];
            lit[c] = d_radiance[c] * radiance[c];
            sum += lit[c];
        }
    }
    if record.kind == light::ENVMAP {
        adjoint.sink.background(drawn.direction, d_radiance);
    } else {
        adjoint.sink.value(record.slot, d_radiance, 3);
    }
    shade(world, fields, path.medium, p, drawn, lit, start, adjoint);
    sum
}

/// What a drawn light sends, per unit of the draw's weight.
#[inline]
fn drawn_radiance<N: Number, F: Fields<N>>(world: &World, fields: &F, record: &LightRecord, drawn: &Drawn) -> [N; 3] {
    if record.kind == light::ENVMAP {
        background_eval(world.scene, fields.integrand(world.background), drawn.direction)
    } else {
        light_value(fields.integrand(record.slot))
    }
}

/// Goes along a shadow ray and calls `pass` with each part that lies in a medium: the medium, where the part begins, how
/// far it goes. False if something opaque is in the way.
#[inline]
fn shadow(
    world: &World,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    mut pass: impl FnMut(&MediumRecord, [f32; 3], f32),
) -> bool {
    let (mut medium, mut origin, mut far) = (medium, p, drawn.distance * SHADOW);
    loop {
        let hit = intersect(world, origin, drawn.direction, far);
        let end = match &hit {
            Some(hit) => hit.t,
            None => far,
        };
        if let Some(hit) = &hit
            && world.surfaces[hit.surface as usize].bsdf != bsdf::NULL
        {
            return false;
        }
        if medium != NONE {
            pass(&world.media[medium as usize], origin, end);
        }
        let Some(hit) = hit else {
            return true;
        };
        let record = &world.surfaces[hit.surface as usize];
        if record.interior != NONE || record.exterior != NONE {
            let against = dot(drawn.direction, hit.normal) < 0.0;
            medium = if against { record.interior } else { record.exterior };
        }
        let q = along(origin, drawn.direction, hit.t);
        origin = leave(q, hit.normal, drawn.direction);
        far -= hit.t;
    }
}

/// Replays a shadow ray's transmittance: `lit` is the derivative by its logarithm.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what a connection consists of")]
fn shade<N: Number, F: Fields<N>, S: Sink<N>>(
    world: &World,
    fields: &F,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    lit: [N; 3],
    start: Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    let mut sampler = start;
    let drt = world.record.gradient == gradient::DRT;
    shadow(world, medium, p, drawn, |medium, origin, far| {
        if drt {
            if let Some((start, end)) = clip(medium, origin, drawn.direction, 0.0, far) {
                let origin = along(origin, drawn.direction, start);
                adjoint.darken(world, medium, origin, drawn.direction, end - start, lit);
            }
            return;
        }
        if is_unbounded(medium, far) {
            return;
        }
        let volume = &world.volumes[medium.sigma_t as usize];
        walk_candidates(world, medium, origin, drawn.direction, far, &mut sampler, |p, mu, _| {
            let sigma = extinction(world, fields, medium, p);
            let mut d = lit;
            for c in 0..3 {
                d[c] *= -((N::lift(mu) - sigma.integrand[c]).recip()) * N::lift(medium.scale);
            }
            adjoint.sink.volume(volume, &sigma.at, d, 3);
            true
        });
    });
}

/// Differential ratio tracking of in-scattering: candidates along the whole segment, one of them kept.
#[inline]
fn gather_candidates<N: Number, F: Fields<N>, S: Sink<N>>(
    world: &World,
    fields: &F,
    path: &Path<N>,
    far: f32,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if path.depth + 1 >= world.record.max_depth {
        return;
    }
    let mut norm = path.norm(world);
    if path.depth > 0 {
        if adjoint.extra.draw() >= VISITED {
            return;
        }
        norm /= VISITED;
    }
    let medium = &world.media[path.medium as usize];
    let endless = is_unbounded(medium, far);
    let mut transmittance = [N::lift(1.0); 3];
    let Adjoint {
        d_radiance,
        extra,
        candidate: choice,
        ..
    } = adjoint;
    walk_candidates(
        world,
        medium,
        path.origin,
        path.direction,
        far,
        extra,
        |p, mu, sampler| {
            let sigma = extinction(world, fields, medium, p);
            let share = 1.0 - free_flight_share(medium, &sigma.sampled);
            let mut weight = 0.0;
            let mut d = [N::lift(0.0); 3];
            for c in 0..3 {
                if path.zeros[c] == 0 {
                    d[c] = d_radiance[c] * path.beta[c] * transmittance[c] * N::lift(norm * share / mu);
                    weight += d[c].value().abs() as f32;
                }
                transmittance[c] *= (N::lift(mu) - sigma.integrand[c]) * N::lift(1.0 / mu);
            }
            if weight > 0.0 {
                choice.total += weight;
                if sampler.draw() * choice.total < weight {
                    *choice = Candidate {
                        total: choice.total,
                        p,
                        direction: path.direction,
                        medium: path.medium,
                        depth: path.depth,
                        d: d.map(|d| d * N::lift(1.0 / weight)),
                    };
                }
            }
            // In a medium without end nothing else would stop them.
            !endless || (0..3).any(|c| sigma.sampled[c] > 0.0 && transmittance[c].value().abs() > FAINT)
        },
    );
}

/// Follows the light that is scattered at the candidate, and sends the derivative by the extinction there.
#[inline]
fn settle_candidate<N: Number, F: Fields<N>, S: Sink<N>>(world: &World, fields: &F, adjoint: &mut Adjoint<'_, N, S>) {
    let Candidate {
        total,
        p,
        direction,
        medium: index,
        depth,
        d,
    } = adjoint.candidate;
    if total == 0.0 {
        return;
    }
    let medium = &world.media[index as usize];
    let volume = &world.volumes[medium.albedo as usize];
    let albedo = volume_eval(volume, fields.integrand(volume.slot), &volume_stencil(volume, p));
    let mut sampler = adjoint.extra;
    let mut path = Path::start(p, direction, f32::INFINITY, index, 0);
    if world.record.spectral == 1 {
        path.hero = ((sampler.draw() * 3.0) as u32).min(2);
    }
    path.depth = depth + 1;
    let mut nothing = NoSink;
    let mut unused = Adjoint::new([N::lift(0.0); 3], &mut nothing, sampler);
    if redirect::<N, F, NoSink, PRIMAL>(world, fields, &mut path, p, &mut sampler, &mut unused) {
        walk::<N, F, NoSink, PRIMAL>(world, fields, &mut path, &mut sampler, &mut unused);
    }
    let mut d_sigma = [N::lift(0.0); 3];
    for c in 0..3 {
        d_sigma[c] = d[c] * albedo[c] * path.radiance[c] * N::lift(total * medium.scale);
    }
    let volume = &world.volumes[medium.sigma_t as usize];
    adjoint.sink.volume(volume, &volume_stencil(volume, p), d_sigma, 3);
}

/// The radiance that a camera ray brings.
#[inline]
pub fn gather<N: Number, F: Fields<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    ray: &Ray,
    medium: u32,
    mut sampler: Sampler,
) -> Path<N> {
    let mut path = Path::new(world, ray, medium, &mut sampler);
    let mut nothing = NoSink;
    let mut unused = Adjoint::new([N::lift(0.0); 3], &mut nothing, sampler);
    walk::<N, F, NoSink, MODE>(world, fields, &mut path, &mut sampler, &mut unused);
    path
}

/// The adjoint of [`gather`]: walks twice with the numbers of `sampler` and sends the derivatives of `d_radiance` ·
/// radiance to `sink`; `extra` is for draws that the primal does not make. Returns both walks' ends: what is left of the
/// radiance in the second is zero but for rounding.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
pub fn propagate<N: Number, F: Fields<N>, S: Sink<N>>(
    world: &World,
    fields: &F,
    ray: &Ray,
    medium: u32,
    sampler: Sampler,
    extra: Sampler,
    d_radiance: [N; 3],
    sink: &mut S,
) -> (Path<N>, Path<N>) {
    let first = gather::<N, F, GATHER>(world, fields, ray, medium, sampler);
    let mut sampler = sampler;
    let mut replay = Path::new(world, ray, medium, &mut sampler);
    replay.radiance = first.radiance;
    replay.spare = first.spare;
    let mut adjoint = Adjoint::new(d_radiance, sink, extra);
    walk::<N, F, S, REPLAY>(world, fields, &mut replay, &mut sampler, &mut adjoint);
    if world.record.gradient == gradient::DRT {
        settle_candidate(world, fields, &mut adjoint);
    }
    (first, replay)
}
