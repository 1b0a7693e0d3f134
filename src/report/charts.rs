//! The plots of a report, as SVG with placeholder colours that the page's style replaces (light or dark).

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::grids::Histogram;
use crate::output::metrics::Figures;

/// Width and height of a plot in its own units.
const SIZE: (u32, u32) = (470, 270);

/// Points of a curve; each stands for a range of values by mean, minimum and maximum.
const POINTS: usize = 240;

/// Placeholder colours: axes and text, grid lines, marks, and run i.
const INK: RGBColor = RGBColor(1, 1, 1);
const NEGLIGIBLE: RGBColor = RGBColor(2, 2, 2);
const MARK: RGBColor = RGBColor(3, 3, 3);

/// The largest number of runs with distinct colours.
pub(super) const MAX_RUNS: usize = 8;

fn color(run: usize) -> RGBColor {
    let tone = 0x10 + (run % MAX_RUNS) as u8;
    RGBColor(tone, tone, tone)
}

/// The horizontal axis of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Iterations,
    Seconds,
}

impl Over {
    fn of(self, figures: &Figures) -> f64 {
        match self {
            Over::Iterations => figures.iteration.into(),
            Over::Seconds => figures.seconds,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Over::Iterations => "iterations",
            Over::Seconds => "seconds",
        }
    }
}

/// A point of a curve: mean, minimum and maximum of neighbouring values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    x: f64,
    low: f64,
    mean: f64,
    high: f64,
}

/// One run's curve.
#[derive(Debug)]
pub(super) struct Curve {
    run: usize,
    points: Vec<Point>,
    /// Position of its last value.
    end: f64,
    /// Single values of rendered views.
    dots: Vec<(f64, f64)>,
}

impl Curve {
    /// The curve of `value` where it is defined.
    pub(super) fn new(run: usize, over: Over, figures: &[Figures], value: impl Fn(&Figures) -> Option<f64>) -> Self {
        let defined = |f: &Figures| Some((over.of(f), value(f).filter(|v| v.is_finite())?));
        let values: Vec<(f64, f64)> = figures.iter().filter_map(defined).collect();
        let together = values.len().div_ceil(POINTS).max(1);
        let point = |some: &[(f64, f64)]| {
            let count = some.len() as f64;
            let start = Point {
                x: 0.0,
                low: f64::MAX,
                mean: 0.0,
                high: f64::MIN,
            };
            some.iter().fold(start, |p, (x, y)| Point {
                x: p.x + x / count,
                low: p.low.min(*y),
                mean: p.mean + y / count,
                high: p.high.max(*y),
            })
        };
        Self {
            run,
            points: values.chunks(together).map(point).collect(),
            end: values.last().map_or(0.0, |(x, _)| *x),
            dots: Vec::new(),
        }
    }

    /// Adds single values by iteration, drawn as dots.
    #[must_use]
    pub(super) fn with_dots(mut self, over: Over, figures: &[Figures], dots: &[(u32, f64)]) -> Self {
        let place = |iteration: u32| match over {
            Over::Iterations => Some(f64::from(iteration)),
            Over::Seconds if iteration == 0 => Some(0.0),
            Over::Seconds => figures.iter().find(|f| f.iteration >= iteration).map(|f| f.seconds),
        };
        self.dots = dots.iter().filter_map(|(i, y)| Some((place(*i)?, *y))).collect();
        self
    }
}

/// The contents of a plot.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) over: Over,
    /// Logarithmic if the values' range is large; all must be positive.
    pub(super) log: bool,
    pub(super) curves: Vec<Curve>,
    /// Positions of events, with a label each.
    pub(super) marks: Vec<(f64, String)>,
}

