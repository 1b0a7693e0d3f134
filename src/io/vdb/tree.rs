//! A tree of floats: first its topology with the values of tiles, then the voxels of its leaves in the same order.

use std::collections::HashSet;

use super::archive::Entry;
use super::stream::{Parsed, Stream};
use super::values::{Coding, is_on};

/// Voxels along the edge of a leaf.
pub(super) const LEAF_EDGE: i64 = 8;

/// Voxels of a leaf, and bytes of its mask.
pub(super) const LEAF_VOXELS: usize = 512;
pub(super) const LEAF_MASK: usize = LEAF_VOXELS / 8;

/// A level of internal nodes: log2 of the number of children per edge, and a child's edge in voxels.
pub(super) struct Level {
    pub(super) log2: u32,
    pub(super) child_edge: i64,
}

pub(super) const LEVELS: [Level; 2] = [
    Level {
        log2: 5,
        child_edge: 128,
    },
    Level {
        log2: 4,
        child_edge: LEAF_EDGE,
    },
];

/// A tile or a leaf of a tree.
pub(super) enum Part {
    /// A cube of constant value.
    Tile {
        origin: [i64; 3],
        edge: i64,
        value: f32,
        active: bool,
    },
    /// A cube of voxels, whose values follow after the topology.
    Leaf { origin: [i64; 3], mask: [u8; LEAF_MASK] },
}

impl Part {
    /// First and last active voxel along each axis; None if there is none.
    pub(super) fn active_box(&self) -> Option<[[i64; 3]; 2]> {
        match *self {
            Self::Tile {
                origin, edge, active, ..
            } => active.then(|| [origin, origin.map(|v| v + edge - 1)]),
            Self::Leaf { origin, mask } => {
                let (mut low, mut high) = ([LEAF_EDGE; 3], [-1; 3]);
                for (i, &row) in (0i64..).zip(&mask).filter(|(_, row)| **row != 0) {
                    let first = [i >> 3, i & 7, i64::from(row.trailing_zeros())];
                    let last = [i >> 3, i & 7, 7 - i64::from(row.leading_zeros())];
                    for axis in 0..3 {
                        low[axis] = low[axis].min(first[axis]);
                        high[axis] = high[axis].max(last[axis]);
                    }
                }
                let place = |v: [i64; 3]| [0, 1, 2].map(|axis| origin[axis] + v[axis]);
                (high[0] >= 0).then(|| [place(low), place(high)])
            }
        }
    }
}

/// A tree during reading.
pub(super) struct Tree<'a> {
    stream: &'a mut Stream,
    coding: Coding,
}

impl<'a> Tree<'a> {
    /// Starts at the root.
    pub(super) fn open(stream: &'a mut Stream, entry: &Entry) -> Parsed<Self> {
        stream.seek(entry.tree_at)?;
        let buffers = stream.u32()?;
        if buffers != 1 {
            return Err(format!("has {buffers} buffers a leaf, expected 1"));
        }
        let background = stream.f32()?;
        let coding = Coding {
            compression: entry.compression,
            half: entry.half,
            background,
        };
        Ok(Self { stream, coding })
    }

    /// The value outside of the tree.
    pub(super) fn background(&self) -> f32 {
        self.coding.background
    }

    /// Calls `visit` with all tiles and leaves; leaves in the order of their values.
    pub(super) fn topology(&mut self, visit: &mut impl FnMut(Part)) -> Parsed<()> {
        let edge = LEVELS[0].child_edge << LEVELS[0].log2;
        let (tiles, children) = (self.stream.u32()?, self.stream.u32()?);
        let mut places = HashSet::new();
        for _ in 0..tiles {
            let origin = self.root_origin(edge, &mut places)?;
            let (value, active) = (self.stream.f32()?, self.stream.u8()? != 0);
            visit(Part::Tile {
                origin,
                edge,
                value,
                active,
            });
        }
        for _ in 0..children {
            let origin = self.root_origin(edge, &mut places)?;
            self.node(&LEVELS, origin, visit)?;
        }
        Ok(())
    }

    /// The voxels of the next leaf, `[x][y][z]`.
    pub(super) fn leaf(&mut self) -> Parsed<Vec<f32>> {
        let mask = self.stream.array::<LEAF_MASK>()?;
        self.coding.values(self.stream, &mask)
    }

    /// The origin of a node below the root. Duplicates are rejected: a small file could fill the grid again and again.
    fn root_origin(&mut self, edge: i64, places: &mut HashSet<[i64; 3]>) -> Parsed<[i64; 3]> {
        let origin = self.origin(edge)?;
        if places.insert(origin) {
            Ok(origin)
        } else {
            Err(format!("has two nodes at {origin:?}, expected one: it is damaged"))
        }
    }

