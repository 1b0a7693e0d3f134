//! The block `optimize`: parameters to recover, and settings of the optimisation.

use super::diagnostics::suggest;
use super::figures::Figure;
use super::object::Object;
use super::reader::Value;
use super::{
    BatchRule, Decay, Growth, Loss, MomentRule, Optimize, Optimizer, OutputRule, Penalty, References, Regularizer,
    Scene, Schedule, Stage, ViewRule, color, files, parameters, root,
};

/// Reads the block and applies its parameters to the arrays of `scene`, which is otherwise complete.
pub(super) fn read(value: &Value<'_>, scene: &mut Scene) -> Option<Optimize> {
    let mut object = value.block("optimize")?;
    let iterations = object.integer("iterations", 1000);
    let spp = object.integer("spp", 1);
    let spp_grad = object.integer("spp_grad", spp);
    let given_stages = object.get("stages");
    let mut stages = given_stages
        .as_ref()
        .map_or_else(Vec::new, |value| stages(value, [spp, spp_grad]));
    let tuned = object.require("parameters", "the parameters to recover, by path");
    if let Some(tuned) = &tuned {
        parameters::tune(tuned, &stages, scene);
    }
    if let Some(given) = &given_stages {
        check_refined(given, &mut stages, scene);
        check_changed(given, &stages, [spp, spp_grad]);
    }
    let batch = object
        .get("batch")
        .and_then(|value| batch(&value, scene))
        .unwrap_or(BatchRule::AllViews);
    let loss = object.get("loss").and_then(|value| loss(&value)).unwrap_or(Loss::L2);
    let optimizer = object
        .get("optimizer")
        .and_then(|value| optimizer(&value))
        .unwrap_or(DEFAULT_OPTIMIZER);
    let schedule = object
        .get("schedule")
        .and_then(|value| schedule(&value, iterations))
        .unwrap_or(CONSTANT);
    let regularizers = object
        .get("regularizers")
        .map_or_else(Vec::new, |value| regularizers(&value, scene));
    let growth = object.get("growth").and_then(|value| growth(&value, scene));
    let views = object
        .get("views")
        .and_then(|value| views(&value, scene))
        .unwrap_or(VIEWS);
    let references = object
        .get("references")
        .and_then(|value| references(&value, scene))
        .unwrap_or(References::Images);
    let seed = object
        .get("seed")
        .and_then(|value| value.integer(0, u64::MAX))
        .unwrap_or(0);
    let output = output(&mut object, scene);
    check_views(&object, scene, &references);
    object.finish();
    Some(Optimize {
        iterations,
        spp,
        spp_grad,
        batch,
        loss,
        optimizer,
        schedule,
        stages,
        regularizers,
        growth,
        views,
        references,
        seed,
        output,
    })
}

const DEFAULT_OPTIMIZER: Optimizer = Optimizer::Adam {
    beta_1: 0.9,
    beta_2: 0.999,
    epsilon: 1e-8,
    mask_updates: false,
};

const CONSTANT: Schedule = Schedule {
    decay: Decay::Constant,
    warm_up: 0,
};

const VIEWS: ViewRule = ViewRule {
    start: 0.0,
    held_out_iterations: 0,
    held_out_rate: 1e-3,
};

/// When views are refined.
fn views(value: &Value<'_>, scene: &mut Scene) -> Option<ViewRule> {
    let mut object = value.block("views")?;
    let rule = ViewRule {
        start: object.number("start", VIEWS.start),
        held_out_iterations: object.integer("held_out_iterations", VIEWS.held_out_iterations),
        held_out_rate: object.number("held_out_rate", VIEWS.held_out_rate),
    };
    object.finish();
    if rule.held_out_iterations > 0 {
        super::views::make_poses(value, scene);
    } else if scene.views.is_empty() && !value.context.has_errors() {
        value.error(
            "no view is refined",
            "name `views.poses` in `parameters`, or say `held_out_iterations`",
        );
    }
    Some(rule)
}

