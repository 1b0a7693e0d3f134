//! The vectorised steps of paths that are followed together, such as tracing and shading, compiled for each vector level.

use crate::device::cpu::vector::level::{Kernel, Level};
use crate::device::cpu::vector::wide::Wide;
use crate::resident::layout::TextureRecord;
use crate::transport::paths::flights::{Arrival, Departure, fly_side_by_side};
use crate::transport::paths::packet::Pilot;
use crate::transport::paths::random_walks::{Matter, Send, Walker, walk_side_by_side};
use crate::transport::paths::walk_notes::{Run, WalkNotes, send_noted};
use crate::transport::paths::wave::block::{Block, Lanes, Lanes3, TEXTURES, Vertices};
use crate::transport::paths::wave::shading::{Lamps, prepare, shade, slopes};
use crate::transport::scene::batch::images::{Texels, image_together, texels_together};
use crate::transport::scene::batch::{Hits, Rays, Seen, SkyMap, blocked_together, meeting_together, nearest_together};
use crate::transport::scene::records::SceneView;

/// Runs these steps at a vector level.
pub(super) struct Pilots(pub(super) Level);

/// Message of a broken rule: callers must ask [`Pilot::is_wide`] before they ask for flights.
const WIDE: &str = "flights are made side by side at wide levels alone";

struct Fly<'a> {
    scene: &'a SceneView<'a>,
    medium: u32,
    values: [&'a [f32]; 2],
    departures: &'a [Departure],
    arrivals: &'a mut [Arrival],
}

impl Kernel for Fly<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        fly_side_by_side(self.scene, self.medium, self.values, self.departures, self.arrivals);
    }
}

struct RandomWalks<'a, 's> {
    mode: u8,
    matter: &'a Matter<'a>,
    walkers: &'a mut [Walker],
    notes: &'a mut WalkNotes,
    send: &'a mut Send<'s>,
}

impl Kernel for RandomWalks<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        walk_side_by_side(self.mode, self.matter, self.walkers, self.notes, self.send);
    }
}

struct SendNoted<'a, 's> {
    matter: &'a Matter<'a>,
    run: Run<'a>,
    send: &'a mut Send<'s>,
}

impl Kernel for SendNoted<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        send_noted(self.matter, self.run, self.send);
    }
}

struct Look<'a> {
    scene: &'a SceneView<'a>,
    rays: &'a Rays,
    count: usize,
    hits: &'a mut Hits,
}

impl Kernel for Look<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        nearest_together(self.scene, self.rays, self.count, self.hits);
    }
}

struct Cast<'a> {
    scene: &'a SceneView<'a>,
    rays: &'a Rays,
    count: usize,
    blocked: &'a mut Vec<u32>,
}

impl Kernel for Cast<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        blocked_together(self.scene, self.rays, self.count, self.blocked);
    }
}

struct Meet<'a> {
    scene: &'a SceneView<'a>,
    shapes: &'a [u32],
    rays: &'a Rays,
    count: usize,
    meeting: &'a mut Vec<u32>,
}

impl Kernel for Meet<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        meeting_together(self.scene, self.shapes, self.rays, self.count, self.meeting);
    }
}

struct Prepare<'a> {
    scene: &'a SceneView<'a>,
    lamps: &'a Lamps<'a>,
    block: &'a mut Block,
}

impl Kernel for Prepare<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        prepare(self.scene, self.lamps, self.block);
    }
}

struct Shade<'a> {
    scene: &'a SceneView<'a>,
    lamps: &'a Lamps<'a>,
    mode: u8,
    block: &'a mut Block,
}

impl Kernel for Shade<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        shade(self.scene, self.lamps, self.mode, self.block);
    }
}

struct Slopes<'a> {
    block: &'a Vertices,
    wo: &'a Lanes3,
    d: &'a Lanes3,
    indices: bool,
    slopes: &'a mut [Lanes3; TEXTURES],
}

impl Kernel for Slopes<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        slopes(self.block, self.wo, self.d, self.indices, self.slopes);
    }
}

