//! One device of several ranks, the processes of an MPI job: each prepares the same scene on a device of its own, then rank
//! 0 alone goes on with the program and sends every operation to the others, which carry it out as well. Only rank 0
//! decides, writes and reports; within an operation all ranks share the work by `cluster`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::gauge::Gauge;
use super::select::{self, DeviceChoice};
use super::{
    ArrayKind, Batch, Device, DeviceError, DeviceInfo, KernelTime, Keys, LossValue, Replacement, ReplayStats, Result,
    Step, Term, Work,
};
use crate::cluster::Cluster;
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::params::{ParamSet, Shape};
use crate::resident::layout::SensorRecord;
use crate::resident::{Resident, Transport};

/// A flag that is set when rank 0 goes on with the program alone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Baton(Arc<AtomicBool>);

impl Baton {
    /// From here on the other ranks follow rank 0.
    pub fn take(&self) {
        self.0.store(!Cluster::world().is_single(), Ordering::SeqCst);
    }
}

/// Opens the device asked for; with several ranks, one device that they share.
///
/// # Errors
/// There is no such device.
pub fn open(choice: &DeviceChoice) -> Result<(Box<dyn Device>, Baton)> {
    let (cluster, baton) = (Cluster::world(), Baton::default());
    let device = select::open(choice, cluster)?;
    if cluster.is_single() {
        return Ok((device, baton));
    }
    let shared = Shared {
        device,
        baton: baton.clone(),
    };
    Ok((Box::new(shared), baton))
}

/// An operation that all ranks carry out, with its arguments.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum Order {
    ReplaceSensor(u32, Vec<u8>),
    Render(Batch, Keys, u32),
    Develop(Batch, Keys, u32),
    RenderAov(Batch, Keys, u32, u32),
    Image,
    Loss(Batch, Keys, Loss),
    SetAdjoint(Batch, Keys, Vec<[f32; 3]>),
    Backpropagate(Batch, Keys, u32),
    RenderAndBackpropagate(Batch, Keys, u32),
    ValueAndGradient(Batch, Keys, Loss),
    Regularise(Vec<Term>),
    Step(Step),
    Rebuild,
    Resample(Vec<(usize, [usize; 3])>, bool),
    Replace(Vec<Replacement>),
    ClearGradients,
    Read(usize, ArrayKind),
    Write(usize, ArrayKind, Vec<f32>),
    End,
}

/// Carries out the operations that rank 0 sends, until it sends the end.
pub fn follow(device: &mut dyn Device) {
    let mut ended = false;
    while !ended {
        // Rank 0 gets the same error, reports it and decides how to go on, or ends the job.
        let _ = device.in_a_row(&mut |device| {
            let order = decode(&Cluster::world().broadcast(Vec::new()));
            ended = matches!(order, Order::End);
            obey(device, order)
        });
    }
}

#[cfg(feature = "mpi")]
fn encode(order: &Order) -> Vec<u8> {
    postcard::to_stdvec(order).expect("an order is plain data")
}

#[cfg(feature = "mpi")]
fn decode(bytes: &[u8]) -> Order {
    postcard::from_bytes(bytes).expect("rank 0 runs the same program")
}

#[cfg(not(feature = "mpi"))]
fn encode(_: &Order) -> Vec<u8> {
    unreachable!("a single rank has nobody to follow it")
}

#[cfg(not(feature = "mpi"))]
fn decode(_: &[u8]) -> Order {
    unreachable!("a single rank follows nobody")
}

