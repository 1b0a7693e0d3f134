//! Majorants and where their cells lie, for every filter and wrap, against lookups written out here.

use glam::Vec3;
use prbopt::resident::layout::medium::ALIGNED;
use prbopt::resident::layout::{MediumRecord, VolumeRecord};
use prbopt::resident::paths::PathScene;

use super::{assert_near, unit, world};
use prbopt::transport::rays::camera::transform_point;

/// A medium in a cube, given the JSON of its `sigma_t` and of what follows.
fn medium(sigma_t: &str, more: &str) -> (PathScene, prbopt::params::ParamSet) {
    world(&format!(
        r#""box": {{"type": "cube", "bsdf": {{"type": "null"}}, "to_world": [{{"scale": 99}}],
            "interior": {{"type": "heterogeneous", "scale": 2, "sigma_t": {sigma_t} {more}}}}},
           "camera": {{"type": "perspective", "to_world": [{{"translate": [0, 0, -500]}}]}}"#
    ))
}

fn corners(medium: &MediumRecord) -> Vec<[f32; 3]> {
    let pick = |i: u32, a: usize| if i >> a & 1 == 0 { medium.low[a] } else { medium.high[a] };
    (0..8).map(|i| [0, 1, 2].map(|a| pick(i, a))).collect()
}

/// Places of volumes: upright ones, mirrored ones, ones turned by much and by so little that it could be rounding.
const PLACES: [&str; 10] = [
    r#"{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}"#,
    r#"{"scale": [2, -3, 4]}, {"translate": [5, 6, -7]}"#,
    r#"{"scale": [2, 3, 4]}, {"rotate": {"axis": [0, 0, 1], "angle": 30}}"#,
    r#"{"rotate": {"axis": [1, 2, 3], "angle": 50}}, {"translate": [1, 0, 0]}"#,
    r#"{"rotate": {"axis": [0, 1, 0], "angle": 0.0086}}"#,
    r#"{"rotate": {"axis": [1, 0, 0], "angle": 0.0029}}"#,
    // Rows of the inverse with all combinations of signs: each corner of the box is once the farthest.
    r#"{"rotate": {"axis": [0, 1, -1], "angle": 40}}"#,
    r#"{"rotate": {"axis": [0, 1, -1], "angle": -40}}"#,
    r#"{"rotate": {"axis": [0, 1, 1], "angle": 40}}"#,
    r#"{"rotate": {"axis": [0, 1, 1], "angle": -40}}"#,
];

/// The medium's box is that around its volume, and the grid of majorants covers just the part of the volume's space that
/// the box covers.
#[test]
fn boxes_and_majorant_grids_fit_the_volume() {
    for place in PLACES {
        for filter in ["trilinear", "nearest"] {
            let (world, _) = medium(
                &format!(
                    r#"{{"type": "gridvolume", "resolution": [20, 9, 17], "value": 1, "filter_type": "{filter}",
                        "to_world": [{place}]}}"#
                ),
                "",
            );
            let medium = &world.media[0];
            let volume = &world.volumes[medium.sigma_t as usize];
            // Each face of the box touches the volume: lows and highs of its corners, which unit corners map to.
            let to_world = glam::Affine3A::from_cols_array_2d(&columns(volume)).inverse();
            let placed: Vec<Vec3> = (0..8)
                .map(|i| to_world.transform_point3(Vec3::new((i % 2) as f32, (i / 2 % 2) as f32, (i / 4) as f32)))
                .collect();
            let low = placed.iter().copied().reduce(Vec3::min).expect("eight");
            let high = placed.iter().copied().reduce(Vec3::max).expect("eight");
            assert!(
                (low - Vec3::from(medium.low)).length() < 1e-4,
                "{place}: {low} {:?}",
                medium.low
            );
            assert!(
                (high - Vec3::from(medium.high)).length() < 1e-4,
                "{place}: {high} {:?}",
                medium.high
            );
            let kappa = 1.0 / (high - low).length();
            assert!((medium.kappa - kappa).abs() < 1e-4 * kappa);
            for a in 0..3 {
                let within: Vec<f32> = corners(medium)
                    .iter()
                    .map(|c| transform_point(&medium.world_to_grid, *c)[a])
                    .collect();
                let (least, most) = within
                    .iter()
                    .fold((f32::MAX, f32::MIN), |(l, m), x| (l.min(*x), m.max(*x)));
                // A turn by 5e-5 counts as none.
                let slack = if place.contains("0.0029") { 1e-4 } else { 2e-5 };
                assert!(
                    least.abs() < slack && (most - 1.0).abs() < slack,
                    "{place}, axis {a}: {least} to {most}"
                );
            }
        }
    }
    // A turn within rounding is dropped: the grid's space is that of the volume.
    let (world, _) = medium(
        &format!(
            r#"{{"type": "gridvolume", "resolution": 9, "value": 1, "to_world": [{}]}}"#,
            PLACES[5]
        ),
        "",
    );
    let volume = &world.volumes[world.media[0].sigma_t as usize];
    assert_eq!(world.media[0].world_to_grid, volume.world_to_unit);
}

