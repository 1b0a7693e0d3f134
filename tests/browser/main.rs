//! The report in a real browser: its plots are drawn, its sliders and buttons work, and its console has no errors.
//!
//! The whole page and its slices, in both schemes and two widths, are compared loosely with committed thumbnails
//! ([`likeness`]).
//!
//! Without Chromium the tests say that they were skipped, unless `PRBOPT_REQUIRE_BROWSER` is set. Where
//! `PRBOPT_SCREENSHOTS` names a folder, what the browser shows is left there to be looked at.

mod chromium;
mod likeness;
mod live;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chromium::{Chromium, Tab};
use serde_json::{Value, json};

/// A browser, if there is one.
fn browser() -> Option<Chromium> {
    let browser = Chromium::start();
    if browser.is_none() {
        assert!(
            std::env::var_os("PRBOPT_REQUIRE_BROWSER").is_none(),
            "there is no Chromium"
        );
        eprintln!("skipped: there is no Chromium");
    }
    browser
}

fn program(arguments: &[&OsStr]) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
        .args(arguments)
        .output()
        .expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A short run of a bundled scene in a folder.
fn run(folder: &Path, seed: &str) {
    let words = [
        "optimize",
        "scenes/two_blobs.json",
        "--iterations",
        "60",
        "--device",
        "cpu",
        "--quiet",
        "--seed",
        seed,
        "--set",
        "optimize.output.images_every=10",
        "-o",
    ];
    let mut words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    words.push(folder.as_os_str());
    program(&words);
}

/// A report in the browser.
struct Open<'b> {
    tab: Tab<'b>,
}

impl<'b> Open<'b> {
    fn new(browser: &'b Chromium, file: &Path, size: [u32; 2], dark: bool) -> Self {
        let absolute = file.canonicalize().expect("there");
        let open = Self::at(browser, &format!("file://{}", absolute.display()), size, dark);
        open.settle();
        open
    }

    /// Any address, in a window of this size.
    fn at(browser: &'b Chromium, url: &str, [width, height]: [u32; 2], dark: bool) -> Self {
        let tab = browser.tab();
        tab.call("Runtime.enable", json!({}));
        tab.call("Log.enable", json!({}));
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        tab.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }});
        tab.call("Emulation.setEmulatedMedia", json!({"features": [scheme]}));
        tab.open(url);
        Self { tab }
    }

    /// Errors and exceptions in the page's console.
    fn complaints(&self) -> Vec<Value> {
        let wrong = |event: &Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        self.tab.events().into_iter().filter(wrong).collect()
    }

    /// What a script returns.
    fn ask(&self, script: &str) -> Value {
        self.tab.evaluate(script)
    }

    fn number(&self, script: &str) -> f64 {
        self.ask(script)
            .as_f64()
            .unwrap_or_else(|| panic!("{script} is no number"))
    }

    /// Waits until every canvas has been drawn.
    fn settle(&self) {
        let drawn = self.ask(
            "(async () => { for (let i = 0; i < 200; i++) { \
               const all = [...document.querySelectorAll('canvas')]; \
               if (all.length && all.every((c) => c.dataset.drawn)) return true; \
               await new Promise((r) => setTimeout(r, 50)); } return false; })()",
        );
        assert_eq!(drawn, true, "all canvases are drawn: {:?}", self.complaints());
    }

    /// Left, top, width and height of everything that `selector` finds, from the page's corner.
    fn boxes(&self, selector: &str) -> Vec<[u32; 4]> {
        let found = format!("[...document.querySelectorAll('{selector}')].map((part) => part.getBoundingClientRect())");
        let numbers = "[b.left + scrollX, b.top + scrollY, b.width, b.height].map(Math.round)";
        let answer = self.ask(&format!("JSON.stringify({found}.map((b) => {numbers}))"));
        serde_json::from_str(answer.as_str().expect("text")).expect("four whole numbers each")
    }

    /// Where the parts of the page begin, from the top down.
    fn tops(&self) -> Vec<u32> {
        let mut tops: Vec<u32> = self
            .boxes("h2, .card, figure")
            .iter()
            .map(|[_, top, ..]| *top)
            .collect();
        tops.sort_unstable();
        tops.dedup_by(|y, before| *y < *before + 24);
        tops
    }

    /// The page from its top to its end, also left in the folder for looking.
    fn screenshot(&self, name: &str) -> image::RgbImage {
        let [width, height] =
            ["Width", "Height"].map(|of| self.number(&format!("document.documentElement.scroll{of}")));
        let all = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let how = json!({"format": "png", "clip": all, "fromSurface": true, "captureBeyondViewport": true});
        let shot = self.tab.call("Page.captureScreenshot", how);
        let png = BASE64
            .decode(shot["data"].as_str().expect("a screenshot"))
            .expect("base64");
        if let Some(folder) = std::env::var_os("PRBOPT_SCREENSHOTS") {
            std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), &png).expect("writable");
        }
        image::load_from_memory(&png).expect("a PNG").into_rgb8()
    }

    fn close(self) {
        let elsewhere = self.ask(
            "performance.getEntriesByType('resource').map((e) => e.name) \
               .filter((n) => !n.startsWith('data:') && !n.startsWith(location.origin + '/')).join()",
        );
        assert_eq!(elsewhere, "", "nothing is loaded from elsewhere");
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "{complaints:#?}");
        self.tab.close();
    }
}

