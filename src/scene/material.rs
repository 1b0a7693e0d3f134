//! BSDFs that contain no other BSDF: their types, parameters and defaults, and how they are read.

use super::Source;
use super::materials::{self, conductor, index_of_refraction};
use super::object::Object;
use super::quantity::Quantity;
use super::reader::Limit;
use super::texture;
use super::world::{Facets, Input, Material, Model, Texture};

/// Mitsuba's defaults.
const DEFAULT_REFLECTANCE: f32 = 0.5;
const DEFAULT_ALPHA: f32 = 0.1;
const GLASS: &str = "bk7";
const PLASTIC: &str = "polypropylene";
const OUTSIDE: &str = "air";

/// The smallest |η − 1| of a rough dielectric, which with η = 1 would not bend light.
const LEAST_CONTRAST: f32 = 1e-4;

impl Model {
    /// Every model.
    pub const ALL: [Self; 10] = [
        Self::Diffuse,
        Self::Conductor,
        Self::RoughConductor,
        Self::Dielectric,
        Self::ThinDielectric,
        Self::RoughDielectric,
        Self::Plastic,
        Self::RoughPlastic,
        Self::Principled,
        Self::PrincipledThin,
    ];

    /// Its type in a scene file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Diffuse => "diffuse",
            Self::Conductor => "conductor",
            Self::RoughConductor => "roughconductor",
            Self::Dielectric => "dielectric",
            Self::ThinDielectric => "thindielectric",
            Self::RoughDielectric => "roughdielectric",
            Self::Plastic => "plastic",
            Self::RoughPlastic => "roughplastic",
            Self::Principled => "principled",
            Self::PrincipledThin => "principledthin",
        }
    }

    /// Keys of the sampling rates of its lobes, in the order of [`Material::rates`].
    pub(super) fn rate_keys(self) -> &'static [&'static str] {
        match self {
            Self::Principled => &[
                "diffuse_reflectance_sampling_rate",
                "main_specular_sampling_rate",
                "clearcoat_sampling_rate",
            ],
            Self::PrincipledThin => &[
                "diffuse_reflectance_sampling_rate",
                "diffuse_transmittance_sampling_rate",
                "specular_reflectance_sampling_rate",
                "specular_transmittance_sampling_rate",
            ],
            _ => &[],
        }
    }
}

impl Material {
    /// A Lambertian surface of this reflectance.
    pub fn diffuse(reflectance: Texture) -> Self {
        let input = Input {
            key: "reflectance",
            quantity: Quantity::Reflectance,
            texture: reflectance,
        };
        Self::new(Model::Diffuse, vec![input])
    }

    /// Whether light gets through to the other side, or may do so in a run.
    pub fn transmits(&self) -> bool {
        match self.model {
            Model::Diffuse | Model::Conductor | Model::RoughConductor | Model::Plastic | Model::RoughPlastic => false,
            Model::Dielectric | Model::ThinDielectric | Model::RoughDielectric | Model::PrincipledThin => true,
            Model::Principled => {
                let spec_trans = self.inputs.iter().find(|input| input.key == "spec_trans");
                !spec_trans.is_some_and(|input| input.texture.is_always(0.0))
            }
        }
    }

    fn new(model: Model, inputs: Vec<Input>) -> Self {
        Self {
            model,
            inputs,
            facets: Facets::default(),
            nonlinear: false,
            rates: [1.0; 4],
        }
    }
}

/// The inputs of a material while they are read.
struct Inputs<'a, 'b> {
    object: &'a mut Object<'b>,
    inputs: Vec<Input>,
}

