// The blend of a pixel and its undoing: src/transport/splats/blend.rs says what is done here and why.
//
//   blend   C <- C + T a c       T <- T (1 - a)
//   undo    T <- T / (1 - a)     C <- C - T a c

#import bind/splats
#import transport/splats/splat

// The largest weight: with 1 the transmittance could not be undone.
const MAX_WEIGHT: f32 = 0.99;

// Weights below this are left out, so that a splat reaches finitely far.
const MIN_WEIGHT: f32 = 1.0 / 255.0;

// A pixel of less transmittance is finished.
const MIN_TRANSMITTANCE: f32 = 1.0 / 255.0;

// The blend of a pixel so far.
struct PixelState {
    transmittance: f32,
    color: vec3f,
}

// The state before the first splat.
fn begin() -> PixelState {
    return PixelState(1.0, vec3f(0.0));
}

// Blends a splat behind those blended before.
fn blend(state: ptr<function, PixelState>, weight: f32, color: vec3f) {
    (*state).color += (*state).transmittance * weight * color;
    (*state).transmittance *= 1.0 - weight;
}

// Takes the last `blend` back.
fn undo(state: ptr<function, PixelState>, weight: f32, color: vec3f) {
    (*state).transmittance = (*state).transmittance / (1.0 - weight);
    (*state).color -= (*state).transmittance * weight * color;
}

// The colour of the pixel: what has been blended over the background.
fn over(state: PixelState, background: vec3f) -> vec3f {
    return state.color + state.transmittance * background;
}

// Derivatives of the loss by the state between two iterations of the loop; that by the colour is the same before each of
// them.
struct StateAdjoint {
    transmittance: f32,
    color: vec3f,
}

// `over` backwards.
fn over_adjoint(adjoint_color: vec3f, background: vec3f) -> StateAdjoint {
    return StateAdjoint(dot(adjoint_color, background), adjoint_color);
}

struct BlendAdjoint {
    by_weight: f32,
    by_color: vec3f,
}

// `blend` backwards: from the state's derivatives after the blend to those before it. `before` is the transmittance before.
fn blend_adjoint(after: ptr<function, StateAdjoint>, before: f32, weight: f32, color: vec3f) -> BlendAdjoint {
    let gain = dot((*after).color, color) - (*after).transmittance;
    (*after).transmittance += weight * gain;
    return BlendAdjoint(before * gain, before * weight * (*after).color);
}

// A splat's weight at a pixel, and whether it is clamped; 0 if it is not blended there.
struct Weight {
    value: f32,
    clamped: bool,
}

fn weigh(splat: Splat, pixel: vec2f) -> Weight {
    let weight = splat_eval(splat, pixel);
    if weight < MIN_WEIGHT {
        return Weight(0.0, false);
    }
    return Weight(min(weight, MAX_WEIGHT), weight > MAX_WEIGHT);
}

struct Gathered {
    state: PixelState,
    count: u32,
}

// Blends the entries of a list from `first` to before `end`: the last state, and how many entries have been looked at.
fn gather(first: u32, end: u32, pixel: vec2f) -> Gathered {
    var state = begin();
    for (var i = first; i < end; i++) {
        let splat = splats[lists[list_entry(i)]];
        let weight = weigh(splat, pixel);
        if weight.value == 0.0 {
            continue;
        }
        blend(&state, weight.value, splat.color);
        if state.transmittance < MIN_TRANSMITTANCE {
            return Gathered(state, i + 1u - first);
        }
    }
    return Gathered(state, end - first);
}

// One iteration of the replay: undoes a splat and returns the derivatives by it; zeros if it was not blended.
fn replay_one(
    splat: Splat,
    pixel: vec2f,
    state: ptr<function, PixelState>,
    after: ptr<function, StateAdjoint>,
) -> SplatAdjoint {
    let weight = weigh(splat, pixel);
    if weight.value == 0.0 {
        return splat_zero();
    }
    undo(state, weight.value, splat.color);
    let by = blend_adjoint(after, (*state).transmittance, weight.value, splat.color);
    var sent = splat_zero();
    if !weight.clamped {
        sent = eval_adjoint(splat, pixel, by.by_weight);
    }
    sent.color = by.by_color;
    return sent;
}
