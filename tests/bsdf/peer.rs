//! Values, pdfs and samples against those of Mitsuba 3.9.1 (`tests/data/peer/bsdfs.py` writes them).

use prbopt::transport::scene::bsdf::local::Lobe;
use prbopt::transport::scene::bsdf::microfacet::Distribution;
use serde_json::Value;

use super::models::{Kind, Model};

fn numbers(list: &Value) -> Vec<f32> {
    let list = list.as_array().expect("a list");
    list.iter().map(|x| x.as_f64().expect("a number") as f32).collect()
}

fn model(case: &Value) -> Model {
    let kind = match case["bsdf"].as_str().expect("a name") {
        "conductor" => Kind::Conductor,
        "rough_conductor" => Kind::RoughConductor,
        "dielectric" => Kind::Dielectric,
        "thin_dielectric" => Kind::ThinDielectric,
        "rough_dielectric" => Kind::RoughDielectric,
        "plastic" => Kind::Plastic,
        "rough_plastic" => Kind::RoughPlastic,
        "principled" => Kind::Principled,
        "principled_thin" => Kind::PrincipledThin,
        other => panic!("{other} is not known"),
    };
    let mut model = Model::new(kind, &numbers(&case["parameters"]));
    if case["distribution"] == "beckmann" {
        model.distribution = Distribution::Beckmann;
    }
    model.visible = case["visible"].as_bool().unwrap_or(true);
    model.nonlinear = case["nonlinear"].as_bool().unwrap_or(false);
    model.specular_weight = case["specular_weight"].as_f64().unwrap_or(0.5) as f32;
    model.with_table()
}

fn triple(row: &[f32], first: usize) -> [f32; 3] {
    [row[first], row[first + 1], row[first + 2]]
}

/// Both compute in f32: half vectors of directions that nearly cancel, and 1 - F where F is near one, have fewer correct digits;
/// the tables of rough plastics are integrated by other nodes.
fn close(ours: f32, theirs: f32, model: &Model) -> bool {
    let relative = if model.kind == Kind::RoughPlastic { 5e-3 } else { 2e-4 };
    (ours - theirs).abs() <= relative * theirs.abs() + 2e-6
}

fn compare_smooth(model: &Model, row: &[f32]) -> Result<(), String> {
    let (wi, wo) = (triple(row, 0), triple(row, 3));
    let value = model.eval(&model.parameters, wi, wo).0;
    let theirs = triple(row, 6);
    let pdf = model.pdf(wi, wo);
    let same = (0..3).all(|c| close(value[c], theirs[c], model)) && close(pdf, row[9], model);
    same.then_some(()).ok_or_else(|| {
        format!(
            "{}: {wi:?} {wo:?}: {value:?} {pdf}, not {theirs:?} {}",
            model.label(),
            row[9]
        )
    })
}

fn compare_sample(model: &Model, row: &[f32]) -> Result<(), String> {
    let wi = triple(row, 0);
    let (theirs, weight, pdf, eta) = (triple(row, 4), triple(row, 7), row[10], row[11]);
    let found = model.sample(wi, row[3], [0.5; 2]);
    let Some(sample) = found else {
        return (pdf == 0.0)
            .then_some(())
            .ok_or_else(|| format!("{}: no sample for {row:?}", model.label()));
    };
    let value = model.discrete(&model.parameters, wi, sample.lobe).0;
    let same = (0..3)
        .all(|c| (sample.direction[c] - theirs[c]).abs() < 2e-6 && close(value[c] / sample.pdf, weight[c], model));
    let same = same && close(sample.pdf, pdf, model) && close(sample.eta, eta, model) && sample.lobe != Lobe::Smooth;
    same.then_some(())
        .ok_or_else(|| format!("{}: {wi:?}: {sample:?} {value:?}, not {row:?}", model.label()))
}

#[test]
fn numbers_are_those_of_another_renderer() {
    let text = std::fs::read_to_string("tests/data/peer/bsdfs.json").expect("it is there");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
    let mut mistakes = Vec::new();
    let (mut rows, mut lit) = (0, 0);
    for case in &cases {
        let model = model(case);
        let compare = |model: &Model, row: &[f32]| {
            if model.has_smooth_lobe() {
                compare_smooth(model, row)
            } else {
                compare_sample(model, row)
            }
        };
        for row in case["rows"].as_array().expect("rows") {
            let row = numbers(row);
            rows += 1;
            lit += usize::from(row[7] > 0.0);
            mistakes.extend(compare(&model, &row).err());
        }
        // Power: a parameter that is off by 5 %, or by 0.02 where it is small, is seen in some row.
        for i in 0..model.parameters.len() {
            let mut faulty = model.clone();
            let x = faulty.parameters[i];
            faulty.parameters[i] = if x > 0.5 { 0.95 * x } else { x + 0.02 };
            if i < 2 {
                faulty = faulty.with_table();
            }
            let all = case["rows"].as_array().expect("rows").iter().map(numbers);
            let seen = all.filter(|row| compare(&faulty, row).is_err()).count();
            if seen == 0 && !is_idle(&model, i) {
                mistakes.push(format!("{}: parameter {i} does not matter", model.label()));
            }
        }
    }
    assert!(rows >= 600 && lit > rows / 3, "{lit} of {rows} rows have a value");
    assert!(
        mistakes.is_empty(),
        "{} mistakes:\n{}",
        mistakes.len(),
        mistakes.join("\n")
    );
}

/// Parameters without effect: a tint without what it tints, the gloss of the clear coat without a coat; and the specular factor
/// of a plastic's mirror image, which is a discrete lobe and not in the values.
fn is_idle(model: &Model, parameter: usize) -> bool {
    let p = &model.parameters;
    match (model.kind, parameter) {
        (Kind::Plastic, 4..) => true,
        (Kind::Principled, 8) => p[5] == 1.0 || p[6] == 1.0,
        (Kind::Principled, 9 | 11) => p[6] == 1.0,
        (Kind::Principled, 10) => p[9] == 0.0,
        (Kind::Principled, 13) => p[12] == 0.0,
        (Kind::Principled, 5) => false,
        (Kind::PrincipledThin, 6 | 7 | 4) => p[5] == 0.0,
        (Kind::PrincipledThin, 9) => p[8] == 0.0,
        (Kind::PrincipledThin, 8 | 10 | 11) => p[5] == 1.0,
        _ => false,
    }
}
