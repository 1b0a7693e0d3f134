//! `prbopt bench` on the file of a scene.

use std::path::Path;

use serde_json::{Value, json};

use super::Place;

fn figures(place: &Place, arguments: &[&str]) -> Value {
    let mut words = vec!["bench", "scene.json", "--device", "cpu", "--json"];
    words.extend(arguments);
    let (out, _) = place.expect(0, &words);
    serde_json::from_str(&out).expect("one line of JSON")
}

#[test]
fn a_scene_is_timed_pass_by_pass() {
    let place = Place::new();
    let figures = figures(&place, &["--iterations", "3", "--spp", "2"]);
    assert_eq!(figures["scene"], "scene.json");
    assert_eq!(figures["spp"], json!([2, 2]));
    assert_eq!(figures["pixels"], json!([16, 16]));
    assert_eq!(figures["iterations"], 3);
    for key in ["iteration_ms", "primal_ms", "adjoint_ms", "step_ms", "paths_per_second"] {
        assert!(figures[key].as_f64().is_some_and(|x| x > 0.0), "{key}: {figures}");
    }
    assert!(figures["object.interior.sigma_t"].is_null(), "no noise was asked for");
    let (text, _) = place.expect(0, &["bench", "scene.json", "--device", "cpu", "--iterations", "1"]);
    assert!(
        text.contains("16×16 pixels, spp ") && text.contains("paths a second"),
        "{text}"
    );
}

/// Four times the samples a pixel quarter the variance of a gradient and leave its mean, to 10 %.
#[test]
fn the_noise_of_a_gradient_falls_with_the_samples() {
    let place = Place::new();
    let of = |spp: &str| figures(&place, &["--noise", "256", "--spp", "64", "--spp-grad", spp]);
    let (few, many) = (of("1"), of("4"));
    assert!(few["step_ms"].is_null() && few["iterations"] == 256);
    for path in ["object.interior.sigma_t", "object.interior.sh_coeffs"] {
        let number = |figures: &Value, key: &str| figures[path][key].as_f64().expect("a number");
        // The variance of 256 seeds and hundreds of entries is known to a few parts in a hundred; what the primal
        // adds to both is less than a tenth.
        let ratio = number(&few, "variance_sum") / number(&many, "variance_sum");
        assert!((3.0..4.6).contains(&ratio), "{path}: {ratio}");
        let norms = [&few, &many].map(|figures| number(figures, "mean_norm"));
        assert!((norms[0] / norms[1] - 1.0).abs() < 0.1, "{path}: {norms:?}");
        assert_eq!(number(&few, "mean_norm2").max(0.0).sqrt(), norms[0]);
    }
}

#[test]
fn one_parameter_is_differentiated_alone() {
    let place = Place::new();
    let figures = figures(&place, &["--noise", "2", "--parameter", "sky.radiance"]);
    assert!(figures["sky.radiance"]["variance_sum"].as_f64().is_some());
    assert!(figures["object.interior.sigma_t"].is_null());
}

/// More splats reach more tiles; beside the time of an iteration stands its lower bound (`floor`).
#[test]
fn pictures_of_splats_are_timed_beside_their_floor() {
    let place = Place::new();
    let words = [
        "bench",
        "splats",
        "--splats",
        "20,200,2000",
        "--image",
        "48",
        "--iterations",
        "1",
        "--device",
        "cpu",
    ];
    let (out, _) = place.expect(0, &[&words[..], &["--json"]].concat());
    let figures: Value = serde_json::from_str(&out).expect("one line of JSON");
    let rows = figures["rows"].as_array().expect("a row for each number");
    assert_eq!(
        rows.iter().map(|row| &row["splats"]).collect::<Vec<_>>(),
        [20, 200, 2000]
    );
    let of = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_f64().expect("a number"))
            .collect::<Vec<_>>()
    };
    assert!(of("tile_pairs").is_sorted() && of("tile_pairs")[0] >= 9.0, "{figures}");
    for (iteration, floor) in of("iteration_ms").iter().zip(of("ratio_to_floor")) {
        assert!(*iteration > 0.0 && floor > 0.0, "{figures}");
    }
    assert!(
        figures["r2_of_splats"]
            .as_f64()
            .is_some_and(|r2| (0.0..=1.0 + 1e-9).contains(&r2)),
        "{figures}"
    );
    let (text, _) = place.expect(0, &words);
    assert!(
        text.contains("times exponentials") && text.contains("times arithmetic") && text.contains("R²"),
        "{text}"
    );
}

