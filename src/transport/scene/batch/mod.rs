//! Rays and what they meet, many side by side in the lanes of vectors, to the bits of one alone (`shape.rs`, `bvh.rs`).

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
