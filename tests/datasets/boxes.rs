//! Boxes that are fitted to the content of a data set, against numbers worked out by hand.

use std::path::Path;

use glam::{Affine3A, Mat3A, Vec3};
use prbopt::io::dataset::bounds::{Bounds, Content, fit};
use prbopt::io::dataset::{Dataset, Distortion, View};
use prbopt::io::{Image, image};

/// A camera at `position` that looks along `forward`, 100 × 50 pixels with a focal length of 200: the longer side covers
/// a quarter of its distance to either side.
fn camera(position: Vec3, forward: Vec3) -> View {
    let forward = forward.normalize();
    let left = Vec3::new(0.1, 1.0, 0.0).cross(forward).normalize();
    View {
        name: String::new(),
        image: Default::default(),
        to_world: Affine3A {
            matrix3: Mat3A::from_cols(left.into(), forward.cross(left).into(), forward.into()),
            translation: position.into(),
        },
        width: 100,
        height: 50,
        focal: [200.0; 2],
        center: [50.0, 25.0],
        distortion: Distortion::None,
    }
}

fn set(views: Vec<View>) -> Dataset {
    Dataset {
        file: "set".into(),
        views,
        points: Vec::new(),
        aabb_scale: None,
        notes: Vec::new(),
    }
}

fn assert_box(bounds: &Bounds, center: [f32; 3], half: [f32; 3]) {
    let (c, h) = (Vec3::from_array(center), Vec3::from_array(half));
    let close = bounds.center().distance(c) < 1e-3 && bounds.half().distance(h) < 1e-3;
    assert!(close, "{:?} ± {:?}, not {c} ± {h}", bounds.center(), bounds.half());
}

/// Cameras on a circle of radius 4, 3 above what they look at: 5 away.
fn ring(target: Vec3) -> Vec<View> {
    let at = |i: usize| Vec3::new(4.0 * (0.7 * i as f32).cos(), 3.0, 4.0 * (0.7 * i as f32).sin());
    (0..9).map(|i| camera(target + at(i), -at(i))).collect()
}

/// Coordinates 0 to 100 on x: the 2nd and the 98th percentile bound the middle 96 %, a tenth is added. The other edges are at
/// least half as long.
#[test]
fn points_give_their_middle_quantiles() {
    let mut dataset = set(ring(Vec3::ZERO));
    dataset.points = (0..101).map(|i| [i as f32, 20.0 - 0.9 * i as f32, 7.0]).collect();
    dataset.points.reverse();
    for content in [Content::Object, Content::Place] {
        let bounds = fit(&dataset, content).expect("no image is read");
        assert_box(&bounds, [50.0, -25.0, 7.0], [52.8, 47.52, 26.4]);
    }
    dataset.points.truncate(31);
    let bounds = fit(&dataset, Content::Object).expect("no image is read");
    assert_box(&bounds, [0.0; 3], [1.25; 3]);
    dataset.points.push([0.0; 3]);
    assert!(
        fit(&dataset, Content::Object).expect("no image is read").half().x > 10.0,
        "32 are enough"
    );
}

#[test]
fn cameras_that_meet_give_a_box_around_where_they_do() {
    let target = Vec3::new(1.0, -2.0, 0.5);
    let mut dataset = set(ring(target));
    assert_box(
        &fit(&dataset, Content::Object).expect("a box"),
        target.to_array(),
        [1.25; 3],
    );
    assert_box(
        &fit(&dataset, Content::Place).expect("a box"),
        target.to_array(),
        [6.25; 3],
    );
    // instant-ngp's cube is around the origin; its half edge is half to twice the distance of the cameras (here 5).
    for (scale, half) in [(4.0, 2.0 / 0.33), (1.0, 2.5), (16.0, 10.0)] {
        dataset.aabb_scale = Some(scale);
        assert_box(&fit(&dataset, Content::Place).expect("a box"), [0.0; 3], [half; 3]);
    }
    dataset.aabb_scale = Some(0.0);
    assert_box(
        &fit(&dataset, Content::Place).expect("a box"),
        target.to_array(),
        [6.25; 3],
    );
    // The taller side counts where it is longer.
    for view in &mut dataset.views {
        (view.width, view.height, view.focal) = (50, 100, [200.0, 100.0]);
    }
    assert_box(
        &fit(&dataset, Content::Object).expect("a box"),
        target.to_array(),
        [2.5; 3],
    );
}

