//! What the numbers of an array measure, and what they may therefore be.

use super::reader::Limit;
pub(super) use crate::params::Quantity;

impl Quantity {
    /// What its values may be where a scene states them.
    pub(super) fn limit(self) -> Limit {
        match self {
            Quantity::Density | Quantity::Coefficients => Limit::Any,
            Quantity::Extinction | Quantity::Emission | Quantity::Light | Quantity::Environment => Limit::NonNegative,
            Quantity::Albedo | Quantity::Weight | Quantity::Reflectance => Limit::Within(0.0, 1.0),
            Quantity::Asymmetry => Limit::Between(-1.0, 1.0),
        }
    }

    /// Between which a run keeps its values unless told otherwise.
    pub(super) fn default_bounds(self) -> [f32; 2] {
        match self {
            Quantity::Density | Quantity::Coefficients => [f32::NEG_INFINITY, f32::INFINITY],
            Quantity::Extinction | Quantity::Emission | Quantity::Light | Quantity::Environment => [0.0, f32::INFINITY],
            Quantity::Albedo | Quantity::Weight | Quantity::Reflectance => [0.0, 1.0],
            Quantity::Asymmetry => [-0.99, 0.99],
        }
    }

    /// What a walk relies on: bounds that leave this, though a run keeps its values within them, are mistakes.
    pub(super) fn needs(self) -> Limit {
        match self {
            Quantity::Emission | Quantity::Light => Limit::Any,
            other => other.limit(),
        }
    }
}
