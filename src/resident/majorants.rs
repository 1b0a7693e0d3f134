//! Majorants, the upper bounds of every medium's extinction cell by cell: the grids of cells, and their values.

use glam::{Affine3A, Vec3, Vec3A};
use rayon::prelude::*;

use super::layout::{self, MediumRecord, SceneRecord, VolumeRecord};
use super::paths::PathScene;
use super::{affine, rows};
use crate::each::{EachEntry, each_index};
use crate::kernels::occupancy::reachable_between;
use crate::params::Shape;

/// Texels along the edge of a cell of the majorant grid.
const CELL: usize = 8;
/// The most cells of a medium: 64 MiB of majorants.
const MOST_CELLS: u64 = 1 << 24;
/// A box that covers more unit cubes than this along an axis has one cell there: f32 could not tell more cells apart.
const WIDEST: f32 = 1e4;
/// Majorants below this are set to zero, so that the inverses of all others are finite.
const LEAST: f32 = 1e-30;
/// Majorants exceed the largest extinction by this factor, so that null collisions stay possible everywhere.
pub(super) const MARGIN: f32 = 1.05;

/// How a medium's majorants follow from its extinction.
#[derive(Debug, Clone, Copy, Default)]
pub struct MajorantRule {
    /// The box that the grid covers, in the frame of the volume's unit cube: set by [`PathScene::fit`].
    pub(super) low: [f32; 3],
    pub(super) high: [f32; 3],
    /// The least majorant of a medium whose extinction may grow, without which one of zero would have no collisions and no
    /// derivatives: one over the length of the medium. Zero where a medium may reach to infinity, where collisions would
    /// not end.
    pub(super) least: f32,
    /// The least majorant: `least` where the extinction may grow, else zero.
    pub floor: f32,
    /// Factor by which majorants exceed the largest extinction.
    pub margin: f32,
}

impl PathScene {
    /// Treats every parameter as one that a run may change: majorants get a margin, and paths go on where a texture is
    /// black.
    pub fn vary_all(&mut self) {
        self.bsdfs.vary_all();
        for rule in &mut self.rules {
            rule.margin = MARGIN;
            rule.floor = rule.least;
        }
    }

    /// Number of majorants of all media.
    pub fn majorants(&self) -> usize {
        self.media
            .iter()
            .map(|m| m.majorants[..3].iter().map(|n| *n as usize).product::<usize>())
            .sum()
    }

    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&mut self, scene: &SceneRecord, shapes: &[Shape]) {
        for volume in &mut self.volumes {
            let Shape {
                size: [x, y, z],
                channels,
            } = shapes[volume.slot as usize];
            volume.size = [x as u32, y as u32, z as u32, channels as u32];
        }
        for texture in self
            .bsdfs
            .textures
            .iter_mut()
            .filter(|t| t.kind == layout::texture::BITMAP)
        {
            let [width, height, _] = shapes[texture.slot as usize].size;
            texture.size = [width as u32, height as u32];
        }
        for mesh in &mut self.rest.meshes {
            mesh.fit(shapes[mesh.slot as usize]);
        }
        self.place_light_tables(scene);
        let mut first = 0;
        for (medium, rule) in self.media.iter_mut().zip(&mut self.rules) {
            let sigma = &self.volumes[medium.sigma_t as usize];
            let albedo = &self.volumes[medium.albedo as usize];
            let is_aligned = sigma.filter == albedo.filter
                && sigma.wrap == albedo.wrap
                && sigma.size[..3] == albedo.size[..3]
                && (sigma.filter == layout::lookup::CONSTANT || sigma.world_to_unit == albedo.world_to_unit);
            medium.set(layout::medium::ALIGNED, is_aligned);
            (rule.low, rule.high) = covered(medium, sigma);
            let extent = [0, 1, 2].each(|a| rule.high[a] - rule.low[a]);
            let to_grid = Affine3A::from_scale(Vec3::from_array(extent.each(|e| 1.0 / e)))
                * Affine3A::from_translation(-Vec3::from_array(rule.low))
                * affine(&sigma.world_to_unit);
            medium.world_to_grid = rows(&to_grid);
            let local = sigma.filter != layout::lookup::CONSTANT && sigma.wrap == layout::wrap::CLAMP;
            let [x, y, z] = if local { cells(sigma, extent) } else { [1; 3] };
            medium.majorants = [x, y, z, first];
            first += x * y * z;
        }
    }

    /// The majorants of all media, given the parameters' values.
    pub fn rebuild_majorants(&self, values: &[&[f32]]) -> Vec<f32> {
        let data = |medium: &MediumRecord| values[self.volumes[medium.sigma_t as usize].slot as usize];
        let media = self.media.iter().enumerate();
        media
            .flat_map(|(i, medium)| self.majorants_of(i, data(medium)))
            .collect()
    }

    /// How a medium's majorants follow from its extinction.
    pub fn majorant_rule(&self, medium: usize) -> MajorantRule {
        self.rules[medium]
    }

    /// For each axis and each cell of a medium's majorant grid the first and the last texel that lookups can reach.
    pub fn reach(&self, medium: usize) -> [Vec<(usize, usize)>; 3] {
        let (rule, medium) = (&self.rules[medium], &self.media[medium]);
        let size = self.volumes[medium.sigma_t as usize].size;
        [0, 1, 2].map(|a| {
            let (cells, texels) = (medium.majorants[a] as usize, size[a] as usize);
            let at = |i: usize| rule.low[a] + (rule.high[a] - rule.low[a]) * i as f32 / cells as f32;
            (0..cells)
                .map(|i| match cells {
                    1 => (0, texels - 1),
                    _ => reachable_between(at(i), at(i + 1), texels),
                })
                .collect()
        })
    }

    /// The majorants of a medium whose `sigma_t` is `data`: in each cell the largest extinction that a lookup in it can
    /// give, with a margin.
    pub fn majorants_of(&self, medium: usize, data: &[f32]) -> Vec<f32> {
        let [along_x, along_y, along_z] = self.reach(medium);
        let (rule, medium) = (&self.rules[medium], &self.media[medium]);
        let size = self.volumes[medium.sigma_t as usize].size.each(|n| n as usize);
        let majorant_of = |[x0, x1]: [usize; 2], [y0, y1]: [usize; 2], [z0, z1]: [usize; 2]| {
            let mut most = 0f32;
            for z in z0..=z1 {
                for y in y0..=y1 {
                    let row = (z * size[1] + y) * size[0];
                    most = most.max(largest(&data[(row + x0) * size[3]..(row + x1 + 1) * size[3]]));
                }
            }
            let majorant = (most * medium.scale * rule.margin).max(rule.floor);
            if majorant < LEAST { 0.0 } else { majorant }
        };
        let slab = |&(z0, z1): &(usize, usize)| {
            let mut slab = Vec::with_capacity(along_x.len() * along_y.len());
            for &(y0, y1) in &along_y {
                let row = along_x
                    .iter()
                    .map(|&(x0, x1)| majorant_of([x0, x1], [y0, y1], [z0, z1]));
                slab.extend(row);
            }
            slab
        };
        along_z.par_iter().flat_map_iter(slab).collect()
    }
}

