//! Radiance fields whose images and gradients have a closed form, or are worked out by hand, beside those of the program.

mod small;

use glam::{Affine3A, Vec3};
use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::gradcheck::field::fields::{Fields, Plain, Scatter};
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::scene::{Background, ColorActivation, DensityActivation};
use prbopt::transport::field::march::backpropagate;
use prbopt::transport::number::Number;
use prbopt::transport::rays::camera::Ray;
use small::{Behind, Small, Values, draw};

/// Y_00, the constant that turns a coefficient of degree 0 into a raw colour.
const Y00: f32 = 0.282_094_79;

fn image(setup: &Setup) -> Vec<[f32; 4]> {
    let mut device = Cpu::new();
    device
        .load(
            setup.resident.clone(),
            setup.params.clone(),
            Optimizer::Sgd { momentum: 0.0 },
        )
        .expect("it fits");
    device.render(&setup.batch, setup.keys, setup.spp).expect("it renders");
    device.image().expect("it has an image")
}

fn fill(setup: &mut Setup, path: &str, values: &[f32]) {
    let slot = setup.params.find(path).expect("the scene has it");
    fill_slot(setup, slot, values);
}

fn fill_emitter(setup: &mut Setup, values: &[f32]) {
    let slot = setup.resident.emitter.expect("the scene has it");
    fill_slot(setup, slot, values);
}

fn fill_slot(setup: &mut Setup, slot: usize, values: &[f32]) {
    let parameter = &mut setup.params.parameters[slot];
    for (i, value) in parameter.values.iter_mut().enumerate() {
        *value = values[i % values.len()];
    }
}

/// With density s everywhere each of the n samples of a ray has α = 1 - exp(-s h), so that T = exp(-s n h) exactly, and
/// L = c (1 - T) + b T by the geometric series: both to 1e-6. n is within one of length / h.
#[test]
fn a_homogeneous_box_has_the_closed_form() {
    let (density, color, behind) = (0.8f32, [0.2f32, 0.5, 0.9], [0.7f32, 0.1, 0.3]);
    let mut setup = Small {
        image: [24, 24],
        step: 0.7,
        ..Small::default()
    }
    .setup(&Options::default());
    fill(&mut setup, "object.interior.sigma_t", &[density]);
    fill(&mut setup, "object.interior.sh_coeffs", &color.map(|c| c / Y00));
    fill_emitter(&mut setup, &behind);
    let objective = setup.objective();
    let view = objective.view();
    let h = f64::from(objective.scene.step_length);
    let mut met = 0;
    for cast in &objective.casts {
        let gathered = objective.gather::<f64, _>(&view, cast);
        let transmittance = (-f64::from(density) * f64::from(gathered.count) * h).exp();
        assert!(
            (gathered.transmittance - transmittance).abs() < 1e-6,
            "{} samples",
            gathered.count
        );
        for c in 0..3 {
            let expected = f64::from(color[c]) * (1.0 - transmittance) + f64::from(behind[c]) * transmittance;
            assert!(
                (gathered.radiance[c] - expected).abs() < 1e-6,
                "{} != {expected}",
                gathered.radiance[c]
            );
        }
        let steps = length_in_cube(&cast.ray) / h;
        assert!(
            (f64::from(gathered.count) - steps).abs() < 1.0 + 1e-3,
            "{} samples on {steps}",
            gathered.count
        );
        met += usize::from(gathered.count > 0);
    }
    assert!(met > 300, "only {met} rays meet the box");
}

/// The jitter makes n h an unbiased estimate of a ray's length: over 2^16 jitters of one ray its mean has a standard
/// deviation of at most h / 2 / 256, and 5 of them are allowed.
#[test]
fn jittered_steps_are_unbiased() {
    let mut setup = Small::default().setup(&Options::default());
    fill(&mut setup, "object.interior.sigma_t", &[1.0]);
    let objective = setup.objective();
    let (view, h) = (objective.view(), f64::from(objective.scene.step_length));
    let mut cast = objective.casts[objective.casts.len() / 3];
    let rays = 1 << 16;
    let mut sum = 0.0;
    for i in 0..rays {
        cast.jitter = draw(4, 0, i);
        sum += f64::from(objective.gather::<f64, _>(&view, &cast).count) * h;
    }
    let (mean, length) = (sum / f64::from(rays), length_in_cube(&cast.ray));
    assert!((mean - length).abs() < 5.0 * h / 2.0 / 256.0, "{mean} != {length}");
}

