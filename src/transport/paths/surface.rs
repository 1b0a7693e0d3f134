//! What a path does at surfaces with a BSDF: next-event estimation, a new direction, and the derivatives by the BSDF's
//! textures. In functions that are not inlined into the loop of the walk, which stays small for paths through media alone.

use std::cell::LazyCell;
use std::ops::Deref;

use super::path_state::{PathState, vanishes};
use super::radiative::Incident;
use super::trail::Way;
use super::vertex::Vertex;
use super::volpath::{Met, Walk};
use crate::each::EachEntry;
use crate::resident::layout::{bsdf, surfaces_only};
use crate::transport::mode::{GATHER, PRIMAL, REPLAY, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::bsdf::{Bsdf, BsdfSample, bsdf_is_wanted};
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::light::{Drawn, light_sample};
use crate::transport::scene::records::{Fields, Sink};
use crate::transport::scene::shape::Hit;
use crate::transport::scene::three_point::Scatterer;

/// A light that was drawn at a surface, and the BSDF's value and pdf for its direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lighting<N> {
    drawn: Drawn,
    value: Rgb<N>,
    pdf: f32,
}

/// A direction that was drawn from a BSDF, and what the throughput is multiplied by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<N> {
    drawn: BsdfSample,
    weight: Rgb<N>,
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// Meets a surface that has a BSDF: the next vertex, unless the path ends there.
    #[inline(never)]
    pub(super) fn hit_bsdf<const MODE: u8>(&mut self, hit: &Hit) -> Met {
        let (scene, path) = (self.scene, &mut self.path);
        let at = Interaction::new(scene, hit, path.direction);
        path.depth += 1;
        let straight = at.record(scene).flags & bsdf::NULL != 0 && scene.settings.surfaces_only == surfaces_only::NO;
        let ends = path.depth >= scene.settings.max_depth && !straight;
        if ends {
            return Met::End;
        }
        Met::Scatterer(Vertex::Surface(at))
    }

    /// Scatters light at a surface: next-event estimation, then a new direction. False if the path ends.
    #[inline(never)]
    pub(super) fn scatter_at_surface<const MODE: u8>(&mut self, at: &Interaction) -> bool {
        let (scene, fields) = (self.scene, self.fields);
        // Lazy, as a replay that recalls everything from its cache needs no texture lookups.
        let bsdf = LazyCell::new(|| Bsdf::new(scene, fields, at));
        if !self.recalls_turn::<MODE>() && bsdf.is_black(MODE != PRIMAL) {
            return false;
        }
        // At the end of a path, light may still pass straight through.
        let ends = self.path.depth >= scene.settings.max_depth;
        let is_smooth = at.record(scene).flags & bsdf::SMOOTH != 0;
        let mut lit = Rgb::zero();
        if MODE != UNIT_RADIANCE && scene.settings.lights > 0 && is_smooth && !ends {
            lit = self.light_surface::<MODE>(at, &bsdf);
        }
        // `lit` is not lost here: only for a plain BSDF it is not zero, and such a BSDF always samples a direction.
        let Some(Turn { drawn, weight }) = self.draw_turn::<MODE>(&bsdf) else {
            return false;
        };
        if ends && drawn.lobe != Lobe::Null {
            return false;
        }
        let (before, alive) = (self.path.zeros, self.path.alive(Rgb::splat(N::lift(1.0))));
        self.path.multiply::<F>(weight);
        if F::TWO_SIDED {
            self.path.multiply_sampled(bsdf.sampled_weight(&drawn));
        }
        self.turn_at(at, &drawn);
        if MODE == UNIT_RADIANCE && drawn.lobe != Lobe::Null {
            self.path.add_unit_radiance(scene);
            return false;
        }
        if MODE == REPLAY && bsdf_is_wanted(scene, at, &self.adjoint.sink) {
            I::after_turn(self, &Vertex::Surface(*at), drawn.lobe);
            let d = by_weight(&self.path, weight, before) * self.adjoint.d_radiance * alive;
            bsdf.sample_adjoint(&drawn, d, lit, &mut self.adjoint.sink);
        }
        if MODE == REPLAY && scene.attached {
            let d = by_weight(&self.path, weight, before) * self.adjoint.d_radiance * alive;
            match scene.inverted {
                None => self.lengthen_chain(at, &drawn, weight, d),
                Some(_) => self.turn_ray::<MODE>(at, &drawn, weight, d),
            }
        }
        if MODE == GATHER && scene.inverted.is_some() {
            self.turn_ray::<MODE>(at, &drawn, weight, Rgb::zero());
        }
        if scene.moves() && (MODE == REPLAY || F::TWO_SIDED) {
            let d = match MODE {
                REPLAY => by_weight(&self.path, weight, before) * self.adjoint.d_radiance * alive * weight,
                _ => Rgb::zero(),
            };
            self.leave_trail(&Scatterer::Surface(*at), drawn.direction, d);
        }
        if self.path.is_dark::<MODE>() {
            return false;
        }
        drawn.lobe == Lobe::Null || self.path.roulette::<F>(scene, &mut self.sampler)
    }

    /// Turns the path into the direction that was sampled, and into the medium on that side.
    #[inline]
    fn turn_at(&mut self, at: &Interaction, drawn: &BsdfSample) {
        let (scene, path) = (self.scene, &mut self.path);
        let p = at.leave(drawn.direction);
        path.medium = at.medium_in(scene, drawn.direction, path.medium);
        if drawn.lobe == Lobe::Null {
            match scene.settings.surfaces_only {
                surfaces_only::NO => path.depth -= 1,
                _ => path.lobe = Lobe::Reflection,
            }
            path.pass(at.hit.t, p);
        } else {
            path.eta *= drawn.eta;
            path.turn(at.hit.point.p, p, drawn.direction, drawn.lobe, drawn.pdf);
        }
    }

    /// Whether the cache has the direction that the first walk sampled here; if so, the surface is not black.
    #[inline(always)]
    fn recalls_turn<const MODE: u8>(&self) -> bool {
        MODE == REPLAY && self.adjoint.cache.as_ref().is_some_and(|cache| cache.turns.has_next())
    }

    /// Draws a direction from a BSDF, or recalls the one that the first walk has drawn. None if the path ends.
    #[inline(always)]
    fn draw_turn<'b, const MODE: u8>(&mut self, bsdf: &impl Deref<Target = Bsdf<'b, N, F>>) -> Option<Turn<N>>
    where
        N: 'b,
        F: 'b,
    {
        let draw = |sampler: &mut Sampler| {
            let drawn = bsdf.sample(sampler)?;
            let weight = bsdf.weight(&drawn);
            Some(Turn { drawn, weight })
        };
        match &mut self.adjoint.cache {
            Some(cache) => cache.turns.redraw_or::<MODE>(&mut self.sampler, draw),
            None => draw(&mut self.sampler),
        }
    }

    /// Draws a light from `origin`, or recalls the one that the first walk has drawn. None if it lights nothing here.
    #[inline(always)]
    fn draw_light<'b, const MODE: u8>(
        &mut self,
        bsdf: &impl Deref<Target = Bsdf<'b, N, F>>,
        origin: [f32; 3],
    ) -> Option<Lighting<N>>
    where
        N: 'b,
        F: 'b,
    {
        let scene = self.scene;
        let draw = |sampler: &mut Sampler| {
            let drawn = light_sample(scene, origin, sampler)?;
            let (value, pdf) = bsdf.eval(drawn.direction)?;
            Some(Lighting { drawn, value, pdf })
        };
        match &mut self.adjoint.cache {
            Some(cache) => cache.lights.redraw_or::<MODE>(&mut self.sampler, draw),
            None => draw(&mut self.sampler),
        }
    }

    /// Next-event estimation at a surface. Returns the derivative by the reflectance of a plain BSDF, which is not sent yet.
    #[inline]
    fn light_surface<'b, const MODE: u8>(
        &mut self,
        at: &Interaction,
        bsdf: &impl Deref<Target = Bsdf<'b, N, F>>,
    ) -> Rgb<N>
    where
        N: 'b,
        F: 'b,
    {
        let mut slope = Rgb::zero();
        let scene = self.scene;
        let towards_viewer = at.incoming.each(|x| -x);
        let origin = at.leave(towards_viewer);
        let Some(Lighting { drawn, mut value, pdf }) = self.draw_light::<MODE>(bsdf, origin) else {
            return slope;
        };
        let p = at.leave(drawn.direction);
        let medium = at.medium_in(scene, drawn.direction, self.path.medium);
        let way = Way {
            drawn_from: origin,
            origin: p,
            medium,
            draws: self.sampler,
        };
        if F::TWO_SIDED && MODE != REPLAY && scene.moves() {
            value *= self.lit_ratio(&Scatterer::Surface(*at), &drawn, &way);
        }
        if MODE == PRIMAL && (0..3).all(|c| vanishes(value[c])) {
            return slope;
        }
        let d = self.sample_light::<MODE>(p, medium, &drawn, value, pdf).by_value;
        if MODE == REPLAY && !self.adjoint.incident.is_unit() && bsdf_is_wanted(scene, at, &self.adjoint.sink) {
            let wo = at.to_local(drawn.direction);
            match bsdf.plain_slope(wo, d) {
                Some(plain) => slope = plain,
                None => bsdf.adjoint(wo, d, &mut self.adjoint.sink),
            }
        }
        if scene.is_attached::<MODE>() {
            self.carry_to_rays::<MODE>(d * value);
            self.chain_to_plane(at, at.to_local(drawn.direction), d);
        }
        if MODE == REPLAY && scene.moves() {
            self.send_lit(&Scatterer::Surface(*at), &drawn, &way, d * value);
        }
        slope
    }
}

/// The radiance still to come over `weight`, the factor that the throughput was last multiplied by; where it is zero, the
/// radiance without that factor. `before` are the numbers of zero factors before it.
#[inline]
fn by_weight<N: Number>(path: &PathState<N>, weight: Rgb<N>, before: [u32; 3]) -> Rgb<N> {
    let mut come = Rgb::zero();
    for c in 0..3 {
        come[c] = if path.zeros[c] > before[c] {
            path.gathered.radiance_but_zero[c]
        } else {
            path.gathered.radiance[c] * weight[c].recip()
        };
    }
    come
}
