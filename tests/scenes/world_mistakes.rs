//! Mistakes in the text of scenes of shapes, scattering media and lights.

use super::{edited_world, mistakes_in};

const GRID: &str = r#"{"type": "gridvolume", "resolution": [4, 4, 4], "value": 0.5}"#;
const PHASE: &str = r#"{"type": "hg", "g": 0.3}"#;
const SUN: &str = r#"{"type": "directional"}"#;
const TUNED: &str = r#""box.interior.sigma_t": {}"#;
const SKY: &str = r#""sky": {"type": "constant"}"#;
const FLOOR_BSDF: &str = r#""bsdf": {"type": "diffuse", "reflectance": 0.4}"#;
const FLOOR: &str = r#""reflectance": 0.4"#;

/// A piece of the small world, what replaces it, and what must be said: `line:column: message` or its beginning.
const MISTAKES: &[(&str, &str, &str)] = &[
    // Media and their volumes.
    (
        r#""albedo": [0.9, 0.8, 0.7]"#,
        r#""albdeo": 0.9"#,
        "10:7: unknown parameter `albdeo` of `heterogeneous` at box.interior.albdeo: did you mean `albedo`?",
    ),
    (
        "[0.9, 0.8, 0.7]",
        "[0.9, 1.5, 0.7]",
        "10:23: the value 1.5 is not possible at box.interior.albedo[1]: it must lie between 0 and 1",
    ),
    (
        "[0.9, 0.8, 0.7]",
        "[0.9, 0.8]",
        "10:17: a list of 2 at box.interior.albedo: expected a number, or [r, g, b]",
    ),
    (
        "[0.9, 0.8, 0.7]",
        r#"{"type": "rgb", "value": [2, 0, 0]}"#,
        "10:43: the value 2 is not possible at box.interior.albedo.value[0]: it must lie between 0 and 1",
    ),
    (
        GRID,
        "-1",
        "9:18: the value -1 is not possible at box.interior.sigma_t: it must not be negative",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": -0.5}"#,
        "9:75: the value -0.5 is not possible at box.interior.sigma_t.value: it must not be negative",
    ),
    (
        r#""type": "heterogeneous""#,
        r#""type": "homogeneous""#,
        "9:18: `sigma_t` of a `homogeneous` medium varies at box.interior.sigma_t: give a number or a colour, or make the medium `heterogeneous`",
    ),
    (
        r#""type": "heterogeneous","#,
        r#""type": "heterogeneous", "scale": -1,"#,
        "8:41: the value -1 is not possible at box.interior.scale: it must not be negative",
    ),
    (
        r#""type": "heterogeneous","#,
        r#""type": "heterogeneous", "emission": -1,"#,
        "8:44: the value -1 is not possible at box.interior.emission: it must not be negative",
    ),
    (
        r#""type": "heterogeneous","#,
        r#""type": "heterogeneous", "sample_emitters": false,"#,
        "8:51: `sample_emitters` of `heterogeneous` is false at box.interior.sample_emitters: only true is supported so far",
    ),
    (
        r#""type": "heterogeneous""#,
        r#""type": "heterogenous""#,
        "7:17: unknown medium type `heterogenous` at box.interior: did you mean `heterogeneous`?",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "wrap_mode": "repeet"}"#,
        r#"9:93: unknown value "repeet" at box.interior.sigma_t.wrap_mode: did you mean `repeat`?"#,
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "filter_type": "bilinear"}"#,
        r#"9:95: unknown value "bilinear" at box.interior.sigma_t.filter_type: did you mean `trilinear`?"#,
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "use_grid_bbox": true}"#,
        "9:18: `use_grid_bbox` without `filename` at box.interior.sigma_t: only a .vol or .vdb file states a bounding box; place the grid with `to_world`",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "max_value": 1}"#,
        "9:80: Mitsuba's parameter `max_value` of `gridvolume` at box.interior.sigma_t.max_value is not supported yet: remove it",
    ),
    (
        GRID,
        r#"{"type": "gridvolume", "filename": "smoke.txt"}"#,
        "9:53: this grid cannot be used at box.interior.sigma_t.filename: smoke.txt: a grid's file name ends in",
    ),
    (
        GRID,
        r#"{"type": "plume", "resolution": 8, "sead": 1}"#,
        "9:53: unknown parameter `sead` of `plume` at box.interior.sigma_t.sead: did you mean `seed`?",
    ),
    (
        GRID,
        r#"{"type": "plume"}"#,
        "9:18: `plume` lacks `resolution` at box.interior.sigma_t: give the texels along x, y and z",
    ),
    (
        GRID,
        r#"{"type": "plume", "resolution": 8, "seed": -1}"#,
        "9:61: the value -1 is not possible at box.interior.sigma_t.seed: expected a whole number from 0 to",
    ),
    (
        GRID,
        r#"{"type": "bitmap", "filename": "x.png"}"#,
        "9:18: `bitmap` is a texture where a volume is expected at box.interior.sigma_t: allowed: `gridvolume`",
    ),
    (
        GRID,
        r#""thick""#,
        r#"9:18: found the string "thick" at box.interior.sigma_t: expected a number, or [r, g, b]"#,
    ),
    (
        GRID,
        r#"{"resolution": 4}"#,
        "9:18: missing `type` at box.interior.sigma_t: every object needs one; for a volume, allowed: `gridvolume`",
    ),
    (
        GRID,
        r#"{"type": "gridvolume", "resolution": 4, "to_world": [{"scale": 0}]}"#,
        "9:70: the matrix is singular at box.interior.sigma_t.to_world: it must be invertible",
    ),
    // Phase functions.
    (
        PHASE,
        r#""hg""#,
        r#"11:16: found the string "hg" at box.interior.phase: expected an object with a `type`"#,
    ),
    (
        PHASE,
        r#"{"g": 0.3}"#,
        "11:16: missing `type` at box.interior.phase: every object needs one",
    ),
    (
        r#""g": 0.3"#,
        r#""g": [0.1, 0.2, 0.3]"#,
        "11:36: found a list of 3 at box.interior.phase.g: expected a number",
    ),
    (
        PHASE,
        r#"{"type": "isotropic", "g": 0.3}"#,
        "11:38: unknown parameter `g` of `isotropic` at box.interior.phase.g: nothing is allowed here",
    ),
    (
        PHASE,
        r#"{"type": "homogeneous"}"#,
        "11:7: the medium `homogeneous` at box.interior.phase has no place in `heterogeneous`: allowed: `sigma_t`",
    ),
    (
        r#""g": 0.3"#,
        r#""g": 1"#,
        "11:36: the value 1 is not possible at box.interior.phase.g: it must lie between -1 and 1, both excluded",
    ),
    (
        r#""g": 0.3"#,
        r#""g": 0.99999999999"#,
        "11:36: the value 0.99999999999 is not possible at box.interior.phase.g: it must lie between -1 and 1, both excluded",
    ),
    (
        PHASE,
        r#"{"type": "henyey"}"#,
        "11:16: unknown type `henyey` at box.interior.phase: allowed: `isotropic`, `hg`, `rayleigh`, `blendphase`",
    ),
    (
        PHASE,
        r#"{"type": "sggx"}"#,
        "11:16: Mitsuba's phase function `sggx` is not supported yet at box.interior.phase: allowed: `isotropic`, `hg`, `rayleigh`, `blendphase`",
    ),
    (
        PHASE,
        r#"{"type": "hg"}, "other": {"type": "rayleigh"}"#,
        "11:41: a second phase function at box.interior.other: `heterogeneous` can have only one",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "a": {"type": "hg"}, "b": {"type": "hg"}}"#,
        "11:16: `blendphase` lacks `weight` at box.interior.phase: give the weight of the second phase function, a number or a volume",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "weight": 2, "a": {"type": "hg"}, "b": {"type": "hg"}}"#,
        "11:49: the value 2 is not possible at box.interior.phase.weight: it must lie between 0 and 1",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "weight": [0.1, 0.2, 0.3], "a": {"type": "hg"}, "b": {"type": "hg"}}"#,
        "11:49: a list of 3 at box.interior.phase.weight: expected a number",
    ),
    (
        PHASE,
        r#"{"type": "blendphase", "weight": 0.5, "a": {"type": "hg"}}"#,
        "11:16: a `blendphase` of 1 phase functions at box.interior.phase: nest two, of which the second has the `weight`",
    ),
    // Shapes, their BSDFs and emitters.
    (
        r#""type": "sphere""#,
        r#""type": "sphere", "radius": 0"#,
        "15:40: the value 0 is not possible at lamp.radius: it must be positive",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "sphere", "center": [0, 0]"#,
        "15:40: found a list of 2 at lamp.center: expected a list of 3 numbers",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "rectangle", "radius": 1"#,
        "15:33: unknown parameter `radius` of `rectangle` at lamp.radius: allowed: `to_world`, `flip_normals`, `interior`, `exterior`, `emitter`, `sensor`, `bsdf`",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "instance"}"#,
        "15:11: the `instance` shows nothing at lamp: name a `shapegroup` in it, by a reference",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "shapegroup"}"#,
        "15:11: the `shapegroup` is empty at lamp: put at least one shape into it",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "shapegroup", "part": {"type": "sphere", "emitter": {"type": "area"}}}"#,
        "15:42: a shape of a `shapegroup` shines at lamp.part: only shapes outside of groups can",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "shapegroup", "part": {"type": "sphere", "interior": {"type": "homogeneous"}}}"#,
        "15:42: a shape of a `shapegroup` bounds a medium at lamp.part: only shapes outside of groups can",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "shapegroup", "part": {"type": "sphere", "sensor": {"type": "irradiancemeter"}}}"#,
        "15:42: a shape of a `shapegroup` holds a sensor at lamp.part: only shapes outside of groups can",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "shapegroup", "part": {"type": "shapegroup", "x": {"type": "cube"}}}"#,
        "15:42: a group of shapes in a `shapegroup` at lamp.part: groups hold shapes alone, and no other groups or instances",
    ),
    (
        r#""lamp": {"type": "sphere", "emitter": {"type": "area", "radiance": 3}}"#,
        r#""lamp": {"type": "instance", "part": {"type": "cube"}}"#,
        "15:40: an `instance` of something else at lamp.part: it shows a `shapegroup`",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "linearcurve""#,
        "15:11: Mitsuba's shape `linearcurve` is not supported yet at lamp: allowed: `cube`, `sphere`, `rectangle`, `disk`, `cylinder`, `obj`, `ply`, `serialized`, `grid`, `sdfgrid`, `heightfield`, `gradient_index`, `shapegroup`, `instance`",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "cylinder", "p0": [1, 2, 3], "p1": [1, 2, 3]"#,
        "15:11: the `cylinder` has no length at lamp: `p0` and `p1` must differ",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "cylinder", "radius": 0"#,
        "15:42: the value 0 is not possible at lamp.radius: it must be positive",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "disk", "bsdf": {"type": "null"}, "interior": {"type": "homogeneous"}"#,
        "15:11: a `disk` has no inside: it cannot bound a medium at lamp: use a `cube`, a `sphere` or a closed mesh",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "cylinder", "bsdf": {"type": "null"}, "interior": {"type": "homogeneous"}"#,
        "15:11: a `cylinder` has no caps: it cannot bound a medium at lamp: use a `cube`, a `sphere` or a closed mesh",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "sphere", "silhouette_sampling_weight": "much""#,
        "15:60: found the string \"much\" at lamp.silhouette_sampling_weight: expected a number",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "obj""#,
        "15:11: `obj` lacks `filename` at lamp: give the mesh file",
    ),
    (
        r#""type": "sphere""#,
        r#""type": "ply", "filename": "nowhere.ply""#,
        "15:39: this mesh cannot be used at lamp.filename: there is no file nowhere.ply",
    ),
    (
        r#""type": "area""#,
        r#""type": "point""#,
        "15:41: a `point` emitter in a shape at lamp.emitter: it stands at the top level; a shape emits by `area`",
    ),
    (
        r#""radiance": 3"#,
        r#""radiance": -3"#,
        "15:70: the value -3 is not possible at lamp.emitter.radiance: it must not be negative",
    ),
    (
        r#""radiance": 3"#,
        r#""sampling_weight": -3"#,
        "15:77: the value -3 is not possible at lamp.emitter.sampling_weight: it must not be negative",
    ),
    (
        r#""type": "sphere","#,
        r#""type": "sphere", "interior": {"type": "radiance_field"},"#,
        "15:11: a radiance field beside `box` at lamp: a scene is either one radiance field, or shapes, scattering media and lights; make two scenes of it",
    ),
    (
        r#""type": "sphere","#,
        r#""type": "sphere", "exterior": {"type": "radiance_field"},"#,
        "15:42: a `radiance_field` does not scatter light at lamp.exterior: it stands only in a `cube`, as `interior`; allowed here: `heterogeneous`, `homogeneous`",
    ),
    (
        r#""type": "diffuse""#,
        r#""type": "hair""#,
        "14:42: Mitsuba's BSDF `hair` is not supported yet at floor.bsdf: allowed: `null`, `diffuse`",
    ),
    (
        FLOOR,
        r#""reflectance": 1.1"#,
        "14:77: the value 1.1 is not possible at floor.bsdf.reflectance: it must lie between 0 and 1",
    ),
    (
        FLOOR,
        r#""reflectence": 1"#,
        "14:62: unknown parameter `reflectence` of `diffuse` at floor.bsdf.reflectence: did you mean `reflectance`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerbord"}"#,
        "14:77: unknown texture type `checkerbord` at floor.bsdf.reflectance: did you mean `checkerboard`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "color2": 1}"#,
        "14:102: unknown parameter `color2` of `checkerboard` at floor.bsdf.reflectance.color2: did you mean `color1`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "color0": {"type": "checkerboard", "color0": {"type": "checkerboard"}}}"#,
        "14:112: a `checkerboard` of textures in another one at floor.bsdf.reflectance.color0: its squares show colours or numbers \
         there; others also a `bitmap`, a `mesh_attribute`, a `volume` or such a `checkerboard`",
    ),
    (
        SUN,
        r#"{"type": "spot", "texture": {"type": "checkerboard", "color1": {"type": "checkerboard"}}}"#,
        "16:38: a `checkerboard` of textures, which a `bsdf` takes for its reflectances and other factors alone at sun.texture: \
         give `color0` and `color1` as colours or numbers, or make one `bitmap` of both",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "bitmap", "filename": "nowhere.png"}"#,
        "14:108: this image cannot be used at floor.bsdf.reflectance.filename: nowhere.png: ",
    ),
    // Normal maps and bump maps.
    (
        FLOOR_BSDF,
        r#""bsdf": {"type": "normalmap", "b": {"type": "diffuse"}}"#,
        "14:42: `normalmap` lacks `normalmap` at floor.bsdf: give a `bitmap` of normals, with `raw` true",
    ),
    (
        FLOOR_BSDF,
        r#""bsdf": {"type": "bumpmap", "b": {"type": "diffuse"}}"#,
        "14:42: the `bumpmap` has no texture at floor.bsdf: give a `bitmap` of heights, with `raw` true",
    ),
    (
        FLOOR_BSDF,
        r#""bsdf": {"type": "normalmap", "normalmap": [0.5, 0.5, 1]}"#,
        "14:42: `normalmap` holds 0 BSDFs at floor.bsdf: expected one BSDF",
    ),
    (
        FLOOR_BSDF,
        r#""bsdf": {"type": "normalmap", "normalmap": [0.5, 0.5, 1], "b": {"type": "twosided",
            "c": {"type": "normalmap", "normalmap": [0.5, 0.5, 1], "d": {"type": "diffuse"}}}}"#,
        "14:42: a `normalmap` holds another normal map or bump map at floor.bsdf: expected one at most: put both into one texture",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "bitmap", "data": {"resolution": [4, 4], "coin": 1}}"#,
        "14:135: `coin` is a relief at floor.bsdf.reflectance.data.coin: it may stand in a `normalmap`, a `bumpmap` or a `displacement`",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "bitmap", "data": {"resolution": [4, 4], "magnifier": 1}}"#,
        "14:140: `magnifier` is a relief at floor.bsdf.reflectance.data.magnifier: it may stand in a `normalmap`, a `bumpmap` or a `displacement`",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "bitmap", "data": {"resolution": [4, 4], "value": 1, "leaves": 1}}"#,
        "14:149: `value`, `leaves`, `planet`, `coin`, `magnifier` and `ridges` exclude each other at \
         floor.bsdf.reflectance.data.leaves: keep one of them",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "to_uv": [{"scal": 2}]}"#,
        "14:112: unknown operation `scal` at floor.bsdf.reflectance.to_uv[0]: did you mean `scale`?",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "to_uv": [{"rotate": {"axis": [1, 0, 0], "angle": 3}}]}"#,
        "14:132: this axis leaves the plane of the texture at floor.bsdf.reflectance.to_uv[0].rotate.axis: leave it out, or give [0, 0, 1]",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "checkerboard", "to_uv": [[1, 0, 0], [0, 1, 0], [0, 1, 1]]}"#,
        "14:111: the matrix is not affine at floor.bsdf.reflectance.to_uv: its last row must be [0, 0, 1]",
    ),
    // Textures that are looked up by other things than texture coordinates.
    (
        FLOOR,
        r#""reflectance": {"type": "mesh_attribute", "name": "color"}"#,
        "14:112: there is no attribute called \"color\" at floor.bsdf.reflectance.name: names of attributes begin with `vertex_` or `face_`",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "mesh_attribute", "name": "vertex_color"}"#,
        "14:12: `floor` shows `vertex_color` of its mesh, but is no `ply` at floor: only meshes of `ply` files have attributes",
    ),
    (
        FLOOR,
        r#""reflectance": {"type": "volume"}"#,
        "14:77: `volume` lacks `volume` at floor.bsdf.reflectance: give a `gridvolume` or a `constvolume`",
    ),
    (
        SUN,
        r#"{"type": "spot", "texture": {"type": "volume", "volume": 0.5}}"#,
        "16:38: a `volume` in a light without a surface at sun.texture: expected a `bitmap` or a `checkerboard`",
    ),
    (
        FLOOR_BSDF,
        r#""bsdf": {"type": "bumpmap", "h": {"type": "mesh_attribute", "name": "vertex_h"}, "b": {"type": "diffuse"}}"#,
        "14:67: a `mesh_attribute` in a `bumpmap` at floor.bsdf.h: expected a `bitmap` or a `checkerboard`",
    ),
    // Emitters.
    (
        SKY,
        r#""sky": {"type": "constant"}, "dome": {"type": "envmap"}"#,
        "17:40: a second emitter beside `sky` at dome: what lies behind the medium is one thing",
    ),
    (
        SKY,
        r#""sky": {"type": "area"}"#,
        "17:10: an `area` emitter without a shape at sky: put it into a shape, which then emits",
    ),
    (
        SUN,
        r#"{"type": "directional", "direction": [0, 0, 0]}"#,
        "16:10: `direction` has no direction at sun: at least one of its numbers must differ from zero",
    ),
    (
        SUN,
        r#"{"type": "directional", "direction": [0, 0, 1], "to_world": []}"#,
        "16:47: `direction` and `to_world` exclude each other at sun.direction: remove one of the two",
    ),
    (
        SUN,
        r#"{"type": "directional", "intensity": 1}"#,
        "16:34: unknown parameter `intensity` of `directional` at sun.intensity: allowed: `sampling_weight`, `direction`, `to_world`, `irradiance`, `medium`",
    ),
    (
        SUN,
        r#"{"type": "point", "intensity": -1}"#,
        "16:41: the value -1 is not possible at sun.intensity: it must not be negative",
    ),
    (
        SUN,
        r#"{"type": "spot", "beam_width": 200}"#,
        "16:41: the value 200 is not possible at sun.beam_width: it must lie between 0 and 180",
    ),
    (
        SUN,
        r#"{"type": "point", "intensity": [0, 3e38, 0]}"#,
        "16:45: the value 3e+38 is not possible at sun.intensity[1]: it must be at most 1e30, so that sums of samples stay finite",
    ),
    (
        SUN,
        r#"{"type": "point", "medium": 3}"#,
        "16:38: found the number 3 at sun.medium",
    ),
    (
        SUN,
        r#"{"type": "spot", "cutoff_angle": 0}"#,
        "16:43: the value 0 is not possible at sun.cutoff_angle: it must lie between 0 and 180, both excluded",
    ),
    (
        SUN,
        r#"{"type": "sunsky"}"#,
        "16:10: Mitsuba's emitter `sunsky` is not supported yet at sun: allowed: `constant`, `envmap`, `area`, `directionalarea`, `point`, `directional`, `spot`, `projector`",
    ),
    (
        SUN,
        r#"{"type": "projector", "fov": 30, "focal_length": "35mm"}"#,
        "16:59: the lens is given twice at sun.focal_length: give only one of `fov` and `focal_length`",
    ),
    (
        SUN,
        r#"{"type": "projector", "fov": 30, "to_world": [{"scale": 2}]}"#,
        "16:55: this transform does not suit a `projector` at sun.to_world: scale and shear make no sense for it",
    ),
    (
        SUN,
        r#"{"type": "spot", "texture": 0.5}"#,
        "16:10: the `texture` of a `spot` is the same everywhere at sun: expected a `bitmap` or a `checkerboard`; a colour belongs into `intensity`",
    ),
    (
        SUN,
        r#"{"type": "spot", "cutoff_angle": 90, "texture": {"type": "checkerboard"}}"#,
        "16:10: a `spot` with a `texture` shines backwards at sun: its `cutoff_angle` must stay below 90 degrees",
    ),
    (
        SUN,
        r#"{"type": "directionalarea"}"#,
        "16:10: a `directionalarea` emitter without a shape",
    ),
    (
        SUN,
        r#"{"type": "directional", "radiance": 1}"#,
        "16:34: unknown parameter `radiance` of `directional` at sun.radiance: did you mean `irradiance`?",
    ),
    (
        SUN,
        r#"{"type": "point", "position": [1, 2, 3], "to_world": []}"#,
        "16:40: `position` and `to_world` exclude each other at sun.position: remove one of the two",
    ),
    (
        SKY,
        r#""sky": {"type": "envmap"}"#,
        "17:10: the map has no pixels at sky: give `filename`, or `data` with `resolution` and `value`",
    ),
    (
        SKY,
        r#""sky": {"type": "envmap", "filename": "nowhere.exr"}"#,
        "17:41: this image cannot be used at sky.filename: nowhere.exr: cannot be opened",
    ),
    (
        SKY,
        r#""sky": {"type": "envmap", "data": {"resolution": [1, 2]}}"#,
        "17:53: the value 1 is not possible at sky.data.resolution[0]: expected a whole number from 2 to",
    ),
    // The integrator and the sensor.
    (
        r#"{"type": "prbvolpath"}"#,
        r#""volpath""#,
        r#"2:17: found the string "volpath" at integrator: expected an object with a `type`"#,
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "stokes""#,
        "2:17: Mitsuba's integrator `stokes` is not supported yet at integrator: allowed: `path`",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "aov", "aovs": "n:sh_normals""#,
        "2:41: unknown channel \"sh_normals\" at integrator.aovs: did you mean `sh_normal`?",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "aov", "aovs": "uv""#,
        "2:41: \"uv\" has no name at integrator.aovs: write a name of letters, digits, `_`, `-` and `.`, such as \"surface:uv\"",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "aov", "aovs": "dd.y:depth, dd.y:uv""#,
        "2:41: two channels have the name \"dd.y\" at integrator.aovs: give each a name of its own",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "aov", "aovs": "d/y:depth""#,
        "2:41: the name of \"d/y:depth\" has other characters at integrator.aovs: write a name of letters, digits, `_`, `-` and `.`, such as \"surface:depth\"",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "direct", "shading_samples": 0"#,
        "2:17: `direct` without samples at integrator: let `emitter_samples` or `bsdf_samples` be 1",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "direct", "max_depth": 3"#,
        "2:36: unknown parameter `max_depth` of `direct` at integrator.max_depth: allowed: `shading_samples`",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "max_depth": "inf""#,
        r#"2:53: found the string "inf" at integrator.max_depth: expected a number"#,
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "max_depth": -2"#,
        "2:53: the value -2 is not possible at integrator.max_depth: expected a whole number of edges from 0, or -1 for no limit",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "rr_depth": 0"#,
        "2:52: the value 0 is not possible at integrator.rr_depth: expected a whole number from 1 to",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "gradient": "free""#,
        r#"2:52: unknown value "free" at integrator.gradient: allowed: `auto`, `paired`, `drt`, `free_flight`"#,
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "advolpath", "gradient": "drt""#,
        "2:17: `advolpath` has no differential tracking at integrator: remove `gradient`",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "rbvolpath", "variant": "baised""#,
        "2:50: unknown value \"baised\" at integrator.variant: did you mean `biased`?",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "variant": "biased""#,
        "2:40: unknown parameter `variant` of `prbvolpath` at integrator.variant",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpath", "timeout": 4"#,
        "2:40: Mitsuba's parameter `timeout` of `prbvolpath` at integrator.timeout is not supported yet: remove it",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "moment""#,
        "2:17: a `moment` around nothing at integrator: put the integrator into it whose moments are wanted",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "moment", "inner": {"type": "ptracer"}"#,
        "2:45: single samples here have no radiance of their own at integrator.inner: put an integrator into it that follows light from the camera, such as `path`",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "aov", "aovs": "d:depth", "inner": {"type": "moment", "image": {"type": "path"}}"#,
        "2:17: an `aov` around an `aov`, a `depth` or a `moment` at integrator: list what they show in `aovs`, and put a light's integrator into it",
    ),
    (
        r#""type": "prbvolpath""#,
        r#""type": "prbvolpth""#,
        "2:17: unknown type `prbvolpth` at integrator: did you mean `prbvolpath`?",
    ),
    (
        SKY,
        r#""sky": {"type": "constant"}, "other": {"type": "volpath"}"#,
        "17:41: a second integrator beside `integrator` at other: light is followed in one way",
    ),
    (
        r#""type": "perspective","#,
        r#""type": "perspective", "medium": {"type": "hg"},"#,
        "3:47: `hg` is a phase function where a medium is expected at camera.medium: allowed: `radiance_field`, `heterogeneous`, `homogeneous`",
    ),
    // What is optimised.
    (
        TUNED,
        r#""box.interior.sigma": {}"#,
        "19:42: there is no parameter `box.interior.sigma` at optimize.parameters.box.interior.sigma: did you mean `box.interior.sigma_t`? (allowed: `sky.radiance`, `box.interior.sigma_t`, `box.interior.albedo`, `box.interior.phase.g`, `floor.bsdf.reflectance`, `lamp.bsdf.reflectance`, `lamp.emitter.radiance`, `sun.irradiance`)",
    ),
    (
        TUNED,
        r#""ground.bsdf.colour.abc": {}"#,
        "19:46: there is no parameter `ground.bsdf.colour.abc` at optimize.parameters.ground.bsdf.colour.abc: allowed: `sky.radiance`",
    ),
    (
        TUNED,
        r#""box.interior.sigma_t": {"bounds": [2, 1]}"#,
        "19:55: the bounds 2 and 1 leave nothing between them at optimize.parameters.box.interior.sigma_t.bounds: the lower one comes first",
    ),
    (
        TUNED,
        r#""box.interior.albedo": {"bounds": [0, 2]}"#,
        "19:54: the bounds 0 and 2 let in what is not possible at optimize.parameters.box.interior.albedo.bounds: it must lie between 0 and 1",
    ),
    (
        TUNED,
        r#""box.interior.sigma_t": {"bounds": [null, 2]}"#,
        "19:55: the bounds null and 2 let in what is not possible at optimize.parameters.box.interior.sigma_t.bounds: it must not be negative",
    ),
    (
        TUNED,
        r#""box.interior.phase.g": {"initial": 1}"#,
        "19:56: the value 1 is not possible at optimize.parameters.box.interior.phase.g.initial: it must lie between -1 and 1, both excluded",
    ),
    (
        TUNED,
        r#""box.interior.albedo": {"start_resolution": 4}"#,
        "19:64: a value without a place has no resolution at optimize.parameters.box.interior.albedo.start_resolution: remove `start_resolution`, or make it a `gridvolume` if it is a volume",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "wrap_mode": "repeat"}"#,
        "19:44: the volume `box.interior.sigma_t` cannot be optimised at optimize.parameters.box.interior.sigma_t: only volumes with the `filter_type` `trilinear` and the `wrap_mode` `clamp` can",
    ),
    (
        r#"4], "value": 0.5}"#,
        r#"4], "value": 0.5, "filter_type": "nearest"}"#,
        "19:44: the volume `box.interior.sigma_t` cannot be optimised at optimize.parameters.box.interior.sigma_t:",
    ),
    (
        r#"{"type": "constant", "value": 0.5}"#,
        r#""images""#,
        "18:15: 1 of 1 views has no `image`",
    ),
];