/// Checks that there are views with references to optimise for.
fn check_views(object: &Object<'_>, scene: &Scene, references: &References) {
    let context = object.value.context;
    if scene.sensors.iter().all(|sensor| sensor.held_out) && !context.has_errors() {
        let advice = "give at least one sensor that is not `held_out`";
        object.error(
            format!("none of the {} views is left to learn from", scene.sensors.len()),
            advice,
        );
    }
    if *references == References::Images && !context.has_errors() {
        let without = scene
            .sensors
            .iter()
            .filter(|sensor| sensor.reference.is_none())
            .map(|sensor| sensor.name.as_str());
        let without: Vec<_> = without.collect();
        if !without.is_empty() {
            let has = if without.len() == 1 { "has" } else { "have" };
            let what = format!(
                "{} of {} views {has} no `image` to be compared with ({})",
                without.len(),
                scene.sensors.len(),
                without.join(", ")
            );
            object.error(what, "give each one, or say in `references` what to compare with");
        }
    }
}

fn batch(value: &Value<'_>, scene: &Scene) -> Option<BatchRule> {
    if value.as_str().is_some() {
        return value.choice(&[("all", BatchRule::AllViews)], &[]);
    }
    let mut object = value.block("batch")?;
    let (views, rays) = (object.get("views"), object.get("rays"));
    let rule = match (&views, &rays) {
        (Some(views), None) => {
            let count = views.integer(1, u32::MAX.into())? as u32;
            let training = scene.sensors.iter().filter(|sensor| !sensor.held_out).count();
            // Without any, the mistake is told elsewhere.
            if count as usize > training && training > 0 && !value.context.has_errors() {
                views.error(
                    format!("{count} views an iteration"),
                    match training {
                        1 => "there is only 1 to learn from".into(),
                        _ => format!("there are only {training} to learn from"),
                    },
                );
            }
            Some(BatchRule::Views(count))
        }
        (None, Some(rays)) if scene.splats.is_some() => {
            rays.error(
                "single rays of a picture of splats",
                "splats are drawn a view at a time: write \"all\"",
            );
            None
        }
        (None, Some(rays)) => Some(BatchRule::Rays(rays.integer(1, 1 << 28)? as u32)),
        _ => {
            object.error("the batch is unclear", "write \"all\", {\"views\": n} or {\"rays\": n}");
            None
        }
    };
    object.finish();
    rule
}

fn loss(value: &Value<'_>) -> Option<Loss> {
    let mut object = value.variant("loss")?;
    let loss = match object.name {
        "l1" => Loss::L1,
        "l2" => Loss::L2,
        "relative_l2" => Loss::RelativeL2,
        "log_l1" => Loss::LogL1,
        "normalized_l2" => Loss::NormalizedL2,
        _ => Loss::Huber {
            delta: object.number("delta", 0.1),
        },
    };
    object.finish();
    Some(loss)
}

fn optimizer(value: &Value<'_>) -> Option<Optimizer> {
    let mut object = value.variant("optimizer")?;
    let optimizer = match object.name {
        "sgd" => Optimizer::Sgd {
            momentum: object.number("momentum", 0.0),
        },
        "rmsprop" => Optimizer::RmsProp {
            decay: object.number("decay", 0.99),
            epsilon: object.number("epsilon", 1e-8),
        },
        _ => Optimizer::Adam {
            beta_1: object.number("beta_1", 0.9),
            beta_2: object.number("beta_2", 0.999),
            epsilon: object.number("epsilon", 1e-8),
            mask_updates: object.boolean("mask_updates", false),
        },
    };
    object.finish();
    Some(optimizer)
}

fn schedule(value: &Value<'_>, iterations: u32) -> Option<Schedule> {
    let mut object = value.variant("schedule")?;
    let final_factor = if object.name == "constant" {
        1.0
    } else {
        object.number("final_factor", 0.1)
    };
    let decay = match object.name {
        "constant" => Decay::Constant,
        "exponential" => Decay::Exponential { final_factor },
        _ => Decay::Cosine { final_factor },
    };
    let warm_up = object.integer_up_to("warm_up", 0, iterations);
    object.finish();
    Some(Schedule { decay, warm_up })
}

/// The stages, which must be in order; `samples` are those per pixel before the first stage.
fn stages(value: &Value<'_>, mut samples: [u32; 2]) -> Vec<Stage> {
    let items = value.list().unwrap_or_default();
    let mut stages: Vec<Stage> = Vec::with_capacity(items.len());
    for item in &items {
        let Some(stage) = stage(item, samples) else { continue };
        samples = [stage.spp, stage.spp_grad];
        if stages.last().is_some_and(|last| last.at >= stage.at) {
            item.error(
                "this stage is not later than the one before",
                "order the stages by `at`, all different",
            );
        }
        stages.push(stage);
    }
    stages
}

