// A leaf with the values of its textures at a point: one interface to all kinds of BSDFs that are no mixtures. Kinds that a
// scene does not have are left out of its shaders.

#import bind/scene
#ifdef RELIEFS
#import transport/scene/bsdf/diffuse
#endif
#import transport/scene/bsdf/local
#import transport/scene/bsdf/microfacet
#import transport/scene/records
#import transport/scene/texture
#ifdef CONDUCTORS
#import transport/scene/bsdf/conductor
#endif
#ifdef DIELECTRICS
#import transport/scene/bsdf/dielectric
#endif
#ifdef PLASTICS
#import transport/scene/bsdf/plastic
#endif
#ifdef PRINCIPLED
#import transport/scene/bsdf/principled
#endif
#ifdef PRINCIPLED_THIN
#import transport/scene/bsdf/principledthin
#endif

// The share of samples that each lobe of a principled BSDF is given at least, where a run may change it.
const LEAST_SHARE: f32 = 0.03;

// Values of a leaf's textures, in the order of its model's fields, or derivatives by these; of a scalar the first channel
// counts.
alias Values = array<vec3f, LEAF_TEXTURES>;

// The values at a point.
fn leaf_values(leaf: Leaf, point: SurfacePoint) -> Values {
    var found: Values;
    for (var i = 0u; i < leaf.textures; i++) {
        found = replaced(found, i, texture_eval(stencil(leaf.first_texture + i, point)));
    }
    return found;
}

// The array with another value in one place. The place is compared with each index: an array that is indexed by a number of
// the run lies in memory, which drivers reserve for all invocations that can be resident, and not in registers.
fn replaced(v: Values, at: u32, value: vec3f) -> Values {
    return Values(
        select(v[0], value, at == 0u),
        select(v[1], value, at == 1u),
        select(v[2], value, at == 2u),
        select(v[3], value, at == 3u),
        select(v[4], value, at == 4u),
#ifdef MANY_TEXTURES
        select(v[5], value, at == 5u),
        select(v[6], value, at == 6u),
        select(v[7], value, at == 7u),
        select(v[8], value, at == 8u),
        select(v[9], value, at == 9u),
        select(v[10], value, at == 10u),
        select(v[11], value, at == 11u),
#endif
    );
}

fn leaf_has(leaf: Leaf, bit: u32) -> bool {
    return (leaf.flags & bit) != 0u;
}

fn leaf_distribution(leaf: Leaf) -> u32 {
    return select(DISTRIBUTION_GGX, DISTRIBUTION_BECKMANN, leaf_has(leaf, LEAF_BECKMANN));
}

fn leaf_least_share(leaf: Leaf) -> f32 {
    return select(0.0, LEAST_SHARE, leaf_has(leaf, LEAF_VARIES));
}

#ifdef CONDUCTORS

fn leaf_conductor(leaf: Leaf, v: Values) -> Conductor {
    return Conductor(v[0], v[1], v[2]);
}

fn leaf_rough_conductor(leaf: Leaf, v: Values) -> RoughConductor {
    return RoughConductor(
        v[0],
        v[1],
        v[2],
        v[3].x,
        v[4].x,
        leaf_distribution(leaf),
        !leaf_has(leaf, LEAF_ALL_NORMALS),
    );
}

#endif
#ifdef DIELECTRICS

fn leaf_dielectric(leaf: Leaf, v: Values) -> Dielectric {
    return Dielectric(v[0].x, v[1], v[2]);
}

fn leaf_thin_dielectric(leaf: Leaf, v: Values) -> ThinDielectric {
    return ThinDielectric(v[0].x, v[1], v[2]);
}

fn leaf_rough_dielectric(leaf: Leaf, v: Values) -> RoughDielectric {
    return RoughDielectric(
        v[0].x,
        v[3].x,
        v[4].x,
        v[1],
        v[2],
        leaf_distribution(leaf),
        !leaf_has(leaf, LEAF_ALL_NORMALS),
    );
}

#endif
#ifdef PLASTICS

// Where the table of a leaf's coat begins.
fn coat_first(leaf: Leaf) -> u32 {
    return launch.coats_at + COAT_FLOATS * leaf.coat;
}

// A row of a coat's table: a value, and its derivatives by the roughness and by the index.
fn coat_row(leaf: Leaf, row: u32) -> vec3f {
    let at = coat_first(leaf) + 1u + 3u * row;
    return vec3f(bounds[at], bounds[at + 1u], bounds[at + 2u]);
}

