//! Noise that depends on position and seed alone, for procedural pictures and volumes.

/// Octaves of value noise, each with twice the frequency and half the amplitude of the one before, in [-1, 1].
pub(super) fn octaves(p: [f32; 3], count: u32, seed: u64) -> f32 {
    let (mut sum, mut whole, mut height, mut frequency) = (0.0, 0.0, 1.0, 1.0);
    for octave in 0..count {
        let scaled = p.map(|x| frequency * x);
        sum += height * value_noise(scaled, seed.wrapping_add(u64::from(octave) << 32));
        whole += height;
        height *= 0.5;
        frequency *= 2.0;
    }
    sum / whole
}

/// Random values in [-1, 1] at integer coordinates, interpolated with two continuous derivatives.
fn value_noise(p: [f32; 3], seed: u64) -> f32 {
    let cell = p.map(|x| x.floor() as i32);
    let t: [f32; 3] = std::array::from_fn(|axis| {
        let t = p[axis] - p[axis].floor();
        t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
    });
    let corner = |i: i32, j: i32, k: i32| 2.0 * unit(hash([cell[0] + i, cell[1] + j, cell[2] + k], seed)) - 1.0;
    let mix = |a: f32, b: f32, t: f32| a + (b - a) * t;
    let along_x = |j, k| mix(corner(0, j, k), corner(1, j, k), t[0]);
    let along_xy = |k| mix(along_x(0, k), along_x(1, k), t[1]);
    mix(along_xy(0), along_xy(1), t[2])
}

/// A hash of a lattice point: rounds of multiplication and xor-shift.
pub(super) fn hash(cell: [i32; 3], seed: u64) -> u32 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    for coordinate in cell {
        state = (state ^ u64::from(coordinate as u32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    }
    state = state.wrapping_mul(0x94d0_49bb_1331_11eb);
    (state >> 32) as u32
}

/// Maps a word to [0, 1).
pub(super) fn unit(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

/// A smooth step from 0 at `low` to 1 at `high`, constant beyond.
pub(super) fn smooth_step(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
