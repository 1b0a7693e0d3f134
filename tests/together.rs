//! Paths that are followed together (vectorised) have the bits of paths followed one by one, in every small world.

mod small;

use std::cell::Cell;

use prbopt::gradcheck::Options;
use prbopt::gradcheck::paths::objective::{CastPath, PathObjective};
use prbopt::params::ParamSet;
use prbopt::resident::layout::medium::SEALED;
use prbopt::resident::layout::{MediumRecord, TextureRecord, VolumeRecord, gradient, leaf, slots_of};
use prbopt::transport::lookup::grid::Stencil;
use prbopt::transport::lookup::volume::volume_adjoint;
use prbopt::transport::mode::PRIMAL;
use prbopt::transport::paths::flights::{Arrival, Departure, fly_side_by_side};
use prbopt::transport::paths::packet::{Pilot, backpropagate_together, gather_together};
use prbopt::transport::paths::path_state::Gathered;
use prbopt::transport::paths::random_walks::{Matter, Send, Walker, walk_side_by_side};
use prbopt::transport::paths::replay_cache::ReplayCache;
use prbopt::transport::paths::starts::{Begin, Starts};
use prbopt::transport::paths::volpath::{backpropagate, gather};
use prbopt::transport::paths::walk_notes::{Run, WalkNotes, send_noted};
use prbopt::transport::paths::wave::block::{Block, Lanes, Lanes3, TEXTURES, Vertices};
use prbopt::transport::paths::wave::shading::{Lamps, prepare, shade, slopes};
use prbopt::transport::paths::wave::{Room, is_among_surfaces};
use prbopt::transport::scene::batch::images::{Texels, image_together, texels_together};
use prbopt::transport::scene::batch::{Hits, Rays, Seen, SkyMap, blocked_together, meeting_together, nearest_together};
use prbopt::transport::scene::records::{Fields, SceneView, Sink};
use small::worlds::{SmallWorld, cube, grid, image, mesh, wall, worlds};

/// A `Pilot` as the compiler makes it for any processor, which counts flights, random walks and vertices.
#[derive(Default)]
struct Plain(Cell<usize>, Cell<usize>, Cell<usize>);

impl Pilot for Plain {
    fn is_wide(&self) -> bool {
        true
    }

    fn look(&self, scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits) {
        nearest_together(scene, rays, count, hits);
    }

    fn cast(&self, scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>) {
        blocked_together(scene, rays, count, blocked);
    }

    fn meet(&self, scene: &SceneView, shapes: &[u32], rays: &Rays, count: usize, meeting: &mut Vec<u32>) {
        meeting_together(scene, shapes, rays, count, meeting);
    }

    fn look_up(&self, scene: &SceneView, map: &SkyMap, directions: &[Lanes3], pdfs: bool, seen: &mut Vec<Seen>) {
        map.look_up_all(scene, directions, pdfs, seen);
    }

    fn image(&self, record: &TextureRecord, data: &[f32], uv: &[Lanes<f32>; 2]) -> Lanes3 {
        image_together(record, data, uv)
    }

    fn texels(&self, record: &TextureRecord, uv: &[Lanes<f32>; 2]) -> Texels {
        texels_together(record, uv)
    }

    fn prepare(&self, scene: &SceneView, lamps: &Lamps, block: &mut Block) {
        prepare(scene, lamps, block);
    }
    fn shade(&self, scene: &SceneView, lamps: &Lamps, mode: u8, block: &mut Block) {
        self.2.set(self.2.get() + block.at.count);
        shade(scene, lamps, mode, block);
    }

    fn slopes(&self, block: &Vertices, wo: &Lanes3, d: &Lanes3, indices: bool, all: &mut [Lanes3; TEXTURES]) {
        slopes(block, wo, d, indices, all);
    }

    fn walk(&self, mode: u8, matter: &Matter, walkers: &mut [Walker], notes: &mut WalkNotes, send: &mut Send) {
        self.1.set(self.1.get() + walkers.len());
        walk_side_by_side(mode, matter, walkers, notes, send);
    }

    fn send_noted(&self, matter: &Matter, run: Run, send: &mut Send) {
        send_noted(matter, run, send);
    }

