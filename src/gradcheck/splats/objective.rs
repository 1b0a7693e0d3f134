//! The differentiated function: a weighted sum of the pixels of a picture of splats. Decisions (which splats a pixel
//! looks at, which weights are clamped, where a pixel is finished) are taken by the unperturbed f32 values.

use rayon::prelude::*;

use crate::each::EachEntry;
use crate::gradcheck::Setup;
use crate::resident::splats::{SplatScene, SplatSlots};
use crate::transport::number::Number;
use crate::transport::rays::pixel::linear_weight;
use crate::transport::splats::blend::{List, gather, replay};
use crate::transport::splats::splat::{Parameters, Splat, SplatAdjoint, reach};

/// Edge of the squares of pixels that share a list.
const TILE: usize = 16;

/// The objective and its parameters.
#[derive(Debug, Clone)]
pub struct SplatObjective {
    /// The parameters, in the order of the scene.
    pub values: Vec<Vec<f64>>,
    slots: SplatSlots,
    emitter: Option<usize>,
    views: Vec<View>,
    pixels: u32,
}

/// A view of the batch.
#[derive(Debug, Clone)]
struct View {
    width: usize,
    height: usize,
    /// Index of its first pixel in the batch.
    first: u32,
    decide: Vec<Splat<f32>>,
    /// Columns and rows of pixels that each splat may reach, the ends excluded.
    boxes: Vec<[[usize; 2]; 2]>,
    /// For each tile the splats that may reach it, in the order of blending.
    lists: Vec<Vec<u32>>,
    splats: Vec<Splat<f64>>,
}

/// The value and gradient of an objective: one array a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjoint {
    pub loss: f64,
    pub gradient: Vec<Vec<f64>>,
}

impl View {
    fn side(&self) -> f32 {
        self.width.max(self.height) as f32
    }

    fn tiles(&self) -> [usize; 2] {
        [self.width.div_ceil(TILE), self.height.div_ceil(TILE)]
    }

    fn list<'a, N>(&'a self, [x, y]: [usize; 2], splats: &'a [Splat<N>]) -> List<'a, N> {
        List {
            order: &self.lists[y / TILE * self.tiles()[0] + x / TILE],
            decide: &self.decide,
            splats,
            pixel: [x as f32 + 0.5, y as f32 + 0.5],
        }
    }
}

/// One splat's parameters.
fn parameters<N: Copy>(slots: &SplatSlots, values: &[Vec<N>], i: usize) -> Parameters<N> {
    let [position, scale, rotation, color, opacity] = slots.all().each(|slot| &values[slot]);
    Parameters {
        position: [position[2 * i], position[2 * i + 1]],
        scale: [scale[2 * i], scale[2 * i + 1]],
        rotation: rotation[i],
        color: [color[3 * i], color[3 * i + 1], color[3 * i + 2]],
        opacity: opacity[i],
    }
}

