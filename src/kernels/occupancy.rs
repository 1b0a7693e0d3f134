//! The occupancy grid: which cells of a radiance field can contribute.

/// The texels `first..=last` of an axis of `texels` texels that lookups in cell `cell` of `cells` can reach. A slack
/// of a thousandth of a texel covers the rounding of positions.
pub fn reachable(cell: usize, cells: usize, texels: usize) -> (usize, usize) {
    let edge = |i: usize| i as f64 * texels as f64 / cells as f64 - 0.5;
    let clamp = |x: f64| (x.max(0.0) as usize).min(texels - 1);
    (
        clamp((edge(cell) - 1e-3).floor()),
        clamp((edge(cell + 1) + 1e-3).floor() + 1.0),
    )
}

/// [`reachable`] for lookups between `low` and `high`, in coordinates of the unit cube.
pub fn reachable_between(low: f32, high: f32, texels: usize) -> (usize, usize) {
    let edge = |x: f32| f64::from(x) * texels as f64 - 0.5;
    let clamp = |x: f64| (x.max(0.0) as usize).min(texels - 1);
    (
        clamp((edge(low) - 1e-3).floor()),
        clamp((edge(high) + 1e-3).floor() + 1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 8 texels in 2 cells. Texel i's centre is at (i + 1/2)/8; lookups in the first cell, up to position 4 -
    /// 1/2 in texels, reach texels 0 to 4 (3 and 4 around its end), those in the second 3 to 7. Where a cell's border
    /// coincides with a centre, the slack adds one texel on either side.
    #[test]
    fn no_more_is_reachable_than_lookups_can_reach() {
        assert_eq!([0, 1].map(|cell| reachable(cell, 2, 8)), [(0, 4), (3, 7)]);
        assert_eq!([0, 1, 2].map(|cell| reachable(cell, 3, 9)), [(0, 3), (2, 6), (5, 8)]);
        assert_eq!([0, 1].map(|cell| reachable(cell, 2, 7)), [(0, 4), (2, 6)]);
        assert_eq!(reachable(0, 1, 1), (0, 0));
        assert_eq!(reachable_between(0.0, 0.5, 8), (0, 4));
        assert_eq!(reachable_between(0.5, 1.0, 8), (3, 7));
        assert_eq!(reachable_between(0.26, 0.3, 8), (1, 2));
        assert_eq!(reachable_between(0.1875, 0.3125, 8), (0, 3));
        assert_eq!(reachable_between(-1.0, 2.0, 5), (0, 4));
    }

    #[test]
    fn every_lookup_in_a_cell_stays_within_reach() {
        for (cells, texels) in [(1, 1), (2, 7), (8, 32), (5, 18)] {
            for i in 0..2000 {
                let p = i as f64 / 2000.0;
                let cell = (p * cells as f64) as usize;
                let base = (p * texels as f64 - 0.5).floor();
                let (first, last) = reachable(cell, cells, texels);
                for x in [base, base + 1.0] {
                    let texel = x.clamp(0.0, texels as f64 - 1.0) as usize;
                    assert!(
                        (first..=last).contains(&texel),
                        "p {p}: texel {texel} outside {first}..={last}"
                    );
                }
            }
        }
    }

    /// Borders of cells 0.00145 texels behind a texel's centre and 0.00155 before one: within two slacks of it, but not
    /// within one.
    #[test]
    fn the_slack_is_a_thousandth_of_a_texel() {
        assert_eq!(reachable(3343, 20000, 20003).0, 3343, "from 3343.00145");
        assert_eq!(reachable(3322, 20000, 20003).1, 3323, "to 3322.99845");
        assert_eq!(reachable_between(2.5015 / 8.0, 0.5, 8).0, 2);
        assert_eq!(reachable_between(2.5005 / 8.0, 0.5, 8).0, 1);
        assert_eq!(reachable_between(0.25, 4.4985 / 8.0, 8).1, 4);
        assert_eq!(reachable_between(0.25, 4.4995 / 8.0, 8).1, 5);
    }
}
