//! Passes over the entries of parameters: step, regularisers, resampling.

use bytemuck::Zeroable;

use super::arrays::{Bank, Tables};
use super::paths::{PathArrays, PathPasses};
use super::plan::{Plan, shapes};
use super::records::{ELEMENT_GROUP, Elements, optimizer, penalty};
use super::shaders::{Binding, Kernel};
use super::splats::SplatArrays;
use super::{Gpu, Passes};
use crate::device::units::{Units, spread};
use crate::device::{ArrayKind, Device, DeviceError, Replacement, Result, Step, Term, axes_of};
use crate::kernels::optimizer::{Optimizer, StepRule};
use crate::kernels::regularizer::Penalty;
use crate::kernels::resample::{Axis, resample_axis};
use crate::params::Shape;
use crate::resident::fit_background;

/// Most workgroups that share the entries of a parameter.
const GROUPS: u32 = 1024;

/// Reported by a workgroup whose entries are all finite.
const NONE_FOUND: u32 = u32::MAX;

impl Gpu {
    /// Steps all tuned parameters and returns the norms of their gradients.
    pub(super) fn step_pass(&mut self, step: &Step) -> Result<Vec<f64>> {
        self.pipelines.prepare(&self.context, Kernel::Step)?;
        let tuned = self.tuned();
        self.arrays.fit_reports(&self.context, GROUPS * tuned.len() as u32)?;
        let mut ranges = Vec::new();
        let mut report_at = 0;
        for &index in &tuned {
            let parameter = &self.params.parameters[index];
            let tuning = parameter.tuning.expect("`tuned` lists parameters with a tuning");
            let rate = step.rate_of(parameter.quantity, tuning);
            let rule = StepRule::new(step.optimizer, rate, step.count, tuning.bounds);
            let mut record = self.elements(index, report_at);
            describe_rule(&mut record, &rule);
            let groups = record.groups_x;
            self.over_entries(Kernel::Step, index, record);
            ranges.push((index, report_at..report_at + groups));
            report_at += groups;
        }
        let reports = self.arrays.read_reports(&self.context, report_at)?;
        let mut norms = vec![0.0; self.params.parameters.len()];
        let mut broken = None;
        for (index, range) in ranges {
            let (sum, first) = reduce(&reports[range.start as usize..range.end as usize]);
            norms[index] = sum.sqrt();
            broken = broken.or(first.map(|first| (index, first)));
        }
        match broken {
            None => Ok(norms),
            Some((index, first)) => Err(self.broken_entry(index, first)),
        }
    }

    /// Units of an adjoint pass's sums.
    pub(super) fn units(&self, pixels: u32, spp: u32) -> Units {
        Units::new(self.largest_adjoint, pixels, spp)
    }

    /// The binary order of the radiance's derivative by a parameter, roughly.
    pub(super) fn magnitude(&self, index: usize) -> i32 {
        match &self.passes {
            Passes::Paths(passes) => passes.scene.magnitudes[index],
            Passes::Field(_) | Passes::Splats(_) | Passes::Light(_) => 0,
        }
    }

    /// Adds the sums of an adjoint pass to the gradients and zeroes them, if it has summed in whole numbers.
    pub(super) fn collect_sums(&mut self, units: Units) -> Result<()> {
        if !self.pipelines.dialect.accumulation.is_fixed() {
            return Ok(());
        }
        self.pipelines.prepare(&self.context, Kernel::Collect)?;
        for index in self.tuned() {
            let mut record = self.elements(index, 0);
            let texels = self.params.parameters[index].shape.texels();
            record.weight = 1.0 / units.in_one(spread(texels), self.magnitude(index));
            self.over_entries(Kernel::Collect, index, record);
        }
        Ok(())
    }

