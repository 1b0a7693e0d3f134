//! Each mistake gives its message: where it stands, what was found, what is allowed, what was probably meant.

use super::{edited, mistakes_in};

/// A piece of the small scene, what replaces it, and what must be said: `line:column: message` or its beginning.
const MISTAKES: &[(&str, &str, &str)] = &[
    // Names that nobody knows, or that Mitsuba knows, or that stand in the wrong place.
    (
        r#""fov""#,
        r#""fvo""#,
        "4:28: unknown parameter `fvo` of `perspective` at camera.fvo: did you mean `fov`?",
    ),
    (
        r#""sh_degree""#,
        r#""degree_sh""#,
        "12:33: unknown parameter `degree_sh` of `radiance_field` at object.interior.degree_sh: allowed: `sh_degree`, `sigma_t`, `sh_coeffs`, `density_activation`, `color_activation`, `step`, `stop`",
    ),
    (
        r#""optimize""#,
        r#""optimise""#,
        "18:15: unknown parameter `optimise` of `scene` at optimise: did you mean `optimize`?",
    ),
    (
        r#""background": {"#,
        r#""max_depth": 3, "background": {"#,
        "17:16: unknown parameter `max_depth` of `scene` at max_depth: allowed: `type`, `optimize`, or any object with a `type`",
    ),
    (
        r#""type": "radiance_field""#,
        r#""type": "radiance_feld""#,
        "11:17: unknown medium type `radiance_feld` at object.interior: did you mean `radiance_field`?",
    ),
    (
        r#""type": "radiance_field""#,
        r#""type": "cube""#,
        "11:17: `cube` is a shape where a medium is expected at object.interior: allowed: `radiance_field`",
    ),
    (
        r#""type": "radiance_field""#,
        r#""type": "linearcurve""#,
        "11:17: Mitsuba's shape `linearcurve` stands where a medium is expected at object.interior: allowed: `radiance_field`, `heterogeneous`, `homogeneous` (and `linearcurve` is not supported yet)",
    ),
    (
        r#""type": "perspective""#,
        r#""type": "thinlens""#,
        "3:13: `thinlens` lacks `aperture_radius` at camera: give the radius of the lens",
    ),
    (
        r#""type": "perspective""#,
        r#""type": "radiancemeter", "origin": [0, 0, 1]"#,
        "5:17: `to_world` beside `origin` or `direction` at camera.to_world: give either the one or the others",
    ),
    (
        r#""type": "perspective""#,
        r#""type": "irradiancemeter""#,
        "3:13: an `irradiancemeter` without a shape at camera: put it into a `rectangle`, a `disk`, a `sphere`, a `cylinder` or a `cube`",
    ),
    (
        r#""type": "perspective""#,
        r#""type": "batch""#,
        "3:13: a `batch` without sensors at camera: put one or more into it",
    ),
    (
        r#""type": "perspective""#,
        r#""type": "perspectiv""#,
        "3:13: unknown type `perspectiv` at camera: did you mean `perspective`?",
    ),
    (
        r#""type": "perspective""#,
        r#""type": "teapot""#,
        "3:13: unknown type `teapot` at camera: allowed: `perspective`, `thinlens`, `orthographic`,",
    ),
    (
        r#""type": "tent""#,
        r#""type": "mitchell", "B": 2"#,
        "6:97: the value 2 is not possible at camera.film.rfilter.B: it must lie between 0 and 1",
    ),
    (
        r#""type": "tent""#,
        r#""type": "lanczos", "lobes": 11"#,
        "6:100: the value 11 is not possible at camera.film.rfilter.lobes: expected a whole number from 1 to 10",
    ),
    (
        r#""type": "tent""#,
        r#""type": "tnet""#,
        "6:71: unknown type `tnet` at camera.film.rfilter: did you mean `tent`?",
    ),
    (
        r#"{"type": "null"}"#,
        r#"{"type": "diffuse"}"#,
        "10:13: a `diffuse` BSDF around a `radiance_field` at object.bsdf: it would hide its interior; allowed: `null`",
    ),
    (
        r#"{"type": "null"}"#,
        r#"{"type": "nul"}"#,
        "10:13: unknown type `nul` at object.bsdf: did you mean `null`?",
    ),
    (
        r#""bsdf": {"type": "null"},"#,
        "",
        r#"8:13: a `cube` without BSDF at object: it would be opaque and grey (`diffuse`) as in Mitsuba; add "bsdf": {"type": "null"} to see its interior"#,
    ),
    (
        r#""bsdf": {"type": "null"}"#,
        r#""bsdf": {"type": "null"}, "b": {"type": "null"}"#,
        "10:36: a second BSDF at object.b: `cube` can have only one",
    ),
    (
        r#""bsdf": {"type": "null"}"#,
        r#""bsdf": {"type": "null"}, "film": {"type": "hdrfilm"}"#,
        "10:31: the film `hdrfilm` at object.film has no place in `cube`: allowed: `to_world`, `interior`, `bsdf`",
    ),
    (
        r#""bsdf": {"type": "null"}"#,
        r#""bsdf": {"type": "null"}, "light": {"type": "area"}"#,
        "10:31: the emitter `area` at object.light has no place in `cube`: allowed: `to_world`, `interior`, `bsdf`",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "srf": 1"#,
        "4:39: Mitsuba's parameter `srf` of `perspective` at camera.srf is not supported yet: remove it",
    ),
    (
        r#""background": {"#,
        r#""integrator": {"type": "stokes"}, "background": {"#,
        "17:17: Mitsuba's integrator `stokes` is not supported yet at integrator: allowed: `path`, `direct`, `aov`, `depth`",
    ),
    (
        r#""background": {"#,
        r#""integrator": {"type": "prb_projective"}, "background": {"#,
        "17:17: Mitsuba's integrator `prb_projective` is not supported yet at integrator: take `prb`, whose derivatives leave out",
    ),
    (
        r#""background": {"#,
        r#""extra": {"value": 1}, "background": {"#,
        "17:12: missing `type` at extra: every object of a scene needs one (`prbopt schema` lists all types)",
    ),
    (
        r#""background": {"#,
        r#""extra": {"type": 1}, "background": {"#,
        "17:12: the `type` is not a string at extra:",
    ),
    (
        r#""background": {"#,
        r#""sky": {"type": "constant"}, "background": {"#,
        "17:46: a second emitter beside `sky` at background: what lies behind the medium is one thing",
    ),
    (
        r#""background": {"#,
        r#""o": {"type": "cube"}, "background": {"#,
        "17:8: a `cube` beside the radiance field of `object` at o: a scene is either one radiance field, or shapes, scattering media and lights",
    ),
    (
        r#""type": "scene""#,
        r#""type": "cube""#,
        "2:11: this file does not hold a scene at type: the `type` of the whole is `scene`, or left out",
    ),
    (
        r#""fov": 40"#,
        r#""fov": "wide""#,
        r#"4:35: found the string "wide" at camera.fov: expected a number"#,
    ),
    (
        r#""fov": 40"#,
        r#""fov": 180"#,
        "4:35: the value 180 is not possible at camera.fov: it must lie between 0 and 180, both excluded",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 1e300"#,
        "4:35: the number 1e+300 is out of range at camera.fov: magnitudes from 1.4e-45 to 3.4e38 can be stored",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "near_clip": 1e-60"#,
        "4:52: the number 1e-60 is out of range at camera.near_clip: magnitudes from 1.4e-45 to 3.4e38 can be stored",
    ),
    (
        r#""type": "cube","#,
        r#""type": "cube", "to_world": [{"scale": 1e-14}],"#,
        "9:33: the matrix is singular at object.to_world: it must be invertible",
    ),
    (
        r#""background": {"#,
        r#""../up": {"type": "box"}, "background": {"#,
        "17:3: an object cannot be called \"../up\": names are letters, digits, `_` and `-`",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "focal_x": 70"#,
        "3:13: the lens is given twice at camera: give only one of `fov`, `focal_length`, and `focal_x` with `focal_y`",
    ),
    (
        r#""fov": 40"#,
        r#""fov_axis": "x""#,
        "4:40: `fov_axis` without `fov` at camera.fov_axis: it says along which axis `fov` is measured; remove it or give `fov`",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "fov_axis": "z""#,
        r#"4:51: unknown value "z" at camera.fov_axis: allowed: `x`, `y`, `diagonal`, `smaller`, `larger`"#,
    ),
    (
        r#""fov": 40"#,
        r#""focal_length": "long""#,
        r#"4:44: the focal length "long" cannot be read at camera.focal_length: write millimetres, such as "50mm""#,
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "center_x": 1, "principal_point_offset_y": 0.1"#,
        "3:13: the principal point is given twice at camera: give only one of `principal_point_offset_x`, `_y`, and `center_x`, `center_y`",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "near_clip": 5, "far_clip": 4"#,
        "3:13: `near_clip` is 5 and `far_clip` 4 at camera: near must be less than far",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "near_clip": 0"#,
        "4:52: the value 0 is not possible at camera.near_clip: it must be positive",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "distortion": {"k1": 0.1}"#,
        "4:53: `distortion` lacks `model` at camera.distortion: give `opencv` or `fisheye`",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "distortion": {"model": "opencv", "k4": 0.1}"#,
        "4:73: unknown parameter `k4` of `distortion` at camera.distortion.k4: allowed: `model`, `k1`, `k2`, `k3`, `p1`, `p2`",
    ),
    (
        r#""width": 64"#,
        r#""width": 0"#,
        "6:42: the value 0 is not possible at camera.film.width: expected a whole number from 1 to 65536",
    ),
    (
        r#""width": 64"#,
        r#""width": 64.5"#,
        "6:42: the value 64.5 is not possible at camera.film.width: expected a whole number from 1 to 65536",
    ),
    (
        r#""width": 64, "height": 32"#,
        r#""width": 65536, "height": 65536"#,
        "3:13: an image of 65536×65536 pixels at camera: at most 536870912 are possible",
    ),
    (
        r#""width": 64"#,
        r#""width": 64, "crop_width": 32, "crop_offset_x": 33"#,
        "3:13: the film's crop window leaves the film at camera: offset and size together must not exceed its width and height",
    ),
    (
        r#""width": 64"#,
        r#""width": 64, "crop_offset_y": 1"#,
        "3:13: the film's crop window leaves the film at camera: offset and size together must not exceed its width and height",
    ),
    (
        r#""width": 64"#,
        r#""width": 64, "pixel_format": "xyz""#,
        "6:62: Mitsuba's `xyz` is not supported yet at camera.film.pixel_format: supported: `luminance`, `luminance_alpha`, `rgb`, `rgba`",
    ),
    (
        r#""width": 64"#,
        r#""width": 64, "file_format": "pfm""#,
        "6:61: Mitsuba's `pfm` is not supported yet at camera.film.file_format: supported: `openexr`, `exr`",
    ),
    (
        "[0, 0, 4]",
        "[0, 0]",
        "5:41: found a list of 2 at camera.to_world[0].look_at.origin: expected a list of 3 numbers",
    ),
    (
        "[0, 0, 4]",
        "[0, 0, 0]",
        "5:30: `origin` and `target` are the same point at camera.to_world[0].look_at: they must differ to give a direction",
    ),
    (
        "[0, 1, 0]",
        "[0, 0, -2]",
        "5:30: `up` is parallel to the viewing direction or zero at camera.to_world[0].look_at: choose another direction",
    ),
    (
        r#"{"look_at""#,
        r#"{"scale": 2}, {"look_at""#,
        "5:17: this transform does not suit a `perspective` at camera.to_world: scale and shear make no sense for it",
    ),
    (
        r#"{"look_at""#,
        r#"{"scale": 0}, {"look_at""#,
        "5:17: the matrix is singular at camera.to_world: it must be invertible, so no scale may be zero and no axes coincide",
    ),
    (
        r#"{"look_at""#,
        r#"{"lookat""#,
        "5:18: unknown operation `lookat` at camera.to_world[0]: did you mean `look_at`?",
    ),
    (
        r#"{"look_at""#,
        r#"{}, {"look_at""#,
        r#"5:18: an operation has one name, this one has 0 at camera.to_world[0]: write `{"translate": [x, y, z]}`"#,
    ),
    (
        r#"{"look_at""#,
        r#"{"rotate": {"axis": [0, 0, 0], "angle": 3}}, {"look_at""#,
        "5:38: the axis has no direction at camera.to_world[0].rotate.axis: at least one of its numbers must differ from zero",
    ),
    (
        r#""type": "cube","#,
        r#""type": "cube", "to_world": [[1,0,0,0],[0,1,0,0],[1,1,0,0],[0,0,0,1]],"#,
        "9:33: the matrix is singular at object.to_world: it must be invertible, so no scale may be zero and no axes coincide",
    ),
    (
        r#""type": "cube","#,
        r#""type": "cube", "to_world": [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]],"#,
        "9:33: the matrix is not affine at object.to_world: its last row must be [0, 0, 0, 1]",
    ),
    (
        r#""sh_degree": 1"#,
        r#""sh_degree": 4"#,
        "12:46: the value 4 is not possible at object.interior.sh_degree: expected a whole number from 0 to 3",
    ),
    (
        r#""value": 0.75"#,
        r#""value": [1, 2]"#,
        "13:75: a list of 2 at object.interior.sigma_t.value: expected a number",
    ),
    (
        r#""value": 0.75"#,
        r#""value": "thick""#,
        "13:75: found the string \"thick\" at object.interior.sigma_t.value: expected a number",
    ),
    (
        r#""value": 0.75"#,
        r#""value": 0.75, "to_world": [{"scale": 2}]"#,
        "13:93: a volume of a `radiance_field` cannot have a `to_world` at object.interior.sigma_t.to_world: the grid fills the cube that the medium fills; move the cube instead",
    ),
    (
        r#""value": 0.75"#,
        r#""value": 0.75, "wrap_mode": "repeat""#,
        r#"13:94: `wrap_mode` of `gridvolume` is the string "repeat" at object.interior.sigma_t.wrap_mode: only "clamp" is supported so far"#,
    ),
    (
        r#""resolution": [4, 4, 4], "value": 0.75"#,
        r#""filename": "nowhere.vol""#,
        "13:53: this grid cannot be used at object.interior.sigma_t.filename: nowhere.vol: cannot be opened: No such file or directory (os error 2)",
    ),
    (
        r#""resolution": [4, 4, 4], "value": 0.75"#,
        r#""filename": "scene.txt""#,
        "13:53: this grid cannot be used at object.interior.sigma_t.filename: scene.txt: a grid's file name ends in .vol, .npy or .vdb",
    ),
    (
        r#""resolution": [4, 4, 4], "value": 0.75"#,
        r#""value": 1"#,
        "13:18: the grid has no size at object.interior.sigma_t: give `filename`, or `resolution` and `value`",
    ),
    (
        r#""resolution": [4, 4, 4], "value": 0.75"#,
        r#""resolution": [4, 4, 0]"#,
        "13:62: the value 0 is not possible at object.interior.sigma_t.resolution[2]: expected a whole number from 1 to 65536",
    ),
    (
        r#""resolution": [4, 4, 4], "value": 0.75"#,
        r#""resolution": [4096, 4096, 4096]"#,
        "13:55: a grid of 4096×4096×4096×1 values at object.interior.sigma_t.resolution: it would hold 68719476736 values; at most 2147483647 are possible",
    ),
    (
        r#""radiance": 1"#,
        r#""radiance": [1, 1]"#,
        "17:50: found a list of 2 at background.radiance: expected a list of 3 numbers",
    ),
    (
        r#""radiance": 1"#,
        r#""radiance": -1"#,
        "17:17: `radiance` is negative at background: light cannot be",
    ),
    (
        r#""radiance": 1"#,
        r#""radiance": {"type": "blackbody", "temperature": 5000}"#,
        "17:50: Mitsuba's colour `blackbody` is not supported yet at background.radiance: allowed: `rgb`, `srgb`, `spectrum`, `uniform`, `rawconstant`, `d65`",
    ),
    // The block `optimize`.
    (
        r#""object.interior.sigma_t""#,
        r#""object.interior.sigma""#,
        "20:32: there is no parameter `object.interior.sigma` at optimize.parameters.object.interior.sigma: did you mean `object.interior.sigma_t`?",
    ),
    (
        r#""learning_rate": 0.5"#,
        r#""learning_rat": 0.5"#,
        "20:35: unknown parameter `learning_rat` of `parameter` at optimize.parameters.object.interior.sigma_t.learning_rat: did you mean `learning_rate`?",
    ),
    (
        r#""learning_rate": 0.5"#,
        r#""learning_rate": -1"#,
        "20:52: the value -1 is not possible at optimize.parameters.object.interior.sigma_t.learning_rate: it must be positive",
    ),
    (
        r#""bounds": [0, null]"#,
        r#""bounds": [1, 0]"#,
        "20:67: the bounds 1 and 0 leave nothing between them at optimize.parameters.object.interior.sigma_t.bounds: the lower one comes first",
    ),
    (
        r#""bounds": [0, null]"#,
        r#""initial": "nowhere.vol""#,
        "20:68: this grid cannot be used at optimize.parameters.object.interior.sigma_t.initial: nowhere.vol: cannot be opened: No such file or directory (os error 2)",
    ),
    (
        r#""bounds": [0, null]"#,
        r#""start_resolution": [2000, 2000, 2000]"#,
        "20:77: a grid of 2000×2000×2000×1 values at optimize.parameters.object.interior.sigma_t.start_resolution: it would hold 8000000000 values; at most 2147483647 are possible",
    ),
    (
        r#"{"at": 0.25}"#,
        r#"{"at": 0.75}"#,
        "23:30: this stage is not later than the one before at optimize.stages[1]: order the stages by `at`, all different",
    ),
    (
        r#"{"at": 0.25}"#,
        r#"{"at": 1}"#,
        "23:23: the value 1 is not possible at optimize.stages[0].at: it must lie between 0 and 1, both excluded",
    ),
    (
        r#"{"at": 0.25}"#,
        r#"{"at": 0.25, "upsample": 1.5}"#,
        "23:41: the value 1.5 is not possible at optimize.stages[0].upsample: expected a whole number from 1 to 8",
    ),
    (
        r#""references": {"type": "constant", "value": 0.5}"#,
        r#""references": "imags""#,
        "24:19: unknown type `imags` at optimize.references: did you mean `images`?",
    ),
    (
        r#""references": {"type": "constant", "value": 0.5}"#,
        r#""references": "images""#,
        "18:15: 1 of 1 views has no `image` to be compared with (camera) at optimize: give each one, or say in `references` what to compare with",
    ),
    (
        r#""references": {"type": "constant", "value": 0.5}"#,
        r#""references": {"type": "scene", "filename": "nowhere.json"}"#,
        "24:49: this target cannot be used at optimize.references.filename: there is no file nowhere.json",
    ),
    (
        r#""stages": ["#,
        r#""loss": "l3", "stages": ["#,
        "23:13: unknown type `l3` at optimize.loss: allowed: `l1`, `l2`, `huber`, `relative_l2`, `log_l1`",
    ),
    (
        r#""stages": ["#,
        r#""loss": {"type": "l1", "delta": 1}, "stages": ["#,
        "23:28: unknown parameter `delta` of `l1` at optimize.loss.delta: nothing is allowed here",
    ),
    (
        r#""stages": ["#,
        r#""optimizer": {"type": "adam", "beta_1": 1}, "stages": ["#,
        "23:45: the value 1 is not possible at optimize.optimizer.beta_1: it must lie between 0 and 0.999999",
    ),
    (
        r#""stages": ["#,
        r#""batch": "some", "stages": ["#,
        r#"23:14: unknown value "some" at optimize.batch: allowed: `all`"#,
    ),
    (
        r#""stages": ["#,
        r#""batch": {"views": 2}, "stages": ["#,
        "23:24: 2 views an iteration at optimize.batch.views: there is only 1 to learn from",
    ),
    (
        r#""stages": ["#,
        r#""batch": {}, "stages": ["#,
        r#"23:14: the batch is unclear at optimize.batch: write "all", {"views": n} or {"rays": n}"#,
    ),
    (
        r#""stages": ["#,
        r#""regularizers": [{"type": "sparsity", "parameter": "object.interior.sh_coeffs", "weight": 1}], "stages": ["#,
        "23:56: sparsity of something that is not density at optimize.regularizers[0].parameter: name `sigma_t`",
    ),
    (
        r#""stages": ["#,
        r#""regularizers": [{"type": "sparsity", "parameter": "object", "weight": 1}], "stages": ["#,
        "23:56: `object` is not among the optimised parameters at optimize.regularizers[0].parameter: allowed: `object.interior.sigma_t`, `object.interior.sh_coeffs`",
    ),
    (
        r#""stages": ["#,
        r#""output": {"sensors": ["camra"]}, "stages": ["#,
        "23:28: there is no sensor `camra` at optimize.output.sensors[0]: did you mean `camera`?",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "held_out": true"#,
        "18:15: none of the 1 views is left to learn from at optimize: give at least one sensor that is not `held_out`",
    ),
    // References.
    (
        r#"{"type": "tent"}"#,
        r#"{"type": "ref", "id": "filte"}"#,
        "6:93: unknown id `filte` at camera.film.rfilter.id: allowed: `background`, `camera`, `camera.film`, `camera.film.rfilter`, `object`, `object.bsdf`, `object.interior`, `object.interior.sh_coeffs`, `object.interior.sigma_t`",
    ),
    (
        r#"{"type": "tent"}"#,
        r#"{"type": "ref"}"#,
        "6:71: the reference at camera.film.rfilter lacks `id`: name an object",
    ),
    (
        r#"{"type": "tent"}"#,
        r#"{"type": "ref", "id": "object"}"#,
        "6:60: the shape `cube` at camera.film.rfilter has no place in `hdrfilm`: allowed: `width`, `height`, `crop_width`, `crop_height`, `crop_offset_x`, `crop_offset_y`, `rfilter`, `sample_border`, `color_space`, `file_format`, `pixel_format`, `component_format`",
    ),
    (
        r#"{"type": "tent"}"#,
        r#"{"type": "ref", "id": "camera.film"}"#,
        "6:71: this reference leads back to itself: an object cannot contain itself",
    ),
    (
        r#"{"type": "tent"}"#,
        r#"{"type": "tent", "id": "object"}"#,
        "8:3: the id `object` of object is also that of camera.film.rfilter: ids must differ",
    ),
    (
        r#""background": {"#,
        r#""a.b": {"type": "box"}, "background": {"#,
        r#"17:3: an object cannot be called "a.b": names are letters, digits, `_` and `-`, for they become parts of paths and of files' names"#,
    ),
    // The text itself.
    (
        r#""fov": 40"#,
        r#""fov": NaN"#,
        "4:35: malformed JSON: NaN and infinity are not numbers here; every number must be finite",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 1e999"#,
        "4:35: the number 1e999 is too large; every number must be finite",
    ),
    (
        r#""fov": 40"#,
        r#""fov": 40, "fov": 41"#,
        "4:39: the name `fov` occurs twice in one object; remove one of the two",
    ),
    (
        r#""fov": 40,"#,
        r#""fov": 40,,"#,
        "4:38: malformed JSON: unexpected token in object",
    ),
    (r#""fov": 40,"#, r#""fov": 40"#, "4:37: malformed JSON: expected comma"),
    (
        r#""fov": 40,"#,
        "fov: 40,",
        "4:28: malformed JSON: expected string for object property",
    ),
];

#[test]
fn xml_is_told_from_json() {
    let found = mistakes_in("\n<scene version=\"3.0.0\"></scene>");
    assert!(
        found.contains("expected JSON, found XML: `prbopt import` converts"),
        "{found}"
    );
}

#[test]
fn every_mistake_gives_its_message() {
    let mut failures = Vec::new();
    for (from, to, expected) in MISTAKES {
        let found = mistakes_in(&edited(from, to));
        if !found.starts_with(&format!("test.json:{expected}")) || found.lines().count() != 1 {
            failures.push(format!("for {to}\nexpected {expected}\nfound    {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn the_list_of_what_is_allowed_is_given() {
    let found = mistakes_in(&edited("\"type\": \"tent\"", "\"type\": \"tent\", \"radios\": 1"));
    assert_eq!(
        found,
        "test.json:6:88: unknown parameter `radios` of `tent` at camera.film.rfilter.radios: \
         did you mean `radius`? (allowed: `radius`)"
    );
}

#[test]
fn all_mistakes_are_reported_together_in_the_order_of_the_file() {
    let text = edited("\"fov\": 40", "\"fov\": 400")
        .replace("\"sh_degree\": 1", "\"sh_degree\": 9")
        .replace("\"at\": 0.25", "\"at\": 0.25, \"to\": 1")
        .replace("\"radiance\": 1", "\"radiance\": []");
    let found = mistakes_in(&text);
    let lines: Vec<_> = found
        .lines()
        .map(|line| line.split(':').nth(1).unwrap_or_default())
        .collect();
    assert_eq!(lines, ["4", "12", "17", "23"], "{found}");
}

#[test]
fn a_mistake_in_something_that_is_used_twice_is_reported_once() {
    let film = r#""film": {"type": "hdrfilm", "width": 64, "height": 32, "rfilter": {"type": "tent"}}"#;
    let text = edited(film, r#""film": {"type": "ref", "id": "film"}"#).replace(
        "\"background\": {",
        r#""film": {"type": "hdrfilm", "widht": 64}, "second": {"type": "ref", "id": "camera"}, "background": {"#,
    );
    assert_eq!(mistakes_in(&text).matches("did you mean `width`").count(), 1);
}
