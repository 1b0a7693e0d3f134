//! The coats of plastics: the weight of their specular lobe in sampling, and the transmittance tables of rough coats.
//! They are computed from the values of the plastics' parameters.

use std::sync::Arc;

use super::bsdf::microfacet::Distribution;
use super::bsdf::plastic::specular_weight;
use super::bsdf::transmittance::{ENTRIES, TransmittanceTable};
use crate::each::EachEntry;
use crate::resident::bsdfs::Bsdfs;
use crate::resident::layout::{LeafRecord, TextureRecord, leaf, slots_of, texture};

/// Floats of a coat as shaders read it: the specular weight, then the table's rows.
pub const COAT_FLOATS: usize = 1 + 3 * (ENTRIES + 1);

/// The coat of a plastic.
#[derive(Debug, Clone, PartialEq)]
pub struct Coat {
    /// See [`specular_weight`].
    pub specular_weight: f32,
    /// The transmittances of a rough coat; None for a smooth one.
    pub table: Option<Arc<TransmittanceTable>>,
}

impl Coat {
    /// As shaders read it; a smooth coat's table is zero.
    pub fn floats(&self) -> [f32; COAT_FLOATS] {
        let mut floats = [0.0; COAT_FLOATS];
        floats[0] = self.specular_weight;
        if let Some(table) = &self.table {
            for (to, from) in floats[1..].iter_mut().zip(table.rows.as_flattened()) {
                *to = *from as f32;
            }
        }
        floats
    }
}

impl Bsdfs {
    /// How many coats there are.
    pub fn coats(&self) -> usize {
        self.leaves.iter().filter(|leaf| is_plastic(leaf)).count()
    }

    /// Makes the coats for these values of all parameters, in the order of their leaves. Tables whose roughness and index
    /// are still the same are kept.
    pub fn rebuild_coats(&self, values: &[&[f32]], coats: &mut Vec<Coat>) {
        let mut old = std::mem::take(coats).into_iter();
        let plastics = self.leaves.iter().filter(|leaf| is_plastic(leaf));
        coats.extend(plastics.map(|leaf| self.coat(leaf, values, old.next().and_then(|coat| coat.table))));
    }

    /// The slots of the parameters that coats are computed from.
    pub fn coat_slots(&self) -> impl Iterator<Item = u32> {
        let plastics = self.leaves.iter().filter(|leaf| is_plastic(leaf));
        plastics.flat_map(|plastic| {
            let textures = plastic.first_texture..plastic.first_texture + plastic.textures;
            textures.flat_map(|texture| slots_of(&self.textures, texture))
        })
    }

    fn coat(&self, leaf: &LeafRecord, values: &[&[f32]], old: Option<Arc<TransmittanceTable>>) -> Coat {
        let [diffuse, specular] = [1, 2].each(|i| mean(&self.textures, leaf.first_texture + i, values) as f32);
        let record = |i: u32| &self.textures[(leaf.first_texture + i) as usize];
        let number = |i: u32| f64::from(values[record(i).slot as usize][0]);
        let distribution = match leaf.flags & leaf::BECKMANN {
            0 => Distribution::Ggx,
            _ => Distribution::Beckmann,
        };
        Coat {
            specular_weight: specular_weight(specular, diffuse),
            table: (leaf.kind == leaf::ROUGH_PLASTIC).then(|| {
                let (alpha, eta) = (number(3), number(0));
                old.filter(|table| table.is_of(alpha, eta))
                    .unwrap_or_else(|| TransmittanceTable::shared(distribution, alpha, eta))
            }),
        }
    }
}

fn is_plastic(leaf: &LeafRecord) -> bool {
    matches!(leaf.kind, leaf::PLASTIC | leaf::ROUGH_PLASTIC)
}

/// The mean over texels and channels; both kinds of squares of a checkerboard count the same, as do all vertices.
fn mean(textures: &[TextureRecord], texture: u32, values: &[&[f32]]) -> f64 {
    let record = &textures[texture as usize];
    let of = |slot: u32| {
        let all = values[slot as usize];
        let sum: f64 = all.iter().map(|x| f64::from(*x)).sum();
        sum / all.len() as f64
    };
    match record.kind {
        texture::SQUARES => {
            let [first, second] = [record.slot, record.other_slot].each(|square| mean(textures, square, values));
            (first + second) / 2.0
        }
        texture::CHECKERBOARD => (of(record.slot) + of(record.other_slot)) / 2.0,
        texture::VERTICES | texture::FACES => f64::from(record.to_uv[0][0]) * of(record.slot),
        _ => of(record.slot),
    }
}
