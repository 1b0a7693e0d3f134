// What an adjoint pass counts: rays, samples and drifted rays as pairs of words (low, high), then what went wrong with
// sums in whole numbers.
@group(0) @binding(11) var<storage, read_write> statistics: array<atomic<u32>>;

const STATISTICS_FAULTS: u32 = 6u;
const FAULT_OVERFLOW: u32 = 1u;
const FAULT_NOT_FINITE: u32 = 2u;
