//! Optics that bend light between the lamp and the film: the trait of slabs and cubes.

use std::ops::Range;

use crate::resident::light::{Film, ScreenRecord};
use crate::transport::number::Number;

/// Where a path arrives.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<N, T> {
    /// In pixels from the film's upper left corner.
    pub film: [N; 2],
    /// Share of light that is transmitted, times film pixels per unit of the screen's area.
    pub weight: N,
    /// The path as its adjoint needs it; None if it passed beside the optic, as it then depends on no entry.
    pub trace: Option<T>,
}

/// An object that bends light, with the entries of the parameter that describes it.
pub trait Optic<N: Number>: Sync {
    /// What the adjoint needs of a path and does not find again by following it.
    type Trace: Copy;

    /// Follows light from a place of the lamp, in [0, 1]²; None where it does not arrive.
    fn follow(&self, screen: &ScreenRecord, film: &Film<'_>, place: [f32; 2]) -> Option<Arrival<N, Self::Trace>>;

    /// Sends to the parameter's entries the derivatives `by` the place on the film and the weight of a path: calls `send` with
    /// an index and the derivatives by the entries from there on.
    fn send(
        &self,
        screen: &ScreenRecord,
        film: &Film<'_>,
        trace: &Self::Trace,
        by: ([N; 2], N),
        send: impl FnMut(usize, &[N]),
    );

    /// The entries that paths may depend on that leave the lamp between two places along its second axis, in [0, 1].
    fn reach(&self, rows: [f32; 2]) -> Range<usize>;
}
