//! The optics of light tracing, a slab or a cube, as records in their own frames.

use glam::{Affine3A, Vec2, Vec3A};

use super::light::{ScreenRecord, normal};
use super::rows;
use crate::each::EachEntry;
use crate::params::Parameter;
use crate::scene::{Bsdf, IndexCube, Optic, Slab, Surface};

/// The parameter t of a ray x(t) with |dx/dt| = n at which a path in a cube is given up; a straight one has left by 2√3.
const LONGEST: f32 = 32.0;

/// The optic as the light of one lamp meets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OpticRecord {
    Slab(SlabRecord),
    Cube(CubeRecord),
}

/// The slab in its own frame, in which its flat side is the plane z = -thickness and light travels upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlabRecord {
    pub thickness: f32,
    /// Index of refraction inside over that outside.
    pub eta: f32,
    /// Where the ray from the light's (u, v) = (0, 0) meets the plane of the flat side, as x and y, and the derivatives of
    /// that place by u and v.
    pub entry: [[f32; 2]; 3],
    /// Unit direction of light before the slab, and in it.
    pub outside: [f32; 3],
    pub inside: [f32; 3],
    /// Share of light that gets through the flat side.
    pub entering: f32,
}

/// The cube [-1, 1]³ in its own frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubeRecord {
    /// The light's place at (u, v) = (0, 0), and its derivatives by u and v.
    pub lamp: [[f32; 3]; 3],
    /// Unit direction of light before the cube.
    pub direction: [f32; 3],
    /// Whether the faces bend and reflect light.
    pub refracts: bool,
    /// Length of a step in the parameter t.
    pub step: f32,
    /// Steps after which a path is given up, as one that circles in the cube.
    pub most_steps: u32,
}

impl OpticRecord {
    /// Direction of light behind the optic if the slab's upper side, or the cube, bends nothing.
    fn onward(&self) -> [f32; 3] {
        match self {
            Self::Slab(slab) => slab.inside,
            Self::Cube(cube) => cube.direction,
        }
    }
}

/// Corners of an optic in its own frame.
pub(super) fn corners(optic: &Optic) -> impl Iterator<Item = Vec3A> {
    let [low, high] = match optic {
        Optic::Slab(slab) => [-slab.thickness, 0.0],
        Optic::Cube(_) => [-1.0, 1.0],
    };
    (0..8).map(move |i| {
        Vec3A::new(
            ((i & 1) * 2 - 1) as f32,
            ((i & 2) - 1) as f32,
            if i < 4 { high } else { low },
        )
    })
}

/// The optic's record for one light, and the factor of its `transmittance` on light through both sides, for each colour.
pub(super) fn describe(optic: &Optic, light: &Surface) -> Result<(OpticRecord, [f32; 3]), String> {
    Ok(match optic {
        Optic::Slab(slab) => {
            let passed = slab.transmittance;
            (OpticRecord::Slab(describe_slab(slab, light)?), passed.each(|t| t * t))
        }
        Optic::Cube(cube) => (OpticRecord::Cube(describe_cube(cube, light)?), [1.0; 3]),
    })
}

/// A rectangle's corner and its two sides, in an optic's frame, and its unit normal there.
fn sides(light: &Surface, to_world: &Affine3A) -> ([Vec3A; 3], Vec3A) {
    let to_local = to_world.inverse();
    let [u, v] = [light.to_world.matrix3.x_axis, light.to_world.matrix3.y_axis].each(|axis| 2.0 * axis);
    let corner = to_local.transform_point3a(light.to_world.translation - 0.5 * (u + v));
    let [u, v] = [u, v].each(|axis| to_local.transform_vector3a(axis));
    ([corner, u, v], to_local.transform_vector3a(normal(light)).normalize())
}