    fn fly(
        &self,
        scene: &SceneView,
        medium: u32,
        values: [&[f32]; 2],
        departures: &[Departure],
        arrivals: &mut [Arrival],
    ) {
        self.0.set(self.0.get() + departures.len());
        fly_side_by_side(scene, medium, values, departures, arrivals);
    }
}

struct Values<'a>(&'a ParamSet);

impl Fields<f32> for Values<'_> {
    const TWO_SIDED: bool = false;
    const TRACKED: bool = false;
    fn integrand(&self, slot: u32) -> &[f32] {
        &self.0.parameters[slot as usize].values
    }
    fn sampling(&self, slot: u32) -> &[f32] {
        self.integrand(slot)
    }
}

/// All contributions of an adjoint, in an order of their own: slot, entry, bits; and the slots whose derivatives are not wanted.
#[derive(Default)]
struct Contributions(Vec<(u32, usize, u32)>, Vec<u32>);

impl Contributions {
    fn sorted(mut self) -> Vec<(u32, usize, u32)> {
        // Zeros of either sign, which change no sum, are left out: only a path that is followed alone sends them, for occluded
        // lights.
        self.0
            .retain(|(slot, _, bits)| !self.1.contains(slot) && bits << 1 != 0);
        self.0.sort_unstable();
        self.0
    }
}

impl Sink<f32> for Contributions {
    fn wants(&self, slot: u32) -> bool {
        !self.1.contains(&slot)
    }
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f32; 3], _: u32) {
        volume_adjoint(volume, at, d, |entry, d| self.0.push((volume.slot, entry, d.to_bits())));
    }
    fn value(&mut self, slot: u32, d: [f32; 3], channels: u32) {
        for c in 0..channels as usize {
            self.0.push((slot, c, d[c].to_bits()));
        }
    }
    fn entries(&mut self, slot: u32, first: u32, d: [f32; 3], channels: u32) {
        for c in 0..channels {
            self.0.push((slot, (first + c) as usize, d[c as usize].to_bits()));
        }
    }
    fn background(&mut self, d: [f32; 3], d_radiance: [f32; 3]) {
        self.0.push((u32::MAX, 0, d[0].to_bits()));
        self.0.extend(d_radiance.map(|d| (u32::MAX, 1, d.to_bits())));
    }
}

/// What is compared of a path.
fn state(gathered: &Gathered<f32>) -> ([u32; 3], u32) {
    (gathered.radiance.0.map(f32::to_bits), gathered.count)
}

/// Clouds that the table has not: cells without matter, majorants of several cells an axis and of one, a flat grid.
fn clouds() -> Vec<SmallWorld> {
    let sky = r#""sky": {"type": "constant"}"#;
    let cloud = |size, scale: f32| SmallWorld {
        objects: format!(
            r#"{}, {sky}"#,
            cube(&format!(
                r#""sigma_t": {}, "albedo": {}, "scale": {scale}, "phase": {{"type": "hg", "g": -0.3}}"#,
                grid(size, 1, ""),
                grid(size, 3, "")
            ))
        ),
        zeros: vec![("sigma_t", 1, 0)],
        set: Vec::new(),
        ..SmallWorld::default()
    };
    let mut all = vec![cloud([9, 17, 33], 2.0), cloud([1, 1, 1], 4.0), cloud([40, 1, 2], 3.0)];
    all[0].zeros = vec![("sigma_t", 3, 0)];
    all[1].zeros.clear();
    all[2].zeros = vec![("sigma_t", 2, 1)];
    all
}

/// A lamp with a surface and a point light.
const LAMPS: &str = r#""lamp": {"type": "sphere", "center": [1.5, 1.5, 1], "radius": 0.5, "emitter": {"type": "area"}},
                       "point": {"type": "point", "position": [-1, 2, 3]}"#;

