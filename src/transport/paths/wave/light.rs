//! The light that paths of a wave gather: from behind the scene, from surfaces that they hit, and from lights that are drawn at
//! their vertices, each with its derivatives.

use super::super::next_event::mis;
use super::super::packet::Pilot;
use super::block::Block;
use super::edges::{Picked, Place, Zeros};
use super::{Gain, Room, Shining, Wave};
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, light};
use crate::transport::mode::GATHER;
use crate::transport::number::rgb::Rgb;
use crate::transport::scene::area_light::area_pdf;
use crate::transport::scene::batch::LANES;
use crate::transport::scene::light::{envmap_pdf, light_adjoint, light_value};
use crate::transport::scene::records::{Fields, Sink};
use crate::transport::scene::shape::SurfacePoint;
use crate::transport::scene::sky::{sky_adjoint, sky_value};

impl<F: Fields<f32>, S: Sink<f32>> Wave<'_, F, S> {
    /// Before the last edge of paths, which nothing scatters at its end: gathers the background, for which it does not matter what
    /// else is met, and drops all rays but those that would meet a shape that shines.
    pub(super) fn leave_light_alone<const MODE: u8>(&mut self, pilot: &impl Pilot) {
        let (scene, count) = (self.scene, self.room.edges.count);
        if scene.has_background() {
            pilot.cast(scene, &self.room.edges.rays, count, &mut self.room.blocked);
            let blocked = &self.room.blocked;
            self.room
                .escaped
                .extend((0..count as u32).filter(|i| blocked[*i as usize] == 0));
            self.escape::<MODE>(pilot);
        }
        if let Some(shapes) = self.lamps.shapes.as_ref().filter(|shapes| !shapes.is_empty()) {
            pilot.meet(scene, shapes, &self.room.edges.rays, count, &mut self.room.blocked);
            for i in 0..count {
                if self.room.blocked[i] != 0 {
                    let Room { edges, next_edges, .. } = &mut *self.room;
                    next_edges.push(edges.get(i), edges.rays.origin(i), edges.rays.direction(i));
                }
            }
        }
        self.take_next();
    }

    /// Adds the background's radiance along rays that meet nothing, weighted by MIS against next-event estimation.
    pub(super) fn escape<const MODE: u8>(&mut self, pilot: &impl Pilot) {
        let scene = self.scene;
        let escaped = std::mem::take(&mut self.room.escaped);
        for &i in &escaped {
            self.room.paths.straight[self.room.edges.path[i as usize] as usize] = self.depth == 0;
        }
        match &self.lamps.map {
            _ if !scene.has_background() => {}
            None => {
                for &i in &escaped {
                    let direction = self.room.edges.rays.direction(i as usize);
                    let radiance = sky_value(scene, self.fields, direction);
                    self.gain_sky::<MODE>(i as usize, radiance, envmap_pdf(scene, direction));
                }
            }
            Some(map) => {
                let Room {
                    edges,
                    directions,
                    seen,
                    ..
                } = &mut *self.room;
                directions.clear();
                for group in escaped.chunks(LANES) {
                    let mut places = [group[0]; LANES];
                    places[..group.len()].copy_from_slice(group);
                    directions.push(Picked::new(places).of_all(&edges.rays.direction));
                }
                // Rays from the camera have no pdf to be weighted against.
                pilot.look_up(scene, map, directions, self.depth > 0, seen);
                for (k, &i) in escaped.iter().enumerate() {
                    let (seen, lane) = (&self.room.seen[k / LANES], k % LANES);
                    let (radiance, pdf) = (Rgb(Block::lane(&seen.radiance, lane)), seen.pdf[lane]);
                    self.gain_sky::<MODE>(i as usize, radiance, pdf);
                }
            }
        }
        self.room.escaped = escaped;
        self.room.escaped.clear();
    }

    /// Adds the radiance behind the scene; `pdf` is that of drawing its direction.
    #[inline(always)]
    pub(super) fn gain_sky<const MODE: u8>(&mut self, i: usize, radiance: Rgb<f32>, pdf: f32) {
        let (scene, onward) = (self.scene, self.room.edges.get(i));
        let weight = match onward.smooth && scene.settings.lights > 0 {
            true => mis(onward.pdf, pdf),
            false => 1.0,
        };
        self.gain::<MODE>(onward.path, Rgb(onward.beta) * (radiance * weight), onward.zeros);
        if MODE == GATHER && self.keeps && self.lights_wanted {
            let d = onward
                .zeros
                .alive(self.d_radiance(onward.path) * Rgb(onward.beta) * weight);
            sky_adjoint(scene, self.fields, self.room.edges.rays.direction(i), d, &mut self.sink);
        }
    }

    /// Adds the emission of a surface, likewise.
    pub(super) fn meet_light<const MODE: u8>(&mut self, i: usize, record: &LightRecord) {
        let edges = &self.room.edges;
        let (scene, onward, direction) = (self.scene, edges.get(i), edges.rays.direction(i));
        let Some(hit) = self.room.hits.get(i) else { return };
        let mut weight = 1.0;
        if onward.smooth && scene.settings.lights > 0 {
            weight *= mis(onward.pdf, area_pdf(scene, onward.scattered_at, direction, &hit));
        }
        let radiance = light_value(scene, self.fields, record, &hit.point);
        self.gain::<MODE>(onward.path, Rgb(onward.beta) * (radiance * weight), onward.zeros);
        if MODE == GATHER && self.keeps && self.lights_wanted {
            let factor = Rgb::splat(weight);
            let d = onward
                .zeros
                .alive(self.d_radiance(onward.path) * Rgb(onward.beta) * factor);
            light_adjoint(scene, self.fields, record, &hit.point, d, &mut self.sink);
        }
    }

    /// The derivative by a path's radiance.
    #[inline(always)]
    pub(super) fn d_radiance(&self, path: u32) -> Rgb<f32> {
        Rgb(self.room.d_radiance[path as usize])
    }

    /// Adds to what a path has gathered.
    #[inline(always)]
    pub(super) fn gain<const MODE: u8>(&mut self, path: u32, value: Rgb<f32>, zeros: Zeros) {
        self.room.paths.gathered[path as usize].add::<MODE>(value, zeros.counts());
        if MODE == GATHER && self.keeps {
            self.room.gains.push(Gain { path, value, zeros });
        }
    }

    /// Traces the shadow rays, and adds what arrives.
    pub(super) fn settle_shadows<const MODE: u8>(&mut self, pilot: &impl Pilot) {
        let mut shadows = std::mem::take(&mut self.room.shadows);
        pilot.cast(self.scene, &shadows.rays, shadows.count, &mut self.room.blocked);
        let first_block = self.room.marks.last().map_or(0, |mark| mark.blocks);
        for k in 0..shadows.count {
            if self.room.blocked[k] != 0 {
                continue;
            }
            let (path, zeros) = (shadows.path[k], shadows.zeros[k]);
            self.gain::<MODE>(path, Rgb([0, 1, 2].each(|c| shadows.value[c][k])), zeros);
            if MODE != GATHER || !self.keeps {
                continue;
            }
            let direction = || shadows.rays.direction(k);
            if self.lights_wanted {
                let shining = self.room.shining[k];
                self.send_light(path, zeros, &shining, direction());
            }
            match shadows.vertex[k].get() {
                Place::Unwanted => {}
                Place::Lane(block, lane) => self.room.kept[block].arrived |= 1 << lane,
                Place::Alone(place) => self.send_alone(place, direction()),
            }
        }
        shadows.count = 0;
        self.room.shadows = shadows;
        self.room.points.clear();
        self.room.shining.clear();
        if MODE == GATHER && self.keeps {
            self.send_lit(pilot, first_block);
        }
    }

    /// Sends the derivative by the radiance of a light that was drawn.
    fn send_light(&mut self, path: u32, zeros: Zeros, shining: &Shining, direction: [f32; 3]) {
        let (scene, record) = (self.scene, &self.scene.lights[shining.light as usize]);
        let d_beta = self.d_radiance(path) * shining.beta;
        let d = zeros.alive(d_beta * shining.factor);
        if record.kind == light::ENVMAP {
            return sky_adjoint(scene, self.fields, direction, d, &mut self.sink);
        }
        let point = match shining.point {
            NONE => SurfacePoint::new([0.0; 3], [0.0; 2]),
            point => self.room.points[point as usize].point,
        };
        light_adjoint(scene, self.fields, record, &point, d, &mut self.sink);
    }

    /// The derivative by a BSDF's value for a light that was drawn.
    #[inline(always)]
    pub(super) fn by_value(
        &self,
        path: u32,
        beta: Rgb<f32>,
        zeros: Zeros,
        weight: f32,
        radiance: Rgb<f32>,
    ) -> Rgb<f32> {
        let arrived = Rgb::splat(weight) * radiance;
        zeros.alive(self.d_radiance(path) * beta * arrived)
    }
}
