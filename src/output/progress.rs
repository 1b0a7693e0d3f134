//! Display of a run's progress: a bar on a terminal, plain lines elsewhere, JSON for machines, or nothing.
//!
//! Everything for people goes to stderr; stdout carries data only.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::metrics::Figures;
use super::streams::{print_line, say_over_line};
use crate::device::gauge::Gauge;
use crate::tell;

/// Who reads the program's messages.
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

/// The display of an operation at work, which ends when this is dropped.
#[derive(Debug, Default)]
pub struct Busy(Option<(Sender<()>, JoinHandle<()>)>);

impl Busy {
    /// Calls `look(false)` at this interval from a thread, and `look(true)` once at the end.
    fn looking(interval: Duration, mut look: impl FnMut(bool) + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let watch = move || {
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(interval) {
                look(false);
            }
            look(true);
        };
        // If no thread can be started, nothing is shown.
        let thread = std::thread::Builder::new().spawn(watch).ok();
        Self(thread.map(|thread| (sender, thread)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Some((sender, thread)) = self.0.take() else { return };
        drop(sender);
        // A panic of the display must not end the operation that it shows.
        let _ = thread.join();
    }
}

/// The text, with the share that is done if it is known.
fn with_share(text: &str, share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{text}: {:.0} % done", 100.0 * share.min(1.0)),
        None => text.to_owned(),
    }
}

/// Weight of the newest iteration in the running mean of seconds per iteration.
const NEWEST: f64 = 0.05;

/// Time between plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of a run.
#[derive(Debug)]
pub struct Progress {
    style: Style,
    bar: ProgressBar,
    total: u32,
    /// When the last iteration ended; `pace` is the running mean of seconds per iteration.
    last_end: Instant,
    pace: Option<f64>,
    last_line: Option<Instant>,
}

impl Progress {
    /// A display that shows only notes until [`Progress::begin`].
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
            Style::Bar | Style::Lines => self.bar.suspend(|| tell!("{text}")),
        }
    }

    /// A function that prints sentences for people from another thread, at any time, over the terminal's echo of a key.
    pub fn speaker(&self) -> impl Fn(&str) + Send + 'static {
        let (style, bar) = (self.style, self.bar.clone());
        move |text| match style {
            Style::Quiet | Style::Json => {}
            Style::Lines => tell!("{text}"),
            Style::Bar => bar.suspend(|| say_over_line(text)),
        }
    }

    /// A sentence for people that a quiet run shows, too: something keeps the run from going on.
    pub fn alert(&self, text: &str) {
        match self.style {
            Style::Quiet => tell!("{text}"),
            _ => self.note(text),
        }
    }

    /// Shows that an operation is at work: on a terminal its elapsed time and the share that the device reports as done, in a log
    /// only that share, every five seconds.
    pub fn busy(&self, text: String, gauge: Gauge) -> Busy {
        match self.style {
            Style::Bar => {
                let bar = ProgressBar::new_spinner();
                if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {wide_msg}") {
                    bar.set_style(style);
                }
                Busy::looking(Duration::from_millis(200), move |ends| match ends {
                    true => bar.finish_and_clear(),
                    false => {
                        bar.set_message(with_share(&text, gauge.share()));
                        bar.tick();
                    }
                })
            }
            Style::Lines => Busy::looking(LINE_INTERVAL, move |ends| {
                if let (false, Some(share)) = (ends, gauge.share()) {
                    tell!("{}", with_share(&text, Some(share)));
                }
            }),
            Style::Json | Style::Quiet => Busy::default(),
        }
    }

    /// Whether progress is reported to a machine as lines of JSON.
    pub fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// A line for machines: an object with `event` as its first member.
    pub fn event(&self, name: &str, value: Value) {
        if self.style != Style::Json {
            return;
        }
        print_line(&event_line(name, value));
    }

    /// The iterations begin: `first` are done of `total`.
    pub fn begin(&mut self, first: u32, total: u32) {
        (self.total, self.last_end) = (total, Instant::now());
        if self.style == Style::Bar {
            // `wide_msg` is cut to the window's width, so that a line never wraps in a narrow window.
            let template = "{bar:24} {pos}/{len}  {wide_msg}";
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar.reset();
            self.bar.set_style(style);
            self.bar.set_length(total.into());
            self.bar.set_position(first.into());
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// The iterations go on after a pause, which is left out of the time per iteration.
    pub fn go_on(&mut self, pause: Duration) {
        self.last_end += pause;
    }

    /// One iteration is done.
    pub fn iteration(&mut self, figures: &Figures) {
        let seconds = self.last_end.elapsed().as_secs_f64();
        self.last_end = Instant::now();
        let pace = mean_with(self.pace, seconds);
        self.pace = Some(pace);
        match self.style {
            Style::Quiet => {}
            Style::Json => self.event("iteration", serde_json::to_value(figures).unwrap_or_default()),
            Style::Bar => {
                self.bar.set_message(summary(figures, pace, self.total));
                self.bar.set_position(figures.iteration.into());
            }
            Style::Lines => {
                let text = || summary(figures, pace, self.total);
                self.last_line = self.line(figures.iteration, text);
            }
        }
    }

    /// A step of an operation without iterations is done: `done` of them so far.
    pub fn advance(&mut self, done: u32, event: &Value) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.event("step", event.clone()),
            Style::Bar => self.bar.set_position(done.into()),
            Style::Lines => self.last_line = self.line(done, String::new),
        }
    }

    /// The iterations have ended, for whatever reason.
    pub fn end(&mut self) {
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Writes a plain line, if one is due, and returns when the last one was written.
    fn line(&self, done: u32, text: impl Fn() -> String) -> Option<Instant> {
        if !is_due(self.last_line.map(|at| at.elapsed()), done, self.total) {
            return self.last_line;
        }
        let line = format!("{done}/{}  {}", self.total, text());
        tell!("{}", line.trim_end());
        Some(Instant::now())
    }
}

