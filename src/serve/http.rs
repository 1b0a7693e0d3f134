//! Requests and answers of HTTP/1.1, one a connection, within bounds of size and time.
//!
//! A client may be slow, silent or endless: a request has [`REQUEST_TIME`] in all, however its bytes come, and an answer
//! [`ANSWER_TIME`].

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a request may take, from the connection to its last byte.
pub(super) const REQUEST_TIME: Duration = Duration::from_secs(5);
/// What an answer may take to be read.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Bytes of a request's line and headers at most.
const HEAD_BYTES: usize = 8 << 10;
/// Bytes of a request's body at most.
const BODY_BYTES: usize = 4 << 10;
const HEADERS: usize = 64;

/// The HTTP methods that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

/// A request that was read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub method: Method,
    pub path: String,
    /// What follows the question mark of its target.
    pub query: String,
    pub host: String,
    pub origin: Option<String>,
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a name in the query, without percent-decoding.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

/// Why a request is refused: the status code and a sentence of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    pub reason: &'static str,
}

fn refusal(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

/// Reads a request. The search for the end of the headers visits each byte once, however few come at a time.
///
/// # Errors
/// It is malformed, too large, or did not come in time.
pub(super) fn read_request(stream: &mut TcpStream) -> Result<Request, Refusal> {
    let end = Instant::now() + REQUEST_TIME;
    let mut bytes = Vec::new();
    let head = loop {
        let before = bytes.len();
        if before >= HEAD_BYTES {
            return Err(refusal(431, "the headers are too long"));
        }
        read_some(stream, &mut bytes, HEAD_BYTES - before, end)?;
        let from = before.saturating_sub(3);
        if let Some(at) = bytes[from..].windows(4).position(|w| w == b"\r\n\r\n") {
            break from + at + 4;
        }
    };
    let (mut request, length) = parse_head(&bytes[..head])?;
    if length > BODY_BYTES {
        return Err(refusal(413, "the body is too long"));
    }
    request.body = bytes.split_off(head);
    while request.body.len() < length {
        let missing = length - request.body.len();
        read_some(stream, &mut request.body, missing, end)?;
    }
    request.body.truncate(length);
    Ok(request)
}

/// Appends the bytes that arrive next, at most `most`.
fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>, most: usize, end: Instant) -> Result<(), Refusal> {
    let late = refusal(408, "the request did not come in time");
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
        return Err(late);
    }
    let mut part = [0; HEAD_BYTES];
    let most = most.min(part.len());
    match stream.read(&mut part[..most]) {
        Ok(0) => Err(refusal(400, "the request ends too early")),
        Ok(count) => {
            bytes.extend_from_slice(&part[..count]);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        Err(_) => Err(late),
    }
}

/// The request line and headers, and the length of the body that follows.
fn parse_head(head: &[u8]) -> Result<(Request, usize), Refusal> {
    let malformed = refusal(400, "this is no HTTP/1.1 request");
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(refusal(431, "there are too many headers")),
        _ => return Err(malformed),
    }
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("POST") => Method::Post,
        _ => return Err(refusal(405, "only GET and POST are answered")),
    };
    let one = |name: &str| -> Result<Option<String>, Refusal> {
        let mut found = parsed.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
        let first = found.next();
        let text = first.map(|h| std::str::from_utf8(h.value).map(|t| t.trim().to_owned()));
        match (text, found.next()) {
            (Some(Err(_)), _) | (_, Some(_)) => Err(malformed),
            (text, None) => Ok(text.and_then(Result::ok)),
        }
    };
    if one("transfer-encoding")?.is_some() {
        return Err(refusal(501, "bodies are of a stated length"));
    }
    let length = match one("content-length")? {
        None => 0,
        Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            // A number of digits only fails to parse if it is too large for usize.
            text.parse().unwrap_or(usize::MAX)
        }
        Some(_) => return Err(malformed),
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        host: one("host")?.ok_or(malformed)?,
        origin: one("origin")?,
        body: Vec::new(),
    };
    Ok((request, length))
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub kind: &'static str,
    pub body: Arc<[u8]>,
}

