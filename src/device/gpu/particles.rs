//! Light tracing among surfaces on the GPU: as many paths begin at the lights as a view's whole film has samples. They are
//! splatted onto a separate film, which is then added to the image that has what cameras see of the lights directly.

use std::ops::Range;

use super::context::Context;
use super::light::View;
use super::paths::PathPasses;
use super::pieces::{DispatchSize, PATH_LOOKUPS, particle_lookups};
use super::ranks::{float_sum, whole_sum};
use super::records::{Launch, SPLAT_VECTORS, TracerRecord, exposure};
use super::shaders::{Accumulation, Kernel};
use super::{Gpu, Passes};
use crate::device::units::{BIN_ADDITIONS, FILM_SUMS};
use crate::device::{Batch, Keys, Result, check_whole_views};
use crate::resident::layout::SensorRecord;
use crate::resident::paths::PathScene;
use crate::resident::tracer::LightTracer;
use crate::transport::light::lens::Lens;

/// Most edges of a path beyond `rr_depth`, on the average over a dispatch: a path survives Russian roulette with a probability
/// of 0.95, so that 19 are expected, and a thousand paths have more than 64 on average with a probability below e^-1000.
const ROULETTE_EDGES: u32 = 64;

/// The fewest paths of a dispatch.
const FEWEST_PATHS: u64 = 64;

/// Bytes of a pixel's sums of floats, and how many paths add to them before they are settled: if all added the same value to
/// one pixel, a thousandth of the sum would be rounded away.
const FLOAT_FILM: u64 = 32;
const FLOAT_PATHS: u64 = 1 << 18;

/// The record of a scene's light tracing, if it has any.
///
/// # Errors
/// There is not enough memory.
pub(super) fn tracer_record(context: &Context, scene: &PathScene) -> Result<Option<wgpu::Buffer>> {
    let record = |_| context.uniform("tracer", size_of::<TracerRecord>() as u64);
    scene.light_tracer.as_ref().map(record).transpose()
}

impl Gpu {
    /// The light tracing of the scene and its record, if it is asked for.
    fn tracing(&self) -> Option<(&LightTracer, &wgpu::Buffer)> {
        let Passes::Paths(PathPasses { scene, tracer, .. }) = &self.passes else {
            return None;
        };
        scene.light_tracer.as_ref().zip(tracer.as_ref())
    }

    /// Whether pixels of the film are sums in whole numbers.
    fn has_whole_films(&self) -> bool {
        self.pipelines.dialect.accumulation != Accumulation::FloatAtomic
    }

    /// The parts of a pass of light tracing.
    ///
    /// # Errors
    /// The batch is one of single pixels.
    pub(super) fn particle_parts(&self, batch: &Batch, spp: u32) -> Result<usize> {
        let Some((tracer, _)) = self.tracing() else {
            return Ok(0);
        };
        check_whole_views(batch)?;
        let of = |view: View| {
            let size = self.particle_dispatches(tracer, view, spp);
            self.particle_pieces(tracer, size, view, spp).count()
        };
        Ok(self.light_views(batch).into_iter().map(of).sum())
    }

    /// Traces paths from the lights, if the scene asks for it, and adds their splats to the image, which so far has what cameras
    /// see of the lights directly.
    pub(super) fn splat_particles(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        if self.tracing().is_none() {
            return Ok(());
        }
        for kernel in [Kernel::RenderParticles, Kernel::DevelopParticles] {
            self.pipelines.prepare(&self.context, kernel)?;
        }
        let launch = self.launch(batch, keys, spp);
        let own = self.own_run(batch);
        for view in self.light_views(batch) {
            let (pixels, first) = (self.pixels_of(view), view.1);
            let bytes = match self.has_whole_films() {
                true => 8 * FILM_SUMS,
                false => FLOAT_FILM,
            };
            let remedy = "render a smaller picture";
            self.arrays.fit_film(&self.context, pixels, bytes, remedy)?;
            self.context.clear([&self.arrays.film]);
            self.upload_tracer(view);
            self.trace_view(launch, view)?;
            self.reduce_particles(pixels)?;
            let seen = own.start.max(first)..own.end.min(first + pixels);
            if !seen.is_empty() {
                let done = Launch {
                    exposure: exposure::DONE,
                    ..launch
                };
                self.over_piece(
                    Kernel::DevelopParticles,
                    done,
                    seen.start - first..seen.end - first,
                    0..1,
                );
            }
        }
        Ok(())
    }

