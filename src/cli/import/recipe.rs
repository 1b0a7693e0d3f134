//! The scene that `prbopt import` writes: all settings that the user does not choose.

use glam::DVec3;
use serde_json::{Map, Value, json};

use crate::io::dataset::bounds::{Bounds, Content};

/// Number of iterations.
const ITERATIONS: u32 = 11000;
/// Rays per iteration.
const RAYS: u32 = 8192;
/// Fractions of the run at which the resolution doubles; fewer if the final resolution cannot be halved as often.
const DOUBLINGS: [f64; 2] = [0.08, 0.33];
/// The lowest initial resolution.
const COARSEST: u32 = 16;
/// Initial density and its learning rate, as optical depth across half of the box.
const INITIAL_DENSITY: f64 = 0.5;
const DENSITY_RATE: f64 = 1.5;
/// Learning rate of the SH coefficients.
const COLOR_RATE: f64 = 0.08;
/// For a learned background: learning rate, final width, initial grey.
const BACKGROUND_RATE: f64 = 0.01;
const BACKGROUND_WIDTH: u32 = 256;
const BACKGROUND_GREY: f64 = 0.5;
/// Iterations of warm-up: without it Adam's first steps push density below zero wherever the first views ask for less,
/// and a ReLU has no gradient where all density is negative.
const WARM_UP: u32 = 300;
/// Factor on the learning rates at the end of the run.
const FINAL_FACTOR: f64 = 0.1;
/// Near clip distance of a place's cameras, in half edges of its box: prevents floaters close to the lens.
const NEAR_CLIP: f32 = 0.05;
/// The shortest edge of the box relative to the longest.
const SHORTEST_EDGE: f32 = 0.5;

/// The background behind the medium.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Behind {
    /// The colour that photographs are composited on.
    Color([f32; 3]),
    /// A random colour for every pixel, another in each iteration.
    Random,
    /// An environment map that is optimised, too.
    Learned,
}

/// The input of the recipe.
#[derive(Debug)]
pub(super) struct Plan {
    /// The data set's file as the scene names it.
    pub(super) dataset: String,
    /// A second data set, all of which is held out.
    pub(super) test_split: Option<String>,
    pub(super) hold_out: u32,
    pub(super) downscale: u32,
    pub(super) skip_missing: bool,
    pub(super) linear: bool,
    pub(super) behind: Behind,
    pub(super) content: Content,
    pub(super) bounds: Bounds,
    pub(super) resolution: u32,
    pub(super) sh_degree: u32,
}

impl Plan {
    /// The scene file.
    pub(super) fn scene(&self) -> Value {
        let (center, half) = self.cube();
        let scale = if half == DVec3::splat(half.x) {
            json!(half.x)
        } else {
            json!(half.to_array())
        };
        let mut to_world = vec![json!({ "scale": scale })];
        if center != DVec3::ZERO {
            to_world.push(json!({ "translate": center.to_array() }));
        }
        let size = [self.resolution; 3];
        let mut scene = Map::new();
        scene.insert("views".into(), self.dataset_entry(&self.dataset, false));
        if let Some(file) = &self.test_split {
            scene.insert("test_views".into(), self.dataset_entry(file, true));
        }
        let object = json!({
            "type": "cube",
            "to_world": to_world,
            "bsdf": { "type": "null" },
            "interior": {
                "type": "radiance_field",
                "sigma_t": { "type": "gridvolume", "resolution": size, "value": rounded(INITIAL_DENSITY / self.reach()) },
                "sh_coeffs": { "type": "gridvolume", "resolution": size, "value": 0.0 },
                "sh_degree": self.sh_degree,
                "color_activation": "sigmoid",
            },
        });
        scene.insert("object".into(), object);
        match self.behind {
            Behind::Color(color) if color == [0.0; 3] => {}
            Behind::Color(color) => {
                scene.insert(
                    "background".into(),
                    json!({ "type": "constant", "radiance": color_value(color) }),
                );
            }
            Behind::Random => {}
            Behind::Learned => {
                let data = json!({ "resolution": self.map_size(0), "value": BACKGROUND_GREY });
                scene.insert("background".into(), json!({ "type": "envmap", "data": data }));
            }
        }
        scene.insert("optimize".into(), self.optimize());
        scene.into()
    }

    /// Centre and half edges of the cube, to three digits, edges rounded up.
    pub(super) fn cube(&self) -> (DVec3, DVec3) {
        let bounds = self.bounds.clone().at_least(SHORTEST_EDGE);
        let half = bounds.half().as_dvec3();
        let decimals = 2 - half.max_element().log10().floor() as i32;
        let unit = 10f64.powi(-decimals);
        let to_places = |v: f64| -> f64 {
            let text = format!("{:.*}", decimals.max(0) as usize, v * unit);
            text.parse().expect("the text of a number is a number")
        };
        let center = (bounds.center().as_dvec3() / unit).round().map(to_places);
        (center + 0.0, (half / unit).ceil().map(to_places))
    }

    /// Resolutions of the grids, in order.
    pub(super) fn resolutions(&self) -> Vec<u32> {
        let doublings = self.doublings();
        (0..=doublings).map(|i| self.resolution >> (doublings - i)).collect()
    }

    /// A description of the run for the terminal.
    pub(super) fn run_in_words(&self) -> String {
        format!("{ITERATIONS} iterations of {RAYS} rays drawn from all views, Adam, L2")
    }

