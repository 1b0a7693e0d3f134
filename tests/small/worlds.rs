//! Small worlds of media, surfaces and lights, with random values.

use std::path::Path;

use glam::Affine3A;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Options, Setup};
use prbopt::params::{Kind, Quantity, Shape};
use prbopt::resident::layout::gradient;
use prbopt::scene::{self, Array, Background, Source};

use super::draw;

/// A small world: 4 × 4 pixels that look at the cube [-1, 1]³.
#[derive(Debug, Clone, Default)]
pub struct SmallWorld {
    pub name: &'static str,
    /// Further parameters of the integrator, of the sensor, and the objects, as JSON.
    pub integrator: &'static str,
    pub sensor: &'static str,
    pub objects: String,
    /// The block `optimize`, after a comma, as JSON.
    pub optimize: String,
    /// Puts an environment map of 5 × 4 texels behind it all.
    pub envmap: bool,
    /// Entries of the parameters whose paths end like this are set to zero: every `n`-th, from `first` on.
    pub zeros: Vec<(&'static str, usize, usize)>,
    /// Values of the parameters whose paths end like this, repeated.
    pub set: Vec<(&'static str, Vec<f32>)>,
}

/// A grid over the cube [-1, 1]³ of `channels` channels.
pub fn grid(size: [usize; 3], channels: usize, more: &str) -> String {
    let value = vec!["0.5"; channels].join(", ");
    format!(
        r#"{{"type": "gridvolume", "resolution": {size:?}, "value": [{value}],
             "to_world": [{{"translate": [-0.5, -0.5, -0.5]}}, {{"scale": 2}}] {more}}}"#
    )
}

/// A cube with a medium, whose parameters are JSON.
pub fn cube(medium: &str) -> String {
    format!(
        r#""box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "heterogeneous", {medium}}}}}"#
    )
}

