//! Derivatives by cameras: a walk that is generic over the number in its geometry, too, its finite differences, and the
//! closed form of `transport::field::ray_adjoint` in f64.
//!
//! Frozen (taken from the unperturbed cameras) are the number of a ray's samples, the face by which it enters the cube,
//! the cell of the grid that each sample lies in, and the side of each kink: the rest of the walk is smooth.

use rayon::prelude::*;

use super::difference::{Difference, extrapolate};
use super::entries::{Chosen, Place, coordinates};
use super::fields::{Fields, Role};
use super::objective::{CastRay, FieldObjective};
use crate::each::EachEntry;
use crate::gradcheck::report::{ParameterReport, Row, worst_error};
use crate::gradcheck::{Options, Setup, Weighting};
use crate::params::Quantity;
use crate::resident::layout::{NONE, SceneRecord, SensorRecord, background, color, density, distortion};
use crate::resident::views::{SUMS, Views};
use crate::transport::field::radiance_field::{
    Sample, State, color_activate, density_activate, field_segment, same_size,
};
use crate::transport::field::ray_adjoint::{Face, Line, RayAdjoint, apply, dot};
use crate::transport::lookup::background::env_place;
use crate::transport::lookup::grid::{Cell, cell_around};
use crate::transport::lookup::sh::{MAX_COEFFICIENTS, sh_values};
use crate::transport::number::Number;
use crate::transport::rays::view_adjoint::{Axes, angle, camera_axes, lens_at, seen_from, view_adjoint};

/// Numbers of a view: the six of its pose, then two that all views share: the logarithm of a factor on focal lengths, and
/// radial distortion.
pub const NUMBERS: usize = SUMS;

/// Newton steps that invert the lens for a perturbed camera; the correct digits double in each.
const NEWTON: usize = 8;

/// The largest step of differences, in radians, units of a pose's shift, or logarithms. Over longer steps the radiance of
/// rays through dense media is not polynomial, as the extrapolation assumes.
const STEP: f64 = 1e-4;

/// Two radiances of a ray that differ by less than this part of the larger one differ by rounding alone.
const ROUNDING: f64 = 256.0 * f64::EPSILON;

/// The radiances of an objective's rays as functions of the cameras' numbers.
#[derive(Debug)]
pub struct ViewsObjective<'a> {
    objective: &'a FieldObjective,
    views: &'a Views,
    setup: &'a Setup,
    /// The numbers of each view.
    values: Vec<[f64; NUMBERS]>,
}

/// A ray of the unperturbed camera.
struct Base {
    rest: SensorRecord,
    /// The point on the image plane, and where the lens takes it on the film, in focal lengths.
    point: [f64; 2],
    seen: [f64; 2],
    line: Line<f64>,
    samples: u32,
}

impl<'a> ViewsObjective<'a> {
    /// The rays of an objective; None if nothing of the views is a parameter.
    pub fn new(setup: &'a Setup, objective: &'a FieldObjective) -> Option<Self> {
        let crate::resident::Transport::Field(field) = &setup.resident.transport else {
            return None;
        };
        let views = field.views.as_ref()?;
        let value = |slot: u32, index: usize| match setup.params.parameters.get(slot as usize) {
            Some(parameter) => f64::from(parameter.values[index]),
            None => 0.0,
        };
        let of_view = |view: usize| {
            let mut numbers = [0.0; NUMBERS];
            for (k, number) in numbers[..6].iter_mut().enumerate() {
                *number = value(views.poses, 6 * view + k);
            }
            (numbers[6], numbers[7]) = (value(views.focal, 0), value(views.distortion, 0));
            numbers
        };
        Some(Self {
            objective,
            views,
            setup,
            values: (0..views.len()).map(of_view).collect(),
        })
    }

