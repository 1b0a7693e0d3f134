//! From a binary tree to wide nodes of eight children: the binary nodes that become wide ones are chosen so that the
//! expected cost of a ray is least (Ylitie, Karras and Laine 2017).

use arrayvec::ArrayVec;

use super::Corners;
use super::bounds::Bounds;
use super::four::Four;
use crate::resident::layout::{BLOCK, BlockRecord, NONE, NodeRecord, Triangle, WIDTH, child};

/// Cost of testing the boxes of a node's children.
const NODE_COST: f32 = 1.0;

/// Cost of testing a block of triangles.
const BLOCK_COST: f32 = 1.0;

/// A node of the binary tree, with its cost as a forest of at most 1 to 8 trees of wide nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Branch {
    pub(super) bounds: Bounds,
    pub(super) kind: Kind,
    /// Least cost with up to 1, 2, … trees.
    pub(super) costs: [f32; WIDTH],
    /// For a forest of up to 1, 2, … trees how many of them the left child becomes; the first entry is for the node as a
    /// wide node itself, whose children are a forest of up to eight.
    lefts: [u8; WIDTH],
}

/// What a binary node holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// The primitives that become one leaf: the first and their number.
    Leaf { first: u32, count: u32 },
    /// Indices of two nodes.
    Inner { left: u32, right: u32 },
}

impl Branch {
    pub(super) fn leaf(bounds: Bounds, first: usize, count: usize, per_unit: Four) -> Self {
        Self {
            bounds,
            kind: Kind::Leaf {
                first: first as u32,
                count: count as u32,
            },
            costs: [BLOCK_COST * bounds.area(per_unit); WIDTH],
            lefts: [0; WIDTH],
        }
    }

    /// The parent of two nodes with these costs.
    pub(super) fn over(bounds: Bounds, kind: Kind, [left, right]: [&[f32; WIDTH]; 2], per_unit: Four) -> Self {
        let (mut costs, mut lefts) = ([0.0; WIDTH], [1; WIDTH]);
        // A forest of n trees is one of k on the left and one of n - k on the right.
        for n in 2..=WIDTH {
            costs[n - 1] = left[0] + right[n - 2];
            for k in 2..n {
                let cost = left[k - 1] + right[n - k - 1];
                if cost < costs[n - 1] {
                    (costs[n - 1], lefts[n - 1]) = (cost, k as u8);
                }
            }
        }
        (costs[0], lefts[0]) = (costs[WIDTH - 1] + NODE_COST * bounds.area(per_unit), lefts[WIDTH - 1]);
        for n in 1..WIDTH {
            costs[n] = costs[n].min(costs[n - 1]);
        }
        Self {
            bounds,
            kind,
            costs,
            lefts,
        }
    }

    /// How many trees its left and its right child become if the node has up to `trees`; None if it is best a tree itself.
    pub(super) fn shares(&self, mut trees: usize) -> Option<[usize; 2]> {
        while trees > 1 && self.costs[trees - 1] == self.costs[trees - 2] {
            trees -= 1;
        }
        let left = self.lefts[trees - 1] as usize;
        (trees > 1).then(|| [left, trees - left])
    }

    /// How many trees its left and its right child become if it is a wide node: up to eight together.
    pub(super) fn own_shares(&self) -> [usize; 2] {
        let left = self.lefts[0] as usize;
        [left, WIDTH - left]
    }
}

/// A list of up to eight children: indices of binary nodes.
pub(super) type Children = ArrayVec<u32, WIDTH>;

/// A binary tree of a part of the primitives; its root is the last node.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) branches: Vec<Branch>,
}

impl Part {
    pub(super) fn root(&self) -> u32 {
        self.branches.len() as u32 - 1
    }

    /// Appends the roots of the best forest of up to `trees` trees for a node and all below it.
    pub(super) fn forest(&self, node: u32, trees: usize, out: &mut Children) {
        let branch = &self.branches[node as usize];
        match (branch.kind, branch.shares(trees)) {
            (Kind::Inner { left, right }, Some([l, r])) => {
                self.forest(left, l, out);
                self.forest(right, r, out);
            }
            _ => out.push(node),
        }
    }

    /// The children of the wide node that a binary node becomes; none if it is a leaf.
    pub(super) fn children(&self, node: u32) -> Children {
        let mut out = Children::new();
        let branch = &self.branches[node as usize];
        if let Kind::Inner { left, right } = branch.kind {
            let [l, r] = branch.own_shares();
            self.forest(left, l, &mut out);
            self.forest(right, r, &mut out);
        }
        out
    }

    /// The numbers of wide nodes and of blocks of a tree.
    pub(super) fn count(&self, node: u32, primitives: &[Bounds]) -> [usize; 2] {
        if let Kind::Leaf { first, .. } = self.branches[node as usize].kind {
            return [0, usize::from(primitives[first as usize].number() & SURFACE == 0)];
        }
        let children = self
            .children(node)
            .into_iter()
            .map(|child| self.count(child, primitives));
        children.fold([1, 0], |[n, b], [nodes, blocks]| [n + nodes, b + blocks])
    }
}

/// Bit that marks the number of a primitive that is a surface, not a triangle.
pub(super) const SURFACE: u32 = 1 << 31;

/// A node without children.
pub(super) fn empty_node() -> NodeRecord {
    let mut planes = [[f32::INFINITY; WIDTH]; 6];
    planes[3..].fill([f32::NEG_INFINITY; WIDTH]);
    NodeRecord {
        planes,
        children: [child::EMPTY; WIDTH],
    }
}

/// Sets a child's box.
pub(super) fn set_box(node: &mut NodeRecord, at: usize, [low, high]: Corners) {
    for axis in 0..3 {
        node.planes[axis][at] = low[axis];
        node.planes[3 + axis][at] = high[axis];
    }
}

