//! The buffers of a scene on the device.

use super::context::Context;
use super::plan::Plan;
use super::records::reference;
use super::shaders::Accumulation;
use super::views::statistics_words;
use crate::device::{DeviceError, Result};
use crate::kernels::occupancy::reachable;
use crate::kernels::optimizer::Optimizer;
use crate::resident::Resident;
use crate::resident::layout::SceneRecord;
use crate::resident::references::Pixels;
use crate::transport::rays::pixel::PixelTable;

/// A buffer of parameters with their gradients and moments.
#[derive(Debug)]
pub(super) struct Bank {
    pub values: wgpu::Buffer,
    /// Whether `values` may be read as a uniform buffer.
    pub is_uniform: bool,
    pub gradient: wgpu::Buffer,
    /// What an adjoint pass adds to in place of the gradient, if it sums in whole numbers; zero between passes.
    pub sums: Option<wgpu::Buffer>,
    /// Always two, since shaders name two; those that the optimiser does not keep are of the least size.
    pub moments: Vec<wgpu::Buffer>,
}

impl Bank {
    /// A zeroed bank of a plan.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(
        context: &Context,
        plan: &Plan,
        bank: usize,
        accumulation: Accumulation,
        optimizer: Optimizer,
    ) -> Result<Self> {
        let moment_bytes = |moment: usize| match plan.banks[bank].tuned && moment < optimizer.moments() {
            true => plan.value_bytes(bank),
            false => 0,
        };
        let bytes = plan.value_bytes(bank);
        let is_uniform = plan.banks.len() == 1 && context.prefers_uniform(bytes);
        Ok(Self {
            values: match is_uniform {
                true => context.uniform_values()?,
                false => context.storage("values", bytes)?,
            },
            is_uniform,
            gradient: context.storage("gradient", plan.gradient_bytes(bank))?,
            sums: match accumulation.is_fixed() {
                true => Some(context.storage("sums", plan.sum_bytes(bank, accumulation))?),
                false => None,
            },
            moments: (0..2)
                .map(|moment| context.storage("moment", moment_bytes(moment)))
                .collect::<Result<_>>()?,
        })
    }

    /// The buffer that the rays of an adjoint pass add to.
    pub(super) fn target(&self) -> &wgpu::Buffer {
        self.sums.as_ref().unwrap_or(&self.gradient)
    }
}

/// The small tables that share a buffer: occupancy, texels within reach of its cells, and the batch's pixel table.
#[derive(Debug)]
pub(super) struct Tables {
    pub buffer: wgpu::Buffer,
    pub cells: u32,
    pub reach_at: u32,
    pub starts_at: u32,
    pub sensors_at: u32,
    /// Entries for which the pixel table has room, and the table that was uploaded last.
    capacity: usize,
    uploaded: PixelTable,
}

impl Tables {
    /// Tables for a scene, with room for pixel tables of `capacity` sensors.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(context: &Context, scene: &SceneRecord, capacity: usize) -> Result<Self> {
        let [x, y, z] = [0, 1, 2].map(|axis| scene.occupancy_size[axis]);
        let cells = x * y * z;
        let reach: Vec<u32> = (0..3).flat_map(|axis| reach(scene, axis)).collect();
        let starts_at = cells + reach.len() as u32;
        let sensors_at = starts_at + capacity as u32 + 1;
        let buffer = context.storage("tables", 4 * (u64::from(sensors_at) + capacity as u64))?;
        context.upload(&buffer, 4 * u64::from(cells), bytemuck::cast_slice(&reach));
        Ok(Self {
            buffer,
            cells,
            reach_at: cells,
            starts_at,
            sensors_at,
            capacity,
            uploaded: PixelTable::default(),
        })
    }

    /// Uploads a batch's pixel table, unless it was uploaded last.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn set_batch(&mut self, context: &Context, scene: &SceneRecord, table: &PixelTable) -> Result<()> {
        if *table == self.uploaded {
            return Ok(());
        }
        if table.sensors.len() > self.capacity {
            let larger = Self::new(context, scene, table.sensors.len())?;
            context.copy(&self.buffer, 0, &larger.buffer, 0, 4 * u64::from(self.cells));
            *self = larger;
        }
        let upload = |at: u32, words: &[u32]| {
            context.upload(&self.buffer, 4 * u64::from(at), bytemuck::cast_slice(words));
        };
        upload(self.starts_at, &table.starts);
        upload(self.sensors_at, &table.sensors);
        self.uploaded = table.clone();
        Ok(())
    }
}

/// First and last texel that lookups in each cell along an axis can reach.
fn reach(scene: &SceneRecord, axis: usize) -> Vec<u32> {
    let (cells, texels) = (scene.occupancy_size[axis] as usize, scene.sigma_size[axis] as usize);
    (0..cells)
        .flat_map(|cell| {
            let (first, last) = reachable(cell, cells, texels);
            [first as u32, last as u32]
        })
        .collect()
}

/// The references on the device.
#[derive(Debug)]
pub(super) struct References {
    pub buffer: wgpu::Buffer,
    pub kind: u32,
}

impl References {
    /// Uploads the references.
    ///
    /// # Errors
    /// They do not fit.
    pub(super) fn new(context: &Context, pixels: &Pixels) -> Result<Self> {
        let (kind, bytes): (u32, &[u8]) = match pixels {
            Pixels::None => (reference::NONE, &[]),
            Pixels::Constant(value) => (reference::CONSTANT, bytemuck::bytes_of(value)),
            Pixels::Unorm8(data) => (reference::UNORM8, bytemuck::cast_slice(data)),
            Pixels::Float(data) => (reference::FLOAT, bytemuck::cast_slice(data)),
        };
        let limit = context.summary.max_binding_bytes.min(context.summary.max_buffer_bytes);
        if bytes.len() as u64 > limit {
            return Err(DeviceError::TooLarge(format!(
                "the reference images take {} MiB, but {} gives a shader at most {} MiB of one array; reduce them with \
                 `downscale`, use fewer views, or use --device cpu",
                bytes.len().div_ceil(1 << 20),
                context.summary.name,
                limit >> 20,
            )));
        }
        let buffer = context.storage("references", bytes.len() as u64)?;
        context.upload(&buffer, 0, bytes);
        Ok(Self { buffer, kind })
    }
}

