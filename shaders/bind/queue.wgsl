// Rays of a wave that the tree of triangles is searched for.

#ifdef WRITE_QUEUE
// Their number, the number of paths that go on or wait and that which did so an edge ago, then the entries.
@group(0) @binding(29) var<storage, read_write> queue: array<atomic<u32>>;
#else
@group(0) @binding(29) var<storage, read> queue: array<u32>;
#endif

const QUEUE_PATHS: u32 = 1u;
const QUEUE_PATHS_BEFORE: u32 = 2u;
const QUEUE_ENTRIES: u32 = 3u;

// An entry is the number of a path, with a bit if it is the path's shadow ray, and one if any hit serves.
const OF_SHADOW: u32 = 0x80000000u;
const ANY_HIT: u32 = 0x40000000u;
const OF_PATH: u32 = 0x3fffffffu;
