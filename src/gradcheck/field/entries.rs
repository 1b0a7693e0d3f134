//! Which entries of a parameter to check: random ones that rays reach, and special cases.

use rand_core::Rng;
use rand_pcg::Pcg64;

use super::coverage::{Coverage, KINK, MET};
use super::difference::Entry;
use super::fields::Role;
use super::objective::FieldObjective;
use crate::each::EachEntry;
use crate::params::{Kind, Shape};
use crate::resident::layout::density;
use crate::transport::lookup::grid::{grid_eval, grid_stencil};

/// Why an entry was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// By the user.
    Asked,
    /// Drawn at random among texels that rays reach in a nonempty part of the medium.
    Drawn,
    /// At the edge of the grid.
    Border,
    /// In an empty part of the medium.
    Empty,
    /// Where a sample lies exactly on the kink of an activation.
    Kink,
    /// No ray reaches it: its gradient must be exactly zero.
    Unmet,
}

impl Place {
    /// One word for a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Drawn => "drawn",
            Self::Border => "border",
            Self::Empty => "empty",
            Self::Kink => "kink",
            Self::Unmet => "unmet",
        }
    }
}

/// An entry and why it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    pub entry: Entry,
    pub place: Place,
}

/// x, y, z and channel of an entry.
pub fn coordinates(shape: Shape, entry: Entry) -> [usize; 4] {
    let (texel, [nx, ny, _]) = (entry.texel as usize, shape.size);
    [texel % nx, texel / nx % ny, texel / (nx * ny), entry.channel as usize]
}

/// Chooses about `count` entries: random ones that rays reach, and an eighth of `count` of each special case that
/// occurs.
pub fn choose(
    objective: &FieldObjective,
    coverage: &Coverage,
    (role, shape, kind): (Role, Shape, Kind),
    count: usize,
    seed: u64,
) -> Vec<Chosen> {
    let texels = coverage.texels(role) as u32;
    if shape.len() <= count {
        let all = (0..texels).flat_map(|texel| (0..shape.channels as u32).map(move |channel| (texel, channel)));
        return all
            .map(|(texel, channel)| {
                let met = coverage.flags(role, texel) & MET != 0;
                let place = if met { Place::Drawn } else { Place::Unmet };
                Chosen {
                    entry: Entry { role, texel, channel },
                    place,
                }
            })
            .collect();
    }
    let mut random = Pcg64::new(u128::from(seed), 0x6772_6164 + role as u128);
    let mut chosen: Vec<Chosen> = Vec::new();
    let special = count.div_ceil(8);
    for (place, wanted) in [
        (Place::Kink, special),
        (Place::Empty, special),
        (Place::Border, special),
        (Place::Unmet, special),
        (Place::Drawn, count),
        // If the whole medium is empty, fill up with entries of empty cells.
        (Place::Empty, count),
    ] {
        let candidates: Vec<u32> = (0..texels)
            .filter(|&texel| belongs(objective, coverage, (role, shape, kind), texel, place))
            .collect();
        if candidates.is_empty() {
            continue;
        }
        // Duplicates are skipped, so that slightly fewer entries may result.
        for _ in 0..wanted.min(count.saturating_sub(chosen.len())) {
            let texel = candidates[random.next_u64() as usize % candidates.len()];
            let channel = (random.next_u64() % shape.channels as u64) as u32;
            let entry = Entry { role, texel, channel };
            if chosen.iter().all(|c| c.entry != entry) {
                chosen.push(Chosen { entry, place });
            }
        }
    }
    chosen
}

/// Whether a texel fits `place`.
fn belongs(
    objective: &FieldObjective,
    coverage: &Coverage,
    (role, shape, kind): (Role, Shape, Kind),
    texel: u32,
    place: Place,
) -> bool {
    let flags = coverage.flags(role, texel);
    let met = flags & MET != 0;
    let at = coordinates(
        shape,
        Entry {
            role,
            texel,
            channel: 0,
        },
    );
    match place {
        Place::Asked => false,
        Place::Drawn => met && !(kind == Kind::Grid && is_empty(objective, shape, at)),
        Place::Unmet => !met,
        Place::Kink => flags & KINK != 0,
        Place::Border => {
            let axes = if kind == Kind::Grid { 3 } else { 2 };
            met && (0..axes).any(|a| at[a] == 0 || at[a] + 1 == shape.size[a])
        }
        Place::Empty => kind == Kind::Grid && met && is_empty(objective, shape, at),
    }
}

/// Whether the extinction is zero at the centre of a texel.
fn is_empty(objective: &FieldObjective, shape: Shape, at: [usize; 4]) -> bool {
    let scene = &objective.scene;
    let p = [0, 1, 2].each(|a| (at[a] as f32 + 0.5) / shape.size[a] as f32);
    scene.density_activation == density::RELU
        && grid_eval(&objective.fields.sigma, &grid_stencil(scene.sigma_size, p)) <= 0.0
}
