//! A scene that is exported as glTF and imported again renders the same picture.

use super::*;

/// Pixels of a picture of `scene` with `seed`.
fn render(place: &Place, scene: &str, seed: &str) -> Vec<f32> {
    let output = format!("{scene}_{seed}.exr");
    place.expect(
        0,
        &[
            "render", scene, "--spp", "256", "--seed", seed, "--device", "cpu", "-o", &output, "-q",
        ],
    );
    prbopt::io::image::read(&place.path(&output)).expect("an image").0.data
}

/// The mean and the root mean square of the differences.
fn compare(a: &[f32], b: &[f32]) -> [f64; 2] {
    assert_eq!(a.len(), b.len());
    let n = a.len() as f64;
    let differences = a.iter().zip(b).map(|(a, b)| f64::from(a - b));
    let square: f64 = differences.clone().map(|d| d * d).sum();
    [differences.sum::<f64>() / n, (square / n).sqrt()]
}

/// The scene that is compared with Blender's picture: textures, normals, metal, a ball, a spot, a sun and a bulb. Its mean
/// changes by less than 1 %, and single pixels by less than 1.2 times the noise of two seeds.
#[test]
fn a_room_keeps_its_picture() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/blender");
    let text = fs::read_to_string(folder.join("room.json")).expect("there");
    let images = folder.join("../peer/");
    let text = text.replace("../peer/", &format!("{}/", images.display()));
    let mut scene: Value = serde_json::from_str(&text).expect("JSON");
    scene["camera"]["film"]["width"] = 96.into();
    scene["camera"]["film"]["height"] = 64.into();
    // glTF does not say how a spot falls off towards its border; the importer takes the falloff of prbopt.
    place.write("room.json", &scene);
    place.expect(0, &["export", "room.json", "-o", "room.glb", "-q"]);
    let (_, err) = place.expect(0, &["import", "room.glb", "-o", "again.json"]);
    assert!(!err.contains("note:"), "{err}");
    assert!(
        err.contains("wrote again.json: 1 view, 5 shapes; render it with: prbopt render again.json"),
        "{err}"
    );
    let mut again = place.json("again.json");
    assert_eq!(again["camera"]["film"]["height"], 512);
    again["camera"]["film"] = scene["camera"]["film"].clone();
    again["integrator"] = scene["integrator"].clone();
    place.write("again.json", &again);
    let [first, second] = ["1", "2"].map(|seed| render(&place, "room.json", seed));
    let third = render(&place, "again.json", "3");
    let mean = first.iter().map(|x| f64::from(*x)).sum::<f64>() / first.len() as f64;
    let ([_, noise], [shift, difference]) = (compare(&first, &second), compare(&first, &third));
    // What differs are textures of 8 bits, and the edges of a ball made of triangles.
    assert!((shift / mean).abs() < 0.01, "{shift} of {mean}");
    assert!(
        difference < 1.2 * noise,
        "{difference}, but two seeds differ by {noise}"
    );
}

/// Nothing is overwritten unasked, and an import that fails leaves no files behind.
#[test]
fn imports_ask_before_they_overwrite() {
    let place = Place::new();
    place.write("a.json", &json!({"ball": {"type": "sphere"}}));
    place.expect(0, &["export", "a.json", "-o", "a.glb", "-q"]);
    let (_, err) = place.expect(2, &["import", "a.glb", "-q"]);
    assert!(err.contains("a.json: exists already; overwrite it by --force"), "{err}");
    let (_, err) = place.expect(0, &["import", "a.glb", "-o", "new/b.json"]);
    assert!(err.contains("note: it has no camera"), "{err}");
    assert!(place.path("new/b_files/ball.ply").exists());
    place.expect(0, &["render", "new/b.json", "--spp", "1", "-o", "b.exr", "-q"]);
    fs::remove_file(place.path("new/b.json")).expect("there");
    let (_, err) = place.expect(2, &["import", "a.glb", "-o", "new/b.json"]);
    assert!(err.contains("new/b_files: exists already"), "{err}");
    place.expect(0, &["import", "a.glb", "-o", "new/b.json", "-q", "--force"]);
    let (_, err) = place.expect(2, &["import", "a.glb", "-o", "-"]);
    assert!(err.contains("are written beside the scene file; name one"), "{err}");
    fs::write(place.path("bad.glb"), b"glTF").expect("writable");
    let (_, err) = place.expect(2, &["import", "bad.glb", "-o", "bad.json"]);
    assert!(err.contains("bad.glb: ends within its header"), "{err}");
    assert!(!place.path("bad.json").exists() && !place.path("bad_files").exists());
}