/// One stage. Omitted sample counts stay as before.
fn stage(value: &Value<'_>, [spp_before, grad_before]: [u32; 2]) -> Option<Stage> {
    let mut object = value.block("stage")?;
    let at = object.require_number("at", "the fraction of the run after which it begins");
    let upsample = object.integer("upsample", 2);
    let words = [("reset", MomentRule::Reset), ("resample", MomentRule::Resample)];
    // Without a change of resolution the optimiser's moments stay valid.
    let unsaid = if upsample == 1 {
        MomentRule::Resample
    } else {
        MomentRule::Reset
    };
    let moments = object.choice("moments", &words, unsaid);
    // Zero is not valid input: as a default it marks an omitted value.
    let (spp, grad) = match object.integer("spp", 0) {
        0 => (spp_before, grad_before),
        spp => (spp, spp),
    };
    let spp_grad = object.integer("spp_grad", grad);
    object.finish();
    Some(Stage {
        at: at? as f32,
        upsample,
        moments,
        spp,
        spp_grad,
    })
}

/// Upsampling needs an optimised grid, texture or environment map: without one a stage must change something else, and its factor
/// is one.
fn check_refined(value: &Value<'_>, stages: &mut [Stage], scene: &Scene) {
    let mut tuned = scene.arrays().into_iter().filter(|array| array.tuning.is_some());
    if value.context.has_errors() || tuned.any(|array| array.kind.refined_axes() > 0) {
        return;
    }
    for (item, stage) in value.list().into_iter().flatten().zip(stages) {
        let says = |key: &&str| item.node.member(key).is_some();
        match item.node.member("upsample") {
            Some(node) if stage.upsample > 1 => item.child(node, "upsample").error(
                "there is nothing to upsample",
                "leave `upsample` out, or optimise a `gridvolume`, a `bitmap` or an `envmap`",
            ),
            None if !["moments", "spp", "spp_grad"].iter().any(says) => item.error(
                "there is no grid that this stage could refine",
                "remove it, say `spp`, or make a `gridvolume` of an optimised volume",
            ),
            _ => {
                stage.upsample = 1;
                if item.node.member("moments").is_none() {
                    stage.moments = MomentRule::Resample;
                }
            }
        }
    }
}

/// Warns of stages that change nothing; `samples` are those per pixel before the first one.
fn check_changed(value: &Value<'_>, stages: &[Stage], mut samples: [u32; 2]) {
    if value.context.has_errors() {
        return;
    }
    for (index, stage) in stages.iter().enumerate() {
        let found = [stage.spp, stage.spp_grad];
        if stage.upsample == 1 && stage.moments == MomentRule::Resample && found == samples {
            value.context.warn(format!(
                "stage {index} of `stages` changes nothing: give it another `upsample`, `spp`, `spp_grad` or `moments` than holds \
                 before, or remove it"
            ));
        }
        samples = found;
    }
}

fn regularizers(value: &Value<'_>, scene: &Scene) -> Vec<Regularizer> {
    let items = value.list().unwrap_or_default();
    items.iter().filter_map(|item| regularizer(item, scene)).collect()
}

fn regularizer(value: &Value<'_>, scene: &Scene) -> Option<Regularizer> {
    let mut object = value.block("regularizer")?;
    let penalties = [
        ("total_variation", Penalty::TotalVariation),
        ("sparsity", Penalty::Sparsity),
    ];
    let penalty = object
        .require("type", "`total_variation` or `sparsity`")
        .and_then(|v| v.choice(&penalties, &[]));
    let path = object.require("parameter", "the path of an optimised parameter");
    let weight = object.require_number("weight", "its weight");
    let every = object.integer("every", 1);
    object.finish();
    let (path, penalty) = (path?, penalty?);
    let parameter = parameters::penalised(&path, path.string()?, penalty, scene)?;
    Some(Regularizer {
        parameter,
        penalty,
        weight: weight? as f32,
        every,
    })
}

