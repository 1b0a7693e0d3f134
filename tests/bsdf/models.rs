//! Every BSDF behind one interface, its parameters as a list of numbers, and a table of parameters to test it with.

use prbopt::transport::number::Number;
use prbopt::transport::number::rgb::Rgb;
use prbopt::transport::scene::bsdf::conductor::{Conductor, RoughConductor};
use prbopt::transport::scene::bsdf::dielectric::{Dielectric, RoughDielectric, ThinDielectric};
use prbopt::transport::scene::bsdf::local::{Gradients, Lobe, LobeSample, lift, no_gradients};
use prbopt::transport::scene::bsdf::microfacet::Distribution;
use prbopt::transport::scene::bsdf::plastic::{Plastic, RoughPlastic};
use prbopt::transport::scene::bsdf::principled::Principled;
use prbopt::transport::scene::bsdf::principledthin::PrincipledThin;
use prbopt::transport::scene::bsdf::transmittance::TransmittanceTable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Conductor,
    RoughConductor,
    Dielectric,
    ThinDielectric,
    RoughDielectric,
    Plastic,
    RoughPlastic,
    Principled,
    PrincipledThin,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
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
}

/// A BSDF: its kind, settings that are not differentiated, and the list of its parameters.
#[derive(Debug, Clone)]
pub struct Model {
    pub kind: Kind,
    pub distribution: Distribution,
    pub visible: bool,
    pub nonlinear: bool,
    pub specular_weight: f32,
    pub least_share: f32,
    pub parameters: Vec<f32>,
    /// Transmittances of the coat, of a rough plastic alone.
    pub table: Option<TransmittanceTable>,
}

/// A triple from a list.
fn rgb<N: Number>(p: &[N]) -> Rgb<N> {
    Rgb([p[0], p[1], p[2]])
}

impl Model {
    pub fn new(kind: Kind, parameters: &[f32]) -> Self {
        Self {
            kind,
            distribution: Distribution::Ggx,
            visible: true,
            nonlinear: false,
            specular_weight: 0.6,
            least_share: 0.0,
            parameters: parameters.to_vec(),
            table: None,
        }
        .with_table()
    }

    pub fn with(self, distribution: Distribution, visible: bool) -> Self {
        Self {
            distribution,
            visible,
            ..self
        }
        .with_table()
    }

    pub fn nonlinear(self) -> Self {
        Self {
            nonlinear: true,
            ..self
        }
    }

    /// Makes the table that belongs to the parameters.
    pub fn with_table(mut self) -> Self {
        if self.kind == Kind::RoughPlastic {
            let [eta, alpha] = [0, 1].map(|i| f64::from(self.parameters[i]));
            self.table = Some(TransmittanceTable::new(self.distribution, alpha, eta));
        }
        self
    }

    pub fn label(&self) -> String {
        format!(
            "{:?} {:?} {} {:?}",
            self.kind,
            self.distribution,
            if self.visible { "visible" } else { "all" },
            self.parameters
        )
    }

    pub fn has_smooth_lobe(&self) -> bool {
        !matches!(self.kind, Kind::Conductor | Kind::Dielectric | Kind::ThinDielectric)
    }

    /// Whether the smooth lobe has a peak that sums over a few hundred directions do not resolve.
    pub fn is_peaked(&self) -> bool {
        match self.kind {
            Kind::RoughConductor => self.parameters[9] < 0.05,
            Kind::Principled => self.parameters[3] < 0.25,
            _ => false,
        }
    }

