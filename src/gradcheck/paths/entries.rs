//! Which entries of a scene's parameters are checked, and which paths depend on them.

use anyhow::Result;
use rand_core::Rng;
use rand_pcg::Pcg64;

use super::fields::Tell;
use super::objective::PathObjective;
use crate::gradcheck::field::entries::Place;
use crate::gradcheck::{Options, Setup, asked};
use crate::params::{Kind, Parameter, Shape};

/// An entry and why it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its flat index in the array.
    pub flat: usize,
    pub place: Place,
}

/// The entries of one parameter, and for each the paths that depend on it.
#[derive(Debug, Clone)]
pub struct Checked {
    pub parameter: usize,
    pub entries: Vec<Entry>,
    pub rays: Vec<Vec<u32>>,
}

/// x, y, z and channel of an entry.
pub fn coordinates(shape: Shape, flat: usize) -> [usize; 4] {
    let [nx, ny, _] = shape.size;
    let texel = flat / shape.channels;
    [texel % nx, texel / nx % ny, texel / (nx * ny), flat % shape.channels]
}

/// Calls `visit` with every pair of a path and an entry that it depends on.
fn look(objective: &PathObjective, mut visit: impl FnMut(u32, usize, usize)) {
    for (i, cast) in objective.casts.iter().enumerate() {
        let mut sink = Tell {
            scene: objective.scene(),
            background: objective.records().background,
            tell: |parameter, flat, _| visit(i as u32, parameter, flat),
        };
        objective.replay([0.0; 3], cast, &mut sink);
    }
}

/// Chooses entries of every checked parameter and finds the paths that depend on them.
///
/// # Errors
/// An index outside its parameter.
pub fn choose(setup: &Setup, objective: &PathObjective, options: &Options) -> Result<Vec<Checked>> {
    let mut met: Vec<Vec<bool>> = objective
        .fields
        .integrand
        .iter()
        .map(|v| vec![false; v.len()])
        .collect();
    look(objective, |_, parameter, flat| met[parameter][flat] = true);
    let mut all = Vec::new();
    for &parameter in &setup.checked {
        let described = &setup.params.parameters[parameter];
        let entries = if options.indices.is_empty() {
            draw(described, &met[parameter], options, parameter)
        } else {
            let asked = options.indices.iter().map(|&index| {
                let flat = asked(described, index)?;
                Ok(Entry {
                    flat,
                    place: Place::Asked,
                })
            });
            asked.collect::<Result<_>>()?
        };
        let rays = vec![Vec::new(); entries.len()];
        all.push(Checked {
            parameter,
            entries,
            rays,
        });
    }
    find_rays(objective, &mut all);
    Ok(all)
}

/// Records the paths that depend on each entry.
fn find_rays(objective: &PathObjective, all: &mut [Checked]) {
    let mut slots: Vec<Vec<u32>> = vec![Vec::new(); objective.fields.integrand.len()];
    let mut places = Vec::new();
    for (i, checked) in all.iter().enumerate() {
        slots[checked.parameter] = vec![u32::MAX; objective.fields.integrand[checked.parameter].len()];
        for (j, entry) in checked.entries.iter().enumerate() {
            let slot = &mut slots[checked.parameter][entry.flat];
            if *slot == u32::MAX {
                *slot = places.len() as u32;
                places.push((i, j));
            }
        }
    }
    let mut rays: Vec<Vec<u32>> = vec![Vec::new(); places.len()];
    look(objective, |ray, parameter, flat| {
        let slot = slots[parameter].get(flat).copied().unwrap_or(u32::MAX);
        if slot != u32::MAX && rays[slot as usize].last() != Some(&ray) {
            rays[slot as usize].push(ray);
        }
    });
    for checked in all {
        for (entry, found) in checked.entries.iter().zip(&mut checked.rays) {
            found.clone_from(&rays[slots[checked.parameter][entry.flat] as usize]);
        }
    }
}

/// Chooses about `options.entries` entries: mostly random ones that paths depend on, and the special cases that occur.
fn draw(parameter: &Parameter, met: &[bool], options: &Options, index: usize) -> Vec<Entry> {
    let (shape, count) = (parameter.shape, options.entries);
    if shape.len() <= count {
        return (0..shape.len())
            .map(|flat| Entry {
                flat,
                place: if met[flat] { Place::Drawn } else { Place::Unmet },
            })
            .collect();
    }
    let mut random = Pcg64::new(u128::from(options.seed), 0x776f_726c + index as u128);
    let mut chosen: Vec<Entry> = Vec::new();
    let special = count.div_ceil(8);
    for (place, wanted) in [
        (Place::Empty, special),
        (Place::Border, special),
        (Place::Unmet, special),
        (Place::Drawn, count),
        (Place::Empty, count),
    ] {
        let belongs = |flat: &usize| {
            let at = coordinates(shape, *flat);
            let axes = if parameter.kind == Kind::Grid { 3 } else { 2 };
            match place {
                Place::Empty => met[*flat] && parameter.values[*flat] == 0.0,
                Place::Border => met[*flat] && (0..axes).any(|a| at[a] == 0 || at[a] + 1 == shape.size[a]),
                Place::Unmet => !met[*flat],
                _ => met[*flat] && parameter.values[*flat] != 0.0,
            }
        };
        let candidates: Vec<usize> = (0..shape.len()).filter(belongs).collect();
        if candidates.is_empty() {
            continue;
        }
        // Duplicates are skipped, so that slightly fewer entries may result.
        for _ in 0..wanted.min(count.saturating_sub(chosen.len())) {
            let flat = candidates[random.next_u64() as usize % candidates.len()];
            if chosen.iter().all(|c| c.flat != flat) {
                chosen.push(Entry { flat, place });
            }
        }
    }
    chosen
}
