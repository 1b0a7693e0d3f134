use super::*;
use glam::DQuat;

fn scattered(n: usize) -> impl Iterator<Item = DVec3> {
    (0..n).map(move |i| {
        let z = 1.0 - (2.0 * i as f64 + 1.0) / n as f64;
        let angle = 2.399_963_2 * i as f64;
        let r = (1.0 - z * z).sqrt();
        DVec3::new(r * angle.cos(), r * angle.sin(), z)
    })
}

#[test]
fn extreme_distances_are_those_of_many_points() {
    let turn = DQuat::from_axis_angle(DVec3::new(0.6, 0.0, 0.8), 0.7);
    let maps = [
        (DVec3::new(1.0, 2.0, 0.5), DVec3::new(0.3, -0.2, 0.9)),
        (DVec3::new(1.0, 2.0, 0.5), DVec3::ZERO),
        (DVec3::splat(0.7), DVec3::new(2.0, 0.0, 0.0)),
        (DVec3::splat(0.7), DVec3::ZERO),
        (DVec3::new(3.0, 1.0, 1.0), DVec3::new(0.0, 0.1, 0.0)),
        (DVec3::new(0.1, 5.0, 0.3), DVec3::new(10.0, 3.0, -4.0)),
    ];
    for (scale, translation) in maps {
        for turn in [turn, DQuat::IDENTITY] {
            let map = DAffine3::from_scale_rotation_translation(scale, turn, translation);
            let [near, far] = distances(&map);
            let lengths = scattered(20_000).map(|u| map.transform_point3(u).length());
            let (low, high) = lengths.fold((f64::INFINITY, 0f64), |(l, h), x| (l.min(x), h.max(x)));
            assert!(near <= low + 1e-9 && low - near < 1e-2, "{near} {low} {map:?}");
            assert!(far >= high - 1e-9 && far - high < 1e-2, "{far} {high} {map:?}");
        }
    }
}

const GAP: f64 = 1e-4;

fn sphere(radius: f64, at: [f64; 3]) -> Ellipsoid {
    ellipsoid(DVec3::splat(radius), at)
}

fn ellipsoid(half_axes: DVec3, at: [f64; 3]) -> Ellipsoid {
    let turn = DQuat::from_axis_angle(DVec3::new(0.0, 0.6, 0.8), 0.9);
    Ellipsoid::new(DAffine3::from_scale_rotation_translation(half_axes, turn, at.into()))
}

#[test]
fn measures_of_an_ellipsoid_are_known() {
    let unit = Ellipsoid::new(DAffine3::IDENTITY);
    assert!(unit.holds(DVec3::new(0.0, 0.999, 0.0)) && !unit.holds(DVec3::X) && !unit.holds(DVec3::splat(0.6)));
    for half_axes in [DVec3::new(1.0, 2.0, 3.0), DVec3::new(-1.0, 2.0, 3.0)] {
        let e = ellipsoid(half_axes, [4.0, 5.0, 6.0]);
        assert!((e.volume() - 8.0 * std::f64::consts::PI).abs() < 1e-9, "{}", e.volume());
        assert_eq!(e.center(), DVec3::new(4.0, 5.0, 6.0));
        // Along the second axis the surface lies 2 from the middle.
        let along = e.to_world.matrix3.y_axis.normalize();
        assert!(e.holds(e.center() + 1.999 * along) && !e.holds(e.center() - 2.001 * along));
        assert!(e.nearest(e.center() + 9.0 * along).distance(e.center() + 2.0 * along) < 1e-9);
        assert!((e.to_local.transform_point3(e.point()).length() - 1.0).abs() < 1e-12);
        assert!((e.to_local.transform_point3(e.nearest(e.center())).length() - 1.0).abs() < 1e-12);
    }
}

/// Spheres at known distances, on both sides of where they begin to meet. The gap is relative to the larger of 1 and the
/// centre's coordinates, and of the two spheres' gaps the larger counts.
#[test]
fn spheres_meet_where_they_do() {
    let direction = DVec3::new(2.0, -1.0, 2.0) / 3.0;
    for (middle, gap) in [([0.0; 3], GAP), ([0.0, -20.0, 0.0], 20.0 * GAP)] {
        let large = sphere(2.0, middle);
        // Slack is in units of the smaller sphere's radius: r · (gap / r).
        for (radius, distance, expected) in [
            (0.5, 2.5 + 0.5 * gap, true),
            (0.5, 2.5 + 8.0 * gap, false),
            (0.5, 1.5 - 0.2 * gap, true),
            (0.5, 1.5 - 8.0 * gap, false),
            (0.5, 1.6, true),
            (0.5, 2.4, true),
            (0.5, 0.3, false),
            (3.0, 0.2, false),
            (3.0, 1.2, true),
            (2.0, 0.0, true),
            (2.0, 0.01, true),
            (2.0 - 0.5 * gap, 0.0, true),
            (2.0 - 3.0 * gap, 0.0, false),
        ] {
            let other = sphere(radius, (DVec3::from(middle) + distance * direction).to_array());
            assert_eq!(
                large.meets(&other, GAP),
                expected,
                "{radius} at {distance} of {middle:?}"
            );
            assert_eq!(
                other.meets(&large, GAP),
                expected,
                "{radius} at {distance} of {middle:?}, reversed"
            );
        }
    }
}

