// Wavefront path tracing: a wave of paths advances one edge (segment) at a time, by several kernels in turn. This buffer
// holds their state between the kernels.
//
// The states of a workgroup's paths are stored together, word by word, so that neighbouring invocations access neighbouring
// words, and a path's words lie at constant offsets from a few addresses. With the number of all paths as stride each word
// would need an address of its own, which takes two registers from its first read to its last write.

#import bind/bvh
#import common/math

// Words of a group of paths. Three parts hold the paths' state, one their gathered radiance, each further one the hits of two
// edges. The words of one ray may lie in two parts.
struct WavePart {
    words: array<array<u32, RAY_GROUP>, PART_WORDS>,
}

// The state of all groups, then their gathered radiance, then the hits of edges in `launch.wave_places` slots per path. A
// primal pass stores the hit of one edge, in words of the gathered radiance that only an adjoint uses.
@group(0) @binding(28) var<storage, read_write> wave: array<WavePart>;

const PART_WORDS: u32 = 13u;
const STATE_PARTS: u32 = 3u;
const EDGE_WORDS: u32 = 6u;
const PART_EDGES: u32 = 2u;
// The word of a stored hit that holds the flags below and the triangle's lane.
const EDGE_PLACE: u32 = 3u;
const EDGE_FOUND: u32 = 1u;
const EDGE_BLOCKED: u32 = 2u;
const EDGE_LANE_AT: u32 = 2u;

// The words of a path's state, of which long replays keep copies: the ray of its edge, with `far`, and its shadow ray.
const WAVE_RAY: u32 = 0u;
const WAVE_SHADOW_RAY: u32 = 7u;
// The path's flags, below.
const WAVE_FLAGS: u32 = 14u;
// 1 if the shadow ray is blocked.
const WAVE_BLOCKED: u32 = 15u;
const WAVE_BETA: u32 = 16u;
const WAVE_ZEROS: u32 = 19u;
const WAVE_SCATTERED_AT: u32 = 20u;
const WAVE_PDF: u32 = 23u;
const WAVE_ETA: u32 = 24u;
const WAVE_COUNTER: u32 = 25u;
const WAVE_NUMBERS: u32 = 29u;
// Weight of the path's radiance in its pixel.
const WAVE_WEIGHT: u32 = 33u;
// Contribution of the shadow ray if it is not blocked.
const WAVE_WAITING: u32 = 34u;
// The gathered radiance, in the part behind the state: the field `radiance` of a path, and in an adjoint `radiance_low` and
// `radiance_but_zero`.
const WAVE_RADIANCE: u32 = 39u;
const WAVE_RADIANCE_LOW: u32 = 42u;
const WAVE_BUT_ZERO: u32 = 45u;
// Of a replay: radiance gathered by the first walk, and number of contributions so far.
const WAVE_GATHERED: u32 = 48u;
const WAVE_COUNT: u32 = 51u;
// The most edges whose hits an adjoint stores, from `launch.wave_first` on; all other edges share one slot behind them.
const KEPT_EDGES: u32 = 16u;

// The path has an edge to follow; a contribution waits for its shadow ray.
const GOES_ON: u32 = 1u;
const IS_WAITING: u32 = 2u;
// The flags `continuous` and `straight` of a path.
const IS_CONTINUOUS: u32 = 4u;
const IS_STRAIGHT: u32 = 8u;
// There is no path: its pixel is masked, or the pixel's adjoint is zero.
const IS_MASKED: u32 = 16u;
// Lowest bit of the number of random numbers of a block that have been used.
const USED_AT: u32 = 5u;
// Lowest bit of the number of edges so far.
const DEPTH_AT: u32 = 8u;

// The path that the invocation follows.
var<private> wave_at: u32;

// The number of paths.
fn wave_paths() -> u32 {
    return (launch.last_pixel - launch.first_pixel) * (launch.last_sample - launch.first_sample);
}

// The part that one of a path's words is in.
fn wave_part(path: u32, word: u32) -> u32 {
    let group = path / RAY_GROUP;
    if word < WAVE_RADIANCE {
        return group * STATE_PARTS + word / PART_WORDS;
    }
    return (wave_paths() + RAY_GROUP - 1u) / RAY_GROUP * STATE_PARTS + group;
}

