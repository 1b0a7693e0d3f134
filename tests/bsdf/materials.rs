//! Named conductors and glass against known reflectances.

use prbopt::scene::materials::{conductor, index_of_refraction};
use prbopt::transport::scene::bsdf::fresnel::{fresnel, fresnel_conductor};

/// Reflectances at normal incidence, to 6e-4 (glass to 1e-4).
#[test]
fn conductors_have_their_colours() {
    for (name, expected) in [
        ("Al", [0.928, 0.918, 0.919]),
        ("Ag", [0.975, 0.958, 0.906]),
        ("Au", [0.967, 0.802, 0.324]),
        ("Cu", [0.952, 0.620, 0.511]),
        ("Cr", [0.688, 0.649, 0.687]),
        ("W", [0.575, 0.478, 0.433]),
        ("Hg", [0.814, 0.770, 0.763]),
        ("TiN", [0.641, 0.452, 0.198]),
        ("none", [1.0, 1.0, 1.0]),
    ] {
        let [eta, k] = conductor(name).expect("it is known");
        for c in 0..3 {
            let found = fresnel_conductor(1.0, f64::from(eta[c]), f64::from(k[c]));
            assert!(
                (found - expected[c]).abs() < 6e-4,
                "{name}: {found}, not {}",
                expected[c]
            );
        }
    }
    let glass = index_of_refraction("bk7").expect("it is known") / index_of_refraction("air").expect("it is known");
    assert!((fresnel(1.0, f64::from(glass)) - 0.04054).abs() < 1e-4);
}