/// Translucent objects: shells of glass around a medium of one extinction, whose albedo is a number or a grid; meshes, and one
/// with a ball inside, under lamps whose light does not reach the medium straight.
fn translucent() -> Vec<SmallWorld> {
    let thing = |name, shell: &str, medium: &str, integrator| SmallWorld {
        name,
        integrator,
        objects: format!(
            r#""thing": {{{shell}, "interior": {{"type": "homogeneous", {medium}}}}}, "sky": {{"type": "constant"}}"#
        ),
        ..SmallWorld::default()
    };
    let lit = |mut world: SmallWorld, more: &str| {
        world.objects.push_str(&format!(r#", {LAMPS}{more}"#));
        world
    };
    let cube = r#""type": "cube", "to_world": [{"scale": [0.9, 0.7, 0.4]}, {"rotate": {"axis": [1, 2, 3], "angle": 25}}],
                  "bsdf": {"type": "dielectric"}"#;
    let ball = r#""type": "sphere", "radius": 0.8, "bsdf": {"type": "roughdielectric", "alpha": 0.3}"#;
    let mesh = format!(r#"{}, "bsdf": {{"type": "dielectric"}}"#, mesh("octahedron"));
    let (colored, grey) = (grid([5, 4, 3], 3, ""), grid([2, 6, 5], 1, ""));
    let mut all = vec![
        thing(
            "a cube of a colored grid",
            cube,
            &format!(r#""sigma_t": 20, "albedo": {colored}"#),
            r#", "max_depth": 40, "rr_depth": 1000"#,
        ),
        thing(
            "a ball of a grey grid, with roulette",
            ball,
            &format!(r#""sigma_t": 9, "albedo": {grey}, "phase": {{"type": "hg", "g": 0.6}}"#),
            r#", "max_depth": 60, "rr_depth": 3"#,
        ),
        thing(
            "a ball of one color",
            ball,
            r#""sigma_t": 12, "albedo": [0.9, 0.5, 0.2]"#,
            r#", "max_depth": 12"#,
        ),
        thing(
            "a cube of one grey",
            cube,
            r#""sigma_t": 7, "albedo": 0.7"#,
            r#", "max_depth": 25"#,
        ),
        thing(
            "a mesh of a colored grid",
            &mesh,
            &format!(r#""sigma_t": 15, "albedo": {colored}"#),
            r#", "max_depth": 30"#,
        ),
        lit(
            thing(
                "a mesh of one color under lamps",
                &mesh,
                r#""sigma_t": 10, "albedo": [0.9, 0.5, 0.2]"#,
                r#", "max_depth": 30"#,
            ),
            "",
        ),
        lit(
            thing(
                "a cube with a ball in it",
                cube,
                r#""sigma_t": 5, "albedo": [0.6, 0.9, 0.7]"#,
                r#", "max_depth": 25"#,
            ),
            r#", "kernel": {"type": "sphere", "radius": 0.3, "bsdf": {"type": "diffuse"}}"#,
        ),
    ];
    all[0].zeros = vec![("albedo", 7, 2)];
    all[1].zeros = vec![("albedo", 2, 0)];
    all
}

/// Rooms of opaque surfaces: all kinds that are shaded in lanes (SIMD) beside some that are not, twosided and textured, under
/// lights that are drawn in lanes (rectangles and spheres, alike or by weight) and others, with roulette and without.
fn rooms() -> Vec<SmallWorld> {
    let ball = |name: &str, center: [f32; 3], bsdf: &str| {
        format!(r#""{name}": {{"type": "sphere", "center": {center:?}, "radius": 0.45, "bsdf": {bsdf}}}"#)
    };
    let rough = r#"{"type": "roughconductor", "distribution": "ggx", "alpha": 0.2, "eta": 0.2, "k": 3.9}"#;
    let brushed = format!(r#"{{"type": "twosided", "bsdf": {rough}}}"#);
    let things = [
        ball("gold", [-0.5, -0.5, 0.4], rough),
        ball("glass", [0.5, -0.4, 0.6], r#"{"type": "dielectric", "int_ior": 1.5}"#),
        ball("mirror", [-0.4, 0.5, -0.2], r#"{"type": "conductor", "eta": 0.3, "k": 3}"#),
        ball("paint", [0.5, 0.5, 0.0], r#"{"type": "principled", "roughness": 0.4, "metallic": 0.3}"#),
        format!(
            r#""sheet": {{"type": "rectangle", "bsdf": {brushed},
                "to_world": [{{"scale": 0.4}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 140}}}}, {{"translate": [0, 0, 1]}}]}}"#
        ),
        wall("floor", &image([4, 3], r#", "to_uv": [{"scale": [3, 2]}]"#), -90.0),
        r#""back": {"type": "rectangle", "to_world": [{"scale": 3}, {"translate": [0, 0, -1.3]}],
            "bsdf": {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": [0.7, 0.2, 0]}}}"#
            .to_string(),
    ]
    .join(", ");
    let panel = |more: &str| {
        format!(
            r#""panel": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": [3, 2, 1] {more}}},
                "to_world": [{{"scale": 0.7}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 2, 0]}}]}}"#
        )
    };
    let bulb = r#""bulb": {"type": "sphere", "center": [1.4, 1.2, 0.8], "radius": 0.3, "emitter": {"type": "area"}}"#;
    let brick = r#""brick": {"type": "cube", "emitter": {"type": "area"},
        "to_world": [{"scale": 0.2}, {"translate": [-1.5, 1.2, 0.5]}]}"#;
    let room = |name, integrator, lights: String, envmap| SmallWorld {
        name,
        integrator,
        objects: format!("{things}, {lights}"),
        envmap,
        zeros: vec![("floor.bsdf.reflectance", 4, 0)],
        ..SmallWorld::default()
    };
    let point = r#""point": {"type": "point", "position": [1, 2, 3]}"#;
    vec![
        room(
            "a room under a panel",
            r#", "max_depth": 6, "rr_depth": 1000"#,
            panel(""),
            false,
        ),
        room(
            "a room under a panel and a bulb, with roulette",
            r#", "max_depth": 12, "rr_depth": 2"#,
            format!("{}, {bulb}", panel("")),
            false,
        ),
        room(
            "a room under lights of different weights",
            r#", "max_depth": 5"#,
            format!("{}, {bulb}", panel(r#", "sampling_weight": 3"#)),
            false,
        ),
        room(
            "a room under a cube, a point and a sky",
            r#", "max_depth": 7, "rr_depth": 3"#,
            format!("{brick}, {point}, {}", panel("")),
            true,
        ),
        // Paths in the shell end when they have 100 edges, those that leave it soon have none left.
        room(
            "a room in a white shell",
            r#", "max_depth": 100, "rr_depth": 1000"#,
            format!(
                r#"{}, {bulb}, "shell": {{"type": "sphere", "radius": 9, "flip_normals": true,
                    "bsdf": {{"type": "diffuse", "reflectance": [1, 0.9, 1]}}}}"#,
                panel("")
            ),
            false,
        ),
        room(
            "a room in the dark",
            r#", "max_depth": 4"#,
            r#""sky": {"type": "constant"}"#.into(),
            false,
        ),
    ]
}

/// Compares paths followed together with paths followed alone, but for derivatives by the slots `unwanted`; the numbers of
/// flights, random walks and vertices that were made together.
fn compare(small: &SmallWorld, estimator: u32, unwanted: impl Fn(&SceneView) -> Vec<u32>) -> [usize; 3] {
    let mut setup = small.setup("paired", &Options::default());
    setup.spp = 24;
    let objective = PathObjective::new(&setup, estimator);
    let (scene, values, pilot) = (objective.view(), Values(&setup.params), Plain::default());
    // Primal.
    let rays: Vec<_> = objective
        .casts
        .iter()
        .map(|cast| (cast.ray, cast.medium, cast.streams))
        .collect();
    let mut together = Vec::new();
    let mut room = Room::default();
    let feed = |begin: &mut Begin<usize>| {
        for (number, (ray, medium, streams)) in rays.iter().enumerate() {
            begin(&[number], &Starts::of_one(ray, *medium, streams));
        }
    };
    gather_together(
        &scene,
        &values,
        &pilot,
        feed,
        &mut room,
        |number, weight, gathered, straight| {
            assert_eq!(weight, 1.0);
            assert_eq!(number, together.len(), "in order");
            together.push((state(gathered), straight));
        },
    );
    let alone: Vec<_> = rays
        .iter()
        .map(|(ray, medium, streams)| {
            let path = gather::<f32, _, PRIMAL>(&scene, &values, ray, *medium, streams.walk());
            (state(&path.gathered), path.straight)
        })
        .collect();
    assert_eq!(together, alone, "{}", small.name);
    // Adjoint.
    let weight = |cast: &CastPath| objective.weight(3, cast).map(|w| w as f32);
    let begun: Vec<_> = objective
        .casts
        .iter()
        .map(|cast| ((cast.ray, cast.medium, cast.streams), weight(cast)))
        .collect();
    let mut caches = Vec::<ReplayCache<f32>>::new();
    let sink = || Contributions(Vec::new(), unwanted(&scene));
    // With room for the notes of all random walks, and for some of them.
    let [(sent, states, walks), (sent_in_part, states_in_part, more_walks)] = [4096, 8].map(|room| {
        let (mut sent, mut states, before) = (sink(), Vec::new(), pilot.1.get());
        let feed = |begin: &mut Begin<[f32; 3]>| {
            for ((ray, medium, streams), d) in &begun {
                begin(&[*d], &Starts::of_one(ray, *medium, streams));
            }
        };
        backpropagate_together(
            &scene,
            &values,
            &pilot,
            feed,
            &mut caches,
            &mut Room::default(),
            &mut WalkNotes::with_room(room),
            &mut sent,
            |first, replay| {
                states.push((state(first), state(replay)));
            },
        );
        (sent.sorted(), states, pilot.1.get() - before)
    });
    assert!(sent == sent_in_part && states == states_in_part, "{}", small.name);
    assert!(
        walks == 0 || walks < more_walks,
        "{}: {walks} and {more_walks}",
        small.name
    );
    let mut sent_alone = sink();
    assert_eq!(states.len(), begun.len(), "{}", small.name);
    for (&((ray, medium, streams), d), (first, replay)) in begun.iter().zip(&states) {
        let [walk, extra] = [streams.walk(), streams.adjoint()];
        let (first_alone, replay_alone) = backpropagate(&scene, &values, &ray, medium, walk, extra, d, &mut sent_alone);
        let (straight, first_alone, replay_alone) = (
            first_alone.straight,
            state(&first_alone.gathered),
            state(&replay_alone.gathered),
        );
        // Of a path that nothing scatters and that has no derivatives, a wave may only count the light.
        let only_counted = (&([0; 3], first_alone.1), &([0; 3], 0));
        let is_only_counted = straight && is_among_surfaces(&scene) && (first, replay) == only_counted;
        assert!(
            is_only_counted || (first, replay) == (&first_alone, &replay_alone),
            "{}: {first:?}, {replay:?} in place of {first_alone:?}, {replay_alone:?}",
            small.name
        );
    }
    let sent_alone = sent_alone.sorted();
    let first = sent.iter().zip(&sent_alone).position(|(a, b)| a != b);
    let around = first.map(|i| (sent[i], sent_alone[i]));
    assert!(
        sent == sent_alone,
        "{}: {} and {} contributions, of which these are the first that differ: {around:?}",
        small.name,
        sent.len(),
        sent_alone.len()
    );
    [pilot.0.get(), pilot.1.get(), pilot.2.get()]
}

#[test]
fn paths_together_are_paths_alone() {
    let mut flights = 0;
    for (i, small) in worlds().into_iter().chain(clouds()).chain(translucent()).enumerate() {
        let estimator = [gradient::PAIRED, gradient::DRT, gradient::FREE_FLIGHT][i % 3];
        flights += compare(&small, estimator, |_| Vec::new())[0];
    }
    assert!(flights > 10_000, "only {flights} flights were made side by side");
}

#[test]
fn random_walks_together_are_random_walks_alone() {
    for small in translucent() {
        let all_but_albedo = |scene: &SceneView| {
            let extinctions = scene
                .media
                .iter()
                .map(|medium| scene.volumes[medium.sigma_t as usize].slot);
            extinctions.chain(scene.phases.iter().map(|phase| phase.slot)).collect()
        };
        let [_, walks, _] = compare(&small, gradient::PAIRED, all_but_albedo);
        assert!(walks > 150, "{}: only {walks} random walks", small.name);
    }
}

#[test]
fn vertices_together_are_vertices_alone() {
    for small in rooms() {
        // All derivatives, all but those by indices of conductors, those by textures alone, those by lights alone, and none.
        let nothing = |_: &SceneView| Vec::new();
        let lights = |scene: &SceneView| {
            let of_lights = scene.lights.iter().map(|light| light.slot);
            // The map's texels go to a slot of their own here.
            of_lights.chain([scene.background, u32::MAX]).collect()
        };
        let textures = |scene: &SceneView| {
            let all = 0..scene.textures.len() as u32;
            all.flat_map(|texture| slots_of(scene.textures, texture)).collect()
        };
        let all = |scene: &SceneView| [lights(scene), textures(scene)].concat();
        let indices = |scene: &SceneView| {
            let conductors = scene.leaves.iter().filter(|leaf| leaf.kind == leaf::ROUGH_CONDUCTOR);
            let of_index = conductors.flat_map(|leaf| leaf.first_texture..leaf.first_texture + 2);
            of_index.map(|texture| scene.textures[texture as usize].slot).collect()
        };
        for unwanted in [
            &nothing as &dyn Fn(&SceneView) -> Vec<u32>,
            &indices,
            &lights,
            &textures,
            &all,
        ] {
            let [.., vertices] = compare(&small, gradient::PAIRED, unwanted);
            assert!(vertices > 500, "{}: only {vertices} vertices in lanes", small.name);
        }
    }
}

#[test]
fn derivatives_do_not_depend_on_what_else_is_sought() {
    let mut spared = 0;
    for (i, small) in worlds().into_iter().chain(clouds()).enumerate() {
        let setup = small.setup("paired", &Options::default());
        let objective = PathObjective::new(&setup, [gradient::PAIRED, gradient::DRT][i % 2]);
        let (scene, values) = (objective.view(), Values(&setup.params));
        let extinctions: Vec<u32> = scene
            .media
            .iter()
            .map(|medium| scene.volumes[medium.sigma_t as usize].slot)
            .collect();
        let derivatives = |unwanted: &[u32]| {
            let mut sent = Contributions(Vec::new(), unwanted.to_vec());
            for cast in &objective.casts {
                let d = objective.weight(3, cast).map(|w| w as f32);
                let begun = (&cast.ray, cast.medium, cast.streams.walk(), cast.streams.adjoint());
                backpropagate(&scene, &values, begun.0, begun.1, begun.2, begun.3, d, &mut sent);
            }
            let all = sent.0.len();
            sent.1.extend(&extinctions);
            (all, sent.sorted())
        };
        let ((all, with), (some, without)) = (derivatives(&[]), derivatives(&extinctions));
        assert_eq!(with, without, "{}", small.name);
        spared += all - some;
    }
    assert!(spared > 10_000, "only {spared} derivatives by extinction were spared");
}

/// No connections to lights are made in sealed media; a picture has the same mean if they are made: of both means over 16 pixels
/// and 4000 paths each the standard error is below 2 %, and they differ by less than four.
#[test]
fn sealed_media_miss_no_light() {
    for small in translucent() {
        let mut setup = small.setup("paired", &Options::default());
        setup.spp = 4000;
        let objective = PathObjective::new(&setup, gradient::PAIRED);
        let (scene, values) = (objective.view(), Values(&setup.params));
        let lit = scene.settings.lights > 0;
        assert!(scene.media.iter().all(|medium| medium.has(SEALED)), "{}", small.name);
        if !lit {
            continue;
        }
        let open: Vec<_> = scene
            .media
            .iter()
            .map(|&medium| MediumRecord {
                flags: medium.flags & !SEALED,
                ..medium
            })
            .collect();
        let of = |media| {
            let scene = SceneView { media, ..scene };
            let radiance = |cast: &CastPath| {
                let path = gather::<f32, _, PRIMAL>(&scene, &values, &cast.ray, cast.medium, cast.streams.walk());
                f64::from(path.gathered.radiance.sum())
            };
            let all: Vec<f64> = objective.casts.iter().map(radiance).collect();
            let count = all.len() as f64;
            let mean = all.iter().sum::<f64>() / count;
            let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            [mean, (variance / count).sqrt()]
        };
        let ([sealed, of_sealed], [open, of_open]) = (of(scene.media), of(&open));
        let error = of_sealed.hypot(of_open);
        assert!(error < 0.02 * open, "{}: {error} of {open}", small.name);
        assert!(
            (sealed - open).abs() < 4.0 * error,
            "{}: {sealed} and {open}, {error}",
            small.name
        );
    }
}
