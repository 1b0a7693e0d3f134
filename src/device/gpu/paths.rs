//! Surfaces, media and lights on the device: their records, and the tables that follow from the parameters' values.

use bytemuck::{Pod, Zeroable};

use super::Gpu;
use super::adapters::AdapterSummary;
use super::contents::has_shapes_in_tree;
use super::context::{Context, UNIFORM_BYTES};
use super::hierarchy::Hierarchy;
use super::motion::Motions;
use super::plan::{Plan, mebibytes};
use super::records::{ELEMENT_GROUP, Elements, Slot};
use super::shaders::{Binding, Kernel, RecordSource};
use super::waves::Waves;
use crate::device::{DeviceError, Result};
use crate::params::Shape;
use crate::resident::layout::{
    BlockRecord, CornerRecord, EmissiveTriangleRecord, MediumRecord, NodeRecord, PathSettings, SceneRecord,
};
use crate::resident::paths::PathScene;
use crate::transport::scene::coats::{COAT_FLOATS, Coat};
use crate::transport::scene::light_table::{sampling_tables, slots_of_tables};

/// Stands for infinity, since shaders may assume that floats are finite: the twin of `FAR` in
/// `shaders/transport/scene/records.wgsl`.
const FAR: f32 = 1e30;

/// Most texels of a majorant's cell that an invocation reads; larger cells, those of media that repeat, are left to the
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
    pub bsdfs: u32,
    pub leaves: u32,
    pub factors: u32,
    pub textures: u32,
    pub parameters: u32,
    pub nodes: u32,
    pub blocks: u32,
    pub corners: u32,
    pub emissive_triangles: u32,
    pub distance_grids: u32,
    pub distances: u32,
    pub rooms: u32,
    pub motions: u32,
    pub displaced: u32,
    pub light_motions: u32,
    pub sensor_motions: u32,
    pub around: u32,
    pub singles: u32,
}

/// A scene of paths and its buffers.
#[derive(Debug)]
pub(super) struct PathPasses {
    pub scene: PathScene,
    pub arrays: PathArrays,
    /// The buffers of waves, if paths are followed in waves.
    pub waves: Option<Waves>,
    /// The record of light tracing, if the scene asks for it: a [`super::records::TracerRecord`].
    pub tracer: Option<wgpu::Buffer>,
}

impl PathPasses {
    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let waves = self.waves.as_ref().map_or(0, Waves::bytes);
        self.arrays.bytes() + waves + self.tracer.as_ref().map_or(0, wgpu::Buffer::size)
    }
}

/// The buffers of surfaces, media and lights.
#[derive(Debug)]
pub(super) struct PathArrays {
    pub record: wgpu::Buffer,
    pub records: RecordArrays,
    pub places: Places,
    /// Majorants of all media, the sampling tables of lights, then the coats of plastics.
    pub bounds: wgpu::Buffer,
    pub environment_at: u32,
    pub coats_at: u32,
    /// The adapter's own hierarchy, if ray queries search it.
    pub hierarchy: Option<Hierarchy>,
}

/// The buffers of a scene's records.
#[derive(Debug)]
pub(super) struct RecordArrays {
    pub all: wgpu::Buffer,
    /// A copy of those that the scene has few of, if `source` is [`RecordSource::FewUniform`].
    pub few: Option<wgpu::Buffer>,
    /// Where shaders read them from.
    pub source: RecordSource,
}

impl RecordArrays {
    /// Buffers that hold these records, a uniform one where shaders should read from that: for all of them if it holds them, else
    /// for those that the scene has few of.
    ///
    /// # Errors
    /// There is not enough memory.
    fn new(context: &Context, packed: &Packed, places: &Places) -> Result<Self> {
        let is_served = |bytes: usize| context.prefers_uniform(bytes as u64);
        let source = if is_served(packed.0.len()) {
            RecordSource::Uniform
        } else if is_served(few(packed, places).len()) {
            RecordSource::FewUniform
        } else {
            RecordSource::Storage
        };
        let arrays = Self {
            all: match source {
                RecordSource::Uniform => context.uniform("records", UNIFORM_BYTES)?,
                RecordSource::FewUniform | RecordSource::Storage => {
                    context.storage("records", packed.0.len() as u64)?
                }
            },
            few: match source {
                RecordSource::FewUniform => Some(context.uniform("few records", UNIFORM_BYTES)?),
                RecordSource::Uniform | RecordSource::Storage => None,
            },
            source,
        };
        arrays.upload(context, packed, places);
        Ok(arrays)
    }

