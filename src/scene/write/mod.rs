//! Writes a scene as JSON that parses to the same scene.

mod bsdf;
mod sensors;
mod world;

use std::path::Path;

use glam::Affine3A;
use serde_json::{Map, Value, json};

use super::{
    Array, Backdrop, Background, BatchRule, Blob, ColorActivation, Decay, DensityActivation, Growth, Integrator, Loss,
    MomentRule, Optimize, Optimizer, Order, OutputRule, Penalty, Placement, RadianceField, Reference, References,
    Regularizer, Scene, Sensor, SensorKind, Source, Splats, Stage,
};

/// The resolved form of `scene`.
pub(super) fn to_json(scene: &Scene) -> Value {
    let mut root = Map::new();
    root.insert("type".into(), json!("scene"));
    for sensor in &scene.sensors {
        let written = match &scene.splats {
            Some(_) => canvas(sensor),
            None => sensors::sensor(sensor, &scene.world),
        };
        match (&sensor.batch, sensor.kind) {
            // Written into its shape below.
            (_, SensorKind::Irradiancemeter(_)) => {}
            (Some(batch), _) => {
                let shared = root
                    .entry(batch.clone())
                    .or_insert_with(|| sensors::batch(sensor, scene));
                shared[last_step(&sensor.name)] = written;
            }
            (None, _) => {
                root.insert(sensor.name.clone(), written);
            }
        }
    }
    if let Some(field) = &scene.field {
        root.insert(first_step(&field.sigma_t).into(), cube(field));
    }
    if let Some(splats) = &scene.splats {
        root.insert(first_step(&splats.position).into(), self::splats(splats));
    }
    if let Some(optic) = &scene.optic {
        let object = world::optic(optic, &mut root);
        root.insert(optic.name().to_owned(), object);
    }
    for surface in &scene.world.surfaces {
        let mut object = world::surface(surface, &scene.world, &mut root);
        for meter in &scene.sensors {
            let is_here = meter
                .name
                .split_once('.')
                .is_some_and(|(shape, _)| shape == surface.name);
            if is_here && matches!(meter.kind, SensorKind::Irradiancemeter(_)) {
                object[last_step(&meter.name)] = sensors::sensor(meter, &scene.world);
            }
        }
        root.insert(surface.name.clone(), object);
    }
    for group in scene.world.groups.iter().filter(|group| !group.path.contains('.')) {
        let object = world::group(group, &scene.world, &mut root);
        root.insert(group.path.clone(), object);
    }
    for instance in &scene.world.instances {
        let object = world::instance(instance, &scene.world, &mut root);
        root.insert(instance.name.clone(), object);
    }
    for light in &scene.world.lights {
        let object = world::light(light, &mut root);
        root.insert(light.name.clone(), object);
    }
    if let Some(array) = scene.background.array() {
        root.insert(first_step(array).into(), background(&scene.background));
    }
    // A radiance field is always marched, whatever the integrator.
    let is_used = !scene.world.is_empty() || scene.integrator != Integrator::default();
    if scene.field.is_none() && scene.splats.is_none() && is_used {
        let name = world::free_name(&root, "integrator");
        root.insert(name, world::integrator(scene));
    }
    if let Some(optimize) = &scene.optimize {
        root.insert("optimize".into(), self::optimize(optimize, scene));
    }
    Value::Object(root)
}

/// The key of the top-level object that an array belongs to.
fn first_step(array: &Array) -> &str {
    array.path.split('.').next().unwrap_or_default()
}

/// The name of a sensor in its batch or shape.
fn last_step(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// The shortest decimal that parses to the same f32.
fn number(x: f32) -> Value {
    let short = x.to_string().parse::<f64>().ok().filter(|short| *short as f32 == x);
    json!(short.unwrap_or_else(|| x.into()))
}

fn numbers(list: &[f32]) -> Value {
    Value::Array(list.iter().map(|x| number(*x)).collect())
}

/// A single entry stands for all channels.
fn channels(list: &[f32]) -> Value {
    match list {
        [one] => number(*one),
        many => numbers(many),
    }
}

fn matrix(m: &Affine3A) -> Value {
    let row = |i: usize| {
        let axes = [
            m.matrix3.x_axis[i],
            m.matrix3.y_axis[i],
            m.matrix3.z_axis[i],
            m.translation[i],
        ];
        numbers(&axes)
    };
    json!([row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]])
}

fn file(path: &Path) -> Value {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    json!(absolute.to_string_lossy())
}

fn canvas(sensor: &Sensor) -> Value {
    let mut object = json!({"type": "canvas", "held_out": sensor.held_out, "film": sensors::film(sensor)});
    if let Some(reference) = &sensor.reference {
        object["image"] = image(reference);
    }
    object
}

