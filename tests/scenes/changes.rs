//! Values that the command line puts in place of the file's: their effects, and the places at which mistakes in them are
//! reported.

use prbopt::scene::{self, Diagnostics, Scene};

use super::{SCENE, WORLD};

/// The scene of `text` in a file of its own, with changes.
fn load(text: &str, changes: &[&str]) -> Result<Scene, Diagnostics> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("scene.json");
    std::fs::write(&path, text).expect("is written");
    let changes: Vec<scene::Change> = changes.iter().map(|c| c.parse().expect("a change")).collect();
    scene::load_with(&path, &changes)
}

fn mistakes(text: &str, changes: &[&str]) -> String {
    load(text, changes).expect_err("must be refused").to_string()
}

#[test]
fn values_take_the_place_of_the_files() {
    let changes = [
        "camera.fov=50",
        "object.interior.sigma_t.value=3",
        "optimize.loss=l1",
        "optimize.parameters.object.interior.sigma_t.learning_rate=0.25",
        "optimize.stages[1].at=0.75",
        "camera.film.height=16",
    ];
    let scene = load(SCENE, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let rule = scene.optimize.as_ref().expect("there");
    assert_eq!(
        (scene.sensors[0].height, rule.loss, rule.stages[1].at),
        (16, scene::Loss::L1, 0.75)
    );
    let field = scene.field.expect("there");
    assert_eq!(field.sigma_t.source, scene::Source::Fill(vec![3.0]));
    assert_eq!(field.sigma_t.tuning.expect("tuned").learning_rate, 0.25);
}

/// Objects that are put in have places of their own, so that references and media in them are told apart.
#[test]
fn whole_objects_can_be_put_in() {
    let ball = r#"ball={"type": "sphere", "to_world": [{"translate": [5, 0, 0]}], "bsdf": {"type": "null"},
        "interior": {"type": "homogeneous", "albedo": 0.5, "phase": {"type": "hg", "g": 0.7}}}"#;
    let cave = r#"cave={"type": "cube", "to_world": [{"translate": [-5, 0, 0]}], "bsdf": {"type": "null"},
        "interior": {"type": "ref", "id": "ball.interior"}}"#;
    let scene = load(WORLD, &[ball, cave]).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let media: Vec<&str> = scene.world.media.iter().map(|medium| medium.path.as_str()).collect();
    assert_eq!(media, ["box.interior", "ball.interior"]);
}

