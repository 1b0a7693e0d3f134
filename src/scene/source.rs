//! The initial values of a parameter, read or computed after all checks.

use crate::io::Result;

use crate::params::Shape;

use super::files::Texels;
use super::leaves::leaves;
use super::planet::planet;
use super::{Blob, Source, attributes, files, plume};

impl Source {
    /// The values for an array of the given shape, `[z][y][x][channel]`.
    ///
    /// # Errors
    /// If a file cannot be read, or its header differs from when the scene was checked.
    pub fn materialise(&self, shape: Shape) -> Result<Vec<f32>> {
        match self {
            Source::Fill(values) => Ok(fill(values, shape)),
            Source::Vertices { geometry, to_world } => {
                let placed = geometry.mesh()?.placed(to_world);
                Ok(placed.positions.into_iter().flat_map(|p| p.to_array()).collect())
            }
            Source::VertexNormals { geometry, to_world } => {
                let placed = geometry.mesh()?.placed(to_world);
                Ok(placed.normals.into_iter().flat_map(|n| n.to_array()).collect())
            }
            // A placeholder: `resident/placement.rs`, which knows the picture to show, places all splats together.
            Source::Placed => Ok(vec![0.0; shape.len()]),
            Source::Blobs { base, blobs } => Ok(blobs_on_grid(base, blobs, shape)),
            Source::Plume { seed, value } => Ok(plume::on_grid(*seed, value, shape)),
            Source::Leaves { seed } => Ok(painted(leaves, *seed, shape)),
            Source::Planet { seed } => Ok(painted(planet, *seed, shape)),
            Source::Motif { motif, seed } => {
                let [width, height, _] = shape.size.map(|n| n as u32);
                Ok(motif.texels(*seed, [width, height], shape.channels))
            }
            Source::GridFile(path) => files::grid_values(path, shape),
            Source::ImageFile(path) => files::image_values(path, shape),
            Source::Reflectance { path, raw } => files::texture_values(path, *raw, Texels::Reflectance, shape),
            Source::Share { path, raw } => {
                let mut values = files::texture_values(path, *raw, Texels::Share, shape)?;
                values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
                Ok(values)
            }
            Source::Radiance { path, raw } => files::texture_values(path, *raw, Texels::Radiance, shape),
            Source::Attribute { path, name } => attributes::values(path, name, shape),
            Source::Relief { path, raw } => files::texture_values(path, *raw, Texels::Relief, shape),
        }
    }
}

fn fill(values: &[f32], shape: Shape) -> Vec<f32> {
    match values {
        [one] => vec![*one; shape.len()],
        many => many.iter().copied().cycle().take(shape.len()).collect(),
    }
}

/// The texels of a procedural picture: its colours, or their means if there is one channel.
fn painted(draw: impl Fn(u64, [u32; 2]) -> Vec<[f32; 3]>, seed: u64, shape: Shape) -> Vec<f32> {
    let [width, height, _] = shape.size.map(|n| n as u32);
    let picture = draw(seed, [width, height]);
    match shape.channels {
        1 => picture.iter().map(|color| color.iter().sum::<f32>() / 3.0).collect(),
        _ => picture.into_flattened(),
    }
}

/// base + Σ value exp(−½ |p − center|² / radius²) at the centre p = (i + ½)/N of every texel.
fn blobs_on_grid(base: &[f32], blobs: &[Blob], shape: Shape) -> Vec<f32> {
    let mut data = fill(base, shape);
    // The Gaussian is separable, so that each axis is tabulated once.
    for blob in blobs {
        let axes: [Vec<f32>; 3] = std::array::from_fn(|axis| falloff(blob, axis, shape.size[axis]));
        let mut texels = data.chunks_exact_mut(shape.channels);
        for fz in &axes[2] {
            for fy in &axes[1] {
                for (fx, texel) in axes[0].iter().zip(&mut texels) {
                    add(texel, &blob.value, fx * fy * fz);
                }
            }
        }
    }
    data
}

fn falloff(blob: &Blob, axis: usize, size: usize) -> Vec<f32> {
    let distance = |i: usize| ((i as f32 + 0.5) / size as f32 - blob.center[axis]) / blob.radius;
    (0..size).map(|i| (-0.5 * distance(i).powi(2)).exp()).collect()
}

fn add(texel: &mut [f32], value: &[f32], weight: f32) {
    for (channel, entry) in texel.iter_mut().enumerate() {
        *entry += weight * value[channel % value.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: [usize; 3], channels: usize) -> Shape {
        Shape { size, channels }
    }

    #[test]
    fn fill_repeats_its_channels() {
        assert_eq!(fill(&[2.0], shape([2, 1, 1], 2)), [2.0; 4]);
        assert_eq!(fill(&[1.0, 2.0], shape([2, 1, 1], 2)), [1.0, 2.0, 1.0, 2.0]);
    }

    #[test]
    fn a_blob_is_a_gaussian_at_texel_centres() {
        let blob = Blob {
            center: [0.25, 0.5, 0.5],
            radius: 0.5,
            value: vec![2.0],
        };
        let data = blobs_on_grid(&[1.0], &[blob], shape([2, 1, 1], 1));
        assert_eq!(data[0], 3.0);
        assert!((data[1] - (1.0 + 2.0 * (-0.5f32).exp())).abs() < 1e-6);
    }

    #[test]
    fn blobs_lie_where_x_varies_fastest() {
        let blob = Blob {
            center: [0.875, 0.25, 0.5],
            radius: 0.05,
            value: vec![1.0],
        };
        let data = blobs_on_grid(&[0.0], &[blob], shape([4, 2, 1], 1));
        let brightest = (0..8).max_by(|a, b| data[*a].total_cmp(&data[*b]));
        assert_eq!(brightest, Some(3));
    }
}
