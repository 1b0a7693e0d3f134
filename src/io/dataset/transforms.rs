//! `transforms.json` of NeRF-synthetic, instant-ngp and nerfstudio.
//!
//! `transform_matrix` is camera to world in Blender's convention: +X right, +Y up, −Z forward.

use std::path::{Path, PathBuf};

use glam::{DMat3, DVec3};
use serde_json::{Map, Value};

use super::{Dataset, Distortion, IoError, Result, View, checked_view, image, pose};

type Object = Map<String, Value>;
type Checked<T> = std::result::Result<T, String>;

/// Extensions tried, in this order, if a path names no existing file.
const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "exr", "JPG"];

/// Reads the file; missing sizes are taken from the images' headers.
pub(super) fn load(path: &Path) -> Result<Dataset> {
    let fail = |message: String| IoError::new(path, message);
    super::super::open(path)?;
    let text = std::fs::read_to_string(path).map_err(|e| fail(format!("cannot be read as text: {e}")))?;
    let root: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|e| {
            fail(format!(
                "is not valid JSON ({e}), expected a transforms.json; a scene file, which may have comments, needs no import"
            ))
        })?;
    let Some(top) = root.as_object() else {
        return Err(fail(
            "is not a transforms file: expected an object with `frames`".into(),
        ));
    };
    if top.get("type").and_then(Value::as_str) == Some("scene") {
        return Err(fail("is a scene already; render it, or optimise it".into()));
    }
    let frames = match top.get("frames") {
        Some(Value::Array(frames)) => frames,
        Some(_) => return Err(fail("`frames` is not a list, expected one object a photograph".into())),
        None => {
            return Err(fail(
                "has no `frames`, expected a list with one object a photograph".into(),
            ));
        }
    };
    let mut reader = Reader {
        folder: path.parent().unwrap_or(Path::new("")),
        top,
        last_size: None,
    };
    reader.last_size = frames.iter().find_map(|frame| reader.size_of_first_image(frame));
    let views = frames
        .iter()
        .enumerate()
        .map(|(i, frame)| reader.view(&format!("frames[{i}]"), frame));
    let views = views.collect::<Checked<Vec<View>>>().map_err(fail)?;
    let aabb_scale = number(top, "", "aabb_scale").map_err(fail)?.map(|s| s as f32);
    if aabb_scale.is_some_and(f32::is_infinite) {
        let found = &top["aabb_scale"];
        return Err(fail(format!(
            "aabb_scale is {found}, expected a size of the scene such as 16"
        )));
    }
    let mut notes = Vec::new();
    if top.contains_key("applied_transform") {
        notes.push("`applied_transform` is already part of the cameras' poses and is left alone".to_owned());
    }
    let is_masked = |frame: &&Value| {
        ["mask_path", "dynamic_mask_path"]
            .iter()
            .any(|key| frame.get(key).is_some())
    };
    let masked = frames.iter().filter(is_masked).count();
    if masked > 0 {
        let have = if masked == 1 { "has a mask" } else { "have masks" };
        notes.push(format!(
            "{masked} of the frames {have}, which are not read, so that what they hide is fitted like the rest; store them as alpha in \
             the images"
        ));
    }
    Ok(Dataset {
        file: path.to_owned(),
        views,
        points: Vec::new(),
        aabb_scale,
        notes,
    })
}

struct Reader<'a> {
    folder: &'a Path,
    top: &'a Object,
    /// Size of the first image that exists, used for missing images.
    last_size: Option<[f64; 2]>,
}

