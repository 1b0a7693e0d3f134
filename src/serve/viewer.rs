//! Renders for pages, through a camera of their own: coarse while it moves and refined while it rests.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::budget::Budget;
use super::camera::{self, Subject};
use super::desk::Order;
use super::magnitude::{Magnitudes, Painted, dots};
use super::shade::{self, Mean};
use super::wanted::{Moves, Show};
use crate::device::{ArrayKind, Batch, Device, Keys, Result};
use crate::resident::layout::{SensorRecord, aov};
use crate::scene::ColorSpace;
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key};

/// Factors by which films are smaller than wanted along each axis, from the coarsest on.
const DIVISORS: [u32; 5] = [16, 8, 4, 2, 1];
/// Seconds that one render for the page (a look) may take: while the camera moves, while a run is at work, and while none
/// is.
const MOVING: f64 = 0.04;
const BETWEEN: f64 = 0.4;
const ALONE: f64 = 0.8;
/// A camera counts as moving for this long after it was last moved.
const REST: Duration = Duration::from_millis(350);
/// Time between pictures of a camera at rest.
const PAUSE: Duration = Duration::from_millis(100);
/// The most renders in the mean of a camera at rest, while parameters change and while they do not.
const CHANGING: u32 = 16;
const STILL: u32 = 1024;
/// Number of depths at which a look at depths evaluates the transmittance.
const STRATA: u32 = 8;
/// Weight of the newest look in the running mean of the seconds that a pixel takes.
const NEWEST: f64 = 0.5;

/// How a sensor of the scene moves, and the colour space of its pictures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lens {
    pub moves: Moves,
    pub space: ColorSpace,
}

/// What renders for the page need to know of the scene.
#[derive(Debug, Clone)]
pub(super) struct Looks {
    pub lenses: Vec<Lens>,
    pub subject: Option<Subject>,
    /// Whether there are surfaces only, so that depths are those of first hits.
    pub is_solid: bool,
    /// By the path of each texture, the surfaces that it lies on.
    pub painted: Vec<(String, Vec<Painted>)>,
    /// The path of splats' positions.
    pub positions: Option<String>,
    pub seed: u64,
}

/// What the run does during a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// The next iteration waits for the look to end.
    Between,
    /// The run is paused or over: nothing waits.
    Free,
}

/// A picture being made.
#[derive(Debug)]
struct Shown {
    /// The order that it follows.
    number: u64,
    divisor: u32,
    mean: Mean,
    /// Iterations done when the picture was begun, and when a render was last added.
    epochs: [u64; 2],
    at: Instant,
}

/// Renders for pages.
#[derive(Debug)]
pub(super) struct Viewer {
    looks: Looks,
    budget: Budget,
    /// Running mean of the seconds a pixel, by kind of picture; None before the first look.
    pace: [Option<f64>; 4],
    shown: Option<Shown>,
    /// Counts random keys, two a render, so that each render has random numbers of its own.
    renders: u32,
    /// The newest gradient that was read: its parameter, the iterations done before it, and its magnitudes.
    gradient: Option<(String, u64, Magnitudes)>,
}

/// The index of a kind of picture among [`Viewer::pace`].
fn kind(show: &Show) -> usize {
    match show {
        Show::Picture => 0,
        Show::Depth => 1,
        Show::Opacity => 2,
        Show::Gradient(_) => 3,
    }
}

impl Viewer {
    pub(super) fn new(looks: Looks) -> Self {
        Self {
            looks,
            budget: Budget::new(Instant::now()),
            pace: [None; 4],
            shown: None,
            renders: 0,
            gradient: None,
        }
    }

