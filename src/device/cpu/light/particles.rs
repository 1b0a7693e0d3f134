//! Light tracing among surfaces. As many paths begin at the lights as a picture of the whole film has samples; they are cut into
//! bands whose number is fixed, each with a film of its own, and films are summed in the order of the bands, so that the number
//! of threads changes no bit.

use rayon::prelude::*;

use super::passes::{bands, is_of};
use super::sheet::{Sheet, sum_over_ranks};
use crate::device::cpu::chunk::{CHUNK, Place, chunks};
use crate::device::cpu::frame::{Frame, MASKED};
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::paths::passes::{PathPasses, Values};
use crate::device::{Result, check_whole_views};
use crate::resident::layout::SensorRecord;
use crate::resident::tracer::LightTracer;
use crate::transport::light::lens::Lens;
use crate::transport::light::particle::trace;
use crate::transport::rays::random::Counter;
use crate::transport::rays::sampler::{Sampler, WALK};
use crate::transport::scene::records::SceneView;

impl PathPasses {
    /// Traces paths from the lights, if the scene asks for it, and adds their splats to the image, which so far has what cameras
    /// see of the lights directly.
    pub(in crate::device::cpu) fn splat_light(&self, inputs: &Inputs, pass: Pass, frame: &mut Frame) -> Result<()> {
        let Some(tracer) = &self.scene.light_tracer else {
            return Ok(());
        };
        check_whole_views(pass.batch)?;
        let of_batch = chunks(&inputs.sensors, pass.batch);
        for (slot, &sensor) in pass.batch.table.sensors.iter().enumerate() {
            let record = &inputs.sensors[sensor as usize];
            let sheets = self.trace_view(inputs, pass, tracer, sensor);
            let [across, down] = tracer.film(sensor, record).map(f64::from);
            let share = (1.0 / (across * down * f64::from(pass.spp))) as f32;
            let chunked = frame.image_mut().par_chunks_mut(CHUNK).zip(&of_batch);
            chunked
                .filter(|(_, chunk)| is_of(chunk, slot))
                .for_each(|(image, chunk)| {
                    for Place { place, pixel, .. } in chunk.pixels(&inputs.sensors, pass.batch, pass.keys) {
                        let [x, y] = [pixel.index % record.width, pixel.index / record.width];
                        if image[place][3] == MASKED {
                            continue;
                        }
                        let mut sum = [0f32; 3];
                        for sheet in &sheets {
                            let at = sheet.index(x as usize, y as usize);
                            for c in 0..3 {
                                sum[c] += sheet.pixels[at][c];
                            }
                        }
                        for c in 0..3 {
                            image[place][c] += sum[c] * share;
                        }
                    }
                });
        }
        Ok(())
    }

    /// The films of all bands of a view; with several ranks, the sum of all films.
    fn trace_view(&self, inputs: &Inputs, pass: Pass, tracer: &LightTracer, sensor: u32) -> Vec<Sheet> {
        let record = &inputs.sensors[sensor as usize];
        let SensorRecord { width, height, .. } = *record;
        let (scene, values) = (
            SceneView::new(&inputs.scene, &self.scene, self.tables()),
            Values::new(&inputs.params),
        );
        let (lens, filter) = (Lens::new(record), &tracer.filters[sensor as usize]);
        let count = bands([width, height], filter.radius) as u32;
        let [across, down] = tracer.film(sensor, record);
        let edge = |band: u32| (u64::from(band) * u64::from(down) / u64::from(count)) as u32;
        let follow = |band: u32| {
            let mut sheet = Sheet::new([width, height], filter.radius);
            for pixel in edge(band) * across..edge(band + 1) * across {
                for sample in 0..pass.spp {
                    let counter = Counter {
                        sensor,
                        pixel,
                        sample,
                        block: WALK,
                    };
                    let mut sampler = Sampler::new(pass.keys.pass, counter);
                    trace(&scene, &values, tracer, &lens, &mut sampler, |place, power| {
                        sheet.add(filter, place, power.0);
                    });
                }
            }
            inputs.gauge.add();
            sheet
        };
        let own = inputs.cluster.share(count as usize, 1);
        inputs.gauge.begin_parts(own.len());
        let sheets = own.into_par_iter().map(|band| follow(band as u32)).collect();
        match inputs.cluster.is_single() {
            true => sheets,
            false => {
                let total = Sheet::new([width, height], filter.radius);
                vec![sum_over_ranks(inputs.cluster, &sheets, total)]
            }
        }
    }
}
