// BSDFs: values, pdfs, sampling, and the derivatives by their textures.
//
// A BSDF is on each side a mixture of leaves: its value is the sum of w f, where the weight w of a leaf is a product of
// textures' values and f is the leaf's own. Values include the cosine with the shading normal. A leaf is sampled with a
// probability that is detached from its weight. Smooth lobes share a pdf, that of the mixture; a lobe that sends light in
// one direction only has a probability.

#import transport/rays/sampler
#import transport/scene/bsdf/diffuse
#ifdef MODELS
#import transport/scene/bsdf/leaf
#endif
#import transport/scene/bsdf/local
#import transport/scene/facing
#import transport/scene/interaction
#import transport/scene/records
#import transport/scene/texture

// The share of samples that choose leaves uniformly, where a run may change weights: the derivative by a leaf's weight comes
// from samples of that leaf, also where the weight is zero.
const EXPLORED: f32 = 0.125;

// A BSDF's value over its smooth lobes, their pdf, and the reflectance if it is a diffuse leaf alone.
struct BsdfValue {
    value: vec3f,
    pdf: f32,
    reflectance: vec3f,
}

// A sampled direction in the world and in the local frame, the probability of a lobe that is not smooth, the leaf that was
// sampled and its lobe, and the index on the side of the direction over that on the side that the path comes from; the
// path ends unless `lit`.
struct BsdfSample {
    direction: vec3f,
    wo: vec3f,
    probability: f32,
    leaf: u32,
    lobe: u32,
    eta: f32,
    lit: bool,
}

// Probabilities of leaves at a point: the sum of their weights, at least one where light may pass straight on, and the least probability that each has whatever its weight.
struct Choice {
    total: f32,
    least: f32,
#ifdef RELIEFS
    // A bit for each of the first leaves that must not be chosen: a leaf for one side of a relief (LEAF_FRONT or LEAF_BACK)
    // whose side is turned away from the path.
    averted: u32,
#endif
}

#ifdef RELIEFS
// How many leaves of a side have a bit in `averted`; any further one may be chosen.
const FACED: u32 = 32u;
#endif

fn may_be_chosen(chances: Choice, number: u32) -> bool {
#ifdef RELIEFS
    return number >= FACED || ((chances.averted >> number) & 1u) == 0u;
#else
    return true;
#endif
}

// How many of `leaves` may be chosen.
fn choice_count(chances: Choice, leaves: u32) -> u32 {
#ifdef RELIEFS
    return leaves - countOneBits(chances.averted);
#else
    return leaves;
#endif
}

#ifdef MIXTURES

// A factor of a leaf's weight.
fn factor_value(factor: Factor, point: SurfacePoint) -> f32 {
    let x = texture_value(factor.factor_texture, point).x;
    return select(x, 1.0 - x, factor.complement == 1u);
}

#endif

// A leaf's weight: the product of its factors, which only the leaves of mixtures have.
fn leaf_weight(leaf: Leaf, point: SurfacePoint) -> f32 {
    var weight = 1.0;
#ifdef MIXTURES
    for (var i = 0u; i < leaf.factors; i++) {
        weight *= factor_value(factor_record(leaf.first_factor + i), point);
    }
#endif
    return weight;
}

// Whether the leaf is chosen without a random number. A mask seen from the side where what it masks has no lobe is the exception
// among single leaves: its null leaf is chosen with the probability of its weight, else the path ends as if absorbed, since a
// picture's alpha counts the paths that go straight on.
fn is_certain(at: Interaction) -> bool {
#ifndef SEVERAL
    return true;
#else
    return at.leaves.y == 1u && (!passes_straight(at) || leaf_record(at.leaves.x).factors == 0u);
#endif
}

fn passes_straight(at: Interaction) -> bool {
    return (at.flags & BSDF_NULL) != 0u;
}

