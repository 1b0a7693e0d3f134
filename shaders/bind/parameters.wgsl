// Values of the parameters, in one buffer, or in two if they do not fit into one (TWO_BANKS). The highest bit of an address is
// the number of its buffer. A buffer of few values may be read as a uniform one (UNIFORM_VALUES).

#import common/layout

#ifdef UNIFORM_VALUES
@group(0) @binding(4) var<uniform> values_0: array<vec4f, UNIFORM_VECTORS>;
#else
@group(0) @binding(4) var<storage, read> values_0: array<f32>;
#endif
#ifdef TWO_BANKS
@group(0) @binding(5) var<storage, read> values_1: array<f32>;
#endif

// Degree of the spherical harmonics: a pipeline constant, so that loops over coefficients unroll.
override SH_DEGREE: u32 = 0u;
override SH_COEFFICIENTS: u32 = (SH_DEGREE + 1u) * (SH_DEGREE + 1u);
override SH_CHANNELS: u32 = 3u * (SH_DEGREE + 1u) * (SH_DEGREE + 1u);
// Whether loops over coefficients unroll, which keeps the basis in registers. Software adapters have no registers to spare for it,
// and their drivers take much longer to compile unrolled loops.
override UNROLLS: bool = true;

// The value at an address.
fn value(at: u32) -> f32 {
#ifdef TWO_BANKS
    if at >= SECOND_BANK {
        return values_1[at - SECOND_BANK];
    }
#endif
#ifdef UNIFORM_VALUES
    return values_0[at / 4u][at % 4u];
#else
    return values_0[at];
#endif
}

// The values at an address and the two behind it, which are in the same buffer.
fn value_color(at: u32) -> vec3f {
    return vec3f(value(at), value(at + 1u), value(at + 2u));
}