    fn dataset_entry(&self, file: &str, held_out: bool) -> Value {
        let mut entry = Map::new();
        entry.insert("type".into(), "dataset".into());
        entry.insert("filename".into(), file.into());
        if self.downscale > 1 {
            entry.insert("downscale".into(), self.downscale.into());
        }
        match (held_out, self.hold_out) {
            (true, _) => drop(entry.insert("held_out".into(), true.into())),
            (false, 0) => {}
            (false, n) => drop(entry.insert("hold_out".into(), n.into())),
        }
        match self.behind {
            Behind::Color(color) => drop(entry.insert("background".into(), background_value(color))),
            Behind::Random if held_out => drop(entry.insert("background".into(), "black".into())),
            Behind::Random => drop(entry.insert("background".into(), "random".into())),
            Behind::Learned => {}
        }
        entry.insert("color_space".into(), if self.linear { "linear" } else { "srgb" }.into());
        if self.content == Content::Place {
            entry.insert("near_clip".into(), json!(rounded(f64::from(NEAR_CLIP) * self.reach())));
        }
        if self.skip_missing {
            entry.insert("skip_missing".into(), true.into());
        }
        entry.into()
    }

    fn optimize(&self) -> Value {
        let start = [self.resolutions()[0]; 3];
        let mut parameters = json!({
            "object.interior.sigma_t": {
                "learning_rate": rounded(DENSITY_RATE / self.reach()),
                "start_resolution": start,
            },
            "object.interior.sh_coeffs": { "learning_rate": COLOR_RATE, "start_resolution": start },
        });
        if self.behind == Behind::Learned {
            let start = self.map_size(self.doublings());
            parameters["background.data"] =
                json!({ "learning_rate": BACKGROUND_RATE, "bounds": [0.0, 1.0], "start_resolution": start });
        }
        let stages = &DOUBLINGS[DOUBLINGS.len() - self.doublings() as usize..];
        let stages: Vec<Value> = stages
            .iter()
            .map(|at| json!({ "at": at, "upsample": 2, "moments": "reset" }))
            .collect();
        json!({
            "parameters": parameters,
            "iterations": ITERATIONS,
            "batch": { "rays": RAYS },
            "loss": { "type": "l2" },
            // Most of a field is empty: with masked updates the step skips texels without gradient.
            "optimizer": { "type": "adam", "mask_updates": true },
            "schedule": { "type": "exponential", "final_factor": FINAL_FACTOR, "warm_up": WARM_UP },
            "stages": stages,
            "output": { "images_every": 500 },
        })
    }

    /// Half of the cube's longest edge: the unit of length for rates and densities.
    fn reach(&self) -> f64 {
        self.cube().1.max_element()
    }

    fn doublings(&self) -> u32 {
        let possible = |n: &u32| self.resolution.is_multiple_of(1 << n) && self.resolution >> n >= COARSEST;
        (1..=DOUBLINGS.len() as u32).rev().find(possible).unwrap_or(0)
    }

    /// Width and height of the learned background, `halvings` stages before its final size.
    fn map_size(&self, halvings: u32) -> [u32; 2] {
        [BACKGROUND_WIDTH >> halvings, BACKGROUND_WIDTH >> (halvings + 1)]
    }
}

/// A colour as written in a scene file, by its name if it has one.
fn background_value(color: [f32; 3]) -> Value {
    match color {
        [1.0, 1.0, 1.0] => "white".into(),
        [0.0, 0.0, 0.0] => "black".into(),
        color => color_value(color),
    }
}

fn color_value(color: [f32; 3]) -> Value {
    match color {
        [r, g, b] if r == g && g == b => json!(tidy(r)),
        color => json!(color.map(tidy)),
    }
}

/// The shortest decimal that parses to the same f32.
fn tidy(value: f32) -> f64 {
    value.to_string().parse().expect("the text of a number is a number")
}

/// A number with two significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.1e}")
        .parse()
        .expect("the text of a number is a number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec3;

    fn plan() -> Plan {
        Plan {
            dataset: "transforms_train.json".into(),
            test_split: None,
            hold_out: 8,
            downscale: 1,
            skip_missing: false,
            linear: false,
            behind: Behind::Color([1.0; 3]),
            content: Content::CutOut,
            bounds: Bounds {
                lower: Vec3::splat(-1.2345),
                upper: Vec3::new(1.0, 1.1, 1.2),
                reason: String::new(),
            },
            resolution: 128,
            sh_degree: 2,
        }
    }

    #[test]
    fn box_holds_the_bounds_in_few_digits() {
        let (center, half) = plan().cube();
        assert_eq!(half, DVec3::new(1.12, 1.17, 1.22));
        assert_eq!(center, DVec3::new(-0.12, -0.07, -0.02));
        assert_eq!(
            plan().scene()["object"]["to_world"],
            json!([{ "scale": [1.12, 1.17, 1.22] }, { "translate": [-0.12, -0.07, -0.02] }])
        );
    }

    #[test]
    fn resolution_doubles_as_often_as_it_can() {
        let resolutions = |resolution| Plan { resolution, ..plan() }.resolutions();
        assert_eq!(resolutions(128), [32, 64, 128]);
        assert_eq!(resolutions(50), [25, 50]);
        assert_eq!(resolutions(33), [33]);
        assert_eq!(resolutions(8), [8]);
    }

    #[test]
    fn emitter_agrees_with_what_images_are_composited_on() {
        let scene = plan().scene();
        assert_eq!(
            (&scene["views"]["background"], &scene["background"]["radiance"]),
            (&json!("white"), &json!(1.0))
        );
        let scene = Plan {
            behind: Behind::Color([0.25, 0.5, 0.1]),
            ..plan()
        }
        .scene();
        assert_eq!(scene["views"]["background"], scene["background"]["radiance"]);
        let scene = Plan {
            behind: Behind::Random,
            ..plan()
        }
        .scene();
        assert!(scene.get("background").is_none());
    }
}
