//! Small worlds of shapes that a run moves.

use super::worlds::{
    SmallWorld, attribute, bump_map, cube, distances, grid, image, mesh, normal_map, sheet, solid, wall,
};

/// Shapes that a run moves, among lights: `parts` are paths of their places, and `objects` the world.
fn moving(name: &'static str, parts: &[&str], objects: String) -> SmallWorld {
    let parts: Vec<String> = parts.iter().map(|part| format!(r#""{part}": {{}}"#)).collect();
    SmallWorld {
        name,
        integrator: r#", "max_depth": 4"#,
        optimize: format!(
            r#", "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}"#,
            parts.join(", ")
        ),
        objects,
        ..SmallWorld::default()
    }
}

/// A projector and a spot with a picture before the walls, the first of them mirrored.
fn pictured() -> String {
    let picture = image([5, 4], "");
    format!(
        r#""beamer": {{"type": "projector", "fov": 75, "scale": 3, "irradiance": {picture}, "to_world": [{{"scale": [-1, 1, 1]}},
            {{"look_at": {{"origin": [0.4, 0.8, 3], "target": [0, 0, -0.5], "up": [0, 1, 0]}}}}]}},
           "slide": {{"type": "spot", "intensity": 20, "texture": {picture}, "cutoff_angle": 50, "beam_width": 20,
            "to_world": [{{"look_at": {{"origin": [-1, 0.5, 3], "target": [0.2, 0, -0.5], "up": [0, 1, 0]}}}}]}}"#
    )
}

/// Smoke in a box, fog in a ball and in a turned block, a ball that only absorbs, and a floor below.
fn clouds() -> String {
    let smoke = cube(&format!(
        r#""sigma_t": {}, "albedo": {}, "phase": {{"type": "blendphase", "weight": {},
            "a": {{"type": "rayleigh"}}, "b": {{"type": "hg", "g": 0.6}}}}"#,
        grid([3, 4, 3], 1, ""),
        grid([2, 2, 2], 3, ""),
        grid([2, 2, 2], 1, "")
    ));
    format!(
        r#"{smoke}, "ball": {{"type": "sphere", "center": [1.4, 0.4, 0.6], "radius": 0.35, "bsdf": {{"type": "null"}},
                "interior": {{"type": "homogeneous", "sigma_t": [2, 1, 0.5], "albedo": [0.9, 0.5, 0.8],
                    "phase": {{"type": "hg", "g": -0.3}}}}}},
            "ink": {{"type": "sphere", "center": [0.6, 1.7, -0.2], "radius": 0.5, "bsdf": {{"type": "null"}},
                "interior": {{"type": "heterogeneous", "albedo": 0, "sigma_t": {{"type": "gridvolume", "resolution": [3, 2, 2], "value": 1,
                    "to_world": [{{"translate": [0.1, 1.2, -0.7]}}]}}}}}},
            "block": {{"type": "cube", "bsdf": {{"type": "null"}},
                "to_world": [{{"scale": 0.3}}, {{"rotate": {{"axis": [1, 1, 0], "angle": 30}}}}, {{"translate": [-0.9, 1.4, 0.9]}}],
                "interior": {{"type": "heterogeneous", "sigma_t": {}, "albedo": 0.7}}}},
            "ground": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": 0.7}},
                "to_world": [{{"scale": 5}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}}, {{"translate": [0, -1.3, 0]}}]}}"#,
        grid([2, 3, 2], 3, r#", "wrap_mode": "mirror""#),
    )
}

