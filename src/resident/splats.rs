//! Splats as devices read them: where their parameters stand.

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

#[cfg(test)]
mod tests {
    use super::*;

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
