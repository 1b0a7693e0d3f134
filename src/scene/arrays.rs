//! The list of all arrays of a scene: everything that treats them alike iterates over it.

use glam::Affine3A;

use super::{Array, Background, Bsdf, Lookup, Optic, Phase, Scene, Texture, Wrap, bsdf};
use crate::params::Quantity;

/// An array and its attributes in the scene.
#[derive(Debug)]
pub struct Visited<A> {
    pub array: A,
    pub quantity: Quantity,
    /// The transform from a grid's unit cube to the world; the identity for other arrays.
    pub to_world: Affine3A,
    /// Whether lookups are trilinear and clamped: only such grids can be optimised.
    pub(super) plain: bool,
    /// Whether it is a normal map or a bump map over a smooth BSDF: it turns mirrored directions, which derivatives at fixed
    /// paths cannot follow.
    pub mirrors: bool,
}

impl<A> Visited<A> {
    fn new(array: A, quantity: Quantity) -> Self {
        Self {
            array,
            quantity,
            to_world: Affine3A::IDENTITY,
            plain: true,
            mirrors: false,
        }
    }
}

/// Defines the list twice, for shared and for mutable references.
macro_rules! visitors {
    ($all:ident, $phase:ident, $lookup:ident, $bsdf:ident, $texture:ident $(, $mutable:tt)?) => {
        /// Every array of the scene: the field's, the splats', the background's, the views', then those of media (`sigma_t`,
        /// `albedo`, `emission`, the phase function's), of the optic, of surfaces (textures, radiance, displacement, motion), of
        /// groups, of lights and of sensors.
        pub(super) fn $all(scene: & $($mutable)? Scene) -> Vec<Visited<& $($mutable)? Array>> {
            let mut all = Vec::new();
            // Paths importance sample an environment map in proportion to its radiance; rays through a radiance field
            // do not.
            let environment = match scene.world.is_empty() {
                true => Quantity::Light,
                false => Quantity::Environment,
            };
            if let Some(field) = & $($mutable)? scene.field {
                let to_world = field.unit_to_world();
                let density = Visited::new(& $($mutable)? field.sigma_t, Quantity::Density);
                let color = Visited::new(& $($mutable)? field.sh_coeffs, Quantity::Coefficients);
                all.extend([density, color].map(|visited| Visited { to_world, ..visited }));
            }
            if let Some(splats) = & $($mutable)? scene.splats {
                let arrays = [
                    (& $($mutable)? splats.position, Quantity::Position),
                    (& $($mutable)? splats.scale, Quantity::Scale),
                    (& $($mutable)? splats.rotation, Quantity::Rotation),
                    (& $($mutable)? splats.color, Quantity::Color),
                    (& $($mutable)? splats.opacity, Quantity::Opacity),
                ];
                all.extend(arrays.map(|(array, quantity)| Visited::new(array, quantity)));
            }
            match & $($mutable)? scene.background {
                Background::None => {}
                Background::Constant { radiance } => all.push(Visited::new(radiance, Quantity::Light)),
                Background::Envmap { data, scale, .. } => {
                    all.push(Visited::new(data, environment));
                    // Rays through a radiance field have no derivatives by `scale`.
                    if environment == Quantity::Environment {
                        all.push(Visited::new(scale, Quantity::Light));
                    }
                }
            }
            for part in & $($mutable)? scene.views {
                let quantity = part.quantity;
                all.push(Visited::new(& $($mutable)? part.array, quantity));
            }
            for medium in & $($mutable)? scene.world.media {
                all.push($lookup(& $($mutable)? medium.sigma_t, Quantity::Extinction));
                all.push($lookup(& $($mutable)? medium.albedo, Quantity::Albedo));
                if let Some(emission) = & $($mutable)? medium.emission {
                    all.push($lookup(emission, Quantity::Emission));
                }
                $phase(& $($mutable)? medium.phase, &mut all);
            }
            match & $($mutable)? scene.optic {
                Some(Optic::Slab(slab)) => {
                    all.push(Visited::new(& $($mutable)? slab.heights, Quantity::Elevation));
                }
                Some(Optic::Cube(cube)) => {
                    let to_world = cube.unit_to_world();
                    let visited = Visited::new(& $($mutable)? cube.index, Quantity::DenserIndex);
                    all.push(Visited { to_world, ..visited });
                }
                None => {}
            }
            for surface in & $($mutable)? scene.world.surfaces {
                $bsdf(& $($mutable)? surface.bsdf, &mut all);
                if let Some(emitter) = & $($mutable)? surface.emitter {
                    $texture(& $($mutable)? emitter.radiance, Quantity::Light, &mut all);
                }
                if let Some(displacement) = & $($mutable)? surface.displacement {
                    $texture(& $($mutable)? displacement.height, Quantity::Displacement, &mut all);
                }
                for part in & $($mutable)? surface.motion {
                    let quantity = part.quantity;
                    all.push(Visited::new(& $($mutable)? part.array, quantity));
                }
            }
            for group in & $($mutable)? scene.world.groups {
                for surface in & $($mutable)? group.surfaces {
                    $bsdf(& $($mutable)? surface.bsdf, &mut all);
                }
            }
            for light in & $($mutable)? scene.world.lights {
                all.push(Visited::new(& $($mutable)? light.intensity, Quantity::Light));
                if let Some(texture) = & $($mutable)? light.texture {
                    $texture(texture, Quantity::Light, &mut all);
                }
                for part in & $($mutable)? light.motion {
                    let quantity = part.quantity;
                    all.push(Visited::new(& $($mutable)? part.array, quantity));
                }
            }
            for sensor in & $($mutable)? scene.sensors {
                for part in & $($mutable)? sensor.motion {
                    let quantity = part.quantity;
                    all.push(Visited::new(& $($mutable)? part.array, quantity));
                }
            }
            all
        }

        fn $phase<'a>(phase: &'a $($mutable)? Phase, all: &mut Vec<Visited<&'a $($mutable)? Array>>) {
            match phase {
                Phase::Isotropic | Phase::Rayleigh => {}
                Phase::Hg { g } => all.push(Visited::new(g, Quantity::Asymmetry)),
                Phase::Blend { weight, phases } => {
                    all.push($lookup(weight, Quantity::Weight));
                    for phase in & $($mutable)? **phases {
                        $phase(phase, all);
                    }
                }
            }
        }

        fn $bsdf<'a>(bsdf: &'a $($mutable)? Bsdf, all: &mut Vec<Visited<&'a $($mutable)? Array>>) {
            match bsdf {
                Bsdf::Null => {}
                Bsdf::Material(material) => {
                    for input in & $($mutable)? material.inputs {
                        $texture(& $($mutable)? input.texture, input.quantity, all);
                    }
                }
                Bsdf::TwoSided { sides } => {
                    for side in sides {
                        $bsdf(& $($mutable)? side.bsdf, all);
                    }
                }
                Bsdf::Mask { opacity, nested } => {
                    $texture(opacity, Quantity::Weight, all);
                    $bsdf(& $($mutable)? nested.bsdf, all);
                }
                Bsdf::Blend { weight, nested } => {
                    $texture(weight, Quantity::Weight, all);
                    for part in & $($mutable)? **nested {
                        $bsdf(& $($mutable)? part.bsdf, all);
                    }
                }
                Bsdf::Relief { relief, nested } => {
                    let (first, quantity, mirrors) = (all.len(), relief.quantity(), bsdf::mirrors(&nested.bsdf));
                    $texture(& $($mutable)? relief.texture, quantity, all);
                    for visited in &mut all[first..] {
                        visited.mirrors = mirrors;
                    }
                    $bsdf(& $($mutable)? nested.bsdf, all);
                }
            }
        }

        fn $texture<'a>(
            texture: &'a $($mutable)? Texture,
            quantity: Quantity,
            all: &mut Vec<Visited<&'a $($mutable)? Array>>,
        ) {
            match texture {
                Texture::Constant(value) => all.push(Visited::new(value, quantity)),
                Texture::Checkerboard { colors, .. } => {
                    for color in & $($mutable)? **colors {
                        all.push(Visited::new(color, quantity));
                    }
                }
                Texture::Squares { textures, .. } => {
                    for texture in & $($mutable)? **textures {
                        $texture(texture, quantity, all);
                    }
                }
                Texture::Bitmap(map) => all.push(Visited::new(& $($mutable)? map.data, quantity)),
                Texture::Attribute(map) => all.push(Visited::new(& $($mutable)? map.values, quantity)),
                Texture::Volume { volume, .. } => all.push($lookup(volume, quantity)),
            }
        }

        fn $lookup(lookup: & $($mutable)? Lookup, quantity: Quantity) -> Visited<& $($mutable)? Array> {
            let (to_world, plain) = (lookup.to_world, !lookup.nearest && lookup.wrap == Wrap::Clamp);
            Visited {
                to_world,
                plain,
                ..Visited::new(& $($mutable)? lookup.array, quantity)
            }
        }
    };
}

/// Every array of a BSDF.
pub(super) fn of_bsdf(bsdf: &Bsdf) -> Vec<&Array> {
    let mut all = Vec::new();
    bsdf_arrays(bsdf, &mut all);
    all.into_iter().map(|visited| visited.array).collect()
}

visitors!(all, phase_arrays, placed, bsdf_arrays, texture_arrays);
visitors!(
    all_mut,
    phase_arrays_mut,
    placed_mut,
    bsdf_arrays_mut,
    texture_arrays_mut,
    mut
);