    pub fn lobes(&self) -> &'static [Lobe] {
        match self.kind {
            Kind::Conductor | Kind::Plastic => &[Lobe::Reflection],
            Kind::Dielectric => &[Lobe::Reflection, Lobe::Transmission],
            Kind::ThinDielectric => &[Lobe::Reflection, Lobe::Null],
            _ => &[],
        }
    }

    /// Whether light reaches the lower side.
    pub fn is_two_sided(&self) -> bool {
        use Kind::*;
        !matches!(self.kind, Conductor | RoughConductor | Plastic | RoughPlastic)
    }

    pub fn conductor<N: Number>(&self, p: &[N]) -> Conductor<N> {
        Conductor {
            eta: rgb(p),
            k: rgb(&p[3..]),
            specular: rgb(&p[6..]),
        }
    }

    pub fn rough_conductor<N: Number>(&self, p: &[N]) -> RoughConductor<N> {
        RoughConductor {
            eta: rgb(p),
            k: rgb(&p[3..]),
            specular: rgb(&p[6..]),
            alpha_u: p[9],
            alpha_v: p[10],
            distribution: self.distribution,
            visible: self.visible,
        }
    }

    pub fn dielectric<N: Number>(&self, p: &[N]) -> Dielectric<N> {
        Dielectric {
            eta: p[0],
            reflection: rgb(&p[1..]),
            transmission: rgb(&p[4..]),
        }
    }

    pub fn thin_dielectric<N: Number>(&self, p: &[N]) -> ThinDielectric<N> {
        ThinDielectric {
            eta: p[0],
            reflection: rgb(&p[1..]),
            transmission: rgb(&p[4..]),
        }
    }

    pub fn rough_dielectric<N: Number>(&self, p: &[N]) -> RoughDielectric<N> {
        RoughDielectric {
            eta: p[0],
            alpha_u: p[1],
            alpha_v: p[2],
            reflection: rgb(&p[3..]),
            transmission: rgb(&p[6..]),
            distribution: self.distribution,
            visible: self.visible,
        }
    }

    pub fn plastic<N: Number>(&self, p: &[N]) -> Plastic<N> {
        Plastic {
            eta: p[0],
            diffuse: rgb(&p[1..]),
            specular: rgb(&p[4..]),
            nonlinear: self.nonlinear,
            specular_weight: self.specular_weight,
        }
    }

    pub fn rough_plastic<N: Number>(&self, p: &[N]) -> RoughPlastic<N> {
        RoughPlastic {
            eta: p[0],
            alpha: p[1],
            diffuse: rgb(&p[2..]),
            specular: rgb(&p[5..]),
            nonlinear: self.nonlinear,
            distribution: self.distribution,
            visible: self.visible,
            specular_weight: self.specular_weight,
        }
    }

    pub fn principled<N: Number>(&self, p: &[N]) -> Principled<N> {
        Principled {
            base_color: rgb(p),
            roughness: p[3],
            anisotropic: p[4],
            metallic: p[5],
            spec_trans: p[6],
            eta: p[7],
            spec_tint: p[8],
            sheen: p[9],
            sheen_tint: p[10],
            flatness: p[11],
            clearcoat: p[12],
            clearcoat_gloss: p[13],
            rates: [1.0; 3],
            least_share: self.least_share,
        }
    }

    pub fn principled_thin<N: Number>(&self, p: &[N]) -> PrincipledThin<N> {
        PrincipledThin {
            base_color: rgb(p),
            roughness: p[3],
            anisotropic: p[4],
            spec_trans: p[5],
            eta: p[6],
            spec_tint: p[7],
            sheen: p[8],
            sheen_tint: p[9],
            flatness: p[10],
            diff_trans: p[11],
            rates: [1.0; 4],
            least_share: self.least_share,
        }
    }

    pub fn lifted<N: Number>(&self) -> Vec<N> {
        self.parameters.iter().map(|x| N::lift(*x)).collect()
    }

    fn table(&self) -> &TransmittanceTable {
        self.table.as_ref().expect("a rough plastic has a table")
    }

    pub fn eval<N: Number>(&self, p: &[N], wi: [f32; 3], wo: [f32; 3]) -> Rgb<N> {
        self.eval_along(p, lift(wi), lift(wo))
    }

    pub fn eval_along<N: Number>(&self, p: &[N], wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        match self.kind {
            Kind::RoughConductor => self.rough_conductor(p).eval(wi, wo),
            Kind::RoughDielectric => self.rough_dielectric(p).eval(wi, wo),
            Kind::Plastic => self.plastic(p).eval(wi, wo),
            Kind::RoughPlastic => {
                let coat = self.table().coat(p[1], p[0], wi, wo);
                self.rough_plastic(p).eval(&coat, wi, wo)
            }
            Kind::Principled => self.principled(p).eval(wi, wo),
            Kind::PrincipledThin => self.principled_thin(p).eval(wi, wo),
            Kind::Conductor | Kind::Dielectric | Kind::ThinDielectric => Rgb::zero(),
        }
    }

    /// The gradients of the weighted value by both directions.
    pub fn gradients<N: Number>(&self, p: &[N], wi: [f32; 3], wo: [f32; 3], d: Rgb<N>) -> Gradients<N> {
        let (wi, wo) = (lift(wi), lift(wo));
        match self.kind {
            Kind::RoughConductor => self.rough_conductor(p).gradients(wi, wo, d),
            Kind::RoughDielectric => self.rough_dielectric(p).gradients(wi, wo, d),
            Kind::Plastic => self.plastic(p).gradients(wi, wo, d),
            Kind::RoughPlastic => {
                let coat = self.table().coat(p[1], p[0], wi, wo);
                self.rough_plastic(p).gradients(&coat, wi, wo, d)
            }
            Kind::Principled => self.principled(p).gradients(wi, wo, d),
            Kind::PrincipledThin => self.principled_thin(p).gradients(wi, wo, d),
            Kind::Conductor | Kind::Dielectric | Kind::ThinDielectric => no_gradients(),
        }
    }

    /// Derivatives by the parameters, in their order.
    pub fn eval_adjoint<N: Number>(&self, p: &[N], wi: [f32; 3], wo: [f32; 3], d: Rgb<N>) -> Vec<N> {
        let (wi, wo) = (lift(wi), lift(wo));
        match self.kind {
            Kind::RoughConductor => {
                let g = self.rough_conductor(p).eval_adjoint(wi, wo, d);
                [&g.eta.0[..], &g.k.0, &g.specular.0, &[g.alpha_u, g.alpha_v]].concat()
            }
            Kind::RoughDielectric => {
                let g = self.rough_dielectric(p).eval_adjoint(wi, wo, d);
                [&[g.eta, g.alpha_u, g.alpha_v][..], &g.reflection.0, &g.transmission.0].concat()
            }
            Kind::Plastic => {
                let g = self.plastic(p).eval_adjoint(wi, wo, d);
                [&[g.eta][..], &g.diffuse.0, &g.specular.0].concat()
            }
            Kind::RoughPlastic => {
                let coat = self.table().coat(p[1], p[0], wi, wo);
                let g = self.rough_plastic(p).eval_adjoint(&coat, wi, wo, d);
                [&[g.eta, g.alpha][..], &g.diffuse.0, &g.specular.0].concat()
            }
            Kind::Principled => {
                let g = self.principled(p).eval_adjoint(wi, wo, d);
                [
                    &g.base_color.0[..],
                    &[g.roughness, g.anisotropic, g.metallic, g.spec_trans, g.eta],
                    &[g.spec_tint, g.sheen, g.sheen_tint, g.flatness],
                    &[g.clearcoat, g.clearcoat_gloss],
                ]
                .concat()
            }
            Kind::PrincipledThin => {
                let g = self.principled_thin(p).eval_adjoint(wi, wo, d);
                [
                    &g.base_color.0[..],
                    &[g.roughness, g.anisotropic, g.spec_trans, g.eta, g.spec_tint],
                    &[g.sheen, g.sheen_tint, g.flatness, g.diff_trans],
                ]
                .concat()
            }
            Kind::Conductor | Kind::Dielectric | Kind::ThinDielectric => vec![N::lift(0.0); p.len()],
        }
    }

    pub fn discrete<N: Number>(&self, p: &[N], wi: [f32; 3], lobe: Lobe) -> Rgb<N> {
        match self.kind {
            Kind::Conductor => self.conductor(p).discrete(wi, lobe),
            Kind::Dielectric => self.dielectric(p).discrete(wi, lobe),
            Kind::ThinDielectric => self.thin_dielectric(p).discrete(wi, lobe),
            Kind::Plastic => self.plastic(p).discrete(wi, lobe),
            _ => Rgb::zero(),
        }
    }

    pub fn discrete_adjoint<N: Number>(&self, p: &[N], wi: [f32; 3], lobe: Lobe, d: Rgb<N>) -> Vec<N> {
        match self.kind {
            Kind::Conductor => {
                let g = self.conductor(p).discrete_adjoint(wi, lobe, d);
                [g.eta.0, g.k.0, g.specular.0].concat()
            }
            Kind::Dielectric => {
                let g = self.dielectric(p).discrete_adjoint(wi, lobe, d);
                [&[g.eta][..], &g.reflection.0, &g.transmission.0].concat()
            }
            Kind::ThinDielectric => {
                let g = self.thin_dielectric(p).discrete_adjoint(wi, lobe, d);
                [&[g.eta][..], &g.reflection.0, &g.transmission.0].concat()
            }
            Kind::Plastic => {
                let g = self.plastic(p).discrete_adjoint(wi, lobe, d);
                [&[g.eta][..], &g.diffuse.0, &g.specular.0].concat()
            }
            _ => vec![N::lift(0.0); p.len()],
        }
    }

    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        let p = &self.parameters[..];
        match self.kind {
            Kind::RoughConductor => self.rough_conductor(p).pdf(wi, wo),
            Kind::RoughDielectric => self.rough_dielectric(p).pdf(wi, wo),
            Kind::Plastic => self.plastic(p).pdf(wi, wo),
            Kind::RoughPlastic => self.rough_plastic(p).pdf(self.table().transmittance(wi[2]), wi, wo),
            Kind::Principled => self.principled(p).pdf(wi, wo),
            Kind::PrincipledThin => self.principled_thin(p).pdf(wi, wo),
            Kind::Conductor | Kind::Dielectric | Kind::ThinDielectric => 0.0,
        }
    }

    pub fn sample(&self, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        let p = &self.parameters[..];
        match self.kind {
            Kind::Conductor => self.conductor(p).sample(wi, u1, u2),
            Kind::RoughConductor => self.rough_conductor(p).sample(wi, u1, u2),
            Kind::Dielectric => self.dielectric(p).sample(wi, u1, u2),
            Kind::ThinDielectric => self.thin_dielectric(p).sample(wi, u1, u2),
            Kind::RoughDielectric => self.rough_dielectric(p).sample(wi, u1, u2),
            Kind::Plastic => self.plastic(p).sample(wi, u1, u2),
            Kind::RoughPlastic => {
                let transmittance = self.table().transmittance(wi[2]);
                self.rough_plastic(p).sample(transmittance, wi, u1, u2)
            }
            Kind::Principled => self.principled(p).sample(wi, u1, u2),
            Kind::PrincipledThin => self.principled_thin(p).sample(wi, u1, u2),
        }
    }
}

