//! The walk and the kernels stand in two languages: `src/transport/` and `src/kernels/` in Rust, `shaders/` in WGSL. By their
//! text, files, functions and constants of both must correspond.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose files are twins, relative to `src` and to `shaders`.
const FOLDERS: [&str; 2] = ["transport", "kernels"];

/// Functions of WGSL without one of their name in the Rust twin, each list with the reason.
const WGSL_ONLY: &[(&str, &[&str], &str)] = &[
    (
        "kernels/occupancy",
        &["occupancy_bits"],
        "the loop over a cell's texels is the device's in Rust",
    ),
    (
        "kernels/optimizer",
        &["apply_step"],
        "`Optimizer::step` has a match where WGSL has a code",
    ),
    (
        "transport/field/march",
        &["gather_segment"],
        "a march is an object with a state in Rust",
    ),
    (
        "transport/field/radiance_field",
        &["sample_adjoint", "occupancy_cell", "cell_index", "cell_exit"],
        "a sink, and cells found eight at a time, in Rust; skipped one by one here",
    ),
    (
        "transport/field/ray_adjoint",
        &["texel_sigma", "texel_sh"],
        "parameters are slices in Rust",
    ),
    (
        "transport/lookup/background",
        &["emitter_texel"],
        "parameters are slices in Rust",
    ),
    (
        "transport/lookup/grid",
        &[
            "grid_neighbours",
            "corners",
            "corner_texel",
            "corner_weight",
            "wrapped_neighbours",
            "grid_term",
            "grid_term_sh",
            "grid_adjoint_term",
            "grid_adjoint_term_sh",
        ],
        "a stencil is three pairs here, which take fewer registers than eight texels and weights",
    ),
    (
        "transport/lookup/volume",
        &["volume_corners", "corner_term"],
        "as in transport/lookup/grid",
    ),
    (
        "transport/lookup/grid",
        &["coefficient_count"],
        "only shaders have drivers that must not unroll loops",
    ),
    (
        "transport/light/index",
        &["index_layer"],
        "rows are summed by matrices here",
    ),
    (
        "transport/light/emission",
        &["emit_area"],
        "the last of the kinds that are matched in Rust",
    ),
    (
        "transport/light/particle",
        &["scatter"],
        "in `trace` in Rust; here a BSDF is asked in turns of one loop, because compilers write a function out wherever it is called",
    ),
    (
        "transport/light/splat",
        &["taps_share"],
        "a list of shares in Rust; looked up one by one here, which takes fewer registers",
    ),
    (
        "transport/paths/adjoint",
        &["extra_draw"],
        "pointers to parts of private variables cannot be passed on",
    ),
    (
        "transport/paths/adjoint",
        &["reservoir_offer", "reservoir_keep"],
        "in Rust in the file of the reservoir, which modules may refer to in circles",
    ),
    (
        "transport/paths/path_state",
        &["recall_radiance", "keep_radiance"],
        "paths go in waves on a GPU alone",
    ),
    (
        "transport/paths/trail",
        &["open_trail", "leave_trail_in_medium"],
        "what scatters is an enum in Rust",
    ),
    (
        "transport/paths/vertex",
        &["vertex_is_on_surface", "vertex_origin"],
        "matched as an enum in Rust",
    ),
    (
        "transport/scene/interaction",
        &["local_axes"],
        "fields in Rust; found anew here, which takes fewer registers",
    ),
    (
        "transport/paths/tracking",
        &["tentative_new", "tentative_next", "tentative_draw"],
        "an iterator, because WGSL has no closures",
    ),
    (
        "transport/rays/film",
        &["table_entry"],
        "vectors of a uniform buffer hold four entries",
    ),
    (
        "transport/rays/pixel",
        &["table_length", "table_pixel", "batch_pixel"],
        "methods of `PixelTable` and `Batch`",
    ),
    ("transport/rays/random", &["mix_words"], "a closure in Rust"),
    ("transport/scene/bsdf/local", &["lobe_sample_none"], "None in Rust"),
    (
        "transport/paths/chain",
        &["link_hit", "chain_meet", "chain_pass", "chain_scatter"],
        "a vertex holds an interaction, and no light is one, in Rust; here what a vertex brings is computed on the way back \
         alone, because compilers write a function out wherever it is called",
    ),
    (
        "transport/paths/trail",
        &["trail_new", "aim_trail"],
        "a trail begins as its default in Rust; here both scatterings of a vertex are completed in one loop, because compilers write a \
         function out wherever it is called",
    ),
    (
        "transport/scene/motion",
        &[
            "no_changes",
            "place_adjoint",
            "send",
            "anchor_is_wanted",
            "anchor_adjoint",
        ],
        "`ByMoved::zero`, and `is_wanted` and `moved_adjoint` of an anchor, in Rust; what is sent comes to one loop here, because \
         compilers write a function out wherever it is called",
    ),
    (
        "transport/scene/vertices",
        &[
            "vertices_sent",
            "triangle_of",
            "shares_of",
            "mean_normal",
            "mean_normal_adjoint",
            "others_around",
        ],
        "as in transport/scene/motion; a triangle's corners are a struct with fields in Rust",
    ),
    (
        "transport/scene/three_point",
        &["weight_slopes"],
        "a loop of `value_slopes` in Rust, whose factors are slices",
    ),
    (
        "transport/scene/bsdf",
        &["choice_count"],
        "a field in Rust; counted from bits here, which takes fewer registers",
    ),
    (
        "transport/scene/bsdf",
        &["weight_slope"],
        "a loop of `weight_adjoint` in Rust, whose factors are slices",
    ),
    (
        "transport/scene/bsdf/local",
        &["gradients_above"],
        "each of an array in Rust",
    ),
    (
        "transport/scene/bsdf/leaf",
        &[
            "leaf_values",
            "replaced",
            "placed",
            "leaf_has",
            "leaf_distribution",
            "leaf_least_share",
            "leaf_conductor",
            "leaf_rough_conductor",
            "leaf_dielectric",
            "leaf_thin_dielectric",
            "leaf_rough_dielectric",
            "coat_first",
            "coat_row",
            "coat_lookup",
            "coat_slope",
            "leaf_coat",
            "leaf_plastic",
            "leaf_rough_plastic",
            "leaf_principled",
            "leaf_principled_thin",
            "values_adjoint",
            "slope_of",
        ],
        "a model is an enum over the kinds in Rust, and its derivatives are a list",
    ),
    (
        "transport/scene/bsdf",
        &["leaf_is_straight"],
        "a filter of the leaves in Rust",
    ),
    (
        "transport/scene/bsdf",
        &["leaf_adjoint", "straight_eval", "straight_adjoint"],
        "a function for each sort of lobe in Rust; here one for all that a path may sample, and others for the lobe that shadow \
         rays need, since shader compilers write out each call",
    ),
    (
        "transport/scene/light",
        &["environment_size", "first_of_row"],
        "host code in Rust (resident/environment)",
    ),
    (
        "transport/scene/phase",
        &["blend_weights"],
        "weights are looked up once for all that needs them here",
    ),
    (
        "transport/scene/records",
        &["sink_number", "sink_color", "sink_entries"],
        "`Sink::value` with one and with three channels, and `Sink::entries`",
    ),
    (
        "transport/scene/area_light",
        &["row_start"],
        "host code in Rust (resident/environment)",
    ),
    ("transport/scene/shape", &["no_hit"], "None in Rust"),
    (
        "transport/scene/shape",
        &["cube_uv"],
        "a table in Rust (resident/emissive_triangles)",
    ),
    (
        "transport/scene/texture",
        &["image_column", "image_row", "stencil_texel"],
        "closures in Rust",
    ),
    (
        "transport/paths/volpath",
        &["scatter_at"],
        "media and surfaces in one loop, because compilers write a function out wherever it is called",
    ),
    (
        "transport/paths/volpath",
        &["go_on"],
        "an edge of a path that kernels take turns at, which is in a loop in Rust",
    ),
    (
        "transport/paths/path_state",
        &["path_gather"],
        "in `PathState::add` in Rust, where no light waits for its shadow ray",
    ),
    (
        "transport/scene/shape",
        &["nearest_in_turn"],
        "in Rust all rays go down the hierarchy that begin alone",
    ),
    (
        "transport/paths/replay_cache",
        &["segment_nearest", "shadow_nearest"],
        "closures in Rust, of which results are recalled or stored",
    ),
    (
        "transport/scene/bvh",
        &[
            "prepare_ray",
            "bvh_is_entered",
            "ending_with",
            "widening",
            "enter_children",
            "is_entered",
            "enter_box",
            "order_children",
            "keys",
            "listed",
            "edges",
            "shear_corner",
        ],
        "Rust tests all children, and the triangles of a block, at once in vectors (transport/scene/lanes)",
    ),
];

