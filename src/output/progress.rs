//! How a run is told about: a bar on a terminal, plain lines elsewhere, JSON for machines, or nothing.
//!
//! Everything for people goes to stderr; stdout carries data only.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::metrics::Figures;

/// Whom the program talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A person at a terminal.
    Bar,
    /// A log.
    Lines,
    /// A machine: one JSON line an event on stdout.
    Json,
    /// Nobody; errors only.
    Quiet,
}

impl Style {
    /// The style that the flags ask for.
    pub fn choose(quiet: bool, json: bool) -> Self {
        if json {
            Self::Json
        } else if quiet {
            Self::Quiet
        } else if std::io::stderr().is_terminal() {
            Self::Bar
        } else {
            Self::Lines
        }
    }
}

/// Weight of the newest iteration in the mean of their times.
const NEWEST: f64 = 0.05;

/// Time between plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Tells how a run goes.
#[derive(Debug)]
pub struct Progress {
    style: Style,
    bar: ProgressBar,
    total: u32,
    /// When the last iteration ended, and how many seconds one takes, the newest counting most.
    last_end: Instant,
    pace: Option<f64>,
    last_line: Option<Instant>,
}

impl Progress {
    /// Nothing is shown before [`Progress::begin`] but notes.
    pub fn new(style: Style) -> Self {
        Self {
            style,
            bar: ProgressBar::hidden(),
            total: 0,
            last_end: Instant::now(),
            pace: None,
            last_line: None,
        }
    }

    /// A sentence for people.
    pub fn note(&self, text: &str) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.event("note", json!({ "text": text })),
            Style::Bar | Style::Lines => self.bar.suspend(|| eprintln!("{text}")),
        }
    }

    /// A sentence for people that also a quiet run says: something keeps it from going on.
    pub fn alert(&self, text: &str) {
        match self.style {
            Style::Quiet => eprintln!("{text}"),
            _ => self.note(text),
        }
    }

    /// A line for machines: an object with `event` as its first member.
    pub fn event(&self, name: &str, value: Value) {
        if self.style != Style::Json {
            return;
        }
        let mut line = serde_json::Map::new();
        line.insert("event".into(), name.into());
        if let Value::Object(members) = value {
            line.extend(members);
        }
        print_line(&Value::Object(line).to_string());
    }

    /// The iterations begin: `first` are done of `total`.
    pub fn begin(&mut self, first: u32, total: u32) {
        (self.total, self.last_end) = (total, Instant::now());
        if self.style == Style::Bar {
            // What is wide gives way, so that a narrow window is never broken by a line that does not fit.
            let template = "{bar:24} {pos}/{len}  {wide_msg}";
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = ProgressBar::new(total.into()).with_style(style);
            self.bar.set_position(first.into());
            self.bar.reset_eta();
        }
    }

    /// One iteration is done.
    pub fn iteration(&mut self, figures: &Figures) {
        let seconds = self.last_end.elapsed().as_secs_f64();
        self.last_end = Instant::now();
        self.pace = Some(self.pace.map_or(seconds, |pace| pace + NEWEST * (seconds - pace)));
        match self.style {
            Style::Quiet => {}
            Style::Json => self.event("iteration", serde_json::to_value(figures).unwrap_or_default()),
            Style::Bar => {
                let left = duration(self.seconds_left(figures.iteration));
                self.bar.set_message(format!("{}  {left} left", self.summary(figures)));
                self.bar.set_position(figures.iteration.into());
            }
            Style::Lines => {
                let due = self.last_line.is_none_or(|at| at.elapsed() >= LINE_INTERVAL);
                if due || figures.iteration == self.total {
                    self.last_line = Some(Instant::now());
                    let left = self.seconds_left(figures.iteration);
                    let text = self.summary(figures);
                    eprintln!("{}/{}  {text}  {} left", figures.iteration, self.total, duration(left));
                }
            }
        }
    }

    /// One of the steps that are not iterations is done.
    pub fn advance(&mut self, done: u32, event: &Value) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.event("step", event.clone()),
            Style::Bar => self.bar.set_position(done.into()),
            Style::Lines => {
                if self.last_line.is_none_or(|at| at.elapsed() >= LINE_INTERVAL) || done == self.total {
                    self.last_line = Some(Instant::now());
                    eprintln!("{done}/{}", self.total);
                }
            }
        }
    }

    /// The iterations have ended, for whatever reason.
    pub fn end(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }

    fn summary(&self, figures: &Figures) -> String {
        let rate = 1.0 / self.pace.unwrap_or(f64::INFINITY).max(1e-9);
        let psnr = decibels(figures.psnr);
        format!("loss {:.4e}  PSNR {psnr}  {rate:.1} it/s", figures.loss)
    }

    fn seconds_left(&self, done: u32) -> f64 {
        self.pace.unwrap_or(0.0) * f64::from(self.total.saturating_sub(done))
    }
}

/// Prints a line of data. A reader that has gone away is no error: what was computed is in the run's folder.
pub fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A PSNR for people; none stands for an error of zero.
pub fn decibels(psnr: Option<f64>) -> String {
    psnr.map_or_else(|| "∞ dB".into(), |db| format!("{db:.2} dB"))
}

/// Seconds for people.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.clamp(0.0, 1e9).round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, _) if 0.0 < seconds && seconds < 0.995 => format!("{seconds:.2} s"),
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// A number of bytes for people.
pub fn bytes(count: u64) -> String {
    let kib = count as f64 / 1024.0;
    let (size, unit) = match kib {
        ..1.0 => return format!("{count} bytes"),
        ..1024.0 => (kib, "KiB"),
        ..1048576.0 => (kib / 1024.0, "MiB"),
        _ => (kib / 1048576.0, "GiB"),
    };
    match size >= 10.0 && unit != "GiB" {
        true => format!("{size:.0} {unit}"),
        false => format!("{size:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        assert_eq!(duration(59.6), "1 min 00 s");
        assert_eq!(
            (duration(61.4), duration(3599.0)),
            ("1 min 01 s".into(), "59 min 59 s".into())
        );
        assert_eq!(
            (duration(0.994), duration(12.0), duration(-1.0)),
            ("0.99 s".into(), "12 s".into(), "0 s".into())
        );
        assert_eq!(
            (duration(7200.0), duration(90_061.0)),
            ("2 h 00 min".into(), "25 h 01 min".into())
        );
        assert_eq!((bytes(1023), bytes(1024)), ("1023 bytes".into(), "1.00 KiB".into()));
        assert_eq!(
            (bytes(1 << 20), bytes(10 << 20), bytes(1 << 30)),
            ("1.00 MiB".into(), "10 MiB".into(), "1.00 GiB".into())
        );
        assert_eq!(bytes(20 << 30), "20.00 GiB");
        assert_eq!(
            (decibels(None), decibels(Some(30.126))),
            ("∞ dB".into(), "30.13 dB".into())
        );
        assert_eq!(duration(3723.0), "1 h 02 min");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(5 << 19), "2.50 MiB");
        assert_eq!(
            (bytes(1500), bytes(99 << 10), bytes(12)),
            ("1.46 KiB".into(), "99 KiB".into(), "12 bytes".into())
        );
        assert_eq!(
            (duration(0.0), duration(0.114), duration(0.999)),
            ("0 s".into(), "0.11 s".into(), "1 s".into())
        );
        assert_eq!(decibels(None), "∞ dB");
    }
}
