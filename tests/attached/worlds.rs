//! Worlds of smooth glass, mirrors and printed planes whose whole image moves with the parameters to differentiate by.

use std::path::Path;

use prbopt::gradcheck::{Options, Setup};
use prbopt::params::Quantity;
use prbopt::scene::{self, Scene};

use super::small::draw;
use super::small::worlds::sky;

/// One more than the surfaces that turn a path at most.
pub(super) const MOST_TURNS: u32 = 6;

/// A named world of `objects`, before an environment map if `sky`, to be differentiated by the parameters `wanted`.
pub(super) struct World {
    pub(super) name: &'static str,
    pub(super) objects: String,
    pub(super) wanted: &'static [&'static str],
    pub(super) sky: bool,
    pub(super) max_depth: u32,
}

/// A normal map of 4 × 3 texels over a BSDF.
fn mapped(bsdf: &str) -> String {
    format!(
        r#"{{"type": "normalmap", "use_shadowing_function": false, "inner": {bsdf},
             "normalmap": {{"type": "bitmap", "wrap_mode": "clamp", "data": {{"resolution": [4, 3], "value": [0.5, 0.5, 1]}}}}}}"#
    )
}

/// A diffuse BSDF with a picture.
fn printed(place: &str) -> String {
    format!(
        r#"{{"type": "diffuse", "reflectance":
            {{"type": "bitmap", "raw": true, {place}, "data": {{"resolution": [24, 18], "leaves": 3}}}}}}"#
    )
}

pub(super) fn worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let turned = r#""to_world": [{"scale": 1.8}, {"rotate": {"axis": [1, 0.4, 0.2], "angle": -25}}]"#;
    let back =
        r#""to_world": [{"scale": 2.5}, {"rotate": {"axis": [0, 1, 0], "angle": 168}}, {"translate": [0, 0, -0.6]}]"#;
    vec![
        World {
            name: "two faces of a slab",
            objects: format!(
                r#""front": {{"type": "rectangle", "bsdf": {}, {turned}}},
                   "back": {{"type": "rectangle", "bsdf": {}, {back}}}"#,
                mapped(glass),
                mapped(glass)
            ),
            wanted: &["front.bsdf.normalmap", "back.bsdf.normalmap"],
            sky: true,
            max_depth: 4,
        },
        World {
            name: "a ball of glass",
            objects: format!(
                r#""ball": {{"type": "sphere", "radius": 0.8, "bsdf": {}, {turned}}}"#,
                mapped(glass)
            ),
            wanted: &["ball.bsdf.normalmap"],
            sky: true,
            max_depth: 4,
        },
        World {
            name: "a mirror and a picture that shines",
            objects: format!(
                r#""mirror": {{"type": "rectangle", "bsdf": {}, {turned}}},
                   "lamp": {{"type": "sphere", "radius": 30, "flip_normals": true,
                       "bsdf": {{"type": "diffuse", "reflectance": 0}},
                       "emitter": {{"type": "area", "radiance":
                           {{"type": "bitmap", "data": {{"resolution": [5, 4], "value": [0.5, 0.5, 0.5]}}}}}}}}"#,
                mapped(r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#)
            ),
            wanted: &["mirror.bsdf.normalmap"],
            sky: false,
            max_depth: 4,
        },
        World {
            name: "the index of a ball",
            objects: format!(r#""ball": {{"type": "sphere", "radius": 0.8, "bsdf": {glass}, {turned}}}"#),
            wanted: &["ball.bsdf.eta"],
            sky: true,
            max_depth: 4,
        },
        World {
            name: "a pane over a printed plane",
            objects: format!(
                r#""pane": {{"type": "rectangle", "bsdf": {}, {turned}}},
                   "sheet": {{"type": "rectangle", "bsdf": {},
                       "to_world": [{{"scale": 9}}, {{"translate": [0.1, 0, -1.2]}}]}}"#,
                mapped(glass),
                printed(r#""wrap_mode": "clamp""#)
            ),
            wanted: &["pane.bsdf.normalmap", "pane.bsdf.inner.eta"],
            sky: true,
            max_depth: 4,
        },
        // A wedge of two planes so large that their edges, which would be silhouettes, are never seen.
        World {
            name: "a printed plane seen in a mirror",
            objects: format!(
                r#""mirror": {{"type": "rectangle", "bsdf": {},
                    "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 35}}}}]}},
                   "sheet": {{"type": "rectangle", "bsdf": {},
                    "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": -90}}}}, {{"translate": [8, 0, 0]}}]}}"#,
                mapped(r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#),
                printed(r#""to_uv": [{"scale": [60, 45, 1]}]"#)
            ),
            wanted: &["mirror.bsdf.normalmap"],
            sky: true,
            max_depth: 3,
        },
    ]
}

