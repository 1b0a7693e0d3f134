// Reflectances of smooth interfaces, averaged over polarisations, and their derivatives.
//
// With c the cosine of incidence, eta the relative index and p = sqrt(eta^2 - 1 + c^2) the amplitudes are
// (c - p) / (c + p) and (eta^2 c - p) / (eta^2 c + p), those of a conductor the same at the complex index eta + i k.

// The index on the far side over that on the near side: `eta` is the index inside over that outside, and `cosine` is
// negative on the inside.
fn relative_index(cosine: f32, eta: f32) -> f32 {
    return select(eta, 1.0 / eta, cosine < 0.0);
}

// Reflectance of an interface of dielectrics, for light at an angle of this cosine to the normal.
fn fresnel(cosine: f32, eta: f32) -> f32 {
    let at = fresnel_refraction(cosine, eta);
    if at.z <= 0.0 {
        return unrefracted(eta);
    }
    let r = amplitudes(at);
    return 0.5 * (r.x * r.x + r.y * r.y);
}

// fresnel and its derivatives by the cosine and by the index. Both are zero beyond total reflection; they grow without
// bound towards it.
fn fresnel_slopes(cosine: f32, eta: f32) -> vec3f {
    let at = fresnel_refraction(cosine, eta);
    if at.z <= 0.0 {
        return vec3f(unrefracted(eta), 0.0, 0.0);
    }
    let c = at.x;
    let ratio = at.y;
    let p = at.z;
    let r = amplitudes(at);
    let square = ratio * ratio;
    let below = 1.0 / ((c + p) * (c + p));
    let below_dense = 1.0 / ((square * c + p) * (square * c + p));
    let by_cosine = 2.0 * (square - 1.0) / p * (r.x * below + r.y * square * below_dense);
    let by_ratio = 2.0 * ratio * c * (r.y * (2.0 * p - square / p) * below_dense - r.x * below / p);
    let reflectance = 0.5 * (r.x * r.x + r.y * r.y);
    if cosine < 0.0 {
        return vec3f(reflectance, -by_cosine, -by_ratio * ratio * ratio);
    }
    return vec3f(reflectance, by_cosine, by_ratio);
}

// The cosine of incidence, the relative index and p; that is 0 without refraction, or where the indices are alike.
fn fresnel_refraction(cosine: f32, eta: f32) -> vec3f {
    let ratio = relative_index(cosine, eta);
    let c = abs(cosine);
    let square = (ratio - 1.0) * (ratio + 1.0) + c * c;
    let refracts = square > 0.0 && (ratio < 1.0 || ratio > 1.0);
    return vec3f(c, ratio, select(0.0, sqrt(max(square, 0.0)), refracts));
}

// The reflectance where fresnel_refraction returns p = 0: one at total reflection, zero where the indices are alike.
fn unrefracted(eta: f32) -> f32 {
    return select(0.0, 1.0, eta < 1.0 || eta > 1.0);
}

fn amplitudes(at: vec3f) -> vec2f {
    let dense = at.y * at.y * at.x;
    return vec2f((at.x - at.z) / (at.x + at.z), (dense - at.z) / (dense + at.z));
}

// The cosine to the normal of the refracted direction, of the opposite sign as `cosine`; zero beyond total reflection.
fn refracted_cosine(cosine: f32, eta: f32) -> f32 {
    let ti = 1.0 / relative_index(cosine, eta);
    let length = sqrt(max(1.0 - ti * ti * (1.0 - cosine * cosine), 0.0));
    return select(-length, length, cosine < 0.0);
}

// Reflectance of a thin plate from that of its surfaces, whose reflections inside add up.
fn plate(reflectance: f32) -> f32 {
    return 2.0 * reflectance / (1.0 + reflectance);
}

// The derivative of `plate`.
fn plate_slope(reflectance: f32) -> f32 {
    let sum = 1.0 + reflectance;
    return 2.0 / (sum * sum);
}

// Reflectance of an interface to a conductor of index `eta` + i `k`, relative to the outside.
fn fresnel_conductor(cosine: f32, eta: f32, k: f32) -> f32 {
    return fresnel_conductor_slopes(cosine, eta, k).x;
}

