//! Pictures of splats on the GPU: lists of tiles, built on the device by a prefix sum, and the passes over them.

use std::ops::Range;

use bytemuck::Zeroable;

use super::Gpu;
use super::context::Context;
use super::records::{ELEMENT_GROUP, Slot, SplatSettings};
use super::shaders::{Binding, Kernel};
use crate::device::units::Units;
use crate::device::{Batch, DeviceError, Keys, ReplayStats, Result};
use crate::resident::layout::SensorRecord;
use crate::resident::splats::{Placed, SplatScene};

/// Edge of a tile in pixels: the twin of `shaders/bind/splats.wgsl`.
const TILE: u32 = 16;

/// Bytes of a projected splat.
const SPLAT_BYTES: u64 = 48;

/// The most pairs of a tile and a group of splats, and the fewest splats of a group.
const CELLS: u32 = 1 << 22;
const GROUP: u32 = 64;

/// A picture of splats, and what its passes keep.
#[derive(Debug)]
pub(super) struct SplatPasses {
    pub scene: SplatScene,
    pub arrays: SplatArrays,
}

/// Buffers of the passes over splats.
#[derive(Debug)]
pub(super) struct SplatArrays {
    settings: wgpu::Buffer,
    /// Projected splats, in pixels.
    projected: wgpu::Buffer,
    /// Where the lists of tiles begin, then the lists.
    lists: wgpu::Buffer,
    /// For each pixel of the batch the number of entries that it has processed.
    looked_at: wgpu::Buffer,
    /// Entries for which there is room in `lists`, and pixels in `looked_at`.
    words: u32,
    pixels: u32,
}

impl SplatArrays {
    /// Arrays for a number of splats.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(context: &Context, scene: &SplatScene) -> Result<Self> {
        let bytes = SPLAT_BYTES * scene.count as u64;
        let limit = context.summary.max_binding_bytes.min(context.summary.max_buffer_bytes);
        if bytes > limit {
            return Err(DeviceError::TooLarge(format!(
                "{} splats do not fit {}, which takes {} at once; take fewer, or use --device cpu",
                scene.count,
                context.summary.name,
                limit / SPLAT_BYTES
            )));
        }
        Ok(Self {
            settings: context.uniform("settings", size_of::<SplatSettings>() as u64)?,
            projected: context.storage("splats", bytes)?,
            lists: context.storage("lists", 0)?,
            looked_at: context.storage("looked at", 0)?,
            words: 0,
            pixels: 0,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let all = [&self.settings, &self.projected, &self.lists, &self.looked_at];
        all.map(wgpu::Buffer::size).iter().sum()
    }

    /// Makes room for this many words of lists.
    fn fit_lists(&mut self, context: &Context, words: u64) -> Result<()> {
        if words <= u64::from(self.words) {
            return Ok(());
        }
        let limit = context.summary.max_binding_bytes.min(context.summary.max_buffer_bytes) / 4;
        if words > limit.min(u64::from(u32::MAX)) {
            return Err(DeviceError::TooLarge(format!(
                "lists of {words} pairs of a tile and a splat do not fit {}, which takes {limit} at once; bound `scale` to \
                 make splats smaller, take fewer, or use --device cpu",
                context.summary.name
            )));
        }
        // A third more, so that lists that grow a little do not move at every iteration.
        let roomy = (words + words / 3).min(limit).min(u64::from(u32::MAX));
        self.lists = context.storage("lists", 4 * roomy)?;
        self.words = roomy as u32;
        Ok(())
    }
}

/// Rows of tiles of a view; `first_pixel` is the view's first pixel in the image of the batch.
#[derive(Debug, Clone)]
struct Band {
    sensor: SensorRecord,
    first_pixel: u32,
    rows: Range<u32>,
}

impl Band {
    /// The rows that hold a pixel of a run of the batch; None if none does.
    fn of_run((sensor, first_pixel): (SensorRecord, u32), run: &Range<u32>) -> Option<Self> {
        let end = first_pixel + sensor.width * sensor.height;
        let pixels = run.start.max(first_pixel)..run.end.min(end);
        let row = sensor.width * TILE;
        (!pixels.is_empty()).then(|| Self {
            sensor,
            first_pixel,
            rows: (pixels.start - first_pixel) / row..(pixels.end - first_pixel).div_ceil(row),
        })
    }
}

/// The settings of a pass over rows of tiles of a view.
fn settings_of(scene: &SplatScene, slot: impl Fn(usize) -> Slot, emitter: Option<usize>, band: &Band) -> SplatSettings {
    let slots = &scene.slots;
    let sensor = &band.sensor;
    let tiles_x = sensor.width.div_ceil(TILE);
    let tiles_y = band.rows.end - band.rows.start;
    let most = (CELLS / (tiles_x * tiles_y).max(1)).clamp(1, 1024);
    let film = Placed::of(sensor);
    let count = scene.count as u32;
    let group = count.div_ceil(most).max(GROUP);
    SplatSettings {
        position: slot(slots.position),
        scale: slot(slots.scale),
        rotation: slot(slots.rotation),
        color: slot(slots.color),
        opacity: slot(slots.opacity),
        background: emitter.map_or(Slot::NONE, slot),
        count,
        group,
        groups: count.div_ceil(group).max(1),
        groups_x: 1,
        tiles_x,
        tiles_y,
        width: sensor.width,
        height: sensor.height,
        first_pixel: band.first_pixel,
        side: film.side,
        offset: film.offset,
        first_row: band.rows.start,
        padding: [0; 3],
    }
}

/// Number of pairs of a tile and a group.
fn cells(settings: &SplatSettings) -> u32 {
    settings.tiles_x * settings.tiles_y * settings.groups
}

impl Gpu {
    /// Renders whole views of a picture of splats.
    pub(super) fn render_splats_pass(&mut self, batch: &Batch) -> Result<()> {
        if batch.drawn.is_some() {
            return Err(DeviceError::Unavailable(
                "splats are drawn a tile at a time: look at whole views, not at single pixels".into(),
            ));
        }
        for kernel in [
            Kernel::ProjectSplats,
            Kernel::CountSplats,
            Kernel::ScanSplats,
            Kernel::ListSplats,
            Kernel::RenderSplats,
        ] {
            self.pipelines.prepare(&self.context, kernel)?;
        }
        let pixels = batch.pixels();
        self.arrays.fit_image(&self.context, pixels)?;
        let context = &self.context;
        let super::Passes::Splats(passes) = &mut self.passes else {
            return Ok(());
        };
        if passes.arrays.pixels < pixels {
            passes.arrays.looked_at = context.storage("looked at", 4 * u64::from(pixels))?;
            passes.arrays.pixels = pixels;
        }
        let rendered = self.render_bands(batch);
        self.agreed(rendered)
    }

