//! Shades the vertices of a block in loops over lanes, by the functions of a single path and to its bits: draws and evaluates a
//! light, draws a direction, and multiplies the throughput.

use std::hint::select_unpredictable;

use super::block::{Block, Kind, Lanes, Lanes3, TEXTURES, Vertices};
use super::edges::Zeros;
use crate::each::EachEntry;
use crate::resident::bvh::FEW_SHAPES;
use crate::resident::layout::{LightRecord, NONE, light, surface};
use crate::transport::mode::PRIMAL;
use crate::transport::number::rgb::Rgb;
use crate::transport::paths::next_event::mis;
use crate::transport::paths::path_state::{PathState, is_faint};
use crate::transport::rays::sampler::{dot, frame};
use crate::transport::scene::area_light::{sample_rectangle, sample_sphere, towards};
use crate::transport::scene::batch::{LANES, SkyMap};
use crate::transport::scene::bsdf::conductor::{Conductor, RoughConductor};
use crate::transport::scene::bsdf::dielectric::Dielectric;
use crate::transport::scene::bsdf::diffuse::{diffuse_eval, diffuse_pdf, diffuse_sample};
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::bsdf::microfacet::Distribution;
use crate::transport::scene::light::{choose_light, light_color};
use crate::transport::scene::records::{Fields, SceneView};

/// The lights of a scene for blocks: whether lanes can draw from them, and their radiance.
#[derive(Debug, Clone)]
pub struct Lamps<'a> {
    /// Whether all lights can be drawn in lanes; else they are drawn path by path.
    pub plain: bool,
    /// The radiance of each but the environment map.
    pub radiance: Vec<[f32; 3]>,
    pub map: Option<SkyMap<'a>>,
    /// The shapes that shine, where no mesh does and they are few.
    pub shapes: Option<Vec<u32>>,
}

/// See [`Lamps::shapes`].
fn shining_shapes(scene: &SceneView) -> Option<Vec<u32>> {
    let shine = |record: &&LightRecord| record.kind == light::AREA;
    let shapes: Vec<u32> = scene.lights.iter().filter(shine).map(|record| record.surface).collect();
    let are_single = shapes
        .iter()
        .all(|shape| scene.surfaces[*shape as usize].kind != surface::MESH);
    (are_single && shapes.len() <= FEW_SHAPES).then_some(shapes)
}

/// Whether a light is drawn in lanes: an environment map, or a rectangle or a sphere that shines alike everywhere.
fn is_plain_light(scene: &SceneView, map: Option<&SkyMap>, record: &LightRecord) -> bool {
    if record.kind == light::ENVMAP {
        return map.is_some();
    }
    if record.kind != light::AREA || record.texture != NONE || record.cells[0] > 0 {
        return false;
    }
    let shape = &scene.surfaces[record.surface as usize];
    shape.kind == surface::RECTANGLE || shape.kind == surface::SPHERE && shape.side > 0.0
}

impl<'a> Lamps<'a> {
    #[inline]
    pub(super) fn new<F: Fields<f32>>(scene: &SceneView<'a>, fields: &'a F) -> Self {
        let map = SkyMap::of(scene, fields);
        let plain = scene
            .lights
            .iter()
            .all(|record| is_plain_light(scene, map.as_ref(), record));
        let radiance = |record: &LightRecord| match record.kind {
            light::ENVMAP => [0.0; 3],
            _ => light_color::<f32, F>(fields, record).0,
        };
        Self {
            plain,
            radiance: match plain {
                true => scene.lights.iter().map(radiance).collect(),
                false => Vec::new(),
            },
            map,
            shapes: shining_shapes(scene),
        }
    }
}

/// Computes a block's next random numbers, and draws cells of the environment map with them, early, so that these cells' data
/// are prefetched before [`shade`] needs them.
#[inline(always)]
pub fn prepare(scene: &SceneView, lamps: &Lamps, block: &mut Block) {
    block.next = block.look_ahead();
    let is_drawn = draws_lights(scene, block) && lamps.plain && scene.settings.environment != NONE;
    if let (true, Some(map)) = (is_drawn, &lamps.map) {
        block.cells = map.draw_cells(&block.next[1], &block.next[2]);
    }
}

