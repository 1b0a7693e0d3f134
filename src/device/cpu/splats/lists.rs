//! For each tile of a picture the splats that reach it, in drawing order: a counting sort by tile.

use std::ops::Range;

use rayon::prelude::*;

use crate::device::cpu::shared::SharedSlice;
use crate::each::EachEntry;

/// Splats of a page: those that [`Entry`] can number.
pub(super) const PAGE: usize = 1 << 16;

/// Least number of splats of a group, which are counted together, and about the most groups.
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

    /// The tiles, row by row, of a picture with `across` tiles a row. One loop, since the end of a short inner loop is often
    /// mispredicted.
    #[inline(always)]
    fn tiles(self, across: usize) -> impl Iterator<Item = usize> {
        let [first, end] = self.columns.each(usize::from);
        let mut next = usize::from(self.rows[0]) * across + first;
        let mut last = next + end.saturating_sub(first);
        (0..self.count()).map(move |_| {
            let tile = next;
            let (is_last, beside) = (tile + 1 == last, across - (end - first));
            next = tile + 1 + if is_last { beside } else { 0 };
            last += if is_last { across } else { 0 };
            tile
        })
    }
}

/// A splat that reaches a tile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its index, less the first one of its page.
    pub(super) splat: u16,
    /// The blocks of the tile in which it was blended, as bits.
    pub(super) blocks: u16,
}

/// For each page of a tile's list its first entry among all entries, then the end of the last page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages<'a>(&'a [u32]);

impl Pages<'_> {
    /// The number of pages.
    pub(super) fn count(&self) -> usize {
        self.0.len() - 1
    }

    /// A page's part of the tile's list.
    #[inline]
    pub(super) fn range(&self, page: usize) -> Range<usize> {
        let starts = self.0;
        (starts[page] - starts[0]) as usize..(starts[page + 1] - starts[0]) as usize
    }
}

/// The splats of a page, of all `splats`.
#[inline]
pub(super) fn page_of<T>(splats: &[T], page: usize) -> &[T] {
    &splats[page * PAGE..splats.len().min((page + 1) * PAGE)]
}

/// The lists of all tiles, one after the other; in a tile's list one page of splats after the other.
#[derive(Debug, Default)]
pub(super) struct Lists {
    tiles: usize,
    pages: usize,
    /// Where each tile's pages begin, and where the last list ends.
    starts: Vec<u32>,
    pub(super) entries: Vec<Entry>,
    /// Splats of a group, of which a page holds a whole number.
    group: usize,
    /// For each group and tile the end of the group's entries; while lists are built, their number and then the next one's place.
    counts: Vec<u32>,
}

impl Lists {
    /// The range of a tile's list among all entries.
    pub(super) fn range(&self, tile: usize) -> Range<usize> {
        self.starts[tile * self.pages] as usize..self.starts[(tile + 1) * self.pages] as usize
    }

