//! Writes OpenVDB files of version 224: fog volumes of one or three floats, whole or half, each array packed by zlib.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use glam::{DAffine3, DMat3, DVec3};
use half::f16;

use super::archive::{AS_HALF, MAGIC};
use super::tree::{LEAF_EDGE, LEAF_MASK, LEAF_VOXELS, LEVELS};
use super::values::{ACTIVE_ONLY, ZIP, inactive};
use crate::io::{IoError, Result, atomic};

/// Version of the file format, and of the OpenVDB library that writes such files.
const VERSION: [u32; 3] = [224, 12, 0];

/// A grid to be written.
#[derive(Debug, Clone, Copy)]
pub struct Volume<'a> {
    pub name: &'a str,
    /// Texels along x, y, z.
    pub size: [usize; 3],
    /// One or three.
    pub channels: usize,
    /// `[z][y][x][channel]`.
    pub data: &'a [f32],
    /// Map from the unit cube, which the texels fill, to the world.
    pub to_world: DAffine3,
}

/// Writes volumes, as half floats if `half`. Texels that are not zero are active voxels, as are the grid's eight corners,
/// which preserve its bounding box; all others have the background value zero.
///
/// # Errors
/// A volume has other than one or three channels, or more than 2³⁰ texels along an axis; the file cannot be written.
///
/// # Panics
/// A volume's `data` does not have one value for each texel and channel.
pub fn write(path: &Path, volumes: &[Volume<'_>], half: bool) -> Result<()> {
    for volume in volumes {
        let name = volume.name;
        if !matches!(volume.channels, 1 | 3) {
            let message = format!(
                "cannot hold `{name}`, which has {} channels; expected 1 or 3",
                volume.channels
            );
            return Err(IoError::new(path, message));
        }
        if volume.size.iter().any(|n| *n > 1 << 30) {
            return Err(IoError::new(path, format!("cannot hold `{name}`: it is too long")));
        }
        assert_eq!(
            volume.data.len(),
            volume.channels * volume.size.iter().product::<usize>()
        );
    }
    let mut body = Vec::new();
    // A position in the file is the position in the body plus the header's length.
    let header = header(volumes.len());
    for volume in volumes {
        let writer = Writer { volume, half };
        writer.grid(&mut body, header.len());
    }
    atomic::write(path, |out| {
        out.write_all(&with_mark(&header, &body))?;
        out.write_all(&body)
    })
}

/// The usual name in other programs of a parameter's grid: the last name of its path, but `density` for an extinction.
pub fn usual_name(path: &str) -> &str {
    match path.rsplit('.').next().unwrap_or(path) {
        "sigma_t" => "density",
        name => name,
    }
}

/// Bytes of the identifier, and where it stands.
const MARK: usize = 36;
const MARK_AT: usize = 8 + 12 + 1;

fn header(grids: usize) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    VERSION.iter().for_each(|word| out.extend(word.to_le_bytes()));
    // The file states the offsets of its grids.
    out.push(1);
    out.extend([b'0'; MARK]);
    // No metadata of the file.
    out.extend(0u32.to_le_bytes());
    out.extend((grids as u32).to_le_bytes());
    out
}

/// The header with an identifier (UUID) that follows from the contents, so that the same grids give the same bytes.
fn with_mark(header: &[u8], body: &[u8]) -> Vec<u8> {
    // FNV-1a of 128 bits.
    let fold = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    let hash = body.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, fold);
    let digits = format!("{hash:032x}");
    // UUID version 8: custom contents.
    let mark = format!(
        "{}-{}-8{}-8{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[13..16],
        &digits[17..20],
        &digits[20..]
    );
    let mut out = header.to_vec();
    out[MARK_AT..MARK_AT + MARK].copy_from_slice(mark.as_bytes());
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A node's topology, and the voxels of the leaves under it.
struct Node {
    topology: Vec<u8>,
    voxels: Vec<u8>,
}

struct Writer<'a> {
    volume: &'a Volume<'a>,
    half: bool,
}

