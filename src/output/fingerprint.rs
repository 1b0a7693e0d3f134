//! Short marks by which two descriptions are told apart.

use std::path::Path;

use serde_json::Value;

/// A 64-bit FNV-1a hash under construction. It tells accidents apart, not attacks.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Takes in bytes and their number.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        for byte in bytes.iter().copied().chain((bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// Sixteen hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The mark of a resolved scene: everything that decides what a run computes. Left out are what a run may be asked for
/// anew when it goes on (its length, its seed, its output), and the folder that the scene lies in.
pub fn scene_fingerprint(resolved: &Value, folder: &Path) -> String {
    let mut scene = resolved.clone();
    if let Some(block) = scene.get_mut("optimize").and_then(Value::as_object_mut) {
        for key in ["iterations", "seed", "output"] {
            block.shift_remove(key);
        }
    }
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let mut prefixes = Vec::new();
    for path in [place.canonicalize(), std::path::absolute(place)].into_iter().flatten() {
        prefixes.push(path.display().to_string());
    }
    make_relative(&mut scene, &prefixes);
    Fingerprint::default().with(scene.to_string().as_bytes()).text()
}

fn make_relative(value: &mut Value, prefixes: &[String]) {
    match value {
        Value::String(text) => {
            if let Some(rest) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix.as_str())) {
                *text = rest.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| make_relative(item, prefixes)),
        Value::Object(members) => members.values_mut().for_each(|item| make_relative(item, prefixes)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_decides_the_run_decides_the_mark() {
        let scene = |loss: &str, iterations: u32, folder: &str| json!({"a": {"filename": format!("{folder}/a.vol")}, "optimize": {"loss": loss, "iterations": iterations}});
        let mark = |v: &Value, folder: &str| scene_fingerprint(v, Path::new(folder));
        let first = mark(&scene("l1", 10, "/x"), "/x");
        assert_eq!(
            first,
            mark(&scene("l1", 20, "/y"), "/y"),
            "length and place do not count"
        );
        assert_ne!(first, mark(&scene("l2", 10, "/x"), "/x"));
        assert_ne!(first, mark(&scene("l1", 10, "/z"), "/x"));
    }

    #[test]
    fn joints_between_parts_count() {
        let joined = |parts: &[&str]| {
            let all = parts.iter().fold(Fingerprint::default(), |f, p| f.with(p.as_bytes()));
            all.text()
        };
        assert_ne!(joined(&["ab", "c"]), joined(&["a", "bc"]));
    }
}