fn obey(device: &mut dyn Device, order: Order) -> Result<()> {
    match order {
        Order::ReplaceSensor(sensor, record) => {
            device.replace_sensor(sensor, bytemuck::pod_read_unaligned(&record));
            Ok(())
        }
        Order::Render(batch, keys, spp) => device.render(&batch, keys, spp),
        Order::Develop(batch, keys, spp) => device.develop(&batch, keys, spp),
        Order::RenderAov(batch, keys, spp, aov) => device.render_aov(&batch, keys, spp, aov),
        Order::Image => device.image().map(drop),
        Order::Loss(batch, keys, loss) => device.loss(&batch, keys, loss).map(drop),
        Order::SetAdjoint(batch, keys, adjoint) => device.set_adjoint(&batch, keys, &adjoint),
        Order::Backpropagate(batch, keys, spp) => device.backpropagate(&batch, keys, spp).map(drop),
        Order::RenderAndBackpropagate(batch, keys, spp) => device.render_and_backpropagate(&batch, keys, spp).map(drop),
        Order::ValueAndGradient(batch, keys, loss) => device.value_and_gradient(&batch, keys, loss).map(drop),
        Order::Regularise(terms) => device.regularise(&terms).map(drop),
        Order::Step(step) => device.step(&step).map(drop),
        Order::Rebuild => device.rebuild(),
        Order::Resample(sizes, keep_moments) => device.resample(&sizes, keep_moments),
        Order::Replace(replaced) => device.replace(replaced),
        Order::ClearGradients => device.clear_gradients(),
        Order::Read(parameter, what) => device.read(parameter, what).map(drop),
        Order::Write(parameter, what, values) => device.write(parameter, what, &values),
        Order::End => Ok(()),
    }
}

/// A rank's device; at rank 0, once the baton is taken, every operation is sent to the other ranks first.
struct Shared {
    device: Box<dyn Device + Send>,
    baton: Baton,
}

impl Shared {
    fn send(&self, order: impl FnOnce() -> Order) {
        if self.baton.0.load(Ordering::SeqCst) && Cluster::world().leads() {
            Cluster::world().broadcast(encode(&order()));
        }
    }
}

/// Ends the job if this rank has lost its device: the others would wait for it.
fn whole<T>(result: Result<T>) -> Result<T> {
    if let Err(lost @ DeviceError::Lost(_)) = &result {
        Cluster::world().fail(&lost.to_string(), 2);
    }
    result
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.send(|| Order::End);
        if self.baton.0.load(Ordering::SeqCst) {
            Cluster::world().part();
        }
    }
}

impl Device for Shared {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn arithmetic(&self) -> String {
        self.device.arithmetic()
    }

    fn check_fits(&self, transport: &Transport, shapes: &[(Shape, bool)], optimizer: Optimizer) -> Result<()> {
        self.device.check_fits(transport, shapes, optimizer)
    }

    fn sum_bytes(&self, transport: &Transport, shapes: &[(Shape, bool)]) -> u64 {
        self.device.sum_bytes(transport, shapes)
    }

    fn pass_bytes(&self, transport: &Transport, shapes: &[(Shape, bool)]) -> u64 {
        self.device.pass_bytes(transport, shapes)
    }

    fn image_bytes(&self, resident: &Resident, batch: &Batch, loss: Loss) -> u64 {
        self.device.image_bytes(resident, batch, loss)
    }

    fn path_bytes(&self, resident: &Resident, shapes: &[(Shape, bool)], batch: &Batch, spp: [u32; 2]) -> u64 {
        self.device.path_bytes(resident, shapes, batch, spp)
    }

    fn time_kernels(&mut self) -> Result<()> {
        self.device.time_kernels()
    }

    fn kernel_times(&mut self) -> Result<Vec<KernelTime>> {
        self.device.kernel_times()
    }

    /// Not sent to the others: every rank loads the scene that it has read itself.
    fn load(&mut self, resident: Resident, params: ParamSet, optimizer: Optimizer) -> Result<()> {
        self.device.load(resident, params, optimizer)
    }

    fn sensors(&self) -> &[SensorRecord] {
        self.device.sensors()
    }

    fn replace_sensor(&mut self, sensor: u32, record: SensorRecord) {
        self.send(|| Order::ReplaceSensor(sensor, bytemuck::bytes_of(&record).to_vec()));
        self.device.replace_sensor(sensor, record);
    }

