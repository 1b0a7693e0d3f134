//! Rays intersected together (SIMD) have the same hits and occlusions as one by one, to the bit, at every vector level.

use std::hint::black_box;
use std::path::Path;

use prbopt::io::{Grid, vol};
use prbopt::resident::Resident;
use prbopt::resident::layout::{NONE, surface};
use prbopt::scene;
use prbopt::transport::scene::batch::{Hits, LANES, Rays, blocked_together, nearest_together};
use prbopt::transport::scene::records::SceneView;
use prbopt::transport::scene::shape::{Hit, intersect, is_blocked, leave};
use prbopt::transport::scene::tables::Tables;

mod small;

use small::draw;
use small::worlds::mesh;

/// Numbers of rays in a batch; some of them fill no whole number of vectors.
const COUNTS: [usize; 6] = [256, 1, 15, 16, 17, 100];

/// Both searches, for the nearest hit and for occlusion, as compiled for a vector level.
struct Level {
    name: &'static str,
    nearest: fn(&SceneView, &Rays, usize, &mut Hits),
    blocked: fn(&SceneView, &Rays, usize, &mut Vec<u32>),
}

#[cfg(target_arch = "x86_64")]
macro_rules! level {
    ($name:ident, $features:literal) => {
        mod $name {
            use super::*;

            #[target_feature(enable = $features)]
            fn nearest_wide(scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits) {
                nearest_together(scene, rays, count, hits);
            }

            #[target_feature(enable = $features)]
            fn blocked_wide(scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>) {
                blocked_together(scene, rays, count, blocked);
            }

            pub(crate) const LEVEL: Level = Level {
                name: stringify!($name),
                // SAFETY: `levels` lists it where the processor has its features.
                nearest: |scene, rays, count, hits| unsafe { nearest_wide(scene, rays, count, hits) },
                // SAFETY: as above.
                blocked: |scene, rays, count, blocked| unsafe { blocked_wide(scene, rays, count, blocked) },
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
level!(avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
level!(avx512, "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw");

/// All levels that this processor has.
fn levels() -> Vec<Level> {
    let baseline = Level {
        name: "baseline",
        nearest: |scene, rays, count, hits| nearest_together(scene, rays, count, hits),
        blocked: |scene, rays, count, blocked| blocked_together(scene, rays, count, blocked),
    };
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        return match wide && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512bw") {
            true => vec![baseline, avx2::LEVEL, avx512::LEVEL],
            false => vec![baseline, avx2::LEVEL],
        };
    }
    vec![baseline]
}

/// A number between -1 and 1.
fn number(seed: u64, index: usize, which: u32) -> f32 {
    2.0 * draw(seed, index as u32, which) - 1.0
}

/// A shape of these properties somewhere, turned and of unequal edges.
fn placed(name: &str, what: &str, seed: u64) -> String {
    let [x, y, z] = [0, 1, 2].map(|k| 1.5 * number(seed, 0, k));
    let [a, b, c] = [3, 4, 5].map(|k| 0.5 + 0.3 * number(seed, 0, k));
    let angle = 180.0 * number(seed, 0, 6);
    format!(
        r#""{name}": {{{what}, "bsdf": {{"type": "diffuse"}}, "to_world": [{{"scale": [{a}, {b}, {c}]}},
            {{"rotate": {{"axis": [1, 2, -0.5], "angle": {angle}}}}}, {{"translate": [{x}, {y}, {z}]}}]}}"#
    )
}

/// One of each kind of shape that is no mesh and no grid.
const KINDS: [&str; 6] = [
    r#""type": "cube""#,
    r#""type": "sphere""#,
    r#""type": "rectangle""#,
    r#""type": "disk", "flip_normals": true"#,
    r#""type": "cylinder""#,
    r#""type": "cylinder", "radius": 0.4, "flip_normals": true"#,
];

fn shapes(count: usize) -> Vec<String> {
    (0..count)
        .map(|i| placed(&format!("shape_{i}"), KINDS[i % KINDS.len()], 10 + i as u64))
        .collect()
}

