//! A run with a page, and a client that speaks HTTP byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long an answer is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The program at work, with its page.
pub(crate) struct Served {
    pub(crate) process: Child,
    /// `127.0.0.1:port`.
    pub(crate) host: String,
    pub(crate) token: String,
}

impl Served {
    /// Starts the program in a folder, and reads where its page is.
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
            .args(words)
            .args(["--json", "--serve=127.0.0.1:0"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped"))
            .lines()
            .map_while(Result::ok);
        let url = lines.find_map(|line| {
            let event: Value = serde_json::from_str(&line).expect("lines of JSON");
            event["url"].as_str().map(str::to_owned)
        });
        // The pipe is read on, so that it never fills.
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.expect("the program says where its page is");
        let (host, token) = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once("/?token="))
            .expect("an address and a token");
        Self {
            process,
            host: host.to_owned(),
            token: token.to_owned(),
        }
    }

    /// Sends some bytes and reads the answer to its end: status and body.
    pub(crate) fn send(&self, bytes: &[u8]) -> (u16, Vec<u8>) {
        let Ok(mut stream) = TcpStream::connect(&self.host) else {
            return (0, Vec::new());
        };
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let _ = stream.write_all(bytes);
        answer(&mut stream)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let (host, token, length) = (&self.host, &self.token, body.len());
        format!("{method} {path}?token={token} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}")
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Vec<u8>) {
        self.send(self.request("GET", path, "").as_bytes())
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> u16 {
        self.command(path, body).0
    }

    /// A command's status and its answer.
    pub(crate) fn command(&self, path: &str, body: &str) -> (u16, Vec<u8>) {
        self.send(self.request("POST", path, body).as_bytes())
    }

    /// Follows the events that the page is sent.
    pub(crate) fn events(&self) -> Events {
        let mut stream = TcpStream::connect(&self.host).expect("is served");
        stream
            .write_all(self.request("GET", "/events", "").as_bytes())
            .expect("reads");
        let events = Events::default();
        let all = Arc::clone(&events.all);
        std::thread::spawn(move || {
            let mut name = String::new();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some(of) = line.strip_prefix("event: ") {
                    name = of.to_owned();
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let value = serde_json::from_str(data).expect("JSON");
                    all.0.lock().expect("whole").push((name.clone(), value));
                    all.1.notify_all();
                }
            }
        });
        events
    }

    /// Waits for the end: whether the exit code is 0, and seconds of processor time, of all threads and the system's for them.
    pub(crate) fn finish(self) -> (bool, f64) {
        processor_time(self.process)
    }
}

/// Waits for a process to end.
pub(crate) fn processor_time(process: Child) -> (bool, f64) {
    let mut status = 0;
    // SAFETY: both are valid for writes, and of the types that the call fills in.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        let waited = libc::wait4(process.id() as libc::pid_t, &mut status, 0, &mut used);
        assert_eq!(waited, process.id() as libc::pid_t);
        used
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    (status == 0, seconds(used.ru_utime) + seconds(used.ru_stime))
}

/// What a connection answers, to its end: status and body. The status is 0 where it hangs up without one.
pub(crate) fn answer(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let head = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
    let line = String::from_utf8_lossy(&bytes[..head.min(40)]).into_owned();
    let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    (status, bytes.split_off((head + 4).min(bytes.len())))
}

type All = (Mutex<Vec<(String, Value)>>, Condvar);

/// Events received so far.
#[derive(Default)]
pub(crate) struct Events {
    all: Arc<All>,
}

impl Events {
    /// Waits for an event of this name that fulfils `holds`, and returns its data.
    pub(crate) fn wait(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut all = self.all.0.lock().expect("whole");
        loop {
            if let Some((_, value)) = all.iter().rev().find(|(n, value)| n == name && holds(value)) {
                return value.clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {name} of this kind came: {:?}", all.last());
            all = self.all.1.wait_timeout(all, left).expect("whole").0;
        }
    }

    /// The data of the newest event of this name.
    pub(crate) fn last(&self, name: &str) -> Option<Value> {
        let all = self.all.0.lock().expect("whole");
        all.iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.clone())
    }
}

/// A run's results and the figures of its iterations: everything that looking at the run must not change.
pub(crate) fn outcome(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(run.join("final"))
        .expect("a result")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    let read = |path: &PathBuf| (path.display().to_string(), std::fs::read(path).expect("readable"));
    let name = |(path, bytes): (String, Vec<u8>)| (path.rsplit('/').next().unwrap_or_default().to_owned(), bytes);
    let mut found: Vec<_> = files.iter().map(read).map(name).collect();
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    for line in metrics.lines() {
        let of: Value = serde_json::from_str(line).expect("JSON");
        let told = format!(
            "{} {} {} {}",
            of["loss"], of["penalty"], of["gradient_norms"], of["replay"]
        );
        found.push((format!("iteration {}", of["iteration"]), told.into_bytes()));
    }
    found
}
