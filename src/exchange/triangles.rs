//! Shapes as triangles: meshes as they are, other shapes finely tessellated.

use std::f32::consts::{PI, TAU};

use glam::{Affine3A, Vec3, Vec3A};

use crate::io::mesh::Mesh;
use crate::io::{IoError, Result};
use crate::resident::emissive_triangles;
use crate::resident::geometry::cylinder;
use crate::scene::{Geometry, Surface};

/// Edges around a circle. A chord of 128 lies 3 · 10⁻⁴ of the radius inside its arc.
const AROUND: u32 = 128;

/// Edges from pole to pole of a sphere.
const FROM_POLE_TO_POLE: u32 = 64;

/// A shape as triangles in world space: front faces are counter-clockwise seen from the side of the normals.
/// Flat-shaded shapes have no vertex normals.
///
/// # Errors
/// Its mesh can no longer be read.
pub fn of_surface(surface: &Surface) -> Result<Mesh> {
    let mesh = match &surface.geometry {
        Geometry::Cube => cube(),
        Geometry::Rectangle => rectangle(),
        Geometry::Disk => disk(),
        Geometry::Sphere { center, radius } => {
            let inner = Affine3A::from_translation((*center).into()) * Affine3A::from_scale(Vec3::splat(*radius));
            placed(sphere(), &inner, false)
        }
        Geometry::Cylinder { ends, radius } => placed(tube(), &cylinder(*ends, *radius), false),
        Geometry::Distances { path, .. } => {
            let message = format!(
                "the `sdfgrid` `{}` has no triangles: put a mesh in its place",
                surface.name
            );
            return Err(IoError::new(path, message));
        }
        Geometry::Mesh { face_normals, .. } => {
            let mut mesh = surface.geometry.mesh()?;
            if *face_normals {
                mesh.normals.clear();
            } else if mesh.normals.is_empty() {
                // Vertex normals are computed in world space, as the renderer does.
                let normals = mesh.placed(&surface.to_world).normals;
                let mut mesh = placed(mesh, &surface.to_world, surface.flip_normals);
                let sign = if surface.flip_normals { -1.0 } else { 1.0 };
                mesh.normals = normals.into_iter().map(|n| (n * sign).to_array()).collect();
                return Ok(mesh);
            }
            mesh
        }
    };
    Ok(placed(mesh, &surface.to_world, surface.flip_normals))
}

fn place(to_world: &Affine3A, p: [f32; 3]) -> Vec3 {
    to_world.transform_point3(Vec3::from_array(p))
}

/// A mesh transformed by a map, and turned inside out if `flipped`.
fn placed(mut mesh: Mesh, to_world: &Affine3A, flipped: bool) -> Mesh {
    for p in &mut mesh.positions {
        *p = place(to_world, *p).to_array();
    }
    let turned = to_world.matrix3.inverse().transpose();
    let sign = if flipped { -1.0 } else { 1.0 };
    for n in &mut mesh.normals {
        *n = ((turned * Vec3A::from_array(*n)).normalize_or_zero() * sign).to_array();
    }
    // A map that mirrors turns faces inside out, too.
    if flipped != (to_world.matrix3.determinant() < 0.0) {
        mesh.triangles.iter_mut().for_each(|triangle| triangle.swap(1, 2));
    }
    mesh
}

/// [-1, 1]² in the plane z = 0.
fn rectangle() -> Mesh {
    let corners = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0f32]];
    Mesh {
        positions: corners.map(|[x, y]| [x, y, 0.0]).to_vec(),
        normals: vec![[0.0, 0.0, 1.0]; 4],
        uvs: corners.map(|[x, y]| [0.5 * x + 0.5, 0.5 * y + 0.5]).to_vec(),
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        attributes: Vec::new(),
        dropped_faces: 0,
        bare_vertices: 0,
    }
}

/// [-1, 1]³: each face has vertices of its own.
fn cube() -> Mesh {
    let mut mesh = Mesh::default();
    for pair in emissive_triangles::cube(&Affine3A::IDENTITY).chunks_exact(2) {
        let first = mesh.positions.len();
        for (corners, uvs) in pair {
            let [a, b, c] = corners.map(Vec3::from_array);
            let normal = (b - a).cross(c - a).normalize().to_array();
            let triangle = [0, 1, 2].map(|k: usize| {
                let known = mesh.positions[first..].iter().position(|p| *p == corners[k]);
                let at = known.map_or(mesh.positions.len(), |i| first + i);
                if known.is_none() {
                    mesh.positions.push(corners[k]);
                    mesh.normals.push(normal);
                    mesh.uvs.push(uvs[k]);
                }
                at as u32
            });
            mesh.triangles.push(triangle);
        }
    }
    mesh
}

