//! Materials by name: indices of refraction, and complex indices of conductors for red, green and blue of linear sRGB.

/// Indices of refraction at visible wavelengths.
const INDICES: &[(&str, f32)] = &[
    ("vacuum", 1.0),
    ("helium", 1.000036),
    ("hydrogen", 1.000132),
    ("air", 1.000277),
    ("carbon dioxide", 1.00045),
    ("water ice", 1.31),
    ("water", 1.333),
    ("acetone", 1.36),
    ("ethanol", 1.361),
    ("fused quartz", 1.458),
    ("carbon tetrachloride", 1.461),
    ("pyrex", 1.47),
    ("glycerol", 1.4729),
    ("acrylic glass", 1.49),
    ("polypropylene", 1.49),
    ("benzene", 1.501),
    ("bk7", 1.5046),
    ("silicone oil", 1.52045),
    ("sodium chloride", 1.544),
    ("amber", 1.55),
    ("pet", 1.575),
    ("bromine", 1.661),
    ("diamond", 2.419),
];

/// A conductor's complex index of refraction: real parts of red, green and blue, then imaginary parts.
pub type ComplexIndex = [[f32; 3]; 2];

/// What `none` means: all light is reflected.
pub const PERFECT_MIRROR: ComplexIndex = [[0.0; 3], [1.0; 3]];

/// Complex indices of refraction of conductors.
const CONDUCTORS: &[(&str, ComplexIndex)] = &[
    ("none", PERFECT_MIRROR),
    ("a-C", [[2.9441, 2.2271, 1.9682], [0.8875, 0.7993, 0.8153]]),
    ("Ag", [[0.1553, 0.1167, 0.1384], [4.8283, 3.1222, 2.1469]]),
    ("Al", [[1.6575, 0.8804, 0.5212], [9.2238, 6.2695, 4.8370]]),
    ("Au", [[0.1430, 0.3753, 1.4421], [3.9830, 2.3856, 1.6034]]),
    ("Be", [[4.1850, 3.1850, 2.7841], [3.8355, 3.0101, 2.8690]]),
    ("Cr", [[4.3697, 2.9165, 1.6549], [5.2066, 4.2313, 3.7547]]),
    ("Cu", [[0.2010, 0.9238, 1.1022], [3.9133, 2.4531, 2.1421]]),
    ("Cu2O", [[3.5518, 2.9499, 2.7519], [0.1142, 0.1939, 0.6061]]),
    ("Hg", [[2.3989, 1.4400, 0.9096], [6.3276, 4.3719, 3.4218]]),
    ("Ir", [[3.0863, 2.0822, 1.6179], [5.5922, 4.0671, 3.2673]]),
    ("Li", [[0.2658, 0.1956, 0.2210], [3.5402, 2.3111, 1.6686]]),
    ("Mo", [[4.4840, 3.5251, 2.7763], [4.1114, 3.4208, 3.1506]]),
    ("Rh", [[2.5858, 1.8602, 1.5543], [6.7823, 4.7030, 3.9761]]),
    ("TiN", [[1.6485, 1.1505, 1.3798], [3.3683, 1.9435, 1.1021]]),
    ("W", [[4.3708, 3.3003, 2.9984], [3.5006, 2.6049, 2.2732]]),
];

/// The entry of this name, or a sentence with all names.
fn look_up<T: Copy>(table: &[(&str, T)], what: &str, name: &str, instead: &str) -> Result<T, String> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        format!(
            "there is no {what} `{name}`; expected {instead} or one of {}",
            names.join(", ")
        )
    })
}

/// The index of refraction of a material.
///
/// # Errors
/// The material is not known: a sentence that lists those that are.
pub fn index_of_refraction(name: &str) -> Result<f32, String> {
    look_up(
        INDICES,
        "index of refraction of",
        &name.to_ascii_lowercase(),
        "a number",
    )
}

/// The complex index of a conductor.
///
/// # Errors
/// The conductor is not known: a sentence that lists those that are.
pub fn conductor(name: &str) -> Result<ComplexIndex, String> {
    look_up(CONDUCTORS, "conductor", name, "eta and k")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn materials_are_found_by_name() {
        assert_eq!(index_of_refraction("bk7"), Ok(1.5046));
        assert_eq!(index_of_refraction("water ice"), Ok(1.31));
        assert_eq!(conductor("none"), Ok([[0.0; 3], [1.0; 3]]));
        assert_eq!(conductor("Au").map(|[eta, _]| eta[0]), Ok(0.1430));
        for (list, found) in [
            (INDICES.len(), index_of_refraction("bk8").err()),
            (CONDUCTORS.len(), conductor("gold").err()),
        ] {
            let sentence = found.expect("no such material");
            assert_eq!(sentence.matches(',').count() + 1, list, "{sentence}");
        }
    }
}
