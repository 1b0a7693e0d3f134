//! Vectorised ray queries: many rays, their hits and texture lookups in SIMD lanes, with the bits of a single ray
//! (`shape.rs`, `bvh.rs`).

pub mod blocked;
mod describe;
pub mod environment;
pub mod images;
mod meet;
pub mod nearest;
mod packets;
pub mod rays;

pub use blocked::{blocked_together, meeting_together};
pub use environment::{DrawnCells, Seen, SkyMap};
pub use nearest::nearest_together;
pub use rays::{Hits, LANES, Rays, facing};