impl SplatObjective {
    /// The objective of a picture of splats.
    pub fn new(setup: &Setup, scene: &SplatScene) -> Self {
        let all = &setup.params.parameters;
        let plain: Vec<Vec<f32>> = all.iter().map(|p| p.values.clone()).collect();
        let values: Vec<Vec<f64>> = all
            .iter()
            .map(|p| p.values.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let mut first = 0;
        let views = setup.batch.table.sensors.iter().map(|&sensor| {
            let record = &setup.resident.sensors[sensor as usize];
            let mut view = View {
                width: record.width as usize,
                height: record.height as usize,
                first,
                decide: Vec::new(),
                boxes: Vec::new(),
                lists: Vec::new(),
                splats: Vec::new(),
            };
            first += record.width * record.height;
            let [across, down] = view.tiles();
            view.lists = vec![Vec::new(); across * down];
            for i in 0..scene.count {
                let of = parameters(&scene.slots, &plain, i);
                let splat = Splat::project(&of, view.side());
                let found = reach(&of, view.side()).map_or([[0, 0]; 2], |reach| {
                    let along = |axis: usize, length: usize| {
                        let within = |x: f32| x.clamp(0.0, length as f32) as usize;
                        let (center, reach) = (splat.center[axis], reach[axis]);
                        [
                            within((center - reach - 0.5).ceil()),
                            within((center + reach - 0.5).floor() + 1.0),
                        ]
                    };
                    [along(0, view.width), along(1, view.height)]
                });
                let [[left, right], [top, bottom]] = found;
                if left < right && top < bottom {
                    for y in top / TILE..bottom.div_ceil(TILE) {
                        for x in left / TILE..right.div_ceil(TILE) {
                            view.lists[y * across + x].push(i as u32);
                        }
                    }
                }
                view.decide.push(splat);
                view.boxes.push(found);
                view.splats
                    .push(Splat::project(&parameters(&scene.slots, &values, i), view.side()));
            }
            view
        });
        Self {
            views: views.collect(),
            values,
            slots: scene.slots,
            emitter: setup.resident.emitter,
            pixels: setup.batch.pixels(),
        }
    }

    /// The derivative of the objective by a pixel's colour.
    pub fn weight(&self, seed: u32, view: usize, [x, y]: [usize; 2]) -> [f64; 3] {
        let scale = 1.0 / (3.0 * f64::from(self.pixels));
        let view = &self.views[view];
        let index = view.first + (y * view.width + x) as u32;
        [0, 1, 2].each(|c| f64::from(linear_weight(seed, index, c)) * scale)
    }

    fn background<N: Number>(&self, values: &[Vec<N>]) -> [N; 3] {
        let found = self.emitter.map(|slot| &values[slot]);
        found.map_or([N::lift(0.0); 3], |v| [v[0], v[1], v[2]])
    }

    /// All pixels, view by view.
    fn all_pixels(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let views = self.views.iter().enumerate();
        views.flat_map(|(v, view)| {
            let width = view.width;
            (0..width * view.height).map(move |i| (v, i % width, i / width))
        })
    }

    /// Whether a pixel may depend on a splat's parameters, or on the background.
    pub fn is_met(&self, parameter: usize, splat: usize) -> bool {
        if Some(parameter) == self.emitter {
            return true;
        }
        let is_empty = |[[left, right], [top, bottom]]: [[usize; 2]; 2]| left >= right || top >= bottom;
        self.views.iter().any(|view| !is_empty(view.boxes[splat]))
    }

    /// The pixels that may depend on an entry: view, column and row.
    pub fn pixels_of(&self, parameter: usize, flat: usize) -> Vec<(usize, usize, usize)> {
        let Some(splat) = self.splat_of(parameter, flat) else {
            return self.all_pixels().collect();
        };
        let mut found = Vec::new();
        for (v, view) in self.views.iter().enumerate() {
            let [[left, right], [top, bottom]] = view.boxes[splat];
            found.extend((top..bottom).flat_map(|y| (left..right).map(move |x| (v, x, y))));
        }
        found
    }

    /// The splat that an entry belongs to; None if it belongs to the background.
    fn splat_of(&self, parameter: usize, flat: usize) -> Option<usize> {
        let channels = [2, 2, 1, 3, 1];
        let place = self.slots.all().iter().position(|slot| *slot == parameter)?;
        Some(flat / channels[place])
    }

    /// The splat that an entry belongs to, projected for each view from other values: its index, and its projection in
    /// each view.
    pub fn projected_alone(
        &self,
        values: &[Vec<f64>],
        parameter: usize,
        flat: usize,
    ) -> Option<(usize, Vec<Splat<f64>>)> {
        let splat = self.splat_of(parameter, flat)?;
        let of = parameters(&self.slots, values, splat);
        let of_views = self.views.iter().map(|view| Splat::project(&of, view.side()));
        Some((splat, of_views.collect()))
    }

    /// A pixel's colour with the projection of one splat replaced by `moved`.
    pub fn gather_with(
        &self,
        view: usize,
        at: [usize; 2],
        moved: &Option<(usize, Vec<Splat<f64>>)>,
        values: &[Vec<f64>],
    ) -> [f64; 3] {
        let of = &self.views[view];
        let background = self.background(values);
        let list = of.list(at, &of.splats);
        let Some((index, shapes)) = moved else {
            return gather(&list).0.over(background);
        };
        // Copies only the splats of the pixel's list, with one replaced.
        let decide: Vec<Splat<f32>> = list.order.iter().map(|&i| of.decide[i as usize]).collect();
        let splats: Vec<Splat<f64>> = list
            .order
            .iter()
            .map(|&i| {
                if i as usize == *index {
                    shapes[view]
                } else {
                    of.splats[i as usize]
                }
            })
            .collect();
        let order: Vec<u32> = (0..decide.len() as u32).collect();
        let own = List {
            order: &order,
            decide: &decide,
            splats: &splats,
            pixel: list.pixel,
        };
        gather(&own).0.over(background)
    }

    /// The picture in any number type, all views in order.
    pub fn image<N: Number + Send + Sync>(&self, values: &[Vec<N>]) -> Vec<[N; 3]> {
        let background = self.background(values);
        let mut image = Vec::new();
        for view in &self.views {
            let count = view.splats.len();
            let project = |i: usize| Splat::project(&parameters(&self.slots, values, i), view.side());
            let splats: Vec<Splat<N>> = (0..count).map(project).collect();
            let pixels = (0..view.width * view.height).into_par_iter().map(|i| {
                let list = view.list([i % view.width, i / view.width], &splats);
                gather(&list).0.over(background)
            });
            image.extend(pixels.collect::<Vec<_>>());
        }
        image
    }

    /// The objective and its gradient by replay, which undoes the blend splat by splat.
    pub fn adjoint(&self, seed: u32) -> Adjoint {
        let mut gradient: Vec<Vec<f64>> = self.values.iter().map(|v| vec![0.0; v.len()]).collect();
        let background = self.background(&self.values);
        let mut loss = 0.0;
        for (v, view) in self.views.iter().enumerate() {
            let mut by_splat = vec![SplatAdjoint::<f64>::zero(); view.splats.len()];
            for (tile, order) in view.lists.iter().enumerate() {
                let [across, _] = view.tiles();
                let (left, top) = (tile % across * TILE, tile / across * TILE);
                for y in top..(top + TILE).min(view.height) {
                    for x in left..(left + TILE).min(view.width) {
                        let weight = self.weight(seed, v, [x, y]);
                        let list = List {
                            order,
                            ..view.list([x, y], &view.splats)
                        };
                        let (last, count) = gather(&list);
                        let color = last.over(background);
                        loss += (0..3).map(|c| weight[c] * color[c]).sum::<f64>();
                        if let Some(slot) = self.emitter {
                            for c in 0..3 {
                                gradient[slot][c] += weight[c] * last.transmittance;
                            }
                        }
                        replay(&list, (last, count), weight, background, |splat, by| {
                            by_splat[splat as usize].add(&by);
                        });
                    }
                }
            }
            for (i, by) in by_splat.iter().enumerate() {
                let of = parameters(&self.slots, &self.values, i);
                let by = Splat::project_adjoint(&of, view.side(), by);
                let sums: [(usize, usize, &[f64]); 5] = [
                    (self.slots.position, 2 * i, &by.position),
                    (self.slots.scale, 2 * i, &by.scale),
                    (self.slots.rotation, i, &[by.rotation]),
                    (self.slots.color, 3 * i, &by.color),
                    (self.slots.opacity, i, &[by.opacity]),
                ];
                for (slot, at, terms) in sums {
                    for (entry, term) in gradient[slot][at..].iter_mut().zip(terms) {
                        *entry += term;
                    }
                }
            }
        }
        Adjoint { loss, gradient }
    }
}
