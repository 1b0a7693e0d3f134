//! The random numbers of one path: consecutive blocks of a counter, so that a replay draws the same ones.

use super::pixel::Pixel;
use super::random::{Counter, Key, random_uniform, stratified_uniform};
use crate::each::EachEntry;

/// First block of a path's walk; block 0 is the film position. The numbers of both are stratified over the samples of a pixel.
pub const WALK: u32 = 1;
/// First block of the draws that only an adjoint makes.
pub const ADJOINT: u32 = 1 << 30;
/// How far the blocks of draws beside a walk lie behind those of the walk.
const ASIDE: u32 = 1 << 29;

/// The random numbers of a sample of a pixel in a pass.
#[derive(Debug, Clone, Copy)]
pub struct Streams {
    pub key: Key,
    pub pixel: Pixel,
    pub sample: u32,
}

impl Streams {
    /// The random numbers of the sample's path.
    #[inline(always)]
    pub fn walk(&self) -> Sampler {
        self.begin(WALK)
    }

    /// The random numbers that only the path's adjoint draws.
    #[inline(always)]
    pub fn adjoint(&self) -> Sampler {
        self.begin(ADJOINT)
    }

    #[inline(always)]
    fn begin(&self, block: u32) -> Sampler {
        let counter = Counter {
            sensor: self.pixel.sensor,
            pixel: self.pixel.index,
            sample: self.sample,
            block,
        };
        Sampler::new(self.key, counter)
    }
}

/// A sequence of random numbers.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    key: Key,
    counter: Counter,
    values: [f32; 4],
    used: u32,
}

impl Sampler {
    /// The sequence that starts at `counter`'s block.
    #[inline(always)]
    pub fn new(key: Key, counter: Counter) -> Self {
        Self {
            key,
            counter,
            values: [0.0; 4],
            used: 4,
        }
    }

    /// This sequence, which must be at the end of a block of four, after `drawn` further numbers.
    #[inline]
    pub fn after(&self, drawn: u32) -> Self {
        let mut sampler = *self;
        sampler.counter.block = self.counter.block.wrapping_add(drawn / 4);
        for _ in 0..drawn % 4 {
            sampler.draw();
        }
        sampler
    }

    /// How many numbers have been drawn since `start`, which must have been at the end of a block.
    #[inline]
    pub fn drawn_since(&self, start: &Self) -> u32 {
        let blocks = self.counter.block.wrapping_sub(start.counter.block);
        4 * blocks + self.used - 4
    }

    /// A sequence for draws beside this one, which does not advance: a walk and its replay have the same at the same place.
    #[inline]
    pub fn aside(&self) -> Self {
        let block = self.counter.block.wrapping_add(ASIDE);
        Self::new(self.key, Counter { block, ..self.counter })
    }

    /// The next number, uniform in [0, 1).
    #[inline(always)]
    pub fn draw(&mut self) -> f32 {
        if self.used == 4 {
            self.values = match self.counter.block == WALK {
                true => first_of_walk(self.key, self.counter),
                false => random_uniform(self.key, self.counter),
            };
            self.counter.block = self.counter.block.wrapping_add(1);
            self.used = 0;
        }
        let value = self.values[self.used as usize];
        self.used += 1;
        value
    }
}

/// The first block of a walk.
// Not inlined: it is called once a path, but [`Sampler::draw`] is inlined in many places.
#[inline(never)]
fn first_of_walk(key: Key, counter: Counter) -> [f32; 4] {
    stratified_uniform(key, counter)
}

/// A block of four random numbers for each of several paths, given by their sensors, pixels and samples.
#[inline(always)]
pub fn blocks_of<const LANES: usize>(
    key: Key,
    [sensors, pixels, samples, _]: &[[u32; LANES]; 4],
    blocks: &[u32; LANES],
) -> [[f32; LANES]; 4] {
    let counter = |lane: usize| Counter {
        sensor: sensors[lane],
        pixel: pixels[lane],
        sample: samples[lane],
        block: blocks[lane],
    };
    let mut values = [[0.0; LANES]; 4];
    for lane in 0..LANES {
        let drawn = random_uniform(key, counter(lane));
        for i in 0..4 {
            values[i][lane] = drawn[i];
        }
    }
    let mut begin = 0;
    for lane in 0..LANES {
        begin += u32::from(blocks[lane] == WALK);
    }
    if begin > 0 {
        for lane in 0..LANES {
            let drawn = stratified_uniform(key, counter(lane));
            for i in 0..4 {
                values[i][lane] = if blocks[lane] == WALK {
                    drawn[i]
                } else {
                    values[i][lane]
                };
            }
        }
    }
    values
}

