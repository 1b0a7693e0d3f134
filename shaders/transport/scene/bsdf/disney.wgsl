// Factors that the principled BSDFs share (Burley2012, Burley2015).

#import transport/scene/bsdf/conductor
#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local

// Roughnesses of the principled BSDFs' lobes are at least this.
const LEAST_ALPHA: f32 = 1e-3;
// Luminances of linear sRGB.
const LUMINANCE: vec3f = vec3f(0.212671, 0.715160, 0.072169);

// (1 - t) a + t b
fn disney_lerp(a: f32, b: f32, t: f32) -> f32 {
    return a + t * (b - a);
}

// The microfacets' roughnesses along the two tangents.
fn disney_alpha(roughness: f32, anisotropic: f32) -> vec2f {
    let ratio = disney_aspect(anisotropic);
    let square = roughness * roughness;
    return max(vec2f(square / ratio, square * ratio), vec2f(LEAST_ALPHA));
}

fn disney_aspect(anisotropic: f32) -> f32 {
    return sqrt(1.0 - 0.9 * anisotropic);
}

// A colour over its luminance; white for black.
fn disney_tint(color: vec3f) -> vec3f {
    let luminance = dot(color, LUMINANCE);
    if luminance > 0.0 {
        return color / luminance;
    }
    return vec3f(1.0);
}

// Quantities of a pair of directions on the upper side that the diffuse lobes and sheen use.
struct Diffusion {
    wi: f32,
    wo: f32,
    // Schlick's weights of the two directions.
    weights: vec2f,
    // Twice the squared cosine between a direction and the normal halfway.
    retro: f32,
    // Schlick's weight at the normal halfway.
    sheen: f32,
}

fn diffusion_new(wi: vec3f, wo: vec3f) -> Diffusion {
    let cosine = mirror_cosine(wi, wo);
    let weights = vec2f(schlick_weight(wi.z), schlick_weight(wo.z));
    return Diffusion(wi.z, wo.z, weights, 2.0 * cosine * cosine, schlick_weight(cosine));
}

// The shape of the diffuse lobe with its retroreflection, blended by `flatness` from 0 to 1 with an approximation of
// subsurface scattering; and its derivatives by roughness and by flatness.
fn diffusion_shape_slopes(at: Diffusion, roughness: f32, flatness: f32) -> vec3f {
    let fi = at.weights.x;
    let fo = at.weights.y;
    let both = fi * fo;
    let retro = at.retro * roughness;
    let plain = (1.0 - 0.5 * fi) * (1.0 - 0.5 * fo) + retro * (fi + fo + both * (retro - 1.0));
    let plain_slope = at.retro * (fi + fo + both * (retro + retro - 1.0));
    let grazing = 0.5 * retro - 1.0;
    let i = 1.0 + fi * grazing;
    let o = 1.0 + fo * grazing;
    let spread = 1.25 * (1.0 / (at.wi + at.wo) - 0.5);
    let flat_shape = spread * i * o + 0.625;
    let flat_slope = spread * 0.5 * at.retro * (fi * o + fo * i);
    return vec3f(
        disney_lerp(plain, flat_shape, flatness),
        disney_lerp(plain_slope, flat_slope, flatness),
        flat_shape - plain,
    );
}

#ifdef REPLAY

// The derivatives by `roughness` and by `anisotropic`, from those by disney_alpha's results.
fn disney_alpha_adjoint(roughness: f32, anisotropic: f32, by_alpha: vec2f) -> vec2f {
    let ratio = disney_aspect(anisotropic);
    let square = roughness * roughness;
    let d = select(by_alpha, vec2f(0.0), vec2f(square / ratio, square * ratio) < vec2f(LEAST_ALPHA));
    let by_roughness = 2.0 * roughness * (d.x / ratio + d.y * ratio);
    let by_aspect = square * (d.y - d.x / (ratio * ratio));
    return vec2f(by_roughness, by_aspect * -0.45 / ratio);
}

// The derivatives by the colour, from those by disney_tint's result. Black has none.
fn disney_tint_adjoint(color: vec3f, d: vec3f) -> vec3f {
    let luminance = dot(color, LUMINANCE);
    if luminance > 0.0 {
        return d / luminance - LUMINANCE * (dot(d, color) / (luminance * luminance));
    }
    return vec3f(0.0);
}

#ifdef SLOPES

// The derivatives of the shape and of the sheen by the cosine between a direction and the normal halfway, `cosine`.
fn diffusion_by_mirror_cosine(at: Diffusion, roughness: f32, flatness: f32, cosine: f32) -> vec2f {
    // The shape depends on roughness and `retro`, twice the squared cosine, through their product alone.
    let by_roughness = diffusion_shape_slopes(at, roughness, flatness).y;
    return vec2f(2.0 * by_roughness * roughness / cosine, schlick_slope(cosine));
}

// The derivatives of the shape by the cosines of the two directions.
fn diffusion_shape_by_cosines(at: Diffusion, roughness: f32, flatness: f32) -> vec2f {
    return vec2f(
        diffusion_shape_by(at, roughness, flatness, at.wi, at.weights),
        diffusion_shape_by(at, roughness, flatness, at.wo, at.weights.yx),
    );
}

// That by one of the cosines, from the Schlick weights of this and of the other direction.
fn diffusion_shape_by(at: Diffusion, roughness: f32, flatness: f32, cosine: f32, weights: vec2f) -> f32 {
    let retro = at.retro * roughness;
    let grazing = 0.5 * retro - 1.0;
    let sum = 1.0 / (at.wi + at.wo);
    let spread = 1.25 * (sum - 0.5);
    let slope = schlick_slope(cosine);
    let other = 1.0 + weights.y * grazing;
    let plain = slope * (-0.5 * (1.0 - 0.5 * weights.y) + retro * (1.0 + weights.y * (retro - 1.0)));
    let flat_slope = (-1.25 * sum * sum * (1.0 + weights.x * grazing) + spread * grazing * slope) * other;
    return disney_lerp(plain, flat_slope, flatness);
}

#endif
#endif