impl Inputs<'_, '_> {
    fn push(&mut self, key: &'static str, quantity: Quantity, texture: Texture) {
        self.inputs.push(Input { key, quantity, texture });
    }

    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.object.value.path)
    }

    /// A colour or a texture of colours.
    fn color(&mut self, key: &'static str, quantity: Quantity, default: [f32; 3]) {
        let given = self.object.get(key);
        let read = given.and_then(|value| texture::read(&value, quantity));
        let texture = read.unwrap_or_else(|| Texture::constant(&self.path(key), &default));
        self.push(key, quantity, texture);
    }

    /// A number or a texture of numbers.
    fn scalar(&mut self, key: &'static str, quantity: Quantity, default: f32) {
        let given = self.object.get(key);
        let read = given.and_then(|value| texture::read_scalar(&value, quantity));
        let texture = read.unwrap_or_else(|| Texture::constant(&self.path(key), &[default]));
        self.push(key, quantity, texture);
    }

    /// A number, the same everywhere on the surface.
    fn number(&mut self, key: &'static str, quantity: Quantity, default: f32) {
        let given = self.object.get(key);
        let read = given.and_then(|value| value.number(quantity.limit()));
        let texture = Texture::constant(&self.path(key), &[read.map_or(default, |x| x as f32)]);
        self.push(key, quantity, texture);
    }

    /// `eta`: the ratio of `int_ior` and `ext_ior`.
    fn relative_index(&mut self, inside: &str, quantity: Quantity) {
        let int_ior = index(self.object, "int_ior", inside);
        let ext_ior = index(self.object, "ext_ior", OUTSIDE);
        let texture = Texture::constant(&self.path("eta"), &[int_ior / ext_ior]);
        self.push("eta", quantity, texture);
    }

    /// `eta` and `k`: given, or those of the conductor `material`.
    fn complex_index(&mut self) {
        let named = self.object.get("material");
        let given = ["eta", "k"].map(|key| self.object.get(key));
        let known = named.as_ref().and_then(|value| {
            let found = value.string().map(conductor)?;
            found
                .map_err(|error| value.error("this material cannot be used", error))
                .ok()
        });
        if let (Some(named), [Some(_), _] | [_, Some(_)]) = (&named, &given) {
            named.error(
                "`material` and `eta` or `k` exclude each other",
                "remove `material`, or the others",
            );
        }
        let [eta, k] = known.unwrap_or(materials::PERFECT_MIRROR);
        for ((key, value), default) in ["eta", "k"].into_iter().zip(given).zip([eta, k]) {
            let read = value.and_then(|value| texture::read(&value, Quantity::ComplexIndex));
            let texture = read.unwrap_or_else(|| Texture::constant(&self.path(key), &default));
            self.push(key, Quantity::ComplexIndex, texture);
        }
    }

    /// `alpha`, or `alpha_u` and `alpha_v`.
    fn roughness(&mut self) {
        let split = ["alpha_u", "alpha_v"].map(|key| self.object.get(key).is_some());
        if split == [false, false] {
            self.scalar("alpha", Quantity::Roughness, DEFAULT_ALPHA);
            return;
        }
        if let Some(alpha) = self.object.get("alpha") {
            alpha.error(
                "`alpha` beside `alpha_u` or `alpha_v`",
                "remove `alpha`, or the other two",
            );
        }
        if split != [true, true] {
            self.object
                .error("only one of `alpha_u` and `alpha_v` is given", "give both, or `alpha`");
        }
        self.scalar("alpha_u", Quantity::Roughness, DEFAULT_ALPHA);
        self.scalar("alpha_v", Quantity::Roughness, DEFAULT_ALPHA);
    }

    fn facets(&mut self) -> Facets {
        Facets {
            beckmann: self
                .object
                .choice("distribution", &[("beckmann", true), ("ggx", false)], true),
            visible: self.object.boolean("sample_visible", true),
        }
    }

    /// The factors on the light that a dielectric reflects and transmits.
    fn specular_factors(&mut self) {
        self.color("specular_reflectance", Quantity::Reflectance, [1.0; 3]);
        self.color("specular_transmittance", Quantity::Reflectance, [1.0; 3]);
    }

    fn plastic(&mut self) {
        self.relative_index(PLASTIC, Quantity::Index);
        self.color("diffuse_reflectance", Quantity::Reflectance, [DEFAULT_REFLECTANCE; 3]);
        self.color("specular_reflectance", Quantity::Reflectance, [1.0; 3]);
    }

    /// `eta`, or `specular`, the reflectance at normal incidence that it follows from.
    fn solid_index(&mut self) {
        let eta = self.object.get("eta");
        if let (Some(eta), Some(_)) = (&eta, self.object.get("specular")) {
            eta.error("`eta` and `specular` exclude each other", "remove one of the two");
        }
        match eta {
            Some(_) => self.number("eta", Quantity::DenserIndex, 1.5),
            None => self.number("specular", Quantity::Specular, 0.5),
        }
    }

    /// The first inputs of both principled BSDFs.
    fn base(&mut self) {
        self.color("base_color", Quantity::Reflectance, [DEFAULT_REFLECTANCE; 3]);
        self.scalar("roughness", Quantity::Weight, 0.5);
        self.scalar("anisotropic", Quantity::Weight, 0.0);
    }

    fn sheen(&mut self) {
        self.scalar("spec_tint", Quantity::Weight, 0.0);
        self.scalar("sheen", Quantity::Weight, 0.0);
        self.scalar("sheen_tint", Quantity::Weight, 0.0);
        self.scalar("flatness", Quantity::Weight, 0.0);
    }
}

