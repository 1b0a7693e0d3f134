//! The binary buffer of a glTF file, with its buffer views and accessors.

use serde_json::{Value, json};

/// Codes of glTF: 32-bit floats and whole numbers, and the targets of buffer views.
const FLOAT: u32 = 5126;
const UNSIGNED: u32 = 5125;
const VERTICES: u32 = 34962;
const INDICES: u32 = 34963;

/// A buffer that grows.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub bytes: Vec<u8>,
    pub views: Vec<Value>,
    pub accessors: Vec<Value>,
}

impl Buffer {
    /// Adds bytes and returns the index of their buffer view.
    pub(super) fn view(&mut self, bytes: &[u8], target: Option<u32>) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let mut view = json!({"buffer": 0, "byteOffset": self.bytes.len(), "byteLength": bytes.len()});
        if let Some(target) = target {
            view["target"] = json!(target);
        }
        self.bytes.extend(bytes);
        self.views.push(view);
        self.views.len() - 1
    }

    /// Adds one vector a vertex, and returns the index of their accessor. `with_bounds` states minimum and maximum,
    /// which glTF requires of positions.
    pub(super) fn vectors<const N: usize>(&mut self, vectors: &[[f32; N]], with_bounds: bool) -> usize {
        let bytes: Vec<u8> = vectors.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
        let view = self.view(&bytes, Some(VERTICES));
        let kind = if N == 2 { "VEC2" } else { "VEC3" };
        let mut accessor = json!({"bufferView": view, "componentType": FLOAT, "count": vectors.len(), "type": kind});
        if with_bounds {
            let fold = |start: f32, pick: fn(f32, f32) -> f32| -> Vec<f32> {
                (0..N)
                    .map(|a| vectors.iter().fold(start, |m, v| pick(m, v[a])))
                    .collect()
            };
            accessor["min"] = json!(fold(f32::INFINITY, f32::min));
            accessor["max"] = json!(fold(f32::NEG_INFINITY, f32::max));
        }
        self.accessors.push(accessor);
        self.accessors.len() - 1
    }

    /// Adds triangles, and returns the index of their accessor.
    pub(super) fn triangles(&mut self, triangles: &[[u32; 3]]) -> usize {
        let bytes: Vec<u8> = triangles.as_flattened().iter().flat_map(|v| v.to_le_bytes()).collect();
        let view = self.view(&bytes, Some(INDICES));
        let count = 3 * triangles.len();
        self.accessors
            .push(json!({"bufferView": view, "componentType": UNSIGNED, "count": count, "type": "SCALAR"}));
        self.accessors.len() - 1
    }
}
