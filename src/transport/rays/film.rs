//! Reconstruction filters. Passes of an optimisation draw from them: a sample's film position is drawn in proportion to the
//! size of its pixel's filter, truncated at the film's edge. Where filters are not negative every sample of a pixel has weight
//! one; else the weight is the sign of the filter there, times the constant that makes the mean weight one.

use crate::each::EachEntry;
use crate::resident::layout::{FILTER_CELLS, FilterTable, SceneRecord, SensorRecord, filter};

/// Cells of a table per filter radius: half of all, as a table covers both sides.
const CELLS_PER_RADIUS: f32 = FILTER_CELLS as f32 / 2.0;

/// A place along one axis of a film, and the weight of a sample there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilmPlace {
    /// In pixels from the film's edge.
    pub position: f32,
    pub weight: f32,
}

/// The distribution function of a tent, at `offset` radii from its centre.
#[inline(always)]
pub fn tent_cdf(offset: f32) -> f32 {
    let x = offset.clamp(-1.0, 1.0);
    if x < 0.0 {
        0.5 * (1.0 + x) * (1.0 + x)
    } else {
        1.0 - 0.5 * (1.0 - x) * (1.0 - x)
    }
}

/// The inverse of [`tent_cdf`].
#[inline(always)]
pub fn tent_quantile(u: f32) -> f32 {
    if u < 0.5 {
        (2.0 * u).sqrt() - 1.0
    } else {
        1.0 - (2.0 * (1.0 - u)).sqrt()
    }
}

/// Both rows of a table, at `offset` radii from the filter's centre: the distribution function of the filter's size, and
/// its integral.
#[inline(always)]
pub fn table_cdf(table: &FilterTable, offset: f32) -> [f32; 2] {
    let x = ((offset + 1.0) * CELLS_PER_RADIUS).clamp(0.0, FILTER_CELLS as f32);
    let cell = (x as usize).min(FILTER_CELLS - 1);
    let part = x - cell as f32;
    [&table.drawn, &table.signed].each(|row| row[cell] + (row[cell + 1] - row[cell]) * part)
}