    fn origin(&mut self, edge: i64) -> Parsed<[i64; 3]> {
        let origin = [self.stream.i32()?, self.stream.i32()?, self.stream.i32()?].map(i64::from);
        if origin.iter().any(|v| v % edge != 0) {
            return Err(format!(
                "has a node at {origin:?}, expected multiples of {edge}: it is damaged"
            ));
        }
        Ok(origin)
    }

    /// An internal node of the first level in `levels`, and its subtree.
    fn node(&mut self, levels: &[Level], origin: [i64; 3], visit: &mut impl FnMut(Part)) -> Parsed<()> {
        let Some((level, below)) = levels.split_first() else {
            let mask = self.stream.array()?;
            visit(Part::Leaf { origin, mask });
            return Ok(());
        };
        let count = 1usize << (3 * level.log2);
        let children = self.stream.bytes(count as u64 / 8)?;
        let active = self.stream.bytes(count as u64 / 8)?;
        let values = self.coding.values(self.stream, &active)?;
        let place = |i: usize| {
            let last = (1 << level.log2) - 1;
            let child = [i >> (2 * level.log2), i >> level.log2 & last, i & last];
            [0, 1, 2].map(|axis| origin[axis] + child[axis] as i64 * level.child_edge)
        };
        for (i, &value) in values.iter().enumerate().filter(|(i, _)| !is_on(&children, *i)) {
            visit(Part::Tile {
                origin: place(i),
                edge: level.child_edge,
                value,
                active: is_on(&active, i),
            });
        }
        for i in (0..count).filter(|i| is_on(&children, *i)) {
            self.node(below, place(i), visit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the topology of a root of active tiles at these places along x.
    fn root(places: &[i32]) -> Parsed<usize> {
        let mut bytes = [
            1u32.to_le_bytes(),
            0f32.to_le_bytes(),
            (places.len() as u32).to_le_bytes(),
            [0; 4],
        ]
        .concat();
        for x in places {
            bytes.extend([x.to_le_bytes(), [0; 4], [0; 4], 1f32.to_le_bytes()].concat());
            bytes.push(1);
        }
        let mut file = tempfile::tempfile().expect("a temporary file");
        std::io::Write::write_all(&mut file, &bytes).expect("writable");
        let mut stream = Stream::new(file, bytes.len() as u64);
        let entry = Entry {
            name: "density".into(),
            half: false,
            compression: 0,
            scale: [1.0; 3],
            translation: [0.0; 3],
            tree_at: 0,
        };
        let mut parts = 0;
        Tree::open(&mut stream, &entry)?.topology(&mut |_| parts += 1)?;
        Ok(parts)
    }

    #[test]
    fn nodes_have_places_of_their_own() {
        assert_eq!(root(&[0, 4096, -4096]), Ok(3));
        assert!(root(&[0, 4096, 0]).is_err_and(|e| e.contains("two nodes at [0, 0, 0]")));
        assert!(root(&[8]).is_err_and(|e| e.contains("multiples of 4096")));
    }

    /// Compares with a loop over all voxels of a leaf: for each voxel alone, and for 500 masks of a few voxels.
    #[test]
    fn the_box_of_a_leaf_holds_its_active_voxels() {
        let origin = [-16, 8, 4096];
        let check = |voxels: &[usize]| {
            let mut mask = [0; LEAF_MASK];
            let mut expected = None;
            for &v in voxels {
                mask[v / 8] |= 1 << (v % 8);
                let at = [v / 64, v / 8 % 8, v % 8].map(|c| c as i64);
                let at: [i64; 3] = std::array::from_fn(|axis| origin[axis] + at[axis]);
                let [low, high] = expected.unwrap_or([at, at]);
                expected = Some([0, 1].map(|side| -> [i64; 3] {
                    std::array::from_fn(|axis| match side {
                        0 => low[axis].min(at[axis]),
                        _ => high[axis].max(at[axis]),
                    })
                }));
            }
            assert_eq!(Part::Leaf { origin, mask }.active_box(), expected, "{voxels:?}");
        };
        check(&[]);
        (0..512).for_each(|v| check(&[v]));
        for i in 0..500 {
            check(&[i * 37 % 512, i * 101 % 512, i * i % 512][..2 + i % 2]);
        }
        let tile = |active| Part::Tile {
            origin: [-128, 0, 128],
            edge: 128,
            value: 1.0,
            active,
        };
        assert_eq!(tile(true).active_box(), Some([[-128, 0, 128], [-1, 127, 255]]));
        assert_eq!(tile(false).active_box(), None);
    }
}
