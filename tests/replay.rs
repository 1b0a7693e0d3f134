//! Replays: the radiance left at their end is zero within its bound, and the same seed gives the same bits, whatever the number
//! of threads.

mod small;

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Device, Keys, ReplayStats, Step, Term};
use prbopt::gradcheck::field::fields::{Fields, Plain};
use prbopt::gradcheck::field::objective::CastRay;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::kernels::regularizer::Penalty;
use prbopt::params::Tuning;
use prbopt::resident::layout::SceneRecord;
use prbopt::transport::field::march::backpropagate;
use prbopt::transport::field::radiance_field::NoSamples;
use prbopt::transport::number::Number;
use prbopt::transport::paths::replay_cache::CACHED;
use prbopt::transport::rays::random::{Pass, pass_key};
use prbopt::transport::scene::records::NoSink;
use small::worlds::{SmallWorld, cube, grid, image, worlds};
use small::{Small, table};

fn setup(small: &Small) -> Setup {
    small.setup(&Options {
        seed: 9,
        ..Options::default()
    })
}

/// What a replay leaves over, as a multiple of its bound 8 (n + 1) eps · (sum of the contributions' sizes). No
/// contribution is negative here, so that their sum is the radiance itself.
fn left_over<N: Number>(scene: &SceneRecord, fields: &Fields<N>, cast: &CastRay, eps: f64) -> f64 {
    let view = Plain { scene, fields };
    let one = [N::lift(1.0); 3];
    let (gathered, replayed) = backpropagate(scene, &view, &cast.ray, cast.jitter, cast.backdrop, one, &mut NoSamples);
    assert_eq!(gathered.count, replayed.count, "the replay takes the same steps");
    let bound = |c: usize| 8.0 * f64::from(replayed.count + 1) * eps * gathered.radiance[c].value();
    let ratio = |c: usize| match replayed.left[c].value().abs() {
        0.0 => 0.0,
        left => left / bound(c),
    };
    (0..3).map(ratio).fold(0.0, f64::max)
}

#[test]
fn replays_end_with_nothing_left() {
    for small in table() {
        let setup = setup(&small);
        let objective = setup.objective();
        let scene = &objective.scene;
        let narrow = Fields::new(&setup.resident, &setup.params, |v| v);
        for cast in &objective.casts {
            let narrow = left_over(scene, &narrow, cast, f32::EPSILON.into());
            let wide = left_over(scene, &objective.fields, cast, f64::EPSILON);
            assert!(
                narrow <= 1.0 && wide <= 1.0,
                "{}: {narrow} in f32, {wide} in f64",
                small.name
            );
        }
    }
}

/// The CPU device's counts of the replays of a setup.
fn replay_on_device(setup: &Setup) -> ReplayStats {
    let mut device = Cpu::new();
    let optimizer = Optimizer::Sgd { momentum: 0.0 };
    device
        .load(setup.resident.clone(), setup.params.clone(), optimizer)
        .expect("it fits");
    device.render(&setup.batch, setup.keys, setup.spp).expect("it renders");
    device
        .loss(&setup.batch, setup.keys, Loss::Linear { seed: 0 })
        .expect("it compares");
    device
        .backpropagate(&setup.batch, setup.keys, setup.spp)
        .expect("it replays")
}

/// The device counts rays that leave more than the bound: none does, and every ray is replayed.
#[test]
fn the_cpu_device_counts_no_drift() {
    for small in table() {
        let setup = setup(&small);
        let stats = replay_on_device(&setup);
        assert_eq!(stats.drifted, 0, "{}", small.name);
        assert_eq!(stats.rays, setup.objective().casts.len() as u64, "{}", small.name);
    }
}