    fn base(&self, cast: &CastRay) -> Option<Base> {
        let scene = &self.objective.scene;
        let mut rest = *self.views.rest(cast.sensor as usize)?;
        if self.views.distortion != NONE {
            rest.distortion_model = distortion::BROWN;
        }
        let numbers = self.values[cast.sensor as usize];
        let axes = turned_axes(&rest, &numbers);
        let seen = seen_from(&axes, cast.ray.direction.each(f64::from));
        let point = [-seen[0] / seen[2], -seen[1] / seen[2]];
        let lens = lens_at(rest.distortion_model, &lens(&rest, numbers[7]), point);
        let samples = field_segment(scene, &cast.ray, cast.jitter).map_or(0, |segment| {
            let inside = |i: &u32| segment.first + *i as f32 * scene.step_length < segment.far;
            (0..).take_while(inside).count() as u32
        });
        let mut base = Base {
            rest,
            point,
            seen: lens.distorted,
            line: Line::new(scene, [0.0; 3], [0.0, 0.0, 1.0], 0.0),
            samples,
        };
        base.line = self.line(&base, &numbers, &numbers, None);
        Some(base)
    }

    /// The ray through the same place of the film by the camera of these numbers.
    fn line<N: Number>(&self, base: &Base, at: &[f64; NUMBERS], numbers: &[N; NUMBERS], face: Option<Face>) -> Line<N> {
        let scene = &self.objective.scene;
        let rest = &base.rest;
        let coefficients = lens(rest, numbers[7]);
        // At a longer focal length, a place on the film belongs to a direction nearer to the axis.
        let shrink = (lift::<N>(at[6]) - numbers[6]).exp();
        let target = base.seen.each(|x| lift::<N>(x) * shrink);
        let mut point = base.point.each(lift::<N>);
        for _ in 0..NEWTON {
            let lens = lens_at(rest.distortion_model, &coefficients, point);
            let [[a, b], [c, d]] = lens.jacobian;
            let off = [lens.distorted[0] - target[0], lens.distorted[1] - target[1]];
            let determinant = a * d - b * c;
            point[0] -= (d * off[0] - b * off[1]) / determinant;
            point[1] -= (a * off[1] - c * off[0]) / determinant;
        }
        let [u, v] = point;
        let length = (u * u + v * v + N::lift(1.0)).sqrt();
        let local = [-(u / length), -(v / length), length.recip()];
        let axes = turned_axes(rest, numbers);
        let direction = combine(&axes, local);
        let rest_axes: Axes<N> = camera_axes(&rest.to_world);
        let (unit, pivot) = (lift::<N>(self.views.unit), lift::<N>(self.views.pivot(rest)));
        let shift = [unit * numbers[3], unit * numbers[4], unit * numbers[5] + pivot];
        let shift = combine(&rest_axes, shift);
        let turned = combine(&axes, [N::lift(0.0), N::lift(0.0), pivot]);
        let origin = [0, 1, 2].each(|r| N::lift(rest.to_world[r][3]) + shift[r] - turned[r]);
        let clip = N::lift(rest.near_clip) * length;
        match face {
            None => Line::new(scene, origin, direction, clip),
            Some(face) => Line::entering(scene, origin, direction, clip, face),
        }
    }

    /// The radiance of the ray through the same place of the film, by the camera of these numbers.
    fn radiance<N: Number>(&self, base: &Base, cast: &CastRay, numbers: &[N; NUMBERS]) -> [N; 3] {
        let (scene, fields) = (&self.objective.scene, &self.objective.fields);
        let at = &self.values[cast.sensor as usize];
        let line = self.line(base, at, numbers, Some(base.line.entry));
        let basis = basis(scene, &line);
        let mut radiance = [N::lift(0.0); 3];
        let mut transmittance = N::lift(1.0);
        for i in 0..base.samples {
            let Some(found) = sample(scene, fields, (base, &line, &basis), cast, i) else {
                continue;
            };
            let sigma = match scene.density_activation {
                // The ReLU's side is frozen: samples of negative density have been left out.
                density::RELU => found.raw_sigma,
                kind => density_activate(kind, found.raw_sigma),
            };
            let alpha = -((-(sigma * N::lift(scene.step_length))).exp_m1());
            let weight = transmittance * alpha;
            transmittance -= weight;
            for c in 0..3 {
                radiance[c] += weight * frozen_color(scene, found.raw_color[c], found.decided[c]);
            }
        }
        let behind = match cast.backdrop {
            Some(color) => color.each(N::lift),
            None => behind(scene, &fields.emitter, base, &line),
        };
        [0, 1, 2].each(|c| radiance[c] + transmittance * behind[c])
    }

