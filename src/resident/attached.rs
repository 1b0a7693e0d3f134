//! Which scenes `prb_attached`, which moves the points of chains of smooth glass and mirrors, cannot differentiate.

use super::layout::{
    BsdfRecord, CHAIN_VERTICES, LeafRecord, NONE, SurfaceRecord, TextureRecord, leaf, light, surface, texture,
};
use super::motion::optimised_heights;
use super::paths::PathScene;
use crate::params::{ParamSet, Quantity};
use crate::scene::{Geometry, Scene, Surface};

/// What in the scene the derivatives of `prb_attached` would leave out, in one sentence; None where they are complete, and
/// for other integrators.
pub(super) fn obstacle(paths: &PathScene, params: &ParamSet) -> Option<String> {
    if !paths.attached {
        return None;
    }
    if !paths.media.is_empty() {
        return Some(
            "`prb_attached` knows no media; remove them, or use `prbvolpath`, which moves no points of paths".into(),
        );
    }
    if !paths.distances.grids.is_empty() {
        return Some(
            "`prb_attached` knows no `sdfgrid`, whose normals have no derivatives by the point; use a mesh".into(),
        );
    }
    if paths.inverted.is_none() && paths.settings.max_depth > CHAIN_VERTICES + 1 {
        let most = CHAIN_VERTICES + 1;
        return Some(format!(
            "`prb_attached` keeps the vertices of a chain, {CHAIN_VERTICES} at most; set its `max_depth` to {most} or less, or its \
             `jacobians` to \"inverted\""
        ));
    }
    let of_bsdf = (0..)
        .zip(&paths.bsdfs.bsdfs)
        .find_map(|(number, record)| bsdf_obstacle(paths, params, number, record));
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

/// What in the scene has no derivatives by its motions under `prb_attached`, in one sentence; None where they are complete.
pub(super) fn unmoved(scene: &Scene, paths: &PathScene) -> Option<String> {
    let turns = |surface: &SurfaceRecord| {
        let record = &paths.bsdfs.bsdfs[surface.bsdf as usize];
        let smooth = |record: &LeafRecord| is_smooth(record.kind);
        surface.light == NONE && sides(paths, record).all(smooth)
    };
    let is_smooth_mesh = |surface: &Surface| {
        matches!(
            surface.geometry,
            Geometry::Mesh {
                face_normals: false,
                ..
            }
        )
    };
    let follows = |surface: &Surface| {
        let of_vertices = surface.motion.iter().any(|part| part.quantity == Quantity::Vertex);
        is_smooth_mesh(surface) && (of_vertices || optimised_heights(surface).is_some())
    };
    if scene.world.surfaces.iter().any(follows) {
        return Some(
            "`prb_attached` moves vertices of meshes with `face_normals` alone, as normals would have to follow; say \
             \"face_normals\": true"
                .into(),
        );
    }
    let moved = scene.world.surfaces.iter().zip(&paths.surfaces);
    let mut moved = moved.filter(|(surface, _)| !surface.motion.is_empty() || optimised_heights(surface).is_some());
    let known = scene.world.lights.iter().all(|light| light.motion.is_empty())
        && moved.all(|(_, record)| record.bsdf == NONE || turns(record));
    (!known).then(|| {
        "`prb_attached` moves cameras, and of all shapes and lights those of smooth glass and mirrors alone, which send out no light; \
         leave the others where they are, or use `prb` in a scene without smooth glass and mirrors"
            .into()
    })
}

/// The leaves of a BSDF on both sides.
fn sides<'a>(paths: &'a PathScene, record: &BsdfRecord) -> impl Iterator<Item = &'a LeafRecord> {
    let leaves = |[first, count]: [u32; 2]| &paths.bsdfs.leaves[first as usize..][..count as usize];
    leaves(record.front).iter().chain(leaves(record.back))
}

