//! Tests of BVH intersection.

use super::*;
use crate::resident::layout::Triangle;
use rand_core::Rng;
use rand_pcg::Pcg32;

fn uniform(random: &mut Pcg32) -> f32 {
    (random.next_u32() >> 8) as f32 / (1 << 24) as f32
}

fn point(random: &mut Pcg32) -> [f32; 3] {
    [(); 3].map(|()| 2.0 * uniform(random) - 1.0)
}

fn add(a: [f32; 3], s: f32, b: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|i| a[i] + s * b[i])
}

fn ray(origin: [f32; 3], direction: [f32; 3]) -> Ray {
    Ray {
        origin,
        direction,
        t_min: 0.0,
        t_max: f32::INFINITY,
    }
}

/// No surfaces but triangles.
fn nothing(_: u32) -> Option<(f32, u32)> {
    None
}

fn first(bvh: &Bvh, ray: &Ray) -> Option<Hit> {
    intersect(bvh, ray, &nothing)
}

fn number(hit: Hit) -> u32 {
    match hit.target {
        Target::Triangle { number, .. } | Target::Surface { number, .. } => number,
    }
}

/// The nearest hit by testing each triangle in a BVH of its own, with the bounds of the whole.
fn brute_force(triangles: &[Triangle], bvh: &Bvh, ray: &Ray) -> Option<(f32, u32)> {
    let mut best: Option<(f32, u32)> = None;
    for (triangle, number) in triangles.iter().zip(0..) {
        let mut alone = Bvh::new(&[*triangle], &[]);
        alone.bounds = bvh.bounds;
        if let Some(hit) = intersect_at(Level::Baseline, &alone, ray, &nothing)
            && best.is_none_or(|(t, _)| hit.t < t)
        {
            best = Some((hit.t, number));
        }
    }
    best
}

/// The test of Möller and Trumbore in f64: t, u, v, if the hit is at least `margin` inside the triangle.
fn oracle(triangle: &Triangle, origin: [f32; 3], direction: [f32; 3], margin: f64) -> Option<[f64; 3]> {
    let wide = |v: [f32; 3]| glam::DVec3::from_array(v.map(f64::from));
    let (a, d) = (wide(triangle[0]), wide(direction));
    let (e1, e2) = (wide(triangle[1]) - a, wide(triangle[2]) - a);
    let det = e1.dot(d.cross(e2));
    let s = wide(origin) - a;
    let (u, v) = (s.dot(d.cross(e2)) / det, d.dot(s.cross(e1)) / det);
    let inside = u >= margin && v >= margin && u + v <= 1.0 - margin;
    inside.then(|| [e2.dot(s.cross(e1)) / det, u, v])
}

/// Against an independent test in f64, on rays whose hit or miss is clear; reported hit points are checked as well.
#[test]
fn hits_are_those_of_another_test() {
    let mut random = Pcg32::new(1, 2);
    let mut hits = 0;
    for (scale, offset) in [(1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 50.0)] {
        let triangles_at_random = |random: &mut Pcg32| {
            let center = point(random);
            [(); 3].map(|()| add([offset; 3], scale, add(center, 0.3, point(random))))
        };
        let triangles: Vec<Triangle> = (0..300).map(|_| triangles_at_random(&mut random)).collect();
        let bvh = Bvh::new(&triangles, &[]);
        for _ in 0..400 {
            let origin = add([offset; 3], 2.0 * scale, point(&mut random));
            let direction = point(&mut random);
            let all = |margin| {
                let hits = triangles
                    .iter()
                    .filter_map(move |t| oracle(t, origin, direction, margin));
                hits.map(|[t, ..]| t).filter(|&t| t > 0.0)
            };
            if all(-1e-3).count() != all(1e-3).count() {
                continue;
            }
            let nearest = all(0.0).fold(f64::INFINITY, f64::min);
            let ray = ray(origin, direction);
            let hit = first(&bvh, &ray);
            assert_eq!(hit.is_some(), nearest.is_finite());
            let Some(hit) = hit else { continue };
            hits += 1;
            let tolerance = 2e-5 * f64::from(scale);
            let off = (f64::from(hit.t) - nearest).abs();
            assert!(off < tolerance.max(2e-5 * nearest), "{} {nearest}", hit.t);
            let Target::Triangle {
                number,
                place: (block, lane),
                u,
                v,
            } = hit.target
            else {
                panic!("there are only triangles");
            };
            assert_eq!(bvh.blocks[block as usize].triangles[lane as usize], number);
            let [_, exact_u, exact_v] =
                oracle(&triangles[number as usize], origin, direction, 0.0).expect("it was hit");
            assert!((f64::from(u) - exact_u).abs() < 1e-2 && (f64::from(v) - exact_v).abs() < 1e-2);
            let within = |t_max| first(&bvh, &Ray { t_max, ..ray }).is_some();
            assert!(!within(hit.t) && within(hit.t * 1.001));
            let beyond = first(&bvh, &Ray { t_min: hit.t, ..ray });
            assert!(beyond.is_none_or(|next| next.t > hit.t));
        }
    }
    assert!(hits > 200, "{hits} hits");
}

