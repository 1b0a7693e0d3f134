//! Paths of a wave on their way into a block, and out of it when it is shaded.

use super::super::next_event::drawn_radiance;
use super::super::packet::Pilot;
use super::block::{Block, Kind, Lanes3, TEXTURES};
use super::{FEW, Kept, Onward, Room, Shadow, Shining, Side, Vertex, Wave, Zeros};
use crate::each::EachEntry;
use crate::resident::layout::{NONE, bsdf, leaf, texture};
use crate::transport::mode::PRIMAL;
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
        let mut wanted = 0;
        (block.kind, block.count, block.depth) = (kind, group.len(), self.depth);
        block.key = self.room.key;
        block.lit = [0; LANES];
        // Of one length, so that a path's place is compared with it once.
        let Room { onward, rays, hits, .. } = &*self.room;
        let (onward, count) = (&onward[..], onward.len());
        let [incoming, p, normal, shading] =
            [&rays.direction, &hits.p, &hits.normal, &hits.shading].each(|of| [0, 1, 2].each(|a| &of[a][..count]));
        let [uv, weights] = [&hits.uv, &hits.weights].each(|of| [0, 1].each(|a| &of[a][..count]));
        let (clearance, triangle) = (&hits.clearance[..count], &hits.triangle[..count]);
        for lane in 0..LANES {
            let (i, side) = *group.get(lane).unwrap_or(&group[0]);
            let i = i as usize;
            assert!(i < count, "a path of this wave");
            let onward = &onward[i];
            let (pixel, sample) = self.room.starts[onward.path as usize];
            let counter = [pixel.sensor, pixel.index, sample, WALK];
            for k in 0..4 {
                block.counters[k][lane] = counter[k];
            }
            block.path[lane] = onward.path;
            block.drawn[lane] = onward.drawn;
            block.eta[lane] = onward.eta;
            for a in 0..3 {
                block.beta[a][lane] = onward.beta[a];
                block.zeros[a][lane] = onward.zeros.counts()[a];
                block.incoming[a][lane] = incoming[a][i];
                block.p[a][lane] = p[a][i];
                block.normal[a][lane] = normal[a][i];
                block.shading[a][lane] = shading[a][i];
            }
            for a in 0..2 {
                block.uv[a][lane] = uv[a][i];
                block.weights[a][lane] = weights[a][i];
            }
            block.clearance[lane] = clearance[i];
            block.triangle[lane] = triangle[i];
            block.leaf[lane] = side.leaf;
            block.turned[lane] = scene.leaves[side.leaf as usize].flags & leaf::TURNED;
            wanted |= u32::from(lane < group.len() && side.wanted && self.keeps) << lane;
        }
        self.look_up_textures(pilot, block);
        block.alive = [1; LANES];
        if kind == Kind::Diffuse {
            for (lane, (i, _)) in group.iter().enumerate() {
                let mut black = Rgb(Block::lane(&block.values[0], lane)) == Rgb([0.0; 3]);
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
            let number = block.leaf[left.trailing_zeros() as usize % LANES];
            let own = left & block.lanes_of(number);
            left &= !own;
            let record = &self.scene.leaves[number as usize];
            for k in 0..(record.textures as usize).min(TEXTURES) {
                let texture = record.first_texture + k as u32;
                let Some(values) = self.look_up_together(pilot, texture, own, &block.uv) else {
                    for lane in (0..LANES).filter(|lane| own >> lane & 1 != 0) {
                        let look = |slot| self.fields.integrand(slot);
                        let value = texture_value(self.scene, look, texture, &block.point(lane));
                        Block::put(&mut block.values[k], lane, value.0);
                    }
                    continue;
                };
                for c in 0..3 {
                    for lane in 0..LANES {
                        let before = block.values[k][c][lane];
                        block.values[k][c][lane] =
                            std::hint::select_unpredictable(own >> lane & 1 != 0, values[c][lane], before);
                    }
                }
            }
        }
    }

    /// The values of a texture that lanes look up together, if those of `own` are enough to do so.
    #[inline(always)]
    fn look_up_together(&self, pilot: &impl Pilot, texture: u32, own: u32, uv: &[[f32; LANES]; 2]) -> Option<Lanes3> {
        let record = &self.scene.textures[texture as usize];
        let data = self.fields.integrand(record.slot);
        if record.kind == texture::CONSTANT {
            return Some([0, 1, 2].each(|c| [data[if record.channels == 1 { 0 } else { c }]; LANES]));
        }
        (is_image(record) && own.count_ones() > FEW).then(|| pilot.image(record, data, uv))
    }

    /// Draws a light for each path of a block.
    fn draw_lights(&mut self, block: &mut Block) {
        let scene = self.scene;
        for lane in 0..block.count {
            if block.alive[lane] == 0 {
                continue;
            }
            let start = &self.streams(block.path[lane]).walk();
            let mut sampler = start.after(block.drawn[lane]);
            let origin = block.leave(lane, Block::lane(&block.incoming, lane).each(|x| -x));
            let drawn = light_sample(scene, origin, &mut sampler);
            block.drawn[lane] = sampler.drawn_since(start);
            block.light[lane] = NONE;
            let Some(drawn) = drawn else { continue };
            block.lit[lane] = 1;
            block.light[lane] = self.room.points.len() as u32;
            block.light_weight[lane] = drawn.weight;
            block.light_pdf[lane] = drawn.pdf;
            block.light_distance[lane] = drawn.distance;
            Block::put(&mut block.light_direction, lane, drawn.direction);
            let radiance = drawn_radiance(scene, self.fields, &scene.lights[drawn.light as usize], &drawn);
            Block::put(&mut block.light_radiance, lane, radiance.0);
            self.room.points.push(drawn);
        }
    }

    /// Takes the paths of a shaded block further: their shadow rays, and their next rays. A block whose derivatives are sought is kept,
    /// and another left in its place.
    pub(super) fn leave<const MODE: u8>(&mut self, block: &mut Box<Block>, wanted: u32) {
        let place = self.room.blocks.len() as u32;
        for lane in 0..block.count {
            let path = block.path[lane];
            let zeros = Zeros::of([0, 1, 2].each(|c| block.zeros[c][lane]));
            if block.lit[lane] != 0 {
                let chosen = block.light[lane];
                let (light, point) = match self.lamps.plain {
                    true => (chosen, NONE),
                    false => (self.room.points[chosen as usize].light, chosen),
                };
                let [beta, factor, radiance] =
                    [&block.beta, &block.light_factor, &block.light_radiance].each(|of| Rgb(Block::lane(of, lane)));
                let shining = Shining {
                    light,
                    point,
                    factor,
                    beta,
                };
                let shadow = Shadow {
                    path,
                    value: beta * (factor * radiance),
                    zeros,
                    vertex: match wanted >> lane & 1 != 0 {
                        true => Vertex::Lane(place, lane as u32),
                        false => Vertex::Unwanted,
                    },
                };
                let [origin, direction] =
                    [&block.light_origin, &block.light_direction].each(|of| Block::lane(of, lane));
                self.cast_shadow::<MODE>(shadow, shining, origin, direction, block.light_distance[lane]);
            }
            if block.alive[lane] != 0 {
                let onward = Onward {
                    path,
                    drawn: block.drawn[lane],
                    beta: Block::lane(&block.next_beta, lane),
                    zeros: Zeros::of([0, 1, 2].each(|c| block.next_zeros[c][lane])),
                    eta: block.eta[lane],
                    scattered_at: Block::lane(&block.p, lane),
                    pdf: block.pdf[lane],
                    smooth: block.kind.is_smooth(),
                };
                let [origin, direction] = [&block.origin, &block.direction].each(|of| Block::lane(of, lane));
                self.go_on(onward, origin, direction);
            }
        }
        if wanted != 0 {
            let spare = self.room.spare.pop().unwrap_or_default();
            self.room.blocks.push(Kept {
                block: std::mem::replace(block, spare),
                wanted,
                arrived: 0,
            });
        }
    }
}
