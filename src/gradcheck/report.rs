//! Verdicts and their presentation.

use std::fmt;

use serde::Serialize;

use super::field::difference::Difference;
use super::field::entries::Place;
use super::paths::entries::coordinates;
use super::paths::fresh::FreshReport;
use super::paths::tracking::TrackingReport;
use super::{Options, Weighting};
use crate::device::DeviceInfo;
use crate::params::Parameter;

/// Relative errors are taken against at least this fraction of the parameter's largest gradient.
pub(super) const FLOOR: f64 = 1e-3;
/// The same for a device's gradient of paths, splats or traced light, in which rounded terms of both signs cancel.
pub(super) const DEVICE_FLOOR: f64 = 10.0 * FLOOR;

/// The result for one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    /// Left and right differences differ, and the gradient equals the one-sided difference that docs/method.md
    /// specifies.
    Kink,
    /// A sample is so near a kink that f32 may evaluate the other side: the device is not judged.
    NearKink,
    /// No reference is available.
    Unjudged,
    /// Within the tolerance, which was widened so far by the rounding of a difference of this step that it says nothing.
    Unresolved,
    Fail,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Pass => "ok",
            Self::Kink => "ok, kink",
            Self::NearKink => "near kink",
            Self::Unjudged => "unjudged",
            Self::Unresolved => "not judged",
            Self::Fail => "FAIL",
        }
    }
}

/// |a - b| / max(|b|, 10⁻³ · largest); 0 if a = b, infinite if only the denominator is zero or `a` is NaN.
pub fn relative_error(a: f64, b: f64, largest: f64) -> f64 {
    let difference = (a - b).abs();
    if difference == 0.0 {
        return 0.0;
    }
    let error = difference / b.abs().max(FLOOR * largest);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The largest relative error over all entries of a gradient.
pub fn worst_error(found: &[f32], expected: &[f64], largest: f64) -> f64 {
    let errors = found
        .iter()
        .zip(expected)
        .map(|(a, b)| relative_error(f64::from(*a), *b, largest));
    errors.fold(0.0, f64::max)
}

/// One entry.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// x, y, z, channel.
    pub index: [usize; 4],
    pub place: Place,
    /// Path replay in f64.
    pub prb: f64,
    /// Finite difference, at a kink the one-sided difference that docs/method.md specifies.
    pub difference: f64,
    pub error: f64,
    pub verdict: Verdict,
    /// Left and right differences, at a kink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<[f64; 2]>,
    /// The device's gradient, judged against `prb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceCell>,
}

/// The device's part of a row.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DeviceCell {
    pub prb: f64,
    pub error: f64,
    pub verdict: Verdict,
}

impl DeviceCell {
    /// Judges an entry of a device's gradient of paths, splats or traced light against `prb`; errors of entries below
    /// [`DEVICE_FLOOR`] of the largest gradient are relative to that.
    pub(super) fn judge(found: f64, prb: f64, largest: f64, tolerance: f64) -> Self {
        let error = relative_error(found, prb, DEVICE_FLOOR / FLOOR * largest);
        let verdict = if error <= tolerance {
            Verdict::Pass
        } else {
            Verdict::Fail
        };
        Self {
            prb: found,
            error,
            verdict,
        }
    }
}

impl Row {
    /// Judges one entry under the `w`-th weighting.
    pub(super) fn judge(
        index: [usize; 4],
        place: Place,
        prb: f64,
        (difference, w): (&Difference, usize),
        device: Option<f64>,
        largest: f64,
        options: &Options,
    ) -> Self {
        let expected = difference.fixed[w];
        let error = relative_error(prb, expected, largest);
        let sides = difference.sides.as_ref().map(|[left, right]| [left[w], right[w]]);
        let is_kink = sides.is_some_and(|[left, right]| relative_error(left, right, largest) > options.tolerance);
        let allowed = |error: f64, tolerance: f64| {
            if place == Place::Unmet {
                error == 0.0
            } else {
                error <= tolerance
            }
        };
        let passing = if is_kink { Verdict::Kink } else { Verdict::Pass };
        let verdict = if allowed(error, options.tolerance) {
            passing
        } else {
            Verdict::Fail
        };
        let device = device.map(|found| {
            let error = relative_error(found, prb, largest);
            let verdict = if allowed(error, options.device_tolerance) {
                passing
            } else if difference.blurred {
                Verdict::NearKink
            } else {
                Verdict::Fail
            };
            DeviceCell {
                prb: found,
                error,
                verdict,
            }
        });
        Self {
            index,
            place,
            prb,
            difference: expected,
            error,
            verdict,
            sides: sides.filter(|_| is_kink),
            device,
        }
    }