/// Difficult sets of triangles: on an integer grid, so that hits coincide and rays run along edges; slivers; degenerate
/// triangles; at scales from 10⁻²⁰ to 10¹⁵.
fn triangle_sets() -> Vec<Vec<Triangle>> {
    let mut random = Pcg32::new(3, 4);
    let on_grid = |random: &mut Pcg32| point(random).map(|x| (3.0 * x).round());
    let mut triangle_sets: Vec<Vec<Triangle>> = Vec::new();
    triangle_sets.push((0..200).map(|_| [(); 3].map(|()| on_grid(&mut random))).collect());
    let sliver = |random: &mut Pcg32| {
        let (a, along) = (on_grid(random), point(random));
        [a, add(a, 1.0, along), add(add(a, 2.0, along), 1e-7, point(random))]
    };
    triangle_sets.push((0..200).map(|_| sliver(&mut random)).collect());
    let flat = triangle_sets[0].iter().map(|t| t.map(|p| [p[0], 1.0, p[2]])).collect();
    triangle_sets.push(flat);
    for scale in [1e-20, 1e-8, 1e15] {
        let scaled = triangle_sets[0]
            .iter()
            .map(|t| t.map(|p| p.map(|x| scale * x)))
            .collect();
        triangle_sets.push(scaled);
    }
    triangle_sets.push(
        [
            triangle_sets[0].clone(),
            triangle_sets[0].clone(),
            triangle_sets[1].clone(),
        ]
        .concat(),
    );
    triangle_sets
}

/// Rays whose components and origins often lie on the grid or are zero.
fn rays(triangles: &[Triangle], count: usize) -> Vec<Ray> {
    let mut random = Pcg32::new(8, 1);
    let size = triangles
        .as_flattened()
        .as_flattened()
        .iter()
        .fold(0f32, |s, x| s.max(x.abs()));
    let coordinate = |random: &mut Pcg32| match random.next_u32() % 3 {
        0 => 0.0,
        1 => ((6.0 * uniform(random)).round() - 3.0) / 3.0,
        _ => 2.0 * uniform(random) - 1.0,
    };
    let mut rays = Vec::new();
    while rays.len() < count {
        let origin = [(); 3].map(|()| size * coordinate(&mut random));
        let mut direction = [(); 3].map(|()| coordinate(&mut random));
        if random.next_u32().is_multiple_of(2) {
            let t = &triangles[random.next_u32() as usize % triangles.len()];
            direction = add(t[random.next_u32() as usize % 3], -1.0, origin).map(|x| x / size);
        }
        if direction != [0.0; 3] {
            rays.push(ray(origin, direction));
        }
    }
    rays
}

/// Hits equal those of testing every triangle, bit for bit, on all vector levels; of hits at one distance the lower number wins.
#[test]
fn hits_are_those_of_brute_force() {
    let mut hits = 0;
    for triangles in triangle_sets() {
        let bvh = Bvh::new(&triangles, &[]);
        for ray in rays(&triangles, 300) {
            let expected = brute_force(&triangles, &bvh, &ray);
            hits += usize::from(expected.is_some());
            for level in Level::all() {
                let hit = intersect_at(level, &bvh, &ray, &nothing);
                let found = hit.map(|hit| (hit.t, number(hit)));
                assert_eq!(found, expected, "{level:?} {ray:?}");
            }
            assert_eq!(is_blocked(&bvh, &ray, &nothing), expected.is_some());
        }
    }
    assert!(hits > 300, "{hits} hits");
}

/// After vertices moved, a refitted tree finds the same hits as a new one.
#[test]
fn refitted_hierarchies_find_what_new_ones_find() {
    let mut random = Pcg32::new(31, 2);
    let mut triangles_at_random = || -> Vec<Triangle> {
        let triangle = |random: &mut Pcg32| {
            let center = point(random);
            [(); 3].map(|()| add(center, 0.2, point(random)))
        };
        (0..500).map(|_| triangle(&mut random)).collect()
    };
    let (before, after) = (triangles_at_random(), triangles_at_random());
    let mut refitted = Bvh::new(&before, &[]);
    refitted.refit(&after, &[]);
    let rebuilt = Bvh::new(&after, &[]);
    assert_eq!(refitted.bounds, rebuilt.bounds);
    let mut hits = 0;
    for ray in rays(&after, 2000) {
        let [old, new] = [&refitted, &rebuilt].map(|bvh| first(bvh, &ray).map(|hit| (hit.t, number(hit))));
        assert_eq!(old, new, "{ray:?}");
        hits += usize::from(old.is_some());
    }
    assert!(hits > 200, "{hits} hits");
}