/// The parameters of the pose of [`World::scene`]'s camera.
pub(super) const CAMERA: &[&str] = &["camera.to_world.translate", "camera.to_world.rotate"];

/// Worlds in which the camera moves, or shapes that fill the whole view: no silhouette is seen.
pub(super) fn moving_worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let metal = r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#;
    let sky = |name, objects, wanted| World {
        name,
        objects,
        wanted,
        sky: true,
        max_depth: 3,
    };
    let wedge = format!(
        r#""mirror": {{"type": "rectangle", "bsdf": {metal},
            "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 35}}}}]}},
           "sheet": {{"type": "rectangle", "bsdf": {},
            "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": -90}}}}, {{"translate": [8, 0, 0]}}]}}"#,
        printed(r#""to_uv": [{"scale": [60, 45, 1]}]"#)
    );
    let behind =
        format!(r#""mirror": {{"type": "rectangle", "bsdf": {metal}, "to_world": [{{"translate": [0, 0, 9]}}]}}"#);
    let sheet = format!(
        r#""sheet": {{"type": "rectangle", "bsdf": {}, "to_world": [{{"scale": 9}}]}}"#,
        printed(r#""wrap_mode": "clamp""#)
    );
    vec![
        sky(
            "a camera that turns before the sky",
            behind,
            &["camera.to_world.rotate"],
        ),
        sky("a camera that moves over a printed plane", sheet, CAMERA),
        sky(
            "a camera that moves before a mirror and a printed plane",
            wedge.clone(),
            CAMERA,
        ),
        sky(
            "a camera that moves before a ball of glass",
            format!(
                r#""ball": {{"type": "sphere", "radius": 1.2, "bsdf": {}}}"#,
                mapped(glass)
            ),
            CAMERA,
        ),
        sky(
            "a ball of glass that moves",
            format!(
                r#""ball": {{"type": "sphere", "radius": 0.9, "bsdf": {}, "to_world": [{{"rotate": {{"axis": [1, 0.4, 0.2], "angle": -25}}}}]}}"#,
                mapped(glass)
            ),
            &["ball.to_world.translate", "ball.to_world.rotate", "ball.to_world.scale"],
        ),
        sky(
            "a mirror that moves, over a printed plane",
            wedge,
            &["mirror.to_world.translate"],
        ),
        // If it turned over the plane, the mirror would uncover other parts of the sky that lights the plane.
        sky(
            "a mirror that turns",
            format!(
                r#""mirror": {{"type": "rectangle", "bsdf": {metal},
                    "to_world": [{{"scale": 4000}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 35}}}}]}}"#
            ),
            &["mirror.to_world.rotate"],
        ),
    ]
}

impl World {
    /// Whether shapes or the camera are moved.
    pub(super) fn moves(&self) -> bool {
        let of_place = |path: &&str| path.contains("to_world") || path.ends_with("vertex_positions");
        self.wanted.iter().any(of_place)
    }