/// Paths through media: nothing is left of the radiance, nor of contributions that a zero factor keeps back, and the device, in
/// f32, counts no path above its bound.
#[test]
fn replays_of_worlds_end_with_nothing_left() {
    for small in worlds() {
        for gradient in ["free_flight", "drt", "paired"] {
            let setup = small.setup(gradient, &Options::default());
            let objective = PathObjective::new(&setup, setup.resident.transport.paths().settings.gradient);
            for cast in &objective.casts {
                let mut nothing = NoSink;
                let (first, replay) = objective.replay([1.0; 3], cast, &mut nothing);
                assert_eq!(
                    first.gathered.count, replay.gathered.count,
                    "{}: the replay takes the same steps",
                    small.name
                );
                let bound = 8.0 * f64::from(replay.gathered.count + 1) * f64::EPSILON;
                for c in 0..3 {
                    assert!(
                        replay.gathered.radiance[c].abs() <= bound * first.gathered.radiance[c],
                        "{}",
                        small.name
                    );
                    assert!(
                        replay.gathered.radiance_but_zero[c].abs() <= bound * first.gathered.radiance_but_zero[c],
                        "{}",
                        small.name
                    );
                }
            }
            let stats = replay_on_device(&setup);
            assert_eq!(
                (stats.drifted, stats.rays),
                (0, objective.casts.len() as u64),
                "{}",
                small.name
            );
        }
    }
}

/// A cloud and a closed room, in which paths are long.
fn long_worlds() -> [SmallWorld; 2] {
    let sigma = grid([3, 3, 3], 1, "");
    let albedo = grid([3, 3, 3], 3, "");
    let medium = cube(&format!(r#""sigma_t": {sigma}, "albedo": {albedo}, "scale": 40"#));
    let painted = image([6, 5], "");
    [
        SmallWorld {
            name: "long paths in a cloud",
            integrator: r#", "rr_depth": 1000"#,
            objects: format!(
                r#"{medium}, "sky": {{"type": "constant"}}, "lamp": {{"type": "point", "position": [1, 2, 1]}}"#
            ),
            set: vec![("albedo.data", vec![0.99])],
            ..SmallWorld::default()
        },
        SmallWorld {
            name: "long paths in a room",
            integrator: r#", "rr_depth": 1000, "max_depth": 100"#,
            objects: format!(
                r#""room": {{"type": "cube", "to_world": [{{"scale": 8}}],
                    "bsdf": {{"type": "twosided", "nested": {{"type": "diffuse", "reflectance": {painted}}}}}}},
                   "ball": {{"type": "sphere", "radius": 2, "bsdf": {{"type": "roughconductor", "alpha": 0.3}}}},
                   "lamp": {{"type": "point", "position": [3, 2, 3]}}"#
            ),
            set: vec![("reflectance.data", vec![0.9]), ("reflectance", vec![0.9])],
            ..SmallWorld::default()
        },
    ]
}

/// Paths with more flights, connections and vertices than the first walk notes: the replay finds the rest again, at the right
/// places.
#[test]
fn long_paths_are_replayed_beyond_their_notes() {
    for small in long_worlds() {
        for gradient in ["drt", "paired"] {
            let setup = small.setup(gradient, &Options::default());
            let objective = PathObjective::new(&setup, setup.resident.transport.paths().settings.gradient);
            let depth = |cast| objective.replay([1.0; 3], cast, &mut NoSink).0.depth as usize;
            let long = objective
                .casts
                .iter()
                .map(depth)
                .filter(|depth| *depth > 2 * CACHED)
                .count();
            assert!(long > 0, "{}: no path is long", small.name);
            let stats = replay_on_device(&setup);
            assert_eq!(
                (stats.drifted, stats.rays),
                (0, objective.casts.len() as u64),
                "{}, {gradient}",
                small.name
            );
        }
    }
}

#[test]
fn gradients_of_worlds_have_the_same_bits_on_any_number_of_threads() {
    let small = worlds().into_iter().find(|w| w.name.starts_with("point light"));
    let setup = small.expect("it is in the table").setup("paired", &Options::default());
    let one = bits_of_a_run(&setup, 1);
    for threads in [1, 2, 5] {
        assert!(one == bits_of_a_run(&setup, threads), "{threads} threads");
    }
    let mut changed = setup.clone();
    changed.params.parameters[0].values[13] *= 1.000_001;
    assert!(one != bits_of_a_run(&changed, 1));
}

