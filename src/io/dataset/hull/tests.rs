use std::path::Path;

use super::*;
use crate::io::Image;
use crate::io::dataset::Distortion;
use glam::{Affine3A, Mat3A};

/// A camera at the origin that looks along +Z, x to the right and y downwards, with a square image of `side` pixels.
fn camera(side: u32, focal: f32) -> View {
    View {
        name: String::new(),
        image: Default::default(),
        to_world: Affine3A::from_mat3(glam::Mat3::from_diagonal(Vec3::new(-1.0, -1.0, 1.0))),
        width: side,
        height: side,
        focal: [focal; 2],
        center: [side as f32 / 2.0; 2],
        distortion: Distortion::None,
    }
}

/// Writes an image with this alpha at the pixels for which `opaque` is true, and alpha zero elsewhere.
fn write(view: &View, alpha: f32, opaque: impl Fn(usize, usize) -> bool) {
    let (width, height) = (view.width as usize, view.height as usize);
    let pixel = |k: usize| [0.5, 0.5, 0.5, if opaque(k % width, k / width) { alpha } else { 0.0 }];
    let data = (0..width * height).flat_map(pixel).collect();
    let image = Image {
        width,
        height,
        channels: 4,
        data,
    };
    image::write_png(&view.image, &image).expect("writable");
}

fn in_folder(folder: &Path, mut view: View, name: &str) -> View {
    view.image = folder.join(name);
    view
}

fn read(view: &View) -> Silhouette<'_> {
    Silhouette::read(view).expect("readable").expect("it has alpha")
}

/// At depth 10 a ball of radius 1 reaches 100 · 1/9 · 1.2 + 1 = 14.33 pixels to each side of the middle, 50: it covers
/// the pixels 35 to 64 of rows and columns.
#[test]
fn a_ball_covers_the_pixels_that_it_should() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let view = in_folder(folder.path(), camera(100, 100.0), "a.png");
    let center = DVec3::new(0.0, 0.0, 10.0);
    for (x, y, expected) in [
        (35, 50, true),
        (34, 50, false),
        (64, 50, true),
        (65, 50, false),
        (50, 35, true),
        (50, 34, false),
        (50, 64, true),
        (50, 65, false),
        (35, 35, true),
        (64, 64, true),
    ] {
        write(&view, 1.0, |i, j| (i, j) == (x, y));
        assert_eq!(read(&view).shows(center, 1.0), Some(expected), "({x}, {y})");
    }
    // The reach of a ball follows the larger of the two focal lengths.
    for focal in [[100.0, 50.0], [50.0, 100.0]] {
        let view = View { focal, ..view.clone() };
        write(&view, 1.0, |i, j| (i, j) == (35, 64));
        assert_eq!(read(&view).shows(center, 1.0), Some(true));
    }
}

/// At depth 3 with a focal length of 10 a ball of radius 1 reaches 10 · 1/2 · 1.2 + 1 = 7 pixels.
#[test]
fn what_reaches_out_of_an_image_is_not_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut view = in_folder(folder.path(), camera(40, 10.0), "a.png");
    for empty in [false, true] {
        for (center, inside) in [
            ([7.0, 20.0], true),
            ([6.9, 20.0], false),
            ([20.0, 7.0], true),
            ([20.0, 6.9], false),
            ([33.0, 20.0], true),
            ([33.1, 20.0], false),
            ([20.0, 33.0], true),
            ([20.0, 33.1], false),
            ([7.0, 33.0], true),
            ([33.0, 7.0], true),
            ([6.9, 33.1], false),
        ] {
            view.center = center;
            write(&view, 1.0, |_, _| !empty);
            let shown = read(&view).shows(DVec3::new(0.0, 0.0, 3.0), 1.0);
            assert_eq!(shown, inside.then_some(!empty), "{center:?}");
        }
    }
    // A ball nearer than two radii, or behind the camera, is in no silhouette.
    view.center = [20.0; 2];
    write(&view, 1.0, |_, _| true);
    for (depth, expected) in [(2.0, None), (2.001, Some(true)), (1.5, None), (-3.0, None)] {
        let shown = read(&view).shows(DVec3::new(0.0, 0.0, depth), 1.0);
        assert_eq!(shown, expected, "depth {depth}");
    }
}

/// The summed-area table includes every pixel, also the first and the last.
#[test]
fn single_pixels_count_from_the_alpha_on_that_they_should() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut view = in_folder(folder.path(), camera(14, 10.0), "a.png");
    (view.height, view.center) = (15, [7.0, 7.5]);
    // A ball at depth 3 covers all 14 × 15 pixels.
    let all = DVec3::new(0.0, 0.0, 3.0);
    for (x, y) in [(0, 0), (13, 0), (0, 14), (13, 14), (5, 9)] {
        write(&view, 1.0, |i, j| (i, j) == (x, y));
        view.center[1] = if y == 14 { 8.0 } else { 7.0 };
        assert_eq!(read(&view).shows(all, 1.0), Some(true), "({x}, {y})");
        view.center[1] = 7.5;
    }
    // 5/255 is less than 0.02, 6/255 more.
    for (level, expected) in [(5.0, false), (6.0, true)] {
        write(&view, level / 255.0, |_, _| true);
        view.center[1] = 7.0;
        assert_eq!(read(&view).shows(all, 1.0), Some(expected), "alpha {level}/255");
    }
}

