//! Small scenes built in code, with random values, for tests of gradients and replays.

#![allow(dead_code, unreachable_pub, reason = "every test file uses a part of this one")]

pub mod agreement;
pub mod moving;
pub mod worlds;

use std::path::PathBuf;

use glam::{Affine3A, Quat, Vec3};
use prbopt::device::Keys;
use prbopt::gradcheck::{Options, Setup};
use prbopt::params::{Kind, Shape};
use prbopt::scene::{
    Array, Backdrop, Background, ColorActivation, ColorSpace, DensityActivation, Distortion, Filter, RadianceField,
    Reference, Scene, Sensor, Source,
};
use prbopt::transport::rays::random::{Counter, Pass, pass_key, random_uniform};

/// What lies behind the medium of a small scene.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Behind {
    Nothing,
    Constant,
    Envmap { size: [usize; 2], scale: f32 },
}

/// The values of the grids.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
    /// Uniform between two densities and between two raw coefficients.
    Uniform { sigma: [f32; 2], sh: [f32; 2] },
    /// The same, but with every third texel of either grid, slabs of them, exactly zero.
    Zeros { sigma: [f32; 2], sh: [f32; 2] },
    /// A ball of random density in empty space.
    Ball,
}

/// A small scene; [`Small::default`] is the plainest.
#[derive(Debug, Clone)]
pub struct Small {
    pub name: &'static str,
    pub density: DensityActivation,
    pub color: ColorActivation,
    pub degree: u32,
    pub sigma_size: [usize; 3],
    pub sh_size: [usize; 3],
    pub values: Values,
    pub behind: Behind,
    pub to_world: Affine3A,
    pub cameras: Vec<Vec3>,
    pub image: [u32; 2],
    pub filter: Filter,
    pub distortion: Distortion,
    pub backdrop: Backdrop,
    pub step: f32,
    /// Transmittance that ends a ray. [`Setup::new`] turns early stops off; [`Small::setup`] puts this one back.
    pub stop: f32,
}

impl Default for Small {
    fn default() -> Self {
        Self {
            name: "plain",
            density: DensityActivation::Relu,
            color: ColorActivation::Clip,
            degree: 0,
            sigma_size: [5, 5, 5],
            sh_size: [5, 5, 5],
            values: Values::Uniform {
                sigma: [-0.6, 2.0],
                sh: [-1.0, 5.0],
            },
            behind: Behind::Constant,
            to_world: Affine3A::IDENTITY,
            cameras: vec![Vec3::new(0.4, 0.7, 4.0), Vec3::new(-3.0, -1.0, 1.5)],
            image: [9, 7],
            filter: Filter::Box,
            distortion: Distortion::None,
            backdrop: Backdrop::Opaque,
            step: 1.0,
            stop: 0.0,
        }
    }
}

