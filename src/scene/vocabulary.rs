//! Type names of Mitsuba 3 and of this program: distinguishes types that are not supported yet from unknown ones and
//! misplaced ones.

use std::fmt;

use super::diagnostics::nearest;

/// The kind of object that a type is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Bsdf,
    Dataset,
    Emitter,
    Film,
    Filter,
    Integrator,
    Medium,
    Other,
    Phase,
    Sampler,
    Sensor,
    Shape,
    Spectrum,
    Splats,
    Texture,
    Volume,
}

impl Class {
    /// The conventional name of an object of this class in its parent; any other is valid too.
    pub(super) fn usual_key(self) -> &'static str {
        match self {
            Class::Bsdf => "bsdf",
            Class::Dataset => "views",
            Class::Emitter => "emitter",
            Class::Film => "film",
            Class::Filter => "rfilter",
            Class::Integrator => "integrator",
            Class::Medium => "interior",
            Class::Other => "object",
            Class::Phase => "phase",
            Class::Sampler => "sampler",
            Class::Sensor => "sensor",
            Class::Shape => "shape",
            Class::Spectrum => "value",
            Class::Splats => "splats",
            Class::Texture => "texture",
            Class::Volume => "volume",
        }
    }

    /// Numbers that Mitsuba's objects of this class have and that change nothing here: nothing moves while a shutter is open,
    /// only `thinlens` has a focus (and reads it), silhouettes are not sampled, and pictures do not depend on blocks and passes.
    pub(super) fn without_effect(self) -> &'static [&'static str] {
        match self {
            Class::Integrator => &["block_size", "samples_per_pass"],
            Class::Sensor => &["focus_distance", "shutter_open", "shutter_close"],
            Class::Shape => &["silhouette_sampling_weight"],
            _ => &[],
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Bsdf => "BSDF",
            Class::Dataset => "data set",
            Class::Emitter => "emitter",
            Class::Film => "film",
            Class::Filter => "reconstruction filter",
            Class::Integrator => "integrator",
            Class::Medium => "medium",
            Class::Other => "scene object",
            Class::Phase => "phase function",
            Class::Sampler => "sampler",
            Class::Sensor => "sensor",
            Class::Shape => "shape",
            Class::Spectrum => "colour",
            Class::Splats => "picture",
            Class::Texture => "texture",
            Class::Volume => "volume",
        })
    }
}

/// Supported types.
const SUPPORTED: &[(Class, &[&str])] = &[
    (
        Class::Bsdf,
        &[
            "null",
            "diffuse",
            "conductor",
            "roughconductor",
            "dielectric",
            "thindielectric",
            "roughdielectric",
            "plastic",
            "roughplastic",
            "principled",
            "principledthin",
            "twosided",
            "mask",
            "blendbsdf",
            "normalmap",
            "bumpmap",
        ],
    ),
    (Class::Dataset, &["dataset"]),
    (
        Class::Emitter,
        &[
            "constant",
            "envmap",
            "area",
            "directionalarea",
            "point",
            "directional",
            "spot",
            "projector",
        ],
    ),
    (Class::Film, &["hdrfilm"]),
    (
        Class::Filter,
        &["box", "tent", "gaussian", "mitchell", "catmullrom", "lanczos"],
    ),
    (
        Class::Integrator,
        &[
            "path",
            "direct",
            "aov",
            "depth",
            "moment",
            "prb",
            "prb_attached",
            "prb_basic",
            "ad",
            "rb",
            "volpath",
            "volpathmis",
            "prbvolpath",
            "advolpath",
            "rbvolpath",
            "ptracer",
        ],
    ),
    (Class::Medium, &["radiance_field", "heterogeneous", "homogeneous"]),
    (Class::Phase, &["isotropic", "hg", "rayleigh", "blendphase"]),
    (
        Class::Sampler,
        &["independent", "stratified", "multijitter", "orthogonal", "ldsampler"],
    ),
    (
        Class::Sensor,
        &[
            "perspective",
            "thinlens",
            "orthographic",
            "radiancemeter",
            "irradiancemeter",
            "distant",
            "batch",
            "canvas",
        ],
    ),
    (
        Class::Shape,
        &[
            "cube",
            "sphere",
            "rectangle",
            "disk",
            "cylinder",
            "obj",
            "ply",
            "serialized",
            "grid",
            "sdfgrid",
            "heightfield",
            "gradient_index",
            "shapegroup",
            "instance",
        ],
    ),
    (
        Class::Spectrum,
        &["rgb", "srgb", "spectrum", "uniform", "rawconstant", "d65"],
    ),
    (Class::Splats, &["splats"]),
    (Class::Texture, &["bitmap", "checkerboard", "mesh_attribute", "volume"]),
    (Class::Volume, &["gridvolume", "constvolume", "blobs", "plume"]),
];

/// Types of Mitsuba that are not supported.
const MITSUBA_ONLY: &[(Class, &[&str])] = &[
    (
        Class::Bsdf,
        &[
            "circular",
            "hair",
            "measured",
            "measured_polarized",
            "polarizer",
            "pplastic",
            "retarder",
        ],
    ),
    (Class::Emitter, &["sunsky", "timed_sunsky", "volumelight"]),
    (Class::Film, &["specfilm"]),
    (
        Class::Integrator,
        &["direct_projective", "prb_projective", "stokes", "volprim_rf_basic"],
    ),
    (Class::Other, &["include", "merge", "resources"]),
    (Class::Phase, &["sggx", "tabphase", "tabphase_irregular"]),
    (
        Class::Shape,
        &["bsplinecurve", "ellipsoids", "ellipsoidsmesh", "linearcurve"],
    ),
    (Class::Spectrum, &["blackbody", "irregular", "regular"]),
];

