//! Samplers: the default number of samples per pixel. All types of Mitsuba are read, and all give the same random numbers: a
//! scrambled Sobol sequence for film positions and first vertices of paths, else independent ones.

use super::object::Object;
use super::vocabulary::Class;

/// The largest number of samples per pixel.
pub(super) const MAX_SPP: u32 = 1 << 20;

/// The `sample_count` of the sampler nested in `object`, or Mitsuba's default of 4.
pub(super) fn nested(object: &mut Object<'_>) -> u32 {
    let Some(mut sampler) = object.nested(Class::Sampler) else {
        return 4;
    };
    let spp = sampler.integer("sample_count", 4);
    sampler.only("seed", 0);
    if matches!(sampler.name, "stratified" | "multijitter" | "orthogonal") {
        sampler.boolean("jitter", true);
    }
    if sampler.name == "orthogonal" {
        sampler.integer("strength", 2);
    }
    if sampler.name != "independent" {
        let warning = "a `stratified`, `multijitter`, `orthogonal` or `ldsampler` is read as `independent` is: the samples of a pixel \
                       are spread over the film and at first vertices by a scrambled sequence of Sobol's, whichever is named";
        sampler.value.context.warn_once(warning);
    }
    sampler.finish();
    spp
}
