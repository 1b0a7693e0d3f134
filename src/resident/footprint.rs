//! The bytes that the records of a scene take.

use super::paths::PathScene;

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
