// Writes each splat into the lists of its tiles. Afterwards the word of a tile and group is the end of their entries.

#import bind/splats

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let g = splat_invocation(group, lane);
    if g >= settings.groups {
        return;
    }
    for (var i = g * settings.group; i < min((g + 1u) * settings.group, settings.count); i++) {
        let columns = splats[i].columns;
        let rows = splats[i].rows;
        for (var y = rows & 0xffffu; y < (rows >> 16u); y++) {
            for (var x = columns & 0xffffu; x < (columns >> 16u); x++) {
                let cell = (y * settings.tiles_x + x) * settings.groups + g;
                lists[list_entry(lists[cell])] = i;
                lists[cell] += 1u;
            }
        }
    }
}
