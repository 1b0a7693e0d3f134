//! Small scenes of a radiance field whose cameras are parameters.

use prbopt::gradcheck::{Options, Setup};
use prbopt::params::Quantity;
use prbopt::scene::parse;
use prbopt::transport::rays::random::{Counter, random_uniform};

/// The choices for a scene of four cameras around a field.
pub(crate) struct Small {
    pub(crate) name: &'static str,
    degree: u32,
    density: &'static str,
    color: &'static str,
    sizes: [[u32; 3]; 2],
    background: &'static str,
    lens: &'static str,
    /// The parameters of the views to differentiate by.
    pub(crate) wanted: &'static [&'static str],
    /// Whether the views' values are other than those of the file.
    moved: bool,
    /// World units in the unit of length that the scene is told in; densities follow, which are linear under a ReLU.
    pub(crate) unit: f32,
}

const ALL: &[&str] = &["views.poses", "views.focal", "views.distortion"];
const OPENCV: &str = r#", "distortion": {"model": "opencv", "k1": 0.07, "k2": -0.03, "p1": 0.004, "p2": -0.002}"#;
const FISHEYE: &str = r#", "distortion": {"model": "fisheye", "k1": 0.05, "k2": -0.01}"#;
const MAP: &str = r#""sky": {"type": "envmap", "data": {"resolution": [7, 5], "value": 0.4}, "scale": 1.5,
    "to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 33}}]},"#;

/// Between them every degree, activation, lens and background, cameras before the cube and within it.
pub(crate) fn table() -> Vec<Small> {
    let plain = Small {
        name: "plain",
        degree: 0,
        density: "relu",
        color: "clip",
        sizes: [[6, 5, 7]; 2],
        background: r#""sky": {"type": "constant", "radiance": [0.2, 0.9, 0.5]},"#,
        lens: "",
        wanted: &["views.poses"],
        moved: false,
        unit: 1.0,
    };
    vec![
        Small {
            name: "harmonics of degree 3, grids of two sizes",
            degree: 3,
            color: "sigmoid",
            sizes: [[6, 5, 7], [4, 6, 3]],
            wanted: ALL,
            ..plain
        },
        Small {
            name: "a lens, and a map behind",
            degree: 2,
            density: "softplus",
            color: "relu",
            background: MAP,
            lens: OPENCV,
            wanted: ALL,
            moved: true,
            ..plain
        },
        Small {
            name: "a fisheye",
            degree: 1,
            density: "exp",
            background: "",
            lens: FISHEYE,
            wanted: &["views.poses", "views.focal"],
            moved: true,
            ..plain
        },
        Small { moved: true, ..plain },
    ]
}

/// A uniform number that depends on an index and a block.
pub(crate) fn uniform(index: usize, block: usize) -> f32 {
    let counter = Counter {
        sensor: 0,
        pixel: index as u32,
        sample: 0,
        block: block as u32,
    };
    random_uniform([77, 1, 2, 3], counter)[0]
}

impl Small {
    pub(crate) fn text(&self) -> String {
        let [sigma, sh] = self.sizes;
        let channels = vec!["0.3"; 3 * (self.degree as usize + 1).pow(2)].join(", ");
        let [clip, far, edge, height, depth, aside] = [0.05, 30.0, 1.0, 1.2, 0.9, 0.1].map(|x| x * self.unit);
        let camera = |i: usize, origin: [f32; 3], held_out: bool| {
            let origin = origin.map(|x| x * self.unit);
            format!(
                r#""camera{i}": {{"type": "perspective", "fov": 40, "held_out": {held_out}{},
                "to_world": [{{"look_at": {{"origin": {origin:?}, "target": [{aside:?}, 0, -{aside:?}], "up": [0, 1, 0.1]}}}}],
                "film": {{"type": "hdrfilm", "width": 9, "height": 8}}, "near_clip": {clip:?}, "far_clip": {far:?}}},"#,
                self.lens
            )
        };
        // The third stands in the cube, so that its rays begin at its clip distance.
        let cameras = [
            camera(0, [2.5, 1.2, 3.0], false),
            camera(1, [-3.0, 0.4, 1.5], false),
            camera(2, [0.4, 0.3, 0.6], false),
            camera(3, [0.0, 3.0, 2.0], true),
        ];
        let wanted: Vec<String> = self.wanted.iter().map(|path| format!(r#""{path}": {{}}"#)).collect();
        format!(
            r#"{{{} {} "object": {{"type": "cube", "to_world": [{{"rotate": {{"axis": [1, 2, 0.5], "angle": 20}}}}, {{"scale": [{edge:?}, {height:?}, {depth:?}]}}],
            "bsdf": {{"type": "null"}}, "interior": {{"type": "radiance_field", "sh_degree": {},
            "density_activation": "{}", "color_activation": "{}",
            "sigma_t": {{"type": "gridvolume", "resolution": {sigma:?}, "value": 1}},
            "sh_coeffs": {{"type": "gridvolume", "resolution": {sh:?}, "value": [{channels}]}}}}}},
            "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{{}}}}}}}"#,
            cameras.join("\n"),
            self.background,
            self.degree,
            self.density,
            self.color,
            wanted.join(", ")
        )
    }

    /// The scene with random grids, and views where they are moved to.
    pub(crate) fn setup(&self, options: &Options) -> Setup {
        let scene = parse(&self.text(), std::path::Path::new("small.json")).unwrap_or_else(|e| panic!("{e}"));
        let mut setup = Setup::new(&scene, options).expect("it is sound");
        for (i, parameter) in setup.params.parameters.iter_mut().enumerate() {
            let [low, high] = match parameter.quantity {
                Quantity::Density => [-0.8, 2.0].map(|x| x / self.unit),
                Quantity::Coefficients => [-0.4, 0.9],
                Quantity::Light => [0.1, 0.9],
                Quantity::Pose if self.moved => [-0.2, 0.2],
                Quantity::Zoom | Quantity::Radial if self.moved => [0.03, 0.04],
                _ => continue,
            };
            for (k, value) in parameter.values.iter_mut().enumerate() {
                *value = low + (high - low) * uniform(k, i);
            }
        }
        setup.resident.place_views(&setup.params);
        setup
    }
}
