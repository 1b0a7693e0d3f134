//! Reflectances of smooth interfaces, averaged over polarisations, and their derivatives.
//!
//! With c the cosine of incidence, η the relative index and p = √(η² - 1 + c²) the amplitudes are
//! (c - p) / (c + p) and (η² c - p) / (η² c + p), those of a conductor the same at the complex index η + i k.

use crate::each::EachEntry;
use crate::transport::number::Number;

/// The index on the far side over that on the near side: `eta` is the index inside over that outside, and `cosine` is
/// negative on the inside.
#[inline(always)]
pub fn relative_index<N: Number>(cosine: N, eta: N) -> N {
    if cosine.below(0.0) { eta.recip() } else { eta }
}

/// Reflectance of an interface of dielectrics, for light at an angle of this cosine to the normal.
#[inline(always)]
pub fn fresnel<N: Number>(cosine: N, eta: N) -> N {
    let Some((c, eta, p)) = refraction(cosine, eta) else {
        return unrefracted(eta);
    };
    let [s, t] = amplitudes(c, eta, p);
    N::lift(0.5) * (s * s + t * t)
}

/// [`fresnel`] and its derivatives by the cosine and by the index. Both are zero beyond total reflection; they grow
/// without bound towards it.
#[inline]
pub fn fresnel_slopes<N: Number>(cosine: N, eta: N) -> [N; 3] {
    let zero = N::lift(0.0);
    let Some((c, ratio, p)) = refraction(cosine, eta) else {
        return [unrefracted(eta), zero, zero];
    };
    let [s, t] = amplitudes(c, ratio, p);
    let two = N::lift(2.0);
    let square = ratio * ratio;
    let (below_s, below_t) = (c + p, square * c + p);
    let (below_s, below_t) = ((below_s * below_s).recip(), (below_t * below_t).recip());
    let bend = two * (square - N::lift(1.0)) / p;
    let by_cosine = bend * (s * below_s + t * square * below_t);
    let by_ratio = two * ratio * c * (t * (two * p - square / p) * below_t - s * below_s / p);
    let reflectance = N::lift(0.5) * (s * s + t * t);
    if cosine.below(0.0) {
        [reflectance, -by_cosine, -by_ratio * ratio * ratio]
    } else {
        [reflectance, by_cosine, by_ratio]
    }
}

/// The cosine of incidence, the relative index and p; None without refraction, or where the indices are alike.
#[inline(always)]
fn refraction<N: Number>(cosine: N, eta: N) -> Option<(N, N, N)> {
    let inside = cosine.below(0.0);
    let ratio = if inside { eta.recip() } else { eta };
    let c = cosine.abs();
    let one = N::lift(1.0);
    let square = (ratio - one) * (ratio + one) + c * c;
    let differs = ratio.below(1.0) || ratio.above(1.0);
    (square.above(0.0) && differs).then(|| (c, ratio, square.sqrt()))
}

/// The reflectance where [`refraction`] is None: one in total reflection, zero where the indices are alike.
#[inline(always)]
fn unrefracted<N: Number>(eta: N) -> N {
    let differs = eta.below(1.0) || eta.above(1.0);
    N::lift(if differs { 1.0 } else { 0.0 })
}

#[inline(always)]
fn amplitudes<N: Number>(c: N, eta: N, p: N) -> [N; 2] {
    let dense = eta * eta * c;
    [(c - p) / (c + p), (dense - p) / (dense + p)]
}

/// The cosine to the normal of the refracted direction, of the opposite sign as `cosine`; zero beyond total reflection.
#[inline(always)]
pub fn refracted_cosine(cosine: f32, eta: f32) -> f32 {
    let ti = 1.0 / relative_index(cosine, eta);
    let square = 1.0 - ti * ti * (1.0 - cosine * cosine);
    let length = square.max(0.0).sqrt();
    if cosine < 0.0 { length } else { -length }
}

