//! A world on the device: its records, and the tables that follow from its parameters' values.

use bytemuck::{Pod, Zeroable};

use super::Gpu;
use super::adapters::AdapterSummary;
use super::context::Context;
use super::plan::{Plan, mebibytes};
use super::records::{ELEMENT_GROUP, Elements};
use super::shaders::{Binding, Kernel};
use crate::device::{DeviceError, Result};
use crate::params::Shape;
use crate::resident::Resident;
use crate::resident::environment::{environment_table, table_len};
use crate::resident::layout::{
    BlockRecord, CornerRecord, EmissiveTriangleRecord, MediumRecord, NodeRecord, PathSettings, SceneRecord, background,
};
use crate::resident::paths::PathScene;

/// Shaders may assume that floats are finite: the twin of `FAR` in `shaders/transport/scene/records.wgsl`.
const FAR: f32 = 1e30;

/// Texels of a cell of majorants that an invocation looks at; larger cells, those of media that repeat, are left to the
/// host.
const CELL_TEXELS: usize = 1 << 12;

/// Where the kinds of records begin, in units of 16 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Places {
    pub surfaces: u32,
    pub media: u32,
    pub volumes: u32,
    pub phases: u32,
    pub lights: u32,
    pub textures: u32,
    pub parameters: u32,
    pub nodes: u32,
    pub blocks: u32,
    pub corners: u32,
    pub texels: u32,
    pub emissive_triangles: u32,
}

/// The buffers of a world; nearly empty without one.
#[derive(Debug)]
pub(super) struct PathArrays {
    pub record: wgpu::Buffer,
    pub records: wgpu::Buffer,
    pub places: Places,
    /// Majorants of all media, then the environment map's table.
    pub bounds: wgpu::Buffer,
    pub environment_at: u32,
}

