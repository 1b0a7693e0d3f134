//! The image textures of surfaces, at any depth in their BSDFs.

use super::{Bsdf, Surface, Texture, TextureMap};

impl Surface {
    /// The image textures of its BSDF and its emitter.
    pub fn images(&self) -> Vec<&TextureMap> {
        let mut found = Vec::new();
        add_bsdf(&self.bsdf, &mut found);
        if let Some(emitter) = &self.emitter {
            add(&emitter.radiance, &mut found);
        }
        found
    }
}

fn add<'a>(texture: &'a Texture, found: &mut Vec<&'a TextureMap>) {
    match texture {
        Texture::Bitmap(map) => found.push(map),
        Texture::Squares { textures, .. } => textures.iter().for_each(|texture| add(texture, found)),
        Texture::Constant(_) | Texture::Checkerboard { .. } | Texture::Attribute(_) | Texture::Volume { .. } => {}
    }
}

fn add_bsdf<'a>(bsdf: &'a Bsdf, found: &mut Vec<&'a TextureMap>) {
    match bsdf {
        Bsdf::Null => {}
        Bsdf::Material(material) => material.inputs.iter().for_each(|input| add(&input.texture, found)),
        Bsdf::TwoSided { sides } => sides.iter().for_each(|side| add_bsdf(&side.bsdf, found)),
        Bsdf::Mask { opacity, nested } => {
            add(opacity, found);
            add_bsdf(&nested.bsdf, found);
        }
        Bsdf::Blend { weight, nested } => {
            add(weight, found);
            nested.iter().for_each(|part| add_bsdf(&part.bsdf, found));
        }
        Bsdf::Relief { relief, nested } => {
            add(&relief.texture, found);
            add_bsdf(&nested.bsdf, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Every image texture among the scene's arrays is one of some surface's `images`.
    #[test]
    fn every_image_belongs_to_a_surface() {
        for file in ["scenes/relief.json", "scenes/painted_room.json"] {
            let scene = crate::scene::load(Path::new(file)).expect("a scene");
            let mut known: Vec<&str> = scene
                .arrays()
                .iter()
                .filter(|array| array.kind == crate::params::Kind::Texture)
                .map(|array| array.path.as_str())
                .collect();
            let surfaces = scene.world.surfaces.iter();
            let mut found: Vec<&str> = surfaces
                .flat_map(|s| s.images())
                .map(|map| map.data.path.as_str())
                .collect();
            known.sort_unstable();
            known.dedup();
            found.sort_unstable();
            found.dedup();
            assert!(!known.is_empty(), "{file}");
            assert_eq!(known, found, "{file}");
        }
    }
}