fn choice(at: Interaction) -> Choice {
    var chances: Choice;
    chances.least = 1.0;
    if is_certain(at) {
        return chances;
    }
    for (var i = 0u; i < at.leaves.y; i++) {
        let leaf = leaf_record(at.leaves.x + i);
#ifdef RELIEFS
        if i < FACED && (leaf.flags & (LEAF_FRONT | LEAF_BACK)) != 0u && !facing(leaf, at).lit {
            chances.averted |= 1u << i;
            continue;
        }
#endif
        chances.total += leaf_weight(leaf, at.hit.point);
    }
    let each = 1.0 / f32(max(choice_count(chances, at.leaves.y), 1u));
    chances.least = select(0.0, EXPLORED * each, (at.flags & BSDF_VARIES) != 0u);
    if chances.total <= 0.0 {
        chances.least = each;
    } else if passes_straight(at) {
        // Where leaves are missing on this side, the probabilities of the others are their weights.
        chances.total = max(chances.total, 1.0);
    }
    return chances;
}

// The probability with which a leaf of this weight is chosen, if it may be; `leaves` is their number.
fn choice_probability(chances: Choice, weight: f32, leaves: u32) -> f32 {
    var chosen = 0.0;
    if chances.total > 0.0 {
        chosen = weight / chances.total;
    }
    return chances.least + (1.0 - chances.least * f32(choice_count(chances, leaves))) * chosen;
}

// Whether the leaf is diffuse in the surface's own frame.
fn is_lambertian(leaf: Leaf) -> bool {
    return leaf.kind == LEAF_DIFFUSE && leaf.relief == NONE;
}

// The value of a leaf for the local direction `wo`: that of its smooth lobes, with their pdf, or the factor of another lobe.
fn leaf_eval(leaf: Leaf, at: Interaction, lobe: u32, wo: vec3f) -> BsdfValue {
    let faced = facing(leaf, at);
    let seen = facing_see(faced, leaf, wo);
    var found = BsdfValue(vec3f(0.0), 0.0, vec3f(0.0));
    if !seen.lit {
        return found;
    }
    if is_lambertian(leaf) {
        found.reflectance = texture_value(leaf.first_texture, at.hit.point);
        found.value = diffuse_eval(found.reflectance, seen.wo);
        found.pdf = diffuse_pdf(seen.wo);
        return found;
    }
#ifdef DISCRETE
    if leaf.kind == LEAF_NULL {
        found.value = vec3f(select(seen.factor, 0.0, lobe == LOBE_SMOOTH));
        return found;
    }
#endif
#ifdef MODELS
    let v = leaf_values(leaf, at.hit.point);
#ifdef DISCRETE
    if lobe != LOBE_SMOOTH {
        found.value = model_discrete(leaf, v, faced.wi, lobe) * seen.factor;
        return found;
    }
#endif
    found.value = model_eval(leaf, v, faced.wi, seen.wo) * seen.factor;
    found.pdf = model_pdf(leaf, v, faced.wi, seen.wo);
#endif
    return found;
}

// The value for the local direction `wo`: for LOBE_SMOOTH over the smooth lobes of all leaves, with the pdf with which
// bsdf_sample draws that direction; for another lobe that of `sampled_leaf` alone, without a pdf.
fn bsdf_eval(at: Interaction, chances: Choice, lobe: u32, sampled_leaf: u32, wo: vec3f) -> BsdfValue {
    var sum = BsdfValue(vec3f(0.0), 0.0, vec3f(0.0));
    for (var i = 0u; i < at.leaves.y; i++) {
#ifdef DISCRETE
        if lobe != LOBE_SMOOTH && i != sampled_leaf {
            continue;
        }
#endif
        let leaf = leaf_record(at.leaves.x + i);
        let weight = leaf_weight(leaf, at.hit.point);
        let found = leaf_eval(leaf, at, lobe, wo);
        sum.value += found.value * weight;
        sum.pdf += choice_probability(chances, weight, at.leaves.y) * found.pdf;
        sum.reflectance = found.reflectance;
    }
    return sum;
}