/// Length of a ray inside [-1, 1]³, by the slab test in f64.
fn length_in_cube(ray: &Ray) -> f64 {
    let (mut near, mut far) = (0f64, f64::INFINITY);
    for a in 0..3 {
        let (o, d) = (f64::from(ray.origin[a]), f64::from(ray.direction[a]));
        let (s, t) = ((-1.0 - o) / d, (1.0 - o) / d);
        near = near.max(s.min(t));
        far = far.min(s.max(t));
    }
    (far - near).max(0.0)
}

/// A furnace: where medium and background have the same colour, the image has it too, whatever the density:
/// Σ T_i α_i + T = 1. Hence no density has a gradient.
#[test]
fn a_furnace_shows_one_colour_and_no_gradient_of_density() {
    for (density, sigma) in [
        (DensityActivation::Relu, [-2.0, 30.0]),
        (DensityActivation::Softplus, [-2.0, 8.0]),
        (DensityActivation::Exp, [-4.0, 4.0]),
    ] {
        let small = Small {
            density,
            values: Values::Uniform { sigma, sh: [0.0, 0.0] },
            ..Small::default()
        };
        let mut setup = small.setup(&Options::default());
        let color = [0.25f32, 0.5, 0.75];
        fill(&mut setup, "object.interior.sh_coeffs", &color.map(|c| c / Y00));
        fill_emitter(&mut setup, &color);
        for pixel in image(&setup) {
            for c in 0..3 {
                assert!((pixel[c] - color[c]).abs() < 2e-6, "{density:?}: {pixel:?}");
            }
        }
        let gradient = setup.objective().adjoint(0).gradient;
        let largest = |g: &[f64]| g.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(largest(&gradient.sigma) < 1e-7 * largest(&gradient.sh), "{density:?}");
    }
}

/// Four texels along x, seen along x, one sample in each at its centre (h = 1/2, u = 1/2). With σ h = ln 2, 2 ln 2,
/// ln 2 and 0, α is 1/2, 3/4, 1/2 and 0, T is 1, 1/2, 1/8 and 1/16, and 1/16 behind. The weights T α are 1/2, 3/8,
/// 1/16 and 0. With colours 0.2, 0.6, 1, 0.9 and 0.4 behind,
///
/// L = 0.1 + 0.225 + 0.0625 + 0 + 0.025 = 0.4125, and what is still to come after each sample is R = 0.3125, 0.0875,
/// 0.025, 0.025. dL/dσ = h (T' c - R) with T' = 1/2, 1/8, 1/16, 1/16:
/// h times 0.1 - 0.3125, 0.075 - 0.0875, 0.0625 - 0.025, 0.05625 - 0.025.
#[test]
fn four_samples_by_hand() {
    let sizes = [4, 1, 1];
    let small = Small {
        sigma_size: sizes,
        sh_size: sizes,
        ..Small::default()
    };
    let mut setup = small.setup(&Options::default());
    let ln2 = std::f32::consts::LN_2;
    let h = 0.5f32;
    fill(
        &mut setup,
        "object.interior.sigma_t",
        &[ln2 / h, 2.0 * ln2 / h, ln2 / h, 0.0],
    );
    let colors = [0.2f32, 0.6, 1.0, 0.9];
    fill_emitter(&mut setup, &[0.4]);
    // Red is the channel of the derivation. Colours are raw + 1/2, so that rounding cannot clip the 1.0.
    setup.resident.scene.color_activation = prbopt::resident::layout::color::RELU_HALF;
    let sh: Vec<f32> = colors.iter().flat_map(|c| [(c - 0.5) / Y00, 0.0, -0.5 / Y00]).collect();
    fill(&mut setup, "object.interior.sh_coeffs", &sh);
    let ray = Ray {
        origin: [-3.0, 0.0, 0.0],
        direction: [1.0, 0.0, 0.0],
        near: 0.0,
        far: 100.0,
        sensor: 0,
    };
    let scene = &setup.resident.scene;
    assert_eq!(scene.step_length, h);

    let fields = Fields::new(&setup.resident, &setup.params, f64::lift);
    let mut gradient = fields.zeros();
    let view = Plain { scene, fields: &fields };
    let mut sink = Scatter {
        scene,
        gradient: &mut gradient,
    };
    let (gathered, _) = backpropagate(scene, &view, &ray, 0.5, None, [1.0, 0.0, 0.0], &mut sink);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} != {b}");
    assert_eq!(gathered.count, 4);
    near(gathered.radiance[0], 0.4125);
    near(gathered.transmittance, 1.0 / 16.0);
    for (i, expected) in [-0.2125, -0.0125, 0.0375, 0.03125].into_iter().enumerate() {
        near(gradient.sigma[i], f64::from(h) * expected);
    }
    for (i, weight) in [0.5, 0.375, 0.0625, 0.0].into_iter().enumerate() {
        near(gradient.sh[3 * i], weight * f64::from(Y00));
        assert_eq!(gradient.sh[3 * i + 1], 0.0, "green carries no loss");
    }
    assert_eq!(gradient.emitter, [gathered.transmittance, 0.0, 0.0]);
}

