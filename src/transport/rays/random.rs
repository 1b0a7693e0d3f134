//! Counter-based random numbers: a draw is a function of the pass's key and of a counter that states its purpose.
//!
//! The mixing function is `pcg4d` (Jarzynski2020, listing in section 3). Keys come from `rand_pcg` streams, one per
//! pass.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// 128 bits that identify a pass of an iteration of a run with a seed.
pub type Key = [u32; 4];

/// The random streams of a run. Everything that defines an iteration's objective (its rays, its random background) is
/// drawn from `Objective` in all passes; all else differs between passes, which keeps the gradient unbiased
/// (Azinovic2019).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    Objective = 1,
    Primal = 2,
    Adjoint = 3,
    /// Renders for display.
    Preview = 4,
    /// Order of views, random weights and other choices made on the host.
    Host = 5,
    /// Renders for viewers who watch a run, at any time and any number of times.
    Watch = 6,
}

/// The key of a pass of an iteration.
#[inline]
pub fn pass_key(seed: u64, iteration: u32, pass: Pass) -> Key {
    let mut stream = Pcg64::new(u128::from(seed), pass as u128);
    stream.advance(2 * u128::from(iteration));
    let (a, b) = (stream.next_u64(), stream.next_u64());
    [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32]
}

/// The purpose of a draw; `block` numbers groups of four draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    pub sensor: u32,
    pub pixel: u32,
    pub sample: u32,
    pub block: u32,
}

