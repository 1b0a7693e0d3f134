//! The parameters of a scene: named f32 arrays, all that a run may change.

use glam::{Affine3A, Mat3A, Vec3A};
use serde::{Deserialize, Serialize};

/// Texels along x, y and z, and channels of a parameter. Channels vary fastest: `[z][y][x][channel]`.
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
    /// Values of a mesh's vertices or faces, or of views: a list along x.
    Attribute,
    /// A few numbers without a place (a colour).
    Value,
    /// A list along x whose length may change in a run, the same for all parameters of its object.
    Points,
}

impl Kind {
    /// Number of axes, from x on, along which coarse-to-fine stages refine it.
    pub fn refined_axes(self) -> usize {
        match self {
            Self::Grid => 3,
            Self::Texture | Self::Envmap => 2,
            Self::Attribute | Self::Value | Self::Points => 0,
        }
    }

    /// Whether the texels along x go round in a circle.
    pub fn wraps(self) -> bool {
        self == Self::Envmap
    }
}

/// What the numbers of a parameter measure; `scene` says which values each quantity may have.
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
    /// Weight of the second of two phase functions or BSDFs, opacity of a mask, or another share in [0, 1] of a principled
    /// BSDF.
    Weight,
    /// Share of light that a surface reflects.
    Reflectance,
    /// Index of refraction inside over that outside.
    Index,
    /// Index of a smooth refracting surface: the paths' directions depend on it, so that only `prb_attached` has its
    /// derivative.
    BendingIndex,
    /// Index of refraction that must be at least one.
    DenserIndex,
    /// Real or imaginary part of a conductor's index.
    ComplexIndex,
    /// Roughness of a microfacet distribution.
    Roughness,
    /// Reflectance at normal incidence over 0.08.
    Specular,
    /// Twice the share of diffuse light that leaves a sheet on the other side.
    DiffuseTransmission,
    /// Components of a normal, plus one over two.
    Normal,
    /// Heights of a bump map.
    Height,
    /// By how much vertices are moved along their normals.
    Displacement,
    /// Heights of a slab's side above its mean plane, in units of its own frame.
    Elevation,
    /// Radiance, irradiance or intensity of an emitter.
    Light,
    /// Radiance of an environment map that paths importance-sample in proportion to it.
    Environment,
    /// By how much a shape is moved, along the axes of the world.
    Translation,
    /// Rotation vector of a shape: along the axis, its length the angle in degrees.
    Orientation,
    /// Factors on a shape's extents along the axes of the world.
    Extent,
    /// Where the vertices of a mesh are in the world.
    Vertex,
    /// Where the normals of a mesh's vertices point in the world.
    VertexNormal,
    /// Poses of cameras relative to those of the file: rotation vectors in radians, then shifts.
    Pose,
    /// The logarithm of a factor on cameras' focal lengths.
    Zoom,
    /// Offset that is added to the first radial distortion coefficient of cameras.
    Radial,
    /// Where splats stand in the picture.
    Position,
    /// Logarithms of splats' standard deviations.
    Scale,
    /// Angles of splats' axes.
    Rotation,
    /// Colours of splats, in the colour space of the film.
    Color,
    /// Weights of splats at their centres.
    Opacity,
}

impl Quantity {
    /// Whether it belongs to cameras: pose, focal length or distortion.
    pub fn is_of_views(self) -> bool {
        matches!(self, Self::Pose | Self::Zoom | Self::Radial)
    }

    /// Whether it moves shapes, lights or cameras in a world.
    pub fn moves(self) -> bool {
        matches!(
            self,
            Self::Translation
                | Self::Orientation
                | Self::Extent
                | Self::Vertex
                | Self::VertexNormal
                | Self::Displacement
        )
    }
}

