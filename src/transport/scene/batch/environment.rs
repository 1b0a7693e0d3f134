//! Sampling and lookup of an environment map for sixteen directions in lanes, as `light.rs` and `sky.rs` do for one direction.

use super::rays::{LANES, Lanes, Vectors};
use crate::each::EachEntry;
use crate::resident::environment::{
    cells, first_of_row, first_weight, guide_to_row, guide_to_rows, parts_of_row, parts_of_rows, table_len,
};
use crate::resident::layout::{NONE, background};
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::scene::light::{
    BELOW_ONE, EnvPlace, MapFrame, area_of_map, place_in_cell, relative_weight, with_choice,
};
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::sky::scale;

/// An environment map: its texels, the scale on their radiance, and the table that directions are sampled from.
#[derive(Debug, Clone, Copy)]
pub struct SkyMap<'a> {
    frame: MapFrame,
    texels: &'a [f32],
    scale: f32,
    table: &'a [f32],
}

/// A map's radiance in the directions of the lanes, and the pdf by solid angle with which a light sample draws them
/// (zero if not asked for). Each vector of lanes is one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Seen {
    pub radiance: Vectors,
    pub pdf: Lanes<f32>,
}

/// Sampled directions, and their pdfs by solid angle without the probability of choosing the map among the lights.
#[derive(Debug, Clone, Copy)]
pub struct DrawnDirections {
    pub direction: Vectors,
    pub pdf: Lanes<f32>,
}

/// Positions on a map: cell, the four texels around it with bilinear weights, and the sine of the polar angle.
struct Places {
    cell: [Lanes<u32>; 2],
    texels: [Lanes<u32>; 4],
    weights: [Lanes<f32>; 4],
    sine: Lanes<f32>,
}

impl<'a> SkyMap<'a> {
    /// The environment map of a scene, if it has one that is small enough for vector gathers.
    #[inline]
    pub fn of<F: Fields<f32>>(scene: &SceneView<'a>, fields: &'a F) -> Option<Self> {
        if scene.common.background != background::ENVMAP {
            return None;
        }
        let size = scene.common.env_size;
        let numbers = 3 * size[0] as usize * size[1] as usize;
        // Vector gathers take signed 32-bit indices.
        (numbers <= i32::MAX as usize).then(|| Self {
            frame: MapFrame::of(scene),
            texels: &fields.integrand(scene.background)[..numbers],
            scale: scale(scene, fields),
            table: &scene.tables[..table_len(size)],
        })
    }

    /// [`Self::look_up`] of several vectors of directions, each prefetched while the one before is looked up. `seen`
    /// gets one entry a vector.
    #[inline(always)]
    pub fn look_up_all(&self, scene: &SceneView, directions: &[Vectors], pdfs: bool, seen: &mut Vec<Seen>) {
        seen.clear();
        let Some(first) = directions.first() else { return };
        let mut places = self.ask_for(first, pdfs);
        // No closure: passed to a function, it is not compiled for the vector level of its kernel.
        for after in &directions[1..] {
            let next = self.ask_for(after, pdfs);
            seen.push(self.look_up_places(scene, &places, pdfs));
            places = next;
        }
        seen.push(self.look_up_places(scene, &places, pdfs));
    }

    /// The places of directions; prefetches what a lookup there reads.
    #[inline(always)]
    fn ask_for(&self, directions: &Vectors, pdfs: bool) -> Places {
        let places = self.places(directions);
        self.bring(&places, pdfs);
        places
    }

    /// The radiance from these directions and, if `pdfs` are wanted, the pdf with which they are drawn.
    #[inline(always)]
    pub fn look_up(&self, scene: &SceneView, directions: &Vectors, pdfs: bool) -> Seen {
        self.look_up_places(scene, &self.places(directions), pdfs)
    }

    /// The places of directions.
    #[inline(always)]
    fn places(&self, directions: &Vectors) -> Places {
        // A copy: behind a reference, the compiler must assume that writing a lane may change it.
        let frame = self.frame;
        let mut places = Places::ZERO;
        for lane in 0..LANES {
            places.put(lane, &frame.place([0, 1, 2].each(|a| directions[a][lane])));
        }
        places
    }

