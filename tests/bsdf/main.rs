//! BSDFs as functions of their numbers: sampling against pdfs, identities, derivatives, another renderer, and the
//! shaders.

#![allow(unreachable_pub, reason = "the files of a test are modules of one program")]

mod chi_square;
mod derivatives;
mod identities;
mod materials;
mod models;
mod peer;
mod reliefs;
mod shaders;
