// Adds a penalty's gradient to a parameter's gradient and sums the penalty's terms. Each entry gathers the derivatives
// of its own term and of its three backward neighbours' terms, so that no two invocations write to the same entry.

#import bind/update
#import kernels/regularizer

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var i = first_element(group, lane); i < elements.count; i += elements.threads) {
        var term = vec2f(0.0);
        if elements.kind == PENALTY_SPARSITY {
            term = sparsity(parameter[elements.first + i]);
        } else {
            term = total_variation_at(i);
        }
        sum += term.x;
        parameter_gradient[elements.first + i] += elements.weight * term.y;
    }
    report(group, lane, sum, NONE_FOUND);
}

// Index distances between neighbouring entries along x, y and z.
fn strides() -> vec3u {
    return elements.size.w * vec3u(1u, elements.size.x, elements.size.x * elements.size.y);
}

// The total variation's term at entry `i`, part of texel `texel`.
fn term_at(i: u32, texel: vec3u) -> vec4f {
    let at = elements.first + i;
    var next = vec3u(at) + select(vec3u(0u), strides(), texel + 1u < elements.size.xyz);
    if elements.wraps == 1u && texel.x + 1u == elements.size.x {
        next.x = at - texel.x * strides().x;
    }
    return total_variation(parameter[at], vec3f(parameter[next.x], parameter[next.y], parameter[next.z]));
}

// The term at entry `i`, and the derivative of all terms by it.
fn total_variation_at(i: u32) -> vec2f {
    let index = i / elements.size.w;
    let size = elements.size.xyz;
    let texel = vec3u(index % size.x, index / size.x % size.y, index / (size.x * size.y));
    let own = term_at(i, texel);
    let stride = strides();
    var slope = -(own.x + own.y + own.z);
    if texel.x > 0u {
        slope += term_at(i - stride.x, texel - vec3u(1u, 0u, 0u)).x;
    } else if elements.wraps == 1u {
        let last = size.x - 1u;
        slope += term_at(i + last * stride.x, texel + vec3u(last, 0u, 0u)).x;
    }
    if texel.y > 0u {
        slope += term_at(i - stride.y, texel - vec3u(0u, 1u, 0u)).y;
    }
    if texel.z > 0u {
        slope += term_at(i - stride.z, texel - vec3u(0u, 0u, 1u)).z;
    }
    return vec2f(own.w, slope);
}
