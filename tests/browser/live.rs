//! The page of a run at work in a real browser: the camera turns by mouse, touch and keys, and the run pauses and goes on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::{Open, browser};

/// The program at work, ended with this value.
struct Served {
    process: Child,
    url: String,
}

impl Served {
    fn start(words: &[&str]) -> Self {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
            .args(words)
            .args(["--json", "--serve=127.0.0.1:0", "--device", "cpu"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped"))
            .lines()
            .map_while(Result::ok);
        let url = lines.find_map(|line| {
            let event: Value = serde_json::from_str(&line).expect("lines of JSON");
            event["url"].as_str().map(str::to_owned)
        });
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.expect("the program says where its page is");
        Self { process, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a script returns true.
fn wait(page: &Open, script: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while page.ask(script) != true {
        assert!(Instant::now() < end, "{script}: {:?}", page.complaints());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The picture as it is shown, scaled down to 32 × 32 pixels, which averages its noise.
fn picture(page: &Open) -> Vec<f64> {
    let text = page.ask(
        "(() => { const small = new OffscreenCanvas(32, 32).getContext('2d'); small.imageSmoothingQuality = 'high'; \
           small.drawImage(picture, 0, 0, 32, 32); return [...small.getImageData(0, 0, 32, 32).data].join(); })()",
    );
    let numbers = text.as_str().expect("text").split(',');
    numbers.map(|n| n.parse().expect("a number")).collect()
}

/// The mean difference of two pictures, of 255.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64
}

/// A difference by [`apart`] that is more than refinement makes and less than any turn of the camera.
const APART: f64 = 1.2;

/// Waits until the picture shows something else.
fn changed(page: &Open, before: &[f64]) {
    let end = Instant::now() + Duration::from_secs(60);
    while apart(&picture(page), before) < APART {
        assert!(Instant::now() < end, "the picture stays as it is");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a picture is refined and comes to rest: two pictures half a second apart differ by less than half of [`APART`]. A
/// busy machine may still deliver renders of an earlier move when this begins.
fn rested(page: &Open) -> Vec<f64> {
    let end = Instant::now() + Duration::from_secs(60);
    let mut before = Vec::new();
    loop {
        wait(page, "Number(picture.dataset.renders) > 1");
        let after = picture(page);
        if !before.is_empty() && apart(&before, &after) < APART / 2.0 {
            return after;
        }
        assert!(Instant::now() < end, "a camera at rest sees the same");
        before = after;
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn middle(page: &Open) -> [f64; 2] {
    let [left, top, width, height] = page.boxes("#picture")[0].map(f64::from);
    [left + width / 2.0, top + height / 2.0]
}

fn iteration(page: &Open) -> f64 {
    page.number("Number(document.querySelector('#figures dd')?.textContent ?? 0)")
}

fn drag(page: &Open) {
    let [x, y] = middle(page);
    let mouse = |kind: &str, x: f64, y: f64| {
        let what = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
        page.tab.call("Input.dispatchMouseEvent", what);
    };
    mouse("mousePressed", x, y);
    for i in 1..=10 {
        mouse("mouseMoved", x + 8.0 * f64::from(i), y + 2.0 * f64::from(i));
    }
    mouse("mouseReleased", x + 80.0, y + 20.0);
}

/// Two fingers that go apart.
fn pinch(page: &Open) {
    let [x, y] = middle(page);
    let touch = |kind: &str, apart: f64| {
        let points = match kind {
            "touchEnd" => json!([]),
            _ => json!([{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]),
        };
        page.tab
            .call("Input.dispatchTouchEvent", json!({"type": kind, "touchPoints": points}));
    };
    touch("touchStart", 20.0);
    for i in 1..=6 {
        touch("touchMove", 20.0 + 6.0 * f64::from(i));
    }
    touch("touchEnd", 0.0);
}

fn key(page: &Open, key: &str) {
    for kind in ["keyDown", "keyUp"] {
        page.tab
            .call("Input.dispatchKeyEvent", json!({"type": kind, "key": key}));
    }
}

fn open<'b>(browser: &'b Chromium, served: &Served, size: [u32; 2], dark: bool) -> Open<'b> {
    let page = Open::at(browser, &served.url, size, dark);
    wait(&page, "picture.dataset.drawn === 'true'");
    page
}

fn distance(page: &Open) -> f64 {
    page.number("length(sub(camera.pivot, camera.origin))")
}

#[test]
fn a_run_at_work_is_turned_paused_and_let_go_on() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("run").display().to_string();
    let words = [
        "optimize",
        "scenes/two_blobs.json",
        "--iterations",
        "100000",
        "-o",
        &output,
    ];
    let served = Served::start(&words);
    let page = open(&browser, &served, [1280, 1000], false);
    wait(
        &page,
        "part('figures').hidden === false && part('standing').textContent === 'running'",
    );

    // The run goes on while it is looked at, and stands still while it is paused.
    let before = iteration(&page);
    wait(
        &page,
        &format!("Number(document.querySelector('#figures dd').textContent) > {before}"),
    );
    page.ask("part('pause').click()");
    wait(&page, "part('standing').textContent === 'paused'");
    std::thread::sleep(Duration::from_millis(500));
    let paused = iteration(&page);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(iteration(&page), paused, "nothing goes on");

    // A camera at rest is refined; mouse, keys, the wheel's buttons and other cameras change the picture.
    let mut seen = rested(&page);
    drag(&page);
    changed(&page, &seen);
    page.screenshot("live_turned");
    seen = rested(&page);
    page.ask("picture.focus()");
    key(&page, "ArrowLeft");
    changed(&page, &seen);
    seen = rested(&page);
    let far = distance(&page);
    page.ask("part('closer').click()");
    assert!(distance(&page) < 0.9 * far);
    changed(&page, &seen);
    seen = rested(&page);
    page.ask("part('cameras').querySelectorAll('button')[3].click()");
    assert_eq!(page.number("camera.sensor"), 3.0);
    changed(&page, &seen);

    // Depth, opacity, and back.
    for (i, name) in ["depth", "opacity", "picture"].iter().enumerate() {
        seen = rested(&page);
        let index = (i + 1) % 3;
        page.ask(&format!("part('show').value = {index}; part('show').onchange()"));
        changed(&page, &seen);
        wait(&page, &format!("shown === '{name}'"));
        page.screenshot(&format!("live_{name}"));
    }
    assert_eq!(iteration(&page), paused, "looking is no iteration");

    // A checkpoint is written at once, learning rates are shown, and the run goes on.
    page.ask("part('save').click()");
    wait(
        &page,
        "part('message').textContent.startsWith('checkpoint of iteration')",
    );
    assert!(folder.path().join("run/checkpoint.safetensors").is_file());
    let rates = page.ask("part('rates').textContent");
    assert!(
        rates
            .as_str()
            .is_some_and(|text| text.contains("object.interior.sh_coeffs")),
        "{rates}"
    );
    page.ask("part('pause').click()");
    wait(
        &page,
        &format!("Number(document.querySelector('#figures dd').textContent) > {paused}"),
    );

    // Gradients come with iterations; the report comes and is drawn.
    seen = picture(&page);
    page.ask("part('show').value = 3; part('show').onchange()");
    changed(&page, &seen);
    wait(&page, "part('legend').hidden === false");
    let drawn = "[...document.querySelectorAll('#report iframe')].some((f) => f.contentDocument.querySelector('svg'))";
    wait(&page, drawn);
    page.screenshot("live_report");
    page.close();

    // At the width of a phone nothing overflows, and two fingers zoom in.
    let page = open(&browser, &served, [390, 844], true);
    let width = page.number("document.documentElement.scrollWidth");
    assert!(width <= 390.0, "nothing sticks out on a phone: {width}");
    let far = distance(&page);
    seen = picture(&page);
    pinch(&page);
    assert!(distance(&page) < 0.8 * far, "{} of {far}", distance(&page));
    changed(&page, &seen);
    wait(&page, drawn);
    page.screenshot("live_phone");
    let figures = "[...document.querySelectorAll('#report iframe')].flatMap((f) => \
         [...f.contentDocument.querySelectorAll('.figures dd')])";
    let count = page.number(&format!("{figures}.length"));
    let beyond = page.number(&format!(
        "{figures}.filter((dd) => dd.scrollWidth > dd.clientWidth).length"
    ));
    assert!(
        count >= 4.0 && beyond == 0.0,
        "{beyond} of {count} figures are wider than their boxes"
    );
    assert!(page.boxes("#show")[0][2] >= 180, "what is shown can be read");

    // The stop button asks once more, and pages are told how the run can be resumed.
    page.ask("part('stop').click()");
    assert_eq!(page.ask("part('stop').textContent"), "Stop the run?");
    page.ask("part('stop').click()");
    wait(&page, "part('standing').textContent === 'over'");
    assert_eq!(page.ask("part('message').textContent.includes('--resume')"), true);
    page.close();
}

#[test]
fn a_finished_run_has_no_commands() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run");
    super::run(&run, "0");
    let served = Served::start(&["view", &run.display().to_string()]);
    let page = open(&browser, &served, [1280, 1000], false);
    assert_eq!(page.number("part('commands').children.length"), 0.0);
    assert_eq!(page.ask("part('standing').textContent"), "finished");
    let seen = rested(&page);
    drag(&page);
    changed(&page, &seen);
    wait(
        &page,
        "document.querySelector('#report iframe')?.contentDocument.querySelector('svg') != null",
    );
    page.screenshot("live_finished");
    page.close();
}