/// A third of the silhouettes must contain a cell, and none may exclude it.
#[test]
fn a_place_needs_a_third_of_the_silhouettes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let full = in_folder(folder.path(), camera(40, 10.0), "full.png");
    let void = in_folder(folder.path(), camera(40, 10.0), "void.png");
    let mut beside = full.clone();
    beside.center = [-50.0, 20.0];
    write(&full, 1.0, |_, _| true);
    write(&void, 1.0, |_, _| false);
    let at = DVec3::new(0.0, 0.0, 3.0);
    for (shown, out, expected) in [
        (1, 0, true),
        (1, 2, true),
        (1, 3, false),
        (2, 2, true),
        (2, 4, true),
        (2, 5, false),
        (3, 6, true),
        (3, 7, false),
        (0, 1, false),
    ] {
        let mut all: Vec<Silhouette<'_>> = (0..shown).map(|_| read(&full)).collect();
        all.extend((0..out).map(|_| read(&beside)));
        assert_eq!(survives(&all, at, 1.0), expected, "{shown} of {}", shown + out);
        all.push(read(&void));
        assert!(!survives(&all, at, 1.0));
    }
}

/// Cameras so far away that rays are parallel, 64 pixels per unit: a cell of [-1, 1]³ is two pixels wide, cell i
/// around pixel 17 + 2i. The ball around it reaches 64 √3/64 · 1.2 + 1 = 3.08 pixels: it covers the pixels 13 + 2i to
/// 20 + 2i.
#[test]
fn boxes_are_carved_to_the_cell() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    const FAR: f32 = 10_000.0;
    let views: Vec<View> = (0..3)
        .map(|axis| {
            let [forward, right, down] = [0, 1, 2].map(|k| Vec3::AXES[(axis + k) % 3]);
            let mut view = in_folder(folder.path(), camera(160, 64.0 * FAR), &format!("{axis}.png"));
            view.to_world = Affine3A {
                matrix3: Mat3A::from_cols((-right).into(), (-down).into(), forward.into()),
                translation: (-FAR * forward).into(),
            };
            view
        })
        .collect();
    let bounds = Bounds {
        lower: Vec3::NEG_ONE,
        upper: Vec3::ONE,
        reason: "given".into(),
    };
    let carved = |opaque: [[usize; 2]; 3]| {
        for (axis, view) in views.iter().enumerate() {
            let [x, y] = [opaque[(axis + 1) % 3], opaque[(axis + 2) % 3]];
            write(view, 1.0, |i, j| (x[0]..x[1]).contains(&i) && (y[0]..y[1]).contains(&j));
        }
        carve(&views, &bounds).expect("readable")
    };
    for opaque in [
        [[60, 90], [40, 100], [81, 82]],
        [[61, 91], [33, 34], [20, 120]],
        [[0, 160], [0, 160], [0, 160]],
        [[0, 24], [100, 160], [14, 150]],
        // The first cell alone, and the last one.
        [[14, 15], [14, 15], [14, 15]],
        [[145, 146], [145, 146], [145, 146]],
        [[60, 90], [145, 146], [60, 90]],
        [[145, 146], [60, 90], [14, 15]],
    ] {
        let found = carved(opaque).expect("something is left");
        for (axis, [begin, end]) in opaque.into_iter().enumerate() {
            let kept: Vec<i32> = (0..64)
                .filter(|i| 13 + 2 * i < end as i32 && 21 + 2 * i > begin as i32)
                .collect();
            let (first, last) = (kept[0], kept[kept.len() - 1]);
            // The margin of one cell is clipped to the box.
            let low = -1.0 + (first - 1).max(0) as f32 / 32.0;
            let high = -1.0 + (last + 2).min(64) as f32 / 32.0;
            assert_eq!(
                (found.lower[axis], found.upper[axis]),
                (low, high),
                "axis {axis} of {opaque:?}"
            );
        }
        assert_eq!(found.reason, "given, carved to the silhouettes in 3 of the images");
    }
    assert_eq!(carved([[0, 0], [0, 160], [0, 160]]), None, "nothing is left");
}

/// At most forty views are used: every second or third, from the first on; views without image do not count.
#[test]
fn at_most_forty_silhouettes_are_looked_at() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bounds = Bounds {
        lower: Vec3::new(-0.1, -0.1, 2.9),
        upper: Vec3::new(0.1, 0.1, 3.1),
        reason: "given".into(),
    };
    let all = in_folder(folder.path(), camera(16, 10.0), "a.png");
    write(&all, 1.0, |_, _| true);
    for (views, looked_at) in [(1, 1), (40, 40), (41, 21), (80, 40), (81, 27)] {
        let found = carve(&vec![all.clone(); views], &bounds)
            .expect("readable")
            .expect("all is left");
        assert_eq!(
            found.reason,
            format!("given, carved to the silhouettes in {looked_at} of the images")
        );
    }
    let mut some = vec![all.clone(); 5];
    some[2].image = folder.path().join("nowhere.png");
    let found = carve(&some, &bounds).expect("readable").expect("all is left");
    assert!(found.reason.contains("in 4 of"), "{}", found.reason);
    assert_eq!(carve(&some[2..3], &bounds).expect("readable"), None);
    assert_eq!(carve(&[], &bounds).expect("nothing to read"), None);
}

#[test]
fn an_image_of_another_size_than_its_camera_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let view = in_folder(folder.path(), camera(16, 10.0), "a.png");
    write(&view, 1.0, |_, _| true);
    let other = View {
        width: 17,
        ..view.clone()
    };
    assert!(Silhouette::read(&view).is_ok() && Silhouette::read(&other).is_err());
}
