// Rebuilds the occupancy grid from the density, a cell an invocation.

#import bind/launch
#import kernels/occupancy

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    let size = scene.occupancy_size.xyz;
    if index >= size.x * size.y * size.z {
        return;
    }
    let cell = vec3u(index % size.x, index / size.x % size.y, index / (size.x * size.y));
    tables[launch.occupancy_at + index] = occupancy_bits(cell);
}
