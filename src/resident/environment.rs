//! The table that directions towards an environment map are drawn from.
//!
//! A direction's pdf in u and v is proportional to the bilinear interpolation of the texels' weights: luminance, or with
//! MIS compensation luminance above the mean, plus a floor, times the sine of the row's polar angle. A cell lies between
//! four texels; columns wrap around. The table holds, one after the other,
//!
//! - `rows + 1` cumulated probabilities of the rows of cells,
//! - for each row `columns + 1` cumulated probabilities of its cells,
//! - the weights of all texels, row by row,
//! - a guide to the rows, then one to the cells of each row: between which bins to search for a number.
//!
//! A guide divides [0, 1) into equal parts, a power of two of them, so that a number's part is exact. Its entries are the
//! bins in which the parts begin, then the last bin, as the bits of whole numbers: a number's bin lies between the entries
//! of its own part and of the next.

use crate::each::EachEntry;
use rayon::prelude::*;

/// Luminance that is added to every texel, as a share of the map's mean: a black texel, which a run may make brighter, is
/// drawn too, and no direction's pdf is zero. Without compensation it takes at most this share of all draws.
pub const FLOOR: f64 = 1.0 / 256.0;

/// In place of the sine of a pole's row, which is zero, as a share of the next row's sine: interpolation carries the pole's
/// radiance far into the cells of the first row.
const POLE: f64 = 0.25;

/// Columns and rows of cells of a map of `size` texels.
#[inline(always)]
pub fn cells(size: [u32; 2]) -> [usize; 2] {
    [size[0] as usize, size[1].max(2) as usize - 1]
}

/// Cells a part of the guide to a row: as many f32 as a cache line holds.
const CELLS_A_PART: usize = 16;

/// Parts of the guide to `rows` rows of cells.
#[inline(always)]
pub fn parts_of_rows(rows: usize) -> usize {
    rows.next_power_of_two()
}

/// Parts of the guide to the cells of a row.
#[inline(always)]
pub fn parts_of_row(columns: usize) -> usize {
    columns.div_ceil(CELLS_A_PART).next_power_of_two()
}

/// Where the guide to the rows begins.
#[inline(always)]
pub fn guide_to_rows(size: [u32; 2]) -> usize {
    first_weight(size) + size[0] as usize * size[1] as usize
}

/// Where the guide to the cells of a row begins.
#[inline(always)]
pub fn guide_to_row(size: [u32; 2], row: usize) -> usize {
    let [columns, rows] = cells(size);
    guide_to_rows(size) + parts_of_rows(rows) + 1 + row * (parts_of_row(columns) + 1)
}

/// Entries of the table of a map of `size` texels.
pub fn table_len(size: [u32; 2]) -> usize {
    guide_to_row(size, cells(size)[1])
}

/// Where in a table of `columns` and `rows` of cells the cumulated probabilities of a row begin.
#[inline(always)]
pub fn row_start([columns, rows]: [usize; 2], row: usize) -> usize {
    rows + 1 + row * (columns + 1)
}

/// Where in an environment map's table the cumulated probabilities of a row begin.
#[inline(always)]
pub fn first_of_row(size: [u32; 2], row: usize) -> usize {
    row_start(cells(size), row)
}

/// Where the weights of texels begin.
#[inline(always)]
pub fn first_weight(size: [u32; 2]) -> usize {
    first_of_row(size, cells(size)[1])
}

/// The table of a map of `size` RGB texels. If `compensated`, directions are drawn by luminance above the mean, since
/// multiple importance sampling leaves the rest to BSDFs (Karlik2019).
pub fn environment_table(size: [u32; 2], data: &[f32], compensated: bool) -> Vec<f32> {
    let [columns, rows] = cells(size);
    let mut table = Vec::with_capacity(table_len(size));
    table.resize(guide_to_rows(size), 0.0);
    let (probabilities, weights) = table.split_at_mut(first_weight(size));
    fill_weights(weights, size, data, compensated);
    let (marginal, conditionals) = probabilities.split_at_mut(rows + 1);
    let of_rows: Vec<f64> = conditionals
        .par_chunks_mut(columns + 1)
        .enumerate()
        .map(|(y, out)| {
            let next = (y + 1).min(size[1] as usize - 1);
            let [upper, lower] = [y, next].each(|y| &weights[y * columns..(y + 1) * columns]);
            let across: Vec<f64> = (0..columns)
                .map(|x| f64::from(upper[x]) + f64::from(lower[x]))
                .collect();
            cumulate((0..columns).map(|x| across[x] + across[(x + 1) % columns]), out)
        })
        .collect();
    cumulate(of_rows.iter().copied(), marginal);
    push_guide(&mut table, 0, rows, parts_of_rows(rows));
    for y in 0..rows {
        push_guide(&mut table, first_of_row(size, y), columns, parts_of_row(columns));
    }
    table
}

