//! Shapes that are given by signed distances on a grid: where rays meet them, and what is refused.

use std::path::Path;

use glam::{DVec3, Vec3};
use prbopt::io::{Grid, vol};
use prbopt::resident::Resident;
use prbopt::scene::{self, Scene};
use prbopt::transport::scene::records::SceneView;
use prbopt::transport::scene::shape::{intersect, leave};
use prbopt::transport::scene::tables::Tables;

mod small;

use small::draw;

/// Points along x, y and z.
const SIZE: [usize; 3] = [9, 12, 7];

fn unit(seed: u64, index: u32) -> Vec3 {
    let z = 2.0 * draw(seed, index, 0) - 1.0;
    let (sine, cosine) = (2.0 * std::f32::consts::PI * draw(seed, index, 1)).sin_cos();
    Vec3::new(cosine, sine, 0.0) * (1.0 - z * z).sqrt() + Vec3::new(0.0, 0.0, z)
}

/// A grid of distances of points of [0, 1]³.
fn grid(distance: impl Fn(Vec3, u32) -> f32) -> Grid {
    let place = |i: usize| [i % SIZE[0], i / SIZE[0] % SIZE[1], i / SIZE[0] / SIZE[1]];
    let point = |i: usize| Vec3::from_array([0, 1, 2].map(|a| place(i)[a] as f32 / (SIZE[a] - 1) as f32));
    Grid {
        size: SIZE,
        channels: 1,
        bounds: [[0.0; 3], [1.0; 3]],
        data: (0..SIZE.iter().product())
            .map(|i| distance(point(i), i as u32))
            .collect(),
    }
}

/// A closed and lumpy shape.
fn lumps() -> Grid {
    grid(|p, i| (p - 0.5).length() - 0.38 + 0.12 * (draw(3, i, 0) - 0.5))
}

fn parse(folder: &Path, more: &str) -> Result<Scene, String> {
    let text = format!(
        r#"{{"rock": {{"type": "sdfgrid", "filename": "rock.vol"{more}}}, "sky": {{"type": "constant"}},
            "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}}}}"#
    );
    scene::parse(&text, &folder.join("scene.json")).map_err(|mistakes| mistakes.to_string())
}

/// The scene of a grid, read from a file.
fn resident(grid: &Grid, more: &str) -> Resident {
    let folder = tempfile::tempdir().expect("a temporary folder");
    vol::write(&folder.path().join("rock.vol"), grid).expect("writable");
    let scene = parse(folder.path(), more).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    Resident::new(&scene).unwrap_or_else(|e| panic!("{e}")).0
}

/// The trilinear distance at a point of [0, 1]³.
fn distance(grid: &Grid, p: DVec3) -> f64 {
    let q: [f64; 3] = [0, 1, 2].map(|a| p[a] * (SIZE[a] - 1) as f64);
    let cell = [0, 1, 2].map(|a| (q[a].max(0.0) as usize).min(SIZE[a] - 2));
    let mut sum = 0.0;
    for k in 0..8 {
        let upper = [k & 1, k >> 1 & 1, k >> 2];
        let at = [0, 1, 2].map(|a| cell[a] + upper[a]);
        let weight: f64 = (0..3)
            .map(|a| {
                let along = q[a] - cell[a] as f64;
                if upper[a] == 1 { along } else { 1.0 - along }
            })
            .product();
        sum += weight * f64::from(grid.data[(at[2] * SIZE[1] + at[1]) * SIZE[0] + at[0]]);
    }
    sum
}

/// The first change of sign in small steps along a ray, or the smallest distance if there is none.
fn march(grid: &Grid, origin: DVec3, direction: DVec3, far: f64) -> Result<f64, f64> {
    const STEPS: u32 = 20_000;
    let is_inside = |p: DVec3| p.cmpge(DVec3::ZERO).all() && p.cmple(DVec3::ONE).all();
    let (mut before, mut least) = (None::<f64>, f64::MAX);
    for i in 0..=STEPS {
        let t = far * f64::from(i) / f64::from(STEPS);
        let p = origin + t * direction;
        if !is_inside(p) {
            continue;
        }
        let here = distance(grid, p);
        if let Some(there) = before.filter(|there| (*there > 0.0) != (here > 0.0)) {
            return Ok(t - far / f64::from(STEPS) * here / (here - there));
        }
        (before, least) = (Some(here), least.min(here.abs()));
    }
    Err(least)
}

