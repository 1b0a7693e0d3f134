//! Settings of light tracing among surfaces: paths from the lights that splat onto films.

use super::layout::SensorRecord;
use super::light::{SplatFilter, splat_filter};
use super::paths::PathScene;
use super::sensors::sphere_around_surfaces;
use crate::scene::Scene;

/// Settings of light tracing among surfaces.
#[derive(Debug, Clone)]
pub struct LightTracer {
    /// Longest path in edges; [`super::layout::NONE`] for no limit.
    pub max_depth: u32,
    /// Depth beyond which Russian roulette may end a path.
    pub rr_depth: u32,
    /// The reconstruction filters of the sensors' films.
    pub filters: Vec<SplatFilter>,
    /// For each sensor with a crop window, the sizes of the whole film and of the window, in pixels.
    pub cropped: Vec<Option<[[u32; 2]; 2]>>,
    /// Centre and radius of a sphere around all surfaces, at which distant lights are aimed.
    pub center: [f32; 3],
    pub radius: f32,
}

impl LightTracer {
    /// The settings of a scene with these surfaces.
    pub(super) fn new(scene: &Scene, paths: &PathScene) -> Self {
        let (center, radius) = sphere_around_surfaces(paths);
        Self {
            center: center.to_array(),
            radius,
            max_depth: paths.settings.max_depth,
            rr_depth: scene.integrator.rr_depth,
            filters: scene.sensors.iter().map(splat_filter).collect(),
            cropped: scene.sensors.iter().map(|sensor| sensor.cropped).collect(),
        }
    }

    /// The size of a sensor's whole film, crop window or not: one sample a pixel is one path for each pixel of this film.
    /// Rows are cut off so that 32 bits count its pixels.
    pub fn film(&self, sensor: u32, record: &SensorRecord) -> [u32; 2] {
        let [film, part] = self.cropped[sensor as usize].unwrap_or([[1; 2]; 2]);
        // The record's size may be a multiple of the file's.
        let whole = |pixels: u32, axis: usize| {
            let whole = u64::from(pixels) * u64::from(film[axis]) / u64::from(part[axis]);
            u32::try_from(whole).unwrap_or(u32::MAX)
        };
        let (across, down) = (whole(record.width, 0), whole(record.height, 1));
        [across, down.min(u32::MAX / across.max(1))]
    }
}