/// Constants that both languages have under one name but with another value, each with the reason.
const DIFFERENT: &[(&str, &str)] = &[("FAR", "Rust has infinity where WGSL must take a large number")];

/// Files of Rust without a twin in WGSL, each with the reason.
const RUST_ONLY: &[(&str, &str)] = &[
    (
        "transport/mode",
        "WGSL has no const parameters: the modes stand in transport/scene/records",
    ),
    ("transport/scene/coats", "tables are made on the host, for both devices"),
    (
        "transport/scene/tables",
        "tables are made on the host, for both devices",
    ),
    (
        "transport/scene/light_table",
        "tables are made on the host, for both devices",
    ),
    (
        "transport/scene/lanes",
        "vectors of registers: WGSL has vectors of four",
    ),
    ("transport/scene/bvh/", "its tests"),
    (
        "transport/scene/bsdf/transmittance",
        "tables are made on the host, for both devices",
    ),
    ("transport/number/", "WGSL has no generics"),
    ("transport/paths/radiative", "a baseline, on the CPU alone"),
    ("transport/paths/jacobian", "there to compare with, on the CPU alone"),
    ("transport/lookup/prefetch", "a GPU hides latency by other invocations"),
    ("transport/rays/angle", "in common/math, which other shaders read too"),
    ("transport/scene/batch/", "lanes of vectors, which a GPU has by itself"),
    ("transport/paths/wave/", "lanes of vectors, which a GPU has by itself"),
    ("transport/paths/packet", "a GPU follows paths together by itself"),
    (
        "transport/paths/starts",
        "rays of samples side by side, which a GPU makes by itself",
    ),
    ("transport/paths/flights", "lanes of vectors, which a GPU has by itself"),
    (
        "transport/paths/random_walks",
        "lanes of vectors, which a GPU has by itself",
    ),
    (
        "transport/paths/walk_notes",
        "takes memory for each path, which a GPU lacks",
    ),
    ("kernels/quality", "PSNR and SSIM are computed by the host"),
    ("kernels/smoothing", "steps are smoothed by the host"),
];

