//! Renders a view that is only looked at: each sample counts in every pixel that the reconstruction filter reaches from it.

use rayon::prelude::*;

use super::passes::{PathPasses, RenderChunk, Spare, Values};
use crate::device::Batch;
use crate::device::cpu::chunk::{CHUNK, Chunk, Place, chunks, place_in_view};
use crate::device::cpu::frame::{Frame, MASKED};
use crate::device::cpu::passes::{Inputs, Pass};
use crate::each::EachEntry;
use crate::resident::layout::SensorRecord;
use crate::transport::rays::film::{MAX_REACH, film_border, filter_reach, filter_weight, spread_sensor, spreads};
use crate::transport::rays::pixel::film_numbers;
use crate::transport::rays::random::Counter;
use crate::transport::scene::records::SceneView;

/// A pixel's sums over samples: radiance (RGB) and 1 for each path that went straight on, times the filter's weight, and the
/// weights.
type Exposure = [f32; 5];

impl PathPasses {
    /// Renders a view by (13a). One sample of every pixel, uniform in it, is kept at a time, and every pixel gathers those that
    /// its filter reaches, in an order that does not depend on the number of threads. Other batches are rendered by (13).
    pub(in crate::device::cpu) fn develop(&self, inputs: &Inputs, pass: Pass, frame: &mut Frame) {
        let Some(sensor) = spread_view(inputs, pass.batch) else {
            return self.render(inputs, pass, frame);
        };
        let record = &inputs.sensors[sensor as usize];
        let mut sensors = inputs.sensors.clone();
        sensors[sensor as usize] = spread_sensor(record);
        let (chunks, sampled) = (chunks(&inputs.sensors, pass.batch), chunks(&sensors, pass.batch));
        let scene = SceneView::new(&inputs.scene, &self.scene, self.tables());
        let values = Values::new(&inputs.params);
        let mut film: Vec<Exposure> = vec![[0.0; 5]; chunks.len() * CHUNK];
        let mut samples = vec![[0.0; 4]; sampled.len() * CHUNK];
        let rooms = Spare::default();
        self.begin_chunks(inputs, pass.spp as usize * sampled.len());
        for sample in 0..pass.spp {
            let all = samples.par_chunks_mut(CHUNK).zip(&sampled).enumerate();
            let own = all.filter(|(i, _)| inputs.cluster.owns(*i));
            own.for_each(|(_, (out, &chunk))| {
                let render = RenderChunk {
                    rooms: &rooms,
                    inputs,
                    sensors: &sensors,
                    scene: &scene,
                    values: &values,
                    pass,
                    chunk,
                    samples: sample..sample + 1,
                    out,
                };
                render.run();
                inputs.gauge.add();
            });
            // A pixel's samples may lie in chunks of other ranks.
            inputs.cluster.assemble(&mut samples, CHUNK);
            let samples = &samples[..];
            let all = film.par_chunks_mut(CHUNK).zip(&chunks).enumerate();
            let own = all.filter(|(i, _)| inputs.cluster.owns(*i));
            own.for_each(|(_, (film, &chunk))| {
                Gather {
                    inputs,
                    sensor,
                    pass,
                    sample,
                    samples,
                }
                .expose(chunk, film);
            });
        }
        for (out, [r, g, b, straight, weight]) in frame.begin(chunks.len()).iter_mut().zip(film) {
            *out = match weight == 0.0 {
                true => [0.0, 0.0, 0.0, MASKED],
                // A share that negative lobes of the filter made negative would mark the pixel as masked.
                false => [r / weight, g / weight, b / weight, (straight / weight).max(0.0)],
            };
        }
    }
}

/// The sensor of a batch that is one view whose filter is spread.
fn spread_view(inputs: &Inputs, batch: &Batch) -> Option<u32> {
    match (&batch.table.sensors[..], batch.drawn) {
        (&[sensor], None) if spreads(&inputs.sensors[sensor as usize]) => Some(sensor),
        _ => None,
    }
}

/// One sample of each pixel of a view.
struct Gather<'a> {
    inputs: &'a Inputs,
    sensor: u32,
    pass: Pass<'a>,
    sample: u32,
    samples: &'a [[f32; 4]],
}

impl Gather<'_> {
    /// Adds the samples around a tile's pixels to them, weighted by the filter: row by row from the top, each row from the
    /// left.
    fn expose(&self, chunk: Chunk, film: &mut [Exposure]) {
        let record = &self.inputs.sensors[self.sensor as usize];
        let (reach, border) = (filter_reach(record), film_border(record));
        let (width, height) = (record.width, record.height);
        let sampled = [width, height].each(|side| side + 2 * border);
        let (mut low, mut high) = ([u32::MAX; 2], [0; 2]);
        let pixels = || chunk.pixels(&self.inputs.sensors, self.pass.batch, self.pass.keys);
        for Place { pixel, .. } in pixels() {
            let at = [pixel.index % width, pixel.index / width];
            (low, high) = ([0, 1].each(|a| low[a].min(at[a])), [0, 1].each(|a| high[a].max(at[a])));
        }
        // Coordinates on the film enlarged by its border, where samples are taken as well.
        let (low, high) = (low.each(|x| x + border), high.each(|x| x + border));
        for y in low[1].saturating_sub(reach)..(high[1] + 1 + reach).min(sampled[1]) {
            for x in low[0].saturating_sub(reach)..(high[0] + 1 + reach).min(sampled[0]) {
                let seen = self.samples[place_in_view([x, y], sampled)];
                if seen[3] == MASKED {
                    continue;
                }
                let [across, down] = self.weights(record, y * sampled[0] + x);
                for row in y.saturating_sub(reach).max(low[1])..=(y + reach).min(high[1]) {
                    for column in x.saturating_sub(reach).max(low[0])..=(x + reach).min(high[0]) {
                        let weight = across[(column + reach - x) as usize] * down[(row + reach - y) as usize];
                        let place = place_in_view([column - border, row - border], [width, height]) % CHUNK;
                        for c in 0..4 {
                            film[place][c] += weight * seen[c];
                        }
                        film[place][4] += weight;
                    }
                }
            }
        }
    }

    /// The filter along both axes, from the sample of `pixel` to the centres of the pixels that it reaches.
    fn weights(&self, record: &SensorRecord, pixel: u32) -> [[f32; MOST]; 2] {
        let counter = Counter {
            sensor: self.sensor,
            pixel,
            sample: self.sample,
            block: 0,
        };
        let [across, down, ..] = film_numbers(&self.inputs.scene, self.pass.keys.pass, counter);
        let reach = filter_reach(record) as i32;
        [across, down].each(|u| {
            let mut weights = [0.0; MOST];
            for step in -reach..=reach {
                weights[(step + reach) as usize] = filter_weight(&self.inputs.scene, record, u - 0.5 - step as f32);
            }
            weights
        })
    }
}

/// Most pixels that a filter reaches along an axis.
const MOST: usize = 2 * MAX_REACH as usize + 1;