    /// Prefetches the cache lines of the places' texels and, for pdfs, of the texels' weights and the cells' probabilities.
    #[inline(always)]
    fn bring(&self, places: &Places, pdfs: bool) {
        let size = self.frame.size;
        let columns = cells(size)[0] as u32;
        let (weights, probabilities) = (first_weight(size) as u32, first_of_row(size, 0) as u32);
        let bring = |entry: u32| prefetch_line(self.table.as_ptr().wrapping_add(entry as usize));
        for lane in 0..LANES {
            for k in [0, 2] {
                prefetch_line(self.texels.as_ptr().wrapping_add(3 * places.texels[k][lane] as usize));
                if pdfs {
                    bring(weights + places.texels[k][lane]);
                }
            }
            if pdfs {
                bring(probabilities + places.cell[1][lane] * (columns + 1) + places.cell[0][lane]);
            }
        }
    }

    #[inline(always)]
    fn look_up_places(&self, scene: &SceneView, places: &Places, pdfs: bool) -> Seen {
        let scale = self.scale;
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
            let [of_row, of_cell] = self.probabilities(places);
            let pdf = self.pdfs(places, &self.texel_weights(places), [&of_row, &of_cell]);
            for lane in 0..LANES {
                seen.pdf[lane] = with_choice(scene, record, pdf[lane]);
            }
        }
        seen
    }

    /// Draws a cell in each lane, its column by `u` and its row by `v`, and prefetches its texels and probabilities.
    #[inline(always)]
    pub fn draw_cells(&self, u: &Lanes<f32>, v: &Lanes<f32>) -> DrawnCells {
        let [columns, rows] = cells(self.frame.size).each(|n| n as u32);
        let (top, guide) = ([0; LANES], [guide_to_rows(self.frame.size) as u32; LANES]);
        let row = self.bins(&top, self.search(&top, &guide, parts_of_rows(rows as usize), v), v);
        let column = self.bins_of_row(&row.number, columns, u);
        self.bring(&self.corners(&row, &column), true);
        DrawnCells { row, column }
    }

    /// The places of the first corners of cells.
    #[inline(always)]
    fn corners(&self, row: &Bins, column: &Bins) -> Places {
        let mut places = Places::ZERO;
        for lane in 0..LANES {
            let cell = [column.number[lane], row.number[lane]];
            places.put(lane, &EnvPlace::new(self.frame.size, cell, [0.0; 2], 0.0));
        }
        places
    }

    /// Draws a direction in each lane, within the cell that was drawn.
    #[inline(always)]
    pub fn draw(&self, DrawnCells { row, column }: &DrawnCells) -> DrawnDirections {
        let frame = self.frame;
        let size = frame.size;
        let mut places = self.corners(row, column);
        let texels = self.texel_weights(&places);
        let mut drawn = DrawnDirections {
            direction: [[0.0; LANES]; 3],
            pdf: [0.0; LANES],
        };
        for lane in 0..LANES {
            let cell = [column.number[lane], row.number[lane]];
            let place = place_in_cell(
                [column.place[lane], row.place[lane]],
                [0, 1, 2, 3].each(|k| texels[k][lane]),
            );
            let (direction, sine) = frame.direction(cell, place);
            places.put(lane, &EnvPlace::new(size, cell, place, sine));
            for a in 0..3 {
                drawn.direction[a][lane] = direction[a];
            }
        }
        drawn.pdf = self.pdfs(&places, &texels, [&row.width, &column.width]);
        drawn
    }

    /// The cell of each lane's row that contains `u`.
    #[inline(always)]
    fn bins_of_row(&self, row: &Lanes<u32>, columns: u32, u: &Lanes<f32>) -> Bins {
        let size = self.frame.size;
        let parts = parts_of_row(columns as usize);
        let [of_cells, of_guides] = [first_of_row(size, 0), guide_to_row(size, 0)].each(|first| first as u32);
        let [mut first, mut guide] = [[0; LANES]; 2];
        for lane in 0..LANES {
            first[lane] = of_cells + row[lane] * (columns + 1);
            guide[lane] = of_guides + row[lane] * (parts as u32 + 1);
        }
        self.bins(&first, self.search(&first, &guide, parts, u), u)
    }

    /// The bins that contain `u`, by binary search in the cumulated probabilities from the entry `first` on; the guide
    /// at `guide`, of `parts` parts, says between which bins.
    #[inline(always)]
    fn search(&self, first: &Lanes<u32>, guide: &Lanes<u32>, parts: usize, u: &Lanes<f32>) -> Lanes<u32> {
        let (mut low, mut high, mut widest) = ([0; LANES], [0; LANES], 0);
        for lane in 0..LANES {
            let part = guide[lane] + ((u[lane] * parts as f32) as i32 as u32).min(parts as u32 - 1);
            // SAFETY: a guide has an entry more than parts.
            let [this, next] = [0, 1].each(|k| unsafe { gather(self.table, part + k) }.to_bits());
            (low[lane], high[lane]) = (this, next + 1);
        }
        for lane in 0..LANES {
            widest = widest.max(high[lane] - low[lane]);
        }
        // Lanes with one bin left do not change any more.
        while widest > 1 {
            for lane in 0..LANES {
                let middle = (low[lane] + high[lane]) / 2;
                // SAFETY: guides name bins of the table.
                let is_left = unsafe { gather(self.table, first[lane] + middle) } <= u[lane];
                low[lane] = std::hint::select_unpredictable(is_left, middle, low[lane]);
                high[lane] = std::hint::select_unpredictable(is_left, high[lane], middle);
            }
            widest = widest.div_ceil(2);
        }
        low
    }

    /// The bins with these numbers in the cumulated probabilities from the entry `first` on, and the position of `u` in them.
    #[inline(always)]
    fn bins(&self, first: &Lanes<u32>, number: Lanes<u32>, u: &Lanes<f32>) -> Bins {
        let mut bins = Bins { number, ..Bins::ZERO };
        for lane in 0..LANES {
            // SAFETY: the table has these bins.
            let [begins, ends] = [0, 1].each(|k| unsafe { gather(self.table, first[lane] + number[lane] + k) });
            let width = ends - begins;
            let place = std::hint::select_unpredictable(width > 0.0, (u[lane] - begins) / width, 0.5);
            bins.width[lane] = width;
            bins.place[lane] = place.clamp(0.0, BELOW_ONE);
        }
        bins
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

    /// The probabilities of the places' rows, and of their cells given the row.
    #[inline(always)]
    fn probabilities(&self, places: &Places) -> [Lanes<f32>; 2] {
        let columns = cells(self.frame.size)[0] as u32;
        let first = first_of_row(self.frame.size, 0) as u32;
        let [mut of_row, mut of_cell] = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            let [column, row] = [0, 1].each(|a| places.cell[a][lane]);
            let start = first + row * (columns + 1) + column;
            // SAFETY: the table has the probabilities of each cell of the map.
            of_row[lane] = unsafe { gather(self.table, row + 1) - gather(self.table, row) };
            // SAFETY: as above.
            of_cell[lane] = unsafe { gather(self.table, start + 1) - gather(self.table, start) };
        }
        [of_row, of_cell]
    }

    /// The pdfs by solid angle at places between texels of these weights, without the choice among the lights. `of_row`
    /// and `of_cell` are the probabilities of their rows, and of their cells given the row.
    #[inline(always)]
    fn pdfs(&self, places: &Places, texels: &[Lanes<f32>; 4], [of_row, of_cell]: [&Lanes<f32>; 2]) -> Lanes<f32> {
        let [columns, rows] = cells(self.frame.size);
        let mut pdf = [0.0; LANES];
        for lane in 0..LANES {
            let [here, all] = [texels, &places.weights].each(|of| [0, 1, 2, 3].each(|k| of[k][lane]));
            let relative = relative_weight(here, all);
            pdf[lane] =
                of_row[lane] * of_cell[lane] * (columns * rows) as f32 * relative / area_of_map(places.sine[lane]);
        }
        pdf
    }
}

/// Cells of a map from which directions are drawn.
#[derive(Debug, Clone, Copy)]
pub struct DrawnCells {
    row: Bins,
    column: Bins,
}

impl DrawnCells {
    /// The value before any cell is drawn.
    pub const NONE: Self = Self {
        row: Bins::ZERO,
        column: Bins::ZERO,
    };
}

/// Bins of a cumulative table: their numbers, their probabilities (`width`), and the position of the lane's random
/// number in its bin, from 0 to 1. Each vector of lanes is one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Bins {
    number: Lanes<u32>,
    width: Lanes<f32>,
    place: Lanes<f32>,
}

impl Bins {
    const ZERO: Self = Self {
        number: [0; LANES],
        width: [0.0; LANES],
        place: [0.0; LANES],
    };
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

/// An entry of a table, by a signed 32-bit offset, as vector gather instructions take.
///
/// # Safety
/// The table has this entry, whose index is below 2³¹.
#[inline(always)]
unsafe fn gather(table: &[f32], at: u32) -> f32 {
    // SAFETY: as the caller says.
    unsafe { *table.as_ptr().offset(at as i32 as isize) }
}
