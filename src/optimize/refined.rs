//! Cameras at the end of a run: refined ones are written, and held-out views are judged from the poses that match them.

use anyhow::Result;

use super::cameras::{Refined, refine_held_out};
use super::held_out::{self, HeldOut};
use super::run::Run;
use super::views::training_views;
use crate::output::cameras::write_transforms;
use crate::output::record::write_json;
use crate::output::room;
use crate::params::Parameter;

impl Run<'_> {
    /// Writes the refined cameras for other programs.
    pub(super) fn write_cameras(&mut self) -> Result<()> {
        let tuned = |p: &Parameter| p.quantity.is_of_views() && p.tuning.is_some();
        if !self.device.params().parameters.iter().any(tuned) {
            return Ok(());
        }
        let (scene, path) = (self.job.scene, self.job.folder.results().join("transforms.json"));
        let records = &self.device.sensors()[..scene.sensors.len()];
        room::wait(self.progress, self.job.stop, || write_transforms(&path, scene, records))
    }

    /// If training cameras were refined, transforms the held-out ones by the similarity from the original to the refined
    /// poses.
    pub(super) fn take_held_out_along(&mut self) -> Result<Option<Refined>> {
        let (scene, settings) = (self.job.scene, self.job.settings);
        let training = training_views(scene, &settings.references);
        let Some(refined) = Refined::of(scene, &training, self.device) else {
            return Ok(None);
        };
        self.progress.note(&refined.text());
        self.progress.event("cameras", serde_json::to_value(refined)?);
        write_json(
            &self.job.folder.results().join("cameras.json"),
            &serde_json::to_value(refined)?,
        )?;
        for (index, _) in scene.sensors.iter().enumerate().filter(|(_, s)| s.held_out) {
            let moved = refined.take_along(&self.device.sensors()[index]);
            self.device.replace_sensor(index as u32, moved);
        }
        Ok(Some(refined))
    }

    /// Judges the held-out views again, after their cameras were refined with everything else fixed.
    pub(super) fn judge_refined(&mut self) -> Result<Option<HeldOut>> {
        let (scene, settings, folder) = (self.job.scene, self.job.settings, self.job.folder);
        let held_out = scene.sensors.iter().enumerate();
        let records: Vec<_> = held_out
            .filter(|(_, sensor)| sensor.held_out && sensor.reference.is_some())
            .map(|(index, _)| (index as u32, self.device.sensors()[index]))
            .collect();
        if settings.views.held_out_iterations == 0 || records.is_empty() {
            return Ok(None);
        }
        // The checkpoint is read from the device, which is about to hold other parameters.
        self.save_until_there_is_room()?;
        refine_held_out(scene, settings, &records, self.device, self.progress, self.job.stop)?;
        let figures = folder.held_out_refined_figures();
        let look = self.look();
        held_out::judge(
            scene,
            &self.targets,
            self.device,
            (folder, &figures),
            look,
            self.progress,
            self.job.stop,
        )
    }
}