/// Reflectance of a thin plate from that of its surfaces, whose reflections inside add up.
#[inline(always)]
pub fn plate<N: Number>(reflectance: N) -> N {
    N::lift(2.0) * reflectance / (N::lift(1.0) + reflectance)
}

/// The derivative of [`plate`].
#[inline(always)]
pub fn plate_slope<N: Number>(reflectance: N) -> N {
    let sum = N::lift(1.0) + reflectance;
    N::lift(2.0) / (sum * sum)
}

/// Reflectance of an interface to a conductor of index `eta` + i `k`, relative to the outside.
#[inline(always)]
pub fn fresnel_conductor<N: Number>(cosine: N, eta: N, k: N) -> N {
    fresnel_conductor_slopes(cosine, eta, k)[0]
}

/// [`fresnel_conductor`] and its derivatives by `eta` and by `k`.
// Inlined always: where only the value is used, the compiler drops the derivatives.
#[inline(always)]
pub fn fresnel_conductor_slopes<N: Number>(cosine: N, eta: N, k: N) -> [N; 3] {
    let (zero, two) = (N::lift(0.0), N::lift(2.0));
    let c = cosine;
    let index = [eta, k];
    let square = complex_mul(index, index);
    let p = complex_sqrt([square[0] - N::lift(1.0) + c * c, square[1]]);
    if !(p[0].above(0.0) || p[1].above(0.0)) {
        return [N::lift(1.0), zero, zero];
    }
    let dense = square.each(|x| x * c);
    let (below_s, below_t) = ([c + p[0], p[1]], [dense[0] + p[0], dense[1] + p[1]]);
    let s = complex_div([c - p[0], -p[1]], below_s);
    let t = complex_div([dense[0] - p[0], dense[1] - p[1]], below_t);
    // d p / d index, and from it the amplitudes' derivatives by the index.
    let bend = complex_div(index, p);
    let ds = complex_div(bend.each(|x| -two * c * x), complex_mul(below_s, below_s));
    let twice = complex_mul(index, p).each(|x| two * x);
    let by_t = complex_mul(square, bend);
    let dt = [twice[0] - by_t[0], twice[1] - by_t[1]].each(|x| two * c * x);
    let dt = complex_div(dt, complex_mul(below_t, below_t));
    [
        N::lift(0.5) * (s[0] * s[0] + s[1] * s[1] + t[0] * t[0] + t[1] * t[1]),
        s[0] * ds[0] + s[1] * ds[1] + t[0] * dt[0] + t[1] * dt[1],
        s[1] * ds[0] - s[0] * ds[1] + t[1] * dt[0] - t[0] * dt[1],
    ]
}

/// [`fresnel_conductor`] and its derivative by the cosine.
#[inline]
pub fn fresnel_conductor_slope<N: Number>(cosine: N, eta: N, k: N) -> [N; 2] {
    let two = N::lift(2.0);
    let square = complex_mul([eta, k], [eta, k]);
    let less = [square[0] - N::lift(1.0), square[1]];
    let p = complex_sqrt([less[0] + cosine * cosine, less[1]]);
    if !(p[0].above(0.0) || p[1].above(0.0)) {
        return [N::lift(1.0), N::lift(0.0)];
    }
    let dense = square.each(|x| x * cosine);
    let (below_s, below_t) = ([cosine + p[0], p[1]], [dense[0] + p[0], dense[1] + p[1]]);
    let s = complex_div([cosine - p[0], -p[1]], below_s);
    let t = complex_div([dense[0] - p[0], dense[1] - p[1]], below_t);
    let bend = complex_div(less, p).each(|x| two * x);
    let ds = complex_div(bend, complex_mul(below_s, below_s));
    let dt = complex_div(complex_mul(square, bend), complex_mul(below_t, below_t));
    [
        N::lift(0.5) * (s[0] * s[0] + s[1] * s[1] + t[0] * t[0] + t[1] * t[1]),
        s[0] * ds[0] + s[1] * ds[1] + t[0] * dt[0] + t[1] * dt[1],
    ]
}