fn wave_word(path: u32, word: u32) -> u32 {
    return wave[wave_part(path, word)].words[word % PART_WORDS][path % RAY_GROUP];
}

fn wave_number(path: u32, word: u32) -> f32 {
    return bitcast<f32>(wave_word(path, word));
}

fn wave_vector(path: u32, word: u32) -> vec3f {
    return vec3f(wave_number(path, word), wave_number(path, word + 1u), wave_number(path, word + 2u));
}

fn wave_keep(path: u32, word: u32, value: u32) {
    wave[wave_part(path, word)].words[word % PART_WORDS][path % RAY_GROUP] = value;
}

fn wave_keep_number(path: u32, word: u32, value: f32) {
    wave_keep(path, word, bitcast<u32>(value));
}

fn wave_keep_vector(path: u32, word: u32, value: vec3f) {
    wave_keep_number(path, word, value.x);
    wave_keep_number(path, word + 1u, value.y);
    wave_keep_number(path, word + 2u, value.z);
}

// A ray that is searched for hits up to `far`.
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

// Where the hit of a path's edge number `depth`, from 0, is stored: a part, and a word there.
fn wave_edge(path: u32, depth: u32) -> vec2u {
    let place = min(depth - launch.wave_first, launch.wave_places - 1u);
    let parts = (launch.wave_places + PART_EDGES - 1u) / PART_EDGES;
    let part = launch.wave_edges_at + path / RAY_GROUP * parts + place / PART_EDGES;
    return vec2u(part, launch.wave_edges_word + place % PART_EDGES * EDGE_WORDS);
}

fn wave_edge_word(edge: vec2u, path: u32, word: u32) -> u32 {
    return wave[edge.x].words[edge.y + word][path % RAY_GROUP];
}

fn wave_edge_keep(edge: vec2u, path: u32, word: u32, value: u32) {
    wave[edge.x].words[edge.y + word][path % RAY_GROUP] = value;
}

// The stored hit of the path's edge number `depth`, from 0.
fn wave_nearest(path: u32, depth: u32) -> Nearest {
    let edge = wave_edge(path, depth);
    let place = wave_edge_word(edge, path, EDGE_PLACE);
    return Nearest(
        bitcast<f32>(wave_edge_word(edge, path, 0u)),
        wave_edge_word(edge, path, 1u),
        wave_edge_word(edge, path, 2u),
        place >> EDGE_LANE_AT,
        bitcast<f32>(wave_edge_word(edge, path, 4u)),
        bitcast<f32>(wave_edge_word(edge, path, 5u)),
        (place & EDGE_FOUND) != 0u,
    );
}

fn wave_keep_nearest(path: u32, depth: u32, nearest: Nearest) {
    let edge = wave_edge(path, depth);
    let place = (nearest.lane << EDGE_LANE_AT) | select(0u, EDGE_FOUND, nearest.found);
    wave_edge_keep(edge, path, 0u, bitcast<u32>(nearest.t));
    wave_edge_keep(edge, path, 1u, nearest.number);
    wave_edge_keep(edge, path, 2u, nearest.place);
    wave_edge_keep(edge, path, EDGE_PLACE, place);
    wave_edge_keep(edge, path, 4u, bitcast<u32>(nearest.u));
    wave_edge_keep(edge, path, 5u, bitcast<u32>(nearest.v));
}

// Whether the shadow ray sent at the end of that edge is blocked, as noted by the adjoint's first walk.
fn wave_is_blocked(path: u32, depth: u32) -> bool {
    return (wave_edge_word(wave_edge(path, depth), path, EDGE_PLACE) & EDGE_BLOCKED) != 0u;
}

// Notes that this shadow ray is blocked.
fn wave_note_blocked(path: u32, depth: u32) {
    let edge = wave_edge(path, depth);
    wave_edge_keep(edge, path, EDGE_PLACE, wave_edge_word(edge, path, EDGE_PLACE) | EDGE_BLOCKED);
}