// The row of the table at this cosine, interpolated.
fn coat_lookup(leaf: Leaf, cosine: f32) -> vec3f {
    let place = clamp(cosine, 0.0, 1.0) * f32(COAT_ENTRIES - 1u);
    let row = min(u32(place), COAT_ENTRIES - 2u);
    return mix(coat_row(leaf, row), coat_row(leaf, row + 1u), place - f32(row));
}

// The derivative of a coat's transmittance by the cosine.
fn coat_slope(leaf: Leaf, cosine: f32) -> f32 {
    if cosine <= 0.0 || cosine > 1.0 {
        return 0.0;
    }
    let row = min(u32(cosine * f32(COAT_ENTRIES - 1u)), COAT_ENTRIES - 2u);
    return (coat_row(leaf, row + 1u).x - coat_row(leaf, row).x) * f32(COAT_ENTRIES - 1u);
}

// The coat of a rough plastic for these directions.
fn leaf_coat(leaf: Leaf, wi: vec3f, wo: vec3f) -> Coat {
    let rows = mat3x3f(coat_lookup(leaf, wi.z), coat_lookup(leaf, wo.z), coat_row(leaf, COAT_ENTRIES));
    let columns = transpose(rows);
    return Coat(columns[0], columns[1], columns[2]);
}

fn leaf_plastic(leaf: Leaf, v: Values) -> Plastic {
    return Plastic(
        v[0].x,
        v[1],
        v[2],
        leaf_has(leaf, LEAF_NONLINEAR),
        bounds[coat_first(leaf)],
    );
}

fn leaf_rough_plastic(leaf: Leaf, v: Values) -> RoughPlastic {
    return RoughPlastic(
        v[0].x,
        v[3].x,
        v[1],
        v[2],
        leaf_has(leaf, LEAF_NONLINEAR),
        leaf_distribution(leaf),
        !leaf_has(leaf, LEAF_ALL_NORMALS),
        bounds[coat_first(leaf)],
    );
}

#endif
#ifdef PRINCIPLED

fn leaf_principled(leaf: Leaf, v: Values) -> Principled {
    var eta = v[5].x;
    if leaf_has(leaf, LEAF_SPECULAR) {
        eta = eta_of_specular(eta);
    }
    return Principled(
        v[0],
        v[1].x,
        v[2].x,
        v[3].x,
        v[4].x,
        eta,
        v[6].x,
        v[7].x,
        v[8].x,
        v[9].x,
        v[10].x,
        v[11].x,
        leaf.rates.xyz,
        leaf_least_share(leaf),
    );
}

#endif
#ifdef PRINCIPLED_THIN

fn leaf_principled_thin(leaf: Leaf, v: Values) -> PrincipledThin {
    return PrincipledThin(
        v[0],
        v[1].x,
        v[2].x,
        v[3].x,
        v[4].x,
        v[5].x,
        v[6].x,
        v[7].x,
        v[8].x,
        v[9].x,
        leaf.rates,
        leaf_least_share(leaf),
    );
}

#endif

// The smooth lobes' value for radiance times the cosine of `wo`.
fn model_eval(leaf: Leaf, v: Values, wi: vec3f, wo: vec3f) -> vec3f {
    switch leaf.kind {
#ifdef RELIEFS
        case LEAF_DIFFUSE: {
            return select(vec3f(0.0), diffuse_eval(v[0], wo), wi.z > 0.0);
        }
#endif
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_eval(leaf_rough_conductor(leaf, v), wi, wo);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_eval(leaf_rough_dielectric(leaf, v), wi, wo);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_eval(leaf_plastic(leaf, v), wi, wo);
        }
        case LEAF_ROUGH_PLASTIC: {
            return rough_plastic_eval(leaf_rough_plastic(leaf, v), leaf_coat(leaf, wi, wo), wi, wo);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_eval(leaf_principled(leaf, v), wi, wo);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_eval(leaf_principled_thin(leaf, v), wi, wo);
        }
#endif
        default: {
            return vec3f(0.0);
        }
    }
}

// The pdf by solid angle with which model_sample draws `wo` from a smooth lobe.
fn model_pdf(leaf: Leaf, v: Values, wi: vec3f, wo: vec3f) -> f32 {
    switch leaf.kind {
#ifdef RELIEFS
        case LEAF_DIFFUSE: {
            return select(0.0, diffuse_pdf(wo), wi.z > 0.0);
        }
#endif
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_pdf(leaf_rough_conductor(leaf, v), wi, wo);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_pdf(leaf_rough_dielectric(leaf, v), wi, wo);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_pdf(leaf_plastic(leaf, v), wi, wo);
        }
        case LEAF_ROUGH_PLASTIC: {
            return rough_plastic_pdf(leaf_rough_plastic(leaf, v), coat_lookup(leaf, wi.z).x, wi, wo);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_pdf(leaf_principled(leaf, v), wi, wo);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_pdf(leaf_principled_thin(leaf, v), wi, wo);
        }
#endif
        default: {
            return 0.0;
        }
    }
}

