//! The figurine: a translucent object behind smooth glass, whose inside is found from pictures of it (docs/experiments.md).

mod blob;

use std::path::{Path, PathBuf};

use prbopt::io::mesh::{read_ply, write_ply};

fn mesh_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/figurine.ply")
}

#[test]
#[ignore = "writes scenes/figurine.ply"]
fn write_the_mesh() {
    write_ply(&mesh_file(), &blob::figurine()).expect("the repository is writable");
}

#[test]
fn the_mesh_is_that_of_its_generator_and_closed() {
    let (file, made) = (
        read_ply(&mesh_file(), false, false).expect("it is there"),
        blob::figurine(),
    );
    assert!(file.triangles == made.triangles, "other triangles");
    for (read, made) in [(&file.positions, &made.positions), (&file.normals, &made.normals)] {
        assert_eq!(read.len(), made.len());
        let pairs = read.as_flattened().iter().zip(made.as_flattened());
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-6));
    }
    assert_eq!(made.is_closed(), Ok(()));
    assert!((5000..=8000).contains(&made.triangles.len()), "{}", made.triangles.len());
    // Faces and normals look outwards.
    for triangle in &made.triangles {
        let [a, b, c] = triangle.map(|v| glam::Vec3::from(made.positions[v as usize]));
        let faces = (b - a).cross(c - a).normalize();
        let normals = triangle.map(|v| glam::Vec3::from(made.normals[v as usize]));
        assert!(normals.iter().all(|n| n.dot(faces) > 0.5), "{triangle:?}");
    }
}
