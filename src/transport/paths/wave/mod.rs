//! Paths among surfaces followed together: all go from one surface to the next at a time. Rays and shadow rays are traced many
//! at a time (`scene/batch/`), and vertices of one kind are shaded side by side in the lanes of vectors ([`shading`]); kinds that
//! have no lanes are, one by one, by the functions of a single path (`alone`). Each path takes the steps of [`super::volpath`],
//! from the same random numbers and to the same bits.

mod alone;
pub mod block;
mod scores;
pub mod shading;

use super::next_event::{SHADOW, drawn_radiance, mis};
use super::packet::Pilot;
use super::path_state::PathState;
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, NONE, bsdf, light, texture};
use crate::transport::mode::{GATHER, PRIMAL};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, dot};
use crate::transport::scene::area_light::area_pdf;
use crate::transport::scene::batch::{Hits, LANES, Rays};
use crate::transport::scene::bsdf::textures;
use crate::transport::scene::light::{Drawn, envmap_pdf, light_adjoint, light_sample, light_value};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::{Hit, SurfacePoint};
use crate::transport::scene::sky::{sky_adjoint, sky_value};
use crate::transport::scene::texture::texture_value;
use alone::Alone;
use block::{Block, Kind, TEXTURES};
use shading::Lamps;

/// Whether paths of this scene can be followed so: among opaque surfaces that stand still, past no media.
pub(super) fn is_among_surfaces(scene: &SceneView) -> bool {
    let settings = scene.settings;
    scene.media.is_empty()
        && scene.is_opaque
        && settings.surfaces > 0
        && settings.hide_emitters == 0
        && !scene.attached
        && !scene.moves()
}

/// A path on its way to the next surface, beside its ray.
#[derive(Debug, Clone, Copy)]
struct Onward {
    /// Its place among those that are followed together, and how many random numbers are drawn.
    path: u32,
    drawn: u32,
    beta: [f32; 3],
    zeros: [u32; 3],
    eta: f32,
    /// Where and how it was scattered last.
    scattered_at: [f32; 3],
    pdf: f32,
    smooth: bool,
}

/// Something that a path has gathered: the product with its throughput, whose zeros are left out.
#[derive(Debug, Clone, Copy)]
struct Gain {
    path: u32,
    value: Rgb<f32>,
    zeros: [u32; 3],
}

/// Paths that are scattered, each with the first leaf on their side of the surface: for each kind, and for the others.
type Queues = [Vec<(u32, u32)>; Kind::ALL.len() + 1];

/// A light that is waiting for its shadow ray.
#[derive(Debug, Clone, Copy)]
struct Shadow {
    path: u32,
    beta: Rgb<f32>,
    zeros: [u32; 3],
    /// The BSDF's value times the weight, the weight, and the light's radiance.
    factor: Rgb<f32>,
    weight: f32,
    radiance: Rgb<f32>,
    light: u32,
    /// Its place among the points of lights that were drawn path by path; [`NONE`] for others.
    point: u32,
    vertex: Vertex,
}

/// A vertex whose textures' derivatives are sought.
#[derive(Debug, Clone, Copy)]
enum Vertex {
    Unwanted,
    /// A block and a lane.
    Lane(u32, u32),
    Alone(u32),
}

/// A block of which derivatives are sought.
#[derive(Debug)]
struct Kept {
    block: Block,
    /// A bit for each lane whose derivatives are, and for each of these whose light has arrived.
    wanted: u32,
    arrived: u32,
}

/// How far a first walk had come after each surface: its gains, and the blocks and single vertices that derivatives are sought of.
#[derive(Debug, Clone, Copy)]
struct Mark {
    gains: usize,
    blocks: usize,
    alone: usize,
}

