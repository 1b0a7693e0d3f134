//! Transmittances of rough dielectric coats: tables made on the host for rough plastics, with their derivatives.
//!
//! The reflected and transmitted shares of light from wi are integrals of F G D |wi·m| / cos wi over normals m, with F
//! or 1 - F: quadratures over slopes in units of the roughness. The derivative by the roughness is that of G and D at
//! fixed normals: normals that moved with it would pass the critical angle, where F has an infinite slope.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::fresnel::fresnel;
use super::local::{inner, lift};
use super::microfacet::{Distribution, Microfacets};
use super::plastic::Coat;
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::dual::Dual;

/// Cosines of the table, from 0 to 1 in equal steps.
pub const ENTRIES: usize = 64;
/// Quadrature nodes along the slope and around the half circle: entries are right to 3e-4 and derivatives by the
/// roughness to 1 %.
const NODES: [usize; 2] = [24; 2];
/// Quadrature nodes for the inner reflectance's derivative by the index: it is right to 1.5 %.
const FINE_NODES: [usize; 2] = [64, 32];
/// The longest and the shortest step of differences by the index, relative to it.
const ETA_STEPS: [f64; 2] = [0.03, 1e-3];
/// Transmittances are at least this.
const LEAST: f32 = 1e-6;
/// Slope over roughness up to which Beckmann's slopes are integrated: a share of e^-12 lies beyond.
const BECKMANN_EXTENT: f64 = 3.5;

/// The number of tables that [`TransmittanceTable::shared`] keeps, 1.6 KB each.
const KEPT: usize = 256;

/// The tables that were made last, the oldest first.
static MADE: Mutex<VecDeque<(Distribution, Arc<TransmittanceTable>)>> = Mutex::new(VecDeque::new());

/// Transmittance from outside for each cosine, then the reflectance of diffuse light from inside; each as its value,
/// its derivative by the roughness and that by the index.
#[derive(Debug, Clone, PartialEq)]
pub struct TransmittanceTable {
    /// The coat's roughness and index.
    alpha: f64,
    eta: f64,
    pub rows: [[f64; 3]; ENTRIES + 1],
}

