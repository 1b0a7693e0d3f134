//! Who may ask: a token that only the printed address holds, and names of this machine in `Host`.
//!
//! The token keeps out other users of the machine, who can reach a local address. The check of `Host` keeps out pages of
//! other sites, whose own names could be made to point to this machine (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use super::http::Request;

/// Checks the token, host and origin of requests.
#[derive(Debug)]
pub(super) struct Guard {
    token: String,
    /// Whether only this machine can reach the server.
    is_local: bool,
}

/// Bytes of a token.
const TOKEN: usize = 16;

impl Guard {
    /// A guard with a new random token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(address: SocketAddr) -> std::io::Result<Self> {
        let mut bytes = [0; TOKEN];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Self {
            token: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            is_local: address.ip().is_loopback(),
        })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Whether a request may be answered.
    pub(super) fn admits(&self, request: &Request) -> bool {
        let same_site = |origin: &String| origin.strip_prefix("http://") == Some(&request.host[..]);
        self.knows(&request.host)
            && request.origin.as_ref().is_none_or(same_site)
            && request.asked("token").is_some_and(|token| self.is_token(token))
    }

    /// Compares all of a token, so that the time taken does not tell how much of it is right.
    fn is_token(&self, token: &str) -> bool {
        let (given, held) = (token.as_bytes(), self.token.as_bytes());
        let differing = given.iter().zip(held).fold(0, |differing, (a, b)| differing | (a ^ b));
        given.len() == held.len() && differing == 0
    }

    /// Whether `Host` names this machine, by `localhost` or an address, which is never another site's name. A tunnel may
    /// have any port.
    fn knows(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        match bare.parse::<IpAddr>() {
            Ok(address) => !self.is_local || address.is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::http::Method;

    fn guard(address: &str) -> Guard {
        Guard::new(address.parse().expect("an address")).expect("random numbers")
    }

    fn request(host: &str, token: &str, origin: Option<&str>) -> Request {
        Request {
            method: Method::Get,
            path: "/".into(),
            query: format!("token={token}"),
            host: host.into(),
            origin: origin.map(str::to_owned),
            body: Vec::new(),
        }
    }

    #[test]
    fn only_names_of_this_machine_are_known() {
        let local = guard("127.0.0.1:7878");
        for (host, known) in [
            ("127.0.0.1:7878", true),
            ("localhost:9000", true),
            ("LocalHost", true),
            ("[::1]:7878", true),
            ("192.168.0.7:7878", false),
            ("evil.example:7878", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(local.knows(host), known, "{host}");
        }
        let open = guard("0.0.0.0:7878");
        assert!(open.knows("192.168.0.7:7878") && !open.knows("evil.example:7878"));
    }

    #[test]
    fn tokens_are_whole_and_their_own() {
        let (guard, other) = (guard("127.0.0.1:1"), guard("127.0.0.1:1"));
        let token = guard.token().to_owned();
        assert_eq!(token.len(), 2 * TOKEN);
        assert!(guard.admits(&request("localhost", &token, None)));
        assert!(guard.admits(&request("localhost:1", &token, Some("http://localhost:1"))));
        for (host, token, origin) in [
            ("localhost", other.token(), None),
            ("localhost", &token[1..], None),
            ("localhost", "", None),
            ("evil.example", &token, None),
            ("localhost", &token, Some("http://evil.example")),
            ("localhost", &token, Some("null")),
        ] {
            assert!(
                !guard.admits(&request(host, token, origin)),
                "{host} {token} {origin:?}"
            );
        }
    }
}
