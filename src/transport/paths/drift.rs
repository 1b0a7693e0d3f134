//! How the transmittance of a straight way through media changes as the ends of the way move (docs/method.md, section 21,
//! (52b)). The media and their boundaries stand still.

use super::tracking::extinction;
use crate::each::EachEntry;
use crate::resident::layout::MediumRecord;
use crate::transport::lookup::volume::{volume_eval, volume_slopes};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, along, dot};
use crate::transport::scene::bsdf::local::lift;
use crate::transport::scene::majorant::clip;
use crate::transport::scene::motion::{minus, plus, scaled};
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::three_point::Shifts;

/// The derivatives of the logarithm of a way's transmittance by moving its points across the way, summed over what has been
/// passed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drift<N> {
    /// For each channel the sum of all derivatives, and the sum of each times its distance from the start.
    all: [[N; 3]; 3],
    far: [[N; 3]; 3],
    /// The derivative by moving the way's end ahead: minus the extinction there.
    ahead: Rgb<N>,
    /// The distance from the start to the last boundary.
    passed: f32,
    /// The normal of that boundary; None before the first.
    entered: Option<[f32; 3]>,
}

impl<N: Number> Drift<N> {
    /// Nothing passed yet.
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            all: [[N::lift(0.0); 3]; 3],
            far: [[N::lift(0.0); 3]; 3],
            ahead: Rgb::zero(),
            passed: 0.0,
            entered: None,
        }
    }

    /// Passes through `medium` from `origin`, the last boundary or the start, over the distance `far`: up to a boundary of the
    /// normal `exit`, or to the way's end in the medium if there is none. Draws one number.
    #[inline(never)]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are what a way through a medium consists of"
    )]
    pub(super) fn cross<F: Fields<N>>(
        &mut self,
        scene: &SceneView,
        fields: &F,
        medium: &MediumRecord,
        origin: [f32; 3],
        direction: [f32; 3],
        far: f32,
        exit: Option<[f32; 3]>,
        sampler: &mut Sampler,
    ) {
        let u = sampler.draw();
        let part = clip(medium, origin, direction, 0.0, far);
        let Some((start, end)) = part.filter(|(_, end)| end.is_finite()) else {
            return;
        };
        let at = |t: f32| along(origin, direction, t);
        // Inside: the slope of the extinction at one point, times the length.
        let volume = &scene.volumes[medium.sigma_t as usize];
        let t = start + (end - start) * u;
        if let Some(slopes) = volume_slopes(volume, at(t)) {
            let values = fields.integrand(volume.slot);
            let slopes = slopes.each(|stencil| volume_eval(volume, values, &stencil));
            let weight = N::lift(-(end - start) * medium.scale);
            let of = |c: usize| [slopes[0][c], slopes[1][c], slopes[2][c]].each(|slope| slope * weight);
            self.add(t, direction, [of(0), of(1), of(2)]);
        }
        // Both ends: where the way is moved across, it meets a boundary earlier or later.
        let enters = if start > 0.0 {
            Some(face(medium, at(start)))
        } else {
            self.entered
        };
        let leaves = if end < far { Some(face(medium, at(end))) } else { exit };
        for (t, normal, sign) in [(start, enters, -1.0), (end, leaves, 1.0)] {
            let Some(normal) = normal else { continue };
            let cosine = dot(normal, direction);
            if cosine != 0.0 {
                let sigma = extinction(scene, fields, medium, at(t)).integrand;
                let over = normal.each(|x| sign * x / cosine);
                self.add(t, direction, [0, 1, 2].each(|c| scaled(lift(over), sigma[c])));
            }
        }
        if leaves.is_none() {
            self.ahead = -extinction(scene, fields, medium, at(end)).integrand;
        }
    }

    /// Adds the derivatives by moving the point at a distance from the last boundary, of which the part across the way counts.
    #[inline]
    fn add(&mut self, distance: f32, direction: [f32; 3], by_point: [[N; 3]; 3]) {
        let way = lift(direction);
        let distance = N::lift(self.passed + distance);
        for c in 0..3 {
            let [x, y, z] = by_point[c];
            let ahead = x * way[0] + y * way[1] + z * way[2];
            let across = minus(by_point[c], scaled(way, ahead));
            self.all[c] = plus(self.all[c], across);
            self.far[c] = plus(self.far[c], scaled(across, distance));
        }
    }

    /// Passes a boundary of this normal, after so much of the way from the last.
    #[inline]
    pub(super) fn pass(&mut self, distance: f32, normal: [f32; 3]) {
        self.passed += distance;
        self.entered = Some(normal);
    }

    /// The derivatives by both ends of a way of this direction and length; if the direction is held, its length is infinite.
    #[inline]
    pub(super) fn shifts(&self, direction: [f32; 3], length: f32) -> Shifts<N> {
        let nearer = N::lift(1.0 / length);
        Shifts([0, 1, 2].each(|c: usize| {
            let far = scaled(self.far[c], nearer);
            let ahead = scaled(lift(direction), self.ahead[c]);
            [minus(self.all[c], far), plus(far, ahead)]
        }))
    }
}

