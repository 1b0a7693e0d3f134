//! Paths all of whose points and directions are exact in f32: a ray that meets all surfaces, flat and curved, at right angles.
//! There the replay in f64 and differences of the whole path agree to 1e-8, only the rounding of f64 being left. Elsewhere the
//! rounding of points to f32 decides (`replay_agrees_with_differences_of_the_whole_path`).

use std::path::Path;

use prbopt::gradcheck::paths::objective::{CastPath, PathObjective};
use prbopt::gradcheck::{Options, Setup};
use prbopt::params::Quantity;
use prbopt::resident::layout::gradient;
use prbopt::scene;

use super::small::draw;
use super::trace::{self, Values};
use super::{WEIGHT, apart, choices, told};

/// Surfaces below the ray, and the parameters to differentiate by.
struct World {
    name: &'static str,
    objects: String,
    wanted: &'static [&'static str],
}

/// A normal map of 4 × 4 texels over a BSDF; every texel is the surface's own normal.
fn mapped(bsdf: &str) -> String {
    format!(
        r#"{{"type": "normalmap", "use_shadowing_function": false, "inner": {bsdf},
            "normalmap": {{"type": "bitmap", "wrap_mode": "clamp", "data": {{"resolution": [4, 4], "value": [0.5, 0.5, 1]}}}}}}"#
    )
}

/// A rectangle of half the side `scale` at this height, which looks up or down. Turned by its matrix: the cosine of 90° is not
/// zero in f32.
fn pane(name: &str, bsdf: &str, [scale, z]: [f64; 2], up: bool) -> String {
    let down = if up { 1.0 } else { -1.0 };
    format!(
        r#"{name}: {{"type": "rectangle", "bsdf": {bsdf},
            "to_world": [{{"matrix": [[{scale}, 0, 0, 0], [0, {}, 0, 0], [0, 0, {down}, {z}], [0, 0, 0, 1]]}}]}}"#,
        scale * down
    )
}

/// A ball of this radius about a point of the ray, with its polar axis at right angles to the ray.
fn ball(bsdf: &str, radius: f64, z: f64) -> String {
    format!(
        r#""ball": {{"type": "sphere", "bsdf": {bsdf}, "to_world": [{{"matrix":
            [[{radius}, 0, 0, {}], [0, 0, {}, {}], [0, {radius}, 0, {z}], [0, 0, 0, 1]]}}]}}"#,
        RAY[0], -radius, RAY[1]
    )
}

