//! Short hashes of scenes and files, by which changes are detected.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

/// A 64-bit FNV-1a hash under construction. It detects accidental changes; it is not cryptographic.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Hashes bytes, then their number.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        self.with_bytes(bytes).with_bytes(&(bytes.len() as u64).to_le_bytes())
    }

    /// Hashes the contents of a file; an unreadable file differs from all readable ones.
    #[must_use]
    pub fn with_file(self, path: &Path) -> Self {
        let Ok(mut file) = File::open(path) else {
            return self.with(b"unreadable");
        };
        let (mut mark, mut buffer) = (self, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return mark.with(b"file"),
                Ok(count) => mark = mark.with_bytes(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return mark.with(b"unreadable"),
            }
        }
    }

    fn with_bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// Sixteen hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The hash of a resolved scene and of the contents of its `files`: everything that decides what a run computes. Left
/// out are the length, seed and output of a run, which may change when it is resumed, and the folder that the scene
/// lies in, if it lies in one.
pub fn scene_fingerprint(resolved: &Value, folder: Option<&Path>, files: &[&Path]) -> String {
    let mut scene = resolved.clone();
    if let Some(block) = scene.get_mut("optimize").and_then(Value::as_object_mut) {
        for key in ["iterations", "seed", "output"] {
            block.shift_remove(key);
        }
    }
    let mut prefixes = Vec::new();
    if let Some(folder) = folder {
        let place = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        for path in [place.canonicalize(), std::path::absolute(place)].into_iter().flatten() {
            prefixes.push(path.display().to_string());
        }
    }
    make_relative(&mut scene, &prefixes);
    let mark = Fingerprint::default().with(scene.to_string().as_bytes());
    files.iter().fold(mark, |mark, file| mark.with_file(file)).text()
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
        let mark = |v: &Value, folder: &str| scene_fingerprint(v, Some(Path::new(folder)), &[]);
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
    fn contents_of_files_count_and_nothing_else_of_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("mesh.ply");
        let mark = || scene_fingerprint(&json!({}), Some(Path::new("/x")), &[&file]);
        let missing = mark();
        let with = |contents: &[u8]| {
            std::fs::write(&file, contents).expect("writable");
            mark()
        };
        let first = with(b"a");
        assert_ne!(first, missing);
        assert_ne!(first, with(b"b"), "of the same length, in the same moment");
        assert_ne!(first, with(b""));
        assert_ne!(first, scene_fingerprint(&json!({}), Some(Path::new("/x")), &[]));
        assert_eq!(first, with(b"a"), "when it was written does not count");
        let long = vec![7; 200_000];
        assert_ne!(with(&long), with(&long[1..]));
    }

    #[test]
    fn joints_between_parts_count() {
        let joined = |parts: &[&str]| {
            let all = parts.iter().fold(Fingerprint::default(), |f, p| f.with(p.as_bytes()));
            all.text()
        };
        assert_ne!(joined(&["ab", "c"]), joined(&["a", "bc"]));
    }

    /// FNV-1a against its published 64-bit offset and test vectors, and against a hash computed by another program.
    #[test]
    fn marks_are_those_of_fnv() {
        assert_eq!(Fingerprint::default().text(), "cbf29ce484222325");
        assert_eq!(Fingerprint::default().with_bytes(b"a").text(), "af63dc4c8601ec8c");
        assert_eq!(Fingerprint::default().with_bytes(b"foobar").text(), "85944171f73967e8");
        let with_length = [&b"foobar"[..], &[6, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(
            Fingerprint::default().with(b"foobar").text(),
            Fingerprint::default().with_bytes(&with_length).text()
        );
    }
}