/// A turned box that is much longer than wide covers so many unit cubes across that cells of eight texels would be far too many.
#[test]
fn stretched_boxes_have_few_majorants() {
    for length in ["1e3", "1e5", "1e9", "1e30"] {
        let place = format!(r#"{{"scale": [1, {length}, 1]}}, {{"rotate": {{"axis": [1, 2, 3], "angle": 40}}}}"#);
        let volume =
            format!(r#"{{"type": "gridvolume", "resolution": [20, 9, 170], "value": 1, "to_world": [{place}]}}"#);
        let (world, params) = medium(&volume, "");
        let count = world.majorants();
        assert!((1..=1 << 24).contains(&count), "{length}: {count}");
        let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
        let majorants = world.rebuild_majorants(&values);
        assert_eq!(majorants.len(), count);
        assert!(majorants.iter().all(|m| *m >= 1.0), "{length}");
    }
}

fn columns(volume: &VolumeRecord) -> [[f32; 3]; 4] {
    let rows = &volume.world_to_unit;
    [0, 1, 2, 3].map(|c| [rows[0][c], rows[1][c], rows[2][c]])
}

/// A single bright texel: the cells that see it are bounded by it times scale and margin, all others by zero. A cell sees
/// what lies within a texel of it, and may be a thousandth of a texel larger.
#[test]
fn majorants_are_the_largest_texel_in_reach() {
    for (resolution, filter) in [
        ([20usize, 9, 3], "trilinear"),
        ([17, 3, 16], "nearest"),
        ([8, 8, 24], "trilinear"),
    ] {
        let (world, params) = medium(
            &format!(
                r#"{{"type": "gridvolume", "resolution": {resolution:?}, "value": 1, "filter_type": "{filter}"}}"#
            ),
            "",
        );
        let cells = world.media[0].majorants;
        assert_eq!(
            cells,
            [0, 1, 2, 3].map(|a| if a == 3 { 0 } else { resolution[a].div_ceil(8) as u32 })
        );
        let slot = params.find("box.interior.sigma_t").expect("there");
        let count: usize = resolution.iter().product();
        let in_reach = |a: usize, cell: usize, texel: usize| {
            let edge = |i: usize| i as f64 / f64::from(cells[a]) * resolution[a] as f64 - 0.5;
            cells[a] == 1 || (texel as f64 > edge(cell) - 1.001 && (texel as f64) < edge(cell + 1) + 1.0011)
        };
        for bright in 0..count {
            let mut data = vec![0.0; count];
            data[bright] = 3.0;
            let values: Vec<&[f32]> = (0..params.parameters.len())
                .map(|i| {
                    if i == slot {
                        &data[..]
                    } else {
                        &params.parameters[i].values[..]
                    }
                })
                .collect();
            let at = [
                bright % resolution[0],
                bright / resolution[0] % resolution[1],
                bright / (resolution[0] * resolution[1]),
            ];
            let majorants = world.rebuild_majorants(&values);
            for (i, majorant) in majorants.iter().enumerate() {
                let [nx, ny] = [cells[0] as usize, cells[1] as usize];
                let cell = [i % nx, i / nx % ny, i / (nx * ny)];
                let sees = (0..3).all(|a| in_reach(a, cell[a], at[a]));
                let expected = if sees { 3.0 * 2.0 * 1.05 } else { 0.0 };
                assert!(
                    (majorant - expected).abs() < 1e-5,
                    "texel {at:?}, cell {cell:?}: {majorant}, not {expected}"
                );
            }
        }
    }
}

/// Only clamped grids are divided into cells; all other volumes have one majorant, with a margin unless it cannot change.
#[test]
fn what_repeats_and_what_is_constant_has_one_majorant() {
    for wrap in ["repeat", "mirror"] {
        for filter in ["trilinear", "nearest"] {
            let (world, _) = medium(
                &format!(
                    r#"{{"type": "gridvolume", "resolution": 20, "value": 3, "wrap_mode": "{wrap}",
                        "filter_type": "{filter}"}}"#
                ),
                "",
            );
            assert_eq!(world.media[0].majorants, [1, 1, 1, 0], "{wrap} {filter}");
        }
    }
    let (turned, _) = medium(
        &format!(r#"{{"type": "constvolume", "value": 3, "to_world": [{}]}}"#, PLACES[2]),
        "",
    );
    let volume = &turned.volumes[turned.media[0].sigma_t as usize];
    assert_eq!(
        turned.media[0].world_to_grid, volume.world_to_unit,
        "one cell, wherever the box lies"
    );
    let (world, params) = medium("3", "");
    let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
    assert_eq!(world.rebuild_majorants(&values), [6.0]);
    assert_eq!(
        (world.majorant_rule(0).margin, world.majorant_rule(0).floor),
        (1.0, 0.0)
    );
    // If everything may change, the floor is one over the box's diagonal, and there is a margin.
    let mut varied = world.clone();
    varied.vary_all();
    assert_near([varied.majorant_rule(0).margin], [1.05], "margin");
    assert_near([varied.majorant_rule(0).floor], [1.0 / 3f32.sqrt()], "floor");
    assert_near([varied.rebuild_majorants(&values)[0]], [6.3], "with a margin");
    let nothing: Vec<Vec<f32>> = values.iter().map(|v| vec![0.0; v.len()]).collect();
    let nothing: Vec<&[f32]> = nothing.iter().map(|v| &v[..]).collect();
    assert_near(
        [varied.rebuild_majorants(&nothing)[0]],
        [1.0 / 3f32.sqrt()],
        "the floor",
    );
    assert_eq!(world.rebuild_majorants(&nothing), [0.0]);
}

/// Several media in one array, each where its record says. The least majorant of a medium without a box is that of a cube as
/// large as the shape that holds it.
#[test]
fn majorants_of_media_follow_one_another() {
    let (mut world, params) = world(
        r#""a": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "heterogeneous",
            "sigma_t": {"type": "gridvolume", "resolution": [20, 9, 17], "value": 1}}},
        "b": {"type": "sphere", "center": [9, 0, 0], "bsdf": {"type": "null"},
            "interior": {"type": "homogeneous", "sigma_t": 0.5}},
        "c": {"type": "cube", "bsdf": {"type": "null"}, "to_world": [{"translate": [0, 9, 0]}],
            "interior": {"type": "heterogeneous", "sigma_t": {"type": "gridvolume", "resolution": [9, 8, 8],
                "value": [1, 5, 2], "to_world": [{"translate": [3, 9, -4]}, {"scale": [2, 2, 1]}]}}},
        "camera": {"type": "perspective", "to_world": [{"translate": [0, 0, -50]}]}"#,
    );
    let grids: Vec<[u32; 4]> = world.media.iter().map(|m| m.majorants).collect();
    assert_eq!(grids, [[3, 2, 3, 0], [1, 1, 1, 18], [2, 1, 1, 19]]);
    assert_eq!(world.majorants(), 21);
    let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
    let majorants = world.rebuild_majorants(&values);
    assert_eq!(majorants.len(), 21);
    let expected = |i: usize| [1.05, 0.5, 5.25][usize::from(i >= 18) + usize::from(i >= 19)];
    for (i, m) in majorants.iter().enumerate() {
        assert_near([*m], [expected(i)], &format!("majorant {i}"));
    }
    world.vary_all();
    let floors = [0, 1, 2].map(|m| world.majorant_rule(m).floor);
    assert_near(
        floors,
        [1.0 / 3f32.sqrt(), 0.358_16, 1.0 / 3.0],
        "of boxes with edges 1, of a ball, and of a box with edges 2, 2, 1",
    );
}