/// How an optimised parameter is changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Learning rate before the schedule's factor.
    pub learning_rate: f32,
    /// Values are projected onto this closed interval after each step; infinite where unbounded.
    pub bounds: [f32; 2],
    /// Width over which optimiser steps are smoothed, as a share of the longer side of a grid, texture or map; 0 for no
    /// smoothing.
    pub smoothing: f32,
}

/// One named array.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its path in the scene file, such as `object.interior.sigma_t`.
    pub path: String,
    pub kind: Kind,
    pub quantity: Quantity,
    pub shape: Shape,
    /// Maps the unit cube of a grid into the world; the identity for parameters without a place.
    pub to_world: Affine3A,
    pub values: Vec<f32>,
    /// Present if the run changes this parameter.
    pub tuning: Option<Tuning>,
}

impl Parameter {
    /// All but the values, which may be large.
    pub fn without_values(&self) -> Self {
        Self {
            path: self.path.clone(),
            values: Vec::new(),
            ..*self
        }
    }

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
    /// Index of the parameter with this name, as [`position`] finds it.
    pub fn find(&self, name: &str) -> Option<usize> {
        position(self.paths(), name)
    }

    /// Index of the parameter that a user calls `name`, as [`named`] finds it.
    pub fn named(&self, name: &str) -> Option<usize> {
        named(self.paths(), name)
    }

    /// The paths of all parameters.
    fn paths(&self) -> impl Iterator<Item = &str> + Clone {
        self.parameters.iter().map(|p| p.path.as_str())
    }

    /// Index of the parameter that a user asks for by `name`.
    ///
    /// # Errors
    /// There is none, or `name` fits several; the sentence lists those that there are, or that it fits.
    pub fn asked(&self, name: &str) -> Result<usize, String> {
        let list = |paths: Vec<&str>| paths.join("`, `");
        self.named(name).ok_or_else(|| match meanings(self.paths(), name) {
            none if none.is_empty() => {
                format!(
                    "there is no parameter `{name}`; there are `{}`",
                    list(self.paths().collect())
                )
            }
            several => fits_several(name, &several).join(": "),
        })
    }
}

/// What is wrong with a name that fits several parameters, and what to do.
pub fn fits_several(name: &str, fits: &[&str]) -> [String; 2] {
    [
        format!("`{name}` fits several parameters"),
        format!("name one of `{}`", fits.join("`, `")),
    ]
}

/// The index in `paths` of the parameter called `name`: its path, or, as in Mitsuba, its path followed by `.value` or
/// `.data`.
pub fn position<'a>(mut paths: impl Iterator<Item = &'a str> + Clone, name: &str) -> Option<usize> {
    let short = name.strip_suffix(".value").or_else(|| name.strip_suffix(".data"));
    paths
        .clone()
        .position(|path| path == name)
        .or_else(|| short.and_then(|short| paths.position(|path| path == short)))
}

/// Like [`position`], for a name that a user has written: it may also be Mitsuba's name, if this fits one path alone.
pub fn named<'a>(paths: impl Iterator<Item = &'a str> + Clone, name: &str) -> Option<usize> {
    position(paths.clone(), name).or_else(|| match meanings(paths.clone(), name)[..] {
        [only] => position(paths, only),
        _ => None,
    })
}

