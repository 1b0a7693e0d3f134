//! Stanford's `.ply`: text, little or big endian. Elements and properties that a mesh does not need are skipped.

use std::path::Path;

use super::attributes::{Found, find};
use super::{Attribute, Mesh, add_fan, bytes};
use crate::io::{IoError, Result};

type Parsed<T> = std::result::Result<T, String>;

/// Reads a mesh. Polygons become fans.
///
/// Vertices have x y z, perhaps nx ny nz, and perhaps u v (or s t); faces have `vertex_indices` or `vertex_index`.
/// `face_normals` ignores normals, `flip_tex_coords` replaces v by 1 - v.
///
/// # Errors
/// If the file cannot be read, is malformed or truncated, an index has no vertex, a number is not finite, or there is
/// no face.
pub fn read_ply(path: &Path, face_normals: bool, flip_tex_coords: bool) -> Result<Mesh> {
    let mut mesh = parse(&bytes(path)?).map_err(|e| IoError::new(path, e))?;
    if face_normals {
        mesh.normals = Vec::new();
    }
    if flip_tex_coords {
        mesh.uvs.iter_mut().for_each(|uv| uv[1] = 1.0 - uv[1]);
    }
    mesh.check(path)
}

/// Name and size of an attribute in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeHeader {
    /// Including `vertex_` or `face_`.
    pub name: String,
    /// Values of a vertex or a face: one or three.
    pub channels: usize,
    /// Vertices or faces.
    pub count: usize,
}

/// The attributes of a mesh's vertices and faces, by the file's header alone.
///
/// # Errors
/// The file cannot be read or has no proper header.
pub fn read_ply_attributes(path: &Path) -> Result<Vec<AttributeHeader>> {
    let bytes = bytes(path)?;
    let (_, elements) = header(&bytes).map_err(|e| IoError::new(path, e))?;
    let of = |element: &Element| {
        let described = element.attributes().into_iter().map(|found| AttributeHeader {
            name: format!("{}_{}", element.name, found.name),
            channels: found.channels,
            count: element.count as usize,
        });
        described.collect::<Vec<_>>()
    };
    let known = elements.iter().filter(|e| matches!(e.name.as_str(), "vertex" | "face"));
    Ok(known.flat_map(of).collect())
}

/// Names of a vertex's properties, in the order of [`Mesh`]; the last two pairs are alternatives.
const VERTEX: [&str; 12] = [
    "x",
    "y",
    "z",
    "nx",
    "ny",
    "nz",
    "u",
    "v",
    "s",
    "t",
    "texture_u",
    "texture_v",
];

#[derive(Clone, Copy)]
enum Encoding {
    Text,
    Little,
    Big,
}

#[derive(Clone, Copy)]
enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

impl Scalar {
    fn parse(name: &str) -> Parsed<Self> {
        Ok(match name {
            "char" | "int8" => Self::I8,
            "uchar" | "uint8" => Self::U8,
            "short" | "int16" => Self::I16,
            "ushort" | "uint16" => Self::U16,
            "int" | "int32" => Self::I32,
            "uint" | "uint32" => Self::U32,
            "float" | "float32" => Self::F32,
            "double" | "float64" => Self::F64,
            _ => return Err(format!("has a property of type `{name}`, which .ply does not know")),
        })
    }
}

struct Property {
    name: String,
    /// For a list, the type of its length; None for a single value.
    length: Option<Scalar>,
    value: Scalar,
}

struct Element {
    name: String,
    count: u64,
    properties: Vec<Property>,
}

