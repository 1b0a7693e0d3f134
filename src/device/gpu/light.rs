//! Light tracing on the GPU: views of films, their tables, and the passes over them.

use bytemuck::Zeroable;

use super::adapters::AdapterKind;
use super::context::Context;
use super::pieces::{ADJOINT_SAMPLES, DispatchSize, PRIMAL_SAMPLES, SOFTWARE_SAMPLES};
use super::plan::mebibytes;
use super::records::{Cube, Lamp as LampRecord, Launch, LightFilm, LightSettings, Screen, Slab};
use super::shaders::{Binding, Kernel};
use super::{Gpu, Passes};
use crate::device::units::{Units, units_of_film};
use crate::device::{Batch, DeviceError, Keys, ReplayStats, Result, check_whole_views};
use crate::resident::lamp::Lamp;
use crate::resident::light::{Film, LightScene};
use crate::resident::optics::{CubeRecord, OpticRecord, SlabRecord};

/// Stands for infinity, since shaders may assume that floats are finite.
const FAR: f32 = 1e30;

/// Lookups of a path through a slab by which dispatches are sized: Newton's steps are few, but filters may reach many pixels.
const SLAB_LOOKUPS: u64 = 64;

/// Dispatches are sized for paths of the most steps through a cube over this: longer paths, which circle, are rare.
const USUAL: u64 = 8;

/// Light tracing, and what its passes keep.
#[derive(Debug)]
pub(super) struct LightPasses {
    pub scene: LightScene,
    pub arrays: LightArrays,
}

/// Buffers of light tracing.
#[derive(Debug)]
pub(super) struct LightArrays {
    settings: wgpu::Buffer,
    /// Nodes of the sensors' filters, then the lights' colours.
    records: wgpu::Buffer,
    /// The first record of each sensor's filter, and of each light.
    filters: Vec<u32>,
    lamps: Vec<u32>,
}