/// The paths that `name` fits as Mitsuba's name, each once: what several shapes share is listed once for each.
pub fn meanings<'a>(paths: impl Iterator<Item = &'a str> + Clone, name: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for path in paths.clone() {
        if is_mitsubas(name, path, paths.clone()) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Mitsuba's names of nested objects; at this step a path has the object's name in the file instead.
const ROLES: [&str; 6] = [
    "bsdf",
    "nested_bsdf",
    "nested_texture",
    "emitter",
    "phase_function",
    "medium",
];

/// The same, of the first and the second of two objects that are nested in one.
const PAIRS: [[&str; 2]; 3] = [["brdf_0", "brdf_1"], ["bsdf_0", "bsdf_1"], ["phase_0", "phase_1"]];

/// Other names of recent versions of Mitsuba, each with the name that a path has.
const WORDS: [(&str, &str); 4] = [
    ("interior_medium", "interior"),
    ("exterior_medium", "exterior"),
    ("positions", "vertex_positions"),
    ("normals", "vertex_normals"),
];

/// Whether Mitsuba calls the parameter at `path` by `name`; `paths` are those of all parameters, in the order of the file.
pub fn is_mitsubas<'a>(mut name: &str, path: &str, paths: impl Iterator<Item = &'a str> + Clone) -> bool {
    while let Some(short) = name.strip_suffix(".value").or_else(|| name.strip_suffix(".data")) {
        name = short;
    }
    let (words, steps) = (name.split('.'), path.split('.'));
    let alike = |(i, (word, step)): (usize, (&str, &str))| {
        word == step
            || i > 0
                && match word {
                    "emitter" => path.split('.').any(|step| step == "radiance"),
                    _ => {
                        ROLES.contains(&word)
                            || WORDS.contains(&(word, step))
                            || is_nested(word, i, path, paths.clone())
                    }
                }
    };
    words.clone().count() == steps.clone().count() && words.zip(steps).enumerate().all(alike)
}

