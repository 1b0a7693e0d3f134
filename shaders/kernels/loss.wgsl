// Losses between an image x and its reference r, per channel, and their derivatives by x.

#import common/layout
#import common/math

// Keeps the relative loss finite at black pixels.
const RELATIVE_FLOOR: f32 = 0.01;

// Loss of one channel and its derivative by `x`. LOSS_LINEAR is `weight` times x; LOSS_SCALED_L2 has `delta` as the factor on
// `x` and `factor` as that on the reference.
fn loss_eval(kind: u32, delta: f32, factor: f32, x: f32, reference: f32, weight: f32) -> vec2f {
    let d = x - reference;
    switch kind {
        case LOSS_L1: {
            return vec2f(abs(d), sign(d));
        }
        case LOSS_L2: {
            return vec2f(d * d, 2.0 * d);
        }
        case LOSS_HUBER: {
            if abs(d) < delta {
                return vec2f(0.5 * d * d, d);
            }
            return vec2f(delta * (abs(d) - 0.5 * delta), delta * sign(d));
        }
        case LOSS_RELATIVE_L2: {
            let scale = 1.0 / (x * x + RELATIVE_FLOOR);
            return vec2f(d * d * scale, 2.0 * d * scale);
        }
        case LOSS_SCALED_L2: {
            let scaled = delta * x - factor * reference;
            return vec2f(scaled * scaled, 2.0 * delta * scaled);
        }
        case LOSS_LOG_L1: {
            return vec2f(ln_1p(abs(d)), sign(d) / (1.0 + abs(d)));
        }
        default: {
            return vec2f(weight * x, weight);
        }
    }
}
