// A leaf with the values of its textures at a point: one interface to all kinds of BSDFs that are no mixtures. Kinds that a
// scene does not have are left out of its shaders.

#import bind/scene
#import transport/scene/bsdf/local
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

// The value of a texture of a leaf, by its number among the fields of the leaf's model.
fn leaf_value(leaf: Leaf, field: u32, uv: vec2f) -> vec3f {
    return texture_eval(texture_stencil(texture_record(leaf.first_texture + field), uv));
}

fn leaf_number(leaf: Leaf, field: u32, uv: vec2f) -> f32 {
    return leaf_value(leaf, field, uv).x;
}

fn leaf_has(leaf: Leaf, bit: u32) -> bool {
    return (leaf.flags & bit) != 0u;
}

fn leaf_distribution(leaf: Leaf) -> u32 {
    // That of Beckmann is 0, that of GGX 1.
    return select(1u, 0u, leaf_has(leaf, LEAF_BECKMANN));
}

fn leaf_least_share(leaf: Leaf) -> f32 {
    return select(0.0, LEAST_SHARE, leaf_has(leaf, LEAF_VARIES));
}

#ifdef CONDUCTORS

fn leaf_conductor(leaf: Leaf, uv: vec2f) -> Conductor {
    return Conductor(leaf_value(leaf, 0u, uv), leaf_value(leaf, 1u, uv), leaf_value(leaf, 2u, uv));
}

fn leaf_rough_conductor(leaf: Leaf, uv: vec2f) -> RoughConductor {
    return RoughConductor(
        leaf_value(leaf, 0u, uv),
        leaf_value(leaf, 1u, uv),
        leaf_value(leaf, 2u, uv),
        leaf_number(leaf, 3u, uv),
        leaf_number(leaf, 4u, uv),
        leaf_distribution(leaf),
        !leaf_has(leaf, LEAF_ALL_NORMALS),
    );
}

#endif
#ifdef DIELECTRICS

fn leaf_dielectric(leaf: Leaf, uv: vec2f) -> Dielectric {
    return Dielectric(leaf_number(leaf, 0u, uv), leaf_value(leaf, 1u, uv), leaf_value(leaf, 2u, uv));
}

fn leaf_thin_dielectric(leaf: Leaf, uv: vec2f) -> ThinDielectric {
    return ThinDielectric(leaf_number(leaf, 0u, uv), leaf_value(leaf, 1u, uv), leaf_value(leaf, 2u, uv));
}