/// Ellipsoids with the same turn: along an axis, distances are differences of half axes.
#[test]
fn ellipsoids_meet_where_they_do() {
    let first = ellipsoid(DVec3::new(1.0, 2.0, 4.0), [1.0, 0.0, 0.0]);
    let axes = first.to_world.matrix3;
    for (axis, half) in [(axes.x_axis, 1.0), (axes.y_axis, 2.0), (axes.z_axis, 4.0)] {
        let along = axis.normalize();
        for (distance, expected) in [(half + 0.1001, false), (half + 0.1, true), (half - 0.1, true)] {
            // The slack is that of the smaller one, in units of each one's own half axes: here at most 0.02.
            let shifted = distance + if expected { 0.0 } else { 0.05 };
            let small = sphere(0.1, (first.center() + shifted * along).to_array());
            assert_eq!(first.meets(&small, GAP), expected, "{distance} along {along}");
            assert_eq!(small.meets(&first, GAP), expected, "{distance} along {along}, reversed");
        }
        let inside = sphere(0.1, (first.center() + (half - 0.13) * along).to_array());
        assert!(
            !first.meets(&inside, GAP),
            "the narrowest tip has a radius of curvature of a quarter"
        );
    }
}

/// Triangles over and within spheres, to either side of where they begin to meet.
#[test]
fn triangles_meet_spheres_where_they_do() {
    for (radius, at, gap) in [(2.0, [0.0; 3], GAP), (0.5, [3.0, -50.0, 7.0], 50.0 * GAP)] {
        let ball = sphere(radius, at);
        let [x, y, z] = [
            ball.to_world.matrix3.x_axis,
            ball.to_world.matrix3.y_axis,
            ball.to_world.matrix3.z_axis,
        ]
        .map(DVec3::normalize);
        let center = ball.center();
        let over = |height: f64| {
            [
                center + height * z + 9.0 * x,
                center + height * z - 9.0 * x + 9.0 * y,
                center + height * z - 9.0 * x - 9.0 * y,
            ]
        };
        for (height, expected) in [
            (radius + 0.5 * gap, true),
            (radius + 1.5 * gap, false),
            (0.5 * radius, true),
            (0.0, true),
        ] {
            assert_eq!(
                ball.meets_triangle(&over(height), GAP),
                expected,
                "a plane {height} from {at:?}"
            );
        }
        let within = |reach: f64| [center + reach * x, center - 0.2 * radius * x, center + 0.1 * radius * z];
        for (reach, expected) in [
            (radius - 0.5 * gap, true),
            (radius - 1.5 * gap, false),
            (radius + 0.5 * gap, true),
            (0.5 * radius, false),
        ] {
            let [a, b, c] = within(reach);
            for t in [[a, b, c], [c, a, b], [b, c, a]] {
                assert_eq!(ball.meets_triangle(&t, GAP), expected, "a corner {reach} from {at:?}");
            }
        }
    }
}

/// A gap in the world is largest in the ellipsoid's own space along the smallest half axis.
#[test]
fn a_gap_is_measured_along_the_smallest_half_axis() {
    for half_axes in [
        DVec3::new(4.0, 2.0, 0.5),
        DVec3::new(0.5, 4.0, 2.0),
        DVec3::new(2.0, 0.5, 4.0),
    ] {
        let turn = DAffine3::from_quat(DQuat::from_axis_angle(DVec3::new(0.36, 0.48, 0.8), 1.1));
        for turn in [DAffine3::IDENTITY, turn] {
            let found = Ellipsoid::new(turn * DAffine3::from_scale(half_axes)).local_gap(GAP);
            assert!((found - 2.0 * GAP).abs() < 1e-12, "{found}");
        }
    }
}

/// The eigenvalues are those that the matrix was made of, and each column is a unit eigenvector.
#[test]
fn eigenvalues_and_axes_solve_their_equation() {
    let turn = glam::DMat3::from_quat(DQuat::from_axis_angle(DVec3::new(0.36, 0.48, 0.8), 1.1));
    for values in [
        DVec3::new(1.0, 2.0, 3.0),
        DVec3::new(5.0, 5.0, 0.1),
        DVec3::splat(2.0),
        DVec3::new(-1.0, 0.0, 4.0),
    ] {
        for turn in [turn, glam::DMat3::IDENTITY] {
            let matrix = turn * glam::DMat3::from_diagonal(values) * turn.transpose();
            let (found, axes) = eigen(matrix);
            let mut sorted = (found, values.to_array());
            sorted.0.sort_by(f64::total_cmp);
            sorted.1.sort_by(f64::total_cmp);
            for i in 0..3 {
                assert!((sorted.0[i] - sorted.1[i]).abs() < 1e-12, "{found:?}, not {values}");
                assert!((matrix * axes.col(i) - found[i] * axes.col(i)).length() < 1e-12);
                assert!((axes.col(i).length() - 1.0).abs() < 1e-12);
            }
        }
    }
}

/// Centres apart by less than rounding: the distances are the least and the largest half axis.
#[test]
fn distances_from_nearly_the_centre_are_half_axes() {
    for offset in [0.0, 1e-300, 1e-30, 1e-18, 1e-16] {
        for direction in [DVec3::X, DVec3::Y, DVec3::Z, DVec3::ONE, -DVec3::ONE] {
            for half_axes in [DVec3::new(1.0, 3.0, 2.0), DVec3::new(0.5, 0.25, 4.0), DVec3::splat(2.0)] {
                let map = DAffine3::from_scale_rotation_translation(half_axes, DQuat::IDENTITY, offset * direction);
                let [near, far] = distances(&map);
                assert!(
                    (near - half_axes.min_element()).abs() < 1e-9,
                    "{near}: {half_axes}, {offset} {direction}"
                );
                assert!(
                    (far - half_axes.max_element()).abs() < 1e-9,
                    "{far}: {half_axes}, {offset} {direction}"
                );
            }
        }
    }
}
