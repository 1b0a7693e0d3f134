//! Bounding-volume hierarchies of triangles, built once on the host by the surface-area heuristic over bins (Wald
//! 2007).

use super::layout::{NodeRecord, TriangleRecord};

/// Levels of the deepest hierarchy; whoever walks it holds at most one node a level in wait.
pub const MAX_LEVELS: usize = 32;

/// Triangles of the largest leaf.
pub const MAX_LEAF: usize = 4;

/// Intervals a node's centroids are sorted into along each axis.
const BINS: usize = 16;

/// Cost of a step to a node's children, in tests of a triangle.
const STEP_COST: f64 = 1.0;

/// Nodes and the triangles that their leaves name. The root is node 0; without triangles there are no nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hierarchy {
    pub nodes: Vec<NodeRecord>,
    pub triangles: Vec<TriangleRecord>,
}

impl Hierarchy {
    /// Builds a hierarchy over triangles, which it puts into an order of its own. The same triangles give the same
    /// bits.
    ///
    /// Vertices must be finite. Triangles may be degenerate, coincide and intersect.
    ///
    /// # Panics
    /// With 2³¹ triangles or more, whose nodes a `u32` cannot number.
    pub fn new(triangles: Vec<TriangleRecord>) -> Self {
        assert!(triangles.len() < 1 << 31, "{} triangles are too many", triangles.len());
        if triangles.is_empty() {
            return Self::default();
        }
        let mut items: Vec<Item> = triangles.iter().zip(0..).map(Item::new).collect();
        let mut nodes = vec![leaf(&items, 0)];
        split(&mut nodes, 0, &mut items, 0, 1);
        Self {
            nodes,
            triangles: items.iter().map(|item| triangles[item.index as usize]).collect(),
        }
    }
}

/// A triangle while the hierarchy is built.
#[derive(Clone, Copy)]
struct Item {
    bounds: Bounds,
    centroid: [f32; 3],
    index: u32,
}

impl Item {
    fn new((triangle, index): (&TriangleRecord, u32)) -> Self {
        let mut bounds = Bounds::EMPTY;
        [triangle.a, triangle.b, triangle.c]
            .iter()
            .for_each(|p| bounds.add(*p, *p));
        // Halves are added, not a sum halved, which might overflow.
        let centroid = std::array::from_fn(|axis| 0.5 * bounds.low[axis] + 0.5 * bounds.high[axis]);
        Self {
            bounds,
            centroid,
            index,
        }
    }
}

/// An axis-aligned box.
#[derive(Clone, Copy)]
struct Bounds {
    low: [f32; 3],
    high: [f32; 3],
}

impl Bounds {
    const EMPTY: Self = Self {
        low: [f32::INFINITY; 3],
        high: [f32::NEG_INFINITY; 3],
    };

    fn add(&mut self, low: [f32; 3], high: [f32; 3]) {
        for axis in 0..3 {
            self.low[axis] = self.low[axis].min(low[axis]);
            self.high[axis] = self.high[axis].max(high[axis]);
        }
    }

    fn of(items: &[Item]) -> Self {
        let mut bounds = Self::EMPTY;
        items
            .iter()
            .for_each(|item| bounds.add(item.bounds.low, item.bounds.high));
        bounds
    }

    /// Half the area of the surface, in f64 so that it cannot overflow.
    fn area(&self) -> f64 {
        let [x, y, z]: [f64; 3] =
            std::array::from_fn(|axis| (f64::from(self.high[axis]) - f64::from(self.low[axis])).max(0.0));
        x * y + y * z + z * x
    }
}

/// A leaf of all these triangles, which begin at `first` in the final order.
fn leaf(items: &[Item], first: u32) -> NodeRecord {
    let Bounds { low, high } = Bounds::of(items);
    NodeRecord {
        low,
        first,
        high,
        count: items.len() as u32,
    }
}

/// Splits node `at`, a leaf of `items` on the given level (the root's is 1), as long as that pays.
fn split(nodes: &mut Vec<NodeRecord>, at: usize, items: &mut [Item], first: u32, level: usize) {
    let Some(middle) = partition(items, level) else {
        return;
    };
    let (left, right) = items.split_at_mut(middle);
    let (child, second) = (nodes.len(), first + middle as u32);
    nodes[at].first = child as u32;
    nodes[at].count = 0;
    nodes.push(leaf(left, first));
    nodes.push(leaf(right, second));
    split(nodes, child, left, first, level + 1);
    split(nodes, child + 1, right, second, level + 1);
}

