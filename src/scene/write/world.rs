//! Shapes, media, lights and the integrator as JSON.

use glam::Affine3A;
use serde_json::{Map, Value, json};

use super::super::{
    Array, Channels, Estimator, Geometry, Gradient, Group, Instance, Integrator, Light, LightKind, Lookup, Medium,
    MeshFormat, Optic, Phase, Rules, Scene, Slab, Source, Surface, Variant, World, Wrap,
};
use super::bsdf;
use super::{channels, file, fill, matrix, number, numbers, source};

/// The medium of this index, used at `place`: the object itself if its path is there, else a reference.
pub(super) fn medium(world: &World, index: usize, place: &str) -> Value {
    let Some(medium) = world.media.get(index) else {
        return Value::Null;
    };
    if medium.path == place {
        self::scattering(medium)
    } else {
        json!({"type": "ref", "id": medium.path})
    }
}

fn scattering(medium: &Medium) -> Value {
    let name = if medium.homogeneous {
        "homogeneous"
    } else {
        "heterogeneous"
    };
    let mut object = json!({
        "type": name,
        "sigma_t": lookup(&medium.sigma_t),
        "albedo": lookup(&medium.albedo),
        "scale": number(medium.scale),
    });
    if let Some(emission) = &medium.emission {
        object["emission"] = lookup(emission);
    }
    let key = phase_key(&medium.phase, &medium.path).unwrap_or("phase");
    object[key] = phase(&medium.phase);
    object
}

pub(super) fn lookup(lookup: &Lookup) -> Value {
    let array = &lookup.array;
    // A single number would be read as one channel.
    let value = match &array.source {
        Source::Fill(values) if values.len() == 1 => channels(&vec![values[0]; array.shape.channels]),
        _ => fill(array),
    };
    if lookup.constant && lookup.to_world == Affine3A::IDENTITY {
        return value;
    }
    if lookup.constant {
        return json!({"type": "constvolume", "value": value, "to_world": matrix(&lookup.to_world)});
    }
    let mut object = source(array);
    object["to_world"] = matrix(&lookup.to_world);
    if object["type"] == "gridvolume" {
        if object.get("value").is_some() {
            object["value"] = value;
        }
        object["filter_type"] = json!(if lookup.nearest { "nearest" } else { "trilinear" });
        object["wrap_mode"] = wrap(lookup.wrap);
    }
    object
}

pub(super) fn wrap(wrap: Wrap) -> Value {
    json!(match wrap {
        Wrap::Clamp => "clamp",
        Wrap::Repeat => "repeat",
        Wrap::Mirror => "mirror",
    })
}

fn phase(phase: &Phase) -> Value {
    match phase {
        Phase::Isotropic => json!({"type": "isotropic"}),
        Phase::Rayleigh => json!({"type": "rayleigh"}),
        Phase::Hg { g } => json!({"type": "hg", "g": fill(g)}),
        Phase::Blend { weight, phases } => {
            let path = weight.array.path.trim_end_matches(".weight");
            let [first, second] = blend_keys(phases, path);
            json!({
                "type": "blendphase",
                "weight": lookup(weight),
                first: self::phase(&phases[0]),
                second: self::phase(&phases[1]),
            })
        }
    }
}

/// The name of a phase function in the object at `parent`, if its parameters' paths state it.
fn phase_key<'a>(phase: &'a Phase, parent: &str) -> Option<&'a str> {
    let array: &Array = match phase {
        Phase::Isotropic | Phase::Rayleigh => return None,
        Phase::Hg { g } => g,
        Phase::Blend { weight, .. } => &weight.array,
    };
    let below = array.path.strip_prefix(parent)?.strip_prefix('.')?;
    below.split('.').next()
}

/// Two different keys for the phase functions of a blend.
fn blend_keys(phases: &[Phase; 2], path: &str) -> [String; 2] {
    let known = [0, 1].map(|i| phase_key(&phases[i], path).map(str::to_string));
    match known {
        [Some(first), Some(second)] => [first, second],
        [Some(first), None] => [first.clone(), first + "-"],
        [None, Some(second)] => ["-".to_string(), second],
        [None, None] => ["phase_1", "phase_2"].map(str::to_string),
    }
}