    /// The derivatives of F by the views, by path replay in f64: those by poses, then by the two shared numbers.
    pub fn adjoint(&self, seed: u32) -> (Vec<[f64; 6]>, [f64; 2]) {
        let of_casts: Vec<(u32, [f64; SUMS])> = self
            .objective
            .casts
            .par_iter()
            .filter_map(|cast| Some((cast.sensor, self.adjoint_of(seed, cast)?)))
            .collect();
        let mut sums = vec![[0.0; SUMS]; self.views.len()];
        for (sensor, of_cast) in of_casts {
            (0..SUMS).for_each(|k| sums[sensor as usize][k] += of_cast[k]);
        }
        self.views.derivatives(&self.setup.params, &sums)
    }

    fn adjoint_of(&self, seed: u32, cast: &CastRay) -> Option<[f64; SUMS]> {
        let (scene, fields) = (&self.objective.scene, &self.objective.fields);
        let base = self.base(cast)?;
        let (line, d_radiance) = (&base.line, self.objective.weight(seed, cast));
        let basis = basis(scene, line);
        let walked: Vec<_> = (0..base.samples)
            .filter_map(|i| Some((i, sample(scene, fields, (&base, line, &basis), cast, i)?)))
            .collect();
        let as_sample = |found: &Found<f64>| {
            let sigma = density_activate(scene.density_activation, found.raw_sigma);
            Sample {
                p: found.p.each(|x| x as f32),
                raw_sigma: found.raw_sigma,
                alpha: -(-(sigma * f64::from(scene.step_length))).exp_m1(),
                raw_color: found.raw_color,
            }
        };
        let mut gathered = State::new([0.0; 3]);
        for (_, found) in &walked {
            let sample = as_sample(found);
            let weight = gathered.transmittance * sample.alpha;
            gathered.transmittance -= weight;
            for c in 0..3 {
                gathered.radiance[c] += weight * color_activate(scene.color_activation, sample.raw_color[c]);
            }
        }
        let behind = match cast.backdrop {
            Some(color) => color.each(f64::from),
            None => behind(scene, &fields.emitter, &base, line),
        };
        let total = [0, 1, 2].each(|c| gathered.radiance[c] + gathered.transmittance * behind[c]);
        let mut state = State::new(total);
        let mut sums = RayAdjoint::zero();
        for (i, found) in &walked {
            let (d_sigma, d_color) = state.replay(scene, &as_sample(found), d_radiance);
            let t = distance(scene, line, cast, *i);
            sums.add_density(&fields.sigma, &found.cells[0], t, d_sigma);
            let of = (&fields.sh[..], &basis);
            match scene.sh_degree {
                0 => sums.add_color::<3>(of, &found.cells[1], t, d_color),
                1 => sums.add_color::<12>(of, &found.cells[1], t, d_color),
                2 => sums.add_color::<27>(of, &found.cells[1], t, d_color),
                _ => sums.add_color::<48>(of, &found.cells[1], t, d_color),
            }
        }
        if cast.backdrop.is_none() {
            let left = d_radiance.each(|d| d * state.transmittance);
            sums.add_background(scene, &fields.emitter, line, left);
        }
        let numbers = &self.values[cast.sensor as usize];
        let (axes, lens) = (turned_axes(&base.rest, numbers), lens(&base.rest, numbers[7]));
        Some(view_adjoint(
            &base.rest,
            (&axes, &lens),
            line.world,
            &sums.end(scene, line),
        ))
    }