    /// The pages of a tile's list.
    pub(super) fn pages(&self, tile: usize) -> Pages<'_> {
        Pages(&self.starts[tile * self.pages..=(tile + 1) * self.pages])
    }

    /// The number of splats of a group.
    pub(super) fn group(&self) -> usize {
        self.group
    }

    /// The range, among all entries, of a group's entries in a tile's list.
    #[inline]
    pub(super) fn of_group(&self, tile: usize, group: usize) -> Range<usize> {
        let (first, place) = (group * self.group, group * self.tiles + tile);
        let begin = match first % PAGE {
            0 => self.starts[tile * self.pages + first / PAGE],
            _ => self.counts[place - self.tiles],
        };
        begin as usize..self.counts[place] as usize
    }

    /// Lists the splats with these boxes in `tiles` tiles, `across` a row of them. `blocks` of all entries are empty.
    ///
    /// # Panics
    /// There are more entries than 32 bits can number.
    pub(super) fn build(&mut self, boxes: &[TileBox], tiles: usize, across: usize) {
        self.pages = boxes.len().div_ceil(PAGE).max(1);
        // A power of two, so that no group is of two pages.
        let group = boxes.len().div_ceil(GROUPS).next_power_of_two().clamp(GROUP, PAGE);
        let groups = boxes.len().div_ceil(group);
        (self.tiles, self.group) = (tiles, group);
        self.counts.clear();
        self.counts.resize(groups * tiles, 0);
        let counted = self.counts.par_chunks_mut(tiles.max(1)).zip(boxes.par_chunks(group));
        counted.for_each(|(counts, boxes)| {
            for reached in boxes {
                for tile in reached.tiles(across) {
                    counts[tile] += 1;
                }
            }
        });
        let total: u64 = boxes.iter().map(|b| b.count()).sum();
        assert!(total <= u64::from(u32::MAX), "entries are numbered in 32 bits");
        self.place_groups(tiles, PAGE / group);
        self.entries.resize(total as usize, Entry::default());
        let entries = SharedSlice::new(&mut self.entries);
        let placed = self.counts.par_chunks_mut(tiles.max(1)).zip(boxes.par_chunks(group));
        placed.enumerate().for_each(|(g, (places, boxes))| {
            // SAFETY: the counts gave every group places of its own in every list.
            let entries = unsafe { entries.get() };
            let first = g * group % PAGE;
            for (i, reached) in boxes.iter().enumerate() {
                let (splat, blocks) = ((first + i) as u16, 0);
                for tile in reached.tiles(across) {
                    entries[places[tile] as usize] = Entry { splat, blocks };
                    places[tile] += 1;
                }
            }
        });
    }

    /// Prefix sums, from the number of each group's entries in each tile to the place of its first entry, and to the starts of
    /// pages. It goes group by group, so that memory is read in order.
    fn place_groups(&mut self, tiles: usize, groups_a_page: usize) {
        let pages = self.pages;
        self.starts.clear();
        self.starts.resize(tiles * pages + 1, 0);
        for (g, group) in self.counts.chunks(tiles.max(1)).enumerate() {
            let of_page = self.starts[g / groups_a_page..].iter_mut().step_by(pages);
            for (sum, count) in of_page.zip(group) {
                *sum += count;
            }
        }
        let mut next = 0;
        for start in &mut self.starts {
            next += std::mem::replace(start, next);
        }
        let mut places = self.starts.clone();
        for (g, group) in self.counts.chunks_mut(tiles.max(1)).enumerate() {
            let of_page = places[g / groups_a_page..].iter_mut().step_by(pages);
            for (place, count) in of_page.zip(group) {
                *place += std::mem::replace(count, *place);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.entries.capacity() + self.counts.capacity())
    }
}

const _: () = assert!(size_of::<Entry>() == 4);

#[cfg(test)]
mod tests {
    use super::*;

    /// Boxes of all sizes, and of none.
    fn some_boxes(count: usize, [across, down]: [u16; 2]) -> Vec<TileBox> {
        let of = |i: usize| {
            let (x, y) = ((i * 7 % 8) as u16, (i * 13 % 6) as u16);
            let (w, h) = ((i % 4) as u16, (i / 3 % 3) as u16);
            TileBox {
                columns: [x.min(across), (x + w).min(across)],
                rows: [y.min(down), (y + h).min(down)],
            }
        };
        (0..count).map(of).collect()
    }

    /// In one page, in one that is full, and in three of which the last holds a single splat.
    #[test]
    fn every_tile_lists_what_reaches_it_in_order() {
        let (across, down) = (7u16, 5u16);
        let mut lists = Lists::default();
        for count in [5000, PAGE, 2 * PAGE + 1] {
            let boxes = some_boxes(count, [across, down]);
            lists.build(&boxes, usize::from(across * down), usize::from(across));
            for tile in 0..usize::from(across * down) {
                let (x, y) = ((tile % 7) as u16, (tile / 7) as u16);
                let inside =
                    |b: &TileBox| (b.columns[0]..b.columns[1]).contains(&x) && (b.rows[0]..b.rows[1]).contains(&y);
                let expected: Vec<usize> = (0..count).filter(|&i| inside(&boxes[i])).collect();
                let (list, pages) = (&lists.entries[lists.range(tile)], lists.pages(tile));
                let found = (0..pages.count()).flat_map(|page| {
                    let list = &list[pages.range(page)];
                    list.iter().map(move |entry| page * PAGE + usize::from(entry.splat))
                });
                assert_eq!(found.collect::<Vec<_>>(), expected, "{count} splats, tile {tile}");
                for group in 0..count.div_ceil(lists.group()) {
                    let of_group = group * lists.group()..(group + 1) * lists.group();
                    let [begin, end] =
                        [of_group.start, of_group.end].map(|first| expected.partition_point(|&splat| splat < first));
                    let base = lists.range(tile).start;
                    assert_eq!(
                        lists.of_group(tile, group),
                        base + begin..base + end,
                        "{count} splats, group {group}"
                    );
                }
            }
        }
        lists.build(&[], 35, 7);
        assert!((0..35).all(|tile| lists.range(tile).is_empty()));
    }

    #[test]
    fn a_page_holds_its_splats() {
        let splats: Vec<usize> = (0..2 * PAGE + 1).collect();
        assert_eq!(page_of(&splats, 0), &splats[..PAGE]);
        assert_eq!(page_of(&splats, 2), [2 * PAGE]);
        assert!(page_of(&splats[..0], 0).is_empty());
    }
}