/// Whether lights are drawn at a block's vertices.
#[inline(always)]
fn draws_lights(scene: &SceneView, block: &Block) -> bool {
    block.at.kind.is_smooth() && scene.settings.lights > 0
}

/// Shades a block that is prepared. Where lamps are not plain, lights have been drawn path by path already.
#[inline(always)]
pub fn shade(scene: &SceneView, lamps: &Lamps, mode: u8, block: &mut Block) {
    let next = block.next;
    face(block);
    let mut taken = 0;
    if draws_lights(scene, block) {
        if lamps.plain {
            draw_lights(scene, lamps, block, [&next[0], &next[1], &next[2]]);
            taken = 3;
        }
        evaluate_lights(mode, block);
    }
    let [u1, u2, u3, u4] = match taken {
        0 => [&next[0], &next[1], &next[2], &next[3]],
        _ => [&next[3], &next[4], &next[5], &next[6]],
    };
    let (drawn, last) = match block.at.kind {
        Kind::Diffuse => {
            turn_diffuse(block, u1, u2);
            (2, u3)
        }
        Kind::RoughConductor => {
            turn_rough_conductor(block, u2, u3);
            (3, u4)
        }
        Kind::Conductor => {
            turn_conductor(block);
            (3, u4)
        }
        Kind::Dielectric => {
            turn_dielectric(block, u1);
            (3, u4)
        }
    };
    for lane in 0..LANES {
        block.drawn[lane] += taken + drawn;
    }
    go_on(block, mode);
    block.roulette(scene, last);
}

/// The local frame, and the direction that the path comes from.
#[inline(always)]
fn face(block: &mut Block) {
    for lane in 0..LANES {
        let n = Block::lane(&block.shading, lane);
        let back = Block::lane(&block.incoming, lane).each(|x| -x);
        let (s, t) = frame(n);
        let wi = [dot(back, s), dot(back, t), dot(back, n)];
        Block::put(&mut block.s, lane, s);
        Block::put(&mut block.t, lane, t);
        let wi = turned(block, lane, wi);
        Block::put(&mut block.at.wi, lane, wi);
    }
}

/// A local direction as the leaf sees it, or back.
#[inline(always)]
fn turned(block: &Block, lane: usize, [x, y, z]: [f32; 3]) -> [f32; 3] {
    [x, y, select_unpredictable(block.turned[lane] != 0, -z, z)]
}

/// Chooses a light in each lane and draws a direction to it.
#[inline(always)]
fn draw_lights(scene: &SceneView, lamps: &Lamps, block: &mut Block, [u, v, w]: [&Lanes<f32>; 3]) {
    let mut choices = [0.0; LANES];
    if scene.settings.lights == 1 {
        let chosen = choose_light(scene, 0.0);
        block.light = [chosen.0; LANES];
        choices = [chosen.1; LANES];
    } else {
        for lane in 0..LANES {
            (block.light[lane], choices[lane]) = choose_light(scene, u[lane]);
        }
    }
    let mut left = (1u32 << LANES) - 1;
    while left != 0 {
        let index = block.light[left.trailing_zeros() as usize];
        for lane in 0..LANES {
            left &= !(u32::from(block.light[lane] == index) << lane);
        }
        let record = &scene.lights[index as usize];
        if let (light::ENVMAP, Some(map)) = (record.kind, &lamps.map) {
            draw_from_map(scene, map, index, &choices, block);
            continue;
        }
        let radiance = lamps.radiance[index as usize];
        match scene.surfaces[record.surface as usize].kind {
            surface::SPHERE => draw_light::<true>(scene, record, index, &choices, radiance, block, v, w),
            _ => draw_light::<false>(scene, record, index, &choices, radiance, block, v, w),
        }
    }
}

