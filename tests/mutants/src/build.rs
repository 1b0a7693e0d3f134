//! The instrumented copy: it is written and built with fewer and fewer mutations until it compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::find::{Form, find};
use crate::write::{Placed, SWITCH, write};

/// A file's source without mutations, and its mutations.
#[derive(Debug)]
pub struct Mutated {
    pub source: String,
    pub placed: Vec<Placed>,
}

/// All files by path in the repository.
pub type Mutations = BTreeMap<String, Mutated>;

/// Copies the files that git tracks, and untracked ones that it does not ignore, from `root` to `copy`.
pub fn copy(root: &Path, copy: &Path) -> Result<()> {
    let listed = Command::new("git")
        .args(["-C", &root.to_string_lossy(), "ls-files", "-co", "--exclude-standard"])
        .output()
        .context("git is needed to list the repository's files")?;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let (from, to) = (root.join(name), copy.join(name));
        if !from.is_file() {
            continue;
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(&from, &to).with_context(|| format!("{} cannot be copied", from.display()))?;
    }
    Ok(())
}

/// All mutations of these files, numbered from 1.
pub fn collect(root: &Path, files: &[String]) -> Result<Mutations> {
    let (mut all, mut id) = (Mutations::new(), 0);
    for file in files {
        let source = std::fs::read_to_string(root.join(file)).with_context(|| format!("{file} cannot be read"))?;
        let found = find(&source).with_context(|| format!("{file} cannot be parsed"))?;
        let placed = found.into_iter().map(|mutation| {
            id += 1;
            Placed {
                id,
                mutation,
                replacement: 0..0,
                whole: 0..0,
            }
        });
        let placed = placed.collect();
        all.insert(file.clone(), Mutated { source, placed });
    }
    if id >= 1 << 16 {
        bail!("{id} mutations are more than 65535, give fewer files");
    }
    Ok(all)
}

/// Writes all mutations into the copy.
fn instrument(copy: &Path, lib: &str, mutations: &mut Mutations) -> Result<()> {
    for (file, Mutated { source, placed }) in mutations {
        std::fs::write(copy.join(file), write(source, placed))?;
    }
    // Mutated code is meant to be odd: code that causes warnings, or could be seen to overflow, must still compile.
    let allow = "#![allow(warnings, overflowing_literals, arithmetic_overflow, unconditional_panic)]\n";
    std::fs::write(copy.join("src/lib.rs"), format!("{allow}{lib}{SWITCH}"))?;
    Ok(())
}

/// Builds the tests and returns their programs; mutations that do not compile are taken out.
pub fn build(copy: &Path, mutations: &mut Mutations, tests: &[String]) -> Result<Vec<PathBuf>> {
    let lib = std::fs::read_to_string(copy.join("src/lib.rs"))?;
    loop {
        instrument(copy, &lib, mutations)?;
        let mut arguments = vec!["test", "--no-run"];
        arguments.extend(tests.iter().map(String::as_str));
        let messages = cargo(copy, &arguments)?;
        if remove_broken(copy, mutations, &messages)? {
            continue;
        }
        let programs = messages.iter().filter(|m| m["profile"]["test"] == true);
        return Ok(programs
            .filter_map(|m| m["executable"].as_str().map(PathBuf::from))
            .collect());
    }
}

/// Dependencies are those of the release build; the crate itself is compiled quickly and checks its arithmetic.
const PROFILE: [&str; 3] = ["opt-level=1", "overflow-checks=true", "debug-assertions=true"];

fn cargo(copy: &Path, arguments: &[&str]) -> Result<Vec<Value>> {
    let output = Command::new("cargo")
        .current_dir(copy)
        .args(arguments)
        .args(["--release", "--message-format=json"])
        .args(PROFILE.iter().flat_map(|setting| {
            [
                "--config".to_owned(),
                format!("profile.release.package.prbopt.{setting}"),
            ]
        }))
        .output()
        .context("cargo cannot be started")?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    if lines.is_empty() {
        bail!("cargo fails: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// Takes out the mutations in which the compiler found errors; false if it found none.
fn remove_broken(copy: &Path, mutations: &mut Mutations, messages: &[Value]) -> Result<bool> {
    let (mut broken, mut errors, mut unknown) = (BTreeSet::new(), 0, Vec::new());
    for message in messages.iter().map(|m| &m["message"]).filter(|m| m["level"] == "error") {
        let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
        if spans.is_empty() {
            continue;
        }
        errors += 1;
        let before = broken.len();
        let mut known = false;
        for span in spans.iter().filter(|s| s["is_primary"] == true) {
            let file = span["file_name"].as_str().unwrap_or_default();
            let file = Path::new(file).strip_prefix(copy).unwrap_or(Path::new(file));
            let Some(Mutated { placed, .. }) = mutations.get(&*file.to_string_lossy()) else {
                continue;
            };
            let at = |key: &str| span[key].as_u64().unwrap_or(0) as usize;
            let (start, end) = (at("byte_start"), at("byte_end"));
            let within = placed
                .iter()
                .filter(|p| start < p.replacement.end && p.replacement.start < end);
            let mut hit: Vec<u32> = within.map(|p| p.id).collect();
            if hit.is_empty() {
                let around = placed.iter().filter(|p| p.whole.start <= start && end <= p.whole.end);
                hit.extend(around.min_by_key(|p| p.whole.len()).map(|p| p.id));
            }
            if hit.is_empty() && message["code"]["code"] == "E0499" {
                // A loop borrows twice where the assignment that follows, and renews what is borrowed, is left out.
                let later = placed
                    .iter()
                    .filter(|p| p.mutation.form == Form::Omit && p.whole.start >= end);
                hit.extend(later.min_by_key(|p| p.whole.start).map(|p| p.id));
            }
            known |= !hit.is_empty();
            broken.extend(hit);
        }
        if !known && broken.len() == before {
            unknown.push(message["rendered"].as_str().unwrap_or_default().to_owned());
        }
    }
    if errors == 0 {
        return Ok(false);
    }
    if broken.is_empty() {
        bail!("the copy does not compile:\n{}", unknown.join("\n"));
    }
    for Mutated { placed, .. } in mutations.values_mut() {
        placed.retain(|p| !broken.contains(&p.id));
    }
    eprintln!("{} mutations do not compile and are taken out", broken.len());
    Ok(true)
}
