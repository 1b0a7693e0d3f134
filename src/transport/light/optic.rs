//! What light is bent by, between a place of the lamp and the film.

use std::ops::Range;

use crate::resident::light::{Film, ScreenRecord};
use crate::transport::number::Number;

/// Where a path arrives.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<N, T> {
    /// In pixels from the film's upper left corner.
    pub film: [N; 2],
    /// Share of light that arrives, times pixels in the area that it lights.
    pub weight: N,
    /// What the adjoint takes up again; None of a path that passed beside the optic, which depends on no entry.
    pub trace: Option<T>,
}

/// What bends light, with the entries of the parameter that describe it.
pub trait Optic<N: Number>: Sync {
    /// A path as far as its adjoint does not follow it again.
    type Trace: Copy;

    /// Follows light from a place of the lamp, in [0, 1]²; None where it does not arrive.
    fn follow(&self, screen: &ScreenRecord, film: &Film<'_>, place: [f32; 2]) -> Option<Arrival<N, Self::Trace>>;

    /// Sends derivatives by the place on the film and by the weight of a path to the entries: those from an index on, in
    /// order.
    fn send(
        &self,
        screen: &ScreenRecord,
        film: &Film<'_>,
        trace: &Self::Trace,
        by: ([N; 2], N),
        send: impl FnMut(usize, &[N]),
    );

    /// The entries that paths from these parts of the lamp, along its second axis, may depend on.
    fn reach(&self, rows: [f32; 2]) -> Range<usize>;
}
