//! `gradient_index`: a cube whose index of refraction varies. The integrator `ptracer` traces light through it.

use glam::{Affine3A, Vec3};

use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::volume::{self, Channels, Wanted};
use super::{Array, transform};
use crate::params::Kind;

/// Its type in scene files.
pub(super) const TYPE: &str = "gradient_index";

/// The shortest step, in half sides of the cube: a path through the cube then takes some hundred thousand steps.
const SHORTEST_STEP: f64 = 1e-5;

/// A cube [-1, 1]³ in a surrounding of index one.
#[derive(Debug, Clone)]
pub struct IndexCube {
    pub name: String,
    pub to_world: Affine3A,
    /// One channel: coefficients of a cubic B-spline over the cube, at the centres of texels.
    pub index: Array,
    /// Length of a step in the parameter t of a ray x(t) with |dx/dt| = n, in half sides of the cube: a step in space is n times
    /// as long.
    pub step: f32,
    /// Whether the faces refract light and reflect a part of it; otherwise light passes them straight on.
    pub refracts: bool,
}

impl IndexCube {
    /// From the grid's unit cube to the world.
    pub fn unit_to_world(&self) -> Affine3A {
        self.to_world * Affine3A::from_translation(Vec3::NEG_ONE) * Affine3A::from_scale(Vec3::splat(2.0))
    }
}

/// The cube called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<IndexCube> {
    let mut object = value.plugin(Class::Shape)?;
    let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
    let wanted = Wanted {
        quantity: Quantity::DenserIndex,
        channels: Channels::Exactly(1),
    };
    let volume = object
        .require("index", "a number or a volume")
        .and_then(|value| volume::read(&value, wanted));
    let given = object.get("step");
    let refracts = object.boolean("refraction", true);
    object.finish();
    let volume = volume?;
    let step = match given {
        Some(value) => value.number(super::reader::Limit::Within(SHORTEST_STEP, 1.0))? as f32,
        // Half a texel of the axis with the most texels, where the index is one.
        None => 1.0 / volume.shape.size.into_iter().max().unwrap_or(1).max(8) as f32,
    };
    Some(IndexCube {
        name: name.to_string(),
        to_world,
        index: Array {
            path: format!("{name}.index"),
            kind: Kind::Grid,
            shape: volume.shape,
            source: volume.source,
            tuning: None,
        },
        step,
        refracts,
    })
}
