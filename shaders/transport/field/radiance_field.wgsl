// Emission and absorption along a ray through a radiance field: one walk for every mode.
//
// Samples lie at t = near + (i + u) h while t < far, with one jitter u per ray. The primal adds L += T alpha c; the
// replay takes the same steps and subtracts from L, so that after a sample the remainder is R, the radiance still to
// come, and (docs/method.md)
//
//     dL/dc = T alpha          dL/dsigma = h (T exp(-tau) c - R)

#import bind/launch
#import common/math
#import transport/rays/camera
#import transport/lookup/grid
#import transport/lookup/sh
#ifdef VIEWS
#import transport/field/ray_adjoint
#endif

// The part of a ray inside the field, in the unit cube's coordinates.
struct Segment {
    origin: vec3f,
    direction: vec3f,
    // Distance of the first sample and of the end.
    first: f32,
    far: f32,
    basis: Basis,
    valid: bool,
}

// State carried from sample to sample.
struct State {
    // Primal: radiance so far. Replay: radiance still to come, the background's included.
    radiance: vec3f,
    transmittance: f32,
    // Samples that contributed.
    count: u32,
}

// Clips a ray to the field's cube. `jitter` is the ray's u in [0, 1).
fn field_segment(ray: Ray, jitter: f32) -> Segment {
    var segment: Segment;
    if scene.has_field == 0u {
        return segment;
    }
    segment.origin = transform_point(scene.world_to_unit, ray.origin);
    segment.direction = transform_vector(scene.world_to_unit, ray.direction);
    var near = ray.near;
    var far = ray.far;
    for (var axis = 0u; axis < 3u; axis++) {
        let o = segment.origin[axis];
        let d = segment.direction[axis];
        if d == 0.0 {
            if !(o >= 0.0 && o <= 1.0) {
                return segment;
            }
        } else {
            let inverse = 1.0 / d;
            let a = -o * inverse;
            let b = (1.0 - o) * inverse;
            near = max(near, min(a, b));
            far = min(far, max(a, b));
        }
    }
    segment.first = near + jitter * scene.step_length;
    segment.far = far;
    if segment.first >= far {
        return segment;
    }
    segment.basis = sh_basis(unit(transform_vector(scene.world_to_field, ray.direction)));
    segment.valid = true;
    return segment;
}

// Extinction from raw density.
fn density_activate(raw: f32) -> f32 {
    switch scene.density_activation {
        case DENSITY_RELU: {
            return select(raw, 0.0, raw < 0.0);
        }
        case DENSITY_SOFTPLUS: {
            // ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)
            if raw < 0.0 {
                return ln_1p(exp_full(raw));
            }
            return raw + ln_1p(exp_full(-raw));
        }
        default: {
            return exp_full(raw);
        }
    }
}

// Derivative of density_activate; the ReLU's is 1 at 0.
fn density_slope(raw: f32) -> f32 {
    switch scene.density_activation {
        case DENSITY_RELU: {
            return select(1.0, 0.0, raw < 0.0);
        }
        case DENSITY_SOFTPLUS: {
            return sigmoid(raw);
        }
        default: {
            return exp_full(raw);
        }
    }
}

fn sigmoid(x: f32) -> f32 {
    if x < 0.0 {
        let e = exp_full(x);
        return e * (1.0 / (1.0 + e));
    }
    return 1.0 / (1.0 + exp_full(-x));
}

// Colour from a raw sum of spherical harmonics.
fn color_activate(raw: f32) -> f32 {
    switch scene.color_activation {
        case COLOR_CLIP: {
            return clamp(raw, 0.0, 1.0);
        }
        case COLOR_SIGMOID: {
            return sigmoid(raw);
        }
        default: {
            return select(raw + 0.5, 0.0, raw < -0.5);
        }
    }
}

// Derivative of color_activate; the clip's is 1 on the closed interval, the ReLU's 1 at its kink.
fn color_slope(raw: f32) -> f32 {
    switch scene.color_activation {
        case COLOR_CLIP: {
            return select(1.0, 0.0, raw < 0.0 || raw > 1.0);
        }
        case COLOR_SIGMOID: {
            let s = sigmoid(raw);
            return s * (1.0 - s);
        }
        default: {
            return select(1.0, 0.0, raw < -0.5);
        }
    }
}

#ifdef REPLAY