/// Files of WGSL without a twin in Rust, each with the reason.
const SHADERS_ONLY: &[(&str, &str)] = &[(
    "transport/paths/wave_path",
    "what kernels that take turns at a path hand on of it",
)];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Paths without extension, relative to `base`, of all files with this extension in `base`/`folder`, but for those
/// that only list their modules. Sorted.
fn stems(base: &str, folder: &str, extension: &str) -> Vec<String> {
    let base = root().join(base);
    let (mut found, mut folders) = (Vec::new(), vec![base.join(folder)]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) && path.file_stem().is_some_and(|s| s != "mod") {
                found.push(relative(&base, &path.with_extension("")));
            }
        }
    }
    found.sort();
    found
}

fn read(base: &str, stem: &str, extension: &str) -> String {
    let path = root().join(base).join(stem).with_extension(extension);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // Unit tests stand at a file's end.
    text.split("#[cfg(test)]").next().unwrap_or("").to_string()
}

fn relative(base: &Path, path: &Path) -> String {
    let path = path.strip_prefix(base).expect("it lies in the folder");
    let parts: Vec<_> = path.components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// Why a file of Rust has no twin, if it need not have one.
fn exempt(stem: &str) -> Option<&'static str> {
    let excused = |name: &str| stem == name || (name.ends_with('/') && stem.starts_with(name));
    RUST_ONLY.iter().find(|(name, _)| excused(name)).map(|(_, why)| *why)
}

/// The files of either list that lack a twin in the other.
fn without_twin(rust: &[String], wgsl: &[String]) -> Vec<String> {
    let lonely = rust
        .iter()
        .filter(|stem| exempt(stem).is_none() && !wgsl.contains(stem));
    let strange = wgsl
        .iter()
        .filter(|stem| SHADERS_ONLY.iter().all(|(name, _)| stem != name))
        .filter(|stem| !rust.contains(stem) || exempt(stem).is_some());
    lonely
        .map(|stem| format!("src/{stem}.rs has no shaders/{stem}.wgsl"))
        .chain(strange.map(|stem| format!("shaders/{stem}.wgsl has no src/{stem}.rs")))
        .collect()
}

#[test]
fn every_file_has_its_twin() {
    for folder in FOLDERS {
        let (rust, wgsl) = (stems("src", folder, "rs"), stems("shaders", folder, "wgsl"));
        assert!(rust.len() >= 5 && wgsl.len() >= 5, "files of {folder} were not found");
        let broken = without_twin(&rust, &wgsl);
        assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    }
}

