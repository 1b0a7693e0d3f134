//! Where the sampling tables lie: the environment map's, then those of textured area lights.

use super::environment::{row_start, table_len};
use super::layout::{LightRecord, NONE, SceneRecord, TextureRecord, background, lookup, surface, texture};
use super::paths::PathScene;
use crate::each::EachEntry;

/// Most cells of a table along u and along v.
const MOST_CELLS: f32 = 1024.0;

impl PathScene {
    /// Gives a sampling table to every textured area light on a shape that (u, v) parametrises as a whole (no cube or
    /// mesh), with cells so small that the texture hardly changes within one.
    pub(super) fn place_light_tables(&mut self, scene: &SceneRecord) {
        let mut end = environment_len(scene);
        for light in &mut self.lights {
            light.cells = [0; 2];
            if light.texture == NONE || light.surface == NONE {
                continue;
            }
            let kind = self.surfaces[light.surface as usize].kind;
            let record = &self.bsdfs.textures[light.texture as usize];
            if matches!(kind, surface::CUBE | surface::MESH) || record.kind == texture::VOLUME {
                continue;
            }
            light.cells = cells(record);
            light.table = end as u32;
            end += light_table_len(light);
        }
    }

    /// Entries of all sampling tables.
    pub fn sampling_tables_len(&self, scene: &SceneRecord) -> usize {
        let lights = self.lights.iter().filter(|light| light.cells[0] > 0);
        environment_len(scene) + lights.map(light_table_len).sum::<usize>()
    }
}

/// Entries of the environment map's table.
fn environment_len(scene: &SceneRecord) -> usize {
    match scene.background {
        background::ENVMAP => table_len(scene.env_size),
        _ => 0,
    }
}

/// Entries of a light's table: cumulated probabilities of rows, and of each row's cells.
fn light_table_len(light: &LightRecord) -> usize {
    let cells = light.cells.each(|n| n as usize);
    row_start(cells, cells[1])
}

/// Columns and rows of cells. A cell is a texel or a square of a checkerboard, half a texel along either axis where texels
/// are interpolated, so that the texture is bilinear in each cell of an upright image.
fn cells(record: &TextureRecord) -> [u32; 2] {
    let size = match (record.kind, record.filter) {
        (texture::BITMAP, lookup::NEAREST) => record.size.each(|n| n as f32),
        (texture::BITMAP, _) => record.size.each(|n| 2.0 * n as f32),
        (texture::CHECKERBOARD, _) => [2.0; 2],
        _ => [1.0; 2],
    };
    let m = &record.to_uv;
    [0, 1].each(|a| {
        let along = (m[0][a].abs() * size[0]).max(m[1][a].abs() * size[1]);
        along.ceil().clamp(1.0, MOST_CELLS) as u32
    })
}
