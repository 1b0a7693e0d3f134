//! Fits a scene box to a data set.

use glam::{DMat3, DVec3, Vec3};

use super::{Dataset, IoError, Result, View, hull};

/// An axis-aligned box in the data set's world, and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    pub lower: Vec3,
    pub upper: Vec3,
    /// How the box was found, for the user.
    pub reason: String,
}

/// What the photographs show, which decides the size of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An object masked by alpha: the box encloses its visual hull.
    CutOut,
    /// An object before a plain background: the box is the common view of all cameras around their focus.
    Object,
    /// A place: the box extends beyond the cameras.
    Place,
}

/// Widest box. Cameras see as far as the default of `far_clip`, 10⁴, and the near clip distance that a place's cameras get
/// grows with the box.
const MAX_WIDTH: f32 = 3e5;
/// Half size of the box of a place, in distances of the cameras from their focus.
const PLACE_REACH: f64 = 1.25;
/// instant-ngp scales a data set by this before it applies `aabb_scale`.
const NGP_SCALE: f64 = 0.33;
/// On each axis, COLMAP points below this quantile and above its mirror are discarded as outliers.
const POINT_QUANTILE: f64 = 0.02;
/// With fewer points the quantiles are unreliable.
const MIN_POINTS: usize = 32;

impl Bounds {
    /// The middle of the box.
    pub fn center(&self) -> Vec3 {
        (self.lower + self.upper) / 2.0
    }

    /// Half the lengths of the box's edges.
    pub fn half(&self) -> Vec3 {
        (self.upper - self.lower) / 2.0
    }

    /// The smallest enclosing box whose edges are at least `ratio` of the longest.
    #[must_use]
    pub fn at_least(self, ratio: f32) -> Bounds {
        let half = self.half().max(Vec3::splat(self.half().max_element() * ratio));
        Bounds {
            lower: self.center() - half,
            upper: self.center() + half,
            reason: self.reason,
        }
    }

    fn around(center: DVec3, half: DVec3, reason: String) -> Bounds {
        Bounds {
            lower: (center - half).as_vec3(),
            upper: (center + half).as_vec3(),
            reason,
        }
    }
}

/// Fits the box: to COLMAP's points if there are enough, else to the cameras; for an object masked by alpha it is then
/// shrunk to the visual hull.
///
/// # Errors
/// If the cameras or points are so far apart that no camera of a scene could see across the box, or the images of a cut-out
/// object cannot be read.
pub fn fit(dataset: &Dataset, content: Content) -> Result<Bounds> {
    let bounds = match dataset.points.len() {
        MIN_POINTS.. => from_points(&dataset.points),
        _ => from_cameras(dataset, content),
    };
    let width = 2.0 * bounds.half().max_element();
    if width.is_nan() || width > MAX_WIDTH {
        let message = format!(
            "the box that its cameras or points give would be {width:e} wide, expected {MAX_WIDTH:e} at most; give their \
             positions in a larger unit"
        );
        return Err(IoError::new(&dataset.file, message));
    }
    match content {
        Content::CutOut => Ok(hull::carve(&dataset.views, &bounds)?.unwrap_or(bounds)),
        Content::Object | Content::Place => Ok(bounds),
    }
}

/// The range between the points' outlier quantiles on each axis, a tenth larger; no edge is shorter than half the
/// longest.
fn from_points(points: &[[f32; 3]]) -> Bounds {
    let (mut lower, mut upper) = (DVec3::ZERO, DVec3::ZERO);
    for axis in 0..3 {
        let mut values: Vec<f32> = points.iter().map(|p| p[axis]).collect();
        values.sort_by(f32::total_cmp);
        let at = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
        lower[axis] = at(POINT_QUANTILE).into();
        upper[axis] = at(1.0 - POINT_QUANTILE).into();
    }
    let half = ((upper - lower) / 2.0).max(DVec3::splat(1e-6)) * 1.1;
    let kept = 100.0 - 200.0 * POINT_QUANTILE;
    let reason = format!(
        "the middle {kept:.0} % of {} COLMAP points on each axis, with a margin of a tenth",
        points.len()
    );
    Bounds::around((lower + upper) / 2.0, half, reason).at_least(0.5)
}

