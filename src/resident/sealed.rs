//! Sealed media: inside closed shapes whose BSDF lets no light pass straight on, with no light inside. Every shadow ray
//! from there is blocked, so that paths make no next-event estimation.

use super::bvh::Corners;
use super::layout::{LightRecord, NONE, SurfaceRecord, Triangle, light, surface};
use super::surface_free::{Inside, around, corners_of};

/// A surface's record, with what else decides whether it seals a medium.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shell<'a> {
    pub(super) record: &'a SurfaceRecord,
    /// The triangles of a mesh; empty for other shapes.
    pub(super) triangles: &'a [Triangle],
    /// Whether it has a BSDF that lets no light pass straight through.
    pub(super) is_opaque: bool,
    /// Whether a mesh is closed and faces outwards.
    pub(super) is_closed: bool,
}

/// Whether the medium of this index lies on a side of one surface alone, the inner one, and this surface seals it. For
/// surfaces that stand still.
pub(super) fn is_sealed(medium: u32, shells: &[Shell], lights: &[LightRecord]) -> bool {
    let has = |shell: &&Shell| [shell.record.interior, shell.record.exterior].contains(&medium);
    let mut around = shells.iter().filter(has);
    let (Some(shell), None) = (around.next(), around.next()) else {
        return false;
    };
    let record = shell.record;
    let is_closed = match record.kind {
        surface::CUBE | surface::SPHERE => true,
        surface::MESH => shell.is_closed,
        _ => false,
    };
    let holds = record.interior == medium && record.exterior != medium && record.side > 0.0;
    if !is_closed || !holds || !shell.is_opaque || record.light != NONE {
        return false;
    }
    let inside = Inside::from_box(shell.bounds());
    lights.iter().all(|light| match light.kind {
        light::DIRECTIONAL | light::ENVMAP => true,
        light::AREA => {
            let lamp = shells.get(light.surface as usize);
            lamp.is_some_and(|lamp| !inside.overlaps(&lamp.points()))
        }
        _ => {
            let [x, y, z, _] = light.position;
            !inside.overlaps(&[[x, y, z]])
        }
    })
}

impl Shell<'_> {
    /// Points whose box holds the surface.
    fn points(&self) -> Vec<[f32; 3]> {
        match self.record.kind {
            surface::MESH => self.triangles.as_flattened().to_vec(),
            _ => corners_of(self.record).to_vec(),
        }
    }

    fn bounds(&self) -> Corners {
        around(self.points())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::resident::Resident;
    use crate::resident::layout::medium::SEALED;

    /// Whether the first medium of a scene of these objects is sealed.
    fn sealed(objects: &str) -> bool {
        let scene = crate::scene::parse(&format!("{{{objects}}}"), Path::new("sealed.json"));
        let scene = scene.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (resident, _) = Resident::new(&scene).expect("it is sound");
        resident.transport.paths().media[0].has(SEALED)
    }

    /// A glass ball of a medium, and what stands beside it.
    fn ball(more: &str) -> bool {
        sealed(&format!(
            r#""ball": {{"type": "sphere", "bsdf": {{"type": "dielectric"}}, "interior": {{"type": "homogeneous"}}}} {more}"#
        ))
    }

    /// A shape of a medium under a sky.
    fn shape(shape: &str) -> bool {
        sealed(&format!(
            r#""thing": {{{shape}, "interior": {{"type": "homogeneous"}}}}, "sky": {{"type": "constant"}}"#
        ))
    }

    fn mesh(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/meshes")
            .join(name);
        format!(r#""type": "obj", "filename": {:?}"#, path.to_string_lossy())
    }

    #[test]
    fn closed_shapes_that_let_no_light_straight_through_are_sealed() {
        let glass = r#""bsdf": {"type": "roughdielectric"}"#;
        assert!(shape(&format!(r#""type": "cube", {glass}"#)));
        assert!(shape(&format!("{}, {glass}", mesh("octahedron.obj"))));
        for (what, open) in [
            (
                "a boundary",
                r#""type": "sphere", "bsdf": {"type": "null"}"#.to_string(),
            ),
            (
                "a sheet of glass",
                r#""type": "sphere", "bsdf": {"type": "thindielectric"}"#.into(),
            ),
            (
                "a mask",
                r#""type": "sphere", "bsdf": {"type": "mask", "opacity": 0.5, "bsdf": {"type": "dielectric"}}"#.into(),
            ),
            ("an open shape", format!(r#""type": "cylinder", {glass}"#)),
            ("an open mesh", format!("{}, {glass}", mesh("panel.obj"))),
            (
                "inside out",
                format!(r#""type": "sphere", "flip_normals": true, {glass}"#),
            ),
            (
                "a mesh inside out",
                format!(
                    r#"{}, "to_world": [{{"scale": [-1, 1, 1]}}], "flip_normals": true, {glass}"#,
                    mesh("octahedron.obj")
                ),
            ),
            (
                "one that shines",
                format!(r#""type": "sphere", {glass}, "emitter": {{"type": "area"}}"#),
            ),
        ] {
            assert!(!shape(&open), "{what}");
        }
    }

    #[test]
    fn lights_inside_and_other_shapes_of_the_medium_open_it() {
        let lamp = |center: [f32; 3]| {
            format!(
                r#", "lamp": {{"type": "sphere", "center": {center:?}, "radius": 0.2, "emitter": {{"type": "area"}}}}"#
            )
        };
        let point = |z: f32| format!(r#", "point": {{"type": "point", "position": [0, 0, {z}]}}"#);
        for (what, expected, more) in [
            ("alone", true, String::new()),
            (
                "a sun",
                true,
                r#", "sun": {"type": "directional", "direction": [0, 0, 1]}"#.into(),
            ),
            ("a lamp beside it", true, lamp([0.0, 2.0, 0.0])),
            ("a lamp inside", false, lamp([0.0, 0.2, 0.0])),
            ("a point beside it", true, point(1.5)),
            ("a point inside", false, point(0.5)),
            (
                "a shape that has it around",
                false,
                r#", "kernel": {"type": "sphere", "radius": 0.2, "exterior": {"type": "ref", "id": "ball.interior"}}"#
                    .into(),
            ),
            (
                "a shape that does not say so",
                true,
                r#", "kernel": {"type": "sphere", "radius": 0.2}"#.into(),
            ),
            (
                "a sensor inside",
                false,
                r#", "eye": {"type": "perspective", "medium": {"type": "ref", "id": "ball.interior"}}"#.into(),
            ),
        ] {
            assert_eq!(ball(&more), expected, "{what}");
        }
    }
}