#[test]
fn wrong_requests_are_told() {
    let place = Place::new();
    place.write("plain.json", &super::target());
    for (words, told) in [
        (
            &["bench", "smoke"][..],
            "expected the file of a scene, or one of radiance_field",
        ),
        (&["bench", "missing.json"], "missing.json"),
        (&["bench", "plain.json"], "plain.json"),
        (
            &["bench", "scene.json", "--parameter", "sky.radianc"],
            "there is no parameter `sky.radianc`",
        ),
        (
            &["bench", "scene.json", "--device", "cpu", "--kernels"],
            "no kernels that a clock of its own times; ask for their times with a GPU",
        ),
        (
            &["bench", "volume", "--noise", "4"],
            "--noise, --kernels, --parameter and --set are for the file of a scene",
        ),
    ] {
        let (_, error) = place.expect(2, words);
        assert!(error.contains(told), "{words:?}: {error}");
    }
}

/// Path replay and the tape have the same gradient on a scene, to 1e-4; the tape grows with the depth of paths, and the plot
/// shows both.
#[test]
fn estimators_are_compared_on_a_scene() {
    let place = Place::new();
    let scene = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/figurine.json");
    let scene = scene.display().to_string();
    let words = [
        "bench",
        "estimators",
        &scene,
        "--device",
        "cpu",
        "--runs",
        "2",
        "--depths",
        "8,64",
        "--only",
        "prb,ad,rb_pipelined",
        "--set",
        "front.film.width=16",
        "--set",
        "front.film.height=20",
        "--set",
        "front.fov=7",
        "--plot",
        "depths.svg",
        "--json",
    ];
    let (out, _) = place.expect(0, &words);
    let figures: Value = serde_json::from_str(&out).expect("one line of JSON");
    let rows = figures["rows"].as_array().expect("a row for each");
    assert_eq!(rows.len(), 6);
    let number = |row: &Value, key: &str| row[key].as_f64().expect("a number");
    for pair in [[0, 1], [3, 4]] {
        let [replay, tape] = pair.map(|i| &rows[i]);
        let [a, b] = [replay, tape].map(|row| number(&row["gradients"][0], "mean"));
        assert!(a > 0.0 && (a / b - 1.0).abs() < 1e-4, "{a} {b}");
        assert!(number(replay, "tape_bytes") == 0.0 && number(replay, "adjoint_ms") > 0.0);
    }
    assert!(number(&rows[4], "tape_bytes") > 2.0 * number(&rows[1], "tape_bytes"));
    assert_eq!(rows[2]["processor_ms"][0], 0.0, "a pipeline has no primal pass");
    let svg = std::fs::read_to_string(place.path("depths.svg")).expect("it is written");
    assert!(svg.contains("path replay") && svg.contains("tape"), "{svg}");

    let (_, error) = place.expect(2, &["bench", "estimators", "scene.json", "--device", "cpu"]);
    assert!(
        error.contains("scene.json") && error.contains("follows paths"),
        "{error}"
    );
    let words = ["bench", "volume", "--device", "cpu", "--set", "sky.radiance=1"];
    assert!(place.expect(2, &words).1.contains("--set are for the file of a scene"));
}

/// By a normal map of smooth glass only path replay, which moves the points of chains, has a gradient. The other estimators hold
/// them, and their gradients are exactly zero.
#[test]
fn estimators_are_compared_on_chains() {
    let place = Place::new();
    let scene = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/lens.json");
    let scene = scene.display().to_string();
    let words = "--device cpu --runs 3 --depths 5 --only prb,ad,rb,rb_biased,rb_pipelined --parameter face.bsdf.normalmap \
        --set front.film.width=12 --set front.film.height=12 --json";
    let words: Vec<&str> = ["bench", "estimators", &scene]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    let (out, _) = place.expect(0, &words);
    let figures: Value = serde_json::from_str(&out).expect("one line of JSON");
    let rows = figures["rows"].as_array().expect("a row for each");
    let variances: Vec<f64> = rows
        .iter()
        .map(|row| row["gradients"][0]["variance"].as_f64().expect("a number"))
        .collect();
    let errors = rows
        .iter()
        .map(|row| row["gradients"][0]["error"].as_f64().expect("a number"));
    assert!(variances[0] > 0.0 && variances[1..] == [0.0; 4], "{variances:?}");
    assert!(rows[1..].iter().all(|row| row["gradients"][0]["mean"] == 0.0), "{out}");
    assert!(errors.skip(1).all(|error| error == 0.0), "{out}");
}