fn from_cameras(dataset: &Dataset, content: Content) -> Bounds {
    let views = &dataset.views;
    let Some(focus) = focus(views) else {
        return ahead(views);
    };
    let distance = median(views.iter().map(|view| view.position().distance(focus)));
    if content != Content::Place {
        let half = distance * median(views.iter().map(half_extent));
        let reason = format!("what the cameras see around the point where their axes meet, {distance:.3} away");
        return Bounds::around(focus, DVec3::splat(half), reason);
    }
    if let Some(scale) = dataset.aabb_scale.map(f64::from).filter(|s| *s > 0.0) {
        let half = (scale / 2.0 / NGP_SCALE).clamp(0.5 * distance, 2.0 * distance);
        let reason = format!("the data set's aabb_scale of {scale}");
        return Bounds::around(DVec3::ZERO, DVec3::splat(half), reason);
    }
    let reason =
        format!("{PLACE_REACH} times the cameras' distance ({distance:.3}) from the point where their axes meet");
    Bounds::around(focus, DVec3::splat(PLACE_REACH * distance), reason)
}

/// The point closest to all optical axes; None if they are nearly parallel, or if it is behind a quarter of the
/// cameras.
///
/// It minimises Σ |(I − f fᵀ)(c − p)|² over cameras at p that look along f.
fn focus(views: &[View]) -> Option<DVec3> {
    let (mut a, mut b) = (DMat3::ZERO, DVec3::ZERO);
    for view in views {
        let f = view.forward();
        let across = DMat3::IDENTITY - DMat3::from_cols(f * f.x, f * f.y, f * f.z);
        a += across;
        b += across * view.position();
    }
    let n = views.len() as f64;
    // Determinant of the normalised matrix, whose eigenvalues lie in [0, 1] and sum to 2: near zero for parallel axes.
    if (a * (1.0 / n)).determinant() < 1e-3 {
        return None;
    }
    let focus = a.inverse() * b;
    let behind = views
        .iter()
        .filter(|view| (focus - view.position()).dot(view.forward()) <= 0.0)
        .count();
    (behind * 4 < views.len()).then_some(focus)
}

/// A box in front of cameras whose axes do not meet.
fn ahead(views: &[View]) -> Bounds {
    let n = views.len() as f64;
    let middle = views.iter().map(View::position).sum::<DVec3>() / n;
    let forward = views.iter().map(View::forward).sum::<DVec3>() / n;
    let spread = views
        .iter()
        .map(|view| view.position().distance(middle))
        .fold(0.0, f64::max);
    if forward.length() < 0.5 {
        let half = if spread > 0.0 { 4.0 * spread } else { 1.0 };
        return Bounds::around(
            middle,
            DVec3::splat(half),
            "a guess: the cameras look outwards, and the box surrounds them".into(),
        );
    }
    let distance = match (spread > 0.0, middle.length() > 1e-3) {
        (true, _) => 4.0 * spread,
        (false, true) => middle.length(),
        (false, false) => 1.0,
    };
    let half = distance * median(views.iter().map(half_extent)).min(0.8);
    let center = middle + forward.normalize() * distance;
    Bounds::around(
        center,
        DVec3::splat(half),
        "a guess: the cameras' axes do not meet, and the box lies before them".into(),
    )
}

