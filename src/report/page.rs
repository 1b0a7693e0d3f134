//! The HTML page: plots, tables, and the data for its script, which draws views and slices.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::charts::{Chart, Curve, Over, histograms};
use super::data::{Recovered, RunData, Standing};
use super::pictures::ViewShown;
use super::{colormap, grids};
use crate::output::metrics::{Figures, Milliseconds};
use crate::output::progress::{bytes, duration};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The whole page.
pub(super) fn html(runs: &[RunData], views: &[ViewShown]) -> String {
    let running = runs.iter().any(|run| run.standing == Standing::Running);
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = names.join(", ");
    let (state, subtitle) = match runs {
        [run] => (state_of(run), source_of(run)),
        _ => (String::new(), format!("{} runs side by side", runs.len())),
    };
    let parts = [
        ("{{title}}", format!("{} · prbopt", escape(&title))),
        ("{{style}}", STYLE.to_owned()),
        (
            "{{running}}",
            if running { r#" data-running="true""# } else { "" }.to_owned(),
        ),
        ("{{heading}}", format!("{}{state}", escape(&title))),
        ("{{subtitle}}", escape(&subtitle)),
        ("{{body}}", body(runs, views, running)),
        ("{{footer}}", format!("prbopt {}", env!("CARGO_PKG_VERSION"))),
        ("{{data}}", data(runs, views)),
        ("{{script}}", SCRIPT.to_owned()),
    ];
    fill(PAGE, &parts)
}

/// A page with its marks replaced by texts. Each mark occurs once and in this order, so that inserted text is never searched
/// for marks.
pub(crate) fn fill(page: &str, parts: &[(&str, String)]) -> String {
    let mut filled = String::new();
    let mut rest = page;
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).expect("the page has every mark, in this order");
        filled += before;
        filled += text;
        rest = after;
    }
    filled + rest
}

/// Escapes text for HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            c => safe.push(c),
        }
    }
    safe
}

fn state_of(run: &RunData) -> String {
    let done = run.figures.last().map_or(0, |f| f.iteration);
    let (class, word) = match run.standing {
        Standing::Running => ("running", format!("at iteration {done}")),
        Standing::Stopped => ("stopped", format!("stopped at iteration {done}")),
        Standing::Finished => ("finished", "finished".to_owned()),
    };
    format!(r#"<span class="pill {class}">{word}</span>"#)
}

fn source_of(run: &RunData) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let device = &run.record["device"];
    format!(
        "{} on {} ({}), begun {}",
        text(&run.record["scene"]),
        text(&device["name"]),
        text(&device["detail"]),
        text(&run.record["started"]).replace('T', " ").replace('Z', " UTC")
    )
}

fn body(runs: &[RunData], views: &[ViewShown], running: bool) -> String {
    let mut html = String::new();
    if running {
        html += r#"<p class="note"><label><input type="checkbox" id="follow"> reload every ten seconds while the run is at work</label></p>"#;
    }
    html += &match runs {
        [run] => cards(run),
        _ => comparison(runs),
    };
    html += "<h2>Views</h2>\n";
    html += if views.is_empty() {
        r#"<p class="note">No view has been rendered: the scene's <code>optimize.output.images_every</code> says when.</p>"#
    } else {
        ""
    };
    html += "<div id=\"views\"></div>\n";
    html += &note_on_views(runs, views);
    html += "<h2>Convergence</h2>\n";
    html += &legend(runs);
    html += &curves(runs, views);
    html += "<h2>What was recovered</h2>\n";
    if runs.iter().all(|run| run.parameters.is_empty()) {
        html += "<p class=\"note\">Nothing is saved yet: a run's first checkpoint has its parameters, and so has its end.</p>\n";
    }
    html += &numbers(runs);
    html += "<div id=\"grids\"></div>\n";
    html += &parameter_histograms(runs);
    html += "<h2>Time and memory</h2>\n";
    runs.iter().for_each(|run| html += &passes(run, runs.len() > 1));
    html += "<h2>How it was made</h2>\n";
    runs.iter().for_each(|run| html += &provenance(run, runs.len() > 1));
    html
}