impl Chart<'_> {
    /// The plot as SVG; None if there is nothing to draw.
    pub(super) fn svg(&self) -> Option<String> {
        let points = || self.curves.iter().flat_map(|c| &c.points);
        let dots = || self.curves.iter().flat_map(|c| &c.dots);
        let right = self
            .curves
            .iter()
            .map(|c| c.end)
            .chain(dots().map(|d| d.0))
            .fold(0.0, f64::max);
        let lows = points().map(|p| p.low).chain(dots().map(|d| d.1));
        let highs = points().map(|p| p.high).chain(dots().map(|d| d.1));
        let positive = |v: &f64| !self.log || *v > 0.0;
        let low = lows.filter(positive).fold(f64::MAX, f64::min);
        let high = highs.filter(positive).fold(f64::MIN, f64::max);
        if low > high || right <= 0.0 {
            return None;
        }
        let mut svg = String::new();
        // Over less than a decade a linear axis has better tick marks.
        let drawn = if self.log && high > 8.0 * low {
            let range = low / 1.3..high * 1.3;
            let axis = range.clone().log_scale().with_key_points(marks_of_decades(&range));
            self.draw(&mut svg, right, axis, range, &|v| power(*v))
        } else {
            let span = if high > low { high - low } else { high.abs().max(1e-9) };
            let margin = 0.06 * span;
            let range = low - margin..high + margin;
            self.draw(&mut svg, right, range.clone(), range, &|v| fixed(*v, span))
        };
        drawn.ok().map(|()| svg)
    }

    fn draw<Y>(
        &self,
        svg: &mut String,
        right: f64,
        axis: Y,
        range: Range<f64>,
        label: &dyn Fn(&f64) -> String,
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        // Axes.
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, ("sans-serif", 14, &INK))
            .margin(6)
            .margin_right(14)
            .x_label_area_size(40)
            .y_label_area_size(58)
            .build_cartesian_2d(0.0..right, axis)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(NEGLIGIBLE)
            .axis_style(INK.mix(0.6))
            .label_style(("sans-serif", 12, &INK))
            .x_desc(self.over.label())
            .x_labels(7)
            .y_labels(6)
            .x_label_formatter(&|v| short(*v))
            .y_label_formatter(&|v| label(v))
            .draw()?;
        // Marked events.
        let words = ("sans-serif", 11)
            .into_font()
            .color(&MARK)
            .pos(Pos::new(HPos::Left, VPos::Top));
        for (x, word) in &self.marks {
            chart.draw_series(DashedLineSeries::new(
                [(*x, range.start), (*x, range.end)],
                4,
                4,
                MARK.stroke_width(1),
            ))?;
            let place = EmptyElement::at((*x, range.end)) + Text::new(word.clone(), (4, 2), words.clone());
            chart.draw_series(std::iter::once(place))?;
        }
        // Curves: the band from minimum to maximum, the mean, and single values.
        let held = |v: f64| v.clamp(range.start, range.end);
        for curve in &self.curves {
            let color = color(curve.run);
            let upper = curve.points.iter().map(|p| (p.x, held(p.high)));
            let lower = curve.points.iter().rev().map(|p| (p.x, held(p.low)));
            chart.draw_series(std::iter::once(Polygon::new(
                upper.chain(lower).collect::<Vec<_>>(),
                color.mix(0.22),
            )))?;
            let middle = curve.points.iter().map(|p| (p.x, held(p.mean)));
            chart.draw_series(LineSeries::new(middle, color.stroke_width(2)))?;
            let dots = curve.dots.iter().filter(|d| range.contains(&d.1));
            chart.draw_series(dots.map(|&place| Circle::new(place, 3, color.filled())))?;
        }
        root.present()?;
        drop(chart);
        Ok(())
    }
}

/// Histograms of one parameter in several runs: bars for one run, outlines for more. Frequencies are on a logarithmic
/// scale, as most texels of a grid are empty.
pub(super) fn histograms(title: &str, of_runs: &[(usize, Histogram)]) -> Option<String> {
    let shares = || {
        of_runs
            .iter()
            .flat_map(|(_, h)| &h.shares)
            .copied()
            .filter(|s| *s > 0.0)
    };
    let (least, most) = shares().fold((1.0, 0.0), |(low, high): (f64, f64), s| (low.min(s), high.max(s)));
    let (_, first) = of_runs.first()?;
    if most <= 0.0 || first.high <= first.low {
        return None;
    }
    let floor = least / 2.0;
    let mut svg = String::new();
    // Axes.
    let draw = |svg: &mut String| -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 14, &INK))
            .margin(6)
            .margin_right(14)
            .x_label_area_size(40)
            .y_label_area_size(58)
            .build_cartesian_2d(first.low..first.high, (floor..most * 1.5).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(NEGLIGIBLE)
            .axis_style(INK.mix(0.6))
            .label_style(("sans-serif", 12, &INK))
            .x_desc("value")
            .x_labels(7)
            .y_labels(6)
            .x_label_formatter(&|v| short(*v))
            .y_label_formatter(&|v| percent(*v))
            .draw()?;
        // Bars or outlines.
        for (run, histogram) in of_runs {
            let width = (histogram.high - histogram.low) / histogram.shares.len() as f64;
            let edge = |i: usize| histogram.low + width * i as f64;
            if of_runs.len() == 1 {
                let bars = histogram.shares.iter().enumerate().filter(|(_, s)| **s > 0.0);
                let bar = |(i, s): (usize, &f64)| {
                    Rectangle::new([(edge(i), floor), (edge(i + 1), *s)], color(*run).mix(0.8).filled())
                };
                chart.draw_series(bars.map(bar))?;
            } else {
                let steps = histogram.shares.iter().enumerate();
                let outline = steps.flat_map(|(i, s)| [(edge(i), s.max(floor)), (edge(i + 1), s.max(floor))]);
                chart.draw_series(LineSeries::new(outline, color(*run).stroke_width(2)))?;
            }
        }
        root.present()?;
        drop(chart);
        Ok(())
    };
    draw(&mut svg).ok().map(|()| svg)
}