/// Half of the longer side of the image plane at distance 1.
fn half_extent(view: &View) -> f64 {
    let x = f64::from(view.width) / f64::from(view.focal[0]);
    let y = f64::from(view.height) / f64::from(view.focal[1]);
    x.max(y) / 2.0
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::dataset::Distortion;
    use glam::{Affine3A, Mat3A, Vec3A};

    fn camera(position: Vec3, target: Vec3) -> View {
        let forward = (target - position).normalize();
        let left = Vec3::Y.cross(forward).normalize();
        let axes = Mat3A::from_cols(left.into(), forward.cross(left).into(), forward.into());
        View {
            name: String::new(),
            image: Default::default(),
            to_world: Affine3A {
                matrix3: axes,
                translation: Vec3A::from(position),
            },
            width: 100,
            height: 50,
            focal: [200.0; 2],
            center: [50.0, 25.0],
            distortion: Distortion::None,
        }
    }

    fn ring(target: Vec3) -> Dataset {
        let position = |i: usize| {
            let angle = i as f32 * 0.7;
            target + Vec3::new(4.0 * angle.cos(), 3.0, 4.0 * angle.sin())
        };
        let views = (0..9).map(|i| camera(position(i), target)).collect();
        Dataset {
            views,
            points: vec![],
            aabb_scale: None,
            notes: vec![],
            file: "set".into(),
        }
    }

    #[test]
    fn object_box_is_what_a_ring_of_cameras_sees() {
        let target = Vec3::new(1.0, -2.0, 0.5);
        let bounds = fit(&ring(target), Content::Object).expect("no image is read");
        assert!(bounds.center().distance(target) < 1e-4, "{bounds:?}");
        assert!((bounds.half() - Vec3::splat(5.0 * 0.25)).length() < 1e-4, "{bounds:?}");
    }

    #[test]
    fn place_reaches_past_the_cameras() {
        let bounds = fit(&ring(Vec3::ZERO), Content::Place).expect("no image is read");
        assert!((bounds.half().x - 6.25).abs() < 1e-4, "{bounds:?}");
        let scaled = Dataset {
            aabb_scale: Some(4.0),
            ..ring(Vec3::ZERO)
        };
        let bounds = fit(&scaled, Content::Place).expect("no image is read");
        assert!((bounds.half().x - 2.0 / 0.33).abs() < 1e-4, "{bounds:?}");
    }

    #[test]
    fn parallel_cameras_get_a_box_before_them() {
        let views = (0..4)
            .map(|i| camera(Vec3::X * i as f32, Vec3::new(i as f32, 0.0, 1.0)))
            .collect();
        let dataset = Dataset {
            views,
            points: vec![],
            aabb_scale: None,
            notes: vec![],
            file: "set".into(),
        };
        let bounds = fit(&dataset, Content::Place).expect("no image is read");
        assert!(
            bounds.lower.z > 0.0 && (bounds.center().x - 1.5).abs() < 1e-4,
            "{bounds:?}"
        );
    }

    #[test]
    fn far_points_do_not_stretch_the_box() {
        let mut points: Vec<[f32; 3]> = (0..100)
            .map(|i| [i as f32 / 100.0, (i % 10) as f32 / 10.0, 0.5])
            .collect();
        points.push([1e6, -1e6, 1e6]);
        let bounds = from_points(&points);
        assert!(
            bounds.upper.max_element() < 1.3 && bounds.lower.min_element() > -0.3,
            "{bounds:?}"
        );
        assert!(
            bounds.half().min_element() >= 0.49 * bounds.half().max_element(),
            "{bounds:?}"
        );
    }

    /// Four cameras at distance 10 with axes at ±θ have a common focus; the determinant of the mean of I − f fᵀ is
    /// sin² θ cos² θ, which equals the limit of a thousandth at θ = 1.813 degrees.
    #[test]
    fn axes_meet_from_an_angle_on() {
        for (degrees, meets) in [(1.80f32, false), (1.83, true), (10.0, true), (1.3, false)] {
            let (sine, cosine) = degrees.to_radians().sin_cos();
            let target = Vec3::new(5.0, 6.0, 7.0);
            let at = |i: usize| target + 10.0 * Vec3::new(if i.is_multiple_of(2) { sine } else { -sine }, 0.0, -cosine);
            let views: Vec<View> = (0..4).map(|i| camera(at(i), target)).collect();
            let found = focus(&views);
            assert_eq!(found.is_some(), meets, "{degrees}");
            assert!(found.is_none_or(|p| p.distance(target.as_dvec3()) < 1e-2), "{found:?}");
        }
    }

    /// A point behind a quarter of the cameras is not accepted as focus.
    #[test]
    fn fewer_than_a_quarter_may_look_away() {
        let mut views = ring(Vec3::ZERO).views;
        views.truncate(8);
        for (turned, meets) in [(0, true), (1, true), (2, false)] {
            for view in &mut views[..turned] {
                *view = camera(view.position().as_vec3(), 2.0 * view.position().as_vec3());
            }
            assert_eq!(focus(&views).is_some(), meets, "{turned} of 8");
        }
    }

    /// Cameras at one position that look in all directions get a box of edge 2 around it.
    #[test]
    fn cameras_in_one_place_get_a_box_around_it() {
        let at = Vec3::new(1.0, 2.0, 3.0);
        let views: Vec<View> = [Vec3::X, Vec3::NEG_X, Vec3::Z, Vec3::NEG_Z]
            .into_iter()
            .map(|d| camera(at, at + d))
            .collect();
        let found = ahead(&views);
        assert_eq!((found.center(), found.half()), (at, Vec3::ONE));
        assert!(found.reason.contains("outwards"));
    }

    #[test]
    fn reasons_name_their_figures() {
        let reason = |dataset: &Dataset, content| fit(dataset, content).expect("no image is read").reason;
        let mut set = ring(Vec3::ZERO);
        assert_eq!(
            reason(&set, Content::Object),
            "what the cameras see around the point where their axes meet, 5.000 away"
        );
        assert_eq!(
            reason(&set, Content::Place),
            "1.25 times the cameras' distance (5.000) from the point where their axes meet"
        );
        set.aabb_scale = Some(4.0);
        assert_eq!(reason(&set, Content::Place), "the data set's aabb_scale of 4");
        set.points = vec![[1.0; 3]; 32];
        assert_eq!(
            reason(&set, Content::Place),
            "the middle 96 % of 32 COLMAP points on each axis, with a margin of a tenth"
        );
        // With all cameras at one position the box is not empty.
        assert!((fit(&set, Content::Place).expect("a box").half().x - 1.1e-6).abs() < 3e-7);
    }

    #[test]
    fn the_median_is_the_middle_of_the_sorted() {
        let of = |values: &[f64]| median(values.iter().copied());
        assert_eq!(
            [of(&[5.0, 1.0, 3.0]), of(&[4.0, 1.0, 3.0, 2.0]), of(&[7.0]), of(&[])],
            [3.0, 3.0, 7.0, 1.0]
        );
    }

    /// Two cameras whose axes diverge: the mean of their axes has the length of the cosine, and below ½ they count as
    /// looking outwards. Else the box lies four times their spread ahead; 100 pixels at a focal length of 200 make its
    /// half edge a quarter of that.
    #[test]
    fn cameras_that_spread_too_far_look_nowhere() {
        for (cosine, before) in [(0.6f32, true), (0.51, true), (0.49, false), (0.1, false)] {
            let sine = (1.0 - cosine * cosine).sqrt();
            let at = |side: f32| Vec3::new(5.0 + 1.5 * side, 1.0, -2.0);
            let views = [-1.0, 1.0].map(|side| camera(at(side), at(side) + Vec3::new(side * sine, 0.0, cosine)));
            let found = ahead(&views);
            let (center, half, reason) = match before {
                true => (
                    Vec3::new(5.0, 1.0, -2.0 + 6.0),
                    1.5,
                    "a guess: the cameras' axes do not meet, and the box lies before them",
                ),
                false => (
                    Vec3::new(5.0, 1.0, -2.0),
                    6.0,
                    "a guess: the cameras look outwards, and the box surrounds them",
                ),
            };
            assert!(found.center().distance(center) < 1e-5, "{cosine}: {found:?}");
            assert!(found.half().distance(Vec3::splat(half)) < 1e-5, "{cosine}: {found:?}");
            assert_eq!(found.reason, reason);
        }
    }

    /// Without a spread the box lies as far ahead as the origin, or 1 if the camera is within a thousandth of the
    /// origin; its half edge is at most eight tenths of that distance.
    #[test]
    fn a_single_camera_gets_a_box_by_its_distance_from_the_origin() {
        for (z, distance) in [(-2.5f32, 2.5f32), (0.0011, 0.0011), (0.0009, 1.0), (0.0, 1.0)] {
            for (focal, half) in [(200.0, 0.25), (50.0, 0.8), (62.5, 0.8), (100.0, 0.5)] {
                let at = Vec3::new(0.0, 0.0, z);
                let view = View {
                    focal: [focal; 2],
                    ..camera(at, at + Vec3::Z)
                };
                let found = ahead(&[view]);
                let tolerance = 1e-5 * distance.max(0.01);
                assert!(
                    found.center().distance(at + distance * Vec3::Z) < tolerance,
                    "{z}: {found:?}"
                );
                assert!(
                    found.half().distance(Vec3::splat(distance * half)) < tolerance,
                    "{z}: {found:?}"
                );
            }
        }
    }

    /// The half edge of a place's box is `aabb_scale` / 2 / 0.33, clamped to between half and twice the cameras'
    /// distance.
    #[test]
    fn the_scale_of_a_place_is_held_between_half_and_twice_the_distance() {
        for (scale, half) in [(4.0, 2.0 / 0.33), (1.0, 2.5), (16.0, 10.0), (0.0, 6.25), (-4.0, 6.25)] {
            let dataset = Dataset {
                aabb_scale: Some(scale),
                ..ring(Vec3::ZERO)
            };
            let found = fit(&dataset, Content::Place).expect("no image is read");
            assert!(found.half().distance(Vec3::splat(half)) < 1e-4, "{scale}: {found:?}");
        }
    }

    /// 101 points at multiples of 0.01: the quantiles are points 2 and 98, the box is a tenth larger, and no edge is under
    /// half the longest.
    #[test]
    fn the_box_of_points_is_that_of_their_quantiles() {
        let points: Vec<[f32; 3]> = (0..101)
            .map(|i| [0.01 * ((i * 37) % 101) as f32, 2.0, 0.001 * i as f32])
            .collect();
        let found = from_points(&points);
        assert!(found.center().distance(Vec3::new(0.5, 2.0, 0.05)) < 1e-5, "{found:?}");
        let half = 0.48 * 1.1;
        assert!(
            found.half().distance(Vec3::new(half, half / 2.0, half / 2.0)) < 1e-5,
            "{found:?}"
        );
    }

    /// Quantiles are rounded to the nearest point: of 32 points, indices 0.62 and 30.38 become the second and the 31st.
    #[test]
    fn quantiles_are_rounded_to_a_point() {
        let points: Vec<[f32; 3]> = (0..32).map(|i| [((i * 7) % 32) as f32; 3]).collect();
        let found = from_points(&points);
        assert!(found.center().distance(Vec3::splat(15.5)) < 1e-5, "{found:?}");
        assert!(found.half().distance(Vec3::splat(14.5 * 1.1)) < 1e-5, "{found:?}");
    }

    /// The box of a place grows in proportion to the distance, the cameras may be near their focus, and less than a
    /// quarter of nine may look away.
    #[test]
    fn a_focus_scales_with_the_cameras() {
        for (scale, half) in [(2.0, 12.5), (0.02, 0.125)] {
            let mut dataset = ring(Vec3::ZERO);
            for view in &mut dataset.views {
                view.to_world.translation *= scale;
            }
            let found = fit(&dataset, Content::Place).expect("no image is read");
            assert!(
                found.center().length() < 1e-4 && (found.half().x - half).abs() < 1e-4 * half,
                "{found:?}"
            );
        }
        let mut views = ring(Vec3::ZERO).views;
        for (turned, meets) in [(2, true), (3, false)] {
            for view in &mut views[..turned] {
                *view = camera(view.position().as_vec3(), 2.0 * view.position().as_vec3());
            }
            assert_eq!(focus(&views).is_some(), meets, "{turned} of 9");
        }
    }

    /// The boxes of cameras without a focus grow with their spread, however small it is.
    #[test]
    fn a_box_without_a_focus_scales_with_the_spread() {
        for (turn, center, half) in [(1.0, Vec3::ZERO, 0.5), (0.0, 0.5 * Vec3::Z, 0.25)] {
            let views = [-0.125, 0.125].map(|x| {
                let at = Vec3::X * x;
                let wide = camera(at, at + if turn > 0.0 { 4.0 * at } else { Vec3::Z });
                View {
                    focal: [200.0, 50.0],
                    ..wide
                }
            });
            let found = ahead(&views);
            assert!(
                found.center().distance(center) < 1e-6 && (found.half().x - half).abs() < 1e-6,
                "{found:?}"
            );
        }
    }

    /// Half of the larger of width and height, each over its own focal length, for an image of 100 × 50 pixels.
    #[test]
    fn half_extents_are_those_of_the_longer_side() {
        let of = |focal| {
            half_extent(&View {
                focal,
                ..camera(Vec3::ZERO, Vec3::Z)
            })
        };
        assert_eq!(
            [of([200.0, 50.0]), of([200.0, 200.0]), of([400.0, 500.0])],
            [0.5, 0.25, 0.125]
        );
    }
}
