//! Warnings of what a picture or the end of a run will not show.

use super::worlds::objects;
use super::{edited, read};

/// Media that are nowhere or in a small part of their shape, and lights that no path finds.
#[test]
fn what_will_not_be_seen_is_warned_of() {
    let smoke = |shape: &str, volume: &str| {
        format!(
            r#""lamp": {{"type": "constant"}}, "smoke": {{"type": {shape}, "bsdf": {{"type": "null"}}, "interior": {{"type":
               "heterogeneous", "albedo": 0.5, "sigma_t": {{"type": "gridvolume", "resolution": [2, 2, 2], "value": 1 {volume}}}}}}}"#
        )
    };
    let fits = r#", "to_world": [{"translate": [-0.5, -0.5, -0.5]}, {"scale": 2}]"#;
    let moved = r#""cube", "to_world": [{"translate": [3, 0, 0]}]"#;
    let lamp = r#""lamp": {"type": "point", "position": [0, 0, 5]}"#;
    let behind = |bsdf: &str, lamp: &str| {
        format!(
            r#"{lamp}, "pane": {{"type": "sphere", "bsdf": {{"type": "{bsdf}"}}, "interior": {{"type": "homogeneous"}}}}"#
        )
    };
    let inside = r#""lamp": {"type": "point", "position": [0, 0, 0.5]}"#;
    // Another boundary of the same medium lets light in.
    let fog = r#""bsdf": {"type": "null"}, "interior": {"type": "ref", "id": "fog"}"#;
    let shared = format!(
        r#"{lamp}, "fog": {{"type": "homogeneous"}}, "hole": {{"type": "sphere", {fog}}}, "pane": {{"type": "sphere", {}}}"#,
        fog.replace("null", "dielectric")
    );
    for (text, expected) in [
        (smoke(r#""cube""#, fits), None),
        (smoke(r#""sphere""#, fits), None),
        (
            smoke(r#""cube""#, ""),
            Some("fills 12.500 % of the box around its shape `smoke`"),
        ),
        (smoke(moved, fits), Some("is nowhere")),
        (behind("dielectric", lamp), Some("the medium in `pane` is dark")),
        (behind("dielectric", inside), None),
        (behind("roughdielectric", lamp), None),
        (shared, None),
        (
            format!(r#""integrator": {{"type": "prb_basic"}}, {lamp}, "ball": {{"type": "sphere"}}"#),
            Some("take `prb`"),
        ),
    ] {
        let warnings = objects(&text).warnings;
        match expected {
            Some(expected) => assert!(
                warnings.len() == 1 && warnings[0].contains(expected),
                "{text}: {warnings:?}"
            ),
            None => assert!(warnings.is_empty(), "{text}: {warnings:?}"),
        }
    }
}

/// A run ends at `start_resolution` times the factors of the stages, whatever the volume's own resolution is.
#[test]
fn another_resolution_at_the_end_is_warned_of() {
    let warnings = |start: u32| {
        let entry = format!(r#""object.interior.sh_coeffs": {{"start_resolution": {start}}}"#);
        read(&edited(r#""object.interior.sh_coeffs": {}"#, &entry)).warnings
    };
    // Two stages refine 1 to 4, which is the volume's own.
    assert_eq!(warnings(1), Vec::<String>::new());
    let told = warnings(2);
    assert!(told.len() == 1 && told[0].contains("refine to 8×8×8"), "{told:?}");
}