/// The table of what moves: every kind of shape, and every way that a point of it is used.
pub fn moving_worlds() -> Vec<SmallWorld> {
    // What has a dot is a parameter, anything else a shape.
    let place = |shape: &str| -> Vec<String> {
        match shape.contains('.') {
            true => vec![shape.to_string()],
            false => ["translate", "rotate", "scale"]
                .map(|part| format!("{shape}.to_world.{part}"))
                .to_vec(),
        }
    };
    let named = |shapes: &[&str]| -> Vec<String> { shapes.iter().flat_map(|shape| place(shape)).collect() };
    let world = |name, shapes: &[&str], objects: String| {
        let parts = named(shapes);
        moving(name, &parts.iter().map(String::as_str).collect::<Vec<_>>(), objects)
    };
    let lamp = r#""lamp": {"type": "point", "position": [1, 2, 3], "intensity": 8}"#;
    let beam = r#""beam": {"type": "spot", "intensity": 30, "cutoff_angle": 30, "beam_width": 5,
        "to_world": [{"look_at": {"origin": [-1, 2, 3], "target": [0, 0, 0], "up": [0, 1, 0]}}]}"#;
    let sky = r#""sky": {"type": "constant"}"#;
    let panel = r#""panel": {"type": "rectangle", "emitter": {"type": "area", "radiance": 3},
        "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 100}}, {"translate": [0.2, 2, 0.5]}]}"#;
    let ground = wall("ground", &image([4, 3], ""), -60.0);
    let rough = r#"{"type": "roughconductor", "alpha": 0.4}"#;
    let ball = |bsdf: &str| {
        format!(r#""ball": {{"type": "sphere", "center": [0.1, 0.2, 0.3], "radius": 0.7, "bsdf": {bsdf}}}"#)
    };
    let turned = r#""to_world": [{"rotate": {"axis": [1, 0.3, 0], "angle": -35}}, {"translate": [0.1, 0, 0.2]}]"#;
    let shape = |name: &str, kind: &str, bsdf: &str| format!(r#""{name}": {{{kind}, "bsdf": {bsdf}, {turned}}}"#);
    let painted = format!(r#"{{"type": "diffuse", "reflectance": {}}}"#, image([4, 3], ""));
    let brushed = r#"{"type": "roughconductor", "alpha_u": 0.25, "alpha_v": 0.6}"#;
    let both = |bsdf: &str| format!(r#"{{"type": "twosided", "inner": {bsdf}}}"#);
    let shining = |kind: &str, height: f64| {
        format!(
            r#"{{{kind}, "emitter": {{"type": "area", "radiance": 6}},
                "to_world": [{{"scale": 0.3}}, {{"rotate": {{"axis": [1, 0, 0.2], "angle": 95}}}}, {{"translate": [{height}, 1.8, 0.6]}}]}}"#
        )
    };
    let floor = wall("ground", "0.7", -60.0);
    let gem = format!(
        r#""gem": {{{}, "flip_normals": true, "bsdf": {}, "to_world": [{{"scale": [-0.5, 0.5, 0.5]}}, {{"translate": [-0.8, 0.7, 0.8]}}]}}"#,
        mesh("octahedron"),
        both(brushed)
    );
    let flat = format!(r#"{}, "face_normals": true"#, mesh("octahedron"));
    let ring = shining(&flat, 1.2);
    let relief = |wrap: &str| image([5, 4], &format!(r#", "wrap_mode": "{wrap}""#));
    let displaced = |name: &str, faces: bool, scale: f64, bsdf: &str, place: &str| {
        format!(
            r#""{name}": {{"type": "grid", "resolution": [4, 3], "face_normals": {faces}, "displacement": {},
                "displacement_scale": {scale}, {bsdf}, "to_world": [{place}]}}"#,
            relief(if faces { "mirror" } else { "clamp" })
        )
    };
    vec![
        world(
            "lamps in smoke and fog",
            &[
                "lamp.to_world.translate",
                "ember.to_world.translate",
                "beam.to_world.translate",
                "beam.to_world.rotate",
            ],
            format!(
                r#"{}, {lamp}, {beam}, "ember": {{"type": "point", "position": [0.7, 1.8, -0.3], "intensity": 0.5}}"#,
                clouds()
            ),
        ),
        world(
            "what stands beside smoke and fog",
            &[
                "ground.to_world.translate",
                "plate.to_world.rotate",
                "plate.to_world.scale",
                "ring.to_world.translate",
            ],
            format!(
                r#"{}, {lamp}, "plate": {{"type": "disk", "bsdf": {},
                    "to_world": [{{"scale": 0.4}}, {{"rotate": {{"axis": [1, 0.3, 0], "angle": -35}}}}, {{"translate": [0.2, -0.2, 1.7]}}]}},
                    "ring": {{{flat}, "emitter": {{"type": "area", "radiance": 6}},
                    "to_world": [{{"scale": 0.3}}, {{"rotate": {{"axis": [1, 0, 0.2], "angle": 95}}}}, {{"translate": [0.3, 2, 0.9]}}]}}"#,
                clouds(),
                both(brushed)
            ),
        ),
        world(
            "a textured wall under a point",
            &["ground"],
            format!("{ground}, {lamp}"),
        ),
        world(
            "a ball over a wall under a panel and a sky",
            &["ball", "ground"],
            format!(
                r#"{}, {ground}, {panel}, {sky}"#,
                ball(r#"{"type": "diffuse", "reflectance": 0.6}"#)
            ),
        ),
        world(
            "a painted ball over a wall",
            &["ball"],
            format!(r#"{}, {floor}, {lamp}, {sky}"#, ball(&painted)),
        ),
        world(
            "a rough metal ball",
            &["ball"],
            format!(r#"{}, {floor}, {panel}, {lamp}"#, ball(rough)),
        ),
        world(
            "a rough glass ball before a wall",
            &["ball", "ground"],
            format!(
                r#"{}, {ground}, {lamp}, {sky}"#,
                ball(r#"{"type": "roughdielectric", "alpha": 0.5, "int_ior": 1.3}"#)
            ),
        ),
        world(
            "a brushed disk and a principled cube",
            &["plate", "box"],
            format!(
                r#"{}, {}, {floor}, {panel}, {lamp}"#,
                shape("plate", r#""type": "disk""#, &both(brushed)),
                r#""box": {"type": "cube", "to_world": [{"scale": 0.4}, {"translate": [0.5, 0.6, 0.8]}],
                    "bsdf": {"type": "principled", "roughness": 0.5, "anisotropic": 0.5, "metallic": 0.4}}"#
            ),
        ),
        world(
            "a painted and brushed cylinder",
            &["pipe", "inner"],
            format!(
                r#"{}, {}, {floor}, {panel}, {sky}"#,
                shape(
                    "pipe",
                    r#""type": "cylinder", "radius": 0.5, "p0": [0, -0.2, 0]"#,
                    &both(brushed)
                ),
                r#""inner": {"type": "cylinder", "p0": [-0.9, 0, 1], "p1": [-0.7, 0.8, 1], "radius": 0.3,
                    "bsdf": {"type": "twosided", "paint": {"type": "diffuse", "reflectance": {"type": "bitmap", "data": {"resolution": [4, 3], "value": 0.5}}}}}"#
            ),
        ),
        world(
            "a painted mesh with smooth normals",
            &["coil"],
            format!(
                r#"{}, {floor}, {panel}, {lamp}"#,
                shape("coil", &mesh("octahedron"), &painted)
            ),
        ),
        world(
            "lights that move",
            &["strip", "bulb", "dish", "tube", "brick", "ring"],
            format!(
                r#""strip": {}, "bulb": {}, "dish": {}, "tube": {}, "brick": {}, "ring": {}, {ground}, {}"#,
                shining(r#""type": "rectangle""#, -1.2),
                shining(r#""type": "sphere""#, 1.1),
                shining(r#""type": "disk""#, 0.0),
                shining(r#""type": "cylinder""#, 0.5),
                shining(r#""type": "cube""#, -0.6),
                shining(&mesh("octahedron"), 1.9),
                ball(rough)
            ),
        ),
        moving(
            "a point and a spot that move",
            &[
                "lamp.to_world.translate",
                "beam.to_world.translate",
                "beam.to_world.rotate",
                "ball.to_world.translate",
            ],
            format!(r#"{}, {floor}, {lamp}, {beam}"#, ball(rough)),
        ),
        moving(
            "lamps that move beside smooth glass, a mirror and plastics",
            &[
                "lamp.to_world.translate",
                "beam.to_world.translate",
                "beam.to_world.rotate",
            ],
            format!(
                r#"{}, {}, {}, {floor}, {lamp}, {beam}"#,
                ball(r#"{"type": "dielectric"}"#),
                shape("mirror", r#""type": "disk""#, r#"{"type": "conductor"}"#),
                shape("coat", r#""type": "cube""#, r#"{"type": "plastic", "nonlinear": true}"#)
            ),
        ),
        moving(
            "lamps that move beside bumps, distances, volumes and values of vertices",
            &[
                "lamp.to_world.translate",
                "beam.to_world.translate",
                "beam.to_world.rotate",
            ],
            format!(
                r#"{}, {}, {}, "paper": {{{}, "to_world": [{{"scale": 0.5}}, {{"translate": [0.7, 0.6, 0.8]}}],
                    "bsdf": {{"type": "twosided", "paint": {{"type": "diffuse", "reflectance": {}}}}}}}, {},
                   "sign": {{{}, "to_world": [{{"scale": 0.4}}, {{"translate": [-0.9, 0.3, 0.9]}}], "emitter": {{"type": "area", "radiance": {}}}}},
                   "globe": {{"type": "sphere", "radius": 0.2, "center": [-0.8, 1.0, 0.5], "emitter": {{"type": "area", "radiance": {}}}}},
                   {lamp}, {beam}"#,
                ball(&bump_map("", rough)),
                shape("torus", &distances("torus"), brushed),
                shape(
                    "plate",
                    r#""type": "disk""#,
                    &both(&bump_map(r#", "use_shadowing_function": false"#, &painted))
                ),
                sheet(),
                attribute("vertex_color", 0.8),
                wall("ground", &solid(&grid([3, 2, 3], 3, "")), -60.0),
                sheet(),
                attribute("vertex_color", 2.0),
                solid(&grid([2, 3, 2], 3, "")),
            ),
        ),
        world(
            "normal maps on what moves",
            &["ball", "plate", "box", "ground"],
            format!(
                r#"{}, {}, "box": {{"type": "cube", "to_world": [{{"scale": 0.3}}, {{"translate": [0.8, -0.3, 0.9]}}],
                    "bsdf": {{"type": "blendbsdf", "weight": {}, "a": {}, "b": {}}}}},
                   "ground": {{"type": "rectangle", "bsdf": {},
                    "to_world": [{{"scale": 3}}, {{"translate": [0, 0, -1.2]}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -60}}}}]}}, {panel}, {lamp}"#,
                ball(&normal_map(
                    "",
                    r#"{"type": "roughdielectric", "alpha": 0.5, "int_ior": 1.3}"#
                )),
                shape("plate", r#""type": "disk""#, &both(&normal_map("", &painted))),
                image([4, 3], ""),
                normal_map(r#", "flip_invalid_normals": false"#, &both(brushed)),
                normal_map("", rough),
                normal_map(r#", "use_shadowing_function": false"#, &painted),
            ),
        ),
        moving(
            "lights with pictures that move",
            &[
                "beamer.to_world.translate",
                "beamer.to_world.rotate",
                "slide.to_world.translate",
                "slide.to_world.rotate",
                "ground.to_world.translate",
                "ground.to_world.rotate",
                "ball.to_world.translate",
                "beamer.scale",
            ],
            format!("{}, {ground}, {}", ball(rough), pictured()),
        ),
        moving(
            "vertices",
            &[
                "coil.vertex_positions",
                "ball.to_world.translate",
                "ring.vertex_positions",
                "gem.vertex_normals",
            ],
            format!(
                r#"{}, {}, {}, "ring": {}, {floor}, {panel}, {lamp}"#,
                shape("coil", &flat, &both(brushed)),
                r#""ball": {"type": "sphere", "center": [0.9, 0.9, 0.9], "radius": 0.4}"#,
                gem,
                ring
            ),
        ),
        SmallWorld {
            integrator: r#", "max_depth": 4, "hide_emitters": true"#,
            ..moving(
                "a camera that moves among what moves, past a lamp that it does not see",
                &[
                    "camera.to_world.translate",
                    "camera.to_world.rotate",
                    "ball.to_world.translate",
                ],
                format!(
                    r#"{}, {gem}, {ground}, {panel}, {lamp}, "front": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": 2}},
                        "to_world": [{{"translate": [0, 0.5, 2.5]}}]}}"#,
                    ball(&painted),
                ),
            )
        },
        moving(
            "a camera that moves past what stands still",
            &["camera.to_world.translate", "camera.to_world.rotate"],
            format!(
                r#"{}, {}, {ground}, {panel}, {lamp}, {sky}, "shown": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": {}}},
                        "to_world": [{{"scale": 0.5}}, {{"translate": [-0.8, 0.6, 0.8]}}]}}"#,
                ball(rough),
                shape("plate", r#""type": "disk""#, &both(brushed)),
                image([3, 3], "")
            ),
        ),
        SmallWorld {
            set: vec![(
                "vertex_positions",
                vec![
                    0.8, 0.1, 0.3, -0.7, 0.0, 0.2, 0.1, 0.9, 0.3, 0.0, -0.6, 0.2, 0.1, 0.2, 1.1, 0.0, 0.1, -0.6,
                ],
            )],
            ..moving(
                "vertices of a smooth mesh",
                &["coil.vertex_positions"],
                format!(
                    r#"{}, {floor}, {panel}, {lamp}"#,
                    shape("coil", &mesh("octahedron"), &both(brushed)),
                ),
            )
        },
        moving(
            "displaced grids",
            &["hills.displacement", "sheet.displacement.data", "glow.displacement"],
            format!(
                "{}, {}, {}, {floor}, {panel}, {lamp}",
                displaced(
                    "hills",
                    false,
                    0.4,
                    &format!(r#""bsdf": {}"#, both(brushed)),
                    r#"{"scale": [0.8, 0.7, 1]}, {"rotate": {"axis": [1, 0.2, 0], "angle": -40}}"#
                ),
                displaced(
                    "sheet",
                    true,
                    -0.3,
                    &format!(r#""flip_normals": true, "bsdf": {}"#, both(&painted)),
                    r#"{"scale": [-0.5, 0.5, 0.5]}, {"translate": [-0.9, 0.7, 0.8]}"#
                ),
                displaced(
                    "glow",
                    false,
                    0.2,
                    r#""emitter": {"type": "area", "radiance": 5}"#,
                    r#"{"scale": 0.3}, {"rotate": {"axis": [1, 0, 0.2], "angle": 95}}, {"translate": [1.2, 1.8, 0.6]}"#
                ),
            ),
        ),
    ]
}

/// Worlds in which nothing that moves covers, uncovers or shadows anything, so that derivatives are whole: a wall that fills
/// the view, and a room seen from within.
pub fn continuous_worlds() -> Vec<SmallWorld> {
    let front = |bsdf: &str| {
        format!(
            r#""wall": {{"type": "rectangle", "bsdf": {bsdf}, "to_world": [{{"scale": 6}}, {{"translate": [0, 0, -0.5]}}]}}"#
        )
    };
    let panel = r#""panel": {"type": "rectangle", "emitter": {"type": "area", "radiance": 5},
        "to_world": [{"scale": 0.5}, {"rotate": {"axis": [1, 0, 0], "angle": 120}}, {"translate": [0.2, 1.8, 1]}]"#;
    let bulb = r#""bulb": {"type": "sphere", "radius": 0.3, "emitter": {"type": "area", "radiance": 4},
        "to_world": [{"translate": [-2.2, 0.2, 0.8]}]}"#;
    let lamp = r#""lamp": {"type": "point", "position": [0.5, 0.7, 1.5], "intensity": 8}"#;
    let spot = r#""beam": {"type": "spot", "intensity": 30, "cutoff_angle": 35, "beam_width": 5,
        "to_world": [{"look_at": {"origin": [-1, 1, 3], "target": [0, 0, -0.5], "up": [0, 1, 0]}}]}"#;
    let painted = format!(
        r#"{{"type": "diffuse", "reflectance": {}}}"#,
        image([4, 4], r#", "to_uv": [{"scale": 3}]"#)
    );
    let rough = r#"{"type": "roughconductor", "alpha_u": 0.3, "alpha_v": 0.6}"#;
    let of = |shapes: &[&str]| -> Vec<String> {
        let parts = ["translate", "rotate", "scale"];
        shapes
            .iter()
            .flat_map(|shape| parts.map(|part| format!("{shape}.to_world.{part}")))
            .collect()
    };
    let aimed = || {
        [
            "lamp.to_world.translate",
            "beam.to_world.translate",
            "beam.to_world.rotate",
        ]
        .map(String::from)
        .to_vec()
    };
    let world = |name, parts: Vec<String>, objects: String| {
        moving(name, &parts.iter().map(String::as_str).collect::<Vec<_>>(), objects)
    };
    vec![
        world(
            "a painted wall under lights that move",
            [of(&["panel", "bulb"]), aimed()].concat(),
            format!("{}, {panel}}}, {bulb}, {lamp}, {spot}", front(&painted)),
        ),
        world(
            "lights and a wall that move around smoke and fog",
            [of(&["wall", "panel"]), aimed()].concat(),
            format!(
                r#"{}, {lamp}, {spot}, {panel}}}, "wall": {{"type": "rectangle", "bsdf": {rough},
                    "to_world": [{{"scale": 6}}, {{"translate": [0, 0, -1.5]}}]}}"#,
                clouds()
            ),
        ),
        world(
            "a painted wall that moves",
            of(&["wall"]),
            format!("{}, {panel}}}, {lamp}, {spot}", front(&painted)),
        ),
        world(
            "a painted wall under pictures, all of which move",
            [
                of(&["wall"]),
                [
                    "beamer.to_world.translate",
                    "beamer.to_world.rotate",
                    "slide.to_world.translate",
                    "slide.to_world.rotate",
                ]
                .map(String::from)
                .to_vec(),
            ]
            .concat(),
            format!("{}, {}", front(&painted), pictured()),
        ),
        world(
            "a camera before a painted wall",
            ["camera.to_world.translate", "camera.to_world.rotate"]
                .map(String::from)
                .to_vec(),
            format!("{}, {panel}}}, {bulb}, {lamp}, {spot}", front(&painted)),
        ),
        world(
            "a displaced wall",
            vec!["wall.displacement".to_string()],
            format!(
                r#""wall": {{"type": "grid", "resolution": [12, 12], "to_world": [{{"scale": 6}}, {{"translate": [0, 0, -0.5]}}],
                    "displacement": {}, "displacement_scale": 0.15, "bsdf": {rough}}}, {bulb}, {lamp}"#,
                image([4, 4], r#", "wrap_mode": "clamp""#)
            ),
        ),
        world(
            "a brushed wall that moves",
            of(&["wall"]),
            format!("{}, {bulb}, {lamp}", front(rough)),
        ),
        world(
            "a wall with a normal map that moves",
            [
                of(&["wall"]),
                ["lamp.to_world.translate", "beam.to_world.rotate"]
                    .map(String::from)
                    .to_vec(),
            ]
            .concat(),
            format!("{}, {bulb}, {lamp}, {spot}", front(&normal_map("", &painted))),
        ),
        SmallWorld {
            sensor: r#", "to_world": [{"look_at": {"origin": [0, 0, 1.5], "target": [0, 0.1, 0], "up": [0, 1, 0]}}]"#,
            ..world(
                "a room that moves, its lamp too",
                [of(&["room"]), vec!["lamp.to_world.translate".to_string()]].concat(),
                format!(
                    r#""room": {{"type": "cube", "flip_normals": true, "to_world": [{{"scale": 2}}],
                        "bsdf": {{"type": "diffuse", "reflectance": 0.7}}}}, {lamp}"#
                ),
            )
        },
    ]
}
