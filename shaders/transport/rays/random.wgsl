// Counter-based random numbers: a draw is a function of the pass's key and of a counter that states its purpose
// (Jarzynski2020, pcg4d).

// The purpose of a draw; `block` numbers groups of four draws.
struct Counter {
    sensor: u32,
    pixel: u32,
    sample: u32,
    block: u32,
}

// Four random words.
fn random_words(key: vec4u, counter: Counter) -> vec4u {
    var v = key + vec4u(counter.pixel, counter.sensor, counter.sample, counter.block);
    v = v * 1664525u + 1013904223u;
    v = mix_words(v);
    v ^= v >> vec4u(16u);
    return mix_words(v);
}

fn mix_words(words: vec4u) -> vec4u {
    var v = words;
    v.x += v.y * v.w;
    v.y += v.z * v.x;
    v.z += v.x * v.y;
    v.w += v.y * v.z;
    return v;
}

// Four uniform numbers in [0, 1), multiples of 2^-24.
fn random_uniform(key: vec4u, counter: Counter) -> vec4f {
    return vec4f(random_words(key, counter) >> vec4u(8u)) * (1.0 / 16777216.0);
}

// A uniform index below `count`: the high word of the product.
fn random_index(word: u32, count: u32) -> u32 {
    let a = vec2u(word & 0xffffu, word >> 16u);
    let b = vec2u(count & 0xffffu, count >> 16u);
    let low = a.x * b.x;
    let middle = a.y * b.x + (low >> 16u);
    let other = a.x * b.y + (middle & 0xffffu);
    return a.y * b.y + (middle >> 16u) + (other >> 16u);
}