// Samples a leaf, then a direction.
fn bsdf_sample(at: Interaction, chances: Choice, sampler: ptr<function, Sampler>) -> BsdfSample {
    var sampled = BsdfSample(at.incoming, -at.wi, 1.0, 0u, LOBE_STRAIGHT, 1.0, false);
    if !choose_leaf(at, chances, sampler, &sampled) {
        return sampled;
    }
    let leaf = leaf_record(at.leaves.x + sampled.leaf);
    let drawn = leaf_sample(leaf, at, sampler);
    sampled.lit = drawn.pdf > 0.0;
    sampled.lobe = drawn.lobe;
    sampled.eta = drawn.eta;
    sampled.wo = drawn.direction;
    if drawn.lobe != LOBE_SMOOTH {
        sampled.probability *= drawn.pdf;
    }
    if drawn.lobe != LOBE_STRAIGHT {
        sampled.direction = to_world(at, sampled.wo);
    }
    return sampled;
}

// Samples a local direction from a leaf. Of a smooth lobe's pdf only the sign counts: zero where there is no sample.
fn leaf_sample(leaf: Leaf, at: Interaction, sampler: ptr<function, Sampler>) -> LobeSample {
    let faced = facing(leaf, at);
#ifdef STRAIGHT
    if leaf.kind == LEAF_NULL {
        return LobeSample(-at.wi, select(0.0, 1.0, facing_passes(faced)), LOBE_STRAIGHT, 1.0);
    }
#endif
    let first = sampler_draw(sampler);
    let second = sampler_draw(sampler);
    var drawn = lobe_sample_none();
    if is_lambertian(leaf) {
        drawn = LobeSample(diffuse_sample(vec2f(first, second)), 1.0, LOBE_SMOOTH, 1.0);
    } else {
#ifdef MODELS
        let v = leaf_values(leaf, at.hit.point);
        drawn = model_sample(leaf, v, faced.wi, first, vec2f(second, sampler_draw(sampler)));
#endif
    }
    drawn.direction = facing_leave(faced, leaf, drawn.direction);
    if all(drawn.direction == vec3f(0.0)) {
        return lobe_sample_none();
    }
    return drawn;
}

// How far the sum of all probabilities may be below one by rounding; if it is less, leaves are missing.
const ROUNDING_OF_SUM: f32 = 1e-5;

// Chooses a leaf with its probability; false if there is none, or the path ends instead.
fn choose_leaf(at: Interaction, chances: Choice, sampler: ptr<function, Sampler>, sampled: ptr<function, BsdfSample>) -> bool {
    if at.leaves.y == 0u {
        return false;
    }
    if is_certain(at) {
        return true;
    }
    var left = sampler_draw(sampler);
    var found = false;
    for (var i = 0u; i < at.leaves.y; i++) {
        if !may_be_chosen(chances, i) {
            continue;
        }
        let weight = leaf_weight(leaf_record(at.leaves.x + i), at.hit.point);
        let probability = choice_probability(chances, weight, at.leaves.y);
        if probability > 0.0 {
            (*sampled).leaf = i;
            (*sampled).probability = probability;
            found = true;
            if left < probability {
                return true;
            }
        }
        left -= probability;
    }
    return found && left < ROUNDING_OF_SUM;
}

// The factor on the path's throughput for a sample: the value of its lobe, which was `found`, over its pdf or probability.
fn bsdf_weight(at: Interaction, sampled: BsdfSample, found: BsdfValue, pdf: f32) -> vec3f {
    let leaf = leaf_record(at.leaves.x + sampled.leaf);
    // The value of a diffuse leaf is its pdf times the reflectance.
    if leaf.factors == 0u && is_lambertian(leaf) {
        return found.reflectance;
    }
    return found.value * (1.0 / pdf);
}

#ifdef STRAIGHT

// Whether a leaf lets light pass straight through.
fn leaf_is_straight(leaf: Leaf) -> bool {
    return leaf.kind == LEAF_NULL || leaf.kind == LEAF_THIN_DIELECTRIC;
}