/// Surfaces and triangles in one BVH: at the same distance surfaces come first, then lower numbers.
#[test]
fn surfaces_are_leaves_too() {
    let quad = |z: f32| [[[-1.0, -1.0, z], [3.0, -1.0, z], [-1.0, 3.0, z]]];
    let triangles = [quad(2.0), quad(1.0), quad(1.0)].concat();
    let plane = |z: f32| [[-1.1, -1.1, z - 0.1], [1.1, 1.1, z + 0.1]];
    for (z, expected) in [(0.5, (0.5, false, 7)), (1.0, (1.0, false, 7)), (1.5, (1.0, true, 1))] {
        let surfaces: Vec<_> = [9, 8, 7].map(|number| (number, plane(z))).to_vec();
        let bvh = Bvh::new(&triangles, &surfaces);
        let ray = ray([0.2, 0.3, 0.0], [0.0, 0.0, 1.0]);
        for level in Level::all() {
            let hit = intersect_at(level, &bvh, &ray, &|_: u32| Some((z, 5))).expect("it was hit");
            let is_triangle = matches!(hit.target, Target::Triangle { .. });
            assert_eq!((hit.t, is_triangle, number(hit)), expected);
        }
    }
}

/// A triangulated sphere; many triangles share its poles.
fn sphere(center: [f32; 3], radius: f32, rings: usize) -> Vec<Triangle> {
    let vertex = |i: usize, j: usize| {
        let theta = std::f32::consts::PI * i as f32 / rings as f32;
        let phi = std::f32::consts::PI * (j % (2 * rings)) as f32 / rings as f32;
        // The poles are points, not rings.
        let sine = if i.is_multiple_of(rings) { 0.0 } else { theta.sin() };
        add(center, radius, [sine * phi.cos(), sine * phi.sin(), theta.cos()])
    };
    let quads = (0..rings).flat_map(|i| (0..2 * rings).map(move |j| (i, j)));
    quads
        .flat_map(|(i, j)| {
            let [a, b, c, d] = [vertex(i, j), vertex(i + 1, j), vertex(i + 1, j + 1), vertex(i, j + 1)];
            [[a, b, c], [a, c, d]]
        })
        .filter(|[a, b, c]| a != b && b != c && c != a)
        .collect()
}

/// No ray leaves a closed surface from inside: not at vertices, nor along edges, nor far from the origin.
#[test]
fn closed_surfaces_do_not_leak() {
    let mut random = Pcg32::new(5, 6);
    for (center, radius) in [
        ([0.0; 3], 1.0),
        ([100.0, -300.0, 1000.0], 1.0),
        ([0.3, 0.1, -0.2], 1e-3),
        ([1e3, 0.0, 0.0], 2e3),
    ] {
        let triangles = sphere(center, radius, 24);
        let bvh = Bvh::new(&triangles, &[]);
        for i in 0..60_000 {
            let origin = match i % 3 {
                0 => center,
                _ => add(center, 0.5 * radius, point(&mut random)),
            };
            let [a, b, _] = triangles[random.next_u32() as usize % triangles.len()];
            let along = [0.0, 0.5, uniform(&mut random)][i % 3];
            let target = add(a, along, add(b, -1.0, a));
            let direction = add(target, -1.0, origin);
            let hit = first(&bvh, &ray(origin, direction));
            assert!(hit.is_some(), "from {origin:?} along {direction:?}");
        }
    }
}

/// Cube faces have boxes of zero thickness; rays run in their planes and at corners and edges.
#[test]
fn cubes_do_not_leak() {
    let corner = |i: usize| [0, 1, 2].map(|axis| if i >> axis & 1 == 1 { 1.0 } else { -1.0 });
    let quads = [
        [0, 2, 3, 1],
        [4, 5, 7, 6],
        [0, 1, 5, 4],
        [2, 6, 7, 3],
        [0, 4, 6, 2],
        [1, 3, 7, 5],
    ];
    let faces = quads.iter().flat_map(|&[a, b, c, d]| {
        let [a, b, c, d] = [a, b, c, d].map(corner);
        [[a, b, c], [a, c, d]]
    });
    let faces: Vec<Triangle> = faces.collect();
    let bvh = Bvh::new(&faces, &[]);
    let mut random = Pcg32::new(9, 3);
    for i in 0..100_000 {
        let origin = if i % 2 == 0 {
            [0.0; 3]
        } else {
            point(&mut random).map(|v| 0.999 * v)
        };
        let mut target = point(&mut random);
        for axis in 0..3 {
            if random.next_u32().is_multiple_of(2) || axis == i % 3 {
                target[axis] = if target[axis] < 0.0 { -1.0 } else { 1.0 };
            }
        }
        let direction = add(target, -1.0, origin);
        let hit = first(&bvh, &ray(origin, direction));
        let hit = hit.unwrap_or_else(|| panic!("from {origin:?} along {direction:?}"));
        assert!(
            (hit.t - 1.0).abs() < 1e-4,
            "{hit:?} from {origin:?} along {direction:?}"
        );
    }
}

#[test]
fn nothing_is_hit_where_there_is_nothing() {
    let up = ray([0.0; 3], [0.0, 0.0, 1.0]);
    assert_eq!(first(&Bvh::default(), &up), None);
    let point = [[0.0, 0.0, 1.0]; 3];
    let line = [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 3.0]];
    assert_eq!(first(&Bvh::new(&[point, line], &[]), &up), None);
}