impl TransmittanceTable {
    /// The table of a coat with this roughness and index.
    pub fn new(distribution: Distribution, alpha: f64, eta: f64) -> Self {
        let by_alpha = entries(distribution, Dual::new(alpha, 1.0), Dual::constant(eta));
        // The derivative by the index diverges at the critical angle, near which the nodes of the quadrature are too
        // sparse; a central difference over a step that spans many of them converges. The step does not cross an index
        // of one, at which total reflection changes sides.
        let [longest, shortest] = ETA_STEPS.map(|step| step * eta);
        let step = longest.min(0.5 * (eta - 1.0).abs()).max(shortest);
        let facets = Microfacets::new(distribution, [alpha; 2], true);
        let [above, below] = [eta + step, eta - step].map(|eta| {
            let mut entries = transmittances(&facets, eta, &Nodes::new(NODES));
            entries.push(inner_reflectance(&facets, eta, &Nodes::new(FINE_NODES)));
            entries
        });
        let mut rows = [[0.0; 3]; ENTRIES + 1];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = [
                by_alpha[i].value,
                by_alpha[i].slope,
                (above[i] - below[i]) / (2.0 * step),
            ];
        }
        Self { alpha, eta, rows }
    }

    /// [`Self::new`], or the table of the same coat that this process has made before: equal coats, several devices and
    /// scenes that are prepared again share one, since making it takes many milliseconds.
    pub fn shared(distribution: Distribution, alpha: f64, eta: f64) -> Arc<Self> {
        let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(of, table): &&(Distribution, Arc<Self>)| *of == distribution && table.is_of(alpha, eta);
        let found = made().iter().find(same).map(|(_, table)| Arc::clone(table));
        found.unwrap_or_else(|| {
            // The lock is free meanwhile, so that other threads can look up their tables.
            let table = Arc::new(Self::new(distribution, alpha, eta));
            let mut made = made();
            if made.len() == KEPT {
                made.pop_front();
            }
            made.push_back((distribution, Arc::clone(&table)));
            table
        })
    }

    /// Whether the table is that of a coat with this roughness and index.
    #[inline]
    pub fn is_of(&self, alpha: f64, eta: f64) -> bool {
        self.alpha == alpha && self.eta == eta
    }

    /// Transmittance for a direction of this cosine.
    #[inline]
    pub fn transmittance(&self, cosine: f32) -> f32 {
        self.lookup(f64::from(cosine))[0] as f32
    }

    /// The row at a cosine, linearly interpolated.
    #[inline]
    fn lookup<N: Number>(&self, cosine: N) -> [N; 3] {
        let (first, rest) = Self::place(cosine);
        let (a, b) = (self.rows[first], self.rows[first + 1]);
        [0, 1, 2].each(|part| number::<N>(a[part]) + number::<N>(b[part] - a[part]) * rest)
    }

    /// The row before a cosine, and the cosine's position between that row and the next, from 0 to 1.
    #[inline]
    fn place<N: Number>(cosine: N) -> (usize, N) {
        let place = cosine.max(N::lift(0.0)).min(N::lift(1.0)) * N::lift((ENTRIES - 1) as f32);
        let first = (place.value() as usize).min(ENTRIES - 2);
        (first, place - N::lift(first as f32))
    }

    /// The derivative of the transmittance by the cosine.
    #[inline]
    fn slope<N: Number>(&self, cosine: N) -> N {
        let (first, _) = Self::place(cosine);
        let inside = cosine.above(0.0) && !cosine.above(1.0);
        let rise = self.rows[first + 1][0] - self.rows[first][0];
        number(if inside { rise * (ENTRIES - 1) as f64 } else { 0.0 })
    }

    /// The coat for these directions. `alpha` and `eta` are those of the table, or so near that a correction of first
    /// order by its derivatives serves.
    pub fn coat<N: Number>(&self, alpha: N, eta: N, wi: [N; 3], wo: [N; 3]) -> Coat<N> {
        let rows = [self.lookup(wi[2]), self.lookup(wo[2]), self.rows[ENTRIES].each(number)];
        let moved = [alpha - number(self.alpha), eta - number(self.eta)];
        let [by_alpha, by_eta] = [1, 2].each(|part| rows.each(|row| row[part]));
        Coat {
            values: [0, 1, 2].each(|i| rows[i][0] + by_alpha[i] * moved[0] + by_eta[i] * moved[1]),
            by_alpha,
            by_eta,
            by_cosine: [self.slope(wi[2]), self.slope(wo[2])],
        }
    }
}

/// Transmittances from outside, and the reflectance from inside.
fn entries<N: Number>(distribution: Distribution, alpha: N, eta: N) -> Vec<N> {
    let facets = Microfacets::new(distribution, [alpha; 2], true);
    let nodes = Nodes::new(NODES);
    let mut entries = transmittances(&facets, eta, &nodes);
    entries.push(inner_reflectance(&facets, eta, &nodes));
    entries
}

/// The cosines of the table.
fn cosines() -> impl Iterator<Item = f32> {
    (0..ENTRIES).map(|i| i as f32 / (ENTRIES - 1) as f32)
}

/// Transmittances from outside.
fn transmittances<N: Number>(facets: &Microfacets<N>, eta: N, nodes: &Nodes) -> Vec<N> {
    let of = |cosine| shares(facets, eta, cosine, nodes)[1].max(N::lift(LEAST));
    cosines().map(of).collect()
}

/// The reflectance of diffuse light from inside: the mean over the table's cosines, whose ends count in full, 1.6 % less
/// than the integral, as in Mitsuba.
fn inner_reflectance<N: Number>(facets: &Microfacets<N>, eta: N, nodes: &Nodes) -> N {
    cosines().fold(N::lift(0.0), |sum, cosine| {
        sum + shares(facets, eta.recip(), cosine, nodes)[0] * N::lift(2.0 / ENTRIES as f32 * cosine)
    })
}

/// Nodes and weights on [0, 1] along the slope and around the half circle.
struct Nodes {
    along: Vec<(f64, f64)>,
    around: Vec<(f64, f64)>,
}

impl Nodes {
    fn new(counts: [usize; 2]) -> Self {
        let [along, around] = counts.map(gauss_legendre);
        Self { along, around }
    }
}