/// The sequences of several paths of one pass, one in each lane of a vector.
#[derive(Debug, Clone, Copy)]
pub struct Samplers<const LANES: usize> {
    key: Key,
    /// Sensor, pixel, sample and block.
    counters: [[u32; LANES]; 4],
    values: [[f32; LANES]; 4],
    used: [u32; LANES],
}

impl<const LANES: usize> Samplers<LANES> {
    /// No sequences yet.
    #[inline(always)]
    pub fn none() -> Self {
        Self {
            key: [0; 4],
            counters: [[0; LANES]; 4],
            values: [[0.0; LANES]; 4],
            used: [0; LANES],
        }
    }

    /// Puts a sequence into a lane. All have the key of their pass.
    #[inline(always)]
    pub fn put(&mut self, lane: usize, sampler: &Sampler) {
        self.key = sampler.key;
        let Counter {
            sensor,
            pixel,
            sample,
            block,
        } = sampler.counter;
        let counter = [sensor, pixel, sample, block];
        for i in 0..4 {
            self.counters[i][lane] = counter[i];
        }
        for i in 0..4 {
            self.values[i][lane] = sampler.values[i];
        }
        self.used[lane] = sampler.used;
    }

    /// The sequence of one lane.
    #[inline(always)]
    pub fn lane(&self, lane: usize) -> Sampler {
        let [sensor, pixel, sample, block] = [0, 1, 2, 3].each(|i| self.counters[i][lane]);
        Sampler {
            key: self.key,
            counter: Counter {
                sensor,
                pixel,
                sample,
                block,
            },
            values: [0, 1, 2, 3].each(|i| self.values[i][lane]),
            used: self.used[lane],
        }
    }

    /// The next four numbers of each lane, without taking them. Lanes are at different places in their blocks of four: of
    /// single draws, nearly every one would begin a new block in some lane, and all lanes would compute one.
    #[inline(always)]
    pub fn look_ahead(&self) -> Ahead<LANES> {
        let next = blocks_of(self.key, &self.counters, &self.counters[3]);
        // The numbers of both blocks, moved down by `used` places, a bit of `used` at a time, in loops over lanes: indexing by
        // `used` would become a memory lookup in each lane.
        let [a, b, c, d] = self.values;
        let both = [a, b, c, d, next[0], next[1], next[2]];
        let mut by_one = [[0.0; LANES]; 6];
        for i in 0..6 {
            for lane in 0..LANES {
                let moves = self.used[lane] & 1 != 0;
                by_one[i][lane] = if moves { both[i + 1][lane] } else { both[i][lane] };
            }
        }
        let mut drawn = [[0.0; LANES]; 4];
        for i in 0..4 {
            for lane in 0..LANES {
                let moves = self.used[lane] & 2 != 0;
                let moved = if moves { by_one[i + 2][lane] } else { by_one[i][lane] };
                let all = self.used[lane] == 4;
                drawn[i][lane] = if all { next[i][lane] } else { moved };
            }
        }
        Ahead { next, drawn }
    }

    /// Takes the first `counts` of the numbers ahead, at most four.
    #[inline(always)]
    pub fn take(&mut self, ahead: &Ahead<LANES>, counts: &[u32; LANES]) {
        for lane in 0..LANES {
            let used = self.used[lane] + counts[lane];
            let begins = used > 4;
            for i in 0..4 {
                let next = ahead.next[i][lane];
                self.values[i][lane] = if begins { next } else { self.values[i][lane] };
            }
            self.counters[3][lane] = self.counters[3][lane].wrapping_add(u32::from(begins));
            self.used[lane] = if begins { used - 4 } else { used };
        }
    }

