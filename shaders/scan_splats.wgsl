// Turns the counts of all tiles and groups into the places of their first entries: an exclusive prefix sum by one
// workgroup, each invocation of which sums a stretch of its own.

#import bind/splats

var<workgroup> totals: array<u32, ELEMENT_GROUP>;

@compute @workgroup_size(ELEMENT_GROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    let cells = list_cells();
    let stretch = (cells + ELEMENT_GROUP - 1u) / ELEMENT_GROUP;
    let first = min(lane * stretch, cells);
    let end = min(first + stretch, cells);
    var total = 0u;
    for (var i = first; i < end; i++) {
        total += lists[i];
    }
    totals[lane] = total;
    for (var step = 1u; step < ELEMENT_GROUP; step *= 2u) {
        workgroupBarrier();
        let before = select(0u, totals[max(lane, step) - step], lane >= step);
        workgroupBarrier();
        totals[lane] += before;
    }
    workgroupBarrier();
    var place = totals[lane] - total;
    for (var i = first; i < end; i++) {
        let count = lists[i];
        lists[i] = place;
        place += count;
    }
    if lane == ELEMENT_GROUP - 1u {
        lists[cells] = totals[lane];
    }
}
