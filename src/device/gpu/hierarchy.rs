//! The hierarchy that an adapter builds of a scene for ray queries (`shaders/bind/hierarchy.wgsl`): all meshes'
//! triangles, and boxes around the other shapes where there are many.

use super::contents::has_shapes_in_tree;
use super::context::Context;
use crate::device::{DeviceError, Result};
use crate::resident::bvh::box_of_surface;
use crate::resident::layout::{BLOCK, BlockRecord, NONE};
use crate::resident::paths::PathScene;

/// The largest coordinate of a box: squares of it are finite, which builders of hierarchies rely on.
const FAR: f32 = 1e18;

/// The mask of instances by which every ray tests every instance.
const ALL_RAYS: u8 = 0xff;

/// The identity transform, a row for each coordinate: geometry is in world coordinates.
const IDENTITY: [f32; 12] = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];

/// An adapter's hierarchy.
#[derive(Debug)]
pub(super) struct Hierarchy(wgpu::Tlas);

impl Hierarchy {
    /// Has the adapter build the hierarchy of a scene.
    ///
    /// # Errors
    /// It takes fewer triangles or shapes, or has not enough memory.
    pub(super) fn new(context: &Context, scene: &PathScene) -> Result<Self> {
        let mut parts = Vec::new();
        let corners = corners(&scene.bvh.blocks);
        if !corners.is_empty() {
            check_count(context, "triangles", corners.len() / 3)?;
            parts.push(Part::of_triangles(context, &corners)?);
        }
        if has_shapes_in_tree(scene) {
            check_count(context, "shapes", scene.singles.len())?;
            parts.push(Part::of_boxes(context, &boxes(scene))?);
        }
        let mut top = context.device.create_tlas(&wgpu::CreateTlasDescriptor {
            label: Some("hierarchy"),
            max_instances: parts.len() as u32,
            flags: wgpu::AccelerationStructureFlags::PREFER_FAST_TRACE,
            update_mode: wgpu::AccelerationStructureUpdateMode::Build,
        });
        for (index, part) in parts.iter().enumerate() {
            top[index] = Some(wgpu::TlasInstance::new(&part.hierarchy, IDENTITY, 0, ALL_RAYS));
        }
        let mut encoder = context.device.create_command_encoder(&Default::default());
        let entries: Vec<_> = parts.iter().map(Part::entry).collect();
        encoder.build_acceleration_structures(&entries, [&top]);
        context.queue.submit([encoder.finish()]);
        context.check()?;
        Ok(Self(top))
    }

    /// What shaders bind.
    pub(super) fn binding(&self) -> wgpu::BindingResource<'_> {
        self.0.as_binding()
    }
}

/// Primitives of one kind (triangles or boxes), and the hierarchy over them.
struct Part {
    hierarchy: wgpu::Blas,
    data: wgpu::Buffer,
    size: Size,
}

enum Size {
    Triangles(wgpu::BlasTriangleGeometrySizeDescriptor),
    Boxes(wgpu::BlasAABBGeometrySizeDescriptor),
}

impl Part {
    /// Triangles, each of three corners.
    fn of_triangles(context: &Context, corners: &[[f32; 3]]) -> Result<Self> {
        let size = wgpu::BlasTriangleGeometrySizeDescriptor {
            vertex_format: wgpu::VertexFormat::Float32x3,
            vertex_count: corners.len() as u32,
            index_format: None,
            index_count: None,
            flags: wgpu::AccelerationStructureGeometryFlags::OPAQUE,
        };
        let descriptors = vec![size.clone()];
        let sizes = wgpu::BlasGeometrySizeDescriptors::Triangles { descriptors };
        Self::new(context, bytemuck::cast_slice(corners), sizes, Size::Triangles(size))
    }

    /// Boxes by their lower and upper corners.
    fn of_boxes(context: &Context, boxes: &[[[f32; 3]; 2]]) -> Result<Self> {
        let size = wgpu::BlasAABBGeometrySizeDescriptor {
            primitive_count: boxes.len() as u32,
            flags: wgpu::AccelerationStructureGeometryFlags::NO_DUPLICATE_ANY_HIT_INVOCATION,
        };
        let descriptors = vec![size.clone()];
        let sizes = wgpu::BlasGeometrySizeDescriptors::AABBs { descriptors };
        Self::new(context, bytemuck::cast_slice(boxes), sizes, Size::Boxes(size))
    }

    fn new(context: &Context, bytes: &[u8], sizes: wgpu::BlasGeometrySizeDescriptors, size: Size) -> Result<Self> {
        let data = context.input_of_hierarchy(bytes)?;
        let descriptor = wgpu::CreateBlasDescriptor {
            label: Some("hierarchy"),
            flags: wgpu::AccelerationStructureFlags::PREFER_FAST_TRACE,
            update_mode: wgpu::AccelerationStructureUpdateMode::Build,
        };
        Ok(Self {
            hierarchy: context.device.create_blas(&descriptor, sizes),
            data,
            size,
        })
    }

    /// The primitives as the build takes them.
    fn entry(&self) -> wgpu::BlasBuildEntry<'_> {
        let geometry = match &self.size {
            Size::Triangles(size) => wgpu::BlasGeometries::TriangleGeometries(vec![wgpu::BlasTriangleGeometry {
                size,
                vertex_buffer: &self.data,
                first_vertex: 0,
                vertex_stride: size_of::<[f32; 3]>() as u64,
                index_buffer: None,
                first_index: None,
                transform_buffer: None,
                transform_buffer_offset: None,
            }]),
            Size::Boxes(size) => wgpu::BlasGeometries::AabbGeometries(vec![wgpu::BlasAabbGeometry {
                size,
                stride: wgpu::AABB_GEOMETRY_MIN_STRIDE,
                aabb_buffer: &self.data,
                primitive_offset: 0,
            }]),
        };
        wgpu::BlasBuildEntry {
            blas: &self.hierarchy,
            geometry,
        }
    }
}

/// The corners of all blocks' triangles, [`BLOCK`] a block, so that a hit names block and lane. In place of triangles that a
/// block lacks there are degenerate ones in one of its points, which no ray meets.
fn corners(blocks: &[BlockRecord]) -> Vec<[f32; 3]> {
    let corner = |block: &BlockRecord, lane: usize, k: usize| [0, 1, 2].map(|axis| block.corners[3 * k + axis][lane]);
    let mut all = Vec::with_capacity(3 * BLOCK * blocks.len());
    for block in blocks {
        for lane in 0..BLOCK {
            all.extend(match block.triangles[lane] {
                NONE => [corner(block, 0, 0); 3],
                _ => [0, 1, 2].map(|k| corner(block, lane, k)),
            });
        }
    }
    all
}

/// Boxes around the shapes that are no meshes, in their order.
fn boxes(scene: &PathScene) -> Vec<[[f32; 3]; 2]> {
    let around = |number: &u32| box_of_surface(&scene.surfaces[*number as usize]);
    let finite = |corner: [f32; 3]| corner.map(|x| x.clamp(-FAR, FAR));
    scene.singles.iter().map(|number| around(number).map(finite)).collect()
}

/// Refuses more things than an adapter's hierarchy holds.
///
/// # Errors
/// How many there are, how many there may be, and what to do.
fn check_count(context: &Context, what: &str, count: usize) -> Result<()> {
    let most = context.device.limits().max_blas_primitive_count;
    match count as u64 <= u64::from(most) {
        true => Ok(()),
        false => Err(DeviceError::TooLarge(format!(
            "the scene has {count} {what}, but the ray queries of {} take {most}; leave out --ray-queries",
            context.summary.name
        ))),
    }
}