/// All arrays of a scene.
#[derive(Debug)]
pub(super) struct Arrays {
    pub plan: Plan,
    pub banks: Vec<Bank>,
    pub scene: wgpu::Buffer,
    pub sensors: wgpu::Buffer,
    pub tables: Tables,
    pub references: References,
    /// Image and adjoint image, four floats a pixel, and the pixels that they have room for.
    pub image: wgpu::Buffer,
    pub adjoint: wgpu::Buffer,
    /// Sums of pixels on which samples are spread, or light is splatted; as large as the largest film so far.
    pub film: wgpu::Buffer,
    pub pixels: u32,
    /// Eight words that an adjoint pass counts in, and behind them the sums of views that are parameters.
    pub statistics: wgpu::Buffer,
    /// Results of workgroups, four floats each, and for how many workgroups there is room.
    pub partials: wgpu::Buffer,
    pub reports: u32,
}

impl Arrays {
    /// Arrays for a scene; the values of its parameters are still zero.
    ///
    /// # Errors
    /// Something does not fit.
    pub(super) fn new(
        context: &Context,
        resident: &Resident,
        plan: Plan,
        accumulation: Accumulation,
        optimizer: Optimizer,
    ) -> Result<Self> {
        let bank = |bank| Bank::new(context, &plan, bank, accumulation, optimizer);
        let banks = (0..plan.banks.len()).map(bank).collect::<Result<_>>()?;
        let scene = context.uniform("scene", size_of::<SceneRecord>() as u64)?;
        context.upload(&scene, 0, bytemuck::bytes_of(&resident.scene));
        let sensors: &[u8] = bytemuck::cast_slice(&resident.sensors);
        let record = size_of::<crate::resident::layout::SensorRecord>();
        let sensors_buffer = context.storage("sensors", sensors.len().max(record) as u64)?;
        context.upload(&sensors_buffer, 0, sensors);
        Ok(Self {
            banks,
            plan,
            scene,
            sensors: sensors_buffer,
            tables: Tables::new(context, &resident.scene, resident.sensors.len().max(1))?,
            references: References::new(context, &resident.references)?,
            image: context.storage("image", 0)?,
            adjoint: context.storage("adjoint", 0)?,
            film: context.storage("film", 0)?,
            pixels: 0,
            statistics: context.storage(
                "statistics",
                4 * statistics_words(&resident.transport, resident.sensors.len()),
            )?,
            partials: context.storage("partials", 0)?,
            reports: 1,
        })
    }

    /// Makes room for an image.
    ///
    /// # Errors
    /// It does not fit.
    pub(super) fn fit_image(&mut self, context: &Context, pixels: u32) -> Result<()> {
        if pixels <= self.pixels {
            return Ok(());
        }
        let (bytes, limit) = (
            16 * u64::from(pixels),
            context.summary.max_binding_bytes.min(context.summary.max_buffer_bytes),
        );
        if bytes > limit {
            return Err(DeviceError::TooLarge(format!(
                "an image of {pixels} pixels does not fit {}, which takes {} at once; look at fewer views or rays an \
                 iteration, or use --device cpu",
                context.summary.name,
                limit / 16
            )));
        }
        self.image = context.storage("image", bytes)?;
        self.adjoint = context.storage("adjoint", bytes)?;
        self.pixels = pixels;
        Ok(())
    }

    /// Makes room for a film on which samples are spread, or light is splatted, of `each` bytes a pixel; `remedy` is advice for
    /// the error.
    ///
    /// # Errors
    /// It does not fit.
    pub(super) fn fit_film(&mut self, context: &Context, pixels: u32, each: u64, remedy: &str) -> Result<()> {
        let (bytes, limit) = (
            each * u64::from(pixels),
            context.summary.max_binding_bytes.min(context.summary.max_buffer_bytes),
        );
        if bytes > limit {
            return Err(DeviceError::TooLarge(format!(
                "a film of {pixels} pixels does not fit {}, which takes {} at once; {remedy}, or use --device cpu",
                context.summary.name,
                limit / each
            )));
        }
        if bytes > self.film.size() {
            self.film = context.storage("film", bytes)?;
        }
        Ok(())
    }

    /// Makes room for the reports of this many workgroups.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn fit_reports(&mut self, context: &Context, reports: u32) -> Result<()> {
        if reports > self.reports {
            self.partials = context.storage("partials", 16 * u64::from(reports))?;
            self.reports = reports;
        }
        Ok(())
    }

    /// The results of the first `reports` workgroups.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn read_reports(&self, context: &Context, reports: u32) -> Result<Vec<[f32; 4]>> {
        let bytes = context.download(&self.partials, 0, 16 * u64::from(reports))?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let banks = self
            .banks
            .iter()
            .flat_map(|b| b.moments.iter().chain([&b.values, &b.gradient]).chain(&b.sums));
        let others = [
            &self.scene,
            &self.sensors,
            &self.tables.buffer,
            &self.references.buffer,
            &self.image,
            &self.adjoint,
            &self.film,
            &self.statistics,
            &self.partials,
        ];
        banks.chain(others).map(wgpu::Buffer::size).sum()
    }
}