impl Answer {
    /// A sentence.
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{text}\n").into_bytes().into(),
        }
    }

    pub(super) fn html(body: impl Into<Arc<[u8]>>) -> Self {
        Self {
            status: 200,
            kind: "text/html; charset=utf-8",
            body: body.into(),
        }
    }

    pub(super) fn png(body: Arc<[u8]>) -> Self {
        Self {
            status: 200,
            kind: "image/png",
            body,
        }
    }
}

impl From<Refusal> for Answer {
    fn from(of: Refusal) -> Self {
        Self::text(of.status, of.reason)
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        _ => "Service Unavailable",
    }
}

/// Headers of every answer: browsers do not cache it, guess its type or pass its address on as a referrer, and it loads
/// nothing from other sites.
const COMMON: &str = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; \
    form-action 'none'\r\n";

/// Writes an answer and hangs up.
pub(super) fn write_answer(stream: &mut TcpStream, answer: &Answer) {
    let (status, length) = (answer.status, answer.body.len());
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n{COMMON}\r\n",
        phrase(status),
        answer.kind
    );
    let end = Instant::now() + ANSWER_TIME;
    if write_all(stream, head.as_bytes(), end) && write_all(stream, &answer.body, end) {
        hang_up(stream);
    }
}

/// The head of a stream of events.
pub(super) fn begin_events(stream: &mut TcpStream) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{COMMON}\r\n");
    write_all(stream, head.as_bytes(), Instant::now() + ANSWER_TIME)
}

/// Whether all bytes were taken before `end`.
pub(super) fn write_all(stream: &mut TcpStream, mut bytes: &[u8], end: Instant) -> bool {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_write_timeout(Some(left)).is_err() {
            return false;
        }
        match stream.write(bytes) {
            Ok(0) => return false,
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

/// Closes a connection so that the answer arrives: the system would discard it if received bytes were left unread.
fn hang_up(stream: &mut TcpStream) {
    const BYTES: usize = 16 << 10;
    let end = Instant::now() + Duration::from_millis(250);
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut rest = Vec::new();
    while rest.len() < BYTES && read_some(stream, &mut rest, BYTES, end).is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<(Request, usize), u16> {
        parse_head(text.as_bytes()).map_err(|refusal| refusal.status)
    }

    #[test]
    fn heads_are_taken_apart() {
        let text =
            "POST /view?token=ab&x=1 HTTP/1.1\r\nhOsT: localhost:7878 \r\nContent-Length: 12\r\nOrigin: null\r\n\r\n";
        let (request, length) = head(text).expect("a request");
        assert_eq!((request.method, &request.path[..], length), (Method::Post, "/view", 12));
        assert_eq!(
            (request.asked("token"), request.asked("x"), request.asked("y")),
            (Some("ab"), Some("1"), None)
        );
        assert_eq!(
            (&request.host[..], request.origin.as_deref()),
            ("localhost:7878", Some("null"))
        );
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let get = |headers: &str| head(&format!("GET / HTTP/1.1\r\n{headers}\r\n"));
        for (found, status) in [
            (head("nonsense\r\n\r\n"), 400),
            (head("PUT / HTTP/1.1\r\nHost: a\r\n\r\n"), 405),
            (get(""), 400),
            (get("Host: a\r\nHost: b\r\n"), 400),
            (get("Host: a\r\nContent-Length: -1\r\n"), 400),
            (get("Host: a\r\nContent-Length: +1\r\n"), 400),
            (get("Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n"), 400),
            (get("Host: a\r\nTransfer-Encoding: chunked\r\n"), 501),
            (get(&format!("Host: a\r\n{}", "X: y\r\n".repeat(HEADERS))), 431),
        ] {
            assert_eq!(found.err(), Some(status));
        }
        let (_, length) = get("Host: a\r\nContent-Length: 99999999999999999999999\r\n").expect("a request");
        assert_eq!(length, usize::MAX);
    }
}
