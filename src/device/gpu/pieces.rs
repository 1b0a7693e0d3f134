//! How a pass is cut into dispatches, so that none runs long enough for a driver to reset the device. The cuts follow
//! from fixed tables and the scene, never from measured time.

use std::ops::Range;

/// Rays that a dispatch may take, the most first.
const RAYS: [u32; 4] = [1 << 18, 1 << 16, 1 << 14, 1 << 12];

/// Samples along rays that a dispatch of the primal pass may take.
pub(super) const PRIMAL_SAMPLES: u64 = 1 << 26;

/// Samples along rays that a dispatch of the adjoint pass may take: each sends its gradient to every channel of eight
/// texels.
pub(super) const ADJOINT_SAMPLES: u64 = 1 << 23;

/// Lookups along paths that a dispatch may take.
pub(super) const PATH_LOOKUPS: u64 = 1 << 26;

/// Lookups along an edge of a path, shadow ray included, by which dispatches are sized.
const EDGE_LOOKUPS: u64 = 64;

/// Most edges of a path by which dispatches are sized: longer paths are rare, and others of their dispatch are shorter.
const PATH_EDGES: u32 = 16;

/// Lookups along a path of at most `depth` edges by which dispatches are sized.
pub(super) fn path_lookups(depth: u32) -> u64 {
    EDGE_LOOKUPS * u64::from(depth.clamp(1, PATH_EDGES))
}

/// Lookups along a light path of at most `depth` edges, each of which may be splatted onto a film with a filter of this
/// radius.
pub(super) fn particle_lookups(depth: u32, radius: f32) -> u64 {
    let across = (2.0 * radius) as u64 + 1;
    path_lookups(depth) + u64::from(depth.clamp(1, PATH_EDGES)) * across * across
}

/// Samples along rays that one invocation may take in a dispatch, its pixel's samples together.
const INVOCATION_SAMPLES: u64 = 1 << 11;

/// Samples along one ray that a software adapter may take: Mesa's ends loops silently after 65535 rounds an invocation,
/// all loops together.
pub(super) const SOFTWARE_SAMPLES: u64 = 1 << 11;

/// The most rays and samples of a pixel in a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchSize {
    pub rays: u32,
    pub samples: u32,
}

impl DispatchSize {
    /// The cut for rays of at most `longest` samples each, `spp` a pixel, within `budget` samples a dispatch.
    pub(super) fn new(longest: u64, spp: u32, budget: u64) -> Self {
        Self::over(u32::MAX, longest, spp, budget)
    }

    /// [`Self::new`] for a known number of pixels: if they are few, a dispatch takes the more samples of each, because one that
    /// does not fill a GPU lasts as long as its longest ray.
    pub(super) fn over(pixels: u32, longest: u64, spp: u32, budget: u64) -> Self {
        let longest = longest.max(1);
        let fits = |rays: &&u32| u64::from(**rays) * longest <= budget;
        let rays = *RAYS.iter().find(fits).unwrap_or(&RAYS[RAYS.len() - 1]);
        let rays = rays.min(pixels.max(1));
        let samples = (budget / u64::from(rays)).min(INVOCATION_SAMPLES) / longest;
        Self {
            rays,
            samples: samples.clamp(1, u64::from(spp.max(1))) as u32,
        }
    }

    /// This size, reduced to at most `paths` samples of all pixels of a dispatch together.
    pub(super) fn at_most(self, paths: u64) -> Self {
        let rays = u64::from(self.rays).clamp(1, paths.max(1));
        Self {
            rays: rays as u32,
            samples: u64::from(self.samples).min(paths / rays).max(1) as u32,
        }
    }

    /// The pieces of a pass over `pixels`: for each run of pixels its samples in order.
    pub(super) fn pieces(self, pixels: u32, spp: u32) -> impl Iterator<Item = (Range<u32>, Range<u32>)> {
        let runs = |end: u32, length: u32| {
            let length = length.max(1);
            (0..end.div_ceil(length)).map(move |i| i * length..(i * length).saturating_add(length).min(end))
        };
        runs(pixels, self.rays).flat_map(move |p| runs(spp, self.samples).map(move |s| (p.clone(), s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_of_every_pixel_is_taken_once_and_in_order() {
        for (pixels, spp, dispatch) in [
            (10, 5, DispatchSize { rays: 4, samples: 2 }),
            (7, 1, DispatchSize { rays: 100, samples: 9 }),
        ] {
            let mut seen = vec![0; pixels as usize];
            for (p, s) in dispatch.pieces(pixels, spp) {
                for pixel in p {
                    assert_eq!(seen[pixel as usize], s.start);
                    seen[pixel as usize] = s.end;
                }
            }
            assert!(seen.iter().all(|s| *s == spp));
        }
    }

    #[test]
    fn a_dispatch_is_cut_down_to_some_paths() {
        let size = DispatchSize { rays: 100, samples: 9 };
        for (paths, rays, samples) in [(1000, 100, 9), (899, 100, 8), (100, 100, 1), (7, 7, 1), (0, 1, 1)] {
            assert_eq!(size.at_most(paths), DispatchSize { rays, samples }, "{paths}");
        }
    }

    #[test]
    fn dispatches_keep_to_their_budget() {
        for longest in [0, 1, 100, 900, 4000] {
            for spp in [1, 16, 4096] {
                for budget in [PRIMAL_SAMPLES, ADJOINT_SAMPLES] {
                    let dispatch = DispatchSize::new(longest, spp, budget);
                    let samples = u64::from(dispatch.rays) * u64::from(dispatch.samples) * longest;
                    assert!(
                        samples <= budget
                            || dispatch
                                == DispatchSize {
                                    rays: 1 << 12,
                                    samples: 1
                                },
                        "{dispatch:?}"
                    );
                    assert!(dispatch.samples >= 1 && dispatch.samples <= spp);
                }
            }
        }
        assert_eq!(DispatchSize::new(222, 1, PRIMAL_SAMPLES).rays, 1 << 18);
        // All pixels of a small picture, and five of its samples.
        assert_eq!(
            DispatchSize::over(1 << 16, 192, 16, PATH_LOOKUPS),
            DispatchSize {
                rays: 1 << 16,
                samples: 5
            }
        );
    }
}
