//! Shapes that are shown at several places: `shapegroup` and `instance`.

use super::medium::Media;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Group, Instance, shape, transform};

/// The type of a group.
pub(super) const GROUP: &str = "shapegroup";
/// The type of an object that shows a group in the world.
pub(super) const INSTANCE: &str = "instance";

/// The groups of a scene, each read once, where it is first defined or referred to.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) list: Vec<Group>,
}

impl Groups {
    /// The index of the group at `value`, references resolved.
    pub(super) fn read(&mut self, value: &Value<'_>, media: &mut Media) -> Option<usize> {
        let target = value.resolve()?;
        if let Some(known) = self.list.iter().position(|group| group.path == target.path) {
            return Some(known);
        }
        let mut object = target.plugin(Class::Shape)?;
        let shapes = object.nested_all(Class::Shape);
        if shapes.is_empty() {
            object.error("the `shapegroup` is empty", "put at least one shape into it");
        }
        object.finish();
        let mut surfaces = Vec::new();
        for (key, value) in shapes {
            if matches!(kind(&value), Some(GROUP | INSTANCE)) {
                let what = "a group of shapes in a `shapegroup`";
                value.error(what, "groups hold shapes alone, and no other groups or instances");
                continue;
            }
            let Some(surface) = shape::read(&value, &format!("{}.{key}", target.path), media) else {
                continue;
            };
            let measured = value
                .plugin(Class::Shape)
                .is_some_and(|mut shape| !shape.nested_all(Class::Sensor).is_empty());
            let deeds = [
                (surface.emitter.is_some(), "shines"),
                (surface.interior.or(surface.exterior).is_some(), "bounds a medium"),
                (measured, "holds a sensor"),
                (surface.displacement.is_some(), "is displaced"),
            ];
            for (_, deed) in deeds.into_iter().filter(|(does, _)| *does) {
                let what = format!("a shape of a `shapegroup` {deed}");
                value.error(what, "only shapes outside of groups can");
            }
            surfaces.push(surface);
        }
        self.list.push(Group {
            path: target.path.clone(),
            surfaces,
        });
        Some(self.list.len() - 1)
    }

    /// The instance called `name`.
    pub(super) fn instance(&mut self, value: &Value<'_>, name: &str, media: &mut Media) -> Option<Instance> {
        let mut object = value.plugin(Class::Shape)?;
        let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
        let shown = object.nested_named(Class::Shape);
        let group = match &shown {
            Some((_, value)) if kind(value) == Some(GROUP) => self.read(value, media),
            Some((_, value)) => {
                value.error("an `instance` of something else", "it shows a `shapegroup`");
                None
            }
            None => {
                object.error(
                    "the `instance` shows nothing",
                    "name a `shapegroup` in it, by a reference",
                );
                None
            }
        };
        object.finish();
        Some(Instance {
            name: name.to_string(),
            group: group?,
            to_world,
        })
    }
}

/// The type of the object at `value`, references resolved.
fn kind<'a>(value: &Value<'a>) -> Option<&'a str> {
    value.resolve().and_then(|target| target.type_name())
}
