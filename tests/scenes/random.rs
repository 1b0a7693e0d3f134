//! No text makes the reader panic, overflow its stack or run out of memory.

use std::path::Path;

use prbopt::scene;
use proptest::prelude::*;

use super::{SCENE, WORLD};

/// Pieces that a mutation puts in place of something else.
const PIECES: &[&str] = &[
    "",
    "null",
    "true",
    "-1",
    "0",
    "1e38",
    "1e999",
    "18446744073709551616",
    "[]",
    "{}",
    "[[]]",
    "\"\"",
    "\"ref\"",
    "\"object\"",
    "{\"type\": \"ref\", \"id\": \"object\"}",
    "{\"type\": \"cube\"}",
    "{\"type\": \"plume\", \"resolution\": 4}",
    "{\"type\": \"ref\", \"id\": \"box.interior\"}",
    "\"blendphase\"",
    "\"radiance_field\"",
    "\"point\"",
    "[0, 0, 0]",
    "[1, 2, 3, 4]",
    "\"\\ud800\"",
    "\u{feff}",
    "//",
    "/*",
    "}",
    "]",
    ",",
    ":",
    "\"type\": \"dataset\",",
    "NaN",
    "\0",
];

/// Reads a text that may be anything; what is said must not be empty.
fn survives(text: &str) {
    if let Err(mistakes) = scene::parse(text, Path::new("random.json")) {
        assert!(mistakes.iter().count() > 0);
        assert!(mistakes.iter().all(|mistake| !mistake.message.is_empty()));
    }
}

/// Where JSON tokens of a scene begin and end.
fn tokens(scene: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (i, c) in scene.char_indices() {
        if c.is_whitespace() || "{}[],:".contains(c) {
            if start < i {
                found.push((start, i));
            }
            found.push((i, i + c.len_utf8()));
            start = i + c.len_utf8();
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn arbitrary_text(text in ".{0,200}") {
        survives(&text);
    }

    #[test]
    fn text_that_looks_like_json(text in r#"([\[\]{},: ]|"(type|id|ref|a)"|[0-9.eE+-]|true|null|//|/\*|\*/){0,80}"#) {
        survives(&text);
    }

    #[test]
    fn a_small_scene_with_other_tokens(
        world in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len()), 1..4),
    ) {
        let scene = if world { WORLD } else { SCENE };
        let tokens = tokens(scene);
        let mut chosen: Vec<_> = edits.iter().map(|(at, piece)| (at.index(tokens.len()), PIECES[*piece])).collect();
        chosen.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        chosen.dedup_by_key(|(at, _)| *at);
        let mut text = scene.to_string();
        for (at, piece) in chosen {
            let (start, end) = tokens[at];
            text.replace_range(start..end, piece);
        }
        survives(&text);
    }

    #[test]
    fn a_small_scene_with_a_value_in_place_of_another(
        world in any::<bool>(),
        at in any::<prop::sample::Index>(),
        piece in 0..PIECES.len(),
    ) {
        let scene = if world { WORLD } else { SCENE };
        let values: Vec<_> = scene.match_indices(": ").map(|(i, _)| i + 2).collect();
        let start = values[at.index(values.len())];
        let length = scene[start..].find(['\n', ',', '}']).unwrap_or(0);
        let mut text = scene.to_string();
        text.replace_range(start..start + length, PIECES[piece]);
        survives(&text);
    }

    #[test]
    fn the_small_scene_cut_off(length in 0..SCENE.len()) {
        survives(&SCENE[..length]);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [
        ("[", "]"),
        ("{\"a\":", "}"),
        ("{\"type\":\"cube\",\"a\":", "}"),
        ("[{\"scale\":", "}]"),
    ] {
        for depth in [60, 500, 50_000] {
            survives(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
            survives(&open.repeat(depth));
        }
    }
}