/// Position on the unit circle of vertex `i` of [`AROUND`]; the last, `AROUND`, is the first again.
fn around(i: u32) -> [f32; 2] {
    let (sin, cos) = ((i % AROUND) as f32 / AROUND as f32 * TAU).sin_cos();
    [cos, sin]
}

fn share(i: u32) -> f32 {
    i as f32 / AROUND as f32
}

/// Radius one in the plane z = 0; u is the radius, v the angle.
fn disk() -> Mesh {
    let mut mesh = Mesh::default();
    for i in 0..=AROUND {
        let [x, y] = around(i);
        mesh.positions.extend([[x, y, 0.0], [0.0; 3]]);
        // The centre vertex of a sector has the middle angle of the sector.
        mesh.uvs
            .extend([[1.0, share(i)], [0.0, share(i) + 0.5 / AROUND as f32]]);
    }
    mesh.normals = vec![[0.0, 0.0, 1.0]; mesh.positions.len()];
    mesh.triangles = (0..AROUND).map(|i| [2 * i + 1, 2 * i, 2 * i + 2]).collect();
    mesh
}

/// Radius one, from z = -1 to z = 1, without caps; u is the angle, v goes along.
fn tube() -> Mesh {
    let mut mesh = Mesh::default();
    for i in 0..=AROUND {
        let [x, y] = around(i);
        mesh.positions.extend([[x, y, -1.0], [x, y, 1.0]]);
        mesh.normals.extend([[x, y, 0.0]; 2]);
        mesh.uvs.extend([[share(i), 0.0], [share(i), 1.0]]);
    }
    mesh.triangles = (0..AROUND)
        .flat_map(|i| [[2 * i, 2 * i + 2, 2 * i + 3], [2 * i, 2 * i + 3, 2 * i + 1]])
        .collect();
    mesh
}

/// Radius one; u is the angle around z, v the angle from +z.
fn sphere() -> Mesh {
    let mut mesh = Mesh::default();
    for j in 0..=FROM_POLE_TO_POLE {
        let v = j as f32 / FROM_POLE_TO_POLE as f32;
        // Exact at the poles, so that the triangles around them meet.
        let (sin, cos) = match j {
            0 => (0.0, 1.0),
            FROM_POLE_TO_POLE => (0.0, -1.0),
            _ => (v * PI).sin_cos(),
        };
        let is_pole = j == 0 || j == FROM_POLE_TO_POLE;
        for i in 0..=AROUND {
            let [x, y] = around(i);
            let p = [sin * x, sin * y, cos];
            mesh.positions.push(p);
            mesh.normals.push(p);
            let middle = if is_pole { 0.5 / AROUND as f32 } else { 0.0 };
            mesh.uvs.push([share(i) + middle, v]);
        }
    }
    let at = |i: u32, j: u32| j * (AROUND + 1) + i;
    for j in 0..FROM_POLE_TO_POLE {
        for i in 0..AROUND {
            let [a, b, c, d] = [at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)];
            // At the poles, the vertex that belongs to this sector.
            match j {
                0 => mesh.triangles.push([a, b, c]),
                j if j + 1 == FROM_POLE_TO_POLE => mesh.triangles.push([a, b, d]),
                _ => mesh.triangles.extend([[a, b, c], [a, c, d]]),
            }
        }
    }
    mesh
}

/// A mesh with a normal at each vertex: flat triangles get vertices of their own.
pub fn with_normals(mesh: Mesh) -> Mesh {
    if !mesh.normals.is_empty() {
        return mesh;
    }
    let mut split = Mesh::default();
    for triangle in &mesh.triangles {
        let [a, b, c] = triangle.map(|v| mesh.positions[v as usize]);
        let [p, q, r] = [a, b, c].map(Vec3::from_array);
        let normal = (q - p).cross(r - p).normalize_or_zero().to_array();
        let first = split.positions.len() as u32;
        split.positions.extend([a, b, c]);
        split.normals.extend([normal; 3]);
        split.triangles.push([first, first + 1, first + 2]);
        split
            .uvs
            .extend(triangle.iter().filter_map(|v| mesh.uvs.get(*v as usize)));
    }
    split
}