    /// The scene; the points of chains are held fixed if not `attached`.
    pub(super) fn scene(&self, attached: bool) -> Scene {
        let wanted: Vec<String> = self.wanted.iter().map(|path| format!(r#""{path}": {{}}"#)).collect();
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached", "max_depth": {}, "rr_depth": 100}},
                "camera": {{"type": "perspective", "fov": 12,
                    "to_world": [{{"look_at": {{"origin": [0.5, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
                {}, "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}}}"#,
            self.max_depth,
            self.objects,
            wanted.join(", ")
        );
        let mut scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        scene.integrator.attached = attached;
        if self.sky {
            scene.background = sky([9, 6]);
        }
        scene
    }

    pub(super) fn setup(&self, attached: bool) -> Setup {
        self.setup_of(&self.scene(attached))
    }

    /// A scene of this world with random normals, radiance and places.
    pub(super) fn setup_of(&self, scene: &Scene) -> Setup {
        let options = Options {
            seed: 5,
            ..Options::default()
        };
        let mut setup = Setup::new(scene, &options).expect("small worlds are sound");
        setup.spp = 4;
        for (i, parameter) in setup.params.parameters.iter_mut().enumerate() {
            for (j, value) in parameter.values.iter_mut().enumerate() {
                let u = draw(5, i as u32, j as u32);
                *value = match parameter.quantity {
                    Quantity::Normal if j % 3 == 2 => 0.9 + 0.1 * u,
                    Quantity::Normal => 0.45 + 0.1 * u,
                    Quantity::Translation => 0.1 * (u - 0.5),
                    // A camera turns by at most 1°, so that its view stays about the same.
                    Quantity::Orientation if parameter.path.starts_with("camera") => 2.0 * (u - 0.5),
                    Quantity::Orientation => 8.0 * (u - 0.5),
                    Quantity::Extent => 0.95 + 0.1 * u,
                    Quantity::Light | Quantity::Environment if parameter.shape.texels() > 1 => 0.2 + u,
                    _ => continue,
                };
            }
        }
        setup.resident.place_views(&setup.params);
        setup
    }
}

/// A rectangle that emits a picture and fills the whole view, at this z behind (negative) or before the objects about the origin.
fn sheet(name: &str, z: f64) -> String {
    let place = match z < 0.0 {
        true => format!(r#"{{"translate": [0.1, 0, {z}]}}"#),
        false => format!(r#"{{"rotate": {{"axis": [1, 0.1, 0], "angle": 180}}}}, {{"translate": [0, 0.1, {z}]}}"#),
    };
    format!(
        r#"{name}: {{"type": "rectangle", "to_world": [{{"scale": 9}}, {place}],
            "bsdf": {{"type": "diffuse", "reflectance": 0}},
            "emitter": {{"type": "area", "radiance":
                {{"type": "bitmap", "wrap_mode": "clamp", "data": {{"resolution": [9, 7], "value": [0.5, 0.5, 0.5]}}}}}}}}"#
    )
}

/// Worlds that `trace` can follow: rectangles, spheres and flat triangles, most of them between two sheets that shine.
pub(super) fn traced_worlds() -> Vec<World> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let metal = r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#;
    let sheets = format!("{}, {}", sheet(r#""far""#, -4.0), sheet(r#""near""#, 7.0));
    let tilted = |name: &str, bsdf: &str, [x, y, z]: [f64; 3], angle: f64, scale: [f64; 2]| {
        format!(
            r#"{name}: {{"type": "rectangle", "bsdf": {bsdf}, "to_world": [{{"scale": [{}, {}, 1]}},
                {{"rotate": {{"axis": [0.3, 1, 0.2], "angle": {angle}}}}}, {{"translate": [{x}, {y}, {z}]}}]}}"#,
            scale[0], scale[1]
        )
    };
    let ball = |bsdf: &str| {
        format!(
            r#""ball": {{"type": "sphere", "bsdf": {bsdf},
                "to_world": [{{"scale": [0.8, 1, 0.7]}}, {{"rotate": {{"axis": [1, 0.4, 0.2], "angle": -35}}}}]}}"#
        )
    };
    let slab = [
        tilted(r#""front""#, &mapped(glass), [0.0; 3], -15.0, [1.8, 1.5]),
        tilted(r#""back""#, &mapped(glass), [0.0, 0.0, -0.6], 170.0, [2.0, 2.2]),
    ];
    let mirror = tilted(r#""mirror""#, &mapped(metal), [0.0, 0.0, -2.0], 15.0, [4.0, 4.0]);
    let printed_sheet = format!(
        r#""sheet": {{"type": "rectangle", "to_world": [{{"scale": 9}}], "bsdf": {}}}"#,
        printed(r#""wrap_mode": "clamp""#)
    );
    let world = |name, objects: &[&str], wanted| World {
        name,
        objects: objects.join(", "),
        wanted,
        sky: false,
        max_depth: MOST_TURNS,
    };
    vec![
        world(
            "two faces of a slab over a sheet",
            &[&slab[0], &slab[1], &sheets],
            &[
                "front.bsdf.normalmap",
                "back.bsdf.normalmap",
                "front.bsdf.inner.eta",
                "back.bsdf.inner.eta",
                "far.emitter.radiance",
                "near.emitter.radiance",
            ],
        ),
        world(
            "a stretched ball over a sheet",
            &[&ball(&mapped(glass)), &sheets],
            &["ball.bsdf.normalmap", "ball.bsdf.inner.eta", "far.emitter.radiance"],
        ),
        world(
            "a ball before a mirror",
            &[&ball(&mapped(glass)), &mirror, &sheets],
            &["ball.bsdf.normalmap", "ball.bsdf.inner.eta", "mirror.bsdf.normalmap"],
        ),
        world(
            "a stretched mirror",
            &[&ball(&mapped(metal)), &sheets],
            &["ball.bsdf.normalmap", "near.emitter.radiance"],
        ),
        world(
            "a slab whose faces move over a sheet",
            &[&slab[0], &slab[1], &sheets],
            &[
                "front.to_world.translate",
                "front.to_world.rotate",
                "front.to_world.scale",
                "back.to_world.translate",
                "back.to_world.rotate",
                "back.bsdf.normalmap",
            ],
        ),
        world(
            "a stretched ball that moves before a mirror that does",
            &[&ball(&mapped(glass)), &mirror, &sheets],
            &[
                "ball.to_world.translate",
                "ball.to_world.rotate",
                "ball.to_world.scale",
                "mirror.to_world.translate",
                "mirror.to_world.rotate",
            ],
        ),
        world(
            "a cut stone whose corners move",
            &[&stone(glass), &sheets],
            &["stone.vertex_positions"],
        ),
        world(
            "a slab before a camera, all of which move",
            &[&slab[0], &slab[1], &sheets],
            &[
                "camera.to_world.translate",
                "camera.to_world.rotate",
                "front.to_world.translate",
                "back.to_world.rotate",
            ],
        ),
        world(
            "a stretched ball and a mirror before a camera that moves",
            &[&ball(&mapped(glass)), &mirror, &sheets],
            CAMERA,
        ),
        World {
            sky: true,
            ..world(
                "a ball under the sky before a camera that moves",
                &[&format!(
                    r#""ball": {{"type": "sphere", "radius": 0.4, "bsdf": {glass}}}"#
                )],
                CAMERA,
            )
        },
        World {
            max_depth: 3,
            ..world(
                "a printed plane and a mirror before a camera that moves",
                &[
                    &tilted(r#""mirror""#, metal, [0.0, 0.4, 2.0], 70.0, [0.5, 0.8]),
                    &printed_sheet,
                    r#""light": {"type": "constant"}"#,
                ],
                CAMERA,
            )
        },
    ]
}

/// Two pyramids of glass on one square, with flat faces.
fn stone(glass: &str) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stone.obj");
    let text = "v 1 0.1 0\nv 0 1 0.1\nv -1 0 -0.1\nv 0 -1 0\nv 0.1 0 0.8\nv 0 0.1 -0.7\n\
        f 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\nf 2 1 6\nf 3 2 6\nf 4 3 6\nf 1 4 6\n";
    std::fs::write(&file, text).expect("the folder is writable");
    format!(
        r#""stone": {{"type": "obj", "filename": "{}", "face_normals": true, "bsdf": {glass}}}"#,
        file.display()
    )
}
