// Modes of a walk, and the sinks of its derivatives. The records are in bind/scene.wgsl.

#import bind/parameters
#import bind/scene
#import transport/lookup/background
#import transport/lookup/grid
#import transport/lookup/volume
#ifdef REPLAY
#import bind/gradients
#endif

// Adds radiance; ends where all further contributions are zero.
const PRIMAL: u32 = 0u;
// The first walk of an adjoint: adds radiance, and continues through factors of zero.
const GATHER: u32 = 1u;
// The second walk of an adjoint: subtracts radiance and sends derivatives.
const REPLAY: u32 = 2u;

#ifdef REPLAY
#ifdef WAVE
const mode: u32 = REPLAY;
#else
var<private> mode: u32;
#endif
#else
#ifdef GATHERS
const mode: u32 = GATHER;
#else
const mode: u32 = PRIMAL;
#endif
#endif

// Larger than every distance; finite, because shader compilers may assume that floats are.
const FAR: f32 = 1e30;
// Rays at least this long count as infinite.
const ENDLESS: f32 = 9.9e29;

#ifdef REPLAY

// Sends derivatives by a volume lookup.
fn sink_volume(volume: Volume, at: Neighbours, d: vec3f) {
    let slot = parameter_slot(volume.slot);
    if slot.tuned == 0u || all(d == vec3f(0.0)) {
        return;
    }
    let count = volume_corners(volume);
    let channels = volume.size.w;
    var part = d;
    if channels == 1u {
        part.x = d.x + d.y + d.z;
    }
    for (var i = 0u; i < count * channels; i++) {
        let k = i / channels;
        let c = i - k * channels;
        let weight = corner_weight(at, k);
        if weight != 0.0 {
            gradient_add(slot, corner_texel(at, k) * channels + c, part.x * weight);
        }
        if channels != 1u {
            part = part.yzx;
        }
    }
}

// Sends a derivative by a parameter with one value.
fn sink_number(index: u32, d: f32) {
    let slot = parameter_slot(index);
    if slot.tuned == 1u {
        gradient_add(slot, 0u, d);
    }
}

// Sends derivatives by the first three values of a parameter that is not a grid.
fn sink_color(index: u32, d: vec3f) {
    let slot = parameter_slot(index);
    if slot.tuned == 1u {
        gradient_add_color(slot, 0u, d);
    }
}

// Sends derivatives by `channels` values of a tuned parameter from the entry `first` on; a single one receives their
// sum.
fn sink_entries(slot: Slot, first: u32, d: vec3f, channels: u32) {
    let is_one = channels == 1u;
    gradient_add(slot, first, select(d.x, d.x + d.y + d.z, is_one));
    if !is_one {
        gradient_add(slot, first + 1u, d.y);
        gradient_add(slot, first + 2u, d.z);
    }
}

// Sends derivatives by the background's radiance along the unit direction `d`, of a map before its scale.
fn sink_background(d: vec3f, d_radiance: vec3f) {
    if launch.emitter.tuned == 1u {
        background_color_adjoint(d, d_radiance);
    }
}

#endif
