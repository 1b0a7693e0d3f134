//! Clients of a run's page that are slow, endless, huge, many, or not authorised.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::client::{Served, answer, outcome};
use super::{run_alone, worlds};

fn connect(host: &str) -> Option<TcpStream> {
    let stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(20))).ok()?;
    Some(stream)
}

/// Sends until the other end has had enough, and returns the bytes that it took.
fn flood(stream: &mut TcpStream, part: &[u8]) -> u64 {
    let mut taken = 0;
    while let Ok(count) = stream.write(part) {
        taken += count as u64;
    }
    taken
}

/// Each kind of wrong request is refused with a status of its own.
#[test]
fn requests_that_are_not_meant_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::field(false), &worlds::field(true)]);
    let served = Served::start(
        folder.path(),
        &["optimize", "scene.json", "-o", "run", "--device", "cpu"],
    );
    assert_eq!(served.post("/pause", ""), 200);
    let (host, token) = (served.host.clone(), served.token.clone());
    let with = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
    let right = format!("/?token={token}");
    let here = format!("Host: {host}\r\n");
    let wrong = "0".repeat(token.len());
    for (request, expected) in [
        (with(&right, &here), 200),
        (with("/", &here), 403),
        (with("/?token=", &here), 403),
        (with(&format!("/?token={wrong}"), &here), 403),
        (with(&format!("/?token={token}0"), &here), 403),
        (with(&format!("/events?token={wrong}"), &here), 403),
        (with(&format!("/picture?token={wrong}"), &here), 403),
        (with(&format!("/report?token={wrong}"), &here), 403),
        (with(&right, "Host: evil.example\r\n"), 403),
        (with(&right, &format!("{here}Origin: http://evil.example\r\n")), 403),
        (with(&right, ""), 400),
        (with(&format!("/../../etc/passwd?token={token}"), &here), 404),
        (format!("GET /pause?token={token} HTTP/1.1\r\n{here}\r\n"), 404),
        (format!("POST /pause?token={wrong} HTTP/1.1\r\n{here}\r\n"), 403),
        (
            format!("POST /view?token={token} HTTP/1.1\r\n{here}Content-Length: 2\r\n\r\n{{}}"),
            400,
        ),
        (format!("DELETE /?token={token} HTTP/1.1\r\n{here}\r\n"), 405),
        (
            format!("POST /view?token={token} HTTP/1.1\r\n{here}Content-Length: 1000000000000\r\n\r\n"),
            413,
        ),
        (
            format!("POST /view?token={token} HTTP/1.1\r\n{here}Transfer-Encoding: chunked\r\n\r\n"),
            501,
        ),
        ("\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), 400),
    ] {
        let (status, body) = served.send(request.as_bytes());
        assert_eq!(status, expected, "{request:?}: {}", String::from_utf8_lossy(&body));
    }
    // No answer contains the token.
    let (_, body) = served.send(with("/", &here).as_bytes());
    assert!(!String::from_utf8_lossy(&body).contains(&token));
    assert_eq!(served.post("/stop", ""), 200);
    served.finish();
}

/// An endless line, endless headers and an endless body are cut off after some kilobytes, a slow request after seconds.
#[test]
fn requests_without_end_are_cut_off() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::field(false), &worlds::field(true)]);
    let served = Served::start(
        folder.path(),
        &["optimize", "scene.json", "-o", "run", "--device", "cpu"],
    );
    assert_eq!(served.post("/pause", ""), 200);
    let (host, token) = (&served.host, &served.token);
    // What the system's buffers take on both sides is some megabytes.
    const TAKEN: u64 = 64 << 20;
    for begin in [
        String::new(),
        format!("GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nX: "),
        format!("POST /view?token={token} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999999\r\n\r\n"),
    ] {
        let begun = Instant::now();
        let mut stream = connect(host).expect("is served");
        stream.write_all(begin.as_bytes()).expect("reads");
        let taken = flood(&mut stream, &[b'a'; 4096]);
        assert!(taken < TAKEN, "{taken} bytes were taken after {begin:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{begin:?} is cut off at once"
        );
    }
    let begun = Instant::now();
    let mut stream = connect(host).expect("is served");
    let slow = format!("GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nX: {}", "a".repeat(400));
    for byte in slow.bytes() {
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, _) = answer(&mut stream);
    assert!(
        matches!(status, 408 | 0),
        "a request that drips is not answered: {status}"
    );
    assert!(begun.elapsed() < Duration::from_secs(30));
    let (status, _) = served.get("/");
    assert_eq!(status, 200, "others are answered on");
    assert_eq!(served.post("/stop", ""), 200);
    served.finish();
}