/// A mesh of `tests/data/meshes` as a shape's type and file.
pub fn mesh(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/meshes/{name}.obj"));
    format!(r#""type": "obj", "filename": {:?}"#, path.to_string_lossy())
}

/// A mesh of `tests/data/meshes` whose vertices and faces have values, as a shape's type and file.
pub fn sheet() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/meshes/sheet.ply");
    format!(r#""type": "ply", "filename": {:?}"#, path.to_string_lossy())
}

/// A grid of distances of `tests/data/peer/scenes` as a shape's type and file.
pub fn distances(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/peer/scenes/{name}.vol"));
    format!(r#""type": "sdfgrid", "filename": {:?}"#, path.to_string_lossy())
}

/// A texture of the values of a mesh.
pub fn attribute(name: &str, scale: f32) -> String {
    format!(r#"{{"type": "mesh_attribute", "name": "{name}", "scale": {scale}}}"#)
}

/// A texture of a volume.
pub fn solid(volume: &str) -> String {
    format!(r#"{{"type": "volume", "volume": {volume}}}"#)
}

/// An image texture of one value, of which the tests draw the texels.
pub fn image(size: [usize; 2], more: &str) -> String {
    format!(r#"{{"type": "bitmap", "data": {{"resolution": {size:?}, "value": 0.5}} {more}}}"#)
}

/// A normal map of few texels over a BSDF.
pub fn normal_map(more: &str, bsdf: &str) -> String {
    let data = r#"{"resolution": [4, 3], "value": [0.5, 0.5, 1]}"#;
    format!(r#"{{"type": "normalmap", "normalmap": {{"type": "bitmap", "data": {data}}}, "bsdf": {bsdf} {more}}}"#)
}

/// A bump map of few texels over a BSDF.
pub fn bump_map(more: &str, bsdf: &str) -> String {
    let heights = image(
        [5, 4],
        r#", "wrap_mode": "mirror", "to_uv": [{"scale": [2, 1.5]}, {"rotate": {"angle": 20}}]"#,
    );
    format!(r#"{{"type": "bumpmap", "heights": {heights}, "scale": 0.7, "bsdf": {bsdf} {more}}}"#)
}

/// A large diffuse wall with a texture, turned about x and behind the cube.
pub fn wall(name: &str, reflectance: &str, angle: f64) -> String {
    format!(
        r#""{name}": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {reflectance}}},
            "to_world": [{{"scale": 3}}, {{"translate": [0, 0, -1.2]}}, {{"rotate": {{"axis": [1, 0, 0], "angle": {angle}}}}}]}}"#
    )
}

/// Four balls of these BSDFs between a ground, a lamp, a panel and a sky.
fn material_world(bsdfs: &[&str; 4]) -> String {
    let places = [[-0.5, -0.5, 0.5], [0.5, -0.4, 0.5], [-0.4, 0.5, -0.2], [0.5, 0.5, 0.0]];
    let ball = |i: usize| {
        format!(
            r#""ball_{i}": {{"type": "sphere", "center": {:?}, "radius": 0.48, "bsdf": {}}}"#,
            places[i], bsdfs[i]
        )
    };
    let balls = [0, 1, 2, 3].map(ball).join(", ");
    format!(
        r#"{balls}, {}, "sky": {{"type": "constant"}}, "lamp": {{"type": "point", "position": [1, 2, 3]}},
           "panel": {{"type": "rectangle", "emitter": {{"type": "area"}},
            "to_world": [{{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}}"#,
        wall("ground", "0.5", -60.0)
    )
}

/// The table: every parameter of every kind of medium and light at least once.
pub fn worlds() -> Vec<SmallWorld> {
    let sigma = grid([3, 3, 3], 1, "");
    let albedo = grid([3, 3, 3], 3, "");
    let smoke = |phase: &str| cube(&format!(r#""sigma_t": {sigma}, "albedo": {albedo}, "phase": {phase}"#));
    let isotropic = r#"{"type": "isotropic"}"#;
    let hg = r#"{"type": "hg", "g": 0.4}"#;
    let sky = r#""sky": {"type": "constant"}"#;
    vec![
        SmallWorld {
            name: "grey extinction, constant sky",
            objects: format!("{}, {sky}", smoke(isotropic)),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "constant extinction in a part of its cube, constant sky",
            objects: format!("{}, {sky}", cube(r#""sigma_t": 2.5, "albedo": 0.8"#)),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "point light, hg, few bounces",
            integrator: r#", "max_depth": 4"#,
            objects: format!(r#"{}, "lamp": {{"type": "point", "position": [1, 2, 1]}}"#, smoke(hg)),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "emission, early roulette",
            integrator: r#", "rr_depth": 1"#,
            objects: format!(
                r#"{}, {sky}"#,
                cube(&format!(
                    r#""sigma_t": {sigma}, "albedo": {}, "emission": {}, "scale": 1.5"#,
                    grid([2, 2, 2], 1, ""),
                    grid([2, 3, 2], 3, "")
                ))
            ),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "rgb extinction with zeros in single channels, envmap",
            objects: cube(&format!(
                r#""sigma_t": {}, "albedo": {albedo}, "phase": {hg}"#,
                grid([3, 3, 3], 3, "")
            )),
            envmap: true,
            zeros: vec![("sigma_t", 3, 1)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "zero albedo in one channel and in patches, zero density in patches",
            objects: format!(
                r#"{}, {sky}, "sun": {{"type": "directional", "direction": [1, -2, -1]}}"#,
                smoke(isotropic)
            ),
            zeros: vec![("albedo", 3, 2), ("albedo", 2, 0), ("sigma_t", 2, 0)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "black medium",
            objects: format!(
                r#"{}, {sky}, "sun": {{"type": "directional", "direction": [1, -2, -1]}}"#,
                smoke(isotropic)
            ),
            zeros: vec![("albedo", 1, 0)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "blends, spot, grids that wrap",
            objects: format!(
                r#"{}, "lamp": {{"type": "spot", "cutoff_angle": 60, "beam_width": 20,
                   "to_world": [{{"look_at": {{"origin": [1, 3, 0], "target": [0, 0, 0], "up": [0, 0, 1]}}}}]}}"#,
                cube(&format!(
                    r#""sigma_t": {}, "albedo": {}, "phase": {{"type": "blendphase", "weight": {},
                       "a": {{"type": "rayleigh"}}, "b": {{"type": "blendphase", "weight": 0.6,
                       "a": {{"type": "hg", "g": -0.3}}, "b": {{"type": "hg", "g": 0.6}}}}}}"#,
                    grid([3, 2, 3], 1, r#", "wrap_mode": "repeat""#),
                    grid([2, 3, 3], 1, r#", "wrap_mode": "mirror", "filter_type": "nearest""#),
                    grid([2, 2, 2], 1, "")
                ))
            ),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "a ball of rgb fog in smoke over a red floor, area lights",
            integrator: r#", "rr_depth": 2"#,
            objects: format!(
                r#"{}, "ball": {{"type": "sphere", "radius": 0.6, "bsdf": {{"type": "null"}},
                    "interior": {{"type": "homogeneous", "sigma_t": [2, 1, 0.5], "albedo": [0.9, 0.5, 0.8],
                                  "emission": [0.1, 0.2, 0.3], "phase": {hg}}},
                    "exterior": {{"type": "ref", "id": "box.interior"}}}},
                   "floor": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": [0.8, 0.4, 0]}},
                    "to_world": [{{"scale": 4}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}}, {{"translate": [0, -1.2, 0]}}]}},
                   "bulb": {{"type": "sphere", "center": [1.5, 1.5, 0], "radius": 0.3, "emitter": {{"type": "area"}}}},
                   "panel": {{"type": "rectangle", "emitter": {{"type": "area"}},
                    "to_world": [{{"scale": 0.7}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}}"#,
                smoke(isotropic)
            ),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "smoke between a mesh and lights on a mesh and a cube",
            objects: format!(
                r#"{}, "gem": {{{}, "to_world": [{{"scale": 0.5}}], "bsdf": {{"type": "diffuse", "reflectance": [0.9, 0, 0.3]}}}},
                   "panel": {{{}, "emitter": {{"type": "area"}},
                    "to_world": [{{"scale": 0.7}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}},
                   "brick": {{"type": "cube", "emitter": {{"type": "area"}},
                    "to_world": [{{"scale": [0.2, 0.3, 0.4]}}, {{"rotate": {{"axis": [1, 1, 0], "angle": 30}}}}, {{"translate": [1.7, 0.4, 0.5]}}]}}"#,
                smoke(hg),
                mesh("octahedron"),
                mesh("panel")
            ),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "painted walls: images that repeat and mirror, squares, black texels",
            integrator: r#", "max_depth": 6"#,
            objects: format!(
                r#"{}, {}, {sky}, "lamp": {{"type": "point", "position": [1, 2, 1]}},
                   "panel": {{"type": "rectangle", "emitter": {{"type": "area"}},
                    "to_world": [{{"scale": 0.7}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}},
                   "ball": {{"type": "sphere", "radius": 0.6, "bsdf": {{"type": "diffuse", "reflectance":
                    {{"type": "checkerboard", "to_uv": [{{"scale": 3}}]}}}}}}"#,
                wall("floor", &image([4, 3], r#", "to_uv": [{"scale": [3, 2]}]"#), -90.0),
                wall(
                    "back",
                    &image(
                        [3, 5],
                        r#", "wrap_mode": "mirror", "filter_type": "nearest", "to_uv": [{"scale": 4}]"#
                    ),
                    0.0
                )
            ),
            zeros: vec![
                ("floor.bsdf.reflectance", 4, 0),
                ("back.bsdf.reflectance", 3, 1),
                ("color0", 3, 2),
            ],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "checkerboards of images, of checkerboards and of values of a mesh",
            integrator: r#", "max_depth": 5"#,
            objects: format!(
                r#"{}, {sky}, "lamp": {{"type": "point", "position": [1, 2, 1]}},
                   "sheet": {{{}, "to_world": [{{"scale": 0.8}}], "bsdf": {{"type": "twosided", "bsdf": {{"type": "diffuse", "reflectance":
                    {{"type": "checkerboard", "to_uv": [{{"scale": 3}}], "color0": {{"type": "mesh_attribute", "name": "vertex_color"}},
                     "color1": {{"type": "checkerboard", "to_uv": [{{"scale": 5}}]}}}}}}}}}},
                   "ball": {{"type": "sphere", "center": [1, 0.5, 0.5], "radius": 0.5, "bsdf": {{"type": "roughplastic",
                    "diffuse_reflectance": {{"type": "checkerboard", "color0": {}, "to_uv": [{{"scale": [3, 2, 1]}}]}}}}}},
                   "pole": {{"type": "cylinder", "p0": [-1, -1, 0.5], "p1": [-1, 1, 0.5], "radius": 0.4, "bsdf": {{"type": "twosided",
                    "bsdf": {{"type": "roughconductor", "alpha": {{"type": "checkerboard", "color1": {}, "to_uv": [{{"scale": 2}}]}}}}}}}}"#,
                wall(
                    "floor",
                    &format!(
                        r#"{{"type": "checkerboard", "color0": {}, "color1": {}, "to_uv": [{{"scale": [5, 4, 1]}}]}}"#,
                        image([4, 3], r#", "to_uv": [{"scale": [3, 2]}]"#),
                        image([2, 2], r#", "filter_type": "nearest""#)
                    ),
                    -90.0
                ),
                sheet(),
                image([3, 3], ""),
                image([2, 3], ""),
            ),
            zeros: vec![("floor.bsdf.reflectance.color0", 4, 0)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "masks with holes before smoke, blends of two sides",
            integrator: r#", "max_depth": 7"#,
            objects: format!(
                r#"{}, {sky}, "lamp": {{"type": "point", "position": [1, 2, 3]}},
                   "panel": {{"type": "rectangle", "emitter": {{"type": "area"}},
                    "to_world": [{{"scale": 0.7}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}},
                   "veil": {{"type": "rectangle", "to_world": [{{"translate": [0, 0, 1.5]}}], "bsdf": {{"type": "mask",
                    "opacity": {}, "nested": {{"type": "twosided", "bsdf": {{"type": "diffuse"}}}}}}}},
                   "leaf": {{"type": "rectangle", "to_world": [{{"rotate": {{"axis": [0, 1, 0], "angle": 70}}}}],
                    "bsdf": {{"type": "blendbsdf", "weight": {},
                    "a": {{"type": "twosided", "x": {{"type": "diffuse"}}, "y": {{"type": "diffuse"}}}},
                    "b": {{"type": "blendbsdf", "weight": 0.3, "a": {{"type": "diffuse"}}, "b": {{"type": "mask",
                     "nested": {{"type": "diffuse"}}}}}}}}}}"#,
                smoke(isotropic),
                image([3, 3], r#", "filter_type": "nearest""#),
                image([2, 2], "")
            ),
            // Holes, and texels without any; blend weights of zero and of one.
            zeros: vec![("veil.bsdf.opacity", 3, 0), ("leaf.bsdf.weight", 4, 0)],
            set: vec![("b.weight", vec![1.0])],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "conductors",
            integrator: r#", "max_depth": 5"#,
            objects: material_world(&[
                r#"{"type": "conductor", "material": "Au"}"#,
                r#"{"type": "roughconductor", "material": "Cu", "distribution": "ggx"}"#,
                r#"{"type": "twosided", "bsdf": {"type": "roughconductor", "alpha_u": 0.2, "alpha_v": 0.4}}"#,
                r#"{"type": "mask", "opacity": 0.6, "bsdf": {"type": "conductor", "material": "Ag"}}"#,
            ]),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "dielectrics",
            integrator: r#", "max_depth": 7, "rr_depth": 3"#,
            objects: material_world(&[
                r#"{"type": "dielectric"}"#,
                r#"{"type": "roughdielectric", "distribution": "ggx", "alpha_u": 0.3, "alpha_v": 0.5}"#,
                r#"{"type": "thindielectric"}"#,
                r#"{"type": "roughdielectric", "distribution": "beckmann", "sample_visible": false}"#,
            ]),
            // One channel of a thin sheet has a transmittance of zero: that channel alone gets no light through it.
            zeros: vec![("ball_2.bsdf.specular_transmittance", 3, 1)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "plastics",
            integrator: r#", "max_depth": 5"#,
            objects: material_world(&[
                r#"{"type": "plastic"}"#,
                r#"{"type": "roughplastic", "distribution": "ggx", "nonlinear": true}"#,
                r#"{"type": "blendbsdf", "weight": 0.4, "a": {"type": "plastic", "nonlinear": true}, "b": {"type": "diffuse"}}"#,
                r#"{"type": "twosided", "bsdf": {"type": "roughplastic"}}"#,
            ]),
            zeros: vec![
                ("ball_0.bsdf.diffuse_reflectance", 3, 1),
                ("ball_0.bsdf.specular_reflectance", 3, 2),
            ],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "principled BSDFs",
            integrator: r#", "max_depth": 5"#,
            objects: material_world(&[
                r#"{"type": "principled", "eta": 1.5}"#,
                r#"{"type": "principled"}"#,
                r#"{"type": "principledthin"}"#,
                r#"{"type": "principledthin", "base_color": {"type": "checkerboard"}}"#,
            ]),
            zeros: vec![
                ("ball_0.bsdf.clearcoat", 1, 0),
                ("ball_0.bsdf.spec_trans", 1, 0),
                ("ball_2.bsdf.sheen", 1, 0),
            ],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "pictures that shine on all shapes, chosen by weight",
            integrator: r#", "max_depth": 4"#,
            objects: format!(
                r#"{}, {},
                   "panel": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": {}, "sampling_weight": 2}},
                    "to_world": [{{"scale": [0.7, 0.5, 1]}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}},
                   "coin": {{"type": "disk", "emitter": {{"type": "area", "radiance": {}}},
                    "to_world": [{{"scale": [0.7, 0.5, 1]}}, {{"rotate": {{"axis": [0, 1, 0], "angle": -60}}}}, {{"translate": [1.6, 0, 0]}}]}},
                   "tube": {{"type": "cylinder", "p0": [-1.5, -0.5, 0], "p1": [-1.3, 0.8, 0.2], "radius": 0.15,
                    "emitter": {{"type": "area", "radiance": {{"type": "checkerboard", "to_uv": [{{"scale": [2, 3]}}]}}}}}},
                   "bulb": {{"type": "sphere", "center": [1.3, 1.3, 0], "radius": 0.7, "emitter": {{"type": "area", "radiance": {},
                    "sampling_weight": 0}}}},
                   "brick": {{"type": "cube", "emitter": {{"type": "area", "radiance": {}, "sampling_weight": 0.5}},
                    "to_world": [{{"scale": [0.2, 0.3, 0.4]}}, {{"translate": [-1.7, 1.4, 0.5]}}]}}"#,
                smoke(hg),
                wall("floor", "0.5", -90.0),
                image([4, 3], ""),
                image([3, 2], r#", "filter_type": "nearest", "to_uv": [{"scale": [2, 1]}]"#),
                image([3, 3], r#", "wrap_mode": "clamp""#),
                image([2, 2], "")
            ),
            zeros: vec![("panel.emitter.radiance", 5, 1)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "a projector, a slide before a spot, disks and cylinders",
            integrator: r#", "max_depth": 4"#,
            objects: format!(
                r#"{}, {},
                   "beamer": {{"type": "projector", "fov": 50, "fov_axis": "y", "scale": 1.5, "irradiance": {}, "sampling_weight": 3,
                    "to_world": [{{"look_at": {{"origin": [1, 2.5, 2], "target": [0, -0.5, 0], "up": [0, 1, 0]}}}}]}},
                   "slide": {{"type": "spot", "cutoff_angle": 50, "beam_width": 20, "texture": {},
                    "to_world": [{{"look_at": {{"origin": [-1, 2, 1], "target": [0, 0, 0], "up": [0, 0, 1]}}}}]}},
                   "plate": {{"type": "disk", "to_world": [{{"scale": 0.6}}, {{"translate": [0.3, -0.4, 0.2]}}],
                    "bsdf": {{"type": "twosided", "paint": {{"type": "diffuse", "reflectance": {}}}}}}},
                   "pipe": {{"type": "cylinder", "p0": [-0.5, -0.7, 0.3], "p1": [-0.3, 0.8, -0.3], "radius": 0.25,
                    "bsdf": {{"type": "twosided", "paint": {{"type": "diffuse", "reflectance": {}}}}}}},
                   "die": {{"type": "cube", "to_world": [{{"scale": 0.25}}, {{"rotate": {{"axis": [1, 1, 0], "angle": 40}}}}, {{"translate": [0.6, 0.5, 0.3]}}],
                    "bsdf": {{"type": "diffuse", "reflectance": {}}}}}"#,
                smoke(hg),
                wall("floor", "0.5", -90.0),
                image([5, 3], ""),
                image([3, 3], r#", "wrap_mode": "clamp", "filter_type": "nearest""#),
                image([3, 4], ""),
                image([4, 3], ""),
                image([2, 3], r#", "filter_type": "nearest""#),
            ),
            zeros: vec![("slide.texture", 4, 1), ("beamer.irradiance", 7, 2)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "normal maps over what is rough",
            integrator: r#", "max_depth": 4"#,
            objects: material_world(&[
                &normal_map(
                    "",
                    r#"{"type": "roughconductor", "material": "Cu", "distribution": "ggx", "alpha_u": 0.3, "alpha_v": 0.5}"#,
                ),
                &format!(
                    r#"{{"type": "twosided", "b": {}}}"#,
                    normal_map("", r#"{"type": "roughplastic", "alpha": 0.3}"#)
                ),
                &normal_map(
                    r#", "use_shadowing_function": false"#,
                    r#"{"type": "roughdielectric", "alpha": 0.4, "int_ior": 1.5}"#,
                ),
                &normal_map(
                    "",
                    r#"{"type": "principled", "roughness": 0.5, "anisotropic": 0.5, "metallic": 0.4, "spec_trans": 0.4,
                        "clearcoat": 0.5, "clearcoat_gloss": 0.3, "sheen": 0.5, "flatness": 0.4}"#,
                ),
            ]),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "bump maps and normal maps in and over mixtures",
            integrator: r#", "max_depth": 4"#,
            objects: material_world(&[
                &bump_map(
                    "",
                    r#"{"type": "principledthin", "roughness": 0.5, "spec_trans": 0.5, "diff_trans": 0.7, "sheen": 0.5}"#,
                ),
                &format!(
                    r#"{{"type": "blendbsdf", "weight": 0.4, "a": {}, "b": {}}}"#,
                    bump_map("", r#"{"type": "diffuse"}"#),
                    normal_map("", r#"{"type": "mask", "opacity": 0.6, "b": {"type": "diffuse"}}"#)
                ),
                &normal_map(
                    r#", "flip_invalid_normals": false"#,
                    r#"{"type": "twosided", "b": {"type": "roughconductor", "material": "Al", "alpha": 0.4}}"#,
                ),
                &format!(
                    r#"{{"type": "mask", "opacity": 0.7, "b": {{"type": "twosided", "c": {}, "d": {}}}}}"#,
                    bump_map(
                        r#", "flip_invalid_normals": false"#,
                        r#"{"type": "roughconductor", "alpha": 0.5}"#
                    ),
                    normal_map("", r#"{"type": "diffuse"}"#)
                ),
            ]),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "values of vertices and faces, on surfaces and on a lamp",
            integrator: r#", "max_depth": 4"#,
            objects: format!(
                r#"{}, {sky},
                   "paper": {{{sheet}, "to_world": [{{"scale": 0.9}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 20}}}}],
                    "bsdf": {{"type": "twosided", "paint": {{"type": "blendbsdf", "weight": {}, "a": {{"type": "diffuse", "reflectance": {}}},
                        "b": {{"type": "roughconductor", "alpha": {}, "specular_reflectance": {}}}}}}}}},
                   "tin": {{{sheet}, "face_normals": true, "to_world": [{{"scale": [-0.5, 0.5, 0.5]}}, {{"translate": [0.4, 0.3, 0.8]}}],
                    "bsdf": {{"type": "normalmap", "normalmap": {}, "bsdf": {{"type": "roughplastic", "diffuse_reflectance": {}}}}}}},
                   "lamp": {{{sheet}, "flip_normals": true,
                    "to_world": [{{"scale": 0.7}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}}, {{"translate": [0, 1.5, 0]}}],
                    "emitter": {{"type": "area", "radiance": {}}}}}"#,
                wall("ground", "0.5", -60.0),
                attribute("face_share", 1.0),
                attribute("vertex_color", 0.8),
                attribute("vertex_rough", 1.0),
                attribute("face_tint", 1.0),
                attribute("vertex_normal", 1.0),
                attribute("vertex_color", 1.0),
                attribute("vertex_color", 3.0),
                sheet = sheet(),
            ),
            zeros: vec![("lamp.vertex_color", 4, 1), ("paper.face_tint", 5, 2)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "volumes as textures, of surfaces and of lamps",
            integrator: r#", "max_depth": 4"#,
            objects: format!(
                r#"{}, {sky},
                   "ball": {{"type": "sphere", "radius": 0.6, "center": [-0.4, -0.3, 0],
                    "bsdf": {{"type": "mask", "opacity": {}, "b": {{"type": "principled", "base_color": {}, "roughness": {}}}}}}},
                   "paper": {{{sheet}, "to_world": [{{"scale": 0.6}}, {{"translate": [0.5, 0.2, 0.4]}}],
                    "bsdf": {{"type": "twosided", "paint": {{"type": "diffuse", "reflectance": {}}}}}}},
                   "globe": {{"type": "sphere", "radius": 0.3, "center": [0.5, 0.9, 0.2], "emitter": {{"type": "area", "radiance": {}}}}},
                   "panel": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": {}}},
                    "to_world": [{{"scale": 0.5}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}}"#,
                wall("ground", &solid(&grid([3, 2, 3], 3, "")), -60.0),
                solid(&grid([2, 3, 2], 1, "")),
                solid(&grid([3, 3, 3], 3, "")),
                solid("0.4"),
                solid(&grid([2, 2, 3], 1, "")),
                solid(&grid([3, 3, 2], 3, "")),
                solid(&grid([2, 2, 2], 3, "")),
                sheet = sheet(),
            ),
            zeros: vec![("panel.emitter.radiance.volume", 4, 1)],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "from within the medium",
            integrator: r#", "hide_emitters": true"#,
            sensor: r#", "medium": {"type": "ref", "id": "box.interior"},
                "to_world": [{"look_at": {"origin": [0.2, 0.1, 0.6], "target": [0, 0, -1], "up": [0, 1, 0]}}]"#,
            objects: format!(
                r#"{}, "lamp": {{"type": "point", "position": [0.5, 0.5, 0]}}, {sky}"#,
                smoke(hg)
            ),
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "fog without end",
            integrator: r#", "max_depth": 6"#,
            // At the far clip distance less than e^-78 of the light is left; up to there lie few tentative collisions.
            sensor: r#", "far_clip": 400,
                "medium": {"type": "homogeneous", "sigma_t": [0.5, 0.3, 0.2], "albedo": 0.8, "phase": {"type": "hg", "g": 0.5}}"#,
            objects: r#""lamp": {"type": "point", "position": [0.5, 0.5, 0]}, "sun": {"type": "directional"},
                "ball": {"type": "sphere", "radius": 0.5}"#
                .into(),
            envmap: true,
            set: vec![("sigma_t", vec![0.5, 0.3, 0.2])],
            ..SmallWorld::default()
        },
    ]
}

/// The world of the table whose name begins like this.
pub fn find(name: &str) -> SmallWorld {
    let found = worlds().into_iter().find(|w| w.name.starts_with(name));
    found.expect("it is in the table")
}

impl SmallWorld {
    /// Mean and standard error of a channel over all paths, `spp` a pixel, all through nearly the same point of the
    /// film.
    pub fn mean(&self, spp: u32, channel: usize) -> (f64, f64) {
        let mut setup = self.setup("drt", &Options::default());
        setup.resident.sensors[0].focal = [1e5; 2];
        setup.spp = spp;
        let objective = PathObjective::new(&setup, gradient::DRT);
        let n = objective.casts.len() as f64;
        let (mut sum, mut squares) = (0.0, 0.0);
        for cast in &objective.casts {
            let x = objective.gather(&objective.fields, cast)[channel];
            sum += x;
            squares += x * x;
        }
        let mean = sum / n;
        (mean, ((squares / n - mean * mean).max(0.0) / n).sqrt())
    }

    /// The scene, read from its JSON.
    pub fn scene(&self, gradient: &str) -> scene::Scene {
        let view = r#", "to_world": [{"look_at": {"origin": [0.5, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#;
        let placed = self.sensor.contains("to_world");
        let text = format!(
            r#"{{"integrator": {{"type": "volpath", "gradient": "{gradient}" {}}},
                "camera": {{"type": "perspective", "fov": 28 {} {},
                    "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
                {}{}}}"#,
            self.integrator,
            self.sensor,
            if placed { "" } else { view },
            self.objects,
            self.optimize
        );
        let mut scene = scene::parse(&text, Path::new("small.json"))
            .unwrap_or_else(|mistakes| panic!("{}: {mistakes}\nin {text}", self.name));
        if self.envmap {
            scene.background = sky([5, 4]);
        }
        scene
    }

    /// The scene made ready for a check, values drawn by `options.seed`.
    pub fn setup(&self, gradient: &str, options: &Options) -> Setup {
        let mut setup = Setup::new(&self.scene(gradient), options).expect("small worlds are sound");
        setup.spp = 4;
        for (i, parameter) in setup.params.parameters.iter_mut().enumerate() {
            let path = parameter.path.clone();
            let ends = |suffix: &str| path.ends_with(suffix);
            let [low, high] = match () {
                () if parameter.quantity == Quantity::Translation => [-0.1, 0.1],
                () if parameter.quantity == Quantity::Orientation => [-15.0, 15.0],
                () if parameter.quantity == Quantity::Extent => [0.8, 1.1],
                () if ends("sigma_t") => [0.2, 2.0],
                () if ends("albedo") => [0.3, 0.95],
                () if ends("weight") || ends("opacity") => [0.1, 0.9],
                () if ends("reflectance") || ends("color0") || ends("color1") => [0.1, 0.9],
                () if ends(".g") => continue,
                () if ends(".eta") => [1.2, 1.7],
                () if ends(".k") => [1.0, 3.0],
                () if ends("alpha") || ends("alpha_u") || ends("alpha_v") => [0.2, 0.6],
                () if parameter.quantity == Quantity::Reflectance || parameter.quantity == Quantity::Weight => {
                    [0.1, 0.9]
                }
                () if ends("specular") => [0.2, 0.9],
                () if ends("vertex_rough") => [0.2, 0.6],
                () if parameter.quantity == Quantity::Normal => [0.3, 0.7],
                () if parameter.quantity == Quantity::Height => [0.0, 0.5],
                () => [0.3, 1.5],
            };
            for (j, value) in parameter.values.iter_mut().enumerate() {
                *value = low + (high - low) * draw(options.seed, i as u32, j as u32);
            }
            if parameter.quantity == Quantity::Normal {
                let outward = parameter.values.iter_mut().skip(2).step_by(3);
                outward.for_each(|z| *z = 0.5 * *z + 0.6);
            }
            for (_, n, first) in self.zeros.iter().filter(|(suffix, ..)| ends(suffix)) {
                parameter
                    .values
                    .iter_mut()
                    .skip(*first)
                    .step_by(*n)
                    .for_each(|v| *v = 0.0);
            }
            for (_, values) in self.set.iter().filter(|(suffix, _)| ends(suffix)) {
                let repeated = values.iter().cycle();
                parameter.values.iter_mut().zip(repeated).for_each(|(v, x)| *v = *x);
            }
        }
        setup.resident.place_views(&setup.params);
        setup
    }
}

/// An environment map of zeros, turned, of so many texels.
pub fn sky([width, height]: [usize; 2]) -> Background {
    Background::Envmap {
        data: Array {
            path: "sky.data".into(),
            kind: Kind::Envmap,
            shape: Shape {
                size: [width, height, 1],
                channels: 3,
            },
            source: Source::Fill(vec![0.0]),
            tuning: None,
        },
        scale: Array::value("sky.scale", &[0.8]),
        sampling_weight: 1.0,
        mis_compensation: false,
        to_world: Affine3A::from_rotation_y(0.4),
    }
}
