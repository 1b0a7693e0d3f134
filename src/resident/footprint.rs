//! The bytes that a scene takes beside its parameters.

use super::paths::PathScene;
use super::{Resident, Transport};
use crate::params::ParamSet;
use crate::transport::scene::tables::Tables;

impl PathScene {
    /// Bytes of all records.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.surfaces[..])
            + size_of_val(&self.singles[..])
            + size_of_val(&self.media[..])
            + size_of_val(&self.volumes[..])
            + size_of_val(&self.phases[..])
            + size_of_val(&self.lights[..])
            + size_of_val(&self.corners[..])
            + size_of_val(&self.emissive_triangles[..])
            + size_of_val(&self.interiors[..])
            + self.bsdfs.bytes()
            + self.bvh.bytes()
            + self.distances.bytes()
            + self.rest.bytes()
    }
}

impl Resident {
    /// Bytes of the records of paths and of the tables that follow from these parameters' values; other kinds of transport have
    /// records of a few bytes.
    pub fn bytes(&self, params: &ParamSet) -> u64 {
        let Transport::Paths(paths) = &self.transport else {
            return 0;
        };
        let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
        (paths.bytes() + Tables::new(&self.scene, paths, &values).bytes()) as u64
    }
}
