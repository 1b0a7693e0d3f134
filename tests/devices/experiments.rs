//! The slab, the globe, the figurine and the ring beside a plant of `scenes/`, small: ten iterations by path replay on both
//! devices.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::{ArrayKind, Batch, Device};
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;

use super::gpu;
use super::iterations::{ADAM, iterate};
use super::worlds::{Outcome, compare};

const SPP: u32 = 2;

/// A scene with changes, the parameters that it optimises, and the colour of its first view's reference.
struct Experiment {
    file: &'static str,
    changes: &'static [&'static str],
    parameters: &'static [&'static str],
    reference: [f32; 3],
}

const SLAB: Experiment = Experiment {
    file: "slab.json",
    changes: &[
        "slab.interior.albedo.resolution=[8,8,4]",
        "slab.interior.sigma_t=12",
        "above.film.width=12",
        "above.film.height=12",
    ],
    parameters: &["slab.interior.albedo"],
    reference: [0.6, 0.4, 0.2],
};

const GLOBE: Experiment = Experiment {
    file: "globe.json",
    changes: &[
        "integrator.max_depth=8",
        "globe.bsdf.reflectance.data.resolution=[8,4]",
        "camera.film.width=8",
        "camera.film.height=5",
    ],
    parameters: &["globe.bsdf.reflectance"],
    reference: [0.2, 0.4, 0.6],
};

const FIGURINE: Experiment = Experiment {
    file: "figurine.json",
    changes: &["integrator.max_depth=16", "front.film.width=6", "front.film.height=8"],
    parameters: &["figurine.interior.albedo"],
    reference: [0.6, 0.4, 0.2],
};

/// Materials and a medium at once.
const JOINT: Experiment = Experiment {
    file: "joint.json",
    changes: &[
        "integrator.max_depth=4",
        "ring.bsdf.normalmap.data.resolution=[8,8]",
        "ring.bsdf.metal.alpha.data.resolution=[8,8]",
        "fern.interior.sigma_t.resolution=[8,4,8]",
        "fern.interior.albedo.resolution=[8,4,8]",
        r#"optimize.parameters={
            "ring.bsdf.normalmap": {"learning_rate": 0.01}, "ring.bsdf.metal.alpha": {"learning_rate": 0.01},
            "fern.interior.sigma_t": {"learning_rate": 0.02}, "fern.interior.albedo": {"learning_rate": 0.02}}"#,
        "left.film.width=10",
        "left.film.height=8",
    ],
    parameters: &[
        "ring.bsdf.normalmap",
        "ring.bsdf.metal.alpha",
        "fern.interior.sigma_t",
        "fern.interior.albedo",
    ],
    reference: [0.6, 0.4, 0.2],
};

impl Experiment {
    /// Values of the parameters at the beginning and after the last iteration.
    fn run(&self, device: &mut dyn Device) -> [Outcome; 2] {
        let changes: Vec<_> = self.changes.iter().map(|c| c.parse().expect("a change")).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(self.file);
        let scene = scene::load_with(&path, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (mut resident, params) = Resident::new(&scene).expect("a small scene");
        resident.set_constant_reference(self.reference);
        let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
        let batch = Batch { table, drawn: None };
        let slots = self.parameters.iter().map(|name| {
            let slot = params.find(name).expect("it is a parameter");
            assert!(params.parameters[slot].tuning.is_some_and(|t| t.learning_rate > 0.0));
            (slot, (*name).to_owned())
        });
        let slots: Vec<_> = slots.collect();
        device.load(resident, params, ADAM).expect("it fits");
        let read = |device: &mut dyn Device| {
            let values = slots.iter().map(|(slot, name)| {
                let values = device.read(*slot, ArrayKind::Values).expect("values");
                (name.clone(), values)
            });
            values.collect()
        };
        let start = read(device);
        iterate(device, &batch, SPP, 1.0);
        [start, read(device)]
    }

    /// Values after ten iterations are the same on both devices, and not those at the beginning.
    fn is_the_same_on_both_devices(&self) {
        let Some(mut gpu) = gpu(Options::default()) else { return };
        let ([start, cpu], [_, gpu]) = (self.run(&mut Cpu::new()), self.run(&mut gpu));
        compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{}: {e}", self.file));
        compare(&start, &gpu).expect_err("ten iterations lead away from where they begin");
    }
}

#[test]
fn devices_agree_on_the_slab() {
    SLAB.is_the_same_on_both_devices();
}

#[test]
fn devices_agree_on_the_globe() {
    GLOBE.is_the_same_on_both_devices();
}

#[test]
fn devices_agree_on_the_figurine() {
    FIGURINE.is_the_same_on_both_devices();
}

#[test]
fn devices_agree_on_the_ring_and_the_plant() {
    JOINT.is_the_same_on_both_devices();
}