    /// The next number of each lane whose `wanted` is not zero; the others keep their place.
    #[inline(always)]
    pub fn draw(&mut self, wanted: &[u32; LANES]) -> [f32; LANES] {
        let mut empty = 0;
        for lane in 0..LANES {
            empty += u32::from((wanted[lane] != 0) & (self.used[lane] == 4));
        }
        if empty > 0 {
            let next = blocks_of(self.key, &self.counters, &self.counters[3]);
            let blocks = &mut self.counters[3];
            for lane in 0..LANES {
                let refill = (wanted[lane] != 0) & (self.used[lane] == 4);
                for i in 0..4 {
                    self.values[i][lane] = if refill { next[i][lane] } else { self.values[i][lane] };
                }
                blocks[lane] = blocks[lane].wrapping_add(u32::from(refill));
                self.used[lane] = if refill { 0 } else { self.used[lane] };
            }
        }
        let mut drawn = [0.0; LANES];
        for lane in 0..LANES {
            let [a, b, c, d] = &self.values;
            let even = self.used[lane] & 1 == 0;
            let low = if even { a[lane] } else { b[lane] };
            let high = if even { c[lane] } else { d[lane] };
            drawn[lane] = if self.used[lane] < 2 { low } else { high };
            self.used[lane] += u32::from(wanted[lane] != 0);
        }
        drawn
    }
}

/// Numbers that come next in the sequences of several paths.
#[derive(Debug, Clone, Copy)]
pub struct Ahead<const LANES: usize> {
    /// The block after the present one.
    next: [[f32; LANES]; 4],
    /// The next four numbers of each lane.
    pub drawn: [[f32; LANES]; 4],
}

/// -ln(1 - u) of a uniform number: exponentially distributed with mean one. Evaluated by a series, so that all
/// machines and both languages agree: 1 - u = m 2^k with m near one, and ln m = 2 artanh((m - 1) / (m + 1)).
#[inline(always)]
pub fn exponential(u: f32) -> f32 {
    let x = 1.0 - u;
    let bits = x.to_bits();
    // The exponent k for which m lies between sqrt(1/2) and sqrt(2).
    let k = (bits.wrapping_sub(0x3f35_04f3) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((k as u32) << 23));
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let series = s * (2.0 + s2 * (2.0 / 3.0 + s2 * (2.0 / 5.0 + s2 * (2.0 / 7.0 + s2 * (2.0 / 9.0)))));
    (-(series + k as f32 * std::f32::consts::LN_2)).max(LEAST)
}

/// The smallest result of [`exponential`]: positive, because 0 over an extinction of 0 is not a number.
const LEAST: f32 = 1.0 / 33_554_432.0;

/// Upper limit of an angle in quarter turns, above all that occur.
const MOST_QUADRANTS: f32 = 1_048_576.0;

/// The point of the unit circle at angle 2 π u, cosine and sine, by polynomials on an eighth of the circle.
#[inline(always)]
#[allow(clippy::manual_clamp, reason = "a clamp would let through what is not a number")]
pub fn circle(u: f32) -> [f32; 2] {
    // The conversion truncates, which rounds down as no number is negative. Without a check of the range it is a vector
    // instruction.
    let from_corner = (u * 4.0 + 0.5).max(0.0).min(MOST_QUADRANTS);
    // SAFETY: the limits are far within the range of an i32, and what is not a number has become one of them.
    let quadrant = unsafe { from_corner.to_int_unchecked::<i32>() };
    let x = (u * 4.0 - quadrant as f32) * std::f32::consts::FRAC_PI_2;
    let x2 = x * x;
    let sine = x * (1.0 + x2 * (-1.0 / 6.0 + x2 * (1.0 / 120.0 + x2 * (-1.0 / 5040.0))));
    let cosine = 1.0 + x2 * (-0.5 + x2 * (1.0 / 24.0 + x2 * (-1.0 / 720.0 + x2 * (1.0 / 40320.0))));
    // Swap the two in odd quadrants and set their signs by bits: quadrants are random, and branches would be mispredicted three
    // times in four.
    let quadrant = quadrant as u32;
    let (cosine, sine) = (cosine.to_bits(), sine.to_bits());
    let swap = (cosine ^ sine) & (quadrant & 1).wrapping_neg();
    [
        f32::from_bits(cosine ^ swap ^ ((quadrant + 1) & 2) << 30),
        f32::from_bits(sine ^ swap ^ (quadrant & 2) << 30),
    ]
}

