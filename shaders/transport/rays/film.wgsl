// Reconstruction filters. Passes of an optimisation draw from them: a sample's film position is drawn in proportion to |f|, f
// being its pixel's filter truncated at the film's edge. Where filters are not negative every sample of a pixel has weight
// one; else the weight is the sign of f there, times a factor that makes the mean weight one.

#import bind/launch

// Table cells per filter radius: half their number.
const CELLS_PER_RADIUS: f32 = 60.0;

// A place along one axis of a film, in pixels from its edge, and the weight of a sample there.
struct FilmPlace {
    position: f32,
    weight: f32,
}

// The distribution function of a tent, at `offset` radii from its centre.
fn tent_cdf(offset: f32) -> f32 {
    let x = clamp(offset, -1.0, 1.0);
    if x < 0.0 {
        return 0.5 * (1.0 + x) * (1.0 + x);
    }
    return 1.0 - 0.5 * (1.0 - x) * (1.0 - x);
}

// The inverse of tent_cdf.
fn tent_quantile(u: f32) -> f32 {
    if u < 0.5 {
        return sqrt(2.0 * u) - 1.0;
    }
    return 1.0 - sqrt(2.0 * (1.0 - u));
}

// Both rows of a table, at the border behind `i` cells.
fn table_entry(table: u32, i: u32) -> vec2f {
    return vec2f(scene.filters[table].drawn[i >> 2u][i & 3u], scene.filters[table].signed[i >> 2u][i & 3u]);
}

// Both rows of a table, at `offset` radii from the filter's centre: the distribution function of |f|, and the integral of f.
fn table_cdf(table: u32, offset: f32) -> vec2f {
    let x = clamp((offset + 1.0) * CELLS_PER_RADIUS, 0.0, f32(FILTER_CELLS));
    let cell = min(u32(x), FILTER_CELLS - 1u);
    let low = table_entry(table, cell);
    return low + (table_entry(table, cell + 1u) - low) * (x - f32(cell));
}

// The inverse of a table's distribution function, in radii from the filter's centre, and the sign of the filter there.
fn table_quantile(table: u32, u: f32) -> vec2f {
    var low = 0u;
    var high = FILTER_CELLS;
    while high - low > 1u {
        let middle = (low + high) / 2u;
        if table_entry(table, middle).x <= u {
            low = middle;
        } else {
            high = middle;
        }
    }
    let begin = table_entry(table, low);
    let width = table_entry(table, low + 1u) - begin;
    // Rounding may lead to a cell in which the filter vanishes.
    var part = 0.0;
    if width.x > 0.0 {
        part = (u - begin.x) / width.x;
    }
    return vec2f((f32(low) + part) / CELLS_PER_RADIUS - 1.0, select(1.0, -1.0, width.y < 0.0));
}

// How many pixels away from its own, on either side, a sample still contributes.
fn filter_reach(sensor: Sensor) -> u32 {
    return u32(ceil(max(sensor.filter_size - 0.5, 0.0)));
}

// Width in pixels of the border around the film whose samples also contribute to the film; 0 without `sample_border`.
fn film_border(sensor: Sensor) -> u32 {
    return select(0u, filter_reach(sensor), sensor.sample_border == 1u);
}

// The sensor for samples that are splatted: they are uniform in the pixels of its film and of its border.
fn spread_sensor(sensor: Sensor) -> Sensor {
    let border = film_border(sensor);
    var wide = sensor;
    wide.filter_kind = FILTER_BOX;
    wide.width += 2u * border;
    wide.height += 2u * border;
    wide.center += f32(border);
    return wide;
}

// The filter along one axis at `offset` pixels from its centre, up to a constant factor: from a table, the mean over its
// cell.
fn filter_weight(sensor: Sensor, offset: f32) -> f32 {
    let x = offset / sensor.filter_size;
    if abs(x) >= 1.0 {
        return 0.0;
    }
    if sensor.filter_kind == FILTER_TENT {
        return 1.0 - abs(x);
    }
    let cell = min(u32((x + 1.0) * CELLS_PER_RADIUS), FILTER_CELLS - 1u);
    // The integral over the cell, in units that make weights of about one.
    return (table_entry(sensor.filter_table, cell + 1u).y - table_entry(sensor.filter_table, cell).y) * CELLS_PER_RADIUS;
}

// Samples the film position of `pixel` along one axis of `extent` pixels, with the uniform number `u`.
fn filter_sample(sensor: Sensor, pixel: u32, extent: u32, u: f32) -> FilmPlace {
    if sensor.filter_kind == FILTER_BOX {
        return FilmPlace(f32(pixel) + u, 1.0);
    }
    let center = f32(pixel) + 0.5;
    let radius = sensor.filter_size;
    var low = -center / radius;
    var high = (f32(extent) - center) / radius;
    if sensor.sample_border == 1u {
        low = -1.0;
        high = 1.0;
    }
    var offset = 0.0;
    var weight = 1.0;
    if sensor.filter_kind == FILTER_TENT {
        let begin = tent_cdf(low);
        offset = tent_quantile(begin + (tent_cdf(high) - begin) * u);
    } else {
        let begin = table_cdf(sensor.filter_table, low);
        let span = table_cdf(sensor.filter_table, high) - begin;
        let drawn = table_quantile(sensor.filter_table, begin.x + span.x * u);
        offset = drawn.x;
        weight = drawn.y * (span.x / span.y);
    }
    return FilmPlace(center + clamp(offset, low, high) * radius, weight);
}