impl Writer<'_> {
    /// A grid with its entry in the list; the body begins at byte `first` of the file.
    fn grid(&self, body: &mut Vec<u8>, first: usize) {
        let kind = match self.volume.channels {
            1 => "Tree_float_5_4_3",
            _ => "Tree_vec3s_5_4_3",
        };
        text(body, self.volume.name);
        text(body, &format!("{kind}{}", if self.half { AS_HALF } else { "" }));
        text(body, "");
        let places = body.len();
        body.extend([0; 24]);
        let begins = first + body.len();
        body.extend((ZIP | ACTIVE_ONLY).to_le_bytes());
        self.metadata(body);
        self.transform(body);
        // One buffer a leaf, and the background.
        body.extend(1u32.to_le_bytes());
        body.extend(vec![0; 4 * self.volume.channels]);
        let Node { topology, voxels } = self.root();
        body.extend(topology);
        let voxels_at = first + body.len();
        body.extend(voxels);
        let ends = first + body.len();
        for (i, place) in [begins, voxels_at, ends].into_iter().enumerate() {
            body[places + 8 * i..places + 8 * i + 8].copy_from_slice(&(place as i64).to_le_bytes());
        }
    }

    fn metadata(&self, body: &mut Vec<u8>) {
        body.extend(3u32.to_le_bytes());
        for (name, value) in [("class", "fog volume"), ("name", self.volume.name)] {
            text(body, name);
            text(body, "string");
            text(body, value);
        }
        text(body, "is_saved_as_half_float");
        text(body, "bool");
        body.extend(1u32.to_le_bytes());
        body.push(u8::from(self.half));
    }

    /// Writes the map from voxels to the world. OpenVDB places values at integer coordinates, which are the texels'
    /// centres.
    fn transform(&self, body: &mut Vec<u8>) {
        let n = DVec3::from_array(self.volume.size.map(|n| n as f64));
        let to_unit = DAffine3::from_scale(1.0 / n) * DAffine3::from_translation(DVec3::splat(0.5));
        let map = self.volume.to_world * to_unit;
        let m = map.matrix3;
        let scale = DVec3::new(m.x_axis.x, m.y_axis.y, m.z_axis.z);
        if m != DMat3::from_diagonal(scale) || scale.cmple(DVec3::ZERO).any() {
            let row = |v: DVec3, w: f64| [v.x, v.y, v.z, w];
            text(body, "AffineMap");
            let rows = [
                row(m.x_axis, 0.0),
                row(m.y_axis, 0.0),
                row(m.z_axis, 0.0),
                row(map.translation, 1.0),
            ];
            body.extend(rows.as_flattened().iter().flat_map(|v| v.to_le_bytes()));
            return;
        }
        let is_cubic = scale.x == scale.y && scale.y == scale.z;
        text(
            body,
            if is_cubic {
                "UniformScaleTranslateMap"
            } else {
                "ScaleTranslateMap"
            },
        );
        let mut put = |values: DVec3| body.extend(values.to_array().iter().flat_map(|v| v.to_le_bytes()));
        put(map.translation);
        put(scale);
        // Derived values that OpenVDB stores after a scale: sizes of voxels, 1 / scale, 1 / scale², 1 / (2 scale).
        put(scale);
        put(1.0 / scale);
        put(1.0 / (scale * scale));
        put(0.5 / scale);
    }

    /// The root: no tiles, and a child for each node that has an active voxel.
    fn root(&self) -> Node {
        let edge = (LEVELS[0].child_edge << LEVELS[0].log2) as usize;
        let mut root = Node {
            topology: 0u32.to_le_bytes().to_vec(),
            voxels: Vec::new(),
        };
        let mut children = Vec::new();
        let [nx, ny, nz] = self.volume.size;
        for x in (0..nx).step_by(edge) {
            for y in (0..ny).step_by(edge) {
                for z in (0..nz).step_by(edge) {
                    children.extend(self.node(0, [x, y, z]).map(|node| ([x, y, z], node)));
                }
            }
        }
        root.topology.extend((children.len() as u32).to_le_bytes());
        for (origin, node) in children {
            origin
                .iter()
                .for_each(|v| root.topology.extend((*v as i32).to_le_bytes()));
            root.topology.extend(node.topology);
            root.voxels.extend(node.voxels);
        }
        root
    }

    /// The internal node of `level` at `origin`, or a leaf below the last level; None without an active voxel.
    fn node(&self, level: usize, origin: [usize; 3]) -> Option<Node> {
        let Some(shape) = LEVELS.get(level) else {
            return self.leaf(origin);
        };
        let (log2, edge) = (shape.log2, shape.child_edge as usize);
        let (count, last) = (1usize << (3 * log2), (1usize << log2) - 1);
        let mut mask = vec![0u8; count / 8];
        let mut below = Node {
            topology: Vec::new(),
            voxels: Vec::new(),
        };
        for i in 0..count {
            let child = [i >> (2 * log2), i >> log2 & last, i & last];
            let at = [0, 1, 2].map(|axis| origin[axis] + child[axis] * edge);
            if (0..3).any(|axis| at[axis] >= self.volume.size[axis]) {
                continue;
            }
            if let Some(node) = self.node(level + 1, at) {
                mask[i / 8] |= 1 << (i % 8);
                below.topology.extend(node.topology);
                below.voxels.extend(node.voxels);
            }
        }
        if mask.iter().all(|byte| *byte == 0) {
            return None;
        }
        let mut topology = mask;
        // No tiles are active.
        topology.extend(vec![0; count / 8]);
        self.values(&mut topology, &[]);
        topology.extend(below.topology);
        Some(Node { topology, ..below })
    }

    fn leaf(&self, origin: [usize; 3]) -> Option<Node> {
        let [nx, ny, nz] = self.volume.size;
        let channels = self.volume.channels;
        let (edge, mut mask, mut active) = (LEAF_EDGE as usize, [0u8; LEAF_MASK], Vec::new());
        for i in 0..LEAF_VOXELS {
            let [x, y, z] = [
                origin[0] + (i >> 6),
                origin[1] + (i >> 3 & (edge - 1)),
                origin[2] + (i & (edge - 1)),
            ];
            if x >= nx || y >= ny || z >= nz {
                continue;
            }
            let texel = &self.volume.data[((z * ny + y) * nx + x) * channels..][..channels];
            let is_corner = [(x, nx), (y, ny), (z, nz)].iter().all(|(v, n)| *v == 0 || *v == n - 1);
            if is_corner || texel.iter().any(|v| *v != 0.0) {
                mask[i / 8] |= 1 << (i % 8);
                active.extend(texel);
            }
        }
        if active.is_empty() {
            return None;
        }
        let mut voxels = mask.to_vec();
        self.values(&mut voxels, &active);
        Some(Node {
            topology: mask.to_vec(),
            voxels,
        })
    }

    /// The active values of a node; the others are the background.
    fn values(&self, out: &mut Vec<u8>, active: &[f32]) {
        out.push(inactive::BACKGROUND);
        let bytes: Vec<u8> = match self.half {
            // An empty array of halves takes no bytes, not even a size.
            true if active.is_empty() => return,
            true => active.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
            false => active.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        match packed {
            Ok(packed) if packed.len() < bytes.len() => {
                out.extend((packed.len() as i64).to_le_bytes());
                out.extend(packed);
            }
            // A size that is not positive marks bytes that are not packed.
            _ => {
                out.extend((-(bytes.len() as i64)).to_le_bytes());
                out.extend(bytes);
            }
        }
    }
}
