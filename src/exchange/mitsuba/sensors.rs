//! Sensors for Mitsuba: fields of view in degrees in the place of focal lengths in pixels.

use glam::{DAffine3, DVec3};
use serde_json::{Map, Value, json};

use crate::scene::{ColorSpace, Distortion, Sensor, SensorKind};

/// Largest relative difference of the focal lengths along both axes for which pixels count as square.
const SQUARE: f32 = 1e-6;

/// Translates a sensor that is given as this program resolves it.
///
/// # Errors
/// The property that Mitsuba cannot express, as the rest of a sentence.
pub(super) fn translate(sensor: &Sensor, object: &mut Map<String, Value>) -> Result<(), String> {
    if sensor.color_space == ColorSpace::Srgb {
        return Err("its rays carry sRGB-coded values, Mitsuba's carry light; use the `color_space` `linear`".into());
    }
    let has_lens = matches!(
        sensor.kind,
        SensorKind::Perspective | SensorKind::ThinLens { .. } | SensorKind::Orthographic
    );
    if !has_lens {
        return Ok(());
    }
    if sensor.distortion != Distortion::None {
        return Err("Mitsuba's lenses do not distort; remove the `distortion`".into());
    }
    let [x, y] = sensor.focal;
    if (x - y).abs() > SQUARE * x {
        return Err(format!(
            "its pixels are not square (focal lengths of {x} and {y} pixels), Mitsuba's are; make them equal"
        ));
    }
    object.retain(|key, _| !matches!(&key[..], "focal_x" | "focal_y" | "center_x" | "center_y" | "distortion"));
    // A crop window is written at its film's corner, and Mitsuba's principal point is relative to that film.
    let whole = sensor.cropped.map_or([sensor.width, sensor.height], |[film, _]| film);
    let [width, height] = whole.map(f64::from);
    let center = sensor.center.map(f64::from);
    let offset = [0.5 - center[0] / width, 0.5 - center[1] / height];
    match sensor.kind {
        SensorKind::Perspective => {
            object.insert("fov".into(), json!(field_of_view(width, sensor)));
            for (key, offset) in ["principal_point_offset_x", "principal_point_offset_y"]
                .into_iter()
                .zip(offset)
            {
                if offset != 0.0 {
                    object.insert(key.into(), json!(offset));
                }
            }
        }
        _ => {
            plain_window(sensor, object);
            let whole = crop(sensor, object)?;
            if matches!(sensor.kind, SensorKind::ThinLens { .. }) {
                object.insert("fov".into(), json!(field_of_view(whole, sensor)));
            } else {
                // Mitsuba's film is two units wide before the transform.
                let scale = 0.5 * whole / f64::from(x);
                let to_world = DAffine3::from_cols_array(&sensor.to_world.to_cols_array().map(f64::from));
                let scaled = to_world * DAffine3::from_scale(DVec3::new(scale, scale, 1.0));
                object.insert("to_world".into(), matrix(&scaled));
            }
        }
    }
    Ok(())
}

/// Field of view of `width` pixels along x, in degrees.
fn field_of_view(width: f64, sensor: &Sensor) -> f64 {
    2.0 * (0.5 * width / f64::from(sensor.focal[0])).atan().to_degrees()
}

/// Replaces a film with a crop window by a film of the window's size.
fn plain_window(sensor: &Sensor, object: &mut Map<String, Value>) {
    if let Some(film) = object.get_mut("film").and_then(Value::as_object_mut) {
        film.retain(|key, _| !key.starts_with("crop_"));
        film.insert("width".into(), json!(sensor.width));
        film.insert("height".into(), json!(sensor.height));
    }
}

/// States the principal point by a crop window of a film that is centred on it; returns that film's width.
fn crop(sensor: &Sensor, object: &mut Map<String, Value>) -> Result<f64, String> {
    let size = [sensor.width, sensor.height].map(f64::from);
    let center = sensor.center.map(f64::from);
    if [0, 1].iter().all(|a| center[*a] == 0.5 * size[*a]) {
        return Ok(size[0]);
    }
    // The smallest film around the window whose middle is the principal point.
    let offset = [0, 1].map(|a| (size[a] - 2.0 * center[a]).max(0.0));
    let whole = [0, 1].map(|a| 2.0 * (center[a] + offset[a]));
    if offset
        .iter()
        .chain(&whole)
        .any(|x| x.fract() != 0.0 || *x < 1.0 && *x != 0.0 || *x > 65536.0)
    {
        return Err(format!(
            "its principal point ({}, {}) is not in the middle of a film of whole pixels; Mitsuba moves it for \
             `perspective` only",
            center[0], center[1]
        ));
    }
    if let Some(film) = object.get_mut("film") {
        for (axis, [whole_key, offset_key, size_key]) in [
            ["width", "crop_offset_x", "crop_width"],
            ["height", "crop_offset_y", "crop_height"],
        ]
        .into_iter()
        .enumerate()
        {
            film[whole_key] = json!(whole[axis] as u64);
            film[offset_key] = json!(offset[axis] as u64);
            film[size_key] = json!(size[axis] as u64);
        }
    }
    Ok(whole[0])
}

/// Removes the members of a film that only this program has.
pub(super) fn plain_film(sensor: &mut Map<String, Value>) {
    if let Some(film) = sensor.get_mut("film").and_then(Value::as_object_mut) {
        film.remove("color_space");
    }
}

/// A map as the rows of a 4 × 4 matrix, in the precision of scenes (f32).
fn matrix(map: &DAffine3) -> Value {
    let columns = map.to_cols_array();
    let number = |x: f64| {
        let x = x as f32;
        x.to_string().parse::<f64>().unwrap_or_else(|_| x.into())
    };
    let row = |i: usize| -> Vec<f64> { (0..4).map(|j| number(columns[3 * j + i])).collect() };
    json!([row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]])
}