/// Against small steps through the trilinear distance in f64: whether a ray hits, where (to 2e-4), and the normal there by
/// differences.
#[test]
fn rays_meet_the_zero_level() {
    let rock = lumps();
    let resident = resident(&rock, "");
    let tables = Tables::default();
    let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
    let (mut met, mut missed) = (0, 0);
    for ray in 0..400 {
        let origin = Vec3::splat(0.5) + 2.0 * unit(5, ray);
        let aim = Vec3::splat(0.5) + 0.6 * draw(6, ray, 0) * unit(7, ray);
        let direction = (aim - origin).normalize();
        let hit = intersect(&world, origin.to_array(), direction.to_array(), f32::INFINITY);
        match (hit, march(&rock, origin.into(), direction.into(), 4.0)) {
            (Some(hit), Ok(t)) => {
                met += 1;
                assert!((f64::from(hit.t) - t).abs() < 2e-4, "ray {ray}: {} {t}", hit.t);
                let p = DVec3::from(Vec3::from(hit.point.p));
                assert!(
                    distance(&rock, p).abs() < 2e-6,
                    "ray {ray}: off by {}",
                    distance(&rock, p)
                );
                let slope = |a: usize| {
                    let step = 1e-6 * DVec3::AXES[a];
                    distance(&rock, p + step) - distance(&rock, p - step)
                };
                let normal = DVec3::from([0, 1, 2].map(slope)).normalize();
                let found = DVec3::from(Vec3::from(hit.normal));
                let near_a_face = (0..3).any(|a| {
                    let q = p[a] * (SIZE[a] - 1) as f64;
                    (q - q.round()).abs() < 1e-4
                });
                assert!(
                    near_a_face || found.dot(normal) > 1.0 - 1e-6,
                    "ray {ray}: {found} {normal}"
                );
            }
            (None, Err(_)) => missed += 1,
            // A ray that only touches the level.
            (None, Ok(_)) | (Some(_), Err(_)) => {
                let near = march(&rock, (origin + 1e-4 * unit(8, ray)).into(), direction.into(), 4.0);
                assert!(near.is_err_and(|least| least < 1e-3), "ray {ray}");
            }
        }
    }
    assert!(met > 150 && missed > 40, "{met} met, {missed} missed");
}

/// No ray from inside gets out of a closed level without a hit, and none hits it from outside, however cells round their common
/// values.
#[test]
fn levels_are_tight() {
    let resident = resident(&lumps(), "");
    let tables = Tables::default();
    let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
    for ray in 0..100_000 {
        let direction = match ray % 4 {
            // Along edges and diagonals of cells.
            0 => [Vec3::X, Vec3::Y, Vec3::Z][ray as usize / 4 % 3],
            1 => (unit(1, ray) * Vec3::new(1.0, 1.0, 0.0)).normalize(),
            _ => unit(1, ray),
        };
        let inside = Vec3::splat(0.5) + 0.05 * unit(2, ray);
        let hit = intersect(&world, inside.to_array(), direction.to_array(), f32::INFINITY);
        let hit = hit.unwrap_or_else(|| panic!("ray {ray} from {inside} along {direction} got out"));
        assert!(
            Vec3::from(hit.normal).dot(direction) > -1e-3,
            "ray {ray} met the level from outside"
        );
    }
}