    /// Adds regularisers' gradients and returns their weighted penalties.
    pub(super) fn regularise_pass(&mut self, terms: &[Term]) -> Result<f64> {
        if terms.is_empty() {
            return Ok(0.0);
        }
        self.pipelines.prepare(&self.context, Kernel::Regularize)?;
        self.arrays.fit_reports(&self.context, GROUPS * terms.len() as u32)?;
        let mut ranges = Vec::new();
        let mut report_at = 0;
        for term in terms {
            let parameter = &self.params.parameters[term.parameter];
            if parameter.tuning.is_none() {
                continue;
            }
            let mut record = self.elements(term.parameter, report_at);
            (record.kind, record.weight) = match term.penalty {
                Penalty::TotalVariation => (penalty::TOTAL_VARIATION, term.weight / parameter.shape.len() as f32),
                Penalty::Sparsity => (penalty::SPARSITY, term.weight / parameter.shape.texels() as f32),
            };
            record.wraps = u32::from(parameter.kind.wraps());
            let groups = record.groups_x;
            self.over_entries(Kernel::Regularize, term.parameter, record);
            ranges.push((record.weight, report_at..report_at + groups));
            report_at += groups;
        }
        let reports = self.arrays.read_reports(&self.context, report_at)?;
        let mut total = 0.0;
        for (weight, range) in ranges {
            let (sum, _) = reduce(&reports[range.start as usize..range.end as usize]);
            total += f64::from(weight) * sum;
        }
        Ok(total)
    }