/// Appends the guide to `bins` bins whose cumulated probabilities begin at `first`.
fn push_guide(table: &mut Vec<f32>, first: usize, bins: usize, parts: usize) {
    let mut bin = 0;
    for part in 0..parts {
        let u = part as f32 / parts as f32;
        while bin + 1 < bins && table[first + bin + 1] <= u {
            bin += 1;
        }
        table.push(f32::from_bits(bin as u32));
    }
    table.push(f32::from_bits(bins as u32 - 1));
}

/// Sets the weight of each texel, in units of the map's mean luminance.
fn fill_weights(weights: &mut [f32], size: [u32; 2], data: &[f32], compensated: bool) {
    let [columns, rows] = cells(size);
    let step = std::f64::consts::PI / rows as f64;
    let pole = POLE * step.min(std::f64::consts::FRAC_PI_2).sin();
    let sine = |y: usize| (y as f64 * step).sin().max(pole);
    let luminance = |texel: &[f32]| {
        let [r, g, b] = [texel[0], texel[1], texel[2]].each(f64::from);
        (0.2126 * r + 0.7152 * g + 0.0722 * b).max(0.0)
    };
    let of_rows: Vec<f64> = data
        .par_chunks(3 * columns)
        .enumerate()
        .map(|(y, row)| sine(y) * row.chunks_exact(3).map(luminance).sum::<f64>())
        .collect();
    let sines: f64 = (0..size[1] as usize).map(sine).sum();
    let mean = of_rows.iter().sum::<f64>() / (sines * columns as f64);
    weights.par_chunks_mut(columns).enumerate().for_each(|(y, row)| {
        for (weight, texel) in row.iter_mut().zip(data[3 * y * columns..].chunks_exact(3)) {
            // A map that is black all over is drawn uniformly.
            let relative = if mean > 0.0 { luminance(texel) / mean } else { 1.0 };
            let relative = if compensated {
                (relative - 1.0).max(0.0)
            } else {
                relative
            };
            *weight = ((relative + FLOOR) * sine(y)) as f32;
        }
    });
}