fn splats(splats: &Splats) -> Value {
    let mut object = json!({
        "type": "splats",
        "order": match splats.order {
            Order::Index => "index",
            Order::Size => "size",
        },
    });
    let (placement, seed) = match &splats.placement {
        Placement::File(path) => {
            object["filename"] = file(path);
            return object;
        }
        Placement::Random { seed } => ("random", seed),
        Placement::Picture { seed } => ("picture", seed),
    };
    object["count"] = json!(splats.count());
    object["placement"] = json!(placement);
    object["seed"] = json!(seed);
    object
}

fn image(reference: &Reference) -> Value {
    json!({
        "filename": file(&reference.path),
        "downscale": reference.downscale,
        "background": match reference.backdrop {
            Backdrop::Opaque => json!("none"),
            Backdrop::Color(color) => numbers(&color),
            Backdrop::Random => json!("random"),
        },
    })
}

fn cube(field: &RadianceField) -> Value {
    json!({
        "type": "cube",
        "to_world": matrix(&field.to_world),
        "bsdf": {"type": "null"},
        "interior": {
            "type": "radiance_field",
            "sh_degree": field.sh_degree,
            "density_activation": match field.density_activation {
                DensityActivation::Relu => "relu",
                DensityActivation::Softplus => "softplus",
                DensityActivation::Exp => "exp",
            },
            "color_activation": match field.color_activation {
                ColorActivation::Clip => "clip",
                ColorActivation::Sigmoid => "sigmoid",
                ColorActivation::ReluHalf => "relu",
            },
            "step": number(field.step),
            "stop": number(field.stop),
            "sigma_t": source(&field.sigma_t),
            "sh_coeffs": source(&field.sh_coeffs),
        },
    })
}

/// A volume with the array's values.
fn source(array: &Array) -> Value {
    match &array.source {
        Source::Fill(values) => {
            json!({"type": "gridvolume", "resolution": array.shape.size, "value": channels(values)})
        }
        Source::GridFile(path)
        | Source::ImageFile(path)
        | Source::Reflectance { path, .. }
        | Source::Share { path, .. }
        | Source::Radiance { path, .. }
        | Source::Relief { path, .. } => {
            json!({"type": "gridvolume", "filename": file(path)})
        }
        Source::Placed
        | Source::Vertices { .. }
        | Source::VertexNormals { .. }
        | Source::Leaves { .. }
        | Source::Planet { .. }
        | Source::Motif { .. }
        | Source::Attribute { .. } => Value::Null,
        Source::Blobs { base, blobs } => json!({
            "type": "blobs",
            "resolution": array.shape.size,
            "base": channels(base),
            "blobs": blobs.iter().map(blob).collect::<Vec<_>>(),
        }),
        Source::Plume { seed, value } => json!({
            "type": "plume",
            "resolution": array.shape.size,
            "seed": seed,
            "value": channels(value),
        }),
    }
}

fn blob(blob: &Blob) -> Value {
    json!({"center": numbers(&blob.center), "radius": number(blob.radius), "value": channels(&blob.value)})
}

fn background(background: &Background) -> Value {
    match background {
        Background::None => Value::Null,
        Background::Constant { radiance } => json!({"type": "constant", "radiance": fill(radiance)}),
        Background::Envmap {
            data,
            scale,
            sampling_weight,
            mis_compensation,
            to_world,
        } => {
            let mut object = json!({"type": "envmap", "scale": first_value(scale), "to_world": matrix(to_world)});
            object["sampling_weight"] = number(*sampling_weight);
            if *mis_compensation {
                object["mis_compensation"] = json!(true);
            }
            match &data.source {
                Source::ImageFile(path) => object["filename"] = file(path),
                _ => object["data"] = json!({"resolution": &data.shape.size[..2], "value": fill(data)}),
            }
            object
        }
    }
}

/// The first value of a filled array, which has one channel; 1 otherwise.
fn first_value(array: &Array) -> Value {
    match &array.source {
        Source::Fill(values) => number(values[0]),
        _ => json!(1.0),
    }
}

/// The value or colour of an array that is the same in all texels; 0 for other sources.
fn fill(array: &Array) -> Value {
    match &array.source {
        Source::Fill(values) => channels(values),
        _ => json!(0.0),
    }
}