/// The cube's record for one light.
fn describe_cube(cube: &IndexCube, light: &Surface) -> Result<CubeRecord, String> {
    let ([corner, u, v], direction) = sides(light, &cube.to_world);
    // The cube reaches from -reach to reach along the direction.
    let reach = direction.abs().element_sum();
    let farthest = [Vec3A::ZERO, u, v, u + v].each(|edge| (corner + edge).dot(direction));
    if farthest.iter().any(|at| *at > -reach) {
        return Err(format!(
            "light of `{}` begins inside `{}` or behind it: move it away, and turn it to the cube",
            light.name, cube.name
        ));
    }
    Ok(CubeRecord {
        lamp: [corner, u, v].each(|p| p.to_array()),
        direction: direction.to_array(),
        refracts: cube.refracts,
        step: cube.step,
        most_steps: (LONGEST / cube.step).ceil() as u32,
    })
}

/// Fresnel transmittance of a smooth side for unpolarised light, from the cosines on both sides; `eta` is the index of the
/// transmitted side over that of the incident side.
fn passed(eta: f32, cos_i: f32, cos_t: f32) -> f32 {
    let s = (cos_i - eta * cos_t) / (cos_i + eta * cos_t);
    let p = (eta * cos_i - cos_t) / (eta * cos_i + cos_t);
    1.0 - 0.5 * (s * s + p * p)
}

/// The slab's record for one light.
fn describe_slab(slab: &Slab, light: &Surface) -> Result<SlabRecord, String> {
    let ([corner, u, v], direction) = sides(light, &slab.to_world);
    let highest = [Vec3A::ZERO, u, v, u + v].each(|edge| (corner + edge).z);
    if direction.z <= 0.0 || highest.iter().any(|z| *z > -slab.thickness) {
        return Err(format!(
            "light of `{}` does not reach the flat side of `{}`, z = -thickness in its own frame, from outside: turn one of them",
            light.name, slab.name
        ));
    }
    // Along the direction onto the plane of the flat side.
    let project = |p: Vec3A, z: f32| {
        Vec2::new(
            p.x - direction.x / direction.z * (p.z - z),
            p.y - direction.y / direction.z * (p.z - z),
        )
    };
    let entry = [project(corner, -slab.thickness), project(u, 0.0), project(v, 0.0)];
    let across = Vec2::new(direction.x, direction.y) / slab.eta;
    let inside = across.extend((1.0 - across.length_squared()).sqrt());
    Ok(SlabRecord {
        thickness: slab.thickness,
        eta: slab.eta,
        entry: entry.each(|p| p.to_array()),
        outside: direction.to_array(),
        inside: inside.to_array(),
        entering: passed(slab.eta, direction.z, inside.z),
    })
}

/// The screen in the optic's frame, and its lit side.
pub(super) fn place_screen(optic: &Optic, screen: &Surface, record: &OpticRecord) -> Result<ScreenRecord, String> {
    let to_screen = screen.to_world.inverse() * *optic.to_world();
    let arriving = to_screen.transform_vector3a(Vec3A::from_array(record.onward())).z;
    let above = to_screen.transform_point3a(Vec3A::ZERO).z;
    if arriving * above >= 0.0 {
        return Err(format!(
            "light from `{}` does not reach the screen `{}`: put that behind the side where light leaves",
            optic.name(),
            screen.name
        ));
    }
    let exposed = above.signum();
    let front = match screen.bsdf {
        Bsdf::TwoSided { .. } => 0.0,
        _ if screen.flip_normals => -1.0,
        _ => 1.0,
    };
    if front * exposed < 0.0 {
        return Err(format!(
            "the screen `{}` turns its back to `{}`: turn it, or make its BSDF `twosided`",
            screen.name,
            optic.name()
        ));
    }
    Ok(ScreenRecord {
        to_screen: rows(&to_screen),
        front: exposed,
    })
}

/// The first height that is not finite, or at or below the slab's flat side, in words; None if all are possible.
pub(super) fn crossing(slab: &Slab, parameter: &Parameter) -> Option<String> {
    let crosses = |v: &f32| !v.is_finite() || *v <= -slab.thickness;
    let at = parameter.values.iter().position(crosses)?;
    let width = parameter.shape.size[0];
    Some(format!(
        "texel x={} y={} of `{}` is {}, beyond the slab's other side at {}: raise it, or give a larger `thickness`",
        at % width,
        at / width,
        parameter.path,
        parameter.values[at],
        -slab.thickness
    ))
}