/// Parameters of every kind, in the middle of their ranges and at their bounds.
pub fn models() -> Vec<Model> {
    const GOLD: [f32; 6] = [0.143, 0.3753, 1.4421, 3.983, 2.3856, 1.6034];
    let conductor = |metal: [f32; 6], rest: &[f32]| [&metal[..], rest].concat();
    let mut all = vec![
        Model::new(Kind::Conductor, &conductor(GOLD, &[0.9, 0.8, 1.0])),
        // By channels: a mirror, an index that matches the outside, and a metal.
        Model::new(
            Kind::Conductor,
            &conductor([0.0, 1.0, 0.5, 1.0, 0.0, 2.0], &[1.0, 0.0, 0.5]),
        ),
        Model::new(Kind::Dielectric, &[1.5, 1.0, 0.9, 0.8, 1.0, 0.7, 0.0]),
        Model::new(Kind::Dielectric, &[0.7, 1.0, 0.9, 0.8, 1.0, 0.7, 0.0]),
        Model::new(Kind::Dielectric, &[1.0, 1.0, 0.9, 0.8, 1.0, 0.7, 0.0]),
        Model::new(Kind::ThinDielectric, &[1.5, 1.0, 0.9, 0.8, 1.0, 0.7, 0.0]),
        Model::new(Kind::ThinDielectric, &[0.7, 1.0, 0.9, 0.8, 1.0, 0.7, 0.0]),
        Model::new(Kind::Plastic, &[1.49, 0.5, 0.3, 0.0, 1.0, 0.9, 0.0]),
        Model::new(Kind::Plastic, &[1.9, 0.9, 0.5, 0.2, 0.5, 0.7, 0.9]).nonlinear(),
        Model::new(Kind::Plastic, &[0.8, 0.9, 0.5, 0.2, 0.5, 0.7, 0.9]),
        Model::new(Kind::Plastic, &[1.0, 1.0, 0.5, 0.2, 0.5, 0.7, 0.9]),
    ];
    for distribution in [Distribution::Beckmann, Distribution::Ggx] {
        for visible in [true, false] {
            let rough = |kind, p: &[f32]| Model::new(kind, p).with(distribution, visible);
            for alpha in [[0.3, 0.3], [0.1, 0.6], [0.02, 0.02]] {
                all.push(rough(
                    Kind::RoughConductor,
                    &conductor(GOLD, &[0.9, 0.0, 1.0, alpha[0], alpha[1]]),
                ));
            }
            for p in [
                [1.5, 0.3, 0.3, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
                [0.75, 0.1, 0.5, 0.9, 0.8, 0.0, 0.4, 0.6, 0.8],
            ] {
                all.push(rough(Kind::RoughDielectric, &p));
            }
            let plastic = rough(Kind::RoughPlastic, &[1.49, 0.2, 0.5, 0.0, 0.1, 1.0, 1.0, 0.0]);
            all.extend([plastic.clone(), plastic.nonlinear()]);
        }
    }
    for p in [
        [0.7, 0.4, 0.2, 0.5, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.7, 0.4, 0.2, 0.3, 0.6, 0.7, 0.5, 1.4, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.3, 0.8, 0.5, 0.6, 0.2, 0.1, 0.3, 1.6, 0.4, 0.8, 0.6, 0.7, 0.9, 0.3],
        [0.9, 0.8, 0.5, 0.2, 0.0, 0.0, 1.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.4, 1.0, 1.0, 0.0, 1.2, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
    ] {
        all.push(Model::new(Kind::Principled, &p));
    }
    for p in [
        [0.7, 0.4, 0.2, 0.5, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.7, 0.4, 0.2, 0.6, 0.5, 0.6, 1.4, 0.3, 0.7, 0.5, 0.4, 1.2],
        [0.3, 0.6, 0.9, 0.8, 0.0, 1.0, 1.8, 0.5, 0.0, 0.0, 0.0, 2.0],
    ] {
        all.push(Model::new(Kind::PrincipledThin, &p));
    }
    all
}

/// Unit vectors at these cosines, with azimuths that differ.
pub fn directions(cosines: &[f32]) -> Vec<[f32; 3]> {
    let at = |(i, z): (usize, &f32)| {
        let angle = 0.7 + 2.4 * i as f32;
        let sine = (1.0 - z * z).max(0.0).sqrt();
        [sine * angle.cos(), sine * angle.sin(), *z]
    };
    cosines.iter().enumerate().map(at).collect()
}
