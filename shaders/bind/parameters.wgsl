// Values of the parameters: density and emitter in one buffer, spherical-harmonics coefficients in another.

@group(0) @binding(4) var<storage, read> values: array<f32>;
@group(0) @binding(5) var<storage, read> values_sh: array<f32>;

// Degree of the spherical harmonics: a pipeline constant, so that loops over coefficients unroll.
override SH_DEGREE: u32 = 0u;
override SH_COEFFICIENTS: u32 = (SH_DEGREE + 1u) * (SH_DEGREE + 1u);
override SH_CHANNELS: u32 = 3u * (SH_DEGREE + 1u) * (SH_DEGREE + 1u);