    /// Uploads records, for which there is room.
    fn upload(&self, context: &Context, packed: &Packed, places: &Places) {
        context.upload(&self.all, 0, &packed.0);
        if let Some(buffer) = &self.few {
            context.upload(buffer, 0, few(packed, places));
        }
    }

    /// Whether there is room for these records.
    fn holds(&self, packed: &Packed) -> bool {
        packed.0.len() as u64 <= self.all.size()
    }

    /// The buffers by the names that shaders bind them by.
    pub(super) fn buffers(&self) -> impl Iterator<Item = (Binding, &wgpu::Buffer)> {
        let few = self.few.as_ref().map(|few| (Binding::FewRecords, few));
        [(Binding::Records, &self.all)].into_iter().chain(few)
    }
}

impl PathArrays {
    /// Uploads the records of a scene whose parameters have these shapes, each tuned or not, and lie where the plan
    /// says; `common` is what passes of every kind read. With `ray_queries` the adapter builds a hierarchy of its own.
    ///
    /// # Errors
    /// The adapter cannot hold them.
    pub(super) fn new(
        context: &Context,
        common: &SceneRecord,
        scene: &PathScene,
        plan: &Plan,
        shapes: &[(Shape, bool)],
        ray_queries: bool,
    ) -> Result<Self> {
        let record = context.uniform("settings", size_of::<PathSettings>() as u64)?;
        check_fits(&record_parts(scene), &context.summary)?;
        check_fits(&bound_parts(scene, common), &context.summary)?;
        context.upload(&record, 0, bytemuck::bytes_of(&scene.settings));
        let (packed, places) = pack(scene, plan, shapes, &Motions::default());
        let environment_at = scene.majorants();
        let coats_at = environment_at + scene.sampling_tables_len(common);
        let floats = coats_at + COAT_FLOATS * scene.bsdfs.coats();
        Ok(Self {
            record,
            records: RecordArrays::new(context, &packed, &places)?,
            places,
            bounds: context.storage("bounds", 4 * floats as u64)?,
            environment_at: environment_at as u32,
            coats_at: coats_at as u32,
            hierarchy: ray_queries.then(|| Hierarchy::new(context, scene)).transpose()?,
        })
    }

    /// Uploads the records anew after shapes have moved, with the records of their motions.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn replace(
        &mut self,
        context: &Context,
        scene: &PathScene,
        plan: &Plan,
        shapes: &[(Shape, bool)],
        motions: &Motions,
    ) -> Result<()> {
        let (packed, places) = pack(scene, plan, shapes, motions);
        if self.records.holds(&packed) {
            self.records.upload(context, &packed, &places);
        } else {
            self.records = RecordArrays::new(context, &packed, &places)?;
        }
        self.places = places;
        context.upload(&self.record, 0, bytemuck::bytes_of(&scene.settings));
        if self.hierarchy.is_some() {
            self.hierarchy = Some(Hierarchy::new(context, scene)?);
        }
        Ok(())
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let records = self.records.buffers().map(|(_, buffer)| buffer);
        [&self.record, &self.bounds]
            .into_iter()
            .chain(records)
            .map(wgpu::Buffer::size)
            .sum()
    }
}

/// Those records that a scene has few of.
fn few<'a>(packed: &'a Packed, places: &Places) -> &'a [u8] {
    &packed.0[..16 * places.nodes as usize]
}

