//! The light that paths of a wave gather: from the background, from surfaces that they hit, and from lights that are drawn at
//! their vertices, each with its derivatives.

use std::hint::select_unpredictable;

use super::super::next_event::mis;
use super::super::packet::Pilot;
use super::block::{Block, Lanes3};
use super::edges::{Picked, Place, Zeros};
use super::{Gain, Room, Shining, Wave};
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, light};
use crate::transport::mode::GATHER;
use crate::transport::number::rgb::Rgb;
use crate::transport::scene::area_light::area_pdf;
use crate::transport::scene::batch::{LANES, Seen};
use crate::transport::scene::light::{envmap_pdf, light_adjoint, light_value};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::SurfacePoint;
use crate::transport::scene::sky::{sky_adjoint, sky_value};

impl<F: Fields<f32>, S: Sink<f32>> Wave<'_, F, S> {
    /// Prepares the last edge of the paths, at whose end none is scattered: adds the background along rays that nothing blocks,
    /// which needs no nearest hit, and drops all rays but those that would meet a shape that shines.
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
        let mut escaped = std::mem::take(&mut self.room.escaped);
        let Room {
            edges,
            paths,
            directions,
            seen,
            ..
        } = &mut *self.room;
        for &i in &escaped {
            paths.straight[edges.path[i as usize] as usize] = self.depth == 0;
        }
        // The background seen directly from the camera depends on no parameter but the light's: without derivatives by lights,
        // it is only counted.
        let counts_alone = MODE == GATHER && self.depth == 0 && !self.lights_wanted;
        if counts_alone && scene.has_background() {
            for &i in &escaped {
                paths.gathered[edges.path[i as usize] as usize].count += 1;
            }
        } else if scene.has_background() {
            directions.clear();
            for group in escaped.chunks(LANES) {
                directions.push(Picked::of_some(group).of_all(&edges.rays.direction));
            }
            match &self.lamps.map {
                // Rays from the camera have no pdf to be weighted against.
                Some(map) => pilot.look_up(scene, map, directions, self.depth > 0, seen),
                None => {
                    seen.clear();
                    let look_up = |directions| look_up_alone(scene, self.fields, directions);
                    seen.extend(directions.iter().map(look_up));
                }
            }
            for (k, group) in escaped.chunks(LANES).enumerate() {
                self.gain_sky::<MODE>(k, group);
            }
        }
        escaped.clear();
        self.room.escaped = escaped;
    }

    /// Adds the background's radiance to a vector of paths; `number` is the vector's index among those that were looked up.
    fn gain_sky<const MODE: u8>(&mut self, number: usize, group: &[u32]) {
        let (scene, room) = (self.scene, &*self.room);
        let (edges, seen) = (&room.edges, &room.seen[number]);
        let picked = Picked::of_some(group);
        let (path, pdf, smooth) = (picked.of(&edges.path), picked.of(&edges.pdf), picked.of(&edges.smooth));
        let (beta, zeros) = (picked.of_all(&edges.beta), picked.of(&edges.zeros));
        let (mut weight, mut value) = ([1.0; LANES], [[0.0; LANES]; 3]);
        for lane in 0..LANES {
            let shared = mis(pdf[lane], seen.pdf[lane]);
            weight[lane] = select_unpredictable(smooth[lane] & (scene.settings.lights > 0), shared, 1.0);
            for c in 0..3 {
                value[c][lane] = beta[c][lane] * (seen.radiance[c][lane] * weight[lane]);
            }
        }
        for lane in 0..group.len() {
            self.gain::<MODE>(path[lane], Rgb(Block::lane(&value, lane)), zeros[lane]);
        }
        if MODE == GATHER && self.keeps && self.lights_wanted {
            for (lane, &i) in group.iter().enumerate() {
                let d = self.d_radiance(path[lane]) * Rgb(Block::lane(&beta, lane)) * weight[lane];
                let direction = self.room.edges.rays.direction(i as usize);
                sky_adjoint(scene, self.fields, direction, zeros[lane].alive(d), &mut self.sink);
            }
        }
    }

    /// Adds the emission of a surface, weighted by MIS against next-event estimation.
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

/// The background in the directions of the lanes, looked up one by one.
fn look_up_alone<F: Fields<f32>>(scene: &SceneView, fields: &F, directions: &Lanes3) -> Seen {
    let mut seen = Seen {
        radiance: [[0.0; LANES]; 3],
        pdf: [0.0; LANES],
    };
    for lane in 0..LANES {
        let direction = Block::lane(directions, lane);
        let radiance = sky_value(scene, fields, direction);
        Block::put(&mut seen.radiance, lane, radiance.0);
        seen.pdf[lane] = envmap_pdf(scene, direction);
    }
    seen
}
