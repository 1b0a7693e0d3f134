//! Sampling tables of cumulated probabilities, for directions towards an environment map and for points of textured
//! area lights. They are made on the host, for both devices.

use super::area_light::stretch;
use super::texture::{texture_eval, texture_stencil};
use crate::each::EachEntry;
use crate::resident::environment::{FLOOR, cumulate, environment_table, row_start};
use crate::resident::layout::{LightRecord, SceneRecord, background, slots_of};
use crate::resident::paths::PathScene;

/// All sampling tables of a scene, given its parameters' values: the environment map's, then those of textured area
/// lights.
pub fn sampling_tables(scene: &SceneRecord, paths: &PathScene, values: &[&[f32]]) -> Vec<f32> {
    let mut tables = match scene.background {
        background::ENVMAP => environment_table(scene.env_size, values[paths.background as usize], paths.compensated),
        _ => Vec::new(),
    };
    for light in paths.lights.iter().filter(|light| light.cells[0] > 0) {
        tables.extend(light_table(paths, light, values));
    }
    tables
}

/// The slots of the parameters that the sampling tables are made from.
pub fn slots_of_tables(scene: &SceneRecord, paths: &PathScene) -> Vec<u32> {
    let environment = (scene.background == background::ENVMAP).then_some(paths.background);
    let drawn = paths.lights.iter().filter(|light| light.cells[0] > 0);
    let slots = drawn.flat_map(|light| slots_of(&paths.bsdfs.textures, light.texture));
    environment.into_iter().chain(slots).collect()
}

/// Cumulated probabilities of the rows of cells, then of each row's cells: luminance in the middle of a cell times the
/// area there. A share of the mean is added, so that black texels, which a run may make brighter, are drawn too.
fn light_table(paths: &PathScene, light: &LightRecord, values: &[&[f32]]) -> Vec<f32> {
    let record = &paths.bsdfs.textures[light.texture as usize];
    let kind = paths.surfaces[light.surface as usize].kind;
    let [columns, rows] = light.cells.each(|n| n as usize);
    let (mut luminances, mut areas) = (Vec::new(), Vec::new());
    for row in 0..rows {
        for column in 0..columns {
            let uv = [(column as f32 + 0.5) / columns as f32, (row as f32 + 0.5) / rows as f32];
            let at = texture_stencil(record, uv);
            let [r, g, b] = texture_eval(values[at.slot as usize], &at).0.each(f64::from);
            luminances.push((0.2126 * r + 0.7152 * g + 0.0722 * b).max(0.0));
            areas.push(f64::from(stretch(kind, uv)));
        }
    }
    let power: f64 = luminances.iter().zip(&areas).map(|(l, a)| l * a).sum();
    let mean = power / areas.iter().sum::<f64>();
    // A texture that is black all over is drawn uniformly.
    let floor = if mean > 0.0 { FLOOR * mean } else { 1.0 };
    let mut table = vec![0.0; row_start([columns, rows], rows)];
    let (marginal, conditionals) = table.split_at_mut(rows + 1);
    let mut of_rows = Vec::with_capacity(rows);
    for (row, out) in conditionals.chunks_exact_mut(columns + 1).enumerate() {
        let cells = row * columns..(row + 1) * columns;
        let weights = cells.map(|i| (luminances[i] + floor) * areas[i]);
        of_rows.push(cumulate(weights, out));
    }
    cumulate(of_rows.iter().copied(), marginal);
    table
}