/// Advice for an unsupported type of Mitsuba whose replacement is known; None: the list of all types will do.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    match name {
        "prb_projective" => {
            Some("take `prb`, whose derivatives leave out that silhouettes and the borders of shadows move")
        }
        "direct_projective" => {
            Some("take `direct`, whose derivatives leave out that silhouettes and the borders of shadows move")
        }
        "merge" => Some("put the shapes that it holds in its place"),
        "resources" => Some("write its `path` before the names of files, which are relative to the scene file"),
        _ => None,
    }
}

/// Parameters of Mitsuba's types that are not supported.
const MITSUBA_ONLY_PARAMETERS: &[(&str, &[&str])] = &[
    ("perspective", SENSOR_ONLY),
    ("thinlens", SENSOR_ONLY),
    ("orthographic", SENSOR_ONLY),
    ("radiancemeter", SENSOR_ONLY),
    ("irradiancemeter", SENSOR_ONLY),
    ("distant", SENSOR_ONLY),
    ("batch", SENSOR_ONLY),
    ("envmap", &["bitmap"]),
    ("sdfgrid", &["grid"]),
    ("gridvolume", &["data", "grid", "max_value"]),
    ("bitmap", &["bitmap", "data"]),
    ("aov", INTEGRATOR_ONLY),
    ("depth", INTEGRATOR_ONLY),
    ("moment", INTEGRATOR_ONLY),
    ("path", INTEGRATOR_ONLY),
    ("direct", INTEGRATOR_ONLY),
    ("prb", INTEGRATOR_ONLY),
    ("prb_basic", INTEGRATOR_ONLY),
    ("volpath", INTEGRATOR_ONLY),
    ("volpathmis", INTEGRATOR_ONLY),
    ("prbvolpath", INTEGRATOR_ONLY),
    ("ptracer", INTEGRATOR_ONLY),
];

const SENSOR_ONLY: &[&str] = &["srf"];
const INTEGRATOR_ONLY: &[&str] = &["timeout"];

/// The status of a type's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Supported(Class),
    /// A type of Mitsuba that is not supported.
    Mitsuba(Class),
    Nobody,
}

/// Looks a type up.
pub(super) fn lookup(name: &str) -> Known {
    let class_in = |table: &[(Class, &[&str])]| table.iter().find(|(_, names)| names.contains(&name)).map(|(c, _)| *c);
    match (class_in(SUPPORTED), class_in(MITSUBA_ONLY)) {
        (Some(class), _) => Known::Supported(class),
        (None, Some(class)) => Known::Mitsuba(class),
        (None, None) => Known::Nobody,
    }
}

/// The tag of Mitsuba's XML for objects of a type.
pub fn tag(type_name: &str) -> &'static str {
    let (Known::Supported(class) | Known::Mitsuba(class)) = lookup(type_name) else {
        return "object";
    };
    match class {
        Class::Filter => "rfilter",
        Class::Medium => "medium",
        Class::Spectrum => "spectrum",
        class => class.usual_key(),
    }
}

/// The supported types of a class.
pub(super) fn supported(class: Class) -> &'static [&'static str] {
    SUPPORTED
        .iter()
        .find(|(c, _)| *c == class)
        .map_or(&[], |(_, names)| names)
}

/// Whether an object of a scene conventionally has this name.
pub(super) fn is_usual_key(key: &str) -> bool {
    let classes = [
        Class::Bsdf,
        Class::Emitter,
        Class::Film,
        Class::Integrator,
        Class::Sensor,
        Class::Shape,
    ];
    classes.iter().any(|class| class.usual_key() == key)
}

/// The types that an unknown `name` under `key` may stand for: those of the class of the most similar type name or, if none is
/// similar, of the class that usually has this key. None if there is neither.
pub(super) fn meant(name: &str, key: &str) -> Option<&'static [&'static str]> {
    let all: Vec<&str> = SUPPORTED.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let similar = nearest(name, &all);
    let of_class = |(class, names): &&(Class, &[&str])| match (similar, key) {
        (Some(similar), _) => names.contains(&similar),
        (None, "camera") => *class == Class::Sensor,
        (None, "exterior" | "medium") => *class == Class::Medium,
        (None, key) => class.usual_key() == key,
    };
    SUPPORTED.iter().find(of_class).map(|(_, names)| *names)
}

/// Whether Mitsuba's `type_name` has a parameter called `name` that is not supported yet.
pub(super) fn is_mitsuba_parameter(type_name: &str, name: &str) -> bool {
    MITSUBA_ONLY_PARAMETERS
        .iter()
        .any(|(t, names)| *t == type_name && names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_listed_twice() {
        let mut names: Vec<_> = SUPPORTED
            .iter()
            .chain(MITSUBA_ONLY)
            .flat_map(|(_, names)| names.iter())
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_name_is_ours_mitsubas_or_nobodys() {
        assert_eq!(lookup("cube"), Known::Supported(Class::Shape));
        assert_eq!(lookup("plume"), Known::Supported(Class::Volume));
        assert_eq!(lookup("stokes"), Known::Mitsuba(Class::Integrator));
        assert_eq!(lookup("teapot"), Known::Nobody);
        let types = [
            "cube",
            "gaussian",
            "heterogeneous",
            "constvolume",
            "blackbody",
            "hg",
            "teapot",
        ];
        let tags = ["shape", "rfilter", "medium", "volume", "spectrum", "phase", "object"];
        assert_eq!(types.map(tag), tags);
    }
}