    /// The radiance of a ray in any number type; `numbers` gets its view's numbers, and returns those to walk with.
    pub fn radiance_by<N: Number>(&self, cast: &CastRay, numbers: impl Fn(&[f64; NUMBERS]) -> [N; NUMBERS]) -> [N; 3] {
        let base = self.base(cast).expect("rays come from sensors of the scene");
        self.radiance(&base, cast, &numbers(&self.values[cast.sensor as usize]))
    }

    /// Finite differences of F by number `k` of one view, or of all views if None, for all seeds at once.
    fn difference(&self, view: Option<u32>, k: usize, step: f64, seeds: &[u32]) -> Vec<f64> {
        let casts = self
            .objective
            .casts
            .par_iter()
            .filter(|cast| view.is_none_or(|v| v == cast.sensor));
        let slopes: Vec<Vec<f64>> = casts
            .filter_map(|cast| {
                let base = self.base(cast)?;
                let at = |s: f64| {
                    let mut numbers = self.values[cast.sensor as usize];
                    numbers[k] += s;
                    self.radiance(&base, cast, &numbers)
                };
                let central = |s: f64| {
                    let (high, low) = (at(s), at(-s));
                    [0, 1, 2].each(|c| change(high[c], low[c]) / (2.0 * s))
                };
                let [a, b, d] = [step, step / 2.0, step / 4.0].each(central);
                let slope = [0, 1, 2].each(|c| extrapolate([a[c], b[c], d[c]]));
                let weighted = |seed: &u32| {
                    let weight = self.objective.weight(*seed, cast);
                    (0..3).map(|c| weight[c] * slope[c]).sum::<f64>()
                };
                Some(seeds.iter().map(weighted).collect())
            })
            .collect();
        let sum = |s: usize| slopes.iter().map(|of_ray| of_ray[s]).sum();
        (0..seeds.len()).map(sum).collect()
    }

    /// The flat gradient of a parameter, from the derivatives by all poses and by the two shared numbers.
    fn gradient_of(quantity: Quantity, (poses, shared): &(Vec<[f64; 6]>, [f64; 2])) -> Vec<f64> {
        match quantity {
            Quantity::Pose => poses.as_flattened().to_vec(),
            Quantity::Zoom => vec![shared[0]],
            _ => vec![shared[1]],
        }
    }

    /// The finite difference by an entry of a parameter, for all seeds at once.
    fn entry(&self, quantity: Quantity, flat: usize, step: Option<f64>, seeds: &[u32]) -> Difference {
        let step = step.unwrap_or(STEP);
        let fixed = match quantity {
            Quantity::Pose => self.difference(Some((flat / 6) as u32), flat % 6, step, seeds),
            Quantity::Zoom => self.difference(None, 6, step, seeds),
            _ => self.difference(None, 7, step, seeds),
        };
        Difference {
            fixed,
            sides: None,
            blurred: false,
        }
    }

    /// About `count` of a parameter's `len` entries, of views that cast rays, and one of a view without rays.
    fn choose(&self, quantity: Quantity, len: usize, count: usize) -> Vec<Chosen> {
        let mut looked = vec![false; self.views.len()];
        self.objective
            .casts
            .iter()
            .for_each(|cast| looked[cast.sensor as usize] = true);
        let chosen = |flat: usize, place| Chosen {
            entry: super::difference::Entry {
                role: Role::Density,
                texel: if quantity == Quantity::Pose { flat / 6 } else { 0 } as u32,
                channel: (flat % 6) as u32,
            },
            place,
        };
        if quantity != Quantity::Pose {
            return vec![chosen(0, Place::Drawn)];
        }
        let met: Vec<usize> = (0..len).filter(|flat| looked[flat / 6]).collect();
        let stride = stride(met.len() / count.max(1));
        let unmet = (0..len).find(|flat| !looked[flat / 6]);
        let drawn = met.iter().step_by(stride).map(|&flat| chosen(flat, Place::Drawn));
        drawn.chain(unmet.map(|flat| chosen(flat, Place::Unmet))).collect()
    }
}

