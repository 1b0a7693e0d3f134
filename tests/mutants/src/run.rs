//! Which tests reach which mutation, and whether any of them fails by it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// One test of one program.
#[derive(Debug, Clone)]
pub struct Test {
    pub program: PathBuf,
    pub name: String,
    pub seconds: f64,
    /// The numbers of the mutations that it reaches.
    pub reached: HashSet<u32>,
}

/// What became of a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Seen,
    Survives,
    /// No test reaches it.
    Unreached,
}

/// Runs every test once, alone; those that fail without any mutation are left out and named.
pub fn trace(copy: &Path, programs: &[PathBuf], skip: &[String]) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for program in programs {
        let listed = Command::new(program).args(["--list", "--format", "terse"]).output();
        let listed = listed.with_context(|| format!("{} cannot be started", program.display()))?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        for name in text.lines().filter_map(|line| line.strip_suffix(": test")) {
            if skip.iter().any(|s| name.contains(s.as_str())) {
                continue;
            }
            let file = copy.join("trace.txt");
            let _ = std::fs::remove_file(&file);
            let start = Instant::now();
            let passes = run(
                copy,
                program,
                &[name],
                ("MUTATION_TRACE", &file.to_string_lossy()),
                600.0,
            )?;
            if !passes {
                eprintln!("{name} fails without any mutation and is left out");
                continue;
            }
            let noted = std::fs::read_to_string(&file).unwrap_or_default();
            tests.push(Test {
                program: program.clone(),
                name: name.to_owned(),
                seconds: start.elapsed().as_secs_f64(),
                reached: noted.lines().filter_map(|line| line.parse().ok()).collect(),
            });
        }
    }
    if tests.is_empty() {
        bail!("there are no tests");
    }
    Ok(tests)
}

/// The fate of each mutation, `jobs` at a time; `tell` is called for those that no test sees.
pub fn judge(
    copy: &Path,
    tests: &[Test],
    ids: &[u32],
    jobs: usize,
    tell: &(dyn Fn(u32) + Sync),
) -> Result<HashMap<u32, Fate>> {
    let (next, fates) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    while let Some(&id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let fate = fate(copy, tests, id)?;
                        if fate != Fate::Seen {
                            tell(id);
                        }
                        fates.lock().expect("no worker panics").insert(id, fate);
                    }
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    Ok(fates.into_inner().expect("no worker panics"))
}

/// Tests that one process runs: few, since it goes on after the first that fails.
const TOGETHER: usize = 6;

/// Runs the tests that reach a mutation, the quick ones first, until one fails.
fn fate(copy: &Path, tests: &[Test], id: u32) -> Result<Fate> {
    let mut programs: BTreeMap<&Path, Vec<&Test>> = BTreeMap::new();
    for test in tests.iter().filter(|test| test.reached.contains(&id)) {
        programs.entry(&test.program).or_default().push(test);
    }
    if programs.is_empty() {
        return Ok(Fate::Unreached);
    }
    let mut rounds = Vec::new();
    for (program, mut tests) in programs {
        tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        for tests in tests.chunks(TOGETHER) {
            let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
            rounds.push((tests.iter().map(|test| test.seconds).sum::<f64>(), program, names));
        }
    }
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (seconds, program, names) in rounds {
        if !run(
            copy,
            program,
            &names,
            ("MUTATION", &id.to_string()),
            10.0 * seconds + 10.0,
        )? {
            return Ok(Fate::Seen);
        }
    }
    Ok(Fate::Survives)
}

/// Whether these tests of a program pass within so many seconds. A mutation may ask for any amount of memory: where
/// there is a shell it gets 16 GiB of address space.
fn run(copy: &Path, program: &Path, names: &[&str], variable: (&str, &str), seconds: f64) -> Result<bool> {
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -v 16777216 2>/dev/null; exec \"$@\"", "sh"])
        .arg(program)
        .args(["--exact", "--test-threads=1"])
        .args(names)
        .current_dir(copy)
        .env(variable.0, variable.1)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(50));
    }
}
