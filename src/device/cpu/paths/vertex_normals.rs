//! Derivatives by the normals of meshes' vertices. A pass sums them beside those by parameters, and then sends each sum on to the
//! vertices around once, in place of once for every path.

use super::passes::Values;
use crate::resident::layout::VolumeRecord;
use crate::resident::vertices::Vertices;
use crate::transport::lookup::grid::Stencil;
use crate::transport::scene::records::Sink;
use crate::transport::scene::vertices::vertex_normals_adjoint;

/// For each mesh that moves the entries of its normals: three a vertex, or none if its faces have their own normals or its
/// parameter is not optimised.
pub(in crate::device::cpu) fn entries_of(meshes: &[Vertices], is_tuned: impl Fn(usize) -> bool) -> Vec<usize> {
    let entries = |mesh: &Vertices| match &mesh.around {
        Some(around) if is_tuned(mesh.slot as usize) => 3 * around.vertices(),
        _ => 0,
    };
    meshes.iter().map(entries).collect()
}

/// Sends the derivatives by each mesh's normals on to the gradients of the parameters.
pub(super) fn send_on(meshes: &[Vertices], values: &Values, by_normals: &[Vec<f32>], gradients: &mut [Vec<f32>]) {
    for (mesh, by_normals) in meshes.iter().zip(by_normals) {
        let gradient = &mut gradients[mesh.slot as usize];
        vertex_normals_adjoint(mesh, values, by_normals, &mut Gradient(gradient));
    }
}

/// A sink into the gradient of a mesh's parameter, the only one that it is asked for.
struct Gradient<'a>(&'a mut [f32]);

impl Sink<f32> for Gradient<'_> {
    fn volume(&mut self, _: &VolumeRecord, _: &Stencil, _: [f32; 3], _: u32) {}

    fn entries(&mut self, _: u32, first: u32, d: [f32; 3], channels: u32) {
        for (sum, d) in self.0[first as usize..].iter_mut().zip(&d[..channels as usize]) {
            *sum += d;
        }
    }

    fn background(&mut self, _: [f32; 3], _: [f32; 3]) {}
}