/// Attacks of every kind at once, for as long as a run lasts.
fn attack(host: &str, token: &str, over: &AtomicBool, refused: &AtomicU64) {
    let is_over = || over.load(Ordering::SeqCst);
    let request = |path: &str| format!("GET {path}?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    std::thread::scope(|scope| {
        // Silent ones, again and again.
        scope.spawn(|| {
            let mut held = Vec::new();
            while !is_over() {
                held.extend(connect(host));
                if held.len() > 40 {
                    held.remove(0);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // Slow ones.
        scope.spawn(|| {
            let mut held: Vec<TcpStream> = Vec::new();
            while !is_over() {
                held.extend(connect(host));
                held.retain_mut(|stream| stream.write_all(b"a").is_ok());
                held.truncate(8);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Endless ones.
        scope.spawn(|| {
            while !is_over() {
                if let Some(mut stream) = connect(host) {
                    flood(&mut stream, &[b'a'; 65536]);
                }
            }
        });
        // Ones with a wrong token, as many as there is room for.
        scope.spawn(|| {
            while !is_over() {
                let Some(mut stream) = connect(host) else { continue };
                let _ = stream.write_all(format!("GET /?token=x HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
                if answer(&mut stream).0 == 403 {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        // Ones that know the token, ask for large or endless answers, and do not read them.
        scope.spawn(|| {
            let mut held = Vec::new();
            while !is_over() {
                for path in ["/events", "/report", "/"] {
                    if let Some(mut stream) = connect(host) {
                        let _ = stream.write_all(request(path).as_bytes());
                        held.push(stream);
                    }
                }
                if held.len() > 30 {
                    held.drain(..3).for_each(|mut stream| {
                        let _ = stream.read(&mut [0; 10]);
                    });
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    });
}

/// Attacks take neither time nor bits of a run: the processor's time, since that of clocks depends on what else the machine
/// does.
#[test]
fn attacks_neither_stop_nor_slow_a_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::field(false), &worlds::field(true)]);
    let words = |output: &'static str| {
        [
            "optimize",
            "scene.json",
            "-o",
            output,
            "--device",
            "cpu",
            "--iterations",
            "1500",
        ]
    };
    let alone = run_alone(folder.path(), &words("alone"));
    let served = Served::start(folder.path(), &words("attacked"));
    let (over, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    let (host, token) = (served.host.clone(), served.token.clone());
    let (went_well, seconds, clock) = std::thread::scope(|scope| {
        scope.spawn(|| attack(&host, &token, &over, &refused));
        let (went_well, seconds) = served.finish();
        over.store(true, Ordering::SeqCst);
        (went_well, seconds, begun.elapsed().as_secs_f64())
    });
    assert!(went_well, "the run came to its end");
    let refused = refused.load(Ordering::SeqCst);
    eprintln!(
        "{alone:.2} s of the processor alone, {seconds:.2} s under attack for {clock:.2} s; {refused} wrong tokens refused"
    );
    assert!(refused > 0, "attacks reached the server");
    // Clients that know the token look on, which may take a tenth; refusing the others takes a part of one core at most.
    assert!(
        seconds < 1.2 * alone + 0.15 * clock + 0.3,
        "{seconds} s of the processor instead of {alone} s, in {clock} s"
    );
    let [alone, attacked] = ["alone", "attacked"].map(|run| outcome(&folder.path().join(run)));
    assert!(alone == attacked, "attacks change no bit");
}
