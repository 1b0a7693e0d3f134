//! Real spherical harmonics to degree 3, with the signs and order of Dr.Jit's `sh_eval` (Mitsuba3, radiance-field
//! tutorial), 3D Gaussian splatting and Plenoxels.

use crate::transport::number::Number;

/// The largest number of coefficients per colour: (3 + 1)².
pub const MAX_COEFFICIENTS: usize = 16;

/// Values of the basis functions in one direction; those above the degree are zero.
pub type Basis = [f32; MAX_COEFFICIENTS];

/// Evaluates the basis for the unit direction `d`.
#[inline]
pub fn sh_basis(degree: u32, d: [f32; 3]) -> Basis {
    let [x, y, z] = d;
    let mut b = [0.0; MAX_COEFFICIENTS];
    b[0] = 0.282_094_79;
    if degree >= 1 {
        b[1] = -0.488_602_51 * y;
        b[2] = 0.488_602_51 * z;
        b[3] = -0.488_602_51 * x;
    }
    let (xx, yy, zz) = (x * x, y * y, z * z);
    if degree >= 2 {
        b[4] = 1.092_548_4 * (x * y);
        b[5] = -1.092_548_4 * (y * z);
        b[6] = 0.315_391_57 * (2.0 * zz - xx - yy);
        b[7] = -1.092_548_4 * (x * z);
        b[8] = 0.546_274_2 * (xx - yy);
    }
    if degree >= 3 {
        b[9] = -0.590_043_6 * (y * (3.0 * xx - yy));
        b[10] = 2.890_611_4 * (x * y * z);
        b[11] = -0.457_045_8 * (y * (4.0 * zz - xx - yy));
        b[12] = 0.373_176_33 * (z * (2.0 * zz - 3.0 * xx - 3.0 * yy));
        b[13] = -0.457_045_8 * (x * (4.0 * zz - xx - yy));
        b[14] = 1.445_305_7 * (z * (xx - yy));
        b[15] = -0.590_043_6 * (x * (xx - 3.0 * yy));
    }
    b
}

/// [`sh_basis`] of any number; functions above the degree are zero.
#[inline(always)]
pub fn sh_values<N: Number>(degree: u32, d: [N; 3]) -> [N; MAX_COEFFICIENTS] {
    let n = N::lift;
    let [x, y, z] = d;
    let mut b = [n(0.0); MAX_COEFFICIENTS];
    b[0] = n(0.282_094_79);
    if degree >= 1 {
        b[1] = n(-0.488_602_51) * y;
        b[2] = n(0.488_602_51) * z;
        b[3] = n(-0.488_602_51) * x;
    }
    let (xx, yy, zz) = (x * x, y * y, z * z);
    if degree >= 2 {
        b[4] = n(1.092_548_4) * (x * y);
        b[5] = n(-1.092_548_4) * (y * z);
        b[6] = n(0.315_391_57) * (n(2.0) * zz - xx - yy);
        b[7] = n(-1.092_548_4) * (x * z);
        b[8] = n(0.546_274_2) * (xx - yy);
    }
    if degree >= 3 {
        b[9] = n(-0.590_043_6) * (y * (n(3.0) * xx - yy));
        b[10] = n(2.890_611_4) * (x * y * z);
        b[11] = n(-0.457_045_8) * (y * (n(4.0) * zz - xx - yy));
        b[12] = n(0.373_176_33) * (z * (n(2.0) * zz - n(3.0) * xx - n(3.0) * yy));
        b[13] = n(-0.457_045_8) * (x * (n(4.0) * zz - xx - yy));
        b[14] = n(1.445_305_7) * (z * (xx - yy));
        b[15] = n(-0.590_043_6) * (x * (xx - n(3.0) * yy));
    }
    b
}

