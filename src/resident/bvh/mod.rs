//! Bounding-volume hierarchies of triangles and other surfaces: nodes of eight children, built on the CPU by the
//! surface-area heuristic on all cores.

mod bounds;
mod collapse;
mod four;
mod split;
mod top;

use bytemuck::Zeroable;
use rayon::prelude::*;

use super::layout::{BLOCK, BlockRecord, NONE, NodeRecord, Rows, SurfaceRecord, Triangle, WIDTH, child, surface};
use super::pages::advise;
use crate::each::EachEntry;
use bounds::Bounds;
use collapse::{Branch, Kind, Part, SURFACE, Writer, set_box, set_triangle};
use four::Four;
use split::{Bins, Extent, split};
use top::{Top, Tree};

/// Most levels of a hierarchy; the stack of a traversal holds at most seven waiting nodes a level.
pub const MAX_LEVELS: usize = 40;

/// Trees over fewer primitives are built by one thread.
const TASK: usize = 1 << 12;

/// Most shapes other than meshes that rays are tested against one after the other, by batches in SIMD lanes and by a GPU;
/// with more, each ray goes down the hierarchy.
pub const FEW_SHAPES: usize = 64;

/// The lower and the upper corner of a box.
pub type Corners = [[f32; 3]; 2];

/// Nodes and blocks of triangles. The root is node 0; without primitives there are no nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bvh {
    pub nodes: Vec<NodeRecord>,
    pub blocks: Vec<BlockRecord>,
    /// The box around all triangles; zero without any.
    pub bounds: Corners,
}

impl Bvh {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.nodes[..]) + size_of_val(&self.blocks[..])
    }

    /// Levels of nodes.
    pub fn levels(&self) -> usize {
        // Children lie behind their parents in memory.
        let mut levels = vec![1; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for link in node.children.iter().filter(|link| *link & child::KIND == child::NODE) {
                levels[(link & !child::KIND) as usize] = levels[at] + 1;
            }
        }
        levels.into_iter().max().unwrap_or(0)
    }

    /// Builds a hierarchy over triangles, given by their corners, and surfaces, given by their numbers and boxes. The
    /// same primitives give the same bits.
    ///
    /// Coordinates must be finite. Triangles may be degenerate, coincide and intersect.
    ///
    /// # Panics
    /// With 2³⁰ primitives or more: a child's index has 30 bits.
    pub fn new(triangles: &[Triangle], surfaces: &[(u32, Corners)]) -> Self {
        let count = triangles.len() + surfaces.len();
        assert!(count < 1 << 30, "{count} primitives are too many");
        if count == 0 {
            return Self::default();
        }
        let numbered = |(corners, number): (&Triangle, u32)| Bounds::around(corners).numbered(number);
        let mut primitives: Vec<Bounds> = Vec::with_capacity(count);
        triangles
            .par_iter()
            .zip(0..triangles.len() as u32)
            .map(numbered)
            .collect_into_vec(&mut primitives);
        let inside = Extent::of_many(&primitives);
        primitives.extend(
            surfaces
                .iter()
                .map(|(number, corners)| Bounds::around(corners).numbered(number | SURFACE)),
        );
        let extent = inside.join(Extent::of(&primitives[triangles.len()..]));
        let longest = extent.bounds.extent().into_iter().fold(0.0, f32::max);
        let builder = Builder {
            per_unit: Four::splat((1.0 / longest).min(f32::MAX)),
            leaf: if surfaces.is_empty() { BLOCK } else { 1 },
        };
        let mut spare = primitives.clone();
        let tree = builder.grow(&mut primitives, &mut spare, 0, &extent, 1);
        drop(spare);
        Self::assemble(&tree, &primitives, triangles, box_around(&inside.bounds, triangles))
    }

    /// Writes the records of a tree.
    fn assemble(tree: &Tree, primitives: &[Bounds], triangles: &[Triangle], bounds: Corners) -> Self {
        let mut top = Top::default();
        let root = top.node(tree);
        let counts = top.forests.par_iter().map(|(part, trees)| {
            let all = trees.iter().map(|&tree| part.count(tree, primitives));
            all.fold([0, 0], |[n, b], [nodes, blocks]| [n + nodes, b + blocks])
        });
        let counts: Vec<[usize; 2]> = counts.collect();
        let [nodes, blocks] = counts
            .iter()
            .fold([top.nodes, 0], |[n, b], [nodes, blocks]| [n + nodes, b + blocks]);
        let mut hierarchy = Self {
            nodes: zeros(nodes),
            blocks: zeros(blocks),
            bounds,
        };
        let (head, mut nodes) = hierarchy.nodes.split_at_mut(top.nodes);
        let mut blocks = &mut hierarchy.blocks[..];
        let mut first = [top.nodes, 0];
        let mut writers = Vec::with_capacity(counts.len());
        for ((part, trees), [n, b]) in top.forests.iter().zip(counts) {
            let (mine, others) = nodes.split_at_mut(n);
            let (my_blocks, other_blocks) = blocks.split_at_mut(b);
            (nodes, blocks) = (others, other_blocks);
            let writer = Writer {
                part,
                primitives,
                triangles,
                nodes: mine,
                blocks: my_blocks,
                next: [0, 0],
                first,
            };
            writers.push((writer, trees));
            first = [first[0] + n, first[1] + b];
        }
        let roots = writers.into_par_iter().map(|(mut writer, trees)| {
            let roots = trees.iter().map(|&tree| {
                let bounds = writer.part.branches[tree as usize].bounds.corners();
                (bounds, writer.tree(tree))
            });
            roots.collect()
        });
        let roots: Vec<Vec<(Corners, u32)>> = roots.collect();
        root.write(head, &roots);
        hierarchy
    }

    /// Moves the triangles and fits all boxes to them, without changing the tree. `surfaces` are the surfaces' boxes by
    /// their index.
    pub fn refit(&mut self, triangles: &[Triangle], surfaces: &[Corners]) {
        self.blocks.par_iter_mut().for_each(|block| {
            for lane in 0..BLOCK {
                if block.triangles[lane] != NONE {
                    set_triangle(block, lane, &triangles[block.triangles[lane] as usize]);
                }
            }
        });
        let blocks = &self.blocks;
        self.nodes.par_iter_mut().for_each(|node| {
            for k in 0..WIDTH {
                let index = (node.children[k] & !child::KIND) as usize;
                match node.children[k] & child::KIND {
                    child::BLOCK => {
                        let block = &blocks[index];
                        let used = block.triangles.iter().filter(|&&t| t != NONE);
                        let mut bounds = Bounds::empty();
                        used.for_each(|&t| bounds.join(&Bounds::around(&triangles[t as usize])));
                        set_box(node, k, bounds.corners());
                    }
                    child::SURFACE => set_box(node, k, surfaces[index]),
                    _ => {}
                }
            }
        });
        // Children lie behind their parents, so that backwards they are done first.
        for at in (0..self.nodes.len()).rev() {
            let mut node = self.nodes[at];
            for k in 0..WIDTH {
                if node.children[k] & child::KIND == child::NODE {
                    let bounds = box_of(&self.nodes[node.children[k] as usize]);
                    set_box(&mut node, k, bounds);
                }
            }
            self.nodes[at] = node;
        }
        let join = |mut a: Bounds, b: Bounds| {
            a.join(&b);
            a
        };
        let bounds = triangles
            .par_iter()
            .map(|t| Bounds::around(t))
            .reduce(Bounds::empty, join);
        self.bounds = box_around(&bounds, triangles);
    }
}