/// States the subject of difference images, and how many views are omitted.
fn note_on_views(runs: &[RunData], views: &[ViewShown]) -> String {
    let names: BTreeSet<&str> = runs
        .iter()
        .flat_map(|run| &run.views)
        .map(|view| view.name.as_str())
        .collect();
    let mut sentences = Vec::new();
    if views
        .iter()
        .flat_map(|view| &view.runs)
        .any(|run| run.reference.is_some())
    {
        sentences.push("Differences: of sRGB-coded values, mean of the colours.".to_owned());
    }
    if names.len() > views.len() {
        sentences.push(format!("{} of {} views are shown.", views.len(), names.len()));
    }
    match sentences.is_empty() {
        true => String::new(),
        false => format!("<p class=\"note\">{}</p>\n", sentences.join(" ")),
    }
}

/// The main figures of a run.
fn headline(run: &RunData) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let number = |value: &Value, digits: usize, unit: &str| value.as_f64().map(|v| format!("{v:.digits$}{unit}"));
    if let Some(text) = number(&run.held_out["mean_psnr"], 2, " dB") {
        all.push(("PSNR, held-out views", text));
    }
    if let Some(text) = number(&run.held_out["mean_ssim"], 4, "") {
        all.push(("SSIM, held-out views", text));
    }
    if let Some(text) = number(&run.held_out_refined["mean_psnr"], 2, " dB") {
        all.push(("PSNR, held-out views, their cameras refined", text));
    }
    let cameras = &run.cameras["after"];
    if let (Some(turn), Some(shift)) = (
        number(&cameras["mean_degrees"], 3, "°"),
        number(&cameras["mean_percent"], 3, " %"),
    ) {
        let label = match run.cameras["against_truth"] == true {
            true => "cameras are off by, on average",
            false => "cameras have moved by, on average",
        };
        all.push((label, format!("{turn}, {shift}")));
    }
    if let Some(last) = run.figures.last() {
        if let Some(psnr) = last.psnr {
            all.push(("PSNR, last batch", format!("{psnr:.2} dB")));
        }
        all.push(("loss, last batch", format!("{:.3e}", last.loss)));
        let total = run.record["iterations"]
            .as_u64()
            .filter(|n| *n > u64::from(last.iteration));
        let of = total.map(|n| format!(" of {n}")).unwrap_or_default();
        all.push(("iterations", format!("{}{of}", last.iteration)));
        all.push(("time", duration(last.seconds)));
        all.push(("memory of the device", bytes(greatest_memory(&run.figures))));
        if let Some(count) = last.splats {
            all.push(("splats", count.to_string()));
        }
    }
    all
}

fn greatest_memory(figures: &[Figures]) -> u64 {
    figures.iter().map(|f| f.memory_bytes).max().unwrap_or(0)
}

fn cards(run: &RunData) -> String {
    let card = |(name, value): &(&str, String)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value));
    let cards: String = headline(run).iter().map(card).collect();
    format!("<dl class=\"figures\">{cards}</dl>\n")
}

fn comparison(runs: &[RunData]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let figures: Vec<Vec<(&str, String)>> = runs.iter().map(headline).collect();
    for (name, _) in figures.iter().flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut html = "<div class=\"card scroll\" style=\"margin-top:24px\"><table><tr><th>run</th>".to_owned();
    for name in &names {
        let _ = write!(html, "<th class=\"number\">{name}</th>");
    }
    html += "<th></th></tr>\n";
    for (i, run) in runs.iter().enumerate() {
        let _ = write!(html, "<tr><td>{}{}</td>", swatch(i), escape(&run.name));
        for name in &names {
            let found = figures[i].iter().find(|(n, _)| n == name);
            let text = found.map_or("", |(_, text)| text);
            let _ = write!(html, "<td class=\"number\">{}</td>", escape(text));
        }
        let _ = writeln!(html, "<td>{}</td></tr>", state_of(run));
    }
    html + "</table></div>\n"
}

fn swatch(run: usize) -> String {
    format!("<span class=\"swatch\" style=\"background:var(--run-{run})\"></span>")
}

fn legend(runs: &[RunData]) -> String {
    if runs.len() < 2 {
        return String::new();
    }
    let names = runs.iter().enumerate();
    let items: String = names
        .map(|(i, run)| format!("<li>{}{}</li>", swatch(i), escape(&run.name)))
        .collect();
    format!("<ul class=\"legend\">{items}</ul>\n")
}

