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

// Four uniform numbers in [0, 1), multiples of 2^-24. Over the samples of a pixel they are points of Sobol's sequence
// (Sobol1967), whose order is shuffled and whose digits are scrambled (Owen1995, Burley2020) by the pixel, the sensor, the block
// and the pass.
fn stratified_uniform(key: vec4u, counter: Counter) -> vec4f {
    let group = ALL_SAMPLES - (counter.sample >> SOBOL_BITS);
    let seeds = random_words(key, Counter(counter.sensor, counter.pixel, group, counter.block));
    let order = vec4u(seeds.x ^ ((seeds.y << 16u) | (seeds.y >> 16u)));
    let index = reverseBits(scrambled_digits(vec4u(reverseBits(counter.sample)), order).x);
    var digits = vec4u(index, sobol_digits(index), 0u, 0u);
    var columns = array<vec2u, 12>(
        vec2u(0x1u, 0x1u), vec2u(0x3u, 0x3u), vec2u(0x6u, 0x4u), vec2u(0x9u, 0xau), vec2u(0x17u, 0x1fu), vec2u(0x3au, 0x2eu),
        vec2u(0x71u, 0x45u), vec2u(0xa3u, 0xc9u), vec2u(0x116u, 0x11bu), vec2u(0x339u, 0x2a4u), vec2u(0x677u, 0x79au),
        vec2u(0x9aau, 0xb67u),
    );
    for (var bit = 0u; bit < SOBOL_BITS; bit++) {
        if ((index >> bit) & 1u) == 1u {
            digits = vec4u(digits.xy, digits.zw ^ columns[bit]);
        }
    }
    return vec4f(reverseBits(scrambled_digits(digits, seeds)) >> vec4u(8u)) * (1.0 / 16777216.0);
}

// Two to the power of this many samples of a pixel are one sequence; further samples begin another.
const SOBOL_BITS: u32 = 12u;
// The sample number with which the seeds of a pixel's first sequence are drawn; those of further sequences have the numbers
// below. No actual sample has such a number.
const ALL_SAMPLES: u32 = 0xffffffffu;

// Digits of the sequence's second dimension, the first behind the point as the lowest bit. Its matrix is Pascal's triangle
// modulo two: as a polynomial over the field of two elements, `index` is shifted by one, half by half.
fn sobol_digits(index: u32) -> u32 {
    var digits = index ^ (index >> 16u);
    digits ^= (digits >> 8u) & 0x00ff00ffu;
    digits ^= (digits >> 4u) & 0x0f0f0f0fu;
    digits ^= (digits >> 2u) & 0x33333333u;
    return digits ^ ((digits >> 1u) & 0x55555555u);
}

// Owen's scrambling of such digits, by a hash each of whose bits depends on itself and lower ones only (Laine2011, with the
// constants of Vegdahl2021).
fn scrambled_digits(digits: vec4u, seeds: vec4u) -> vec4u {
    var x = digits;
    x ^= x * 0x3d20adeau;
    x += seeds;
    x *= (seeds >> vec4u(16u)) | vec4u(1u);
    x ^= x * 0x05526c56u;
    return x ^ (x * 0x53a22864u);
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
