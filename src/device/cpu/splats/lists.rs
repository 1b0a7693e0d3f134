//! For each tile of a picture the splats that reach it, in drawing order: a counting sort by tile.

use std::ops::Range;

use rayon::prelude::*;

use crate::device::cpu::shared::SharedSlice;
use crate::each::EachEntry;

/// Splats that are counted together at least, and the most groups of them.
const GROUP: usize = 1024;
const GROUPS: usize = 64;

/// The tiles that a splat may reach: columns and rows, the ends excluded. Empty if it reaches none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TileBox {
    pub(super) columns: [u16; 2],
    pub(super) rows: [u16; 2],
}

impl TileBox {
    /// The number of tiles.
    pub(super) fn count(self) -> u64 {
        let length = |[first, end]: [u16; 2]| u64::from(end.saturating_sub(first));
        length(self.columns) * length(self.rows)
    }

    /// The tiles, `across` a row of them: a range for each row.
    fn rows(self, across: usize) -> impl Iterator<Item = Range<usize>> {
        let [first, end] = self.columns.each(usize::from);
        let [top, bottom] = self.rows.each(usize::from);
        (top..bottom).map(move |row| (row * across + first)..(row * across + end))
    }
}

/// The lists of all tiles, one after the other.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Where each tile's list begins, and where the last one ends.
    pub(super) starts: Vec<u32>,
    /// Indices of splats.
    pub(super) entries: Vec<u32>,
    counts: Vec<u32>,
}

impl Lists {
    /// Where a tile's list stands.
    pub(super) fn range(&self, tile: usize) -> Range<usize> {
        self.starts[tile] as usize..self.starts[tile + 1] as usize
    }

    /// The list of a tile.
    pub(super) fn of(&self, tile: usize) -> &[u32] {
        &self.entries[self.range(tile)]
    }

    /// Lists the splats with these boxes in `tiles` tiles, `across` a row of them.
    ///
    /// # Panics
    /// There are more entries than 32 bits can number.
    pub(super) fn build(&mut self, boxes: &[TileBox], tiles: usize, across: usize) {
        let group = boxes.len().div_ceil(GROUPS).max(GROUP);
        let groups = boxes.len().div_ceil(group);
        self.counts.clear();
        self.counts.resize(groups * tiles, 0);
        let counted = self.counts.par_chunks_mut(tiles.max(1)).zip(boxes.par_chunks(group));
        counted.for_each(|(counts, boxes)| {
            for row in boxes.iter().flat_map(|b| b.rows(across)) {
                for count in &mut counts[row] {
                    *count += 1;
                }
            }
        });
        let total: u64 = boxes.iter().map(|b| b.count()).sum();
        assert!(total <= u64::from(u32::MAX), "entries are numbered in 32 bits");
        self.place_groups(tiles);
        self.entries.resize(total as usize, 0);
        let entries = SharedSlice::new(&mut self.entries);
        let placed = self.counts.par_chunks_mut(tiles.max(1)).zip(boxes.par_chunks(group));
        placed.enumerate().for_each(|(g, (places, boxes))| {
            // SAFETY: the counts gave every group places of its own in every list.
            let entries = unsafe { entries.get() };
            for (i, reached) in boxes.iter().enumerate() {
                for row in reached.rows(across) {
                    for place in &mut places[row] {
                        entries[*place as usize] = (g * group + i) as u32;
                        *place += 1;
                    }
                }
            }
        });
    }

    /// From counts of a group's entries in each tile to the places of their first ones, and to where lists start: group by
    /// group, so that memory is read in its order.
    fn place_groups(&mut self, tiles: usize) {
        self.starts.clear();
        self.starts.resize(tiles + 1, 0);
        for group in self.counts.chunks(tiles.max(1)) {
            for (sum, count) in self.starts.iter_mut().zip(group) {
                *sum += count;
            }
        }
        let mut next = 0;
        for start in &mut self.starts {
            next += std::mem::replace(start, next);
        }
        let mut places = self.starts.clone();
        for group in self.counts.chunks_mut(tiles.max(1)) {
            for (place, count) in places.iter_mut().zip(group) {
                *place += std::mem::replace(count, *place);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.entries.capacity() + self.counts.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_lists_what_reaches_it_in_order() {
        let (across, down) = (7u16, 5u16);
        let boxes: Vec<TileBox> = (0..5000u32)
            .map(|i| {
                let (x, y) = ((i * 7 % 8) as u16, (i * 13 % 6) as u16);
                let (w, h) = ((i % 4) as u16, (i / 3 % 3) as u16);
                TileBox {
                    columns: [x.min(across), (x + w).min(across)],
                    rows: [y.min(down), (y + h).min(down)],
                }
            })
            .collect();
        let mut lists = Lists::default();
        lists.build(&boxes, usize::from(across * down), usize::from(across));
        for tile in 0..usize::from(across * down) {
            let (x, y) = ((tile % 7) as u16, (tile / 7) as u16);
            let inside = |b: &TileBox| (b.columns[0]..b.columns[1]).contains(&x) && (b.rows[0]..b.rows[1]).contains(&y);
            let expected: Vec<u32> = (0..5000).filter(|&i| inside(&boxes[i as usize])).collect();
            assert_eq!(lists.of(tile), expected, "tile {tile}");
        }
        lists.build(&[], 35, 7);
        assert!((0..35).all(|tile| lists.of(tile).is_empty()));
    }
}