/// All records of a scene, and where each kind begins: first those that it has few of, whose number does not change, then those
/// from the hierarchy's nodes on.
fn pack(scene: &PathScene, plan: &Plan, shapes: &[(Shape, bool)], motions: &Motions) -> (Packed, Places) {
    let mut packed = Packed::default();
    let media: Vec<MediumRecord> = scene.media.iter().map(finite).collect();
    let parameters: Vec<Slot> = plan
        .places
        .iter()
        .zip(shapes)
        .zip(&scene.magnitudes)
        .map(|((place, (shape, tuned)), magnitude)| Slot::new(*place, *shape, *tuned, *magnitude))
        .collect();
    let distances: Vec<[f32; 4]> = in_groups(&scene.distances.values);
    let rooms: Vec<[u8; 16]> = in_groups(&scene.distances.rooms);
    // How many shapes other than meshes are tested in turn, and then the indices of all of these shapes.
    let in_turn = if has_shapes_in_tree(scene) {
        0
    } else {
        scene.singles.len()
    };
    let mut singles = vec![in_turn as u32];
    singles.extend(&scene.singles);
    let places = Places {
        surfaces: packed.add(&scene.surfaces),
        media: packed.add(&media),
        volumes: packed.add(&scene.volumes),
        phases: packed.add(&scene.phases),
        lights: packed.add(&scene.lights),
        bsdfs: packed.add(&scene.bsdfs.bsdfs),
        leaves: packed.add(&scene.bsdfs.leaves),
        factors: packed.add(&scene.bsdfs.factors),
        textures: packed.add(&scene.bsdfs.textures),
        parameters: packed.add(&parameters),
        distance_grids: packed.add(&scene.distances.grids),
        singles: packed.add(&in_groups::<u32, 4>(&singles)),
        nodes: packed.add(&scene.bvh.nodes),
        blocks: packed.add(&scene.bvh.blocks),
        corners: packed.add(&scene.corners),
        emissive_triangles: packed.add(&scene.emissive_triangles),
        distances: packed.add(&distances),
        rooms: packed.add(&rooms),
        motions: packed.add(&motions.of_surfaces),
        displaced: packed.add(&motions.displaced),
        light_motions: packed.add(&motions.of_lights),
        sensor_motions: packed.add(&motions.of_sensors),
        around: packed.add(&in_groups::<u32, 4>(&motions.around)),
    };
    (packed, places)
}

/// Values in groups of 16 bytes, of which the last may be padded.
fn in_groups<T: Copy + Default, const N: usize>(values: &[T]) -> Vec<[T; N]> {
    let group = |values: &[T]| std::array::from_fn(|i| values.get(i).copied().unwrap_or_default());
    values.chunks(N).map(group).collect()
}

/// A part of a buffer: its name in the plural, its bytes, and advice for having fewer.
type Part = (&'static str, u64, &'static str);

/// The parts of the buffer of records that may be large.
fn record_parts(paths: &PathScene) -> [Part; 3] {
    let bytes = |count: usize, each: usize| (count * each) as u64;
    let meshes = bytes(paths.bvh.nodes.len(), size_of::<NodeRecord>())
        + bytes(paths.bvh.blocks.len(), size_of::<BlockRecord>())
        + bytes(paths.corners.len(), size_of::<CornerRecord>());
    let emissive_triangles = bytes(paths.emissive_triangles.len(), size_of::<EmissiveTriangleRecord>());
    [
        ("meshes", meshes, "take meshes of fewer triangles"),
        ("area lights", emissive_triangles, "let smaller meshes shine"),
        (
            "signed distances",
            bytes(paths.distances.values.len(), size_of::<f32>()) + bytes(paths.distances.rooms.len(), 1),
            "take an `sdfgrid` of fewer points",
        ),
    ]
}

