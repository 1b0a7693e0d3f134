//! The names of Mitsuba 3 and of this program's own additions, so that a type that is not supported yet can be told
//! apart from one that nobody has, and from one that stands in the wrong place.

use std::fmt;

/// What kind of object a type is.
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
    Texture,
    Volume,
}

impl Class {
    /// The name under which an object of this class usually stands in its parent; any other is allowed too.
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
            Class::Texture => "texture",
            Class::Volume => "volume",
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
            Class::Texture => "texture",
            Class::Volume => "volume",
        })
    }
}

/// The types that are supported.
const SUPPORTED: &[(Class, &[&str])] = &[
    (Class::Bsdf, &["null"]),
    (Class::Dataset, &["dataset"]),
    (Class::Emitter, &["constant", "envmap"]),
    (Class::Film, &["hdrfilm"]),
    (Class::Filter, &["box", "tent", "gaussian"]),
    (Class::Medium, &["radiance_field"]),
    (Class::Sampler, &["independent"]),
    (Class::Sensor, &["perspective"]),
    (Class::Shape, &["cube"]),
    (Class::Spectrum, &["rgb"]),
    (Class::Volume, &["gridvolume", "constvolume", "blobs"]),
];

/// The types that Mitsuba has and this program does not.
const MITSUBA_ONLY: &[(Class, &[&str])] = &[
    (
        Class::Bsdf,
        &[
            "blendbsdf",
            "bumpmap",
            "circular",
            "conductor",
            "dielectric",
            "diffuse",
            "hair",
            "mask",
            "measured",
            "measured_polarized",
            "normalmap",
            "plastic",
            "polarizer",
            "pplastic",
            "principled",
            "principledthin",
            "retarder",
            "roughconductor",
            "roughdielectric",
            "roughplastic",
            "thindielectric",
            "twosided",
        ],
    ),
    (
        Class::Emitter,
        &[
            "area",
            "directional",
            "directionalarea",
            "point",
            "projector",
            "spot",
            "sunsky",
            "timed_sunsky",
            "volumelight",
        ],
    ),
    (Class::Film, &["specfilm"]),
    (Class::Filter, &["catmullrom", "lanczos", "mitchell"]),
    (
        Class::Integrator,
        &[
            "aov",
            "depth",
            "direct",
            "direct_projective",
            "moment",
            "path",
            "prb",
            "prb_basic",
            "prb_projective",
            "prbvolpath",
            "ptracer",
            "stokes",
            "volpath",
            "volpathmis",
            "volprim_rf_basic",
        ],
    ),
    (Class::Medium, &["heterogeneous", "homogeneous"]),
    (Class::Other, &["include", "merge", "resources"]),
    (
        Class::Phase,
        &[
            "blendphase",
            "hg",
            "isotropic",
            "rayleigh",
            "sggx",
            "tabphase",
            "tabphase_irregular",
        ],
    ),
    (
        Class::Sampler,
        &["ldsampler", "multijitter", "orthogonal", "stratified"],
    ),
    (
        Class::Sensor,
        &[
            "batch",
            "distant",
            "irradiancemeter",
            "orthographic",
            "radiancemeter",
            "thinlens",
        ],
    ),
    (
        Class::Shape,
        &[
            "bsplinecurve",
            "cylinder",
            "disk",
            "ellipsoids",
            "ellipsoidsmesh",
            "instance",
            "linearcurve",
            "obj",
            "ply",
            "rectangle",
            "sdfgrid",
            "serialized",
            "shapegroup",
            "sphere",
        ],
    ),
    (
        Class::Spectrum,
        &[
            "blackbody",
            "d65",
            "irregular",
            "rawconstant",
            "regular",
            "spectrum",
            "srgb",
            "uniform",
        ],
    ),
    (Class::Texture, &["bitmap", "checkerboard", "mesh_attribute", "volume"]),
];

/// Parameters that Mitsuba's type has and ours does not support yet.
const MITSUBA_ONLY_PARAMETERS: &[(&str, &[&str])] = &[
    (
        "perspective",
        &["focus_distance", "shutter_open", "shutter_close", "srf", "medium"],
    ),
    ("constant", &["sampling_weight"]),
    ("envmap", &["bitmap", "mis_compensation", "sampling_weight"]),
    ("cube", &["exterior", "flip_normals", "silhouette_sampling_weight"]),
    ("gridvolume", &["data", "grid", "max_value"]),
];

/// What is known about a type's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Supported(Class),
    /// Mitsuba has it, this program does not.
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

/// The supported types of a class.
pub(super) fn supported(class: Class) -> &'static [&'static str] {
    SUPPORTED
        .iter()
        .find(|(c, _)| *c == class)
        .map_or(&[], |(_, names)| names)
}

/// Every type that may stand at the top level of a scene.
pub(super) fn top_level() -> Vec<&'static str> {
    SUPPORTED.iter().flat_map(|(_, names)| names.iter().copied()).collect()
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
        assert_eq!(lookup("heterogeneous"), Known::Mitsuba(Class::Medium));
        assert_eq!(lookup("teapot"), Known::Nobody);
    }
}
