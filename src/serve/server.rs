//! The server: a thread that accepts, and one for each connection, all bounded.
//!
//! Connections at a time and a second, bytes of a request, and time for each are bounded, so that hostile clients cannot
//! exhaust the machine.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::guard::Guard;
use super::http::{self, Answer, Method, Request};
use super::reports::Reports;

/// Connections at a time.
const CONNECTIONS: usize = 48;
/// Connections a second in the long run, and how many may come at once.
const RATE: f64 = 100.0;
const BURST: f64 = 100.0;
/// Time after which a stream of events without news sends a comment, so that the connection is seen to be alive.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// All that answers to requests are made from.
#[derive(Debug)]
pub(super) struct Site {
    pub guard: Guard,
    pub desk: Arc<Desk>,
    pub reports: Reports,
    /// The page itself.
    pub page: Arc<[u8]>,
}

/// A server at work, until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to answer.
    ///
    /// # Errors
    /// The system has no thread.
    pub(super) fn start(listener: TcpListener, site: Arc<Site>) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let thread = std::thread::Builder::new()
            .name("page".into())
            .spawn(move || accept(&listener, &site, &closed))?;
        Ok(Self {
            address,
            closing,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        // The thread blocks in `accept`: a connection wakes it.
        let mut near = self.address;
        if near.ip().is_unspecified() {
            near.set_ip(match near {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let woken = TcpStream::connect_timeout(&near, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// Limits connections to [`RATE`] a second, with bursts of [`BURST`]: a token bucket.
#[derive(Debug)]
struct Turnstile {
    left: f64,
    at: Instant,
}

impl Turnstile {
    fn new(now: Instant) -> Self {
        Self { left: BURST, at: now }
    }

    /// Takes a token, and returns how long a connection that comes now has to wait for it.
    fn pass(&mut self, now: Instant) -> Duration {
        self.left = (self.left + RATE * (now - self.at).as_secs_f64()).min(BURST) - 1.0;
        self.at = now;
        Duration::from_secs_f64((-self.left / RATE).max(0.0))
    }
}

/// A place among the connections, given back when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = Arc::clone(taken);
        if taken.fetch_add(1, Ordering::SeqCst) < CONNECTIONS {
            return Some(Self(taken));
        }
        taken.fetch_sub(1, Ordering::SeqCst);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn accept(listener: &TcpListener, site: &Arc<Site>, closing: &AtomicBool) {
    let taken = Arc::new(AtomicUsize::new(0));
    let mut turnstile = Turnstile::new(Instant::now());
    loop {
        let accepted = listener.accept();
        if closing.load(Ordering::SeqCst) {
            return;
        }
        std::thread::sleep(turnstile.pass(Instant::now()));
        match accepted {
            Ok((stream, _)) => {
                // Without a place, or a thread, the connection is dropped, which closes it.
                let Some(place) = Place::take(&taken) else { continue };
                let site = Arc::clone(site);
                let work = move || {
                    serve(stream, &site);
                    drop(place);
                };
                let _ = std::thread::Builder::new().name("page reader".into()).spawn(work);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Out of file descriptors, for instance: others may be closed meanwhile.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn serve(mut stream: TcpStream, site: &Site) {
    let _ = stream.set_nodelay(true);
    let request = match http::read_request(&mut stream) {
        Ok(request) => request,
        Err(refusal) => return http::write_answer(&mut stream, &refusal.into()),
    };
    if !site.guard.admits(&request) {
        let text = "this address is not the one that was printed when the run began: it holds a token";
        return http::write_answer(&mut stream, &Answer::text(403, text));
    }
    if (request.method, &request.path[..]) == (Method::Get, "/events") {
        return events(&mut stream, site);
    }
    let report = site.desk.newest_report();
    http::write_answer(&mut stream, &answer(&request, site));
    if request.path == "/report" {
        site.desk.report_was_read(report);
    }
}

fn answer(request: &Request, site: &Site) -> Answer {
    let nothing = || Answer::text(404, "there is nothing here");
    match (request.method, &request.path[..]) {
        (Method::Get, "/") => Answer::html(Arc::clone(&site.page)),
        (Method::Get, "/picture") => match site.desk.picture() {
            none if none.is_empty() => nothing(),
            picture => Answer::png(picture),
        },
        (Method::Get, "/report") => site.reports.page().map_or_else(nothing, Answer::html),
        (Method::Get, _) => nothing(),
        (Method::Post, path) => match site.desk.command(path, &request.body) {
            Some(Ok(answer)) => Answer::text(200, &answer),
            Some(Err(refused)) => Answer::text(400, &refused.0),
            None => nothing(),
        },
    }
}

/// Sends news until all is over, or the client has gone or reads too slowly.
fn events(stream: &mut TcpStream, site: &Site) {
    let Some(mut reader) = site.desk.follow() else {
        return http::write_answer(stream, &Answer::text(503, "too many pages follow this run: close one"));
    };
    if !http::begin_events(stream) {
        return;
    }
    while let Some(text) = reader.events(KEEP_ALIVE) {
        let text = if text.is_empty() { ":\n\n".into() } else { text };
        if !http::write_all(stream, text.as_bytes(), Instant::now() + http::REQUEST_TIME) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst is not delayed, and a flood passes at [`RATE`].
    #[test]
    fn floods_pass_at_a_bounded_rate() {
        let mut now = Instant::now();
        let begun = now;
        let mut turnstile = Turnstile::new(now);
        for _ in 0..BURST as usize {
            assert_eq!(turnstile.pass(now), Duration::ZERO);
        }
        for _ in 0..1000 {
            now += turnstile.pass(now);
        }
        let seconds = (now - begun).as_secs_f64();
        assert!((seconds - 1000.0 / RATE).abs() < 0.1, "{seconds}");
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let taken = Arc::new(AtomicUsize::new(0));
        let all: Vec<Place> = std::iter::from_fn(|| Place::take(&taken)).collect();
        assert_eq!(all.len(), CONNECTIONS);
        drop(all);
        assert!(Place::take(&taken).is_some());
    }
}
