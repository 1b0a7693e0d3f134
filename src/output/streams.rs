//! Standard output and standard error. `println!` and `eprintln!` panic where nothing can be written: a closed pipe or a full disk
//! behind them must not end a run.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

use super::printable::printable;

/// The first error of writing data to standard output; a closed pipe is not one.
static LOST: Mutex<Option<String>> = Mutex::new(None);

/// Prints a line of data. A reader that has gone away is no error: what was computed is in the run's folder.
pub fn print_line(line: &str) {
    print_bytes(format!("{line}\n").as_bytes());
}

/// Prints data as it is; a closed pipe, as of a pager that was quit, is not an error.
pub fn print_bytes(bytes: &[u8]) {
    keep(io::stdout().lock().write_all(bytes));
}

/// Prints a line for people to standard error, for [`tell!`](crate::tell): names in it are made fit for a terminal. Errors of
/// writing are ignored.
pub fn say(text: Arguments) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(&text.to_string()));
}

/// Prints a line for people over what stands in the terminal's line, such as the echo of a key.
pub fn say_over_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "\r\x1b[2K{}", printable(text));
}

/// Prints a line for people to standard error, formatted as by `eprintln!`.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::streams::say(format_args!($($text)*)) };
}

/// Flushes standard output, and returns the error by which data was lost, if any was.
pub fn finish() -> Option<String> {
    keep(io::stdout().lock().flush());
    LOST.lock().ok()?.take()
}

/// Remembers the error of what was `written` to standard output, for [`finish`].
pub fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && let Ok(mut lost) = LOST.lock()
    {
        lost.get_or_insert(error.to_string());
    }
}
