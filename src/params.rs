//! The parameters of a scene: named f32 arrays, all that a run may change.

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
    /// An environment map: columns wrap, rows 0 and height-1 are the poles.
    Envmap,
    /// A few numbers without a place (a colour).
    Value,
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
    pub shape: Shape,
    pub values: Vec<f32>,
    /// Present if the run changes this parameter.
    pub tuning: Option<Tuning>,
}

impl Parameter {
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