/// Loss and PSNR over iterations and seconds.
fn curves(runs: &[RunData], views: &[ViewShown]) -> String {
    let differ = different_losses(runs.iter().map(|run| (run.name.as_str(), &run.scene)));
    let mut html = "<div class=\"plots\">\n".to_owned();
    for over in [Over::Iterations, Over::Seconds] {
        let marks = match runs {
            [run] => stage_marks(run, over),
            _ => Vec::new(),
        };
        let loss =
            |(i, run): (usize, &RunData)| Curve::new(i, over, &run.figures, |f| Some(f.loss).filter(|l| *l > 0.0));
        let psnr = |(i, run): (usize, &RunData)| {
            Curve::new(i, over, &run.figures, |f| f.psnr).with_dots(over, &run.figures, &dots(i, views))
        };
        let splats = |(i, run): (usize, &RunData)| {
            // A number that never changes needs no curve.
            let first = run.figures.first().and_then(|f| f.splats);
            let changes = run.figures.iter().any(|f| f.splats != first);
            let count = |f: &Figures| f.splats.filter(|_| changes).map(|count| count as f64);
            Curve::new(i, over, &run.figures, count)
        };
        let each = || runs.iter().enumerate();
        let charts = [
            Chart {
                title: "Loss",
                over,
                log: true,
                curves: if differ.is_empty() {
                    each().map(loss).collect()
                } else {
                    Vec::new()
                },
                marks: marks.clone(),
            },
            Chart {
                title: "PSNR in dB",
                over,
                log: false,
                curves: each().map(psnr).collect(),
                marks: marks.clone(),
            },
            Chart {
                title: "Splats",
                over,
                log: false,
                curves: each().map(splats).collect(),
                marks,
            },
        ];
        for svg in charts.iter().filter_map(Chart::svg) {
            let _ = writeln!(html, "<figure>{svg}</figure>");
        }
    }
    html += "</div>\n<p class=\"note\">Lines: mean of neighbouring batches, in the band of their least and greatest.";
    if views
        .iter()
        .any(|v| v.runs.iter().any(|r| r.frames.iter().any(|f| f.psnr.is_some())))
    {
        html += " Dots: the views above.";
    }
    if matches!(runs, [run] if run.figures.last().is_some_and(|f| f.stage > 1)) {
        html += " Dashed: changes of resolution.";
    }
    if !differ.is_empty() {
        let _ = write!(html, " No curves of the losses, which differ: {}.", escape(&differ));
    }
    html + "</p>\n"
}

/// The losses of runs, given by name and scene, in words; empty if all are the same or one is unknown.
fn different_losses<'a>(runs: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let losses: Option<Vec<(&str, &Value)>> = runs
        .map(|(name, scene)| Some((name, scene.pointer("/optimize/loss")?)))
        .collect();
    let losses = losses.unwrap_or_default();
    if losses.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return String::new();
    }
    let words = |(name, loss): &(&str, &Value)| match (loss["type"].as_str(), loss.get("delta")) {
        (Some(kind), None) => format!("{kind} of {name}"),
        (Some(kind), Some(delta)) => format!("{kind} by {delta} of {name}"),
        (None, _) => format!("{loss} of {name}"),
    };
    losses.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// PSNR of the rendered views of a run by iteration.
fn dots(run: usize, views: &[ViewShown]) -> Vec<(u32, f64)> {
    let of_run = views.iter().flat_map(|v| &v.runs).filter(|r| r.run == run);
    of_run
        .flat_map(|r| &r.frames)
        .filter_map(|f| Some((f.iteration, f.psnr?)))
        .collect()
}

/// The changes of resolution of a run.
fn stage_marks(run: &RunData, over: Over) -> Vec<(f64, String)> {
    let changes = run.figures.windows(2).filter(|pair| pair[1].stage != pair[0].stage);
    let place = |pair: &[Figures]| match over {
        Over::Iterations => f64::from(pair[0].iteration),
        Over::Seconds => pair[0].seconds,
    };
    changes
        .map(|pair| (place(pair), format!("stage {}", pair[1].stage)))
        .collect()
}

