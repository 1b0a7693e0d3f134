//! The table that directions towards an environment map are drawn from.

/// Cumulated probabilities of an environment map of `size` texels: of its rows, then of each row's columns, in
/// proportion to the largest channel of the texels around a cell, and a tenth uniformly, so that what a run makes
/// bright can be found.
pub fn environment_table(size: [u32; 2], data: &[f32]) -> Vec<f32> {
    let [columns, rows] = [size[0] as usize, size[1].max(2) as usize - 1];
    let texel = |x: usize, y: usize| {
        let start = (y.min(size[1] as usize - 1) * columns + x % columns) * 3;
        data[start].max(data[start + 1]).max(data[start + 2]).max(0.0)
    };
    let mut weights = vec![0f64; columns * rows];
    for y in 0..rows {
        let theta = (y as f64 + 0.5) / rows as f64 * std::f64::consts::PI;
        for x in 0..columns {
            let most = texel(x, y)
                .max(texel(x + 1, y))
                .max(texel(x, y + 1))
                .max(texel(x + 1, y + 1));
            weights[y * columns + x] = f64::from(most) * theta.sin();
        }
    }
    let total: f64 = weights.iter().sum();
    for y in 0..rows {
        let sine = ((y as f64 + 0.5) / rows as f64 * std::f64::consts::PI).sin();
        for x in 0..columns {
            let weight = &mut weights[y * columns + x];
            let share = if total > 0.0 { 0.9 * *weight / total } else { 0.0 };
            *weight = share + 0.1 * sine / columns as f64;
        }
    }
    let mut table = cumulate(weights.chunks(columns).map(|row| row.iter().sum()));
    for row in weights.chunks(columns) {
        table.extend(cumulate(row.iter().copied()));
    }
    table
}

fn cumulate(weights: impl Iterator<Item = f64> + Clone) -> Vec<f32> {
    let total: f64 = weights.clone().sum();
    let mut sum = 0.0;
    let mut table = vec![0.0];
    table.extend(weights.map(|weight| {
        sum += weight / total;
        sum as f32
    }));
    *table.last_mut().expect("it begins with a zero") = 1.0;
    table
}