impl Reader<'_> {
    fn view(&self, at: &str, frame: &Value) -> Checked<View> {
        let frame = frame.as_object().ok_or(format!("{at} is not an object"))?;
        let file_path = match frame.get("file_path") {
            Some(Value::String(path)) if !path.is_empty() => path.as_str(),
            _ => {
                return Err(format!(
                    "{at}.file_path is missing or not a text, expected the path of an image"
                ));
            }
        };
        let image = self.find_image(file_path);
        let to_world = match frame.get("transform_matrix") {
            Some(matrix) => to_world(matrix).map_err(|e| format!("{at}.transform_matrix {e}"))?,
            None => return Err(format!("{at} has no transform_matrix, expected a 4×4 list of numbers")),
        };
        let [width, height] = self.size(at, frame, &image)?;
        let focal = self.focal(at, frame, [width, height])?;
        let cx = self.number(at, frame, "cx")?.unwrap_or(width / 2.0);
        let cy = self.number(at, frame, "cy")?.unwrap_or(height / 2.0);
        let view = View {
            name: file_path.to_owned(),
            image,
            to_world,
            width: width as u32,
            height: height as u32,
            focal: focal.map(|f| f as f32),
            center: [cx as f32, cy as f32],
            distortion: self.distortion(at, frame)?,
        };
        checked_view(at, view)
    }

    /// A number of the frame, or else of the file.
    fn number(&self, at: &str, frame: &Object, key: &str) -> Checked<Option<f64>> {
        Ok(number(frame, &format!("{at}."), key)?.or(number(self.top, "", key)?))
    }

    /// The stated size, or else the image's own.
    fn size(&self, at: &str, frame: &Object, path: &Path) -> Checked<[f64; 2]> {
        let stated = (self.number(at, frame, "w")?, self.number(at, frame, "h")?);
        let size = match stated {
            (Some(w), Some(h)) => [w, h],
            _ if path.is_file() => {
                let header = image::header(path).map_err(|e| e.to_string())?;
                [header.width as f64, header.height as f64]
            }
            _ => self
                .last_size
                .ok_or("states no `w` and `h`, and none of its images is there to tell them")?,
        };
        let whole = |v: f64| v.fract() == 0.0 && (1.0..=65536.0).contains(&v);
        if !size.into_iter().all(whole) {
            return Err(format!(
                "{at} has size {} × {}, expected whole numbers from 1 to 65536",
                size[0], size[1]
            ));
        }
        Ok(size)
    }

    fn size_of_first_image(&self, frame: &Value) -> Option<[f64; 2]> {
        let path = self.find_image(frame.get("file_path")?.as_str()?);
        let header = image::header(&path).ok()?;
        Some([header.width as f64, header.height as f64])
    }

    /// Focal lengths of the frame, or else of the file, from `fl_x fl_y` or fields of view.
    fn focal(&self, at: &str, frame: &Object, size: [f64; 2]) -> Checked<[f64; 2]> {
        for (prefix, object) in [(format!("{at}."), frame), (String::new(), self.top)] {
            let axis = |length: &str, angle: &str, pixels: f64| -> Checked<Option<f64>> {
                let from_angle = |angle: f64| pixels / (2.0 * (angle / 2.0).tan());
                Ok(number(object, &prefix, length)?.or(number(object, &prefix, angle)?.map(from_angle)))
            };
            let x = axis("fl_x", "camera_angle_x", size[0])?;
            let y = axis("fl_y", "camera_angle_y", size[1])?;
            if let Some(known) = x.or(y) {
                return Ok([x.unwrap_or(known), y.unwrap_or(known)]);
            }
        }
        Err(format!(
            "{at} has no focal length, expected `camera_angle_x` or `fl_x` in the file or the frame"
        ))
    }

    fn distortion(&self, at: &str, frame: &Object) -> Checked<Distortion> {
        let text = |object: &Object| {
            object
                .get("camera_model")
                .and_then(Value::as_str)
                .map(str::to_uppercase)
        };
        let flag = |object: &Object| object.get("is_fisheye").and_then(Value::as_bool);
        let model = text(frame).or(text(self.top)).unwrap_or_else(|| "OPENCV".into());
        let fisheye = match model.as_str() {
            "OPENCV" | "PINHOLE" | "SIMPLE_PINHOLE" | "SIMPLE_RADIAL" | "RADIAL" | "PERSPECTIVE" => {
                flag(frame).or(flag(self.top)).unwrap_or(false)
            }
            "OPENCV_FISHEYE" | "FISHEYE" => true,
            _ => {
                let known = "PINHOLE, SIMPLE_PINHOLE, RADIAL, SIMPLE_RADIAL, OPENCV or OPENCV_FISHEYE";
                return Err(format!(
                    "{at} has camera_model {model}, which is not supported, expected {known}"
                ));
            }
        };
        let get = |key| self.number(at, frame, key).map(|v| v.unwrap_or(0.0) as f32);
        let k = [get("k1")?, get("k2")?, get("k3")?, get("k4")?];
        match fisheye {
            true => Ok(Distortion::Fisheye { k }),
            false if k[3] != 0.0 => Err(format!(
                "{at} has k4 = {}, expected that of OPENCV_FISHEYE cameras only",
                k[3]
            )),
            false => Ok(Distortion::Brown {
                k: [k[0], k[1], k[2]],
                p: [get("p1")?, get("p2")?],
            }),
        }
    }

    /// The file of `file_path`, with an extension added if it has none.
    fn find_image(&self, file_path: &str) -> PathBuf {
        let exact = self.folder.join(file_path);
        if exact.is_file() {
            return exact;
        }
        let with = |extension: &str| self.folder.join(format!("{file_path}.{extension}"));
        let found = EXTENSIONS.into_iter().map(with).find(|path| path.is_file());
        let has_extension = exact
            .extension()
            .is_some_and(|e| EXTENSIONS.iter().any(|known| e.eq_ignore_ascii_case(known)));
        found.unwrap_or(if has_extension { exact } else { with("png") })
    }
}