/// Entries of a parameter of the views with their differences, and its whole gradient for each seed.
#[derive(Debug)]
pub struct CheckedViews {
    pub parameter: usize,
    pub gradients: Vec<Vec<f64>>,
    entries: Vec<(Chosen, Difference)>,
}

/// The least stride of at least `least` without a factor in common with six: it reaches all six numbers of a pose.
fn stride(least: usize) -> usize {
    let mut stride = least.max(1);
    while stride.is_multiple_of(2) || stride.is_multiple_of(3) {
        stride += 1;
    }
    stride
}

impl CheckedViews {
    /// All parameters of views that a setup checks.
    pub fn all(setup: &Setup, objective: &FieldObjective, options: &Options, seeds: &[u32]) -> Vec<Self> {
        let Some(views) = ViewsObjective::new(setup, objective) else {
            return Vec::new();
        };
        let adjoints: Vec<_> = seeds.iter().map(|&seed| views.adjoint(seed)).collect();
        let is_of_views = |p: &&usize| setup.params.parameters[**p].quantity.is_of_views();
        let of = |&parameter: &usize| {
            let described = &setup.params.parameters[parameter];
            let quantity = described.quantity;
            let chosen = views.choose(quantity, described.shape.len(), options.entries);
            let with_difference = |chosen: Chosen| {
                let flat = chosen.entry.texel as usize * described.shape.channels + chosen.entry.channel as usize;
                (chosen, views.entry(quantity, flat, options.step, seeds))
            };
            Self {
                parameter,
                gradients: adjoints
                    .iter()
                    .map(|a| ViewsObjective::gradient_of(quantity, a))
                    .collect(),
                entries: chosen.into_iter().map(with_difference).collect(),
            }
        };
        setup.checked.iter().filter(is_of_views).map(of).collect()
    }

    /// Judges the gradient under one weighting, the `w`-th.
    pub fn compare(
        &self,
        setup: &Setup,
        (w, weighting): (usize, Weighting),
        device: Option<&[f32]>,
        options: &Options,
    ) -> ParameterReport {
        let described = &setup.params.parameters[self.parameter];
        let gradient = &self.gradients[w];
        let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        let judge = |(chosen, difference): &(Chosen, Difference)| {
            let flat = chosen.entry.texel as usize * described.shape.channels + chosen.entry.channel as usize;
            Row::judge(
                coordinates(described.shape, chosen.entry),
                chosen.place,
                gradient[flat],
                (difference, w),
                device.map(|d| f64::from(d[flat])),
                largest,
                options,
            )
        };
        let rows: Vec<Row> = self.entries.iter().map(judge).collect();
        ParameterReport {
            path: described.path.clone(),
            weighting,
            largest,
            device_worst: device.map(|device| worst_error(device, gradient, largest)),
            passed: !rows.is_empty() && rows.iter().all(Row::passed),
            advice: None,
            rows,
        }
    }
}

/// The difference of two radiances; zero if it is rounding alone, so that a gradient of zero is not compared with noise.
fn change(high: f64, low: f64) -> f64 {
    let change = high - low;
    if change.abs() <= ROUNDING * high.abs().max(low.abs()) {
        0.0
    } else {
        change
    }
}

/// A sample of the walk: its place in the unit cube, raw values there, and cells of both grids.
struct Found<N> {
    p: [N; 3],
    raw_sigma: N,
    raw_color: [N; 3],
    /// Raw colours at the sample of the unperturbed ray.
    decided: [f64; 3],
    cells: [Cell<N>; 2],
}