/// The running (exponentially weighted) mean of times, updated by `newest`.
fn mean_with(mean: Option<f64>, newest: f64) -> f64 {
    mean.map_or(newest, |mean| mean + NEWEST * (newest - mean))
}

/// Whether a log line is due: the first one, [`LINE_INTERVAL`] after the last one, and at the end.
fn is_due(since: Option<Duration>, done: u32, total: u32) -> bool {
    since.is_none_or(|time| time >= LINE_INTERVAL) || done == total
}

/// The line that people see of an iteration, when one takes `pace` seconds.
fn summary(figures: &Figures, pace: f64, total: u32) -> String {
    let (loss, psnr, rate) = (figures.loss, decibels(figures.psnr), 1.0 / pace.max(1e-9));
    let left = duration(pace * f64::from(total.saturating_sub(figures.iteration)));
    format!("loss {loss:.4e}  PSNR {psnr}  {rate:.1} it/s  {left} left")
}

/// An event as a machine reads it: `event` first, then the members of `value`.
fn event_line(name: &str, value: Value) -> String {
    let mut line = serde_json::Map::new();
    line.insert("event".into(), name.into());
    if let Value::Object(members) = value {
        line.extend(members);
    }
    Value::Object(line).to_string()
}

/// A PSNR for people; none stands for an error of zero.
pub fn decibels(psnr: Option<f64>) -> String {
    psnr.map_or_else(|| "∞ dB".into(), |db| format!("{db:.2} dB"))
}