/// A shape; BSDFs and textures that stand elsewhere in the file are added to `root`.
pub(super) fn surface(surface: &Surface, world: &World, root: &mut Map<String, Value>) -> Value {
    let mut object = geometry(&surface.geometry);
    object["to_world"] = matrix(&surface.to_world);
    object["flip_normals"] = json!(surface.flip_normals);
    let key = bsdf::key_in(&surface.bsdf_path, &surface.name).unwrap_or("bsdf");
    object[key] = bsdf::place(&surface.bsdf, &surface.bsdf_path, &surface.name, root);
    for (key, index) in [("interior", surface.interior), ("exterior", surface.exterior)] {
        if let Some(index) = index {
            object[key] = medium(world, index, &format!("{}.{key}", surface.name));
        }
    }
    if let Some(displacement) = &surface.displacement {
        let texture = bsdf::texture(&displacement.height, &surface.name, "displacement", root);
        object["displacement"] = texture;
        object["displacement_scale"] = number(displacement.scale);
    }
    if let Some(emitter) = &surface.emitter {
        let path = format!("{}.{}", surface.name, emitter.name);
        object[&emitter.name] = json!({
            "type": if emitter.directional { "directionalarea" } else { "area" },
            "radiance": bsdf::texture(&emitter.radiance, &path, "radiance", root),
            "sampling_weight": number(emitter.sampling_weight),
        });
    }
    object
}

/// The slab or cube that light is traced through.
pub(super) fn optic(optic: &Optic, root: &mut Map<String, Value>) -> Value {
    match optic {
        Optic::Slab(slab) => self::slab(slab, root),
        Optic::Cube(cube) => json!({
            "type": "gradient_index",
            "to_world": matrix(&cube.to_world),
            "index": source(&cube.index),
            "step": number(cube.step),
            "refraction": cube.refracts,
        }),
    }
}

fn slab(slab: &Slab, root: &mut Map<String, Value>) -> Value {
    json!({
        "type": "heightfield",
        "to_world": matrix(&slab.to_world),
        "thickness": number(slab.thickness),
        "heights": bsdf::texture(&slab.texture(), &slab.name, "heights", root),
        "bsdf": {
            "type": "dielectric",
            "int_ior": number(slab.eta),
            "ext_ior": 1,
            "specular_reflectance": 0,
            "specular_transmittance": numbers(&slab.transmittance),
        },
    })
}

fn geometry(geometry: &Geometry) -> Value {
    match geometry {
        Geometry::Cube => json!({"type": "cube"}),
        Geometry::Rectangle => json!({"type": "rectangle"}),
        Geometry::Disk => json!({"type": "disk"}),
        Geometry::Cylinder { ends: [p0, p1], radius } => {
            json!({"type": "cylinder", "p0": numbers(p0), "p1": numbers(p1), "radius": number(*radius)})
        }
        Geometry::Sphere { center, radius } => {
            json!({"type": "sphere", "center": numbers(center), "radius": number(*radius)})
        }
        Geometry::Mesh {
            path,
            format,
            face_normals,
            flip_tex_coords,
        } => {
            let (name, key, value) = match format {
                MeshFormat::Obj => ("obj", "flip_tex_coords", json!(flip_tex_coords)),
                MeshFormat::Ply => ("ply", "flip_tex_coords", json!(flip_tex_coords)),
                MeshFormat::Serialized(index) => ("serialized", "shape_index", json!(index)),
                MeshFormat::Grid(squares) => {
                    return json!({"type": "grid", "resolution": squares, "face_normals": face_normals});
                }
            };
            let mut object = json!({"type": name, "filename": file(path), "face_normals": face_normals});
            object[key] = value;
            object
        }
        Geometry::Distances { path, smooth } => {
            let normals = if *smooth { "smooth" } else { "analytic" };
            json!({"type": "sdfgrid", "filename": file(path), "normals": normals})
        }
    }
}

/// A group; BSDFs and textures that stand elsewhere in the file are added to `root`.
pub(super) fn group(group: &Group, world: &World, root: &mut Map<String, Value>) -> Value {
    let mut object = json!({"type": "shapegroup"});
    for shape in &group.surfaces {
        let key = bsdf::key_in(&shape.name, &group.path).unwrap_or("shape");
        object[key] = surface(shape, world, root);
    }
    object
}

