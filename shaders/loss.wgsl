// The loss of an image against its references, and the adjoint image dLoss/dImage.

#import bind/launch
#import common/math
#import kernels/loss
#import transport/rays/pixel

@group(0) @binding(8) var<storage, read> image: array<vec4f>;
@group(0) @binding(9) var<storage, read_write> adjoint: array<vec4f>;
@group(0) @binding(10) var<storage, read> references: array<u32>;
// Per workgroup: sum of losses, sum of squared errors, number of masked pixels, largest magnitude of the adjoint. For
// LOSS_MEANS: the sums of the image and of the references.
@group(0) @binding(12) var<storage, read_write> partials: array<vec4f>;

var<workgroup> sums: array<vec4f, ELEMENT_GROUP>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let place = group.y * launch.groups_x + group.x;
    let index = launch.first_pixel + place * ELEMENT_GROUP + lane;
    sums[lane] = vec4f(0.0);
    if index < launch.last_pixel {
        sums[lane] = compare(index);
    }
    // A reduction tree of fixed shape, so that the rounding of the sum is reproducible.
    for (var half = ELEMENT_GROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            let other = sums[lane + half];
            sums[lane] = vec4f(sums[lane].xyz + other.xyz, max(sums[lane].w, other.w));
        }
    }
    if lane == 0u && launch.first_pixel + place * ELEMENT_GROUP < launch.last_pixel {
        partials[place] = sums[0];
    }
}

// Compares one pixel with its reference, stores its adjoint, and returns its terms of the sums and its largest adjoint. An
// adjoint that is not finite is excluded from that maximum: every contribution that it multiplies is not finite either.
fn compare(index: u32) -> vec4f {
    let x = image[index];
    if x.w < 0.0 {
        adjoint[index] = vec4f(0.0);
        return vec4f(0.0, 0.0, 1.0, 0.0);
    }
    let pixel = batch_pixel(index);
    let r = reference_over_backdrop(pixel);
    if launch.loss_kind == LOSS_MEANS {
        return vec4f(x.x + x.y + x.z, r.x + r.y + r.z, 0.0, 0.0);
    }
    var slopes = vec4f(0.0);
    var sum = vec4f(0.0);
    for (var c = 0u; c < 3u; c++) {
        var weight = 0.0;
        if launch.loss_kind == LOSS_LINEAR {
            weight = linear_weight(launch.loss_seed, index, c);
        }
        let evaluated = loss_eval(launch.loss_kind, launch.loss_delta, launch.loss_scale, x[c], r[c], weight);
        sum.x += evaluated.x;
        sum.y += (x[c] - r[c]) * (x[c] - r[c]);
        slopes[c] = evaluated.y * launch.adjoint_scale;
        if is_finite(slopes[c]) {
            sum.w = max(sum.w, abs(slopes[c]));
        }
    }
    adjoint[index] = slopes;
    return sum;
}

// A pixel's reference composited over its background; black where it has none.
fn reference_over_backdrop(pixel: Pixel) -> vec3f {
    let first = sensors[pixel.sensor].first_pixel;
    if first == NO_REFERENCE {
        return vec3f(0.0);
    }
    let color = reference_pixel(first + pixel.index);
    let kind = sensors[pixel.sensor].backdrop;
    if kind == BACKDROP_OPAQUE {
        return color.xyz;
    }
    var behind = sensors[pixel.sensor].backdrop_color.xyz;
    if kind == BACKDROP_RANDOM {
        behind = random_backdrop(objective_key(), pixel);
    }
    return color.xyz * color.w + behind * (1.0 - color.w);
}

fn reference_pixel(index: u32) -> vec4f {
    switch launch.reference_kind {
        case REFERENCE_NONE: {
            return vec4f(0.0);
        }
        case REFERENCE_UNORM8: {
            let word = references[index];
            return vec4f((vec4u(word) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(255u)) * (1.0 / 255.0);
        }
        default: {
            let at = select(4u * index, 0u, launch.reference_kind == REFERENCE_CONSTANT);
            return bitcast<vec4f>(vec4u(references[at], references[at + 1u], references[at + 2u], references[at + 3u]));
        }
    }
}
