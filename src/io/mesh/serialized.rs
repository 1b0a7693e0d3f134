//! Mitsuba's `.serialized`: meshes one after the other, each compressed, and a table of where they begin.

use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::ZlibDecoder;

use super::{Mesh, bytes};
use crate::io::{IoError, Result};

type Parsed<T> = std::result::Result<T, String>;

const MAGIC: u16 = 0x041c;

/// The longest name of a mesh in bytes.
const MAX_NAME: usize = 1 << 16;

/// Bytes that one of the file may become, which those of meshes do not; and a number of them that no file is refused for.
const MOST_INFLATED: u64 = 64;
const LEAST_LIMIT: u64 = 16 << 20;

/// Bits of a mesh's flags.
mod flag {
    pub(super) const NORMALS: u32 = 0x0001;
    pub(super) const UVS: u32 = 0x0002;
    pub(super) const COLORS: u32 = 0x0008;
    pub(super) const FACE_NORMALS: u32 = 0x0010;
    pub(super) const DOUBLE: u32 = 0x2000;
}

/// Reads the mesh number `index` of a file of version 3 or 4. `face_normals` discards vertex normals; meshes that are
/// flagged to use face normals get vertex normals of zero.
///
/// # Errors
/// If the file cannot be read, is malformed or truncated, has no such mesh, an index has no vertex, a number is not
/// finite, or there is no face.
pub fn read_serialized(path: &Path, index: u32, face_normals: bool) -> Result<Mesh> {
    let mut mesh = parse(&bytes(path)?, index).map_err(|e| IoError::new(path, e))?;
    if face_normals {
        mesh.normals = Vec::new();
    }
    mesh.check(path)
}

fn parse(bytes: &[u8], index: u32) -> Parsed<Mesh> {
    let version = version(bytes)?;
    let start = usize::try_from(offset(bytes, version, index)?).unwrap_or(usize::MAX);
    let rest = bytes.get(start..);
    let rest = rest.ok_or_else(|| format!("lists mesh {index} beyond its own end"))?;
    let version = self::version(rest)?;
    let most = (rest.len() as u64).saturating_mul(MOST_INFLATED).max(LEAST_LIMIT);
    let mut stream = Stream(BufReader::new(ZlibDecoder::new(&rest[4..]).take(most)));
    let flags = u32::from_le_bytes(stream.array()?);
    if version == 4 {
        // The name, which ends with a zero.
        let mut length = 0;
        while stream.array::<1>()? != [0] {
            length += 1;
            if length > MAX_NAME {
                return Err(format!(
                    "has a mesh whose name is longer than {MAX_NAME} bytes: it is damaged"
                ));
            }
        }
    }
    let vertices = u64::from_le_bytes(stream.array()?);
    let triangles = u64::from_le_bytes(stream.array()?);
    if vertices > u64::from(u32::MAX) {
        return Err(format!("has {vertices} vertices, expected at most {}", u32::MAX));
    }
    let double = flags & flag::DOUBLE != 0;
    let mut mesh = Mesh {
        positions: stream.vectors(vertices, double)?,
        ..Mesh::default()
    };
    if flags & flag::NORMALS != 0 {
        mesh.normals = stream.vectors(vertices, double)?;
    }
    if flags & flag::UVS != 0 {
        mesh.uvs = stream.vectors(vertices, double)?;
    }
    if flags & flag::COLORS != 0 {
        stream.vectors::<3>(vertices, double)?;
    }
    for _ in 0..triangles {
        let [a, b, c] = [stream.array()?, stream.array()?, stream.array()?];
        mesh.triangles.push([a, b, c].map(u32::from_le_bytes));
    }
    if flags & flag::FACE_NORMALS != 0 {
        mesh.normals = vec![[0.0; 3]; mesh.positions.len()];
    }
    Ok(mesh)
}

/// The version that a file or a mesh states.
fn version(bytes: &[u8]) -> Parsed<u16> {
    let words = bytes.first_chunk::<4>().ok_or(TRUNCATED)?;
    let [magic, version] = [[words[0], words[1]], [words[2], words[3]]].map(u16::from_le_bytes);
    match (magic, version) {
        (MAGIC, 3 | 4) => Ok(version),
        (MAGIC, other) => Err(format!("is of version {other} of .serialized, expected 3 or 4")),
        _ => Err("is not a .serialized file: it does not begin with the bytes 1c 04".into()),
    }
}

/// Where mesh `index` begins: the file ends with a list of offsets and their number.
fn offset(bytes: &[u8], version: u16, index: u32) -> Parsed<u64> {
    let (list, count) = bytes.split_last_chunk::<4>().ok_or(TRUNCATED)?;
    let count = u32::from_le_bytes(*count);
    if index >= count {
        return Err(format!(
            "has {count} meshes, expected one with the `shape_index` {index}"
        ));
    }
    let width = if version == 4 { 8 } else { 4 };
    let back = (u64::from(count - index) * width) as usize;
    let entry = list.len().checked_sub(back).map(|at| &list[at..]).ok_or(TRUNCATED)?;
    Ok(match version {
        4 => u64::from_le_bytes(*entry.first_chunk().ok_or(TRUNCATED)?),
        _ => u32::from_le_bytes(*entry.first_chunk().ok_or(TRUNCATED)?).into(),
    })
}

/// The numbers of a mesh. Memory grows with the numbers in the file, not with the claimed counts, and is limited by its length.
struct Stream<R>(R);

