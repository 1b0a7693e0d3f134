//! Errors of values on the command line: the parsers' own messages say how Rust reads numbers, not what to give.

use std::error::Error as _;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// The same error with a reason that says what was expected, if the reason is one of the standard library's or of clap's
/// ranges.
pub(super) fn explained(error: Error, command: &Command) -> Error {
    let reason = error.source().and_then(|source| expected(&source.to_string()));
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    match (reason, text(ContextKind::InvalidValue), text(ContextKind::InvalidArg)) {
        (Some(reason), Some(value), Some(option)) if error.kind() == ErrorKind::ValueValidation => {
            let message =
                format!("invalid value '{value}' for '{option}': {reason}\n\nFor more information, try '--help'.\n");
            Error::raw(error.kind(), message).with_cmd(command)
        }
        _ => error,
    }
}

/// What was expected, by the message of a parser.
fn expected(message: &str) -> Option<String> {
    if let Some((_, range)) = message.split_once(" is not in ") {
        return match range.split_once("..")? {
            (least, "") => Some(format!("expected a whole number from {least}")),
            (least, most) => Some(format!(
                "expected a whole number from {least} to {}",
                most.trim_start_matches('=')
            )),
        };
    }
    let words = match message {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "expected a whole number, not below zero"
        }
        "number too large to fit in target type" | "number too small to fit in target type" => {
            "expected a whole number, and one nearer to zero"
        }
        "invalid float literal" | "cannot parse float from empty string" => "expected a number",
        "invalid socket address syntax" => "expected a numeric address and a port, such as 127.0.0.1:8000",
        _ => return None,
    };
    Some(words.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages are those of the standard library and of clap, which may change with their versions.
    #[test]
    fn parsers_reasons_become_what_is_expected() {
        let of = |text: &str| expected(text).unwrap_or_else(|| panic!("`{text}` is not known"));
        let integer = |text: &str| of(&text.parse::<u64>().expect_err("no number").to_string());
        assert_eq!(integer("-1"), "expected a whole number, not below zero");
        assert_eq!(integer(""), "expected a whole number, not below zero");
        assert_eq!(
            integer("99999999999999999999"),
            "expected a whole number, and one nearer to zero"
        );
        for text in ["x", ""] {
            assert_eq!(
                of(&text.parse::<f64>().expect_err("no number").to_string()),
                "expected a number"
            );
        }
        let address = "localhost:8123".parse::<std::net::SocketAddr>();
        assert!(of(&address.expect_err("a name").to_string()).contains("such as 127.0.0.1:8000"));
        assert_eq!(
            of("0 is not in 1..=1048576"),
            "expected a whole number from 1 to 1048576"
        );
        assert_eq!(of("0 is not in 1.."), "expected a whole number from 1");
        assert_eq!(expected("expected finite numbers"), None);
    }
}