impl LightArrays {
    /// Uploads the tables of a scene.
    ///
    /// # Errors
    /// The adapter cannot hold them.
    pub(super) fn new(context: &Context, scene: &LightScene) -> Result<Self> {
        let mut all: Vec<[f32; 4]> = Vec::new();
        let mut add = |of: &mut dyn Iterator<Item = [f32; 4]>| {
            let first = all.len() as u32;
            all.extend(of);
            first
        };
        let filters = scene.filters.iter();
        let filters =
            filters.map(|filter| add(&mut filter.table.iter().map(|[value, slope]| [*value, *slope, 0.0, 0.0])));
        let filters = filters.collect();
        let lamps = scene.beams.iter().map(|beam| &beam.lamp.texels);
        let lamps = lamps.map(|texels| add(&mut texels.iter().map(|[r, g, b]| [*r, *g, *b, 0.0])));
        let lamps = lamps.collect();
        let bytes = 16 * all.len() as u64;
        let limit = context.summary.max_binding_bytes.min(context.summary.max_buffer_bytes);
        if bytes > limit {
            return Err(DeviceError::TooLarge(format!(
                "the pictures of lights take {}, but {} gives a shader at most {} of one array; take smaller ones, or use \
                 --device cpu",
                mebibytes(bytes),
                context.summary.name,
                mebibytes(limit),
            )));
        }
        let records = context.storage("records", bytes)?;
        context.upload(&records, 0, bytemuck::cast_slice(&all));
        Ok(Self {
            settings: context.uniform("settings", size_of::<LightSettings>() as u64)?,
            records,
            filters,
            lamps,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.settings.size() + self.records.size()
    }
}

/// Bytes of a pixel of a film: four sums in whole numbers, or in floats.
const FILM_BYTES: u64 = 32;

/// A view of a batch: its sensor, and its first pixel in the batch's image.
pub(super) type View = (u32, u32);

impl LightPasses {
    /// The buffers that its kernels bind beside those of all passes over rays.
    pub(super) fn buffers(&self) -> [(Binding, &wgpu::Buffer); 2] {
        [
            (Binding::Settings, &self.arrays.settings),
            (Binding::Records, &self.arrays.records),
        ]
    }

    /// How a pass is cut into dispatches of this many lookups.
    ///
    /// # Errors
    /// A path may take more steps than the adapter does.
    fn dispatches(&self, context: &Context, spp: u32, budget: u64) -> Result<DispatchSize> {
        let cubes = self.scene.beams.iter().filter_map(|beam| match &beam.optic {
            OpticRecord::Cube(cube) => Some(u64::from(cube.most_steps)),
            OpticRecord::Slab(_) => None,
        });
        let Some(most) = cubes.max() else {
            return Ok(DispatchSize::new(SLAB_LOOKUPS, spp, budget));
        };
        let adapter = &context.summary;
        if adapter.kind != AdapterKind::Software {
            return Ok(DispatchSize::new(most / USUAL, spp, budget));
        }
        if most > SOFTWARE_SAMPLES {
            return Err(DeviceError::TooLarge(format!(
                "paths of up to {most} steps are longer than the {SOFTWARE_SAMPLES} that {} can be trusted with; raise \
                 `step`, or use --device cpu",
                adapter.name
            )));
        }
        Ok(DispatchSize::new(most, spp, budget))
    }
}

impl Gpu {
    /// Splats whole views.
    pub(super) fn render_light_pass(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        check_whole_views(batch)?;
        for kernel in [Kernel::RenderLight, Kernel::DevelopLight] {
            self.pipelines.prepare(&self.context, kernel)?;
        }
        let dispatch = self.light_dispatches(spp, PRIMAL_SAMPLES)?;
        self.arrays.fit_image(&self.context, batch.pixels())?;
        let launch = self.launch(batch, keys, spp);
        let views = self.light_views(batch);
        let own = |view| self.own_cells(self.pixels_of(view));
        let parts = |view| {
            self.pieces(Kernel::RenderLight, dispatch, &own(view), &(0..spp))
                .count()
        };
        self.context.gauge.begin_parts(views.iter().copied().map(parts).sum());
        for view in views {
            let pixels = self.pixels_of(view);
            self.arrays
                .fit_film(&self.context, pixels, FILM_BYTES, "take a smaller film")?;
            self.context.clear([&self.arrays.film]);
            self.upload_light_settings(view, spp);
            self.over_samples(Kernel::RenderLight, launch, dispatch, self.own_cells(pixels), 0..spp)?;
            self.reduce_film(pixels)?;
            // Every rank makes the whole image: in the adjoint pass its paths may end at any pixel.
            let once = Launch { spp: 1, ..launch };
            for (pixels, _) in dispatch.pieces(pixels, 1) {
                self.over_piece(Kernel::DevelopLight, once, pixels, 0..1);
            }
        }
        self.context.check()
    }

    /// Adds the derivatives by the slab's heights or the cube's index to their gradient.
    pub(super) fn light_adjoint_pass(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        check_whole_views(batch)?;
        let Passes::Light(passes) = &self.passes else {
            return Ok(ReplayStats::default());
        };
        if self.params.parameters[passes.scene.parameter].tuning.is_none() {
            return Ok(ReplayStats::default());
        }
        self.pipelines.prepare(&self.context, Kernel::BackpropagateLight)?;
        let dispatch = self.light_dispatches(spp, ADJOINT_SAMPLES)?;
        self.context.clear([&self.arrays.statistics]);
        self.begin_sums();
        let views = self.light_views(batch);
        let swayed = views.iter().map(|view| self.swayed(*view)).fold(0.0, f32::max);
        let units = Units::new(self.largest_adjoint * swayed, batch.pixels(), spp);
        let mut launch = self.launch(batch, keys, spp);
        (launch.digits, launch.exponent) = (units.digits, units.exponent);
        for view in views {
            self.upload_light_settings(view, spp);
            let own = self.own_cells(self.pixels_of(view));
            self.over_rays(Kernel::BackpropagateLight, launch, dispatch, own)?;
        }
        self.finish_adjoint(units)
    }

    fn light_dispatches(&self, spp: u32, budget: u64) -> Result<DispatchSize> {
        let Passes::Light(passes) = &self.passes else {
            return Ok(DispatchSize::new(1, spp, budget));
        };
        let fixed = passes.dispatches(&self.context, spp, budget)?;
        Ok(self.options.dispatch_size.unwrap_or(fixed))
    }

    /// The views of a batch of whole views.
    pub(super) fn light_views(&self, batch: &Batch) -> Vec<View> {
        let mut first = 0;
        let view = |&sensor: &u32| {
            let here = first;
            first += self.pixels_of((sensor, 0));
            (sensor, here)
        };
        batch.table.sensors.iter().map(view).collect()
    }

    /// The pixels of a view.
    pub(super) fn pixels_of(&self, (sensor, _): View) -> u32 {
        let record = &self.sensors[sensor as usize];
        record.width * record.height
    }

    /// The order of magnitude of the largest derivative that a path sends to an entry, at an adjoint of one and one path a pixel:
    /// units of sums in whole numbers follow from it. It is the most that a path adds to the film, times the film's side, over
    /// which a change of about one in a slope or an index moves the path.
    fn swayed(&self, (sensor, _): View) -> f32 {
        let Passes::Light(passes) = &self.passes else {
            return 0.0;
        };
        let scene = &passes.scene;
        let film = scene.film(sensor as usize, &self.sensors[sensor as usize]);
        let beam = scene.beam(sensor as usize);
        let side = film.width.max(film.height) as f32;
        // A slope of the heights is a difference of texels times half their number along the axis.
        let entry = match beam.optic {
            OpticRecord::Slab(_) => 0.5 * scene.size[0].max(scene.size[1]) as f32,
            OpticRecord::Cube(_) => 1.0,
        };
        let exposure = exposure(&film, 1).into_iter().fold(0.0, f32::max);
        brightest(&film, &beam.lamp) * exposure * side * entry
    }

    fn upload_light_settings(&self, (sensor, first_pixel): View, spp: u32) {
        let Passes::Light(passes) = &self.passes else {
            return;
        };
        let LightPasses { scene, arrays } = passes;
        let index = sensor as usize;
        let film = scene.film(index, &self.sensors[index]);
        let beam = scene.beam(index);
        let (mut slab, mut cube) = (Slab::zeroed(), Cube::zeroed());
        match &beam.optic {
            OpticRecord::Slab(record) => slab = slab_record(record),
            OpticRecord::Cube(record) => cube = cube_record(record),
        }
        let [x, y, z] = scene.size.map(|n| n as u32);
        let settings = LightSettings {
            parameter: self.slot(Some(scene.parameter)),
            size: [x, y, z, 0],
            slab,
            cube,
            screen: Screen {
                to_screen: beam.screen.to_screen,
                front: beam.screen.front,
                padding: [0; 3],
            },
            film: LightFilm {
                first_pixel,
                sensor,
                filter_at: arrays.filters[index],
                ..film_record(&film, &beam.lamp, spp)
            },
            lamp: lamp_record(&beam.lamp, arrays.lamps[scene.beam_of[index]]),
        };
        self.context.upload(&arrays.settings, 0, bytemuck::bytes_of(&settings));
    }
}

/// The factor on a path's splat for each colour: the film's exposure over the number of paths.
fn exposure(film: &Film<'_>, spp: u32) -> [f32; 3] {
    let paths = f64::from(film.width) * f64::from(film.height) * f64::from(spp);
    film.exposure.map(|c| (f64::from(c) / paths) as f32)
}

/// The most that a path adds to a film: the light's radiance times the film's pixels per area of the screen, at its nearest
/// corner.
fn brightest(film: &Film<'_>, lamp: &Lamp) -> f32 {
    let radiance = lamp.texels.iter().flatten().fold(0.0, |most: f32, c| most.max(c.abs()));
    let [a, b, c] = film.rows[2];
    // The screen's nearest corner.
    let nearest = (c - a.abs() - b.abs()).max(film.clip[0]).max(f32::MIN_POSITIVE);
    radiance * film.pixels / nearest.powi(3)
}

fn slab_record(record: &SlabRecord) -> Slab {
    let [origin, across, down] = record.entry;
    Slab {
        origin,
        across,
        down,
        thickness: record.thickness,
        eta: record.eta,
        outside: record.outside,
        entering: record.entering,
        inside: record.inside,
        padding: 0,
    }
}

fn cube_record(record: &CubeRecord) -> Cube {
    let [corner, across, down] = record.lamp;
    Cube {
        corner,
        step: record.step,
        across,
        most_steps: record.most_steps,
        down,
        refracts: u32::from(record.refracts),
        direction: record.direction,
        padding: 0,
    }
}

fn film_record(film: &Film<'_>, lamp: &Lamp, spp: u32) -> LightFilm {
    let [row_x, row_y, depth] = film.rows;
    let paths = u64::from(film.width) * u64::from(film.height) * u64::from(spp);
    LightFilm {
        row_x,
        pixels: film.pixels,
        row_y,
        near_clip: film.clip[0],
        depth,
        far_clip: film.clip[1].min(FAR),
        exposure: exposure(film, spp),
        units: units_of_film(brightest(film, lamp), paths),
        size: [film.width, film.height],
        radius: film.filter.radius,
        nodes: film.filter.nodes,
        node_count: film.filter.table.len() as u32,
        ..LightFilm::zeroed()
    }
}

fn lamp_record(lamp: &Lamp, first: u32) -> LampRecord {
    let [x, y, z] = lamp.to_uv.to_cols_array_2d();
    LampRecord {
        to_uv: [0, 1].map(|row: usize| [x[row], y[row], z[row], 0.0]),
        size: lamp.size.map(|n| n as u32),
        first,
        nearest: u32::from(lamp.nearest || lamp.texels.len() == 1),
        wrap: lamp.wrap_code(),
        padding: [0; 3],
    }
}