/// Draws a direction to this light in the lanes that have chosen it.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "they are what a draw consists of")]
fn draw_light<const SPHERE: bool>(
    scene: &SceneView,
    record: &LightRecord,
    index: u32,
    choices: &Lanes<f32>,
    radiance: [f32; 3],
    block: &mut Block,
    u: &Lanes<f32>,
    v: &Lanes<f32>,
) {
    let shape = scene.surfaces[record.surface as usize];
    let record = *record;
    let mut all = Towards::nothing();
    for lane in 0..LANES {
        let towards_viewer = Block::lane(&block.incoming, lane).each(|x| -x);
        let p = block.leave(lane, towards_viewer);
        let (shining, drawn) = match SPHERE {
            true => sample_sphere(&record, p, [u[lane], v[lane]]),
            false => towards(p, &sample_rectangle(&record, &shape, [u[lane], v[lane]])),
        };
        all.shines[lane] = u32::from(shining);
        all.distance[lane] = drawn.distance;
        all.weight[lane] = drawn.weight * choices[lane];
        all.pdf[lane] = drawn.pdf / choices[lane];
        Block::put(&mut all.direction, lane, drawn.direction);
    }
    all.radiance = radiance.each(|c| [c; LANES]);
    all.take(index, block);
}

/// Draws a direction to the environment map in the lanes that have chosen it.
#[inline(always)]
fn draw_from_map(scene: &SceneView, map: &SkyMap, index: u32, choices: &Lanes<f32>, block: &mut Block) {
    let drawn = map.draw(&block.cells);
    let mut all = Towards::nothing();
    for lane in 0..LANES {
        let pdf = drawn.pdf[lane];
        all.shines[lane] = u32::from(pdf > 0.0);
        all.distance[lane] = f32::INFINITY;
        all.weight[lane] = 1.0 / pdf * choices[lane];
        all.pdf[lane] = pdf / choices[lane];
    }
    all.direction = drawn.direction;
    all.radiance = map.look_up(scene, &drawn.direction, false).radiance;
    all.take(index, block);
}

/// Directions towards one light, in all lanes.
struct Towards {
    shines: Lanes<u32>,
    direction: Lanes3,
    distance: Lanes<f32>,
    weight: Lanes<f32>,
    pdf: Lanes<f32>,
    radiance: Lanes3,
}

impl Towards {
    #[inline(always)]
    fn nothing() -> Self {
        let (zero, zeros) = ([0.0; LANES], [[0.0; LANES]; 3]);
        Self {
            shines: [0; LANES],
            direction: zeros,
            distance: zero,
            weight: zero,
            pdf: zero,
            radiance: zeros,
        }
    }

    /// Stores them in the lanes that have chosen this light.
    #[inline(always)]
    fn take(&self, index: u32, block: &mut Block) {
        for lane in 0..LANES {
            let own = block.light[lane] == index;
            let lit = self.shines[lane] & block.alive[lane];
            block.lit[lane] = select_unpredictable(own, lit, block.lit[lane]);
            block.at.light_weight[lane] = select_unpredictable(own, self.weight[lane], block.at.light_weight[lane]);
            block.light_pdf[lane] = select_unpredictable(own, self.pdf[lane], block.light_pdf[lane]);
            block.light_distance[lane] = select_unpredictable(own, self.distance[lane], block.light_distance[lane]);
            for a in 0..3 {
                let (before, color) = (block.light_direction[a][lane], block.at.light_radiance[a][lane]);
                block.light_direction[a][lane] = select_unpredictable(own, self.direction[a][lane], before);
                block.at.light_radiance[a][lane] = select_unpredictable(own, self.radiance[a][lane], color);
            }
        }
    }
}

/// The BSDF's values for the lights, and the weights by MIS.
#[inline(always)]
fn evaluate_lights(mode: u8, block: &mut Block) {
    let mut pdfs = [0.0; LANES];
    let mut values = [[0.0; LANES]; 3];
    for lane in 0..LANES {
        let d = Block::lane(&block.light_direction, lane);
        let [s, t, n] = [&block.s, &block.t, &block.shading].each(|axis| Block::lane(axis, lane));
        let wo = turned(block, lane, [dot(d, s), dot(d, t), dot(d, n)]);
        Block::put(&mut block.at.light_wo, lane, wo);
        let origin = block.leave(lane, d);
        Block::put(&mut block.light_origin, lane, origin);
    }
    match block.at.kind {
        Kind::RoughConductor => {
            for lane in 0..LANES {
                let (wi, wo) = (Block::lane(&block.at.wi, lane), Block::lane(&block.at.light_wo, lane));
                let model = rough_conductor(&block.at, lane);
                pdfs[lane] = model.pdf(wi, wo);
                Block::put(&mut values, lane, model.eval(wi, wo).0);
            }
        }
        _ => {
            for lane in 0..LANES {
                let wo = Block::lane(&block.at.light_wo, lane);
                pdfs[lane] = diffuse_pdf(wo);
                let reflectance = Rgb(Block::lane(&block.at.values[0], lane));
                Block::put(&mut values, lane, diffuse_eval(reflectance, wo).0);
            }
        }
    }
    for lane in 0..LANES {
        let faint = is_faint(values[0][lane]) & is_faint(values[1][lane]) & is_faint(values[2][lane]);
        let lights = (pdfs[lane] > 0.0) & !(faint & (mode == PRIMAL));
        block.lit[lane] &= u32::from(lights);
        let (weight, pdf) = (block.at.light_weight[lane], block.light_pdf[lane]);
        let shared = weight * mis(pdf, pdfs[lane]);
        let weight = select_unpredictable(pdf > 0.0, shared, weight);
        block.at.light_weight[lane] = weight;
        for c in 0..3 {
            block.light_factor[c][lane] = values[c][lane] * weight;
        }
    }
}

