//! Boxes while a hierarchy is built.

use super::four::Four;
use crate::each::EachEntry;

/// An axis-aligned box. In the box of a primitive the fourth lane of `low` is the primitive's number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) low: Four,
    pub(super) high: Four,
}

impl Bounds {
    pub(super) fn empty() -> Self {
        Self {
            low: Four::splat(f32::INFINITY),
            high: Four::splat(f32::NEG_INFINITY),
        }
    }

    /// The box around points.
    #[inline(always)]
    pub(super) fn around(points: &[[f32; 3]]) -> Self {
        let mut bounds = Self::empty();
        for &[x, y, z] in points {
            bounds.add(Four::new([x, y, z, 0.0]));
        }
        bounds
    }

    /// The same box, with a primitive's number in the fourth lane of `low`.
    #[inline(always)]
    pub(super) fn numbered(self, number: u32) -> Self {
        let [x, y, z, _] = self.low.array();
        Self {
            low: Four::new([x, y, z, f32::from_bits(number)]),
            ..self
        }
    }

    #[inline(always)]
    pub(super) fn number(&self) -> u32 {
        self.low.array()[3].to_bits()
    }

    #[inline(always)]
    pub(super) fn add(&mut self, point: Four) {
        self.low = self.low.min(point);
        self.high = self.high.max(point);
    }

    #[inline(always)]
    pub(super) fn join(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    /// The centre, as a sum of halves: the sum of the corners might overflow.
    #[inline(always)]
    pub(super) fn center(&self) -> Four {
        let half = Four::splat(0.5);
        self.low.mul(half).add(self.high.mul(half))
    }

    /// Lengths of the edges.
    pub(super) fn extent(&self) -> [f32; 3] {
        let [x, y, z, _] = self.high.sub(self.low).array();
        [x, y, z]
    }

    /// Half the surface area, in a unit of length whose inverse is `per_unit`.
    #[inline(always)]
    pub(super) fn area(&self, per_unit: Four) -> f32 {
        self.high.sub(self.low).mul(per_unit).pairs()
    }

    /// The lower and the upper corner.
    pub(super) fn corners(&self) -> [[f32; 3]; 2] {
        [self.low, self.high].each(|corner| {
            let [x, y, z, _] = corner.array();
            [x, y, z]
        })
    }
}
