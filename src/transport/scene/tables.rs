//! Tables that follow from the parameters' values, made anew when these change.

use super::coats::Coat;
use super::light_table::{sampling_tables, slots_of_tables};
use crate::resident::layout::{MediumRecord, SceneRecord};
use crate::resident::paths::PathScene;

/// The tables of a scene of paths.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Upper bounds of every medium's scaled extinction, cell by cell.
    pub majorants: Vec<f32>,
    /// The sampling tables of the environment map and of textured area lights.
    pub lights: Vec<f32>,
    /// Coats of plastics.
    pub coats: Vec<Coat>,
}

impl Tables {
    /// The tables for these values of all parameters; `common` is the record that all kinds of transport share.
    #[inline]
    pub fn new(common: &SceneRecord, paths: &PathScene, values: &[&[f32]]) -> Self {
        let mut tables = Self::default();
        tables.rebuild(common, paths, values, |_| true);
        tables
    }

    /// Recomputes the tables that depend on a parameter for whose slot `has_changed` is true.
    pub fn rebuild(
        &mut self,
        common: &SceneRecord,
        paths: &PathScene,
        values: &[&[f32]],
        has_changed: impl Fn(u32) -> bool,
    ) {
        if slots_of_tables(common, paths).into_iter().any(&has_changed) {
            // The former tables, which may be large, go first.
            self.lights = Vec::new();
            self.lights = sampling_tables(common, paths, values);
        }
        let sigma_t = |medium: &MediumRecord| paths.volumes[medium.sigma_t as usize].slot;
        if paths.media.iter().map(sigma_t).any(&has_changed) {
            self.majorants = paths.rebuild_majorants(values);
        }
        if paths.bsdfs.coat_slots().any(&has_changed) {
            paths.bsdfs.rebuild_coats(values, &mut self.coats);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.majorants[..]) + size_of_val(&self.lights[..]) + size_of_val(&self.coats[..])
    }
}