/// The numbers of cells along the axes; a medium's box is `extent` unit cubes of the extinction's volume long.
fn cells(sigma: &VolumeRecord, extent: [f32; 3]) -> [u32; 3] {
    let mut cells = [0, 1, 2].each(|a: usize| match extent[a] <= WIDEST {
        true => ((sigma.size[a] as f32 * extent[a]).ceil() as u32)
            .div_ceil(CELL as u32)
            .max(1),
        false => 1,
    });
    while cells.iter().map(|n| u64::from(*n)).product::<u64>() > MOST_CELLS {
        let most = cells.iter_mut().max().expect("there are three");
        *most = most.div_ceil(2);
    }
    cells
}

/// The largest of the values and zero. Eight independent maxima, since in one each comparison would wait for the last.
fn largest(values: &[f32]) -> f32 {
    let (eights, rest) = values.as_chunks::<8>();
    let mut most = [0f32; 8];
    for eight in eights {
        most = each_index(|l| most[l].max(eight[l]));
    }
    let mut largest = 0f32;
    for value in most {
        largest = largest.max(value);
    }
    for value in rest {
        largest = largest.max(*value);
    }
    largest
}

/// The box, in the frame of the volume's unit cube, that a medium's world-space box covers: the unit cube itself unless it
/// is turned.
fn covered(medium: &MediumRecord, sigma: &VolumeRecord) -> ([f32; 3], [f32; 3]) {
    if sigma.filter == layout::lookup::CONSTANT {
        return ([0.0; 3], [1.0; 3]);
    }
    let to_unit = affine(&sigma.world_to_unit);
    let pick = |i: u32, a: usize| if i >> a & 1 == 0 { medium.low[a] } else { medium.high[a] };
    let corners = (0..8u32).map(|i| to_unit.transform_point3a(Vec3A::new(pick(i, 0), pick(i, 1), pick(i, 2))));
    let (low, high) = corners.fold((Vec3A::INFINITY, Vec3A::NEG_INFINITY), |(low, high), c| {
        (low.min(c), high.max(c))
    });
    // An upright box covers the cube exactly, but for rounding.
    let snap = |x: f32, to: f32| if (x - to).abs() < 1e-4 { to } else { x };
    (
        low.to_array().each(|x| snap(x, 0.0)),
        high.to_array().each(|x| snap(x, 1.0)),
    )
}
