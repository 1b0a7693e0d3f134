//! A thread's cache of sums that all threads share: additions to entries of a line are collected here and then added to the
//! shared sums together, since an atomic addition costs as much as ten others. Paths of neighbouring pixels scatter in
//! neighbouring texels, so that most additions find their line in the cache.

use std::sync::atomic::{AtomicI64, Ordering};

use super::sums::in_range;

/// Entries of a line.
const LINE: usize = 32;
/// Lines: a megabyte of sums, the size of a core's second-level cache.
const LINES: usize = 4096;
const NOBODY: u64 = u64::MAX;
/// The lowest bit of the parameter's slot in a key; below it is the number of the line.
const SLOT: u32 = 48;

/// A direct-mapped cache of lines, whose places are a hash of parameter and line.
#[derive(Debug)]
pub(super) struct SumCache {
    /// For each place the parameter and the number of its line.
    keys: Vec<u64>,
    lines: Vec<[i64; LINE]>,
    /// Place and key of the line of the last addition.
    last: usize,
    last_key: u64,
    /// A parameter whose sums were out of range when a line was added to the shared ones.
    overflowed: Option<usize>,
}

impl SumCache {
    pub(super) fn new() -> Self {
        Self {
            keys: vec![NOBODY; LINES],
            lines: vec![[0; LINE]; LINES],
            last: 0,
            last_key: NOBODY,
            overflowed: None,
        }
    }

    pub(super) const BYTES: u64 = (LINES * (size_of::<u64>() + size_of::<[i64; LINE]>())) as u64;

    /// Adds units to an entry of a parameter, whose shared sums are among `arrays`. False if the sum was out of range before.
    #[inline(always)]
    pub(super) fn add(&mut self, arrays: &[Vec<AtomicI64>], slot: usize, index: usize, units: i64) -> bool {
        let key = (slot as u64) << SLOT | (index / LINE) as u64;
        if self.last_key != key {
            self.turn_to(arrays, key);
        }
        let entry = &mut self.lines[self.last][index % LINE];
        let before = *entry;
        *entry = before.wrapping_add(units);
        in_range(before)
    }

    /// The same for three entries in a row. False if one of the sums was out of range before.
    #[inline(always)]
    pub(super) fn add_three(&mut self, arrays: &[Vec<AtomicI64>], slot: usize, start: usize, units: [i64; 3]) -> bool {
        let first = start % LINE;
        if first + 3 > LINE {
            return (0..3).fold(true, |fits, c| self.add(arrays, slot, start + c, units[c]) & fits);
        }
        let key = (slot as u64) << SLOT | (start / LINE) as u64;
        if self.last_key != key {
            self.turn_to(arrays, key);
        }
        let line = &mut self.lines[self.last];
        let before = [line[first], line[first + 1], line[first + 2]];
        for c in 0..3 {
            line[first + c] = before[c].wrapping_add(units[c]);
        }
        in_range(before[0]) & in_range(before[1]) & in_range(before[2])
    }

    /// Makes `last` the place of the line with this key, and flushes another line that is there.
    #[inline(always)]
    fn turn_to(&mut self, arrays: &[Vec<AtomicI64>], key: u64) {
        // Multiplicative hash by the golden ratio, which spreads a grid's rows and slices, whose lines have regular strides.
        self.last = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LINES.ilog2())) as usize;
        self.last_key = key;
        if self.keys[self.last] != key {
            self.flush(arrays, self.last);
            self.keys[self.last] = key;
        }
    }

    /// Adds the line at this place to the shared sums and empties it.
    #[inline(never)]
    fn flush(&mut self, arrays: &[Vec<AtomicI64>], place: usize) {
        let key = std::mem::replace(&mut self.keys[place], NOBODY);
        if key == NOBODY {
            return;
        }
        let (slot, line) = ((key >> SLOT) as usize, (key & ((1 << SLOT) - 1)) as usize);
        for (sum, entry) in self.lines[place].iter_mut().zip(&arrays[slot][line * LINE..]) {
            let units = std::mem::take(sum);
            if units != 0 && !(in_range(units) & in_range(entry.fetch_add(units, Ordering::Relaxed))) {
                self.overflowed = Some(slot);
            }
        }
    }

    /// Adds all lines of the cache to the shared sums.
    ///
    /// # Errors
    /// A parameter whose sums were out of range, now or since the last time.
    pub(super) fn empty(&mut self, arrays: &[Vec<AtomicI64>]) -> Result<(), usize> {
        (0..LINES).for_each(|place| self.flush(arrays, place));
        self.last_key = NOBODY;
        self.overflowed.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::units::LIMIT;

    fn zeros(len: usize) -> Vec<AtomicI64> {
        (0..len).map(|_| AtomicI64::new(0)).collect()
    }

    #[test]
    fn sums_are_those_of_additions_one_by_one() {
        // More lines than there is room for, and one that is not full.
        let lengths = [7, LINE * LINES * 2 + 5];
        let arrays = lengths.map(zeros);
        let mut expected = lengths.map(|len| vec![0i64; len]);
        let mut cache = SumCache::new();
        let mut state = 1u64;
        for _ in 0..300_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let slot = usize::from(state >> 60 != 0);
            let index = (state >> 20) as usize % lengths[slot];
            let units = (state >> 33) as i64 - (1 << 30);
            expected[slot][index] += units;
            if index + 3 <= lengths[slot] && state >> 32 & 1 != 0 {
                expected[slot][index + 1] -= units;
                expected[slot][index + 2] += 3;
                assert!(cache.add_three(&arrays, slot, index, [units, -units, 3]));
            } else {
                assert!(cache.add(&arrays, slot, index, units));
            }
        }
        assert_eq!(cache.empty(&arrays), Ok(()));
        for (sums, expected) in arrays.iter().zip(&expected) {
            assert!(
                sums.iter()
                    .map(|sum| sum.load(Ordering::Relaxed))
                    .eq(expected.iter().copied())
            );
        }
        assert!(cache.keys.iter().all(|key| *key == NOBODY) && cache.lines.iter().flatten().all(|sum| *sum == 0));
    }

    #[test]
    fn sums_out_of_range_are_seen_here_and_in_what_they_are_added_to() {
        let arrays = [zeros(LINE)];
        let mut cache = SumCache::new();
        assert!(cache.add(&arrays, 0, 3, LIMIT));
        assert!(!cache.add(&arrays, 0, 3, 1), "a sum that was too large");
        assert_eq!(cache.empty(&arrays), Err(0), "a sum that is too large");
        assert_eq!(cache.empty(&arrays), Ok(()));
        let arrays = [zeros(LINE)];
        arrays[0][3].store(LIMIT, Ordering::Relaxed);
        assert!(cache.add(&arrays, 0, 3, 1));
        assert_eq!(cache.empty(&arrays), Err(0), "the sum that it was added to");
    }
}