impl PathArrays {
    /// Uploads the records of a scene whose parameters have these shapes, each tuned or not, and lie where the plan
    /// says.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(context: &Context, resident: &Resident, plan: &Plan, shapes: &[(Shape, bool)]) -> Result<Self> {
        let record = context.uniform("world", size_of::<PathSettings>() as u64)?;
        let Some(world) = &resident.world else {
            return Ok(Self {
                record,
                records: context.storage("records", 0)?,
                places: Places::default(),
                bounds: context.storage("bounds", 0)?,
                environment_at: 0,
            });
        };
        admit(&record_parts(world), &context.summary)?;
        admit(&bound_parts(world, &resident.scene), &context.summary)?;
        context.upload(&record, 0, bytemuck::bytes_of(&world.settings));
        let mut packed = Packed::default();
        let media: Vec<MediumRecord> = world.media.iter().map(finite).collect();
        let parameters: Vec<[u32; 4]> = plan
            .places
            .iter()
            .zip(shapes)
            .map(|(place, (_, tuned))| [place.first as u32, u32::from(*tuned), 0, 0])
            .collect();
        let places = Places {
            surfaces: packed.add(&world.surfaces),
            media: packed.add(&media),
            volumes: packed.add(&world.volumes),
            phases: packed.add(&world.phases),
            lights: packed.add(&world.lights),
            textures: packed.add(&world.textures),
            parameters: packed.add(&parameters),
            nodes: packed.add(&world.bvh.nodes),
            blocks: packed.add(&world.bvh.blocks),
            corners: packed.add(&world.corners),
            texels: packed.add(&world.texels),
            emissive_triangles: packed.add(&world.emissive_triangles),
        };
        let records = context.storage("records", packed.0.len() as u64)?;
        context.upload(&records, 0, &packed.0);
        let environment_at = world.majorants();
        let floats = environment_at + environment_len(&resident.scene);
        Ok(Self {
            record,
            records,
            places,
            bounds: context.storage("bounds", 4 * floats as u64)?,
            environment_at: environment_at as u32,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        [&self.record, &self.records, &self.bounds]
            .map(wgpu::Buffer::size)
            .iter()
            .sum()
    }
}

/// A part of a buffer: what it is in the plural, its bytes, and how to have fewer.
type Part = (&'static str, u64, &'static str);

/// What makes up the records, but for what is small in any scene.
fn record_parts(world: &PathScene) -> [Part; 3] {
    let bytes = |count: usize, each: usize| (count * each) as u64;
    let meshes = bytes(world.bvh.nodes.len(), size_of::<NodeRecord>())
        + bytes(world.bvh.blocks.len(), size_of::<BlockRecord>())
        + bytes(world.corners.len(), size_of::<CornerRecord>());
    let images = bytes(world.texels.len(), size_of::<[f32; 4]>());
    let emissive_triangles = bytes(world.emissive_triangles.len(), size_of::<EmissiveTriangleRecord>());
    [
        ("meshes", meshes, "take meshes of fewer triangles"),
        ("bitmaps", images, "take smaller images"),
        ("area lights", emissive_triangles, "let smaller meshes shine"),
    ]
}

/// What makes up the bounds.
fn bound_parts(world: &PathScene, scene: &SceneRecord) -> [Part; 2] {
    let majorants = 4 * world.majorants() as u64;
    let table = 4 * environment_len(scene) as u64;
    [
        ("majorants", majorants, "lower the resolution of `sigma_t`"),
        ("probabilities of the environment map", table, "take a smaller `envmap`"),
    ]
}

/// Refuses parts of one buffer that together exceed what an adapter gives a shader.
///
/// # Errors
/// The largest part: its size, the limit, and what would help.
fn admit(parts: &[Part], adapter: &AdapterSummary) -> Result<()> {
    /// Room for the records that are small in any scene.
    const OTHERS: u64 = 1 << 20;
    let limit = adapter.max_binding_bytes.min(adapter.max_buffer_bytes);
    let total: u64 = parts.iter().map(|(_, bytes, _)| bytes).sum();
    let largest = parts.iter().max_by_key(|(_, bytes, _)| *bytes);
    match largest {
        Some((what, bytes, remedy)) if total > limit.saturating_sub(OTHERS) => Err(DeviceError::TooLarge(format!(
            "the scene's {what} take {}, but {} gives a shader at most {} of one array; {remedy}, or use --device cpu",
            mebibytes(*bytes),
            adapter.name,
            mebibytes(limit),
        ))),
        _ => Ok(()),
    }
}

/// Records one after the other; each is a multiple of 16 bytes long.
#[derive(Default)]
struct Packed(Vec<u8>);

impl Packed {
    /// Appends records and returns where they begin, in units of 16 bytes.
    fn add<T: Pod>(&mut self, records: &[T]) -> u32 {
        const { assert!(size_of::<T>().is_multiple_of(16), "records are vectors of four words") };
        let at = self.0.len() / 16;
        self.0.extend_from_slice(bytemuck::cast_slice(records));
        at as u32
    }
}

/// A medium whose box is no larger than shaders can express.
fn finite(medium: &MediumRecord) -> MediumRecord {
    let clamp = |corner: [f32; 3]| corner.map(|x| x.clamp(-FAR, FAR));
    MediumRecord {
        low: clamp(medium.low),
        high: clamp(medium.high),
        ..*medium
    }
}

/// Entries of the environment map's table.
fn environment_len(scene: &SceneRecord) -> usize {
    match scene.background {
        background::ENVMAP => table_len(scene.env_size),
        _ => 0,
    }
}

impl Gpu {
    /// Rebuilds the tables of a world: all of them, or those that a step may have changed.
    pub(super) fn rebuild_world(&mut self, all: bool) -> Result<()> {
        let Some(world) = self.resident.world.take() else {
            return Ok(());
        };
        let rebuilt = self.rebuild_tables(&world, all);
        self.resident.world = Some(world);
        rebuilt
    }