    /// Changes the resolution of parameters; gradients become zero, moments are resampled or zeroed.
    pub(super) fn resample_pass(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> Result<()> {
        self.pipelines.prepare(&self.context, Kernel::Resample)?;
        let old = shapes(&self.params);
        let mut new = old.clone();
        for &(index, size) in sizes {
            new[index].0.size = size;
        }
        let plan = Plan::new(&new, self.room());
        plan.check_fits(
            &self.names(),
            &new,
            &self.context.summary,
            self.pipelines.dialect.accumulation,
        )?;
        self.arrays.banks = self.resampled(&plan, &old, &new, sizes, keep_moments)?;
        for (parameter, (shape, _)) in self.params.parameters.iter_mut().zip(&new) {
            parameter.shape = *shape;
        }
        self.arrays.plan = plan;
        let fitted: Vec<Shape> = new.iter().map(|(shape, _)| *shape).collect();
        fit_background(&mut self.scene, self.emitter, &fitted);
        match &mut self.passes {
            Passes::Field(field) => field.fit(&mut self.scene, &fitted),
            Passes::Splats(_) => {}
            Passes::Light(passes) => passes.scene.fit(&fitted),
            Passes::Paths(PathPasses { scene, arrays, .. }) => {
                scene.fit(&self.scene, &fitted);
                *arrays = PathArrays::new(
                    &self.context,
                    &self.scene,
                    scene,
                    &self.arrays.plan,
                    &new,
                    self.pipelines.dialect.ray_queries,
                )?;
            }
        }
        self.follow_buffers();
        self.context
            .upload(&self.arrays.scene, 0, bytemuck::bytes_of(&self.scene));
        let sensors = self.sensors.len().max(1);
        self.arrays.tables = Tables::new(&self.context, &self.scene, sensors)?;
        self.rebuild_tables(true)
    }

    /// Gives parameters another number of entries. All arrays of values and moments come to the host and go back: it is
    /// done a few times in a run.
    pub(super) fn replace_arrays(&mut self, replaced: Vec<Replacement>) -> Result<()> {
        let count = self.params.parameters.len();
        let mut kept: Vec<Replacement> = Vec::with_capacity(count);
        for parameter in 0..count {
            let shape = self.params.parameters[parameter].shape;
            let tuned = self.params.parameters[parameter].tuning.is_some();
            let moments = if tuned { self.optimizer.moments() } else { 0 };
            kept.push(match replaced.iter().find(|r| r.parameter == parameter) {
                Some(found) => found.clone(),
                None => Replacement {
                    parameter,
                    shape,
                    values: self.read(parameter, ArrayKind::Values)?,
                    moments: (0..moments)
                        .map(|i| self.read(parameter, ArrayKind::Moment(i)))
                        .collect::<Result<_>>()?,
                },
            });
        }
        let shapes: Vec<_> = kept
            .iter()
            .map(|r| (r.shape, self.params.parameters[r.parameter].tuning.is_some()))
            .collect();
        let accumulation = self.pipelines.dialect.accumulation;
        let plan = Plan::new(&shapes, self.room());
        plan.check_fits(&self.names(), &shapes, &self.context.summary, accumulation)?;
        self.arrays.banks.clear();
        for bank in 0..plan.banks.len() {
            let bank = Bank::new(&self.context, &plan, bank, accumulation, self.optimizer)?;
            self.arrays.banks.push(bank);
        }
        self.follow_buffers();
        self.arrays.plan = plan;
        for of in kept {
            self.params.parameters[of.parameter].shape = of.shape;
            self.write(of.parameter, ArrayKind::Values, &of.values)?;
            for (i, moment) in of.moments.iter().enumerate() {
                self.write(of.parameter, ArrayKind::Moment(i), moment)?;
            }
        }
        if let Passes::Splats(passes) = &mut self.passes {
            let fitted: Vec<Shape> = shapes.iter().map(|(shape, _)| *shape).collect();
            passes.scene.fit(&fitted);
            passes.arrays = SplatArrays::new(&self.context, &passes.scene)?;
        }
        self.context.check()
    }

    /// The banks of a plan with the values and moments of the present ones, some at another resolution.
    fn resampled(
        &self,
        plan: &Plan,
        old: &[(Shape, bool)],
        new: &[(Shape, bool)],
        sizes: &[(usize, [usize; 3])],
        keep_moments: bool,
    ) -> Result<Vec<Bank>> {
        let accumulation = self.pipelines.dialect.accumulation;
        let bank = |bank| Bank::new(&self.context, plan, bank, accumulation, self.optimizer);
        let banks = (0..plan.banks.len()).map(bank).collect::<Result<Vec<_>>>()?;
        for (index, (from_place, to_place)) in self.arrays.plan.places.iter().zip(&plan.places).enumerate() {
            let resized = sizes.iter().any(|(i, _)| *i == index);
            let (source, target) = (&self.arrays.banks[from_place.bank], &banks[to_place.bank]);
            let moments = match new[index].1 && (keep_moments || !resized) {
                true => self.optimizer.moments(),
                false => 0,
            };
            let moments = source.moments.iter().zip(&target.moments).take(moments);
            for (from, to) in std::iter::once((&source.values, &target.values)).chain(moments) {
                if !resized {
                    let at = |first: usize| 4 * first as u64;
                    let (from_at, to_at) = (at(from_place.first), at(to_place.first));
                    self.context.copy(from, from_at, to, to_at, at(from_place.len));
                    continue;
                }
                let mut record = elements_of(new[index].0, to_place.first, to_place.len);
                record.source_size = size_of_shape(old[index].0);
                record.source_first = from_place.first as u32;
                self.resample_array(axes_of(self.params.parameters[index].kind), record, from, to)?;
            }
        }
        Ok(banks)
    }

    fn resample_array(&self, lie: [Axis; 3], record: Elements, from: &wgpu::Buffer, to: &wgpu::Buffer) -> Result<()> {
        let axes: Vec<[u32; 4]> = (0..3)
            .flat_map(|axis| resample_axis(lie[axis], record.source_size[axis] as usize, record.size[axis] as usize))
            .map(|(low, high, fraction)| [low as u32, high as u32, fraction.to_bits(), 0])
            .collect();
        let table = self.context.storage("axes", 16 * axes.len() as u64)?;
        self.context.upload(&table, 0, bytemuck::cast_slice(&axes));
        let buffers = [
            (Binding::Source, from),
            (Binding::Parameter, to),
            (Binding::Axes, &table),
        ];
        let pipeline = self.pipelines.get(Kernel::Resample);
        self.context
            .dispatch(pipeline, bytemuck::bytes_of(&record), &buffers, record.groups_x);
        Ok(())
    }

    /// Indices of the parameters that are stepped.
    fn tuned(&self) -> Vec<usize> {
        let parameters = self.params.parameters.iter().enumerate();
        parameters.filter(|(_, p)| p.tuning.is_some()).map(|(i, _)| i).collect()
    }

    fn elements(&self, index: usize, report_at: u32) -> Elements {
        let place = self.arrays.plan.places[index];
        Elements {
            report_at,
            ..elements_of(self.params.parameters[index].shape, place.first, place.len)
        }
    }

    fn over_entries(&self, kernel: Kernel, index: usize, record: Elements) {
        let bank = &self.arrays.banks[self.arrays.plan.places[index].bank];
        let buffers = [
            (Binding::Partials, &self.arrays.partials),
            (Binding::Parameter, &bank.values),
            (Binding::ParameterGradient, &bank.gradient),
            (Binding::FirstMoment, &bank.moments[0]),
            (Binding::SecondMoment, &bank.moments[1]),
            (Binding::Statistics, &self.arrays.statistics),
            (Binding::Sums, bank.target()),
        ];
        let pipeline = self.pipelines.get(kernel);
        self.context
            .dispatch(pipeline, bytemuck::bytes_of(&record), &buffers, record.groups_x);
    }

    /// The error that names an entry whose gradient is not finite.
    fn broken_entry(&self, index: usize, entry: u32) -> DeviceError {
        let parameter = &self.params.parameters[index];
        let Shape { size, channels } = parameter.shape;
        let (texel, channel) = (entry as usize / channels, entry as usize % channels);
        let texel = [texel % size[0], texel / size[0] % size[1], texel / (size[0] * size[1])];
        let path = parameter.path.clone();
        DeviceError::NotFinite { path, texel, channel }
    }
}

/// The record of a pass over all entries of an array.
fn elements_of(shape: Shape, first: usize, len: usize) -> Elements {
    let groups = (len as u32).div_ceil(ELEMENT_GROUP).clamp(1, GROUPS);
    Elements {
        size: size_of_shape(shape),
        first: first as u32,
        count: len as u32,
        groups_x: groups,
        threads: groups * ELEMENT_GROUP,
        ..Elements::zeroed()
    }
}

fn size_of_shape(shape: Shape) -> [u32; 4] {
    let [x, y, z] = shape.size.map(|n| n as u32);
    [x, y, z, shape.channels as u32]
}

/// Fills in the constants of a step.
fn describe_rule(record: &mut Elements, rule: &StepRule) {
    record.rate = rule.rate;
    record.second_correction = rule.second_correction;
    // Shaders may assume that floats are finite.
    [record.low, record.high] = rule.bounds.map(|b| b.clamp(f32::MIN, f32::MAX));
    match rule.optimizer {
        Optimizer::Adam {
            beta_1,
            beta_2,
            epsilon,
            mask_updates,
        } => {
            record.kind = optimizer::ADAM;
            (record.decay_1, record.decay_2, record.epsilon) = (beta_1, beta_2, epsilon);
            record.mask_updates = u32::from(mask_updates);
        }
        Optimizer::Sgd { momentum } => {
            record.kind = optimizer::SGD;
            record.decay_1 = momentum;
        }
        Optimizer::RmsProp { decay, epsilon } => {
            record.kind = optimizer::RMSPROP;
            (record.decay_1, record.epsilon) = (decay, epsilon);
        }
    }
}

/// The sum of workgroups' sums, in their order, and the first broken entry that any of them found.
fn reduce(reports: &[[f32; 4]]) -> (f64, Option<u32>) {
    let sum = reports.iter().map(|r| f64::from(r[0])).sum();
    let first = reports.iter().map(|r| (r[1] as u32) << 16 | r[2] as u32).min();
    (sum, first.filter(|first| *first != NONE_FOUND))
}
