//! Dependencies between modules (docs/architecture.md): every `crate::` path in the sources must be one that the rules allow.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module of `src` with the other modules, or items of them, that it may use.
const RULES: &[(&str, &[&str])] = &[
    ("each", &[]),
    ("params", &[]),
    ("io", &[]),
    ("kernels", &["each"]),
    ("cluster", &[]),
    (
        "scene",
        &[
            "io",
            "kernels::loss",
            "kernels::optimizer",
            "kernels::regularizer",
            "params",
        ],
    ),
    ("resident", &["each", "io", "kernels::occupancy", "params", "scene"]),
    ("transport", &["each", "resident"]),
    (
        "device",
        &["cluster", "each", "io", "kernels", "params", "resident", "transport"],
    ),
    (
        "optimize",
        &[
            "cluster",
            "device",
            "io",
            "kernels::loss",
            "kernels::optimizer",
            "kernels::quality",
            "kernels::regularizer",
            "kernels::smoothing",
            "output",
            "params",
            "resident",
            "scene",
            // The pixels of a batch and the random key of a pass: scalars, not light.
            "transport::rays::pixel::PixelTable",
            "transport::rays::random",
            // The least weight of a splat: one whose opacity is below is transparent and removed.
            "transport::splats::blend::MIN_WEIGHT",
        ],
    ),
    (
        "gradcheck",
        &[
            "device",
            "each",
            "io",
            "kernels",
            "params",
            "resident",
            "scene",
            "transport",
        ],
    ),
    (
        "output",
        &[
            "device",
            "io",
            "kernels::optimizer",
            "params",
            // Records of cameras, for writing those that a run has refined.
            "resident::layout",
            "resident::solid",
            // Vertices of meshes, for writing those that a run has displaced.
            "resident::vertices",
            "scene",
        ],
    ),
    (
        "report",
        &["io", "kernels::quality", "optimize::Observer", "output", "params"],
    ),
    ("exchange", &["io", "params", "resident", "scene"]),
    (
        "serve",
        &[
            "device",
            "optimize::Observer",
            "optimize::Wish",
            "output",
            "params",
            "report::colormap",
            "report::page",
            "resident",
            "scene",
            // Rays of cameras, and the random key of a look.
            "transport::rays",
        ],
    ),
    (
        "cli",
        &[
            "cluster",
            "device",
            "exchange",
            "gradcheck",
            "io",
            "kernels",
            "optimize",
            "output",
            "params",
            "report",
            "resident",
            "scene",
            "serve",
            "transport",
        ],
    ),
];

/// Crates that files outside these folders may not name (but `main.rs` may name clap).
const CONFINED: &[(&str, &str)] = &[("wgpu", "device/gpu"), ("clap", "cli"), ("mpi", "cluster")];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files under `folder` with this extension, as paths relative to it with `/`, sorted.
fn files(folder: &Path, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let relative = path.strip_prefix(folder).expect("it lies in the folder");
                found.push(
                    relative
                        .components()
                        .map(|c| c.as_os_str().to_string_lossy())
                        .collect::<Vec<_>>()
                        .join("/"),
                );
            }
        }
    }
    found.sort();
    found
}

/// The code of a file without comments and without its unit tests, which stand at a file's end.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every path that follows `crate::` in some code, braces written out: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn crate_paths(code: &str) -> Vec<String> {
    code.match_indices("crate::")
        .flat_map(|(at, word)| expand(&code[at + word.len()..]).0)
        .collect()
}

/// The paths of a use tree at the start of `text`, and how many bytes it takes.
fn expand(text: &str) -> (Vec<String>, usize) {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '*';
    let stem_end = text.find(|c| !is_path(c)).unwrap_or(text.len());
    let stem = &text[..stem_end];
    if !text[stem_end..].starts_with('{') {
        return (vec![stem.to_string()], stem_end);
    }
    let mut paths = Vec::new();
    let mut at = stem_end + 1;
    while at < text.len() && !text[at..].starts_with('}') {
        let (inner, length) = expand(&text[at..]);
        paths.extend(
            inner
                .into_iter()
                .filter(|p| !p.is_empty())
                .map(|p| format!("{stem}{p}")),
        );
        // A comma, white space, `as name`, or a character that is no part of a path.
        at += length.max(1);
    }
    (paths, at + 1)
}