/// The box around a node's children.
fn box_of(node: &NodeRecord) -> Corners {
    let low = [0, 1, 2].each(|axis| node.planes[axis].into_iter().fold(f32::INFINITY, f32::min));
    let high = [3, 4, 5].each(|plane| node.planes[plane].into_iter().fold(f32::NEG_INFINITY, f32::max));
    [low, high]
}

/// The box of triangles; zero without any.
fn box_around(bounds: &Bounds, triangles: &[Triangle]) -> Corners {
    if triangles.is_empty() {
        [[0.0; 3]; 2]
    } else {
        bounds.corners()
    }
}

/// Records of zeros.
fn zeros<T: Zeroable + Clone>(count: usize) -> Vec<T> {
    let mut records = Vec::with_capacity(count);
    advise(&records);
    records.resize(count, T::zeroed());
    records
}

/// The hierarchy of a world; empty without triangles and with at most [`WIDTH`] other surfaces, where boxes are of no use.
pub fn of_world(triangles: &[Triangle], surfaces: &[SurfaceRecord]) -> Bvh {
    let others = surfaces
        .iter()
        .zip(0..)
        .filter(|(record, _)| record.kind != surface::MESH);
    let boxes: Vec<(u32, Corners)> = others
        .map(|(record, number)| (number, box_of_surface(record)))
        .collect();
    if triangles.is_empty() && boxes.len() <= WIDTH {
        return Bvh::default();
    }
    Bvh::new(triangles, &boxes)
}