/// A table of parameters that are a few numbers, beside their start and truth where these are known.
fn numbers(runs: &[RunData]) -> String {
    let text = |values: &[f32]| {
        let values: Vec<String> = values.iter().map(|v| format!("{v:.5}")).collect();
        values.join("&ensp;")
    };
    let known = |list: &[Recovered], path: &str| {
        let found = list.iter().find(|p| p.path == path && p.shape.texels() == 1);
        found.map_or_else(String::new, |p| text(&p.sample))
    };
    let mut rows = String::new();
    let mut has_truth = false;
    for (i, run) in runs.iter().enumerate() {
        for parameter in run.parameters.iter().filter(|p| p.shape.texels() == 1) {
            let mark = if runs.len() > 1 { swatch(i) } else { String::new() };
            let truth = known(&run.truth, &parameter.path);
            has_truth |= !truth.is_empty();
            let _ = writeln!(
                rows,
                "<tr><td>{mark}{}</td><td>{}</td><td>{}</td><td>{truth}</td></tr>",
                escape(&parameter.path),
                known(&run.start, &parameter.path),
                text(&parameter.sample),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let truth = if has_truth { "truth" } else { "" };
    format!(
        "<div class=\"card scroll\"><table>\n<tr><th>parameter</th><th>start</th><th>recovered</th><th>{truth}</th></tr>\n\
         {rows}</table></div>\n"
    )
}

fn parameter_histograms(runs: &[RunData]) -> String {
    let mut paths: Vec<&str> = Vec::new();
    for parameter in runs.iter().flat_map(|run| &run.parameters) {
        if parameter.shape.texels() > 1 && !paths.contains(&parameter.path.as_str()) {
            paths.push(&parameter.path);
        }
    }
    let mut html = "<div class=\"plots\">\n".to_owned();
    for path in paths {
        let each = || {
            let found = |(i, run): (usize, &'_ RunData)| Some((i, run.parameters.iter().position(|p| p.path == path)?));
            let places = runs.iter().enumerate().filter_map(found);
            places.map(|(i, at)| (i, &runs[i].parameters[at]))
        };
        let ranges = each().filter_map(|(_, of)| of.range);
        let (low, high) = grids::range(ranges.flat_map(|(low, high)| [low, high])).unwrap_or((0.0, 1.0));
        let of_runs: Vec<_> = each()
            .map(|(i, of)| (i, grids::histogram(&of.sample, low, high)))
            .collect();
        if let Some(svg) = histograms(path, &of_runs) {
            let _ = writeln!(html, "<figure>{svg}</figure>");
        }
    }
    html + "</div>\n"
}

/// Milliseconds of the passes of an iteration, as means over the run.
fn passes(run: &RunData, named: bool) -> String {
    let count = run.figures.len().max(1) as f64;
    let mean = |of: fn(&Milliseconds) -> f64| run.figures.iter().map(|f| of(&f.ms)).sum::<f64>() / count;
    let total = mean(|ms| ms.total);
    let mut rows: Vec<(&str, f64)> = vec![
        ("primal", mean(|ms| ms.primal)),
        ("loss", mean(|ms| ms.loss)),
        ("adjoint", mean(|ms| ms.adjoint)),
        ("regularise", mean(|ms| ms.regularise)),
        ("step", mean(|ms| ms.step)),
        ("rebuild", mean(|ms| ms.rebuild)),
    ];
    let rest = total - rows.iter().map(|(_, ms)| ms).sum::<f64>();
    rows.push(("other", rest.max(0.0)));
    let mut html = "<div class=\"card scroll\">".to_owned();
    if named {
        let _ = write!(html, "<h3>{}</h3>", escape(&run.name));
    }
    html += "<table><tr><th>pass</th><th class=\"number\">ms an iteration</th><th class=\"number\">share</th><th></th></tr>\n";
    for (name, ms) in rows {
        let share = if total > 0.0 { 100.0 * ms / total } else { 0.0 };
        let _ = writeln!(
            html,
            "<tr><td>{name}</td><td class=\"number\">{ms:.2}</td><td class=\"number\">{share:.1} %</td><td class=\"wide\"><i \
             data-share=\"{share:.1}\" style=\"background:var(--accent)\"></i></td></tr>"
        );
    }
    let _ = writeln!(
        html,
        "<tr><td>iteration</td><td class=\"number\">{total:.2}</td><td></td><td></td></tr></table>"
    );
    let last = run.figures.last();
    let rays: u64 = run.figures.iter().map(|f| f.replay.rays).sum();
    let seconds = last.map_or(0.0, |f| f.seconds);
    let drifted = match run.figures.iter().map(|f| f.replay.drifted).sum::<u64>() {
        0 => String::new(),
        drifted => format!(", {drifted} of them off their first walk"),
    };
    let _ = writeln!(
        html,
        "<p class=\"note\">{} of passes in {}; {} on the device at most; {rays} rays replayed{drifted}.</p></div>",
        duration(total * count / 1e3),
        duration(seconds),
        bytes(greatest_memory(&run.figures)),
    );
    html
}

fn provenance(run: &RunData, named: bool) -> String {
    let record = &run.record;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let words = record["command"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let command: Vec<&str> = words.collect();
    let device = &record["device"];
    let resumed = record["resumed"].as_array().map_or(0, Vec::len);
    let rows = [
        ("command", command.join(" ")),
        ("scene", text(&record["scene"])),
        (
            "device",
            format!(
                "{}: {} ({})",
                text(&device["kind"]),
                text(&device["name"]),
                text(&device["detail"])
            ),
        ),
        ("arithmetic", text(&record["arithmetic"])),
        ("threads", text(&record["threads"])),
        ("seed", text(&record["seed"])),
        ("version", format!("prbopt {}", text(&record["version"]))),
        ("started", text(&record["started"])),
        (
            "resumed",
            match resumed {
                0 => String::new(),
                1 => "once".to_owned(),
                times => format!("{times} times"),
            },
        ),
    ];
    let mut html = "<div class=\"card\">".to_owned();
    if named {
        let _ = write!(html, "<h3>{}</h3>", escape(&run.name));
    }
    html += "<table>\n";
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(html, "<tr><th>{name}</th><td><code>{}</code></td></tr>", escape(value));
    }
    html += "</table>\n";
    if run.scene.is_object() {
        let scene = escape(&format!("{:#}", run.scene));
        let _ = writeln!(
            html,
            "<details style=\"margin-top:10px\"><summary>the scene as it was understood</summary><pre>{scene}</pre></details>"
        );
    }
    html + "</div>\n"
}

/// The JSON data for the script.
fn data(runs: &[RunData], views: &[ViewShown]) -> String {
    let mut volumes = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        volumes.extend(run.parameters.iter().flat_map(|p| grids::shown(i, run, p)));
    }
    let names: Vec<Value> = runs.iter().map(|run| json!({ "name": run.name })).collect();
    let hex = |table: [colormap::Rgb; colormap::STEPS]| -> String {
        table.iter().flatten().map(|byte| format!("{byte:02x}")).collect()
    };
    let all = json!({
        "runs": names,
        "views": views,
        "grids": volumes,
        "tables": { "amounts": hex(colormap::amounts()), "signed": hex(colormap::signed()) },
    });
    // A `</script>` in a string would end the element, so `<` is escaped.
    all.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::super::charts::tests::figures;
    use super::*;
    use crate::output::run_folder::RunFolder;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn losses_share_an_axis_where_they_are_the_same() {
        let scene = |loss: Value| json!({ "optimize": { "loss": loss } });
        let (l1, l2) = (scene(json!({"type": "l1"})), scene(json!({"type": "l2"})));
        let huber = scene(json!({"type": "huber", "delta": 0.5}));
        assert_eq!(different_losses([("a", &l1), ("b", &l1)].into_iter()), "");
        assert_eq!(different_losses([("a", &l1), ("b", &Value::Null)].into_iter()), "");
        let told = different_losses([("a", &l1), ("b", &l2), ("c", &huber)].into_iter());
        assert_eq!(told, "l1 of a, l2 of b, huber by 0.5 of c");
    }
    #[test]
    fn runs_of_different_losses_have_no_curve_of_them() {
        let run = |name: &str, loss: &str| RunData {
            name: name.to_owned(),
            folder: RunFolder::at(Path::new(name)),
            standing: Standing::Finished,
            record: Value::Null,
            scene: json!({ "optimize": { "loss": { "type": loss } } }),
            held_out: Value::Null,
            held_out_refined: Value::Null,
            cameras: Value::Null,
            figures: figures(2),
            views: Vec::new(),
            parameters: Vec::new(),
            start: Vec::new(),
            truth: Vec::new(),
        };
        let page = |losses: [&str; 2]| curves(&[run("a", losses[0]), run("b", losses[1])], &[]);
        let (same, other) = (page(["l1", "l1"]), page(["l1", "l2"]));
        assert!(same.contains("Loss") && !same.contains("No curves"), "{same}");
        assert!(
            other.contains("No curves of the losses, which differ: l1 of a, l2 of b."),
            "{other}"
        );
        assert!(!other.contains("Loss") && other.contains("PSNR"), "{other}");
    }
}
