// Optimiser steps, per entry.

#import bind/elements

// The result of a step: new value and moments.
struct Stepped {
    value: f32,
    moments: vec2f,
}

// The rule of src/kernels/optimizer.rs with the constants of `elements`.
fn apply_step(value: f32, gradient: f32, moments: vec2f) -> Stepped {
    var m = moments.x;
    var v = moments.y;
    var x = value;
    switch elements.kind {
        case OPTIMIZER_ADAM: {
            m = elements.decay_1 * m + (1.0 - elements.decay_1) * gradient;
            v = elements.decay_2 * v + (1.0 - elements.decay_2) * (gradient * gradient);
            x -= elements.rate * m / (sqrt(v * elements.second_correction) + elements.epsilon);
        }
        case OPTIMIZER_SGD: {
            m = elements.decay_1 * m + gradient;
            x -= elements.rate * m;
        }
        default: {
            m = elements.decay_1 * m + (1.0 - elements.decay_1) * (gradient * gradient);
            x -= elements.rate * gradient / (sqrt(m) + elements.epsilon);
        }
    }
    return Stepped(min(max(x, elements.low), elements.high), vec2f(m, v));
}