/// An index of refraction: a number, or a material's name.
fn index(object: &mut Object<'_>, key: &'static str, default: &str) -> f32 {
    let known = |name: &str| index_of_refraction(name);
    let default = known(default).expect("the default is a known material");
    let Some(value) = object.get(key) else { return default };
    if value.is_number() {
        return value.number(Limit::Positive).map_or(default, |x| x as f32);
    }
    let Some(name) = value.string() else { return default };
    known(name).unwrap_or_else(|error| {
        value.error("this index cannot be used", error);
        default
    })
}

/// The material of an object of this model.
pub(super) fn read(model: Model, object: &mut Object<'_>) -> Material {
    let mut reader = Inputs {
        object,
        inputs: Vec::new(),
    };
    let mut material = Material::new(model, Vec::new());
    match model {
        Model::Diffuse => reader.color("reflectance", Quantity::Reflectance, [DEFAULT_REFLECTANCE; 3]),
        Model::Conductor | Model::RoughConductor => {
            reader.complex_index();
            reader.color("specular_reflectance", Quantity::Reflectance, [1.0; 3]);
        }
        Model::Dielectric | Model::ThinDielectric | Model::RoughDielectric => {
            let bends = model == Model::Dielectric;
            reader.relative_index(GLASS, if bends { Quantity::BendingIndex } else { Quantity::Index });
            reader.specular_factors();
        }
        Model::Plastic | Model::RoughPlastic => reader.plastic(),
        Model::Principled => {
            reader.base();
            reader.scalar("metallic", Quantity::Weight, 0.0);
            reader.scalar("spec_trans", Quantity::Weight, 0.0);
            reader.solid_index();
            reader.sheen();
            reader.scalar("clearcoat", Quantity::Weight, 0.0);
            reader.scalar("clearcoat_gloss", Quantity::Weight, 0.0);
        }
        Model::PrincipledThin => {
            reader.base();
            reader.scalar("spec_trans", Quantity::Weight, 0.0);
            reader.scalar("eta", Quantity::DenserIndex, 1.5);
            reader.sheen();
            reader.scalar("diff_trans", Quantity::DiffuseTransmission, 0.0);
        }
    }
    match model {
        Model::RoughConductor | Model::RoughDielectric => {
            reader.roughness();
            material.facets = reader.facets();
        }
        Model::RoughPlastic => {
            reader.number("alpha", Quantity::Roughness, DEFAULT_ALPHA);
            material.facets = reader.facets();
        }
        _ => {}
    }
    for (rate, key) in material.rates.iter_mut().zip(model.rate_keys()) {
        *rate = reader.object.number(key, 1.0);
    }
    if matches!(model, Model::Plastic | Model::RoughPlastic) {
        material.nonlinear = reader.object.boolean("nonlinear", false);
    }
    material.inputs = reader.inputs;
    check_contrast(&material, object);
    material
}

fn check_contrast(material: &Material, object: &Object<'_>) {
    let eta = material.inputs.iter().find(|input| input.key == "eta");
    let (Model::RoughDielectric, Some(Texture::Constant(eta))) = (material.model, eta.map(|input| &input.texture))
    else {
        return;
    };
    if matches!(&eta.source, Source::Fill(values) if (values[0] - 1.0).abs() < LEAST_CONTRAST) {
        object.error(
            "`int_ior` and `ext_ior` of the `roughdielectric` are alike, so that it bends no light",
            "give different ones, or take `null`",
        );
    }
}