    /// Whether neither the f64 walk nor the device failed.
    pub fn passed(&self) -> bool {
        self.verdict != Verdict::Fail && self.device.is_none_or(|d| d.verdict != Verdict::Fail)
    }
}

/// A parameter under one weighting.
#[derive(Debug, Clone, Serialize)]
pub struct ParameterReport {
    pub path: String,
    pub weighting: Weighting,
    /// Largest gradient of all entries.
    pub largest: f64,
    /// Largest error over all entries of the device's gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_worst: Option<f64>,
    pub passed: bool,
    /// What to do where the step of the differences is such that entries are not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    pub rows: Vec<Row>,
}

impl ParameterReport {
    /// Takes back the verdicts on entries whose difference by paths is off by `rounding`, if that is beyond the tolerance
    /// for a parameter whose largest derivative is `largest`. Entries that no path reaches have exact differences.
    pub(super) fn take_back(&mut self, rounding: f64, largest: f64, tolerance: f64, advice: impl Fn() -> String) {
        for row in &mut self.rows {
            let judges = rounding <= tolerance * row.prb.abs().max(FLOOR * largest);
            let passed = matches!(row.verdict, Verdict::Pass | Verdict::Kink);
            if !judges && passed && row.place != Place::Unmet {
                row.verdict = Verdict::Unresolved;
                self.passed = false;
                self.advice.get_or_insert_with(&advice);
            }
        }
    }

    /// Judges the gradient of a parameter of paths, splats or traced light under the `w`-th weighting, and a device's if
    /// given. Entries are flat indices, each with the reason why it was chosen and its difference. The floor of relative
    /// errors is a part of the largest derivative, but at least of `beside[0]` for the f64 walk and of `beside[1]` for a
    /// device.
    pub(super) fn judge<'a>(
        parameter: &Parameter,
        (w, weighting): (usize, Weighting),
        (gradient, beside): (&[f64], [f64; 2]),
        device: Option<&[f32]>,
        entries: impl Iterator<Item = (usize, Place, &'a Difference)>,
        options: &Options,
    ) -> Self {
        let [largest, of_device] = beside.map(|least| gradient.iter().fold(least, |m: f64, g| m.max(g.abs())));
        let row = |(flat, place, difference): (usize, Place, &Difference)| {
            let (index, prb) = (coordinates(parameter.shape, flat), gradient[flat]);
            let mut row = Row::judge(index, place, prb, (difference, w), None, largest, options);
            row.device = device.map(|d| DeviceCell::judge(d[flat].into(), prb, of_device, options.device_tolerance));
            row
        };
        let rows: Vec<Row> = entries.map(row).collect();
        Self {
            path: parameter.path.clone(),
            weighting,
            largest,
            device_worst: device.map(|device| worst_error(device, gradient, DEVICE_FLOOR / FLOOR * of_device)),
            passed: !rows.is_empty() && rows.iter().all(Row::passed),
            advice: None,
            rows,
        }
    }
}

/// The value of the objective under one weighting.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LossReport {
    pub weighting: Weighting,
    /// In f64.
    pub value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<f64>,
}