fn distance<N: Number>(scene: &SceneRecord, line: &Line<N>, cast: &CastRay, index: u32) -> N {
    line.near + (N::lift(index as f32) + N::lift(cast.jitter)) * N::lift(scene.step_length)
}

/// A sample; None if the unperturbed one has negative density under a ReLU.
fn sample<N: Number>(
    scene: &SceneRecord,
    fields: &Fields<f64>,
    (base, line, basis): (&Base, &Line<N>, &[N; MAX_COEFFICIENTS]),
    cast: &CastRay,
    index: u32,
) -> Option<Found<N>> {
    let t = distance(scene, line, cast, index);
    let t_base = distance(scene, &base.line, cast, index);
    let p = [0, 1, 2].each(|axis| line.origin[axis] + t * line.direction[axis]);
    let frozen = [0, 1, 2].each(|axis| base.line.origin[axis] + t_base * base.line.direction[axis]);
    let cell = cell_around(scene.sigma_size, p, frozen);
    let at_base = cell_around(scene.sigma_size, frozen, frozen);
    let look = |weights: [N; 8]| {
        let mut sum = N::lift(0.0);
        for k in 0..8 {
            sum += lift::<N>(fields.sigma[cell.texels[k] as usize]) * weights[k];
        }
        sum
    };
    let decided: f64 = (0..8)
        .map(|k| fields.sigma[cell.texels[k] as usize] * at_base.weights()[k])
        .sum();
    if scene.density_activation == density::RELU && decided < 0.0 {
        return None;
    }
    let of_color = match same_size(scene) {
        true => cell,
        false => cell_around(scene.sh_size, p, frozen),
    };
    let color_base = cell_around(scene.sh_size, frozen, frozen);
    let channels = scene.sh_size[3] as usize;
    let base_basis = self::basis(scene, &base.line);
    let mut raw_color = [N::lift(0.0); 3];
    let mut decided = [0.0; 3];
    for (k, (weight, frozen_weight)) in of_color.weights().into_iter().zip(color_base.weights()).enumerate() {
        let texel = &fields.sh[of_color.texels[k] as usize * channels..][..channels];
        for (i, value) in texel.iter().enumerate() {
            raw_color[i % 3] += lift::<N>(*value) * weight * basis[i / 3];
            decided[i % 3] += value * frozen_weight * base_basis[i / 3];
        }
    }
    Some(Found {
        p,
        raw_sigma: look(cell.weights()),
        raw_color,
        decided,
        cells: [cell, of_color],
    })
}

/// The colour of a raw one, each kink being passed on the side of `decided`.
fn frozen_color<N: Number>(scene: &SceneRecord, raw: N, decided: f64) -> N {
    match scene.color_activation {
        color::CLIP if decided < 0.0 => N::lift(0.0),
        color::CLIP if decided > 1.0 => N::lift(1.0),
        color::CLIP => raw,
        color::SIGMOID => color_activate(color::SIGMOID, raw),
        _ if decided < -0.5 => N::lift(0.0),
        _ => raw + N::lift(0.5),
    }
}

