//! The derivatives by textures that a wave sends: those through lights drawn at vertices, in the first walk, and those through
//! the factors of the throughput, in the replay, which knows the radiance still to come.

use super::block::{Block, Kind, Lanes3, TEXTURES, Vertices};
use super::edges::Zeros;
use super::{FEW, Gain, Kept, Wave};
use crate::each::EachEntry;
use crate::transport::mode::REPLAY;
use crate::transport::number::rgb::Rgb;
use crate::transport::paths::packet::Pilot;
use crate::transport::paths::path_state::is_faint;
use crate::transport::scene::batch::LANES;
use crate::transport::scene::batch::images::is_image;
use crate::transport::scene::bsdf::diffuse::diffuse_adjoint;
use crate::transport::scene::bsdf::leaf::Values;
use crate::transport::scene::bsdf::{Bsdf, values_adjoint};
use crate::transport::scene::records::{Fields, Sink};
use crate::transport::scene::texture::{stencil, texture_adjoint};

/// The lanes of a bit mask, and the derivatives that belong to them.
struct Sent {
    lanes: u32,
    d: Lanes3,
}

impl<F: Fields<f32>, S: Sink<f32>> Wave<'_, F, S> {
    /// Sends the derivatives by BSDF values for lights that have arrived, of the blocks from `first` on. Those by diffuse
    /// reflectances wait for the replay, which sends others to the same texels.
    pub(super) fn send_lit(&mut self, pilot: &impl Pilot, first: usize) {
        let vertices = std::mem::take(&mut self.room.vertices);
        for (block, i) in vertices[first..].iter().zip(first..) {
            let arrived = self.room.kept[i].arrived;
            if block.kind == Kind::Diffuse {
                continue;
            }
            let mut sent = Sent::nothing();
            for lane in (0..block.count).filter(|lane| arrived >> lane & 1 != 0) {
                sent.put(lane, self.by_lit_value(block, lane));
            }
            self.send_values(pilot, block, &block.light_wo, &sent);
        }
        self.room.vertices = vertices;
    }

    /// The derivative by a block's value for the light that was drawn.
    #[inline(always)]
    fn by_lit_value(&self, block: &Vertices, lane: usize) -> Rgb<f32> {
        let zeros = block.zeros[lane];
        let [beta, radiance] = [&block.beta, &block.light_radiance].each(|of| Rgb(Block::lane(of, lane)));
        self.by_value(block.path[lane], beta, zeros, block.light_weight[lane], radiance)
    }

    /// Sends the derivatives by the values of BSDFs that are not diffuse for the directions `wo` to their textures.
    fn send_values(&mut self, pilot: &impl Pilot, block: &Vertices, wo: &Lanes3, sent: &Sent) {
        let mut slopes = [[[0.0; LANES]; 3]; TEXTURES];
        if sent.lanes != 0 {
            pilot.slopes(block, wo, &sent.d, self.room.indices_wanted, &mut slopes);
        }
        for lane in sent.each_lane() {
            let record = &self.scene.leaves[block.leaf[lane] as usize];
            let point = block.point(lane);
            let mut values: Values<f32> = [Rgb::zero(); _];
            for i in 0..TEXTURES {
                values[i] = Rgb(Block::lane(&slopes[i], lane));
            }
            values_adjoint(self.scene, record, &point, &values, &mut self.sink);
        }
    }

    /// Sends derivatives by the reflectances of a block's diffuse surfaces to their textures.
    fn send_reflectances(&mut self, pilot: &impl Pilot, block: &Vertices, sent: &Sent) {
        let mut left = sent.lanes;
        while left != 0 {
            let number = block.leaf[left.trailing_zeros() as usize % LANES];
            let own = Sent {
                lanes: left & block.lanes_of(number),
                d: sent.d,
            };
            left &= !own.lanes;
            let texture = self.scene.leaves[number as usize].first_texture;
            let record = &self.scene.textures[texture as usize];
            if !is_image(record) || own.lanes.count_ones() <= FEW {
                for lane in own.each_lane() {
                    let at = stencil(self.scene, texture, &block.point(lane));
                    texture_adjoint(&at, Rgb(Block::lane(&own.d, lane)), &mut self.sink);
                }
                continue;
            }
            let texels = pilot.texels(record, &block.uv);
            for lane in own.each_lane() {
                for k in 0..4 {
                    self.sink
                        .expect_entries(record.slot, record.channels * texels.texels[k][lane]);
                }
            }
            for lane in own.each_lane() {
                let at = texels.stencil(record, lane);
                texture_adjoint(&at, Rgb(Block::lane(&own.d, lane)), &mut self.sink);
            }
        }
    }

    /// The replay of what a first walk has kept.
    pub(super) fn replay(&mut self, pilot: &impl Pilot) {
        let (gains, vertices, alone, marks) = (
            std::mem::take(&mut self.room.gains),
            std::mem::take(&mut self.room.vertices),
            std::mem::take(&mut self.room.alone),
            std::mem::take(&mut self.room.marks),
        );
        let (mut gain, mut block, mut single) = (0, 0, 0);
        for mark in &marks {
            for &Gain { path, value, zeros } in &gains[gain..mark.gains] {
                self.room.paths.left[path as usize].add::<REPLAY>(value, zeros.counts());
            }
            for (i, block) in (block..mark.blocks).zip(&vertices[block..]) {
                self.send_turns(pilot, block, self.room.kept[i]);
            }
            for vertex in &alone[single..mark.alone] {
                let Some((drawn, weight)) = vertex.turn else { continue };
                let d = self.by_weight(vertex.path, weight, vertex.zeros);
                let bsdf = Bsdf::new(self.scene, self.fields, &vertex.at);
                bsdf.sample_adjoint(&drawn, d, vertex.lit, &mut self.sink);
            }
            (gain, block, single) = (mark.gains, mark.blocks, mark.alone);
        }
        let room = &mut self.room;
        (room.gains, room.vertices, room.alone, room.marks) = (gains, vertices, alone, marks);
    }

    /// Sends the derivatives by what the throughput was multiplied by at a block's vertices; at diffuse vertices also those
    /// through lights.
    fn send_turns(&mut self, pilot: &impl Pilot, block: &Vertices, Kept { wanted, arrived }: Kept) {
        let mut sent = Sent::nothing();
        for lane in (0..block.count).filter(|lane| block.turns[*lane] != 0) {
            if wanted >> lane & 1 == 0 {
                continue;
            }
            let weight = Rgb(Block::lane(&block.weight, lane));
            let d = self.by_weight(block.path[lane], weight, block.zeros[lane]);
            match block.kind {
                // The weight, value over pdf, is the reflectance.
                Kind::Diffuse => {
                    let mut slope = d;
                    if arrived >> lane & 1 != 0 {
                        slope += diffuse_adjoint(Block::lane(&block.light_wo, lane), self.by_lit_value(block, lane));
                    }
                    sent.put(lane, slope);
                }
                _ => sent.put(lane, d * (1.0 / block.pdf[lane])),
            }
        }
        match block.kind {
            Kind::Diffuse => self.send_reflectances(pilot, block, &sent),
            _ => self.send_values(pilot, block, &block.wo, &sent),
        }
    }

    /// The derivative by `weight`, a factor that the throughput with these `zeros` was multiplied by: the radiance still to
    /// come over the factor, or where it is zero the radiance without it.
    #[inline(always)]
    fn by_weight(&self, path: u32, weight: Rgb<f32>, zeros: Zeros) -> Rgb<f32> {
        let left = &self.room.paths.left[path as usize];
        let come = Rgb([0, 1, 2].each(|c| match is_faint(weight[c]) {
            true => left.radiance_but_zero[c],
            false => left.radiance[c] * (1.0 / weight[c]),
        }));
        come * self.d_radiance(path) * zeros.alive(Rgb::splat(1.0))
    }
}

impl Sent {
    #[inline(always)]
    fn nothing() -> Self {
        Self {
            lanes: 0,
            d: [[0.0; LANES]; 3],
        }
    }

    #[inline(always)]
    fn each_lane(&self) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.lanes;
        (0..LANES).filter(move |lane| lanes >> lane & 1 != 0)
    }

    #[inline(always)]
    fn put(&mut self, lane: usize, d: Rgb<f32>) {
        self.lanes |= 1 << lane;
        Block::put(&mut self.d, lane, d.0);
    }
}