    /// Splats this rank's paths of a view. Sums are settled before whole numbers overflow, or floats are so large that much of
    /// what is added to them is rounded away.
    fn trace_view(&self, launch: Launch, view: View) -> Result<()> {
        let Some((tracer, _)) = self.tracing() else {
            return Ok(());
        };
        let most = self.most_paths(tracer);
        let settle = || self.over_piece(Kernel::DevelopParticles, launch, 0..self.pixels_of(view), 0..1);
        let size = self.particle_dispatches(tracer, view, launch.spp);
        let mut unsettled = 0;
        for (cells, samples) in self.particle_pieces(tracer, size, view, launch.spp) {
            let paths = cells.len() as u64 * samples.len() as u64;
            if unsettled + paths > most {
                settle();
                unsettled = 0;
            }
            unsettled += paths;
            self.over_piece(Kernel::RenderParticles, launch, cells, samples);
            self.context.count_when_done();
        }
        settle();
        self.context.check()
    }

    /// Replaces this rank's sums, which must be settled, by the sums over all ranks.
    fn reduce_particles(&self, pixels: u32) -> Result<()> {
        let film = &self.arrays.film;
        match self.has_whole_films() {
            true => self.reduce(film, 0..FILM_SUMS * u64::from(pixels), whole_sum),
            false => self.reduce(film, 4 * u64::from(pixels)..8 * u64::from(pixels), float_sum),
        }
    }

    /// The pixels of a view's whole film.
    fn cells(&self, tracer: &LightTracer, (sensor, _): View) -> u32 {
        let [across, down] = tracer.film(sensor, &self.sensors[sensor as usize]);
        across * down
    }

    fn particle_dispatches(&self, tracer: &LightTracer, view: View, spp: u32) -> DispatchSize {
        let longest = particle_lookups(tracer.max_depth, tracer.filters[view.0 as usize].radius);
        let fixed = DispatchSize::over(self.cells(tracer, view), longest, spp, PATH_LOOKUPS);
        let size = self.options.dispatch_size.unwrap_or(fixed);
        size.at_most(self.most_paths(tracer))
    }

    /// Paths that may add to a film before its sums are settled.
    fn most_paths(&self, tracer: &LightTracer) -> u64 {
        match self.has_whole_films() {
            true => most_paths(tracer),
            false => FLOAT_PATHS,
        }
    }

    fn particle_pieces(
        &self,
        tracer: &LightTracer,
        size: DispatchSize,
        view: View,
        spp: u32,
    ) -> impl Iterator<Item = (Range<u32>, Range<u32>)> + use<> {
        let own = self.own_cells(self.cells(tracer, view));
        self.pieces(Kernel::RenderParticles, size, &own, &(0..spp))
    }

    fn upload_tracer(&self, view: View) {
        if let Some((tracer, buffer)) = self.tracing() {
            let record = record_of(tracer, view, &self.sensors[view.0 as usize], self.cells(tracer, view));
            self.context.upload(buffer, 0, bytemuck::bytes_of(&record));
        }
    }
}

/// Paths for which sums in whole numbers have room: a path adds to a pixel at most once for each of its edges.
fn most_paths(tracer: &LightTracer) -> u64 {
    let edges = tracer.max_depth.min(tracer.rr_depth.saturating_add(ROULETTE_EDGES));
    (BIN_ADDITIONS / u64::from(edges.max(1))).max(FEWEST_PATHS)
}

/// The record of a view through this sensor, whose whole film has so many pixels.
fn record_of(tracer: &LightTracer, (index, first_pixel): View, sensor: &SensorRecord, cells: u32) -> TracerRecord {
    let lens = Lens::new(sensor);
    let filter = &tracer.filters[index as usize];
    let mut table = [[0f32; 4]; SPLAT_VECTORS];
    for (pair, nodes) in table.iter_mut().zip(filter.table.chunks(2)) {
        for (at, node) in nodes.iter().enumerate() {
            pair[2 * at..][..2].copy_from_slice(node);
        }
    }
    assert!(filter.table.len() <= 2 * SPLAT_VECTORS, "no wider filter is splatted");
    TracerRecord {
        to_local: lens.to_local,
        step: lens.step,
        share: lens.share,
        max_depth: tracer.max_depth,
        rr_depth: tracer.rr_depth,
        center: tracer.center,
        radius: tracer.radius,
        size: [sensor.width, sensor.height],
        first_pixel,
        sensor: index,
        scale: 1.0 / cells as f32,
        filter_radius: filter.radius,
        nodes: filter.nodes,
        node_count: filter.table.len() as u32,
        table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::layout::NONE;

    /// Whatever the depth, sums of a dispatch keep to their range, and a dispatch is not empty.
    #[test]
    fn paths_are_as_many_as_sums_have_room_for() {
        let most = |max_depth, rr_depth| {
            let tracer = LightTracer {
                max_depth,
                rr_depth,
                filters: Vec::new(),
                cropped: Vec::new(),
                center: [0.0; 3],
                radius: 1.0,
            };
            most_paths(&tracer)
        };
        assert_eq!(most(4, 5), BIN_ADDITIONS / 4);
        assert_eq!(most(NONE, 5), BIN_ADDITIONS / 69);
        assert_eq!(most(0, 5), BIN_ADDITIONS);
        assert_eq!(most(NONE, NONE), FEWEST_PATHS);
    }
}