// The share of light that passes straight through.
fn null_transmission(at: Interaction) -> vec3f {
    var sum = vec3f(0.0);
    for (var i = 0u; i < at.leaves.y; i++) {
        let leaf = leaf_record(at.leaves.x + i);
        if leaf_is_straight(leaf) {
            sum += leaf_weight(leaf, at.hit.point) * straight_eval(leaf, at);
        }
    }
    return sum;
}

// The same as leaf_eval for LOBE_STRAIGHT, of a leaf that has this lobe: without the models of all others, which compilers
// would write out once more.
fn straight_eval(leaf: Leaf, at: Interaction) -> vec3f {
    let faced = facing(leaf, at);
    let seen = facing_see(faced, leaf, -at.wi);
    if !seen.lit {
        return vec3f(0.0);
    }
#ifdef DIELECTRICS
    if leaf.kind == LEAF_THIN_DIELECTRIC {
        let thin = leaf_thin_dielectric(leaf, leaf_values(leaf, at.hit.point));
        return thin_dielectric_discrete(thin, faced.wi, LOBE_STRAIGHT) * seen.factor;
    }
#endif
    return vec3f(seen.factor);
}

#endif

// Whether paths can end at the surface: it has no leaf, or a single diffuse one that is black and stays so.
fn bsdf_is_black(at: Interaction) -> bool {
    if at.leaves.y != 1u {
        return at.leaves.y == 0u;
    }
    let leaf = leaf_record(at.leaves.x);
    if !is_lambertian(leaf) || leaf.factors > 0u {
        return false;
    }
    let varies = mode != PRIMAL && (at.flags & BSDF_VARIES) != 0u;
    return !varies && all(texture_value(leaf.first_texture, at.hit.point) == vec3f(0.0));
}

#ifdef REPLAY

// Sends `d`, the derivative by bsdf_eval, to the textures.
fn bsdf_adjoint(at: Interaction, wo: vec3f, lobe: u32, sampled_leaf: u32, d: vec3f) {
    for (var i = 0u; i < at.leaves.y; i++) {
#ifdef DISCRETE
        if lobe != LOBE_SMOOTH && i != sampled_leaf {
            continue;
        }
#endif
        leaf_adjoint(leaf_record(at.leaves.x + i), at, lobe, wo, d);
    }
}

// Sends `d`, the derivative by leaf_eval times the leaf's weight, to the textures.
fn leaf_adjoint(leaf: Leaf, at: Interaction, lobe: u32, wo: vec3f, d: vec3f) {
    let faced = facing(leaf, at);
    let seen = facing_see(faced, leaf, wo);
    if !seen.lit {
        return;
    }
    let by_value = d * leaf_weight(leaf, at.hit.point);
    // The value of leaf_eval without the relief's shadowing, and the derivatives by rotating both directions (the torque).
    var value = vec3f(0.0);
    var by_turning = vec3f(0.0);
    if is_lambertian(leaf) {
        let texels = stencil(leaf.first_texture, at.hit.point);
        texture_adjoint(texels, diffuse_adjoint(seen.wo, by_value));
#ifdef MIXTURES
        value = diffuse_eval(texture_eval(texels), seen.wo);
#endif
#ifdef DISCRETE
    } else if leaf.kind == LEAF_NULL {
        value = vec3f(select(1.0, 0.0, lobe == LOBE_SMOOTH));
#endif
#ifdef MODELS
    } else {
        let v = leaf_values(leaf, at.hit.point);
        let by_model = by_value * seen.factor;
        var slopes: Values;
        if lobe == LOBE_SMOOTH {
            slopes = model_eval_adjoint(leaf, v, faced.wi, seen.wo, by_model);
#ifdef SEVERAL
            value = model_eval(leaf, v, faced.wi, seen.wo);
#endif
#ifdef RELIEFS
            if relief_is_wanted(leaf, at.hit.point) {
                by_turning = torque(faced.wi, seen.wo, model_gradients(leaf, v, faced.wi, seen.wo, by_model));
            }
#endif
#ifdef DISCRETE
        } else {
            slopes = model_discrete_adjoint(leaf, v, faced.wi, lobe, by_model);
#ifdef SEVERAL
            value = model_discrete(leaf, v, faced.wi, lobe);
#endif
#endif
        }
        values_adjoint(leaf, at.hit.point, slopes);
#endif
    }
#ifdef RELIEFS
    // Normals of smooth glass and mirrors turn the path: chain.wgsl sends derivatives by these.
    if (lobe == LOBE_SMOOTH || leaf.kind == LEAF_NULL) && relief_is_wanted(leaf, at.hit.point) {
        facing_adjoint(faced, leaf, at, wo, by_turning, dot(by_value, value));
    }
#endif
#ifdef MIXTURES
    if leaf.factors > 0u {
        weight_adjoint(leaf, at.hit.point, dot(d, value * seen.factor));
    }
#endif
}

