// The majorants of a medium, a cell an invocation: the largest extinction that a lookup in it can give, with a margin.
// Twin of src/resident/majorants.rs.

#import bind/elements

@group(0) @binding(13) var<storage, read_write> parameter: array<f32>;
@group(0) @binding(17) var<storage, read> source: array<f32>;
// The first and last texel that lookups in a cell can reach: for each cell along x, then y, then z.
@group(0) @binding(18) var<storage, read> axes: array<vec4u>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = first_element(group, lane);
    if i >= elements.count {
        return;
    }
    let cells = elements.size;
    let x = axes[i % cells.x].xy;
    let y = axes[cells.x + i / cells.x % cells.y].xy;
    let z = axes[cells.x + cells.y + i / (cells.x * cells.y)].xy;
    let size = elements.source_size;
    var most = 0.0;
    for (var k = z.x; k <= z.y; k++) {
        for (var j = y.x; j <= y.y; j++) {
            let row = elements.source_first + (k * size.y + j) * size.x * size.w;
            for (var at = row + x.x * size.w; at < row + (x.y + 1u) * size.w; at++) {
                most = max(most, source[at]);
            }
        }
    }
    parameter[elements.first + i] = max(most * elements.scale * elements.margin, elements.least);
}