fn leaf_rough_dielectric(leaf: Leaf, uv: vec2f) -> RoughDielectric {
    return RoughDielectric(
        leaf_number(leaf, 0u, uv),
        leaf_number(leaf, 3u, uv),
        leaf_number(leaf, 4u, uv),
        leaf_value(leaf, 1u, uv),
        leaf_value(leaf, 2u, uv),
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

// The row of a direction of this cosine.
fn coat_lookup(leaf: Leaf, cosine: f32) -> vec3f {
    let place = clamp(cosine, 0.0, 1.0) * f32(COAT_ENTRIES - 1u);
    let row = min(u32(place), COAT_ENTRIES - 2u);
    return mix(coat_row(leaf, row), coat_row(leaf, row + 1u), place - f32(row));
}

// The coat of a rough plastic for these directions.
fn leaf_coat(leaf: Leaf, wi: vec3f, wo: vec3f) -> Coat {
    let rows = mat3x3f(coat_lookup(leaf, wi.z), coat_lookup(leaf, wo.z), coat_row(leaf, COAT_ENTRIES));
    let columns = transpose(rows);
    return Coat(columns[0], columns[1], columns[2]);
}

fn leaf_plastic(leaf: Leaf, uv: vec2f) -> Plastic {
    return Plastic(
        leaf_number(leaf, 0u, uv),
        leaf_value(leaf, 1u, uv),
        leaf_value(leaf, 2u, uv),
        leaf_has(leaf, LEAF_NONLINEAR),
        bounds[coat_first(leaf)],
    );
}

fn leaf_rough_plastic(leaf: Leaf, uv: vec2f) -> RoughPlastic {
    return RoughPlastic(
        leaf_number(leaf, 0u, uv),
        leaf_number(leaf, 3u, uv),
        leaf_value(leaf, 1u, uv),
        leaf_value(leaf, 2u, uv),
        leaf_has(leaf, LEAF_NONLINEAR),
        leaf_distribution(leaf),
        !leaf_has(leaf, LEAF_ALL_NORMALS),
        bounds[coat_first(leaf)],
    );
}

#endif
#ifdef PRINCIPLED

fn leaf_principled(leaf: Leaf, uv: vec2f) -> Principled {
    var eta = leaf_number(leaf, 5u, uv);
    if leaf_has(leaf, LEAF_SPECULAR) {
        eta = eta_of_specular(eta);
    }
    return Principled(
        leaf_value(leaf, 0u, uv),
        leaf_number(leaf, 1u, uv),
        leaf_number(leaf, 2u, uv),
        leaf_number(leaf, 3u, uv),
        leaf_number(leaf, 4u, uv),
        eta,
        leaf_number(leaf, 6u, uv),
        leaf_number(leaf, 7u, uv),
        leaf_number(leaf, 8u, uv),
        leaf_number(leaf, 9u, uv),
        leaf_number(leaf, 10u, uv),
        leaf_number(leaf, 11u, uv),
        leaf.rates.xyz,
        leaf_least_share(leaf),
    );
}

#endif
#ifdef PRINCIPLED_THIN

fn leaf_principled_thin(leaf: Leaf, uv: vec2f) -> PrincipledThin {
    return PrincipledThin(
        leaf_value(leaf, 0u, uv),
        leaf_number(leaf, 1u, uv),
        leaf_number(leaf, 2u, uv),
        leaf_number(leaf, 3u, uv),
        leaf_number(leaf, 4u, uv),
        leaf_number(leaf, 5u, uv),
        leaf_number(leaf, 6u, uv),
        leaf_number(leaf, 7u, uv),
        leaf_number(leaf, 8u, uv),
        leaf_number(leaf, 9u, uv),
        leaf.rates,
        leaf_least_share(leaf),
    );
}

#endif

// The smooth lobes' value for radiance times the cosine of `wo`.
fn model_eval(leaf: Leaf, uv: vec2f, wi: vec3f, wo: vec3f) -> vec3f {
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_eval(leaf_rough_conductor(leaf, uv), wi, wo);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_eval(leaf_rough_dielectric(leaf, uv), wi, wo);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_eval(leaf_plastic(leaf, uv), wi, wo);
        }
        case LEAF_ROUGH_PLASTIC: {
            return rough_plastic_eval(leaf_rough_plastic(leaf, uv), leaf_coat(leaf, wi, wo), wi, wo);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_eval(leaf_principled(leaf, uv), wi, wo);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_eval(leaf_principled_thin(leaf, uv), wi, wo);
        }
#endif
        default: {
            return vec3f(0.0);
        }
    }
}

// The pdf by solid angle with which model_sample draws `wo` from a smooth lobe.
fn model_pdf(leaf: Leaf, uv: vec2f, wi: vec3f, wo: vec3f) -> f32 {
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_pdf(leaf_rough_conductor(leaf, uv), wi, wo);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_pdf(leaf_rough_dielectric(leaf, uv), wi, wo);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_pdf(leaf_plastic(leaf, uv), wi, wo);
        }
        case LEAF_ROUGH_PLASTIC: {
            return rough_plastic_pdf(leaf_rough_plastic(leaf, uv), coat_lookup(leaf, wi.z).x, wi, wo);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_pdf(leaf_principled(leaf, uv), wi, wo);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_pdf(leaf_principled_thin(leaf, uv), wi, wo);
        }
#endif
        default: {
            return 0.0;
        }
    }
}

