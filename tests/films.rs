//! Pictures that are looked at: samples that count in all pixels that the film's filter reaches, beside samples that are
//! drawn from each pixel's own filter.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::{Batch, Device};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Pass, pass_key};

const SIZE: [usize; 2] = [21, 18];
const FILTERS: [&str; 6] = [
    r#"{"type": "tent"}"#,
    r#"{"type": "tent", "radius": 2.2}"#,
    r#"{"type": "gaussian"}"#,
    r#"{"type": "mitchell"}"#,
    r#"{"type": "catmullrom"}"#,
    r#"{"type": "lanczos"}"#,
];

/// A ball and a lamp under a sky of this radiance, seen by a device through a filter.
fn device(filter: &str, border: bool, sky: f32) -> Cpu {
    let [width, height] = SIZE;
    let text = format!(
        r#"{{"integrator": {{"type": "path", "max_depth": 3}}, "sky": {{"type": "constant", "radiance": {sky}}},
            "ball": {{"type": "sphere", "bsdf": {{"type": "diffuse", "reflectance": 0.4}}}},
            "lamp": {{"type": "point", "position": [2, 3, 4], "intensity": 30}},
            "camera": {{"type": "perspective", "fov": 40, "to_world": [{{"look_at": {{"origin": [0, 0.5, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": {width}, "height": {height}, "sample_border": {border}, "rfilter": {filter}}}}}}}"#
    );
    let scene = scene::parse(&text, Path::new("film.json")).unwrap_or_else(|e| panic!("{e}"));
    let (resident, params) = Resident::new(&scene).expect("it is sound");
    let mut device = Cpu::new();
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    device
}

fn look(seed: u64, spp: u32) -> RenderSettings {
    RenderSettings {
        seed,
        iteration: 0,
        spp,
    }
}

/// What passes of an optimisation render: each pixel by its own samples.
fn drawn(device: &mut Cpu, seed: u64, spp: u32) -> Vec<[f32; 4]> {
    let table = PixelTable::new(device.sensors(), &[0]).expect("few pixels");
    let batch = Batch { table, drawn: None };
    let key = |pass| pass_key(seed, 0, pass);
    let keys = prbopt::device::Keys {
        objective: key(Pass::Objective),
        pass: key(Pass::Primal),
    };
    device.render(&batch, keys, spp).expect("it renders");
    device.image().expect("an image")
}

/// All pixels of a uniform sky have its radiance, to 1e-5, also at the border and by a filter with negative lobes.
#[test]
fn a_uniform_sky_stays_uniform() {
    for filter in FILTERS {
        for border in [false, true] {
            let mut device = device(filter, border, 0.7);
            // Nothing but sky is near the upper corners.
            let picture = render_view(&mut device, 0, look(1, 2)).expect("it renders");
            for pixel in [&picture[0], &picture[SIZE[0] - 1]] {
                assert!(
                    pixel[..3].iter().all(|x| (x - 0.7).abs() < 1e-5) && (pixel[3] - 1.0).abs() < 1e-5,
                    "{filter} {border}: {pixel:?}"
                );
            }
            assert!(
                picture.iter().all(|pixel| pixel[3] >= 0.0),
                "{filter}: a pixel looks like a mask"
            );
        }
    }
}

/// For each entry of a picture, the mean over these pictures and its squared standard error.
fn moments(pictures: &[Vec<[f32; 4]>]) -> (Vec<f64>, Vec<f64>) {
    let n = pictures.len() as f64;
    let entries = 0..pictures[0].len() * 3;
    let of = |i: usize| pictures.iter().map(move |p| f64::from(p[i / 3][i % 3]));
    let means: Vec<f64> = entries.clone().map(|i| of(i).sum::<f64>() / n).collect();
    let squares = entries.map(|i| of(i).map(|x| (x - means[i]).powi(2)).sum::<f64>() / (n - 1.0) / n);
    let squares = squares.collect();
    (means, squares)
}

/// Both ways have the same means; that of all pixels' samples together has less variance. Differences below 2e-3 do not count:
/// tails of a filter that no sample is drawn from show no variance. The largest of 1134 deviations of the means exceeds 6.5
/// standard errors by chance in one of 10 000 runs; a picture that is moved by a pixel is seen.
#[test]
fn spread_samples_have_the_mean_of_drawn_ones_and_less_variance() {
    for filter in FILTERS {
        for border in [false, true] {
            let mut device = device(filter, border, 0.2);
            let spread: Vec<_> = (0..24)
                .map(|seed| render_view(&mut device, 0, look(seed, 64)).expect("it renders"))
                .collect();
            let drawn: Vec<_> = (0..24).map(|seed| drawn(&mut device, seed, 64)).collect();
            let ((ours, our_squares), (theirs, their_squares)) = (moments(&spread), moments(&drawn));
            let largest = |step: usize| {
                let pairs = (0..ours.len() - step).map(|i| {
                    let square = our_squares[i + step] + their_squares[i];
                    let difference = (ours[i + step] - theirs[i]).abs();
                    if difference < 2e-3 {
                        0.0
                    } else {
                        difference / square.sqrt()
                    }
                });
                pairs.fold(0.0, f64::max)
            };
            assert!(largest(0) < 6.5, "{filter} {border}: {}", largest(0));
            assert!(
                largest(3) > 6.5,
                "{filter} {border}: a step to the side would not be seen"
            );
            let ratio = our_squares.iter().sum::<f64>() / their_squares.iter().sum::<f64>();
            assert!(ratio < 0.75, "{filter} {border}: {ratio}");
        }
    }
}

/// The same bits on any number of threads.
#[test]
fn bits_do_not_depend_on_threads() {
    let mut device = device(FILTERS[2], false, 0.2);
    let on = |threads: usize, device: &mut Cpu| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| render_view(device, 0, look(5, 4)).expect("it renders"))
    };
    let [one, three] = [1, 3].map(|threads| on(threads, &mut device));
    let bits = |picture: &[[f32; 4]]| picture.iter().map(|p| p.map(f32::to_bits)).collect::<Vec<_>>();
    assert_eq!(bits(&one), bits(&three));
}