fn optimize(optimize: &Optimize, scene: &Scene) -> Value {
    let mut object = json!({
        "iterations": optimize.iterations,
        "spp": optimize.spp,
        "spp_grad": optimize.spp_grad,
        "seed": optimize.seed,
        "parameters": parameters(scene),
        "batch": match optimize.batch {
            BatchRule::AllViews => json!("all"),
            BatchRule::Views(views) => json!({"views": views}),
            BatchRule::Rays(rays) => json!({"rays": rays}),
        },
        "loss": loss(&optimize.loss),
        "optimizer": optimizer(&optimize.optimizer),
        "schedule": schedule(optimize),
        "stages": optimize.stages.iter().map(stage).collect::<Vec<_>>(),
        "regularizers": optimize.regularizers.iter().map(regularizer).collect::<Vec<_>>(),
        "references": match &optimize.references {
            References::Images => json!({"type": "images"}),
            References::Scene { path, spp } => json!({"type": "scene", "filename": file(path), "spp": spp}),
            References::Constant(color) => json!({"type": "constant", "value": numbers(color)}),
            References::Leaves { seed } => json!({"type": "leaves", "seed": seed}),
            References::Figures(figures) => match &figures[..] {
                [figure] => json!({"type": "figure", "name": figure.word()}),
                all => json!({"type": "figure", "name": all.iter().map(|f| f.word()).collect::<Vec<_>>()}),
            },
        },
        "output": output(&optimize.output),
    });
    if !scene.views.is_empty() {
        let rule = &optimize.views;
        object["views"] = json!({
            "start": number(rule.start),
            "held_out_iterations": rule.held_out_iterations,
            "held_out_rate": number(rule.held_out_rate),
        });
    }
    if let Some(Growth { count, every, until }) = optimize.growth {
        object["growth"] = json!({"count": count, "every": every, "until": number(until)});
    }
    object
}

/// `initial` and `start_resolution` are omitted: the volumes already have these values and shapes.
fn parameters(scene: &Scene) -> Value {
    let bound = |x: f32| if x.is_finite() { number(x) } else { Value::Null };
    let tuned = scene
        .arrays()
        .into_iter()
        .filter_map(|array| Some((array, array.tuning?)));
    let entries = tuned.map(|(array, tuning)| {
        let [low, high] = tuning.bounds.map(bound);
        let mut entry = json!({"learning_rate": number(tuning.learning_rate), "bounds": [low, high]});
        if tuning.smoothing > 0.0 {
            entry["smoothing"] = number(tuning.smoothing);
        }
        (array.path.clone(), entry)
    });
    Value::Object(entries.collect())
}

fn loss(loss: &Loss) -> Value {
    match loss {
        Loss::L1 => json!({"type": "l1"}),
        // Scene files have no form of `Linear`, which is for gradient checks, and of `ScaledL2`, which the program derives.
        Loss::L2 | Loss::ScaledL2 { .. } | Loss::Linear { .. } => json!({"type": "l2"}),
        Loss::Huber { delta } => json!({"type": "huber", "delta": number(*delta)}),
        Loss::RelativeL2 => json!({"type": "relative_l2"}),
        Loss::LogL1 => json!({"type": "log_l1"}),
        Loss::NormalizedL2 => json!({"type": "normalized_l2"}),
    }
}

fn optimizer(optimizer: &Optimizer) -> Value {
    match *optimizer {
        Optimizer::Adam {
            beta_1,
            beta_2,
            epsilon,
            mask_updates,
        } => json!({
            "type": "adam",
            "beta_1": number(beta_1),
            "beta_2": number(beta_2),
            "epsilon": number(epsilon),
            "mask_updates": mask_updates,
        }),
        Optimizer::Sgd { momentum } => json!({"type": "sgd", "momentum": number(momentum)}),
        Optimizer::RmsProp { decay, epsilon } => {
            json!({"type": "rmsprop", "decay": number(decay), "epsilon": number(epsilon)})
        }
    }
}

fn schedule(optimize: &Optimize) -> Value {
    let warm_up = optimize.schedule.warm_up;
    match optimize.schedule.decay {
        Decay::Constant => json!({"type": "constant", "warm_up": warm_up}),
        Decay::Exponential { final_factor } => {
            json!({"type": "exponential", "final_factor": number(final_factor), "warm_up": warm_up})
        }
        Decay::Cosine { final_factor } => {
            json!({"type": "cosine", "final_factor": number(final_factor), "warm_up": warm_up})
        }
    }
}

fn stage(stage: &Stage) -> Value {
    let moments = match stage.moments {
        MomentRule::Reset => "reset",
        MomentRule::Resample => "resample",
    };
    json!({
        "at": number(stage.at),
        "upsample": stage.upsample,
        "moments": moments,
        "spp": stage.spp,
        "spp_grad": stage.spp_grad,
    })
}

fn regularizer(regularizer: &Regularizer) -> Value {
    let penalty = match regularizer.penalty {
        Penalty::TotalVariation => "total_variation",
        Penalty::Sparsity => "sparsity",
    };
    json!({
        "type": penalty,
        "parameter": regularizer.parameter,
        "weight": number(regularizer.weight),
        "every": regularizer.every,
    })
}

fn output(rule: &OutputRule) -> Value {
    json!({
        "images_every": rule.images_every,
        "sensors": rule.sensors,
        "checkpoint_seconds": number(rule.checkpoint_seconds),
        "spp": rule.spp,
    })
}