/// A number of iterations for people.
pub fn iterations(count: u32) -> String {
    match count {
        1 => "1 iteration".into(),
        _ => format!("{count} iterations"),
    }
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

    #[test]
    fn events_begin_with_their_name() {
        let line = event_line("note", json!({"text": "a", "event": "b"}));
        assert_eq!(line, r#"{"event":"b","text":"a"}"#, "members follow");
        assert_eq!(
            event_line("step", json!({"z": 1, "a": [2]})),
            r#"{"event":"step","z":1,"a":[2]}"#
        );
        assert_eq!(event_line("end", Value::Null), r#"{"event":"end"}"#);
    }

    /// A twentieth of the way to each new time: 2, then 2 + (4 - 2)/20, then 2.1 - (2.1 - 0.1)/20.
    #[test]
    fn the_pace_follows_the_newest_times() {
        assert_eq!(mean_with(None, 2.0), 2.0);
        assert!((mean_with(Some(2.0), 4.0) - 2.1).abs() < 1e-12);
        assert!((mean_with(Some(2.1), 0.1) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_log_has_a_line_at_the_beginning_every_five_seconds_and_at_the_end() {
        let since = |millis| Some(Duration::from_millis(millis));
        assert!(is_due(None, 1, 9) && is_due(since(5000), 2, 9) && is_due(since(60_000), 3, 9));
        assert!(!is_due(since(4999), 2, 9) && !is_due(since(0), 8, 9));
        assert!(is_due(since(0), 9, 9));
        // A written line returns its time; one that is not due leaves the earlier time.
        let mut progress = Progress::new(Style::Lines);
        progress.begin(0, 3);
        assert!(progress.line(1, String::new).is_some());
        let earlier = Instant::now();
        progress.last_line = Some(earlier);
        assert_eq!(progress.line(2, || panic!("no line is due")), Some(earlier));
        assert!(progress.line(3, String::new).is_some_and(|at| at >= earlier));
        progress.advance(2, &Value::Null);
        assert_eq!(progress.last_line, Some(earlier));
        progress.advance(3, &Value::Null);
        assert_ne!(progress.last_line, Some(earlier));
    }

    fn figures(iteration: u32, psnr: Value) -> Figures {
        let replay = json!({"rays": 0, "samples": 0, "drifted": 0});
        let ms = json!({"primal": 0, "loss": 0, "adjoint": 0, "regularise": 0, "step": 0, "rebuild": 0, "total": 0});
        let text = json!({"iteration": iteration, "stage": 1, "loss": 0.0125, "psnr": psnr, "penalty": 0,
            "learning_rate_factor": 1, "learning_rates": {}, "gradient_norms": {}, "masked": 0, "replay": replay,
            "ms": ms, "memory_bytes": 0, "seconds": 0});
        serde_json::from_value(text).expect("figures")
    }

    #[test]
    fn a_bar_stands_where_the_run_does() {
        let mut progress = Progress::new(Style::Bar);
        progress.begin(3, 34);
        assert_eq!((progress.bar.position(), progress.bar.length()), (3, Some(34)));
        progress.iteration(&figures(10, json!(21.5)));
        assert_eq!(progress.bar.position(), 10);
        let pace = progress.pace.expect("an iteration is done");
        assert_eq!(progress.bar.message(), summary(&figures(10, json!(21.5)), pace, 34));
        progress.advance(12, &Value::Null);
        assert_eq!(progress.bar.position(), 12);
        progress.end();
        assert!(progress.bar.is_finished() && progress.bar.is_hidden());
        progress.begin(0, 5);
        assert!(!progress.bar.is_finished());
        assert_eq!((progress.bar.position(), progress.bar.length()), (0, Some(5)));
    }

    #[test]
    fn an_iteration_is_summed_up_with_its_rate_and_what_is_left() {
        let of = figures;
        assert_eq!(
            summary(&of(10, json!(21.5)), 0.25, 34),
            "loss 1.2500e-2  PSNR 21.50 dB  4.0 it/s  6 s left"
        );
        assert!(
            summary(&of(40, Value::Null), 0.25, 34).ends_with("0 s left"),
            "beyond the end"
        );
        // The pace is measured from one iteration to the next.
        let mut progress = Progress::new(Style::Quiet);
        progress.begin(0, 34);
        for i in 1..3 {
            let before = Instant::now();
            progress.iteration(&of(i, Value::Null));
            assert!(progress.last_end >= before && progress.pace.is_some());
        }
        // A pause longer than the time since the last iteration leaves a pace of zero.
        let mut progress = Progress::new(Style::Quiet);
        progress.begin(0, 34);
        progress.go_on(Duration::from_secs(3600));
        progress.iteration(&of(1, Value::Null));
        assert_eq!(progress.pace, Some(0.0));
        assert_eq!(
            summary(&of(40, Value::Null), 0.0, 34),
            "loss 1.2500e-2  PSNR ∞ dB  1000000000.0 it/s  0 s left"
        );
    }
}
