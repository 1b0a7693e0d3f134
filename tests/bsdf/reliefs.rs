//! BSDFs under normal maps and bump maps: draws against the pdf, weights, and sides.

use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::random::{Counter, Pass, pass_key};
use prbopt::transport::rays::sampler::Sampler;
use prbopt::transport::scene::bsdf::Bsdf;
use prbopt::transport::scene::bsdf::local::Lobe;
use prbopt::transport::scene::interaction::Interaction;
use prbopt::transport::scene::records::{self, SceneView};
use prbopt::transport::scene::shape::intersect;
use prbopt::transport::scene::tables::Tables;

use super::chi_square::{bound, statistic};

/// Parameters whose values on the integrand and the sampling side are the same.
struct Values<'a>(&'a [&'a [f32]]);

impl records::Fields<f32> for Values<'_> {
    const TWO_SIDED: bool = false;
    const TRACKED: bool = false;
    fn integrand(&self, slot: u32) -> &[f32] {
        self.0[slot as usize]
    }
    fn sampling(&self, slot: u32) -> &[f32] {
        self.0[slot as usize]
    }
}

const NORMALS: &str = r#""normalmap": {"type": "bitmap", "data": {"resolution": [6, 5], "coin": 3}}"#;
const HEIGHTS: &str = r#""scale": 4, "heights": {"type": "bitmap", "data": {"resolution": [6, 5], "coin": 4}}"#;

/// A BSDF that is the same on both sides, under a normal that is tilted by 77 degrees.
const STEEP: &str = r#"{"type": "normalmap", "flip_invalid_normals": false, "use_shadowing_function": false,
    "normalmap": {"type": "bitmap", "data": {"resolution": [1, 1], "value": [0.95, 0.5, 0.6]}},
    "b": {"type": "twosided", "c": {"type": "diffuse", "reflectance": 0.5}}}"#;

/// BSDFs under reliefs, each with the side from which it is looked at.
fn reliefs() -> Vec<(String, f32)> {
    vec![
        (
            format!(
                r#"{{"type": "normalmap", {NORMALS}, "b": {{"type": "roughconductor", "alpha_u": 0.3, "alpha_v": 0.6}}}}"#
            ),
            1.0,
        ),
        (
            format!(
                r#"{{"type": "twosided", "b": {{"type": "bumpmap", {HEIGHTS}, "c": {{"type": "roughplastic", "alpha": 0.4}}}}}}"#
            ),
            -1.0,
        ),
        (
            format!(
                r#"{{"type": "normalmap", {NORMALS}, "flip_invalid_normals": false,
                    "b": {{"type": "twosided", "c": {{"type": "diffuse"}}, "d": {{"type": "roughconductor", "alpha": 0.5}}}}}}"#
            ),
            1.0,
        ),
        // So steep that the path comes from behind the turned normal.
        (STEEP.into(), 1.0),
        (
            format!(
                r#"{{"type": "blendbsdf", "weight": 0.4,
                    "a": {{"type": "normalmap", {NORMALS}, "b": {{"type": "roughdielectric", "distribution": "ggx", "alpha": 0.4}}}},
                    "b": {{"type": "bumpmap", {HEIGHTS}, "b": {{"type": "principledthin", "spec_trans": 0.5, "diff_trans": 0.8}}}}}}"#
            ),
            -1.0,
        ),
    ]
}

/// Calls `test` for a path that meets each of the BSDFs at several places and angles.
fn meet(mut test: impl FnMut(&SceneView, &Values, &Interaction, &str)) {
    for (bsdf, side) in reliefs() {
        let text = format!(r#"{{"wall": {{"type": "rectangle", "bsdf": {bsdf}}}, "sky": {{"type": "constant"}}}}"#);
        let scene = scene::parse(&text, std::path::Path::new("reliefs.json")).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let (resident, params) = Resident::new(&scene).expect("it is sound");
        let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
        let paths = resident.transport.paths();
        let tables = Tables::new(&resident.scene, paths, &values);
        let view = SceneView::new(&resident.scene, paths, &tables);
        for (place, [x, y]) in [([0.3, -0.2], [0.4f32, 0.1]), ([-0.62, 0.55], [-0.3, 0.85])] {
            let incoming = [x, y, -side * (1.0 - x * x - y * y).sqrt()];
            let origin = [0, 1, 2].map(|a| [place[0], place[1], 0.0][a] - incoming[a]);
            let hit = intersect(&view, origin, incoming, 2.0).expect("it meets the wall");
            test(&view, &Values(&values), &Interaction::new(&view, &hit, incoming), &bsdf);
        }
    }
}

fn sampler(sample: u32) -> Sampler {
    let counter = Counter {
        sensor: 0,
        pixel: 0,
        sample,
        block: 0,
    };
    Sampler::new(pass_key(3, 1, Pass::Primal), counter)
}

#[test]
fn directions_follow_their_pdfs_under_reliefs() {
    meet(|view, values, at, label| {
        let mut number = 0;
        let draw = || {
            number += 1;
            let sample = Bsdf::<f32, _>::new(view, values, at).sample(&mut sampler(number))?;
            (sample.lobe == Lobe::Smooth).then_some(sample.wo)
        };
        let pdf = |wo: [f32; 3]| {
            Bsdf::<f32, _>::new(view, values, at)
                .eval(at.to_world(wo))
                .map_or(0.0, |(_, pdf)| f64::from(pdf))
        };
        let (found, cells) = statistic(label, 1 << 15, draw, pdf);
        assert!(
            cells > 20 && found < bound(cells),
            "{label}, {:?}: chi-square {found} of {cells} cells exceeds {}",
            at.wi,
            bound(cells)
        );
    });
}

/// Samples have the pdf and the weight that evaluation gives, to 1 % and 2 %, and evaluation has a value at each of them.
#[test]
fn samples_under_reliefs_have_the_weight_that_evaluation_gives() {
    meet(|view, values, at, label| {
        let mut seen = 0;
        for number in 0..2000 {
            let Some(sample) = Bsdf::<f32, _>::new(view, values, at).sample(&mut sampler(number)) else {
                continue;
            };
            let Some((value, pdf)) = Bsdf::<f32, _>::new(view, values, at).eval(sample.direction) else {
                panic!("{label}: {sample:?} is not sent")
            };
            let weight = Bsdf::<f32, _>::new(view, values, at).weight(&sample);
            assert!(
                (pdf / sample.pdf - 1.0).abs() < 1e-2,
                "{label}: {pdf}, not {}",
                sample.pdf
            );
            for c in 0..3 {
                let off = (weight[c] * pdf - value[c]).abs();
                assert!(off <= 2e-2 * value[c] + 1e-6, "{label}: {weight:?} {value:?} {pdf}");
                // Where the path comes from behind the steep normal, no draw is lost on the other side: the weight is the
                // reflectance.
                let turned_away = at.wi[0] < -0.2 && label == STEEP;
                assert!(!turned_away || (weight[c] - 0.5).abs() < 1e-3, "{label}: {weight:?}");
            }
            seen += 1;
        }
        assert!(seen > 500, "{label}: {seen}");
    });
}
