// Reconstruction filters by importance sampling: a sample's film position is drawn from its pixel's filter, truncated
// at the film's edge and renormalised, so that every sample of a pixel has weight one.

#import bind/launch

const GAUSSIAN_EXTENT: f32 = 4.0;
const STEPS_PER_DEVIATION: f32 = 8.0;
const LAST_STEP: f32 = 64.0;

fn gaussian_cdf(i: u32) -> f32 {
    return scene.gaussian_cdf[i >> 2u][i & 3u];
}

// Cumulative distribution function of the filter, at `offset` pixels from its centre.
fn filter_cdf(kind: u32, size: f32, offset: f32) -> f32 {
    switch kind {
        case FILTER_BOX: {
            return clamp(offset + 0.5, 0.0, 1.0);
        }
        case FILTER_TENT: {
            let x = clamp(offset / size, -1.0, 1.0);
            if x < 0.0 {
                return 0.5 * (1.0 + x) * (1.0 + x);
            }
            return 1.0 - 0.5 * (1.0 - x) * (1.0 - x);
        }
        default: {
            let x = clamp((offset / size + GAUSSIAN_EXTENT) * STEPS_PER_DEVIATION, 0.0, LAST_STEP);
            let i = min(floor(x), LAST_STEP - 1.0);
            let low = gaussian_cdf(u32(i));
            let high = gaussian_cdf(u32(i) + 1u);
            return low + (high - low) * (x - i);
        }
    }
}

// The inverse of filter_cdf.
fn filter_quantile(kind: u32, size: f32, u: f32) -> f32 {
    switch kind {
        case FILTER_BOX: {
            return u - 0.5;
        }
        case FILTER_TENT: {
            if u < 0.5 {
                return (sqrt(2.0 * u) - 1.0) * size;
            }
            return (1.0 - sqrt(2.0 * (1.0 - u))) * size;
        }
        default: {
            var low = 0u;
            var high = 64u;
            while high - low > 1u {
                let middle = (low + high) / 2u;
                if gaussian_cdf(middle) <= u {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            let a = gaussian_cdf(low);
            let b = gaussian_cdf(low + 1u);
            let x = f32(low) + (u - a) / (b - a);
            return (x / STEPS_PER_DEVIATION - GAUSSIAN_EXTENT) * size;
        }
    }
}

// Samples the film position of `pixel` along one axis, in pixels from the film's edge, with the uniform number `u`.
fn filter_sample(kind: u32, size: f32, pixel: u32, extent: u32, u: f32) -> f32 {
    let center = f32(pixel) + 0.5;
    if kind == FILTER_BOX {
        return f32(pixel) + u;
    }
    let low = filter_cdf(kind, size, -center);
    let high = filter_cdf(kind, size, f32(extent) - center);
    let place = center + filter_quantile(kind, size, low + (high - low) * u);
    return clamp(place, 0.0, f32(extent));
}