    fn is_pipelined(&self) -> bool {
        self.device.is_pipelined()
    }

    fn params(&self) -> &ParamSet {
        self.device.params()
    }

    fn gauge(&self) -> Gauge {
        self.device.gauge()
    }

    fn render(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        self.send(|| Order::Render(batch.clone(), keys, spp));
        whole(self.device.render(batch, keys, spp))
    }

    fn develop(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        self.send(|| Order::Develop(batch.clone(), keys, spp));
        whole(self.device.develop(batch, keys, spp))
    }

    fn render_aov(&mut self, batch: &Batch, keys: Keys, spp: u32, aov: u32) -> Result<()> {
        self.send(|| Order::RenderAov(batch.clone(), keys, spp, aov));
        whole(self.device.render_aov(batch, keys, spp, aov))
    }

    fn image(&mut self) -> Result<Vec<[f32; 4]>> {
        self.send(|| Order::Image);
        whole(self.device.image())
    }

    fn loss(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<LossValue> {
        self.send(|| Order::Loss(batch.clone(), keys, loss));
        whole(self.device.loss(batch, keys, loss))
    }

    fn set_adjoint(&mut self, batch: &Batch, keys: Keys, adjoint: &[[f32; 3]]) -> Result<()> {
        self.send(|| Order::SetAdjoint(batch.clone(), keys, adjoint.to_vec()));
        whole(self.device.set_adjoint(batch, keys, adjoint))
    }

    fn backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        self.send(|| Order::Backpropagate(batch.clone(), keys, spp));
        whole(self.device.backpropagate(batch, keys, spp))
    }

    fn render_and_backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        self.send(|| Order::RenderAndBackpropagate(batch.clone(), keys, spp));
        whole(self.device.render_and_backpropagate(batch, keys, spp))
    }

    fn is_fused(&self, loss: Loss) -> bool {
        self.device.is_fused(loss)
    }

    fn value_and_gradient(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<(LossValue, ReplayStats)> {
        self.send(|| Order::ValueAndGradient(batch.clone(), keys, loss));
        whole(self.device.value_and_gradient(batch, keys, loss))
    }

    fn regularise(&mut self, terms: &[Term]) -> Result<f64> {
        self.send(|| Order::Regularise(terms.to_vec()));
        whole(self.device.regularise(terms))
    }

    fn step(&mut self, step: &Step) -> Result<Vec<f64>> {
        self.send(|| Order::Step(*step));
        whole(self.device.step(step))
    }

    fn rebuild(&mut self) -> Result<()> {
        self.send(|| Order::Rebuild);
        whole(self.device.rebuild())
    }

    fn resample(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> Result<()> {
        self.send(|| Order::Resample(sizes.to_vec(), keep_moments));
        whole(self.device.resample(sizes, keep_moments))
    }

    fn replace(&mut self, replaced: Vec<Replacement>) -> Result<()> {
        self.send(|| Order::Replace(replaced.clone()));
        whole(self.device.replace(replaced))
    }

    fn clear_gradients(&mut self) -> Result<()> {
        self.send(|| Order::ClearGradients);
        whole(self.device.clear_gradients())
    }

    fn read(&mut self, parameter: usize, what: ArrayKind) -> Result<Vec<f32>> {
        self.send(|| Order::Read(parameter, what));
        whole(self.device.read(parameter, what))
    }

    fn write(&mut self, parameter: usize, what: ArrayKind, values: &[f32]) -> Result<()> {
        self.send(|| Order::Write(parameter, what, values.to_vec()));
        whole(self.device.write(parameter, what, values))
    }

    fn in_a_row(&mut self, work: &mut Work) -> Result<()> {
        // On a CPU the worker threads stay awake between the passes.
        match self.device.info().kind {
            "cpu" => rayon::scope(|_| work(self)),
            _ => work(self),
        }
    }

    fn memory(&self) -> u64 {
        self.device.memory()
    }
}
