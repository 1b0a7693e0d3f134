//! Splats as devices read them: the indices of their parameters, and their map to a film.

use super::layout::SensorRecord;
use crate::params::{ParamSet, Shape};

/// A picture of splats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplatScene {
    pub slots: SplatSlots,
    /// The number of splats.
    pub count: usize,
}

/// Indices of the splats' parameters in the [`ParamSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplatSlots {
    pub position: usize,
    pub scale: usize,
    pub rotation: usize,
    pub color: usize,
    pub opacity: usize,
}

impl SplatSlots {
    /// All of them, in the order of the fields.
    pub fn all(&self) -> [usize; 5] {
        [self.position, self.scale, self.rotation, self.color, self.opacity]
    }
}

impl SplatScene {
    /// The splats whose parameters stand in these slots.
    pub fn new(slots: SplatSlots, params: &ParamSet) -> Self {
        let count = params.parameters[slots.position].shape.texels();
        Self { slots, count }
    }

    /// Follows a change of their number; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, shapes: &[Shape]) {
        self.count = shapes[self.slots.position].texels();
    }
}

/// The map of splats to a film: a place in the picture, times `side`, plus `offset`, is in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Placed {
    /// Pixels of the picture's longer side.
    pub side: f32,
    pub offset: [f32; 2],
}

impl Placed {
    /// A sensor's film shows the part of the picture to which [`SensorRecord::to_world`] maps the unit square, in units of
    /// the longer side of film and picture; the identity shows all of it. Both axes are scaled alike.
    pub fn of(sensor: &SensorRecord) -> Self {
        let [across, down, _] = sensor.to_world;
        let side = sensor.width.max(sensor.height) as f32 / across[0];
        Self {
            side,
            // Offsets of -0 where the picture fills its film: adding them changes no number, not even -0.
            offset: [-(across[3] * side), -(down[3] * side)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::sensor_record;
    use crate::scene::Sensor;
    use glam::{Affine3A, Vec3};

    /// A film that shows the whole picture changes no bit of a place; one that shows the quarter on the lower right puts
    /// the middle of the picture into its corner.
    #[test]
    fn films_show_parts_of_the_picture() {
        let mut sensor = Sensor {
            width: 30,
            height: 20,
            ..Sensor::default()
        };
        let whole = Placed::of(&sensor_record(&sensor));
        assert_eq!(
            (whole.side, whole.offset.map(f32::to_bits)),
            (30.0, [(-0f32).to_bits(); 2])
        );
        let scale = Affine3A::from_scale(Vec3::splat(0.5));
        sensor.to_world = Affine3A::from_translation(Vec3::new(0.5, 1.0 / 3.0, 0.0)) * scale;
        let part = Placed::of(&sensor_record(&sensor));
        assert_eq!((part.side, part.offset), (60.0, [-30.0, -20.0]));
    }

    #[test]
    fn the_number_of_splats_is_that_of_their_positions() {
        let slots = SplatSlots {
            position: 1,
            scale: 0,
            rotation: 2,
            color: 3,
            opacity: 4,
        };
        assert_eq!(slots.all(), [1, 0, 2, 3, 4]);
        let shape = |count| Shape {
            size: [count, 1, 1],
            channels: 2,
        };
        let mut scene = SplatScene { slots, count: 5 };
        scene.fit(&[7, 9, 7, 7, 7].map(shape));
        assert_eq!(scene.count, 9);
    }
}