#ifdef RELIEFS

// Whether derivatives by a leaf's relief are needed.
fn relief_is_wanted(leaf: Leaf, point: SurfacePoint) -> bool {
    return leaf.relief != NONE && parameter_tuned(stencil(leaf.relief, point).slot);
}

#endif

#ifdef MIXTURES

// Sends `d`, the derivative by a leaf's weight, to the textures of its factors.
fn weight_adjoint(leaf: Leaf, point: SurfacePoint, d: f32) {
    for (var i = 0u; i < leaf.factors; i++) {
        let factor = factor_record(leaf.first_factor + i);
        texture_adjoint(stencil(factor.factor_texture, point), vec3f(weight_slope(leaf, point, i, d), 0.0, 0.0));
    }
}

// The derivative by the texture of one of the factors.
fn weight_slope(leaf: Leaf, point: SurfacePoint, index: u32, d: f32) -> f32 {
    var slope = select(d, -d, factor_record(leaf.first_factor + index).complement == 1u);
    // The product of the other factors: one of them may be zero.
    for (var j = 0u; j < leaf.factors; j++) {
        if j != index {
            slope *= factor_value(factor_record(leaf.first_factor + j), point);
        }
    }
    return slope;
}

#endif
#ifdef STRAIGHT

// Sends `d`, the derivative by null_transmission.
fn null_adjoint(at: Interaction, d: vec3f) {
    for (var i = 0u; i < at.leaves.y; i++) {
        let leaf = leaf_record(at.leaves.x + i);
        if leaf_is_straight(leaf) {
            straight_adjoint(leaf, at, d);
        }
    }
}

// The same as leaf_adjoint for LOBE_STRAIGHT, of a leaf that has this lobe: sends `d`, the derivative by straight_eval times the
// leaf's weight.
fn straight_adjoint(leaf: Leaf, at: Interaction, d: vec3f) {
    let faced = facing(leaf, at);
    let seen = facing_see(faced, leaf, -at.wi);
    if !seen.lit {
        return;
    }
    let by_value = d * leaf_weight(leaf, at.hit.point);
    var value = vec3f(1.0);
#ifdef DIELECTRICS
    if leaf.kind == LEAF_THIN_DIELECTRIC {
        let thin = leaf_thin_dielectric(leaf, leaf_values(leaf, at.hit.point));
        value = thin_dielectric_discrete(thin, faced.wi, LOBE_STRAIGHT);
        let g = thin_dielectric_discrete_adjoint(thin, faced.wi, LOBE_STRAIGHT, by_value * seen.factor);
        var slopes: Values;
        slopes[0] = slope_of(g.eta);
        slopes[1] = g.reflection;
        slopes[2] = g.transmission;
        values_adjoint(leaf, at.hit.point, slopes);
    }
#endif
#ifdef RELIEFS
    if leaf.kind == LEAF_NULL && relief_is_wanted(leaf, at.hit.point) {
        facing_adjoint(faced, leaf, at, -at.wi, vec3f(0.0), by_value.x + by_value.y + by_value.z);
    }
#endif
#ifdef MIXTURES
    if leaf.factors > 0u {
        weight_adjoint(leaf, at.hit.point, dot(d, value * seen.factor));
    }
#endif
}

#endif
#endif