// Draws a direction from uniform numbers; none where the path ends.
fn model_sample(leaf: Leaf, uv: vec2f, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_CONDUCTOR: {
            return conductor_sample(leaf_conductor(leaf, uv), wi, u1, u2);
        }
        case LEAF_ROUGH_CONDUCTOR: {
            return rough_conductor_sample(leaf_rough_conductor(leaf, uv), wi, u1, u2);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_DIELECTRIC: {
            return dielectric_sample(leaf_dielectric(leaf, uv), wi, u1, u2);
        }
        case LEAF_THIN_DIELECTRIC: {
            return thin_dielectric_sample(leaf_thin_dielectric(leaf, uv), wi, u1, u2);
        }
        case LEAF_ROUGH_DIELECTRIC: {
            return rough_dielectric_sample(leaf_rough_dielectric(leaf, uv), wi, u1, u2);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_sample(leaf_plastic(leaf, uv), wi, u1, u2);
        }
        case LEAF_ROUGH_PLASTIC: {
            return rough_plastic_sample(leaf_rough_plastic(leaf, uv), coat_lookup(leaf, wi.z).x, wi, u1, u2);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            return principled_sample(leaf_principled(leaf, uv), wi, u1, u2);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            return principled_thin_sample(leaf_principled_thin(leaf, uv), wi, u1, u2);
        }
#endif
        default: {
            return lobe_sample_none();
        }
    }
}