/// The shares of light at an angle of this cosine that a rough interface of index `eta` reflects and transmits.
/// Shadowed light is in neither.
fn shares<N: Number>(facets: &Microfacets<N>, eta: N, cosine: f32, nodes: &Nodes) -> [N; 2] {
    let cosine = cosine.max(1e-5);
    let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
    let wi = lift([sine, 0.0, cosine]);
    let (alpha, one, ti) = (facets.alpha[0], N::lift(1.0), eta.recip());
    let (mut reflected, mut transmitted, mut total) = (N::lift(0.0), N::lift(0.0), N::lift(0.0));
    for &(along, weight) in &nodes.along {
        // A slope of a surface of roughness one as a ratio, and the density of such slopes in all azimuths.
        let (rise, run, density) = match facets.distribution {
            Distribution::Beckmann => {
                let r = along * BECKMANN_EXTENT;
                (r, 1.0, 2.0 * r * (-r * r).exp() * BECKMANN_EXTENT)
            }
            Distribution::Ggx => {
                let (s, c) = (along * std::f64::consts::FRAC_PI_2).sin_cos();
                (s, c, 2.0 * s * c * std::f64::consts::FRAC_PI_2)
            }
        };
        for &(around, share) in &nodes.around {
            let (y, x) = (around * std::f64::consts::PI).sin_cos();
            let slope = alpha.detach() * number(rise);
            let m = [slope * number(x), slope * number(y), number(run)];
            let facing = inner(m, wi);
            let length = inner(m, m).sqrt();
            let c = facing / length;
            if !c.above(0.0) {
                continue;
            }
            let seen = number::<N>(density * weight * share) * facing / m[2] * facets.shadowing_over_cosine(wi);
            let m = m.each(|x| x / length);
            // The density over the detached density: its value is one, its derivative that of the density's logarithm.
            let likelihood = facets.density(m);
            if !likelihood.above(0.0) {
                continue;
            }
            let seen = seen * likelihood / likelihood.detach();
            total += seen;
            let f = fresnel(c, eta);
            let mirror = [0, 1, 2].each(|a| (c + c) * m[a] - wi[a]);
            if mirror[2].above(0.0) {
                reflected += seen * f * facets.shadowing(mirror);
            }
            let square = one - ti * ti * (one - c * c);
            if square.above(0.0) {
                let along = ti * c - square.sqrt();
                let bent = [0, 1, 2].each(|a| along * m[a] - ti * wi[a]);
                if bent[2].below(0.0) {
                    transmitted += seen * (one - f) * facets.shadowing(bent);
                }
            }
        }
    }
    // The total is one but for errors of the quadrature and of Beckmann's fitted shadowing, which the division removes.
    [reflected / total, transmitted / total]
}

/// A constant as the sum of two f32, by which wider numbers keep about 48 of its bits.
fn number<N: Number>(x: f64) -> N {
    let high = x as f32;
    N::lift(high) + N::lift((x - f64::from(high)) as f32)
}

/// Nodes and weights of Gauss and Legendre's quadrature on [0, 1]: roots of a Legendre polynomial by Newton's method.
fn gauss_legendre(count: usize) -> Vec<(f64, f64)> {
    let n = count as f64;
    let node = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..20 {
            let (mut p, mut before) = (1.0, 0.0);
            for k in 0..count {
                let k = k as f64;
                (p, before) = (((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0), p);
            }
            slope = n * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        (0.5 - 0.5 * x, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..count).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coats_alike_share_a_table_and_only_so_many_are_kept() {
        use Distribution::{Beckmann, Ggx};
        let coats = [(Beckmann, 0.3, 1.5), (Ggx, 0.3, 1.5), (Ggx, 0.4, 1.5), (Ggx, 0.4, 1.6)];
        let shared = || coats.map(|(distribution, alpha, eta)| TransmittanceTable::shared(distribution, alpha, eta));
        let (first, again) = (shared(), shared());
        for (i, (distribution, alpha, eta)) in coats.into_iter().enumerate() {
            assert!(Arc::ptr_eq(&first[i], &again[i]), "{i} is made twice");
            assert_eq!(*first[i], TransmittanceTable::new(distribution, alpha, eta), "{i}");
        }
        // Stand for tables of other coats, which would take long to make.
        let filler = Arc::new(TransmittanceTable {
            alpha: -1.0,
            ..(*first[0]).clone()
        });
        let mut made = MADE.lock().expect("no test fails while it holds it");
        made.resize(KEPT, (Ggx, filler));
        drop(made);
        TransmittanceTable::shared(Ggx, 0.5, 1.5);
        assert_eq!(MADE.lock().expect("as above").len(), KEPT);
    }
}
