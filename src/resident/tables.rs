//! Tables that follow from the parameters' values, made anew when these change.

use super::coats::Coat;
use super::environment::environment_table;
use super::layout::{SceneRecord, background};
use super::paths::PathScene;

/// The tables of a scene of paths.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Upper bounds of every medium's scaled extinction, cell by cell.
    pub majorants: Vec<f32>,
    /// The environment map's sampling table; empty without one.
    pub environment: Vec<f32>,
    /// Coats of plastics.
    pub coats: Vec<Coat>,
}

impl Tables {
    /// The tables for these values of all parameters; `common` is what passes of every kind read.
    pub fn new(common: &SceneRecord, paths: &PathScene, values: &[&[f32]]) -> Self {
        let mut tables = Self::default();
        tables.rebuild(common, paths, values);
        tables
    }

    /// Follows changed values.
    pub fn rebuild(&mut self, common: &SceneRecord, paths: &PathScene, values: &[&[f32]]) {
        self.environment = match common.background {
            background::ENVMAP => environment_table(common.env_size, values[paths.background as usize]),
            _ => Vec::new(),
        };
        self.majorants = paths.rebuild_majorants(values);
        paths.bsdfs.rebuild_coats(values, &mut self.coats);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.majorants[..]) + size_of_val(&self.environment[..]) + size_of_val(&self.coats[..])
    }
}
