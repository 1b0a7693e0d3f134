//! Paths as scene files state them: relative to the scene's folder.

use std::path::{Path, PathBuf};

use super::{IoError, Result};

/// `file` relative to the folder of the scene at `output`, which itself is `.`; absolute if they share only the root.
///
/// # Errors
/// One of them is not there, or the name is no UTF-8.
pub fn relative(file: &Path, output: &Path) -> Result<String> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let absolute =
        |path: &Path| std::fs::canonicalize(path).map_err(|e| IoError::new(path, format!("cannot be found: {e}")));
    let (file, folder) = (absolute(file)?, absolute(folder)?);
    let shared = file
        .components()
        .zip(folder.components())
        .take_while(|(a, b)| a == b)
        .count();
    let path = if file == folder {
        PathBuf::from(".")
    } else if shared <= 1 {
        file
    } else {
        let up = folder.components().skip(shared).map(|_| "..");
        up.map(PathBuf::from)
            .chain(
                file.components()
                    .skip(shared)
                    .map(|part| PathBuf::from(part.as_os_str())),
            )
            .collect()
    };
    let text = path
        .to_str()
        .ok_or_else(|| IoError::new(&path, "the path is not UTF-8, which a scene file needs; rename it"))?;
    Ok(if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_set_is_named_from_the_scene_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("data/lego")).expect("writable");
        std::fs::create_dir_all(at("scenes")).expect("writable");
        std::fs::write(at("data/lego/t.json"), "").expect("writable");
        assert_eq!(
            relative(&at("data/lego/t.json"), &at("s.json")).expect("there"),
            "data/lego/t.json"
        );
        assert_eq!(
            relative(&at("data/lego/t.json"), &at("scenes/s.json")).expect("there"),
            "../data/lego/t.json"
        );
        assert_eq!(relative(&at("data"), &at("data/s.json")).expect("there"), ".");
        assert_eq!(relative(&at("data"), &at("data/lego/s.json")).expect("there"), "..");
        assert!(relative(&at("none"), &at("s.json")).is_err());
    }
}
