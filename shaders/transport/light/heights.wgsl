// The height field: a biquadratic spline with a coefficient a texel, whose slopes are continuous.

#import bind/light
#import bind/parameters
#ifdef REPLAY
#import bind/gradients
#endif

// The spline's stencil along an axis: three texels, and their weights in the value, the slope and the curvature.
struct HeightAxis {
    texels: vec3u,
    value: vec3f,
    slope: vec3f,
    curve: vec3f,
}

struct Stencil {
    x: HeightAxis,
    y: HeightAxis,
}

// A height, its slopes along x and y, and its curvatures xx, xy and yy.
struct Height {
    value: f32,
    slope: vec2f,
    curvature: vec3f,
}

// Texels and weights along an axis of `n` texels at x in [-1, 1].
fn heights_axis(x: f32, n: u32) -> HeightAxis {
    let scale = 0.5 * f32(n);
    let g = (x + 1.0) * scale;
    let last = i32(n) - 1;
    let cell = clamp(i32(g), 0, last);
    let f = g - f32(cell);
    let rest = 1.0 - f;
    let square = scale * scale;
    return HeightAxis(
        vec3u(clamp(vec3i(cell - 1, cell, cell + 1), vec3i(0), vec3i(last))),
        vec3f(0.5 * rest * rest, 0.5 + f * rest, 0.5 * f * f),
        vec3f(-(rest * scale), (rest - f) * scale, f * scale),
        vec3f(square, -(square + square), square),
    );
}

// The stencil at a point of the slab's side.
fn stencil(place: vec2f) -> Stencil {
    return Stencil(heights_axis(place.x, settings.size.x), heights_axis(place.y, settings.size.y));
}

// The spline at a stencil.
fn height(at: Stencil) -> Height {
    // Sums along x of the value, the slope and the curvature, row by row.
    var value_sums = vec3f(0.0);
    var slope_sums = vec3f(0.0);
    var curve_sums = vec3f(0.0);
    for (var r = 0u; r < 3u; r++) {
        let row = settings.parameter.first + at.y.texels[r] * settings.size.x;
        let texels = vec3f(value(row + at.x.texels.x), value(row + at.x.texels.y), value(row + at.x.texels.z));
        value_sums[r] = dot(at.x.value, texels);
        slope_sums[r] = dot(at.x.slope, texels);
        curve_sums[r] = dot(at.x.curve, texels);
    }
    return Height(
        dot(at.y.value, value_sums),
        vec2f(dot(at.y.value, slope_sums), dot(at.y.slope, value_sums)),
        vec3f(dot(at.y.value, curve_sums), dot(at.y.slope, slope_sums), dot(at.y.curve, value_sums)),
    );
}

#ifdef REPLAY

// Sends derivatives by value and slopes to the nine coefficients.
fn height_adjoint(at: Stencil, by_value: f32, by_slope: vec2f) {
    for (var r = 0u; r < 3u; r++) {
        let plain = by_value * at.y.value[r] + by_slope.y * at.y.slope[r];
        let sloped = by_slope.x * at.y.value[r];
        let shares = at.x.value * plain + at.x.slope * sloped;
        let row = at.y.texels[r] * settings.size.x;
        gradient_add(settings.parameter, row + at.x.texels.x, shares.x);
        gradient_add(settings.parameter, row + at.x.texels.y, shares.y);
        gradient_add(settings.parameter, row + at.x.texels.z, shares.z);
    }
}

#endif
