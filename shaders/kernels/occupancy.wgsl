// The occupancy grid: which cells can contribute. The host's `reachable` fills the tables.

#import bind/launch
#import bind/parameters

// The bits of a cell, from all texels that lookups in it can reach.
fn occupancy_bits(cell: vec3u) -> u32 {
    if scene.density_activation != DENSITY_RELU {
        return OCCUPANCY_RENDERS | OCCUPANCY_LEARNS;
    }
    let cells = scene.occupancy_size.xyz;
    let at = launch.reach_at + 2u * vec3u(cell.x, cells.x + cell.y, cells.x + cells.y + cell.z);
    let first = vec3u(tables[at.x], tables[at.y], tables[at.z]);
    let last = vec3u(tables[at.x + 1u], tables[at.y + 1u], tables[at.z + 1u]);
    var bits = 0u;
    for (var z = first.z; z <= last.z; z++) {
        for (var y = first.y; y <= last.y; y++) {
            for (var x = first.x; x <= last.x; x++) {
                let value = value(launch.sigma.first + (z * scene.sigma_size.y + y) * scene.sigma_size.x + x);
                bits |= select(0u, OCCUPANCY_RENDERS, value > 0.0);
                bits |= select(OCCUPANCY_LEARNS, 0u, value < 0.0);
            }
        }
    }
    return bits;
}
