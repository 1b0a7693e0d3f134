// Ray intersection by hardware ray queries, in place of the software traversal in transport/scene/bvh.wgsl. Distances and
// barycentric coordinates have the adapter's rounding.

#import bind/bvh
#import bind/contents
#import bind/scene
#import transport/scene/records

// The adapter's acceleration structure, of two instances at most: triangles, four to a block in the order of blocks, and
// boxes around the shapes of `single_record`.
@group(0) @binding(27) var hierarchy: acceleration_structure;

// Flags and hit kinds of ray queries, which WGSL does not name.
const END_AT_ANY_HIT: u32 = 4u;
const HIT_TRIANGLE: u32 = 1u;
const HIT_BOX: u32 = 3u;
const EVERY_INSTANCE: u32 = 0xffu;

// The nearest hit between 0 and `known.t`, or `known` if there is none; if `any`, any such hit.
fn bvh_intersect(origin: vec3f, direction: vec3f, known: Nearest, any: bool) -> Nearest {
    var best = known;
    best.t = min(best.t, FAR);
    var query: ray_query;
    let flags = select(0u, END_AT_ANY_HIT, any);
    rayQueryInitialize(&query, hierarchy, RayDesc(flags, EVERY_INSTANCE, 0.0, best.t, origin, direction));
    // The adapter tests triangles and keeps the nearest hit. Other shapes are tested here, for each of their boxes that the
    // ray enters before it. Their hits are not reported to the adapter: naga 30 compares a reported hit with a distance that
    // does not exist.
    while rayQueryProceed(&query) {
        if SHAPES_IN_TREE {
            let candidate = rayQueryGetCandidateIntersection(&query);
            if candidate.kind == HIT_BOX {
                let number = single_record(candidate.primitive_index);
                let found = intersect_shape(number, origin, direction, known.t);
                if found.met && (found.t < best.t || (found.t == best.t && number < best.number)) {
                    best = Nearest(found.t, number, found.part, 0u, 0.0, 0.0, true);
                    if any {
                        return best;
                    }
                }
            }
        }
    }
    let met = rayQueryGetCommittedIntersection(&query);
    if met.kind == HIT_TRIANGLE && met.t < best.t {
        let block = met.primitive_index >> 2u;
        let lane = met.primitive_index & 3u;
        let number = block_triangles(block)[lane] | TRIANGLE;
        return Nearest(met.t, number, block, lane, met.barycentrics.x, met.barycentrics.y, true);
    }
    return best;
}