/// The table: every activation, degree, background, filter, shape and early exit at least once.
pub fn table() -> Vec<Small> {
    use prbopt::scene::{ColorActivation as C, DensityActivation as D};
    let turned = Affine3A::from_scale_rotation_translation(
        Vec3::new(0.7, 1.3, 0.4),
        Quat::from_rotation_y(0.7) * Quat::from_rotation_x(0.3),
        Vec3::new(0.2, -0.1, 0.3),
    );
    let plain = Small::default;
    vec![
        plain(),
        Small {
            name: "relu_half, degree 1, tent, envmap",
            color: C::ReluHalf,
            degree: 1,
            values: Values::Uniform {
                sigma: [-0.6, 2.0],
                sh: [-1.6, 0.8],
            },
            behind: Behind::Envmap {
                size: [6, 4],
                scale: 0.7,
            },
            filter: Filter::Tent { radius: 1.0 },
            ..plain()
        },
        Small {
            name: "sigmoid, degree 2, gaussian, no background",
            color: C::Sigmoid,
            degree: 2,
            values: Values::Uniform {
                sigma: [-0.5, 3.0],
                sh: [-2.0, 2.0],
            },
            behind: Behind::Nothing,
            filter: Filter::Gaussian { stddev: 0.5 },
            ..plain()
        },
        Small {
            name: "softplus, clip, degree 3, random backdrop",
            density: D::Softplus,
            degree: 3,
            values: Values::Uniform {
                sigma: [-3.0, 2.0],
                sh: [-0.3, 0.8],
            },
            backdrop: Backdrop::Random,
            ..plain()
        },
        Small {
            name: "exp, sigmoid, degree 1, envmap, cameras inside the cube",
            density: D::Exp,
            color: C::Sigmoid,
            degree: 1,
            values: Values::Uniform {
                sigma: [-3.0, 1.0],
                sh: [-1.0, 1.0],
            },
            behind: Behind::Envmap {
                size: [5, 3],
                scale: 1.5,
            },
            cameras: vec![Vec3::new(0.1, 0.2, 0.6), Vec3::new(-0.5, 0.1, -0.2)],
            ..plain()
        },
        Small {
            name: "grids of different sizes in a turned, stretched cube",
            sigma_size: [5, 4, 6],
            sh_size: [3, 7, 2],
            degree: 2,
            values: Values::Uniform {
                sigma: [-0.6, 2.0],
                sh: [-0.4, 1.0],
            },
            to_world: turned,
            step: 0.6,
            ..plain()
        },
        Small {
            name: "a single texel",
            sigma_size: [1, 1, 1],
            sh_size: [1, 1, 1],
            values: Values::Uniform {
                sigma: [0.5, 0.6],
                sh: [1.0, 3.0],
            },
            ..plain()
        },
        Small {
            name: "ball in empty space",
            sigma_size: [14, 13, 15],
            sh_size: [14, 13, 15],
            degree: 1,
            values: Values::Ball,
            behind: Behind::Envmap {
                size: [8, 5],
                scale: 1.0,
            },
            ..plain()
        },
        Small {
            name: "exact zeros: kinks of relu and clip",
            degree: 1,
            values: Values::Zeros {
                sigma: [-0.4, 2.0],
                sh: [-1.0, 2.0],
            },
            ..plain()
        },
        Small {
            name: "all zero",
            degree: 1,
            values: Values::Uniform {
                sigma: [0.0, 0.0],
                sh: [0.0, 0.0],
            },
            ..plain()
        },
        Small {
            name: "zero colours in a dense medium: kinks of clip under harmonics of either sign",
            degree: 2,
            values: Values::Uniform {
                sigma: [0.5, 3.0],
                sh: [0.0, 0.0],
            },
            ..plain()
        },
        Small {
            name: "dense, colours above and below the clip, early stop",
            values: Values::Uniform {
                sigma: [-0.5, 9.0],
                sh: [-2.0, 6.0],
            },
            stop: 0.1,
            ..plain()
        },
        Small {
            name: "exp, early stop",
            density: D::Exp,
            color: C::ReluHalf,
            values: Values::Uniform {
                sigma: [-1.0, 2.0],
                sh: [-1.0, 2.0],
            },
            stop: 0.05,
            ..plain()
        },
        Small {
            name: "distorted, with masked corners",
            degree: 1,
            values: Values::Uniform {
                sigma: [-0.6, 2.0],
                sh: [-0.4, 1.0],
            },
            distortion: Distortion::Brown {
                k: [-0.55, 0.0, 0.0],
                p: [0.01, -0.02],
            },
            ..plain()
        },
        Small {
            name: "fisheye",
            distortion: Distortion::Fisheye {
                k: [0.03, -0.01, 0.0, 0.0],
            },
            ..plain()
        },
    ]
}

impl Small {
    /// The scene made ready for a check, values drawn by `options.seed`.
    pub fn setup(&self, options: &Options) -> Setup {
        let mut setup = Setup::new(&self.scene(), options).expect("small scenes are sound");
        setup.resident.scene.stop = self.stop;
        setup.spp = 2;
        for i in 0..setup.params.parameters.len() {
            let parameter = &mut setup.params.parameters[i];
            let texel_of = |k: usize| k / parameter.shape.channels;
            let uniform = |k: usize, [a, b]: [f32; 2]| a + (b - a) * draw(options.seed, i as u32, k as u32);
            let [nx, ny, _] = parameter.shape.size;
            let is_sigma = parameter.path.ends_with("sigma_t");
            let is_grid = parameter.kind == Kind::Grid;
            let shape = parameter.shape;
            for (k, value) in parameter.values.iter_mut().enumerate() {
                let texel = texel_of(k);
                *value = match self.values {
                    _ if !is_grid => uniform(k, [0.1, 1.0]),
                    Values::Uniform { sigma, sh } => uniform(k, if is_sigma { sigma } else { sh }),
                    Values::Zeros { sigma, sh } => {
                        // Planes of zeros two thick, so that some lookups see nothing but zeros.
                        if texel / (nx * ny) % 4 < 2 {
                            0.0
                        } else {
                            uniform(k, if is_sigma { sigma } else { sh })
                        }
                    }
                    Values::Ball if is_sigma => {
                        let at = [texel % nx, texel / nx % ny, texel / (nx * ny)];
                        let r2: f32 = (0..3)
                            .map(|a| ((at[a] as f32 + 0.5) / shape.size[a] as f32 - 0.5).powi(2))
                            .sum();
                        if r2 < 0.04 {
                            uniform(k, [0.5, 6.0])
                        } else {
                            uniform(k, [-1.0, -0.1])
                        }
                    }
                    Values::Ball => uniform(k, [-0.5, 1.5]),
                };
            }
        }
        setup
    }