/// Four random words.
#[inline(always)]
pub fn random_words(key: Key, counter: Counter) -> [u32; 4] {
    let mut v = [
        key[0].wrapping_add(counter.pixel),
        key[1].wrapping_add(counter.sensor),
        key[2].wrapping_add(counter.sample),
        key[3].wrapping_add(counter.block),
    ];
    for x in &mut v {
        *x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    mix(&mut v);
    for x in &mut v {
        *x ^= *x >> 16;
    }
    mix(&mut v);
    v
}

#[inline(always)]
fn mix(v: &mut [u32; 4]) {
    v[0] = v[0].wrapping_add(v[1].wrapping_mul(v[3]));
    v[1] = v[1].wrapping_add(v[2].wrapping_mul(v[0]));
    v[2] = v[2].wrapping_add(v[0].wrapping_mul(v[1]));
    v[3] = v[3].wrapping_add(v[1].wrapping_mul(v[2]));
}

/// Four uniform numbers in [0, 1), multiples of 2^-24.
#[inline(always)]
pub fn random_uniform(key: Key, counter: Counter) -> [f32; 4] {
    let words = random_words(key, counter);
    let mut uniform = [0.0; 4];
    for lane in 0..4 {
        uniform[lane] = (words[lane] >> 8) as f32 * (1.0 / 16_777_216.0);
    }
    uniform
}

/// Four uniform numbers in [0, 1), multiples of 2^-24. Over the samples of a pixel they are points of Sobol's sequence
/// (Sobol1967): of 2^k samples that begin at a multiple of 2^k, each of 2^k equal intervals has one of every number. Their
/// order is shuffled and their digits are scrambled (Owen1995, Burley2020) by the pixel, the sensor, the block and the pass, so
/// that each point alone is uniform in the four numbers together, and those of different pixels and blocks are independent.
#[inline(always)]
pub fn stratified_uniform(key: Key, counter: Counter) -> [f32; 4] {
    let group = Counter {
        sample: ALL_SAMPLES - (counter.sample >> SOBOL_BITS),
        ..counter
    };
    let seeds = random_words(key, group);
    let order = seeds[0] ^ seeds[1].rotate_left(16);
    let index = scrambled_digits(counter.sample.reverse_bits(), order).reverse_bits();
    let mut digits = [index, sobol_digits(index), 0, 0];
    for bit in 0..SOBOL_BITS {
        let set = (index >> bit & 1).wrapping_neg();
        digits[2] ^= set & SOBOL[0][bit as usize];
        digits[3] ^= set & SOBOL[1][bit as usize];
    }
    let mut uniform = [0.0; 4];
    for lane in 0..4 {
        let word = scrambled_digits(digits[lane], seeds[lane]).reverse_bits();
        uniform[lane] = (word >> 8) as f32 * (1.0 / 16_777_216.0);
    }
    uniform
}

/// Binary logarithm of the number of consecutive samples that share one Sobol sequence.
const SOBOL_BITS: u32 = 12;

/// Sample number, which no pixel reaches, from which the seeds of the first such group are drawn; group g uses this minus g.
const ALL_SAMPLES: u32 = u32::MAX;

/// Generator matrices of Sobol's third and fourth dimensions (polynomials x² + x + 1 and x³ + x + 1), a column for each bit of
/// the index; the first digit after the point is the lowest bit.
const SOBOL: [[u32; SOBOL_BITS as usize]; 2] = [
    [0x1, 0x3, 0x6, 0x9, 0x17, 0x3a, 0x71, 0xa3, 0x116, 0x339, 0x677, 0x9aa],
    [0x1, 0x3, 0x4, 0xa, 0x1f, 0x2e, 0x45, 0xc9, 0x11b, 0x2a4, 0x79a, 0xb67],
];

/// The digits of Sobol's second dimension, the first after the point as the lowest bit. Its generator matrix is Pascal's
/// triangle modulo 2: in the polynomial over the field of two elements that `index` is, x becomes x + 1, half by half.
#[inline(always)]
fn sobol_digits(index: u32) -> u32 {
    let mut digits = index ^ (index >> 16);
    digits ^= (digits >> 8) & 0x00ff_00ff;
    digits ^= (digits >> 4) & 0x0f0f_0f0f;
    digits ^= (digits >> 2) & 0x3333_3333;
    digits ^ ((digits >> 1) & 0x5555_5555)
}

/// Owen's scrambling of digits in this order, by a hash in which each bit depends on itself and on lower bits alone (Laine2011,
/// with the constants of Vegdahl2021).
#[inline(always)]
fn scrambled_digits(digits: u32, seed: u32) -> u32 {
    let mut x = digits;
    x ^= x.wrapping_mul(0x3d20_adea);
    x = x.wrapping_add(seed);
    x = x.wrapping_mul((seed >> 16) | 1);
    x ^= x.wrapping_mul(0x0552_6c56);
    x ^ x.wrapping_mul(0x53a2_2864)
}

/// A uniform index below `count`: the high word of the product.
#[inline(always)]
pub fn random_index(word: u32, count: u32) -> u32 {
    ((u64::from(word) * u64::from(count)) >> 32) as u32
}

/// Four uniform numbers for a test; `seed` separates the tests' streams.
#[cfg(test)]
pub(crate) fn test_uniform(seed: u64, index: u32, block: u32) -> [f32; 4] {
    let counter = Counter {
        sensor: 0,
        pixel: index,
        sample: 0,
        block,
    };
    random_uniform(pass_key(seed, 0, Pass::Host), counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_and_iterations_have_keys_of_their_own() {
        let mut keys = Vec::new();
        for iteration in 0..50 {
            for pass in [
                Pass::Objective,
                Pass::Primal,
                Pass::Adjoint,
                Pass::Preview,
                Pass::Host,
                Pass::Watch,
            ] {
                keys.push(pass_key(7, iteration, pass));
            }
        }
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count, "two passes share a key");
    }

    /// 16 of a pixel's samples from a multiple of 16 on have one of each number in each of 16 intervals, and one pair of the
    /// first two numbers in each box of area 1/16, in all five shapes; and the samples with one index are uniform over pixels:
    /// chi-square over 16×16 bins of each pair in 2^16 draws at a fixed seed, of which a sound generator exceeds the bound at 1
    /// in 10⁴ seeds.
    #[test]
    fn samples_of_a_pixel_are_spread() {
        let key = pass_key(3, 0, Pass::Host);
        let place = |pixel: u32, sample: u32| {
            let counter = Counter {
                sensor: 0,
                pixel,
                sample,
                block: 0,
            };
            stratified_uniform(key, counter)
        };
        for pixel in 0..64 {
            for first in [0, 16, 48, 1 << 20] {
                let met = |cell: &dyn Fn([f32; 4]) -> u32| {
                    (first..first + 16).fold(0u32, |met, sample| met | 1 << cell(place(pixel, sample)))
                };
                for number in 0..4 {
                    let one = met(&|u| (u[number] * 16.0) as u32);
                    assert_eq!(one, 0xffff, "pixel {pixel}, from {first}, number {number}");
                }
                for across in [1, 2, 4, 8, 16] {
                    let down = 16 / across;
                    let both = met(&|u| (u[0] * across as f32) as u32 + across * (u[1] * down as f32) as u32);
                    assert_eq!(both, 0xffff, "pixel {pixel}, from {first}, {across} × {down}");
                }
            }
        }
        for sample in [0, 1, 5, 1000, 1 << 20] {
            for [a, b] in [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]] {
                let mut bins = [0f64; 256];
                for pixel in 0..1 << 16 {
                    let u = place(pixel, sample);
                    bins[(u[a] * 16.0) as usize * 16 + (u[b] * 16.0) as usize] += 1.0;
                }
                let chi2: f64 = bins.iter().map(|n| (n - 256.0).powi(2) / 256.0).sum();
                assert!(chi2 < 348.0, "sample {sample}, {a} and {b}: chi2 = {chi2}");
            }
        }
    }

    /// Chi-square test over 32 bins of each lane, and over 16×16 bins of neighbouring lanes: 2^18 draws at a fixed
    /// seed. The bound is the 1 - 1e-4 quantile: a sound generator fails one of the five tests at 1 in 2000 seeds.
    #[test]
    fn draws_are_uniform_and_lanes_independent() {
        let count = 1u32 << 18;
        let mut single = [[0f64; 32]; 4];
        let mut pairs = [0f64; 256];
        for i in 0..count {
            let u = test_uniform(1, i, 0);
            for (lane, x) in u.iter().enumerate() {
                single[lane][(x * 32.0) as usize] += 1.0;
            }
            pairs[(u[0] * 16.0) as usize * 16 + (u[1] * 16.0) as usize] += 1.0;
        }
        let chi2 = |bins: &[f64]| {
            let expected = f64::from(count) / bins.len() as f64;
            bins.iter().map(|n| (n - expected).powi(2) / expected).sum::<f64>()
        };
        for bins in &single {
            assert!(chi2(bins) < 70.0, "31 degrees of freedom: chi2 = {}", chi2(bins));
        }
        assert!(chi2(&pairs) < 348.0, "255 degrees of freedom: chi2 = {}", chi2(&pairs));
    }
}