/// A box around some surfaces that are not meshes; from ∞ to -∞ without any. The offset of a ray that leaves such a surface
/// is larger than the box's rounding.
pub fn box_around_surfaces(surfaces: &[SurfaceRecord]) -> Corners {
    let mut all = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    for [low, high] in surfaces.iter().map(|record| box_with_margin(record, 0.0)) {
        for a in 0..3 {
            all[0][a] = all[0][a].min(low[a]);
            all[1][a] = all[1][a].max(high[a]);
        }
    }
    all
}

/// A box around a surface that is not a mesh, with room for the rounding of hits.
pub(crate) fn box_of_surface(record: &SurfaceRecord) -> Corners {
    /// Bound of a hit point's rounding, as a part of the largest coordinate.
    const MARGIN: f32 = 1e-4;
    box_with_margin(record, MARGIN)
}

/// A box around a surface that is not a mesh, widened by the part `margin` of its largest coordinate. Such surfaces lie
/// within [-1, 1]³ in their own space.
fn box_with_margin(record: &SurfaceRecord, margin: f32) -> Corners {
    let m: &Rows = &record.to_world;
    let is_flat = matches!(record.kind, surface::RECTANGLE | surface::DISK);
    let thickness = if is_flat { 0.0 } else { 1.0 };
    let reach = m.each(|row| row[0].abs() + row[1].abs() + thickness * row[2].abs());
    let largest = (0..3).fold(0f32, |largest, a| largest.max(m[a][3].abs() + reach[a]));
    let [low, high] = [-1.0, 1.0].each(|side| [0, 1, 2].each(|a| m[a][3] + side * (reach[a] + margin * largest)));
    [low, high].each(|corner| corner.each(|x| x.clamp(-f32::MAX, f32::MAX)))
}

struct Builder {
    per_unit: Four,
    /// Primitives that any leaf can hold.
    leaf: usize,
}

impl Builder {
    /// The tree of primitives whose first has the index `first`, on the given level (the root's is 1).
    fn grow(
        &self,
        primitives: &mut [Bounds],
        spare: &mut [Bounds],
        first: usize,
        extent: &Extent,
        level: usize,
    ) -> Tree {
        if primitives.len() < TASK {
            let mut part = Part {
                branches: Vec::with_capacity(5 * primitives.len() / 8),
            };
            self.grow_part(&mut part, &mut Bins::new(), primitives, first, extent, level);
            return Tree::Part(part);
        }
        let (middle, [l, r]) = split(
            primitives,
            spare,
            extent,
            self.per_unit,
            self.room(level),
            &mut Bins::new(),
        );
        let (left, right) = primitives.split_at_mut(middle);
        let (spare_left, spare_right) = spare.split_at_mut(middle);
        let (left, right) = rayon::join(
            || self.grow(left, spare_left, first, &l, level + 1),
            || self.grow(right, spare_right, first + middle, &r, level + 1),
        );
        let kind = Kind::Inner {
            left: NONE,
            right: NONE,
        };
        let costs = [&left.branch().costs, &right.branch().costs];
        Tree::Large {
            branch: Branch::over(extent.bounds, kind, costs, self.per_unit),
            children: Box::new([left, right]),
        }
    }

    /// Appends the nodes of a tree, the root last, and returns its index.
    fn grow_part(
        &self,
        part: &mut Part,
        bins: &mut Bins,
        primitives: &mut [Bounds],
        first: usize,
        extent: &Extent,
        level: usize,
    ) -> u32 {
        let is_surface = |p: &Bounds| p.number() & SURFACE != 0;
        let branch = if primitives.len() == 1
            || primitives.len() <= BLOCK && (self.leaf == BLOCK || !primitives.iter().any(is_surface))
        {
            Branch::leaf(extent.bounds, first, primitives.len(), self.per_unit)
        } else {
            let (middle, [l, r]) = split(primitives, &mut [], extent, self.per_unit, self.room(level), bins);
            let (left, right) = primitives.split_at_mut(middle);
            let left = self.grow_part(part, bins, left, first, &l, level + 1);
            let right = self.grow_part(part, bins, right, first + middle, &r, level + 1);
            let costs = [left, right].each(|child| &part.branches[child as usize].costs);
            Branch::over(extent.bounds, Kind::Inner { left, right }, costs, self.per_unit)
        };
        part.branches.push(branch);
        part.branches.len() as u32 - 1
    }

    /// Most primitives of a child of a node on this level, so that halving can still bring them down to leaves within
    /// [`MAX_LEVELS`].
    fn room(&self, level: usize) -> usize {
        self.leaf << (MAX_LEVELS - level - 1).min(31)
    }
}

#[cfg(test)]
mod tests;