#[test]
fn every_mistake_gives_its_message() {
    let mut failures = Vec::new();
    for (from, to, expected) in MISTAKES {
        let found = mistakes_in(&edited_world(from, to));
        if !found.starts_with(&format!("test.json:{expected}")) || found.lines().count() != 1 {
            failures.push(format!("for {to}\nexpected {expected}\nfound    {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn radiance_fields_stand_alone() {
    let field = r#"{"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "radiance_field", "sigma_t": 1, "sh_coeffs": 1}}"#;
    let sphere = field.replace("cube", "sphere");
    let cases = [
        (
            format!(r#"{{"f": {field}, "p": {{"type": "point"}}}}"#),
            "a `point` light beside the radiance field of `f` at p",
        ),
        (
            format!(r#"{{"p": {{"type": "point"}}, "f": {field}}}"#),
            "a `point` light beside the radiance field of `f` at p",
        ),
        (
            format!(r#"{{"s": {{"type": "sphere"}}, "f": {field}}}"#),
            "a radiance field beside `s` at f",
        ),
        (
            format!(r#"{{"c": {{"type": "perspective", "medium": {{"type": "homogeneous"}}}}, "f": {field}}}"#),
            "a sensor in a medium beside the radiance field of `f` at c",
        ),
        (
            format!(r#"{{"f": {field}, "g": {field}}}"#),
            "a second radiance field beside `f` at g",
        ),
        (
            format!(r#"{{"f": {sphere}}}"#),
            "a `sphere` around a `radiance_field` at f: a radiance field fills a `cube`",
        ),
    ];
    for (text, expected) in cases {
        let found = mistakes_in(&text);
        assert!(found.contains(expected) && found.lines().count() == 1, "{found}");
    }
}

#[test]
fn blends_are_not_nested_without_end() {
    // Forty blends of two references each would be a trillion phase functions.
    let blend = |i: usize| {
        let next = format!(r#"{{"type": "ref", "id": "p{}"}}"#, i + 1);
        format!(r#""p{i}": {{"type": "blendphase", "weight": 0.5, "a": {next}, "b": {next}}}"#)
    };
    let chain: Vec<_> = (0..40).map(blend).collect();
    let medium = r#"{"type": "homogeneous", "p": {"type": "ref", "id": "p0"}}"#;
    let text = format!(
        r#"{{{}, "p40": {{"type": "hg"}}, "box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {medium}}}}}"#,
        chain.join(", ")
    );
    let found = mistakes_in(&text);
    assert!(found.contains("more than 4 blends inside one another"), "{found}");
}

/// `merge` is refused: without the shapes in it the scene would be another.
#[test]
fn merged_shapes_are_to_stand_alone() {
    let found = mistakes_in(r#"{"all": {"type": "merge", "ball": {"type": "sphere"}}}"#);
    let expected =
        "Mitsuba's scene object `merge` is not supported yet at all: put the shapes that it holds in its place";
    assert!(found.contains(expected) && found.lines().count() == 1, "{found}");
}

#[test]
fn the_first_part_of_a_blend_is_no_blend() {
    let inner = r#"{"type": "blendphase", "weight": 0.5, "a": {"type": "isotropic"}, "b": {"type": "hg"}}"#;
    let text = |a: &str, b: &str| {
        format!(
            r#"{{"box": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "homogeneous",
                "p": {{"type": "blendphase", "weight": 0.3, "a": {a}, "b": {b}}}}}}}}}"#
        )
    };
    let plain = r#"{"type": "rayleigh"}"#;
    let found = mistakes_in(&text(inner, plain));
    let expected = "a `blendphase` whose first part is a blend at box.interior.p: let only the second be one: exchange \
                    them, and take one less the `weight`";
    assert!(found.contains(expected) && found.lines().count() == 1, "{found}");
}
