// The queue of a wave: rays that have to search the BVH.

#ifdef WRITE_QUEUE
// The number of entries; the number of paths that have an edge to follow or wait for a shadow ray, and the same one edge
// earlier; then the entries.
@group(0) @binding(29) var<storage, read_write> queue: array<atomic<u32>>;
#else
@group(0) @binding(29) var<storage, read> queue: array<u32>;
#endif

const QUEUE_PATHS: u32 = 1u;
const QUEUE_PATHS_BEFORE: u32 = 2u;
const QUEUE_ENTRIES: u32 = 3u;

// An entry is the index of a path, with the bit OF_SHADOW if the ray is its shadow ray, and ANY_HIT if any hit serves in
// place of the nearest.
const OF_SHADOW: u32 = 0x80000000u;
const ANY_HIT: u32 = 0x40000000u;
const OF_PATH: u32 = 0x3fffffffu;