#[inline(always)]
fn complex_mul<N: Number>(a: [N; 2], b: [N; 2]) -> [N; 2] {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

#[inline(always)]
fn complex_div<N: Number>(a: [N; 2], b: [N; 2]) -> [N; 2] {
    let scale = (b[0] * b[0] + b[1] * b[1]).recip();
    [(a[0] * b[0] + a[1] * b[1]) * scale, (a[1] * b[0] - a[0] * b[1]) * scale]
}

/// The square root with parts that are not negative, of a number whose imaginary part is not negative. The larger part
/// is a root, the smaller one a quotient: as a root, it would cancel and have an infinite derivative at zero.
#[inline(always)]
fn complex_sqrt<N: Number>(x: [N; 2]) -> [N; 2] {
    let square = x[0] * x[0] + x[1] * x[1];
    if !square.above(0.0) {
        return [N::lift(0.0); 2];
    }
    let larger = (N::lift(0.5) * (square.sqrt() + x[0].abs())).sqrt();
    let smaller = N::lift(0.5) * x[1] / larger;
    if x[0].below(0.0) {
        [smaller, larger]
    } else {
        [larger, smaller]
    }
}

/// The share of diffuse light that an interface reflects, coming from the outside of `eta`, by polynomials in `eta` or
/// its inverse (dEon2011, Egan1973).
#[inline]
pub fn diffuse_fresnel<N: Number>(eta: N) -> N {
    if eta.below(1.0) {
        N::lift(0.0636) / eta + N::lift(0.6681) + (N::lift(0.7099) - N::lift(1.4399) * eta) * eta
    } else {
        let x = eta.recip();
        let p = N::lift(-1.36881) * x + N::lift(4.98554);
        let p = p * x - N::lift(7.80989);
        let p = p * x + N::lift(6.75335);
        (p * x - N::lift(3.4793)) * x + N::lift(0.919317)
    }
}

/// The derivative of [`diffuse_fresnel`].
#[inline]
pub fn diffuse_fresnel_slope<N: Number>(eta: N) -> N {
    let x = eta.recip();
    if eta.below(1.0) {
        N::lift(0.7099) - N::lift(2.0) * N::lift(1.4399) * eta - N::lift(0.0636) * x * x
    } else {
        let p = N::lift(5.0) * N::lift(-1.36881) * x + N::lift(4.0) * N::lift(4.98554);
        let p = p * x - N::lift(3.0) * N::lift(7.80989);
        let p = p * x + N::lift(2.0) * N::lift(6.75335);
        -(p * x - N::lift(3.4793)) * x * x
    }
}

/// (1 − cosine)⁵, the weight by which Schlick's reflectance grows to one towards grazing angles (Schlick1994).
#[inline(always)]
pub fn schlick_weight<N: Number>(cosine: N) -> N {
    let m = (N::lift(1.0) - cosine).max(N::lift(0.0)).min(N::lift(1.0));
    let square = m * m;
    square * square * m
}

/// The derivative of [`schlick_weight`].
#[inline(always)]
pub fn schlick_slope<N: Number>(cosine: N) -> N {
    let m = (N::lift(1.0) - cosine).max(N::lift(0.0)).min(N::lift(1.0));
    let square = m * m;
    N::lift(-5.0) * square * square
}

/// Reflectance of an index at normal incidence.
#[inline(always)]
pub fn normal_reflectance<N: Number>(eta: N) -> N {
    let root = (eta - N::lift(1.0)) / (eta + N::lift(1.0));
    root * root
}

/// The derivative of [`normal_reflectance`].
#[inline(always)]
pub fn normal_reflectance_slope<N: Number>(eta: N) -> N {
    let sum = eta + N::lift(1.0);
    N::lift(4.0) * (eta - N::lift(1.0)) / (sum * sum * sum)
}