impl Element {
    /// The attributes among its properties. Lists are none.
    fn attributes(&self) -> Vec<Found> {
        let name = |p: &'_ Property| match p.length {
            Some(_) => String::new(),
            None => p.name.clone(),
        };
        let names: Vec<String> = self.properties.iter().map(name).collect();
        find(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The element's attributes, still without values, and for each property the index of the attribute that takes its
    /// values.
    fn collected(&self) -> (Vec<Attribute>, Vec<Option<usize>>) {
        let mut places = vec![None; self.properties.len()];
        let mut attributes = Vec::new();
        for (index, found) in self.attributes().into_iter().enumerate() {
            places[found.first..][..found.channels].fill(Some(index));
            attributes.push(Attribute {
                name: format!("{}_{}", self.name, found.name),
                channels: found.channels,
                values: Vec::new(),
            });
        }
        (attributes, places)
    }
}

fn parse(bytes: &[u8]) -> Parsed<Mesh> {
    let (mut values, elements) = header(bytes)?;
    let mut mesh = Mesh::default();
    for element in &elements {
        match element.name.as_str() {
            "vertex" => vertices(&mut mesh, element, &mut values)?,
            "face" => faces(&mut mesh, element, &mut values)?,
            // Without properties an element takes no bytes, so its count bounds nothing and is ignored.
            _ if element.properties.is_empty() => {}
            _ => {
                for _ in 0..element.count {
                    for property in &element.properties {
                        values.property(property, |_| {})?;
                    }
                }
            }
        }
    }
    Ok(mesh)
}

fn header(bytes: &[u8]) -> Parsed<(Values<'_>, Vec<Element>)> {
    let mut rest = bytes;
    let mut line = || -> Parsed<Vec<&str>> {
        let end = rest.iter().position(|&b| b == b'\n');
        let end = end.ok_or("ends within its header: it is truncated or no .ply file")?;
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        // Only comments may hold characters outside ASCII.
        Ok(std::str::from_utf8(line)
            .unwrap_or("comment")
            .split_ascii_whitespace()
            .collect())
    };
    if !bytes.starts_with(b"ply") || line()? != ["ply"] {
        return Err("is not a .ply file: it does not begin with \"ply\"".into());
    }
    let mut encoding = None;
    let mut elements: Vec<Element> = Vec::new();
    loop {
        match line()?[..] {
            ["end_header"] => break,
            ["format", name, "1.0"] => {
                encoding = Some(match name {
                    "ascii" => Encoding::Text,
                    "binary_little_endian" => Encoding::Little,
                    "binary_big_endian" => Encoding::Big,
                    _ => return Err(format!("has the format `{name}`, which .ply does not know")),
                });
            }
            ["element", name, count] => elements.push(Element {
                name: name.into(),
                count: count
                    .parse()
                    .map_err(|_| format!("has `{count}` {name} elements, expected a number"))?,
                properties: Vec::new(),
            }),
            ["property", ref words @ ..] if !elements.is_empty() => {
                let (length, value, name) = match *words {
                    ["list", length, value, name] => (Some(Scalar::parse(length)?), Scalar::parse(value)?, name),
                    [value, name] => (None, Scalar::parse(value)?, name),
                    _ => {
                        return Err(format!(
                            "has the property `{}`, expected a type and a name",
                            words.join(" ")
                        ));
                    }
                };
                if let Some(element) = elements.last_mut() {
                    element.properties.push(Property {
                        name: name.into(),
                        length,
                        value,
                    });
                }
            }
            [] | ["comment" | "obj_info", ..] => {}
            ref words => {
                return Err(format!("has the line `{}`, which .ply does not know", words.join(" ")));
            }
        }
    }
    let encoding = encoding.ok_or("does not state its format, expected a line such as \"format ascii 1.0\"")?;
    Ok((Values { encoding, rest }, elements))
}

fn vertices(mesh: &mut Mesh, element: &Element, values: &mut Values) -> Parsed<()> {
    let names: Vec<Option<usize>> = element
        .properties
        .iter()
        .map(|p| VERTEX.iter().position(|name| *name == p.name && p.length.is_none()))
        .collect();
    let has = |wanted: std::ops::Range<usize>| wanted.clone().all(|i| names.contains(&Some(i)));
    if !has(0..3) {
        return Err("has vertices without x, y and z".into());
    }
    let uv = [6..8, 8..10, 10..12].into_iter().find(|pair| has(pair.clone()));
    let normals = has(3..6);
    let (mut attributes, places) = element.collected();
    for _ in 0..element.count {
        let mut vertex = [0.0f32; VERTEX.len()];
        for ((property, name), place) in element.properties.iter().zip(&names).zip(&places) {
            values.property(property, |value| {
                if let Some(i) = *name {
                    vertex[i] = value as f32;
                }
                if let Some(i) = *place {
                    attributes[i].values.push(value as f32);
                }
            })?;
        }
        mesh.positions.push([vertex[0], vertex[1], vertex[2]]);
        if normals {
            mesh.normals.push([vertex[3], vertex[4], vertex[5]]);
        }
        if let Some(uv) = &uv {
            mesh.uvs.push([vertex[uv.start], vertex[uv.start + 1]]);
        }
    }
    mesh.attributes.extend(attributes);
    Ok(())
}

fn faces(mesh: &mut Mesh, element: &Element, values: &mut Values) -> Parsed<()> {
    let is_polygon = |p: &Property| p.length.is_some() && matches!(p.name.as_str(), "vertex_indices" | "vertex_index");
    if !element.properties.iter().any(is_polygon) {
        return Err("has faces without a list of vertex_indices".into());
    }
    let mut polygon = Vec::new();
    let (mut attributes, places) = element.collected();
    for _ in 0..element.count {
        polygon.clear();
        let mut bad = None;
        for (property, place) in element.properties.iter().zip(&places) {
            let wanted = is_polygon(property);
            values.property(property, |value| {
                if let Some(i) = *place {
                    attributes[i].values.push(value as f32);
                }
                let index = value as u32;
                if wanted && f64::from(index) == value {
                    polygon.push(index);
                } else if wanted {
                    bad = Some(value);
                }
            })?;
        }
        if let Some(value) = bad {
            return Err(format!("has a face with vertex {value}, expected an index"));
        }
        if polygon.len() < 3 {
            return Err(format!("has a face of {} corners, expected at least 3", polygon.len()));
        }
        add_fan(&mut mesh.triangles, &polygon);
    }
    // Face attributes have one value for each face of the file, not for each triangle that a polygon was split into.
    if mesh.triangles.len() as u64 == element.count {
        mesh.attributes.extend(attributes);
    }
    Ok(())
}

/// The numbers that follow the header.
struct Values<'a> {
    encoding: Encoding,
    rest: &'a [u8],
}

