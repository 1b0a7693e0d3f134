//! Tests of a hierarchy's structure.

use rand_core::Rng;
use rand_pcg::Pcg32;

use super::*;

fn random_triangles(count: usize, corner: impl Fn(&mut Pcg32, usize) -> [f32; 3]) -> Vec<Triangle> {
    let mut random = Pcg32::new(7, 11);
    (0..count).map(|i| [(); 3].map(|()| corner(&mut random, i))).collect()
}

fn uniform(random: &mut Pcg32) -> f32 {
    (random.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// Checks a hierarchy's structure and returns its number of levels.
fn check(bvh: &Bvh, triangles: &[Triangle], surfaces: &[(u32, Corners)]) -> usize {
    let mut seen = vec![0; triangles.len()];
    let mut seen_surfaces = vec![0; surfaces.len()];
    let (mut deepest, mut visited, mut blocks) = (0, 0, 0);
    let mut stack = vec![(0u32, 1)];
    while let Some((at, level)) = stack.pop() {
        let node = &bvh.nodes[at as usize];
        visited += 1;
        deepest = deepest.max(level);
        for k in 0..WIDTH {
            let inside =
                |[low, high]: Corners| (0..3).all(|a| node.planes[a][k] <= low[a] && high[a] <= node.planes[3 + a][k]);
            let index = node.children[k] & !child::KIND;
            match node.children[k] & child::KIND {
                child::NODE => {
                    assert!(index > at && inside(box_of(&bvh.nodes[index as usize])));
                    stack.push((index, level + 1));
                }
                child::BLOCK => {
                    let block = &bvh.blocks[index as usize];
                    blocks += 1;
                    for (lane, &t) in block.triangles.iter().enumerate().filter(|(_, t)| **t != NONE) {
                        seen[t as usize] += 1;
                        let corners = [0, 3, 6].map(|first| [0, 1, 2].map(|a| block.corners[first + a][lane]));
                        assert_eq!(corners, triangles[t as usize]);
                        assert!(corners.iter().all(|p| inside([*p, *p])));
                    }
                }
                child::SURFACE => {
                    let place = surfaces
                        .iter()
                        .position(|(number, _)| *number == index)
                        .expect("it exists");
                    seen_surfaces[place] += 1;
                    assert!(inside(surfaces[place].1));
                }
                _ => assert!(node.planes[0][k] > node.planes[3][k], "the box of no child is empty"),
            }
        }
    }
    assert_eq!(bvh.levels(), deepest);
    assert!(
        seen.iter().chain(&seen_surfaces).all(|&s| s == 1),
        "every primitive is in one leaf"
    );
    assert_eq!(visited, bvh.nodes.len(), "every node is reached once");
    assert_eq!(blocks, bvh.blocks.len(), "every block is reached once");
    deepest
}

#[test]
fn every_triangle_is_in_one_leaf_and_within_its_boxes() {
    for count in [1, 2, 4, 5, 100, 5000, 200_000] {
        let triangles = random_triangles(count, |random, _| [(); 3].map(|()| uniform(random)));
        let bvh = Bvh::new(&triangles, &[]);
        let levels = check(&bvh, &triangles, &[]);
        assert!(levels <= 12, "{levels} levels");
        assert!(bvh.blocks.len() <= count.div_ceil(2), "{} blocks", bvh.blocks.len());
    }
    assert_eq!(Bvh::new(&[], &[]), Bvh::default());
}

#[test]
fn surfaces_are_leaves() {
    let triangles = random_triangles(5000, |random, _| [(); 3].map(|()| uniform(random)));
    let mut random = Pcg32::new(5, 5);
    let surfaces: Vec<(u32, Corners)> = (0..50)
        .map(|i| {
            let low = [(); 3].map(|()| uniform(&mut random));
            (3 * i, [low, low.map(|x| x + 0.1)])
        })
        .collect();
    let mixed = Bvh::new(&triangles, &surfaces);
    check(&mixed, &triangles, &surfaces);
    assert!(
        mixed.blocks.len() <= 2500,
        "{} blocks of 5000 triangles",
        mixed.blocks.len()
    );
    check(&Bvh::new(&triangles[..3], &surfaces), &triangles[..3], &surfaces);
    check(&Bvh::new(&[], &surfaces), &[], &surfaces);
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
        let triangles = random_triangles(30_000, corner);
        let levels = check(&Bvh::new(&triangles, &[]), &triangles, &[]);
        assert!(levels <= MAX_LEVELS, "{levels} levels");
    }
}

/// With centroids at 2⁻¹, 2⁻², … each cut lies at the end of the row and splits off one triangle or two.
#[test]
fn the_number_of_levels_is_bounded() {
    let triangles = random_triangles(4000, |_, i| [0.5f32.powi(i as i32 % 120); 3]);
    let levels = check(&Bvh::new(&triangles, &[]), &triangles, &[]);
    assert!(levels <= MAX_LEVELS, "{levels} levels");
}

/// The same bits, whatever the number of threads.
#[test]
fn equal_soups_give_equal_hierarchies() {
    let triangles = random_triangles(150_000, |random, _| [(); 3].map(|()| uniform(random)));
    let build = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| Bvh::new(&triangles, &[]))
    };
    assert_eq!(build(1), build(3));
}