/// Reorders the triangles of a node and returns where to cut them; none if they are to stay a leaf.
fn partition(items: &mut [Item], level: usize) -> Option<usize> {
    if items.len() == 1 || level == MAX_LEVELS {
        return None;
    }
    // What halving can still bring down to leaves on the levels below the children.
    let room = MAX_LEAF << (MAX_LEVELS - level - 1).min(32);
    let best = best_cut(items).filter(|cut| cut.left.max(items.len() - cut.left) <= room);
    match best {
        Some(cut) if items.len() > MAX_LEAF || cut.cost < items.len() as f64 => {
            items.sort_by_key(|item| cut.binning.bin(item) >= cut.bin);
            Some(cut.left)
        }
        _ if items.len() <= MAX_LEAF => None,
        _ => {
            halve(items);
            Some(items.len() / 2)
        }
    }
}

/// Orders triangles by their centroids along the axis on which these lie farthest apart.
fn halve(items: &mut [Item]) {
    let extents: [f64; 3] = std::array::from_fn(|axis| Binning::new(items, axis).extent);
    let axis = (0..3).fold(0, |best, axis| if extents[axis] > extents[best] { axis } else { best });
    items.sort_by(|a, b| a.centroid[axis].total_cmp(&b.centroid[axis]));
}

/// Equal intervals that centroids fall into along an axis.
#[derive(Clone, Copy)]
struct Binning {
    axis: usize,
    low: f64,
    extent: f64,
}

impl Binning {
    fn new(items: &[Item], axis: usize) -> Self {
        let values = || items.iter().map(|item| item.centroid[axis]);
        let low = f64::from(values().fold(f32::INFINITY, f32::min));
        let high = f64::from(values().fold(f32::NEG_INFINITY, f32::max));
        Self {
            axis,
            low,
            extent: high - low,
        }
    }

    fn bin(&self, item: &Item) -> usize {
        let place = (f64::from(item.centroid[self.axis]) - self.low) / self.extent;
        ((place * BINS as f64) as usize).min(BINS - 1)
    }
}

/// A plane between two bins: what lies in bins below `bin` goes left.
struct Cut {
    binning: Binning,
    bin: usize,
    /// Triangles to the left.
    left: usize,
    /// Expected number of tests, where all triangles in one leaf would cost their number.
    cost: f64,
}

/// The cheapest of all cuts between bins of all axes; none if all centroids are the same.
fn best_cut(items: &[Item]) -> Option<Cut> {
    let whole = Bounds::of(items).area();
    let mut best: Option<Cut> = None;
    for axis in 0..3 {
        let binning = Binning::new(items, axis);
        if binning.extent <= 0.0 {
            continue;
        }
        let mut bins = [(Bounds::EMPTY, 0usize); BINS];
        for item in items {
            let (bounds, count) = &mut bins[binning.bin(item)];
            bounds.add(item.bounds.low, item.bounds.high);
            *count += 1;
        }
        let left = running(bins.into_iter());
        let right = running(bins.into_iter().rev());
        for bin in 1..BINS {
            let ((left_area, left), (right_area, right)) = (left[bin - 1], right[BINS - 1 - bin]);
            let tests = left_area * left as f64 + right_area * right as f64;
            // Where all boxes are points or lines, areas say nothing: an even cut is the best.
            let tests = if whole > 0.0 {
                tests / whole
            } else {
                left.max(right) as f64
            };
            let cost = STEP_COST + tests;
            if left > 0 && right > 0 && best.as_ref().is_none_or(|best| cost < best.cost) {
                best = Some(Cut {
                    binning,
                    bin,
                    left,
                    cost,
                });
            }
        }
    }
    best
}