struct LookUp<'a> {
    scene: &'a SceneView<'a>,
    map: &'a SkyMap<'a>,
    directions: &'a [Lanes3],
    pdfs: bool,
    seen: &'a mut Vec<Seen>,
}

impl Kernel for LookUp<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        self.map.look_up_all(self.scene, self.directions, self.pdfs, self.seen);
    }
}

struct Image<'a> {
    record: &'a TextureRecord,
    data: &'a [f32],
    uv: &'a [Lanes<f32>; 2],
}

impl Kernel for Image<'_> {
    type Output = Lanes3;
    #[inline(always)]
    fn run<W: Wide>(self) -> Lanes3 {
        image_together(self.record, self.data, self.uv)
    }
}

struct FindTexels<'a> {
    record: &'a TextureRecord,
    uv: &'a [Lanes<f32>; 2],
}

impl Kernel for FindTexels<'_> {
    type Output = Texels;
    #[inline(always)]
    fn run<W: Wide>(self) -> Texels {
        texels_together(self.record, self.uv)
    }
}

impl Pilot for Pilots {
    fn slopes(&self, block: &Vertices, wo: &Lanes3, d: &Lanes3, indices: bool, slopes: &mut [Lanes3; TEXTURES]) {
        self.0.run(Slopes {
            block,
            wo,
            d,
            indices,
            slopes,
        });
    }

    fn look(&self, scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits) {
        self.0.run(Look {
            scene,
            rays,
            count,
            hits,
        });
    }

    fn cast(&self, scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>) {
        self.0.run(Cast {
            scene,
            rays,
            count,
            blocked,
        });
    }

    fn meet(&self, scene: &SceneView, shapes: &[u32], rays: &Rays, count: usize, meeting: &mut Vec<u32>) {
        self.0.run(Meet {
            scene,
            shapes,
            rays,
            count,
            meeting,
        });
    }

    fn look_up(&self, scene: &SceneView, map: &SkyMap, directions: &[Lanes3], pdfs: bool, seen: &mut Vec<Seen>) {
        self.0.run(LookUp {
            scene,
            map,
            directions,
            pdfs,
            seen,
        });
    }

    fn image(&self, record: &TextureRecord, data: &[f32], uv: &[Lanes<f32>; 2]) -> Lanes3 {
        self.0.run(Image { record, data, uv })
    }

    fn texels(&self, record: &TextureRecord, uv: &[Lanes<f32>; 2]) -> Texels {
        self.0.run(FindTexels { record, uv })
    }

    fn prepare(&self, scene: &SceneView, lamps: &Lamps, block: &mut Block) {
        self.0.run(Prepare { scene, lamps, block });
    }

    fn shade(&self, scene: &SceneView, lamps: &Lamps, mode: u8, block: &mut Block) {
        self.0.run(Shade {
            scene,
            lamps,
            mode,
            block,
        });
    }

    /// The baseline has no instructions to round and to gather: flights in lanes take nearly twice the time of single flights.
    fn is_wide(&self) -> bool {
        self.0 != Level::Baseline
    }

    fn walk(&self, mode: u8, matter: &Matter, walkers: &mut [Walker], notes: &mut WalkNotes, send: &mut Send) {
        let walks = RandomWalks {
            mode,
            matter,
            walkers,
            notes,
            send,
        };
        self.0.run_wide(walks).expect(WIDE);
    }

    fn send_noted(&self, matter: &Matter, run: Run, send: &mut Send) {
        self.0.run_wide(SendNoted { matter, run, send }).expect(WIDE);
    }

    fn fly(
        &self,
        scene: &SceneView,
        medium: u32,
        values: [&[f32]; 2],
        departures: &[Departure],
        arrivals: &mut [Arrival],
    ) {
        let flights = Fly {
            scene,
            medium,
            values,
            departures,
            arrivals,
        };
        self.0.run_wide(flights).expect(WIDE);
    }
}