/// Whether `word` is one of [`PAIRS`] that means step `i` of `path`: the object of that number among those with parameters which
/// are nested in the same one. If there is only one of these, it may be either.
fn is_nested<'a>(word: &str, i: usize, path: &str, paths: impl Iterator<Item = &'a str>) -> bool {
    let Some(number) = PAIRS.iter().find_map(|pair| pair.iter().position(|name| *name == word)) else {
        return false;
    };
    let steps: Vec<&str> = path.split('.').collect();
    let mut nested: Vec<&str> = Vec::new();
    for other in paths {
        let other: Vec<&str> = other.split('.').collect();
        // The weight of a blend may be a texture with parameters of its own.
        let beside = other.len() > i + 1 && other[..i] == steps[..i] && other[i] != "weight";
        if beside && !nested.contains(&other[i]) {
            nested.push(other[i]);
        }
    }
    match nested[..] {
        [only] => only == steps[i],
        _ => nested.get(number) == Some(&steps[i]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_count_texels_and_values() {
        let shape = |size, channels| Shape { size, channels };
        let counts = |shape: Shape| (shape.texels(), shape.len(), shape.is_empty());
        assert_eq!(counts(shape([2, 3, 5], 7)), (30, 210, false));
        assert_eq!(counts(shape([2, 0, 5], 7)), (0, 0, true));
        assert_eq!(counts(shape([2, 3, 5], 0)), (30, 0, true));
    }

    fn parameter(values: Vec<f32>, bounds: Option<[f32; 2]>) -> Parameter {
        Parameter {
            path: "a".into(),
            kind: Kind::Grid,
            quantity: Quantity::Extinction,
            shape: Shape {
                size: [values.len(), 1, 1],
                channels: 1,
            },
            to_world: Affine3A::IDENTITY,
            values,
            tuning: bounds.map(|bounds| Tuning {
                learning_rate: 1.0,
                bounds,
                smoothing: 0.0,
            }),
        }
    }

    #[test]
    fn values_are_moved_onto_their_bounds_and_counted() {
        let values = vec![-2.0, -1.0, 0.0, 3.0, 3.5, 9.0];
        let mut bounded = parameter(values.clone(), Some([-1.0, 3.0]));
        assert_eq!(bounded.project(), 3);
        assert_eq!(bounded.values, [-1.0, -1.0, 0.0, 3.0, 3.0, 3.0]);
        assert_eq!(bounded.project(), 0);
        let mut fixed = parameter(values.clone(), None);
        assert_eq!((fixed.project(), fixed.values), (0, values));
    }

    /// Where the unit cube comes to lie, if it stays upright and looks the same way.
    #[test]
    fn only_upright_grids_have_a_box() {
        let mut grid = parameter(vec![0.0], None);
        assert_eq!(grid.bounds(), Some([[0.0; 3], [1.0; 3]]));
        let scale = glam::Vec3::new(2.0, 3.0, 0.5);
        grid.to_world = Affine3A::from_translation(glam::Vec3::new(-1.0, 4.0, 7.0)) * Affine3A::from_scale(scale);
        assert_eq!(grid.bounds(), Some([[-1.0, 4.0, 7.0], [1.0, 7.0, 7.5]]));
        for scale in [[-2.0, 3.0, 0.5], [2.0, -3.0, 0.5], [2.0, 3.0, 0.0]] {
            grid.to_world = Affine3A::from_scale(scale.into());
            assert_eq!(grid.bounds(), None, "{scale:?}");
        }
        grid.to_world = Affine3A::from_rotation_y(0.1);
        assert_eq!(grid.bounds(), None);
    }

    #[test]
    fn parameters_are_found_by_their_paths() {
        let named = |path: &str| Parameter {
            path: path.into(),
            ..parameter(vec![0.0], None)
        };
        let params = ParamSet {
            parameters: vec![named("a"), named("b.c"), named("b")],
        };
        assert_eq!(
            ["a", "b", "b.c", "c"].map(|path| params.find(path)),
            [Some(0), Some(2), Some(1), None]
        );
    }

    #[test]
    fn parameters_are_found_by_mitsubas_names() {
        let paths = [
            "wall.paint.reflectance",
            "leaf.bsdf.front.reflectance",
            "leaf.bsdf.back.reflectance",
            "lamp.shine.radiance",
            "fog.interior.sigma_t",
            "fog.interior.phase.g",
            "ball.vertex_positions",
            "ball.vertex_normals",
            // Shared by several shapes.
            "mat.bsdf.alpha",
            "mat.bsdf.alpha",
            "mix.bsdf.weight.color0",
            "mix.bsdf.x.alpha",
            "mix.bsdf.y.eta",
            "haze.interior.phase.a.g",
            "haze.interior.phase.b.g",
        ];
        for (name, found) in [
            ("mat.brdf_0.alpha.value", Some(8)),
            ("wall.bsdf.reflectance.value", Some(0)),
            ("lamp.emitter.radiance.data", Some(3)),
            ("fog.interior_medium.sigma_t.value.value", Some(4)),
            ("fog.interior_medium.phase_function.g", Some(5)),
            ("ball.positions", Some(6)),
            ("ball.normals", Some(7)),
            ("ball.vertex_normals", Some(7)),
            // The first and the second of what is nested, or the only one.
            ("leaf.bsdf.brdf_0.reflectance.value", Some(1)),
            ("leaf.bsdf.brdf_1.reflectance.value", Some(2)),
            ("mix.bsdf.bsdf_0.alpha", Some(11)),
            ("mix.bsdf.bsdf_1.alpha", None),
            ("mix.bsdf.bsdf_1.eta", Some(12)),
            ("haze.interior_medium.phase_function.phase_1.g", Some(14)),
            // These names fit two parameters, or none.
            ("leaf.bsdf.bsdf.reflectance", None),
            ("wall.emitter.reflectance", None),
            ("bsdf.bsdf.reflectance", None),
            ("wall.bsdf.reflectance.more", None),
            ("positions", None),
        ] {
            assert_eq!(named(paths.iter().copied(), name), found, "{name}");
        }
        let fits = |name| meanings(paths.iter().copied(), name);
        let both = vec!["leaf.bsdf.front.reflectance", "leaf.bsdf.back.reflectance"];
        assert_eq!(fits("leaf.bsdf.bsdf.reflectance"), both);
        assert_eq!(fits("mat.brdf_0.alpha"), ["mat.bsdf.alpha"]);
        assert!(fits("positions").is_empty());
    }
}
