// Real spherical harmonics to degree 3, with the signs and order of Dr.Jit's sh_eval (Mitsuba3, radiance-field
// tutorial), 3D Gaussian splatting and Plenoxels.

#import bind/parameters

// Values of the basis functions in one direction; those above the degree are zero.
alias Basis = array<f32, 16>;

// Evaluates the basis for the unit direction `d`.
fn sh_basis(d: vec3f) -> Basis {
    let x = d.x;
    let y = d.y;
    let z = d.z;
    var b = Basis();
    b[0] = 0.28209479;
    if SH_DEGREE >= 1u {
        b[1] = -0.48860251 * y;
        b[2] = 0.48860251 * z;
        b[3] = -0.48860251 * x;
    }
    let xx = x * x;
    let yy = y * y;
    let zz = z * z;
    if SH_DEGREE >= 2u {
        b[4] = 1.0925484 * (x * y);
        b[5] = -1.0925484 * (y * z);
        b[6] = 0.31539157 * (2.0 * zz - xx - yy);
        b[7] = -1.0925484 * (x * z);
        b[8] = 0.5462742 * (xx - yy);
    }
    if SH_DEGREE >= 3u {
        b[9] = -0.5900436 * (y * (3.0 * xx - yy));
        b[10] = 2.8906114 * (x * y * z);
        b[11] = -0.4570458 * (y * (4.0 * zz - xx - yy));
        b[12] = 0.37317633 * (z * (2.0 * zz - 3.0 * xx - 3.0 * yy));
        b[13] = -0.4570458 * (x * (4.0 * zz - xx - yy));
        b[14] = 1.4453057 * (z * (xx - yy));
        b[15] = -0.5900436 * (x * (xx - 3.0 * yy));
    }
    return b;
}

#ifdef VIEWS

// The derivative by the direction of sh_basis, from those by the basis functions.
fn sh_adjoint(d: vec3f, g: ptr<function, Basis>) -> vec3f {
    let x = d.x;
    let y = d.y;
    let z = d.z;
    var out = vec3f(0.0);
    if SH_DEGREE >= 1u {
        out += vec3f(-0.48860251 * (*g)[3], -0.48860251 * (*g)[1], 0.48860251 * (*g)[2]);
    }
    if SH_DEGREE >= 2u {
        out += 1.0925484 * (*g)[4] * vec3f(y, x, 0.0);
        out -= 1.0925484 * (*g)[5] * vec3f(0.0, z, y);
        out += 0.63078314 * (*g)[6] * vec3f(-x, -y, 2.0 * z);
        out -= 1.0925484 * (*g)[7] * vec3f(z, 0.0, x);
        out += 1.0925484 * (*g)[8] * vec3f(x, -y, 0.0);
    }
    if SH_DEGREE >= 3u {
        let xx = x * x;
        let yy = y * y;
        let zz = z * z;
        let side = 4.0 * zz - xx - yy;
        out -= 0.5900436 * (*g)[9] * vec3f(6.0 * x * y, 3.0 * (xx - yy), 0.0);
        out += 2.8906114 * (*g)[10] * vec3f(y * z, x * z, x * y);
        out -= 0.4570458 * (*g)[11] * vec3f(-2.0 * x * y, side - 2.0 * yy, 8.0 * y * z);
        out += 0.37317633 * (*g)[12] * vec3f(-6.0 * x * z, -6.0 * y * z, 6.0 * zz - 3.0 * (xx + yy));
        out -= 0.4570458 * (*g)[13] * vec3f(side - 2.0 * xx, -2.0 * x * y, 8.0 * x * z);
        out += 1.4453057 * (*g)[14] * vec3f(2.0 * x * z, -2.0 * y * z, xx - yy);
        out -= 0.5900436 * (*g)[15] * vec3f(3.0 * (xx - yy), -6.0 * x * y, 0.0);
    }
    return out;
}

#endif
