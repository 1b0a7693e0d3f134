//! Plots of how costs grow, on two logarithmic axes: one SVG of several panels in the colours of a report.

use plotters::prelude::*;

use super::charts::{MAX_RUNS, marks_of_decades, power};

/// Width and height of a panel, and height of the legend, in the picture's own units.
const PANEL: (u32, u32) = (360, 270);
const LEGEND: u32 = 26;

/// Ink, grid lines, and the colours of runs, as a report on light paper has them.
const INK: RGBColor = RGBColor(0x1d, 0x1f, 0x24);
const FAINT: RGBColor = RGBColor(0xe4, 0xe2, 0xdc);
const COLORS: [RGBColor; MAX_RUNS] = [
    RGBColor(0x0b, 0x6e, 0x8f),
    RGBColor(0xc2, 0x57, 0x1a),
    RGBColor(0x3d, 0x8b, 0x40),
    RGBColor(0x8e, 0x4f, 0xa8),
    RGBColor(0xb3, 0x83, 0x1a),
    RGBColor(0xc3, 0x3c, 0x62),
    RGBColor(0x46, 0x60, 0x8f),
    RGBColor(0x6a, 0x6a, 0x6a),
];

/// One curve of costs.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    /// Pairs of the quantity on the horizontal axis and the cost; pairs that are not positive are left out.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    fn drawn(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0)
    }
}

/// One plot.
#[derive(Debug)]
pub struct Panel<'a> {
    pub title: &'a str,
    /// Label of the horizontal axis.
    pub across: &'a str,
    pub lines: Vec<Line>,
}

/// The panels side by side over a legend of the first panel's names; None if one of them is empty.
pub fn svg(panels: &[Panel<'_>]) -> Option<String> {
    let names = &panels.first()?.lines;
    let size = (PANEL.0 * panels.len() as u32, PANEL.1 + LEGEND);
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
    root.fill(&WHITE).ok()?;
    let (above, below) = root.split_vertically(PANEL.1);
    for (panel, area) in panels.iter().zip(above.split_evenly((1, panels.len()))) {
        panel.draw(&area)?;
    }
    let style = ("sans-serif", 13).into_font().color(&INK);
    let mut x = 70;
    for (line, color) in names.iter().zip(COLORS.iter().cycle()) {
        below
            .draw(&Rectangle::new([(x, 6), (x + 11, 17)], color.filled()))
            .ok()?;
        below
            .draw(&Text::new(line.name.clone(), (x + 17, 6), style.clone()))
            .ok()?;
        x += 40 + 7 * line.name.chars().count() as i32;
    }
    root.present().ok()?;
    drop((above, below, root));
    Some(text)
}

impl Panel<'_> {
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Option<()> {
        let points = || self.lines.iter().flat_map(Line::drawn);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            let (low, high) = values.fold((f64::MAX, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
            (low <= high).then_some(low / 1.25..high * 1.25)
        };
        let across = range(&mut points().map(|(x, _)| x))?;
        let up = range(&mut points().map(|(_, y)| y))?;
        // Axes.
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, ("sans-serif", 14, &INK))
            .margin(6)
            .margin_right(14)
            .x_label_area_size(40)
            .y_label_area_size(52)
            .build_cartesian_2d(
                across.clone().log_scale().with_key_points(marks_of_decades(&across)),
                up.clone().log_scale().with_key_points(marks_of_decades(&up)),
            )
            .ok()?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK.mix(0.6))
            .label_style(("sans-serif", 12, &INK))
            .x_desc(self.across)
            .x_label_formatter(&|v| power(*v))
            .y_label_formatter(&|v| power(*v))
            .draw()
            .ok()?;
        // Lines, and a dot where something was measured; earlier ones are wider, so that they show below later ones.
        for (i, line) in self.lines.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            let width = 2 + (self.lines.len() - 1 - i) as u32;
            chart
                .draw_series(LineSeries::new(line.drawn(), color.stroke_width(width)))
                .ok()?;
            let dots = line.drawn().map(|place| Circle::new(place, width + 1, color.filled()));
            chart.draw_series(dots).ok()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(points: &[(f64, f64)]) -> Panel<'_> {
        let line = Line {
            name: "path replay".into(),
            points: points.to_vec(),
        };
        Panel {
            title: "adjoint",
            across: "edges",
            lines: vec![line],
        }
    }

    #[test]
    fn costs_are_drawn_on_logarithmic_axes() {
        let points = [(4.0, 10.0), (16.0, 40.0), (64.0, 160.0), (256.0, 0.0)];
        let svg = svg(&[panel(&points), panel(&points)]).expect("drawn");
        assert_eq!(svg.matches("path replay").count(), 1, "{svg}");
        assert_eq!(svg.matches("<polyline").count() % 2, 0);
        // Three dots a panel, evenly spaced: points at zero, which have no logarithm, are left out.
        let circles: Vec<f64> = svg
            .split("<circle cx=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().expect("a number").parse().expect("a number"))
            .collect();
        assert_eq!(circles.len(), 6);
        assert!((circles[2] - 2.0 * circles[1] + circles[0]).abs() <= 2.0, "{circles:?}");
    }

    #[test]
    fn nothing_is_not_drawn() {
        assert_eq!(svg(&[]), None);
        assert_eq!(svg(&[panel(&[(1.0, 0.0)])]), None);
    }
}