/// The background's radiance, looked up in the cell of the environment map around the unperturbed direction.
fn behind<N: Number>(scene: &SceneRecord, emitter: &[f64], base: &Base, line: &Line<N>) -> [N; 3] {
    let scale = N::lift(scene.env_scale);
    match scene.background {
        background::NONE => [N::lift(0.0); 3],
        background::CONSTANT => [0, 1, 2].each(|c| lift::<N>(emitter[c]) * scale),
        _ => {
            let frozen = unit(apply(&scene.world_to_env, base.line.world));
            let (texels, [fx, fy]) = env_place(scene.env_size, frozen);
            let moved = unit(apply(&scene.world_to_env, line.world));
            let across = |d: [f64; 3]| angle(d[0], -d[2]);
            let down = |d: [f64; 3]| angle((d[0] * d[0] + d[2] * d[2]).sqrt(), d[1]);
            let ring = (moved[0] * moved[0] + moved[2] * moved[2]).sqrt();
            let turn = angle(moved[0], -moved[2]) - lift::<N>(across(frozen));
            let dip = angle(ring, moved[1]) - lift::<N>(down(frozen));
            let [width, height] = scene.env_size.each(f64::from);
            let fx = lift::<N>(fx) + turn * lift::<N>(width / std::f64::consts::TAU);
            let fy = lift::<N>(fy) + dip * lift::<N>((height - 1.0) / std::f64::consts::PI);
            let one = N::lift(1.0);
            let weights = [(one - fx) * (one - fy), fx * (one - fy), (one - fx) * fy, fx * fy];
            [0, 1, 2].each(|c| {
                let mut sum = N::lift(0.0);
                for k in 0..4 {
                    sum += lift::<N>(emitter[texels[k] as usize * 3 + c]) * weights[k];
                }
                sum * scale
            })
        }
    }
}

fn basis<N: Number>(scene: &SceneRecord, line: &Line<N>) -> [N; MAX_COEFFICIENTS] {
    sh_values(scene.sh_degree, unit(apply(&scene.world_to_field, line.world)))
}

fn unit<N: Number>(v: [N; 3]) -> [N; 3] {
    let length = dot(v, v).sqrt();
    v.each(|x| x / length)
}

/// Lifts `x` with twice the digits of f32: as the sum of two f32 numbers.
fn lift<N: Number>(x: f64) -> N {
    let high = x as f32;
    N::lift(high) + N::lift((x - f64::from(high)) as f32)
}

/// The distortion coefficients of a lens, `radial` being added to the first.
fn lens<N: Number>(rest: &SensorRecord, radial: N) -> [N; 8] {
    let mut coefficients = rest.distortion.each(N::lift);
    coefficients[0] += radial;
    coefficients
}

/// The linear combination of the axes with coefficients `v`.
fn combine<N: Number>(axes: &Axes<N>, v: [N; 3]) -> [N; 3] {
    [0, 1, 2].each(|r| axes[0][r] * v[0] + axes[1][r] * v[1] + axes[2][r] * v[2])
}

/// The axes of a camera that a pose has turned.
fn turned_axes<N: Number>(rest: &SensorRecord, numbers: &[N; NUMBERS]) -> Axes<N> {
    let axes = camera_axes(&rest.to_world);
    let turn = [numbers[0], numbers[1], numbers[2]];
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].each(|e| combine(&axes, turned(turn, e.each(N::lift))))
}

/// `v` rotated about the vector ω = `turn` by the angle |ω|: v + a ω × v + b ω × (ω × v).
fn turned<N: Number>(turn: [N; 3], v: [N; 3]) -> [N; 3] {
    let square = dot(turn, turn);
    let (a, b) = if square.above(1e-2) {
        let angle = square.sqrt();
        (angle.sin() / angle, (N::lift(1.0) - angle.cos()) / square)
    } else {
        let series = |terms: [f64; 5]| {
            let mut sum = lift::<N>(terms[4]);
            for term in terms[..4].iter().rev() {
                sum = sum * square + lift::<N>(*term);
            }
            sum
        };
        (
            series([1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0]),
            series([0.5, -1.0 / 24.0, 1.0 / 720.0, -1.0 / 40_320.0, 1.0 / 3_628_800.0]),
        )
    };
    let first = cross(turn, v);
    let second = cross(turn, first);
    [0, 1, 2].each(|i| v[i] + a * first[i] + b * second[i])
}

fn cross<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_reach_all_numbers_of_a_pose() {
        for least in 0..40 {
            let mut reached = [false; 6];
            (0..6).for_each(|k| reached[k * stride(least) % 6] = true);
            assert_eq!(reached, [true; 6], "{least}");
        }
    }
}