// Draws a direction from uniform numbers; none where the path ends.
fn model_sample(leaf: Leaf, v: Values, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    switch leaf.kind {
#ifdef RELIEFS
        case LEAF_DIFFUSE: {
            return LobeSample(diffuse_sample(u2), select(0.0, 1.0, wi.z > 0.0), LOBE_SMOOTH, 1.0);
        }
#endif
#ifdef CONDUCTORS
        case LEAF_CONDUCTOR: {
            return conductor_sample(leaf_conductor(leaf, v), wi, u1, u2);
        }
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_sample(leaf_rough_conductor(leaf, v), wi, u1, u2);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_DIELECTRIC: {
            return dielectric_sample(leaf_dielectric(leaf, v), wi, u1, u2);
        }
        case LEAF_THIN_DIELECTRIC: {
            return thin_dielectric_sample(leaf_thin_dielectric(leaf, v), wi, u1, u2);
        }
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_sample(leaf_rough_dielectric(leaf, v), wi, u1, u2);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_sample(leaf_plastic(leaf, v), wi, u1, u2);
        }
        case LEAF_ROUGH_PLASTIC: {
            return rough_plastic_sample(leaf_rough_plastic(leaf, v), coat_lookup(leaf, wi.z).x, wi, u1, u2);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_sample(leaf_principled(leaf, v), wi, u1, u2);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_sample(leaf_principled_thin(leaf, v), wi, u1, u2);
        }
#endif
        default: {
            return lobe_sample_none();
        }
    }
}

// The factor of a lobe that is not smooth.
fn model_discrete(leaf: Leaf, v: Values, wi: vec3f, lobe: u32) -> vec3f {
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_CONDUCTOR: {
            return conductor_discrete(leaf_conductor(leaf, v), wi, lobe);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_DIELECTRIC: {
            return dielectric_discrete(leaf_dielectric(leaf, v), wi, lobe);
        }
        case LEAF_THIN_DIELECTRIC: {
            return thin_dielectric_discrete(leaf_thin_dielectric(leaf, v), wi, lobe);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_discrete(leaf_plastic(leaf, v), wi, lobe);
        }
#endif
        default: {
            return vec3f(0.0);
        }
    }
}

#ifdef REPLAY

// Sends the derivatives by the values of a leaf's textures to these.
fn values_adjoint(leaf: Leaf, point: SurfacePoint, slopes: Values) {
    for (var i = 0u; i < leaf.textures; i++) {
        texture_adjoint(stencil(leaf.first_texture + i, point), placed(slopes, i));
    }
}

// The value in one place, selected by comparisons as in `replaced`.
fn placed(v: Values, at: u32) -> vec3f {
    var value = v[0];
    value = select(value, v[1], at == 1u);
    value = select(value, v[2], at == 2u);
    value = select(value, v[3], at == 3u);
    value = select(value, v[4], at == 4u);
#ifdef MANY_TEXTURES
    value = select(value, v[5], at == 5u);
    value = select(value, v[6], at == 6u);
    value = select(value, v[7], at == 7u);
    value = select(value, v[8], at == 8u);
    value = select(value, v[9], at == 9u);
    value = select(value, v[10], at == 10u);
    value = select(value, v[11], at == 11u);
#endif
    return value;
}

// A number's derivative as that of the first channel.
fn slope_of(d: f32) -> vec3f {
    return vec3f(d, 0.0, 0.0);
}

