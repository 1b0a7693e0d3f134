//! Chromium without a window, driven by its DevTools protocol over a web socket.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running browser; it ends with this value.
pub(crate) struct Chromium {
    process: Child,
    wire: RefCell<Wire>,
    /// The folder of the browser's profile, deleted with this value.
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts the browser, if there is one on the path.
    pub(crate) fn start() -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let path = names.iter().find_map(|name| on_path(name))?;
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut process = Command::new(path)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args([
                "--force-device-scale-factor=1",
                "--no-first-run",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Chromium starts");
        let address = announced(&mut process).expect("Chromium says where it listens");
        let place = address
            .trim_start_matches("ws://")
            .split('/')
            .next()
            .expect("a host and a port");
        let stream = TcpStream::connect(place).expect("Chromium listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let (socket, _) = tungstenite::client(&address, stream).expect("a web socket");
        let wire = RefCell::new(Wire {
            socket,
            last: 0,
            events: Vec::new(),
        });
        Some(Self {
            process,
            wire,
            _profile: profile,
        })
    }

    /// Opens an empty page.
    pub(crate) fn tab(&self) -> Tab<'_> {
        let mut wire = self.wire.borrow_mut();
        let made = wire.call(None, "Target.createTarget", json!({"url": "about:blank"}));
        let target = made["targetId"].clone();
        let attached = wire.call(
            None,
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        let session = attached["sessionId"].as_str().expect("a session").to_string();
        Tab {
            browser: self,
            target,
            session,
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|p| p.join(name)).find(|p| p.is_file())
}

/// The address that Chromium prints when it is ready. A thread goes on reading, so that the pipe never fills.
fn announced(process: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(process.stderr.take()?).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_string));
    std::thread::spawn(move || lines.for_each(drop));
    address
}

/// The socket: commands go out with a number, answers come back with it, events come in between.
struct Wire {
    socket: WebSocket<TcpStream>,
    last: u64,
    /// Events that nobody has asked for yet.
    events: Vec<Value>,
}

impl Wire {
    fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let message = Message::text(command.to_string());
        self.socket.send(message).expect("the socket takes commands");
        loop {
            let message = self.receive();
            if message["id"] != self.last {
                self.events.push(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    fn receive(&mut self) -> Value {
        loop {
            match self.socket.read().expect("Chromium answers in time") {
                Message::Text(text) => return serde_json::from_str(&text).expect("messages are JSON"),
                Message::Close(_) => panic!("Chromium hung up"),
                _ => {}
            }
        }
    }
}

/// A page.
pub(crate) struct Tab<'b> {
    browser: &'b Chromium,
    target: Value,
    session: String,
}

impl Tab<'_> {
    /// Calls a method of the protocol and returns its result.
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        self.browser.wire.borrow_mut().call(Some(&self.session), method, params)
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn open(&self, url: &str) {
        self.call("Page.enable", json!({}));
        self.call("Page.navigate", json!({"url": url}));
        let mut wire = self.browser.wire.borrow_mut();
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired" && event["sessionId"] == *self.session;
        while !wire.events.iter().any(loaded) {
            let event = wire.receive();
            wire.events.push(event);
        }
    }

    /// What a script returns; promises are waited for.
    pub(crate) fn evaluate(&self, script: &str) -> Value {
        let params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Events of this page so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let wire = self.browser.wire.borrow();
        let mine = wire.events.iter().filter(|event| event["sessionId"] == *self.session);
        mine.cloned().collect()
    }

    /// Closes the page.
    pub(crate) fn close(self) {
        let params = json!({"targetId": self.target});
        self.browser.wire.borrow_mut().call(None, "Target.closeTarget", params);
    }
}
