//! Names of files that are no text, and what files hold that a terminal would obey.

use super::*;

/// Files may have names that are not UTF-8: they are written under these, and told as text.
#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let odd = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let exists = |name: &[u8]| place.folder.path().join(odd(name)).is_file();
    fs::copy(place.path("target.json"), place.folder.path().join(odd(b"s\xff.json"))).expect("writable");
    let done = |before: &str, name: &[u8], after: &str| {
        let mut command = place.command(&[]);
        command.args(before.split(' ')).arg(odd(name)).args(after.split(' '));
        let output = command.output().expect("the program starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{before} {after}: {err}");
        let out = String::from_utf8(output.stdout).expect("what is told is UTF-8");
        assert!(out.contains('\u{fffd}'), "{before} {after}: {out}");
        out
    };
    for json in ["--device=cpu", "--json"] {
        done("render scene.json --spp 1 -o", b"v\xff.exr", json);
        assert!(exists(b"v\xff.exr") && exists(b"v\xff.png"));
        done("render scene.json --spp 1 --turntable 2 -o", b"t\xff", json);
        assert!(exists(b"t\xff/turntable.png") && exists(b"t\xff/frame_0001.png"));
        done("info", b"s\xff.json", json);
        done(
            "gradient scene.json --parameter sky.radiance --scale --spp 1 -o",
            b"g\xff",
            json,
        );
        assert!(exists(b"g\xff/sky.radiance_scale.exr") && exists(b"g\xff/sky.radiance_scale.png"));
    }
}

/// Control characters of a file stay out of the terminal, and every mistake has its own line, however its names end.
#[test]
fn messages_hold_no_control_characters() {
    let place = Place::new();
    let text = r#"{"type": "scene", "\u001b[31mred": 1, "x\ny": {"type": "sph\u0007ere"}}"#;
    fs::write(place.path("odd.json"), text).expect("writable");
    let (_, err) = place.expect(2, &["info", "odd.json"]);
    assert!(
        !err.trim_end().contains(|c: char| c.is_control() && c != '\n'),
        "{err:?}"
    );
    assert!(
        err.contains(r"`\u{1b}[31mred`") && err.contains(r"`sph\u{7}ere`"),
        "{err}"
    );
    let strays: Vec<&str> = err.lines().filter(|line| !line.contains("odd.json:1:")).collect();
    assert!(strays.is_empty(), "{strays:?}");
    let word = "a".repeat(100_000);
    fs::write(place.path("long.json"), format!(r#"{{"type": "scene", "{word}": 1}}"#)).expect("writable");
    let (_, err) = place.expect(2, &["info", "long.json"]);
    assert!(err.contains(" … ") && err.len() < 3000, "{} bytes", err.len());
}

/// A direction or a derivative that an image of 32-bit floats cannot hold is refused.
#[test]
fn infinite_derivatives_are_refused() {
    let place = Place::new();
    let gradient = ["gradient", "scene.json", "--parameter", "sky.radiance", "--spp", "1"];
    let refused = |more: &[&str]| place.expect(2, &[&gradient[..], more].concat()).1;
    let err = refused(&["--tangent", "1e39"]);
    assert!(
        err.contains("expected finite numbers, as 32-bit floats hold them"),
        "{err}"
    );
    fs::write(place.path("t.json"), r#"{"value": [1e39]}"#).expect("writable");
    let err = refused(&["--tangent", "t.json"]);
    assert!(err.contains("t.json: holds a number that is not finite"), "{err}");
    let shift = [
        "gradient",
        "scene.json",
        "--parameter",
        "object.interior.sigma_t",
        "--spp",
        "1",
    ];
    let (_, err) = place.expect(
        2,
        &[&shift[..], &["--tangent", "3e38", "--set", "sky.radiance=1000"]].concat(),
    );
    assert!(err.contains("too large for an image of 32-bit floats"), "{err}");
}
