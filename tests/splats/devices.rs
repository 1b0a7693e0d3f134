//! Both devices have the same pictures of splats, the same gradients, and the same values after steps.

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options as GpuOptions;
use prbopt::device::{ArrayKind, Device, Replacement};
use prbopt::params::Shape;
use prbopt::transport::splats::blend::MIN_WEIGHT;

use super::gpu::gpu;
use super::{drive, keys, load, scene};

#[test]
fn both_devices_draw_and_undo_alike() {
    let scene = scene(500, [70, 41], "");
    let (image, gradients, values) = drive(&mut Cpu::new(), &scene);
    for options in [
        GpuOptions::default(),
        GpuOptions {
            subgroups: false,
            ..GpuOptions::default()
        },
        GpuOptions {
            float_atomics: false,
            ..GpuOptions::default()
        },
        GpuOptions {
            deterministic: true,
            ..GpuOptions::default()
        },
        GpuOptions {
            deterministic: true,
            wide_atomics: false,
            ..GpuOptions::default()
        },
    ] {
        let Some(mut device) = gpu(options) else { return };
        let (on_gpu, theirs, stepped) = drive(&mut device, &scene);
        for (i, (a, b)) in image.iter().zip(&on_gpu).enumerate() {
            for c in 0..4 {
                assert!(
                    (a[c] - b[c]).abs() < 2.0 * MIN_WEIGHT,
                    "pixel {i}: {a:?}, on the GPU {b:?}"
                );
            }
        }
        let apart = |a: &[f32], b: &[f32]| {
            let largest = a.iter().fold(0.0, |m: f32, v| m.max(v.abs()));
            let norm = |v: f32| f64::from(v / largest).powi(2);
            let squares: f64 = a.iter().zip(b).map(|(a, b)| norm(a - b)).sum();
            (squares / a.iter().map(|v| norm(*v)).sum::<f64>()).sqrt()
        };
        for (parameter, (a, b)) in gradients.iter().zip(&theirs).enumerate() {
            // A weight at the edge of its splat may be left out on one device alone.
            assert!(
                apart(a, b) < 5e-3,
                "{options:?}, gradient {parameter}: {} apart",
                apart(a, b)
            );
        }
        for (parameter, (a, b)) in values.iter().zip(&stepped).enumerate() {
            assert!(
                apart(a, b) < 5e-3,
                "{options:?}, values {parameter}: {} apart",
                apart(a, b)
            );
        }
        if options.deterministic {
            let again = drive(&mut gpu(options).expect("there was one"), &scene);
            assert_eq!((again.0, again.1, again.2), (on_gpu, theirs, stepped), "the same bits");
        }
    }
}

#[test]
fn a_changed_number_of_splats_is_drawn_on_both_devices() {
    let scene = scene(40, [32, 32], "");
    let changed = |device: &mut dyn Device| {
        let batch = load(device, &scene);
        device.render(&batch, keys(), 1).expect("renders");
        let replaced = (0..5).map(|parameter| {
            let channels = [2, 2, 1, 3, 1][parameter];
            let values = device.read(parameter, ArrayKind::Values).expect("readable");
            // Half of them, in the opposite order, three times.
            let of = |i: usize| values[channels * (19 - i % 20)..channels * (20 - i % 20)].to_vec();
            let values: Vec<f32> = (0..60).flat_map(of).collect();
            Replacement {
                parameter,
                shape: Shape {
                    size: [60, 1, 1],
                    channels,
                },
                moments: vec![values.iter().map(|v| v * v).collect(); 2],
                values,
            }
        });
        let replaced: Vec<Replacement> = replaced.collect();
        device.replace(replaced).expect("fits");
        device.render(&batch, keys(), 1).expect("renders");
        let image = device.image().expect("an image");
        let moment = device.read(0, ArrayKind::Moment(1)).expect("readable");
        (
            image,
            device.read(0, ArrayKind::Values).expect("readable"),
            moment,
            device.params().parameters[4].shape,
        )
    };
    let on_cpu = changed(&mut Cpu::new());
    assert_eq!((on_cpu.1.len(), on_cpu.3.size), (120, [60, 1, 1]));
    assert_eq!(on_cpu.2[7], on_cpu.1[7] * on_cpu.1[7], "moments follow");
    let Some(mut device) = gpu(GpuOptions::default()) else {
        return;
    };
    let on_gpu = changed(&mut device);
    assert_eq!((&on_cpu.1, &on_cpu.2, on_cpu.3), (&on_gpu.1, &on_gpu.2, on_gpu.3));
    for (a, b) in on_cpu.0.iter().flatten().zip(on_gpu.0.iter().flatten()) {
        assert!((a - b).abs() < 2.0 * MIN_WEIGHT, "{a}, on the GPU {b}");
    }
}
