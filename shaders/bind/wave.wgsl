// Paths that are followed together, an edge at a time: what is kept of each between the kernels that take turns at it.
//
// Word w of path i is at w * paths + i: invocations side by side read words side by side.

#import bind/bvh
#import common/math

@group(0) @binding(28) var<storage, read_write> wave: array<u32>;

// The path's state, of which a replay keeps copies: the ray of its edge, up to FAR, and its shadow ray.
const WAVE_RAY: u32 = 0u;
const WAVE_SHADOW_RAY: u32 = 7u;
// What the path is about: the flags below.
const WAVE_FLAGS: u32 = 14u;
// 1 if something stands in the shadow ray's way.
const WAVE_BLOCKED: u32 = 15u;
const WAVE_BETA: u32 = 16u;
const WAVE_ZEROS: u32 = 19u;
const WAVE_SCATTERED_AT: u32 = 20u;
const WAVE_PDF: u32 = 23u;
const WAVE_ETA: u32 = 24u;
const WAVE_COUNTER: u32 = 25u;
const WAVE_NUMBERS: u32 = 29u;
// What the path's radiance counts in its pixel.
const WAVE_WEIGHT: u32 = 33u;
// What the shadow ray brings if nothing stands in its way.
const WAVE_WAITING: u32 = 34u;
// The fields `radiance` of a path, and in an adjoint `radiance_low` and `radiance_but_zero`.
const WAVE_RADIANCE: u32 = 37u;
const WAVE_RADIANCE_LOW: u32 = 40u;
const WAVE_BUT_ZERO: u32 = 43u;
// Of a replay: what the first walk has gathered, and contributions so far.
const WAVE_GATHERED: u32 = 46u;
const WAVE_COUNT: u32 = 49u;
// Of an adjoint: a bit for each kept edge behind which the shadow ray is blocked.
const WAVE_ALL_BLOCKED: u32 = 50u;
// What edges met, in as many places as the pass keeps.
const WAVE_NEAREST: u32 = 51u;
const NEAREST_WORDS: u32 = 6u;
// The most edges that an adjoint keeps, from `launch.wave_first` on; all others share a place behind them.
const KEPT_EDGES: u32 = 16u;

// A path goes on along its edge; its shadow ray is on its way.
const GOES_ON: u32 = 1u;
const IS_WAITING: u32 = 2u;
// The flags `continuous` and `straight` of a path.
const IS_CONTINUOUS: u32 = 4u;
const IS_STRAIGHT: u32 = 8u;
// There is no path: its camera sees nothing in its pixel, or no derivative comes back to that.
const IS_MASKED: u32 = 16u;
// Random numbers of a block that have been used.
const USED_AT: u32 = 5u;
// Edges so far.
const DEPTH_AT: u32 = 8u;

// The path that the invocation follows.
var<private> wave_at: u32;

// The number of paths.
fn wave_paths() -> u32 {
    return (launch.last_pixel - launch.first_pixel) * (launch.last_sample - launch.first_sample);
}

fn wave_word(path: u32, word: u32) -> u32 {
    return wave[word * wave_paths() + path];
}

fn wave_number(path: u32, word: u32) -> f32 {
    return bitcast<f32>(wave_word(path, word));
}

fn wave_vector(path: u32, word: u32) -> vec3f {
    return vec3f(wave_number(path, word), wave_number(path, word + 1u), wave_number(path, word + 2u));
}

fn wave_keep(path: u32, word: u32, value: u32) {
    wave[word * wave_paths() + path] = value;
}

fn wave_keep_number(path: u32, word: u32, value: f32) {
    wave_keep(path, word, bitcast<u32>(value));
}

fn wave_keep_vector(path: u32, word: u32, value: vec3f) {
    wave_keep_number(path, word, value.x);
    wave_keep_number(path, word + 1u, value.y);
    wave_keep_number(path, word + 2u, value.z);
}

// A ray as far as surfaces are looked for.
struct WaveRay {
    origin: vec3f,
    direction: vec3f,
    far: f32,
}

fn wave_ray(path: u32, word: u32) -> WaveRay {
    return WaveRay(wave_vector(path, word), wave_vector(path, word + 3u), wave_number(path, word + 6u));
}

fn wave_keep_ray(path: u32, word: u32, ray: WaveRay) {
    wave_keep_vector(path, word, ray.origin);
    wave_keep_vector(path, word + 3u, ray.direction);
    wave_keep_number(path, word + 6u, ray.far);
}

// The edges of a path with these flags, so far.
fn wave_depth(flags: u32) -> u32 {
    return flags >> DEPTH_AT;
}

// Where it is kept what the edge behind `depth` others meets.
fn wave_place(depth: u32) -> u32 {
    return WAVE_NEAREST + NEAREST_WORDS * min(depth - launch.wave_first, launch.wave_places - 1u);
}

// Where the path's edge behind `depth` others first meets a surface.
fn wave_nearest(path: u32, depth: u32) -> Nearest {
    let at = wave_place(depth);
    let place = wave_word(path, at + 3u);
    return Nearest(
        wave_number(path, at),
        wave_word(path, at + 1u),
        wave_word(path, at + 2u),
        place >> 1u,
        wave_number(path, at + 4u),
        wave_number(path, at + 5u),
        (place & 1u) == 1u,
    );
}

fn wave_keep_nearest(path: u32, depth: u32, nearest: Nearest) {
    let at = wave_place(depth);
    wave_keep_number(path, at, nearest.t);
    wave_keep(path, at + 1u, nearest.number);
    wave_keep(path, at + 2u, nearest.place);
    wave_keep(path, at + 3u, (nearest.lane << 1u) | select(0u, 1u, nearest.found));
    wave_keep_number(path, at + 4u, nearest.u);
    wave_keep_number(path, at + 5u, nearest.v);
}