/// A rectangle that emits a picture of 16 × 8 texels, upwards or downwards.
fn sheet(name: &str, z: f64, up: bool) -> String {
    let bsdf = r#"{"type": "diffuse", "reflectance": 0}, "emitter": {"type": "area", "radiance":
        {"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [16, 8], "value": [0.5, 0.5, 0.5]}}}"#;
    pane(name, bsdf, [8.0, z], up)
}

/// The place (x, y) at which the ray goes straight down, and the height of the camera, where it starts.
const RAY: [f64; 2] = [0.75, 0.25];
const HEIGHT: f32 = 4.0;

fn worlds() -> Vec<World> {
    let glass = mapped(r#"{"type": "dielectric", "int_ior": 1.5, "ext_ior": 1}"#);
    let metal = mapped(r#"{"type": "conductor", "eta": 0.25, "k": 3.5}"#);
    vec![
        World {
            name: "a slab and a ball over a sheet",
            objects: [
                pane(r#""front""#, &glass, [2.0, 2.0], true),
                pane(r#""back""#, &glass, [2.0, 1.5], false),
                ball(&glass, 0.5, 0.0),
                sheet(r#""far""#, -2.0, true),
            ]
            .join(", "),
            wanted: &[
                "front.bsdf.normalmap",
                "back.bsdf.normalmap",
                "ball.bsdf.normalmap",
                "front.bsdf.inner.eta",
                "ball.bsdf.inner.eta",
                "far.emitter.radiance",
            ],
        },
        World {
            name: "a ball that moves before a mirror that does",
            objects: [
                ball(&glass, 0.5, 0.0),
                pane(r#""mirror""#, &metal, [2.0, -1.0], true),
                sheet(r#""near""#, 6.0, false),
            ]
            .join(", "),
            wanted: &[
                "ball.to_world.translate",
                "mirror.to_world.rotate",
                "mirror.bsdf.normalmap",
            ],
        },
        World {
            name: "a camera that moves over a curved mirror",
            objects: [ball(&metal, 1.0, -1.0), sheet(r#""near""#, 6.0, false)].join(", "),
            wanted: &[
                "camera.to_world.translate",
                "camera.to_world.rotate",
                "ball.bsdf.normalmap",
            ],
        },
    ]
}

impl World {
    fn setup(&self) -> Setup {
        let wanted: Vec<String> = self.wanted.iter().map(|path| format!(r#""{path}": {{}}"#)).collect();
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached", "max_depth": 6, "rr_depth": 100}},
                "camera": {{"type": "perspective", "fov": 12,
                    "to_world": [{{"matrix": [[1, 0, 0, {}], [0, -1, 0, {}], [0, 0, -1, {HEIGHT}], [0, 0, 0, 1]]}}],
                    "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
                {}, "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}}}"#,
            RAY[0],
            RAY[1],
            self.objects,
            wanted.join(", ")
        );
        let scene = scene::parse(&text, Path::new("exact.json")).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let mut setup = Setup::new(&scene, &Options::default()).expect("small worlds are sound");
        setup.spp = 4;
        for (i, parameter) in setup.params.parameters.iter_mut().enumerate() {
            if parameter.quantity == Quantity::Light {
                for (j, value) in parameter.values.iter_mut().enumerate() {
                    *value = 0.2 + draw(5, i as u32, j as u32);
                }
            }
        }
        setup.resident.place_views(&setup.params);
        setup
    }
}

/// Derivatives of a path's radiance by all checked parameters, by the replay and by differences of the whole path, and the number
/// of surfaces that turn it. `None` where `trace` finds no such path.
fn both(
    setup: &Setup,
    objective: &PathObjective,
    values: &[Vec<f64>],
    cast: &CastPath,
) -> Option<([Vec<f64>; 2], usize)> {
    let view = objective.view();
    let seen = objective.gather(&objective.fields, cast);
    let ray = (cast.ray.origin.map(f64::from), cast.ray.direction.map(f64::from));
    let mut replayed = objective.fields.zeros();
    let (path, _) = objective.replay(WEIGHT, cast, &mut objective.sums(&mut replayed));
    // Along this ray, paths of other lengths have the same radiance: the depth tells them apart. Some go on from a sheet, of
    // reflectance 0.
    if [0, 1].iter().any(|&a| path.origin[a] != cast.ray.origin[a]) {
        return None;
    }
    let mut of_length = choices().filter(|reflects| reflects.len() + 1 == path.depth as usize);
    let (reflects, _) = of_length.find_map(|reflects| told(&view, values, ray, reflects, seen))?;
    let mut moved = values.to_vec();
    let weighed = |now: &[Vec<f64>]| {
        let here = Values { now, recorded: values };
        let found = trace::radiance(&view, &here, ray, &reflects).expect("it stays the same path");
        (0..3).map(|c| WEIGHT[c] * found.radiance[c]).sum::<f64>()
    };
    // The walk rounds the probability of the path's choices to f32: scaled to the radiance that it found.
    let scale = (0..3).map(|c| WEIGHT[c] * seen[c]).sum::<f64>() / weighed(values);
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for &slot in &setup.checked {
        for flat in 0..values[slot].len() {
            let mut difference = |step: f64| {
                let [after, before] = [step, -step].map(|step| {
                    moved[slot][flat] = values[slot][flat] + step;
                    weighed(&moved)
                });
                moved[slot][flat] = values[slot][flat];
                scale * (after - before) / (2.0 * step)
            };
            let [wide, narrow] = [difference(1e-3), difference(5e-4)];
            found.push(replayed[slot][flat]);
            expected.push((4.0 * narrow - wide) / 3.0);
        }
    }
    Some(([found, expected], reflects.len()))
}

#[test]
fn replay_is_exact_where_f32_is() {
    for world in worlds() {
        let setup = world.setup();
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let lift = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let values: Vec<Vec<f64>> = setup.params.parameters.iter().map(|p| lift(&p.values)).collect();
        let (mut most, mut turns, mut count) = (0.0f64, 0, 0);
        let mut reached = vec![false; setup.checked.len()];
        for cast in &objective.casts {
            let mut cast = *cast;
            cast.ray.origin = [RAY[0] as f32, RAY[1] as f32, HEIGHT];
            cast.ray.direction = [0.0, 0.0, -1.0];
            let Some(([found, expected], here)) = both(&setup, &objective, &values, &cast) else {
                continue;
            };
            (most, turns, count) = (most.max(apart(&found, &expected)), turns.max(here), count + 1);
            let mut from = 0;
            for (reached, &slot) in reached.iter_mut().zip(&setup.checked) {
                *reached |= expected[from..from + values[slot].len()].iter().any(|d| d.abs() > 1e-3);
                from += values[slot].len();
            }
        }
        println!("{}: {count} paths of up to {turns} turns, {most:.1e} apart", world.name);
        assert!(
            count > 20 && reached.iter().all(|reached| *reached),
            "{}: {reached:?}",
            world.name
        );
        assert!(most < 1e-8, "{}: {most:e}", world.name);
    }
}