/// An instance; its group is written into it if the file has it there, else referred to.
pub(super) fn instance(instance: &Instance, world: &World, root: &mut Map<String, Value>) -> Value {
    let mut object = json!({"type": "instance", "to_world": matrix(&instance.to_world)});
    let shown = &world.groups[instance.group];
    match bsdf::key_in(&shown.path, &instance.name) {
        Some(key) => object[key] = group(shown, world, root),
        None => object["group"] = json!({"type": "ref", "id": shown.path}),
    }
    object
}

pub(super) fn light(light: &Light, root: &mut Map<String, Value>) -> Value {
    // Degrees are written in f64: the f32 digits of degrees would not parse to the same radians.
    let degrees = |radians: f32| json!(f64::from(radians).to_degrees());
    let mut object = match &light.kind {
        LightKind::Point { position } => json!({"type": "point", "position": numbers(position)}),
        LightKind::Directional { direction } => json!({"type": "directional", "direction": numbers(direction)}),
        LightKind::Spot { to_world, cutoff, beam } => json!({
            "type": "spot",
            "to_world": matrix(to_world),
            "cutoff_angle": degrees(*cutoff),
            "beam_width": degrees(*beam),
        }),
        LightKind::Projector { to_world, fov } => json!({
            "type": "projector",
            "to_world": matrix(to_world),
            "fov": number(*fov),
        }),
    };
    let key = light.intensity.path.rsplit('.').next().unwrap_or_default();
    object[key] = fill(&light.intensity);
    if let Some(texture) = &light.texture {
        let key = match light.kind {
            LightKind::Projector { .. } => "irradiance",
            _ => "texture",
        };
        object[key] = bsdf::texture(texture, &light.name, key, root);
    }
    object["sampling_weight"] = number(light.sampling_weight);
    object
}

/// The integrator, with what pictures show beside its radiance.
pub(super) fn integrator(scene: &Scene) -> Value {
    let Channels { aovs, depth, moments } = &scene.channels;
    let list: Vec<String> = aovs
        .iter()
        .map(|aov| format!("{}:{}", aov.name, aov.kind.word()))
        .collect();
    if let Some(name) = moments {
        let mut object = json!({"type": "moment"});
        object[name] = light_integrator(&scene.integrator);
        return object;
    }
    match (depth, list.is_empty()) {
        (true, _) => json!({"type": "depth"}),
        (false, true) => light_integrator(&scene.integrator),
        (false, false) => {
            json!({"type": "aov", "aovs": list.join(","), "image": light_integrator(&scene.integrator)})
        }
    }
}

fn light_integrator(integrator: &Integrator) -> Value {
    let depth = integrator.max_depth.map_or(-1, i64::from);
    let mut object = json!({
        "type": match (integrator.rules, integrator.estimator) {
            (Rules::Path, _) => "path",
            (Rules::Basic, _) => "prb_basic",
            (Rules::Light, _) => "ptracer",
            (Rules::Prb, Estimator::PathReplay) if integrator.attached => "prb_attached",
            (Rules::Prb, Estimator::PathReplay) => "prb",
            (Rules::Prb, Estimator::Tape) => "ad",
            (Rules::Prb, Estimator::Radiative(_)) => "rb",
            (Rules::Volpath, Estimator::PathReplay) => "prbvolpath",
            (Rules::Volpath, Estimator::Tape) => "advolpath",
            (Rules::Volpath, Estimator::Radiative(_)) => "rbvolpath",
        },
        "max_depth": depth,
        "rr_depth": integrator.rr_depth,
        "hide_emitters": integrator.hide_emitters,
    });
    if let Some(regularization) = integrator.inverted {
        object["jacobians"] = json!("inverted");
        object["regularization"] = json!(regularization);
    }
    if integrator.rules == Rules::Volpath {
        object["gradient"] = json!(match integrator.gradient {
            Gradient::Auto => "auto",
            Gradient::Paired => "paired",
            Gradient::Drt => "drt",
            Gradient::FreeFlight => "free_flight",
        });
    }
    if let Estimator::Radiative(variant) = integrator.estimator {
        object["variant"] = json!(match variant {
            Variant::Unbiased => "unbiased",
            Variant::Biased => "biased",
            Variant::Pipelined => "pipelined",
            Variant::BiasedPipelined => "biased_pipelined",
        });
    }
    object
}

/// A name that is not taken in `root`.
pub(super) fn free_name(root: &Map<String, Value>, name: &str) -> String {
    let mut free = name.to_string();
    while root.contains_key(&free) {
        free.push('_');
    }
    free
}