/// All that a check found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceInfo>,
    /// Why a device was not checked, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    pub pixels: u32,
    pub rays: u64,
    pub spp: u32,
    pub seed: u64,
    pub losses: Vec<LossReport>,
    pub passed: bool,
    pub parameters: Vec<ParameterReport>,
    /// Differential tracking against free flight, for each extinction, if the scene uses it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tracking: Vec<TrackingReport>,
    /// Path replay beside differences of images rendered with new random numbers, for parameters that move surfaces or
    /// bend paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fresh: Vec<FreshReport>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rays of {} pixels, {} a pixel, seed {}",
            self.rays, self.pixels, self.spp, self.seed
        )?;
        match &self.device {
            Some(device) => writeln!(f, "; device: {} ({})", device.kind, device.name)?,
            None => writeln!(f)?,
        }
        if let Some(skipped) = &self.skipped {
            writeln!(f, "{skipped}")?;
        }
        for loss in &self.losses {
            write!(f, "loss, {} weights: {:.9} in f64", loss.weighting.name(), loss.value)?;
            match loss.device {
                Some(value) => writeln!(f, ", {value:.9} on the device")?,
                None => writeln!(f)?,
            }
        }
        let kind = self.device.as_ref().map(|d| d.kind);
        self.parameters.iter().try_for_each(|p| p.show(f, kind))?;
        self.tracking.iter().try_for_each(|t| t.show(f, kind))?;
        self.fresh.iter().try_for_each(|fresh| fresh.show(f))
    }
}

impl FreshReport {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{}, beside differences of images drawn anew, mean of {} passes: silhouettes and the borders of shadows are \
             in the latter alone",
            self.path, self.passes
        )?;
        writeln!(
            f,
            "  {:>18} {:>15} {:>15} {:>15} {:>9}",
            "x,y,z,channel", "PRB f64", "differences", "left out", "± error"
        )?;
        self.rows.iter().try_for_each(|row| {
            let [x, y, z, c] = row.index;
            let index = format!("{x},{y},{z},{c}");
            let (replayed, fresh) = (row.replayed, row.fresh);
            let left_out = fresh - replayed;
            writeln!(
                f,
                "  {index:>18} {replayed:>15.8e} {fresh:>15.8e} {left_out:>15.8e} {:>9.1e}",
                row.error
            )
        })
    }
}

impl ParameterReport {
    fn show(&self, f: &mut fmt::Formatter<'_>, device: Option<&str>) -> fmt::Result {
        writeln!(f, "\n{}, {} weights", self.path, self.weighting.name())?;
        write!(
            f,
            "  {:>18} {:<6} {:>15} {:>15} {:>9} {:<9}",
            "x,y,z,channel", "place", "PRB f64", "finite diff.", "rel. err.", "verdict"
        )?;
        match device {
            Some(kind) => writeln!(f, " {:>15} {:>9} verdict", format!("PRB {kind}"), "rel. err.")?,
            None => writeln!(f)?,
        }
        for row in &self.rows {
            let [x, y, z, c] = row.index;
            write!(
                f,
                "  {:>18} {:<6} {:>15.8e} {:>15.8e} {:>9.1e} {:<9}",
                format!("{x},{y},{z},{c}"),
                row.place.name(),
                row.prb,
                row.difference,
                row.error,
                row.verdict.name(),
            )?;
            match row.device {
                Some(d) => writeln!(f, " {:>15.8e} {:>9.1e} {}", d.prb, d.error, d.verdict.name())?,
                None => writeln!(f)?,
            }
        }
        let failed = self.rows.iter().filter(|r| !r.passed()).count();
        let kinks = self.rows.iter().filter(|r| r.sides.is_some()).count();
        let worst = self.rows.iter().fold(0.0, |m: f64, r| m.max(r.error));
        write!(f, "  {}: ", if self.passed { "PASSED" } else { "FAILED" })?;
        write!(
            f,
            "{}, {failed} failed, {kinks} at kinks, largest error {worst:.1e}",
            entries(self.rows.len())
        )?;
        let unresolved = self.rows.iter().filter(|r| r.verdict == Verdict::Unresolved).count();
        if unresolved > 0 {
            write!(f, ", {unresolved} not judged")?;
        }
        match self.device_worst {
            Some(worst) => writeln!(f, "; device over all entries {worst:.1e}")?,
            None => writeln!(f)?,
        }
        match &self.advice {
            Some(advice) => writeln!(f, "  {advice}"),
            None => Ok(()),
        }
    }
}

