//! Bodies of revolution about the y axis, for scenes with glasses and rings.

use std::f64::consts::{PI, TAU};

use prbopt::io::mesh::Mesh;

/// Radius, height and normal along a profile, t in [0, 1].
type Profile = fn(f64) -> [f64; 4];

/// Segments of a cup around its axis.
const AROUND: u32 = 96;

/// Turns a profile: u runs once around, v along t. Both ends of u have vertices of their own, so that textures close.
fn turned(profile: Profile, around: u32, along: u32) -> Mesh {
    let mut mesh = Mesh::default();
    for j in 0..=along {
        let t = f64::from(j) / f64::from(along);
        let [radius, height, across, up] = profile(t);
        for i in 0..=around {
            let (sine, cosine) = (TAU * f64::from(i % around) / f64::from(around)).sin_cos();
            let place = |r: f64, y: f64| [r * cosine, y, r * sine].map(|x| x as f32);
            mesh.positions.push(place(radius, height));
            mesh.normals.push(place(across, up));
            mesh.uvs.push([i as f32 / around as f32, t as f32]);
        }
    }
    let vertex = |i: u32, j: u32| j * (around + 1) + i;
    for (j, i) in (0..along).flat_map(|j| (0..around).map(move |i| (j, i))) {
        let [a, b, c, d] = [vertex(i, j), vertex(i + 1, j), vertex(i, j + 1), vertex(i + 1, j + 1)];
        mesh.triangles.extend([[a, c, b], [b, c, d]]);
    }
    mesh
}

/// Radii of the ring and of its tube.
const RING: [f64; 2] = [0.9, 0.26];

/// A ring whose normals look out of its tube.
pub(crate) fn torus() -> Mesh {
    let profile = |t: f64| {
        let (sine, cosine) = (TAU * t).sin_cos();
        [RING[0] + RING[1] * cosine, RING[1] * sine, cosine, sine]
    };
    turned(profile, 84, 42)
}

/// Height of a cup, the radius of the middle of its wall at the foot, how much wider that is at the rim, and the thickness of
/// the wall.
const CUP: [f64; 4] = [1.3, 0.5, 0.18, 0.08];
/// Where the floor of a cup begins, over its height.
const FLOOR: f64 = 0.12;

/// A point at half the wall's thickness from its middle, in the direction that is turned by `angle` from outwards to the rim.
fn around_wall(t: f64, angle: f64) -> [f64; 4] {
    let [height, foot, widening, thickness] = CUP;
    let length = height.hypot(widening);
    let (sine, cosine) = angle.sin_cos();
    let across = (cosine * height + sine * widening) / length;
    let up = (sine * height - cosine * widening) / length;
    let half = 0.5 * thickness;
    [foot + widening * t + half * across, height * t + half * up, across, up]
}

/// The outside of a cup's wall, from foot to rim, whose normals look outwards.
pub(crate) fn cup_outside() -> Mesh {
    turned(|t| around_wall(t, 0.0), AROUND, 16)
}

/// The surface of a cup's glass without the outside of its wall: the rim, the inside of the wall, the floor, and the underside of
/// the foot. Normals look out of the glass.
pub(crate) fn cup_inside() -> Mesh {
    let parts: [(Profile, u32); 4] = [
        (|t| around_wall(1.0, PI * t), 8),
        (|t| around_wall(1.0 - t * (1.0 - FLOOR), PI), 16),
        (
            |t| {
                let [radius, height, ..] = around_wall(FLOOR, PI);
                [radius * (1.0 - t), height, 0.0, 1.0]
            },
            4,
        ),
        (
            |t| {
                let [radius, height, ..] = around_wall(0.0, 0.0);
                [radius * t, height, 0.0, -1.0]
            },
            4,
        ),
    ];
    let mut mesh = Mesh::default();
    for (profile, along) in parts {
        join(&mut mesh, turned(profile, AROUND, along));
    }
    mesh
}

/// Adds another mesh.
fn join(mesh: &mut Mesh, other: Mesh) {
    let first = mesh.positions.len() as u32;
    mesh.positions.extend(other.positions);
    mesh.normals.extend(other.normals);
    mesh.uvs.extend(other.uvs);
    mesh.triangles
        .extend(other.triangles.iter().map(|t| t.map(|v| v + first)));
}