/// The normal of the face of a medium's box that `p` lies on.
#[inline]
fn face(medium: &MediumRecord, p: [f32; 3]) -> [f32; 3] {
    let depth = |a: usize| (p[a] - medium.low[a]).abs().min((p[a] - medium.high[a]).abs());
    let mut nearest = 0;
    for a in 1..3 {
        if depth(a) < depth(nearest) {
            nearest = a;
        }
    }
    let mut normal = [0.0; 3];
    normal[nearest] = 1.0;
    normal
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::resident::Resident;
    use crate::resident::layout::NONE;
    use crate::transport::paths::next_event::{Part, shadow};
    use crate::transport::rays::random::Counter;
    use crate::transport::scene::light::Drawn;
    use crate::transport::scene::shape::SurfacePoint;
    use crate::transport::scene::tables::Tables;

    /// Smoke in a box that is larger than its grid, in a turned block that is smaller, and fog in a ball and around both.
    const CLOUDS: &str = r#"{"integrator": {"type": "volpath"},
        "box": {"type": "cube", "bsdf": {"type": "null"}, "to_world": [{"scale": 1.2}],
            "interior": {"type": "heterogeneous", "albedo": 0.5, "scale": 2, "sigma_t": {"type": "gridvolume",
                "resolution": [3, 2, 2], "value": 1,
                "to_world": [{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}]}}},
        "block": {"type": "cube", "bsdf": {"type": "null"},
            "to_world": [{"scale": 0.4}, {"rotate": {"axis": [1, 1, 0], "angle": 30}}, {"translate": [2.2, 0.1, 0.2]}],
            "interior": {"type": "heterogeneous", "albedo": 0.5, "sigma_t": {"type": "gridvolume", "wrap_mode": "mirror",
                "resolution": [2, 2, 1], "value": [1, 1, 1],
                "to_world": [{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}, {"translate": [2.2, 0.1, 0.2]}]}}},
        "ball": {"type": "sphere", "center": [-2.3, 0.1, 0], "radius": 0.8, "bsdf": {"type": "null"},
            "interior": {"type": "homogeneous", "sigma_t": [2, 1, 0.5]}},
        "lamp": {"type": "point"}}"#;

    /// The values of the parameters.
    struct Values<'a>(Vec<&'a [f32]>);

    impl Fields<f32> for Values<'_> {
        const TWO_SIDED: bool = false;
        const TRACKED: bool = false;
        fn integrand(&self, slot: u32) -> &[f32] {
            self.0[slot as usize]
        }
        fn sampling(&self, slot: u32) -> &[f32] {
            self.0[slot as usize]
        }
    }

    /// A direction and a distance from one point to another.
    fn towards(from: [f32; 3], to: [f32; 3]) -> Drawn {
        let way = [0, 1, 2].each(|a: usize| to[a] - from[a]);
        let distance = dot(way, way).sqrt();
        Drawn {
            light: 0,
            direction: way.each(|x| x / distance),
            distance,
            weight: 1.0,
            pdf: 0.0,
            point: SurfacePoint::new([0.0; 3], [0.0; 2]),
            normal: [0.0; 3],
        }
    }

    /// The optical depth of a way that begins in `medium`, by a sum over so many points of each part that its error is
    /// far below that of a difference.
    fn depth(world: &SceneView, fields: &Values, medium: u32, [from, to]: [[f32; 3]; 2]) -> [f64; 3] {
        const POINTS: usize = 4000;
        let drawn = towards(from, to);
        let mut depth = [0.0f64; 3];
        let pass = |part: Part| {
            let Some(medium) = part.medium else { return };
            let Some((start, end)) = clip(medium, part.origin, drawn.direction, 0.0, part.far) else {
                return;
            };
            for i in 0..POINTS {
                let t = start + (end - start) * ((i as f32 + 0.5) / POINTS as f32);
                let sigma = extinction(world, fields, medium, along(part.origin, drawn.direction, t)).integrand;
                for c in 0..3 {
                    depth[c] += f64::from(sigma[c]) * f64::from(end - start) / POINTS as f64;
                }
            }
        };
        assert!(
            shadow(world, medium, from, &drawn, pass, |_| true),
            "nothing is in the way"
        );
        depth
    }

    /// The mean of the derivatives by both ends over many draws: for each channel and each end.
    fn mean_shifts(world: &SceneView, fields: &Values, medium: u32, [from, to]: [[f32; 3]; 2]) -> [[[f64; 3]; 2]; 3] {
        const DRAWS: u32 = 200_000;
        let drawn = towards(from, to);
        let mut mean = [[[0.0f64; 3]; 2]; 3];
        for sample in 0..DRAWS {
            let counter = Counter {
                sensor: 0,
                pixel: 3,
                sample,
                block: 7,
            };
            let mut draws = Sampler::new([1, 2, 3, 4], counter);
            let mut drift: Drift<f32> = Drift::new();
            let pass = |part: Part| {
                let exit = part.exit.map(|hit| hit.normal);
                if let Some(medium) = part.medium {
                    let Part { origin, far, .. } = part;
                    drift.cross(world, fields, medium, origin, drawn.direction, far, exit, &mut draws);
                }
                if let Some(hit) = part.exit {
                    drift.pass(hit.t, hit.normal);
                }
            };
            shadow(world, medium, from, &drawn, pass, |_| true);
            let Shifts(shifts) = drift.shifts(drawn.direction, drawn.distance);
            for (sums, shifts) in mean.as_flattened_mut().iter_mut().zip(shifts.as_flattened()) {
                for a in 0..3 {
                    sums[a] += f64::from(shifts[a]) / f64::from(DRAWS);
                }
            }
        }
        mean
    }

    /// The derivatives by both ends by differences of optical depths. By an end in a medium only those across the way count,
    /// unless it is the last.
    fn differences(world: &SceneView, fields: &Values, medium: u32, ends: [[f32; 3]; 2]) -> [[[f64; 3]; 2]; 3] {
        const STEP: f32 = 4e-3;
        let mut found = [[[0.0; 3]; 2]; 3];
        for end in 0..2 {
            for a in 0..3 {
                let [high, low] = [STEP, -STEP].each(|step| {
                    let mut moved = ends;
                    moved[end][a] += step;
                    depth(world, fields, medium, moved)
                });
                for c in 0..3 {
                    found[c][end][a] = (low[c] - high[c]) / f64::from(2.0 * STEP);
                }
            }
        }
        if medium != NONE {
            let way = towards(ends[0], ends[1]).direction.map(f64::from);
            for of_channel in &mut found {
                let first = &mut of_channel[0];
                let ahead: f64 = (0..3).map(|a| first[a] * way[a]).sum();
                *first = [0, 1, 2].map(|a: usize| first[a] - ahead * way[a]);
            }
        }
        found
    }

    /// The derivatives of the transmittance by both ends of a way, from outside and from within media, to their outside and to a
    /// light within, are differences of optical depths.
    #[test]
    fn the_drift_is_that_of_the_optical_depth() {
        let scene =
            crate::scene::parse(CLOUDS, Path::new("clouds.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (resident, params) = Resident::new(&scene).expect("it is sound");
        let vary = |i: usize| (i * 7 % 11) as f32 / 11.0;
        let varied: Vec<Vec<f32>> = params
            .parameters
            .iter()
            .map(|p| match p.shape.size {
                [1, 1, 1] => p.values.clone(),
                _ => (0..p.values.len()).map(vary).collect(),
            })
            .collect();
        let fields = Values(varied.iter().map(|values| &values[..]).collect());
        let tables = Tables::default();
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        let medium_of = |name: &str| {
            let named = scene.world.surfaces.iter().position(|surface| surface.name == name);
            world.surfaces[named.expect("it is there")].interior
        };
        for (from, to, medium) in [
            ([-3.6, 0.4, 0.3], [3.3, 0.2, 0.1], NONE),
            ([-0.4, -0.2, 1.9], [0.3, 0.5, -2.0], NONE),
            ([2.0, 1.4, 0.5], [2.3, -1.2, 0.1], NONE),
            ([-0.3, 0.2, 0.4], [0.9, 1.9, 0.7], medium_of("box")),
            ([-1.9, 0.2, 0.1], [1.4, -0.3, 0.2], medium_of("ball")),
            ([-0.9, 2.0, 0.7], [0.1, -0.2, 0.3], NONE),
            ([-2.4, 1.3, 0.2], [-2.1, 0.2, 0.1], NONE),
        ] {
            let expected = differences(&world, &fields, medium, [from, to]);
            let found = mean_shifts(&world, &fields, medium, [from, to]);
            let all = |of: &[[[f64; 3]; 2]; 3]| of.as_flattened().as_flattened().to_vec();
            let largest = all(&expected).iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert!(
                largest > 0.05,
                "{from:?} to {to:?} passes through next to nothing: {expected:?}"
            );
            // The mean of 200000 draws, whose spread is some times the derivatives, has a standard error of about 0.5 %; rounding of
            // distances adds 1e-7 over the step, 3e-5.
            for (found, expected) in all(&found).iter().zip(all(&expected)) {
                assert!(
                    (found - expected).abs() < 0.02 * largest,
                    "{from:?} to {to:?}: {found} is not {expected}"
                );
            }
        }
    }
}
