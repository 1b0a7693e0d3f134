//! What an integrator that moves the points of chains of smooth glass and mirrors does not reach.

use super::layout::{BsdfRecord, LeafRecord, NONE, TextureRecord, leaf, texture};
use super::paths::PathScene;
use crate::params::ParamSet;

/// Vertices that a chain may have: the edges of a path but the last.
const MOST_VERTICES: u32 = 16;

/// What of the scene the derivatives of `prb_attached` would leave out, in one sentence; None where they are whole, and for
/// other integrators.
pub(super) fn obstacle(paths: &PathScene, params: &ParamSet) -> Option<String> {
    if !paths.attached {
        return None;
    }
    if !paths.media.is_empty() {
        return Some(
            "`prb_attached` knows no media; remove them, or use `prbvolpath`, which moves no points of paths".into(),
        );
    }
    if paths.settings.max_depth > MOST_VERTICES + 1 {
        let most = MOST_VERTICES + 1;
        return Some(format!(
            "`prb_attached` keeps the vertices of a chain, {MOST_VERTICES} at most; set its `max_depth` to {most} or less"
        ));
    }
    let of_bsdf = paths
        .bsdfs
        .bsdfs
        .iter()
        .find_map(|record| bsdf_obstacle(paths, params, record));
    of_bsdf.or_else(|| {
        let pictures = paths.lights.iter().filter(|light| light.texture != NONE);
        let kinds = pictures.map(|light| paths.bsdfs.textures[light.texture as usize].kind);
        let unknown = kinds
            .into_iter()
            .any(|kind| !matches!(kind, texture::CONSTANT | texture::BITMAP));
        unknown.then(|| {
            "`prb_attached` knows lights of one radiance or of a `bitmap`; give lights one of these".to_string()
        })
    })
}

/// The same of a BSDF.
fn bsdf_obstacle(paths: &PathScene, params: &ParamSet, record: &BsdfRecord) -> Option<String> {
    let leaves = |[first, count]: [u32; 2]| &paths.bsdfs.leaves[first as usize..][..count as usize];
    let all = leaves(record.front).iter().chain(leaves(record.back));
    all.into_iter().find_map(|record| leaf_obstacle(paths, params, record))
}

/// The same of a leaf.
fn leaf_obstacle(paths: &PathScene, params: &ParamSet, record: &LeafRecord) -> Option<String> {
    let look = |number: u32| &paths.bsdfs.textures[number as usize];
    let textures = record.first_texture..record.first_texture + record.textures;
    let mut values = textures.map(look);
    if is_black(params, record, values.clone()) {
        return None;
    }
    let is_smooth = matches!(record.kind, leaf::DIELECTRIC | leaf::THIN_DIELECTRIC | leaf::CONDUCTOR);
    if !is_smooth || record.factors > 0 {
        return Some(
            "`prb_attached` follows light through `dielectric`, `thindielectric` and `conductor` to lights and the background \
             alone: where it meets any other `bsdf` that is not a black `diffuse`, derivatives by what turns it on the way there \
             are not known; use one of these BSDFs, or `prb`"
                .into(),
        );
    }
    if values.any(|texture| texture.kind != texture::CONSTANT) {
        return Some(
            "`prb_attached` knows smooth glass and mirrors of one index and one reflectance; write a constant in place of the \
             texture of the `bsdf`"
                .into(),
        );
    }
    if record.relief == NONE {
        return None;
    }
    let turned = record.flags & (leaf::TURNED | leaf::RELIEF_TURNED) != 0;
    if record.flags & (leaf::BUMP | leaf::FRONT | leaf::BACK | leaf::SHADOWS) != 0 || turned {
        return Some(
            "`prb_attached` knows the normals of a `normalmap` alone, on a BSDF that is not in a `twosided`; write the `bumpmap` \
             as one, remove `twosided`, and set `use_shadowing_function` to false"
                .into(),
        );
    }
    (look(record.relief).kind != texture::BITMAP)
        .then(|| "`prb_attached` knows normal maps that are a `bitmap`; write the normals as one".into())
}

/// Whether a leaf is diffuse, black, and stays so.
fn is_black<'a>(params: &ParamSet, record: &LeafRecord, textures: impl Iterator<Item = &'a TextureRecord>) -> bool {
    let stays_black = |texture: &TextureRecord| {
        let parameter = &params.parameters[texture.slot as usize];
        texture.kind == texture::CONSTANT && parameter.tuning.is_none() && parameter.values.iter().all(|x| *x == 0.0)
    };
    record.kind == leaf::DIFFUSE && record.relief == NONE && textures.into_iter().all(stays_black)
}