impl Values<'_> {
    /// Calls `each` with the value of a property, or those of a list.
    fn property(&mut self, property: &Property, mut each: impl FnMut(f64)) -> Parsed<()> {
        let Some(length) = property.length else {
            each(self.next(property.value)?);
            return Ok(());
        };
        let length = self.next(length)?;
        if length < 0.0 || length.fract() != 0.0 {
            return Err(format!("has a list `{}` of length {length}", property.name));
        }
        // Every value takes bytes, so that the end of the file ends the loop for any claimed length.
        for _ in 0..length as u64 {
            each(self.next(property.value)?);
        }
        Ok(())
    }

    fn next(&mut self, scalar: Scalar) -> Parsed<f64> {
        match self.encoding {
            Encoding::Text => self.word(scalar),
            Encoding::Little => self.number(scalar, false),
            Encoding::Big => self.number(scalar, true),
        }
    }

    fn word(&mut self, scalar: Scalar) -> Parsed<f64> {
        let text = self.rest.trim_ascii_start();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            return Err(TRUNCATED.into());
        }
        let word = String::from_utf8_lossy(word);
        let number: Option<f64> = word.parse().ok();
        let is_float = matches!(scalar, Scalar::F32 | Scalar::F64);
        number
            .filter(|v| v.is_finite() && (is_float || v.fract() == 0.0))
            .ok_or_else(|| format!("holds `{word}`, expected a number of the type that its header states"))
    }

    fn number(&mut self, scalar: Scalar, big: bool) -> Parsed<f64> {
        macro_rules! read {
            ($ty:ty) => {{
                let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
                self.rest = rest;
                f64::from(if big {
                    <$ty>::from_be_bytes(*bytes)
                } else {
                    <$ty>::from_le_bytes(*bytes)
                })
            }};
        }
        Ok(match scalar {
            Scalar::I8 => read!(i8),
            Scalar::U8 => read!(u8),
            Scalar::I16 => read!(i16),
            Scalar::U16 => read!(u16),
            Scalar::I32 => read!(i32),
            Scalar::U32 => read!(u32),
            Scalar::F32 => read!(f32),
            Scalar::F64 => read!(f64),
        })
    }
}

