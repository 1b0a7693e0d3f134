//! BSDFs as functions of their numbers: sampling against pdfs, identities, derivatives, another renderer, and the
//! shaders.

mod chi_square;
mod derivatives;
mod identities;
mod materials;
mod models;
mod peer;
mod shaders;