impl TrackingReport {
    fn show(&self, f: &mut fmt::Formatter<'_>, device: Option<&str>) -> fmt::Result {
        writeln!(
            f,
            "\n{}, differential tracking, mean of {} passes",
            self.path, self.passes
        )?;
        write!(
            f,
            "  {:>18} {:<6} {:>15} {:>15} {:>6} {:>8} {:<9}",
            "x,y,z,channel", "place", "tracking", "free flight", "z", "seen", "verdict"
        )?;
        match device {
            Some(kind) => writeln!(f, " {:>15} {:>9} verdict", format!("PRB {kind}"), "rel. err.")?,
            None => writeln!(f)?,
        }
        let rows = self.rows.iter().map(|row| {
            let [x, y, z, c] = row.index;
            (format!("{x},{y},{z},{c}"), row.place.name(), &row.means, row.device)
        });
        for (index, place, means, device) in rows.chain([("sum of all".into(), "", &self.sum, None)]) {
            write!(
                f,
                "  {index:>18} {place:<6} {:>15.8e} {:>15.8e} {:>6.2} {:>8.1e} {:<9}",
                means.tracked,
                means.free_flight,
                means.z,
                means.seen,
                means.verdict.name(),
            )?;
            match device {
                Some(d) => writeln!(f, " {:>15.8e} {:>9.1e} {}", d.prb, d.error, d.verdict.name())?,
                None => writeln!(f)?,
            }
        }
        let failed = self.rows.iter().filter(|r| !r.passed()).count();
        writeln!(
            f,
            "  {}: {}, {failed} failed; `seen` is the relative error that would have been",
            if self.passed { "PASSED" } else { "FAILED" },
            entries(self.rows.len())
        )
    }
}

fn entries(count: usize) -> String {
    format!("{count} {}", if count == 1 { "entry" } else { "entries" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(fixed: f64, sides: Option<[f64; 2]>) -> Difference {
        Difference {
            fixed: vec![fixed],
            sides: sides.map(|[l, r]| [vec![l], vec![r]]),
            blurred: false,
        }
    }

    fn judge(place: Place, prb: f64, difference: &Difference, device: Option<f64>) -> Row {
        Row::judge([0; 4], place, prb, (difference, 0), device, 1.0, &Options::default())
    }

    #[test]
    fn one_percent_fails_and_rounding_passes() {
        assert!(judge(Place::Drawn, 0.5 * (1.0 + 1e-9), &difference(0.5, None), Some(0.50002)).passed());
        assert_eq!(
            judge(Place::Drawn, 0.505, &difference(0.5, None), None).verdict,
            Verdict::Fail
        );
        assert!(!judge(Place::Drawn, 0.5, &difference(0.5, None), Some(0.505)).passed());
        assert!(!judge(Place::Drawn, f64::NAN, &difference(0.5, None), None).passed());
        assert!(!judge(Place::Drawn, 0.5, &difference(0.5, None), Some(f64::NAN)).passed());
    }

    #[test]
    fn small_entries_are_measured_against_the_largest() {
        assert!(judge(Place::Drawn, 9e-10, &difference(0.0, None), None).passed());
        assert!(!judge(Place::Drawn, 2e-9, &difference(0.0, None), None).passed());
        assert!(!judge(Place::Unmet, 1e-30, &difference(0.0, None), None).passed());
    }

    #[test]
    fn a_kink_takes_the_fixed_side_only() {
        let kink = difference(0.5, Some([0.0, 0.5]));
        assert_eq!(judge(Place::Kink, 0.5, &kink, None).verdict, Verdict::Kink);
        assert_eq!(judge(Place::Kink, 0.0, &kink, None).verdict, Verdict::Fail);
        let smooth = difference(0.5, Some([0.5, 0.5]));
        assert_eq!(judge(Place::Kink, 0.5, &smooth, None).verdict, Verdict::Pass);
    }
}