/// The inverse of a table's distribution function, in radii from the filter's centre, and the sign of the filter there.
#[inline(always)]
pub fn table_quantile(table: &FilterTable, u: f32) -> [f32; 2] {
    let (mut low, mut high) = (0usize, FILTER_CELLS);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if table.drawn[middle] <= u {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (from, width) = (table.drawn[low], table.drawn[low + 1] - table.drawn[low]);
    // Rounding may lead to a cell in which the filter vanishes.
    let part = if width > 0.0 { (u - from) / width } else { 0.0 };
    let sign = if table.signed[low + 1] < table.signed[low] {
        -1.0
    } else {
        1.0
    };
    [(low as f32 + part) / CELLS_PER_RADIUS - 1.0, sign]
}

/// The largest [`filter_reach`] for which a sample is spread over the pixels around it.
pub const MAX_REACH: u32 = 16;

/// Whether a sample contributes to all pixels around that its filter reaches, in views that are only looked at (equation 13a).
/// Not with a box or a filter narrower than a pixel: neither reaches another pixel, and most uniform samples would miss the
/// latter.
#[inline]
pub fn spreads(sensor: &SensorRecord) -> bool {
    sensor.filter != filter::BOX && (1..=MAX_REACH).contains(&filter_reach(sensor))
}

/// Width in pixels of the border around the film from which samples are spread, too.
#[inline(always)]
pub fn film_border(sensor: &SensorRecord) -> u32 {
    if sensor.sample_border == 1 {
        filter_reach(sensor)
    } else {
        0
    }
}

/// The sensor with which spread samples are drawn: uniform over the pixels of the film and of its border.
#[inline]
pub fn spread_sensor(sensor: &SensorRecord) -> SensorRecord {
    let border = film_border(sensor);
    SensorRecord {
        filter: filter::BOX,
        width: sensor.width + 2 * border,
        height: sensor.height + 2 * border,
        center: sensor.center.each(|x| x + border as f32),
        ..*sensor
    }
}

/// The number of pixels beside its own that a sample counts in, on either side.
#[inline(always)]
pub fn filter_reach(sensor: &SensorRecord) -> u32 {
    (sensor.filter_size - 0.5).max(0.0).ceil() as u32
}

/// The filter along one axis at `offset` pixels from its centre, up to a constant factor. Its absolute value is the density of
/// the samples that are drawn.
#[inline(always)]
pub fn filter_weight(scene: &SceneRecord, sensor: &SensorRecord, offset: f32) -> f32 {
    let x = offset / sensor.filter_size;
    if x.abs() >= 1.0 {
        return 0.0;
    }
    if sensor.filter == filter::TENT {
        return 1.0 - x.abs();
    }
    let row = &scene.filters[sensor.filter_table as usize].signed;
    let cell = (((x + 1.0) * CELLS_PER_RADIUS) as usize).min(FILTER_CELLS - 1);
    // The cell's integral, scaled so that weights are about one.
    (row[cell + 1] - row[cell]) * CELLS_PER_RADIUS
}

/// Samples the film position of `pixel` along one axis of `extent` pixels, with the uniform number `u`.
#[inline(always)]
pub fn filter_sample(scene: &SceneRecord, sensor: &SensorRecord, pixel: u32, extent: u32, u: f32) -> FilmPlace {
    if sensor.filter == filter::BOX {
        return FilmPlace {
            position: pixel as f32 + u,
            weight: 1.0,
        };
    }
    let (center, radius) = (pixel as f32 + 0.5, sensor.filter_size);
    let (mut low, mut high) = (-center / radius, (extent as f32 - center) / radius);
    if sensor.sample_border == 1 {
        (low, high) = (-1.0, 1.0);
    }
    let (offset, weight) = if sensor.filter == filter::TENT {
        let (from, to) = (tent_cdf(low), tent_cdf(high));
        (tent_quantile(from + (to - from) * u), 1.0)
    } else {
        let table = &scene.filters[sensor.filter_table as usize];
        let ([from, signed_from], [to, signed_to]) = (table_cdf(table, low), table_cdf(table, high));
        let [offset, sign] = table_quantile(table, from + (to - from) * u);
        (offset, sign * ((to - from) / (signed_to - signed_from)))
    };
    FilmPlace {
        position: center + offset.clamp(low, high) * radius,
        weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::filter::{filter_table, profile};
    use crate::scene::Filter;
    use crate::transport::rays::random::test_uniform;
    use bytemuck::Zeroable;

    const EXTENT: u32 = 9;

    fn records(of: Filter) -> (SceneRecord, SensorRecord) {
        let (mut scene, mut sensor) = (SceneRecord::zeroed(), SensorRecord::zeroed());
        (sensor.filter, sensor.filter_size) = match of {
            Filter::Box => (filter::BOX, 0.5),
            Filter::Tent { radius } => (filter::TENT, radius),
            _ => (filter::TABLE, of.radius()),
        };
        if sensor.filter == filter::TABLE {
            scene.filters[0] = filter_table(of);
        }
        (scene, sensor)
    }

    /// Few or none of a pixel's uniform samples lie within a narrow filter, so that samples are drawn from the filter instead.
    #[test]
    fn narrow_filters_do_not_spread() {
        for (of, expected) in [
            (Filter::Box, false),
            (Filter::Tent { radius: 0.01 }, false),
            (Filter::Tent { radius: 0.5 }, false),
            (Filter::Tent { radius: 0.6 }, true),
            (Filter::Gaussian { stddev: 0.01 }, false),
            (Filter::Gaussian { stddev: 0.5 }, true),
        ] {
            assert_eq!(spreads(&records(of).1), expected, "{of:?}");
        }
    }

    /// Chi-square test of 2^17 weighed samples against the exact filter, truncated to the film, in 40 bins, for pixels inside
    /// and at the border. The bound is the 1 - 1e-4 quantile of 39 degrees of freedom. All samples have the same weight up to
    /// its sign; a bin across a zero of the filter has samples of both signs.
    #[test]
    fn samples_follow_the_truncated_filter() {
        for of in [
            Filter::Box,
            Filter::Tent { radius: 1.0 },
            Filter::Tent { radius: 1.7 },
            Filter::Gaussian { stddev: 0.5 },
            Filter::Mitchell {
                b: 1.0 / 3.0,
                c: 1.0 / 3.0,
            },
            Filter::Mitchell { b: 0.0, c: 0.5 },
            Filter::Lanczos { lobes: 3 },
        ] {
            let (scene, mut sensor) = records(of);
            for (pixel, border) in [(0u32, 0), (1, 0), (5, 0), (8, 0), (0, 1)] {
                sensor.sample_border = border;
                let (count, bins) = (1u32 << 17, 40usize);
                let (center, radius) = (pixel as f32 + 0.5, of.radius());
                let (mut low, mut high) = (center - radius, center + radius);
                if border == 0 {
                    (low, high) = (low.max(0.0), high.min(EXTENT as f32));
                }
                // The integrals of the filter and of its size over each bin.
                let mut mass = vec![[0f64; 2]; bins];
                for (b, mass) in mass.iter_mut().enumerate() {
                    for i in 0..200 {
                        let part = (b as f32 + (i as f32 + 0.5) / 200.0) / bins as f32;
                        let f = profile(of, f64::from(low + (high - low) * part - center));
                        *mass = [mass[0] + f, mass[1] + f.abs()];
                    }
                }
                let total = [0, 1].map(|i| mass.iter().map(|m| m[i]).sum::<f64>());
                let weight = total[1] / total[0];
                let mut found = vec![0f64; bins];
                for i in 0..count {
                    let u = test_uniform(11, i, pixel)[0];
                    let place = filter_sample(&scene, &sensor, pixel, EXTENT, u);
                    let x = place.position;
                    assert!((low - 1e-5..=high + 1e-5).contains(&x), "{x} outside {low}..{high}");
                    assert!(
                        (f64::from(place.weight.abs()) / weight - 1.0).abs() < 1e-3,
                        "{of:?} {pixel}"
                    );
                    let b = ((x - low) / (high - low) * bins as f32) as usize;
                    found[b.min(bins - 1)] += f64::from(place.weight);
                }
                let count = f64::from(count);
                let chi2: f64 = found
                    .iter()
                    .zip(&mass)
                    .map(|(found, m)| [*found, count * m[0] / total[0], count * m[1] / total[1]])
                    .filter(|[_, _, drawn]| *drawn > 5.0)
                    .map(|[found, expected, drawn]| (found - expected).powi(2) / (weight * weight * drawn))
                    .sum();
                assert!(chi2 < 82.0, "{of:?} pixel {pixel} border {border}: chi2 = {chi2}");
            }
        }
    }
}