/// A file in another folder than its twin, one without a twin, and a twin of what needs none are found.
#[test]
fn planted_files_are_found() {
    let list = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    for (rust, wgsl) in [
        (vec!["transport/paths/phase"], vec!["transport/scene/phase"]),
        (vec!["transport/scene/phase"], vec![]),
        (vec![], vec!["transport/scene/phase"]),
        (vec!["kernels/quality"], vec!["kernels/quality"]),
    ] {
        assert!(
            !without_twin(&list(&rust), &list(&wgsl)).is_empty(),
            "{rust:?} {wgsl:?}"
        );
    }
    assert!(without_twin(&list(&["a/b", "kernels/quality"]), &list(&["a/b"])).is_empty());
}

/// The identifier at the beginning of a text.
fn word(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    &text[..end]
}

/// The identifiers that follow `keyword` and a blank in some code.
fn named<'t>(text: &'t str, keyword: &str) -> Vec<&'t str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = |line: &'t str| {
        let at = line.find(&format!("{keyword} "))?;
        let whole = at == 0 || !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        whole.then(|| word(&line[at + keyword.len() + 1..]))
    };
    code.filter_map(after).filter(|name| !name.is_empty()).collect()
}

/// `PathState` is `path_state`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// The types and traits that a file of Rust has methods of.
fn implemented(rust: &str) -> Vec<String> {
    let heads = rust
        .lines()
        .filter(|line| line.starts_with("impl") || line.starts_with("pub trait"));
    let name = |head: &str| {
        let subject = head.rsplit(" for ").next().unwrap_or(head);
        let words = subject.split(|c: char| !c.is_alphanumeric());
        let types = words.filter(|w| w.len() > 1 && w.starts_with(char::is_uppercase));
        types.map(str::to_string).collect::<Vec<_>>()
    };
    heads.flat_map(name).collect()
}

/// The naming rule: a function of WGSL is called as a function of its twin in Rust; a method `m` of a type `PathState`
/// is `m`, `path_state_m`, or `path_m` after the type's first word, since WGSL has no methods; and where another file has
/// the name already, a function `f` of `bvh.wgsl` is `bvh_f`, since WGSL has no modules.
fn misnamed(stem: &str, rust: &str, wgsl: &str) -> Vec<String> {
    let functions = named(rust, "fn");
    let file = stem.rsplit('/').next().unwrap_or("").to_string();
    let prefixes: Vec<String> = implemented(rust)
        .iter()
        .map(|name| snake(name))
        .flat_map(|name| [name.clone(), name.split('_').next().unwrap_or("").to_string()])
        .chain([file])
        .collect();
    let excused = |name: &str| {
        WGSL_ONLY
            .iter()
            .any(|(file, names, _)| *file == stem && names.contains(&name))
    };
    let follows = |name: &str| {
        functions.contains(&name)
            || prefixes.iter().any(|prefix| {
                let method = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
                method.is_some_and(|method| functions.contains(&method))
            })
    };
    let all = named(wgsl, "fn").into_iter();
    all.filter(|name| !excused(name) && !follows(name))
        .map(|name| format!("shaders/{stem}.wgsl: `{name}` is no function of src/{stem}.rs"))
        .collect()
}

/// Twin files, by their stem.
fn twins() -> Vec<String> {
    FOLDERS
        .iter()
        .flat_map(|folder| stems("shaders", folder, "wgsl"))
        .filter(|stem| SHADERS_ONLY.iter().all(|(name, _)| stem != name))
        .collect()
}

