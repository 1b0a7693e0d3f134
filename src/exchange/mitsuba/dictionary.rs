//! The scene's dictionary for Mitsuba: without the members that only this program has.

use serde_json::{Map, Value, json};

use super::{mirrored, sensors};
use crate::scene::{Gradient, Integrator, Optic, Scene, SensorKind};

/// A dictionary of Mitsuba.
#[derive(Debug)]
pub(super) struct Dictionary {
    pub root: Map<String, Value>,
    /// The parts that have been left out, a sentence each.
    pub notes: Vec<String>,
}

/// The dictionary of a scene.
///
/// # Errors
/// All parts of the scene that Mitsuba cannot express.
pub(super) fn of(scene: &Scene) -> Result<Dictionary, Vec<String>> {
    let mut problems = Vec::new();
    if scene.field.is_some() {
        problems.push(
            "Mitsuba has no radiance fields; export its density with a name that ends in .vdb, or take the .vol files of \
             a run's `final`"
                .to_owned(),
        );
    }
    if scene.splats.is_some() {
        problems.push("Mitsuba has no splats; a run writes them as .ply and .svg into its `final`".to_owned());
    }
    match &scene.optic {
        Some(Optic::Slab(slab)) => problems.push(format!(
            "Mitsuba has no height fields; export `{}` with a name that ends in .ply, which it reads",
            slab.name
        )),
        Some(Optic::Cube(cube)) => problems.push(format!(
            "Mitsuba has no media of varying index, as `{}` is one; export its grid with a name that ends in .vdb",
            cube.name
        )),
        None => {}
    }
    for medium in scene.world.media.iter().filter(|medium| medium.emission.is_some()) {
        let path = &medium.path;
        problems.push(format!(
            "`{path}.emission`: Mitsuba 3.9's media do not emit; remove the emission"
        ));
    }
    problems.extend(mirrored::inside_out(scene));
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut root = scene.resolved.as_object().cloned().unwrap_or_default();
    root.remove("type");
    root.remove("optimize");
    let mut notes = Vec::new();
    put_sensors(scene, &mut root, &mut problems, &mut notes);
    put_integrator(&scene.integrator, &mut root, &mut notes);
    match problems.is_empty() {
        true => Ok(Dictionary { root, notes }),
        false => Err(problems),
    }
}

/// Replaces the sensors by Mitsuba's.
fn put_sensors(scene: &Scene, root: &mut Map<String, Value>, problems: &mut Vec<String>, notes: &mut Vec<String>) {
    for sensor in &scene.sensors {
        let (parent, key) = match sensor.name.rsplit_once('.') {
            Some((parent, key)) => (root.get_mut(parent).and_then(Value::as_object_mut), key),
            None => (Some(&mut *root), &sensor.name[..]),
        };
        let Some(object) = parent
            .and_then(|parent| parent.get_mut(key))
            .and_then(Value::as_object_mut)
        else {
            continue;
        };
        // A sensor on a shape has nothing to translate: its shape defines it.
        let words = match sensor.kind {
            SensorKind::Irradiancemeter(_) => Ok(()),
            _ => sensors::translate(sensor, object),
        };
        if let Err(problem) = words {
            problems.push(format!("`{}`: {problem}", sensor.name));
        }
        if sensor.reference.is_some() {
            notes.push(format!(
                "`{}.image`: Mitsuba's sensors have no photographs; it is left out",
                sensor.name
            ));
        }
        sensors::plain_film(object);
        object.retain(|key, _| !matches!(&key[..], "image" | "held_out"));
    }
    let batches = root.values_mut().filter(|value| value["type"] == "batch");
    batches.filter_map(Value::as_object_mut).for_each(sensors::plain_film);
}

/// The first member of an object that is an object itself.
fn nested(object: &mut Map<String, Value>) -> Option<&mut Value> {
    object.values_mut().find(|value| value.is_object())
}

/// Replaces integrators that only this program has, or Mitsuba only in its differentiable variants, by those that all
/// variants have and that render the same light. Depths are stated, so that no default of the new name applies.
fn put_integrator(integrator: &Integrator, root: &mut Map<String, Value>, notes: &mut Vec<String>) {
    for value in root.values_mut() {
        let object = match value["type"].as_str() {
            Some("aov" | "moment") => match value.as_object_mut().and_then(nested) {
                Some(nested) => nested,
                None => continue,
            },
            _ => value,
        };
        let name = match object["type"].as_str() {
            Some("prb_basic") => {
                notes.push(
                    "only Mitsuba's variants that differentiate, such as `llvm_ad_rgb`, have `prb_basic`, which samples no lights"
                        .into(),
                );
                continue;
            }
            Some("ad" | "rb" | "prb" | "prb_attached") => "path",
            Some("prbvolpath" | "advolpath" | "rbvolpath") => "volpath",
            _ => continue,
        };
        if let Some(object) = object.as_object_mut() {
            object["type"] = json!(name);
            object.retain(|key, _| !matches!(&key[..], "gradient" | "variant" | "jacobians" | "regularization"));
        }
        if integrator.gradient != Gradient::Auto {
            notes.push("`gradient` is how this program estimates derivatives; it is left out".into());
        }
    }
}
