//! Tables that follow from the parameters' values, made anew when these change.

use super::coats::Coat;
use super::light_table::sampling_tables;
use crate::resident::layout::SceneRecord;
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
    /// The tables for these values of all parameters; `common` is what passes of every kind read.
    #[inline]
    pub fn new(common: &SceneRecord, paths: &PathScene, values: &[&[f32]]) -> Self {
        let mut tables = Self::default();
        tables.rebuild(common, paths, values);
        tables
    }

    /// Follows changed values.
    pub fn rebuild(&mut self, common: &SceneRecord, paths: &PathScene, values: &[&[f32]]) {
        self.lights = sampling_tables(common, paths, values);
        self.majorants = paths.rebuild_majorants(values);
        paths.bsdfs.rebuild_coats(values, &mut self.coats);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.majorants[..]) + size_of_val(&self.lights[..]) + size_of_val(&self.coats[..])
    }
}