/// Axes that do not meet: side by side, all in one place, or outwards.
#[test]
fn cameras_that_do_not_meet_give_a_guess() {
    let ahead = |positions: &[[f32; 3]]| {
        let views = positions
            .iter()
            .map(|p| camera(Vec3::from_array(*p), Vec3::Z))
            .collect();
        fit(&set(views), Content::Place).expect("a box")
    };
    // In a row from 0 to 3: the spread is 1.5; the middle is four spreads ahead, the half edge a quarter of that.
    let row = ahead(&[[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]]);
    assert_box(&row, [1.5, 0.0, 6.0], [1.5; 3]);
    assert_box(&ahead(&[[0.0; 3]]), [0.0, 0.0, 1.0], [0.25; 3]);
    assert_box(&ahead(&[[0.0, 0.0, -8.0]]), [0.0; 3], [2.0; 3]);
    let outwards: Vec<View> = ring(Vec3::ZERO)
        .iter()
        .map(|view| {
            let p = view.position().as_vec3() * Vec3::new(1.0, 0.0, 1.0);
            camera(p, p)
        })
        .collect();
    let middle = outwards.iter().map(|v| v.position()).sum::<glam::DVec3>() / 9.0;
    let spread = outwards
        .iter()
        .map(|v| v.position().distance(middle))
        .fold(0.0, f64::max) as f32;
    let bounds = fit(&set(outwards), Content::Place).expect("a box");
    assert_box(&bounds, middle.as_vec3().to_array(), [4.0 * spread; 3]);
    // A very wide lens does not make the box wider than 0.8 of its distance.
    let mut wide = set(vec![camera(Vec3::new(0.0, 0.0, -8.0), Vec3::Z)]);
    wide.views[0].focal = [10.0; 2];
    assert_box(&fit(&wide, Content::Place).expect("a box"), [0.0; 3], [6.4; 3]);
}

#[test]
fn a_box_can_be_made_less_flat() {
    let flat = Bounds {
        lower: Vec3::new(-4.0, 1.0, 0.0),
        upper: Vec3::new(4.0, 2.0, 6.0),
        reason: "given".into(),
    };
    assert_box(&flat.at_least(0.5), [0.0, 1.5, 3.0], [4.0, 2.0, 3.0]);
}

/// Two balls of radius 0.4 and 0.2, drawn as the cameras show them: carving leaves the box around both, to seven cells, 64ths of
/// the box that is carved. Cells that few images show are removed, too.
#[test]
fn silhouettes_carve_the_box() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let balls = [(Vec3::new(0.2, 0.1, -0.1), 0.4f32), (Vec3::new(-0.5, -0.2, 0.3), 0.2)];
    let mut views = ring(Vec3::ZERO);
    views.extend(ring(Vec3::ZERO).iter().map(|v| {
        let p = v.position().as_vec3() * Vec3::new(1.0, -0.3, 1.0);
        camera(p, -p)
    }));
    for (i, view) in views.iter_mut().enumerate() {
        // The whole box that is carved lies within every image.
        (view.width, view.height, view.center) = (160, 160, [80.0, 80.0]);
        view.image = folder.path().join(format!("{i}.png"));
        let ray = |x: usize, y: usize| {
            let local = Vec3::new(80.0 - x as f32 - 0.5, 80.0 - y as f32 - 0.5, 200.0).normalize();
            view.to_world.transform_vector3(local)
        };
        let from = view.position().as_vec3();
        let seen = |x: usize, y: usize| {
            balls.iter().any(|(at, radius)| {
                let d = ray(x, y);
                let to = *at - from;
                (to - d * to.dot(d)).length() < *radius
            })
        };
        let data = (0..160 * 160)
            .flat_map(|k| [0.5, 0.5, 0.5, if seen(k % 160, k / 160) { 1.0 } else { 0.0 }])
            .collect();
        let image = Image {
            width: 160,
            height: 160,
            channels: 4,
            data,
        };
        image::write_png(&view.image, &image).expect("writable");
    }
    let dataset = set(views);
    let whole = fit(&dataset, Content::Object).expect("a box");
    let carved = fit(&dataset, Content::CutOut).expect("a box");
    let cell = (whole.upper.x - whole.lower.x) / 64.0;
    let low = balls.map(|(at, r)| at - r).into_iter().reduce(Vec3::min).expect("two");
    let high = balls.map(|(at, r)| at + r).into_iter().reduce(Vec3::max).expect("two");
    for a in 0..3 {
        let (below, above) = (low[a] - carved.lower[a], carved.upper[a] - high[a]);
        for margin in [below, above] {
            assert!(
                (0.0..7.0 * cell).contains(&margin),
                "axis {a}: {margin} in cells of {cell}: {carved:?}"
            );
        }
    }
    assert!(carved.reason.contains("18 of the images"), "{}", carved.reason);
    // Without alpha there is nothing to carve by.
    for view in &dataset.views {
        let image = Image {
            width: 160,
            height: 160,
            channels: 3,
            data: vec![0.5; 3 * 160 * 160],
        };
        image::write_png(&view.image, &image).expect("writable");
    }
    assert_eq!(fit(&dataset, Content::CutOut).expect("a box"), whole);
    std::fs::remove_file(Path::new(&dataset.views[0].image)).expect("removable");
    assert_eq!(fit(&dataset, Content::CutOut).expect("a box"), whole);
}