/// The derivatives by the textures of a block's rough conductors, from those by their values for the directions `wo`; zero
/// by the indices of refraction unless these are sought (`indices`).
#[inline(always)]
pub fn slopes(block: &Vertices, wo: &Lanes3, d: &Lanes3, indices: bool, slopes: &mut [Lanes3; TEXTURES]) {
    match indices {
        true => slopes_by::<true>(block, wo, d, slopes),
        false => slopes_by::<false>(block, wo, d, slopes),
    }
}

#[inline(always)]
fn slopes_by<const INDICES: bool>(block: &Vertices, wo: &Lanes3, d: &Lanes3, slopes: &mut [Lanes3; TEXTURES]) {
    for lane in 0..LANES {
        let (wi, wo, d) = (
            Block::lane(&block.wi, lane),
            Block::lane(wo, lane),
            Rgb(Block::lane(d, lane)),
        );
        let model = rough_conductor(block, lane);
        let of = match INDICES {
            true => model.eval_adjoint(wi, wo, d),
            false => model.eval_adjoint_but_index(wi, wo, d),
        };
        let all = [
            of.eta.0,
            of.k.0,
            of.specular.0,
            [of.alpha_u, 0.0, 0.0],
            [of.alpha_v, 0.0, 0.0],
        ];
        for i in 0..TEXTURES {
            Block::put(&mut slopes[i], lane, all[i]);
        }
    }
}

/// The rough conductor of a lane.
#[inline(always)]
fn rough_conductor(block: &Vertices, lane: usize) -> RoughConductor<f32> {
    let [eta, k, specular, alpha_u, alpha_v] = [0, 1, 2, 3, 4].each(|i| Block::lane(&block.values[i], lane));
    RoughConductor {
        eta: Rgb(eta),
        k: Rgb(k),
        specular: Rgb(specular),
        alpha_u: alpha_u[0],
        alpha_v: alpha_v[0],
        distribution: Distribution::Ggx,
        visible: true,
    }
}

#[inline(always)]
fn turn_diffuse(block: &mut Block, u: &Lanes<f32>, v: &Lanes<f32>) {
    for lane in 0..LANES {
        let wo = diffuse_sample([u[lane], v[lane]]);
        Block::put(&mut block.at.wo, lane, wo);
        block.at.pdf[lane] = diffuse_pdf(wo);
        block.at.turns[lane] = block.alive[lane];
    }
    block.at.weight = block.at.values[0];
}

#[inline(always)]
fn turn_rough_conductor(block: &mut Block, u: &Lanes<f32>, v: &Lanes<f32>) {
    for lane in 0..LANES {
        let wi = Block::lane(&block.at.wi, lane);
        let model = rough_conductor(&block.at, lane);
        let wo = model.mirror(wi, [u[lane], v[lane]]);
        let pdf = model.pdf(wi, wo);
        Block::put(&mut block.at.wo, lane, wo);
        block.at.pdf[lane] = pdf;
        block.at.turns[lane] = block.alive[lane] & u32::from(pdf > 0.0);
    }
    for lane in 0..LANES {
        let (wi, wo) = (Block::lane(&block.at.wi, lane), Block::lane(&block.at.wo, lane));
        let weight = rough_conductor(&block.at, lane).eval(wi, wo) * (1.0 / block.at.pdf[lane]);
        Block::put(&mut block.at.weight, lane, weight.0);
    }
}

