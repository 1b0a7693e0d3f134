//! Which texels the rays' lookups reach, and which rays reach a texel.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rayon::prelude::*;

use super::difference::{color_kinks, density_kinks};
use super::fields::{Plain, Role};
use super::objective::{CastRay, FieldObjective};
use crate::resident::layout::{SceneRecord, background};
use crate::transport::field::radiance_field::FieldView;
use crate::transport::lookup::background::env_stencil;
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::sh::Basis;
use crate::transport::rays::camera::{normalize, transform_vector};

/// Some ray's lookup reaches the texel with nonzero weight.
pub const MET: u8 = 1;
/// One of those lookups lies exactly on a kink.
pub const KINK: u8 = 2;

/// Flags of every texel.
#[derive(Debug)]
pub struct Coverage {
    sigma: Vec<AtomicU8>,
    sh: Vec<AtomicU8>,
    emitter: Vec<AtomicU8>,
}

impl Coverage {
    /// Walks all rays, and flags the texels that their lookups reach.
    pub fn new(objective: &FieldObjective) -> Self {
        let scene = &objective.scene;
        let flags = |n: usize| (0..n).map(|_| AtomicU8::new(0)).collect::<Vec<_>>();
        let fields = &objective.fields;
        let channels = scene.sh_size[3].max(1) as usize;
        let coverage = Self {
            sigma: flags(fields.sigma.len()),
            sh: flags(fields.sh.len() / channels),
            emitter: flags(fields.emitter.len() / 3),
        };
        objective.casts.par_iter().for_each(|cast| {
            let mark = |role: Role, texel: u32, flags: u8| {
                coverage.of(role)[texel as usize].fetch_or(flags, Relaxed);
            };
            look(objective, cast, mark);
        });
        coverage
    }

    fn of(&self, role: Role) -> &[AtomicU8] {
        match role {
            Role::Density => &self.sigma,
            Role::Color => &self.sh,
            Role::Emitter => &self.emitter,
        }
    }

    /// Number of texels.
    pub fn texels(&self, role: Role) -> usize {
        self.of(role).len()
    }

    /// The flags of a texel.
    pub fn flags(&self, role: Role, texel: u32) -> u8 {
        self.of(role)[texel as usize].load(Relaxed)
    }
}

/// For each of `texels`, the rays whose lookups reach it, in order.
pub fn seen_by(objective: &FieldObjective, role: Role, texels: &[u32]) -> Vec<Vec<u32>> {
    let count = texels.iter().max().map_or(0, |&t| t as usize + 1);
    let mut slots = vec![u32::MAX; count];
    for (slot, &texel) in texels.iter().enumerate() {
        slots[texel as usize] = slot as u32;
    }
    let hits: Vec<Vec<u32>> = objective
        .casts
        .par_iter()
        .map(|cast| {
            let hits = RefCell::new(Vec::new());
            look(objective, cast, |of, texel, _| {
                let slot = slots.get(texel as usize).copied().unwrap_or(u32::MAX);
                if of == role && slot != u32::MAX {
                    hits.borrow_mut().push(slot);
                }
            });
            let mut hits = hits.into_inner();
            hits.sort_unstable();
            hits.dedup();
            hits
        })
        .collect();
    let mut rays = vec![Vec::new(); texels.len()];
    for (ray, hits) in hits.iter().enumerate() {
        for &slot in hits {
            rays[slot as usize].push(ray as u32);
        }
    }
    rays
}

/// Calls `mark(role, texel, flags)` for every texel that a ray's lookups reach.
fn look(objective: &FieldObjective, cast: &CastRay, mark: impl Fn(Role, u32, u8)) {
    let view = Watched {
        base: objective.view(),
        mark: &mark,
    };
    objective.gather(&view, cast);
    if cast.backdrop.is_some() {
        return;
    }
    let scene = &objective.scene;
    match scene.background {
        background::NONE => {}
        background::CONSTANT => mark(Role::Emitter, 0, MET),
        _ => {
            let local = normalize(transform_vector(&scene.world_to_env, cast.ray.direction));
            let at = env_stencil(scene.env_size, local);
            for k in (0..4).filter(|&k| at.weights[k] != 0.0) {
                mark(Role::Emitter, at.texels[k], MET);
            }
        }
    }
}

/// A view of the parameters that reports every lookup.
struct Watched<'a, F> {
    base: Plain<'a, f64>,
    mark: &'a F,
}

impl<F: Fn(Role, u32, u8)> Watched<'_, F> {
    fn tell(&self, role: Role, at: &Stencil, on_kink: bool) {
        let flags = if on_kink { MET | KINK } else { MET };
        for k in (0..8).filter(|&k| at.weights()[k] != 0.0) {
            (self.mark)(role, at.texels()[k], flags);
        }
    }

    fn scene(&self) -> &SceneRecord {
        self.base.scene
    }
}

impl<F: Fn(Role, u32, u8)> FieldView<f64> for Watched<'_, F> {
    /// Two-sided walks also visit samples of negative raw density, which others pass over under a ReLU.
    const TWO_SIDED: bool = true;
    type Bases = Basis;
    fn sigma_sampled(&self, at: &Stencil) -> f64 {
        self.base.sigma(at)
    }
    fn sigma(&self, at: &Stencil) -> f64 {
        let raw = self.base.sigma(at);
        self.tell(
            Role::Density,
            at,
            density_kinks(self.scene()).iter().any(|(kink, _)| raw == *kink),
        );
        raw
    }
    fn bases(&self, basis: &Basis) -> Basis {
        *basis
    }
    fn color(&self, at: &Stencil, basis: &Basis) -> [f64; 3] {
        let raw = self.base.color(at, basis);
        let on_kink = color_kinks(self.scene()).iter().any(|(kink, _)| raw.contains(kink));
        self.tell(Role::Color, at, on_kink);
        raw
    }
    fn occupancy(&self, _: u32) -> u32 {
        u32::MAX
    }
    fn emitter(&self) -> &[f64] {
        self.base.emitter()
    }
}
