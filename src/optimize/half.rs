//! Bits a pixel and PSNR of a picture of splats whose parameters are rounded to half precision.

use anyhow::Result;
use half::f16;
use serde_json::json;

use super::run::Run;
use crate::device::{ArrayKind, Keys};
use crate::kernels::loss::Loss;
use crate::output::metrics::psnr;
use crate::output::progress::decibels;
use crate::output::record::write_json;
use crate::output::splats::HALF_BITS;
use crate::params::Kind;
use crate::transport::rays::random::{Pass, pass_key};

impl Run<'_> {
    /// Renders the picture with all splats rounded to half precision, and writes bits a pixel and PSNR beside those at
    /// full precision into `picture.json`. The device holds the full values again afterwards.
    pub(super) fn judge_half(&mut self) -> Result<()> {
        let Some(count) = self.splat_count() else { return Ok(()) };
        let batch = self.batches.at(self.state.iteration);
        let full = self.picture_psnr()?;
        let mut kept = Vec::new();
        for index in 0..self.device.params().parameters.len() {
            if self.device.params().parameters[index].kind != Kind::Points {
                continue;
            }
            let values = self.device.read(index, ArrayKind::Values)?;
            let rounded: Vec<f32> = values.iter().map(|v| f16::from_f32(*v).to_f32()).collect();
            self.device.write(index, ArrayKind::Values, &rounded)?;
            kept.push((index, values));
        }
        let half = self.picture_psnr();
        for (index, values) in kept {
            self.device.write(index, ArrayKind::Values, &values)?;
        }
        let half = half?;
        let bits = HALF_BITS as f64 * count as f64 / f64::from(batch.pixels().max(1));
        let figures = json!({
            "splats": count,
            "pixels": batch.pixels(),
            "psnr": full,
            "half_precision": { "bits_per_pixel": bits, "psnr": half },
        });
        write_json(&self.job.folder.path().join("picture.json"), &figures)?;
        self.progress.event("picture", figures);
        self.progress.note(&format!(
            "{count} splats: PSNR {}; at half precision {bits:.2} bits a pixel, PSNR {}",
            decibels(full),
            decibels(half)
        ));
        Ok(())
    }

    fn picture_psnr(&mut self) -> Result<Option<f64>> {
        let (settings, iteration) = (self.job.settings, self.state.iteration);
        let batch = self.batches.at(iteration);
        let keys = Keys {
            objective: pass_key(settings.seed, iteration, Pass::Objective),
            pass: pass_key(settings.seed, iteration, Pass::Preview),
        };
        self.device.render(&batch, keys, 1)?;
        Ok(psnr(self.device.loss(&batch, keys, Loss::L2)?.mse))
    }
}
