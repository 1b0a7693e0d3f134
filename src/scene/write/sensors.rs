//! Sensors and films as JSON.

use serde_json::{Value, json};

use super::super::{
    Area, AreaForm, ColorSpace, Distortion, Filter, PixelFormat, Scene, Sensor, SensorKind, Target, World,
};
use super::{image, matrix, number, numbers, world};

/// A sensor; the caller puts it at the top level, into its batch or into its shape.
pub(super) fn sensor(sensor: &Sensor, world: &World) -> Value {
    let mut object = json!({"film": film(sensor), "sampler": sampler(sensor)});
    let lens = |object: &mut Value| {
        object["to_world"] = matrix(&sensor.to_world);
        for (key, x) in [
            ("focal_x", sensor.focal[0]),
            ("focal_y", sensor.focal[1]),
            ("center_x", sensor.center[0]),
            ("center_y", sensor.center[1]),
            ("near_clip", sensor.near_clip),
            ("far_clip", sensor.far_clip),
        ] {
            object[key] = number(x);
        }
        if let Some(lens) = distortion(&sensor.distortion) {
            object["distortion"] = lens;
        }
    };
    object["type"] = json!(match sensor.kind {
        SensorKind::Perspective => "perspective",
        SensorKind::ThinLens { .. } => "thinlens",
        SensorKind::Orthographic => "orthographic",
        SensorKind::Radiancemeter => "radiancemeter",
        SensorKind::Irradiancemeter(_) => "irradiancemeter",
        SensorKind::Distant { .. } => "distant",
    });
    match sensor.kind {
        SensorKind::Perspective | SensorKind::Orthographic => lens(&mut object),
        SensorKind::ThinLens {
            aperture_radius,
            focus_distance,
        } => {
            lens(&mut object);
            object["aperture_radius"] = number(aperture_radius);
            object["focus_distance"] = number(focus_distance);
        }
        SensorKind::Radiancemeter => object["to_world"] = matrix(&sensor.to_world),
        SensorKind::Irradiancemeter(_) => {}
        SensorKind::Distant { target, ray_offset } => {
            object["to_world"] = matrix(&sensor.to_world);
            if let Some(offset) = ray_offset {
                object["ray_offset"] = number(offset);
            }
            match target {
                Target::Scene => {}
                Target::Point(p) => object["target"] = numbers(&p),
                Target::Area(area) => object["target"] = self::area(&area),
            }
        }
    }
    if !matches!(sensor.kind, SensorKind::Irradiancemeter(_)) {
        object["held_out"] = json!(sensor.held_out);
    }
    if let Some(reference) = &sensor.reference {
        object["image"] = image(reference);
    }
    if let Some(pose) = &sensor.undisturbed {
        object["undisturbed"] = matrix(pose);
    }
    if let Some(index) = sensor.medium {
        object["medium"] = world::medium(world, index, &format!("{}.medium", sensor.name));
    }
    object
}

/// The batch that `sensor` belongs to, without its sensors.
pub(super) fn batch(sensor: &Sensor, scene: &Scene) -> Value {
    let count = scene.sensors.iter().filter(|other| other.batch == sensor.batch).count() as u32;
    let mut film = film(sensor);
    film["width"] = json!(sensor.width * count);
    json!({"type": "batch", "film": film, "sampler": sampler(sensor)})
}

pub(super) fn film(sensor: &Sensor) -> Value {
    let mut film = json!({
        "type": "hdrfilm",
        "width": sensor.width,
        "height": sensor.height,
        "color_space": match sensor.color_space {
            ColorSpace::Linear => "linear",
            ColorSpace::Srgb => "srgb",
        },
        "sample_border": sensor.sample_border,
        "pixel_format": match sensor.pixel_format {
            PixelFormat::Luminance => "luminance",
            PixelFormat::LuminanceAlpha => "luminance_alpha",
            PixelFormat::Rgb => "rgb",
            PixelFormat::Rgba => "rgba",
        },
        "component_format": if sensor.half { "float16" } else { "float32" },
        "rfilter": match sensor.filter {
            Filter::Box => json!({"type": "box"}),
            Filter::Tent { radius } => json!({"type": "tent", "radius": number(radius)}),
            Filter::Gaussian { stddev } => json!({"type": "gaussian", "stddev": number(stddev)}),
            Filter::Mitchell { b, c } => json!({"type": "mitchell", "B": number(b), "C": number(c)}),
            Filter::Lanczos { lobes } => json!({"type": "lanczos", "lobes": lobes}),
        },
    });
    // The principal point is relative to the crop window, which is therefore written without its offset on the film.
    if let Some([whole, _]) = sensor.cropped {
        film["crop_width"] = film["width"].take();
        film["crop_height"] = film["height"].take();
        [film["width"], film["height"]] = whole.map(|side| json!(side));
    }
    film
}

fn sampler(sensor: &Sensor) -> Value {
    json!({"type": "independent", "sample_count": sensor.spp})
}

fn area(area: &Area) -> Value {
    json!({
        "type": match area.form {
            AreaForm::Rectangle => "rectangle",
            AreaForm::Disk => "disk",
            AreaForm::Sphere => "sphere",
            AreaForm::Cylinder => "cylinder",
            AreaForm::Cube => "cube",
        },
        "to_world": matrix(&area.to_world),
        "flip_normals": area.flipped,
    })
}

fn distortion(lens: &Distortion) -> Option<Value> {
    match lens {
        Distortion::None => None,
        Distortion::Brown { k, p } => Some(json!({
            "model": "opencv",
            "k1": number(k[0]), "k2": number(k[1]), "k3": number(k[2]), "p1": number(p[0]), "p2": number(p[1]),
        })),
        Distortion::Fisheye { k } => Some(json!({
            "model": "fisheye",
            "k1": number(k[0]), "k2": number(k[1]), "k3": number(k[2]), "k4": number(k[3]),
        })),
    }
}
