// Derivatives of a ray's radiance by its origin, its direction, and the distance `near` from which on it is sampled.
//
// Samples lie at x_i = O + t_i D with t_i = near + (i + u) h. A replay knows the derivatives by the raw density and colour
// of a sample; with those of the two lookups by the place, g_i is the derivative by x_i, and
//
//     dL/dO = sum g_i     dL/dD = sum t_i g_i     dL/dnear = sum g_i . D
//
// beside what the direction does to spherical harmonics and to the background (docs/method.md, section 22).

#import bind/launch
#import bind/parameters
#import common/math
#import transport/lookup/background
#import transport/lookup/grid
#import transport/lookup/sh
#import transport/rays/camera
#import transport/rays/view_adjoint

// The sums over a ray's samples.
struct RayAdjoint {
    // By origin and direction in the unit cube, at a `near` that stays.
    origin: vec3f,
    direction: vec3f,
    // By the direction in the world, of the background.
    world: vec3f,
    // By the spherical harmonics of the direction.
    basis: Basis,
}

// The sums of the ray that this invocation replays. A private variable: the walk itself has no use for them, and need not
// pass them along.
var<private> by_ray: RayAdjoint;

// Clears the sums.
fn ray_adjoint_zero() {
    by_ray = RayAdjoint();
}

// Adds a sample at the distance `t`, whose raw density has the derivative `d_sigma`.
fn ray_add_density(at: ptr<function, Stencil>, t: f32, d_sigma: f32) {
    let low = vec4f(texel_sigma(at, 0u), texel_sigma(at, 1u), texel_sigma(at, 2u), texel_sigma(at, 3u));
    let high = vec4f(texel_sigma(at, 4u), texel_sigma(at, 5u), texel_sigma(at, 6u), texel_sigma(at, 7u));
    ray_add(cell_gradient(scene.sigma_size, at, low * d_sigma, high * d_sigma), t);
}

fn texel_sigma(at: ptr<function, Stencil>, k: u32) -> f32 {
    return value(launch.sigma.first + (*at).texels[k]);
}

// Adds a sample at the distance `t`, whose raw colour has the derivative `d_color`.
fn ray_add_color(at: ptr<function, Stencil>, basis: ptr<function, Basis>, t: f32, d_color: vec3f) {
    let d = d_color;
    let weights = cell_weights(at);
    var low = vec4f(0.0);
    var high = vec4f(0.0);
    for (var i = 0u; i < coefficient_count(); i++) {
        let below = vec4f(texel_sh(at, i, 0u, d), texel_sh(at, i, 1u, d), texel_sh(at, i, 2u, d), texel_sh(at, i, 3u, d));
        let above = vec4f(texel_sh(at, i, 4u, d), texel_sh(at, i, 5u, d), texel_sh(at, i, 6u, d), texel_sh(at, i, 7u, d));
        by_ray.basis[i] += dot(below, weights[0]) + dot(above, weights[1]);
        low += below * (*basis)[i];
        high += above * (*basis)[i];
    }
    ray_add(cell_gradient(scene.sh_size, at, low, high), t);
}

// What coefficient i of texel k contributes to the derivative of the loss by basis function i.
fn texel_sh(at: ptr<function, Stencil>, i: u32, k: u32, d_color: vec3f) -> f32 {
    return dot(value_color(launch.sh.first + (*at).texels[k] * SH_CHANNELS + 3u * i), d_color);
}

fn ray_add(g: vec3f, t: f32) {
    by_ray.origin += g;
    by_ray.direction += g * t;
}

// Adds the derivative by the direction through the background; `d_radiance` is the derivative by the background's radiance.
fn ray_add_background(direction: vec3f, d_radiance: vec3f) {
    if scene.background != BACKGROUND_ENVMAP {
        return;
    }
    let local = transform_vector(scene.world_to_env, direction);
    let slope = env_slope(scene.env_size, unit(local), d_radiance * scene.env_scale);
    by_ray.world += apply_transposed(scene.world_to_env, across(slope, local));
}

// The derivatives by the ray in the world.
fn ray_end(ray: Ray) -> ByRay {
    let place = transform_point(scene.world_to_unit, ray.origin);
    let along = transform_vector(scene.world_to_unit, ray.direction);
    var origin = by_ray.origin;
    var direction = by_ray.direction;
    // The distance from which on the ray is sampled, before the jitter, and the axis across the face of the cube where it
    // enters; 3 if it does not enter beyond the camera's clip distance.
    var near = ray.near;
    var entry = 3u;
    for (var axis = 0u; axis < 3u; axis++) {
        if along[axis] != 0.0 {
            let inverse = 1.0 / along[axis];
            let enters = min(-place[axis] * inverse, (1.0 - place[axis]) * inverse);
            if enters > near {
                near = enters;
                entry = axis;
            }
        }
    }
    let slide = dot(origin, along);
    var by_near = slide;
    if entry < 3u {
        // O + near D stays on the face along this axis, so that near changes by -(dO + near dD) / D.
        let share = slide / along[entry];
        origin[entry] -= share;
        direction[entry] -= share * near;
        by_near = 0.0;
    }
    let local = transform_vector(scene.world_to_field, ray.direction);
    var basis = by_ray.basis;
    let by_local = across(sh_adjoint(unit(local), &basis), local);
    let of_basis = apply_transposed(scene.world_to_field, by_local);
    let world = apply_transposed(scene.world_to_unit, direction) + of_basis + by_ray.world;
    return ByRay(apply_transposed(scene.world_to_unit, origin), world, by_near);
}

// The transpose of transform_vector.
fn apply_transposed(m: Rows, v: vec3f) -> vec3f {
    return m[0].xyz * v.x + m[1].xyz * v.y + m[2].xyz * v.z;
}

// The derivative by a vector from that by its unit vector.
fn across(by_unit: vec3f, v: vec3f) -> vec3f {
    let shorter = 1.0 / sqrt(dot(v, v));
    let along = v * shorter;
    return (by_unit - dot(by_unit, along) * along) * shorter;
}
