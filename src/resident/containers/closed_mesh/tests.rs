use super::*;
use glam::DQuat;

const GAP: f64 = 1e-5;

fn cube(scale: f64, turn: f64, at: [f64; 3]) -> ClosedMesh {
    let turn = DQuat::from_rotation_z(turn);
    ClosedMesh::cube(&DAffine3::from_scale_rotation_translation(
        DVec3::splat(scale),
        turn,
        DVec3::from_array(at),
    ))
}

#[test]
fn a_cube_holds_what_is_inside() {
    let mesh = cube(0.5, 0.3, [1.0, 2.0, 3.0]);
    assert!((mesh.volume() - 1.0).abs() < 1e-12);
    assert!(mesh.holds(DVec3::new(1.2, 2.2, 2.9)));
    assert!(!mesh.holds(DVec3::new(1.0, 2.0, 4.0)) && !mesh.holds(DVec3::ZERO));
    let mirrored = ClosedMesh::cube(&DAffine3::from_scale(DVec3::new(-1.0, 1.0, 1.0)));
    assert!((mirrored.volume() - 8.0).abs() < 1e-12, "its faces look outwards");
}

#[test]
fn cubes_meet_where_they_do() {
    let unit = cube(1.0, 0.0, [0.0; 3]);
    let cases = [
        (0.5, 0.4, [0.0; 3], false, "inside"),
        (3.0, 0.4, [0.0; 3], false, "around"),
        (1.0, 0.4, [4.0, 0.0, 0.0], false, "beside"),
        (1.0, 0.0, [2.0, 0.0, 0.0], true, "face to face"),
        (1.0, 0.0, [2.001, 0.0, 0.0], false, "nearly face to face"),
        (1.0, 0.0, [0.0; 3], true, "the same"),
        (0.5, 0.0, [0.5, 0.0, 0.0], true, "inside, on a face"),
        (0.5, 0.4, [1.0, 0.1, 0.2], true, "through a face"),
        (1.0, std::f64::consts::FRAC_PI_4, [0.0; 3], true, "turned"),
        (
            1.0,
            std::f64::consts::FRAC_PI_4,
            [1.75, 1.75, 0.0],
            false,
            "only boxes overlap",
        ),
        (
            1.0,
            std::f64::consts::FRAC_PI_4,
            [1.7, 1.7, 0.0],
            true,
            "an edge through a face",
        ),
    ];
    for (scale, turn, at, expected, name) in cases {
        let other = cube(scale, turn, at);
        assert_eq!(unit.meets(&other, GAP).is_some(), expected, "{name}");
        assert_eq!(other.meets(&unit, GAP).is_some(), expected, "{name}, the other way");
    }
}

#[test]
fn triangles_near_each_other_are_found() {
    let flat = |z: f64| {
        [
            DVec3::new(0.0, 0.0, z),
            DVec3::new(1.0, 0.0, z),
            DVec3::new(0.0, 1.0, z),
        ]
    };
    assert!(near(&flat(0.0), &flat(0.0), GAP), "coplanar");
    assert!(!near(&flat(0.0), &flat(2.0 * GAP), GAP));
    let needle = [
        DVec3::new(0.2, 0.2, -1.0),
        DVec3::new(0.2, 0.2, 1.0),
        DVec3::new(5.0, 5.0, 1.0),
    ];
    assert!(near(&flat(0.0), &needle, 0.0), "pierced");
    let away = needle.map(|p| p + DVec3::new(0.5, 0.5, 0.0));
    assert!(!near(&flat(0.0), &away, GAP));
}

/// Numbers in [-1, 1), always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A point in a cube of edges 2 `scale` around (3, -2, 5), so that nothing is at the origin by chance.
    fn point(&mut self, scale: f64) -> DVec3 {
        DVec3::new(3.0, -2.0, 5.0) + scale * DVec3::new(self.next(), self.next(), self.next())
    }

    fn triangle(&mut self, scale: f64) -> [DVec3; 3] {
        [0; 3].map(|_| self.point(scale))
    }
}

