//! The table that directions towards an environment map are drawn from.
//!
//! A direction's density in u and v is that of a function which is bilinear between the weights of the map's texels:
//! luminance times the sine of the row's polar angle. A cell lies between four texels; columns wrap around. The table
//! holds, one after the other,
//!
//! - `rows + 1` cumulated probabilities of the rows of cells,
//! - for each row `columns + 1` cumulated probabilities of its cells,
//! - the weights of all texels, row by row.

use rayon::prelude::*;

/// Luminance that is added to every texel, as a share of the map's mean: a texel that is black, and which a run would
/// make brighter, is drawn too, and no direction's density is zero. At most this share of all draws is spent on it.
const FLOOR: f64 = 1.0 / 256.0;

/// Weight of a pole's texels, whose sine is zero, as a share of what the next row's sine is: their light reaches far
/// into the cells of the first row.
const POLE: f64 = 0.25;

/// Columns and rows of cells of a map of `size` texels.
#[inline(always)]
pub fn cells(size: [u32; 2]) -> [usize; 2] {
    [size[0] as usize, size[1].max(2) as usize - 1]
}

/// Entries of the table of a map of `size` texels.
pub fn table_len(size: [u32; 2]) -> usize {
    first_weight(size) + size[0] as usize * size[1] as usize
}

/// Where in a row of cells its cumulated probabilities begin.
#[inline(always)]
pub fn first_of_row(size: [u32; 2], row: usize) -> usize {
    let [columns, rows] = cells(size);
    rows + 1 + row * (columns + 1)
}

/// Where the weights of texels begin.
#[inline(always)]
pub fn first_weight(size: [u32; 2]) -> usize {
    first_of_row(size, cells(size)[1])
}

/// The table of a map of `size` texels that are RGB.
pub fn environment_table(size: [u32; 2], data: &[f32]) -> Vec<f32> {
    let [columns, rows] = cells(size);
    let weights = texel_weights(size, data);
    let mut table = vec![0.0; first_weight(size)];
    let (marginal, conditionals) = table.split_at_mut(rows + 1);
    let of_rows: Vec<f64> = conditionals
        .par_chunks_mut(columns + 1)
        .enumerate()
        .map(|(y, out)| {
            let next = (y + 1).min(size[1] as usize - 1);
            let [upper, lower] = [y, next].map(|y| &weights[y * columns..(y + 1) * columns]);
            let across: Vec<f64> = (0..columns)
                .map(|x| f64::from(upper[x]) + f64::from(lower[x]))
                .collect();
            cumulate((0..columns).map(|x| across[x] + across[(x + 1) % columns]), out)
        })
        .collect();
    cumulate(of_rows.iter().copied(), marginal);
    table.extend(weights);
    table
}

/// The weight of each texel, in units of the map's mean.
fn texel_weights(size: [u32; 2], data: &[f32]) -> Vec<f32> {
    let [columns, rows] = cells(size);
    let step = std::f64::consts::PI / rows as f64;
    let pole = POLE * step.min(std::f64::consts::FRAC_PI_2).sin();
    let sine = |y: usize| (y as f64 * step).sin().max(pole);
    let luminance = |texel: &[f32]| {
        let [r, g, b] = [texel[0], texel[1], texel[2]].map(f64::from);
        (0.2126 * r + 0.7152 * g + 0.0722 * b).max(0.0)
    };
    let of_rows: Vec<f64> = data
        .par_chunks(3 * columns)
        .enumerate()
        .map(|(y, row)| sine(y) * row.chunks_exact(3).map(luminance).sum::<f64>())
        .collect();
    let sines: f64 = (0..size[1] as usize).map(sine).sum();
    let mean = of_rows.iter().sum::<f64>() / (sines * columns as f64);
    let mut weights = vec![0.0; columns * size[1] as usize];
    weights.par_chunks_mut(columns).enumerate().for_each(|(y, row)| {
        for (weight, texel) in row.iter_mut().zip(data[3 * y * columns..].chunks_exact(3)) {
            // A map that is black all over is drawn uniformly.
            let relative = if mean > 0.0 { luminance(texel) / mean } else { 1.0 };
            *weight = ((relative + FLOOR) * sine(y)) as f32;
        }
    });
    weights
}

/// Writes cumulated probabilities in proportion to `weights`, from 0 to 1, and returns the sum of these.
fn cumulate(weights: impl Iterator<Item = f64> + Clone, out: &mut [f32]) -> f64 {
    let total: f64 = weights.clone().sum();
    let mut sum = 0.0;
    for (entry, weight) in out[1..].iter_mut().zip(weights) {
        sum += weight;
        *entry = (sum / total) as f32;
    }
    // Rounding must not leave a gap behind the last bin.
    *out.last_mut().expect("there is a bin") = 1.0;
    total
}