/// The level of distances that change linearly is a plane, however small, large or far away the grid is: rays that leave the
/// plane do not hit it again.
#[test]
fn rays_leave_levels_for_good() {
    let mut left = 0;
    for trial in 0..60 {
        let normal = unit(20, trial);
        let plane = grid(|p, _| normal.dot(p - 0.5) + 0.05);
        let size = 10f32.powf(6.0 * draw(21, trial, 0) - 3.0);
        let stretch = [1, 2, 3].map(|i| size * 10f32.powf(-draw(21, trial, i)));
        let place = (unit(22, trial) * size * 10.0 * draw(21, trial, 4)).to_array();
        let axis = unit(23, trial).to_array();
        let angle = 360.0 * draw(21, trial, 5);
        let resident = resident(
            &plane,
            &format!(
                r#", "to_world": [{{"translate": [-0.5, -0.5, -0.5]}}, {{"scale": {stretch:?}}},
                    {{"rotate": {{"axis": {axis:?}, "angle": {angle}}}}}, {{"translate": {place:?}}}]"#
            ),
        );
        let tables = Tables::default();
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        for ray in 0..200 {
            let index = trial * 1000 + ray;
            let origin = Vec3::from(place) + unit(24, index) * size * 10f32.powf(2.0 * draw(25, index, 0));
            let aim = Vec3::from(place) + unit(26, index) * size * 0.1 * draw(25, index, 1);
            let towards = (aim - origin).normalize().to_array();
            let Some(hit) = intersect(&world, origin.to_array(), towards, f32::INFINITY) else {
                continue;
            };
            left += 1;
            let normal = Vec3::from(hit.normal);
            let mut away = unit(27, index);
            if ray % 2 == 0 {
                away = (away - normal * away.dot(normal) * (1.0 - 10f32.powf(-3.0 * draw(25, index, 2)))).normalize();
            }
            let again = intersect(&world, leave(&hit, away.to_array()), away.to_array(), f32::INFINITY);
            assert!(again.is_none(), "trial {trial}, ray {ray}: {again:?} after {hit:?}");
        }
    }
    assert!(left > 3000, "{left}");
}

/// Geometric normals jump from one cell to the next; shading normals do not, unless `normals` is `analytic`.
#[test]
fn shading_normals_are_continuous_between_cells() {
    let rock = lumps();
    let jumps = |more: &str| {
        let resident = resident(&rock, more);
        let tables = Tables::default();
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        let mut largest = [0f32; 2];
        for ray in 0..20_000 {
            let origin = Vec3::splat(0.5) + 2.0 * unit(30, ray);
            let look = |aim: Vec3| {
                let towards = (aim - origin).normalize();
                intersect(&world, origin.to_array(), towards.to_array(), f32::INFINITY)
            };
            let aim = Vec3::splat(0.5);
            let (Some(a), Some(b)) = (look(aim), look(aim + 1e-4 * unit(31, ray))) else {
                continue;
            };
            for (largest, [a, b]) in largest.iter_mut().zip([[a.normal, b.normal], [a.shading, b.shading]]) {
                *largest = largest.max(Vec3::from(a).distance(b.into()));
            }
        }
        largest
    };
    let [cells, smooth] = jumps("");
    assert!(
        cells > 1.0 && smooth < 0.1,
        "{cells} between cells, {smooth} for shading"
    );
    let [cells, analytic] = jumps(r#", "normals": "analytic""#);
    assert_eq!(cells, analytic);
}

#[test]
fn what_has_no_level_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("rock.vol");
    let refused = |more: &str| parse(folder.path(), more).expect_err(more);
    assert!(refused("").contains("these distances cannot be used at rock.filename"));
    let mut rock = lumps();
    vol::write(&file, &rock).expect("writable");
    for (more, told) in [
        (
            r#", "emitter": {"type": "area"}"#,
            "an `sdfgrid` that shines at rock: it has no points to draw light from; use a mesh",
        ),
        (
            r#", "interior": {"type": "homogeneous"}"#,
            "an `sdfgrid` may end at the sides of its grid: it cannot bound a medium at rock",
        ),
        (r#", "normals": "flat""#, "`smooth`"),
        (r#", "grid": 3"#, "Mitsuba's parameter `grid` of `sdfgrid`"),
    ] {
        let message = refused(more);
        assert!(message.contains(told), "{message}");
    }
    let mut flat = rock.clone();
    flat.size = [9 * 12 * 7, 1, 1];
    vol::write(&file, &flat).expect("writable");
    assert!(
        refused("").contains("two points or more along each axis"),
        "{}",
        refused("")
    );
    rock.data.iter_mut().for_each(|value| *value = value.abs() + 0.1);
    vol::write(&file, &rock).expect("writable");
    let scene = parse(folder.path(), "").expect("its values are not read yet");
    let message = Resident::new(&scene).expect_err("no level").to_string();
    assert!(message.contains("there is no surface"), "{message}");
}
