//! `run.json`: who ran what, where and when.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::device::DeviceInfo;
use crate::io::{self, atomic, read_at_most};

/// The facts about a run when it begins or is resumed.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    pub version: String,
    pub scene: String,
    pub device: DeviceInfo,
    /// The device's arithmetic, which with scene and seed decides the bits of the results.
    pub arithmetic: String,
    pub seed: u64,
    pub iterations: u32,
    pub command: Vec<String>,
    pub threads: usize,
    /// UTC, ISO 8601.
    pub started: String,
}

/// What a record states about the run that it is of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stated {
    pub scene: String,
    pub seed: u64,
    pub iterations: u32,
}

/// Largest file that is read again, in bytes; that of a scene file.
const MAX_BYTES: u64 = 1 << 28;

/// What the record at `path` states; None if there is no such file, or another program has written it.
pub fn read(path: &Path) -> Option<Stated> {
    serde_json::from_value(read_json(path)?).ok()
}

/// Writes the record. If the run is resumed and `path` holds a record, that one stays and this one is added to its list
/// `resumed`.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, record: &Record, resumed_at: Option<u32>) -> io::Result<()> {
    let mut now = serde_json::to_value(record).unwrap_or(Value::Null);
    let earlier = resumed_at.and_then(|iteration| {
        now["from_iteration"] = json!(iteration);
        serde_json::from_slice::<Value>(&std::fs::read(path).ok()?).ok()
    });
    let whole = match earlier {
        Some(mut first) if first.is_object() => {
            let mut list = first["resumed"].take();
            match list.as_array_mut() {
                Some(list) => list.push(now),
                None => list = json!([now]),
            }
            first["resumed"] = list;
            first
        }
        _ => now,
    };
    write_json(path, &whole)
}

/// Reads JSON that [`write_json`] has written; None if there is no such file, or it is none.
pub fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&read_at_most(path, MAX_BYTES).ok()?).ok()
}

/// Writes indented JSON.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, value: &Value) -> io::Result<()> {
    atomic::write_bytes(path, format!("{value:#}\n").as_bytes())
}

/// The time now: UTC, ISO 8601, to the second.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date_time(seconds)
}

/// Seconds since 1970 as a date and time of the Gregorian calendar.
fn date_time(seconds: u64) -> String {
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let (month, day) = (month + 1, days + 1);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_time(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(date_time(4_102_444_800), "2100-01-01T00:00:00Z");
    }

    #[test]
    fn going_on_keeps_the_first_record() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("run.json");
        let mut record = Record {
            version: "1".into(),
            scene: "a.json".into(),
            device: DeviceInfo {
                kind: "cpu",
                name: "n".into(),
                detail: "d".into(),
            },
            arithmetic: "x".into(),
            seed: 1,
            iterations: 5,
            command: vec!["prbopt".into()],
            threads: 1,
            started: "first".into(),
        };
        assert_eq!(super::read(&path), None);
        write(&path, &record, None).expect("writable");
        for at in [2, 4] {
            record.started = format!("at {at}");
            write(&path, &record, Some(at)).expect("writable");
        }
        let read: Value = serde_json::from_slice(&std::fs::read(&path).expect("there")).expect("JSON");
        assert_eq!(read["started"], "first");
        let stated = Stated {
            scene: "a.json".into(),
            seed: 1,
            iterations: 5,
        };
        assert_eq!(super::read(&path), Some(stated));
        std::fs::write(&path, r#"{"scene": "of another program"}"#).expect("writable");
        assert_eq!(super::read(&path), None);
        assert_eq!(read["resumed"][1]["from_iteration"], 4);
        assert_eq!(read["resumed"].as_array().map(Vec::len), Some(2));
    }

    /// Compares every day of 150 years with a calendar that counts day by day.
    #[test]
    fn days_follow_one_another() {
        let [mut year, mut month, mut day] = [1970, 1, 1];
        for days in 0..55_000u64 {
            let expected = format!("{year:04}-{month:02}-{day:02}T07:08:09Z");
            assert_eq!(date_time(days * 86_400 + 7 * 3600 + 8 * 60 + 9), expected);
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i32::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn now_lies_between_before_and_after() {
        let clock = || {
            let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
            date_time(elapsed.expect("after 1970").as_secs())
        };
        let (before, now, after) = (clock(), now(), clock());
        assert!(before <= now && now <= after, "{before} {now} {after}");
    }
}