    fn rebuild_tables(&mut self, world: &PathScene, all: bool) -> Result<()> {
        let stale = |slot: u32| all || self.params.parameters[slot as usize].tuning.is_some();
        let media: Vec<usize> = (0..world.media.len())
            .filter(|&m| stale(world.volumes[world.media[m].sigma_t as usize].slot))
            .collect();
        let environment = self.resident.scene.background == background::ENVMAP && stale(world.background);
        for medium in media {
            self.rebuild_majorants(world, medium)?;
        }
        if environment {
            let data = self.values(world.background as usize)?;
            let table = environment_table(self.resident.scene.env_size, &data);
            let at = 4 * u64::from(self.arrays.paths.environment_at);
            self.context
                .upload(&self.arrays.paths.bounds, at, bytemuck::cast_slice(&table));
        }
        self.context.check()
    }

    fn rebuild_majorants(&mut self, world: &PathScene, index: usize) -> Result<()> {
        let medium = &world.media[index];
        let sigma = &world.volumes[medium.sigma_t as usize];
        let (reach, slot) = (world.reach(index), sigma.slot as usize);
        let longest = |axis: &Vec<(usize, usize)>| axis.iter().map(|(first, last)| last - first + 1).max().unwrap_or(1);
        let bounds = &self.arrays.paths.bounds;
        if reach.iter().map(longest).product::<usize>() > CELL_TEXELS {
            let majorants = world.majorants_of(index, &self.values(slot)?);
            let at = 4 * u64::from(medium.majorants[3]);
            self.context.upload(bounds, at, bytemuck::cast_slice(&majorants));
            return Ok(());
        }
        self.pipelines.prepare(&self.context, Kernel::Majorants)?;
        let [x, y, z, first] = medium.majorants;
        let groups = (x * y * z).div_ceil(ELEMENT_GROUP);
        let rule = world.majorant_rule(index);
        let record = Elements {
            size: [x, y, z, 1],
            source_size: sigma.size,
            first,
            count: x * y * z,
            source_first: self.arrays.plan.places[slot].first as u32,
            groups_x: self.context.fold(groups)[0],
            threads: groups * ELEMENT_GROUP,
            scale: medium.scale,
            margin: rule.margin,
            least: rule.floor,
            ..Elements::zeroed()
        };
        let axes: Vec<[u32; 4]> = reach
            .iter()
            .flatten()
            .map(|&(first, last)| [first as u32, last as u32, 0, 0])
            .collect();
        let table = self.context.storage("axes", 16 * axes.len() as u64)?;
        self.context.upload(&table, 0, bytemuck::cast_slice(&axes));
        let bank = &self.arrays.banks[self.arrays.plan.places[slot].bank];
        let buffers = [
            (Binding::Source, &bank.values),
            (Binding::Parameter, bounds),
            (Binding::Axes, &table),
        ];
        let pipeline = self.pipelines.get(Kernel::Majorants);
        self.context
            .dispatch(pipeline, bytemuck::bytes_of(&record), &buffers, groups);
        Ok(())
    }

    /// A parameter's values, from the device.
    fn values(&self, parameter: usize) -> Result<Vec<f32>> {
        let place = self.arrays.plan.places[parameter];
        let buffer = &self.arrays.banks[place.bank].values;
        let bytes = self
            .context
            .download(buffer, 4 * place.first as u64, 4 * place.len as u64)?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::AdapterKind;

    #[test]
    fn a_refusal_names_the_largest_part_and_the_limit() {
        let adapter = AdapterSummary {
            name: "a small GPU".into(),
            backend: "vulkan".into(),
            kind: AdapterKind::DiscreteGpu,
            driver: String::new(),
            max_binding_bytes: 128 << 20,
            max_buffer_bytes: u64::MAX,
            max_storage_buffers: 8,
            float_atomics: true,
            wide_atomics: true,
        };
        let parts =
            |meshes: u64, images: u64| [("meshes", meshes << 20, "fewer"), ("bitmaps", images << 20, "smaller")];
        assert!(admit(&parts(100, 27), &adapter).is_ok());
        let message = admit(&parts(60, 70), &adapter).expect_err("130 MiB").to_string();
        for part in [
            "bitmaps take 70 MiB",
            "a small GPU",
            "128 MiB",
            "smaller, or use --device cpu",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}