/// The number at `key`; `null` counts as absent.
fn number(object: &Object, prefix: &str, key: &str) -> Checked<Option<f64>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(v) if v.is_finite() => Ok(Some(v)),
            _ => Err(format!("{prefix}{key} is {}, expected a number", brief(value))),
        },
    }
}

/// A 3×4 or 4×4 camera-to-world matrix in Blender's convention, in ours: columns X and Z are negated.
fn to_world(matrix: &Value) -> Checked<glam::Affine3A> {
    let expected = "expected 4 rows of 4 numbers";
    let rows = matrix.as_array().ok_or(format!("is {}, {expected}", brief(matrix)))?;
    if !(3..=4).contains(&rows.len()) {
        return Err(format!("has {} rows, {expected}", rows.len()));
    }
    let mut m = [[0.0, 0.0, 0.0, 1.0]; 4];
    for (row, values) in m.iter_mut().zip(rows) {
        let values = values
            .as_array()
            .filter(|v| v.len() == 4)
            .ok_or(format!("has a row that is not 4 long, {expected}"))?;
        for (entry, value) in row.iter_mut().zip(values) {
            *entry = value.as_f64().ok_or(format!("holds {}, {expected}", brief(value)))?;
        }
    }
    let column = |c: usize| DVec3::new(m[0][c], m[1][c], m[2][c]);
    let bottom = m[3].iter().zip([0.0, 0.0, 0.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-4);
    let axes = DMat3::from_cols(-column(0), column(1), -column(2));
    let pose = if bottom { pose(axes, column(3)) } else { None };
    pose.ok_or("is no rotation and translation, expected a camera's pose".to_owned())
}

/// A value for a message, truncated.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_in_messages_are_cut_after_forty_characters() {
        let list = |n: usize| json!("x".repeat(n - 2));
        assert_eq!(brief(&list(40)), format!("\"{}\"", "x".repeat(38)));
        assert_eq!(brief(&list(41)), format!("\"{}…", "x".repeat(39)));
        assert_eq!(brief(&json!("ä".repeat(50))), format!("\"{}…", "ä".repeat(39)));
    }

    /// Sizes from 1 to 65536, poses with three or four rows and a last one of 0 0 0 1.
    #[test]
    fn sizes_and_poses_have_bounds() {
        let read = |w: f64, rows: Value| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("transforms.json");
            let frame = json!({"file_path": "a", "transform_matrix": rows});
            let text = json!({"w": w, "h": 2, "fl_x": 1, "frames": [frame]}).to_string();
            std::fs::write(&path, text).expect("writable");
            load(&path).map_err(|e| e.to_string())
        };
        let rows = |last: f64| json!([[1, 0, 0, 4], [0, 1, 0, 5], [0, 0, 1, 6], [0, 0, last, 1]]);
        for (w, possible) in [
            (1.0, true),
            (0.0, false),
            (65536.0, true),
            (65537.0, false),
            (1.5, false),
        ] {
            assert_eq!(read(w, rows(0.0)).is_ok(), possible, "{w}");
        }
        for (last, possible) in [(0.9e-4, true), (1.1e-4, false), (-1.1e-4, false)] {
            assert_eq!(read(2.0, rows(last)).is_ok(), possible, "{last}");
        }
        let short = json!([[1, 0, 0, 4], [0, 1, 0, 5], [0, 0, 1, 6]]);
        let dataset = read(2.0, short.clone()).expect("three rows are enough");
        // Backwards along z: forward is -z, left -x.
        let view = &dataset.views[0];
        assert_eq!(
            (view.position(), view.forward()),
            (DVec3::new(4.0, 5.0, 6.0), -DVec3::Z)
        );
        assert_eq!((view.center, view.focal), ([1.0; 2], [1.0; 2]));
        let mut five = rows(0.0);
        five.as_array_mut().expect("rows").push(json!([0, 0, 0, 1]));
        assert!(read(2.0, five).expect_err("too many").contains("has 5 rows"));
        let two = json!([short[0], short[1]]);
        assert!(read(2.0, two).expect_err("too few").contains("has 2 rows"));
    }

    /// Writes a file with frames of these images, without sizes, beside images of these sizes.
    fn read_beside(images: &[(&str, [usize; 2])], frames: &[&str]) -> (tempfile::TempDir, Result<Dataset>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, [width, height]) in images {
            let grey = crate::io::Image {
                width: *width,
                height: *height,
                channels: 1,
                data: vec![0.5; width * height],
            };
            image::write_png(&folder.path().join(name), &grey).expect("writable");
        }
        let rows = json!([[1, 0, 0, 4], [0, 1, 0, 5], [0, 0, 1, 6]]);
        let frames: Vec<Value> = frames
            .iter()
            .map(|f| json!({"file_path": f, "transform_matrix": rows}))
            .collect();
        let path = folder.path().join("transforms.json");
        std::fs::write(&path, json!({"fl_x": 1, "frames": frames}).to_string()).expect("writable");
        let dataset = load(&path);
        (folder, dataset)
    }

    /// An existing image has its own size, a missing one the size of the first existing image.
    #[test]
    fn sizes_are_those_of_the_images() {
        let there = [("a.png", [6, 4]), ("b.png", [3, 5])];
        let (_folder, dataset) = read_beside(&there, &["missing", "a", "b.png", "lost.png"]);
        let sizes: Vec<_> = dataset
            .expect("sizes are known")
            .views
            .iter()
            .map(|v| [v.width, v.height])
            .collect();
        assert_eq!(sizes, [[6, 4], [6, 4], [3, 5], [6, 4]]);
        let (_folder, dataset) = read_beside(&[], &["missing"]);
        let error = dataset.expect_err("no image tells").to_string();
        assert!(error.contains("none of its images is there to tell them"), "{error}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = load(folder.path()).expect_err("a folder").to_string();
        assert!(error.contains("is a folder or a device"), "{error}");
        let wide = folder.path().join("transforms.json");
        let frame = json!({"file_path": "a", "transform_matrix": [[1, 0, 0, 4], [0, 1, 0, 5], [0, 0, 1, 6]]});
        std::fs::write(
            &wide,
            json!({"w": 65537, "h": 2, "fl_x": 1, "frames": [frame]}).to_string(),
        )
        .expect("writable");
        let error = load(&wide).expect_err("too wide").to_string();
        assert!(
            error.contains("frames[0] has size 65537 × 2, expected whole numbers from 1 to 65536"),
            "{error}"
        );
    }

    /// A path without one of the known extensions gets that of an existing file, or else `png`.
    #[test]
    fn extensions_are_found() {
        let there = [("a.png", [2, 2]), ("c.d.png", [2, 2])];
        let (folder, dataset) = read_beside(&there, &["a", "a.png", "b", "b.JPEG", "c.d", "e.f", "g.exr", "a.jpg"]);
        let images = dataset.expect("sizes are known").views.into_iter().map(|v| v.image);
        let names: Vec<PathBuf> = images
            .map(|path| path.strip_prefix(folder.path()).expect("within").to_owned())
            .collect();
        let expected = [
            "a.png", "a.png", "b.png", "b.JPEG", "c.d.png", "e.f.png", "g.exr", "a.jpg",
        ];
        assert_eq!(names, expected.map(PathBuf::from));
    }
}
