//! What precedes a grid's tree: file header, list of grids, metadata and transform.

use super::stream::{Parsed, Stream};

pub(super) const MAGIC: [u8; 8] = [0x20, 0x42, 0x44, 0x56, 0, 0, 0, 0];
const VERSIONS: std::ops::RangeInclusive<u32> = 222..=224;
const FLOAT_GRID: &str = "Tree_float_5_4_3";
pub(super) const AS_HALF: &str = "_HalfFloat";

/// Separates a grid's name from the number that distinguishes grids of equal names.
const NAME_SEPARATOR: char = '\x1e';

/// The grid to be read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Values were saved as half.
    pub(super) half: bool,
    /// OpenVDB's flags: how values are compressed.
    pub(super) compression: u32,
    /// World coordinates are `scale` × voxel + `translation`.
    pub(super) scale: [f64; 3],
    pub(super) translation: [f64; 3],
    /// Position of the tree in the file.
    pub(super) tree_at: u64,
}

/// A grid in the file's list.
struct Listed {
    name: String,
    kind: String,
    instance_of: String,
    at: u64,
}

/// Reads up to the tree of the chosen grid.
pub(super) fn open(stream: &mut Stream) -> Parsed<Entry> {
    if stream.array::<8>().ok() != Some(MAGIC) {
        return Err("is not an OpenVDB file: it does not begin with \" BDV\"".into());
    }
    let version = stream.u32()?;
    if !VERSIONS.contains(&version) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        return Err(format!(
            "has OpenVDB's file version {version}, expected {first} to {last}; write it again with a newer OpenVDB"
        ));
    }
    // Version of the library that wrote the file.
    stream.skip(8)?;
    if stream.u8()? == 0 {
        return Err("was written to a stream, without places of its grids; write it to a file".into());
    }
    // A random unique identifier (UUID).
    stream.skip(36)?;
    metadata(stream)?;
    let Listed { name, kind, at, .. } = choose(list(stream)?)?;
    stream.seek(at)?;
    let compression = stream.u32()?;
    let class = metadata(stream)?;
    if class == "level set" {
        return Err(format!(
            "has the grid `{name}` of class `level set`, expected a fog volume; convert it with OpenVDB's \
             sdfToFogVolume"
        ));
    }
    let (scale, translation) = transform(stream)?;
    if scale.iter().any(|s| !(s.is_finite() && *s > 0.0)) || translation.iter().any(|t| !t.is_finite()) {
        return Err(format!(
            "has voxels of size {scale:?} and the translation {translation:?}, expected positive and finite numbers"
        ));
    }
    Ok(Entry {
        name,
        half: kind.ends_with(AS_HALF),
        compression,
        scale,
        translation,
        tree_at: stream.at(),
    })
}

/// Skips metadata and returns the text of `class`, if present.
fn metadata(stream: &mut Stream) -> Parsed<String> {
    let mut class = String::new();
    for _ in 0..stream.u32()? {
        let (name, kind) = (stream.text()?, stream.text()?);
        if name == "class" && kind == "string" {
            class = stream.text()?;
        } else {
            let size = stream.u32()?;
            stream.skip(u64::from(size))?;
        }
    }
    Ok(class)
}

fn list(stream: &mut Stream) -> Parsed<Vec<Listed>> {
    let mut grids = Vec::new();
    for _ in 0..stream.u32()? {
        let [unique, kind, instance_of] = [stream.text()?, stream.text()?, stream.text()?];
        let [at, _blocks_at, end] = [stream.i64()?, stream.i64()?, stream.i64()?];
        let name = unique.split(NAME_SEPARATOR).next().unwrap_or_default().to_owned();
        // Offsets that go backwards would loop forever.
        let (Ok(at), Some(end)) = (u64::try_from(at), u64::try_from(end).ok().filter(|e| *e >= stream.at())) else {
            return Err(format!(
                "claims that the grid `{name}` lies at byte {at} to {end}: it is damaged"
            ));
        };
        grids.push(Listed {
            name,
            kind,
            instance_of,
            at,
        });
        stream.seek(end)?;
    }
    Ok(grids)
}

/// The float grid named `density`, or else the only one.
fn choose(mut grids: Vec<Listed>) -> Parsed<Listed> {
    let found: Vec<String> = grids.iter().map(|g| format!("`{}` ({})", g.name, g.kind)).collect();
    let found = if found.is_empty() {
        "no grids".into()
    } else {
        found.join(", ")
    };
    grids.retain(|g| g.kind.strip_suffix(AS_HALF).unwrap_or(&g.kind) == FLOAT_GRID);
    let chosen = match grids.iter().position(|g| g.name == "density") {
        Some(density) => grids.swap_remove(density),
        None if grids.len() > 1 => return Err(format!("holds {found}, expected one of them to be called `density`")),
        None => grids
            .pop()
            .ok_or_else(|| format!("holds {found}, expected a grid of floats ({FLOAT_GRID})"))?,
    };
    if !chosen.instance_of.is_empty() {
        return Err(format!(
            "has the grid `{}` as an instance of `{}`, expected a grid with a tree of its own",
            chosen.name, chosen.instance_of
        ));
    }
    Ok(chosen)
}

/// Scale and translation of the map from voxels to the world.
fn transform(stream: &mut Stream) -> Parsed<([f64; 3], [f64; 3])> {
    // The inverses stored after a scale are redundant.
    const DERIVED: u64 = 4 * 24;
    let kind = stream.text()?;
    match kind.as_str() {
        "UniformScaleMap" | "ScaleMap" => {
            let scale = stream.f64s()?;
            stream.skip(DERIVED)?;
            Ok((scale, [0.0; 3]))
        }
        "TranslationMap" => Ok(([1.0; 3], stream.f64s()?)),
        "UniformScaleTranslateMap" | "ScaleTranslateMap" => {
            let (translation, scale) = (stream.f64s()?, stream.f64s()?);
            stream.skip(DERIVED)?;
            Ok((scale, translation))
        }
        // Rows are the images of the axes; the last one is the translation.
        "AffineMap" => {
            let m = stream.f64s::<16>()?;
            if [1, 2, 3, 4, 6, 7, 8, 9, 11].iter().any(|&i| m[i] != 0.0) || m[15] != 1.0 {
                return Err(
                    "has a transform that rotates or shears, expected a scale and a translation; resample the grid, \
                     and place it in the scene by its `to_world`"
                        .into(),
                );
            }
            Ok(([m[0], m[5], m[10]], [m[12], m[13], m[14]]))
        }
        _ => Err(format!(
            "has a transform of type `{kind}`, expected a scale and a translation; resample the grid"
        )),
    }
}