/// The bound can be exceeded: subtracting what was added with other densities leaves more.
#[test]
fn a_replay_of_another_scene_leaves_something() {
    let setup = setup(&Small::default());
    let objective = setup.objective();
    let mut changed = objective.fields.clone();
    changed.sigma.iter_mut().for_each(|s| *s *= 1.001);
    let mut worst: f64 = 0.0;
    for cast in &objective.casts {
        let (scene, one) = (&objective.scene, [1.0; 3]);
        let go = |fields| {
            let view = Plain { scene, fields };
            backpropagate(scene, &view, &cast.ray, cast.jitter, cast.backdrop, one, &mut NoSamples).0
        };
        let (right, wrong) = (go(&objective.fields), go(&changed));
        let bound = 8.0 * f64::from(right.count + 1) * f64::EPSILON * right.radiance[0];
        worst = worst.max((right.radiance[0] - wrong.radiance[0]).abs() / bound);
    }
    assert!(worst > 1e3, "the bound would not have seen it: {worst}");
}

/// Values and gradients after five iterations of every pass there is, as bits.
fn bits_of_a_run(setup: &Setup, threads: usize) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads can be had");
    pool.install(|| {
        let mut setup = setup.clone();
        setup.resident.set_constant_reference([0.5, 0.4, 0.3]);
        for parameter in &mut setup.params.parameters {
            parameter.tuning = Some(Tuning {
                learning_rate: 0.05,
                bounds: [-10.0, 10.0],
                smoothing: 0.0,
            });
        }
        let optimizer = Optimizer::Adam {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            mask_updates: false,
        };
        let mut device = Cpu::new();
        device
            .load(setup.resident.clone(), setup.params.clone(), optimizer)
            .expect("it fits");
        let mut bits = Vec::new();
        for iteration in 0..5 {
            let keys = |pass| Keys {
                objective: pass_key(3, iteration, Pass::Objective),
                pass: pass_key(3, iteration, pass),
            };
            device.render(&setup.batch, keys(Pass::Primal), 2).expect("it renders");
            let loss = device
                .loss(&setup.batch, keys(Pass::Primal), Loss::L2)
                .expect("it compares");
            device
                .backpropagate(&setup.batch, keys(Pass::Adjoint), 2)
                .expect("it replays");
            let term = Term {
                parameter: 0,
                penalty: Penalty::TotalVariation,
                weight: 1e-3,
            };
            device.regularise(&[term]).expect("it regularises");
            bits.extend([loss.loss, loss.mse].map(|x| x.to_bits() as u32));
            for parameter in 0..setup.params.parameters.len() {
                bits.extend(
                    device
                        .read(parameter, ArrayKind::Gradient)
                        .expect("it reads")
                        .iter()
                        .map(|x| x.to_bits()),
                );
            }
            device
                .step(&Step {
                    optimizer,
                    rate: 1.0,
                    count: iteration + 1,
                })
                .expect("it steps");
            device.rebuild().expect("it rebuilds");
        }
        for parameter in 0..setup.params.parameters.len() {
            bits.extend(
                device
                    .read(parameter, ArrayKind::Values)
                    .expect("it reads")
                    .iter()
                    .map(|x| x.to_bits()),
            );
        }
        bits
    })
}

#[test]
fn reruns_and_other_numbers_of_threads_give_the_same_bits() {
    for small in [
        // Several tiles of pixels and bricks of texels, so that there is work to share.
        Small {
            image: [70, 50],
            sigma_size: [20, 17, 33],
            sh_size: [20, 17, 33],
            degree: 1,
            ..Small::default()
        },
        Small {
            image: [70, 50],
            sigma_size: [9, 8, 12],
            sh_size: [18, 8, 5],
            ..table()[1].clone()
        },
    ] {
        let setup = setup(&small);
        let one = bits_of_a_run(&setup, 1);
        for threads in [1, 2, 3, 7] {
            assert!(
                one == bits_of_a_run(&setup, threads),
                "{}: {threads} threads",
                small.name
            );
        }
    }
}

/// A value that differs in its last bit gives other bits: the comparison above can fail.
#[test]
fn another_value_gives_other_bits() {
    let mut setup = setup(&Small::default());
    let one = bits_of_a_run(&setup, 1);
    let value = &mut setup.params.parameters[0].values[62];
    *value = f32::from_bits(value.to_bits() + 1);
    assert!(one != bits_of_a_run(&setup, 1));
}
