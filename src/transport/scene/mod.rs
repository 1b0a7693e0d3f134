//! What paths interact with: records of a scene, shapes and their BVH, lights, phase functions, majorants.

pub mod area_light;
pub mod batch;
pub mod beam;
pub mod bsdf;
pub mod bvh;
pub mod coats;
pub mod distance_grid;
pub mod facing;
pub mod glide;
pub mod interaction;
pub mod lanes;
pub mod light;
pub mod light_table;
pub mod majorant;
pub mod motion;
pub mod phase;
pub mod records;
pub mod shape;
pub mod sky;
pub mod tables;
pub mod tangent;
pub mod texture;
pub mod three_point;
pub mod vertices;
