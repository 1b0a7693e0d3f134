//! The state that the run and its pages share: events for the pages, and commands and orders of views from them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::wanted::{Choice, Wanted};

/// Pages that may follow the events at a time.
const READERS: usize = 8;

/// The kinds of news, by the names of their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Figures of the last iteration.
    Figures,
    /// Whether the run is at work, paused or over.
    Standing,
    /// A new picture, and what it shows.
    Picture,
    /// A new report.
    Report,
    /// A checkpoint that was asked for is on the disk.
    Saved,
}

const TOPICS: [(Topic, &str); 5] = [
    (Topic::Saved, "saved"),
    (Topic::Figures, "figures"),
    (Topic::Standing, "standing"),
    (Topic::Picture, "picture"),
    (Topic::Report, "report"),
];

/// The newest event of each kind, as JSON, and how many of the kind there have been.
#[derive(Debug, Default)]
struct News {
    texts: [Arc<str>; TOPICS.len()],
    counts: [u64; TOPICS.len()],
}

/// What a page has been told: the counts of the news that it has read.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Read([u64; TOPICS.len()]);

/// A view that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    pub wanted: Wanted,
    /// Its number; orders are counted from 1.
    pub number: u64,
    pub at: Instant,
}

#[derive(Debug)]
struct State {
    news: News,
    /// The newest picture, as a PNG.
    picture: Arc<[u8]>,
    order: Order,
    readers: usize,
    /// How often the newest report has been read to its end.
    reports_read: usize,
    paused: bool,
    /// Whether a checkpoint is asked for.
    save: bool,
    over: bool,
}

impl State {
    /// The view to be rendered; None if no page follows.
    fn ordered(&self) -> Option<&Order> {
        (self.readers > 0).then_some(&self.order)
    }
}

/// The desk of a run and of all pages that look at it.
#[derive(Debug)]
pub(super) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
    /// The views that pages may order.
    choice: Choice,
    /// Set to stop the run; none where nothing runs.
    stop: Option<Arc<AtomicBool>>,
}

/// A command of a page that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused(pub String);

impl Desk {
    pub(super) fn new(choice: Choice, stop: Option<Arc<AtomicBool>>) -> Self {
        let order = Order {
            wanted: choice.first(),
            number: 1,
            at: Instant::now(),
        };
        Self {
            state: Mutex::new(State {
                news: News::default(),
                picture: Arc::from([]),
                order,
                readers: 0,
                reports_read: 0,
                paused: false,
                save: false,
                over: false,
            }),
            changed: Condvar::new(),
            choice,
            stop,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the run has been asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::SeqCst))
    }

    /// Tells all pages.
    pub(super) fn tell(&self, topic: Topic, value: &Value) {
        self.lock().news.put(topic, value);
        self.changed.notify_all();
    }

    /// Shows all pages a picture.
    pub(super) fn show(&self, picture: Vec<u8>, about: &Value) {
        let mut state = self.lock();
        state.picture = picture.into();
        state.news.put(Topic::Picture, about);
        drop(state);
        self.changed.notify_all();
    }

    /// The newest picture; empty before the first.
    pub(super) fn picture(&self) -> Arc<[u8]> {
        Arc::clone(&self.lock().picture)
    }

    /// The view to be rendered; None if no page follows.
    pub(super) fn order(&self) -> Option<Order> {
        self.lock().ordered().cloned()
    }

    /// Carries out the command that the path names; None if there is none. Returns "done", or the number of an ordered
    /// view.
    pub(super) fn command(&self, path: &str, body: &[u8]) -> Option<Result<String, Refused>> {
        if path == "/view" {
            let wanted = self.choice.parse(body);
            return Some(wanted.map(|wanted| self.place(wanted).to_string()).map_err(Refused));
        }
        let stop = self.stop.as_ref()?;
        let mut state = self.lock();
        match path {
            "/pause" => state.paused = true,
            "/go_on" => state.paused = false,
            "/save" => state.save = true,
            "/stop" => stop.store(true, Ordering::SeqCst),
            _ => return None,
        }
        let standing = standing(&state, self.is_stopping());
        state.news.put(Topic::Standing, &standing);
        drop(state);
        self.changed.notify_all();
        Some(Ok("done".into()))
    }

    /// Orders a view, and returns the order's number.
    fn place(&self, wanted: Wanted) -> u64 {
        let mut state = self.lock();
        let number = state.order.number + 1;
        state.order = Order {
            wanted,
            number,
            at: Instant::now(),
        };
        drop(state);
        self.changed.notify_all();
        number
    }

    /// Whether a checkpoint was asked for since this was last asked.
    pub(super) fn takes_save(&self) -> bool {
        std::mem::take(&mut self.lock().save)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.lock().paused
    }

    /// Waits while `number` is that of [`Self::order`], no checkpoint is asked for, the run stands still and the end is not
    /// yet told, but at most for `most`.
    pub(super) fn wait(&self, number: Option<u64>, most: Duration) {
        let state = self.lock();
        let unchanged = |state: &mut State| {
            let ordered = state.ordered().map(|order| order.number);
            ordered == number && !state.save && !state.over && (state.paused || self.stop.is_none())
        };
        let _ = self.changed.wait_timeout_while(state, most, unchanged);
    }

    /// The number of the newest report.
    pub(super) fn newest_report(&self) -> u64 {
        self.lock().news.counts[Topic::Report as usize]
    }

    /// Takes note that a page has read the report of this number to its end.
    pub(super) fn report_was_read(&self, number: u64) {
        let mut state = self.lock();
        if number == state.news.counts[Topic::Report as usize] {
            state.reports_read += 1;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Tells all pages of the last report, and waits until it was read as often as pages follow, but at most for `most`.
    pub(super) fn tell_last_report(&self, most: Duration) {
        let mut state = self.lock();
        state.news.put(Topic::Report, &json!({ "last": true }));
        state.reports_read = 0;
        self.changed.notify_all();
        let is_unread = |state: &mut State| state.reports_read < state.readers;
        let _ = self.changed.wait_timeout_while(state, most, is_unread);
    }

    /// Tells all pages that nothing more will come, and why, and waits until none follows, but at most for `most`. Only
    /// the first call does anything.
    pub(super) fn end(&self, why: &str, most: Duration) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        state
            .news
            .put(Topic::Standing, &json!({ "state": "over", "text": why }));
        self.changed.notify_all();
        let _ = self.changed.wait_timeout_while(state, most, |state| state.readers > 0);
    }

    /// A place for one more page that follows; None if there are too many.
    pub(super) fn follow(&self) -> Option<Reader<'_>> {
        let mut state = self.lock();
        if state.readers >= READERS {
            return None;
        }
        state.readers += 1;
        drop(state);
        self.changed.notify_all();
        Some(Reader {
            desk: self,
            read: Read::default(),
        })
    }
}