#[test]
fn functions_are_called_alike() {
    let mut broken = Vec::new();
    for stem in twins() {
        broken.extend(misnamed(
            &stem,
            &read("src", &stem, "rs"),
            &read("shaders", &stem, "wgsl"),
        ));
    }
    for (stem, names, _) in WGSL_ONLY {
        let wgsl = read("shaders", stem, "wgsl");
        let gone = names.iter().filter(|name| !named(&wgsl, "fn").contains(name));
        broken.extend(gone.map(|name| format!("shaders/{stem}.wgsl has no `{name}` that could be excused")));
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn planted_names_are_found() {
    let rust = "pub fn leave() {}\nimpl<N: Number> PathState<N> {\n    fn turn(self) {}\n}\n";
    for wgsl in ["fn exit() {}", "fn path_exit() {}", "fn other_turn() {}"] {
        assert_eq!(misnamed("a", rust, wgsl).len(), 1, "{wgsl}");
    }
    let wgsl = "fn leave() {}\nfn turn() {}\nfn path_turn() {}\nfn path_state_turn() {}\n// fn exit() {}";
    assert!(misnamed("a", rust, wgsl).is_empty());
}

/// Constants of a file that are numbers: name and value.
fn constants(text: &str) -> Vec<(String, f64)> {
    let mut found: Vec<(String, f64)> = Vec::new();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        let line = line.trim_start().trim_start_matches("pub ");
        let line = line
            .strip_prefix("pub(super) ")
            .or(line.strip_prefix("(super) "))
            .unwrap_or(line);
        let Some(rest) = line.strip_prefix("const ") else {
            continue;
        };
        let Some((_, value)) = rest.split_once(" = ") else {
            continue;
        };
        let Some(end) = value.find(';') else { continue };
        let value = number(&value[..end], &found);
        found.extend(value.map(|value| (word(rest).to_string(), value)));
    }
    found
}

/// The value of sums and products of numbers, of what was defined before, and of the constants of both languages.
fn number(text: &str, known: &[(String, f64)]) -> Option<f64> {
    let text = text.trim();
    for (operator, apply) in [
        (" << ", (|a, b: f64| a * b.exp2()) as fn(f64, f64) -> f64),
        (" - ", |a, b| a - b),
        (" / ", |a, b| a / b),
        (" * ", |a, b| a * b),
    ] {
        if let Some((a, b)) = text.rsplit_once(operator) {
            return Some(apply(number(a, known)?, number(b, known)?));
        }
    }
    let plain = text.replace('_', "");
    let plain = plain.trim_end_matches(['u', 'f']);
    let hex = plain
        .strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    hex.map(|n| n as f64)
        .or_else(|| plain.parse().ok())
        .or_else(|| match text {
            "f32::EPSILON" | "EPSILON" => Some(f64::from(f32::EPSILON)),
            "f32::MIN_POSITIVE" => Some(f64::from(f32::MIN_POSITIVE)),
            "std::f32::consts::FRAC_1_PI" => Some(std::f64::consts::FRAC_1_PI),
            "u32::MAX" => Some(f64::from(u32::MAX)),
            name => known.iter().find(|(other, _)| other == name).map(|(_, value)| *value),
        })
}

/// Constants of both languages under one name whose values differ by more than the digits of a literal.
fn unequal(stem: &str, rust: &str, wgsl: &str) -> Vec<String> {
    let theirs = constants(wgsl);
    let differs = |(name, value): &(String, f64)| {
        let (_, other) = theirs.iter().find(|(other, _)| other == name)?;
        let excused = DIFFERENT.iter().any(|(known, _)| known == name);
        let apart = (value - other).abs() > 1e-7 * value.abs();
        (apart && !excused).then(|| format!("{stem}: {name} is {value} in Rust and {other} in WGSL"))
    };
    constants(rust).iter().filter_map(differs).collect()
}

#[test]
fn constants_are_equal() {
    let (mut broken, mut compared) = (Vec::new(), 0);
    for stem in twins() {
        let (rust, wgsl) = (read("src", &stem, "rs"), read("shaders", &stem, "wgsl"));
        let (ours, theirs) = (constants(&rust), constants(&wgsl));
        compared += ours
            .iter()
            .filter(|(name, _)| theirs.iter().any(|(other, _)| other == name))
            .count();
        broken.extend(unequal(&stem, &rust, &wgsl));
    }
    assert!(compared >= 20, "only {compared} constants were found in both languages");
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn planted_constants_are_found() {
    let rust = "pub const A: f32 = 2.0 * f32::EPSILON;\npub(super) const B: u32 = 1 << 16;\nconst C: f32 = 1.0 - 5e-4;";
    let same = "const A: f32 = 2.0 * EPSILON;\nconst B: u32 = 65536u;\nconst C: f32 = 0.9995;";
    assert_eq!(constants(rust).len(), 3);
    assert!(unequal("a", rust, same).is_empty(), "{:?}", unequal("a", rust, same));
    for (from, to) in [
        ("2.0 * EPSILON", "3.0 * EPSILON"),
        ("65536u", "65537u"),
        ("0.9995", "0.99"),
    ] {
        assert_eq!(unequal("a", rust, &same.replace(from, to)).len(), 1, "{from}");
    }
}