/// A script that adds a style sheet to a page.
fn style(rules: &str) -> String {
    format!("document.head.insertAdjacentHTML('beforeend', `<style class=\"planted\">{rules}</style>`)")
}

/// A script that sets the first slider that `selector` finds and tells the page.
fn slide(selector: &str, value: &str) -> String {
    format!(
        "(() => {{ const s = document.querySelector(`{selector}`); s.value = {value}; \
         s.dispatchEvent(new Event('input')); return s.value; }})()"
    )
}

#[test]
fn the_report_is_drawn_and_moves() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = folder.path().join("first");
    run(&first, "0");
    let file = first.join("report.html");

    let page = Open::new(&browser, &file, [1280, 1000], false);
    // Four curves and a histogram for each of two grids, each with a line or bars of some size.
    assert_eq!(page.number("document.querySelectorAll('figure > svg').length"), 6.0);
    let flat = "[...document.querySelectorAll('figure > svg')].filter((s) => \
                ![...s.querySelectorAll('polyline,rect')].some((l) => l.getBBox().height > 20)).length";
    assert_eq!(page.number(flat), 0.0, "every plot has something in it");
    let colors = "[...document.querySelectorAll('canvas')].map((c) => new Set(new Uint32Array(c.getContext('2d')\
                  .getImageData(0, 0, c.width, c.height).data.buffer)).size).reduce((a, b) => Math.min(a, b))";
    assert!(page.number(colors) > 10.0, "no canvas is of one colour");

    // The slider over iterations shows another render, and its difference is another.
    let state = "document.querySelectorAll('.view img')[1].src.length + '|' + \
                 document.querySelector('.view canvas').toDataURL().length + '|' + \
                 document.querySelector('.view output').textContent";
    let last = page.ask(state);
    assert!(last.as_str().is_some_and(|s| s.ends_with("iteration 60")), "{last}");
    page.ask(&slide(".view input[type=range]", "0"));
    std::thread::sleep(Duration::from_millis(300));
    let start = page.ask(state);
    assert!(
        start.as_str().is_some_and(|s| s.ends_with("iteration 0")) && start != last,
        "{start}"
    );

    // The sliders of each axis move the slice.
    for axis in ["x", "y", "z"] {
        let slice = "[...document.querySelectorAll('.grid canvas')].map((c) => c.toDataURL()).join()";
        let before = page.ask(slice);
        page.ask(&slide(&format!(".grid input[aria-label^='slice along {axis}']"), "3"));
        std::thread::sleep(Duration::from_millis(200));
        assert_ne!(page.ask(slice), before, "the slice along {axis} moves");
    }

    // The wiper follows the keyboard and the pointer.
    let edge = "parseFloat(document.querySelector('.wiper .edge').style.left)";
    let before = page.number(edge);
    page.ask("document.querySelector('.wiper').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))");
    assert!(page.number(edge) > before);

    // Light and dark.
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = page.ask(paper);
    page.ask("document.getElementById('theme').click()");
    assert_ne!(page.ask(paper), light);
    page.ask("document.getElementById('theme').click()");
    page.ask("localStorage.clear()");
    page.close();

    let page = Open::new(&browser, &file, [1280, 1000], true);
    assert_ne!(page.ask(paper), light, "dark where the system is dark");
    page.close();

    let page = Open::new(&browser, &file, [390, 844], false);
    let width = page.number("document.documentElement.scrollWidth");
    assert!(width <= 390.0, "nothing sticks out on a phone: {width}");
    page.close();
}