/// Whether a leaf is of smooth glass or a mirror.
fn is_smooth(kind: u32) -> bool {
    matches!(kind, leaf::DIELECTRIC | leaf::THIN_DIELECTRIC | leaf::CONDUCTOR)
}

/// As [`obstacle`], for the BSDF `record` of this number.
fn bsdf_obstacle(paths: &PathScene, params: &ParamSet, number: u32, record: &BsdfRecord) -> Option<String> {
    sides(paths, record).find_map(|record| match is_black(paths, params, record) {
        true => None,
        false if is_alone(record, leaf::DIFFUSE) => diffuse_obstacle(paths, number, record),
        false => leaf_obstacle(paths, record),
    })
}

/// Whether a leaf is of a kind, without a relief and not part of a mixture.
fn is_alone(record: &LeafRecord, kind: u32) -> bool {
    record.kind == kind && record.relief == NONE && record.factors == 0
}

/// The textures of a leaf.
fn textures<'a>(paths: &'a PathScene, record: &LeafRecord) -> &'a [TextureRecord] {
    &paths.bsdfs.textures[record.first_texture as usize..][..record.textures as usize]
}

/// As [`obstacle`], for a diffuse leaf of the BSDF of this number. Directions sampled there are held while the point moves,
/// so that lights must be infinitely far away, and normals must not change from point to point.
fn diffuse_obstacle(paths: &PathScene, number: u32, record: &LeafRecord) -> Option<String> {
    let is_far = |kind: u32| matches!(kind, light::ENVMAP | light::DIRECTIONAL);
    if !paths.lights.iter().all(|light| is_far(light.kind)) {
        return Some(
            "`prb_attached` holds the directions in which a `diffuse` surface scatters, from which lights at a finite distance would \
             move away; light it by `constant`, `envmap` or `directional` alone, make it black, or use `prb`"
                .into(),
        );
    }
    let is_flat = |kind: u32| matches!(kind, surface::RECTANGLE | surface::DISK | surface::CUBE);
    let mut on = paths.surfaces.iter().filter(|surface| surface.bsdf == number);
    if !on.all(|surface| is_flat(surface.kind)) {
        return Some(
            "`prb_attached` knows `diffuse` surfaces that are flat: a `rectangle`, a `disk` or a `cube`; use one of these, make the \
             surface black, or use `prb`"
                .into(),
        );
    }
    let known = |texture: &TextureRecord| matches!(texture.kind, texture::CONSTANT | texture::BITMAP);
    (!textures(paths, record).iter().all(known)).then(|| {
        "`prb_attached` knows reflectances that are constant or a `bitmap`; write that of the `diffuse` as one of these".into()
    })
}

/// As [`obstacle`], for any other leaf.
fn leaf_obstacle(paths: &PathScene, record: &LeafRecord) -> Option<String> {
    if !is_smooth(record.kind) || record.factors > 0 {
        return Some(
            "`prb_attached` follows light through `dielectric`, `thindielectric` and `conductor` to lights, the background and \
             `diffuse` planes alone: where it meets any other `bsdf`, derivatives by what turns it on the way there are not known; \
             use one of these BSDFs, or `prb`"
                .into(),
        );
    }
    if textures(paths, record)
        .iter()
        .any(|texture| texture.kind != texture::CONSTANT)
    {
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
    (paths.bsdfs.textures[record.relief as usize].kind != texture::BITMAP)
        .then(|| "`prb_attached` knows normal maps that are a `bitmap`; write the normals as one".into())
}

/// Whether a leaf is diffuse, and black whatever a run changes.
fn is_black(paths: &PathScene, params: &ParamSet, record: &LeafRecord) -> bool {
    let stays_black = |texture: &TextureRecord| {
        texture.kind == texture::CONSTANT && {
            let parameter = &params.parameters[texture.slot as usize];
            parameter.tuning.is_none() && parameter.values.iter().all(|x| *x == 0.0)
        }
    };
    record.kind == leaf::DIFFUSE && record.relief == NONE && textures(paths, record).iter().all(stays_black)
}