// Receives the gradient of a sample: by raw density and by raw colour.
fn sample_adjoint(
    at: ptr<function, Stencil>,
    at_color: ptr<function, Stencil>,
    basis: ptr<function, Basis>,
    d_sigma: f32,
    d_color: vec3f,
) {
    if launch.sigma.tuned == 1u {
        grid_adjoint(launch.sigma, at, d_sigma);
    }
    if launch.sh.tuned == 1u && any(d_color != vec3f(0.0)) {
        grid_adjoint_sh(at_color, basis, d_color);
    }
}

#endif

// Walks a segment. The primal mode adds to `radiance`; the replay, compiled in by REPLAY, subtracts from it and sends
// `d_radiance` (the derivative of the loss by the ray's radiance) times the sample's derivatives to sample_adjoint.
fn walk(segment: ptr<function, Segment>, state: ptr<function, State>, d_radiance: vec3f, replay: bool) {
    let h = scene.step_length;
    let needed = select(OCCUPANCY_RENDERS, OCCUPANCY_LEARNS, replay);
    let same_grid = all(scene.sigma_size.xyz == scene.sh_size.xyz);
    var basis = (*segment).basis;
    var index = 0u;
    loop {
        let t = (*segment).first + f32(index) * h;
        // `!(t < far)` instead of `t >= far` also ends rays with a NaN.
        if !(t < (*segment).far) {
            break;
        }
        let p = (*segment).origin + t * (*segment).direction;
        let cell = occupancy_cell(p);
        if (tables[launch.occupancy_at + cell_index(cell)] & needed) == 0u {
            let exit = cell_exit(cell, segment);
            index = max(index + 1u, u32(max(floor((exit - (*segment).first) / h), 0.0)));
            continue;
        }
        index++;
        var at = grid_stencil(scene.sigma_size, p);
        let raw_sigma = grid_eval(launch.sigma.first, &at);
        if scene.density_activation == DENSITY_RELU && raw_sigma < 0.0 {
            // Under a ReLU a negative raw density contributes neither radiance nor derivatives.
            continue;
        }
        let sigma = density_activate(raw_sigma);
        var at_color = at;
        if !same_grid {
            at_color = grid_stencil(scene.sh_size, p);
        }
        let raw_color = grid_eval_sh(&at_color, &basis);
        let color = vec3f(color_activate(raw_color.x), color_activate(raw_color.y), color_activate(raw_color.z));

        let alpha = -exp_m1(-(sigma * h));
        let weight = (*state).transmittance * alpha;
        (*state).transmittance -= weight;
        (*state).count++;
        if replay {
#ifdef REPLAY
            (*state).radiance -= weight * color;
            let slopes = vec3f(color_slope(raw_color.x), color_slope(raw_color.y), color_slope(raw_color.z));
            let by_sigma = d_radiance * ((*state).transmittance * color - (*state).radiance);
            let d_sigma = (by_sigma.x + by_sigma.y + by_sigma.z) * h * density_slope(raw_sigma);
            sample_adjoint(&at, &at_color, &basis, d_sigma, d_radiance * weight * slopes);
#ifdef VIEWS
            ray_add_density(&at, t, d_sigma);
            ray_add_color(&at_color, &basis, t, d_radiance * weight * slopes);
#endif
#endif
        } else {
            (*state).radiance += weight * color;
        }
        if (*state).transmittance < scene.stop {
            break;
        }
    }
}

fn occupancy_cell(p: vec3f) -> vec3u {
    let size = scene.occupancy_size.xyz;
    return min(vec3u(max(p * vec3f(size), vec3f(0.0))), size - 1u);
}

fn cell_index(cell: vec3u) -> u32 {
    return (cell.z * scene.occupancy_size.y + cell.y) * scene.occupancy_size.x + cell.x;
}

// The distance at which a segment leaves a cell.
fn cell_exit(cell: vec3u, segment: ptr<function, Segment>) -> f32 {
    var exit = (*segment).far;
    for (var axis = 0u; axis < 3u; axis++) {
        let d = (*segment).direction[axis];
        if d != 0.0 {
            let edge = f32(cell[axis]) + select(0.0, 1.0, d > 0.0);
            exit = min(exit, (edge / f32(scene.occupancy_size[axis]) - (*segment).origin[axis]) / d);
        }
    }
    return exit;
}