/// The adjoint of [`sh_values`]: the derivative by the direction `d` of the basis functions times `g`.
#[inline(always)]
pub fn sh_adjoint<N: Number>(degree: u32, d: [N; 3], g: &[N; MAX_COEFFICIENTS]) -> [N; 3] {
    let n = N::lift;
    let [x, y, z] = d;
    let mut out = [n(0.0); 3];
    let mut add = |g: N, by: [N; 3]| {
        for axis in 0..3 {
            out[axis] += g * by[axis];
        }
    };
    let zero = n(0.0);
    if degree >= 1 {
        add(g[1], [zero, n(-0.488_602_51), zero]);
        add(g[2], [zero, zero, n(0.488_602_51)]);
        add(g[3], [n(-0.488_602_51), zero, zero]);
    }
    if degree >= 2 {
        add(g[4] * n(1.092_548_4), [y, x, zero]);
        add(g[5] * n(-1.092_548_4), [zero, z, y]);
        add(g[6] * n(2.0 * 0.315_391_57), [-x, -y, n(2.0) * z]);
        add(g[7] * n(-1.092_548_4), [z, zero, x]);
        add(g[8] * n(2.0 * 0.546_274_2), [x, -y, zero]);
    }
    if degree >= 3 {
        let (xx, yy, zz) = (x * x, y * y, z * z);
        add(g[9] * n(-0.590_043_6), [n(6.0) * x * y, n(3.0) * (xx - yy), zero]);
        add(g[10] * n(2.890_611_4), [y * z, x * z, x * y]);
        let side = n(4.0) * zz - xx - yy;
        add(
            g[11] * n(-0.457_045_8),
            [n(-2.0) * x * y, side - n(2.0) * yy, n(8.0) * y * z],
        );
        add(
            g[12] * n(0.373_176_33),
            [n(-6.0) * x * z, n(-6.0) * y * z, n(6.0) * zz - n(3.0) * (xx + yy)],
        );
        add(
            g[13] * n(-0.457_045_8),
            [side - n(2.0) * xx, n(-2.0) * x * y, n(8.0) * x * z],
        );
        add(g[14] * n(1.445_305_7), [n(2.0) * x * z, n(-2.0) * y * z, xx - yy]);
        add(g[15] * n(-0.590_043_6), [n(3.0) * (xx - yy), n(-6.0) * x * y, zero]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions are orthonormal over the sphere: integrated with a midpoint rule of 200 × 400 points, whose error
    /// for these polynomials is under 1e-4.
    #[test]
    fn basis_is_orthonormal() {
        let (rows, columns) = (200, 400);
        let mut gram = [[0f64; 16]; 16];
        for i in 0..rows {
            let theta = std::f64::consts::PI * (i as f64 + 0.5) / rows as f64;
            for j in 0..columns {
                let phi = std::f64::consts::TAU * (j as f64 + 0.5) / columns as f64;
                let d = [theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()].map(|v| v as f32);
                let b = sh_basis(3, d);
                let area = theta.sin() * std::f64::consts::PI / rows as f64 * std::f64::consts::TAU / columns as f64;
                for p in 0..16 {
                    for q in 0..16 {
                        gram[p][q] += f64::from(b[p]) * f64::from(b[q]) * area;
                    }
                }
            }
        }
        for (p, row) in gram.iter().enumerate() {
            for (q, value) in row.iter().enumerate() {
                let expected = if p == q { 1.0 } else { 0.0 };
                assert!((value - expected).abs() < 2e-4, "<{p}|{q}> = {value}");
            }
        }
    }

    /// The adjoint of each basis function agrees with the derivative by dual numbers, along one direction.
    #[test]
    fn the_adjoint_is_the_derivative_by_the_direction() {
        use crate::transport::number::dual::Dual;
        let (d, by) = ([0.48, -0.6, 0.64], [0.3, 0.7, -0.2]);
        for degree in 0..=3 {
            let moved = [0, 1, 2].map(|axis| Dual::new(d[axis], by[axis]));
            let values = sh_values(degree, moved);
            let exact = sh_basis(degree, d.map(|x| x as f32));
            for k in 0..MAX_COEFFICIENTS {
                assert!((values[k].value - f64::from(exact[k])).abs() < 1e-6, "{degree} {k}");
                let mut g = [0.0; MAX_COEFFICIENTS];
                g[k] = 1.0;
                let found = sh_adjoint(degree, d, &g);
                let slope: f64 = (0..3).map(|axis| found[axis] * by[axis]).sum();
                assert!(
                    (slope - values[k].slope).abs() < 1e-7,
                    "{degree} {k}: {slope} {:?}",
                    values[k]
                );
            }
        }
    }

    #[test]
    fn signs_are_the_tutorials() {
        let b = sh_basis(3, [0.0, 0.0, 1.0]);
        assert!(b[2] > 0.48 && b[6] > 0.63 && b[12] > 0.74);
        let b = sh_basis(1, [1.0, 0.0, 0.0]);
        assert!(b[3] < -0.48 && b[1] == 0.0 && b[2] == 0.0);
        assert!(b[4..].iter().all(|v| *v == 0.0));
    }
}