/// On a height field the heuristic beats halving by a wide margin; a cut that is chosen badly would not.
#[test]
fn boxes_of_siblings_hardly_overlap() {
    let triangles = random_triangles(4096, |random, i| {
        let [x, y] = [(i % 64) as f32, (i / 64) as f32];
        [x + uniform(random), y + uniform(random), 0.1 * uniform(random)]
    });
    let bvh = Bvh::new(&triangles, &[]);
    let mut sum = 0.0;
    for node in &bvh.nodes {
        for k in (0..WIDTH).filter(|&k| node.children[k] & child::KIND == child::BLOCK) {
            let [x, y, z] = [0, 1, 2].map(|a| node.planes[3 + a][k] - node.planes[a][k]);
            sum += x * y + y * z + z * x;
        }
    }
    let ratio = sum / (64.0 * 64.0);
    assert!(ratio < 1.6, "leaves have {ratio} times the area of the whole");
    let children: usize = bvh
        .nodes
        .iter()
        .map(|n| n.children.iter().filter(|c| **c != child::EMPTY).count())
        .sum();
    assert!(
        children > 5 * bvh.nodes.len(),
        "nodes are well filled: {children} children"
    );
}

/// Eight surfaces need no boxes, nine do; a box holds its surface wherever that is.
#[test]
fn few_surfaces_have_no_hierarchy() {
    let mut record = SurfaceRecord::zeroed();
    (record.kind, record.to_world) = (
        surface::SPHERE,
        [[2.0, 0.0, 0.0, 5.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]],
    );
    assert!(of_world(&[], &[record; WIDTH]).nodes.is_empty());
    let bvh = of_world(&[], &[record; WIDTH + 1]);
    let [low, high] = box_of(&bvh.nodes[0]);
    assert!(low[0] < 3.0 && high[0] > 7.0 && low[0] > 2.9 && high[2] > 1.0 && high[2] < 1.1);
}

/// Cuts and collapsing depend on ratios of areas alone, not on the unit of length, even where areas in it would leave the
/// range of f32.
#[test]
fn the_unit_of_length_does_not_count() {
    let triangles = random_triangles(6000, |random, _| [(); 3].map(|()| uniform(random)));
    let surfaces = [(0, [[0.1; 3], [0.2; 3]]), (1, [[0.4; 3], [0.9, 0.5, 0.6]])];
    let build = |scale: f32| {
        let scaled: Vec<Triangle> = triangles.iter().map(|t| t.map(|p| p.map(|x| scale * x))).collect();
        let surfaces = surfaces.map(|(number, corners)| (number, corners.map(|c: [f32; 3]| c.map(|x| scale * x))));
        (Bvh::new(&scaled, &[]), Bvh::new(&scaled, &surfaces))
    };
    let shape = |bvh: &Bvh| {
        let children: Vec<_> = bvh.nodes.iter().map(|node| node.children).collect();
        let triangles: Vec<_> = bvh.blocks.iter().map(|block| block.triangles).collect();
        (children, triangles)
    };
    let (alone, mixed) = build(1.0);
    for scale in [2f32.powi(70), 2f32.powi(-70), 2.0] {
        let (scaled, with_surfaces) = build(scale);
        assert_eq!(shape(&scaled), shape(&alone), "{scale}");
        assert_eq!(shape(&with_surfaces), shape(&mixed), "{scale}");
        assert_eq!(scaled.bounds, alone.bounds.map(|c| c.map(|x| scale * x)));
    }
}