/// Without a medium every pixel shows the map where its ray points, here a map whose texels are a linear function of
/// their row, so that the bilinear lookup is one too: v = acos(y) / π times (rows - 1).
#[test]
fn an_envmap_alone_is_seen_along_the_rays() {
    let (width, height, scale) = (8, 7, 1.5f32);
    let small = Small {
        behind: Behind::Envmap {
            size: [width, height],
            scale,
        },
        cameras: vec![Vec3::new(0.0, 0.0, 0.0), Vec3::new(2.0, 1.0, 0.0)],
        ..Small::default()
    };
    let options = Options::default();
    let mut scene = small.scene();
    scene.field = None;
    if let Background::Envmap { to_world, .. } = &mut scene.background {
        *to_world = Affine3A::IDENTITY;
    }
    let mut setup = Setup::new(&scene, &options).expect("the scene is sound");
    let rows: Vec<f32> = (0..height)
        .flat_map(|row| vec![0.1 + 0.1 * row as f32; 3 * width])
        .collect();
    fill_emitter(&mut setup, &rows);
    let pixels = image(&setup);
    for cast in &setup.objective().casts {
        let v = f64::from(cast.ray.direction[1]).acos() / std::f64::consts::PI;
        let expected = f64::from(scale) * (0.1 + 0.1 * v * (height as f64 - 1.0));
        let [r, g, b, transmittance] = pixels[cast.place as usize];
        for x in [r, g, b] {
            assert!((f64::from(x) - expected).abs() < 1e-5, "{x} != {expected}");
        }
        assert_eq!(transmittance, 1.0);
    }
}

/// A medium of density zero leaves every pixel exactly its background, constant or black, with a transmittance of 1.
#[test]
fn empty_media_are_transparent() {
    for behind in [Behind::Nothing, Behind::Constant] {
        let values = Values::Uniform {
            sigma: [-2.0, 0.0],
            sh: [0.0, 5.0],
        };
        let small = Small {
            behind,
            values,
            color: ColorActivation::Sigmoid,
            ..Small::default()
        };
        let setup = small.setup(&Options::default());
        let expected = match setup.resident.emitter {
            None => [0.0; 3],
            Some(i) => [0, 1, 2].map(|c| setup.params.parameters[i].values[c]),
        };
        for [r, g, b, transmittance] in image(&setup) {
            assert_eq!(([r, g, b], transmittance), (expected, 1.0));
        }
    }
}