/// A figure for all sensors, or one for each in their order.
fn figures(value: &Value<'_>, scene: &Scene) -> Option<Vec<Figure>> {
    let figure = |value: &Value<'_>| value.choice(&Figure::ALL, &[]);
    if !value.is_list() {
        return figure(value).map(|figure| vec![figure]);
    }
    let found: Option<Vec<_>> = value.list()?.iter().map(figure).collect();
    let (found, sensors) = (found?, scene.sensors.len());
    if found.len() != sensors && !value.context.has_errors() {
        let what = format!("{} figures for {sensors} sensors", found.len());
        value.error(what, "give one for each, in the order of the file, or a single name");
        return None;
    }
    Some(found)
}

fn references(value: &Value<'_>, scene: &Scene) -> Option<References> {
    let mut object = value.variant("references")?;
    let references = match object.name {
        "images" => Some(References::Images),
        "constant" => {
            let value = object
                .require("value", "the colour to be matched")
                .and_then(|v| color::light(&v));
            value.map(References::Constant)
        }
        "leaves" => {
            let seed = object.get("seed").and_then(|value| value.integer(0, u64::MAX));
            Some(References::Leaves {
                seed: seed.unwrap_or(0),
            })
        }
        "figure" => {
            let value = object.require(
                "name",
                "`letter`, `digit`, `ring` or `discs`, or one of them for each sensor",
            );
            value.and_then(|value| figures(&value, scene)).map(References::Figures)
        }
        _ => {
            let file = object.require("filename", "the target's scene file");
            let spp = object.integer("spp", 64);
            file.and_then(|file| target(&file))
                .map(|path| References::Scene { path, spp })
        }
    };
    object.finish();
    references
}

/// A growing number of splats.
fn growth(value: &Value<'_>, scene: &Scene) -> Option<Growth> {
    let mut object = value.block("growth")?;
    let count = object.integer("count", 0);
    let required = object.require("count", "the number of splats in the end").is_some();
    let every = object.integer("every", 100);
    let until = object.number("until", 0.5);
    object.finish();
    if !value.context.has_errors() {
        match &scene.splats {
            None => value.error("there are no splats that could grow", "remove `growth`"),
            Some(splats) if splats.count() > count as usize => {
                let what = format!("{} splats cannot grow to {count}", splats.count());
                value.error(what, "begin with fewer by `count` of the `splats`");
            }
            Some(splats) if splats.arrays().iter().any(|array| array.tuning.is_none()) => {
                let advice = "name position, scale, rotation, color and opacity in `parameters`";
                value.error("splats of which something is fixed cannot grow", advice);
            }
            Some(_) => {}
        }
    }
    required.then_some(Growth { count, every, until })
}

/// The path of a target scene; the target is checked like any scene.
fn target(value: &Value<'_>) -> Option<std::path::PathBuf> {
    let path = value.file()?;
    if !path.is_file() {
        value.error("this target cannot be used", files::absence(&path));
        return None;
    }
    match root::load_target(&path) {
        Ok(_) => Some(path),
        Err(diagnostics) => {
            value.context.adopt(diagnostics.into_vec());
            None
        }
    }
}

fn output(object: &mut Object<'_>, scene: &Scene) -> OutputRule {
    let mut rule = OutputRule {
        images_every: 100,
        sensors: Vec::new(),
        checkpoint_seconds: 60.0,
        spp: 4,
    };
    let Some(mut output) = object.get("output").and_then(|value| value.block("output")) else {
        return rule;
    };
    rule.images_every = output.integer("images_every", rule.images_every);
    rule.checkpoint_seconds = output.number("checkpoint_seconds", rule.checkpoint_seconds);
    rule.spp = output.integer("spp", rule.spp);
    let names = output.get("sensors").and_then(|value| value.list()).unwrap_or_default();
    rule.sensors = names.iter().filter_map(|name| sensor_name(name, scene)).collect();
    output.finish();
    rule
}

fn sensor_name(value: &Value<'_>, scene: &Scene) -> Option<String> {
    let name = value.string()?;
    let names: Vec<&str> = scene.sensors.iter().map(|sensor| sensor.name.as_str()).collect();
    // If all sensors have mistakes of their own, only those are reported.
    if !names.is_empty() && !names.contains(&name) {
        value.error(format!("there is no sensor `{name}`"), suggest(name, &names));
    }
    Some(name.to_string())
}