const TRUNCATED: &str = "ends before the last element that its header promises: it is truncated or damaged";

#[cfg(test)]
mod tests {
    use super::*;

    /// A quad with normals, texture coordinates, a colour and an element that no mesh has.
    fn example(format: &str) -> Vec<u8> {
        let mut bytes = format!(
            "ply\nformat {format} 1.0\ncomment \u{e4}\nelement vertex 4\nproperty float x\nproperty double y\n\
             property float z\nproperty uchar red\nproperty float nx\nproperty float ny\nproperty float nz\n\
             property float s\nproperty float t\nelement edge 1\nproperty list uchar short ends\n\
             element face 1\nproperty int tag\nproperty list uchar uint vertex_indices\nend_header\n"
        )
        .into_bytes();
        let mut put = |value: f64, kind: char| match (format, kind) {
            ("ascii", _) => bytes.extend(format!("{value} ").bytes()),
            ("binary_little_endian", 'f') => bytes.extend((value as f32).to_le_bytes()),
            ("binary_little_endian", 'd') => bytes.extend(value.to_le_bytes()),
            ("binary_little_endian", 's') => bytes.extend((value as i16).to_le_bytes()),
            ("binary_little_endian", 'i') => bytes.extend((value as i32).to_le_bytes()),
            (_, 'f') => bytes.extend((value as f32).to_be_bytes()),
            (_, 'd') => bytes.extend(value.to_be_bytes()),
            (_, 's') => bytes.extend((value as i16).to_be_bytes()),
            (_, 'i') => bytes.extend((value as i32).to_be_bytes()),
            (_, _) => bytes.push(value as u8),
        };
        for (x, y) in [(0.0, 0.0), (1.0, 0.0), (1.0, 1.5), (0.0, 1.5)] {
            let vertex = [x, y, 0.25, 200.0, 0.0, 0.0, 1.0, x, y / 6.0];
            vertex
                .iter()
                .zip("fdfbfffff".chars())
                .for_each(|(v, kind)| put(*v, kind));
        }
        let rest = [2.0, -1.0, 3.0, -7.0, 4.0, 0.0, 1.0, 2.0, 3.0];
        rest.iter().zip("bssibiiii".chars()).for_each(|(v, kind)| put(*v, kind));
        bytes
    }