fn meshes() -> Vec<String> {
    let flipped = format!(r#"{}, "flip_normals": true"#, mesh("octahedron"));
    vec![
        placed("first_mesh", &mesh("octahedron"), 3),
        placed("second_mesh", &flipped, 4),
    ]
}

/// The worlds, by name: without and with a BVH, with few and with many shapes beside meshes, and with grids of distances.
fn worlds() -> Vec<(&'static str, Vec<String>)> {
    let rock = r#""rock": {"type": "sdfgrid", "filename": "rock.vol",
        "to_world": [{"translate": [-0.5, -0.5, -0.5]}, {"scale": 1.8}, {"rotate": {"axis": [1, 2, 3], "angle": 40}}]}"#;
    let rock = || vec![rock.to_string()];
    // A world whose shapes stand in one corner of space, so that many rays point away from it.
    let corner = vec![
        r#""ball": {"type": "sphere", "center": [1, 1, 1], "radius": 0.5}"#.to_string(),
        r#""floor": {"type": "rectangle", "to_world": [{"translate": [0.5, 0.5, 0.25]}]}"#.to_string(),
    ];
    vec![
        ("corner", corner),
        ("shapes", shapes(6)),
        ("shapes with a BVH", shapes(12)),
        ("many shapes", shapes(80)),
        ("meshes", meshes()),
        ("shapes between meshes", [meshes(), shapes(6)].concat()),
        ("many shapes between meshes", [shapes(70), meshes()].concat()),
        ("distances", [rock(), shapes(3)].concat()),
        ("distances and meshes", [shapes(2), rock(), meshes()].concat()),
    ]
}

fn resident(objects: &[String]) -> Resident {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let size = [6, 5, 7];
    let distance = |i: usize| {
        let place = [i % 6, i / 6 % 5, i / 30];
        let p = [0, 1, 2].map(|a| place[a] as f32 / (size[a] - 1) as f32 - 0.5);
        p.iter().map(|x| x * x).sum::<f32>().sqrt() - 0.35 + 0.05 * number(5, i, 0)
    };
    let grid = Grid {
        size,
        channels: 1,
        bounds: [[0.0; 3], [1.0; 3]],
        data: (0..size.iter().product()).map(distance).collect(),
    };
    vol::write(&folder.path().join("rock.vol"), &grid).expect("writable");
    let text = format!(
        r#"{{{}, "sky": {{"type": "constant"}},
            "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}}}}"#,
        objects.join(", ")
    );
    let scene = scene::parse(&text, &folder.path().join("scene.json")).unwrap_or_else(|m| panic!("{m}\n{text}"));
    Resident::new(&scene).unwrap_or_else(|e| panic!("{e}")).0
}

/// Ray number `index`: from anywhere, or from a surface; some are parallel to an axis or a plane of axes, a quarter have an end.
fn ray(scene: &SceneView, seed: u64, index: usize) -> ([f32; 3], [f32; 3], f32) {
    let mut origin = [0, 1, 2].map(|k| 2.5 * number(seed, index, k));
    let mut direction = [3, 4, 5].map(|k| number(seed, index, k));
    if !index.is_multiple_of(3) {
        // Towards where the shapes are.
        direction = [0, 1, 2].map(|a| 1.5 * direction[a] - origin[a]);
    }
    match index % 9 {
        0 => direction[index / 9 % 3] = 0.0,
        1 => direction = [0, 1, 2].map(|a| if a == index / 9 % 3 { -1.0 } else { 0.0 }),
        2 => direction[index / 9 % 3] = -0.0,
        3 => origin[index / 9 % 3] = 0.0,
        _ => {}
    }
    if index.is_multiple_of(2)
        && let Some(hit) = intersect(scene, origin, direction, f32::INFINITY)
    {
        direction = [6, 7, 8].map(|k| number(seed, index, k));
        origin = leave(&hit, direction);
    }
    let far = if index % 4 < 3 {
        f32::INFINITY
    } else {
        3.0 * draw(seed, index as u32, 9)
    };
    (origin, direction, far)
}

/// All numbers of a hit as bits.
fn bits(hit: &Hit) -> Vec<u32> {
    let (point, pair) = (&hit.point, [hit.t, hit.clearance]);
    let numbers: [&[f32]; 6] = [&pair, &point.uv, &point.weights, &point.p, &hit.normal, &hit.shading];
    let places = [hit.surface, hit.primitive, point.triangle];
    numbers.concat().into_iter().map(f32::to_bits).chain(places).collect()
}

