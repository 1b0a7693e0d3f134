// The state of a wave's path between its edges, and the contribution that waits for its shadow ray.

#import bind/wave
#import transport/paths/path_state
#import transport/rays/sampler

// A contribution of next-event estimation that waits for its shadow ray: whether there is one, and the path's factors of zero
// at that vertex. The ray and the contribution itself are written to the wave at once.
struct Deferred {
    waits: bool,
    zeros: vec3u,
}

var<private> deferred: Deferred;

// Loads a path of a wave, whose flags are `flags`, without its gathered radiance.
fn kept_path(at: u32, flags: u32) -> Path {
    let ray = wave_ray(at, WAVE_RAY);
    var path = path_start(ray.origin, ray.direction, ray.far, NONE, 0u);
    path.beta = wave_vector(at, WAVE_BETA);
    path.zeros = (vec3u(wave_word(at, WAVE_ZEROS)) >> vec3u(0u, 8u, 16u)) & vec3u(0xffu);
    path.depth = wave_depth(flags);
    path.scattered_at = wave_vector(at, WAVE_SCATTERED_AT);
    path.continuous = (flags & IS_CONTINUOUS) != 0u;
    path.straight = (flags & IS_STRAIGHT) != 0u;
    path.pdf = wave_number(at, WAVE_PDF);
    path.eta = wave_number(at, WAVE_ETA);
    return path;
}

fn kept_sampler(at: u32, flags: u32) -> Sampler {
    let counter = Counter(
        wave_word(at, WAVE_COUNTER),
        wave_word(at, WAVE_COUNTER + 1u),
        wave_word(at, WAVE_COUNTER + 2u),
        wave_word(at, WAVE_COUNTER + 3u),
    );
    let values = vec4f(wave_vector(at, WAVE_NUMBERS), wave_number(at, WAVE_NUMBERS + 3u));
    return Sampler(counter, values, (flags >> USED_AT) & 7u);
}

// Lowest bits in WAVE_ZEROS of the waiting contribution's counts of zero factors, above those of the path: two bits a
// channel.
const WAITING_ZEROS: vec3u = vec3u(24u, 26u, 28u);

// Stores a path's state, but for its gathered radiance.
fn keep_path(at: u32, path: ptr<function, Path>, sampler: Sampler, goes_on: u32) {
    let flags = goes_on
        | select(0u, IS_WAITING, deferred.waits)
        | select(0u, IS_CONTINUOUS, (*path).continuous)
        | select(0u, IS_STRAIGHT, (*path).straight)
        | (sampler.used << USED_AT)
        | ((*path).depth << DEPTH_AT);
    wave_keep(at, WAVE_FLAGS, flags);
    // Counts of zeros stop at two, since none, one and more are all that differ; long paths have many.
    let zeros = (min((*path).zeros, vec3u(2u)) << vec3u(0u, 8u, 16u)) | (min(deferred.zeros, vec3u(2u)) << WAITING_ZEROS);
    wave_keep(at, WAVE_ZEROS, zeros.x | zeros.y | zeros.z);
    if goes_on == 0u {
        return;
    }
    wave_keep_ray(at, WAVE_RAY, WaveRay((*path).origin, (*path).direction, (*path).far));
    wave_keep_vector(at, WAVE_BETA, (*path).beta);
    wave_keep_vector(at, WAVE_SCATTERED_AT, (*path).scattered_at);
    wave_keep_number(at, WAVE_PDF, (*path).pdf);
    wave_keep_number(at, WAVE_ETA, (*path).eta);
    wave_keep(at, WAVE_COUNTER + 3u, sampler.counter.block);
    wave_keep_vector(at, WAVE_NUMBERS, sampler.values.xyz);
    wave_keep_number(at, WAVE_NUMBERS + 3u, sampler.values.w);
}

#ifdef DEFERS

// Stores the contribution throughput times `radiance`, which waits for the shadow ray that was sent.
fn path_defer(path: ptr<function, Path>, radiance: vec3f) {
    deferred.waits = true;
    deferred.zeros = (*path).zeros;
    wave_keep_vector(wave_at, WAVE_WAITING, (*path).beta * radiance);
}

// Adds the contribution that waits, unless its shadow ray is blocked.
fn arrive(at: u32, path: ptr<function, Path>) {
    if wave_word(at, WAVE_BLOCKED) == 0u {
        let zeros = (vec3u(wave_word(at, WAVE_ZEROS)) >> WAITING_ZEROS) & vec3u(3u);
        path_gather(path, wave_vector(at, WAVE_WAITING), zeros);
        return;
    }
#ifdef GATHERS
    // The shadow ray was sent at the end of the edge before; without one the number wraps around.
    if (*path).depth - launch.wave_first - 1u < KEPT_EDGES {
        wave_note_blocked(at, (*path).depth - 1u);
    }
#endif
}

#endif
