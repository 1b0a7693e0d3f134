// The last kernel of a wave's replay: counts paths, their contributions, and those whose replay has drifted.

#import bind/launch
#import bind/statistics
#import bind/wave

// Counts of the workgroup, each of which one invocation adds to the counters of the pass.
var<workgroup> counted: array<atomic<u32>, 3>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if lane < 3u {
        atomicStore(&counted[lane], 0u);
    }
    workgroupBarrier();
    let at = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if at < wave_paths() && (wave_word(at, WAVE_FLAGS) & IS_MASKED) == 0u {
        let count = wave_word(at, WAVE_COUNT);
        let drifted = has_drifted(wave_vector(at, WAVE_GATHERED), wave_vector(at, WAVE_RADIANCE), count);
        atomicAdd(&counted[0], 1u);
        atomicAdd(&counted[1], count);
        atomicAdd(&counted[2], select(0u, 1u, drifted));
    }
    workgroupBarrier();
    if lane < 3u {
        statistics_add(lane, atomicLoad(&counted[lane]));
    }
}