    fn render_bands(&mut self, batch: &Batch) -> Result<()> {
        for band in self.bands(batch) {
            let settings = self.list_band(&band)?;
            self.over_splats(Kernel::RenderSplats, settings, settings.tiles_x * settings.tiles_y);
        }
        self.context.check()
    }

    /// The rows of tiles that this rank renders: those of its run, and those behind with pixels that its loss compares.
    fn bands(&self, batch: &Batch) -> Vec<Band> {
        let run = self.own_run(batch).start..self.compared(batch).end;
        let views = views(&self.sensors, batch).into_iter();
        views.filter_map(|view| Band::of_run(view, &run)).collect()
    }

    /// Adds the derivatives by all splats to the gradients.
    pub(super) fn splats_adjoint_pass(&mut self, batch: &Batch, keys: Keys) -> Result<ReplayStats> {
        self.pipelines.prepare(&self.context, Kernel::DerivativesSplats)?;
        self.context.clear([&self.arrays.statistics]);
        self.begin_sums();
        let units = self.units(batch.pixels(), 1);
        let sent = self.derivatives_of_bands(batch, keys, units);
        self.agreed(sent)?;
        self.finish_adjoint(units)
    }

    fn derivatives_of_bands(&mut self, batch: &Batch, keys: Keys, units: Units) -> Result<()> {
        let bands = self.bands(batch);
        let end = self.own_run(batch).end;
        for band in &bands {
            // If there is a single band, its lists are still there from the render.
            let settings = match bands.len() {
                1 => self.settings(band),
                _ => self.list_band(band)?,
            };
            let mut launch = self.launch(batch, keys, 1);
            (launch.digits, launch.exponent) = (units.digits, units.exponent);
            launch.last_pixel = end;
            let groups = settings.tiles_x * settings.tiles_y;
            launch.groups_x = self.context.fold(groups)[0];
            self.upload_settings(settings, groups);
            let pipeline = self.pipelines.get(Kernel::DerivativesSplats);
            let buffers = self.ray_buffers();
            self.context
                .dispatch(pipeline, bytemuck::bytes_of(&launch), &buffers, groups);
        }
        Ok(())
    }