// fresnel_conductor and its derivatives by `eta` and by `k`.
fn fresnel_conductor_slopes(cosine: f32, eta: f32, k: f32) -> vec3f {
    let c = cosine;
    let index = vec2f(eta, k);
    let square = complex_mul(index, index);
    let p = complex_sqrt(vec2f(square.x - 1.0 + c * c, square.y));
    if !(p.x > 0.0 || p.y > 0.0) {
        return vec3f(1.0, 0.0, 0.0);
    }
    let dense = square * c;
    let below = vec2f(c + p.x, p.y);
    let below_dense = dense + p;
    let s = complex_div(vec2f(c - p.x, -p.y), below);
    let t = complex_div(dense - p, below_dense);
    // d p / d index, and from it the amplitudes' derivatives by the index.
    let bend = complex_div(index, p);
    let ds = complex_div(-2.0 * c * bend, complex_mul(below, below));
    let by_t = 2.0 * c * (2.0 * complex_mul(index, p) - complex_mul(square, bend));
    let dt = complex_div(by_t, complex_mul(below_dense, below_dense));
    return vec3f(
        0.5 * (dot(s, s) + dot(t, t)),
        dot(s, ds) + dot(t, dt),
        s.y * ds.x - s.x * ds.y + t.y * dt.x - t.x * dt.y,
    );
}

#ifdef SLOPES

// fresnel_conductor and its derivative by the cosine.
fn fresnel_conductor_slope(cosine: f32, eta: f32, k: f32) -> vec2f {
    let square = complex_mul(vec2f(eta, k), vec2f(eta, k));
    let less = vec2f(square.x - 1.0, square.y);
    let p = complex_sqrt(vec2f(less.x + cosine * cosine, less.y));
    if !(p.x > 0.0 || p.y > 0.0) {
        return vec2f(1.0, 0.0);
    }
    let dense = square * cosine;
    let below = vec2f(cosine + p.x, p.y);
    let below_dense = dense + p;
    let s = complex_div(vec2f(cosine - p.x, -p.y), below);
    let t = complex_div(dense - p, below_dense);
    let bend = 2.0 * complex_div(less, p);
    let ds = complex_div(bend, complex_mul(below, below));
    let dt = complex_div(complex_mul(square, bend), complex_mul(below_dense, below_dense));
    return vec2f(0.5 * (dot(s, s) + dot(t, t)), dot(s, ds) + dot(t, dt));
}

#endif

fn complex_mul(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

fn complex_div(a: vec2f, b: vec2f) -> vec2f {
    let scale = 1.0 / (b.x * b.x + b.y * b.y);
    return vec2f((a.x * b.x + a.y * b.y) * scale, (a.y * b.x - a.x * b.y) * scale);
}

// The square root with parts that are not negative, of a number whose imaginary part is not negative. The larger part
// is a root, the smaller one a quotient: it would cancel, and have an infinite derivative at zero.
fn complex_sqrt(x: vec2f) -> vec2f {
    let square = x.x * x.x + x.y * x.y;
    if !(square > 0.0) {
        return vec2f(0.0);
    }
    let larger = sqrt(0.5 * (sqrt(square) + abs(x.x)));
    let smaller = 0.5 * x.y / larger;
    return select(vec2f(larger, smaller), vec2f(smaller, larger), x.x < 0.0);
}

// The share of diffuse light that an interface reflects, coming from the outside of `eta`, by polynomials in `eta` or
// its inverse (dEon2011, Egan1973).
fn diffuse_fresnel(eta: f32) -> f32 {
    if eta < 1.0 {
        return 0.0636 / eta + 0.6681 + (0.7099 - 1.4399 * eta) * eta;
    }
    let x = 1.0 / eta;
    var p = -1.36881 * x + 4.98554;
    p = p * x - 7.80989;
    p = p * x + 6.75335;
    return (p * x - 3.4793) * x + 0.919317;
}

// The derivative of diffuse_fresnel.
fn diffuse_fresnel_slope(eta: f32) -> f32 {
    let x = 1.0 / eta;
    if eta < 1.0 {
        return 0.7099 - 2.8798 * eta - 0.0636 * x * x;
    }
    var p = -6.84405 * x + 19.94216;
    p = p * x - 23.42967;
    p = p * x + 13.5067;
    return -(p * x - 3.4793) * x * x;
}

// The fifth power by which Schlick's reflectance grows to one towards grazing angles (Schlick1994).
fn schlick_weight(cosine: f32) -> f32 {
    let m = clamp(1.0 - cosine, 0.0, 1.0);
    let square = m * m;
    return square * square * m;
}

// The derivative of schlick_weight.
fn schlick_slope(cosine: f32) -> f32 {
    let m = clamp(1.0 - cosine, 0.0, 1.0);
    let square = m * m;
    return -5.0 * square * square;
}

// Reflectance of an index at normal incidence.
fn normal_reflectance(eta: f32) -> f32 {
    let root = (eta - 1.0) / (eta + 1.0);
    return root * root;
}

// The derivative of normal_reflectance.
fn normal_reflectance_slope(eta: f32) -> f32 {
    let sum = eta + 1.0;
    return 4.0 * (eta - 1.0) / (sum * sum * sum);
}