/// Writes the cumulative distribution of `weights`, from 0 to 1, to `out`, and returns the sum of the weights.
pub fn cumulate(weights: impl Iterator<Item = f64> + Clone, out: &mut [f32]) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The table by its definition, of weights [row][column] in f64.
    fn expected(weights: &[Vec<f64>]) -> Vec<f64> {
        let (rows, columns) = (weights.len().max(2) - 1, weights[0].len());
        let below = |y: usize| (y + 1).min(weights.len() - 1);
        let cell = |x: usize, y: usize| {
            let next = (x + 1) % columns;
            weights[y][x] + weights[y][next] + weights[below(y)][x] + weights[below(y)][next]
        };
        let cells: Vec<Vec<f64>> = (0..rows).map(|y| (0..columns).map(|x| cell(x, y)).collect()).collect();
        let shares = |all: Vec<f64>| -> Vec<f64> {
            let total: f64 = all.iter().sum();
            (0..=all.len()).map(|n| all[..n].iter().sum::<f64>() / total).collect()
        };
        let mut table = shares(cells.iter().map(|row| row.iter().sum()).collect());
        cells.into_iter().for_each(|row| table.extend(shares(row)));
        table.extend(weights.concat());
        table
    }

    fn check(size: [u32; 2], data: &[f32], weights: &[Vec<f64>]) {
        let (found, expected) = (environment_table(size, data, false), expected(weights));
        assert_eq!((found.len(), guide_to_rows(size)), (table_len(size), expected.len()));
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (f64::from(*found) - expected).abs() < 1e-6,
                "{size:?} {i}: {found}, not {expected}"
            );
        }
    }

    /// Checks that each number's bin lies between the two entries of its guide.
    fn check_guide(table: &[f32], first: usize, bins: usize, [guide, parts]: [usize; 2]) {
        for i in 0..1000 {
            let u = i as f32 / 1000.0;
            let bin = (0..bins)
                .filter(|bin| table[first + bin] <= u)
                .max()
                .expect("the first");
            let part = guide + (u * parts as f32) as usize;
            let [low, high] = [0, 1].each(|k| table[part + k].to_bits() as usize);
            assert!(
                (low..=high).contains(&bin),
                "{u} is in {bin}, not {low} to {high} of {bins}"
            );
            assert!(
                table[first + low] <= (part - guide) as f32 / parts as f32,
                "{u}: {low} is too far"
            );
        }
    }

    fn grey(values: &[f32]) -> Vec<f32> {
        values.iter().flat_map(|v| [*v; 3]).collect()
    }

    /// Three rows: sines of a quarter, one and a quarter. Luminances sum to 4, 8 and 4, weighed by sines to 10 over 3 · 1.5,
    /// so that the mean is 20/9.
    #[test]
    fn a_small_map_by_hand() {
        let values = [1.0, 3.0, 0.0, 2.0, 6.0, 0.0, 0.0, 4.0, 0.0];
        let sines = [0.25, 1.0, 0.25];
        let weight = |x: usize, y: usize| (f64::from(values[3 * y + x]) * 9.0 / 20.0 + 1.0 / 256.0) * sines[y];
        let weights: Vec<Vec<f64>> = (0..3).map(|y| (0..3).map(|x| weight(x, y)).collect()).collect();
        check([3, 3], &grey(&values), &weights);
        assert_eq!(
            (cells([3, 3]), first_of_row([3, 3], 0), first_of_row([3, 3], 1)),
            ([3, 2], 3, 7)
        );
        assert_eq!(
            (first_weight([3, 3]), guide_to_rows([3, 3]), table_len([3, 3])),
            (11, 20, 27)
        );
    }

    /// The guide to a row has a part for each sixteen cells, rounded up to a power of two; that to the rows has one or more
    /// a row.
    #[test]
    fn guides_lead_to_bins() {
        for (width, parts) in [(1, 1), (16, 1), (17, 2), (32, 2), (33, 4), (200, 16)] {
            let values: Vec<f32> = (0..6 * width).map(|i| ((7 * i) % 5) as f32 + 0.5).collect();
            let data = grey(&values);
            let size = [width as u32, 6];
            assert_eq!(table_len(size), first_weight(size) + 6 * width + 9 + 5 * (parts + 1));
            let table = environment_table(size, &data, false);
            check_guide(&table, 0, 5, [guide_to_rows(size), 8]);
            for y in 0..5 {
                check_guide(&table, first_of_row(size, y), width, [guide_to_row(size, y), parts]);
            }
        }
    }

    /// Poles weigh a quarter of what the next rows do, also where these are few; luminance is that of Rec. 709, and
    /// light below zero is none.
    #[test]
    fn maps_of_any_height_by_their_formula() {
        for height in 1..6u32 {
            let colors = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0], [-5.0, 1.0, 1.0]];
            let luminances = [0.2126, 1.4304, 0.2888, 0.0];
            let data: Vec<f32> = (0..height)
                .flat_map(|y| colors.map(|c| c.map(|v| v * (y + 1) as f32)))
                .flatten()
                .collect();
            let step = std::f64::consts::PI / f64::from(height.max(2) - 1);
            let sine = |y: u32| match y == 0 || y + 1 == height {
                true if height < 3 => 0.25,
                true => 0.25 * step.sin(),
                false => (f64::from(y) * step).sin(),
            };
            let light = |x: usize, y: u32| luminances[x] * f64::from(y + 1);
            let sum =
                |f: &dyn Fn(usize, u32) -> f64| (0..height).flat_map(|y| (0..4).map(move |x| f(x, y))).sum::<f64>();
            let mean = sum(&|x, y| light(x, y) * sine(y)) / sum(&|_, y| sine(y));
            let weights: Vec<Vec<f64>> = (0..height)
                .map(|y| (0..4).map(|x| (light(x, y) / mean + 1.0 / 256.0) * sine(y)).collect())
                .collect();
            check([4, height], &data, &weights);
        }
    }

    #[test]
    fn a_black_map_is_drawn_uniformly() {
        let sines = [0.25, 1.0, 0.25];
        let weights: Vec<Vec<f64>> = sines.iter().map(|sine| vec![sine * (1.0 + 1.0 / 256.0); 2]).collect();
        check([2, 3], &grey(&[0.0; 6]), &weights);
    }

    /// Of luminances 1, 2, 3 and 6, whose mean is 3, only the last exceeds the mean, by the mean; in a map without contrast
    /// none does, and it is drawn uniformly.
    #[test]
    fn a_compensated_map_is_drawn_by_what_exceeds_its_mean() {
        let floor = (1.0f64 / 256.0) as f32;
        let weights = |values: &[f32]| {
            environment_table([4, 1], &grey(values), true)[first_weight([4, 1])..guide_to_rows([4, 1])].to_vec()
        };
        let sine = POLE as f32;
        let expected = [0.0, 0.0, 0.0, 1.0].map(|w: f32| (w + floor) * sine);
        for (found, expected) in weights(&[1.0, 2.0, 3.0, 6.0]).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        }
        assert_eq!(weights(&[2.0; 4]), [floor * sine; 4]);
    }
}