#[test]
fn rays_together_meet_what_they_meet_alone() {
    let mut kinds = [0; 7];
    for (name, objects) in worlds() {
        let (resident, tables) = (resident(&objects), Tables::default());
        let scene = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        let (mut hits, mut blocked) = (Hits::default(), Vec::new());
        let mut met = [0; 2];
        for (seed, count) in (100..).zip(COUNTS.repeat(10)) {
            let mut rays = Rays::default();
            rays.resize(count);
            // The lanes of the last vector that have no ray hold NaN.
            for i in 0..count.next_multiple_of(LANES) {
                rays.put(i, [f32::NAN; 3], [0.0; 3], f32::INFINITY);
            }
            for i in 0..count {
                let (origin, direction, far) = ray(&scene, seed, i);
                rays.put(i, origin, direction, far);
            }
            for level in levels() {
                (level.nearest)(&scene, &rays, count, &mut hits);
                (level.blocked)(&scene, &rays, count, &mut blocked);
                for i in 0..count {
                    let (o, d, far) = (rays.origin(i), rays.direction(i), rays.far[i]);
                    let alone = intersect(&scene, o, d, far);
                    let [a, b] = [alone, hits.get(i)].map(|hit| hit.map(|hit| bits(&hit)));
                    let what = format!("{name}, {}, ray {i} of {count}: {o:?} {d:?} {far}", level.name);
                    assert_eq!(a, b, "{what}: {alone:?} {:?}", hits.get(i));
                    let is = is_blocked(&scene, o, d, far);
                    assert_eq!(is, blocked[i] == 1, "{what}");
                    assert_eq!(is, alone.is_some(), "{what}");
                    met[usize::from(is)] += 1;
                    if let Some(hit) = alone {
                        kinds[scene.surfaces[hit.surface as usize].kind as usize] += 1;
                        let is_mesh = scene.surfaces[hit.surface as usize].kind == surface::MESH;
                        assert_eq!(hit.point.triangle == NONE, !is_mesh, "{what}");
                    }
                }
            }
        }
        assert!(met.iter().all(|&count| count > 100), "{name}: {met:?}");
    }
    assert!(kinds.iter().all(|&count| count > 100), "hits by kind: {kinds:?}");
}

/// Processor time of this thread in seconds.
#[cfg(target_os = "linux")]
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the record alone.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Rays of a batch from surface to surface.
fn surface_rays(scene: &SceneView, seed: u64) -> Rays {
    let [low, high] = scene.bounds;
    let mut rays = Rays::default();
    rays.resize(COUNTS[0]);
    let (mut i, mut tried) = (0, 0);
    while i < COUNTS[0] {
        tried += 1;
        let middle = |a: usize| 0.5 * (low[a] + high[a] + (high[a] - low[a]) * number(seed, tried, a as u32));
        let [towards, away] = [3, 6].map(|first| [0, 1, 2].map(|k| number(seed, tried, first + k)));
        if let Some(hit) = intersect(scene, [0, 1, 2].map(middle), towards, f32::INFINITY) {
            rays.put(i, leave(&hit, away), away, f32::INFINITY);
            i += 1;
        }
    }
    rays
}

/// The same rays, ended at 1.5 times the distance of their hit, or at 1 where they meet nothing.
fn ending(scene: &SceneView, rays: &Rays) -> Rays {
    let mut ending = rays.clone();
    for i in 0..COUNTS[0] {
        let hit = intersect(scene, rays.origin(i), rays.direction(i), f32::INFINITY);
        ending.far[i] = hit.map_or(1.0, |hit| 1.5 * hit.t);
    }
    ending
}

/// Nanoseconds a ray that a function of a batch takes, the least of some repetitions.
#[cfg(target_os = "linux")]
fn nanoseconds(batches: &[Rays], mut run: impl FnMut(&Rays)) -> f64 {
    let once = |_| {
        let begin = processor_time();
        batches.iter().for_each(&mut run);
        (processor_time() - begin) * 1e9 / (batches.len() * COUNTS[0]) as f64
    };
    (0..9).map(once).fold(f64::INFINITY, f64::min)
}

/// Prints the processor time of rays from surface to surface, one by one and in batches, and of shadow rays.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a measurement: cargo test --release --test batch -- --ignored --nocapture"]
fn time_of_a_ray() {
    for name in ["painted_room", "cornell", "torus", "globe"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenes/{name}.json"));
        let scene = scene::load(&path).unwrap_or_else(|m| panic!("{m}"));
        let (resident, tables) = (Resident::new(&scene).expect("it is sound").0, Tables::default());
        let scene = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        let rays: Vec<Rays> = (0..400).map(|seed| surface_rays(&scene, seed)).collect();
        let shadows: Vec<Rays> = rays.iter().map(|rays| ending(&scene, rays)).collect();
        let nearest = nanoseconds(&rays, |rays| {
            for i in 0..COUNTS[0] {
                black_box(intersect(&scene, rays.origin(i), rays.direction(i), rays.far[i]));
            }
        });
        let shadow = nanoseconds(&shadows, |rays| {
            for i in 0..COUNTS[0] {
                black_box(is_blocked(&scene, rays.origin(i), rays.direction(i), rays.far[i]));
            }
        });
        println!("{name}: alone {nearest:.0} ns a ray, {shadow:.0} ns a shadow ray");
        for level in levels() {
            let (mut hits, mut blocked) = (Hits::default(), Vec::new());
            let nearest = nanoseconds(&rays, |rays| (level.nearest)(&scene, rays, COUNTS[0], &mut hits));
            let shadow = nanoseconds(&shadows, |rays| (level.blocked)(&scene, rays, COUNTS[0], &mut blocked));
            println!(
                "    together, {}: {nearest:.0} ns a ray, {shadow:.0} ns a shadow ray",
                level.name
            );
        }
    }
}
