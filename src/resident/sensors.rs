//! Sensors as records, with what depends on the scene: tables of filters, and the distance from which distant sensors look.

use bytemuck::Zeroable;
use glam::{Affine3A, Vec3A};

use super::filter::filter_table;
use super::layout::{self, FILTERS, NO_REFERENCE, NONE, PathSettings, SceneRecord, SensorRecord, SurfaceRecord};
use super::paths::PathScene;
use super::{Resident, Transport, affine, rows};
use crate::each::EachEntry;
use crate::io;
use crate::scene::{Area, AreaForm, Distortion, Filter, Scene, Sensor, SensorKind, Target};

/// In place of infinity: focal length and far clip of a radiance meter, whose film has no extent.
const NO_EXTENT: f32 = 1e30;

/// Factor by which the sphere around a scene is larger than the one around its box.
const MARGIN: f32 = 1.0 + 1e-4;

/// The records of a scene's sensors, without references, with the tables of their filters in `record`.
///
/// # Errors
/// There are more filters than tables.
pub(super) fn records(scene: &Scene, record: &mut SceneRecord) -> io::Result<Vec<SensorRecord>> {
    // Tables are in units of the filter's radius, so that all Gaussians have the same.
    let shape = |filter: Filter| match filter {
        Filter::Gaussian { .. } => Filter::Gaussian { stddev: 0.5 },
        other => other,
    };
    let mut filters: Vec<Filter> = Vec::new();
    let mut records = Vec::new();
    for sensor in &scene.sensors {
        let mut described = sensor_record(sensor);
        if described.filter == layout::filter::TABLE {
            let filter = shape(sensor.filter);
            let found = filters.iter().position(|known| *known == filter);
            described.filter_table = found.unwrap_or(filters.len()) as u32;
            if found.is_none() {
                filters.push(filter);
            }
        }
        records.push(described);
    }
    if filters.len() > FILTERS {
        let message = format!(
            "has films with {} different reconstruction filters, of which at most {FILTERS} may be `gaussian`, `mitchell`, \
             `catmullrom` or `lanczos`: make some alike",
            filters.len()
        );
        return Err(io::IoError::new(&scene.path, message));
    }
    for (table, filter) in record.filters.iter_mut().zip(filters) {
        *table = filter_table(filter);
    }
    Ok(records)
}

/// One sensor's record, without a reference, and without what depends on the scene.
pub fn sensor_record(sensor: &Sensor) -> SensorRecord {
    let mut record = SensorRecord::zeroed();
    record.to_world = rows(&sensor.to_world);
    (record.distortion_model, record.distortion) = match sensor.distortion {
        Distortion::None => (layout::distortion::NONE, [0.0; 8]),
        Distortion::Brown { k, p } => (layout::distortion::BROWN, [k[0], k[1], k[2], 0.0, p[0], p[1], 0.0, 0.0]),
        Distortion::Fisheye { k } => (
            layout::distortion::FISHEYE,
            [k[0], k[1], k[2], k[3], 0.0, 0.0, 0.0, 0.0],
        ),
    };
    record.focal = sensor.focal;
    record.center = sensor.center;
    record.width = sensor.width;
    record.height = sensor.height;
    record.near_clip = sensor.near_clip;
    record.far_clip = sensor.far_clip;
    record.filter = match sensor.filter {
        Filter::Box => layout::filter::BOX,
        Filter::Tent { .. } => layout::filter::TENT,
        Filter::Gaussian { .. } | Filter::Mitchell { .. } | Filter::Lanczos { .. } => layout::filter::TABLE,
    };
    record.filter_size = sensor.filter.radius();
    record.sample_border = u32::from(sensor.sample_border);
    record.first_pixel = NO_REFERENCE;
    record.medium = sensor.medium.map_or(NONE, |medium| medium as u32);
    match sensor.kind {
        SensorKind::Perspective => record.kind = layout::sensor::PERSPECTIVE,
        SensorKind::ThinLens {
            aperture_radius,
            focus_distance,
        } => {
            record.kind = layout::sensor::THINLENS;
            (record.aperture_radius, record.focus_distance) = (aperture_radius, focus_distance);
        }
        SensorKind::Orthographic => record.kind = layout::sensor::ORTHOGRAPHIC,
        SensorKind::Radiancemeter => {
            record.kind = layout::sensor::ORTHOGRAPHIC;
            record.focal = [NO_EXTENT; 2];
            (record.near_clip, record.far_clip) = (0.0, NO_EXTENT);
        }
        SensorKind::Irradiancemeter(area) => {
            record.kind = layout::sensor::IRRADIANCEMETER;
            describe_area(&area, &mut record);
        }
        SensorKind::Distant { target, ray_offset } => {
            record.kind = layout::sensor::DISTANT;
            record.focus_distance = ray_offset.unwrap_or(0.0);
            match target {
                Target::Scene => record.area = layout::area::DISK,
                Target::Point(p) => {
                    record.area = layout::area::POINT;
                    record.area_to_world = rows(&Affine3A::from_translation(p.into()));
                }
                Target::Area(area) => describe_area(&area, &mut record),
            }
        }
    }
    record
}

