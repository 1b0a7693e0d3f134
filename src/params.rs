//! The parameters of a scene: named f32 arrays, all that a run may change.

use glam::{Affine3A, Mat3A, Vec3A};
use serde::{Deserialize, Serialize};

/// Texels along x, y, z and channels of a parameter. The last is contiguous: `[z][y][x][channel]`.
///
/// A colour is 1×1×1×3, an environment map width×height×1×3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub size: [usize; 3],
    pub channels: usize,
}

impl Shape {
    /// Number of texels.
    pub fn texels(&self) -> usize {
        self.size[0] * self.size[1] * self.size[2]
    }

    /// Number of f32 values.
    pub fn len(&self) -> usize {
        self.texels() * self.channels
    }

    /// Whether the parameter holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What kind of thing a parameter is: decides its file formats and how it is resampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A volume in the unit cube, cell-centred, clamped.
    Grid,
    /// An image over a surface, cell-centred, its first row at v = 0.
    Texture,
    /// An environment map: columns wrap, rows 0 and height-1 are the poles.
    Envmap,
    /// A few numbers without a place (a colour).
    Value,
    /// A list along x whose length may change in a run, the same for all parameters of its object.
    Points,
}

/// What the numbers of a parameter measure; what they may therefore be is told by `scene`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Raw density of a radiance field, before its activation.
    Density,
    /// Spherical harmonics of a radiance field.
    Coefficients,
    /// Extinction of a scattering medium.
    Extinction,
    Albedo,
    /// Radiance that a medium emits.
    Emission,
    /// Mean cosine of a phase function.
    Asymmetry,
    /// Of the second of two phase functions.
    Weight,
    /// Share of light that a surface reflects.
    Reflectance,
    /// Radiance, irradiance or intensity of an emitter.
    Light,
    /// Radiance of an environment map that paths are drawn towards, in proportion to it.
    Environment,
    /// Where splats stand in the picture.
    Position,
    /// Logarithms of splats' standard deviations.
    Scale,
    /// Angles of splats' axes.
    Rotation,
    /// Of splats, in the colour space of the film.
    Color,
    /// Weights of splats at their centres.
    Opacity,
}

impl Quantity {
    /// Whether walks send derivatives by it.
    pub fn is_differentiable(self) -> bool {
        self != Self::Reflectance
    }
}

/// How an optimised parameter is changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Learning rate before the schedule's factor.
    pub learning_rate: f32,
    /// Values are projected onto this closed interval after each step; infinite where unbounded.
    pub bounds: [f32; 2],
}

/// One named array.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its path in the scene file, such as `object.interior.sigma_t`.
    pub path: String,
    pub kind: Kind,
    pub quantity: Quantity,
    pub shape: Shape,
    /// The unit cube of a grid into the world; the identity for what has no place.
    pub to_world: Affine3A,
    pub values: Vec<f32>,
    /// Present if the run changes this parameter.
    pub tuning: Option<Tuning>,
}

impl Parameter {
    /// Corners of the world-space box that a grid fills; None where it is turned or mirrored, so that no box says where
    /// it lies.
    pub fn bounds(&self) -> Option<[[f32; 3]; 2]> {
        let m = self.to_world.matrix3;
        let scale = Vec3A::new(m.x_axis.x, m.y_axis.y, m.z_axis.z);
        let is_upright = m == Mat3A::from_diagonal(scale.into()) && scale.cmpgt(Vec3A::ZERO).all();
        let low = self.to_world.translation;
        is_upright.then(|| [low.to_array(), (low + scale).to_array()])
    }

    /// Moves the values of a tuned parameter onto its bounds, and returns how many were outside of them.
    pub fn project(&mut self) -> usize {
        let Some(Tuning {
            bounds: [low, high], ..
        }) = self.tuning
        else {
            return 0;
        };
        let mut outside = 0;
        for value in &mut self.values {
            let projected = value.clamp(low, high);
            outside += usize::from(projected != *value);
            *value = projected;
        }
        outside
    }
}

/// All parameters of a scene, in the order of the scene file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParamSet {
    pub parameters: Vec<Parameter>,
}

impl ParamSet {
    /// Index of the parameter at `path`.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.parameters.iter().position(|p| p.path == path)
    }
}
