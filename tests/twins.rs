//! The walk and the kernels stand in two languages: `src/transport/` and `src/kernels/` in Rust, `shaders/` in WGSL.
//! What holds them together, as far as their text tells: files, functions and constants.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose files are twins, relative to `src` and to `shaders`.
const FOLDERS: [&str; 2] = ["transport", "kernels"];

/// Files of Rust without a twin in WGSL, each with the reason.
const RUST_ONLY: &[(&str, &str)] = &[
    (
        "transport/mode",
        "WGSL has no const parameters: the modes stand in transport/scene/records",
    ),
    (
        "transport/scene/lanes",
        "vectors of registers: WGSL has vectors of four",
    ),
    ("transport/scene/bvh/", "its tests"),
    ("transport/number/", "WGSL has no generics"),
    ("transport/paths/radiative", "a baseline, on the CPU alone"),
    (
        "transport/paths/replay_cache",
        "takes memory for each path, which a GPU lacks",
    ),
    ("kernels/quality", "PSNR and SSIM are computed by the host"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Paths without extension, relative to `base`, of all files with this extension in `base`/`folder`, but for those
/// that only list their modules. Sorted.
fn stems(base: &str, folder: &str, extension: &str) -> Vec<String> {
    let base = root().join(base);
    let (mut found, mut folders) = (Vec::new(), vec![base.join(folder)]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) && path.file_stem().is_some_and(|s| s != "mod") {
                found.push(relative(&base, &path.with_extension("")));
            }
        }
    }
    found.sort();
    found
}

fn relative(base: &Path, path: &Path) -> String {
    let path = path.strip_prefix(base).expect("it lies in the folder");
    let parts: Vec<_> = path.components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// Why a file of Rust has no twin, if it need not have one.
fn exempt(stem: &str) -> Option<&'static str> {
    let excused = |name: &str| stem == name || (name.ends_with('/') && stem.starts_with(name));
    RUST_ONLY.iter().find(|(name, _)| excused(name)).map(|(_, why)| *why)
}

/// What the two lists do not share.
fn without_twin(rust: &[String], wgsl: &[String]) -> Vec<String> {
    let lonely = rust
        .iter()
        .filter(|stem| exempt(stem).is_none() && !wgsl.contains(stem));
    let strange = wgsl
        .iter()
        .filter(|stem| !rust.contains(stem) || exempt(stem).is_some());
    lonely
        .map(|stem| format!("src/{stem}.rs has no shaders/{stem}.wgsl"))
        .chain(strange.map(|stem| format!("shaders/{stem}.wgsl has no src/{stem}.rs")))
        .collect()
}

#[test]
fn every_file_has_its_twin() {
    for folder in FOLDERS {
        let (rust, wgsl) = (stems("src", folder, "rs"), stems("shaders", folder, "wgsl"));
        assert!(rust.len() >= 5 && wgsl.len() >= 5, "files of {folder} were not found");
        let broken = without_twin(&rust, &wgsl);
        assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    }
}

/// A file in another folder than its twin, one without a twin, and a twin of what needs none are found.
#[test]
fn planted_files_are_found() {
    let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    for (rust, wgsl) in [
        (vec!["transport/paths/phase"], vec!["transport/scene/phase"]),
        (vec!["transport/scene/phase"], vec![]),
        (vec![], vec!["transport/scene/phase"]),
        (vec!["kernels/quality"], vec!["kernels/quality"]),
    ] {
        assert!(
            !without_twin(&list(&rust), &list(&wgsl)).is_empty(),
            "{rust:?} {wgsl:?}"
        );
    }
    assert!(without_twin(&list(&["a/b", "kernels/quality"]), &list(&["a/b"])).is_empty());
}
