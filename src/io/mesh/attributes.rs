//! Attributes: further values of a mesh's vertices and faces, such as colours.

/// Values of all vertices of a mesh, or of all its faces.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// As in Mitsuba: `vertex_` or `face_`, then the name in the file.
    pub name: String,
    /// Values of a vertex or a face: one or three.
    pub channels: usize,
    pub values: Vec<f32>,
}

/// Where an attribute stands among an element's properties.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Without `vertex_` or `face_`.
    pub name: String,
    /// Index of its first property; `channels` is the number of its properties.
    pub first: usize,
    pub channels: usize,
}

/// The attributes among properties of these names, by Mitsuba's rule: `r`, `g`, `b` (or `red`, `green`, `blue`) form the
/// attribute `color`; a property whose name ends in `_` and one of `x`, `y`, `z`, `r`, `g`, `b` or a digit is a
/// component of the attribute named before that `_`. An attribute has one or three consecutive properties; others are
/// ignored.
pub(super) fn find(names: &[&str]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for colors in [["r", "g", "b"], ["red", "green", "blue"]] {
        if let Some(first) = names.windows(3).position(|three| three == colors) {
            let name = "color".to_owned();
            found.push(Found {
                name,
                first,
                channels: 3,
            });
        }
    }
    for (i, name) in names.iter().enumerate() {
        let Some((stem, _)) = name
            .rsplit_once('_')
            .filter(|(stem, end)| is_component(end) && !stem.is_empty())
        else {
            continue;
        };
        match found.last_mut() {
            Some(last) if last.name == stem && last.first + last.channels == i => last.channels += 1,
            _ => found.push(Found {
                name: stem.to_owned(),
                first: i,
                channels: 1,
            }),
        }
    }
    found.retain(|attribute| matches!(attribute.channels, 1 | 3));
    found
}

fn is_component(end: &str) -> bool {
    matches!(end, "x" | "y" | "z" | "r" | "g" | "b") || end.len() == 1 && end.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_grouped_by_what_stands_before_their_last_underscore() {
        let of = |names: &[&str]| -> Vec<(String, usize, usize)> {
            let found = find(names).into_iter();
            found.map(|a| (a.name, a.first, a.channels)).collect()
        };
        let one = |name: &str, first, channels| vec![(name.to_owned(), first, channels)];
        assert_eq!(of(&["x", "y", "z", "r", "g", "b"]), one("color", 3, 3));
        assert_eq!(of(&["red", "green", "blue", "alpha"]), one("color", 0, 3));
        assert_eq!(of(&["rough"]), []);
        assert_eq!(of(&["rough_0"]), one("rough", 0, 1));
        assert_eq!(of(&["texture_u", "a_x", "a_y", "a_z"]), one("a", 1, 3));
        assert_eq!(of(&["a_0", "a_1", "b_0"]), one("b", 2, 1));
        assert_eq!(
            of(&["a_foo", "_0", "my_name_0", "my_name_1", "my_name_2"]),
            one("my_name", 2, 3)
        );
        let two = [one("a", 0, 1), one("a", 2, 1)].concat();
        assert_eq!(of(&["a_0", "other", "a_1"]), two);
    }
}
