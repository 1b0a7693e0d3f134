//! Grids of a scene as fog volumes.

use glam::DAffine3;

use crate::io::vdb::{self, Volume};
use crate::params::{Kind, ParamSet, Parameter, Quantity};
use crate::scene::{DensityActivation, Scene};

/// A grid and its values, under its usual name in other programs.
#[derive(Debug, Clone)]
pub struct Fog {
    pub name: String,
    size: [usize; 3],
    channels: usize,
    data: Vec<f32>,
    to_world: DAffine3,
}

impl Fog {
    /// The grid as it is written to a `.vdb`.
    pub fn volume(&self) -> Volume<'_> {
        Volume {
            name: &self.name,
            size: self.size,
            channels: self.channels,
            data: &self.data,
            to_world: self.to_world,
        }
    }
}

/// The grids of a scene with the values of `params`, and a sentence for each volume that is left out. The density of a
/// radiance field is its value after the activation; extinctions are those of the scene file, before `scale`.
pub fn of_scene(scene: &Scene, params: &ParamSet) -> (Vec<Fog>, Vec<String>) {
    let (mut fogs, mut notes) = (Vec::new(), Vec::new());
    let grids: Vec<&Parameter> = params.parameters.iter().filter(|p| p.kind == Kind::Grid).collect();
    for &grid in &grids {
        let path = &grid.path;
        if !matches!(grid.shape.channels, 1 | 3) {
            let channels = grid.shape.channels;
            notes.push(format!(
                "`{path}` is left out: OpenVDB's grids have one channel or three, it has {channels}"
            ));
            continue;
        }
        // The short name suffices if no other grid has it.
        let short = vdb::usual_name(path);
        let is_alone = grids
            .iter()
            .filter(|other| vdb::usual_name(&other.path) == short)
            .count()
            == 1;
        let name = match (is_alone, path.rsplit_once('.')) {
            (false, Some((object, _))) => format!("{object}.{short}"),
            _ => short.to_owned(),
        };
        let activation = scene.field.as_ref().map(|field| field.density_activation);
        let data = match (grid.quantity, activation) {
            (Quantity::Density, Some(activation)) => grid.values.iter().map(|x| activated(activation, *x)).collect(),
            _ => grid.values.clone(),
        };
        fogs.push(Fog {
            name,
            size: grid.shape.size,
            channels: grid.shape.channels,
            data,
            to_world: DAffine3::from_cols_array(&grid.to_world.to_cols_array().map(f64::from)),
        });
    }
    for medium in &scene.world.media {
        if medium.sigma_t.array.kind != Kind::Grid {
            notes.push(format!(
                "`{}` is left out: it is the same everywhere",
                medium.sigma_t.array.path
            ));
        }
    }
    (fogs, notes)
}

/// The density after its activation.
fn activated(activation: DensityActivation, x: f32) -> f32 {
    match activation {
        DensityActivation::Relu => x.max(0.0),
        DensityActivation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        DensityActivation::Exp => x.exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_are_those_that_light_meets() {
        for x in [-30.0, -1.0, 0.0, 0.5, 3.0, 30.0f32] {
            let found = [
                DensityActivation::Relu,
                DensityActivation::Softplus,
                DensityActivation::Exp,
            ]
            .map(|activation| activated(activation, x));
            let wide = f64::from(x);
            let expected = [wide.max(0.0), wide.exp().ln_1p(), wide.exp()];
            for (a, b) in found.into_iter().zip(expected) {
                assert!((f64::from(a) - b).abs() <= 1e-6 * b.abs(), "{x}: {a} {b}");
            }
        }
    }
}
