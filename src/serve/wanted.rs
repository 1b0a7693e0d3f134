//! The views that pages may ask for, checked before they reach a device.

use serde::{Deserialize, Serialize};

use crate::resident::layout::Rows;

/// What a picture shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Show {
    /// What the camera sees.
    Picture,
    /// The depth of what the camera sees, along its view.
    Depth,
    /// One minus the transmittance up to the background.
    Opacity,
    /// The magnitude of the gradient of the parameter of this path: the largest along a ray, at the first hit, or near a
    /// splat.
    Gradient(String),
}

/// A view.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Index of a sensor of the scene, which says what kind of camera this is.
    pub sensor: usize,
    /// A rigid motion of that sensor, in the world; of a picture of splats, the scale and shift of the part that is
    /// shown.
    pub motion: Rows,
    /// Factor on the sensor's focal length; for parallel rays, on the pixels in a unit of length.
    pub zoom: f32,
    pub show: Show,
    /// Pixels of the picture's longer side.
    pub pixels: u32,
}

/// How a camera can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum Moves {
    /// Not at all: it is a meter, and makes no picture.
    #[default]
    No,
    /// It turns and moves, as a perspective camera.
    Perspective,
    /// It turns, and zooms: its rays are parallel.
    Parallel,
    /// It shows a part of a flat picture of splats.
    Flat,
}

/// The views that may be chosen.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// For each of the scene's sensors.
    pub moves: Vec<Moves>,
    pub shows: Vec<Show>,
}

/// Bounds of the pixels of the longer side, of a motion's shift in world units, and of the zoom.
const PIXELS: std::ops::RangeInclusive<u32> = 16..=1024;
const FAR: f32 = 1e9;
const ZOOM: std::ops::RangeInclusive<f32> = 1e-3..=1e3;

/// The identity: a sensor as the scene has it.
pub(super) const REST: Rows = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];

impl Choice {
    /// The view that a page begins with.
    pub(super) fn first(&self) -> Wanted {
        Wanted {
            sensor: self.moves.iter().position(|moves| *moves != Moves::No).unwrap_or(0),
            motion: REST,
            zoom: 1.0,
            show: Show::Picture,
            pixels: 480,
        }
    }

    /// Whether any sensor makes pictures.
    pub(super) fn has_camera(&self) -> bool {
        self.moves.iter().any(|moves| *moves != Moves::No)
    }

    /// A view from JSON.
    ///
    /// # Errors
    /// A sentence that says why this is no view of the scene.
    pub(super) fn parse(&self, text: &[u8]) -> Result<Wanted, String> {
        let wanted: Wanted = serde_json::from_slice(text).map_err(|e| format!("this is no view: {e}"))?;
        let moves = self.moves.get(wanted.sensor).copied().unwrap_or_default();
        if moves == Moves::No {
            return Err(format!("sensor {} has no picture", wanted.sensor));
        }
        if !self.shows.contains(&wanted.show) {
            return Err("there is nothing of this kind to be shown".into());
        }
        if !PIXELS.contains(&wanted.pixels) || !ZOOM.contains(&wanted.zoom) {
            return Err(format!("expected {PIXELS:?} pixels and a zoom of {ZOOM:?}"));
        }
        let possible = match moves {
            Moves::Flat => is_part(&wanted.motion),
            _ => is_rigid(&wanted.motion),
        };
        if !possible {
            return Err("the camera's motion is not rigid, or too far".into());
        }
        Ok(wanted)
    }
}

fn is_near(motion: &Rows) -> bool {
    motion.iter().all(|row| row[3].abs() <= FAR)
}

/// Whether a motion is a rotation and a shift and nothing else. NaN fails every comparison.
fn is_rigid(motion: &Rows) -> bool {
    let dot = |a: usize, b: usize| (0..3).map(|i| motion[a][i] * motion[b][i]).sum::<f32>();
    let expected = |a, b| if a == b { 1.0 } else { 0.0 };
    let turns = (0..3).all(|a| (0..3).all(|b| (dot(a, b) - expected(a, b)).abs() < 1e-2));
    let [[a, b, c, _], [d, e, f, _], [g, h, i, _]] = *motion;
    let determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
    turns && determinant > 0.0 && is_near(motion)
}

/// Whether a motion is a uniform scale along both axes and a shift.
fn is_part(motion: &Rows) -> bool {
    let [[scale, b, ..], [d, e, ..], _] = *motion;
    ZOOM.contains(&scale) && e == scale && b == 0.0 && d == 0.0 && is_near(motion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn choice() -> Choice {
        Choice {
            moves: vec![Moves::No, Moves::Perspective, Moves::Flat],
            shows: vec![Show::Picture, Show::Gradient("a.b".into())],
        }
    }

    fn view(sensor: usize, motion: Rows) -> serde_json::Value {
        json!({"sensor": sensor, "motion": motion, "zoom": 1.0, "show": "picture", "pixels": 100})
    }

    #[test]
    fn views_that_there_are_pass() {
        let choice = choice();
        assert_eq!(choice.first().sensor, 1);
        let parse = |value: &serde_json::Value| choice.parse(value.to_string().as_bytes());
        let turned = [[0.0, 0.0, 1.0, 5.0], [0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]];
        assert_eq!(parse(&view(1, turned)).map(|w| w.motion), Ok(turned));
        let part = [[0.25, 0.0, 0.0, 0.5], [0.0, 0.25, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0]];
        assert!(parse(&view(2, part)).is_ok());
        let mut gradient = view(1, REST);
        gradient["show"] = json!({"gradient": "a.b"});
        assert_eq!(parse(&gradient).map(|w| w.show), Ok(Show::Gradient("a.b".into())));
    }

    #[test]
    fn views_that_there_are_not_are_refused() {
        let choice = choice();
        let mirrored = [[-1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
        let mut far = REST;
        far[0][3] = 2e9;
        let mut wrong = vec![
            view(0, REST),
            view(7, REST),
            view(1, mirrored),
            view(1, far),
            view(1, [[0.0; 4]; 3]),
        ];
        wrong.push(view(2, far));
        wrong.push(view(2, [[0.0; 4]; 3]));
        for (name, value) in [
            ("zoom", json!(0.0)),
            ("zoom", json!(-1.0)),
            ("zoom", json!("1")),
            ("pixels", json!(100_000)),
            ("show", json!("depth")),
            ("show", json!({"gradient": "c"})),
            ("motion", json!([[1, 0, 0], [0, 1, 0], [0, 0, 1]])),
            ("more", json!(1)),
        ] {
            let mut of = view(1, REST);
            of[name] = value;
            wrong.push(of);
        }
        for of in wrong {
            assert!(choice.parse(of.to_string().as_bytes()).is_err(), "{of}");
        }
        // A number beyond f32 is infinite.
        let text = view(1, REST).to_string().replacen("1.0", "1e300", 1);
        assert!(choice.parse(text.as_bytes()).is_err());
        assert!(choice.parse(b"{").is_err() && choice.parse(&[0xff; 9]).is_err());
    }
}