impl<R: Read> Stream<R> {
    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).map_err(|_| TRUNCATED.to_string())?;
        Ok(bytes)
    }

    fn vectors<const N: usize>(&mut self, count: u64, double: bool) -> Parsed<Vec<[f32; N]>> {
        let mut vectors = Vec::new();
        for _ in 0..count {
            let mut vector = [0.0; N];
            for number in &mut vector {
                *number = match double {
                    true => f64::from_le_bytes(self.array()?) as f32,
                    false => f32::from_le_bytes(self.array()?),
                };
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }
}

const TRUNCATED: &str =
    "ends before the last mesh that it promises, or is compressed as no mesh is: it is truncated or damaged";

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A mesh of one triangle whose first corner lies at `x`, without the list of offsets.
    fn mesh(version: u16, flags: u32, x: f64) -> Vec<u8> {
        let mut plain = flags.to_le_bytes().to_vec();
        if version == 4 {
            plain.extend(b"a name\0");
        }
        plain.extend(3u64.to_le_bytes());
        plain.extend(1u64.to_le_bytes());
        let mut put = |value: f64| match flags & flag::DOUBLE {
            0 => plain.extend((value as f32).to_le_bytes()),
            _ => plain.extend(value.to_le_bytes()),
        };
        [x, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5]
            .into_iter()
            .for_each(&mut put);
        if flags & flag::NORMALS != 0 {
            [0.0, 0.0, 1.0].repeat(3).into_iter().for_each(&mut put);
        }
        if flags & flag::UVS != 0 {
            [0.0, 0.25, 1.0, 0.5, 0.0, 0.75].into_iter().for_each(&mut put);
        }
        if flags & flag::COLORS != 0 {
            [0.5; 9].into_iter().for_each(&mut put);
        }
        [0u32, 1, 2].iter().for_each(|v| plain.extend(v.to_le_bytes()));
        let mut bytes = [MAGIC.to_le_bytes(), version.to_le_bytes()].concat();
        let mut encoder = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::fast());
        encoder.write_all(&plain).expect("to memory");
        encoder.finish().expect("to memory");
        bytes
    }

    /// A file of meshes, all of one version.
    fn file(version: u16, meshes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = meshes.concat();
        let mut at = 0u64;
        for mesh in meshes {
            match version {
                4 => bytes.extend(at.to_le_bytes()),
                _ => bytes.extend((at as u32).to_le_bytes()),
            }
            at += mesh.len() as u64;
        }
        bytes.extend((meshes.len() as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn meshes_of_both_versions_are_read() {
        for version in [3, 4] {
            let all = flag::NORMALS | flag::UVS | flag::COLORS;
            let meshes = [0x1000, 0x1000 | all, flag::DOUBLE | all | flag::FACE_NORMALS];
            let meshes: Vec<Vec<u8>> = meshes
                .iter()
                .zip([5.0, 6.0, 7.0])
                .map(|(f, x)| mesh(version, *f, x))
                .collect();
            let bytes = file(version, &meshes);
            let read = |index| parse(&bytes, index).expect("a mesh");
            for (index, x) in [5.0, 6.0, 7.0].into_iter().enumerate() {
                let mesh = read(index as u32);
                assert_eq!(
                    mesh.positions,
                    [[x, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]],
                    "{version}"
                );
                assert_eq!(mesh.triangles, [[0, 1, 2]]);
            }
            assert!(read(0).normals.is_empty() && read(0).uvs.is_empty());
            assert_eq!(read(1).normals, [[0.0, 0.0, 1.0]; 3]);
            assert_eq!(read(1).uvs, [[0.0, 0.25], [1.0, 0.5], [0.0, 0.75]]);
            assert_eq!(read(2).normals, [[0.0; 3]; 3], "its faces' own");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let good = file(4, &[mesh(4, 0x1000, 0.0)]);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        // A mesh of a few kilobytes that claims to become a gigabyte, and a name without an end.
        let packed = |plain: Vec<u8>| {
            let mut bytes = [MAGIC.to_le_bytes(), 4u16.to_le_bytes()].concat();
            let mut encoder = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::best());
            encoder.write_all(&plain).expect("to memory");
            encoder.finish().expect("to memory");
            file(4, &[bytes])
        };
        let claims = [
            &0x1000u32.to_le_bytes()[..],
            b"a\0",
            &3u64.to_le_bytes(),
            &(1u64 << 26).to_le_bytes(),
        ]
        .concat();
        let endless = [&0x1000u32.to_le_bytes()[..], &[b'a'; 100_000]].concat();
        for (bytes, index, expected) in [
            (
                packed([claims, vec![0; 32 << 20]].concat()),
                0,
                "is compressed as no mesh is",
            ),
            (packed(endless), 0, "name is longer than 65536 bytes"),
            (with(0, 0), 0, "does not begin"),
            (with(2, 5), 0, "version 5"),
            (good.clone(), 1, "has 1 meshes"),
            (with(good.len() - 12, 255), 0, "beyond its own end"),
            (with(good.len() - 5, 255), 0, "beyond its own end"),
            (good[..3].to_vec(), 0, "truncated"),
            (with(12, good[12] ^ 255), 0, "truncated or damaged"),
            (Vec::new(), 0, "truncated"),
        ] {
            let found = parse(&bytes, index).expect_err(expected);
            assert!(found.contains(expected), "{expected}: {found}");
        }
    }
}