/// The parts of the buffer of bounds that may be large.
fn bound_parts(paths: &PathScene, scene: &SceneRecord) -> [Part; 2] {
    let majorants = 4 * paths.majorants() as u64;
    let table = 4 * paths.sampling_tables_len(scene) as u64;
    [
        ("majorants", majorants, "lower the resolution of `sigma_t`"),
        (
            "probabilities of images that shine",
            table,
            "take a smaller `envmap`, or smaller textures of lights",
        ),
    ]
}

/// Refuses parts of one buffer that together exceed what an adapter gives a shader.
///
/// # Errors
/// The largest part: its size, the limit, and what would help.
fn check_fits(parts: &[Part], adapter: &AdapterSummary) -> Result<()> {
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

impl Gpu {
    /// Rebuilds majorants and the sampling tables of lights: all of them, or those that a step may have changed.
    /// [`Kernel::Majorants`] has been prepared.
    pub(super) fn rebuild_path_tables(&self, passes: &PathPasses, all: bool) -> Result<()> {
        let PathPasses { scene, arrays, .. } = passes;
        let stale = |slot: u32| all || self.params.parameters[slot as usize].tuning.is_some();
        let media = (0..scene.media.len()).filter(|&m| stale(scene.volumes[scene.media[m].sigma_t as usize].slot));
        for medium in media {
            self.rebuild_majorants(passes, medium)?;
        }
        let slots = slots_of_tables(&self.scene, scene);
        if slots.iter().any(|slot| stale(*slot)) {
            let values = self.values_of(&slots)?;
            let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
            let tables = sampling_tables(&self.scene, scene, &values);
            let at = 4 * u64::from(arrays.environment_at);
            self.context.upload(&arrays.bounds, at, bytemuck::cast_slice(&tables));
        }
        let slots: Vec<u32> = scene.bsdfs.coat_slots().collect();
        if slots.iter().any(|slot| stale(*slot)) {
            let values = self.values_of(&slots)?;
            let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
            let mut coats = Vec::new();
            scene.bsdfs.rebuild_coats(&values, &mut coats);
            let floats: Vec<f32> = coats.iter().flat_map(Coat::floats).collect();
            let at = 4 * u64::from(arrays.coats_at);
            self.context.upload(&arrays.bounds, at, bytemuck::cast_slice(&floats));
        }
        self.context.check()
    }

    /// The values of these parameters, by slot; those of all other parameters are empty.
    pub(super) fn values_of(&self, slots: &[u32]) -> Result<Vec<Vec<f32>>> {
        let mut values = vec![Vec::new(); self.params.parameters.len()];
        for &slot in slots {
            values[slot as usize] = self.values(slot as usize)?;
        }
        Ok(values)
    }

    fn rebuild_majorants(&self, passes: &PathPasses, index: usize) -> Result<()> {
        let PathPasses { scene, arrays, .. } = passes;
        let medium = &scene.media[index];
        let sigma = &scene.volumes[medium.sigma_t as usize];
        let (reach, slot) = (scene.reach(index), sigma.slot as usize);
        let longest = |axis: &Vec<(usize, usize)>| axis.iter().map(|(first, last)| last - first + 1).max().unwrap_or(1);
        let bounds = &arrays.bounds;
        if reach.iter().map(longest).product::<usize>() > CELL_TEXELS {
            let majorants = scene.majorants_of(index, &self.values(slot)?);
            let at = 4 * u64::from(medium.majorants[3]);
            self.context.upload(bounds, at, bytemuck::cast_slice(&majorants));
            return Ok(());
        }
        let [x, y, z, first] = medium.majorants;
        let groups = (x * y * z).div_ceil(ELEMENT_GROUP);
        let rule = scene.majorant_rule(index);
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
    use crate::device::gpu::adapters::AdapterKind;

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
            subgroups: true,
            ray_queries: false,
        };
        let parts =
            |meshes: u64, images: u64| [("meshes", meshes << 20, "fewer"), ("bitmaps", images << 20, "smaller")];
        assert!(check_fits(&parts(100, 27), &adapter).is_ok());
        let message = check_fits(&parts(60, 70), &adapter).expect_err("130 MiB").to_string();
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
