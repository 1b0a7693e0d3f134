//! Loads paths of a wave into a block, and stores them when it is shaded.

use super::super::next_event::{SHADOW, drawn_radiance};
use super::super::packet::Pilot;
use super::block::{Block, Kind, Lanes3, TEXTURES};
use super::edges::{Chosen, Picked, Vertex};
use super::{FEW, Kept, Room, Shining, Side, Wave};
use crate::each::EachEntry;
use crate::resident::layout::{NONE, bsdf, texture};
use crate::transport::mode::{GATHER, PRIMAL};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::WALK;
use crate::transport::scene::batch::LANES;
use crate::transport::scene::batch::images::is_image;
use crate::transport::scene::light::light_sample;
use crate::transport::scene::records::{Fields, Sink};
use crate::transport::scene::texture::texture_value;

impl<F: Fields<f32>, S: Sink<f32>> Wave<'_, F, S> {
    /// Fills a block with paths at vertices of one kind. Returns a bit for each lane whose textures' derivatives are sought.
    pub(super) fn fill<const MODE: u8>(
        &mut self,
        pilot: &impl Pilot,
        block: &mut Block,
        kind: Kind,
        group: &[(u32, Side)],
    ) -> u32 {
        let scene = self.scene;
        (block.at.kind, block.at.count, block.depth) = (kind, group.len(), self.depth);
        block.key = self.room.key;
        block.lit = [0; LANES];
        let (mut places, mut wanted) = ([0; LANES], 0);
        for lane in 0..LANES {
            let (i, side) = *group.get(lane).unwrap_or(&group[0]);
            places[lane] = i;
            (block.at.leaf[lane], block.turned[lane]) = (side.leaf, side.turned);
            wanted |= u32::from(lane < group.len() && side.wanted && self.keeps) << lane;
        }
        let Room { edges, hits, paths, .. } = &*self.room;
        let picked = Picked::new(places);
        block.at.path = picked.of(&edges.path);
        block.drawn = picked.of(&edges.drawn);
        block.eta = picked.of(&edges.eta);
        block.at.zeros = picked.of(&edges.zeros);
        block.at.beta = picked.of_all(&edges.beta);
        block.incoming = picked.of_all(&edges.rays.direction);
        block.at.p = picked.of_all(&hits.p);
        block.normal = picked.of_all(&hits.normal);
        block.shading = picked.of_all(&hits.shading);
        block.at.uv = picked.of_all(&hits.uv);
        block.at.weights = picked.of_all(&hits.weights);
        block.clearance = picked.of(&hits.clearance);
        block.at.triangle = picked.of(&hits.triangle);
        let picked = Picked::new(block.at.path);
        let [sensor, pixel, sample] = [&paths.sensor, &paths.pixel, &paths.sample].each(|of| picked.of(of));
        block.counters = [sensor, pixel, sample, [WALK; LANES]];
        self.look_up_textures(pilot, block);
        block.alive = [1; LANES];
        if kind == Kind::Diffuse {
            for (lane, (i, _)) in group.iter().enumerate() {
                let mut black = Rgb(Block::lane(&block.at.values[0], lane)) == Rgb([0.0; 3]);
                if black && MODE != PRIMAL {
                    let surface = &scene.surfaces[self.room.hits.surface[*i as usize] as usize];
                    black = scene.bsdfs[surface.bsdf as usize].flags & bsdf::VARIES == 0;
                }
                block.alive[lane] = u32::from(!black);
            }
        }
        if kind.is_smooth() && scene.settings.lights > 0 && !self.lamps.plain {
            self.draw_lights(block);
        }
        wanted
    }

    /// Looks up the textures of a block's leaves, leaf by leaf.
    fn look_up_textures(&self, pilot: &impl Pilot, block: &mut Block) {
        let mut left = (1u32 << LANES) - 1;
        while left != 0 {
            let number = block.at.leaf[left.trailing_zeros() as usize % LANES];
            let own = left & block.at.lanes_of(number);
            left &= !own;
            let record = &self.scene.leaves[number as usize];
            for k in 0..(record.textures as usize).min(TEXTURES) {
                let texture = record.first_texture + k as u32;
                let Some(values) = self.look_up_together(pilot, texture, own, &block.at.uv) else {
                    for lane in (0..LANES).filter(|lane| own >> lane & 1 != 0) {
                        let look = |slot| self.fields.integrand(slot);
                        let value = texture_value(self.scene, look, texture, &block.at.point(lane));
                        Block::put(&mut block.at.values[k], lane, value.0);
                    }
                    continue;
                };
                for c in 0..3 {
                    for lane in 0..LANES {
                        let before = block.at.values[k][c][lane];
                        block.at.values[k][c][lane] =
                            std::hint::select_unpredictable(own >> lane & 1 != 0, values[c][lane], before);
                    }
                }
            }
        }
    }

    /// The values of a texture in all lanes, if it is a constant, or an image that more than [`FEW`] lanes, those of `own`,
    /// look up together.
    #[inline(always)]
    fn look_up_together(&self, pilot: &impl Pilot, texture: u32, own: u32, uv: &[[f32; LANES]; 2]) -> Option<Lanes3> {
        let record = &self.scene.textures[texture as usize];
        let data = || self.fields.integrand(record.slot);
        if record.kind == texture::CONSTANT {
            let data = data();
            return Some([0, 1, 2].each(|c| [data[if record.channels == 1 { 0 } else { c }]; LANES]));
        }
        (is_image(record) && own.count_ones() > FEW).then(|| pilot.image(record, data(), uv))
    }

    /// Draws a light for each path of a block.
    fn draw_lights(&mut self, block: &mut Block) {
        let scene = self.scene;
        for lane in 0..block.at.count {
            if block.alive[lane] == 0 {
                continue;
            }
            let start = &self.streams(block.at.path[lane]).walk();
            let mut sampler = start.after(block.drawn[lane]);
            let origin = block.leave(lane, Block::lane(&block.incoming, lane).each(|x| -x));
            let drawn = light_sample(scene, origin, &mut sampler);
            block.drawn[lane] = sampler.drawn_since(start);
            block.light[lane] = NONE;
            let Some(drawn) = drawn else { continue };
            block.lit[lane] = 1;
            block.light[lane] = self.room.points.len() as u32;
            block.at.light_weight[lane] = drawn.weight;
            block.light_pdf[lane] = drawn.pdf;
            block.light_distance[lane] = drawn.distance;
            Block::put(&mut block.light_direction, lane, drawn.direction);
            let radiance = drawn_radiance(scene, self.fields, &scene.lights[drawn.light as usize], &drawn);
            Block::put(&mut block.at.light_radiance, lane, radiance.0);
            self.room.points.push(drawn);
        }
    }

    /// Appends the shadow rays and the next rays of a shaded block's paths. The vertices of a block whose derivatives are
    /// sought are copied, for those that this walk sends and those of the replay.
    pub(super) fn leave<const MODE: u8>(&mut self, block: &Block, wanted: u32) {
        let chosen = Chosen::where_not_zero(&block.lit, block.at.count);
        if chosen.count > 0 {
            self.cast_shadows::<MODE>(block, &chosen, wanted);
        }
        let chosen = Chosen::where_not_zero(&block.alive, block.at.count);
        let edges = &mut self.room.next_edges;
        let first = edges.count;
        chosen.put(&block.at.path, &mut edges.path, first);
        chosen.put(&block.drawn, &mut edges.drawn, first);
        chosen.put(&block.next_zeros, &mut edges.zeros, first);
        chosen.put(&block.eta, &mut edges.eta, first);
        chosen.put(&block.at.pdf, &mut edges.pdf, first);
        for a in 0..3 {
            chosen.put(&block.next_beta[a], &mut edges.beta[a], first);
            chosen.put(&block.at.p[a], &mut edges.scattered_at[a], first);
            chosen.put(&block.origin[a], &mut edges.rays.origin[a], first);
            chosen.put(&block.direction[a], &mut edges.rays.direction[a], first);
        }
        chosen.put(&[f32::INFINITY; LANES], &mut edges.rays.far, first);
        chosen.put(&[block.at.kind.is_smooth(); LANES], &mut edges.smooth, first);
        edges.count += chosen.count;
        if wanted != 0 {
            self.room.kept.push(Kept { wanted, arrived: 0 });
            // Copied from the block at once: as a part of a pushed structure they would first be copied to the stack.
            self.room.vertices.extend_from_slice(std::slice::from_ref(&block.at));
        }
    }

    /// Appends the shadow rays of a block's lights.
    fn cast_shadows<const MODE: u8>(&mut self, block: &Block, chosen: &Chosen, wanted: u32) {
        let (mut value, mut far) = ([[0.0; LANES]; 3], [0.0; LANES]);
        let (mut vertex, place) = ([Vertex::UNWANTED; LANES], self.room.kept.len());
        for lane in 0..LANES {
            for c in 0..3 {
                let arrives = block.light_factor[c][lane] * block.at.light_radiance[c][lane];
                value[c][lane] = block.at.beta[c][lane] * arrives;
            }
            far[lane] = block.light_distance[lane] * SHADOW;
            if wanted >> lane & 1 != 0 {
                vertex[lane] = Vertex::lane(place, lane);
            }
        }
        let shadows = &mut self.room.shadows;
        let first = shadows.count;
        for a in 0..3 {
            chosen.put(&block.light_origin[a], &mut shadows.rays.origin[a], first);
            chosen.put(&block.light_direction[a], &mut shadows.rays.direction[a], first);
            chosen.put(&value[a], &mut shadows.value[a], first);
        }
        chosen.put(&far, &mut shadows.rays.far, first);
        chosen.put(&block.at.path, &mut shadows.path, first);
        chosen.put(&block.at.zeros, &mut shadows.zeros, first);
        chosen.put(&vertex, &mut shadows.vertex, first);
        shadows.count += chosen.count;
        if MODE == GATHER && self.keeps && self.lights_wanted {
            for lane in chosen.lanes() {
                let drawn = block.light[lane];
                let (light, point) = match self.lamps.plain {
                    true => (drawn, NONE),
                    false => (self.room.points[drawn as usize].light, drawn),
                };
                let [factor, beta] = [&block.light_factor, &block.at.beta].each(|of| Rgb(Block::lane(of, lane)));
                self.room.shining.push(Shining {
                    light,
                    point,
                    factor,
                    beta,
                });
            }
        }
    }
}
