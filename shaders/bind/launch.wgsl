// Buffers of every pass over rays: its launch, the scene, the cameras and small tables.

#import common/layout

@group(0) @binding(0) var<uniform> launch: Launch;
@group(0) @binding(1) var<uniform> scene: Scene;
#ifdef WRITE_TABLES
@group(0) @binding(2) var<storage, read_write> tables: array<u32>;
#else
@group(0) @binding(2) var<storage, read> tables: array<u32>;
#endif
@group(0) @binding(3) var<storage, read> sensors: array<Sensor>;

// The random keys of the iteration's objective and of the pass. They are read word by word: Mesa's software driver (22.3)
// compiles a kernel anew for each value of a vector that it reads from the beginning of a uniform buffer.
fn objective_key() -> vec4u {
    return vec4u(launch.objective.x, launch.objective.y, launch.objective.z, launch.objective.w);
}

fn pass_key() -> vec4u {
    return vec4u(launch.key.x, launch.key.y, launch.key.z, launch.key.w);
}