#[test]
fn the_report_looks_as_it_did() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = folder.path().join("first");
    run(&first, "0");
    let file = first.join("report.html");
    let (wide, phone) = ([1280, 1000], [390, 844]);
    let kinds = [
        ("light", wide, false),
        ("dark", wide, true),
        ("phone_light", phone, false),
        ("phone_dark", phone, true),
    ];
    let mut wrong = Vec::new();
    for (name, size, dark) in kinds {
        let slices = format!("{name}_slices");
        likeness::begin(name);
        likeness::begin(&slices);
        let page = Open::new(&browser, &file, size, dark);
        for (change, rules, near) in [
            ("nothing", "", true),
            (
                "fonts",
                "* { font-family: serif !important; letter-spacing: 0.02em }",
                true,
            ),
            ("no_plots", "figure > svg { visibility: hidden }", false),
            ("no_pictures", ".view img, .view canvas { visibility: hidden }", false),
            ("no_slices", ".grid canvas { visibility: hidden }", false),
            ("no_style", "* { all: revert }", false),
        ] {
            page.ask(&style(rules));
            let shot = page.screenshot(&format!("{name}_{change}"));
            // Thumbnails are as fine as lines of plots need, and small enough to be kept.
            let parts = likeness::thumbnails(&shot, &page.tops(), if size == wide { 160 } else { 98 });
            let pictures = likeness::pictures(&shot, &page.boxes(".grid canvas"), 48);
            let apart = [likeness::distance(name, &parts), likeness::distance(&slices, &pictures)];
            eprintln!("{name}, {change}: {apart:?}");
            if apart.iter().all(|apart| apart.is_near()) != near {
                wrong.push(format!("{name}, {change}: {apart:?}, expected near: {near}"));
            }
            page.ask("document.querySelectorAll('.planted').forEach((s) => s.remove())");
        }
        page.close();
    }
    assert!(wrong.is_empty(), "{wrong:#?}; see PRBOPT_SCREENSHOTS");
}

#[test]
fn several_runs_stand_side_by_side() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first, second) = (folder.path().join("one"), folder.path().join("<two & more>"));
    run(&first, "0");
    run(&second, "1");
    let file = folder.path().join("both.html");
    let words = [
        OsStr::new("report"),
        first.as_os_str(),
        second.as_os_str(),
        OsStr::new("-o"),
        file.as_os_str(),
    ];
    program(&words);
    let page = Open::new(&browser, &file, [1280, 1000], false);
    let names = page.ask("[...document.querySelectorAll('.legend li')].map((l) => l.textContent).join()");
    assert_eq!(names, "one,<two & more>", "names are text, not tags");
    // A reference, two renders with their differences, and the wiper.
    assert_eq!(
        page.number("document.querySelector('.view .tiles').children.length"),
        6.0
    );
    // What concerns both comes first; below it each render stands beside its difference, and nothing reaches out of its tile.
    let rows = page.ask("[...document.querySelectorAll('.view .tiles > figure')].map((f) => f.offsetTop).join()");
    let rows: Vec<&str> = rows.as_str().expect("numbers").split(',').collect();
    for rows in rows.chunks(6) {
        assert!(rows[0] == rows[1] && rows[1] != rows[2], "{rows:?}");
        assert!(rows[2..].iter().all(|row| *row == rows[2]), "{rows:?}");
    }
    let inside = "[...document.querySelectorAll('.view figure select')].every((s) => \
                  s.getBoundingClientRect().right <= s.closest('figure').getBoundingClientRect().right + 1)";
    assert_eq!(page.ask(inside), true);
    let told = "[...document.querySelectorAll('.view figcaption span')].filter((s) => /^L1 0\\.\\d{4}$/.test(s.textContent)).length";
    assert!(page.number(told) >= 2.0, "differences are told");
    let lines = "document.querySelector('figure > svg').querySelectorAll('polyline').length";
    assert!(page.number(lines) >= 2.0, "two curves in a plot");
    page.screenshot("two_runs");
    page.close();
}