// The factor of a lobe that is not smooth.
fn model_discrete(leaf: Leaf, uv: vec2f, wi: vec3f, lobe: u32) -> vec3f {
    switch leaf.kind {
        case LEAF_NULL: {
            return vec3f(1.0);
        }
#ifdef CONDUCTORS
        case LEAF_CONDUCTOR: {
            return conductor_discrete(leaf_conductor(leaf, uv), wi, lobe);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_DIELECTRIC: {
            return dielectric_discrete(leaf_dielectric(leaf, uv), wi, lobe);
        }
        case LEAF_THIN_DIELECTRIC: {
            return thin_dielectric_discrete(leaf_thin_dielectric(leaf, uv), wi, lobe);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            return plastic_discrete(leaf_plastic(leaf, uv), wi, lobe);
        }
#endif
        default: {
            return vec3f(0.0);
        }
    }
}

#ifdef REPLAY

// Sends the derivative by a texture of a leaf.
fn leaf_send(leaf: Leaf, field: u32, uv: vec2f, d: vec3f) {
    texture_adjoint(texture_stencil(texture_record(leaf.first_texture + field), uv), d);
}

fn leaf_send_number(leaf: Leaf, field: u32, uv: vec2f, d: f32) {
    leaf_send(leaf, field, uv, vec3f(d, 0.0, 0.0));
}

// Sends the derivatives by three textures in a row.
fn leaf_send_three(leaf: Leaf, uv: vec2f, first: vec3f, second: vec3f, third: vec3f) {
    leaf_send(leaf, 0u, uv, first);
    leaf_send(leaf, 1u, uv, second);
    leaf_send(leaf, 2u, uv, third);
}

// Sends the derivatives of model_eval, from `d` by its value, to the textures.
fn model_eval_adjoint(leaf: Leaf, uv: vec2f, wi: vec3f, wo: vec3f, d: vec3f) {
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_ROUGH_CONDUCTOR: {
            let g = rough_conductor_eval_adjoint(leaf_rough_conductor(leaf, uv), wi, wo, d);
            leaf_send_three(leaf, uv, g.eta, g.k, g.specular);
            leaf_send_number(leaf, 3u, uv, g.alpha_u);
            leaf_send_number(leaf, 4u, uv, g.alpha_v);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_ROUGH_DIELECTRIC: {
            let g = rough_dielectric_eval_adjoint(leaf_rough_dielectric(leaf, uv), wi, wo, d);
            leaf_send_three(leaf, uv, vec3f(g.eta, 0.0, 0.0), g.reflection, g.transmission);
            leaf_send_number(leaf, 3u, uv, g.alpha_u);
            leaf_send_number(leaf, 4u, uv, g.alpha_v);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            let g = plastic_eval_adjoint(leaf_plastic(leaf, uv), wi, wo, d);
            leaf_send_three(leaf, uv, vec3f(g.eta, 0.0, 0.0), g.diffuse, g.specular);
        }
        case LEAF_ROUGH_PLASTIC: {
            let coat = leaf_coat(leaf, wi, wo);
            let g = rough_plastic_eval_adjoint(leaf_rough_plastic(leaf, uv), coat, wi, wo, d);
            leaf_send_three(leaf, uv, vec3f(g.eta, 0.0, 0.0), g.diffuse, g.specular);
            leaf_send_number(leaf, 3u, uv, g.alpha);
        }
#endif
#ifdef PRINCIPLED
        case LEAF_PRINCIPLED: {
            let g = principled_eval_adjoint(leaf_principled(leaf, uv), wi, wo, d);
            var by_index = g.eta;
            if leaf_has(leaf, LEAF_SPECULAR) {
                by_index *= eta_of_specular_slope(leaf_number(leaf, 5u, uv));
            }
            leaf_send(leaf, 0u, uv, g.base_color);
            leaf_send_number(leaf, 1u, uv, g.roughness);
            leaf_send_number(leaf, 2u, uv, g.anisotropic);
            leaf_send_number(leaf, 3u, uv, g.metallic);
            leaf_send_number(leaf, 4u, uv, g.spec_trans);
            leaf_send_number(leaf, 5u, uv, by_index);
            leaf_send_number(leaf, 6u, uv, g.spec_tint);
            leaf_send_number(leaf, 7u, uv, g.sheen);
            leaf_send_number(leaf, 8u, uv, g.sheen_tint);
            leaf_send_number(leaf, 9u, uv, g.flatness);
            leaf_send_number(leaf, 10u, uv, g.clearcoat);
            leaf_send_number(leaf, 11u, uv, g.clearcoat_gloss);
        }
#endif
#ifdef PRINCIPLED_THIN
        case LEAF_PRINCIPLED_THIN: {
            let g = principled_thin_eval_adjoint(leaf_principled_thin(leaf, uv), wi, wo, d);
            leaf_send(leaf, 0u, uv, g.base_color);
            leaf_send_number(leaf, 1u, uv, g.roughness);
            leaf_send_number(leaf, 2u, uv, g.anisotropic);
            leaf_send_number(leaf, 3u, uv, g.spec_trans);
            leaf_send_number(leaf, 4u, uv, g.eta);
            leaf_send_number(leaf, 5u, uv, g.spec_tint);
            leaf_send_number(leaf, 6u, uv, g.sheen);
            leaf_send_number(leaf, 7u, uv, g.sheen_tint);
            leaf_send_number(leaf, 8u, uv, g.flatness);
            leaf_send_number(leaf, 9u, uv, g.diff_trans);
        }
#endif
        default: {}
    }
}

// Sends the derivatives of model_discrete, from `d` by its value, to the textures.
fn model_discrete_adjoint(leaf: Leaf, uv: vec2f, wi: vec3f, lobe: u32, d: vec3f) {
    switch leaf.kind {
#ifdef CONDUCTORS
        case LEAF_CONDUCTOR: {
            let g = conductor_discrete_adjoint(leaf_conductor(leaf, uv), wi, lobe, d);
            leaf_send_three(leaf, uv, g.eta, g.k, g.specular);
        }
#endif
#ifdef DIELECTRICS
        case LEAF_DIELECTRIC: {
            let g = dielectric_discrete_adjoint(leaf_dielectric(leaf, uv), wi, lobe, d);
            leaf_send_three(leaf, uv, vec3f(g.eta, 0.0, 0.0), g.reflection, g.transmission);
        }
        case LEAF_THIN_DIELECTRIC: {
            let g = thin_dielectric_discrete_adjoint(leaf_thin_dielectric(leaf, uv), wi, lobe, d);
            leaf_send_three(leaf, uv, vec3f(g.eta, 0.0, 0.0), g.reflection, g.transmission);
        }
#endif
#ifdef PLASTICS
        case LEAF_PLASTIC: {
            let g = plastic_discrete_adjoint(leaf_plastic(leaf, uv), wi, lobe, d);
            leaf_send_three(leaf, uv, vec3f(g.eta, 0.0, 0.0), g.diffuse, g.specular);
        }
#endif
        default: {}
    }
}

#endif
