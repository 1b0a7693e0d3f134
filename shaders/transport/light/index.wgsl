// An index of refraction that varies over the cube [-1, 1]³: a cubic B-spline with a coefficient a texel, whose second
// derivatives are continuous, so that the force on light has no visible seams. Beyond the outermost texels the grid goes on
// with copies of them.

#import bind/light
#import bind/parameters
#ifdef REPLAY
#import bind/gradients
#endif

// The index at a place, and n∇n, which is the acceleration of light there.
struct Bending {
    index: f32,
    slope: vec3f,
    force: vec3f,
}

// The same, and the derivative of the acceleration along a direction.
struct BendingAlong {
    at: Bending,
    turned: vec3f,
}

// The spline's stencil along an axis: four texels, and their weights in the value, the slope and the curvature.
struct IndexAxis {
    texels: vec4u,
    value: vec4f,
    slope: vec4f,
    curve: vec4f,
}

struct IndexAxes {
    x: IndexAxis,
    y: IndexAxis,
    z: IndexAxis,
}

fn index_axis(x: f32, n: u32) -> IndexAxis {
    let sixth = 1.0 / 6.0;
    let two_thirds = 2.0 / 3.0;
    let scale = 0.5 * f32(n);
    let g = (x + 1.0) * scale - 0.5;
    // The texel below, as -1/2 <= g; rounding may leave the cube by less than a texel.
    let last = i32(n) - 1;
    let cell = clamp(i32(g + 1.0) - 1, -1, last);
    let f = g - f32(cell);
    let rest = 1.0 - f;
    let f2 = f * f;
    let rest2 = rest * rest;
    let curve = scale * scale;
    return IndexAxis(
        vec4u(clamp(vec4i(cell - 1, cell, cell + 1, cell + 2), vec4i(0), vec4i(last))),
        vec4f(
            sixth * rest2 * rest,
            two_thirds - f2 + 0.5 * f2 * f,
            two_thirds - rest2 + 0.5 * rest2 * rest,
            sixth * f2 * f,
        ),
        vec4f(
            -(scale * 0.5 * rest2),
            scale * f * (1.5 * f - 2.0),
            scale * rest * (2.0 - 1.5 * rest),
            scale * 0.5 * f2,
        ),
        vec4f(curve * rest, curve * (3.0 * f - 2.0), curve * (3.0 * rest - 2.0), curve * f),
    );
}

fn index_axes(p: vec3f) -> IndexAxes {
    let size = settings.size;
    return IndexAxes(index_axis(p.x, size.x), index_axis(p.y, size.y), index_axis(p.z, size.z));
}

// Entry of the first texel along x, of row (y, z) of a stencil.
fn index_row(axes: IndexAxes, y: u32, z: u32) -> u32 {
    return (axes.z.texels[z] * settings.size.y + axes.y.texels[y]) * settings.size.x;
}

// Four neighbouring coefficients of a row.
fn index_four(axes: IndexAxes, y: u32, z: u32) -> vec4f {
    let at = settings.parameter.first + index_row(axes, y, z);
    let x = axes.x.texels;
    return vec4f(value(at + x.x), value(at + x.y), value(at + x.z), value(at + x.w));
}

// Coefficients of a layer of a stencil, a column of the matrix for each row.
fn index_layer(axes: IndexAxes, z: u32) -> mat4x4f {
    return mat4x4f(index_four(axes, 0u, z), index_four(axes, 1u, z), index_four(axes, 2u, z), index_four(axes, 3u, z));
}

// The index at a place, its slope, and the acceleration of light.
fn bending(p: vec3f) -> Bending {
    let axes = index_axes(p);
    var plain = vec4f(0.0);
    var by_y = vec4f(0.0);
    var by_z = vec4f(0.0);
    for (var k = 0u; k < 4u; k++) {
        let layer = index_layer(axes, k);
        let sum = layer * axes.y.value;
        plain += sum * axes.z.value[k];
        by_y += (layer * axes.y.slope) * axes.z.value[k];
        by_z += sum * axes.z.slope[k];
    }
    let index = dot(axes.x.value, plain);
    let slope = vec3f(dot(axes.x.slope, plain), dot(axes.x.value, by_y), dot(axes.x.value, by_z));
    return Bending(index, slope, index * slope);
}

#ifdef REPLAY

// The same, and the derivative of the acceleration along `d`. The Jacobian of n∇n is symmetric, being the second derivative
// of n²/2, so that this is also its transpose times `d`.
fn bending_along(p: vec3f, d: vec3f) -> BendingAlong {
    let axes = index_axes(p);
    // Sums along y and z of the value and of its derivatives y, z, yy, yz, zz.
    var plain = vec4f(0.0);
    var by_y = vec4f(0.0);
    var by_z = vec4f(0.0);
    var yy = vec4f(0.0);
    var yz = vec4f(0.0);
    var zz = vec4f(0.0);
    for (var k = 0u; k < 4u; k++) {
        let layer = index_layer(axes, k);
        let sum = layer * axes.y.value;
        let sloped = layer * axes.y.slope;
        plain += sum * axes.z.value[k];
        by_y += sloped * axes.z.value[k];
        by_z += sum * axes.z.slope[k];
        yy += (layer * axes.y.curve) * axes.z.value[k];
        yz += sloped * axes.z.slope[k];
        zz += sum * axes.z.curve[k];
    }
    let x = axes.x;
    let index = dot(x.value, plain);
    let slope = vec3f(dot(x.slope, plain), dot(x.value, by_y), dot(x.value, by_z));
    let xyz = vec3f(dot(x.curve, plain), dot(x.slope, by_y), dot(x.slope, by_z));
    let others = vec3f(dot(x.value, yy), dot(x.value, yz), dot(x.value, zz));
    let turned = vec3f(dot(xyz, d), dot(vec3f(xyz.y, others.xy), d), dot(vec3f(xyz.z, others.yz), d));
    return BendingAlong(Bending(index, slope, index * slope), slope * dot(slope, d) + index * turned);
}

// Sends the derivatives by the index at a place, and by its slope, to the 64 coefficients.
fn index_send(p: vec3f, by_index: f32, by_slope: vec3f) {
    let axes = index_axes(p);
    // One loop over rows in place of two: some drivers bound the total iterations of all loops.
    for (var i = 0u; i < 16u; i++) {
        let j = i & 3u;
        let k = i >> 2u;
        let plain = by_index * axes.z.value[k] + by_slope.z * axes.z.slope[k];
        let along_y = plain * axes.y.value[j] + by_slope.y * axes.z.value[k] * axes.y.slope[j];
        let along_x = by_slope.x * axes.z.value[k] * axes.y.value[j];
        let shares = along_y * axes.x.value + along_x * axes.x.slope;
        let row = index_row(axes, j, k);
        gradient_add(settings.parameter, row + axes.x.texels.x, shares.x);
        gradient_add(settings.parameter, row + axes.x.texels.y, shares.y);
        gradient_add(settings.parameter, row + axes.x.texels.z, shares.z);
        gradient_add(settings.parameter, row + axes.x.texels.w, shares.w);
    }
}

#endif
