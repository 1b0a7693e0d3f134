//! The slab as a closed solid of triangles, to be milled or printed.

use glam::Vec3;

use crate::each::EachEntry;
use crate::io::mesh::Mesh;
use crate::scene::Slab;

/// The slab with the spline coefficients `heights`, `size` texels along x and y, as a mesh in the world. The side of
/// heights has a vertex at each corner of a texel, where the spline is the mean of the coefficients around it; vertices of
/// the rim are shared, so that each edge belongs to two triangles, which run along it in opposite directions. Front faces
/// are counter-clockwise seen from outside.
pub fn solid(slab: &Slab, heights: &[f32], size: [usize; 2]) -> Mesh {
    let [nx, ny] = size;
    let across = nx + 1;
    let texel = |x: usize, y: usize| heights[y.min(ny - 1) * nx + x.min(nx - 1)];
    let height = |x: usize, y: usize| {
        let (left, below) = (x.saturating_sub(1), y.saturating_sub(1));
        0.25 * ((texel(left, below) + texel(x, below)) + (texel(left, y) + texel(x, y)))
    };
    let place = |x: usize, y: usize, z: f32| {
        let along = |at: usize, n: usize| 2.0 * (at as f32 / n as f32) - 1.0;
        Vec3::new(along(x, nx), along(y, ny), z)
    };
    let mut positions = Vec::with_capacity(across * (ny + 1) + 2 * (nx + ny) + 1);
    for y in 0..=ny {
        positions.extend((0..=nx).map(|x| place(x, y, height(x, y))));
    }
    // Around the rim, counter-clockwise seen from above.
    let mut rim: Vec<[usize; 2]> = (0..nx).map(|x| [x, 0]).collect();
    rim.extend((0..ny).map(|y| [nx, y]));
    rim.extend((0..nx).map(|x| [nx - x, ny]));
    rim.extend((0..ny).map(|y| [0, ny - y]));
    let bottom = positions.len() as u32;
    positions.extend(rim.iter().map(|&[x, y]| place(x, y, -slab.thickness)));
    let middle = positions.len() as u32;
    positions.push(Vec3::new(0.0, 0.0, -slab.thickness));
    let mut triangles = Vec::with_capacity(2 * nx * ny + 3 * rim.len());
    let vertex = |x: usize, y: usize| (y * across + x) as u32;
    for y in 0..ny {
        for x in 0..nx {
            let [a, b, c, d] = [vertex(x, y), vertex(x + 1, y), vertex(x + 1, y + 1), vertex(x, y + 1)];
            triangles.extend([[a, b, c], [a, c, d]]);
        }
    }
    for i in 0..rim.len() {
        let next = (i + 1) % rim.len();
        let [above, above_next] = [i, next].each(|i| vertex(rim[i][0], rim[i][1]));
        let [below, below_next] = [i, next].each(|i| bottom + i as u32);
        triangles.extend([
            [above, below, below_next],
            [above, below_next, above_next],
            [middle, below_next, below],
        ]);
    }
    if slab.to_world.matrix3.determinant() < 0.0 {
        triangles.iter_mut().for_each(|triangle| triangle.swap(1, 2));
    }
    Mesh {
        positions: positions
            .into_iter()
            .map(|p| slab.to_world.transform_point3(p).to_array())
            .collect(),
        triangles,
        ..Mesh::default()
    }
}
