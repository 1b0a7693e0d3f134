//! Comparison of what two devices computed.

/// Largest difference, as a fraction of an array's largest magnitude. A ray sums some fifty samples in f32, a texel's gradient
/// some hundreds of contributions in another order: rounding alone comes to about 1e-6 of the largest. Newton's method ends at a
/// residual of 1e-6 and may take a step more on one device, which moves a ray by as much; where contributions of random sign
/// cancel, this is ten times larger relative to their sum.
const TOLERANCE: f32 = 5e-5;
/// The same after steps: Adam's first steps are by the signs of gradients, which rounding decides where they are near zero.
const STEPPED: f32 = 1e-3;

/// Named results.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    arrays: Vec<(String, Vec<f32>)>,
    /// How many of them were noted before the first step.
    unstepped: Option<usize>,
    counts: Vec<(String, u64)>,
}

impl Outcome {
    /// Notes an array of numbers that may differ by rounding.
    pub(crate) fn array(&mut self, name: &str, values: Vec<f32>) {
        self.arrays.push((name.into(), values));
    }

    /// Marks that all arrays noted from here on are results of steps.
    pub(crate) fn stepped(&mut self) {
        self.unstepped.get_or_insert(self.arrays.len());
    }

    /// Notes a number that must be the same, but for what rounding does to one in 500: a ray that touches a box may miss it.
    pub(crate) fn count(&mut self, name: &str, value: u64) {
        self.counts.push((name.into(), value));
    }

    /// The arrays' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.iter().map(|(name, _)| name.as_str())
    }

    /// An array.
    pub(crate) fn get(&self, name: &str) -> &[f32] {
        let found = self.arrays.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("no array {name}")).1
    }

    /// An array, to be changed.
    pub(crate) fn get_mut(&mut self, name: &str) -> &mut [f32] {
        let found = self.arrays.iter_mut().find(|(n, _)| n == name);
        &mut found.unwrap_or_else(|| panic!("no array {name}")).1
    }
}

/// Compares entry by entry.
///
/// # Errors
/// The first array that differs, where, and by how much.
pub(crate) fn compare(a: &Outcome, b: &Outcome) -> Result<(), String> {
    let names = |o: &Outcome| o.arrays.iter().map(|(n, v)| (n.clone(), v.len())).collect::<Vec<_>>();
    if names(a) != names(b) {
        return Err(format!("different arrays: {:?} and {:?}", names(a), names(b)));
    }
    let alike = |(a, b): (&(String, u64), &(String, u64))| a.0 == b.0 && a.1.abs_diff(b.1) <= a.1 / 500;
    if a.counts.len() != b.counts.len() || !a.counts.iter().zip(&b.counts).all(alike) {
        return Err(format!("{:?} and {:?}", a.counts, b.counts));
    }
    let unstepped = a.unstepped.unwrap_or(a.arrays.len());
    for (i, ((name, a), (_, b))) in a.arrays.iter().zip(&b.arrays).enumerate() {
        let scale = a.iter().fold(0f32, |m, v| m.max(v.abs())).max(1e-30);
        let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs() / scale);
        let (place, worst) = differences.enumerate().fold((0, 0.0), |worst, d| {
            // A NaN is the worst of all.
            if d.1 > worst.1 || d.1.is_nan() { d } else { worst }
        });
        let tolerance = if i < unstepped { TOLERANCE } else { STEPPED };
        if worst.is_nan() || worst > tolerance {
            return Err(format!(
                "{name}[{place}]: {} and {}, {worst:e} of the largest entry {scale}",
                a[place], b[place]
            ));
        }
    }
    Ok(())
}