/// Boxes of a turned and moved surface by hand: the sums of a row's magnitudes, for a rectangle without the third one, and
/// a ten-thousandth of the largest coordinate on all sides.
#[test]
fn boxes_of_surfaces_are_known() {
    let rows = [[2.0, 0.0, 0.0, 5.0], [0.5, -1.0, 0.25, 0.0], [0.0, 0.0, -3.0, -1.0]];
    let near = |found: Corners, expected: Corners| {
        let pairs = found.as_flattened().iter().zip(expected.as_flattened());
        for (a, b) in pairs {
            assert!((a - b).abs() < 1e-6 * b.abs().max(1e-3), "{found:?}, not {expected:?}");
        }
    };
    for scale in [1.0f32, 1e-3, 100.0] {
        let mut record = SurfaceRecord::zeroed();
        record.to_world = rows.map(|row| row.map(|x| scale * x));
        for kind in [surface::CUBE, surface::SPHERE] {
            record.kind = kind;
            // Reaches 2, 1.75 and 3; the largest coordinate is 7.
            let expected = [[3.0, -1.75, -4.0], [7.0, 1.75, 2.0]];
            let side = |corner: [f32; 3], sign: f32| corner.map(|x| scale * (x + sign * 7e-4));
            near(
                box_of_surface(&record),
                [side(expected[0], -1.0), side(expected[1], 1.0)],
            );
        }
        record.kind = surface::RECTANGLE;
        let expected = [[3.0, -1.5, -1.0], [7.0, 1.5, -1.0]];
        let side = |corner: [f32; 3], sign: f32| corner.map(|x| scale * (x + sign * 7e-4));
        near(
            box_of_surface(&record),
            [side(expected[0], -1.0), side(expected[1], 1.0)],
        );
    }
    let mut huge = SurfaceRecord::zeroed();
    (huge.kind, huge.to_world) = (surface::CUBE, [[f32::MAX, f32::MAX, 0.0, 0.0]; 3]);
    assert_eq!(box_of_surface(&huge), [[-f32::MAX; 3], [f32::MAX; 3]]);
}

/// There is a hierarchy as soon as there is a triangle; the records of meshes are no surfaces in it.
#[test]
fn meshes_are_in_the_hierarchy_by_their_triangles() {
    let mut records = [SurfaceRecord::zeroed(); 2];
    (records[0].kind, records[1].kind) = (surface::MESH, surface::CUBE);
    records[1].to_world = [[0.0, 0.0, 0.0, 4.0]; 3];
    let triangles = random_triangles(3, |random, _| [(); 3].map(|()| uniform(random)));
    let bvh = of_world(&triangles, &records);
    check(&bvh, &triangles, &[(1, box_of_surface(&records[1]))]);
    assert!(of_world(&[], &records).nodes.is_empty());
}

/// On the last level a node's children are leaves alone; with each level above, a child can hold twice as many primitives.
#[test]
fn the_levels_that_are_left_hold_twice_as_much_each() {
    let builder = Builder {
        per_unit: Four::splat(1.0),
        leaf: 6,
    };
    let levels = [MAX_LEVELS - 1, MAX_LEVELS - 2, MAX_LEVELS - 6, MAX_LEVELS - 32, 1];
    assert_eq!(
        levels.map(|level| builder.room(level)),
        [6, 12, 6 << 5, 6 << 31, 6 << 31]
    );
}