// The derivatives by the values of its textures, from `d` by model_eval.
fn model_eval_adjoint(leaf: Leaf, v: Values, wi: vec3f, wo: vec3f, d: vec3f) -> Values {
    var out: Values;
    switch leaf.kind {
#ifdef RELIEFS
        case LEAF_DIFFUSE: {
            out[0] = select(vec3f(0.0), diffuse_adjoint(wo, d), wi.z > 0.0);
        }
#endif
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            let g = rough_conductor_eval_adjoint(leaf_rough_conductor(leaf, v), wi, wo, d);
            out[0] = g.eta;
            out[1] = g.k;
            out[2] = g.specular;
            out[3] = slope_of(g.alpha_u);
            out[4] = slope_of(g.alpha_v);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            let g = rough_dielectric_eval_adjoint(leaf_rough_dielectric(leaf, v), wi, wo, d);
            out[0] = slope_of(g.eta);
            out[1] = g.reflection;
            out[2] = g.transmission;
            out[3] = slope_of(g.alpha_u);
            out[4] = slope_of(g.alpha_v);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            let g = plastic_eval_adjoint(leaf_plastic(leaf, v), wi, wo, d);
            out[0] = slope_of(g.eta);
            out[1] = g.diffuse;
            out[2] = g.specular;
        }
        case LEAF_ROUGH_PLASTIC: {
            let g = rough_plastic_eval_adjoint(leaf_rough_plastic(leaf, v), leaf_coat(leaf, wi, wo), wi, wo, d);
            out[0] = slope_of(g.eta);
            out[1] = g.diffuse;
            out[2] = g.specular;
            out[3] = slope_of(g.alpha);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            let g = principled_eval_adjoint(leaf_principled(leaf, v), wi, wo, d);
            var by_index = g.eta;
            if leaf_has(leaf, LEAF_SPECULAR) {
                by_index *= eta_of_specular_slope(v[5].x);
            }
            out[0] = g.base_color;
            out[1] = slope_of(g.roughness);
            out[2] = slope_of(g.anisotropic);
            out[3] = slope_of(g.metallic);
            out[4] = slope_of(g.spec_trans);
            out[5] = slope_of(by_index);
            out[6] = slope_of(g.spec_tint);
            out[7] = slope_of(g.sheen);
            out[8] = slope_of(g.sheen_tint);
            out[9] = slope_of(g.flatness);
            out[10] = slope_of(g.clearcoat);
            out[11] = slope_of(g.clearcoat_gloss);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            let g = principled_thin_eval_adjoint(leaf_principled_thin(leaf, v), wi, wo, d);
            out[0] = g.base_color;
            out[1] = slope_of(g.roughness);
            out[2] = slope_of(g.anisotropic);
            out[3] = slope_of(g.spec_trans);
            out[4] = slope_of(g.eta);
            out[5] = slope_of(g.spec_tint);
            out[6] = slope_of(g.sheen);
            out[7] = slope_of(g.sheen_tint);
            out[8] = slope_of(g.flatness);
            out[9] = slope_of(g.diff_trans);
        }
#endif
        default: {}
    }
    return out;
}

// The derivatives by the values of its textures, from `d` by model_discrete.
fn model_discrete_adjoint(leaf: Leaf, v: Values, wi: vec3f, lobe: u32, d: vec3f) -> Values {
    var out: Values;
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_CONDUCTOR: {
            let g = conductor_discrete_adjoint(leaf_conductor(leaf, v), wi, lobe, d);
            out[0] = g.eta;
            out[1] = g.k;
            out[2] = g.specular;
        }
#endif
#ifdef DIELECTRICS
        case LEAF_DIELECTRIC: {
            let g = dielectric_discrete_adjoint(leaf_dielectric(leaf, v), wi, lobe, d);
            out[0] = slope_of(g.eta);
            out[1] = g.reflection;
            out[2] = g.transmission;
        }
        case LEAF_THIN_DIELECTRIC: {
            let g = thin_dielectric_discrete_adjoint(leaf_thin_dielectric(leaf, v), wi, lobe, d);
            out[0] = slope_of(g.eta);
            out[1] = g.reflection;
            out[2] = g.transmission;
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            let g = plastic_discrete_adjoint(leaf_plastic(leaf, v), wi, lobe, d);
            out[0] = slope_of(g.eta);
            out[1] = g.diffuse;
            out[2] = g.specular;
        }
#endif
        default: {}
    }
    return out;
}

#ifdef SLOPES

// The gradients of model_eval, weighted by `d`, by both directions.
fn model_gradients(leaf: Leaf, v: Values, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    switch leaf.kind {
#ifdef RELIEFS
        case LEAF_DIFFUSE: {
            if wi.z > 0.0 {
                return diffuse_gradients(v[0], wo, d);
            }
            return no_gradients();
        }
#endif
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_gradients(leaf_rough_conductor(leaf, v), wi, wo, d);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_gradients(leaf_rough_dielectric(leaf, v), wi, wo, d);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_gradients(leaf_plastic(leaf, v), wi, wo, d);
        }
        case LEAF_ROUGH_PLASTIC: {
            let by_cosine = vec2f(coat_slope(leaf, wi.z), coat_slope(leaf, wo.z));
            return rough_plastic_gradients(leaf_rough_plastic(leaf, v), leaf_coat(leaf, wi, wo), by_cosine, wi, wo, d);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_gradients(leaf_principled(leaf, v), wi, wo, d);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_gradients(leaf_principled_thin(leaf, v), wi, wo, d);
        }
#endif
        default: {
            return no_gradients();
        }
    }
}

#endif
#endif
