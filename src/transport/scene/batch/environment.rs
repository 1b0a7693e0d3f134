//! Directions towards an environment map in lanes: drawn from its table, and looked up, as `light.rs` and `sky.rs` do with one.

use super::rays::{LANES, Lanes, Vectors};
use crate::each::EachEntry;
use crate::resident::environment::{cells, first_of_row, first_weight, table_len};
use crate::resident::layout::{NONE, background};
use crate::transport::scene::light::{
    BELOW_ONE, EnvPlace, MapFrame, area_of_map, place_in_cell, relative_weight, with_choice,
};
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::sky::scale;

/// An environment map: what it shines with, and the table that directions are drawn from.
#[derive(Debug, Clone, Copy)]
pub struct SkyMap<'a> {
    frame: MapFrame,
    texels: &'a [f32],
    scale: f32,
    table: &'a [f32],
}

/// What a map is in the directions of lanes: its radiance, and the pdf with which they are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub radiance: Vectors,
    pub pdf: Lanes<f32>,
}

/// Directions drawn, and their pdfs before the choice among the lights.
#[derive(Debug, Clone, Copy)]
pub struct DrawnDirections {
    pub direction: Vectors,
    pub pdf: Lanes<f32>,
}

/// Places on a map: their cells, texels and weights, and the sines of their polar angles.
struct Places {
    cell: [Lanes<u32>; 2],
    texels: [Lanes<u32>; 4],
    weights: [Lanes<f32>; 4],
    sine: Lanes<f32>,
}

impl<'a> SkyMap<'a> {
    /// That of a scene, if it has one that lanes can look up.
    #[inline]
    pub fn of<F: Fields<f32>>(scene: &SceneView<'a>, fields: &'a F) -> Option<Self> {
        if scene.common.background != background::ENVMAP {
            return None;
        }
        let size = scene.common.env_size;
        let numbers = 3 * size[0] as usize * size[1] as usize;
        // Lanes have signed indices of 32 bits.
        (numbers <= i32::MAX as usize).then(|| Self {
            frame: MapFrame::of(scene),
            texels: &fields.integrand(scene.background)[..numbers],
            scale: scale(scene, fields),
            table: &scene.tables[..table_len(size)],
        })
    }

    /// The radiance that comes from these directions and, if `pdfs` are wanted, with which pdf they are drawn.
    #[inline(always)]
    pub fn look_up(&self, scene: &SceneView, directions: &Vectors, pdfs: bool) -> Seen {
        // Copies: for all that a compiler knows, writing a lane could change what is referred to.
        let (frame, scale) = (self.frame, self.scale);
        let mut places = Places::ZERO;
        for lane in 0..LANES {
            places.put(lane, &frame.place([0, 1, 2].each(|a| directions[a][lane])));
        }
        let mut seen = Seen {
            radiance: [[0.0; LANES]; 3],
            pdf: [0.0; LANES],
        };
        for k in 0..4 {
            for c in 0..3 {
                for lane in 0..LANES {
                    let at = 3 * places.texels[k][lane] + c as u32;
                    // SAFETY: texels of a stencil are those of the map, of three numbers each.
                    let texel = unsafe { gather(self.texels, at) };
                    seen.radiance[c][lane] += texel * places.weights[k][lane];
                }
            }
        }
        for c in 0..3 {
            for lane in 0..LANES {
                seen.radiance[c][lane] *= scale;
            }
        }
        if pdfs && scene.settings.environment != NONE {
            let record = &scene.lights[scene.settings.environment as usize];
            let pdf = self.pdfs(&places);
            for lane in 0..LANES {
                seen.pdf[lane] = with_choice(scene, record, pdf[lane]);
            }
        }
        seen
    }

    /// Draws a direction in each lane.
    #[inline(always)]
    pub fn draw(&self, u: &Lanes<f32>, v: &Lanes<f32>) -> DrawnDirections {
        let frame = self.frame;
        let size = frame.size;
        let [columns, rows] = cells(size).each(|n| n as u32);
        let (row, below) = self.bins(&[0; LANES], rows, v);
        let mut first = [0; LANES];
        for lane in 0..LANES {
            first[lane] = first_of_row(size, 0) as u32 + row[lane] * (columns + 1);
        }
        let (column, across) = self.bins(&first, columns, u);
        let mut places = Places::ZERO;
        for lane in 0..LANES {
            places.put(lane, &EnvPlace::new(size, [column[lane], row[lane]], [0.0; 2], 0.0));
        }
        let texels = self.texel_weights(&places);
        let mut drawn = DrawnDirections {
            direction: [[0.0; LANES]; 3],
            pdf: [0.0; LANES],
        };
        for lane in 0..LANES {
            let cell = [column[lane], row[lane]];
            let place = place_in_cell([across[lane], below[lane]], [0, 1, 2, 3].each(|k| texels[k][lane]));
            let (direction, sine) = frame.direction(cell, place);
            places.put(lane, &EnvPlace::new(size, cell, place, sine));
            for a in 0..3 {
                drawn.direction[a][lane] = direction[a];
            }
        }
        drawn.pdf = self.pdfs(&places);
        drawn
    }

