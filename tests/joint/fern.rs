//! The fern of `scenes/joint_target.json`: fronds in a ring, each a stem that bends over, with leaves on both sides that are
//! fronds again, of elliptical cards.

use std::f64::consts::{PI, TAU};

use glam::{DVec3, dvec3};
use prbopt::io::mesh::Mesh;

/// Corners of a card's rim.
const RIM: usize = 8;
/// A card's width over its length.
const WIDTH: f64 = 0.42;
const FRONDS: usize = 9;
const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;
const LEAVES: usize = 9;

/// A place on a stem: where it is, where the stem goes on, and what is above it there.
#[derive(Clone, Copy)]
struct Place {
    at: DVec3,
    along: DVec3,
    up: DVec3,
}

/// A flat ellipse from a place on, as a fan around its centre.
fn card(mesh: &mut Mesh, place: Place, length: f64) {
    let across = place.along.cross(place.up);
    let center = place.at + 0.5 * length * place.along;
    let first = mesh.positions.len() as u32;
    mesh.positions.push(center.as_vec3().to_array());
    for corner in 0..RIM {
        let (sin, cos) = (TAU * corner as f64 / RIM as f64).sin_cos();
        let p = center + 0.5 * length * (cos * place.along + WIDTH * sin * across);
        mesh.positions.push(p.as_vec3().to_array());
    }
    let rim = |corner: usize| first + 1 + (corner % RIM) as u32;
    mesh.triangles
        .extend((0..RIM).map(|corner| [first, rim(corner), rim(corner + 1)]));
}

/// A stem of this length that bends down by `bend` radians, with leaves of `depth` orders to either side, or a card without any.
fn frond(mesh: &mut Mesh, mut place: Place, length: f64, bend: f64, depth: u32) {
    if depth == 0 {
        card(mesh, place, length);
        return;
    }
    let step = length / LEAVES as f64;
    for leaf in 0..LEAVES {
        let across = place.along.cross(place.up);
        // Leaves are longest before the middle of the stem, and lean towards its tip.
        let t = (leaf as f64 + 0.5) / LEAVES as f64;
        let size = 0.36 * length * (PI * (0.12 + 0.84 * t)).sin();
        for side in [-1.0, 1.0] {
            let along = (side * across + 0.55 * place.along).normalize();
            frond(mesh, Place { along, ..place }, size, 0.3 * bend, depth - 1);
        }
        place.at += step * place.along;
        let (sin, cos) = (bend / LEAVES as f64).sin_cos();
        let (along, up) = (place.along, place.up);
        (place.along, place.up) = (cos * along - sin * up, cos * up + sin * along);
    }
    card(mesh, place, step);
}

/// The fern, from the ground at y = 0 up, around the y axis, within [−0.77, 0.77] × [−0.01, 0.49] × [−0.77, 0.77].
pub(super) fn fern() -> Mesh {
    let mut mesh = Mesh::default();
    for number in 0..FRONDS {
        // Fronds follow each other by the golden angle, outer ones lie lower.
        let (sin, cos) = (TAU * number as f64 / GOLDEN_RATIO).sin_cos();
        let outward = dvec3(cos, 0.0, sin);
        let rise = 1.4 - 0.65 * number as f64 / FRONDS as f64;
        let along = (rise.cos() * outward + rise.sin() * DVec3::Y).normalize();
        let up = (rise.cos() * DVec3::Y - rise.sin() * outward).normalize();
        let at = 0.02 * outward;
        frond(&mut mesh, Place { at, along, up }, 0.8, 1.5, 1);
    }
    mesh
}