    /// The scene, its grids zero.
    pub fn scene(&self) -> Scene {
        let grid = |path: &str, size, channels| Array {
            path: path.to_string(),
            kind: Kind::Grid,
            shape: Shape { size, channels },
            source: Source::Fill(vec![0.0]),
            tuning: None,
        };
        let channels = 3 * (self.degree as usize + 1).pow(2);
        Scene {
            path: PathBuf::from("small.json"),
            field: Some(RadianceField {
                to_world: self.to_world,
                sigma_t: grid("object.interior.sigma_t", self.sigma_size, 1),
                sh_coeffs: grid("object.interior.sh_coeffs", self.sh_size, channels),
                sh_degree: self.degree,
                density_activation: self.density,
                color_activation: self.color,
                step: self.step,
                stop: self.stop,
            }),
            background: self.background(),
            sensors: self.cameras.iter().map(|&origin| self.sensor(origin)).collect(),
            ..Scene::default()
        }
    }

    fn background(&self) -> Background {
        let array = |path: &str, kind, size| Array {
            path: path.to_string(),
            kind,
            shape: Shape { size, channels: 3 },
            source: Source::Fill(vec![0.0]),
            tuning: None,
        };
        match self.behind {
            Behind::Nothing => Background::None,
            Behind::Constant => Background::Constant {
                radiance: array("sky.radiance", Kind::Value, [1, 1, 1]),
            },
            Behind::Envmap {
                size: [width, height],
                scale,
            } => Background::Envmap {
                data: array("sky.data", Kind::Envmap, [width, height, 1]),
                scale: Array::value("sky.scale", &[scale]),
                sampling_weight: 1.0,
                mis_compensation: false,
                to_world: Affine3A::from_rotation_z(0.4),
            },
        }
    }

    fn sensor(&self, origin: Vec3) -> Sensor {
        let [width, height] = self.image;
        let reference = Reference {
            path: PathBuf::from("unread.png"),
            downscale: 1,
            backdrop: self.backdrop,
        };
        Sensor {
            name: "view".to_string(),
            to_world: look_at(origin, Vec3::new(0.1, 0.0, -0.1)),
            width,
            height,
            focal: [width as f32 * 1.3, width as f32 * 1.25],
            center: [width as f32 * 0.48, height as f32 * 0.53],
            distortion: self.distortion,
            near_clip: 0.01,
            far_clip: 100.0,
            filter: self.filter,
            color_space: ColorSpace::Linear,
            spp: 1,
            reference: (self.backdrop == Backdrop::Random).then_some(reference),
            held_out: false,
            medium: None,
            ..Sensor::default()
        }
    }
}

/// Camera to world: +X left, +Y up, +Z towards the target.
pub fn look_at(origin: Vec3, target: Vec3) -> Affine3A {
    let forward = (target - origin).normalize();
    let left = Vec3::Y.cross(forward).normalize();
    let up = forward.cross(left);
    Affine3A::from_cols(left.into(), up.into(), forward.into(), origin.into())
}

/// A uniform number in [0, 1).
pub fn draw(seed: u64, stream: u32, index: u32) -> f32 {
    let counter = Counter {
        sensor: stream,
        pixel: index,
        sample: 0,
        block: 0,
    };
    random_uniform(pass_key(seed, 0, Pass::Host), counter)[0]
}

/// Keys of a pass of iteration 0.
pub fn keys(seed: u64, pass: Pass) -> Keys {
    Keys {
        objective: pass_key(seed, 0, Pass::Objective),
        pass: pass_key(seed, 0, pass),
    }
}