    /// The bins of `count` that contain `u`, in cumulated probabilities that begin at `first`, and the positions within them.
    #[inline(always)]
    fn bins(&self, first: &Lanes<u32>, count: u32, u: &Lanes<f32>) -> (Lanes<u32>, Lanes<f32>) {
        let (mut low, mut high) = ([0; LANES], [count; LANES]);
        // Once one bin is left, a further step changes nothing.
        for _ in 0..count.next_power_of_two().trailing_zeros() {
            for lane in 0..LANES {
                let middle = (low[lane] + high[lane]) / 2;
                // SAFETY: the table has `count` + 1 entries from `first` on.
                let is_left = unsafe { gather(self.table, first[lane] + middle) } <= u[lane];
                low[lane] = std::hint::select_unpredictable(is_left, middle, low[lane]);
                high[lane] = std::hint::select_unpredictable(is_left, high[lane], middle);
            }
        }
        let mut places = [0.0; LANES];
        for lane in 0..LANES {
            // SAFETY: as above.
            let [begins, ends] = [0, 1].each(|k| unsafe { gather(self.table, first[lane] + low[lane] + k) });
            let width = ends - begins;
            let place = std::hint::select_unpredictable(width > 0.0, (u[lane] - begins) / width, 0.5);
            places[lane] = place.clamp(0.0, BELOW_ONE);
        }
        (low, places)
    }

    /// The weights of places' texels in the table.
    #[inline(always)]
    fn texel_weights(&self, places: &Places) -> [Lanes<f32>; 4] {
        let first = first_weight(self.frame.size) as u32;
        let mut weights = [[0.0; LANES]; 4];
        for k in 0..4 {
            for lane in 0..LANES {
                // SAFETY: texels of a stencil are those of the map, and the table has a weight for each.
                weights[k][lane] = unsafe { gather(self.table, first + places.texels[k][lane]) };
            }
        }
        weights
    }

    /// The pdfs by solid angle at these places, without the choice among the lights.
    #[inline(always)]
    fn pdfs(&self, places: &Places) -> Lanes<f32> {
        let size = self.frame.size;
        let [columns, rows] = cells(size);
        let texels = self.texel_weights(places);
        let first = first_of_row(size, 0) as u32;
        let mut pdf = [0.0; LANES];
        for lane in 0..LANES {
            let [column, row] = [0, 1].each(|a| places.cell[a][lane]);
            let start = first + row * (columns as u32 + 1) + column;
            // SAFETY: the table has the probabilities of each cell of the map.
            let of_row = unsafe { gather(self.table, row + 1) - gather(self.table, row) };
            // SAFETY: as above.
            let of_cell = unsafe { gather(self.table, start + 1) - gather(self.table, start) };
            let [here, all] = [&texels, &places.weights].each(|of| [0, 1, 2, 3].each(|k| of[k][lane]));
            let relative = relative_weight(here, all);
            pdf[lane] = of_row * of_cell * (columns * rows) as f32 * relative / area_of_map(places.sine[lane]);
        }
        pdf
    }
}

impl Places {
    const ZERO: Self = Self {
        cell: [[0; LANES]; 2],
        texels: [[0; LANES]; 4],
        weights: [[0.0; LANES]; 4],
        sine: [0.0; LANES],
    };

    #[inline(always)]
    fn put(&mut self, lane: usize, place: &EnvPlace) {
        for a in 0..2 {
            self.cell[a][lane] = place.cell[a];
        }
        for k in 0..4 {
            self.texels[k][lane] = place.at.texels[k];
            self.weights[k][lane] = place.at.weights[k];
        }
        self.sine[lane] = place.sine;
    }
}

/// An entry of a table. Signed 32-bit offsets are what vector instructions gather by.
///
/// # Safety
/// The table has this entry, whose index is below 2³¹.
#[inline(always)]
unsafe fn gather(table: &[f32], at: u32) -> f32 {
    // SAFETY: as the caller says.
    unsafe { *table.as_ptr().offset(at as i32 as isize) }
}