/// Tick positions of a logarithmic axis: powers of ten, and also two and five times those if there are few.
pub(super) fn marks_of_decades(range: &Range<f64>) -> Vec<f64> {
    let [first, last] = [range.start, range.end].map(|v| v.log10().floor() as i32);
    let steps: &[f64] = if last - first > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    all.filter(|mark| range.contains(mark)).collect()
}

/// Formats a number for an axis.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.0e}")
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// Formats a number for a linear axis with this span.
fn fixed(value: f64, span: f64) -> String {
    if !(1e-6..1e5).contains(&span) {
        return short(value);
    }
    let digits = (1.3 - span.log10()).ceil().clamp(0.0, 8.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a number for a logarithmic axis.
pub(super) fn power(value: f64) -> String {
    if (0.01..1000.0).contains(&value) {
        short(value)
    } else {
        format!("{value:.0e}")
    }
}

fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::report) fn figures(count: u32) -> Vec<Figures> {
        let line = |i: u32| {
            serde_json::json!({
                "iteration": i, "stage": 1, "loss": 1.0 / f64::from(i), "psnr": f64::from(i).ln(), "penalty": 0.0,
                "learning_rate_factor": 1.0, "learning_rates": {}, "gradient_norms": {}, "masked": 0,
                "replay": {"rays": 1, "samples": 2, "drifted": 0},
                "ms": {"primal": 1.0, "loss": 1.0, "adjoint": 1.0, "regularise": 0.0, "step": 1.0, "rebuild": 0.0, "total": 4.0},
                "memory_bytes": 1, "seconds": f64::from(i) * 0.5
            })
        };
        (1..=count)
            .map(|i| serde_json::from_value(line(i)).expect("figures"))
            .collect()
    }

    #[test]
    fn long_runs_are_thinned_and_nothing_extreme_is_lost() {
        let mut all = figures(10_000);
        all[5_000].loss = 123.0;
        let curve = Curve::new(0, Over::Seconds, &all, |f| Some(f.loss));
        assert!(curve.points.len() <= POINTS);
        assert!(curve.points.iter().any(|p| p.high == 123.0));
    }

    #[test]
    fn plots_are_drawn_and_empty_ones_are_not() {
        let all = figures(50);
        let curve =
            Curve::new(3, Over::Iterations, &all, |f| Some(f.loss)).with_dots(Over::Iterations, &all, &[(7, 0.5)]);
        let chart = Chart {
            title: "loss",
            over: Over::Iterations,
            log: true,
            curves: vec![curve],
            marks: vec![(20.0, "24³".into())],
        };
        let svg = chart.svg().expect("drawn");
        assert!(
            svg.contains("#131313") && svg.contains("24³") && svg.contains("<circle"),
            "{svg}"
        );
        let nothing = Curve::new(0, Over::Iterations, &all, |_| None);
        let chart = Chart {
            title: "x",
            over: Over::Iterations,
            log: false,
            curves: vec![nothing],
            marks: vec![],
        };
        assert_eq!(chart.svg(), None);
    }

    #[test]
    fn logarithmic_axes_have_several_marks() {
        assert_eq!(marks_of_decades(&(0.0045..0.05)), [0.005, 0.01, 0.02]);
        assert_eq!(marks_of_decades(&(0.0015..9.0)), [0.01, 0.1, 1.0]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (short(0.5), short(1e-7), short(250.0)),
            ("0.5".into(), "1e-7".into(), "250".into())
        );
        assert_eq!(
            (fixed(0.0025, 0.003), fixed(30.0, 25.0)),
            ("0.0025".into(), "30".into())
        );
        assert_eq!(
            (power(0.01), power(1e-3), percent(0.001)),
            ("0.01".into(), "1e-3".into(), "0.1 %".into())
        );
    }
}