/// A medium that reaches to infinity has no least majorant: collisions there would not end.
#[test]
fn media_around_shapes_have_no_least_majorant() {
    let (mut world, _) = world(
        r#""fog": {"type": "homogeneous", "sigma_t": 0.5},
        "ball": {"type": "sphere", "bsdf": {"type": "dielectric"}, "exterior": {"type": "ref", "id": "fog"}},
        "camera": {"type": "perspective", "medium": {"type": "ref", "id": "fog"}, "to_world": [{"translate": [0, 0, -50]}]}"#,
    );
    world.vary_all();
    assert_eq!(world.majorant_rule(0).floor, 0.0);
}

/// Extinction and albedo are looked up as one where filter, wrap, size and place agree.
#[test]
fn aligned_are_volumes_that_agree_in_all() {
    let grid = |what: &str| format!(r#"{{"type": "gridvolume", "value": 0.5, {what}}}"#);
    let base =
        r#""resolution": [2, 3, 4], "filter_type": "nearest", "wrap_mode": "repeat", "to_world": [{"scale": 2}]"#;
    for (albedo, expected) in [
        (base.to_owned(), true),
        (base.replace("[2, 3, 4]", "[2, 3, 5]"), false),
        (base.replace("nearest", "trilinear"), false),
        (base.replace("repeat", "mirror"), false),
        (base.replace("\"scale\": 2", "\"scale\": 3"), false),
    ] {
        let (world, _) = medium(&grid(base), &format!(r#", "albedo": {}"#, grid(&albedo)));
        assert_eq!(world.media[0].has(ALIGNED), expected, "{albedo}");
        assert!(unit(&world.volumes[0], [2.0; 3]).iter().all(|x| (x - 1.0).abs() < 1e-6));
    }
    assert!(medium("3", r#", "albedo": 0.5"#).0.media[0].has(ALIGNED), "constants");
    let of_grid = medium("3", &format!(r#", "albedo": {}"#, grid(base))).0;
    assert!(!of_grid.media[0].has(ALIGNED));
}

/// Majorants against lookups: trilinear interpolation of texels, written out here, at many places of every cell.
#[test]
fn majorants_bound_every_lookup_and_little_more() {
    for (resolution, place) in [
        ([20, 9, 17], r#"{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}"#),
        (
            [8, 16, 3],
            r#"{"translate": [-0.5, -0.5, -0.5]}, {"scale": [2, 3, 4]}, {"rotate": {"axis": [0, 0, 1], "angle": 30}}"#,
        ),
    ] {
        let (world, params) = world(&format!(
            r#""box": {{"type": "cube", "bsdf": {{"type": "null"}}, "to_world": [{{"scale": 9}}],
                "interior": {{"type": "heterogeneous", "scale": 1.5,
                    "sigma_t": {{"type": "gridvolume", "resolution": {resolution:?}, "value": 1, "to_world": [{place}]}}}}}},
               "camera": {{"type": "perspective", "to_world": [{{"translate": [0, 0, -50]}}]}}"#
        ));
        let size = resolution.map(|n| n as usize);
        let slot = params.find("box.interior.sigma_t").expect("there");
        let data: Vec<f32> = (0..size.iter().product::<usize>())
            .map(|i| ((i as f32 * 0.61).sin() * 5.0).max(0.0))
            .collect();
        let values: Vec<&[f32]> = (0..params.parameters.len())
            .map(|i| {
                if i == slot {
                    &data[..]
                } else {
                    &params.parameters[i].values
                }
            })
            .collect();
        let (medium, volume) = (&world.media[0], &world.volumes[world.media[0].sigma_t as usize]);
        let majorants = world.rebuild_majorants(&values);
        let cells = [0, 1, 2].map(|a| medium.majorants[a] as usize);
        assert_eq!(
            (majorants.len(), world.majorants()),
            (cells.iter().product(), majorants.len())
        );
        let (low, high) = (Vec3::from_array(medium.low), Vec3::from_array(medium.high));
        let mut largest = vec![0f32; majorants.len()];
        let n = 61;
        for i in 0..n * n * n {
            let part = Vec3::new((i % n) as f32, (i / n % n) as f32, (i / (n * n)) as f32) / (n - 1) as f32;
            let p = (low + (high - low) * part).to_array();
            let (cell, at) = (transform_point(&medium.world_to_grid, p), unit(volume, p));
            if at.iter().chain(&cell).any(|x| !(0.0..1.0).contains(x)) {
                continue;
            }
            let index = [0, 1, 2].map(|a| (cell[a] * cells[a] as f32) as usize);
            let index = (index[2] * cells[1] + index[1]) * cells[0] + index[0];
            let sigma = 1.5 * trilinear(&data, size, at);
            assert!(
                sigma <= majorants[index],
                "{sigma} exceeds {} at {p:?}",
                majorants[index]
            );
            largest[index] = largest[index].max(sigma);
        }
        // Extinctions are at most 7.5, majorants that and a margin of a twentieth. Where a cell has a lookup above 1, its
        // majorant is less than 1.5 times the largest one.
        for (majorant, largest) in majorants.iter().zip(&largest) {
            assert!(*largest == 0.0 || *majorant <= 7.5 * 1.051, "{majorant}");
            assert!(
                *largest < 1.0 || majorant / largest < 1.5,
                "{majorant} where {largest} is the largest"
            );
        }
    }
}

fn trilinear(data: &[f32], size: [usize; 3], at: [f32; 3]) -> f32 {
    let mut sum = 0.0;
    for corner in 0..8 {
        let (mut index, mut weight) = (0, 1.0);
        for a in [2, 1, 0] {
            let x = at[a] * size[a] as f32 - 0.5;
            let (base, f) = (x.floor(), x - x.floor());
            let upper = corner >> a & 1;
            let texel = (base + upper as f32).clamp(0.0, size[a] as f32 - 1.0) as usize;
            index = index * size[a] + texel;
            weight *= if upper == 1 { f } else { 1.0 - f };
        }
        sum += weight * data[index];
    }
    sum
}