    /// Renders once, if it is time: returns a picture as a PNG, and what pages are told of it. The camera is the last of
    /// the device's sensors; `epoch` counts iterations.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn look(
        &mut self,
        device: &mut dyn Device,
        order: &Order,
        epoch: u64,
        time: Time,
    ) -> Result<Option<(Vec<u8>, Value)>> {
        match time {
            Time::Between => self.budget.earn(Instant::now()),
            Time::Free => self.budget.skip(Instant::now()),
        }
        let Some(divisor) = self.plan(device, order, epoch, time) else {
            return Ok(None);
        };
        // Work that is still queued on the device counts as the run's time.
        device.finish()?;
        let begun = Instant::now();
        let made = self.make(device, order, epoch, divisor)?;
        let now = Instant::now();
        let took = now - begun;
        match time {
            Time::Between => self.budget.spend(took, now),
            Time::Free => self.budget.skip(now),
        }
        let (pixels, pace) = (
            self.pixels(device, order, divisor),
            &mut self.pace[kind(&order.wanted.show)],
        );
        let newest = took.as_secs_f64() / pixels;
        *pace = Some(pace.map_or(newest, |pace| pace + NEWEST * (newest - pace)));
        Ok(made)
    }

    /// Reads the gradient that is to be shown, before the optimiser's step.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn read_gradient(&mut self, device: &mut dyn Device, order: &Order, epoch: u64) -> Result<()> {
        let Show::Gradient(path) = &order.wanted.show else {
            return Ok(());
        };
        let known = self.gradient.as_ref().filter(|(of, ..)| of == path);
        self.budget.earn(Instant::now());
        // The first reading of a parameter is always made, later ones only while seconds are left in the budget.
        if known.is_some() && !self.budget.affords(0.0) {
            return Ok(());
        }
        let Some(index) = device.params().find(path) else {
            return Ok(());
        };
        device.finish()?;
        let begun = Instant::now();
        let gradient = device.read(index, ArrayKind::Gradient)?;
        let positions = self
            .looks
            .positions
            .as_ref()
            .and_then(|path| device.params().find(path));
        let positions = match positions {
            Some(index) => device.read(index, ArrayKind::Values)?,
            None => Vec::new(),
        };
        let magnitudes = Magnitudes::of(&device.params().parameters[index], &gradient, &positions);
        self.gradient = Some((path.clone(), epoch, magnitudes));
        let now = Instant::now();
        self.budget.spend(now - begun, now);
        Ok(())
    }

    /// The camera's record.
    fn record(&self, device: &dyn Device, order: &Order, divisor: u32) -> SensorRecord {
        camera::record(&device.sensors()[order.wanted.sensor], &order.wanted, divisor)
    }

    fn pixels(&self, device: &dyn Device, order: &Order, divisor: u32) -> f64 {
        let record = self.record(device, order, divisor);
        f64::from(record.width) * f64::from(record.height)
    }

    /// The divisor of the next look's film; None if it is not time for one.
    fn plan(&self, device: &dyn Device, order: &Order, epoch: u64, time: Time) -> Option<u32> {
        let price = |divisor: u32| {
            let pace = self.pace[kind(&order.wanted.show)];
            pace.map(|pace| pace * self.pixels(device, order, divisor))
        };
        let is_moving = order.at.elapsed() < REST;
        let limit = match (is_moving, time) {
            (true, _) => MOVING,
            (_, Time::Between) => BETWEEN,
            (_, Time::Free) => ALONE,
        };
        // The finest divisor within the limit; the coarsest if none is, or before a pace has been measured.
        let within = |divisor: &&u32| price(**divisor).is_some_and(|price| price <= limit);
        let finest = DIVISORS.iter().rev().find(within).copied().unwrap_or(DIVISORS[0]);
        let affords = |divisor| time == Time::Free || self.budget.affords(price(divisor).unwrap_or(0.0));
        let begin_anew = || {
            let possible = DIVISORS.iter().rev().filter(|divisor| **divisor >= finest);
            possible.copied().find(|divisor| affords(*divisor))
        };
        if let Show::Gradient(path) = &order.wanted.show
            && self.gradient.as_ref().is_none_or(|(of, ..)| of != path)
        {
            return None;
        }
        let Some(shown) = self.shown.as_ref().filter(|shown| shown.number == order.number) else {
            return begin_anew();
        };
        if !is_moving && shown.at.elapsed() < PAUSE {
            return None;
        }
        let outdated = time == Time::Free && shown.epochs != [epoch; 2];
        if shown.divisor > finest || outdated {
            return Some(finest).filter(|divisor| affords(*divisor));
        }
        let has_more = shown.mean.count < STILL && self.refines(order) || shown.epochs[1] != epoch;
        Some(shown.divisor).filter(|divisor| has_more && affords(*divisor))
    }

    /// Whether the mean of more renders has less noise: pictures of splats and gradients have none.
    fn refines(&self, order: &Order) -> bool {
        let flat = self.looks.lenses[order.wanted.sensor].moves == Moves::Flat;
        !flat && !matches!(order.wanted.show, Show::Gradient(_))
    }

    /// Renders once and adds the render to the picture, or begins another picture with it.
    fn make(
        &mut self,
        device: &mut dyn Device,
        order: &Order,
        epoch: u64,
        divisor: u32,
    ) -> Result<Option<(Vec<u8>, Value)>> {
        let record = self.record(device, order, divisor);
        let lens = self.looks.lenses[order.wanted.sensor];
        let range = camera::depth_range(&record, self.looks.subject);
        let render = match &order.wanted.show {
            Show::Picture | Show::Opacity => self.render(device, record)?,
            Show::Depth if self.looks.is_solid => self.first_surfaces(device, record, lens.moves)?,
            Show::Depth => self.depths(device, record, range)?,
            Show::Gradient(path) => self.gradient(device, record, lens.moves, path)?,
        };
        let refines = self.refines(order);
        let goes_on = |shown: &Shown| {
            let is_older = !refines && shown.epochs[1] != epoch;
            shown.number == order.number && shown.divisor == divisor && !is_older
        };
        let mut shown = self.shown.take().filter(goes_on).unwrap_or_else(|| Shown {
            number: order.number,
            divisor,
            mean: Mean::new((record.width * record.height) as usize),
            epochs: [epoch; 2],
            at: Instant::now(),
        });
        let changes = shown.epochs[0] != epoch;
        if refines || shown.mean.count == 0 {
            shown.mean.add(&render, if changes { CHANGING } else { STILL });
        }
        (shown.epochs[1], shown.at) = (epoch, Instant::now());
        let (bytes, ends) = self.shade(&shown.mean, order, range);
        let size = [record.width, record.height];
        let about = json!({
            "order": order.number, "size": size, "renders": shown.mean.count, "coarseness": divisor,
            "show": order.wanted.show, "ends": ends,
        });
        self.shown = Some(shown);
        Ok(Some((shade::png(size, &bytes), about)))
    }

    /// The bytes of a picture, and the values at both ends of its colour map.
    fn shade(&self, mean: &Mean, order: &Order, range: [f32; 2]) -> (Vec<u8>, Option<[f32; 2]>) {
        let lens = self.looks.lenses[order.wanted.sensor];
        match &order.wanted.show {
            Show::Picture => (shade::picture(&mean.pixels, lens.space), None),
            Show::Opacity => (shade::opacity(&mean.pixels), Some([0.0, 1.0])),
            Show::Depth => {
                let depth = |p: &[f32; 4]| (p[3] >= 0.0 && p[0] > 0.0).then_some(p[0]);
                (shade::amounts(mean.pixels.iter().map(depth), range), Some(range))
            }
            Show::Gradient(_) => {
                let values = || mean.pixels.iter().map(|p| p[0]);
                let ends = [0.0, values().fold(0.0, f32::max)];
                (shade::amounts(values().map(Some), ends), Some(ends))
            }
        }
    }

    /// Puts the camera in place, and returns a batch of all its pixels and random numbers that nothing else draws.
    fn pass(&mut self, device: &mut dyn Device, record: SensorRecord) -> (Batch, Keys) {
        let camera = device.sensors().len() as u32 - 1;
        device.replace_sensor(camera, record);
        let table = PixelTable::new(device.sensors(), &[camera]).expect("films of pages are small");
        self.renders = self.renders.wrapping_add(2);
        let key = |i: u32| pass_key(self.looks.seed, self.renders.wrapping_add(i), Pass::Watch);
        let keys = Keys {
            objective: key(0),
            pass: key(1),
        };
        (Batch { table, drawn: None }, keys)
    }

    fn render(&mut self, device: &mut dyn Device, record: SensorRecord) -> Result<Vec<[f32; 4]>> {
        let (batch, keys) = self.pass(device, record);
        device.render(&batch, keys, 1)?;
        device.image()
    }

    /// Magnitudes of the gradient that was read last, for each pixel: the largest along its ray, of the splats near it,
    /// or of the texel at the first hit.
    fn gradient(
        &mut self,
        device: &mut dyn Device,
        record: SensorRecord,
        moves: Moves,
        path: &str,
    ) -> Result<Vec<[f32; 4]>> {
        let values: Vec<f32> = match &self.gradient {
            Some((_, _, Magnitudes::Grid(grid))) => grid.project(&record, moves),
            Some((_, _, Magnitudes::Points(points))) => dots(points, &record),
            _ => {
                let (batch, keys) = self.pass(device, record);
                let mut seen = |kind| {
                    device.render_aov(&batch, keys, 1, kind)?;
                    device.image()
                };
                let (depths, shapes, uvs) = (seen(aov::DEPTH)?, seen(aov::SHAPE_INDEX)?, seen(aov::UV)?);
                let painted = self.looks.painted.iter().find(|(of, _)| of == path);
                let painted = painted.map_or(&[][..], |(_, painted)| painted);
                let at = |i: usize| {
                    let is_hit = depths[i][0] > 0.0 && depths[i][3] >= 0.0;
                    let on = painted
                        .iter()
                        .find(|on| is_hit && (on.surface + 1) as f32 == shapes[i][0]);
                    let (_, _, magnitudes) = self.gradient.as_ref()?;
                    Some(magnitudes.at([uvs[i][0], uvs[i][1]], on?))
                };
                (0..depths.len()).map(|i| at(i).unwrap_or(0.0)).collect()
            }
        };
        Ok(values.into_iter().map(|value| [value, 0.0, 0.0, 0.0]).collect())
    }

    /// Depths of the first surfaces.
    fn first_surfaces(&mut self, device: &mut dyn Device, record: SensorRecord, moves: Moves) -> Result<Vec<[f32; 4]>> {
        let (batch, keys) = self.pass(device, record);
        device.render_aov(&batch, keys, 1, aov::DEPTH)?;
        let mut distances = device.image()?;
        shade::along_view(&mut distances, &record, moves);
        // Distances begin at the near clip distance; zero, where there is no surface, stays zero.
        let hit = distances.iter_mut().filter(|p| p[0] > 0.0);
        hit.for_each(|p| p[0] += record.near_clip);
        Ok(distances)
    }

    /// Mean depths at which light is stopped, `high` where it is not: `low` plus the integral of the transmittance T(t)
    /// over the depth t, which is evaluated at one t in each stratum by a render with the far clip distance t.
    fn depths(
        &mut self,
        device: &mut dyn Device,
        record: SensorRecord,
        [low, high]: [f32; 2],
    ) -> Result<Vec<[f32; 4]>> {
        let mut depths = vec![[low, 0.0, 0.0, 0.0]; (record.width * record.height) as usize];
        // The golden ratio moves t within the strata, so that the looks of a mean fill them evenly.
        let within = (f64::from(self.renders / 2) * 0.618_033_988_75).fract() as f32;
        let step = (high - low) / STRATA as f32;
        for i in 0..STRATA {
            let nearer = SensorRecord {
                far_clip: low + step * (i as f32 + within),
                ..record
            };
            let render = self.render(device, nearer)?;
            for (depth, seen) in depths.iter_mut().zip(render) {
                match seen[3] < 0.0 {
                    true => depth[3] = -1.0,
                    false => depth[0] += step * seen[3],
                }
            }
        }
        Ok(depths)
    }
}