/// Two unit vectors perpendicular to the unit vector `n` and to each other (Duff2017).
#[inline(always)]
pub fn frame(n: [f32; 3]) -> ([f32; 3], [f32; 3]) {
    // -1 for negative n[2], else 1, without a branch, which random normals would mispredict.
    let sign = f32::from_bits(1f32.to_bits() | u32::from(n[2] < 0.0) << 31);
    let a = -1.0 / (sign + n[2]);
    let b = n[0] * n[1] * a;
    (
        [1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]],
        [b, sign + n[1] * n[1] * a, -n[1]],
    )
}

/// The unit vector at the polar angle with cosine `cosine` from `n` and azimuth 2 π u.
#[inline(always)]
pub fn around(n: [f32; 3], cosine: f32, u: f32) -> [f32; 3] {
    let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
    let [x, y] = circle(u);
    let (s, t) = frame(n);
    let mut out = [0.0; 3];
    for a in 0..3 {
        out[a] = s[a] * (sine * x) + t[a] * (sine * y) + n[a] * cosine;
    }
    out
}

/// The scalar product.
#[inline(always)]
pub fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The cross product.
#[inline(always)]
pub fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// The point `t` along a ray.
#[inline(always)]
pub fn along(origin: [f32; 3], direction: [f32; 3], t: f32) -> [f32; 3] {
    [
        origin[0] + direction[0] * t,
        origin[1] + direction[1] * t,
        origin[2] + direction[2] * t,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_and_the_circle_are_accurate() {
        for i in 0..(1u32 << 16) {
            let u = i as f32 / 65536.0 + 1.0 / 16_777_216.0;
            let exact = -(1.0 - f64::from(u)).ln();
            let error = (f64::from(exponential(u)) - exact).abs() / exact;
            assert!(error < 5e-7, "-ln(1 - {u}): relative error {error}");
            let angle = 2.0 * std::f64::consts::PI * f64::from(u);
            let [c, s] = circle(u).map(f64::from);
            assert!(
                (c - angle.cos()).abs() < 2e-6 && (s - angle.sin()).abs() < 2e-6,
                "{u}: {c} {s}"
            );
        }
        assert!(exponential(0.0) > 0.0);
    }

    #[test]
    fn numbers_looked_at_ahead_are_those_drawn() {
        const LANES: usize = 8;
        let sampler = |lane: usize| {
            let counter = Counter {
                sensor: 1,
                pixel: 7,
                sample: lane as u32,
                block: WALK,
            };
            Sampler::new([1, 2, 3, 4], counter)
        };
        let mut alone: [Sampler; LANES] = std::array::from_fn(sampler);
        let mut together = Samplers::<LANES>::none();
        // Lanes at all places of their blocks; a fresh sampler is at the end of the block before its first.
        for (lane, sampler) in alone.iter_mut().enumerate() {
            for _ in 0..lane {
                sampler.draw();
            }
            together.put(lane, sampler);
        }
        for step in 0..40 {
            let ahead = together.look_ahead();
            let counts: [u32; LANES] = std::array::from_fn(|lane| (lane as u32 + step) % 5);
            for (lane, sampler) in alone.iter_mut().enumerate() {
                let mut further = *sampler;
                let drawn = [0; 4].map(|_| further.draw());
                assert_eq!([0, 1, 2, 3].map(|i| ahead.drawn[i][lane]), drawn, "{step} {lane}");
                for _ in 0..counts[lane] {
                    sampler.draw();
                }
            }
            together.take(&ahead, &counts);
            // Numbers drawn alone go on from there.
            if step % 3 == 0 {
                let drawn = together.draw(&[1; LANES]);
                assert_eq!(drawn, std::array::from_fn(|lane| alone[lane].draw()));
            }
        }
    }

    #[test]
    fn frames_are_orthonormal() {
        for n in [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.6, -0.48, 0.64], [0.8, 0.0, -0.6]] {
            let (s, t) = frame(n);
            for (a, b, expected) in [(s, t, 0.0), (s, n, 0.0), (t, n, 0.0), (s, s, 1.0), (t, t, 1.0)] {
                assert!((dot(a, b) - expected).abs() < 1e-6, "{n:?}");
            }
        }
    }
}