/// The least value of a convex function on [0, 1].
fn least(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let third = (high - low) / 3.0;
        if f(low + third) < f(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    f(0.5 * (low + high))
}

fn on(segment: &[DVec3; 2], t: f64) -> DVec3 {
    segment[0] + (segment[1] - segment[0]) * t
}

/// Squared distances are convex, so that a ternary search finds the least one.
#[test]
fn the_nearest_point_of_a_triangle_is_the_nearest() {
    let mut numbers = Numbers(1);
    let [a, b, c] = numbers.triangle(1.0);
    let flat = [[a, a, a], [a, b, a], [a, b, a + 0.25 * (b - a)], [a, a, c]];
    let small = (0..120).map(|i| numbers.triangle([1.0, 0.05, 20.0][i % 3]));
    let triangles: Vec<[DVec3; 3]> = flat.into_iter().chain(small).collect();
    for (i, triangle) in triangles.into_iter().enumerate() {
        let [a, b, c] = triangle;
        let p = numbers.point([1.5, 0.1, 6.0][i % 3]);
        let q = nearest_on_triangle(p, &triangle);
        let to = |q: DVec3| (q - p).length_squared();
        let expected = least(|u| least(|v| to(a + u * ((b - a) + v * (c - b))))).sqrt();
        assert!(
            (to(q).sqrt() - expected).abs() < 1e-6 * (1.0 + expected),
            "{triangle:?} {p}: {q}"
        );
        // It lies in the triangle: the areas of the three triangles that it makes with the sides sum to the triangle's.
        let area = |a: DVec3, b: DVec3, c: DVec3| (b - a).cross(c - a).length();
        let parts = area(a, b, q) + area(b, c, q) + area(c, a, q);
        assert!(
            (parts - area(a, b, c)).abs() < 1e-6 * (1.0 + parts),
            "{triangle:?} {p}: {q}"
        );
    }
}

#[test]
fn segments_are_as_far_apart_as_their_nearest_points() {
    let mut numbers = Numbers(2);
    let [a, b, c] = numbers.triangle(1.0);
    let across = b - a;
    let special = [
        ([a, b], [a + c - b, c], "parallel"),
        ([a, b], [a + 2.0 * across, a + 3.0 * across], "one after the other"),
        ([a, b], [a + 0.5 * across, a + 3.0 * across], "one on the other"),
        ([a, a], [b, c], "a point"),
        ([a, a], [b, b], "two points"),
        ([a, b], [b, c], "with a common end"),
    ];
    let mut cases: Vec<_> = special.into_iter().map(|(s, t, _)| (s, t)).collect();
    for i in 0..300 {
        let scale = [1.0, 0.1, 8.0][i % 3];
        cases.push((
            [numbers.point(scale), numbers.point(scale)],
            [numbers.point(scale), numbers.point(1.0)],
        ));
    }
    let mut inside = 0;
    for (s, t) in cases {
        let to = |u: f64, v: f64| (on(&s, u) - on(&t, v)).length_squared();
        let expected = least(|u| least(|v| to(u, v))).sqrt();
        let found = segment_distance(&s, &t);
        assert!(
            (found - expected).abs() < 1e-6 * (1.0 + expected),
            "{s:?} {t:?}: {found}, not {expected}"
        );
        let ends = [to(0.0, 0.0), to(0.0, 1.0), to(1.0, 0.0), to(1.0, 1.0)];
        inside += usize::from(ends.iter().all(|end| end.sqrt() > expected + 0.01));
    }
    assert!(inside > 100, "{inside} pass each other");
}

/// Pairs of triangles that come near each other in one manner alone, at distances to both sides of the gap.
#[test]
fn triangles_are_near_up_to_the_gap() {
    let v = DVec3::new;
    let floor = [v(0.0, 0.0, 0.0), v(1.0, 0.0, 0.0), v(0.0, 1.0, 0.0)];
    let over = |h: f64| [v(0.25, 0.25, h), v(0.25, 0.25, h + 1.0), v(0.5, 0.25, h + 1.0)];
    let wall = [v(-1.0, 0.0, 0.0), v(1.0, 0.0, 0.0), v(0.0, 0.0, -2.0)];
    let ridge = |h: f64| [v(0.0, -1.0, h), v(0.0, 1.0, h), v(0.0, 0.0, h + 2.0)];
    // Distances that are exact in binary: a triangle is near at the gap itself.
    for (gap, near_up_to) in [(0.25, 0.25), (0.5, 0.5)] {
        for (case, make) in [
            ("a corner over a face", &over as &dyn Fn(f64) -> _),
            ("edges that cross", &ridge),
        ] {
            let other = if case == "edges that cross" { wall } else { floor };
            for (h, expected) in [
                (near_up_to, true),
                (near_up_to + 1e-9, false),
                (near_up_to - 1e-9, true),
            ] {
                assert_eq!(near(&other, &make(h), gap), expected, "{case}, {h}");
                assert_eq!(near(&make(h), &other, gap), expected, "{case}, {h}, the other way");
            }
        }
    }
    // A tip through the floor: only the edges of the tip pierce, and nothing else comes near.
    let tip = [v(0.3, 0.3, -0.2), v(0.2, 0.3, 3.0), v(0.3, 0.2, 3.0)];
    assert!(near(&floor, &tip, 0.0) && near(&tip, &floor, 0.0));
    // Triangles that pass through each other, one edge of each through the other.
    let chain = [v(0.3, 0.3, -1.0), v(0.3, 0.3, 1.0), v(-5.0, 0.3, 0.0)];
    assert!(near(&floor, &chain, 0.0) && near(&chain, &floor, 0.0));
}

/// Segments that end before the plane or pass beside one of the triangle's three sides, and others that just pierce it.
#[test]
fn segments_pierce_the_inside_only() {
    let v = DVec3::new;
    let triangle = [v(1.0, 1.0, 2.0), v(3.0, 1.0, 2.0), v(1.0, 5.0, 2.0)];
    for (x, y, from, to, expected) in [
        (1.5, 2.0, 1.0, 3.0, true),
        (1.5, 2.0, 3.0, 1.0, true),
        (1.5, 2.0, 2.0, 3.0, true),
        (1.5, 2.0, 1.0, 2.0, true),
        (1.5, 2.0, 2.1, 3.0, false),
        (1.5, 2.0, 0.0, 1.9, false),
        (0.9, 2.0, 1.0, 3.0, false),
        (1.5, 0.9, 1.0, 3.0, false),
        (2.1, 3.0, 1.0, 3.0, false),
        (1.9, 3.0, 1.0, 3.0, true),
        (2.0, 3.0, 1.0, 3.0, true),
        (1.0, 2.0, 1.0, 3.0, true),
        (2.0, 1.0, 1.0, 3.0, true),
    ] {
        let segment = [v(x, y, from), v(x, y, to)];
        assert_eq!(pierces(&segment, &triangle), expected, "({x}, {y}) from {from} to {to}");
    }
    let slanted = [v(0.0, 1.0, 1.0), v(3.0, 3.0, 3.0)];
    assert!(pierces(&slanted, &triangle), "it passes (1.5, 2, 2)");
    assert!(
        !pierces(&[v(0.0, 2.0, 2.0), v(3.0, 2.0, 2.0)], &triangle),
        "it lies in the plane"
    );
}

/// The solid angle of a triangle is the excess of its angles on the sphere (Girard).
#[test]
fn solid_angles_are_those_of_spherical_triangles() {
    let mut numbers = Numbers(3);
    for _ in 0..100 {
        let (p, triangle) = (numbers.point(1.0), numbers.triangle(1.0));
        let [a, b, c] = triangle.map(|v| (v - p).normalize());
        // The angle at `a` between the great circles through b and c.
        let angle = |a: DVec3, b: DVec3, c: DVec3| {
            let (s, t) = (a.cross(b).normalize(), a.cross(c).normalize());
            s.dot(t).clamp(-1.0, 1.0).acos()
        };
        let excess = angle(a, b, c) + angle(b, c, a) + angle(c, a, b) - std::f64::consts::PI;
        let found = 2.0 * half_solid_angle(&triangle, p);
        assert!((found.abs() - excess).abs() < 1e-6, "{found}, not {excess}");
        let side = (triangle[0] - p).dot((triangle[1] - p).cross(triangle[2] - p));
        assert_eq!(found > 0.0, side > 0.0);
    }
}

/// A sphere of triangles, all of whose corners lie on it.
fn ball(n: usize, radius: f64, at: DVec3) -> Vec<[DVec3; 3]> {
    let corner = |i: usize, j: usize| {
        let (theta, phi) = (
            std::f64::consts::PI * i as f64 / n as f64,
            std::f64::consts::PI * (j % (2 * n)) as f64 / n as f64,
        );
        at + radius * DVec3::new(theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos())
    };
    let mut triangles = Vec::new();
    for i in 0..n {
        for j in 0..2 * n {
            let [a, b, c, d] = [corner(i, j), corner(i + 1, j), corner(i + 1, j + 1), corner(i, j + 1)];
            if i + 1 < n {
                triangles.push([a, b, c]);
            }
            if i > 0 {
                triangles.push([a, c, d]);
            }
        }
    }
    triangles
}

#[test]
fn volumes_and_insides_of_meshes_are_known() {
    let at = DVec3::new(4.0, -7.0, 2.0);
    let corners = [at, at + 3.0 * DVec3::X, at + 2.0 * DVec3::Y, at + 5.0 * DVec3::Z];
    let [o, x, y, z] = corners;
    let outwards = vec![[o, y, x], [o, x, z], [o, z, y], [x, y, z]];
    let inwards = outwards.iter().map(|[a, b, c]| [*a, *c, *b]).collect();
    assert!(
        (ClosedMesh::new(outwards).volume() - 5.0).abs() < 1e-12,
        "a sixth of 3 times 2 times 5"
    );
    assert!((ClosedMesh::new(inwards).volume() + 5.0).abs() < 1e-12);
    let mesh = ClosedMesh::new(ball(8, 1.5, at));
    // The largest ball within touches the faces' middles, which lie deeper by less than 1 - cos² of half a step.
    let inner = 1.5 * (std::f64::consts::PI / 16.0).cos().powi(2);
    let mut numbers = Numbers(4);
    let mut counts = [0; 2];
    for _ in 0..400 {
        let p = at + (numbers.point(1.6) - DVec3::new(3.0, -2.0, 5.0));
        let distance = p.distance(at);
        if distance < inner {
            assert!(mesh.holds(p), "{distance}");
            counts[0] += 1;
        } else if distance > 1.5 {
            assert!(!mesh.holds(p), "{distance}");
            counts[1] += 1;
        }
    }
    assert!(counts.iter().all(|n| *n > 80), "{counts:?}");
}

/// The properties of every node of the tree, for any triangles.
#[test]
fn boxes_are_tight_and_halves_lie_side_by_side() {
    let mut numbers = Numbers(5);
    for (count, stretch) in [
        (1, DVec3::ONE),
        (4, DVec3::ONE),
        (5, DVec3::new(9.0, 1.0, 1.0)),
        (16, DVec3::new(1.0, 9.0, 1.0)),
        (33, DVec3::new(1.0, 2.0, 9.0)),
    ] {
        let triangles: Vec<[DVec3; 3]> = (0..count)
            .map(|_| {
                let at = numbers.point(10.0);
                [0; 3].map(|_| stretch * (at + 0.1 * numbers.point(1.0)))
            })
            .collect();
        let mesh = ClosedMesh::new(triangles);
        let run = |node: &Node| &mesh.triangles[node.first..][..node.count];
        assert_eq!((mesh.boxes[0].first, mesh.boxes[0].count), (0, count));
        for (i, node) in mesh.boxes.iter().enumerate() {
            let points = run(node).as_flattened();
            let low = points.iter().copied().reduce(DVec3::min);
            let high = points.iter().copied().reduce(DVec3::max);
            assert_eq!((Some(node.low), Some(node.high)), (low, high));
            let Some(second) = node.second else {
                assert!(node.count <= LEAF);
                continue;
            };
            assert!(node.count > LEAF);
            let halves = [mesh.boxes[i + 1], mesh.boxes[second]];
            let of_both = halves.map(|half| (half.first, half.count));
            let half = node.count / 2;
            assert_eq!(of_both, [(node.first, half), (node.first + half, node.count - half)]);
            // Along the longest side no triangle of the first half lies behind one of the second.
            let extent = (node.high - node.low).to_array();
            let axis = (0..3)
                .max_by(|a, b| extent[*a].total_cmp(&extent[*b]))
                .expect("three axes");
            let middle = |t: &[DVec3; 3]| super::super::centroid(t)[axis];
            let last = run(&halves[0]).iter().map(middle).fold(f64::NEG_INFINITY, f64::max);
            let first = run(&halves[1]).iter().map(middle).fold(f64::INFINITY, f64::min);
            assert!(last <= first + 1e-9, "{last} {first}");
        }
    }
}

/// A probe at every triangle of a large surface, just near enough and just too far, tested in both orders: every leaf is
/// found, and the place where they meet is told to within a triangle.
#[test]
fn every_triangle_of_a_large_surface_is_found() {
    let large = ball(10, 2.0, DVec3::new(1.0, 2.0, 3.0));
    let mesh = ClosedMesh::new(large.clone());
    let gap = 1e-3;
    for triangle in &large {
        let middle = super::super::centroid(triangle);
        let away = (triangle[1] - triangle[0]).cross(triangle[2] - triangle[0]).normalize();
        let reach = gap_at(triangle[0], gap).min(gap);
        for (part, expected) in [(0.5, true), (9.0, false)] {
            let tip = middle + part * reach * away;
            let probe: Vec<_> = (0..6)
                .map(|i| {
                    [
                        tip,
                        tip + (0.3 + 0.01 * i as f64) * away,
                        tip + 0.3 * away + 0.001 * DVec3::ONE,
                    ]
                })
                .collect();
            let probe = ClosedMesh::new(probe);
            for found in [mesh.meets(&probe, gap), probe.meets(&mesh, gap)] {
                assert_eq!(found.is_some(), expected, "at {middle}");
                assert!(
                    found.is_none_or(|at| at.distance(middle) < 0.5),
                    "{found:?}, not {middle}"
                );
            }
        }
    }
}

/// Cubes far from the origin need a larger gap: that of their coordinates.
#[test]
fn the_gap_grows_with_coordinates() {
    for (at, factor) in [
        ([0.5, 0.0, 0.0], 1.5),
        ([-1000.0, 0.0, 0.0], 1001.0),
        ([0.0, 0.0, 1000.0], 1001.0),
    ] {
        let first = cube(1.0, 0.0, at);
        for (part, expected) in [(0.5, true), (1.5, false)] {
            let mut there = at;
            there[1] += 2.0 + part * factor * GAP;
            let second = cube(1.0, 0.0, there);
            assert_eq!(first.meets(&second, GAP).is_some(), expected, "{at:?} {part}");
            assert_eq!(
                second.meets(&first, GAP).is_some(),
                expected,
                "{at:?} {part}, the other way"
            );
        }
    }
}

/// For a box that reaches to both sides of the origin, the coordinates of its farther side count.
#[test]
fn the_gap_is_that_of_the_farthest_corner() {
    let beam = |y: f64| {
        let (half, at) = (DVec3::new(500.0, 1.0, 1.0), DVec3::new(-499.0, y, 0.0));
        ClosedMesh::cube(&DAffine3::from_scale_rotation_translation(half, DQuat::IDENTITY, at))
    };
    for (part, expected) in [(0.9, true), (1.1, false)] {
        let (first, second) = (beam(0.0), beam(2.0 + part * 999.0 * GAP));
        assert_eq!(first.meets(&second, GAP).is_some(), expected, "{part}");
        assert_eq!(second.meets(&first, GAP).is_some(), expected, "{part}, the other way");
    }
}

/// All faces of a cube in their places, under a map that turns, mirrors and stretches.
#[test]
fn a_cube_has_its_six_faces() {
    for mirror in [1.0, -1.0] {
        let map = DAffine3::from_scale_rotation_translation(
            DVec3::new(0.5, 0.3, 0.2 * mirror),
            DQuat::from_rotation_x(0.4),
            DVec3::new(1.0, 2.0, 3.0),
        );
        let mesh = ClosedMesh::cube(&map);
        assert_eq!(mesh.triangles().len(), 12);
        assert!((mesh.volume() - 8.0 * 0.5 * 0.3 * 0.2).abs() < 1e-12);
        for axis in 0..3 {
            for side in [-1.0, 1.0] {
                let local: Vec<[DVec3; 3]> = mesh
                    .triangles()
                    .iter()
                    .map(|t| t.map(|p| map.inverse().transform_point3(p)))
                    .filter(|t| t.iter().all(|p| (p[axis] - side).abs() < 1e-9))
                    .collect();
                assert_eq!(local.len(), 2, "axis {axis}, side {side}");
                let area: f64 = local.iter().map(|[a, b, c]| 0.5 * (b - a).cross(c - a).length()).sum();
                assert!((area - 4.0).abs() < 1e-9);
                let corners = local.as_flattened().iter();
                assert!(corners.flat_map(|p| p.to_array()).all(|x| (x.abs() - 1.0).abs() < 1e-9));
            }
        }
    }
}

/// The three cyclic orders of a triangle's corners.
fn turns([a, b, c]: [DVec3; 3]) -> [[DVec3; 3]; 3] {
    [[a, b, c], [b, c, a], [c, a, b]]
}

/// Two triangles of which only one edge each comes near the other, whichever of the three it is; and one that passes
/// through another's inside, far from its sides and with its own corners far away.
#[test]
fn every_edge_counts() {
    let v = DVec3::new;
    // Edges along x and along y that pass each other at the origin, 0.01 apart.
    let along_x = [v(-1.0, 0.0, 0.0), v(1.0, 0.0, 0.0), v(0.0, 0.0, -5.0)];
    let along_y = [v(0.0, -1.0, 0.01), v(0.0, 1.0, 0.01), v(0.0, 0.0, 5.0)];
    let plate = [v(-9.0, -9.0, 0.0), v(9.0, -9.0, 0.0), v(0.0, 9.0, 0.0)];
    let needle = [v(0.1, 0.0, -2.0), v(0.2, 0.1, 2.0), v(0.3, -0.1, 3.0)];
    for s in turns(along_x) {
        for t in turns(along_y) {
            for (gap, expected) in [(0.0101, true), (0.0099, false)] {
                assert_eq!(near(&s, &t, gap), expected, "{s:?} {t:?} {gap}");
                assert_eq!(near(&t, &s, gap), expected, "{t:?} {s:?} {gap}");
            }
        }
    }
    for s in turns(plate) {
        for t in turns(needle) {
            assert!(near(&s, &t, 0.0) && near(&t, &s, 0.0), "{s:?} {t:?}");
        }
    }
}

/// Segments parallel to the plane of a triangle, in it or not, and one of unit determinant, which passes through.
#[test]
fn segments_along_the_plane_do_not_pass_through() {
    let v = DVec3::new;
    let triangle = [v(0.0, 0.0, 0.0), v(1.0, 0.0, 0.0), v(0.0, 1.0, 0.0)];
    for height in [0.0, 0.5, -0.5] {
        for along in [v(1.0, 0.0, 0.0), v(0.0, 1.0, 0.0), v(1.0, -1.0, 0.0), v(0.0, 0.0, 0.0)] {
            let from = v(0.25, 0.25, height);
            assert!(
                !pierces(&[from - along, from + along], &triangle),
                "{along} at {height}"
            );
        }
    }
    assert!(pierces(&[v(0.25, 0.25, 0.5), v(0.25, 0.25, -0.5)], &triangle));
    assert!(pierces(&[v(0.25, 0.25, -0.5), v(0.25, 0.25, 0.5)], &triangle));
}