    fn read(bytes: &[u8], face_normals: bool, flip: bool) -> Result<Mesh> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.ply");
        std::fs::write(&path, bytes).expect("writable");
        read_ply(&path, face_normals, flip)
    }

    #[test]
    fn all_encodings_give_the_same_mesh() {
        for format in ["ascii", "binary_little_endian", "binary_big_endian"] {
            let mesh = read(&example(format), false, false).expect("a mesh");
            let positions = [[0.0, 0.0, 0.25], [1.0, 0.0, 0.25], [1.0, 1.5, 0.25], [0.0, 1.5, 0.25]];
            assert_eq!(mesh.positions, positions, "{format}");
            assert_eq!(mesh.normals, [[0.0, 0.0, 1.0]; 4]);
            assert_eq!(mesh.uvs, [[0.0, 0.0], [1.0, 0.0], [1.0, 0.25], [0.0, 0.25]]);
            assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
            let mesh = read(&example(format), true, true).expect("a mesh");
            assert!(mesh.normals.is_empty());
            assert_eq!(mesh.uvs[2], [1.0, 0.75]);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let with = |from: &str, to: &str| String::from_utf8(example("ascii")).expect("text").replacen(from, to, 1);
        for (text, expected) in [
            (with("ply", "plx"), "does not begin"),
            (with("ascii", "text"), "format `text`"),
            (with("double y", "long y"), "type `long`"),
            (with("double y", "double w"), "without x, y and z"),
            (with("vertex_indices", "corners"), "without a list of vertex_indices"),
            (with("vertex 4", "vertex 3"), "expected a number of the type"),
            (with("face 1", "face 18446744073709551615"), "truncated"),
            (with("face 1", "face 0"), "no faces"),
            (with("-7 4 0 1 2 3", "-7 4 0 1 2 4"), "vertex 4, expected less than 4"),
            (with("-7 4 0 1 2 3", "-7 4 0 1 2 -3"), "vertex -3, expected an index"),
            (with("-7 4 0 1 2 3", "-7 2 0 1"), "2 corners"),
            (with("0.25", "nan"), "`nan`"),
        ] {
            let error = read(text.as_bytes(), false, false).expect_err(expected).to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        let mut bytes = example("binary_little_endian");
        let data = bytes.windows(11).position(|w| w == b"end_header\n").expect("a header") + 11;
        bytes[data..data + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        let error = read(&bytes, false, false).expect_err("not a number").to_string();
        assert!(error.contains("position of vertex 0 holds NaN"), "{error}");
    }

    /// An ASCII file of two triangles whose vertices have x, y, z and these properties: 100 v + i is property i of
    /// vertex v.
    fn with_properties(names: &[&str]) -> Mesh {
        let mut text = String::from("ply\nformat ascii 1.0\nelement vertex 4\n");
        for name in ["x", "y", "z"].iter().chain(names) {
            text += &format!("property float {name}\n");
        }
        text += "element face 2\nproperty list uchar int vertex_index\nend_header\n";
        for vertex in 0..4 {
            let numbers = (0..3 + names.len()).map(|i| (100 * vertex + i).to_string());
            text += &(numbers.collect::<Vec<_>>().join(" ") + "\n");
        }
        read((text + "3 0 1 2\n3 2 1 3\n").as_bytes(), false, false).expect("a mesh")
    }

    /// Texture coordinates and normals are read only if all their components are present, under any of their names.
    #[test]
    fn properties_count_when_they_are_complete() {
        for pair in [["u", "v"], ["s", "t"], ["texture_u", "texture_v"]] {
            let mesh = with_properties(&pair);
            assert_eq!(mesh.positions[..2], [[0.0, 1.0, 2.0], [100.0, 101.0, 102.0]]);
            assert_eq!(
                mesh.uvs,
                [[3.0, 4.0], [103.0, 104.0], [203.0, 204.0], [303.0, 304.0]],
                "{pair:?}"
            );
            assert_eq!(mesh.triangles, [[0, 1, 2], [2, 1, 3]]);
            for one in pair {
                assert!(with_properties(&[one]).uvs.is_empty(), "{one}");
            }
        }
        assert!(with_properties(&["v", "s", "t_", "texture_u"]).uvs.is_empty());
        let mesh = with_properties(&["nx", "ny", "nz"]);
        assert_eq!(mesh.normals[1], [103.0, 104.0, 105.0]);
        for some in [["nx", "ny"], ["ny", "nz"], ["nx", "nz"]] {
            assert!(with_properties(&some).normals.is_empty(), "{some:?}");
        }
    }

    #[test]
    fn vertices_need_all_coordinates_and_lists_a_length() {
        let text = |coordinates: &str, length: &str| {
            let lines = coordinates.split(' ').map(|name| format!("property float {name}\n"));
            let head = lines.collect::<String>();
            format!(
                "ply\nformat ascii 1.0\nelement vertex 3\n{head}element face 1\nproperty list char int vertex_index\n\
                 end_header\n0 0 0 1 0 0 0 1 0 {length} 0 1 2\n"
            )
        };
        assert!(read(text("x y z", "3").as_bytes(), false, false).is_ok());
        for missing in ["w y z", "x w z", "x y w"] {
            let error = read(text(missing, "3").as_bytes(), false, false)
                .expect_err("no place")
                .to_string();
            assert!(error.contains("without x, y and z"), "{missing}: {error}");
        }
        let error = read(text("x y z", "-1").as_bytes(), false, false)
            .expect_err("no length")
            .to_string();
        assert!(error.contains("has a list `vertex_index` of length -1"), "{error}");
    }
}