/// Writes the trees of a part where they belong in the hierarchy.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) part: &'a Part,
    pub(super) primitives: &'a [Bounds],
    /// Corners of all triangles.
    pub(super) triangles: &'a [Triangle],
    pub(super) nodes: &'a mut [NodeRecord],
    pub(super) blocks: &'a mut [BlockRecord],
    /// Indices of the next node and block within the slices, and of the slices in the hierarchy.
    pub(super) next: [usize; 2],
    pub(super) first: [usize; 2],
}

impl Writer<'_> {
    /// Writes a tree and returns the child that it is.
    pub(super) fn tree(&mut self, node: u32) -> u32 {
        match self.reserve(node) {
            at if at & child::KIND == child::NODE => {
                self.fill(node, at);
                at
            }
            leaf => leaf,
        }
    }

    /// Gives a child its index; a leaf's block is written at once.
    fn reserve(&mut self, node: u32) -> u32 {
        let Kind::Leaf { first, count } = self.part.branches[node as usize].kind else {
            self.next[0] += 1;
            return (self.first[0] + self.next[0] - 1) as u32 | child::NODE;
        };
        let primitives = &self.primitives[first as usize..][..count as usize];
        if primitives[0].number() & SURFACE != 0 {
            return (primitives[0].number() & !SURFACE) | child::SURFACE;
        }
        let block = &mut self.blocks[self.next[1]];
        block.triangles = [NONE; BLOCK];
        for (lane, primitive) in primitives.iter().enumerate() {
            let triangle = primitive.number();
            block.triangles[lane] = triangle;
            set_triangle(block, lane, &self.triangles[triangle as usize]);
        }
        self.next[1] += 1;
        (self.first[1] + self.next[1] - 1) as u32 | child::BLOCK
    }

    /// Writes a node's record, then those below it: siblings lie side by side.
    fn fill(&mut self, node: u32, at: u32) {
        let children = self.part.children(node);
        let mut record = empty_node();
        for (k, &c) in children.iter().enumerate() {
            let bounds = self.part.branches[c as usize].bounds.corners();
            set_box(&mut record, k, bounds);
            record.children[k] = self.reserve(c);
        }
        self.nodes[at as usize - self.first[0]] = record;
        for (&c, child) in children.iter().zip(record.children) {
            if child & child::KIND == child::NODE {
                self.fill(c, child);
            }
        }
    }
}

/// Sets the corners of a block's triangle.
pub(super) fn set_triangle(block: &mut BlockRecord, lane: usize, corners: &Triangle) {
    for (corner, p) in corners.iter().enumerate() {
        for axis in 0..3 {
            block.corners[3 * corner + axis][lane] = p[axis];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cube(edge: f32) -> Bounds {
        Bounds::around(&[[1.0; 3], [1.0 + edge; 3]])
    }

    /// Half the area of a cube of edge 4 in units of 2 is 12: this is a leaf's cost, for any number of trees.
    #[test]
    fn a_leaf_costs_its_area() {
        let leaf = Branch::leaf(cube(4.0), 5, 3, Four::splat(0.5));
        assert_eq!(leaf.costs, [12.0; WIDTH]);
        assert!(matches!(leaf.kind, Kind::Leaf { first: 5, count: 3 }));
        assert_eq!(
            (1..=WIDTH).filter_map(|n| leaf.shares(n)).count(),
            0,
            "it is a tree itself"
        );
    }

    /// A node of half area 48 over leaves of 27 and 3: as one tree it costs its own area and its children's, as two trees
    /// its children's, and as more no less, since leaves are not divided.
    #[test]
    fn a_node_costs_its_area_beside_its_children() {
        let unit = Four::splat(1.0);
        let leaves = [3.0, 1.0].map(|edge| Branch::leaf(cube(edge), 0, 1, unit));
        let kind = Kind::Inner { left: 0, right: 1 };
        let node = Branch::over(cube(4.0), kind, [&leaves[0].costs, &leaves[1].costs], unit);
        assert_eq!(node.costs, [78.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0]);
        assert_eq!(
            (node.shares(1), node.shares(2), node.shares(8)),
            (None, Some([1, 1]), Some([1, 1]))
        );
    }

    /// The least cost over all ways to share trees between two children, for costs that fall with the number of trees.
    #[test]
    fn trees_are_shared_where_they_save_most() {
        let falling = |start: f32, share: f32| std::array::from_fn(|i| start * share.powi(i as i32));
        for (left, right) in [
            (falling(8.0, 0.5), falling(8.0, 0.5)),
            (falling(100.0, 0.9), falling(3.0, 0.1)),
            (falling(1.0, 0.2), falling(50.0, 0.7)),
        ] {
            let kind = Kind::Inner { left: 0, right: 1 };
            let node = Branch::over(cube(2.0), kind, [&left, &right], Four::splat(1.0));
            let cost = |[l, r]: [usize; 2]| left[l - 1] + right[r - 1];
            let least = |n: usize| (1..n).map(|l| cost([l, n - l])).fold(f32::INFINITY, f32::min);
            assert_eq!(node.costs[0], least(WIDTH) + 12.0);
            assert_eq!(cost(node.own_shares()), least(WIDTH));
            for n in 2..=WIDTH {
                let expected = least(n).min(node.costs[0]);
                assert_eq!(node.costs[n - 1], expected, "{n} trees");
                let found = node.shares(n).map(|shares| (cost(shares), shares[0] + shares[1] <= n));
                assert!(found.is_none_or(|found| found == (expected, true)), "{n}: {found:?}");
                assert_eq!(found.is_none(), expected == node.costs[0], "{n}");
            }
        }
    }
}