#[inline(always)]
fn turn_conductor(block: &mut Block) {
    for lane in 0..LANES {
        let wi = Block::lane(&block.at.wi, lane);
        let [eta, k, specular] = [0, 1, 2].each(|i| Rgb(Block::lane(&block.at.values[i], lane)));
        let weight = Conductor { eta, k, specular }.discrete(wi, Lobe::Reflection);
        Block::put(&mut block.at.weight, lane, weight.0);
        Block::put(&mut block.at.wo, lane, [-wi[0], -wi[1], wi[2]]);
        block.at.pdf[lane] = 1.0;
        block.at.turns[lane] = block.alive[lane] & u32::from(wi[2] > 0.0);
    }
}

#[inline(always)]
fn turn_dielectric(block: &mut Block, u: &Lanes<f32>) {
    for lane in 0..LANES {
        let wi = Block::lane(&block.at.wi, lane);
        let [eta, reflection, transmission] = [0, 1, 2].each(|i| Block::lane(&block.at.values[i], lane));
        let model = Dielectric {
            eta: eta[0],
            reflection: Rgb(reflection),
            transmission: Rgb(transmission),
        };
        let [reflected, transmitted] = model.both(wi);
        let reflects = u[lane] < reflected.pdf;
        let scale = 1.0 / select_unpredictable(reflects, reflected.pdf, transmitted.pdf);
        let [mirror, refraction] = [Lobe::Reflection, Lobe::Transmission].each(|lobe| model.discrete(wi, lobe));
        for c in 0..3 {
            block.at.weight[c][lane] = select_unpredictable(reflects, mirror[c], refraction[c]) * scale;
            block.at.wo[c][lane] = select_unpredictable(reflects, reflected.direction[c], transmitted.direction[c]);
        }
        block.at.pdf[lane] = select_unpredictable(reflects, reflected.pdf, transmitted.pdf);
        block.eta[lane] *= select_unpredictable(reflects, 1.0, transmitted.eta);
        block.at.turns[lane] = block.alive[lane] & u32::from(wi[2] != 0.0);
    }
}

/// Turns the paths, and multiplies their throughputs. Ends those that are dark in all channels: with one zero factor in a
/// primal pass, with two in any other.
#[inline(always)]
fn go_on(block: &mut Block, mode: u8) {
    let dead = if mode == PRIMAL { 1 } else { 2 };
    for lane in 0..LANES {
        let wo = turned(block, lane, Block::lane(&block.at.wo, lane));
        let [s, t, n] = [&block.s, &block.t, &block.shading].each(|axis| Block::lane(axis, lane));
        let direction = [0, 1, 2].each(|a| s[a] * wo[0] + t[a] * wo[1] + n[a] * wo[2]);
        Block::put(&mut block.direction, lane, direction);
        let origin = block.leave(lane, direction);
        Block::put(&mut block.origin, lane, origin);
        let (mut dark, mut zeros) = (1, block.at.zeros[lane].counts());
        for c in 0..3 {
            let (weight, beta) = (block.at.weight[c][lane], block.at.beta[c][lane]);
            let faint = is_faint(weight);
            zeros[c] += u32::from(faint);
            block.next_beta[c][lane] = select_unpredictable(faint, beta, beta * weight);
            dark &= u32::from(zeros[c] >= dead);
        }
        block.next_zeros[lane] = Zeros::of(zeros);
        block.alive[lane] = block.at.turns[lane] & (1 - dark);
    }
}

impl Block {
    /// Russian roulette.
    #[inline(always)]
    fn roulette(&mut self, scene: &SceneView, u: &Lanes<f32>) {
        if self.depth <= scene.settings.rr_depth {
            return;
        }
        for lane in 0..LANES {
            let mut most = 0.0f32;
            for c in 0..3 {
                most = most.max(self.next_beta[c][lane]);
            }
            let survival = PathState::<f32>::survival(most * (self.eta[lane] * self.eta[lane]));
            self.alive[lane] &= u32::from(u[lane] < survival);
            let scale = 1.0 / survival;
            for c in 0..3 {
                self.next_beta[c][lane] *= scale;
            }
            self.drawn[lane] += 1;
        }
    }
}
