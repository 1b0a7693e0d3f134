//! Worlds whose records and values lie in uniform buffers, in storage buffers, or in two of them.

use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::gpu::records::UNIFORM_VECTORS;
use prbopt::scene::Gradient;

use super::gpu;
use super::world_cases::{blended, build, case, coloured, envmap, furnished, lamps, nested, sky, world};
use super::worlds::{Outcome, compare, gradients, image, load, look, run};

/// Values that outgrow a uniform buffer, and fit into one again.
#[test]
fn values_that_grow_and_shrink_are_those_of_the_cpu() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let case = case("rgb extinction", world(coloured()), sky(), Gradient::FreeFlight);
    let look_at_all = |device: &mut dyn Device| {
        let batch = load(device, &case);
        let mut outcome = Outcome::new();
        for (name, size, fits) in [
            ("few", [8, 9, 10], true),
            ("many", [20, 18, 16], false),
            ("few again", [8, 9, 10], true),
        ] {
            device.resample(&[(0, size)], true).expect("resamples");
            let values: usize = device.params().parameters.iter().map(|p| p.shape.len()).sum();
            assert_eq!(values <= 4 * UNIFORM_VECTORS as usize, fits, "{name}: {values}");
            image(device, &batch, name, &mut outcome);
            gradients(device, &batch, &mut outcome);
            device.clear_gradients().expect("clears");
        }
        outcome
    };
    let (cpu, gpu) = (look_at_all(&mut Cpu::new()), look_at_all(&mut gpu));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

/// Has a software adapter read records and values from storage buffers, as all others do.
pub(super) fn storage_buffers() -> Options {
    Options {
        uniform_buffers: false,
        ..Options::default()
    }
}

/// Surfaces, their BSDFs and textures, lights and media in storage buffers; tests of waves and of what moves
/// have some, too.
#[test]
fn storage_buffers_give_what_the_cpu_gives() {
    let Some(mut gpu) = gpu(storage_buffers()) else { return };
    let mut world = furnished();
    world.lights = lamps();
    world.media = vec![blended()];
    let case = case(
        "floor, panel, ball and lamps in storage, drt",
        world,
        sky(),
        Gradient::Drt,
    );
    let (cpu, gpu) = (look(&mut Cpu::new(), &case), look(&mut gpu, &case));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn worlds_in_two_buffers_have_the_same_bits() {
    let case = case("lamps, nested media, drt", nested(), envmap(), Gradient::Drt);
    let largest = build(&case).1.parameters.iter().map(|p| p.shape.len()).max();
    let [whole, parts] = [None, largest].map(|bank| {
        let options = Options {
            deterministic: true,
            bank,
            ..Options::default()
        };
        gpu(options).map(|mut gpu| run(&mut gpu, &case))
    });
    assert!(whole == parts, "other bits");
}
