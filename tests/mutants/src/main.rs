//! Mutation testing from one build: every mutation of the given files is compiled into one copy of the crate, behind a switch
//! that the environment turns on; each test then runs with each mutation that it reaches.
//!
//!     cargo run --release --manifest-path tests/mutants/Cargo.toml -- --copy FOLDER [options] FILES
//!
//! run in the repository. `CARGO_TARGET_DIR` is the build's. Options: `--test NAME` (an integration test, may be
//! repeated; unit tests always run), `--skip TEXT` (tests whose name holds it, may be repeated), `--longest SECONDS`
//! (tests that take longer are left out), `--sample N` and `--seed S` (so many mutations drawn at random), `--only FILE`
//! (mutations by their numbers, one a line), `--jobs N`.

mod build;
mod find;
mod run;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use run::Fate;

/// Mutations that change nothing that a test could see, one a line: file, what it says here, what stands in the line of
/// the source, and why.
const EQUIVALENT: &str = include_str!("../equivalent.txt");

#[derive(Debug, Default)]
struct Options {
    copy: PathBuf,
    files: Vec<String>,
    tests: Vec<String>,
    skip: Vec<String>,
    longest: f64,
    sample: Option<usize>,
    only: Option<PathBuf>,
    seed: u64,
    jobs: usize,
}

fn options() -> Result<Options> {
    let mut options = Options {
        tests: vec!["--lib".into()],
        longest: f64::INFINITY,
        jobs: 1,
        ..Options::default()
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if !argument.starts_with("--") {
            options.files.push(argument);
            continue;
        }
        let value = arguments.next().with_context(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--copy" => options.copy = value.into(),
            "--test" => options.tests.extend([argument, value]),
            "--skip" => options.skip.push(value),
            "--longest" => options.longest = value.parse()?,
            "--only" => options.only = Some(value.into()),
            "--sample" => options.sample = Some(value.parse()?),
            "--seed" => options.seed = value.parse()?,
            "--jobs" => options.jobs = value.parse::<usize>()?.max(1),
            _ => bail!("{argument} is no option"),
        }
    }
    if options.copy.as_os_str().is_empty() || options.files.is_empty() {
        bail!("--copy FOLDER and at least one file are needed");
    }
    Ok(options)
}

fn main() -> Result<()> {
    let options = options()?;
    let root = std::env::current_dir()?;
    build::copy(&root, &options.copy)?;
    let copy = options.copy.canonicalize()?;
    let mut mutations = build::collect(&root, &options.files)?;
    eprintln!(
        "{} mutations written",
        mutations.values().map(|m| m.placed.len()).sum::<usize>()
    );
    let programs = build::build(&copy, &mut mutations, &options.tests)?;
    let mut tests = run::trace(&copy, &programs, &options.skip)?;
    tests.retain(|test| test.seconds <= options.longest);
    let mut ids: Vec<u32> = mutations.values().flat_map(|m| &m.placed).map(|p| p.id).collect();
    eprintln!("{} mutations, {} tests", ids.len(), tests.len());
    if let Some(file) = &options.only {
        let listed = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        ids.retain(|id| listed.lines().any(|line| line.parse() == Ok(*id)));
    }
    if let Some(sample) = options.sample {
        ids.sort_by_key(|&id| scramble(options.seed ^ u64::from(id)));
        ids.truncate(sample);
    }
    let tell = |id: u32| {
        let in_file = |placed: &[write::Placed]| placed.iter().find(|p| p.id == id).map(|p| p.mutation.clone());
        let found = mutations.iter().find_map(|(file, m)| Some((file, in_file(&m.placed)?)));
        if let Some((file, m)) = found {
            eprintln!("survives: {file}:{} {} (#{id})", m.line, m.what);
        }
    };
    let fates = run::judge(&copy, &tests, &ids, options.jobs, &tell)?;
    report(&mutations, &fates);
    Ok(())
}

/// Mixes bits (the finaliser of SplitMix64).
fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Prints the mutations that survive, and counts by file.
fn report(mutations: &build::Mutations, fates: &std::collections::HashMap<u32, Fate>) {
    let known: Vec<Vec<&str>> = EQUIVALENT.lines().map(|line| line.split(" | ").collect()).collect();
    let mut lines = BTreeMap::new();
    for (file, build::Mutated { source, placed }) in mutations {
        let counts: &mut [usize; 4] = lines.entry(file).or_default();
        for p in placed {
            let Some(fate) = fates.get(&p.id) else { continue };
            let m = &p.mutation;
            let line = source.lines().nth(m.line - 1).unwrap_or_default();
            let is_known = known
                .iter()
                .any(|k| k.len() == 4 && k[0] == file && k[1] == m.what && line.contains(k[2]));
            counts[0] += 1;
            match fate {
                Fate::Seen => counts[1] += 1,
                _ if is_known => counts[2] += 1,
                fate => {
                    counts[3] += 1;
                    let how = if *fate == Fate::Unreached { ", unreached" } else { "" };
                    println!("{file}:{} {}{how} (#{})", m.line, m.what, p.id);
                }
            }
        }
    }
    println!(
        "\n{:40} {:>9} {:>6} {:>10} {:>9} {:>7}",
        "file", "mutations", "seen", "equivalent", "surviving", "%"
    );
    let mut total = [0; 4];
    let row = |name: &str, [all, seen, equivalent, surviving]: [usize; 4]| {
        let share = 100.0 * surviving as f64 / (all - equivalent).max(1) as f64;
        println!("{name:40} {all:9} {seen:6} {equivalent:10} {surviving:9} {share:7.1}");
    };
    for (file, counts) in lines {
        (0..4).for_each(|i| total[i] += counts[i]);
        row(file, counts);
    }
    row("all", total);
}