/// Area and number of triangles of the first 1, 2, … bins.
fn running(bins: impl Iterator<Item = (Bounds, usize)>) -> [(f64, usize); BINS] {
    let mut sums = [(0.0, 0); BINS];
    let (mut bounds, mut count) = (Bounds::EMPTY, 0);
    for (sum, (next, more)) in sums.iter_mut().zip(bins) {
        bounds.add(next.low, next.high);
        count += more;
        // No triangles have no area, but their empty bounds are infinite.
        *sum = (if count > 0 { bounds.area() } else { 0.0 }, count);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use rand_core::Rng;
    use rand_pcg::Pcg32;

    fn soup(count: usize, corner: impl Fn(&mut Pcg32, usize) -> [f32; 3]) -> Vec<TriangleRecord> {
        let mut random = Pcg32::new(7, 11);
        let triangle = |i| TriangleRecord {
            a: corner(&mut random, i),
            b: corner(&mut random, i),
            c: corner(&mut random, i),
            triangle: i as u32,
            ..TriangleRecord::zeroed()
        };
        (0..count).map(triangle).collect()
    }

    fn uniform(random: &mut Pcg32) -> f32 {
        (random.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    /// Checks a hierarchy's structure and returns its number of levels.
    fn check(hierarchy: &Hierarchy, count: usize) -> usize {
        let mut seen = vec![false; count];
        let mut deepest = 0;
        let mut visited = 0;
        let mut stack = vec![(0usize, 1)];
        while let Some((at, level)) = stack.pop() {
            let node = hierarchy.nodes[at];
            visited += 1;
            deepest = deepest.max(level);
            let inside =
                |low: [f32; 3], high: [f32; 3]| (0..3).all(|a| node.low[a] <= low[a] && high[a] <= node.high[a]);
            let first = node.first as usize;
            if node.count == 0 {
                for child in [first, first + 1] {
                    assert!(child > at && inside(hierarchy.nodes[child].low, hierarchy.nodes[child].high));
                    stack.push((child, level + 1));
                }
                continue;
            }
            assert!(node.count as usize <= MAX_LEAF);
            for triangle in &hierarchy.triangles[first..first + node.count as usize] {
                assert!([triangle.a, triangle.b, triangle.c].iter().all(|p| inside(*p, *p)));
                assert!(!std::mem::replace(&mut seen[triangle.triangle as usize], true));
            }
        }
        assert!(seen.iter().all(|&s| s), "every triangle is in a leaf");
        assert_eq!(visited, hierarchy.nodes.len(), "every node is reached once");
        deepest
    }

    #[test]
    fn every_triangle_is_in_one_leaf_and_within_its_boxes() {
        for count in [1, 2, 4, 5, 100, 5000] {
            let hierarchy = Hierarchy::new(soup(count, |random, _| [(); 3].map(|()| uniform(random))));
            let levels = check(&hierarchy, count);
            assert!(levels <= MAX_LEVELS, "{levels} levels");
        }
        assert_eq!(Hierarchy::new(Vec::new()), Hierarchy::default());
    }

    #[test]
    fn degenerate_and_identical_triangles_are_split_by_number() {
        let corners: [fn(&mut Pcg32, usize) -> [f32; 3]; 4] = [
            |_, _| [0.5; 3],
            |random, _| [uniform(random), 0.0, 0.0],
            |_, i| [(i / 40) as f32, 1.0, 2.0],
            |random, i| {
                if i % 2 == 0 {
                    [f32::MAX; 3]
                } else {
                    [-f32::MAX * uniform(random); 3]
                }
            },
        ];
        for corner in corners {
            let levels = check(&Hierarchy::new(soup(3000, corner)), 3000);
            assert!(levels <= 24, "{levels} levels");
        }
    }

    /// Centroids at 2⁻¹, 2⁻², … draw each cut to the end of the row, one triangle or two at a time.
    #[test]
    fn the_number_of_levels_is_bounded() {
        let hierarchy = Hierarchy::new(soup(4000, |_, i| [0.5f32.powi(i as i32 % 120); 3]));
        let levels = check(&hierarchy, 4000);
        assert!((20..=MAX_LEVELS).contains(&levels), "{levels} levels");
    }

    #[test]
    fn equal_soups_give_equal_hierarchies() {
        let build = || Hierarchy::new(soup(2000, |random, _| [(); 3].map(|()| uniform(random))));
        assert_eq!(build(), build());
    }

    /// On a height field the heuristic beats halving by a wide margin; a cut that is chosen badly would not.
    #[test]
    fn boxes_of_siblings_hardly_overlap() {
        let quad = |i: usize| [(i % 64) as f32, (i / 64) as f32];
        let hierarchy = Hierarchy::new(soup(4096, |random, i| {
            let [x, y] = quad(i);
            [x + uniform(random), y + uniform(random), 0.1 * uniform(random)]
        }));
        let area = |n: &NodeRecord| {
            Bounds {
                low: n.low,
                high: n.high,
            }
            .area()
        };
        let leaves = hierarchy.nodes.iter().filter(|n| n.count > 0);
        let ratio = leaves.map(area).sum::<f64>() / area(&hierarchy.nodes[0]);
        assert!(ratio < 1.5, "leaves have {ratio} times the area of the root");
    }
}