/// The rules that a file breaks, a message each. `file` is relative to `src`.
fn violations(file: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let mut broken = Vec::new();
    let module = file.split(['/', '.']).next().expect("split gives at least one part");
    if !matches!(module, "lib" | "main") {
        let Some((_, allowed)) = RULES.iter().find(|(name, _)| *name == module) else {
            return vec![format!("{file}: no rule says what `{module}` may use")];
        };
        for path in crate_paths(&code) {
            let within = |rule: &str| path == rule || path.starts_with(&format!("{rule}::"));
            let known = RULES.iter().any(|(name, _)| within(name));
            if known && !within(module) && !allowed.iter().any(|rule| within(rule)) {
                broken.push(format!("{file} uses crate::{path}"));
            }
        }
    }
    for (word, folder) in CONFINED {
        let named = code
            .match_indices(&format!("{word}::"))
            .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'));
        if named && !file.starts_with(folder) && !(module == "main" && *word == "clap") {
            broken.push(format!("{file} names {word}, which belongs to {folder}"));
        }
    }
    broken
}

#[test]
fn modules_use_only_what_they_may() {
    let src = root().join("src");
    let sources = files(&src, "rs");
    assert!(sources.len() > 40, "the sources are in {}", src.display());
    let broken: Vec<String> = sources
        .iter()
        .flat_map(|file| violations(file, &fs::read_to_string(src.join(file)).expect("sources are text")))
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Every kind of violation, planted, is found; and what is allowed is not.
#[test]
fn planted_violations_are_found() {
    for (file, text) in [
        ("scene/mod.rs", "use crate::device::Device;"),
        ("scene/mod.rs", "fn f() { crate::optimize::run(); }"),
        ("params.rs", "use crate::{io, scene};"),
        ("kernels/loss.rs", "use crate::transport::rays::random::Key;"),
        (
            "transport/field/march.rs",
            "use crate::{\n    resident::layout,\n    device::{Batch, Keys},\n};",
        ),
        (
            "optimize/mod.rs",
            "use crate::transport::{rays::pixel::PixelTable, field::march::gather, rays::random};",
        ),
        ("optimize/mod.rs", "use wgpu::Device;"),
        ("device/cpu/mod.rs", "fn f(d: &wgpu::Device) {}"),
        ("device/mod.rs", "use crate::cli::Cli;"),
        ("device/mod.rs", "use mpi::traits::Communicator;"),
        ("elsewhere.rs", "use crate::io;"),
    ] {
        assert!(!violations(file, text).is_empty(), "{file}: {text}");
    }
    for (file, text) in [
        (
            "scene/mod.rs",
            "use crate::io;\n// not crate::device\n/// nor [`crate::device`]",
        ),
        (
            "optimize/mod.rs",
            "use crate::transport::rays::{pixel::PixelTable, random::{Pass, pass_key}};",
        ),
        ("device/gpu/mod.rs", "use wgpu::Device;"),
        (
            "kernels/loss.rs",
            "use super::optimizer;\n#[cfg(test)]\nmod tests { use crate::transport::field::march; }",
        ),
    ] {
        assert_eq!(violations(file, text), [""; 0], "{file}: {text}");
    }
}

/// Whether some code names another kind of transport.
fn knows(code: &str, kind: &str) -> bool {
    let path = format!("transport::{kind}");
    let names = |found: &String| *found == path || found.starts_with(&format!("{path}::"));
    crate_paths(code).iter().any(names)
}

/// The folders ("rooms") of `transport/`, each with the others that its files may name: from the simplest to the scene, then the
/// kinds of transport, which may not name each other.
const ROOMS: [(&str, &[&str]); 8] = [
    ("number", &[]),
    ("rays", &["number"]),
    ("lookup", &["number", "rays"]),
    ("scene", &["number", "rays", "lookup"]),
    ("field", &["number", "rays", "lookup", "scene"]),
    ("paths", &["number", "rays", "lookup", "scene"]),
    ("splats", &["number", "rays", "lookup", "scene"]),
    ("light", &["number", "rays", "lookup", "scene"]),
];

#[test]
fn rooms_of_transport_know_only_those_before_them() {
    let transport = root().join("src/transport");
    let mut rooms: Vec<String> = fs::read_dir(&transport)
        .expect("it is a folder")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    rooms.sort_unstable();
    let mut named = ROOMS.map(|(room, _)| room);
    named.sort_unstable();
    assert_eq!(rooms, named);
    for (room, known) in ROOMS {
        for file in files(&transport.join(room), "rs") {
            let text = fs::read_to_string(transport.join(room).join(&file)).expect("sources are text");
            for (other, _) in ROOMS
                .iter()
                .filter(|(other, _)| *other != room && !known.contains(other))
            {
                assert!(
                    !knows(&code(&text), other),
                    "transport/{room}/{file} names transport::{other}"
                );
            }
        }
    }
    assert!(knows(
        "use crate::transport::{number::Number, paths::volpath::Walk};",
        "paths"
    ));
    assert!(!knows("use crate::transport::number::Number;", "paths"));
}