    fn settings(&self, band: &Band) -> SplatSettings {
        let super::Passes::Splats(passes) = &self.passes else {
            return SplatSettings::zeroed();
        };
        settings_of(
            &passes.scene,
            |parameter| self.slot(Some(parameter)),
            self.emitter,
            band,
        )
    }

    /// Projects all splats into a view and lists them tile by tile.
    fn list_band(&mut self, band: &Band) -> Result<SplatSettings> {
        let settings = self.settings(band);
        let cells = cells(&settings);
        self.over_splats(Kernel::ProjectSplats, settings, settings.count.div_ceil(ELEMENT_GROUP));
        self.fit_lists(u64::from(cells) + 1)?;
        let mut total = self.count_band(settings)?;
        if self.fit_lists(u64::from(cells) + 1 + u64::from(total))? {
            // The counts were in the buffer that has been replaced.
            total = self.count_band(settings)?;
        }
        if total > 0 {
            self.over_splats(Kernel::ListSplats, settings, settings.groups.div_ceil(ELEMENT_GROUP));
        }
        Ok(settings)
    }

    /// Counts the entries of each tile and takes the prefix sum; returns the number of all entries.
    fn count_band(&mut self, settings: SplatSettings) -> Result<u32> {
        let super::Passes::Splats(passes) = &self.passes else {
            return Ok(0);
        };
        self.context.clear([&passes.arrays.lists]);
        self.over_splats(Kernel::CountSplats, settings, settings.groups.div_ceil(ELEMENT_GROUP));
        self.over_splats(Kernel::ScanSplats, settings, 1);
        let super::Passes::Splats(passes) = &self.passes else {
            return Ok(0);
        };
        let at = 4 * u64::from(cells(&settings));
        let bytes = self.context.download(&passes.arrays.lists, at, 4)?;
        Ok(bytemuck::pod_read_unaligned(&bytes))
    }

    /// Makes room for words of lists; true if the buffer was replaced and its content lost.
    fn fit_lists(&mut self, words: u64) -> Result<bool> {
        let super::Passes::Splats(passes) = &mut self.passes else {
            return Ok(false);
        };
        let before = passes.arrays.words;
        passes.arrays.fit_lists(&self.context, words)?;
        Ok(passes.arrays.words != before)
    }

    fn upload_settings(&self, settings: SplatSettings, groups: u32) {
        let super::Passes::Splats(passes) = &self.passes else {
            return;
        };
        let groups_x = self.context.fold(groups)[0];
        let settings = SplatSettings { groups_x, ..settings };
        self.context
            .upload(&passes.arrays.settings, 0, bytemuck::bytes_of(&settings));
    }

    /// Runs a kernel with these settings.
    fn over_splats(&self, kernel: Kernel, settings: SplatSettings, groups: u32) {
        self.upload_settings(settings, groups);
        let pipeline = self.pipelines.get(kernel);
        self.context.dispatch(pipeline, &[0; 16], &self.ray_buffers(), groups);
    }
}

impl SplatPasses {
    /// The buffers that its kernels bind beside those of all passes over rays.
    pub(super) fn buffers(&self) -> [(Binding, &wgpu::Buffer); 4] {
        [
            (Binding::Settings, &self.arrays.settings),
            (Binding::Splats, &self.arrays.projected),
            (Binding::Lists, &self.arrays.lists),
            (Binding::LookedAt, &self.arrays.looked_at),
        ]
    }
}

/// The views of a batch, each with its first pixel in the batch's image.
fn views(sensors: &[SensorRecord], batch: &Batch) -> Vec<(SensorRecord, u32)> {
    let mut first = 0;
    let view = |&sensor: &u32| {
        let record = sensors[sensor as usize];
        let here = first;
        first += record.width * record.height;
        (record, here)
    };
    batch.table.sensors.iter().map(view).collect()
}

/// The first pixel of each row of tiles in a batch of whole views.
pub(super) fn tile_rows(sensors: &[SensorRecord], batch: &Batch) -> Vec<u32> {
    let rows = |(sensor, first): (SensorRecord, u32)| {
        let rows = (0..sensor.height).step_by(TILE as usize);
        rows.map(move |y| first + y * sensor.width)
    };
    views(sensors, batch).into_iter().flat_map(rows).collect()
}
