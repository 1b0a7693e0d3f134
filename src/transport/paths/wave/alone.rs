//! Vertices that are shaded one by one: those whose BSDFs are not evaluated in lanes.

use super::edges::{Onward, Vertex, Zeros};
use super::{Shining, Wave};
use crate::each::EachEntry;
use crate::resident::layout::{NONE, bsdf};
use crate::transport::mode::{GATHER, PRIMAL};
use crate::transport::number::rgb::Rgb;
use crate::transport::paths::next_event::{SHADOW, drawn_radiance, mis};
use crate::transport::paths::path_state::{PathState, is_faint};
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::bsdf::{Bsdf, BsdfSample, bsdf_is_wanted};
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::light::light_sample;
use crate::transport::scene::records::{Fields, Sink};

/// A vertex whose BSDF's derivatives are sought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone {
    pub path: u32,
    pub at: Interaction,
    pub zeros: Zeros,
    /// How the path is turned there, and what its throughput is multiplied by.
    pub turn: Option<(BsdfSample, Rgb<f32>)>,
    /// The derivative by the BSDF's value for the light that was drawn; zero without.
    pub by_value: Rgb<f32>,
    /// That by the reflectance of a plain BSDF, if the light has arrived.
    pub lit: Rgb<f32>,
}

impl<F: Fields<f32>, S: Sink<f32>> Wave<'_, F, S> {
    /// Scatters a path where it has met a surface: next-event estimation, then a new direction.
    pub(super) fn scatter_alone<const MODE: u8>(&mut self, i: usize) {
        let (scene, fields, onward) = (self.scene, self.fields, self.room.edges.get(i));
        let incoming = self.room.edges.rays.direction(i);
        let at = Interaction::new(scene, &self.hit(i), incoming);
        let bsdf = Bsdf::new(scene, fields, &at);
        if bsdf.is_black(MODE != PRIMAL) {
            return;
        }
        let wanted = MODE == GATHER && self.keeps && bsdf_is_wanted(scene, &at, &self.sink);
        let vertex = match wanted {
            true => Vertex::alone(self.room.alone.len()),
            false => Vertex::UNWANTED,
        };
        let start = self.streams(onward.path).walk();
        let mut sampler = start.after(onward.drawn);
        let is_smooth = at.record(scene).flags & bsdf::SMOOTH != 0;
        let mut by_value = Rgb::zero();
        if scene.settings.lights > 0
            && is_smooth
            && let Some(drawn) = light_sample(scene, at.leave(incoming.each(|x| -x)), &mut sampler)
            && let Some((value, pdf)) = bsdf.eval(drawn.direction)
            && !(MODE == PRIMAL && value.0.iter().all(|x| is_faint(*x)))
        {
            let mut weight = drawn.weight;
            if drawn.pdf > 0.0 {
                weight *= mis(drawn.pdf, pdf);
            }
            let radiance = drawn_radiance(scene, fields, &scene.lights[drawn.light as usize], &drawn);
            let (beta, factor) = (Rgb(onward.beta), value * weight);
            if MODE == GATHER && self.keeps && self.lights_wanted {
                self.room.shining.push(Shining {
                    light: drawn.light,
                    point: self.room.points.len() as u32,
                    factor,
                    beta,
                });
            }
            if wanted {
                by_value = self.by_value(onward.path, beta, onward.zeros, weight, radiance);
            }
            self.room.points.push(drawn);
            let (origin, value) = (at.leave(drawn.direction), beta * (factor * radiance));
            let far = drawn.distance * SHADOW;
            let shadows = &mut self.room.shadows;
            shadows.push(onward.path, value, onward.zeros, vertex, [origin, drawn.direction], far);
        }
        let turn = bsdf.sample(&mut sampler).map(|drawn| (drawn, bsdf.weight(&drawn)));
        if wanted {
            self.room.alone.push(Alone {
                path: onward.path,
                at,
                zeros: onward.zeros,
                turn,
                by_value,
                lit: Rgb::zero(),
            });
        }
        let Some((drawn, weight)) = turn else { return };
        let mut path = PathState::<f32>::start(incoming, incoming, 0.0, NONE, 0);
        (path.beta, path.zeros) = (Rgb(onward.beta), onward.zeros.counts());
        (path.eta, path.depth) = (onward.eta * drawn.eta, self.depth);
        path.multiply::<F>(weight);
        if path.is_dark::<MODE>() || !path.roulette::<F>(scene, &mut sampler) {
            return;
        }
        let next = Onward {
            path: onward.path,
            drawn: sampler.drawn_since(&start),
            beta: path.beta.0,
            zeros: Zeros::of(path.zeros),
            eta: path.eta,
            scattered_at: at.hit.point.p,
            pdf: drawn.pdf,
            smooth: drawn.lobe == Lobe::Smooth,
        };
        let origin = at.leave(drawn.direction);
        self.room.next_edges.push(next, origin, drawn.direction);
    }

    /// Sends the derivatives by the BSDF's value for a light that was drawn in this direction; of a plain BSDF, keeps the
    /// derivative by the reflectance for the replay.
    pub(super) fn send_alone(&mut self, place: usize, direction: [f32; 3]) {
        let Alone { at, by_value: d, .. } = self.room.alone[place];
        let bsdf = Bsdf::new(self.scene, self.fields, &at);
        let wo = at.to_local(direction);
        match bsdf.plain_slope(wo, d) {
            Some(slope) => self.room.alone[place].lit = slope,
            None => bsdf.adjoint(wo, d, &mut self.sink),
        }
    }
}