/// The paths, and what a first walk keeps for the replay.
#[derive(Debug)]
pub(super) struct Wave<'a, F, S> {
    scene: &'a SceneView<'a>,
    fields: &'a F,
    /// Of a first walk, what derivatives are sent to, and those by the paths' radiances.
    sink: S,
    d_radiance: &'a [[f32; 3]],
    starts: Vec<Sampler>,
    pub(super) paths: Vec<PathState<f32>>,
    depth: u32,
    rays: Rays,
    onward: Vec<Onward>,
    hits: Hits,
    /// The places of rays that meet nothing.
    escaped: Vec<u32>,
    next_rays: Rays,
    next_onward: Vec<Onward>,
    shadow_rays: Rays,
    shadows: Vec<Shadow>,
    points: Vec<Drawn>,
    blocked: Vec<u32>,
    lamps: Lamps<'a>,
    /// Whether derivatives by a light are sought.
    lights_wanted: bool,
    gains: Vec<Gain>,
    blocks: Vec<Kept>,
    alone: Vec<Alone>,
    marks: Vec<Mark>,
}

impl<'a, F: Fields<f32>, S: Sink<f32>> Wave<'a, F, S> {
    /// No paths yet, but room for `count`. `d_radiance` are the derivatives by their radiances.
    pub(super) fn new(
        scene: &'a SceneView<'a>,
        fields: &'a F,
        sink: S,
        d_radiance: &'a [[f32; 3]],
        count: usize,
    ) -> Self {
        let [mut rays, mut next_rays, mut shadow_rays] = [(); 3].map(|()| Rays::default());
        for rays in [&mut rays, &mut next_rays, &mut shadow_rays] {
            rays.resize(count);
        }
        let slots = |texture: u32| scene.textures[texture as usize].slots();
        let of_light = |record: &LightRecord| {
            (record.slot != NONE && sink.wants(record.slot))
                || record.texture != NONE && slots(record.texture).any(|slot| sink.wants(slot))
        };
        let of_sky = [scene.background, scene.common.env_scale_slot];
        Self {
            lamps: Lamps::new(scene, fields),
            lights_wanted: scene.lights.iter().any(of_light)
                || of_sky.iter().any(|slot| *slot != NONE && sink.wants(*slot)),
            scene,
            fields,
            sink,
            d_radiance,
            starts: Vec::with_capacity(count),
            paths: Vec::with_capacity(count),
            depth: 0,
            rays,
            onward: Vec::with_capacity(count),
            hits: Hits::default(),
            escaped: Vec::with_capacity(count),
            next_rays,
            next_onward: Vec::with_capacity(count),
            shadow_rays,
            shadows: Vec::with_capacity(count),
            points: Vec::new(),
            blocked: Vec::new(),
            gains: Vec::new(),
            blocks: Vec::new(),
            alone: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a path that starts as `path`, and whose random numbers are those of `sampler`.
    pub(super) fn begin(&mut self, path: PathState<f32>, sampler: Sampler) {
        let place = self.paths.len();
        self.rays.put(place, path.origin, path.direction, path.far);
        self.onward.push(Onward {
            path: place as u32,
            drawn: 0,
            beta: [1.0; 3],
            zeros: [0; 3],
            eta: 1.0,
            scattered_at: path.origin,
            pdf: 0.0,
            smooth: false,
        });
        self.starts.push(sampler);
        self.paths.push(path);
    }

    /// Follows all paths until they end.
    pub(super) fn run<const MODE: u8>(&mut self, pilot: &impl Pilot) {
        if self.depth >= self.scene.settings.max_depth {
            return;
        }
        let mut queues: Queues = Default::default();
        let mut block = Block::new();
        while !self.onward.is_empty() {
            pilot.look(self.scene, &self.rays, self.onward.len(), &mut self.hits);
            queues.iter_mut().for_each(Vec::clear);
            self.arrive::<MODE>(pilot, &mut queues);
            for (kind, queue) in Kind::ALL.into_iter().zip(&queues) {
                for group in queue.chunks(LANES) {
                    self.fill::<MODE>(&mut block, kind, group);
                    pilot.shade(self.scene, &self.lamps, MODE, &mut block);
                    self.leave::<MODE>(&block);
                }
            }
            for &(i, _) in &queues[Kind::ALL.len()] {
                self.scatter_alone::<MODE>(i as usize);
            }
            self.settle_shadows::<MODE>(pilot);
            if MODE == GATHER {
                self.marks.push(Mark {
                    gains: self.gains.len(),
                    blocks: self.blocks.len(),
                    alone: self.alone.len(),
                });
            }
            std::mem::swap(&mut self.rays, &mut self.next_rays);
            std::mem::swap(&mut self.onward, &mut self.next_onward);
            self.next_onward.clear();
        }
    }

    /// Gathers what paths meet, and puts those that are scattered into the queue of their kind, the last of which is for the
    /// others.
    fn arrive<const MODE: u8>(&mut self, pilot: &impl Pilot, queues: &mut Queues) {
        let scene = self.scene;
        let seen = self.depth + 1;
        for i in 0..self.onward.len() {
            let surface = self.hits.surface[i];
            if surface == NONE {
                self.escaped.push(i as u32);
                continue;
            }
            let record = &scene.surfaces[surface as usize];
            let (direction, path) = (self.rays.direction(i), self.onward[i].path as usize);
            if record.light != NONE && dot(direction, [0, 1, 2].each(|a| self.hits.normal[a][i])) < 0.0 {
                self.meet_light::<MODE>(i, &scene.lights[record.light as usize]);
            }
            self.paths[path].depth = seen;
            if seen >= scene.settings.max_depth {
                continue;
            }
            let [first, count] = self.side(i, direction);
            let lanes = match count {
                1 => Kind::of(&scene.leaves[first as usize]).filter(|kind| self.has_lanes::<MODE>(i, first, *kind)),
                _ => None,
            };
            queues[lanes.map_or(Kind::ALL.len(), |kind| kind as usize)].push((i as u32, first));
        }
        self.escape::<MODE>(pilot);
        self.depth = seen;
    }

    /// The first leaf on the side that a path comes from, and how many they are.
    #[inline(always)]
    fn side(&self, i: usize, direction: [f32; 3]) -> [u32; 2] {
        let record = &self.scene.bsdfs[self.scene.surfaces[self.hits.surface[i] as usize].bsdf as usize];
        let shading = [0, 1, 2].each(|a| self.hits.shading[a][i]);
        match dot(direction.each(|x| -x), shading) > 0.0 {
            true => record.front,
            false => record.back,
        }
    }

    /// Whether the leaf that a path meets is shaded in lanes.
    #[inline(always)]
    fn has_lanes<const MODE: u8>(&self, i: usize, leaf: u32, kind: Kind) -> bool {
        let record = &self.scene.bsdfs[self.scene.surfaces[self.hits.surface[i] as usize].bsdf as usize];
        let smooth = record.flags & bsdf::SMOOTH != 0;
        // Derivatives of mirrors and glass are sent one by one.
        let scored = MODE == GATHER && self.is_wanted(leaf);
        record.flags & bsdf::ANISOTROPIC == 0 && smooth == kind.is_smooth() && (smooth || !scored)
    }

    /// Whether derivatives by any texture of a leaf are sought.
    #[inline]
    fn is_wanted(&self, leaf: u32) -> bool {
        for texture in textures(&self.scene.leaves[leaf as usize]) {
            for slot in self.scene.textures[texture as usize].slots() {
                if self.sink.wants(slot) {
                    return true;
                }
            }
        }
        false
    }

    /// Adds the background's radiance along rays that meet nothing, weighted by MIS against next-event estimation.
    fn escape<const MODE: u8>(&mut self, pilot: &impl Pilot) {
        let scene = self.scene;
        let escaped = std::mem::take(&mut self.escaped);
        for &i in &escaped {
            self.paths[self.onward[i as usize].path as usize].straight = self.depth == 0;
        }
        for group in escaped.chunks(LANES).filter(|_| scene.has_background()) {
            let Some(map) = &self.lamps.map else {
                for &i in group {
                    let direction = self.rays.direction(i as usize);
                    let radiance = sky_value(scene, self.fields, direction);
                    self.gain_sky::<MODE>(i as usize, radiance, envmap_pdf(scene, direction));
                }
                continue;
            };
            let mut directions = [[0.0; LANES]; 3];
            for lane in 0..LANES {
                let i = *group.get(lane).unwrap_or(&group[0]) as usize;
                Block::put(&mut directions, lane, self.rays.direction(i));
            }
            // Rays from the camera have no pdf to be weighted against.
            let seen = pilot.look_up(scene, map, &directions, self.depth > 0);
            for (lane, &i) in group.iter().enumerate() {
                self.gain_sky::<MODE>(i as usize, Rgb(Block::lane(&seen.radiance, lane)), seen.pdf[lane]);
            }
        }
        self.escaped = escaped;
        self.escaped.clear();
    }

    /// Adds the radiance behind the scene; `pdf` is that of drawing its direction.
    #[inline(always)]
    fn gain_sky<const MODE: u8>(&mut self, i: usize, radiance: Rgb<f32>, pdf: f32) {
        let (scene, onward) = (self.scene, self.onward[i]);
        let weight = match onward.smooth && scene.settings.lights > 0 {
            true => mis(onward.pdf, pdf),
            false => 1.0,
        };
        self.gain::<MODE>(onward.path, Rgb(onward.beta) * (radiance * weight), onward.zeros);
        if MODE == GATHER && self.lights_wanted {
            let d = alive(onward.zeros, self.d_radiance(onward.path) * Rgb(onward.beta) * weight);
            sky_adjoint(scene, self.fields, self.rays.direction(i), d, &mut self.sink);
        }
    }

    /// Adds the emission of a surface, likewise.
    fn meet_light<const MODE: u8>(&mut self, i: usize, record: &LightRecord) {
        let (scene, onward, direction) = (self.scene, self.onward[i], self.rays.direction(i));
        let Some(hit) = self.hits.get(i) else { return };
        let mut weight = 1.0;
        if onward.smooth && scene.settings.lights > 0 {
            weight *= mis(onward.pdf, area_pdf(scene, onward.scattered_at, direction, &hit));
        }
        let radiance = light_value(scene, self.fields, record, &hit.point);
        self.gain::<MODE>(onward.path, Rgb(onward.beta) * (radiance * weight), onward.zeros);
        if MODE == GATHER && self.lights_wanted {
            let factor = Rgb::splat(weight);
            let d = alive(onward.zeros, self.d_radiance(onward.path) * Rgb(onward.beta) * factor);
            light_adjoint(scene, self.fields, record, &hit.point, d, &mut self.sink);
        }
    }

    /// The derivative by a path's radiance.
    #[inline(always)]
    fn d_radiance(&self, path: u32) -> Rgb<f32> {
        Rgb(self.d_radiance[path as usize])
    }

    /// Adds to what a path has gathered.
    #[inline(always)]
    fn gain<const MODE: u8>(&mut self, path: u32, value: Rgb<f32>, zeros: [u32; 3]) {
        self.paths[path as usize].add_value::<MODE>(value, zeros);
        if MODE == GATHER {
            self.gains.push(Gain { path, value, zeros });
        }
    }

    /// Fills a block with paths at vertices of one kind.
    fn fill<const MODE: u8>(&mut self, block: &mut Block, kind: Kind, group: &[(u32, u32)]) {
        let scene = self.scene;
        (block.kind, block.count, block.depth) = (kind, group.len(), self.depth);
        block.lit = [0; LANES];
        for lane in 0..LANES {
            let (i, leaf) = *group.get(lane).unwrap_or(&group[0]);
            let i = i as usize;
            let onward = &self.onward[i];
            let (key, counter) = self.starts[onward.path as usize].next_block();
            block.key = key;
            let counter = [counter.sensor, counter.pixel, counter.sample, counter.block];
            for k in 0..4 {
                block.counters[k][lane] = counter[k];
            }
            block.path[lane] = onward.path;
            block.drawn[lane] = onward.drawn;
            block.eta[lane] = onward.eta;
            for a in 0..3 {
                block.beta[a][lane] = onward.beta[a];
                block.zeros[a][lane] = onward.zeros[a];
                block.incoming[a][lane] = self.rays.direction[a][i];
                block.p[a][lane] = self.hits.p[a][i];
                block.normal[a][lane] = self.hits.normal[a][i];
                block.shading[a][lane] = self.hits.shading[a][i];
            }
            for a in 0..2 {
                block.uv[a][lane] = self.hits.uv[a][i];
                block.weights[a][lane] = self.hits.weights[a][i];
            }
            block.clearance[lane] = self.hits.clearance[i];
            block.triangle[lane] = self.hits.triangle[i];
            block.leaf[lane] = leaf;
            let record = &scene.leaves[leaf as usize];
            block.turned[lane] = record.flags & crate::resident::layout::leaf::TURNED;
            let point = block.point(lane);
            for k in 0..(record.textures as usize).min(TEXTURES) {
                let value = self.texture(record.first_texture + k as u32, &point);
                Block::put(&mut block.values[k], lane, value.0);
            }
            let mut black = kind == Kind::Diffuse;
            if black {
                black = Rgb(Block::lane(&block.values[0], lane)) == Rgb([0.0; 3]);
                if black && MODE != PRIMAL {
                    let surface = &scene.surfaces[self.hits.surface[i] as usize];
                    black = scene.bsdfs[surface.bsdf as usize].flags & bsdf::VARIES == 0;
                }
            }
            block.alive[lane] = u32::from(!black);
        }
        if kind.is_smooth() && scene.settings.lights > 0 && !self.lamps.plain {
            self.draw_lights(block);
        }
    }

    /// The value of a texture.
    #[inline(always)]
    fn texture(&self, texture: u32, point: &SurfacePoint) -> Rgb<f32> {
        let record = &self.scene.textures[texture as usize];
        if record.kind == texture::CONSTANT {
            let data = self.fields.integrand(record.slot);
            return match record.channels {
                1 => Rgb::splat(data[0]),
                _ => Rgb([data[0], data[1], data[2]]),
            };
        }
        texture_value(self.scene, |slot| self.fields.integrand(slot), texture, point)
    }

    /// Draws a light for each path of a block.
    fn draw_lights(&mut self, block: &mut Block) {
        let scene = self.scene;
        for lane in 0..block.count {
            if block.alive[lane] == 0 {
                continue;
            }
            let start = &self.starts[block.path[lane] as usize];
            let mut sampler = start.after(block.drawn[lane]);
            let origin = block.leave(lane, Block::lane(&block.incoming, lane).each(|x| -x));
            let drawn = light_sample(scene, origin, &mut sampler);
            block.drawn[lane] = sampler.drawn_since(start);
            block.light[lane] = NONE;
            let Some(drawn) = drawn else { continue };
            block.lit[lane] = 1;
            block.light[lane] = self.points.len() as u32;
            block.light_weight[lane] = drawn.weight;
            block.light_pdf[lane] = drawn.pdf;
            block.light_distance[lane] = drawn.distance;
            Block::put(&mut block.light_direction, lane, drawn.direction);
            let radiance = drawn_radiance(scene, self.fields, &scene.lights[drawn.light as usize], &drawn);
            Block::put(&mut block.light_radiance, lane, radiance.0);
            self.points.push(drawn);
        }
    }

    /// Takes the paths of a shaded block further: their shadow rays, and their next rays.
    fn leave<const MODE: u8>(&mut self, block: &Block) {
        let mut wanted = 0u32;
        if MODE == GATHER {
            for lane in 0..block.count {
                wanted |= u32::from(self.is_wanted(block.leaf[lane])) << lane;
            }
        }
        let place = self.blocks.len() as u32;
        for lane in 0..block.count {
            let path = block.path[lane];
            let zeros = [0, 1, 2].each(|c| block.zeros[c][lane]);
            if block.lit[lane] != 0 {
                let chosen = block.light[lane];
                let (light, point) = match self.lamps.plain {
                    true => (chosen, NONE),
                    false => (self.points[chosen as usize].light, chosen),
                };
                let shadow = Shadow {
                    path,
                    beta: Rgb(Block::lane(&block.beta, lane)),
                    zeros,
                    factor: Rgb(Block::lane(&block.light_factor, lane)),
                    weight: block.light_weight[lane],
                    radiance: Rgb(Block::lane(&block.light_radiance, lane)),
                    light,
                    point,
                    vertex: match wanted >> lane & 1 != 0 {
                        true => Vertex::Lane(place, lane as u32),
                        false => Vertex::Unwanted,
                    },
                };
                let [origin, direction] =
                    [&block.light_origin, &block.light_direction].each(|of| Block::lane(of, lane));
                self.cast_shadow(shadow, origin, direction, block.light_distance[lane]);
            }
            if block.alive[lane] != 0 {
                let onward = Onward {
                    path,
                    drawn: block.drawn[lane],
                    beta: Block::lane(&block.next_beta, lane),
                    zeros: [0, 1, 2].each(|c| block.next_zeros[c][lane]),
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
            self.blocks.push(Kept {
                block: block.clone(),
                wanted,
                arrived: 0,
            });
        }
    }

    /// Appends a shadow ray.
    #[inline(always)]
    fn cast_shadow(&mut self, shadow: Shadow, origin: [f32; 3], direction: [f32; 3], distance: f32) {
        let place = self.shadows.len();
        self.shadow_rays.put(place, origin, direction, distance * SHADOW);
        self.shadows.push(shadow);
    }

    /// Appends a path's next ray.
    #[inline(always)]
    fn go_on(&mut self, onward: Onward, origin: [f32; 3], direction: [f32; 3]) {
        let place = self.next_onward.len();
        self.next_rays.put(place, origin, direction, f32::INFINITY);
        self.next_onward.push(onward);
    }

    /// Traces the shadow rays, and adds what arrives.
    fn settle_shadows<const MODE: u8>(&mut self, pilot: &impl Pilot) {
        let mut shadows = std::mem::take(&mut self.shadows);
        pilot.cast(self.scene, &self.shadow_rays, shadows.len(), &mut self.blocked);
        let first_block = self.marks.last().map_or(0, |mark| mark.blocks);
        for (k, shadow) in shadows.iter().enumerate() {
            if self.blocked[k] != 0 {
                continue;
            }
            let value = shadow.beta * (shadow.factor * shadow.radiance);
            self.gain::<MODE>(shadow.path, value, shadow.zeros);
            if MODE != GATHER {
                continue;
            }
            if self.lights_wanted {
                self.send_light(shadow, self.shadow_rays.direction(k));
            }
            match shadow.vertex {
                Vertex::Unwanted => {}
                Vertex::Lane(block, lane) => self.blocks[block as usize].arrived |= 1 << lane,
                Vertex::Alone(place) => self.send_alone(place, shadow, self.shadow_rays.direction(k)),
            }
        }
        shadows.clear();
        self.shadows = shadows;
        self.points.clear();
        if MODE == GATHER {
            self.send_lit(pilot, first_block);
        }
    }

    /// Sends the derivative by the radiance of a light that was drawn.
    fn send_light(&mut self, shadow: &Shadow, direction: [f32; 3]) {
        let (scene, record) = (self.scene, &self.scene.lights[shadow.light as usize]);
        let d_beta = self.d_radiance(shadow.path) * shadow.beta;
        let d = alive(shadow.zeros, d_beta * shadow.factor);
        if record.kind == light::ENVMAP {
            return sky_adjoint(scene, self.fields, direction, d, &mut self.sink);
        }
        let point = match shadow.point {
            NONE => SurfacePoint::new([0.0; 3], [0.0; 2]),
            point => self.points[point as usize].point,
        };
        light_adjoint(scene, self.fields, record, &point, d, &mut self.sink);
    }

    /// The derivative by a BSDF's value for a light that was drawn.
    #[inline(always)]
    fn by_value(&self, path: u32, beta: Rgb<f32>, zeros: [u32; 3], weight: f32, radiance: Rgb<f32>) -> Rgb<f32> {
        let arrived = Rgb::splat(weight) * radiance;
        alive(zeros, self.d_radiance(path) * beta * arrived)
    }

    /// What a path meets.
    #[inline(always)]
    fn hit(&self, i: usize) -> Hit {
        self.hits.get(i).expect("it has met a surface")
    }
}

/// The channels of `x` without a factor of zero; zero in the others.
#[inline(always)]
fn alive(zeros: [u32; 3], x: Rgb<f32>) -> Rgb<f32> {
    Rgb([0, 1, 2].each(|c| if zeros[c] == 0 { x[c] } else { 0.0 }))
}