#[test]
fn mistakes_are_told_where_they_were_typed() {
    let cases: &[(&str, &str)] = &[
        (
            "integrator.max_depth=foo",
            r#"found the string "foo" at integrator.max_depth: expected a number"#,
        ),
        (
            "box.interior.albedo=1.5",
            "the value 1.5 is not possible at box.interior.albedo: it must lie between 0 and 1",
        ),
        (
            "camera.film.height=0",
            "the value 0 is not possible at camera.film.height: expected a whole number from 1 to 65536",
        ),
        (
            "integrator.gradient=pared",
            "unknown value \"pared\" at integrator.gradient: did you mean `paired`? \
             (allowed: `auto`, `paired`, `drt`, `free_flight`)",
        ),
        (
            "integrator.type=prbvolpth",
            "unknown type `prbvolpth` at integrator: did you mean `prbvolpath`? (allowed: `path`, ",
        ),
        ("sky.radiance=-1", "`radiance` is negative at sky: light cannot be"),
        (
            "sun.irradiance=[1, 2]",
            "found a list of 2 at sun.irradiance: expected a list of 3 numbers",
        ),
        (
            "integrator.max_dpth=3",
            "unknown parameter `max_dpth` of `prbvolpath` at integrator.max_dpth: did you mean `max_depth`? \
             (allowed: `max_depth`, `rr_depth`, `hide_emitters`, `gradient`)",
        ),
        (
            "box.inside.albedo=0.5",
            "unknown parameter `inside` of `cube` at box.inside: allowed: `to_world`, `flip_normals`, `interior`, `exterior`, \
             `emitter`, `sensor`, `bsdf`",
        ),
        (
            "integratr.max_depth=3",
            "there is no `integratr`: did you mean `integrator`? (allowed: `integrator`, `camera`, `box`, `floor`, \
             `lamp`, `sun`, `sky`, `optimize`)",
        ),
        (
            "box.interior.albedo[3]=1",
            "there is no item 3: the list has 3, counted from 0",
        ),
        ("camera.fov[0]=1", "there is no `fov`: allowed: `type`, `film`"),
        (
            "integrator.type.name=1",
            "there is no object that `name` could stand in",
        ),
        ("box.interior.albedo=[0.1, 0.2", "malformed JSON: unterminated array"),
        ("sky.radiance=\"1", "malformed JSON: unterminated string literal"),
        (
            "sky.radiance=1e999",
            "the number 1e999 is too large; every number must be finite",
        ),
        ("sky.radiance=.5", "malformed JSON: leading or trailing decimal points"),
        (
            r#"lamp={"type": "sphere", "emitter": {"type": "area", "radiance": -1}}"#,
            "the value -1 is not possible at lamp.emitter.radiance: it must not be negative",
        ),
    ];
    for (change, message) in cases {
        let told = mistakes(WORLD, &[change]);
        assert!(told.starts_with(&format!("in `--set {change}`: {message}")), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

/// A mistake of a whole object of the file is reported at its place, with the changes that were made inside.
#[test]
fn objects_that_are_changed_inside_say_so() {
    let told = mistakes(WORLD, &["optimize.references=images", "sun.irradiance=2"]);
    assert!(
        told.contains("scene.json:18:15: 1 of 1 views has no `image`")
            && told.ends_with("what to compare with (with `--set optimize.references=images`)"),
        "{told}"
    );
    let told = mistakes(WORLD, &["camera.near_clip=5", "camera.far_clip=2"]);
    assert!(
        told.contains("scene.json:3:13: ")
            && told.ends_with("(with `--set camera.near_clip=5` and `--set camera.far_clip=2`)"),
        "{told}"
    );
}

#[test]
fn mistakes_of_the_file_and_of_several_values_are_told_apart() {
    let text = WORLD.replace(r#""g": 0.3"#, r#""g": 3"#);
    let changes = ["lamp.emitter.radiance=bright", "sun.irradiance=2", "sky.radiance=-1"];
    let told = mistakes(&text, &changes);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    assert!(
        lines[0].contains("scene.json:11:36: ") && lines[0].contains("box.interior.phase.g"),
        "{told}"
    );
    assert!(
        lines[1].starts_with("in `--set lamp.emitter.radiance=bright`: "),
        "{told}"
    );
    assert!(lines[2].starts_with("in `--set sky.radiance=-1`: "), "{told}");
}

/// A reference that is put in may close a circle, which is reported and not followed.
#[test]
fn circles_that_are_put_in_are_found() {
    let blend = r#"box.interior.phase={"type": "blendphase", "weight": 0.5, "first": {"type": "isotropic"},
        "second": {"type": "ref", "id": "box.interior.phase"}}"#;
    assert!(mistakes(WORLD, &[blend]).contains("leads back to itself"));
    let text = WORLD.replace(
        r#"{"type": "hg", "g": 0.3}"#,
        r#"{"type": "blendphase", "weight": 0.5, "first": {"type": "hg"}, "second": {"type": "isotropic"}}"#,
    );
    let reference = r#"box.interior.phase.second={"type": "ref", "id": "box.interior.phase"}"#;
    let told = mistakes(&text, &[reference]);
    assert!(
        told.contains(&format!("in `--set {reference}`: this reference leads back to itself")),
        "{told}"
    );
}

#[test]
fn long_values_are_not_repeated_whole() {
    let change = format!("sky.radiance=[{}-1]", "0.25, ".repeat(100));
    let told = mistakes(WORLD, &[&change]);
    assert!(
        told.starts_with("in `--set sky.radiance=[0.25, ") && told.contains("…`: ") && told.len() < 250,
        "{told}"
    );
}
