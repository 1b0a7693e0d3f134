//! Real spherical harmonics to degree 3, with the signs and order of Dr.Jit's `sh_eval` (Mitsuba3, radiance-field
//! tutorial), 3D Gaussian splatting and Plenoxels.

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

    #[test]
    fn signs_are_the_tutorials() {
        let b = sh_basis(3, [0.0, 0.0, 1.0]);
        assert!(b[2] > 0.48 && b[6] > 0.63 && b[12] > 0.74);
        let b = sh_basis(1, [1.0, 0.0, 0.0]);
        assert!(b[3] < -0.48 && b[1] == 0.0 && b[2] == 0.0);
        assert!(b[4..].iter().all(|v| *v == 0.0));
    }
}
