//! The physical quantity of an array, and the values that it permits.

use super::reader::Limit;
pub(super) use crate::params::Quantity;

/// Smallest and largest index of refraction that a scene may have.
const MIN_INDEX: f64 = 0.1;
const MAX_INDEX: f64 = 10.0;

/// The largest radiance, irradiance or intensity: the sum of 2²⁰ samples, the most of a pixel, is a hundredth of the largest f32, which
/// leaves room for what lies between a lamp and the film.
pub const MAX_LIGHT: f32 = 1e30;

/// The reason why a radiance, an irradiance or an intensity beyond [`MAX_LIGHT`] is refused.
pub(super) fn too_bright() -> String {
    format!("it must be at most {MAX_LIGHT:e}, so that sums of samples stay finite")
}

impl Quantity {
    /// Values permitted in a scene file.
    pub(super) fn limit(self) -> Limit {
        match self {
            Quantity::Density | Quantity::Coefficients | Quantity::Normal => Limit::Any,
            Quantity::Height | Quantity::Elevation | Quantity::Displacement => Limit::Any,
            Quantity::Position | Quantity::Scale | Quantity::Rotation | Quantity::Color => Limit::Any,
            Quantity::Translation | Quantity::Orientation | Quantity::Vertex | Quantity::VertexNormal => Limit::Any,
            Quantity::Pose | Quantity::Zoom | Quantity::Radial => Limit::Any,
            Quantity::Extinction => Limit::NonNegative,
            Quantity::Emission | Quantity::Light | Quantity::Environment => Limit::Light,
            Quantity::Albedo | Quantity::Weight | Quantity::Reflectance | Quantity::Opacity => Limit::Within(0.0, 1.0),
            Quantity::Specular => Limit::Within(0.0, 1.0),
            Quantity::DiffuseTransmission => Limit::Within(0.0, 2.0),
            Quantity::Index | Quantity::BendingIndex => Limit::Within(MIN_INDEX, MAX_INDEX),
            Quantity::DenserIndex => Limit::Within(1.0, MAX_INDEX),
            Quantity::ComplexIndex => Limit::NonNegative,
            Quantity::Roughness | Quantity::Extent => Limit::Positive,
            Quantity::Asymmetry => Limit::Between(-1.0, 1.0),
        }
    }

    /// Default bounds during a run.
    pub(super) fn default_bounds(self) -> [f32; 2] {
        match self {
            Quantity::Density | Quantity::Coefficients => [f32::NEG_INFINITY, f32::INFINITY],
            Quantity::Height | Quantity::Elevation | Quantity::Displacement => [f32::NEG_INFINITY, f32::INFINITY],
            Quantity::Position | Quantity::Rotation | Quantity::Color => [f32::NEG_INFINITY, f32::INFINITY],
            Quantity::Translation | Quantity::Orientation | Quantity::Vertex | Quantity::VertexNormal => {
                [f32::NEG_INFINITY, f32::INFINITY]
            }
            // Rotation vectors longer than π have a shorter equivalent.
            Quantity::Pose => [-3.0, 3.0],
            // Logarithms: from half to twice the focal length.
            Quantity::Zoom => [-0.7, 0.7],
            Quantity::Radial => [-1.0, 1.0],
            Quantity::Extent => [1e-3, f32::INFINITY],
            // Logarithms: from an eighth of a pixel, in a picture 1024 pixels wide, to the whole picture.
            Quantity::Scale => [-9.0, 0.0],
            Quantity::Extinction | Quantity::Emission | Quantity::Light | Quantity::Environment => [0.0, f32::INFINITY],
            Quantity::Albedo | Quantity::Weight | Quantity::Reflectance | Quantity::Opacity | Quantity::Normal => {
                [0.0, 1.0]
            }
            // The derivative of the index by `specular` is infinite at zero.
            Quantity::Specular => [1e-3, 1.0],
            Quantity::DiffuseTransmission => [0.0, 2.0],
            Quantity::Index | Quantity::BendingIndex => [MIN_INDEX as f32, MAX_INDEX as f32],
            Quantity::DenserIndex => [1.0, MAX_INDEX as f32],
            Quantity::ComplexIndex => [0.0, f32::INFINITY],
            Quantity::Roughness => [1e-3, 1.0],
            Quantity::Asymmetry => [-0.99, 0.99],
        }
    }

    /// Values that light transport can handle. Wider `bounds` are refused, since a run may move a value up to its bounds.
    pub(super) fn needs(self) -> Limit {
        match self {
            Quantity::Emission | Quantity::Light => Limit::Any,
            Quantity::Environment => Limit::NonNegative,
            other => other.limit(),
        }
    }

    /// Why a run cannot have this value, in the words for one of a scene file; None if it can.
    pub fn refuses(self, value: f32) -> Option<String> {
        let is_light = matches!(self, Quantity::Emission | Quantity::Light | Quantity::Environment);
        match value.is_finite() {
            true if is_light && value.abs() > MAX_LIGHT => Some(too_bright()),
            true => self.needs().violated_by(f64::from(value)),
            false => Some("it must be finite".into()),
        }
    }
}
