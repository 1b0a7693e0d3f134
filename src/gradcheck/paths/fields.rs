//! A scene's parameters as arrays of any number type, and accumulators of their gradients.

use crate::params::ParamSet;
use crate::resident::layout::{SceneRecord, VolumeRecord};
use crate::transport::lookup::background::background_color_adjoint;
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::volume::volume_adjoint;
use crate::transport::number::Number;
use crate::transport::number::dual::Dual;
use crate::transport::number::tape::Recorded;
use crate::transport::scene::records::{Fields, Sink};

/// The parameters with two sides: f32 values for decisions, as on the devices, and values of any number type for the
/// integrand.
#[derive(Debug, Clone, Default)]
pub struct Sides<N> {
    pub integrand: Vec<Vec<N>>,
    sampling: Vec<Vec<f32>>,
}

impl<N: Number> Sides<N> {
    /// The parameters' values converted by `lift`, in order.
    pub fn new(params: &ParamSet, mut lift: impl FnMut(f32) -> N) -> Self {
        let values = || params.parameters.iter().map(|p| &p.values);
        Self {
            integrand: values().map(|v| v.iter().map(|x| lift(*x)).collect()).collect(),
            sampling: values().cloned().collect(),
        }
    }

    /// Zeros of the same lengths.
    pub fn zeros(&self) -> Vec<Vec<N>> {
        self.integrand.iter().map(|v| vec![N::lift(0.0); v.len()]).collect()
    }
}

macro_rules! fields {
    ($number:ty, $tracked:expr) => {
        impl Fields<$number> for Sides<$number> {
            const TWO_SIDED: bool = true;
            const TRACKED: bool = $tracked;
            #[inline(always)]
            fn integrand(&self, slot: u32) -> &[$number] {
                &self.integrand[slot as usize]
            }
            #[inline(always)]
            fn sampling(&self, slot: u32) -> &[f32] {
                &self.sampling[slot as usize]
            }
        }
    };
}

fields!(f64, false);
fields!(Dual, true);
fields!(Recorded, true);

/// A sink that accumulates gradients in arrays of the parameters' shapes.
#[derive(Debug)]
pub struct Sums<'a> {
    pub scene: &'a SceneRecord,
    pub background: u32,
    pub gradient: &'a mut [Vec<f64>],
}

impl Sink<f64> for Sums<'_> {
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f64; 3], _: u32) {
        let gradient = &mut self.gradient[volume.slot as usize];
        volume_adjoint(volume, at, d, |entry, share| gradient[entry] += share);
    }

    fn entries(&mut self, slot: u32, first: u32, d: [f64; 3], channels: u32) {
        for c in 0..channels as usize {
            self.gradient[slot as usize][first as usize + c] += d[c];
        }
    }

    fn background(&mut self, d: [f32; 3], d_radiance: [f64; 3]) {
        background_color_adjoint(self.scene, &mut self.gradient[self.background as usize], d, d_radiance);
    }
}

/// A sink that calls `tell` with each derivative that a replay sends: parameter, flat index and value.
#[derive(Debug)]
pub struct Tell<'a, T> {
    pub scene: &'a SceneRecord,
    pub background: u32,
    pub tell: T,
}

impl<T: FnMut(usize, usize, f64)> Sink<f64> for Tell<'_, T> {
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f64; 3], _: u32) {
        volume_adjoint(volume, at, d, |entry, share| {
            (self.tell)(volume.slot as usize, entry, share)
        });
    }

    fn entries(&mut self, slot: u32, first: u32, d: [f64; 3], channels: u32) {
        for c in 0..channels as usize {
            (self.tell)(slot as usize, first as usize + c, d[c]);
        }
    }

    fn background(&mut self, d: [f32; 3], d_radiance: [f64; 3]) {
        use crate::resident::layout::background;
        use crate::transport::lookup::background::env_stencil;
        use crate::transport::rays::camera::{normalize, transform_vector};
        if self.scene.background != background::ENVMAP {
            return self.value(self.background, d_radiance, 3);
        }
        let local = normalize(transform_vector(&self.scene.world_to_env, d));
        let at = env_stencil(self.scene.env_size, local);
        for k in 0..4 {
            for c in 0..3 {
                let share = d_radiance[c] * f64::from(at.weights[k]);
                (self.tell)(self.background as usize, at.texels[k] as usize * 3 + c, share);
            }
        }
    }
}