/// All meshes as one; texture coordinates are zero where some have none.
pub fn joined(meshes: impl IntoIterator<Item = Mesh>) -> Mesh {
    let mut all = Mesh::default();
    let meshes: Vec<Mesh> = meshes.into_iter().collect();
    let [any_normals, any_uvs] = [
        meshes.iter().any(|mesh| !mesh.normals.is_empty()),
        meshes.iter().any(|mesh| !mesh.uvs.is_empty()),
    ];
    for mesh in meshes {
        let mesh = if any_normals { with_normals(mesh) } else { mesh };
        let first = all.positions.len() as u32;
        all.triangles
            .extend(mesh.triangles.iter().map(|t| t.map(|v| first + v)));
        all.positions.extend(mesh.positions);
        all.normals.extend(mesh.normals);
        all.uvs.extend(mesh.uvs);
        if any_uvs {
            all.uvs.resize(all.positions.len(), [0.0; 2]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::mesh::Mesh;

    /// The volume that a closed mesh encloses; negative if it is inside out.
    fn volume(mesh: &Mesh) -> f32 {
        let corner = |v: u32| Vec3::from_array(mesh.positions[v as usize]);
        let of_triangle = |t: &[u32; 3]| corner(t[0]).dot(corner(t[1]).cross(corner(t[2]))) / 6.0;
        mesh.triangles.iter().map(of_triangle).sum()
    }

    fn area(mesh: &Mesh) -> f32 {
        let corner = |v: u32| Vec3::from_array(mesh.positions[v as usize]);
        let of_triangle = |t: &[u32; 3]| {
            0.5 * (corner(t[1]) - corner(t[0]))
                .cross(corner(t[2]) - corner(t[0]))
                .length()
        };
        mesh.triangles.iter().map(of_triangle).sum()
    }

    fn surface(geometry: Geometry, to_world: Affine3A, flip_normals: bool) -> Surface {
        Surface {
            name: "a".into(),
            geometry,
            to_world,
            flip_normals,
            bsdf: crate::scene::Bsdf::Null,
            bsdf_path: "a.bsdf".into(),
            interior: None,
            exterior: None,
            emitter: None,
            motion: Vec::new(),
            displacement: None,
        }
    }

    /// Closed shapes stay closed and face outwards, under mirrors too, and have their volume.
    #[test]
    fn spheres_and_cubes_are_closed_and_of_their_size() {
        let sphere = || Geometry::Sphere {
            center: [1.0, 2.0, -3.0],
            radius: 0.5,
        };
        let ball = 4.0 / 3.0 * PI * 0.125;
        for (geometry, expected) in [(sphere(), ball), (Geometry::Cube, 8.0)] {
            for (mirror, flip) in [(1.0, false), (-1.0, false), (1.0, true), (-1.0, true)] {
                let to_world = Affine3A::from_scale(Vec3::new(mirror, 2.0, 0.5));
                let mesh = of_surface(&surface(geometry.clone(), to_world, flip)).expect("no file");
                assert_eq!(mesh.is_closed(), Ok(()), "{geometry:?}");
                let found = volume(&mesh) * if flip { -1.0 } else { 1.0 };
                assert!(
                    (found / expected - 1.0).abs() < 2e-3,
                    "{geometry:?}: {found}, {expected}"
                );
                for (t, [a, b, c]) in mesh.triangles.iter().map(|t| (t, t.map(|v| v as usize))) {
                    let [p, q, r] = [a, b, c].map(|v| Vec3::from_array(mesh.positions[v]));
                    let face = (q - p).cross(r - p);
                    assert!(face.dot(Vec3::from_array(mesh.normals[a])) > 0.0, "{geometry:?} {t:?}");
                }
                assert_eq!(joined([with_normals(mesh.clone())]).is_closed(), Ok(()));
            }
        }
    }

    #[test]
    fn open_shapes_have_their_area() {
        let tube = Geometry::Cylinder {
            ends: [[0.0, 0.0, 1.0], [0.0, 3.0, 1.0]],
            radius: 2.0,
        };
        for (geometry, expected) in [
            (tube, 2.0 * PI * 2.0 * 3.0),
            (Geometry::Disk, PI),
            (Geometry::Rectangle, 4.0),
        ] {
            let mesh = of_surface(&surface(geometry.clone(), Affine3A::IDENTITY, false)).expect("no file");
            assert!((area(&mesh) / expected - 1.0).abs() < 1e-3, "{geometry:?}");
            let count = mesh.positions.len();
            assert_eq!([mesh.normals.len(), mesh.uvs.len()], [count; 2]);
            assert!(mesh.uvs.as_flattened().iter().all(|x| (0.0..=1.01).contains(x)));
        }
    }

    #[test]
    fn flat_and_smooth_meshes_are_joined() {
        let flat = Mesh {
            normals: Vec::new(),
            uvs: Vec::new(),
            ..cube()
        };
        let all = joined([flat, sphere()]);
        let count = 36 + sphere().positions.len();
        assert_eq!([all.positions.len(), all.normals.len(), all.uvs.len()], [count; 3]);
        assert_eq!(all.is_closed(), Ok(()));
    }
}