/// The state of a run that is not over, as pages are told it.
fn standing(state: &State, stopping: bool) -> Value {
    let word = match (stopping, state.paused) {
        (true, _) => "stopping",
        (_, true) => "paused",
        _ => "running",
    };
    json!({ "state": word })
}

impl News {
    fn put(&mut self, topic: Topic, value: &Value) {
        self.texts[topic as usize] = value.to_string().into();
        self.counts[topic as usize] += 1;
    }
}

/// A page that follows.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    desk: &'a Desk,
    read: Read,
}

impl Reader<'_> {
    /// The news since the last call, as server-sent events; empty if there are none for `most`, None once the end was
    /// told.
    pub(super) fn events(&mut self, most: Duration) -> Option<String> {
        let state = self.desk.lock();
        let nothing_new = |state: &mut State| state.news.counts == self.read.0 && !state.over;
        let waited = self.desk.changed.wait_timeout_while(state, most, nothing_new);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (topic, name) in TOPICS {
            let i = topic as usize;
            if state.news.counts[i] != self.read.0[i] {
                text += &format!("event: {name}\ndata: {}\n\n", state.news.texts[i]);
            }
        }
        self.read.0 = state.news.counts;
        (!text.is_empty() || !state.over).then_some(text)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.desk.lock().readers -= 1;
        self.desk.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk(stop: Option<Arc<AtomicBool>>) -> Desk {
        Desk::new(Choice::default(), stop)
    }

    #[test]
    fn readers_get_the_newest_of_each_kind_once() {
        let desk = desk(None);
        let mut reader = desk.follow().expect("a place");
        desk.tell(Topic::Figures, &json!(1));
        desk.tell(Topic::Figures, &json!(2));
        desk.tell(Topic::Report, &json!({}));
        let at_once = Duration::ZERO;
        let told = reader.events(at_once).expect("goes on");
        assert_eq!(told, "event: figures\ndata: 2\n\nevent: report\ndata: {}\n\n");
        assert_eq!(reader.events(at_once).as_deref(), Some(""));
        desk.end("done", at_once);
        assert!(reader.events(at_once).is_some_and(|text| text.contains("\"over\"")));
        assert_eq!(reader.events(at_once), None);
    }

    #[test]
    fn places_are_few_and_given_back() {
        let desk = desk(None);
        assert_eq!(desk.order(), None, "nobody looks on");
        let all: Vec<_> = std::iter::from_fn(|| desk.follow()).collect();
        assert_eq!(all.len(), READERS);
        assert!(desk.order().is_some());
        drop(all);
        assert!(desk.follow().is_some());
    }

    /// Whoever waits sleeps until something is ordered, also while no page follows.
    #[test]
    fn nothing_is_done_while_nothing_is_ordered() {
        let desk = desk(None);
        let waits = |number| {
            let begin = Instant::now();
            desk.wait(number, Duration::from_millis(30));
            begin.elapsed() >= Duration::from_millis(30)
        };
        assert!(waits(None), "nobody looks on");
        let _reader = desk.follow().expect("a place");
        let newest = desk.order().map(|order| order.number);
        assert!(waits(newest), "the page has its picture");
        assert!(!waits(None), "a page has come");
    }

    #[test]
    fn commands_are_those_of_a_run() {
        let stop = Arc::new(AtomicBool::new(false));
        let run = desk(Some(Arc::clone(&stop)));
        assert_eq!(run.command("/pause", b""), Some(Ok("done".into())));
        assert!(run.is_paused());
        assert_eq!(run.command("/go_on", b""), Some(Ok("done".into())));
        assert!(!run.is_paused() && !run.takes_save());
        assert_eq!(run.command("/save", b""), Some(Ok("done".into())));
        assert!(run.takes_save() && !run.takes_save());
        assert_eq!(run.command("/stop", b""), Some(Ok("done".into())));
        assert!(stop.load(Ordering::SeqCst));
        assert_eq!(run.command("/nothing", b""), None);
        let finished = desk(None);
        assert_eq!(finished.command("/pause", b""), None);
    }
}