fn describe_area(area: &Area, record: &mut SensorRecord) {
    let mut to_world = area.to_world;
    record.area = match (area.form, area.flipped) {
        (AreaForm::Rectangle, _) => layout::area::RECTANGLE,
        (AreaForm::Disk, _) => layout::area::DISK,
        (AreaForm::Sphere, false) => layout::area::SPHERE,
        (AreaForm::Sphere, true) => layout::area::CAVITY,
        (AreaForm::Cylinder, false) => layout::area::CYLINDER,
        (AreaForm::Cylinder, true) => layout::area::PIPE,
        (AreaForm::Cube, false) => layout::area::CUBE,
        (AreaForm::Cube, true) => layout::area::ROOM,
    };
    if matches!(area.form, AreaForm::Rectangle | AreaForm::Disk) {
        // Normals are mapped by the inverse transpose, which keeps the visible side under a mirroring map.
        let normal = (to_world.matrix3.inverse().transpose() * Vec3A::Z).normalize();
        to_world.matrix3.z_axis = if area.flipped { -normal } else { normal };
    }
    record.area_to_world = rows(&to_world);
}

/// Sets where the rays of distant sensors begin, outside of the scene unless the file says how far away, and lets sensors
/// without a target cover the whole scene.
pub(super) fn look_from_afar(sensors: &[Sensor], resident: &mut Resident) {
    let distant = |sensor: &Sensor| matches!(sensor.kind, SensorKind::Distant { .. });
    if !sensors.iter().any(distant) {
        return;
    }
    let (center, radius) = sphere_around(resident);
    for (of, sensor) in sensors.iter().zip(&mut resident.sensors) {
        let SensorKind::Distant { target, .. } = of.kind else {
            continue;
        };
        let everywhere = target == Target::Scene;
        if sensor.focus_distance == 0.0 {
            // A target may lie at the far end of the scene.
            sensor.focus_distance = if everywhere { radius } else { 2.0 * radius };
        }
        if everywhere {
            let m = &sensor.to_world;
            let column = |i: usize| Vec3A::new(m[0][i], m[1][i], m[2][i]).normalize();
            let across = glam::Mat3A::from_cols(radius * column(0), radius * column(1), column(2));
            sensor.area_to_world = rows(&Affine3A {
                matrix3: across,
                translation: center,
            });
        }
    }
}

/// Centre and radius of a sphere around a radiance field or all surfaces; around the origin, of radius 1, without any.
fn sphere_around(resident: &Resident) -> (Vec3A, f32) {
    match &resident.transport {
        Transport::Field(_) if resident.scene.has_field == 1 => {
            let unit_to_world = affine(&resident.scene.world_to_unit).inverse();
            sphere_of(corners([0.0; 3], [1.0; 3]).map(|c| unit_to_world.transform_point3a(c)))
        }
        Transport::Paths(paths) => sphere_around_surfaces(paths),
        Transport::Field(_) | Transport::Splats(_) | Transport::Light(_) => sphere_of(std::iter::empty()),
    }
}

/// Centre and radius of a sphere around all surfaces.
pub(super) fn sphere_around_surfaces(paths: &PathScene) -> (Vec3A, f32) {
    let PathSettings { low, high, .. } = paths.settings;
    let meshes = (!paths.corners.is_empty()).then(|| corners(low, high));
    let others = paths.surfaces.iter().filter_map(box_of).flatten();
    sphere_of(others.chain(meshes.into_iter().flatten()))
}

/// Centre and radius of a sphere around the box of some points.
fn sphere_of(points: impl Iterator<Item = Vec3A>) -> (Vec3A, f32) {
    let (mut low, mut high) = (Vec3A::INFINITY, Vec3A::NEG_INFINITY);
    for p in points {
        low = low.min(p);
        high = high.max(p);
    }
    let radius = 0.5 * (high - low).length() * MARGIN;
    match radius.is_finite() && radius > 0.0 {
        true => (0.5 * (low + high), radius),
        false => (Vec3A::ZERO, 1.0),
    }
}

/// Corners of a box around a surface in the world; None for a mesh.
fn box_of(surface: &SurfaceRecord) -> Option<Vec<Vec3A>> {
    let to_world = affine(&surface.to_world);
    let moved = |low, high| corners(low, high).map(|c| to_world.transform_point3a(c)).collect();
    let axes = [0, 1, 2].each(|a| to_world.matrix3.row(a));
    let around = |half: [f32; 3]| {
        let half = Vec3A::from_array(half);
        vec![to_world.translation - half, to_world.translation + half]
    };
    match surface.kind {
        layout::surface::CUBE | layout::surface::DISTANCES => Some(moved([-1.0; 3], [1.0; 3])),
        layout::surface::RECTANGLE | layout::surface::DISK => Some(moved([-1.0, -1.0, 0.0], [1.0, 1.0, 0.0])),
        layout::surface::SPHERE => Some(around(axes.each(Vec3A::length))),
        layout::surface::CYLINDER => Some(around(axes.each(|a| a.x.hypot(a.y) + a.z.abs()))),
        _ => None,
    }
}

fn corners(low: [f32; 3], high: [f32; 3]) -> impl Iterator<Item = Vec3A> {
    (0..8).map(move |i| {
        let side = |a: usize| if i >> a & 1 == 0 { low[a] } else { high[a] };
        Vec3A::new(side(0), side(1), side(2))
    })
}
